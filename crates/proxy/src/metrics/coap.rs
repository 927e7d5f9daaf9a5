//! What a gateway's listener for clients of CoAP counts.

use std::collections::BTreeMap;

use proto::coap::machine::Counts;

use super::{family, sample};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Totals {
    /// Of single messages, by the listener: in the open, and over DTLS.
    pub(super) messages: [Counts; 2],
    /// Requests that were refused, by the code of the answer.
    pub(super) refusals: BTreeMap<String, u64>,
}

impl Totals {
    pub(super) fn render(&self, text: &mut String) {
        let sum = |of: fn(&Counts) -> u64| self.messages.iter().map(of).sum::<u64>();
        let name = "coap_messages_total";
        let help = "Messages of CoAP that went another way than straight to an answer.";
        family(text, name, "counter", help);
        for (what, count) in [
            ("malformed", sum(|counts| counts.malformed)),
            ("duplicate", sum(|counts| counts.duplicates)),
            ("unmatched", sum(|counts| counts.unmatched)),
            ("unsupported", sum(|counts| counts.unsupported)),
            ("refused", sum(|counts| counts.refused)),
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
