//! Schemas of other people: each compiles, and what it takes.

#![allow(clippy::expect_used, clippy::print_stdout)] // Helpers of tests fail as tests do.

mod peer;

use std::path::{Path, PathBuf};
use std::time::Instant;

use longwire_codec::exi::schema::Document;
use longwire_codec::exi::{Grammars, Options, Schema};
use longwire_codec::{Error, Limits};

fn data() -> Option<PathBuf> {
    let named = std::env::var_os("LONGWIRE_DATA").map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    Some(named.unwrap_or(root)).filter(|path| path.is_dir())
}

fn schemas(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            schemas(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "xsd") {
            found.push(entry);
        }
    }
}

fn parse(path: &Path) -> Result<Schema, Error> {
    let bytes = std::fs::read(path).expect("a schema");
    let location = path.to_str().expect("a path in UTF-8");
    let document = Document { location, bytes: &bytes };
    let mut resolve = |at: &str, _: Option<&str>| std::fs::read(at).ok();
    Schema::parse(&[document], &mut resolve, &Limits::default())
}

/// Every schema compiles in each mode and comes back from the cache, or is refused for what is not
/// there.
#[test]
fn schemas_of_others_compile() {
    let Some(data) = data() else {
        println!("no data: all schemas left out");
        return;
    };
    let mut found = Vec::new();
    schemas(&data, &mut found);
    let limits = Limits::default();
    let (mut compiled, mut refused) = (0, 0);
    for path in &found {
        let shown = path.strip_prefix(&data).unwrap_or(path).display();
        let begin = Instant::now();
        let schema = match parse(path) {
            Ok(schema) => schema,
            Err(error) => {
                println!("{shown}: {error}");
                refused += 1;
                continue;
            }
        };
        let parsed = begin.elapsed();
        let mut rules = Vec::new();
        for (strict, fragment) in [(false, false), (true, false), (true, true), (false, true)] {
            let options = Options { strict, fragment, ..Options::default() };
            let made = schema.grammars(&options, &limits).expect("grammars");
            rules.push(made.rules.len());
            let bytes = made.to_bytes();
            assert_eq!(Grammars::from_bytes(&bytes, &limits).expect("the cache"), made);
        }
        compiled += 1;
        println!("{shown}: parsed in {parsed:?}, {rules:?} rules, all in {:?}", begin.elapsed());
    }
    println!("{} schemas, {compiled} compiled, {refused} refused", found.len());
    // Those that are refused are parts that do not stand alone.
    assert!(refused * 10 <= found.len(), "{refused} of {} refused", found.len());
}
