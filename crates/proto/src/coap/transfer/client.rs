//! Requests of this side with whole bodies, and with bodies that are never here as a whole.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::call::{Call, Next, Phase};
use super::flowing::Opening;
use super::{Medium, Queues};
use crate::coap::chance::{Chance, For};
use crate::coap::machine::{Address, Flow, Input, MAX_REQUESTS, Of, Output, Reason};
use crate::coap::{Code, Content, key_of, option};

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

    /// Bytes of bodies that are kept.
    pub(in crate::coap) fn held_bytes(&self) -> usize {
        self.calls.values().map(Call::held_bytes).sum()
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

    /// A request whose bodies are never here as a whole.
    pub(in crate::coap) fn open(
        &mut self,
        request: u64,
        peer: P,
        (content, is_confirmable): (Content, bool),
        opening: Opening,
        queues: &mut Queues<P>,
    ) {
        if !self.admits(request, queues) {
            return;
        }
        if content.first(option::OBSERVE).is_some() {
            let failed = Output::Failed { request, reason: Reason::Misuse };
            return queues.outputs.push_back(failed);
        }
        let mut call = Call::opened((peer, self.medium), content, is_confirmable, opening);
        // RFC 9175 §3.5.2: nor is one that fetches the same taken for this one.
        if self.is_asked(peer, &call.template) {
            let tag = self.request_tag();
            call.template.push(option::REQUEST_TAG, &tag);
        }
        self.begin(request, call, queues);
    }

    /// Whether a request that is open has the same key at this peer.
    fn is_asked(&self, peer: P, content: &Content) -> bool {
        let key = key_of(content);
        let is_like = |call: &Call<P>| call.peer == peer && call.template.code == content.code;
        self.calls.values().any(|call| is_like(call) && key_of(&call.template) == key)
    }

    fn request_tag(&mut self) -> [u8; 4] {
        let [a, b, c, d, ..] = self.chance.next(For::RequestTag).to_be_bytes();
        [a, b, c, d]
    }

    /// A step of a body of a request of this side, or of its answer.
    pub(in crate::coap) fn flow(&mut self, flow: Flow, queues: &mut Queues<P>) {
        match flow {
            Flow::Part { of: Of::Request(request), bytes, is_last } => {
                let Some(call) = self.calls.get_mut(&request) else { return };
                if !call.give(&bytes, is_last) {
                    let failed = Output::Failed { request, reason: Reason::Misuse };
                    return self.finish(request, failed, queues);
                }
                if call.current.is_none() {
                    self.send(request, queues);
                }
            }
            Flow::Room { of: Of::Request(request), bytes } => {
                let flowing = self.calls.get_mut(&request).and_then(|call| call.flowing.as_mut());
                if flowing.is_some_and(|flowing| flowing.grew(bytes)) {
                    self.send(request, queues);
                }
            }
            Flow::Broken { of: Of::Request(request) } => self.cancel(request, queues),
            // Of others' requests another part knows.
            Flow::Part { .. } | Flow::Room { .. } | Flow::Broken { .. } => {}
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
            let mut call = Call::new(peer, self.medium, content, false);
            call.is_unpaced = true;
            self.begin(request, call, queues);
        }
    }

    fn begin(&mut self, request: u64, call: Call<P>, queues: &mut Queues<P>) {
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
        let Some(call) = self.calls.get_mut(&request) else { return };
        if let Some(bytes) = call.wants() {
            let room = Flow::Room { of: Of::Request(request), bytes };
            queues.outputs.push_back(Output::Flow(room));
        }
        if call.is_lacking() {
            return;
        }
        // RFC 9175 §3.4: blocks of bodies that go side by side are told apart.
        let is_tagged = call.template.first(option::REQUEST_TAG).is_some();
        if matches!(call.phase, Phase::Upload(_)) && !is_tagged {
            let tag = self.request_tag();
            if let Some(call) = self.calls.get_mut(&request) {
                call.template.push(option::REQUEST_TAG, &tag);
            }
        }
        let Some(call) = self.calls.get_mut(&request) else { return };
        let (peer, is_confirmable) = (call.peer, call.is_confirmable);
        let is_unpaced = call.is_unpaced && call.phase == Phase::Whole;
        let Some(content) = call.message() else {
            let is_flowing = call.flowing.is_some();
            let reason = if is_flowing { Reason::TooLarge } else { Reason::Misuse };
            return self.finish(request, Output::Failed { request, reason }, queues);
        };
        self.last_part += 1;
        let part = self.last_part;
        call.current = Some(part);
        // Notifications come through the message that asks for them.
        if content.uint(option::OBSERVE) == Some(0) {
            call.observing = Some(part);
        }
        self.parts.insert(part, request);
        queues.inputs.push_back(match is_unpaced {
            true => Input::Unpaced { request: part, peer, content },
            false => Input::Request { request: part, peer, content, is_confirmable },
        });
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
            Next::Part { head, bytes, is_last } => {
                self.part(request, (head, bytes, is_last), queues);
            }
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

    /// Gives out a part of a body, and asks for the next if there is room for one.
    fn part(
        &mut self,
        request: u64,
        (head, bytes, is_last): (Option<Content>, Bytes, bool),
        queues: &mut Queues<P>,
    ) {
        let len = bytes.len();
        let output = match head {
            Some(head) => Output::Response { request, content: head.with_payload(bytes), is_last },
            None => Output::Flow(Flow::Part { of: Of::Request(request), bytes, is_last }),
        };
        if is_last {
            return self.finish(request, output, queues);
        }
        queues.outputs.push_back(output);
        let flowing = self.calls.get_mut(&request).and_then(|call| call.flowing.as_mut());
        if flowing.is_some_and(|flowing| flowing.gave(len)) {
            self.send(request, queues);
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
