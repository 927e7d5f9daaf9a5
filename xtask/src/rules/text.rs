//! Clean text: nothing invisible, nothing of one machine.

use super::Rule;
use crate::finding::Report;
use crate::house::House;

pub(super) const RULE: Rule = Rule {
    name: "text",
    demand: "no trailing white space, tabs in Rust, carriage returns or paths of one machine",
    check,
};

/// Home folders and the like; spelled apart, so that this file passes.
const MACHINE_PATHS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/")];

fn check(house: &House, report: &mut Report) {
    for file in &house.files {
        let mut add = |line: usize, what: &str| report.add(&file.path, line, what);
        let is_rust = file.path.ends_with(".rs");
        for (at, line) in file.text.split('\n').enumerate() {
            if line.ends_with('\r') {
                add(at + 1, "a carriage return; end lines with a line feed alone");
            } else if line.ends_with([' ', '\t']) {
                add(at + 1, "white space at the end of the line; take it out");
            }
            if is_rust && line.contains('\t') {
                add(at + 1, "a tab; indent with four spaces");
            }
            if let Some(path) = MACHINE_PATHS.iter().find(|path| names_path(line, path)) {
                let what = format!("`{path}` is a path of one machine; make it relative");
                add(at + 1, &what);
            }
        }
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            add(file.text.lines().count(), "no line feed at the end of the file; add it");
        }
    }
}

/// Whether the path stands at its own beginning, not inside a longer path or an address.
fn names_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}' | '$'))
    })
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    #[test]
    fn unclean_text_is_found() {
        let machine = format!("see {}me/x\n", MACHINE_PATHS[1]);
        for text in ["a \n", "a\r\n", "\ta\n", "a", machine.as_str()] {
            assert_eq!(places(&RULE, &[("a.rs", text)]), ["a.rs:1"], "{text:?}");
        }
    }

    #[test]
    fn clean_text_passes() {
        let inside = format!("https://example.org{}x and $HOME{}x\n", MACHINE_PATHS[1], "/x");
        for text in ["", "a\n\n", "all:\n\tcc a.c\n", inside.as_str()] {
            assert_eq!(places(&RULE, &[("Makefile", text)]), [""; 0], "{text:?}");
        }
    }
}
