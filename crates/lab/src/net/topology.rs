//! Hosts with several interfaces each, joined by media that many share and by plain links.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use link::LinkConfig;
use link::medium::{MAX_PORTS, MediumConfig, PortId};

use super::air::AirEntries;
use crate::error::{Doing, Error, Result};
use crate::ferry::net::{
    Charge, LossChange, MAX_SEGMENTS, NetFerry, NetFigures, NetPlan, SegmentPlan, mac,
};
use crate::ferry::{Port, RealTime};
use crate::lab::{check_name, raise_descriptor_limit};
use crate::namespace::{
    Interface, MAX_NODE_NAME_BYTES, Node, NodePlan, RouteChange, TcpSettings, on_fresh_thread,
    processes,
};

/// Most hosts of a topology.
pub const MAX_HOSTS: usize = 1000;
/// Most interfaces of a host.
pub const MAX_INTERFACES: usize = 16;
/// MTU of an interface to a segment without a limit of its own: Ethernet's.
const DEFAULT_MTU_BYTES: u32 = 1500;

/// Hosts and what joins them.
#[derive(Clone, Debug)]
pub struct TopologySpec {
    /// A name for the whole: letters, digits, `-`, `_`.
    pub name: String,
    /// The hosts.
    pub hosts: Vec<HostSpec>,
    /// What joins them.
    pub segments: Vec<SegmentSpec>,
    /// Decides every chance on them.
    pub seed: u64,
    /// How TCP behaves on all hosts.
    pub tcp: TcpSettings,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSpec {
    /// Its name, which resolves on all hosts.
    pub name: String,
    /// For each of its interfaces, in their order, the segment's place in
    /// [`TopologySpec::segments`].
    pub interfaces: Vec<usize>,
}

/// What joins hosts.
#[derive(Clone, Debug)]
pub struct SegmentSpec {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: SegmentKind,
}

/// A medium or a plain link. Interfaces of hosts are its ports in the order of the hosts.
#[derive(Clone, Debug)]
pub enum SegmentKind {
    /// A radio channel, on which nobody hears anybody until path losses are given; and what is
    /// charged on it for a protocol of routing.
    Medium(Box<MediumConfig>, Option<Charge>),
    /// A plain link of two.
    Link(Box<LinkConfig>),
}

impl TopologySpec {
    /// The smallest: hosts a and b, joined by a plain link.
    #[must_use]
    pub fn pair(name: impl Into<String>, config: LinkConfig, seed: u64) -> Self {
        let host = |name: &str| HostSpec { name: name.to_string(), interfaces: vec![0] };
        let kind = SegmentKind::Link(Box::new(config));
        Self {
            name: name.into(),
            hosts: vec![host("a"), host("b")],
            segments: vec![SegmentSpec { name: "link".to_string(), kind }],
            seed,
            tcp: TcpSettings::default(),
        }
    }

    /// Whether it can be built.
    ///
    /// # Errors
    /// [`Error::Caller`] naming the host or segment.
    pub fn check(&self) -> Result<()> {
        let wrong = |what: String| Err(Error::Caller(what));
        check_name(&self.name)?;
        self.tcp.check()?;
        if self.hosts.is_empty() || self.hosts.len() > MAX_HOSTS {
            return wrong(format!("{} hosts: give 1 to {MAX_HOSTS}", self.hosts.len()));
        }
        if self.segments.len() > MAX_SEGMENTS {
            let count = self.segments.len();
            return wrong(format!("{count} media and links: give at most {MAX_SEGMENTS}"));
        }
        let mut names = HashSet::new();
        for host in &self.hosts {
            let HostSpec { name, interfaces } = host;
            check_host_name(name)?;
            if !names.insert(name.as_str()) {
                return wrong(format!("two hosts are named '{name}': rename one"));
            }
            if interfaces.is_empty() || interfaces.len() > MAX_INTERFACES {
                let count = interfaces.len();
                return wrong(format!(
                    "host '{name}' has {count} interfaces: give 1 to {MAX_INTERFACES}"
                ));
            }
            let distinct: HashSet<&usize> = interfaces.iter().collect();
            if distinct.len() < interfaces.len() {
                return wrong(format!("host '{name}' is on one segment twice: leave one out"));
            }
            if let Some(missing) = interfaces.iter().find(|at| **at >= self.segments.len()) {
                return wrong(format!("host '{name}' is on segment {missing}: there is none"));
            }
        }
        (0..self.segments.len()).try_for_each(|segment| self.check_segment(segment))
    }

