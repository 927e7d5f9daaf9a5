//! What is known of the path to the peer: rate, round trip, loss and queueing, each with how sure
//! that is.
//!
//! Two sources: the transport's own counters ([`Transport`], Linux's TCP_INFO), and what the peer
//! tells of each message ([`Receipt`]). All durations are differences on one clock, so that an
//! offset between the clocks of the two never enters.

use std::time::Duration;

use crate::network::{Path, RateAware};

/// Round trips remembered; the least of them is the path's own.
const ROUND_TRIPS: usize = 8;
/// Round trips after which a longer path is believed though none was short.
const BELIEVED_ROUND_TRIPS: usize = 3;
/// Of what loss told before, so much is left after each packet.
const LOSS_FORGETTING: f64 = 0.998;
/// Loss before anything is known: one packet in a thousand, with the weight of few.
const LOSS_PRIOR: (f64, f64) = (0.02, 20.0);
/// Loss up to here is none that anybody has seen.
pub(crate) const UNSEEN_LOSS: f64 = LOSS_PRIOR.0 / LOSS_PRIOR.1;
/// A rate this many times off, twice in the same direction, is another link.
const JUMP: f64 = 1.6;
/// Share of a new rate that enters the mean of logarithms.
const RATE_GAIN: f64 = 0.3;
/// Round trips this much longer than the least mean that packets wait for the link: it is full.
const FULL: f64 = 1.25;
/// What clocks and schedulers add to times.
const CLOCK_S: f64 = 1e-4;
/// Where bounds of the rate alone are known, it may be this much more, unless times say how much.
/// Better too much than too little: what is left alone for it shows the rate, what is made small
/// for the contrary never does.
const HOPE: f64 = 16.0;
/// Share of an older mean round trip that an acknowledgement leaves (RFC 6298 §2).
const RTT_KEPT: f64 = 0.875;
/// A message's serialization tells the rate when it is at least this share of the delay.
const PLAIN_SHARE: f64 = 0.1;
/// So much of a message's time processes on its way wait until they are woken, 0.4 to 0.7 ms
/// on machines that have little else to do.
const WAKING_S: f64 = 6e-4;
/// Now and then they wait for so long, where others keep the processor busy.
const SELDOM_WAKING_S: f64 = 10e-3;
/// So many messages in a row wait so long by chance hardly ever.
const SELDOM_IN_A_ROW: usize = 4;
/// Linux's least timeout beyond the round trip.
const MIN_TIMEOUT_S: f64 = 0.2;
/// Packets that a new connection may send at once (RFC 6928).
const NEW_WINDOW: f64 = 10.0;
/// Segments that may have left beside a message: a receipt, what it grants.
const OTHER_SEGMENTS: u32 = 2;
/// A train of fewer packets tells no rate: the first packet is not in its time.
const SHORTEST_TRAIN_PACKETS: f64 = 4.0;
/// Packets on the way are no longer than this, whatever the first hop's are: Ethernet's.
const MAX_SEGMENT_BYTES: f64 = 1448.0;

/// A train that takes so many times what its windows waited for tells the rate: it was the link
/// that it waited for.
const MOSTLY_SENDING: f64 = 2.0;

/// The transport's rate, so many times what a message came at, is not of the whole path if messages
/// do not come faster after it, so many times in a row: where something ends the connection on the
/// way (a performance enhancing proxy, RFC 3135; a tunnel) it is of the first hop.
const FIRST_HOP: f64 = 4.0;
const FIRST_HOP_IN_A_ROW: u32 = 3;
/// It is not listened to then for so many messages, in case that was chance.
const UNHEARD_MESSAGES: u32 = 64;

