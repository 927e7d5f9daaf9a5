//! Bodies and tunnels between a mailbox and a connection, within the relay's credit.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use relay::{Cause, CauseKind};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::fields;
use crate::http1::Shared;
use crate::mailbox::{Piece, Port, Receiver, Sender};
use crate::parting::{self, Parting};

pub(crate) use crate::progress::Progress;

/// An error of a body; hyper breaks the message off, never ends it.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// A body of any origin.
pub(crate) type AnyBody = http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>;

/// Most bytes of a tunnel read at a time.
const TUNNEL_READ_BYTES: usize = 16 * 1024;

/// A body that tells when it is looked at.
pub(crate) struct Watched<B> {
    inner: B,
    progress: Progress,
}

impl<B> Watched<B> {
    pub(crate) fn new(inner: B, progress: Progress) -> Self {
        Self { inner, progress }
    }

    pub(crate) fn into_inner(self) -> B {
        self.inner
    }
}

impl<B: Body + Unpin> Body for Watched<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.progress.touch();
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// What the relay hands over, as a body for hyper.
pub(crate) struct RelayBody {
    receiver: Receiver,
    /// Bytes to come, where Content-Length tells.
    left: Option<u64>,
    ended: bool,
    /// Edge: the end of the answer ends the exchange.
    ends_exchange: bool,
}

impl RelayBody {
    /// `length` is Content-Length where there is one.
    pub(crate) fn new(receiver: Receiver, length: Option<u64>, ends_exchange: bool) -> Self {
        Self { receiver, left: length, ended: false, ends_exchange }
    }

    fn end(&mut self) {
        self.ended = true;
        if self.ends_exchange {
            self.receiver.finish();
        }
    }
}

impl Body for RelayBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let trailers = match ready!(self.receiver.poll_piece(cx)) {
            Ok(Piece::Data(bytes)) => {
                let len = bytes.len() as u64;
                if let Some(left) = self.left.filter(|left| *left < len) {
                    self.ended = true;
                    let why = format!("the body is {} bytes over its length", len - left);
                    self.receiver.abort(corrupt(&why));
                    return Poll::Ready(Some(Err(why.into())));
                }
                self.left = self.left.map(|left| left - len);
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            Ok(Piece::End(trailers)) => trailers,
            Err(ended) => {
                self.ended = true;
                return Poll::Ready(Some(Err(ended.cause.reason.into())));
            }
        };
        if let Some(left) = self.left.filter(|left| *left > 0) {
            self.ended = true;
            let why = format!("the body ended {left} bytes before its length");
            self.receiver.abort(corrupt(&why));
            return Poll::Ready(Some(Err(why.into())));
        }
        self.end();
        if trailers.is_empty() {
            return Poll::Ready(None);
        }
        // hyper sends those that the head announced (RFC 9110 §6.5.1).
        let frame = fields::to_headers(&trailers).map(Frame::trailers);
        Poll::Ready(Some(frame.map_err(|cause| cause.reason.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Drop for RelayBody {
    fn drop(&mut self) {
        // hyper looks no further than Content-Length, so it may not have seen the end.
        if !self.ended && self.left == Some(0) {
            if !self.ends_exchange {
                self.receiver.has_all();
            }
            self.end();
        }
    }
}

fn corrupt(why: &str) -> Cause {
    Cause { kind: CauseKind::Corrupt, reason: why.to_owned() }
}

/// Why a body did not go to the relay whole.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The exchange ended first.
    Ended,
    /// The body broke off.
    Broken(BoxError),
    /// The body passed this bound.
    TooLarge(u64),
}

/// Carries a body to the relay. It does not look at the body before the relay wants some: until
/// then the body can be taken back, and a client that expects 100 does not get it.
pub(crate) struct Pump<B> {
    body: B,
    sender: Sender,
    opened: bool,
    /// The client may send before it is asked to, and what it sends goes on (RFC 9110 §10.1.1).
    eager: bool,
    left: Bytes,
    taken: u64,
    most: u64,
}

impl<B> Pump<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    /// `most` bounds the body in bytes.
    pub(crate) fn new(body: B, sender: Sender, most: Option<u64>) -> Self {
        let most = most.unwrap_or(u64::MAX);
        Self { body, sender, opened: false, eager: false, left: Bytes::new(), taken: 0, most }
    }

    /// Looks at the body before the relay wants any, which does not make the client send.
    pub(crate) fn eager(self) -> Self {
        Self { eager: true, ..self }
    }

    /// The body, if nobody has looked at it.
    pub(crate) fn into_untouched(self) -> Option<B> {
        (!self.opened).then_some(self.body)
    }

    /// Whether nobody has looked at the body.
    pub(crate) fn is_untouched(&self) -> bool {
        !self.opened
    }

    /// The body goes on behind an answer of success.
    pub(crate) fn insist(&mut self) {
        self.sender.insist();
    }

    /// Gives the exchange up from this side.
    pub(crate) fn abort(&mut self, cause: Cause) {
        self.sender.abort(cause);
    }

    /// Until the body's end is with the relay.
    pub(crate) async fn run(&mut self) -> Result<(), Stop> {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Stop>> {
        loop {
            let credit = match self.sender.poll_credit(cx) {
                Poll::Ready(Ok(credit)) => credit,
                Poll::Ready(Err(_)) => return Poll::Ready(Err(Stop::Ended)),
                Poll::Pending => 0,
            };
            self.opened |= credit > 0;
            if !self.left.is_empty() {
                if credit == 0 {
                    return Poll::Pending;
                }
                let most = usize::try_from(credit).unwrap_or(usize::MAX);
                let piece = self.left.split_to(self.left.len().min(most));
                self.sender.data(piece);
                continue;
            }
            if !self.opened && !self.eager {
                return Poll::Pending;
            }
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            if !std::mem::replace(&mut self.opened, true) {
                self.sender.sends_anyway();
            }
            match frame {
                None => {
                    self.sender.end(Vec::new());
                    return Poll::Ready(Ok(()));
                }
                Some(Err(error)) => return Poll::Ready(Err(Stop::Broken(error.into()))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => {
                        self.taken += bytes.len() as u64;
                        if self.taken > self.most {
                            return Poll::Ready(Err(Stop::TooLarge(self.most)));
                        }
                        self.left = bytes;
                    }
                    Err(frame) => {
                        let trailers = frame.into_trailers().unwrap_or_default();
                        self.sender.end(fields::to_fields(&trailers));
                        return Poll::Ready(Ok(()));
                    }
                },
            }
        }
    }
}

/// Carries the bytes of a tunnel both ways until both have ended, or either breaks, or the side
/// ends: then the local side gets a reset by its `socket`, for it must not take that for an end.
pub(crate) async fn tunnel<S: AsyncRead + AsyncWrite>(
    stream: S,
    socket: &Shared,
    port: Port,
    broken: CauseKind,
    parting: Parting,
) {
    let Port { receiver, mut sender } = port;
    let (reader, writer) = tokio::io::split(stream);
    let mut unended = Unended { sockets: &[socket], ended: false };
    let watch = sender.watch();
    let result = {
        let up = upward(reader, &mut sender);
        let down = downward(receiver, writer);
        let both = async { tokio::try_join!(up, down) };
        // Said before the receiver goes, which else would mean that the client has left.
        let side = async {
            parting.due().await;
            watch.abort(parting::cause());
        };
        tokio::select! {
            result = both => result.map(drop),
            () = side => return,
        }
    };
    match result {
        Ok(()) => unended.ended = true,
        Err(error) => {
            sender.abort(Cause { kind: broken, reason: format!("the tunnel broke: {error}") })
        }
    }
}

/// Sockets of a tunnel that has not ended in order: they are reset, also when nobody waits for the
/// tunnel any more.
struct Unended<'a> {
    sockets: &'a [&'a Shared],
    ended: bool,
}

impl Drop for Unended<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.sockets.iter().for_each(|socket| socket.reset_on_close());
        }
    }
}

