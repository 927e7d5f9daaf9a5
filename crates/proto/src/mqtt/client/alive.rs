//! Signs of life (MQTT 5 §3.1.2.10).

use std::time::Duration;

/// Part of the Keep Alive interval after which a PINGREQ leaves, in fourths: what wakes late and
/// waits in queues has the rest.
const PING_AFTER_FOURTHS: u32 = 3;

/// What is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Nothing,
    Ping,
    /// The server is taken for gone.
    Dead,
}

/// When which side was heard of.
#[derive(Debug, Default)]
pub(super) struct Alive {
    is_open: bool,
    /// None where the interval is 0.
    ping_after: Option<Duration>,
    answer_timeout: Duration,
    sent_at: Duration,
    heard_at: Duration,
    /// When an answer was asked for that has not come.
    asked_at: Option<Duration>,
}

impl Alive {
    /// At the CONNECT, whose answer is waited for.
    pub(super) fn begin(now: Duration, answer_timeout: Duration) -> Self {
        Self {
            is_open: false,
            ping_after: None,
            answer_timeout,
            sent_at: now,
            heard_at: now,
            asked_at: Some(now),
        }
    }

    /// The server lets the client in; the interval may be its own (MQTT 5 §3.2.2.3.14).
    pub(super) fn open(&mut self, keep_alive_s: u16) {
        self.is_open = true;
        self.asked_at = None;
        let keep_alive = Duration::from_secs(keep_alive_s.into());
        self.ping_after = (keep_alive_s > 0).then_some(keep_alive / 4 * PING_AFTER_FOURTHS);
    }

    /// Something was sent.
    pub(super) fn sent(&mut self, now: Duration) {
        self.sent_at = now;
    }

    /// Something came: on a slow link the PINGRESP may be far behind it. A CONNECT is answered by
    /// nothing but the whole CONNACK.
    pub(super) fn heard(&mut self, now: Duration) {
        self.heard_at = now;
        if self.is_open {
            self.asked_at = None;
        }
    }

    /// What is due; a ping counts as asked for.
    pub(super) fn check(&mut self, now: Duration) -> Sign {
        if let Some(asked_at) = self.asked_at {
            let is_over = now >= asked_at.saturating_add(self.answer_timeout);
            return if is_over { Sign::Dead } else { Sign::Nothing };
        }
        let is_due = self.ping_at().is_some_and(|at| now >= at);
        if is_due {
            self.asked_at = Some(now);
            return Sign::Ping;
        }
        Sign::Nothing
    }

    /// MQTT 5 §3.1.2.10, MQTT-3.1.2-20: by what was sent; and by what came, so that a connection
    /// that only sends is known to be there.
    fn ping_at(&self) -> Option<Duration> {
        Some(self.sent_at.min(self.heard_at).saturating_add(self.ping_after?))
    }

    /// When to check again.
    pub(super) fn next(&self) -> Option<Duration> {
        match self.asked_at {
            Some(asked_at) => Some(asked_at.saturating_add(self.answer_timeout)),
            None => self.ping_at(),
        }
    }
}