/// Counters of the transport, at a moment; those that count up since its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transport {
    /// Smoothed round trip (tcpi_rtt).
    pub rtt: Duration,
    /// Least round trip of late (tcpi_min_rtt).
    pub min_rtt: Duration,
    /// Bytes a second that were delivered (tcpi_delivery_rate), and whether the sender had more to
    /// send then: else it is only a lower bound.
    pub delivered_bytes_per_s: u64,
    /// Whether `delivered_bytes_per_s` was held back by the sender
    /// (tcpi_delivery_rate_app_limited).
    pub app_limited: bool,
    /// Segments with data sent, counted up (tcpi_data_segs_out).
    pub segments_out: u32,
    /// Bytes of data sent, those sent again too, counted up (tcpi_bytes_sent); 0 where the kernel
    /// does not tell.
    pub bytes_out: u64,
    /// Segments sent again, counted up (tcpi_total_retrans).
    pub retransmitted: u32,
    /// Retransmission timeouts in a row, since something was last acknowledged (tcpi_backoff).
    pub timeouts: u32,
    /// Duplicates that the peer told of (tcpi_dsack_dups): sent again without need.
    pub duplicates: u32,
    /// Congestion window in segments (tcpi_snd_cwnd).
    pub window_segments: u32,
    /// Window above which it grows slowly (tcpi_snd_ssthresh); 0 where the kernel does not tell.
    pub threshold_segments: u32,
    /// Bytes that the receiver takes at once (tcpi_snd_wnd); 0 where the kernel does not tell.
    pub receiver_window_bytes: u32,
    /// Payload of a segment in bytes (tcpi_snd_mss).
    pub segment_bytes: u32,
    /// Bytes not yet acknowledged or not yet sent.
    pub backlog_bytes: u64,
    /// Time since data was last sent (tcpi_last_data_sent).
    pub idle: Duration,
    /// It makes good what is lost by repair ([`Path::repairs`]).
    pub repairs: bool,
    /// A packet leaves when the peer has answered the one before: there is no window.
    pub lockstep: bool,
    /// Packets of a million that the peer sends which do not arrive, where the transport tells.
    pub incoming_loss_ppm: Option<u32>,
}

/// What the peer tells of a message that it received.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Receipt {
    /// Bytes that came behind the first piece.
    pub bytes: u64,
    /// Time from the first piece to the last.
    pub spread: Duration,
    /// Whether they left without a pause: the sender always had the next ready.
    pub unbroken: bool,
    /// Windows that all of the message took ([`Path::windows`]), its first piece too: what is
    /// beyond the first waited for what comes back.
    pub windows: f64,
}

/// A figure and how many observations, by weight, stand behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The estimate.
    pub value: f64,
    /// 0: nobody has measured.
    pub weight: f64,
}

/// Estimates of one carrier's path in one direction. Their size is constant.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// Mean of the rates' logarithms.
    ln_rate: f64,
    rate_weight: f64,
    /// Whether the rate showed itself on this path, or bounds alone are known.
    shown: bool,
    /// The last rate that was far off, as a logarithm's difference.
    off: Option<f64>,
    hops: Hops,
    /// Messages in a row that may have been woken late, and the most that the link can by each of
    /// the last of them.
    late: usize,
    late_most: [f64; SELDOM_IN_A_ROW],
    round_trips: [f64; ROUND_TRIPS],
    round_trip_count: usize,
    queueing_s: f64,
    lost: f64,
    arrived: f64,
    last: Option<Transport>,
    since_message: Since,
    /// What left since the mean round trip moved.
    unheard: Sent,
    /// Bytes that may have waited for one another when it moved: what left, and what was under way.
    own_bytes: f64,
    cap_bps: Option<f64>,
    /// Counts up when the path turned out to be another.
    jumps: u32,
}

/// Whether the transport's rate is of the whole path.
#[derive(Clone, Copy, Debug, Default)]
struct Hops {
    /// What the last message came at, in bit/s.
    came: Option<f64>,
    /// The transport says far more since.
    doubted: bool,
    /// How often in a row that was not so.
    wrong: u32,
    /// Messages before it is listened to again.
    unheard: u32,
}

