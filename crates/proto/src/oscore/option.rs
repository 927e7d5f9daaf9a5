//! The OSCORE option: the header of a COSE object, compressed (RFC 8613 §6.1), and what is
//! authenticated of it (§5.4).

use crate::{Error, cbor::Encoder};

use super::Algorithm;

/// Number of the option (RFC 8613 §2).
pub const OSCORE: u16 = 9;
/// The longest value of the option, in bytes (RFC 8613 §2).
pub const MAX_OPTION_BYTES: usize = 255;
/// The greatest Partial IV and Sender Sequence Number (RFC 8613 §7.2.1).
pub const MAX_PARTIAL_IV: u64 = (1 << 40) - 1;
/// A Partial IV in a nonce, and the longest in the option.
pub(super) const PARTIAL_IV_BYTES: usize = 5;
/// The version of OSCORE that goes into the AAD (RFC 8613 §5.4).
const VERSION: u64 = 1;

/// Bits of the first byte: the length of the Partial IV.
const LENGTH: u8 = 0x07;
/// A kid follows.
const KID: u8 = 0x08;
/// A kid context follows.
const KID_CONTEXT: u8 = 0x10;
const RESERVED: u8 = 0xe0;
const WHAT: &str = "an OSCORE option";

/// The value of an OSCORE option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OscoreOption<'a> {
    /// The sequence number of the message, up to [`MAX_PARTIAL_IV`]: in each request, and in
    /// responses that have their own.
    pub partial_iv: Option<u64>,
    /// The ID Context of who sends; at most 255 bytes.
    pub kid_context: Option<&'a [u8]>,
    /// The Sender ID of who sends: in each request.
    pub kid: Option<&'a [u8]>,
}

impl<'a> OscoreOption<'a> {
    /// The value of the option as it is sent.
    ///
    /// # Errors
    /// `Limit` where the number is too great, or the value would be longer than 255 bytes.
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut out = vec![0];
        let mut flags = 0;
        if let Some(number) = self.partial_iv {
            let bytes = PartialIv::new(number)?;
            out.extend_from_slice(bytes.bytes());
            // At most 5.
            flags |= bytes.len;
        }
        if let Some(context) = self.kid_context {
            flags |= KID_CONTEXT;
            let limit = u64::from(u8::MAX);
            let value = context.len() as u64;
            let too_long = Error::Limit { what: "a kid context in bytes", value, limit };
            out.push(u8::try_from(context.len()).map_err(|_| too_long)?);
            out.extend_from_slice(context);
        }
        if let Some(kid) = self.kid {
            flags |= KID;
            out.extend_from_slice(kid);
        }
        if out.len() > MAX_OPTION_BYTES {
            let (value, limit) = (out.len() as u64, MAX_OPTION_BYTES as u64);
            return Err(Error::Limit { what: "an OSCORE option in bytes", value, limit });
        }
        // RFC 8613 §2: where all flags are zero, the value is empty.
        match out.first_mut() {
            Some(first) if flags > 0 => *first = flags,
            _ => out.clear(),
        }
        Ok(out)
    }

    /// Reads the value of the option.
    ///
    /// # Errors
    /// Reserved bits or lengths, a value that ends too early or too late, a Partial IV that has
    /// zeros in front.
    pub fn decode(value: &'a [u8]) -> Result<Self, Error> {
        if value.len() > MAX_OPTION_BYTES {
            let (value, limit) = (value.len() as u64, MAX_OPTION_BYTES as u64);
            return Err(Error::Limit { what: "an OSCORE option in bytes", value, limit });
        }
        let Some((&flags, mut rest)) = value.split_first() else { return Ok(Self::default()) };
        let odd = |what| Error::Peer { what, value: u64::from(flags) };
        if flags == 0 {
            return Err(odd("an OSCORE option without flags that is not empty"));
        }
        if flags & RESERVED > 0 {
            return Err(odd("reserved flags in an OSCORE option"));
        }
        let len = usize::from(flags & LENGTH);
        // RFC 8613 §6.1: 6 and 7 are reserved.
        if len > PARTIAL_IV_BYTES {
            return Err(odd("reserved length of a Partial IV"));
        }
        let partial_iv = match take(&mut rest, len)? {
            [] => None,
            // RFC 8613 §5: zeros in front are removed, but for that of the number zero.
            [0, _, ..] => return Err(odd("a Partial IV with zeros in front")),
            bytes => Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))),
        };
        let kid_context = match flags & KID_CONTEXT {
            0 => None,
            _ => match take(&mut rest, 1)? {
                [len] => Some(take(&mut rest, usize::from(*len))?),
                _ => return Err(Error::Truncated { what: WHAT }),
            },
        };
        let kid = match flags & KID {
            0 if rest.is_empty() => None,
            0 => return Err(odd("bytes behind an OSCORE option")),
            _ => Some(rest),
        };
        Ok(Self { partial_iv, kid_context, kid })
    }
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], Error> {
    let (first, behind) = rest.split_at_checked(len).ok_or(Error::Truncated { what: WHAT })?;
    *rest = behind;
    Ok(first)
}

/// The bytes of a Partial IV: big-endian, without zeros in front, zero as one byte (RFC 8613 §5).
struct PartialIv {
    bytes: [u8; 8],
    len: u8,
}

impl PartialIv {
    fn new(number: u64) -> Result<Self, Error> {
        if number > MAX_PARTIAL_IV {
            let (what, limit) = ("a Partial IV", MAX_PARTIAL_IV);
            return Err(Error::Limit { what, value: number, limit });
        }
        let len = match number {
            0..=0xff => 1,
            0x100..=0xffff => 2,
            0x1_0000..=0xff_ffff => 3,
            0x100_0000..=0xffff_ffff => 4,
            _ => 5,
        };
        Ok(Self { bytes: number.to_be_bytes(), len })
    }

    fn bytes(&self) -> &[u8] {
        let from = self.bytes.len().saturating_sub(usize::from(self.len));
        self.bytes.get(from..).unwrap_or_default()
    }
}

/// The additional authenticated data of a request and of its responses (RFC 8613 §5.4). There are
/// no options of Class I yet.
pub(super) fn aad(algorithm: Algorithm, kid: &[u8], partial_iv: u64) -> Result<Vec<u8>, Error> {
    let mut external = Encoder::new(Vec::new());
    external.array(5)?;
    external.unsigned(VERSION)?;
    external.array(1)?;
    external.unsigned(algorithm.number())?;
    external.bytes(kid)?;
    external.bytes(PartialIv::new(partial_iv)?.bytes())?;
    external.bytes(&[])?;
    // RFC 9052 §5.3: the Enc_structure of a COSE_Encrypt0.
    let mut aad = Encoder::new(Vec::new());
    aad.array(3)?;
    aad.text("Encrypt0")?;
    aad.bytes(&[])?;
    aad.bytes(&external.into_sink())?;
    Ok(aad.into_sink())
}
