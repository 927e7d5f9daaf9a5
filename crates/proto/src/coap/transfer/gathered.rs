//! Answers that go by RFC 9177, whose sets of blocks are made of whole bodies, though their
//! application gives them as they come.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::BytesMut;

use super::Queues;
use crate::coap::machine::{Address, Flow, Of, Output};
use crate::coap::{Code, Content, MAX_BODY_BYTES, option};

/// Most of them at once, each of at most [`MAX_BODY_BYTES`].
const MAX_GATHERED: usize = 32;
/// Those of one peer.
const MAX_GATHERED_PER_PEER: usize = 4;
/// One that has had so long gives its place to a newcomer where all are taken, so that what
/// trickles keeps nobody out.
const MIN_TIME: Duration = Duration::from_secs(10);
/// After so many seconds there may be room for one more.
const RETRY_AFTER_S: u32 = 2;

#[derive(Debug)]
struct Body<P> {
    peer: P,
    begun_at: Duration,
    head: Content,
    bytes: BytesMut,
}

/// By the number of the request; at most [`MAX_GATHERED`], each while its request is open.
#[derive(Debug)]
pub(super) struct Gathered<P>(BTreeMap<u64, Body<P>>);

impl<P> Default for Gathered<P> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<P: Address> Gathered<P> {
    pub(super) fn has(&self, exchange: u64) -> bool {
        self.0.contains_key(&exchange)
    }

    /// The answer to a peer's request, with the beginning of its body. Returned is the request that
    /// is answered instead, with what, where there is no room for both.
    pub(super) fn begin(
        &mut self,
        now: Duration,
        (exchange, peer): (u64, P),
        mut content: Content,
        queues: &mut Queues<P>,
    ) -> Option<(u64, Content)> {
        // One byte more, so that what is too long shows.
        let room = (MAX_BODY_BYTES + 1).saturating_sub(content.payload.len());
        if room == 0 {
            say_broken(exchange, queues);
            return Some((exchange, Content::new(Code::INTERNAL_SERVER_ERROR)));
        }
        let full = Content::new(Code::SERVICE_UNAVAILABLE);
        let full = full.with_uint(option::MAX_AGE, RETRY_AFTER_S);
        let of_peer = self.0.values().filter(|body| body.peer == peer).count();
        let oldest = self.0.iter().min_by_key(|(_, body)| body.begun_at);
        let oldest = oldest.filter(|(_, body)| body.begun_at + MIN_TIME <= now);
        let out = match oldest.map(|(other, _)| *other) {
            _ if of_peer >= MAX_GATHERED_PER_PEER => Some(exchange),
            _ if self.0.len() < MAX_GATHERED => None,
            Some(other) => Some(other),
            None => Some(exchange),
        };
        if let Some(out) = out {
            self.0.remove(&out);
            say_broken(out, queues);
        }
        if out != Some(exchange) {
            let bytes = BytesMut::from(&std::mem::take(&mut content.payload)[..]);
            self.0.insert(exchange, Body { peer, begun_at: now, head: content, bytes });
            let room = Flow::Room { of: Of::Exchange(exchange), bytes: room };
            queues.outputs.push_back(Output::Flow(room));
        }
        out.map(|out| (out, full))
    }

    /// A step of a body; what is to be answered, if all of it is known.
    pub(super) fn flow(
        &mut self,
        exchange: u64,
        flow: Flow,
        queues: &mut Queues<P>,
    ) -> Option<Content> {
        let (bytes, is_last) = match flow {
            Flow::Part { bytes, is_last, .. } => (bytes, is_last),
            Flow::Room { .. } => return None,
            Flow::Broken { .. } => {
                self.0.remove(&exchange)?;
                return Some(Content::new(Code::INTERNAL_SERVER_ERROR));
            }
        };
        let body = self.0.get_mut(&exchange)?;
        body.bytes.extend_from_slice(&bytes);
        let is_too_long = body.bytes.len() > MAX_BODY_BYTES;
        if !is_last && !is_too_long {
            return None;
        }
        let Body { head, bytes, .. } = self.0.remove(&exchange)?;
        if is_too_long {
            if !is_last {
                say_broken(exchange, queues);
            }
            return Some(Content::new(Code::INTERNAL_SERVER_ERROR));
        }
        Some(head.with_payload(bytes.freeze()))
    }

    /// Forgets those whose requests the endpoint has given up.
    pub(super) fn expire(&mut self, is_open: impl Fn(u64) -> bool, queues: &mut Queues<P>) {
        for (exchange, _) in self.0.extract_if(.., |exchange, _| !is_open(*exchange)) {
            say_broken(exchange, queues);
        }
    }
}

/// The application's body is of no use any more.
fn say_broken<P>(exchange: u64, queues: &mut Queues<P>) {
    let broken = Flow::Broken { of: Of::Exchange(exchange) };
    queues.outputs.push_back(Output::Flow(broken));
}
