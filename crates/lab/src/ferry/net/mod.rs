//! The ferry of a net: many ports on media that they share and on plain links, in real time.
//!
//! One thread of its own serves a net. It works as the ferry of pairs does: it sleeps until the
//! earliest moment at which something is due or a frame arrives, and never blocks on a port. A
//! frame goes to the port that its MAC address names; one to a group or to all goes into the air
//! once, and each port that hears it gets it. Reports of group membership (IGMP) go nowhere: there
//! is no router that asks for them.

mod meta;
mod record;
mod segment;
mod thread;

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use link::LinkConfig;
use link::medium::{MediumConfig, PortId};

use super::RealTime;
use super::command::{self, Sender};
use super::lane::LatenessHistogram;
use super::port::Port;
use super::realtime::{lock_memory, raise_this_thread};
use crate::error::{Doing, Error, Result};
pub(crate) use meta::{Cast, PacketMeta, mac};
pub(crate) use record::AirEntry;
use thread::NetThread;

/// Most transmissions of a run that are recorded; about 200 MB. Those beyond are counted.
pub(crate) const MAX_AIR_ENTRIES: usize = 1 << 20;
/// Most media and plain links of a net.
pub(crate) const MAX_SEGMENTS: usize = 256;

/// What carries packets: several ports share it, or two.
#[derive(Clone, Debug)]
pub(crate) enum SegmentPlan {
    /// A radio channel.
    Medium {
        config: Box<MediumConfig>,
        /// The sockets of its ports, in the order of their numbers.
        sockets: Vec<usize>,
        charge: Option<Charge>,
    },
    /// A plain link.
    Link { config: Box<LinkConfig>, sockets: [usize; 2] },
}

/// Airtime that is charged for what a protocol of routing would send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// IP bytes of what each port sends to all.
    pub bytes: u32,
    /// How often.
    pub interval: Duration,
}

/// What a net begins with.
pub(crate) struct NetPlan {
    /// The ports to hosts, which segments name by their places.
    pub(crate) sockets: Vec<Port>,
    pub(crate) segments: Vec<SegmentPlan>,
    pub(crate) seed: u64,
}

/// From now on a signal from one port of a medium to another loses so much; none where they do not
/// hear each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossChange {
    /// The medium's place in the topology.
    pub medium: usize,
    /// The sender's port.
    pub from: PortId,
    /// The receiver's port.
    pub to: PortId,
    /// In dB.
    pub loss_db: Option<f64>,
}

/// What a net has done since it was begun.
#[derive(Clone)]
pub(crate) struct NetFigures {
    /// Packets that got nowhere, by reason.
    pub(crate) dropped: BTreeMap<&'static str, u64>,
    /// Frames that carry no IPv4, and reports of group membership.
    pub(crate) ignored: u64,
    /// Packets written to hosts.
    pub(crate) written: u64,
    pub(crate) lateness: LatenessHistogram,
    /// Transmissions that were not recorded.
    pub(crate) unrecorded: u64,
    /// How long it has been since.
    pub(crate) elapsed: Duration,
    /// Processor time of the ferry's thread.
    pub(crate) busy: Duration,
}

/// What the thread is asked to do.
enum NetCommand {
    Begin { losses: Vec<LossChange>, done: SyncSender<()> },
    Losses { changes: Vec<LossChange>, done: SyncSender<()> },
    Power { medium: usize, port: PortId, power_dbm: f64, done: SyncSender<()> },
    Report { answer: SyncSender<NetFigures> },
    Take { answer: SyncSender<Vec<Vec<AirEntry>>> },
    Stop,
}

/// A running ferry of a net; stops when dropped.
pub(crate) struct NetFerry {
    commands: Sender<NetCommand>,
    thread: Option<JoinHandle<Vec<Port>>>,
    real_time: RealTime,
}

impl NetFerry {
    /// Starts to move packets over media on which nobody hears anybody yet.
    pub(crate) fn start(plan: NetPlan) -> Result<Self> {
        let doing = || "start a net's ferry".to_string();
        let (commands, inbox) = command::channel().doing(doing)?;
        let (started, start) = mpsc::sync_channel(1);
        let work = move || {
            let priority = raise_this_thread();
            match NetThread::new(plan, inbox) {
                Ok(thread) => {
                    // Received below, before anything can drop it.
                    let _ = started.send(Ok(priority.is_ok()));
                    thread.run()
                }
                Err(error) => {
                    let _ = started.send(Err(error));
                    Vec::new()
                }
            }
        };
        let memory_locked = lock_memory();
        let builder = std::thread::Builder::new().name("net-ferry".to_string());
        let thread = builder.spawn(work).doing(doing)?;
        let priority = start.recv().map_err(|_| Error::FerryStopped)??;
        let real_time = RealTime { priority, memory_locked };
        Ok(Self { commands, thread: Some(thread), real_time })
    }

    /// How the thread runs.
    pub(crate) fn real_time(&self) -> RealTime {
        self.real_time
    }

    /// Begins anew: time counts from now, what was in the air is lost, nothing is recorded yet.
    pub(crate) fn begin(&self, losses: Vec<LossChange>) -> Result<()> {
        self.ask(|done| NetCommand::Begin { losses, done })
    }

    /// Changes path losses from now on.
    pub(crate) fn change_losses(&self, changes: Vec<LossChange>) -> Result<()> {
        self.ask(|done| NetCommand::Losses { changes, done })
    }

    /// Changes a radio's output power from now on.
    pub(crate) fn change_power(&self, medium: usize, port: PortId, power_dbm: f64) -> Result<()> {
        self.ask(|done| NetCommand::Power { medium, port, power_dbm, done })
    }

    /// What the net has done.
    pub(crate) fn report(&self) -> Result<NetFigures> {
        self.ask(|answer| NetCommand::Report { answer })
    }

    /// Takes what has been in the air since this was last asked, in chunks.
    pub(crate) fn take_air(&self) -> Result<Vec<Vec<AirEntry>>> {
        self.ask(|answer| NetCommand::Take { answer })
    }

    /// Stops. The interfaces are left to their namespaces, which are about to be removed.
    pub(crate) fn stop(mut self) {
        self.halt().into_iter().for_each(Port::abandon);
    }

    fn ask<T>(&self, command: impl FnOnce(SyncSender<T>) -> NetCommand) -> Result<T> {
        let (answer, inbox): (_, Receiver<T>) = mpsc::sync_channel(1);
        self.commands.send(command(answer))?;
        inbox.recv().map_err(|_| Error::FerryStopped)
    }

    fn halt(&mut self) -> Vec<Port> {
        let stopped = self.commands.send(NetCommand::Stop);
        let Some(thread) = self.thread.take() else { return Vec::new() };
        // A thread that cannot be told to stop has stopped already: joining does not wait.
        if stopped.is_err() && !thread.is_finished() {
            return Vec::new();
        }
        thread.join().unwrap_or_else(|_| {
            tracing::error!("a net's ferry panicked");
            Vec::new()
        })
    }
}

impl Drop for NetFerry {
    fn drop(&mut self) {
        self.halt().into_iter().for_each(Port::abandon);
    }
}
