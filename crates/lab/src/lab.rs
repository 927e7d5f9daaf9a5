//! Labs: pairs of hosts, each joined by an emulated link.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};

use link::{ChannelConfig, DropReason, LinkConfig};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use record::result::{Lateness, Traffic};

use crate::error::{Error, Result};
use crate::ferry::{Ferry, FerryLink, LaneReport, LatenessHistogram, RealTime};
use crate::namespace::{self, Device, Host, Plan, Side, processes};

/// Descriptors that one link takes: namespace, control socket, port and a spare per host.
const DESCRIPTORS_PER_LINK: u64 = 8;
/// Descriptors left for everything else in the process.
const DESCRIPTORS_SPARE: u64 = 256;
/// Longest name of a lab or link: it becomes part of file names and of a socket's path.
const NAME_BYTES_MAX: usize = 32;

/// A link to be built, with a host at each end.
#[derive(Clone, Debug)]
pub struct LinkSpec {
    /// For results and messages: letters, digits, `-`, `_`.
    pub name: String,
    /// What the link is like.
    pub config: LinkConfig,
    /// Decides every chance on the link; the same seed decides the same.
    pub seed: u64,
}

/// How to build a lab.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What joins the hosts to the ferry.
    pub device: Device,
    /// Give the hosts names that `ip netns` knows: `lw-NAME-a`, `lw-NAME-b`. Without, everything
    /// is gone with the process, however that ends.
    pub named: bool,
    /// Marks the processes started on the hosts; see [`Lab::id`].
    pub id: String,
}

/// Pairs of hosts, each pair joined by one emulated link, until closed or dropped.
pub struct Lab {
    links: Vec<Link>,
    ferry: Ferry,
    device: Device,
    id: String,
}

struct Link {
    name: String,
    seed: u64,
    config: Mutex<LinkConfig>,
    hosts: [Host; 2],
}

/// What a link is and has done.
#[derive(Clone, Debug)]
pub struct LinkReport {
    /// As given.
    pub name: String,
    /// As given.
    pub seed: u64,
    /// From a to b.
    pub ab: DirectionReport,
    /// From b to a.
    pub ba: DirectionReport,
}

/// What one direction of a link is and has carried.
#[derive(Clone, Debug)]
pub struct DirectionReport {
    /// What is in force.
    pub config: ChannelConfig,
    /// What was carried. `dropped` also knows `intake`, packets that the ferry did not fetch in
    /// time (not part of `packets_in`), and `refused`, packets that the receiver's interface did
    /// not take: both are zero, so left out, unless the machine is overloaded or a host broken.
    pub traffic: Traffic,
    /// How truly.
    pub lateness: Lateness,
    /// Packets that arrived a second time.
    pub duplicated: u64,
    /// Packets in which a bit was flipped.
    pub corrupted: u64,
    /// Packets that skipped the delay.
    pub reordered: u64,
    /// Bytes waiting now.
    pub queued_bytes: u64,
    /// Frames that carry something else than IPv4; they never get onto the link.
    pub ignored: u64,
}

impl Lab {
    /// Builds the links and starts to move packets. Needs the right to make namespaces: see
    /// [`namespace::acquire`].
    ///
    /// # Errors
    /// [`Error::Caller`] for bad or repeated names and contradicting settings, [`Error::Machine`]
    /// for what is not permitted here.
    pub fn build(specs: &[LinkSpec]) -> Result<Self> {
        Self::build_with(specs, &Options::default())
    }

