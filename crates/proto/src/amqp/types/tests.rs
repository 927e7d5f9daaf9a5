use bytes::Bytes;
use proptest::prelude::*;

use super::*;

fn read(bytes: &[u8]) -> Result<Value, crate::Error> {
    let mut reader = Reader::new(bytes);
    let value = reader.value()?;
    reader.finish("bytes behind a value")?;
    Ok(value)
}

fn written(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    encode(value, &mut out);
    out
}

/// AMQP 1.0 Part 1 §1.2, figure 1.2 and 1.3: a primitive and a described value.
#[test]
fn examples_of_section_1_2_are_read() {
    let text = [&b"\xa1\x1e"[..], b"Hello Glorious Messaging World"].concat();
    assert_eq!(read(&text), Ok(Value::string("Hello Glorious Messaging World")));
    let url = [&b"\x00\xa1\x03URL\xa1\x1e"[..], b"http://example.org/hello-world"].concat();
    let expected =
        Value::described(Value::string("URL"), Value::string("http://example.org/hello-world"));
    assert_eq!(read(&url), Ok(expected.clone()));
    assert_eq!(written(&expected), url);
}

/// AMQP 1.0 Part 1 §1.4, figure 1.5: a composite with an array in it.
#[test]
fn the_book_of_section_1_4_is_read_and_written() {
    let mut book =
        b"\x00\xa3\x11example:book:list\xc0\x40\x03\xa1\x15AMQP for & by Dummies".to_vec();
    book.extend_from_slice(b"\xe0\x25\x02\xa1\x0eRob J. Godfrey\x13Rafael H. Schloming\x40");
    let Ok(Value::Described(described)) = read(&book) else { panic!("no described value") };
    assert_eq!(described.descriptor.as_text(), Some("example:book:list"));
    let authors = vec![Value::string("Rob J. Godfrey"), Value::string("Rafael H. Schloming")];
    let authors = Value::Array(Array::new(authors).unwrap());
    let fields = vec![Value::string("AMQP for & by Dummies"), authors, Value::Null];
    assert_eq!(described.value, Value::List(fields));
    let again = written(&Value::Described(described.clone()));
    assert_eq!(read(&again), Ok(Value::Described(described)));
}

/// AMQP 1.0 Part 1 §1.6: every encoding of every type.
#[test]
fn each_encoding_is_read() {
    let cases: Vec<(&[u8], Value)> = vec![
        (b"\x40", Value::Null),
        (b"\x56\x01", Value::Bool(true)),
        (b"\x56\x00", Value::Bool(false)),
        (b"\x41", Value::Bool(true)),
        (b"\x42", Value::Bool(false)),
        (b"\x50\xff", Value::Ubyte(255)),
        (b"\x60\x01\x02", Value::Ushort(258)),
        (b"\x70\x00\x00\x01\x00", Value::Uint(256)),
        (b"\x52\x05", Value::Uint(5)),
        (b"\x43", Value::Uint(0)),
        (b"\x80\x00\x00\x00\x00\x00\x00\x01\x00", Value::Ulong(256)),
        (b"\x53\x05", Value::Ulong(5)),
        (b"\x44", Value::Ulong(0)),
        (b"\x51\xff", Value::Byte(-1)),
        (b"\x61\xff\xfe", Value::Short(-2)),
        (b"\x71\xff\xff\xff\x00", Value::Int(-256)),
        (b"\x54\x80", Value::Int(-128)),
        (b"\x81\xff\xff\xff\xff\xff\xff\xff\x00", Value::Long(-256)),
        (b"\x55\x7f", Value::Long(127)),
        (b"\x72\x3f\x80\x00\x00", Value::Float(1.0)),
        (b"\x82\xbf\xf0\x00\x00\x00\x00\x00\x00", Value::Double(-1.0)),
        (b"\x74\x01\x02\x03\x04", Value::Decimal32([1, 2, 3, 4])),
        (b"\x84\x01\x02\x03\x04\x05\x06\x07\x08", Value::Decimal64([1, 2, 3, 4, 5, 6, 7, 8])),
        (b"\x94\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x09", {
            let mut bytes = [0; 16];
            bytes[15] = 9;
            Value::Decimal128(bytes)
        }),
        (b"\x73\x00\x01\xf6\x00", Value::Char('\u{1f600}')),
        (b"\x83\x00\x00\x00\x00\x00\x00\x00\x01", Value::Timestamp(1)),
        (b"\x98\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", Value::Uuid([0; 16])),
        (b"\xa0\x02\x00\xff", Value::Binary(Bytes::from_static(b"\x00\xff"))),
        (b"\xb0\x00\x00\x00\x01a", Value::Binary(Bytes::from_static(b"a"))),
        (b"\xa1\x01a", Value::string("a")),
        (b"\xb1\x00\x00\x00\x01a", Value::string("a")),
        (b"\xa3\x01a", Value::symbol("a")),
        (b"\xb3\x00\x00\x00\x01a", Value::symbol("a")),
        (b"\x45", Value::List(vec![])),
        (b"\xc0\x02\x01\x40", Value::List(vec![Value::Null])),
        (b"\xd0\x00\x00\x00\x05\x00\x00\x00\x01\x40", Value::List(vec![Value::Null])),
        (b"\xc1\x01\x00", Value::Map(vec![])),
        (b"\xd1\x00\x00\x00\x06\x00\x00\x00\x02\x43\x41", {
            Value::Map(vec![(Value::Uint(0), Value::Bool(true))])
        }),
        (b"\xe0\x04\x02\x52\x01\x02", {
            Value::Array(Array::new(vec![Value::Uint(1), Value::Uint(2)]).unwrap())
        }),
        (b"\xf0\x00\x00\x00\x06\x00\x00\x00\x03\x43\x40", Value::Null),
    ];
    for (bytes, value) in cases {
        if bytes[0] == 0xf0 {
            // Three zeros of no width, and a byte too many.
            assert!(read(bytes).is_err());
            continue;
        }
        assert_eq!(read(bytes), Ok(value.clone()), "{bytes:x?}");
        assert_eq!(read(&written(&value)), Ok(value), "{bytes:x?}");
        for len in 0..bytes.len() {
            assert!(read(&bytes[..len]).is_err(), "{:x?}", &bytes[..len]);
        }
        assert_eq!(Reader::new(bytes).skip(), Ok(bytes));
    }
}

