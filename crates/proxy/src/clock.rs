//! Clocks on what a client or an origin does: nothing waits for either without one.
//!
//! A body that is looked at has so long to give more; a socket that is full has so long to take
//! more. A slow one is not taken for one that stands still: what the other side's kernel
//! acknowledges counts, for a full buffer of a slow link takes minutes to drain.

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header;
use http::response::Parts;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use crate::flow::BoxError;
use crate::socket;

/// Who stood still for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stalled {
    pub(crate) who: Side,
    patience: Duration,
}

/// Whose word is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The request's body.
    Client,
    /// The answer's.
    Origin,
}

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (who, what) = match self.who {
            Side::Client => ("client", "request"),
            Side::Origin => ("origin", "answer"),
        };
        let waited = self.patience.as_secs_f64();
        write!(f, "the {who} sent nothing of its {what} for {waited} s")
    }
}

impl std::error::Error for Stalled {}

impl Stalled {
    pub(crate) fn new(who: Side, patience: Duration) -> Self {
        Self { who, patience }
    }
}

/// Among the extensions of an answer: its body has a clock of its own, by what its protocol says of
/// silence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnClock;

/// How long somebody may stand still.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    /// Amid a body.
    pub(crate) idle: Duration,
    /// Amid one that has no end of its own.
    pub(crate) endless: Duration,
}

impl Clocks {
    /// For the body of an answer with this head, unless it has a clock of its own.
    pub(crate) fn of_answer(self, head: &Parts) -> Option<Duration> {
        if head.extensions.get::<OwnClock>().is_some() {
            return None;
        }
        let media = head.headers.get(header::CONTENT_TYPE);
        let endless = media.is_some_and(|media| relay::is_endless(media.as_bytes()));
        Some(if endless { self.endless } else { self.idle })
    }
}

/// When something is due that has not come.
#[derive(Debug)]
struct Alarm {
    /// `None`: never.
    patience: Option<Duration>,
    /// Set while something is waited for.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    fn new(patience: Option<Duration>) -> Self {
        Self { patience, timer: None }
    }

    /// It came.
    fn stop(&mut self) {
        self.timer = None;
    }

    /// It has not come: ready once it should have, with how long that is.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Duration> {
        let Some(patience) = self.patience else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        timer.as_mut().poll(cx).map(|()| patience)
    }

    /// It gets as much time again.
    fn again(&mut self) {
        if let Some((timer, patience)) = self.timer.as_mut().zip(self.patience) {
            timer.as_mut().reset(Instant::now() + patience);
        }
    }
}

/// A body whose owner has so long for each next piece, counted while somebody wants it; or as long
/// as it takes.
pub(crate) struct Timed<B> {
    body: B,
    who: Side,
    alarm: Alarm,
}

impl<B> Timed<B> {
    pub(crate) fn new(body: B, who: Side, patience: impl Into<Option<Duration>>) -> Self {
        Self { body, who, alarm: Alarm::new(patience.into()) }
    }
}

