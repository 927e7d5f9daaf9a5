//! Requests of peers with RFC 9177: bodies that come in any order, responses that leave in sets.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::super::Queues;
use super::asked::Asked;
use super::gathered::Gathered;
use super::outgoing::Outgoing;
use super::{
    MAX_NON_RETRANSMIT, MAX_PAYLOADS, NON_PARTIAL_TIMEOUT, NON_RECEIVE_TIMEOUT, NON_TIMEOUT,
    blocks_of, missing, put_block, receive_timeout, set_of,
};
use crate::coap::chance::{Chance, For};
use crate::coap::kept::{Bounds, Held, Kept};
use crate::coap::machine::{Address, Input, MAX_EXCHANGES, Output, RETRY_AFTER_S};
use crate::coap::{Block, Code, Content, MAX_NUM, Refusal, Uint, key_of, option};
use crate::timers::Timers;

/// Bodies of requests of which blocks are missing; of more what was longest unused goes.
pub const MAX_GATHERED: usize = 64;
/// Those of one peer.
pub const MAX_GATHERED_PER_PEER: usize = 4;
/// Bytes of all of them, with what a block takes beside.
pub const MAX_GATHERED_BYTES: usize = 16 << 20;
/// Responses of which sets are still to leave by themselves; of more only the first block leaves,
/// and the peer asks for the others.
pub const MAX_SENDINGS: usize = 64;
/// Those to one peer.
pub const MAX_SENDINGS_PER_PEER: usize = 4;
/// Responses of which blocks may be asked for again, and requests that are whole.
const MAX_KEPT: usize = 1024;
const MAX_KEPT_PER_PEER: usize = 8;
const MAX_KEPT_BYTES: usize = 32 << 20;
/// Requests of which is known that their bodies were whole, by the lengths of their keys: far more
/// of a peer than it may have open, so that none is begun anew while others come and go.
const MAX_DONE: usize = 16 * 1024;
const MAX_DONE_PER_PEER: usize = 64;
const MAX_DONE_BYTES: usize = 8 << 20;
/// A response of few blocks leaves at once so often within a pause; then one a pause.
const MAX_AT_ONCE: u32 = 4;
/// For so long a request for the first block of a response may be for one that was lost.
const YOUNG: Duration = NON_RECEIVE_TIMEOUT.saturating_mul(4);

type Key = Vec<u8>;

/// A request's body of which blocks are missing.
#[derive(Debug)]
struct Upload<P> {
    peer: P,
    key: Key,
    /// The newest request that waits for an answer, by the endpoint's number.
    exchange: Option<u64>,
    gathered: Gathered,
    /// Blocks up to which all was confirmed; sets that were asked about because a later one came;
    /// times in a row that missing blocks were asked for in vain.
    confirmed: u32,
    asked_set: u32,
    asks: u32,
    used_at: Duration,
}

/// A response of which sets are still to leave.
#[derive(Debug)]
struct Sending<P> {
    peer: P,
    key: Key,
    whole: Content,
    szx: u8,
    outgoing: Outgoing,
}

/// A response of which blocks may be asked for again.
#[derive(Debug)]
struct Served {
    whole: Content,
    /// How many blocks more.
    left: u32,
    /// When the application gave it; from when on and how often it has left within a pause.
    since: Duration,
    pause_from: Duration,
    in_pause: u32,
}

impl Held for Served {
    fn held_bytes(&self) -> usize {
        self.whole.payload.len()
    }
}

/// The response to a request whose body came in blocks.
#[derive(Debug)]
struct Finished(Content);

impl Held for Finished {
    fn held_bytes(&self) -> usize {
        self.0.payload.len()
    }
}

/// A request whose body was whole: so that a block that comes late begins nothing anew. A client
/// may give the same tag to another body; that one has another length, beginning or end.
#[derive(Clone, Copy, Debug)]
struct Done {
    size: u32,
    szx: u8,
    /// Digests of the first block and of the last.
    first: u64,
    last: u64,
}

