//! Token tables: which names a type of document writes as numbers.

use std::sync::OnceLock;

use super::opaque::Kind;
use crate::Error;
use crate::xml::names::Interner;
use crate::xml::{is_nc_name, is_qname};

/// The table for SOAP, which tables of services begin with.
pub(super) const SOAP: &str = include_str!("../../tables/wbxml/soap.tokens");

/// The tables that come with the library; where several have the same number, which says only
/// "unknown", those whose tokens are told apart more easily stand first.
static FILES: &[&str] = &[
    SOAP,
    include_str!("../../tables/wbxml/wml13.tokens"),
    include_str!("../../tables/wbxml/wml12.tokens"),
    include_str!("../../tables/wbxml/wml11.tokens"),
    include_str!("../../tables/wbxml/wml10.tokens"),
    include_str!("../../tables/wbxml/wtawml12.tokens"),
    include_str!("../../tables/wbxml/channel11.tokens"),
    include_str!("../../tables/wbxml/si10.tokens"),
    include_str!("../../tables/wbxml/sl10.tokens"),
    include_str!("../../tables/wbxml/co10.tokens"),
    include_str!("../../tables/wbxml/prov10.tokens"),
    include_str!("../../tables/wbxml/emn10.tokens"),
    include_str!("../../tables/wbxml/drmrel10.tokens"),
    include_str!("../../tables/wbxml/syncml12.tokens"),
    include_str!("../../tables/wbxml/syncml11.tokens"),
    include_str!("../../tables/wbxml/syncml10.tokens"),
    include_str!("../../tables/wbxml/devinf12.tokens"),
    include_str!("../../tables/wbxml/devinf11.tokens"),
    include_str!("../../tables/wbxml/devinf10.tokens"),
    include_str!("../../tables/wbxml/wv_csp13.tokens"),
    include_str!("../../tables/wbxml/wv_csp12.tokens"),
    include_str!("../../tables/wbxml/wv_csp11.tokens"),
    include_str!("../../tables/wbxml/conml.tokens"),
    include_str!("../../tables/wbxml/ota.tokens"),
    include_str!("../../tables/wbxml/channel12.tokens"),
    include_str!("../../tables/wbxml/dmddf12.tokens"),
    include_str!("../../tables/wbxml/activesync.tokens"),
    include_str!("../../tables/wbxml/activesync-colon.tokens"),
    include_str!("../../tables/wbxml/airsync.tokens"),
];

/// Codes of a tag page (§5.8.2), of an attribute page's two halves (§5.8.3).
const TAGS: usize = 64;
const STARTS: usize = 128;
/// The number of documents whose type has none (§7.2).
const UNKNOWN: u32 = 1;

/// A tag's name.
#[derive(Clone, Debug)]
pub(super) struct Tag {
    /// The number of its namespace; `None` if pages say nothing of namespaces.
    pub(super) uri: Option<u32>,
    pub(super) name: String,
    pub(super) opaque: Kind,
}

/// An attribute's name and the begin of its value.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) opaque: Kind,
}

/// A place in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) page: u8,
    pub(super) code: u8,
}

