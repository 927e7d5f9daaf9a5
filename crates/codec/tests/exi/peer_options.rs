//! Options that are not for each document, against EXIficient: self-contained elements, Canonical
//! EXI, the EXI Profile and the datatype representation map.

use std::fs;
use std::path::{Path, PathBuf};

use longwire_codec::exi::{Options, SchemaId};

use crate::data::{self, BUILT_IN, Schemas};
use crate::infoset::{Rules, difference};
use crate::options::{kept, options};
use crate::peer::{Answer, Mode, Peer};

const XSD: &str = r#"<s:schema xmlns:s="http://www.w3.org/2001/XMLSchema" xmlns="urn:d"
    targetNamespace="urn:d" elementFormDefault="qualified">
  <s:element name="list"><s:complexType><s:sequence>
    <s:element name="item" maxOccurs="unbounded"><s:complexType><s:sequence>
      <s:element name="at" type="s:dateTime" minOccurs="0"/>
      <s:element name="size" type="s:int" minOccurs="0"/>
      <s:element name="share" type="s:decimal" minOccurs="0"/>
      <s:element name="level" type="s:double" minOccurs="0"/>
      <s:element name="name" type="s:string" minOccurs="0"/>
      <s:any processContents="lax" minOccurs="0" maxOccurs="9"/>
    </s:sequence><s:attribute name="z" type="s:boolean"/><s:attribute name="k" type="s:string"/>
    <s:anyAttribute processContents="lax"/></s:complexType></s:element>
  </s:sequence></s:complexType></s:element>
</s:schema>"#;

const XML: &str = r#"<d:list xmlns:d="urn:d" xmlns:o="urn:o">
  <d:item z="1" k="one" o:x="y"><d:at>2020-02-29T22:00:00.50-01:30</d:at><d:size> 07 </d:size>
    <d:share>-0.50</d:share><d:level>12300.0</d:level><d:name> a  b </d:name>
    <o:more o:x="y"><o:more/>text</o:more></d:item>
  <d:item k="one"><d:at>1999-12-31T23:59:60Z</d:at><d:size>x</d:size><d:name>one</d:name></d:item>
  <d:item/><d:item k="two" z="false"><d:level>-INF</d:level><o:more><o:less/></o:more></d:item>
  <d:item><d:item><d:name>one</d:name></d:item></d:item>
</d:list>"#;

/// The other program, and a file with the schema.
fn start(name: &str) -> Option<(Peer, PathBuf)> {
    let folder = format!("exificient-{name}");
    let peer = Peer::start(&folder);
    if peer.is_none() {
        println!("skipped: LONGWIRE_EXIFICIENT is missing");
    }
    let schema = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder).join("schema.xsd");
    peer.inspect(|_| fs::write(&schema, XSD).unwrap()).map(|peer| (peer, schema))
}

/// Both encode, both decode both streams, and all of it is alike by `rules`: to the document, or
/// with `typed` to each other, since the encoder may have put in types.
fn exchange(peer: &mut Peer, words: &str, schema: Option<&Path>, typed: bool) -> Vec<String> {
    let mode = Mode { words: words.to_string(), has_schema: schema.is_some() };
    let options = options(words);
    let path = schema.unwrap_or(Path::new("-"));
    let rules = Rules { prefixes: false, ..kept(&options, schema.is_some()) };
    let grammars = Schemas::default().grammars(schema, &options).unwrap();
    let ours = data::encode(XML.as_bytes(), &options, grammars.as_ref());
    let theirs = peer.ask("encode", &mode, path, XML.as_bytes());
    let mut read = |stream: &Answer| {
        let stream = stream.clone()?;
        let by_us = data::decode(&stream, &options, grammars.as_ref())?;
        let by_peer = peer.ask("decode", &mode, path, &stream)?;
        let by_peer = String::from_utf8(by_peer).map_err(|e| e.to_string())?;
        let expected = if typed { by_peer.clone() } else { XML.to_string() };
        Ok([by_us, by_peer].map(|text| difference(&expected, &text, &rules)))
    };
    let mut wrong = Vec::new();
    let mut add = |what: &str, why: Option<String>| {
        wrong.extend(why.map(|why| format!("{words}, {}: {what}: {why}", path.display())));
    };
    match read(&ours) {
        Ok([by_us, by_peer]) => {
            add("our stream read by us", by_us);
            add("our stream read by the peer", by_peer);
        }
        Err(why) => add("our stream", Some(why)),
    }
    match read(&theirs) {
        Ok([_, Some(why)]) => println!("the peer does not read its own stream: {words}: {why}"),
        Ok([by_us, None]) => add("the peer's stream read by us", by_us),
        Err(why) => add("the peer's stream", Some(why)),
    }
    wrong
}

fn none_wrong(wrong: &[String], tried: usize) {
    println!("{tried} ways, {} wrong", wrong.len());
    wrong.iter().for_each(|line| println!("{line}"));
    assert!(wrong.is_empty());
}

#[test]
fn self_contained_elements_are_exchanged() {
    let Some((mut peer, schema)) = start("alone") else { return };
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for alignment in ["bit-packed", "byte-packed"] {
        for alone in ["{urn:d}item", "{urn:d}list", "{urn:o}more", "{urn:d}name"] {
            for preserve in ["", ",prefixes", ",lexical,prefixes"] {
                for schema in [None, Some(Path::new(BUILT_IN)), Some(&*schema)] {
                    let words = format!("{alignment},self-contained,alone={alone}{preserve}");
                    wrong.extend(exchange(&mut peer, &words, schema, false));
                    tried += 1;
                }
            }
        }
    }
    none_wrong(&wrong, tried);
}

