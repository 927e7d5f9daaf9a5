//! Any bytes as a WBXML document: tokens up to an error or the end, none behind it, and none that
//! takes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::wbxml::read;

fuzz_target!(|data: &[u8]| {
    let Ok((header, mut tokens)) = read(data) else { return };
    let _ = header.string(0);
    let mut before = tokens.offset();
    while let Some(Ok(_)) = tokens.next() {
        assert!(tokens.offset() > before && tokens.offset() <= data.len());
        before = tokens.offset();
    }
    assert_eq!(tokens.next(), None);
});
