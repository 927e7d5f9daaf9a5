use proptest::prelude::*;

use super::*;
use crate::{Error, Limits};

/// All events in words: enough to compare documents.
fn events(document: &str) -> Result<Vec<String>, Error> {
    let mut reader = Reader::new(document.as_bytes(), &Limits::default())?;
    let mut words = Vec::new();
    loop {
        let event = reader.next()?;
        words.push(word(&event, reader.scanner()));
        if event == Event::Eof {
            return Ok(words);
        }
    }
}

fn word(event: &Event<'_>, scanner: &Scanner) -> String {
    let name = |id| {
        let name = scanner.names().name(id);
        format!("{{{}}}{}", name.uri, name.local)
    };
    match event {
        Event::Start(start) => {
            let mut text = format!("start {} {}", name(start.name), start.prefix);
            for declared in scanner.declarations() {
                let uri = scanner.names().uri(declared.uri);
                text += &format!(" xmlns:{}={uri}", declared.prefix(start));
            }
            for attribute in scanner.attributes() {
                let (prefix, value) = (attribute.prefix(start), attribute.value(start));
                text += &format!(" {}({prefix})={value}", name(attribute.name));
            }
            text
        }
        Event::End { name: id } => format!("end {} {}", name(*id), scanner.written()),
        other => format!("{other:?}"),
    }
}

fn refused(document: &str) -> String {
    match events(document) {
        Err(Error::Malformed { offset, what, .. }) => format!("{offset}: {what}"),
        other => panic!("{document}: {other:?}"),
    }
}

#[test]
fn a_second_byte_order_mark_is_text() {
    assert_eq!(refused("\u{feff}\u{feff}<a/>"), "3: text outside the root element");
    let wide: Vec<u8> = "\u{feff}\u{feff}<a/>".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(to_utf8(&wide, &Limits::default()).is_err());
}

#[test]
fn a_document_with_everything() {
    let document = "\u{feff}<?xml version='1.0' encoding='UTF-8' standalone='yes'?>\n\
        <!-- c\r\n --><!DOCTYPE a PUBLIC '-//X//Y' \"s'y\" [<!ENTITY e \"x>]\">\
        <!-- ] --> %p; <?q ]?>]>\
        <a:a xmlns:a = 'u' xmlns='v' b=\"1\t&lt;&#65;\r\n2\" a:b='>'><c/>\
        x&amp;&#x41;<![CDATA[<&]]]>]&e;y\r\n\
        <?pi d d?></a:a >\n<!---->\r\n";
    let expected = [
        "Declaration(XmlDeclaration { version: \"1.0\", encoding: Some(\"UTF-8\"), standalone: \
         Some(true) })",
        "Comment(\" c\\n \")",
        "Doctype(Doctype { name: \"a\", public: \"-//X//Y\", system: \"s'y\", subset: \
         \"<!ENTITY e \\\"x>]\\\"><!-- ] --> %p; <?q ]?>\" })",
        "start {u}a a xmlns:a=u xmlns:=v {}b()=1 <A 2 {u}b(a)=>",
        "start {v}c ",
        "end {v}c c",
        "Text(\"x&A<&]]\")",
        "EntityRef(\"e\")",
        "Text(\"y\\n\")",
        "Pi { target: \"pi\", data: \"d d\" }",
        "end {u}a a:a",
        "Comment(\"\")",
        "Eof",
    ];
    let events = events(document).unwrap();
    assert_eq!(events, expected);
}

