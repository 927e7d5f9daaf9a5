//! Bytes into items.

use crate::Error;

use super::{Head, Major, Shortest, double_of_half, float::double_of_single, shortest};

/// An item, or where one of several parts begins or ends. Floats are bits, so that they compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A number from 0 to 2^64 − 1.
    Unsigned(u64),
    /// −1 minus this.
    Negative(u64),
    /// A byte string, or a chunk of one.
    Bytes(&'a [u8]),
    /// A text string, or a chunk of one.
    Text(&'a str),
    /// Chunks of a byte string follow until the break.
    StartBytes,
    /// Chunks of a text string follow until the break.
    StartText,
    /// An array of so many items, or of those until the break.
    Array(Option<u64>),
    /// A map of so many pairs, or of those until the break.
    Map(Option<u64>),
    /// The tag of the item that follows.
    Tag(u64),
    /// `false`, `true`, `null` and the like, by number.
    Simple(u8),
    /// A float of 16 bits.
    Half(u16),
    /// A float of 32 bits.
    Single(u32),
    /// A float of 64 bits.
    Double(u64),
    /// End of what began with an indefinite length.
    Break,
}

impl Item<'_> {
    /// The value of a float of any size.
    #[must_use]
    pub fn float(self) -> Option<f64> {
        match self {
            Self::Half(bits) => Some(double_of_half(bits)),
            Self::Single(bits) => Some(double_of_single(bits)),
            Self::Double(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }
}

/// What is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// Chunks of this major type until a break.
    Chunks(Major),
    Array,
    Map,
    Tag,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    open: Open,
    /// Items to come, keys and values apart; `None` until a break.
    left: Option<u64>,
    /// Whether the next item of a map is a value.
    value: bool,
    /// Where the item that is open in this frame began.
    at: usize,
    /// The key before, for the order of keys.
    key: Option<(usize, usize)>,
}

const NO_FRAME: Frame = Frame { open: Open::Tag, left: None, value: false, at: 0, key: None };

/// Reads one data item with all that is nested in it, at most `DEPTH` deep (arrays, maps, tags and
/// chunked strings). After an error or the last part there is nothing more; [`Decoder::rest`] then
/// is what stands behind the item.
///
/// A text that is not UTF-8 is refused, which is validity (RFC 8949 §5.3.1), not well-formedness.
#[derive(Clone, Debug)]
pub struct Decoder<'a, const DEPTH: usize> {
    input: &'a [u8],
    at: usize,
    frames: [Frame; DEPTH],
    depth: usize,
    ended: bool,
    deterministic: bool,
}

impl<'a, const DEPTH: usize> Decoder<'a, DEPTH> {
    /// Reads the item that `input` begins with.
    #[must_use]
    pub fn new(input: &'a [u8]) -> Self {
        let frames = [NO_FRAME; DEPTH];
        Self { input, at: 0, frames, depth: 0, ended: false, deterministic: false }
    }

    /// As [`Decoder::new`], and refuses what is not core deterministic (RFC 8949 §4.2.1): heads and
    /// floats in the shortest form, lengths definite, keys in bytewise order and each once.
    #[must_use]
    pub fn deterministic(input: &'a [u8]) -> Self {
        Self { deterministic: true, ..Self::new(input) }
    }

    /// Bytes read; behind an error, where the item begins that was refused.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// What was not read.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.input.get(self.at..).unwrap_or_default()
    }

    fn top(&mut self) -> Option<&mut Frame> {
        self.frames.get_mut(self.depth.checked_sub(1)?)
    }

    fn take(&mut self) -> Result<Item<'a>, Error> {
        let rest = self.rest();
        let truncated = Error::Truncated { what: "a CBOR item" };
        let head = Head::take(rest)?.ok_or(truncated.clone())?;
        let body = rest.get(usize::from(head.len)..).unwrap_or_default();
        let is_break = head.major == Major::Simple && head.is_indefinite();
        if self.deterministic && !is_break {
            check_shortest(head)?;
        }
        self.expect(head, is_break)?;
        let mut len = usize::from(head.len);
        let count = (!head.is_indefinite()).then_some(head.argument);
        let item = match head.major {
            Major::Unsigned => Item::Unsigned(head.argument),
            Major::Negative => Item::Negative(head.argument),
            Major::Bytes if head.is_indefinite() => Item::StartBytes,
            Major::Text if head.is_indefinite() => Item::StartText,
            Major::Bytes | Major::Text => {
                let size = usize::try_from(head.argument).map_err(|_| truncated.clone())?;
                let bytes = body.get(..size).ok_or(truncated)?;
                len += size;
                string(head.major, bytes)?
            }
            Major::Array => Item::Array(count),
            Major::Map => Item::Map(count),
            Major::Tag => Item::Tag(head.argument),
            Major::Simple => simple(head)?,
        };
        self.nest(item)?;
        self.at += len;
        Ok(item)
    }

    /// Whether this may stand here.
    fn expect(&mut self, head: Head, is_break: bool) -> Result<(), Error> {
        let at = self.at;
        let value = u64::from(head.major as u8) << 5 | u64::from(head.info);
        let Some(top) = self.top() else {
            if is_break {
                return Err(Error::Peer { what: "a break where nothing is open", value });
            }
            return Ok(());
        };
        if is_break {
            // RFC 8949 §3.2.2: a break cannot stand where a value is due.
            return match top {
                Frame { left: None, value: false, .. } => Ok(()),
                _ => Err(Error::Peer { what: "a break where an item is due", value }),
            };
        }
        if let Open::Chunks(major) = top.open {
            // RFC 8949 §3.2.3: chunks are definite strings of the same type.
            if head.major != major || head.is_indefinite() {
                return Err(Error::Peer { what: "a chunk of another type", value });
            }
            return Ok(());
        }
        top.at = at;
        Ok(())
    }

    /// Opens what `item` opens.
    fn nest(&mut self, item: Item<'_>) -> Result<(), Error> {
        let too_many = |value| Error::Limit { what: "items of a map", value, limit: u64::MAX / 2 };
        let (open, left) = match item {
            Item::Array(left) => (Open::Array, left),
            Item::Map(None) => (Open::Map, None),
            Item::Map(Some(pairs)) => {
                (Open::Map, Some(pairs.checked_mul(2).ok_or(too_many(pairs))?))
            }
            Item::Tag(_) => (Open::Tag, Some(1)),
            Item::StartBytes => (Open::Chunks(Major::Bytes), None),
            Item::StartText => (Open::Chunks(Major::Text), None),
            _ => return Ok(()),
        };
        let value = self.depth as u64 + 1;
        let limit = DEPTH as u64;
        let frame = self.frames.get_mut(self.depth).ok_or(Error::Limit {
            what: "depth of nesting of CBOR",
            value,
            limit,
        })?;
        *frame = Frame { open, left, ..NO_FRAME };
        self.depth += 1;
        Ok(())
    }

    /// Counts the item that ended, and closes what ends with it.
    fn close(&mut self, item: Item<'_>) -> Result<(), Error> {
        match item {
            Item::Break => self.depth -= 1,
            Item::Array(Some(0)) | Item::Map(Some(0)) => self.depth -= 1,
            Item::Array(_) | Item::Map(_) | Item::Tag(_) => return Ok(()),
            Item::StartBytes | Item::StartText => return Ok(()),
            _ => {}
        }
        let (input, end, deterministic) = (self.input, self.at, self.deterministic);
        while let Some(top) = self.top() {
            if top.open == Open::Map {
                if deterministic && !top.value {
                    let key = (top.at, end);
                    ordered(input, top.key, key)?;
                    top.key = Some(key);
                }
                top.value = !top.value;
            }
            let Some(left) = &mut top.left else { return Ok(()) };
            *left -= 1;
            if *left > 0 {
                return Ok(());
            }
            self.depth -= 1;
        }
        self.ended = true;
        Ok(())
    }
}

