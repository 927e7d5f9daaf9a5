//! Jobs for threads that may take long, and what comes of each: of one kind nothing but its own.
//!
//! [`Encode`] and [`Decode`] are blocks of an exchange's messages. Those of one exchange and kind
//! go in order through one context, which begins anew with each block that says so, and is dropped
//! with [`Output::Release`](crate::api::Output::Release). The others need no context and no order.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use codec::dictionary::{self, Distilled, Kept};
use codec::infoset::SchemaContext;
use codec::{Decoder, Encoder, Error, Options};

use super::ids::{ExchangeId, PathId};
use super::recipient::Framing;

/// What a context is made with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Codec, level and window.
    pub options: Options,
    /// What a delta is encoded against.
    pub base: Option<Arc<Kept>>,
    /// Of a message whose infoset is enough: what it is made of.
    pub schema_context: Option<Arc<SchemaContext>>,
    /// How what comes out of an encoder is framed.
    pub framing: Framing,
}

impl Setup {
    /// A context to encode with.
    ///
    /// # Errors
    /// Those of the codec.
    pub fn encoder(&self) -> Result<Box<dyn Encoder>, Error> {
        match &self.schema_context {
            Some(schema_context) => Ok(schema_context.encoder(self.options)),
            None => self.framing.encoder(self.options, self.base.as_ref()),
        }
    }

    /// A context to decode with.
    ///
    /// # Errors
    /// Those of the codec.
    pub fn decoder(&self) -> Result<Box<dyn Decoder>, Error> {
        match &self.schema_context {
            Some(schema_context) => Ok(schema_context.decoder(self.options)),
            None => self.options.decoder_on(self.base.as_ref()),
        }
    }
}

/// A job.
#[derive(Clone, Debug)]
pub enum Job {
    /// A block of this side's message.
    Encode(Encode),
    /// A block of the peer's message.
    Decode(Decode),
    /// An encoding that nobody sends: of no urgency.
    Try(Try),
    /// Makes ready what later messages are encoded with.
    Prepare(Prepare),
}

/// A block to encode.
#[derive(Clone, Debug)]
pub struct Encode {
    /// The exchange.
    pub exchange: ExchangeId,
    /// Counts up from 0 in the exchange.
    pub block: u64,
    /// The same for all blocks of a context.
    pub setup: Setup,
    /// The block.
    pub bytes: Bytes,
    /// It begins a context; one that there was is dropped.
    pub first: bool,
    /// No block follows.
    pub last: bool,
}

/// A block to decode.
#[derive(Clone, Debug)]
pub struct Decode {
    /// The exchange.
    pub exchange: ExchangeId,
    /// Counts up from 0 in the exchange.
    pub block: u64,
    /// The same for all blocks of a context.
    pub setup: Setup,
    /// The block.
    pub bytes: Bytes,
    /// Bytes that it decodes to; more are an error.
    pub decoded_len: usize,
    /// It begins a context; one that there was is dropped.
    pub first: bool,
    /// No block follows.
    pub last: bool,
}

/// A block to encode only to see what comes of it, in a context of its own.
#[derive(Clone, Debug)]
pub struct Try {
    /// The exchange; there is one such job of an exchange at a time.
    pub exchange: ExchangeId,
    /// What it is encoded with.
    pub setup: Setup,
    /// The block.
    pub bytes: Bytes,
}

/// What is to be made ready.
#[derive(Clone, Debug)]
pub enum Prepare {
    /// A message as a base for others: it without its secrets.
    Base {
        /// Names the job.
        number: u64,
        /// The message.
        bytes: Bytes,
    },
    /// A dictionary out of samples, which takes long: of no urgency.
    Dictionary {
        /// Names the job.
        number: u64,
        /// The samples.
        samples: Vec<Arc<Kept>>,
        /// The dictionary that there is, which it has to surpass.
        before: Option<Arc<Kept>>,
    },
    /// A dictionary that came from a peer.
    Parcel {
        /// The path that it came over.
        path: PathId,
        /// What came.
        bytes: Bytes,
    },
    /// A schema that came from a peer, which takes long: of no urgency.
    Schema {
        /// The path that it came over.
        path: PathId,
        /// The schema.
        schema_context: Arc<SchemaContext>,
    },
}

