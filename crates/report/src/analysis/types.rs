//! What an analysis consists of.

use record::campaign::Way;

/// Everything that is derived from a campaign.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Analysis {
    /// In the order of the campaign's cells.
    pub cells: Vec<CellSummary>,
    /// Every cell with settings that has a default, in the order of the cells.
    pub comparisons: Vec<Comparison>,
    /// Every cell through longwire that has a direct one beside it, in the order of the cells.
    pub gains: Vec<Gain>,
    /// By network in the campaign's order, then by server; only where settings were varied.
    pub recommendations: Vec<NetworkAdvice>,
    /// Of the whole campaign.
    pub counts: Counts,
}

/// One cell in numbers. Times are means of runs in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellSummary {
    /// Good runs that have a mean: neither flagged nor failed.
    pub runs: usize,
    /// Runs that the machine spoilt: not used.
    pub flagged: usize,
    /// Runs without a result, and runs in which no exchange succeeded.
    pub failed: usize,
    /// The mean time of each good run, in order of repetition.
    pub runs_s: Vec<f64>,
    /// Those of `runs_s` that are lower bounds, as at least one exchange was cut off.
    pub bound_runs: usize,
    /// Median of `runs_s`.
    pub median_s: Option<f64>,
    /// Of the median, 95 %, by resampling runs; none below six runs. With `bound_runs` its upper
    /// end is a lower bound too.
    pub interval_s: Option<(f64, f64)>,
    /// The median is a lower bound: it would move if the cut off runs had taken longer.
    pub is_bound: bool,
    /// Measured exchanges of the good runs; medians below are of the ones that succeeded.
    pub exchanges: usize,
    /// Failed ones.
    pub errors: usize,
    /// Cut off ones.
    pub censored: usize,
    /// IP bytes of an exchange from client to service, median.
    pub up_bytes: Option<f64>,
    /// IP bytes of an exchange from service to client, median.
    pub down_bytes: Option<f64>,
    /// Packets of an exchange in both directions, median.
    pub packets: Option<f64>,
    /// Share of all packets that carried data for a second time, 0 to 1.
    pub retransmitted: Option<f64>,
    /// Bursts of content towards the client in an exchange, median: round trips.
    pub flights: Option<f64>,
    /// TCP connections opened for an exchange, mean.
    pub connections: Option<f64>,
    /// Content of an answer, median, in bytes.
    pub body_bytes: Option<f64>,
}

/// A setting against the default of the same network, server, service and way, paired by seed. For
/// the way `gzip` the default of `direct` serves where it has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Index of the cell with the setting.
    pub cell: usize,
    /// Index of the cell without.
    pub default: usize,
    /// Pairs of good runs with the same repetition and seed.
    pub pairs: usize,
    /// Pairs in which a run was cut off: these count only in the direction that they prove.
    pub bounds: usize,
    /// Pairs that only one side finished: runs that failed (default, setting).
    pub lost: (usize, usize),
    /// Runs without a partner, since that is missing or the machine spoilt it (default, setting).
    pub unpaired: (usize, usize),
    /// Geometric mean of the paired ratios of times: below 1 the setting is faster.
    pub ratio: Option<f64>,
    /// Of the ratio, 95 %, by resampling pairs; none below six pairs.
    pub interval: Option<(f64, f64)>,
    /// Matched-pairs rank-biserial correlation: -1 the setting is faster in every pair, 1 slower.
    pub effect: Option<f64>,
    /// Two-sided, by flipping signs of the logarithms of the ratios.
    pub p: Option<f64>,
    /// The same after Holm, over all comparisons of one network and server.
    pub p_adjusted: Option<f64>,
    /// Exchanges that failed or were cut off (default, setting).
    pub errors: (usize, usize),
    /// Exchanges (default, setting).
    pub exchanges: (usize, usize),
}

/// A cell through longwire against the direct one of the same network, server, service and settings
/// of the server, paired by seed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gain {
    /// Index of the direct cell.
    pub direct: usize,
    /// Index of the cell through longwire.
    pub cell: usize,
    /// Pairs of good runs with the same repetition and seed.
    pub pairs: usize,
    /// Pairs in which a run was cut off: these count only in the direction that they prove.
    pub bounds: usize,
    /// Geometric mean of the paired ratios of direct time by time through longwire: above 1
    /// longwire is faster.
    pub times_as_fast: Option<f64>,
    /// Of that, 95 %, by resampling pairs; none below six pairs.
    pub interval: Option<(f64, f64)>,
}

/// What a network's measurements say about a server's settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkAdvice {
    /// Name of the network.
    pub network: String,
    /// Name of the server.
    pub server: String,
    /// What others recommend for this network, in their words.
    pub paper: Option<String>,
    /// In the order of the campaign's cells.
    pub verdicts: Vec<Verdict>,
    /// In the form of a table of recommendations: what to use and what to avoid.
    pub text: String,
}

/// What is advised on a setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ruling {
    /// It gains, surely, and fails no more often.
    Use,
    /// It costs, surely, or fails more often.
    Avoid,
    /// Whatever it does is too little to matter.
    Indifferent,
    /// A combination that gains, but not surely more than its best part alone.
    NoBetter,
    /// The data do not tell.
    #[default]
    Undecided,
}

