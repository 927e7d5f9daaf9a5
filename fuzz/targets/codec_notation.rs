//! Any bytes as a document of any notation, into any other: no panic, limits kept, and what comes
//! out can be read and says the same there and back.
#![no_main]

use codec::Limits;
use codec::notation::{Notation, translate};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits =
    Limits { output_bytes: 1 << 16, depth: 64, table_bytes: 1 << 20, message_bytes: 1 << 16 };
/// What comes out is shorter than what it stands for; going back is let grow.
const WIDE: Limits = Limits { output_bytes: 1 << 24, message_bytes: 1 << 20, ..LIMITS };

fuzz_target!(|data: &[u8]| {
    let [from, to, document @ ..] = data else { return };
    let pick = |byte: &u8| Notation::ALL[usize::from(*byte) % Notation::ALL.len()].0;
    let (from, to) = (pick(from), pick(to));
    let Ok(out) = translate(document, from, to, &LIMITS) else { return };
    assert!(out.len() <= 1 << 16);
    if from == to {
        return;
    }
    let text = to.text();
    let between = if to == text { from } else { text };
    let there = match translate(&out, to, between, &WIDE) {
        Ok(there) => there,
        // What may be signed goes into no binary form.
        Err(_) if to == text => return,
        Err(error) => panic!("{from:?} to {to:?} and back: {error}"),
    };
    if let Ok(back) = translate(&there, between, to, &WIDE) {
        assert!(back == out, "{from:?} to {to:?}, {between:?} and back");
    }
});
