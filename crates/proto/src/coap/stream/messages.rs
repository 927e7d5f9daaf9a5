//! The messages of one connection: bytes become requests, responses and signals, and back.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::client::Call;
use super::server::{Exchange, Observation};
use super::settings::*;
use super::wire;
use crate::coap::framed::{self, Capabilities, MAX_FIRST_MESSAGE_BYTES};
use crate::coap::transfer::Medium;
use crate::coap::{Code, Content, Message, Token};
use crate::timers::Timers;

/// What waits for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// The peer's CSM.
    Csm,
    /// The rest of a message.
    Stall,
    /// Nothing is open.
    Idle,
    /// The peer is to be asked whether it is there.
    Ping,
    /// It was asked, and said nothing.
    Silence,
    /// It was asked to close, and has not.
    Linger,
    /// An exchange has had all its time.
    Expire(u64),
    /// An answer to a request of ours is waited for no longer.
    Answer(u64),
}

/// A ping of the peer that wants to know when what came before is processed.
#[derive(Debug)]
pub(super) struct Custody {
    pub(super) token: Token,
    /// Exchanges up to this number came before.
    pub(super) up_to: u64,
}

/// How far a connection has come.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The peer sends nothing any more.
    pub(super) is_eof: bool,
    /// This side asked the peer to close.
    pub(super) has_released: bool,
    /// The peer asked this side.
    pub(super) was_released: bool,
    pub(super) is_closed: bool,
}

/// What is known of the peer's being there.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    /// Bytes came.
    heard_at: Duration,
    /// A message that means something went or came.
    active_at: Duration,
    /// Since when this side waits for something of it.
    awaits_since: Option<Duration>,
    /// When it was asked, and said nothing since.
    asked_at: Option<Duration>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Messages {
    pub(super) framing: Framing,
    idle: Option<Duration>,
    pub(super) now: Duration,
    pub(super) timers: Timers<Timer>,
    pub(super) counts: Counts,
    /// Bounded by what one message can do.
    pub(super) outputs: VecDeque<Output>,
    /// Less than a message of [`MAX_MESSAGE_BYTES`] once all that came is read.
    input: Vec<u8>,
    /// How much of that is read.
    used: usize,
    /// What the peer announced; `None` before it did.
    pub(super) peer: Option<Capabilities>,
    /// Requests and pings of this side by its numbers; at most [`MAX_REQUESTS`].
    pub(super) calls: BTreeMap<u64, Call>,
    pub(super) tokens: BTreeMap<Token, u64>,
    pub(super) last_token: u64,
    /// Requests of the peer by our number; at most [`MAX_EXCHANGES`].
    pub(super) exchanges: BTreeMap<u64, Exchange>,
    pub(super) last_exchange: u64,
    /// By the number of the request that began it; at most [`MAX_OBSERVATIONS`].
    pub(super) observations: BTreeMap<u64, Observation>,
    /// At most [`MAX_PINGS`].
    pub(super) custodies: VecDeque<Custody>,
    pub(super) hearing: Hearing,
    pub(super) progress: Progress,
}

impl Messages {
    /// The CSM of this side is the first output (RFC 8323 §5.3).
    pub(super) fn new(framing: Framing, idle: Option<Duration>) -> Self {
        let mut messages = Self {
            framing,
            idle,
            now: Duration::ZERO,
            timers: Timers::default(),
            counts: Counts::default(),
            outputs: VecDeque::new(),
            input: Vec::new(),
            used: 0,
            peer: None,
            calls: BTreeMap::new(),
            tokens: BTreeMap::new(),
            last_token: 0,
            exchanges: BTreeMap::new(),
            last_exchange: 0,
            observations: BTreeMap::new(),
            custodies: VecDeque::new(),
            hearing: Hearing::default(),
            progress: Progress::default(),
        };
        messages.timers.set(Timer::Csm, Some(CSM_TIMEOUT));
        messages.send_csm();
        messages
    }

    /// How much of a body a message takes, as far as that is known.
    pub(super) fn medium(&self) -> Medium {
        let peer = self.peer.unwrap_or_default();
        // What is much longer than this would keep others from the link for long.
        let most = if peer.is_block_wise { MAX_MESSAGE_BYTES } else { u32::MAX };
        let max_message_bytes = peer.max_message_bytes.min(most);
        Medium::Stream {
            max_message_bytes: usize::try_from(max_message_bytes).unwrap_or(usize::MAX),
            is_bert: peer.is_bert(),
        }
    }

    pub(super) fn max_message_bytes(&self) -> u64 {
        self.peer.map_or(MAX_FIRST_MESSAGE_BYTES, |peer| peer.max_message_bytes).into()
    }

    /// Bytes of what came and is not read.
    pub(super) fn held_bytes(&self) -> usize {
        self.input.len() - self.used
    }

    /// Bytes came.
    pub(super) fn receive(&mut self, bytes: &Bytes) {
        if self.progress.is_eof || self.progress.is_closed {
            self.counts.misused += 1;
            return;
        }
        if !bytes.is_empty() {
            (self.hearing.heard_at, self.hearing.asked_at) = (self.now, None);
            self.input.drain(..self.used);
            self.used = 0;
            self.input.extend_from_slice(bytes);
        } else if self.framing == Framing::WebSocket {
            self.fail(Fault::Format(crate::Error::Truncated { what: "a CoAP header" }));
        }
    }

