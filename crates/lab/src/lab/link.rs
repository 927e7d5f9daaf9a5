//! One link with its two hosts, from being added to being dropped.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use link::LinkConfig;
use record::packets::PacketRecord;

use super::report::{DirectionReport, LinkReport};
use super::{check_name, namespace_name};
use crate::error::{Error, Result};
use crate::ferry::{Beginning, Ferry, FerryLink, Ticket};
use crate::namespace::{
    self, Device, Host, MAX_LINKS, Plan, Side, TcpSettings, Wire, Workshop, processes,
};

/// Most packets of one link that may be recorded: 16 million take more than 1 GB.
pub const MAX_RECORD_PACKETS: usize = 1 << 24;

/// A link to be built, with a host at each end.
#[derive(Clone, Debug)]
pub struct LinkSpec {
    /// For results and messages: letters, digits, `-`, `_`.
    pub name: String,
    /// What the link is like.
    pub config: LinkConfig,
    /// Decides every chance on the link; the same seed decides the same.
    pub seed: u64,
    /// How TCP behaves on host a, on host b.
    pub tcp: [TcpSettings; 2],
    /// Packets to be recorded, at most [`MAX_RECORD_PACKETS`]; those beyond are counted. With 0
    /// none is looked at.
    pub record_packets: usize,
}

impl LinkSpec {
    /// A link with TCP as it is by default and no record of packets.
    #[must_use]
    pub fn new(name: impl Into<String>, config: LinkConfig, seed: u64) -> Self {
        Self { name: name.into(), config, seed, ..Self::default() }
    }

    pub(super) fn check(&self) -> Result<()> {
        let named =
            |error: &dyn std::fmt::Display| Error::Caller(format!("link '{}': {error}", self.name));
        check_name(&self.name)?;
        self.config.check().map_err(|error| named(&error))?;
        for tcp in &self.tcp {
            tcp.check().map_err(|error| named(&error))?;
        }
        if self.record_packets > MAX_RECORD_PACKETS {
            let asked = self.record_packets;
            return Err(named(&format_args!(
                "{asked} packets to record: give at most {MAX_RECORD_PACKETS}"
            )));
        }
        Ok(())
    }
}

impl Default for LinkSpec {
    fn default() -> Self {
        Self {
            name: "link".to_string(),
            config: LinkConfig::default(),
            seed: 1,
            tcp: [TcpSettings::default(), TcpSettings::default()],
            record_packets: 0,
        }
    }
}

/// What all links of a lab share; it lives as long as one of them.
pub(super) struct Works {
    pub(super) ferry: Ferry,
    pub(super) device: Device,
    pub(super) id: String,
    named: bool,
    workshop: Workshop,
    links: AtomicUsize,
}

impl Works {
    pub(super) fn start(device: Device, named: bool, id: String) -> Result<Self> {
        let workshop = Workshop::open(device)?;
        let links = AtomicUsize::new(0);
        Ok(Self { ferry: Ferry::start()?, device, id, named, workshop, links })
    }

    fn build(&self, spec: &LinkSpec) -> Result<Wire> {
        self.workshop.build(&Plan {
            names: self.named.then(|| Side::BOTH.map(|side| namespace_name(&spec.name, side))),
            config: &spec.config,
            tcp: &spec.tcp,
            lab_id: &self.id,
        })
    }
}

/// One of the links that a lab has at a time; gives its place back when dropped.
struct Seat(Arc<Works>);

