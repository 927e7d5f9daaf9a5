use proptest::prelude::*;

use super::*;
use crate::exi::schema::Document;

const XSD: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"
  targetNamespace="urn:t" elementFormDefault="qualified">
  <xs:element name="tracks"><xs:complexType><xs:sequence>
    <xs:element name="track" maxOccurs="unbounded"><xs:complexType><xs:sequence>
      <xs:element name="speed" type="xs:decimal"/><xs:element name="label" type="xs:string"/>
    </xs:sequence><xs:attribute name="id" type="xs:int"/></xs:complexType></xs:element>
  </xs:sequence></xs:complexType></xs:element></xs:schema>"#;

fn schema(text: &str) -> Arc<SchemaContext> {
    let document = Document { location: "t.xsd", bytes: text.as_bytes() };
    let schema_context =
        SchemaContext::of_schema(&[document], &mut |_, _| None, &Limits::default());
    Arc::new(schema_context.unwrap())
}

fn plain() -> Arc<SchemaContext> {
    Arc::new(SchemaContext::without_schema())
}

fn tracks(count: usize) -> String {
    let track = |id: usize| {
        let (speed, label) = (id * 37 % 100, id % 7);
        format!(
            "\n  <t:track id='{id:03}'><t:speed>0{speed}.50</t:speed>\
             <t:label>A &amp; <![CDATA[<{label}>]]></t:label></t:track>"
        )
    };
    let all: String = (0..count).map(track).collect();
    format!("<?xml version='1.0' encoding='utf-8'?>\n<t:tracks xmlns:t='urn:t'>{all}\n</t:tracks>")
}

/// The text that comes back, and the length of what is sent.
fn through(
    schema_context: &Arc<SchemaContext>,
    options: Options,
    message: &str,
) -> (Vec<u8>, usize) {
    let mut out = Vec::new();
    schema_context.encoder(options).encode(message.as_bytes(), true, &mut out).unwrap();
    let Made { text, coded } = made(&out).unwrap();
    let mut back = Vec::new();
    schema_context.decoder(options).decode(coded, text.len(), true, &mut back).unwrap();
    assert_eq!(back, text, "the sender knew the text beforehand");
    (back, coded.len())
}

#[test]
fn an_infoset_comes_back_and_a_schema_makes_it_smaller() {
    let schema_context = schema(XSD);
    for count in [1, 3, 40] {
        let message = tracks(count);
        let mut sizes = Vec::new();
        for options in [Options::EXI, Options::EXI_SCHEMA, Options::WBXML] {
            let (back, len) = through(&schema_context, options, &message);
            assert!(same_xml(message.as_bytes(), &back, &LIMITS).unwrap(), "{}", options.label());
            sizes.push(len);
        }
        println!("{} bytes: exi, with schema, wbxml {sizes:?}", message.len());
        assert!(sizes[1] < sizes[0] && sizes[0] < message.len(), "{sizes:?}");
    }
    assert_eq!(schema(XSD).name(), schema_context.name(), "the same on both sides");
    assert_eq!(plain().name(), None);
}

/// What is held of each value is more than a value of a byte has.
#[test]
fn a_block_of_short_values_comes_back() {
    let schema_context = schema(XSD);
    let attributes: String = ('a'..='z').map(|name| format!(" {name}=''")).collect();
    for element in ["<a b='1'/>".to_owned(), "<a>1</a>".to_owned(), format!("<a{attributes}/>")] {
        // What comes back has a declaration too.
        let count = (MAX_BLOCK_BYTES - 100) / element.len();
        let message = format!("<r>{}</r>", element.repeat(count));
        for options in [Options::EXI, Options::EXI_SCHEMA, Options::WBXML] {
            let (back, len) = through(&schema_context, options, &message);
            assert!(same_xml(message.as_bytes(), &back, &LIMITS).unwrap(), "{}", options.label());
            assert!(len < message.len(), "{}: {len}", options.label());
        }
    }
}

#[test]
fn json_comes_back_with_the_text_of_its_numbers() {
    let message = "{ \"lat\" : 38.0350, \"b\": [1e3, -0, \"\\u00e9\", null], \"lat\": 2 }";
    let (back, len) = through(&plain(), Options::CBOR, message);
    assert_eq!(back, "{\"lat\":38.0350,\"b\":[1e3,-0,\"é\",null],\"lat\":2}".as_bytes());
    assert!(len < back.len());
}

