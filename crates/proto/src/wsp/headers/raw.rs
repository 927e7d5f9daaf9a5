//! Where headers begin and end, whatever they mean (WAP-230 §8.4.1, §8.4.2.6).
//!
//! Only `core` is used here and nothing is allocated.

use super::super::reader::Reader;
use crate::Error;

/// The first octet of a text that would else begin with an octet over 127 (WAP-230 §8.4.2.1).
pub(super) const QUOTE: u8 = 127;
/// The first octet of a value whose length does not fit below it (WAP-230 §8.4.2.2).
pub(super) const LENGTH_QUOTE: u8 = 31;
/// The octet before the number of a code page (WAP-230 §8.4.2.6).
const SHIFT: u8 = 127;
/// The code page that headers begin in.
const DEFAULT_PAGE: u8 = 1;

/// The name of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// A field of a code page.
    Known {
        /// The code page; that of WAP-230 table 39 is 1.
        page: u8,
        /// The number, 0 to 127.
        code: u8,
    },
    /// Any field by its name.
    Text(&'a [u8]),
}

/// A value as its first octet says (WAP-230 §8.4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number, 0 to 127.
    Short(u8),
    /// Text without its terminator and without a Quote before it.
    Text(&'a [u8]),
    /// Octets of a counted value, without their count; those of a long integer too.
    Data(&'a [u8]),
}

/// The headers of a PDU, as an iterator. Behind an error there is nothing more: where the next
/// header would begin is not known.
#[derive(Clone, Copy, Debug)]
pub struct Headers<'a> {
    reader: Reader<'a>,
    page: u8,
}

impl<'a> Headers<'a> {
    /// Those in `bytes`, which begin behind a content type, if there is one.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { reader: Reader::new(bytes), page: DEFAULT_PAGE }
    }

    /// Takes shifts to other code pages, and the name behind them.
    fn name(&mut self) -> Result<Option<Name<'a>>, Error> {
        while let Some(first) = self.reader.peek() {
            match first {
                0 => return Err(Error::Peer { what: "no header begins with", value: 0 }),
                // A shift in one octet: the pages 1 to 31.
                1..=31 => self.page = self.reader.byte("a code page")?,
                SHIFT => {
                    self.reader.byte("a shift of code pages")?;
                    self.page = self.reader.byte("a code page")?;
                }
                32..SHIFT => {
                    return self.reader.terminated("a header's name").map(Name::Text).map(Some);
                }
                128.. => {
                    let code = self.reader.byte("a header's name")? & 0x7f;
                    return Ok(Some(Name::Known { page: self.page, code }));
                }
            }
        }
        Ok(None)
    }

    fn header(&mut self) -> Result<Option<(Name<'a>, Value<'a>)>, Error> {
        let Some(name) = self.name()? else { return Ok(None) };
        value(&mut self.reader).map(|value| Some((name, value)))
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = Result<(Name<'a>, Value<'a>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let header = self.header().transpose();
        if !matches!(header, Some(Ok(_))) {
            self.reader = Reader::new(&[]);
        }
        header
    }
}

/// Takes a value by its first octet (WAP-230 §8.4.1.2).
pub(super) fn value<'a>(reader: &mut Reader<'a>) -> Result<Value<'a>, Error> {
    let what = "a header's value";
    match reader.peek() {
        None => Err(Error::Truncated { what }),
        Some(0..32) => counted(reader).map(Value::Data),
        Some(32..128) => text(reader).map(Value::Text),
        Some(128..) => reader.byte(what).map(|octet| Value::Short(octet & 0x7f)),
    }
}

/// Takes a counted value (WAP-230 §8.4.2.2, Value-length) and returns what is counted.
fn counted<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Error> {
    let what = "a counted value";
    let len = match reader.byte(what)? {
        LENGTH_QUOTE => return reader.counted(what),
        len => len,
    };
    reader.bytes(usize::from(len), what)
}

/// Takes a text without its terminator and without a Quote before it.
pub(super) fn text<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Error> {
    let text = reader.terminated("a text")?;
    Ok(text.strip_prefix(&[QUOTE]).unwrap_or(text))
}
