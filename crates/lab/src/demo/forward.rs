//! The way from a host to a service outside of the lab: a plain TCP relay with one foot in each.

use std::collections::HashMap;
use std::io::{self, copy};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use nix::sys::socket::shutdown;

use crate::error::{Doing, Result};
use crate::namespace::Host;

/// Most connections at once; a client of the demonstration has one, an edge's gateway a few.
const MAX_CONNECTIONS: usize = 64;

/// Listens on a host; every connection goes on to one address outside, until dropped.
pub(super) struct Forwarder {
    listener: TcpListener,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    to: (String, u16),
    connections: Mutex<Connections>,
}

#[derive(Default)]
struct Connections {
    stopped: bool,
    next: u64,
    /// Both ends of each that is open, to be cut at the end.
    open: HashMap<u64, [TcpStream; 2]>,
}

impl Forwarder {
    /// Listens at `port` of `host`, for `to`, a host and port as this process finds them.
    pub(super) fn start(host: &Host, port: u16, to: (String, u16)) -> Result<Self> {
        let doing = || format!("listen at port {port} of host {}", host.side().name());
        let bound = host.within(|| TcpListener::bind((host.address(), port)))?;
        let listener = bound.doing(doing)?;
        let own = listener.try_clone().doing(doing)?;
        let shared = Arc::new(Shared { to, connections: Mutex::default() });
        let for_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name("forwarder".to_string());
        let thread = thread.spawn(move || accept(&own, &for_thread)).doing(doing)?;
        Ok(Self { listener, shared, thread: Some(thread) })
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        let mut connections = self.shared.connections();
        connections.stopped = true;
        for stream in connections.open.values().flatten() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(connections);
        // Wakes the thread: `accept` fails once the listener is shut down (Linux).
        let _ = shutdown(self.listener.as_raw_fd(), nix::sys::socket::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a connection's ends to be cut; none when it is one too many or all is over.
    fn enter(&self, ends: [TcpStream; 2]) -> Option<u64> {
        let mut connections = self.connections();
        if connections.stopped || connections.open.len() >= MAX_CONNECTIONS {
            return None;
        }
        connections.next += 1;
        let number = connections.next;
        connections.open.insert(number, ends);
        Some(number)
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while !shared.connections().stopped {
        let Ok((client, _)) = listener.accept() else { continue };
        let shared = Arc::clone(shared);
        let carry = move || {
            if let Err(error) = carry(&client, &shared) {
                tracing::warn!(%error, host = shared.to.0, port = shared.to.1, "not forwarded");
            }
        };
        // Without a thread the connection is closed, which its client sees.
        let _ = thread::Builder::new().name("forward".to_string()).spawn(carry);
    }
}

/// Carries both directions until both have ended.
fn carry(client: &TcpStream, shared: &Shared) -> io::Result<()> {
    let server = TcpStream::connect((shared.to.0.as_str(), shared.to.1))?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let Some(number) = shared.enter([client.try_clone()?, server.try_clone()?]) else {
        return Err(io::Error::other("too many connections"));
    };
    thread::scope(|scope| {
        scope.spawn(|| one_way(&server, client));
        one_way(client, &server);
    });
    shared.connections().open.remove(&number);
    Ok(())
}

/// Carries one direction. What breaks it off breaks off the other too.
fn one_way(mut from: &TcpStream, mut to: &TcpStream) {
    let ended = copy(&mut from, &mut to).and_then(|_| to.shutdown(Shutdown::Write));
    if ended.is_err() {
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}
