//! The message leaves: when, how much of it, and what is remembered of it until its receipt is
//! here.

use std::time::Duration;

use super::Sender;
use crate::api::Departed;
use crate::path::awaited::Awaited;
use crate::times::Departure;

/// Messages of a path whose receipt may still come; beyond it the oldest is given up.
const MAX_AWAITED: usize = 256;

impl Sender<'_> {
    /// The head has been given to the path.
    pub(crate) fn led(&mut self) {
        self.announce_bases();
        self.announce_text();
    }

    /// Some of the body has been given to the path.
    pub(crate) fn departed(&mut self, departed: Departed) {
        if departed.block {
            self.one.sending.departed();
        }
        self.note_departure(departed);
        if departed.end && self.one.has_recipient() {
            self.left();
        } else if departed.end {
            self.await_receipt();
            self.keep_sent();
        }
        self.advance();
    }

    fn note_departure(&mut self, departed: Departed) {
        let Some(path) = self.path.as_deref().filter(|_| departed.body) else { return };
        let departure = self.one.departure.get_or_insert_with(|| Departure {
            first: self.now,
            before: path.wire.transmitted,
            counters: path.measured.counters.unwrap_or_default(),
            idle: Duration::ZERO,
            idle_since: None,
        });
        if let Some(since) = departure.idle_since.take() {
            departure.idle += self.now.saturating_sub(since);
        }
        if !departed.end && !departed.more {
            departure.idle_since = Some(self.now);
        }
    }

    /// The body could go on, and the credit is too little for it.
    pub(crate) fn starved(&mut self) {
        if let Some(departure) = &mut self.one.departure {
            departure.idle_since.get_or_insert(self.now);
        }
    }

    /// All of the message is with the path.
    fn await_receipt(&mut self) {
        let Some(departure) = self.one.departure else { return };
        let Some(choice) = self.one.choice.take() else { return };
        let (subject, plain_bytes) = (choice.subject, choice.plain_bytes as f64);
        if !self.one.about.cross_site {
            self.core.habits.note(subject.class, plain_bytes, subject.head_share);
        }
        let took = self.now.saturating_sub(departure.first);
        self.core.probes.earn(took + choice.encode);
        let Some(path) = self.path.as_deref_mut() else { return };
        let policy = &mut *self.core.policy;
        let network_s = policy.network_s(&choice.path, choice.coded_bytes as f64);
        let all = path.wire.transmitted + path.wire.queued as u64;
        let carried = all.saturating_sub(departure.before);
        let (id, learned) = (self.one.id, !path.sends_receipts);
        let mut awaited = Awaited { id, choice, departure, carried, network_s, learned: false };
        if learned {
            // Who knows whether a receipt comes: this much is known already.
            awaited.learn(policy, None);
        }
        if path.awaited.len() >= MAX_AWAITED
            && let Some((_, mut old)) = path.awaited.pop_first()
        {
            old.learn(policy, None);
        }
        path.awaited.insert(id.number, awaited);
    }
}