/// The token values of a type of document.
///
/// A table is a text of lines; `#` begins a comment, and an empty line is none:
///
/// ```text
/// name SyncML 1.1                  for people
/// number 0xfd3                     the registered public identifier; 0x1 if documents say that
///                                  there is none; without this line its text is written
/// public -//SYNCML//DTD SyncML 1.1//EN   the identifier as text; others may follow
/// system http://…                  the system identifier of the document type written
/// root SyncML                      the root element's name
/// opaque KIND NAME…                content of these elements, or values of these attributes
///                                  (written @NAME; PAGE:NAME is a tag of one page): integer,
///                                  date, wv-date, base64, binary, message, text, document
/// variables                        $(name) is an extension, as in WML
/// tags PAGE [URI]                  tag codes follow; with a namespace, '-' for none
/// 05 Add
/// attributes PAGE                  attribute codes follow: a name, or a name, '=' and the begin
/// 05 align=bottom                  of the value
/// values PAGE                      attribute value codes follow
/// 85 .com/
/// extensions                       values of the extension with an index follow
/// 00 AccessType
/// ```
#[derive(Clone, Debug, Default)]
pub struct TokenTable {
    /// For people.
    pub name: String,
    /// The registered number of the public identifier.
    pub number: u32,
    /// The public identifier as text, and others that mean the same.
    pub public: Vec<String>,
    /// The system identifier.
    pub system: String,
    /// The root element's name.
    pub root: String,
    pub(super) variables: bool,
    /// The public identifier is written as text.
    pub(super) by_text: bool,
    /// The namespaces of tag pages, by number.
    uris: Interner,
    /// By page and code.
    tags: Vec<Option<Tag>>,
    starts: Vec<Option<Start>>,
    values: Vec<Option<String>>,
    extensions: Vec<Option<String>>,
    /// Names, each with the number of its namespace, or with [`NO_URI`]; their codes.
    tag_names: Interner,
    tag_codes: Vec<Code>,
    /// Names, and their codes, the longest begin of a value first.
    start_names: Interner,
    start_codes: Vec<Vec<(String, Code)>>,
    /// By first byte, the longest first; for each first byte, which list that is.
    value_codes: Vec<Vec<(String, Code)>>,
    value_firsts: Vec<usize>,
    extension_names: Interner,
    extension_codes: Vec<u8>,
}

/// The namespace's number where pages say nothing of namespaces.
const NO_URI: u32 = u32::MAX;

/// What the lines behind a heading are.
#[derive(Clone, Copy)]
enum Section {
    Head,
    Tags(u8, Option<u32>),
    Attributes(u8),
    Values(u8),
    Extensions,
}

fn put<T>(list: &mut Vec<Option<T>>, at: usize, item: T) -> bool {
    if list.len() <= at {
        list.resize_with(at + 1, || None);
    }
    list[at].replace(item).is_none()
}

impl TokenTable {
    /// The table without a token: all names are literals, which any reader of WBXML knows.
    #[must_use]
    pub fn literals() -> Self {
        Self { number: UNKNOWN, ..Self::default() }
    }

