//! Bodies and streams that count what passes, and hold the exchange's line back until they have
//! ended.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Access;

/// A body from or to the client.
pub(crate) struct Counted<B> {
    inner: B,
    access: Option<Access>,
    towards_client: bool,
    ended: bool,
}

impl<B: Body> Counted<B> {
    /// The body of a request.
    pub(crate) fn request(inner: B, access: Option<Access>) -> Self {
        Self { inner, access, towards_client: false, ended: true }
    }

    /// The body of an answer.
    pub(crate) fn answer(inner: B, access: Option<Access>) -> Self {
        let ended = inner.is_end_stream();
        Self { inner, access, towards_client: true, ended }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Counted<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        match (&frame, &self.access) {
            (None | Some(Err(_)), _) => self.ended = true,
            (Some(Ok(frame)), Some(access)) => {
                let bytes = frame.data_ref().map_or(0, Buf::remaining) as u64;
                access.count(self.towards_client, bytes);
            }
            (Some(Ok(_)), None) => {}
        }
        if let (Some(Err(_)), true, Some(access)) = (&frame, self.towards_client, &self.access) {
            access.broke_off();
        }
        // Whoever writes an answer looks no further than a length that is told.
        self.ended |= self.inner.is_end_stream() || self.inner.size_hint().exact() == Some(0);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl<B> Drop for Counted<B> {
    /// Whoever writes to the client drops the rest of an answer when the client is gone.
    fn drop(&mut self) {
        if let (true, false, Some(access)) = (self.towards_client, self.ended, &self.access) {
            access.left_early();
        }
    }
}

/// A tunnel's stream at the client's end.
pub(crate) struct CountedStream<S> {
    inner: S,
    access: Option<Access>,
}

impl<S> CountedStream<S> {
    pub(crate) fn new(inner: S, access: Option<Access>) -> Self {
        Self { inner, access }
    }

    fn count(&self, towards_client: bool, bytes: usize) {
        if let Some(access) = &self.access {
            access.count(towards_client, bytes as u64);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CountedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = ready!(Pin::new(&mut self.inner).poll_read(cx, buffer));
        self.count(false, buffer.filled().len().saturating_sub(before));
        Poll::Ready(result)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = ready!(Pin::new(&mut self.inner).poll_write(cx, bytes));
        self.count(true, *result.as_ref().unwrap_or(&0));
        Poll::Ready(result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
