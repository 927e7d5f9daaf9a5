//! How many times longer one peer decodes than another.
//!
//! What messages take to decode is learned of all peers together; a peer is a processor, which
//! takes so many times that, whatever the codec. The others are measured against the first: where
//! there is one peer alone, as beside an edge, there is nothing to be told apart.
//!
//! What a peer says of itself, so many times this processor, counts until its first message tells.
//! Of the first that said so before anybody told it stays, and all is learned beside it; for others
//! it is against this processor, whatever has been learned.

use std::collections::BTreeMap;

use crate::regression::Prediction;
use crate::state::{Error, Persist, Reader, Writer};

/// Peers remembered beside the first; beyond it the one longest unused goes.
const MAX_PEERS: usize = 256;
/// How far a peer may be off the others, as a logarithm, before it reported: phones and servers.
const SPREAD: f64 = 2.0;
/// What is forgotten of a peer with each message, as a variance: it may have other work tomorrow.
const DRIFT: f64 = 0.001;
/// The same once it reported that itself, of what it measured: of other text than its messages.
const REPORTED_SPREAD: f64 = 0.5;
/// Who reports that is taken for no more times slower or faster than this, as a logarithm.
const MAX_REPORTED_OFF: f64 = 4.0;
/// A peer is taken for no more times slower or faster than this, as a logarithm.
const MAX_OFF: f64 = 12.0;
/// What is so many deviations off what was expected of another peer teaches nothing of all peers:
/// who tells nonsense is to do no harm to others.
const MAX_DEVIATIONS: f64 = 3.0;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decoders {
    /// Whose messages all have learned of; 0 before anybody reported.
    first: u64,
    /// What it said itself before, as a logarithm.
    first_off: f64,
    others: BTreeMap<u64, Decoder>,
    /// What other peers reported of themselves of which no message is known yet.
    reports: BTreeMap<u64, Report>,
    clock: u64,
}

/// What is expected of a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known {
    /// So many times what all have learned.
    Learned(Decoder),
    /// So many times this processor, as logarithms: the mean and its deviation.
    Reported(f64, f64),
}

/// What a peer reported of itself, as a logarithm.
#[derive(Clone, Copy, Debug)]
struct Report {
    off: f64,
    used: u64,
}

/// A peer against what all have learned, as a logarithm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoder {
    pub(crate) off: f64,
    pub(crate) variance: f64,
    used: u64,
}

impl Decoders {
    /// Most bytes of memory beside its own.
    pub(crate) const MAX_BYTES: usize =
        2 * MAX_PEERS * (size_of::<(u64, Decoder)>() + size_of::<(u64, Report)>());

    /// What is known of a peer; 0 is nobody in particular.
    pub(crate) fn of(&self, peer: u64) -> Known {
        match self.reports.get(&peer) {
            Some(report) => Known::Reported(report.off, REPORTED_SPREAD),
            None => Known::Learned(self.learned(peer)),
        }
    }

    fn learned(&self, peer: u64) -> Decoder {
        if peer == 0 || self.first == 0 || peer == self.first {
            return Decoder { off: self.first_off, variance: 0.0, used: 0 };
        }
        self.others.get(&peer).copied().unwrap_or_else(|| self.fresh())
    }

    /// Whether anything is known of a peer.
    pub(crate) fn knows(&self, peer: u64) -> bool {
        let of_others = || self.others.contains_key(&peer) || self.reports.contains_key(&peer);
        peer == 0 || peer == self.first || of_others()
    }

    /// Of a peer that never told: the first may be like no other.
    fn fresh(&self) -> Decoder {
        let all: f64 = self.others.values().map(|other| other.off).sum();
        let off = (self.first_off + all) / (self.others.len() + 1) as f64;
        Decoder { off, variance: SPREAD * SPREAD, used: 0 }
    }

