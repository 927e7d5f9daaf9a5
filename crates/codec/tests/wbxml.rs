//! WBXML against streams and documents of others.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "common/collapsed.rs"]
mod collapsed;
mod infoset;

use std::path::{Path, PathBuf};

use base64::{display::Base64Display, engine::general_purpose::STANDARD};
use collapsed::collapsed;
use infoset::{Rules, difference};
use longwire_codec::wbxml::{Charset, Encoder, Settings, TokenTable, decode, encode, tables};
use longwire_codec::xml::Writer;
use longwire_codec::{Error, Limits};

/// What WBXML keeps: no comments; prefixes where tables have no namespaces; white space as the
/// other encoder saw fit.
const KEPT: Rules = Rules { comments: false, pis: true, ..Rules::ELEMENTS };

/// The same, of our own streams, which keep white space.
const EXACT: Rules = Rules { white_space: true, ..KEPT };

fn data() -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let root = std::env::var_os("LONGWIRE_DATA").map_or(default, PathBuf::from).join("wbxml");
    if !root.is_dir() {
        println!("left out, all: {} is not there", root.display());
        return None;
    }
    Some(root)
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(files(&entry, extension));
        } else if entry.extension().is_some_and(|known| known == extension) {
            found.push(entry);
        }
    }
    found.sort();
    found
}

/// The table by which a folder's streams have to be read where their header does not say.
fn table(path: &Path) -> Option<TokenTable> {
    let folder = path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    if let Some(example) = folder.strip_prefix("example") {
        return Some(example_table(example.starts_with('1')));
    }
    let name = match folder.as_str() {
        "activesync" => "ActiveSync",
        "ota" => "OTA",
        _ => return None,
    };
    tables().iter().find(|table| table.name == name).cloned()
}

/// The tables of the two examples of WAP-192 §8.
fn example_table(first: bool) -> TokenTable {
    let text = if first {
        "name example 1\nnumber 0x1\ntags 0\n05 BR\n06 CARD\n07 XYZ\n"
    } else {
        "name example 2\nnumber 0x1\ntags 0\n05 CARD\n06 INPUT\n07 XYZ\n08 DO\nattributes 0\n\
         05 STYLE=LIST\n06 TYPE\n07 TYPE=TEXT\n08 URL=http://\n09 NAME\n0a KEY\nvalues 0\n\
         85 .org\n86 ACCEPT\n"
    };
    TokenTable::parse(text).unwrap()
}

fn name(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_str().unwrap()).collect();
    parts[parts.len() - 2..].join("/")
}

#[test]
fn streams_of_others_decode_to_their_documents() {
    let Some(root) = data() else { return };
    let (mut pairs, mut alone, mut wrong) = (0, 0, Vec::new());
    for path in files(&root, "wbxml") {
        let stream = std::fs::read(&path).unwrap();
        let table = table(&path);
        let settings = Settings { table: table.as_ref(), ..Settings::default() };
        let decoded = decode(&stream, &settings, &Limits::default());
        let expected = std::fs::read_to_string(path.with_extension("xml"));
        match (decoded, expected) {
            (Err(_), Err(_)) if name(&path).contains("error") => alone += 1,
            // Two messages in one file: bytes behind the document are refused.
            (Err(_), Err(_)) if name(&path) == "activesync/activesync-016.wbxml" => alone += 1,
            (Err(error), _) => wrong.push(format!("{}: {error}", name(&path))),
            (Ok(_), Err(_)) if name(&path).contains("-error.wbxml") => {
                wrong.push(format!("{}: not refused", name(&path)));
            }
            (Ok(_), Err(_)) => alone += 1,
            (Ok(decoded), Ok(expected)) => {
                pairs += 1;
                let decoded = String::from_utf8(decoded).unwrap();
                let text = |document: &str| collapsed(document).unwrap();
                let (expected, decoded) = (text(&expected), text(&decoded));
                // This stream says "+wbxml" where its document says "+xml".
                let other = name(&path) == "syncml11/syncml-003.wbxml";
                let decoded = if other { decoded.replace("+wbxml", "+xml") } else { decoded };
                let expected = if other { expected.replace("+wbxml", "+xml") } else { expected };
                if let Some(what) = difference(&expected, &decoded, &KEPT) {
                    wrong.push(format!("{}: {what}", name(&path)));
                }
            }
        }
    }
    println!("{pairs} pairs, {alone} streams without a document");
    for line in &wrong {
        println!("{line}");
    }
    assert!(wrong.is_empty(), "{} of {}", wrong.len(), pairs + alone);
}