#[test]
fn what_would_not_come_back_is_refused() {
    let schema_context = plain();
    let refused = |options: Options, message: &[u8]| {
        schema_context.encoder(options).encode(message, true, &mut Vec::new()).is_err()
    };
    assert!(refused(Options::WBXML, b"<a><!-- not in WBXML --><b/></a>"));
    assert!(!refused(Options::EXI, b"<a><!-- in EXI --><?p i?><b/></a>"));
    for options in Options::INFOSET {
        for message in [
            &b"<!DOCTYPE a><a/>"[..],
            b"<?xml version='1.0' encoding='iso-8859-1'?><a>\xe9</a>",
            b"<?xml version='1.0' encoding='iso-8859-1'?><a/>",
            b"<a>",
            b"",
            b"{\"a\":",
            b"\xff\xfe<\0a\0/\0>\0",
        ] {
            assert!(refused(options, message), "{} {message:?}", options.label());
        }
    }
    let long = vec![b' '; MAX_BLOCK_BYTES + 1];
    assert!(refused(Options::CBOR, &long));
}

#[test]
fn other_grammars_and_other_lengths_are_refused() {
    let (schema_context, message) = (schema(XSD), tracks(2));
    let mut out = Vec::new();
    schema_context.encoder(Options::EXI_SCHEMA).encode(message.as_bytes(), true, &mut out).unwrap();
    let Made { text, coded } = made(&out).unwrap();
    assert_eq!(schema_of(Options::EXI, coded).unwrap(), schema_context.name());
    let decode = |schema_context: &Arc<SchemaContext>, coded: &[u8], len: usize| {
        schema_context.decoder(Options::EXI).decode(coded, len, true, &mut Vec::new())
    };
    assert!(decode(&schema_context, coded, text.len()).is_ok());
    assert!(matches!(decode(&schema_context, coded, text.len() + 1), Err(Error::Length { .. })));
    let other = schema(&XSD.replace("decimal", "int"));
    assert!(decode(&other, coded, text.len()).is_err());
    assert!(decode(&plain(), coded, text.len()).is_err());
    assert!(schema_of(Options::EXI, &[]).is_err() && schema_of(Options::EXI, &[2, 1]).is_err());
    assert!(decode(&schema_context, &[4, 0], 1).is_err());
}

#[test]
fn documents_differ_by_whatever_they_say() {
    let same =
        |one: &str, other: &str| same_xml(one.as_bytes(), other.as_bytes(), &LIMITS).unwrap();
    for (one, other) in [
        ("<a x='1' y='2'/>", "<a y=\"2\"  x=\"1\" ></a>"),
        ("<a>&lt;<![CDATA[b]]></a>", "<a>&#60;b</a>"),
        ("<?xml version='1.0'?>\n<a/>", "<a/>"),
        ("<p:a xmlns:p='u' xmlns='v'/>", "<p:a xmlns='v' xmlns:p='u'/>"),
    ] {
        assert!(same(one, other), "{one} {other}");
    }
    for (one, other) in [
        ("<a/>", "<b/>"),
        ("<a/>", "<a> </a>"),
        ("<a x='1'/>", "<a x='2'/>"),
        ("<a x='1'/>", "<a/>"),
        ("<a xmlns='u'/>", "<a/>"),
        ("<p:a xmlns:p='u'/>", "<q:a xmlns:q='u'/>"),
        ("<a xmlns:p='u'/>", "<a/>"),
        ("<a><b/></a>", "<a/>"),
        ("<a><!--c--></a>", "<a/>"),
        ("<a><?p i?></a>", "<a><?p j?></a>"),
    ] {
        assert!(!same(one, other) && !same(other, one), "{one} {other}");
    }
}

proptest! {
    #[test]
    fn hostile_bytes_make_no_panic_and_no_more_than_a_block(junk: Vec<u8>, len in 0_usize..70_000) {
        let schema_context = schema(XSD);
        let name = schema_context.name().unwrap();
        let with_schema = [&[SCHEMA][..], &name, &junk].concat();
        let _ = made(&junk);
        for options in Options::INFOSET {
            for coded in [&junk, &with_schema] {
                let mut out = Vec::new();
                match schema_context.decoder(options).decode(coded, len, true, &mut out) {
                    Ok(()) => prop_assert!(out.len() == len && len <= MAX_BLOCK_BYTES),
                    Err(_) => prop_assert!(out.is_empty()),
                }
            }
        }
    }

    #[test]
    fn kept_coders_leave_nothing_for_the_next(texts in prop::collection::vec("[a-c]{0,4}", 1..6)) {
        let schema_context = plain();
        for text in texts {
            let message = format!("<r><{text}x>{text}</{text}x></r>");
            let (back, _) = through(&schema_context, Options::EXI, &message);
            prop_assert!(same_xml(message.as_bytes(), &back, &LIMITS).unwrap());
            let mut junk = Vec::new();
            let mut decoder = schema_context.decoder(Options::EXI);
            prop_assert!(decoder.decode(b"\0\x01", 9, true, &mut junk).is_err());
        }
    }
}

