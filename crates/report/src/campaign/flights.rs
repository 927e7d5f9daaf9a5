//! Time of flight: single exchanges packet by packet, and where their seconds went.

use std::collections::BTreeSet;
use std::fmt::Write;

use record::campaign::{Cell, Flight, Network, Way};

use super::cells::link_to;
use super::flight_plot;
use super::stages::{Kind, Stage, Stages, kinds, stages};
use super::view::{OWN_SERVER, View};
use crate::format;
use crate::text::escaped;

/// So many exchanges are drawn: each takes some kilobytes.
const MAX_FLIGHTS: usize = 40;
/// Stages that are shorter are not named: less than the last digit shown.
const MIN_SHOWN_S: f64 = 0.0005;
/// The service whose defaults are always shown.
const SERVICE: &str = "soap";

/// The section.
pub(super) fn flights(view: &View<'_>) -> String {
    let selected = selected(view);
    if selected.is_empty() {
        return String::new();
    }
    let mut out = "<h2 id='flights'>Time of flight</h2>\n<p>Single exchanges, packet by packet: \
                   above the client, below the service, time to the right. A line begins where a \
                   packet was offered to the link and ends where it was delivered. Thick: content \
                   of the request (downwards) and of the answer (upwards); long dashes: content \
                   that goes again; thin: acknowledgements; short dashes: ends of connections \
                   and their beginnings; a cross: lost on the way. The strip says where the \
                   seconds went: "
        .to_string();
    out += &definitions();
    out += "</p>\n";
    for index in selected {
        if let Some(flight) = flight(view, index) {
            out += &shown(view, index, flight);
        }
    }
    out
}

fn definitions() -> String {
    let meanings = [
        "until the request's first byte is on the link",
        "until its last arrives",
        "until the answer's first packet arrives",
        "as long as the packets that follow occupy the link",
        "what the intervals between their arrivals are longer (from 0.5 ms on)",
        "until the client is done",
    ];
    let all = Stage::ALL.into_iter().zip(meanings);
    let all = all.map(|(stage, meaning)| format!("<i>{}</i> {meaning}", stage.name()));
    all.collect::<Vec<_>>().join("; ") + "."
}

/// The flight of a cell: that of its first run that has one.
fn flight<'a>(view: &View<'a>, index: usize) -> Option<&'a Flight> {
    flight_of(view.cell(index))
}

/// The drawing of a single exchange of a cell, packet by packet; none where no run has one.
#[must_use]
pub fn drawing(cell: &Cell, network: &Network) -> Option<String> {
    let flight = flight_of(cell)?;
    Some(flight_plot::plot(flight, stages(flight, network).as_ref()))
}

fn flight_of(cell: &Cell) -> Option<&Flight> {
    let mut flights = cell.good_runs().filter_map(|run| run.flight.as_ref());
    flights.find(|flight| !flight.packets.is_empty() && flight.elapsed_s > 0.0)
}

/// Each network's defaults, direct and through the pair, then the cells that differ most.
fn selected(view: &View<'_>) -> Vec<usize> {
    let has_flight = |index: &usize| flight(view, *index).is_some();
    let defaults = view.campaign.networks.iter().flat_map(|network| {
        [Way::Direct, Way::Longwire]
            .into_iter()
            .filter_map(|way| view.find(&network.name, SERVICE, (OWN_SERVER, way, &[])))
    });
    let mut all: Vec<usize> = defaults.filter(has_flight).take(MAX_FLIGHTS).collect();
    let mut compared: Vec<(f64, usize)> = view
        .analysis
        .comparisons
        .iter()
        .filter_map(|one| Some((one.ratio.filter(|ratio| *ratio > 0.0)?.ln().abs(), one.cell)))
        .filter(|(_, index)| has_flight(index))
        .collect();
    compared.sort_by(|one, other| other.0.total_cmp(&one.0));
    // One cell for each setting of a network tells more than three services of the same.
    let mut seen = BTreeSet::new();
    compared.retain(|(_, index)| {
        let cell = view.cell(*index);
        seen.insert((&cell.network, &cell.server, cell.way, &cell.settings))
    });
    let room = MAX_FLIGHTS.saturating_sub(all.len());
    all.extend(compared.into_iter().map(|(_, index)| index).take(room));
    all.sort_by_key(|index| {
        let network = &view.cell(*index).network;
        view.campaign.networks.iter().position(|one| one.name == *network)
    });
    all
}

fn shown(view: &View<'_>, index: usize, flight: &Flight) -> String {
    let cell = view.cell(index);
    let stages = view.network(&cell.network).and_then(|network| stages(flight, network));
    let mut out = format!("<h3>{}</h3>\n<figure>", link_to(index, &cell.name));
    out += &flight_plot::plot(flight, stages.as_ref());
    let _ = writeln!(
        out,
        "<figcaption>{}</figcaption></figure>",
        escaped(&caption(flight, stages.as_ref()))
    );
    out
}

/// Counts and seconds.
fn caption(flight: &Flight, stages: Option<&Stages>) -> String {
    let kinds = kinds(&flight.packets);
    let of = |kind| kinds.iter().filter(|one| **one == kind).count();
    let lost = flight.packets.iter().filter(|packet| packet.dropped.is_some()).count();
    let bytes: u64 = flight.packets.iter().map(|packet| u64::from(packet.bytes)).sum();
    let mut text = format!(
        "{}, {} s: {} ({}), {} with content, {} again, {} of connections, {} bare; {lost} lost",
        flight.exchange,
        format::seconds(flight.elapsed_s),
        format::count(flight.packets.len(), "packet"),
        format::kilobytes(bytes as f64),
        of(Kind::Data),
        of(Kind::Again),
        of(Kind::Control),
        of(Kind::Bare),
    );
    let Some(stages) = stages else { return text + "." };
    let _ = write!(text, ". {}", format::count(stages.bursts, "burst"));
    text += " of the answer. Seconds: ";
    let parts = Stage::ALL.into_iter().map(|stage| (stage, stages.total_s(stage)));
    let parts = parts.filter(|(_, total_s)| *total_s >= MIN_SHOWN_S);
    let parts =
        parts.map(|(stage, total_s)| format!("{} {}", stage.name(), format::seconds(total_s)));
    text + &parts.collect::<Vec<_>>().join(", ") + "."
}
