//! Contexts of codings, and those that are kept for others to come.

use std::collections::VecDeque;

use codec::Options;
use coding::{Work, WorkDirection};

/// Contexts kept, and what they take in all, in bytes; beyond either the one kept first goes.
const MAX_SPARES: usize = 8;
pub(super) const SPARE_BYTES: usize = 4 << 20;

/// What blocks go through.
pub(super) enum Coder {
    Encoder(Box<dyn codec::Encoder>),
    Decoder(Box<dyn codec::Decoder>),
}

/// A context, and what it was made for.
pub(super) struct Context {
    pub(super) options: Options,
    pub(super) coder: Coder,
}

impl Context {
    /// A fresh one for a block and those behind it.
    pub(super) fn of(work: &Work) -> Result<Self, codec::Error> {
        let coder = match work.direction {
            WorkDirection::Decode => Coder::Decoder(work.decoder()?),
            _ => Coder::Encoder(work.encoder()?),
        };
        Ok(Self { options: work.options, coder })
    }

    /// As a fresh one, in the memory that it has; none where that cannot be.
    pub(super) fn renewed(mut self) -> Option<Self> {
        let can = match &mut self.coder {
            Coder::Encoder(encoder) => encoder.renew(),
            Coder::Decoder(decoder) => decoder.renew(),
        };
        can.then_some(self)
    }

    fn is_for(&self, work: &Work) -> bool {
        let decodes = matches!(self.coder, Coder::Decoder(_));
        self.options == work.options && decodes == (work.direction == WorkDirection::Decode)
    }

    fn bytes(&self) -> usize {
        let Ok(codec) = self.options.codec() else { return 0 };
        match self.coder {
            Coder::Encoder(_) => codec.encoder_bytes(self.options),
            Coder::Decoder(_) => codec.decoder_bytes(self.options),
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
    pub(super) fn take(&mut self, work: &Work) -> Option<Context> {
        let at = self.all.iter().rposition(|spare| work.first && spare.is_for(work))?;
        let spare = self.all.remove(at)?;
        self.bytes -= spare.bytes();
        Some(spare)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use coding::ExchangeId;

    use super::*;

    fn work(name: &str, direction: WorkDirection) -> Work {
        Work {
            exchange: ExchangeId { instance: 1, number: 1 },
            direction,
            block: 0,
            options: Options::of(name).unwrap(),
            bytes: Bytes::new(),
            decoded_len: 0,
            first: true,
            last: true,
            base: None,
            vocabulary: None,
        }
    }

    fn keep(spares: &mut Spares, work: &Work) {
        drop(spares.keep(Context::of(work).unwrap().renewed()));
    }

    #[test]
    fn a_context_goes_once_to_whoever_needs_just_that() {
        use WorkDirection::{Decode, Encode, Shadow};
        let mut spares = Spares::default();
        for name in ["deflate", "zstd:1", "brotli"] {
            keep(&mut spares, &work(name, Encode));
        }
        let later = Work { first: false, ..work("deflate", Encode) };
        for none in [work("deflate", Decode), work("zstd:3", Encode), work("brotli", Encode), later]
        {
            assert!(spares.take(&none).is_none(), "{none:?}");
        }
        assert!(spares.take(&work("deflate", Shadow)).is_some());
        assert!(spares.take(&work("deflate", Encode)).is_none());
        assert!(spares.take(&work("zstd:1", Encode)).is_some());
        assert_eq!((spares.all.len(), spares.bytes), (0, 0));
    }

    #[test]
    fn no_more_are_kept_than_may_be() {
        let mut spares = Spares::default();
        for name in ["zstd:19", "deflate", "zstd:3", "zstd:9", "deflate:9"] {
            for _ in 0..2 * MAX_SPARES {
                keep(&mut spares, &work(name, WorkDirection::Encode));
                assert!(spares.bytes <= SPARE_BYTES && spares.all.len() <= MAX_SPARES);
                let bytes: usize = spares.all.iter().map(Context::bytes).sum();
                assert_eq!(spares.bytes, bytes);
            }
        }
        assert_eq!(spares.all.len(), MAX_SPARES);
        let large = work("zstd:19", WorkDirection::Encode);
        assert!(Context::of(&large).unwrap().bytes() > SPARE_BYTES);
        keep(&mut spares, &large);
        assert_eq!(spares.all.len(), MAX_SPARES);
    }
}
