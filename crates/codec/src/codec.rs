//! The trait, the table, and how a codec is named.

use crate::{Error, deflate::Deflate, identity::Identity, zstd::Zstd};

/// Least window that options may name, as a power of two.
pub const MIN_WINDOW_LOG: u8 = 15;
/// Greatest window: 1 MiB, what a receiver must be able to hold per exchange.
pub const MAX_WINDOW_LOG: u8 = 20;

/// A kind of coding.
pub trait Codec: Sync {
    /// Name on command lines, in events and reports.
    fn name(&self) -> &'static str;
    /// Number on the wire; never reused.
    fn number(&self) -> u64;
    /// Least, usual and greatest level; `None` where there are none.
    fn levels(&self) -> Option<(i8, i8, i8)>;
    /// Bytes of memory an encoder takes, at most, apart from the caller's buffers.
    fn encoder_bytes(&self, options: Options) -> usize;
    /// Bytes of memory a decoder takes, at most, apart from the caller's buffers.
    fn decoder_bytes(&self, options: Options) -> usize;
    /// A fresh context.
    fn encoder(&self, options: Options) -> Result<Box<dyn Encoder>, Error>;
    /// A fresh context.
    fn decoder(&self, options: Options) -> Result<Box<dyn Decoder>, Error>;
}

/// A context that blocks go through in order.
pub trait Encoder: Send {
    /// Appends the coded form of `block`, whole; `last` closes the coding.
    fn encode(&mut self, block: &[u8], last: bool, out: &mut Vec<u8>) -> Result<(), Error>;
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
}

/// Every codec there is.
pub static CODECS: &[&dyn Codec] = &[&Identity, &Deflate, &Zstd];

/// A codec with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// [`Codec::number`].
    pub codec: u64,
    /// 0 where the codec has no levels; ignored by decoders.
    pub level: i8,
    /// Window as a power of two; deflate's is always 2^15.
    pub window_log: u8,
}

impl Options {
    /// No coding.
    pub const IDENTITY: Self = Self { codec: 0, level: 0, window_log: 0 };

    /// Reads `NAME` or `NAME:LEVEL`, with the greatest window.
    pub fn of(text: &str) -> Result<Self, Error> {
        let (name, level) = text.split_once(':').map_or((text, None), |(n, l)| (n, Some(l)));
        let codec = CODECS.iter().find(|codec| codec.name() == name).ok_or_else(|| {
            let names: Vec<_> = CODECS.iter().map(|codec| codec.name()).collect();
            Error::Option { what: format!("unknown codec '{name}': one of {}", names.join(", ")) }
        })?;
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
        Ok(Self { codec: codec.number(), level, window_log })
    }

    /// The codec in the table; one that a peer named may be missing.
    pub fn codec(self) -> Result<&'static dyn Codec, Error> {
        CODECS.iter().copied().find(|codec| codec.number() == self.codec).ok_or_else(|| {
            Error::Option { what: format!("no codec has the number {}", self.codec) }
        })
    }

    /// A fresh encoding context.
    pub fn encoder(self) -> Result<Box<dyn Encoder>, Error> {
        self.codec()?.encoder(self)
    }

    /// Whether a peer may ask for this: the codec exists and the window is within bounds.
    pub fn check(self) -> Result<&'static dyn Codec, Error> {
        if self.window_log > MAX_WINDOW_LOG {
            let what = format!("window 2^{} is over the limit 2^{MAX_WINDOW_LOG}", self.window_log);
            return Err(Error::Option { what });
        }
        self.codec()
    }

    /// A fresh decoding context; options that [`Options::check`] refuses are refused.
    pub fn decoder(self) -> Result<Box<dyn Decoder>, Error> {
        self.check()?.decoder(self)
    }

    /// As a person writes it: `zstd:3`.
    #[must_use]
    pub fn label(self) -> String {
        match self.codec() {
            Ok(codec) if codec.levels().is_some() => format!("{}:{}", codec.name(), self.level),
            Ok(codec) => codec.name().to_owned(),
            Err(_) => format!("codec {}", self.codec),
        }
    }
}
