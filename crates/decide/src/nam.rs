//! NAM as it was published: cubic regressions over all messages, one of two TCP models by whether
//! there was loss before, the least sum of three times, and nothing below a packet.

use crate::arm::Arm;
use crate::estimate::UNSEEN_LOSS;
use crate::models::{Expected, Seen};
use crate::network::{NetworkModel, NoLoss, Path, Pftk};
use crate::policy::{Candidate, Decision, Objective, Observation, Policy, Request};
use crate::regression::Cubic;
use crate::state::{self, Error, Kind, Persist, Reader, Writer};

/// Bytes in a megabyte, the unit of the regressions.
const MEGABYTE: f64 = 1e6;

/// The window of the paper's hosts in packets: 64 KB.
const PUBLISHED_WINDOW: f64 = 44.0;
/// Samples that make a profile.
const PROFILE_SAMPLES: f64 = 32.0;

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
    /// packets, PFTK else (NAM §2.2, its hybrid). Its round trip is that of a full packet, which on
    /// slow links is longer than the path's own.
    #[must_use]
    pub fn network_s(path: &Path, bytes: f64) -> f64 {
        let few = 3.0 * path.segment_bytes;
        let sending_s = 8.0 * (path.segment_bytes + path.header_bytes) / path.rate_bps;
        let path = &Path { rtt_s: path.rtt_s + sending_s, ..*path };
        if path.loss <= UNSEEN_LOSS || bytes <= few {
            NoLoss.seconds(path, bytes)
        } else {
            Pftk.seconds(path, bytes)
        }
    }

    fn candidate(&self, path: &Path, arm: Arm, bytes: f64) -> Option<Candidate> {
        let expected = match arm {
            Arm::IDENTITY => Expected::unchanged(bytes),
            Arm(at) => self.arms.get(at)?.expect(bytes)?,
        };
        Some(Candidate {
            arm,
            expected,
            network_s: Self::network_s(path, expected.bytes),
            wait_s: 0.0,
        })
    }

    /// Its profiles were made off line. On line the compression that was seen least is tried beside
    /// messages until it was seen often enough.
    fn probe(&self, request: &Request<'_>, chosen: Arm) -> Option<Arm> {
        let samples = |arm: &Arm| self.arms.get(arm.0).map_or(0.0, Regressions::samples);
        let open = request.open(self.arms.len()).skip(1);
        let least = open.min_by(|a, b| samples(a).total_cmp(&samples(b)))?;
        (least != chosen && samples(&least) < PROFILE_SAMPLES).then_some(least)
    }

    /// Learns what a compression of `bytes` turned out to be.
    fn learn(&mut self, arm: Arm, bytes: f64, seen: &Seen) {
        let Some(regressions) = self.arms.get_mut(arm.0) else { return };
        let size = bytes / MEGABYTE;
        regressions.megabytes.observe(size, seen.bytes / MEGABYTE);
        seen.encode_s.into_iter().for_each(|seconds| regressions.encode_s.observe(size, seconds));
        seen.decode_s.into_iter().for_each(|seconds| regressions.decode_s.observe(size, seconds));
    }
}

impl Policy for Nam {
    /// The objective is time, whatever is asked for.
    fn choose(&mut self, request: &Request<'_>) -> Decision {
        let (bytes, objective) = (request.subject.bytes, Objective::Time);
        let path = Path { most_window: PUBLISHED_WINDOW, ..*request.path };
        let identity = Candidate::identity(bytes, Self::network_s(&path, bytes));
        if bytes <= path.segment_bytes {
            let (candidates, reason) = (vec![identity], "within a packet");
            return Decision { chosen: identity, objective, candidates, probe: None, reason };
        }
        let open = request.open(self.arms.len());
        let candidates: Vec<_> = open.filter_map(|arm| self.candidate(&path, arm, bytes)).collect();
        let chosen = candidates.iter().min_by(|a, b| a.total_s().total_cmp(&b.total_s()));
        let chosen = chosen.copied().unwrap_or(identity);
        let probe = self.probe(request, chosen.arm);
        let reason = "the least sum of three times";
        Decision { chosen, objective, candidates, probe, reason }
    }

    fn again(&self, _: &Decision, _: &Path, _: &[Arm], _: f64) -> Option<Arm> {
        None
    }

    fn network_s(&self, path: &Path, bytes: f64) -> f64 {
        Self::network_s(&Path { most_window: PUBLISHED_WINDOW, ..*path }, bytes)
    }

    fn observe(&mut self, observation: &Observation<'_>) {
        if let Observation::Encoding { subject, arm, seen } = *observation {
            self.learn(arm, subject.bytes, seen);
        }
    }

    fn state_bytes(&self) -> usize {
        size_of::<Self>() + self.arms.len() * size_of::<Regressions>()
    }

    fn save(&self, arms: &[&str], out: &mut Vec<u8>) {
        state::save(Kind::Nam, arms, self.arms.len(), self, out);
    }

    fn restore(&mut self, arms: &[&str], bytes: &[u8]) -> Result<(), Error> {
        state::restore(Kind::Nam, arms, self.arms.len(), self, bytes)
    }
}

impl Regressions {
    fn samples(&self) -> f64 {
        self.megabytes.samples()
    }

    /// Polynomials go below zero between their samples; a message is a byte long at least and takes
    /// no time at least.
    fn expect(&self, bytes: f64) -> Option<Expected> {
        let size = bytes / MEGABYTE;
        Some(Expected {
            bytes: (self.megabytes.predict(size)? * MEGABYTE).max(1.0),
            encode_s: self.encode_s.predict(size)?.max(0.0),
            // A client that has sent no profile yet: nothing is known to be held against it.
            decode_s: self.decode_s.predict(size).unwrap_or(0.0).max(0.0),
            ..Expected::default()
        })
    }
}

impl Persist for Nam {
    fn write(&self, to: &mut Writer<'_>) {
        for regressions in &self.arms {
            regressions.megabytes.write(to);
            regressions.encode_s.write(to);
            regressions.decode_s.write(to);
        }
    }

    fn read(&mut self, from: &mut Reader<'_>) -> Result<(), Error> {
        for arm in from.arms() {
            let mut skipped = Regressions::default();
            let own = arm.and_then(|arm| self.arms.get_mut(arm.0));
            let place = own.unwrap_or(&mut skipped);
            place.megabytes.read(from)?;
            place.encode_s.read(from)?;
            place.decode_s.read(from)?;
        }
        Ok(())
    }
}
