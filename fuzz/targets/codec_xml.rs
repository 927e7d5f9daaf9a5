//! Any bytes as a document of any character set: read whole and read in pieces say the same.
#![no_main]

use codec::Limits;
use codec::xml::{Event, Reader, Stream};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits =
    Limits { output_bytes: 1 << 20, depth: 64, table_bytes: 1 << 20, message_bytes: 1 << 20 };

fuzz_target!(|data: &[u8]| {
    let [size, document @ ..] = data else { return };
    let text = codec::xml::to_utf8(document, &LIMITS);
    let whole = text.and_then(|text| whole(&text));
    match (whole, pieces(document, usize::from(*size).max(1))) {
        (Ok(whole), Ok(pieces)) => assert_eq!(whole, pieces),
        (whole, pieces) => assert_eq!(whole.is_ok(), pieces.is_ok(), "{whole:?} {pieces:?}"),
    }
});

fn whole(text: &str) -> Result<Vec<String>, codec::Error> {
    let mut reader = Reader::of(text, &LIMITS);
    let mut events = Vec::new();
    loop {
        let event = reader.next()?;
        events.push(format!("{event:?}"));
        if event == Event::Eof {
            return Ok(events);
        }
    }
}

fn pieces(document: &[u8], size: usize) -> Result<Vec<String>, codec::Error> {
    let mut stream = Stream::new(&LIMITS);
    let mut events = Vec::new();
    let mut blocks = document.chunks(size).peekable();
    let mut last = false;
    while !last {
        let block = blocks.next().unwrap_or_default();
        last = blocks.peek().is_none();
        stream.push(block, last)?;
        while let Some((event, _)) = stream.next()? {
            events.push(format!("{event:?}"));
            if event == Event::Eof {
                return Ok(events);
            }
        }
    }
    Ok(events)
}