/// What came of a job.
#[derive(Debug)]
pub enum Done {
    /// Of [`Job::Encode`].
    Encoded {
        /// As in the job.
        exchange: ExchangeId,
        /// As in the job.
        block: u64,
        /// The encoded block.
        result: Result<Bytes, Error>,
        /// Processor time that it took.
        cpu: Duration,
    },
    /// Of [`Job::Decode`].
    Decoded {
        /// As in the job.
        exchange: ExchangeId,
        /// As in the job.
        block: u64,
        /// The decoded block.
        result: Result<Bytes, Error>,
        /// Processor time that it took.
        cpu: Duration,
    },
    /// Of [`Job::Try`].
    Tried {
        /// As in the job.
        exchange: ExchangeId,
        /// The encoded block.
        result: Result<Bytes, Error>,
        /// Processor time that it took.
        cpu: Duration,
    },
    /// Of [`Job::Prepare`].
    Prepared(Prepared),
}

/// What was made ready.
#[derive(Debug)]
pub enum Prepared {
    /// Of [`Prepare::Base`].
    Base {
        /// As in the job.
        number: u64,
        /// The base; an error where it cannot be read for its secrets.
        result: Result<Kept, Error>,
    },
    /// Of [`Prepare::Dictionary`].
    Dictionary {
        /// As in the job.
        number: u64,
        /// The dictionary; none where it would not pay.
        result: Result<Option<Distilled>, Error>,
    },
    /// Of [`Prepare::Parcel`].
    Parcel {
        /// As in the job.
        path: PathId,
        /// The dictionary; an error where it is none.
        result: Result<Kept, Error>,
    },
    /// Of [`Prepare::Schema`].
    Schema {
        /// As in the job.
        path: PathId,
        /// An error where it is none.
        result: Result<(), Error>,
    },
}

/// The contexts of an exchange.
#[derive(Default)]
pub struct Contexts {
    /// Of its blocks that are encoded.
    pub encoder: Option<Box<dyn Encoder>>,
    /// Of its blocks that are decoded.
    pub decoder: Option<Box<dyn Decoder>>,
}

impl Encode {
    /// Encodes the block in a context, which is made where there is none. What the codec writes
    /// goes through `buffer`, which is of no use otherwise.
    pub fn run(&self, context: &mut Option<Box<dyn Encoder>>, buffer: &mut Vec<u8>) -> Done {
        let result = encode(&self.setup, context, &self.bytes, self.last, buffer);
        self.done(result)
    }

    fn done(&self, result: Result<Bytes, Error>) -> Done {
        let (exchange, block) = (self.exchange, self.block);
        Done::Encoded { exchange, block, result, cpu: Duration::ZERO }
    }
}

impl Decode {
    /// Decodes the block in a context, as [`Encode::run`] encodes.
    pub fn run(&self, context: &mut Option<Box<dyn Decoder>>, buffer: &mut Vec<u8>) -> Done {
        self.done(self.decode(context, buffer))
    }

    fn decode(
        &self,
        context: &mut Option<Box<dyn Decoder>>,
        buffer: &mut Vec<u8>,
    ) -> Result<Bytes, Error> {
        buffer.clear();
        let decoder = match context {
            Some(decoder) => decoder,
            None => context.insert(self.setup.decoder()?),
        };
        decoder.decode(&self.bytes, self.decoded_len, self.last, buffer)?;
        Ok(Bytes::copy_from_slice(buffer))
    }

    fn done(&self, result: Result<Bytes, Error>) -> Done {
        let (exchange, block) = (self.exchange, self.block);
        Done::Decoded { exchange, block, result, cpu: Duration::ZERO }
    }
}

impl Try {
    /// Encodes the block in a context as good as new, which is made where there is none.
    pub fn run(&self, context: &mut Option<Box<dyn Encoder>>, buffer: &mut Vec<u8>) -> Done {
        self.done(encode(&self.setup, context, &self.bytes, true, buffer))
    }

    fn done(&self, result: Result<Bytes, Error>) -> Done {
        Done::Tried { exchange: self.exchange, result, cpu: Duration::ZERO }
    }
}

