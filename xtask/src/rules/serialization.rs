//! serde is for facts, configuration and service messages; wire formats encode themselves.

use super::Rule;
use crate::finding::Report;
use crate::house::House;

pub(super) const RULE: Rule = Rule {
    name: "serialization",
    demand: "serde for our own types only in record, configuration and service messages",
    check,
};

/// Where it is permitted: a folder (with a slash) or a file.
const PERMITTED: &[&str] = &[
    "crates/record/src/",
    // Configuration.
    "crates/brokerd/src/config.rs",
    "crates/brokerd/src/config/",
    "crates/proxy/src/config/",
    "crates/services/src/messaging/config.rs",
    "crates/services/src/registry/config.rs",
    "crates/lab/src/campaign/plan/file.rs",
    // Service messages.
    "crates/services/src/registry/publishing.rs",
];

fn check(house: &House, report: &mut Report) {
    for source in &house.sources {
        if source.is_test_file || PERMITTED.iter().any(|p| source.path.starts_with(p)) {
            continue;
        }
        for name in ["Serialize", "Deserialize"] {
            for offset in source.words(name).filter(|&offset| !source.is_test(offset)) {
                if is_derive_or_impl(&source.code, offset, name) {
                    let what = format!(
                        "`{name}` here; put the type in record, configuration or service messages"
                    );
                    report.add(&source.path, source.line(offset), what);
                }
            }
        }
    }
}

fn is_derive_or_impl(code: &str, offset: usize, name: &str) -> bool {
    let before = &code[..offset];
    let derived = before.rfind("derive(").is_some_and(|start| !before[start..].contains(')'));
    let line = before.rsplit('\n').next().unwrap_or_default().trim_start();
    let after = code[offset + name.len()..].trim_start_matches("<'de>").trim_start();
    derived || (line.starts_with("impl") && after.starts_with("for "))
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    const DERIVED: &str =
        "use serde::Serialize;\n#[derive(Debug,\n    serde::Serialize)]\nstruct A;";

    #[test]
    fn a_derive_outside_the_list_is_found() {
        assert_eq!(places(&RULE, &[("crates/lab/src/a.rs", DERIVED)]), ["crates/lab/src/a.rs:3"]);
        let by_hand = "impl<'de> serde::Deserialize<'de> for A {}";
        assert_eq!(places(&RULE, &[("crates/lab/src/a.rs", by_hand)]).len(), 1);
    }

    #[test]
    fn the_permitted_places_and_tests_pass() {
        for path in ["crates/record/src/a.rs", "crates/proxy/src/config/file.rs", "a/tests/a.rs"] {
            assert_eq!(places(&RULE, &[(path, DERIVED)]), [""; 0]);
        }
        let used = "fn f<T: serde::Serialize>(t: &T) {} // derive(Serialize)";
        assert_eq!(places(&RULE, &[("crates/lab/src/a.rs", used)]), [""; 0]);
    }
}
