//! What came of choices, service by service: what was expected, what was measured, and the best in
//! hindsight. The difference of the last two is the regret.

use std::collections::{BTreeMap, VecDeque};

use record::decision::{Decision, Outcome, Parts, Split};

use super::{family, sample};

/// Services that are counted apart; the rest together. A series each, and a request can name any.
const MAX_SERVICES: usize = 64;
/// The rest.
const OTHER: &str = "other";
/// Longest name of a service that is kept whole, in bytes.
const MAX_NAME_BYTES: usize = 128;
/// Choices whose outcome may still come; beyond it the oldest is counted among the rest.
const MAX_AWAITED: usize = 1024;

/// A choice whose outcome is not known.
#[derive(Debug)]
struct Awaited {
    service: String,
    /// What the others would have given.
    others: Vec<Parts>,
}

/// What came of choices for one service.
#[derive(Debug, Default)]
struct Sums {
    outcomes: u64,
    expected_s: f64,
    actual_s: f64,
    best_s: f64,
    /// What each part of an expectation was off by, whichever way.
    errors_s: Split,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Services {
    sums: BTreeMap<String, Sums>,
    awaited: BTreeMap<String, Awaited>,
    /// Exchanges of `awaited`, the oldest first.
    order: VecDeque<String>,
}

impl Services {
    /// Keeps a choice until its outcome is known.
    pub(super) fn chosen(&mut self, exchange: &str, encoding: &str, decision: &Decision) {
        let name = &decision.service;
        let service = name[..name.floor_char_boundary(MAX_NAME_BYTES)].to_owned();
        let others = decision.candidates.iter().filter(|other| other.encoding != encoding);
        let others = others.map(|other| other.expected).collect();
        let awaited = Awaited { service, others };
        if self.awaited.insert(exchange.to_owned(), awaited).is_none() {
            self.order.push_back(exchange.to_owned());
        }
        if self.order.len() > MAX_AWAITED
            && let Some(oldest) = self.order.pop_front()
        {
            self.awaited.remove(&oldest);
        }
    }

    /// Counts an outcome.
    pub(super) fn came(&mut self, exchange: &str, outcome: &Outcome) {
        let Awaited { service, others } = match self.awaited.remove(exchange) {
            Some(awaited) => {
                self.order.retain(|other| other != exchange);
                awaited
            }
            None => Awaited { service: OTHER.to_owned(), others: Vec::new() },
        };
        let known = self.sums.contains_key(&service) || self.sums.len() < MAX_SERVICES;
        let sums = self.sums.entry(if known { service } else { OTHER.to_owned() }).or_default();
        let actual_s = outcome.actual.total_s();
        let hindsight = others.iter().map(|other| outcome.hindsight_s(other));
        sums.outcomes += 1;
        sums.expected_s += outcome.expected.total_s();
        sums.actual_s += actual_s;
        sums.best_s += hindsight.fold(actual_s, f64::min);
        sums.errors_s.encode_s += outcome.split.encode_s.abs();
        sums.errors_s.decode_s += outcome.split.decode_s.abs();
        sums.errors_s.network_s += outcome.split.network_s.abs();
        sums.errors_s.size_s += outcome.split.size_s.abs();
    }

