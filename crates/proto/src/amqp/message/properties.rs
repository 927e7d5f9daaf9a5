//! The properties of a message that the standard has (AMQP 1.0 Part 3 §3.2.4).

use bytes::Bytes;

use crate::Error;
use crate::amqp::types::{Fields, FieldsWriter, Reader, Symbol, Value};

use super::PROPERTIES;

/// They belong to the bare message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties {
    /// Which message this is: an ulong, a UUID, a binary or a string (§3.2.11 to §3.2.14).
    pub message_id: Option<Value>,
    /// Who made it.
    pub user_id: Option<Bytes>,
    /// The node that it is for.
    pub to: Option<Value>,
    /// A word on what it is about.
    pub subject: Option<String>,
    /// The node that an answer is for.
    pub reply_to: Option<Value>,
    /// Which message this belongs to.
    pub correlation_id: Option<Value>,
    /// The media type of the body, if that is data.
    pub content_type: Option<Symbol>,
    /// The coding of the body (RFC 9110 §8.4).
    pub content_encoding: Option<Symbol>,
    /// When it is of no use any more, in milliseconds since 1970.
    pub absolute_expiry_time_ms: Option<i64>,
    /// When it was made, in milliseconds since 1970.
    pub creation_time_ms: Option<i64>,
    /// The group that it belongs to.
    pub group_id: Option<String>,
    /// Its number in the group.
    pub group_sequence: Option<u32>,
    /// The group that an answer is for.
    pub reply_to_group_id: Option<String>,
}

impl Properties {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mut fields = Fields::open(reader, "a field of properties")?;
        let properties = Self {
            message_id: fields.value()?,
            user_id: fields.binary()?,
            to: fields.value()?,
            subject: fields.string()?,
            reply_to: fields.value()?,
            correlation_id: fields.value()?,
            content_type: fields.symbol()?,
            content_encoding: fields.symbol()?,
            absolute_expiry_time_ms: fields.timestamp()?,
            creation_time_ms: fields.timestamp()?,
            group_id: fields.string()?,
            group_sequence: fields.uint()?,
            reply_to_group_id: fields.string()?,
        };
        fields.finish()?;
        Ok(properties)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        FieldsWriter::default()
            .value(self.message_id.as_ref())
            .binary(self.user_id.as_deref())
            .value(self.to.as_ref())
            .string(self.subject.as_deref())
            .value(self.reply_to.as_ref())
            .value(self.correlation_id.as_ref())
            .symbol(self.content_type.as_ref())
            .symbol(self.content_encoding.as_ref())
            .timestamp(self.absolute_expiry_time_ms)
            .timestamp(self.creation_time_ms)
            .string(self.group_id.as_deref())
            .uint(self.group_sequence)
            .string(self.reply_to_group_id.as_deref())
            .finish(PROPERTIES, out);
    }
}
