//! The scanner over a whole document, and over one that comes in blocks.

use super::names::Names;
use super::scanner::Scanner;
use super::tag::{Attribute, Declaration};
use super::{Event, NAME};
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
            Err(error) => Err(error),
        }
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

/// Reads a document that comes in blocks, cut anywhere.
///
/// It holds what is not read yet: with blocks of a bounded size, a block and one token.
#[derive(Debug)]
pub struct Stream {
    text: String,
    /// Where in the text the next event begins.
    at: usize,
    /// The begin of a character whose rest is not there.
    partial: Vec<u8>,
    ended: bool,
    /// Bytes of the blocks so far.
    pushed: u64,
    scanner: Scanner,
}

impl Stream {
    /// A reader before its first block.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            text: String::new(),
            at: 0,
            partial: Vec::new(),
            ended: false,
            pushed: 0,
            scanner: Scanner::new(limits),
        }
    }

    /// Adds a block; `last` says that no other follows.
    ///
    /// # Errors
    /// Bytes that are not UTF-8, with their offset.
    pub fn push(&mut self, block: &[u8], last: bool) -> Result<(), Error> {
        self.text.drain(..self.at);
        self.at = 0;
        let begin = self.pushed - self.partial.len() as u64;
        let mut block = block;
        while let Some((byte, rest)) = block.split_first().filter(|_| !self.partial.is_empty()) {
            self.partial.push(*byte);
            block = rest;
            self.pushed += 1;
            match std::str::from_utf8(&self.partial) {
                Ok(char) => {
                    self.text.push_str(char);
                    self.partial.clear();
                }
                Err(error) if error.error_len().is_some() => return Err(not_utf8(begin, &error)),
                Err(_) => {}
            }
        }
        let whole = match std::str::from_utf8(block) {
            Ok(text) => text,
            Err(error) if error.error_len().is_some() => {
                return Err(not_utf8(self.pushed, &error));
            }
            Err(error) => {
                let (whole, partial) = block.split_at(error.valid_up_to());
                self.partial.extend_from_slice(partial);
                std::str::from_utf8(whole).unwrap_or("")
            }
        };
        self.text.push_str(whole);
        self.pushed += block.len() as u64;
        self.ended |= last;
        if last && !self.partial.is_empty() {
            let what = "half a character at the end".to_owned();
            return Err(Error::Malformed { codec: NAME, offset: self.pushed, what });
        }
        Ok(())
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

    /// The scanner below.
    #[must_use]
    pub fn scanner(&self) -> &Scanner {
        &self.scanner
    }
}

fn not_utf8(before: u64, error: &std::str::Utf8Error) -> Error {
    let offset = before + error.valid_up_to() as u64;
    Error::Malformed { codec: NAME, offset, what: "not UTF-8".to_owned() }
}
