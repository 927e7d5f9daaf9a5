//! Options and payload as bytes (RFC 7252 §3.1), and the plaintext of a COSE object, which is a
//! message of CoAP without its header (RFC 8613 §5.3).

use crate::Error;

use super::message::CoapMessage;

/// The longest plaintext, in bytes: what CCM encrypts with nonces of 13 bytes (RFC 3610 §2.1), for
/// all algorithms. It fits a datagram.
pub const MAX_PLAINTEXT_BYTES: usize = 65_535;
/// The most options of a message: each costs its receiver more memory than its sender bytes.
pub const MAX_OPTIONS: usize = 256;
/// In front of a payload (RFC 7252 §3).
const MARKER: u8 = 0xff;
/// A delta or length from here on has a byte more.
const MIN_ONE: u32 = 13;
/// From here on, two.
const MIN_TWO: u32 = 269;
const WHAT: &str = "a protected message";

/// Writes code, options and payload. The options must be in order.
pub(super) fn encode(message: &CoapMessage) -> Result<Vec<u8>, Error> {
    if message.options.len() > MAX_OPTIONS {
        let (value, limit) = (message.options.len() as u64, MAX_OPTIONS as u64);
        return Err(Error::Limit { what: "options of a message", value, limit });
    }
    let mut out = vec![message.code];
    encode_body(message, &mut out)?;
    if out.len() > MAX_PLAINTEXT_BYTES {
        let (value, limit) = (out.len() as u64, MAX_PLAINTEXT_BYTES as u64);
        return Err(Error::Limit { what: "a message to protect in bytes", value, limit });
    }
    Ok(out)
}

/// Writes options and payload as they stand behind a header.
pub(super) fn encode_body(message: &CoapMessage, out: &mut Vec<u8>) -> Result<(), Error> {
    let mut before = 0;
    for (number, value) in message.options() {
        let unordered = Error::Caller { what: "options that are not in order" };
        let (delta, more_delta) = nibble(number.checked_sub(before).ok_or(unordered)?.into());
        let too_long = Error::Caller { what: "an option that is longer than CoAP can say" };
        let len = u32::try_from(value.len()).map_err(|_| too_long.clone())?;
        if len >= MIN_TWO + (1 << 16) {
            return Err(too_long);
        }
        let (len, more_len) = nibble(len);
        out.push(delta << 4 | len);
        out.extend(more_delta);
        out.extend(more_len);
        out.extend_from_slice(value);
        before = number;
    }
    if !message.payload.is_empty() {
        out.push(MARKER);
        out.extend_from_slice(&message.payload);
    }
    Ok(())
}

/// The four bits of a delta or length, and what follows (RFC 7252 §3.1).
fn nibble(value: u32) -> (u8, impl Iterator<Item = u8>) {
    let (bits, [_, _, high, low], more) = match value {
        // Less than 13: the cast keeps all of it.
        0..MIN_ONE => (value.to_be_bytes()[3], [0; 4], 0),
        MIN_ONE..MIN_TWO => (13, (value - MIN_ONE).to_be_bytes(), 1),
        _ => (14, (value - MIN_TWO).to_be_bytes(), 2),
    };
    (bits, [high, low].into_iter().skip(2 - more))
}

/// Reads code, options and payload.
pub(super) fn decode(bytes: &[u8]) -> Result<CoapMessage, Error> {
    let (&code, body) = bytes.split_first().ok_or(Error::Truncated { what: WHAT })?;
    decode_body(code, body)
}

/// Reads options and payload as they stand behind a header.
pub(super) fn decode_body(code: u8, mut rest: &[u8]) -> Result<CoapMessage, Error> {
    let mut message = CoapMessage { code, ..CoapMessage::default() };
    let mut number: u16 = 0;
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        if first == MARKER {
            // RFC 7252 §3: a marker with nothing behind it is a format error.
            if rest.is_empty() {
                return Err(Error::Truncated { what: WHAT });
            }
            message.payload = rest.to_vec();
            break;
        }
        if message.options.len() == MAX_OPTIONS {
            let limit = MAX_OPTIONS as u64;
            return Err(Error::Limit { what: "options of a message", value: limit + 1, limit });
        }
        let delta = take_extended(first >> 4, &mut rest)?;
        let len = take_extended(first & 0x0f, &mut rest)?;
        let too_great =
            Error::Peer { what: "number of an option over 65535", value: u64::from(delta) };
        number = u16::try_from(u32::from(number) + delta).map_err(|_| too_great)?;
        let truncated = Error::Truncated { what: "an option" };
        let len = usize::try_from(len).map_err(|_| truncated.clone())?;
        let (value, behind) = rest.split_at_checked(len).ok_or(truncated)?;
        rest = behind;
        message.options.push((number, value.to_vec()));
    }
    Ok(message)
}

/// A delta or length by its four bits and what follows.
fn take_extended(bits: u8, rest: &mut &[u8]) -> Result<u32, Error> {
    let (base, more) = match bits {
        0..=12 => return Ok(bits.into()),
        13 => (MIN_ONE, 1),
        14 => (MIN_TWO, 2),
        // RFC 7252 §3.1: 15 is reserved.
        _ => return Err(Error::Peer { what: "reserved bits of an option", value: bits.into() }),
    };
    let truncated = Error::Truncated { what: "an option" };
    let (bytes, behind) = rest.split_at_checked(more).ok_or(truncated)?;
    *rest = behind;
    Ok(base + bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
}
