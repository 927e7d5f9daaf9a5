//! Properties of packets (MQTT 5 §2.2.2).

use std::fmt;
use std::str;

use bytes::{Bytes, BytesMut};

use super::frame::{MAX_REMAINING_BYTES, varint_len};
use super::id::{Id, Ids, Kind};
use super::reader::{CUT, varint};
use super::reason::Reason;
use super::refused::Refused;
use super::text::{MAX_TEXT_BYTES, check};
use super::topic;
use crate::Error;

/// The properties of a packet or a will, as they are on the wire and in that order.
///
/// They are checked when they are read or added, kept as bytes, and read again when they are asked
/// for. Those of a packet that came in share its memory; to have none costs nothing.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Properties {
    block: Bytes,
    ids: Ids,
    /// Those that are there more than once.
    repeated: Ids,
}

/// A property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Property<'a> {
    /// Which it is.
    pub id: Id,
    /// What it says.
    pub value: Value<'a>,
}

/// The value of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number, which the property has in one, two or four bytes or in a variable byte integer.
    Number(u32),
    /// A string.
    Text(&'a str),
    /// Binary data.
    Binary(&'a [u8]),
    /// The name and the value of a user property.
    Pair(&'a str, &'a str),
}

impl Properties {
    /// No properties.
    pub const NONE: Self = Self { block: Bytes::new(), ids: Ids::NONE, repeated: Ids::NONE };

    /// Reads properties without their length. Those not in `allowed` are refused.
    ///
    /// # Errors
    ///
    /// - Malformed Packet: an identifier that the packet cannot have, or a value that is not of its
    ///   type (MQTT 5 §2.2.2.2).
    /// - Protocol Error: one that is there twice, or whose value is not allowed (§3.1.2.11 and the
    ///   like); two user properties may be there, and two subscription identifiers where `allowed`
    ///   is for PUBLISH (§3.3.2.3.8).
    /// - Topic Alias invalid: the topic alias 0 (§3.3.2.3.4).
    /// - Topic Name invalid: a response topic that is no topic's name (§3.3.2.3.5).
    pub fn decode(block: Bytes, allowed: Ids) -> Result<Self, Refused> {
        let (mut ids, mut repeated, mut rest) = (Ids::NONE, Ids::NONE, &block[..]);
        while !rest.is_empty() {
            let (id, part, after) = split(rest)?;
            if !allowed.has(id) {
                return Err(Refused::malformed("a property that this packet cannot have"));
            }
            check_part(id, part)?;
            if ids.has(id) {
                repeated.add(id);
            }
            ids.add(id);
            rest = after;
        }
        if !may_repeat(allowed).covers(repeated) {
            return Err(Refused::protocol("a property that is there twice"));
        }
        Ok(Self { block, ids, repeated })
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.block.is_empty()
    }

    /// Whether one is there.
    #[must_use]
    pub fn has(&self, id: Id) -> bool {
        self.ids.has(id)
    }

    /// Which are there.
    #[must_use]
    pub fn ids(&self) -> Ids {
        self.ids
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = Property<'_>> {
        Raw(&self.block).map(|raw| Property { id: raw.id, value: raw.part.value(raw.id) })
    }

    /// The first with an identifier.
    #[must_use]
    pub fn get(&self, id: Id) -> Option<Value<'_>> {
        if !self.has(id) {
            return None;
        }
        Raw(&self.block).find(|raw| raw.id == id).map(|raw| raw.part.value(id))
    }

    /// The number that a property says.
    #[must_use]
    pub fn number(&self, id: Id) -> Option<u32> {
        if let Value::Number(number) = self.get(id)? { Some(number) } else { None }
    }

    /// The string that a property says.
    #[must_use]
    pub fn text(&self, id: Id) -> Option<&str> {
        if let Value::Text(text) = self.get(id)? { Some(text) } else { None }
    }

    /// The binary data that a property says.
    #[must_use]
    pub fn binary(&self, id: Id) -> Option<&[u8]> {
        if let Value::Binary(bytes) = self.get(id)? { Some(bytes) } else { None }
    }

    /// The user properties, in order; a name may be there twice (MQTT 5 §3.3.2.3.7).
    pub fn user(&self) -> impl Iterator<Item = (&str, &str)> {
        let block = if self.has(Id::USER_PROPERTY) { &self.block[..] } else { &[] };
        Raw(block).filter_map(|raw| match raw.part.value(raw.id) {
            Value::Pair(name, value) => Some((name, value)),
            _ => None,
        })
    }

    /// The subscription identifiers, in order (MQTT 5 §3.3.2.3.8).
    pub fn subscription_identifiers(&self) -> impl Iterator<Item = u32> {
        let is_there = self.has(Id::SUBSCRIPTION_IDENTIFIER);
        let block = if is_there { &self.block[..] } else { &[] };
        Raw(block).filter_map(|raw| match (raw.id, raw.part) {
            (Id::SUBSCRIPTION_IDENTIFIER, Part::Number(number)) => Some(number),
            _ => None,
        })
    }

    /// Adds a property at the end; these have memory of their own afterwards. Which packet may have
    /// it, and which may have it twice, is checked when the packet is written.
    ///
    /// # Errors
    ///
    /// [`Error::Caller`] where the value is not of the property's type, is too large for it or not
    /// allowed; [`Error::Limit`] where the properties would be longer than any packet.
    pub fn push(&mut self, id: Id, value: Value<'_>) -> Result<(), Error> {
        let mut block = BytesMut::with_capacity(self.block.len() + value_len(id, value) + 1);
        block.extend_from_slice(&self.block);
        write(id, value, &mut block)?;
        let len = block.len();
        if len > MAX_REMAINING_BYTES {
            let (value, limit) = (len as u64, MAX_REMAINING_BYTES as u64);
            return Err(Error::Limit { what: "properties in bytes", value, limit });
        }
        if self.ids.has(id) {
            self.repeated.add(id);
        }
        self.ids.add(id);
        self.block = block.freeze();
        Ok(())
    }

    /// As [`Self::push`], for properties that are made at once.
    ///
    /// # Errors
    ///
    /// As [`Self::push`].
    pub fn with(mut self, id: Id, value: Value<'_>) -> Result<Self, Error> {
        self.push(id, value)?;
        Ok(self)
    }

    /// These without some. Where none of those is there it copies nothing.
    #[must_use]
    pub fn without(&self, ids: Ids) -> Self {
        self.keep(|id| !ids.has(id))
    }

    /// Only those that are in a set.
    #[must_use]
    pub fn only(&self, ids: Ids) -> Self {
        self.keep(|id| ids.has(id))
    }

    fn keep(&self, keeps: impl Fn(Id) -> bool) -> Self {
        if Raw(&self.block).all(|raw| keeps(raw.id)) {
            return self.clone();
        }
        let mut block = BytesMut::new();
        let (mut ids, mut repeated) = (Ids::NONE, Ids::NONE);
        for raw in Raw(&self.block).filter(|raw| keeps(raw.id)) {
            block.extend_from_slice(raw.bytes);
            if ids.has(raw.id) {
                repeated.add(raw.id);
            }
            ids.add(raw.id);
        }
        Self { block: block.freeze(), ids, repeated }
    }

    /// These with a number in place of what the first of an identifier says; where there is none
    /// they stay as they are.
    ///
    /// # Errors
    ///
    /// As [`Self::push`].
    pub fn with_number(&self, id: Id, number: u32) -> Result<Self, Error> {
        if !self.has(id) {
            return Ok(self.clone());
        }
        let mut block = BytesMut::with_capacity(self.block.len() + 3);
        let mut is_done = false;
        for raw in Raw(&self.block) {
            if raw.id == id && !is_done {
                is_done = true;
                write(id, Value::Number(number), &mut block)?;
            } else {
                block.extend_from_slice(raw.bytes);
            }
        }
        Ok(Self { block: block.freeze(), ids: self.ids, repeated: self.repeated })
    }

    /// The same properties in memory of their own, which keep no packet in memory.
    #[must_use]
    pub fn to_owned_bytes(&self) -> Self {
        Self { block: Bytes::copy_from_slice(&self.block), ids: self.ids, repeated: self.repeated }
    }

    /// As they are on the wire, without their length.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.block
    }

    /// How many bytes they have on the wire, with their length.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        varint_len(self.block.len()) + self.block.len()
    }

    /// Whether a packet may have these: each identifier is one of `allowed`, and none is there
    /// twice that may not be.
    pub(super) fn fits(&self, allowed: Ids) -> Result<(), Error> {
        if !allowed.covers(self.ids) {
            return Err(Error::Caller { what: "a property that this packet cannot have" });
        }
        if !may_repeat(allowed).covers(self.repeated) {
            return Err(Error::Caller { what: "a property that is there twice" });
        }
        Ok(())
    }
}

impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_map();
        for property in self.iter() {
            list.entry(&property.id.name(), &property.value);
        }
        list.finish()
    }
}

/// The value of a property whose strings are not looked at.
#[derive(Clone, Copy)]
enum Part<'a> {
    Number(u32),
    Bytes(&'a [u8]),
    Pair(&'a [u8], &'a [u8]),
}

impl<'a> Part<'a> {
    /// The value, where its strings were checked before.
    fn value(self, id: Id) -> Value<'a> {
        let text = |bytes| str::from_utf8(bytes).unwrap_or_default();
        match self {
            Self::Number(number) => Value::Number(number),
            Self::Bytes(bytes) if id.kind() == Kind::Text => Value::Text(text(bytes)),
            Self::Bytes(bytes) => Value::Binary(bytes),
            Self::Pair(name, value) => Value::Pair(text(name), text(value)),
        }
    }
}

/// A property and its bytes.
struct RawProperty<'a> {
    id: Id,
    part: Part<'a>,
    bytes: &'a [u8],
}

/// The properties of a block that was checked.
struct Raw<'a>(&'a [u8]);

impl<'a> Iterator for Raw<'a> {
    type Item = RawProperty<'a>;

    fn next(&mut self) -> Option<RawProperty<'a>> {
        let (id, part, after) = split(self.0).ok()?;
        let bytes = self.0.get(..self.0.len() - after.len())?;
        self.0 = after;
        Some(RawProperty { id, part, bytes })
    }
}

