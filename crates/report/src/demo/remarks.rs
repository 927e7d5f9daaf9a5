//! What a reader must know before trusting the figures.

use record::campaign::MAX_LATENESS_US;
use record::demo::{Cell, Demo, Setting};

use crate::format;

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

/// Where less came out than was asked for, and what the machine has spoilt: one line each.
pub(super) fn remarks(demo: &Demo) -> Vec<String> {
    let of_machine = [remark_on_machine(demo), remark_on_repeated(demo)];
    demo.cells.iter().flat_map(remarks_on).chain(of_machine.into_iter().flatten()).collect()
}

/// One line for all cells: they share the machine.
fn remark_on_machine(demo: &Demo) -> Option<String> {
    let spoilt = demo.cells.iter().filter(|cell| cell.is_spoilt());
    let worst = spoilt.clone().max_by_key(|cell| cell.lateness.p99_us)?;
    Some(format!(
        "{} of {} cells, marked with *, are not to be trusted: the machine was too busy, as a \
         packet in a hundred was over {} ms late (most: {}, {:.1} ms) or the client waited for a \
         processor; repeat on a quieter one",
        spoilt.count(),
        demo.cells.len(),
        MAX_LATENESS_US as f64 / 1000.0,
        cell_name(worst),
        worst.lateness.p99_us as f64 / 1000.0,
    ))
}

/// What was done about that.
fn remark_on_repeated(demo: &Demo) -> Option<String> {
    let repeated = demo.cells.iter().filter(|cell| cell.repeated);
    let sound = repeated.clone().filter(|cell| !cell.is_spoilt()).count();
    let count = repeated.count();
    (count > 0).then(|| {
        format!(
            "{count} of {} cells were measured once more, as the machine was too busy the first \
             time: {sound} of them are sound now",
            demo.cells.len(),
        )
    })
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
