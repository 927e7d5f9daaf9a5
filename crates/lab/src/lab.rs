//! Labs: pairs of hosts, each joined by an emulated link.

mod link;
mod report;

use std::collections::HashSet;
use std::sync::Arc;
use std::thread;

use ::link::LinkConfig;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::error::{Error, Result};
use crate::ferry::RealTime;
use crate::namespace::{Device, Host, Side};
pub use link::{Link, LinkSpec, MAX_RECORD_PACKETS};
use link::{Works, desert};
pub(crate) use report::lateness;
pub use report::{DirectionReport, LinkReport};

/// Descriptors that one link takes: namespace, control socket, port and a spare per host, and as
/// many for pipes to the programs there.
const DESCRIPTORS_PER_LINK: u64 = 16;
/// Descriptors left for everything else in the process.
const DESCRIPTORS_SPARE: u64 = 256;
/// Longest name of a lab or link: it becomes part of file names and of a socket's path.
const MAX_NAME_BYTES: usize = 32;
/// Threads that remove links: the kernel lets each wait for a grace period of its own, 14 ms per
/// packet socket, and those of several threads pass together.
const REMOVERS: usize = 32;

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
    /// Links for which there must be enough descriptors, when more than those the lab begins with
    /// will be added.
    pub links_max: usize,
}

/// Pairs of hosts, each pair joined by one emulated link, until closed or dropped. Links that it
/// begins with are numbered; those that are [added](Lab::add) belong to who added them, and go on
/// when the lab itself is dropped.
pub struct Lab {
    links: Vec<Link>,
    works: Arc<Works>,
}

impl Lab {
    /// Builds the links and starts to move packets. Needs the right to make namespaces: see
    /// [`namespace::acquire`](crate::acquire).
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
        raise_descriptor_limit(options.links_max.max(specs.len()))?;
        let works = Works::start(options.device.resolve(), options.named, options.id.clone())?;
        let mut lab = Self { links: Vec::with_capacity(specs.len()), works: Arc::new(works) };
        for spec in specs {
            lab.links.push(lab.add(spec)?);
        }
        Ok(lab)
    }

    /// Adds a link with two hosts of its own while the others run. Any thread may, several at once.
    ///
    /// # Errors
    /// As [`Lab::build`].
    pub fn add(&self, spec: &LinkSpec) -> Result<Link> {
        Link::add(&self.works, spec)
    }

    /// How many links the lab began with; they are numbered from 0 as they were given.
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
        self.links[link].host(side)
    }

    /// What joins the hosts to the ferry.
    #[must_use]
    pub fn device(&self) -> Device {
        self.works.device
    }

    /// How the ferry's thread runs.
    #[must_use]
    pub fn real_time(&self) -> RealTime {
        self.works.ferry.real_time()
    }

    /// The mark of processes on the hosts: their environment has `LONGWIRE_LAB_ID` with this value.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.works.id
    }

    /// What a link is like now.
    ///
    /// # Panics
    /// When there is no such link.
    #[must_use]
    pub fn config(&self, link: usize) -> LinkConfig {
        self.links[link].config()
    }

    /// Changes a link while it runs; see [`Link::configure`].
    ///
    /// # Errors
    /// When settings contradict each other or the kernel refuses the MTU.
    ///
    /// # Panics
    /// When there is no such link.
    pub fn configure(&self, link: usize, config: LinkConfig) -> Result<()> {
        self.links[link].configure(config)
    }

    /// What a link has carried since it was built, and how truly.
    ///
    /// # Errors
    /// [`Error::FerryStopped`].
    ///
    /// # Panics
    /// When there is no such link.
    pub fn stats(&self, link: usize) -> Result<LinkReport> {
        self.links[link].stats()
    }

    /// Ends the processes on all hosts of the links that the lab began with and removes these.
    /// Returns how many processes there were. Dropping does the same.
    pub fn close(mut self) -> usize {
        self.remove_links()
    }

    fn remove_links(&mut self) -> usize {
        let ended = if self.links.is_empty() { 0 } else { desert(self.links.iter()) };
        let share = self.links.len().div_ceil(REMOVERS).max(1);
        thread::scope(|scope| {
            while !self.links.is_empty() {
                let some = self.links.split_off(self.links.len().saturating_sub(share));
                scope.spawn(move || drop(some));
            }
        });
        ended
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.remove_links();
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
    if starts_well && name.len() <= MAX_NAME_BYTES && name.bytes().all(allowed) {
        return Ok(());
    }
    let shown: String =
        name.chars().take(MAX_NAME_BYTES + 1).flat_map(char::escape_debug).collect();
    Err(Error::Caller(format!(
        "'{shown}' is no name: give 1 to {MAX_NAME_BYTES} letters, digits, '-' or '_', the first \
         a letter or digit"
    )))
}

fn check(specs: &[LinkSpec]) -> Result<()> {
    let mut names = HashSet::new();
    for spec in specs {
        spec.check()?;
        if !names.insert(spec.name.as_str()) {
            return Err(Error::Caller(format!("two links are named '{}': rename one", spec.name)));
        }
    }
    Ok(())
}

pub(crate) fn raise_descriptor_limit(links: usize) -> Result<()> {
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
        let spec = |name: &str| LinkSpec::new(name, LinkConfig::default(), 1);
        let message = Lab::build(&[spec("x"), spec("x")]).err().unwrap().to_string();
        assert!(message.contains("two links are named 'x'"), "{message}");
        let mut bad = spec("y");
        bad.config.ab.reorder = 0.5;
        let message = Lab::build(&[bad]).err().unwrap().to_string();
        assert!(message.contains("link 'y'") && message.contains("delay"), "{message}");
        let mut bad = spec("z");
        bad.tcp[1].congestion_control = "no such".to_string();
        let message = Lab::build(&[bad]).err().unwrap().to_string();
        assert!(message.contains("link 'z'") && message.contains("'no such'"), "{message}");
        let bad = LinkSpec { record_packets: usize::MAX, ..spec("r") };
        let message = Lab::build(&[bad]).err().unwrap().to_string();
        assert!(message.contains("link 'r'") && message.contains("at most"), "{message}");
    }
}
