//! The client's side of one connection of AMQP 0.9.1: bytes and time come in, and what is to be
//! done goes out.
//!
//! It shows who it is, agrees on bounds, opens the connection and one channel, and puts messages
//! together that come over it. After each [`Client::handle_input`] the caller polls until there is
//! nothing left. What is sent on the channel, by [`Client::send`] and its like, is the caller's. A
//! connection that is over is not made again: that is a new client.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::alive::{Alive, Verdict};
use super::{Credentials, short};
use crate::Error;
use crate::amqp091::{
    ContentHeader, Frame, FrameKind, MAX_SHORT_BYTES, MIN_FRAME_BYTES, Method, OVERHEAD_BYTES,
    PROTOCOL_HEADER, Table, TableBuf, Value, encode_content, encode_method,
};

/// The one channel.
const CHANNEL: u16 = 1;
/// Longest frame that is taken, in bytes.
const MAX_FRAME_BYTES: u32 = 128 << 10;
/// Until the server agrees to the end: what is on the way to it may take as long, and be refused.
const MAX_CLOSING: Duration = Duration::from_secs(30);
/// Room that is made for a body before any of it has come.
const MAX_FIRST_BYTES: u64 = 16 << 10;
/// What a client understands, as servers look it up.
const CAPABILITIES: [&str; 4] =
    ["publisher_confirms", "basic.nack", "consumer_cancel_notify", "authentication_failure_close"];

/// Who a client is, and what it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What operators know the connection by; empty: nothing.
    pub name: String,
    /// How it shows who it is: by PLAIN or EXTERNAL.
    pub credentials: Credentials,
    /// The virtual host.
    pub virtual_host: String,
    /// Seconds between signs of life; a server that wants them more often gets its way. 0: none.
    pub heartbeat_s: u16,
    /// Longest message that is taken.
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

/// A message that came, or came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The method that brings it, which [`Method::decode`] reads: `BasicDeliver` or `BasicReturn`.
    pub method: Bytes,
    /// Flags and properties, as they came: whether they can be read is for the caller to see.
    pub properties: Bytes,
    /// The body.
    pub body: Bytes,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send these bytes.
    Transmit(Bytes),
    /// Call with [`Input::Wake`] then, which replaces what was named before.
    WakeAt(Duration),
    /// The channel is open.
    Opened,
    /// A method came on the channel, which [`Method::decode`] reads.
    Method(Bytes),
    /// A message came.
    Message(Message),
    /// The server has closed the channel, with this code and text. [`Client::reopen`] opens it
    /// again.
    ChannelClosed(u16, String),
    /// The connection is over: what is to be sent has been handed out.
    Closed(Closed),
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// The caller wanted it.
    Asked,
    /// The server closed it, with this code and text.
    ByServer(u16, String),
    /// The server sent what it may not send, or speaks something else.
    Refused(String),
    /// The server took too long, or gave no sign of life.
    Silent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Start,
    Tune,
    Open,
    Channel,
    Running,
    /// The server has closed the channel.
    Channelless,
    Closing,
    Closed,
}

/// A message in the middle.
#[derive(Debug)]
struct Assembly {
    method: Bytes,
    properties: Bytes,
    body: Vec<u8>,
    /// Bytes of the body in all; `None` before the header has come.
    body_bytes: Option<u64>,
}

/// The machine.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    phase: Phase,
    input: BytesMut,
    out: Vec<u8>,
    outputs: VecDeque<Output>,
    assembly: Option<Assembly>,
    max_frame_bytes: u32,
    alive: Alive,
    now: Duration,
    closed: Option<Closed>,
}

impl Client {
    /// A client whose connection has just been made.
    #[must_use]
    pub fn new(now: Duration, settings: Settings) -> Self {
        Self {
            settings,
            phase: Phase::Start,
            input: BytesMut::new(),
            out: PROTOCOL_HEADER.to_vec(),
            outputs: VecDeque::new(),
            assembly: None,
            max_frame_bytes: MAX_FRAME_BYTES,
            alive: Alive::new(now),
            now,
            closed: None,
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
            Input::Wake if self.phase == Phase::Closed => {}
            Input::Wake => match self.alive.wake(now, &mut self.out) {
                Verdict::Fine => {}
                Verdict::Silent => self.end(Closed::Silent),
            },
        }
    }