#[test]
fn what_is_not_well_formed_is_refused_where_it_stands() {
    let cases = [
        ("", "0: the document ends without an element or inside a token"),
        ("x<a/>", "0: text outside the root element"),
        ("<a/>x", "4: text outside the root element"),
        ("<a/><b/>", "4: a second root element"),
        ("<a></b>", "3: an end tag that is not that of 'a'"),
        ("<a></ab>", "3: an end tag that is not that of 'a'"),
        ("<a b></a>", "4: an attribute without '='"),
        ("<a b=c/>", "5: an attribute's value without quotes"),
        ("<a b='1'c='2'/>", "8: no white space before an attribute"),
        ("<a b='<'/>", "6: '<' in an attribute's value"),
        ("<a b='1' b='2'/>", "9: an attribute is given twice"),
        ("<a p:b='' q:b='' xmlns:p='u' xmlns:q='u'/>", "10: an attribute is given twice"),
        ("<a xmlns:p='u' xmlns:p='v'/>", "15: a prefix is declared twice"),
        ("<a xmlns='u' xmlns='v'/>", "13: a prefix is declared twice"),
        ("<a xmlns:p=''/>", "3: a prefix is declared as of no namespace"),
        ("<p:a/>", "1: the prefix of 'p:a' is not declared"),
        ("<a p:b=''/>", "3: the prefix of 'p:b' is not declared"),
        ("<a><b xmlns:p='u'/><p:c/></a>", "20: the prefix of 'p:c' is not declared"),
        ("<xmlns:a/>", "1: the prefix of 'xmlns:a' is not declared"),
        ("<a xmlns:xml='u'/>", "3: a reserved prefix or namespace is declared"),
        ("<a xmlns:xmlns='u'/>", "3: a reserved prefix or namespace is declared"),
        (
            "<a xmlns='http://www.w3.org/2000/xmlns/'/>",
            "3: a reserved prefix or namespace is declared",
        ),
        ("<a:b:c xmlns:a='u'/>", "1: 'a:b:c' is not a name"),
        ("<:a/>", "1: ':a' is not a name"),
        ("<a:/>", "1: 'a:' is not a name"),
        ("<1/>", "1: '1' is not a name"),
        ("< a/>", "1: '' is not a name"),
        ("<\u{d7}/>", "1: '\u{d7}' is not a name"),
        ("<a>]]></a>", "3: ']]>' in text"),
        ("<a>&</a>", "3: '&' without a reference"),
        ("<a>&x</a>", "3: '&' without a reference"),
        ("<a>&e;</a>", "3: a reference to an entity that is not declared, or not as text"),
        (
            "<!DOCTYPE a [<!ENTITY f ''>]><a>&e;</a>",
            "32: a reference to an entity that is not declared, or not as text",
        ),
        ("<a>&#0;</a>", "3: a reference to no character and no entity"),
        ("<a>&#xD800;</a>", "3: a reference to no character and no entity"),
        ("<a>&#+65;</a>", "3: '&' without a reference"),
        (
            "<a b='&e;'/>",
            "6: a reference to an entity in an attribute's value: entities are not \
                          expanded",
        ),
        ("<a>\u{1}</a>", "3: a character that no document may have"),
        ("<a b='\u{b}'/>", "6: a character that no document may have"),
        ("<a>\u{ffff}</a>", "3: a character that no document may have"),
        ("<a><!-- -- --></a>", "8: '--' in a comment"),
        ("<a><!-- ---></a>", "8: '--' in a comment"),
        ("<a><?xml v?></a>", "5: an instruction's target that is no name or 'xml'"),
        (" <?xml version='1.0'?><a/>", "3: an instruction's target that is no name or 'xml'"),
        ("<?xml encoding='x'?><a/>", "0: an XML declaration of another form"),
        ("<?xml version='2.0'?><a/>", "0: an XML declaration of another form"),
        ("<a><!DOCTYPE a></a>", "3: '<!' where neither comment nor section may begin"),
        ("<!DOCTYPE a><!DOCTYPE a><a/>", "12: '<!' where neither comment nor section may begin"),
        ("<!DOCTYPE><a/>", "9: DOCTYPE without a name"),
        ("<!DOCTYPE a [<!ELEMENTS>]><a/>", "22: white space is missing in DOCTYPE"),
        ("<!DOCTYPE a [<!THING a>]><a/>", "13: no declaration that an internal subset may have"),
        ("<a", "2: the document ends inside an element or token"),
    ];
    for (document, what) in cases {
        if document == "<a" {
            assert!(refused(document).starts_with("2: the document ends"));
        } else {
            assert_eq!(refused(document), what, "{document}");
        }
    }
}

