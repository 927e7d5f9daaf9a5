//! What goes to the pages as it happens: a ring of the last events, from which each stream reads
//! at its own pace. Who is too slow finds that some are gone, and begins anew.

use std::collections::VecDeque;

/// Most events that are kept: three minutes of one link.
pub const MAX_EVENTS: usize = 1024;
/// Most bytes of them.
pub const MAX_BYTES: usize = 8 << 20;
/// The kind of events of which a page misses nothing that lacks some: points of charts.
pub const POINT: &str = "link";

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
    bytes: usize,
    last: u64,
    /// The greatest number of those that are gone.
    gone: u64,
}

impl Ring {
    /// Takes an event in, in place of the oldest point, or the oldest of all, when there are
    /// [`MAX_EVENTS`] or [`MAX_BYTES`].
    pub fn push(&mut self, topic: &str, kind: &'static str, data: String) {
        self.last += 1;
        self.bytes += data.len();
        while !self.events.is_empty() && (self.events.len() >= MAX_EVENTS || self.bytes > MAX_BYTES)
        {
            let point = self.events.iter().position(|event| event.kind == POINT);
            if let Some(event) = self.events.remove(point.unwrap_or(0)) {
                self.bytes -= event.data.len();
                self.gone = self.gone.max(event.id);
            }
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
        if id > self.last || id < self.gone {
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
        assert_eq!(ring.after(9, &topics), None, "10 is gone");
        assert_eq!(ring.after(last + 1, &topics), None, "a number of an earlier start");
        assert_eq!(ring.after(10, &topics).unwrap().len(), MAX_EVENTS / 2);
        assert_eq!(ring.after(last, &topics), Some(Vec::new()));
        let some = ring.latest("link:b", 3);
        assert_eq!(some.iter().map(|one| one.id).collect::<Vec<_>>(), [last - 4, last - 2, last]);
    }

    #[test]
    fn points_make_room_first_and_bytes_are_bounded() {
        let mut ring = Ring::default();
        ring.push("link:a", "changed", "{}".to_string());
        for _ in 0..2 * MAX_EVENTS {
            ring.push("link:a", POINT, "{}".to_string());
        }
        assert_eq!(ring.events.len(), MAX_EVENTS);
        assert_eq!(ring.events[0].kind, "changed");
        for _ in 0..10 {
            ring.push("run:b", "run", "x".repeat(MAX_BYTES / 4));
        }
        assert!(ring.bytes <= MAX_BYTES && ring.events.len() <= 5);
        assert_eq!(ring.bytes, ring.events.iter().map(|event| event.data.len()).sum::<usize>());
    }

    #[test]
    fn an_event_is_three_lines_and_an_empty_one() {
        assert_eq!(frame(7, "link", "{\"x\":1}"), "id: 7\nevent: link\ndata: {\"x\":1}\n\n");
    }
}
