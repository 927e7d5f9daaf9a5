//! Messages of format 0 (AMQP 1.0 Part 3 §3.2): a bare message, which nobody on the way changes,
//! between sections that say how it is on its way.

mod header;
mod properties;
#[cfg(test)]
mod tests;

use bytes::Bytes;

use super::performative::descriptor;
use super::types::{Map, Reader, Value, encode};
use crate::Error;

pub use header::{DEFAULT_PRIORITY, Header};
pub use properties::Properties;

/// Sections of a body that are taken: one for each byte is not what they are for.
pub const MAX_SECTIONS: usize = 4 << 10;

/// A message whose parts are read. The parts of the bare message are here, and its bytes as well.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// How it is on its way (§3.2.1).
    pub header: Header,
    /// For the next hop (§3.2.2).
    pub delivery_annotations: Map,
    /// For the whole way (§3.2.3).
    pub message_annotations: Map,
    /// Of the standard (§3.2.4).
    pub properties: Properties,
    /// Of the application (§3.2.5), with names that are strings.
    pub application_properties: Map,
    /// What it is about.
    pub body: Body,
    /// The bytes of the bare message and what follows it: properties, application properties, body,
    /// footer.
    pub bare: Bytes,
}

/// What a message is about (AMQP 1.0 Part 3 §3.2.6 to §3.2.8).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Body {
    /// No section at all, which the standard does not have, and clients send.
    #[default]
    Empty,
    /// Bytes, in one section or more.
    Data(Vec<Bytes>),
    /// Values in sections of several.
    Sequence(Vec<Value>),
    /// One value.
    Value(Value),
}

pub(super) const HEADER: u64 = 0x70;
const DELIVERY_ANNOTATIONS: u64 = 0x71;
const MESSAGE_ANNOTATIONS: u64 = 0x72;
pub(super) const PROPERTIES: u64 = 0x73;
const APPLICATION_PROPERTIES: u64 = 0x74;
const DATA: u64 = 0x75;
const SEQUENCE: u64 = 0x76;
const VALUE: u64 = 0x77;
const FOOTER: u64 = 0x78;

impl Message {
    /// Reads a message. Bytes of data sections are parts of `bytes`, not copies.
    pub fn decode(bytes: &Bytes) -> Result<Self, Error> {
        let mut message = Self::default();
        let reader = &mut Reader::new(bytes);
        let mut last = 0;
        while !reader.is_empty() {
            let before = reader.rest();
            let what = "descriptor of a section";
            let section = descriptor(reader, what)?;
            message.check_order(last, section)?;
            if last < PROPERTIES && section >= PROPERTIES {
                message.bare = bytes.slice_ref(before);
            }
            last = section;
            match section {
                HEADER => message.header = Header::decode(reader)?,
                DELIVERY_ANNOTATIONS => message.delivery_annotations = map(reader)?,
                MESSAGE_ANNOTATIONS => message.message_annotations = map(reader)?,
                PROPERTIES => message.properties = Properties::decode(reader)?,
                APPLICATION_PROPERTIES => message.application_properties = map(reader)?,
                DATA => {
                    let data = bytes.slice_ref(reader.binary()?);
                    match &mut message.body {
                        Body::Data(sections) => sections.push(data),
                        body => *body = Body::Data(vec![data]),
                    }
                }
                SEQUENCE => match (reader.value()?, &mut message.body) {
                    (Value::List(mut items), Body::Sequence(all)) => all.append(&mut items),
                    (Value::List(items), body) => *body = Body::Sequence(items),
                    _ => return Err(Error::Peer { what: "an amqp-sequence", value: section }),
                },
                VALUE => message.body = Body::Value(reader.value()?),
                FOOTER => {
                    map(reader)?;
                }
                value => return Err(Error::Peer { what, value }),
            }
        }
        Ok(message)
    }

    /// AMQP 1.0 Part 3 §3.2: sections come in this order, each once but those of a body.
    fn check_order(&self, last: u64, section: u64) -> Result<(), Error> {
        let is_repeated = section == last && matches!(section, DATA | SEQUENCE);
        let is_second_body = (DATA..=VALUE).contains(&last) && (DATA..=VALUE).contains(&section);
        if !is_repeated && (section <= last || is_second_body) {
            return Err(Error::Peer { what: "order of sections", value: section });
        }
        let count = match &self.body {
            Body::Data(sections) => sections.len(),
            Body::Sequence(items) => items.len(),
            Body::Empty | Body::Value(_) => 0,
        };
        let (value, limit) = (count as u64, MAX_SECTIONS as u64);
        if is_repeated && count >= MAX_SECTIONS {
            return Err(Error::Limit { what: "sections of a body", value, limit });
        }
        Ok(())
    }

    /// The message annotation of this name.
    #[must_use]
    pub fn annotation(&self, name: &str) -> Option<&Value> {
        let is_it = |(key, _): &&(Value, Value)| key.as_text() == Some(name);
        self.message_annotations.iter().find(is_it).map(|(_, value)| value)
    }
}

/// What is in a section of pairs.
fn map(reader: &mut Reader<'_>) -> Result<Map, Error> {
    match reader.value()? {
        Value::Map(map) => Ok(map),
        // Sent by clients that have nothing to say.
        Value::Null => Ok(Map::new()),
        _ => Err(Error::Peer { what: "type of a section of pairs", value: 0 }),
    }
}

/// The bytes of a bare message.
#[must_use]
pub fn encode_bare(properties: &Properties, application_properties: &Map, body: &Body) -> Bytes {
    let out = &mut Vec::new();
    if *properties != Properties::default() {
        properties.encode(out);
    }
    section_map(APPLICATION_PROPERTIES, application_properties, out);
    match body {
        Body::Empty => section(VALUE, &Value::Null, out),
        Body::Data(sections) => {
            for data in sections {
                section(DATA, &Value::Binary(data.clone()), out);
            }
        }
        Body::Sequence(items) => section(SEQUENCE, &Value::List(items.clone()), out),
        Body::Value(value) => section(VALUE, value, out),
    }
    std::mem::take(out).into()
}

/// The bytes of a message: `bare` may have a footer behind it.
#[must_use]
pub fn encode_message(header: &Header, message_annotations: &Map, bare: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(bare.len() + 64);
    if *header != Header::default() {
        header.encode(&mut out);
    }
    section_map(MESSAGE_ANNOTATIONS, message_annotations, &mut out);
    out.extend_from_slice(bare);
    out.into()
}

fn section_map(code: u64, map: &Map, out: &mut Vec<u8>) {
    if !map.is_empty() {
        section(code, &Value::Map(map.clone()), out);
    }
}

fn section(code: u64, value: &Value, out: &mut Vec<u8>) {
    // A constructor with a descriptor, which is a small ulong (AMQP 1.0 Part 1 §1.5).
    out.push(0);
    encode(&Value::Ulong(code), out);
    encode(value, out);
}
