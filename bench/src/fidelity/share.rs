//! Loss, duplication, corruption, reordering and jitter against what was asked for.
//!
//! Every case has a link of its own; all run at the same time. The probe's counts are also compared
//! with those of the link model alone in virtual time: what differs, the ferry has lost or added.

use std::time::Duration;

use anyhow::Result;
use link::{Channel, Direction, DropReason, Input, Output};
use record::fidelity::ShareResult;

use super::Options;
use super::trial::{Trial, link};
use crate::probe::{Flow, Plan, Trace, is_intact, run};
use crate::statistics::{
    batch_half_width, distance, distance_limit, normal_distribution, share_half_width,
};

/// One link and what to look for.
struct Case {
    settings: &'static [&'static str],
    seed: u64,
    look_for: LookFor,
    /// The share that was asked for; 0 for distributions.
    expected: f64,
}

enum LookFor {
    /// Packets that did not arrive.
    Lost,
    /// The same, where one depends on the next.
    LostInBursts,
    /// Packets that arrived twice.
    Doubled,
    /// Packets that reached the host's interface with a bit flipped.
    Corrupt,
    /// Packets that took less than half the delay.
    Skipped,
    /// Travel times, evenly between the two, in milliseconds.
    Even(f64, f64),
    /// Travel times, normal with this mean and deviation, in milliseconds.
    Normal(f64, f64),
}

/// Jitter keeps order unless reordering is above zero. This little reorders no packet of ours, but
/// lets every packet have its own draw, however close behind another it is.
const ORDER_FREE: &str = "reorder=0.0001 %";
const DELAY_MS: f64 = 50.0;

const CASES: [Case; 11] = [
    Case { settings: &["loss=1 %"], seed: 1, look_for: LookFor::Lost, expected: 0.01 },
    Case { settings: &["loss=20 %"], seed: 2, look_for: LookFor::Lost, expected: 0.2 },
    Case {
        settings: &["burst_loss=p=1 %, r=30 %"],
        seed: 3,
        look_for: LookFor::LostInBursts,
        expected: 0.01 / 0.31,
    },
    Case {
        settings: &["burst_loss=p=2 %, r=10 %, bad=60 %, good=1 %"],
        seed: 4,
        look_for: LookFor::LostInBursts,
        expected: (0.10 * 0.01 + 0.02 * 0.6) / 0.12,
    },
    Case { settings: &["duplicate=1 %"], seed: 5, look_for: LookFor::Doubled, expected: 0.01 },
    Case { settings: &["duplicate=10 %"], seed: 6, look_for: LookFor::Doubled, expected: 0.1 },
    Case { settings: &["corrupt=5 %"], seed: 7, look_for: LookFor::Corrupt, expected: 0.05 },
    Case { settings: &["reorder=1 %"], seed: 8, look_for: LookFor::Skipped, expected: 0.01 },
    Case { settings: &["reorder=25 %"], seed: 9, look_for: LookFor::Skipped, expected: 0.25 },
    Case {
        settings: &["jitter=20 ms", ORDER_FREE],
        seed: 10,
        look_for: LookFor::Even(DELAY_MS - 20.0, DELAY_MS + 20.0),
        expected: 0.0,
    },
    Case {
        settings: &["jitter=8 ms", "distribution=normal", ORDER_FREE],
        seed: 11,
        look_for: LookFor::Normal(DELAY_MS, 8.0),
        expected: 0.0,
    },
];
/// Chance that any of the checks fails though all is well.
const FAMILY_ALPHA: f64 = 0.01;
/// Its part for each (Bonferroni).
const ALPHA: f64 = FAMILY_ALPHA / CASES.len() as f64;
const BATCHES: usize = 50;
const PACKET_BYTES: usize = 200;
const GAP: Duration = Duration::from_millis(2);
const QUIET: Duration = Duration::from_millis(700);

fn packets(options: &Options) -> usize {
    if options.quick { 1_000 } else { 5_000 }
}

pub(super) fn planned(options: &Options) -> Duration {
    GAP * u32::try_from(packets(options)).unwrap_or(u32::MAX) + QUIET
}

pub(super) fn measure(trial: &mut Trial, options: &Options) -> Result<Vec<ShareResult>> {
    let packets = packets(options);
    let one = |trial: &mut Trial| one_run(trial, packets);
    let what = "loss, duplication, corruption, reordering, jitter";
    let (results, _) = trial.undisturbed(what, planned(options), one)?;
    for result in &results {
        let off = (result.observed - result.expected).abs();
        trial.demand(off <= result.half_width, || {
            let ShareResult { what, observed, expected, half_width, .. } = result;
            format!("{what}: {observed:.4}, expected {expected:.4} ± {half_width:.4}")
        });
        let same = result.in_virtual_time.is_none_or(|count| count == result.counted);
        trial.demand(same, || {
            let ShareResult { what, counted, .. } = result;
            let model = result.in_virtual_time.unwrap_or_default();
            format!("{what}: {counted} packets, {model} in virtual time")
        });
    }
    Ok(results)
}

