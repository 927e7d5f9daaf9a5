//! Requests of this side: whether the server knows RFC 9177, request bodies that go, response
//! bodies that come.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::super::{MAX_RESTARTS, Queues};
use super::gathered::Gathered;
use super::outgoing::Outgoing;
use super::{
    MAX_NON_RETRANSMIT, MAX_PAYLOADS, NON_TIMEOUT, blocks_of, missing, put_block, receive_timeout,
    set_of,
};
use crate::coap::chance::{Chance, For};
use crate::coap::machine::{Address, Input, MAX_REQUESTS, Output, Reason, is_missing_blocks};
use crate::coap::{Block, Code, Content, MAX_NUM, MAX_SZX, Refusal, option};
use crate::timers::Timers;

/// Servers of which is remembered whether they know the options; of more, some are asked again.
pub const MAX_SUPPORT: usize = 1024;
/// Messages of one body whose answers are taken: those of three sets. What a server says of a body
/// it says to the newest.
const MAX_PARTS: usize = 3 * MAX_PAYLOADS as usize;
/// The endpoint's numbers of these messages have this bit, those of others have not.
const PART: u64 = 1 << 63;
/// Bytes that a server is asked for to see whether it knows the options.
const PROBE_BYTES: usize = 16;

/// Whether the endpoint's number is that of a message from here.
pub(in crate::coap::transfer) fn is_part(request: u64) -> bool {
    request & PART != 0
}

/// How far a request is.
#[derive(Debug)]
enum Stage {
    /// The server is asked whether it knows the options.
    Probing,
    /// The request's body is on its way.
    Uploading(Outgoing),
    /// The response is awaited, or of its body there is this: its head, its blocks.
    Downloading(Option<(Content, Gathered)>),
}

/// What follows a response.
#[derive(Debug)]
enum Next {
    Wait,
    /// It says nothing new.
    Ignore,
    /// More blocks may leave.
    Pump,
    /// The response's blocks that are missing are asked for, or the set behind those that are
    /// there.
    Ask(Vec<u32>),
    Continue(u32),
    /// All is asked for once more.
    Again,
    Done(Content),
    Fail(Reason),
    /// The server does not know the options.
    FallBack,
}

#[derive(Debug)]
struct Call<P> {
    peer: P,
    /// As the caller gave it.
    original: Content,
    is_confirmable: bool,
    /// What all messages of it have: no body that goes in blocks.
    template: Content,
    szx: u8,
    stage: Stage,
    /// The message that the response is to, and the others, oldest first.
    main: Option<u64>,
    parts: VecDeque<u64>,
    /// Times in a row that something was asked for in vain, and that all began anew.
    tries: u32,
    restarts: u8,
    /// Sets that were asked about because a later one came; blocks up to which all was confirmed.
    asked_set: u32,
    confirmed: u32,
}

/// The size of blocks, as a block option of the caller's says.
fn szx_of(content: &Content) -> u8 {
    let asked = [option::BLOCK1, option::BLOCK2].into_iter().find_map(|it| content.first(it));
    asked.and_then(|value| Block::decode(value, false).ok()).map_or(MAX_SZX, |block| block.szx)
}

impl<P: Address> Call<P> {
    fn new(peer: P, original: Content, is_confirmable: bool) -> Self {
        let (mut template, szx) = (original.clone(), szx_of(&original));
        template.remove(option::BLOCK1);
        template.remove(option::BLOCK2);
        let (main, parts) = (None, VecDeque::new());
        let mut call = Self {
            peer,
            original,
            is_confirmable,
            template,
            szx,
            stage: Stage::Probing,
            main,
            parts,
            tries: 0,
            restarts: 0,
            asked_set: 0,
            confirmed: 0,
        };
        if call.is_large() {
            call.template.payload = Bytes::new();
        }
        call
    }

    /// Whether the request's body goes in blocks.
    fn is_large(&self) -> bool {
        self.original.payload.len() > 16 << self.szx
    }

    fn total(&self) -> u32 {
        blocks_of(self.original.payload.len(), self.szx)
    }

    /// A block of the request's body.
    fn block(&self, num: u32) -> Content {
        let body = &self.original.payload;
        let block = Block { num, more: num + 1 < self.total(), szx: self.szx };
        let begin = block.offset().min(body.len());
        let end = (begin + block.size_bytes()).min(body.len());
        let mut content = self.template.clone().with_payload(body.slice(begin..end));
        put_block(&mut content, option::Q_BLOCK1, block);
        content.push_uint(option::SIZE1, u32::try_from(body.len()).unwrap_or(u32::MAX));
        content
    }

