//! Slices of a document to events.

use std::borrow::Cow;

use memchr::{memchr, memmem};

use super::chars::{forbidden, instruction_end, is_nc_name, name_end, space_end, text_end};
use super::doctype::{Entities, parse, parsed};
use super::ender::Ender;
use super::guess::Shape;
use super::names::{FIRST_ENTRIES, Interner, NameId, Names, UriId};
use super::tag::{Attribute, Declaration, QName, UNBOUND};
use super::text::{Reference, content, line_ends};
use super::{Event, NAME, Start, XML_URI, XMLNS_URI, XmlDeclaration};
use crate::{Error, Limits};

/// Characters are checked this many bytes at a time, while they are in the processor's cache.
const WINDOW_BYTES: usize = 16 << 10;
/// Tokens up to here are read again when more comes, without asking where they end.
const SHORT_BYTES: usize = 64;
/// There is room for so many open elements, and attributes, from the first on.
const FIRST_OPEN: usize = 16;
const CDATA: &str = "<![CDATA[";

/// Where in a document the next token stands (XML 1.0, productions 1 and 22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DocumentState {
    Start,
    Prolog,
    /// A document type was there.
    PrologBehindDoctype,
    Content,
    Epilog,
}

/// What a token is. Events are made of it at the last moment: handing them through calls would
/// copy them each time, which costs more than finding them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Declaration,
    Doctype,
    Start,
    End,
    /// Character data that stands for itself.
    Plain,
    /// Character data with references, sections or carriage returns.
    Text,
    EntityRef,
    Comment,
    Pi,
    Eof,
}

/// The token last found; offsets are in the input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) begin: usize,
    /// The end of a start tag's prefix, or of an instruction's target.
    pub(super) middle: usize,
    pub(super) end: usize,
    pub(super) name: NameId,
    /// Bytes of the input up to the next token.
    pub(super) used: usize,
}

/// An error inside of the scanner: as small as a word, so that results stay in registers.
pub(super) type Fail = Box<Error>;

/// Which token was found; `None` if its end is not there.
pub(super) type Found = Result<Option<Kind>, Fail>;

/// An open element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) qname: u32,
    pub(super) name: NameId,
    /// How many bindings were replaced outside of it.
    pub(super) undo: usize,
}

/// A tokenizer that is handed slices: it holds the open elements, what prefixes mean, and names.
///
/// It checks well-formedness with namespaces; see the module for what it leaves out. Depth is
/// bounded by [`Limits::depth`], names and attributes by [`Limits::table_bytes`], a single token
/// that is incomplete by [`Limits::message_bytes`].
#[derive(Debug)]
pub struct Scanner {
    pub(super) limits: Limits,
    /// Names as written, and what is known of each.
    pub(super) qnames: Interner,
    pub(super) qname: Vec<QName>,
    pub(super) shapes: Vec<Shape>,
    pub(super) names: Names,
    pub(super) prefixes: Interner,
    /// For each prefix the namespace that it means now.
    pub(super) bound: Vec<u32>,
    /// What prefixes meant outside of the elements that declare them.
    pub(super) undo: Vec<(u32, u32)>,
    pub(super) open: Vec<Open>,
    pub(super) attributes: Vec<Attribute>,
    pub(super) declarations: Vec<Declaration>,
    /// Counts start tags; the two tables hold which one last had the attribute or declaration.
    pub(super) serial: u64,
    pub(super) seen: Vec<u64>,
    pub(super) declared: Vec<u64>,
    pub(super) token: Token,
    /// The name of the last start or end.
    pub(super) written: u32,
    /// Whether that was an end.
    pub(super) ended: bool,
    /// Whether attributes of this tag have to be looked at again once it was read.
    pub(super) late: bool,
    /// The last start tag was an empty-element tag: its end is due.
    pub(super) empty: bool,
    place: DocumentState,
    /// The two bytes behind the last character data.
    behind_text: [u8; 2],
    /// Bytes used by the events so far.
    offset: u64,
    /// Bytes of the input that make no event: white space outside the root, empty sections.
    lead: usize,
    /// Bytes of the input whose characters were checked.
    checked: usize,
    /// Looks for the end of a token that was incomplete.
    ender: Option<Ender>,
    entities: Entities,
}

