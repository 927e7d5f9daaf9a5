//! The demonstration row by row: a service over a network, in the three ways.

use std::cmp::Ordering;

use record::demo::{Cell, Demo, Mode, Network, Service, Time};

use super::bound::bound_s;
use super::format;

/// A ferry that is later than this at p99, and than this share of the round trip, makes a cell's
/// figures doubtful.
const LATENESS_P99_MAX_US: u64 = 1000;
const LATENESS_SHARE_MAX: f64 = 0.01;

/// One service over one network.
pub(super) struct Row<'a> {
    pub(super) network: &'a Network,
    pub(super) service: &'a Service,
    /// In the order of [`Mode::ALL`].
    pub(super) cells: [Option<&'a Cell>; 3],
}

/// How many times faster one way is than another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Gain {
    Exactly(f64),
    AtLeast(f64),
    AtMost(f64),
    Unknown,
}

impl Gain {
    /// `new` in place of `old`.
    pub(super) fn of(old: Time, new: Time) -> Self {
        match (old, new) {
            (Time::Seconds(old), Time::Seconds(new)) if new > 0.0 => Self::Exactly(old / new),
            (Time::MoreThan(old), Time::Seconds(new)) if new > 0.0 => Self::AtLeast(old / new),
            (Time::Seconds(old), Time::MoreThan(new)) if new > 0.0 => Self::AtMost(old / new),
            _ => Self::Unknown,
        }
    }

    /// What is sure of it, for comparing rows; none when nothing is.
    pub(super) fn sure(self) -> Option<f64> {
        match self {
            Self::Exactly(factor) | Self::AtLeast(factor) | Self::AtMost(factor) => Some(factor),
            Self::Unknown => None,
        }
    }
}

impl std::fmt::Display for Gain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = match self {
            Self::Exactly(factor) => format::factor(*factor),
            Self::AtLeast(factor) => format!("> {}", format::factor(*factor)),
            Self::AtMost(factor) => format!("< {}", format::factor(*factor)),
            Self::Unknown => "–".to_string(),
        };
        f.pad(&text)
    }
}

/// All rows, network by network.
pub(super) fn rows(demo: &Demo) -> Vec<Row<'_>> {
    let services = |network| demo.services.iter().map(move |service| (network, service));
    let pairs = demo.networks.iter().flat_map(services);
    pairs
        .map(|(network, service)| {
            let cell = |mode| demo.cell(&network.name, &service.name, mode);
            Row { network, service, cells: Mode::ALL.map(cell) }
        })
        .collect()
}

impl Row<'_> {
    /// The median times.
    pub(super) fn medians(&self) -> [Time; 3] {
        self.cells.map(|cell| cell.map_or(Time::Never, Cell::median))
    }

    /// IP bytes per exchange.
    pub(super) fn wire_bytes(&self) -> [Option<f64>; 3] {
        self.cells.map(|cell| cell?.wire_bytes_per_exchange())
    }

    /// Longwire instead of direct, and instead of gzip.
    pub(super) fn gains(&self) -> [Gain; 2] {
        let [direct, gzip, longwire] = self.medians();
        [Gain::of(direct, longwire), Gain::of(gzip, longwire)]
    }

    /// What longwire puts on the wire, as a share of what direct does.
    fn byte_share(&self) -> Option<f64> {
        let [direct, _, longwire] = self.wire_bytes();
        Some(longwire? / direct?)
    }

    /// The bound of each thing that was fetched.
    pub(super) fn bounds_s(&self) -> Vec<f64> {
        let items = self.service.items.iter();
        let fetched = items.filter(|item| self.network.items.contains(&item.name));
        fetched.map(|item| bound_s(self.network, item)).collect()
    }

    /// The median of the bounds.
    pub(super) fn bound_s(&self) -> Option<f64> {
        let bounds: Vec<Time> = self.bounds_s().into_iter().map(Time::Seconds).collect();
        Time::median(&bounds)?.at_least_s()
    }

    /// What longwire does to it, in words.
    fn gained(&self) -> String {
        let name = service_name(&self.service.name);
        let [direct, _, longwire] = self.medians().map(format::time);
        let [gain, _] = self.gains();
        let network = &self.network.name;
        format!(
            "{name} over {network} takes {longwire} s instead of {direct} s ({gain} times as fast)"
        )
    }
}

/// A service as people call it.
pub(super) fn service_name(name: &str) -> &str {
    match name {
        "soap" => "SOAP",
        "rest-xml" => "REST XML",
        "rest-json" => "REST JSON",
        "url" => "URL",
        other => other,
    }
}

/// One of a service's answers: `track` or `answer`.
pub(super) fn item_noun(demo: &Demo) -> &'static str {
    if demo.setting.url.is_some() { "answer" } else { "track" }
}

/// What a network is like, in words.
pub(super) fn describe(network: &Network) -> String {
    let rate = network.rate_bps.map_or("no limit of rate".to_string(), link::units::format_rate);
    let delay_ms = network.delay_s * 1000.0;
    let loss = match network.loss {
        0.0 => "no loss".to_string(),
        loss => format!("{} loss", link::units::format_share(loss)),
    };
    format!("{rate}, {delay_ms} ms each way, {loss}")
}

