//! When something last moved, for those who wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// When something last moved.
#[derive(Clone)]
pub(crate) struct Progress {
    epoch: Instant,
    last_ms: Arc<AtomicU64>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { epoch: Instant::now(), last_ms: Arc::default() }
    }

    /// Something has moved.
    pub(crate) fn touch(&self) {
        let now = u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(now, Ordering::Relaxed);
    }

    /// Whether something has moved in the last `period`.
    pub(crate) fn has_moved_within(&self, period: Duration) -> bool {
        let last = Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
        last > Duration::ZERO && self.epoch.elapsed().saturating_sub(last) < period
    }

    /// Resolves when nothing has moved for `patience`.
    pub(crate) async fn stalled(&self, patience: Duration) {
        loop {
            let last = Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
            let due = self.epoch + last + patience;
            if Instant::now() >= due {
                return;
            }
            tokio::time::sleep_until(due.into()).await;
        }
    }
}
