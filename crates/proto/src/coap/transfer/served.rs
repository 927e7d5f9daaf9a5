//! Answers to peers that are never here as a whole: of each there is a window of bytes, which moves
//! on as the peer asks for blocks and the application gives what lacks.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};

use super::{Medium, Queues};
use crate::coap::kept::Bounds;
use crate::coap::machine::{Address, Flow, Input, Of, Output};
use crate::coap::{BERT, Block, Code, Content, MAX_BODY_BYTES, MAX_NUM, option};

/// Answers whose bodies are not whole, to all peers. For more of them those go that have ended, or
/// of which nobody has asked for a block in 93 s; else who asks for one more is to ask again.
pub const MAX_FLOWING: usize = 128;
/// Those to one peer.
pub const MAX_FLOWING_PER_PEER: usize = 32;
/// Of a body over [`MAX_BODY_BYTES`] so much is kept behind what was asked for: a peer may ask for
/// it again, as long as it goes on from there. Of a shorter one all is, while there is room for it.
pub const MAX_BEHIND_BYTES: usize = 64 << 10;
/// Of a body so much is here ahead of what was asked for, at least.
const MIN_AHEAD_BYTES: usize = 16 << 10;
/// Answers to one peer by one key, which it cannot tell from another as it asks for blocks; of more
/// the longest unused breaks off.
const MAX_FLOWING_PER_KEY: usize = 4;
/// Blocks of one answer that are asked for at once.
const MAX_WAITING: usize = 4;
/// After so many seconds who asked for more may ask again.
const RETRY_AFTER_S: u32 = 1;
/// Who goes on has asked for the next block by then, whatever was lost: MAX_TRANSMIT_WAIT
/// (RFC 7252 §4.8.2).
pub(super) const MAX_SILENCE: Duration = Duration::from_secs(93);

/// A request that waits for its block.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) exchange: u64,
    /// The block that it asks for, if it says one.
    pub(super) asked: Option<Block>,
    /// The last one of its own body.
    pub(super) block1: Option<Block>,
}

/// How well a block that is asked for belongs to an answer, of several that are fetched side by
/// side (RFC 7959 §2.4 has no word for it): the greatest does best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fit {
    /// It is the one behind the farthest that was sent.
    pub(super) is_next: bool,
    /// It does not lie behind the end.
    pub(super) is_within: bool,
    /// Of several the newest.
    pub(super) begun: u64,
}

#[derive(Debug)]
struct Served<P> {
    peer: P,
    key: Vec<u8>,
    /// The response without its body.
    head: Content,
    /// The number of its beginning among all.
    begun: u64,
    /// Where in the body `bytes` begin.
    base: usize,
    bytes: BytesMut,
    has_all: bool,
    is_broken: bool,
    /// Bytes that were asked for and have not come.
    wanted: usize,
    /// The end of the farthest block that was sent.
    reached: usize,
    /// At most [`MAX_WAITING`].
    waiting: VecDeque<Waiting>,
    used_at: Duration,
}

/// An answer that is not whole here, or was not, and now is.
pub(super) struct Ended<P> {
    pub(super) peer: P,
    pub(super) key: Vec<u8>,
    pub(super) content: Content,
    pub(super) begun: u64,
    pub(super) reached: usize,
}

impl<P> Served<P> {
    /// How well the block that begins there belongs to it; `None`: it is not here, and does not
    /// follow what is.
    fn fit(&self, offset: usize) -> Option<Fit> {
        let (is_next, begun) = (offset == self.reached, self.begun);
        let is_near = self.has_all || offset <= self.end() + MIN_AHEAD_BYTES;
        let is_here = offset >= self.base && is_near;
        let is_within = !self.has_all || offset < self.end();
        // Of what is broken who goes on is to hear it.
        let is_meant = if self.is_broken { is_next } else { is_here };
        is_meant.then_some(Fit { is_next, is_within, begun })
    }

    /// Whether its peer may be gone.
    fn is_silent(&self, now: Duration) -> bool {
        self.waiting.is_empty() && self.used_at + MAX_SILENCE <= now
    }

    /// What goes first, of several: what all of it was sent of, or has no end, then what is all
    /// here, then what is not; and of each the longest unused.
    fn worth(&self) -> (u8, Duration) {
        let is_sent = self.has_all && self.waiting.is_empty() && self.reached >= self.end();
        let worth = match () {
            () if self.is_broken || is_sent => 0,
            () if self.has_all => 1,
            () => 2,
        };
        (worth, self.used_at)
    }

    fn end(&self) -> usize {
        self.base + self.bytes.len()
    }

    /// Most bytes of a message with blocks of this size.
    fn message_bytes(&self, szx: u8, medium: Medium) -> usize {
        let unit = Block { num: 0, more: false, szx }.size_bytes();
        match szx {
            BERT => (medium.room(&self.head) / unit).max(1) * unit,
            _ => unit,
        }
    }