    /// As [`Lab::build`], with options.
    ///
    /// # Errors
    /// As [`Lab::build`].
    pub fn build_with(specs: &[LinkSpec], options: &Options) -> Result<Self> {
        check(specs)?;
        raise_descriptor_limit(specs.len())?;
        let device = options.device.resolve();
        let names = |spec: &LinkSpec| Side::BOTH.map(|side| namespace_name(&spec.name, side));
        let plan = |spec| Plan {
            names: options.named.then(|| names(spec)),
            config: &spec.config,
            lab_id: &options.id,
        };
        let wires = namespace::build(device, &specs.iter().map(plan).collect::<Vec<_>>())?;
        let (mut links, mut served) = (Vec::new(), Vec::new());
        for (spec, wire) in specs.iter().zip(wires) {
            let LinkSpec { name, config, seed } = spec.clone();
            served.push(FerryLink { ports: wire.ports, config: config.clone(), seed });
            links.push(Link { name, seed, config: Mutex::new(config), hosts: wire.hosts });
        }
        Ok(Self { links, ferry: Ferry::start(served)?, device, id: options.id.clone() })
    }

    /// How many links there are; they are numbered from 0 as they were given.
    #[must_use]
    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// A host of link `link`.
    ///
    /// # Panics
    /// When there is no such link.
    #[must_use]
    pub fn host(&self, link: usize, side: Side) -> &Host {
        &self.links[link].hosts[side as usize]
    }

    /// What joins the hosts to the ferry.
    #[must_use]
    pub fn device(&self) -> Device {
        self.device
    }

    /// How the ferry's thread runs.
    #[must_use]
    pub fn real_time(&self) -> RealTime {
        self.ferry.real_time()
    }

    /// The mark of processes on the hosts: their environment has `LONGWIRE_LAB_ID` with this value.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What a link is like now.
    ///
    /// # Panics
    /// When there is no such link.
    #[must_use]
    pub fn config(&self, link: usize) -> LinkConfig {
        self.links[link].config.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes a link while it runs. What is queued or travels goes on.
    ///
    /// # Errors
    /// When settings contradict each other or the kernel refuses the MTU.
    ///
    /// # Panics
    /// When there is no such link.
    pub fn configure(&self, link: usize, config: LinkConfig) -> Result<()> {
        config.check().map_err(|error| Error::Caller(error.to_string()))?;
        let known = &self.links[link];
        let mut in_force = known.config.lock().unwrap_or_else(PoisonError::into_inner);
        let (mtus, interface_mtu) = namespace::mtus(&config);
        if namespace::mtus(&in_force) != (mtus, interface_mtu) {
            for (host, mtu) in known.hosts.iter().zip(mtus) {
                host.fit(mtu, interface_mtu)?;
            }
        }
        self.ferry.configure(link, config.clone())?;
        *in_force = config;
        Ok(())
    }

    /// What a link has carried since it was built, and how truly.
    ///
    /// # Errors
    /// [`Error::FerryStopped`].
    ///
    /// # Panics
    /// When there is no such link.
    pub fn stats(&self, link: usize) -> Result<LinkReport> {
        let known = &self.links[link];
        let config = self.config(link);
        let [ab, ba] = self.ferry.report(link)?;
        let [a, b] = &known.hosts;
        Ok(LinkReport {
            name: known.name.clone(),
            seed: known.seed,
            ab: DirectionReport::new(config.ab, &ab, a.lost_on_intake()?),
            ba: DirectionReport::new(config.ba, &ba, b.lost_on_intake()?),
        })
    }

    /// Ends the processes on all hosts and removes everything. Returns how many processes there
    /// were. Dropping does the same.
    pub fn close(self) -> usize {
        self.end_processes()
    }

    fn end_processes(&self) -> usize {
        let hosts = self.links.iter().flat_map(|link| &link.hosts);
        let namespaces: HashSet<_> =
            hosts.filter_map(|host| host.namespace().identity().ok()).collect();
        processes::end_in(&namespaces)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // After this the fields follow: the names and namespaces, then the ferry with the ports.
        self.end_processes();
    }
}

impl DirectionReport {
    fn new(config: ChannelConfig, lane: &LaneReport, lost_on_intake: u64) -> Self {
        let LaneReport { stats, figures } = lane;
        let drops = DropReason::ALL.map(|reason| (reason.name(), stats.dropped(reason).packets));
        let own = [("intake", lost_on_intake), ("refused", figures.refused)];
        let dropped: BTreeMap<String, u64> = drops
            .into_iter()
            .chain(own)
            .filter(|(_, count)| *count > 0)
            .map(|(reason, count)| (reason.to_string(), count))
            .collect();
        Self {
            config,
            traffic: Traffic {
                packets_in: stats.offered.packets,
                bytes_in: stats.offered.bytes,
                packets_out: figures.written.packets,
                bytes_out: figures.written.bytes,
                dropped,
                queue_peak_bytes: stats.queue_peak.bytes,
            },
            lateness: lateness(&figures.lateness),
            duplicated: stats.duplicated.packets,
            corrupted: stats.corrupted,
            reordered: stats.reordered,
            queued_bytes: stats.queued.bytes,
            ignored: figures.ignored,
        }
    }
}

fn lateness(histogram: &LatenessHistogram) -> Lateness {
    let bins = histogram.iter_recorded();
    Lateness {
        count: histogram.len(),
        p50_us: histogram.value_at_quantile(0.5),
        p99_us: histogram.value_at_quantile(0.99),
        p999_us: histogram.value_at_quantile(0.999),
        max_us: histogram.max(),
        bins: bins.map(|bin| (bin.value_iterated_to(), u64::from(bin.count_at_value()))).collect(),
    }
}

/// The name under which `ip netns` knows a host.
pub(crate) fn namespace_name(link: &str, side: Side) -> String {
    format!("lw-{link}-{}", side.name())
}

/// Makes sure that a name may become part of a file's name.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let starts_well = name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
    if starts_well && name.len() <= NAME_BYTES_MAX && name.bytes().all(allowed) {
        return Ok(());
    }
    let shown: String =
        name.chars().take(NAME_BYTES_MAX + 1).flat_map(char::escape_debug).collect();
    Err(Error::Caller(format!(
        "'{shown}' is no name: give 1 to {NAME_BYTES_MAX} letters, digits, '-' or '_', the first \
         a letter or digit"
    )))
}

