//! An answer's content, a send buffer at a time.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::Activity;

/// Content that is handed out in pieces, the next one when the one before has reached the kernel.
/// So each piece is one write, the head goes with the first, and framing with what it frames.
pub(crate) struct Pieces {
    rest: Bytes,
    piece_bytes: usize,
    sized: bool,
    activity: Arc<Activity>,
}

impl Pieces {
    /// Content in pieces of `piece_bytes`; `sized` tells its length beforehand.
    pub(crate) fn new(
        content: Bytes,
        piece_bytes: usize,
        sized: bool,
        activity: Arc<Activity>,
    ) -> Self {
        if content.is_empty() {
            activity.sends(true);
        }
        Self { rest: content, piece_bytes, sized, activity }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        ready!(self.activity.poll_sent(cx));
        let count = self.piece_bytes.min(self.rest.len());
        let piece = self.rest.split_to(count);
        self.activity.sends(self.rest.is_empty());
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        match self.sized {
            true => SizeHint::with_exact(self.rest.len() as u64),
            false => SizeHint::default(),
        }
    }
}
