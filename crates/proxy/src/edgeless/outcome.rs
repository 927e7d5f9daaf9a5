//! What comes of an answer to an edgeless client, as far as this side sees it. The client tells
//! nothing, but the kernel knows when all of the answer was acknowledged.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use coding::api::Input;
use decide::estimate::Transport;
use decide::network::Path;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use super::machine::Open;
use crate::front::Connection;
use crate::http1::Shared;
use crate::socket;

/// An answer that is not all acknowledged after this long is followed no further.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between looks at the kernel's counters.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(50)];
/// Looks in a round trip.
const LOOKS: u32 = 16;
/// A time below this is none that a clock tells.
const MIN_TIME: Duration = Duration::from_micros(1);

/// An answer that is to be followed on its way.
pub(crate) struct Sending {
    pub(crate) open: Arc<Open>,
    /// The path as it was believed to be.
    pub(crate) path: Path,
    /// A descriptor of its own: following holds no connection open.
    pub(crate) socket: Shared,
    pub(crate) broken: Arc<AtomicBool>,
    pub(crate) connection: Weak<Connection>,
    /// Bounds how many are followed at once.
    pub(crate) _permit: OwnedSemaphorePermit,
}

/// What was seen of a body that has left.
#[derive(Clone, Copy, Debug)]
struct Left {
    /// When its first bytes were there to be sent, and the kernel's counters then.
    first: Instant,
    before: Transport,
    bytes: u64,
    frames: u64,
    /// How long nothing was there though more was to come.
    idle: Duration,
}

/// A body that is followed once it has left.
pub(crate) struct Followed<B> {
    inner: B,
    sending: Option<Sending>,
    left: Option<Left>,
    idle_since: Option<Instant>,
}

impl<B> Followed<B> {
    pub(crate) fn new(inner: B, sending: Option<Sending>) -> Self {
        Self { inner, sending, left: None, idle_since: None }
    }

    fn note(&mut self, data: &Bytes) {
        let Some(sending) = self.sending.as_ref().filter(|_| !data.is_empty()) else { return };
        let fresh = || {
            let before = socket::tcp_info(&sending.socket).unwrap_or_default();
            Left { first: Instant::now(), before, bytes: 0, frames: 0, idle: Duration::ZERO }
        };
        let left = self.left.get_or_insert_with(fresh);
        left.bytes += data.len() as u64;
        left.frames += 1;
        left.idle += self.idle_since.take().map_or(Duration::ZERO, |since| since.elapsed());
    }

    /// Nothing comes any more.
    fn end(&mut self) {
        if let (Some(sending), Some(left)) = (self.sending.take(), self.left) {
            tokio::spawn(sending.follow(left));
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Followed<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        match &polled {
            Poll::Pending if self.left.is_some() => {
                self.idle_since.get_or_insert_with(Instant::now);
            }
            Poll::Pending => {}
            Poll::Ready(None) => self.end(),
            Poll::Ready(Some(Err(_))) => self.sending = None,
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    self.note(data);
                }
                // It may not be asked again.
                if self.inner.is_end_stream() {
                    self.end();
                }
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Sending {
    /// Waits until all of the answer is acknowledged; tells what came of it.
    async fn follow(self, left: Left) {
        let end = left.first.elapsed();
        let [least, most] = PAUSES;
        let pause = (left.before.rtt / LOOKS).clamp(least, most);
        loop {
            let Ok(now) = socket::tcp_info(&self.socket) else { return };
            let sent = now.bytes_out.saturating_sub(left.before.bytes_out);
            let elapsed = left.first.elapsed();
            if sent >= left.bytes && now.backlog_bytes == 0 {
                return self.arrived(&left, &now, elapsed, pause).await;
            }
            if elapsed > end + PATIENCE || self.broken.load(Ordering::Relaxed) {
                return;
            }
            // sleep: the kernel tells nobody when the last byte is acknowledged.
            tokio::time::sleep(pause).await;
        }
    }

    async fn arrived(self, left: &Left, now: &Transport, elapsed: Duration, pause: Duration) {
        let back = now.rtt / 2;
        // While it waited for its origin or its encoder, the network had nothing to do.
        let network = elapsed.saturating_sub(left.idle).saturating_sub(back);
        let network = network.max(MIN_TIME);
        if let Some(connection) = self.connection.upgrade() {
            let mut path = connection.path.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(estimate) = path.as_mut() {
                estimate.transport(*now);
                let at_once = left.frames == 1 && self.path.windows(left.bytes as f64) <= 1.0;
                let again = now.retransmitted != left.before.retransmitted;
                // What passes between two looks is too short to tell.
                let long = elapsed > pause * LOOKS;
                estimate.took(left.bytes as f64, network.as_secs_f64(), at_once && long && !again);
            }
        }
        let (exchange, bytes) = (self.open.id, left.bytes);
        self.open.tell(vec![Input::Arrived { exchange, bytes, network }]).await;
    }
}
