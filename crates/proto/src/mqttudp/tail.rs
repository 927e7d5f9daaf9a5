//! Records behind the packet: an octet that says which, a length, and so many octets.

use super::hmac;
use super::packet::{put_length, take_length};
use crate::Error;

/// What the octets of records say.
mod tag {
    pub(super) const NUMBER: u8 = b'n';
    pub(super) const REPLY_TO: u8 = b'r';
    pub(super) const SENT_AT: u8 = b'p';
    pub(super) const MEASURED_AT: u8 = b'm';
    /// HMAC-MD5 of all that stands before it. Nothing stands behind it.
    pub(super) const MD5: u8 = b's';
    /// HMAC-SHA-256 of all that stands before it, which only this project knows. Nothing but the
    /// other signature stands behind it.
    pub(super) const SHA256: u8 = b'h';
}

/// What records say beside the signature. Each is there at most once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// `n`: the sender's number for this datagram, one more each time.
    pub number: Option<u32>,
    /// `r`: the number of the datagram that this one answers.
    pub reply_to: Option<u32>,
    /// `p`: when it was sent, in milliseconds since 1970 by the sender's clock. Which time zone
    /// that is in, nothing says; some senders have their own.
    pub sent_at_ms: Option<u64>,
    /// `m`: when the value was measured, in the same way.
    pub measured_at_ms: Option<u64>,
}

/// What a key says of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signature {
    /// It has none.
    Missing,
    /// It has one that this key did not make.
    Wrong,
    /// This key made it, by HMAC-MD5.
    Md5,
    /// This key made it, by HMAC-SHA-256.
    Sha256,
}

/// A signature and what it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Signed<'a, const N: usize> {
    before: &'a [u8],
    digest: [u8; N],
}

/// The signatures of a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Signatures<'a> {
    md5: Option<Signed<'a, 16>>,
    sha256: Option<Signed<'a, 32>>,
}

impl Signatures<'_> {
    /// The stronger one decides where there are two.
    pub(super) fn verify(&self, key: &[u8]) -> Signature {
        let verdict = |is_same: bool, signature| if is_same { signature } else { Signature::Wrong };
        match (&self.sha256, &self.md5) {
            (Some(Signed { before, digest }), _) => {
                verdict(hmac::is_same(&hmac::sha256(key, before), digest), Signature::Sha256)
            }
            (None, Some(Signed { before, digest })) => {
                verdict(hmac::is_same(&hmac::md5(key, before), digest), Signature::Md5)
            }
            (None, None) => Signature::Missing,
        }
    }
}

/// What a datagram is signed with.
#[derive(Clone, Copy)]
pub struct Signer<'k> {
    /// The key, of any length.
    pub key: &'k [u8],
    /// Whether there is a signature by HMAC-SHA-256, which others pass over.
    pub sha256: bool,
    /// Whether there is one by HMAC-MD5, which others check.
    pub md5: bool,
}

impl Signer<'_> {
    /// No signature.
    pub const NONE: Self = Self { key: &[], sha256: false, md5: false };

    pub(super) fn sign(&self, start: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.sha256 {
            let digest = hmac::sha256(self.key, out.get(start..).unwrap_or_default());
            put(tag::SHA256, &digest, out)?;
        }
        if self.md5 {
            let digest = hmac::md5(self.key, out.get(start..).unwrap_or_default());
            put(tag::MD5, &digest, out)?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Signer<'_> {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { key: _, sha256, md5 } = self;
        f.debug_struct("Signer").field("sha256", sha256).field("md5", md5).finish_non_exhaustive()
    }
}

impl Records {
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        for (tag, value) in [(tag::NUMBER, self.number), (tag::REPLY_TO, self.reply_to)] {
            value.map_or(Ok(()), |value| put(tag, &value.to_be_bytes(), out))?;
        }
        let times = [(tag::SENT_AT, self.sent_at_ms), (tag::MEASURED_AT, self.measured_at_ms)];
        for (tag, value) in times {
            value.map_or(Ok(()), |value| put(tag, &value.to_be_bytes(), out))?;
        }
        Ok(())
    }
}

fn put(tag: u8, value: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    out.push(tag);
    put_length(value.len(), out)?;
    out.extend(value);
    Ok(())
}

/// Reads the records of a datagram, which are the last octets of it.
pub(super) fn decode<'a>(
    datagram: &'a [u8],
    tail: &'a [u8],
) -> Result<(Records, Signatures<'a>), Error> {
    let (mut records, mut signatures) = (Records::default(), Signatures::default());
    let mut rest = tail;
    while let Some((&tag, more)) = rest.split_first() {
        let is_behind = match tag {
            tag::MD5 => signatures.md5.is_some(),
            _ => signatures.md5.is_some() || signatures.sha256.is_some(),
        };
        if is_behind {
            return Err(Error::Peer { what: "a record behind the signature", value: tag.into() });
        }
        let (len, more) = take_length(more)?;
        let (value, more) =
            more.split_at_checked(len).ok_or(Error::Truncated { what: "a record" })?;
        let before = datagram.get(..datagram.len() - rest.len()).unwrap_or_default();
        let is_repeated = match tag {
            tag::NUMBER => records.number.replace(u32::from_be_bytes(fixed(value)?)).is_some(),
            tag::REPLY_TO => records.reply_to.replace(u32::from_be_bytes(fixed(value)?)).is_some(),
            tag::SENT_AT => records.sent_at_ms.replace(u64::from_be_bytes(fixed(value)?)).is_some(),
            tag::MEASURED_AT => {
                records.measured_at_ms.replace(u64::from_be_bytes(fixed(value)?)).is_some()
            }
            tag::MD5 => signatures.md5.replace(Signed { before, digest: fixed(value)? }).is_some(),
            tag::SHA256 => {
                signatures.sha256.replace(Signed { before, digest: fixed(value)? }).is_some()
            }
            // Without knowing such a record the packet is not understood, and to be dropped.
            b'A'..=b'Z' => {
                return Err(Error::Peer { what: "unknown record that counts", value: tag.into() });
            }
            _ => false,
        };
        if is_repeated {
            return Err(Error::Peer { what: "a record twice", value: tag.into() });
        }
        rest = more;
    }
    Ok((records, signatures))
}

fn fixed<const N: usize>(value: &[u8]) -> Result<[u8; N], Error> {
    let what = "length of a record";
    value.try_into().map_err(|_| Error::Peer { what, value: value.len() as u64 })
}

/// Whether the number of a sender's datagram comes after another one, also where numbers begin at 0
/// again in between.
#[must_use]
pub fn is_newer(before: u32, after: u32) -> bool {
    matches!(after.wrapping_sub(before), 1..=0x7fff_ffff)
}
