//! What emulates the link of a session: the ferry, or the kernel.

use link::{ChannelConfig, LinkConfig};
use serde_json::{Map, Value, json};

use super::kernel::KernelLink;
use crate::error::Result;
use crate::lab::{DirectionReport, Lab, LinkSpec, Options};
use crate::namespace::{Host, Side};

/// What emulates a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emulator {
    /// Our own, which every figure of ours comes from.
    #[default]
    Ferry,
    /// The kernel's, where it has it, for comparison: no record of packets or lateness.
    Netem,
}

impl Emulator {
    /// The name on the command line and in listings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ferry => "ferry",
            Self::Netem => "netem",
        }
    }

    /// The emulator that a person calls `name`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Ferry, Self::Netem].into_iter().find(|emulator| emulator.name() == name)
    }
}

/// A link in use.
pub(super) enum Emulated {
    Ferry(Lab),
    Kernel(Box<KernelLink>),
}

impl Emulated {
    pub(super) fn build(emulator: Emulator, spec: LinkSpec, options: Options) -> Result<Self> {
        match emulator {
            Emulator::Ferry => Lab::build_with(&[spec], &options).map(Self::Ferry),
            Emulator::Netem => {
                let LinkSpec { name, config, seed, .. } = spec;
                KernelLink::build(&name, options.named, config, seed, options.id)
                    .map(|link| Self::Kernel(Box::new(link)))
            }
        }
    }

    pub(super) fn host(&self, side: Side) -> &Host {
        match self {
            Self::Ferry(lab) => lab.host(0, side),
            Self::Kernel(link) => link.host(side),
        }
    }

    pub(super) fn id(&self) -> &str {
        match self {
            Self::Ferry(lab) => lab.id(),
            Self::Kernel(link) => link.id(),
        }
    }

    pub(super) fn config(&self) -> LinkConfig {
        match self {
            Self::Ferry(lab) => lab.config(0),
            Self::Kernel(link) => link.config(),
        }
    }

    pub(super) fn configure(&self, config: LinkConfig) -> Result<()> {
        match self {
            Self::Ferry(lab) => lab.configure(0, config),
            Self::Kernel(link) => link.configure(config),
        }
    }

    /// Removes everything; returns how many processes were still running.
    pub(super) fn close(self) -> usize {
        match self {
            Self::Ferry(lab) => lab.close(),
            Self::Kernel(link) => link.end_processes(),
        }
    }

    /// What only the emulator knows of its link, for listings.
    pub(super) fn describe(&self) -> Result<Value> {
        match self {
            Self::Ferry(lab) => {
                let (report, real_time) = (lab.stats(0)?, lab.real_time());
                Ok(json!({
                    "emulator": Emulator::Ferry.name(),
                    "seed": report.seed,
                    "device": lab.device().name(),
                    "real_time": real_time.priority,
                    "memory_locked": real_time.memory_locked,
                    "ab": reported(&report.ab),
                    "ba": reported(&report.ba),
                }))
            }
            Self::Kernel(link) => {
                let config = link.config();
                Ok(json!({
                    "emulator": Emulator::Netem.name(),
                    "seed": link.seed(),
                    "device": "veth",
                    "ab": settings(&config.ab),
                    "ba": settings(&config.ba),
                }))
            }
        }
    }
}

fn settings(config: &ChannelConfig) -> Map<String, Value> {
    config.settings().into_iter().map(|(key, value)| (key.to_string(), value.into())).collect()
}

fn reported(report: &DirectionReport) -> Map<String, Value> {
    let mut all = settings(&report.config);
    all.extend([
        ("traffic".to_string(), json!(report.traffic)),
        ("lateness".to_string(), json!(report.lateness)),
        ("duplicated_packets".to_string(), report.duplicated.into()),
        ("corrupted_packets".to_string(), report.corrupted.into()),
        ("reordered_packets".to_string(), report.reordered.into()),
        ("queued_bytes".to_string(), report.queued_bytes.into()),
        ("ignored_frames".to_string(), report.ignored.into()),
        ("own_group_reports".to_string(), report.own_reports.into()),
    ]);
    all
}
