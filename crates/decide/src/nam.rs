//! NAM as it was published: cubic regressions over all messages, one of two TCP models by whether
//! there was loss before, the least sum of three times, and nothing below a packet.

use crate::arm::Arm;
use crate::learned::Candidate;
use crate::models::{Expected, Seen};
use crate::network::{NetworkModel, NoLoss, Path, Pftk};
use crate::regression::Cubic;

/// Bytes in a megabyte, the unit of the regressions.
const MEGABYTE: f64 = 1e6;

/// The regressions of one compression.
#[derive(Clone, Copy, Debug, Default)]
struct Regressions {
    megabytes: Cubic,
    encode_s: Cubic,
    decode_s: Cubic,
}

/// The policy of NAM's paper, over any number of compressions.
#[derive(Clone, Debug)]
pub struct Nam {
    arms: Vec<Regressions>,
}

impl Nam {
    /// A policy over `arms` arms, of which the first leaves bytes alone, that has seen nothing: a
    /// compression is not used before it was seen once.
    #[must_use]
    pub fn new(arms: usize) -> Self {
        Self { arms: vec![Regressions::default(); arms] }
    }

    /// Seconds on the network: the model without loss where none was seen or the message is a few
    /// packets, PFTK else (NAM §2.2, its hybrid).
    #[must_use]
    pub fn network_s(path: &Path, bytes: f64) -> f64 {
        let few = 3.0 * path.segment_bytes;
        if path.loss <= 0.0 || bytes <= few {
            NoLoss.seconds(path, bytes)
        } else {
            Pftk.seconds(path, bytes)
        }
    }

    /// Chooses for a message of so many bytes.
    #[must_use]
    pub fn choose(&self, path: &Path, bytes: f64, allowed: impl Fn(Arm) -> bool) -> Candidate {
        let plain = Expected { bytes, deviation: 0.0, encode_s: 0.0, decode_s: 0.0 };
        let identity = Candidate {
            arm: Arm::IDENTITY,
            expected: plain,
            network_s: Self::network_s(path, bytes),
        };
        if bytes <= path.segment_bytes {
            return identity;
        }
        let coded = self.arms.iter().enumerate().skip(1).filter(|(at, _)| allowed(Arm(*at)));
        coded
            .filter_map(|(at, regressions)| {
                let expected = regressions.expect(bytes)?;
                let network_s = Self::network_s(path, expected.bytes);
                Some(Candidate { arm: Arm(at), expected, network_s })
            })
            .chain([identity])
            .min_by(|a, b| a.total_s().total_cmp(&b.total_s()))
            .unwrap_or(identity)
    }

    /// Learns what a compression of `bytes` turned out to be.
    pub fn observe(&mut self, arm: Arm, bytes: f64, seen: &Seen) {
        let Some(regressions) = self.arms.get_mut(arm.0) else { return };
        let size = bytes / MEGABYTE;
        regressions.megabytes.observe(size, seen.bytes / MEGABYTE);
        seen.encode_s.into_iter().for_each(|seconds| regressions.encode_s.observe(size, seconds));
        seen.decode_s.into_iter().for_each(|seconds| regressions.decode_s.observe(size, seconds));
    }
}

impl Regressions {
    /// Polynomials go below zero between their samples; a message is a byte long at least and takes
    /// no time at least.
    fn expect(&self, bytes: f64) -> Option<Expected> {
        let size = bytes / MEGABYTE;
        Some(Expected {
            bytes: (self.megabytes.predict(size)? * MEGABYTE).max(1.0),
            deviation: 0.0,
            encode_s: self.encode_s.predict(size)?.max(0.0),
            decode_s: self.decode_s.predict(size)?.max(0.0),
        })
    }
}
