//! Clients that publish and clients that get it: as fast as they can, or so many a second.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use crate::client::{Came, Client};
use crate::servers::Server;

/// Deliveries that may be under way at once: enough that a broker never waits for this side.
const MAX_OUTSTANDING: u64 = 2000;
/// Publications of QoS 1 of one client that may be without acknowledgement.
const MAX_UNACKNOWLEDGED: u64 = 100;
/// What is left out at the beginning.
const WARM_UP: Duration = Duration::from_millis(200);
/// How long the last publications may take to arrive.
const LAST_PATIENCE: Duration = Duration::from_secs(20);
/// How long nothing may happen.
const STEP_MS: u16 = 100;
/// Bytes of a payload that say which publication it is.
pub(crate) const MIN_PAYLOAD_BYTES: usize = 16;

/// Who publishes what to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) publishers: usize,
    pub(crate) subscribers: usize,
    pub(crate) qos: u8,
    pub(crate) payload_bytes: usize,
    /// Subscribers have sessions that outlive their connections.
    pub(crate) durable: bool,
}

/// What a broker did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Throughput {
    /// Deliveries a second.
    pub(crate) per_s: f64,
    /// Processor time of the broker for each, in microseconds.
    pub(crate) processor_us: f64,
}

/// How long publications took from this side to this side, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latency {
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

struct Publisher {
    client: Client,
    topic: String,
    sent: u32,
    unacknowledged: u64,
}

struct Subscriber {
    client: Client,
    /// The next number from each publisher.
    next: Vec<u32>,
}

/// What is going on.
struct Run {
    case: Case,
    began: Instant,
    epoll: Epoll,
    publishers: Vec<Publisher>,
    subscribers: Vec<Subscriber>,
    payload: Vec<u8>,
    sent: u64,
    received: u64,
    /// Whose turn it is.
    turn: usize,
    latencies_ns: Vec<u64>,
    is_timed: bool,
}

/// As many as go.
pub(crate) fn throughput(server: &Server, case: Case, lasts: Duration) -> Result<Throughput> {
    let mut run = Run::new(server.address, case)?;
    let fan_out = case.subscribers as u64;
    let mut marks: Option<(Instant, u64, Duration)> = None;
    let elapsed = loop {
        // At least one publication is always under way.
        while (run.sent + 1) * fan_out <= run.received + MAX_OUTSTANDING.max(fan_out) {
            if !run.publish_next() {
                break;
            }
        }
        run.step(STEP_MS)?;
        let now = run.began.elapsed();
        if now < WARM_UP {
            continue;
        }
        match &marks {
            None => marks = Some((Instant::now(), run.received, server.processor_time()?)),
            Some((since, ..)) if since.elapsed() >= lasts => break since.elapsed(),
            Some(_) => {}
        }
    };
    let (_, before, used_before) = marks.context("no measurement")?;
    let used = server.processor_time()?.saturating_sub(used_before);
    let deliveries = run.received - before;
    run.finish(server)?;
    Ok(Throughput {
        per_s: deliveries as f64 / elapsed.as_secs_f64(),
        processor_us: used.as_secs_f64() * 1e6 / deliveries.max(1) as f64,
    })
}

/// So many publications a second, evenly.
pub(crate) fn latency(server: &Server, case: Case, per_s: u32, lasts: Duration) -> Result<Latency> {
    let mut run = Run::new(server.address, case)?;
    let interval = Duration::from_secs(1) / per_s;
    let mut due = Duration::ZERO;
    while due < WARM_UP + lasts {
        let now = run.began.elapsed();
        if now >= due {
            run.is_timed = due >= WARM_UP;
            if !run.publish_next() {
                bail!("{} cannot keep up with {per_s} a second", server.kind.name());
            }
            // What is late is not made up for in a burst.
            due = (due + interval).max(now);
        }
        // This side does not sleep: what is measured is the broker's time.
        run.step(0)?;
    }
    run.finish(server)?;
    let mut all = std::mem::take(&mut run.latencies_ns);
    all.sort_unstable();
    let at = |per_mille: usize| -> Result<f64> {
        let rank = (all.len() * per_mille).div_ceil(1000).max(1) - 1;
        let ns = all.get(rank).context("nothing has arrived")?;
        Ok(*ns as f64 / 1e3)
    };
    Ok(Latency { p50_us: at(500)?, p99_us: at(990)? })
}

