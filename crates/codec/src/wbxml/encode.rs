//! XML to tokens.

use proto::wbxml::{encode_u32, global};

use super::opaque::Kind;
use super::strings::Strings;
use super::table::{Code, TokenTable, by_name, by_root};
use super::{MAX_BINDINGS, NAME, Settings};
use crate::xml::{
    Doctype, Event, Kind as Token, Name, NameId, Scanner, Start, UriId, has_defaults, is_space,
    to_utf8,
};
use crate::{Error, Limits};

/// WBXML 1.3 (§5.4).
const VERSION: u8 = 3;
/// The number of a missing public identifier (§7.2).
const NO_PUBLIC_ID: u32 = 1;

/// Names that an [`Encoder`] keeps from one document to the next: more than any vocabulary has.
const KEPT_NAMES: usize = 1 << 12;

/// Room that is there at the begin: small documents need no more, and growing to it takes time.
const FIRST_ITEMS: usize = 32;
const FIRST_BYTES: usize = 1 << 16;

/// Makes a WBXML 1.3 document of an XML document. The same document gives the same bytes.
///
/// # Errors
/// What is not well-formed XML, with its offset; references to entities that a document type
/// declares, which are not expanded; names that the character set does not have; limits of depth,
/// names, namespace declarations and output.
pub fn encode(document: &[u8], settings: &Settings<'_>, limits: &Limits) -> Result<Vec<u8>, Error> {
    Encoder::new(settings, limits).encode(document)
}

/// Encodes documents one after the other and keeps what it knows of their names: most of the time
/// that a small document takes goes into names that the one before had too. What comes out is the
/// same as from [`encode`].
#[derive(Debug)]
pub struct Encoder<'a> {
    settings: Settings<'a>,
    limits: Limits,
    scanner: Scanner,
    body: Body<'a>,
}

impl<'a> Encoder<'a> {
    /// An encoder before its first document.
    #[must_use]
    pub fn new(settings: &Settings<'a>, limits: &Limits) -> Self {
        Self {
            settings: *settings,
            limits: *limits,
            scanner: Scanner::new(limits),
            body: Body::new(settings, limits),
        }
    }

    /// Makes a WBXML 1.3 document of an XML document.
    ///
    /// # Errors
    /// As [`encode`].
    pub fn encode(&mut self, document: &[u8]) -> Result<Vec<u8>, Error> {
        let document = to_utf8(document, &self.limits)?;
        let fresh = self.scanner.names().is_empty();
        let mut result = self.document(&document);
        if result.is_err() || self.scanner.names().len() > KEPT_NAMES {
            self.forget();
        }
        // Names of other documents do not count.
        if matches!(result, Err(Error::Limit { .. })) && !fresh {
            result = self.document(&document);
            self.forget();
        }
        result
    }

    fn forget(&mut self) {
        self.scanner = Scanner::new(&self.limits);
        self.body = Body::new(&self.settings, &self.limits);
    }

    fn document(&mut self, document: &str) -> Result<Vec<u8>, Error> {
        let Self { limits, scanner, body, .. } = self;
        scanner.clear();
        body.begin(document.len());
        let mut at = 0;
        loop {
            let rest = &document[at..];
            let kind = scanner.pull_whole(rest).map_err(|error| *error)?;
            match kind {
                Token::Start => body.start(&scanner.start_tag(rest), scanner)?,
                Token::End => body.end()?,
                Token::Plain => body.content_text(scanner.plain_text(rest))?,
                // §6.1: removed.
                Token::Comment | Token::Declaration => {}
                Token::Text | Token::EntityRef | Token::Pi | Token::Doctype => {
                    body.rare(scanner.event(kind, rest), at)?;
                }
                Token::Eof => return body.finish(),
            }
            at += scanner.used();
            if body.bytes.len() as u64 > limits.output_bytes {
                let what = format!("output over output_bytes {}", limits.output_bytes);
                return Err(Error::Limit { codec: NAME, what });
            }
        }
    }
}

/// What is known of a name as a tag.
#[derive(Clone, Copy, Debug)]
enum Known {
    Unknown,
    Literal,
    Token(Code),
}

/// An open element.
#[derive(Debug)]
struct Open {
    /// Where in the body its tag is: the bit for content is set later.
    tag: usize,
    opaque: Kind,
    /// The default namespace that a decoder has outside of it, and how many prefixes.
    default: UriId,
    prefixes: usize,
}

/// A prefix in scope: where its text ends, and what it means.
#[derive(Debug)]
struct Prefix {
    end: usize,
    uri: UriId,
}

