//! CBOR of JSON and XML that the project did not make.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Tests.

#[path = "infoset/mod.rs"]
mod infoset;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use infoset::{Rules, difference};
use longwire_codec::{Limits, cbor, xml};

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// Files of these kinds up to 2 MB, by name.
fn files(kinds: &[&str]) -> Vec<PathBuf> {
    let folder = std::env::var_os("LONGWIRE_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let mut found = Vec::new();
    collect(&folder, &mut found);
    found.retain(|path| {
        let kind = path.extension().and_then(|end| end.to_str()).unwrap_or("");
        kinds.contains(&kind) && fs::metadata(path).is_ok_and(|data| data.len() <= 2_000_000)
    });
    found.sort();
    found
}

#[test]
fn json_of_others_comes_back() {
    let (mut json_bytes, mut cbor_bytes, mut count) = (0, 0, 0);
    for path in files(&["json", "geojson"]) {
        let json = fs::read(&path).unwrap();
        let limits = Limits::default();
        let Ok(value) = serde_json::from_slice::<serde_json::Value>(&json) else { continue };
        let coded = cbor::from_json(&json, &cbor::Settings::default(), &limits).unwrap();
        let back = cbor::to_json(&coded, &limits).unwrap();
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&back).unwrap(), value, "{path:?}");
        // What came back has no white space; it is all there is to lose.
        let again = cbor::from_json(&back, &cbor::Settings::default(), &limits).unwrap();
        assert_eq!(again, coded, "{path:?}");
        (json_bytes, cbor_bytes, count) =
            (json_bytes + back.len(), cbor_bytes + coded.len(), count + 1);
    }
    println!("{count} JSON texts, {json_bytes} bytes without white space, {cbor_bytes} of CBOR");
}

#[test]
fn xml_of_others_comes_back() {
    let (mut xml_bytes, mut cbor_bytes, mut count, mut refused) = (0, 0, 0, 0);
    let (mut encoding, mut decoding) = (Duration::ZERO, Duration::ZERO);
    for path in files(&["xml", "cot", "wsdl", "xsd"]) {
        let document = fs::read(&path).unwrap();
        let limits = Limits::default();
        let begin = Instant::now();
        let coded = cbor::from_xml(&document, &cbor::Settings::default(), &limits);
        let encoded = begin.elapsed();
        let coded = match coded {
            Ok(coded) => coded,
            Err(error) => {
                // What is no XML to us is none to the other reader, either.
                let other = String::from_utf8(document.clone()).ok();
                let other = other.and_then(|text| difference(&text, &text, &Rules::EXACT));
                println!("{}: {error}", path.display());
                // It does not compare the declared character set with the bytes.
                let lies = error.to_string().contains("charset");
                let binary = String::from_utf8(document).is_err();
                assert!(lies || other.is_some() || binary, "{path:?}");
                refused += 1;
                continue;
            }
        };
        encoding += encoded;
        let begin = Instant::now();
        let back = cbor::to_xml(&coded, &limits).unwrap();
        decoding += begin.elapsed();
        let back = String::from_utf8(back).unwrap();
        // XML 1.0 §2.11, which the other reader does in its own way.
        let text =
            xml::to_utf8(&document, &limits).unwrap().replace("\r\n", "\n").replace('\r', "\n");
        let again = cbor::from_xml(back.as_bytes(), &cbor::Settings::default(), &limits);
        assert_eq!(again.unwrap(), coded, "{path:?}");
        if difference(&text, &text, &Rules::EXACT).is_some() {
            println!("{}: the other reader knows no external entities", path.display());
            continue;
        }
        let differs = difference(&text, &back, &Rules::EXACT);
        assert!(differs.is_none(), "{path:?}: {differs:?}");
        (xml_bytes, cbor_bytes, count) =
            (xml_bytes + document.len(), cbor_bytes + coded.len(), count + 1);
    }
    println!(
        "{count} documents, {xml_bytes} bytes of XML, {cbor_bytes} of CBOR; {refused} refused"
    );
}
