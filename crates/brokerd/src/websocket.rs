//! MQTT over WebSocket (MQTT 5 §6).

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use broker::Protocol;
use bytes::{Buf, Bytes, BytesMut};
use proto::http1::RequestHead;
use proto::websocket::{Event, GUID, Opcode, Peer, Reader, encode, text};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};

use crate::connection;
use crate::owner::Owner;

/// Longest head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// How long the request may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest message, in bytes: a client may put several packets into one, and one into several.
const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// What both sides say to speak (MQTT 5 §6, MQTT-6.0.0-3), and what MQTT 3.1 called it.
const SUBPROTOCOLS: [&str; 2] = ["mqtt", "mqttv3.1"];

/// Serves a client that is to open a WebSocket.
pub(crate) async fn run(
    owner: &Rc<Owner>,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    protocol: Protocol,
    certified: Option<Arc<str>>,
    peer: SocketAddr,
) {
    let opened = tokio::time::timeout(PATIENCE, open(&mut stream)).await;
    let rest = match opened {
        Ok(Ok(rest)) => rest,
        Ok(Err(error)) => {
            tracing::info!(%peer, %error, "no WebSocket");
            return;
        }
        Err(_) => {
            tracing::info!(%peer, "no WebSocket within {} s", PATIENCE.as_secs());
            return;
        }
    };
    let (reader, writer) = tokio::io::split(Messages::new(stream, &rest, Peer::Client));
    connection::run(owner, reader, writer, protocol, certified, peer).await;
}

/// Reads the request and answers it; what came behind it.
async fn open(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<BytesMut> {
    let mut input = BytesMut::new();
    let end = loop {
        if let Some(end) = proto::http1::end_of_head(&input, 0) {
            break end;
        }
        if input.len() > MAX_HEAD_BYTES {
            return Err(io::Error::other(format!("a head over {MAX_HEAD_BYTES} bytes")));
        }
        if stream.read_buf(&mut input).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = input.split_to(end);
    let answer = RequestHead::parse(&head)
        .map_err(|fault| fault.to_string())
        .and_then(|head| accept(&head).map_err(str::to_owned));
    match answer {
        Ok(answer) => {
            stream.write_all(answer.as_bytes()).await?;
            stream.flush().await?;
            Ok(input)
        }
        Err(what) => {
            let answer = format!(
                "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\
                 Content-Length: {}\r\n\r\n{what}\n",
                what.len() + 1
            );
            stream.write_all(answer.as_bytes()).await?;
            stream.shutdown().await?;
            Err(io::Error::other(what))
        }
    }
}

/// The answer to a client's handshake (RFC 6455 §4.2).
fn accept(head: &RequestHead) -> Result<String, &'static str> {
    let field = |name: &str| {
        head.fields
            .iter()
            .find(|field| field.is(name))
            .and_then(|field| str::from_utf8(&field.value).ok().map(str::trim))
    };
    let has = |name: &str, wanted: &str| {
        field(name).is_some_and(|value| {
            value.split(',').any(|member| member.trim().eq_ignore_ascii_case(wanted))
        })
    };
    if head.method != "GET" || !has("upgrade", "websocket") || !has("connection", "upgrade") {
        return Err("this is a broker of MQTT over WebSocket, and that is no handshake of one");
    }
    if field("sec-websocket-version") != Some("13") {
        return Err("Sec-WebSocket-Version is not 13");
    }
    let key = field("sec-websocket-key").ok_or("no Sec-WebSocket-Key")?;
    let protocol = SUBPROTOCOLS
        .into_iter()
        .find(|protocol| has("sec-websocket-protocol", protocol))
        .ok_or("the client offers no subprotocol mqtt (Sec-WebSocket-Protocol)")?;
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, [key, GUID].concat().as_bytes());
    Ok(format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n",
        text(hash.as_ref())
    ))
}

/// The WebSocket of a client, whose handshake is done, as a stream of bytes.
pub(crate) fn of_client<S: AsyncRead + AsyncWrite + Unpin>(stream: S) -> Messages<S> {
    Messages::new(stream, &[], Peer::Server)
}

/// The bytes in the messages of a WebSocket.
pub(crate) struct Messages<S> {
    stream: S,
    /// Who is at the other end.
    peer: Peer,
    reader: Reader,
    /// Of a message that came.
    came: Bytes,
    /// Frames that are to be written.
    leaves: BytesMut,
    has_ended: bool,
}

impl<S> Messages<S> {
    fn new(stream: S, rest: &[u8], peer: Peer) -> Self {
        let mut reader = Reader::new(peer, MAX_MESSAGE_BYTES);
        reader.receive(rest);
        Self { stream, peer, reader, came: Bytes::new(), leaves: BytesMut::new(), has_ended: false }
    }
}

impl<S> Messages<S> {
    /// Puts a frame behind those that are to be written. A client masks it (RFC 6455 §5.3).
    fn put(&mut self, opcode: Opcode, bytes: &[u8]) -> io::Result<()> {
        let mask = match self.peer {
            Peer::Client => None,
            Peer::Server => {
                let mut mask = [0; 4];
                let random = SystemRandom::new().fill(&mut mask);
                random.map_err(|_| io::Error::other("no random numbers"))?;
                Some(mask)
            }
        };
        self.leaves.extend_from_slice(&encode(opcode, bytes, mask));
        Ok(())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Messages<S> {
    /// Writes what is to be written.
    fn poll_leave(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.leaves.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, &self.leaves))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.leaves.advance(written);
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Takes what came; whether there is something to read.
    fn decode(&mut self) -> io::Result<bool> {
        while self.came.is_empty() {
            match self.reader.decode().map_err(io::Error::other)? {
                None => return Ok(false),
                Some(Event::Message(bytes)) => self.came = bytes,
                Some(Event::Ping(bytes)) => {
                    self.put(Opcode::Pong, &bytes)?;
                }
                Some(Event::Close(_)) => {
                    self.put(Opcode::Close, &[])?;
                    self.has_ended = true;
                    return Ok(true);
                }
            }
        }
        Ok(true)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Messages<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.decode()? {
                let len = this.came.len().min(into.remaining());
                into.put_slice(&this.came.split_to(len));
                return Poll::Ready(Ok(()));
            }
            if !this.leaves.is_empty() && this.poll_leave(context).is_ready() {
                continue;
            }
            let mut piece = [0; 4096];
            let mut buffer = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.reader.receive(buffer.filled());
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Messages<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_leave(context))?;
        this.put(Opcode::Binary, bytes)?;
        // It is taken; what is not written by now is with the next or with flush.
        let _ = this.poll_leave(context)?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_leave(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.has_ended {
            this.has_ended = true;
            this.put(Opcode::Close, &[])?;
        }
        ready!(this.poll_leave(context))?;
        Pin::new(&mut this.stream).poll_shutdown(context)
    }
}