impl Scanner {
    /// A scanner before its first document.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        let mut scanner = Self {
            limits: *limits,
            qnames: Interner::of(FIRST_ENTRIES),
            qname: Vec::with_capacity(FIRST_ENTRIES),
            shapes: Vec::with_capacity(FIRST_ENTRIES),
            names: Names::new(),
            prefixes: Interner::few(),
            bound: Vec::with_capacity(FIRST_OPEN),
            undo: Vec::new(),
            open: Vec::with_capacity(FIRST_OPEN),
            attributes: Vec::with_capacity(FIRST_OPEN),
            declarations: Vec::new(),
            serial: 0,
            seen: Vec::with_capacity(FIRST_ENTRIES),
            declared: Vec::with_capacity(FIRST_OPEN),
            token: Token { begin: 0, middle: 0, end: 0, name: NameId(0), used: 0 },
            written: 0,
            ended: false,
            late: false,
            empty: false,
            place: DocumentState::Start,
            behind_text: [0; 2],
            offset: 0,
            lead: 0,
            checked: 0,
            ender: None,
            entities: Entities::None,
        };
        // Six short texts: they cannot fail to get their numbers.
        for (number, (prefix, uri)) in
            [("", ""), ("xml", XML_URI), ("xmlns", XMLNS_URI)].into_iter().enumerate()
        {
            let known = scanner.names.uris.intern(0, uri).and(scanner.prefixes.intern(0, prefix));
            debug_assert_eq!(known.map(|id| id as usize), Ok(number));
        }
        scanner.unbind();
        scanner
    }

    fn unbind(&mut self) {
        self.bound.clear();
        // The prefix `xmlns` is bound, but no element or attribute may have it.
        self.bound.extend([0, 1, UNBOUND]);
        self.bound.resize(self.prefixes.len(), UNBOUND);
        self.declared.resize(self.prefixes.len(), 0);
    }

    /// Makes ready for another document. Names keep their numbers, and count as tables still.
    pub fn clear(&mut self) {
        self.open.clear();
        self.undo.clear();
        self.attributes.clear();
        self.declarations.clear();
        self.unbind();
        self.empty = false;
        self.place = DocumentState::Start;
        (self.offset, self.lead, self.checked) = (0, 0, 0);
        self.ender = None;
        self.entities = Entities::None;
    }

    /// All names met so far.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The attributes of the last start tag in their order, declarations apart.
    #[must_use]
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// The namespace declarations of the last start tag in their order.
    #[must_use]
    pub fn declarations(&self) -> &[Declaration] {
        &self.declarations
    }

    /// The name of the last start or end as written, with its prefix.
    #[must_use]
    pub fn written(&self) -> &str {
        self.qnames.get(self.written)
    }

    /// Whether the text just found is followed by an end tag, or by a start tag; `None` where
    /// something else comes first and more text may follow.
    #[inline]
    pub(crate) fn text_ends_element(&self) -> Option<bool> {
        match self.behind_text {
            [b'<', b'/'] => Some(true),
            [b'<', b'?' | b'!'] => None,
            [b'<', _] => Some(false),
            _ => None,
        }
    }

    /// The namespace that a prefix, empty for the default, means inside the last start tag;
    /// `None` if it is not declared.
    #[must_use]
    pub fn namespace(&self, prefix: &str) -> Option<UriId> {
        let known = self.prefixes.find(0, prefix)?;
        let uri = self.bound.get(known as usize).filter(|uri| **uri != UNBOUND)?;
        Some(UriId(*uri))
    }

    /// The declarations that hold inside the last start tag, the innermost first, with what their
    /// prefixes mean now: those declared again inside come twice.
    pub(crate) fn scope(&self) -> impl ExactSizeIterator<Item = (&str, UriId)> {
        let uri = |prefix| self.bound.get(prefix as usize).copied().unwrap_or(UNBOUND);
        self.undo
            .iter()
            .rev()
            .map(move |&(prefix, _)| (self.prefixes.get(prefix), UriId(uri(prefix))))
    }

    /// How many elements are open.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// Bytes that all events so far used.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next event of `input`, which begins where the last event ended, and the bytes that it
    /// used. `None` says that `input` holds no whole event and must be given again with more
    /// behind it; that does not happen when `ended` says that there is no more.
    ///
    /// # Errors
    /// What is not well-formed, with its offset in the document, and limits. Behind an error the
    /// scanner must be cleared.
    #[inline(always)]
    pub fn next<'a>(
        &mut self,
        input: &'a str,
        ended: bool,
    ) -> Result<Option<(Event<'a>, usize)>, Error> {
        match self.advance(input, ended) {
            Ok(Some(kind)) => Ok(Some((self.event(kind, input), self.token.used))),
            Ok(None) => Ok(None),
            Err(error) => Err(*error),
        }
    }

    /// The kind of the next token and the bytes that it used, for whoever takes the event from the
    /// scanner without moving it; otherwise as [`Self::next`].
    #[inline(always)]
    pub(crate) fn pull(
        &mut self,
        input: &str,
        ended: bool,
    ) -> Result<Option<(Kind, usize)>, Error> {
        match self.advance(input, ended) {
            Ok(found) => Ok(found.map(|kind| (kind, self.token.used))),
            Err(error) => Err(*error),
        }
    }

    /// The kind of the next token of an input that is whole; [`Self::used`] are its bytes. Nearly
    /// all tokens are tags and text of the content, which take the short way.
    #[inline(always)]
    pub(crate) fn pull_whole(&mut self, input: &str) -> Result<Kind, Box<Error>> {
        if self.place == DocumentState::Content && !self.empty && self.lead == 0 {
            let found = match input.as_bytes() {
                [] | [b'<', b'!' | b'?', ..] => None,
                [b'<', b'/', ..] => self.end(input, 0)?,
                [b'<', ..] => self.start(input, 0)?,
                _ => self.text(input, 0)?,
            };
            let Token { begin, end, used, .. } = self.token;
            let is_event = |kind: &Kind| *kind != Kind::Text || !is_empty(&input[begin..end]);
            if let Some(kind) = found.filter(is_event) {
                self.settle(input, used)?;
                return Ok(kind);
            }
        }
        Ok(self.advance(input, true)?.unwrap_or(Kind::Eof))
    }

    /// Goes on behind a token, whose characters are checked.
    #[inline(always)]
    fn settle(&mut self, input: &str, used: usize) -> Result<(), Fail> {
        if used > self.checked {
            self.check(input, used)?;
        }
        self.checked -= used;
        self.offset += used as u64;
        Ok(())
    }

    /// Bytes of the input up to the next token.
    #[inline(always)]
    pub(crate) fn used(&self) -> usize {
        self.token.used
    }

    /// The name of the start tag just found.
    #[inline(always)]
    pub(crate) fn start_name(&self) -> NameId {
        self.token.name
    }

    /// The start tag just found.
    #[inline(always)]
    pub(crate) fn start_tag<'a>(&self, input: &'a str) -> Start<'a> {
        let Token { begin, middle, end, name, .. } = self.token;
        let prefix = if middle == begin { "" } else { &input[begin + 1..middle] };
        Start { name, prefix, tag: &input[begin..end] }
    }

    /// The character data just found, which stands for itself.
    #[inline(always)]
    pub(crate) fn plain_text<'a>(&self, input: &'a str) -> &'a str {
        &input[self.token.begin..self.token.end]
    }

    /// Makes the event of the token just found. Always in line: see [`Kind`].
    #[inline(always)]
    pub(crate) fn event<'a>(&self, kind: Kind, input: &'a str) -> Event<'a> {
        let Token { begin, middle, end, name, .. } = self.token;
        match kind {
            Kind::Plain => Event::Text(Cow::Borrowed(self.plain_text(input))),
            Kind::End => Event::End { name },
            Kind::Start => Event::Start(self.start_tag(input)),
            Kind::Eof => Event::Eof,
            _ => self.rare(kind, middle.wrapping_sub(begin), &input[begin..end]),
        }
    }

    /// Events that most documents have few of.
    fn rare<'a>(&self, kind: Kind, target_len: usize, span: &'a str) -> Event<'a> {
        match kind {
            Kind::Text => Event::Text(Cow::Owned(content(span))),
            Kind::EntityRef => Event::EntityRef(span),
            Kind::Comment => Event::Comment(line_ends(span)),
            Kind::Pi => {
                let (target, data) = span.split_at(target_len);
                let data = &data[space_end(data.as_bytes(), 0)..];
                Event::Pi { target, data: line_ends(data) }
            }
            Kind::Doctype => {
                parsed(span).map_or(Event::Eof, |doctype| Event::Doctype(Box::new(doctype)))
            }
            Kind::Declaration => declaration(span)
                .map_or(Event::Eof, |declared| Event::Declaration(Box::new(declared))),
            Kind::Plain | Kind::End | Kind::Start | Kind::Eof => Event::Eof,
        }
    }

    /// Finds the next token.
    pub(super) fn advance(&mut self, input: &str, ended: bool) -> Found {
        if self.empty {
            self.empty = false;
            (self.token.begin, self.token.end, self.token.used) = (0, 0, 0);
            self.close();
            return Ok(Some(Kind::End));
        }
        if self.ender.is_some() && !ended && !self.may_be_whole(input) {
            return Ok(None);
        }
        loop {
            let found = match self.place {
                DocumentState::Content => self.content(input, self.lead)?,
                _ => self.outside(input, ended)?,
            };
            let Some(kind) = found else { return self.incomplete(input, ended).map(|()| None) };
            let Token { used, begin, end, .. } = self.token;
            if kind == Kind::Text && is_empty(&input[begin..end]) {
                self.lead = used;
                self.ender = None;
                continue;
            }
            self.settle(input, used)?;
            self.lead = 0;
            self.ender = None;
            return Ok(Some(kind));
        }
    }

    /// Whether the token that was incomplete may be whole by now.
    fn may_be_whole(&mut self, input: &str) -> bool {
        let rest = input.as_bytes().get(self.lead..).unwrap_or(&[]);
        let whole = |ender: &mut Ender| rest.len() <= SHORT_BYTES || ender.end(rest).is_some();
        self.ender.as_mut().is_none_or(whole)
    }

    #[cold]
    fn incomplete(&mut self, input: &str, ended: bool) -> Result<(), Fail> {
        if ended {
            let what = match self.place {
                DocumentState::Content => "the document ends inside an element or token",
                _ => "the document ends without an element or inside a token",
            };
            return Err(self.malformed(input.len(), what));
        }
        if input.len() > self.limits.message_bytes {
            let what = format!("a token over message_bytes {}", self.limits.message_bytes);
            return Err(self.limit(what));
        }
        self.ender.get_or_insert_default();
        Ok(())
    }

    #[cold]
    pub(super) fn malformed(&self, at: usize, what: impl Into<String>) -> Fail {
        let offset = self.offset + at as u64;
        Box::new(Error::Malformed { codec: NAME, offset, what: what.into() })
    }

    #[cold]
    pub(super) fn limit(&self, what: String) -> Fail {
        Box::new(Error::Limit { codec: NAME, what })
    }

    /// Names are bounded together.
    pub(super) fn check_tables(&self) -> Result<(), Fail> {
        if self.table_bytes() > self.limits.table_bytes {
            return Err(self.limit(format!("names over table_bytes {}", self.limits.table_bytes)));
        }
        Ok(())
    }

    /// Bytes that the names of all documents take.
    pub(crate) fn table_bytes(&self) -> usize {
        self.qnames.bytes()
            + self.qname.len() * (size_of::<QName>() + size_of::<Shape>())
            + self.names.names.bytes()
            + self.names.uris.bytes()
            + self.prefixes.bytes()
    }

    pub(super) fn closed(&mut self, root: bool) {
        if root {
            self.place = DocumentState::Epilog;
        }
    }

    /// Checks characters up to `used` and some behind, where the cache is warm.
    fn check(&mut self, input: &str, used: usize) -> Result<(), Fail> {
        while self.checked < used {
            let mut end = input.len().min(self.checked + WINDOW_BYTES);
            while !input.is_char_boundary(end) {
                end += 1;
            }
            if let Some(at) = forbidden(&input.as_bytes()[self.checked..end]) {
                let what = "a character that no document may have";
                return Err(self.malformed(self.checked + at, what));
            }
            self.checked = end;
        }
        Ok(())
    }

    /// A token before the root element or behind it.
    fn outside(&mut self, input: &str, ended: bool) -> Found {
        let bytes = input.as_bytes();
        if self.place == DocumentState::Start && self.offset == 0 && self.lead == 0 {
            self.lead = if input.starts_with('\u{feff}') { 3 } else { 0 };
        } else {
            self.lead = space_end(bytes, self.lead);
        }
        let from = self.lead;
        if self.place == DocumentState::Start {
            if !ended && bytes.len() < from + 6 {
                return Ok(None);
            }
            self.place = DocumentState::Prolog;
            if input[from..].starts_with("<?xml")
                && bytes.get(from + 5).is_some_and(|byte| super::chars::is_space(*byte))
            {
                return self.declaration(input, from);
            }
            self.lead = space_end(bytes, from);
            return self.outside(input, ended);
        }
        match (bytes.get(from), bytes.get(from + 1)) {
            (None, _) if ended && self.place == DocumentState::Epilog => {
                Ok(Some(self.found(Kind::Eof, from, from, from)))
            }
            (None, _) | (Some(b'<'), None) => Ok(None),
            (Some(b'<'), Some(b'?')) => self.pi(input, from),
            (Some(b'<'), Some(b'!')) => self.markup(input, from),
            (Some(b'<'), Some(b'/')) => Err(self.malformed(from, "an end tag without its start")),
            (Some(b'<'), Some(_)) if self.place == DocumentState::Epilog => {
                Err(self.malformed(from, "a second root element"))
            }
            (Some(b'<'), Some(_)) => {
                let start = self.start(input, from)?;
                if start.is_some() {
                    self.place = DocumentState::Content;
                }
                Ok(start)
            }
            (Some(_), _) => Err(self.malformed(from, "text outside the root element")),
        }
    }

    /// A comment or the document type.
    fn markup(&mut self, input: &str, from: usize) -> Found {
        let rest = &input[from..];
        if rest.starts_with("<!--") {
            return self.comment(input, from);
        }
        if "<!--".starts_with(rest) {
            return Ok(None);
        }
        if self.place != DocumentState::Prolog {
            return Err(self.malformed(from, "'<!' where neither comment nor section may begin"));
        }
        match parse(rest) {
            None => Ok(None),
            Some(Err((at, what))) => Err(self.malformed(from + at, what)),
            Some(Ok((doctype, entities, len))) => {
                if doctype.subset.len() > self.limits.table_bytes {
                    return Err(self.limit("an internal subset over table_bytes".to_owned()));
                }
                self.place = DocumentState::PrologBehindDoctype;
                self.entities = entities;
                let end = from + len;
                Ok(Some(self.found(Kind::Doctype, from, end, end)))
            }
        }
    }

    /// A token inside the root element.
    #[inline]
    fn content(&mut self, input: &str, from: usize) -> Found {
        let bytes = input.as_bytes();
        match (bytes.get(from), bytes.get(from + 1)) {
            (None, _) | (Some(b'<'), None) => Ok(None),
            (Some(b'<'), Some(b'/')) => self.end(input, from),
            (Some(b'<'), Some(b'?')) => self.pi(input, from),
            (Some(b'<'), Some(b'!')) => {
                let rest = &input[from..];
                if CDATA.starts_with(rest) {
                    return Ok(None);
                }
                if rest.starts_with(CDATA) {
                    self.text(input, from)
                } else {
                    self.markup(input, from)
                }
            }
            (Some(b'<'), Some(_)) => self.start(input, from),
            _ => self.text(input, from),
        }
    }

    /// Character data with its references and sections, or a reference to an entity.
    #[inline]
    fn text(&mut self, input: &str, from: usize) -> Found {
        let bytes = input.as_bytes();
        let mut plain = true;
        let (mut begin, mut at) = (from, from);
        loop {
            at = text_end(bytes, at);
            match bytes.get(at) {
                None => return Ok(None),
                Some(b'<') => {
                    if !matches!(bytes.get(at + 1), None | Some(b'!')) {
                        break;
                    }
                    let rest = &input[at..];
                    if CDATA.starts_with(rest) {
                        return Ok(None);
                    }
                    let Some(section) = rest.strip_prefix(CDATA) else { break };
                    let Some(len) = memmem::find(section.as_bytes(), b"]]>") else {
                        return Ok(None);
                    };
                    at += CDATA.len() + len + 3;
                    plain = false;
                }
                Some(b'&') => match self.reference(input, at)? {
                    None => return Ok(None),
                    Some((end, Reference::General)) if at == from => {
                        return self.entity(&input[at + 1..end - 1], at, end).map(Some);
                    }
                    Some((_, Reference::General)) => break,
                    Some((end, Reference::Char(_))) => (at, plain) = (end, false),
                },
                // The line end that indentation begins with is its own line feed (§2.11).
                Some(b'\r') if at == from && bytes.get(at + 1) == Some(&b'\n') => {
                    (begin, at) = (at + 1, at + 2);
                }
                Some(b'\r') => (at, plain) = (at + 1, false),
                // XML 1.0 §2.4: only a section may end so.
                Some(_) if input[at..].starts_with("]]>") => {
                    return Err(self.malformed(at, "']]>' in text"));
                }
                Some(_) => at += 1,
            }
        }
        self.behind_text = [bytes[at], bytes.get(at + 1).copied().unwrap_or(0)];
        let kind = if plain { Kind::Plain } else { Kind::Text };
        Ok(Some(self.found(kind, begin, at, at)))
    }

    /// Notes a token.
    #[inline]
    fn found(&mut self, kind: Kind, begin: usize, end: usize, used: usize) -> Kind {
        (self.token.begin, self.token.end, self.token.used) = (begin, end, used);
        kind
    }

    /// A reference that is not expanded; without a declaration it is an error (XML 1.0 §4.1).
    fn entity(&mut self, name: &str, at: usize, end: usize) -> Result<Kind, Fail> {
        if !self.entities.has(name) {
            return Err(
                self.malformed(at, "a reference to an entity that is not declared, or not as text")
            );
        }
        Ok(self.found(Kind::EntityRef, at + 1, end - 1, end))
    }

    fn comment(&mut self, input: &str, from: usize) -> Found {
        let inside = &input[from + 4..];
        let Some(len) = memmem::find(inside.as_bytes(), b"--") else { return Ok(None) };
        match inside.as_bytes().get(len + 2) {
            None => Ok(None),
            Some(b'>') => {
                let end = from + 4 + len;
                Ok(Some(self.found(Kind::Comment, from + 4, end, end + 3)))
            }
            Some(_) => Err(self.malformed(from + 4 + len, "'--' in a comment")),
        }
    }

    fn pi(&mut self, input: &str, from: usize) -> Found {
        let inside = &input[from + 2..];
        let Some(len) = instruction_end(inside.as_bytes()) else { return Ok(None) };
        let inside = &inside[..len];
        let end = name_end(inside.as_bytes(), 0);
        let begin = space_end(inside.as_bytes(), end);
        let target = &inside[..end];
        if !is_nc_name(target) || target.eq_ignore_ascii_case("xml") {
            return Err(
                self.malformed(from + 2, "an instruction's target that is no name or 'xml'")
            );
        }
        if begin == end && begin < len {
            return Err(self.malformed(from + 2 + end, "no white space behind a target"));
        }
        self.token.middle = from + 2 + end;
        Ok(Some(self.found(Kind::Pi, from + 2, from + 2 + len, from + 2 + len + 2)))
    }

    /// `XMLDecl`, production 23.
    fn declaration(&mut self, input: &str, from: usize) -> Found {
        let inside = &input[from + 5..];
        let Some(len) = instruction_end(inside.as_bytes()) else {
            self.place = DocumentState::Start;
            return Ok(None);
        };
        let end = from + 5 + len;
        if declaration(&inside[..len]).is_none() {
            return Err(self.malformed(from, "an XML declaration of another form"));
        }
        Ok(Some(self.found(Kind::Declaration, from + 5, end, end + 2)))
    }
}

