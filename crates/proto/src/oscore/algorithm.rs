//! AEAD algorithms of COSE (RFC 9053 §4) and the keys that they take.

use std::fmt;

use aes::Aes128;
use aes_gcm::Aes128Gcm;
use ccm::{
    Ccm,
    aead::{AeadInPlace, KeyInit, consts},
};
use chacha20poly1305::ChaCha20Poly1305;
use zeroize::Zeroize;

use crate::Error;

/// CCM with a tag of 8 bytes and a nonce of 13 (RFC 9053 §4.2).
type Ccm64 = Ccm<Aes128, consts::U8, consts::U13>;
/// CCM with a tag of 16 bytes and a nonce of 13.
type Ccm128 = Ccm<Aes128, consts::U16, consts::U13>;

/// The longest key, in bytes.
const MAX_KEY_BYTES: usize = 32;
/// The longest nonce, in bytes.
pub(super) const MAX_NONCE_BYTES: usize = 13;
/// The longest tag, in bytes.
pub(super) const MAX_TAG_BYTES: usize = 16;
/// What a nonce has beside the identifier: its length in a byte, and a Partial IV of 5 bytes
/// (RFC 8613 §5.2).
const NONCE_REST_BYTES: usize = 6;
/// The longest Sender ID or Recipient ID, in bytes (RFC 8613 §3.3).
pub const MAX_ID_BYTES: usize = MAX_NONCE_BYTES - NONCE_REST_BYTES;

/// An AEAD algorithm. Both ends must have agreed on it before (RFC 8613 §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// AES-CCM with 128-bit keys, 64-bit tags and 13-byte nonces: the one that all must have.
    #[default]
    AesCcm16_64_128,
    /// AES-CCM with 128-bit keys, 128-bit tags and 13-byte nonces.
    AesCcm16_128_128,
    /// AES-GCM with 128-bit keys, 128-bit tags and 12-byte nonces.
    AesGcm128,
    /// ChaCha20/Poly1305 with 256-bit keys, 128-bit tags and 12-byte nonces.
    ChaCha20Poly1305,
}

impl Algorithm {
    /// Its number in the registry of COSE algorithms (RFC 9053 tables 5 to 7).
    #[must_use]
    pub fn number(self) -> u64 {
        match self {
            Self::AesGcm128 => 1,
            Self::AesCcm16_64_128 => 10,
            Self::ChaCha20Poly1305 => 24,
            Self::AesCcm16_128_128 => 30,
        }
    }

    /// The algorithm of a number.
    ///
    /// # Errors
    /// An algorithm that is not here.
    pub fn of_number(number: u64) -> Result<Self, Error> {
        match number {
            1 => Ok(Self::AesGcm128),
            10 => Ok(Self::AesCcm16_64_128),
            24 => Ok(Self::ChaCha20Poly1305),
            30 => Ok(Self::AesCcm16_128_128),
            value => Err(Error::Peer { what: "an AEAD algorithm that is not known", value }),
        }
    }

    /// Length of a key, in bytes.
    #[must_use]
    pub fn key_bytes(self) -> usize {
        match self {
            Self::ChaCha20Poly1305 => 32,
            _ => 16,
        }
    }

    /// Length of a nonce and of the Common IV, in bytes.
    #[must_use]
    pub fn nonce_bytes(self) -> usize {
        match self {
            Self::AesCcm16_64_128 | Self::AesCcm16_128_128 => 13,
            Self::AesGcm128 | Self::ChaCha20Poly1305 => 12,
        }
    }

    /// Length of a tag, by which a ciphertext is longer than its plaintext, in bytes.
    #[must_use]
    pub fn tag_bytes(self) -> usize {
        match self {
            Self::AesCcm16_64_128 => 8,
            _ => 16,
        }
    }

    /// The longest Sender ID or Recipient ID, in bytes (RFC 8613 §3.3).
    #[must_use]
    pub fn max_id_bytes(self) -> usize {
        self.nonce_bytes() - NONCE_REST_BYTES
    }

