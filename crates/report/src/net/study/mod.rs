//! From the runs of a scenario to the tables of IST-150, the paper's beside ours.
//!
//! The unit that intervals are over is the run, as the messages of one run share its luck: a figure
//! is the mean over runs, its interval one of 95 % by resampling them. A message that went to
//! several receivers counts once for each.

mod facts;
mod paper;
mod sections;
#[cfg(test)]
mod tests;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use record::net::{NetMessage, NetRun};

use crate::analysis::{mean_interval, median};
pub use facts::study_json;
pub use paper::{PAPER, PaperCase, PaperTimes};
pub use sections::study_page;
pub use text::study_text;

/// Transports that publish.
const PUBLISHED: [&str; 4] = ["mqtt", "mqtt-sn", "mqtt-udp", "wsn"];

/// A mean over runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The mean.
    pub mean: f64,
    /// Its interval of 95 %; none with fewer than six runs.
    pub interval: Option<(f64, f64)>,
}

/// What became of some of the messages of a case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Messages of each run, on average.
    pub sent: f64,
    /// Share that was not delivered, 0 to 1.
    pub lost: Option<Figure>,
    /// The least time from sender to receiver of a run, in seconds.
    pub min_s: Option<Figure>,
    /// The median of a run.
    pub median_s: Option<Figure>,
    /// The 95th percentile of a run, of those that were delivered.
    pub p95_s: Option<Figure>,
    /// The greatest of a run.
    pub max_s: Option<Figure>,
    /// Messages that a receiver had more than once, in all runs: each is an error.
    pub repeated: u64,
    /// Why messages were lost, in all runs.
    pub reasons: BTreeMap<String, u64>,
}

/// Messages from one group to another over the same channels.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// The senders' group; empty for nodes in none.
    pub from: String,
    /// The receivers' group.
    pub to: String,
    /// The channels that their routes crossed, by name; `no route` where there was none.
    pub media: String,
    /// What became of them.
    pub outcome: Outcome,
}

/// What was in the air over one channel for one protocol, a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Airtime {
    /// The channel.
    pub medium: String,
    /// The protocol.
    pub protocol: String,
    /// Transmissions.
    pub transmissions: f64,
    /// Bytes.
    pub bytes: f64,
    /// Seconds.
    pub airtime_s: Figure,
}

/// One case over all its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseResult {
    /// Its name.
    pub name: String,
    /// Seeds of its runs.
    pub seeds: Vec<u64>,
    /// Table II: all messages.
    pub all: Outcome,
    /// Table III: those between groups.
    pub crossing: Outcome,
    /// By pair of groups and channels.
    pub stretches: Vec<Stretch>,
    /// Bits in the air in each second of a run, over all channels: what was sent again and the
    /// channels' own headers counted. None where nothing was, or the run took no time.
    pub load_bps: Option<Figure>,
    /// By channel and protocol.
    pub airtime: Vec<Airtime>,
    /// By channel and node, in seconds of airtime, the greatest first.
    pub nodes: Vec<(String, String, f64)>,
    /// What the paper found for the case.
    pub paper: Option<&'static PaperCase>,
}

/// Bytes of one short message with all mandatory fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeRow {
    /// The case, as `HTTP/JSON`.
    pub case: String,
    /// Of the HTTP or CoAP message.
    pub message_bytes: usize,
    /// With the headers of IP and UDP or TCP, of the packet that carries it.
    pub ip_bytes: usize,
}

/// A study: one scenario in several cases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Study {
    /// What the scenario calls itself.
    pub scenario: String,
    /// Its fingerprint.
    pub fingerprint: String,
    /// Cases: those of the paper in its order, then ours by name.
    pub cases: Vec<CaseResult>,
    /// Table I, where it was measured.
    pub sizes: Vec<SizeRow>,
    /// Runs that were of another scenario, or another version of it: they are left out.
    pub others: usize,
    /// What is odd about the runs.
    pub remarks: Vec<String>,
}

impl Study {
    /// The study of some runs. Of several scenarios the one with most runs is taken.
    #[must_use]
    pub fn of(runs: &[NetRun], sizes: Vec<SizeRow>) -> Self {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        runs.iter().for_each(|run| *counts.entry(&run.fingerprint).or_default() += 1);
        let most = counts.iter().max_by_key(|(_, count)| **count);
        let fingerprint = most.map_or("", |(fingerprint, _)| *fingerprint);
        let ours: Vec<&NetRun> = runs.iter().filter(|run| run.fingerprint == fingerprint).collect();
        let mut cases: BTreeMap<(usize, &str), Vec<&NetRun>> = BTreeMap::new();
        for run in &ours {
            let place = PAPER.iter().position(|case| case.name == run.case).unwrap_or(PAPER.len());
            cases.entry((place, &run.case)).or_default().push(run);
        }
        // Where everything is published, messages that are sent are of no interest.
        let is_published = |run: &&NetRun| PUBLISHED.contains(&run.transport.as_str());
        let sizes = if ours.iter().all(is_published) { Vec::new() } else { sizes };
        let cases: Vec<CaseResult> =
            cases.into_iter().map(|((_, name), runs)| case(name, &runs)).collect();
        let remarks = remarks(&ours, &cases);
        Self {
            scenario: ours.first().map_or(String::new(), |run| run.scenario.clone()),
            fingerprint: fingerprint.to_owned(),
            others: runs.len() - ours.len(),
            cases,
            sizes,
            remarks,
        }
    }
}

