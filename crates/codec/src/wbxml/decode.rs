//! Tokens to XML.

use std::borrow::Cow;

use proto::wbxml::{Header, PublicId, Token, Tokens, read};

use super::charset::{decoded, is_read};
use super::opaque::Kind;
use super::table::{Code, TokenTable, by_number, by_public};
use super::{MAX_BINDINGS, NAME, Settings};
use crate::xml::{Doctype, Writer, XML_URI, XMLNS_URI, escape, is_qname, is_text};
use crate::{Error, Limits};

/// Documents in opaque data of documents.
const MAX_NESTED: usize = 4;

/// Makes XML in UTF-8 of a WBXML document of version 1.0 to 1.3.
///
/// # Errors
/// What is not WBXML, with its offset; tokens that the table does not have; what cannot be XML,
/// such as a literal that is no name; character sets but UTF-8, UTF-16, US-ASCII and ISO-8859-1,
/// by number; limits of depth and output.
pub fn decode(document: &[u8], settings: &Settings<'_>, limits: &Limits) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    let place = Surroundings { default: String::new(), depth: 0, nested: 0 };
    document_into(document, settings.table, limits, &place, &mut out)?;
    Ok(out)
}

/// The number of a document's public identifier; `None` where it is a text, or this is no document.
#[must_use]
pub fn number_of(document: &[u8]) -> Option<u32> {
    match read(document).ok()?.0.public_id {
        PublicId::Known(number) => Some(number),
        PublicId::Text(_) => None,
    }
}

/// What surrounds a document that is inside of another.
struct Surroundings {
    /// The default namespace around it.
    default: String,
    /// Elements around it.
    depth: usize,
    /// Documents around it.
    nested: usize,
}

fn refused(error: proto::Error, offset: usize) -> Error {
    Error::Malformed { codec: NAME, offset: offset as u64, what: error.to_string() }
}

fn document_into(
    document: &[u8],
    table: Option<&TokenTable>,
    limits: &Limits,
    place: &Surroundings,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let (header, tokens) = read(document).map_err(|error| refused(error, 0))?;
    if !is_read(header.charset) {
        let what = format!("charset {}, which is not read", header.charset);
        return Err(Error::Malformed { codec: NAME, offset: 2, what });
    }
    let mut attempt = |table: Option<&TokenTable>| {
        let begin = out.len();
        let mut decoder = Decoder::new(header, table, limits, place, std::mem::take(out));
        let result = decoder.document(tokens.clone());
        *out = decoder.out;
        if result.is_err() {
            out.truncate(begin);
        }
        result
    };
    match (table, header.public_id) {
        (Some(_), _) => attempt(table),
        (None, PublicId::Text(index)) => {
            let public = header.string(index).map_err(|error| refused(error, 1))?;
            attempt(std::str::from_utf8(public).ok().and_then(by_public))
        }
        // The number says only that the type has none: what fits is taken.
        (None, PublicId::Known(1)) => {
            let mut refusal = match attempt(None) {
                Err(error @ Error::Malformed { .. }) => error,
                other => return other,
            };
            for table in by_number(1) {
                match attempt(Some(table)) {
                    Ok(()) => return Ok(()),
                    Err(error) => refusal = clearer(refusal, error),
                }
            }
            Err(refusal)
        }
        (None, PublicId::Known(number)) => attempt(by_number(number).next()),
    }
}

/// Of two refusals of a document the one that tells more of it: a limit, for then the table fits;
/// or else what came furthest, for a table that does not fit fails at its first token.
fn clearer(known: Error, other: Error) -> Error {
    match (&known, &other) {
        (Error::Limit { .. }, _) => known,
        (Error::Malformed { offset: known_at, .. }, Error::Malformed { offset, .. })
            if offset <= known_at =>
        {
            known
        }
        _ => other,
    }
}

/// An open element.
struct Open {
    /// Where in the output its name stands.
    name: (usize, usize),
    opaque: Kind,
    outside: Scope,
}

/// How many prefixes and defaults are in scope.
#[derive(Clone, Copy, Default)]
struct Scope {
    bindings: usize,
    defaults: usize,
}

