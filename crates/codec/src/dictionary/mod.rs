//! Coding of small messages with what both sides have already.
//!
//! A [`Dictionary`] is text that messages of one service have in common: trained ([`train()`]), an
//! [`excerpt`] or gathered ([`gather`]) from samples, or simply the message before. It is known by
//! its SHA-256. A [`Coder`] codes messages with it by one [`Method`]; what it makes names the
//! dictionary, and whoever has another one gets an error, never garbage:
//!
//! | bytes | |
//! | --- | --- |
//! | 1 | `0xd0` plus the number of the method; the upper half is the version of this format |
//! | 8 | the first bytes of the SHA-256 of the dictionary |
//! | 1–4 | length of the message (RFC 9000 §16) |
//! | 4 | the first bytes of the SHA-256 of the message |
//! | | the code |
//!
//! [`Store`] is a file of dictionaries; [`rfc9842`] has the two stream formats of HTTP.
//!
//! Whoever can choose a part of a message and see its length learns what else is in the dictionary:
//! nothing secret belongs into samples, and one dictionary serves one principal at most.
//!
//! ```
//! use longwire_codec::{Limits, dictionary::{Coder, Dictionary, Method}};
//! let limits = Limits::default();
//! let before = b"<track><unit>ALPHA</unit><speed>12</speed></track>";
//! let known = Dictionary::new(&before[..], &limits)?;
//! let mut coder = Coder::new(&known, Method::Mix, None, &limits)?;
//! let message = b"<track><unit>ALPHA</unit><speed>13</speed></track>";
//! let coded = coder.encode(message)?;
//! assert!(coded.len() < 24);
//! assert_eq!(coder.decode(&coded)?, message);
//! # Ok::<(), longwire_codec::Error>(())
//! ```

mod code;
mod distil;
mod kept;
mod mix;
pub mod rfc9842;
mod store;
#[cfg(test)]
mod tests;
mod train;

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::{Error, Limits};

pub use code::{Coder, Method, delta};
pub use distil::{DISTILLED_BYTES, Distilled, distil, unpack_parcel};
pub use kept::Kept;
pub use store::{Entry, Store};
pub(crate) use store::{pack, unpack};
pub use train::{excerpt, gather, train};

const NAME: &str = "dictionary";
/// What a dictionary begins with that zstd's trainer made (RFC 8878 §5).
const TRAINED_MAGIC: [u8; 4] = [0x37, 0xa4, 0x30, 0xec];

/// SHA-256 of a dictionary's bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(
    /// The hash.
    pub [u8; 32],
);

impl Id {
    /// The hash of `content`.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        Self(Sha256::digest(content).into())
    }

    /// Its first eight bytes, which stand in coded messages.
    #[must_use]
    pub fn short(&self) -> [u8; 8] {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        [a, b, c, d, e, f, g, h]
    }
}

/// In hexadecimal.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}

/// Bytes that both sides have, and their identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dictionary {
    content: Arc<[u8]>,
    id: Id,
    trained: bool,
}

impl Dictionary {
    /// A dictionary with this content, at most [`Limits::table_bytes`] long. What begins with the
    /// magic number of zstd's trainer counts as trained, all else as raw content (RFC 8878 §5).
    pub fn new(content: impl Into<Arc<[u8]>>, limits: &Limits) -> Result<Self, Error> {
        let content: Arc<[u8]> = content.into();
        if content.len() > limits.table_bytes {
            let most = limits.table_bytes;
            let what = format!("{} bytes, over the {most} of table_bytes", content.len());
            return Err(Error::Limit { codec: NAME, what });
        }
        let trained = content.starts_with(&TRAINED_MAGIC);
        Ok(Self { id: Id::of(&content), content, trained })
    }

    /// As [`Dictionary::new`], but raw content whatever it begins with: any message can be the
    /// dictionary of the next.
    pub fn raw(content: impl Into<Arc<[u8]>>, limits: &Limits) -> Result<Self, Error> {
        Self::new(content, limits).map(|dictionary| Self { trained: false, ..dictionary })
    }

    /// Its bytes.
    #[must_use]
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// What it is known by.
    #[must_use]
    pub fn id(&self) -> Id {
        self.id
    }

    /// Whether it has the tables of zstd's trainer.
    #[must_use]
    pub fn is_trained(&self) -> bool {
        self.trained
    }
}

fn corrupt(what: impl Into<String>) -> Error {
    Error::Corrupt { codec: NAME, what: what.into() }
}