    /// The request for the whole response.
    fn whole(&self) -> Content {
        let mut content = self.template.clone();
        let all = Block { num: 0, more: true, szx: self.szx };
        put_block(&mut content, option::Q_BLOCK2, all);
        content
    }

    /// One for these blocks of the response; `more`: and for what follows.
    fn blocks(&self, numbers: &[u32], more: bool) -> Content {
        let szx = match &self.stage {
            Stage::Downloading(Some((_, gathered))) => gathered.szx(),
            _ => self.szx,
        };
        let mut content = self.template.clone();
        // RFC 9177 §4.4: else the answer may be that nothing has changed.
        content.remove(option::ETAG);
        if content.code != Code::FETCH {
            content.payload = Bytes::new();
        }
        for num in numbers {
            put_block(&mut content, option::Q_BLOCK2, Block { num: *num, more, szx });
        }
        content
    }

    fn take(&mut self, content: Content) -> Next {
        match &self.stage {
            Stage::Probing => self.probed(&content),
            Stage::Uploading(_) => self.uploaded(content),
            Stage::Downloading(_) => self.downloaded(content),
        }
    }

    /// The answer to the question whether the server knows the options.
    fn probed(&mut self, content: &Content) -> Next {
        let is_short = content.code.is_success() && content.payload.len() <= PROBE_BYTES;
        match content.first(option::Q_BLOCK2).is_some() || is_short {
            true => Next::Again,
            false => Next::FallBack,
        }
    }

    /// A response to a block of the request's body.
    fn uploaded(&mut self, content: Content) -> Next {
        let Stage::Uploading(outgoing) = &mut self.stage else { return Next::Wait };
        if content.code == Code::CONTINUE {
            let block = content.first(option::Q_BLOCK1).map(|value| Block::decode(value, false));
            let through = match block {
                Some(Ok(block)) => block.num + 1,
                Some(Err(_)) => return Next::Fail(Reason::BadAnswer),
                None => outgoing.sent(),
            };
            // Who says the same again and again says no more than nothing.
            if through > self.confirmed {
                (self.confirmed, self.tries) = (through, 0);
            }
            return if outgoing.confirm(through) { Next::Pump } else { Next::Wait };
        }
        if is_missing_blocks(&content) {
            let Some(numbers) = missing::decode(&content.payload) else { return Next::Wait };
            if outgoing.is_exhausted() {
                return Next::Fail(Reason::NoAnswer);
            }
            self.tries = 0;
            outgoing.ask(&numbers);
            return Next::Pump;
        }
        if content.code == Code::BAD_OPTION {
            return Next::FallBack;
        }
        // A final answer to a part of the body would be to another request.
        if content.code.is_success() && outgoing.sent() < self.total() {
            return Next::Fail(Reason::BadAnswer);
        }
        (self.stage, self.tries) = (Stage::Downloading(None), 0);
        self.downloaded(content)
    }

    /// The response, or a block of one.
    fn downloaded(&mut self, content: Content) -> Next {
        let Stage::Downloading(before) = &mut self.stage else { return Next::Wait };
        // What was said of the request's body on its way comes late.
        if content.code == Code::CONTINUE || is_missing_blocks(&content) {
            return Next::Ignore;
        }
        let is_part = content.first(option::Q_BLOCK2).filter(|_| content.code.is_success());
        let Some(value) = is_part else {
            return self.whole_came(content);
        };
        let (Ok(block), Some(size)) = (Block::decode(value, false), content.uint(option::SIZE2))
        else {
            return Next::Fail(Reason::BadAnswer);
        };
        // RFC 9177 §4.4: by the entity tag alone one sees which blocks are of one body.
        if content.first(option::ETAG).is_none() && (block.more || block.num > 0) {
            return match self.template.code.is_safe() {
                true => Next::FallBack,
                false => Next::Fail(Reason::BadAnswer),
            };
        }
        let is_same = |(first, gathered): &(Content, Gathered)| {
            gathered.is_of(size, block.szx)
                && first.code == content.code
                && first.first(option::ETAG) == content.first(option::ETAG)
        };
        if !before.as_ref().is_some_and(is_same) {
            // RFC 9177 §4.4: what came of another body is of no use.
            if before.is_some() {
                if self.restarts >= MAX_RESTARTS {
                    return Next::Fail(Reason::Changed);
                }
                self.restarts += 1;
            }
            let gathered = match Gathered::new(size, block.szx) {
                Ok(gathered) => gathered,
                Err(_) => return Next::Fail(Reason::TooLarge),
            };
            let mut first = content.clone().with_payload(Bytes::new());
            first.remove(option::Q_BLOCK2);
            first.remove(option::SIZE2);
            (self.asked_set, self.confirmed, self.tries) = (0, 0, 0);
            *before = Some((first, gathered));
        }
        let Some((_, gathered)) = before else { return Next::Wait };
        match gathered.put(block, &content.payload) {
            Err(Refusal::TooLarge(_)) => Next::Fail(Reason::TooLarge),
            Err(_) => Next::Fail(Reason::BadAnswer),
            // RFC 9177 §4.4: ignored, and it is no sign that more comes.
            Ok(false) => Next::Ignore,
            Ok(true) => {
                self.tries = 0;
                self.advanced(block.num)
            }
        }
    }

