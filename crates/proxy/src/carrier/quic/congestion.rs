//! Which congestion control a connection has, and what it sees of the path.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use decide::estimate::Transport;
use quinn_proto::congestion::{
    BbrConfig, Controller, ControllerFactory, ControllerMetrics, CubicConfig, NewRenoConfig,
};
use quinn_proto::{Connection, RttEstimator};

/// Bytes of a datagram around those of streams, about.
const AROUND_BYTES: u16 = 40;
/// What a peer may wait before it acknowledges (RFC 9000 §18.2), with clocks that are late.
const MIN_PROBE: Duration = Duration::from_millis(50);
/// On a link that nobody shares so much waits for it, and so many datagrams are under way at least.
const OWN_QUEUE: Duration = Duration::from_millis(100);
const MIN_OWN_DATAGRAMS: u64 = 2;
/// Instants at which datagrams left that are remembered, to tell the rate of delivery.
const MAX_DEPARTURES: usize = 4096;

/// A congestion control of the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    /// RFC 9438.
    Cubic,
    /// RFC 9002 §7.
    NewReno,
    /// As of draft-cardwell-iccrg-bbr-congestion-control-00.
    Bbr,
}

impl Control {
    /// The one that has this name in the kernel; CUBIC where there is none such here.
    pub(super) fn named(name: Option<&str>) -> Self {
        match name {
            Some("reno") => Self::NewReno,
            Some("bbr") => Self::Bbr,
            _ => Self::Cubic,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::NewReno => "reno",
            Self::Bbr => "bbr",
        }
    }

    /// It, and what it sees is noted; `own_bytes_per_s`: what the link carries, where nobody shares
    /// it.
    pub(super) fn counting(self, seen: &Arc<Seen>, own_bytes_per_s: Option<u64>) -> Counting {
        Counting { control: self, seen: Arc::clone(seen), own_bytes_per_s }
    }
}

/// What was seen of a connection's path.
#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<SeenState>);

#[derive(Debug, Default)]
struct SeenState {
    transport: Transport,
    /// Bytes that were acknowledged in all.
    delivered: u64,
    /// What had been, when datagrams left that are under way.
    departures: BTreeMap<Instant, u64>,
    /// Bytes of datagrams under way when something was acknowledged last, and of streams given to
    /// the transport since.
    in_flight: u64,
    given: u64,
    /// Since when something waits to be acknowledged, or was last.
    waits_since: Option<Instant>,
    /// What a probe waits for (RFC 9002 §6.2.1), about.
    probe_after: Duration,
}

impl Seen {
    fn lock(&self) -> MutexGuard<'_, SeenState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counters, as they were last noted.
    pub(crate) fn transport(&self) -> Transport {
        self.lock().transport
    }

    /// So many bytes of streams were given to the transport.
    pub(super) fn gave(&self, now: Instant, bytes: usize) {
        let mut state = self.lock();
        state.given += bytes as u64;
        state.waits_since.get_or_insert(now);
    }

    /// Notes the counters of a connection; `blocked`: it takes no more now, for it holds `window`
    /// bytes. `idle`: since it was given something.
    pub(super) fn note(
        &self,
        now: Instant,
        connection: &Connection,
        blocked: Option<u64>,
        idle: Duration,
    ) {
        let stats = connection.stats();
        let count = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let mut state = self.lock();
        let backlog = state.in_flight.saturating_add(state.given);
        let (path, mut transport) = (stats.path, state.transport);
        if !connection.is_handshaking() {
            (transport.rtt, transport.min_rtt) = (path.rtt, path.min_rtt);
        }
        transport.segments_out = count(path.sent_packets);
        transport.bytes_out = stats.udp_tx.bytes;
        transport.retransmitted = count(path.lost_packets);
        transport.segment_bytes = u32::from(path.current_mtu.saturating_sub(AROUND_BYTES));
        transport.window_segments = count(path.cwnd / u64::from(path.current_mtu.max(1)));
        transport.backlog_bytes = blocked.map_or(backlog, |window| window.max(backlog));
        transport.idle = idle;
        transport.timeouts = state.timeouts(now);
        state.transport = transport;
    }
}

