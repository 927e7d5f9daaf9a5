//! What a link does now: the difference between two looks at its lab.

use std::collections::BTreeMap;

use link::Direction;
use serde_json::{Map, Value, json};

/// Settings by key without prefix, as texts, of one direction.
pub type Settings = Map<String, Value>;

/// What is in force in one direction of a lab's link, as its status has it.
#[must_use]
pub fn settings(status: &Value, direction: Direction) -> Settings {
    let of = &status[direction.name()];
    let text = |key: &link::Key| of[key.name].as_str().map(|value| (key.name, value));
    let all = link::keys().iter().filter_map(text);
    all.map(|(key, value)| (key.to_string(), value.into())).collect()
}

/// A point of the charts: what each direction did between two statuses of a lab, `seconds` apart.
/// `unix_s` is when the second was taken. `None` where the emulator does not count.
#[must_use]
pub fn sample(before: &Value, now: &Value, seconds: f64, unix_s: f64) -> Option<Value> {
    if seconds <= 0.0 || now["ab"]["traffic"].is_null() || before["ab"]["traffic"].is_null() {
        return None;
    }
    let mut point = json!({"t": rounded(unix_s, 3)});
    for side in Direction::BOTH.map(Direction::name) {
        point[side] = direction(&before[side], &now[side], seconds);
    }
    Some(point)
}

fn direction(before: &Value, now: &Value, seconds: f64) -> Value {
    let grown = |key: &str| {
        let count = |of: &Value| of["traffic"][key].as_u64().unwrap_or(0);
        count(now).saturating_sub(count(before))
    };
    let bps = |key: &str| rounded(8.0 * grown(key) as f64 / seconds, 0);
    let dropped = |of: &Value| -> u64 {
        let all = of["traffic"]["dropped"].as_object().into_iter().flatten();
        all.filter_map(|(_, count)| count.as_u64()).sum()
    };
    let lost = dropped(now).saturating_sub(dropped(before));
    let packets = grown("packets_in");
    let queue_bytes = now["queued_bytes"].as_u64().unwrap_or(0);
    json!({
        "in_bps": bps("bytes_in"),
        "out_bps": bps("bytes_out"),
        "packets": packets,
        "lost": lost,
        "queue_bytes": queue_bytes,
        "delay_ms": delay_ms(now, queue_bytes).map(|delay| rounded(delay, 3)),
        "late_us": late_us(&before["lateness"], &now["lateness"]),
    })
}

/// What a packet that comes now takes: through the queue, then the delay that is set.
fn delay_ms(of: &Value, queue_bytes: u64) -> Option<f64> {
    let delay = link::units::parse_duration(of["delay"].as_str()?).ok()?;
    let rate_bps = of["rate"].as_str().and_then(|rate| link::units::parse_rate(rate).ok());
    let queued_ms =
        rate_bps.filter(|rate| *rate > 0).map_or(0.0, |bps| 8e3 * queue_bytes as f64 / bps as f64);
    Some(1e3 * delay.as_secs_f64() + queued_ms)
}

/// The lateness that all but one packet in a hundred of those in between stayed below.
fn late_us(before: &Value, now: &Value) -> Option<u64> {
    let bins = |of: &Value| -> BTreeMap<u64, u64> {
        let pairs = of["bins"].as_array().into_iter().flatten();
        pairs.filter_map(|pair| Some((pair[0].as_u64()?, pair[1].as_u64()?))).collect()
    };
    let earlier = bins(before);
    let fresh: Vec<(u64, u64)> = bins(now)
        .into_iter()
        .map(|(upto_us, count)| {
            (upto_us, count.saturating_sub(earlier.get(&upto_us).copied().unwrap_or(0)))
        })
        .collect();
    let all: u64 = fresh.iter().map(|(_, count)| count).sum();
    let mut seen = 0;
    fresh.iter().find_map(|(upto_us, count)| {
        seen += count;
        (all > 0 && 100 * seen >= 99 * all).then_some(*upto_us)
    })
}

fn rounded(value: f64, places: i32) -> f64 {
    let scale = 10_f64.powi(places);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(bytes: u64, lost: u64, bins: &[(u64, u64)]) -> Value {
        let one = json!({
            "rate": "80 kbit/s", "delay": "250 ms", "loss": "0 %", "queued_bytes": 1000,
            "traffic": {"packets_in": bytes / 100, "bytes_in": bytes, "bytes_out": bytes / 2,
                "dropped": {"loss": lost, "queue": 1}},
            "lateness": {"bins": bins},
        });
        json!({"ab": one, "ba": one})
    }

    #[test]
    fn a_point_is_what_happened_in_between() {
        let (before, now) = (status(1000, 2, &[(50, 9)]), status(6000, 5, &[(50, 107), (900, 2)]));
        let point = sample(&before, &now, 0.5, 12.3456789).unwrap();
        let ab = &point["ab"];
        assert_eq!(point["t"], 12.346);
        assert_eq!((ab["in_bps"].as_f64(), ab["out_bps"].as_f64()), (Some(80e3), Some(40e3)));
        assert_eq!((ab["packets"].as_u64(), ab["lost"].as_u64()), (Some(50), Some(3)));
        // 1000 B at 80 kbit/s are 100 ms.
        assert_eq!(ab["delay_ms"], 350.0);
        assert_eq!(ab["late_us"], 900, "two of a hundred were later than 50 us");
        assert_eq!(sample(&before, &before, 0.5, 0.0).unwrap()["ab"]["late_us"], Value::Null);
    }

    #[test]
    fn a_lab_that_does_not_count_has_no_points() {
        let plain = json!({"ab": {"delay": "1 ms"}, "ba": {"delay": "1 ms"}});
        assert_eq!(sample(&plain, &plain, 1.0, 0.0), None);
        assert_eq!(sample(&status(0, 0, &[]), &status(0, 0, &[]), 0.0, 0.0), None);
        let known = settings(&plain, Direction::Ba);
        assert_eq!(known.get("delay").and_then(Value::as_str), Some("1 ms"));
        assert_eq!(known.len(), 1);
    }
}