/// Where less came out than was asked for, and where figures are doubtful: one line each.
pub(super) fn remarks(demo: &Demo) -> Vec<String> {
    demo.cells.iter().flat_map(remarks_on).chain(remark_on_lateness(demo)).collect()
}

/// One line for all cells: they share the machine.
fn remark_on_lateness(demo: &Demo) -> Option<String> {
    let late = demo.cells.iter().filter(|cell| is_late(demo, cell));
    let worst = late.clone().max_by_key(|cell| cell.lateness.p99_us)?;
    Some(format!(
        "{} of {} cells are doubtful, as the emulator was late by over {} ms and over {:.0} % of \
         the round trip at p99 (most: {}, {:.1} ms); repeat on a quieter machine",
        late.count(),
        demo.cells.len(),
        LATENESS_P99_MAX_US / 1000,
        100.0 * LATENESS_SHARE_MAX,
        cell_name(worst),
        worst.lateness.p99_us as f64 / 1000.0,
    ))
}

fn is_late(demo: &Demo, cell: &Cell) -> bool {
    let network = demo.networks.iter().find(|network| network.name == cell.network);
    let round_trip_us = network.map_or(0.0, |network| 2e6 * network.delay_s);
    let p99_us = cell.lateness.p99_us;
    p99_us > LATENESS_P99_MAX_US && p99_us as f64 > LATENESS_SHARE_MAX * round_trip_us
}

fn cell_name(cell: &Cell) -> String {
    format!("{} {} {}", cell.network, cell.service, cell.mode.name())
}

fn remarks_on(cell: &Cell) -> Vec<String> {
    let name = cell_name(cell);
    let mut all = Vec::new();
    if let Some(why) = &cell.failure {
        all.push(format!("{name}: no result: {why}"));
    }
    let measured = cell.measured();
    let failed = measured.iter().filter(|exchange| exchange.error.is_some());
    let (count, first) = (failed.clone().count(), failed.clone().next());
    if let Some(why) = first.and_then(|exchange| exchange.error.as_ref()) {
        all.push(format!("{name}: {count} of {} failed, first: {why}", measured.len()));
    }
    let cut = measured.iter().filter(|exchange| exchange.censored);
    let begun = cut.clone().filter(|exchange| exchange.elapsed_s > 0.0);
    if cut.clone().count() > 0 {
        let never = cut.count() - begun.clone().count();
        let cut_off = begun.map(|exchange| format!("> {} s", format::seconds(exchange.elapsed_s)));
        let cut_off = cut_off.collect::<Vec<_>>().join(", ");
        let parts = [
            (!cut_off.is_empty()).then(|| format!("cut off after {cut_off}")),
            (never > 0).then(|| format!("{never} of {} not begun", measured.len())),
        ];
        let parts = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        all.push(format!("{name}: the time budget ended: {parts}"));
    }
    all
}

/// What came out, in a few plain sentences.
pub(super) fn summary(demo: &Demo) -> String {
    let rows = rows(demo);
    let gain = |row: &Row<'_>| row.gains()[0].sure();
    let mut compared: Vec<&Row<'_>> = rows.iter().filter(|row| gain(row).is_some()).collect();
    compared.sort_by(|left, right| gain(left).partial_cmp(&gain(right)).unwrap_or(Ordering::Equal));
    let (Some(worst), Some(best)) = (compared.first(), compared.last()) else {
        return "No comparison came out: see the remarks.".to_string();
    };
    let mut sentences = vec![format!(
        "The median {} came faster through longwire than direct in {} of {} comparisons.",
        item_noun(demo),
        compared.iter().filter(|row| gain(row).is_some_and(|gain| gain > 1.0)).count(),
        rows.len(),
    )];
    match rows.len() {
        1 => sentences.push(format!("{}.", best.gained())),
        _ => sentences.push(format!("Best: {}. Worst: {}.", best.gained(), worst.gained())),
    }
    let mut shares: Vec<f64> = rows.iter().filter_map(Row::byte_share).collect();
    shares.sort_by(f64::total_cmp);
    if let Some(range) = range(&shares, format::per_cent) {
        sentences.push(format!("It puts {range} of the bytes on the wire."));
    }
    let mut against_gzip: Vec<f64> = rows.iter().filter_map(|row| row.gains()[1].sure()).collect();
    against_gzip.sort_by(f64::total_cmp);
    if let Some(range) = range(&against_gzip, format::factor) {
        sentences.push(format!(
            "Where client and service use gzip already, longwire is {range} times as fast as they."
        ));
    }
    sentences.join(" ")
}

/// The least and the greatest of sorted values, `2 to 3`, or the one value that they are.
fn range(sorted: &[f64], text: impl Fn(f64) -> String) -> Option<String> {
    let (least, most) = (text(*sorted.first()?), text(*sorted.last()?));
    Some(if least == most { least } else { format!("{least} to {most}") })
}
