//! Whether the other side still answers.
//!
//! TCP does not show that: a process that hangs has a kernel that acknowledges, and where a link is
//! down TCP waits ever longer before it tries again. So an edge that waits for something and hears
//! nothing for some round trips sends a PING. Any byte that comes is a sign of life, but for those
//! of a frame that should long be whole: on a link without keys a length may come wrong, and then
//! nothing is read any more, whatever comes. If neither comes, the carrier has stalled: another is
//! dialled beside it. Who is silent for the whole of [`crate::Config::peer_timeout`] is given up by
//! either side.
//!
//! On a slow link a PING stands behind what was sent before it. As long as the transport gets that
//! on there is no doubt; only when it is out is an answer due.

use std::time::Duration;

use proto::exchange::Role;

use super::Carriers;
use super::carrier::Carrier;
use crate::core::Core;
use crate::ids::CarrierId;
use crate::timers::Key;

/// Silence before a PING where something waits, in round trips: services take some time too.
const QUIET_ROUND_TRIPS: u32 = 2;
/// That silence at least, on the shortest path, and at most.
const MIN_QUIET: Duration = Duration::from_secs(1);
const MAX_QUIET: Duration = Duration::from_secs(10);
/// Where nothing but PONGs comes the silence doubles, up to so many times: a tunnel that idles must
/// not cost packets for ever.
const MAX_CALM: u32 = 5;
/// How long a PONG may take, in round trips: one, one for a packet that is lost, and one for the
/// timer that finds that out.
const PATIENCE_ROUND_TRIPS: u32 = 3;
/// And at least: a busy processor answers late, and TCP's timeout may be a second.
const MIN_PATIENCE: Duration = Duration::from_secs(2);
/// A packet, in bits.
const PACKET_BITS: f64 = 1500.0 * 8.0;
/// As long as the PING is not out, a link may be busy with so many packets of what others sent
/// besides, for an acknowledgement comes for every second one.
const UNSEEN_PACKETS: f64 = 4.0;
/// Once it is out, with so many on the way back: one on the link, and one that is sent again.
const UNHEARD_PACKETS: f64 = 2.0;
/// The rate of a link that nobody measured, and what a measured one is believed to be at least.
const UNKNOWN_RATE_BPS: f64 = 9_600.0;
const MIN_RATE_BPS: f64 = 1_000.0;
/// How often it is looked whether a PING gets on.
const MIN_TICK: Duration = Duration::from_millis(100);
const MAX_TICK: Duration = Duration::from_secs(1);
/// A frame is whole within so many times [`crate::Config::peer_timeout`], on the slowest link.
const MAX_FRAME_TIMEOUTS: u32 = 10;
/// Retransmission timeouts in a row from which on nothing gets through: the kernel's timeout has
/// the round trip in it, and what stands in queues.
const STALLED_TIMEOUTS: u32 = 2;
/// Share of an older, longer round trip that a shorter one leaves.
const ROUND_TRIP_KEPT: f64 = 0.75;
/// A round trip where none was seen.
const FIRST_ROUND_TRIP: Duration = Duration::from_secs(1);

/// See the module; the state of one carrier.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// When something came last.
    heard_at: Duration,
    /// When something was first sent since then, but for PINGs.
    spoke_at: Option<Duration>,
    /// The peer has answered a PING: only then does silence mean anything.
    answers: bool,
    next: u64,
    asked: Option<Asked>,
    /// Something was not acknowledged when it should have been: the transport is asked once more.
    doubted: bool,
    calm: u32,
    round_trip: Option<Duration>,
    /// Bytes that the peer's kernel has, as far as the transport reports, and since when.
    delivered: u64,
    moved_at: Duration,
    partial: Partial,
    /// Since when nothing has come though it should have.
    pub(crate) stalled: Option<Duration>,
}

/// A frame of which not all has come.
#[derive(Clone, Copy, Debug, Default)]
struct Partial {
    /// Bytes of it, and since when there are any.
    bytes: u64,
    since: Option<Duration>,
    /// What the carrier had brought in all by then.
    received: u64,
    /// When a frame became whole last.
    whole_at: Duration,
}

