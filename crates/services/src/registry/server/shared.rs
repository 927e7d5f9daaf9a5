//! What all requests share: the core, the store behind it, the users, the clock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::watch;

use super::super::config::Config;
use super::super::core::{Core, Publication};
use super::super::refusal::{Reason, Refusal};
use super::super::store::Store;
use super::super::users::Users;
use crate::Error;

/// How long an answer may wait for the disk.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);
/// How long leases are not looked at, at most: the clock may be set.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// See the module.
pub(super) struct Shared {
    // No request holds it while it waits: what it takes is time of a processor.
    kept: Mutex<Kept>,
    pub(super) users: Users,
    /// Who registers over CoAP.
    pub(super) coap_publisher: Option<Arc<str>>,
    /// The version of the core, for who waits for changes.
    changed: watch::Sender<u64>,
    chance: SystemRandom,
}

struct Kept {
    core: Core,
    store: Store,
    /// The time that was last: it does not go back.
    last: Duration,
}

impl Kept {
    fn now(&mut self) -> Duration {
        let system = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        self.last = self.last.max(system.unwrap_or_default());
        self.last
    }
}

impl Shared {
    /// Opens the store and reads the users.
    pub(super) fn open(config: &Config) -> Result<Self, Error> {
        let users = Users::load(config.users.as_deref(), config.token_life)?;
        if let Some(name) = config.coap_publisher.as_deref().filter(|name| !users.has(name)) {
            let line = format!("coap_publisher: no user '{name}'; name one of the file of users");
            return Err(Error::Caller(line));
        }
        let (store, entities) = Store::open(&config.store)?;
        tracing::info!(entities = entities.len(), "the store was read");
        Ok(Self::of(config, Core::new(config.limits(), entities), store, users))
    }

    pub(super) fn of(config: &Config, core: Core, store: Store, users: Users) -> Self {
        Self {
            kept: Mutex::new(Kept { core, store, last: Duration::ZERO }),
            users,
            coap_publisher: config.coap_publisher.as_deref().map(Into::into),
            changed: watch::channel(0).0,
            chance: SystemRandom::new(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time.
    pub(super) fn now(&self) -> Duration {
        self.kept().now()
    }

    /// Reads something.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Core, Duration) -> T) -> T {
        let mut kept = self.kept();
        let now = kept.now();
        look(&kept.core, now)
    }

    /// Changes something in the name of a publisher, all or nothing; the answer comes when the disk
    /// has it.
    pub(super) async fn publish<T>(
        &self,
        owner: &Arc<str>,
        change: impl FnOnce(&mut Publication<'_>, Duration) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let (answer, written) = {
            let mut kept = self.kept();
            let now = kept.now();
            if kept.store.is_full() {
                let line = "the disk does not keep up; try again in a moment";
                return Err(Refusal::new(Reason::Busy, line));
            }
            let mut has_chance = true;
            let mut chance = || {
                let mut bytes = [0; 16];
                has_chance &= self.chance.fill(&mut bytes).is_ok();
                bytes
            };
            let Kept { core, store, .. } = &mut *kept;
            let mut publication = Publication::new(core, now, owner, &mut chance);
            let answer = change(&mut publication, now)?;
            let changes = publication.finish();
            if !has_chance {
                tracing::error!("the system has no random numbers: keys can be foretold");
            }
            let written = (!changes.is_empty()).then(|| store.write(changes));
            self.changed.send_replace(kept.core.version());
            (answer, written)
        };
        let Some(written) = written else { return Ok(answer) };
        match tokio::time::timeout(ANSWER_PATIENCE, written).await {
            Ok(Ok(())) => Ok(answer),
            Ok(Err(_)) => Err(Refusal::new(Reason::Busy, "the registry stops; try again later")),
            Err(_) => {
                let line = "the disk has not taken it yet, and it may still come; look it up";
                Err(Refusal::new(Reason::Busy, line))
            }
        }
    }

    /// The versions of the core, as they change.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Takes out what is over, until the registry is to stop.
    pub(super) async fn expire(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        loop {
            let pause = {
                let mut kept = self.kept();
                let now = kept.now();
                let changes = kept.core.expire(now);
                if !changes.is_empty() {
                    tracing::info!(entities = changes.len(), "leases were over");
                    // Nobody waits for it: what is over and still stored is over at the start too.
                    drop(kept.store.write(changes));
                    self.changed.send_replace(kept.core.version());
                }
                kept.core.next_end().map_or(LOOK_INTERVAL, |end| end.saturating_sub(now))
            };
            // What ends sooner may be published meanwhile.
            let pause = pause.min(LOOK_INTERVAL);
            tokio::select! {
                true = super::ended(&mut stopping) => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Waits until the disk has everything.
    pub(super) fn finish(&self) {
        self.kept().store.finish();
    }
}
