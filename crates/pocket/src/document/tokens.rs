//! Tables of tokens that both sides agree on.

use crate::Error;

/// The table that every longwire gateway has, `codec::wbxml`'s `soap.tokens`, packed.
static SOAP: &[u8] = include_bytes!("soap.packed");

/// Kinds of records of a packed table.
pub(super) mod kind {
    /// Tags of a page follow; the text is their namespace.
    pub(in crate::document) const TAG_PAGE: u8 = 0;
    /// A tag's name.
    pub(in crate::document) const TAG: u8 = 1;
    /// Attributes of a page follow.
    pub(in crate::document) const START_PAGE: u8 = 2;
    /// An attribute's name, or its name, `=` and the begin of its value.
    pub(in crate::document) const START: u8 = 3;
    /// Values of a page follow.
    pub(in crate::document) const VALUE_PAGE: u8 = 4;
    /// A part of an attribute's value.
    pub(in crate::document) const VALUE: u8 = 5;
}

/// A table of tokens (WAP-192 §5.8.2, §5.8.3), as `codec::wbxml::TokenTable::packed` packs it: the
/// public identifier's number in four bytes, then records of kind, code, length and text. Behind a
/// record of a page, whose code is its number, stand those of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens<'a> {
    packed: &'a [u8],
}

/// A record of a table with the page that it stands on.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) kind: u8,
    pub(super) page: u8,
    pub(super) code: u8,
    /// What it stands for, and the namespace of the page: as bytes, since of all entries that are
    /// looked at one is read.
    pub(super) text: &'a [u8],
    pub(super) space: &'a [u8],
}

impl<'a> Entry<'a> {
    pub(super) fn text(&self) -> Result<&'a str, Error> {
        core::str::from_utf8(self.text).map_err(|_| Error::Malformed)
    }

    pub(super) fn space(&self) -> Result<&'a str, Error> {
        core::str::from_utf8(self.space).map_err(|_| Error::Malformed)
    }
}

impl<'a> Tokens<'a> {
    /// No token: all names are literals, which any reader of WBXML knows.
    pub const NONE: Tokens<'static> = Tokens { packed: &[0, 0, 0, 1] };
    /// The names of SOAP, of WS-Addressing and WS-Notification, and the namespaces that services
    /// use, as longwire's gateway knows them.
    pub const SOAP: Tokens<'static> = Tokens { packed: SOAP };

    /// A table that was packed.
    ///
    /// # Errors
    /// [`Error::Malformed`] where a record is cut off, of no kind, or no text.
    pub fn new(packed: &'a [u8]) -> Result<Self, Error> {
        let mut rest = packed.get(4..).ok_or(Error::Malformed)?;
        while let [kind, _, len, behind @ ..] = rest {
            let text = behind.get(..usize::from(*len)).ok_or(Error::Malformed)?;
            if *kind > kind::VALUE || core::str::from_utf8(text).is_err() {
                return Err(Error::Malformed);
            }
            rest = behind.get(usize::from(*len)..).unwrap_or_default();
        }
        if rest.is_empty() { Ok(Self { packed }) } else { Err(Error::Malformed) }
    }

    /// The bytes that it consists of.
    #[must_use]
    pub fn packed(self) -> &'a [u8] {
        self.packed
    }

    /// The number of the public identifier.
    pub(super) fn number(self) -> usize {
        let bytes = self.packed.first_chunk().copied().unwrap_or_default();
        usize::try_from(u32::from_be_bytes(bytes)).unwrap_or(usize::MAX)
    }

    pub(super) fn entries(self) -> Entries<'a> {
        Entries { rest: self.packed.get(4..).unwrap_or_default(), page: 0, space: &[] }
    }

    /// What a token stands for.
    pub(super) fn find(self, kind: u8, page: u8, code: u8) -> Option<Entry<'a>> {
        self.entries().find(|one| (one.kind, one.page, one.code) == (kind, page, code))
    }
}

/// The records of a table but those of pages.
pub(super) struct Entries<'a> {
    rest: &'a [u8],
    page: u8,
    space: &'a [u8],
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (&[kind, code, len], rest) = self.rest.split_first_chunk()?;
            let (text, rest) = rest.split_at_checked(usize::from(len))?;
            self.rest = rest;
            match kind {
                kind::TAG_PAGE | kind::START_PAGE | kind::VALUE_PAGE => {
                    (self.page, self.space) = (code, text);
                }
                _ => {
                    let (page, space) = (self.page, self.space);
                    return Some(Entry { kind, page, code, text, space });
                }
            }
        }
    }
}
