use proptest::prelude::*;

use super::{Attribute, Node, Piece, Reader, Scanner, escape};
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

/// What the scanner finds, as nodes; texts that touch are joined on both sides to be compared.
fn scan(document: &str) -> Result<Vec<Node>, String> {
    let mut scanner = Scanner::new(document);
    let mut nodes = Vec::new();
    loop {
        let node = match scanner.next_piece().map_err(|error| error.to_string())? {
            Piece::Over => return Ok(joined(nodes)),
            Piece::End => Node::End,
            Piece::Text(text) => Node::Text(text.replace("\r\n", "\n").replace('\r', "\n")),
            Piece::Character(one) => Node::Text(one.into()),
            Piece::Start(tag) => Node::Start {
                namespace: (!tag.namespace.is_empty()).then(|| tag.namespace.to_owned()),
                name: tag.name.to_owned(),
                attributes: Vec::new(),
            },
        };
        nodes.push(node);
    }
}

fn joined(nodes: Vec<Node>) -> Vec<Node> {
    let mut out: Vec<Node> = Vec::new();
    for mut node in nodes {
        if let Node::Start { attributes, namespace, .. } = &mut node {
            attributes.clear();
            namespace.take_if(|namespace| namespace.is_empty());
        }
        match (out.last_mut(), node) {
            (_, Node::Text(text)) if text.is_empty() => {}
            (Some(Node::Text(before)), Node::Text(text)) => before.push_str(&text),
            (_, node) => out.push(node),
        }
    }
    out
}

#[test]
fn the_scanner_gives_slices_and_attributes_by_namespace() {
    let document = "<?xml version='1.0' encoding=\"utf-8\"?><p:a xmlns:p='urn:1' p:x='1' x=\"2\">\
                    <b xmlns='urn:2' xml:lang='en'/></p:a>";
    let mut scanner = Scanner::new(document);
    let Ok(Piece::Start(a)) = scanner.next_piece() else { panic!("a start tag first") };
    assert_eq!((a.namespace, a.name, a.attributes().len()), ("urn:1", "a", 2));
    assert_eq!((a.attribute("urn:1", "x"), a.attribute("", "x")), (Some("1"), Some("2")));
    let Ok(Piece::Start(b)) = scanner.next_piece() else { panic!("another one") };
    assert_eq!((b.namespace, b.attribute("", "lang"), scanner.depth()), ("urn:2", None, 2));
    assert!(matches!(scanner.next_piece(), Ok(Piece::End)));
    assert!(matches!(scanner.next_piece(), Ok(Piece::End)));
    assert!(matches!(scanner.next_piece(), Ok(Piece::Over)));
    assert!(matches!(scanner.next_piece(), Ok(Piece::Over)));
}

#[test]
fn the_scanner_refuses_what_is_beyond_its_bounds() {
    let nested = |depth: usize| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
    assert!(scan(&nested(16)).is_ok());
    assert!(scan(&nested(17)).unwrap_err().contains("nest at most 16"));
    let attributes = |count: usize| {
        let all: String = (0..count).map(|at| format!(" a{at}='x'")).collect();
        format!("<a{all}/>")
    };
    assert!(scan(&attributes(16)).is_ok());
    assert!(scan(&attributes(17)).unwrap_err().contains("at most 16"));
    let spaces = |count: usize| {
        let all: String = (0..count).map(|at| format!(" xmlns:a{at}='x'")).collect();
        format!("<b><a{all}/><a{all}/></b>")
    };
    assert!(scan(&spaces(32)).is_ok(), "those of an element that ended are forgotten");
    assert!(scan(&spaces(33)).unwrap_err().contains("at most 32"));
    for document in ["<a><?b c?></a>", "<a xmlns='urn:&amp;'/>", "<!DOCTYPE a><a/>"] {
        assert!(scan(document).is_err(), "{document}");
    }
}

const PARTS: [&str; 34] = [
    "<",
    ">",
    "/",
    "</",
    "/>",
    "<a>",
    "</a>",
    "<p:b",
    "</p:b>",
    " x='1'",
    " p:x=\"&#65;\"",
    "\"",
    "'",
    "&",
    "&amp;",
    "&#x41;",
    "&#0;",
    ";",
    "=",
    " ",
    "\r\n",
    "]]>",
    "<![CDATA[",
    "<!--",
    "-->",
    "--",
    "<?xml version='1.0'?>",
    "<?x?>",
    " xmlns='urn:1'",
    " xmlns:p='urn:2'",
    " xmlns:p=''",
    "é",
    "\u{1}",
    "\u{ffff}",
];

proptest! {
    /// What the scanner takes, the reader takes, and finds the same in it.
    #[test]
    fn the_scanner_takes_nothing_that_the_reader_refuses(
        parts in proptest::collection::vec(0..PARTS.len(), 0..24),
        in_root in proptest::bool::ANY,
    ) {
        let inside: String = parts.iter().map(|&part| PARTS[part]).collect();
        let document = match in_root {
            true => format!("<r xmlns:p='urn:3'>{inside}</r>"),
            false => inside,
        };
        if let Ok(found) = scan(&document) {
            prop_assert_eq!(read(&document).map(joined), Ok(found), "{}", document);
        }
    }

    /// A document that the reader takes, of what the scanner knows, it takes too.
    #[test]
    fn the_scanner_takes_what_services_are_sent(
        parts in proptest::collection::vec(0..8_usize, 0..12),
    ) {
        let known = [
            "<a>1</a>",
            "<p:b x='&lt;'/>",
            "text &amp; &#65;",
            "<![CDATA[<x>]]>",
            "<!-- - -->",
            "\n",
            "<c xmlns='urn:4'><d/></c>",
            "<e xmlns:q='urn:5' q:y=''>é</e >",
        ];
        let inside: String = parts.iter().map(|&part| known[part]).collect();
        let head = "\u{feff}<?xml version=\"1.0\"?>\n";
        let document = format!("{head}<r xmlns:p='urn:3'>{inside}</r>\n");
        prop_assert_eq!(scan(&document).ok(), read(&document).ok().map(joined));
    }
}