/// What stands in an internal subset is kept as text, so it is text that others can read.
#[test]
fn declarations_of_a_subset_have_the_form_that_the_standard_gives_them() {
    let read = |subset: &str| events(&format!("<!DOCTYPE a [{subset}]><a/>")).is_ok();
    for good in [
        "<!ELEMENT a EMPTY ><!ELEMENT p:a ANY>\n%p; <!--c--><?p?><?p q?>",
        "<!ELEMENT a (#PCDATA)><!ELEMENT a ( #PCDATA )*><!ELEMENT a (#PCDATA | b|p:c )*>",
        "<!ELEMENT a (b)><!ELEMENT a ( b?, (c | d+)*, ((e)) )? >",
        "<!ATTLIST a><!ATTLIST a b CDATA #REQUIRED p:c ID #IMPLIED d (1|-x) #FIXED '1' >",
        "<!ATTLIST a b NOTATION (n | m) 'n' c NMTOKENS \"'&lt;&#x41;&e;>\">",
        "<!ENTITY e 'a<b>&#38;&f;' ><!ENTITY % p \"'\"><!ENTITY e SYSTEM '%'>",
        "<!ENTITY e PUBLIC \"-//X'\" 'y'><!ENTITY e SYSTEM 'y' NDATA n>",
        "<!NOTATION n SYSTEM 'y'><!NOTATION n PUBLIC 'x'><!NOTATION n PUBLIC 'x' 'y'>",
    ] {
        assert!(read(good), "{good}");
    }
    for bad in [
        "<!ELEMENT a>",
        "<!ELEMENT a ()>",
        "<!ELEMENT a (b,c|d)>",
        "<!ELEMENT a (b c)>",
        "<!ELEMENT a (b>",
        "<!ELEMENT a ((b)>",
        "<!ELEMENT a (b)) >",
        "<!ELEMENT a (b) *>",
        "<!ELEMENT a (%p;)>",
        "<!ELEMENT a (#PCDATA|b)>",
        "<!ELEMENT a (#PCDATA,b)*>",
        "<!ELEMENT a (b|#PCDATA)*>",
        "<!ELEMENT 1 ANY>",
        "<!ELEMENT a empty>",
        "<!ATTLIST a b CDATA>",
        "<!ATTLIST a b TEXT #IMPLIED>",
        "<!ATTLIST a b CDATA #FIXED>",
        "<!ATTLIST a b CDATA '<'>",
        "<!ATTLIST a b CDATA '&'>",
        "<!ATTLIST a b () #IMPLIED>",
        "<!ATTLIST a b (x,y) #IMPLIED>",
        "<!ATTLIST a b NOTATION (1) #IMPLIED>",
        "<!ENTITY e>",
        "<!ENTITY e x>",
        "<!ENTITY e '100%'>",
        "<!ENTITY e '&#0;'>",
        "<!ENTITY p:e 'x'>",
        "<!ENTITY % p SYSTEM 'y' NDATA n>",
        "<!ENTITY e PUBLIC 'x'>",
        "<!ENTITY e PUBLIC '{' 'y'>",
        "<!ENTITY e SYSTEM 'y' NDATA>",
        "<!NOTATION n>",
        "<!NOTATION n 'x'>",
        "<!-- a -- b -->",
        "<?xml version='1.0'?>",
        "<?p:q?>",
        "% p;",
        "text",
    ] {
        assert!(!read(bad), "{bad}");
    }
    let deep = format!("<!ELEMENT a {}b{}>", "(".repeat(100_000), ")".repeat(100_000));
    assert!(read(&deep) && !read(&deep[..deep.len() - 2]));
    let refers = |subset: &str| events(&format!("<!DOCTYPE a [{subset}]><a>&e;</a>")).is_ok();
    assert!(refers("<!ENTITY e ''>") && refers("%p;") && refers("<!ENTITY e SYSTEM 'y'>"));
    assert!(!refers("<!--<!ENTITY e ''>-->") && !refers("<!ENTITY % e ''>"));
    assert!(!refers("<!ENTITY e SYSTEM 'y' NDATA n>"), "not as text");
}

#[test]
fn prefixes_mean_what_the_innermost_declaration_says() {
    let document = "<p:a xmlns:p='u'><p:a xmlns:p='v' xmlns='w' p:x='' x=''><a xmlns=''/><a/></p:a>\
                    <p:a p:x='' xml:lang=''/><a/></p:a>";
    let events = events(document).unwrap();
    let starts: Vec<_> = events.iter().filter(|event| event.starts_with("start")).collect();
    let expected = [
        "start {u}a p xmlns:p=u",
        "start {v}a p xmlns:p=v xmlns:=w {v}x(p)= {}x()=",
        "start {}a  xmlns:=",
        "start {w}a ",
        "start {u}a p {u}x(p)= {http://www.w3.org/XML/1998/namespace}lang(xml)=",
        "start {}a ",
    ];
    assert_eq!(starts, expected);
}