    /// The block that a request asks for, where it is named.
    fn asked(&self, waiting: &Waiting, medium: Medium) -> Option<Block> {
        let szx = medium.szx(&self.head);
        let asked = waiting.asked.unwrap_or(Block { num: 0, more: false, szx });
        medium.fit(asked, &self.head).filter(|block| block.num <= MAX_NUM)
    }

    /// The answer to a request, unless bytes lack for it.
    fn answer(&mut self, waiting: &Waiting, medium: Medium) -> Option<Content> {
        if self.is_broken {
            return Some(Content::new(Code::INTERNAL_SERVER_ERROR));
        }
        let Some(asked) = self.asked(waiting, medium) else {
            return Some(Content::new(Code::BAD_REQUEST));
        };
        let (offset, unit) = (asked.offset(), asked.size_bytes());
        let most = self.message_bytes(asked.szx, medium);
        if offset < self.base {
            return Some(Content::new(Code::REQUEST_ENTITY_INCOMPLETE));
        }
        let here = self.end().saturating_sub(offset);
        let is_whole = self.has_all && offset == 0 && here <= medium.room(&self.head);
        let (len, more) = match self.has_all {
            true if is_whole && waiting.asked.is_none() => (here, false),
            true if here > most => (most, true),
            true if here > 0 || offset == 0 => (here, false),
            // RFC 7959 §2.4: behind the end.
            true => return Some(Content::new(Code::BAD_REQUEST)),
            // What is not the last block is full, and known not to be the last.
            false => match (here.saturating_sub(1) / unit * unit).min(most) {
                0 => return None,
                full => (full, true),
            },
        };
        self.reached = self.reached.max(offset + len);
        let begin = offset - self.base;
        let payload = self.bytes.get(begin..begin + len).map(Bytes::copy_from_slice);
        let mut content = self.head.clone().with_payload(payload.unwrap_or_default());
        if more || waiting.asked.is_some() {
            put(&mut content, option::BLOCK2, Block { more, ..asked });
        }
        if more && offset == 0 && self.has_all {
            content.push_uint(option::SIZE2, u32::try_from(self.end()).unwrap_or(u32::MAX));
        }
        if let Some(block) = waiting.block1 {
            put(&mut content, option::BLOCK1, Block { more: false, ..block });
        }
        Some(content)
    }

    /// How many bytes more are to be asked for.
    fn wants(&mut self, medium: Medium) -> Option<usize> {
        if self.has_all || self.is_broken {
            return None;
        }
        let most = self.message_bytes(medium.szx(&self.head), medium);
        let awaited = self.waiting.iter().filter_map(|one| self.asked(one, medium));
        let awaited = awaited.map(|block| block.offset() + most).max().unwrap_or(0);
        let needed = self.reached.max(awaited);
        let (here, ahead) = (self.end() + self.wanted, MIN_AHEAD_BYTES.max(2 * most));
        if here >= needed + ahead / 2 {
            return None;
        }
        let bytes = needed + ahead - here;
        self.wanted += bytes;
        Some(bytes)
    }

    /// Bytes that lie too far behind what is asked for.
    fn behind(&self, medium: Medium) -> usize {
        let awaited = self.waiting.iter().filter_map(|one| self.asked(one, medium));
        let first = awaited.map(Block::offset).min().unwrap_or(usize::MAX).min(self.reached);
        let behind = first.saturating_sub(MAX_BEHIND_BYTES).saturating_sub(self.base);
        behind.min(self.bytes.len())
    }

    /// Forgets what lies too far behind.
    fn trim(&mut self, medium: Medium) {
        let behind = self.behind(medium);
        self.bytes.advance(behind);
        self.base += behind;
    }
}

fn put(content: &mut Content, number: option::Number, block: Block) {
    if let Ok(value) = block.encode() {
        content.set(number, value.as_slice());
    }
}

/// What is answered where there is no place.
fn full() -> Content {
    let content = Content::new(Code::SERVICE_UNAVAILABLE);
    content.with_uint(option::MAX_AGE, RETRY_AFTER_S)
}

/// All of them, by the numbers that their applications know them by.
#[derive(Debug)]
pub(super) struct Flows<P> {
    all: BTreeMap<u64, Served<P>>,
    /// Answers that have begun, also of those that are here as a whole.
    begun: u64,
    bounds: Bounds,
}

impl<P: Address> Flows<P> {
    /// With bounds, of which at most [`MAX_FLOWING`] entries are used, and
    /// [`MAX_FLOWING_PER_PEER`] of one peer.
    pub(super) fn new(bounds: Bounds) -> Self {
        let entries = bounds.entries.min(MAX_FLOWING);
        let entries_per_peer = entries.min(MAX_FLOWING_PER_PEER);
        let bounds = Bounds { entries, entries_per_peer, ..bounds };
        Self { all: BTreeMap::new(), begun: 0, bounds }
    }

