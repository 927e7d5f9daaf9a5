//! The tables of the report.

use std::fmt::Write;

use record::demo::{Cell, Demo, Mode, Network, Setting};

use super::figures::mode_name;
use super::rows::{Row, describe, item_noun, rows};
use crate::format;
use crate::text::escaped;

/// Values of settings that change nothing.
const OFF: [&str; 4] = ["none", "0 %", "0 ns", "false"];

/// The headline figures.
pub(super) fn overview(demo: &Demo) -> String {
    let mut out = "<h2>In short</h2>\n<div class='wide'><table>\n<tr><th>network</th>\
                   <th class='text'>service</th>"
        .to_string();
    for mode in Mode::ALL {
        let _ = write!(out, "<th class='{}'>{}, s</th>", mode.name(), mode_name(mode));
    }
    out += "<th>times faster than direct</th><th>than gzip</th>";
    let encoding = escaped(&demo.setting.bound_encoding);
    let _ = writeln!(out, "<th>round trip + {encoding}, s</th></tr>");
    let mut last = "";
    for row in rows(demo) {
        out += &row_head(&row, last);
        last = row.network.name.as_str();
        let medians = Mode::ALL.into_iter().zip(row.medians()).zip(row.marks());
        for ((mode, median), mark) in medians {
            let text = escaped(&format!("{}{mark}", format::time(median)));
            let _ = write!(out, "<td class='{}'>{text}</td>", mode.name());
        }
        let [direct, gzip] = row.gains().map(|gain| escaped(&gain.to_string()));
        let bound = row.bound_s().map_or("–".to_string(), format::seconds);
        let _ = writeln!(out, "<td><b>{direct}</b></td><td>{gzip}</td><td>{bound}</td></tr>");
    }
    let noun = item_noun(demo);
    out + &format!(
        "</table></div>\n<p class='note'>Median seconds per {noun}. The last column is one round \
         trip and the airtime of request and answer in {encoding}, each by itself: what goes as a \
         delta of an earlier answer may come in below.</p>\n"
    )
}

/// The first cells of a row: its network, where that is another than the last one's, and service.
fn row_head(row: &Row<'_>, last: &str) -> String {
    let network = row.network.name.as_str();
    let (first, shown) = if network == last { ("", "") } else { (" class='first'", network) };
    let service = escaped(format::service_name(&row.service.name));
    format!("<tr{first}><td>{}</td><td class='text'>{service}</td>", escaped(shown))
}

/// Means and 95th percentiles: what is lost shows there.
pub(super) fn tail(demo: &Demo) -> String {
    let mut out = "<h2>In the tail</h2>\n<div class='wide'><table>\n<tr><th>network</th>\
                   <th class='text'>service</th>"
        .to_string();
    for what in ["mean", "p95"] {
        for mode in Mode::ALL {
            let _ = write!(out, "<th class='{}'>{}, {what}, s</th>", mode.name(), mode_name(mode));
        }
    }
    out += "<th>times faster than gzip by mean</th><th>by p95</th></tr>\n";
    let mut last = "";
    for row in rows(demo) {
        out += &row_head(&row, last);
        last = row.network.name.as_str();
        for times in [row.means(), row.p95s()] {
            for (mode, time) in Mode::ALL.into_iter().zip(times) {
                let text = escaped(&format::time(time));
                let _ = write!(out, "<td class='{}'>{text}</td>", mode.name());
            }
        }
        let [mean, p95] = row.tail_gains().map(|gain| escaped(&gain.to_string()));
        let _ = writeln!(out, "<td>{mean}</td><td><b>{p95}</b></td></tr>");
    }
    out + "</table></div>\n<p class='note'>Of every fetch that was measured; where one was cut off \
           the time is more than that.</p>\n"
}

pub(super) fn links(demo: &Demo) -> String {
    let mut out = "<h2>Links</h2>\n<table class='text'>\n<tr><th>network</th><th>fetched</th>\
                   <th>settings</th></tr>\n"
        .to_string();
    for network in &demo.networks {
        let Network { name, source, settings, items, cold, .. } = network;
        let on = settings.iter().filter(|(key, value)| is_on(key, value, settings));
        let on = on.map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join(", ");
        let pass = if *cold { "cold" } else { "after a first pass" };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}, {pass}</td><td>{}<br/>{}<br/><span class='note'>{}</span>\
             </td></tr>",
            escaped(name),
            escaped(&shorten(items)),
            escaped(&describe(network)),
            escaped(&on),
            escaped(source),
        );
    }
    out + "</table>\n<p class='note'>What a link could do besides (bursts of losses, corruption, \
           reordering and so on) is off unless named.</p>\n"
}

/// Whether a setting does anything: most say none, zero or false.
fn is_on(key: &str, value: &str, settings: &[(String, String)]) -> bool {
    let shapes_nothing = || {
        let jitter = settings.iter().find(|(key, _)| key.ends_with("jitter"));
        jitter.is_some_and(|(_, jitter)| OFF.contains(&jitter.as_str()))
    };
    let is_off = OFF.contains(&value) || (key.ends_with("distribution") && shapes_nothing());
    !is_off
}