impl SeenState {
    /// Probes in a row that were in vain: each waits twice as long as the one before.
    fn timeouts(&self, now: Instant) -> u32 {
        let waited = self.waits_since.map_or(Duration::ZERO, |since| now - since);
        let times = waited.as_secs_f64() / self.probe_after.max(MIN_PROBE).as_secs_f64();
        // The n-th is due after 2^n - 1 times as long.
        u32::try_from(Duration::from_secs_f64((times + 1.0).log2()).as_secs()).unwrap_or(u32::MAX)
    }

    /// Bytes that left at `sent` were acknowledged.
    fn acknowledged(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool) {
        self.delivered += bytes;
        let before = self.departures.get(&sent).copied();
        // What left earlier is acknowledged, or as good as lost.
        self.departures = self.departures.split_off(&sent);
        let (Some(before), Some(took)) = (before, now.checked_duration_since(sent)) else { return };
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
        let rate = (self.delivered - before).saturating_mul(1_000_000) / took_us;
        // A lower bound says nothing of a path that was seen to take more.
        if !app_limited || rate >= self.transport.delivered_bytes_per_s {
            self.transport.delivered_bytes_per_s = rate;
            self.transport.app_limited = app_limited;
        }
    }
}

/// Makes controls that note what they see.
pub(super) struct Counting {
    control: Control,
    seen: Arc<Seen>,
    own_bytes_per_s: Option<u64>,
}

impl ControllerFactory for Counting {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = match self.control {
            Control::Cubic => Arc::new(CubicConfig::default()).build(now, current_mtu),
            Control::NewReno => Arc::new(NewRenoConfig::default()).build(now, current_mtu),
            Control::Bbr => Arc::new(BbrConfig::default()).build(now, current_mtu),
        };
        let own =
            self.own_bytes_per_s.map(|bytes_per_s| Own { bytes_per_s, min_rtt: None, current_mtu });
        Box::new(Noting { inner, seen: Arc::clone(&self.seen), own })
    }
}

/// A link that nobody shares.
#[derive(Clone, Copy)]
struct Own {
    /// What it carries.
    bytes_per_s: u64,
    min_rtt: Option<Duration>,
    current_mtu: u16,
}

impl Own {
    /// Most bytes that are under way: what the link holds, and what it takes in a moment.
    fn window(&self) -> u64 {
        let Some(min_rtt) = self.min_rtt else { return u64::MAX };
        let within = u64::try_from((min_rtt + OWN_QUEUE).as_micros()).unwrap_or(u64::MAX);
        let holds = self.bytes_per_s.saturating_mul(within) / 1_000_000;
        holds.max(MIN_OWN_DATAGRAMS * u64::from(self.current_mtu))
    }
}

/// A control of the transport, and what it sees is noted.
struct Noting {
    inner: Box<dyn Controller>,
    seen: Arc<Seen>,
    own: Option<Own>,
}

impl Controller for Noting {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        let mut state = self.seen.lock();
        let delivered = state.delivered;
        state.departures.entry(now).or_insert(delivered);
        while state.departures.len() > MAX_DEPARTURES {
            state.departures.pop_first();
        }
        drop(state);
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let mut state = self.seen.lock();
        state.acknowledged(now, sent, bytes, app_limited);
        state.probe_after = rtt.conservative() * 2 + MIN_PROBE;
        drop(state);
        if let Some(own) = &mut self.own {
            own.min_rtt = Some(rtt.min());
        }
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        let mut state = self.seen.lock();
        (state.in_flight, state.given) = (in_flight, 0);
        state.waits_since = (in_flight > 0).then_some(now);
        drop(state);
        self.inner.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let mut state = self.seen.lock();
        state.in_flight = state.in_flight.saturating_sub(lost_bytes);
        if state.in_flight == 0 && state.given == 0 {
            state.waits_since = None;
        }
        drop(state);
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        if let Some(own) = &mut self.own {
            own.current_mtu = new_mtu;
        }
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        let own = self.own.map_or(u64::MAX, |own| own.window());
        self.inner.window().min(own)
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let (inner, seen) = (self.inner.clone_box(), Arc::clone(&self.seen));
        Box::new(Self { inner, seen, own: self.own })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}
