//! A service outside of the lab, as the hosts see it.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::process::CommandExt;
use std::process::Command;

use services::client::Target;

/// The user's service: host b takes its place for the hosts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outside {
    /// A name of its own, which then leads to host b, so that it sees the `Host` that it expects.
    pub(super) name: Option<String>,
    /// What is fetched in the lab.
    pub(super) url: String,
    /// Scheme and authority of that.
    pub(super) origin: String,
}

impl Outside {
    /// A service that has no name but an address, or one that names every host itself, is called
    /// `b` in the lab.
    pub(super) fn of(target: &Target) -> Self {
        let host = target.host();
        let loopback = host == "localhost" || host.ends_with(".localhost");
        let has_name = !loopback && host.parse::<IpAddr>().is_err() && !["a", "b"].contains(&host);
        let shown = if has_name { host } else { "b" };
        let origin = format!("http://{shown}:{}", target.port());
        let url = if has_name { target.to_string() } else { format!("{origin}{}", target.path()) };
        Self { name: has_name.then(|| host.to_string()), url, origin }
    }

    /// Lets the service's name lead to `b` for a program on a host.
    pub(super) fn introduce(&self, command: &mut Command, b: Ipv4Addr) {
        let Some(name) = &self.name else { return };
        let line = format!("{b} {name}\n");
        // The program has a file of its own there already, in memory and for it alone.
        let add = move || -> io::Result<()> {
            OpenOptions::new().append(true).open("/etc/hosts")?.write_all(line.as_bytes())
        };
        // SAFETY: between fork and exec a file is opened, written and closed: the path is short
        // enough for std not to allocate, and no lock is taken.
        unsafe { command.pre_exec(add) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> Outside {
        Outside::of(&Target::parse(url).unwrap())
    }

    #[test]
    fn a_service_with_a_name_keeps_it() {
        let seen = of("http://tracks.example/x?y=1");
        assert_eq!(seen.name.as_deref(), Some("tracks.example"));
        assert_eq!(seen.url, "http://tracks.example/x?y=1");
        assert_eq!(seen.origin, "http://tracks.example:80");
    }

    #[test]
    fn an_address_or_a_name_that_every_host_has_becomes_b() {
        for url in ["http://127.0.0.1:8080/x", "http://localhost:8080/x", "http://[::1]:8080/x"] {
            let seen = of(url);
            assert_eq!((seen.name, seen.url.as_str()), (None, "http://b:8080/x"), "{url}");
        }
    }
}
