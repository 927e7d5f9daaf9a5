//! Messages of which the infoset is all that has to come back, as the pair sends them: EXI, WBXML
//! and CBOR of up to a block.
//!
//! Whoever encodes decodes at once, and makes sure that what comes out says the same. So the sender
//! knows the text that the receiver will have, to the byte: its length, and what to send should the
//! receiver not be able to read it after all.
//!
//! A coded message is what its format has. Before EXI stands a byte: 1 for values in channels and
//! deflated, 2 for grammars of a schema, whose name (8 bytes) is behind it.

mod parcel;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use memchr::memmem;
use proto::exchange::MAX_BLOCK_BYTES;

use crate::codec::MIN_WINDOW_LOG;
use crate::exi::schema::{Document, Resolve};
use crate::exi::{self, Alignment, DocumentEncoder, Grammars, Preserve};
use crate::table::cbor::CborJson;
use crate::table::exi::Exi;
use crate::table::wbxml::WBXML;
use crate::xml::{Event, Reader, Start};
use crate::{Codec, Decoder, Encoder, Error, Limits, Options, cbor, wbxml};

pub use parcel::PARCEL_BYTES;

const NAME: &str = "infoset";
/// Memory of an encoder or a decoder, in bytes: what messages put into tables, and both forms.
pub const MEMORY_BYTES: usize = 4 << 20;
/// Coders kept at most of each kind: as many workers as code at the same time.
const MAX_CODERS: usize = 4;
/// A message from this length on is shorter in channels, with what deflate makes of them; of a
/// shorter one both forms are made.
const CHANNELS_BYTES: usize = 2 << 10;
/// Bytes before a text and its coded form: the text's length.
const PREFIX_BYTES: usize = 4;

/// Names of elements and members that sign or encrypt, or what they have in common.
const SIGNED: [&str; 4] = ["ignature", "EncryptedData", "EncryptedKey", "ciphertext"];

const CHANNELS: u8 = 1;
const SCHEMA: u8 = 2;

const EXI_NUMBER: u64 = 5;
const WBXML_NUMBER: u64 = 6;
const CBOR_NUMBER: u64 = 7;

/// Of one message. Tables are a part of [`MEMORY_BYTES`].
const LIMITS: Limits = Limits {
    output_bytes: MAX_BLOCK_BYTES as u64,
    depth: 256,
    table_bytes: 2 << 20,
    // EXI holds where each value ends beside the values, and short ones are many.
    message_bytes: 1 << 20,
};

impl Options {
    /// EXI without a schema.
    pub const EXI: Self = Self::of_infoset(&Exi, 0);
    /// EXI with the grammars of a schema that both sides have.
    pub const EXI_SCHEMA: Self = Self::of_infoset(&Exi, 1);
    /// WBXML, with the built-in token table that fits.
    pub const WBXML: Self = Self::of_infoset(&WBXML, 0);
    /// CBOR in place of JSON.
    pub const CBOR: Self = Self::of_infoset(&CborJson, 0);
    /// All that give an infoset back.
    pub const INFOSET: [Self; 4] = [Self::EXI, Self::EXI_SCHEMA, Self::WBXML, Self::CBOR];

    const fn of_infoset(codec: &'static dyn Codec, level: i8) -> Self {
        Self { codec, level, window_log: MIN_WINDOW_LOG }
    }

    /// Whether an infoset comes back, and not every byte: for [`SchemaContext`].
    #[must_use]
    pub fn is_infoset(self) -> bool {
        matches!(self.codec.number(), EXI_NUMBER | WBXML_NUMBER | CBOR_NUMBER)
    }
}

/// A message that was encoded, and the text that its reader will have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made<'a> {
    /// As the reader will have it.
    pub text: &'a [u8],
    /// As it is sent.
    pub coded: &'a [u8],
}

/// What [`SchemaContext::encoder`] gave out for a message; nothing where it is no such thing.
#[must_use]
pub fn made(bytes: &[u8]) -> Option<Made<'_>> {
    let (length, rest) = bytes.split_first_chunk::<PREFIX_BYTES>()?;
    let (text, coded) = rest.split_at_checked(u32::from_be_bytes(*length).try_into().ok()?)?;
    Some(Made { text, coded })
}

/// What a message has, wherever it stands in it, that matters before it is coded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// It may be signed or encrypted, in parts or as a whole: XML Signature and Encryption, also
    /// where WS-Security or SAML has them, and JSON that says so.
    pub signed: bool,
    /// A document type.
    pub doctype: bool,
    /// A comment of XML.
    pub comment: bool,
}

