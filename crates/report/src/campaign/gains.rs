//! What the pair is worth: each cell through longwire beside the same one direct.

use std::fmt::Write;

use record::campaign::{Cell, PAIR_SETTINGS};

use super::advice::interval;
use super::cells::link_to;
use super::references::time;
use super::view::{OWN_SERVER, View, settings_name};
use crate::analysis::Gain;
use crate::format;
use crate::text::escaped;

/// So many are shown on a terminal; the report has all.
const MAX_LINES: usize = 12;
/// Longest name of a service that a terminal's table shows whole.
const MAX_NAME_LETTERS: usize = 28;

/// The chapter; empty where nothing was measured both ways.
pub(super) fn gains(view: &View<'_>) -> String {
    let all = &view.analysis.gains;
    if all.is_empty() {
        return String::new();
    }
    let mut out = "<h2 id='gains'>Direct and through longwire</h2>\n<div class='wide'>\
                   <table class='dense'>\n<tr><th class='text'>network</th>\
                   <th class='text'>what is asked for</th><th>direct, s</th><th>longwire, s</th>\
                   <th>times as fast</th><th>direct, KB</th><th>longwire, KB</th>\
                   <th>of the bytes</th><th>link allows, s</th></tr>\n"
        .to_string();
    for gain in all {
        let (direct, through) = (view.summary(gain.direct), view.summary(gain.cell));
        let _ = writeln!(
            out,
            "<tr><td class='text'>{}</td><td class='text'>{}</td><td>{}</td><td>{}</td>\
             <td><b>{}</b>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(&view.cell(gain.cell).network),
            escaped(&what(view.cell(gain.cell))),
            link_to(gain.direct, &time(direct)),
            link_to(gain.cell, &time(through)),
            gain.times_as_fast.map_or("–".to_string(), format::ratio),
            interval(gain.interval),
            kilobytes(view.wire_bytes(gain.direct)),
            kilobytes(view.wire_bytes(gain.cell)),
            share(view, gain).map_or("–".to_string(), format::per_cent),
            bound(view, gain),
        );
    }
    out + "</table></div>\n<p class='note'>Times are medians of the runs' means. Times as fast: \
           the mean over pairs of runs with the same chances on the link, with its 95 % interval \
           from six pairs on. Bytes are IP bytes on the link, both ways, per exchange. What the \
           link allows is one round trip and the airtime of the answer as it is (as it came \
           direct, with its head, where the client does not say how long it is); fewer bytes may \
           get below.</p>\n"
}

/// The best of them and how many gain, in a sentence.
pub(super) fn sentence(view: &View<'_>) -> Option<String> {
    let exact = |index: usize| !view.summary(index).is_bound;
    let gains = view.analysis.gains.iter();
    let gains: Vec<(f64, &Gain)> = gains
        .filter(|gain| exact(gain.direct) && exact(gain.cell))
        .filter_map(|gain| Some((gain.times_as_fast?, gain)))
        .collect();
    let best = gains.iter().max_by(|one, other| one.0.total_cmp(&other.0))?;
    let (factor, gain) = (best.0, best.1);
    let cell = view.cell(gain.cell);
    let median = |index: usize| view.summary(index).median_s.map(format::seconds);
    let figures = format!(
        "{} s instead of {} s ({} times as fast{})",
        median(gain.cell)?,
        median(gain.direct)?,
        format::factor(factor),
        bytes(view, gain),
    );
    let (what, network) = (what(cell), &cell.network);
    if gains.len() == 1 {
        return Some(format!("Through longwire {what} over {network} takes {figures}."));
    }
    let faster = gains.iter().filter(|(factor, _)| *factor > 1.0).count();
    Some(format!(
        "Through longwire {faster} of {} are faster than direct; most gains {what} over {network}, \
         with {figures}.",
        format::count(gains.len(), "cell"),
    ))
}

fn bytes(view: &View<'_>, gain: &Gain) -> String {
    let share = share(view, gain).map(format::per_cent);
    share.map_or(String::new(), |share| format!(", {share} of the bytes on the link"))
}