    /// A block is there that was not.
    fn advanced(&mut self, num: u32) -> Next {
        let Stage::Downloading(gathering) = &mut self.stage else { return Next::Wait };
        if let Some((first, gathered)) = gathering.take_if(|(_, gathered)| gathered.is_whole()) {
            return Next::Done(first.with_payload(gathered.into_bytes()));
        }
        let Some((_, gathered)) = gathering else { return Next::Wait };
        let through = gathered.through();
        if through.is_multiple_of(MAX_PAYLOADS) && through > self.confirmed {
            self.confirmed = through;
            return Next::Continue(through);
        }
        // RFC 9177 §7.2: the server is at another set, and does not come back by itself.
        if set_of(num) <= self.asked_set {
            return Next::Wait;
        }
        let missing = gathered.missing_below(set_of(num) * MAX_PAYLOADS);
        if missing.is_empty() {
            return Next::Wait;
        }
        self.asked_set = set_of(num);
        Next::Ask(missing)
    }

    /// A response that is no block.
    fn whole_came(&mut self, content: Content) -> Next {
        let Stage::Downloading(gathering) = &self.stage else { return Next::Wait };
        // A server that knew the options may be another one by now.
        if gathering.is_none() && content.code == Code::BAD_OPTION {
            return Next::FallBack;
        }
        if gathering.is_none() || content.code.is_success() {
            return Next::Done(content);
        }
        match content.code {
            // What is missing is asked for again after a while.
            Code::SERVICE_UNAVAILABLE => Next::Wait,
            // The server has lost what it sent.
            _ if self.template.code.is_safe() && self.restarts < MAX_RESTARTS => {
                self.restarts += 1;
                Next::Again
            }
            _ => Next::Done(content),
        }
    }

    /// Nothing has come for a while. `is_delivered`: whether the server is known to have a message.
    fn overdue(&mut self, now: Duration, is_delivered: impl Fn(u64) -> bool) -> Next {
        let is_over = self.tries >= MAX_NON_RETRANSMIT;
        match &mut self.stage {
            Stage::Probing => Next::Wait,
            Stage::Uploading(outgoing) => {
                if outgoing.resumes_at().is_some_and(|at| at <= now) {
                    outgoing.resume();
                    return Next::Pump;
                }
                if is_over {
                    return Next::Fail(Reason::NoAnswer);
                }
                // All has left: the last block asks the server for what it has said to it.
                self.tries += 1;
                outgoing.resume();
                outgoing.ask(&[outgoing.sent().saturating_sub(1)]);
                Next::Pump
            }
            Stage::Downloading(Some(_)) if is_over => Next::Fail(Reason::NoAnswer),
            Stage::Downloading(Some((_, gathered))) => {
                self.tries += 1;
                Next::Ask(gathered.due())
            }
            // What waits to leave or is repeated by the endpoint is not asked for once more.
            Stage::Downloading(None)
                if self.is_confirmable && self.main.is_some_and(|main| !is_delivered(main)) =>
            {
                Next::Ignore
            }
            // What came back may be lost.
            Stage::Downloading(None) if !is_over && self.template.code.is_safe() => {
                self.tries += 1;
                Next::Again
            }
            // The endpoint knows for how long a request that it has is waited for.
            Stage::Downloading(None) if self.main.is_some() => Next::Wait,
            Stage::Downloading(None) => Next::Fail(Reason::NoAnswer),
        }
    }