    fn check_segment(&self, segment: usize) -> Result<()> {
        let SegmentSpec { name, kind } = &self.segments[segment];
        let ports = self.members(segment).count();
        let named = |error: link::Error| Error::Caller(format!("'{name}': {error}"));
        match kind {
            SegmentKind::Medium(config, charge) => {
                let ports = PortId::try_from(ports).unwrap_or(PortId::MAX).min(MAX_PORTS);
                config.check(ports).map_err(named)?;
                if charge.is_some_and(|charge| charge.interval.is_zero()) {
                    let what = format!("'{name}': airtime of routing each 0 s: give an interval");
                    return Err(Error::Caller(what));
                }
                Ok(())
            }
            SegmentKind::Link(config) if ports == 2 => config.check().map_err(named),
            SegmentKind::Link(_) => Err(Error::Caller(format!(
                "link '{name}' joins {ports} hosts: give it two, or make it a medium"
            ))),
        }
    }

    /// The hosts on a segment with the number of the interface, in the order of its ports.
    fn members(&self, segment: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.hosts.iter().enumerate().filter_map(move |(host, spec)| {
            let interface = spec.interfaces.iter().position(|at| *at == segment)?;
            Some((host, interface))
        })
    }

    fn mtu(&self, segment: usize) -> u32 {
        let limit = match &self.segments[segment].kind {
            SegmentKind::Medium(config, _) => config.mtu,
            SegmentKind::Link(config) => config.ab.mtu.into_iter().chain(config.ba.mtu).min(),
        };
        limit.unwrap_or(DEFAULT_MTU_BYTES)
    }

    /// The interfaces of a host, with all who are on the same segments.
    fn interfaces(&self, host: usize, members: &[Vec<usize>]) -> Vec<Interface> {
        let of = |segment: &usize| {
            let all = &members[*segment];
            let number = u16::try_from(*segment).unwrap_or(u16::MAX);
            let of_port = |port: usize| mac(number, PortId::try_from(port).unwrap_or(PortId::MAX));
            let own = all.iter().position(|one| *one == host).unwrap_or_default();
            let others = all.iter().enumerate().filter(|(_, one)| **one != host);
            Interface {
                mac: of_port(own),
                mtu: self.mtu(*segment),
                neighbours: others.map(|(port, one)| (address(*one), of_port(port))).collect(),
            }
        };
        self.hosts[host].interfaces.iter().map(of).collect()
    }
}

/// The address of the `host`th host of a net, whichever interface is used.
fn address(host: usize) -> Ipv4Addr {
    let base = u32::from(Ipv4Addr::new(10, 64, 0, 1));
    Ipv4Addr::from(base.saturating_add(u32::try_from(host).unwrap_or(u32::MAX)))
}

/// A name that may stand in a file of names.
fn check_host_name(name: &str) -> Result<()> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let starts_well = name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
    if starts_well && name.len() <= MAX_NODE_NAME_BYTES && name.bytes().all(allowed) {
        return Ok(());
    }
    let shown: String =
        name.chars().take(MAX_NODE_NAME_BYTES + 1).flat_map(char::escape_debug).collect();
    Err(Error::Caller(format!(
        "'{shown}' is no host's name: give 1 to {MAX_NODE_NAME_BYTES} letters, digits, '-', '.' or \
         '_', the first a letter or digit"
    )))
}

