//! Contexts of codings, and those that are kept for others to come.

use std::collections::VecDeque;

use codec::Options;
use coding::job::{Contexts, Decode, Encode, Job, Try};
use coding::recipient::Framing;

/// Contexts kept, and what they take in all, in bytes; beyond either the one kept first goes.
const MAX_SPARES: usize = 8;
pub(super) const SPARE_BYTES: usize = 4 << 20;

/// A context, and what it was made for.
pub(super) struct Context {
    pub(super) options: Options,
    /// Of what comes out.
    pub(super) framing: Framing,
    /// One of them, or none where it could not be made.
    pub(super) contexts: Contexts,
}

impl Context {
    /// As a fresh one, in the memory that it has; none where that cannot be.
    pub(super) fn renewed(mut self) -> Option<Self> {
        let can = match &mut self.contexts {
            Contexts { encoder: Some(encoder), .. } => encoder.renew(),
            Contexts { decoder: Some(decoder), .. } => decoder.renew(),
            _ => false,
        };
        can.then_some(self)
    }

    fn is_for(&self, job: &Job) -> bool {
        let (setup, decodes) = match job {
            Job::Encode(Encode { setup, first: true, .. }) => (setup, false),
            Job::Decode(Decode { setup, first: true, .. }) => (setup, true),
            Job::Try(Try { setup, .. }) => (setup, false),
            _ => return false,
        };
        let alike = (self.options, self.framing) == (setup.options, setup.framing);
        alike && self.contexts.decoder.is_some() == decodes
    }

    fn bytes(&self) -> usize {
        match self.contexts.decoder {
            None => self.options.codec.encoder_bytes(self.options),
            Some(_) => self.options.codec.decoder_bytes(self.options),
        }
    }
}

/// Renewed contexts, the one kept last at the end.
#[derive(Default)]
pub(super) struct Spares {
    all: VecDeque<Context>,
    bytes: usize,
}

impl Spares {
    /// Keeps one that was renewed, within the bounds; what alone is beyond them drives none out.
    /// Gives those that are not kept: their memory takes a while to give back.
    #[must_use]
    pub(super) fn keep(&mut self, spare: Option<Context>) -> Vec<Context> {
        let mut gone = Vec::new();
        let Some(spare) = spare else { return gone };
        if spare.bytes() > SPARE_BYTES {
            return vec![spare];
        }
        self.bytes += spare.bytes();
        self.all.push_back(spare);
        while self.all.len() > MAX_SPARES || self.bytes > SPARE_BYTES {
            let Some(oldest) = self.all.pop_front() else { break };
            self.bytes -= oldest.bytes();
            gone.push(oldest);
        }
        gone
    }

    /// One for a block that begins a coding.
    pub(super) fn take(&mut self, job: &Job) -> Option<Context> {
        let at = self.all.iter().rposition(|spare| spare.is_for(job))?;
        let spare = self.all.remove(at)?;
        self.bytes -= spare.bytes();
        Some(spare)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use coding::ExchangeId;
    use coding::job::Setup;

    use super::*;

    const EXCHANGE: ExchangeId = ExchangeId { instance: 1, number: 1 };

    fn setup(name: &str) -> Setup {
        let (options, framing) = (Options::of(name).unwrap(), Framing::Blocks);
        Setup { options, base: None, schema_context: None, framing }
    }

    fn encode(name: &str, first: bool) -> Job {
        let (exchange, setup, bytes) = (EXCHANGE, setup(name), Bytes::new());
        Job::Encode(Encode { exchange, block: 0, setup, bytes, first, last: true })
    }

    fn decode(name: &str) -> Job {
        let (exchange, setup, bytes) = (EXCHANGE, setup(name), Bytes::new());
        let (decoded_len, first, last) = (0, true, true);
        Job::Decode(Decode { exchange, block: 0, setup, bytes, decoded_len, first, last })
    }

    fn context(name: &str) -> Context {
        let encoder = Some(setup(name).encoder().unwrap());
        let contexts = Contexts { encoder, decoder: None };
        let (options, framing) = (Options::of(name).unwrap(), Framing::Blocks);
        Context { options, framing, contexts }
    }

    fn keep(spares: &mut Spares, name: &str) {
        drop(spares.keep(context(name).renewed()));
    }

    #[test]
    fn a_context_goes_once_to_whoever_needs_just_that() {
        let mut spares = Spares::default();
        for name in ["deflate", "zstd:1", "brotli"] {
            keep(&mut spares, name);
        }
        let later = encode("deflate", false);
        for none in [decode("deflate"), encode("zstd:3", true), encode("brotli", true), later] {
            assert!(spares.take(&none).is_none(), "{none:?}");
        }
        let probe =
            Job::Try(Try { exchange: EXCHANGE, setup: setup("deflate"), bytes: Bytes::new() });
        assert!(spares.take(&probe).is_some());
        assert!(spares.take(&encode("deflate", true)).is_none());
        assert!(spares.take(&encode("zstd:1", true)).is_some());
        assert_eq!((spares.all.len(), spares.bytes), (0, 0));
    }

    #[test]
    fn no_more_are_kept_than_may_be() {
        let mut spares = Spares::default();
        for name in ["zstd:19", "deflate", "zstd:3", "zstd:9", "deflate:9"] {
            for _ in 0..2 * MAX_SPARES {
                keep(&mut spares, name);
                assert!(spares.bytes <= SPARE_BYTES && spares.all.len() <= MAX_SPARES);
                let bytes: usize = spares.all.iter().map(Context::bytes).sum();
                assert_eq!(spares.bytes, bytes);
            }
        }
        assert_eq!(spares.all.len(), MAX_SPARES);
        assert!(context("zstd:19").bytes() > SPARE_BYTES);
        keep(&mut spares, "zstd:19");
        assert_eq!(spares.all.len(), MAX_SPARES);
    }
}
