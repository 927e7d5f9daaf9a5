//! Whole streams; those of others are in `tests/`.

mod canonical;
mod kept;
mod kept_decoder;
mod pieces;
mod profile;
mod schemas;

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::{Error, Limits};

const ALIGNMENTS: [Alignment; 4] = [
    Alignment::BitPacked,
    Alignment::BytePacked,
    Alignment::PreCompression,
    Alignment::Compression,
];

fn options(alignment: Alignment) -> Options {
    Options { alignment, ..Options::default() }
}

fn round_trip(xml: &str, options: &Options) -> String {
    let limits = Limits::default();
    let stream = encode(xml.as_bytes(), options, None, &limits).unwrap();
    String::from_utf8(decode(&stream, options, None, &limits).unwrap()).unwrap()
}

/// XML 1.0 §5.1: a reader supplies them, so a stream that loses them says something else.
#[test]
fn default_values_of_attributes_are_kept_with_the_subset_or_refused() {
    let with = |list: &str| format!("<!DOCTYPE a [<!ATTLIST a {list}>]><a>x</a>");
    let encoded = |xml: &str, dtd: bool| {
        let mut options = Options::default();
        options.preserve.dtd = dtd;
        encode(xml.as_bytes(), &options, None, &Limits::default())
    };
    for list in ["u CDATA 'ft'", "v CDATA #IMPLIED u CDATA #FIXED 'ft'", "u (ft|m) \"m\""] {
        let refused = encoded(&with(list), false).unwrap_err().to_string();
        assert!(refused.contains("default values of attributes"), "{refused}");
        assert!(encoded(&with(list), true).is_ok());
    }
    for list in ["u CDATA #IMPLIED", "u ID #REQUIRED", ""] {
        assert!(encoded(&with(list), false).is_ok(), "{list}");
    }
}

#[test]
fn a_document_without_a_schema_comes_back() {
    let xml = "<a x=\"1\" y=\"&lt;&amp;&quot;\"><b>text &amp; more</b><b>text &amp; more</b><c/>\
               <b x=\"1\">straße 𝄞</b></a>";
    for alignment in ALIGNMENTS {
        assert_eq!(round_trip(xml, &options(alignment)), xml, "{alignment:?}");
    }
}

#[test]
fn the_example_of_the_primer_has_its_known_length() {
    // EXI Primer §2: the notebook without a schema.
    let xml = "<notebook date=\"2007-09-12\"><note category=\"EXI\" date=\"2007-07-23\">\
               <subject>EXI</subject><body>Do not forget it!</body></note>\
               <note date=\"2007-09-12\"><subject>shopping list</subject>\
               <body>milk, honey</body></note></notebook>";
    let stream = encode(xml.as_bytes(), &Options::default(), None, &Limits::default()).unwrap();
    assert_eq!((stream[0], stream.len()), (0x80, 124));
}

#[test]
fn all_that_can_be_preserved_is() {
    let xml = "<!DOCTYPE p:a SYSTEM \"a.dtd\" [<!ENTITY e \"x\">]><!--c--><p:a xmlns:p=\"urn:p\" \
               xmlns=\"urn:d\"><?do it?><b p:x=\"1\" xmlns:q=\"urn:p\">&e;<q:c/><!-- d --></b>\
               <c xmlns=\"\"/></p:a><?end?>";
    let preserve =
        Preserve { comments: true, pis: true, dtd: true, prefixes: true, lexical: false };
    for alignment in ALIGNMENTS {
        let options = Options { preserve, ..options(alignment) };
        let text = round_trip(xml, &options);
        // Declarations come before attributes, in the order of the document.
        let expected =
            xml.replace("<b p:x=\"1\" xmlns:q=\"urn:p\">", "<b xmlns:q=\"urn:p\" p:x=\"1\">");
        assert_eq!(text, expected, "{alignment:?}");
    }
}

