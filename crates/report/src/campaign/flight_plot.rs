//! The picture of one exchange: packets between two lines of time, and a strip of stages.

use std::fmt::Write;

use record::campaign::Flight;
use record::packets::{PacketEvent, Toward};

use super::stages::{Kind, Stage, Stages, kinds};
use crate::format;
use crate::svg::{Anchor, LinearScale, Svg};

const WIDTH: f64 = 960.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = WIDTH - 12.0;
const CLIENT: f64 = 46.0;
const SERVICE: f64 = 166.0;
const HEIGHT: f64 = 196.0;
const STRIP: f64 = 14.0;
const STRIP_TOP: f64 = 18.0;
/// So many packets are drawn.
const MAX_PACKETS: usize = 600;
/// A letter in the strip.
const LETTER: f64 = 5.6;

/// The drawing.
pub(super) fn plot(flight: &Flight, stages: Option<&Stages>) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT);
    let scale = LinearScale::up_to(flight.elapsed_s, LEFT, RIGHT);
    for tick in scale.ticks() {
        let x = scale.at(tick);
        svg.line("grid", (x, CLIENT), (x, SERVICE));
        let text = format!("{tick:.4}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        svg.text(x, SERVICE + 14.0, "tick", Anchor::Middle, text);
    }
    svg.text(RIGHT, HEIGHT - 2.0, "tick", Anchor::End, "seconds");
    packets(&mut svg, flight, &scale);
    for (name, y) in [("client", CLIENT), ("service", SERVICE)] {
        svg.text(LEFT - 8.0, y + 4.0, "label", Anchor::End, name);
        svg.line("host", (LEFT, y), (RIGHT, y));
    }
    if let Some(stages) = stages {
        strip(&mut svg, stages, &scale);
    }
    if flight.packets.len() > MAX_PACKETS {
        let text = format!("the first {MAX_PACKETS} of {} packets", flight.packets.len());
        svg.text(LEFT, HEIGHT - 2.0, "tick", Anchor::Start, &text);
    }
    svg.finish(&format!("Packets of {}", flight.exchange))
}

/// All packets of a class in one path, and crosses where one was lost.
fn packets(svg: &mut Svg, flight: &Flight, scale: &LinearScale) {
    let shown = flight.packets.get(..MAX_PACKETS).unwrap_or(&flight.packets);
    let kinds = kinds(shown);
    let latest_s = flight.elapsed_s;
    let classes = ["bare", "control", "ask", "data", "again"];
    for class in classes {
        let mut steps = String::new();
        for (packet, kind) in shown.iter().zip(&kinds) {
            if class_of(packet, *kind) == class {
                slanted(&mut steps, packet, flight, scale);
            }
        }
        if !steps.is_empty() {
            svg.path(&format!("packet {class}"), &steps, "");
        }
    }
    let mut crosses = String::new();
    let lost = shown.iter().filter(|packet| packet.dropped.is_some());
    for packet in lost {
        let at_s = packet.offered.as_secs_f64() - flight.start_s;
        if (0.0..=latest_s).contains(&at_s) {
            let (x, y) = (scale.at(at_s), (CLIENT + SERVICE) / 2.0);
            let _ = write!(crosses, "M{:.0} {:.0}l8 8m0-8l-8 8", x - 4.0, y - 4.0);
        }
    }
    if !crosses.is_empty() {
        svg.path("packet lost", &crosses, "lost");
    }
}

fn class_of(packet: &PacketEvent, kind: Kind) -> &'static str {
    match (kind, packet.toward) {
        (Kind::Bare, _) => "bare",
        (Kind::Control, _) => "control",
        (Kind::Again, _) => "again",
        (Kind::Data, Toward::Service) => "ask",
        (Kind::Data, Toward::Client) => "data",
    }
}

/// From offered to delivered; half the way, straight down, for one that never was. What was offered
/// after the end of the exchange is left out, what was under way then ends at the edge.
fn slanted(steps: &mut String, packet: &PacketEvent, flight: &Flight, scale: &LinearScale) {
    let since = |at: std::time::Duration| at.as_secs_f64() - flight.start_s;
    let offered_s = since(packet.offered);
    if !(0.0..=flight.elapsed_s).contains(&offered_s) {
        return;
    }
    let (from, to) = match packet.toward {
        Toward::Service => (CLIENT, SERVICE),
        Toward::Client => (SERVICE, CLIENT),
    };
    let x = scale.at(offered_s);
    let _ = match packet.delivered.map(since) {
        Some(delivered_s) => {
            write!(steps, "M{x:.1} {from:.0}L{:.1} {to:.0}", scale.at(delivered_s))
        }
        None => write!(steps, "M{x:.1} {from:.0}V{:.0}", (from + to) / 2.0),
    };
}

/// The stages on the same scale of time, named where there is room.
fn strip(svg: &mut Svg, stages: &Stages, scale: &LinearScale) {
    for (stage, from_s, to_s) in &stages.parts {
        let (from, to) = (scale.at(*from_s), scale.at(*to_s));
        let title = format!("{}: {} s", stage.name(), format::seconds(to_s - from_s));
        svg.bar(stage.class(), (from, STRIP_TOP - STRIP), (to - from, STRIP), &title);
        let class = match stage {
            Stage::FirstByte | Stage::Gap => "on-light",
            _ => "on-stage",
        };
        let room = to - from;
        let text = [title.as_str(), stage.name()]
            .into_iter()
            .find(|text| LETTER * text.chars().count() as f64 + 4.0 < room);
        if let Some(text) = text {
            svg.text((from + to) / 2.0, STRIP_TOP - 3.5, class, Anchor::Middle, text);
        }
    }
}
