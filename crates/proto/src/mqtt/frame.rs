//! The fixed header: where a packet of a stream ends (MQTT 5 §2.1).

use super::reason::Reason;
use super::refused::Refused;

/// Longest fixed header: the first byte and four of the remaining length.
pub const MAX_HEADER_BYTES: usize = 5;
/// Largest remaining length that four bytes can say (MQTT 5 §1.5.5).
pub const MAX_REMAINING_BYTES: usize = 268_435_455;

/// A fixed header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The first byte: the type of the packet and its flags.
    pub first: u8,
    /// How many bytes the header has, 2 to 5.
    pub header_len: usize,
    /// How many bytes follow it: the remaining length.
    pub body_len: usize,
}

impl Header {
    /// How many bytes the packet has in all.
    #[must_use]
    pub fn packet_len(&self) -> usize {
        self.header_len + self.body_len
    }

    /// Whether the remaining length has as few bytes as it can, which MQTT 5 demands (§1.5.5,
    /// MQTT-1.5.5-1) and MQTT 3.1.1 does not.
    #[must_use]
    pub fn is_minimal(&self) -> bool {
        self.header_len == 1 + varint_len(self.body_len)
    }
}

/// How many bytes a variable byte integer has (MQTT 5 §1.5.5).
pub(super) fn varint_len(value: usize) -> usize {
    match value {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        _ => 4,
    }
}

/// Reads the fixed header at the start of `input`; `None` where more bytes are needed to read it.
/// The body need not be there yet. A packet of more than `max_bytes` is refused as soon as its
/// length is known.
///
/// # Errors
///
/// - Malformed Packet: a remaining length of more than four bytes (MQTT 5 §1.5.5), or type 0
///   (§2.1.2).
/// - Packet too large: it has more than `max_bytes` (§3.2.2.3.6).
pub fn frame(input: &[u8], max_bytes: usize) -> Result<Option<Header>, Refused> {
    let [first, rest @ ..] = input else { return Ok(None) };
    if first >> 4 == 0 {
        return Err(Refused::malformed("a packet of the reserved type 0"));
    }
    let mut body_len = 0;
    for (at, byte) in rest.iter().take(MAX_HEADER_BYTES - 1).enumerate() {
        body_len |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            let header = Header { first: *first, header_len: at + 2, body_len };
            if header.packet_len() > max_bytes {
                let what = "a packet longer than is accepted here";
                return Err(Refused::with(Reason::PACKET_TOO_LARGE, what));
            }
            return Ok(Some(header));
        }
    }
    if rest.len() >= MAX_HEADER_BYTES - 1 {
        return Err(Refused::malformed("a remaining length of more than four bytes"));
    }
    Ok(None)
}