impl Marks {
    /// Looks for the words alone, and so rather sees too much.
    #[must_use]
    pub fn of(message: &[u8]) -> Self {
        let has = |mark: &str| memmem::find(message, mark.as_bytes()).is_some();
        Self {
            signed: SIGNED.iter().any(|mark| has(mark)),
            doctype: has("<!DOCTYPE"),
            comment: has("<!--"),
        }
    }
}

/// Name of the schema's grammars that a coded message was made with; none where it needs none.
///
/// # Errors
/// A message that is too short to say.
pub fn schema_of(options: Options, coded: &[u8]) -> Result<Option<[u8; 8]>, Error> {
    if options.codec.number() != EXI_NUMBER {
        return Ok(None);
    }
    Head::read(coded).map(|(head, _)| head.schema)
}

/// What stands before the EXI of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    channels: bool,
    schema: Option<[u8; 8]>,
}

impl Head {
    fn read(coded: &[u8]) -> Result<(Self, &[u8]), Error> {
        let short = || corrupt("EXI that is too short to say how it was made");
        let (&flags, mut rest) = coded.split_first().ok_or_else(short)?;
        if flags > CHANNELS | SCHEMA {
            return Err(corrupt("EXI that was made as this version does not know"));
        }
        let mut schema = None;
        if flags & SCHEMA != 0 {
            let (name, behind) = rest.split_first_chunk().ok_or_else(short)?;
            (schema, rest) = (Some(*name), behind);
        }
        Ok((Self { channels: flags & CHANNELS != 0, schema }, rest))
    }

    fn write(self, out: &mut Vec<u8>) {
        let flags = u8::from(self.channels) * CHANNELS + u8::from(self.schema.is_some()) * SCHEMA;
        out.push(flags);
        out.extend(self.schema.iter().flatten());
    }

    /// Everything but the header of a stream is kept; the name in front says the rest.
    fn options(self) -> exi::Options {
        let preserve =
            Preserve { comments: true, pis: true, dtd: false, prefixes: true, lexical: true };
        let alignment = if self.channels { Alignment::Compression } else { Alignment::BitPacked };
        exi::Options { alignment, preserve, ..exi::Options::default() }
    }
}

/// What a service's messages are made of, with the coders that know it.
pub struct SchemaContext {
    /// Name of the schema's grammars; none where there is none.
    name: Option<[u8; 8]>,
    /// Those of a schema that came in a parcel are made by [`SchemaContext::prepare`].
    grammars: OnceLock<Arc<Grammars>>,
    parcel: Option<Vec<u8>>,
    encoders: Mutex<Vec<(Head, DocumentEncoder)>>,
    decoders: Mutex<Vec<(Head, exi::Decoder<'static>)>>,
}

impl fmt::Debug for SchemaContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchemaContext").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl SchemaContext {
    fn new(name: Option<[u8; 8]>, parcel: Option<Vec<u8>>) -> Self {
        let (encoders, decoders) = (Mutex::default(), Mutex::default());
        Self { name, grammars: OnceLock::new(), parcel, encoders, decoders }
    }

    /// Without a schema.
    #[must_use]
    pub fn without_schema() -> Self {
        Self::new(None, None)
    }

