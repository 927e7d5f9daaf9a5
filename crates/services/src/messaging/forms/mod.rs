//! The forms that documents have outside: JSON, XML, CBOR and EXI, all by the same table of fields.

mod cbor;
mod exi;
pub(super) mod json;
#[cfg(test)]
mod tests;
mod xml;

use http::HeaderMap;
use http::header::CONTENT_TYPE;

pub(crate) use exi::SCHEMA;

use super::fields::{Layout, Record};
use super::refusal::{Reason, Refusal, shown};
use crate::http::{MediaType, accepts_media};

/// Longest document, in bytes: more than the longest message takes in any form.
pub(crate) const MAX_DOCUMENT_BYTES: usize = 512 * 1024;

/// A form of documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// JSON (RFC 8259).
    #[default]
    Json,
    /// XML 1.0, by the schema beside the service.
    Xml,
    /// CBOR (RFC 8949): a map with small numbers as keys.
    Cbor,
    /// EXI 1.0 of the XML, strict and bit-packed, by the same schema.
    Exi,
}

impl Form {
    /// All of them; the first is the one for clients that like all alike.
    pub const ALL: [Self; 4] = [Self::Json, Self::Xml, Self::Cbor, Self::Exi];

    /// Its name in configurations and options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Xml => "xml",
            Self::Cbor => "cbor",
            Self::Exi => "exi",
        }
    }

    /// Its media type (RFC 8259 §11, RFC 7303 §9.1, RFC 8949 §9.5, EXI appendix F).
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Xml => "application/xml",
            Self::Cbor => "application/cbor",
            Self::Exi => "application/exi",
        }
    }

    /// By its name.
    ///
    /// # Errors
    /// One line with the names that there are.
    pub fn parse(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|form| form.name() == text);
        found.ok_or_else(|| format!("'{}' is not one of json, xml, cbor, exi", shown(text)))
    }

    /// The form of content, by its Content-Type.
    ///
    /// # Errors
    /// [`Reason::Unsupported`] (415) with the media types that there are.
    pub(crate) fn of_content(headers: &HeaderMap) -> Result<Self, Refusal> {
        let Some(field) = headers.get(CONTENT_TYPE) else {
            return Err(unsupported("no Content-Type"));
        };
        let text = String::from_utf8_lossy(field.as_bytes());
        let essence = MediaType::parse(&text).map(|media| media.essence);
        let is_of = |form: &Self| {
            let name = essence.as_deref();
            // RFC 7303 §9.2: an alias.
            name == Some(form.media_type()) || (*form == Self::Xml && name == Some("text/xml"))
        };
        let found = Self::ALL.into_iter().find(is_of);
        found.ok_or_else(|| unsupported(&format!("Content-Type '{}' is not known", shown(&text))))
    }

    /// The form that the client accepts.
    ///
    /// # Errors
    /// [`Reason::NotAcceptable`] (406) with the media types that there are.
    pub(crate) fn acceptable(headers: &HeaderMap) -> Result<Self, Refusal> {
        let found = Self::ALL.into_iter().find(|form| accepts_media(headers, form.media_type()));
        found.ok_or_else(|| {
            let line = format!("Accept excludes each form; accept one of {}", media_types());
            Refusal::new(Reason::NotAcceptable, line)
        })
    }

    /// Writes a document.
    ///
    /// # Errors
    /// Where EXI's encoder meets its bounds, which a message is within.
    pub(crate) fn encode(self, layout: &Layout, record: &Record) -> Result<Vec<u8>, Refusal> {
        match self {
            Self::Json => Ok(json::encode(layout, record)),
            Self::Xml => Ok(xml::encode(layout, record).into_bytes()),
            Self::Cbor => cbor::encode(layout, record),
            Self::Exi => exi::encode(layout, record),
        }
    }

    /// Reads a document; every field in it is known and within its bounds.
    ///
    /// # Errors
    /// With the field, the value and the limit.
    pub(crate) fn decode(self, layout: &Layout, bytes: &[u8]) -> Result<Record, Refusal> {
        if bytes.len() > MAX_DOCUMENT_BYTES {
            return Err(too_large());
        }
        match self {
            Self::Json => json::decode(layout, bytes),
            Self::Xml => xml::decode(layout, bytes),
            Self::Cbor => cbor::decode(layout, bytes),
            Self::Exi => exi::decode(layout, bytes),
        }
    }
}

/// The refusal of a document that is too long.
pub(crate) fn too_large() -> Refusal {
    let line = format!("the document is over the limit of {MAX_DOCUMENT_BYTES} bytes; send less");
    Refusal::new(Reason::TooLarge, line)
}

fn media_types() -> String {
    Form::ALL.map(Form::media_type).join(", ")
}

fn unsupported(what: &str) -> Refusal {
    Refusal::new(Reason::Unsupported, format!("{what}; send one of {}", media_types()))
}

/// The refusal of a field that the document has not.
fn unknown_field(layout: &Layout, name: &str) -> Refusal {
    let (name, known) = (shown(name), layout.names());
    Refusal::malformed(format!(
        "field '{name}' is none of a {}: {known}; put your own into extensions",
        layout.name
    ))
}
