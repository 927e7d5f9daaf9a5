//! Any bytes as an XML Schema, and as grammars that were kept: what compiles is kept the same.
#![no_main]

use codec::Limits;
use codec::exi::schema::Document;
use codec::exi::{Grammars, Options, Schema};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits =
    Limits { output_bytes: 1 << 20, depth: 64, table_bytes: 1 << 20, message_bytes: 1 << 20 };

fuzz_target!(|data: &[u8]| {
    let [choice, bytes @ ..] = data else { return };
    if let Ok(grammars) = Grammars::from_bytes(bytes, &LIMITS) {
        assert_eq!(grammars.to_bytes(), bytes);
    }
    let documents = [Document { location: "main.xsd", bytes }];
    let Ok(schema) = Schema::parse(&documents, &mut |_, _| None, &LIMITS) else { return };
    let options =
        Options { strict: choice & 1 != 0, fragment: choice & 2 != 0, ..Options::default() };
    let Ok(grammars) = schema.grammars(&options, &LIMITS) else { return };
    let kept = grammars.to_bytes();
    match Grammars::from_bytes(&kept, &LIMITS) {
        Ok(again) => assert_eq!(again.to_bytes(), kept),
        Err(codec::Error::Limit { .. }) => {}
        Err(error) => panic!("its own grammars are refused: {error}"),
    }
});
