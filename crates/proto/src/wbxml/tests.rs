use proptest::prelude::*;

use super::*;
use crate::Error;

fn tokens(document: &[u8]) -> Result<Vec<Token<'_>>, Error> {
    read(document)?.1.collect()
}

/// The shape of WAP-192 §8.1, with other words.
#[test]
fn tags_text_and_entities() {
    let document = [1, 1, 3, 0, 0x47, 0x46, 3, b' ', b'x', 0, 5, 2, 0x81, 0x20, 3, b'y', 0, 1, 1];
    let (header, rest) = read(&document).unwrap();
    assert_eq!((header.version, header.charset, header.strings), (1, 3, &b""[..]));
    assert_eq!(header.public_id, PublicId::Known(1));
    let tag = |code, content| Token::Tag { page: 0, code, attributes: false, content };
    let expected = [
        tag(7, true),
        tag(6, true),
        Token::String(b" x"),
        tag(5, false),
        Token::Entity(160),
        Token::String(b"y"),
        Token::End,
        Token::End,
    ];
    assert_eq!(rest.collect::<Result<Vec<_>, _>>().unwrap(), expected);
}

#[test]
fn attributes_pages_and_instructions() {
    let document = [
        3, 0, 0, 106, 4, b'a', b'b', b'c', 0, 0x43, 4, 1, 3, b'd', 0, 1, 0, 2, 0xc5, 0, 1, 5, 0x85,
        0x83, 2, 6, 0xc3, 2, 0, 1, 0x80, 7, 1, 0x84, 0, 4, 1, 1, 1, 0x43, 5, 1,
    ];
    let (header, rest) = read(&document).unwrap();
    assert_eq!(header.public_id, PublicId::Text(0));
    assert_eq!(header.string(1).unwrap(), b"bc");
    assert!(header.string(4).is_err());
    let expected = [
        Token::Pi,
        Token::LiteralAttribute { index: 1 },
        Token::String(b"d"),
        Token::EndPi,
        Token::Tag { page: 2, code: 5, attributes: true, content: true },
        Token::AttributeStart { page: 1, code: 5 },
        Token::AttributeValue { page: 1, code: 0x85 },
        Token::TableString { index: 2 },
        Token::AttributeStart { page: 1, code: 6 },
        Token::Opaque(&[0, 1]),
        Token::ExtensionIndex { number: 0, value: 7 },
        Token::EndAttributes,
        Token::LiteralTag { index: 0, attributes: true, content: false },
        Token::LiteralAttribute { index: 1 },
        Token::EndAttributes,
        Token::End,
        Token::Pi,
        Token::AttributeStart { page: 1, code: 5 },
        Token::EndPi,
    ];
    assert_eq!(rest.collect::<Result<Vec<_>, _>>().unwrap(), expected);
}

#[test]
fn what_no_document_may_have_is_refused() {
    let cases: [&[u8]; 14] = [
        b"",
        &[0x10, 1, 106, 0, 5],
        &[3, 1, 106, 1],
        &[3, 1, 106, 0],
        &[3, 1, 106, 0, 0x45],
        &[3, 1, 106, 0, 5, 5],
        &[3, 1, 106, 0, 3, b'a', 0],
        &[3, 1, 106, 0, 0x45, 3, b'a'],
        &[3, 1, 106, 0, 0x45, 0xc3, 0x8f, 0xff, 0xff, 0xff, 0x7f],
        &[3, 1, 106, 0, 0x45, 2, 0x9f, 0xff, 0xff, 0xff, 0x7f, 1],
        &[3, 1, 106, 0, 0x85, 1],
        &[3, 1, 106, 0, 0x85, 3, b'a', 0, 1],
        &[1, 1, 106, 0, 0x45, 0, 1, 5, 1],
        &[1, 1, 106, 0, 0x85, 5, 0xc3, 0, 1],
    ];
    for case in cases {
        assert!(tokens(case).is_err(), "{case:02x?}");
    }
}

#[test]
fn wide_strings_end_with_two_zeros() {
    let document = [3, 1, 0x87, 0x75, 0, 0x45, 3, 1, 0, 0, 0x41, 0, 0, 1];
    let tokens = tokens(&document).unwrap();
    assert_eq!(tokens[1], Token::String(&[1, 0, 0, 0x41]));
}

proptest! {
    #[test]
    fn integers_round_trip(value: u32) {
        let mut buffer = [0; 5];
        let mut document = vec![3];
        document.extend_from_slice(encode_u32(value.max(1), &mut buffer));
        document.extend([106, 0, 5]);
        let (header, _) = read(&document).unwrap();
        prop_assert_eq!(header.public_id, PublicId::Known(value.max(1)));
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = tokens(&bytes);
        let _ = tokens(&[&[3, 1, 106, 0][..], &bytes].concat());
    }
}
