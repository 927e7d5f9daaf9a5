//! One document in another notation: JSON as CBOR, XML as EXI or CBOR, and back, for receivers who
//! want it so and have no other side that decodes it for them.
//!
//! Nothing is lost, or nothing is done: what comes out is read again and has to say the same. Of
//! JSON that is the values, the text of numbers, and keys in their order, doubled ones too; of XML
//! the infoset with prefixes, comments and processing instructions. White space between values of
//! JSON, the way strings are escaped, quotes of attributes and the like are not part of that.
//! Documents that may be signed or encrypted in part, and XML with a document type, stay what they
//! are.
//!
//! ```
//! use longwire_codec::{Limits, notation::{Notation, translate}};
//! let limits = Limits::default();
//! let json = br#"{"lat":59.9,"id":7}"#;
//! let cbor = translate(json, Notation::Json, Notation::Cbor, &limits)?;
//! assert_eq!(cbor.len(), 15);
//! assert_eq!(translate(&cbor, Notation::Cbor, Notation::Json, &limits)?, json);
//! # Ok::<(), longwire_codec::Error>(())
//! ```

use std::sync::Arc;

use proto::cbor::{
    Decoder, FALSE, Item, NULL, TAG_BIGNUM, TAG_DECIMAL, TAG_NEGATIVE_BIGNUM, TAG_SELF_DESCRIBED,
    TRUE,
};

use crate::exi::{self, Alignment, Grammars, Preserve, SchemaId};
use crate::infoset::{Marks, same_xml};
use crate::xml::{Event, Reader};
use crate::{Error, Limits, cbor};

const NAME: &str = "notation";
/// Deepest CBOR that becomes JSON, where what a number is made of are levels, too.
const DEPTH: usize = 64 + 3;
/// The tag of embedded JSON, by which numbers are kept that no number of CBOR gives back.
const TAG_JSON: u64 = 262;
/// XML from this length on is shorter in channels, with what deflate makes of them; of shorter
/// documents both forms are made.
const CHANNELS_BYTES: usize = 2 << 10;

/// A way to write a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notation {
    /// JSON (RFC 8259).
    Json,
    /// CBOR (RFC 8949) of what JSON can say.
    Cbor,
    /// XML 1.0 with namespaces, in UTF-8.
    Xml,
    /// EXI 1.0, its options in the header, no schema.
    Exi,
    /// XML in CBOR by `docs/formats/cbor-xml.md`.
    CborXml,
}

impl Notation {
    /// Every one, with its name and the media type of a document of which no more is known.
    pub const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::Json, "json", "application/json"),
        (Self::Cbor, "cbor", "application/cbor"),
        (Self::Xml, "xml", "application/xml"),
        (Self::Exi, "exi", "application/exi"),
        // An unregistered tree (RFC 6838 §3.4), as the mapping is nobody else's.
        (Self::CborXml, "cbor-xml", "application/x.longwire.xml+cbor"),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(own, ..)| *own == self).map_or("", |(_, name, _)| name)
    }

    /// The media type of a document of which no more is known.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        Self::ALL.iter().find(|(own, ..)| *own == self).map_or("", |(.., name)| name)
    }

    /// What a media type says that a document is written in; `None` for what is none of these.
    /// Parameters do not matter.
    #[must_use]
    pub fn of_media_type(media_type: &str) -> Option<Self> {
        let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let own = Self::ALL.iter().find(|(.., name)| *name == essence);
        if let Some((own, ..)) = own {
            return Some(*own);
        }
        match essence.rsplit_once('+') {
            Some((_, "json")) => Some(Self::Json),
            Some((_, "cbor")) => Some(Self::Cbor),
            Some((_, "xml")) => Some(Self::Xml),
            _ => (essence == "text/xml").then_some(Self::Xml),
        }
    }

    /// The notation of people that this one stands for: JSON or XML.
    #[must_use]
    pub fn text(self) -> Self {
        match self {
            Self::Json | Self::Cbor => Self::Json,
            Self::Xml | Self::Exi | Self::CborXml => Self::Xml,
        }
    }
}

/// Writes a document in another notation.
///
/// # Errors
/// It is not what `from` says, would lose something, is of another family than `to` (JSON has no
/// counterpart in XML), or passes a limit.
pub fn translate(
    document: &[u8],
    from: Notation,
    to: Notation,
    limits: &Limits,
) -> Result<Vec<u8>, Error> {
    if document.len() > limits.message_bytes {
        let (bytes, most) = (document.len(), limits.message_bytes);
        return Err(over(format!("document of {bytes} bytes, over the {most} of message_bytes")));
    }
    if from == to {
        return Ok(document.to_vec());
    }
    if from.text() != to.text() {
        let what = format!("what is written in {} cannot be in {}", from.name(), to.name());
        return Err(Error::Option { what });
    }
    let text = to_text(document, from, limits)?;
    let text = text.as_deref().unwrap_or(document);
    let out = of_text(text, to, limits)?.unwrap_or_else(|| text.to_vec());
    if out.len() as u64 > limits.output_bytes {
        let most = limits.output_bytes;
        return Err(over(format!("more than the {most} bytes of output_bytes come out")));
    }
    Ok(out)
}