fn roxmltree_refuses(text: &str) -> bool {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    roxmltree::Document::parse_with_options(text, options).is_err()
}

/// Encodes and decodes a document with the same settings.
fn there_and_back(document: &[u8], settings: &Settings<'_>) -> Result<(usize, String), Error> {
    let stream = encode(document, settings, &Limits::default())?;
    let again = decode(&stream, settings, &Limits::default())?;
    Ok((stream.len(), String::from_utf8(again).unwrap()))
}

#[test]
fn documents_of_others_come_back() {
    let Some(root) = data() else { return };
    let root = root.parent().unwrap().to_owned();
    let (mut documents, mut bytes, mut coded, mut wrong) = (0, 0, 0, Vec::new());
    for path in files(&root, "xml") {
        let document = std::fs::read(&path).unwrap();
        let Ok(text) = longwire_codec::xml::to_utf8(&document, &Limits::default()) else {
            continue;
        };
        // An internal subset is not kept, and what is not well-formed is refused.
        if text.contains("<!ENTITY")
            || text.contains("<!ELEMENT")
            || text.contains("[<?")
            || roxmltree_refuses(&text)
        {
            continue;
        }
        let table = table(&path);
        for string_table in [false, true] {
            let settings = Settings { table: table.as_ref(), string_table, ..Settings::default() };
            match there_and_back(&document, &settings) {
                Ok((len, again)) => {
                    documents += 1;
                    bytes += text.len();
                    coded += len;
                    if let Some(what) = difference(&text, &again, &EXACT) {
                        wrong.push(format!("{}: {what}", name(&path)));
                    }
                }
                Err(error) => wrong.push(format!("{}: {error}", name(&path))),
            }
        }
    }
    println!("{documents} documents, {bytes} bytes, {coded} as WBXML");
    for line in &wrong {
        println!("{line}");
    }
    assert!(wrong.is_empty(), "{}", wrong.len());
}

/// Streams of every kind, damaged: each is decoded or refused, without a panic.
#[test]
fn damaged_streams_are_refused_or_decoded() {
    let mut chance = 11_u64;
    let mut random = move |below: usize| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(chance >> 33).unwrap() % below
    };
    let documents = [
        "<?p q?><a xmlns:p='u' p:x='1'><p:b>text &amp; x</p:b><b z='&#10;'>text &amp; text</b></a>",
        "<SyncML xmlns='SYNCML:SYNCML1.1'><SyncBody><Meta>\
         <Type xmlns='syncml:metinf'>a</Type></Meta><Item/></SyncBody></SyncML>",
        "<!DOCTYPE wml PUBLIC '-//WAPFORUM//DTD WML 1.3//EN' ''><wml><card id='a'><p>$(x:escape) \
         <a href='http://www.a.com/b'>c</a></p></card></wml>",
        "<!DOCTYPE si PUBLIC '-//WAPFORUM//DTD SI 1.0//EN' ''><si><indication \
         created='1999-04-30T06:40:00Z'>x</indication></si>",
        "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body>\
         <q xmlns='v' a='1'/></s:Body></s:Envelope>",
    ];
    let limits = Limits { output_bytes: 1 << 20, depth: 50, ..Limits::default() };
    for document in documents {
        let stream = encode(document.as_bytes(), &Settings::default(), &limits).unwrap();
        for _ in 0..3000 {
            let mut damaged = stream.clone();
            for _ in 0..=random(3) {
                let at = random(damaged.len());
                match random(4) {
                    0 => damaged[at] ^= 1 << random(8),
                    1 => damaged.truncate(at.max(1)),
                    2 => damaged.insert(at, [0, 1, 3, 0x44, 0x83, 0xc3, 0xff, 0x80][random(8)]),
                    _ if damaged.len() > 1 => drop(damaged.remove(at)),
                    _ => {}
                }
            }
            if let Ok(decoded) = decode(&damaged, &Settings::default(), &limits) {
                assert!(decoded.len() < 2 << 20);
                let text = String::from_utf8(decoded).unwrap();
                assert!(!roxmltree_refuses(&text), "{damaged:02x?} gives {text}");
            }
        }
    }
}

