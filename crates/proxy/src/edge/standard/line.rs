//! The line to a standard gateway: its address is looked up and its socket opened with the first
//! request, and again where the network said that nobody is there.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;

use super::super::answer::Refusal;
use super::silent;
use crate::config::{StandardGateway, refuse_address};

/// How long a name may take to be resolved.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Something that carries requests to one address until it breaks.
pub(super) trait Carrying {
    /// Whether it still does.
    fn is_open(&self) -> bool;
}

/// See the module.
pub(super) struct Kept<L> {
    gateway: Arc<StandardGateway>,
    line: Mutex<Option<Arc<L>>>,
    /// Lines that were opened: each goes to the next of the gateway's addresses.
    opened: AtomicUsize,
}

impl<L: Carrying> Kept<L> {
    pub(super) fn new(gateway: &Arc<StandardGateway>) -> Self {
        let gateway = Arc::clone(gateway);
        Self { gateway, line: Mutex::default(), opened: AtomicUsize::new(0) }
    }

    /// The gateway, as it is shown.
    pub(super) fn url(&self) -> String {
        self.gateway.url()
    }

    /// The open line, or one that `open` opens. Whoever comes meanwhile waits for the same one.
    pub(super) async fn get(
        &self,
        open: impl AsyncFnOnce(SocketAddr) -> io::Result<L>,
    ) -> Result<Arc<L>, Refusal> {
        let mut kept = self.line.lock().await;
        if let Some(line) = kept.as_ref().filter(|line| line.is_open()) {
            return Ok(Arc::clone(line));
        }
        let address = self.resolve().await?;
        let line = open(address).await.map_err(|error| {
            silent(format!("no way to the gateway {} ({address}): {error}", self.url()))
        })?;
        tracing::debug!(gateway = self.url(), %address, "a line to the gateway is open");
        Ok(Arc::clone(kept.insert(Arc::new(line))))
    }

    /// Nothing came back by this line: where the gateway has a name it is looked up anew.
    pub(super) async fn doubt(&self, doubted: &Arc<L>) {
        if self.gateway.host.parse::<std::net::IpAddr>().is_ok() {
            return;
        }
        let mut kept = self.line.lock().await;
        if kept.as_ref().is_some_and(|line| Arc::ptr_eq(line, doubted)) {
            *kept = None;
        }
    }

    async fn resolve(&self) -> Result<SocketAddr, Refusal> {
        let (host, port) = (self.gateway.host.as_str(), self.gateway.port);
        let looking = tokio::net::lookup_host((host, port));
        let found = tokio::time::timeout(RESOLVE_TIMEOUT, looking)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(|error| silent(format!("the gateway {}: {error}", self.url())))?;
        let (mut good, mut wrong) = (Vec::new(), None);
        for address in found {
            match refuse_address(&self.gateway, address.ip()) {
                None => good.push(address),
                Some(what) => wrong = Some(what),
            }
        }
        // Where a machine has a name by both protocols, the older one is more likely listened to.
        good.sort_by_key(SocketAddr::is_ipv6);
        let at = self.opened.fetch_add(1, Ordering::Relaxed) % good.len().max(1);
        good.get(at).copied().ok_or_else(|| {
            let none = format!("the gateway {}: its name has no address", self.url());
            silent(wrong.unwrap_or(none))
        })
    }
}
