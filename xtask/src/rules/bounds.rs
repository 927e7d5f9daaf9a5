//! Every queue has a named bound: a channel without one says in a comment what bounds it.

use super::Rule;
use crate::finding::Report;
use crate::house::House;
use crate::source::{Source, is_word};

pub(super) const RULE: Rule = Rule {
    name: "bounds",
    demand: "no unbounded channel without a comment `// bound:` that says what bounds it",
    check,
};

const UNBOUNDED: [&str; 2] = ["unbounded_channel", "unbounded"];

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
    }
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
    use super::super::places;
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
}
