//! Requests of peers with whole bodies, and the responses to them.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::incoming::{Came, Early, Incoming, MAX_WHOLE_BYTES};
use super::pending::Pending;
use super::served::{Ended, Fit, Flows, MAX_SILENCE, Waiting};
use super::{Medium, Queues};
use crate::coap::chance::{Chance, For};
use crate::coap::kept::{Bounds, Held, Kept};
use crate::coap::machine::{Address, EXCHANGE_LIFETIME, Flow, Input, MAX_EXCHANGES, Of, Output};
use crate::coap::{
    Assembly, BERT, Block, Code, Content, MAX_BODY_BYTES, Refusal, key_of, option, slice_within,
};

/// Bodies of requests that are being put together; of more what was longest unused goes.
pub const MAX_UPLOADS: usize = 256;
/// Those of one peer.
pub const MAX_UPLOADS_PER_PEER: usize = 4;
/// Bytes of all of them.
pub const MAX_UPLOAD_BYTES: usize = 16 << 20;
/// Responses of which blocks are still to be asked for.
pub const MAX_SERVED: usize = 1024;
/// Those to one peer.
pub const MAX_SERVED_PER_PEER: usize = 8;
/// Bytes of all of them. The newest is kept whatever it has.
pub const MAX_SERVED_BYTES: usize = 64 << 20;

impl Held for Assembly {
    fn held_bytes(&self) -> usize {
        self.len()
    }
}

/// A response of which blocks are still to be asked for.
#[derive(Debug)]
struct Whole {
    content: Content,
    /// The number of its beginning among all.
    begun: u64,
    /// The end of the farthest block that was sent.
    reached: usize,
    used_at: Duration,
}

impl Held for Whole {
    fn held_bytes(&self) -> usize {
        self.content.payload.len()
    }
}

impl Whole {
    /// How well the block that begins there belongs to it.
    fn fit(&self, offset: usize) -> Fit {
        let is_within = offset < self.content.payload.len();
        Fit { is_next: offset == self.reached, is_within, begun: self.begun }
    }
}

/// Where what a peer observes is kept.
#[derive(Debug)]
struct Observed<P> {
    peer: P,
    key: Vec<u8>,
    szx: Option<u8>,
}

#[derive(Debug)]
pub(in crate::coap) struct Server<P> {
    /// By the endpoint's number; at most [`MAX_EXCHANGES`] that are open, see `make_room`.
    pending: BTreeMap<u64, Pending<P>>,
    /// As many as the endpoint has observations, and the one that is being answered.
    observed: BTreeMap<u64, Observed<P>>,
    uploads: Kept<P, Assembly>,
    /// Where long bodies of requests are given out as they come.
    incoming: Option<Incoming<P>>,
    served: Kept<P, Whole>,
    /// Answers that are not whole.
    flows: Flows<P>,
    chance: Chance,
    medium: Medium,
}

impl<P: Address> Server<P> {
    pub(in crate::coap) fn new(seed: [u64; 2]) -> Self {
        let lifetime = EXCHANGE_LIFETIME;
        let uploads = Bounds {
            entries: MAX_UPLOADS,
            entries_per_peer: MAX_UPLOADS_PER_PEER,
            bytes: MAX_UPLOAD_BYTES,
            lifetime,
        };
        let served = Bounds {
            entries: MAX_SERVED,
            entries_per_peer: MAX_SERVED_PER_PEER,
            bytes: MAX_SERVED_BYTES,
            lifetime,
        };
        Self::bounded(seed, uploads, served)
    }

    /// One with other bounds of what is kept.
    pub(in crate::coap) fn bounded(seed: [u64; 2], uploads: Bounds, served: Bounds) -> Self {
        Self {
            pending: BTreeMap::new(),
            observed: BTreeMap::new(),
            uploads: Kept::new(uploads),
            incoming: None,
            served: Kept::new(served),
            flows: Flows::new(served),
            chance: Chance::new(seed),
            medium: Medium::Datagram,
        }
    }