/// Whether character data with sections is nothing but empty ones.
fn is_empty(raw: &str) -> bool {
    raw.starts_with(CDATA) && raw.split("<![CDATA[]]>").all(str::is_empty)
}

/// The inside of an XML declaration; `None` if it has another form (XML 1.0, production 23).
pub(super) fn declaration(inside: &str) -> Option<XmlDeclaration<'_>> {
    let mut rest = inside;
    let version = pseudo(&mut rest, "version")?;
    let number = version.strip_prefix("1.")?;
    let encoding = pseudo(&mut rest, "encoding");
    let standalone = match pseudo(&mut rest, "standalone") {
        None => None,
        Some("yes") => Some(true),
        Some("no") => Some(false),
        Some(_) => return None,
    };
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let named = encoding.is_none_or(|name| {
        name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    });
    let whole = digits && named && space_end(rest.as_bytes(), 0) == rest.len();
    whole.then_some(XmlDeclaration { version, encoding, standalone })
}

/// Takes ` name="value"` off the front.
fn pseudo<'a>(rest: &mut &'a str, name: &str) -> Option<&'a str> {
    let bytes = rest.as_bytes();
    let begin = space_end(bytes, 0);
    if begin == 0 || !bytes[begin..].starts_with(name.as_bytes()) {
        return None;
    }
    let equals = space_end(bytes, begin + name.len());
    let open = space_end(bytes, equals + 1);
    let quote = *bytes.get(open).filter(|quote| matches!(quote, b'"' | b'\''))?;
    let value = rest.get(open + 1..).filter(|_| bytes[equals] == b'=')?;
    let len = memchr(quote, value.as_bytes())?;
    *rest = &value[len + 1..];
    Some(&value[..len])
}