impl Hops {
    /// The transport says so much; whether to listen.
    fn listens(&mut self, bps: f64) -> bool {
        self.doubted |= self.came.is_some_and(|came| bps > FIRST_HOP * came);
        self.unheard == 0
    }

    /// A message came at so much; where that took so little that processes may have waited it
    /// says nothing against the transport.
    fn came(&mut self, bps: f64, slow: bool) {
        let before = self.came.replace(bps);
        let doubted = std::mem::take(&mut self.doubted);
        if before.is_some_and(|before| bps > FIRST_HOP * before) {
            (self.wrong, self.unheard) = (0, 0);
        } else if doubted && slow {
            self.wrong += 1;
        }
        if self.wrong >= FIRST_HOP_IN_A_ROW {
            (self.wrong, self.unheard) = (0, UNHEARD_MESSAGES);
        }
    }
}

/// Packets sent and lost since a message's time was taken, and the loss that was usual until then.
#[derive(Clone, Copy, Debug, Default)]
struct Since {
    sent: f64,
    lost: f64,
    usual: f64,
}

/// What was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    segments: u32,
    bytes: u64,
}

impl Sent {
    /// Bytes of a segment among them: the kernel reckons its rates as if all were full.
    fn segment_bytes(self, full: f64) -> f64 {
        if self.segments == 0 || self.bytes == 0 {
            return full;
        }
        (self.bytes as f64 / f64::from(self.segments)).min(full)
    }
}

impl Transport {
    /// The window that the next data will find, in segments: a sender that was idle halves it for
    /// every timeout, down to that of a new connection (RFC 2861), and the receiver has its own.
    #[must_use]
    pub fn next_window(&self) -> f64 {
        let window = f64::from(self.window_segments);
        let timeout = self.rtt.as_secs_f64() + MIN_TIMEOUT_S;
        let halvings = (self.idle.as_secs_f64() / timeout).floor();
        let window = (window * 0.5_f64.powf(halvings)).max(window.min(NEW_WINDOW));
        if self.receiver_window_bytes == 0 || self.segment_bytes == 0 {
            return window;
        }
        let receiver = f64::from(self.receiver_window_bytes) / f64::from(self.segment_bytes);
        window.min(receiver.max(1.0))
    }

    /// Bytes of a segment among those sent since `before`, of a message that was among them: what
    /// is written apart leaves short. Those of a full one where the kernel does not tell.
    #[must_use]
    pub fn segment_bytes_since(&self, before: &Self) -> f64 {
        let segments = self.segments_out.saturating_sub(before.segments_out);
        let bytes = self.bytes_out.saturating_sub(before.bytes_out);
        let sent = Sent { segments: segments.saturating_sub(OTHER_SEGMENTS), bytes };
        sent.segment_bytes(f64::from(self.segment_bytes))
    }
}

impl Estimate {
    /// Nothing measured: `rate_bps` and `rtt` are what to expect; `cap_bps` is the operator's
    /// bound.
    #[must_use]
    pub fn new(rate_bps: f64, rtt: Duration, cap_bps: Option<f64>) -> Self {
        Self {
            ln_rate: rate_bps.max(1.0).ln(),
            rate_weight: 0.0,
            shown: false,
            off: None,
            hops: Hops::default(),
            late: 0,
            late_most: [0.0; SELDOM_IN_A_ROW],
            round_trips: [rtt.as_secs_f64(); ROUND_TRIPS],
            round_trip_count: 0,
            queueing_s: 0.0,
            lost: LOSS_PRIOR.0,
            arrived: LOSS_PRIOR.1,
            last: None,
            since_message: Since::default(),
            unheard: Sent::default(),
            own_bytes: 0.0,
            cap_bps,
            jumps: 0,
        }
    }

