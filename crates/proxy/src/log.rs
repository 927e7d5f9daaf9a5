//! Facts of the relay as log lines: the same words as in metrics and results. A fact never holds
//! credentials, query strings or field values.

use record::event::{Event, Fact};

/// Writes one event through `tracing`.
pub(crate) fn event(event: &Event) {
    match &event.fact {
        Fact::CarrierUp { peer, version } => {
            tracing::info!(event = "carrier_up", peer, version, "carrier up");
        }
        Fact::CarrierDown { peer, reason } => {
            tracing::warn!(event = "carrier_down", peer, reason, "carrier down");
        }
        Fact::Started { exchange, method, target } => {
            tracing::debug!(event = "started", exchange, method, target, "exchange started");
        }
        Fact::Chosen { exchange, encoding, reason, .. } => {
            tracing::debug!(event = "chosen", exchange, encoding, reason, "encoding chosen");
        }
        Fact::Outcome { exchange, outcome, .. } => {
            let (encoding, bytes) = (&outcome.encoding, outcome.actual.bytes);
            let (expected_s, actual_s) = (outcome.expected.total_s(), outcome.actual.total_s());
            tracing::debug!(
                event = "outcome",
                exchange,
                encoding,
                bytes,
                expected_s,
                actual_s,
                "half arrived"
            );
        }
        Fact::Ignored { what, reason } => {
            tracing::warn!(event = "ignored", what, reason, "ignored");
        }
        Fact::Finished {
            exchange,
            status,
            elapsed_s,
            sent_body_bytes,
            sent_wire_bytes,
            received_body_bytes,
            received_wire_bytes,
            codec_s,
        } => {
            tracing::info!(
                event = "finished",
                exchange,
                status,
                elapsed_s,
                sent_body_bytes,
                sent_wire_bytes,
                received_body_bytes,
                received_wire_bytes,
                codec_s,
                "exchange finished"
            );
        }
        Fact::Failed { exchange, cause, reason, elapsed_s } => {
            tracing::warn!(event = "failed", exchange, cause, reason, elapsed_s, "exchange failed");
        }
        Fact::LimitReached { limit, consequence } => {
            tracing::warn!(event = "limit_reached", limit, consequence, "limit reached");
        }
    }
}
