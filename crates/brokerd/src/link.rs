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
    /// Who writes, until it is woken.
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
    pub(crate) fn set_waker(&self, waker: &Waker) {
        *self.waker.borrow_mut() = Some(waker.clone());
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    /// Takes some bytes at a time.
    struct Narrow {
        took: Vec<u8>,
        at_once: usize,
    }

    impl AsyncWrite for Narrow {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let count = bytes.len().min(self.at_once);
            self.took.extend_from_slice(&bytes[..count]);
            Poll::Ready(Ok(count))
        }

        fn poll_write_vectored(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let all: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
            self.poll_write(context, &all)
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn pieces_leave_in_order_however_much_is_taken_at_once() {
        let texts: Vec<String> = (0..200_usize).map(|number| "x".repeat(number % 7 + 1)).collect();
        for at_once in [1, 5, 64, 10_000] {
            let link = Link::new(ConnectionId(1));
            for (number, text) in texts.iter().enumerate() {
                link.push(Bytes::from(format!("{number}{text}")));
            }
            let expected: String =
                texts.iter().enumerate().map(|(number, text)| format!("{number}{text}")).collect();
            let mut narrow = Narrow { took: Vec::new(), at_once };
            let mut context = Context::from_waker(Waker::noop());
            let mut count = 0;
            while !link.is_empty() {
                match link.poll_write(Pin::new(&mut narrow), &mut context) {
                    Poll::Ready(written) => count += written.unwrap(),
                    Poll::Pending => panic!("it takes something each time"),
                }
            }
            assert_eq!(count, expected.len());
            assert_eq!(narrow.took, expected.as_bytes(), "{at_once}");
        }
    }

    #[test]
    fn who_waits_is_woken_once() {
        let woken = Arc::new(Woken::default());
        let link = Link::new(ConnectionId(1));
        link.push(Bytes::from_static(b"a"));
        link.set_waker(&woken.clone().into());
        link.push(Bytes::from_static(b"b"));
        link.close();
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert!(link.is_closing() && !link.is_empty());
    }
}
