//! A connection whose other side has to read.

use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream that fails when nothing of what is written leaves for some time.
pub(crate) struct Patient<S> {
    stream: S,
    patience: Duration,
    /// Runs while nothing leaves.
    clock: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(crate) fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, clock: None }
    }

    /// What a write came to; an error where the last that left is too long ago.
    fn judged<T>(&mut self, written: Poll<Result<T>>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        if written.is_ready() {
            self.clock = None;
            return written;
        }
        let patience = self.patience;
        let clock = self.clock.get_or_insert_with(|| Box::pin(sleep(patience)));
        match clock.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                let line = format!("nothing was read for {} s", patience.as_secs());
                Poll::Ready(Err(Error::new(ErrorKind::TimedOut, line)))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, room)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judged(written, cx)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.judged(flushed, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.judged(ended, cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn a_side_that_does_not_read_is_given_up() {
        let (near, mut far) = tokio::io::duplex(16);
        let mut near = Patient::new(near, Duration::from_millis(50));
        near.write_all(&[1; 16]).await.unwrap();
        let refused = near.write_all(&[2; 16]).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TimedOut);
        // One that reads has it all.
        let mut room = [0; 16];
        far.read_exact(&mut room).await.unwrap();
        let (near, mut far) = tokio::io::duplex(16);
        let mut near = Patient::new(near, Duration::from_secs(60));
        let mut all = Vec::new();
        let writing = async {
            near.write_all(&[3; 1000]).await.unwrap();
            drop(near);
        };
        let (_, read) = tokio::join!(writing, far.read_to_end(&mut all));
        assert_eq!((read.unwrap(), all.len()), (1000, 1000));
    }
}