    pub(super) fn render(&self, text: &mut String) {
        let name = "outcomes_total";
        family(text, name, "counter", "Choices whose outcome is known, by service.");
        for (service, sums) in &self.sums {
            sample(text, name, &[("service", service)], sums.outcomes);
        }
        let name = "message_seconds_total";
        let help = "Time of messages whose outcome is known: expected, measured, and with what \
                    would have been the best encoding in hindsight.";
        family(text, name, "counter", help);
        for (service, sums) in &self.sums {
            let kinds =
                [("expected", sums.expected_s), ("actual", sums.actual_s), ("best", sums.best_s)];
            for (kind, seconds) in kinds {
                sample(text, name, &[("service", service), ("kind", kind)], seconds);
            }
        }
        let name = "prediction_error_seconds_total";
        family(text, name, "counter", "What expectations were off by, whichever way, by part.");
        for (service, sums) in &self.sums {
            let errors = &sums.errors_s;
            let parts = [
                ("encode", errors.encode_s),
                ("decode", errors.decode_s),
                ("network", errors.network_s),
                ("size", errors.size_s),
            ];
            for (part, seconds) in parts {
                sample(text, name, &[("service", service), ("part", part)], seconds);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use record::decision::{Candidate, Link};

    use super::*;

    fn parts(network_s: f64) -> Parts {
        Parts { network_s, ..Parts::default() }
    }

    fn decision(service: &str) -> Decision {
        let candidate = |encoding: &str, network_s| Candidate {
            encoding: encoding.to_owned(),
            expected: parts(network_s),
        };
        Decision {
            service: service.to_owned(),
            peer: None,
            class: String::new(),
            content_type: None,
            body_bytes: 1,
            head_share: 1.0,
            objective: "time".to_owned(),
            expected: parts(1.0),
            candidates: vec![candidate("identity", 0.5), candidate("zstd:3", 1.0)],
            forbidden: Vec::new(),
            link: Link::default(),
            probe: None,
            base: None,
            edgeless: false,
            route: None,
        }
    }

    /// It took 1.5 s where the model says 1 s for the bytes.
    fn outcome() -> Outcome {
        Outcome {
            encoding: "zstd:3".to_owned(),
            body_bytes: 1,
            expected: parts(1.0),
            actual: parts(1.5),
            split: Split { network_s: 0.5, ..Split::default() },
            revisions: Vec::new(),
        }
    }

    fn rendered(services: &Services) -> String {
        let mut text = String::new();
        services.render(&mut text);
        text
    }

    #[test]
    fn what_came_of_choices_is_reported_by_service_with_the_best_in_hindsight() {
        let mut services = Services::default();
        for exchange in ["1", "2"] {
            services.chosen(exchange, "zstd:3", &decision("http://a"));
            services.came(exchange, &outcome());
        }
        // Nobody remembers its choice.
        services.came("2", &outcome());
        let text = rendered(&services);
        for sample in [
            "outcomes_total{service=\"http://a\"} 2\n",
            "outcomes_total{service=\"other\"} 1\n",
            "message_seconds_total{service=\"http://a\",kind=\"expected\"} 2\n",
            "message_seconds_total{service=\"http://a\",kind=\"actual\"} 3\n",
            // As it is: 0.5 s, on a network that was half again as slow.
            "message_seconds_total{service=\"http://a\",kind=\"best\"} 1.5\n",
            "message_seconds_total{service=\"other\",kind=\"best\"} 1.5\n",
            "prediction_error_seconds_total{service=\"http://a\",part=\"network\"} 1\n",
        ] {
            assert!(text.contains(&format!("longwire_{sample}")), "{sample}{text}");
        }
    }

    #[test]
    fn whatever_requests_name_there_are_only_so_many_series() {
        let mut services = Services::default();
        for number in 0..2000 {
            let exchange = number.to_string();
            let name = format!("http://{number}.{}", "\u{e9}".repeat(10_000));
            services.chosen(&exchange, "zstd:3", &decision(&name));
            services.chosen(&format!("lost {number}"), "zstd:3", &decision(&name));
            services.came(&exchange, &outcome());
        }
        let text = rendered(&services);
        assert_eq!(text.matches("longwire_outcomes_total{").count(), MAX_SERVICES + 1);
        assert!(text.contains("{service=\"other\"} 1936\n"));
        assert!(text.len() < 500 * MAX_SERVICES * 8, "{} bytes", text.len());
        assert_eq!(services.order.len(), services.awaited.len());
        assert!(services.order.len() <= MAX_AWAITED);
    }
}
