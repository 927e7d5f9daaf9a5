//! Connections to origins that wait for the next request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::client::conn::http1::SendRequest;

use crate::flow::AnyBody;

/// Most idle connections to one origin.
const MAX_IDLE_PER_ORIGIN: usize = 32;
/// Most idle connections in all.
const MAX_IDLE: usize = 256;
/// How long a connection waits: many servers close theirs after a minute or less.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a connection may take to become idle behind an answer: it does at once, or the request
/// is still under way.
const READY_PATIENCE: Duration = Duration::from_secs(1);

/// Scheme, host, port, and whether it may be at an address that is not public.
pub(crate) type Key = (String, String, u16, bool);

struct Idle {
    sender: SendRequest<AnyBody>,
    since: Instant,
}

#[derive(Default)]
struct State {
    idle: BTreeMap<Key, Vec<Idle>>,
    /// A task waits to close what is too old.
    reaping: bool,
}

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct Pool {
    state: Arc<Mutex<State>>,
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection used last, if one still lives.
    pub(crate) fn take(&self, key: &Key) -> Option<SendRequest<AnyBody>> {
        let mut state = self.lock();
        state.prune(Instant::now());
        let list = state.idle.get_mut(key)?;
        let taken = list.pop();
        if list.is_empty() {
            state.idle.remove(key);
        }
        taken.map(|idle| idle.sender)
    }

    /// Keeps a connection, when it is ready and there is room.
    pub(crate) fn give_back(&self, key: Key, mut sender: SendRequest<AnyBody>) {
        let pool = self.clone();
        tokio::spawn(async move {
            let ready = tokio::time::timeout(READY_PATIENCE, sender.ready()).await;
            if matches!(ready, Ok(Ok(()))) {
                pool.put(key, sender);
            }
        });
    }

    fn put(&self, key: Key, sender: SendRequest<AnyBody>) {
        let now = Instant::now();
        let mut state = self.lock();
        state.prune(now);
        let total: usize = state.idle.values().map(Vec::len).sum();
        let list = state.idle.entry(key).or_default();
        if total < MAX_IDLE && list.len() < MAX_IDLE_PER_ORIGIN {
            list.push(Idle { sender, since: now });
        }
        if !state.reaping {
            state.reaping = true;
            tokio::spawn(reap(self.clone()));
        }
    }
}

impl State {
    fn prune(&mut self, now: Instant) {
        self.idle.retain(|_, list| {
            list.retain(|idle| !idle.sender.is_closed() && now < idle.since + IDLE_TIMEOUT);
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