#[test]
fn limits_have_names() {
    let settings = Settings::default();
    let named = |limits: Limits| {
        let deep = format!("{}{}", "<a>".repeat(200), "</a>".repeat(200));
        let stream = encode(deep.as_bytes(), &settings, &Limits::default()).unwrap();
        decode(&stream, &settings, &limits).unwrap_err().to_string()
    };
    let limits = Limits::default();
    assert_eq!(named(Limits { depth: 100, ..limits }), "wbxml: elements over depth 100");
    let small = Limits { output_bytes: 500, ..limits };
    assert_eq!(named(small), "wbxml: output over output_bytes 500");
    // A string of the table, referred to again and again.
    let mut bomb = vec![3, 1, 106, 0x87, 0x68];
    bomb.extend(std::iter::repeat_n(b'x', 999).chain([0]));
    bomb.extend([0x44, 0]);
    bomb.extend([0x83, 0].repeat(100_000));
    bomb.push(1);
    let small = Limits { output_bytes: 1 << 20, ..limits };
    assert!(matches!(decode(&bomb, &settings, &small), Err(Error::Limit { .. })));
}

#[test]
fn character_sets_are_read_or_refused_by_number() {
    let decoded = |charset: &[u8], text: &[u8]| {
        let stream = [&[3, 1], charset, &[0, 0x47, 3], text, &[1]].concat();
        let table = example_table(true);
        let settings = Settings { table: Some(&table), ..Settings::default() };
        let xml = decode(&stream, &settings, &Limits::default())?;
        Ok::<_, Error>(String::from_utf8(xml).unwrap().split_once("<XYZ>").unwrap().1.to_owned())
    };
    assert_eq!(decoded(&[4], &[0xe4, 0]).unwrap(), "\u{e4}</XYZ>");
    assert_eq!(decoded(&[106], b"\xc3\xa4\0").unwrap(), "\u{e4}</XYZ>");
    assert_eq!(
        decoded(&[0x87, 0x77], &[0, 0xe4, 0x20, 0xac, 0, 0]).unwrap(),
        "\u{e4}\u{20ac}</XYZ>"
    );
    assert_eq!(decoded(&[0x87, 0x76], &[0xe4, 0, 0, 0]).unwrap(), "\u{e4}</XYZ>");
    assert!(decoded(&[3], &[0xe4, 0]).is_err());
    let error = decoded(&[17], b"a\0").unwrap_err().to_string();
    assert!(error.contains("charset 17"), "{error}");
}

#[test]
fn character_sets_are_written() {
    let document = "<?p q?><a b=\"x\u{e4}\u{20ac}y\">tell \u{e4} twice<c>tell \u{e4} twice</c>\
                    <c>tell \u{e4} twice\u{1f600}</c></a>";
    for (charset, number) in [
        (Charset::UsAscii, 3),
        (Charset::Iso8859_1, 4),
        (Charset::Utf8, 106),
        (Charset::Utf16, 0x87),
    ] {
        let settings = Settings { charset, ..Settings::default() };
        let stream = encode(document.as_bytes(), &settings, &Limits::default()).unwrap();
        assert_eq!(stream[2], number);
        let again = decode(&stream, &Settings::default(), &Limits::default()).unwrap();
        let again = String::from_utf8(again).unwrap();
        assert_eq!(difference(document, &again, &EXACT), None, "{charset:?}: {again}");
    }
    let settings = Settings { charset: Charset::UsAscii, ..Settings::default() };
    let error = encode("<\u{e4}/>".as_bytes(), &settings, &Limits::default()).unwrap_err();
    assert!(error.to_string().contains("UsAscii"), "{error}");
}