    /// With the schema of these documents and of those that they refer to.
    ///
    /// # Errors
    /// Those of [`exi::Schema::parse`] and [`exi::Schema::grammars`].
    pub fn of_schema(
        documents: &[Document<'_>],
        resolve: &mut Resolve<'_>,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let (grammars, parcel) = parcel::of_documents(documents, resolve, limits)?;
        let schema_context = Self::new(grammars.hash.first_chunk().copied(), parcel);
        schema_context.grammars.get_or_init(|| Arc::new(grammars));
        Ok(schema_context)
    }

    /// With the schema that a peer calls so and sent. Nothing is read before
    /// [`SchemaContext::prepare`].
    #[must_use]
    pub fn of_parcel(name: [u8; 8], parcel: Vec<u8>) -> Self {
        Self::new(Some(name), Some(parcel))
    }

    /// Name of the grammars of its schema: both sides have the same if they call them the same.
    #[must_use]
    pub fn name(&self) -> Option<[u8; 8]> {
        self.name
    }

    /// Its schema for [`SchemaContext::of_parcel`] at another side, at most [`PARCEL_BYTES`]; none
    /// where there is none, or it is longer.
    #[must_use]
    pub fn parcel(&self) -> Option<&[u8]> {
        self.parcel.as_deref()
    }

    /// Whether a schema that came is compiled.
    #[must_use]
    pub fn is_prepared(&self) -> bool {
        self.grammars.get().is_some()
    }

    /// Compiles a schema that came, which may take some ten milliseconds.
    ///
    /// # Errors
    /// What is no schema, has another name, or takes too much.
    pub fn prepare(&self) -> Result<(), Error> {
        if self.is_prepared() {
            return Ok(());
        }
        let grammars = parcel::compile(self.parcel.as_deref().unwrap_or_default())?;
        if grammars.hash.first_chunk().copied() != self.name {
            return Err(corrupt("a schema that came under the name of another"));
        }
        self.grammars.get_or_init(|| Arc::new(grammars));
        Ok(())
    }

    /// What a coder with this head needs of the schema.
    fn grammars(&self, head: Head) -> Option<Arc<Grammars>> {
        self.grammars.get().filter(|_| head.schema.is_some()).cloned()
    }

    /// An encoder of one message, which is one block; [`made`] reads what it gives. It refuses a
    /// message that would not come back with the same infoset.
    #[must_use]
    pub fn encoder(self: &Arc<Self>, options: Options) -> Box<dyn Encoder> {
        Box::new(Coder { schema_context: Arc::clone(self), options })
    }

    /// A decoder of one message, which is one block.
    #[must_use]
    pub fn decoder(self: &Arc<Self>, options: Options) -> Box<dyn Decoder> {
        Box::new(Coder { schema_context: Arc::clone(self), options })
    }

    fn encode(&self, options: Options, message: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let coded = match options.codec.number() {
            WBXML_NUMBER => wbxml::encode(message, &wbxml::Settings::default(), &LIMITS)?,
            CBOR_NUMBER => cbor::from_json(message, &cbor::Settings::default(), &LIMITS)?,
            _ => self.to_exi(options, message)?,
        };
        let mut text = Vec::new();
        self.decode(options, &coded, &mut text)?;
        let same = match options.codec.number() {
            // No two texts of different values have the same form.
            CBOR_NUMBER => cbor::from_json(&text, &cbor::Settings::default(), &LIMITS)? == coded,
            _ => same_xml(message, &text, &LIMITS)?,
        };
        if !same {
            return Err(corrupt("what would come back says something else"));
        }
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&text);
        out.extend_from_slice(&coded);
        Ok(())
    }

    fn to_exi(&self, options: Options, message: &[u8]) -> Result<Vec<u8>, Error> {
        let schema = self.name().filter(|_| options == Options::EXI_SCHEMA);
        let coded = self.to_exi_as(Head { channels: true, schema }, message)?;
        if message.len() >= CHANNELS_BYTES {
            return Ok(coded);
        }
        let packed = self.to_exi_as(Head { channels: false, schema }, message)?;
        Ok(if packed.len() <= coded.len() { packed } else { coded })
    }

    fn to_exi_as(&self, head: Head, message: &[u8]) -> Result<Vec<u8>, Error> {
        self.check(head)?;
        let mut encoder = take(&self.encoders, head)
            .unwrap_or_else(|| DocumentEncoder::new(&head.options(), self.grammars(head), &LIMITS));
        let stream = encoder.encode(message);
        keep(&self.encoders, head, encoder);
        let mut coded = Vec::new();
        head.write(&mut coded);
        coded.extend_from_slice(&stream?);
        Ok(coded)
    }

    fn decode(&self, options: Options, coded: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let text = match options.codec.number() {
            WBXML_NUMBER => wbxml::decode(coded, &wbxml::Settings::default(), &LIMITS)?,
            CBOR_NUMBER => cbor::to_json(coded, &LIMITS)?,
            _ => return self.exi(coded, out),
        };
        out.extend_from_slice(&text);
        Ok(())
    }

    fn check(&self, head: Head) -> Result<(), Error> {
        if head.schema.is_some() && (head.schema != self.name || !self.is_prepared()) {
            return Err(corrupt("EXI with grammars that are not held here"));
        }
        Ok(())
    }

    fn exi(&self, coded: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let (head, stream) = Head::read(coded)?;
        self.check(head)?;
        let mut decoder = take(&self.decoders, head).unwrap_or_else(|| {
            let grammars = self.grammars(head);
            let resolve = Box::new(move |_: &exi::Options| Ok(grammars.clone()));
            exi::Decoder::new(&head.options(), resolve, &LIMITS)
        });
        let result = decoder.decode(stream, out);
        keep(&self.decoders, head, decoder);
        result
    }
}