/// A start tag before its attributes are known.
struct Pending<'a> {
    name: Cow<'a, str>,
    /// The number of the namespace in the table.
    uri: Option<u32>,
    opaque: Kind,
    content: bool,
    outside: Scope,
}

struct Decoder<'a> {
    header: Header<'a>,
    table: Option<&'a TokenTable>,
    limits: &'a Limits,
    place: &'a Surroundings,
    out: Vec<u8>,
    open: Vec<Open>,
    /// Prefixes and what they mean.
    bindings: Vec<(String, String)>,
    /// The default namespaces, the innermost last.
    defaults: Vec<String>,
    /// The attributes of the pending tag as text, and their names.
    attributes: Vec<u8>,
    names: Vec<Cow<'a, str>>,
    pending: Option<Pending<'a>>,
    /// The attribute being read, if any, and its value so far.
    attribute: Option<(Cow<'a, str>, Kind)>,
    value: String,
    /// Which indexes of the string table were checked to be names.
    checked: Vec<u64>,
    root: bool,
    at: usize,
}

impl<'a> Decoder<'a> {
    fn new(
        header: Header<'a>,
        table: Option<&'a TokenTable>,
        limits: &'a Limits,
        place: &'a Surroundings,
        out: Vec<u8>,
    ) -> Self {
        Self {
            header,
            table,
            limits,
            place,
            out,
            open: Vec::new(),
            bindings: Vec::new(),
            defaults: vec![place.default.clone()],
            attributes: Vec::new(),
            names: Vec::new(),
            pending: None,
            attribute: None,
            value: String::new(),
            checked: vec![0; header.strings.len().div_ceil(64)],
            root: false,
            at: 0,
        }
    }

    fn malformed(&self, what: impl Into<String>) -> Error {
        Error::Malformed { codec: NAME, offset: self.at as u64, what: what.into() }
    }