    /// The next thing to do; `None` when nothing is left.
    pub fn poll_output(&mut self) -> Option<Output> {
        while self.outputs.is_empty() && self.read() {}
        if !self.out.is_empty() {
            return Some(Output::Transmit(std::mem::take(&mut self.out).into()));
        }
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        if let Some(closed) = self.closed.take_if(|_| self.phase == Phase::Closed) {
            return Some(Output::Closed(closed));
        }
        let deadline = match self.phase {
            Phase::Closed => None,
            _ => self.alive.announce(),
        };
        deadline.map(Output::WakeAt)
    }

    /// Whether methods may be sent.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Running
    }

    /// Bytes that are kept because the rest has not come or was not taken.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.input.len() + self.out.len() + self.assembly.as_ref().map_or(0, |it| it.body.len())
    }

    /// Bytes that are to go and were not handed out.
    #[must_use]
    pub fn unsent_bytes(&self) -> usize {
        self.out.len()
    }

    /// Appends a method on the channel; where that is not open, it is dropped.
    ///
    /// # Errors
    /// [`Error::Caller`] for a text of over 255 bytes: nothing was appended.
    pub fn send(&mut self, method: &Method<'_>) -> Result<(), Error> {
        if !self.is_open() {
            return Ok(());
        }
        self.alive.sent(self.now);
        encode_method(CHANNEL, method, &mut self.out)
    }

    /// Appends a method with its content on the channel; where that is not open, it is dropped.
    ///
    /// # Errors
    /// [`Error::Caller`] for a text of over 255 bytes, [`Error::Limit`] for properties that do not
    /// fit one frame: nothing was appended.
    pub fn send_content(
        &mut self,
        method: &Method<'_>,
        properties: &[u8],
        body: &[u8],
    ) -> Result<(), Error> {
        if !self.is_open() {
            return Ok(());
        }
        let (before, max_bytes) = (self.out.len(), self.max_frame_bytes);
        self.alive.sent(self.now);
        encode_method(CHANNEL, method, &mut self.out)
            .and_then(|()| encode_content(CHANNEL, properties, body, max_bytes, &mut self.out))
            .inspect_err(|_| self.out.truncate(before))
    }

    /// Opens the channel again that the server has closed.
    pub fn reopen(&mut self) {
        if self.phase == Phase::Channelless {
            self.phase = Phase::Channel;
            self.put(CHANNEL, &Method::ChannelOpen {});
        }
    }

    /// Ends the connection; [`Output::Closed`] comes once the server agrees.
    pub fn close(&mut self) {
        match self.phase {
            Phase::Closing | Phase::Closed => {}
            Phase::Start => self.end(Closed::Asked),
            _ => {
                let reply_text = "that is all";
                let close = Method::ConnectionClose {
                    reply_code: 200,
                    reply_text,
                    class_id: 0,
                    method_id: 0,
                };
                self.put(0, &close);
                self.closed = Some(Closed::Asked);
                self.phase = Phase::Closing;
                self.alive.closing(self.now, MAX_CLOSING);
            }
        }
    }

    fn put(&mut self, channel: u16, method: &Method<'_>) {
        self.alive.sent(self.now);
        // What this side says of its own fits.
        let done = encode_method(channel, method, &mut self.out);
        debug_assert_eq!(done, Ok(()));
    }

    fn end(&mut self, closed: Closed) {
        self.closed = Some(self.closed.take().unwrap_or(closed));
        self.phase = Phase::Closed;
        self.input = BytesMut::new();
        self.assembly = None;
    }

    /// Reads the next frame, if it is whole; whether something happened.
    fn read(&mut self) -> bool {
        if self.phase == Phase::Closed {
            return false;
        }
        // AMQP 0.9.1 §4.2.2: a server that speaks something else says what, and hangs up.
        if self.phase == Phase::Start && self.input.starts_with(b"AMQP") {
            self.end(Closed::Refused("the server does not speak AMQP 0.9.1".to_owned()));
            return true;
        }
        let (kind, channel, len) = match Frame::decode(&self.input, self.max_frame_bytes) {
            Ok(None) => return false,
            Ok(Some((frame, len))) => (frame.kind, frame.channel, len),
            Err(error) => {
                self.end(Closed::Refused(error.to_string()));
                return true;
            }
        };
        let frame = self.input.split_to(len).freeze();
        let overhead = OVERHEAD_BYTES as usize;
        let payload = frame.slice(overhead - 1..len - 1);
        if let Err(why) = self.take(kind, channel, payload) {
            self.end(Closed::Refused(why));
        }
        true
    }

    fn take(&mut self, kind: FrameKind, channel: u16, payload: Bytes) -> Result<(), String> {
        match (kind, channel) {
            (FrameKind::Heartbeat, _) => Ok(()),
            (FrameKind::Method, 0) => {
                let method = Method::decode(&payload).map_err(|error| error.to_string())?;
                self.take_connection(&method)
            }
            (FrameKind::Method, CHANNEL) if self.phase == Phase::Closing => {
                self.take_late(&payload);
                Ok(())
            }
            _ if matches!(self.phase, Phase::Closing | Phase::Channelless) => Ok(()),
            (FrameKind::Method, CHANNEL) => self.take_method(payload),
            (FrameKind::Header, CHANNEL) => self.take_header(&payload),
            (FrameKind::Body, CHANNEL) => self.take_body(&payload),
            _ => Err(format!("a frame on channel {channel}, which is not open")),
        }
    }

    /// A method of the connection.
    fn take_connection(&mut self, method: &Method<'_>) -> Result<(), String> {
        match (self.phase, method) {
            (_, Method::ConnectionClose { reply_code, reply_text, .. }) => {
                self.put(0, &Method::ConnectionCloseOk {});
                self.end(Closed::ByServer(*reply_code, (*reply_text).to_owned()));
                Ok(())
            }
            (Phase::Closing, Method::ConnectionCloseOk {}) => {
                self.end(Closed::Asked);
                Ok(())
            }
            (Phase::Closing, _)
            | (_, Method::ConnectionBlocked { .. } | Method::ConnectionUnblocked {}) => Ok(()),
            (Phase::Start, Method::ConnectionStart { mechanisms, .. }) => self.answer(mechanisms),
            (Phase::Tune, &Method::ConnectionTune { channel_max: _, frame_max, heartbeat }) => {
                self.agree(frame_max, heartbeat)
            }
            (Phase::Open, Method::ConnectionOpenOk {}) => {
                self.phase = Phase::Channel;
                self.put(CHANNEL, &Method::ChannelOpen {});
                Ok(())
            }
            _ => Err("a method of the connection that has no place here".to_owned()),
        }
    }

    /// Shows who this is: by PLAIN (RFC 4616), or EXTERNAL (RFC 4422 appendix A).
    fn answer(&mut self, mechanisms: &[u8]) -> Result<(), String> {
        let (mechanism, response) = match &self.settings.credentials {
            Credentials::Password { user, password } => {
                ("PLAIN", [b"\0", user.as_bytes(), b"\0", password].concat())
            }
            Credentials::External => ("EXTERNAL", Vec::new()),
        };
        let names = String::from_utf8_lossy(mechanisms).into_owned();
        if !names.split(' ').any(|name| name == mechanism) {
            return Err(format!("the server takes {}, not {mechanism}", short(&names)));
        }
        let (mut capabilities, mut properties) = (TableBuf::default(), TableBuf::default());
        for name in CAPABILITIES {
            let _ = capabilities.put(name, &Value::Bool(true));
        }
        for (name, value) in [
            ("product", Value::Text(b"longwire")),
            ("version", Value::Text(env!("CARGO_PKG_VERSION").as_bytes())),
            ("connection_name", Value::Text(self.settings.name.as_bytes())),
            ("capabilities", Value::Table(capabilities.as_table())),
        ] {
            // All of these names are short.
            let _ = properties.put(name, &value);
        }
        let client_properties: Table<'_> = properties.as_table();
        let start = Method::ConnectionStartOk {
            client_properties,
            mechanism,
            response: &response,
            locale: "en_US",
        };
        self.put(0, &start);
        self.phase = Phase::Tune;
        Ok(())
    }

    /// The server's bounds: no more than it offers is asked for (AMQP 0.9.1 §1.4.2.6).
    fn agree(&mut self, frame_max: u32, heartbeat: u16) -> Result<(), String> {
        if (1..MIN_FRAME_BYTES).contains(&frame_max) {
            return Err(format!("the server takes frames of {frame_max} bytes: at least 4096"));
        }
        if self.settings.virtual_host.len() > MAX_SHORT_BYTES {
            return Err("a virtual host has at most 255 bytes".to_owned());
        }
        if frame_max > 0 {
            self.max_frame_bytes = frame_max.min(MAX_FRAME_BYTES);
        }
        let heartbeat = match (self.settings.heartbeat_s, heartbeat) {
            (0, _) => 0,
            (ours, 0) => ours,
            (ours, theirs) => ours.min(theirs),
        };
        self.alive.agreed(heartbeat);
        let frame_max = self.max_frame_bytes;
        self.put(0, &Method::ConnectionTuneOk { channel_max: CHANNEL, frame_max, heartbeat });
        let virtual_host = self.settings.virtual_host.clone();
        self.put(0, &Method::ConnectionOpen { virtual_host: &virtual_host });
        self.phase = Phase::Open;
        Ok(())
    }

    /// A method on the channel.
    fn take_method(&mut self, payload: Bytes) -> Result<(), String> {
        if self.assembly.is_some() {
            return Err("a method in the middle of a message".to_owned());
        }
        let method = Method::decode(&payload).map_err(|error| error.to_string())?;
        match (self.phase, method) {
            (Phase::Channel, Method::ChannelOpenOk {}) => {
                self.phase = Phase::Running;
                self.alive.running();
                self.outputs.push_back(Output::Opened);
                Ok(())
            }
            (
                Phase::Channel | Phase::Running,
                Method::ChannelClose { reply_code, reply_text, .. },
            ) => {
                let closed = Output::ChannelClosed(reply_code, reply_text.to_owned());
                self.put(CHANNEL, &Method::ChannelCloseOk {});
                self.phase = Phase::Channelless;
                self.outputs.push_back(closed);
                Ok(())
            }
            (Phase::Running, Method::BasicDeliver { .. } | Method::BasicReturn { .. }) => {
                let (properties, body) = (Bytes::new(), Vec::new());
                let method = payload;
                self.assembly = Some(Assembly { method, properties, body, body_bytes: None });
                Ok(())
            }
            (Phase::Running, other) if !other.has_content() => {
                self.outputs.push_back(Output::Method(payload));
                Ok(())
            }
            _ => Err("a method of the channel that has no place here".to_owned()),
        }
    }

    /// A method that comes while this side awaits that the server agrees to the end: what it has
    /// refused before it did is still handed on.
    fn take_late(&mut self, payload: &[u8]) {
        if let Ok(Method::ChannelClose { reply_code, reply_text, .. }) = Method::decode(payload) {
            let closed = Output::ChannelClosed(reply_code, reply_text.to_owned());
            self.outputs.push_back(closed);
        }
    }

    fn take_header(&mut self, payload: &Bytes) -> Result<(), String> {
        let max_bytes = self.settings.max_message_bytes;
        let Some(assembly) = self.assembly.as_mut().filter(|it| it.body_bytes.is_none()) else {
            return Err("a content header without a method".to_owned());
        };
        let header = ContentHeader::decode_head(payload).map_err(|error| error.to_string())?;
        if header.body_bytes > max_bytes {
            let bytes = header.body_bytes;
            return Err(format!("a message of {bytes} bytes, over the limit of {max_bytes}"));
        }
        assembly.properties = payload.slice_ref(header.properties);
        assembly.body_bytes = Some(header.body_bytes);
        let first_bytes = header.body_bytes.min(MAX_FIRST_BYTES);
        assembly.body.reserve_exact(usize::try_from(first_bytes).unwrap_or(0));
        self.finish_if_whole();
        Ok(())
    }

    fn take_body(&mut self, payload: &[u8]) -> Result<(), String> {
        let Some(assembly) = &mut self.assembly else {
            return Err("a body without a method".to_owned());
        };
        let Some(body_bytes) = assembly.body_bytes else {
            return Err("a body without a header".to_owned());
        };
        if (assembly.body.len() + payload.len()) as u64 > body_bytes {
            return Err("more of a body than was announced".to_owned());
        }
        assembly.body.extend_from_slice(payload);
        self.finish_if_whole();
        Ok(())
    }

    fn finish_if_whole(&mut self) {
        let is_whole = |it: &mut Assembly| it.body_bytes == Some(it.body.len() as u64);
        if let Some(Assembly { method, properties, body, .. }) = self.assembly.take_if(is_whole) {
            let body = body.into();
            self.outputs.push_back(Output::Message(Message { method, properties, body }));
        }
    }
}