#[test]
fn namespaces_survive_without_their_prefixes() {
    let xml = "<p:a xmlns:p=\"urn:p\" xmlns:q=\"urn:q\"><q:b p:x=\"1\"/><q:b/><c/></p:a>";
    let text = round_trip(xml, &Options::default());
    assert_eq!(
        text,
        "<ns3:a xmlns:ns3=\"urn:p\" xmlns:ns4=\"urn:q\"><ns4:b ns3:x=\"1\"/><ns4:b/><c/></ns3:a>"
    );
    // What is handed out before the end cannot be declared at the root.
    let limits = Limits::default();
    let stream = encode(xml.as_bytes(), &Options::default(), None, &limits).unwrap();
    let mut decoder = Decoder::new(&Options::default(), Box::new(|_| Ok(None)), &limits);
    let mut text = Vec::new();
    decoder.push(&stream, true).unwrap();
    decoder.text(&mut text).unwrap();
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "<ns3:a xmlns:ns3=\"urn:p\"><ns4:b xmlns:ns4=\"urn:q\" ns3:x=\"1\"/>\
         <ns4:b xmlns:ns4=\"urn:q\"/><c/></ns3:a>"
    );
}

#[test]
fn fragments_have_any_number_of_roots() {
    let options = Options { fragment: true, ..Options::default() };
    for xml in ["<a/><b>1</b><a/><a>2</a>", "", "<a/>"] {
        assert_eq!(round_trip(xml, &options), xml);
    }
}

#[test]
fn bounded_tables_forget_in_turn() {
    let mut xml = String::from("<a>");
    for i in 0..300 {
        xml.push_str(&format!("<b>{}</b><c>{}</c>", i % 7, i % 11));
    }
    xml.push_str("</a>");
    for capacity in [0, 1, 3, 8, 40] {
        for alignment in ALIGNMENTS {
            let options = Options {
                value_partition_capacity: Some(capacity),
                value_max_length: (capacity == 40).then_some(1),
                block_size: 97,
                ..options(alignment)
            };
            assert_eq!(round_trip(&xml, &options), xml, "{options:?}");
        }
    }
}

#[test]
fn blocks_of_any_size_are_read_like_the_whole() {
    let xml =
        format!("<a>{}<b>{}</b></a>", "<b c=\"v\">some ß text</b>".repeat(50), "x".repeat(900));
    for alignment in ALIGNMENTS {
        let options = Options {
            preserve: Preserve { prefixes: true, ..Preserve::default() },
            block_size: 10,
            value_partition_capacity: Some(2),
            ..options(alignment)
        };
        let limits = Limits::default();
        let whole = encode(xml.as_bytes(), &options, None, &limits).unwrap();
        for size in [1, 3, 64] {
            let mut encoder = Encoder::new(&options, None, &limits).unwrap();
            let mut stream = Vec::new();
            let blocks = xml.len().div_ceil(size);
            for (at, block) in xml.as_bytes().chunks(size).enumerate() {
                encoder.push(block, at + 1 == blocks, &mut stream).unwrap();
            }
            assert_eq!(stream, whole);
            let mut decoder = Decoder::new(&options, Box::new(|_| Ok(None)), &limits);
            let mut text = Vec::new();
            let blocks = stream.len().div_ceil(size);
            for (at, block) in stream.chunks(size).enumerate() {
                decoder.push(block, at + 1 == blocks).unwrap();
                decoder.text(&mut text).unwrap();
            }
            assert_eq!(String::from_utf8(text).unwrap(), xml);
        }
    }
}

#[test]
fn limits_have_names() {
    let deep = "<a>".repeat(300) + &"</a>".repeat(300);
    let limits = Limits::default();
    let wide = Limits { depth: 1000, ..limits };
    let stream = encode(deep.as_bytes(), &Options::default(), None, &wide).unwrap();
    let named = |error: Result<Vec<u8>, Error>, name: &str| match error {
        Err(Error::Limit { what, .. }) => assert!(what.contains(name), "{what}"),
        other => panic!("{other:?}"),
    };
    named(decode(&stream, &Options::default(), None, &limits), "depth");
    let few = Limits { output_bytes: 100, ..wide };
    named(decode(&stream, &Options::default(), None, &few), "output_bytes");
    let small = Limits { message_bytes: 10, ..limits };
    named(decode(&stream, &Options::default(), None, &small), "message_bytes");
}

#[test]
fn bytes_behind_the_end_are_refused() {
    for alignment in ALIGNMENTS {
        let options = options(alignment);
        let mut stream = encode(b"<a>b</a>", &options, None, &Limits::default()).unwrap();
        stream.push(0);
        assert!(decode(&stream, &options, None, &Limits::default()).is_err(), "{alignment:?}");
    }
}

