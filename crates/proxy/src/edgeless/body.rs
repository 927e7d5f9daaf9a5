//! Bodies that are handed on as they come, and bodies that a task makes.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use tokio::sync::mpsc;

use crate::flow::BoxError;

/// Content at most that is offered as a dictionary, in bytes: as a block of the link.
pub(crate) const MAX_WHOLE_BYTES: usize = 64 * 1024;
/// What of a body may be with the machine and not yet with the client, in bytes.
const MAX_AHEAD_BYTES: usize = 2 * 64 * 1024;
/// Coded blocks that wait for the client.
const MAX_WAITING: usize = 2;

/// A body that is handed to the machine as fast as the client takes what comes of it.
pub(crate) struct Content<B> {
    body: B,
    /// All that was taken, until it is known that the body goes as it is, or not.
    taken: Option<VecDeque<Bytes>>,
    ahead_bytes: usize,
    ended: bool,
    trailers: Option<HeaderMap>,
}

impl<B> Content<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    pub(crate) fn new(body: B) -> Self {
        let ended = body.is_end_stream();
        Self { body, taken: Some(VecDeque::new()), ahead_bytes: 0, ended, trailers: None }
    }

    /// More of it may be taken.
    pub(crate) fn may_take(&self) -> bool {
        !self.ended && self.ahead_bytes < MAX_AHEAD_BYTES
    }

    /// What comes next, perhaps nothing; to be asked again if it is not waited for.
    pub(crate) async fn take(&mut self) -> Result<Bytes, BoxError> {
        let frame = self.body.frame().await;
        let bytes = match frame.transpose().map_err(Into::into)?.map(Frame::into_data) {
            None => {
                self.ended = true;
                Bytes::new()
            }
            Some(Ok(data)) => data,
            Some(Err(frame)) => {
                self.trailers = frame.into_trailers().ok();
                self.ended = true;
                Bytes::new()
            }
        };
        self.ended |= self.body.is_end_stream();
        self.ahead_bytes += bytes.len();
        if let Some(taken) = self.taken.as_mut().filter(|_| !bytes.is_empty()) {
            taken.push_back(bytes.clone());
        }
        Ok(bytes)
    }

    /// So many bytes of it went to the client.
    pub(crate) fn gone(&mut self, bytes: usize) {
        self.ahead_bytes = self.ahead_bytes.saturating_sub(bytes);
    }

    /// It goes coded: what was taken need not be held.
    pub(crate) fn let_go(&mut self) {
        self.taken = None;
    }

    /// Nothing comes any more but trailers.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended
    }

    /// All of it, where that is here, is short and has no trailers.
    pub(crate) fn whole(&self) -> Option<Bytes> {
        let taken = self.taken.as_ref().filter(|_| self.ended && self.trailers.is_none())?;
        let bytes: usize = taken.iter().map(Bytes::len).sum();
        match taken.front() {
            _ if bytes > MAX_WHOLE_BYTES => None,
            Some(only) if taken.len() == 1 => Some(only.clone()),
            _ => Some(taken.iter().flatten().copied().collect::<Vec<_>>().into()),
        }
    }

    /// Whether trailers came behind it.
    pub(crate) fn has_trailers(&self) -> bool {
        self.trailers.is_some()
    }

    /// Trailers, once it has ended.
    pub(crate) fn trailers(&mut self) -> Option<HeaderMap> {
        self.trailers.take()
    }
}

/// As it is: what was taken, and what comes behind it.
impl<B> Body for Content<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(first) = self.taken.as_mut().and_then(VecDeque::pop_front) {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if self.ended {
            return Poll::Ready(self.trailers().map(|trailers| Ok(Frame::trailers(trailers))));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        let has_taken = self.taken.as_ref().is_some_and(|taken| !taken.is_empty());
        !has_taken && self.trailers.is_none() && (self.ended || self.body.is_end_stream())
    }
}

/// Makes a [`Piped`]; dropped before [`Pipe::end`], it breaks the body off.
pub(crate) struct Pipe {
    sender: mpsc::Sender<Option<Result<Frame<Bytes>, BoxError>>>,
}

impl Pipe {
    /// Waits while the client does not take what is there; false once it has gone.
    pub(crate) async fn send(&self, frame: Frame<Bytes>) -> bool {
        self.sender.send(Some(Ok(frame))).await.is_ok()
    }

    /// Breaks the body off.
    pub(crate) async fn fail(self, error: BoxError) {
        // A client that has gone need not be told.
        let _ = self.sender.send(Some(Err(error))).await;
    }

    /// Ends the body.
    pub(crate) async fn end(self) {
        let _ = self.sender.send(None).await;
    }

    /// Resolves when the client has gone.
    pub(crate) async fn gone(&self) {
        self.sender.closed().await;
    }
}

/// A body that a task makes.
pub(crate) struct Piped {
    receiver: mpsc::Receiver<Option<Result<Frame<Bytes>, BoxError>>>,
    ended: bool,
}

/// Both ends.
pub(crate) fn pipe() -> (Pipe, Piped) {
    let (sender, receiver) = mpsc::channel(MAX_WAITING);
    (Pipe { sender }, Piped { receiver, ended: false })
}

impl Body for Piped {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        match ready!(self.receiver.poll_recv(cx)) {
            Some(Some(Ok(frame))) => Poll::Ready(Some(Ok(frame))),
            Some(None) => {
                self.ended = true;
                Poll::Ready(None)
            }
            broken => {
                self.ended = true;
                let lost = || "what encodes the answer has stopped".into();
                Poll::Ready(Some(Err(broken.flatten().and_then(Result::err).unwrap_or_else(lost))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}