    /// Reads a table; see the type for its form.
    ///
    /// # Errors
    /// [`Error::Option`] with the line that is wrong.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut table = Self { number: UNKNOWN, by_text: true, ..Self::default() };
        let mut section = Section::Head;
        let mut opaque = Vec::new();
        for (number, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            table.line(line, &mut section, &mut opaque).map_err(|what| Error::Option {
                what: format!("token table, line {}: {what}: '{line}'", number + 1),
            })?;
        }
        table.finish(&opaque)?;
        match opaque.iter().find(|(_, name)| !table.has_opaque(name)) {
            Some((_, name)) => {
                let what = format!("token table: opaque '{name}', which is no name of it");
                Err(Error::Option { what })
            }
            None => Ok(table),
        }
    }

    fn line(
        &mut self,
        line: &str,
        section: &mut Section,
        opaque: &mut Vec<(Kind, String)>,
    ) -> Result<(), &'static str> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let page = |rest: &str| {
            let page = rest.split(' ').next().unwrap_or("");
            page.parse::<u8>().map_err(|_| "a page is a number from 0 to 255")
        };
        match word {
            "name" => self.name = rest.to_owned(),
            "number" => {
                let hex = rest.strip_prefix("0x").ok_or("a number begins with 0x")?;
                self.number = u32::from_str_radix(hex, 16).map_err(|_| "not a number")?;
                self.by_text = false;
            }
            "public" => self.public.push(rest.to_owned()),
            "system" => self.system = rest.to_owned(),
            "root" => self.root = rest.to_owned(),
            "variables" => self.variables = true,
            "opaque" => {
                let mut words = rest.split(' ');
                let kind = words.next().and_then(Kind::of).ok_or("no such kind")?;
                for name in words {
                    if opaque.iter().any(|(_, known)| known == name) {
                        return Err("a name is given twice");
                    }
                    opaque.push((kind, name.to_owned()));
                }
            }
            "tags" => {
                let uri = rest.split_once(' ').map(|(_, uri)| if uri == "-" { "" } else { uri });
                let uri = uri.map(|uri| self.uris.intern(0, uri)).transpose();
                *section = Section::Tags(page(rest)?, uri.map_err(|_| "too many namespaces")?);
            }
            "attributes" => *section = Section::Attributes(page(rest)?),
            "values" => *section = Section::Values(page(rest)?),
            "extensions" => *section = Section::Extensions,
            _ => {
                let code = u8::from_str_radix(word, 16).map_err(|_| "no code in two hex digits")?;
                self.token(*section, code, rest)?;
            }
        }
        Ok(())
    }

    fn token(&mut self, section: Section, code: u8, text: &str) -> Result<(), &'static str> {
        const NO_NAME: &str = "no name of XML";
        let low = usize::from(code & 0x7f);
        let fresh = match section {
            Section::Tags(page, uri) if (5..64).contains(&code) => {
                // Of a tag with a namespace the name is its local part, of another as written.
                let is_name = if uri.is_some() { is_nc_name(text) } else { is_qname(text) };
                if !is_name {
                    return Err(NO_NAME);
                }
                let tag = Tag { uri, name: text.to_owned(), opaque: Kind::Any };
                put(&mut self.tags, usize::from(page) * TAGS + low, tag)
            }
            Section::Attributes(page) if code < 0x80 && code & 0x3f >= 5 => {
                let (name, value) = text.split_once('=').unwrap_or((text, ""));
                if !is_qname(name) {
                    return Err(NO_NAME);
                }
                let (name, value) = (name.to_owned(), value.to_owned());
                let start = Start { name, value, opaque: Kind::Any };
                put(&mut self.starts, usize::from(page) * STARTS + low, start)
            }
            Section::Values(page) if code >= 0x85 && code & 0x3f >= 5 && !text.is_empty() => {
                put(&mut self.values, usize::from(page) * STARTS + low, text.to_owned())
            }
            Section::Extensions => put(&mut self.extensions, usize::from(code), text.to_owned()),
            _ => return Err("a code that cannot stand here"),
        };
        if fresh { Ok(()) } else { Err("a code is given twice") }
    }

    /// Builds the ways back, from names to codes.
    fn finish(&mut self, opaque: &[(Kind, String)]) -> Result<(), Error> {
        let place = |at: usize, pages: usize, high: u8| {
            let page = u8::try_from(at / pages).unwrap_or(u8::MAX);
            let code = u8::try_from(at % pages).unwrap_or(u8::MAX) | high;
            Code { page, code }
        };
        for (at, tag) in self.tags.iter_mut().enumerate() {
            let Some(tag) = tag else { continue };
            let code = place(at, TAGS, 0);
            tag.opaque = kind_of(opaque, &tag.name, code.page, false);
            let id = self.tag_names.intern(tag.uri.unwrap_or(NO_URI), &tag.name)?;
            if id as usize == self.tag_codes.len() {
                self.tag_codes.push(code);
            }
        }
        for (at, start) in self.starts.iter_mut().enumerate() {
            let Some(start) = start else { continue };
            start.opaque = kind_of(opaque, &start.name, 0, true);
            let id = self.start_names.intern(0, &start.name)?;
            self.start_codes.resize(self.start_names.len(), Vec::new());
            self.start_codes[id as usize].push((start.value.clone(), place(at, STARTS, 0)));
        }
        self.value_firsts = vec![usize::MAX; 256];
        for (at, value) in self.values.iter().enumerate() {
            let Some(value) = value else { continue };
            let first = value.as_bytes().first().copied().unwrap_or(0);
            let list = &mut self.value_firsts[usize::from(first)];
            if *list == usize::MAX {
                *list = self.value_codes.len();
                self.value_codes.push(Vec::new());
            }
            self.value_codes[*list].push((value.clone(), place(at, STARTS, 0x80)));
        }
        let lists = self.start_codes.iter_mut().chain(&mut self.value_codes);
        lists.for_each(|codes| codes.sort_by_key(|(text, _)| std::cmp::Reverse(text.len())));
        for (code, text) in self.extensions.iter().enumerate() {
            if let (Some(text), Ok(code)) = (text, u8::try_from(code))
                && self.extension_names.intern(0, text)? as usize == self.extension_codes.len()
            {
                self.extension_codes.push(code);
            }
        }
        Ok(())
    }

    /// Whether a name of an `opaque` line is that of a tag or attribute.
    fn has_opaque(&self, name: &str) -> bool {
        if let Some(name) = name.strip_prefix('@') {
            return self.starts.iter().flatten().any(|start| start.name == name);
        }
        let (place, local) = match name.split_once(':') {
            Some((page, local)) => (page.parse().ok(), local),
            None => (None, name),
        };
        let mut tags = self.tags.iter().enumerate();
        tags.any(|(at, tag)| {
            let here = place.is_none_or(|page: usize| page == at / TAGS);
            tag.as_ref().is_some_and(|tag| tag.name == name || (here && tag.name == local))
        })
    }

    /// A namespace of tag pages.
    pub(super) fn uri(&self, number: u32) -> &str {
        self.uris.get(number)
    }

    /// The table for the client of devices, `pocket`: the number in four bytes, then records of
    /// kind, code, length and text. Kinds 0, 2 and 4 begin a page of tags, attributes and values,
    /// whose number is the code; 1, 3 and 5 are what stands on it.
    ///
    /// # Errors
    /// [`Error::Option`] for what that client does not know: an identifier as text, pages without
    /// namespaces, extensions, opaque data, variables; and for texts over 255 bytes.
    pub fn packed(&self) -> Result<Vec<u8>, Error> {
        let refused = |what: &str| Error::Option { what: format!("a packed table has no {what}") };
        let is_opaque = |kind: Kind| !matches!(kind, Kind::Any);
        let has_opaque = self.tags.iter().flatten().any(|tag| is_opaque(tag.opaque))
            || self.starts.iter().flatten().any(|start| is_opaque(start.opaque));
        let lacks = [
            (self.by_text, "identifier that is a text"),
            (!self.has_namespaces(), "pages without namespaces"),
            (self.has_extensions() || self.variables, "extensions"),
            (has_opaque, "opaque data"),
        ];
        if let Some((_, what)) = lacks.into_iter().find(|(is_there, _)| *is_there) {
            return Err(refused(what));
        }
        let mut out = self.number.to_be_bytes().to_vec();
        let mut put = |kind: u8, code: usize, text: &str| {
            let code = u8::try_from(code).map_err(|_| refused("code over 255"))?;
            let len = u8::try_from(text.len()).map_err(|_| refused("text over 255 bytes"))?;
            out.extend([kind, code, len]);
            out.extend_from_slice(text.as_bytes());
            Ok::<(), Error>(())
        };
        for (page, tags) in self.tags.chunks(TAGS).enumerate() {
            let uri = tags.iter().flatten().find_map(|tag| tag.uri);
            if tags.iter().flatten().next().is_some() {
                put(0, page, uri.map_or("", |uri| self.uri(uri)))?;
            }
            for (code, tag) in tags.iter().enumerate() {
                tag.as_ref().map_or(Ok(()), |tag| put(1, code, &tag.name))?;
            }
        }
        for (page, starts) in self.starts.chunks(STARTS).enumerate() {
            if starts.iter().flatten().next().is_some() {
                put(2, page, "")?;
            }
            for (code, start) in starts.iter().enumerate() {
                let Some(Start { name, value, .. }) = start else { continue };
                let text = if value.is_empty() { name.clone() } else { format!("{name}={value}") };
                put(3, code, &text)?;
            }
        }
        for (page, values) in self.values.chunks(STARTS).enumerate() {
            if values.iter().flatten().next().is_some() {
                put(4, page, "")?;
            }
            for (code, value) in values.iter().enumerate() {
                value.as_ref().map_or(Ok(()), |value| put(5, code | 0x80, value))?;
            }
        }
        Ok(out)
    }

    /// The last word of its name.
    pub(super) fn version(&self) -> &str {
        self.name.rsplit(' ').next().unwrap_or("")
    }

    /// Whether tags are known by namespace and local name, not as written.
    pub(super) fn has_namespaces(&self) -> bool {
        self.uris.len() > 0
    }

    pub(super) fn tag(&self, page: u8, code: u8) -> Option<&Tag> {
        self.tags.get(usize::from(page) * TAGS + usize::from(code))?.as_ref()
    }

    pub(super) fn start(&self, page: u8, code: u8) -> Option<&Start> {
        self.starts.get(usize::from(page) * STARTS + usize::from(code))?.as_ref()
    }

    pub(super) fn value(&self, page: u8, code: u8) -> Option<&str> {
        self.values.get(usize::from(page) * STARTS + usize::from(code & 0x7f))?.as_deref()
    }

    pub(super) fn extension(&self, value: u32) -> Option<&str> {
        self.extensions.get(usize::try_from(value).ok()?)?.as_deref()
    }

    pub(super) fn has_extensions(&self) -> bool {
        !self.extensions.is_empty()
    }

    /// The code of a name in a namespace, where pages have namespaces.
    pub(super) fn tag_code(&self, uri: &str, name: &str) -> Option<Code> {
        self.code(self.uris.find(0, uri)?, name)
    }

    /// The code of a name as written, where pages have no namespaces.
    pub(super) fn bare_tag_code(&self, name: &str) -> Option<Code> {
        self.code(NO_URI, name)
    }

    fn code(&self, uri: u32, name: &str) -> Option<Code> {
        let id = self.tag_names.find(uri, name)?;
        self.tag_codes.get(id as usize).copied()
    }

    pub(super) fn start_codes(&self, name: &str) -> &[(String, Code)] {
        let id = self.start_names.find(0, name);
        id.and_then(|id| self.start_codes.get(id as usize)).map_or(&[], Vec::as_slice)
    }

    /// Whether parts of values have codes.
    pub(super) fn has_values(&self) -> bool {
        !self.value_codes.is_empty()
    }

    /// Value codes whose text begins with the byte.
    #[inline]
    pub(super) fn value_codes(&self, first: u8) -> &[(String, Code)] {
        let list = self.value_firsts.get(usize::from(first)).copied().unwrap_or(usize::MAX);
        self.value_codes.get(list).map_or(&[], Vec::as_slice)
    }

    pub(super) fn extension_code(&self, text: &str) -> Option<u8> {
        let id = self.extension_names.find(0, text)?;
        self.extension_codes.get(id as usize).copied()
    }
}