/// A cheap sequence of numbers.
fn noise(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*seed >> 33).unwrap()
}

#[test]
fn changed_streams_end_in_an_answer() {
    let xml =
        "<a x=\"1\" xmlns:p=\"urn:p\"><!--c--><p:b>text</p:b><p:b>text</p:b><c>ß</c><?p i?></a>";
    let preserve =
        Preserve { comments: true, pis: true, dtd: true, prefixes: true, lexical: false };
    let limits = Limits { output_bytes: 1 << 16, table_bytes: 1 << 16, ..Limits::default() };
    let mut seed = 7;
    for alignment in ALIGNMENTS {
        for preserve in [Preserve::default(), preserve] {
            let options = Options { preserve, ..options(alignment) };
            let stream = encode(xml.as_bytes(), &options, None, &Limits::default()).unwrap();
            for _ in 0..2000 {
                let mut changed = stream.clone();
                let at = noise(&mut seed) % changed.len();
                match noise(&mut seed) % 3 {
                    0 => changed[at] ^= 1 << (noise(&mut seed) % 8),
                    1 => changed.truncate(at),
                    _ => changed.insert(at, u8::try_from(noise(&mut seed) % 256).unwrap()),
                }
                if let Ok(text) = decode(&changed, &options, None, &limits) {
                    assert!(text.len() <= 1 << 16);
                }
            }
        }
    }
}

fn element() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "c", "long-name", "ä"]);
    let value = "[ a-c<>&\"\u{e9}\u{4e2d}\u{1d11e}]{0,12}";
    let leaf =
        (name.clone(), value, prop::option::of(value)).prop_map(|(name, text, attribute)| {
            let mut out = format!("<{name}");
            let escaped = |text: &str| {
                let mut out = Vec::new();
                crate::xml::escape(text, true, &mut out);
                String::from_utf8(out).unwrap().replace('>', "&gt;")
            };
            if let Some(value) = attribute {
                out.push_str(&format!(" x=\"{}\"", escaped(&value)));
            }
            let text = escaped(&text).replace("&quot;", "\"");
            out + &if text.is_empty() { "/>".to_owned() } else { format!(">{text}</{name}>") }
        });
    leaf.prop_recursive(4, 40, 5, move |inner| {
        (name.clone(), prop::collection::vec(inner, 1..5))
            .prop_map(|(name, children)| format!("<{name}>{}</{name}>", children.concat()))
    })
}

proptest! {
    #[test]
    fn any_document_comes_back(xml in element(), alignment in 0..4usize, size in 1..9u32,
                               capacity in prop::option::of(0..5u32), fragment: bool) {
        let options = Options {
            block_size: size,
            value_partition_capacity: capacity,
            fragment,
            ..options(ALIGNMENTS[alignment])
        };
        // In an attribute, '>' is escaped like in text.
        prop_assert_eq!(round_trip(&xml, &options), xml);
    }
}

#[test]
fn options_travel_in_the_header() {
    let name = |uri: &str, local: &str| [uri.to_owned(), local.to_owned()];
    let all = Options {
        alignment: Alignment::PreCompression,
        preserve: Preserve { comments: true, pis: true, dtd: true, prefixes: true, lexical: true },
        schema_id: SchemaId::None,
        datatype_map: vec![(
            name("http://www.w3.org/2001/XMLSchema", "decimal"),
            name("http://www.w3.org/2009/exi", "string"),
        )],
        block_size: 77,
        value_max_length: Some(5),
        value_partition_capacity: Some(9),
        ..Options::default()
    };
    let compressed = Options {
        alignment: Alignment::Compression,
        fragment: true,
        schema_id: SchemaId::Named("a <b>".to_owned()),
        ..Options::default()
    };
    let plain = Options { schema_id: SchemaId::BuiltIn, ..Options::default() };
    for options in [all, compressed, plain, Options::default()] {
        let options = Options { options_in_header: true, cookie: true, ..options };
        let limits = Limits::default();
        let stream = encode(b"<a>b</a>", &options, None, &limits).unwrap();
        let mut decoder = Decoder::new(&Options::default(), Box::new(|_| Ok(None)), &limits);
        let mut text = Vec::new();
        decoder.push(&stream, true).unwrap();
        decoder.text(&mut text).unwrap();
        assert_eq!(text, b"<a>b</a>");
        assert_eq!(decoder.options(), &options);
    }
}

