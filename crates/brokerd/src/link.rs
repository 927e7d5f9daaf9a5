//! What waits to be written to a connection.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use broker::ConnectionId;
use bytes::{Buf as _, Bytes};
use tokio::io::AsyncWrite;

/// Pieces written at once.
const MAX_PIECES: usize = 64;

/// See the module.
pub(crate) struct Link {
    /// Which connection.
    pub(crate) id: ConnectionId,
    pieces: RefCell<VecDeque<Bytes>>,
    closing: Cell<bool>,
    /// Who writes, unless it is about to look here.
    waker: RefCell<Option<Waker>>,
}

impl Link {
    pub(crate) fn new(id: ConnectionId) -> Self {
        let pieces = RefCell::default();
        Self { id, pieces, closing: Cell::new(false), waker: RefCell::default() }
    }

    /// Adds what is to be written behind the others.
    pub(crate) fn push(&self, bytes: Bytes) {
        self.pieces.borrow_mut().push_back(bytes);
        self.wake();
    }

    /// The broker closes it, behind what there is to write.
    pub(crate) fn close(&self) {
        self.closing.set(true);
        self.wake();
    }

    /// Whether it does.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.get()
    }

    /// Whether nothing is to be written.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.borrow().is_empty()
    }

    /// Who is to be woken when there is something to write, or it is closing.
    pub(crate) fn set_waker(&self, waker: Option<Waker>) {
        *self.waker.borrow_mut() = waker;
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Writes as much as goes at once; how many bytes that were.
    pub(crate) fn poll_write(
        &self,
        writer: Pin<&mut impl AsyncWrite>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut pieces = self.pieces.borrow_mut();
        let mut slices = [IoSlice::new(&[]); MAX_PIECES];
        let mut count = 0;
        for (slice, piece) in slices.iter_mut().zip(pieces.iter()) {
            *slice = IoSlice::new(piece);
            count += 1;
        }
        let slices = slices.get(..count).unwrap_or_default();
        let written = ready!(writer.poll_write_vectored(context, slices))?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        let mut left = written;
        while let Some(piece) = pieces.front_mut() {
            if left < piece.len() {
                piece.advance(left);
                break;
            }
            left -= piece.len();
            pieces.pop_front();
        }
        if pieces.is_empty() {
            // Most connections have nothing most of the time.
            *pieces = VecDeque::new();
        }
        Poll::Ready(Ok(written))
    }
}
