//! A packet that knows its story, a virtual clock, and the statistics that judge it.
#![allow(dead_code, reason = "each test file uses its part")]

use longwire_link::{Channel, ChannelConfig, Direction, DropReason, Input, Output, Packet};
use std::time::Duration;

/// A packet without content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) id: usize,
    pub(crate) len_bytes: usize,
    pub(crate) is_copy: bool,
    pub(crate) flipped: Vec<usize>,
}

impl Probe {
    pub(crate) fn new(id: usize, len_bytes: usize) -> Self {
        Self { id, len_bytes, is_copy: false, flipped: Vec::new() }
    }
}

impl Packet for Probe {
    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    fn flip_bit(&mut self, bit: usize) {
        self.flipped.push(bit);
    }

    fn duplicate(&self) -> Self {
        Self { is_copy: true, ..self.clone() }
    }
}

/// What came out of a channel.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) delivered: Vec<(Duration, Probe)>,
    pub(crate) dropped: Vec<(Probe, DropReason)>,
}

impl Outcome {
    /// Takes all outputs of the last input; answers when the channel wants to be woken.
    pub(crate) fn drain(&mut self, channel: &mut Channel<Probe>) -> Option<Duration> {
        loop {
            match channel.poll_output() {
                Output::Deliver { due, packet } => self.delivered.push((due, packet)),
                Output::Drop { packet, reason } => self.dropped.push((packet, reason)),
                Output::WakeAt(at) => return Some(at),
                Output::Idle => return None,
            }
        }
    }

    /// Wakes the channel until nothing is left or `until` is passed.
    pub(crate) fn run_until(&mut self, channel: &mut Channel<Probe>, until: Duration) {
        while let Some(at) = self.drain(channel).filter(|at| *at <= until) {
            channel.handle_input(at, Input::Wake);
        }
    }
}

/// Offers `packets` probes of `len_bytes`, one each `gap`, and runs to the end.
pub(crate) fn offer(
    config: ChannelConfig,
    seed: u64,
    packets: usize,
    len_bytes: usize,
    gap: Duration,
) -> Outcome {
    let mut channel = Channel::new(config, seed, Direction::Ab);
    let mut outcome = Outcome::default();
    let mut now = Duration::ZERO;
    for id in 0..packets {
        outcome.run_until(&mut channel, now);
        channel.handle_input(now, Input::Packet(Probe::new(id, len_bytes)));
        now += gap;
    }
    outcome.run_until(&mut channel, Duration::MAX);
    outcome
}

/// The standard normal quantile of `1 - tail`, for small tails: Abramowitz and Stegun 26.2.23,
/// whose error is below 4.5e-4.
pub(crate) fn normal_quantile(tail: f64) -> f64 {
    let t = (-2.0 * tail.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - above / below
}

/// Student's quantile from the normal one (Cornish and Fisher), for 30 degrees of freedom and more.
pub(crate) fn student_quantile(tail: f64, freedom: f64) -> f64 {
    let z = normal_quantile(tail);
    z + (z.powi(3) + z) / (4.0 * freedom)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * freedom * freedom)
}

/// Mean and the half width of its confidence interval from batch means.
pub(crate) fn batch_means(values: &[f64], batches: usize, tail: f64) -> (f64, f64) {
    let size = values.len() / batches;
    let means: Vec<f64> =
        values.chunks_exact(size).map(|batch| batch.iter().sum::<f64>() / size as f64).collect();
    let count = means.len() as f64;
    let mean = means.iter().sum::<f64>() / count;
    let square = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>();
    let error = (square / (count - 1.0) / count).sqrt();
    (mean, student_quantile(tail, count - 1.0) * error)
}
