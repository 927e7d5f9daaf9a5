//! Bodies that are never here as a whole: a request's, whose bytes go on as blocks are wanted, and
//! an answer's, whose next block is asked for when the last has been taken (RFC 7959).

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use proto::coap::{Content, MAX_BODY_BYTES};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::cache::{Cache, Key, Mark, Use};
use crate::clock::{Side, Stalled};
use crate::coap::caller::{Call, Caller, Event, ROOM_BYTES};
use crate::coap::shares::SharePlace;
use crate::flow::{AnyBody, BoxError};

/// A confirmable message that nobody acknowledges is given up by then (RFC 7252 §4.8.2).
const MAX_TRANSMIT_WAIT: Duration = Duration::from_secs(93);

/// A request's body: its beginning, which may be sent to another address of the server as long as
/// nothing behind it was, and the rest.
pub(super) struct Upload {
    pub(super) first: Bytes,
    /// Bytes of the answer that there is room for at first.
    pub(super) answer_bytes: usize,
    rest: Option<AnyBody>,
    /// Of the rest, what came and was not wanted yet.
    left: Bytes,
    /// Whether something behind the beginning was read.
    is_touched: bool,
    has_ended: bool,
    _held: OwnedSemaphorePermit,
}

impl Upload {
    /// Of a body that goes on with `rest`, if it does.
    pub(super) fn new(first: Bytes, rest: Option<AnyBody>, held: OwnedSemaphorePermit) -> Self {
        let has_ended = rest.is_none();
        let (left, answer_bytes) = (Bytes::new(), ROOM_BYTES);
        Self { first, answer_bytes, rest, left, is_touched: false, has_ended, _held: held }
    }

    /// Whether the body goes on behind its beginning.
    pub(super) fn has_more(&self) -> bool {
        self.rest.is_some()
    }

    /// How long the body is, where that is known (RFC 9110 §8.6) and no option is too short for it.
    pub(super) fn size_bytes(&self) -> Option<u32> {
        let rest = self.rest.as_ref()?.size_hint().exact()?;
        let first = u64::try_from(self.first.len()).ok()?;
        u32::try_from(first.checked_add(rest)?).ok()
    }

    /// Whether all was given out.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether it can be sent once more.
    pub(super) fn is_repeatable(&self) -> bool {
        !self.is_touched
    }

    /// At most so many bytes of what follows, and whether the body ends behind them. Dropped before
    /// it is ready, it has lost nothing.
    pub(super) async fn next(&mut self, most: usize) -> Result<(Bytes, bool), BoxError> {
        self.is_touched = true;
        while self.left.is_empty() {
            let Some(body) = &mut self.rest else {
                self.has_ended = true;
                return Ok((Bytes::new(), true));
            };
            match body.frame().await {
                None => self.rest = None,
                Some(frame) => self.left = frame?.into_data().unwrap_or_default(),
            }
        }
        Ok((self.left.split_to(most.min(self.left.len())), false))
    }
}

/// What is gathered of an answer to be kept, once it is whole.
pub(super) struct Gathering {
    pub(super) cache: Arc<Mutex<Cache>>,
    pub(super) asked: Mark,
    pub(super) key: Key,
    pub(super) usage: Use,
    pub(super) head: Content,
    pub(super) bytes: BytesMut,
    pub(super) most: usize,
    pub(super) room: Arc<Semaphore>,
    pub(super) held: Option<OwnedSemaphorePermit>,
}

impl Gathering {
    /// With more of the answer; `None` where that is more than there is room for.
    fn with(mut self, bytes: &Bytes) -> Option<Self> {
        if self.bytes.len() + bytes.len() > self.most.min(MAX_BODY_BYTES) {
            return None;
        }
        let count = u32::try_from(bytes.len()).ok()?;
        let more = Arc::clone(&self.room).try_acquire_many_owned(count).ok()?;
        match &mut self.held {
            Some(held) => held.merge(more),
            None => self.held = Some(more),
        }
        self.bytes.extend_from_slice(bytes);
        Some(self)
    }

    fn keep(self) {
        let Self { cache, asked, key, usage, head, bytes, .. } = self;
        let answer = head.with_payload(bytes.freeze());
        let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
        // What is kept answers later requests.
        let _ = cache.update(asked, key, usage, &answer);
    }
}

/// Where an answer comes from, and what it holds meanwhile.
pub(super) struct Source {
    call: Call,
    /// How long the server may be silent.
    patience: Duration,
    _held: Held,
}

/// The socket of a server, a place among its requests, and room for what is not taken.
type Held = (Arc<Caller>, SharePlace, OwnedSemaphorePermit);

impl Source {
    pub(super) fn new(call: Call, patience: Duration, held: Held) -> Self {
        // By then the machine has said that a message was not acknowledged.
        let patience = patience.max(MAX_TRANSMIT_WAIT);
        Self { call, patience, _held: held }
    }

    /// What comes next. Blocks to others of the same server are a sign of life: each waits for its
    /// turn.
    async fn next(&mut self) -> Result<Option<Event>, Stalled> {
        let silent = self.call.silence(self.patience);
        tokio::select! {
            event = self.call.next() => Ok(event),
            () = silent => Err(Stalled::new(Side::Origin, self.patience)),
        }
    }
}

type Next = Pin<Box<dyn Future<Output = (Source, Result<Option<Event>, Stalled>)> + Send>>;

/// An answer's body.
pub(super) struct Download {
    first: Option<Bytes>,
    next: Option<Next>,
    gathering: Option<Gathering>,
}

impl Download {
    /// From its first part on.
    pub(super) fn begin(first: Bytes, source: Source, gathering: Option<Gathering>) -> Self {
        let gathering = gathering.and_then(|gathering| gathering.with(&first));
        Self { first: Some(first), next: Some(Box::pin(after(source))), gathering }
    }

    fn came(&mut self, bytes: &Bytes, is_last: bool) {
        self.gathering = self.gathering.take().and_then(|gathering| gathering.with(bytes));
        if is_last && let Some(gathering) = self.gathering.take() {
            gathering.keep();
        }
    }
}

async fn after(mut source: Source) -> (Source, Result<Option<Event>, Stalled>) {
    let event = source.next().await;
    (source, event)
}

impl Body for Download {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        let Some(next) = &mut self.next else { return Poll::Ready(None) };
        let (source, event) = ready!(next.as_mut().poll(cx));
        self.next = None;
        let why = match event {
            Err(stalled) => return Poll::Ready(Some(Err(stalled.into()))),
            Ok(Some(Event::Part(bytes, is_last))) => {
                self.came(&bytes, is_last);
                if !is_last {
                    self.next = Some(Box::pin(after(source)));
                } else if bytes.is_empty() {
                    return Poll::Ready(None);
                }
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            Ok(Some(Event::Failed(failure))) => failure.why(),
            Ok(Some(Event::Response(..) | Event::Alive | Event::Room(_)) | None) => {
                "its socket is closed".to_owned()
            }
        };
        Poll::Ready(Some(Err(format!("the answer broke off: {why}").into())))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.next.is_none()
    }
}