/// What opaque data of a tag or attribute is; the first line that names it says so.
fn kind_of(opaque: &[(Kind, String)], name: &str, page: u8, attribute: bool) -> Kind {
    let found = opaque.iter().find(|(_, other)| match other.strip_prefix('@') {
        Some(other) => attribute && other == name,
        None if attribute => false,
        None => match other.split_once(':') {
            Some((place, other)) if place.parse() == Ok(page) => other == name,
            _ => other == name,
        },
    });
    found.map_or(Kind::Any, |(kind, _)| *kind)
}

/// A number of some bytes (FNV-1a of 32 bits).
pub(super) fn fingerprint(bytes: &[u8]) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(0x811c_9dc5, step)
}

/// The tables that come with the library.
#[must_use]
pub fn tables() -> &'static [TokenTable] {
    static TABLES: OnceLock<Vec<TokenTable>> = OnceLock::new();
    // A table that cannot be read is missing here, and a test finds it.
    TABLES.get_or_init(|| FILES.iter().filter_map(|text| TokenTable::parse(text).ok()).collect())
}

/// The tables for a registered number; several where it is 1.
pub(super) fn by_number(number: u32) -> impl Iterator<Item = &'static TokenTable> {
    tables().iter().filter(move |table| table.number == number)
}

/// What a table is found by; seeds of [`Index::names`].
const PUBLIC: u32 = 0;
const SYSTEM: u32 = 1;
const URI: u32 = 2;

