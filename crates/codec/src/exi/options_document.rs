//! The options document in a header (EXI §5.4, Appendix C): itself a stream, strict and bit-packed.

use std::{
    fmt::Write as _,
    sync::{Arc, LazyLock},
};

use super::{
    Alignment, Options, Preserve, Profile, Schema, SchemaId,
    bits::{Fault, Reader, Writer},
    decoder::{Core, Item},
    encoder::write_document,
    grammar::Grammars,
    mapping::EXI_URI,
    schema::{Document, XSD},
};
use crate::Limits;

/// The schema of EXI Appendix C; `empty` and the like only make it shorter.
const SCHEMA: &str = r###"<x:schema xmlns:x="http://www.w3.org/2001/XMLSchema"
 targetNamespace="http://www.w3.org/2009/exi" elementFormDefault="qualified">
<x:element name="header"><x:complexType><x:sequence>
 <x:element name="lesscommon" minOccurs="0"><x:complexType><x:sequence>
  <x:element name="uncommon" minOccurs="0"><x:complexType><x:sequence>
   <x:any namespace="##other" minOccurs="0" maxOccurs="unbounded" processContents="skip"/>
   <x:element name="alignment" minOccurs="0"><x:complexType><x:choice>
    <x:element name="byte"><x:complexType/></x:element>
    <x:element name="pre-compress"><x:complexType/></x:element>
   </x:choice></x:complexType></x:element>
   <x:element name="selfContained" minOccurs="0"><x:complexType/></x:element>
   <x:element name="valueMaxLength" minOccurs="0"><x:simpleType>
    <x:restriction base="x:unsignedInt"/></x:simpleType></x:element>
   <x:element name="valuePartitionCapacity" minOccurs="0"><x:simpleType>
    <x:restriction base="x:unsignedInt"/></x:simpleType></x:element>
   <x:element name="datatypeRepresentationMap" minOccurs="0" maxOccurs="unbounded">
    <x:complexType><x:sequence>
     <x:any namespace="##other" processContents="skip"/><x:any processContents="skip"/>
    </x:sequence></x:complexType></x:element>
  </x:sequence></x:complexType></x:element>
  <x:element name="preserve" minOccurs="0"><x:complexType><x:sequence>
   <x:element name="dtd" minOccurs="0"><x:complexType/></x:element>
   <x:element name="prefixes" minOccurs="0"><x:complexType/></x:element>
   <x:element name="lexicalValues" minOccurs="0"><x:complexType/></x:element>
   <x:element name="comments" minOccurs="0"><x:complexType/></x:element>
   <x:element name="pis" minOccurs="0"><x:complexType/></x:element>
  </x:sequence></x:complexType></x:element>
  <x:element name="blockSize" minOccurs="0"><x:simpleType>
   <x:restriction base="x:unsignedInt"/></x:simpleType></x:element>
 </x:sequence></x:complexType></x:element>
 <x:element name="common" minOccurs="0"><x:complexType><x:sequence>
  <x:element name="compression" minOccurs="0"><x:complexType/></x:element>
  <x:element name="fragment" minOccurs="0"><x:complexType/></x:element>
  <x:element name="schemaId" minOccurs="0" nillable="true"><x:simpleType>
   <x:restriction base="x:string"/></x:simpleType></x:element>
 </x:sequence></x:complexType></x:element>
 <x:element name="strict" minOccurs="0"><x:complexType/></x:element>
</x:sequence></x:complexType></x:element>
<x:simpleType name="base64Binary"><x:restriction base="x:base64Binary"/></x:simpleType>
<x:simpleType name="hexBinary"><x:restriction base="x:hexBinary"/></x:simpleType>
<x:simpleType name="boolean"><x:restriction base="x:boolean"/></x:simpleType>
<x:simpleType name="decimal"><x:restriction base="x:decimal"/></x:simpleType>
<x:simpleType name="double"><x:restriction base="x:double"/></x:simpleType>
<x:simpleType name="integer"><x:restriction base="x:integer"/></x:simpleType>
<x:simpleType name="string"><x:restriction base="x:string"/></x:simpleType>
<x:simpleType name="dateTime"><x:restriction base="x:dateTime"/></x:simpleType>
<x:simpleType name="date"><x:restriction base="x:date"/></x:simpleType>
<x:simpleType name="time"><x:restriction base="x:time"/></x:simpleType>
<x:simpleType name="gYearMonth"><x:restriction base="x:gYearMonth"/></x:simpleType>
<x:simpleType name="gMonthDay"><x:restriction base="x:gMonthDay"/></x:simpleType>
<x:simpleType name="gYear"><x:restriction base="x:gYear"/></x:simpleType>
<x:simpleType name="gMonth"><x:restriction base="x:gMonth"/></x:simpleType>
<x:simpleType name="gDay"><x:restriction base="x:gDay"/></x:simpleType>
<x:simpleType name="ieeeBinary32"><x:restriction base="x:float"/></x:simpleType>
<x:simpleType name="ieeeBinary64"><x:restriction base="x:double"/></x:simpleType>
</x:schema>"###;