    /// When that is, where nothing comes by then.
    fn due_at(&self, now: Duration) -> Option<Duration> {
        match &self.stage {
            Stage::Probing => None,
            Stage::Uploading(outgoing) => {
                // Twice as long as the server takes to ask.
                let all_sent = now + receive_timeout(self.tries) * 2;
                Some(outgoing.resumes_at().unwrap_or(all_sent))
            }
            Stage::Downloading(Some(_)) => Some(now + receive_timeout(self.tries)),
            Stage::Downloading(None) => Some(now + receive_timeout(self.tries) * 2),
        }
    }
}

/// All requests of this side that RFC 9177 is of use for.
#[derive(Debug)]
pub(in crate::coap::transfer) struct Client<P> {
    /// By the caller's number; at most [`MAX_REQUESTS`].
    calls: BTreeMap<u64, Call<P>>,
    /// By the endpoint's number; at most [`MAX_PARTS`] and one of each call.
    parts: BTreeMap<u64, u64>,
    last_part: u64,
    /// Whether a server knows the options; at most [`MAX_SUPPORT`].
    support: BTreeMap<P, bool>,
    timers: Timers<u64>,
    /// Requests of which blocks have just been given to the endpoint.
    pumped: Vec<u64>,
    /// Requests that are to go on by RFC 7959.
    fallen: Vec<(u64, P, Content, bool)>,
    chance: Chance,
}

impl<P: Address> Client<P> {
    pub(in crate::coap::transfer) fn new([first, second]: [u64; 2]) -> Self {
        Self {
            calls: BTreeMap::new(),
            parts: BTreeMap::new(),
            last_part: 0,
            support: BTreeMap::new(),
            timers: Timers::default(),
            pumped: Vec::new(),
            fallen: Vec::new(),
            // Not the numbers of the transfers beside it.
            chance: Chance::new([first ^ PART, second]),
        }
    }

    /// Whether a request is one that RFC 9177 is of use for, at a server that may know it.
    pub(in crate::coap::transfer) fn admits(&self, peer: P, content: &Content) -> bool {
        const NOT_WITH: [option::Number; 5] = [
            option::OBSERVE,
            option::OSCORE,
            option::NO_RESPONSE,
            option::Q_BLOCK1,
            option::Q_BLOCK2,
        ];
        let is_plain = NOT_WITH.iter().all(|number| content.first(*number).is_none());
        let (bytes, szx) = (content.payload.len(), szx_of(content));
        let is_large = bytes > 16 << szx;
        let can_be_said = u32::try_from(bytes).is_ok() && blocks_of(bytes, szx) <= MAX_NUM;
        content.code.is_request()
            && self.support.get(&peer) != Some(&false)
            && is_plain
            && can_be_said
            && (is_large || content.code.is_safe())
    }

    pub(in crate::coap::transfer) fn has(&self, request: u64) -> bool {
        self.calls.contains_key(&request)
    }

    /// Whether the peer is known to have the whole request.
    pub(in crate::coap::transfer) fn is_delivered(&self, request: u64) -> bool {
        let call = self.calls.get(&request);
        call.is_none_or(|call| matches!(call.stage, Stage::Downloading(Some(_))))
    }

    /// When there is something to do.
    pub(in crate::coap::transfer) fn wakes_at(&self) -> Option<Duration> {
        self.timers.next()
    }

    /// A request that is to go on by RFC 7959: as it was given.
    pub(in crate::coap::transfer) fn fallen(&mut self) -> Option<(u64, P, Content, bool)> {
        self.fallen.pop()
    }

    pub(in crate::coap::transfer) fn start(
        &mut self,
        now: Duration,
        (request, peer): (u64, P),
        (content, is_confirmable): (Content, bool),
        queues: &mut Queues<P>,
    ) {
        if self.calls.len() >= MAX_REQUESTS {
            return queues.outputs.push_back(Output::Failed { request, reason: Reason::Full });
        }
        let mut call = Call::new(peer, content, is_confirmable);
        if call.is_large() {
            // RFC 9177 §4.3.
            let tag = self.chance.next(For::RequestTag).to_be_bytes();
            call.template.set(option::REQUEST_TAG, &tag[..4]);
        }
        self.calls.insert(request, call);
        match self.support.get(&peer) {
            Some(_) => self.begin(now, request, queues),
            None => self.probe(request, queues),
        }
    }

