//! What is in the air, and how it is heard where.

use super::config::{MediumConfig, Radio};
use super::record::{Content, Reason};
use crate::random::{Dice, Purpose, Subject};
use std::time::Duration;

/// A transmission.
pub(super) struct Transmission {
    pub(super) number: u64,
    pub(super) from: usize,
    /// Whom it is meant for.
    pub(super) to: Vec<usize>,
    pub(super) content: Content,
    pub(super) start: Duration,
    pub(super) end: Duration,
    pub(super) rate_index: usize,
    pub(super) rate_bps: u64,
    pub(super) bytes: u32,
    /// The power that arrives at each port, in mW; 0 where it is not heard.
    pub(super) powers_mw: Vec<f64>,
}

/// Transmissions under way, and ended ones that met them.
#[derive(Default)]
pub(super) struct Air {
    active: Vec<Transmission>,
    ended: Vec<Transmission>,
}

impl Air {
    pub(super) fn start(&mut self, transmission: Transmission) {
        self.active.push(transmission);
    }

    /// When the next transmission ends.
    pub(super) fn next_end(&self) -> Option<Duration> {
        self.active.iter().map(|one| one.end).min()
    }

    /// Takes the transmissions that end at a time or before, in the order in which they began.
    /// What they met stays to be asked for until [`Air::keep`] has been handed them back.
    pub(super) fn take_ended(&mut self, at: Duration) -> Vec<Transmission> {
        let (ended, active) = std::mem::take(&mut self.active)
            .into_iter()
            .partition(|transmission| transmission.end <= at);
        self.active = active;
        ended
    }

    /// Keeps ended transmissions for as long as one is under way that they met.
    pub(super) fn keep(&mut self, ended: Vec<Transmission>) {
        self.ended.extend(ended);
        let earliest = self.active.iter().map(|one| one.start).min();
        self.ended.retain(|one| earliest.is_some_and(|start| start < one.end));
    }

    pub(super) fn is_sending(&self, port: usize) -> bool {
        self.active.iter().any(|one| one.from == port)
    }

    /// The power of all that others send, as it arrives at a port now, in mW.
    pub(super) fn power_mw(&self, port: usize) -> f64 {
        let others = self.active.iter().filter(|one| one.from != port);
        others.map(|one| one.powers_mw[port]).sum()
    }

    /// Whether a port receives one of some transmissions that have just ended (`together`).
    pub(super) fn receives(
        &self,
        config: &MediumConfig,
        dice: &Dice,
        together: &[Transmission],
        index: usize,
        port: usize,
    ) -> Result<(), Reason> {
        let heard = &together[index];
        let met = |one: &&Transmission| one.start < heard.end && heard.start < one.end;
        let others = self.active.iter().chain(&self.ended).chain(together);
        let others: Vec<&Transmission> =
            others.filter(|one| one.number != heard.number).filter(met).collect();
        if others.iter().any(|one| one.from == port) {
            return Err(Reason::Sending);
        }
        let reception = Reception { config, heard, port, others: &others };
        let number = heard.number << 16 | port as u64;
        let fate = dice.unit(Subject { number, is_copy: false }, Purpose::Reception);
        if fate < reception.share(true, true) {
            return Ok(());
        }
        Err(if fate >= reception.share(false, false) {
            Reason::Weak
        } else if fate >= reception.share(false, true) {
            Reason::Jamming
        } else {
            Reason::Interference
        })
    }
}

/// One transmission at one receiver.
struct Reception<'a> {
    config: &'a MediumConfig,
    heard: &'a Transmission,
    port: usize,
    others: &'a [&'a Transmission],
}

impl Reception<'_> {
    /// The share of such transmissions that arrive, with or without the others and the jammer.
    fn share(&self, with_others: bool, with_jamming: bool) -> f64 {
        let Transmission { start, end, rate_index, bytes, ref powers_mw, .. } = *self.heard;
        let signal_mw = powers_mw[self.port];
        if signal_mw <= 0.0 {
            return 0.0;
        }
        let radio = &self.config.radio;
        let noise_mw = milliwatts(radio.noise_dbm());
        let mut edges: Vec<Duration> = vec![start, end];
        let times = self.others.iter().map(|one| (one.start, one.end));
        let jamming = self.config.jamming.iter().map(|window| (window.from, window.until));
        for (from, until) in times.chain(jamming) {
            edges.extend([from, until].into_iter().filter(|edge| (start..end).contains(edge)));
        }
        edges.sort_unstable();
        edges.dedup();
        let length = (end - start).as_secs_f64();
        // The radio may have got fewer rates meanwhile.
        let Some(rate) = radio.rates.get(rate_index).or(radio.rates.last()) else { return 0.0 };
        let mut share = 1.0;
        for pair in edges.windows(2) {
            let mut unwanted_mw = noise_mw;
            if with_others {
                let met =
                    self.others.iter().filter(|one| one.start <= pair[0] && pair[0] < one.end);
                unwanted_mw += met.map(|one| one.powers_mw[self.port]).sum::<f64>();
            }
            if with_jamming {
                unwanted_mw += jamming_mw(self.config, self.port, pair[0]);
            }
            let sinr_db = 10.0 * (signal_mw / unwanted_mw).log10();
            let part = (pair[1] - pair[0]).as_secs_f64() / length;
            share *= rate.curve.share(sinr_db, f64::from(bytes) * part);
        }
        share
    }
}

/// The power of a jammer at a port and a time, in mW.
pub(super) fn jamming_mw(config: &MediumConfig, port: usize, at: Duration) -> f64 {
    let heard = config.jamming.iter().filter(|window| {
        let is_on = window.from <= at && at < window.until;
        let ports = window.ports.as_ref();
        is_on && ports.is_none_or(|ports| ports.iter().any(|one| usize::from(*one) == port))
    });
    heard.map(|window| milliwatts(window.level_dbm)).sum()
}

/// The next time after `at` at which a jammer begins or ends.
pub(super) fn next_jamming_edge(config: &MediumConfig, at: Duration) -> Option<Duration> {
    let edges = config.jamming.iter().flat_map(|window| [window.from, window.until]);
    edges.filter(|edge| *edge > at).min()
}

/// The power from which a radio senses a carrier, in mW.
pub(super) fn sense_mw(radio: &Radio) -> f64 {
    milliwatts(radio.noise_dbm() + radio.sense_db)
}

pub(super) fn milliwatts(dbm: f64) -> f64 {
    10_f64.powf(dbm / 10.0)
}
