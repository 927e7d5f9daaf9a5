//! The dependencies of every crate are those of its row, and come from the workspace's list.

use super::Rule;
use crate::finding::Report;
use crate::house::House;
use crate::manifest::{Dependency, Manifest};
use crate::member::Crate;
use crate::table::{MAP, Row};

pub(super) const RULE: Rule = Rule {
    name: "dependencies",
    demand: "in-tree and outside dependencies equal the table; the laboratory has no proxy",
    check,
};

/// Libraries that the tests of any crate may use.
const TEST_LIBRARIES: [&str; 4] = ["proptest", "roxmltree", "serde_json", "tempfile"];

fn check(house: &House, report: &mut Report) {
    for member in &house.crates {
        let dependencies = member.manifest.dependencies();
        for dependency in &dependencies {
            check_source(member, dependency, report);
        }
        if let Some(row) = house.row(&member.name) {
            let (in_tree, outside): (Vec<_>, Vec<_>) =
                dependencies.into_iter().partition(|d| is_in_tree(house, d.name));
            check_in_tree(member, row, &in_tree, report);
            check_outside(member, row, &outside, report);
        }
    }
    if let Some(root) = &house.root {
        check_unused(house, root, report);
    }
}

fn is_in_tree(house: &House, name: &str) -> bool {
    house.crates.iter().any(|member| member.name == name)
}

/// Versions and features stand once, in the root: every build of a part shares its parts.
fn check_source(member: &Crate, dependency: &Dependency<'_>, report: &mut Report) {
    let from_workspace = dependency.value.as_table().is_some_and(|table| {
        table.len() == 1 && table.get("workspace").and_then(toml::Value::as_bool) == Some(true)
    });
    if !from_workspace {
        let name = dependency.name;
        let what = format!("write `{name}.workspace = true`; version and features are the root's");
        report.add(&member.manifest.path, dependency.line, what);
    }
}

fn check_in_tree(member: &Crate, row: &Row, found: &[Dependency<'_>], report: &mut Report) {
    let path = &member.manifest.path;
    for dependency in found {
        let name = dependency.name;
        if member.name == "lab" && name == "proxy" {
            let what = "the laboratory starts the binary as a process: what is measured is what \
                ships; take `proxy` out";
            report.add(path, dependency.line, what);
        } else if !row.in_tree.iter().any(|listed| listed == name) {
            let what = format!("`{name}` is not in the row of `{}` in {MAP}", row.name);
            report.add(path, dependency.line, what);
        }
    }
    for listed in &row.in_tree {
        if !found.iter().any(|dependency| dependency.name == listed) {
            let what = format!("`{}` does not use `{listed}`; take it out of the row", row.name);
            report.add(MAP, row.line, what);
        }
    }
}

fn check_outside(member: &Crate, row: &Row, found: &[Dependency<'_>], report: &mut Report) {
    for dependency in found {
        let name = dependency.name;
        let listed = row.outside.iter().any(|pattern| matches(pattern, name));
        let for_tests = dependency.is_dev && TEST_LIBRARIES.contains(&name);
        if !listed && !for_tests {
            let what = format!("`{name}` is not in the row of `{}` in {MAP}", row.name);
            report.add(&member.manifest.path, dependency.line, what);
        }
    }
    for pattern in &row.outside {
        if !found.iter().any(|dependency| !dependency.is_dev && matches(pattern, dependency.name)) {
            let what = format!("`{}` does not use `{pattern}`; take it out of the row", row.name);
            report.add(MAP, row.line, what);
        }
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |prefix| name.starts_with(prefix))
}

fn check_unused(house: &House, root: &Manifest, report: &mut Report) {
    for (name, _) in root.entries("workspace.dependencies") {
        let mut all = house.crates.iter().flat_map(|member| member.manifest.dependencies());
        if !all.any(|dependency| dependency.name == name) {
            let line = root.line_of("workspace.dependencies", name);
            report.add(&root.path, line, format!("no crate uses `{name}`; take it out"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MAP_TEXT, places};
    use super::*;

    const PROTO: &str = "[dependencies]\nbytes.workspace = true\n[dev-dependencies]\n\
        proptest.workspace = true\n";
    const PROXY: &str = "[dependencies]\ntokio.workspace = true\nproto.workspace = true\n";
    const RECORD: &str = "[dependencies]\nserde.workspace = true\n";

    fn places_of(proto: &str, proxy: &str, root: &str) -> Vec<String> {
        places(
            &RULE,
            &[
                ("ARCHITECTURE.md", MAP_TEXT),
                ("Cargo.toml", root),
                ("crates/proto/Cargo.toml", proto),
                ("crates/proxy/Cargo.toml", proxy),
                ("crates/record/Cargo.toml", RECORD),
            ],
        )
    }

    #[test]
    fn manifests_like_the_table_pass() {
        let root = "[workspace.dependencies]\nbytes = \"1\"\nproto = { path = \"crates/proto\" }\n";
        assert_eq!(places_of(PROTO, PROXY, root), [""; 0]);
    }

    #[test]
    fn an_outside_dependency_beyond_the_row_is_found() {
        let proto = PROTO.replace("bytes", "tokio.workspace = true\nbytes");
        assert_eq!(places_of(&proto, PROXY, ""), ["crates/proto/Cargo.toml:2"]);
        let proto = PROTO.replace("proptest", "tokio");
        assert_eq!(places_of(&proto, PROXY, ""), ["crates/proto/Cargo.toml:4"]);
    }

    #[test]
    fn an_in_tree_dependency_beyond_the_row_is_found() {
        let proto = format!("{PROTO}record.workspace = true\n");
        assert_eq!(places_of(&proto, PROXY, ""), ["crates/proto/Cargo.toml:5"]);
    }

    #[test]
    fn a_row_that_promises_too_much_is_found() {
        let proxy = PROXY.replace("proto.workspace = true\n", "");
        assert_eq!(places_of(PROTO, &proxy, ""), ["ARCHITECTURE.md:5"]);
        let proxy = PROXY.replace("tokio.workspace = true\n", "");
        assert_eq!(places_of(PROTO, &proxy, ""), ["ARCHITECTURE.md:5"]);
    }

    #[test]
    fn versions_beside_the_workspace_and_unused_ones_are_found() {
        let proto = PROTO.replace("bytes.workspace = true", "bytes = \"1\"");
        assert_eq!(places_of(&proto, PROXY, ""), ["crates/proto/Cargo.toml:2"]);
        let proto = PROTO
            .replace("bytes.workspace = true", "bytes = { workspace = true, features = [\"x\"] }");
        assert_eq!(places_of(&proto, PROXY, ""), ["crates/proto/Cargo.toml:2"]);
        let root = "[workspace.dependencies]\nbytes = \"1\"\nlru = \"1\"\n";
        assert_eq!(places_of(PROTO, PROXY, root), ["Cargo.toml:3"]);
    }

    #[test]
    fn the_laboratory_never_links_the_proxy() {
        let map = MAP_TEXT.to_owned() + "| `lab` | l | `proxy` | shell |\n";
        let found = places(
            &RULE,
            &[
                ("ARCHITECTURE.md", &map),
                ("crates/lab/Cargo.toml", "[dependencies]\nproxy.workspace = true\n"),
                ("crates/proxy/Cargo.toml", PROXY),
                ("crates/proto/Cargo.toml", PROTO),
            ],
        );
        assert_eq!(found, ["crates/lab/Cargo.toml:2"]);
    }
}
