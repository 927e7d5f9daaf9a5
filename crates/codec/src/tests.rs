use proptest::prelude::*;

use super::*;

fn all() -> Vec<Options> {
    let names = [
        "identity",
        "deflate:1",
        "deflate",
        "deflate:9",
        "zstd:-7",
        "zstd",
        "zstd:9",
        "zstd:12",
        "zstd:19",
        "brotli:0",
        "brotli",
        "brotli:11",
        "xmill:1",
        "xmill",
    ];
    names.iter().map(|name| Options::of(name).unwrap()).collect()
}

/// Text that repeats at a distance: numbers keep it from being trivial.
fn text(len: usize) -> Vec<u8> {
    let mut text = Vec::new();
    for line in 0_u64.. {
        if text.len() >= len {
            break;
        }
        let mixed = line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        text.extend(format!("<track id='{line}'><lat>{mixed}</lat></track>\n").bytes());
    }
    text.truncate(len);
    text
}

fn through(options: Options, blocks: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut encoder = options.encoder().unwrap();
    let mut decoder = options.decoder().unwrap();
    let mut coded = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        let last = at + 1 == blocks.len();
        let mut encoded = Vec::new();
        encoder.encode(block, last, &mut encoded).unwrap();
        let mut decoded = Vec::new();
        decoder.decode(&encoded, block.len(), last, &mut decoded).unwrap();
        assert_eq!(decoded, *block, "{} block {at}", options.label());
        coded.push(encoded);
    }
    coded
}

#[test]
fn each_block_decodes_before_the_next_exists() {
    let text = text(300_000);
    for options in all() {
        let coded = through(options, &text.chunks(65_536).collect::<Vec<_>>());
        let total: usize = coded.iter().map(Vec::len).sum();
        assert!(options.is_identity() || total < text.len() / 2, "{}: {total}", options.label());
    }
}

#[test]
fn later_blocks_profit_from_earlier_ones() {
    let text = text(20_000);
    // Brotli's least level looks back no farther than its block.
    let looks_back = |options: &Options| !options.is_identity() && options.label() != "brotli:0";
    for options in all().into_iter().filter(looks_back) {
        let coded = through(options, &[&text, &text]);
        assert!(coded[1].len() * 3 < coded[0].len(), "{}", options.label());
    }
}

#[test]
fn an_empty_last_block_closes() {
    for options in all() {
        through(options, &[b"", b"a", b"", b""]);
        through(options, &[b""]);
    }
}

#[test]
fn a_window_that_shrank_still_decodes() {
    let text = text(400_000);
    for window_log in MIN_WINDOW_LOG..=MAX_WINDOW_LOG {
        let options = Options { window_log, ..Options::of("zstd:3").unwrap() };
        through(options, &text.chunks(60_000).collect::<Vec<_>>());
    }
}

#[test]
fn names_levels_and_windows_are_checked() {
    let message = |text: &str| Options::of(text).unwrap_err().to_string();
    let known = "identity, deflate, zstd, brotli, xmill";
    assert_eq!(message("lzma"), format!("unknown codec 'lzma': one of {known}"));
    assert_eq!(message("zstd:20"), "level '20' of zstd: a number from -7 to 19");
    assert_eq!(message("identity:1"), "identity has no levels: say 'identity'");
    let large = Options { window_log: 27, ..Options::of("zstd").unwrap() };
    assert!(large.decoder().is_err());
}

#[test]
fn a_block_that_decodes_beyond_its_declared_length_is_refused() {
    let bomb = vec![0; 1 << 20];
    for options in all() {
        let mut coded = Vec::new();
        options.encoder().unwrap().encode(&bomb, true, &mut coded).unwrap();
        let mut out = Vec::new();
        let result = options.decoder().unwrap().decode(&coded, 65_536, true, &mut out);
        assert!(matches!(result, Err(Error::Length { declared: 65_536, .. })), "{result:?}");
        assert!(out.is_empty());
    }
}

#[test]
fn truncated_trailing_and_misplaced_ends_are_refused() {
    let text = text(5000);
    for options in all().into_iter().filter(|options| !options.is_identity()) {
        let mut coded = Vec::new();
        options.encoder().unwrap().encode(&text, true, &mut coded).unwrap();
        let decode = |bytes: &[u8], last| {
            options.decoder().unwrap().decode(bytes, text.len(), last, &mut Vec::new())
        };
        assert!(decode(&coded, true).is_ok());
        assert!(decode(&coded, false).is_err(), "{}: ends early", options.label());
        for cut in [0, 1, coded.len() / 2, coded.len() - 1] {
            assert!(decode(&coded[..cut], true).is_err(), "{} cut {cut}", options.label());
        }
        let trailing = [&coded[..], b"x"].concat();
        assert!(decode(&trailing, true).is_err(), "{}: trailing", options.label());
    }
}

