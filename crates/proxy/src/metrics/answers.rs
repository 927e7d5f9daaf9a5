//! What clients got, by the way it went: statuses, and how long until an answer began.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{family, sample};
use crate::access::Way;

/// Upper bounds of the histogram, in seconds: from a local network to a link of some outage.
const BOUNDS_S: [f64; 14] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];
/// Classes of statuses, in the order of their counters.
const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// Those of one way.
#[derive(Debug, Default)]
pub(super) struct Answers {
    classes: [u64; CLASSES.len()],
    /// Answers that began within a bound, and not within the one before.
    within: [u64; BOUNDS_S.len()],
    began: u64,
    sum_s: f64,
}

impl Answers {
    pub(super) fn count(&mut self, status: Option<u16>, headed: Option<Duration>) {
        let class = status.map_or(0, |status| usize::from(status / 100));
        // What is no status of HTTP is of the last class, as RFC 9110 §15 has it.
        if let Some(count) = self.classes.get_mut(class.min(CLASSES.len() - 1)) {
            *count += 1;
        }
        let Some(headed) = headed else { return };
        let headed_s = headed.as_secs_f64();
        self.began += 1;
        self.sum_s += headed_s;
        let bound = BOUNDS_S.iter().position(|bound| headed_s <= *bound);
        if let Some(count) = bound.and_then(|at| self.within.get_mut(at)) {
            *count += 1;
        }
    }
}

pub(super) fn render(ways: &BTreeMap<Way, Answers>, text: &mut String) {
    let none = Answers::default();
    let all = || Way::ALL.iter().map(|way| (way.name(), ways.get(way).unwrap_or(&none)));
    let name = "responses_total";
    let help = "Exchanges that ended, by their way and the class of the status that came of it.";
    family(text, name, "counter", help);
    for (way, answers) in all() {
        for (class, count) in CLASSES.iter().zip(answers.classes) {
            sample(text, name, &[("way", way), ("class", class)], count);
        }
    }
    let name = "response_latency_seconds";
    family(text, name, "histogram", "From a request's head to its answer's, by its way.");
    for (way, answers) in all() {
        let mut within = 0;
        for (bound, count) in BOUNDS_S.iter().zip(answers.within) {
            within += count;
            let bound = bound.to_string();
            sample(text, &format!("{name}_bucket"), &[("way", way), ("le", &bound)], within);
        }
        let whole = [("way", way), ("le", "+Inf")];
        sample(text, &format!("{name}_bucket"), &whole, answers.began);
        sample(text, &format!("{name}_sum"), &[("way", way)], answers.sum_s);
        sample(text, &format!("{name}_count"), &[("way", way)], answers.began);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_up_and_statuses_have_their_class() {
        let mut ways = BTreeMap::<Way, Answers>::new();
        let answers = ways.entry(Way::Pair).or_default();
        for (status, ms) in
            [(Some(200), Some(7)), (Some(101), Some(70)), (Some(999), Some(900_000))]
        {
            answers.count(status, ms.map(Duration::from_millis));
        }
        answers.count(None, None);
        let mut text = String::new();
        render(&ways, &mut text);
        for line in [
            "responses_total{way=\"pair\",class=\"2xx\"} 1",
            "responses_total{way=\"pair\",class=\"5xx\"} 1",
            "responses_total{way=\"pair\",class=\"1xx\"} 1",
            "responses_total{way=\"pair\",class=\"none\"} 1",
            "responses_total{way=\"direct\",class=\"2xx\"} 0",
            "response_latency_seconds_bucket{way=\"pair\",le=\"0.005\"} 0",
            "response_latency_seconds_bucket{way=\"pair\",le=\"0.01\"} 1",
            "response_latency_seconds_bucket{way=\"pair\",le=\"300\"} 2",
            "response_latency_seconds_bucket{way=\"pair\",le=\"+Inf\"} 3",
            "response_latency_seconds_count{way=\"pair\"} 3",
        ] {
            assert!(text.contains(&format!("longwire_{line}\n")), "{line}\n{text}");
        }
    }
}
