//! Whether everybody was treated right.

use relay::{Cause, CauseKind};

use crate::party::{Client, Fate};
use crate::world::{Moods, Report, World};

impl World {
    /// Judges a world that has come to rest.
    pub(crate) fn verdict(self) -> Report {
        let mut report = Report {
            took: self.now,
            ahead: self.ahead,
            datagrams: self.datagrams,
            routed: self.routed.clone(),
            ..Report::default()
        };
        for node in self.nodes.iter().filter(|node| node.alive) {
            let (load, role) = (node.relay.load(), node.role);
            assert_eq!((load.codec_bytes, load.held_bytes), (0, 0), "memory leaked: {role:?}");
            assert_eq!(node.contexts.len(), 0, "codec contexts were not released: {role:?}");
        }
        for ((gateway, exchange), origin) in &self.parties.origins {
            let over = origin.aborted || origin.sender.ended;
            assert!(over || !self.nodes[*gateway].alive, "the origin of {exchange} never heard");
        }
        let Moods { breaks, restarts, aborts, outages, slow, datagrams, .. } = self.moods;
        // What cannot be repeated ends with the carrier that it began on, as if that had broken.
        let breaks = breaks || self.moods.blocked;
        // In a slow world the transport's counters are moody, so that a carrier may be taken for
        // one that has stalled.
        let stalls = outages || slow || datagrams;
        let whole = |exchange| {
            let mut origins = self.parties.origins.iter().filter(|((_, of), _)| of == exchange);
            origins.any(|(_, origin)| origin.receiver.ended && origin.sender.ended)
        };
        for (exchange, client) in &self.parties.clients {
            report.requests += 1;
            let forwarded = self.parties.forwarded.get(exchange).copied().unwrap_or(0);
            assert!(
                forwarded <= 1 || (client.is_repeatable() && (self.replaced || breaks || stalls)),
                "forwarded {forwarded} times: {client:?}"
            );
            match client.fate.as_ref().expect("the world waited for it") {
                Fate::Answered => {
                    assert!(client.receiver.ended && forwarded >= 1);
                    report.answered += 1;
                    report.early += u64::from(client.early);
                    let tunnel = client.is_tunnel() && whole(exchange);
                    assert!(
                        tunnel || !client.is_tunnel() || breaks || restarts || aborts,
                        "a tunnel whose other direction was cut: {client:?}"
                    );
                    report.tunnels += u64::from(tunnel);
                }
                Fate::LeftByClient => report.left += 1,
                Fate::Failed { cause, headed } => {
                    self.judge_failure(client, cause, *headed, forwarded);
                    *report.failed.entry(cause.kind.name()).or_default() += 1;
                }
            }
        }
        report
    }

    fn judge_failure(&self, client: &Client, cause: &Cause, headed: bool, forwarded: u32) {
        let Moods { breaks, restarts, aborts, shutdowns, outages, slow, .. } = self.moods;
        let datagrams = self.moods.datagrams;
        let breaks = breaks || self.moods.blocked;
        let possible = match cause.kind {
            CauseKind::OriginFailed => aborts,
            // Over a slow link the word of a shutdown may come after the client's patience.
            CauseKind::GatewayUnreachable | CauseKind::NotForwarded => {
                (breaks || restarts || shutdowns) && forwarded == 0
            }
            // It was repeated where a carrier stalled, and there was no room for it then.
            CauseKind::OutcomeUnknown if cause.reason.contains("max_exchanges") => {
                (breaks || restarts || outages || slow) && client.is_repeatable() && !headed
            }
            // The question waited behind what a slow link had to carry before it.
            CauseKind::OutcomeUnknown if cause.reason.contains("outcome_timeout") => {
                (breaks || restarts || datagrams) && !headed
            }
            CauseKind::OutcomeUnknown | CauseKind::AnswerLost => (breaks || restarts) && !headed,
            CauseKind::CarrierLost => (breaks || restarts) && headed,
            // What its client does not read makes room.
            CauseKind::Limit if cause.reason.contains("another wants the place") => slow,
            CauseKind::Limit => forwarded == 0 || self.tight,
            _ => false,
        };
        assert!(possible, "{cause:?}, headed {headed}, forwarded {forwarded}: {client:?}");
    }
}
