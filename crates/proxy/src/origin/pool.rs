//! Connections to origins that wait for the next request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::client::Held;
use super::connect::Scope;

/// Most idle connections to one origin.
const MAX_IDLE_PER_ORIGIN: usize = 32;
/// Most idle connections in all.
const MAX_IDLE: usize = 256;
/// How long a connection waits: many servers close theirs after a minute or less.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// The same for one that is kept for a client alone: to log in again costs several round trips.
const OWNED_IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// A client's connection: the edge that it is at (0: this process itself) and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub(crate) edge: u64,
    pub(crate) connection: u64,
}

/// What a connection is good for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) scheme: String,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// At which addresses it may be.
    pub(crate) scope: Scope,
    /// The only client whose requests may go over it; none: any.
    pub(crate) owner: Option<Owner>,
}

struct Idle {
    held: Held,
    since: Instant,
}

#[derive(Default)]
struct OriginPoolState {
    idle: BTreeMap<Key, Vec<Idle>>,
    /// A task waits to close what is too old.
    reaping: bool,
}

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct Pool {
    state: Arc<Mutex<OriginPoolState>>,
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, OriginPoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection used last, if one still lives and nothing has come on it.
    pub(crate) fn take(&self, key: &Key) -> Option<Held> {
        let mut state = self.lock();
        state.prune(Instant::now());
        let list = state.idle.get_mut(key)?;
        let mut taken = list.pop();
        while taken.as_ref().is_some_and(|idle| !idle.held.is_fresh()) {
            taken = list.pop();
        }
        if list.is_empty() {
            state.idle.remove(key);
        }
        taken.map(|idle| idle.held)
    }

    /// Keeps a connection that is ready for the next request, where there is room.
    pub(crate) fn put(&self, key: Key, held: Held) {
        let now = Instant::now();
        let mut state = self.lock();
        state.prune(now);
        let total: usize = state.idle.values().map(Vec::len).sum();
        let list = state.idle.entry(key).or_default();
        if total < MAX_IDLE && list.len() < MAX_IDLE_PER_ORIGIN {
            list.push(Idle { held, since: now });
        }
        if !state.reaping {
            state.reaping = true;
            tokio::spawn(reap(self.clone()));
        }
    }

    /// Closes what is kept for a client whose connection has ended.
    pub(crate) fn client_ended(&self, owner: Owner) {
        self.lock().idle.retain(|key, _| key.owner != Some(owner));
    }
}

impl OriginPoolState {
    fn prune(&mut self, now: Instant) {
        self.idle.retain(|key, list| {
            let timeout = if key.owner.is_some() { OWNED_IDLE_TIMEOUT } else { IDLE_TIMEOUT };
            list.retain(|idle| !idle.held.is_closed() && now < idle.since + timeout);
            !list.is_empty()
        });
    }
}

/// Closes what is too old until nothing is left.
async fn reap(pool: Pool) {
    loop {
        tokio::time::sleep(IDLE_TIMEOUT / 2).await;
        let mut state = pool.lock();
        state.prune(Instant::now());
        if state.idle.is_empty() {
            state.reaping = false;
            return;
        }
    }
}