/// The properties that may be there more than once in a packet that may have `allowed`; others may
/// not (MQTT 5 §3.1.2.11 and the like).
fn may_repeat(allowed: Ids) -> Ids {
    // MQTT 5 §3.3.2.3.8 allows several in a PUBLISH, §3.8.2.1.2 one in a SUBSCRIBE.
    if allowed == Ids::PUBLISH {
        return Ids::new(&[Id::USER_PROPERTY, Id::SUBSCRIPTION_IDENTIFIER]);
    }
    Ids::new(&[Id::USER_PROPERTY])
}

/// What the standard allows a property to say.
fn check_part(id: Id, part: Part<'_>) -> Result<(), Refused> {
    match part {
        Part::Number(number) => check_number(id, number),
        // MQTT 5 §3.3.2.3.5, MQTT-3.3.2-14.
        Part::Bytes(topic) if id == Id::RESPONSE_TOPIC => topic::check_name(topic),
        Part::Bytes(bytes) if id.kind() == Kind::Text => check(bytes),
        Part::Bytes(_) => Ok(()),
        // MQTT 5 §1.5.7, MQTT-1.5.7-1.
        Part::Pair(name, value) => check(name).and_then(|()| check(value)),
    }
}

/// What the standard allows a number to be, beyond its type.
fn check_number(id: Id, number: u32) -> Result<(), Refused> {
    let what = match id {
        // MQTT 5 §3.1.2.11.7, §3.1.2.11.6, §3.2.2.3.4, §3.2.2.3.5, §3.2.2.3.11 to 13, §3.3.2.3.2.
        _ if id.kind() == Kind::Byte && number > 1 => "a property that is neither 0 nor 1",
        // MQTT 5 §3.1.2.11.3, §3.2.2.3.3.
        Id::RECEIVE_MAXIMUM if number == 0 => "the Receive Maximum 0",
        // MQTT 5 §3.1.2.11.4, §3.2.2.3.6.
        Id::MAXIMUM_PACKET_SIZE if number == 0 => "the Maximum Packet Size 0",
        // MQTT 5 §3.8.2.1.2, §3.3.2.3.8.
        Id::SUBSCRIPTION_IDENTIFIER if number == 0 => "the Subscription Identifier 0",
        // MQTT 5 §3.3.2.3.4, MQTT-3.3.2-8.
        Id::TOPIC_ALIAS if number == 0 => {
            return Err(Refused::with(Reason::TOPIC_ALIAS_INVALID, "the Topic Alias 0"));
        }
        _ => return Ok(()),
    };
    Err(Refused::protocol(what))
}

/// Cuts so many bytes off.
fn cut(bytes: &[u8], len: usize) -> Result<(&[u8], &[u8]), Refused> {
    bytes.split_at_checked(len).ok_or(CUT)
}

