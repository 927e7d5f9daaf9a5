//! A scenario as one HTML file: maps at several times, hops, and what there is.

use std::time::Duration;

use link::losses::NodeId;
use link::medium::Access;
use link::net::Resolved;
use link::units::{format_duration, format_rate};

use super::hops::{Plot, hop_samples};
use super::map::Map;
use super::{STYLE, WIDTH};
use crate::svg::Svg;
use crate::text::escaped;

const SHARED_STYLE: &str = include_str!("../demo/style.css");
/// Most messages of the script that are shown.
const MAX_MESSAGES: usize = 200;

/// A scenario as a whole document, with a map for each time. It is XML too.
#[must_use]
pub fn scenario_page(resolved: &Resolved, times: &[Duration], root: Option<NodeId>) -> String {
    let scenario = &resolved.scenario;
    let mut out = String::new();
    let mut put = |text: &str| out.push_str(text);
    if !scenario.about.is_empty() {
        put(&format!("<p>{}</p>\n", escaped(&scenario.about)));
    }
    put(&format!(
        "<p class='note'>{}, steps of {}, seed {}, fingerprint {:016x}</p>\n",
        format_duration(scenario.duration),
        format_duration(scenario.step),
        scenario.seed,
        resolved.fingerprint()
    ));
    for at in times {
        let map = Map::new(resolved, *at, root);
        let mut svg = Svg::new(WIDTH, map.height());
        svg.style(STYLE);
        svg.bar("paper", (0.0, 0.0), (WIDTH, map.height()), "");
        map.draw(&mut svg);
        put(&format!(
            "<figure>{}</figure>\n",
            svg.finish(&format!("Map at {} s", at.as_secs_f64()))
        ));
    }
    let samples = hop_samples(resolved);
    let plot = Plot::new(&samples, scenario.duration);
    let mut svg = Svg::new(WIDTH, plot.height());
    svg.style(STYLE);
    svg.bar("paper", (0.0, 0.0), (WIDTH, plot.height()), "");
    plot.draw(&mut svg, 0.0, None);
    put(&format!("<figure>{}</figure>\n", svg.finish("Hops over time")));
    put(&media(resolved));
    put(&nodes(resolved));
    put(&messages(resolved));
    document(&scenario.title, &out)
}

/// A page with a heading and what is below it.
pub(super) fn document(title: &str, body: &str) -> String {
    let title = escaped(title);
    format!(
        "<!DOCTYPE html>\n<html xmlns='http://www.w3.org/1999/xhtml' lang='en'>\n<head>\n\
         <meta charset='utf-8'/>\n<title>{title}</title>\n\
         <meta name='viewport' content='width=device-width, initial-scale=1'/>\n\
         <style>\n{SHARED_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}</body>\n\
         </html>\n"
    )
}

fn media(resolved: &Resolved) -> String {
    let row = |(index, net): (usize, &link::net::NetMedium)| {
        let radio = &net.config.radio;
        let rates: Vec<String> = radio
            .rates
            .iter()
            .map(|rate| format!("{} from {} dB", format_rate(rate.rate_bps), rate.from_db))
            .collect();
        let access = match &net.config.access {
            Access::Tdma(tdma) => {
                format!("TDMA, {} slots of {}", tdma.owners.len(), format_duration(tdma.slot))
            }
            Access::Csma(csma) => format!("CSMA, {} attempts", csma.attempts),
        };
        let path_loss = match &net.path_loss {
            link::net::PathLoss::Predicted(model) => model.name(),
            link::net::PathLoss::Replayed(_) => "from a file",
        };
        let members = resolved.scenario.members(index).count();
        [
            net.name.clone(),
            format!("{} MHz", net.frequency_hz / 1e6),
            format!("{} kHz", radio.bandwidth_hz / 1e3),
            access,
            rates.join(", "),
            path_loss.to_owned(),
            members.to_string(),
        ]
    };
    let rows = resolved.scenario.media.iter().enumerate().map(row);
    let heads = ["Channel", "Frequency", "Bandwidth", "Access", "Rates", "Path loss", "Nodes"];
    table("Channels", &heads, rows.map(|row| row.to_vec()).collect())
}

fn nodes(resolved: &Resolved) -> String {
    let scenario = &resolved.scenario;
    let row = |node: &link::net::Node| {
        let groups = scenario.groups.iter().filter(|group| group.nodes.contains(&node.id));
        let groups: Vec<&str> = groups.map(|group| group.name.as_str()).collect();
        let radio = |radio: &link::net::NodeRadio| {
            let net = scenario.media.get(radio.medium).map_or("", |net| net.name.as_str());
            format!("{net} ({} dBm, {} m)", radio.power_dbm, radio.antenna_m)
        };
        let radios: Vec<String> = node.radios.iter().map(radio).collect();
        vec![node.name.clone(), groups.join(", "), radios.join(", ")]
    };
    table("Nodes", &["Node", "Groups", "Radios"], scenario.nodes.iter().map(row).collect())
}

fn messages(resolved: &Resolved) -> String {
    let scenario = &resolved.scenario;
    let row = |message: &link::net::ScriptedMessage| {
        let from = scenario.node(message.from).map_or("", |node| node.name.as_str());
        vec![
            format_duration(message.at),
            from.to_owned(),
            message.to.join(", "),
            message.precedence.clone(),
            message.text.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = scenario.messages.iter().take(MAX_MESSAGES).map(row).collect();
    let title = match scenario.messages.len() {
        0 => return String::new(),
        count if count > MAX_MESSAGES => format!("Messages: the first {MAX_MESSAGES} of {count}"),
        count => format!("Messages: {count}"),
    };
    table(&title, &["At", "From", "To", "Precedence", "Text"], rows)
}

pub(super) fn table(title: &str, heads: &[&str], rows: Vec<Vec<String>>) -> String {
    let cells = |row: &[String], tag: &str| -> String {
        row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect()
    };
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    let rows: String = rows.iter().map(|row| format!("<tr>{}</tr>\n", cells(row, "td"))).collect();
    format!(
        "<h2>{}</h2>\n<div class='wide'><table class='text'>\n<tr>{}</tr>\n{rows}</table></div>\n",
        escaped(title),
        cells(&heads, "th")
    )
}
