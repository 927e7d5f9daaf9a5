//! Answers to peers that are never here as a whole: of each there is a window of bytes, which moves
//! on as the peer asks for blocks and the application gives what lacks.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};

use super::{Medium, Queues};
use crate::coap::kept::Bounds;
use crate::coap::machine::{Address, Flow, Input, Of, Output};
use crate::coap::{BERT, Block, Code, Content, MAX_BODY_BYTES, MAX_NUM, option};

/// Answers whose bodies are not whole, to all peers; of more the longest unused breaks off.
pub const MAX_FLOWING: usize = 128;
/// Of a body over [`MAX_BODY_BYTES`] so much is kept behind what was asked for: a peer may ask for
/// it again, as long as it goes on from there. Of a shorter one all is.
pub const MAX_BEHIND_BYTES: usize = 64 << 10;
/// Of a body so much is here ahead of what was asked for, at least.
const MIN_AHEAD_BYTES: usize = 16 << 10;
/// Blocks of one answer that are asked for at once.
const MAX_WAITING: usize = 4;
/// After so many seconds who asked for more may ask again.
const RETRY_AFTER_S: u32 = 1;

/// A request that waits for its block.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) exchange: u64,
    /// The block that it asks for, if it says one.
    pub(super) asked: Option<Block>,
    /// The last one of its own body.
    pub(super) block1: Option<Block>,
}

/// What becomes of a request for a further block.
pub(super) enum Found {
    /// It is answered, or will be.
    Taken,
    /// It is refused.
    Refused(Content),
    /// Nothing of such an answer is here.
    Nothing,
}

#[derive(Debug)]
struct Served<P> {
    peer: P,
    key: Vec<u8>,
    /// The response without its body.
    head: Content,
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

impl<P> Served<P> {
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

