//! Results of a campaign in a few figures a run, for tables and pictures of thousands of runs.

use crate::campaign::{Advice, Cell, Network, Reference, Setting};

/// A campaign without its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    /// Where and how it ran.
    pub setting: Setting,
    /// The links.
    pub networks: Vec<Network>,
    /// What others have published for some of the cells.
    pub references: Vec<Reference>,
    /// What others recommend, by network.
    pub advice: Vec<Advice>,
    /// How many cells there are.
    pub cells: u64,
    /// How many runs are planned.
    pub planned: u64,
    /// How many are done, those that failed or are flagged counted.
    pub done: u64,
    /// Spoilt by the machine.
    pub flagged: u64,
    /// Without a result.
    pub failed: u64,
}

/// A cell with its runs in figures.
#[derive(Clone, Debug, PartialEq)]
pub struct CellFigures {
    /// The cell without its runs.
    pub cell: Cell,
    /// In order of repetition.
    pub runs: Vec<RunFigures>,
}

/// What is told of a run in a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFigures {
    /// From 1.
    pub repetition: u32,
    /// As [`Run::mean_s`](crate::campaign::Run::mean_s) has it.
    pub mean_s: Option<f64>,
    /// Measured exchanges.
    pub exchanges: u64,
    /// Those that failed.
    pub errors: u64,
    /// Those that a limit of time cut off.
    pub censored: u64,
    /// IP bytes of the measured exchanges in both directions.
    pub wire_bytes: u64,
    /// Segments that went again.
    pub retransmitted: u64,
    /// Lateness of the packets.
    pub lateness_p99_us: u64,
    /// Why the figures are not to be trusted.
    pub flagged: Option<String>,
    /// Why there is no result.
    pub failure: Option<String>,
}

impl CellFigures {
    /// Mean times of the runs whose figures can be used, sorted.
    #[must_use]
    pub fn times_s(&self) -> Vec<f64> {
        let mut times: Vec<f64> = self.good().filter_map(|run| run.mean_s).collect();
        times.sort_by(f64::total_cmp);
        times
    }

    /// Runs whose figures can be used.
    pub fn good(&self) -> impl Iterator<Item = &RunFigures> {
        self.runs.iter().filter(|run| run.failure.is_none() && run.flagged.is_none())
    }
}