/// The tables by what documents tell of themselves.
#[derive(Default)]
struct Index {
    names: Interner,
    found: Vec<Vec<&'static TokenTable>>,
}

impl Index {
    fn add(&mut self, what: u32, name: &str, table: &'static TokenTable) {
        let Ok(id) = self.names.intern(what, name) else { return };
        self.found.resize(self.names.len(), Vec::new());
        self.found[id as usize].push(table);
    }

    /// The tables that have the name, which is not empty.
    fn get(&self, what: u32, name: &str) -> &[&'static TokenTable] {
        let id = self.names.find(what, name).filter(|_| !name.is_empty());
        id.and_then(|id| self.found.get(id as usize)).map_or(&[], Vec::as_slice)
    }
}

fn index() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut index = Index::default();
        for table in tables() {
            table.public.iter().for_each(|public| index.add(PUBLIC, public, table));
            index.add(SYSTEM, &table.system, table);
            for uri in (0..).take(table.uris.len()) {
                index.add(URI, table.uri(uri), table);
            }
        }
        index
    })
}

/// The table for a document with this type and this root element: one that has both, or else one
/// for the namespace, or for the type.
pub(super) fn by_root(
    (public, system): (&str, &str),
    uri: &str,
    local: &str,
) -> Option<&'static TokenTable> {
    let knows = |table: &&&TokenTable| table.tag_code(uri, local).is_some();
    let typed = match public {
        "" => index().get(SYSTEM, system),
        public => index().get(PUBLIC, public),
    };
    let named = index().get(URI, uri);
    let both = typed.iter().find(|table| !uri.is_empty() && knows(table));
    both.or_else(|| named.iter().find(knows)).or(typed.first()).copied()
}