/// Binary data or a string with its length.
fn binary(bytes: &[u8]) -> Result<(&[u8], &[u8]), Refused> {
    let (len, rest) = bytes.split_first_chunk::<2>().ok_or(CUT)?;
    cut(rest, u16::from_be_bytes(*len).into())
}

/// The first property of a block, as it is written, and what is after it.
fn split(block: &[u8]) -> Result<(Id, Part<'_>, &[u8]), Refused> {
    let (number, rest) = block.split_first().ok_or(CUT)?;
    // MQTT 5 §2.2.2.2: it is a variable byte integer, of which all that there are have one byte.
    let id = Id::from_number(*number)
        .ok_or(Refused::malformed("a property with an identifier that there is not"))?;
    let of_len = |len| cut(rest, len).map(|(bytes, rest)| (Part::Number(number_of(bytes)), rest));
    let (part, rest) = match id.kind() {
        Kind::Byte => of_len(1)?,
        Kind::Two => of_len(2)?,
        Kind::Four => of_len(4)?,
        Kind::Varint => {
            let (number, len) = varint(rest)?;
            let (_, rest) = cut(rest, len)?;
            (Part::Number(u32::try_from(number).unwrap_or(u32::MAX)), rest)
        }
        Kind::Text | Kind::Binary => {
            let (bytes, rest) = binary(rest)?;
            (Part::Bytes(bytes), rest)
        }
        Kind::Pair => {
            let (name, rest) = binary(rest)?;
            let (value, rest) = binary(rest)?;
            (Part::Pair(name, value), rest)
        }
    };
    Ok((id, part, rest))
}

/// The number that up to four bytes are.
fn number_of(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Bytes of a value, or a few more.
fn value_len(id: Id, value: Value<'_>) -> usize {
    match value {
        Value::Number(_) if id.kind() == Kind::Byte => 1,
        Value::Number(_) => 4,
        Value::Text(text) => 2 + text.len(),
        Value::Binary(bytes) => 2 + bytes.len(),
        Value::Pair(name, value) => 4 + name.len() + value.len(),
    }
}

/// Writes a property.
fn write(id: Id, value: Value<'_>, out: &mut BytesMut) -> Result<(), Error> {
    let small = |number: u32, limit: u32| {
        if number <= limit {
            return Ok(number);
        }
        let (value, limit) = (number.into(), limit.into());
        Err(Error::Limit { what: "the value of a property", value, limit })
    };
    let part = match value {
        Value::Number(number) => Part::Number(number),
        Value::Text(text) => Part::Bytes(text.as_bytes()),
        Value::Binary(bytes) => Part::Bytes(bytes),
        Value::Pair(name, value) => Part::Pair(name.as_bytes(), value.as_bytes()),
    };
    if check_part(id, part).is_err() {
        return Err(Error::Caller { what: "a value that a property cannot have" });
    }
    out.extend_from_slice(&[id.number()]);
    match (id.kind(), value) {
        (Kind::Byte, Value::Number(number)) => {
            out.extend_from_slice(&small(number, 0xff)?.to_be_bytes()[3..]);
        }
        (Kind::Two, Value::Number(number)) => {
            out.extend_from_slice(&small(number, 0xffff)?.to_be_bytes()[2..]);
        }
        (Kind::Four, Value::Number(number)) => out.extend_from_slice(&number.to_be_bytes()),
        (Kind::Varint, Value::Number(number)) => {
            let mut left = small(number, 0x0fff_ffff)?;
            while left >= 0x80 {
                out.extend_from_slice(&[left.to_le_bytes()[0] | 0x80]);
                left >>= 7;
            }
            out.extend_from_slice(&[left.to_le_bytes()[0]]);
        }
        (Kind::Text, Value::Text(text)) => write_binary(text.as_bytes(), out)?,
        (Kind::Binary, Value::Binary(bytes)) => write_binary(bytes, out)?,
        (Kind::Pair, Value::Pair(name, value)) => {
            write_binary(name.as_bytes(), out)?;
            write_binary(value.as_bytes(), out)?;
        }
        _ => return Err(Error::Caller { what: "a property with a value of another type" }),
    }
    Ok(())
}

fn write_binary(bytes: &[u8], out: &mut BytesMut) -> Result<(), Error> {
    let (value, limit) = (bytes.len() as u64, MAX_TEXT_BYTES as u64);
    let len = u16::try_from(bytes.len()).map_err(|_| Error::Limit {
        what: "binary data in bytes",
        value,
        limit,
    })?;
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}
