//! Why a message was refused, in terms of HTTP.

use std::fmt;

/// A message that is not taken: the status that says so to a client, and one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What a server answers to a request like this: 400, 414, 431, 501 or 505. Of a response, it
    /// is 502.
    pub status: u16,
    /// What was found, and what is allowed.
    pub reason: String,
}

impl Fault {
    pub(super) fn bad(reason: impl Into<String>) -> Self {
        Self { status: 400, reason: reason.into() }
    }

    pub(super) fn with(status: u16, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into() }
    }

    /// The same fault of an origin's response.
    pub(super) fn of_response(self) -> Self {
        Self { status: 502, ..self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Fault {}
