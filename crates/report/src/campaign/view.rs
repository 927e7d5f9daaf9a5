//! A campaign and its analysis, ready to be looked up.

use std::collections::BTreeMap;

use record::campaign::{Campaign, Cell, Network, Reference, Way};

use crate::analysis::{Analysis, CellSummary, Comparison, Gain};
use crate::bound::{LinkFigures, link_bound_s};
use crate::format;

/// The server whose settings a study is about, unless a cell says otherwise.
pub(super) const OWN_SERVER: &str = "tracks";

/// Server, way and settings: what cells of different services have in common.
pub(super) type Kind<'a> = (&'a str, Way, &'a [(String, String)]);

/// A campaign with what was made of it.
pub(super) struct View<'a> {
    pub(super) campaign: &'a Campaign,
    pub(super) analysis: &'a Analysis,
    names: BTreeMap<&'a str, usize>,
    kinds: BTreeMap<(&'a str, &'a str, Kind<'a>), usize>,
    comparisons: BTreeMap<usize, &'a Comparison>,
    empty: CellSummary,
}

impl<'a> View<'a> {
    pub(super) fn new(campaign: &'a Campaign, analysis: &'a Analysis) -> Self {
        let cells = || campaign.cells.iter().enumerate();
        let kind = |cell: &'a Cell| (cell.network.as_str(), cell.service.as_str(), kind(cell));
        Self {
            campaign,
            analysis,
            names: cells().map(|(index, cell)| (cell.name.as_str(), index)).collect(),
            kinds: cells().map(|(index, cell)| (kind(cell), index)).collect(),
            comparisons: analysis.comparisons.iter().map(|one| (one.cell, one)).collect(),
            empty: CellSummary::default(),
        }
    }

    pub(super) fn cell(&self, index: usize) -> &'a Cell {
        &self.campaign.cells[index]
    }

    pub(super) fn summary(&self, index: usize) -> &CellSummary {
        self.analysis.cells.get(index).unwrap_or(&self.empty)
    }

    /// The cell against its default, when it has one.
    pub(super) fn comparison(&self, index: usize) -> Option<&'a Comparison> {
        self.comparisons.get(&index).copied()
    }

    /// The cell's ratio to its default when its 95 % interval leaves out 1.
    pub(super) fn clear_ratio(&self, index: usize) -> Option<f64> {
        let comparison = self.comparison(index)?;
        let (low, high) = comparison.interval?;
        comparison.ratio.filter(|_| low > 1.0 || high < 1.0)
    }

    pub(super) fn named(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    pub(super) fn find(&self, network: &str, service: &str, kind: Kind<'_>) -> Option<usize> {
        self.kinds.get(&(network, service, kind)).copied()
    }

    pub(super) fn network(&self, name: &str) -> Option<&'a Network> {
        self.campaign.networks.iter().find(|network| network.name == name)
    }

    /// The cells of a network, in the order of the campaign.
    pub(super) fn of_network(&self, name: &str) -> impl Iterator<Item = usize> {
        let cells = self.campaign.cells.iter().enumerate();
        cells.filter(move |(_, cell)| cell.network == name).map(|(index, _)| index)
    }

    /// What others have published for a cell.
    pub(super) fn reference(&self, index: usize) -> Option<&'a Reference> {
        let name = &self.cell(index).name;
        self.campaign.references.iter().find(|reference| reference.cell == *name)
    }

    /// IP bytes of an exchange on the link, both ways, median.
    pub(super) fn wire_bytes(&self, index: usize) -> Option<f64> {
        let summary = self.summary(index);
        Some(summary.up_bytes? + summary.down_bytes?)
    }

    /// What the cell's exchanges take at the least, on average: the link carries a request in one
    /// packet and the answer as it is. Of a run in which nothing failed, or none. Where the client
    /// does not say how long an answer is, it is as long as it came direct.
    pub(super) fn bound_s(&self, index: usize) -> Option<f64> {
        let cell = self.cell(index);
        let link = figures(self.network(&cell.network)?);
        let bodies = bodies(cell).or_else(|| {
            let same = |gain: &&Gain| gain.cell == index;
            bodies(self.cell(self.analysis.gains.iter().find(same)?.direct))
        })?;
        let bodies = bodies.into_iter();
        let bounds: Vec<f64> = bodies.map(|bytes| link_bound_s(link, bytes, 0)).collect();
        (!bounds.is_empty()).then(|| bounds.iter().sum::<f64>() / bounds.len() as f64)
    }
}

/// Lengths of the answers of a run in which nothing failed; none without such a run, or where
/// nobody knows one.
fn bodies(cell: &Cell) -> Option<Vec<u64>> {
    let run = cell.good_runs().find(|run| run.errors() + run.censored() == 0)?;
    let bodies = run.measured.iter().map(|measured| measured.exchange.body_bytes);
    let bodies: Vec<u64> = bodies.collect();
    bodies.iter().any(|bytes| *bytes > 0).then_some(bodies)
}

/// Server, way and settings of a cell.
pub(super) fn kind(cell: &Cell) -> Kind<'_> {
    (&cell.server, cell.way, &cell.settings)
}

/// The services of some cells, in the order of the campaign's cells.
pub(super) fn services<'a>(view: &View<'a>, cells: &[usize]) -> Vec<&'a str> {
    let mut all = Vec::new();
    for index in cells {
        let service = view.cell(*index).service.as_str();
        if !all.contains(&service) {
            all.push(service);
        }
    }
    all
}

/// The different kinds of some cells, in the order of the cells.
pub(super) fn kinds<'a>(view: &View<'a>, cells: &[usize]) -> Vec<Kind<'a>> {
    let mut seen = std::collections::BTreeSet::new();
    let all = cells.iter().map(|index| kind(view.cell(*index)));
    all.filter(|kind| seen.insert(*kind)).collect()
}

/// A kind in words: `chunking=on`, `longwire`, `glassfish default`.
pub(super) fn kind_name((server, way, settings): Kind<'_>) -> String {
    let mut words = Vec::new();
    if server != OWN_SERVER {
        words.push(server.to_string());
    }
    if way != Way::Direct {
        words.push(way.name().to_string());
    }
    if !settings.is_empty() {
        words.push(settings_name(settings));
    }
    if settings.is_empty() && way == Way::Direct {
        words.push("default".to_string());
    }
    words.join(" ")
}

/// Settings in one word.
pub(super) fn settings_name(settings: &[(String, String)]) -> String {
    let all = settings.iter().map(|(name, value)| format!("{name}={value}"));
    all.collect::<Vec<_>>().join(", ")
}

/// What a network is like, in words.
pub(crate) fn describe(network: &Network) -> String {
    format::link(figures(network))
}

/// What the bound counts with.
fn figures(network: &Network) -> LinkFigures {
    let Network { rate_bps, delay_s, loss, .. } = *network;
    LinkFigures { rate_bps, delay_s, loss }
}
