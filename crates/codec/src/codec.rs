//! The trait, the table, and how a codec is named.

use std::fmt;
use std::sync::Arc;

use proto::exchange::MAX_BLOCK_BYTES;

use crate::brotli::Brotli;
use crate::deflate::Deflate;
use crate::dictionary::Kept;
use crate::identity::Identity;
use crate::settings::{Gathered, Settings};
use crate::xmill::Xmill;
use crate::zstd::Zstd;
use crate::{Error, Limits, table};

/// Least window that options may name, as a power of two.
pub const MIN_WINDOW_LOG: u8 = 15;
/// Greatest window: 1 MiB, what a receiver must be able to hold per exchange.
pub const MAX_WINDOW_LOG: u8 = 20;

/// What comes back of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fidelity {
    /// Every byte.
    Bytes,
    /// The same information (of XML its infoset, of JSON its values with the text of numbers);
    /// white space in tags, quotes and the like may differ.
    Infoset,
}

/// How input and output hang together in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Each block comes out whole: what a peer decodes before the next block exists.
    Blocks,
    /// Memory is bounded, and what comes out may lag behind what went in.
    Stream,
    /// The message is held until its end, up to [`Limits::message_bytes`](crate::Limits).
    Whole,
}

/// What both sides must have beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// The same dictionary.
    Dictionary,
    /// Nothing, but a schema makes it smaller.
    SchemaOptional,
    /// Nothing, but a table of tokens makes it smaller.
    TokenTableOptional,
}

/// What is to be known of a codec before it is used.
#[derive(Clone, Copy, Debug)]
pub struct Properties {
    /// Name on command lines, in events and reports.
    pub name: &'static str,
    /// Number on the wire; never reused.
    pub number: u64,
    /// What comes back.
    pub fidelity: Fidelity,
    /// How it flows.
    pub flow: Flow,
    /// What both sides must have.
    pub needs: Needs,
    /// Least, usual and greatest level; `None` where there are none.
    pub levels: Option<(i8, i8, i8)>,
    /// Media types that it applies to: `TYPE/SUBTYPE`, `*+SUFFIX`, or `*/*` for any bytes.
    pub media: &'static [&'static str],
    /// The standard form that streams have, with its source.
    pub form: &'static str,
}

impl Properties {
    /// Whether content of this media type, given without parameters, can be coded.
    #[must_use]
    pub fn applies_to(&self, media: &str) -> bool {
        let media = media.to_ascii_lowercase();
        self.media.iter().any(|pattern| match pattern.strip_prefix('*') {
            Some("/*") => true,
            Some(suffix) => media.ends_with(suffix),
            None => media == *pattern,
        })
    }
}

/// A kind of coding.
///
/// It has two faces. [`Codec::encoder`] and [`Codec::decoder`] are contexts for the blocks of the
/// pair, whose frames tell lengths and ends, in the barest form; [`Codec::stream_encoder`] and
/// [`Codec::stream_decoder`] are for files and other programs, in the codec's standard form.
pub trait Codec: Sync {
    /// What is to be known of it.
    fn properties(&self) -> &'static Properties;

    /// An encoder of the standard form. Errors: settings that it does not take.
    fn stream_encoder(&self, settings: &Settings) -> Result<Box<dyn Encoder>, Error>;

    /// A decoder of the standard form; [`Settings::decoder`] adds the bound on what comes out.
    fn stream_decoder(&self, settings: &Settings) -> Result<Box<dyn StreamDecoder>, Error>;

    /// Bytes of memory an encoder takes, at most, apart from the caller's buffers.
    fn encoder_bytes(&self, _options: Options) -> usize {
        Limits::default().message_bytes
    }

    /// Bytes of memory a decoder takes, at most, apart from the caller's buffers.
    fn decoder_bytes(&self, _options: Options) -> usize {
        Limits::default().message_bytes
    }