static GRAMMARS: LazyLock<Option<Arc<Grammars>>> = LazyLock::new(|| {
    let document = Document { location: "options", bytes: SCHEMA.as_bytes() };
    let limits = Limits::default();
    let schema = Schema::parse(&[document], &mut |_, _| None, &limits).ok()?;
    schema.grammars(&strict(), &limits).ok().map(Arc::new)
});

fn strict() -> Options {
    Options { strict: true, ..Options::default() }
}

fn grammars() -> Result<Arc<Grammars>, Fault> {
    GRAMMARS.clone().ok_or(Fault::Bad(&"no grammars for options"))
}

/// Most datatypes in a map that comes with a stream.
const MAP_ENTRIES: usize = 1000;

/// What an options document has said so far.
struct Reading {
    options: Options,
    /// Local names of the open elements.
    path: Vec<String>,
    text: String,
    /// First name of an entry of the map.
    from: Option<[String; 2]>,
    /// Whether an element holds the parameters of the profile.
    is_profile: bool,
}

/// Reads the options document behind a header's version.
pub(crate) fn read(from: &mut Reader, agreed: &Options, limits: &Limits) -> Result<Options, Fault> {
    let mut core = Core::new(grammars()?, &strict(), limits)?;
    // The document says all but what it leaves to an agreement (EXI §5.4).
    let options = Options {
        schema_id: agreed.schema_id.clone(),
        profile: agreed.profile,
        canonical: agreed.canonical,
        cookie: agreed.cookie,
        options_in_header: true,
        ..Options::default()
    };
    let mut reading =
        Reading { options, path: Vec::new(), text: String::new(), from: None, is_profile: false };
    loop {
        core.next(from, true)?;
        let text = || String::from_utf8_lossy(core.text(core.value())).into_owned();
        match *core.item() {
            Item::Start { name, .. } => {
                let uri = core.names().uri(core.names().get(name).uri);
                reading.start(uri, core.names().local(name))?;
            }
            Item::Characters => reading.text = text(),
            Item::Attribute { name, .. }
                if core.names().local(name) == "nil" && matches!(&*text(), "true" | "1") =>
            {
                reading.options.schema_id = SchemaId::None;
                reading.text.push('-');
            }
            Item::End => reading.end()?,
            Item::EndDocument => return Ok(reading.options),
            _ => {}
        }
    }
}

impl Reading {
    fn start(&mut self, uri: &str, local: &str) -> Result<(), Fault> {
        self.text.clear();
        let parent = self.path.last().map_or("", String::as_str);
        let options = &mut self.options;
        match (parent, local) {
            ("datatypeRepresentationMap", _) => {
                let name = [uri.to_owned(), local.to_owned()];
                match self.from.take() {
                    Some(from) => options.datatype_map.push((from, name)),
                    None => self.from = Some(name),
                }
                if options.datatype_map.len() > MAP_ENTRIES {
                    return Err(Fault::Limit(&"entries of a datatype map"));
                }
            }
            _ if uri != EXI_URI => {}
            ("alignment", "byte") => options.alignment = Alignment::BytePacked,
            ("alignment", "pre-compress") => options.alignment = Alignment::PreCompression,
            ("uncommon", "p") => self.is_profile = true,
            ("common", "compression") => options.alignment = Alignment::Compression,
            ("common", "fragment") => options.fragment = true,
            ("header", "strict") => options.strict = true,
            ("uncommon", "selfContained") => options.self_contained = true,
            ("preserve", "dtd") => options.preserve.dtd = true,
            ("preserve", "prefixes") => options.preserve.prefixes = true,
            ("preserve", "lexicalValues") => options.preserve.lexical = true,
            ("preserve", "comments") => options.preserve.comments = true,
            ("preserve", "pis") => options.preserve.pis = true,
            _ => {}
        }
        self.path.push(local.to_owned());
        Ok(())
    }

    fn end(&mut self) -> Result<(), Fault> {
        let name = self.path.pop().unwrap_or_default();
        let parent = self.path.last().map_or("", String::as_str);
        let options = &mut self.options;
        let number =
            || self.text.parse().map_err(|_| Fault::Bad(&"an option that is not a number"));
        match (parent, name.as_str()) {
            ("uncommon", "valueMaxLength") => options.value_max_length = Some(number()?),
            ("uncommon", "valuePartitionCapacity") => {
                options.value_partition_capacity = Some(number()?);
            }
            ("uncommon", "p") if std::mem::take(&mut self.is_profile) => {
                let fault = Fault::Bad(&"parameters of a profile that are not a decimal");
                options.profile = read_profile(&self.text).ok_or(fault)?;
            }
            ("lesscommon", "blockSize") => {
                options.block_size = number()?;
                if options.block_size == 0 {
                    return Err(Fault::Bad(&"a block size of 0"));
                }
            }
            ("common", "schemaId") if self.text != "-" || options.schema_id != SchemaId::None => {
                options.schema_id = match self.text.as_str() {
                    "" => SchemaId::BuiltIn,
                    text => SchemaId::Named(text.to_owned()),
                };
            }
            _ => {}
        }
        self.text.clear();
        Ok(())
    }
}