    /// RFC 9177 §4.1: by a confirmable request one is sure to be told.
    fn probe(&mut self, request: u64, queues: &mut Queues<P>) {
        let mut content = Content::new(Code::GET);
        content.push(option::URI_PATH, b".well-known");
        content.push(option::URI_PATH, b"core");
        put_block(&mut content, option::Q_BLOCK2, Block { num: 0, more: false, szx: 0 });
        self.send_main(request, content, true, queues);
    }

    /// The request itself.
    fn begin(&mut self, now: Duration, request: u64, queues: &mut Queues<P>) {
        let pause = self.chance.between(NON_TIMEOUT, NON_TIMEOUT.mul_f64(1.5));
        let Some(call) = self.calls.get_mut(&request) else { return };
        (call.asked_set, call.confirmed) = (0, 0);
        // Of FETCH again too: what it asks for is in its body.
        if call.is_large() {
            call.stage = Stage::Uploading(Outgoing::new(call.total(), pause));
            return self.pump(request, queues);
        }
        let is_again = matches!(call.stage, Stage::Downloading(_));
        call.stage = Stage::Downloading(None);
        let (content, is_confirmable) = (call.whole(), call.is_confirmable && !is_again);
        self.timers.set(request, call.due_at(now));
        match is_again {
            true => self.send_part(request, content, queues),
            false => self.send_main(request, content, is_confirmable, queues),
        }
    }

    fn part_of(&mut self, request: u64) -> u64 {
        self.last_part += 1;
        self.parts.insert(self.last_part | PART, request);
        self.last_part | PART
    }

    fn send_main(
        &mut self,
        request: u64,
        content: Content,
        is_confirmable: bool,
        queues: &mut Queues<P>,
    ) {
        let part = self.part_of(request);
        let Some(call) = self.calls.get_mut(&request) else { return };
        call.main = Some(part);
        let peer = call.peer;
        queues.inputs.push_back(Input::Request { request: part, peer, content, is_confirmable });
    }

    fn send_part(&mut self, request: u64, content: Content, queues: &mut Queues<P>) {
        let part = self.part_of(request);
        let Some(call) = self.calls.get_mut(&request) else { return };
        call.parts.push_back(part);
        let peer = call.peer;
        if call.parts.len() > MAX_PARTS
            && let Some(oldest) = call.parts.pop_front()
            && self.parts.remove(&oldest).is_some()
        {
            queues.inputs.push_back(Input::Cancel { request: oldest });
        }
        queues.inputs.push_back(Input::Unpaced { request: part, peer, content });
    }

    /// Sends what may leave of a request's body.
    fn pump(&mut self, request: u64, queues: &mut Queues<P>) {
        let mut has_left = false;
        while let Some(call) = self.calls.get_mut(&request)
            && let Stage::Uploading(outgoing) = &mut call.stage
            && let Some(num) = outgoing.take()
        {
            let content = call.block(num);
            self.send_part(request, content, queues);
            has_left = true;
        }
        // Who only asks does not put off what is to leave.
        if has_left {
            self.pumped.push(request);
        }
    }

    /// What was given to the endpoint has left by `left_at`.
    pub(in crate::coap::transfer) fn rest(&mut self, left_at: Duration) {
        for request in std::mem::take(&mut self.pumped) {
            if let Some(call) = self.calls.get_mut(&request) {
                if let Stage::Uploading(outgoing) = &mut call.stage {
                    outgoing.rest(left_at);
                }
                self.timers.set(request, call.due_at(left_at));
            }
        }
    }

    /// Time has passed.
    pub(in crate::coap::transfer) fn wake(
        &mut self,
        now: Duration,
        is_delivered: impl Fn(u64) -> bool,
        queues: &mut Queues<P>,
    ) {
        while let Some(request) = self.timers.pop(now) {
            if let Some(call) = self.calls.get_mut(&request) {
                let next = call.overdue(now, &is_delivered);
                self.timers.set(request, call.due_at(now));
                if matches!(next, Next::Wait) {
                    self.timers.set(request, None);
                }
                self.follow(now, request, next, queues);
            }
        }
    }

