//! Errors (AMQP 1.0 Part 2 §2.8.14).

use std::fmt;

use crate::Error;
use crate::amqp::types::{Fields, FieldsWriter, Map, Reader, Symbol, required};

/// What went wrong (AMQP 1.0 Part 2 §2.8.14).
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorInfo {
    /// Its name, of those in the clause or of somebody else's.
    pub condition: Symbol,
    /// Words for people.
    pub description: Option<String>,
    /// More for programs.
    pub info: Map,
}

impl ErrorInfo {
    /// The number of its descriptor.
    pub const DESCRIPTOR: u64 = 0x1d;

    /// One with words.
    #[must_use]
    pub fn new(condition: Symbol, description: impl Into<String>) -> Self {
        Self { condition, description: Some(description.into()), info: Map::new() }
    }

    /// The next value, with its descriptor; `None` for null.
    pub(super) fn of(fields: &mut Fields<'_>) -> Result<Option<Self>, Error> {
        let Some(reader) = fields.reader()? else { return Ok(None) };
        let what = "descriptor of an error";
        match super::descriptor(reader, what)? {
            Self::DESCRIPTOR => Self::decode(reader).map(Some),
            value => Err(Error::Peer { what, value }),
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mut fields = Fields::open(reader, "a field of error")?;
        let error = Self {
            condition: required(fields.symbol()?, "error without condition")?,
            description: fields.string()?,
            info: fields.map()?,
        };
        fields.finish()?;
        Ok(error)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        FieldsWriter::default()
            .symbol(Some(&self.condition))
            .string(self.description.as_deref())
            .map(&self.info)
            .finish(Self::DESCRIPTOR, out);
    }
}

impl fmt::Display for ErrorInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.condition.as_str())?;
        self.description.as_ref().map_or(Ok(()), |description| write!(f, ": {description}"))
    }
}
