//! A lab kept up for other processes.

use std::fs::Permissions;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use link::{ChannelConfig, LinkConfig};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::SignalFd;
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::geteuid;
use serde_json::{Map, Value, json};

use super::directory::{Directory, Lock};
use super::emulated::{Emulated, Emulator};
use super::protocol::{receive, send};
use super::trace::read_trace;
use crate::error::{Doing, Error, Result};
use crate::lab::{LinkSpec, Options, check_name};
use crate::namespace::{Device, Host, Privilege, Side, acquire};
use crate::signals;

/// How long a client of the control socket may take for its line.
const CLIENT_PATIENCE: Duration = Duration::from_secs(2);

/// A lab to be brought up.
#[derive(Clone, Debug)]
pub struct Up {
    /// The lab's name: 1 to 32 letters, digits, `-`, `_`.
    pub name: String,
    /// What a person calls the link, for listings.
    pub link: String,
    /// What the link is like.
    pub config: LinkConfig,
    /// Decides every chance on the link.
    pub seed: u64,
    /// What emulates the link.
    pub emulator: Emulator,
    /// What joins the hosts to the ferry.
    pub device: Device,
    /// Use a user namespace even as root.
    pub rootless: bool,
}

/// A lab that is up and answers other processes.
pub struct Session {
    // Dropped in this order: first the lab with its hosts.
    lab: Emulated,
    directory: Directory,
    lock: Lock,
    listener: UnixListener,
    signals: SignalFd,
    name: String,
    link: String,
    /// What the link of that name is like.
    base: LinkConfig,
    privilege: Privilege,
}

/// What to do after a request has been answered.
enum Next {
    GoOn,
    Down,
}

impl Session {
    /// Brings a lab up. Removes first what killed labs have left. To be called before the process
    /// starts a thread; from then on SIGINT, SIGTERM and SIGHUP end [`Session::serve`].
    ///
    /// # Errors
    /// [`Error::Caller`] when a lab of that name is up, those of
    /// [`Lab::build`](crate::Lab::build), and [`Error::Machine`] where the kernel has no netem.
    pub fn up(up: Up) -> Result<Self> {
        check_name(&up.name)?;
        up.config.check().map_err(|error| Error::Caller(error.to_string()))?;
        let directory = Directory::open()?;
        let guard = directory.guard()?;
        let Some(mut lock) = directory.lock(&up.name)? else {
            return Err(Error::Caller(format!(
                "lab '{0}' is up already: use another name, or end it with: longwire lab down {0}",
                up.name
            )));
        };
        // What killed labs left goes first, that of the same name too.
        directory.clear(&mut lock)?;
        directory.sweep()?;
        let signals = signals::catch()?;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let id = format!("{}-{}", std::process::id(), since_1970.as_nanos());
        lock.write(&id)?;
        drop(guard);
        let privilege = acquire(up.rootless)?;
        let named = privilege == Privilege::Root;
        let options = Options { device: up.device, named, id, ..Options::default() };
        let Up { name, link, config, seed, emulator, .. } = up;
        let base = crate::sets::load(&link).unwrap_or_else(|_| config.clone());
        let lab = Emulated::build(emulator, LinkSpec::new(name.clone(), config, seed), options);
        let (lab, listener) = match lab.and_then(|lab| Ok((lab, listen(&directory, &name)?))) {
            Ok(built) => built,
            Err(error) => {
                // The lock's file must not outlive the attempt; the first error is what matters.
                let _ = directory.remove(lock);
                return Err(error);
            }
        };
        Ok(Self { lab, directory, lock, listener, signals, name, link, base, privilege })
    }

    /// Answers other processes until one of them, or a signal, ends the lab; removes it then.
    /// Returns how many processes were still running on its hosts.
    ///
    /// # Errors
    /// When something of the lab cannot be removed.
    pub fn serve(self) -> Result<usize> {
        let client = self.wait()?;
        let Self { lab, directory, lock, .. } = self;
        let ended = lab.close() + directory.remove(lock)?;
        if let Some(client) = client {
            // Who does not wait for the answer has given up on it.
            let _ = send(&client, &json!({"ended_processes": ended}), CLIENT_PATIENCE);
        }
        Ok(ended)
    }

    /// The lab as `longwire lab list --json` shows it.
    ///
    /// # Errors
    /// [`Error::FerryStopped`].
    pub fn status(&self) -> Result<Value> {
        let host = |side: Side| {
            let host = self.host(side);
            let namespace = host.namespace();
            let path = namespace.path().to_string_lossy().into_owned();
            let netns = namespace.name().map_or(path, str::to_string);
            json!({
                "name": side.name(),
                "address": host.address(),
                "address_v6": host.reach().v6,
                "link_local": host.link_local(),
                "netns": netns,
            })
        };
        let mut status = json!({
            "name": self.name,
            "link": self.link,
            "changed": differences(&self.base, &self.lab.config()),
            "pid": std::process::id(),
            "hosts": Side::BOTH.map(host),
            "rootless": self.privilege == Privilege::UserNamespace,
            "congestion_control": Side::BOTH.map(|side| self.host(side).congestion_control()),
        });
        if let (Some(all), Value::Object(own)) = (status.as_object_mut(), self.lab.describe()?) {
            all.extend(own);
        }
        Ok(status)
    }

