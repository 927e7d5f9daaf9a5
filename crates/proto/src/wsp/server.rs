//! The server of the connectionless service: no request is carried out twice.
//!
//! A request is known by its peer, its transaction id and its digest, and its answer is kept with
//! it, so that a copy gets the same answer again. What would not be known for long enough is not
//! taken at all: the client sends it again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};

use super::packet::{self, Pdu};
use super::settings::{KEEP, MAX_PDU_BYTES, MAX_SERVICE, digest};
use super::status;
use crate::timers::Timers;

/// Requests that are known, those that are answered too: 2 to 3 MB.
pub const MAX_KNOWN: usize = 16_384;
/// The share of one host in them: 256 transaction ids of four ports.
pub const MAX_KNOWN_OF_HOST: usize = 1024;
/// Requests that are not answered yet.
pub const MAX_PENDING: usize = 1024;
/// The share of one host in them.
pub const MAX_PENDING_OF_HOST: usize = 64;
/// Bytes of answers that are kept.
pub const MAX_ANSWER_BYTES: usize = 16 << 20;
/// The share of one host in them.
pub const MAX_ANSWER_BYTES_OF_HOST: usize = 2 << 20;
/// How often an answer leaves again: a client sends some copies, and the network may double them.
const MAX_REPEATS: u32 = 12;
/// The answer in place of one that cannot be sent: its status and a content type of any sort
/// (WAP-230 §8.2.3.3).
const NO_ANSWER: Pdu<'static> =
    Pdu::Reply { status: status::nearest(500), headers: &[0x80], body: &[] };

/// What happens to a server.
#[derive(Clone, Debug)]
pub enum Input {
    /// A datagram came.
    Datagram {
        /// From where.
        peer: SocketAddr,
        /// What it holds.
        datagram: Bytes,
    },
    /// A request was carried out.
    Reply {
        /// Of the request, as [`Output::Request`] has it.
        id: u64,
        /// The PDU without a transaction id: a [`Pdu::Reply`] of at most [`MAX_PDU_BYTES`]. In
        /// place of anything else the client gets the status 500.
        pdu: Bytes,
    },
    /// The instant of the last [`Output::WakeAt`] has come, or any other.
    Wake,
}

/// What a server wants done, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A request is to be carried out: once.
    Request {
        /// By which its answer is handed in.
        id: u64,
        /// Whose it is.
        peer: SocketAddr,
        /// The PDU without its transaction id: a [`Pdu::Request`].
        pdu: Bytes,
    },
    /// A datagram is to leave.
    Transmit {
        /// Where to.
        peer: SocketAddr,
        /// What it holds.
        datagram: Bytes,
    },
    /// A request has waited for its answer for so long that its client does not any more.
    Expired {
        /// As [`Output::Request`] had it.
        id: u64,
    },
    /// When to call again at the latest.
    WakeAt(Duration),
}

#[derive(Debug)]
enum Answer {
    /// It is being carried out.
    Pending,
    /// It was answered with this datagram, which has left again so often.
    Kept { datagram: Bytes, repeats: u32 },
    /// It was answered, and the answer is not kept.
    Gone,
}

/// A request that is known.
#[derive(Debug)]
struct Known {
    peer: SocketAddr,
    tid: u8,
    digest: u128,
    is_safe: bool,
    answer: Answer,
}

/// What a host has of what is shared.
#[derive(Debug, Default)]
struct Share {
    ids: BTreeSet<u64>,
    pending: usize,
    answer_bytes: usize,
}

/// A server.
#[derive(Debug, Default)]
pub struct Server {
    /// In the order in which they came.
    known: BTreeMap<u64, Known>,
    /// Requests of a transaction id, the newest last.
    by_tid: BTreeMap<(SocketAddr, u8), Vec<u64>>,
    hosts: BTreeMap<IpAddr, Share>,
    pending: usize,
    answer_bytes: usize,
    refused: u64,
    last_id: u64,
    timers: Timers<u64>,
    outputs: VecDeque<Output>,
    announced_wake_at: Option<Duration>,
}

impl Server {
    /// A server that knows no request.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests that are known.
    #[must_use]
    pub fn known_requests(&self) -> usize {
        self.known.len()
    }

    /// Requests that were not taken since there was no room to know them by.
    #[must_use]
    pub fn refused_requests(&self) -> u64 {
        self.refused
    }

