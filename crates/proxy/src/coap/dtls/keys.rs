//! Pre-shared keys by identity (RFC 4279 §5), as a file or as text.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use dimpl::PskResolver;

use super::super::text;
use crate::{Error, strict};

/// Longest identity and key that are, in bytes (RFC 4279 §5.3 asks for 128 and 64 at least).
pub const MAX_IDENTITY_BYTES: usize = 128;
const MAX_KEY_BYTES: usize = 64;
/// Shortest key, in bytes: who sees a handshake can try short ones (RFC 4279 §7.2).
const MIN_KEY_BYTES: usize = 16;
/// Most keys of a server.
const MAX_KEYS: usize = 4096;
/// Largest file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Keys by identity. They are not shown.
#[derive(Clone, Default)]
pub struct Keys(BTreeMap<Vec<u8>, Vec<u8>>);

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({})", self.0.len())
    }
}

impl PskResolver for Keys {
    fn resolve(&self, identity: &[u8]) -> Option<Vec<u8>> {
        self.0.get(identity).cloned()
    }
}

impl Keys {
    /// Reads a file of lines `"IDENTITY" = "KEY"` (TOML). It may be read by its owner alone.
    ///
    /// # Errors
    /// [`Error::Caller`] with the identity, the limit and the remedy.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let shown = path.display();
        let mut file = strict::open(path, "the file of keys")?;
        file.check_private()?;
        let bytes = file.read(MAX_FILE_BYTES)?;
        let wrong = |what: String| Error::Caller(format!("file of keys {shown}: {what}"));
        let toml = str::from_utf8(&bytes).map_err(|_| wrong("it is no text".to_owned()))?;
        // The whole error would show the line, and the key in it.
        let all: BTreeMap<String, String> =
            toml::from_str(toml).map_err(|error| wrong(error.message().to_owned()))?;
        if all.is_empty() || all.len() > MAX_KEYS {
            let has = all.len();
            return Err(wrong(format!("it has {has} identities: give 1 to {MAX_KEYS}")));
        }
        let mut keys = Self::default();
        for (identity, key) in &all {
            let shown = text::printable(identity);
            let pair = parse(identity, key).map_err(|what| wrong(format!("'{shown}': {what}")));
            let (identity, key) = pair?;
            keys.0.insert(identity, key);
        }
        Ok(keys)
    }
}

/// An identity and its key.
pub type Pair = (Vec<u8>, Vec<u8>);

/// An identity and its key, which is in hexadecimal behind `0x` and else the text itself.
///
/// # Errors
/// What is wrong, without the key.
pub fn parse(identity: &str, key: &str) -> Result<Pair, String> {
    if identity.is_empty() || identity.len() > MAX_IDENTITY_BYTES {
        let has = identity.len();
        return Err(format!("an identity of {has} bytes: give 1 to {MAX_IDENTITY_BYTES}"));
    }
    let bytes = match key.strip_prefix("0x") {
        Some(digits) => text::bytes_of(digits).ok_or("a key that is no hex behind 0x")?,
        None => key.as_bytes().to_vec(),
    };
    let limits = MIN_KEY_BYTES..=MAX_KEY_BYTES;
    if !limits.contains(&bytes.len()) {
        let (has, least, most) = (bytes.len(), MIN_KEY_BYTES, MAX_KEY_BYTES);
        return Err(format!("a key of {has} bytes: give {least} to {most}"));
    }
    Ok((identity.as_bytes().to_vec(), bytes))
}