    /// A fresh context. Codecs without [`Flow::Blocks`] gather: blocks before the last may come out
    /// empty.
    fn encoder(&self, options: Options) -> Result<Box<dyn Encoder>, Error> {
        self.stream_encoder(&options.settings())
    }

    /// A fresh context. Of codecs without [`Flow::Blocks`] it holds the lengths of all blocks
    /// together to what came out, where bytes come back; where an infoset does, lengths only bound.
    fn decoder(&self, options: Options) -> Result<Box<dyn Decoder>, Error> {
        let settings = options.settings();
        let decoder = settings.bounded(self.name(), self.stream_decoder(&settings)?);
        Ok(Box::new(Gathered::new(self.properties(), decoder)))
    }

    /// [`Properties::name`].
    fn name(&self) -> &'static str {
        self.properties().name
    }

    /// [`Properties::number`].
    fn number(&self) -> u64 {
        self.properties().number
    }

    /// [`Properties::levels`].
    fn levels(&self) -> Option<(i8, i8, i8)> {
        self.properties().levels
    }
}

/// Two with one number are the same: see [`Table`].
impl PartialEq for dyn Codec {
    fn eq(&self, other: &Self) -> bool {
        self.number() == other.number()
    }
}

impl Eq for dyn Codec {}

impl fmt::Debug for dyn Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A context that blocks go through in order.
pub trait Encoder: Send {
    /// Appends the coded form of `block`, whole; `last` closes the coding.
    fn encode(&mut self, block: &[u8], last: bool, out: &mut Vec<u8>) -> Result<(), Error>;

    /// Begins anew, as if it were fresh, in the memory that it has; `false`: it cannot.
    fn renew(&mut self) -> bool {
        false
    }
}

/// The counterpart of [`Encoder`].
pub trait Decoder: Send {
    /// Appends the decoded form of a coded block, which must be exactly `decoded_len` bytes and
    /// use up `block`; `last` says that the coding must be closed with it.
    fn decode(
        &mut self,
        block: &[u8],
        decoded_len: usize,
        last: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error>;

    /// As [`Encoder::renew`].
    fn renew(&mut self) -> bool {
        false
    }
}

/// How far one call of a [`StreamDecoder`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bytes of the input that are done with; the caller hands in the rest again.
    pub used: usize,
    /// Nothing more will come out.
    pub done: bool,
}

/// Decodes a stream in its standard form, cut anywhere.
pub trait StreamDecoder: Send {
    /// Appends some of what `input` decodes to; `last` says that nothing comes behind it. The
    /// caller calls again while bytes were used or made, and after `last` until [`Step::done`].
    fn decode(&mut self, input: &[u8], last: bool, out: &mut Vec<u8>) -> Result<Step, Error>;
}

/// Every codec that is built in.
pub static CODECS: &[&dyn Codec] = &[
    &Identity,
    &Deflate,
    &Zstd,
    &Brotli,
    &table::exi::Exi,
    &table::wbxml::WBXML,
    &table::cbor::CborJson,
    &table::cbor::CborXml,
    &table::dictionary::DEFLATE,
    &table::dictionary::ZSTD,
    &table::dictionary::BROTLI,
    &table::dictionary::MIX,
    &table::dictionary::DELTA,
    &table::dictionary::DCB,
    &table::dictionary::DCZ,
    &Xmill,
];

/// The codecs of [`CODECS`] that a pair can use for any exchange: they need nothing, and each block
/// comes out whole.
pub fn block_codecs() -> impl Iterator<Item = &'static dyn Codec> + Clone {
    CODECS.iter().copied().filter(|codec| codec.properties().flow == Flow::Blocks)
}

/// The codec of a name. Errors: none is called so; the message lists all.
pub fn find(name: &str) -> Result<&'static dyn Codec, Error> {
    named(name, CODECS.iter().copied())
}

fn named(
    name: &str,
    mut among: impl Iterator<Item = &'static dyn Codec> + Clone,
) -> Result<&'static dyn Codec, Error> {
    let names = among.clone().map(|codec| codec.name());
    among.find(|codec| codec.name() == name).ok_or_else(|| {
        let names: Vec<_> = names.collect();
        Error::Option { what: format!("unknown codec '{name}': one of {}", names.join(", ")) }
    })
}