    /// Bit/s.
    #[must_use]
    pub fn rate_bps(&self) -> Figure {
        let rate = self.ln_rate.exp();
        let value = self.cap_bps.map_or(rate, |cap| rate.min(cap));
        Figure { value, weight: self.rate_weight }
    }

    /// Round trip without queueing, in seconds.
    #[must_use]
    pub fn rtt_s(&self) -> Figure {
        let known = self.round_trip_count.clamp(1, ROUND_TRIPS);
        let least = self.round_trips[..known].iter().copied().fold(f64::INFINITY, f64::min);
        Figure { value: least, weight: self.round_trip_count as f64 }
    }

    /// Share of packets lost.
    #[must_use]
    pub fn loss(&self) -> Figure {
        let all = self.lost + self.arrived;
        Figure { value: self.lost / all, weight: all - LOSS_PRIOR.0 - LOSS_PRIOR.1 }
    }

    /// Share of the peer's packets that do not arrive, as the transport told last.
    #[must_use]
    pub fn incoming_loss(&self) -> Option<f64> {
        let ppm = self.last?.incoming_loss_ppm?;
        Some((f64::from(ppm) * 1e-6).min(1.0))
    }

    /// Seconds that packets waited in queues of late.
    #[must_use]
    pub fn queueing_s(&self) -> f64 {
        self.queueing_s
    }

    /// How often the path turned out to be another than before; who learns from its times forgets
    /// when this counts up.
    #[must_use]
    pub fn jumps(&self) -> u32 {
        self.jumps
    }

    /// Whether a path is still what it was taken for: what a message took that went before it
    /// turned out to be another teaches nothing of either.
    #[must_use]
    pub fn is_still(&self, path: &Path) -> bool {
        path.jumps == self.jumps
    }

    /// The path as the models take it.
    #[must_use]
    pub fn path(&self) -> Path {
        let last = self.last.unwrap_or_default();
        let or = |value: u32, otherwise: f64| {
            if value > 0 { f64::from(value) } else { otherwise }
        };
        Path {
            peer: 0,
            jumps: self.jumps,
            rate_bps: self.rate_bps().value,
            cap_bps: self.cap_bps.unwrap_or(f64::INFINITY),
            measured: self.rate_weight > 0.0,
            rtt_s: self.rtt_s().value,
            loss: self.loss().value,
            segment_bytes: or(last.segment_bytes, 1448.0),
            header_bytes: 52.0,
            start_window: match last.window_segments {
                _ if last.lockstep => 1.0,
                0 => NEW_WINDOW,
                _ => last.next_window(),
            },
            repairs: last.repairs,
            threshold: or(last.threshold_segments, f64::INFINITY),
            most_window: if last.lockstep { 1.0 } else { 1e6 },
            timeout_s: (self.rtt_s().value + 0.2).max(0.2),
            backlog_bytes: last.backlog_bytes as f64,
        }
        .bounded()
    }

    /// Takes the transport's counters, of one connection in order.
    pub fn transport(&mut self, now: Transport) {
        let before = self.last.replace(now);
        let before = before.filter(|before| before.segments_out <= now.segments_out);
        if let Some(before) = &before {
            self.packets(before, &now);
            let segments = now.segments_out - before.segments_out;
            self.unheard.segments = self.unheard.segments.saturating_add(segments);
            let bytes = now.bytes_out.saturating_sub(before.bytes_out);
            self.unheard.bytes = self.unheard.bytes.saturating_add(bytes);
        }
        // What was told already is not told again.
        if before.is_none_or(|before| before.rtt != now.rtt) {
            let sent = std::mem::take(&mut self.unheard);
            self.acknowledged(before.as_ref(), &now, sent);
        }
    }