    /// Bodies of requests that are longer than [`MAX_WHOLE_BYTES`] are given out as they come.
    pub(in crate::coap) fn take_bodies(&mut self) {
        self.incoming = Some(Incoming::new(self.uploads.bounds()));
    }

    /// Responses go over this from now on.
    pub(in crate::coap) fn set_medium(&mut self, medium: Medium) {
        self.medium = medium;
    }

    /// Bytes of what is kept.
    pub(in crate::coap) fn held_bytes(&self) -> usize {
        self.uploads.bytes() + self.served.bytes() + self.flows.bytes()
    }

    /// Whether a body of a request is given out, and its end has not come.
    pub(in crate::coap) fn has_incoming(&self) -> bool {
        self.incoming.as_ref().is_some_and(|incoming| !incoming.is_empty())
    }

    pub(in crate::coap) fn expire(&mut self, now: Duration, queues: &mut Queues<P>) {
        self.uploads.expire(now);
        self.served.expire(now);
        self.flows.expire(now, queues);
        if let Some(incoming) = &mut self.incoming {
            incoming.expire(now, queues);
        }
    }

    pub(in crate::coap) fn wakes_at(&self) -> Option<Duration> {
        let incoming = self.incoming.as_ref().and_then(Incoming::expires_at);
        let times = [self.uploads.expires_at(), self.served.expires_at(), self.flows.expires_at()];
        times.into_iter().chain([incoming]).flatten().min()
    }

    /// Forgets requests that the endpoint has given up.
    pub(in crate::coap) fn make_room(&mut self, is_open: impl Fn(u64) -> bool) {
        if self.pending.len() >= MAX_EXCHANGES {
            self.pending.retain(|exchange, _| is_open(*exchange));
        }
    }

    pub(in crate::coap) fn requested(
        &mut self,
        now: Duration,
        (exchange, peer, context): (u64, P, Option<usize>),
        mut content: Content,
        queues: &mut Queues<P>,
    ) {
        let answer = |content| Input::Respond { exchange, content };
        let allows_bert = self.medium.allows_bert();
        let decode = |value| Block::decode(value, allows_bert);
        let block = |number| content.first(number).map(decode).transpose();
        let (Ok(block1), Ok(block2)) = (block(option::BLOCK1), block(option::BLOCK2)) else {
            // RFC 7959 §2.2: the reserved size.
            return queues.inputs.push_back(answer(Content::new(Code::BAD_REQUEST)));
        };
        // What one security context protects and what another or none does have no blocks in common
        // (RFC 9175 §3.2), from whatever address they come.
        let mut key = context.map_or(u64::MAX, |index| index as u64).to_be_bytes().to_vec();
        key.extend(key_of(&content));
        if let Some(block) = block1 {
            let (of, came) = ((peer, &key[..]), (exchange, block));
            if self.was_expected(now, of, came, &content.payload, queues) {
                return;
            }
            match self.upload(now, peer, &key, block, &mut content) {
                Ok(true) => {}
                Ok(false) if self.is_long(now, peer, &key, &mut content) => {
                    let pending = Pending { peer, key, block1, block2 };
                    return self.open(now, exchange, pending, content, queues);
                }
                Ok(false) => {
                    let more = with_block(Content::new(Code::CONTINUE), option::BLOCK1, block);
                    return queues.inputs.push_back(answer(more));
                }
                Err(refusal) => {
                    let refused = with_block(refusal.response(), option::BLOCK1, block);
                    return queues.inputs.push_back(answer(refused));
                }
            }
        }
        if let Some(block) = block2.filter(|block| block.num > 0) {
            let (of, asked) = ((peer, &key[..]), (exchange, block));
            if self.was_begun(now, of, asked, content.code, queues) {
                return;
            }
        }
        for number in [option::BLOCK1, option::BLOCK2, option::SIZE1] {
            content.remove(number);
        }
        self.pending.insert(exchange, Pending { peer, key, block1, block2 });
        queues.outputs.push_back(Output::Request { exchange, peer, content });
    }

