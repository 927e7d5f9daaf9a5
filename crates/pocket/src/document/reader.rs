//! A document that is read from a slice.

use super::name::Found;
use super::scope::Scopes;
use super::tokens::Tokens;
use super::{Form, MAX_DEPTH};
use crate::Error;
use crate::input::Input;

/// What a document consists of. Attributes, comments and instructions are left out.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// An element begins.
    Start(Found<'a>),
    /// Text, or a piece of it.
    Text(&'a str),
    /// A character of a text.
    Char(char),
    /// The innermost element ends.
    End,
    /// The document ends.
    Over,
}

/// An element that is open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open<'a> {
    /// Its name as written, where the form has one at its end too.
    pub(super) written: &'a str,
    /// Items that it still has, where the form counts them.
    pub(super) left: u32,
}

/// Reads a document event by event. After an error there is nothing more.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    pub(super) form: &'static Form,
    pub(super) tokens: Tokens<'a>,
    pub(super) whole: &'a [u8],
    pub(super) input: Input<'a>,
    pub(super) scopes: Scopes<'a>,
    open: [Option<Open<'a>>; MAX_DEPTH],
    pub(super) depth: usize,
    pub(super) has_begun: bool,
    pub(super) has_root: bool,
    /// The element that was begun has no content.
    pub(super) is_empty: bool,
    pub(super) tag_page: u8,
    pub(super) attribute_page: u8,
    /// The string table of WBXML.
    pub(super) strings: &'a [u8],
    /// Items of CBOR around the root that are still to come.
    pub(super) outside: u32,
    pub(super) numbers: Numbers<'a>,
    pub(super) failed: Option<Error>,
}

/// Names and values of CBOR that are referred to by number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers<'a> {
    /// How many came.
    pub(super) names: u32,
    pub(super) values: u32,
    /// This reader only looks for one of them.
    pub(super) wanted: Option<(bool, u32)>,
    pub(super) found: Option<&'a str>,
    /// Bytes that were read again to find some.
    pub(super) steps: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the begin of a document. `tokens` says what numbers of WBXML mean.
    #[must_use]
    pub fn new(document: &'a [u8], form: &'static Form, tokens: Tokens<'a>) -> Self {
        Self {
            form,
            tokens,
            whole: document,
            input: Input::new(document),
            scopes: Scopes::default(),
            open: [None; MAX_DEPTH],
            depth: 0,
            has_begun: false,
            has_root: false,
            is_empty: false,
            tag_page: 0,
            attribute_page: 0,
            strings: &[],
            outside: 0,
            numbers: Numbers::default(),
            failed: None,
        }
    }

    /// The next event; [`Event::Over`] again and again at the end.
    ///
    /// # Errors
    /// What is wrong with the document, and what of it is not read here; the same again afterwards.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Event<'a>, Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if core::mem::take(&mut self.is_empty) {
            self.pop()?;
            return Ok(Event::End);
        }
        let event = (self.form.next)(self);
        self.failed = event.as_ref().err().copied();
        event
    }

    /// How many elements are open.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    pub(super) fn push(&mut self, open: Open<'a>) -> Result<(), Error> {
        *self.open.get_mut(self.depth).ok_or(Error::TooDeep)? = Some(open);
        self.depth += 1;
        Ok(())
    }

    /// Closes the innermost element.
    pub(super) fn pop(&mut self) -> Result<Open<'a>, Error> {
        let depth = self.depth.checked_sub(1).ok_or(Error::Malformed)?;
        self.depth = depth;
        self.scopes.leave(depth);
        self.open.get(depth).copied().flatten().ok_or(Error::Malformed)
    }

    pub(super) fn top(&mut self) -> Option<&mut Open<'a>> {
        self.open.get_mut(self.depth.checked_sub(1)?)?.as_mut()
    }
}