    /// Something came back since the counters were read before.
    fn acknowledged(&mut self, before: Option<&Transport>, now: &Transport, sent: Sent) {
        let path = self.path();
        let packet_bytes = sent.segment_bytes(path.segment_bytes) + path.header_bytes;
        let under_way = before.map_or(0.0, |before| before.backlog_bytes as f64);
        let window = now.window_segments.max(1);
        let left = f64::from(sent.segments.min(window)) * packet_bytes;
        if under_way > 0.0 {
            // What comes back left when the queue may have been longer.
            let most = f64::from(window) * (path.segment_bytes + path.header_bytes);
            self.own_bytes = self.own_bytes.max(left + under_way).min(most);
        } else if sent.segments > 0 {
            self.own_bytes = left;
        }
        let rtt = now.rtt.as_secs_f64();
        if rtt > 0.0 {
            let least = now.min_rtt.max(Duration::from_micros(1)).as_secs_f64();
            let latest = latest_rtt_s(before, now, sent).max(least);
            // Packets that waited for those before them met no longer path.
            let alone = latest - 8.0 * self.own_bytes / path.rate_bps;
            // A kernel remembers the least for minutes: a path that got longer shows in the latest.
            self.round_trip(latest.min(least.max(alone / JUMP)));
            self.queueing_s = (rtt - self.rtt_s().value).max(0.0);
        }
        let sample = |of: &Transport| (of.delivered_bytes_per_s, of.app_limited);
        let few = f64::from(sent.segments) < SHORTEST_TRAIN_PACKETS;
        if few && before.is_some_and(|before| sample(before) == sample(now)) {
            // The kernel keeps the last that the link held back: it is of other segments.
            return;
        }
        let bps = 8.0 * packet_bytes * now.delivered_bytes_per_s as f64 / path.segment_bytes;
        if !self.hops.listens(bps) {
            return;
        }
        // What is delivered is what the link can where packets wait for it; else the window or the
        // sender may have held it back.
        let waiting = rtt - self.rtt_s().value;
        let full = waiting > (FULL - 1.0) * self.rtt_s().value + CLOCK_S;
        if full && !now.app_limited {
            self.late = 0;
            return self.exactly(bps);
        }
        // All of a round trip beyond the least would be sending at the link's rate.
        let hope = (rtt / waiting.max(CLOCK_S)).clamp(1.0, HOPE);
        if full && self.rate_weight == 0.0 {
            return self.guess(hope * bps);
        }
        self.at_least(bps, hope);
    }

    /// Takes how long a message took, from the first of its bytes to leave to the last to arrive.
    /// `unbroken` says that it left at once: it was at hand, the window held all of it (see
    /// [`Transport::next_window`] before it) and nothing was sent again meanwhile.
    pub fn took(&mut self, bytes: f64, seconds: f64, unbroken: bool) {
        let path = self.path();
        let wire = bytes + (bytes / path.segment_bytes).ceil().max(1.0) * path.header_bytes;
        let Since { sent, lost, usual } = std::mem::take(&mut self.since_message);
        if lost > 0.0 && lost >= usual * sent && seconds > 0.0 {
            let packets = wire / (path.segment_bytes + path.header_bytes);
            self.not_held_back(packets / seconds * path.rtt_s);
        }
        if !unbroken || !seconds.is_finite() || seconds <= 0.0 {
            return;
        }
        let delay = path.rtt_s / 2.0;
        let shortest = (PLAIN_SHARE * delay).max(CLOCK_S);
        let sending = seconds - delay;
        let bps = 8.0 * wire / sending.max(shortest);
        // What processes waited for is not the link's.
        let hope = sending.max(shortest) / (sending - WAKING_S).max(shortest / HOPE);
        let says_slower = hope < HOPE && hope * bps < self.ln_rate.exp();
        let known = self.rate_weight > 0.0;
        let bps = if known && says_slower && sending < SELDOM_WAKING_S {
            let Some(most) = self.woken_late(hope * bps) else { return };
            most / hope
        } else {
            self.late = 0;
            bps
        };
        if sending > shortest && hope < JUMP {
            return self.exactly(bps * hope.sqrt());
        }
        self.between(bps, hope.min(HOPE));
    }