    /// Takes a block of a body; whether `content` has the whole of it now.
    fn upload(
        &mut self,
        now: Duration,
        peer: P,
        key: &[u8],
        block: Block,
        content: &mut Content,
    ) -> Result<bool, Refusal> {
        let before = self.uploads.take(peer, key);
        let mut assembly = before.unwrap_or_else(|| Assembly::new(MAX_BODY_BYTES));
        // What is given out as it comes is as long as it is.
        let size = content.uint(option::SIZE1).filter(|_| self.incoming.is_none());
        let pushed = assembly.push(block, &content.payload, size);
        match pushed {
            Ok(true) => content.payload = assembly.into_bytes(),
            // What is too large is of no use; what came before a block out of order is.
            Err(Refusal::TooLarge(_)) => {}
            _ if assembly.is_empty() => {}
            _ => self.uploads.put(now, peer, key, assembly),
        }
        pushed
    }

    /// Whether a block is one of a body that is given out as it comes.
    fn was_expected(
        &mut self,
        now: Duration,
        of: (P, &[u8]),
        came: (u64, Block),
        payload: &Bytes,
        queues: &mut Queues<P>,
    ) -> bool {
        let Some(incoming) = &mut self.incoming else { return false };
        match incoming.came(now, of, came, payload, queues) {
            Came::Taken => true,
            Came::Answered(id, (exchange, pending), early) => {
                self.finish(now, (id, exchange, pending), early, queues);
                true
            }
            Came::Other => false,
        }
    }

    /// Whether what has come of a body is to be given out; then it is in `content`.
    fn is_long(&mut self, now: Duration, peer: P, key: &[u8], content: &mut Content) -> bool {
        if self.incoming.is_none() {
            return false;
        }
        let Some(assembly) = self.uploads.take(peer, key) else { return false };
        if assembly.len() <= MAX_WHOLE_BYTES {
            self.uploads.put(now, peer, key, assembly);
            return false;
        }
        content.payload = assembly.into_bytes();
        true
    }

    /// Gives out a request of whose body this is the beginning.
    fn open(
        &mut self,
        now: Duration,
        exchange: u64,
        pending: Pending<P>,
        mut content: Content,
        queues: &mut Queues<P>,
    ) {
        let (peer, len) = (pending.peer, content.payload.len());
        let begun = self.incoming.as_mut().map(|it| it.begin(now, exchange, (pending, len)));
        if let Some(Err(full)) = begun {
            return queues.inputs.push_back(Input::Respond { exchange, content: full });
        }
        for number in [option::BLOCK1, option::BLOCK2, option::SIZE1] {
            content.remove(number);
        }
        queues.outputs.push_back(Output::Opened { exchange, peer, content });
    }

    /// Answers the message that the last block of a request came with.
    fn finish(
        &mut self,
        now: Duration,
        (id, exchange, pending): (u64, u64, Pending<P>),
        early: Early,
        queues: &mut Queues<P>,
    ) {
        self.pending.insert(exchange, pending);
        match early {
            Early::Whole(content) => self.respond(now, exchange, content, queues),
            Early::Begun(content) => self.begin_as(now, (id, exchange), content, queues),
        }
    }

    /// Whether a request's body is, or was until now, given out as it came; then it is answered, or
    /// will be with its next block.
    fn was_opened(
        &mut self,
        now: Duration,
        id: u64,
        early: impl FnOnce() -> Early,
        queues: &mut Queues<P>,
    ) -> bool {
        let incoming = self.incoming.as_mut().filter(|incoming| incoming.has(id));
        let Some(incoming) = incoming else { return false };
        if let Some((exchange, pending, early)) = incoming.answered(id, early(), queues) {
            self.finish(now, (id, exchange, pending), early, queues);
        }
        true
    }

