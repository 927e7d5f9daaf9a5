//! Requests of this side with whole bodies.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{Medium, Queues};
use crate::coap::chance::{Chance, For};
use crate::coap::machine::{Address, Input, MAX_REQUESTS, Output, Reason};
use crate::coap::{
    Assembly, BERT, Block, Code, Content, MAX_BODY_BYTES, Refusal, option, slice_within,
};

/// Times that a body is begun anew because the peer lost what it had, or has another by now.
pub const MAX_RESTARTS: u8 = 3;

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The request as a whole.
    Whole,
    /// The block of the request's body that begins here.
    Upload(usize),
    /// The block of the response's body that begins here.
    Download(usize),
}

/// What follows a response to one of a call's messages.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Send,
    Done(Content),
    Fail(Reason),
}

#[derive(Debug)]
struct Call<P> {
    peer: P,
    medium: Medium,
    /// The request without a body that goes in blocks.
    template: Content,
    body: Bytes,
    is_confirmable: bool,
    /// Whether it leaves at once, where it goes as a whole.
    is_unpaced: bool,
    phase: Phase,
    /// Of the request's blocks, and of the response's.
    upload_szx: u8,
    download_szx: u8,
    /// The response without its body, while that comes.
    first: Content,
    download: Assembly,
    restarts: u8,
    /// The endpoint's request through which notifications come.
    observing: Option<u64>,
    /// The one whose response is next.
    current: Option<u64>,
}

impl<P: Address> Call<P> {
    /// A block option of the caller's says how large blocks are to be (RFC 7959 §2.3, §2.4).
    fn new(peer: P, medium: Medium, mut content: Content, is_confirmable: bool) -> Self {
        let (most, room) = (medium.szx(&content), medium.room(&content));
        let asked_szx = |number| {
            let asked = content.first(number).and_then(|value| Block::decode(value, true).ok());
            asked.map(|block| block.szx.min(most))
        };
        let (upload, download) = (asked_szx(option::BLOCK1), asked_szx(option::BLOCK2));
        content.remove(option::BLOCK1);
        let block = |szx| Block { num: 0, more: false, szx };
        let is_large = content.payload.len()
            > upload.filter(|szx| *szx < BERT).map_or(room, |szx| block(szx).size_bytes());
        let (upload_szx, download_szx) = (upload.unwrap_or(most), download.unwrap_or(most));
        let body = if is_large { std::mem::take(&mut content.payload) } else { Bytes::new() };
        Self {
            peer,
            medium,
            template: content,
            phase: if is_large { Phase::Upload(0) } else { Phase::Whole },
            body,
            is_confirmable,
            is_unpaced: false,
            upload_szx,
            download_szx,
            first: Content::new(Code::EMPTY),
            download: Assembly::new(MAX_BODY_BYTES),
            restarts: 0,
            observing: None,
            current: None,
        }
    }

    /// The block of the request's body that begins at `offset`, with its bytes.
    fn upload(&self, offset: usize) -> Option<(Block, Bytes)> {
        let block = block_at(offset, self.upload_szx)?;
        slice_within(&self.body, block, self.medium.room(&self.template))
    }

    /// The next message; `None` where no block option can say which.
    fn message(&self) -> Option<Content> {
        let mut content = self.template.clone();
        match self.phase {
            Phase::Whole => {}
            Phase::Upload(offset) => {
                let (block, bytes) = self.upload(offset)?;
                content.set(option::BLOCK1, block.encode().ok()?.as_slice());
                if offset == 0 {
                    content.push_uint(option::SIZE1, u32::try_from(self.body.len()).ok()?);
                }
                if block.more {
                    content.remove(option::OBSERVE);
                    content.remove(option::BLOCK2);
                }
                content.payload = bytes;
            }
            Phase::Download(offset) => {
                let block = block_at(offset, self.download_szx)?;
                content.set(option::BLOCK2, block.encode().ok()?.as_slice());
                content.remove(option::OBSERVE);
                // RFC 8132 §2.1: what FETCH asks for is in its body.
                if content.code != Code::FETCH {
                    content.payload = Bytes::new();
                }
            }
        }
        Some(content)
    }

