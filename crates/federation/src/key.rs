//! Public keys as `longwire keygen` writes them.

use std::fmt;

const SCHEME: &str = "ed25519:";
/// Most lines of a file of keys.
const MAX_KEYS: usize = 1024;

/// A public key of Ed25519 (RFC 8032).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(pub [u8; 32]);

impl Key {
    /// Reads `ed25519:` and 64 hexadecimal digits.
    ///
    /// # Errors
    /// What it is instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bytes = text.strip_prefix(SCHEME).and_then(from_hex);
        let wrong = || format!("'{}' is no key", crate::reader::shown(text));
        bytes.and_then(|bytes| bytes.try_into().ok()).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", to_hex(&self.0))
    }
}

/// The keys of a text in which each line names one, `NAME ed25519:HEX`, as `longwire.pub` does; `#`
/// begins a comment.
///
/// # Errors
/// The line that names none, in words.
pub fn keys_of(text: &str) -> Result<Vec<Key>, String> {
    let mut keys = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        let word = if first.starts_with(SCHEME) { Some(first) } else { words.next() };
        let key = word.map_or_else(|| Err("it names no key".to_owned()), Key::parse);
        let remedy = "write NAME ed25519:HEX, as in longwire.pub";
        keys.push(key.map_err(|what| format!("line {}: {what}: {remedy}", at + 1))?);
        if keys.len() > MAX_KEYS {
            return Err(format!("line {}: more than {MAX_KEYS} keys", at + 1));
        }
    }
    Ok(keys)
}

/// Lower-case hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes of lower-case hexadecimal digits; `None` for anything else.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .bytes()
        .map(|byte| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        })
        .collect();
    let pairs = digits?;
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(high << 4 | low),
        _ => None,
    };
    pairs.chunks(2).map(pair).collect()
}