/// Writes the options document behind a header's version.
pub(crate) fn write(options: &Options, to: Writer, limits: &Limits) -> Result<Writer, Fault> {
    let xml = document(options);
    write_document(&xml, &strict(), grammars()?, to, limits)
}

fn element(name: &str, content: &str) -> String {
    if content.is_empty() { String::new() } else { format!("<{name}>{content}</{name}>") }
}

fn flag(name: &str, set: bool) -> String {
    if set { format!("<{name}/>") } else { String::new() }
}

fn number(name: &str, value: Option<u32>) -> String {
    value.map_or_else(String::new, |value| format!("<{name}>{value}</{name}>"))
}

/// The parameters of the profile as one decimal, if they are not the defaults (EXI Profile §4): the
/// sign is that there are local partitions, the numbers before and, reversed, behind the point are
/// the bounds plus one, or 0 for none.
fn profile(profile: &Profile) -> String {
    if *profile == Profile::default() {
        return String::new();
    }
    let plus_one = |bound: Option<u32>| bound.map_or(0, |bound| u64::from(bound) + 1);
    let sign = if profile.local_value_partitions { "-" } else { "" };
    let whole = plus_one(profile.built_in_grammars_max);
    let fraction = plus_one(profile.built_in_productions_max).to_string();
    let fraction: String = fraction.chars().rev().collect();
    format!("<p i:type=\"d:decimal\" xmlns:d=\"{XSD}\">{sign}{whole}.{fraction}</p>")
}

fn read_profile(text: &str) -> Option<Profile> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let bound = |digits: &str| {
        let digits = if digits.is_empty() { "0" } else { digits };
        let value: u64 = digits.parse().ok()?;
        Some(value.checked_sub(1).and_then(|bound| u32::try_from(bound).ok()))
    };
    let reversed: String = fraction.chars().rev().collect();
    Some(Profile {
        local_value_partitions: negative,
        built_in_grammars_max: bound(whole)?,
        built_in_productions_max: bound(&reversed)?,
    })
}

/// The document: what differs from the defaults (EXI §5.4).
fn document(options: &Options) -> String {
    let alignment = match options.alignment {
        Alignment::BytePacked => "<byte/>",
        Alignment::PreCompression => "<pre-compress/>",
        Alignment::BitPacked | Alignment::Compression => "",
    };
    let mut uncommon = profile(&options.profile)
        + &element("alignment", alignment)
        + &flag("selfContained", options.self_contained)
        + &number("valueMaxLength", options.value_max_length)
        + &number("valuePartitionCapacity", options.value_partition_capacity);
    for (from, to) in &options.datatype_map {
        let mut entry = String::new();
        for [uri, local] in [from, to] {
            let _ = write!(entry, "<{local} xmlns=\"{}\"/>", escaped(uri));
        }
        uncommon += &element("datatypeRepresentationMap", &entry);
    }
    let Preserve { comments, pis, dtd, prefixes, lexical } = options.preserve;
    let preserve = flag("dtd", dtd)
        + &flag("prefixes", prefixes)
        + &flag("lexicalValues", lexical)
        + &flag("comments", comments)
        + &flag("pis", pis);
    let block_size = Some(options.block_size).filter(|&size| size != 1_000_000);
    let lesscommon = element("uncommon", &uncommon)
        + &element("preserve", &preserve)
        + &number("blockSize", block_size);
    let schema_id = match &options.schema_id {
        SchemaId::Agreed => String::new(),
        SchemaId::None => "<schemaId i:nil=\"true\"/>".to_owned(),
        SchemaId::BuiltIn => "<schemaId/>".to_owned(),
        SchemaId::Named(id) => format!("<schemaId>{}</schemaId>", escaped(id)),
    };
    let common = flag("compression", options.alignment == Alignment::Compression)
        + &flag("fragment", options.fragment)
        + &schema_id;
    let content = element("lesscommon", &lesscommon)
        + &element("common", &common)
        + &flag("strict", options.strict);
    format!(
        "<header xmlns=\"{EXI_URI}\" xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\">\
         {content}</header>"
    )
}

fn escaped(text: &str) -> String {
    let mut out = Vec::new();
    crate::xml::escape(text, true, &mut out);
    String::from_utf8(out).unwrap_or_default()
}
