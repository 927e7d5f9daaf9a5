//! Canonical EXI 1.0: documents that mean the same have the same stream.

use std::sync::Arc;

use super::ALIGNMENTS;
use crate::Limits;
use crate::exi::{
    Alignment, Grammars, Options, Preserve, Profile, Schema, SchemaId, decode, encode, schema,
};

const XSD: &str = "<s:schema xmlns:s='http://www.w3.org/2001/XMLSchema'>\
    <s:element name='r'><s:complexType><s:sequence>\
    <s:element name='f' type='s:double' minOccurs='0' maxOccurs='unbounded'/>\
    <s:element name='d' type='s:decimal' minOccurs='0'/>\
    <s:element name='t' type='s:dateTime' minOccurs='0' maxOccurs='unbounded'/>\
    <s:element name='e' minOccurs='0'><s:simpleType><s:restriction base='s:decimal'>\
      <s:enumeration value='2'/><s:enumeration value='1.0'/><s:enumeration value='1'/>\
      </s:restriction></s:simpleType></s:element>\
    <s:element name='k' type='s:token' minOccurs='0'/>\
    <s:element name='s' type='s:string' minOccurs='0'/>\
    <s:element name='i' type='s:int' minOccurs='0' nillable='true'/>\
    <s:element name='l' minOccurs='0'><s:simpleType><s:list itemType='s:float'/>\
      </s:simpleType></s:element>\
    <s:element name='m' minOccurs='0'><s:complexType mixed='true'><s:sequence>\
      <s:element name='b' type='s:string' minOccurs='0' maxOccurs='unbounded'/></s:sequence>\
      </s:complexType></s:element>\
    </s:sequence><s:attribute name='z' type='s:boolean'/><s:attribute name='a' type='s:int'/>\
    <s:anyAttribute processContents='lax'/></s:complexType></s:element></s:schema>";

fn canonical(alignment: Alignment) -> Options {
    Options { alignment, canonical: true, ..Options::default() }
}

fn grammars(options: &Options) -> Arc<Grammars> {
    let limits = Limits::default();
    let document = schema::Document { location: "x", bytes: XSD.as_bytes() };
    let schema = Schema::parse(&[document], &mut |_, _| None, &limits).unwrap();
    Arc::new(schema.grammars(options, &limits).unwrap())
}

/// What each of two documents becomes.
fn two(a: &str, b: &str, options: &Options, grammars: Option<&Arc<Grammars>>) -> [Vec<u8>; 2] {
    [a, b].map(|xml| encode(xml.as_bytes(), options, grammars, &Limits::default()).unwrap())
}

/// Alike in canonical streams of all kinds with the schema, and not without `canonical`.
fn alike(a: &str, b: &str) {
    for alignment in ALIGNMENTS {
        for strict in [false, true] {
            let options = Options { strict, ..canonical(alignment) };
            let grammars = grammars(&options);
            let [one, other] = two(a, b, &options, Some(&grammars));
            assert_eq!(one, other, "{a} {b} {options:?}");
            decode(&one, &options, Some(&grammars), &Limits::default()).unwrap();
        }
    }
}

fn different(a: &str, b: &str, options: &Options, schema: bool) {
    let grammars = schema.then(|| grammars(options));
    let [one, other] = two(a, b, options, grammars.as_ref());
    assert_ne!(one, other, "{a} {b}");
}

#[test]
fn values_have_one_form() {
    alike("<r><f>1.50</f><f>12300</f></r>", "<r><f>15E-1</f><f>1.23E4</f></r>");
    alike("<r><d>-0.00</d></r>", "<r><d>0</d></r>");
    alike("<r><e>1</e></r>", "<r><e>1.0</e></r>");
    alike("<r><l>10  0.10</l></r>", "<r><l> 1e1 1e-1</l></r>");
    alike("<r z='1' a='07'/>", "<r a=\" 7\" z='true'></r>");
    alike("<r><t>2015-08-11T24:00:00</t></r>", "<r><t>2015-08-12T00:00:00.000</t></r>");
    alike("<r><k> a  b\n</k></r>", "<r><k>a b</k></r>");
    alike("<r><s>a&#98;<![CDATA[c]]></s></r>", "<r><s>ab<?x?>c</s></r>");
    // Without the option floats stay as they are written.
    different(
        "<r><f>12300</f></r>",
        "<r><f>1.23E4</f></r>",
        &Options { strict: true, ..Options::default() },
        true,
    );
}

#[test]
fn dates_have_one_zone_if_wanted() {
    let (a, b) = ("<r><t>2015-08-11T24:00:00-07:30</t></r>", "<r><t>2015-08-12T07:30:00Z</t></r>");
    different(a, b, &canonical(Alignment::BitPacked), true);
    let options = Options { utc_time: true, ..canonical(Alignment::BitPacked) };
    let [one, other] = two(a, b, &options, Some(&grammars(&options)));
    assert_eq!(one, other);
}