#[test]
fn limits_have_names() {
    let deep = "<a>".repeat(300);
    let named = |document: &str, limits: Limits| {
        let mut reader = Reader::of(document, &limits);
        loop {
            match reader.next() {
                Ok(Event::Eof) => panic!("nothing was refused"),
                Ok(_) => {}
                Err(error) => return error.to_string(),
            }
        }
    };
    assert_eq!(named(&deep, Limits::default()), "xml: elements over depth 256");
    let many: String = (0..5000).map(|n| format!("<a{n}/>")).collect();
    let small = Limits { table_bytes: 100_000, ..Limits::default() };
    assert_eq!(named(&format!("<a>{many}</a>"), small), "xml: names over table_bytes 100000");
    let many: String = (0..5000).map(|_| " a=''").collect();
    assert_eq!(named(&format!("<a{many}/>"), small), "xml: attributes of a tag over table_bytes");
    let mut scanner = Scanner::new(&Limits { message_bytes: 100, ..small });
    let error = scanner.next(&format!("<a b='{}", "x".repeat(100)), false).unwrap_err();
    assert_eq!(error.to_string(), "xml: a token over message_bytes 100");
}

#[test]
fn character_sets_become_utf8() {
    let limits = Limits::default();
    let utf8 = |bytes: &[u8]| to_utf8(bytes, &limits).map(Cow::into_owned);
    let text = "<?xml version='1.0' encoding='UTF-16'?><a>\u{20ac}\u{1f600}</a>";
    let units: Vec<u16> = text.encode_utf16().collect();
    let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
    let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
    assert_eq!(utf8(&big).unwrap(), text);
    assert_eq!(utf8(&little).unwrap(), text);
    assert_eq!(utf8(&[&b"\xfe\xff"[..], &big].concat()).unwrap(), text);
    assert_eq!(utf8(&[&b"\xff\xfe"[..], &little].concat()).unwrap(), text);
    assert!(utf8(&little[..little.len() - 1]).is_err());
    assert_eq!(utf8(b"\xef\xbb\xbf<a/>").unwrap(), "<a/>");
    let declared = |name: &str, byte: u8| {
        let head = format!("<?xml version=\"1.0\" encoding=\"{name}\"?><a>");
        utf8(&[head.as_bytes(), &[byte], b"</a>"].concat())
    };
    assert!(declared("iso-8859-1", 0xe4).unwrap().contains("<a>\u{e4}<"));
    assert!(declared("Windows-1252", 0x80).unwrap().contains("<a>\u{20ac}<"));
    assert!(declared("windows-1252", 0x81).is_err());
    assert!(declared("us-ascii", 0xe4).is_err());
    assert!(declared("utf-8", 0xe4).is_err());
    let error = declared("koi8-r", 0xe4).unwrap_err().to_string();
    assert!(error.contains("charset 'koi8-r'"), "{error}");
}