    /// The number of an answer that begins.
    pub(super) fn next(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }

    /// Bytes of what is kept.
    pub(super) fn bytes(&self) -> usize {
        self.all.values().map(|served| served.bytes.len() + served.key.len()).sum()
    }

    /// The answer to a request, with the number that its application knows it by and the beginning
    /// of its body.
    pub(super) fn begin(
        &mut self,
        now: Duration,
        (id, peer, key): (u64, P, Vec<u8>),
        (first, mut content): (Waiting, Content),
        medium: Medium,
        queues: &mut Queues<P>,
    ) {
        self.replaced(now, (peer, &key), queues);
        let offset = first.asked.map_or(0, Block::offset);
        let refused = match () {
            // Whoever has nothing of what stands before it asks for that first.
            () if offset > MAX_BODY_BYTES => Some(Content::new(Code::REQUEST_ENTITY_INCOMPLETE)),
            () if !self.make_room(now, (peer, &key), queues) => Some(full()),
            () => None,
        };
        if let Some(content) = refused {
            queues.inputs.push_back(Input::Respond { exchange: first.exchange, content });
            let broken = Flow::Broken { of: Of::Exchange(id) };
            return queues.outputs.push_back(Output::Flow(broken));
        }
        let bytes = BytesMut::from(&content.payload[..]);
        content.payload = Bytes::new();
        content.remove(option::OBSERVE);
        let served = Served {
            peer,
            key,
            head: content,
            begun: self.next(),
            base: 0,
            bytes,
            has_all: false,
            is_broken: false,
            wanted: 0,
            reached: 0,
            waiting: VecDeque::from([first]),
            used_at: now,
        };
        self.all.insert(id, served);
        self.serve(id, medium, queues);
        self.shrink(id, medium, queues);
    }

    /// The answer to which the block that begins there belongs best.
    pub(super) fn find(&self, (peer, key): (P, &[u8]), offset: usize) -> Option<(Fit, u64)> {
        let of_it = self.all.iter().filter(|(_, it)| it.peer == peer && it.key == key);
        of_it.filter_map(|(id, served)| Some((served.fit(offset)?, *id))).max()
    }

    /// A request for a further block of this answer. Returned is a refusal.
    pub(super) fn requested(
        &mut self,
        now: Duration,
        id: u64,
        (exchange, block): (u64, Block),
        medium: Medium,
        queues: &mut Queues<P>,
    ) -> Option<Content> {
        let served = self.all.get_mut(&id)?;
        if served.waiting.len() >= MAX_WAITING {
            return Some(full());
        }
        served.used_at = now;
        served.waiting.push_back(Waiting { exchange, asked: Some(block), block1: None });
        self.serve(id, medium, queues);
        None
    }

    /// A step of a body. Returned is an answer that is whole, and not too long to be kept so, if it
    /// is the only one by its key and there `is_free` a place.
    pub(super) fn flow(
        &mut self,
        flow: Flow,
        is_free: impl Fn(P, &[u8]) -> bool,
        medium: Medium,
        queues: &mut Queues<P>,
    ) -> Option<Ended<P>> {
        let (id, bytes, is_last, is_broken) = match flow {
            Flow::Part { of: Of::Exchange(id), bytes, is_last } => (id, bytes, is_last, false),
            Flow::Broken { of: Of::Exchange(id) } => (id, Bytes::new(), false, true),
            Flow::Part { .. } | Flow::Room { .. } | Flow::Broken { .. } => return None,
        };
        let served = self.all.get_mut(&id).filter(|it| !it.has_all && !it.is_broken)?;
        served.is_broken = is_broken || bytes.len() > served.wanted;
        if served.is_broken {
            (served.base, served.bytes) = (0, BytesMut::new());
            if !is_broken {
                let broken = Flow::Broken { of: Of::Exchange(id) };
                queues.outputs.push_back(Output::Flow(broken));
            }
        } else {
            served.wanted -= bytes.len();
            served.bytes.extend_from_slice(&bytes);
            served.has_all = is_last;
        }
        self.serve(id, medium, queues);
        self.shrink(id, medium, queues);
        let served = self.all.get(&id)?;
        let is_whole = served.has_all && served.base == 0 && served.end() <= MAX_BODY_BYTES;
        let is_like = |it: &&Served<P>| it.peer == served.peer && it.key == served.key;
        let is_only = self.all.values().filter(is_like).count() == 1;
        let is_free = is_only && is_free(served.peer, &served.key);
        if !is_whole || !is_free || !served.waiting.is_empty() {
            return None;
        }
        let Served { peer, key, head, bytes, begun, reached, .. } = self.all.remove(&id)?;
        Some(Ended { peer, key, content: head.with_payload(bytes.freeze()), begun, reached })
    }