    /// Forgets what lies too far behind.
    fn trim(&mut self, medium: Medium) {
        if self.end() <= MAX_BODY_BYTES {
            return;
        }
        let awaited = self.waiting.iter().filter_map(|one| self.asked(one, medium));
        let first = awaited.map(Block::offset).min().unwrap_or(usize::MAX).min(self.reached);
        let behind = first.saturating_sub(MAX_BEHIND_BYTES).saturating_sub(self.base);
        let behind = behind.min(self.bytes.len());
        self.bytes.advance(behind);
        self.base += behind;
    }
}

fn put(content: &mut Content, number: option::Number, block: Block) {
    if let Ok(value) = block.encode() {
        content.set(number, value.as_slice());
    }
}

/// All of them, by the numbers that their applications know them by.
#[derive(Debug)]
pub(super) struct Flows<P> {
    all: BTreeMap<u64, Served<P>>,
    bounds: Bounds,
}

impl<P: Address> Flows<P> {
    /// With bounds, of which at most [`MAX_FLOWING`] entries are used.
    pub(super) fn new(bounds: Bounds) -> Self {
        let entries = bounds.entries.min(MAX_FLOWING);
        Self { all: BTreeMap::new(), bounds: Bounds { entries, ..bounds } }
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
        self.replaced(peer, &key, queues);
        let offset = first.asked.map_or(0, Block::offset);
        if offset > MAX_BODY_BYTES {
            // Whoever has nothing of what stands before it asks for that first.
            let content = Content::new(Code::REQUEST_ENTITY_INCOMPLETE);
            queues.inputs.push_back(Input::Respond { exchange: first.exchange, content });
            let broken = Flow::Broken { of: Of::Exchange(id) };
            return queues.outputs.push_back(Output::Flow(broken));
        }
        self.make_room(peer, queues);
        let bytes = BytesMut::from(&content.payload[..]);
        content.payload = Bytes::new();
        content.remove(option::OBSERVE);
        let served = Served {
            peer,
            key,
            head: content,
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
    }

    /// A request for a further block.
    pub(super) fn requested(
        &mut self,
        now: Duration,
        (peer, key): (P, &[u8]),
        (exchange, block): (u64, Block),
        medium: Medium,
        queues: &mut Queues<P>,
    ) -> Found {
        let of_it = |(_, served): &(&u64, &mut Served<P>)| served.peer == peer && served.key == key;
        let Some((id, served)) = self.all.iter_mut().find(of_it) else { return Found::Nothing };
        if served.waiting.len() >= MAX_WAITING {
            let refused = Content::new(Code::SERVICE_UNAVAILABLE);
            return Found::Refused(refused.with_uint(option::MAX_AGE, RETRY_AFTER_S));
        }
        // What is not here, and does not follow what is, is asked for anew.
        let is_near = block.offset() <= served.end() + MIN_AHEAD_BYTES;
        if block.offset() < served.base || (!is_near && !served.has_all) {
            return Found::Nothing;
        }
        served.used_at = now;
        served.waiting.push_back(Waiting { exchange, asked: Some(block), block1: None });
        let id = *id;
        self.serve(id, medium, queues);
        Found::Taken
    }

    /// A step of a body. Returned is an answer that is whole, and not too long to be kept so.
    pub(super) fn flow(
        &mut self,
        flow: Flow,
        medium: Medium,
        queues: &mut Queues<P>,
    ) -> Option<(P, Vec<u8>, Content)> {
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
        self.shrink(id, queues);
        let served = self.all.get(&id)?;
        let is_whole = served.has_all && served.base == 0 && served.end() <= MAX_BODY_BYTES;
        if !is_whole || !served.waiting.is_empty() {
            return None;
        }
        let Served { peer, key, head, bytes, .. } = self.all.remove(&id)?;
        Some((peer, key, head.with_payload(bytes.freeze())))
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
        served.trim(medium);
        if let Some(bytes) = served.wants(medium) {
            let room = Flow::Room { of: Of::Exchange(id), bytes };
            queues.outputs.push_back(Output::Flow(room));
        }
    }

    /// Another answer takes the place of what a peer was given by this key.
    pub(super) fn replaced(&mut self, peer: P, key: &[u8], queues: &mut Queues<P>) {
        let mut of_it = self.all.iter().filter(|(_, it)| it.peer == peer && it.key == key);
        if let Some(id) = of_it.next().map(|(id, _)| *id) {
            self.drop_one(id, queues);
        }
    }

    /// A place for one more, of this peer.
    fn make_room(&mut self, peer: P, queues: &mut Queues<P>) {
        let of_peer = self.all.values().filter(|served| served.peer == peer).count();
        if of_peer >= self.bounds.entries_per_peer {
            self.drop_oldest(|served| served.peer == peer, queues);
        }
        if self.all.len() >= self.bounds.entries {
            self.drop_oldest(|_| true, queues);
        }
    }

    /// Others go where all have grown too much.
    fn shrink(&mut self, but: u64, queues: &mut Queues<P>) {
        while self.all.len() > 1 && self.bytes() > self.bounds.bytes {
            let others = self.all.iter().filter(|(id, _)| **id != but);
            let oldest = others.min_by_key(|(_, served)| served.used_at).map(|(id, _)| *id);
            match oldest {
                Some(id) => self.drop_one(id, queues),
                None => return,
            }
        }
    }

    fn drop_oldest(&mut self, is_meant: impl Fn(&Served<P>) -> bool, queues: &mut Queues<P>) {
        let meant = self.all.iter().filter(|(_, served)| is_meant(served));
        let oldest = meant.min_by_key(|(_, served)| served.used_at).map(|(id, _)| *id);
        if let Some(id) = oldest {
            self.drop_one(id, queues);
        }
    }

    fn drop_one(&mut self, id: u64, queues: &mut Queues<P>) {
        let Some(served) = self.all.remove(&id) else { return };
        for waiting in served.waiting {
            let content = Content::new(Code::SERVICE_UNAVAILABLE);
            let content = content.with_uint(option::MAX_AGE, RETRY_AFTER_S);
            queues.inputs.push_back(Input::Respond { exchange: waiting.exchange, content });
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