/// The table on a terminal.
pub(super) fn lines(view: &View<'_>) -> String {
    let all = &view.analysis.gains;
    if all.is_empty() {
        return String::new();
    }
    let names = all.iter().map(|gain| shortened(view.cell(gain.cell)));
    let names: Vec<String> = names.collect();
    let length = |text: &String| text.chars().count();
    let width = names.iter().map(length).max().unwrap_or(0).max("asked for".len());
    let networks = all.iter().map(|gain| length(&view.cell(gain.cell).network));
    let of_network = networks.max().unwrap_or(0).max("network".len());
    let mut out = "\ndirect and through longwire\n".to_string();
    let _ = writeln!(
        out,
        "{:of_network$} {:width$} {:>8} {:>8} {:>16} {:>9} {:>9} {:>7}",
        "network",
        "asked for",
        "direct s",
        "pair s",
        "times as fast",
        "direct KB",
        "pair KB",
        "bound s"
    );
    for (gain, name) in all.iter().zip(&names).take(MAX_LINES) {
        let factor = gain.times_as_fast.map_or("–".to_string(), format::ratio);
        let _ = writeln!(
            out,
            "{:of_network$} {name:width$} {:>8} {:>8} {:>16} {:>9} {:>9} {:>7}",
            view.cell(gain.cell).network,
            time(view.summary(gain.direct)),
            time(view.summary(gain.cell)),
            format!("{factor}{}", interval(gain.interval)),
            kilobytes(view.wire_bytes(gain.direct)),
            kilobytes(view.wire_bytes(gain.cell)),
            bound(view, gain),
        );
    }
    if all.len() > MAX_LINES {
        let _ = writeln!(out, "and {} more: see the report", all.len() - MAX_LINES);
    }
    out + "bound: what the link allows, one round trip and the airtime of the answer as it is\n"
}

/// Server, service and settings.
fn what(cell: &Cell) -> String {
    let service = format::service_name(&cell.service);
    let mut words = match cell.server.as_str() {
        OWN_SERVER => service.to_string(),
        server => format!("{server} {service}"),
    };
    if !cell.settings.is_empty() {
        words += &format!(", {}", settings_name(&cell.settings));
    }
    words
}

fn shortened(cell: &Cell) -> String {
    let whole = what(cell);
    if whole.chars().count() <= MAX_NAME_LETTERS {
        return whole;
    }
    whole.chars().take(MAX_NAME_LETTERS - 1).chain(['…']).collect()
}

/// The pair's bytes as a share of the direct ones.
fn share(view: &View<'_>, gain: &Gain) -> Option<f64> {
    let direct = view.wire_bytes(gain.direct).filter(|bytes| *bytes > 0.0)?;
    Some(view.wire_bytes(gain.cell)? / direct)
}

fn kilobytes(bytes: Option<f64>) -> String {
    bytes.map_or("–".to_string(), |bytes| format!("{:.1}", bytes / 1000.0))
}

fn bound(view: &View<'_>, gain: &Gain) -> String {
    view.bound_s(gain.direct).map_or("–".to_string(), format::seconds)
}

/// One gain as a program reads it.
pub(super) fn facts(view: &View<'_>, gain: &Gain) -> serde_json::Value {
    let cell = view.cell(gain.cell);
    let one = |index: usize| {
        serde_json::json!({
            "cell": view.cell(index).name,
            "median_s": view.summary(index).median_s,
            "is_lower_bound": view.summary(index).is_bound,
            "wire_bytes": view.wire_bytes(index),
        })
    };
    let of_pair = cell.settings.iter().filter(|(name, _)| PAIR_SETTINGS.contains(&name.as_str()));
    serde_json::json!({
        "network": cell.network,
        "server": cell.server,
        "service": cell.service,
        "pair": of_pair.cloned().collect::<std::collections::BTreeMap<String, String>>(),
        "direct": one(gain.direct),
        "longwire": one(gain.cell),
        "times_as_fast": gain.times_as_fast,
        "times_as_fast_interval": gain.interval.map(|(low, high)| [low, high]),
        "pairs": gain.pairs,
        "share_of_bytes": share(view, gain),
        "link_allows_s": view.bound_s(gain.direct),
    })
}
