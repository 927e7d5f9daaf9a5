//! One verb pair for every machine, and one word for one meaning.

use super::Rule;
use crate::finding::Report;
use crate::house::House;
use crate::source::{Function, Source};

pub(super) const RULE: Rule = Rule {
    name: "verbs",
    demand: "machines have handle_input(now: Duration, ..) and poll_output(); encode/decode",
    check,
};

/// Public names that say in another word what has a word already.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("compress", "encode"),
    ("serialize", "encode"),
    ("marshal", "encode"),
    ("to_wire", "encode"),
    ("decompress", "decode"),
    ("deserialize", "decode"),
    ("unmarshal", "decode"),
    ("from_wire", "decode"),
    ("handle_event", "handle_input"),
    ("handle_timeout", "handle_input"),
    ("handle_datagram", "handle_input"),
    ("tick", "handle_input"),
    ("poll_event", "poll_output"),
    ("poll_timeout", "poll_output"),
    ("poll_transmit", "poll_output"),
    ("decide", "choose"),
    ("select", "choose"),
    ("learn", "observe"),
];

fn check(house: &House, report: &mut Report) {
    for source in house.pure_sources().filter(|source| !source.is_test_file) {
        let functions = source.functions();
        let own: Vec<_> = functions.iter().filter(|f| !source.is_test(f.offset)).collect();
        let is_proto = house.crate_of(&source.path).is_some_and(|owner| owner.name == "proto");
        check_pair(source, is_proto && source.path.ends_with("/machine.rs"), &own, report);
        for function in own.iter().filter(|function| function.is_public) {
            let other = OTHER_WORDS.iter().find(|(name, _)| *name == function.name);
            if let Some((name, word)) = other {
                let what = format!("`{name}` means what `{word}` means; say `{word}`");
                report.add(&source.path, source.line(function.offset), what);
            }
        }
    }
}

fn check_pair(source: &Source, is_machine: bool, functions: &[&Function<'_>], report: &mut Report) {
    let named = |name: &'static str| functions.iter().filter(move |f| f.name == name).copied();
    let (inputs, outputs) = (named("handle_input").count(), named("poll_output").count());
    if inputs != outputs || (is_machine && inputs == 0) {
        let what = format!(
            "{inputs} `handle_input` and {outputs} `poll_output`; have the pair in one file"
        );
        report.add(&source.path, 1, what);
    }
    for function in named("handle_input").filter(|f| !takes_time(f.signature)) {
        let what = "`handle_input` takes `now: Duration` first, after `self`; pass the time";
        report.add(&source.path, source.line(function.offset), what);
    }
    for function in named("poll_output") {
        let returned = function.signature.rsplit("->").next().unwrap_or_default();
        if !returned.contains("Output") {
            let what = "`poll_output` returns an `Output`, with a variant for nothing left";
            report.add(&source.path, source.line(function.offset), what);
        }
    }
}

/// A machine that needs no clock takes the time all the same, as `_now`.
fn takes_time(signature: &str) -> bool {
    let parameters: String = signature.split_whitespace().collect();
    let parameters = parameters.replace("std::time::", "").replace("_now:", "now:");
    parameters.contains("(&mutself,now:Duration,")
}

#[cfg(test)]
mod tests {
    use super::super::{MAP_TEXT, places};
    use super::*;

    const MACHINE: &str = "impl Machine {
    pub fn handle_input(&mut self, now: Duration, input: Input) {}
    pub fn poll_output(&mut self) -> Output {}
    pub fn encode(&self) {}
}";

    fn places_of(path: &str, text: &str) -> Vec<String> {
        let files = [
            ("ARCHITECTURE.md", MAP_TEXT),
            ("crates/proto/Cargo.toml", ""),
            ("crates/record/Cargo.toml", ""),
            (path, text),
        ];
        places(&RULE, &files)
    }

    #[test]
    fn a_machine_with_the_pair_passes() {
        assert_eq!(places_of("crates/proto/src/stream/machine.rs", MACHINE), [""; 0]);
        assert_eq!(places_of("crates/proto/src/stream/packet.rs", "fn f() {}"), [""; 0]);
        // What is known of a computer is a machine too, but none of ours.
        assert_eq!(places_of("crates/record/src/machine.rs", "struct Machine;"), [""; 0]);
    }

    #[test]
    fn half_a_pair_or_none_is_found() {
        let path = "crates/proto/src/stream/machine.rs";
        assert_eq!(places_of(path, "pub fn run() {}"), [format!("{path}:1")]);
        let half = MACHINE.replace("poll_output", "drain");
        assert_eq!(places_of(path, &half), [format!("{path}:1")]);
    }

    #[test]
    fn a_pair_of_another_shape_is_found() {
        let path = "crates/proto/src/lib.rs";
        let timeless = MACHINE.replace("now: Duration, ", "");
        assert_eq!(places_of(path, &timeless), [format!("{path}:2")]);
        let bare = MACHINE.replace("-> Output ", "-> bool ");
        assert_eq!(places_of(path, &bare), [format!("{path}:3")]);
    }

    #[test]
    fn another_word_is_found() {
        let path = "crates/proto/src/lib.rs";
        let other = MACHINE.replace("encode", "serialize");
        assert_eq!(places_of(path, &other), [format!("{path}:4")]);
        assert_eq!(places_of("crates/proto/tests/a.rs", &other), [""; 0]);
    }
}
