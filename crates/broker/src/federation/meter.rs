//! How much of each flow has come of each publisher, and what was refused of whom.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Breach, BreachKind, Terms};

/// Partners, flows and reasons that are counted apart: more than a profile can have names for in
/// practice. What is beyond is counted with nobody's name.
const MAX_COUNTED: usize = 10_000;
/// How often a log hears of the same again.
const TELL_INTERVAL: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    // bound: streams of a profile
    streams: BTreeMap<usize, Meter>,
    refused: BTreeMap<(Arc<str>, Arc<str>, BreachKind), Count>,
}

/// What was refused so far of one partner, in one flow, for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The partner.
    pub partner: Arc<str>,
    /// The flow; empty: of none.
    pub flow: Arc<str>,
    /// The reason.
    pub kind: BreachKind,
    /// How many publications and subscriptions.
    pub count: u64,
}

#[derive(Debug, Default)]
struct Count {
    total: u64,
    unreported: u64,
    reported_at: Option<Duration>,
}

/// When the next is due that comes at exactly the rate, of messages and of bytes: what comes
/// earlier than the burst allows is over the rate (the generic cell rate algorithm, ITU-T I.371).
#[derive(Debug, Default)]
struct Meter {
    message_due: Duration,
    bytes_due: Duration,
}

impl Meters {
    /// Counts a message of a stream.
    ///
    /// # Errors
    /// It is over the rate, in words.
    pub(super) fn pass(
        &mut self,
        now: Duration,
        stream: usize,
        terms: &Terms,
        bytes: u64,
    ) -> Result<(), String> {
        let meter = self.streams.entry(stream).or_default();
        let rate = terms.messages_per_1000_s.max(1);
        let interval = Duration::from_secs(1000) / u32::try_from(rate).unwrap_or(u32::MAX);
        let due = meter.message_due.max(now);
        let early = interval.saturating_mul(terms.burst.saturating_sub(1));
        if due > now.saturating_add(early) {
            let rate = thousandths(terms.messages_per_1000_s);
            return Err(format!("sends more than {rate} messages a second"));
        }
        let bytes_due = meter.bytes_due.max(now);
        let mut bytes_next = bytes_due;
        if let Some(per_s) = terms.bytes_per_s {
            let time = |bytes: u64| nanoseconds(bytes, per_s);
            // Of one second, or the longest message: that has to pass alone.
            let early = time(per_s.max(terms.max_bytes)).max(time(bytes));
            bytes_next = bytes_due.saturating_add(time(bytes));
            if bytes_next > now.saturating_add(early) {
                return Err(format!("sends more than {per_s} bytes a second"));
            }
        }
        meter.message_due = due.saturating_add(interval);
        meter.bytes_due = bytes_next;
        Ok(())
    }

    /// Counts something refused; what a log is to hear of it, if anything.
    pub(crate) fn refused(&mut self, now: Duration, breach: &Breach) -> Option<String> {
        let flow = breach.flow.clone().unwrap_or_default();
        let mut key = (breach.partner.clone(), flow, breach.kind);
        if self.refused.len() >= MAX_COUNTED && !self.refused.contains_key(&key) {
            key = (Arc::default(), Arc::default(), breach.kind);
        }
        let count = self.refused.entry(key).or_default();
        count.total += 1;
        if count.reported_at.is_some_and(|at| now < at.saturating_add(TELL_INTERVAL)) {
            count.unreported += 1;
            return None;
        }
        count.reported_at = Some(now);
        Some(match std::mem::take(&mut count.unreported) {
            0 => breach.to_string(),
            unreported => format!("{breach} (and {unreported} times before, not logged)"),
        })
    }

    /// What was refused.
    pub(crate) fn all_refused(&self) -> Vec<Refused> {
        let refused = |((partner, flow, kind), count): (&(Arc<str>, Arc<str>, _), &Count)| {
            let (partner, flow) = (partner.clone(), flow.clone());
            Refused { partner, flow, kind: *kind, count: count.total }
        };
        self.refused.iter().map(refused).collect()
    }

    /// Streams have other numbers from now on.
    pub(crate) fn renumber(&mut self) {
        self.streams.clear();
    }
}

/// The time that so many bytes take.
fn nanoseconds(bytes: u64, per_s: u64) -> Duration {
    let ns = u128::from(bytes) * 1_000_000_000 / u128::from(per_s.max(1));
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// A number of thousandths as people write it.
fn thousandths(value: u64) -> String {
    let text = format!("{}.{:03}", value / 1000, value % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
