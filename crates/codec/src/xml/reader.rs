//! The scanner over a whole document, and over one that comes in blocks.

use super::Event;
use super::charset::{Transcoder, not_utf8};
use super::names::Names;
use super::scanner::{Kind, Scanner};
use super::tag::{Attribute, Declaration};
use crate::{Error, Limits};

/// Reads a document that is there as a whole.
#[derive(Debug)]
pub struct Reader<'a> {
    document: &'a str,
    at: usize,
    scanner: Scanner,
}

impl<'a> Reader<'a> {
    /// A reader of a document in UTF-8; [`super::to_utf8`] makes others so.
    ///
    /// # Errors
    /// Bytes that are not UTF-8.
    pub fn new(document: &'a [u8], limits: &Limits) -> Result<Self, Error> {
        let document = std::str::from_utf8(document).map_err(|error| not_utf8(0, &error))?;
        Ok(Self::of(document, limits))
    }

    /// A reader of a text.
    #[must_use]
    pub fn of(document: &'a str, limits: &Limits) -> Self {
        Self { document, at: 0, scanner: Scanner::new(limits) }
    }

    /// The next event; [`Event::Eof`] at the end, again and again.
    ///
    /// # Errors
    /// As [`Scanner::next`].
    #[inline(always)]
    #[expect(clippy::should_implement_trait, reason = "an iterator's item could not be an error")]
    pub fn next(&mut self) -> Result<Event<'a>, Error> {
        let rest = &self.document[self.at..];
        match self.scanner.advance(rest, true) {
            Ok(Some(kind)) => {
                self.at += self.scanner.token.used;
                Ok(self.scanner.event(kind, rest))
            }
            Ok(None) => Ok(Event::Eof),
            Err(error) => Err(*error),
        }
    }

    /// The kind of the next token and the document from it on, for whoever takes the event from the
    /// scanner without moving it.
    #[inline(always)]
    pub(crate) fn pull(&mut self) -> Result<(Kind, &'a str), Error> {
        let rest = &self.document[self.at..];
        let (kind, used) = self.scanner.pull(rest, true)?.unwrap_or((Kind::Eof, 0));
        self.at += used;
        Ok((kind, rest))
    }

    /// Bytes of the document that the events so far used.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// The attributes of the last start tag, declarations apart.
    #[must_use]
    pub fn attributes(&self) -> &[Attribute] {
        self.scanner.attributes()
    }

    /// The namespace declarations of the last start tag.
    #[must_use]
    pub fn declarations(&self) -> &[Declaration] {
        self.scanner.declarations()
    }

    /// All names met so far.
    #[must_use]
    pub fn names(&self) -> &Names {
        self.scanner.names()
    }

    /// The scanner below.
    #[must_use]
    pub fn scanner(&self) -> &Scanner {
        &self.scanner
    }
}

/// Reads a document that comes in blocks, cut anywhere, in any character set that
/// [`super::to_utf8`] takes. Offsets in errors of well-formedness are those of the text in UTF-8.
///
/// It holds what is not read yet: with blocks of a bounded size, a block and one token.
#[derive(Debug)]
pub struct Stream {
    text: String,
    /// Where in the text the next event begins.
    at: usize,
    transcoder: Transcoder,
    ended: bool,
    scanner: Scanner,
}

impl Stream {
    /// A reader before its first block.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            text: String::new(),
            at: 0,
            transcoder: Transcoder::default(),
            ended: false,
            scanner: Scanner::new(limits),
        }
    }

    /// Adds a block; `last` says that no other follows.
    ///
    /// # Errors
    /// Character sets that are not read; bytes that the set does not have, with their offset.
    pub fn push(&mut self, block: &[u8], last: bool) -> Result<(), Error> {
        self.text.drain(..self.at);
        self.at = 0;
        self.ended |= last;
        self.transcoder.push(block, last, &mut self.text)
    }

    /// The next event with the scanner, whose attributes and names belong to it; `None` if
    /// another block is needed.
    ///
    /// # Errors
    /// As [`Scanner::next`].
    #[inline(always)]
    #[expect(clippy::should_implement_trait, reason = "the event borrows from the stream")]
    pub fn next(&mut self) -> Result<Option<(Event<'_>, &Scanner)>, Error> {
        let found = self.scanner.next(&self.text[self.at..], self.ended)?;
        Ok(found.map(|(event, used)| {
            self.at += used;
            (event, &self.scanner)
        }))
    }

    /// As [`Reader::pull`]; `None` if another block is needed.
    #[inline(always)]
    pub(crate) fn pull(&mut self) -> Result<Option<(Kind, &str, &Scanner)>, Error> {
        let rest = &self.text[self.at..];
        match self.scanner.advance(rest, self.ended) {
            Ok(None) => Ok(None),
            Ok(Some(kind)) => {
                self.at += self.scanner.token.used;
                Ok(Some((kind, rest, &self.scanner)))
            }
            Err(error) => Err(*error),
        }
    }

    /// The scanner below.
    #[must_use]
    pub fn scanner(&self) -> &Scanner {
        &self.scanner
    }
}