    /// Encrypts `buffer` in place and appends the tag.
    pub(super) fn seal(
        self,
        key: &Key,
        nonce: &Nonce,
        aad: &[u8],
        buffer: &mut Vec<u8>,
    ) -> Result<(), Error> {
        match self {
            Self::AesCcm16_64_128 => seal::<Ccm64>(key, nonce, aad, buffer),
            Self::AesCcm16_128_128 => seal::<Ccm128>(key, nonce, aad, buffer),
            Self::AesGcm128 => seal::<Aes128Gcm>(key, nonce, aad, buffer),
            Self::ChaCha20Poly1305 => seal::<ChaCha20Poly1305>(key, nonce, aad, buffer),
        }
    }

    /// Decrypts `buffer` in place and takes the tag off; `None` where the tag is not right, and
    /// what the buffer holds then must not be used.
    pub(super) fn open(
        self,
        key: &Key,
        nonce: &Nonce,
        aad: &[u8],
        buffer: &mut Vec<u8>,
    ) -> Option<()> {
        match self {
            Self::AesCcm16_64_128 => open::<Ccm64>(key, nonce, aad, buffer),
            Self::AesCcm16_128_128 => open::<Ccm128>(key, nonce, aad, buffer),
            Self::AesGcm128 => open::<Aes128Gcm>(key, nonce, aad, buffer),
            Self::ChaCha20Poly1305 => open::<ChaCha20Poly1305>(key, nonce, aad, buffer),
        }
    }
}

fn seal<A: AeadInPlace + KeyInit>(
    key: &Key,
    nonce: &Nonce,
    aad: &[u8],
    buffer: &mut Vec<u8>,
) -> Result<(), Error> {
    let wrong = Error::Caller { what: "a key or plaintext that the AEAD algorithm cannot take" };
    let cipher = A::new_from_slice(key.bytes()).map_err(|_| wrong.clone())?;
    let nonce = nonce_of::<A>(nonce).ok_or(wrong.clone())?;
    let tag = cipher.encrypt_in_place_detached(&nonce, aad, buffer).map_err(|_| wrong)?;
    buffer.extend_from_slice(&tag);
    Ok(())
}

fn open<A: AeadInPlace + KeyInit>(
    key: &Key,
    nonce: &Nonce,
    aad: &[u8],
    buffer: &mut Vec<u8>,
) -> Option<()> {
    let cipher = A::new_from_slice(key.bytes()).ok()?;
    let nonce = nonce_of::<A>(nonce)?;
    let mut tag = ccm::aead::Tag::<A>::default();
    let len = buffer.len().checked_sub(tag.len())?;
    tag.copy_from_slice(buffer.get(len..)?);
    buffer.truncate(len);
    cipher.decrypt_in_place_detached(&nonce, aad, buffer, &tag).ok()
}

fn nonce_of<A: AeadInPlace>(nonce: &Nonce) -> Option<ccm::aead::Nonce<A>> {
    ccm::aead::Nonce::<A>::from_exact_iter(nonce.bytes().iter().copied())
}

/// A key, which is not printed and is cleared when it is dropped.
#[derive(Clone)]
pub(super) struct Key {
    bytes: [u8; MAX_KEY_BYTES],
    len: usize,
}

impl Key {
    /// A key of zeros, to be filled.
    pub(super) fn zero(algorithm: Algorithm) -> Self {
        Self { bytes: [0; MAX_KEY_BYTES], len: algorithm.key_bytes() }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.len).unwrap_or_default()
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// A nonce, or the Common IV: no secret by itself, but nobody else's business.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Nonce {
    bytes: [u8; MAX_NONCE_BYTES],
    len: usize,
}

impl Nonce {
    /// Zeros, to be filled.
    pub(super) fn zero(algorithm: Algorithm) -> Self {
        Self { bytes: [0; MAX_NONCE_BYTES], len: algorithm.nonce_bytes() }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.len).unwrap_or_default()
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonce(..)")
    }
}
