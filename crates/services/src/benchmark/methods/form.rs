//! How messages are written.

use codec::{Limits, cbor, exi, wbxml};

/// Longest message, in bytes: an answer of the largest size in XML.
const MAX_MESSAGE_BYTES: u64 = 8 << 20;

/// A form of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// XML as text.
    Xml,
    /// WBXML with SOAP's tokens.
    Wbxml,
    /// XML in CBOR.
    Cbor,
    /// EXI without a schema.
    Exi,
}

impl Form {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Xml, Self::Wbxml, Self::Cbor, Self::Exi];

    /// The name on the command line and in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Xml => "xml",
            Self::Wbxml => "wbxml",
            Self::Cbor => "cbor",
            Self::Exi => "exi",
        }
    }

    /// The form of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == name)
    }

    /// The media type of messages.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Xml => "text/xml; charset=utf-8",
            Self::Wbxml => "application/vnd.wap.wbxml",
            Self::Cbor => "application/cbor",
            Self::Exi => "application/exi",
        }
    }

    /// The form of a media type without parameters. `application/xml` is what a proxy of CoAP makes
    /// of content format 41.
    #[must_use]
    pub fn of_media(essence: &str) -> Option<Self> {
        match essence {
            "text/xml" | "application/xml" => Some(Self::Xml),
            other => Self::ALL.into_iter().find(|form| form.media_type() == other),
        }
    }

    /// Writes a document in XML in this form.
    ///
    /// # Errors
    /// One line: what the form cannot say.
    pub fn encode(self, xml: &[u8]) -> Result<Vec<u8>, String> {
        let limits = limits();
        let encoded = match self {
            Self::Xml => Ok(xml.to_vec()),
            Self::Wbxml => wbxml::encode(xml, &wbxml::Settings::default(), &limits),
            Self::Cbor => cbor::from_xml(xml, &cbor::Settings::default(), &limits),
            Self::Exi => exi::encode(xml, &exi::Options::default(), None, &limits),
        };
        encoded.map_err(|error| error.to_string())
    }

    /// The document in XML that a message in this form is.
    ///
    /// # Errors
    /// One line: what is wrong with it.
    pub fn decode(self, message: &[u8]) -> Result<Vec<u8>, String> {
        let limits = limits();
        let decoded = match self {
            Self::Xml => Ok(message.to_vec()),
            Self::Wbxml => wbxml::decode(message, &wbxml::Settings::default(), &limits),
            Self::Cbor => cbor::to_xml(message, &limits),
            Self::Exi => exi::decode(message, &exi::Options::default(), None, &limits),
        };
        decoded.map_err(|error| error.to_string())
    }
}

fn limits() -> Limits {
    Limits { output_bytes: MAX_MESSAGE_BYTES, ..Limits::default() }
}
