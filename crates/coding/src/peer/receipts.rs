//! How long messages take on their way, and what the path is like: the transport's own counters,
//! and receipts from the peer.
//!
//! A message's time on the network runs from when its first piece of body is given to the path to
//! when its receipt is here, less what the receiver waited for its decoder at the end, less half a
//! round trip for the receipt's own way, or half of what is left where that is less. Both ends of
//! that are on this side's clock and the rest are differences on the peer's, so that an offset
//! between the two never enters.

use std::time::Duration;

use decide::Arm;
use decide::estimate::{self, Transport};
use decide::policy::Observation;
use proto::control::Receipt;
use record::event::Fact;

use super::Peer;
use crate::path::awaited::Awaited;
use crate::path::measured::Took;

/// A message whose sender had nothing to send for more than this share of its time tells nothing of
/// the network.
const MAX_IDLE_SHARE: f64 = 0.1;
/// In events.
const RECEIPT: &str = "receipt";
/// A time below this is none that clocks on two machines tell.
const MIN_S: f64 = 1e-6;

impl Peer<'_> {
    /// Counters of the path's transport.
    pub(crate) fn transport(&mut self, transport: Transport) {
        self.path.measured.transport(transport);
        self.notice_jump();
    }

    fn notice_jump(&mut self) {
        if self.path.measured.has_jumped() {
            let peer = self.path.known.carrier;
            self.core.observe(&Observation::PathChanged { peer });
        }
    }

    /// The peer sent a receipt.
    pub(crate) fn receipt(&mut self, content: &[u8]) {
        let receipt = match Receipt::decode(content) {
            Ok(receipt) => receipt,
            Err(error) => return self.ignore(RECEIPT, &error.to_string()),
        };
        // Whatever it says, the message is there.
        self.path.sent.arrived(receipt.exchange);
        self.path.texts.arrived(receipt.exchange);
        // Of a message that nobody remembers there is nothing to learn.
        let Some(mut awaited) = self.path.awaited.remove(&receipt.exchange) else { return };
        self.path.sends_receipts = true;
        let elapsed = self.now.saturating_sub(awaited.departure.first);
        let sent = self.path.wire.transmitted.saturating_sub(awaited.departure.before);
        if let Err(why) = credible(&receipt, elapsed, sent) {
            awaited.learn(&mut *self.core.policy, None);
            return self.ignore(RECEIPT, why);
        }
        self.arrived(awaited, &receipt);
    }

    /// A message has arrived: what it took is learned and told.
    fn arrived(&mut self, mut awaited: Awaited, receipt: &Receipt) {
        let departure = awaited.departure;
        let elapsed_s = self.now.saturating_sub(departure.first).as_secs_f64();
        let back_s = self.path.estimate().rtt_s().value / 2.0;
        // Its way back is no longer than the message's own, whatever is believed of the round trip.
        let both_s = elapsed_s - receipt.tail.as_secs_f64();
        let network_s = (both_s - back_s).max(both_s / 2.0).max(MIN_S);
        let idle_s = departure.idle.as_secs_f64();
        // Over a long path what its sender paused for is little of a message's time, and all the
        // same most of the time between its first piece and its last.
        let steady_for = |seconds| !receipt.held_up && idle_s <= MAX_IDLE_SHARE * seconds;
        let steady = steady_for(elapsed_s);
        let path = awaited.choice.path;
        let bytes = awaited.carried as f64;
        let train = estimate::Receipt {
            bytes: receipt.bytes,
            spread: receipt.spread,
            unbroken: steady_for(receipt.spread.as_secs_f64()),
            windows: path.windows(bytes),
        };
        let mut anyway = false;
        if self.path.measured.counters.is_none() {
            // Its transport tells nothing.
            self.path.measured.estimate.receipt(&train);
        } else {
            let at_once = steady_for((network_s - back_s).max(0.0));
            let before = departure.counters;
            let took = Took { bytes, seconds: network_s, at_once, train, path, before };
            // What the counters say now belongs to all that came together.
            anyway = self.path.measured.took(took);
        }
        let decode_s =
            (awaited.choice.arm != Arm::IDENTITY).then_some(receipt.decode.as_secs_f64());
        awaited.learn(&mut *self.core.policy, decode_s);
        if steady && self.path.estimate().is_still(&path) {
            let observation = Observation::Network { path: &path, bytes, seconds: network_s };
            self.core.observe(&observation);
        }
        self.notice_jump();
        let arm = self.core.config.encoding.arms().get(awaited.choice.arm.0);
        let decode_s = receipt.decode.as_secs_f64();
        let outcome = arm.and_then(|arm| awaited.outcome(arm.label(), network_s, decode_s));
        if let Some(outcome) = outcome {
            let (exchange, direction) = (awaited.id.to_string(), self.core.config.sends);
            self.event(Fact::Outcome { exchange, direction, outcome });
        }
        self.core.measure(self.path.id, anyway);
    }
}

/// Whether a receipt can be true of a message that left `elapsed` ago, since when the path was
/// given `sent` bytes.
fn credible(receipt: &Receipt, elapsed: Duration, sent: u64) -> Result<(), &'static str> {
    // The peer's clock may run a little faster.
    let most = elapsed + elapsed / 64 + Duration::from_millis(1);
    if receipt.bytes > sent {
        Err("it tells of more bytes than were sent")
    } else if receipt.bytes > 0 && receipt.spread.is_zero() {
        Err("it tells of bytes that came in no time")
    } else if receipt.spread + receipt.tail > most {
        Err("it tells of a longer time than has passed")
    } else if receipt.decode > most {
        Err("it tells of decoding longer than has passed")
    } else {
        Ok(())
    }
}
