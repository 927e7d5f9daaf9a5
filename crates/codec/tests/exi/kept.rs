//! An encoder that codes one message after the other makes the streams of new ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use longwire_codec::Limits;
use longwire_codec::exi::{Alignment, DocumentEncoder, Options, Preserve};

use crate::data::{self, Schemas};

/// Longer documents show no more.
const LONGEST_BYTES: usize = 200_000;

#[test]
fn messages_in_any_order_make_the_same_streams() {
    let Some(root) = data::root() else {
        return println!("left out: no data");
    };
    let mut by_schema: BTreeMap<PathBuf, Vec<Vec<u8>>> = BTreeMap::new();
    for (path, schema) in data::messages(&root) {
        let bytes = fs::read(&path).unwrap();
        if bytes.len() <= LONGEST_BYTES {
            by_schema.entry(schema).or_default().push(bytes);
        }
    }
    let mut schemas = Schemas::default();
    let mut same = 0;
    for (schema, messages) in by_schema {
        let prefixes = Preserve { prefixes: true, ..Preserve::default() };
        for (with_schema, options) in [
            (false, Options::default()),
            (false, Options { preserve: prefixes, ..Options::default() }),
            (true, Options { strict: true, ..Options::default() }),
            (true, Options { alignment: Alignment::PreCompression, ..Options::default() }),
        ] {
            let schema = with_schema.then_some(schema.as_path());
            let grammars = schemas.grammars(schema, &options).unwrap();
            let mut encoder = DocumentEncoder::new(&options, grammars.clone(), &Limits::default());
            let mut cut = Vec::new();
            // 61 has no divisor in common with most counts: a walk through all of them.
            for step in 0..messages.len() {
                let xml = &messages[step * 61 % messages.len()];
                if step % 5 == 4 {
                    cut.clear();
                    cut.extend_from_slice(&xml[..xml.len() * (step % 7) / 7]);
                    encoder.encode(&cut).unwrap_err();
                }
                let alone = data::encode(xml, &options, grammars.as_ref());
                let kept = encoder.encode(xml).map_err(|error| error.to_string());
                assert!(kept == alone, "{options:?}, step {step}");
                same += usize::from(alone.is_ok());
            }
        }
    }
    println!("{same} streams are the same");
    assert!(same > 0);
}
