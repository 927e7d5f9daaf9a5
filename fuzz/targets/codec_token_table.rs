//! Any text as a table of tokens.
#![no_main]

use codec::wbxml::TokenTable;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // A table or the line that is wrong.
    let _ = TokenTable::parse(text);
});
