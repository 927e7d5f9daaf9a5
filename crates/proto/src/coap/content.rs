//! A message of its own: code, options and payload, without what a transport adds.

use bytes::Bytes;

use super::option::{self, Number};
use super::{Code, Datagram, Header, Kind, Message, Token, Uint, Writer};
use crate::Error;

/// Most options of a message. The longest URI of short segments has as many; each takes memory
/// that a datagram of one byte an option would multiply.
pub const MAX_OPTIONS: usize = 256;
/// Most bytes of an option's head.
const MAX_OPTION_HEAD_BYTES: usize = 5;

/// Code, options in order, and payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The method or the response's code.
    pub code: Code,
    options: Vec<(Number, Bytes)>,
    /// The payload.
    pub payload: Bytes,
}

impl Content {
    /// No options, no payload.
    #[must_use]
    pub fn new(code: Code) -> Self {
        Self { code, options: Vec::new(), payload: Bytes::new() }
    }

    /// A message that was read. Elective options with a wrong length, or that occur too often, are
    /// left out (RFC 7252 §5.4.3, §5.4.5). Refuses more than [`MAX_OPTIONS`].
    pub fn of(message: &Message<'_>) -> Result<Self, Error> {
        let payload = Bytes::copy_from_slice(message.payload);
        let mut content = Self { payload, ..Self::new(message.code) };
        let (mut before, mut count) = (None, 0);
        for (number, value) in message.options {
            count = if before == Some(number) { count + 1 } else { 0 };
            before = Some(number);
            let is_known = option::definition(number).is_some();
            if is_known && !option::is_allowed(number, value.len(), count) {
                continue;
            }
            if content.options.len() >= MAX_OPTIONS {
                let limit = MAX_OPTIONS as u64;
                return Err(Error::Limit { what: "options of a message", value: limit + 1, limit });
            }
            content.options.push((number, Bytes::copy_from_slice(value)));
        }
        Ok(content)
    }

    /// The same with this payload.
    #[must_use]
    pub fn with_payload(mut self, payload: impl Into<Bytes>) -> Self {
        self.payload = payload.into();
        self
    }

    /// The same with one more option.
    #[must_use]
    pub fn with(mut self, number: Number, value: &[u8]) -> Self {
        self.push(number, value);
        self
    }

    /// The same with one more option that is a number.
    #[must_use]
    pub fn with_uint(self, number: Number, value: u32) -> Self {
        self.with(number, Uint::new(value).as_slice())
    }

    /// Adds an option behind those with the same number.
    pub fn push(&mut self, number: Number, value: &[u8]) {
        let at = self.options.partition_point(|(other, _)| *other <= number);
        self.options.insert(at, (number, Bytes::copy_from_slice(value)));
    }

    /// Adds an option that is a number.
    pub fn push_uint(&mut self, number: Number, value: u32) {
        self.push(number, Uint::new(value).as_slice());
    }

    /// Puts this in place of all options with the number.
    pub fn set(&mut self, number: Number, value: &[u8]) {
        self.remove(number);
        self.push(number, value);
    }

    /// Takes all options with this number away.
    pub fn remove(&mut self, number: Number) {
        self.options.retain(|(other, _)| *other != number);
    }

    /// The value of the first option with this number.
    #[must_use]
    pub fn first(&self, number: Number) -> Option<&[u8]> {
        self.all(number).next()
    }

    /// The same as a number.
    #[must_use]
    pub fn uint(&self, number: Number) -> Option<u32> {
        self.first(number).and_then(option::uint)
    }

    /// The values of all options with this number.
    pub fn all(&self, number: Number) -> impl Iterator<Item = &[u8]> {
        self.options().filter(move |(other, _)| *other == number).map(|(_, value)| value)
    }

    /// All options, in order.
    pub fn options(&self) -> impl Iterator<Item = (Number, &[u8])> {
        self.options.iter().map(|(number, value)| (*number, value.as_ref()))
    }

    /// The datagram; refuses an option over 65,804 bytes.
    pub fn encode(&self, kind: Kind, mid: u16, token: Token) -> Result<Bytes, Error> {
        let options: usize = self.options().map(|(_, v)| v.len() + MAX_OPTION_HEAD_BYTES).sum();
        let mut room = vec![0; 4 + 8 + options + 1 + self.payload.len()];
        let mut writer = Writer::new(&mut room, &Header { kind, code: self.code, mid, token });
        self.options().try_for_each(|(number, value)| writer.option(number, value))?;
        writer.payload(&self.payload)?;
        let len = writer.finish()?;
        room.truncate(len);
        Ok(room.into())
    }
}

impl TryFrom<&Datagram<'_>> for Content {
    type Error = Error;

    fn try_from(datagram: &Datagram<'_>) -> Result<Self, Error> {
        Self::of(&datagram.message)
    }
}
