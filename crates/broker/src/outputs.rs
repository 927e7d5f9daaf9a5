//! What adapters have done to the world.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;

use crate::change::Change;
use crate::core::Core;
use crate::event::Event;
use crate::http::{Answer, Post};
use crate::ids::{ConnectionId, Ticket};

/// Bytes that a connection may have on their way before its client gets more: as much as a socket
/// takes at once, so that what is urgent does not wait behind what is not.
const MAX_UNSENT_BYTES: usize = 64 << 10;
/// Payloads of so many bytes are handed on as they are, shorter ones are copied behind their heads.
const MIN_SHARED_BYTES: usize = 4096;

/// What ought to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Bytes for a connection, to be reported by [`crate::Input::Sent`] when they have left.
    Transmit {
        /// Which.
        connection: ConnectionId,
        /// The bytes.
        bytes: Bytes,
    },
    /// A datagram.
    Datagram {
        /// By which of the shell's sockets.
        listener: u16,
        /// To whom.
        to: SocketAddr,
        /// What.
        bytes: Bytes,
    },
    /// The connection is to be closed once what was given before has left.
    Close {
        /// Which.
        connection: ConnectionId,
    },
    /// A request of HTTP has its answer.
    Answer(Answer),
    /// A request of HTTP is to be made; the answer is [`crate::Input::Posted`].
    Post(Post),
    /// Somebody is to be recognized; the answer is [`crate::Input::Known`].
    Login(Login),
    /// Changes are to be written, all or none; the answer is [`crate::Input::Persisted`].
    Persist {
        /// What to answer with.
        ticket: Ticket,
        /// What to write.
        changes: Vec<Change>,
    },
    /// Something happened.
    Event(Event),
    /// [`crate::Input::Wake`] is due then; `None`: never.
    WakeAt(Option<Duration>),
}

/// Who somebody says to be.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// By which connection.
    pub connection: ConnectionId,
    /// The name.
    pub user: Option<String>,
    /// What shows it.
    pub password: Option<Bytes>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login")
            .field("connection", &self.connection)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// Bytes for one connection.
#[derive(Debug, Default)]
struct Writer {
    buffer: Vec<u8>,
    ready: VecDeque<Bytes>,
    /// Bytes that were handed out and have not left.
    unsent_bytes: usize,
    /// Bytes in `ready`.
    waiting_bytes: usize,
    is_dirty: bool,
    is_closing: bool,
}

/// See the module. What is written for a connection within one input goes out as few pieces.
#[derive(Debug, Default)]
pub struct Outputs {
    writers: BTreeMap<ConnectionId, Writer>,
    dirty: Vec<ConnectionId>,
    others: VecDeque<Output>,
}

impl Outputs {
    /// There is a connection.
    pub(crate) fn open(&mut self, connection: ConnectionId) {
        self.writers.insert(connection, Writer::default());
    }

    /// It is gone.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        self.writers.remove(&connection);
    }

    /// Bytes have left.
    pub(crate) fn sent(&mut self, connection: ConnectionId, bytes: usize) {
        if let Some(writer) = self.writers.get_mut(&connection) {
            writer.unsent_bytes = writer.unsent_bytes.saturating_sub(bytes);
        }
    }

    /// Whether a connection should be given more now. Answers go out in any case, publications
    /// wait in the session until there is room.
    #[must_use]
    pub fn room(&self, connection: ConnectionId) -> bool {
        self.writers.get(&connection).is_some_and(|writer| {
            let waiting = writer.unsent_bytes + writer.waiting_bytes + writer.buffer.len();
            waiting < MAX_UNSENT_BYTES && !writer.is_closing
        })
    }

    /// Bytes that a connection has on their way.
    #[must_use]
    pub fn unsent_bytes(&self, connection: ConnectionId) -> usize {
        self.writers
            .get(&connection)
            .map_or(0, |writer| writer.unsent_bytes + writer.waiting_bytes + writer.buffer.len())
    }

    /// Where bytes for a connection are written to; `None` if it is closing or gone.
    pub fn writer(&mut self, connection: ConnectionId) -> Option<&mut Vec<u8>> {
        let writer = self.writers.get_mut(&connection).filter(|writer| !writer.is_closing)?;
        if !writer.is_dirty {
            writer.is_dirty = true;
            self.dirty.push(connection);
        }
        Some(&mut writer.buffer)
    }

    /// Adds bytes that several may share behind what is written.
    pub fn append(&mut self, connection: ConnectionId, bytes: &Bytes) {
        if self.writer(connection).is_none() {
            return;
        }
        let Some(writer) = self.writers.get_mut(&connection) else { return };
        if bytes.len() < MIN_SHARED_BYTES {
            writer.buffer.extend_from_slice(bytes);
            return;
        }
        writer.flush();
        writer.waiting_bytes += bytes.len();
        writer.ready.push_back(bytes.clone());
    }

    /// Closes a connection behind what is written.
    pub fn close(&mut self, connection: ConnectionId) {
        if self.writer(connection).is_some()
            && let Some(writer) = self.writers.get_mut(&connection)
        {
            writer.is_closing = true;
        }
    }

    /// Sends a datagram.
    pub fn datagram(&mut self, listener: u16, to: SocketAddr, bytes: impl Into<Bytes>) {
        self.others.push_back(Output::Datagram { listener, to, bytes: bytes.into() });
    }

    /// Answers a request of HTTP.
    pub fn answer(&mut self, answer: Answer) {
        self.others.push_back(Output::Answer(answer));
    }

    /// Makes a request of HTTP.
    pub fn post(&mut self, post: Post) {
        self.others.push_back(Output::Post(post));
    }

    /// Asks who somebody is.
    pub fn login(&mut self, login: Login) {
        self.others.push_back(Output::Login(login));
    }

    /// The next thing to be done.
    pub(crate) fn poll(&mut self) -> Option<Output> {
        if let Some(output) = self.others.pop_front() {
            return Some(output);
        }
        while let Some(connection) = self.dirty.last().copied() {
            let Some(writer) = self.writers.get_mut(&connection) else {
                self.dirty.pop();
                continue;
            };
            writer.flush();
            if let Some(bytes) = writer.ready.pop_front() {
                writer.waiting_bytes = writer.waiting_bytes.saturating_sub(bytes.len());
                writer.unsent_bytes += bytes.len();
                return Some(Output::Transmit { connection, bytes });
            }
            writer.is_dirty = false;
            let is_closing = writer.is_closing;
            self.dirty.pop();
            if is_closing {
                self.writers.remove(&connection);
                return Some(Output::Close { connection });
            }
        }
        None
    }
}

impl Writer {
    /// What is written is a piece of its own.
    fn flush(&mut self) {
        if !self.buffer.is_empty() {
            let bytes = Bytes::from(std::mem::take(&mut self.buffer));
            self.waiting_bytes += bytes.len();
            self.ready.push_back(bytes);
        }
    }
}

/// What an adapter is called with.
#[derive(Debug)]
pub struct Context<'a> {
    /// The time.
    pub now: Duration,
    /// What all protocols share.
    pub core: &'a mut Core,
    /// What goes out.
    pub outputs: &'a mut Outputs,
}
