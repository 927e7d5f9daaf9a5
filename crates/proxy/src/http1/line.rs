//! A client's connection: requests come in through the parser of [`proto::http1`], interim
//! responses go out beside what the library writes.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use proto::http1::{
    Body, Fault, Framing, MAX_HEAD_BYTES, MAX_TARGET_BYTES, RequestHead, ResponseHead, STYLE_FIELD,
    Scan, Style, end_of_head, escape_target,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::poll_body;

/// Most bytes read from the socket at a time.
const READ_BYTES: usize = 16 * 1024;
/// What the library gets in place of a request that is refused, for it to close behind the answer.
const REFUSED: &[u8] = b"GET / HTTP/1.1\r\nhost: refused\r\nconnection: close\r\n\r\n";

/// Longest target that the library takes, escaped.
const MAX_URI_BYTES: usize = u16::MAX as usize - 1;
/// Most bytes that are shown of a target that is none.
const SHOWN_BYTES: usize = 60;

/// What the two ends of a client's connection have for each other; see the module.
#[derive(Default)]
pub(crate) struct Line {
    state: Mutex<LineState>,
}

#[derive(Default)]
struct LineState {
    /// Heads that the library has and nobody has asked for: it takes one at a time, so at most two.
    heads: VecDeque<Result<RequestHead, Fault>>,
    /// Methods of requests whose response has not begun, for framing; as many.
    methods: VecDeque<Bytes>,
    /// Interim responses to write; bounded by the origin's, of which few are taken.
    interims: Vec<u8>,
    /// Who waits until these are on their way.
    drained: Option<Waker>,
    /// The connection's task, which writes them.
    task: Option<Waker>,
    /// What follows are bytes of another protocol.
    is_tunnel: bool,
    /// The request's body broke the framing.
    fault: Option<Fault>,
    /// A request's body has not come to its end.
    amid_body: bool,
}

impl Line {
    fn lock(&self) -> MutexGuard<'_, LineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The head of the request that the library hands over now, or why it is refused.
    pub(crate) fn take_head(&self) -> Option<Result<RequestHead, Fault>> {
        self.lock().heads.pop_front()
    }

    /// An interim response is to leave before the response; its head up to its empty line.
    pub(crate) fn interim(&self, head: &[u8]) {
        let mut state = self.lock();
        // Few come in earnest; who sends many gets on without them.
        if state.interims.len() + head.len() <= MAX_HEAD_BYTES {
            state.interims.extend_from_slice(head);
            // Whoever has one may be another task.
            state.task.take().into_iter().for_each(Waker::wake);
        }
    }

    /// Resolves when all interim responses are ahead of what the library writes next.
    pub(crate) async fn drained(&self) {
        let poll = |cx: &mut Context<'_>| {
            let mut state = self.lock();
            if state.interims.is_empty() {
                return Poll::Ready(());
            }
            state.drained = Some(cx.waker().clone());
            Poll::Pending
        };
        std::future::poll_fn(poll).await;
    }

    /// What comes from here on is passed as it is.
    pub(crate) fn become_tunnel(&self) {
        self.lock().is_tunnel = true;
    }

    /// Why the request's body is none, if it is so.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.lock().fault.clone()
    }

    /// Whether something of a request's body is still to come.
    pub(crate) fn is_amid_body(&self) -> bool {
        self.lock().amid_body
    }
}

/// Refuses a target that the library cannot hold, since it would do so without a word.
fn for_library(head: RequestHead) -> Result<RequestHead, Fault> {
    let escaped = escape_target(&head.target);
    if escaped.len() > MAX_URI_BYTES {
        let reason = format!("the request's target is over the limit of {MAX_URI_BYTES} bytes");
        return Err(Fault { status: 414, reason });
    }
    if http::Uri::try_from(escaped).is_ok() {
        return Ok(head);
    }
    let shown = head.target[..head.target.len().min(SHOWN_BYTES)].escape_ascii();
    Err(Fault { status: 400, reason: format!("'{shown}' is no target of a request") })
}

/// A client's connection as the library sees it.
pub(crate) struct LineStream<S> {
    socket: S,
    line: Arc<Line>,
    reading: Reading,
    /// As it came, not looked at.
    raw: BytesMut,
    /// For the library.
    strict: BytesMut,
    /// Of `raw`, searched for the end of a head.
    searched: usize,
    styles: bool,
    writing: Writing,
    /// To be written before anything else.
    out: BytesMut,
}

enum Reading {
    Head,
    Body(Body),
    Tunnel,
    /// What came is no request: nothing more is listened to until that is answered.
    Refused,
    /// The other side has ended, or is not listened to any more.
    Ended,
}

