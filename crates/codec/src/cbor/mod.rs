//! CBOR (RFC 8949) in place of JSON and XML.
//!
//! JSON comes back with its values, the text of its numbers, and keys in their order, doubled ones
//! too; white space and the way strings are escaped do not. What stands for what:
//!
//! | JSON | CBOR |
//! | --- | --- |
//! | whole number | integer, or a bignum (tags 2 and 3) of up to 128 bits |
//! | other number | float, if its usual text is the given one, or decimal fraction (tag 4) |
//! | any other text of a number: `-0`, `1E5`, `1.5e+3` | the text as embedded JSON (tag 262) |
//! | string | text string |
//! | the rest | array, map, `false`, `true`, `null` |
//!
//! Of the candidates for a number the shortest is taken. [`to_json`] also reads CBOR of others, by
//! the advice of RFC 8949 §6.1: bytes become base64url, what has no counterpart becomes `null`.
//!
//! XML goes through arrays with names and short values in tables that the message itself fills: see
//! `docs/formats/cbor-xml.md`. Its infoset comes back, with prefixes, comments, processing
//! instructions and the document type.
//!
//! ```
//! use longwire_codec::{Limits, cbor};
//! let limits = Limits::default();
//! let json = br#"{"lat":38.0351828,"lon":-1.50,"alt":1e3,"id":7}"#;
//! let coded = cbor::from_json(json, &cbor::Settings::default(), &limits)?;
//! assert_eq!(coded.len(), 34);
//! assert_eq!(cbor::to_json(&coded, &limits)?, json);
//! # Ok::<(), longwire_codec::Error>(())
//! ```

mod json;
mod markup;
mod number;
mod scan;
mod sort;
#[cfg(test)]
mod tests;
mod text;
mod write;
mod xml;

pub use json::{JsonEncoder, from_json};
pub use markup::{XmlDecoder, to_xml};
pub use text::{JsonDecoder, to_json};
pub use xml::{XmlEncoder, from_xml};

use crate::Error;

const NAME: &str = "cbor";

/// How to write CBOR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Core deterministic (RFC 8949 §4.2.1): keys are sorted, and doubled ones refused, so their
    /// order is lost.
    pub deterministic: bool,
}

fn malformed(offset: u64, what: impl Into<String>) -> Error {
    Error::Malformed { codec: NAME, offset, what: what.into() }
}

fn over(what: impl Into<String>) -> Error {
    Error::Limit { codec: NAME, what: what.into() }
}

/// An error of the items, at `offset`.
fn item_error(error: proto::Error, offset: u64) -> Error {
    match error {
        proto::Error::Limit { .. } => over(error.to_string()),
        error => malformed(offset, error.to_string()),
    }
}