/// A PING whose PONG is not here.
#[derive(Clone, Copy, Debug)]
struct Asked {
    number: u64,
    at: Duration,
    /// It is out once so many bytes are delivered; when that was seen.
    mark: Option<u64>,
    out_at: Option<Duration>,
}

impl Pulse {
    /// Something came.
    fn heard(&mut self, now: Duration) {
        self.heard_at = now;
        self.spoke_at = None;
    }

    /// The transport reports that the peer's kernel has so many bytes.
    pub(crate) fn delivered(&mut self, now: Duration, bytes: u64) {
        if bytes > self.delivered {
            (self.delivered, self.moved_at) = (bytes, now);
        }
        let is_out = |asked: &&mut Asked| asked.mark.is_some_and(|mark| bytes >= mark);
        if let Some(asked) = self.asked.as_mut().filter(is_out) {
            asked.out_at.get_or_insert(now);
        }
    }

    /// What the machine had, and a PING with it, is with the shell: so many bytes in all.
    pub(crate) fn left(&mut self, transmitted: u64) {
        if let Some(asked) = &mut self.asked {
            asked.mark.get_or_insert(transmitted);
        }
    }

    fn pong(&mut self, now: Duration, number: u64) {
        let Some(asked) = self.asked.take_if(|asked| asked.number == number) else { return };
        let took = now.saturating_sub(asked.at);
        let before = self.round_trip.map(|before| before.mul_f64(ROUND_TRIP_KEPT));
        self.round_trip = Some(before.map_or(took, |before| before.max(took)));
        self.answers = true;
        self.calm = (self.calm + 1).min(MAX_CALM);
    }

    /// Since when nothing was heard of the PING: neither did anything come, nor did what is before
    /// it get on.
    fn silent_since(&self, asked: &Asked) -> Duration {
        asked.at.max(self.heard_at).max(asked.out_at.unwrap_or(self.moved_at))
    }
}

impl Carrier {
    /// A round trip to the peer and back as it is now, queues included.
    pub(crate) fn round_trip(&self) -> Duration {
        let counted = self.measured.counters.map(|counters| counters.rtt);
        let seen = [self.measured.rtt, counted, self.pulse.round_trip].into_iter().flatten().max();
        seen.unwrap_or(FIRST_ROUND_TRIP)
    }

    /// How long a PING may go unanswered.
    fn patience(&self, asked: &Asked) -> Duration {
        let patience = (self.round_trip() * PATIENCE_ROUND_TRIPS).max(MIN_PATIENCE);
        let packets = if asked.out_at.is_some() { UNHEARD_PACKETS } else { UNSEEN_PACKETS };
        let rate_bps =
            self.measured.rate_bps.map_or(UNKNOWN_RATE_BPS, |rate| rate.max(MIN_RATE_BPS));
        patience + Duration::from_secs_f64(packets * PACKET_BITS / rate_bps)
    }

    /// All that came was read: bytes of a frame may be left whose end has not come.
    fn note_partial(&mut self, now: Duration) {
        let (bytes, before) = (self.machine.partial_bytes() as u64, self.pulse.partial);
        let goes_on = bytes == before.bytes + (self.received - before.received);
        let (since, whole_at) = if goes_on { (before.since, before.whole_at) } else { (None, now) };
        let since = (bytes > 0).then(|| since.unwrap_or(now));
        self.pulse.partial = Partial { bytes, since, received: self.received, whole_at };
    }

    /// Whether a frame should long be whole.
    fn has_lost_step(&self, core: &Core, now: Duration) -> bool {
        let patience = core.config.peer_timeout * MAX_FRAME_TIMEOUTS;
        self.pulse.partial.since.is_some_and(|since| now > since + patience)
    }

    /// Something of ours waits for the peer.
    fn waits(&self) -> bool {
        !self.exchanges.is_empty() || self.under_way() + self.queued > 0
    }

    /// Whether the peer's kernel lacks something of what this one's took, as far as is known.
    fn is_unacknowledged(&self) -> bool {
        self.sent_in_all() > self.pulse.delivered
    }

