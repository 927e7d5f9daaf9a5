//! The producer: open loop, so that what a slow consumer delays is counted and not left out.
//!
//! A message is due by the [schedule](super::schedule) whatever became of those before. It goes on
//! a connection that waits for no answer; where there is none it waits, and its T0 is when it was
//! due, so that the wait is a part of its latency. Two requests are never on one connection at a
//! time: POST is not idempotent (RFC 9112 §9.3.2).

mod clocks;
mod connection;

use std::collections::VecDeque;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::clock;
use super::entity::MAX_ENTITIES;
use super::request::ACTION;
use super::rights;
use super::schedule::{Content, Schedule};
use super::statistics::Summary;
use crate::Error;
use crate::client::Target;

pub use clocks::Relation;
use connection::{Came, Connection, RETRY_NS};

/// Most connections of a producer.
pub const MAX_CONNECTIONS: usize = 64;
/// Most messages that wait for a connection; what is due beyond it is skipped, and counted.
const MAX_WAITING: usize = 10_000;
/// Most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;
/// The times that an answer may have.
const TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(60);
/// Longest time between two looks at what takes too long.
const LOOK: Duration = Duration::from_millis(200);
/// Most times of answers that are kept.
const MAX_TIMES: usize = 1 << 22;

/// What is sent where.
#[derive(Clone, Debug)]
pub struct Config {
    /// The consumer.
    pub url: Target,
    /// When.
    pub schedule: Schedule,
    /// Entities of each message, 1 to [`MAX_ENTITIES`].
    pub entities: usize,
    /// The class that a header names, if one.
    pub class: Option<usize>,
    /// The urgency that the field Priority says (RFC 9218), if one.
    pub urgency: Option<u8>,
    /// Connections, 1 to [`MAX_CONNECTIONS`].
    pub connections: usize,
    /// Longest that an answer may take.
    pub timeout: Duration,
    /// Real-time priority of the sending thread, if it is to have one.
    pub priority: Option<i32>,
    /// The core that it stays on, if one.
    pub core: Option<usize>,
    /// The consumer has this host's clock, and is not asked for it: another's that tells none.
    pub is_same_clock: bool,
}

/// How far a producer is, for whoever shows it.
#[derive(Debug, Default)]
pub struct Progress {
    /// Messages that were sent.
    pub sent: AtomicU64,
    /// Messages that were answered with a fault or an error, or not at all.
    pub failed: AtomicU64,
}

/// What came of the messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Produced {
    /// Messages that were due.
    pub due: u64,
    /// Messages that were sent.
    pub sent: u64,
    /// Messages that were answered with a status of 2xx.
    pub accepted: u64,
    /// Messages that were answered with a fault of the receiver's: a full queue, a spent share.
    pub refused: u64,
    /// Messages that were answered otherwise.
    pub failed: u64,
    /// Messages whose connection broke, or whose answer took too long: nobody knows.
    pub unknown: u64,
    /// Messages that were never sent, as too many waited for a connection or the time was over.
    pub skipped: u64,
    /// How late messages were sent.
    pub lateness: Option<Summary>,
    /// How long answers took.
    pub answers: Option<Summary>,
    /// What is known of the consumer's clock.
    pub clocks: Relation,
    /// Why real time was refused.
    pub refused_priority: Option<String>,
    /// The first fault or error, in short.
    pub first_failure: Option<String>,
}

impl Config {
    fn check(&self) -> Result<(), Error> {
        let bad = |line: String| Err(Error::Caller(line));
        if !(1..=MAX_ENTITIES).contains(&self.entities) {
            return bad(format!("{} entities; choose 1 to {MAX_ENTITIES}", self.entities));
        }
        if !(1..=MAX_CONNECTIONS).contains(&self.connections) {
            return bad(format!("{} connections; choose 1 to {MAX_CONNECTIONS}", self.connections));
        }
        if !TIMEOUTS.contains(&self.timeout) {
            return bad(format!("an answer may take {:?}; choose 1 ms to 60 s", self.timeout));
        }
        if self.urgency.is_some_and(|urgency| urgency > 7) {
            return bad("an urgency is 0 (urgent) to 7".to_owned());
        }
        Ok(())
    }

    fn addresses(&self) -> Result<Vec<SocketAddr>, Error> {
        let (host, port) = (self.url.host(), self.url.port());
        let why = match (host, port).to_socket_addrs() {
            Ok(addresses) => {
                let addresses: Vec<SocketAddr> = addresses.take(MAX_ADDRESSES).collect();
                if !addresses.is_empty() {
                    return Ok(addresses);
                }
                "it has no address".to_owned()
            }
            Err(error) => error.to_string(),
        };
        Err(Error::Caller(format!("cannot resolve '{host}' ({why}); give an address")))
    }
}