/// Responses are followed only where their heads may have to be written in another style.
enum Writing {
    Pass,
    Head(BytesMut),
    Body(Body),
}

impl<S> LineStream<S> {
    /// `styles`: responses may have a style of their own.
    pub(crate) fn new(socket: S, line: Arc<Line>, styles: bool) -> Self {
        let writing = if styles { Writing::Head(BytesMut::new()) } else { Writing::Pass };
        Self {
            socket,
            line,
            reading: Reading::Head,
            raw: BytesMut::new(),
            strict: BytesMut::new(),
            searched: 0,
            styles,
            writing,
            out: BytesMut::new(),
        }
    }

    /// Takes a head off what came, if it is whole; `false`: more has to come.
    fn read_head(&mut self) -> bool {
        let parsed = match end_of_head(&self.raw, self.searched) {
            Some(end) if end <= MAX_HEAD_BYTES => {
                RequestHead::parse(&self.raw.split_to(end)).and_then(for_library)
            }
            _ if self.raw.len() > MAX_HEAD_BYTES => Err(self.too_long()),
            _ => {
                self.searched = self.raw.len();
                return false;
            }
        };
        self.searched = 0;
        let mut state = self.line.lock();
        match &parsed {
            Ok(head) => {
                let mut strict = Vec::new();
                head.write_strict(&mut strict);
                self.strict.extend_from_slice(&strict);
                self.reading = match head.framing {
                    Framing::None | Framing::Length(0) => Reading::Head,
                    framing => Reading::Body(Body::new(framing)),
                };
                state.amid_body = matches!(self.reading, Reading::Body(_));
                state.methods.extend(self.styles.then(|| head.method.clone()));
            }
            Err(_) => {
                self.strict.extend_from_slice(REFUSED);
                self.reading = Reading::Refused;
                state.amid_body = true;
                state.methods.extend(self.styles.then(|| Bytes::from_static(b"GET")));
            }
        }
        state.heads.push_back(parsed);
        true
    }

    fn too_long(&self) -> Fault {
        let line = self.raw.iter().position(|byte| *byte == b'\n').unwrap_or(self.raw.len());
        let (status, what, most) = match line > MAX_TARGET_BYTES {
            true => (414, "the request's target", MAX_TARGET_BYTES),
            false => (431, "the request's head", MAX_HEAD_BYTES),
        };
        Fault { status, reason: format!("{what} is over the limit of {most} bytes") }
    }

    /// Makes bytes for the library of what came; `false`: more has to come.
    fn advance(&mut self) -> io::Result<bool> {
        if matches!(self.reading, Reading::Head) && self.line.lock().is_tunnel {
            self.reading = Reading::Tunnel;
        }
        match &mut self.reading {
            Reading::Head => {
                let blank = self.raw.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
                if blank.count() == self.raw.len() {
                    self.raw.clear();
                    return Ok(false);
                }
                Ok(self.read_head())
            }
            Reading::Body(body) if !self.raw.is_empty() => match body.scan(&self.raw) {
                Ok(scan) => {
                    let piece = self.raw.split_to(scan.used);
                    self.strict.unsplit(piece);
                    self.scanned(scan);
                    Ok(true)
                }
                Err(fault) => Err(self.broken_body(fault)),
            },
            Reading::Tunnel if !self.raw.is_empty() => {
                self.strict.unsplit(self.raw.split());
                Ok(true)
            }
            Reading::Body(_) | Reading::Tunnel | Reading::Refused | Reading::Ended => Ok(false),
        }
    }

    /// A piece of a request's body has gone to the library.
    fn scanned(&mut self, scan: Scan) {
        if scan.ended {
            self.reading = Reading::Head;
            self.line.lock().amid_body = false;
        }
    }

    /// What came is no body of that framing.
    fn broken_body(&mut self, fault: Fault) -> io::Error {
        let reason = fault.reason.clone();
        self.line.lock().fault = Some(fault);
        self.reading = Reading::Ended;
        io::Error::new(io::ErrorKind::InvalidData, reason)
    }

