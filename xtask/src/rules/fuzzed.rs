//! Every decoder and every machine of a pure crate has a fuzz target.

use super::Rule;
use crate::finding::Report;
use crate::house::House;
use crate::manifest::Manifest;
use crate::source::Source;

pub(super) const RULE: Rule = Rule {
    name: "fuzzed",
    demand: "every module with a decoder or a machine has a target in fuzz/Cargo.toml",
    check,
};

const TARGETS: &str = "fuzz/Cargo.toml";
/// Crates that one target goes through as a whole: a table of codecs, a machine in many files.
const RUN_AS_ONE: [&str; 3] = ["codec", "coding", "relay"];

fn check(house: &House, report: &mut Report) {
    let targets = targets(house, report);
    let mut reported: Vec<String> = Vec::new();
    for source in house.pure_sources().filter(|source| !source.is_test_file) {
        let Some(owner) = house.crate_of(&source.path) else { continue };
        let Some(module) = module(&source.path, &owner.folder) else { continue };
        let Some((line, wanted)) = demand(source, &owner.name, module) else { continue };
        let is_known = targets.iter().any(|target| target.starts_with(&wanted));
        if !is_known && !reported.contains(&wanted) {
            let what = format!("no target `{wanted}` in {TARGETS} runs this on any input; add it");
            report.add(&source.path, line, what);
            reported.push(wanted);
        }
    }
}

/// The names of the targets; each must have its file.
fn targets(house: &House, report: &mut Report) -> Vec<String> {
    let Some(file) = house.file(TARGETS) else { return Vec::new() };
    let Ok(manifest) = Manifest::parse(TARGETS, &file.text) else { return Vec::new() };
    let bins = manifest.table.get("bin").and_then(toml::Value::as_array);
    let mut names = Vec::new();
    for bin in bins.into_iter().flatten() {
        let text = |key: &str| bin.get(key).and_then(toml::Value::as_str).unwrap_or_default();
        let path = format!("fuzz/{}", text("path"));
        if !house.has(&path) || text("path").is_empty() {
            report.add(TARGETS, 1, format!("target `{}`: {path} does not exist", text("name")));
        }
        names.push(text("name").to_owned());
    }
    names
}

/// The top module of a file: the folder below `src/`, else the file's stem.
fn module<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let inside = path.strip_prefix(folder)?.strip_prefix("/src/")?;
    inside.split('/').next().map(|module| module.trim_end_matches(".rs"))
}

/// The line that calls for a target, and the name it begins with.
fn demand(source: &Source, crate_name: &str, module: &str) -> Option<(usize, String)> {
    let wanted = match module {
        _ if RUN_AS_ONE.contains(&crate_name) => crate_name.to_owned(),
        "lib" => crate_name.to_owned(),
        _ => format!("{crate_name}_{module}"),
    };
    let functions = source.functions();
    let mut own = functions.iter().filter(|f| !source.is_test(f.offset));
    let called_for = own.find(|f| {
        f.name == "decode" || f.name.starts_with("decode_") || f.name == "handle_input"
    })?;
    Some((source.line(called_for.offset), wanted))
}

#[cfg(test)]
mod tests {
    use super::super::{MAP_TEXT, places};
    use super::*;

    const PACKET: &str = "impl Head {\n    pub fn decode(bytes: &[u8]) -> Result<Self, E> {}\n}";

    fn places_of(fuzz: &str, text: &str) -> Vec<String> {
        let files = [
            ("ARCHITECTURE.md", MAP_TEXT),
            ("crates/proto/Cargo.toml", ""),
            ("crates/proto/src/stream/packet.rs", text),
            ("fuzz/Cargo.toml", fuzz),
            ("fuzz/targets/a.rs", ""),
        ];
        places(&RULE, &files)
    }

    #[test]
    fn a_decoder_without_a_target_is_found() {
        assert_eq!(places_of("", PACKET), ["crates/proto/src/stream/packet.rs:2"]);
        let other = "[[bin]]\nname = \"proto_burst\"\npath = \"targets/a.rs\"\n";
        assert_eq!(places_of(other, PACKET), ["crates/proto/src/stream/packet.rs:2"]);
    }

    #[test]
    fn a_machine_and_a_table_of_codecs_call_for_one_too() {
        let map = format!("{MAP_TEXT}| `codec` | codecs | none | pure |\n");
        let files = [
            ("ARCHITECTURE.md", map.as_str()),
            ("crates/codec/Cargo.toml", ""),
            ("crates/codec/src/zstd.rs", "\nfn decode() {}"),
            ("crates/codec/src/deflate.rs", "fn decode() {}"),
            ("crates/proto/Cargo.toml", ""),
            ("crates/proto/src/coap/machine.rs", "pub fn handle_input() {}"),
        ];
        let expected = ["crates/codec/src/deflate.rs:1", "crates/proto/src/coap/machine.rs:1"];
        assert_eq!(places(&RULE, &files), expected);
    }

    #[test]
    fn a_decoder_with_a_target_passes() {
        let target = "[[bin]]\nname = \"proto_stream\"\npath = \"targets/a.rs\"\n";
        assert_eq!(places_of(target, PACKET), [""; 0]);
        assert_eq!(places_of("", "fn encode() {}\n#[test]\nfn decode() {}"), [""; 0]);
    }

    #[test]
    fn a_target_without_its_file_is_found() {
        let target = "[[bin]]\nname = \"proto_stream\"\npath = \"targets/b.rs\"\n";
        assert_eq!(places_of(target, PACKET), ["fuzz/Cargo.toml:1"]);
    }
}