impl Prepare {
    /// Does it.
    #[must_use]
    pub fn run(&self) -> Done {
        Done::Prepared(match self {
            Self::Base { number, bytes } => {
                Prepared::Base { number: *number, result: Kept::of_message(bytes) }
            }
            Self::Dictionary { number, samples, before } => {
                let samples: Vec<_> = samples.iter().map(|kept| kept.content()).collect();
                let result = dictionary::distil(&samples, before.as_deref());
                Prepared::Dictionary { number: *number, result }
            }
            Self::Parcel { path, bytes } => {
                Prepared::Parcel { path: *path, result: dictionary::unpack_parcel(bytes) }
            }
            Self::Schema { path, schema_context } => {
                Prepared::Schema { path: *path, result: schema_context.prepare() }
            }
        })
    }

    fn failed(&self, error: Error) -> Done {
        Done::Prepared(match self {
            Self::Base { number, .. } => Prepared::Base { number: *number, result: Err(error) },
            Self::Dictionary { number, .. } => {
                Prepared::Dictionary { number: *number, result: Err(error) }
            }
            Self::Parcel { path, .. } => Prepared::Parcel { path: *path, result: Err(error) },
            Self::Schema { path, .. } => Prepared::Schema { path: *path, result: Err(error) },
        })
    }
}

impl Job {
    /// Does it on the spot, with the contexts of its exchange.
    pub fn run(&self, contexts: &mut Contexts) -> Done {
        let buffer = &mut Vec::new();
        match self {
            Self::Encode(job) => {
                contexts.encoder.take_if(|_| job.first);
                job.run(&mut contexts.encoder, buffer)
            }
            Self::Decode(job) => {
                contexts.decoder.take_if(|_| job.first);
                job.run(&mut contexts.decoder, buffer)
            }
            Self::Try(job) => job.run(&mut None, buffer),
            Self::Prepare(job) => job.run(),
        }
    }

    /// It could not be done.
    #[must_use]
    pub fn failed(&self, error: Error) -> Done {
        match self {
            Self::Encode(job) => job.done(Err(error)),
            Self::Decode(job) => job.done(Err(error)),
            Self::Try(job) => job.done(Err(error)),
            Self::Prepare(job) => job.failed(error),
        }
    }

    /// The exchange of which it uses a context; none where it needs none, or one of its own.
    #[must_use]
    pub fn context_of(&self) -> Option<ExchangeId> {
        match self {
            Self::Encode(job) => Some(job.exchange),
            Self::Decode(job) => Some(job.exchange),
            Self::Try(_) | Self::Prepare(_) => None,
        }
    }

    /// Bytes that it is about, decoded, on which its time depends.
    #[must_use]
    pub fn decoded_len(&self) -> usize {
        match self {
            Self::Encode(job) => job.bytes.len(),
            Self::Decode(job) => job.decoded_len,
            Self::Try(job) => job.bytes.len(),
            Self::Prepare(Prepare::Base { bytes, .. } | Prepare::Parcel { bytes, .. }) => {
                bytes.len()
            }
            Self::Prepare(Prepare::Dictionary { samples, .. }) => {
                samples.iter().map(|kept| kept.content().len()).sum()
            }
            Self::Prepare(Prepare::Schema { .. }) => 0,
        }
    }

    /// What the message of an exchange is encoded or decoded with.
    #[must_use]
    pub fn setup(&self) -> Option<&Setup> {
        match self {
            Self::Encode(job) => Some(&job.setup),
            Self::Decode(job) => Some(&job.setup),
            Self::Try(job) => Some(&job.setup),
            Self::Prepare(_) => None,
        }
    }
}

impl Done {
    /// The same, with the processor time that the job took; what was made ready is not timed.
    #[must_use]
    pub fn took(mut self, time: Duration) -> Self {
        match &mut self {
            Self::Encoded { cpu, .. } | Self::Decoded { cpu, .. } | Self::Tried { cpu, .. } => {
                *cpu = time;
            }
            Self::Prepared(_) => {}
        }
        self
    }

