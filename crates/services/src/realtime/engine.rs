//! The SOAP engine: one thread that owns all connections, and serves the most urgent first.

#![allow(clippy::result_large_err, reason = "a refusal's line is in place: nothing here allocates")]

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::admission::Admission;
use super::answer::{self, Answer};
use super::class;
use super::clock;
use super::connection::{ConnectionPlace, Next, Received};
use super::entity::Message;
use super::http::{Head, Method, media};
use super::line::{Line, quote};
use super::queue::Queue;
use super::request::{self, ACTION, NAMESPACE, Refusal};
use super::wsdl::wsdl;
use crate::tracks::soap::Version;

/// Most connections; beyond it one goes of which no message was taken, of the source that has most.
pub const MAX_CONNECTIONS: usize = 64;
/// Longest pause between requests of a connection.
pub const MAX_IDLE: Duration = Duration::from_secs(180);
/// Longest time that a request takes to come.
pub const MAX_REQUEST: Duration = Duration::from_secs(10);
/// Longest that a connection waits for its turn behind more urgent ones.
const MAX_WAIT_NS: u64 = 100_000_000;
/// Most connections taken at a time.
const MAX_ACCEPTED: usize = 4;
/// How often connections are looked at for what takes too long.
const LOOK: Duration = Duration::from_secs(1);
/// How long no connection is taken when the system has no descriptor for it.
const DEAF_NS: u64 = 100_000_000;
/// What a message is taken to cost until one was processed.
const FIRST_COST_NS: u64 = 20_000;

/// What the engine counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineCounts {
    /// Requests that were answered with a fault or a status of 400 or more for what they are.
    pub bad_requests: u64,
    /// Connections that were closed for another, or for being silent or slow.
    pub closed_connections: u64,
    /// How often reading paused since the share of the core was spent.
    pub pauses: u64,
}

/// See the module.
pub(super) struct Engine {
    pub(super) listener: TcpListener,
    pub(super) address: SocketAddr,
    /// Whatever comes, or its end, ends the engine.
    pub(super) stop: UnixStream,
    pub(super) queues: Vec<Arc<Queue>>,
    pub(super) admission: Admission,
    pub(super) places: Vec<ConnectionPlace>,
    polled: Vec<libc::pollfd>,
    message: Message,
    answer: Answer,
    boot: String,
    counts: EngineCounts,
    looked_ns: u64,
    deaf_until_ns: u64,
}

/// What becomes of a connection behind an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Keep,
    Close,
    /// Close when the client has, too.
    Linger,
}

