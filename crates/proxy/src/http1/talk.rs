//! A connection to an origin: responses come in through the parser of [`proto::http1`], one for
//! each request; what comes where none is due ends the connection.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use proto::http1::{Body, Fault, MAX_HEAD_BYTES, ResponseHead, Style, end_of_head};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

use super::poll_body;

/// Most bytes read from the connection at a time.
const READ_BYTES: usize = 16 * 1024;
/// Most interim responses of one exchange; who sends more has failed.
const MAX_INTERIMS: usize = 1000;

/// What is done with an interim response.
pub(crate) type OnInterim = Arc<dyn Fn(&ResponseHead) + Send + Sync>;

/// What who asks and the stream of the connection have for each other; see the module.
#[derive(Default)]
pub(crate) struct Talk {
    state: Mutex<TalkState>,
}

#[derive(Default)]
struct TalkState {
    /// Of the request whose response is due; none while none is.
    asked: Option<Asked>,
    /// Something of it has been written.
    wrote: bool,
    /// The final head, as it came.
    head: Option<ResponseHead>,
    /// Why there is no response.
    fault: Option<Fault>,
    /// The connection is not to be used again.
    tainted: bool,
    /// The origin takes no more of the request.
    deaf: bool,
}

/// A request that is about to be sent.
pub(crate) struct Asked {
    pub(crate) method: Bytes,
    /// How its head is written, where that is not left to the library.
    pub(crate) style: Option<Style>,
    /// Its target, where the library's types cannot hold it.
    pub(crate) target: Option<Bytes>,
    pub(crate) on_interim: Option<OnInterim>,
}

impl Talk {
    fn lock(&self) -> MutexGuard<'_, TalkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request goes next over the connection.
    pub(crate) fn ask(&self, asked: Asked) {
        let mut state = self.lock();
        (state.asked, state.wrote) = (Some(asked), false);
        (state.head, state.fault) = (None, None);
    }

    /// The head of the response, once the library has it.
    pub(crate) fn take_head(&self) -> Option<ResponseHead> {
        self.lock().head.take()
    }

    /// Why there is no response, where that was the origin's fault.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.lock().fault.clone()
    }

    /// Whether the connection must not be used for another request.
    pub(crate) fn is_tainted(&self) -> bool {
        let state = self.lock();
        state.tainted || state.deaf
    }

    /// The connection is not to be used for another request.
    pub(crate) fn taint(&self) {
        self.lock().tainted = true;
    }

    /// Whether the origin has stopped taking the request.
    pub(crate) fn is_deaf(&self) -> bool {
        self.lock().deaf
    }
}

/// A connection as the library sees it.
pub(crate) struct TalkStream<S> {
    inner: S,
    talk: Arc<Talk>,
    reading: Reading,
    raw: BytesMut,
    strict: BytesMut,
    searched: usize,
    interims: usize,
    writing: Writing,
    out: BytesMut,
}

enum Reading {
    /// Between two exchanges, or before the end of a head.
    Head,
    Body(Body),
    Tunnel,
    Ended,
}

enum Writing {
    /// Bytes go as they come; between two requests, or behind a head.
    Pass,
    /// A head is gathered, for it has a style.
    Head(BytesMut),
}

impl<S: AsyncRead + AsyncWrite + Unpin> TalkStream<S> {
    pub(crate) fn new(inner: S, talk: Arc<Talk>) -> Self {
        Self {
            inner,
            talk,
            reading: Reading::Head,
            raw: BytesMut::new(),
            strict: BytesMut::new(),
            searched: 0,
            interims: 0,
            writing: Writing::Pass,
            out: BytesMut::new(),
        }
    }

    /// Takes heads off what came up to the final one, if it is whole; `false`: more has to come.
    fn read_head(&mut self) -> io::Result<bool> {
        loop {
            if self.raw.is_empty() {
                return Ok(false);
            }
            let mut state = self.talk.lock();
            let Some(asked) = state.asked.as_ref().filter(|_| state.wrote) else {
                // Nothing was asked: whoever asks next must not get this for an answer.
                state.tainted = true;
                self.reading = Reading::Ended;
                return Ok(false);
            };
            let (method, on_interim) = (asked.method.clone(), asked.on_interim.clone());
            drop(state);
            let parsed = match end_of_head(&self.raw, self.searched) {
                Some(end) if end <= MAX_HEAD_BYTES => {
                    ResponseHead::parse(&self.raw.split_to(end), &method)
                }
                _ if self.raw.len() > MAX_HEAD_BYTES => {
                    let reason = format!("its head is over the limit of {MAX_HEAD_BYTES} bytes");
                    Err(Fault { status: 502, reason })
                }
                _ => {
                    self.searched = self.raw.len();
                    return Ok(false);
                }
            };
            self.searched = 0;
            let head = parsed.map_err(|fault| self.give_up(fault))?;
            if !head.is_interim() {
                self.begin_response(head);
                return Ok(true);
            }
            self.interims += 1;
            if self.interims > MAX_INTERIMS {
                let reason = format!("more than {MAX_INTERIMS} interim responses came");
                return Err(self.give_up(Fault { status: 502, reason }));
            }
            if let Some(on_interim) = on_interim {
                on_interim(&head);
            }
        }
    }

    fn give_up(&mut self, fault: Fault) -> io::Error {
        let mut state = self.talk.lock();
        state.tainted = true;
        let error = io::Error::new(io::ErrorKind::InvalidData, fault.reason.clone());
        state.fault = Some(fault);
        self.reading = Reading::Ended;
        error
    }

