//! A profile as a field of HTTP: an item of structured fields (RFC 9651 §3.3.5, byte sequence).

use super::packet::{MAX_BYTES, Packet, Profile};
use crate::{Error, structured};
use base64::{Engine as _, engine::general_purpose::STANDARD};

/// Name of the field of requests.
pub const FIELD: &str = "longwire-profile";
/// Name of the field of answers whose value `?1` asks for the whole packet.
pub const WANTED_FIELD: &str = "longwire-profile-wanted";
/// Longest text accepted, in bytes: the longest packet and some parameters.
pub const MAX_TEXT_BYTES: usize = 2 * MAX_BYTES;

/// The value of the field.
#[must_use]
pub fn encode_field(profile: &Profile) -> String {
    let mut bytes = Vec::new();
    profile.encode(&mut bytes);
    let mut text = String::from(":");
    STANDARD.encode_string(&bytes, &mut text);
    text.push(':');
    text
}

/// Reads the value of the field, with parameters that mean nothing yet (RFC 9651 §2: what a field
/// does not define is ignored). Several fields of the name, joined by commas, are none.
pub fn decode_field(value: &[u8]) -> Result<Packet, Error> {
    if value.len() > MAX_TEXT_BYTES {
        let (value, limit) = (value.len() as u64, MAX_TEXT_BYTES as u64);
        return Err(Error::Limit { what: "the size of a profile's text", value, limit });
    }
    decode_digits(structured::byte_sequence(value)?)
}

/// Reads what is between the colons, or in a header block.
pub(super) fn decode_digits(digits: &[u8]) -> Result<Packet, Error> {
    Packet::decode(&structured::base64(digits)?)
}
