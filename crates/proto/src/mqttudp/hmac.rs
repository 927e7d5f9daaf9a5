//! Keyed digests (RFC 2104) with the two hash functions that signatures here are made with.

use sha2::{Digest, Sha256};

use super::md5;

/// What both hash functions take at a time (RFC 2104 §2).
const BLOCK_BYTES: usize = 64;
/// RFC 2104 §2.
const INNER: u8 = 0x36;
const OUTER: u8 = 0x5c;

/// HMAC-MD5 of a message.
pub(super) fn md5(key: &[u8], message: &[u8]) -> [u8; 16] {
    keyed(md5::digest, key, message)
}

/// HMAC-SHA-256 of a message.
pub(super) fn sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    keyed(sha256_digest, key, message)
}

fn sha256_digest(parts: &[&[u8]]) -> [u8; 32] {
    parts.iter().fold(Sha256::new(), Digest::chain_update).finalize().into()
}

fn keyed<const N: usize>(hash: fn(&[&[u8]]) -> [u8; N], key: &[u8], message: &[u8]) -> [u8; N] {
    let mut pad = [0; BLOCK_BYTES];
    match pad.get_mut(..key.len()) {
        Some(room) => room.copy_from_slice(key),
        // RFC 2104 §2: a longer key is hashed first.
        None => pad.iter_mut().zip(hash(&[key])).for_each(|(room, byte)| *room = byte),
    }
    let inner = hash(&[&pad.map(|byte| byte ^ INNER), message]);
    hash(&[&pad.map(|byte| byte ^ OUTER), &inner])
}

/// Whether two digests are the same, in a time that does not tell where they differ.
pub(super) fn is_same<const N: usize>(one: &[u8; N], other: &[u8; N]) -> bool {
    one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// RFC 2202 §2, cases 1, 2 and 6.
    #[test]
    fn cases_of_hmac_md5_hold() {
        let longer = "Test Using Larger Than Block-Size Key - Hash Key First";
        for (key, message, expected) in [
            (&[0x0b; 16][..], "Hi There", "9294727a3638bb1c13f48ef8158bfc9d"),
            (b"Jefe", "what do ya want for nothing?", "750c783e6ab0b503eaa86e310a5db738"),
            (&[0xaa; 80], longer, "6b1ab7fe4bd7bf8f0b62e6ce61b9d0cd"),
        ] {
            assert_eq!(hex(&md5(key, message.as_bytes())), expected);
        }
    }

    /// RFC 4231 §4.2, §4.3 and §4.7.
    #[test]
    fn cases_of_hmac_sha_256_hold() {
        let longer = "Test Using Larger Than Block-Size Key - Hash Key First";
        for (key, message, expected) in [
            (
                &[0x0b; 20][..],
                "Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe",
                "what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 131],
                longer,
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ] {
            assert_eq!(hex(&sha256(key, message.as_bytes())), expected);
        }
    }

    #[test]
    fn digests_differ_where_any_byte_does() {
        let digest = md5(b"key", b"message");
        assert!(is_same(&digest, &digest));
        for at in 0..digest.len() {
            let mut other = digest;
            other[at] ^= 1;
            assert!(!is_same(&digest, &other));
        }
    }
}
