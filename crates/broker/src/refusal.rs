//! Why the core did not do what a client asked; each protocol has its own code for it.

use std::fmt;

use crate::federation::Breach;

/// Why something is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The client may not do this.
    NotAuthorized,
    /// The topic cannot be published to.
    TopicName {
        /// What is wrong with it.
        what: &'static str,
    },
    /// The filter cannot be subscribed to.
    TopicFilter {
        /// What is wrong with it.
        what: &'static str,
    },
    /// A bound is met.
    Quota {
        /// What is bounded, with the name of the setting.
        what: &'static str,
        /// The bound.
        limit: u64,
    },
    /// The message is longer than the broker takes.
    TooLarge {
        /// Its length in bytes.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
    /// The profile of a federation does not allow it.
    Federation(Box<Breach>),
    /// The broker is ending.
    Closing,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAuthorized => f.write_str("the client's rules do not allow this"),
            Self::TopicName { what } | Self::TopicFilter { what } => f.write_str(what),
            Self::Quota { what, limit } => write!(f, "{what} is at its limit of {limit}"),
            Self::TooLarge { bytes, limit } => {
                write!(f, "a message of {bytes} bytes is over max_message_bytes, {limit}")
            }
            Self::Federation(breach) => breach.fmt(f),
            Self::Closing => f.write_str("the broker is ending"),
        }
    }
}

impl std::error::Error for Refusal {}