impl<B> Body for Timed<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            self.alarm.stop();
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let patience = ready!(self.alarm.poll(cx));
        Poll::Ready(Some(Err(Stalled::new(self.who, patience).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// What a writer has to do with a socket that is full.
#[derive(Debug)]
pub(crate) struct WriteClock {
    alarm: Alarm,
    /// Bytes that the other side had acknowledged when the wait began.
    acknowledged: u64,
}

impl WriteClock {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { alarm: Alarm::new(Some(patience)), acknowledged: 0 }
    }

    /// Looks at what came of an attempt to write to `socket`.
    pub(crate) fn watch<T>(
        &mut self,
        cx: &mut Context<'_>,
        socket: &impl AsFd,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.alarm.stop();
            return written;
        }
        let acknowledged = || socket::acknowledged(socket).unwrap_or(0);
        if self.alarm.timer.is_none() {
            self.acknowledged = acknowledged();
        }
        while let Poll::Ready(patience) = self.alarm.poll(cx) {
            let now = acknowledged();
            if now == self.acknowledged {
                let waited = patience.as_secs_f64();
                let what = format!("the other side took nothing for {waited} s");
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, what)));
            }
            self.acknowledged = now;
            self.alarm.again();
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use http_body_util::BodyExt as _;
    use tokio::io::AsyncWrite as _;

    use super::*;

    const PATIENCE: Duration = Duration::from_millis(100);

    fn piece() -> Frame<Bytes> {
        Frame::data(Bytes::from_static(b"piece"))
    }

    /// A body that gives a piece, and stands still.
    struct Still(Option<Frame<Bytes>>);

    impl Body for Still {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
            self.0.take().map_or(Poll::Pending, |frame| Poll::Ready(Some(Ok(frame))))
        }
    }

    #[tokio::test]
    async fn a_body_that_stands_still_breaks() {
        let mut body = Timed::new(Still(Some(piece())), Side::Origin, PATIENCE);
        assert!(body.frame().await.unwrap().is_ok());
        let error = body.frame().await.unwrap().unwrap_err();
        let stalled = error.downcast_ref::<Stalled>().unwrap();
        assert_eq!(stalled.who, Side::Origin);
        let text = "the origin sent nothing of its answer for 0.1 s";
        assert_eq!(error.to_string(), text);
    }

    /// What comes over a channel.
    struct Fed(tokio::sync::mpsc::Receiver<Frame<Bytes>>);

    impl Body for Fed {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
            self.0.poll_recv(cx).map(|frame| frame.map(Ok))
        }
    }

    /// Who knows better how long nothing may come is not hurried.
    #[tokio::test]
    async fn a_body_with_a_clock_of_its_own_has_its_time() {
        let clocks = Clocks { idle: PATIENCE, endless: PATIENCE };
        let mut response = http::Response::new(());
        let patience =
            |response: &http::Response<()>| clocks.of_answer(&response.clone().into_parts().0);
        assert_eq!(patience(&response), Some(PATIENCE));
        response.extensions_mut().insert(OwnClock);
        assert_eq!(patience(&response), None);
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let mut body = Timed::new(Fed(receiver), Side::Origin, patience(&response));
        let late = async {
            // sleep: that passing time does no harm is what is tested.
            tokio::time::sleep(PATIENCE * 3).await;
            sender.send(piece()).await.unwrap();
        };
        let (frame, ()) = tokio::join!(body.frame(), late);
        assert!(frame.unwrap().is_ok());
    }

    /// The clock runs only while somebody wants more.
    #[tokio::test]
    async fn a_body_that_nobody_looks_at_may_wait() {
        let (sender, receiver) = tokio::sync::mpsc::channel(2);
        let mut body = Timed::new(Fed(receiver), Side::Client, PATIENCE);
        for _ in 0..2 {
            // sleep: that passing time does no harm is what is tested.
            tokio::time::sleep(PATIENCE * 2).await;
            sender.send(piece()).await.unwrap();
            assert!(body.frame().await.unwrap().is_ok());
        }
    }

    #[tokio::test]
    async fn a_reader_that_does_not_read_breaks_the_writer_and_a_slow_one_does_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut reader, _) = listener.accept().unwrap();
        let (mut stream, mut clock) = (stream, WriteClock::new(PATIENCE));
        let fill = async |stream: &mut tokio::net::TcpStream, clock: &mut WriteClock| {
            std::future::poll_fn(|cx| {
                loop {
                    let written = Pin::new(&mut *stream).poll_write(cx, &[7; 65_536]);
                    match clock.watch(cx, &*stream, written) {
                        Poll::Ready(Ok(_)) => {}
                        Poll::Ready(Err(error)) => return Poll::Ready(error),
                        Poll::Pending => return Poll::Pending,
                    }
                }
            })
            .await
        };
        let error = fill(&mut stream, &mut clock).await;
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        // Much is read, slowly: as long as it is, the writer waits.
        let mut clock = WriteClock::new(PATIENCE);
        let reading = std::thread::spawn(move || {
            let mut buffer = vec![0; 200_000];
            for _ in 0..20 {
                let _ = reader.read(&mut buffer).unwrap();
                // sleep: a slow reader is what is tested.
                std::thread::sleep(PATIENCE / 4);
            }
            reader
        });
        let started = Instant::now();
        let error = fill(&mut stream, &mut clock).await;
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(started.elapsed() >= 5 * PATIENCE, "{:?}", started.elapsed());
        drop(reading.join().unwrap());
    }
}