    fn begin_response(&mut self, head: ResponseHead) {
        let mut strict = Vec::new();
        head.write_strict(&mut strict);
        self.strict.extend_from_slice(&strict);
        let body = Body::new(head.framing);
        let mut state = self.talk.lock();
        state.tainted |= head.close;
        (self.reading, self.interims) = match head.status {
            101 => (Reading::Tunnel, 0),
            _ => (Reading::Body(body), 0),
        };
        state.head = Some(head);
        drop(state);
        self.end_response();
    }

    /// A response that has come to its end: nothing more is due.
    fn end_response(&mut self) {
        if matches!(&self.reading, Reading::Body(body) if body.has_ended()) {
            self.reading = Reading::Head;
            self.talk.lock().asked = None;
        }
    }

    /// Makes bytes for the library of what came; `false`: more has to come.
    fn advance(&mut self) -> io::Result<bool> {
        match &mut self.reading {
            Reading::Head => self.read_head(),
            Reading::Body(body) if !self.raw.is_empty() => match body.scan(&self.raw) {
                Ok(scan) => {
                    let piece = self.raw.split_to(scan.used);
                    self.strict.unsplit(piece);
                    self.end_response();
                    Ok(true)
                }
                Err(fault) => Err(self.give_up(fault)),
            },
            Reading::Tunnel if !self.raw.is_empty() => {
                self.strict.unsplit(self.raw.split());
                Ok(true)
            }
            Reading::Body(_) | Reading::Tunnel | Reading::Ended => Ok(false),
        }
    }

    fn poll_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.out.is_empty() {
            let written = ready!(Pin::new(&mut self.inner).poll_write(cx, &self.out))?;
            self.out.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    /// Before the first byte of a request: how its head is to be written.
    fn begin_request(&mut self) {
        let mut state = self.talk.lock();
        if state.asked.is_none() || std::mem::replace(&mut state.wrote, true) {
            return;
        }
        let asked = state.asked.as_ref();
        if asked.is_some_and(|asked| asked.style.is_some() || asked.target.is_some()) {
            self.writing = Writing::Head(BytesMut::new());
        }
    }

    /// Gathers a head and gives it its style; gives how much was taken.
    fn style_head(&mut self, bytes: &[u8]) -> usize {
        let Writing::Head(head) = &mut self.writing else { return 0 };
        let before = head.len();
        head.extend_from_slice(bytes);
        let Some(end) = end_of_head(head, before) else { return bytes.len() };
        let head = head.split_to(end);
        let state = self.talk.lock();
        let (mut style, mut target) = (Style::default(), None);
        if let Some(asked) = &state.asked {
            style = asked.style.clone().unwrap_or_default();
            target = asked.target.clone();
        }
        drop(state);
        self.out.extend_from_slice(&style.apply(&head, target.as_deref()));
        self.writing = Writing::Pass;
        end - before
    }

    /// An origin that takes no more may have answered: what it gets is dropped until that is read.
    fn after_write(&self, result: io::Result<usize>, len: usize) -> io::Result<usize> {
        match result {
            Err(error) if is_reset(&error) && !matches!(self.reading, Reading::Tunnel) => {
                self.talk.lock().deaf = true;
                Ok(len)
            }
            result => result,
        }
    }
}

fn is_reset(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionReset)
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TalkStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if !this.strict.is_empty() {
                let len = this.strict.len().min(buf.remaining());
                buf.put_slice(&this.strict.split_to(len));
                return Poll::Ready(Ok(()));
            }
            if matches!(this.reading, Reading::Ended) {
                return Poll::Ready(Ok(()));
            }
            if this.advance()? {
                continue;
            }
            if matches!(this.reading, Reading::Tunnel) {
                return Pin::new(&mut this.inner).poll_read(cx, buf);
            }
            if let Reading::Body(body) = &mut this.reading {
                let polled = poll_body(&mut this.inner, body, &mut this.raw, cx, buf);
                match ready!(polled)? {
                    None => this.reading = Reading::Ended,
                    Some(Err(fault)) => return Poll::Ready(Err(this.give_up(fault))),
                    Some(Ok(scan)) => {
                        this.end_response();
                        if scan.used > 0 {
                            return Poll::Ready(Ok(()));
                        }
                    }
                }
                continue;
            }
            this.raw.reserve(READ_BYTES);
            let reading = this.inner.read_buf(&mut this.raw);
            if ready!(Future::poll(std::pin::pin!(reading), cx))? == 0 {
                this.reading = Reading::Ended;
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TalkStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.begin_request();
        if self.talk.lock().deaf {
            return Poll::Ready(Ok(bytes.len()));
        }
        if let Err(error) = ready!(self.poll_out(cx)) {
            return Poll::Ready(self.after_write(Err(error), bytes.len()));
        }
        if matches!(self.writing, Writing::Head(_)) {
            return Poll::Ready(Ok(self.style_head(bytes)));
        }
        let result = ready!(Pin::new(&mut self.inner).poll_write(cx, bytes));
        Poll::Ready(self.after_write(result, bytes.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.begin_request();
        let passes = matches!(self.writing, Writing::Pass) && self.out.is_empty();
        if !passes || self.talk.lock().deaf {
            let first = pieces.iter().find(|piece| !piece.is_empty());
            return self.poll_write(cx, first.map_or(&[], |piece| piece));
        }
        let len = pieces.iter().map(|piece| piece.len()).sum();
        let result = ready!(Pin::new(&mut self.inner).poll_write_vectored(cx, pieces));
        Poll::Ready(self.after_write(result, len))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.talk.lock().deaf {
            return Poll::Ready(Ok(()));
        }
        let written = match ready!(self.poll_out(cx)) {
            Ok(()) => ready!(Pin::new(&mut self.inner).poll_flush(cx)),
            Err(error) => Err(error),
        };
        Poll::Ready(self.after_write(written.map(|()| 0), 0).map(drop))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_out(cx))?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