    /// Tells the server what happened.
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        self.announced_wake_at = self.announced_wake_at.filter(|at| now < *at);
        match input {
            Input::Datagram { peer, datagram } => self.datagram(now, peer, &datagram),
            Input::Reply { id, pdu } => self.reply(now, id, &pdu),
            Input::Wake => {}
        }
        while let Some(id) = self.timers.pop(now) {
            if self.forget(id).is_some_and(|known| matches!(known.answer, Answer::Pending)) {
                self.outputs.push_back(Output::Expired { id });
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

    /// A datagram that is no request is left out: to answer it would help who sends such in the
    /// name of others.
    fn datagram(&mut self, now: Duration, peer: SocketAddr, datagram: &Bytes) {
        let Ok((tid, Pdu::Request { method, .. })) = packet::decode(datagram) else { return };
        let pdu = datagram.slice(1..);
        let digest = digest(&pdu);
        let ids = self.by_tid.get(&(peer, tid)).map_or(&[][..], Vec::as_slice);
        let is_copy = |id: &&u64| self.known.get(id).is_some_and(|known| known.digest == digest);
        if let Some(id) = ids.iter().find(is_copy).copied() {
            // An old request's answer would be taken for that of the newest.
            if ids.last() == Some(&id) {
                self.repeat(id);
            }
            return;
        }
        if !self.has_room(peer.ip()) {
            self.refused += 1;
            return;
        }
        self.last_id += 1;
        let id = self.last_id;
        let is_safe = method.is_safe();
        self.known.insert(id, Known { peer, tid, digest, is_safe, answer: Answer::Pending });
        self.by_tid.entry((peer, tid)).or_default().push(id);
        let share = self.hosts.entry(peer.ip()).or_default();
        share.ids.insert(id);
        share.pending += 1;
        self.pending += 1;
        self.timers.set(id, Some(now + MAX_SERVICE));
        self.outputs.push_back(Output::Request { id, peer, pdu });
    }

    fn repeat(&mut self, id: u64) {
        let Some(known) = self.known.get_mut(&id) else { return };
        let peer = known.peer;
        if let Answer::Kept { datagram, repeats } = &mut known.answer
            && *repeats < MAX_REPEATS
        {
            *repeats += 1;
            self.outputs.push_back(Output::Transmit { peer, datagram: datagram.clone() });
        }
    }

    /// Whether one more request of a host is taken. The oldest that is answered and may be carried
    /// out again goes for it; nothing else does, as its copies may still come.
    fn has_room(&mut self, host: IpAddr) -> bool {
        let share = self.hosts.get(&host);
        let (known, pending) = share.map_or((0, 0), |share| (share.ids.len(), share.pending));
        if pending >= MAX_PENDING_OF_HOST || self.pending >= MAX_PENDING {
            return false;
        }
        if known < MAX_KNOWN_OF_HOST && self.known.len() < MAX_KNOWN {
            return true;
        }
        let may_go = |id: &&u64| {
            let known = self.known.get(id);
            known.is_some_and(|known| known.is_safe && !matches!(known.answer, Answer::Pending))
        };
        let oldest = share.and_then(|share| share.ids.iter().find(may_go).copied());
        oldest.is_some_and(|id| self.forget(id).is_some())
    }

    fn reply(&mut self, now: Duration, id: u64, pdu: &Bytes) {
        let Some(known) = self.known.get_mut(&id) else { return };
        if !matches!(known.answer, Answer::Pending) {
            return;
        }
        let (peer, tid) = (known.peer, known.tid);
        let datagram = datagram_of(tid, pdu);
        known.answer = Answer::Gone;
        self.pending -= 1;
        if let Some(share) = self.hosts.get_mut(&peer.ip()) {
            share.pending -= 1;
        }
        self.timers.set(id, Some(now + KEEP));
        if self.by_tid.get(&(peer, tid)).and_then(|ids| ids.last()) != Some(&id) {
            return;
        }
        self.keep(id, peer.ip(), &datagram);
        self.outputs.push_back(Output::Transmit { peer, datagram });
    }

    /// Keeps an answer for copies of its request; the host's oldest go for it.
    fn keep(&mut self, id: u64, host: IpAddr, datagram: &Bytes) {
        let len = datagram.len();
        let Some(share) = self.hosts.get_mut(&host) else { return };
        for old in &share.ids {
            let fits_host = share.answer_bytes + len <= MAX_ANSWER_BYTES_OF_HOST;
            if fits_host && self.answer_bytes + len <= MAX_ANSWER_BYTES {
                break;
            }
            if let Some(known) = self.known.get_mut(old)
                && let Answer::Kept { datagram, .. } = &known.answer
            {
                share.answer_bytes -= datagram.len();
                self.answer_bytes -= datagram.len();
                known.answer = Answer::Gone;
            }
        }
        if self.answer_bytes + len > MAX_ANSWER_BYTES {
            return;
        }
        if let Some(known) = self.known.get_mut(&id) {
            share.answer_bytes += len;
            self.answer_bytes += len;
            known.answer = Answer::Kept { datagram: datagram.clone(), repeats: 0 };
        }
    }

    fn forget(&mut self, id: u64) -> Option<Known> {
        let known = self.known.remove(&id)?;
        self.timers.set(id, None);
        let place = (known.peer, known.tid);
        if let Some(ids) = self.by_tid.get_mut(&place) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_tid.remove(&place);
            }
        }
        let host = known.peer.ip();
        let share = self.hosts.get_mut(&host)?;
        share.ids.remove(&id);
        match &known.answer {
            Answer::Pending => {
                share.pending -= 1;
                self.pending -= 1;
            }
            Answer::Kept { datagram, .. } => {
                share.answer_bytes -= datagram.len();
                self.answer_bytes -= datagram.len();
            }
            Answer::Gone => {}
        }
        if share.ids.is_empty() {
            self.hosts.remove(&host);
        }
        Some(known)
    }
}

/// The datagram of an answer, or of [`NO_ANSWER`].
fn datagram_of(tid: u8, pdu: &Bytes) -> Bytes {
    let is_fit = pdu.len() <= MAX_PDU_BYTES && matches!(Pdu::decode(pdu), Ok(Pdu::Reply { .. }));
    let mut datagram = BytesMut::with_capacity(pdu.len().min(MAX_PDU_BYTES) + 1);
    datagram.put_u8(tid);
    if is_fit {
        datagram.put_slice(pdu);
    } else {
        let mut room = [0; 8];
        let len = NO_ANSWER.encode(&mut room).unwrap_or(0);
        datagram.put_slice(room.get(..len).unwrap_or(&[]));
    }
    datagram.freeze()
}
