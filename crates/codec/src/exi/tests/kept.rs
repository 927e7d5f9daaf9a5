//! What an encoder keeps from one document to the next is not to be seen in its streams.

use std::{fmt::Write, sync::Arc};

use proptest::prelude::*;

use super::ALIGNMENTS;
use crate::exi::{DocumentEncoder, Grammars, Options, Preserve, Schema, encode, schema::Document};
use crate::{Error, Limits};

const SCHEMA: &str = "<s:schema xmlns:s='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:1' \
    xmlns='urn:1'><s:element name='a'><s:complexType mixed='true'><s:sequence><s:any minOccurs='0' \
    maxOccurs='unbounded' processContents='lax'/></s:sequence><s:attribute name='b' type='s:int'/>\
    <s:anyAttribute processContents='lax'/></s:complexType></s:element>\
    <s:element name='c' type='s:date' nillable='true'/></s:schema>";

fn grammars(options: &Options) -> Arc<Grammars> {
    let document = Document { location: "x", bytes: SCHEMA.as_bytes() };
    let schema = Schema::parse(&[document], &mut |_, _| None, &Limits::default()).unwrap();
    Arc::new(schema.grammars(options, &Limits::default()).unwrap())
}

/// An element by a few numbers: its name, prefix and attribute, and what is in it.
#[derive(Clone, Debug)]
struct Element {
    numbers: [u8; 4],
    inside: Vec<Element>,
}

fn element() -> impl Strategy<Value = Element> {
    let leaf = any::<[u8; 4]>().prop_map(|numbers| Element { numbers, inside: Vec::new() });
    leaf.prop_recursive(4, 24, 5, |inner| {
        (any::<[u8; 4]>(), prop::collection::vec(inner, 0..5))
            .prop_map(|(numbers, inside)| Element { numbers, inside })
    })
}

fn write(element: &Element, to: &mut String) {
    let [name, prefix, attribute, text] = element.numbers;
    let name = char::from(b'a' + name % 5);
    let (prefix, uri) = (char::from(b'p' + prefix % 3), prefix / 3 % 4);
    let _ = write!(to, "<{prefix}:{name} xmlns:{prefix}='urn:{uri}' xmlns:x='urn:x'");
    match attribute % 8 {
        0 | 1 => _ = write!(to, " b='{}'", attribute / 8),
        2 => _ = write!(to, " x:d='v{}'", attribute / 64),
        3 => to.push_str(" xml:space='preserve'"),
        4 => {
            to.push_str(" xmlns:i='http://www.w3.org/2001/XMLSchema-instance' i:type='x:unknown'");
        }
        _ => {}
    }
    to.push('>');
    match text % 4 {
        0 => _ = write!(to, "t{}", text / 8),
        1 => to.push_str("2026-11-21"),
        // Not XML: the document ends badly in the middle.
        2 if text > 248 => to.push('&'),
        _ => {}
    }
    element.inside.iter().for_each(|inside| write(inside, to));
    let _ = write!(to, "</{prefix}:{name}>");
}

proptest! {
    #[test]
    fn streams_are_those_of_new_encoders(
        documents in prop::collection::vec(element(), 1..12),
        alignment in 0..4_usize,
        with_schema: bool,
        prefixes: bool,
        lexical: bool,
        strict: bool,
        capacity in prop::option::of(0..6_u32),
        in_header: bool,
    ) {
        let options = Options {
            alignment: ALIGNMENTS[alignment],
            preserve: Preserve { prefixes, lexical, ..Preserve::default() },
            strict: strict && with_schema,
            value_partition_capacity: capacity,
            options_in_header: in_header,
            ..Options::default()
        };
        let grammars = with_schema.then(|| grammars(&options));
        let limits = Limits::default();
        let mut encoder = DocumentEncoder::new(&options, grammars.clone(), &limits);
        for document in &documents {
            let mut xml = String::new();
            write(document, &mut xml);
            let alone = encode(xml.as_bytes(), &options, grammars.as_ref(), &limits);
            prop_assert_eq!(encoder.encode(xml.as_bytes()), alone, "{}", xml);
        }
    }
}

#[test]
fn fragments_and_elements_read_alone_are_coded_too() {
    let alone = Options {
        self_contained: true,
        self_contained_elements: vec![[String::new(), "b".to_owned()]],
        ..Options::default()
    };
    for options in [Options { fragment: true, ..Options::default() }, alone] {
        let limits = Limits::default();
        let mut encoder = DocumentEncoder::new(&options, None, &limits);
        for xml in ["<a><b>x</b><c/></a>", "<a><c/><b>x</b><b>x</b></a>", "<b>x</b>"] {
            let alone = encode(xml.as_bytes(), &options, None, &limits).unwrap();
            assert_eq!(encoder.encode(xml.as_bytes()).unwrap(), alone, "{xml}");
        }
    }
}

#[test]
fn names_of_other_documents_count_against_no_limit() {
    let limits = Limits { table_bytes: 1 << 16, ..Limits::default() };
    let mut encoder = DocumentEncoder::new(&Options::default(), None, &limits);
    let names = |from: usize, count: usize| {
        let inside: String = (from..from + count).map(|number| format!("<n{number}/>")).collect();
        format!("<r>{inside}</r>")
    };
    for from in 0..20 {
        let xml = names(from * 100, 100);
        encoder.encode(xml.as_bytes()).unwrap();
    }
    let too_many = encoder.encode(names(0, 10_000).as_bytes());
    assert!(matches!(too_many, Err(Error::Limit { .. })), "{too_many:?}");
    encoder.encode(names(0, 100).as_bytes()).unwrap();
}

#[test]
fn what_is_kept_is_bounded() {
    let mut encoder = DocumentEncoder::new(&Options::default(), None, &Limits::default());
    for round in 0..40 {
        let mut xml = "<r>".to_owned();
        for number in 0..2000 {
            let _ = write!(xml, "<n{round}-{number} xmlns='urn:{round}:{}'/>", number / 10);
        }
        encoder.encode((xml + "</r>").as_bytes()).unwrap();
        let kept = encoder.kept_bytes();
        assert!(kept <= super::super::encoder::KEPT_BYTES, "{kept} bytes behind round {round}");
    }
}
