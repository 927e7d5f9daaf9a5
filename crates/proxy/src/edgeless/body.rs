//! Bodies in blocks, and bodies that a task makes.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use tokio::sync::mpsc;

use crate::flow::BoxError;

/// A block closes at this many bytes, as on the link.
pub(crate) const BLOCK_BYTES: usize = 64 * 1024;
/// A block closes after this long, so that event streams flow; as on the link.
pub(crate) const BLOCK_PAUSE: Duration = Duration::from_millis(20);
/// Coded blocks that wait for the client.
const MAX_WAITING: usize = 2;

/// A body taken in blocks.
pub(crate) struct Blocks<B> {
    body: B,
    ended: bool,
    trailers: Option<HeaderMap>,
}

/// Some of a body.
pub(crate) struct Block {
    pub(crate) bytes: Bytes,
    /// Nothing comes behind it but trailers.
    pub(crate) last: bool,
}

impl<B> Blocks<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    pub(crate) fn new(body: B) -> Self {
        let ended = body.is_end_stream();
        Self { body, ended, trailers: None }
    }

    /// What comes at first, if only nothing: the head of the answer can wait no longer.
    pub(crate) async fn first(&mut self) -> Result<Block, BoxError> {
        self.until(Some(Instant::now() + BLOCK_PAUSE)).await
    }

    /// What comes next: at least a byte, or the end.
    pub(crate) async fn next(&mut self) -> Result<Block, BoxError> {
        self.until(None).await
    }

    async fn until(&mut self, mut due: Option<Instant>) -> Result<Block, BoxError> {
        let mut bytes = BytesMut::new();
        while !self.ended && bytes.len() < BLOCK_BYTES {
            let frame = match due {
                None => self.body.frame().await,
                Some(due) => match tokio::time::timeout_at(due.into(), self.body.frame()).await {
                    Ok(frame) => frame,
                    Err(_) => break,
                },
            };
            due = due.or_else(|| Some(Instant::now() + BLOCK_PAUSE));
            match frame.transpose().map_err(Into::into)?.map(Frame::into_data) {
                None => self.ended = true,
                Some(Ok(data)) => bytes.extend_from_slice(&data),
                Some(Err(frame)) => {
                    self.trailers = frame.into_trailers().ok();
                    self.ended = true;
                }
            }
            self.ended |= self.body.is_end_stream();
        }
        Ok(Block { bytes: bytes.freeze(), last: self.ended })
    }

    /// Whether trailers came behind the last block.
    pub(crate) fn has_trailers(&self) -> bool {
        self.trailers.is_some()
    }

    /// Trailers, once the last block is there.
    pub(crate) fn trailers(&mut self) -> Option<HeaderMap> {
        self.trailers.take()
    }

    /// The body again, with `first` that was taken of it in front.
    pub(crate) fn put_back(self, first: Bytes) -> Rejoined<B> {
        let first = (!first.is_empty()).then_some(first);
        Rejoined { first, blocks: self }
    }
}

/// A body of which something was taken and put back.
pub(crate) struct Rejoined<B> {
    first: Option<Bytes>,
    blocks: Blocks<B>,
}

impl<B> Body for Rejoined<B>
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
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if self.blocks.ended {
            return Poll::Ready(
                self.blocks.trailers().map(|trailers| Ok(Frame::trailers(trailers))),
            );
        }
        let frame = ready!(Pin::new(&mut self.blocks.body).poll_frame(cx));
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        let Blocks { body, ended, trailers } = &self.blocks;
        self.first.is_none() && trailers.is_none() && (*ended || body.is_end_stream())
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
