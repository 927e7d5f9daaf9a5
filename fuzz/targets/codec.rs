//! Every codec for blocks: any bytes as coded blocks stay within the declared length, and what
//! is encoded decodes to the same in blocks of any size.
#![no_main]

use codec::{Options, block_codecs};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [pick, level, size, data @ ..] = data else { return };
    let at = usize::from(*pick) % block_codecs().count();
    let Some(codec) = block_codecs().nth(at) else { return };
    let level = codec.levels().map_or(0, |(least, _, most)| {
        // The upper levels cost time, not other code.
        let most = most.min(9);
        least + i8::try_from(i32::from(*level) % (i32::from(most - least) + 1)).unwrap_or(0)
    });
    let window_log = if codec.number() == 0 { 0 } else { 15 };
    let options = Options { codec, level, window_log };
    hostile(options, usize::from(*size) * 16, data);
    round_trip(options, usize::from(*size).max(1) * 16, data);
});

fn hostile(options: Options, decoded_len: usize, data: &[u8]) {
    let Ok(mut decoder) = options.decoder() else { return };
    let mut out = Vec::new();
    let middle = data.len() / 2;
    for (block, last) in [(&data[..middle], false), (&data[middle..], true)] {
        let before = out.len();
        match decoder.decode(block, decoded_len, last, &mut out) {
            Ok(()) => assert_eq!(out.len() - before, decoded_len),
            Err(_) => return,
        }
    }
}

fn round_trip(options: Options, block_bytes: usize, data: &[u8]) {
    let (Ok(mut encoder), Ok(mut decoder)) = (options.encoder(), options.decoder()) else {
        panic!("{options:?} is in the table");
    };
    let mut blocks = data.chunks(block_bytes).peekable();
    while let Some(block) = blocks.next() {
        let last = blocks.peek().is_none();
        let (mut coded, mut decoded) = (Vec::new(), Vec::new());
        encoder.encode(block, last, &mut coded).unwrap_or_else(|error| panic!("{error}"));
        let result = decoder.decode(&coded, block.len(), last, &mut decoded);
        result.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(decoded, block);
    }
}