/// XML 1.0 §4.3.3: a document in another set than it declares is refused, however it is read.
#[test]
fn a_set_that_the_bytes_contradict_is_refused() {
    let text = |name: &str| format!("<?xml version='1.0' encoding='{name}'?><a>\u{c3}\u{a9}</a>");
    let utf8 = |mark: &[u8], name: &str| [mark, text(name).as_bytes()].concat();
    let wide = |mark: bool, name: &str, unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
        let text = format!("{}{}", if mark { "\u{feff}" } else { "" }, text(name));
        text.encode_utf16().flat_map(unit).collect()
    };
    let mark = b"\xef\xbb\xbf";
    let (big, little) = (u16::to_be_bytes as fn(u16) -> [u8; 2], u16::to_le_bytes as _);
    let cases = [
        (utf8(mark, "utf-8"), true),
        (utf8(mark, "UTF8"), true),
        (utf8(mark, "iso-8859-1"), false),
        (utf8(mark, "us-ascii"), false),
        (utf8(mark, "utf-16"), false),
        (utf8(mark, "koi8-r"), false),
        (utf8(b"", "utf-16"), false),
        (wide(true, "UTF-16", big), true),
        (wide(true, "utf-16be", big), true),
        (wide(false, "utf-16", little), true),
        (wide(false, "ISO-10646-UCS-2", little), true),
        (wide(true, "utf-8", big), false),
        (wide(false, "utf-8", little), false),
        (wide(true, "iso-8859-1", little), false),
        (wide(true, "utf-16le", big), false),
        (wide(false, "utf-16be", little), false),
    ];
    for (at, (document, good)) in cases.iter().enumerate() {
        let whole = to_utf8(document, &Limits::default());
        assert_eq!(whole.is_ok(), *good, "case {at}: {whole:?}");
        for cut in [0, 1, 2, 3, 30, 60, document.len()] {
            let (left, right) = document.split_at(cut.min(document.len()));
            let parts = streamed(&[left, right]);
            assert_eq!(parts.is_ok(), *good, "case {at}, cut at {cut}: {parts:?}");
        }
        let bytewise: Vec<&[u8]> = document.chunks(1).collect();
        assert_eq!(streamed(&bytewise).is_ok(), *good, "case {at}");
    }
    let error = to_utf8(&cases[2].0, &Limits::default()).unwrap_err().to_string();
    let expected = "charset 'iso-8859-1' is declared, but the byte order mark shows UTF-8";
    assert!(error.ends_with(expected), "{error}");
}

/// The streaming codecs get the sets that those of whole messages do.
#[test]
fn a_stream_in_another_character_set_reads_as_the_whole_does_at_any_cut() {
    let text = |charset: &str| {
        format!("<?xml version='1.0' encoding='{charset}'?><\u{e4}>\u{c3}\u{a9}</\u{e4}>")
    };
    let single = |charset: &str| -> Vec<u8> {
        text(charset).chars().map(|char| u8::try_from(u32::from(char)).unwrap()).collect()
    };
    let wide = text("utf-16").replace('\u{a9}', "\u{1f600}");
    let wide: Vec<u8> = wide.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let sheet = "<?xml-stylesheet encoding='none'?><a>\u{e4}</a>".as_bytes().to_vec();
    for document in [single("iso-8859-1"), single("windows-1252"), wide.clone(), sheet] {
        let whole = events(&to_utf8(&document, &Limits::default()).unwrap()).unwrap();
        for at in 0..=document.len() {
            let (left, right) = document.split_at(at);
            assert_eq!(streamed(&[left, right]).unwrap(), whole, "cut at {at}");
        }
        let bytewise: Vec<&[u8]> = document.chunks(1).collect();
        assert_eq!(streamed(&bytewise).unwrap(), whole);
    }
    let cut: Vec<&[u8]> = wide[..wide.len() - 1].chunks(3).collect();
    assert!(streamed(&cut).is_err());
    let refused = streamed(&[&single("koi8-r")]).unwrap_err().to_string();
    assert!(refused.contains("charset 'koi8-r'"), "{refused}");
    let refused = streamed(&[text("utf-16").as_bytes()]).unwrap_err().to_string();
    assert!(refused.contains("not of it"), "{refused}");
}

/// Events of a document that comes in these blocks, texts whole.
fn streamed(blocks: &[&[u8]]) -> Result<Vec<String>, Error> {
    let mut stream = Stream::new(&Limits::default());
    let mut words = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        stream.push(block, at + 1 == blocks.len())?;
        while let Some((event, scanner)) = stream.next()? {
            words.push(word(&event, scanner));
            if event == Event::Eof {
                return Ok(words);
            }
        }
    }
    Ok(words)
}

const SAMPLE: &str = "<?xml version='1.0'?> \n <!-- a - b --> <?p q?><!DOCTYPE a [ <!ENTITY e '>'> \
    <!-- ]> --> ]>\r\n<a xmlns='u'  b = 'x &#228; y'><![CDATA[ ]] ]]>\u{e4}\u{20ac}&lt;<b\n/>\
    <c>]] &e; tail</c\n><!-- --><?p?>&gt;</a> <!-- end -->\n";