    /// Answers those for whom enough is here, and asks for what lacks.
    fn serve(&mut self, id: u64, medium: Medium, queues: &mut Queues<P>) {
        let Some(served) = self.all.get_mut(&id) else { return };
        for waiting in std::mem::take(&mut served.waiting) {
            match served.answer(&waiting, medium) {
                Some(content) => {
                    let exchange = waiting.exchange;
                    queues.inputs.push_back(Input::Respond { exchange, content });
                }
                None => served.waiting.push_back(waiting),
            }
        }
        if served.end() > MAX_BODY_BYTES {
            served.trim(medium);
        }
        if let Some(bytes) = served.wants(medium) {
            let room = Flow::Room { of: Of::Exchange(id), bytes };
            queues.outputs.push_back(Output::Flow(room));
        }
    }

    /// Another answer takes the place of those by this key that their peer has left.
    pub(super) fn replaced(
        &mut self,
        now: Duration,
        (peer, key): (P, &[u8]),
        queues: &mut Queues<P>,
    ) {
        let of_it = self.all.iter().filter(|(_, it)| it.peer == peer && it.key == key);
        let left = of_it.filter(|(_, it)| it.is_broken || it.is_silent(now));
        let left: Vec<_> = left.map(|(id, _)| *id).collect();
        left.into_iter().for_each(|id| self.drop_one(id, queues));
    }

    /// Whether there is a place for one more, to this peer and by this key.
    fn make_room(
        &mut self,
        now: Duration,
        (peer, key): (P, &[u8]),
        queues: &mut Queues<P>,
    ) -> bool {
        let of_key = self.all.iter().filter(|(_, it)| it.peer == peer && it.key == key);
        let oldest = of_key.clone().min_by_key(|(_, it)| it.used_at).map(|(id, _)| *id);
        if let Some(id) = oldest.filter(|_| of_key.count() >= MAX_FLOWING_PER_KEY) {
            self.drop_one(id, queues);
        }
        let of_peer = self.all.values().filter(|served| served.peer == peer).count();
        let Bounds { entries, entries_per_peer, .. } = self.bounds;
        (of_peer < entries_per_peer || self.drop_least(now, |it| it.peer == peer, queues))
            && (self.all.len() < entries || self.drop_least(now, |_| true, queues))
    }

    /// Drops what is of the least worth, unless it is under way.
    fn drop_least(
        &mut self,
        now: Duration,
        is_meant: impl Fn(&Served<P>) -> bool,
        queues: &mut Queues<P>,
    ) -> bool {
        let meant = self.all.iter().filter(|(_, served)| is_meant(served));
        let least = meant.min_by_key(|(_, served)| served.worth());
        let is_free = |served: &Served<P>| served.worth().0 < 2 || served.is_silent(now);
        let Some((id, _)) = least.filter(|(_, served)| is_free(served)) else { return false };
        self.drop_one(*id, queues);
        true
    }

    /// Less of each is kept where all have grown too much; where that is not enough, others go.
    fn shrink(&mut self, but: u64, medium: Medium, queues: &mut Queues<P>) {
        while self.bytes() > self.bounds.bytes {
            let most = self.all.values_mut().max_by_key(|served| served.behind(medium));
            if let Some(served) = most.filter(|served| served.behind(medium) > 0) {
                served.trim(medium);
                continue;
            }
            let others = self.all.iter().filter(|(id, _)| **id != but);
            let least = others.min_by_key(|(_, served)| served.worth()).map(|(id, _)| *id);
            let Some(id) = least else { return };
            self.drop_one(id, queues);
        }
    }

    fn drop_one(&mut self, id: u64, queues: &mut Queues<P>) {
        let Some(served) = self.all.remove(&id) else { return };
        for waiting in served.waiting {
            let (exchange, content) = (waiting.exchange, full());
            queues.inputs.push_back(Input::Respond { exchange, content });
        }
        if !served.has_all && !served.is_broken {
            let broken = Flow::Broken { of: Of::Exchange(id) };
            queues.outputs.push_back(Output::Flow(broken));
        }
    }

    /// Drops what was unused for too long.
    pub(super) fn expire(&mut self, now: Duration, queues: &mut Queues<P>) {
        let lifetime = self.bounds.lifetime;
        let over = self.all.iter().filter(|(_, it)| it.used_at + lifetime <= now);
        let over: Vec<_> = over.map(|(id, _)| *id).collect();
        over.into_iter().for_each(|id| self.drop_one(id, queues));
    }

    /// When something is unused for too long.
    pub(super) fn expires_at(&self) -> Option<Duration> {
        let lifetime = self.bounds.lifetime;
        self.all.values().map(|served| served.used_at + lifetime).min()
    }
}
