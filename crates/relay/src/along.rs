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
const MAX_WAITING: usize = 32;
/// A word waits for a round trip, but for no less and no longer: services and clients take some
/// time on the shortest path too, and on the longest what a receipt teaches is wanted.
const PATIENCE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(2));

/// See the module.
#[derive(Debug)]
pub(crate) enum Word {
    /// What a half took, as of a point in time.
    Receipt(Receipt, Duration),
    /// Where a half is kept now.
    Kept(Keeping),
}

impl Word {
    /// Whether it says where a half of this exchange is kept.
    pub(crate) fn is_kept(&self, of: u64) -> bool {
        matches!(self, Self::Kept(Keeping::Kept { exchange, .. }) if *exchange == of)
    }

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
    /// Sends a word with the next frame, or alone after a round trip: nothing that comes before
    /// that could have known of it.
    pub(crate) fn send_along(&mut self, now: Duration, id: CarrierId, word: Word) {
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        carrier.words.push(word);
        let ends = self.shutting_down || carrier.going_away;
        if ends || carrier.words.len() >= MAX_WAITING {
            self.send_words(now, id);
        } else if !self.timers.is_set(Key::Words(id)) {
            let round_trip = Duration::try_from_secs_f64(carrier.estimate.rtt_s().value);
            let (least, most) = PATIENCE;
            let patience = round_trip.unwrap_or(most).clamp(least, most);
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