#[test]
fn any_split_gives_the_same_events() {
    let whole = events(SAMPLE).unwrap();
    let bytes = SAMPLE.as_bytes();
    for at in 0..=bytes.len() {
        let (left, right) = bytes.split_at(at);
        assert_eq!(streamed(&[left, right]).unwrap(), whole, "cut at {at}");
        for behind in [1, 7, 30] {
            let (middle, right) = right.split_at(behind.min(right.len()));
            assert_eq!(streamed(&[left, middle, right, b""]).unwrap(), whole, "{at} {behind}");
        }
    }
    let bytewise: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(streamed(&bytewise).unwrap(), whole);
}

#[test]
fn long_tokens_in_small_blocks_take_linear_time() {
    let long = "x".repeat(300_000);
    let document = format!(
        "<!--{long}--> {} <!DOCTYPE a [<!--{long}-->]><a b='{long}'>\
         {long}<![CDATA[{long}]]><?p {long}?></a>",
        " ".repeat(300_000)
    );
    let whole = events(&document).unwrap();
    let blocks: Vec<&[u8]> = document.as_bytes().chunks(64).collect();
    // Squared, this would be 10^10 bytes for each token.
    assert_eq!(streamed(&blocks).unwrap(), whole);
}

#[test]
fn no_mutation_panics_and_splits_agree_on_errors() {
    let mut state = 7_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(state >> 33).unwrap() % below
    };
    for _ in 0..4000 {
        let mut bytes = SAMPLE.as_bytes().to_vec();
        for _ in 0..=random(3) {
            let at = random(bytes.len());
            match random(4) {
                0 => bytes[at] ^= 1 << random(8),
                1 => bytes.truncate(at.max(1)),
                2 => bytes.insert(at, b"<>&'\"]-?!/\x00\xff"[random(12)]),
                _ => drop(bytes.remove(at)),
            }
            if bytes.is_empty() {
                bytes.push(b'<');
            }
        }
        let whole = std::str::from_utf8(&bytes).ok().map(|text| events(text).map_err(|_| ()));
        let blocks: Vec<&[u8]> = bytes.chunks(1 + random(40)).collect();
        let split = streamed(&blocks).map_err(|_| ());
        assert_eq!(split, whole.unwrap_or(Err(())), "{}", String::from_utf8_lossy(&bytes));
    }
}

/// A tree as events for the writer.
#[derive(Clone, Debug)]
enum Node {
    Text(String),
    Comment(String),
    Element(u8, Vec<(u8, String)>, Vec<Node>),
}

fn nodes() -> impl Strategy<Value = Node> {
    let text = "[a-z<>&'\"\\]\r\n\t\u{e4}\u{20ac} ]{1,12}";
    let leaf = prop_oneof![text.prop_map(Node::Text), "[a-z ]{0,8}".prop_map(Node::Comment),];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        let attributes = proptest::collection::vec((0..6_u8, text), 0..4);
        let children = proptest::collection::vec(inner, 0..6);
        (0..4_u8, attributes, children).prop_map(|(n, a, c)| Node::Element(n, a, c))
    })
}

fn write(node: &Node, writer: &mut Writer) {
    match node {
        Node::Text(text) => writer.text(text),
        Node::Comment(text) => writer.comment(text),
        Node::Element(name, attributes, children) => {
            let name = ["a", "p:a", "b", "p:long-name"][usize::from(*name)];
            writer.start(name);
            writer.namespace("p", ["u", "v"][attributes.len() % 2]);
            let mut seen = [false; 6];
            for (name, value) in attributes {
                let name = usize::from(*name);
                if !std::mem::replace(&mut seen[name], true) {
                    writer.attribute(["x", "p:x", "y", "xml:lang", "p:y", "z"][name], value);
                }
            }
            children.iter().for_each(|child| write(child, writer));
            writer.end(name);
        }
    }
}

/// Writes what is read.
fn rewritten(document: &str) -> Vec<u8> {
    let mut reader = Reader::of(document, &Limits::default());
    let mut writer = Writer::new();
    loop {
        match reader.next().unwrap() {
            Event::Start(start) => {
                writer.start(reader.scanner().written());
                for declared in reader.declarations() {
                    writer.namespace(declared.prefix(&start), reader.names().uri(declared.uri));
                }
                for attribute in reader.attributes() {
                    let local = reader.names().name(attribute.name).local;
                    writer.attribute_prefixed(
                        attribute.prefix(&start),
                        local,
                        &attribute.value(&start),
                    );
                }
            }
            Event::End { .. } => writer.end(reader.scanner().written()),
            Event::Text(text) => writer.text(&text),
            Event::EntityRef(name) => writer.entity(name),
            Event::Comment(text) => writer.comment(&text),
            Event::Pi { target, data } => writer.pi(target, &data),
            Event::Doctype(doctype) => writer.doctype(&doctype),
            Event::Declaration { .. } => writer.declaration(),
            Event::Eof => return writer.finish(),
        }
    }
}

