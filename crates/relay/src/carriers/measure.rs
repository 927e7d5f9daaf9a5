//! The transport's counters of a carrier, and what a peer sent that is not used.

use std::time::Duration;

use decide::estimate::Transport;
use proto::carrier::{Abilities, Measured};
use record::event::Fact;

use super::Carriers;
use crate::api::Output;
use crate::core::Core;
use crate::ids::CarrierId;

/// The transport's counters are read no more often than this for each carrier, but for what came
/// together.
const MEASURE_PAUSE: Duration = Duration::from_millis(10);
/// Events about what a carrier's peer sent and was ignored: beyond it there are none.
const MAX_IGNORED_EVENTS: u32 = 16;
/// A link that is said to be faster, a terabit a second, or longer, was not measured.
const MAX_BYTES_PER_S: u64 = 125_000_000_000;
const MAX_ROUND_TRIP: Duration = Duration::from_secs(600);
/// A window that holds nothing back.
const PACED_WINDOW: u32 = 1 << 20;

impl Carriers {
    /// Asks for the transport's counters, unless they were read just now. Where the machine has
    /// them, they are returned.
    pub(crate) fn measure(
        &mut self,
        core: &mut Core,
        now: Duration,
        id: CarrierId,
        anyway: bool,
    ) -> Option<Transport> {
        let carrier = self.table.get_mut(&id)?;
        if !anyway && carrier.measured.at.is_some_and(|at| now < at + MEASURE_PAUSE) {
            return None;
        }
        carrier.measured.at = Some(now);
        let Some(measured) = carrier.machine.measured() else {
            core.outputs.push_back(Output::Measure { carrier: id });
            return None;
        };
        Some(counted(&measured, carrier.machine.held_bytes(), &carrier.abilities))
    }

    /// The transport's counters are here. Whether they are taken.
    pub(crate) fn take_counters(
        &mut self,
        core: &mut Core,
        now: Duration,
        id: CarrierId,
        transport: Transport,
    ) -> bool {
        if let Err(why) = possible(&transport) {
            self.ignore(core, now, id, "link", why);
            return false;
        }
        let Some(carrier) = self.table.get_mut(&id) else { return false };
        carrier.measured.counters = Some(transport);
        carrier.delivered(now, transport.backlog_bytes);
        true
    }

    /// What a peer sent is not used; an event says so, unless there were too many.
    pub(crate) fn ignore(
        &mut self,
        core: &mut Core,
        now: Duration,
        id: CarrierId,
        what: &str,
        reason: &str,
    ) {
        let Some(carrier) = self.table.get_mut(&id) else { return };
        carrier.ignored = carrier.ignored.saturating_add(1);
        if carrier.ignored <= MAX_IGNORED_EVENTS {
            let (what, reason) = (what.to_owned(), reason.to_owned());
            core.event(now, Fact::Ignored { what, reason });
        }
    }
}

/// What a machine has measured, as a transport would report it.
fn counted(measured: &Measured, held_bytes: usize, abilities: &Abilities) -> Transport {
    let packet_bytes = abilities.block_bytes.or(abilities.max_datagram_bytes).unwrap_or(0);
    let paced = abilities.repairs && measured.bytes_per_s > 0;
    Transport {
        rtt: measured.round_trip,
        min_rtt: measured.min_round_trip,
        delivered_bytes_per_s: measured.bytes_per_s,
        app_limited: measured.bytes_per_s == 0,
        segments_out: measured.sent,
        retransmitted: measured.sent_again,
        timeouts: measured.timeouts,
        segment_bytes: u32::try_from(packet_bytes).unwrap_or(u32::MAX),
        backlog_bytes: held_bytes as u64,
        // What leaves at a rate that is known waits for no acknowledgement.
        window_segments: if paced { PACED_WINDOW } else { 0 },
        repairs: abilities.repairs,
        lockstep: abilities.block_bytes.is_some(),
        incoming_loss_ppm: measured.incoming_loss_ppm,
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
