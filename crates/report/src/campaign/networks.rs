//! A page for each network: what it is, how near to its bound one gets, a ranking of all cells.

use std::fmt::Write;

use record::campaign::Network;

use super::advice::interval;
use super::cells::link_to;
use super::references::time;
use super::rows::Rows;
use super::view::{Kind, OWN_SERVER, View, describe, kind_name, kinds, services};
use crate::format;
use crate::text::escaped;

/// What the pictures and tables of all networks have in common.
const NOTES: &str = "<p class='note'>The upright bars are what the link allows: one round trip, \
    and the airtime of the answer as it is and of a request in one packet, lost packets sent \
    once more. What is sent in fewer bytes may get below; nothing else can.</p>\n\
    <p class='note'>Tables have the fastest first, by the geometric mean over the services of the \
    time as a share of our own server's, direct, with default settings (where ours was not \
    measured, of the same server's). To default: paired ratio \
    to the same server with default settings (of gzip, to direct where gzip has no default), with \
    its 95 % interval; bold where that leaves out 1. A time leads to its runs.</p>\n";

/// All of them.
pub(super) fn networks(view: &View<'_>) -> String {
    let mut out = format!("<h2 id='networks'>Network by network</h2>\n{NOTES}");
    for network in &view.campaign.networks {
        out += &page(view, network);
    }
    out
}

/// The anchor of a network's page.
pub(super) fn anchor(view: &View<'_>, name: &str) -> String {
    let place = view.campaign.networks.iter().position(|network| network.name == name);
    place.map_or("networks".to_string(), |place| format!("n{place}"))
}

fn page(view: &View<'_>, network: &Network) -> String {
    let name = &network.name;
    let mut out = format!(
        "<h3 id='{}'>{}</h3>\n<p>{}. <span class='note'>{}</span></p>\n",
        anchor(view, name),
        escaped(name),
        escaped(&describe(network)),
        escaped(&network.source),
    );
    out += &settings(network);
    let all: Vec<usize> = view.of_network(name).collect();
    if all.is_empty() {
        return out + "<p class='note'>Nothing was measured.</p>\n";
    }
    let defaults: Vec<usize> =
        all.iter().copied().filter(|index| view.cell(*index).settings.is_empty()).collect();
    if !defaults.is_empty() {
        let rows = Rows {
            view,
            network: name,
            services: services(view, &defaults),
            kinds: kinds(view, &defaults),
            guides: false,
            bounds: true,
        };
        let (drawing, scale) = rows.draw(&format!("Ways and servers over {name}"));
        let _ = writeln!(
            out,
            "<figure>{drawing}<figcaption>Every way and server with default settings, {scale}.\
             </figcaption></figure>"
        );
    }
    out + &ranking(view, name, &all)
}

fn settings(network: &Network) -> String {
    let on = network.settings.iter().map(|(name, value)| format!("{name} = {value}"));
    let on = on.collect::<Vec<_>>().join(", ");
    if on.is_empty() {
        return String::new();
    }
    format!(
        "<details><summary>All settings of the link</summary><p class='note'>{}</p></details>\n",
        escaped(&on)
    )
}

/// Every kind of cell, the fastest first.
fn ranking(view: &View<'_>, network: &str, all: &[usize]) -> String {
    let services = services(view, all);
    let mut kinds: Vec<(Option<f64>, Kind<'_>)> = kinds(view, all)
        .into_iter()
        .map(|kind| (standing(view, network, &services, kind), kind))
        .collect();
    kinds.sort_by(|(one, _), (other, _)| {
        one.unwrap_or(f64::INFINITY).total_cmp(&other.unwrap_or(f64::INFINITY))
    });
    let mut out = "<div class='wide'><table class='dense ranking'>\n\
                   <tr><th>server, way, settings</th><th>of direct</th>"
        .to_string();
    for service in &services {
        let service = escaped(format::service_name(service));
        let _ = write!(out, "<th>{service}, s</th><th>to default</th>");
    }
    out += "</tr>\n";
    for (standing, kind) in kinds {
        let standing = standing.map_or("–".to_string(), format::ratio);
        let _ = write!(out, "<tr><td>{}</td><td>{standing}</td>", escaped(&kind_name(kind)));
        for service in &services {
            out += &entry(view, view.find(network, service, kind));
        }
        out += "</tr>\n";
    }
    out + "</table></div>\n"
}

/// A kind's times as shares of the default's, geometric mean over services that have both.
fn standing(view: &View<'_>, network: &str, services: &[&str], kind: Kind<'_>) -> Option<f64> {
    let median = |service, kind| {
        let index = view.find(network, service, kind)?;
        view.summary(index).median_s.filter(|median_s| *median_s > 0.0)
    };
    let default = |server| (server, record::campaign::Way::Direct, &[][..]);
    let is_ours = services.iter().any(|service| median(service, default(OWN_SERVER)).is_some());
    let default = default(if is_ours { OWN_SERVER } else { kind.0 });
    let logs: Vec<f64> = services
        .iter()
        .filter_map(|service| Some(median(service, kind)?.ln() - median(service, default)?.ln()))
        .collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

fn entry(view: &View<'_>, index: Option<usize>) -> String {
    let Some(index) = index else { return "<td></td><td></td>".to_string() };
    let time = link_to(index, &time(view.summary(index)));
    let ratio = view.comparison(index).and_then(|one| {
        let text = format!("{}{}", format::ratio(one.ratio?), interval(one.interval));
        Some(if view.clear_ratio(index).is_some() { format!("<b>{text}</b>") } else { text })
    });
    format!("<td>{time}</td><td>{}</td>", ratio.unwrap_or_default())
}