/// A schema of several documents in folders, as a side that has the files reads it.
fn of_files(files: &[(&str, &str)]) -> Result<SchemaContext, Error> {
    let (location, text) = files[0];
    let document = Document { location, bytes: text.as_bytes() };
    let mut resolve = |at: &str, _: Option<&str>| {
        let found = files.iter().find(|(location, _)| *location == at);
        found.map(|(_, text)| text.as_bytes().to_vec())
    };
    SchemaContext::of_schema(&[document], &mut resolve, &Limits::default())
}

fn including(location: &str) -> String {
    format!(
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:t'>\
         <xs:include schemaLocation='{location}'/></xs:schema>"
    )
}

#[test]
fn a_schema_goes_to_another_side_in_a_parcel() {
    for (main, other, reference) in [
        ("t.xsd", "u.xsd", "u.xsd"),
        ("/j/jane/main/t.xsd", "/j/jane/types/u.xsd", "../types/u.xsd"),
        ("/j/jane/t.xsd", "/j/jane/types/u.xsd", "./types/u.xsd"),
        ("main/t.xsd", "../u.xsd", "../../u.xsd"),
        ("/a/t.xsd", "/b/u.xsd", "/b/u.xsd"),
    ] {
        let ours = Arc::new(of_files(&[(main, &including(reference)), (other, XSD)]).unwrap());
        let parcel = ours.parcel().expect("it is short").to_vec();
        let mut rest = &parcel[..];
        let len = proto::varint::decode(&mut rest, "a length").unwrap().try_into().unwrap();
        let plain = crate::dictionary::unpack(rest, len).unwrap();
        let plain = String::from_utf8_lossy(&plain);
        assert!(plain.contains("urn:t") && !plain.contains("jane"), "{plain}");
        let theirs = SchemaContext::of_parcel(ours.name().unwrap(), parcel);
        let theirs = Arc::new(theirs);
        let mut out = Vec::new();
        ours.encoder(Options::EXI_SCHEMA).encode(tracks(3).as_bytes(), true, &mut out).unwrap();
        let Made { text, coded } = made(&out).unwrap();
        let read = |back: &mut Vec<u8>| {
            theirs.decoder(Options::EXI_SCHEMA).decode(coded, text.len(), true, back)
        };
        assert!(read(&mut Vec::new()).is_err(), "it is not compiled yet");
        theirs.prepare().unwrap();
        let mut back = Vec::new();
        read(&mut back).unwrap();
        assert_eq!(back, text, "{main}");
        // And what it sends, it reads.
        let mut out = Vec::new();
        theirs.encoder(Options::EXI_SCHEMA).encode(tracks(3).as_bytes(), true, &mut out).unwrap();
        assert_eq!(made(&out).unwrap().coded, coded);
    }
}

#[test]
fn documents_that_are_named_may_refer_to_each_other() {
    let (main, other) = (including("u.xsd"), XSD.to_owned());
    let documents = [("s/t.xsd", main.as_bytes()), ("s/u.xsd", other.as_bytes())];
    let mut both = documents.map(|(location, bytes)| Document { location, bytes });
    let mut resolve = |at: &str, _: Option<&str>| (at == "s/u.xsd").then(|| other.clone().into());
    for _ in 0..2 {
        let ours = SchemaContext::of_schema(&both, &mut resolve, &Limits::default()).unwrap();
        let parcel = ours.parcel().expect("whatever stands first").to_vec();
        SchemaContext::of_parcel(ours.name().unwrap(), parcel).prepare().unwrap();
        both.reverse();
    }
}

#[test]
fn a_parcel_that_is_none_is_refused() {
    let ours = schema(XSD);
    let (name, parcel) = (ours.name().unwrap(), ours.parcel().unwrap().to_vec());
    let refused = |name, parcel: &[u8]| {
        let schema_context = SchemaContext::of_parcel(name, parcel.to_vec());
        let error = schema_context.prepare().unwrap_err().to_string();
        assert!(!schema_context.is_prepared());
        error
    };
    assert!(refused([7; 8], &parcel).contains("under the name of another"));
    for len in 0..parcel.len() {
        refused(name, &parcel[..len]);
    }
    assert!(refused(name, &packed(&[])).contains("number of documents"));
    assert!(refused(name, &packed(&[1])).contains("other documents than come"));
    assert!(refused(name, &packed(&[0, 0, 0])).contains("other documents than come"));
    assert!(refused(name, &packed(&[2, 0, 0])).contains("other documents than come"));
    assert!(refused(name, &packed(&[[1].as_slice(), &[0; 1000]].concat())).contains("limit 256"));
    assert!(refused(name, &parcel_of("<a/>")).contains("a.xsd"));
    assert!(refused(name, &parcel_of(&including("/etc/passwd"))).contains("no document"));
    let mut long = Vec::new();
    proto::varint::encode(1 << 40, &mut long);
    assert!(refused(name, &long).contains("limit 2097152"));
}

