use proptest::prelude::*;

use super::*;

fn limits() -> Limits {
    Limits { output_bytes: 1 << 16, depth: 64, table_bytes: 1 << 20, message_bytes: 1 << 16 }
}

fn there(document: &[u8], from: Notation, to: Notation) -> Result<Vec<u8>, Error> {
    translate(document, from, to, &limits())
}

fn refused(document: &[u8], from: Notation, to: Notation) -> String {
    there(document, from, to).unwrap_err().to_string()
}

const TRACK: &[u8] =
    br#"<t:track xmlns:t="urn:t" id="7"><!--x--><t:pos unit='deg'>59.90 10.70</t:pos>
<?go now?></t:track>"#;

#[test]
fn json_goes_as_cbor_and_its_values_come_back() {
    let json = br#" { "lat": 59.90, "big": 123456789012345678901234567890, "e": 1e21,
        "neg": -0, "list": [true, null, "\u00e9\ud83d\ude00"], "lat": 1 } "#;
    let cbor = there(json, Notation::Json, Notation::Cbor).unwrap();
    let back = there(&cbor, Notation::Cbor, Notation::Json).unwrap();
    let text = String::from_utf8(back).unwrap();
    assert_eq!(
        text,
        "{\"lat\":59.90,\"big\":123456789012345678901234567890,\"e\":1e21,\"neg\":-0,\
         \"list\":[true,null,\"é😀\"],\"lat\":1}"
    );
}

#[test]
fn cbor_of_others_becomes_json_where_nothing_is_lost() {
    for (cbor, json) in [
        // {"a": 59.9 as a double}
        (&b"\xa1\x61\x61\xfb\x40\x4d\xf3\x33\x33\x33\x33\x33"[..], "{\"a\":59.9}"),
        // Self-described, an array of indefinite length.
        (b"\xd9\xd9\xf7\x9f\x01\xf9\x3c\x00\xff", "[1,1.0]"),
        // 2^64 as a bignum, -1.5 as a decimal fraction.
        (b"\x82\xc2\x49\x01\0\0\0\0\0\0\0\0\xc4\x82\x20\x2e", "[18446744073709551616,-1.5]"),
    ] {
        let text = there(cbor, Notation::Cbor, Notation::Json).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), json);
    }
    for (cbor, said) in [
        (&b"\x41\x00"[..], "bytes"),
        (b"\x5f\x41\x00\xff", "bytes"),
        (b"\xc1\x00", "tag 1"),
        (b"\xf7", "simple value 23"),
        (b"\xf9\x7c\x00", "not finite"),
        (b"\xa1\x01\x02", "key"),
        (b"\x01\x02", "behind"),
        (b"\x82\x01", "CBOR"),
        (b"", "CBOR"),
    ] {
        let error = refused(cbor, Notation::Cbor, Notation::Json);
        assert!(error.contains(said), "{cbor:x?}: {error}");
    }
    let deep = [vec![0x81; 100], vec![0]].concat();
    there(&deep, Notation::Cbor, Notation::Json).unwrap_err();
}

#[test]
fn xml_goes_as_exi_and_as_cbor_and_its_infoset_comes_back() {
    let long = [b"<r>".to_vec(), b"<p at='1'>x</p>".repeat(400), b"</r>".to_vec()].concat();
    for xml in [TRACK, &long] {
        for notation in [Notation::Exi, Notation::CborXml] {
            let coded = there(xml, Notation::Xml, notation).unwrap();
            assert!(coded.len() < xml.len(), "{notation:?}");
            let back = there(&coded, notation, Notation::Xml).unwrap();
            assert!(same_xml(xml, &back, &limits()).unwrap(), "{notation:?}");
        }
        let exi = there(xml, Notation::Xml, Notation::Exi).unwrap();
        let cbor = there(&exi, Notation::Exi, Notation::CborXml).unwrap();
        let back = there(&cbor, Notation::CborXml, Notation::Exi).unwrap();
        let back = there(&back, Notation::Exi, Notation::Xml).unwrap();
        assert!(same_xml(xml, &back, &limits()).unwrap());
    }
    // It says itself what it is: no option is agreed on.
    let exi = there(TRACK, Notation::Xml, Notation::Exi).unwrap();
    assert_eq!(exi[0] >> 5, 0b101, "distinguishing bits, and options follow (EXI §5)");
}

