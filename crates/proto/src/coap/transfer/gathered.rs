//! Answers that go by RFC 9177, whose sets of blocks are made of whole bodies, though their
//! application gives them as they come.

use std::collections::BTreeMap;

use bytes::BytesMut;

use super::Queues;
use crate::coap::machine::{Flow, Of, Output};
use crate::coap::{Code, Content, MAX_BODY_BYTES, option};

/// Most of them at once, each of at most [`MAX_BODY_BYTES`].
const MAX_GATHERED: usize = 32;
/// After so many seconds there may be room for one more.
const RETRY_AFTER_S: u32 = 2;

/// By the number of the request; at most [`MAX_GATHERED`].
#[derive(Debug, Default)]
pub(super) struct Gathered(BTreeMap<u64, (Content, BytesMut)>);

impl Gathered {
    pub(super) fn has(&self, exchange: u64) -> bool {
        self.0.contains_key(&exchange)
    }

    /// The answer to a request, with the beginning of its body; what is answered where there is no
    /// room for it.
    pub(super) fn begin<P>(
        &mut self,
        exchange: u64,
        content: Content,
        queues: &mut Queues<P>,
    ) -> Option<Content> {
        let of = Of::Exchange(exchange);
        let room = MAX_BODY_BYTES.saturating_sub(content.payload.len());
        if self.0.len() >= MAX_GATHERED || room == 0 {
            queues.outputs.push_back(Output::Flow(Flow::Broken { of }));
            let full = Content::new(Code::SERVICE_UNAVAILABLE);
            return Some(full.with_uint(option::MAX_AGE, RETRY_AFTER_S));
        }
        let bytes = BytesMut::from(&content.payload[..]);
        self.0.insert(exchange, (content, bytes));
        queues.outputs.push_back(Output::Flow(Flow::Room { of, bytes: room }));
        None
    }

    /// A step of a body; what is to be answered, if all of it is known.
    pub(super) fn flow<P>(
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
        let (_, gathered) = self.0.get_mut(&exchange)?;
        gathered.extend_from_slice(&bytes);
        let is_full = gathered.len() >= MAX_BODY_BYTES && !is_last;
        if !is_last && !is_full {
            return None;
        }
        let (content, gathered) = self.0.remove(&exchange)?;
        if is_full {
            let broken = Flow::Broken { of: Of::Exchange(exchange) };
            queues.outputs.push_back(Output::Flow(broken));
            return Some(Content::new(Code::INTERNAL_SERVER_ERROR));
        }
        Some(content.with_payload(gathered.freeze()))
    }
}