#[test]
fn grammars_of_a_caller_are_asked_for_once() {
    let mut asked = 0;
    let stream = encode(b"<a/>", &Options::default(), None, &Limits::default()).unwrap();
    let grammars = Arc::new(built_in::schema_less(&Options::default()));
    let mut resolve = |_: &Options| {
        asked += 1;
        Ok(Some(grammars.clone()))
    };
    let text = decode_with(&stream, &Options::default(), &mut resolve, &Limits::default());
    assert_eq!((text.unwrap().as_slice(), asked), (&b"<a/>"[..], 1));
}

/// A document of the same namespaces inside and outside of what is self-contained.
const NESTED: &str = "<p:a xmlns:p=\"urn:p\" xmlns=\"urn:d\" xmlns:x=\"urn:x\" x:y=\"v\">\
    <i k=\"v\"><x:n x:y=\"1\">v</x:n><i k=\"w\">w</i><!--c--></i>text v\
    <i xmlns:z=\"urn:z\" z:k=\"v\" p:k=\"w\"><p:a/></i><none xmlns=\"\"/><i/><x:n>v</x:n></p:a>";

fn self_contained(alignment: Alignment, prefixes: bool) -> Options {
    let name = |uri: &str, local: &str| [uri.to_owned(), local.to_owned()];
    Options {
        self_contained: true,
        self_contained_elements: vec![name("urn:d", "i"), name("urn:p", "a")],
        preserve: Preserve { prefixes, comments: true, ..Preserve::default() },
        ..options(alignment)
    }
}

/// The stream of a document with nothing but its expanded names and values, to compare by.
fn plain(xml: &str, schema: Option<&Schema>) -> Vec<u8> {
    let limits = Limits::default();
    let preserve = Preserve { comments: true, ..Preserve::default() };
    let options = Options { preserve, ..Options::default() };
    let grammars = schema.map(|of| Arc::new(of.grammars(&options, &limits).unwrap()));
    encode(xml.as_bytes(), &options, grammars.as_ref(), &limits).unwrap()
}

#[test]
fn self_contained_elements_come_back() {
    for alignment in [Alignment::BitPacked, Alignment::BytePacked] {
        for (prefixes, fragment) in [(false, false), (true, false), (false, true), (true, true)] {
            let all = Options { fragment, ..self_contained(alignment, prefixes) };
            let mut inner = all.clone();
            inner.self_contained_elements.truncate(1);
            for options in [all, inner] {
                let text = round_trip(NESTED, &options);
                assert_eq!(plain(&text, None), plain(NESTED, None), "{options:?}: {text}");
                assert_eq!(prefixes, text.contains("<x:n x:y="), "{text}");
            }
        }
    }
}

#[test]
fn self_contained_elements_are_read_byte_by_byte() {
    let limits = Limits::default();
    for prefixes in [false, true] {
        let options = self_contained(Alignment::BitPacked, prefixes);
        let stream = encode(NESTED.as_bytes(), &options, None, &limits).unwrap();
        let mut decoder = Decoder::new(&options, Box::new(|_| Ok(None)), &limits);
        let (mut text, mut count) = (Vec::new(), 0);
        for (at, byte) in stream.iter().enumerate() {
            decoder.push(&[*byte], at + 1 == stream.len()).unwrap();
            decoder.text(&mut text).unwrap();
        }
        let text = String::from_utf8(text).unwrap();
        assert_eq!(plain(&text, None), plain(NESTED, None), "{text}");
        let mut decoder = Decoder::new(&options, Box::new(|_| Ok(None)), &limits);
        decoder.push(&stream, true).unwrap();
        while let Some(event) = decoder.next().unwrap() {
            count += usize::from(event == Event::SelfContained);
        }
        assert_eq!(count, 6);
    }
}

#[test]
fn damaged_self_contained_elements_are_errors_or_documents() {
    let limits = Limits { depth: 20, table_bytes: 1 << 16, ..Limits::default() };
    let options = self_contained(Alignment::BitPacked, true);
    let stream = encode(NESTED.as_bytes(), &options, None, &limits).unwrap();
    for at in 0..stream.len() {
        assert!(decode(&stream[..at], &options, None, &limits).is_err(), "{at}");
        for bit in 0..8 {
            let mut stream = stream.clone();
            stream[at] ^= 1 << bit;
            let _ = decode(&stream, &options, None, &limits);
        }
    }
    let deep = ["<i xmlns='urn:d'>".repeat(300), "</i>".repeat(300)].concat();
    let error = encode(deep.as_bytes(), &options, None, &limits).unwrap_err();
    assert!(matches!(error, Error::Limit { .. }), "{error}");
}