    /// Reads the next message; whether there was one.
    pub(super) fn step(&mut self) -> bool {
        let input = std::mem::take(&mut self.input);
        let rest = input.get(self.used..).unwrap_or_default();
        let read = match self.framing {
            Framing::Stream => framed::decode(rest, MAX_MESSAGE_BYTES),
            Framing::WebSocket if rest.is_empty() => Ok(None),
            Framing::WebSocket => whole(rest),
        };
        let is_message = match read {
            Ok(None) => false,
            Ok(Some((message, bytes))) => {
                self.used += bytes;
                self.take(&message);
                true
            }
            Err(error) => {
                self.counts.malformed += 1;
                self.fail(Fault::Format(error));
                false
            }
        };
        if self.progress.is_closed {
            self.used = 0;
            return false;
        }
        self.input = input;
        if self.used == self.input.len() {
            self.input.clear();
            self.used = 0;
        }
        is_message
    }

    fn take(&mut self, message: &Message<'_>) {
        // RFC 8323 §3.4: it does nothing, not even keep a connection.
        if message.code == Code::EMPTY {
            return;
        }
        self.hearing.active_at = self.now;
        if self.peer.is_none() && message.code != Code::CSM {
            return self.fail(Fault::NoCsm(message.code));
        }
        match message.code {
            code if code.is_signal() => self.signalled(message),
            code if code.is_request() => self.requested(message),
            code if code.is_response() => self.answered(message),
            // RFC 7252 §12.1: classes that are reserved.
            _ => self.counts.unsupported += 1,
        }
    }

    /// Sends a message, if the peer takes one so long.
    pub(super) fn send(&mut self, token: Token, content: &Content) -> Result<(), crate::Error> {
        let bytes = wire::encode(self.framing, token, content, self.max_message_bytes())?;
        self.transmit(bytes);
        Ok(())
    }

    pub(super) fn transmit(&mut self, bytes: Bytes) {
        self.hearing.active_at = self.now;
        self.outputs.push_back(Output::Transmit(bytes));
    }

    /// Ends everything.
    pub(super) fn close(&mut self, end: End) {
        if self.progress.is_closed {
            return;
        }
        self.progress.is_closed = true;
        self.timers = Timers::default();
        self.calls.clear();
        self.tokens.clear();
        self.exchanges.clear();
        self.observations.clear();
        self.custodies.clear();
        (self.input, self.used) = (Vec::new(), 0);
        self.outputs.push_back(Output::Closed(end));
    }

    /// Does what is due, and sees to what follows from what is open.
    pub(super) fn settle(&mut self) {
        if self.progress.is_closed {
            return;
        }
        while let Some(timer) = self.timers.pop(self.now) {
            self.due(timer);
        }
        if self.progress.is_closed {
            return;
        }
        self.confirm_custody();
        let awaits_answers = self.calls.values().any(|call| !call.is_notified());
        let is_done = self.exchanges.is_empty() && !awaits_answers;
        if self.progress.is_eof && self.exchanges.is_empty() {
            return self.close(End::Eof);
        }
        // RFC 8323 §5.5: what was asked is answered first.
        if self.progress.was_released && is_done {
            return self.close(End::Released);
        }
        self.set_clocks(is_done);
    }

    fn set_clocks(&mut self, is_done: bool) {
        let (now, has_released) = (self.now, self.progress.has_released);
        let awaits = !self.calls.is_empty() || !self.observations.is_empty();
        let is_partial = self.used < self.input.len();
        let idle = self.idle.filter(|_| is_done && !awaits && !has_released);
        let idle = idle.filter(|_| self.peer.is_some());
        let hearing = &mut self.hearing;
        hearing.awaits_since = awaits.then(|| hearing.awaits_since.unwrap_or(now));
        let asks_at = hearing.awaits_since.map(|since| since.max(hearing.heard_at) + PING_AFTER);
        let asks_at = asks_at.filter(|_| self.peer.is_some() && hearing.asked_at.is_none());
        let silent_at = hearing.asked_at.map(|at| at + SILENCE_TIMEOUT);
        for (timer, at) in [
            (Timer::Stall, is_partial.then_some(hearing.heard_at + STALL_TIMEOUT)),
            (Timer::Idle, idle.map(|idle| hearing.active_at + idle)),
            (Timer::Linger, (has_released && is_done).then_some(hearing.active_at + RELEASE_WAIT)),
            (Timer::Ping, asks_at),
            (Timer::Silence, silent_at),
        ] {
            self.timers.set(timer, at);
        }
    }

    fn due(&mut self, timer: Timer) {
        match timer {
            Timer::Csm => self.give_up(CSM_TIMEOUT),
            Timer::Stall => self.give_up(STALL_TIMEOUT),
            Timer::Silence => self.give_up(SILENCE_TIMEOUT),
            Timer::Idle => self.release(None),
            Timer::Linger => self.close(End::Released),
            Timer::Ping => {
                self.hearing.asked_at = Some(self.now);
                self.ask_whether_there();
            }
            Timer::Expire(exchange) => {
                // The application took too long for anything.
                self.respond(exchange, Content::new(Code::SERVICE_UNAVAILABLE));
            }
            Timer::Answer(request) => self.unanswered(request),
        }
    }
}

/// All of a binary message of a WebSocket.
fn whole(bytes: &[u8]) -> Result<Option<(Message<'_>, usize)>, crate::Error> {
    let (value, limit) = (bytes.len() as u64, u64::from(MAX_MESSAGE_BYTES));
    if value > limit {
        return Err(crate::Error::Limit { what: "message in bytes", value, limit });
    }
    framed::decode_websocket(bytes).map(|message| Some((message, bytes.len())))
}
