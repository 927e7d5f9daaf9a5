//! What an operator has done to publications by their topic: the first rule that fits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proto::urgency::Urgency;

use crate::filter::matches;
use crate::publication::{Grade, Publication};

/// Topics whose last passage is remembered for rules that thin out; the oldest make room.
const MAX_THINNED: usize = 65_536;

/// What is done to the publications of some topics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// Which topics: a filter of MQTT.
    pub filter: String,
    /// They are not taken further.
    pub block: bool,
    /// A newer one takes the place of an older that still waits.
    pub conflate: bool,
    /// At most one in so long passes; the others are dropped, retained ones too.
    pub thin: Option<Duration>,
    /// How long one is of use that says nothing of it.
    pub expiry: Option<Duration>,
    /// Highest grade.
    pub max_grade: Option<Grade>,
    /// How urgent they are.
    pub urgency: Option<Urgency>,
    /// Media type of those that name none.
    pub content_type: Option<String>,
    /// Whether they are retained, whatever the publisher says.
    pub retain: Option<bool>,
    /// The beginning of their topics, and what takes its place.
    pub rename: Option<(String, String)>,
}

/// The rules in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// The rules.
    pub rules: Vec<Rule>,
}

/// What becomes of a publication by its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It goes on; a newer one may take its place in queues.
    Passes {
        /// May it be replaced.
        conflate: bool,
    },
    /// It ends here, by rule.
    Blocked,
    /// It ends here, as one has passed just before.
    Thinned,
}

/// When a topic's last publication passed.
#[derive(Debug, Default)]
pub(crate) struct Passages {
    last: BTreeMap<Arc<str>, Duration>,
}

impl Rules {
    /// The rule of a topic.
    pub(crate) fn of(&self, topic: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| matches(&rule.filter, topic))
    }

    /// Changes a publication by the first rule that fits its topic.
    pub(crate) fn apply(
        &self,
        now: Duration,
        passages: &mut Passages,
        publication: &mut Publication,
    ) -> Verdict {
        let Some(rule) = self.of(&publication.topic) else {
            return Verdict::Passes { conflate: false };
        };
        if rule.block {
            return Verdict::Blocked;
        }
        if let Some(interval) = rule.thin
            && !passages.pass(now, &publication.topic, interval)
        {
            return Verdict::Thinned;
        }
        if let (Some(expiry), None) = (rule.expiry, publication.deadline) {
            publication.deadline = Some(now.saturating_add(expiry));
        }
        if let Some(max) = rule.max_grade {
            publication.grade = publication.grade.min(max);
        }
        publication.urgency = rule.urgency.unwrap_or(publication.urgency);
        publication.retain = rule.retain.unwrap_or(publication.retain);
        if let Some(content_type) = &rule.content_type {
            publication.details_mut().content_type.get_or_insert_with(|| content_type.clone());
        }
        if let Some((from, to)) = &rule.rename
            && let Some(rest) = publication.topic.strip_prefix(from.as_str())
        {
            publication.topic = format!("{to}{rest}").into();
        }
        Verdict::Passes { conflate: rule.conflate }
    }
}

impl Rules {
    /// Whether a newer publication takes the place of an older one of this topic, which may have
    /// its name by a rule.
    pub(crate) fn conflates(&self, topic: &str) -> bool {
        let is_of = |rule: &Rule| match &rule.rename {
            Some((from, to)) => topic
                .strip_prefix(to.as_str())
                .is_some_and(|rest| matches(&rule.filter, &format!("{from}{rest}"))),
            None => matches(&rule.filter, topic),
        };
        self.rules.iter().find(|rule| is_of(rule)).is_some_and(|rule| rule.conflate)
    }
}

impl Passages {
    fn pass(&mut self, now: Duration, topic: &Arc<str>, interval: Duration) -> bool {
        if let Some(last) = self.last.get_mut(topic) {
            if now < last.saturating_add(interval) {
                return false;
            }
            *last = now;
            return true;
        }
        if self.last.len() >= MAX_THINNED {
            let oldest =
                self.last.iter().min_by_key(|(_, at)| **at).map(|(topic, _)| topic.clone());
            oldest.and_then(|topic| self.last.remove(&topic));
        }
        self.last.insert(topic.clone(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Protocol;

    fn publication(topic: &str) -> Publication {
        Publication::new(Protocol::Mqtt, topic, "x")
    }

    #[test]
    fn the_first_rule_that_fits_is_the_only_one() {
        let rules = Rules {
            rules: vec![
                Rule {
                    filter: "track/#".into(),
                    conflate: true,
                    expiry: Some(Duration::from_secs(60)),
                    max_grade: Some(Grade::AtMostOnce),
                    content_type: Some("application/json".into()),
                    rename: Some(("track/".into(), "nato/nor/".into())),
                    ..Rule::default()
                },
                Rule { filter: "#".into(), block: true, ..Rule::default() },
            ],
        };
        let mut passages = Passages::default();
        let mut one = publication("track/7");
        one.grade = Grade::ExactlyOnce;
        let now = Duration::from_secs(5);
        assert_eq!(rules.apply(now, &mut passages, &mut one), Verdict::Passes { conflate: true });
        assert_eq!(&*one.topic, "nato/nor/7");
        assert_eq!(one.grade, Grade::AtMostOnce);
        assert_eq!(one.deadline, Some(Duration::from_secs(65)));
        assert_eq!(one.details_mut().content_type.as_deref(), Some("application/json"));
        let mut other = publication("other");
        assert_eq!(rules.apply(now, &mut passages, &mut other), Verdict::Blocked);
    }

    #[test]
    fn one_passes_in_an_interval_of_each_topic() {
        let thin = Some(Duration::from_secs(10));
        let rules = Rules { rules: vec![Rule { filter: "#".into(), thin, ..Rule::default() }] };
        let mut passages = Passages::default();
        let mut passes = |at: u64, topic: &str| {
            let now = Duration::from_secs(at);
            rules.apply(now, &mut passages, &mut publication(topic)) != Verdict::Thinned
        };
        assert!(passes(0, "a") && passes(1, "b") && !passes(9, "a"));
        assert!(passes(10, "a") && !passes(10, "b") && passes(11, "b"));
    }
}
