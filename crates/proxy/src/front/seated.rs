//! A client's stream and the bodies of its answers, which tell its seat what the connection does.

use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::clock::WriteClock;
use crate::flow::BoxError;
use crate::seats::{Doing, Seat, Source};

/// What a connection does, as its seat has to know. A tunnel outlives the seat.
pub(super) struct Activity {
    seat: Weak<Seat<Source>>,
    /// Nothing came since the last answer, or since the beginning.
    quiet: AtomicBool,
    /// What was written last did not fit.
    stuck: AtomicBool,
    /// The client took nothing for as long as it may.
    stalled: AtomicBool,
}

impl Activity {
    /// Whether the client took nothing for as long as it may.
    pub(super) fn has_stalled(&self) -> bool {
        self.stalled.load(Ordering::Relaxed)
    }

    /// Notes what came of an attempt to write.
    fn wrote<T>(&self, written: &Poll<io::Result<T>>) {
        self.stuck.store(!matches!(written, Poll::Ready(Ok(_))), Ordering::Relaxed);
        let stalled = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
        if matches!(written, Poll::Ready(Err(error)) if stalled(error)) {
            self.stalled.store(true, Ordering::Relaxed);
        }
    }

    /// Whether bytes of an answer wait to be written: then a close would look like its end.
    pub(super) fn is_stuck(&self) -> bool {
        self.stuck.load(Ordering::Relaxed)
    }

    fn note(&self, doing: Doing) {
        if let Some(seat) = self.seat.upgrade() {
            seat.note(doing);
        }
    }
}

/// A client's stream.
pub(super) struct Seated<S> {
    stream: S,
    activity: Arc<Activity>,
    clock: WriteClock,
}

impl<S> Seated<S> {
    /// `patience`: how long the client may take nothing.
    pub(super) fn new(stream: S, seat: &Arc<Seat<Source>>, patience: Duration) -> Self {
        let (quiet, seat) = (AtomicBool::new(true), Arc::downgrade(seat));
        let activity = Activity { seat, quiet, stuck: false.into(), stalled: false.into() };
        Self { stream, activity: Arc::new(activity), clock: WriteClock::new(patience) }
    }

    pub(super) fn doing(&self) -> Arc<Activity> {
        Arc::clone(&self.activity)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Seated<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if buffer.filled().len() > before && self.activity.quiet.swap(false, Ordering::Relaxed) {
            self.activity.note(Doing::Speaking);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + AsFd + Unpin> AsyncWrite for Seated<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, activity, clock } = &mut *self;
        let written = Pin::new(&mut *stream).poll_write(cx, bytes);
        let written = clock.watch(cx, &*stream, written);
        activity.wrote(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, activity, clock } = &mut *self;
        let written = Pin::new(&mut *stream).poll_write_vectored(cx, bytes);
        let written = clock.watch(cx, &*stream, written);
        activity.wrote(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// A request that is served, from its head to the end of its answer.
pub(super) struct Occupied(Arc<Activity>);

impl Occupied {
    pub(super) fn begin(activity: &Arc<Activity>) -> Self {
        activity.quiet.store(false, Ordering::Relaxed);
        activity.note(Doing::Busy);
        Self(Arc::clone(activity))
    }

    /// The body of its answer. It breaks off where nothing of it is there when `unwanted` resolves.
    pub(super) fn with<B>(
        self,
        body: B,
        unwanted: Option<impl Future<Output = ()> + Send + 'static>,
    ) -> Answered<B> {
        let unwanted = unwanted.map(|unwanted| Box::pin(unwanted) as Unwanted);
        Answered { body, unwanted, _until: self }
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        self.0.quiet.store(true, Ordering::Relaxed);
        self.0.note(Doing::Idle);
    }
}

/// Resolves when nobody wants the rest of an answer.
type Unwanted = Pin<Box<dyn Future<Output = ()> + Send>>;

/// See [`Occupied::with`].
pub(super) struct Answered<B> {
    body: B,
    unwanted: Option<Unwanted>,
    _until: Occupied,
}

impl<B> Body for Answered<B>
where
    B: Body<Error = BoxError> + Unpin,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        let Some(unwanted) = &mut self.unwanted else { return Poll::Pending };
        ready!(unwanted.as_mut().poll(cx));
        self.unwanted = None;
        Poll::Ready(Some(Err("the client has ended its stream".into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
