//! Pure crates take bytes and time as arguments. Their tests may touch what they need.

use super::Rule;
use crate::finding::Report;
use crate::house::House;
use crate::paths::Path;
use crate::source::Source;

pub(super) const RULE: Rule = Rule {
    name: "purity",
    demand: "no sockets, files, clocks, threads, environment or ambient randomness in pure crates",
    check,
};

/// What pure code may not name, and what it does instead.
const FORBIDDEN: &[(&str, &str)] = &[
    ("std::fs", "take bytes as an argument"),
    ("std::env", "take the value as an argument"),
    ("std::os", "move it to a shell"),
    ("std::process", "return an error or an output"),
    ("std::thread", "emit work as an output"),
    ("std::io::stdin", "take bytes as an argument"),
    ("std::io::stdout", "return bytes"),
    ("std::io::stderr", "return an error or an event"),
    ("std::time::Instant", "take `now: Duration` as an argument"),
    ("std::time::SystemTime", "take `now: Duration` as an argument"),
    ("std::time::UNIX_EPOCH", "take `now: Duration` as an argument"),
    ("std::hash::RandomState", "take a seed as an argument"),
    ("tokio", "move it to a shell"),
    ("libc", "move it to a shell"),
    ("nix", "move it to a shell"),
    ("rand", "take a seed as an argument"),
    ("getrandom", "take a seed or a nonce as an argument"),
];

/// The parts of `std::net` that are only values.
const NET_VALUES: [&str; 8] = [
    "IpAddr",
    "Ipv4Addr",
    "Ipv6Addr",
    "SocketAddr",
    "SocketAddrV4",
    "SocketAddrV6",
    "AddrParseError",
    "Ipv6MulticastScope",
];

const PRINTS: [&str; 4] = ["println", "eprintln", "print", "eprint"];

fn check(house: &House, report: &mut Report) {
    for source in house.pure_sources() {
        for path in source.paths() {
            if let Some(what) = objection(source, &path) {
                report.add(&source.path, source.line(path.offset), what);
            }
        }
        check_words(source, report);
    }
}

fn objection(source: &Source, path: &Path) -> Option<String> {
    let forbidden = FORBIDDEN.iter().find(|(prefix, _)| path.is_within(prefix));
    if let Some((prefix, remedy)) = forbidden {
        return Some(format!("`{prefix}` in a pure crate; {remedy}"));
    }
    if path.is_within("std::net") {
        let value = path.segments.get(2).is_some_and(|part| NET_VALUES.contains(&part.as_str()));
        return (!value).then(|| "sockets in a pure crate; move it to a shell".to_owned());
    }
    // The standard hasher is seeded by the system: iteration would differ from run to run.
    let hashed = ["HashMap", "HashSet", "hash_map", "hash_set"];
    let is_hashed = hashed.iter().any(|name| path.is_within(&format!("std::collections::{name}")));
    if is_hashed && !source.has_note(source.line(path.offset), "order:") {
        let what = "the order of a hash map is ambient randomness; use a BTreeMap, or say in a \
            comment `// order:` why it never shows";
        return Some(what.to_owned());
    }
    None
}

fn check_words(source: &Source, report: &mut Report) {
    let outside_tests = |offset: &usize| !source.is_test(*offset);
    for print in PRINTS {
        for offset in source.words(print).filter(outside_tests) {
            if source.code[offset + print.len()..].starts_with('!') {
                let what = format!("`{print}!` in a pure crate; return the text or an event");
                report.add(&source.path, source.line(offset), what);
            }
        }
    }
    for offset in source.words("extern").filter(outside_tests) {
        if source.code[offset + "extern".len()..].trim_start().starts_with('"') {
            let what = "a foreign function in a pure crate; move it to a shell";
            report.add(&source.path, source.line(offset), what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MAP_TEXT, found, places};
    use super::*;

    fn places_of(path: &str, text: &str) -> Vec<String> {
        let files = [
            ("ARCHITECTURE.md", MAP_TEXT),
            ("crates/proto/Cargo.toml", ""),
            ("crates/proxy/Cargo.toml", ""),
            (path, text),
        ];
        places(&RULE, &files)
    }

    #[test]
    fn the_outside_world_is_refused_in_every_spelling() {
        for text in [
            "use std::net::TcpStream;",
            "use std::net;",
            "use std::{fmt, net::{self, IpAddr}};",
            "use std::fs::File;",
            "use std::*;",
            "use std::time::{Duration, Instant};",
            "use core::net::TcpStream;",
            "fn f() { let _ = ::std::env::var(\"X\"); }",
            "fn f() { std::thread::sleep(d); }",
            "fn f() { tokio::spawn(x); }",
            "fn f() { rand::random() }",
            "fn f() { println!(\"x\"); }",
            "extern \"C\" { fn socket(); }",
            "use std::collections::HashMap;",
        ] {
            assert_eq!(places_of("crates/proto/src/a.rs", text).len(), 1, "{text}");
            assert_eq!(places_of("crates/proxy/src/a.rs", text).len(), 0, "{text}");
        }
    }

    #[test]
    fn values_words_and_tests_pass() {
        for text in [
            "use std::net::{IpAddr, SocketAddr};\nuse std::time::Duration;\nuse std::io::Read;",
            "// std::fs and Instant::now in a comment\nconst A: &str = \"std::fs::File\";",
            "#[cfg(test)]\nmod tests {\n    use std::fs::File;\n}",
            "// order: looked up by key alone, never walked\nuse std::collections::HashMap;",
        ] {
            assert_eq!(places_of("crates/proto/src/a.rs", text), [""; 0], "{text}");
        }
        let text = "use std::fs::File;";
        assert_eq!(places_of("crates/proto/tests/a.rs", text), [""; 0]);
    }

    #[test]
    fn the_place_and_the_remedy_are_named() {
        let files = [
            ("ARCHITECTURE.md", MAP_TEXT),
            ("crates/proto/Cargo.toml", ""),
            ("crates/proto/src/a.rs", "\n\nuse std::time::Instant;"),
        ];
        let (place, what) = found(&RULE, &files).remove(0);
        assert_eq!(place, "crates/proto/src/a.rs:3");
        assert!(what.ends_with("take `now: Duration` as an argument"), "{what}");
    }
}
