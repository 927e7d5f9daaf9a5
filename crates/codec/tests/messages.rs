//! Messages of other people whose infoset is enough, as the pair sends them: what comes back says
//! the same, by a reader that is not ours.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod infoset;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use infoset::{Rules, difference};
use longwire_codec::exi::schema;
use longwire_codec::infoset::{SchemaContext, made};
use longwire_codec::{Limits, Options};
use roxmltree::{Document, ParsingOptions};

/// A block.
const MAX_BYTES: u64 = 64 * 1024;

/// Why a message need not go as an infoset: what is no XML in UTF-8, and what no reader of the form
/// could have again.
fn excuse(options: Options, message: &[u8]) -> Option<&'static str> {
    let Ok(text) = std::str::from_utf8(message) else { return Some("not in UTF-8") };
    let declaration = text.split_once("?>").map_or("", |(declaration, _)| declaration);
    let charset = declaration.split_once("encoding=").map(|(_, rest)| rest.to_lowercase());
    if charset.is_some_and(|charset| !charset.trim_start_matches(['"', '\'']).starts_with("utf-8"))
    {
        return Some("another character set is declared");
    }
    let options_of_reader = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let Ok(document) = Document::parse_with_options(text, options_of_reader) else {
        return Some("not well-formed");
    };
    if text.contains("<!DOCTYPE") {
        return Some("a document type");
    }
    // WAP-192 §6.1 has them removed.
    let comments =
        options == Options::WBXML && document.descendants().any(|node| node.is_comment());
    comments.then_some("comments")
}

fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let known = path.extension().is_some_and(|end| endings.iter().any(|of| end == *of));
        match entry.metadata() {
            Ok(meta) if meta.is_dir() => files(&path, endings, found),
            Ok(meta) if known && meta.len() <= MAX_BYTES => found.push(path),
            _ => {}
        }
    }
}

fn data() -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    std::env::var_os("LONGWIRE_DATA").map_or(default, PathBuf::from)
}

#[test]
fn other_peoples_schemas_go_to_the_other_side_in_a_parcel() {
    let mut all = Vec::new();
    files(&data(), &["xsd"], &mut all);
    if all.is_empty() {
        println!("left out: no schemas under {}", data().display());
        return;
    }
    let (mut came, mut long) = (0, 0);
    for path in &all {
        let Ok(bytes) = std::fs::read(path) else { continue };
        let location = path.to_string_lossy();
        let document = schema::Document { location: &location, bytes: &bytes };
        let mut resolve = |at: &str, _: Option<&str>| std::fs::read(at).ok();
        let read = SchemaContext::of_schema(&[document], &mut resolve, &Limits::default());
        // What is no schema of its own is told of elsewhere.
        let Ok(ours) = read else { continue };
        let Some(parcel) = ours.parcel() else {
            long += 1;
            continue;
        };
        let theirs = SchemaContext::of_parcel(ours.name().unwrap(), parcel.to_vec());
        theirs.prepare().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        came += 1;
    }
    println!("{came} schemas came, {long} are too long for a parcel");
    assert!(came > 9 * long, "{came}, {long}");
}

#[test]
fn what_comes_back_of_other_peoples_messages_says_the_same() {
    let root = data();
    let mut all = Vec::new();
    for folder in ["soap", "json_rest", "friendly_force"] {
        files(&root.join(folder), &["xml", "json"], &mut all);
    }
    if all.is_empty() {
        println!("left out: no messages under {}", root.display());
        return;
    }
    let schema_context = Arc::new(SchemaContext::without_schema());
    for options in [Options::EXI, Options::WBXML, Options::CBOR] {
        let (mut came, mut plain, mut coded) = (0, 0, 0);
        let mut excused = BTreeMap::new();
        for path in &all {
            let is_json = path.extension().is_some_and(|end| end == "json");
            if is_json != (options == Options::CBOR) {
                continue;
            }
            let message = std::fs::read(path).unwrap();
            let mut out = Vec::new();
            if let Err(error) = schema_context.encoder(options).encode(&message, true, &mut out) {
                let excuse = excuse(options, &message);
                let why = excuse.unwrap_or_else(|| panic!("{}: {error}", path.display()));
                *excused.entry(why).or_insert(0) += 1;
                continue;
            }
            let made = made(&out).unwrap();
            let mut text = Vec::new();
            let mut decoder = schema_context.decoder(options);
            decoder.decode(made.coded, made.text.len(), true, &mut text).unwrap();
            if is_json {
                let value =
                    |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).unwrap();
                assert_eq!(value(&message), value(&text), "{}", path.display());
            } else {
                let [before, after] =
                    [&message, &text].map(|text| std::str::from_utf8(text).unwrap());
                let found = difference(before, after, &Rules::EXACT);
                assert!(found.is_none(), "{}: {}", path.display(), found.unwrap());
            }
            (came, plain, coded) = (came + 1, plain + message.len(), coded + made.coded.len());
        }
        println!("{}: {came} back, {plain} to {coded} bytes; not {excused:?}", options.label());
        assert!(came > 0, "{}", options.label());
    }
}
