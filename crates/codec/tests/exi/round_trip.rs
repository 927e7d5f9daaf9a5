//! Documents of chance in each mode, and streams that were damaged.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use longwire_codec::Limits;
use longwire_codec::exi::{self, Decoder, Encoder, Options};
use proptest::prelude::*;

use crate::data;
use crate::infoset::difference;
use crate::options::{kept, options};

const NAMES: [&str; 8] = ["a", "b", "row", "Größe", "_x", "p:a", "p:row", "q:a"];
const ATTRIBUTES: [&str; 6] = ["a", "id", "p:a", "q:id", "xml:lang", "xml:space"];

/// A node of a document.
#[derive(Clone, Debug)]
enum Tree {
    Element { name: usize, rebound: bool, attributes: Vec<(usize, String)>, children: Vec<Self> },
    Text(String),
    Cdata(String),
    Comment(String),
    Pi(String),
}

impl Tree {
    fn write(&self, is_root: bool, xml: &mut String) {
        let _ = match self {
            Self::Element { name, rebound, attributes, children } => {
                let name = NAMES[*name];
                let _ = write!(xml, "<{name}");
                if is_root {
                    xml.push_str(" xmlns:p='urn:p' xmlns:q='urn:q'");
                } else if *rebound {
                    xml.push_str(" xmlns:q='urn:other' xmlns='urn:default'");
                }
                let mut seen = Vec::new();
                for (name, value) in attributes {
                    let name = ATTRIBUTES[*name];
                    if !seen.contains(&name) {
                        seen.push(name);
                        let space = if value.len() % 2 == 0 { "preserve" } else { "default" };
                        let value = if name == "xml:space" { space } else { value };
                        let _ = write!(xml, " {name}=\"{}\"", escaped(value));
                    }
                }
                xml.push('>');
                for child in children {
                    child.write(false, xml);
                }
                write!(xml, "</{name}>")
            }
            Self::Text(text) => write!(xml, "{}", escaped(text)),
            Self::Cdata(text) => write!(xml, "<![CDATA[{}]]>", text.replace("]]>", "")),
            Self::Comment(text) => write!(xml, "<!--{}-->", text.replace('-', "_")),
            Self::Pi(text) => write!(xml, "<?target {}?>", text.replace("?>", "").trim_start()),
        };
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => drop(write!(out, "&#{};", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-c]{0,3}",
        2 => "[ -~]{0,20}",
        1 => "[a-z0-9 äß€😀\t\n\r]{0,12}",
        1 => "[0-9]{1,30}",
        1 => "[x]{100,300}",
        1 => "[ \n]{0,3}",
    ]
}

/// Text that is not cut where a document would be.
fn plain() -> impl Strategy<Value = String> {
    "[a-z <&>]{0,12}"
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        5 => value().prop_map(Tree::Text),
        1 => plain().prop_map(Tree::Cdata),
        1 => plain().prop_map(Tree::Comment),
        1 => plain().prop_map(Tree::Pi),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        let attributes = prop::collection::vec((0..ATTRIBUTES.len(), value()), 0..4);
        let children = prop::collection::vec(inner, 0..6);
        (0..NAMES.len(), any::<bool>(), attributes, children).prop_map(
            |(name, rebound, attributes, children)| Tree::Element {
                name,
                rebound,
                attributes,
                children,
            },
        )
    })
}

fn document() -> impl Strategy<Value = String> {
    prop::collection::vec(tree(), 0..8).prop_map(|children| {
        let root = Tree::Element { name: 0, rebound: false, attributes: Vec::new(), children };
        let mut xml = String::new();
        root.write(true, &mut xml);
        xml
    })
}