/// The tokens of a document, and what their places depend on.
#[derive(Debug)]
pub(super) struct Body<'a> {
    pub(super) table: Option<&'a TokenTable>,
    pub(super) bytes: Vec<u8>,
    pub(super) strings: Strings,
    pub(super) attribute_page: u8,
    settings: Settings<'a>,
    limits: Limits,
    /// The document that this one is embedded in.
    outer: Option<Box<Body<'a>>>,
    chosen: bool,
    tag_page: u8,
    /// What is known of names in the table that was last chosen.
    tags: Vec<Known>,
    starts: Vec<Option<&'a [(String, Code)]>>,
    known_table: Option<&'a TokenTable>,
    open: Vec<Open>,
    /// The public identifier as text, among the strings.
    public: Option<u32>,
    /// The document type's public and system identifiers.
    doctype: (String, String),
    /// What a decoder has as the default namespace.
    default: UriId,
    /// Prefixes in scope, and their texts one behind the other.
    prefixes: Vec<Prefix>,
    prefix_texts: String,
    /// Room for a name with its prefix.
    name: String,
}

impl<'a> Body<'a> {
    fn new(settings: &Settings<'a>, limits: &Limits) -> Self {
        Self {
            table: None,
            bytes: Vec::new(),
            strings: Strings::new(settings, limits),
            attribute_page: 0,
            settings: *settings,
            limits: *limits,
            outer: None,
            chosen: false,
            tag_page: 0,
            tags: Vec::with_capacity(FIRST_ITEMS),
            starts: Vec::with_capacity(FIRST_ITEMS),
            known_table: None,
            open: Vec::with_capacity(FIRST_ITEMS),
            public: None,
            doctype: (String::new(), String::new()),
            default: UriId::NONE,
            prefixes: Vec::new(),
            prefix_texts: String::new(),
            name: String::new(),
        }
    }

    /// Makes ready for a document.
    fn begin(&mut self, document_len: usize) {
        self.table = None;
        self.outer = None;
        self.bytes.clear();
        self.bytes.reserve((document_len / 2).min(FIRST_BYTES));
        self.strings.clear();
        (self.tag_page, self.attribute_page) = (0, 0);
        self.open.clear();
        self.public = None;
        self.doctype.0.clear();
        self.doctype.1.clear();
        self.default = UriId::NONE;
        self.prefixes.clear();
        self.prefix_texts.clear();
        self.chosen = self.settings.table.is_some();
        if let Some(table) = self.settings.table {
            self.choose(table);
        }
    }

    fn choose(&mut self, table: &'a TokenTable) {
        self.table = Some(table);
        if !self.known_table.is_some_and(|known| std::ptr::eq(known, table)) {
            self.tags.clear();
            self.starts.clear();
            self.known_table = Some(table);
        }
    }

