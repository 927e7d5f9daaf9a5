//! What an operator sets.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use crate::access::Access;
use crate::explain;
use crate::federation::Federation;
use crate::forms::FormRule;
use crate::rules::Rules;

/// What happens to a session's queue at its bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// What has waited longest makes room.
    #[default]
    Oldest,
    /// What comes is not queued.
    Newest,
}

/// Bounds and habits of a broker.
// table: one field a setting of the operator
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who may do what.
    pub access: Access,
    /// What is done to publications by topic.
    pub rules: Rules,
    /// Sessions at once, connected or not.
    pub max_sessions: usize,
    /// Subscriptions of one session.
    pub max_subscriptions: usize,
    /// Topics with a retained message.
    pub max_retained: usize,
    /// Bytes of all retained messages.
    pub max_retained_bytes: usize,
    /// Messages that may wait for one session.
    pub max_queued: usize,
    /// Bytes that may wait for one session.
    pub max_queued_bytes: usize,
    /// Bytes that may wait for all sessions together.
    pub max_total_bytes: usize,
    /// Messages under way to one session that it has not acknowledged.
    pub max_inflight: u16,
    /// Longest payload with its topic and properties, in bytes.
    pub max_message_bytes: usize,
    /// How long a session without a connection is kept at most.
    pub max_session_expiry: Duration,
    /// How long a client may say nothing at most, where it names no time itself.
    pub max_keep_alive: Duration,
    /// At the bound of a queue.
    pub overflow: Overflow,
    /// What waited while a client of MQTT or a bridge was away leaves at most so many times a
    /// second once it is back, behind what is published meanwhile; `None`: first, and as fast as it
    /// is taken.
    pub drain_rate: Option<NonZeroU32>,
    /// Messages of grade 0 wait for sessions that have no connection.
    pub queue_grade_0: bool,
    /// Whether sessions, what they wait for, and retained messages are written to a store.
    pub durable: bool,
    /// How often the topics below `$SYS` are published; zero: never.
    pub sys_interval: Duration,
    /// In which form payloads leave; the first rule that fits.
    pub forms: Vec<FormRule>,
    /// What is remembered of what becomes of publications.
    pub explain: explain::Settings,
    /// What partners have agreed on, if there are any.
    pub federation: Option<Arc<Federation>>,
}

impl Settings {
    /// The time from one message to the next of those that waited.
    pub(crate) fn drain_interval(&self) -> Option<Duration> {
        self.drain_rate.map(|rate| Duration::from_secs(1) / rate.get())
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            access: Access::default(),
            rules: Rules::default(),
            max_sessions: 100_000,
            max_subscriptions: 100_000,
            max_retained: 1_000_000,
            max_retained_bytes: 512 << 20,
            max_queued: 100_000,
            max_queued_bytes: 64 << 20,
            max_total_bytes: 512 << 20,
            max_inflight: 100,
            max_message_bytes: 16 << 20,
            max_session_expiry: Duration::from_secs(24 * 3600),
            max_keep_alive: Duration::from_secs(3600),
            overflow: Overflow::Oldest,
            drain_rate: None,
            queue_grade_0: false,
            durable: false,
            sys_interval: Duration::from_secs(10),
            forms: Vec::new(),
            explain: explain::Settings::default(),
            federation: None,
        }
    }
}
