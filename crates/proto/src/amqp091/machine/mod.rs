//! The server's side of one connection.
//!
//! After each [`Server::handle_input`] the caller polls until there is nothing left. Frames are
//! read one by one while it polls, so that what a method is answered with, by [`Server::send`] and
//! its like between two polls, holds for the next frame already.

mod alive;
mod channel;
pub mod client;
mod handshake;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use self::alive::Alive;
use self::channel::Channel;
pub use self::channel::Publish;
pub use self::handshake::{Credentials, Peer};
use super::frame::{Frame, MIN_FRAME_BYTES, encode_content, encode_method};
use super::method::{CONNECTION, ids_of};
use super::{FrameKind, MAX_SHORT_BYTES, Method, ReplyCode};
use crate::Error;

/// Until a client agrees that the connection is closed.
const MAX_CLOSING: Duration = Duration::from_secs(5);
/// Bytes that are handed out to be sent at once, as soon as there are that many.
const MAX_TRANSMIT_BYTES: usize = 64 << 10;

/// What this side tells of itself and accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The program, for the client's log.
    pub product: String,
    /// Its version.
    pub version: String,
    /// Whether the client may be who its certificate says (EXTERNAL).
    pub has_external: bool,
    /// Greatest number of a channel, at least 1.
    pub channel_max: u16,
    /// Longest frame in bytes, head and end included, at least [`MIN_FRAME_BYTES`].
    pub frame_max_bytes: u32,
    /// Seconds between signs of life that the client is asked for; 0 asks for none.
    pub heartbeat_s: u16,
    /// Longest body of a message.
    pub max_message_bytes: u64,
}

/// What happens.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Bytes of the stream came.
    Bytes(&'a [u8]),
    /// The time that [`Output::WakeAt`] named has come.
    Wake,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send these bytes.
    Transmit(Bytes),
    /// Answer by [`Server::authenticated`] whether it is so. No frame is read before.
    Authenticate(Credentials),
    /// Answer by [`Server::opened`], or by [`Server::close`]. No frame is read before.
    Open {
        /// The virtual host that is asked for.
        virtual_host: String,
    },
    /// The client has opened a channel.
    ChannelOpened(u16),
    /// A channel is closed, by the client or by [`Server::close_channel`].
    ChannelClosed(u16),
    /// A method on an open channel, which [`Method::decode`] reads.
    Method {
        /// The channel.
        channel: u16,
        /// Its payload, which has been read once without a fault.
        payload: Bytes,
    },
    /// A message was published.
    Publish(Publish),
    /// Call with [`Input::Wake`] then, which replaces what was named before.
    WakeAt(Duration),
    /// The connection is over: what is to be sent has been handed out, and the stream ends. Its
    /// channels are closed without a word of each.
    Closed(Closed),
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// The client closed it in good order.
    Client,
    /// This side closed it, with this code and text.
    Server(ReplyCode, String),
    /// The client does not speak this protocol.
    Protocol,
    /// The client took too long, or gave no sign of life.
    Silent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Header,
    Start,
    Authenticating,
    Tune,
    Open,
    Opening,
    Running,
    Closing,
    Closed,
}

/// A refusal: code, text, and the method that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    code: ReplyCode,
    text: String,
    ids: (u16, u16),
}

impl Fault {
    fn new(code: ReplyCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), ids: (0, 0) }
    }
}

/// The machine.
#[derive(Debug)]
pub struct Server {
    settings: Settings,
    phase: Phase,
    input: BytesMut,
    out: Vec<u8>,
    outputs: VecDeque<Output>,
    channels: BTreeMap<u16, Channel>,
    held_bytes: u64,
    peer: Peer,
    alive: Alive,
    now: Duration,
    closing: Option<Closed>,
}

impl Server {
    /// A connection that begins.
    #[must_use]
    pub fn new(now: Duration, settings: Settings) -> Self {
        let channel_max = settings.channel_max.max(1);
        let frame_max_bytes = settings.frame_max_bytes.max(MIN_FRAME_BYTES);
        Self {
            peer: Peer { channel_max, frame_max_bytes, ..Peer::default() },
            settings: Settings { channel_max, frame_max_bytes, ..settings },
            phase: Phase::Header,
            input: BytesMut::new(),
            out: Vec::new(),
            outputs: VecDeque::new(),
            channels: BTreeMap::new(),
            held_bytes: 0,
            alive: Alive::new(now),
            now,
            closing: None,
        }
    }

