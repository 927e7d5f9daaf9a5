//! A queue of one class: places that are there from the start, a lock that lends priority, a bell.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::Error;

use super::entity::Message;
use super::lock::{Bell, Inheritance, PiMutex};

/// Most places of a queue.
pub const MAX_PLACES: usize = 4096;

/// Messages in their order, each in a place of its own.
#[derive(Debug)]
struct Ring {
    places: Vec<Message>,
    first: usize,
    count: usize,
}

impl Ring {
    fn push(&mut self, message: &Message) -> bool {
        if self.count == self.places.len() {
            return false;
        }
        let at = (self.first + self.count) % self.places.len();
        if let Some(place) = self.places.get_mut(at) {
            place.copy_from(message);
            self.count += 1;
        }
        true
    }

    fn pop(&mut self, into: &mut Message) -> bool {
        let Some(place) = self.places.get(self.first).filter(|_| self.count > 0) else {
            return false;
        };
        into.copy_from(place);
        self.first = (self.first + 1) % self.places.len();
        self.count -= 1;
        true
    }
}

/// What has come of the messages of a class.
#[derive(Debug, Default)]
pub struct Counters {
    /// Handed over.
    pub accepted: AtomicU64,
    /// Refused since the queue was full.
    pub full: AtomicU64,
    /// Refused by the share of the core.
    pub over_share: AtomicU64,
    /// Stored, whole messages.
    pub processed: AtomicU64,
    /// Messages at which the worker panicked.
    pub panicked: AtomicU64,
    /// Processor time of a message, smoothed, in nanoseconds.
    pub cost_ns: AtomicU64,
}

/// A queue; see the module.
#[derive(Debug)]
pub struct Queue {
    ring: PiMutex<Ring>,
    bell: Bell,
    is_closed: AtomicBool,
    /// What has come of its messages.
    pub counters: Counters,
}

impl Queue {
    /// A queue of so many places.
    ///
    /// # Errors
    /// [`Error::Caller`] for a number of places out of range; as [`PiMutex::new`].
    pub fn new(places: usize, inheritance: Inheritance) -> Result<Self, Error> {
        if !(1..=MAX_PLACES).contains(&places) {
            let line = format!("a queue of {places} places; choose 1 to {MAX_PLACES}");
            return Err(Error::Caller(line));
        }
        let ring = Ring { places: vec![Message::default(); places], first: 0, count: 0 };
        Ok(Self {
            ring: PiMutex::new(ring, inheritance)?,
            bell: Bell::default(),
            is_closed: AtomicBool::new(false),
            counters: Counters::default(),
        })
    }

    /// Hands a message over; false where the queue is full.
    pub fn push(&self, message: &Message) -> bool {
        let is_in = self.ring.lock().push(message);
        if is_in {
            self.counters.accepted.fetch_add(1, Ordering::Relaxed);
            self.bell.ring();
        } else {
            self.counters.full.fetch_add(1, Ordering::Relaxed);
        }
        is_in
    }

    /// Waits for a message and takes it; false where the queue is closed and empty.
    pub fn take(&self, into: &mut Message) -> bool {
        loop {
            let seen = self.bell.count();
            // Read first: what was pushed before it was closed is seen by the pop behind it.
            let is_closed = self.is_closed.load(Ordering::Acquire);
            if self.ring.lock().pop(into) {
                return true;
            }
            if is_closed {
                return false;
            }
            self.bell.wait(seen, None);
        }
    }

    /// Ends it behind what was accepted: to be called when nothing more is pushed.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.bell.ring();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(sequence: u64) -> Message {
        let mut message = Message::default();
        message.sequence = sequence;
        message
    }

    #[test]
    fn it_keeps_the_order_and_its_bound() {
        let queue = Queue::new(3, Inheritance::Inherit).unwrap();
        let mut out = Message::default();
        for round in 0..5 {
            for at in 0..3 {
                assert!(queue.push(&message(10 * round + at)));
            }
            assert!(!queue.push(&message(99)));
            for at in 0..3 {
                assert!(queue.take(&mut out));
                assert_eq!(out.sequence, 10 * round + at);
            }
        }
        assert_eq!(queue.counters.full.load(Ordering::Relaxed), 5);
        assert_eq!(queue.counters.accepted.load(Ordering::Relaxed), 15);
    }

    #[test]
    fn what_was_accepted_comes_out_behind_the_close() {
        let queue = std::sync::Arc::new(Queue::new(4, Inheritance::Inherit).unwrap());
        assert!(queue.push(&message(1)) && queue.push(&message(2)));
        queue.close();
        let mut out = Message::default();
        assert!(queue.take(&mut out) && out.sequence == 1);
        assert!(queue.take(&mut out) && out.sequence == 2);
        assert!(!queue.take(&mut out));
        let waiting = std::sync::Arc::new(Queue::new(1, Inheritance::Inherit).unwrap());
        let other = std::sync::Arc::clone(&waiting);
        let thread = std::thread::spawn(move || other.take(&mut Message::default()));
        waiting.close();
        assert!(!thread.join().unwrap(), "who waits is woken");
    }

    #[test]
    fn places_are_bounded() {
        assert!(Queue::new(0, Inheritance::Inherit).is_err());
        assert!(Queue::new(MAX_PLACES + 1, Inheritance::Inherit).is_err());
    }
}
