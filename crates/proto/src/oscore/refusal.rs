//! Why a message is refused, and what its sender may be answered (RFC 8613 §8.2).

use std::fmt;

use crate::Error;

use super::{class::MAX_AGE_NUMBER, message::CoapMessage};

/// Why a protected message was refused. To a request [`Refusal::answer`] may be sent back, which
/// nobody can tell from a forged one; to a response nothing is (RFC 8613 §8.4, step 8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Option or message break the format: 4.02 (RFC 8613 §8.2, step 2).
    NotDecoded(Error),
    /// The message is for another context: 4.01 (RFC 8613 §8.2, step 2).
    ContextNotFound,
    /// It was received before, or nobody can tell: 4.01 (RFC 8613 §7.4).
    Replay,
    /// It was made with another key, or was changed on the way: 4.00 (RFC 8613 §8.2, step 6).
    DecryptionFailed,
    /// A response with Observe to a request that registered nothing (RFC 8613 §4.1.3.5.2).
    NotRequested,
}

impl Refusal {
    /// The code of the answer.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::NotDecoded(_) => 0x82,
            Self::ContextNotFound | Self::Replay => 0x81,
            Self::DecryptionFailed | Self::NotRequested => 0x80,
        }
    }

    /// The diagnostic payload of the answer.
    #[must_use]
    pub fn diagnostic(&self) -> &'static str {
        match self {
            Self::NotDecoded(_) => "Failed to decode COSE",
            Self::ContextNotFound => "Security context not found",
            Self::Replay => "Replay detected",
            Self::DecryptionFailed => "Decryption failed",
            Self::NotRequested => "Notification not requested",
        }
    }

    /// The answer to a request, which is not protected. It says that no proxy shall keep it.
    #[must_use]
    pub fn answer(&self) -> CoapMessage {
        // RFC 8613 §4.1.3.1: Max-Age of zero, which has no bytes (RFC 7252 §3.2).
        CoapMessage::new(self.code(), [(MAX_AGE_NUMBER, &[][..])], self.diagnostic().as_bytes())
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::NotDecoded(error)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotDecoded(error) => write!(f, "{}: {error}", self.diagnostic()),
            _ => f.write_str(self.diagnostic()),
        }
    }
}

impl std::error::Error for Refusal {}