    /// Whether the transport has tried in vain for so long that nothing gets through.
    fn is_blocked(&self) -> bool {
        self.measured.counters.is_some_and(|counters| counters.timeouts >= STALLED_TIMEOUTS)
            && self.measured.at.is_some_and(|at| at >= self.pulse.heard_at)
    }

    /// Whether a side of this role may ask the peer for a sign of life.
    fn may_probe(&self, role: Role) -> bool {
        role == Role::Edge || self.abilities.gateway_first
    }

    /// Silence that is long where something waits.
    fn quiet(&self) -> Duration {
        (self.round_trip() * QUIET_ROUND_TRIPS).clamp(MIN_QUIET, MAX_QUIET)
    }

    /// When a PING is due, if nothing comes until then.
    fn ping_due(&self, role: Role, keepalive: Duration) -> Duration {
        let pulse = &self.pulse;
        let idle = pulse.heard_at.max(pulse.spoke_at.unwrap_or_default()) + keepalive;
        // What a gateway waits for is mostly its origin's.
        if role == Role::Gateway || !self.waits() {
            return idle;
        }
        let quiet = self.quiet();
        let since = pulse.spoke_at.unwrap_or_default().max(pulse.heard_at);
        (since + quiet * (1 << pulse.calm)).min(idle)
    }

    /// The peer is asked for a sign of life.
    fn ping(&mut self, core: &mut Core, now: Duration, id: CarrierId) {
        let number = self.pulse.next;
        self.probe(now, number);
        self.pulse.next += 1;
        self.pulse.asked = Some(Asked { number, at: now, mark: None, out_at: None });
        core.timers.set(Key::Pulse(id), Some(now + MAX_TICK));
    }

    /// Something that may have an answer is sent to the peer.
    pub(super) fn spoke(&mut self, core: &mut Core, now: Duration, id: CarrierId) {
        self.pulse.calm = 0;
        if self.pulse.spoke_at.is_none() {
            self.pulse.spoke_at = Some(now);
            let due = self.ping_due(core.config.role, core.config.keepalive).max(now + MIN_TICK);
            core.timers.set_by(Key::Pulse(id), due);
        }
    }

    /// Something was given to the transport that need not have an answer: it will be looked at
    /// whether that gets there.
    pub(super) fn look_after(&mut self, core: &mut Core, now: Duration, id: CarrierId) {
        if core.is_edge() && self.pulse.answers {
            core.timers.set_by(Key::Pulse(id), now + self.quiet());
        }
    }

    /// It has not stalled, or no longer. Whether that is news.
    fn moves_again(&mut self) -> bool {
        self.pulse.stalled.take().is_some()
    }
}

/// What a look at a carrier came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    /// Nothing is to be done.
    Fine,
    /// Its transport's counters may say more.
    Measure,
    /// Nothing has come since then though it should have.
    Stalls(Duration),
    /// What had stalled gets on again.
    Recovers,
    /// It is given up, for this reason.
    Close(String),
}

impl Carriers {
    /// The peer said HELLO: the first PING shows whether it answers such, and how soon.
    pub(crate) fn begin_pulse(&mut self, core: &mut Core, now: Duration, id: CarrierId) -> Beat {
        let Some(carrier) = self.table.get_mut(&id) else { return Beat::Fine };
        carrier.pulse.heard(now);
        if !carrier.may_probe(core.config.role) {
            return self.beat(core, now, id);
        }
        carrier.ping(core, now, id);
        self.touch(id);
        Beat::Fine
    }

    /// Something came from the peer. Whether the carrier had stalled.
    pub(crate) fn heard(&mut self, core: &Core, now: Duration, id: CarrierId) -> bool {
        let Some(carrier) = self.table.get_mut(&id) else { return false };
        if carrier.has_lost_step(core, now) {
            return false;
        }
        carrier.pulse.heard(now);
        carrier.moves_again()
    }