    fn document(&mut self, mut tokens: Tokens<'a>) -> Result<(), Error> {
        if self.place.nested == 0 {
            self.out.extend_from_slice(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        }
        loop {
            self.at = tokens.offset();
            let Some(token) = tokens.next() else { return Ok(()) };
            self.token(token.map_err(|error| refused(error, self.at))?)?;
            let bytes = (self.out.len() + self.attributes.len() + self.value.len()) as u64;
            if bytes > self.limits.output_bytes {
                let what = format!("output over output_bytes {}", self.limits.output_bytes);
                return Err(Error::Limit { codec: NAME, what });
            }
        }
    }

    fn token(&mut self, token: Token<'a>) -> Result<(), Error> {
        match token {
            Token::Tag { page, code, attributes, content } => {
                let tag = self.table.and_then(|table| table.tag(page, code));
                let tag = tag.ok_or_else(|| self.unknown("tag", Code { page, code }))?;
                let name = Cow::Borrowed(tag.name.as_str());
                let (uri, opaque) = (tag.uri, tag.opaque);
                let outside = Scope::default();
                self.tag(Pending { name, uri, opaque, content, outside }, attributes)
            }
            Token::LiteralTag { index, attributes, content } => {
                let name = self.name(index)?;
                let (uri, opaque) = (None, Kind::Any);
                let outside = Scope::default();
                self.tag(Pending { name, uri, opaque, content, outside }, attributes)
            }
            Token::AttributeStart { page, code } => {
                self.finish_attribute()?;
                let start = self.table.and_then(|table| table.start(page, code));
                let start = start.ok_or_else(|| self.unknown("attribute", Code { page, code }))?;
                self.value.push_str(&start.value);
                self.attribute = Some((Cow::Borrowed(start.name.as_str()), start.opaque));
                Ok(())
            }
            Token::LiteralAttribute { index } => {
                self.finish_attribute()?;
                self.attribute = Some((self.name(index)?, Kind::Any));
                Ok(())
            }
            Token::AttributeValue { page, code } => {
                let value = self.table.and_then(|table| table.value(page, code));
                let value = value.ok_or_else(|| self.unknown("value", Code { page, code }))?;
                self.value.push_str(value);
                Ok(())
            }
            Token::EndAttributes => {
                self.finish_attribute()?;
                self.open_pending()
            }
            Token::End => self.close(),
            Token::Pi => Ok(()),
            Token::EndPi => self.end_pi(),
            Token::Opaque(data) => self.opaque(data),
            _ => {
                let text = self.text_of(token)?;
                if !is_text(&text) {
                    return Err(self.malformed("a character that no document may have"));
                }
                self.text(&text);
                Ok(())
            }
        }
    }

    /// Text of a content token.
    fn text_of(&self, token: Token<'a>) -> Result<Cow<'a, str>, Error> {
        match token {
            Token::String(text) => self.decoded(text),
            Token::TableString { index } => self.string(index),
            Token::Entity(code) => match char::from_u32(code) {
                Some(char) => Ok(Cow::Owned(char.to_string())),
                None => Err(self.malformed(format!("entity {code}, which is no character"))),
            },
            Token::ExtensionString { number, text } => {
                let text = self.decoded(text)?;
                self.variable(number, &text)
            }
            Token::ExtensionIndex { number, value } => {
                let known = self.table.and_then(|table| table.extension(value));
                match (known, self.table.is_some_and(TokenTable::has_extensions)) {
                    (Some(text), _) => Ok(Cow::Borrowed(text)),
                    (None, true) => Err(self.malformed(format!("extension value {value}"))),
                    (None, false) => self.variable(number, &self.string(value)?),
                }
            }
            _ => Err(self.malformed("an extension that the table does not have")),
        }
    }

    /// `$(name)` and how it is escaped, the extensions of WML (WAP-191 §14.4).
    fn variable(&self, number: u8, name: &str) -> Result<Cow<'a, str>, Error> {
        if !self.table.is_some_and(|table| table.variables) {
            return Err(self.malformed("an extension that the table does not have"));
        }
        let escape = [":escape", ":unesc", ""].get(usize::from(number)).copied().unwrap_or("");
        Ok(Cow::Owned(format!("$({name}{escape})")))
    }

    #[cold]
    fn unknown(&self, what: &str, Code { page, code }: Code) -> Error {
        let where_ = match (self.table, self.header.public_id) {
            (Some(table), _) => format!("the token table {}", table.name),
            (None, PublicId::Known(number)) => format!("any table for public identifier {number}"),
            (None, PublicId::Text(_)) => "any table for the public identifier".to_owned(),
        };
        self.malformed(format!("{what} 0x{code:02x} of page {page} is not in {where_}"))
    }

    /// Bytes in the document's character set.
    fn decoded(&self, bytes: &'a [u8]) -> Result<Cow<'a, str>, Error> {
        decoded(self.header.charset, bytes)
            .ok_or_else(|| self.malformed("text that is not in the document's character set"))
    }

    fn string(&self, index: u32) -> Result<Cow<'a, str>, Error> {
        let bytes = self.header.string(index).map_err(|error| refused(error, self.at))?;
        self.decoded(bytes)
    }

    /// A literal, which must be a name: it is written as it is.
    fn name(&mut self, index: u32) -> Result<Cow<'a, str>, Error> {
        let name = self.string(index)?;
        let (word, bit) = (index as usize / 64, 1 << (index % 64));
        let known = self.checked.get(word).is_some_and(|bits| bits & bit != 0);
        if !known && !is_qname(&name) {
            return Err(self.malformed("a literal that is no name"));
        }
        if let Some(bits) = self.checked.get_mut(word) {
            *bits |= bit;
        }
        Ok(name)
    }

    fn tag(&mut self, pending: Pending<'a>, attributes: bool) -> Result<(), Error> {
        if self.open.len() + self.place.depth >= self.limits.depth {
            let what = format!("elements over depth {}", self.limits.depth);
            return Err(Error::Limit { codec: NAME, what });
        }
        self.pending = Some(Pending { outside: self.scope(), ..pending });
        if attributes { Ok(()) } else { self.open_pending() }
    }

