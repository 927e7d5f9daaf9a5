//! The internal subset of a document type: each declaration is checked for its form, so that what
//! is kept as text is well-formed (XML 1.0 §2.8, §3.2, §3.3, §4.2, §4.7; Namespaces in XML 1.0 §7).
//! What declarations say is not acted on, but for the names of entities.

use std::collections::BTreeSet;

use super::chars::{is_nc_name, is_nm_token, is_qname, name_end, space_end};
use super::doctype::{Entities, Refusal};
use super::text::reference;

type Found<T = ()> = Result<T, Refusal>;

/// Reads markup declarations from left to right.
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    /// An attribute with a default value was declared.
    defaults: bool,
}

/// Whether a subset declares values for attributes that are not there, which a reader has to supply
/// (XML 1.0 §5.1).
pub(crate) fn has_defaults(subset: &str) -> bool {
    let mut cursor = Cursor::new(subset);
    // Its form was checked when the document was read; the end is where `]` would stand.
    let _ = cursor.subset();
    cursor.defaults
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, defaults: false }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn refuse<T>(&self, what: &'static str) -> Found<T> {
        Err((self.at, what))
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Goes behind `word`, if it is here.
    pub(super) fn eat(&mut self, word: &str) -> bool {
        let is = self.rest().starts_with(word);
        self.at += if is { word.len() } else { 0 };
        is
    }

    pub(super) fn need(&mut self, word: &str) -> Found {
        if self.eat(word) {
            Ok(())
        } else {
            self.refuse("a declaration in DOCTYPE of another form")
        }
    }

    /// Goes behind white space, and tells whether there was any.
    pub(super) fn space(&mut self) -> bool {
        let begin = self.at;
        self.at = space_end(self.text.as_bytes(), begin);
        self.at > begin
    }

    pub(super) fn need_space(&mut self) -> Found {
        if self.space() { Ok(()) } else { self.refuse("white space is missing in DOCTYPE") }
    }

    fn word(&mut self, is: fn(&str) -> bool) -> Found<&'a str> {
        let end = name_end(self.text.as_bytes(), self.at);
        let word = &self.text[self.at..end];
        if !is(word) {
            return self.refuse("a name is due in DOCTYPE");
        }
        self.at = end;
        Ok(word)
    }

    pub(super) fn qname(&mut self) -> Found<&'a str> {
        self.word(is_qname)
    }

    fn nc_name(&mut self) -> Found<&'a str> {
        self.word(is_nc_name)
    }

    /// What stands in quotes.
    fn literal(&mut self) -> Found<&'a str> {
        let quote = self.peek().filter(|quote| matches!(quote, b'"' | b'\''));
        let Some(quote) = quote else {
            return self.refuse("something in quotes is missing in DOCTYPE");
        };
        let inside = &self.text[self.at + 1..];
        let Some(len) = inside.find(char::from(quote)) else {
            return self.refuse("a quote without its end");
        };
        self.at += len + 2;
        Ok(&inside[..len])
    }

    /// `ExternalID`, production 75, as public and system identifier; `PublicID`, production 83, too
    /// where the former may stand `alone`.
    pub(super) fn external_id(&mut self, alone: bool) -> Found<(&'a str, &'a str)> {
        if self.eat("SYSTEM") {
            self.need_space()?;
            return Ok(("", self.literal()?));
        }
        self.need("PUBLIC")?;
        self.need_space()?;
        let public = self.literal()?;
        if !public.bytes().all(is_pubid) {
            return self.refuse("a character that no public identifier may have");
        }
        let spaced = self.space();
        match self.peek() {
            Some(b'"' | b'\'') if spaced => Ok((public, self.literal()?)),
            _ if alone => Ok((public, "")),
            _ => self.refuse("PUBLIC without a system identifier"),
        }
    }

    /// `intSubset`, production 28b, up to its `]`.
    pub(super) fn subset(&mut self) -> Found<Entities> {
        let (mut names, mut all_seen) = (BTreeSet::new(), true);
        loop {
            self.space();
            if self.peek() == Some(b']') {
                return Ok(if all_seen { Entities::Of(names) } else { Entities::Any });
            }
            if self.eat("%") {
                self.nc_name()?;
                self.need(";")?;
                all_seen = false;
            } else if self.eat("<!--") {
                self.past("--")?;
                self.need(">")?;
            } else if self.eat("<?") {
                self.instruction()?;
            } else if self.eat("<!ENTITY") {
                names.extend(self.entity()?.map(str::to_owned));
            } else if self.eat("<!ELEMENT") {
                self.element()?;
            } else if self.eat("<!ATTLIST") {
                self.attributes()?;
            } else if self.eat("<!NOTATION") {
                self.notation()?;
            } else {
                return self.refuse("no declaration that an internal subset may have");
            }
        }
    }

    fn past(&mut self, end: &str) -> Found {
        match self.rest().find(end) {
            Some(len) => {
                self.at += len + end.len();
                Ok(())
            }
            None => self.refuse("a comment or instruction without its end"),
        }
    }

    /// `PI`, production 16, behind its `<?`.
    fn instruction(&mut self) -> Found {
        let begin = self.at;
        if self.nc_name()?.eq_ignore_ascii_case("xml") {
            return Err((begin, "an instruction's target that is no name or 'xml'"));
        }
        if self.eat("?>") {
            return Ok(());
        }
        self.need_space()?;
        self.past("?>")
    }

    fn close(&mut self) -> Found {
        self.space();
        self.need(">")
    }

    /// `elementdecl`, production 45.
    fn element(&mut self) -> Found {
        self.need_space()?;
        self.qname()?;
        self.need_space()?;
        if !self.eat("EMPTY") && !self.eat("ANY") {
            self.need("(")?;
            self.space();
            if self.eat("#PCDATA") { self.mixed()? } else { self.children()? }
        }
        self.close()
    }

    /// The rest of `Mixed`, production 51.
    fn mixed(&mut self) -> Found {
        let mut named = false;
        loop {
            self.space();
            if self.eat(")") {
                break;
            }
            self.need("|")?;
            self.space();
            self.qname()?;
            named = true;
        }
        if !self.eat("*") && named {
            return self.refuse("mixed content with names, and no '*' behind it");
        }
        Ok(())
    }

    /// The rest of `children`, productions 47 to 50, without recursion: the input says how deep.
    fn children(&mut self) -> Found {
        // Of each group that is open its separator, 0 before it is known.
        let mut open = vec![0];
        loop {
            self.space();
            if self.eat("(") {
                open.push(0);
                continue;
            }
            self.qname()?;
            self.occurrence();
            loop {
                self.space();
                if !self.eat(")") {
                    break;
                }
                self.occurrence();
                open.pop();
                if open.is_empty() {
                    return Ok(());
                }
            }
            let here = self.peek().filter(|byte| matches!(byte, b'|' | b','));
            match (here, open.last_mut()) {
                (Some(here), Some(known)) if *known == 0 || *known == here => *known = here,
                _ => return self.refuse("a content model of another form"),
            }
            self.at += 1;
        }
    }

    fn occurrence(&mut self) {
        self.at += usize::from(matches!(self.peek(), Some(b'?' | b'*' | b'+')));
    }

    /// `AttlistDecl`, production 52.
    fn attributes(&mut self) -> Found {
        self.need_space()?;
        self.qname()?;
        loop {
            let spaced = self.space();
            if self.eat(">") {
                return Ok(());
            }
            if !spaced {
                return self.refuse("white space is missing in DOCTYPE");
            }
            self.qname()?;
            self.need_space()?;
            self.attribute_type()?;
            self.need_space()?;
            self.default()?;
        }
    }

    /// `AttType`, production 54.
    fn attribute_type(&mut self) -> Found {
        const TYPES: [&str; 8] =
            ["CDATA", "ID", "IDREF", "IDREFS", "ENTITY", "ENTITIES", "NMTOKEN", "NMTOKENS"];
        if self.peek() == Some(b'(') {
            return self.one_of(is_nm_token);
        }
        let word = self.nc_name()?;
        if word == "NOTATION" {
            self.need_space()?;
            return self.one_of(is_nc_name);
        }
        if TYPES.contains(&word) { Ok(()) } else { self.refuse("an unknown type of attributes") }
    }

    /// Words between `(` and `)`, productions 58 and 59.
    fn one_of(&mut self, is: fn(&str) -> bool) -> Found {
        self.need("(")?;
        loop {
            self.space();
            self.word(is)?;
            self.space();
            if self.eat(")") {
                return Ok(());
            }
            self.need("|")?;
        }
    }

    /// `DefaultDecl`, production 60.
    fn default(&mut self) -> Found {
        if self.eat("#REQUIRED") || self.eat("#IMPLIED") {
            return Ok(());
        }
        if self.eat("#FIXED") {
            self.need_space()?;
        }
        self.defaults = true;
        self.value('<')
    }

    /// A literal with references, productions 9 and 10, and without `forbidden`.
    fn value(&mut self, forbidden: char) -> Found {
        let begin = self.at;
        let value = self.literal()?;
        let is_reference = |part: &str| {
            part.split_once(';').is_some_and(|(inside, _)| reference(inside).is_some())
        };
        if value.contains(forbidden) || !value.split('&').skip(1).all(is_reference) {
            return Err((begin, "a value in DOCTYPE with something that it may not have"));
        }
        Ok(())
    }

    /// `EntityDecl`, production 70: the name, if content may refer to it.
    fn entity(&mut self) -> Found<Option<&'a str>> {
        self.need_space()?;
        let is_parameter = self.eat("%");
        if is_parameter {
            self.need_space()?;
        }
        let name = self.nc_name()?;
        self.need_space()?;
        let mut is_parsed = true;
        if matches!(self.peek(), Some(b'"' | b'\'')) {
            // Parameter entities are not for the inside of declarations here (§2.8, "PEs in
            // Internal Subset").
            self.value('%')?;
        } else {
            self.external_id(false)?;
            if self.space() && !is_parameter && self.eat("NDATA") {
                self.need_space()?;
                self.nc_name()?;
                is_parsed = false;
            }
        }
        self.close()?;
        Ok((is_parsed && !is_parameter).then_some(name))
    }

    /// `NotationDecl`, production 82.
    fn notation(&mut self) -> Found {
        self.need_space()?;
        self.nc_name()?;
        self.need_space()?;
        self.external_id(true)?;
        self.close()
    }
}

/// `PubidChar`, production 13.
fn is_pubid(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b' ' | b'\r' | b'\n' | b'!' | b'?' | b'=' | b'@' | b'_')
        || matches!(byte, b'#' | b'$' | b'%' | b'\''..=b'/' | b':' | b';')
}