    /// All that came over a carrier was read. Whether a frame has become whole that should long
    /// have been.
    pub(crate) fn read(&mut self, core: &Core, now: Duration, id: CarrierId) -> bool {
        let Some(carrier) = self.table.get_mut(&id) else { return false };
        let before = carrier.has_lost_step(core, now);
        carrier.note_partial(now);
        before && !carrier.has_lost_step(core, now)
    }

    /// The peer has answered a PING: the round trip as it is now.
    pub(crate) fn pong(
        &mut self,
        core: &mut Core,
        now: Duration,
        id: CarrierId,
        number: u64,
    ) -> Option<Duration> {
        self.answers |= core.is_edge();
        let carrier = self.table.get_mut(&id)?;
        carrier.pulse.pong(now, number);
        core.timers.set(Key::Pulse(id), Some(now + MIN_TICK));
        Some(carrier.round_trip())
    }

    /// It is time to look at a carrier.
    pub(crate) fn beat(&mut self, core: &mut Core, now: Duration, id: CarrierId) -> Beat {
        let (role, limit) = (core.config.role, core.config.peer_timeout);
        let is_known = self.answers;
        let Some(carrier) = self.table.get_mut(&id) else { return Beat::Fine };
        let Some(asked) = carrier.pulse.asked else { return self.beat_unasked(core, now, id) };
        let since = carrier.pulse.silent_since(&asked);
        let (patience, answers) = (carrier.patience(&asked), carrier.pulse.answers);
        // Whether datagrams pass is seen by nothing else: their silence says that they do not. And
        // who has answered over another carrier would over this one.
        let tells = answers || is_known || carrier.abilities.max_datagram_bytes.is_some();
        let stalled = carrier.pulse.stalled;
        let tick = (carrier.round_trip() / 4).clamp(MIN_TICK, MAX_TICK);
        let beat = if carrier.pulse.partial.whole_at > asked.at + patience
            || (!tells && now >= since + limit)
        {
            // It speaks and does not answer: its silence says nothing either.
            (carrier.pulse.asked, carrier.pulse.answers) = (None, false);
            Beat::Fine
        } else if tells && now >= since + limit {
            let waited = limit.as_secs_f64();
            let reason = format!("the other side did not answer within {waited} s (peer_timeout)");
            return Beat::Close(reason);
        } else if stalled.is_none()
            && role == Role::Edge
            && (answers && now >= since + patience || carrier.is_blocked())
        {
            carrier.pulse.stalled = Some(since);
            Beat::Stalls(since)
        } else if stalled.is_some_and(|stalled| stalled < since) {
            // What is before the PING gets on again.
            carrier.moves_again();
            Beat::Recovers
        } else {
            Beat::Measure
        };
        core.timers.set_by(Key::Pulse(id), now + tick);
        beat
    }

    /// It is time to look at a carrier whose peer was asked nothing.
    fn beat_unasked(&mut self, core: &mut Core, now: Duration, id: CarrierId) -> Beat {
        let (role, keepalive) = (core.config.role, core.config.keepalive);
        let limit = core.config.peer_timeout;
        let Some(carrier) = self.table.get_mut(&id) else { return Beat::Fine };
        if !carrier.may_probe(role) {
            // Its edge asks for a sign of life when it has heard none for that long.
            let (silent, due) = (keepalive + limit, carrier.pulse.heard_at + keepalive + limit);
            if now < due {
                core.timers.set(Key::Pulse(id), Some(due));
                return Beat::Fine;
            }
            let silent = silent.as_secs_f64();
            let reason = format!("nothing came for {silent} s (keepalive and peer_timeout)");
            return Beat::Close(reason);
        }
        let due = carrier.ping_due(role, keepalive);
        let late = role == Role::Edge && carrier.pulse.answers && carrier.is_unacknowledged();
        if now >= due || (late && carrier.pulse.doubted) {
            carrier.pulse.doubted = false;
            carrier.ping(core, now, id);
            self.touch(id);
            return Beat::Fine;
        }
        carrier.pulse.doubted = late;
        let due = if late { due.min(now + MAX_TICK) } else { due };
        core.timers.set(Key::Pulse(id), Some(due));
        if late { Beat::Measure } else { Beat::Fine }
    }
}
