//! Schemas out of the ordinary: in a WSDL, and of a thousand occurrences.

use std::sync::Arc;

use crate::Limits;
use crate::exi::{Options, Schema, decode, encode, schema::Document};

#[test]
fn schemas_in_a_wsdl_are_read_together() {
    let wsdl = "<w:definitions xmlns:w='http://schemas.xmlsoap.org/wsdl/' \
        xmlns:s='http://www.w3.org/2001/XMLSchema' xmlns:a='urn:a' xmlns:b='urn:b'>\
        <w:documentation><p xmlns:b='urn:other'/></w:documentation><w:types>\
        <s:schema targetNamespace='urn:a'><s:import namespace='urn:b'/>\
        <s:element name='x' type='b:t'/></s:schema>\
        <s:schema targetNamespace='urn:b'><s:complexType name='t'><s:sequence>\
        <s:element name='y' type='s:int'/></s:sequence></s:complexType></s:schema>\
        <s:schema targetNamespace='urn:b'><s:element name='z' type='s:date'/></s:schema>\
        </w:types><w:message name='m'/></w:definitions>";
    let limits = Limits::default();
    let document = Document { location: "a/service.wsdl", bytes: wsdl.as_bytes() };
    let schema = Schema::parse(&[document], &mut |_, _| None, &limits).unwrap();
    let grammars = schema.grammars(&Options::default(), &limits).unwrap();
    assert_eq!((grammars.elements.len(), grammars.global_elements.len()), (3, 2));
    let nothing = Document { location: "x", bytes: b"<w/>" };
    assert!(Schema::parse(&[nothing], &mut |_, _| None, &limits).is_err());
}

#[test]
fn elements_may_occur_a_thousand_times() {
    for (min, max) in [(0, 1000), (1000, 1000), (1, 20_000)] {
        let xsd = format!(
            "<s:schema xmlns:s='http://www.w3.org/2001/XMLSchema'><s:element name='r'>\
             <s:complexType><s:sequence><s:element name='a' type='s:int' minOccurs='{min}' \
             maxOccurs='{max}'/><s:element name='b' minOccurs='0' maxOccurs='500'/></s:sequence>\
             </s:complexType></s:element></s:schema>"
        );
        let limits = Limits::default();
        let document = Document { location: "x", bytes: xsd.as_bytes() };
        let schema = Schema::parse(&[document], &mut |_, _| None, &limits).unwrap();
        for strict in [true, false] {
            let options = Options { strict, ..Options::default() };
            let grammars = Arc::new(schema.grammars(&options, &limits).unwrap());
            let xml = format!("<r>{}<b/></r>", "<a>1</a>".repeat(max));
            let stream = encode(xml.as_bytes(), &options, Some(&grammars), &limits).unwrap();
            let text = decode(&stream, &options, Some(&grammars), &limits).unwrap();
            assert_eq!(text, xml.as_bytes());
            let more = xml.replace("<b/>", "<a>1</a>");
            let more = encode(more.as_bytes(), &options, Some(&grammars), &limits);
            assert_eq!(more.is_ok(), !strict);
        }
    }
}
