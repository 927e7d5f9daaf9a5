//! A bare number that is a time or a rate carries its unit last in its name.

use super::Rule;
use crate::finding::Report;
use crate::house::House;
use crate::source::{Source, is_word};

pub(super) const RULE: Rule = Rule {
    name: "units",
    demand: "numbers named for a time or a rate end in their unit: `ack_timeout_ms`, `rate_bps`",
    check,
};

const NUMBERS: [&str; 14] = [
    "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32",
    "f64",
];
const TIMES: [&str; 13] = [
    "timeout", "delay", "interval", "deadline", "elapsed", "latency", "duration", "rtt", "jitter",
    "lateness", "period", "patience", "age",
];
const RATES: [&str; 3] = ["rate", "bandwidth", "bitrate"];

fn check(house: &House, report: &mut Report) {
    for source in &house.sources {
        check_source(source, report);
    }
}

fn check_source(source: &Source, report: &mut Report) {
    for (offset, _) in source.code.match_indices(':') {
        let before = source.code[..offset].trim_end();
        let after = &source.code[offset + 1..];
        if before.ends_with(':') || after.starts_with(':') {
            continue; // a path
        }
        let name = before.rsplit(|c| !is_word(c)).next().unwrap_or_default();
        let last = name.rsplit('_').next().unwrap_or_default().to_ascii_lowercase();
        let Some(number) = number_type(after) else { continue };
        let remedy = if TIMES.contains(&last.as_str()) {
            "use a Duration, or end it in _s, _ms, _us or _ns"
        } else if RATES.contains(&last.as_str()) && !number.starts_with('f') {
            "end it in _bps for bit/s, _pps for packets a second"
        } else {
            continue;
        };
        let what = format!("`{name}: {number}` has no unit; {remedy}");
        report.add(&source.path, source.line(offset), what);
    }
}

/// The number type that a type annotation begins with, also inside `Option`.
fn number_type(after: &str) -> Option<&str> {
    let mut text = after.trim_start();
    for wrapper in ["&", "mut ", "Option<"] {
        text = text.strip_prefix(wrapper).unwrap_or(text);
    }
    let word = &text[..text.find(|c| !is_word(c)).unwrap_or(text.len())];
    NUMBERS.contains(&word).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    #[test]
    fn numbers_without_a_unit_are_found() {
        for text in [
            "struct A { pub ack_timeout: u64 }",
            "const MAX_DELAY: u32 = 5;",
            "fn f(interval: Option<f64>) {}",
            "fn f(rtt: &u64) {}",
            "struct A { rate: u64 }",
        ] {
            assert_eq!(places(&RULE, &[("a.rs", text)]), ["a.rs:1"], "{text}");
        }
    }

    #[test]
    fn units_durations_and_shares_pass() {
        for text in [
            "struct A { ack_timeout_ms: u64, delay: Duration, loss_rate: f64, rate_bps: u64 }",
            "// delay: u64",
            "let x = delay::u64();",
            "match x { Key::Delay => 1, delay: f }",
        ] {
            assert_eq!(places(&RULE, &[("a.rs", text)]), [""; 0], "{text}");
        }
    }
}