    /// Whether a further block of a response is answered, or will be; otherwise the application is
    /// asked for it again.
    fn was_begun(
        &mut self,
        now: Duration,
        (peer, key): (P, &[u8]),
        (exchange, block): (u64, Block),
        method: Code,
        queues: &mut Queues<P>,
    ) -> bool {
        let offset = block.offset();
        let whole = self.served.get(peer, key).map(|whole| whole.fit(offset));
        let flow = self.flows.find((peer, key), offset);
        let flow = flow.filter(|(fit, _)| whole.is_none_or(|whole| whole < *fit));
        let content = match flow {
            Some((_, id)) => self.flows.requested(now, id, (exchange, block), self.medium, queues),
            None => match self.served.take(peer, key) {
                Some(mut whole) => {
                    let content = cut(&whole.content, block, self.medium);
                    if !content.payload.is_empty() {
                        whole.reached = whole.reached.max(offset + content.payload.len());
                    }
                    whole.used_at = now;
                    self.served.put(now, peer, key, whole);
                    Some(content)
                }
                None if method.is_safe() => return false,
                // What changes something is not done again.
                None => Some(Content::new(Code::REQUEST_ENTITY_INCOMPLETE)),
            },
        };
        if let Some(content) = content {
            queues.inputs.push_back(Input::Respond { exchange, content });
        }
        true
    }

    /// A request is not answered, as it will come again.
    pub(in crate::coap) fn forget(&mut self, exchange: u64) {
        self.pending.remove(&exchange);
        if let Some(incoming) = &mut self.incoming {
            incoming.forget(exchange);
        }
    }

    pub(in crate::coap) fn respond(
        &mut self,
        now: Duration,
        exchange: u64,
        content: Content,
        queues: &mut Queues<P>,
    ) {
        if self.was_opened(now, exchange, || Early::Whole(content.clone()), queues) {
            return;
        }
        let content = match self.pending.remove(&exchange) {
            // The endpoint counts it.
            None => content,
            Some(Pending { peer, key, block1, block2 }) => {
                if content.code.is_success() {
                    self.flows.replaced(now, (peer, &key), queues);
                }
                let is_observing = content.first(option::OBSERVE).is_some();
                let response = self.begin(now, peer, &key, content, block2);
                if is_observing {
                    let szx = block2.map(|block| block.szx);
                    self.observed.insert(exchange, Observed { peer, key, szx });
                }
                match block1 {
                    // RFC 7959 §2.3: which block it answers; none follows.
                    Some(block) => {
                        let last = Block { more: false, ..block };
                        with_block(response, option::BLOCK1, last)
                    }
                    None => response,
                }
            }
        };
        queues.inputs.push_back(Input::Respond { exchange, content });
    }

    /// The answer to a request, with the beginning of its body: the rest is asked for as the peer
    /// asks for blocks.
    pub(in crate::coap) fn begin_flow(
        &mut self,
        now: Duration,
        exchange: u64,
        content: Content,
        queues: &mut Queues<P>,
    ) {
        if !self.was_opened(now, exchange, || Early::Begun(content.clone()), queues) {
            self.begin_as(now, (exchange, exchange), content, queues);
        }
    }

    /// The same of a request with the application's number, and that of the message that is
    /// answered.
    fn begin_as(
        &mut self,
        now: Duration,
        (id, exchange): (u64, u64),
        mut content: Content,
        queues: &mut Queues<P>,
    ) {
        let Some(Pending { peer, key, block1, block2 }) = self.pending.remove(&exchange) else {
            // Nobody waits for it any more.
            let broken = Flow::Broken { of: Of::Exchange(id) };
            return queues.outputs.push_back(Output::Flow(broken));
        };
        let is_left = |whole: &Whole| whole.used_at + MAX_SILENCE <= now;
        if self.served.get(peer, &key).is_some_and(is_left) {
            drop(self.served.take(peer, &key));
        }
        // RFC 7959 §2.4: of a body that is not here nothing but this tells that it is another.
        if content.first(option::ETAG).is_none() {
            content.push(option::ETAG, &self.chance.next(For::ETag).to_be_bytes());
        }
        let first = Waiting { exchange, asked: block2, block1 };
        self.flows.begin(now, (id, peer, key), (first, content), self.medium, queues);
    }

