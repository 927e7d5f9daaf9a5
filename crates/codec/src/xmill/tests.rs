//! Byte for byte back, whatever went in and however it was cut; damage is an error.

use proptest::prelude::*;

use super::method::Method;
use super::model::Model;
use super::range::{RangeDecoder, RangeEncoder};
use super::*;
use crate::{Limits, Settings};

/// One of each method.
const LEVELS: [i8; 3] = [1, 5, 9];

fn encoded(document: &[u8]) -> Vec<u8> {
    encoded_at(document, 5)
}

fn encoded_at(document: &[u8], level: i8) -> Vec<u8> {
    encode(document, Some(level), &Limits::default()).unwrap()
}

fn decoded(coded: &[u8]) -> Vec<u8> {
    decode(coded, &Limits::default()).unwrap()
}

fn table(rows: u32) -> String {
    let row = |i: u32| {
        let (key, price) = (i * 7919 % 1000, f64::from(i * 7717 % 90001) / 100.0);
        format!(
            "  <row n='{i}'>\n    <key xsi:type=\"xsd:int\">{key}</key>\n    \
             <name>Customer#{key:09}</name><p>{price:.2}</p><!-- {i} -->\n  </row>\n"
        )
    };
    format!("<?xml version=\"1.0\"?>\n<t>\n{}</t>", (0..rows).map(row).collect::<String>())
}

#[test]
fn odd_documents_come_back() {
    for document in [
        "",
        "<",
        ">",
        "<a",
        "<a>",
        "<a/>",
        "</a></b></c>",
        "<a b = 'c\"'  d=\"e\n\"  >x</a >",
        "<a b='",
        "<!-- -- -->",
        "<!--",
        "<![CDATA[ <a> ]]>]]>",
        "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;&amp;</a>",
        "\u{feff}<?xml version='1.0'?>\r\n<a>\r\n\t<b/>\r\n</a>\r\n",
        "no xml at all, and \0 zeros \0\0",
        "<a>\0</a>",
        "<a>1</a><a>2</a><a>3</a><a>x0003</a><b>4</b><a>x0004</a>",
    ] {
        for level in LEVELS {
            let coded = encoded_at(document.as_bytes(), level);
            assert_eq!(decoded(&coded), document.as_bytes(), "{document}");
            assert!(coded.len() <= document.len() + GROWTH_BYTES, "{document}: {}", coded.len());
        }
    }
}

#[test]
fn a_table_becomes_small_and_smaller_with_the_level() {
    let document = table(2000);
    let coded = |level| {
        let coded = encoded_at(document.as_bytes(), level);
        assert_eq!(decoded(&coded), document.as_bytes());
        assert!(coded.len() * 20 < document.len(), "{level}: {}", coded.len());
        coded.len()
    };
    let all: Vec<_> = (1..=9).map(coded).collect();
    assert!(all[4] < all[1] && all[7] < all[4], "{all:?}");
    assert!(all[8] <= all[7], "what follows from the value before is no guess: {all:?}");
}

#[test]
fn small_windows_slide() {
    let document = table(2000);
    let limits = Limits { table_bytes: 2 << 20, ..Limits::default() };
    for level in LEVELS {
        let settings = Settings { level: Some(level), limits, ..Settings::default() };
        let mut encoder = settings.encoder("xmill").unwrap();
        let mut coded = Vec::new();
        for block in document.as_bytes().chunks(30_000) {
            encoder.encode(block, false, &mut coded).unwrap();
        }
        encoder.encode(&[], true, &mut coded).unwrap();
        assert!(coded[1] < 17, "{level}: a window of 2^{}", coded[1]);
        assert!(settings.decode("xmill", &coded).unwrap() == document.as_bytes(), "{level}");
    }
}

#[test]
fn large_documents_and_depth_are_no_matter() {
    let mut document = table(45_000).into_bytes();
    document.extend(b"<x>".repeat(100_000));
    document.extend(b"</x>".repeat(100_001));
    let mut seed = 1_u64;
    document.extend((0..(9 << 20)).map(|_| {
        seed = seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        (seed >> 56) as u8
    }));
    document.extend(table(400).into_bytes());
    for level in [1, 5] {
        let coded = encoded_at(&document, level);
        assert!(decoded(&coded) == document, "level {level}");
    }
}

#[test]
fn bytes_behind_and_missing_bytes_are_refused() {
    for level in LEVELS {
        let coded = encoded_at(table(20).as_bytes(), level);
        for cut in 0..coded.len() {
            assert!(decode(&coded[..cut], &Limits::default()).is_err(), "{level}: {cut}");
        }
        let behind = [&coded[..], b"x"].concat();
        assert!(decode(&behind, &Limits::default()).is_err(), "{level}");
    }
}

#[test]
fn limits_hold() {
    let document = table(100);
    for level in LEVELS {
        let coded = encoded_at(document.as_bytes(), level);
        // A small message takes small tables.
        let limits = Limits { table_bytes: 4 << 20, ..Limits::default() };
        assert_eq!(encode(document.as_bytes(), Some(level), &limits).unwrap(), coded, "{level}");
        assert_eq!(decode(&coded, &limits).unwrap(), document.as_bytes(), "{level}");
    }
    let coded = encoded(document.as_bytes());
    for limits in [
        Limits { output_bytes: 100, ..Limits::default() },
        Limits { table_bytes: 100, ..Limits::default() },
    ] {
        assert!(matches!(decode(&coded, &limits), Err(crate::Error::Limit { .. })));
    }
}

