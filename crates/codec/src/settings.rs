//! What a stream is coded with, and the bounds that hold for every codec.

use std::sync::Arc;

use crate::codec::{Decoder, Encoder, Fidelity, Properties, Step, StreamDecoder, find};
use crate::dictionary::Kept;
use crate::{CompiledSchema, Error, Limits, exi, wbxml};

/// Everything that a stream can be coded with. A codec takes what concerns it.
///
/// ```
/// use longwire_codec::Settings;
/// let settings = Settings { level: Some(9), ..Settings::default() };
/// let text = b"to be, or not to be, ".repeat(9);
/// let coded = settings.encode("zstd", &text)?;
/// assert_eq!(settings.decode("zstd", &coded)?, text);
/// # Ok::<(), longwire_codec::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// How hard to try; `None` is the codec's usual level.
    pub level: Option<i8>,
    /// What both sides have, for codecs that need one.
    pub dictionary: Option<Arc<Kept>>,
    /// Where the grammars of EXI come from.
    pub schema: Option<Arc<CompiledSchema>>,
    /// Names of one vocabulary as tokens of WBXML; without it a built-in table that fits.
    pub token_table: Option<Arc<wbxml::TokenTable>>,
    /// Options of an EXI stream; of one that is decoded, what its header does not say.
    pub exi: exi::Options,
    /// Bounds.
    pub limits: Limits,
}

impl Settings {
    /// A fresh encoder of the codec's standard form. Errors: no such codec, or a level or a
    /// dictionary that it does not take.
    pub fn encoder(&self, codec: &str) -> Result<Box<dyn Encoder>, Error> {
        let codec = find(codec)?;
        self.level_of(codec.properties())?;
        codec.stream_encoder(self)
    }

    /// A fresh decoder of the codec's standard form, which gives no more than
    /// [`Limits::output_bytes`]. Errors: as for [`Settings::encoder`].
    pub fn decoder(&self, codec: &str) -> Result<Box<dyn StreamDecoder>, Error> {
        let codec = find(codec)?;
        Ok(self.bounded(codec.name(), codec.stream_decoder(self)?))
    }

    /// The same of a codec's own decoder.
    pub(crate) fn bounded(
        &self,
        codec: &'static str,
        inner: Box<dyn StreamDecoder>,
    ) -> Box<dyn StreamDecoder> {
        let (limits, left) = (self.limits, self.limits.output_bytes);
        Box::new(Bounded { codec, inner, left, limits, held: Vec::new(), at: 0, used: 0 })
    }

    /// Encodes a whole message.
    pub fn encode(&self, codec: &str, message: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        self.encoder(codec)?.encode(message, true, &mut out)?;
        Ok(out)
    }

    /// Decodes a whole message; what follows its end is refused.
    pub fn decode(&self, codec: &str, coded: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        drain(&mut *self.decoder(codec)?, coded, true, &mut out)?;
        Ok(out)
    }

    /// The level to encode with: the one that was set, if the codec has it, or its usual one.
    pub(crate) fn level_of(&self, codec: &Properties) -> Result<i8, Error> {
        let name = codec.name;
        match (self.level, codec.levels) {
            (None, levels) => Ok(levels.map_or(0, |(_, usual, _)| usual)),
            (Some(level), Some((least, _, most))) if (least..=most).contains(&level) => Ok(level),
            // What options without levels say.
            (Some(0), None) => Ok(0),
            (Some(level), Some((least, _, most))) => Err(Error::Option {
                what: format!("level '{level}' of {name}: a number from {least} to {most}"),
            }),
            (Some(_), None) => Err(Error::Option { what: format!("{name} has no levels") }),
        }
    }
}

/// Hands `input` to a decoder until it has used all; with `last` until it is done.
pub(crate) fn drain(
    decoder: &mut dyn StreamDecoder,
    input: &[u8],
    last: bool,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let mut at = 0;
    loop {
        let before = out.len();
        let step = decoder.decode(&input[at..], last, out)?;
        at += step.used;
        let idle = step.used == 0 && out.len() == before;
        if step.done || idle {
            return Ok(());
        }
    }
}

