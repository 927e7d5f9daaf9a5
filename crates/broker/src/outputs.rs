//! What adapters have done to the world.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;

use crate::change::Change;
use crate::coded::Coder;
use crate::core::Core;
use crate::event::Event;
use crate::http::{Answer, Post};
use crate::ids::{ConnectionId, Principal, Ticket};
use crate::window::Window;

/// Bytes that a connection may have on their way before its client gets more: as much as a socket
/// takes at once, so that what is urgent does not wait behind what is not.
const MAX_UNSENT_BYTES: usize = 64 << 10;
/// Bytes that wait for more at most.
const MAX_HELD_BYTES: usize = 16 << 10;
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
    /// A bridge is to be connected; the answer is [`crate::Input::Dialled`].
    Dial {
        /// Its number among those of the settings.
        bridge: u16,
    },
    /// Somebody is to be recognized; the answer is [`crate::Input::Known`].
    Login(Login),
    /// Changes are to be written, all or none; the answer is [`crate::Input::Persisted`], at once
    /// where there are none: what was to be written has come to nothing.
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
    /// What was written last.
    buffer: Vec<u8>,
    /// What was written before that.
    ready: VecDeque<Bytes>,
    /// Bytes that were handed out and have not left.
    unsent_bytes: usize,
    /// Bytes in `ready`.
    waiting_bytes: usize,
    is_dirty: bool,
    is_closing: bool,
}

/// When what is written for a connection leaves.
#[derive(Debug)]
struct Pace {
    /// How long it may wait for more.
    batch: Duration,
    /// Until when it waits.
    held_until: Option<Duration>,
    /// When something was written last.
    written_at: Duration,
    window: Window,
}

/// See the module. What is written for a connection within one input goes out as few pieces.
#[derive(Debug, Default)]
pub struct Outputs {
    /// A connection that has nothing on its way takes no memory here.
    writers: BTreeMap<ConnectionId, Option<Box<Writer>>>,
    dirty: Vec<ConnectionId>,
    /// Connections whose bytes may wait for more: few have one.
    paces: BTreeMap<ConnectionId, Pace>,
    /// Those whose bytes do.
    held: BTreeSet<ConnectionId>,
    /// Connections to other nodes whose bytes are coded.
    coders: BTreeMap<ConnectionId, Coder>,
    others: VecDeque<Output>,
    now: Duration,
}

impl Outputs {
    /// The time, which is that of the input.
    pub(crate) fn set_now(&mut self, now: Duration) {
        self.now = now;
        let due: Vec<ConnectionId> =
            self.held.iter().copied().filter(|id| !self.waits(*id)).collect();
        for id in due {
            self.held.remove(&id);
            self.dirty.push(id);
        }
    }

    /// When bytes that wait for more have to leave.
    pub(crate) fn wake_at(&self) -> Option<Duration> {
        let paces = self.held.iter().filter_map(|id| self.paces.get(id));
        paces.filter_map(|pace| pace.held_until).min()
    }

    /// What is written for a connection may wait so long for more.
    pub(crate) fn batch(&mut self, connection: ConnectionId, batch: Duration) {
        let window = Window::default();
        let pace = Pace { batch, held_until: None, written_at: self.now, window };
        self.paces.insert(connection, pace);
    }

    /// What is written for a connection leaves now.
    pub(crate) fn urge(&mut self, connection: ConnectionId) {
        if let Some(pace) = self.paces.get_mut(&connection) {
            pace.held_until = Some(Duration::ZERO);
            if self.held.remove(&connection) {
                self.dirty.push(connection);
            }
        }
    }

    /// Whether the peer is to be asked now for an answer that says what has arrived; it is, once
    /// this has said so. Without room what is written leaves at once.
    pub(crate) fn asks(&mut self, connection: ConnectionId) -> bool {
        let writer = self.writers.get(&connection).and_then(Option::as_ref);
        let waiting = writer.map_or(0, |writer| writer.kept());
        let Some(pace) = self.paces.get_mut(&connection) else { return false };
        let has_room = pace.window.has_room(waiting);
        let asks = pace.window.ask(waiting);
        if !has_room {
            self.urge(connection);
        }
        asks
    }

