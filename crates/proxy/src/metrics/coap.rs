//! What a gateway's listener for clients of CoAP counts.

use std::collections::BTreeMap;

use proto::coap::machine::Counts;
use proto::coap::stream;

use super::{family, sample};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Totals {
    /// Of single messages, by the listener: in the open, and over DTLS.
    pub(super) messages: [Counts; 2],
    /// The same over streams, of connections that have ended too.
    streams: stream::Counts,
    /// Requests that were refused, by the code of the answer.
    pub(super) refusals: BTreeMap<String, u64>,
}

impl Totals {
    /// Adds what a connection has counted since `before`.
    pub(super) fn add_stream(&mut self, before: stream::Counts, now: stream::Counts) {
        let all = &mut self.streams;
        all.malformed += now.malformed - before.malformed;
        all.unmatched += now.unmatched - before.unmatched;
        all.unsupported += now.unsupported - before.unsupported;
        all.refused += now.refused - before.refused;
    }

    pub(super) fn render(&self, text: &mut String) {
        let sum = |of: fn(&Counts) -> u64| self.messages.iter().map(of).sum::<u64>();
        let streams = &self.streams;
        let name = "coap_messages_total";
        let help = "Messages of CoAP that went another way than straight to an answer.";
        family(text, name, "counter", help);
        for (what, count) in [
            ("malformed", sum(|counts| counts.malformed) + streams.malformed),
            ("duplicate", sum(|counts| counts.duplicates)),
            ("unmatched", sum(|counts| counts.unmatched) + streams.unmatched),
            ("unsupported", sum(|counts| counts.unsupported) + streams.unsupported),
            ("refused", sum(|counts| counts.refused) + streams.refused),
            ("challenged", sum(|counts| counts.challenged)),
            ("retransmitted", sum(|counts| counts.retransmitted)),
        ] {
            sample(text, name, &[("what", what)], count);
        }
        let name = "coap_refusals_total";
        family(text, name, "counter", "Requests of CoAP that the gateway refused, by code.");
        for (code, count) in &self.refusals {
            sample(text, name, &[("code", code)], count);
        }
    }
}
