//! Jobs for the threads that encode and decode.

use std::sync::Arc;

use bytes::Bytes;
use codec::dictionary::{self, Kept};
use codec::infoset::Vocabulary;

use super::ids::ExchangeId;

/// Which way a block goes through its codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkDirection {
    /// Towards the carrier.
    Encode,
    /// From the carrier.
    Decode,
    /// As `Encode`, only to see what comes of it: of no urgency. It is always one block, and its
    /// context is dropped with it, not with [`super::api::Output::Release`].
    Shadow,
    /// No codec and no context: makes of a message what is kept of it, by [`Work::alone`], as
    /// those that follow. There may be two for an exchange, in any order, also after its end.
    Keep,
    /// Makes a dictionary of samples, which takes long: of no urgency. Of no exchange.
    Distil,
    /// Makes ready a dictionary that came. Of no exchange.
    Unpack,
    /// Makes ready the schema of [`Work::vocabulary`], which came: of no urgency. Of no exchange.
    Compile,
}

/// One block to put through a codec, off the actor's thread. Blocks of one exchange and direction
/// go in order through one context, which the shell makes with each [`Work::first`] and drops with
/// [`super::api::Output::Release`].
#[derive(Clone, Debug)]
pub struct Work {
    /// The exchange.
    pub exchange: ExchangeId,
    /// Which way.
    pub direction: WorkDirection,
    /// Counts up from 0 per exchange and direction.
    pub block: u64,
    /// Codec, level and window; constant for a context.
    pub options: codec::Options,
    /// The block.
    pub bytes: Bytes,
    /// Decoded length of the block in bytes: for `Encode` that of `bytes`, for `Decode` the bound.
    pub decoded_len: usize,
    /// It begins a context; one that there was is dropped.
    pub first: bool,
    /// No block follows.
    pub last: bool,
    /// What a delta is told by.
    pub base: Option<Arc<Kept>>,
    /// Of a message whose infoset is enough: what it is made of. Of a schema that came: it.
    pub vocabulary: Option<Arc<Vocabulary>>,
}

impl Work {
    /// What [`Work::alone`] does, for which there is no context.
    pub(crate) fn of_one_block(
        exchange: ExchangeId,
        direction: WorkDirection,
        block: u64,
        bytes: Bytes,
        base: Option<Arc<Kept>>,
    ) -> Self {
        Self {
            exchange,
            direction,
            block,
            options: codec::Options::IDENTITY,
            decoded_len: bytes.len(),
            bytes,
            first: true,
            last: true,
            base,
            vocabulary: None,
        }
    }

    /// A context to encode with.
    ///
    /// # Errors
    /// Those of the codec.
    pub fn encoder(&self) -> Result<Box<dyn codec::Encoder>, codec::Error> {
        match &self.vocabulary {
            Some(vocabulary) => Ok(vocabulary.encoder(self.options)),
            None => self.options.encoder_on(self.base.as_ref()),
        }
    }

    /// A context to decode with.
    ///
    /// # Errors
    /// Those of the codec.
    pub fn decoder(&self) -> Result<Box<dyn codec::Decoder>, codec::Error> {
        match &self.vocabulary {
            Some(vocabulary) => Ok(vocabulary.decoder(self.options)),
            None => self.options.decoder_on(self.base.as_ref()),
        }
    }

    /// What [`WorkDirection::Keep`] and those behind it ask for; the bytes themselves for others.
    ///
    /// # Errors
    /// A message that cannot be read for its secrets; a dictionary or a schema that is none.
    pub fn alone(&self) -> Result<Bytes, codec::Error> {
        match self.direction {
            WorkDirection::Keep => Kept::prepare(&self.bytes).map(Bytes::from),
            WorkDirection::Distil => {
                dictionary::distil(&self.bytes, self.base.as_ref()).map(Bytes::from)
            }
            WorkDirection::Unpack => dictionary::unpack_parcel(&self.bytes).map(Bytes::from),
            WorkDirection::Compile => {
                let ready = self.vocabulary.as_ref().map_or(Ok(()), |one| one.prepare());
                ready.map(|()| Bytes::new())
            }
            _ => Ok(self.bytes.clone()),
        }
    }
}
