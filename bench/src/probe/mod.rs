//! Probes: numbered one-way datagrams with the kernel's own timestamps.
//!
//! A packet is stamped by the driver of the sending host's interface just before the ferry can
//! read it, and again by the kernel when the ferry has written it into the receiving host. Both
//! stamps are of one clock of one machine. Neither the ferry nor the scheduling of the probe's own
//! threads has a part in them.

mod capture;
mod collector;
mod socket;

use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lab::{Lab, Side};

pub use capture::is_intact;
use collector::Collector;
use socket::{Receiver, Sender};

/// IPv4 and UDP headers before the payload.
pub const HEADER_BYTES: usize = 28;
/// The shortest packet that holds its number.
pub const MIN_PACKET_BYTES: usize = HEADER_BYTES + 4;
/// The longest: Ethernet's.
pub const MAX_PACKET_BYTES: usize = 1500;

/// Datagrams of one size over one link from a to b.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// The number of the link.
    pub link: usize,
    /// Length of each packet in IP bytes.
    pub packet_bytes: usize,
    /// Ask the kernel when each packet left.
    pub stamped: bool,
    /// Keep a copy of each packet as it reaches the receiving host, before the kernel judges it.
    pub captured: bool,
    /// How many will arrive, where chance has no part.
    pub expected: Option<usize>,
}

/// What to send and how long to listen.
pub struct Plan {
    /// The flows.
    pub flows: Vec<Flow>,
    /// When to send a packet of which flow, in order of time.
    pub schedule: Vec<(Duration, usize)>,
    /// After the last packet was sent: end when nothing has arrived for so long.
    pub quiet: Duration,
}

/// One datagram that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Its place in the order of sending, from 0.
    pub number: usize,
    /// When the kernel took it, in nanoseconds since 1970; none where it made no stamp.
    pub at_ns: Option<u64>,
}

/// What became of a flow.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// By the program's clock before it handed each packet over.
    pub handed_ns: Vec<u64>,
    /// By the kernel, when the driver got it.
    pub left_ns: Vec<Option<u64>>,
    /// In order of arrival.
    pub arrivals: Vec<Arrival>,
    /// Packets as they reached the host, IP header first.
    pub captured: Vec<Vec<u8>>,
}

/// Where transmit timestamps come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamps {
    /// The driver.
    Kernel,
    /// The program, before it hands the packet over: the way to the driver counts as error.
    Program,
}

impl Stamps {
    /// The name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Program => "program",
        }
    }
}

impl Trace {
    /// Where the transmit timestamps of this flow come from.
    #[must_use]
    pub fn stamps(&self) -> Stamps {
        if self.left_ns.iter().any(Option::is_some) { Stamps::Kernel } else { Stamps::Program }
    }

    /// How long each arrival travelled, in order of arrival. Packets that lack a stamp, though
    /// others have theirs, are left out, so that they are missed in the count.
    #[must_use]
    pub fn travel_times_ns(&self) -> Vec<i64> {
        let stamps = self.stamps();
        let left = |number: usize| match stamps {
            Stamps::Kernel => self.left_ns[number],
            Stamps::Program => Some(self.handed_ns[number]),
        };
        let travel = |arrival: &Arrival| {
            arrival.at_ns.zip(left(arrival.number)).map(|(to, from)| to.wrapping_sub(from))
        };
        self.arrivals.iter().filter_map(travel).map(u64::cast_signed).collect()
    }

    /// How often each packet arrived, in order of sending.
    #[must_use]
    pub fn copies(&self) -> Vec<usize> {
        let mut copies = vec![0; self.handed_ns.len()];
        for arrival in &self.arrivals {
            copies[arrival.number] += 1;
        }
        copies
    }
}

/// Sends as planned and listens; one trace for each flow.
///
/// # Errors
/// When a socket fails.
pub fn run(lab: &Lab, plan: &Plan) -> Result<Vec<Trace>> {
    let mut counts = vec![0; plan.flows.len()];
    for (_, flow) in &plan.schedule {
        counts[*flow] += 1;
    }
    let mut ends = Vec::new();
    for (flow, count) in plan.flows.iter().zip(&counts) {
        ends.push(Ends::open(lab, flow, *count)?);
    }
    socket::await_receive_stamps(lab.host(0, Side::A))?;
    let collector = Collector::new(plan, &ends, &counts)?;
    let (sender_done, done) = std::sync::mpsc::sync_channel(1);
    thread::scope(|scope| {
        let senders: Vec<&Sender> = ends.iter().map(|end| &end.sender).collect();
        let sending = scope.spawn(move || {
            let sent = send(plan, &senders);
            // The collector waits for nothing once it has failed.
            let _ = sender_done.send(());
            sent
        });
        let traces = collector.run(&done);
        let Ok(handed) = sending.join() else { bail!("the sending thread panicked") };
        let mut traces = traces?;
        for (trace, handed_ns) in traces.iter_mut().zip(handed?) {
            trace.handed_ns = handed_ns;
        }
        Ok(traces)
    })
}

/// The sockets of a flow.
struct Ends {
    sender: Sender,
    receiver: Receiver,
    capture: Option<OwnedFd>,
}

impl Ends {
    fn open(lab: &Lab, flow: &Flow, packets: usize) -> Result<Self> {
        if !(MIN_PACKET_BYTES..=MAX_PACKET_BYTES).contains(&flow.packet_bytes) {
            bail!(
                "packets of {} B: choose {MIN_PACKET_BYTES} to {MAX_PACKET_BYTES}",
                flow.packet_bytes
            );
        }
        let bytes = packets * flow.packet_bytes;
        let (a, b) = (lab.host(flow.link, Side::A), lab.host(flow.link, Side::B));
        let capture = flow.captured.then(|| b.within(|| capture::open(bytes))).transpose()?;
        let receiver = Receiver::open(b, bytes)?;
        let sender = Sender::open(a, b.address(), flow.stamped)?;
        Ok(Self { sender, receiver, capture: capture.transpose()? })
    }
}

/// Sends as planned; when each packet was handed over, for each flow.
fn send(plan: &Plan, senders: &[&Sender]) -> Result<Vec<Vec<u64>>> {
    let mut handed: Vec<Vec<u64>> = vec![Vec::new(); senders.len()];
    // What every packet holds after its number.
    let mut payload = [0x5a; MAX_PACKET_BYTES - HEADER_BYTES];
    let start = Instant::now();
    for (at, flow) in &plan.schedule {
        if let Some(early) = at.checked_sub(start.elapsed()) {
            thread::sleep(early);
        }
        let number = u32::try_from(handed[*flow].len()).context("too many packets")?;
        payload[..4].copy_from_slice(&number.to_be_bytes());
        let length = plan.flows[*flow].packet_bytes - HEADER_BYTES;
        handed[*flow].push(socket::now_ns()?);
        senders[*flow].send(&payload[..length])?;
    }
    Ok(handed)
}
