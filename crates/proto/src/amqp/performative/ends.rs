//! Detach, end and close (AMQP 1.0 Part 2 §2.7.7 to §2.7.9).

use crate::Error;
use crate::amqp::types::{Fields, FieldsWriter, Reader, required};

use super::error::ErrorInfo;

/// A link is detached.
#[derive(Clone, Debug, PartialEq)]
pub struct Detach {
    /// The link.
    pub handle: u32,
    /// Whether the link is over, and what it kept with it.
    pub closed: bool,
    /// Why.
    pub error: Option<ErrorInfo>,
}

impl Detach {
    /// The number of its descriptor.
    pub const DESCRIPTOR: u64 = 0x16;

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mut fields = Fields::open(reader, "a field of detach")?;
        let detach = Self {
            handle: required(fields.uint()?, "detach without handle")?,
            closed: fields.boolean()?.unwrap_or(false),
            error: ErrorInfo::of(&mut fields)?,
        };
        fields.finish()?;
        Ok(detach)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        FieldsWriter::default()
            .uint(Some(self.handle))
            .flag(self.closed)
            .with(self.error.as_ref(), ErrorInfo::encode)
            .finish(Self::DESCRIPTOR, out);
    }
}

macro_rules! end {
    ($(#[$doc:meta])* $name:ident, $descriptor:literal, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            /// Why.
            pub error: Option<ErrorInfo>,
        }

        impl $name {
            /// The number of its descriptor.
            pub const DESCRIPTOR: u64 = $descriptor;

            pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
                let mut fields = Fields::open(reader, $what)?;
                let end = Self { error: ErrorInfo::of(&mut fields)? };
                fields.finish()?;
                Ok(end)
            }

            pub(super) fn encode(&self, out: &mut Vec<u8>) {
                FieldsWriter::default()
                    .with(self.error.as_ref(), ErrorInfo::encode)
                    .finish(Self::DESCRIPTOR, out);
            }
        }
    };
}

end!(
    /// A session ends.
    End,
    0x17,
    "a field of end"
);
end!(
    /// The connection ends.
    Close,
    0x18,
    "a field of close"
);
