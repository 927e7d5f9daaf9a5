//! Start tags and end tags, and what prefixes mean in them (Namespaces in XML 1.0).

use std::borrow::Cow;

use memchr::memchr;

use super::Start;
use super::chars::{is_nc_part, is_space, name_end, space_end, value_end};
use super::guess::{NO_GUESS, Shape};
use super::names::{NameId, UriId, hash};
use super::scanner::{Fail, Found, Kind, Open, Scanner, Token};
use super::text::{Reference, reference, value};

/// No namespace is bound to the prefix.
pub(super) const UNBOUND: u32 = u32::MAX;
/// Not resolved yet.
const UNKNOWN: NameId = NameId(usize::MAX);
/// The prefixes that exist before any is declared.
const PREFIX_NONE: u32 = 0;
const PREFIX_XMLNS: u32 = 2;

/// An attribute of the last start tag.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// Which attribute.
    pub name: NameId,
    qname: u32,
    begin: u32,
    prefix_len: u32,
    value_begin: u32,
    value_end: u32,
    /// Whether the value is what it stands for.
    plain: bool,
}

impl Attribute {
    /// The prefix as written, empty for none.
    #[must_use]
    pub fn prefix<'a>(&self, start: &Start<'a>) -> &'a str {
        let begin = self.begin as usize;
        start.tag.get(begin..begin + self.prefix_len as usize).unwrap_or("")
    }

    /// The value as written, without its quotes.
    #[must_use]
    pub fn raw<'a>(&self, start: &Start<'a>) -> &'a str {
        start.tag.get(self.value_begin as usize..self.value_end as usize).unwrap_or("")
    }

    /// The value, normalised as of type CDATA (XML 1.0 §3.3.3).
    #[inline]
    #[must_use]
    pub fn value<'a>(&self, start: &Start<'a>) -> Cow<'a, str> {
        let raw = self.raw(start);
        if self.plain { Cow::Borrowed(raw) } else { Cow::Owned(value(raw)) }
    }
}

/// A namespace declaration of the last start tag.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// The namespace; [`UriId::NONE`] undeclares the default.
    pub uri: UriId,
    begin: u32,
    end: u32,
}

impl Declaration {
    /// The declared prefix, empty for the default.
    #[must_use]
    pub fn prefix<'a>(&self, start: &Start<'a>) -> &'a str {
        start.tag.get(self.begin as usize..self.end as usize).unwrap_or("")
    }
}

/// What is known of a name as written.
#[derive(Clone, Copy, Debug)]
pub(super) struct QName {
    prefix: u32,
    /// Bytes of the prefix and its colon.
    local: u32,
    /// For which prefix it is a declaration.
    declares: Option<u32>,
    /// The namespace and name that it last had as an element's, or with a prefix.
    uri: u32,
    name: NameId,
    /// Its name as an attribute's without prefix.
    bare: NameId,
}

