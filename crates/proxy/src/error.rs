//! What can go wrong in the shell.

use std::fmt;
use std::io;

/// Why a side could not start or go on.
#[derive(Debug)]
pub enum Error {
    /// The person who started it asked for what cannot be: the value, the limit and the remedy.
    Caller(String),
    /// The other relay's fault: a wrong key, a broken handshake.
    Peer(String),
    /// The system refused.
    System {
        /// What was being done, with the name of the thing.
        doing: String,
        /// The system's answer.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::System { doing, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caller(what) | Self::Peer(what) => f.write_str(what),
            Self::System { doing, source } => write!(f, "{doing}: {source}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // Its own words are in the line already.
            Self::System { source, .. } => source.source(),
            Self::Caller(_) | Self::Peer(_) => None,
        }
    }
}
