use proptest::prelude::*;

use super::*;
use crate::Error;

fn items(input: &[u8]) -> Result<Vec<Item<'_>>, Error> {
    Decoder::<32>::new(input).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Writes items as they were read.
fn write(items: &[Item<'_>]) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new());
    for item in items {
        match *item {
            Item::Unsigned(value) => encoder.unsigned(value),
            Item::Negative(value) => encoder.negative(value),
            Item::Bytes(value) => encoder.bytes(value),
            Item::Text(value) => encoder.text(value),
            Item::StartBytes => encoder.start_bytes(),
            Item::StartText => encoder.start_text(),
            Item::Array(Some(len)) => encoder.array(len),
            Item::Array(None) => encoder.start_array(),
            Item::Map(Some(len)) => encoder.map(len),
            Item::Map(None) => encoder.start_map(),
            Item::Tag(tag) => encoder.tag(tag),
            Item::Simple(value) => encoder.simple(value),
            Item::Half(value) => encoder.half(value),
            Item::Single(value) => encoder.single(value),
            Item::Double(value) => encoder.double(value),
            Item::Break => encoder.end(),
        }
        .unwrap();
    }
    encoder.into_sink()
}

/// RFC 8949 appendix A, some of each kind; the whole table runs in the crate `codec`.
#[test]
fn examples_of_the_rfc_show_as_they_stand_there() {
    let examples = [
        ("00", "0"),
        ("1bffffffffffffffff", "18446744073709551615"),
        ("c249010000000000000000", "2(h'010000000000000000')"),
        ("3bffffffffffffffff", "-18446744073709551616"),
        ("f98000", "-0.0"),
        ("f93e00", "1.5"),
        ("f97bff", "65504.0"),
        ("f90001", "5.960464477539063e-8"),
        ("fb3ff199999999999a", "1.1"),
        ("f97c00", "Infinity"),
        ("f97e00", "NaN"),
        ("f4", "false"),
        ("f7", "undefined"),
        ("f8ff", "simple(255)"),
        ("d74401020304", "23(h'01020304')"),
        ("62225c", "\"\\\"\\\\\""),
        ("8301820203820405", "[1, [2, 3], [4, 5]]"),
        ("a26161016162820203", "{\"a\": 1, \"b\": [2, 3]}"),
        ("5f42010243030405ff", "(_ h'0102', h'030405')"),
        ("9f018202039f0405ffff", "[_ 1, [2, 3], [_ 4, 5]]"),
        ("bf61610161629f0203ffff", "{_ \"a\": 1, \"b\": [_ 2, 3]}"),
        ("9fff", "[_ ]"),
    ];
    for (hex, shown) in examples {
        let input = bytes(hex);
        assert_eq!(Diagnostic(&input).to_string(), shown, "{hex}");
        assert_eq!(write(&items(&input).unwrap()), input, "{hex}");
    }
}

/// RFC 8949 appendix F: the examples of what is not well-formed.
#[test]
fn what_is_not_well_formed_is_refused() {
    let examples = "18 19 1a 1b 1901 1a0102 1b01020304050607 38 58 78 98 9a01ff00 b8 d8 f8 f900 \
        fa0000 fb000000 41 61 5affffffff00 5bffffffffffffffff010203 7affffffff00 \
        7b7fffffffffffffff010203 81 818181818181818181 8200 a1 a20102 a100 a2000000 c0 5f4100 \
        7f6100 9f 9f0102 bf bf01020102 819f 9f8000 9f9f9f9f9fffffffff 9f819f819f9fffffff \
        1c 1d 1e 3c 3d 3e 5c 5d 5e 7c 7d 7e 9c 9d 9e bc bd be dc dd de fc fd fe \
        f800 f801 f818 f81f 5f00ff 5f21ff 5f6100ff 5f80ff 5fa0ff 5fc000ff 5fe0ff 7f4100ff \
        5f5f4100ffff 7f7f6100ffff ff 81ff 8200ff a1ff a1ff00 a100ff a20000ff 9f81ff \
        9f829f819f9fffffffff bf00ff bf000000ff 1f 3f df";
    for hex in examples.split_whitespace() {
        let input = bytes(hex);
        assert!(check::<32>(&input).is_err(), "{hex}");
    }
    assert!(check::<32>(&[0, 0]).is_err(), "bytes behind the item");
    assert!(check::<32>(&[0x61, 0xff]).is_err(), "not UTF-8");
}

#[test]
fn core_deterministic_means_shortest_definite_and_sorted() {
    for hex in ["00", "17", "1818", "f97e00", "fa47c35000", "fb3ff199999999999a", "a201026161f4"] {
        assert!(check_deterministic::<8>(&bytes(hex)).is_ok(), "{hex}");
    }
    let bad = "1800 1817 190018 1a00000100 1b0000000000000001 5800 fa3fc00000 fb3ff8000000000000 \
        fb40f86a0000000000 fa7fc00000 9fff 5fff a26161f40102 a201020103 a2 a1c0001803";
    for hex in bad.split_whitespace() {
        assert!(check_deterministic::<8>(&bytes(hex)).is_err(), "{hex}");
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |levels: usize| [vec![0x81; levels], vec![0]].concat();
    assert!(check::<4>(&nested(4)).is_ok());
    let refused = check::<4>(&nested(5)).unwrap_err();
    assert!(matches!(refused, (4, Error::Limit { value: 5, limit: 4, .. })), "{refused:?}");
    assert!(check::<4>(&vec![0xd0; 100_000]).is_err());
}

#[test]
fn a_full_slice_is_an_error_and_keeps_what_fitted() {
    let mut room = [0; 3];
    let mut encoder = Encoder::new(Slice::new(&mut room));
    encoder.unsigned(24).unwrap();
    assert!(matches!(encoder.text("abc"), Err(Error::Limit { limit: 3, .. })));
    assert!(encoder.simple(24).is_err());
    assert_eq!(encoder.into_sink().len(), 3);
}

#[test]
fn every_half_comes_back() {
    for bits in 0..=u16::MAX {
        assert_eq!(shortest(double_of_half(bits)), Shortest::Half(bits), "{bits:04x}");
    }
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        any::<u64>().prop_map(|value| write(&[Item::Unsigned(value)])),
        any::<u64>().prop_map(|value| write(&[Item::Negative(value >> 40)])),
        any::<Vec<u8>>().prop_map(|value| write(&[Item::Bytes(&value)])),
        ".*".prop_map(|value: String| write(&[Item::Text(&value)])),
        any::<u64>().prop_map(|bits| write(&[Item::Double(bits)])),
        any::<u32>().prop_map(|bits| write(&[Item::Single(bits)])),
        (32_u8..).prop_map(|value| write(&[Item::Simple(value)])),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let several = proptest::collection::vec(inner.clone(), 0..6);
        (several, 0..5_u8, any::<u64>()).prop_map(|(parts, kind, tag)| {
            let count = parts.len() as u64;
            match kind {
                0 => [write(&[Item::Array(Some(count))]), parts.concat()].concat(),
                1 => [vec![0x9f], parts.concat(), vec![0xff]].concat(),
                2 => {
                    let pairs = parts.iter().map(|part| [&[0][..], part].concat());
                    [write(&[Item::Map(Some(count))]), pairs.flatten().collect()].concat()
                }
                3 => {
                    let pairs = parts.iter().flat_map(|part| [&[0][..], part].concat());
                    [vec![0xbf], pairs.collect(), vec![0xff]].concat()
                }
                _ => [write(&[Item::Tag(tag), Item::Array(Some(count))]), parts.concat()].concat(),
            }
        })
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(input in value()) {
        prop_assert!(check::<16>(&input).is_ok());
        prop_assert_eq!(write(&items(&input).unwrap()), input);
    }

    #[test]
    fn a_prefix_is_never_whole(input in value(), cut in any::<prop::sample::Index>()) {
        let cut = cut.index(input.len());
        prop_assert!(check::<16>(&input[..cut]).is_err());
    }

    #[test]
    fn floats_keep_their_bits(bits: u64) {
        let value = f64::from_bits(bits);
        let mut encoder = Encoder::new(Vec::new());
        encoder.float(value).unwrap();
        let bytes = encoder.into_sink();
        let back = items(&bytes).unwrap()[0].float().unwrap();
        prop_assert_eq!(back.to_bits(), bits);
        prop_assert!(check_deterministic::<1>(&bytes).is_ok());
    }

    #[test]
    fn no_bytes_panic(input in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = check::<8>(&input);
        let _ = check_deterministic::<8>(&input);
        let _ = Diagnostic(&input).to_string();
    }

    #[test]
    fn mutations_do_not_panic(
        input in value(), at in any::<prop::sample::Index>(), bit in 0..8_u8,
    ) {
        let mut input = input;
        let at = at.index(input.len());
        input[at] ^= 1 << bit;
        let _ = check::<8>(&input);
        let _ = Diagnostic(&input).to_string();
    }
}