    /// Begins anew, if that does no harm and has not been done too often.
    fn restart(&mut self, otherwise: Next) -> Next {
        let is_harmless = self.template.code.is_safe() || matches!(self.phase, Phase::Upload(_));
        if !is_harmless || self.restarts >= MAX_RESTARTS {
            return otherwise;
        }
        self.restarts += 1;
        // While it observes, only what it observes is asked for again.
        self.phase = match (self.observing, self.body.is_empty()) {
            (Some(_), _) => Phase::Download(0),
            (None, true) => Phase::Whole,
            (None, false) => Phase::Upload(0),
        };
        Next::Send
    }

    fn take(&mut self, content: Content, is_notification: bool) -> Next {
        match self.phase {
            Phase::Upload(offset) => self.uploaded(offset, content),
            _ => self.downloaded(content, is_notification),
        }
    }

    /// A response to a block of the request's body.
    fn uploaded(&mut self, offset: usize, content: Content) -> Next {
        let Some((sent, bytes)) = self.upload(offset) else { return Next::Fail(Reason::Misuse) };
        let allows_bert = self.medium.allows_bert();
        let value = content.first(option::BLOCK1).map(|value| Block::decode(value, allows_bert));
        let szx = match value {
            Some(Ok(block)) => Some(block.szx),
            Some(Err(_)) => return Next::Fail(Reason::BadAnswer),
            None => None,
        };
        match content.code {
            // RFC 7959 §2.9.3: smaller blocks may do.
            Code::REQUEST_ENTITY_TOO_LARGE if offset == 0 && szx.is_some_and(|s| s < sent.szx) => {
                self.upload_szx = szx.unwrap_or(sent.szx);
                Next::Send
            }
            // RFC 7959 §2.9.2.
            Code::REQUEST_ENTITY_INCOMPLETE => self.restart(Next::Done(content)),
            code if code.is_success() && sent.more => {
                // A final answer to a part of the body would be to another request.
                if szx.is_none() && code != Code::CONTINUE {
                    return Next::Fail(Reason::BadAnswer);
                }
                // RFC 7959 §2.3: from now on in blocks as small as the peer wants them.
                self.upload_szx = szx.unwrap_or(sent.szx).min(sent.szx);
                self.phase = Phase::Upload(offset + bytes.len());
                Next::Send
            }
            Code::CONTINUE => Next::Fail(Reason::BadAnswer),
            _ => {
                self.phase = Phase::Download(0);
                self.downloaded(content, false)
            }
        }
    }

    /// A response, or a block of one.
    fn downloaded(&mut self, content: Content, is_notification: bool) -> Next {
        let expected = match self.phase {
            Phase::Download(offset) if !is_notification => offset,
            _ => 0,
        };
        if content.code == Code::REQUEST_ENTITY_INCOMPLETE && expected > 0 {
            return self.restart(Next::Done(content));
        }
        let is_part = content.first(option::BLOCK2).filter(|_| content.code.is_success());
        let Some(value) = is_part else {
            // What was begun does not end with a body of its own.
            return match expected > 0 && content.code.is_success() {
                true => self.restart(Next::Fail(Reason::BadAnswer)),
                false => Next::Done(content),
            };
        };
        let block = match Block::decode(value, self.medium.allows_bert()) {
            Ok(block) if block.offset() == expected => block,
            _ => return Next::Fail(Reason::BadAnswer),
        };
        if expected == 0 {
            self.first = content.clone().with_payload(Bytes::new());
            self.first.remove(option::BLOCK2);
            self.first.remove(option::SIZE2);
        } else if content.code != self.first.code
            || content.first(option::ETAG) != self.first.first(option::ETAG)
        {
            // RFC 7959 §2.4: blocks of another body.
            return self.restart(Next::Fail(Reason::Changed));
        }
        match self.download.push(block, &content.payload, content.uint(option::SIZE2)) {
            Ok(true) => {
                let body = std::mem::replace(&mut self.download, Assembly::new(MAX_BODY_BYTES));
                let first = std::mem::replace(&mut self.first, Content::new(Code::EMPTY));
                Next::Done(first.with_payload(body.into_bytes()))
            }
            Ok(false) => {
                self.phase = Phase::Download(self.download.len());
                self.download_szx = block.szx;
                Next::Send
            }
            Err(Refusal::TooLarge(_)) => Next::Fail(Reason::TooLarge),
            Err(_) => Next::Fail(Reason::BadAnswer),
        }
    }
}

