//! A pull reader that allocates nothing: for threads that must not wait for an allocator.
//!
//! It takes what [`Reader`](super::Reader) takes, but for narrower bounds, namespace names with
//! references in them, and processing instructions, and gives slices of the document.

use std::fmt;

/// Deepest nesting of elements that is read.
const MAX_DEPTH: usize = 16;
/// Most namespace declarations in scope.
const MAX_PREFIXES: usize = 32;
/// Most attributes of an element, namespace declarations left out.
const MAX_ATTRIBUTES: usize = 16;
/// The namespace of `xml:` (Namespaces in XML 1.0 §3).
const XML_NAMESPACE: &str = "http://www.w3.org/XML/1998/namespace";

/// Why a document is not read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// What is wrong.
    pub what: &'static str,
    /// Where, in bytes from the beginning.
    pub offset_bytes: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not XML as it is taken here: {} at byte {}", self.what, self.offset_bytes)
    }
}

/// An attribute as it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written<'a> {
    /// Namespace name; empty for a name without prefix.
    pub namespace: &'a str,
    /// Local name.
    pub name: &'a str,
    /// Value, references as they are written.
    pub value: &'a str,
}

/// A start tag.
#[derive(Clone, Copy, Debug)]
pub struct Tag<'a> {
    /// Namespace name; empty for none.
    pub namespace: &'a str,
    /// Local name.
    pub name: &'a str,
    attributes: [Written<'a>; MAX_ATTRIBUTES],
    count: usize,
}

impl<'a> Tag<'a> {
    /// Attributes but for namespace declarations.
    #[must_use]
    pub fn attributes(&self) -> &[Written<'a>] {
        self.attributes.get(..self.count).unwrap_or_default()
    }

    /// The value of an attribute.
    #[must_use]
    pub fn attribute(&self, namespace: &str, name: &str) -> Option<&'a str> {
        let is_it = |one: &&Written<'a>| one.name == name && one.namespace == namespace;
        self.attributes().iter().find(is_it).map(|one| one.value)
    }
}

/// What the scanner finds, in document order. Comments are left out.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant, reason = "a tag's attributes are in place: nothing allocates")]
pub enum Piece<'a> {
    /// An element begins (an empty one gives `Start` and `End`).
    Start(Tag<'a>),
    /// Character data without references, or a piece of it.
    Text(&'a str),
    /// A reference to a character.
    Character(char),
    /// The innermost element ends.
    End,
    /// The document ends.
    Over,
}

#[derive(Clone, Copy, Default)]
struct Bound<'a> {
    /// Empty for the default namespace.
    prefix: &'a str,
    namespace: &'a str,
    /// How deep the element is that declares it.
    depth: usize,
}

