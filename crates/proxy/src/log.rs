//! Facts of the relay as log lines: the same words as in metrics and results. A fact never holds
//! credentials, query strings or field values.

use std::collections::BTreeMap;
use std::time::Instant;

use record::event::{Event, Fact};

use crate::alarm::{Alarm, Lasting};
use crate::rarely::Rarely;

/// What was told when, for what may happen with every request.
#[derive(Default)]
pub(crate) struct Log {
    /// By the limit's name; those are of ours.
    limits: BTreeMap<String, Rarely>,
    /// Edge: no carrier comes up.
    unreachable: Alarm,
}

impl Log {
    /// Writes one event through `tracing`.
    pub(crate) fn event(&mut self, event: &Event) {
        match &event.fact {
            Fact::LimitReached { limit, consequence } => {
                let rarely = self.limits.entry(limit.clone()).or_default();
                if let Some(times) = rarely.note(Instant::now()) {
                    tracing::warn!(limit, consequence, times, "limit reached");
                }
            }
            Fact::CarrierUp { peer, version } => match self.unreachable.clear(Instant::now()) {
                None => tracing::info!(peer, version, "carrier up"),
                Some(Lasting { times: attempts, since }) => {
                    let after_s = rounded(since.as_secs_f64());
                    tracing::info!(peer, version, attempts, after_s, "carrier up");
                }
            },
            Fact::CarrierDown { peer, reason, .. } if peer.is_empty() => self.unreachable(reason),
            fact => write(fact),
        }
    }

    /// Edge: a carrier ended before the gateway said HELLO.
    pub(crate) fn unreachable(&mut self, reason: &str) {
        match self.unreachable.raise(Instant::now(), reason) {
            Some(Lasting { times: attempts, since }) => {
                let for_s = rounded(since.as_secs_f64());
                tracing::warn!(reason, attempts, for_s, "gateway unreachable");
            }
            None => tracing::debug!(reason, "gateway unreachable"),
        }
    }
}

/// Seconds as a person reads them: to a microsecond.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

fn write(fact: &Fact) {
    match fact {
        Fact::CarrierDown { peer, reason, orderly: true } => {
            tracing::info!(peer, reason, "carrier closed");
        }
        Fact::CarrierDown { peer, reason, orderly: false } => {
            tracing::warn!(peer, reason, "carrier down");
        }
        Fact::CarrierStalled { peer, silent_s } => {
            tracing::warn!(peer, silent_s = rounded(*silent_s), "carrier stalled");
        }
        Fact::Started { exchange, method, target } => {
            tracing::debug!(exchange, method, target, "exchange started");
        }
        Fact::Chosen { exchange, encoding, reason, .. } => {
            tracing::debug!(exchange, encoding, reason, "encoding chosen");
        }
        Fact::Outcome { exchange, outcome, .. } => {
            let (encoding, bytes) = (&outcome.encoding, outcome.actual.bytes);
            let [expected_s, actual_s] =
                [&outcome.expected, &outcome.actual].map(|parts| rounded(parts.total_s()));
            tracing::debug!(exchange, encoding, bytes, expected_s, actual_s, "message arrived");
        }
        Fact::Ignored { what, reason } => {
            tracing::warn!(what, reason, "ignored");
        }
        // Both are in the exchange's own line.
        Fact::Finished { exchange, status, .. } => {
            tracing::debug!(exchange, status, "exchange finished");
        }
        Fact::Failed { exchange, cause, reason, .. } => {
            tracing::debug!(exchange, cause, reason, "exchange failed");
        }
        Fact::LimitReached { .. } | Fact::CarrierUp { .. } => {}
    }
}