/// The ruling on one setting value, or on one combination, over all services of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The way on which it was measured.
    pub way: Way,
    /// What differs from the default.
    pub setting: Vec<(String, String)>,
    /// The services whose pairs were pooled, each on its own.
    pub services: Vec<ServiceRatio>,
    /// What is advised.
    pub verdict: Ruling,
    /// Geometric mean of the ratios, each service with the same weight: below 1 it is faster.
    pub ratio: Option<f64>,
    /// Of the ratio, 95 %, by resampling pairs within services.
    pub interval: Option<(f64, f64)>,
    /// Two-sided, by flipping signs.
    pub p: Option<f64>,
    /// The same after Holm, over all settings of the network and server.
    pub p_adjusted: Option<f64>,
    /// Pairs with a ratio.
    pub pairs: usize,
    /// Pairs in which a run was cut off.
    pub bounds: usize,
    /// Pairs that only one side finished: runs that failed (default, setting).
    pub lost: (usize, usize),
    /// Runs without a partner, since that is missing or the machine spoilt it (default, setting).
    pub unpaired: (usize, usize),
    /// Exchanges that failed or were cut off, those of failed runs among them (default, setting).
    pub errors: (usize, usize),
    /// Exchanges (default, setting).
    pub exchanges: (usize, usize),
    /// That the setting fails no more often (Fisher, one-sided), after Holm.
    pub errors_p_adjusted: Option<f64>,
    /// The same by flipping signs of whole runs, not adjusted: exchanges of a run fail together.
    pub errors_runs_p: Option<f64>,
    /// For a combination: how it does against its best part.
    pub part: Option<PartTest>,
    /// One sentence.
    pub why: String,
}

/// What a setting does to one service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceRatio {
    /// Name of the service.
    pub service: String,
    /// Geometric mean of the ratios: below 1 it is faster.
    pub ratio: Option<f64>,
    /// Of the ratio, 95 %, by resampling pairs.
    pub interval: Option<(f64, f64)>,
    /// Least and greatest ratio of a pair, from three pairs on.
    pub range: Option<(f64, f64)>,
}

/// A combination against the fastest of its parts that were measured on their own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartTest {
    /// The part.
    pub setting: Vec<(String, String)>,
    /// Pairs of the two.
    pub pairs: usize,
    /// Geometric mean of the ratios: below 1 the combination is faster.
    pub ratio: f64,
    /// Two-sided, after Holm over all combinations of the network and server.
    pub p_adjusted: f64,
}

/// How much a campaign measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Cells.
    pub cells: usize,
    /// Cells without one good run.
    pub cells_without_runs: usize,
    /// Cells with settings for which no cell with the default was measured.
    pub cells_without_default: usize,
    /// Runs.
    pub runs: usize,
    /// Runs that count.
    pub good: usize,
    /// Runs that the machine spoilt at every attempt.
    pub flagged: usize,
    /// Runs without a result, and runs in which no exchange succeeded.
    pub failed: usize,
    /// Runs that needed more than one attempt.
    pub repeated: usize,
    /// Runs with an exchange that was cut off.
    pub bound_runs: usize,
    /// Measured exchanges of all runs, those that failed or were flagged too.
    pub exchanges: usize,
    /// Failed ones.
    pub errors: usize,
    /// Cut off ones.
    pub censored: usize,
    /// Comparisons of a cell with its default.
    pub comparisons: usize,
    /// Those whose adjusted p is below 0.05.
    pub significant: usize,
}

/// How well a second campaign repeats the first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repeatability {
    /// Cells of both campaigns with six runs or more in each, in the order of the first.
    pub cells: Vec<CellRepeat>,
    /// Names of cells of both campaigns that have fewer runs: not counted.
    pub too_few: Vec<String>,
    /// Names of cells that only one of the campaigns has.
    pub only_one: Vec<String>,
    /// Share of `cells` whose interval contains 0, 0 to 1.
    pub share: Option<f64>,
}

impl Repeatability {
    /// As an object of facts, for programs.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let cell = |cell: &CellRepeat| {
            serde_json::json!({
                "cell": cell.name,
                "runs": [cell.runs.0, cell.runs.1],
                "median_s": [cell.median_s.0, cell.median_s.1],
                "difference_interval_s": [cell.interval_s.0, cell.interval_s.1],
                "contains_0": cell.holds,
            })
        };
        serde_json::json!({
            "cells": self.cells.iter().map(cell).collect::<Vec<_>>(),
            "share": self.share,
            "too_few_runs": self.too_few,
            "in_one_only": self.only_one,
        })
    }
}

/// One cell in two campaigns, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellRepeat {
    /// Name of the cell.
    pub name: String,
    /// Good runs in the first and in the second.
    pub runs: (usize, usize),
    /// Median of the runs in the first and in the second.
    pub median_s: (f64, f64),
    /// Of the second median less the first, 95 %, by resampling the runs of each.
    pub interval_s: (f64, f64),
    /// The interval contains 0.
    pub holds: bool,
}

impl Ruling {
    /// The word in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Use => "use",
            Self::Avoid => "avoid",
            Self::Indifferent => "indifferent",
            Self::NoBetter => "no better than its part",
            Self::Undecided => "undecided",
        }
    }
}
