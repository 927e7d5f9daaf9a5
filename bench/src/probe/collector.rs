//! One thread that takes what arrives and when it left, while another one sends.

use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver as Inbox, TryRecvError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::{Ends, Flow, Plan, Trace, capture};

/// How often it looks whether all has come.
const LOOK_MS: u16 = 20;
/// Events fetched at once.
const MAX_EVENTS: usize = 64;

/// What an event is about; its number is that of the flow times the kinds, plus the kind.
const KINDS: u64 = 3;
const LEFT: u64 = 0;
const ARRIVED: u64 = 1;
const CAPTURED: u64 = 2;

pub(super) struct Collector<'a> {
    flows: &'a [Flow],
    ends: &'a [Ends],
    counts: &'a [usize],
    quiet: Duration,
    epoll: Epoll,
    traces: Vec<Trace>,
    stamped: Vec<usize>,
}

impl<'a> Collector<'a> {
    /// `counts` says how many packets of each flow will be sent.
    pub(super) fn new(plan: &'a Plan, ends: &'a [Ends], counts: &'a [usize]) -> Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for (index, end) in (0_u64..).zip(ends) {
            let watch = |what: &dyn AsFd, flags, kind| {
                epoll.add(what, EpollEvent::new(flags, index * KINDS + kind))
            };
            // Transmit timestamps are errors to epoll, which always tells of those.
            watch(end.sender.as_socket(), EpollFlags::empty(), LEFT)?;
            watch(end.receiver.as_socket(), EpollFlags::EPOLLIN, ARRIVED)?;
            if let Some(capture) = &end.capture {
                watch(capture, EpollFlags::EPOLLIN, CAPTURED)?;
            }
        }
        let trace = |count: &usize| Trace {
            left_ns: vec![None; *count],
            arrivals: Vec::with_capacity(*count),
            ..Trace::default()
        };
        Ok(Self {
            flows: &plan.flows,
            ends,
            counts,
            quiet: plan.quiet,
            epoll,
            traces: counts.iter().map(trace).collect(),
            stamped: vec![0; ends.len()],
        })
    }

    /// Collects until `done` tells that all is sent and all has come, or nothing comes any more.
    pub(super) fn run(mut self, done: &Inbox<()>) -> Result<Vec<Trace>> {
        let mut all_sent = false;
        let mut latest = Instant::now();
        loop {
            let mut events = [EpollEvent::empty(); MAX_EVENTS];
            let count = match self.epoll.wait(&mut events, EpollTimeout::from(LOOK_MS)) {
                Err(Errno::EINTR) => 0,
                other => other?,
            };
            for event in &events[..count] {
                self.take(event.data())?;
            }
            // Sending ends with a message or, when it fails, with a closed channel.
            if !all_sent && !matches!(done.try_recv(), Err(TryRecvError::Empty)) {
                all_sent = true;
                latest = Instant::now();
            }
            if count > 0 {
                latest = Instant::now();
            } else if all_sent && (self.has_all() || latest.elapsed() > self.quiet) {
                return Ok(self.traces);
            }
        }
    }

    fn take(&mut self, event: u64) -> Result<()> {
        let index = usize::try_from(event / KINDS)?;
        let (end, trace) = (&self.ends[index], &mut self.traces[index]);
        match event % KINDS {
            LEFT => {
                while let Some((number, left_ns)) = end.sender.next_stamp()? {
                    let Some(place) = trace.left_ns.get_mut(number) else {
                        bail!("a transmit timestamp for packet {number}, which was not sent");
                    };
                    *place = Some(left_ns);
                    self.stamped[index] += 1;
                }
            }
            ARRIVED => {
                while let Some(arrival) = end.receiver.next_arrival()? {
                    if arrival.number >= self.counts[index] {
                        bail!("packet {} arrives, which was not sent", arrival.number);
                    }
                    trace.arrivals.push(arrival);
                }
            }
            _ => {
                if let Some(capture) = &end.capture {
                    while let Some(packet) = capture::next_packet(capture)? {
                        trace.captured.push(packet);
                    }
                }
            }
        }
        Ok(())
    }

    fn has_all(&self) -> bool {
        let all = self.flows.iter().zip(&self.traces).zip(self.counts.iter().zip(&self.stamped));
        all.into_iter().all(|((flow, trace), (count, stamped))| {
            let arrived = flow.expected.is_some_and(|expected| trace.arrivals.len() >= expected);
            arrived && (!flow.stamped || stamped >= count)
        })
    }
}
