//! Workers: a thread for each class, which stores what its queue has.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::clock;
use super::entity::{Entity, Message, Table};
use super::lock::PiMutex;
use super::queue::Queue;
use super::statistics::Sample;

/// What is done to each entity before it is stored.
pub type Job = fn(&Entity);

/// The worker of a class.
pub(super) struct Worker {
    pub(super) queue: Arc<Queue>,
    pub(super) table: Arc<PiMutex<Table>>,
    /// Processor time that each message takes besides.
    pub(super) work_ns: u64,
    pub(super) job: Job,
    /// Room for samples; what is beyond it is only counted.
    pub(super) samples: Vec<Sample>,
    pub(super) dropped_samples: u64,
}

impl Worker {
    /// Stores what comes until the queue is closed and empty.
    pub(super) fn run(mut self) -> (Vec<Sample>, u64) {
        let mut message = Message::default();
        while self.queue.take(&mut message) {
            let begin_ns = clock::thread_ns();
            // What it leaves half done is one message, which is counted as such: each lock is free
            // again, and each place of the table holds one entity or another.
            let ended = catch_unwind(AssertUnwindSafe(|| self.process(&message)));
            let counters = &self.queue.counters;
            match ended {
                Ok(()) => counters.processed.fetch_add(1, Ordering::Relaxed),
                Err(_) => counters.panicked.fetch_add(1, Ordering::Relaxed),
            };
            let spent_ns = clock::thread_ns().saturating_sub(begin_ns);
            let known_ns = counters.cost_ns.load(Ordering::Relaxed);
            let cost_ns = if known_ns == 0 { spent_ns } else { (7 * known_ns + spent_ns) / 8 };
            counters.cost_ns.store(cost_ns, Ordering::Relaxed);
        }
        (self.samples, self.dropped_samples)
    }

    fn process(&mut self, message: &Message) {
        if self.work_ns > 0 {
            clock::work_ns(self.work_ns);
        }
        for entity in message.entities() {
            (self.job)(entity);
            self.table.lock().store(entity);
            let stored_ns = clock::monotonic_ns();
            if self.samples.len() < self.samples.capacity() {
                let Message { sequence, sent_ns, handed_ns, .. } = *message;
                self.samples.push(Sample { sequence, sent_ns, handed_ns, stored_ns });
            } else {
                self.dropped_samples += 1;
            }
        }
    }
}