/// `track 1–3, 5`: what names have in common is told once.
fn shorten(items: &[String]) -> String {
    let numbered = |item: &String| {
        let (noun, number) = item.rsplit_once(' ')?;
        Some((noun.to_string(), number.parse::<usize>().ok()?))
    };
    let Some(numbers) = items.iter().map(numbered).collect::<Option<Vec<_>>>() else {
        return items.join(", ");
    };
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for (_, number) in &numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let text = |(first, last)| {
        if first == last { format!("{first}") } else { format!("{first}–{last}") }
    };
    let ranges = ranges.into_iter().map(text).collect::<Vec<_>>().join(", ");
    numbers.first().map_or(String::new(), |(noun, _)| format!("{noun} {ranges}"))
}

pub(super) fn machine(setting: &Setting) -> String {
    let yes_no = |yes: bool| if yes { "yes" } else { "no" }.to_string();
    let unknown = || "unknown".to_string();
    let machine = &setting.machine;
    let rows = [
        ("longwire", format!("{}, {} build", setting.version, machine.profile)),
        ("built from commit", machine.revision.clone().unwrap_or_else(unknown)),
        ("command", machine.command.clone()),
        ("begun (UTC)", record::calendar::utc(setting.started_unix_s)),
        ("took", format!("{:.0} s", setting.elapsed_s)),
        ("kernel", machine.kernel.clone()),
        ("processor", machine.processor.clone()),
        ("cores", machine.cores.to_string()),
        ("time taken by other guests", setting.stolen.map_or_else(unknown, format::per_cent)),
        ("hosts joined by", setting.device.clone()),
        ("user namespace (not root)", yes_no(setting.rootless)),
        ("emulator with real-time priority", yes_no(setting.real_time)),
        ("emulator's memory locked", yes_no(setting.memory_locked)),
        ("carrier of the pair", setting.carrier.clone()),
        ("encoding of the pair", setting.encoding.clone()),
        ("encoding of the bound", setting.bound_encoding.clone()),
        ("seed", setting.seed.to_string()),
        ("time budget of a cell", format!("{} s", setting.budget_s)),
        ("service", setting.url.clone().unwrap_or_else(|| "friendly-force tracks".to_string())),
    ];
    let mut out = "<h2>Versions and settings</h2>\n<table class='text'>\n".to_string();
    for (name, value) in rows {
        let _ = writeln!(out, "<tr><td>{name}</td><td>{}</td></tr>", escaped(&value));
    }
    out + "</table>\n"
}

/// Every cell in figures.
pub(super) fn cells(demo: &Demo) -> String {
    let mut out =
        "<h2>Every cell</h2>\n<div class='wide'><table class='dense'>\n<tr><th>network</th>\
                   <th class='text'>service</th><th class='text'>way</th><th>median s</th>\
                   <th>p90 s</th><th>greatest s</th><th>done</th><th>cut off</th><th>failed</th>\
                   <th>up, KB</th><th>down, KB</th><th>dropped</th><th>queue, KB</th>\
                   <th>late p99, ms</th><th class='text'>TCP</th></tr>\n"
            .to_string();
    for row in rows(demo) {
        for (cell, mode) in row.cells.into_iter().zip(Mode::ALL) {
            out += &cell_row(&row, mode, cell);
        }
    }
    out + "</table></div>\n<p class='note'>p90 and the greatest are of the fetches that came to \
           a good end. Up and down are IP bytes from and to the client, dropped is packets in both \
           directions, the queue its greatest length on the way to the client.</p>\n"
}

fn cell_row(row: &Row<'_>, mode: Mode, cell: Option<&Cell>) -> String {
    let name = format!(
        "<tr{}><td>{}</td><td class='text'>{}</td><td class='text {mode}'>{mode}</td>",
        if mode == Mode::Direct { " class='first'" } else { "" },
        escaped(&row.network.name),
        escaped(format::service_name(&row.service.name)),
        mode = mode.name(),
    );
    let Some(cell) = cell else {
        return name + "<td colspan='12' class='alarm'>no result</td></tr>\n";
    };
    let fetch = cell.fetch.as_ref();
    let of_summary = |pick: fn(&record::result::Summary) -> f64| {
        let summary = fetch.and_then(|fetch| fetch.summary.as_ref());
        summary.map_or("–".to_string(), |summary| format::seconds(pick(summary)))
    };
    let done = cell.measured().iter().filter(|exchange| exchange.succeeded()).count();
    let dropped = cell.up.dropped.values().chain(cell.down.dropped.values()).sum::<u64>();
    let kilobytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1000.0);
    let (cut, failed) = fetch.map_or((0, 0), |fetch| (fetch.censored, fetch.errors));
    let figures = [
        format::time(cell.median()),
        of_summary(|summary| summary.p90_s),
        of_summary(|summary| summary.max_s),
        done.to_string(),
        cut.to_string(),
        failed.to_string(),
        kilobytes(cell.up.bytes_in),
        kilobytes(cell.down.bytes_in),
        dropped.to_string(),
        kilobytes(cell.down.queue_peak_bytes),
        format!("{:.2}", cell.lateness.p99_us as f64 / 1000.0),
    ];
    let alarm = [cut, failed].map(|count| if count > 0 { " class='alarm'" } else { "" });
    let figures = figures.iter().enumerate().map(|(column, text)| {
        let class = match column {
            4 => alarm[0],
            5 => alarm[1],
            _ => "",
        };
        format!("<td{class}>{}</td>", escaped(text))
    });
    let figures: String = figures.collect();
    let [a, b] = &cell.congestion_control;
    let control = escaped(&if a == b { a.clone() } else { format!("{a}, {b}") });
    format!("{name}{figures}<td class='text'>{control}</td></tr>\n")
}