/// The block of this size that begins there.
fn block_at(offset: usize, szx: u8) -> Option<Block> {
    let first = Block { num: 0, more: false, szx };
    let num = u32::try_from(offset / first.size_bytes()).ok()?;
    Some(Block { num, ..first })
}

/// All requests of this side.
#[derive(Debug)]
pub(in crate::coap) struct Client<P> {
    /// By the caller's number; at most [`MAX_REQUESTS`].
    calls: BTreeMap<u64, Call<P>>,
    /// By the endpoint's number; at most two of each call.
    parts: BTreeMap<u64, u64>,
    last_part: u64,
    chance: Chance,
    medium: Medium,
}

impl<P: Address> Client<P> {
    pub(in crate::coap) fn new(seed: [u64; 2]) -> Self {
        let (chance, medium) = (Chance::new(seed), Medium::Datagram);
        Self { calls: BTreeMap::new(), parts: BTreeMap::new(), last_part: 0, chance, medium }
    }

    /// Requests that begin from now on go over this.
    pub(in crate::coap) fn set_medium(&mut self, medium: Medium) {
        self.medium = medium;
    }

    /// The endpoint's number of the message that ends a request, and is under way.
    pub(in crate::coap) fn sending(&self, request: u64) -> Option<u64> {
        let call = self.calls.get(&request)?;
        let is_last = match call.phase {
            Phase::Whole => true,
            Phase::Upload(offset) => call.upload(offset).is_some_and(|(block, _)| !block.more),
            Phase::Download(_) => false,
        };
        call.current.filter(|_| is_last)
    }

    pub(in crate::coap) fn has(&self, request: u64) -> bool {
        self.calls.contains_key(&request)
    }

    /// Whether a request goes in blocks, and not all of it is there.
    pub(in crate::coap) fn is_uploading(&self, request: u64) -> bool {
        self.calls.get(&request).is_some_and(|call| matches!(call.phase, Phase::Upload(_)))
    }

    fn part_of(&mut self, request: u64) -> u64 {
        self.last_part += 1;
        self.parts.insert(self.last_part, request);
        self.last_part
    }

    /// Whether the caller's number is new and there is room.
    fn admits(&self, request: u64, queues: &mut Queues<P>) -> bool {
        let is_new = !self.calls.contains_key(&request);
        let has_room = self.calls.len() < MAX_REQUESTS;
        if is_new && !has_room {
            queues.outputs.push_back(Output::Failed { request, reason: Reason::Full });
        }
        is_new && has_room
    }

    pub(in crate::coap) fn start(
        &mut self,
        request: u64,
        peer: P,
        content: Content,
        is_confirmable: bool,
        queues: &mut Queues<P>,
    ) {
        if self.admits(request, queues) {
            let call = Call::new(peer, self.medium, content, is_confirmable);
            self.begin(request, call, queues);
        }
    }

    /// A request that is not confirmable and waits for no other to the same peer; one whose body
    /// goes in blocks waits as any other.
    pub(in crate::coap) fn start_unpaced(
        &mut self,
        request: u64,
        peer: P,
        content: Content,
        queues: &mut Queues<P>,
    ) {
        if self.admits(request, queues) {
            let call = Call::new(peer, self.medium, content, false);
            self.begin(request, Call { is_unpaced: true, ..call }, queues);
        }
    }