/// Most codecs of a [`Table`]: as many as a peer's HELLO may name.
pub const MAX_CODECS: usize = 64;

/// The codecs that one side has, each with a number and a name of its own: [`CODECS`], and those
/// that whoever makes the side adds. It belongs to the side's settings; there is no registry.
///
/// A number stands for a codec only where a peer names one, and only a table tells which it is.
/// All else holds [`Options`], which have the codec itself.
#[derive(Clone, Debug)]
pub struct Table {
    all: Vec<&'static dyn Codec>,
}

impl Default for Table {
    fn default() -> Self {
        Self { all: CODECS.to_vec() }
    }
}

impl Table {
    /// With one more. Its peers have to mean the same by its number.
    ///
    /// # Errors
    /// Its number or its name is taken; there are [`MAX_CODECS`].
    pub fn with(mut self, codec: &'static dyn Codec) -> Result<Self, Error> {
        let is_same = |one: &&'static dyn Codec| *one == codec || one.name() == codec.name();
        let (name, number) = (codec.name(), codec.number());
        if let Some(other) = self.all.iter().find(|one| is_same(one)) {
            let (taken, its) = (other.name(), other.number());
            let what = format!(
                "codec {name} ({number}) beside {taken} ({its}): each has a name and a number of \
                 its own"
            );
            return Err(Error::Option { what });
        }
        if self.all.len() >= MAX_CODECS {
            let what = format!("codec {name}: there are {MAX_CODECS} others, the most of a table");
            return Err(Error::Option { what });
        }
        self.all.push(codec);
        Ok(self)
    }

    /// The codecs for any exchange, as [`block_codecs`].
    pub fn block_codecs(&self) -> impl Iterator<Item = &'static dyn Codec> {
        self.all.iter().copied().filter(|codec| codec.properties().flow == Flow::Blocks)
    }

    /// What a peer's message goes in, by what its head says.
    ///
    /// # Errors
    /// No codec has that number; it is none for messages of the pair; the window is over
    /// [`MAX_WINDOW_LOG`].
    pub fn options(&self, number: u64, window_log: u8) -> Result<Options, Error> {
        let codec = self.all.iter().copied().find(|codec| codec.number() == number);
        let codec = codec
            .ok_or_else(|| Error::Option { what: format!("no codec has the number {number}") })?;
        let options = Options { codec, level: 0, window_log };
        match options.stands_alone() {
            true => options.check()?,
            false => options.check_window()?,
        }
        Ok(options)
    }
}

/// A codec with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The codec.
    pub codec: &'static dyn Codec,
    /// 0 where the codec has no levels; ignored by decoders.
    pub level: i8,
    /// Window as a power of two; deflate's is always 2^15.
    pub window_log: u8,
}

impl Options {
    /// No coding.
    pub const IDENTITY: Self = Self { codec: &Identity, level: 0, window_log: 0 };

    /// The difference from a message that both sides hold: for messages of a single block.
    pub const DELTA: Self =
        Self { codec: &table::dictionary::DELTA, level: 0, window_log: MIN_WINDOW_LOG };

    /// Reads `NAME` or `NAME:LEVEL` of a codec for blocks, with the greatest window.
    pub fn of(text: &str) -> Result<Self, Error> {
        let (name, level) = text.split_once(':').map_or((text, None), |(n, l)| (n, Some(l)));
        let codec = named(name, block_codecs())?;
        let level = match (level, codec.levels()) {
            (None, levels) => levels.map_or(0, |(_, usual, _)| usual),
            (Some(text), Some((least, _, most))) => {
                let level = text.parse().ok().filter(|level| (least..=most).contains(level));
                level.ok_or_else(|| Error::Option {
                    what: format!("level '{text}' of {name}: a number from {least} to {most}"),
                })?
            }
            (Some(_), None) => {
                return Err(Error::Option { what: format!("{name} has no levels: say '{name}'") });
            }
        };
        let window_log = if codec.number() == 0 { 0 } else { MAX_WINDOW_LOG };
        Ok(Self { codec, level, window_log })
    }

