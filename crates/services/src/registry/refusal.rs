//! Why something is not taken, and how each face says so.

use std::fmt;

/// A refusal: its kind for machines, one line for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What kind.
    pub reason: Reason,
    /// One line that names the value, the limit and the remedy.
    pub line: String,
}

/// Kinds of refusals: those of UDDI v3.0.2 §12, and those that have no number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The message is no document of its form.
    Malformed,
    /// The document is of another version than what is served.
    UnrecognizedVersion,
    /// More bytes or elements than are taken.
    MessageTooLarge,
    /// More entities or qualifiers in a request than are taken.
    TooManyOptions,
    /// A name is longer than it may be.
    NameTooLong,
    /// A value is out of its bounds.
    ValueNotAllowed,
    /// A value contradicts another one, or what is known.
    InvalidValue,
    /// A feature or qualifier that is not there.
    Unsupported,
    /// Qualifiers that exclude each other.
    InvalidCombination,
    /// A service that is shown in another business is not as that one has it.
    InvalidProjection,
    /// No token, or none that was given out.
    AuthTokenRequired,
    /// The token was good, and is no more.
    AuthTokenExpired,
    /// No such user, or another password.
    UnknownUser,
    /// The entity is another publisher's.
    UserMismatch,
    /// No entity with this key, or none of that kind.
    InvalidKeyPassed,
    /// The key is in a partition of somebody else's, or not to be had.
    KeyUnavailable,
    /// The publisher has as many entries as it may.
    AccountLimitExceeded,
    /// No room now, or the disk cannot be written.
    Busy,
    /// What must not be asked for, or something broke here.
    Fatal,
    /// No such resource.
    NotFound,
    /// The method is not one of the resource's.
    Method,
    /// The content is in a form that is not known.
    MediaType,
    /// The content took too long.
    Late,
}

impl Reason {
    /// All kinds.
    pub const ALL: [Self; 23] = [
        Self::Malformed,
        Self::UnrecognizedVersion,
        Self::MessageTooLarge,
        Self::TooManyOptions,
        Self::NameTooLong,
        Self::ValueNotAllowed,
        Self::InvalidValue,
        Self::Unsupported,
        Self::InvalidCombination,
        Self::InvalidProjection,
        Self::AuthTokenRequired,
        Self::AuthTokenExpired,
        Self::UnknownUser,
        Self::UserMismatch,
        Self::InvalidKeyPassed,
        Self::KeyUnavailable,
        Self::AccountLimitExceeded,
        Self::Busy,
        Self::Fatal,
        Self::NotFound,
        Self::Method,
        Self::MediaType,
        Self::Late,
    ];

    /// The number and the code of a disposition report (UDDI v3.0.2 §12.1); none for what is no
    /// message of UDDI at all, which is a plain fault of SOAP.
    #[must_use]
    pub fn disposition(self) -> Option<(u32, &'static str)> {
        Some(match self {
            Self::UnrecognizedVersion => (10040, "E_unrecognizedVersion"),
            Self::MessageTooLarge => (30110, "E_messageTooLarge"),
            Self::TooManyOptions => (10030, "E_tooManyOptions"),
            Self::NameTooLong => (10020, "E_nameTooLong"),
            Self::ValueNotAllowed => (20210, "E_valueNotAllowed"),
            Self::InvalidValue => (20200, "E_invalidValue"),
            Self::Unsupported => (10050, "E_unsupported"),
            Self::InvalidCombination => (40500, "E_invalidCombination"),
            Self::InvalidProjection => (20230, "E_invalidProjection"),
            Self::AuthTokenRequired => (10120, "E_authTokenRequired"),
            Self::AuthTokenExpired => (10110, "E_authTokenExpired"),
            Self::UnknownUser => (10150, "E_unknownUser"),
            Self::UserMismatch => (10140, "E_userMismatch"),
            Self::InvalidKeyPassed => (10210, "E_invalidKeyPassed"),
            Self::KeyUnavailable => (40100, "E_keyUnavailable"),
            Self::AccountLimitExceeded => (10160, "E_accountLimitExceeded"),
            Self::Busy => (10400, "E_busy"),
            Self::Fatal => (10500, "E_fatalError"),
            Self::Malformed | Self::NotFound | Self::Method | Self::MediaType | Self::Late => {
                return None;
            }
        })
    }

    /// The status of HTTP that says it (RFC 9110 §15, RFC 6585 §4).
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::Malformed
            | Self::UnrecognizedVersion
            | Self::TooManyOptions
            | Self::NameTooLong
            | Self::ValueNotAllowed
            | Self::InvalidValue
            | Self::InvalidCombination
            | Self::InvalidProjection
            | Self::Unsupported => 400,
            Self::AuthTokenRequired | Self::AuthTokenExpired | Self::UnknownUser => 401,
            Self::UserMismatch | Self::AccountLimitExceeded => 403,
            Self::InvalidKeyPassed | Self::NotFound => 404,
            Self::Method => 405,
            Self::Late => 408,
            Self::KeyUnavailable => 409,
            Self::MessageTooLarge => 413,
            Self::MediaType => 415,
            Self::Fatal => 500,
            Self::Busy => 503,
        }
    }
}

impl Refusal {
    /// A refusal with its line.
    pub(crate) fn new(reason: Reason, line: impl Into<String>) -> Self {
        Self { reason, line: line.into() }
    }

    /// A malformed document.
    pub(crate) fn malformed(line: impl Into<String>) -> Self {
        Self::new(Reason::Malformed, line)
    }

    /// A value that cannot be.
    pub(crate) fn value(line: impl Into<String>) -> Self {
        Self::new(Reason::ValueNotAllowed, line)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}