fn take<T>(coders: &Mutex<Vec<(Head, T)>>, head: Head) -> Option<T> {
    let mut coders = coders.lock().unwrap_or_else(PoisonError::into_inner);
    let at = coders.iter().position(|(of, _)| *of == head)?;
    Some(coders.remove(at).1)
}

fn keep<T>(coders: &Mutex<Vec<(Head, T)>>, head: Head, coder: T) {
    let mut coders = coders.lock().unwrap_or_else(PoisonError::into_inner);
    if coders.len() == MAX_CODERS {
        coders.remove(0);
    }
    coders.push((head, coder));
}

fn corrupt(what: &str) -> Error {
    Error::Corrupt { codec: NAME, what: what.to_owned() }
}

struct Coder {
    schema_context: Arc<SchemaContext>,
    options: Options,
}

impl Encoder for Coder {
    fn encode(&mut self, block: &[u8], last: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        if !last || block.len() > MAX_BLOCK_BYTES {
            return Err(corrupt("a message of more than one block"));
        }
        self.schema_context.encode(self.options, block, out)
    }
}

impl Decoder for Coder {
    fn decode(
        &mut self,
        block: &[u8],
        decoded_len: usize,
        last: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if !last {
            return Err(corrupt("a message of more than one block"));
        }
        let before = out.len();
        let result = self.schema_context.decode(self.options, block, out);
        let right = out.len() - before == decoded_len;
        if result.is_err() || !right {
            out.truncate(before);
        }
        result?;
        match right {
            true => Ok(()),
            false => Err(Error::Length { codec: NAME, declared: decoded_len }),
        }
    }
}

/// Whether two documents in UTF-8 have the same infoset but for the XML declaration: elements,
/// attributes, namespaces with their prefixes, characters, comments, processing instructions. With
/// a document type they never have.
pub(crate) fn same_xml(one: &[u8], other: &[u8], limits: &Limits) -> Result<bool, Error> {
    let (mut one, mut other) = (Reader::new(one, limits)?, Reader::new(other, limits)?);
    loop {
        let same = match (next(&mut one)?, next(&mut other)?) {
            (Event::Start(a), Event::Start(b)) => same_start(&one, &a, &other, &b),
            (Event::End { .. }, Event::End { .. }) => true,
            (Event::Eof, Event::Eof) => return Ok(true),
            (Event::Doctype(_) | Event::EntityRef(_), _) => false,
            (a, b) => a == b,
        };
        if !same {
            return Ok(false);
        }
    }
}

/// The next event but the declaration, whose character set must be the one that it is read in.
fn next<'a>(reader: &mut Reader<'a>) -> Result<Event<'a>, Error> {
    let event = reader.next()?;
    let Event::Declaration(declaration) = &event else { return Ok(event) };
    let is_utf8 = |name: &str| name.eq_ignore_ascii_case("utf-8");
    if declaration.version != "1.0" || !declaration.encoding.is_none_or(is_utf8) {
        return Err(corrupt("a document that is not XML 1.0 in UTF-8"));
    }
    reader.next()
}

/// Whether two start tags have the same name, attributes and declarations, in whatever order.
fn same_start(one: &Reader<'_>, a: &Start<'_>, other: &Reader<'_>, b: &Start<'_>) -> bool {
    let (mut ours, mut theirs) = (words(one, a), words(other, b));
    if ours != theirs {
        ours.sort_unstable();
        theirs.sort_unstable();
    }
    let (name, other_name) = (one.names().name(a.name), other.names().name(b.name));
    a.prefix == b.prefix
        && (name.uri, name.local) == (other_name.uri, other_name.local)
        && ours == theirs
}

/// What a start tag has: namespace, name, prefix, value.
fn words<'a>(
    reader: &'a Reader<'_>,
    start: &Start<'a>,
) -> Vec<(&'a str, &'a str, &'a str, Cow<'a, str>)> {
    let names = reader.names();
    let attributes = reader.attributes().iter().map(|attribute| {
        let name = names.name(attribute.name);
        (name.uri, name.local, attribute.prefix(start), attribute.value(start))
    });
    let declarations = reader.declarations().iter().map(|declaration| {
        // No attribute has such a name.
        ("", "xmlns:", declaration.prefix(start), Cow::Borrowed(names.uri(declaration.uri)))
    });
    attributes.chain(declarations).collect()
}

#[cfg(test)]
mod tests;
