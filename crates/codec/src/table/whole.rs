//! Codecs that hold a message until its end.

use crate::codec::{Codec, Encoder, Options, Properties, Step, StreamDecoder};
use crate::zstd::Zstd;
use crate::{Error, Limits, Settings};

/// What such a codec is: a message in, a message out.
pub(crate) type Function = fn(&[u8], &Settings) -> Result<Vec<u8>, Error>;

/// A codec made of two functions over whole messages.
pub(crate) struct Whole {
    pub(crate) properties: &'static Properties,
    /// Refuses settings that the codec cannot work with, before any input.
    pub(crate) check: fn(&Settings) -> Result<(), Error>,
    pub(crate) encode: Function,
    pub(crate) decode: Function,
}

impl Codec for Whole {
    fn properties(&self) -> &'static Properties {
        self.properties
    }

    fn stream_encoder(&self, settings: &Settings) -> Result<Box<dyn Encoder>, Error> {
        Ok(Box::new(self.message(self.encode, settings)?))
    }

    fn stream_decoder(&self, settings: &Settings) -> Result<Box<dyn StreamDecoder>, Error> {
        Ok(Box::new(self.message(self.decode, settings)?))
    }

    /// What the pair codes with a base is of a block, and so is the base: see [`Options::DELTA`].
    fn encoder_bytes(&self, options: Options) -> usize {
        match options.wants_base() {
            true => Zstd.encoder_bytes(Options { level: 19, ..options }),
            false => Limits::default().message_bytes,
        }
    }

    fn decoder_bytes(&self, options: Options) -> usize {
        match options.wants_base() {
            true => Zstd.decoder_bytes(options),
            false => Limits::default().message_bytes,
        }
    }
}

impl Whole {
    fn message(&self, function: Function, settings: &Settings) -> Result<Message, Error> {
        (self.check)(settings)?;
        let settings = settings.clone();
        let codec = self.properties.name;
        Ok(Message { codec, function, settings, held: Vec::new(), closed: false })
    }
}

/// A message on its way in.
struct Message {
    codec: &'static str,
    function: Function,
    settings: Settings,
    held: Vec<u8>,
    closed: bool,
}

impl Message {
    /// Takes a block; with the last one gives what the message becomes.
    fn take(&mut self, block: &[u8], last: bool) -> Result<Vec<u8>, Error> {
        if self.closed {
            let what = "a block behind the last".to_owned();
            return Err(Error::Option { what });
        }
        let most = self.settings.limits.message_bytes;
        if block.len() > most - self.held.len().min(most) {
            let what = format!("the message is longer than the {most} bytes of message_bytes");
            return Err(Error::Limit { codec: self.codec, what });
        }
        self.closed = last;
        // A message that came in one piece is not copied.
        if last && self.held.is_empty() {
            return (self.function)(block, &self.settings);
        }
        self.held.extend_from_slice(block);
        if !last {
            return Ok(Vec::new());
        }
        (self.function)(&std::mem::take(&mut self.held), &self.settings)
    }
}

/// Appends without a copy where nothing is there yet.
fn append(out: &mut Vec<u8>, made: Vec<u8>) {
    if out.is_empty() {
        *out = made;
    } else {
        out.extend_from_slice(&made);
    }
}

impl Encoder for Message {
    fn encode(&mut self, block: &[u8], last: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        append(out, self.take(block, last)?);
        Ok(())
    }
}

impl StreamDecoder for Message {
    fn decode(&mut self, input: &[u8], last: bool, out: &mut Vec<u8>) -> Result<Step, Error> {
        append(out, self.take(input, last)?);
        Ok(Step { used: input.len(), done: last })
    }
}