impl Held for Done {
    fn held_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// What is known of a request that the application answers.
#[derive(Debug)]
struct Pending<P> {
    peer: P,
    key: Key,
    szx: u8,
    asked: Asked,
    is_upload: bool,
    since: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Upload(u64),
    Sending(u64),
}

#[derive(Debug)]
pub(in crate::coap::transfer) struct Server<P> {
    /// By the endpoint's number; at most [`MAX_EXCHANGES`] that are open, see `make_room`.
    pending: BTreeMap<u64, Pending<P>>,
    /// By a number of their own; at most [`MAX_GATHERED`].
    uploads: BTreeMap<u64, Upload<P>>,
    last_upload: u64,
    /// By the number of the request; at most [`MAX_SENDINGS`].
    sendings: BTreeMap<u64, Sending<P>>,
    served: Kept<P, Served>,
    finished: Kept<P, Finished>,
    done: Kept<P, Done>,
    timers: Timers<Due>,
    /// Responses of which blocks have just been given to the endpoint.
    pumped: Vec<u64>,
    chance: Chance,
    refused: u64,
}

impl<P: Address> Server<P> {
    pub(in crate::coap::transfer) fn new([first, second]: [u64; 2]) -> Self {
        let bounds = Bounds {
            entries: MAX_KEPT,
            entries_per_peer: MAX_KEPT_PER_PEER,
            bytes: MAX_KEPT_BYTES,
            lifetime: NON_PARTIAL_TIMEOUT,
        };
        Self {
            pending: BTreeMap::new(),
            uploads: BTreeMap::new(),
            last_upload: 0,
            sendings: BTreeMap::new(),
            served: Kept::new(bounds),
            finished: Kept::new(bounds),
            done: Kept::new(Bounds {
                entries: MAX_DONE,
                entries_per_peer: MAX_DONE_PER_PEER,
                bytes: MAX_DONE_BYTES,
                ..bounds
            }),
            timers: Timers::default(),
            pumped: Vec::new(),
            // Not the numbers of the transfers beside it.
            chance: Chance::new([first, second ^ 1 << 63]),
            refused: 0,
        }
    }

    /// How many requests found no room, or asked for more than one may.
    pub(in crate::coap::transfer) fn refused(&self) -> u64 {
        self.refused
    }

    /// Whether a request is one for here.
    pub(in crate::coap::transfer) fn admits(content: &Content) -> bool {
        [option::Q_BLOCK1, option::Q_BLOCK2].into_iter().any(|it| content.first(it).is_some())
    }

    /// Who has sent a request that is being answered here.
    pub(in crate::coap::transfer) fn requester(&self, exchange: u64) -> Option<P> {
        self.pending.get(&exchange).map(|pending| pending.peer)
    }

    /// When there is something to do.
    pub(in crate::coap::transfer) fn wakes_at(&self) -> Option<Duration> {
        let kept = [self.served.expires_at(), self.finished.expires_at(), self.done.expires_at()];
        kept.into_iter().chain([self.timers.next()]).flatten().min()
    }

    /// Forgets requests that the endpoint has given up.
    pub(in crate::coap::transfer) fn make_room(&mut self, is_open: impl Fn(u64) -> bool) {
        if self.pending.len() >= MAX_EXCHANGES {
            self.pending.retain(|exchange, _| is_open(*exchange));
        }
    }

    /// A request is not answered, as it will come again.
    pub(in crate::coap::transfer) fn forget(&mut self, exchange: u64) {
        if let Some(Pending { peer, key, is_upload: true, .. }) = self.pending.remove(&exchange) {
            drop(self.finished.take(peer, &key));
            let _ = self.done.take(peer, &key);
        }
    }

    /// The peer has reset a part of an answer; whether that was one from here (RFC 9177 §4.3).
    pub(in crate::coap::transfer) fn was_reset(&mut self, exchange: u64) -> bool {
        if self.sendings.remove(&exchange).is_some() {
            self.timers.set(Due::Sending(exchange), None);
            return true;
        }
        let mut all = self.uploads.iter().filter(|(_, it)| it.exchange == Some(exchange));
        let Some(number) = all.next().map(|(number, _)| *number) else {
            return self.pending.remove(&exchange).is_some();
        };
        self.timers.set(Due::Upload(number), None);
        self.uploads.remove(&number);
        true
    }

