//! What a rule has to say.

use std::fmt;

/// One violation: where, of which rule, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) rule: &'static str,
    /// What is wrong, then the remedy, in one line.
    pub(crate) what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.what)
    }
}

/// Collects the findings of one rule.
pub(crate) struct Report {
    rule: &'static str,
    findings: Vec<Finding>,
}

impl Report {
    pub(crate) fn new(rule: &'static str) -> Self {
        Self { rule, findings: Vec::new() }
    }

    pub(crate) fn add(&mut self, path: &str, line: usize, what: impl Into<String>) {
        let what = what.into();
        self.findings.push(Finding { path: path.to_owned(), line, rule: self.rule, what });
    }

    pub(crate) fn into_findings(self) -> Vec<Finding> {
        self.findings
    }
}