#[test]
fn blanks_between_tags_go_and_others_stay() {
    alike("<r>\n <m> <b> </b> </m>\n</r>", "<r><m><b> </b></m></r>");
    let options = canonical(Alignment::BitPacked);
    for (a, b, same) in [
        ("<a> <b/> </a>", "<a><b/></a>", true),
        ("<a> </a>", "<a/>", false),
        ("<a xml:space='preserve'> <b/></a>", "<a xml:space='preserve'><b/></a>", false),
        ("<a x='1' y='2'/>", "<a y='2' x='1'/>", true),
        ("<a><!-- c --><b/><?p i?></a>", "<a><b/></a>", true),
        ("<a>x <b/></a>", "<a>x<b/></a>", false),
    ] {
        let [one, other] = two(a, b, &options, None);
        assert_eq!(one == other, same, "{a} {b}");
    }
    // A collapsed value that is empty is no event (§4.3.1).
    let options = canonical(Alignment::BytePacked);
    let [one, other] =
        two("<r><k> \n </k></r>", "<r><k/></r>", &options, Some(&grammars(&options)));
    assert_eq!(one, other);
}

#[test]
fn declarations_are_in_order() {
    let preserve = Preserve { prefixes: true, ..Preserve::default() };
    let options = Options { preserve, ..canonical(Alignment::BitPacked) };
    let a = "<r xmlns:foo='urn:f' xmlns:bla='urn:b' xmlns='urn:d' bla:c='1' foo:b='2' a='3'/>";
    let b = "<r a='3' xmlns='urn:d' foo:b='2' xmlns:bla='urn:b' bla:c='1' xmlns:foo='urn:f'/>";
    let [one, other] = two(a, b, &options, None);
    assert_eq!(one, other);
    let text = decode(&one, &options, None, &Limits::default()).unwrap();
    assert!(text.starts_with(b"<r xmlns=\"urn:d\" xmlns:bla=\"urn:b\" xmlns:foo"), "{text:?}");
    let alone = Options {
        self_contained: true,
        self_contained_elements: vec![["urn:d".to_owned(), "r".to_owned()]],
        ..options
    };
    let [one, other] = two(
        &format!("<x xmlns:z='urn:z' xmlns:a='urn:a'>{a}</x>"),
        &format!("<x xmlns:a='urn:a' xmlns:z='urn:z'>{b}</x>"),
        &alone,
        None,
    );
    assert_eq!(one, other);
}

#[test]
fn options_have_one_form() {
    let name = |uri: &str, local: &str| [uri.to_owned(), local.to_owned()];
    let xsd = |local: &str| name("http://www.w3.org/2001/XMLSchema", local);
    let exi = |local: &str| name("http://www.w3.org/2009/exi", local);
    let plain = Options {
        options_in_header: true,
        datatype_map: vec![(xsd("decimal"), exi("string")), (xsd("integer"), exi("string"))],
        ..canonical(Alignment::PreCompression)
    };
    let same = Options {
        cookie: true,
        datatype_map: vec![
            (xsd("integer"), exi("string")),
            (xsd("date"), exi("date")),
            (xsd("decimal"), exi("string")),
        ],
        alignment: Alignment::Compression,
        ..plain.clone()
    };
    let limits = Limits::default();
    let grammars = grammars(&plain);
    let xml = b"<r a='1'><d>1.0</d></r>";
    let one = encode(xml, &plain, Some(&grammars), &limits).unwrap();
    assert_eq!(one, encode(xml, &same, Some(&grammars), &limits).unwrap());
    let text = decode(&one, &Options::default(), Some(&grammars), &limits).unwrap();
    assert_eq!(text, b"<r a=\"1\"><d>1.0</d></r>");
    // Told otherwise than by a header, a reader knows that compression is not meant.
    let untold = Options { options_in_header: false, ..same };
    let stream = encode(xml, &untold, Some(&grammars), &limits).unwrap();
    assert_eq!(decode(&stream, &untold, Some(&grammars), &limits).unwrap(), text);
}

#[test]
fn the_header_has_the_profile() {
    let limits = Limits::default();
    for profile in [
        Profile { local_value_partitions: false, ..Profile::default() },
        Profile { built_in_grammars_max: Some(0), ..Profile::default() },
        Profile {
            local_value_partitions: false,
            built_in_grammars_max: Some(10),
            built_in_productions_max: Some(99),
        },
        Profile { built_in_productions_max: Some(u32::MAX), ..Profile::default() },
    ] {
        let options = Options {
            profile,
            options_in_header: true,
            schema_id: SchemaId::None,
            ..Options::default()
        };
        let stream = encode(b"<a>x</a>", &options, None, &limits).unwrap();
        let nothing = Options::default();
        let mut decoder = crate::exi::Decoder::new(&nothing, Box::new(|_| Ok(None)), &limits);
        decoder.push(&stream, true).unwrap();
        let mut text = Vec::new();
        decoder.text(&mut text).unwrap();
        assert_eq!((decoder.options().profile, &text[..]), (profile, &b"<a>x</a>"[..]));
    }
}