    /// Takes bytes of responses, the heads in the style that they name.
    fn restyle(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match &mut self.writing {
                Writing::Pass => {
                    self.out.extend_from_slice(bytes);
                    return;
                }
                Writing::Head(head) => {
                    let before = head.len();
                    head.extend_from_slice(bytes);
                    let Some(end) = end_of_head(head, before) else { return };
                    bytes = &bytes[end - before..];
                    let head = head.split_to(end);
                    self.writing = self.style_head(&head);
                }
                Writing::Body(body) => {
                    // The library's own framing.
                    let scan = body.scan(bytes).map_or((bytes.len(), false), |s| (s.used, s.ended));
                    self.out.extend_from_slice(&bytes[..scan.0]);
                    bytes = &bytes[scan.0..];
                    if scan.1 {
                        self.writing = Writing::Head(BytesMut::new());
                    }
                }
            }
        }
    }

    /// Writes a whole head; what follows it.
    fn style_head(&mut self, head: &[u8]) -> Writing {
        let method = self.line.lock().methods.pop_front().unwrap_or_default();
        let Ok(parsed) = ResponseHead::parse(head, &method) else {
            self.out.extend_from_slice(head);
            return Writing::Pass;
        };
        let style = parsed.fields.iter().find(|field| field.is(STYLE_FIELD));
        match style {
            None => self.out.extend_from_slice(head),
            Some(field) => {
                let plain: Vec<u8> = without_line(head, STYLE_FIELD);
                let style = Style::from_list(&field.value);
                self.out.extend_from_slice(&style.apply(&plain, None));
            }
        }
        let is_tunnel = parsed.status == 101 || method == "CONNECT" && parsed.status < 300;
        match parsed.framing {
            _ if is_tunnel => Writing::Pass,
            Framing::UntilClose => Writing::Pass,
            Framing::None | Framing::Length(0) => Writing::Head(BytesMut::new()),
            framing => Writing::Body(Body::new(framing)),
        }
    }
}

impl<S: AsyncWrite + Unpin> LineStream<S> {
    /// Writes what is in `out`.
    fn poll_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.out.is_empty() {
            let written = ready!(Pin::new(&mut self.socket).poll_write(cx, &self.out))?;
            self.out.advance(written);
        }
        Poll::Ready(Ok(()))
    }
}

/// A head without the lines of a field.
fn without_line(head: &[u8], name: &str) -> Vec<u8> {
    let is_named = |line: &&[u8]| {
        line.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name.as_bytes()))
            && line.get(name.len()) == Some(&b':')
    };
    head.split_inclusive(|byte| *byte == b'\n')
        .filter(|line| !is_named(line))
        .flatten()
        .copied()
        .collect()
}

impl<S: AsyncRead + Unpin> AsyncRead for LineStream<S> {
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
            if matches!(this.reading, Reading::Refused) {
                return Poll::Pending;
            }
            if matches!(this.reading, Reading::Ended) {
                return Poll::Ready(Ok(()));
            }
            if this.advance()? {
                continue;
            }
            if matches!(this.reading, Reading::Tunnel) {
                return Pin::new(&mut this.socket).poll_read(cx, buf);
            }
            if let Reading::Body(body) = &mut this.reading {
                let polled = poll_body(&mut this.socket, body, &mut this.raw, cx, buf);
                match ready!(polled)? {
                    // A body that is cut is seen as cut.
                    None => this.reading = Reading::Ended,
                    Some(Err(fault)) => return Poll::Ready(Err(this.broken_body(fault))),
                    Some(Ok(scan)) => {
                        this.scanned(scan);
                        if scan.used > 0 {
                            return Poll::Ready(Ok(()));
                        }
                    }
                }
                continue;
            }
            this.raw.reserve(READ_BYTES);
            let len = ready!(read_some(&mut this.socket, cx, &mut this.raw))?;
            if len == 0 {
                // What of a head has come is none.
                this.reading = Reading::Ended;
            }
        }
    }
}

/// Reads into the spare room of a buffer; gives how much.
fn read_some<S: AsyncRead + Unpin>(
    socket: &mut S,
    cx: &mut Context<'_>,
    into: &mut BytesMut,
) -> Poll<io::Result<usize>> {
    let reading = tokio::io::AsyncReadExt::read_buf(socket, into);
    Future::poll(std::pin::pin!(reading), cx)
}

impl<S: AsyncWrite + Unpin> AsyncWrite for LineStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_out(cx))?;
        if matches!(self.writing, Writing::Pass) {
            return Pin::new(&mut self.socket).poll_write(cx, bytes);
        }
        self.restyle(bytes);
        // What is left of it goes with the next call.
        let _ = self.poll_out(cx)?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if matches!(self.writing, Writing::Pass) {
            ready!(self.poll_out(cx))?;
            return Pin::new(&mut self.socket).poll_write_vectored(cx, pieces);
        }
        let first = pieces.iter().find(|piece| !piece.is_empty());
        self.poll_write(cx, first.map_or(&[], |piece| piece))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The library has given all that it had: an interim response comes between two others.
        let (interims, drained) = {
            let mut state = self.line.lock();
            state.task = Some(cx.waker().clone());
            (std::mem::take(&mut state.interims), state.drained.take())
        };
        self.out.extend_from_slice(&interims);
        drained.into_iter().for_each(Waker::wake);
        self.poll_out(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_out(cx))?;
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