/// A parcel of a document's worth, as anybody can make it.
fn parcel_of(text: &str) -> Vec<u8> {
    let mut plain = vec![1];
    proto::varint::encode_bytes(b"a.xsd", &mut plain);
    proto::varint::encode_bytes(text.as_bytes(), &mut plain);
    packed(&plain)
}

fn packed(plain: &[u8]) -> Vec<u8> {
    let mut parcel = Vec::new();
    proto::varint::encode(plain.len() as u64, &mut parcel);
    parcel.extend_from_slice(&crate::dictionary::pack(plain).unwrap());
    parcel
}

/// Few bytes that would be a great many components, or much to compare.
#[test]
fn a_short_schema_that_wants_much_is_refused_before_it_gets_it() {
    let many =
        |count: usize, one: &dyn Fn(usize) -> String| (0..count).map(one).collect::<String>();
    let element = |content: &str| {
        format!(
            "<xs:element name='t'><xs:complexType><xs:sequence>{content}</xs:sequence>\
             </xs:complexType></xs:element>"
        )
    };
    let occurs = "<xs:element name='a' type='xs:int' minOccurs='40000' maxOccurs='40000'/>";
    let attributes = many(4000, &|at| format!("<xs:attribute name='a{at}' type='xs:int'/>"));
    let uris = many(3000, &|at| format!("u{at} "));
    let all = |content: &str| {
        format!(
            "<xs:attributeGroup name='g'>{content}</xs:attributeGroup>{}",
            many(12_000, &|at| format!(
                "<xs:complexType name='t{at}'><xs:attributeGroup ref='g'/></xs:complexType>"
            ))
        )
    };
    let derived = |facets: &str, own: &str| {
        let next = |at: usize| {
            format!(
                "<xs:simpleType name='s{}'><xs:restriction base='s{at}'>{own}</xs:restriction>\
                 </xs:simpleType>",
                at + 1
            )
        };
        format!(
            "<xs:simpleType name='s0'><xs:restriction base='xs:string'>{facets}</xs:restriction>\
             </xs:simpleType>{}",
            many(50, &next)
        )
    };
    let values = many(60_000, &|at| format!("<xs:enumeration value='{at}'/>"));
    let pattern = format!("<xs:pattern value='[{}]'/>", "ab".repeat(400_000));
    let group = format!(
        "<xs:group name='g'><xs:sequence>{}</xs:sequence></xs:group>{}",
        many(9000, &|at| format!("<xs:element name='e{at}' type='xs:int'/>")),
        element(&"<xs:group ref='g' maxOccurs='2'/>".repeat(9000))
    );
    let prefixes = many(9000, &|at| format!(" xmlns:p{at}='u'"));
    for (what, text) in [
        ("occurrences", element(&occurs.repeat(9))),
        ("attributes", all(&attributes)),
        ("namespaces", all(&format!("<xs:anyAttribute namespace='{uris}'/>"))),
        ("one list", format!("<xs:any namespace='{}'/>", many(60_000, &|at| format!("u{at} ")))),
        ("values", derived(&values, "")),
        ("patterns", derived(&pattern, "")),
        ("groups", group),
        ("prefixes", format!("<xs:element name='t'{prefixes}/>")),
        ("a namespace", format!("<xs:element name='t' xmlns:p='{}'/>", "u".repeat(5000))),
    ] {
        let text = match what {
            "one list" => element(&text),
            _ => text,
        };
        let xsd =
            format!("<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'>{text}</xs:schema>");
        let (began, parcel) = (std::time::Instant::now(), parcel_of(&xsd));
        let packed = began.elapsed();
        let result = SchemaContext::of_parcel([0; 8], parcel).prepare();
        println!("{what}: {:?} of {}, {result:?}", began.elapsed() - packed, xsd.len());
        assert!(matches!(result, Err(Error::Limit { .. })), "{what}: {result:?}");
    }
}

#[test]
fn a_schema_that_is_too_long_for_a_parcel_is_for_its_own_side() {
    let mut state = 1_u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{:016x}", state.rotate_left(17) ^ state)
    };
    let notes: String = (0..20_000).map(|_| noise()).collect();
    let text = XSD.replace("</xs:schema>", &format!("<!--{notes}--></xs:schema>"));
    let schema_context = schema(&text);
    assert_eq!(schema_context.parcel(), None);
    assert_eq!(schema_context.name(), schema(XSD).name());
}
