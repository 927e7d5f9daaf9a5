//! Whether bytes still move: a request may take as long as they do, over however slow a line.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Incoming};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Bytes that were written may be with this system still, up to so many, and leave it at so many a
/// second.
const MAX_BUFFERED_BYTES: usize = 1 << 20;
const MIN_BYTES_PER_S: usize = 1 << 10;
/// A body that comes slower than this is given up: whoever sends it holds a place meanwhile.
const MIN_BODY_BYTES_PER_S: usize = 256;

/// How long bytes that were written may be on the way.
pub(crate) fn on_the_way(bytes: usize) -> Duration {
    let seconds = bytes.min(MAX_BUFFERED_BYTES) / MIN_BYTES_PER_S;
    Duration::from_secs(seconds as u64)
}

/// When bytes last moved over a stream.
#[derive(Debug)]
pub(crate) struct Clock {
    began: Instant,
    moved_ms: AtomicU64,
}

impl Clock {
    fn moved(&self) {
        let ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved_ms.store(ms, Ordering::Relaxed);
    }

    fn moved_at(&self) -> Instant {
        self.began + Duration::from_millis(self.moved_ms.load(Ordering::Relaxed))
    }

    /// Waits for something as long as bytes move; `None` where none did for so long.
    pub(crate) async fn watch<T>(
        &self,
        patience: Duration,
        of: impl Future<Output = T>,
    ) -> Option<T> {
        self.moved();
        let mut of = pin!(of);
        loop {
            let due = self.moved_at() + patience;
            tokio::select! {
                done = of.as_mut() => return Some(done),
                () = tokio::time::sleep_until(due) => {
                    if self.moved_at() + patience <= Instant::now() {
                        return None;
                    }
                }
            }
        }
    }
}

/// A stream with a clock.
pub(crate) struct Moving<S> {
    stream: S,
    clock: Arc<Clock>,
}

impl<S> Moving<S> {
    pub(crate) fn new(stream: S) -> Self {
        let clock = Arc::new(Clock { began: Instant::now(), moved_ms: AtomicU64::new(0) });
        Self { stream, clock }
    }

    pub(crate) fn clock(&self) -> Arc<Clock> {
        self.clock.clone()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Moving<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_read(context, room))?;
        self.clock.moved();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Moving<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.clock.moved();
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Why a body is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoBody {
    /// It is longer than it may be.
    TooLong,
    /// It comes too slowly, or its sender has gone.
    TooSlow,
}

/// All of a body of a request: it has so long to begin, and then as long as it comes at no less
/// than 256 bytes a second.
pub(crate) async fn collect(
    mut body: Incoming,
    max_bytes: usize,
    patience: Duration,
) -> Result<Bytes, NoBody> {
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(NoBody::TooLong);
    }
    let began = Instant::now();
    // bound: max_bytes.
    let mut bytes = BytesMut::new();
    loop {
        let seconds = bytes.len() / MIN_BODY_BYTES_PER_S;
        let due = began + patience + Duration::from_secs(seconds as u64);
        match tokio::time::timeout_at(due, body.frame()).await {
            Ok(None) => return Ok(bytes.freeze()),
            Ok(Some(Ok(frame))) => {
                let data = frame.into_data().unwrap_or_default();
                if bytes.len() + data.len() > max_bytes {
                    return Err(NoBody::TooLong);
                }
                bytes.extend_from_slice(&data);
            }
            Ok(Some(Err(_))) | Err(_) => return Err(NoBody::TooSlow),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn what_moves_has_its_time_and_what_does_not_has_none() {
        const PAUSE: Duration = Duration::from_millis(400);
        const PATIENCE: Duration = Duration::from_secs(2);
        let (mut far, near) = tokio::io::duplex(64);
        let mut near = Moving::new(near);
        let clock = near.clock();
        let dripping = async {
            for _ in 0..8 {
                // sleep: how long it may take is what is tested.
                tokio::time::sleep(PAUSE).await;
                far.write_all(b"x").await.unwrap();
            }
            std::future::pending::<()>().await;
        };
        let reading = async {
            let mut room = [0; 9];
            near.read_exact(&mut room).await.unwrap();
        };
        let began = Instant::now();
        let both = async { tokio::join!(dripping, reading) };
        assert!(clock.watch(PATIENCE, both).await.is_none());
        let least = 8 * PAUSE + PATIENCE;
        assert!(began.elapsed() >= least, "so long behind the last byte: {:?}", began.elapsed());
    }

    #[test]
    fn what_may_be_on_the_way_is_bounded() {
        assert_eq!(on_the_way(10), Duration::ZERO);
        assert_eq!(on_the_way(64 << 10), Duration::from_secs(64));
        assert_eq!(on_the_way(usize::MAX), Duration::from_secs(1024));
    }
}