/// Sends everything that is due, until `stop` is set, and waits for the answers.
///
/// # Errors
/// [`Error::Caller`] for settings out of range and a name without an address, [`Error::Peer`] where
/// the consumer cannot be reached at all.
pub fn produce(config: &Config, progress: &Progress, stop: &AtomicBool) -> Result<Produced, Error> {
    config.check()?;
    let addresses = config.addresses()?;
    if let Some(core) = config.core {
        rights::pin_this_thread(core)?;
    }
    let host = config.url.authority();
    let (address, clocks) = match config.is_same_clock {
        true => (clocks::reachable(&addresses, config.timeout)?, Relation::Same),
        false => clocks::compare(&addresses, host, config.timeout, stop)?,
    };
    rights::sharpen_this_thread();
    let refused = config.priority.and_then(|priority| rights::raise_this_thread(priority).err());
    let mut sender = Sender::new(config, address, progress);
    sender.produced.refused_priority = refused.map(|error| error.to_string());
    sender.produced.clocks = clocks;
    sender.run(stop);
    Ok(sender.finish())
}

struct Sender<'a> {
    config: &'a Config,
    address: SocketAddr,
    progress: &'a Progress,
    connections: Vec<Connection>,
    polled: Vec<libc::pollfd>,
    /// Numbers of messages that wait for a connection, from 0 on.
    // bound: MAX_WAITING.
    waiting: VecDeque<u64>,
    /// When the first is due.
    start_ns: u64,
    next: u64,
    content: String,
    lateness_ns: Vec<u64>,
    answers_ns: Vec<u64>,
    produced: Produced,
}

impl<'a> Sender<'a> {
    fn new(config: &'a Config, address: SocketAddr, progress: &'a Progress) -> Self {
        let empty = libc::pollfd { fd: -1, events: 0, revents: 0 };
        let room = usize::try_from(config.schedule.count()).unwrap_or(MAX_TIMES).min(MAX_TIMES);
        Self {
            config,
            address,
            progress,
            connections: (0..config.connections).map(|_| Connection::default()).collect(),
            polled: vec![empty; config.connections],
            waiting: VecDeque::with_capacity(MAX_WAITING),
            start_ns: 0,
            next: 0,
            content: String::with_capacity(8192),
            lateness_ns: Vec::with_capacity(room),
            answers_ns: Vec::with_capacity(room),
            produced: Produced::default(),
        }
    }

    fn run(&mut self, stop: &AtomicBool) {
        let count = self.config.schedule.count();
        // Connections are there before the first message is due.
        for connection in &mut self.connections {
            connection.open(self.address, clock::monotonic_ns());
        }
        self.start_ns = clock::monotonic_ns() + 10_000_000;
        let mut over_ns = None;
        loop {
            let now_ns = clock::monotonic_ns();
            let is_stopped = stop.load(Ordering::Relaxed);
            let is_over = self.next >= count || is_stopped;
            if is_stopped {
                // Who ends it wants no more to be sent.
                self.produced.skipped += self.waiting.len() as u64;
                self.waiting.clear();
            } else if !is_over {
                self.queue_due(now_ns);
            }
            self.send_waiting();
            let is_idle = self.connections.iter().all(|one| one.waits_since_ns().is_none());
            if is_over && is_idle && self.waiting.is_empty() {
                return;
            }
            let timeout_ns = nanoseconds(self.config.timeout);
            if is_over && now_ns > over_ns.get_or_insert(now_ns).saturating_add(timeout_ns) {
                return;
            }
            self.wait(now_ns, is_over);
            self.receive();
        }
    }

    fn queue_due(&mut self, now_ns: u64) {
        let schedule = &self.config.schedule;
        while self.next < schedule.count() && self.start_ns + schedule.due_ns(self.next) <= now_ns {
            self.produced.due += 1;
            if self.waiting.len() < MAX_WAITING {
                self.waiting.push_back(self.next);
            } else {
                self.produced.skipped += 1;
            }
            self.next += 1;
        }
    }

    fn send_waiting(&mut self) {
        while let Some(number) = self.waiting.front().copied() {
            let free = self.connections.iter().position(Connection::is_free);
            let Some(at) = free else { return };
            self.waiting.pop_front();
            self.send(at, number);
        }
    }