fn one_run(trial: &mut Trial, packets: usize) -> Result<Vec<ShareResult>> {
    let delay = format!("delay={DELAY_MS} ms");
    let config = |case: &Case| link(&[&[delay.as_str()], case.settings].concat());
    let links = CASES.iter().map(|case| Ok((config(case)?, case.seed))).collect::<Result<_>>()?;
    let stage = trial.stage(links)?;
    let flow = |(link, case): (usize, &Case)| Flow {
        link,
        packet_bytes: PACKET_BYTES,
        stamped: case.needs_travel_times(),
        captured: matches!(case.look_for, LookFor::Corrupt),
        expected: None,
    };
    let flows = CASES.iter().enumerate().map(flow).collect();
    let schedule = (0..u32::try_from(packets)?)
        .flat_map(|number| (0..CASES.len()).map(move |flow| (GAP * number, flow)))
        .collect();
    let traces = run(&stage.lab, &Plan { flows, schedule, quiet: QUIET })?;
    let stamped = CASES.iter().zip(&traces).filter(|(case, _)| case.needs_travel_times());
    trial.note_stamps(&stamped.map(|(_, trace)| trace.clone()).collect::<Vec<_>>());
    let result = |(case, trace): (&Case, &Trace)| case.result(trace, config(case)?.ab, packets);
    CASES.iter().zip(&traces).map(result).collect()
}

impl Case {
    fn needs_travel_times(&self) -> bool {
        matches!(self.look_for, LookFor::Skipped | LookFor::Even(..) | LookFor::Normal(..))
    }

    fn result(
        &self,
        trace: &Trace,
        config: link::ChannelConfig,
        packets: usize,
    ) -> Result<ShareResult> {
        let hits = self.hits(trace)?;
        let counted = hits.iter().filter(|hit| **hit).count() as u64;
        let distance = self.distance(trace);
        let half_width = match self.look_for {
            LookFor::LostInBursts => batch_half_width(&hits, BATCHES, ALPHA / 2.0),
            LookFor::Even(..) | LookFor::Normal(..) => distance_limit(packets, ALPHA),
            _ => share_half_width(self.expected, packets, ALPHA / 2.0),
        };
        Ok(ShareResult {
            what: self.settings.join(", "),
            method: self.method().to_string(),
            packets,
            seed: self.seed,
            expected: self.expected,
            observed: distance.unwrap_or(counted as f64 / packets as f64),
            half_width,
            counted: if distance.is_some() { trace.arrivals.len() as u64 } else { counted },
            in_virtual_time: self.in_virtual_time(config, packets),
        })
    }

    fn method(&self) -> &'static str {
        match self.look_for {
            LookFor::Lost => "not arrived, binomial",
            LookFor::LostInBursts => "not arrived, batch means",
            LookFor::Doubled => "arrived twice, binomial",
            LookFor::Corrupt => "wrong checksum at a packet socket, binomial",
            LookFor::Skipped => "under half the delay, binomial",
            LookFor::Even(..) => "distance from the uniform distribution, Kolmogorov-Smirnov",
            LookFor::Normal(..) => "distance from the normal distribution, Kolmogorov-Smirnov",
        }
    }

    /// Which packets show what is looked for; in order of sending or of arrival.
    fn hits(&self, trace: &Trace) -> Result<Vec<bool>> {
        let copies = trace.copies();
        Ok(match self.look_for {
            LookFor::Lost | LookFor::LostInBursts => {
                copies.iter().map(|count| *count == 0).collect()
            }
            LookFor::Doubled => copies.iter().map(|count| *count == 2).collect(),
            LookFor::Corrupt => {
                let corrupt: Vec<bool> =
                    trace.captured.iter().map(|packet| !is_intact(packet)).collect();
                let intact = corrupt.iter().filter(|corrupt| !**corrupt).count();
                // What the host's kernel lets through are the intact ones, or one of us is wrong.
                anyhow::ensure!(
                    intact == trace.arrivals.len(),
                    "{intact} packets are intact, yet {} got through the kernel's own check",
                    trace.arrivals.len()
                );
                corrupt
            }
            LookFor::Skipped => {
                let half_ns = DELAY_MS / 2.0 * 1e6;
                trace.travel_times_ns().iter().map(|travel| (*travel as f64) < half_ns).collect()
            }
            LookFor::Even(..) | LookFor::Normal(..) => Vec::new(),
        })
    }

    /// How far travel times are from the distribution that was asked for.
    fn distance(&self, trace: &Trace) -> Option<f64> {
        let travel_ms: Vec<f64> =
            trace.travel_times_ns().iter().map(|travel| *travel as f64 / 1e6).collect();
        match self.look_for {
            LookFor::Even(from, to) => {
                Some(distance(&travel_ms, |ms| ((ms - from) / (to - from)).clamp(0.0, 1.0)))
            }
            LookFor::Normal(mean, deviation) => {
                Some(distance(&travel_ms, |ms| normal_distribution((ms - mean) / deviation)))
            }
            _ => None,
        }
    }

    /// What the link model alone does with as many packets.
    fn in_virtual_time(&self, config: link::ChannelConfig, packets: usize) -> Option<u64> {
        let mut channel = Channel::new(config, self.seed, Direction::Ab);
        let mut now = Duration::ZERO;
        for _ in 0..packets {
            channel.handle_input(now, Input::Packet(vec![0_u8; PACKET_BYTES]));
            while matches!(channel.poll_output(), Output::Deliver { .. } | Output::Drop { .. }) {}
            now += GAP;
        }
        channel.handle_input(now, Input::Wake);
        let stats = channel.stats();
        match self.look_for {
            LookFor::Lost | LookFor::LostInBursts => Some(stats.dropped(DropReason::Loss).packets),
            LookFor::Doubled => Some(stats.duplicated.packets),
            LookFor::Corrupt => Some(stats.corrupted),
            LookFor::Skipped => Some(stats.reordered),
            LookFor::Even(..) | LookFor::Normal(..) => None,
        }
    }
}