/// Reads one document in UTF-8.
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// Names of the elements that are open, as they are written.
    open: [&'a str; MAX_DEPTH],
    depth: usize,
    bound: [Bound<'a>; MAX_PREFIXES],
    bound_count: usize,
    /// The element that began has no content.
    is_empty: bool,
    root_seen: bool,
}

type Result<T> = std::result::Result<T, Malformed>;

impl<'a> Scanner<'a> {
    /// A scanner at the beginning of `document`; a byte order mark is skipped.
    #[must_use]
    pub fn new(document: &'a str) -> Self {
        Self {
            text: document.strip_prefix('\u{feff}').unwrap_or(document),
            at: 0,
            open: [""; MAX_DEPTH],
            depth: 0,
            bound: [Bound::default(); MAX_PREFIXES],
            bound_count: 0,
            is_empty: false,
            root_seen: false,
        }
    }

    /// How many elements are open.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The next piece; [`Piece::Over`] at the end of a whole document.
    ///
    /// # Errors
    /// What is not namespace-well-formed, a document type, a processing instruction, and what is
    /// beyond 16 nested elements, 32 namespaces in scope or 16 attributes.
    pub fn next_piece(&mut self) -> Result<Piece<'a>> {
        if std::mem::take(&mut self.is_empty) {
            self.leave();
            return Ok(Piece::End);
        }
        if self.at == 0 {
            self.declaration()?;
        }
        loop {
            let rest = self.rest();
            if rest.is_empty() {
                return match (self.depth, self.root_seen) {
                    (0, true) => Ok(Piece::Over),
                    _ => Err(self.wrong("the end, before the end of the root element")),
                };
            }
            if let Some(behind) = rest.strip_prefix("<!--") {
                self.comment(behind)?;
            } else if let Some(behind) = rest.strip_prefix("<![CDATA[") {
                if let Some(text) = self.literal(behind)? {
                    return Ok(Piece::Text(text));
                }
            } else if rest.starts_with("<!") {
                return Err(self.wrong("a document type declaration; send none"));
            } else if rest.starts_with("<?") {
                // SOAP 1.1 §3: no processing instructions; a declaration stands at the start.
                return Err(self.wrong("a processing instruction; send none"));
            } else if rest.starts_with("</") {
                return self.end_tag();
            } else if rest.starts_with('<') {
                return self.start_tag().map(Piece::Start);
            } else if rest.starts_with('&') {
                if self.depth == 0 {
                    return Err(self.wrong("text outside the root element"));
                }
                return self.reference().map(Piece::Character);
            } else if let Some(text) = self.text()? {
                return Ok(Piece::Text(text));
            }
        }
    }

    /// Goes behind the end of the innermost element that is open.
    ///
    /// # Errors
    /// As [`Self::next_piece`].
    pub fn skip(&mut self) -> Result<()> {
        let depth = self.depth;
        while self.depth >= depth && self.depth > 0 {
            self.next_piece()?;
        }
        Ok(())
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn wrong(&self, what: &'static str) -> Malformed {
        Malformed { what, offset_bytes: self.at }
    }

    /// XML 1.0 §2.8: only at the start. What it says of the encoding must be so.
    fn declaration(&mut self) -> Result<()> {
        let Some(inside) = self.rest().strip_prefix("<?xml") else { return Ok(()) };
        if !inside.starts_with(is_space) {
            return Ok(());
        }
        let end = inside.find("?>").ok_or_else(|| self.wrong("a declaration without an end"))?;
        let inside = inside.get(..end).unwrap_or_default();
        let mut words = ["", "", ""];
        let mut rest = inside;
        for (at, name) in ["version", "encoding", "standalone"].into_iter().enumerate() {
            let trimmed = rest.trim_start_matches(is_space);
            let Some(behind) = trimmed.strip_prefix(name) else { continue };
            let behind = behind.trim_start_matches(is_space);
            let value = behind.strip_prefix('=').map(|value| value.trim_start_matches(is_space));
            let found = value.and_then(quoted).filter(|_| trimmed.len() < rest.len());
            let (value, behind) = found.ok_or_else(|| self.wrong("a declaration that is none"))?;
            words[at] = value;
            rest = behind;
        }
        let [version, encoding, standalone] = words;
        let is_version = version.strip_prefix("1.").is_some_and(|minor| {
            !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit())
        });
        if !is_version
            || !matches!(standalone, "" | "yes" | "no")
            || !rest.trim_start_matches(is_space).is_empty()
        {
            return Err(self.wrong("a declaration that is none"));
        }
        let known = ["", "utf-8", "us-ascii"];
        if !known.iter().any(|known| encoding.eq_ignore_ascii_case(known)) {
            return Err(self.wrong("an encoding that is not UTF-8; send UTF-8"));
        }
        self.at += "<?xml".len() + end + "?>".len();
        Ok(())
    }

    /// XML 1.0 §2.5: without `--` inside.
    fn comment(&mut self, behind: &'a str) -> Result<()> {
        let end = behind.find("--").ok_or_else(|| self.wrong("a comment without an end"))?;
        if !behind.get(end..).is_some_and(|rest| rest.starts_with("-->")) {
            return Err(self.wrong("'--' in a comment"));
        }
        self.check(behind.get(..end).unwrap_or_default())?;
        self.at += "<!---->".len() + end;
        Ok(())
    }

    /// XML 1.0 §2.7; `None` for one without anything inside.
    fn literal(&mut self, behind: &'a str) -> Result<Option<&'a str>> {
        if self.depth == 0 {
            return Err(self.wrong("text outside the root element"));
        }
        let end = behind.find("]]>").ok_or_else(|| self.wrong("a section without an end"))?;
        let inside = behind.get(..end).unwrap_or_default();
        self.check(inside)?;
        self.at += "<![CDATA[]]>".len() + end;
        Ok((!inside.is_empty()).then_some(inside))
    }

    /// XML 1.0 §2.4; `None` for white space outside the root element.
    fn text(&mut self) -> Result<Option<&'a str>> {
        let rest = self.rest();
        let end = rest.bytes().position(|byte| matches!(byte, b'<' | b'&')).unwrap_or(rest.len());
        let text = rest.get(..end).unwrap_or_default();
        if self.depth == 0 {
            if !text.bytes().all(|byte| is_space(char::from(byte))) {
                return Err(self.wrong("text outside the root element"));
            }
            self.at += end;
            return Ok(None);
        }
        self.check(text)?;
        if text.contains("]]>") {
            return Err(self.wrong("']]>' in text"));
        }
        self.at += end;
        Ok(Some(text))
    }

    /// XML 1.0 §2.2, production Char.
    fn check(&self, text: &str) -> Result<()> {
        let bytes = text.as_bytes();
        let is_control = |byte: &u8| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r');
        let has_noncharacter = || {
            let is_lead = |byte: &u8| *byte == 0xef;
            bytes.iter().any(is_lead)
                && text.chars().any(|one| matches!(one, '\u{fffe}' | '\u{ffff}'))
        };
        if bytes.iter().any(is_control) || has_noncharacter() {
            return Err(self.wrong("a character that XML cannot hold"));
        }
        Ok(())
    }

    /// XML 1.0 §4.1 and §4.6: a reference to a character or a predefined entity.
    fn reference(&mut self) -> Result<char> {
        let rest = self.rest();
        let found = referred(rest).ok_or_else(|| self.wrong("a reference to nothing known"))?;
        self.at += found.1;
        Ok(found.0)
    }

    fn end_tag(&mut self) -> Result<Piece<'a>> {
        let rest = self.rest();
        let end = rest.find('>').ok_or_else(|| self.wrong("an end tag without an end"))?;
        let written = rest.get("</".len()..end).unwrap_or_default().trim_end_matches(is_space);
        let open = self.depth.checked_sub(1).and_then(|top| self.open.get(top));
        if open != Some(&written) {
            return Err(self.wrong("an end tag that ends nothing open"));
        }
        self.at += end + 1;
        self.leave();
        Ok(Piece::End)
    }

    /// Closes the innermost element and forgets what it declared.
    fn leave(&mut self) {
        let depth = self.depth;
        while let Some(last) = self.bound_count.checked_sub(1)
            && self.bound.get(last).is_some_and(|bound| bound.depth >= depth)
        {
            self.bound_count = last;
        }
        self.depth = depth.saturating_sub(1);
    }

    fn start_tag(&mut self) -> Result<Tag<'a>> {
        if self.depth == 0 && std::mem::replace(&mut self.root_seen, true) {
            return Err(self.wrong("a second root element"));
        }
        self.at += 1;
        let written = self.name()?;
        let Some(place) = self.open.get_mut(self.depth) else {
            return Err(self.wrong("an element nested too deep; nest at most 16"));
        };
        *place = written;
        self.depth += 1;
        let mut tag = Tag {
            namespace: "",
            name: "",
            attributes: [Written::default(); MAX_ATTRIBUTES],
            count: 0,
        };
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(is_space);
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with('>') {
                self.at += 1;
                break;
            }
            if trimmed.starts_with("/>") {
                self.at += 2;
                self.is_empty = true;
                break;
            }
            if trimmed.len() == rest.len() {
                return Err(self.wrong("a start tag that is none"));
            }
            self.attribute(&mut tag)?;
        }
        (tag.namespace, tag.name) = self.resolve(written, true)?;
        self.resolve_attributes(&mut tag)?;
        Ok(tag)
    }

    /// Takes an attribute: a declaration at once, another as it is written.
    fn attribute(&mut self, tag: &mut Tag<'a>) -> Result<()> {
        let name = self.name()?;
        let rest = self.rest();
        let value = rest.trim_start_matches(is_space).strip_prefix('=');
        let value = value.map(|value| value.trim_start_matches(is_space)).and_then(quoted);
        let (value, behind) = value.ok_or_else(|| self.wrong("an attribute without a value"))?;
        self.check_value(value)?;
        self.at += rest.len() - behind.len();
        let declared = match name.strip_prefix("xmlns") {
            Some("") => Some(""),
            Some(rest) => rest.strip_prefix(':'),
            None => None,
        };
        if let Some(prefix) = declared {
            return self.declare(prefix, value);
        }
        let Some(place) = tag.attributes.get_mut(tag.count) else {
            return Err(self.wrong("an attribute too many; send at most 16"));
        };
        *place = Written { namespace: "", name, value };
        tag.count += 1;
        Ok(())
    }

    fn check_value(&self, value: &str) -> Result<()> {
        self.check(value)?;
        let mut rest = value;
        while let Some(at) = rest.find(['<', '&']) {
            rest = rest.get(at..).unwrap_or_default();
            let Some((_, length)) = referred(rest) else {
                return Err(self.wrong("a value with '<' or a reference to nothing known"));
            };
            rest = rest.get(length..).unwrap_or_default();
        }
        Ok(())
    }

    /// Namespaces in XML 1.0 §3, §5.
    fn declare(&mut self, prefix: &'a str, namespace: &'a str) -> Result<()> {
        let is_xml = (prefix == "xml", namespace == XML_NAMESPACE);
        let is_reserved = prefix == "xmlns" || namespace == "http://www.w3.org/2000/xmlns/";
        if is_reserved || is_xml.0 != is_xml.1 || (!prefix.is_empty() && namespace.is_empty()) {
            return Err(self.wrong("a declaration that Namespaces in XML forbids"));
        }
        if namespace.contains('&') {
            return Err(self.wrong("a reference in a namespace name; write it out"));
        }
        let of_element = self.bound.iter().take(self.bound_count);
        let mut of_element = of_element.filter(|bound| bound.depth == self.depth);
        if of_element.any(|bound| bound.prefix == prefix) {
            return Err(self.wrong("a namespace that is declared twice"));
        }
        let Some(place) = self.bound.get_mut(self.bound_count) else {
            return Err(self.wrong("a namespace too many; declare at most 32"));
        };
        *place = Bound { prefix, namespace, depth: self.depth };
        self.bound_count += 1;
        Ok(())
    }

    fn resolve(&self, written: &'a str, is_element: bool) -> Result<(&'a str, &'a str)> {
        let (prefix, local) = match written.split_once(':') {
            Some(pair) => pair,
            None if is_element => ("", written),
            None => return Ok(("", written)),
        };
        let mut bound = self.bound.iter().take(self.bound_count).rev();
        match bound.find(|bound| bound.prefix == prefix) {
            Some(bound) => Ok((bound.namespace, local)),
            None if prefix.is_empty() => Ok(("", local)),
            None if prefix == "xml" => Ok((XML_NAMESPACE, local)),
            None => Err(self.wrong("an undeclared namespace prefix")),
        }
    }

    fn resolve_attributes(&self, tag: &mut Tag<'a>) -> Result<()> {
        for at in 0..tag.count {
            let (seen, rest) = tag.attributes.split_at_mut(at);
            let Some(one) = rest.first_mut() else { break };
            (one.namespace, one.name) = self.resolve(one.name, false)?;
            if seen.iter().any(|other| (other.namespace, other.name) == (one.namespace, one.name)) {
                return Err(self.wrong("an attribute that is there twice"));
            }
        }
        Ok(())
    }

    /// Namespaces in XML 1.0 §4, production QName, by Unicode's letters as [`super::Reader`] has.
    fn name(&mut self) -> Result<&'a str> {
        let rest = self.rest();
        let ends = |one: char| is_space(one) || matches!(one, '>' | '/' | '=' | '<' | '&');
        let name = rest.get(..rest.find(ends).unwrap_or(rest.len())).unwrap_or_default();
        let is_good = |part: &str| {
            let mut characters = part.chars();
            characters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
                && characters.all(|other| other.is_alphanumeric() || "._-·".contains(other))
        };
        let is_whole = match name.split_once(':') {
            None => is_good(name),
            Some((prefix, local)) => is_good(prefix) && is_good(local),
        };
        if !is_whole {
            return Err(self.wrong("what is no name"));
        }
        self.at += name.len();
        Ok(name)
    }
}

fn is_space(one: char) -> bool {
    matches!(one, ' ' | '\t' | '\r' | '\n')
}

/// What stands within quotes, and what behind these.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    text.get(1..)?.split_once(quote)
}

/// The character that a reference at the beginning of `text` means, and the reference's length.
fn referred(text: &str) -> Option<(char, usize)> {
    /// `&#1114111;` with room for zeros in front.
    const MAX_REFERENCE_BYTES: usize = 32;
    let end = text.bytes().take(MAX_REFERENCE_BYTES).position(|byte| byte == b';')?;
    let name = text.get(..end)?.strip_prefix('&')?;
    let one = match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = name.strip_prefix('#')?;
            let (digits, radix) = number.strip_prefix('x').map_or((number, 10), |hex| (hex, 16));
            if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
                return None;
            }
            let code = u32::from_str_radix(digits, radix).ok()?;
            char::from_u32(code).filter(|one| super::reader::is_allowed(*one))?
        }
    };
    Some((one, end + 1))
}
