//! The picture of a link: two hosts, and for each direction what a packet passes on its way.

use link::Direction;
use serde_json::Value;

use crate::page::escaped;
use crate::sample::settings;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 210.0;
const HOST_WIDTH: f64 = 96.0;
const STAGE_WIDTH: f64 = 138.0;
const STAGE_HEIGHT: f64 = 62.0;
const LANES: [f64; 2] = [26.0, 122.0];

/// What a packet passes, in order, with the field that its picture leads to.
const STAGES: [(&str, &str); 3] = [("queue", "queue_bytes"), ("rate", "rate"), ("delay", "delay")];

/// The drawing. Texts and the level of each queue have ids for what follows the link live.
pub(super) fn svg(status: &Value) -> String {
    let hosts = [("a", 8.0), ("b", WIDTH - HOST_WIDTH - 8.0)].map(|(name, x)| {
        let at = &status["hosts"][usize::from(name == "b")]["address"];
        let address = escaped(at.as_str().unwrap_or_default());
        let middle = x + HOST_WIDTH / 2.0;
        format!(
            "<rect class=\"host\" x=\"{x}\" y=\"20\" width=\"{HOST_WIDTH}\" height=\"170\" \
             rx=\"8\"/><text class=\"name\" x=\"{middle}\" y=\"100\">host {name}</text>\
             <text class=\"small\" x=\"{middle}\" y=\"120\">{address}</text>"
        )
    });
    let lanes = Direction::BOTH.map(|direction| lane(status, direction));
    format!(
        "<svg class=\"topology\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"group\" \
         aria-label=\"Hosts a and b and the link between them\">\n\
         <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto\"><path class=\"tip\" d=\"M0 0L8 4L0 8Z\"/></marker>\
         </defs>\n{}\n{}\n</svg>\n",
        hosts.concat(),
        lanes.concat()
    )
}

fn lane(status: &Value, direction: Direction) -> String {
    let of = settings(status, direction);
    let text = |key: &str| of.get(key).and_then(Value::as_str).unwrap_or("–");
    let (side, forth) = (direction.name(), direction == Direction::Ab);
    let y = LANES[usize::from(!forth)];
    let (from, to) = (8.0 + HOST_WIDTH, WIDTH - HOST_WIDTH - 8.0);
    let middle = y + STAGE_HEIGHT / 2.0;
    let (begin, end) = if forth { (from, to) } else { (to, from) };
    let mut out =
        format!("<path class=\"way\" d=\"M{begin} {middle}H{end}\" marker-end=\"url(#tip)\"/>");
    let gap = (to - from - 3.0 * STAGE_WIDTH) / 4.0;
    for (place, (stage, key)) in STAGES.into_iter().enumerate() {
        let place = if forth { place } else { STAGES.len() - 1 - place };
        let steps = [0.0, 1.0, 2.0][place];
        let x = from + gap + steps * (STAGE_WIDTH + gap);
        let centre = x + STAGE_WIDTH / 2.0;
        let loss = text("loss");
        let (value, extra) = match stage {
            "queue" => (
                format!("≤ {}", limit(text("queue_packets"), text("queue_bytes"))),
                "0 B waiting".to_string(),
            ),
            "rate" if text("trace") != "none" => {
                (format!("trace {}", text("trace")), format!("loss {loss}"))
            }
            "rate" => (text("rate").to_string(), format!("loss {loss}")),
            _ => (text("delay").to_string(), format!("± {}", text("jitter"))),
        };
        let level = match stage {
            "queue" => format!(
                "<rect class=\"level\" id=\"level-{side}\" x=\"{x}\" y=\"{y}\" width=\"0\" \
                 height=\"{STAGE_HEIGHT}\" data-full=\"{STAGE_WIDTH}\"/>"
            ),
            _ => String::new(),
        };
        out += &format!(
            "<a href=\"#f-{side}-{key}\" aria-label=\"{stage}, {side}: to its field\">\
             <rect class=\"stage\" x=\"{x}\" y=\"{y}\" width=\"{STAGE_WIDTH}\" \
             height=\"{STAGE_HEIGHT}\" rx=\"4\"/>{level}\
             <text class=\"small\" x=\"{centre}\" y=\"{}\">{stage}</text>\
             <text class=\"value\" id=\"{stage}-{side}\" x=\"{centre}\" y=\"{}\">{}</text>\
             <text class=\"small\" id=\"{stage}-{side}-more\" x=\"{centre}\" y=\"{}\">{}</text>\
             </a>\n",
            y + 15.0,
            y + 35.0,
            escaped(&value),
            y + 53.0,
            escaped(&extra),
        );
    }
    out
}

/// The two limits of a queue as people say them.
fn limit(packets: &str, bytes: &str) -> String {
    match (packets, bytes) {
        ("none", "none") => "no limit".to_string(),
        ("none", bytes) => bytes.to_string(),
        (packets, "none") => format!("{packets} packets"),
        (packets, bytes) => format!("{packets} packets, {bytes}"),
    }
}
