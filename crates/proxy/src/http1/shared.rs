//! The socket of a connection, for its stream and for who watches it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// See the module. The socket closes with the last clone.
#[derive(Clone, Debug)]
pub(crate) struct Shared(Arc<TcpStream>);

impl Shared {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self(Arc::new(stream))
    }

    /// When the socket closes, the other side gets a reset: what it has must not look whole.
    pub(crate) fn reset_on_close(&self) {
        let _ = SockRef::from(&*self.0).set_linger(Some(Duration::ZERO));
    }

    /// Whether nothing waits to be read, not even the other side's end.
    pub(crate) fn is_quiet(&self) -> bool {
        self.peek().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// How much waits to be read, up to one byte; 0 is the other side's end.
    fn peek(&self) -> io::Result<usize> {
        let mut byte = [std::mem::MaybeUninit::uninit()];
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        SockRef::from(&*self.0).recv_with_flags(&mut byte, flags)
    }

    /// Resolves when the other side has reset the connection.
    pub(crate) async fn is_reset(&self) {
        loop {
            match self.0.ready(Interest::ERROR).await {
                Ok(ready) if !ready.is_error() => {}
                _ => return,
            }
        }
    }

    /// Resolves when the other side has ended its direction, unless it has sent something before
    /// that nobody has read.
    pub(crate) async fn has_ended(&self) {
        loop {
            match self.0.ready(Interest::READABLE).await {
                Ok(ready) if !ready.is_read_closed() => {}
                _ => return,
            }
            // The readiness may be of what has been read since; then this clears it.
            match self.0.try_io(Interest::READABLE, || self.peek()) {
                Ok(0) => return,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                _ => std::future::pending().await,
            }
        }
    }
}

impl AsFd for Shared {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsyncRead for Shared {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(cx))?;
            match self.0.try_read_buf(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result.map(drop)),
            }
        }
    }
}

impl AsyncWrite for Shared {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            match self.0.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            match self.0.try_write_vectored(pieces) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = SockRef::from(&*self.0).shutdown(std::net::Shutdown::Write);
        match result {
            // The other side has closed it already.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Poll::Ready(Ok(())),
            result => Poll::Ready(result),
        }
    }
}
