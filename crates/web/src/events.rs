//! What goes to the pages as it happens: a ring of the last events, from which each stream reads
//! at its own pace. Who is too slow finds that some are gone, and begins anew.

use std::collections::VecDeque;

/// Most events that are kept: three minutes of one link.
pub const MAX_EVENTS: usize = 1024;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number; those of a ring follow each other from 1.
    pub id: u64,
    /// What it is about, such as `link:field`.
    pub topic: String,
    /// Its kind: the name of the event in the stream.
    pub kind: &'static str,
    /// What it says: JSON in one line.
    pub data: String,
}

/// The last events.
#[derive(Debug, Default)]
pub struct Ring {
    events: VecDeque<Event>,
    last: u64,
}

impl Ring {
    /// Takes an event in, in place of the oldest when there are [`MAX_EVENTS`].
    pub fn push(&mut self, topic: &str, kind: &'static str, data: String) {
        self.last += 1;
        if self.events.len() >= MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(Event { id: self.last, topic: topic.to_string(), kind, data });
    }

    /// The number of the newest event; 0 when there was none.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The events after number `id` about some topics; `None` when some are gone, or when it is no
    /// number of this ring.
    #[must_use]
    pub fn after(&self, id: u64, topics: &[String]) -> Option<Vec<Event>> {
        let first = self.events.front().map_or(self.last + 1, |event| event.id);
        if id > self.last || id + 1 < first {
            return None;
        }
        let newer = self.events.iter().filter(|event| event.id > id);
        Some(newer.filter(|event| topics.contains(&event.topic)).cloned().collect())
    }

    /// The last events about a topic, at most `most` of them, oldest first.
    #[must_use]
    pub fn latest(&self, topic: &str, most: usize) -> Vec<&Event> {
        let mut found: Vec<&Event> =
            self.events.iter().rev().filter(|event| event.topic == topic).take(most).collect();
        found.reverse();
        found
    }
}

/// An event as it goes over the wire (HTML, server-sent events: a field a line, an empty line).
#[must_use]
pub fn frame(id: u64, kind: &str, data: &str) -> String {
    format!("id: {id}\nevent: {kind}\ndata: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_too_slow_begins_anew() {
        let mut ring = Ring::default();
        let topics = ["link:a".to_string()];
        assert_eq!(ring.after(0, &topics), Some(Vec::new()));
        for number in 0..MAX_EVENTS + 10 {
            ring.push(if number % 2 == 0 { "link:a" } else { "link:b" }, "link", "{}".to_string());
        }
        let last = ring.last();
        assert_eq!(ring.after(9, &topics), None);
        assert_eq!(ring.after(last + 1, &topics), None, "a number of an earlier start");
        assert_eq!(ring.after(10, &topics).unwrap().len(), MAX_EVENTS / 2);
        assert_eq!(ring.after(last, &topics), Some(Vec::new()));
        let some = ring.latest("link:b", 3);
        assert_eq!(some.iter().map(|one| one.id).collect::<Vec<_>>(), [last - 4, last - 2, last]);
    }

    #[test]
    fn an_event_is_three_lines_and_an_empty_one() {
        assert_eq!(frame(7, "link", "{\"x\":1}"), "id: 7\nevent: link\ndata: {\"x\":1}\n\n");
    }
}