#[test]
fn bounds_of_the_profile_are_exchanged() {
    let Some((mut peer, schema)) = start("profile") else { return };
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for alignment in ["bit-packed", "byte-packed", "pre-compression", "compression"] {
        for grammars in ["", ",built-in-grammars-max=0", ",built-in-grammars-max=2"] {
            for productions in ["", ",built-in-productions-max=0", ",built-in-productions-max=3"] {
                for locals in ["", ",no-local-value-partitions,options,profile-values"] {
                    for schema in [None, Some(Path::new(BUILT_IN)), Some(&*schema)] {
                        let words = format!("{alignment}{grammars}{productions}{locals}");
                        wrong.extend(exchange(&mut peer, &words, schema, true));
                        tried += 1;
                    }
                }
            }
        }
    }
    none_wrong(&wrong, tried);
}

#[test]
fn mapped_datatypes_are_exchanged() {
    let Some((mut peer, schema)) = start("map") else { return };
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for alignment in ["bit-packed", "byte-packed", "pre-compression", "compression"] {
        for from in ["int", "integer", "decimal", "double", "dateTime", "boolean", "string"] {
            for strict in ["", ",options"] {
                let from = format!("{{http://www.w3.org/2001/XMLSchema}}{from}");
                let words = format!("{alignment},string-for={from}{strict}");
                wrong.extend(exchange(&mut peer, &words, Some(&schema), false));
                tried += 1;
            }
        }
    }
    none_wrong(&wrong, tried);
}

/// Longer documents are left out.
const LONGEST: usize = 200_000;

/// Documents whose canonical streams differ with an option, for a reason.
const EXCEPTIONS: [(&str, &str, &str); 1] =
    [("q18.soap.xml", "utc-time", "the last days of May become the 28th in the peer's")];

/// How canonical streams of a document differ.
fn canonical(
    peer: &mut Peer,
    schemas: &mut Schemas,
    words: &str,
    xml: &[u8],
    schema: Option<&Path>,
) -> Option<String> {
    let mode = Mode { words: words.to_string(), has_schema: schema.is_some() };
    let mut options = options(words);
    options.options_in_header = true;
    let grammars = schemas.grammars(schema, &options).ok()?;
    // Which schema it is, the peer may or may not say.
    let id = match schema {
        None => SchemaId::None,
        Some(path) if path.ends_with(BUILT_IN) => SchemaId::BuiltIn,
        Some(path) => SchemaId::Named(path.display().to_string()),
    };
    let [ours, named] = [SchemaId::Agreed, id].map(|schema_id| {
        let options = Options { schema_id, ..options.clone() };
        data::encode(xml, &options, grammars.as_ref())
    });
    let theirs = peer.ask("encode", &mode, schema.unwrap_or(Path::new("-")), xml);
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) if ours == theirs || named == Ok(theirs.clone()) => None,
        (Ok(ours), Ok(theirs)) => {
            let same = ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
            let part = |of: &[u8]| format!("{:02x?}", &of[same..of.len().min(same + 12)]);
            let (a, b) = (ours.len(), theirs.len());
            Some(format!("{a} B, the peer's {b} B, from {same}: {} {}", part(&ours), part(&theirs)))
        }
        (Err(_), Err(_)) => None,
        (Err(why), _) => Some(format!("we refuse: {why}")),
        // Nothing to compare with.
        (_, Err(_)) => None,
    }
}

#[test]
fn canonical_streams_are_those_of_the_peer() {
    let (Some((mut peer, schema)), Some(root)) = (start("canonical"), data::root()) else { return };
    let mut schemas = Schemas::default();
    let mut documents = vec![(PathBuf::from("own"), XML.as_bytes().to_vec(), schema)];
    for (path, schema) in data::messages(&root) {
        let xml = fs::read(&path).unwrap();
        let is_read = data::encode(&xml, &Options::default(), None).is_ok();
        if xml.len() < LONGEST && is_read {
            documents.push((path, xml, schema));
        }
    }
    let (mut wrong, mut tried) = (0, 0);
    for alignment in ["bit-packed", "byte-packed", "pre-compression"] {
        for rest in ["", ",utc-time", ",prefixes,pis", ",lexical,prefixes", ",strict"] {
            for has_schema in [false, true] {
                if rest.contains("strict") && !has_schema {
                    continue;
                }
                let words = format!("canonical,{alignment}{rest}");
                for (path, xml, schema) in &documents {
                    let schema = has_schema.then_some(&**schema);
                    let why = canonical(&mut peer, &mut schemas, &words, xml, schema);
                    tried += 1;
                    let Some(why) = why else { continue };
                    let is =
                        |(name, word): &(&str, &str)| path.ends_with(name) && words.contains(word);
                    if EXCEPTIONS.iter().any(|(name, word, _)| is(&(name, word))) {
                        continue;
                    }
                    wrong += 1;
                    if wrong < 60 {
                        println!("{words} {has_schema} {}: {why}", path.display());
                    }
                }
            }
        }
    }
    println!("{tried} streams, {wrong} differ");
    assert_eq!(wrong, 0);
}