#[test]
fn an_encoder_writes_the_same_whatever_came_before() {
    let limits = Limits { table_bytes: 9000, ..Limits::default() };
    let settings = Settings::default();
    let mut encoder = Encoder::new(&settings, &limits);
    let syncml = "<SyncML xmlns='SYNCML:SYNCML1.1'><SyncBody x='1'>t</SyncBody></SyncML>";
    let soap =
        "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body/></s:Envelope>";
    let names = |prefix: char| (0..30).map(|n| format!("<{prefix}{n}/>")).collect::<String>();
    let (first, second) = (format!("<a>{}</a>", names('f')), format!("<a>{}</a>", names('s')));
    // Either has room for its names, both have not.
    let both = format!("<a>{}{}</a>", names('f'), names('s'));
    assert!(matches!(encode(both.as_bytes(), &settings, &limits), Err(Error::Limit { .. })));
    for document in [syncml, soap, "<a><b></a>", syncml, &first, &second, &first, soap, "<a/>"] {
        let alone = encode(document.as_bytes(), &settings, &limits);
        let after = encoder.encode(document.as_bytes());
        assert_eq!(alone, after, "{document}");
        assert!(alone.is_ok() || document.contains("<b></a>"), "{alone:?}");
    }
}

#[test]
fn many_namespaces_are_in_scope_on_both_sides_or_refused() {
    let limits = Limits { depth: 1000, ..Limits::default() };
    // Each level has another default; that is no growing list.
    let deep = (0..600).map(|n| format!("<a xmlns='u{}'>", n % 2)).collect::<String>();
    let deep = deep + &"</a>".repeat(600);
    let stream = encode(deep.as_bytes(), &Settings::default(), &limits).unwrap();
    let again = decode(&stream, &Settings::default(), &limits).unwrap();
    assert_eq!(difference(&deep, &String::from_utf8(again).unwrap(), &EXACT), None);
    for uri in ["http://schemas.xmlsoap.org/soap/envelope/", "unknown"] {
        let wide = |count: usize| {
            let declared = (0..count).map(|n| format!(" xmlns:p{n}='u'")).collect::<String>();
            format!("<Envelope xmlns='{uri}'{declared}/>")
        };
        let there = |count| encode(wide(count).as_bytes(), &Settings::default(), &limits);
        let again = decode(&there(256).unwrap(), &Settings::default(), &limits).unwrap();
        assert_eq!(difference(&wide(256), &String::from_utf8(again).unwrap(), &EXACT), None);
        assert!(matches!(there(257), Err(Error::Limit { .. })));
    }
}

#[test]
fn device_information_is_a_document_of_its_own() {
    let document = |inside: &str| {
        format!(
            "<SyncML xmlns='SYNCML:SYNCML1.1'><SyncBody><Put><Item><Data>{inside}</Data></Item>\
             </Put></SyncBody></SyncML>"
        )
    };
    let info =
        "<DevInf xmlns='syncml:devinf'><VerDTD>1.1</VerDTD><x xmlns=''/><Man>a</Man></DevInf>";
    let named = "<d:DevInf xmlns:d='syncml:devinf'><d:Man/><x xmlns=''/><Data/></d:DevInf>";
    let unknown = "<Info xmlns='syncml:devinf'/>";
    for (inside, nested) in [(info, 1), (named, 1), (&format!(" {info}t{info}"), 2), (unknown, 0)] {
        let document = document(inside);
        let (_, again) = there_and_back(document.as_bytes(), &Settings::default()).unwrap();
        assert_eq!(difference(&document, &again, &EXACT), None, "{again}");
        let stream = encode(document.as_bytes(), &Settings::default(), &Limits::default()).unwrap();
        // Version 1.3, DevInf 1.1, UTF-8.
        let heads = stream.windows(4).filter(|window| window == &[3, 0x9f, 0x54, 106]).count();
        assert_eq!(heads, nested, "{inside}");
    }
    // A prefix from outside would be lost in it.
    let prefixed = document(info).replace("<Data>", "<Data xmlns:p='u'>").replace("<x x", "<p:x x");
    let (_, again) = there_and_back(prefixed.as_bytes(), &Settings::default()).unwrap();
    assert_eq!(difference(&prefixed, &again, &EXACT), None, "{again}");
    let stream = encode(document(info).as_bytes(), &Settings::default(), &Limits::default());
    let limits = Limits { depth: 6, ..Limits::default() };
    let error = decode(&stream.unwrap(), &Settings::default(), &limits).unwrap_err();
    assert!(matches!(error, Error::Limit { .. }));
}