    /// Waits for the end; returns who asked for it over the socket.
    fn wait(&self) -> Result<Option<UnixStream>> {
        loop {
            let mut watched = [self.signals.as_fd(), self.listener.as_fd()]
                .map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN));
            match poll(&mut watched, PollTimeout::NONE) {
                Err(nix::Error::EINTR) => continue,
                other => other.doing(|| "wait for requests".to_string())?,
            };
            let [signalled, called] = watched.map(|one| one.any().unwrap_or(false));
            if signalled {
                return Ok(None);
            }
            if called && let Ok((stream, _)) = self.listener.accept() {
                match self.answer(&stream) {
                    Ok(Next::GoOn) => {}
                    Ok(Next::Down) => return Ok(Some(stream)),
                    // One client's fault is no reason to end.
                    Err(error) => tracing::warn!(%error, "a request failed"),
                }
            }
        }
    }

    fn answer(&self, stream: &UnixStream) -> Result<Next> {
        let peer =
            getsockopt(stream, sockopt::PeerCredentials).doing(|| "ask who calls".to_string())?;
        // The socket's mode keeps others out; this holds even where a mode does not.
        if peer.uid() != geteuid().as_raw() && peer.uid() != 0 {
            return Err(Error::Peer(format!("user {} may not control this lab", peer.uid())));
        }
        // Who only looks whether the lab is up says nothing.
        let Some(request) = receive(stream, CLIENT_PATIENCE)? else { return Ok(Next::GoOn) };
        let answer = match request["do"].as_str() {
            Some("down") => return Ok(Next::Down),
            Some("status") => self.status(),
            Some("enter") => self.entrance(&request["host"]),
            Some("set") => self.set(&request["settings"]),
            Some("listens") => self.listens(&request["host"], &request["port"]),
            _ => Err(Error::Peer("this lab does not know the request".to_string())),
        };
        let refusal = |error: Error| {
            let is_use = matches!(error, Error::Caller(_));
            json!({"error": error.to_string(), "bad_use": is_use})
        };
        send(stream, &answer.unwrap_or_else(refusal), CLIENT_PATIENCE)?;
        Ok(Next::GoOn)
    }

    fn host(&self, side: Side) -> &Host {
        self.lab.host(side)
    }

    fn side(&self, host: &Value) -> Result<Side> {
        let name = host.as_str().unwrap_or_default();
        Side::parse(name).ok_or_else(|| {
            let shown: String = name.chars().take(60).flat_map(char::escape_debug).collect();
            Error::Caller(format!("lab '{}' has no host '{shown}': it has a and b", self.name))
        })
    }

    /// Whether a program on a host waits for TCP connections on a port.
    fn listens(&self, host: &Value, port: &Value) -> Result<Value> {
        let sockets = self.host(self.side(host)?).tcp_sockets()?;
        let mut listening = sockets.iter().filter(|socket| socket.state == "listen");
        Ok(json!({"listens": listening.any(|socket| *port == socket.local_port)}))
    }

    /// What a process needs to know to enter a host.
    fn entrance(&self, host: &Value) -> Result<Value> {
        let side = self.side(host)?;
        let own = format!("/proc/{}/ns/user", std::process::id());
        Ok(json!({
            "network": self.host(side).namespace().path(),
            "user": (self.privilege == Privilege::UserNamespace).then_some(own),
            "a": self.host(Side::A).reach().to_string(),
            "b": self.host(Side::B).reach().to_string(),
            "id": self.lab.id(),
        }))
    }

    /// Changes the link, all settings or none; answers with what is then in force.
    fn set(&self, settings: &Value) -> Result<Value> {
        let assignments: Option<Vec<&str>> =
            settings.as_array().and_then(|all| all.iter().map(Value::as_str).collect());
        let assignments = assignments
            .ok_or_else(|| Error::Peer("settings are not a list of texts".to_string()))?;
        let mut config = self.lab.config();
        config.apply(&assignments, read_trace).map_err(|error| Error::Caller(error.to_string()))?;
        self.lab.configure(config.clone())?;
        let in_force = config.settings().into_iter().map(|(key, value)| (key, value.into()));
        Ok(json!({"settings": in_force.collect::<Map<_, _>>()}))
    }
}

/// Settings of a link that are not those of another, as `key = value`.
fn differences(base: &LinkConfig, now: &LinkConfig) -> Vec<String> {
    let mut found = Vec::new();
    for (place, key) in link::keys().iter().enumerate() {
        let value = |channel: &ChannelConfig| {
            channel.settings().into_iter().nth(place).map_or(String::new(), |(_, value)| value)
        };
        let [ab, ba] = [&now.ab, &now.ba].map(value);
        let changed = [ab != value(&base.ab), ba != value(&base.ba)];
        match changed {
            [true, true] if ab == ba => found.push(format!("{} = {ab}", key.name)),
            [is_ab, is_ba] => {
                found.extend(is_ab.then(|| format!("ab.{} = {ab}", key.name)));
                found.extend(is_ba.then(|| format!("ba.{} = {ba}", key.name)));
            }
        }
    }
    found
}

fn listen(directory: &Directory, name: &str) -> Result<UnixListener> {
    let path = directory.socket(name);
    let doing = || format!("listen on {}", path.display());
    let listener = UnixListener::bind(&path).doing(doing)?;
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).doing(doing)?;
    listener.set_nonblocking(true).doing(doing)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_of_a_link_is_reported_by_direction() {
        let base = LinkConfig::preset("satcom").unwrap();
        let mut now = base.clone();
        assert_eq!(differences(&base, &now), Vec::<String>::new());
        now.set("loss", "5 %").unwrap();
        now.set("ba.delay", "7 ms").unwrap();
        now.set("queue_bytes", "15 KB").unwrap();
        let found = differences(&base, &now);
        assert_eq!(found, ["ba.delay = 7 ms", "loss = 5 %", "queue_bytes = 15 KB"]);
        now.set("ab.delay", "7 ms").unwrap();
        assert!(differences(&base, &now).contains(&"delay = 7 ms".to_string()));
    }
}