impl Run {
    fn new(broker: SocketAddr, case: Case) -> Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::empty())?;
        let mut publishers = Vec::new();
        let mut subscribers = Vec::new();
        for number in 0..case.subscribers {
            let name = format!("bench-s{number}");
            let mut client = Client::connect(broker, &name, !case.durable)?;
            client.subscribe("bench/+/position", case.qos)?;
            epoll.add(&client, EpollEvent::new(EpollFlags::EPOLLIN, number as u64))?;
            subscribers.push(Subscriber { client, next: vec![0; case.publishers] });
        }
        for number in 0..case.publishers {
            let client = Client::connect(broker, &format!("bench-p{number}"), true)?;
            let token = (case.subscribers + number) as u64;
            epoll.add(&client, EpollEvent::new(EpollFlags::EPOLLIN, token))?;
            let topic = format!("bench/unit{number}/position");
            publishers.push(Publisher { client, topic, sent: 0, unacknowledged: 0 });
        }
        Ok(Self {
            case,
            began: Instant::now(),
            epoll,
            publishers,
            subscribers,
            payload: vec![b'x'; case.payload_bytes.max(MIN_PAYLOAD_BYTES)],
            sent: 0,
            received: 0,
            turn: 0,
            latencies_ns: Vec::new(),
            is_timed: false,
        })
    }

    /// How long the run lasts already: 500 years at most.
    fn now_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// The next publisher that may publish; whether there is one.
    fn publish_next(&mut self) -> bool {
        let now_ns = self.now_ns();
        for _ in 0..self.publishers.len() {
            self.turn = (self.turn + 1) % self.publishers.len();
            let publisher = &mut self.publishers[self.turn];
            let is_full = publisher.unacknowledged >= MAX_UNACKNOWLEDGED;
            if is_full || publisher.client.is_blocked() {
                continue;
            }
            let time = if self.is_timed { now_ns } else { 0 };
            self.payload[..8].copy_from_slice(&time.to_be_bytes());
            let number = u32::try_from(self.turn).unwrap_or(u32::MAX);
            self.payload[8..12].copy_from_slice(&number.to_be_bytes());
            self.payload[12..16].copy_from_slice(&publisher.sent.to_be_bytes());
            let Publisher { client, topic, .. } = publisher;
            client.publish(topic, &self.payload, self.case.qos, false);
            publisher.sent += 1;
            publisher.unacknowledged += u64::from(self.case.qos > 0);
            self.sent += 1;
            return true;
        }
        false
    }

    /// Writes what there is, and reads what has come, after so long at most.
    fn step(&mut self, timeout_ms: u16) -> Result<()> {
        for publisher in &mut self.publishers {
            publisher.client.flush()?;
        }
        let mut events = [EpollEvent::empty(); 64];
        let count = match self.epoll.wait(&mut events, EpollTimeout::from(timeout_ms)) {
            Err(Errno::EINTR) => 0,
            other => other?,
        };
        for event in &events[..count] {
            self.take(usize::try_from(event.data())?)?;
        }
        Ok(())
    }

    fn take(&mut self, number: usize) -> Result<()> {
        let now_ns = self.now_ns();
        let Some(subscriber) = self.subscribers.get_mut(number) else {
            let publisher = &mut self.publishers[number - self.case.subscribers];
            let unacknowledged = &mut publisher.unacknowledged;
            return publisher.client.read(|came| {
                if let Came::Acknowledged = came {
                    *unacknowledged = unacknowledged.saturating_sub(1);
                }
                Ok(())
            });
        };
        let next = &mut subscriber.next;
        let (received, latencies_ns) = (&mut self.received, &mut self.latencies_ns);
        let payload_bytes = self.payload.len();
        subscriber.client.read(|came| {
            let Came::Publish(payload) = came else { bail!("unexpected: {came:?}") };
            if payload.len() != payload_bytes {
                bail!("a payload of {} bytes arrives, of {payload_bytes}", payload.len());
            }
            let word = |at: usize| payload.get(at..).and_then(|rest| rest.first_chunk::<4>());
            let number = |at| word(at).map_or(0, |bytes| u32::from_be_bytes(*bytes));
            let (of, own) = (number(8), number(12));
            let expected = next.get_mut(of as usize).context("a publisher that there is not")?;
            if own != *expected {
                bail!("publication {own} of publisher {of} arrives where {expected} is next");
            }
            *expected += 1;
            *received += 1;
            let sent_ns = u64::from(number(0)) << 32 | u64::from(number(4));
            if sent_ns > 0 {
                latencies_ns.push(now_ns.saturating_sub(sent_ns));
            }
            Ok(())
        })?;
        subscriber.client.flush()
    }

    /// Waits for what is under way: all of it arrives, and is acknowledged.
    fn finish(&mut self, server: &Server) -> Result<()> {
        let expected = self.sent * self.case.subscribers as u64;
        let until = Instant::now() + LAST_PATIENCE;
        let is_open = |run: &Self| {
            run.received < expected || run.publishers.iter().any(|one| one.unacknowledged > 0)
        };
        while is_open(self) {
            self.step(STEP_MS)?;
            if Instant::now() > until {
                let lost = expected - self.received;
                bail!("{}: {lost} of {expected} deliveries are lost", server.kind.name());
            }
        }
        // So that the next clients of these names find no sessions.
        for subscriber in self.subscribers.drain(..) {
            subscriber.client.leave()?;
        }
        for publisher in self.publishers.drain(..) {
            publisher.client.leave()?;
        }
        Ok(())
    }
}
