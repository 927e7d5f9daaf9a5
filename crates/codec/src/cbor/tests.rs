use proptest::prelude::*;

use super::*;
use crate::{Encoder, Limits, StreamDecoder};

fn coded(json: &str) -> Vec<u8> {
    from_json(json.as_bytes(), &Settings::default(), &Limits::default()).unwrap()
}

fn back(cbor: &[u8]) -> String {
    String::from_utf8(to_json(cbor, &Limits::default()).unwrap()).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn numbers_keep_their_text_in_few_bytes() {
    for (text, item) in [
        ("0", "00"),
        ("-1", "20"),
        ("1000000", "1a000f4240"),
        ("18446744073709551615", "1bffffffffffffffff"),
        ("18446744073709551616", "c249010000000000000000"),
        ("-18446744073709551616", "3bffffffffffffffff"),
        ("-18446744073709551617", "c349010000000000000000"),
        ("1.5", "f93e00"),
        ("-0.0", "f98000"),
        ("1.50", "c482211896"),
        ("0.1", "c4822001"),
        ("-273.15", "c48221396ab2"),
        ("273.15", "c48221196ab3"),
        ("1e5", "c4820501"),
        ("1e-70", "c482384501"),
        ("0.00", "c4822100"),
        ("1e300", "c48219012c01"),
        ("-0", "d90106422d30"),
        ("1E5", "d90106433145"),
    ] {
        let bytes = coded(text);
        println!("{text} {}", hex(&bytes));
        assert!(hex(&bytes).starts_with(item), "{text}: {} is not {item}", hex(&bytes));
        assert_eq!(back(&bytes), text);
    }
    for text in [
        "1.5e+3",
        "-0e0",
        "1e05",
        "0.1e1",
        "123456789012345678901234567890123456789012345678",
        "3.141592653589793238462643383279502884197169",
        "1e400",
        "9007199254740993",
        "1.0",
        "340282366920938463463374607431768211455",
        "340282366920938463463374607431768211456",
        "-340282366920938463463374607431768211456",
        "2.2250738585072014e-308",
        "5e-324",
        "1e16",
        "0.000000000000000000000000000000000000000000000000000000000000000001",
        "1e-64",
        "1e-65",
    ] {
        assert_eq!(back(&coded(text)), text);
    }
}

#[test]
fn keys_keep_their_order_and_number() {
    let json = r#"{"b":1,"a":[true,false,null,{}],"b":[],"":""}"#;
    assert_eq!(back(&coded(json)), json);
    assert_eq!(coded(json)[0], 0xa4);
    let deterministic = Settings { deterministic: true };
    let limits = Limits::default();
    let sorted =
        from_json(br#"{"b":1,"a":{"d":2,"c":[{"y":1,"x":2}]},"":3}"#, &deterministic, &limits);
    let sorted = sorted.unwrap();
    assert!(proto::cbor::check_deterministic::<16>(&sorted).is_ok());
    assert_eq!(back(&sorted), r#"{"":3,"a":{"c":[{"x":2,"y":1}],"d":2},"b":1}"#);
    assert!(from_json(json.as_bytes(), &deterministic, &limits).is_err());
}

#[test]
fn strings_come_back_escaped_as_needed() {
    let json = " [ \"\\u00e4\\/\\n\\u0001\\ud83d\\ude00\\\"\\\\\" , \"\u{e4}\" ] ";
    assert_eq!(back(&coded(json)), "[\"ä/\\n\\u0001😀\\\"\\\\\",\"ä\"]");
}

#[test]
fn what_is_not_json_is_refused_where_it_stands() {
    for (json, offset) in [
        ("", 0),
        ("[1,]", 3),
        ("[1 2]", 3),
        ("{\"a\"}", 4),
        ("{\"a\":1,}", 7),
        ("{a:1}", 1),
        ("01", 0),
        ("1.", 0),
        (".5", 0),
        ("+1", 0),
        ("1e", 0),
        ("-", 0),
        ("[1}", 2),
        ("tru", 0),
        ("\"a", 2),
        ("\"\\x\"", 1),
        ("\"\\ud800\"", 1),
        ("\"\\ude00\"", 1),
        ("\"\n\"", 1),
        ("\"\\u12g4\"", 1),
        ("1 1", 2),
        ("[", 1),
        ("nullx", 4),
        ("\u{feff}1", 0),
        ("NaN", 0),
        ("'a'", 0),
        ("\"\\ud800\\u0041\"", 1),
        ("\"\\", 2),
    ] {
        let refused = from_json(json.as_bytes(), &Settings::default(), &Limits::default());
        match refused {
            Err(Error::Malformed { offset: at, .. }) => assert_eq!(at, offset, "{json}"),
            other => panic!("{json}: {other:?}"),
        }
    }
    assert!(from_json(b"\"\xff\"", &Settings::default(), &Limits::default()).is_err());
    let deep = [vec![b'['; 300], vec![b']'; 300]].concat();
    let refused = from_json(&deep, &Settings::default(), &Limits::default());
    assert!(matches!(refused, Err(Error::Limit { .. })));
    let small = Limits { message_bytes: 3, ..Limits::default() };
    assert!(from_json(b"[1, 2]", &Settings::default(), &small).is_err());
}

#[test]
fn cbor_of_others_becomes_json_where_it_can() {
    let json = |hex: &str| -> Result<String, Error> {
        let bytes: Vec<u8> = (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        to_json(&bytes, &Limits::default()).map(|text| String::from_utf8(text).unwrap())
    };
    for (hex, text) in [
        ("f97e00", "null"),
        ("f7", "null"),
        ("f0", "null"),
        ("fa47c35000", "100000.0"),
        ("44010203ff", "\"AQID_w\""),
        ("5f42010241 03ff", "\"AQID\""),
        ("d9d9f7 c1 1a514b67b0", "1363896240"),
        ("7f657374726561646d696e67ff", "\"streaming\""),
        ("bf61610161629f0203ffff", "{\"a\":1,\"b\":[2,3]}"),
        ("9f9fff80a0bfff40 6 0ff", "[[],[],{},{},\"\",\"\"]"),
        ("7fff", "\"\""),
        ("c48220c249010000000000000000", "1844674407370955161.6"),
        ("c25f4101ff", "1"),
        ("c25f4900000000000000000141 0040ff", "256"),
        ("c25fff", "0"),
        ("c35f4101 4100ff", "-257"),
        ("c48220c25f4101ff", "0.1"),
        ("c49f2001ff", "0.1"),
        ("819fc25f4101ffff", "[[1]]"),
        ("d901065f4131412e4135ff", "1.5"),
    ] {
        assert_eq!(json(&hex.replace(' ', "")).as_deref(), Ok(text), "{hex}");
    }
    for hex in [
        "a1016161",
        "bf6161ff",
        "81",
        "ff",
        "0000",
        "c482",
        "c44100",
        "d9010641 61",
        "61ff",
        "7f61ffff",
        "7f4161ff",
        "9f",
        "c1ff",
        "c11f",
        "81ff",
        "a16161",
        "c2510100000000000000000000000000000000",
        "d9010643666f6f",
        "7fc06161ff",
        "c25f4101",
        "c25f01ff",
        "c25f6101ff",
        "c25f5f4101ffff",
        "c25f5101000000000000000000000000000000 00ff",
        "c49f20ff",
        "c49f200102ff",
        "c49f2001",
        "1c",
    ] {
        assert!(json(&hex.replace(' ', "")).is_err(), "{hex}");
    }
    // Chunks without bytes have an end too.
    let empty = [&[0xc2, 0x5f][..], &[0x40; 5000], &[0xff]].concat();
    assert!(matches!(to_json(&empty, &Limits::default()), Err(Error::Limit { .. })));
    let narrow = Limits { output_bytes: 10, ..Limits::default() };
    assert!(matches!(to_json(&coded("[1,2,3,4,5,6,7]"), &narrow), Err(Error::Limit { .. })));
    let shallow = Limits { depth: 3, ..Limits::default() };
    assert!(matches!(to_json(&coded("[[[[1]]]]"), &shallow), Err(Error::Limit { .. })));
}

/// Through the two streams, in parts of `len` bytes.
fn streamed(json: &[u8], len: usize) -> Vec<u8> {
    let limits = Limits::default();
    let mut encoder = JsonEncoder::new(&limits);
    let mut cbor = Vec::new();
    for part in json.chunks(len) {
        encoder.encode(part, false, &mut cbor).unwrap();
        assert!(encoder.pending_bytes() <= 4200 + len);
    }
    encoder.encode(b"", true, &mut cbor).unwrap();
    assert!(proto::cbor::check::<64>(&cbor).is_ok());
    let mut decoder = JsonDecoder::new(&limits);
    let (mut out, mut rest) = (Vec::new(), Vec::new());
    for part in cbor.chunks(len) {
        rest.extend_from_slice(part);
        let step = decoder.decode(&rest, false, &mut out).unwrap();
        rest.drain(..step.used);
        assert!(rest.len() < 4200 + len);
    }
    assert!(decoder.decode(&rest, true, &mut out).unwrap().done);
    out
}

#[test]
fn streams_give_the_same_in_parts_of_any_size() {
    let long = "lang ä\\n 😀 ".repeat(2000);
    let json =
        format!("[{{\"a\":[1,2.50,-3e5,true],\"{long}\":\"{long}\"}},null,\"\\u00e4\",1234]");
    let whole = back(&coded(&json));
    for len in [1, 2, 3, 7, 64, 1000, 5000, 1 << 20] {
        assert_eq!(streamed(json.as_bytes(), len), whole.as_bytes(), "{len}");
    }
    let mut encoder = JsonEncoder::new(&Limits::default());
    assert!(encoder.encode(b"[1", true, &mut Vec::new()).is_err());
}

/// All of RFC 8949 appendix A: what JSON can say comes out as it stands there.
#[test]
fn appendix_a_decodes() {
    let folder = std::env::var_os("LONGWIRE_DATA").map_or_else(
        || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        std::path::PathBuf::from,
    );
    let Ok(text) = std::fs::read_to_string(folder.join("json_rest/cbor/appendix_a.json")) else {
        println!("the vectors of appendix A are not there: 1 file left out");
        return;
    };
    let vectors: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let (mut decoded, mut shown) = (0, 0);
    for vector in &vectors {
        let hex = vector["hex"].as_str().unwrap();
        let bytes: Vec<u8> = (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        if hex == "f818" {
            // In RFC 7049, the table before; RFC 8949 §3.3 says that it is not well-formed.
            assert!(proto::cbor::check::<16>(&bytes).is_err());
            shown += 1;
            continue;
        }
        assert!(proto::cbor::check::<16>(&bytes).is_ok(), "{hex}");
        if let Some(notation) = vector["diagnostic"].as_str() {
            let ours = proto::cbor::Diagnostic(&bytes).to_string();
            // Floats with an indication of their size and the like are written in other ways too.
            assert_eq!(ours.replace(' ', ""), notation.replace(' ', ""), "{hex}");
            shown += 1;
        }
        let Some(value) = vector.get("decoded") else { continue };
        let json: serde_json::Value =
            serde_json::from_slice(&to_json(&bytes, &Limits::default()).unwrap()).unwrap();
        assert!(same(&json, value), "{hex}: {json} is not {value}");
        decoded += 1;
        let text = value.to_string();
        assert_eq!(back(&coded(&text)), text, "{hex}");
    }
    println!("{} vectors, {decoded} as JSON, {shown} in diagnostic notation", vectors.len());
    assert_eq!(decoded + shown, vectors.len());
    // And JSON that others wrote: the file itself.
    let own = coded(&text);
    let back: serde_json::Value =
        serde_json::from_slice(&to_json(&own, &Limits::default()).unwrap()).unwrap();
    assert_eq!(back, serde_json::Value::Array(vectors));
    println!("the file: {} bytes of JSON, {} of CBOR", text.len(), own.len());
}

/// Equal values; a number is equal to another of the same double.
fn same(a: &serde_json::Value, b: &serde_json::Value) -> bool {
    match (a, b) {
        (serde_json::Value::Number(a), serde_json::Value::Number(b)) => a.as_f64() == b.as_f64(),
        (serde_json::Value::Array(a), serde_json::Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (serde_json::Value::Object(a), serde_json::Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((k, a), (l, b))| k == l && same(a, b))
        }
        _ => a == b,
    }
}

const DOCUMENT: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\
    <!DOCTYPE s:e PUBLIC \"a\" \"b\" [<!ENTITY x \"y\">]><!--c--><?t d?>\
    <s:e xmlns:s=\"urn:s\" xmlns=\"urn:d\" s:a=\"12345\" b=\"&lt;&#xA;&quot;\"><a>12345</a>\
    <a b=\"urn:s\"/>text &amp;&gt;&x;<s:e>12345</s:e></s:e><?end?>";

#[test]
fn documents_come_back() {
    let limits = Limits::default();
    let cbor = from_xml(DOCUMENT.as_bytes(), &Settings::default(), &limits).unwrap();
    println!("{} bytes: {}", cbor.len(), proto::cbor::Diagnostic(&cbor));
    assert!(proto::cbor::check::<64>(&cbor).is_ok());
    assert!(cbor.len() * 2 < DOCUMENT.len());
    let back = to_xml(&cbor, &limits).unwrap();
    assert_eq!(String::from_utf8(back).unwrap(), DOCUMENT);
    // The example of docs/formats/cbor-xml.md.
    let small = br#"<a x="one"><b>one</b><b/></a>"#;
    let cbor = from_xml(small, &Settings::default(), &limits).unwrap();
    let shown = proto::cbor::Diagnostic(&cbor).to_string();
    assert_eq!(shown, r#"[["a", {"x": "one"}, ["b", 0], [2]]]"#);
    assert!(from_xml(b"<a>", &Settings::default(), &limits).is_err());
    assert!(from_xml(b"<a/>", &Settings { deterministic: true }, &limits).is_err());
}

#[test]
fn documents_come_back_in_parts_of_any_size() {
    let limits = Limits::default();
    for len in [1, 2, 5, 100, 10_000] {
        let mut encoder = XmlEncoder::new(&limits).unwrap();
        let mut cbor = Vec::new();
        for part in DOCUMENT.as_bytes().chunks(len) {
            encoder.encode(part, false, &mut cbor).unwrap();
        }
        encoder.encode(b"", true, &mut cbor).unwrap();
        assert!(proto::cbor::check::<64>(&cbor).is_ok());
        assert_eq!(to_xml(&cbor, &limits).unwrap(), DOCUMENT.as_bytes());
        let (mut decoder, mut out, mut rest) = (XmlDecoder::new(&limits), Vec::new(), Vec::new());
        for part in cbor.chunks(len) {
            rest.extend_from_slice(part);
            let step = decoder.decode(&rest, false, &mut out).unwrap();
            rest.drain(..step.used);
        }
        assert!(decoder.decode(&rest, true, &mut out).unwrap().done);
        assert_eq!(out, DOCUMENT.as_bytes());
    }
}

#[test]
fn only_documents_come_out() {
    use proto::cbor::Encoder as Items;
    type Fill = dyn Fn(&mut Items<Vec<u8>>) -> Result<(), proto::Error>;
    let limits = Limits::default();
    let document = |fill: &Fill| {
        let mut items = Items::new(Vec::new());
        items.start_array().unwrap();
        fill(&mut items).unwrap();
        items.end().unwrap();
        to_xml(&items.into_sink(), &limits)
    };
    let element = |name: &'static str| {
        document(&move |items| {
            items.array(1)?;
            items.text(name)
        })
    };
    assert_eq!(element("a").unwrap(), b"<a/>");
    for name in ["", "a b", "a:b:c", "a><b", ":a", "p:a"] {
        assert!(element(name).is_err(), "{name}");
    }
    let kind = |kind: i64, parts: &'static [&'static str]| {
        document(&move |items| {
            items.array(1 + parts.len() as u64)?;
            items.integer(kind)?;
            parts.iter().try_for_each(|part| items.text(part))?;
            items.array(1)?;
            items.text("a")
        })
    };
    assert_eq!(kind(-1, &["c"]).unwrap(), b"<!--c--><a/>");
    for parts in [&["a--b"][..], &[], &["a", "b"]] {
        assert!(kind(-1, parts).is_err(), "{parts:?}");
    }
    assert!(kind(-2, &["xml", "version='1.0'"]).is_err());
    assert!(kind(-2, &["t", "?><b/>"]).is_err());
    assert!(kind(-5, &["amp"]).is_err(), "an entity outside the root");
    assert!(kind(-6, &[]).is_err());
    for hex in
        [&b""[..], b"\x80", b"\x81\x80", b"\x81\x81\x00", b"\x61a", b"\x82\x81\x61a\x81\x61b"]
    {
        assert!(to_xml(hex, &limits).is_err(), "{hex:?}");
    }
    assert!(to_xml(b"\x81\x82\x61a\x61\x01", &limits).is_err(), "a control character");
}

/// Arrays of a stated length and such that end in a break, in one another.
#[test]
fn lengths_and_breaks_mix() {
    let limits = Limits::default();
    for hex in [
        &b"\x81\x9f\x61a\xff"[..],
        b"\x9f\x81\x61a\xff",
        b"\x81\x82\x61a\xa0",
        b"\x81\x82\x61a\xbf\xff",
    ] {
        assert_eq!(to_xml(hex, &limits).unwrap(), b"<a/>", "{hex:02x?}");
        // Nothing comes behind a document's end.
        let behind = [hex, b"\x60"].concat();
        assert!(to_xml(&behind, &limits).is_err(), "{hex:02x?}");
    }
}

fn xml_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "[a-z &<>\"'\u{e4}\n\r\t]{1,12}".prop_map(|text| {
            let mut out = Vec::new();
            crate::xml::escape(&text, false, &mut out);
            String::from_utf8(out).unwrap()
        }),
        Just("<!--c-->".to_owned()),
        Just("<?p q?>".to_owned())
    ];
    let tree = leaf.prop_recursive(4, 40, 5, |inner| {
        ("[a-d]{1,3}", "[a-z]{0,5}", proptest::collection::vec(inner, 0..5)).prop_map(
            |(name, value, inner)| {
                if value.is_empty() {
                    format!("<{name}>{}</{name}>", inner.concat())
                } else {
                    let inner = inner.concat();
                    format!(
                        "<n:{name} xmlns:n=\"urn:n\" x=\"{value}\" n:y=\"abc\">{inner}</n:{name}>"
                    )
                }
            },
        )
    });
    tree.prop_map(|tree| format!("<root>{tree}</root>"))
}

fn json_text() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?",
        any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(|f| format!("{f:?}")),
        any::<i64>().prop_map(|i| i.to_string()),
    ];
    let string = any::<String>().prop_map(|s| serde_json::Value::String(s).to_string());
    let leaf = prop_oneof![number, string, Just("true".to_owned()), Just("null".to_owned())];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6)
                .prop_map(|v| format!("[{}]", v.join(","))),
            proptest::collection::vec(("[a-c\u{e4}]{0,2}", inner), 0..6).prop_map(|v| {
                let pairs: Vec<_> = v.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
                format!("{{{}}}", pairs.join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn json_comes_back(json in json_text(), len in 1..50_usize) {
        let cbor = coded(&json);
        prop_assert!(proto::cbor::check::<64>(&cbor).is_ok());
        let text = back(&cbor);
        // serde_json escapes as we do, but for U+007F and U+2028, which nobody must escape.
        prop_assert_eq!(&text, &json);
        prop_assert_eq!(streamed(json.as_bytes(), len), json.as_bytes());
    }

    #[test]
    fn xml_comes_back(xml in xml_text()) {
        let limits = Limits::default();
        let first = from_xml(xml.as_bytes(), &Settings::default(), &limits).unwrap();
        let text = to_xml(&first, &limits).unwrap();
        prop_assert_eq!(from_xml(&text, &Settings::default(), &limits).unwrap(), first);
        // As written but for empty tags.
        let expected = xml.replace("></root>", "/>").len();
        prop_assert!(text.len() <= expected.max(xml.len()));
    }

    #[test]
    fn damaged_documents_do_not_panic(
        xml in xml_text(), at in any::<prop::sample::Index>(), bit in 0..8_u8, cut: bool,
    ) {
        let limits = Limits { output_bytes: 1 << 16, ..Limits::default() };
        let cbor = from_xml(xml.as_bytes(), &Settings::default(), &limits).unwrap();
        for mut bytes in [xml.into_bytes(), cbor] {
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] ^= 1 << bit }
            let _ = from_xml(&bytes, &Settings::default(), &limits);
            if let Ok(xml) = to_xml(&bytes, &limits) {
                prop_assert!(from_xml(&xml, &Settings::default(), &limits).is_ok());
            }
        }
    }

    #[test]
    fn no_input_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let limits = Limits { output_bytes: 1 << 16, ..Limits::default() };
        let _ = to_json(&bytes, &limits);
        let _ = to_xml(&bytes, &limits);
        let _ = from_xml(&bytes, &Settings::default(), &limits);
        let _ = from_json(&bytes, &Settings::default(), &limits);
    }

    #[test]
    fn damaged_messages_do_not_panic(
        json in json_text(), at in any::<prop::sample::Index>(), bit in 0..8_u8, cut: bool,
    ) {
        for mut bytes in [json.clone().into_bytes(), coded(&json)] {
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] ^= 1 << bit }
            let _ = to_json(&bytes, &Limits::default());
            let _ = from_json(&bytes, &Settings { deterministic: true }, &Limits::default());
        }
    }
}
