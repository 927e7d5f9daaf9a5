//! The configuration of a relay, and its bounds.

use std::time::Duration;

use codec::Table;
use coding::{Encoding, Secret, Service};
use decide::estimate::Estimate;
use proto::control::Allowed;
use proto::exchange::Role;
use proto::kinds::Kind;
use proto::urgency::Urgency;
use record::decision::Direction;

use crate::handling::Handling;

/// Body bytes the local side may hand over ahead of the carrier, per exchange: two blocks.
pub const LOCAL_WINDOW_BYTES: u64 = 128 * 1024;
/// Credit each exchange starts with towards the peer; at least one encoded block.
pub const INITIAL_CREDIT_BYTES: u64 = 128 * 1024;
/// Most credit outstanding on one exchange.
pub(crate) const MAX_CREDIT_BYTES: u64 = 2 << 20;
/// Bytes given to a carrier and not yet taken by the kernel: little, so that what is urgent passes.
pub(crate) const TRANSMIT_WINDOW_BYTES: usize = 16 * 1024;
/// A carrier whose peer does not read, while control parts pile up, is closed at this.
pub(crate) const MAX_BACKLOG_BYTES: usize = 1 << 20;
/// What is of no exchange and no longer than this goes before all else.
pub(crate) const SHORT_CONTROL_BYTES: usize = 256;
/// Largest piece of a block while others wait too; alone, a piece fills the transmit window.
pub(crate) const PIECE_BYTES: usize = 2 * 1024;
/// Most of an answer kept per exchange for a replay, in bytes of memory.
pub(crate) const RETAINED_EXCHANGE_BYTES: usize = 64 * 1024;
/// Most of a request's body kept per exchange until its answer begins, to be sent again over
/// another carrier, in bytes.
pub(crate) const MAX_REQUEST_BYTES: usize = 64 * 1024;
/// Most exchanges that are over and whose outcome is remembered, and most edges known.
pub(crate) const MAX_OUTCOMES: usize = 4096;
/// Most times that a request goes back to wait for a carrier; a gateway that keeps taking requests
/// and breaking is no better than none.
pub(crate) const MAX_RESENDS: u8 = 8;
/// How long nothing may pass through an exchange, unless said otherwise: at 2.4 kbit/s each of 256
/// exchanges is scheduled within half of it.
const MAX_STILL: Duration = Duration::from_secs(60 * 60);
/// A tunnel or event stream through which nothing passed for so long goes for another, where there
/// are no more to be had.
pub(crate) const MIN_IDLE: Duration = Duration::from_secs(30);
/// The same for an exchange whose client takes nothing of its answer.
pub(crate) const MIN_STUCK: Duration = Duration::from_secs(10);
/// First pause between the beginnings of two dials; doubles up to [`MAX_DIAL_PAUSE`].
pub(crate) const MIN_DIAL_PAUSE: Duration = Duration::from_millis(250);
/// Longest pause while exchanges wait: a link that is up again must not wait for a dial.
pub(crate) const MAX_DIAL_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause while none does, or where somebody has to mend something first.
pub(crate) const IDLE_DIAL_PAUSE: Duration = Duration::from_secs(15);
/// Most carriers that take nothing new and stay for what cannot move; the oldest is closed.
pub(crate) const MAX_CARRIERS_LEFT: usize = 4;