/// A route of a host that is other than it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRoute {
    /// The host whose route it is.
    pub host: usize,
    /// The host that it leads to.
    pub to: usize,
    /// The host that is next on the way, and the segment; none where there is no way any more.
    pub by: Option<(usize, usize)>,
}

/// A topology that runs, until dropped.
pub struct Topology {
    spec: TopologySpec,
    nodes: Vec<Node>,
    /// Gone first when it is closed, so that no packet comes after.
    ferry: Option<NetFerry>,
    id: String,
    names: PathBuf,
}

impl Topology {
    /// Builds the hosts and starts to move packets. `scratch` is a directory for a file of names.
    /// Needs the right to make namespaces: see [`acquire`](crate::acquire).
    ///
    /// # Errors
    /// [`Error::Caller`] for what [`TopologySpec::check`] refuses, [`Error::Machine`] for what is
    /// not permitted here.
    pub fn build(spec: TopologySpec, scratch: &Path) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        spec.check()?;
        raise_descriptor_limit(spec.hosts.len())?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let id = format!("net-{}-{number}", std::process::id());
        let names = scratch.join(format!("{}-{number}.names", spec.name));
        std::fs::write(&names, hosts_file(&spec)).doing(|| format!("write {}", names.display()))?;
        let members: Vec<Vec<usize>> = (0..spec.segments.len())
            .map(|segment| spec.members(segment).map(|(host, _)| host).collect())
            .collect();
        let mut nodes = Vec::with_capacity(spec.hosts.len());
        let (mut sockets, mut places) = (Vec::new(), Vec::new());
        // Making a namespace moves the thread into it.
        on_fresh_thread(|| -> Result<()> {
            for (host, of) in spec.hosts.iter().enumerate() {
                let (node, ports) = Node::build(&NodePlan {
                    name: &of.name,
                    address: address(host),
                    interfaces: &spec.interfaces(host, &members),
                    tcp: &spec.tcp,
                    lab_id: &id,
                })?;
                nodes.push(node);
                places.push(sockets.len());
                sockets.extend(ports);
            }
            Ok(())
        })?;
        let ferry = NetFerry::start(plan(&spec, sockets, &places))?;
        Ok(Self { spec, nodes, ferry: Some(ferry), id, names })
    }

    /// How many hosts there are; they are numbered from 0 as they were given.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.nodes.len()
    }

    /// What it was built from.
    #[must_use]
    pub fn spec(&self) -> &TopologySpec {
        &self.spec
    }

    /// The number of a host by its name.
    #[must_use]
    pub fn host_named(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name() == name)
    }

    /// The address of a host; none where there is no such host.
    #[must_use]
    pub fn address(&self, host: usize) -> Option<Ipv4Addr> {
        self.nodes.get(host).map(Node::address)
    }

    /// The port of a host on a segment; none where it is not on it.
    #[must_use]
    pub fn port(&self, segment: usize, host: usize) -> Option<PortId> {
        let place = self.spec.members(segment).position(|(one, _)| one == host)?;
        PortId::try_from(place).ok()
    }

    /// The mark of processes on the hosts: their environment has `LONGWIRE_LAB_ID` with this value.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How the ferry's thread runs.
    ///
    /// # Errors
    /// [`Error::FerryStopped`].
    pub fn real_time(&self) -> Result<RealTime> {
        self.ferry().map(NetFerry::real_time)
    }

    /// A program that will run on a host, where the names of all hosts resolve. `longwire` is this
    /// project's binary, which enters the host and becomes the program. It ends with the thread
    /// that starts it.
    ///
    /// # Errors
    /// [`Error::Caller`] when there is no such host.
    pub fn command(
        &self,
        host: usize,
        longwire: &Path,
        program: impl AsRef<std::ffi::OsStr>,
    ) -> Result<Command> {
        Ok(self.node(host)?.launch(longwire, &self.names, program))
    }

    /// Runs `work` on a thread of its own on a host; see [`within`](crate::within).
    ///
    /// # Errors
    /// When there is no such host, or it cannot be entered.
    pub fn within<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> Result<T> {
        self.node(host)?.within(work)
    }

    /// Begins anew: time on the media counts from now, what was in the air is lost, figures begin
    /// at 0, and only the path losses given are in force.
    ///
    /// # Errors
    /// [`Error::FerryStopped`].
    pub fn begin(&self, losses: Vec<LossChange>) -> Result<()> {
        self.ferry()?.begin(losses)
    }

    /// Changes path losses from now on.
    ///
    /// # Errors
    /// [`Error::FerryStopped`].
    pub fn change_losses(&self, changes: Vec<LossChange>) -> Result<()> {
        self.ferry()?.change_losses(changes)
    }

    /// Changes the output power of a host's radio on a medium from now on, in dBm.
    ///
    /// # Errors
    /// [`Error::Caller`] when it is not on that medium, [`Error::FerryStopped`].
    pub fn change_power(&self, medium: usize, host: usize, power_dbm: f64) -> Result<()> {
        let port = self.port(medium, host).ok_or_else(|| {
            Error::Caller(format!("host {host} is not on medium {medium}: join it"))
        })?;
        self.ferry()?.change_power(medium, port, power_dbm)
    }

    /// Changes routes; those of each host in one batch.
    ///
    /// # Errors
    /// [`Error::Caller`] for hosts and segments that there are not, [`Error::System`] when the
    /// kernel refuses one.
    pub fn change_routes(&self, routes: &[HostRoute]) -> Result<()> {
        let missing = || Error::Caller("a route over what is not there".to_string());
        for of_host in routes.chunk_by(|one, other| one.host == other.host) {
            let Some(first) = of_host.first() else { continue };
            let node = self.node(first.host)?;
            let change = |route: &HostRoute| {
                let destination = self.address(route.to).ok_or_else(missing)?;
                let Some((next, segment)) = route.by else {
                    return Ok(RouteChange { destination, by: None });
                };
                let next = self.address(next).ok_or_else(missing)?;
                let interfaces = &self.spec.hosts[route.host].interfaces;
                let number = interfaces.iter().position(|at| *at == segment);
                let interface = number.and_then(|number| node.interface(number));
                Ok(RouteChange { destination, by: Some((next, interface.ok_or_else(missing)?)) })
            };
            let changes: Vec<RouteChange> = of_host.iter().map(change).collect::<Result<_>>()?;
            node.change_routes(&changes)?;
        }
        Ok(())
    }

    /// What the ferry has done since the beginning.
    pub(crate) fn figures(&self) -> Result<NetFigures> {
        self.ferry()?.report()
    }

    /// Takes what has been in the air since this was last asked.
    ///
    /// # Errors
    /// [`Error::FerryStopped`].
    pub fn take_air(&self) -> Result<AirEntries> {
        self.ferry()?.take_air().map(AirEntries::new)
    }

    /// Ends all processes on the hosts and removes these; returns how many processes there were.
    /// Dropping does the same.
    pub fn close(mut self) -> usize {
        self.remove()
    }

    /// Ends all processes on the hosts; returns how many there were.
    pub fn end_processes(&self) -> usize {
        let namespaces = self.nodes.iter().filter_map(|node| node.namespace().identity().ok());
        processes::end_in(&namespaces.collect())
    }

    fn node(&self, host: usize) -> Result<&Node> {
        let missing = || Error::Caller(format!("there is no host {host}"));
        self.nodes.get(host).ok_or_else(missing)
    }

    fn ferry(&self) -> Result<&NetFerry> {
        self.ferry.as_ref().ok_or(Error::FerryStopped)
    }

    fn remove(&mut self) -> usize {
        let Some(ferry) = self.ferry.take() else { return 0 };
        let ended = self.end_processes();
        ferry.stop();
        self.nodes.clear();
        // Only a file in the place for temporary files would remain.
        let _ = std::fs::remove_file(&self.names);
        ended
    }
}

