//! XML to tokens.

use proto::wbxml::{charset, encode_u32, global};

use super::opaque::Kind;
use super::strings::Strings;
use super::table::{Code, TokenTable, by_root};
use super::{NAME, Settings};
use crate::xml::{Doctype, Event, NameId, Reader, Start, UriId, to_utf8};
use crate::{Error, Limits};

/// WBXML 1.3 (§5.4).
const VERSION: u8 = 3;
/// The number of a missing public identifier (§7.2).
const NO_PUBLIC_ID: u32 = 1;

/// Makes a WBXML 1.3 document in UTF-8 of an XML document. The same document gives the same bytes.
///
/// # Errors
/// What is not well-formed XML, with its offset; references to entities that a document type
/// declares, which are not expanded; limits of depth, names and output.
pub fn encode(document: &[u8], settings: &Settings<'_>, limits: &Limits) -> Result<Vec<u8>, Error> {
    let document = to_utf8(document, limits)?;
    let mut reader = Reader::of(&document, limits);
    let mut encoder = Encoder::new(settings, limits);
    loop {
        let at = reader.offset();
        // Without `?`, which would copy the event.
        match reader.next() {
            Err(error) => return Err(error),
            Ok(Event::Start(start)) => encoder.start(&start, &reader)?,
            Ok(Event::End { .. }) => encoder.end(),
            Ok(Event::Text(text)) => encoder.content_text(&text)?,
            Ok(Event::Pi { target, data }) => encoder.pi(target, &data)?,
            Ok(Event::Doctype(doctype)) => encoder.doctype(&doctype),
            Ok(Event::EntityRef(name)) => {
                let what = format!("a reference to the entity '{name}', which is not expanded");
                return Err(Error::Malformed { codec: NAME, offset: at as u64, what });
            }
            // §6.1: removed.
            Ok(Event::Comment(_) | Event::Declaration { .. }) => {}
            Ok(Event::Eof) => return encoder.finish(),
        }
        if encoder.body.len() as u64 > limits.output_bytes {
            let what = format!("output over output_bytes {}", limits.output_bytes);
            return Err(Error::Limit { codec: NAME, what });
        }
    }
}

/// What is known of a name as a tag.
#[derive(Clone, Copy)]
enum Known {
    Unknown,
    Literal,
    Token(Code),
}

/// An open element.
struct Open {
    /// Where in the body its tag is: the bit for content is set later.
    tag: usize,
    opaque: Kind,
    /// The default namespace that a decoder has outside of it, and how many prefixes.
    default: UriId,
    prefixes: usize,
}

pub(super) struct Encoder<'a> {
    pub(super) table: Option<&'a TokenTable>,
    pub(super) body: Vec<u8>,
    pub(super) strings: Strings,
    pub(super) attribute_page: u8,
    keep_white_space: bool,
    chosen: bool,
    tag_page: u8,
    tags: Vec<Known>,
    starts: Vec<Option<&'a [(String, Code)]>>,
    open: Vec<Open>,
    /// The public identifier as text, among the strings.
    public: Option<u32>,
    /// The document type's public and system identifiers.
    doctype: (String, String),
    /// What a decoder has as the default namespace.
    default: UriId,
    /// Prefixes in scope.
    prefixes: Vec<(String, UriId)>,
}

impl<'a> Encoder<'a> {
    fn new(settings: &Settings<'a>, limits: &Limits) -> Self {
        let mut encoder = Self {
            table: None,
            body: Vec::new(),
            strings: Strings::new(settings.string_table, limits),
            attribute_page: 0,
            keep_white_space: settings.keep_white_space,
            chosen: false,
            tag_page: 0,
            tags: Vec::new(),
            starts: Vec::new(),
            open: Vec::new(),
            public: None,
            doctype: (String::new(), String::new()),
            default: UriId::NONE,
            prefixes: Vec::new(),
        };
        if let Some(table) = settings.table {
            encoder.choose(table);
        }
        encoder
    }

    fn choose(&mut self, table: &'a TokenTable) {
        self.table = Some(table);
        self.chosen = true;
    }

    fn doctype(&mut self, doctype: &Doctype<'_>) {
        doctype.public.clone_into(&mut self.doctype.0);
        doctype.system.clone_into(&mut self.doctype.1);
    }

