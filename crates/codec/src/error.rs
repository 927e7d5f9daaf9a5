//! What can go wrong in a codec.

use std::fmt;

/// Why a block or an option was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A block of the peer is not what the codec produces, or ends too early, or goes on too long;
    /// in a stream that is [`Error::Malformed`].
    Corrupt {
        /// Which codec.
        codec: &'static str,
        /// What was found.
        what: String,
    },
    /// A message is not what its format allows.
    Malformed {
        /// Which codec.
        codec: &'static str,
        /// Where in the input, in bytes from its begin.
        offset: u64,
        /// What was found there, and what is allowed.
        what: String,
    },
    /// The block decodes to another length than declared; the bound was kept.
    Length {
        /// Which codec.
        codec: &'static str,
        /// Declared decoded length in bytes.
        declared: usize,
    },
    /// The caller asked for a codec, level or window that does not exist, or for a block behind the
    /// last.
    Option {
        /// One line: the value, what is allowed.
        what: String,
    },
    /// The codec could not get its memory, or a limit was reached.
    Limit {
        /// Which codec.
        codec: &'static str,
        /// What was refused.
        what: String,
    },
}

impl Error {
    /// The same with the place: what is wrong with a block becomes what is wrong with a stream,
    /// `offset` bytes behind its begin.
    pub(crate) fn at(self, offset: u64) -> Self {
        match self {
            Self::Corrupt { codec, what } => Self::Malformed { codec, offset, what },
            Self::Length { codec, declared } => {
                let what = format!("what follows does not decode to its declared {declared} bytes");
                Self::Malformed { codec, offset, what }
            }
            other => other,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt { codec, what } => write!(f, "{codec}: corrupt input: {what}"),
            Self::Malformed { codec, offset, what } => {
                write!(f, "{codec}: at byte {offset}: {what}")
            }
            Self::Length { codec, declared } => {
                write!(f, "{codec}: the block does not decode to its declared {declared} bytes")
            }
            Self::Option { what } => f.write_str(what),
            Self::Limit { codec, what } => write!(f, "{codec}: {what}"),
        }
    }
}

impl std::error::Error for Error {}