    /// A response to one of the messages.
    pub(in crate::coap::transfer) fn answered(
        &mut self,
        now: Duration,
        part: u64,
        (content, is_last): (Content, bool),
        queues: &mut Queues<P>,
    ) {
        let Some(request) = self.parts.get(&part).copied() else { return };
        let Some(call) = self.calls.get_mut(&request) else { return };
        if is_last {
            self.parts.remove(&part);
            call.main = call.main.filter(|main| *main != part);
            call.parts.retain(|other| *other != part);
        }
        let code = content.code;
        let is_probing = matches!(call.stage, Stage::Probing);
        let next = call.take(content);
        if let (Stage::Downloading(Some(_)), false) = (&call.stage, matches!(next, Next::Ignore)) {
            self.timers.set(request, call.due_at(now));
        }
        let peer = call.peer;
        match next {
            Next::FallBack if code == Code::BAD_OPTION || !is_probing => self.note(peer, false),
            Next::Again if is_probing => self.note(peer, true),
            _ => {}
        }
        if is_probing {
            self.cancel_parts(request, queues);
        }
        self.follow(now, request, next, queues);
    }

    fn note(&mut self, peer: P, knows: bool) {
        if self.support.len() >= MAX_SUPPORT && !self.support.contains_key(&peer) {
            self.support.pop_first();
        }
        self.support.insert(peer, knows);
    }

    fn follow(&mut self, now: Duration, request: u64, next: Next, queues: &mut Queues<P>) {
        let blocks =
            |numbers: &[u32], more| self.calls.get(&request).map(|call| call.blocks(numbers, more));
        match next {
            Next::Wait | Next::Ignore => {}
            Next::Pump => self.pump(request, queues),
            Next::Ask(numbers) => {
                if let Some(content) = blocks(&numbers, false) {
                    self.send_part(request, content, queues);
                }
            }
            Next::Continue(through) => {
                if let Some(content) = blocks(&[through], true) {
                    self.send_part(request, content, queues);
                }
            }
            Next::Again => self.begin(now, request, queues),
            Next::Done(content) => {
                let output = Output::Response { request, content, is_last: true };
                self.finish(request, output, queues);
            }
            Next::Fail(reason) => self.fail(request, reason, queues),
            Next::FallBack => {
                self.cancel_parts(request, queues);
                self.timers.set(request, None);
                if let Some(call) = self.calls.remove(&request) {
                    self.fallen.push((request, call.peer, call.original, call.is_confirmable));
                }
            }
        }
    }

    /// A message came to nothing.
    pub(in crate::coap::transfer) fn failed(
        &mut self,
        (part, reason): (u64, Reason),
        now: Duration,
        queues: &mut Queues<P>,
    ) {
        let Some(request) = self.parts.remove(&part) else { return };
        let Some(call) = self.calls.get_mut(&request) else { return };
        call.parts.retain(|other| *other != part);
        if call.main == Some(part) {
            call.main = None;
            // Others may still be answered.
            if matches!(call.stage, Stage::Downloading(Some(_))) {
                return;
            }
            let is_refused = matches!(call.stage, Stage::Probing) && reason == Reason::Reset;
            let next = if is_refused { Next::FallBack } else { Next::Fail(reason) };
            return self.follow(now, request, next, queues);
        }
        // A server that has no use for blocks says so of each.
        if reason == Reason::Reset && matches!(call.stage, Stage::Uploading(_)) {
            self.fail(request, reason, queues);
        }
    }

    /// What the server knows may be another by now.
    fn fail(&mut self, request: u64, reason: Reason, queues: &mut Queues<P>) {
        if let Some(call) = self.calls.get(&request) {
            self.support.remove(&call.peer);
        }
        self.finish(request, Output::Failed { request, reason }, queues);
    }

    fn finish(&mut self, request: u64, output: Output<P>, queues: &mut Queues<P>) {
        self.cancel(request, queues);
        queues.outputs.push_back(output);
    }

    pub(in crate::coap::transfer) fn cancel(&mut self, request: u64, queues: &mut Queues<P>) {
        self.cancel_parts(request, queues);
        self.timers.set(request, None);
        self.calls.remove(&request);
    }

    fn cancel_parts(&mut self, request: u64, queues: &mut Queues<P>) {
        let Some(call) = self.calls.get_mut(&request) else { return };
        for part in call.main.take().into_iter().chain(call.parts.drain(..)) {
            if self.parts.remove(&part).is_some() {
                queues.inputs.push_back(Input::Cancel { request: part });
            }
        }
    }
}
