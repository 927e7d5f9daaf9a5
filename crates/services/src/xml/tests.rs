use proptest::prelude::*;

use super::{Attribute, Node, Reader, escape};
use crate::Error;

fn read(document: &str) -> Result<Vec<Node>, Error> {
    let mut reader = Reader::new(document);
    let mut nodes = Vec::new();
    while let Some(node) = reader.next_node()? {
        nodes.push(node);
    }
    Ok(nodes)
}

fn start(namespace: Option<&str>, name: &str) -> Node {
    let namespace = namespace.map(str::to_owned);
    Node::Start { namespace, name: name.into(), attributes: Vec::new() }
}

#[test]
fn names_are_resolved_and_references_replaced() {
    let document = "\u{feff}<?xml version='1.0'?><!-- x --><a xmlns='urn:1' xmlns:p='urn:2'>\
                    <p:b/>1 &lt; &#50;<![CDATA[<&]]></a>\n";
    let text = |text: &str| Node::Text(text.into());
    let expected = vec![
        start(Some("urn:1"), "a"),
        start(Some("urn:2"), "b"),
        Node::End,
        text("1 "),
        text("<"),
        text(" "),
        text("2"),
        text("<&"),
        Node::End,
    ];
    assert_eq!(read(document), Ok(expected));
}

#[test]
fn attributes_have_their_namespace_and_normalized_value() {
    let nodes = read("<a xmlns:p='urn:2' p:x='1&amp;2' x=\"a\nb\"/>").unwrap();
    let attribute = |namespace: Option<&str>, value: &str| Attribute {
        namespace: namespace.map(str::to_owned),
        name: "x".into(),
        value: value.into(),
    };
    let expected = vec![attribute(Some("urn:2"), "1&2"), attribute(None, "a b")];
    let Node::Start { attributes, .. } = &nodes[0] else { panic!("a start tag first") };
    assert_eq!(attributes, &expected);
}

#[test]
fn what_is_not_well_formed_is_refused() {
    let cases = [
        ("", "no element"),
        ("  ", "no element"),
        ("<a>", "open"),
        ("<a><b></a></b>", "</a>"),
        ("</a>", "a"),
        ("<a/><b/>", "second root"),
        ("<a/>text", "outside"),
        ("text<a/>", "outside"),
        ("<a/>&#65;", "outside"),
        ("<a>&nbsp;</a>", "undeclared entity 'nbsp'"),
        ("<a b='&nbsp;'/>", ""),
        ("<a>&#0;</a>", ""),
        ("<a>&#1;</a>", "U+0001"),
        ("<a>\u{1}</a>", "U+0001"),
        ("<a>\u{ffff}</a>", "U+FFFF"),
        ("<a b='\u{2}'/>", "U+0002"),
        ("<a><![CDATA[\u{3}]]></a>", "U+0003"),
        ("<a><!-- \u{3} --></a>", "U+0003"),
        ("<a b='<'/>", "'<'"),
        ("<a b='1' b='2'/>", ""),
        ("<a xmlns:p='u' xmlns:q='u' p:b='1' q:b='2'/>", "twice"),
        ("<p:a/>", "prefix 'p'"),
        ("<a p:b='1'/>", "prefix 'p'"),
        ("<1a/>", "not a name"),
        ("<a:b:c xmlns:a='u'/>", "not a name"),
        ("<a 1b='2'/>", "not a name"),
        ("<a b/>", ""),
        ("<a b=c/>", ""),
        ("<a>]]></a>", "]]>"),
        ("<a><!-- -- --></a>", ""),
        ("<a/><?xml version='1.0'?>", "not at the start"),
        ("<a", ""),
        ("<a>&", ""),
        ("<a>& b</a>", ""),
    ];
    for (document, expected) in cases {
        match read(document) {
            Err(Error::Peer(line)) => {
                assert!(line.contains(expected), "{document}: {line}");
                assert!(!line.contains('\n'), "{document}: {line}");
            }
            other => panic!("{document}: {other:?}"),
        }
    }
}

#[test]
fn document_types_are_refused_whatever_they_say() {
    for document in [
        "<!DOCTYPE a><a/>",
        "<!DOCTYPE a SYSTEM 'http://127.0.0.1/x.dtd'><a/>",
        "<!DOCTYPE a [<!ENTITY b '&c;&c;'><!ENTITY c 'd'>]><a>&b;</a>",
        "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>",
    ] {
        let error = read(document).unwrap_err();
        assert!(error.to_string().contains("DOCTYPE"), "{document}: {error}");
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
    assert!(read(&nested(64)).is_ok());
    assert!(matches!(read(&nested(65)), Err(Error::Limit(_))));
    assert!(matches!(read(&"<a>".repeat(1_000_000)), Err(Error::Limit(_))));
}

#[test]
fn what_xml_cannot_hold_is_replaced() {
    let mut out = String::new();
    escape("a\u{1}\u{ffff}<", &mut out);
    assert_eq!(out, "a\u{fffd}\u{fffd}&lt;");
}

proptest! {
    #[test]
    fn any_text_survives_escaping(
        text in "[\t\n -\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]*",
    ) {
        let mut document = String::from("<a>");
        escape(&text, &mut document);
        document.push_str("</a>");
        let joined = read(&document).unwrap().into_iter().filter_map(|node| match node {
            Node::Text(text) => Some(text),
            _ => None,
        });
        prop_assert_eq!(joined.collect::<String>(), text);
    }

    #[test]
    fn no_input_panics_or_loops(document in "[<>/a-c!?='\"& ;#x0-9:\\[\\]-]{0,200}") {
        let _ = read(&document);
    }

    #[test]
    fn no_truncation_of_a_document_is_whole(cut in 0_usize..90) {
        let document = "<a xmlns='urn:1'><b c='d'>text &amp; more</b><!-- e -->\
                        <f><![CDATA[g]]></f><h/></a>";
        prop_assert!(read(document).is_ok());
        if let Some(part) = document.get(..cut.min(document.len() - 1)) {
            prop_assert!(read(part).is_err());
        }
    }
}
