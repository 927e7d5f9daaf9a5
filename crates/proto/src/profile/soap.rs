//! A profile as a header block of SOAP, for clients whose requests pass what knows no field of
//! HTTP.
//! No node has to understand it: one that does not passes over it (SOAP 1.1 §4.2.3, SOAP 1.2 part 1
//! §5.2.3), and answers as always.

use super::packet::{Packet, Profile};
use super::text::{MAX_TEXT_BYTES, decode_digits};
use crate::Error;
use base64::{Engine as _, engine::general_purpose::STANDARD};

/// Namespace of the block.
pub const NAMESPACE: &str = "https://github.com/longwire/longwire/profile";
/// Local name of the block.
pub const NAME: &str = "Profile";

/// Version of SOAP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// SOAP 1.1 of 2000.
    V1_1,
    /// SOAP 1.2 of 2007.
    V1_2,
}

impl Version {
    /// Both.
    pub const ALL: [Self; 2] = [Self::V1_1, Self::V1_2];

    /// Namespace of its envelope.
    #[must_use]
    pub fn namespace(self) -> &'static str {
        match self {
            Self::V1_1 => "http://schemas.xmlsoap.org/soap/envelope/",
            Self::V1_2 => "http://www.w3.org/2003/05/soap-envelope",
        }
    }
}

/// The block, which declares its namespaces itself, to be put into a `Header`.
#[must_use]
pub fn encode_block(profile: &Profile, version: Version) -> String {
    let mut bytes = Vec::new();
    profile.encode(&mut bytes);
    let envelope = version.namespace();
    let mut text =
        format!("<p:{NAME} xmlns:p=\"{NAMESPACE}\" xmlns:s=\"{envelope}\" s:mustUnderstand=\"0\">");
    STANDARD.encode_string(&bytes, &mut text);
    text.push_str("</p:Profile>");
    text
}

/// Reads the character data of a block; white space may stand anywhere in it (XML Schema part 2
/// §3.2.16, base64Binary).
pub fn decode_content(content: &str) -> Result<Packet, Error> {
    if content.len() > MAX_TEXT_BYTES {
        let (value, limit) = (content.len() as u64, MAX_TEXT_BYTES as u64);
        return Err(Error::Limit { what: "the size of a profile's text", value, limit });
    }
    let digits: Vec<u8> =
        content.bytes().filter(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).collect();
    decode_digits(&digits)
}