fn case(name: &str, runs: &[&NetRun]) -> CaseResult {
    let all: Vec<Vec<&NetMessage>> = runs.iter().map(|run| run.messages.iter().collect()).collect();
    let crossing: Vec<Vec<&NetMessage>> = runs
        .iter()
        .map(|run| run.messages.iter().filter(|one| crosses(run, one)).collect())
        .collect();
    CaseResult {
        name: name.to_owned(),
        seeds: runs.iter().map(|run| run.seed).collect(),
        all: outcome(&format!("{name} all"), &all),
        crossing: outcome(&format!("{name} crossing"), &crossing),
        stretches: stretches(name, runs),
        load_bps: load(name, runs),
        airtime: airtime(name, runs),
        nodes: nodes(runs),
        paper: PAPER.iter().find(|case| case.name == name),
    }
}

fn group<'a>(run: &'a NetRun, node: &str) -> &'a str {
    run.nodes.iter().find(|one| one.name == node).map_or("", |one| one.group.as_str())
}

/// Whether a message goes from one group to another.
fn crosses(run: &NetRun, message: &NetMessage) -> bool {
    group(run, &message.from) != group(run, &message.to)
}

fn figure(name: &str, values: &[f64]) -> Option<Figure> {
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    // Of what was the same in all runs chance says nothing that a mean of them shows.
    let is_varied = values.iter().any(|value| Some(value) != values.first());
    let interval = if is_varied { mean_interval(name, values) } else { None };
    Some(Figure { mean, interval })
}

/// Of the messages of each run.
fn outcome(name: &str, runs: &[Vec<&NetMessage>]) -> Outcome {
    let sent: usize = runs.iter().map(Vec::len).sum();
    let (mut lost, mut min, mut middle, mut max) = (vec![], vec![], vec![], vec![]);
    let mut high = vec![];
    let mut outcome =
        Outcome { sent: sent as f64 / runs.len().max(1) as f64, ..Default::default() };
    for messages in runs.iter().filter(|messages| !messages.is_empty()) {
        let time = |one: &&NetMessage| one.delivered_s.map(|at_s| at_s - one.sent_s);
        let mut times: Vec<f64> = messages.iter().filter_map(time).collect();
        lost.push(1.0 - times.len() as f64 / messages.len() as f64);
        middle.extend(median(&mut times));
        // The median sorts.
        min.extend(times.first());
        high.extend(percentile_95(&times));
        max.extend(times.last());
        for message in messages {
            outcome.repeated += u64::from(message.copies > 1);
            if message.delivered_s.is_none() {
                let reason = message.lost.as_deref().unwrap_or("unknown");
                *outcome.reasons.entry(reason.to_owned()).or_default() += 1;
            }
        }
    }
    outcome.lost = figure(&format!("{name} lost"), &lost);
    outcome.min_s = figure(&format!("{name} min"), &min);
    outcome.median_s = figure(&format!("{name} median"), &middle);
    outcome.p95_s = figure(&format!("{name} p95"), &high);
    outcome.max_s = figure(&format!("{name} max"), &max);
    outcome
}

/// The 95th percentile of sorted times by nearest rank: of twenty, the nineteenth.
fn percentile_95(sorted: &[f64]) -> Option<f64> {
    let rank = (sorted.len() * 95).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied()
}

/// Bits in the air a second.
fn load(name: &str, runs: &[&NetRun]) -> Option<Figure> {
    let loads = runs.iter().filter(|run| run.elapsed_s > 0.0 && !run.airtime.is_empty());
    let bytes = |run: &NetRun| run.airtime.iter().map(|sum| sum.bytes).sum::<u64>();
    let loads: Vec<f64> = loads.map(|run| 8.0 * bytes(run) as f64 / run.elapsed_s).collect();
    figure(&format!("{name} load"), &loads)
}

fn stretches(name: &str, runs: &[&NetRun]) -> Vec<Stretch> {
    type Key = (String, String, String);
    let mut found: BTreeMap<Key, Vec<Vec<&NetMessage>>> = BTreeMap::new();
    for (index, run) in runs.iter().enumerate() {
        for message in &run.messages {
            let media: Vec<&str> = message
                .crossed
                .iter()
                .filter_map(|medium| run.media.get(*medium).map(String::as_str))
                .collect();
            let media = if media.is_empty() { "no route".to_owned() } else { media.join(" + ") };
            let key =
                (group(run, &message.from).to_owned(), group(run, &message.to).to_owned(), media);
            let by_run = found.entry(key).or_insert_with(|| vec![Vec::new(); runs.len()]);
            if let Some(messages) = by_run.get_mut(index) {
                messages.push(message);
            }
        }
    }
    let stretch = |((from, to, media), messages): (Key, Vec<Vec<&NetMessage>>)| {
        let outcome = outcome(&format!("{name} {from} {to} {media}"), &messages);
        Stretch { from, to, media, outcome }
    };
    found.into_iter().map(stretch).collect()
}

