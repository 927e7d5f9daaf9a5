//! The client of the connectionless service: requests over datagrams that get lost.
//!
//! WSP has no retransmission of its own there (WAP-230 §7.2): what is lost is noticed by the
//! transaction id that no reply has, and the same datagram leaves again. The shell opens sockets,
//! carries datagrams and says the time; see [`Input`] and [`Output`].

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};

use super::packet::{self, Pdu};
use super::patience::Patience;
use super::settings::{MAX_PDU_BYTES, MAX_SPAN, digest};
use super::tids::Tids;
use crate::Error;
use crate::timers::Timers;

/// Peers that transaction ids are kept of: a client has a gateway or two.
pub const MAX_PEERS: usize = 64;
/// Requests that are open or wait.
pub const MAX_REQUESTS: usize = 1024;
/// The share of one peer in them.
pub const MAX_REQUESTS_OF_PEER: usize = 256;
/// Bytes of requests that are held until they are answered.
pub const MAX_HELD_BYTES: usize = 8 << 20;
/// The share of one peer in them.
pub const MAX_HELD_BYTES_OF_PEER: usize = 2 << 20;
/// Requests that are open at a peer at once: nothing but the replies tells how full its link is.
const MAX_OPEN_OF_PEER: usize = 8;
/// Copies of a request, the first with them: with a tenth lost either way, one request in 4000 has
/// no answer by then.
const MAX_COPIES: u32 = 5;
/// What a datagram has around it on the way: the heads of IPv4 and UDP.
const AROUND_DATAGRAM_BYTES: usize = 28;

/// What happens to a client.
#[derive(Clone, Debug)]
pub enum Input {
    /// A request is to be made.
    Request {
        /// What the caller knows it by; of no other request that is open.
        key: u64,
        /// The server.
        peer: SocketAddr,
        /// The PDU without a transaction id: a [`Pdu::Request`].
        pdu: Bytes,
        /// Copies may leave: the method is safe, or the server carries out no copy twice.
        again: bool,
    },
    /// Nobody waits for the answer any more.
    Cancel {
        /// Of the request; one that is not open does no harm.
        key: u64,
    },
    /// A datagram came.
    Datagram {
        /// From where.
        peer: SocketAddr,
        /// What it holds.
        datagram: Bytes,
    },
    /// The rate of the link that datagrams leave over, in bit/s; `None` where it is not known.
    Rate(Option<u64>),
    /// The instant of the last [`Output::WakeAt`] has come, or any other.
    Wake,
}

/// What a client wants done, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A datagram is to leave.
    Transmit {
        /// Where to.
        peer: SocketAddr,
        /// What it holds.
        datagram: Bytes,
    },
    /// A request was answered: once, and then no more comes of it.
    Reply {
        /// Of the request.
        key: u64,
        /// The PDU without its transaction id: a [`Pdu::Reply`].
        pdu: Bytes,
    },
    /// A request was not answered: once, and then no more comes of it.
    Failed {
        /// Of the request.
        key: u64,
        /// Why.
        failure: Failure,
    },
    /// A server that requests were made of sent something unasked.
    Push {
        /// The server.
        peer: SocketAddr,
        /// The PDU without its transaction id: a [`Pdu::Push`].
        pdu: Bytes,
    },
    /// When to call again at the latest.
    WakeAt(Duration),
}

/// Why a request was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No answer came. Whether the request was carried out is not known.
    Unanswered,
    /// Too much is open already; nothing was sent.
    Full,
    /// It is no request, or its key is that of another; nothing was sent.
    Invalid(Error),
}

/// A request that is open.
#[derive(Debug)]
struct Open {
    key: u64,
    datagram: Bytes,
    digest: u128,
    again: bool,
    /// When the first copy had left.
    first_at: Duration,
    copies: u32,
}

/// A request that waits for a place or a transaction id.
#[derive(Debug)]
struct Waiting {
    key: u64,
    pdu: Bytes,
    digest: u128,
    again: bool,
}

/// What is known of a peer.
#[derive(Debug)]
struct Line {
    tids: Tids,
    open: BTreeMap<u8, Open>,
    waiting: VecDeque<Waiting>,
    held_bytes: usize,
    patience: Patience,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A request's next copy, or its end.
    Copy(SocketAddr, u8),
    /// A transaction id for a request that waits.
    Tid(SocketAddr),
}

/// A client.
#[derive(Debug)]
pub struct Client {
    lines: BTreeMap<SocketAddr, Line>,
    /// Where each request is.
    keys: BTreeMap<u64, SocketAddr>,
    held_bytes: usize,
    timers: Timers<Timer>,
    outputs: VecDeque<Output>,
    rate_bps: Option<u64>,
    /// When all that was sent has left, as far as the rate of the link is known.
    busy_until: Duration,
    seed: u64,
    now: Duration,
    announced_wake_at: Option<Duration>,
}