#[test]
fn self_contained_elements_have_the_grammars_of_a_fragment() {
    let xsd = b"<s:schema xmlns:s='http://www.w3.org/2001/XMLSchema'><s:element name='a'>\
        <s:complexType><s:sequence><s:element name='b' type='s:int' maxOccurs='9'/>\
        <s:element name='c' type='s:date'/></s:sequence></s:complexType></s:element>\
        <s:element name='d'><s:complexType><s:sequence><s:element name='b' type='s:boolean'/>\
        </s:sequence></s:complexType></s:element></s:schema>";
    let limits = Limits::default();
    let document = schema::Document { location: "x", bytes: xsd };
    let schema = Schema::parse(&[document], &mut |_, _| None, &limits).unwrap();
    let xml = "<a><b>1</b><b>-77</b><c>2020-02-02</c><more><b>x</b></more></a>";
    let unnamed = |local: &str| [String::new(), local.to_owned()];
    for alignment in [Alignment::BitPacked, Alignment::BytePacked] {
        let options = Options {
            self_contained_elements: ["a", "b", "c", "more"].map(unnamed).into(),
            ..self_contained(alignment, false)
        };
        let grammars = Arc::new(schema.grammars(&options, &limits).unwrap());
        let stream = encode(xml.as_bytes(), &options, Some(&grammars), &limits).unwrap();
        let text = decode(&stream, &options, Some(&grammars), &limits).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), xml);
    }
    for wrong in [
        Options { alignment: Alignment::Compression, ..self_contained(Alignment::BitPacked, true) },
        Options { strict: true, ..self_contained(Alignment::BitPacked, false) },
        Options { self_contained: false, ..self_contained(Alignment::BitPacked, false) },
    ] {
        let refused = encode(b"<a/>", &wrong, None, &limits);
        assert!(matches!(refused, Err(Error::Option { .. })));
    }
}

#[test]
fn white_space_beside_a_reference_is_part_of_a_text() {
    let xml = "<!DOCTYPE a [<!ENTITY e \"x\">]><a> &e; &e;\n<b> </b></a>";
    let preserve = Preserve { dtd: true, ..Preserve::default() };
    let options = Options { preserve, ..Options::default() };
    assert_eq!(round_trip(xml, &options), xml);
}

/// Some programs take a new prefix for each element that they write.
#[test]
fn a_namespace_may_have_thousands_of_prefixes() {
    let element = |at: u32| format!("<p{at}:a xmlns:p{at}=\"u\"/><p{at}:b xmlns:p{at}=\"u\"/>");
    let xml = format!("<a>{}</a>", (0..5000).map(element).collect::<String>());
    let preserve = Preserve { prefixes: true, ..Preserve::default() };
    let options = Options { preserve, ..Options::default() };
    assert!(round_trip(&xml, &options) == xml);
}

#[test]
fn white_space_that_a_strict_schema_has_no_place_for_is_left_out() {
    let xsd = b"<s:schema xmlns:s='http://www.w3.org/2001/XMLSchema'><s:element name='a'>\
        <s:complexType><s:sequence><s:element name='b' type='s:string' minOccurs='0'/>\
        </s:sequence></s:complexType></s:element></s:schema>";
    let limits = Limits::default();
    let document = schema::Document { location: "x", bytes: xsd };
    let schema = Schema::parse(&[document], &mut |_, _| None, &limits).unwrap();
    for lexical in [false, true] {
        let preserve = Preserve { lexical, ..Preserve::default() };
        let options = Options { strict: true, preserve, ..Options::default() };
        let grammars = Arc::new(schema.grammars(&options, &limits).unwrap());
        for (xml, back) in [("<a> </a>", "<a/>"), ("<a> <b> </b>\n</a>", "<a><b> </b></a>")] {
            let stream = encode(xml.as_bytes(), &options, Some(&grammars), &limits).unwrap();
            let text = decode(&stream, &options, Some(&grammars), &limits).unwrap();
            let text = String::from_utf8(text).unwrap().replace("<a></a>", "<a/>");
            assert_eq!(text, back, "{lexical}");
        }
    }
}

