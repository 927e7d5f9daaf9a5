//! Run-time tables instead of Cargo features: one build is tested, and it is the one that ships.

use super::Rule;
use crate::finding::Report;
use crate::house::House;

pub(super) const RULE: Rule = Rule {
    name: "features",
    demand: "no Cargo features and optional dependencies but those on the list",
    check,
};

/// Crate and feature; each is a heavy dependency off every path that somebody needs.
const PERMITTED: &[(&str, &str)] = &[];

fn check(house: &House, report: &mut Report) {
    for member in &house.crates {
        let manifest = &member.manifest;
        for (feature, _) in manifest.entries("features") {
            if !PERMITTED.contains(&(member.name.as_str(), feature)) {
                let what = format!("feature `{feature}`; choose at run time, from a table");
                report.add(&manifest.path, manifest.line_of("features", feature), what);
            }
        }
        for dependency in manifest.dependencies() {
            if dependency.value.get("optional").is_some() {
                let what = format!("`{}` is optional; use it or leave it", dependency.name);
                report.add(&manifest.path, dependency.line, what);
            }
        }
    }
    for source in &house.sources {
        for (offset, _) in source.code.match_indices("cfg(feature") {
            if PERMITTED.is_empty() {
                let what = "code for a feature that no manifest may have; take it out";
                report.add(&source.path, source.line(offset), what);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    #[test]
    fn features_and_optional_dependencies_are_found() {
        let text =
            "[features]\nfast = []\n[dependencies]\na = { version = \"1\", optional = true }\n";
        let files =
            [("crates/a/Cargo.toml", text), ("crates/a/src/a.rs", "#[cfg(feature = \"x\")]")];
        let expected = ["crates/a/Cargo.toml:2", "crates/a/Cargo.toml:4", "crates/a/src/a.rs:1"];
        assert_eq!(places(&RULE, &files), expected);
    }

    #[test]
    fn a_manifest_without_them_passes() {
        let text = "[dependencies]\na.workspace = true\n";
        assert_eq!(places(&RULE, &[("crates/a/Cargo.toml", text)]), [""; 0]);
    }
}
