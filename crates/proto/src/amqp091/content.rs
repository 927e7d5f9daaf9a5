//! Content headers and their properties (AMQP 0.9.1 §4.2.6.1).

use super::method::BASIC;
use super::table::Table;
use super::wire::{Field, Reader, Writer};
use crate::Error;

/// What precedes the bodies of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentHeader<'a> {
    /// The bytes of all bodies together.
    pub body_bytes: u64,
    /// Flags and properties as they are on the wire, as [`Properties::decode`] reads them.
    pub properties: &'a [u8],
}

impl<'a> ContentHeader<'a> {
    /// Reads the payload of a header frame. The properties have been checked.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Error> {
        let header = Self::decode_head(payload)?;
        Properties::decode(header.properties)?;
        Ok(header)
    }

    /// Reads the payload of a header frame, whatever its properties are: they are those of who has
    /// published the message, and not of who hands it on.
    pub fn decode_head(payload: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(payload);
        let class_id = u16::take(&mut reader)?;
        if class_id != BASIC {
            // AMQP 0.9.1 §4.2.6.1: it is that of the method; only basic has content.
            return Err(Error::Peer { what: "class of a content header", value: class_id.into() });
        }
        let weight = u16::take(&mut reader)?;
        if weight != 0 {
            return Err(Error::Peer { what: "weight of a content header", value: weight.into() });
        }
        let body_bytes = u64::take(&mut reader)?;
        let properties = reader.rest();
        Ok(Self { body_bytes, properties })
    }

    /// Appends the payload of a header frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend(BASIC.to_be_bytes());
        out.extend([0, 0]);
        out.extend(self.body_bytes.to_be_bytes());
        out.extend(self.properties);
    }
}

/// Flags of one property: the highest bit first (AMQP 0.9.1 §4.2.6.1); the two lowest are none.
const MAX_FLAG: u16 = 1 << 15;
const NO_FLAGS: u16 = 0b11;

macro_rules! properties {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        /// The properties of a message of class basic (AMQP 0.9.1 §1.8.1). What is not there was
        /// not sent.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Properties<'a> {
            $($(#[$doc])* pub $name: Option<$type>,)*
        }

        impl<'a> Properties<'a> {
            /// Reads flags and properties, all of the bytes.
            pub fn decode(bytes: &'a [u8]) -> Result<Self, Error> {
                let mut reader = Reader::new(bytes);
                let flags = u16::take(&mut reader)?;
                if flags & NO_FLAGS != 0 {
                    let value = flags.into();
                    return Err(Error::Peer { what: "flags of properties of AMQP", value });
                }
                let mut flag = MAX_FLAG;
                let mut next = || {
                    let is_there = flags & flag != 0;
                    flag >>= 1;
                    is_there
                };
                let properties = Self {
                    $($name: match next() {
                        true => Some(<$type>::take(&mut reader)?),
                        false => None,
                    },)*
                };
                reader.finish()?;
                Ok(properties)
            }

            /// Appends flags and properties. A string that is too long is the caller's fault.
            pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), Error> {
                let mut flags = 0;
                let mut flag = MAX_FLAG;
                $(
                    if self.$name.is_some() {
                        flags |= flag;
                    }
                    flag >>= 1;
                )*
                debug_assert_eq!(flag, NO_FLAGS + 1 >> 1);
                let mut writer = Writer::new(out);
                flags.put(&mut writer)?;
                $(
                    if let Some(value) = &self.$name {
                        value.put(&mut writer)?;
                    }
                )*
                Ok(())
            }
        }
    };
}

properties! {
    /// MIME type of the body.
    content_type: &'a str,
    /// MIME encoding of the body.
    content_encoding: &'a str,
    /// What applications say besides; exchanges of the type headers look at them.
    headers: Table<'a>,
    /// 1: may be lost; 2: is kept over a restart.
    delivery_mode: u8,
    /// 0 to 9.
    priority: u8,
    /// The request that this answers.
    correlation_id: &'a str,
    /// Where an answer goes: as a rule a queue.
    reply_to: &'a str,
    /// Milliseconds that the message is worth something, as text.
    expiration: &'a str,
    /// The message among those of the application.
    message_id: &'a str,
    /// When it was made, in seconds since 1970.
    timestamp: u64,
    /// `type`: what kind of message it is.
    kind: &'a str,
    /// The user who sent it; a server checks it.
    user_id: &'a str,
    /// The application that sent it.
    app_id: &'a str,
    /// Deprecated.
    cluster_id: &'a str,
}