    /// Takes what happened; the caller then polls.
    pub fn handle_input(&mut self, now: Duration, input: Input<'_>) {
        self.now = now;
        match input {
            Input::Bytes(bytes) if self.phase != Phase::Closed => {
                self.alive.received(now);
                self.input.extend_from_slice(bytes);
            }
            Input::Bytes(_) => {}
            Input::Wake => self.wake(),
        }
    }

    /// The next thing to do; `None` when nothing is left.
    pub fn poll_output(&mut self) -> Option<Output> {
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return Some(output);
            }
            if self.out.len() >= MAX_TRANSMIT_BYTES {
                return Some(self.transmit());
            }
            if self.read() {
                continue;
            }
            if !self.out.is_empty() {
                return Some(self.transmit());
            }
            if let Some(closed) = self.closing.take_if(|_| self.phase == Phase::Closed) {
                return Some(Output::Closed(closed));
            }
            let deadline = match self.phase {
                Phase::Closed => None,
                _ => self.alive.announce(),
            };
            return deadline.map(Output::WakeAt);
        }
    }

    /// What the client has told of itself and agreed to.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Whether methods may be sent on the channel.
    #[must_use]
    pub fn is_open(&self, channel: u16) -> bool {
        self.phase == Phase::Running
            && matches!(self.channels.get(&channel), Some(Channel::Open(_)))
    }

    /// Whether the connection is closed, or about to be.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Closing | Phase::Closed)
    }

    /// Appends a method on an open channel; on others it is dropped.
    pub fn send(&mut self, channel: u16, method: &Method<'_>) {
        if self.is_open(channel) {
            self.put(channel, method);
        }
    }

    /// Appends a method with its content on an open channel; on others it is dropped. The error
    /// says that the properties do not fit a frame of this client: nothing was appended.
    pub fn send_content(
        &mut self,
        channel: u16,
        method: &Method<'_>,
        properties: &[u8],
        body: &[u8],
    ) -> Result<(), Error> {
        if !self.is_open(channel) {
            return Ok(());
        }
        let before = self.out.len();
        let max_bytes = self.peer.frame_max_bytes;
        self.alive.sent(self.now);
        encode_method(channel, method, &mut self.out)
            .and_then(|()| encode_content(channel, properties, body, max_bytes, &mut self.out))
            .inspect_err(|_| self.out.truncate(before))
    }

    /// Refuses on a channel: it is closed, and what else comes on it is not read. A hard code
    /// closes the connection (AMQP 0.9.1 §4.8.1). `ids` are of the method that is refused.
    pub fn close_channel(&mut self, channel: u16, code: ReplyCode, text: &str, ids: (u16, u16)) {
        if code.is_hard() {
            return self.close(code, text, ids);
        }
        if !self.is_open(channel) {
            return;
        }
        let text = text_of(code, text);
        let (class_id, method_id) = ids;
        let reply_code = code.number();
        let close =
            Method::ChannelClose { reply_code, reply_text: short(&text), class_id, method_id };
        self.put(channel, &close);
        self.replace(channel, Channel::Closing { is_crossed: false });
        self.outputs.push_back(Output::ChannelClosed(channel));
    }

    /// Closes the connection.
    pub fn close(&mut self, code: ReplyCode, text: &str, ids: (u16, u16)) {
        if matches!(self.phase, Phase::Closing | Phase::Closed) {
            return;
        }
        let text = text_of(code, text);
        let (class_id, method_id) = ids;
        let reply_code = code.number();
        let close =
            Method::ConnectionClose { reply_code, reply_text: short(&text), class_id, method_id };
        self.put(0, &close);
        self.forget_channels();
        self.closing = Some(Closed::Server(code, text));
        self.phase = Phase::Closing;
        self.alive.closing(self.now, MAX_CLOSING);
    }

    /// What waits to be sent, so that the caller can see how much room is left between two
    /// messages without reading on; nothing if there is none.
    pub fn take_transmit(&mut self) -> Bytes {
        Bytes::from(std::mem::take(&mut self.out))
    }

    fn put(&mut self, channel: u16, method: &Method<'_>) {
        self.alive.sent(self.now);
        // What this side says fits: its strings are short.
        let done = encode_method(channel, method, &mut self.out);
        debug_assert_eq!(done, Ok(()));
    }

    fn transmit(&mut self) -> Output {
        Output::Transmit(self.take_transmit())
    }

    fn end(&mut self, closed: Closed) {
        self.forget_channels();
        self.closing = Some(self.closing.take().unwrap_or(closed));
        self.phase = Phase::Closed;
        self.input = BytesMut::new();
    }

    fn forget_channels(&mut self) {
        self.channels.clear();
        self.held_bytes = 0;
    }

    fn wake(&mut self) {
        match self.alive.wake(self.now, &mut self.out) {
            alive::Verdict::Fine => {}
            // AMQP 0.9.1 §4.2.7: a client without a sign of life is closed without a handshake.
            alive::Verdict::Silent => self.end(Closed::Silent),
        }
    }

    /// Reads the next frame, if there is one that may be read; whether something happened.
    fn read(&mut self) -> bool {
        let result = match self.phase {
            Phase::Header => return self.read_header(),
            Phase::Authenticating | Phase::Opening | Phase::Closed => return false,
            _ => Frame::decode(&self.input, self.peer.frame_max_bytes),
        };
        let (kind, channel, len) = match result {
            Ok(None) => return false,
            Ok(Some((frame, len))) => (frame.kind, frame.channel, len),
            Err(error) => {
                // Nothing behind it means anything: whatever comes is thrown away.
                self.refuse(Fault::new(ReplyCode::FrameError, error.to_string()));
                self.end(Closed::Protocol);
                return true;
            }
        };
        let frame = self.input.split_to(len).freeze();
        let overhead = super::OVERHEAD_BYTES as usize;
        let payload = frame.slice(overhead - 1..len - 1);
        if let Err(fault) = self.take(kind, channel, payload) {
            self.refuse(fault);
        }
        true
    }

    fn refuse(&mut self, fault: Fault) {
        self.close(fault.code, &fault.text, fault.ids);
    }

    fn take(&mut self, kind: FrameKind, channel: u16, payload: Bytes) -> Result<(), Fault> {
        match (kind, self.phase) {
            (FrameKind::Heartbeat, _) => Ok(()),
            (FrameKind::Method, Phase::Closing) => {
                self.take_closing(channel, &payload);
                Ok(())
            }
            (_, Phase::Closing) => Ok(()),
            (_, Phase::Running) if channel != 0 => self.take_channel(kind, channel, payload),
            (FrameKind::Method, _) => {
                let ids = ids_of(&payload).unwrap_or_default();
                let method = method_of(&payload)?;
                let refused = match self.phase {
                    Phase::Running => self.take_connection(&method),
                    _ if channel != 0 => Err(unexpected("a channel before the connection is open")),
                    _ => self.take_handshake(&method),
                };
                refused.map_err(|fault| Fault { ids, ..fault })
            }
            (FrameKind::Header | FrameKind::Body, _) => Err(unexpected("content on channel 0")),
        }
    }

    /// While this side waits for the answer to its Close, all else is thrown away
    /// (AMQP 0.9.1 §1.4.2.9).
    fn take_closing(&mut self, channel: u16, payload: &[u8]) {
        match Method::decode(payload) {
            Ok(Method::ConnectionClose { .. }) if channel == 0 => {
                self.put(0, &Method::ConnectionCloseOk {});
                self.end(Closed::Client);
            }
            Ok(Method::ConnectionCloseOk {}) if channel == 0 => self.end(Closed::Client),
            _ => {}
        }
    }

    fn take_connection(&mut self, method: &Method<'_>) -> Result<(), Fault> {
        match method {
            Method::ConnectionClose { .. } => {
                self.put(0, &Method::ConnectionCloseOk {});
                self.end(Closed::Client);
                Ok(())
            }
            Method::ConnectionBlocked { .. } | Method::ConnectionUnblocked {} => Ok(()),
            Method::ConnectionUpdateSecret { .. } => {
                Err(Fault::new(ReplyCode::NotImplemented, "secrets here do not expire"))
            }
            other => {
                let text = match other.ids() {
                    (CONNECTION, _) => "this method of the connection has no place here",
                    _ => "this method has no place on channel 0",
                };
                Err(Fault::new(ReplyCode::CommandInvalid, text))
            }
        }
    }
}

fn unexpected(what: &str) -> Fault {
    Fault::new(ReplyCode::UnexpectedFrame, what)
}

/// Reads a method, or says why the connection ends.
fn method_of(payload: &[u8]) -> Result<Method<'_>, Fault> {
    Method::decode(payload).map_err(|error| {
        let ids = ids_of(payload).unwrap_or_default();
        let code = match Method::ALL.contains(&ids) {
            true => ReplyCode::SyntaxError,
            false => ReplyCode::NotImplemented,
        };
        Fault { code, text: error.to_string(), ids }
    })
}

/// Texts begin with the name of the code, as those of RabbitMQ do.
fn text_of(code: ReplyCode, text: &str) -> String {
    format!("{} - {text}", code.parts().1)
}

/// As much of a text as fits a short string.
fn short(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_SHORT_BYTES)).unwrap_or_default()
}
