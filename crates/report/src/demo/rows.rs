//! The demonstration row by row: a service over a network, in the three ways.

use record::demo::{Cell, Demo, Mode, Network, Service, Time};

use crate::bound::{LinkFigures, bound_s};
use crate::format;

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
            (Time::MoreThan(0.0), _) => Self::Unknown,
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

    /// The mean times.
    pub(super) fn means(&self) -> [Time; 3] {
        self.cells.map(|cell| cell.map_or(Time::Never, Cell::mean))
    }

    /// The 95th percentiles.
    pub(super) fn p95s(&self) -> [Time; 3] {
        self.cells.map(|cell| cell.map_or(Time::Never, Cell::p95))
    }

    /// Longwire instead of gzip, by mean and 95th percentile.
    pub(super) fn tail_gains(&self) -> [Gain; 2] {
        [self.means(), self.p95s()].map(|[_, gzip, longwire]| Gain::of(gzip, longwire))
    }

    /// Which of the three the machine has spoilt: an asterisk, or nothing.
    pub(super) fn marks(&self) -> [&'static str; 3] {
        self.cells.map(|cell| if cell.is_some_and(Cell::is_spoilt) { "*" } else { "" })
    }

    /// The times of the first answers that came, before anything was known of any.
    pub(super) fn firsts(&self) -> [Time; 3] {
        let first = |cell: Option<&Cell>| {
            let fetch = cell?.fetch.as_ref()?;
            fetch.warm_up.iter().chain(&fetch.measured).next().map(Time::of)
        };
        self.cells.map(|cell| first(cell).unwrap_or(Time::Never))
    }

    /// Whether the service compressed for the client that offered gzip: it then sent less.
    pub(super) fn has_gzip(&self) -> bool {
        /// Packets lost and heads make some difference by themselves.
        const MAX_SHARE: f64 = 0.9;
        let [direct, gzip, _] = self.wire_bytes();
        direct.zip(gzip).is_some_and(|(direct, gzip)| gzip < MAX_SHARE * direct)
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
    pub(super) fn byte_share(&self) -> Option<f64> {
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
}

/// One of a service's answers: `track` or `answer`.
pub(super) fn item_noun(demo: &Demo) -> &'static str {
    if demo.setting.url.is_some() { "answer" } else { "track" }
}

/// What a network is like, in words.
pub(super) fn describe(network: &Network) -> String {
    let Network { rate_bps, delay_s, loss, .. } = *network;
    format::link(LinkFigures { rate_bps, delay_s, loss })
}
