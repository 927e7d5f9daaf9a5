//! What can go wrong, by who is at fault.

use std::fmt;

/// Why a service or a client could not do its work. The text is one line that names the value, the
/// limit where there is one, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A setting of the caller's cannot be used on this machine or at all.
    Caller(String),
    /// The other side broke its protocol, refused or went away.
    Peer(String),
    /// A named bound was reached.
    Limit(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caller(line) | Self::Peer(line) | Self::Limit(line) => f.write_str(line),
        }
    }
}

impl std::error::Error for Error {}