    /// The peer is asked for another reason.
    pub(crate) fn pinged(&mut self, connection: ConnectionId) {
        if let Some(pace) = self.paces.get_mut(&connection) {
            pace.window.pinged();
        }
    }

    /// The peer has answered.
    pub(crate) fn answered(&mut self, connection: ConnectionId) {
        let now = self.now;
        if let Some(pace) = self.paces.get_mut(&connection) {
            pace.window.answered(now);
        }
    }

    /// When something was written last for a connection whose bytes may wait.
    pub(crate) fn written_at(&self, connection: ConnectionId) -> Option<Duration> {
        self.paces.get(&connection).map(|pace| pace.written_at)
    }

    /// What is written for a connection from now on is coded; what was written before leaves as it
    /// is.
    pub(crate) fn code(&mut self, connection: ConnectionId) {
        if let Some(Some(writer)) = self.writers.get_mut(&connection) {
            while let Some(bytes) = writer.next() {
                if let Some(pace) = self.paces.get_mut(&connection) {
                    pace.window.left(self.now, bytes.len());
                }
                self.others.push_back(Output::Transmit { connection, bytes });
            }
        }
        self.coders.insert(connection, Coder::default());
    }

    /// Whose words are written for a connection from now on.
    pub(crate) fn mark(&mut self, connection: ConnectionId, principal: Principal) {
        let Some(coder) = self.coders.get_mut(&connection) else { return };
        let writer = self.writers.get(&connection).and_then(Option::as_ref);
        coder.mark(writer.map_or(0, |writer| writer.kept()), principal);
    }

    /// Whether what is written for a connection waits for more.
    fn waits(&self, connection: ConnectionId) -> bool {
        let Some(pace) = self.paces.get(&connection) else { return false };
        let Some(Some(writer)) = self.writers.get(&connection) else { return false };
        let is_short = writer.buffer.len() + writer.waiting_bytes < MAX_HELD_BYTES;
        !writer.is_closing && is_short && pace.held_until.is_some_and(|until| until > self.now)
    }

    /// There is a connection.
    pub(crate) fn open(&mut self, connection: ConnectionId) {
        self.writers.insert(connection, None);
    }