/// The table that knows the name, of the version if there is one.
pub(super) fn by_name(uri: &str, local: &str, version: &str) -> Option<&'static TokenTable> {
    let mut known: Vec<&TokenTable> = index().get(URI, uri).to_vec();
    known.retain(|table| table.tag_code(uri, local).is_some());
    known.iter().find(|table| table.version() == version).or(known.first()).copied()
}

/// The table for a public identifier as text.
pub(super) fn by_public(public: &str) -> Option<&'static TokenTable> {
    index().get(PUBLIC, public).first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tables_are_read() {
        for file in FILES {
            TokenTable::parse(file).unwrap();
        }
        assert_eq!(tables().len(), FILES.len());
        let syncml = by_number(0xfd3).next().unwrap();
        assert_eq!(syncml.tag_code("syncml:metinf", "Type").map(|code| code.page), Some(1));
        let wml = by_public("-//WAPFORUM//DTD WML 1.1//EN").unwrap();
        assert_eq!(wml.start(0, 0x4b).unwrap().value, "http://");
        assert_eq!(wml.start_codes("href")[0].0, "https://");
    }

    #[test]
    fn wrong_lines_are_named() {
        let wrong = |text: &str| TokenTable::parse(text).unwrap_err().to_string();
        assert!(wrong("name x\ntags 0\n04 a").contains("line 3: a code that cannot stand here"));
        assert!(wrong("tags 0\n05 a\n05 b").contains("a code is given twice"));
        assert!(wrong("tags 300").contains("a page is a number"));
        assert!(wrong("opaque thing a").contains("no such kind"));
        assert!(wrong("xyz").contains("no code in two hex digits"));
        assert!(wrong("opaque binary a b a\ntags 0\n05 a\n06 b").contains("given twice"));
        assert!(wrong("opaque binary a\ntags 0\n05 b").contains("no name of it"));
        assert!(wrong("opaque binary 1:a\ntags 0\n05 a\ntags 1\n05 b").contains("'1:a'"));
        assert!(wrong("opaque date @a\ntags 0\n05 a").contains("'@a'"));
        for text in ["tags 0\n05 a b", "tags 0\n05 a>", "tags 0\n05 ", "tags 0 urn:a\n05 a:b:c"] {
            assert!(wrong(text).contains("no name of XML"), "{text}");
        }
        for text in ["attributes 0\n05 a b=c", "attributes 0\n05 =c", "attributes 0\n05 a'"] {
            assert!(wrong(text).contains("no name of XML"), "{text}");
        }
    }
}