#[test]
fn hostile_streams_are_refused() {
    let whole = |body: &[u8]| {
        // The table holds "a" and an e with an acute accent.
        let stream = [&[3, 1, 106, 5, b'a', 0, 0xc3, 0xa9, 0], body].concat();
        decode(&stream, &Settings::default(), &Limits::default())
    };
    assert!(whole(&[0x04, 0]).is_ok());
    let cases: [(&str, &[u8]); 14] = [
        ("index behind the table", &[0x04, 5]),
        ("index inside a character", &[0x44, 0, 0x83, 3, 1]),
        ("index that wraps", &[0x04, 0x8f, 0xff, 0xff, 0xff, 0x7f]),
        ("integer of 33 bits", &[0x04, 0x9f, 0xff, 0xff, 0xff, 0x7f]),
        ("integer of six bytes", &[0x04, 0x80, 0x80, 0x80, 0x80, 0x80, 0]),
        ("entity of a surrogate", &[0x44, 0, 2, 0x83, 0xb0, 0, 1]),
        ("entity over the last character", &[0x44, 0, 2, 0xc4, 0x80, 0, 1]),
        ("entity of no character of XML", &[0x44, 0, 2, 0, 1]),
        ("attribute outside of a tag", &[0x04, 0, 0x04, 0]),
        ("value before an attribute", &[0x84, 0, 3, b'x', 0, 1]),
        ("attribute twice", &[0x84, 0, 4, 0, 4, 0, 1]),
        ("opaque length beyond the rest", &[0x44, 0, 0xc3, 0x8f, 0xff, 0xff, 0xff, 0x7f, 1]),
        ("string without its end", &[0x44, 0, 3, b'x']),
        ("extension of no table", &[0x44, 0, 0xc0, 1]),
    ];
    // A tag of SyncML that says that it is in no namespace of SyncML: two defaults in one tag.
    let two = [&[3, 0x9f, 0x53, 106, 6][..], b"xmlns\0", &[0xad, 4, 0, 3, b'y', 0, 1]].concat();
    assert!(decode(&two, &Settings::default(), &Limits::default()).is_err());
    for (what, body) in cases {
        assert!(matches!(whole(body), Err(Error::Malformed { .. })), "{what}");
    }
}

#[test]
fn repeated_texts_go_to_the_string_table_only_where_that_is_shorter() {
    let document = b"<a><b>twice told</b><b>twice told</b><c>x</c><c>x</c></a>";
    let plain = Settings { string_table: false, ..Settings::default() };
    let limits = Limits::default();
    let with = encode(document, &Settings::default(), &limits).unwrap();
    let without = encode(document, &plain, &limits).unwrap();
    assert_eq!(without.len() - with.len(), 2 * 12 - 11 - 2 * 2);
    assert_eq!(with.windows(5).filter(|window| window == b"twice").count(), 1);
    assert_eq!(with.windows(3).filter(|window| window == &[3, b'x', 0]).count(), 2);
}

mod generated {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Node {
        Text(String),
        Element(usize, usize, Vec<Node>),
    }

    const URIS: [&str; 4] = ["", "SYNCML:SYNCML1.1", "syncml:metinf", "urn:x"];
    const NAMES: [&str; 4] = ["Meta", "Type", "SyncML", "other"];

    fn nodes() -> impl Strategy<Value = Node> {
        let leaf = "[a-z<&\r\n\u{e4} ]{1,8}".prop_map(Node::Text);
        leaf.prop_recursive(5, 30, 5, |inner| {
            (0..32_usize, 0..6_usize, proptest::collection::vec(inner, 0..5))
                .prop_map(|(kind, declares, children)| Node::Element(kind, declares, children))
        })
    }