    /// Chooses the table at the root element.
    fn root(&mut self, uri: &str, local: &str) -> Result<(), Error> {
        self.chosen = true;
        let (public, system) = &self.doctype;
        match by_root((public, system), uri, local) {
            Some(table) => self.choose(table),
            None if !public.is_empty() => self.public = Some(self.strings.header(public)?),
            None => {}
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<u8>, Error> {
        if let Some(table) = self.table.filter(|table| table.by_text)
            && let Some(text) = table.public.first()
        {
            self.public = Some(self.strings.header(text)?);
        }
        let number = self.table.map_or(NO_PUBLIC_ID, |table| table.number);
        Ok(self.strings.finish(&self.body, self.public, |public, out| {
            out.push(VERSION);
            if public.is_some() {
                out.push(0);
            }
            out.extend_from_slice(encode_u32(public.unwrap_or(number), &mut [0; 5]));
            out.extend_from_slice(encode_u32(charset::UTF_8, &mut [0; 5]));
        }))
    }

    /// Notes that the innermost element has content.
    #[inline]
    fn content(&mut self) {
        if let Some(open) = self.open.last() {
            self.body[open.tag] |= global::HAS_CONTENT;
        }
    }

    fn start(&mut self, start: &Start<'_>, reader: &Reader<'_>) -> Result<(), Error> {
        self.content();
        let name = reader.names().name(start.name);
        if !self.chosen {
            self.root(name.uri, name.local)?;
        }
        let namespaces = self.table.is_some_and(TokenTable::has_namespaces);
        let written = reader.scanner().written();
        let code = self.tag_code(start, written, (name.uri, name.local), namespaces);
        let (outside, prefixes) = (self.default, self.prefixes.len());
        let default = if namespaces {
            self.declare(start, reader, name.uri_id, matches!(code, Known::Token(_)))
        } else {
            None
        };
        let mut opaque = Kind::Any;
        let tag = match code {
            Known::Token(Code { page, code }) => {
                if page != self.tag_page {
                    self.tag_page = page;
                    self.body.extend([global::SWITCH_PAGE, page]);
                }
                let known = self.table.and_then(|table| table.tag(page, code));
                opaque = known.map_or(Kind::Any, |tag| tag.opaque);
                self.body.push(code);
                self.body.len() - 1
            }
            _ => {
                let tag = self.body.len();
                self.strings.literal(global::LITERAL, written, &mut self.body)?;
                tag
            }
        };
        self.open.push(Open { tag, opaque, default: outside, prefixes });
        let before = self.body.len();
        self.attributes(start, reader, namespaces, default)?;
        if self.body.len() != before {
            self.body[tag] |= global::HAS_ATTRIBUTES;
            self.body.push(global::END);
        }
        Ok(())
    }

    #[inline]
    fn tag_code(
        &mut self,
        start: &Start<'_>,
        written: &str,
        (uri, local): (&str, &str),
        namespaces: bool,
    ) -> Known {
        let Some(table) = self.table else { return Known::Literal };
        let index = start.name.index();
        if index >= self.tags.len() {
            self.tags.resize(index + 1, Known::Unknown);
        }
        // As written, a name with a prefix has no place of its own.
        let cached = namespaces || start.prefix.is_empty();
        if cached && !matches!(self.tags[index], Known::Unknown) {
            return self.tags[index];
        }
        let found =
            if namespaces { table.tag_code(uri, local) } else { table.tag_code("", written) };
        let known = found.map_or(Known::Literal, Known::Token);
        if cached {
            self.tags[index] = known;
        }
        known
    }

    /// Follows what a decoder will know of namespaces, which writes those of tag pages by itself.
    /// Gives the default namespace that must be written with the element.
    fn declare(
        &mut self,
        start: &Start<'_>,
        reader: &Reader<'_>,
        uri: UriId,
        token: bool,
    ) -> Option<UriId> {
        let mut declared = None;
        for declaration in reader.declarations() {
            let prefix = declaration.prefix(start);
            if prefix.is_empty() {
                declared = Some(declaration.uri);
            } else {
                self.prefixes.push((prefix.to_owned(), declaration.uri));
            }
        }
        let named = token && self.default != uri && self.has_prefix(uri);
        let derived = token && !named;
        let written = match declared {
            Some(declared) if derived && declared == uri => None,
            Some(declared) => Some(declared),
            // A literal without prefix is in the default namespace, whichever the decoder has.
            None if !token && start.prefix.is_empty() => Some(uri),
            None => None,
        };
        let written = written.filter(|written| *written != self.default);
        if let Some(written) = written {
            self.default = written;
        }
        if derived && self.default != uri && !self.has_prefix(uri) {
            self.default = uri;
        }
        written
    }

    /// Whether a prefix in scope means the namespace.
    fn has_prefix(&self, uri: UriId) -> bool {
        let hidden = |at: usize, prefix: &str| {
            self.prefixes[at + 1..].iter().any(|(other, _)| other == prefix)
        };
        let mut prefixes = self.prefixes.iter().enumerate();
        prefixes.any(|(at, (prefix, known))| *known == uri && !hidden(at, prefix))
    }

    fn attributes(
        &mut self,
        start: &Start<'_>,
        reader: &Reader<'_>,
        namespaces: bool,
        default: Option<UriId>,
    ) -> Result<(), Error> {
        if let Some(uri) = default {
            self.declaration("xmlns", reader.names().uri(uri))?;
        }
        for declaration in reader.declarations() {
            let prefix = declaration.prefix(start);
            let uri = reader.names().uri(declaration.uri);
            if !prefix.is_empty() {
                self.declaration(&format!("xmlns:{prefix}"), uri)?;
            } else if !namespaces {
                self.declaration("xmlns", uri)?;
            }
        }
        for attribute in reader.attributes() {
            let local = reader.names().name(attribute.name).local;
            let value = attribute.value(start);
            let prefix = attribute.prefix(start);
            if prefix.is_empty() {
                let codes = self.start_codes(attribute.name, local);
                self.attribute(local, &value, codes)?;
            } else {
                self.declaration(&format!("{prefix}:{local}"), &value)?;
            }
        }
        Ok(())
    }

    /// An attribute whose name has a prefix or is one.
    fn declaration(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let codes = self.table.map_or(&[][..], |table| table.start_codes(name));
        self.attribute(name, value, codes)
    }

    #[inline]
    fn start_codes(&mut self, name: NameId, local: &str) -> &'a [(String, Code)] {
        let Some(table) = self.table else { return &[] };
        let index = name.index();
        if index >= self.starts.len() {
            self.starts.resize(index + 1, None);
        }
        self.starts[index].get_or_insert_with(|| table.start_codes(local))
    }

    fn end(&mut self) {
        let Some(open) = self.open.pop() else { return };
        if self.body[open.tag] & global::HAS_CONTENT != 0 {
            self.body.push(global::END);
        }
        self.default = open.default;
        self.prefixes.truncate(open.prefixes);
    }

    pub(super) fn opaque(&mut self, data: &[u8]) -> Result<(), Error> {
        self.body.push(global::OPAQUE);
        let len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        self.body.extend_from_slice(encode_u32(len, &mut [0; 5]));
        self.body.extend_from_slice(data);
        Ok(())
    }

    fn content_text(&mut self, text: &str) -> Result<(), Error> {
        if !self.keep_white_space && text.bytes().all(|byte| b" \t\r\n".contains(&byte)) {
            return Ok(());
        }
        self.content();
        let kind = self.open.last().map_or(Kind::Any, |open| open.opaque);
        if let Some(data) = kind.encode(text) {
            return self.opaque(&data);
        }
        let Some(table) = self.table else { return self.strings.text(text, &mut self.body) };
        if let Some(code) = table.extension_code(text) {
            self.body.push(global::EXT_T_0);
            self.body.extend_from_slice(encode_u32(u32::from(code), &mut [0; 5]));
            return Ok(());
        }
        if table.variables { self.variables(text) } else { self.strings.text(text, &mut self.body) }
    }

    /// Text with `$(name)`, `$(name:escape)` and `$(name:unesc)` (WAP-191 §10.3).
    fn variables(&mut self, text: &str) -> Result<(), Error> {
        let mut rest = text;
        while let Some((before, inside)) = rest.split_once("$(") {
            let Some((name, behind)) = inside.split_once(')') else { break };
            let (name, escape) = name.split_once(':').unwrap_or((name, ""));
            let number = match escape {
                "escape" => 0,
                "unesc" => 1,
                "" => 2,
                _ => break,
            };
            // `$$` is a dollar sign, so this is text.
            let plain = !before.ends_with('$') && crate::xml::is_nc_name(name);
            if !plain {
                break;
            }
            if !before.is_empty() {
                self.strings.text(before, &mut self.body)?;
            }
            self.body.push(global::EXT_I_0 + number);
            self.body.extend_from_slice(name.as_bytes());
            self.body.push(0);
            rest = behind;
        }
        if rest.is_empty() { Ok(()) } else { self.strings.text(rest, &mut self.body) }
    }

    /// A processing instruction; the standard keeps them (§5.8.4.4).
    fn pi(&mut self, target: &str, data: &str) -> Result<(), Error> {
        self.content();
        self.body.push(global::PI);
        self.strings.literal(global::LITERAL, target, &mut self.body)?;
        if !data.is_empty() {
            self.strings.text(data, &mut self.body)?;
        }
        self.body.push(global::END);
        Ok(())
    }
}