#[test]
fn declarations_in_front_of_sc_are_kept() {
    // As other encoders may write it; ours has NS behind SC.
    let options = Options {
        self_contained: true,
        preserve: Preserve { prefixes: true, ..Preserve::default() },
        ..options(Alignment::BytePacked)
    };
    let name = [0, 5, b'u', b'r', b'n', b':', b'p', 2, b'a'];
    let stream = [
        &[0x80][..],
        &name,               // SE(*), of no bits
        &[2, 4, 1, b'p', 1], // NS
        &[3],                // SC
        &[0],                // SE(*) in the fragment
        &name,
        &[0], // EE
        &[2], // ED of the fragment; that of the document has no bits
    ]
    .concat();
    let text = decode(&stream, &options, None, &Limits::default()).unwrap();
    let expected = "<s1ns3:a xmlns:p=\"urn:p\" xmlns:s1ns3=\"urn:p\"/>";
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

#[test]
fn bytes_that_come_behind_the_end_are_refused() {
    for alignment in ALIGNMENTS {
        let options = options(alignment);
        let limits = Limits::default();
        let stream = encode(b"<a>b</a>", &options, None, &limits).unwrap();
        let mut decoder = Decoder::new(&options, Box::new(|_| Ok(None)), &limits);
        let mut text = Vec::new();
        decoder.push(&stream, false).unwrap();
        decoder.text(&mut text).unwrap();
        assert_eq!(text, b"<a>b</a>");
        decoder.push(&[], true).unwrap();
        assert!(decoder.push(&[0], true).is_err(), "{alignment:?}");
    }
}

#[test]
fn a_block_of_channels_comes_out_as_soon_as_it_is_whole() {
    let xml = format!("<a>{}</a>", "<b>some words</b><c d='1'>x &amp; y</c>".repeat(500));
    for alignment in [Alignment::PreCompression, Alignment::Compression] {
        let options = Options { block_size: 300, ..options(alignment) };
        let limits = Limits::default();
        let stream = encode(xml.as_bytes(), &options, None, &limits).unwrap();
        let mut decoder = Decoder::new(&options, Box::new(|_| Ok(None)), &limits);
        let (mut text, mut half) = (Vec::new(), 0);
        for (at, &byte) in stream.iter().enumerate() {
            decoder.push(&[byte], at + 1 == stream.len()).unwrap();
            decoder.text(&mut text).unwrap();
            if at == stream.len() / 2 {
                half = text.len();
            }
        }
        assert_eq!(text, decode(&stream, &options, None, &limits).unwrap());
        assert!(half > text.len() / 6, "{half} of {}", text.len());
    }
}

#[test]
fn a_block_is_bounded_whatever_its_structure_says() {
    // Events that take a few bits of a compressed structure each.
    let xml = format!("<a>{}</a>", "<b/>".repeat(100_000));
    let limits = Limits::default();
    let options = options(Alignment::Compression);
    let stream = encode(xml.as_bytes(), &options, None, &limits).unwrap();
    assert!(stream.len() < 1000);
    let few = Limits { message_bytes: 100_000, ..limits };
    match decode(&stream, &options, None, &few) {
        Err(Error::Limit { what, .. }) => assert!(what.contains("message_bytes"), "{what}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_type_whose_prefix_means_nothing_is_kept() {
    let xml = "<a xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"foo:x\">\
               <b/></a>";
    for alignment in ALIGNMENTS {
        assert_eq!(round_trip(xml, &options(alignment)), xml);
    }
}

#[test]
fn characters_in_more_bytes_than_they_need_are_escaped_too() {
    // SD, SE(*): namespace 1 in two bits, "a"; CH: "<" as 0xbc 0x00.
    let mut to = bits::Writer::new(false);
    to.bits(0b10, 2);
    to.bits(0, 6);
    to.bits(1, 2);
    to.string("a", 1);
    to.bits(3, 2);
    to.unsigned(3);
    to.bits(0xbc00, 16);
    // EE, ED.
    to.bits(0, 1);
    to.align();
    let text = decode(&to.out, &Options::default(), None, &Limits::default()).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), "<a>&lt;</a>");
}