impl Seat {
    fn take(works: &Arc<Works>) -> Result<Self> {
        let seat = Self(Arc::clone(works));
        if works.links.fetch_add(1, Ordering::Relaxed) < MAX_LINKS {
            return Ok(seat);
        }
        Err(Error::Caller(format!("the lab has {MAX_LINKS} links, the most: drop one first")))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.links.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A running link with its hosts. Dropping it ends the processes on the hosts and removes it all,
/// which takes a moment; other links do not notice.
pub struct Link {
    name: String,
    record_packets: usize,
    state: Mutex<LinkState>,
    hosts: [Host; 2],
    ticket: Ticket,
    /// Nothing runs on the hosts any more.
    deserted: AtomicBool,
    seat: Seat,
}

/// What changes while a link runs.
struct LinkState {
    config: LinkConfig,
    seed: u64,
    /// Packets lost on the intakes before the link was last begun.
    lost_before: [u64; 2],
}

impl Link {
    pub(super) fn add(works: &Arc<Works>, spec: &LinkSpec) -> Result<Self> {
        spec.check()?;
        let seat = Seat::take(works)?;
        let Wire { hosts, ports } = works.build(spec)?;
        let LinkSpec { name, config, seed, record_packets, .. } = spec.clone();
        let beginning = Beginning::new(config.clone(), seed, record_packets)?;
        let ticket = works.ferry.add(FerryLink { ports, beginning })?;
        let state = Mutex::new(LinkState { config, seed, lost_before: [0; 2] });
        let deserted = AtomicBool::new(false);
        Ok(Self { name, record_packets, state, hosts, ticket, deserted, seat })
    }

    /// As given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The host at one end.
    #[must_use]
    pub fn host(&self, side: Side) -> &Host {
        &self.hosts[side as usize]
    }

    /// What the link is like now.
    #[must_use]
    pub fn config(&self) -> LinkConfig {
        self.state().config.clone()
    }

    /// Changes the link while it runs. What is queued or travels goes on.
    ///
    /// # Errors
    /// When settings contradict each other or the kernel refuses the MTU.
    pub fn configure(&self, config: LinkConfig) -> Result<()> {
        config.check().map_err(|error| Error::Caller(error.to_string()))?;
        let mut state = self.state();
        let mtus = namespace::mtus(&config);
        if namespace::mtus(&state.config) != mtus {
            for host in &self.hosts {
                host.fit(&mtus)?;
            }
        }
        self.ferry().configure(self.ticket, config.clone())?;
        state.config = config;
        Ok(())
    }

    /// Begins anew on the same hosts, as if the link had just been added with this seed: its time,
    /// its counts and its record start again. What is queued or travels is lost, so the hosts
    /// should be quiet.
    ///
    /// # Errors
    /// [`Error::FerryStopped`].
    pub fn renew(&self, seed: u64) -> Result<()> {
        let mut state = self.state();
        let beginning = Beginning::new(state.config.clone(), seed, self.record_packets)?;
        self.ferry().renew(self.ticket, beginning)?;
        state.seed = seed;
        state.lost_before = self.lost()?;
        Ok(())
    }

    /// What the link has carried since it was added or renewed, and how truly.
    ///
    /// # Errors
    /// [`Error::FerryStopped`].
    pub fn stats(&self) -> Result<LinkReport> {
        let state = self.state();
        let [ab, ba] = self.ferry().report(self.ticket)?;
        let (now, before) = (self.lost()?, state.lost_before);
        let [lost_ab, lost_ba] =
            [now[0].saturating_sub(before[0]), now[1].saturating_sub(before[1])];
        Ok(LinkReport {
            name: self.name.clone(),
            seed: state.seed,
            ab: DirectionReport::new(state.config.ab.clone(), &ab, lost_ab),
            ba: DirectionReport::new(state.config.ba.clone(), &ba, lost_ba),
        })
    }

    /// The packets that the link has carried since it was added or renewed, in the order in which
    /// they were offered; copies that the link made stand where they arrived. Times are on
    /// CLOCK_MONOTONIC.
    /// Empty unless [`LinkSpec::record_packets`] was given.
    ///
    /// # Errors
    /// [`Error::FerryStopped`].
    pub fn record(&self) -> Result<PacketRecord> {
        self.ferry().record(self.ticket)
    }

    /// Packets lost on the way from each host to the ferry, since the hosts were made.
    fn lost(&self) -> Result<[u64; 2]> {
        let [a, b] = &self.hosts;
        Ok([a.lost_on_intake()?, b.lost_on_intake()?])
    }

    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ferry(&self) -> &Ferry {
        &self.seat.0.ferry
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if !self.deserted.load(Ordering::Relaxed) {
            desert([&*self].into_iter());
        }
        // A ferry that has stopped has closed the ports.
        if let Ok(remains) = self.ferry().remove(self.ticket) {
            remains.abandon();
        }
        // After this the fields follow: the names and namespaces, perhaps the ferry.
    }
}

/// Ends the processes on all hosts of some links; returns how many there were.
pub(super) fn desert<'a>(links: impl Iterator<Item = &'a Link>) -> usize {
    let mark = |link: &'a Link| {
        link.deserted.store(true, Ordering::Relaxed);
        &link.hosts
    };
    let hosts = links.flat_map(mark);
    let namespaces: HashSet<_> =
        hosts.filter_map(|host| host.namespace().identity().ok()).collect();
    processes::end_in(&namespaces)
}