/// Any options that a stream without a schema may have.
fn any_options() -> impl Strategy<Value = Options> {
    let alignment =
        prop::sample::select(vec!["bit-packed", "byte-packed", "pre-compression", "compression"]);
    let preserve = prop::sample::subsequence(
        vec!["comments", "pis", "dtd", "prefixes", "lexical", "cookie", "options"],
        0..=7,
    );
    let bounds = prop::sample::subsequence(
        vec!["block-size=7", "value-max-length=2", "value-partition-capacity=3"],
        0..=3,
    );
    (alignment, preserve, bounds).prop_map(|(alignment, preserve, bounds)| {
        options(&format!("{alignment},{},{}", preserve.join(","), bounds.join(",")))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn documents_survive(xml in document(), options in any_options()) {
        let stream = data::encode(xml.as_bytes(), &options, None).map_err(TestCaseError::fail)?;
        let read = data::decode(&stream, &options, None).map_err(TestCaseError::fail)?;
        let rules = kept(&options, false);
        prop_assert_eq!(difference(&xml, &read, &rules), None, "{} became {}", xml, read);
        if options.options_in_header {
            let read_2 = data::decode(&stream, &Options::default(), None);
            prop_assert_eq!(read_2.map_err(TestCaseError::fail)?, read);
        }
    }

    #[test]
    fn pieces_are_coded_like_the_whole(
        xml in document(),
        options in any_options(),
        piece in 1..40_usize,
    ) {
        let whole = data::encode(xml.as_bytes(), &options, None).map_err(TestCaseError::fail)?;
        let mut encoder = Encoder::new(&options, None, &LIMITS).unwrap();
        let mut stream = Vec::new();
        for block in xml.as_bytes().chunks(piece) {
            encoder.push(block, false, &mut stream).unwrap();
        }
        encoder.push(&[], true, &mut stream).unwrap();
        prop_assert_eq!(&stream, &whole);

        let mut decoder = Decoder::new(&options, Box::new(|_| Ok(None)), &LIMITS);
        let mut read = Vec::new();
        for block in stream.chunks(piece) {
            decoder.push(block, false).unwrap();
            decoder.text(&mut read).unwrap();
        }
        decoder.push(&[], true).unwrap();
        decoder.text(&mut read).unwrap();
        let read = String::from_utf8(read).unwrap();
        prop_assert_eq!(difference(&xml, &read, &kept(&options, false)), None, "{}", read);
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        options in any_options(),
    ) {
        let mut stream = vec![0x80];
        stream.extend(&bytes);
        bounded(&stream, &options);
        bounded(&bytes, &options);
    }

    #[test]
    fn no_text_makes_the_encoder_panic(
        text in r#"[<>/a-c:='" &;!?\[\]-]{0,60}"#,
        options in any_options(),
    ) {
        // An error is as good as a stream.
        let _ = data::encode(text.as_bytes(), &options, None);
    }
}

/// Bounds that a damaged stream meets soon.
const LIMITS: Limits =
    Limits { output_bytes: 1 << 20, depth: 64, table_bytes: 1 << 20, message_bytes: 1 << 20 };

fn bounded(stream: &[u8], options: &Options) {
    if let Ok(xml) = exi::decode(stream, options, None, &LIMITS) {
        assert!(xml.len() as u64 <= LIMITS.output_bytes);
    }
}

/// The prefix in `xsi:type` means something to the encoder only, where values are kept as they are
/// written and prefixes are not.
#[test]
fn a_type_whose_prefix_is_lost_does_not_lead_the_decoder_astray() {
    let xml = "<a xmlns:i='http://www.w3.org/2001/XMLSchema-instance' \
               xmlns:x='http://www.w3.org/2001/XMLSchema' i:type='x:int'>5</a>";
    let mut schemas = data::Schemas::default();
    for words in ["lexical", "strict,lexical", "lexical,prefixes", "strict", ""] {
        let options = options(words);
        let schema = Path::new(data::BUILT_IN);
        let grammars = schemas.grammars(Some(schema), &options).unwrap();
        let stream = data::encode(xml.as_bytes(), &options, grammars.as_ref()).unwrap();
        let read = data::decode(&stream, &options, grammars.as_ref()).unwrap();
        assert_eq!(difference(xml, &read, &kept(&options, true)), None, "{words}: {read}");
    }
}

/// Streams without a schema that were flipped, cut and stretched, in each alignment.
#[test]
fn damaged_streams_end_in_an_error_or_a_bounded_document() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % (below.max(1) as u64)).unwrap()
    };
    let mut tried = 0;
    for xml in seeds() {
        for alignment in ["bit-packed", "byte-packed", "pre-compression", "compression"] {
            let words = format!("{alignment},options,comments,pis,prefixes");
            let options = options(&words);
            let stream = data::encode(xml.as_bytes(), &options, None).unwrap();
            for _ in 0..MUTATIONS {
                let mut damaged = stream.clone();
                for _ in 0..=random(3) {
                    let at = random(damaged.len());
                    match random(3) {
                        0 if !damaged.is_empty() => damaged[at] ^= 1 << random(8),
                        1 => damaged.truncate(at),
                        _ => damaged.insert(at, random(256).to_le_bytes()[0]),
                    }
                }
                bounded(&damaged, &options);
                tried += 1;
            }
        }
    }
    println!("{tried} damaged streams");
}

/// Of each document and alignment.
const MUTATIONS: usize = 300;

fn seeds() -> Vec<String> {
    let mut rows = String::from("<t:rows xmlns:t='urn:t'><?p d?><!-- c -->");
    for row in 0..40 {
        let _ =
            write!(rows, "<t:row n='{row}'><name>n{}</name><v>{}</v></t:row>", row % 7, row * row);
    }
    rows.push_str("</t:rows>");
    let mut seeds = vec!["<a/>".to_string(), "<a b='c'>d<e/>f</a>".to_string(), rows];
    match data::root() {
        Some(root) => {
            let file = root.join("exi/exificient/W3C/PrimerNotebook/notebook.xml");
            seeds.extend(fs::read_to_string(file));
        }
        None => println!("skipped 1 document: no data; set LONGWIRE_DATA"),
    }
    seeds
}
