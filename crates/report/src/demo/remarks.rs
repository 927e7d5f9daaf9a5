//! What a reader must know before trusting the figures.

use record::demo::{Cell, Demo, Setting};

use crate::format;

/// A ferry that is later than this at p99, and than this share of the round trip, makes a cell's
/// figures doubtful.
const LATENESS_P99_MAX_US: u64 = 1000;
const LATENESS_SHARE_MAX: f64 = 0.01;

/// What a reader must know before trusting the figures.
pub(super) fn conditions(setting: &Setting) -> Vec<String> {
    let mut all = Vec::new();
    if setting.rootless {
        all.push("Not root: the hosts lived in a user namespace.".to_string());
    }
    if setting.device != "tap" {
        let device = &setting.device;
        all.push(format!("No TAP here: {device} was used, which delivers less exactly."));
    }
    if !setting.real_time {
        let line = "Without real-time priority: delays are true only while the machine is idle.";
        all.push(line.to_string());
    }
    if let Some(stolen) = setting.stolen.filter(|stolen| *stolen > 0.01) {
        let share = format::per_cent(stolen);
        all.push(format!("Other guests of this machine took {share} of its time: repeat."));
    }
    if setting.machine.profile != "release" {
        let profile = &setting.machine.profile;
        all.push(format!("A {profile} build was measured: figures are for trying only."));
    }
    all
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