#[test]
fn indentation_behind_a_line_end_of_two_is_borrowed() {
    let texts = |document| {
        let mut reader = Reader::of(document, &Limits::default());
        let mut found = Vec::new();
        loop {
            match reader.next().unwrap() {
                Event::Text(text) => found.push(text),
                Event::Eof => return found,
                _ => {}
            }
        }
    };
    let found = texts("<a>\r\n  <b/>\r\n\r\n<b/>\r<b/>x\r\n</a>");
    assert_eq!(found, ["\n  ", "\n\n", "\n", "x\n"]);
    assert!(matches!(found[0], Cow::Borrowed(_)));
    assert!(matches!(found[1], Cow::Owned(_)));
}

#[test]
fn prefixes_are_looked_up_where_the_last_tag_stands() {
    let document = "<a xmlns:p='u'><b xmlns='v' xmlns:p='w'/></a>";
    let mut reader = Reader::of(document, &Limits::default());
    for [default, prefixed] in [["", "u"], ["v", "w"], ["", "u"]] {
        reader.next().unwrap();
        let uri = |prefix| reader.scanner().namespace(prefix).map(|id| reader.names().uri(id));
        let found = [uri(""), uri("p"), uri("q"), uri("xml"), uri("xmlns")];
        assert_eq!(found, [Some(default), Some(prefixed), None, Some(XML_URI), None]);
    }
}

#[test]
fn names_are_distinguished_whatever_came_before() {
    // Guesses are right for the second row, and wrong for the last in all its names.
    let row = "<r:row a='1' b='2'><r:name>x</r:name><r:names>y</r:names></r:row >";
    let last = "<r:row b='1' ab='2'><r:names>x</r:names><s:name>y</s:name><r:name/></r:row>";
    let document = format!("<t xmlns:r='u' xmlns:s='v'>{row}{row}{last}</t>");
    let found = events(&document).unwrap();
    let mut starts = found.iter().filter(|event| event.starts_with("start"));
    let tree = roxmltree::Document::parse(&document).unwrap();
    for element in tree.descendants().filter(roxmltree::Node::is_element) {
        let name = element.tag_name();
        let begin = format!("start {{{}}}{} ", name.namespace().unwrap_or(""), name.name());
        let values =
            element.attributes().map(|one| format!(" {{}}{}()={}", one.name(), one.value()));
        let found = starts.next().unwrap();
        assert!(
            found.starts_with(&begin) && found.ends_with(&values.collect::<String>()),
            "{found}"
        );
    }
    assert!(starts.next().is_none());
    for wrong in ["<r><a></ab></r>", "<r><ab></a></r>", "<r><a></a><a></b></r>", "<r><a></a\u{e9}>"]
    {
        let wrong = format!("{wrong}<!--{:40}-->", "");
        assert!(refused(&wrong).contains("not that of"), "{wrong}");
    }
}

#[test]
fn what_is_read_and_written_reads_the_same() {
    let again = String::from_utf8(rewritten(SAMPLE)).unwrap();
    let (first, second) = (events(SAMPLE).unwrap(), events(&again).unwrap());
    assert_eq!(first[1..], second[1..], "{again}");
}

proptest! {
    #[test]
    fn generated_documents_survive(children in proptest::collection::vec(nodes(), 0..6)) {
        let mut writer = Writer::new();
        write(&Node::Element(1, vec![], children), &mut writer);
        let document = String::from_utf8(writer.finish()).unwrap();
        let again = rewritten(&document);
        prop_assert_eq!(document.as_bytes(), again.as_slice());
        prop_assert!(events(&document).is_ok());
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(text) = to_utf8(&bytes, &Limits::default()) {
            let _ = events(&text);
        }
    }
}