    pub(in crate::coap::transfer) fn requested(
        &mut self,
        now: Duration,
        (exchange, peer, is_confirmable): (u64, P, bool),
        mut content: Content,
        queues: &mut Queues<P>,
    ) {
        let answer = |code| Input::Respond { exchange, content: Content::new(code) };
        // RFC 9177 §4.1: not both kinds of blocks in one message.
        if [option::BLOCK1, option::BLOCK2].into_iter().any(|it| content.first(it).is_some()) {
            return queues.inputs.push_back(answer(Code::BAD_OPTION));
        }
        // Nothing is observed here; see the module.
        content.remove(option::OBSERVE);
        let mut keyed = content.clone();
        keyed.remove(option::ETAG);
        let key = key_of(&keyed);
        if let Some(value) = content.first(option::Q_BLOCK1) {
            let Ok(block) = Block::decode(value, false) else {
                return queues.inputs.push_back(answer(Code::BAD_REQUEST));
            };
            return self.upload(
                now,
                (exchange, peer, is_confirmable),
                (key, block),
                content,
                queues,
            );
        }
        let Some((asked, szx)) = Asked::of(&content) else {
            return queues.inputs.push_back(answer(Code::BAD_REQUEST));
        };
        // RFC 9177 §10.3.3: of a request whose body went in blocks there is no other beginning.
        let had_body = content.code != Code::GET
            && content.first(option::REQUEST_TAG).is_some()
            && content.payload.is_empty();
        let is_first = asked == Asked::Blocks(vec![0]);
        let is_new = !had_body && (asked == Asked::All || is_first);
        // RFC 9177 §4.4: that of a block that was lost has no body, and what changes something is
        // not done again for it.
        let may_be_lost = is_first
            && content.payload.is_empty()
            && (!content.code.is_safe() || self.is_young(now, peer, &key));
        if (!is_new || may_be_lost)
            && self.again(now, (exchange, peer), &key, (&asked, szx), queues)
        {
            return;
        }
        if !is_new && (had_body || !content.code.is_safe()) {
            // What changes something is not done again.
            return queues.inputs.push_back(answer(Code::REQUEST_ENTITY_INCOMPLETE));
        }
        // Who has no answer after a while asks again, by messages that are not confirmable; the
        // answer is on its way to the first of them as soon as there is one.
        let waits = |it: &Pending<P>| {
            let is_it = !it.is_upload && it.peer == peer && it.asked == asked && it.key == key;
            is_it && it.since + NON_RECEIVE_TIMEOUT <= now
        };
        if !is_confirmable && self.pending.values().any(waits) {
            return queues.inputs.push_back(Input::Drop { exchange });
        }
        content.remove(option::Q_BLOCK2);
        let asked = match asked {
            Asked::Behind(num) => Asked::Blocks((num..num + MAX_PAYLOADS).collect()),
            asked => asked,
        };
        let (is_upload, since) = (false, now);
        self.pending.insert(exchange, Pending { peer, key, szx, asked, is_upload, since });
        queues.outputs.push_back(Output::Request { exchange, peer, content });
    }

    /// Whether there is a response of which blocks may just have been lost.
    fn is_young(&mut self, now: Duration, peer: P, key: &[u8]) -> bool {
        let served = self.served.take(peer, key);
        let is_young = served.as_ref().is_some_and(|it| now < it.since + YOUNG);
        if let Some(served) = served {
            self.served.put(now, peer, key, served);
        }
        is_young
    }

    /// Further blocks of a response that is there; false where it is not.
    fn again(
        &mut self,
        now: Duration,
        (exchange, peer): (u64, P),
        key: &[u8],
        (asked, szx): (&Asked, u8),
        queues: &mut Queues<P>,
    ) -> bool {
        let mut numbers = match asked {
            Asked::All => (0..MAX_PAYLOADS).collect(),
            Asked::Blocks(numbers) => numbers.clone(),
            Asked::Behind(num) => (*num..num.saturating_add(MAX_PAYLOADS)).collect(),
        };
        let of_key = |it: &&Sending<P>| it.peer == peer && it.key == key && it.szx == szx;
        let mut going = self.sendings.iter().filter(|(_, it)| of_key(it));
        let going = going.next().map(|(number, it)| (*number, it.outgoing.sent()));
        if let Some((number, sent)) = going {
            // What has not left yet leaves as an answer to the request for all.
            if numbers.iter().any(|num| *num >= sent) {
                self.resume(number, queues);
            }
            numbers.retain(|num| *num < sent && matches!(asked, Asked::Blocks(_)));
            if numbers.is_empty() {
                queues.inputs.push_back(Input::Drop { exchange });
                return true;
            }
            // The next set leaves no sooner than a pause behind these.
            self.pumped.push(number);
        }
        let Some(served) = self.served.take(peer, key) else { return false };
        let served = self.serve(exchange, served, (&numbers, szx), queues);
        self.served.put(now, peer, key, served);
        true
    }

