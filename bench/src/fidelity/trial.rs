//! What all measurements of one way share: labs under load, repetition, progress, verdicts.

use std::time::Duration;

use anyhow::{Result, bail};
use lab::{Lab, LinkSpec, Options};
use link::LinkConfig;
use record::fidelity::WayResult;
use record::machine::Busy;
use record::result::Lateness;

use super::Way;
use crate::machine::{Accounts, FerryThread, Load, cores};
use crate::probe::{Stamps, Trace};
use crate::progress::Progress;

/// Stolen processor time beyond which a run says more about the neighbours than about us.
const MAX_STOLEN_PERCENT: f64 = 1.0;
/// Runs of one way that are repeated before the machine counts as too busy.
const MAX_REPEATS: usize = 20;

/// A way being measured.
pub(super) struct Trial {
    pub(super) result: WayResult,
    pub(super) way: Way,
    progress: Progress,
}

/// A lab, and the load beside it.
pub(super) struct Stage {
    pub(super) lab: Lab,
    pub(super) ferry: FerryThread,
    _load: Load,
}

impl Trial {
    pub(super) fn new(way: Way, progress: Progress) -> Self {
        let result = WayResult {
            way: way.name().to_string(),
            about: way.about().to_string(),
            scheduling: String::new(),
            load: String::new(),
            transmit_stamps: String::new(),
            delays: Vec::new(),
            rates: Vec::new(),
            shares: Vec::new(),
            pairs: None,
            repeated: Vec::new(),
            missed: Vec::new(),
        };
        Self { result, way, progress }
    }

    pub(super) fn finish(self) -> WayResult {
        self.progress.finish();
        self.result
    }

    /// Builds links with a load beside the ferry.
    pub(super) fn stage(&mut self, links: Vec<(LinkConfig, u64)>) -> Result<Stage> {
        let spec = |(index, (config, seed))| LinkSpec::new(format!("l{index}"), config, seed);
        let specs: Vec<LinkSpec> = links.into_iter().enumerate().map(spec).collect();
        let options = Options { device: self.way.device(), ..Options::default() };
        let lab = Lab::build_with(&specs, &options)?;
        let ferry = FerryThread::find()?;
        if self.way == Way::NoPriority {
            ferry.demote()?;
        }
        self.result.scheduling = ferry.scheduling()?;
        if matches!(self.way, Way::Root | Way::Veth) && !lab.real_time().priority {
            bail!(
                "no real-time priority for the way '{}'; run as root, or measure without it \
                 (--way no-priority or --way rootless)",
                self.way.name()
            );
        }
        let all = cores();
        let loaded = all.len().saturating_sub(1);
        self.result.load = format!(
            "a busy loop pinned to each core but the ferry's ({loaded} of {} cores)",
            all.len()
        );
        let load = Load::start(ferry.core()?)?;
        Ok(Stage { lab, ferry, _load: load })
    }

    /// Runs something until the machine was quiet meanwhile.
    pub(super) fn undisturbed<T>(
        &mut self,
        what: &str,
        planned: Duration,
        mut run: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<(T, Busy)> {
        loop {
            self.progress.step(&format!("{}: {what}", self.way.name()), planned);
            let accounts = Accounts::read()?;
            let result = run(self)?;
            let busy = accounts.since()?;
            let reason = if busy.stolen_percent > MAX_STOLEN_PERCENT {
                format!("{what}: {:.1} % stolen", busy.stolen_percent)
            } else if accounts.clock_was_set()? {
                format!("{what}: the clock was set")
            } else {
                return Ok((result, busy));
            };
            self.result.repeated.push(reason);
            self.progress.extend(planned);
            if self.result.repeated.len() > MAX_REPEATS {
                bail!(
                    "{MAX_REPEATS} runs had over {MAX_STOLEN_PERCENT} % of stolen time or a clock \
                     that was set; measure when the host is quieter"
                );
            }
        }
    }

    /// Notes where transmit timestamps came from; the worse counts.
    pub(super) fn note_stamps(&mut self, traces: &[Trace]) {
        let stamps = traces.iter().map(Trace::stamps);
        let worst = if stamps.into_iter().any(|stamps| stamps == Stamps::Program) {
            Stamps::Program
        } else {
            Stamps::Kernel
        };
        if self.result.transmit_stamps != Stamps::Program.name() {
            self.result.transmit_stamps = worst.name().to_string();
        }
    }

    /// Notes a bound that was missed.
    pub(super) fn demand(&mut self, kept: bool, what: impl FnOnce() -> String) {
        if self.way.is_bounded() && !kept {
            self.result.missed.push(what());
        }
    }

    /// `bound`, where the way has bounds at all.
    pub(super) fn bound(&self, bound: f64) -> Option<f64> {
        self.way.is_bounded().then_some(bound)
    }
}

/// A link with these settings.
pub(super) fn link(settings: &[&str]) -> Result<LinkConfig> {
    let mut config = LinkConfig::default();
    config.apply(settings, |_| Err("no files are read here".to_string()))?;
    Ok(config)
}

/// The ferry's lateness from a to b over all links of a lab.
pub(super) fn lateness(lab: &Lab) -> Result<Lateness> {
    let mut bins = std::collections::BTreeMap::new();
    for link in 0..lab.links() {
        for (edge_us, packets) in lab.stats(link)?.ab.lateness.bins {
            *bins.entry(edge_us).or_insert(0) += packets;
        }
    }
    let count: u64 = bins.values().sum();
    let quantile = |per_mille: u64| {
        let rank = (count * per_mille).div_ceil(1000).max(1);
        let mut counted = 0;
        let edge = bins.iter().find(|(_, packets)| {
            counted += **packets;
            counted >= rank
        });
        edge.map_or(0, |(edge_us, _)| *edge_us)
    };
    Ok(Lateness {
        count,
        p50_us: quantile(500),
        p99_us: quantile(990),
        p999_us: quantile(999),
        max_us: bins.keys().last().copied().unwrap_or(0),
        bins: bins.into_iter().collect(),
    })
}
