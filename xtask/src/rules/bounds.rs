//! Every queue has a named bound: a channel without one says in a comment what bounds it. The names
//! of bounds begin with `MAX_` or `MIN_`, so that a search finds them all.

use super::Rule;
use crate::finding::Report;
use crate::house::House;
use crate::source::{Source, is_word};

pub(super) const RULE: Rule = Rule {
    name: "bounds",
    demand: "no unbounded channel without a comment `// bound:` that says what bounds it; \
        constants that are bounds are named MAX_.. or MIN_..",
    check,
};

const UNBOUNDED: [&str; 2] = ["unbounded_channel", "unbounded"];
/// Words of names that say that it is a bound, and the one that it begins with.
const BOUND_WORDS: [(&str, &str); 4] =
    [("MAX", "MAX"), ("MIN", "MIN"), ("MOST", "MAX"), ("LEAST", "MIN")];

fn check(house: &House, report: &mut Report) {
    for source in &house.sources {
        let by_name = UNBOUNDED.iter().flat_map(|name| {
            source.words(name).filter(|offset| called_with(source, offset + name.len(), '('))
        });
        let by_shape = source.words("channel").filter(|&offset| is_std_channel(source, offset));
        for offset in by_name.chain(by_shape).filter(|&offset| !source.is_test(offset)) {
            let line = source.line(offset);
            if !source.has_note(line, "bound:") {
                let what = "an unbounded channel; give it a bound, or say in a comment `// bound:` \
                    what bounds it";
                report.add(&source.path, line, what);
            }
        }
        check_names(source, report);
    }
}

fn check_names(source: &Source, report: &mut Report) {
    for keyword in ["const", "static"] {
        for offset in source.words(keyword) {
            let rest = source.code[offset + keyword.len()..].trim_start();
            let (name, after) = rest.split_at(rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
            if !after.trim_start().starts_with(':') {
                continue; // a function, a block or a pointer
            }
            if let Some(wanted) = name_of_bound(name) {
                let what =
                    format!("`{name}` is a bound, whose name says so first; call it `{wanted}`");
                report.add(&source.path, source.line(offset), what);
            }
        }
    }
}

/// What a constant that is a bound is to be called; none if it is no bound or well named.
fn name_of_bound(name: &str) -> Option<String> {
    let words: Vec<&str> = name.split('_').collect();
    let (at, first) = words.iter().enumerate().find_map(|(at, word)| {
        let (_, first) = BOUND_WORDS.iter().find(|(other, _)| other == word)?;
        Some((at, *first))
    })?;
    let is_well_named = at == 0 && words[0] == first;
    let rest = words[..at].iter().chain(&words[at + 1..]);
    let wanted: Vec<&str> = std::iter::once(&first).chain(rest).copied().collect();
    (words.len() > 1 && !is_well_named).then(|| wanted.join("_"))
}

/// What stands at `at`, after a turbofish.
fn after_types(source: &Source, at: usize) -> &str {
    let rest = &source.code[at..];
    let Some(types) = rest.strip_prefix("::<") else { return rest };
    let mut depth = 1_usize;
    for (at, c) in types.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &types[at + 1..];
        }
    }
    ""
}

fn called_with(source: &Source, at: usize, open: char) -> bool {
    after_types(source, at).starts_with(open)
}

/// `channel()` of `mpsc` without a capacity: the one of the standard library has no bound.
fn is_std_channel(source: &Source, offset: usize) -> bool {
    let empty = after_types(source, offset + "channel".len())
        .strip_prefix('(')
        .is_some_and(|rest| rest.trim_start().starts_with(')'));
    let before = source.code[..offset].trim_end_matches("::");
    let owner = before.rsplit(|c| !is_word(c)).next().unwrap_or_default();
    let is_definition = before.trim_end().ends_with("fn");
    let is_qualified = before.len() < offset;
    let is_of_mpsc = if is_qualified { owner == "mpsc" } else { imports_channel(source) };
    empty && is_of_mpsc && !is_definition
}

fn imports_channel(source: &Source) -> bool {
    let wanted = ["mpsc", "channel"];
    source
        .paths()
        .any(|path| path.segments.len() > 2 && path.segments.ends_with(&wanted.map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::super::{found, places};
    use super::*;

    fn count(text: &str) -> usize {
        places(&RULE, &[("crates/proxy/src/a.rs", text)]).len()
    }

    #[test]
    fn unbounded_channels_are_found() {
        for text in [
            "fn f() { let (a, b) = mpsc::unbounded_channel(); }",
            "fn f() { let (a, b) = unbounded_channel::<Vec<u8>>(); }",
            "fn f() { let (a, b) = std::sync::mpsc::channel(); }",
            "fn f() { let (a, b) = mpsc::channel::<Vec<Vec<u8>>>(); }",
            "use std::sync::mpsc::channel;\nfn f() { let (a, b) = channel(); }",
            "// bound:\nfn f() { let (a, b) = mpsc::channel(); }",
        ] {
            assert_eq!(count(text), 1, "{text}");
        }
    }

    #[test]
    fn bounded_and_explained_ones_pass() {
        for text in [
            "fn f() { let (a, b) = mpsc::channel(QUEUE); }",
            "fn f() { let (a, b) = oneshot::channel(); }",
            "fn f() { let (a, b) = mpsc::sync_channel(8); }",
            "// bound: one command a caller, who waits for the answer\nlet c = mpsc::channel();",
            "#[cfg(test)]\nmod tests { fn f() { let c = mpsc::channel(); } }",
            "fn channel() {}",
            "use tokio::sync::oneshot::channel;\nfn f() { let (a, b) = channel(); }",
            "fn f() { let (a, b) = actor::channel(); }",
        ] {
            assert_eq!(count(text), 0, "{text}");
        }
    }

    #[test]
    fn a_bound_with_another_name_is_found_with_the_one_it_should_have() {
        for (name, wanted) in [
            ("MOST_PEERS", "MAX_PEERS"),
            ("LEAST_S", "MIN_S"),
            ("EVENTS_MAX", "MAX_EVENTS"),
            ("LINE_BYTES_MIN", "MIN_LINE_BYTES"),
            ("VALUES_MOST", "MAX_VALUES"),
            ("DELAY_P99_MAX_US", "MAX_DELAY_P99_US"),
        ] {
            for text in [
                format!("pub(crate) const {name}: usize = 5;"),
                format!("impl A {{ const {name}: usize = 5; }}"),
                format!("static {name}: usize = 5;"),
                format!("#[cfg(test)]\nmod tests {{ const {name}: usize = 5; }}"),
            ] {
                let found = found(&RULE, &[("crates/proxy/src/a.rs", &text)]);
                assert_eq!(found.len(), 1, "{text}");
                assert!(found[0].1.ends_with(&format!("call it `{wanted}`")), "{}", found[0].1);
            }
        }
    }

    #[test]
    fn well_named_bounds_and_other_names_pass() {
        for text in [
            "const MAX_PEERS: usize = 5;",
            "const MIN_OF_MAX: usize = 5;",
            "const MAX: usize = 5;",
            "const MAXIMA: usize = 5;",
            "const UTMOST_CARE: bool = true;",
            "const fn most() {}",
            "let x: *const MOST_PEERS = 0;",
            "// const MOST_PEERS: usize = 5;",
            "let limit: u8 = EVENTS_MAX;",
        ] {
            assert_eq!(count(text), 0, "{text}");
        }
    }
}