/// As JSON or XML; `None` where it is that already.
fn to_text(document: &[u8], from: Notation, limits: &Limits) -> Result<Option<Vec<u8>>, Error> {
    let text = match from {
        Notation::Json | Notation::Xml => return Ok(None),
        Notation::Cbor => {
            check_plain(document)?;
            let text = cbor::to_json(document, limits)?;
            check_signed(&text)?;
            return Ok(Some(text));
        }
        Notation::Exi => exi_to_xml(document, limits)?,
        Notation::CborXml => cbor::to_xml(document, limits)?,
    };
    check_xml(&text, limits)?;
    check_signed(&text)?;
    Ok(Some(text))
}

/// JSON or XML in another notation; `None` where it is to stay.
fn of_text(text: &[u8], to: Notation, limits: &Limits) -> Result<Option<Vec<u8>>, Error> {
    if matches!(to, Notation::Json | Notation::Xml) {
        return Ok(None);
    }
    check_signed(text)?;
    let (coded, is_same) = match to {
        Notation::Exi => {
            let coded = xml_to_exi(text, limits)?;
            let is_same = same_xml(text, &exi_to_xml(&coded, limits)?, limits)?;
            (coded, is_same)
        }
        Notation::CborXml => {
            let coded = cbor::from_xml(text, &cbor::Settings::default(), limits)?;
            let is_same = same_xml(text, &cbor::to_xml(&coded, limits)?, limits)?;
            (coded, is_same)
        }
        _ => {
            let settings = cbor::Settings::default();
            let coded = cbor::from_json(text, &settings, limits)?;
            // No two texts of different values have the same form.
            let back = cbor::to_json(&coded, limits)?;
            let is_same = cbor::from_json(&back, &settings, limits)? == coded;
            (coded, is_same)
        }
    };
    match is_same {
        true => Ok(Some(coded)),
        false => Err(corrupt("it would not come back the same")),
    }
}

/// Whether CBOR has only what JSON has too: neither bytes nor tags, but those of numbers, nor other
/// simple values, nor numbers that are none.
fn check_plain(document: &[u8]) -> Result<(), Error> {
    let mut items = Decoder::<DEPTH>::new(document);
    let mut tag = None;
    loop {
        let offset = items.offset() as u64;
        let odd = |what: String| Error::Malformed { codec: NAME, offset, what };
        let Some(item) = items.next() else { return Ok(()) };
        let item = item.map_err(|error| odd(error.to_string()))?;
        let before = tag.take();
        match item {
            Item::Tag(number @ (TAG_BIGNUM | TAG_NEGATIVE_BIGNUM | TAG_JSON)) => {
                tag = Some(number);
            }
            Item::Tag(TAG_DECIMAL | TAG_SELF_DESCRIBED) => {}
            Item::Tag(number) => return Err(odd(format!("tag {number} has no place in JSON"))),
            Item::Bytes(_) if before.is_some() => {}
            Item::Bytes(_) | Item::StartBytes => {
                return Err(odd("bytes have no place in JSON".to_owned()));
            }
            Item::Simple(FALSE | TRUE | NULL) => {}
            Item::Simple(number) => {
                return Err(odd(format!("simple value {number} has no place in JSON")));
            }
            number if number.float().is_some_and(|value| !value.is_finite()) => {
                return Err(odd("a number that is not finite has no place in JSON".to_owned()));
            }
            _ => {}
        }
    }
}

/// EXI that says itself how it is to be read (EXI §5.4), in the shorter of two layouts.
fn xml_to_exi(text: &[u8], limits: &Limits) -> Result<Vec<u8>, Error> {
    let made = |alignment| {
        let preserve =
            Preserve { comments: true, pis: true, dtd: false, prefixes: true, lexical: true };
        let options = exi::Options {
            alignment,
            preserve,
            schema_id: SchemaId::None,
            options_in_header: true,
            ..exi::Options::default()
        };
        exi::encode(text, &options, None, limits)
    };
    let channels = made(Alignment::Compression)?;
    if text.len() >= CHANNELS_BYTES {
        return Ok(channels);
    }
    let packed = made(Alignment::BitPacked)?;
    Ok(if packed.len() <= channels.len() { packed } else { channels })
}

fn exi_to_xml(stream: &[u8], limits: &Limits) -> Result<Vec<u8>, Error> {
    let mut resolve = |options: &exi::Options| match &options.schema_id {
        SchemaId::None | SchemaId::Agreed => Ok(None),
        SchemaId::BuiltIn => Grammars::built_in(options, limits).map(|made| Some(Arc::new(made))),
        SchemaId::Named(name) => {
            let name: String = name.chars().take(80).collect();
            Err(Error::Option { what: format!("the stream needs the schema '{name}'") })
        }
    };
    exi::decode_with(stream, &exi::Options::default(), &mut resolve, limits)
}

/// Whether a text is XML: a stream may hold what none is made of.
fn check_xml(text: &[u8], limits: &Limits) -> Result<(), Error> {
    let mut reader = Reader::new(text, limits)?;
    loop {
        match reader.next()? {
            Event::Eof => return Ok(()),
            // What it declares would reach readers who ask for XML, behind whoever keeps it out.
            Event::Doctype(_) => return Err(corrupt("it has a document type")),
            _ => {}
        }
    }
}

/// What is signed or encrypted in part must come as it was written.
fn check_signed(text: &[u8]) -> Result<(), Error> {
    match Marks::of(text).signed {
        true => Err(corrupt("it may be signed or encrypted in part")),
        false => Ok(()),
    }
}

fn corrupt(what: &str) -> Error {
    Error::Corrupt { codec: NAME, what: what.to_owned() }
}

fn over(what: String) -> Error {
    Error::Limit { codec: NAME, what }
}

#[cfg(test)]
mod tests;
