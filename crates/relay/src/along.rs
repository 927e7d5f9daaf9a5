//! Words that nobody waits for leave with the next frame that somebody does.
//!
//! A packet of its own costs more than such a word has bytes. And the carrier is one pipe in order:
//! where packets are lost, what follows the word would have to wait for one more of them. An answer
//! follows a request, and mostly a request an answer, so there is nearly always something to go
//! with.

use std::time::Duration;

use proto::stream::{Frame, Keeping, Receipt};

use crate::Relay;
use crate::api::CarrierId;
use crate::timers::Key;

/// Words that wait at most: so many are worth a packet.
const MOST_WAITING: usize = 32;
/// Longest that a word waits, however long the round trip is believed to be.
const MOST_PATIENCE: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Debug)]
pub(crate) enum Word {
    /// What a half took, as of a point in time.
    Receipt(Receipt, Duration),
    /// Where a half is kept now.
    Kept(Keeping),
}

impl Word {
    /// The frame, for one that leaves now: a receipt tells how long it was held.
    fn frame(self, now: Duration) -> Frame {
        match self {
            Self::Receipt(mut receipt, since) => {
                receipt.tail += now.saturating_sub(since);
                receipt.frame()
            }
            Self::Kept(keeping) => keeping.frame(),
        }
    }
}

impl Relay {
    /// Sends a word with the next frame, or alone after a round trip: what the peer sends in answer
    /// to anything before that cannot have need of it.
    pub(crate) fn send_along(&mut self, now: Duration, id: CarrierId, word: Word) {
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        carrier.words.push(word);
        if self.shutting_down || carrier.words.len() >= MOST_WAITING {
            self.send_words(now, id);
        } else if !self.timers.is_set(Key::Words(id)) {
            let round_trip = Duration::try_from_secs_f64(carrier.estimate.rtt_s().value);
            let patience = round_trip.unwrap_or(MOST_PATIENCE).min(MOST_PATIENCE);
            self.timers.set(Key::Words(id), Some(now + patience));
        }
    }

    /// Sends the words that wait.
    pub(crate) fn send_words(&mut self, now: Duration, id: CarrierId) {
        self.timers.set(Key::Words(id), None);
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        for word in std::mem::take(&mut carrier.words) {
            self.send(now, id, word.frame(now));
        }
    }
}