/// Offsets in a tag, whose length is checked when its end is found.
#[inline]
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl Scanner {
    /// A start tag at `from`; `None` if its end is not there.
    pub(super) fn start(&mut self, input: &str, from: usize) -> Found {
        let bytes = input.as_bytes();
        let came = usize::from(self.ended);
        let guess = self.shapes.get(self.written as usize).map_or(NO_GUESS, |it| it.tag[came]);
        let Some((qname, mut at)) = self.qname(input, from + 1, guess)? else { return Ok(None) };
        if qname != guess
            && let Some(shape) = self.shapes.get_mut(self.written as usize)
        {
            shape.tag[came] = qname;
        }
        self.attributes.clear();
        self.declarations.clear();
        self.serial += 1;
        self.late = false;
        let mut before = qname;
        let (end, empty) = loop {
            let behind = space_end(bytes, at);
            match bytes.get(behind) {
                None => return Ok(None),
                Some(b'>') => break (behind + 1, false),
                Some(b'/') => match bytes.get(behind + 1) {
                    None => return Ok(None),
                    Some(b'>') => break (behind + 2, true),
                    Some(_) => return Err(self.malformed(behind, "'/' inside a tag")),
                },
                Some(_) if behind == at => {
                    return Err(self.malformed(at, "no white space before an attribute"));
                }
                Some(_) => match self.attribute(input, from, behind, before)? {
                    Some(end) => (before, at) = end,
                    None => return Ok(None),
                },
            }
        };
        u32::try_from(end - from).map_err(|_| self.limit("a tag of 4 GiB".to_owned()))?;
        let name = self.open(&input[from..end], from, qname)?;
        self.empty = empty;
        let local = self.qname[qname as usize].local as usize;
        self.token = Token { begin: from, middle: from + local, end, name, used: end };
        Ok(Some(Kind::Start))
    }

    /// An attribute at `at` behind the name `before`, put into the list: its name as written, and
    /// where it ends, or `None`.
    fn attribute(
        &mut self,
        input: &str,
        from: usize,
        at: usize,
        before: u32,
    ) -> Result<Option<(u32, usize)>, Fail> {
        let bytes = input.as_bytes();
        let guess = self.shapes[before as usize].attribute;
        let Some((qname, name_end)) = self.qname(input, at, guess)? else { return Ok(None) };
        if qname != guess {
            self.shapes[before as usize].attribute = qname;
        }
        let mut equals = name_end;
        if bytes[equals] != b'=' {
            equals = space_end(bytes, equals);
            match bytes.get(equals) {
                None => return Ok(None),
                Some(b'=') => {}
                Some(_) => return Err(self.malformed(equals, "an attribute without '='")),
            }
        }
        let mut begin = equals + 1;
        if bytes.get(begin).is_some_and(|byte| is_space(*byte)) {
            begin = space_end(bytes, begin);
        }
        let quote = match bytes.get(begin) {
            None => return Ok(None),
            Some(quote @ (b'"' | b'\'')) => *quote,
            Some(_) => return Err(self.malformed(begin, "an attribute's value without quotes")),
        };
        begin += 1;
        let Some((end, plain)) = self.value(input, begin, quote)? else { return Ok(None) };
        let QName { local, bare, prefix, .. } = self.qname[qname as usize];
        let mut name = UNKNOWN;
        if prefix == PREFIX_NONE && bare != UNKNOWN {
            name = bare;
            self.once(at, name)?;
        } else {
            self.late = true;
        }
        self.attributes.push(Attribute {
            name,
            qname,
            begin: offset(at - from),
            prefix_len: local.saturating_sub(1),
            value_begin: offset(begin - from),
            value_end: offset(end - from),
            plain,
        });
        if self.attributes.len() * size_of::<Attribute>() > self.limits.table_bytes {
            return Err(self.limit("attributes of a tag over table_bytes".to_owned()));
        }
        Ok(Some((qname, end + 1)))
    }

    /// Notes that the tag has an attribute, which it may have once (Namespaces in XML 1.0 §6.3).
    #[inline]
    fn once(&mut self, at: usize, name: NameId) -> Result<(), Fail> {
        match self.seen.get_mut(name.index()) {
            Some(seen) if *seen == self.serial => {
                return Err(self.malformed(at, "an attribute is given twice"));
            }
            Some(seen) => *seen = self.serial,
            None => {
                self.seen.resize(self.names.len(), 0);
                self.seen[name.index()] = self.serial;
            }
        }
        Ok(())
    }

    /// Where a value ends and whether it is what it stands for; `None` if the end is not there.
    #[inline]
    fn value(&self, input: &str, begin: usize, quote: u8) -> Result<Option<(usize, bool)>, Fail> {
        let bytes = input.as_bytes();
        let mut plain = true;
        let mut at = begin;
        loop {
            at = value_end(bytes, at, quote);
            match bytes.get(at) {
                None => return Ok(None),
                Some(byte) if *byte == quote => return Ok(Some((at, plain))),
                Some(b'<') => return Err(self.malformed(at, "'<' in an attribute's value")),
                Some(b'&') => {
                    let Some((end, what)) = self.reference(input, at)? else { return Ok(None) };
                    if what == Reference::General {
                        let what = "a reference to an entity in an attribute's value: entities \
                                    are not expanded";
                        return Err(self.malformed(at, what));
                    }
                    at = end;
                }
                Some(_) => at += 1,
            }
            plain = false;
        }
    }

    /// A reference at `at`: where it ends and what it is; `None` if the end is not there.
    pub(super) fn reference(
        &self,
        input: &str,
        at: usize,
    ) -> Result<Option<(usize, Reference)>, Fail> {
        let bytes = input.as_bytes();
        let from = at + 1 + usize::from(bytes.get(at + 1) == Some(&b'#'));
        let end = name_end(bytes, from);
        match bytes.get(end) {
            None => Ok(None),
            Some(b';') => match reference(&input[at + 1..end]) {
                Some(reference) => Ok(Some((end + 1, reference))),
                None => Err(self.malformed(at, "a reference to no character and no entity")),
            },
            Some(_) => Err(self.malformed(at, "'&' without a reference")),
        }
    }

    /// Opens an element whose tag was read: declarations first, for they hold in the tag itself.
    #[inline(always)]
    fn open(&mut self, tag: &str, from: usize, qname: u32) -> Result<NameId, Fail> {
        if self.open.len() >= self.limits.depth {
            return Err(self.limit(format!("elements over depth {}", self.limits.depth)));
        }
        let undo = self.undo.len();
        if self.late {
            self.declare(tag, from)?;
        }
        let name = self.resolve(from + 1, qname)?;
        self.open.push(Open { qname, name, undo });
        (self.written, self.ended) = (qname, false);
        if self.late {
            self.resolve_attributes(from)?;
        }
        Ok(name)
    }

    /// Takes the declarations out of the attributes and binds their prefixes.
    fn declare(&mut self, tag: &str, from: usize) -> Result<(), Fail> {
        let mut kept = 0;
        for at in 0..self.attributes.len() {
            let attribute = self.attributes[at];
            match self.qname[attribute.qname as usize].declares {
                None => {
                    self.attributes[kept] = attribute;
                    kept += 1;
                }
                Some(prefix) => self.bind(tag, from, attribute, prefix)?,
            }
        }
        self.attributes.truncate(kept);
        Ok(())
    }

    fn bind(
        &mut self,
        tag: &str,
        from: usize,
        attribute: Attribute,
        prefix: u32,
    ) -> Result<(), Fail> {
        let at = from + attribute.begin as usize;
        let raw = &tag[attribute.value_begin as usize..attribute.value_end as usize];
        let uri = if attribute.plain { Cow::Borrowed(raw) } else { Cow::Owned(value(raw)) };
        let uri = UriId(self.names.uris.intern(0, &uri)?);
        // Namespaces in XML 1.0 §3, "Reserved Prefixes and Namespace Names", and §5.
        let xml = prefix == UriId::XML.0;
        if uri == UriId::XMLNS || prefix == PREFIX_XMLNS || xml != (uri == UriId::XML) {
            return Err(self.malformed(at, "a reserved prefix or namespace is declared"));
        }
        if uri == UriId::NONE && prefix != PREFIX_NONE {
            return Err(self.malformed(at, "a prefix is declared as of no namespace"));
        }
        if self.declared[prefix as usize] == self.serial {
            return Err(self.malformed(at, "a prefix is declared twice"));
        }
        self.declared[prefix as usize] = self.serial;
        let old = self.bound[prefix as usize];
        self.undo.push((prefix, old));
        self.bound[prefix as usize] = uri.0;
        let begin = attribute.begin + attribute.prefix_len;
        let begin = if prefix == PREFIX_NONE { begin } else { begin + 1 };
        let len = offset(self.prefixes.get(prefix).len());
        self.declarations.push(Declaration { uri, begin, end: begin + len });
        self.check_tables()
    }

    /// The expanded name of an element, or of an attribute with a prefix.
    #[inline(always)]
    fn resolve(&mut self, at: usize, qname: u32) -> Result<NameId, Fail> {
        let QName { prefix, uri, name, .. } = self.qname[qname as usize];
        let bound = self.bound[prefix as usize];
        if bound == uri && bound != UNBOUND { Ok(name) } else { self.rename(at, qname, bound) }
    }

    /// A name whose prefix means something else than when it was last met.
    fn rename(&mut self, at: usize, qname: u32, bound: u32) -> Result<NameId, Fail> {
        let text = self.qnames.get(qname);
        if bound == UNBOUND {
            return Err(
                self.malformed(at, format!("the prefix of '{}' is not declared", short(text)))
            );
        }
        let entry = &mut self.qname[qname as usize];
        let local = text.get(entry.local as usize..).unwrap_or("");
        let name = NameId::of(self.names.names.intern(bound, local)?);
        (entry.uri, entry.name) = (bound, name);
        self.check_tables()?;
        Ok(name)
    }

    /// Gives the attributes that have none yet their expanded names.
    fn resolve_attributes(&mut self, from: usize) -> Result<(), Fail> {
        for at in 0..self.attributes.len() {
            let Attribute { name, qname, begin, .. } = self.attributes[at];
            if name != UNKNOWN {
                continue;
            }
            let begin = from + begin as usize;
            let QName { prefix, bare, .. } = self.qname[qname as usize];
            let name = match prefix {
                PREFIX_NONE if bare != UNKNOWN => bare,
                PREFIX_NONE => {
                    let name = NameId::of(self.names.names.intern(0, self.qnames.get(qname))?);
                    self.qname[qname as usize].bare = name;
                    name
                }
                _ => self.resolve(begin, qname)?,
            };
            self.once(begin, name)?;
            self.attributes[at].name = name;
        }
        Ok(())
    }

    /// The number of the name as written at `at`, and where it ends; `None` if the end is not
    /// there.
    #[inline(always)]
    fn qname(&mut self, input: &str, at: usize, guess: u32) -> Result<Option<(u32, usize)>, Fail> {
        if let Some(shape) = self.shapes.get(guess as usize)
            && let Some(end) = shape.end(input.as_bytes(), at, || self.qnames.get(guess))
        {
            return Ok(Some((guess, end)));
        }
        self.other_qname(input, at)
    }

    /// A name that was not guessed.
    fn other_qname(&mut self, input: &str, at: usize) -> Result<Option<(u32, usize)>, Fail> {
        let end = name_end(input.as_bytes(), at);
        if end == input.len() {
            return Ok(None);
        }
        let text = &input[at..end];
        let hash = hash(0, text.as_bytes());
        match self.qnames.search(hash, 0, text) {
            Some(id) => Ok(Some((id, end))),
            None => self.new_qname(text, at, hash).map(|id| Some((id, end))),
        }
    }

    /// A name that was not met before, which [`name_end`] found.
    fn new_qname(&mut self, text: &str, at: usize, hash: u64) -> Result<u32, Fail> {
        // Namespaces in XML 1.0, productions 7 to 11: at most one colon, with a name on each side.
        let colon = memchr(b':', text.as_bytes());
        let (prefix, local) = colon.map_or(("", text), |at| (&text[..at], &text[at + 1..]));
        let local_at = offset(text.len() - local.len());
        let prefix_id = match local_at {
            0 if is_nc_part(local) => PREFIX_NONE,
            2.. if is_nc_part(prefix) && !local.contains(':') && is_nc_part(local) => {
                self.prefix(prefix)?
            }
            _ => return Err(self.malformed(at, format!("'{}' is not a name", short(text)))),
        };
        let declares = match (prefix, local) {
            ("", "xmlns") => Some(PREFIX_NONE),
            ("xmlns", local) => Some(self.prefix(local)?),
            _ => None,
        };
        let entry = QName {
            prefix: prefix_id,
            local: local_at,
            declares,
            uri: UNBOUND,
            name: UNKNOWN,
            bare: UNKNOWN,
        };
        let id = self.qnames.add(hash, 0, text)?;
        self.qname.push(entry);
        self.shapes.push(Shape::of(text));
        self.check_tables()?;
        Ok(id)
    }

    fn prefix(&mut self, prefix: &str) -> Result<u32, Fail> {
        let id = self.prefixes.intern(0, prefix)?;
        self.bound.resize(self.prefixes.len(), UNBOUND);
        self.declared.resize(self.prefixes.len(), 0);
        Ok(id)
    }

    /// An end tag at `from`; `None` if its end is not there.
    #[inline]
    pub(super) fn end(&mut self, input: &str, from: usize) -> Found {
        let bytes = input.as_bytes();
        let Some(open) = self.open.last() else {
            return Err(self.malformed(from, "an end tag without its start"));
        };
        let at = from + 2;
        let shape = self.shapes.get(open.qname as usize);
        let end = shape.and_then(|it| it.end(bytes, at, || self.qnames.get(open.qname)));
        if let Some(end) = end
            && bytes.get(end) == Some(&b'>')
        {
            (self.token.begin, self.token.end, self.token.used) = (at, at, end + 1);
            self.close();
            return Ok(Some(Kind::End));
        }
        self.spaced_end(input, from, open.qname)
    }

    /// An end tag with white space, or too near to the end of the input for a quick look.
    fn spaced_end(&mut self, input: &str, from: usize, qname: u32) -> Found {
        let bytes = input.as_bytes();
        let name = self.qnames.get(qname).as_bytes();
        let at = from + 2;
        let Some(rest) = bytes.get(at + name.len()..).filter(|rest| !rest.is_empty()) else {
            return Ok(None);
        };
        let same = bytes[at..].starts_with(name);
        let end = if rest[0] == b'>' { 0 } else { space_end(rest, 0) };
        match rest.get(end) {
            Some(b'>') if same => {
                let end = at + name.len() + end + 1;
                (self.token.begin, self.token.end, self.token.used) = (at, at, end);
                self.close();
                Ok(Some(Kind::End))
            }
            None if same => Ok(None),
            _ => {
                let open = short(self.qnames.get(qname));
                Err(self.malformed(from, format!("an end tag that is not that of '{open}'")))
            }
        }
    }

    /// Closes the innermost element.
    #[inline]
    pub(super) fn close(&mut self) {
        let Some(open) = self.open.pop() else { return };
        (self.written, self.ended) = (open.qname, true);
        self.token.name = open.name;
        while self.undo.len() > open.undo {
            if let Some((prefix, uri)) = self.undo.pop() {
                self.bound[prefix as usize] = uri;
            }
        }
        self.closed(self.open.is_empty());
    }
}

/// Enough of a text for a message.
fn short(text: &str) -> &str {
    text.char_indices().nth(40).map_or(text, |(end, _)| &text[..end])
}
