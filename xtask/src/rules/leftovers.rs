//! What is not finished does not go in, and a test waits for a condition, not for a time.

use super::Rule;
use crate::finding::Report;
use crate::house::House;
use crate::source::Source;

pub(super) const RULE: Rule = Rule {
    name: "leftovers",
    demand: "no notes of work undone, no debugging prints, no bare #[ignore], no sleep in tests",
    check,
};

/// Spelled apart, so that this file passes.
const NOTES: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

fn check(house: &House, report: &mut Report) {
    for file in &house.files {
        for (at, line) in file.text.lines().enumerate() {
            let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            for note in words.filter(|word| NOTES.contains(word)) {
                report.add(&file.path, at + 1, format!("{note}; do it now or open an issue"));
            }
        }
    }
    for source in &house.sources {
        check_source(source, report);
    }
}

fn check_source(source: &Source, report: &mut Report) {
    for name in ["dbg", "todo", "unimplemented"] {
        for offset in source.words(name) {
            if source.code[offset + name.len()..].starts_with('!') {
                report.add(&source.path, source.line(offset), format!("`{name}!`; take it out"));
            }
        }
    }
    for (offset, _) in source.code.match_indices("#[ignore]") {
        let what = "a test ignored without a reason; write #[ignore = \"why\"]";
        report.add(&source.path, source.line(offset), what);
    }
    for offset in source.words("sleep").filter(|&offset| source.is_test(offset)) {
        let line = source.line(offset);
        let called = source.code[offset + "sleep".len()..].starts_with('(');
        if called && !source.has_note(line, "sleep:") {
            let what = "a test that sleeps; wait for the condition, or say in a comment \
                `// sleep:` why time itself is what it tests";
            report.add(&source.path, line, what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    #[test]
    fn leftovers_are_found() {
        let note = format!("a\n# {} later", NOTES[0]);
        assert_eq!(places(&RULE, &[("a.toml", &note)]), ["a.toml:2"]);
        for text in [
            "fn f() { dbg!(x); }",
            "fn f() { todo!() }",
            "#[ignore]\nfn f() {}",
            "#[test] fn f() { std::thread::sleep(SECOND); }",
        ] {
            assert_eq!(places(&RULE, &[("a.rs", text)]), ["a.rs:1"], "{text}");
        }
    }

    #[test]
    fn finished_work_passes() {
        for text in [
            "const A: &str = \"todo!()\"; fn todo() {}",
            "#[ignore = \"needs a radio\"]\nfn f() {}",
            "fn f() { sleep(SECOND); }",
            "#[test]\nfn f() {\n    // sleep: the link stays idle so long\n    sleep(SECOND);\n}",
        ] {
            assert_eq!(places(&RULE, &[("a.rs", text)]), [""; 0], "{text}");
        }
    }
}