    /// Answers with blocks of a response.
    fn serve(
        &mut self,
        exchange: u64,
        mut served: Served,
        (numbers, szx): (&[u32], u8),
        queues: &mut Queues<P>,
    ) -> Served {
        let parts: Vec<_> =
            numbers.iter().filter_map(|num| part(&served.whole, *num, szx)).collect();
        let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        if served.left < count {
            // Nobody who follows the rules asks so often.
            self.refused += 1;
            queues.inputs.push_back(Input::Drop { exchange });
            return served;
        }
        served.left -= count;
        let mut parts = parts.into_iter();
        match (parts.next(), count) {
            (None, _) => {
                let content = Content::new(Code::BAD_REQUEST);
                queues.inputs.push_back(Input::Respond { exchange, content });
            }
            (Some(content), 1) => queues.inputs.push_back(Input::Respond { exchange, content }),
            (Some(first), _) => {
                for content in std::iter::once(first).chain(parts) {
                    queues.inputs.push_back(Input::Further { exchange, content });
                }
                queues.inputs.push_back(Input::Drop { exchange });
            }
        }
        served
    }

    /// A block of a request's body.
    fn upload(
        &mut self,
        now: Duration,
        (exchange, peer, is_confirmable): (u64, P, bool),
        (key, block): (Key, Block),
        content: Content,
        queues: &mut Queues<P>,
    ) {
        let respond = |content| Input::Respond { exchange, content };
        let refuse = |refusal: Refusal| respond(refusal.response());
        let has_tag = content.first(option::REQUEST_TAG).is_some();
        // RFC 9177 §4.3.
        let Some(size) = content.uint(option::SIZE1).filter(|_| has_tag) else {
            return queues.inputs.push_back(refuse(Refusal::Malformed));
        };
        if self.is_done(now, (peer, &key), (block, size), &content.payload) {
            // The last block asks for what has been said.
            let response = if block.more { None } else { self.finished.take(peer, &key) };
            return match response {
                Some(Finished(response)) => {
                    self.finished.put(now, peer, &key, Finished(response.clone()));
                    let (szx, asked) = (block.szx, Asked::All);
                    let pending = Pending { peer, key, szx, asked, is_upload: true, since: now };
                    self.answer(now, exchange, pending, response, queues);
                }
                None => queues.inputs.push_back(Input::Drop { exchange }),
            };
        }
        let number = match self.find(peer, &key) {
            Some(number) => number,
            None => match Gathered::new(size, block.szx) {
                Ok(gathered) => self.begin(now, peer, key, gathered, queues),
                Err(refusal) => return queues.inputs.push_back(refuse(refusal)),
            },
        };
        let Some(upload) = self.uploads.get_mut(&number) else { return };
        let put = match upload.gathered.is_of(size, block.szx) {
            true => upload.gathered.put(block, &content.payload),
            false => Err(Refusal::Malformed),
        };
        let is_new = match put {
            Ok(is_new) => is_new,
            Err(refusal) => {
                if upload.gathered.held_bytes() == 0 {
                    self.discard(number, queues);
                }
                return queues.inputs.push_back(refuse(refusal));
            }
        };
        if is_new {
            (upload.used_at, upload.asks) = (now, 0);
        }
        if let Some(before) = upload.exchange.replace(exchange) {
            queues.inputs.push_back(Input::Drop { exchange: before });
        }
        if upload.gathered.is_whole() {
            return self.whole(now, number, content, queues);
        }
        let wait = match is_confirmable {
            true => NON_PARTIAL_TIMEOUT,
            false => receive_timeout(upload.asks),
        };
        // A block that comes again is no sign that the others come.
        if is_new {
            self.timers.set(Due::Upload(number), Some(now + wait));
        }
        if is_confirmable {
            // RFC 9177 §4.3: what is confirmed needs no other answer.
            upload.exchange = None;
            queues.inputs.push_back(Input::Drop { exchange });
        } else if let Some(content) = upload.say(block, is_new) {
            queues.inputs.push_back(Input::Further { exchange, content });
        }
        self.shrink(number, queues);
    }

