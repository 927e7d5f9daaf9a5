//! What an operator sets for WS-Notification.

use std::time::Duration;

use super::fault::{Fault, FaultKind};
use super::resources::{Resource, token};
use super::time::{Until, to_ms};
use super::topics::{Mount, Topics};

/// Addresses, topics and bounds.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address that others reach the broker at, such as `http://10.0.0.1:8080`.
    pub address: String,
    /// The one for who comes over TLS; empty: the same.
    pub secure_address: String,
    /// Milliseconds since 1970 at the time 0 of the broker.
    pub unix_ms: u64,
    /// Makes the addresses of subscriptions hard to guess; with a store it must stay the same, or
    /// addresses that were given before lead nowhere.
    pub seed: u64,
    /// The topic of messages that name none; without it they are refused.
    pub default_topic: Option<String>,
    /// Where namespaces of topics are among the topics of MQTT.
    pub mounts: Vec<Mount>,
    /// How long a subscription lives that asks for no time, or for ever.
    pub default_lifetime: Duration,
    /// How long one may ask for.
    pub max_lifetime: Duration,
    /// Subscriptions at once.
    pub max_subscriptions: usize,
    /// Pull points at once.
    pub max_pull_points: usize,
    /// Registrations at once.
    pub max_registrations: usize,
    /// Longest request in bytes.
    pub max_body_bytes: usize,
    /// Messages that one POST, or one answer to GetMessages, has at most.
    pub max_batch: usize,
    /// How long a consumer that was not reached is left alone at first; doubled each time.
    pub first_retry: Duration,
    /// And at most.
    pub max_retry: Duration,
    /// How often a consumer may refuse a message until it is given up.
    pub max_refusals: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            address: "http://127.0.0.1:8080".to_owned(),
            secure_address: String::new(),
            unix_ms: 0,
            seed: 0,
            default_topic: None,
            mounts: Vec::new(),
            default_lifetime: Duration::from_secs(24 * 3600),
            max_lifetime: Duration::from_secs(7 * 24 * 3600),
            max_subscriptions: 10_000,
            max_pull_points: 10_000,
            max_registrations: 10_000,
            max_body_bytes: 4 << 20,
            max_batch: 32,
            first_retry: Duration::from_secs(1),
            max_retry: Duration::from_secs(60),
            max_refusals: 5,
        }
    }
}

impl Settings {
    /// Now in milliseconds since 1970.
    pub(super) fn unix_ms(&self, now: Duration) -> i64 {
        to_ms(now).saturating_add(i64::try_from(self.unix_ms).unwrap_or(0))
    }

    /// When a time in milliseconds since 1970 has come; what is past has come.
    pub(super) fn when(&self, now: Duration, unix_ms: i64) -> Duration {
        let wait = unix_ms.saturating_sub(self.unix_ms(now)).max(0);
        now.saturating_add(Duration::from_millis(u64::try_from(wait).unwrap_or(0)))
    }

    pub(super) fn topics(&self) -> Topics<'_> {
        Topics::new(&self.mounts)
    }

    /// A termination that is asked for, in milliseconds since 1970.
    pub(super) fn termination(
        &self,
        now: Duration,
        until: Option<Until>,
        kind: FaultKind,
    ) -> Result<i64, Fault> {
        let now_ms = self.unix_ms(now);
        let after = |lifetime: Duration| now_ms.saturating_add(to_ms(lifetime));
        let latest = after(self.max_lifetime);
        let Some(until) = until else {
            return Ok(after(self.default_lifetime).min(latest));
        };
        let at_ms = until.resolve(now_ms);
        if at_ms <= now_ms || at_ms > latest {
            let what = "a termination lies in the future, within max_lifetime";
            return Err(Fault::new(kind, what).of_times(now_ms, latest));
        }
        Ok(at_ms)
    }

    /// The address for who comes over TLS, or without.
    pub(super) fn address_for(&self, is_secure: bool) -> &str {
        let has_two = is_secure && !self.secure_address.is_empty();
        if has_two { &self.secure_address } else { &self.address }
    }

    /// The address of a resource.
    pub(super) fn address_of(&self, resource: Resource, is_secure: bool) -> String {
        let own = self.address_for(is_secure).trim_end_matches('/');
        format!("{own}/{}", self.path_of(resource))
    }

    /// Its path, which names the kind, the number, and what only who was told it knows.
    pub(super) fn path_of(&self, resource: Resource) -> String {
        let (kind, id) = resource.parts();
        format!("{kind}/{id:x}-{:016x}", token(self.seed, id))
    }

    /// The resource that a path names; `None` where it names none that there ever was.
    pub(super) fn resource_at(&self, path: &str) -> Option<Resource> {
        let (rest, name) = path.trim_end_matches('/').rsplit_once('/')?;
        let (_, kind) = rest.rsplit_once('/').unwrap_or(("", rest));
        let (id, _) = name.split_once('-')?;
        let id = u64::from_str_radix(id, 16).ok()?;
        let resource = Resource::of_parts(kind, id)?;
        self.path_of(resource).ends_with(name).then_some(resource)
    }

    /// What stands behind our own address in an address, if it is one of ours.
    pub(super) fn own_path<'p>(&self, address: &'p str) -> Option<&'p str> {
        [false, true].into_iter().find_map(|is_secure| {
            let own = self.address_for(is_secure).trim_end_matches('/');
            let path = address.strip_prefix(own)?;
            (path.is_empty() || path.starts_with(['/', '?'])).then_some(path)
        })
    }
}