/// A relay's settings.
// table: one field a setting
#[derive(Clone, Debug)]
pub struct Config {
    /// Edge or gateway.
    pub role: Role,
    /// Drawn at random by the shell at every start. Where peers have no keys, who knows an edge's
    /// may ask for its answers: it is revealed to nobody but the gateway.
    pub instance: u64,
    /// Peers have no keys, and are called by their addresses, which may change hands.
    pub without_keys: bool,
    /// The kinds of carriers that there are, at both sides in the same order: an edge keeps one of
    /// each kind that takes new exchanges.
    pub kinds: Vec<Kind>,
    /// Edge: carriers of kinds behind the first take exchanges only while none of the first can.
    pub prefers_first: bool,
    /// Gateway: what is announced to edges that they may reach.
    pub allowed: Allowed,
    /// Edge: what makes it and its principals known when it has started again; without it their
    /// dictionaries end with it.
    pub secret: Option<Secret>,
    /// The codecs that this side has, which its peers are told.
    pub codecs: Table,
    /// Encodings and who chooses among them.
    pub encoding: Encoding,
    /// What is different for some services; [`crate::Known::service`] names them by index.
    pub services: Vec<Service>,
    /// How requests of each service are handled.
    pub handling: Vec<Handling>,
    /// Edge: most requests of each urgency of which nothing has left.
    pub max_waiting: usize,
    /// Edge: a client's own field `Priority` may make its requests more urgent than others', and
    /// not only less.
    pub urgent_clients: bool,
    /// Operator's bound on what the link is believed to carry, in bit/s.
    pub rate_cap_bps: Option<f64>,
    /// Bytes a second that the link carries, where nobody else's traffic shares it: carriers send
    /// no faster, and leave nothing to others.
    pub own_bytes_per_s: Option<u64>,
    /// Edge: how long a request waits for the gateway.
    pub connect_timeout: Duration,
    /// Edge: how long a request whose carrier broke waits for the gateway's report of what became
    /// of it.
    pub outcome_timeout: Duration,
    /// How long a connected carrier may take to say HELLO.
    pub hello_timeout: Duration,
    /// How long a carrier idles before its peer is asked for a sign of life.
    pub keepalive: Duration,
    /// A peer of which there is no sign of life for so long, though it was asked, is gone.
    pub peer_timeout: Duration,
    /// How long a body waits for what it takes to read it: memory, or the body as it is.
    pub body_timeout: Duration,
    /// Gateway: how long a shutdown waits for edges to close their carriers.
    pub drain_timeout: Duration,
    /// How long the gateway keeps an answer whose carrier broke.
    pub retain: Duration,
    /// Gateway: most carriers at once. While all are open, who has most of them gives one up.
    pub max_carriers: usize,
    /// Most exchanges open at once, besides tunnels and event streams.
    pub max_exchanges: usize,
    /// Most tunnels and event streams open at once.
    pub max_tunnels: usize,
    /// How long nothing may pass through a tunnel or an event stream.
    pub tunnel_timeout: Duration,
    /// How long nothing may pass through any other exchange, whatever holds it up: longer than
    /// those wait who know what does, a client's or an origin's side and the carrier's.
    pub still_timeout: Duration,
    /// Memory of all encoders, in bytes: beyond it windows shrink, then bodies go uncoded. All
    /// decoders get as much again: beyond it decoding waits.
    pub codec_bytes: usize,
    /// Memory for bodies from the peer, in bytes, shared out as credit beyond what each exchange
    /// starts with.
    pub receive_bytes: u64,
    /// Memory for answers kept in case their carrier breaks, in bytes.
    pub retained_bytes: usize,
}

impl Config {
    /// Edge: how requests of a service are handled.
    pub(crate) fn handling(&self, service: Option<usize>) -> Handling {
        service.and_then(|service| self.handling.get(service).copied()).unwrap_or_default()
    }

    /// Edge: how urgent a request is that says this itself.
    pub(crate) fn urgency(&self, handling: Handling, priority: Option<Urgency>) -> Urgency {
        handling.urgency.unwrap_or_else(|| {
            let priority = priority.unwrap_or_default();
            if self.urgent_clients { priority } else { priority.max(Urgency::DEFAULT) }
        })
    }

    /// The defaults of one role.
    #[must_use]
    pub fn new(role: Role, instance: u64) -> Self {
        Self {
            role,
            instance,
            without_keys: false,
            kinds: vec![Kind::STREAM],
            prefers_first: false,
            allowed: Allowed::default(),
            secret: None,
            codecs: Table::default(),
            encoding: Encoding::auto(),
            services: Vec::new(),
            handling: Vec::new(),
            max_waiting: usize::MAX,
            urgent_clients: false,
            rate_cap_bps: None,
            own_bytes_per_s: None,
            connect_timeout: Duration::from_secs(30),
            outcome_timeout: Duration::from_secs(30),
            hello_timeout: Duration::from_secs(10),
            keepalive: Duration::from_secs(60),
            peer_timeout: Duration::from_secs(60),
            body_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(30),
            retain: Duration::from_secs(120),
            max_carriers: 64,
            max_exchanges: 256,
            max_tunnels: 1024,
            tunnel_timeout: Duration::from_secs(30 * 60),
            still_timeout: MAX_STILL,
            codec_bytes: 32 << 20,
            receive_bytes: 8 << 20,
            retained_bytes: 4 << 20,
        }
    }

    /// What is believed of a path that nobody has measured.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        self.coding().estimate()
    }

    /// Those of the coding.
    pub(crate) fn coding(&self) -> coding::Config {
        coding::Config {
            sends: match self.role {
                Role::Edge => Direction::Request,
                Role::Gateway => Direction::Response,
            },
            instance: self.instance,
            secret: self.secret.clone(),
            codecs: self.codecs.clone(),
            encoding: self.encoding.clone(),
            services: self.services.clone(),
            rate_cap_bps: self.rate_cap_bps,
            body_timeout: self.body_timeout,
            codec_bytes: self.codec_bytes,
        }
    }
}