    fn begin(&mut self, request: u64, mut call: Call<P>, queues: &mut Queues<P>) {
        // RFC 9175 §3.4: blocks of bodies that go side by side are told apart.
        let is_tagged = call.template.first(option::REQUEST_TAG).is_some();
        if call.phase != Phase::Whole && !is_tagged {
            let tag = self.chance.next(For::RequestTag).to_be_bytes();
            call.template.push(option::REQUEST_TAG, &tag[..4]);
        }
        self.calls.insert(request, call);
        self.send(request, queues);
    }

    pub(in crate::coap) fn ping(&mut self, request: u64, peer: P, queues: &mut Queues<P>) {
        if self.admits(request, queues) {
            let empty = Content::new(Code::EMPTY);
            self.calls.insert(request, Call::new(peer, self.medium, empty, true));
            let part = self.part_of(request);
            if let Some(call) = self.calls.get_mut(&request) {
                call.current = Some(part);
            }
            queues.inputs.push_back(Input::Ping { request: part, peer });
        }
    }

    fn send(&mut self, request: u64, queues: &mut Queues<P>) {
        let part = self.part_of(request);
        let Some(call) = self.calls.get_mut(&request) else { return };
        call.current = Some(part);
        let (peer, is_confirmable) = (call.peer, call.is_confirmable);
        let is_unpaced = call.is_unpaced && call.phase == Phase::Whole;
        match call.message() {
            Some(content) => {
                // Notifications come through the message that asks for them.
                if content.uint(option::OBSERVE) == Some(0) {
                    call.observing = Some(part);
                }
                let request = part;
                queues.inputs.push_back(match is_unpaced {
                    true => Input::Unpaced { request, peer, content },
                    false => Input::Request { request, peer, content, is_confirmable },
                });
            }
            None => {
                self.parts.remove(&part);
                self.finish(request, Output::Failed { request, reason: Reason::Misuse }, queues);
            }
        }
    }

    pub(in crate::coap) fn answered(
        &mut self,
        part: u64,
        content: Content,
        is_last: bool,
        queues: &mut Queues<P>,
    ) {
        let Some(request) = self.parts.get(&part).copied() else { return };
        let Some(call) = self.calls.get_mut(&request) else { return };
        let is_notification = call.observing == Some(part);
        if is_last {
            self.parts.remove(&part);
            call.observing = call.observing.filter(|other| *other != part);
        }
        // What is being fetched is older than this.
        if let Some(old) = call.current.take().filter(|old| *old != part) {
            self.parts.remove(&old);
            queues.inputs.push_back(Input::Cancel { request: old });
        }
        match call.take(content, is_notification) {
            Next::Send => self.send(request, queues),
            Next::Done(content) => {
                let is_last = call.observing.is_none();
                call.restarts = 0;
                let response = Output::Response { request, content, is_last };
                match is_last {
                    true => self.finish(request, response, queues),
                    false => queues.outputs.push_back(response),
                }
            }
            Next::Fail(reason) => {
                self.finish(request, Output::Failed { request, reason }, queues);
            }
        }
    }

    pub(in crate::coap) fn failed(&mut self, part: u64, reason: Reason, queues: &mut Queues<P>) {
        self.settle(part, |request| Output::Failed { request, reason }, queues);
    }

    /// What ended one of a call's messages ends the call.
    pub(in crate::coap) fn settle(
        &mut self,
        part: u64,
        output: impl FnOnce(u64) -> Output<P>,
        queues: &mut Queues<P>,
    ) {
        if let Some(request) = self.parts.remove(&part) {
            self.finish(request, output(request), queues);
        }
    }

    fn finish(&mut self, request: u64, output: Output<P>, queues: &mut Queues<P>) {
        self.cancel(request, queues);
        queues.outputs.push_back(output);
    }

    pub(in crate::coap) fn cancel(&mut self, request: u64, queues: &mut Queues<P>) {
        let Some(call) = self.calls.remove(&request) else { return };
        let observing = call.observing.filter(|part| Some(*part) != call.current);
        for part in [call.current, observing].into_iter().flatten() {
            if self.parts.remove(&part).is_some() {
                queues.inputs.push_back(Input::Cancel { request: part });
            }
        }
    }
}