/// RFC 8949 §4.2.1: keys ascend by the bytes of their encoding.
fn ordered(input: &[u8], before: Option<(usize, usize)>, key: (usize, usize)) -> Result<(), Error> {
    let bytes = |(from, to): (usize, usize)| input.get(from..to).unwrap_or_default();
    match before {
        Some(before) if bytes(before) >= bytes(key) => {
            Err(Error::Peer { what: "keys out of order or doubled", value: key.0 as u64 })
        }
        _ => Ok(()),
    }
}

/// RFC 8949 §4.2.1: shortest heads, definite lengths.
fn check_shortest(head: Head) -> Result<(), Error> {
    let value = u64::from(head.info);
    let long = match (head.major, head.info) {
        (_, 31) => return Err(Error::Peer { what: "indefinite length", value }),
        (Major::Simple, 26 | 27) => match simple(head)?.float().map(shortest) {
            Some(Shortest::Half(_)) => true,
            Some(Shortest::Single(_)) => head.info == 27,
            _ => false,
        },
        _ => !head.is_shortest(),
    };
    if long {
        return Err(Error::Peer { what: "longer than the shortest form", value });
    }
    Ok(())
}

fn string(major: Major, bytes: &[u8]) -> Result<Item<'_>, Error> {
    if major == Major::Bytes {
        return Ok(Item::Bytes(bytes));
    }
    match core::str::from_utf8(bytes) {
        Ok(text) => Ok(Item::Text(text)),
        Err(error) => {
            Err(Error::Peer { what: "text that is not UTF-8", value: error.valid_up_to() as u64 })
        }
    }
}

fn simple<'a>(head: Head) -> Result<Item<'a>, Error> {
    let odd = |_| Error::Peer { what: "simple value", value: head.argument };
    Ok(match head.info {
        31 => Item::Break,
        25 => Item::Half(u16::try_from(head.argument).map_err(odd)?),
        26 => Item::Single(u32::try_from(head.argument).map_err(odd)?),
        27 => Item::Double(head.argument),
        _ => Item::Simple(u8::try_from(head.argument).map_err(odd)?),
    })
}

impl<'a, const DEPTH: usize> Iterator for Decoder<'a, DEPTH> {
    type Item = Result<Item<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let begin = self.at;
        let item = self.take().and_then(|item| self.close(item).map(|()| item));
        if item.is_err() {
            self.ended = true;
            self.at = begin;
        }
        Some(item)
    }
}

fn check_all<const DEPTH: usize>(mut decoder: Decoder<'_, DEPTH>) -> Result<(), (usize, Error)> {
    while let Some(item) = decoder.next() {
        item.map_err(|error| (decoder.offset(), error))?;
    }
    match decoder.rest().len() as u64 {
        0 => Ok(()),
        value => Err((decoder.offset(), Error::Peer { what: "bytes behind the item", value })),
    }
}

/// Whether `input` is exactly one well-formed item (RFC 8949 appendix C) of at most `DEPTH` levels
/// with texts in UTF-8; else where it is not and why.
pub fn check<const DEPTH: usize>(input: &[u8]) -> Result<(), (usize, Error)> {
    check_all(Decoder::<DEPTH>::new(input))
}

/// As [`check`], and core deterministic (RFC 8949 §4.2.1).
pub fn check_deterministic<const DEPTH: usize>(input: &[u8]) -> Result<(), (usize, Error)> {
    check_all(Decoder::<DEPTH>::deterministic(input))
}
