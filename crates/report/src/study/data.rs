//! The cells of a study of policies, ready to be looked up.

use std::collections::BTreeMap;

use record::campaign::{Campaign, Cell, Network, Run, Way};
use record::decision::Outcome;

/// The settings that make a campaign a study of policies.
const POLICY: &str = "policy";
const PROCESSOR: &str = "processor";
/// Among which encodings ours chooses.
const ENCODINGS: &str = "encodings";

/// NAM's three ways of sending, by the names of the pair.
pub(super) const NONE: &str = "identity";
pub(super) const ZIP: &str = "deflate:6";
pub(super) const XMILL: &str = "xmill:1";
/// NAM as published, and ours.
pub(super) const NAM: &str = "nam";
pub(super) const OURS: &str = "auto";
/// The server of answers that are made up.
pub(super) const GENERATED: &str = "benchmark";

/// A campaign's cells by what they have in common.
pub(super) struct Study<'a> {
    pub(super) campaign: &'a Campaign,
    /// In the order of the campaign.
    pub(super) places: Vec<StudyCell<'a>>,
}

/// What policies are compared at: a network and a class of answers of a server.
pub(super) struct StudyCell<'a> {
    pub(super) network: &'a Network,
    pub(super) server: &'a str,
    pub(super) class: &'a str,
    /// Whether other servers have answers of the class too, so that it alone does not tell which.
    pub(super) several_servers: bool,
    /// What ours could choose among, where that is not what it is elsewhere.
    pub(super) encodings: Option<&'a str>,
    pub(super) arms: Vec<Arm<'a>>,
}

/// A policy with a processor there.
#[derive(Clone, Copy)]
pub(super) struct Arm<'a> {
    pub(super) policy: &'a str,
    /// How many times slower than the machine; 1 where nothing is encoded.
    pub(super) processor: f64,
    pub(super) cell: &'a Cell,
}

impl<'a> Study<'a> {
    /// None where the campaign names no policy.
    pub(super) fn of(campaign: &'a Campaign) -> Option<Self> {
        let mut places: Vec<StudyCell<'a>> = Vec::new();
        for cell in campaign.cells.iter().filter(|cell| cell.way == Way::Longwire) {
            let Some(arm) = arm(campaign, cell) else { continue };
            let encodings = setting(cell, ENCODINGS);
            let is_it = |place: &StudyCell<'_>| {
                (place.network.name.as_str(), place.server, place.class, place.encodings)
                    == (cell.network.as_str(), &cell.server, &cell.service, encodings)
            };
            if let Some(place) = places.iter_mut().find(|place| is_it(place)) {
                place.arms.push(arm);
                continue;
            }
            let mut networks = campaign.networks.iter();
            let Some(network) = networks.find(|one| one.name == cell.network) else { continue };
            places.push(StudyCell {
                network,
                server: &cell.server,
                class: &cell.service,
                several_servers: false,
                encodings,
                arms: vec![arm],
            });
        }
        places.retain(|place| place.arms.iter().any(|arm| arm.cell.good_runs().next().is_some()));
        tell_servers(&mut places);
        (!places.is_empty()).then_some(Self { campaign, places })
    }

    /// All arms with their places.
    pub(super) fn arms(&self) -> impl Iterator<Item = (&StudyCell<'a>, &Arm<'a>)> {
        self.places.iter().flat_map(|place| place.arms.iter().map(move |arm| (place, arm)))
    }
}

/// Generated answers have a name of their own.
fn tell_servers(places: &mut [StudyCell<'_>]) {
    let all: Vec<_> = places.iter().map(|place| (place.class, place.server)).collect();
    for place in places {
        let is_other = |(class, server): &(&str, &str)| {
            *class == place.class && *server != place.server && *server != GENERATED
        };
        place.several_servers = all.iter().any(is_other);
    }
}

impl<'a> StudyCell<'a> {
    /// The processors that something encodes on, the fastest first.
    pub(super) fn processors(&self) -> Vec<f64> {
        let mut all: Vec<f64> = self.arms.iter().map(|arm| arm.processor).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    }

    /// A policy on a processor; what encodes nothing has none.
    pub(super) fn arm(&self, policy: &str, processor: f64) -> Option<Arm<'a>> {
        let mut of_policy = self.arms.iter().filter(|arm| arm.policy == policy);
        of_policy.find(|arm| policy == NONE || arm.processor == processor).copied()
    }

    /// The encodings that were always used, on a processor.
    pub(super) fn fixed(&self, processor: f64) -> Vec<Arm<'a>> {
        let is_fixed = |arm: &&Arm<'a>| !matches!(arm.policy, NAM | OURS);
        let on_it = |arm: &&Arm<'a>| arm.policy == NONE || arm.processor == processor;
        self.arms.iter().filter(is_fixed).filter(on_it).copied().collect()
    }
}

impl<'a> Arm<'a> {
    /// Times of the messages that count, by message, of the runs that are wanted.
    pub(super) fn times(&self, wanted: impl Fn(&Run) -> bool) -> BTreeMap<&'a str, Vec<f64>> {
        let mut all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for run in self.cell.good_runs().filter(|run| wanted(run)) {
            let measured = run.measured.iter().map(|measured| &measured.exchange);
            for exchange in measured.filter(|one| one.error.is_none() && one.elapsed_s > 0.0) {
                all.entry(&exchange.name).or_default().push(exchange.elapsed_s);
            }
        }
        all
    }

    /// Mean time of each message over all runs that can be used.
    pub(super) fn means(&self) -> BTreeMap<&'a str, f64> {
        means(self.times(|_| true))
    }

    /// What came of the decisions about messages that count.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = &'a Outcome> + use<'a> {
        let runs = self.cell.good_runs();
        let decisions = runs.flat_map(|run| run.decisions.iter().skip(run.warm_up.len()));
        decisions.filter_map(|entry| entry.outcome.as_ref())
    }
}

/// The mean of each.
pub(super) fn means(times: BTreeMap<&str, Vec<f64>>) -> BTreeMap<&str, f64> {
    times.into_iter().filter_map(|(name, times)| Some((name, mean(&times)?))).collect()
}

/// None of nothing.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The value in the middle, the upper of two; none of nothing.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// A setting that differs from the server's default.
fn setting<'a>(cell: &'a Cell, name: &str) -> Option<&'a str> {
    let mut settings = cell.settings.iter();
    settings.find(|(of, _)| of == name).map(|(_, value)| value.as_str())
}

fn arm<'a>(campaign: &'a Campaign, cell: &'a Cell) -> Option<Arm<'a>> {
    let of_server = |name: &str| {
        let mut defaults = campaign.setting.defaults.iter();
        let of = defaults.find(|(server, of, _)| *server == cell.server && of == name);
        of.map(|(_, _, value)| value.as_str())
    };
    let value = |name: &str| setting(cell, name).or_else(|| of_server(name));
    let policy = value(POLICY)?;
    let processor = value(PROCESSOR).and_then(|factor| factor.parse().ok()).unwrap_or(1.0);
    Some(Arm { policy, processor, cell })
}
