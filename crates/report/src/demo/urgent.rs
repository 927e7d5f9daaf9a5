//! Messages beside others that fill a link.

use std::fmt::Write;

use record::demo::{Cell, Demo, Time, Urgent};

use crate::format;
use crate::text::escaped;

/// Median, 95th percentile and longest.
fn times(cell: &Cell) -> [String; 3] {
    let longest = Time::percentile(&cell.times(), 100).unwrap_or(Time::Never);
    [cell.median(), cell.p95(), longest].map(format::time)
}

fn bulk(urgent: &Urgent) -> String {
    let (clients, bulk) = (urgent.bulk_clients, format::service_name(&urgent.bulk));
    format!("while {clients} clients of {bulk} fill the link of {}", urgent.network)
}

/// In words, for a terminal.
pub(super) fn sentence(demo: &Demo) -> Option<String> {
    let urgent = demo.urgent.as_ref()?;
    let of = |cell: &Cell| {
        let [median, p95, longest] = times(cell);
        format!("with {} {median} s ({p95} s, {longest} s)", cell.mode.name())
    };
    let all: Vec<String> = urgent.cells.iter().map(of).collect();
    Some(format!(
        "A flash message {}, median (95th percentile, longest): {}.",
        bulk(urgent),
        all.join("; "),
    ))
}

/// The section; empty where that was not measured.
pub(super) fn section(demo: &Demo) -> String {
    let Some(urgent) = &demo.urgent else { return String::new() };
    let mut out = "<h2>A flash message beside bulk</h2>\n<table>\n<tr><th class='text'></th>\
                   <th>messages</th><th>median, s</th><th>95th percentile, s</th>\
                   <th>longest, s</th></tr>\n"
        .to_string();
    for cell in &urgent.cells {
        let figures = times(cell).map(|time| format!("<td>{}</td>", escaped(&time))).concat();
        let (mode, count) = (cell.mode.name(), cell.measured().len());
        let _ = writeln!(out, "<tr><td class='text'>{mode}</td><td>{count}</td>{figures}</tr>");
    }
    let _ = writeln!(
        out,
        "</table>\n<p class='note'>What a message takes there and back, one after another, {}. \
         Through the pair it is a service of urgency flash: it goes before what waits for the \
         link.</p>",
        escaped(&bulk(urgent)),
    );
    out
}