#[test]
fn two_ways_at_once_are_within_the_limit_together() {
    let document = table(2000);
    let coded = encoded_at(document.as_bytes(), 9);
    let (strong, level) = Method::of_level(9);
    let (columns, [_, lower]) = strong.other().unwrap();
    assert_eq!(coded[0] & 15, columns.number(), "columns suit it better");
    let tables = |method: Method, level| method.table_bytes(coded[1], Some(level));
    let both = tables(strong, level) + tables(columns, lower);
    for (table_bytes, method) in [(both, columns), (both - 1, strong)] {
        let limits = Limits { table_bytes, ..Limits::default() };
        let coded = encode(document.as_bytes(), Some(9), &limits).unwrap();
        assert_eq!(coded[0] & 15, method.number());
        assert_eq!(decode(&coded, &limits).unwrap(), document.as_bytes());
    }
}

fn xml() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        "</?[a-c]{1,2}>",
        "<[a-c]( [x-z]{1,2} ?= ?['\"][a-d0-9 &;]{0,9}['\"]){0,3} ?/?>",
        "[ \n]{1,6}",
        "[a-d]{1,5}( [a-d]{1,5}){0,4}",
        "[0-9]{1,4}[.-]?[0-9]{0,3}",
        "<!--[a-c<>-]{0,6}-->",
        "<!\\[CDATA\\[[a-c<>\\]]{0,6}\\]\\]>",
        "[<>\"'&\\]-]",
    ];
    prop::collection::vec(token, 0..120).prop_map(|tokens| tokens.concat())
}

proptest! {
    #[test]
    fn any_bytes_come_back(
        document in prop::collection::vec(any::<u8>(), 0..3000),
        level in 1_i8..10,
    ) {
        let coded = encoded_at(&document, level);
        prop_assert!(coded.len() <= document.len() + GROWTH_BYTES);
        prop_assert_eq!(decoded(&coded), document);
    }

    #[test]
    fn anything_like_xml_comes_back_however_it_is_cut(
        document in xml(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        slices in 1_usize..40,
        level in 1_i8..10,
    ) {
        let document = document.as_bytes();
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(document.len() + 1)).collect();
        cuts.extend([0, document.len()]);
        cuts.sort_unstable();
        let settings = Settings { level: Some(level), ..Settings::default() };
        let mut encoder = settings.encoder("xmill").unwrap();
        let mut decoder = Settings::default().decoder("xmill").unwrap();
        let (mut coded, mut back, mut used) = (Vec::new(), Vec::new(), 0);
        for (i, pair) in cuts.windows(2).enumerate() {
            let last = i + 2 == cuts.len();
            encoder.encode(&document[pair[0]..pair[1]], last, &mut coded).unwrap();
            // What was given to the encoder can be had from the decoder at once.
            let mut seen = used;
            while seen < coded.len() {
                seen = coded.len().min(seen + slices);
                loop {
                    let step = decoder.decode(&coded[used..seen], false, &mut back).unwrap();
                    used += step.used;
                    if step.used == 0 || step.done {
                        break;
                    }
                }
            }
            prop_assert_eq!(&back[..], &document[..pair[1]]);
        }
    }

    #[test]
    fn damage_is_an_error_or_other_bytes(
        document in xml(),
        at in any::<prop::sample::Index>(),
        kind in 0..4,
        byte in any::<u8>(),
        level in 1_i8..10,
    ) {
        let mut coded = encoded_at(document.repeat(3).as_bytes(), level);
        let at = at.index(coded.len());
        match kind {
            0 => coded[at] ^= 1 << (byte & 7),
            1 => coded[at] = byte,
            2 => drop(coded.drain(at..)),
            _ => coded.insert(at, byte),
        }
        let limits = Limits { output_bytes: 1 << 16, ..Limits::default() };
        if let Ok(out) = decode(&coded, &limits) {
            prop_assert!(out.len() <= 1 << 16);
        }
    }
}

/// The model takes time for what comes out of it, so that a block must not go on when its bytes are
/// used up.
#[test]
fn a_block_whose_bytes_are_used_up_is_refused_at_once() {
    for len in [0, 1, 2, 8, 40] {
        for byte in [0, 0x5A, 0xFF] {
            let coded = vec![byte; len];
            let mut model = Model::new(20);
            let went = model.code(&mut RangeDecoder::new(&coded), 1 << 20);
            let made = model.position();
            // A bit costs a two-thousandth of a bit at least, and the coder reads ahead.
            let most = (len + 16) * 8 * 2000 / 8;
            assert!(went.is_err() && made < most, "{len} of {byte:#x}: {went:?}, {made}");
        }
    }
}

#[test]
fn a_stream_cut_short_makes_no_more_than_its_bytes_say() {
    let document = table(3000);
    let mut coded = Vec::new();
    let (mut model, end) = (Model::new(17), document.len());
    model.text.extend_from_slice(document.as_bytes());
    let mut coder = RangeEncoder::new(&mut coded);
    model.code(&mut coder, end).unwrap();
    coder.finish();
    let cut = coded.len() / 10;
    let mut model = Model::new(17);
    assert!(model.code(&mut RangeDecoder::new(&coded[..cut]), end).is_err());
    assert!(model.position() < end / 2, "{} of {end}", model.position());
    let same = model.text.iter().zip(document.as_bytes()).take_while(|(a, b)| a == b).count();
    assert!(same > 1000, "{same}");
}