    /// A peer that is not known says that it takes so many times as long as this processor.
    pub(crate) fn acquaint(&mut self, peer: u64, off: f64) {
        if self.knows(peer) {
            return;
        }
        let off = off.clamp(-MAX_REPORTED_OFF, MAX_REPORTED_OFF);
        if self.first == 0 {
            (self.first, self.first_off) = (peer, off);
            return;
        }
        self.clock += 1;
        make_room(&mut self.reports, |report| report.used);
        self.reports.insert(peer, Report { off, used: self.clock });
    }

    /// A peer took `off` to decode where `expected` is what all are taken to; what that teaches of
    /// all.
    pub(crate) fn observe(&mut self, peer: u64, off: f64, expected: &Prediction) -> Option<f64> {
        if self.first == 0 {
            self.first = peer;
        }
        if peer == 0 || peer == self.first {
            return Some(off - self.first_off);
        }
        self.clock += 1;
        self.reports.remove(&peer);
        let mut own = self.learned(peer);
        let surprise = off - expected.mean - own.off;
        let variance = own.variance + expected.deviation * expected.deviation;
        let gain = own.variance / variance;
        own.off = (own.off + gain * surprise).clamp(-MAX_OFF, MAX_OFF);
        own.variance = ((1.0 - gain) * own.variance + DRIFT).min(SPREAD * SPREAD);
        own.used = self.clock;
        if !self.others.contains_key(&peer) {
            make_room(&mut self.others, |other| other.used);
        }
        self.others.insert(peer, own);
        let usual = surprise.abs() <= MAX_DEVIATIONS * variance.sqrt();
        usual.then_some(expected.mean + (1.0 - gain) * surprise)
    }

    /// Whose the next entry is, and when it was used.
    fn read_entry(
        &self,
        from: &mut Reader<'_>,
        before: &mut Option<u64>,
    ) -> Result<(u64, u64), Error> {
        let (id, used) = (from.u64()?, from.u64()?);
        if before.is_some_and(|before| before >= id) || used > self.clock {
            return Err(Error::Damaged("its decoders are out of order"));
        }
        *before = Some(id);
        Ok((id, used))
    }
}

/// The one longest unused goes for another.
fn make_room<T>(all: &mut BTreeMap<u64, T>, used: impl Fn(&T) -> u64) {
    if all.len() >= MAX_PEERS {
        let oldest = all.iter().min_by_key(|(_, one)| used(one)).map(|(&oldest, _)| oldest);
        oldest.and_then(|oldest| all.remove(&oldest));
    }
}

/// The first, what it said, the clock, then the others and the words of others, in ascending order.
impl Persist for Decoders {
    fn write(&self, to: &mut Writer<'_>) {
        to.u64(self.first);
        to.f64(self.first_off);
        to.u64(self.clock);
        to.count(self.others.len());
        for (&id, other) in &self.others {
            to.u64(id);
            to.u64(other.used);
            to.f64(other.off);
            to.f64(other.variance);
        }
        to.count(self.reports.len());
        for (&id, report) in &self.reports {
            to.u64(id);
            to.u64(report.used);
            to.f64(report.off);
        }
    }

    fn read(&mut self, from: &mut Reader<'_>) -> Result<(), Error> {
        self.first = from.u64()?;
        self.first_off = from.f64("a decoder", -MAX_REPORTED_OFF..=MAX_REPORTED_OFF)?;
        self.clock = from.clock()?;
        (self.others, self.reports) = (BTreeMap::new(), BTreeMap::new());
        let mut before = None;
        for _ in 0..from.count("number of decoders", MAX_PEERS)? {
            let (id, used) = self.read_entry(from, &mut before)?;
            let off = from.f64("a decoder", -MAX_OFF..=MAX_OFF)?;
            let variance = from.f64("a decoder's variance", 0.0..=SPREAD * SPREAD)?;
            self.others.insert(id, Decoder { off, variance, used });
        }
        let mut before = None;
        for _ in 0..from.count("number of decoders that said something", MAX_PEERS)? {
            let (id, used) = self.read_entry(from, &mut before)?;
            let off = from.f64("a decoder's word", -MAX_REPORTED_OFF..=MAX_REPORTED_OFF)?;
            self.reports.insert(id, Report { off, used });
        }
        Ok(())
    }
}