    /// A step of the body of a peer's request, or of an answer to a peer.
    pub(in crate::coap) fn flow(&mut self, now: Duration, flow: Flow, queues: &mut Queues<P>) {
        if let (Flow::Room { of: Of::Exchange(id), bytes }, Some(incoming)) =
            (&flow, &mut self.incoming)
        {
            return incoming.grew(*id, *bytes, queues);
        }
        let is_free = |peer, key: &[u8]| self.served.get(peer, key).is_none();
        if let Some(ended) = self.flows.flow(flow, is_free, self.medium, queues) {
            let Ended { peer, key, content, begun, reached } = ended;
            let whole = Whole { content, begun, reached, used_at: now };
            self.served.put(now, peer, &key, whole);
        }
    }

    /// The endpoint has an answer: whether what it answered is observed from now on.
    pub(in crate::coap) fn answered(&mut self, exchange: u64, is_observed: bool) {
        if !is_observed {
            self.observed.remove(&exchange);
        }
    }

    pub(in crate::coap) fn ended(&mut self, exchange: u64) {
        self.observed.remove(&exchange);
    }

    pub(in crate::coap) fn notify(
        &mut self,
        now: Duration,
        exchange: u64,
        content: Content,
        queues: &mut Queues<P>,
    ) {
        let content = match self.observed.remove(&exchange) {
            None => content,
            Some(observed) => {
                let Observed { peer, key, szx } = &observed;
                self.flows.replaced(now, (*peer, key), queues);
                // RFC 7959 §2.6: the first block; the peer asks for the others.
                let asked = szx.map(|szx| Block { num: 0, more: false, szx });
                let first = self.begin(now, *peer, key, content, asked);
                self.observed.insert(exchange, observed);
                first
            }
        };
        queues.inputs.push_back(Input::Notify { exchange, content });
    }

    /// The block of a response that was asked for; the rest is kept.
    fn begin(
        &mut self,
        now: Duration,
        peer: P,
        key: &[u8],
        mut content: Content,
        asked: Option<Block>,
    ) -> Content {
        let (szx, room) = (self.medium.szx(&content), self.medium.room(&content));
        let small = asked.filter(|block| block.szx < BERT).map(Block::size_bytes);
        let is_large = content.payload.len() > small.unwrap_or(room);
        if !is_large && asked.is_none() {
            return content;
        }
        let asked = asked.unwrap_or(Block { num: 0, more: false, szx });
        // RFC 7959 §2.4: by its ETag the peer knows that blocks are of one body.
        if is_large && content.first(option::ETAG).is_none() {
            let tag = self.chance.of(For::ETag, &(content.code.0, &content.payload));
            content.push(option::ETAG, &tag.to_be_bytes());
        }
        let response = cut(&content, asked, self.medium);
        if is_large {
            let (begun, reached) = (self.flows.next(), asked.offset() + response.payload.len());
            let whole = Whole { content, begun, reached, used_at: now };
            self.served.put(now, peer, key, whole);
        }
        response
    }
}

fn with_block(mut content: Content, number: option::Number, block: Block) -> Content {
    if let Ok(value) = block.encode() {
        content.set(number, value.as_slice());
    }
    content
}

/// The block of a response; 4.00 behind its end.
fn cut(whole: &Content, asked: Block, medium: Medium) -> Content {
    let within = |block| slice_within(&whole.payload, block, medium.room(whole));
    let Some((block, payload)) = medium.fit(asked, whole).and_then(within) else {
        return Content::new(Code::BAD_REQUEST);
    };
    let mut content = whole.clone().with_payload(payload);
    if block.num == 0 && block.more {
        content.push_uint(option::SIZE2, u32::try_from(whole.payload.len()).unwrap_or(u32::MAX));
    }
    with_block(content, option::BLOCK2, block)
}
