//! Documents against the codecs of the workspace, and what is wrong with some.

use std::string::{String, ToString as _};
use std::vec::Vec;
use std::{format, vec};

use codec::{Limits, cbor, wbxml};
use proptest::prelude::*;

use super::tokens::kind;
use super::{CBOR, Event, Form, Name, Reader, Tokens, WBXML, Writer, XML};
use crate::{Error, soap};

const SERVICE: &str = "urn:longwire:benchmark:1";

/// What a reader sees, with pieces of text joined.
fn events(document: &[u8], form: &'static Form, tokens: Tokens<'_>) -> Result<Vec<String>, Error> {
    let mut reader = Reader::new(document, form, tokens);
    let (mut all, mut text) = (Vec::new(), String::new());
    loop {
        let event = reader.next()?;
        match event {
            Event::Text(piece) => text += piece,
            Event::Char(char) => text.push(char),
            _ if !text.is_empty() => all.push(format!("'{}'", core::mem::take(&mut text))),
            _ => {}
        }
        match event {
            Event::Start(found) => {
                all.push(format!("{{{}}}{}", found.space.parts.concat(), found.local));
            }
            Event::End => all.push("/".to_string()),
            Event::Over => return Ok(all),
            _ => {}
        }
    }
}

/// An element of a tree.
#[derive(Clone, Debug)]
enum Node {
    Element(usize, usize, Vec<Node>),
    Text(String),
}

const SPACES: [&str; 4] = ["", SERVICE, "http://schemas.xmlsoap.org/soap/envelope/", "urn:b"];
const LOCALS: [&str; 6] = ["Envelope", "Body", "nop", "item", "faultcode", "detail"];

fn put(writer: &mut Writer<'_>, node: &Node) -> Result<(), Error> {
    match node {
        Node::Text(text) => writer.text(text),
        Node::Element(space, local, children) => {
            writer.begin(Name { space: SPACES[*space], local: LOCALS[*local] })?;
            if *local == 3 {
                writer.attribute("href", "http://www.a.org/?x=1&y=\"<2>\"")?;
            }
            // A prefix that nothing uses, for the namespace of tokens.
            if *local == 5 {
                writer.attribute("xmlns:p", SPACES[2])?;
            }
            children.iter().try_for_each(|child| put(writer, child))?;
            writer.end()
        }
    }
}

/// The same, whatever fails on the way.
fn insist(writer: &mut Writer<'_>, node: &Node) {
    match node {
        Node::Text(text) => drop(writer.text(text)),
        Node::Element(space, local, children) => {
            let _ = writer.begin(Name { space: SPACES[*space], local: LOCALS[*local] });
            children.iter().for_each(|child| insist(writer, child));
            let _ = writer.end();
        }
    }
}

fn encode(
    node: &Node,
    form: &'static Form,
    tokens: Tokens<'_>,
    room: usize,
) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; room];
    let mut writer = Writer::new(&mut bytes, form, tokens);
    put(&mut writer, node)?;
    let len = writer.finish()?;
    bytes.truncate(len);
    Ok(bytes)
}

fn tree() -> impl Strategy<Value = Node> {
    let text = "[a-z0-9 &<>\"'\t\ré€]{1,12}".prop_map(Node::Text);
    let leaf = (0..4_usize, 0..6_usize).prop_map(|(s, l)| Node::Element(s, l, Vec::new()));
    let inner = prop_oneof![text, leaf].prop_recursive(4, 24, 4, |inner| {
        (0..4_usize, 0..6_usize, prop::collection::vec(inner, 0..4))
            .prop_map(|(space, local, children)| Node::Element(space, local, children))
    });
    (0..4_usize, 0..6_usize, prop::collection::vec(inner, 0..4))
        .prop_map(|(space, local, children)| Node::Element(space, local, children))
}