#[test]
fn what_was_renewed_is_as_fresh() {
    let (long, short) = (text(100_000), text(3_000));
    let mut renewed = 0;
    for options in all() {
        let (mut encoder, mut decoder) = (options.encoder().unwrap(), options.decoder().unwrap());
        let mut expected = Vec::new();
        options.encoder().unwrap().encode(&short, true, &mut expected).unwrap();
        for last in [false, true] {
            // Whatever went through them, and however that ended.
            encoder.encode(&long, last, &mut Vec::new()).unwrap();
            let _ = decoder.decode(&expected[..expected.len() / 2], 9, last, &mut Vec::new());
            if !(encoder.renew() && decoder.renew()) {
                break;
            }
            let (mut coded, mut back) = (Vec::new(), Vec::new());
            encoder.encode(&short, true, &mut coded).unwrap();
            decoder.decode(&coded, short.len(), true, &mut back).unwrap();
            assert!(coded == expected && back == short, "{options:?}");
            assert!(encoder.renew() && decoder.renew());
            renewed += 1;
        }
    }
    assert!(renewed > 3, "{renewed}");
}

#[test]
fn behind_the_last_block_nothing_is_encoded() {
    for options in all().into_iter().filter(|options| !options.is_identity()) {
        let mut encoder = options.encoder().unwrap();
        encoder.encode(b"last", true, &mut Vec::new()).unwrap();
        for block in [&b""[..], b"more"] {
            let result = encoder.encode(block, false, &mut Vec::new());
            assert!(matches!(result, Err(Error::Option { .. })), "{}", options.label());
        }
    }
}

/// What zstd says that its contexts hold after a body longer than their window.
#[test]
fn zstd_takes_what_the_table_says() {
    let body = text(3 << 20);
    let codec = Options::of("zstd").unwrap().codec;
    for level in -7..=19 {
        for window_log in MIN_WINDOW_LOG..=MAX_WINDOW_LOG {
            let options = Options { codec, level, window_log };
            let mut encoder = zstd::ZstdEncoder::new(options).unwrap();
            let mut decoder = zstd::ZstdDecoder::new(options).unwrap();
            // Strong levels are slow, and memory is there from the first block on.
            let len = if level > 3 { 70_000 } else { (5 << window_log) / 4 + 70_000 };
            for block in body[..len.min(body.len())].chunks(65_536) {
                let mut coded = Vec::new();
                encoder.encode(block, false, &mut coded).unwrap();
                decoder.decode(&coded, block.len(), false, &mut Vec::new()).unwrap();
            }
            let took = (encoder.context.sizeof(), decoder.context.sizeof());
            let said = (codec.encoder_bytes(options), codec.decoder_bytes(options));
            let at = format!("zstd:{level} 2^{window_log}: took {took:?}, said {said:?}");
            println!("{at}");
            assert!(took.0 <= said.0 && took.1 <= said.1, "{at}");
            assert!(took.0 * 3 >= said.0 && took.1 * 3 >= said.1, "{at}");
        }
    }
}

proptest! {
    #[test]
    fn bodies_round_trip(
        blocks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..3000), 1..6),
    ) {
        let blocks: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
        for options in all() {
            through(options, &blocks);
        }
    }

    #[test]
    fn no_input_panics_or_passes_its_bound(
        bytes in proptest::collection::vec(any::<u8>(), 0..500), len in 0..70_000_usize, last: bool,
    ) {
        for options in all() {
            let mut out = Vec::new();
            let _ = options.decoder().unwrap().decode(&bytes, len, last, &mut out);
            prop_assert!(out.len() <= len);
        }
    }

    #[test]
    fn no_flipped_bit_panics(at in 0..3000_usize, bit in 0..8_u8) {
        let text = text(5000);
        for options in all() {
            let mut coded = Vec::new();
            options.encoder().unwrap().encode(&text, true, &mut coded).unwrap();
            let at = at % coded.len();
            coded[at] ^= 1 << bit;
            let mut out = Vec::new();
            let _ = options.decoder().unwrap().decode(&coded, text.len(), true, &mut out);
            prop_assert!(out.len() <= text.len());
        }
    }
}