    /// What waited is late and never early: that the link is slower than it has shown itself to be
    /// is believed when several messages in a row say so, and then the fastest of them.
    fn woken_late(&mut self, most_bps: f64) -> Option<f64> {
        self.late_most[self.late % SELDOM_IN_A_ROW] = most_bps;
        self.late += 1;
        let fastest = self.late_most.iter().copied().fold(0.0, f64::max);
        (self.late >= SELDOM_IN_A_ROW).then_some(fastest)
    }

    /// A new connection on the same path: its counters begin again.
    pub fn reconnected(&mut self) {
        (self.last, self.unheard, self.own_bytes) = (None, Sent::default(), 0.0);
        (self.since_message, self.late, self.hops) = (Since::default(), 0, Hops::default());
    }

    /// Takes what the peer tells of a message; whether that told the rate, which the message's time
    /// then is not to tell again: what disturbs the one disturbs the other.
    pub fn receipt(&mut self, receipt: &Receipt) -> bool {
        let path = self.path();
        self.hops.unheard = self.hops.unheard.saturating_sub(1);
        let seconds = receipt.spread.as_secs_f64();
        // Within a host packets may be of 64 kB; what takes longer than a process waits came over
        // some link behind that.
        let slow = seconds > SELDOM_WAKING_S;
        let most_bytes = if slow { MAX_SEGMENT_BYTES } else { path.segment_bytes };
        let packets = (receipt.bytes as f64 / path.segment_bytes.min(most_bytes)).ceil();
        // The last may be short.
        let wire = receipt.bytes as f64 + packets * path.header_bytes;
        if !receipt.unbroken || packets < SHORTEST_TRAIN_PACKETS || seconds <= 0.0 {
            return false;
        }
        // A window doubles with each round trip.
        let waits_s = ((receipt.windows + 1.0).log2().ceil() - 1.0).max(0.0) * path.rtt_s;
        let bps = 8.0 * wire / seconds;
        if seconds > MOSTLY_SENDING * waits_s {
            self.hops.came(bps, slow);
            self.late = 0;
            self.exactly(bps);
        } else if self.rate_weight == 0.0 {
            // Any bound is better than what was expected of any link.
            self.rate(bps);
        } else {
            self.at_least(bps, 1.0);
        }
        true
    }

    fn round_trip(&mut self, seconds: f64) {
        let least = self.rtt_s().value;
        let at = self.round_trip_count % ROUND_TRIPS;
        self.round_trips[at] = seconds;
        self.round_trip_count += 1;
        let low = (1..=BELIEVED_ROUND_TRIPS.min(self.round_trip_count))
            .map(|back| self.round_trips[(self.round_trip_count - back) % ROUND_TRIPS])
            .fold(f64::INFINITY, f64::min);
        // Nothing arrives before its time: a shorter path shows at once.
        let moved = low > least * JUMP || seconds * JUMP < least;
        if self.round_trip_count > BELIEVED_ROUND_TRIPS && moved {
            self.round_trips = [seconds.min(low); ROUND_TRIPS];
            self.another_path();
        }
    }

    /// What was measured was of another path.
    fn another_path(&mut self) {
        self.shown = false;
        (self.lost, self.arrived) = LOSS_PRIOR;
        self.jumps += 1;
    }

    fn packets(&mut self, before: &Transport, now: &Transport) {
        let sent = f64::from(now.segments_out - before.segments_out);
        let again = f64::from(now.retransmitted.saturating_sub(before.retransmitted));
        let needless = f64::from(now.duplicates.saturating_sub(before.duplicates));
        let kept = LOSS_FORGETTING.powf(sent);
        let counted = (self.lost - LOSS_PRIOR.0) * kept;
        // That it was needless shows a round trip later: what was counted as lost was not.
        let lost = (again.min(sent) - needless).max(-counted);
        if self.since_message.sent == 0.0 {
            self.since_message.usual = self.loss().value;
        }
        self.since_message.sent += sent;
        self.since_message.lost += lost.max(0.0);
        self.lost = LOSS_PRIOR.0 + counted + lost;
        self.arrived = LOSS_PRIOR.1 + (self.arrived - LOSS_PRIOR.1) * kept + sent - lost;
    }

