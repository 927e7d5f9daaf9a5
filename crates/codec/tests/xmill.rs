//! The compressor for XML over real documents: every byte back at every kind of level.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Tests.

use std::path::{Path, PathBuf};

use longwire_codec::{Limits, xmill};

/// Documents longer than this are left to the benchmark.
const LONGEST_BYTES: u64 = 400_000;

fn data() -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    std::env::var_os("LONGWIRE_DATA").map_or(default, PathBuf::from)
}

/// Files that look like XML, below a folder.
fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            documents(&path, found);
        } else if path.extension().is_some_and(|extension| {
            ["xml", "xsd", "wsdl", "cot", "gml", "xsl"].iter().any(|wanted| extension == *wanted)
        }) && path.metadata().is_ok_and(|data| data.len() <= LONGEST_BYTES)
        {
            found.push(path);
        }
    }
}

#[test]
fn real_documents_come_back() {
    let mut found = Vec::new();
    documents(&data(), &mut found);
    found.sort();
    if found.is_empty() {
        println!("skipped: all documents, since there is no data");
        return;
    }
    let limits = Limits::default();
    let (mut bytes, mut coded) = (0, [0; 3]);
    for path in &found {
        let document = std::fs::read(path).unwrap();
        bytes += document.len();
        for (level, sum) in [1, 5, 9].into_iter().zip(&mut coded) {
            let code = xmill::encode(&document, Some(level), &limits).unwrap();
            assert!(code.len() <= document.len() + xmill::GROWTH_BYTES, "{}", path.display());
            assert!(xmill::decode(&code, &limits).unwrap() == document, "{}", path.display());
            *sum += code.len();
        }
    }
    println!("{} documents, {bytes} bytes; levels 1, 5 and 9: {coded:?}", found.len());
}