#[test]
fn what_breaks_the_rules_is_refused() {
    for bytes in [
        &b"\x46"[..],                                // no such constructor
        b"\x56\x02",                                 // a boolean of two
        b"\x73\x00\x00\xd8\x00",                     // a surrogate
        b"\xa1\x01\xff",                             // no UTF-8
        b"\xa3\x01\xff",                             // no ASCII
        b"\xc1\x02\x01\x40",                         // a key without a value
        b"\xc0\x03\x01\x40\x40",                     // more than the count says
        b"\xc0\x02\x02\x40",                         // less than the count says
        b"\xc0\x00",                                 // no room for a count
        b"\xe0\x02\x00\x46",                         // an array of nothing known
        b"\xf0\x00\x00\x00\x05\xff\xff\xff\xff\x40", // four billion nulls in ten bytes
        b"\x40\x40",                                 // trailing
    ] {
        assert!(read(bytes).is_err(), "{bytes:x?}");
    }
    let deep = [[0xc0, 250, 1].repeat(40), vec![0x40]].concat();
    assert!(read(&deep).is_err());
    let mut nested = Value::Null;
    for _ in 0..MAX_DEPTH {
        nested = Value::List(vec![nested]);
    }
    assert_eq!(read(&written(&nested)), Ok(nested.clone()));
    assert!(read(&written(&Value::List(vec![nested]))).is_err());
    let described = [vec![0x00; 100_000], vec![0x40]].concat();
    assert!(read(&described).is_err() && Reader::new(&described).skip().is_err());
    assert!(Symbol::of("\u{e9}").is_err());
    assert!(Array::new(vec![Value::Uint(1), Value::Int(1)]).is_err());
}

#[test]
fn fields_that_are_left_out_are_null() {
    let mut out = Vec::new();
    FieldsWriter::default().uint(Some(7)).flag(false).string(None).finish(0x10, &mut out);
    assert_eq!(out, b"\x00\x53\x10\xc0\x03\x01\x52\x07");
    let reader = &mut Reader::new(&out);
    assert_eq!(reader.descriptor(), Ok(Some(Value::Ulong(0x10))));
    let mut fields = Fields::open(reader, "a field").unwrap();
    assert_eq!(
        (fields.uint(), fields.boolean(), fields.string()),
        (Ok(Some(7)), Ok(None), Ok(None))
    );
    assert_eq!(fields.finish(), Ok(()));
    assert_eq!(reader.finish("more"), Ok(()));
    // One more than the type has, and one of another type.
    let mut fields = Fields::open(&mut Reader::new(b"\xc0\x03\x02\x40\x40"), "a field").unwrap();
    assert_eq!(fields.uint(), Ok(None));
    assert!(fields.finish().is_err());
    let mut fields = Fields::open(&mut Reader::new(b"\xc0\x02\x01\x41"), "a field").unwrap();
    assert!(fields.uint().is_err());
}

/// Files of values that proton's own tests read.
#[test]
fn values_of_protons_tests_are_read() {
    let Ok(data) = std::env::var("LONGWIRE_DATA") else {
        println!("left out: LONGWIRE_DATA is not set");
        return;
    };
    for name in ["described", "lists", "maps", "strings", "message"] {
        let path = format!("{data}/pubsub_coap/qpid_proton_amqp/{name}.amqp");
        let Ok(bytes) = std::fs::read(&path) else {
            println!("left out: {path}");
            continue;
        };
        let mut reader = Reader::new(&bytes);
        while !reader.is_empty() {
            let value = reader.value().unwrap();
            assert_eq!(read(&written(&value)), Ok(value));
        }
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<u8>().prop_map(Value::Ubyte),
        any::<u16>().prop_map(Value::Ushort),
        any::<u32>().prop_map(Value::Uint),
        (0_u64..300).prop_map(Value::Ulong),
        any::<i16>().prop_map(Value::Short),
        (-200_i32..200).prop_map(Value::Int),
        any::<i64>().prop_map(Value::Long),
        any::<char>().prop_map(Value::Char),
        any::<i64>().prop_map(Value::Timestamp),
        any::<[u8; 16]>().prop_map(Value::Uuid),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(|it| Value::Binary(it.into())),
        ".{0,90}".prop_map(Value::String),
        "[ -~]{0,20}".prop_map(|it| Value::Symbol(Symbol::of(&it).unwrap())),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::List),
            prop::collection::vec((inner.clone(), inner.clone()), 0..4).prop_map(Value::Map),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Value::described(a, b)),
            (inner, 0_usize..5).prop_map(|(item, count)| {
                let is_described = matches!(item, Value::Described(_));
                let items = vec![item; if is_described { 0 } else { count }];
                Value::Array(Array::new(items).unwrap())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn values_come_back(value in value()) {
        let bytes = written(&value);
        prop_assert_eq!(read(&bytes), Ok(value));
        prop_assert_eq!(Reader::new(&bytes).skip(), Ok(&bytes[..]));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(value) = read(&bytes) {
            let again = written(&value);
            prop_assert_eq!(written(&read(&again).unwrap()), again);
        }
        let _ = Reader::new(&bytes).skip();
    }
}