    /// A message that lost no less than is usual kept so many packets under way: a queue that
    /// overflows loses many at once, and holds a transfer back once for all of them, which models
    /// of losses by chance do not know.
    fn not_held_back(&mut self, window: f64) {
        let Figure { value: loss, .. } = self.loss();
        let most = RateAware::most_loss(window.max(1.0), self.rtt_s().value);
        if loss > most {
            let all = self.lost + self.arrived;
            self.lost = (most * all).max(LOSS_PRIOR.0).min(self.lost);
            self.arrived = all - self.lost;
        }
    }

    /// What the link can. Where it never showed itself, there is nothing to hold that against.
    fn exactly(&mut self, bps: f64) {
        // Of nothing that was delivered yet there is no rate.
        if !self.shown && is_rate(bps) {
            self.shown = true;
            return self.settle(bps);
        }
        self.rate(bps);
    }

    /// The link can at least so much, and where it has not shown its rate, it may be `hope` times
    /// that.
    fn at_least(&mut self, bps: f64, hope: f64) {
        let bps = if self.shown { bps } else { hope * bps };
        if bps > self.ln_rate.exp() {
            self.rate(bps);
        }
    }

    /// The link can at least so much, and at most `hope` times that if this is less than one hopes
    /// for anyway.
    fn between(&mut self, bps: f64, hope: f64) {
        let most = hope * bps;
        if self.rate_weight == 0.0 || (hope < HOPE && most < self.ln_rate.exp()) {
            // Any bound is better than what was expected of any link.
            self.rate(most);
        } else {
            self.at_least(bps, hope);
        }
    }

    /// Nobody has measured: this is better than what was expected of any link.
    fn guess(&mut self, bps: f64) {
        if is_rate(bps) {
            self.ln_rate = bps.ln();
        }
    }

    fn rate(&mut self, bps: f64) {
        if !is_rate(bps) {
            return;
        }
        let off = bps.ln() - self.ln_rate;
        let far = off.abs() > JUMP.ln();
        let again = self.off.take().is_some_and(|before| before.signum() == off.signum());
        if self.rate_weight == 0.0 || (far && again) {
            self.settle(bps);
        } else if far {
            // It may be one that was disturbed: the next decides.
            self.off = Some(off);
        } else {
            self.ln_rate += off * RATE_GAIN.max(1.0 / (self.rate_weight + 1.0));
            self.rate_weight = self.rate_weight * (1.0 - RATE_GAIN) + 1.0;
        }
    }

    /// A rate to begin with; what was measured before is of another.
    fn settle(&mut self, bps: f64) {
        let far = (bps.ln() - self.ln_rate).abs() > JUMP.ln();
        self.jumps += u32::from(far && self.rate_weight > 0.0);
        (self.ln_rate, self.rate_weight, self.off) = (bps.ln(), 1.0, None);
        self.late = 0;
    }
}

/// In bit/s, one that a link may have.
fn is_rate(bps: f64) -> bool {
    bps.is_finite() && bps >= 1.0
}

/// The round trip that moved the mean from what it was to what it is, if there were as many
/// acknowledgements as segments.
fn latest_rtt_s(before: Option<&Transport>, now: &Transport, sent: Sent) -> f64 {
    let mean = now.rtt.as_secs_f64();
    let before = before.map_or(mean, |before| before.rtt.as_secs_f64());
    let kept = RTT_KEPT.powf(f64::from(sent.segments.max(1)));
    (mean - kept * before) / (1.0 - kept)
}