fn airtime(name: &str, runs: &[&NetRun]) -> Vec<Airtime> {
    /// Of one run: transmissions, bytes, seconds.
    type Sums = (u64, u64, f64);
    let mut found: BTreeMap<(usize, String, String), Vec<Sums>> = BTreeMap::new();
    for (index, run) in runs.iter().enumerate() {
        for sum in &run.airtime {
            let Some(medium) = run.media.get(sum.medium) else { continue };
            let key = (sum.medium, medium.clone(), sum.protocol.clone());
            let by_run = found.entry(key).or_insert_with(|| vec![(0, 0, 0.0); runs.len()]);
            if let Some((transmissions, bytes, airtime_s)) = by_run.get_mut(index) {
                *transmissions += sum.transmissions;
                *bytes += sum.bytes;
                *airtime_s += sum.airtime_s;
            }
        }
    }
    let count = runs.len().max(1) as f64;
    let airtime = |((_, medium, protocol), sums): ((usize, String, String), Vec<Sums>)| {
        let seconds: Vec<f64> = sums.iter().map(|(.., airtime_s)| *airtime_s).collect();
        let airtime_s = figure(&format!("{name} {medium} {protocol}"), &seconds)?;
        let transmissions = sums.iter().map(|sum| sum.0).sum::<u64>() as f64 / count;
        let bytes = sums.iter().map(|sum| sum.1).sum::<u64>() as f64 / count;
        Some(Airtime { medium, protocol, transmissions, bytes, airtime_s })
    };
    found.into_iter().filter_map(airtime).collect()
}

/// Airtime of each node on each channel, a run.
fn nodes(runs: &[&NetRun]) -> Vec<(String, String, f64)> {
    let mut sums: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for run in runs {
        for sum in &run.airtime {
            let (medium, node) = (run.media.get(sum.medium), run.nodes.get(sum.node));
            if let (Some(medium), Some(node)) = (medium, node) {
                *sums.entry((medium, &node.name)).or_default() += sum.airtime_s;
            }
        }
    }
    let count = runs.len().max(1) as f64;
    let mut nodes: Vec<_> = sums
        .into_iter()
        .map(|((medium, node), sum_s)| (medium.to_owned(), node.to_owned(), sum_s / count))
        .collect();
    nodes.sort_by(|one, other| other.2.total_cmp(&one.2));
    nodes
}

/// The ferry is late when a packet in a hundred was so much later than it was due.
const MAX_LATENESS_US: u64 = 5_000;

fn remarks(runs: &[&NetRun], cases: &[CaseResult]) -> Vec<String> {
    let mut remarks = Vec::new();
    let p99 = |run: &&&NetRun| run.lateness.as_ref().map_or(0, |lateness| lateness.p99_us);
    let late = runs.iter().filter(|run| p99(run) > MAX_LATENESS_US).count();
    if late > 0 {
        remarks.push(format!(
            "In {} a packet in a hundred was over {} ms late: the machine was too busy.",
            crate::format::count(late, "run"),
            MAX_LATENESS_US / 1_000
        ));
    }
    let cut: u64 = runs.iter().map(|run| run.unrecorded).sum();
    if cut > 0 {
        remarks.push(format!("{cut} transmissions were summed and not recorded one by one."));
    }
    let mut broken: BTreeMap<(&str, &str), Vec<u64>> = BTreeMap::new();
    for run in runs {
        for check in run.checks.iter().filter(|check| !check.holds) {
            broken.entry((&run.case, &check.name)).or_default().push(run.seed);
        }
    }
    for ((case, check), seeds) in broken {
        let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
        let seeds = seeds.join(", ");
        remarks.push(format!("{case}: not so with the seeds {seeds}: {check}."));
    }
    let versions: BTreeSet<_> =
        runs.iter().map(|run| (&run.version, &run.machine.revision)).collect();
    if versions.len() > 1 {
        remarks.push(format!("The runs are of {} versions of the program.", versions.len()));
    }
    for case in cases.iter().filter(|case| case.all.repeated > 0) {
        let times = case.all.repeated;
        remarks.push(format!("{}: {times} messages were delivered more than once.", case.name));
    }
    let counts: Vec<usize> = cases.iter().map(|case| case.seeds.len()).collect();
    if counts.iter().any(|count| Some(count) != counts.first()) {
        remarks.push("The cases have different numbers of runs.".to_owned());
    }
    if counts.iter().any(|count| *count < crate::analysis::MIN_INTERVAL_VALUES) {
        let least = crate::analysis::MIN_INTERVAL_VALUES;
        remarks.push(format!("Intervals are given from {least} runs of a case on."));
    }
    remarks
}
