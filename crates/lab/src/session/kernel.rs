//! A link that the kernel emulates: two hosts at the ends of one veth pair, netem at each.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use link::{Direction, LinkConfig};

use crate::error::{Error, Result};
use crate::lab::namespace_name;
use crate::namespace::{
    Host, Netem, Plan, Side, TcpSettings, build_joined, mtus, processes, try_netem,
};

/// The link and its hosts, until dropped.
pub(super) struct KernelLink {
    hosts: [Host; 2],
    config: Mutex<LinkConfig>,
    seed: u64,
    id: String,
}

impl KernelLink {
    /// Builds the hosts and the link; `name` is for `ip netns` when `named`.
    ///
    /// # Errors
    /// [`Error::Caller`] for what netem cannot do, [`Error::Machine`] where the kernel lacks it.
    pub(super) fn build(
        name: &str,
        named: bool,
        config: LinkConfig,
        seed: u64,
        id: String,
    ) -> Result<Self> {
        let netem = translate(&config, seed)?;
        require_netem()?;
        let tcp = [TcpSettings::default(), TcpSettings::default()];
        let names = named.then(|| Side::BOTH.map(|side| namespace_name(name, side)));
        let plan = Plan { names, config: &config, tcp: &tcp, lab_id: &id };
        let hosts = build_joined(&plan)?;
        for (host, netem) in hosts.iter().zip(&netem) {
            host.emulate(netem)?;
        }
        Ok(Self { hosts, config: Mutex::new(config), seed, id })
    }

    pub(super) fn host(&self, side: Side) -> &Host {
        &self.hosts[side as usize]
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn config(&self) -> LinkConfig {
        self.config.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the link while it is in use.
    pub(super) fn configure(&self, config: LinkConfig) -> Result<()> {
        let netem = translate(&config, self.seed)?;
        let mut in_force = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        let mtus = (mtus(&config), mtus(&in_force));
        if mtus.0 != mtus.1 {
            for host in &self.hosts {
                host.fit(&mtus.0)?;
            }
        }
        for (host, netem) in self.hosts.iter().zip(&netem) {
            host.emulate(netem)?;
        }
        *in_force = config;
        Ok(())
    }

    /// Ends the processes on both hosts; returns how many there were.
    pub(super) fn end_processes(&self) -> usize {
        let namespaces: HashSet<_> =
            self.hosts.iter().filter_map(|host| host.namespace().identity().ok()).collect();
        processes::end_in(&namespaces)
    }
}

impl Drop for KernelLink {
    fn drop(&mut self) {
        self.end_processes();
    }
}

/// Each host sends into its own direction: a into ab.
fn translate(config: &LinkConfig, seed: u64) -> Result<[Netem; 2]> {
    let one = |direction: Direction| {
        // Two directions with one seed would lose the same packets.
        let seed = if direction == Direction::Ab { seed } else { !seed };
        Netem::new(config.direction(direction), seed)
            .map_err(|error| Error::Caller(format!("direction {}: {error}", direction.name())))
    };
    Ok([one(Direction::Ab)?, one(Direction::Ba)?])
}

fn require_netem() -> Result<()> {
    try_netem()?.map_err(|error| Error::Machine {
        lack: format!("this kernel has no netem ({error})"),
        remedy: "load it (modprobe sch_netem), or use --emulator ferry",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_netem_lacks_is_refused_before_the_kernel_is_asked() {
        let mut config = LinkConfig::default();
        config.set("ba.outages", "1 s..2 s").unwrap();
        let error = KernelLink::build("x", false, config, 1, String::new()).err().unwrap();
        let message = error.to_string();
        assert!(message.starts_with("direction ba: netem cannot do outages"), "{message}");
    }
}
