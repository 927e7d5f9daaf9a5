//! The cells for which others have published a time, beside ours and what explains differences.

use std::fmt::Write;

use record::campaign::{Reference, Way};

use super::cells::link_to;
use super::view::{OWN_SERVER, View};
use crate::analysis::CellSummary;
use crate::format;
use crate::text::escaped;

/// The table.
pub(super) fn references(view: &View<'_>) -> String {
    if view.campaign.references.is_empty() {
        return String::new();
    }
    let mut out = "<h2 id='references'>The paper's cells</h2>\n<div class='wide'>\
                   <table class='dense'>\n<tr><th>cell</th><th>paper, s</th><th>ours, s</th>\
                   <th>ours / paper</th><th>longwire, s</th><th>other servers, s</th><th>packets\
                   </th><th>up, B</th><th>down, B</th><th>flights</th><th>conn.</th><th>again</th>\
                   </tr>\n"
        .to_string();
    for reference in &view.campaign.references {
        out += &row(view, reference);
    }
    out += "</table></div>\n<p class='note'>Ours: median of the runs' means. Longwire: the same \
            service over the same network through the pair, all settings at their defaults. Other \
            servers: with the same settings. Packets, IP bytes up and down, flights (bursts of \
            content towards the client: round trips) and connections are per exchange, of our \
            direct cell; again is the share of packets that were retransmitted.</p>\n";
    let mut notes: Vec<&str> =
        view.campaign.references.iter().map(|one| one.note.as_str()).collect();
    notes.dedup();
    let notes: String = notes.iter().map(|note| format!("<li>{}</li>", escaped(note))).collect();
    format!(
        "{out}<details><summary>Notes on the paper's figures</summary><ul>{notes}</ul></details>\n"
    )
}

fn row(view: &View<'_>, reference: &Reference) -> String {
    let paper = format::seconds(reference.seconds);
    let Some(index) = view.named(&reference.cell) else {
        return format!(
            "<tr><td>{}</td><td>{paper}</td><td colspan='10' class='text'>not measured</td></tr>\n",
            escaped(&reference.cell)
        );
    };
    let (cell, summary) = (view.cell(index), view.summary(index));
    let (network, service) = (cell.network.as_str(), cell.service.as_str());
    let longwire = view.find(network, service, (OWN_SERVER, Way::Longwire, &[]));
    let longwire = longwire.map_or("–".to_string(), |index| time(view.summary(index)));
    let share = summary.median_s.filter(|_| reference.seconds > 0.0);
    let share = share.map_or("–".to_string(), |ours| format::ratio(ours / reference.seconds));
    let mut out = format!(
        "<tr><td>{}</td><td>{paper}</td><td><b>{}</b></td><td>{share}</td><td>{}</td><td>{}</td>",
        link_to(index, &format!("{network} {} {}", format::service_name(service), cell.variant())),
        escaped(&time(summary)),
        escaped(&longwire),
        escaped(&others(view, index)),
    );
    for figure in explanations(summary) {
        let _ = write!(out, "<td>{figure}</td>");
    }
    out + "</tr>\n"
}

/// Packets, bytes up and down, flights, connections, share retransmitted.
pub(super) fn explanations(summary: &CellSummary) -> [String; 6] {
    let number = |figure: Option<f64>, decimals: usize| {
        figure.map_or("–".to_string(), |figure| format!("{figure:.decimals$}"))
    };
    [
        number(summary.packets, 0),
        number(summary.up_bytes, 0),
        number(summary.down_bytes, 0),
        number(summary.flights, 1),
        number(summary.connections, 2),
        summary.retransmitted.map_or("–".to_string(), format::per_cent),
    ]
}

/// A median with what it hides.
pub(super) fn time(summary: &CellSummary) -> String {
    let Some(median_s) = summary.median_s else { return "no result".to_string() };
    let more = if summary.is_bound { "> " } else { "" };
    let failed = summary.errors + summary.failed;
    let failed = if failed > 0 { format!(" ({failed} failed)") } else { String::new() };
    format!("{more}{}{failed}", format::seconds(median_s))
}

/// The same cell with other servers.
fn others(view: &View<'_>, index: usize) -> String {
    let cell = view.cell(index);
    let same = view.of_network(&cell.network).filter(|other| {
        let other = view.cell(*other);
        other.server != cell.server
            && (&other.service, other.way, &other.settings)
                == (&cell.service, cell.way, &cell.settings)
    });
    let all = same.map(|other| {
        let time = time(view.summary(other));
        format!("{} {time}", view.cell(other).server)
    });
    let all = all.collect::<Vec<_>>().join(", ");
    if all.is_empty() { "–".to_string() } else { all }
}
