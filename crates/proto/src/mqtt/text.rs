//! Strings of UTF-8 as MQTT has them.

use std::fmt;
use std::str::{self, FromStr};

use bytes::Bytes;

use super::refused::Refused;

/// Longest string or binary data: its length has two bytes (MQTT 5 §1.5.4, §1.5.6).
pub const MAX_TEXT_BYTES: usize = 65_535;

/// A string of at most [`MAX_TEXT_BYTES`] bytes of UTF-8 without U+0000.
///
/// It is a part of the bytes that it was read from; a clone copies nothing.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Bytes);

impl Text {
    /// The string of nothing.
    pub const EMPTY: Self = Self(Bytes::new());

    /// Checks bytes: UTF-8 without surrogates (MQTT 5 §1.5.4, MQTT-1.5.4-1) and without U+0000
    /// (MQTT-1.5.4-2). U+FEFF, U+FFFE and control characters stay as they are (MQTT-1.5.4-3).
    ///
    /// # Errors
    ///
    /// [`Refused`] with the reason Malformed Packet.
    pub fn new(bytes: Bytes) -> Result<Self, Refused> {
        check(&bytes)?;
        Ok(Self(bytes))
    }

    /// Takes bytes that [`check`] passed.
    pub(super) fn checked(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// The string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Its bytes; that costs less than [`Self::as_str`], which checks them again.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its bytes, shared.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// How many bytes it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same string in memory of its own, which keeps no packet in memory.
    #[must_use]
    pub fn to_owned_bytes(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }
}

/// Checks a string; see [`Text::new`].
pub(super) fn check(bytes: &[u8]) -> Result<(), Refused> {
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(Refused::malformed("a string over 65,535 bytes"));
    }
    let (mut nulls, mut bits) = (false, 0);
    for byte in bytes {
        nulls |= *byte == 0;
        bits |= *byte;
    }
    // What is ASCII is UTF-8 too.
    if bits >= 0x80 && str::from_utf8(bytes).is_err() {
        return Err(Refused::malformed("a string that is no UTF-8"));
    }
    if nulls {
        return Err(Refused::malformed("U+0000 in a string"));
    }
    Ok(())
}

impl FromStr for Text {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Self, Refused> {
        Self::try_from(text)
    }
}

impl TryFrom<&str> for Text {
    type Error = Refused;

    fn try_from(text: &str) -> Result<Self, Refused> {
        Self::new(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl TryFrom<String> for Text {
    type Error = Refused;

    fn try_from(text: String) -> Result<Self, Refused> {
        Self::new(text.into())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