impl Engine {
    pub(super) fn new(
        listener: TcpListener,
        address: SocketAddr,
        stop: UnixStream,
        queues: Vec<Arc<Queue>>,
        admission: Admission,
    ) -> Self {
        let places: Vec<ConnectionPlace> =
            (0..MAX_CONNECTIONS).map(|_| ConnectionPlace::new()).collect();
        let empty = libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 };
        Self {
            listener,
            address,
            stop,
            queues,
            admission,
            polled: vec![empty; places.len() + 2],
            places,
            message: Message::default(),
            answer: Answer::default(),
            boot: boot(),
            counts: EngineCounts::default(),
            looked_ns: 0,
            deaf_until_ns: 0,
        }
    }

    /// Serves until it is told to stop; then closes all connections and the queues.
    pub(super) fn run(mut self) -> EngineCounts {
        // All that this thread does counts as reading, also waiting and taking connections.
        let mut counted_ns = clock::thread_ns();
        loop {
            let (now_ns, thread_ns) = (clock::monotonic_ns(), clock::thread_ns());
            self.admission.spend(now_ns, thread_ns.saturating_sub(counted_ns));
            counted_ns = thread_ns;
            let pause = self.admission.pause(now_ns);
            if !pause.is_zero() {
                self.counts.pauses += 1;
            }
            if !self.wait(pause) {
                break;
            }
            if !pause.is_zero() {
                continue;
            }
            let now_ns = clock::monotonic_ns();
            if self.is_polled(1) {
                self.accept(now_ns);
            }
            self.serve_ready(now_ns);
            if now_ns.saturating_sub(self.looked_ns) >= nanoseconds(LOOK) {
                self.looked_ns = now_ns;
                self.close_slow(now_ns);
            }
        }
        for place in &mut self.places {
            place.close();
        }
        for queue in &self.queues {
            queue.close();
        }
        self.counts
    }

    fn is_polled(&self, at: usize) -> bool {
        self.polled.get(at).is_some_and(|polled| polled.revents != 0)
    }

    /// Waits for connections and bytes, in a pause for its end alone; false when told to stop.
    fn wait(&mut self, pause: Duration) -> bool {
        let is_paused = !pause.is_zero();
        let is_deaf = clock::monotonic_ns() < self.deaf_until_ns;
        let listener = if is_deaf { -1 } else { self.listener.as_raw_fd() };
        let fixed = [self.stop.as_raw_fd(), listener];
        let of_places = self.places.iter().map(ConnectionPlace::descriptor);
        for (polled, descriptor) in self.polled.iter_mut().zip(fixed.into_iter().chain(of_places)) {
            (polled.fd, polled.revents) = (descriptor, 0);
        }
        let count = if is_paused { 1 } else { self.polled.len() };
        let is_pending = self.places.iter().any(|place| place.is_pending);
        let most = match (is_paused, is_pending) {
            (true, _) => pause,
            (false, true) => Duration::ZERO,
            (false, false) => LOOK,
        };
        let time = libc::timespec {
            tv_sec: libc::time_t::try_from(most.as_secs()).unwrap_or(1),
            tv_nsec: libc::c_long::from(most.subsec_nanos().cast_signed()),
        };
        // SAFETY: the array has `count` places at least and lives behind the call, as does the
        // time; a signal mask is not given.
        unsafe {
            libc::ppoll(
                self.polled.as_mut_ptr(),
                count as libc::nfds_t,
                &raw const time,
                std::ptr::null(),
            );
        }
        !self.is_polled(0)
    }

    fn accept(&mut self, now_ns: u64) {
        for _ in 0..MAX_ACCEPTED {
            let (stream, source) = match self.listener.accept() {
                Ok((stream, address)) => (stream, address.ip().to_canonical()),
                Err(error) => {
                    // Without a descriptor it would be ready all the time, and never taken.
                    if error.kind() != std::io::ErrorKind::WouldBlock {
                        self.deaf_until_ns = now_ns + DEAF_NS;
                    }
                    return;
                }
            };
            if stream.set_nonblocking(true).is_err() || stream.set_nodelay(true).is_err() {
                continue;
            }
            let free = self.places.iter().position(|place| !place.is_open());
            let at = free.or_else(|| {
                self.counts.closed_connections += 1;
                self.least()
            });
            // Until its first message it is as urgent as the middle.
            let class = self.queues.len() / 2;
            if let Some(place) = at.and_then(|at| self.places.get_mut(at)) {
                place.open((stream, source), class, now_ns);
            }
        }
    }

    /// Whose place goes to the next: of those that were answered for the last time, else of those
    /// of which no message was taken, else of all, the one of the source with most that is longest
    /// silent.
    fn least(&self) -> Option<usize> {
        let having = |source| self.places.iter().filter(|place| place.source == source).count();
        let places = self.places.iter().enumerate();
        let key = |place: &ConnectionPlace| {
            let has_most = Reverse(having(place.source));
            (!place.is_lingering(), place.is_known, has_most, place.active_ns)
        };
        places.min_by_key(|(_, place)| key(place)).map(|(at, _)| at)
    }

    /// Serves a request of each connection of the most urgent class that has something, and of
    /// those that have waited too long for that.
    fn serve_ready(&mut self, now_ns: u64) {
        let mut urgent = usize::MAX;
        for (place, polled) in self.places.iter_mut().zip(self.polled.iter().skip(2)) {
            let is_ready = place.is_open() && (place.is_pending || polled.revents != 0);
            if !is_ready {
                place.ready_ns = None;
                continue;
            }
            place.ready_ns.get_or_insert(now_ns);
            urgent = urgent.min(place.class);
        }
        for at in 0..self.places.len() {
            let Some(place) = self.places.get(at) else { continue };
            let Some(ready_ns) = place.ready_ns else { continue };
            let has_waited = now_ns.saturating_sub(ready_ns) >= MAX_WAIT_NS;
            if place.class == urgent || has_waited {
                self.serve(at);
            }
        }
    }

    /// Reads from a connection, and answers a request if one is whole.
    fn serve(&mut self, at: usize) {
        if self.step(at, clock::monotonic_ns()) == After::Close
            && let Some(place) = self.places.get_mut(at)
        {
            place.close();
        }
    }

    fn step(&mut self, at: usize, now_ns: u64) -> After {
        let Some(place) = self.places.get_mut(at) else { return After::Close };
        place.ready_ns = None;
        if !place.is_pending {
            match place.receive(now_ns) {
                Received::Some => {}
                Received::Nothing => return After::Keep,
                Received::End => return After::Close,
            }
        }
        place.is_pending = false;
        let (mut taken, mut is_head) = (None, false);
        let (next, end) = place.next();
        let (after, is_good) = match next {
            Next::More { is_asked } => {
                return match is_asked && !place.send(answer::CONTINUE) {
                    true => After::Close,
                    false => After::Keep,
                };
            }
            Next::Bad(bad) => {
                answer::plain(&mut self.answer, bad.status, true, bad.reason);
                (After::Linger, false)
            }
            Next::Request(head, content) => {
                let mut desk = Desk {
                    queues: &self.queues,
                    admission: &mut self.admission,
                    message: &mut self.message,
                    answer: &mut self.answer,
                    boot: &self.boot,
                };
                let after = if head.is_last { After::Close } else { After::Keep };
                is_head = head.method == Method::Get { is_head: true };
                if matches!(head.method, Method::Get { .. })
                    && head.target.ends_with("?wsdl")
                    && class::of_path(head.target).is_ok()
                {
                    let document = document(&head, self.address);
                    place.take(end, now_ns);
                    let is_sent = place.send(part(document.as_bytes(), is_head));
                    return if is_sent { after } else { After::Close };
                }
                (after, desk.answer(&head, content, &mut taken))
            }
        };
        // It is as urgent as the last message that was taken of it; who only asks is as the middle.
        if let Some(class) = taken {
            (place.class, place.is_known) = (class, true);
        }
        place.take(end, now_ns);
        self.counts.bad_requests += u64::from(!is_good);
        if !place.send(part(self.answer.as_bytes(), is_head)) {
            return After::Close;
        }
        if after == After::Linger {
            place.linger(now_ns);
            return After::Keep;
        }
        after
    }

    fn close_slow(&mut self, now_ns: u64) {
        for place in self.places.iter_mut().filter(|place| place.is_open()) {
            let silent_ns = now_ns.saturating_sub(place.active_ns);
            let begun_ns = place.begun_ns.map_or(0, |begun_ns| now_ns.saturating_sub(begun_ns));
            let is_slow = begun_ns > nanoseconds(MAX_REQUEST);
            if is_slow || silent_ns > nanoseconds(MAX_IDLE) {
                if is_slow && !place.is_lingering() {
                    let line = "the request did not come within 10 s";
                    answer::plain(&mut self.answer, 408, true, line);
                    place.send(self.answer.as_bytes());
                }
                place.close();
                self.counts.closed_connections += 1;
            }
        }
    }
}