    /// Takes the attribute read so far into the tag.
    fn finish_attribute(&mut self) -> Result<(), Error> {
        let Some((name, _)) = self.attribute.take() else { return Ok(()) };
        if !is_text(&self.value) {
            return Err(self.malformed("a character that no document may have"));
        }
        self.attributes.push(b' ');
        self.attributes.extend_from_slice(name.as_bytes());
        self.attributes.extend_from_slice(b"=\"");
        escape(&self.value, true, &mut self.attributes);
        self.attributes.push(b'"');
        let prefix = match name.strip_prefix("xmlns:") {
            None if name == "xmlns" => Some(""),
            prefix => prefix,
        };
        if let Some(prefix) = prefix {
            self.bind(prefix.to_owned(), self.value.clone())?;
        }
        self.value.clear();
        self.names.push(name);
        Ok(())
    }

    fn scope(&self) -> Scope {
        Scope { bindings: self.bindings.len(), defaults: self.defaults.len() }
    }

    fn leave(&mut self, outside: Scope) {
        self.bindings.truncate(outside.bindings);
        self.defaults.truncate(outside.defaults);
    }

    fn bind(&mut self, prefix: String, uri: String) -> Result<(), Error> {
        if prefix.is_empty() {
            if uri == XMLNS_URI || uri == XML_URI {
                return Err(self.malformed("a reserved namespace is declared as the default"));
            }
            // A second one in the same tag is refused with its name.
            let first = self.pending.as_ref().map(|pending| pending.outside.defaults);
            if first.is_none_or(|defaults| self.defaults.len() == defaults) {
                self.defaults.push(uri);
            }
            return Ok(());
        }
        if self.bindings.len() >= MAX_BINDINGS {
            let what = format!("namespace declarations in scope over {MAX_BINDINGS}");
            return Err(Error::Limit { codec: NAME, what });
        }
        let xml = prefix == "xml";
        if prefix == "xmlns" || uri == XMLNS_URI || xml != (uri == XML_URI) {
            return Err(self.malformed("a reserved prefix or namespace is declared"));
        }
        if uri.is_empty() {
            return Err(self.malformed("a prefix is declared as of no namespace"));
        }
        self.bindings.push((prefix, uri));
        Ok(())
    }

    fn meaning(&self, prefix: &str) -> Option<&str> {
        if prefix.is_empty() {
            return self.defaults.last().map(String::as_str);
        }
        let found = self.bindings.iter().rev().find(|(known, _)| known == prefix);
        found.map(|(_, uri)| uri.as_str())
    }

