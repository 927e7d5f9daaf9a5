//! What can go wrong between bytes and meaning.

use std::fmt;

/// Why bytes were refused. `Peer` and `Truncated` are the sender's fault, `Limit` is a bound of
/// ours that the sender passed, `Caller` is a misuse by our own side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The input ends inside an item.
    Truncated {
        /// The item that was being read.
        what: &'static str,
    },
    /// The input breaks the format.
    Peer {
        /// What was found and what is allowed.
        what: &'static str,
        /// The offending value.
        value: u64,
    },
    /// The input is well formed but larger than what this side accepts.
    Limit {
        /// What is bounded.
        what: &'static str,
        /// The value met.
        value: u64,
        /// The greatest value accepted.
        limit: u64,
    },
    /// The local caller asked for something the protocol forbids.
    Caller {
        /// What was asked.
        what: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { what } => write!(f, "input ends inside {what}"),
            Self::Peer { what, value } => write!(f, "{what} (value {value})"),
            Self::Limit { what, value, limit } => {
                write!(f, "{what} is {value}, over the limit of {limit}")
            }
            Self::Caller { what } => write!(f, "misuse: {what}"),
        }
    }
}

impl std::error::Error for Error {}
