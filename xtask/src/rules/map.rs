//! ARCHITECTURE.md is true: its table parses and lists the members, what it names exists.

use super::Rule;
use crate::finding::Report;
use crate::house::House;
use crate::table::{MAP, Row, quoted};

pub(super) const RULE: Rule = Rule {
    name: "map",
    demand: "the table in ARCHITECTURE.md lists every crate, and what it names exists",
    check,
};

/// Crates that may touch the outside world. The table alone must not be able to add one.
const SHELLS: [&str; 10] = [
    "bench", "browser", "brokerd", "desk", "lab", "longwire", "pocket-c", "proxy", "services",
    "xtask",
];

fn check(house: &House, report: &mut Report) {
    for problem in &house.problems {
        report.add(&problem.path, problem.line, problem.what.clone());
    }
    for member in &house.crates {
        if house.row(&member.name).is_none() {
            let what = format!("`{}` has no row in the table of {MAP}; add one", member.name);
            report.add(&member.manifest.path, 1, what);
        }
    }
    for row in &house.rows {
        check_row(house, row, report);
    }
    check_named_paths(house, report);
}

fn check_row(house: &House, row: &Row, report: &mut Report) {
    if !row.is_pure && !SHELLS.contains(&row.name.as_str()) {
        let what = format!("`{}` cannot be a shell; shells are {}", row.name, SHELLS.join(", "));
        report.add(MAP, row.line, what);
    }
    let Some(member) = house.crates.iter().find(|member| member.name == row.name) else {
        let what = format!("no crate in a folder `{}`; take the row out", row.name);
        return report.add(MAP, row.line, what);
    };
    for folder in &row.folders {
        let path = format!("{}/src/{folder}", member.folder);
        if !house.has(&path) && !house.has(&format!("{path}.rs")) {
            report.add(MAP, row.line, format!("{path} does not exist; take it out or write it"));
        }
    }
}

/// Whatever in back-quotes begins with a folder of the tree must be there.
fn check_named_paths(house: &House, report: &mut Report) {
    let Some(map) = house.file(MAP) else { return };
    for (at, line) in map.text.lines().enumerate() {
        for word in quoted(line) {
            let Some((top, _)) = word.split_once('/') else { continue };
            let is_path = !word.contains(['*', '<', ':', '{']) && !top.is_empty();
            if is_path && house.has(top) && !house.has(&word) {
                report.add(MAP, at + 1, format!("`{word}` does not exist; mend the map"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MAP_TEXT, found, places};
    use super::*;

    const EMPTY: &str = "[package]\n";

    fn tree(map: &str) -> Vec<(&str, &str)> {
        let manifest = |path| (path, EMPTY);
        let mut files = vec![(MAP, map), ("crates/proto/src/stream/packet.rs", "")];
        for path in ["proto", "record", "proxy"] {
            files.push(manifest(match path {
                "proto" => "crates/proto/Cargo.toml",
                "record" => "crates/record/Cargo.toml",
                _ => "crates/proxy/Cargo.toml",
            }));
        }
        files
    }

    #[test]
    fn a_true_map_passes() {
        let map = MAP_TEXT.replace("machines", "`stream/`") + "\nSee `crates/proto/src`.\n";
        assert_eq!(found(&RULE, &tree(&map)), []);
    }

    #[test]
    fn a_stale_map_is_found() {
        let map = MAP_TEXT.replace("machines", "`burst/`") + "\nSee `crates/gone.rs`.\n";
        assert_eq!(places(&RULE, &tree(&map)), ["ARCHITECTURE.md:3", "ARCHITECTURE.md:7"]);
    }

    #[test]
    fn rows_and_members_must_match() {
        let map = MAP_TEXT.replace("`record`", "`stone`");
        let places = places(&RULE, &tree(&map));
        assert_eq!(places, ["crates/record/Cargo.toml:1", "ARCHITECTURE.md:4"]);
    }

    #[test]
    fn the_table_cannot_make_a_shell() {
        let map = MAP_TEXT.replace("pure: `bytes`", "shell: `bytes`");
        assert_eq!(places(&RULE, &tree(&map)), ["ARCHITECTURE.md:3"]);
    }

    #[test]
    fn a_missing_map_and_a_broken_manifest_are_found() {
        let places = places(&RULE, &[("crates/a/Cargo.toml", "[")]);
        assert_eq!(places, ["ARCHITECTURE.md:1", "crates/a/Cargo.toml:1"]);
    }
}
