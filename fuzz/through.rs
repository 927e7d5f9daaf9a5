//! What the targets of single codecs share: settings from the first two bytes of the input, bounds
//! small enough for millions of runs, and what must hold.

#![allow(dead_code)] // Each program uses its share.

use std::sync::{Arc, LazyLock};

use codec::dictionary::Kept;
use codec::exi::schema::Document;
use codec::exi::{Alignment, Preserve, Schema};
use codec::{CompiledSchema, Fidelity, Limits, Needs, Settings};

/// A dictionary, where the codec needs one: what the seeds were made with.
const DICTIONARY: &[u8] = b"<t:tracks xmlns:t=\"urn:example:tracks\"><t:track id=\"1\"></t:track>";

/// It with its coders: what one input leaves in them must not be seen in the next.
static KEPT: LazyLock<Arc<Kept>> = LazyLock::new(|| Arc::new(Kept::new(DICTIONARY)));

/// A schema with every kind of datatype and content, for EXI with grammars of its own.
const SCHEMA: &[u8] = br#"<s:schema xmlns:s="http://www.w3.org/2001/XMLSchema">
<s:simpleType name="colour"><s:restriction base="s:string"><s:enumeration value="red"/>
<s:enumeration value="blue"/></s:restriction></s:simpleType>
<s:simpleType name="code"><s:restriction base="s:string"><s:pattern value="[A-C0-9]*"/>
</s:restriction></s:simpleType>
<s:simpleType name="small"><s:restriction base="s:int"><s:minInclusive value="-3"/>
<s:maxInclusive value="60"/></s:restriction></s:simpleType>
<s:simpleType name="either"><s:union memberTypes="s:int colour"/></s:simpleType>
<s:simpleType name="several"><s:list itemType="s:decimal"/></s:simpleType>
<s:complexType name="base" mixed="true"><s:sequence><s:choice minOccurs="0" maxOccurs="unbounded">
<s:element name="i" type="s:integer"/><s:element name="u" type="s:unsignedInt"/>
<s:element name="b" type="s:boolean" nillable="true"/><s:element name="f" type="s:double"/>
<s:element name="t" type="s:dateTime"/><s:element name="d" type="s:date"/>
<s:element name="h" type="s:hexBinary"/><s:element name="x" type="s:base64Binary"/>
<s:element name="c" type="colour"/><s:element name="k" type="code"/>
<s:element name="n" type="small"/><s:element name="e" type="either"/>
<s:element name="l" type="several"/><s:element name="a"/><s:element ref="r"/></s:choice>
<s:any minOccurs="0" maxOccurs="2" processContents="lax"/></s:sequence>
<s:attribute name="p" type="small"/><s:attribute name="q" type="s:string" use="required"/>
<s:anyAttribute/></s:complexType>
<s:complexType name="more"><s:complexContent><s:extension base="base"><s:sequence>
<s:element name="z" type="s:string"/></s:sequence></s:extension></s:complexContent></s:complexType>
<s:element name="r" type="base"/></s:schema>"#;

static COMPILED: LazyLock<Option<Arc<CompiledSchema>>> = LazyLock::new(|| {
    let document = Document { location: "main.xsd", bytes: SCHEMA };
    let schema = Schema::parse(&[document], &mut |_, _| None, &Limits::default()).ok()?;
    Some(Arc::new(CompiledSchema::new(schema)))
});

/// Any bytes as a stream: what decodes stays within the limits, and encodes again.
pub fn decode(name: &str, data: &[u8]) {
    let Some((settings, coded)) = settings(name, data) else { return };
    let Ok(message) = settings.decode(name, coded) else { return };
    assert!(message.len() as u64 <= settings.limits.output_bytes);
    round_trip(name, &settings, &message);
}

/// Any bytes as a message: what encodes comes back.
pub fn encode(name: &str, data: &[u8]) {
    let Some((settings, message)) = settings(name, data) else { return };
    round_trip(name, &settings, message);
}

/// What comes back has the same bytes, or goes through unchanged.
fn round_trip(name: &str, settings: &Settings, message: &[u8]) {
    let Ok(coded) = settings.encode(name, message) else { return };
    let decoded = match settings.decode(name, &coded) {
        Ok(decoded) => decoded,
        // The bound on what comes out is the decoder's alone.
        Err(codec::Error::Limit { .. }) => return,
        Err(error) => panic!("{name}: its own coding is refused: {error}"),
    };
    let Ok(codec) = codec::find(name) else { panic!("{name} is in the table") };
    match codec.properties().fidelity {
        Fidelity::Bytes => assert_eq!(decoded, message),
        Fidelity::Infoset => match settings.encode(name, &decoded) {
            Ok(again) => assert_eq!(settings.decode(name, &again), Ok(decoded)),
            Err(codec::Error::Limit { .. }) => {}
            Err(error) => panic!("{name}: what it decoded is refused: {error}"),
        },
    }
}

/// Settings, and what is left of the input.
pub fn settings<'a>(name: &str, data: &'a [u8]) -> Option<(Settings, &'a [u8])> {
    let [first, second, rest @ ..] = data else { return None };
    let codec = codec::find(name).ok()?.properties();
    let bit = |at: u8| first >> at & 1 == 1;
    // What the greatest of them needs for small messages; else its target would see only refusals.
    let table_bytes = if name == "xmill" { 4 << 20 } else { 1 << 20 };
    let limits = Limits { output_bytes: 1 << 20, depth: 64, table_bytes, message_bytes: 1 << 20 };
    let mut settings = Settings { limits, ..Settings::default() };
    settings.level = codec.levels.map(|(least, usual, most)| match second % 4 {
        0 => least,
        3 => most,
        _ => usual,
    });
    if codec.needs == Needs::Dictionary {
        settings.dictionary = Some(KEPT.clone());
    }
    settings.exi.alignment = match second % 4 {
        0 => Alignment::BitPacked,
        1 => Alignment::BytePacked,
        2 => Alignment::PreCompression,
        _ => Alignment::Compression,
    };
    settings.exi.fragment = bit(0);
    settings.exi.preserve =
        Preserve { comments: bit(1), pis: bit(2), dtd: bit(3), prefixes: bit(4), lexical: bit(5) };
    settings.exi.options_in_header = bit(6);
    settings.exi.cookie = bit(7);
    if second & 0x10 != 0 {
        settings.exi.value_partition_capacity = Some(u32::from(second >> 5));
    }
    if codec.needs == Needs::SchemaOptional && second & 0x04 != 0 {
        settings.schema = COMPILED.clone();
        settings.exi.strict = bit(7);
    }
    if second & 0x08 != 0 {
        settings.exi.value_max_length = Some(u32::from(second >> 5));
        settings.exi.block_size = 1 + u32::from(second >> 5);
    }
    Some((settings, rest))
}
