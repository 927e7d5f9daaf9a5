//! Why something is not taken, and how each protocol says so.

use std::fmt;

/// A refusal: its kind for machines, one line for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What kind.
    pub reason: Reason,
    /// One line that names the value, the limit and the remedy.
    pub line: String,
}

/// Kinds of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The document is not of its form, or a field is missing or wrong.
    Malformed,
    /// The originator is not who he says he is, or may not do this here.
    Forged,
    /// No such message, addressee or resource.
    Unknown,
    /// The method is not one of the resource's.
    Method,
    /// No form that is acceptable to the client.
    NotAcceptable,
    /// The content took too long.
    Late,
    /// Another message has this id.
    Conflict,
    /// More bytes than are taken.
    TooLarge,
    /// The content is in a form that is not known.
    Unsupported,
    /// The validity of the message is over.
    Expired,
    /// No room, or the disk cannot be written: later it may be taken.
    Full,
    /// It is of a time that is to come by this node's clock: later it may be taken.
    Early,
    /// The message was here before.
    Loop,
}

impl Refusal {
    /// A refusal with its line.
    pub(crate) fn new(reason: Reason, line: impl Into<String>) -> Self {
        Self { reason, line: line.into() }
    }

    /// A malformed document or field.
    pub(crate) fn malformed(line: impl Into<String>) -> Self {
        Self::new(Reason::Malformed, line)
    }

    /// The status of HTTP that says it (RFC 9110 §15, RFC 5842 §7.2).
    #[must_use]
    pub fn status(&self) -> u16 {
        match self.reason {
            Reason::Malformed => 400,
            Reason::Forged => 403,
            Reason::Unknown => 404,
            Reason::Method => 405,
            Reason::NotAcceptable => 406,
            Reason::Late => 408,
            Reason::Conflict => 409,
            Reason::TooLarge => 413,
            Reason::Unsupported => 415,
            Reason::Expired => 422,
            Reason::Full | Reason::Early => 503,
            Reason::Loop => 508,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

/// Text of a stranger's in a line: control characters escaped, at most 60 characters.
pub(crate) fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(60).flat_map(char::escape_debug).collect();
    if text.chars().nth(60).is_some() {
        short.push('…');
    }
    short
}