fn check(specs: &[LinkSpec]) -> Result<()> {
    let mut names = HashSet::new();
    for spec in specs {
        check_name(&spec.name)?;
        if !names.insert(spec.name.as_str()) {
            return Err(Error::Caller(format!("two links are named '{}': rename one", spec.name)));
        }
        spec.config
            .check()
            .map_err(|error| Error::Caller(format!("link '{}': {error}", spec.name)))?;
    }
    Ok(())
}

fn raise_descriptor_limit(links: usize) -> Result<()> {
    let needed = links as u64 * DESCRIPTORS_PER_LINK + DESCRIPTORS_SPARE;
    let system = |error: nix::Error| Error::System {
        doing: "raise the limit of open files".to_string(),
        source: error.into(),
    };
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(system)?;
    if soft >= needed {
        return Ok(());
    }
    if hard < needed {
        return Err(Error::Machine {
            lack: format!("{links} links take {needed} open files, the limit is {hard}"),
            remedy: "raise it (ulimit -Hn) or build fewer links",
        });
    }
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map_err(system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_file_names_are_refused() {
        for name in ["x", "field-1", "A_b", &"n".repeat(32)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "-x", "../x", "a b", "a\n", "é", &"n".repeat(33)] {
            let message = check_name(name).unwrap_err().to_string();
            assert!(message.contains("1 to 32") && !message.contains('\n'), "{message}");
        }
    }

    #[test]
    fn specs_are_checked_before_anything_is_built() {
        let spec = |name: &str| LinkSpec {
            name: name.to_string(),
            config: LinkConfig::default(),
            seed: 1,
        };
        let message = Lab::build(&[spec("x"), spec("x")]).err().unwrap().to_string();
        assert!(message.contains("two links are named 'x'"), "{message}");
        let mut bad = spec("y");
        bad.config.ab.reorder = 0.5;
        let message = Lab::build(&[bad]).err().unwrap().to_string();
        assert!(message.contains("link 'y'") && message.contains("delay"), "{message}");
    }
}
