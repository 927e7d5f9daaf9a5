//! Servers that are asked, each over a socket that hears it alone, and that nobody is there.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use relay::{Cause, CauseKind};

use super::failed;
use crate::coap::caller::Caller;
use crate::coap::socket::Socket;

/// Servers with a socket; of more that which was longest unused has none.
const MAX_SERVERS: usize = 256;
/// For so long a socket is kept that nobody uses: what comes late is answered with a reset, which
/// ends observations that nobody has any more (RFC 7641 §3.6).
const MAX_IDLE: Duration = Duration::from_secs(300);

#[derive(Default)]
struct Entries(BTreeMap<SocketAddr, Entry>);

struct Entry {
    caller: Arc<Caller>,
    used_at: Instant,
}

impl Entry {
    /// Whether no request is open: each holds the caller.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.caller) == 1
    }
}

impl Entries {
    /// The one of this server, if it still works.
    fn take(&mut self, now: Instant, address: SocketAddr) -> Option<Arc<Caller>> {
        self.0.retain(|_, entry| {
            let is_used = !entry.is_idle() || now.duration_since(entry.used_at) < MAX_IDLE;
            is_used && entry.caller.is_open()
        });
        let entry = self.0.get_mut(&address)?;
        entry.used_at = now;
        Some(Arc::clone(&entry.caller))
    }

    /// Keeps one, if there is room or can be.
    fn put(&mut self, now: Instant, address: SocketAddr, caller: Arc<Caller>) -> bool {
        if self.0.len() >= MAX_SERVERS {
            let idle = self.0.iter().filter(|(_, entry)| entry.is_idle());
            let oldest = idle.min_by_key(|(_, entry)| entry.used_at).map(|(address, _)| *address);
            let Some(oldest) = oldest else { return false };
            self.0.remove(&oldest);
        }
        self.0.insert(address, Entry { caller, used_at: now });
        true
    }
}

/// See the module.
#[derive(Default)]
pub(super) struct Servers(Mutex<Entries>);

impl Servers {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who asks the server at this address.
    pub(super) async fn get(&self, address: SocketAddr) -> Result<Arc<Caller>, Cause> {
        if let Some(caller) = self.entries().take(Instant::now(), address) {
            return Ok(caller);
        }
        let unreachable = |why: String| {
            failed(CauseKind::OriginUnreachable, format!("cannot reach {address}: {why}"))
        };
        let socket = Socket::client(address).await;
        let socket = socket.map_err(|error| unreachable(error.to_string()))?;
        let caller = Caller::start(socket, None, None, false)
            .map_err(|error| unreachable(error.to_string()))?;
        let (now, caller) = (Instant::now(), Arc::new(caller));
        let mut entries = self.entries();
        // Somebody else may have been quicker.
        if let Some(other) = entries.take(now, address) {
            return Ok(other);
        }
        match entries.put(now, address, Arc::clone(&caller)) {
            true => Ok(caller),
            false => Err(super::full("servers of CoAP are being asked")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn caller(address: SocketAddr) -> Arc<Caller> {
        Arc::new(Caller::start(Socket::client(address).await.unwrap(), None, None, false).unwrap())
    }

    #[tokio::test]
    async fn what_is_used_stays_and_what_is_idle_makes_room() {
        let (mut entries, now) = (Entries::default(), Instant::now());
        let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let used = caller(at(1)).await;
        assert!(entries.put(now, at(1), Arc::clone(&used)));
        let others = u16::try_from(MAX_SERVERS).unwrap();
        // One socket stands for all, as far as it is held by nobody else.
        for port in 2..=others {
            assert!(entries.put(
                now + Duration::from_millis(port.into()),
                at(port),
                caller(at(port)).await
            ));
        }
        assert!(entries.put(now + Duration::from_secs(1), at(others + 1), caller(at(9)).await));
        assert_eq!(entries.0.len(), MAX_SERVERS);
        assert!(entries.0.contains_key(&at(1)) && !entries.0.contains_key(&at(2)));
        let later = now + Duration::from_secs(2) + MAX_IDLE;
        assert!(Arc::ptr_eq(&entries.take(later, at(1)).unwrap(), &used));
        assert_eq!(entries.0.len(), 1);
    }
}
