//! What can go wrong before a broker runs.

use std::fmt;

/// Why a broker does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// What was asked for cannot be done; the text names the value and the remedy.
    Caller(String),
    /// The system refused something.
    System(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Caller(text) | Self::System(text)) = self;
        f.write_str(text)
    }
}

impl std::error::Error for Error {}
