//! What happens, from where it is seen to the streams that tell of it: one ring for all, and for
//! each topic that somebody follows a task that looks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use tokio::sync::watch;
use web::events::{Event, Ring};

/// How often what somebody follows is looked at: a status costs a lab 0.6 ms.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// The kind of events that say how a campaign stands.
pub(crate) const RUN: &str = "run";
/// Most events of a topic that a stream begins with.
const MAX_SNAPSHOT_EVENTS: usize = 600;

/// The ring and who follows what.
pub(crate) struct Hub {
    inner: Mutex<Inner>,
    /// Says that there is something new: the number of the last event.
    news: watch::Sender<u64>,
}

#[derive(Default)]
struct Inner {
    ring: Ring,
    followers: BTreeMap<String, usize>,
    /// Topics that a task looks at.
    looked_at: BTreeSet<String>,
}

/// Keeps a topic looked at until dropped.
pub(crate) struct Follower {
    hub: Arc<Hub>,
    topic: String,
}

impl Hub {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { inner: Mutex::default(), news: watch::Sender::new(0) })
    }

    /// Takes an event in.
    pub(crate) fn push(&self, topic: &str, kind: &'static str, facts: &Value) {
        let last = {
            let mut inner = self.inner();
            inner.ring.push(topic, kind, facts.to_string());
            inner.ring.last()
        };
        self.news.send_replace(last);
    }

    /// Follows a topic; whether no task looks at it, so that one has to begin.
    pub(crate) fn follow(self: &Arc<Self>, topic: &str) -> (Follower, bool) {
        let mut inner = self.inner();
        *inner.followers.entry(topic.to_string()).or_default() += 1;
        let is_first = inner.looked_at.insert(topic.to_string());
        drop(inner);
        (Follower { hub: Arc::clone(self), topic: topic.to_string() }, is_first)
    }

    /// Whether anybody follows a topic; where nobody does, the task that looks at it has to end.
    pub(crate) fn is_followed(&self, topic: &str) -> bool {
        let mut inner = self.inner();
        let is_followed = inner.followers.contains_key(topic);
        if !is_followed {
            inner.looked_at.remove(topic);
        }
        is_followed
    }

    /// Whether anybody follows a topic, for who does not look at it.
    pub(crate) fn has_followers(&self, topic: &str) -> bool {
        self.inner().followers.contains_key(topic)
    }

    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// The number of the last event, and those after one; `None` when some are gone.
    pub(crate) fn after(&self, id: u64, topics: &[String]) -> Option<(u64, Vec<Event>)> {
        let inner = self.inner();
        inner.ring.after(id, topics).map(|events| (inner.ring.last(), events))
    }

    /// The number of the last event, and for each topic what is known of it, by kind.
    pub(crate) fn snapshot(&self, topics: &[String]) -> (u64, Vec<Value>) {
        let inner = self.inner();
        let one = |topic: &String| {
            let mut kinds: Map<String, Value> = Map::new();
            for event in inner.ring.latest(topic, MAX_SNAPSHOT_EVENTS) {
                let all = kinds.entry(event.kind).or_insert_with(|| json!([]));
                let facts = serde_json::from_str(&event.data).unwrap_or_default();
                if let Some(all) = all.as_array_mut() {
                    if event.kind == RUN {
                        // Each says all that there is to say.
                        all.clear();
                    }
                    all.push(facts);
                }
            }
            kinds.insert("topic".to_string(), topic.as_str().into());
            Value::Object(kinds)
        };
        (inner.ring.last(), topics.iter().map(one).collect())
    }

    /// Nothing panics while it holds the lock; if something did, the ring is still whole.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut inner = self.hub.inner();
        if let Some(count) = inner.followers.get_mut(&self.topic) {
            *count -= 1;
            if *count == 0 {
                inner.followers.remove(&self.topic);
            }
        }
    }
}

/// Now, in seconds since 1970.
pub(crate) fn unix_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_task_looks_at_a_topic_however_often_pages_are_loaded() {
        let hub = Hub::new();
        let (first, begins) = hub.follow("link:a");
        assert!(begins);
        // A page is loaded again before the task has looked.
        drop(first);
        let (second, begins) = hub.follow("link:a");
        assert!(!begins && hub.is_followed("link:a"));
        drop(second);
        assert!(!hub.is_followed("link:a"), "the task ends");
        assert!(hub.follow("link:a").1, "and another begins");
    }

    #[test]
    fn a_snapshot_has_the_last_word_of_a_run_and_all_points_of_a_link() {
        let hub = Hub::new();
        for number in 0..3 {
            hub.push("run:r", RUN, &json!({"done": number}));
            hub.push("link:l", web::events::POINT, &json!({"t": number}));
        }
        let (last, topics) = hub.snapshot(&["run:r".to_string(), "link:l".to_string()]);
        assert_eq!(last, 6);
        assert_eq!(topics[0]["run"], json!([{"done": 2}]));
        assert_eq!(topics[1]["link"].as_array().unwrap().len(), 3);
    }
}