/// Carries bytes between two connections until both have ended; a break of one is a reset of the
/// other, and the end of the side of both.
pub(crate) async fn splice<A, B>(mut a: A, mut b: B, sockets: [&Shared; 2], parting: Parting)
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    let mut unended = Unended { sockets: &sockets, ended: false };
    tokio::select! {
        result = tokio::io::copy_bidirectional(&mut a, &mut b) => match result {
            Ok(_) => unended.ended = true,
            Err(error) => tracing::debug!(%error, "a tunnel broke"),
        },
        () = parting.due() => tracing::debug!("a tunnel ends with its side"),
    }
}

async fn upward<R: AsyncRead + Unpin>(mut reader: R, sender: &mut Sender) -> Result<(), BoxError> {
    let mut buffer = BytesMut::new();
    loop {
        let credit = std::future::poll_fn(|cx| sender.poll_credit(cx))
            .await
            .map_err(|ended| ended.cause.reason)?;
        let most = usize::try_from(credit).unwrap_or(usize::MAX).min(TUNNEL_READ_BYTES);
        buffer.reserve(TUNNEL_READ_BYTES);
        if (&mut reader).take(most as u64).read_buf(&mut buffer).await? == 0 {
            sender.end(Vec::new());
            return Ok(());
        }
        sender.data(buffer.split().freeze());
    }
}

async fn downward<W: AsyncWrite + Unpin>(
    mut receiver: Receiver,
    mut writer: W,
) -> Result<(), BoxError> {
    loop {
        match receiver.piece().await {
            Ok(Piece::Data(bytes)) => {
                writer.write_all(&bytes).await?;
                writer.flush().await?;
            }
            Ok(Piece::End(_)) => {
                writer.shutdown().await?;
                return Ok(());
            }
            Err(ended) => return Err(ended.cause.reason.into()),
        }
    }
}