    /// Whether bytes stay as they are.
    #[must_use]
    pub fn is_identity(self) -> bool {
        self.codec.number() == Self::IDENTITY.codec.number()
    }

    /// Whether a message can be read by itself: it needs nothing that both ends have agreed on.
    #[must_use]
    pub fn stands_alone(self) -> bool {
        !self.wants_base() && !self.is_infoset()
    }

    /// A fresh encoding context.
    pub fn encoder(self) -> Result<Box<dyn Encoder>, Error> {
        self.codec.encoder(self)
    }

    /// Refuses a codec that is not one for blocks, and a window over the limit.
    fn check(self) -> Result<(), Error> {
        self.check_window()?;
        if self.codec.properties().flow != Flow::Blocks {
            let what = format!("codec {} is not one for blocks", self.codec.name());
            return Err(Error::Option { what });
        }
        Ok(())
    }

    fn check_window(self) -> Result<(), Error> {
        if self.window_log > MAX_WINDOW_LOG {
            let what = format!("window 2^{} is over the limit 2^{MAX_WINDOW_LOG}", self.window_log);
            return Err(Error::Option { what });
        }
        Ok(())
    }

    /// These options as settings of a stream.
    pub(crate) fn settings(self) -> Settings {
        Settings { level: Some(self.level), ..Settings::default() }
    }

    /// A fresh decoding context. Errors: a codec that is not one for blocks, a window over the
    /// limit.
    pub fn decoder(self) -> Result<Box<dyn Decoder>, Error> {
        self.check()?;
        self.codec.decoder(self)
    }

    /// With a dictionary that both sides hold: for messages of a single block.
    pub const DICTIONARY: Self =
        Self { codec: &table::dictionary::ZSTD, level: 19, window_log: MIN_WINDOW_LOG };

    /// Whether it is coded with what both sides hold: [`Options::DELTA`], [`Options::DICTIONARY`].
    #[must_use]
    pub fn wants_base(self) -> bool {
        [Self::DELTA.codec, Self::DICTIONARY.codec].contains(&self.codec)
    }

    /// A fresh encoding context, against `base` where the codec wants one.
    pub fn encoder_on(self, base: Option<&Arc<Kept>>) -> Result<Box<dyn Encoder>, Error> {
        if !self.wants_base() {
            return self.encoder();
        }
        let settings = Settings { level: Some(self.level), ..Self::on(base) };
        self.codec.stream_encoder(&settings)
    }

    /// A fresh decoding context, against `base` where the codec wants one.
    pub fn decoder_on(self, base: Option<&Arc<Kept>>) -> Result<Box<dyn Decoder>, Error> {
        if !self.wants_base() {
            return self.decoder();
        }
        let settings = Self::on(base);
        let decoder = settings.bounded(self.codec.name(), self.codec.stream_decoder(&settings)?);
        Ok(Box::new(Gathered::new(self.codec.properties(), decoder)))
    }

    /// Settings for messages of a block, whatever they say of their length.
    fn on(base: Option<&Arc<Kept>>) -> Settings {
        let output_bytes = MAX_BLOCK_BYTES as u64;
        // An encoded block may be longer than what it stands for.
        let message_bytes = MAX_BLOCK_BYTES + 1024;
        let limits = Limits { output_bytes, message_bytes, ..Limits::default() };
        Settings { dictionary: base.cloned(), limits, ..Settings::default() }
    }

    /// As a person writes it: `zstd:3`.
    #[must_use]
    pub fn label(self) -> String {
        let name = self.codec.name();
        match self.codec.levels() {
            _ if self == Self::EXI_SCHEMA => "exi-schema".to_owned(),
            Some(_) => format!("{name}:{}", self.level),
            None => name.to_owned(),
        }
    }
}