/// An answer as it goes out: to HEAD without its content (RFC 9110 §9.3.2).
fn part(answer: &[u8], is_head: bool) -> &[u8] {
    let head = if is_head { super::http::head_bytes(answer) } else { None };
    head.and_then(|head| answer.get(..head)).unwrap_or(answer)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Which start of the kernel this is: clocks of two hosts are one where it is the same.
fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().chars().filter(|one| one.is_ascii_hexdigit() || *one == '-').take(36).collect()
}

/// The description, with the address by which the client came here. It allocates, unlike messages.
fn document(head: &Head<'_>, own: SocketAddr) -> String {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b".:-[]".contains(&byte);
    let own = own.to_string();
    let is_named = !head.host.is_empty() && head.host.bytes().all(is_good);
    let host = if is_named { head.host } else { own.as_str() };
    let text = wsdl(&format!("http://{host}/consumer"));
    let length = text.len();
    let close = if head.is_last { "Connection: close\r\n" } else { "" };
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/xml; charset=utf-8\r\n\
         Content-Length: {length}\r\n{close}\r\n{text}"
    )
}

/// What answers a request.
struct Desk<'a> {
    queues: &'a [Arc<Queue>],
    admission: &'a mut Admission,
    message: &'a mut Message,
    answer: &'a mut Answer,
    boot: &'a str,
}