    /// Whether a block is one of a body that was whole. One of another body with the same tag makes
    /// that one forgotten.
    fn is_done(
        &mut self,
        now: Duration,
        (peer, key): (P, &[u8]),
        (block, size): (Block, u32),
        payload: &[u8],
    ) -> bool {
        let Some(done) = self.done.take(peer, key) else {
            let is_it = |it: &Pending<P>| it.is_upload && it.peer == peer && it.key == key;
            return self.pending.values().any(is_it);
        };
        let digest = || self.chance.of(For::Block, &payload);
        let is_same = done.size == size
            && done.szx == block.szx
            && (block.num > 0 || done.first == digest())
            && (block.more || done.last == digest());
        match is_same {
            true => self.done.put(now, peer, key, done),
            false => drop(self.finished.take(peer, key)),
        }
        is_same
    }

    fn find(&self, peer: P, key: &[u8]) -> Option<u64> {
        let mut found = self.uploads.iter().filter(|(_, it)| it.peer == peer && it.key == key);
        found.next().map(|(number, _)| *number)
    }

    /// A place for a body; others go for it, those of the same peer first.
    fn begin(
        &mut self,
        now: Duration,
        peer: P,
        key: Key,
        gathered: Gathered,
        queues: &mut Queues<P>,
    ) -> u64 {
        let of_peer = self.uploads.values().filter(|it| it.peer == peer).count();
        if of_peer >= MAX_GATHERED_PER_PEER {
            self.discard_oldest(|it| it.peer == peer, queues);
        } else if self.uploads.len() >= MAX_GATHERED {
            self.discard_oldest(|_| true, queues);
        }
        self.last_upload += 1;
        let upload = Upload {
            peer,
            key,
            exchange: None,
            gathered,
            confirmed: 0,
            asked_set: 0,
            asks: 0,
            used_at: now,
        };
        self.uploads.insert(self.last_upload, upload);
        self.last_upload
    }

    fn discard_oldest(&mut self, may_go: impl Fn(&Upload<P>) -> bool, queues: &mut Queues<P>) {
        let all = self.uploads.iter().filter(|(_, upload)| may_go(upload));
        if let Some(oldest) =
            all.min_by_key(|(_, upload)| upload.used_at).map(|(number, _)| *number)
        {
            self.refused += 1;
            self.discard(oldest, queues);
        }
    }

    fn discard(&mut self, number: u64, queues: &mut Queues<P>) {
        self.timers.set(Due::Upload(number), None);
        if let Some(exchange) = self.uploads.remove(&number).and_then(|upload| upload.exchange) {
            queues.inputs.push_back(Input::Drop { exchange });
        }
    }

    /// Keeps to the bytes of all.
    fn shrink(&mut self, newest: u64, queues: &mut Queues<P>) {
        let held = |all: &BTreeMap<u64, Upload<P>>| -> usize {
            all.values().map(|upload| upload.gathered.held_bytes()).sum()
        };
        let newest_at = self.uploads.get(&newest).map(|upload| upload.used_at);
        while self.uploads.len() > 1 && held(&self.uploads) > MAX_GATHERED_BYTES {
            let before = self.uploads.len();
            self.discard_oldest(|it| Some(it.used_at) < newest_at, queues);
            if self.uploads.len() == before {
                return self.discard(newest, queues);
            }
        }
    }

    /// All of a body is there.
    fn whole(&mut self, now: Duration, number: u64, mut content: Content, queues: &mut Queues<P>) {
        self.timers.set(Due::Upload(number), None);
        let Some(Upload { peer, key, exchange, gathered, .. }) = self.uploads.remove(&number)
        else {
            return;
        };
        let Some(exchange) = exchange else { return };
        // RFC 9177 §4.7: it may also say how large those of the response are to be.
        let szx = Asked::of(&content).map_or(gathered.szx(), |(_, szx)| szx);
        let up_szx = gathered.szx();
        let unit = Block { num: 0, more: false, szx: up_szx }.size_bytes();
        content.payload = gathered.into_bytes();
        let blocks = content.payload.chunks(unit);
        let digest = |bytes: Option<&[u8]>| self.chance.of(For::Block, &bytes.unwrap_or_default());
        let done = Done {
            size: u32::try_from(content.payload.len()).unwrap_or(u32::MAX),
            szx: up_szx,
            first: digest(blocks.clone().next()),
            last: digest(blocks.last()),
        };
        for number in [option::Q_BLOCK1, option::Q_BLOCK2, option::SIZE1] {
            content.remove(number);
        }
        drop(self.finished.take(peer, &key));
        self.done.put(now, peer, &key, done);
        let (asked, is_upload, since) = (Asked::All, true, now);
        self.pending.insert(exchange, Pending { peer, key, szx, asked, is_upload, since });
        queues.outputs.push_back(Output::Request { exchange, peer, content });
    }