    /// It is gone.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        self.writers.remove(&connection);
        self.paces.remove(&connection);
        self.held.remove(&connection);
        self.coders.remove(&connection);
    }

    /// Bytes have left.
    pub(crate) fn sent(&mut self, connection: ConnectionId, bytes: usize) {
        if let Some(slot) = self.writers.get_mut(&connection)
            && let Some(writer) = slot
        {
            writer.unsent_bytes = writer.unsent_bytes.saturating_sub(bytes);
            if writer.unsent_bytes == 0 && !writer.is_dirty && !writer.is_closing {
                *slot = None;
            }
        }
    }

    /// Whether a connection should be given more now. Answers go out in any case, publications
    /// wait in the session until there is room.
    #[must_use]
    pub fn room(&self, connection: ConnectionId) -> bool {
        match self.writers.get(&connection) {
            Some(Some(writer)) => {
                let pace = self.paces.get(&connection);
                let is_free = pace.is_none_or(|pace| pace.window.has_room(writer.kept()));
                writer.waiting() < MAX_UNSENT_BYTES && !writer.is_closing && is_free
            }
            Some(None) => self.paces.get(&connection).is_none_or(|pace| pace.window.has_room(0)),
            None => false,
        }
    }

    /// Bytes that a connection has on their way.
    #[must_use]
    pub fn unsent_bytes(&self, connection: ConnectionId) -> usize {
        let writer = self.writers.get(&connection).and_then(Option::as_ref);
        writer.map_or(0, |writer| writer.waiting())
    }

    /// Where bytes for a connection are written to; `None` if it is closing or gone.
    pub fn writer(&mut self, connection: ConnectionId) -> Option<&mut Vec<u8>> {
        self.open_writer(connection).map(|writer| &mut writer.buffer)
    }

    fn open_writer(&mut self, connection: ConnectionId) -> Option<&mut Writer> {
        let writer = self.writers.get_mut(&connection)?.get_or_insert_default();
        if writer.is_closing {
            return None;
        }
        if !writer.is_dirty {
            writer.is_dirty = true;
            self.dirty.push(connection);
        }
        if let Some(pace) = self.paces.get_mut(&connection) {
            pace.written_at = self.now;
            let until = self.now.saturating_add(pace.batch);
            pace.held_until.get_or_insert(until);
        }
        Some(writer)
    }

    /// Adds bytes that several may share behind what is written.
    pub fn append(&mut self, connection: ConnectionId, bytes: &Bytes) {
        let Some(writer) = self.open_writer(connection) else { return };
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
        if let Some(writer) = self.open_writer(connection) {
            writer.is_closing = true;
        }
    }

    /// Sends a datagram.
    pub fn datagram(&mut self, listener: u16, to: SocketAddr, bytes: impl Into<Bytes>) {
        self.others.push_back(Output::Datagram { listener, to, bytes: bytes.into() });
    }

    /// Connects a bridge.
    pub(crate) fn dial(&mut self, bridge: u16) {
        self.others.push_back(Output::Dial { bridge });
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
            if self.waits(connection) {
                self.dirty.pop();
                self.held.insert(connection);
                continue;
            }
            let Some(Some(writer)) = self.writers.get_mut(&connection) else {
                self.dirty.pop();
                continue;
            };
            let coder = self.coders.get_mut(&connection);
            let piece = match coder {
                Some(coder) => writer.coded(coder),
                None => writer.next().map(|bytes| (bytes.len(), bytes)),
            };
            if let Some((len, bytes)) = piece {
                if let Some(pace) = self.paces.get_mut(&connection) {
                    pace.window.left(self.now, len);
                }
                return Some(Output::Transmit { connection, bytes });
            }
            writer.is_dirty = false;
            let is_closing = writer.is_closing;
            self.dirty.pop();
            if let Some(pace) = self.paces.get_mut(&connection) {
                pace.held_until = None;
            }
            if is_closing {
                self.forget(connection);
                return Some(Output::Close { connection });
            }
        }
        None
    }
}

impl Writer {
    /// Bytes that have not left.
    fn waiting(&self) -> usize {
        self.unsent_bytes + self.kept()
    }

    /// Bytes that were not handed out.
    fn kept(&self) -> usize {
        self.waiting_bytes + self.buffer.len()
    }

    /// The next piece that leaves.
    fn next(&mut self) -> Option<Bytes> {
        if self.ready.is_empty() && !self.buffer.is_empty() {
            self.unsent_bytes += self.buffer.len();
            return Some(Bytes::from(std::mem::take(&mut self.buffer)));
        }
        self.flush();
        let bytes = self.ready.pop_front()?;
        self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes.len());
        self.unsent_bytes += bytes.len();
        Some(bytes)
    }

    /// All that has not been handed out, coded, and its length before.
    fn coded(&mut self, coder: &mut Coder) -> Option<(usize, Bytes)> {
        let mut plain = Vec::with_capacity(self.kept());
        self.ready.drain(..).for_each(|piece| plain.extend_from_slice(&piece));
        plain.append(&mut self.buffer);
        self.waiting_bytes = 0;
        let coded = (!plain.is_empty()).then(|| coder.code(&plain))?;
        self.unsent_bytes += coded.len();
        Some((plain.len(), Bytes::from(coded)))
    }

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
