//! When messages leave and come, as this side sees it.

use std::time::Duration;

use decide::estimate::Transport;
use proto::control::Receipt;

/// Messages of fewer bytes on the wire, all uncoded, fit in a packet: each teaches too little to be
/// worth a receipt.
const MIN_RECEIPT_BYTES: u64 = decide::ONE_PACKET_BYTES;
/// Of such messages the first have one all the same, and then those whose number is a power of two:
/// where no others come, nothing else shows a slow link that is taken for a fast one.
const FIRST_SHORT: u64 = 8;

/// A message on its way out, as this side saw it leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    /// When its first piece of body was given to the carrier.
    pub(crate) first: Duration,
    /// Bytes that the path had been given before it.
    pub(crate) before: u64,
    /// Counters of the path's transport before it.
    pub(crate) counters: Transport,
    /// How long it had nothing to send though more was to come, or no credit for it.
    pub(crate) idle: Duration,
    pub(crate) idle_since: Option<Duration>,
}

/// A message on its way in, as this side saw it come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrival {
    /// When its first piece of body came, and how much the path had brought with it.
    first: Option<(Duration, u64)>,
    last: Duration,
    last_received: u64,
    wire_bytes: u64,
    coded: bool,
    decode: Duration,
    /// How long decoded bytes waited for the local side.
    waited: Duration,
    waits_since: Option<Duration>,
    /// Its receipt was sent, or is another's to send.
    reported: bool,
}

impl Arrival {
    /// A piece came, with which the path has brought `received` bytes in all.
    pub(crate) fn note(&mut self, now: Duration, received: u64, len: usize, coded: bool) {
        self.first.get_or_insert((now, received));
        (self.last, self.last_received) = (now, received);
        self.wire_bytes += len as u64;
        self.coded |= coded && len > 0;
    }

    /// Bytes that it took on the wire, and those that the path brought behind its first piece with
    /// the time in which they came; before its receipt alone.
    pub(crate) fn came(&self) -> Option<(u64, u64, Duration)> {
        let (first, received) = self.first.filter(|_| !self.reported)?;
        let behind = self.last_received.saturating_sub(received);
        Some((self.wire_bytes, behind, self.last.saturating_sub(first)))
    }

    /// A block was decoded.
    pub(crate) fn decoded(&mut self, cpu: Duration) {
        self.decode += cpu;
    }

    /// Its receipt is another's to send.
    pub(crate) fn reported(&mut self) {
        self.reported = true;
    }

    /// Whether decoded bytes wait for the local side.
    pub(crate) fn waits(&mut self, now: Duration, waits: bool) {
        if !waits {
            let since = self.waits_since.take();
            self.waited += since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        } else if self.waits_since.is_none() {
            self.waits_since = Some(now);
        }
    }

    /// The receipt, once, where there is something to tell. `short` counts the path's messages
    /// that fit in a packet uncoded.
    pub(crate) fn receipt(
        &mut self,
        now: Duration,
        exchange: u64,
        short: &mut u64,
    ) -> Option<Receipt> {
        self.waits(now, false);
        let (first, received) = self.first.filter(|_| !self.reported)?;
        self.reported = true;
        if !self.coded && self.wire_bytes < MIN_RECEIPT_BYTES {
            *short += 1;
            if *short > FIRST_SHORT && !short.is_power_of_two() {
                return None;
            }
        }
        let spread = self.last.saturating_sub(first);
        let bytes = self.last_received.saturating_sub(received);
        Some(Receipt {
            exchange,
            bytes,
            // What came apart took some time, if too little to tell.
            spread: if bytes > 0 { spread.max(Duration::from_micros(1)) } else { spread },
            decode: self.decode,
            tail: now.saturating_sub(self.last),
            held_up: self.waited > (now.saturating_sub(first)) / 8,
        })
    }
}
