//! The transport's counters of a carrier, and what a peer sent that is not used.

use std::time::Duration;

use coding::api::Input as Code;
use decide::estimate::Transport;
use proto::carrier::Measured;
use record::event::Fact;

use crate::Relay;
use crate::api::Output;
use crate::carrier::path_of;
use crate::ids::CarrierId;

/// The transport's counters are read no more often than this for each carrier, but for what came
/// together.
const MEASURE_PAUSE: Duration = Duration::from_millis(10);
/// Events about what a carrier's peer sent and was ignored: beyond it there are none.
const MAX_IGNORED_EVENTS: u32 = 16;
/// A link that is said to be faster, a terabit a second, or longer, was not measured.
const MAX_BYTES_PER_S: u64 = 125_000_000_000;
const MAX_ROUND_TRIP: Duration = Duration::from_secs(600);

impl Relay {
    /// Asks for the transport's counters, unless they were read just now.
    pub(crate) fn measure(&mut self, now: Duration, id: CarrierId, anyway: bool) {
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        if anyway || carrier.measured.at.is_none_or(|at| now >= at + MEASURE_PAUSE) {
            carrier.measured.at = Some(now);
            match carrier.machine.measured() {
                Some(measured) => {
                    let held_bytes = carrier.machine.held_bytes();
                    let most = carrier.abilities.max_datagram_bytes.unwrap_or(0);
                    self.transport(now, id, counted(&measured, held_bytes, most));
                }
                None => self.outputs.push_back(Output::Measure { carrier: id }),
            }
        }
    }

    /// The transport's counters are here.
    pub(crate) fn transport(&mut self, now: Duration, id: CarrierId, transport: Transport) {
        if let Err(why) = possible(&transport) {
            return self.ignore(now, id, "link", why);
        }
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        carrier.measured.counters = Some(transport);
        carrier.delivered(now, transport.backlog_bytes);
        self.code(now, Code::Transport { path: path_of(id), transport });
        self.note_estimate(id);
    }

    /// What is believed of a carrier's path may have changed.
    pub(crate) fn note_estimate(&mut self, id: CarrierId) {
        let found = self.carriers.get_mut(&id).zip(self.coding.estimate(path_of(id)));
        if let Some((carrier, estimate)) = found {
            carrier.note_estimate(estimate);
        }
    }

    /// What a peer sent is not used; an event says so, unless there were too many.
    pub(crate) fn ignore(&mut self, now: Duration, carrier: CarrierId, what: &str, reason: &str) {
        let Some(carrier) = self.carriers.get_mut(&carrier) else { return };
        carrier.ignored = carrier.ignored.saturating_add(1);
        if carrier.ignored <= MAX_IGNORED_EVENTS {
            let (what, reason) = (what.to_owned(), reason.to_owned());
            self.event(now, Fact::Ignored { what, reason });
        }
    }
}

/// What a machine has measured, as a transport would report it.
fn counted(measured: &Measured, held_bytes: usize, datagram_bytes: usize) -> Transport {
    Transport {
        rtt: measured.round_trip,
        min_rtt: measured.min_round_trip,
        app_limited: true,
        segments_out: measured.sent,
        retransmitted: measured.sent_again,
        timeouts: measured.timeouts,
        segment_bytes: u32::try_from(datagram_bytes).unwrap_or(u32::MAX),
        backlog_bytes: held_bytes as u64,
        ..Transport::default()
    }
}

/// Whether any link can be so; what a transport does not know it reports as 0.
fn possible(transport: &Transport) -> Result<(), &'static str> {
    if transport.delivered_bytes_per_s > MAX_BYTES_PER_S {
        Err("it is said to deliver more than any link carries")
    } else if transport.rtt.max(transport.min_rtt) > MAX_ROUND_TRIP && !transport.rtt.is_zero() {
        Err("it is said to have a longer round trip than any link")
    } else {
        Ok(())
    }
}