impl Drop for Topology {
    fn drop(&mut self) {
        self.remove();
    }
}

/// What the ferry is told; the sockets of a host begin at its place.
fn plan(spec: &TopologySpec, sockets: Vec<Port>, places: &[usize]) -> NetPlan {
    let segment = |(number, segment): (usize, &SegmentSpec)| {
        let of = spec.members(number).map(|(host, interface)| places[host] + interface);
        let of: Vec<usize> = of.collect();
        match &segment.kind {
            SegmentKind::Medium(config, charge) => {
                SegmentPlan::Medium { config: config.clone(), sockets: of, charge: *charge }
            }
            SegmentKind::Link(config) => {
                let sockets = [0, 1].map(|end| of.get(end).copied().unwrap_or(usize::MAX));
                SegmentPlan::Link { config: config.clone(), sockets }
            }
        }
    };
    let segments = spec.segments.iter().enumerate().map(segment).collect();
    NetPlan { sockets, segments, seed: spec.seed }
}

/// The names of all hosts.
fn hosts_file(spec: &TopologySpec) -> String {
    let lines = spec.hosts.iter().enumerate();
    let lines = lines.map(|(host, of)| format!("{} {}\n", address(host), of.name));
    format!("127.0.0.1 localhost\n{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use link::medium::{Access, Csma};

    fn row() -> TopologySpec {
        let config = MediumConfig::wideband(Access::Csma(Csma::bianchi()));
        let host = |name: &str| HostSpec { name: name.to_string(), interfaces: vec![0] };
        TopologySpec {
            name: "row".to_string(),
            hosts: ["a", "b", "c"].map(host).to_vec(),
            segments: vec![SegmentSpec {
                name: "wide".to_string(),
                kind: SegmentKind::Medium(Box::new(config), None),
            }],
            seed: 1,
            tcp: TcpSettings::default(),
        }
    }

    #[test]
    fn what_cannot_be_built_is_refused_by_name() {
        assert!(row().check().is_ok());
        assert!(TopologySpec::pair("p", LinkConfig::default(), 1).check().is_ok());
        let refused = |change: &dyn Fn(&mut TopologySpec)| {
            let mut spec = row();
            change(&mut spec);
            let line = spec.check().unwrap_err().to_string();
            assert!(!line.contains('\n'), "{line}");
            line
        };
        type Edit<'a> = &'a dyn Fn(&mut TopologySpec);
        let cases: [(Edit<'_>, &str); 8] = [
            (&|spec| spec.hosts.clear(), "0 hosts: give 1 to"),
            (&|spec| spec.hosts[1].name = "a".to_string(), "two hosts are named 'a'"),
            (&|spec| spec.hosts[1].name = "a b".to_string(), "'a b' is no host's name"),
            (&|spec| spec.hosts[2].interfaces.clear(), "host 'c' has 0 interfaces"),
            (&|spec| spec.hosts[2].interfaces.push(0), "host 'c' is on one segment twice"),
            (&|spec| spec.hosts[2].interfaces.push(1), "host 'c' is on segment 1"),
            (
                &|spec| spec.segments[0].kind = SegmentKind::Link(Box::default()),
                "link 'wide' joins 3 hosts",
            ),
            (&|spec| spec.name = "../x".to_string(), "is no name"),
        ];
        for (change, expected) in cases {
            let line = refused(change);
            assert!(line.contains(expected), "{line}");
        }
    }

    #[test]
    fn names_resolve_to_the_addresses_of_hosts() {
        let file = hosts_file(&row());
        assert!(file.ends_with("\n10.64.0.1 a\n10.64.0.2 b\n10.64.0.3 c\n"), "{file}");
        assert_eq!(address(999), Ipv4Addr::new(10, 64, 3, 232));
    }

    #[test]
    fn everybody_on_a_medium_is_known() {
        let spec = row();
        let interfaces = spec.interfaces(1, &[vec![0, 1, 2]]);
        assert_eq!(interfaces[0].mac, mac(0, 1));
        assert_eq!(interfaces[0].neighbours, [(address(0), mac(0, 0)), (address(2), mac(0, 2))]);
    }
}
