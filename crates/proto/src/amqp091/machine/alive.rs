//! What a connection waits for: the handshake, signs of life, the end.

use std::time::Duration;

use crate::amqp091::encode_heartbeat;

/// Until a client is in: longer than any round trip and any look-up of users takes.
const MAX_HANDSHAKE: Duration = Duration::from_secs(20);

/// What is due.
pub(super) enum Verdict {
    Fine,
    Silent,
}

/// Clocks of a connection.
#[derive(Debug)]
pub(super) struct Alive {
    sent: Duration,
    received: Duration,
    /// Signs of life are sent after each half of it, and expected within twice.
    interval: Option<Duration>,
    /// When the handshake or the end is over at the latest.
    limit: Option<Duration>,
    announced: Option<Duration>,
}

impl Alive {
    pub(super) fn new(now: Duration) -> Self {
        let limit = Some(now + MAX_HANDSHAKE);
        Self { sent: now, received: now, interval: None, limit, announced: None }
    }

    pub(super) fn sent(&mut self, now: Duration) {
        self.sent = now;
    }

    pub(super) fn received(&mut self, now: Duration) {
        self.received = now;
    }

    /// The client has agreed to signs of life; 0 is none (AMQP 0.9.1 §1.4.2.6).
    pub(super) fn agreed(&mut self, interval_s: u16) {
        self.interval = (interval_s > 0).then(|| Duration::from_secs(interval_s.into()));
    }

    pub(super) fn running(&mut self) {
        self.limit = None;
    }

    /// The other side is to answer within this time that the connection is closed.
    pub(super) fn closing(&mut self, now: Duration, max_wait: Duration) {
        self.limit = Some(now + max_wait);
    }

    /// When something is due, if that is news.
    pub(super) fn announce(&mut self) -> Option<Duration> {
        let due = self.due();
        if due == self.announced {
            return None;
        }
        // A later time is no news while an earlier one is awaited: waking then finds it.
        if let (Some(due), Some(announced)) = (due, self.announced)
            && announced < due
        {
            return None;
        }
        self.announced = due;
        due
    }

    fn due(&self) -> Option<Duration> {
        let signs = self
            .interval
            .map(|interval| (self.sent + interval / 2).min(self.received + 2 * interval));
        [signs, self.limit].into_iter().flatten().min()
    }

    /// Does what is due: a sign of life, or the connection is over.
    pub(super) fn wake(&mut self, now: Duration, out: &mut Vec<u8>) -> Verdict {
        self.announced = None;
        let is_late = self.limit.is_some_and(|limit| now >= limit);
        let Some(interval) = self.interval else {
            return if is_late { Verdict::Silent } else { Verdict::Fine };
        };
        // AMQP 0.9.1 §4.2.7: after two intervals without a byte.
        if is_late || now >= self.received + 2 * interval {
            return Verdict::Silent;
        }
        if now >= self.sent + interval / 2 {
            self.sent = now;
            encode_heartbeat(out);
        }
        Verdict::Fine
    }
}