    /// Events that most documents have few of; `at` is for errors.
    fn rare(&mut self, event: Event<'_>, at: usize) -> Result<(), Error> {
        match event {
            Event::Text(text) => self.content_text(&text)?,
            Event::Pi { target, data } => self.pi(target, &data)?,
            // The infoset has these attributes, and without the subset nobody could supply them.
            Event::Doctype(doctype) if has_defaults(doctype.subset) => {
                let what = "default values of attributes in DOCTYPE, which WBXML does not keep: \
                            write the attributes out";
                return Err(Error::Malformed {
                    codec: NAME,
                    offset: at as u64,
                    what: what.to_owned(),
                });
            }
            Event::Doctype(doctype) => self.doctype(&doctype),
            Event::EntityRef(name) => {
                let what = format!("a reference to the entity '{name}', which is not expanded");
                return Err(Error::Malformed { codec: NAME, offset: at as u64, what });
            }
            _ => {}
        }
        Ok(())
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

    fn finish(&mut self) -> Result<Vec<u8>, Error> {
        if let Some(table) = self.table.filter(|table| table.by_text)
            && let Some(text) = table.public.first()
        {
            self.public = Some(self.strings.header(text)?);
        }
        let number = self.table.map_or(NO_PUBLIC_ID, |table| table.number);
        let charset = self.strings.charset().number();
        Ok(self.strings.finish(&self.bytes, self.public, |public, out| {
            out.push(VERSION);
            if public.is_some() {
                out.push(0);
            }
            out.extend_from_slice(encode_u32(public.unwrap_or(number), &mut [0; 5]));
            out.extend_from_slice(encode_u32(charset, &mut [0; 5]));
        }))
    }

    /// Notes that the innermost element has content.
    #[inline]
    fn content(&mut self) {
        if let Some(open) = self.open.last() {
            self.bytes[open.tag] |= global::HAS_CONTENT;
        }
    }

    fn start(&mut self, start: &Start<'_>, scanner: &Scanner) -> Result<(), Error> {
        self.content();
        if !self.chosen {
            let name = scanner.names().name(start.name);
            self.root(name.uri, name.local)?;
        }
        if let Some(table) = self.embedded(start, scanner) {
            self.embed(table);
        }
        let namespaces = self.table.is_some_and(TokenTable::has_namespaces);
        let code = self.tag_code(start, scanner, namespaces);
        let (outside, prefixes) = (self.default, self.prefixes.len());
        self.enter(start, scanner)?;
        let default = if namespaces {
            let uri = scanner.names().uri_id(start.name);
            self.declare(start, scanner, uri, matches!(code, Known::Token(_)))
        } else {
            None
        };
        let mut opaque = Kind::Any;
        let tag = match code {
            Known::Token(Code { page, code }) => {
                if page != self.tag_page {
                    self.tag_page = page;
                    self.bytes.extend([global::SWITCH_PAGE, page]);
                }
                let known = self.table.and_then(|table| table.tag(page, code));
                opaque = known.map_or(Kind::Any, |tag| tag.opaque);
                self.bytes.push(code);
                self.bytes.len() - 1
            }
            _ => {
                let tag = self.bytes.len();
                self.strings.literal(global::LITERAL, scanner.written(), &mut self.bytes)?;
                tag
            }
        };
        self.open.push(Open { tag, opaque, default: outside, prefixes });
        let before = self.bytes.len();
        self.attributes(start, scanner, namespaces, default)?;
        if self.bytes.len() != before {
            self.bytes[tag] |= global::HAS_ATTRIBUTES;
            self.bytes.push(global::END);
        }
        Ok(())
    }

    #[inline]
    fn tag_code(&mut self, start: &Start<'_>, scanner: &Scanner, namespaces: bool) -> Known {
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
        let found = if namespaces {
            let name = scanner.names().name(start.name);
            table.tag_code(name.uri, name.local)
        } else {
            table.bare_tag_code(scanner.written())
        };
        let known = found.map_or(Known::Literal, Known::Token);
        if cached {
            self.tags[index] = known;
        }
        known
    }

    /// Takes the prefixes that the tag declares into scope.
    fn enter(&mut self, start: &Start<'_>, scanner: &Scanner) -> Result<(), Error> {
        for declaration in scanner.declarations() {
            let prefix = declaration.prefix(start);
            if prefix.is_empty() {
                continue;
            }
            // They are searched one by one, here and by a decoder.
            if self.prefixes.len() >= MAX_BINDINGS {
                let what = format!("namespace declarations in scope over {MAX_BINDINGS}");
                return Err(Error::Limit { codec: NAME, what });
            }
            self.prefix_texts.push_str(prefix);
            self.prefixes.push(Prefix { end: self.prefix_texts.len(), uri: declaration.uri });
        }
        Ok(())
    }

    /// Follows what a decoder will know of namespaces, which writes those of tag pages by itself.
    /// Gives the default namespace that must be written with the element.
    fn declare(
        &mut self,
        start: &Start<'_>,
        scanner: &Scanner,
        uri: UriId,
        token: bool,
    ) -> Option<UriId> {
        let mut declared = scanner.declarations().iter();
        let declared = declared.find(|found| found.prefix(start).is_empty()).map(|found| found.uri);
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
        let hidden = |at: usize| {
            (at + 1..self.prefixes.len()).any(|later| self.prefix(later) == self.prefix(at))
        };
        let mut prefixes = self.prefixes.iter().enumerate();
        prefixes.any(|(at, known)| known.uri == uri && !hidden(at))
    }

    fn prefix(&self, at: usize) -> &str {
        let end_of = |at: usize| self.prefixes.get(at).map_or(0, |prefix| prefix.end);
        let begin = at.checked_sub(1).map_or(0, end_of);
        self.prefix_texts.get(begin..end_of(at)).unwrap_or("")
    }

    fn attributes(
        &mut self,
        start: &Start<'_>,
        scanner: &Scanner,
        namespaces: bool,
        default: Option<UriId>,
    ) -> Result<(), Error> {
        if let Some(uri) = default {
            self.declaration("xmlns", scanner.names().uri(uri))?;
        }
        for declaration in scanner.declarations() {
            let prefix = declaration.prefix(start);
            let uri = scanner.names().uri(declaration.uri);
            if !prefix.is_empty() {
                self.prefixed("xmlns", prefix, uri)?;
            } else if !namespaces {
                self.declaration("xmlns", uri)?;
            }
        }
        for attribute in scanner.attributes() {
            let local = scanner.names().name(attribute.name).local;
            let value = attribute.value(start);
            let prefix = attribute.prefix(start);
            if prefix.is_empty() {
                let codes = self.start_codes(attribute.name, local);
                self.attribute(local, &value, codes)?;
            } else {
                self.prefixed(prefix, local, &value)?;
            }
        }
        Ok(())
    }

    fn prefixed(&mut self, prefix: &str, local: &str, value: &str) -> Result<(), Error> {
        let mut name = std::mem::take(&mut self.name);
        name.clear();
        for part in [prefix, ":", local] {
            name.push_str(part);
        }
        let done = self.declaration(&name, value);
        self.name = name;
        done
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

    /// The table of a document of its own that the element begins: device information in SyncML
    /// is opaque data there (SyncML Device Information 1.1 §5). Prefixes from outside would be
    /// lost in it.
    fn embedded(&self, start: &Start<'_>, scanner: &Scanner) -> Option<&'static TokenTable> {
        self.open.last().filter(|open| open.opaque == Kind::Document)?;
        let Name { uri, local, .. } = scanner.names().name(start.name);
        let alone = self.outer.is_none() && self.prefixes.is_empty();
        let table = self.table.filter(|_| alone)?;
        match table.tag_code(uri, local) {
            Some(_) => None,
            None => by_name(uri, local, table.version()),
        }
    }

    fn embed(&mut self, table: &'static TokenTable) {
        let mut inner = Self::new(&self.settings, &self.limits);
        inner.default = self.default;
        inner.chosen = true;
        inner.choose(table);
        let outer = std::mem::replace(self, inner);
        self.outer = Some(Box::new(outer));
    }

    fn end(&mut self) -> Result<(), Error> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        if self.bytes[open.tag] & global::HAS_CONTENT != 0 {
            self.bytes.push(global::END);
        }
        self.default = open.default;
        self.prefixes.truncate(open.prefixes);
        self.prefix_texts.truncate(self.prefixes.last().map_or(0, |prefix| prefix.end));
        if self.open.is_empty()
            && let Some(outer) = self.outer.take()
        {
            let document = std::mem::replace(self, *outer).finish()?;
            self.opaque(&document)?;
        }
        Ok(())
    }

    pub(super) fn opaque(&mut self, data: &[u8]) -> Result<(), Error> {
        self.bytes.push(global::OPAQUE);
        let len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(encode_u32(len, &mut [0; 5]));
        self.bytes.extend_from_slice(data);
        Ok(())
    }

    fn content_text(&mut self, text: &str) -> Result<(), Error> {
        if !self.settings.keep_white_space && text.bytes().all(is_space) {
            return Ok(());
        }
        self.content();
        let kind = self.open.last().map_or(Kind::Any, |open| open.opaque);
        if let Some(data) = kind.encode(text) {
            return self.opaque(&data);
        }
        let Some(table) = self.table else { return self.strings.text(text, &mut self.bytes) };
        if let Some(code) = table.extension_code(text) {
            self.bytes.push(global::EXT_T_0);
            self.bytes.extend_from_slice(encode_u32(u32::from(code), &mut [0; 5]));
            return Ok(());
        }
        if table.variables {
            self.variables(text)
        } else {
            self.strings.text(text, &mut self.bytes)
        }
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
            let charset = self.strings.charset();
            let plain = !before.ends_with('$')
                && crate::xml::is_nc_name(name)
                && name.chars().all(|char| charset.has(char));
            if !plain {
                break;
            }
            if !before.is_empty() {
                self.strings.text(before, &mut self.bytes)?;
            }
            self.bytes.push(global::EXT_I_0 + number);
            self.strings.charset().terminated(name, &mut self.bytes);
            rest = behind;
        }
        if rest.is_empty() { Ok(()) } else { self.strings.text(rest, &mut self.bytes) }
    }

    /// A processing instruction; the standard keeps them (§5.8.4.4).
    fn pi(&mut self, target: &str, data: &str) -> Result<(), Error> {
        self.content();
        self.bytes.push(global::PI);
        self.strings.literal(global::LITERAL, target, &mut self.bytes)?;
        if !data.is_empty() {
            self.strings.text(data, &mut self.bytes)?;
        }
        self.bytes.push(global::END);
        Ok(())
    }
}
