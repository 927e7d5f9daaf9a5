//! The security context: what is agreed, and what is derived from it (RFC 8613 §3).

use hkdf::Hkdf;
use sha2::Sha256;

use crate::{Error, cbor::Encoder};

use super::{
    algorithm::{Algorithm, Key, Nonce},
    option::{MAX_OPTION_BYTES, OscoreOption, PARTIAL_IV_BYTES},
};

/// The longest ID Context, in bytes. RFC 8613 §3.3 has no bound; here it must fit into the option
/// beside the longest Partial IV and Sender ID.
pub const MAX_ID_CONTEXT_BYTES: usize =
    MAX_OPTION_BYTES - 1 - PARTIAL_IV_BYTES - 1 - super::MAX_ID_BYTES;

/// What both ends have agreed on before (RFC 8613 §3.2). The HKDF is that with SHA-256.
#[derive(Clone, Copy)]
pub struct Parameters<'a> {
    /// The AEAD algorithm.
    pub algorithm: Algorithm,
    /// The Master Secret, of which all keys are derived.
    pub master_secret: &'a [u8],
    /// The Master Salt; empty where there is none.
    pub master_salt: &'a [u8],
    /// The name of this end. With [`Parameters::id_context`] it must be unique among all that
    /// have the same secret and salt, else nonces are used twice (RFC 8613 §3.3).
    pub sender_id: &'a [u8],
    /// The name of the other end.
    pub recipient_id: &'a [u8],
    /// What tells apart contexts of the same names.
    pub id_context: Option<&'a [u8]>,
}

/// Prints no secret.
impl std::fmt::Debug for Parameters<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parameters")
            .field("algorithm", &self.algorithm)
            .field("sender_id", &self.sender_id)
            .field("recipient_id", &self.recipient_id)
            .field("id_context", &self.id_context)
            .finish_non_exhaustive()
    }
}

/// What does not change in a security context: keys, Common IV and names (RFC 8613 §3.1).
///
/// Keys are cleared when it is dropped. What HKDF has in between is on the stack of
/// [`Context::derive`] and is not cleared: the library has no means for it.
#[derive(Clone, Debug)]
pub struct Context {
    algorithm: Algorithm,
    sender_id: Box<[u8]>,
    recipient_id: Box<[u8]>,
    id_context: Option<Box<[u8]>>,
    sender_key: Key,
    recipient_key: Key,
    common_iv: Nonce,
}

impl Context {
    /// Derives keys and Common IV (RFC 8613 §3.2.1).
    ///
    /// # Errors
    /// `Caller` for an empty secret or for two ends of one name, which would share a key;
    /// `Limit` for a name or an ID Context that is too long.
    pub fn derive(parameters: &Parameters<'_>) -> Result<Self, Error> {
        let Parameters { algorithm, sender_id, recipient_id, id_context, .. } = *parameters;
        if parameters.master_secret.is_empty() {
            return Err(Error::Caller { what: "a Master Secret of no bytes" });
        }
        if sender_id == recipient_id {
            return Err(Error::Caller { what: "a Sender ID that is the Recipient ID too" });
        }
        let max_id = algorithm.max_id_bytes();
        bounded("a Sender ID in bytes", sender_id, max_id)?;
        bounded("a Recipient ID in bytes", recipient_id, max_id)?;
        let id_bytes = id_context.unwrap_or_default();
        bounded("an ID Context in bytes", id_bytes, MAX_ID_CONTEXT_BYTES)?;

        let hkdf = Hkdf::<Sha256>::new(Some(parameters.master_salt), parameters.master_secret);
        let expand = |id: &[u8], kind: &str, out: &mut [u8]| {
            let info = info(id, id_context, algorithm, kind, out.len())?;
            let wrong = Error::Caller { what: "more bytes of HKDF than there are" };
            hkdf.expand(&info, out).map_err(|_| wrong)
        };
        let mut sender_key = Key::zero(algorithm);
        expand(sender_id, "Key", sender_key.bytes_mut())?;
        let mut recipient_key = Key::zero(algorithm);
        expand(recipient_id, "Key", recipient_key.bytes_mut())?;
        let mut common_iv = Nonce::zero(algorithm);
        expand(&[], "IV", common_iv.bytes_mut())?;
        Ok(Self {
            algorithm,
            sender_id: sender_id.into(),
            recipient_id: recipient_id.into(),
            id_context: id_context.map(Into::into),
            sender_key,
            recipient_key,
            common_iv,
        })
    }

    /// The AEAD algorithm.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The name of this end.
    #[must_use]
    pub fn sender_id(&self) -> &[u8] {
        &self.sender_id
    }

    /// The name of the other end.
    #[must_use]
    pub fn recipient_id(&self) -> &[u8] {
        &self.recipient_id
    }

    /// The ID Context, if there is one.
    #[must_use]
    pub fn id_context(&self) -> Option<&[u8]> {
        self.id_context.as_deref()
    }

    /// Whether a request with this option is for this context (RFC 8613 §8.2, step 2). Several may
    /// say so where the option names no ID Context.
    #[must_use]
    pub fn is_named(&self, option: &OscoreOption<'_>) -> bool {
        option.kid == Some(self.recipient_id())
            && option.kid_context.is_none_or(|named| Some(named) == self.id_context())
    }

    pub(super) fn sender_key(&self) -> &Key {
        &self.sender_key
    }

    pub(super) fn recipient_key(&self) -> &Key {
        &self.recipient_key
    }

    #[cfg(test)]
    pub(super) fn common_iv(&self) -> &Nonce {
        &self.common_iv
    }

    /// The nonce for a Partial IV that the end of this name has made (RFC 8613 §5.2).
    pub(super) fn nonce(&self, id: &[u8], partial_iv: u64) -> Nonce {
        let mut nonce = self.common_iv;
        let [_, _, _, partial_iv @ ..] = partial_iv.to_be_bytes();
        // From the end: the Partial IV in 5 bytes, the name, zeros, and its length in the first.
        let padded = partial_iv.iter().rev().chain(id.iter().rev());
        for (byte, mask) in nonce.bytes_mut().iter_mut().rev().zip(padded) {
            *byte ^= mask;
        }
        if let Some(first) = nonce.bytes_mut().first_mut() {
            // A name has at most 7 bytes.
            *first ^= u8::try_from(id.len()).unwrap_or(u8::MAX);
        }
        nonce
    }
}

fn bounded(what: &'static str, bytes: &[u8], limit: usize) -> Result<(), Error> {
    if bytes.len() > limit {
        return Err(Error::Limit { what, value: bytes.len() as u64, limit: limit as u64 });
    }
    Ok(())
}

/// The argument of HKDF that tells one output from another (RFC 8613 §3.2.1).
pub(super) fn info(
    id: &[u8],
    id_context: Option<&[u8]>,
    algorithm: Algorithm,
    kind: &str,
    len: usize,
) -> Result<Vec<u8>, Error> {
    let mut encoder = Encoder::new(Vec::new());
    encoder.array(5)?;
    encoder.bytes(id)?;
    match id_context {
        Some(bytes) => encoder.bytes(bytes)?,
        None => encoder.null()?,
    }
    encoder.unsigned(algorithm.number())?;
    encoder.text(kind)?;
    encoder.unsigned(len as u64)?;
    Ok(encoder.into_sink())
}