    /// Names must differ when their prefixes, which must be declared, are resolved.
    fn check_names(&self, element: &str) -> Result<(), Error> {
        let mut names = Vec::with_capacity(self.names.len());
        for name in std::iter::once(element).chain(self.names.iter().map(AsRef::as_ref)) {
            let (prefix, local) = name.split_once(':').unwrap_or(("", name));
            let uri = match prefix {
                "" => Some(""),
                "xml" => Some(XML_URI),
                "xmlns" if !names.is_empty() => Some(XMLNS_URI),
                prefix => self.meaning(prefix),
            };
            let Some(uri) = uri else {
                return Err(self.malformed(format!("the prefix '{prefix}' is not declared")));
            };
            names.push((uri, local));
        }
        let attributes = &mut names[1..];
        attributes.sort_unstable();
        if attributes.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(self.malformed("an attribute is given twice"));
        }
        Ok(())
    }

    /// Writes the start tag whose attributes are known now.
    fn open_pending(&mut self) -> Result<(), Error> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        let outside = pending.outside;
        let declares = self.names.iter().any(|name| name == "xmlns");
        if !self.names.is_empty() || pending.name.contains(':') {
            self.check_names(&pending.name)?;
            self.names.clear();
        }
        if !std::mem::replace(&mut self.root, true) && self.place.nested == 0 {
            self.doctype(&pending.name);
        }
        self.out.push(b'<');
        let begin = self.out.len();
        let mut derived = None;
        if let (Some(uri), Some(table)) = (pending.uri, self.table) {
            let uri = table.uri(uri);
            if self.meaning("") != Some(uri) {
                match self.prefix_of(uri) {
                    Some(prefix) => {
                        self.out.extend_from_slice(prefix.as_bytes());
                        self.out.push(b':');
                    }
                    None if declares => {
                        return Err(self.malformed("a default namespace that is not the tag's"));
                    }
                    None => derived = Some(uri),
                }
            }
        }
        self.out.extend_from_slice(pending.name.as_bytes());
        let name = (begin, self.out.len() - begin);
        if let Some(uri) = derived {
            self.out.extend_from_slice(b" xmlns=\"");
            escape(uri, true, &mut self.out);
            self.out.push(b'"');
            self.bind(String::new(), uri.to_owned())?;
        }
        self.out.append(&mut self.attributes);
        if pending.content {
            self.out.push(b'>');
            self.open.push(Open { name, opaque: pending.opaque, outside });
        } else {
            self.out.extend_from_slice(b"/>");
            self.leave(outside);
        }
        Ok(())
    }

    /// The innermost prefix that means the namespace, and is not hidden.
    fn prefix_of(&self, uri: &str) -> Option<String> {
        let named = self.bindings.iter().rev().filter(|(_, known)| known == uri);
        let mut found = named.filter(|(prefix, _)| self.meaning(prefix) == Some(uri));
        found.next().map(|(prefix, _)| prefix.clone())
    }

    fn doctype(&mut self, root: &str) {
        let text = match self.header.public_id {
            PublicId::Text(index) => self.string(index).ok(),
            PublicId::Known(_) => None,
        };
        let table = self.table;
        let of_table = table.and_then(|table| table.public.first()).map(String::as_str);
        let public = text.as_deref().filter(|text| !text.contains('"')).or(of_table);
        let system = table.map_or("", |table| table.system.as_str());
        let public = public.unwrap_or("");
        if public.is_empty() && system.is_empty() {
            return;
        }
        let mut writer = Writer::onto(std::mem::take(&mut self.out));
        writer.doctype(&Doctype { name: root, public, system, subset: "" });
        self.out = writer.finish();
        self.out.push(b'\n');
    }

    fn close(&mut self) -> Result<(), Error> {
        let Some(open) = self.open.pop() else { return Err(self.malformed("an end too much")) };
        self.out.extend_from_slice(b"</");
        self.out.extend_from_within(open.name.0..open.name.0 + open.name.1);
        self.out.push(b'>');
        self.leave(open.outside);
        Ok(())
    }

    fn text(&mut self, text: &str) {
        if self.attribute.is_some() {
            self.value.push_str(text);
        } else {
            escape(text, false, &mut self.out);
        }
    }

    fn opaque(&mut self, data: &'a [u8]) -> Result<(), Error> {
        let kind = match &self.attribute {
            Some((_, kind)) => *kind,
            None => self.open.last().map_or(Kind::Any, |open| open.opaque),
        };
        if kind == Kind::Document && self.attribute.is_none() && self.nested(data)? {
            return Ok(());
        }
        let text = kind.decode(data).map_err(|what| self.malformed(what))?;
        self.text(&text);
        Ok(())
    }

    /// Whether the data is a document of its own, which is then written here.
    fn nested(&mut self, data: &'a [u8]) -> Result<bool, Error> {
        if self.place.nested >= MAX_NESTED || !matches!(data.first(), Some(0..=3)) {
            return Ok(false);
        }
        let place = Surroundings {
            default: self.meaning("").unwrap_or("").to_owned(),
            depth: self.place.depth + self.open.len(),
            nested: self.place.nested + 1,
        };
        match document_into(data, None, self.limits, &place, &mut self.out) {
            Ok(()) => Ok(true),
            Err(error @ Error::Limit { .. }) => Err(error),
            Err(_) => Ok(false),
        }
    }

    fn end_pi(&mut self) -> Result<(), Error> {
        let Some((target, _)) = self.attribute.take() else { return Ok(()) };
        let data = std::mem::take(&mut self.value);
        let colon = target.contains(':') || target.eq_ignore_ascii_case("xml");
        if colon || data.contains("?>") || !is_text(&data) {
            return Err(self.malformed("an instruction that XML cannot have"));
        }
        for part in ["<?", &target, if data.is_empty() { "" } else { " " }, &data, "?>"] {
            self.out.extend_from_slice(part.as_bytes());
        }
        Ok(())
    }
}