    pub(in crate::coap::transfer) fn respond(
        &mut self,
        now: Duration,
        exchange: u64,
        mut content: Content,
        queues: &mut Queues<P>,
    ) {
        let Some(pending) = self.pending.remove(&exchange) else { return };
        // Nothing is observed here; see the module.
        content.remove(option::OBSERVE);
        if pending.is_upload {
            self.finished.put(now, pending.peer, &pending.key, Finished(content.clone()));
        }
        self.answer(now, exchange, pending, content, queues);
    }

    fn answer(
        &mut self,
        now: Duration,
        exchange: u64,
        Pending { peer, key, szx, asked, .. }: Pending<P>,
        mut content: Content,
        queues: &mut Queues<P>,
    ) {
        let total = blocks_of(content.payload.len(), szx);
        let has_blocks = total > 1 && content.code.is_success();
        if !has_blocks || total > MAX_NUM {
            // RFC 9177 §4.1: who asks for one block may do so to see whether this is known here.
            if asked == Asked::Blocks(vec![0]) {
                put_block(&mut content, option::Q_BLOCK2, Block { num: 0, more: false, szx });
                let size = u32::try_from(content.payload.len()).unwrap_or(u32::MAX);
                content.set(option::SIZE2, Uint::new(size).as_slice());
            }
            return queues.inputs.push_back(Input::Respond { exchange, content });
        }
        if content.first(option::ETAG).is_none() {
            let tag = self.chance.of(For::ETag, &(content.code.0, &content.payload));
            content.push(option::ETAG, &tag.to_be_bytes());
        }
        let before = self.served.take(peer, &key);
        let left = total.saturating_mul(MAX_NON_RETRANSMIT + 1);
        let mut served = Served { whole: content, left, since: now, pause_from: now, in_pause: 0 };
        if let Some(before) = before.filter(|it| now < it.pause_from + NON_TIMEOUT) {
            (served.pause_from, served.in_pause) = (before.pause_from, before.in_pause);
        }
        let served = match asked {
            Asked::Blocks(numbers) => self.serve(exchange, served, (&numbers, szx), queues),
            _ => {
                served.in_pause += 1;
                let is_often = served.in_pause > MAX_AT_ONCE;
                let not_before = is_often.then(|| served.pause_from + NON_TIMEOUT);
                let body = (&served.whole, szx, total);
                self.send(now, exchange, (peer, &key), body, not_before, queues);
                served
            }
        };
        self.served.put(now, peer, &key, served);
    }

    /// Begins to send all blocks of a response.
    fn send(
        &mut self,
        now: Duration,
        exchange: u64,
        (peer, key): (P, &[u8]),
        (whole, szx, total): (&Content, u8, u32),
        not_before: Option<Duration>,
        queues: &mut Queues<P>,
    ) {
        let pause = self.chance.between(NON_TIMEOUT, NON_TIMEOUT.mul_f64(1.5));
        let mut outgoing = Outgoing::new(total, pause);
        if let Some(at) = not_before {
            outgoing = outgoing.not_before(at);
        }
        // One that is asked for again and again leaves no faster for that.
        let before = self.sendings.iter().find(|(_, it)| it.peer == peer && it.key == key);
        if let Some((before, sending)) = before.map(|(number, sending)| (*number, sending)) {
            if let Some(at) = sending.outgoing.resumes_at() {
                outgoing = outgoing.not_before(at.max(now));
            }
            self.end(before, queues);
        }
        let of_peer = self.sendings.values().filter(|it| it.peer == peer).count();
        if of_peer >= MAX_SENDINGS_PER_PEER || self.sendings.len() >= MAX_SENDINGS {
            self.refused += 1;
            let content = part(whole, 0, szx).unwrap_or_else(|| {
                let busy = Content::new(Code::SERVICE_UNAVAILABLE);
                busy.with_uint(option::MAX_AGE, RETRY_AFTER_S)
            });
            return queues.inputs.push_back(Input::Respond { exchange, content });
        }
        self.timers.set(Due::Sending(exchange), outgoing.resumes_at());
        let sending = Sending { peer, key: key.to_vec(), whole: whole.clone(), szx, outgoing };
        self.sendings.insert(exchange, sending);
        self.pump(exchange, queues);
    }