impl Desk<'_> {
    /// Writes the answer, and the class of a message that was taken; false for a request that is
    /// wrong.
    fn answer(&mut self, head: &Head<'_>, content: &[u8], taken: &mut Option<usize>) -> bool {
        let is_last = head.is_last;
        match (head.method, class::of_path(head.target)) {
            (Method::Get { .. }, _) if head.target == "/clock" => self.clock(is_last),
            (Method::Get { .. }, _) if head.target == "/statistics" => self.statistics(is_last),
            (Method::Post, Ok(path)) => return self.message(head, content, path, taken),
            (Method::Other, _) => {
                answer::plain(self.answer, 405, is_last, "POST a message, GET /consumer?wsdl");
                return false;
            }
            _ => {
                let line = "POST to /consumer or /consumer/CLASS; GET /consumer?wsdl, /clock or \
                            /statistics";
                answer::plain(self.answer, 404, is_last, line);
                return false;
            }
        }
        true
    }

    fn message(
        &mut self,
        head: &Head<'_>,
        content: &[u8],
        path: Option<usize>,
        class: &mut Option<usize>,
    ) -> bool {
        let is_last = head.is_last;
        if head.is_coded {
            answer::plain(self.answer, 415, is_last, "send content without a coding");
            return false;
        }
        let (version, action) = match media(head.content_type) {
            Ok(media) => media,
            Err(line) => {
                answer::plain(self.answer, 415, is_last, line);
                return false;
            }
        };
        let action = if action.is_empty() { head.action } else { action };
        let taken = if action.is_empty() || action == ACTION {
            self.hand_over(content, version, (path, head.priority), class)
        } else {
            let action = quote(action);
            let action = action.as_str();
            Err(Refusal::sender(format_args!("no action '{action}'; the one there is: {ACTION}")))
        };
        match taken {
            Ok(()) => {
                answer::accepted(self.answer, is_last);
                true
            }
            Err(refusal) => {
                answer::fault(self.answer, version, is_last, &refusal);
                refusal.code == request::Code::Receiver
            }
        }
    }

    /// Reads a message, finds its queue, and puts it there if it is admitted.
    fn hand_over(
        &mut self,
        content: &[u8],
        version: Version,
        (path, priority): (Option<usize>, &str),
        taken: &mut Option<usize>,
    ) -> Result<(), Refusal> {
        let header = request::read(content, version, self.message)?;
        let urgency = class::urgency(priority);
        let class = class::choose(path, header, urgency, self.queues.len())?;
        let Some(queue) = self.queues.get(class) else {
            return Err(Refusal::receiver(format_args!("no queue for class {class}")));
        };
        let cost_ns = match queue.counters.cost_ns.load(Ordering::Relaxed) {
            0 => FIRST_COST_NS,
            known => known,
        };
        if !self.admission.offer(clock::monotonic_ns(), class, cost_ns) {
            queue.counters.over_share.fetch_add(1, Ordering::Relaxed);
            return Err(Refusal::receiver(format_args!(
                "class {class}: the share of the core is spent; send less"
            )));
        }
        self.message.handed_ns = clock::monotonic_ns();
        if !queue.push(self.message) {
            self.admission.give_back(cost_ns);
            return Err(Refusal::receiver(format_args!(
                "class {class}: the queue is full; send more slowly"
            )));
        }
        *taken = Some(class);
        Ok(())
    }

    fn clock(&mut self, is_last: bool) {
        let now_ns = clock::monotonic_ns();
        let boot = self.boot;
        let text =
            Line::<128>::of(format_args!("{{\"monotonic_ns\":{now_ns},\"boot\":\"{boot}\"}}"));
        answer::json(self.answer, is_last, text.as_str());
    }

    fn statistics(&mut self, is_last: bool) {
        let mut text = Line::<1536>::default();
        let _ = write!(text, "{{\"namespace\":\"{NAMESPACE}\",\"classes\":[");
        for (at, queue) in self.queues.iter().enumerate() {
            let of = &queue.counters;
            let [accepted, full, over_share, processed, panicked] =
                [&of.accepted, &of.full, &of.over_share, &of.processed, &of.panicked]
                    .map(|count| count.load(Ordering::Relaxed));
            let comma = if at == 0 { "" } else { "," };
            let _ = write!(
                text,
                "{comma}{{\"accepted\":{accepted},\"refused_full\":{full},\
                 \"refused_over_share\":{over_share},\"processed\":{processed},\
                 \"panicked\":{panicked}}}"
            );
        }
        let _ = text.write_str("]}");
        answer::json(self.answer, is_last, text.as_str());
    }
}
