//! How a side ends: what has an end of its own is waited for, and what has none gets one.
//!
//! A tunnel or an event stream would hold the end of its side up for as long as that may take, and
//! its client opens another one when it ends. It goes on for a little, so that whoever runs next is
//! there when its client comes back. Then an event stream ends in order, for an end amid it is what
//! its clients are made for (HTML, server-sent events), and a tunnel is reset: nobody knows whether
//! what it carried was whole.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Either;
use relay::{Cause, CauseKind};
use tokio::sync::watch;
use tokio::time::Instant;

/// How long tunnels and event streams go on at the end of their side: a process that is started in
/// that moment is there.
const STREAM_GRACE: Duration = Duration::from_secs(2);

/// Tells a side's parts that it ends.
pub(crate) struct Farewell(watch::Sender<Option<Instant>>);

impl Farewell {
    pub(crate) fn new() -> (Self, Parting) {
        let (sender, receiver) = watch::channel(None);
        (Self(sender), Parting(receiver))
    }

    /// The side ends from here on.
    pub(crate) fn say(&self) {
        self.0.send_replace(Some(Instant::now() + STREAM_GRACE));
    }

    /// Says so when `stop` resolves, which it hands on.
    pub(crate) async fn after(self, stop: impl Future<Output = ()>) {
        stop.await;
        self.say();
    }
}

/// Hears that the side ends.
#[derive(Clone)]
pub(crate) struct Parting(watch::Receiver<Option<Instant>>);

impl Parting {
    /// Whether the side ends.
    pub(crate) fn is_said(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Resolves when the side ends, also when it does so without a word.
    pub(crate) async fn said(&mut self) -> Option<Instant> {
        self.0.wait_for(Option::is_some).await.map_or(None, |at| *at)
    }

    /// Resolves when what has no end of its own has to end.
    pub(crate) async fn due(mut self) {
        match self.said().await {
            Some(at) => tokio::time::sleep_until(at).await,
            // Without a word nobody waits for anything.
            None => std::future::pending().await,
        }
    }

    /// An answer's body, which ends when it has to where it has no end of its own.
    pub(crate) fn bound<B>(&self, body: B, headers: &HeaderMap) -> Either<Ending<B>, B>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let media = headers.get(header::CONTENT_TYPE);
        let endless = media.is_some_and(|media| relay::is_endless(media.as_bytes()));
        if endless && body.size_hint().exact().is_none() {
            let due = Box::pin(self.clone().due());
            Either::Left(Ending { body: Some(body), due })
        } else {
            Either::Right(body)
        }
    }
}

/// Why a tunnel ends with its side.
pub(crate) fn cause() -> Cause {
    let reason = "the proxy shuts down, and its tunnels with it".to_owned();
    Cause { kind: CauseKind::ShuttingDown, reason }
}

/// See [`Parting::bound`].
pub(crate) struct Ending<B> {
    body: Option<B>,
    due: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl<B: Body<Data = Bytes> + Unpin> Body for Ending<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if self.body.is_some() && self.due.as_mut().poll(cx).is_ready() {
            // Whoever it comes from hears at once that nobody listens.
            self.body = None;
        }
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        Pin::new(body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::BodyExt as _;

    use super::*;

    /// A body that gives a piece, and no other for ever.
    struct Events {
        piece: Option<Bytes>,
        length: Option<u64>,
    }

    impl Events {
        fn new(length: Option<u64>) -> Self {
            Self { piece: Some(Bytes::from_static(b"data: 1\n\n")), length }
        }
    }

    impl Body for Events {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.piece
                .take()
                .map_or(Poll::Pending, |piece| Poll::Ready(Some(Ok(Frame::data(piece)))))
        }

        fn size_hint(&self) -> SizeHint {
            self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
        }
    }

    fn of_media(media: &'static str) -> HeaderMap {
        let media = http::HeaderValue::from_static(media);
        [(header::CONTENT_TYPE, media)].into_iter().collect()
    }

    /// Whether nothing comes for now.
    async fn waits<B: Body + Unpin>(body: &mut B) -> bool {
        tokio::time::timeout(Duration::from_millis(20), body.frame()).await.is_err()
    }

    #[tokio::test]
    async fn what_has_no_end_gets_one_when_its_side_ends_and_nothing_else_does() {
        let stream = of_media("text/event-stream; charset=utf-8");
        let (farewell, parting) = Farewell::new();
        let mut events = parting.bound(Events::new(None), &stream);
        let mut text = parting.bound(Events::new(None), &of_media("text/plain"));
        let mut long = parting.bound(Events::new(Some(99)), &stream);
        assert!(events.frame().await.is_some());
        assert!(text.frame().await.is_some() && long.frame().await.is_some());
        assert!(waits(&mut events).await && !parting.is_said());
        farewell.say();
        let said = Instant::now();
        assert!(parting.is_said() && events.frame().await.is_none());
        assert!(said.elapsed() > STREAM_GRACE / 2);
        assert!(events.is_end_stream() && events.frame().await.is_none());
        // These have ends of their own, or lengths that would not be kept.
        assert!(waits(&mut text).await && waits(&mut long).await);
        // What begins later has no time of its own.
        assert!(parting.bound(Events::new(None), &stream).frame().await.is_none());
        // Who is killed says nothing, and ends nothing in order.
        let (farewell, parting) = Farewell::new();
        let mut events = parting.bound(Events::new(None), &stream);
        drop(farewell);
        assert!(events.frame().await.is_some() && waits(&mut events).await);
    }
}
