//! Time by loss, of one service over one network.

use record::demo::{Cell, Curve, Demo, Mode, Time};

use crate::format;

/// The ways that are compared.
pub(super) const MODES: [Mode; 2] = [Mode::Gzip, Mode::Longwire];

/// What came of a loss.
pub(super) struct Point<'a> {
    pub(super) loss: f64,
    /// In the order of [`MODES`].
    pub(super) cells: [Option<&'a Cell>; 2],
}

impl Point<'_> {
    /// Median and 95th percentile of each way.
    pub(super) fn times(&self) -> [(Time, Time); 2] {
        let times = |cell: &Cell| (cell.median(), cell.p95());
        self.cells.map(|cell| cell.map_or((Time::Never, Time::Never), times))
    }
}

/// By loss, what the network itself loses among them.
pub(super) fn points<'a>(demo: &'a Demo, curve: &'a Curve) -> Vec<Point<'a>> {
    let mut all: Vec<Point<'_>> = curve
        .points
        .iter()
        .map(|point| {
            let cell = |mode| point.cells.iter().find(|cell| cell.mode == mode);
            Point { loss: point.loss, cells: MODES.map(cell) }
        })
        .collect();
    if let Some(network) = demo.networks.iter().find(|network| network.name == curve.network) {
        let cell = |mode| demo.cell(&curve.network, &curve.service, mode);
        all.push(Point { loss: network.loss, cells: MODES.map(cell) });
    }
    all.sort_by(|a, b| a.loss.total_cmp(&b.loss));
    all
}

/// A loss, in whole per cents.
pub(super) fn share(loss: f64) -> String {
    format!("{:.0} %", loss * 100.0)
}

/// In words, for a terminal.
pub(super) fn sentence(demo: &Demo) -> Option<String> {
    let curve = demo.curve.as_ref()?;
    let sentences = points(demo, curve)
        .iter()
        .map(|point| {
            let [gzip, longwire] = point
                .times()
                .map(|(median, p95)| format!("{} ({})", format::time(median), format::time(p95)));
            format!("{}: {gzip} and {longwire}", share(point.loss))
        })
        .collect::<Vec<_>>();
    Some(format!(
        "{} over the link of {} by what is lost each way, median (95th percentile) in seconds with \
         gzip and with longwire: {}.",
        format::service_name(&curve.service),
        curve.network,
        sentences.join("; "),
    ))
}