proptest! {
    #[test]
    fn all_forms_say_the_same_and_the_codecs_agree(tree in tree()) {
        let limits = Limits::default();
        let xml = encode(&tree, &XML, Tokens::NONE, 8192).unwrap();
        let said = events(&xml, &XML, Tokens::NONE).unwrap();
        for tokens in [Tokens::NONE, Tokens::SOAP] {
            let ours = encode(&tree, &WBXML, tokens, 8192).unwrap();
            prop_assert_eq!(&events(&ours, &WBXML, tokens).unwrap(), &said);
            let settings = wbxml::Settings::default();
            let text = wbxml::decode(&ours, &settings, &limits).unwrap();
            prop_assert_eq!(&events(&text, &XML, Tokens::NONE).unwrap(), &said);
        }
        let theirs = wbxml::encode(&xml, &wbxml::Settings::default(), &limits).unwrap();
        let is_soap = theirs[1] != 1;
        let tokens = if is_soap { Tokens::SOAP } else { Tokens::NONE };
        prop_assert_eq!(&events(&theirs, &WBXML, tokens).unwrap(), &said);
        let ours = encode(&tree, &CBOR, Tokens::NONE, 8192).unwrap();
        prop_assert_eq!(&events(&ours, &CBOR, Tokens::NONE).unwrap(), &said);
        let text = cbor::to_xml(&ours, &limits).unwrap();
        prop_assert_eq!(&events(&text, &XML, Tokens::NONE).unwrap(), &said);
        let theirs = cbor::from_xml(&xml, &cbor::Settings::default(), &limits).unwrap();
        prop_assert_eq!(&events(&theirs, &CBOR, Tokens::NONE).unwrap(), &said);
    }

    #[test]
    fn a_room_that_is_too_small_is_an_error_and_the_least_is_enough(tree in tree()) {
        for (form, tokens) in [
            (&XML, Tokens::NONE), (&CBOR, Tokens::NONE), (&WBXML, Tokens::NONE),
            (&WBXML, Tokens::SOAP),
        ] {
            let whole = encode(&tree, form, tokens, 8192).unwrap();
            prop_assert_eq!(&encode(&tree, form, tokens, whole.len()).unwrap(), &whole);
            prop_assert_eq!(
                encode(&tree, form, tokens, whole.len() - 1).unwrap_err(), Error::NoRoom);
        }
    }

    #[test]
    fn a_document_that_was_cut_is_not_finished(
        tree in tree(),
        less in any::<prop::sample::Index>(),
    ) {
        let forms = [(&XML, Tokens::NONE), (&CBOR, Tokens::NONE), (&WBXML, Tokens::SOAP)];
        for (form, tokens) in forms {
            let mut bytes = vec![0; 8192];
            let mut writer = Writer::new(&mut bytes, form, tokens);
            insist(&mut writer, &tree);
            let len = writer.finish().unwrap();
            let mut writer = Writer::new(&mut bytes[..less.index(len)], form, tokens);
            insist(&mut writer, &tree);
            prop_assert_eq!(writer.finish(), Err(Error::NoRoom));
        }
    }

    #[test]
    fn any_bytes_end_in_events_or_an_error(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        kept in 0..200_usize,
        tree in tree(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        for form in [&XML, &WBXML, &CBOR] {
            for tokens in [Tokens::NONE, Tokens::SOAP] {
                let _ = events(&bytes, form, tokens);
                let mut near = encode(&tree, form, tokens, 8192).unwrap();
                let place = at.index(near.len());
                near[place] = byte;
                let _ = events(&near, form, tokens);
                near.truncate(kept);
                let _ = events(&near, form, tokens);
            }
        }
    }
}

#[test]
fn the_packed_table_is_that_of_the_codec() {
    let table = wbxml::tables().iter().find(|table| table.name == "SOAP").unwrap();
    assert_eq!(table.packed().unwrap(), Tokens::SOAP.packed());
    assert_eq!(Tokens::new(Tokens::SOAP.packed()), Ok(Tokens::SOAP));
    assert_eq!(Tokens::SOAP.number(), 0x4c57);
    let body = Tokens::SOAP.find(kind::TAG, 0, 7).unwrap();
    assert_eq!((body.text(), body.space()), (Ok("Body"), Ok(SPACES[2])));
    for wrong in [
        &b""[..],
        b"\0\0\0",
        b"\0\0\0\x01\x01",
        b"\0\0\0\x01\x01\x05\x02a",
        b"\0\0\0\x01\x06\x05\x01a",
        b"\0\0\0\x01\x01\x05\x01\xff",
    ] {
        assert_eq!(Tokens::new(wrong), Err(Error::Malformed));
    }
}

#[test]
fn what_services_write_is_read() {
    for (document, said) in [
        (
            "\u{feff}<?xml version='1.0'?><!-- a --><s:Envelope xmlns:s='urn:s' a=\"1\">\n \
             <s:Body><n:r xmlns:n=\"urn:n\"><v>1 &lt; &#x20ac;<![CDATA[<&>]]></v></n:r></s:Body>\
             </s:Envelope>\n",
            "{urn:s}Envelope|'\n '|{urn:s}Body|{urn:n}r|{}v|'1 < €<&>'|/|/|/|/",
        ),
        ("<a xmlns='urn:a'><b xmlns=''/><c/></a>", "{urn:a}a|{}b|/|{urn:a}c|/|/"),
        (
            "<p:a xmlns:p='urn:1'><p:b xmlns:p='urn:2'/><p:c/></p:a>",
            "{urn:1}a|{urn:2}b|/|{urn:1}c|/|/",
        ),
    ] {
        assert_eq!(events(document.as_bytes(), &XML, Tokens::NONE).unwrap().join("|"), said);
    }
}

#[test]
fn a_character_set_that_is_not_read_is_refused() {
    let read = |declaration: &str, between: &str| {
        let document = format!("<?xml version=\"1.0\"{declaration}?>{between}<a>e</a>");
        events(document.as_bytes(), &XML, Tokens::NONE).map(|said| said.join("|"))
    };
    for good in [
        "",
        " encoding='UTF-8'",
        " encoding = \"utf-8\" standalone='yes'",
        "\nencoding='us-ascii'",
        " standalone=\"yes\"",
    ] {
        assert_eq!(read(good, "").as_deref(), Ok("{}a|'e'|/"), "{good}");
    }
    for wrong in [
        " encoding='ISO-8859-1'",
        " encoding=\"UTF-16\"",
        " encoding='windows-1252' standalone='no'",
        " encoding=''",
        " encoding=UTF-8",
        " encoding",
    ] {
        assert_eq!(read(wrong, ""), Err(Error::UnknownKind), "{wrong}");
    }
    // Other instructions say what they like.
    assert_eq!(read("", "<?xml-model encoding='x'?>").as_deref(), Ok("{}a|'e'|/"));
}

#[test]
fn a_literal_in_the_namespace_of_a_token_keeps_it_beside_a_prefix() {
    let mut room = [0; 300];
    let mut writer = Writer::new(&mut room, &WBXML, Tokens::SOAP);
    writer.begin(Name { space: "urn:r", local: "r" }).unwrap();
    writer.attribute("xmlns:s", SPACES[2]).unwrap();
    writer.begin(Name { space: SPACES[2], local: "Body" }).unwrap();
    writer.begin(Name { space: SPACES[2], local: "Extra" }).unwrap();
    (0..3).for_each(|_| writer.end().unwrap());
    let len = writer.finish().unwrap();
    let said = events(&room[..len], &WBXML, Tokens::SOAP).unwrap().concat();
    let soap = "{http://schemas.xmlsoap.org/soap/envelope/}";
    assert_eq!(said, format!("{{urn:r}}r{soap}Body{soap}Extra///"));
}

#[test]
fn what_is_wrong_has_a_name() {
    let xml = |text: &str| events(text.as_bytes(), &XML, Tokens::NONE).unwrap_err();
    let deep = "<a>".repeat(17);
    for (text, error) in [
        ("", Error::Truncated),
        ("<a", Error::Truncated),
        ("<a>", Error::Truncated),
        ("<a></b>", Error::Malformed),
        ("<a/><b/>", Error::Malformed),
        ("x<a/>", Error::Malformed),
        ("<a b></a>", Error::Malformed),
        ("<a b='<'/>", Error::Malformed),
        ("<p:a/>", Error::Malformed),
        ("<a>&x;</a>", Error::Malformed),
        ("<a>&#0;</a>", Error::Malformed),
        ("<a>&#xd800;</a>", Error::Malformed),
        ("<!DOCTYPE a []><a/>", Error::UnknownKind),
        (&deep, Error::TooDeep),
    ] {
        assert_eq!(xml(text), error, "{text}");
    }
    let mut prefixes = String::from("<a");
    for number in 0..17 {
        prefixes += &format!(" xmlns:p{number}='urn:a'");
    }
    assert_eq!(xml(&(prefixes + "/>")), Error::TooManyPrefixes);
    let tokens = |bytes: &[u8]| events(bytes, &WBXML, Tokens::SOAP).unwrap_err();
    for (bytes, error) in [
        (&b"\x03\x01\x6a\x00\x45"[..], Error::UnknownToken),
        (b"\x03\x81\x98\x57\x6a\x00\x7f", Error::UnknownToken),
        (b"\x03\x81\x98\x57\x6a\x00\x45\x46", Error::Truncated),
        (b"\x03\x81\x98\x57\x6a\x00\x05\x05", Error::Malformed),
        (b"\x03\x81\x98\x57\x6a\x00\x04\x00", Error::Malformed),
        (b"\x03\x81\x98\x57\x04\x00\x05", Error::UnknownKind),
        (b"\x04\x01\x6a\x00\x05", Error::UnknownKind),
        (b"\x03\x81\x98\x57\x6a\x00\x45\xc3\x01a\x01", Error::UnknownKind),
        (b"\x03\x01\x6a\x7f", Error::Truncated),
    ] {
        assert_eq!(tokens(bytes), error, "{bytes:02x?}");
    }
    let nested = [&b"\x03\x81\x98\x57\x6a\x00"[..], &[0x45; 1000]].concat();
    assert_eq!(tokens(&nested), Error::TooDeep);
    let cbor = |bytes: &[u8]| events(bytes, &CBOR, Tokens::NONE).unwrap_err();
    for (bytes, error) in [
        (&b""[..], Error::Truncated),
        (b"\x01", Error::Malformed),
        (b"\x80", Error::Malformed),
        (b"\x81\x80", Error::Malformed),
        (b"\x81\x81\x00", Error::Malformed),
        (b"\x81\x82\x61a\x00", Error::Malformed),
        (b"\x82\x81\x61a\x81\x61b", Error::Malformed),
        (b"\x81\x81\x7f\x61a\xff", Error::UnknownKind),
        (b"\x81\x9b\x00\x00\x00\x00\x00\x00\x00\x01\x61a", Error::UnknownKind),
        (b"\x81\x9a\xff\xff\xff\xff\x61a", Error::Malformed),
        (b"\x81\x82\x61a\xa1\x61b", Error::Truncated),
    ] {
        assert_eq!(cbor(bytes), error, "{bytes:02x?}");
    }
    // A reference to a name from the begin costs little, many of them far off too much.
    let mut far = b"\x9f\x9f\x61a".to_vec();
    far.extend(b"\x81\x61b".repeat(3000));
    far.extend(b"\x81\x19\x0b\xb7".repeat(3000));
    assert_eq!(cbor(&[&far[..], b"\xff\xff"].concat()), Error::TooComplex);
}

#[test]
fn calls_out_of_order_are_refused_and_nothing_is_written_behind_them() {
    type Call = fn(&mut Writer<'_>) -> Result<(), Error>;
    let mut room = [0; 200];
    let name = Name { space: "", local: "a" };
    let outside: [Call; 3] = [
        |writer| writer.text("x"),
        |writer| writer.end(),
        |writer| writer.begin(Name { space: "", local: "a b" }),
    ];
    let inside: [Call; 3] = [
        |writer| writer.attribute("xmlns", "urn:a"),
        |writer| writer.text("\0"),
        |writer| writer.text("x").and_then(|()| writer.attribute("b", "c")),
    ];
    let calls =
        outside.map(|call| (false, call)).into_iter().chain(inside.map(|call| (true, call)));
    for (is_inside, call) in calls {
        let mut writer = Writer::new(&mut room, &XML, Tokens::NONE);
        if is_inside {
            writer.begin(name).unwrap();
        }
        assert_eq!(call(&mut writer), Err(Error::Misuse));
        assert_eq!(writer.begin(name), Err(Error::Misuse));
        assert_eq!(writer.text("x"), Err(Error::Misuse));
        assert_eq!(writer.integer(1), Err(Error::Misuse));
        assert_eq!(writer.end(), Err(Error::Misuse));
        assert_eq!(soap::begin(&mut writer), Err(Error::Misuse));
        assert_eq!(writer.finish(), Err(Error::Misuse));
    }
    let mut writer = Writer::new(&mut room, &XML, Tokens::NONE);
    writer.begin(name).unwrap();
    writer.text("x").unwrap();
    writer.end().unwrap();
    assert_eq!(writer.begin(name), Err(Error::Misuse));
    let mut writer = Writer::new(&mut room, &CBOR, Tokens::NONE);
    for _ in 0..16 {
        writer.begin(name).unwrap();
    }
    assert_eq!(writer.begin(name), Err(Error::TooDeep));
    assert_eq!(writer.finish(), Err(Error::TooDeep));
    let mut writer = Writer::new(&mut room, &CBOR, Tokens::NONE);
    writer.begin(name).unwrap();
    assert_eq!(writer.finish(), Err(Error::Misuse));
}

#[test]
fn an_envelope_is_opened_and_a_fault_is_read() {
    let nop = Name { space: SERVICE, local: "getIntArrayResponse" };
    let item = Name { space: SERVICE, local: "item" };
    for (form, tokens) in [
        (&XML, Tokens::NONE),
        (&WBXML, Tokens::SOAP),
        (&WBXML, Tokens::NONE),
        (&CBOR, Tokens::NONE),
    ] {
        let mut room = [0; 512];
        let mut writer = Writer::new(&mut room, form, tokens);
        soap::begin(&mut writer).unwrap();
        writer.begin(nop).unwrap();
        for number in [7, i32::MIN, i32::MAX, 0] {
            writer.begin(item).unwrap();
            writer.integer(number).unwrap();
            writer.end().unwrap();
        }
        writer.end().unwrap();
        let len = soap::end(writer).unwrap();
        let mut reader = Reader::new(&room[..len], form, tokens);
        assert!(soap::open(&mut reader).unwrap().is(&nop));
        let mut numbers = Vec::new();
        while let Some(found) = soap::child(&mut reader).unwrap() {
            assert!(found.is(&item));
            numbers.push(soap::integer(&mut reader).unwrap());
        }
        assert_eq!(numbers, [7, i32::MIN, i32::MAX, 0]);
        soap::skip(&mut reader).unwrap();
    }
    let fault = b"<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'><e:Header><x/>\
        </e:Header><e:Body><e:Fault><faultcode>e:Client</faultcode><faultstring>no &#x20ac;\
        </faultstring></e:Fault></e:Body></e:Envelope>";
    let mut reader = Reader::new(fault, &XML, Tokens::NONE);
    assert_eq!(soap::open(&mut reader).unwrap_err(), Error::Fault);
    let mut room = [0; 5];
    assert_eq!(soap::fault(&mut reader.clone(), &mut room), Ok("no "));
    let mut room = [0; 6];
    assert_eq!(soap::fault(&mut reader, &mut room), Ok("no €"));
    for (document, error) in [
        ("<a/>", Error::NotSoap),
        ("<Envelope xmlns='http://www.w3.org/2003/05/soap-envelope'/>", Error::NotSoap),
        (
            "<Envelope xmlns='http://www.w3.org/2003/05/soap-envelope'><Body/></Envelope>",
            Error::NotSoap,
        ),
    ] {
        let mut reader = Reader::new(document.as_bytes(), &XML, Tokens::NONE);
        assert_eq!(soap::open(&mut reader).unwrap_err(), error);
    }
}
