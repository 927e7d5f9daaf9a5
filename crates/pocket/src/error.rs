//! What can go wrong in a call, each with a number for callers in C and a name for people.

use core::fmt;

/// Why a call or a document failed. The numbers are those of `longwire.h` and do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Error {
    /// A buffer of the caller's is too small, by one byte or more.
    NoRoom = 1,
    /// The caller's socket failed.
    Socket = 2,
    /// No answer came in time. Whether the request was carried out is not known.
    Unanswered = 3,
    /// The same, and datagrams from other addresses were left out.
    OtherAddress = 4,
    /// The same, and answers to other requests were left out.
    OtherTransaction = 5,
    /// The same, and the last answer was cut off or broke the format.
    BadAnswer = 6,
    /// The server rejected the message (RFC 7252 §4.2, reset).
    Reset = 7,
    /// An option or a size of a block that cannot be understood, and must be (RFC 7252 §5.4.1).
    Unsupported = 8,
    /// Blocks of an answer do not fit each other, or the answer changed between them.
    BadBlock = 9,
    /// The server asks twice for what was shown to it (RFC 9175 §2.4).
    Challenged = 10,
    /// A document ends amid an item.
    Truncated = 20,
    /// A document breaks its format.
    Malformed = 21,
    /// Elements are nested deeper than [`crate::document::MAX_DEPTH`].
    TooDeep = 22,
    /// More prefixes are in scope than [`crate::document::MAX_PREFIXES`].
    TooManyPrefixes = 23,
    /// A token that the table of the caller does not have.
    UnknownToken = 24,
    /// A character set, version or kind of item that is not read here.
    UnknownKind = 25,
    /// Reading this document would take more steps than its length is worth.
    TooComplex = 26,
    /// A name or text that cannot stand in a document, or a call out of order.
    Misuse = 27,
    /// The document is no SOAP envelope, or it has no body.
    NotSoap = 30,
    /// The service answered with a fault.
    Fault = 31,
    /// Another element than the one that was expected.
    UnexpectedElement = 32,
    /// A text that is no whole number of 32 bits.
    NotANumber = 33,
    /// The status of the answer says that there was an error, and there is no fault in it.
    Status = 34,
}

impl Error {
    /// All of them.
    pub const ALL: [Self; 23] = [
        Self::NoRoom,
        Self::Socket,
        Self::Unanswered,
        Self::OtherAddress,
        Self::OtherTransaction,
        Self::BadAnswer,
        Self::Reset,
        Self::Unsupported,
        Self::BadBlock,
        Self::Challenged,
        Self::Truncated,
        Self::Malformed,
        Self::TooDeep,
        Self::TooManyPrefixes,
        Self::UnknownToken,
        Self::UnknownKind,
        Self::TooComplex,
        Self::Misuse,
        Self::NotSoap,
        Self::Fault,
        Self::UnexpectedElement,
        Self::NotANumber,
        Self::Status,
    ];

    /// What happened, as a phrase.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoRoom => "buffer too small",
            Self::Socket => "socket failed",
            Self::Unanswered => "no answer in time",
            Self::OtherAddress => "no answer in time, only from other addresses",
            Self::OtherTransaction => "no answer in time, only to other requests",
            Self::BadAnswer => "no whole answer in time",
            Self::Reset => "rejected by the server",
            Self::Unsupported => "unknown option that must be understood",
            Self::BadBlock => "blocks that do not fit",
            Self::Challenged => "challenged again",
            Self::Truncated => "document cut off",
            Self::Malformed => "document malformed",
            Self::TooDeep => "document nested too deep",
            Self::TooManyPrefixes => "too many prefixes",
            Self::UnknownToken => "unknown token",
            Self::UnknownKind => "unknown charset, version or item",
            Self::TooComplex => "document takes too many steps",
            Self::Misuse => "call out of order or text that cannot stand here",
            Self::NotSoap => "no SOAP envelope",
            Self::Fault => "fault of the service",
            Self::UnexpectedElement => "unexpected element",
            Self::NotANumber => "no whole number of 32 bits",
            Self::Status => "status of an error",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl core::error::Error for Error {}
