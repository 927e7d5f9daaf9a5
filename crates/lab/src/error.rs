//! What can go wrong in the laboratory, and who can mend it.

use std::fmt;
use std::io;

/// A failure of the laboratory. The message is one line and, where a person can do something about
/// it, says what.
#[derive(Debug)]
pub enum Error {
    /// The caller asked for something that cannot be: a bad name, a bad setting, a lab that does
    /// not exist.
    Caller(String),
    /// This machine does not offer or permit what is needed.
    Machine {
        /// What is lacking.
        lack: String,
        /// What would mend it.
        remedy: &'static str,
    },
    /// The operating system refused a step that should have worked.
    System {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// The ferry's thread is gone, so the links carry nothing any more.
    FerryStopped,
    /// The other side of a control socket does not speak the protocol.
    Peer(String),
}

/// Result with the laboratory's error.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caller(message) | Self::Peer(message) => f.write_str(message),
            Self::Machine { lack, remedy } => write!(f, "{lack}; {remedy}"),
            Self::System { doing, source } => write!(f, "cannot {doing}: {source}"),
            Self::FerryStopped => f.write_str("the ferry has stopped; bring the lab up again"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Says what was being done when the operating system refused.
pub(crate) trait Doing<T> {
    /// Turns the refusal into [`Error::System`].
    fn doing(self, doing: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> Doing<T> for std::result::Result<T, E> {
    fn doing(self, doing: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::System { doing: doing(), source: error.into() })
    }
}
