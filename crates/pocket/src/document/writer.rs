//! A document that is written into a slice of the caller's.

use super::name::Name;
use super::tokens::Tokens;
use super::{Form, MAX_DEPTH};
use crate::Error;
use crate::out::{Out, digits};

/// Names that CBOR refers back to by number.
const MAX_NAMES: usize = 24;

/// An element that is open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level<'a> {
    pub(super) name: Name<'a>,
    /// Where in the document its tag stands.
    pub(super) tag_at: usize,
}

/// Writes a document: elements, their attributes, their texts, in any form. After an error there
/// is no document: all that follows returns the same error again, [`Writer::finish`] too.
#[derive(Debug)]
pub struct Writer<'a> {
    pub(super) out: Out<'a>,
    pub(super) form: &'static Form,
    pub(super) tokens: Tokens<'a>,
    levels: [Option<Level<'a>>; MAX_DEPTH],
    pub(super) depth: usize,
    /// A tag was begun, and attributes may follow.
    pub(super) is_tag_open: bool,
    /// It has some.
    pub(super) has_attributes: bool,
    pub(super) tag_page: u8,
    pub(super) attribute_page: u8,
    /// Where names of CBOR stand that came, and how many came.
    pub(super) names: [(u16, u16); MAX_NAMES],
    pub(super) name_count: usize,
    /// A prefix was declared, in this element or another one.
    pub(super) has_prefixes: bool,
    has_root: bool,
    failed: Option<Error>,
}

impl<'a> Writer<'a> {
    /// A document that is empty. `tokens` says what of it is numbers in WBXML.
    pub fn new(room: &'a mut [u8], form: &'static Form, tokens: Tokens<'a>) -> Self {
        Self {
            out: Out::new(room),
            form,
            tokens,
            levels: [None; MAX_DEPTH],
            depth: 0,
            is_tag_open: false,
            has_attributes: false,
            tag_page: 0,
            attribute_page: 0,
            names: [(0, 0); MAX_NAMES],
            name_count: 0,
            has_prefixes: false,
            has_root: false,
            failed: None,
        }
    }

    /// Begins an element.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a name that cannot stand there and for a second root,
    /// [`Error::TooDeep`], [`Error::NoRoom`].
    pub fn begin(&mut self, name: Name<'a>) -> Result<(), Error> {
        let result = self.try_begin(name);
        self.settle(result)
    }

    fn try_begin(&mut self, name: Name<'a>) -> Result<(), Error> {
        check_name(name.local, false)?;
        check_text(name.space)?;
        if self.depth == 0 && self.has_root {
            return Err(Error::Misuse);
        }
        if self.depth >= MAX_DEPTH {
            return Err(Error::TooDeep);
        }
        self.has_root = true;
        (self.form.begin)(self, name)?;
        self.is_tag_open = true;
        Ok(())
    }

    /// Gives the element that was just begun an attribute, by its name as written.
    ///
    /// # Errors
    /// [`Error::Misuse`] where no element was just begun, and for a name or value that cannot
    /// stand there; [`Error::NoRoom`].
    pub fn attribute(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let result = self.try_attribute(name, value);
        self.settle(result)
    }

    fn try_attribute(&mut self, name: &str, value: &str) -> Result<(), Error> {
        check_name(name, true)?;
        check_text(value)?;
        // The namespace of elements is that of their names.
        if !self.is_tag_open || name == "xmlns" {
            return Err(Error::Misuse);
        }
        self.has_prefixes |= name.starts_with("xmlns:");
        (self.form.attribute)(self, name, value)
    }

    /// Appends text to the element that is open; that may be done in pieces.
    ///
    /// # Errors
    /// [`Error::Misuse`] outside of elements and for control characters; [`Error::NoRoom`].
    pub fn text(&mut self, text: &str) -> Result<(), Error> {
        let result = check_text(text).and_then(|()| match (self.depth, text) {
            (0, _) => Err(Error::Misuse),
            (_, "") => Ok(()),
            _ => (self.form.text)(self, text),
        });
        self.settle(result)
    }

    /// Appends a number as text.
    ///
    /// # Errors
    /// As [`Writer::text`].
    pub fn integer(&mut self, value: i32) -> Result<(), Error> {
        self.text(digits(value, &mut [0; 11]))
    }

    /// Ends the innermost element.
    ///
    /// # Errors
    /// [`Error::Misuse`] where none is open; [`Error::NoRoom`].
    pub fn end(&mut self) -> Result<(), Error> {
        let result = if self.depth == 0 { Err(Error::Misuse) } else { (self.form.end)(self) };
        self.settle(result)?;
        self.is_tag_open = false;
        self.depth -= 1;
        Ok(())
    }

    /// Ends the document, which begins at the room's begin, and returns its length.
    ///
    /// # Errors
    /// [`Error::Misuse`] where an element is open or none came; [`Error::NoRoom`].
    pub fn finish(mut self) -> Result<usize, Error> {
        let is_whole = self.depth == 0 && self.has_root;
        self.settle(if is_whole { Ok(()) } else { Err(Error::Misuse) })?;
        (self.form.finish)(&mut self)
    }

    /// Notes the first error, which is the result of all that follows.
    fn settle(&mut self, result: Result<(), Error>) -> Result<(), Error> {
        self.failed = self.failed.or(result.err());
        self.failed.map_or(Ok(()), Err)
    }

    /// The namespace that names without prefix have.
    pub(super) fn default_space(&self) -> &'a str {
        self.level().map_or("", |level| level.name.space)
    }

    pub(super) fn level(&self) -> Option<&Level<'a>> {
        self.levels.get(self.depth.checked_sub(1)?)?.as_ref()
    }

    pub(super) fn push(&mut self, level: Level<'a>) {
        if let Some(free) = self.levels.get_mut(self.depth) {
            *free = Some(level);
            self.depth += 1;
        }
    }
}

/// Letters, digits and what else names have; other characters than those of ASCII are not checked.
fn check_name(name: &str, has_prefix: bool) -> Result<(), Error> {
    let is_begin = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80;
    let is_rest = |byte: u8| {
        is_begin(byte)
            || byte.is_ascii_digit()
            || matches!(byte, b'-' | b'.')
            || (has_prefix && byte == b':')
    };
    let is_good = name.bytes().next().is_some_and(is_begin) && name.bytes().all(is_rest);
    if is_good { Ok(()) } else { Err(Error::Misuse) }
}

/// XML 1.0 §2.2: of the control characters only tab and the ends of lines.
fn check_text(text: &str) -> Result<(), Error> {
    let is_control = |byte: u8| byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r');
    if text.bytes().any(is_control) { Err(Error::Misuse) } else { Ok(()) }
}