/// A decoder that gives so much and no more, never idles at the end, and keeps what a block left
/// over until the next one comes.
struct Bounded {
    codec: &'static str,
    inner: Box<dyn StreamDecoder>,
    left: u64,
    limits: Limits,
    held: Vec<u8>,
    /// So much of what is held is done with. It goes when it is half: moving the rest for each of
    /// many short parts would take the square of the time.
    at: usize,
    /// Bytes of the stream that are done with.
    used: u64,
}

impl Bounded {
    fn limit(&self, what: String) -> Error {
        Error::Limit { codec: self.codec, what }
    }

    fn step(&mut self, input: &[u8], last: bool, out: &mut Vec<u8>) -> Result<Step, Error> {
        let before = out.len();
        // Where a decoder does not say where, the error is in what it was given.
        let step = self.inner.decode(input, last, out).map_err(|error| error.at(self.used))?;
        self.used += step.used as u64;
        let made = out.len() - before;
        self.left = self.left.checked_sub(made as u64).ok_or_else(|| {
            out.truncate(before);
            let most = self.limits.output_bytes;
            self.limit(format!("more than the {most} bytes of output_bytes would come out"))
        })?;
        if last && !step.done && step.used == 0 && made == 0 {
            let what = "the input ends early".to_owned();
            let offset = self.used + input.len() as u64;
            return Err(Error::Malformed { codec: self.codec, offset, what });
        }
        Ok(step)
    }

    fn hold(&mut self, input: &[u8]) -> Result<(), Error> {
        if self.at * 2 >= self.held.len() {
            self.held.drain(..self.at);
            self.at = 0;
        }
        let most = self.limits.message_bytes;
        if input.len() > most.saturating_sub(self.held.len() - self.at) {
            return Err(self.limit(format!("a part is longer than the {most} of message_bytes")));
        }
        self.held.extend_from_slice(input);
        Ok(())
    }
}

impl StreamDecoder for Bounded {
    fn decode(&mut self, input: &[u8], last: bool, out: &mut Vec<u8>) -> Result<Step, Error> {
        let before = out.len();
        if self.held.len() == self.at {
            let step = self.step(input, last, out)?;
            let is_part = step.used == 0 && out.len() == before && !step.done;
            if !is_part {
                return Ok(step);
            }
            self.hold(input)?;
            return Ok(Step { used: input.len(), done: false });
        }
        self.hold(input)?;
        let held = std::mem::take(&mut self.held);
        loop {
            let step = self.step(held.get(self.at..).unwrap_or_default(), last, out)?;
            self.at += step.used;
            if step.done || step.used == 0 || out.len() > before {
                self.held = held;
                return Ok(Step { used: input.len(), done: step.done });
            }
        }
    }
}

/// The decoder for blocks of a codec that does not give each block whole.
pub(crate) struct Gathered {
    codec: &'static Properties,
    inner: Box<dyn StreamDecoder>,
    /// Sum of the lengths that the blocks declared, and what of it has come out.
    declared: usize,
    made: usize,
}

impl Gathered {
    pub(crate) fn new(codec: &'static Properties, inner: Box<dyn StreamDecoder>) -> Self {
        Self { codec, inner, declared: 0, made: 0 }
    }
}

impl Decoder for Gathered {
    fn decode(
        &mut self,
        block: &[u8],
        decoded_len: usize,
        last: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let before = out.len();
        self.declared = self.declared.saturating_add(decoded_len);
        drain(&mut *self.inner, block, last, out)?;
        self.made += out.len() - before;
        let wrong = if last { self.made != self.declared } else { self.made > self.declared };
        if self.codec.fidelity == Fidelity::Bytes && wrong {
            out.truncate(before);
            return Err(Error::Length { codec: self.codec.name, declared: self.declared });
        }
        Ok(())
    }
}