#[test]
fn what_would_be_lost_stays_as_it_is() {
    for (document, from, to, said) in [
        (&b"{}"[..], Notation::Json, Notation::Exi, "json cannot be in exi"),
        (b"<a/>", Notation::Xml, Notation::Cbor, "xml cannot be in cbor"),
        (b"{", Notation::Json, Notation::Cbor, "cbor: at byte"),
        (b"<a>", Notation::Xml, Notation::Exi, "xml"),
        (b"<!DOCTYPE a><a/>", Notation::Xml, Notation::CborXml, "come back"),
        (b"<a><Signature/></a>", Notation::Xml, Notation::Exi, "signed"),
        (b"{\"signature\":\"x\"}", Notation::Json, Notation::Cbor, "signed"),
        (b"\xa1\x69signature\x61x", Notation::Cbor, Notation::Json, "signed"),
        (b"<?xml version='1.0' encoding='latin1'?><a/>", Notation::Xml, Notation::Exi, "UTF-8"),
        (b"not exi", Notation::Exi, Notation::Xml, "exi"),
    ] {
        let error = refused(document, from, to);
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn what_others_have_signed_or_declared_does_not_become_xml() {
    let signed = b"<a xmlns:ds='http://www.w3.org/2000/09/xmldsig#'><ds:Signature/></a>";
    let declared = b"<!DOCTYPE a [<!ENTITY e 'x'>]><a/>";
    for (text, said) in [(&signed[..], "signed"), (&declared[..], "document type")] {
        let coded = cbor::from_xml(text, &cbor::Settings::default(), &limits()).unwrap();
        let why = refused(&coded, Notation::CborXml, Notation::Xml);
        assert!(why.contains(said), "{why}");
    }
}

#[test]
fn the_deepest_json_comes_back_from_cbor() {
    for number in ["1.5", "18446744073709551616.5"] {
        let json = format!("{}{number}{}", "[".repeat(63), "]".repeat(63));
        let coded = there(json.as_bytes(), Notation::Json, Notation::Cbor).unwrap();
        let back = there(&coded, Notation::Cbor, Notation::Json).unwrap();
        assert_eq!(there(&back, Notation::Json, Notation::Cbor).unwrap(), coded);
    }
}

#[test]
fn limits_hold() {
    let json = [&b"["[..], &b"0,".repeat(1 << 15), b"0]"].concat();
    let error = refused(&json, Notation::Json, Notation::Cbor);
    assert!(error.contains("message_bytes"), "{error}");
    // A few bytes of a string table stand for much.
    let text = "x".repeat(1000);
    let mut xml = format!("<r><a>{text}</a>");
    (0..60).for_each(|_| xml.push_str(&format!("<a>{text}</a>")));
    xml.push_str("</r>");
    let exi = there(xml.as_bytes(), Notation::Xml, Notation::Exi).unwrap();
    assert!(exi.len() < 1200, "{}", exi.len());
    let few = Limits { output_bytes: 10_000, ..limits() };
    let error = translate(&exi, Notation::Exi, Notation::Xml, &few).unwrap_err().to_string();
    assert!(error.contains("output_bytes"), "{error}");
}

#[test]
fn media_types_say_what_a_document_is() {
    for (text, notation) in [
        ("application/json; charset=utf-8", Some(Notation::Json)),
        ("application/geo+JSON", Some(Notation::Json)),
        ("application/senml+cbor", Some(Notation::Cbor)),
        ("text/xml", Some(Notation::Xml)),
        ("application/soap+xml", Some(Notation::Xml)),
        ("application/exi", Some(Notation::Exi)),
        ("application/x.longwire.xml+cbor", Some(Notation::CborXml)),
        ("text/plain", None),
        ("json", None),
        ("", None),
    ] {
        assert_eq!(Notation::of_media_type(text), notation, "{text}");
    }
    for (notation, name, media_type) in Notation::ALL {
        assert_eq!(Notation::of_media_type(media_type), Some(notation));
        assert_eq!((notation.name(), notation.media_type()), (name, media_type));
    }
}

fn notation() -> impl Strategy<Value = Notation> {
    proptest::sample::select(Notation::ALL.map(|(notation, ..)| notation).to_vec())
}

/// What was made of a document says the same after it has gone into text, or out of text into what
/// it came from, and back. What may be signed goes into no binary form.
fn there_and_back(out: &[u8], from: Notation, to: Notation) -> Result<(), String> {
    if from == to {
        // It is a copy, whatever it says.
        return Ok(());
    }
    let text = to.text();
    let between = if to == text { from } else { text };
    let said = |error| format!("{from:?} to {to:?}, {between:?} and back: {error:?}");
    let there = match translate(out, to, between, &limits()) {
        Ok(there) => there,
        Err(_) if to == text && Marks::of(out).signed => return Ok(()),
        Err(error) => return Err(said(error)),
    };
    if between == text && Marks::of(&there).signed {
        return Ok(());
    }
    let back = translate(&there, between, to, &limits()).map_err(said)?;
    match back == out {
        true => Ok(()),
        false => Err(format!(
            "{from:?} to {to:?}: {} is {} then",
            String::from_utf8_lossy(out),
            String::from_utf8_lossy(&back)
        )),
    }
}

/// JSON and XML, with parts that are neither.
fn documents() -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(vec![
        "<a>",
        "</a>",
        "<b x='1' y=\"2\"/>",
        "<n:a xmlns:n='urn:n'>",
        "</n:a>",
        "text",
        " ",
        "\n",
        "&amp;",
        "&#233;",
        "<!-- c -->",
        "<?p i?>",
        "<![CDATA[<]]>",
        "{\"a\":",
        "}",
        "[",
        "]",
        ",",
        "1",
        "-0.5",
        "1e300",
        "18446744073709551616",
        "\"é\"",
        "null",
        "true",
        "\"b\":{}",
    ]);
    let pieces = proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
    let within = pieces.clone().prop_map(|pieces| format!("<r xmlns='urn:r'>{pieces}</r>"));
    let array = proptest::collection::vec(
        proptest::sample::select(vec!["1", "-0.5", "\"é\"", "null", "{\"a\":[1,{}]}", "1.50"]),
        0..8,
    )
    .prop_map(|items| format!("[{}]", items.join(",")));
    prop_oneof![pieces, within, array]
}

proptest! {
    /// Whatever is translated comes back the same, and nothing makes it panic or pass its limits.
    #[test]
    fn any_bytes(document in proptest::collection::vec(any::<u8>(), 0..300),
                 from in notation(), to in notation()) {
        let small = Limits { output_bytes: 2000, ..limits() };
        if let Ok(out) = translate(&document, from, to, &small) {
            prop_assert!(out.len() <= 2000);
            prop_assert_eq!(there_and_back(&out, from, to), Ok(()));
        }
    }

    /// The same of documents that are most often ones.
    #[test]
    fn any_documents(document in documents(), from in notation(), to in notation()) {
        let Ok(there) = translate(document.as_bytes(), from.text(), from, &limits()) else {
            return Ok(());
        };
        if let Ok(out) = translate(&there, from, to, &limits()) {
            prop_assert_eq!(there_and_back(&out, from, to), Ok(()));
        }
    }

    /// Values of JSON survive, whatever they are.
    #[test]
    fn any_json(number in any::<f64>(), text in "\\PC*", whole in any::<i64>()) {
        let text = text.replace(['\\', '"'], "/");
        let number = if number.is_finite() { number } else { 0.5 };
        let json = format!("{{\"a{text}\":[{number:?},{whole}],\"b\":\"{text}\"}}");
        // Words of signatures are told elsewhere.
        prop_assume!(!Marks::of(json.as_bytes()).signed);
        let cbor = there(json.as_bytes(), Notation::Json, Notation::Cbor).unwrap();
        let back = there(&cbor, Notation::Cbor, Notation::Json).unwrap();
        prop_assert_eq!(String::from_utf8(back).unwrap(), json);
    }
}