    fn send(&mut self, at: usize, number: u64) {
        let due_ns = self.start_ns + self.config.schedule.due_ns(number);
        let now_ns = clock::monotonic_ns();
        let late_ns = now_ns.saturating_sub(due_ns);
        // What waited is as old as it was due; a timer's usual lateness is not the consumer's.
        let is_behind = late_ns > nanoseconds(Duration::from_millis(1));
        let sent_ns = if is_behind { due_ns } else { now_ns };
        let time_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let content = Content {
            sequence: number + 1,
            sent_ns: self.produced.clocks.of_consumer(sent_ns),
            entities: self.config.entities,
            class: self.config.class,
            time_ms: u64::try_from(time_ms).unwrap_or(0),
        };
        self.content.clear();
        content.write(&mut self.content);
        let (path, host) = (self.config.url.path(), self.config.url.authority());
        let Some(connection) = self.connections.get_mut(at) else { return };
        connection.begin(now_ns, |out| {
            let length = self.content.len();
            let mut head = format!(
                "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: text/xml; charset=utf-8\r\n\
                 SOAPAction: \"{ACTION}\"\r\nContent-Length: {length}\r\n"
            );
            if let Some(urgency) = self.config.urgency {
                head.push_str(&format!("Priority: u={urgency}\r\n"));
            }
            out.extend_from_slice(head.as_bytes());
            out.extend_from_slice(b"\r\n");
            out.extend_from_slice(self.content.as_bytes());
        });
        self.produced.sent += 1;
        self.progress.sent.fetch_add(1, Ordering::Relaxed);
        if self.lateness_ns.len() < self.lateness_ns.capacity() {
            self.lateness_ns.push(late_ns);
        }
    }

    /// Waits until something can be read or sent, or the next is due.
    fn wait(&mut self, now_ns: u64, is_over: bool) {
        for (polled, connection) in self.polled.iter_mut().zip(&self.connections) {
            *polled = connection.polled();
        }
        let is_whole = self.connections.iter().all(Connection::is_open);
        let most_ns = if is_whole { nanoseconds(LOOK) } else { RETRY_NS };
        let due_ns = self.start_ns + self.config.schedule.due_ns(self.next);
        let wait_ns = if is_over { most_ns } else { due_ns.saturating_sub(now_ns).min(most_ns) };
        let time =
            libc::timespec { tv_sec: 0, tv_nsec: libc::c_long::try_from(wait_ns).unwrap_or(0) };
        // SAFETY: the array has that many places and lives behind the call, as does the time; a
        // signal mask is not given.
        unsafe {
            libc::ppoll(
                self.polled.as_mut_ptr(),
                self.polled.len() as libc::nfds_t,
                &raw const time,
                std::ptr::null(),
            );
        }
    }

    fn receive(&mut self) {
        let now_ns = clock::monotonic_ns();
        for at in 0..self.connections.len() {
            let is_ready = self.polled.get(at).is_some_and(|polled| polled.revents != 0);
            let Some(connection) = self.connections.get_mut(at) else { continue };
            connection.reopen(self.address, now_ns);
            let since_ns = connection.waits_since_ns();
            let came = match is_ready {
                true => connection.go_on(),
                false => Came::Nothing,
            };
            match came {
                Came::Answer { status, text } => {
                    if let Some(since_ns) = since_ns
                        && self.answers_ns.len() < self.answers_ns.capacity()
                    {
                        self.answers_ns.push(now_ns.saturating_sub(since_ns));
                    }
                    self.answered(status, &text);
                }
                Came::End(why) => {
                    connection.close();
                    if since_ns.is_some() {
                        self.lost(&why);
                    }
                }
                Came::Nothing => {
                    let waited_ns = since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
                    if waited_ns > nanoseconds(self.config.timeout) {
                        connection.close();
                        self.lost("no answer in time");
                    }
                }
            }
        }
    }

    fn answered(&mut self, status: u16, text: &str) {
        // A fault of the receiver's: the message was right, and there was no room for it.
        let is_receiver = [":Server<", ":Receiver<"].iter().any(|code| text.contains(code));
        match status {
            200..=299 => {
                self.produced.accepted += 1;
                return;
            }
            500 if is_receiver => self.produced.refused += 1,
            _ => self.produced.failed += 1,
        }
        self.progress.failed.fetch_add(1, Ordering::Relaxed);
        if self.produced.first_failure.is_none() {
            let text: String = text.chars().take(300).filter(|one| !one.is_control()).collect();
            self.produced.first_failure = Some(format!("status {status}: {text}"));
        }
    }

    fn lost(&mut self, why: &str) {
        self.produced.unknown += 1;
        self.progress.failed.fetch_add(1, Ordering::Relaxed);
        self.produced.first_failure.get_or_insert_with(|| why.to_owned());
    }

    fn finish(mut self) -> Produced {
        let without = self.connections.iter().filter(|one| one.waits_since_ns().is_some()).count();
        self.produced.unknown += without as u64;
        self.produced.skipped += self.waiting.len() as u64;
        self.produced.lateness = Summary::of(&mut self.lateness_ns);
        self.produced.answers = Summary::of(&mut self.answers_ns);
        self.produced
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