    /// The exchange of whose messages it is.
    #[must_use]
    pub fn exchange(&self) -> Option<ExchangeId> {
        match self {
            Self::Encoded { exchange, .. }
            | Self::Decoded { exchange, .. }
            | Self::Tried { exchange, .. } => Some(*exchange),
            Self::Prepared(_) => None,
        }
    }

    /// It was done without an error.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        match self {
            Self::Encoded { result, .. }
            | Self::Decoded { result, .. }
            | Self::Tried { result, .. } => result.is_ok(),
            Self::Prepared(Prepared::Base { result, .. } | Prepared::Parcel { result, .. }) => {
                result.is_ok()
            }
            Self::Prepared(Prepared::Dictionary { result, .. }) => result.is_ok(),
            Self::Prepared(Prepared::Schema { result, .. }) => result.is_ok(),
        }
    }
}

fn encode(
    setup: &Setup,
    context: &mut Option<Box<dyn Encoder>>,
    bytes: &[u8],
    last: bool,
    buffer: &mut Vec<u8>,
) -> Result<Bytes, Error> {
    buffer.clear();
    let encoder = match context {
        Some(encoder) => encoder,
        None => context.insert(setup.encoder()?),
    };
    encoder.encode(bytes, last, buffer)?;
    Ok(Bytes::copy_from_slice(buffer))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXCHANGE: ExchangeId = ExchangeId { instance: 1, number: 1 };

    fn setup(name: &str) -> Setup {
        let (options, framing) = (Options::of(name).unwrap(), Framing::Blocks);
        Setup { options, base: None, schema_context: None, framing }
    }

    fn encode(block: u64, text: &'static str, last: bool) -> Job {
        let (setup, bytes) = (setup("deflate"), Bytes::from_static(text.as_bytes()));
        Job::Encode(Encode { exchange: EXCHANGE, block, setup, bytes, first: block == 0, last })
    }

    fn decode(block: u64, bytes: Bytes, decoded_len: usize, last: bool) -> Job {
        let (exchange, setup, first) = (EXCHANGE, setup("deflate"), block == 0);
        Job::Decode(Decode { exchange, block, setup, bytes, decoded_len, first, last })
    }

    fn encoded(done: Done) -> Bytes {
        match done {
            Done::Encoded { result, .. } | Done::Tried { result, .. } => result.unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// A probe between two blocks leaves their context alone.
    #[test]
    fn blocks_go_through_one_context_and_probes_through_their_own() {
        let texts = ["what is said once, and again", "what is said once, and again, is short"];
        let (mut here, mut there) = (Contexts::default(), Contexts::default());
        let first = encoded(encode(0, texts[0], false).run(&mut here));
        let bytes = Bytes::from_static(texts[1].as_bytes());
        let probe = Job::Try(Try { exchange: EXCHANGE, setup: setup("deflate"), bytes });
        let alone = encoded(probe.run(&mut here));
        let second = encoded(encode(1, texts[1], true).run(&mut here));
        assert!(second.len() < alone.len());
        for (block, bytes) in [(0, first), (1, second)] {
            let text = texts[usize::from(block == 1)];
            match decode(block, bytes, text.len(), block == 1).run(&mut there) {
                Done::Decoded { block: of, result, .. } => {
                    assert_eq!((of, result.unwrap()), (block, text.into()));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn what_failed_is_of_the_kind_of_its_job() {
        let error = || Error::Corrupt { codec: "codec", what: "a fault".to_owned() };
        let done = encode(3, "text", true).failed(error());
        assert!(matches!(done, Done::Encoded { block: 3, result: Err(_), .. }), "{done:?}");
        let parcel = Prepare::Parcel { path: PathId(7), bytes: Bytes::from_static(b"junk") };
        for done in [Job::Prepare(parcel.clone()).failed(error()), parcel.run()] {
            let is_its = matches!(
                done,
                Done::Prepared(Prepared::Parcel { path: PathId(7), result: Err(_) })
            );
            assert!(is_its && !done.is_ok() && done.exchange().is_none(), "{done:?}");
        }
        let took = encode(0, "text", true).run(&mut Contexts::default());
        let took = took.took(Duration::from_micros(3));
        assert!(matches!(took, Done::Encoded { cpu, .. } if cpu == Duration::from_micros(3)));
    }
}
