//! One closed error enum per crate; `anyhow` is for the edges of the program.

use super::Rule;
use crate::finding::Report;
use crate::house::House;

pub(super) const RULE: Rule = Rule {
    name: "errors",
    demand: "anyhow only in the binary, bench and xtask; no crate that writes errors for us",
    check,
};

const EDGES: [&str; 3] = ["longwire", "bench", "xtask"];
const NOWHERE: [&str; 4] = ["eyre", "color-eyre", "thiserror", "snafu"];

fn check(house: &House, report: &mut Report) {
    for member in &house.crates {
        for dependency in member.manifest.dependencies() {
            let name = dependency.name;
            let at_edge = EDGES.contains(&member.name.as_str());
            if (name == "anyhow" && !at_edge) || NOWHERE.contains(&name) {
                let what = format!("`{name}` here; write a closed enum that says who is at fault");
                report.add(&member.manifest.path, dependency.line, what);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    #[test]
    fn anyhow_inside_is_found_and_at_the_edge_passes() {
        let text = "[dependencies]\nanyhow.workspace = true\n";
        let found = places(&RULE, &[("crates/lab/Cargo.toml", text), ("bench/Cargo.toml", text)]);
        assert_eq!(found, ["crates/lab/Cargo.toml:2"]);
        let text = "[dev-dependencies]\nthiserror.workspace = true\n";
        assert_eq!(places(&RULE, &[("bench/Cargo.toml", text)]), ["bench/Cargo.toml:2"]);
    }
}