    /// Names in several namespaces, with prefixes and defaults that change.
    fn write(node: &Node, default: &str, writer: &mut Writer) {
        match node {
            Node::Text(text) => writer.text(text),
            Node::Element(kind, declares, children) => {
                let (uri, local) = (URIS[kind % 4], NAMES[kind / 4 % 4]);
                let prefix = if uri.is_empty() || *kind < 16 { "" } else { "p" };
                writer.start_prefixed(prefix, local);
                let mut inner = default.to_owned();
                if prefix.is_empty() && uri != default {
                    writer.namespace("", uri);
                    uri.clone_into(&mut inner);
                } else if !prefix.is_empty() {
                    writer.namespace(prefix, uri);
                    if *declares == 1 {
                        writer.namespace("", URIS[kind / 3 % 4]);
                        URIS[kind / 3 % 4].clone_into(&mut inner);
                    }
                }
                if *declares == 2 {
                    writer.namespace("q", "SYNCML:SYNCML1.1");
                    writer.attribute("q:at", "v");
                }
                children.iter().for_each(|child| write(child, &inner, writer));
                writer.end_prefixed(prefix, local);
            }
        }
    }

    proptest! {
        #[test]
        fn documents_come_back(children in proptest::collection::vec(nodes(), 0..6), known: bool) {
            let mut writer = Writer::new();
            write(&Node::Element(1, 0, children), "", &mut writer);
            let document = writer.finish();
            let text = std::str::from_utf8(&document).unwrap();
            let table = tables().iter().find(|table| table.name == "SyncML 1.1").filter(|_| known);
            let settings = Settings { table, ..Settings::default() };
            let (_, again) = there_and_back(&document, &settings).unwrap();
            prop_assert_eq!(difference(text, &again, &EXACT), None, "{}\n{}", text, again);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let stream = [&[3, 0x0a, 106, 0][..], &bytes].concat();
            for stream in [&bytes, &stream] {
                let _ = decode(stream, &Settings::default(), &Limits::default());
            }
            let _ = encode(&bytes, &Settings::default(), &Limits::default());
        }
    }
}

#[test]
fn a_limit_is_named_where_only_the_type_is_not() {
    let (settings, limits) =
        (Settings::default(), Limits { output_bytes: 64, ..Limits::default() });
    let long = [&b"\x03\x01\x6a\0\x45"[..], &[0x05; 100], b"\x01"].concat();
    assert!(decode(&long, &settings, &Limits::default()).is_ok());
    let error = decode(&long, &settings, &limits).unwrap_err();
    assert!(matches!(error, Error::Limit { .. }), "{error}");
}

/// A document of ActiveSync that has this inside, and the begin of its stream.
fn active_sync(uri: &str, name: &str, text: &str) -> String {
    format!("<Sync xmlns='AirSync'><{name} xmlns='{uri}'>{text}</{name}></Sync>")
}

/// What devices send and read as bytes is OPAQUE (MS-ASWBXML §2.1.2.1), in XML base64.
#[test]
fn bytes_of_active_sync_are_opaque_both_ways() {
    let settings = Settings::default();
    let (limits, photo) = (Limits::default(), [0xff, 0xd8, 0xff, 0xe0, 0x00, 0x10]);
    // The page and the code of each, with content.
    let places = [
        ("ResolveRecipients", "Data", 10, 0x5c),
        ("Search", "ConversationId", 15, 0x60),
        ("Gal", "Data", 16, 0x52),
        ("AirSyncBase", "Content", 17, 0x5f),
        ("ItemOperations", "ConversationId", 20, 0x58),
        ("ComposeMail", "Mime", 21, 0x50),
        ("Email2", "ConversationId", 22, 0x49),
        ("Email2", "ConversationIndex", 22, 0x4a),
    ];
    for data in [&photo[..], b"Subject: x\r\n\r\nplain", b"Subject: \xe4\r\n\r\n\xff"] {
        for (uri, name, page, code) in places {
            let len = u8::try_from(data.len()).unwrap();
            let inside = [&[0x45, 0, page, code, 0xc3, len], data, &[1, 1]].concat();
            let stream = [&[3, 1, 106, 0], &inside[..]].concat();
            let document = decode(&stream, &settings, &limits).unwrap();
            assert_eq!(encode(&document, &settings, &limits).unwrap(), stream, "{uri}:{name}");
            // The same of a document that somebody wrote.
            let encoded = Base64Display::new(data, &STANDARD).to_string();
            let written = active_sync(uri, name, &encoded);
            let bytes = encode(written.as_bytes(), &settings, &limits).unwrap();
            assert_eq!(bytes, stream, "{written}");
        }
    }
}