impl Client {
    /// A client without requests. `seed` is chance, which nobody else should know: it keeps clients
    /// from sending in step, and who cannot see datagrams from guessing transaction ids.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            lines: BTreeMap::new(),
            keys: BTreeMap::new(),
            held_bytes: 0,
            timers: Timers::default(),
            outputs: VecDeque::new(),
            rate_bps: None,
            busy_until: Duration::ZERO,
            seed,
            now: Duration::ZERO,
            announced_wake_at: None,
        }
    }

    /// Requests that are open or wait.
    #[must_use]
    pub fn open_requests(&self) -> usize {
        self.keys.len()
    }

    /// Tells the client what happened.
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        self.now = now;
        self.announced_wake_at = self.announced_wake_at.filter(|at| now < *at);
        match input {
            Input::Request { key, peer, pdu, again } => {
                if let Err(failure) = self.request(key, peer, pdu, again) {
                    self.outputs.push_back(Output::Failed { key, failure });
                }
            }
            Input::Cancel { key } => self.cancel(key),
            Input::Datagram { peer, datagram } => self.datagram(peer, &datagram),
            Input::Rate(rate_bps) => self.rate_bps = rate_bps.filter(|rate_bps| *rate_bps > 0),
            Input::Wake => {}
        }
        while let Some(timer) = self.timers.pop(now) {
            match timer {
                Timer::Copy(peer, tid) => self.overdue(peer, tid),
                Timer::Tid(peer) => self.start(peer),
            }
        }
    }

    /// What is to be done next; `None` when there is nothing more.
    pub fn poll_output(&mut self) -> Option<Output> {
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        let wake_at = self.timers.next().filter(|at| self.announced_wake_at != Some(*at))?;
        self.announced_wake_at = Some(wake_at);
        Some(Output::WakeAt(wake_at))
    }

    /// The next number of chance (splitmix64).
    fn chance(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn request(
        &mut self,
        key: u64,
        peer: SocketAddr,
        pdu: Bytes,
        again: bool,
    ) -> Result<(), Failure> {
        let len = pdu.len();
        let limit = MAX_PDU_BYTES as u64;
        let too_long = Error::Limit { what: "a PDU in bytes", value: len as u64, limit };
        if len > MAX_PDU_BYTES {
            return Err(Failure::Invalid(too_long));
        }
        if !matches!(Pdu::decode(&pdu).map_err(Failure::Invalid)?, Pdu::Request { .. }) {
            return Err(Failure::Invalid(Error::Caller { what: "a PDU that is no request" }));
        }
        if self.keys.contains_key(&key) {
            return Err(Failure::Invalid(Error::Caller { what: "a key that another has" }));
        }
        if self.keys.len() >= MAX_REQUESTS || self.held_bytes + len > MAX_HELD_BYTES {
            return Err(Failure::Full);
        }
        let first_tid = self.chance().to_le_bytes()[0];
        self.forget_idle(peer);
        if !self.lines.contains_key(&peer) && self.lines.len() >= MAX_PEERS {
            return Err(Failure::Full);
        }
        let line = self.lines.entry(peer).or_insert_with(|| Line {
            tids: Tids::new(first_tid),
            open: BTreeMap::new(),
            waiting: VecDeque::new(),
            held_bytes: 0,
            patience: Patience::new(),
        });
        let requests = line.open.len() + line.waiting.len();
        if requests >= MAX_REQUESTS_OF_PEER || line.held_bytes + len > MAX_HELD_BYTES_OF_PEER {
            return Err(Failure::Full);
        }
        let digest = digest(&pdu);
        line.held_bytes += len;
        self.held_bytes += len;
        line.waiting.push_back(Waiting { key, pdu, digest, again });
        self.keys.insert(key, peer);
        self.start(peer);
        Ok(())
    }

    /// Makes room for one more peer.
    fn forget_idle(&mut self, peer: SocketAddr) {
        if self.lines.len() >= MAX_PEERS && !self.lines.contains_key(&peer) {
            let now = self.now;
            self.lines.retain(|_, line| !line.waiting.is_empty() || !line.tids.is_idle(now));
        }
    }

    /// Opens requests that wait, as many as may be open.
    fn start(&mut self, peer: SocketAddr) {
        let now = self.now;
        loop {
            let Some(line) = self.lines.get_mut(&peer) else { return };
            let Some(next) = line.waiting.front() else { return };
            if line.open.len() >= MAX_OPEN_OF_PEER {
                return;
            }
            let Some(tid) = line.tids.take(now, next.digest) else {
                let at = line.tids.next_at(next.digest);
                self.timers.set(Timer::Tid(peer), at);
                return;
            };
            let Some(Waiting { key, pdu, digest, again }) = line.waiting.pop_front() else {
                return;
            };
            let mut datagram = BytesMut::with_capacity(pdu.len() + 1);
            datagram.put_u8(tid);
            datagram.put_slice(&pdu);
            let datagram = datagram.freeze();
            let open = Open { key, datagram, digest, again, first_at: now, copies: 0 };
            line.open.insert(tid, open);
            self.send(peer, tid);
        }
    }

    /// Sends the next copy of a request.
    fn send(&mut self, peer: SocketAddr, tid: u8) {
        let chance = self.chance();
        let now = self.now;
        let Some(line) = self.lines.get_mut(&peer) else { return };
        let Some(open) = line.open.get_mut(&tid) else { return };
        let left_at = self.busy_until.max(now) + takes(self.rate_bps, &open.datagram);
        if open.copies == 0 {
            open.first_at = left_at;
        }
        open.copies += 1;
        // What has not left yet cannot be overdue.
        let timeout = line.patience.timeout(open.copies, chance);
        let end = open.first_at + MAX_SPAN;
        self.timers.set(Timer::Copy(peer, tid), Some((left_at + timeout).min(end.max(left_at))));
        self.busy_until = left_at;
        self.outputs.push_back(Output::Transmit { peer, datagram: open.datagram.clone() });
    }

    /// No answer came in time.
    fn overdue(&mut self, peer: SocketAddr, tid: u8) {
        let Some(open) = self.lines.get(&peer).and_then(|line| line.open.get(&tid)) else { return };
        let next_leaves_at = self.busy_until.max(self.now) + takes(self.rate_bps, &open.datagram);
        let is_in_time = next_leaves_at < open.first_at + MAX_SPAN;
        if open.again && open.copies < MAX_COPIES && is_in_time {
            return self.send(peer, tid);
        }
        let wait_for_last = !open.again && self.now < open.first_at + MAX_SPAN;
        if wait_for_last {
            // Nothing leaves again, but the answer may be slow.
            let at = open.first_at + MAX_SPAN;
            return self.timers.set(Timer::Copy(peer, tid), Some(at));
        }
        if let Some(key) = self.close(peer, tid, false) {
            self.outputs.push_back(Output::Failed { key, failure: Failure::Unanswered });
        }
        self.start(peer);
    }

    /// Ends an open request and returns its key.
    fn close(&mut self, peer: SocketAddr, tid: u8, answered: bool) -> Option<u64> {
        let now = self.now;
        let line = self.lines.get_mut(&peer)?;
        let open = line.open.remove(&tid)?;
        line.tids.give_back(now, tid, open.digest, answered);
        if answered {
            line.patience.observe(now.saturating_sub(open.first_at), open.copies);
        }
        let len = open.datagram.len().saturating_sub(1);
        line.held_bytes -= len;
        self.held_bytes -= len;
        self.timers.set(Timer::Copy(peer, tid), None);
        self.keys.remove(&open.key);
        Some(open.key)
    }

    fn cancel(&mut self, key: u64) {
        let Some(peer) = self.keys.get(&key).copied() else { return };
        let Some(line) = self.lines.get_mut(&peer) else { return };
        if let Some(at) = line.waiting.iter().position(|waiting| waiting.key == key) {
            let len = line.waiting.remove(at).map_or(0, |waiting| waiting.pdu.len());
            line.held_bytes -= len;
            self.held_bytes -= len;
            self.keys.remove(&key);
            return;
        }
        let tid = line.open.iter().find(|(_, open)| open.key == key).map(|(tid, _)| *tid);
        if let Some(tid) = tid {
            self.close(peer, tid, false);
            self.start(peer);
        }
    }

    /// A datagram that is none of WSP, or answers nothing, is left out: anybody can send one.
    fn datagram(&mut self, peer: SocketAddr, datagram: &Bytes) {
        match packet::decode(datagram) {
            Ok((tid, Pdu::Reply { .. })) => {
                if let Some(key) = self.close(peer, tid, true) {
                    self.outputs.push_back(Output::Reply { key, pdu: datagram.slice(1..) });
                    self.start(peer);
                }
            }
            Ok((_, Pdu::Push { .. })) if self.lines.contains_key(&peer) => {
                self.outputs.push_back(Output::Push { peer, pdu: datagram.slice(1..) });
            }
            _ => {}
        }
    }
}

/// How long a datagram takes to leave.
fn takes(rate_bps: Option<u64>, datagram: &Bytes) -> Duration {
    let Some(rate_bps) = rate_bps else { return Duration::ZERO };
    let bits = 8 * (datagram.len() + AROUND_DATAGRAM_BYTES) as u64;
    Duration::from_micros(bits.saturating_mul(1_000_000) / rate_bps.max(1))
}
