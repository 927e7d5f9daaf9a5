//! The gateway's resource that transactions of CoAP are requests of.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::coap::{Code, Content, format, option};

/// The first segment of its path: in few bytes, as each request has it.
const SEGMENT: &[u8] = b"lw";

/// Which transaction has which resource: the first its plain one.
#[derive(Debug, Default)]
pub(super) struct Resources(BTreeMap<u64, u64>);

impl Resources {
    /// The request of a transaction that begins.
    pub(super) fn request(&mut self, number: u64, payload: Bytes) -> Content {
        let free = (0..).find(|one| !self.0.values().any(|taken| taken == one)).unwrap_or(0);
        self.0.insert(number, free);
        let request = Content::new(Code::POST).with(option::URI_PATH, SEGMENT);
        let request = match free {
            0 => request,
            _ => request.with(option::URI_PATH, free.to_string().as_bytes()),
        };
        with_payload(request, payload)
    }

    /// A transaction is over.
    pub(super) fn end(&mut self, number: u64) {
        self.0.remove(&number);
    }
}

/// What a request of a peer brings; `None` for one of anything else.
pub(super) fn payload_of(request: &Content) -> Option<Bytes> {
    let is_ours = request.code == Code::POST && request.first(option::URI_PATH) == Some(SEGMENT);
    is_ours.then(|| request.payload.clone())
}

/// The response that answers (RFC 7252 §5.8.2).
pub(super) fn answer(payload: Bytes) -> Content {
    with_payload(Content::new(Code::CHANGED), payload)
}

fn with_payload(content: Content, payload: Bytes) -> Content {
    match payload.is_empty() {
        true => content,
        false => content
            .with_uint(option::CONTENT_FORMAT, format::OCTET_STREAM.into())
            .with_payload(payload),
    }
}