    /// The next set leaves.
    fn resume(&mut self, exchange: u64, queues: &mut Queues<P>) {
        if let Some(Sending { outgoing, .. }) = self.sendings.get_mut(&exchange) {
            outgoing.resume();
        }
        self.pump(exchange, queues);
    }

    /// Sends what may leave of a response.
    fn pump(&mut self, exchange: u64, queues: &mut Queues<P>) {
        let Some(Sending { whole, szx, outgoing, .. }) = self.sendings.get_mut(&exchange) else {
            return;
        };
        let before = outgoing.sent();
        while let Some(num) = outgoing.take() {
            if let Some(content) = part(whole, num, *szx) {
                queues.inputs.push_back(Input::Further { exchange, content });
            }
        }
        match outgoing.is_sent() {
            true => self.end(exchange, queues),
            false if outgoing.sent() > before => self.pumped.push(exchange),
            false => {}
        }
    }

    /// All of a response has left, or another one takes its place.
    fn end(&mut self, exchange: u64, queues: &mut Queues<P>) {
        self.timers.set(Due::Sending(exchange), None);
        self.sendings.remove(&exchange);
        queues.inputs.push_back(Input::Drop { exchange });
    }

    /// What was given to the endpoint has left by `left_at`.
    pub(in crate::coap::transfer) fn rest(&mut self, left_at: Duration) {
        for exchange in std::mem::take(&mut self.pumped) {
            if let Some(Sending { outgoing, .. }) = self.sendings.get_mut(&exchange) {
                outgoing.rest(left_at);
                self.timers.set(Due::Sending(exchange), outgoing.resumes_at());
            }
        }
    }

    /// Time has passed.
    pub(in crate::coap::transfer) fn wake(&mut self, now: Duration, queues: &mut Queues<P>) {
        self.served.expire(now);
        self.finished.expire(now);
        self.done.expire(now);
        while let Some(due) = self.timers.pop(now) {
            match due {
                Due::Sending(exchange) => self.resume(exchange, queues),
                Due::Upload(number) => self.ask(now, number, queues),
            }
        }
    }

    /// No block has come for a while.
    fn ask(&mut self, now: Duration, number: u64, queues: &mut Queues<P>) {
        let Some(upload) = self.uploads.get_mut(&number) else { return };
        let (Some(exchange), true) = (upload.exchange, upload.asks < MAX_NON_RETRANSMIT) else {
            return self.discard(number, queues);
        };
        upload.asks += 1;
        let content = missing::response(&upload.gathered.due());
        queues.inputs.push_back(Input::Further { exchange, content });
        self.timers.set(Due::Upload(number), Some(now + receive_timeout(upload.asks)));
    }
}

impl<P> Upload<P> {
    /// What the peer is told about a block that came (RFC 9177 §7.2).
    fn say(&mut self, block: Block, is_new: bool) -> Option<Content> {
        let (through, szx) = (self.gathered.through(), self.gathered.szx());
        let ends_set = through > 0 && through.is_multiple_of(MAX_PAYLOADS);
        let is_news = is_new && through > self.confirmed;
        if ends_set && (is_news || (!is_new && block.num + 1 == through)) {
            self.confirmed = through;
            let mut content = Content::new(Code::CONTINUE);
            let last = Block { num: through - 1, more: true, szx };
            put_block(&mut content, option::Q_BLOCK1, last);
            return Some(content);
        }
        let set = set_of(block.num);
        // What may be missing is looked for once a set, not once a block.
        if !is_new || set <= self.asked_set {
            return None;
        }
        let missing = self.gathered.missing_below(set * MAX_PAYLOADS);
        if missing.is_empty() {
            return None;
        }
        self.asked_set = set;
        Some(missing::response(&missing))
    }
}

/// A block of a response; `None` behind its end.
fn part(whole: &Content, num: u32, szx: u8) -> Option<Content> {
    let total = blocks_of(whole.payload.len(), szx);
    let block = Block { num, more: num + 1 < total, szx };
    let begin = block.offset();
    if num >= total {
        return None;
    }
    let end = (begin + block.size_bytes()).min(whole.payload.len());
    let payload: Bytes = whole.payload.slice(begin..end);
    let mut content = whole.clone().with_payload(payload);
    put_block(&mut content, option::Q_BLOCK2, block);
    content.remove(option::SIZE2);
    content.push_uint(option::SIZE2, u32::try_from(whole.payload.len()).unwrap_or(u32::MAX));
    Some(content)
}
