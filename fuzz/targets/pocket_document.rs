//! Any bytes as a document in each form: events up to an error or the end, the same each time, no
//! deeper than the bound; and what an envelope has.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pocket::document::{CBOR, Event, MAX_DEPTH, Reader, WBXML, XML};
use pocket::{Tokens, soap};

fuzz_target!(|data: &[u8]| {
    let Some((&first, document)) = data.split_first() else { return };
    let form = [&XML, &WBXML, &CBOR][usize::from(first % 3)];
    // The table may be hostile too: a device may get it from elsewhere.
    let (table, document) = match first & 0x40 {
        0 => (&[][..], document),
        _ => document.split_at(document.len() / 2),
    };
    let tokens = Tokens::new(table).unwrap_or(match first & 0x80 {
        0 => Tokens::SOAP,
        _ => Tokens::NONE,
    });
    let mut reader = Reader::new(document, form, tokens);
    let mut events = 0;
    let end = loop {
        assert!(reader.depth() <= MAX_DEPTH);
        match reader.next() {
            Ok(Event::Over) => break None,
            Ok(_) => events += 1,
            Err(error) => break Some(error),
        }
        // Each but the end of an empty element takes a byte.
        assert!(events <= 2 * document.len() + 2);
    };
    assert_eq!(reader.next().err(), end);
    let mut reader = Reader::new(document, form, tokens);
    let mut room = [0; 16];
    match soap::open(&mut reader) {
        Ok(_) => {
            let _ = soap::integer(&mut reader.clone());
            let _ = soap::text(&mut reader.clone(), &mut room);
            let _ = soap::skip(&mut reader);
        }
        Err(pocket::Error::Fault) => {
            let _ = soap::fault(&mut reader, &mut room);
        }
        Err(_) => {}
    }
});