/// A body or a message may be text or bytes: text stays text, and bytes that are a message but no
/// text go back as bytes.
#[test]
fn messages_of_active_sync_go_back_as_they_came() {
    let settings = Settings::default();
    for (uri, name, page, code) in
        [("Email", "MIMEData", 2, 0x76), ("AirSyncBase", "Data", 17, 0x4b)]
    {
        let mail = b"Subject: x\r\n\r\n\xe4\xff";
        let len = u8::try_from(mail.len()).unwrap();
        let inside = [&[0x45, 0, page, code, 0xc3, len], &mail[..], &[1, 1]].concat();
        let stream = [&[3, 1, 106, 0], &inside[..]].concat();
        let document = decode(&stream, &settings, &Limits::default()).unwrap();
        let again = encode(&document, &settings, &Limits::default()).unwrap();
        assert_eq!(again, stream, "{uri}:{name}");
        // No message, though it could be base64 of something.
        for text in ["Test", "Subject: \u{e4}", "AAAA"] {
            let document = active_sync(uri, name, text);
            let stream = encode(document.as_bytes(), &settings, &Limits::default()).unwrap();
            let string = [&[0x03], text.as_bytes(), &[0]].concat();
            assert!(stream.windows(string.len()).any(|part| part == string), "{document}");
        }
    }
}

/// Number 1 says nothing of the type: the refusal is that of the table which read the most.
#[test]
fn a_refusal_of_a_document_without_a_type_names_the_fault_and_its_place() {
    let refused = |body: &[u8]| {
        let stream = [&[3, 1, 106, 0], body].concat();
        decode(&stream, &Settings::default(), &Limits::default()).unwrap_err().to_string()
    };
    // Sync, Collections, Collection, and a string in SyncKey.
    let key = |text: &[u8]| [&[0x45, 0x5c, 0x4f, 0x4b, 3], text, &[0, 1, 1, 1, 1]].concat();
    for (what, body, at, fault) in [
        ("a byte of Latin 1", key(b"M\xfcller"), 8, "not in the document's character set"),
        ("0x01 in a string", key(b"a\x01b"), 8, "a character that no document may have"),
        ("page 72", vec![0x45, 0x5c, 0, 72, 0x4f, 1, 1, 1], 6, "tag 0x0f of page 72"),
        ("unknown token", vec![0x45, 0x5c, 0x4f, 0x7f, 1, 1, 1, 1], 7, "tag 0x3f of page 0"),
        ("opaque too long", vec![0x45, 0x5c, 0xc3, 0x20, 1], 6, "is not here"),
    ] {
        let refused = refused(&body);
        assert!(refused.starts_with(&format!("wbxml: at byte {at}: ")), "{what}: {refused}");
        assert!(refused.contains(fault) || what == "opaque too long", "{what}: {refused}");
        assert!(!refused.contains("any table"), "{what}: {refused}");
    }
    // What no table knows is told so.
    let refused = refused(&[0x3f, 1]);
    assert!(refused.contains("any table for public identifier 1"), "{refused}");
}

/// They belong to the infoset, and nothing else would tell a reader of them.
#[test]
fn default_values_of_attributes_are_refused() {
    let with = |list: &str| format!("<!DOCTYPE a [<!ATTLIST a {list}>]><a>x</a>");
    let encoded =
        |document: &str| encode(document.as_bytes(), &Settings::default(), &Limits::default());
    let refused = encoded(&with("u CDATA 'ft'")).unwrap_err().to_string();
    assert!(refused.contains("at byte 0: default values of attributes"), "{refused}");
    assert!(encoded(&with("u CDATA #IMPLIED")).is_ok());
}
