//! The rules, one small file each.

mod bounds;
mod citations;
mod cycles;
mod dependencies;
mod documents;
mod errors;
mod features;
mod fuzzed;
mod impls;
mod leftovers;
mod links;
mod map;
mod purity;
mod serialization;
mod size;
mod text;
mod units;
mod verbs;
mod words;

use crate::finding::{Finding, Report};
use crate::house::House;

/// A rule of the house.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    /// What it demands, in one line.
    pub(crate) demand: &'static str,
    check: fn(&House, &mut Report),
}

/// All rules, in the order of the design where it has them.
pub(crate) const RULES: &[Rule] = &[
    map::RULE,
    purity::RULE,
    dependencies::RULE,
    serialization::RULE,
    verbs::RULE,
    words::RULE,
    bounds::RULE,
    fuzzed::RULE,
    errors::RULE,
    features::RULE,
    size::RULE,
    cycles::RULE,
    impls::RULE,
    citations::RULE,
    units::RULE,
    leftovers::RULE,
    text::RULE,
    links::RULE,
    documents::RULE,
];

/// Every finding of every rule, in order of place.
pub(crate) fn check(house: &House) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule.findings(house)).collect();
    findings.sort();
    findings.dedup();
    findings
}

impl Rule {
    fn findings(&self, house: &House) -> Vec<Finding> {
        let mut report = Report::new(self.name);
        (self.check)(house, &mut report);
        report.into_findings()
    }
}

/// What a rule finds in a house of the given files, as `path:line` and what.
#[cfg(test)]
fn found(rule: &Rule, files: &[(&str, &str)]) -> Vec<(String, String)> {
    let findings = rule.findings(&crate::house::house(files));
    findings.into_iter().map(|f| (format!("{}:{}", f.path, f.line), f.what)).collect()
}

/// The places alone.
#[cfg(test)]
fn places(rule: &Rule, files: &[(&str, &str)]) -> Vec<String> {
    found(rule, files).into_iter().map(|(place, _)| place).collect()
}

/// A map with a pure crate `proto`, a shell `proxy` and a pure `record`.
#[cfg(test)]
const MAP_TEXT: &str = "\
| crate | holds | in-tree dependencies | outside world |
| --- | --- | --- | --- |
| `proto` | machines | none | pure: `bytes` |
| `record` | facts | none | pure: `serde*` |
| `proxy` | the shell | `proto` | shell: `tokio` |
";
