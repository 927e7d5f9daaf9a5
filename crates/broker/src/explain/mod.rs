//! What became of the last publications, for who asks afterwards.
//!
//! A few of many are followed: as many as fit a number of facts a second, so that a broker under
//! load is not slower for it. Of those that are followed the core says how far they are, and
//! adapters say in which form they were sent.

mod trail;

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use record::publication::Publication as Facts;

use crate::event::Drop;
use crate::filter::matches;
use crate::ids::ClientKey;
use crate::publication::{Grade, Publication};

use trail::Trail;

/// Memory of all that is remembered, in bytes; the oldest makes room.
const MAX_BYTES: usize = 4 << 20;
/// How far ahead of its rate a broker may be: what comes at once after a quiet time is followed.
const BURST: Duration = Duration::from_secs(1);

/// What is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Publications, the last; 0: none.
    pub max: usize,
    /// A publication is one fact, and each of its receivers another.
    pub facts_per_s: NonZeroU32,
    /// Of these topics alone: a filter of MQTT.
    pub filter: String,
}

impl Default for Settings {
    fn default() -> Self {
        let facts_per_s = NonZeroU32::MIN.saturating_add(999);
        Self { max: 1000, facts_per_s, filter: "#".to_owned() }
    }
}

/// Which publications somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The one of this number.
    pub id: Option<u64>,
    /// Those that came in elsewhere under this name: the first of their hops.
    pub origin: Option<String>,
    /// Those whose topic, here or as it was published, a filter of MQTT fits.
    pub topic: Option<String>,
    /// At most so many, the last.
    pub last: usize,
}

/// What the operator's rules have changed of a publication.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    /// Its topic as it was published.
    pub(crate) topic: Arc<str>,
    /// How often it was to arrive.
    pub(crate) grade: Grade,
    /// The filter of the rule.
    pub(crate) rule: Option<String>,
}

/// In which form an adapter has sent something.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent {
    /// The protocol with its version.
    pub(crate) protocol: &'static str,
    /// Where it went, if not to its topic.
    pub(crate) to: Option<String>,
    /// Bytes with the protocol's head, if they are known.
    pub(crate) message_bytes: Option<usize>,
    /// The nodes that it has passed with this one, over a bridge.
    pub(crate) hops: Vec<String>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Trails {
    now: Duration,
    trails: VecDeque<Trail>,
    bytes: usize,
    /// Until when the facts that were remembered use up the rate.
    used_until: Duration,
    /// What a fact uses up.
    interval: Duration,
}

impl Trails {
    /// The time of everything that follows.
    pub(crate) fn set_now(&mut self, now: Duration) {
        self.now = now;
    }

    /// Whether the next publication to a topic is followed; it is then told of by
    /// [`Trails::begin`].
    pub(crate) fn follows(&mut self, settings: &Settings, topic: &str) -> bool {
        if settings.max == 0 || self.used_until > self.now.saturating_add(BURST) {
            return false;
        }
        self.interval = Duration::from_secs(1) / settings.facts_per_s.get();
        matches(&settings.filter, topic)
    }

    /// A publication is there, as the rules have left it.
    pub(crate) fn begin(
        &mut self,
        settings: &Settings,
        publication: &Publication,
        publisher: Option<&ClientKey>,
        before: Option<Before>,
    ) {
        self.use_up();
        while self.trails.len() >= settings.max.max(1) {
            self.forget_oldest();
        }
        let trail = Trail::new(self.now, publication, publisher, before);
        self.bytes += trail.bytes();
        self.trails.push_back(trail);
        self.make_room();
    }

    /// It waits for a receiver.
    pub(crate) fn waits(&mut self, id: u64, client: &ClientKey, grade: Grade, retain: bool) {
        self.use_up();
        self.change(id, |trail, now| trail.waits(now, client, grade, retain));
    }

    /// It is not for a session though a subscription of it fits, for a reason and its detail.
    pub(crate) fn passes_over(
        &mut self,
        id: u64,
        client: &ClientKey,
        grade: Grade,
        why: (&'static str, &'static str),
    ) {
        let mut is_listed = false;
        self.change(id, |trail, now| is_listed = trail.passes_over(now, client, grade, why));
        if is_listed {
            self.use_up();
        }
    }

    /// A receiver gets it; as it came, though another form was asked for, for what is said of that.
    pub(crate) fn given(
        &mut self,
        publication: &Publication,
        client: &ClientKey,
        how: (Grade, bool),
        unchanged: Option<&str>,
    ) {
        self.change(publication.id, |trail, now| {
            trail.given(now, publication, client, how, unchanged);
        });
    }

    /// In which form a receiver has got it.
    pub(crate) fn sent(&mut self, id: u64, client: &ClientKey, sent: Sent) {
        self.change(id, |trail, now| trail.sent(now, client, sent));
    }

    /// It comes back, to be given again.
    pub(crate) fn returned(&mut self, id: u64, client: &ClientKey) {
        self.change(id, |trail, now| trail.returned(now, client));
    }

    /// A receiver has acknowledged it.
    pub(crate) fn acknowledged(&mut self, id: u64, client: &ClientKey) {
        self.change(id, |trail, now| trail.acknowledged(now, client));
    }

    /// It ends for a receiver, or, without one, for all.
    pub(crate) fn ended(
        &mut self,
        id: u64,
        client: Option<&ClientKey>,
        why: &'static str,
        detail: fmt::Arguments<'_>,
    ) {
        self.change(id, |trail, now| trail.ended(now, client, why, detail));
    }

    /// The same, as it is counted.
    pub(crate) fn dropped(
        &mut self,
        id: u64,
        client: Option<&ClientKey>,
        why: Drop,
        detail: fmt::Arguments<'_>,
    ) {
        self.ended(id, client, why.name(), detail);
    }

    /// Nobody wanted it, if nothing else is known of it.
    pub(crate) fn unwanted(&mut self, id: u64) {
        self.change(id, |trail, _| trail.unwanted());
    }

    /// What is remembered of those that somebody asks for, in the order in which they came.
    pub(crate) fn find(&self, query: &Query) -> Vec<Facts> {
        let all = self.trails.iter().rev().filter(|trail| trail.fits(query));
        let mut found: Vec<Facts> =
            all.take(query.last).map(|trail| trail.facts().clone()).collect();
        found.reverse();
        found
    }

    fn use_up(&mut self) {
        self.used_until = self.used_until.max(self.now).saturating_add(self.interval);
    }

    /// Changes what is remembered of a publication, if anything is.
    fn change(&mut self, id: u64, change: impl FnOnce(&mut Trail, Duration)) {
        let Ok(at) = self.trails.binary_search_by_key(&id, Trail::id) else { return };
        let Some(trail) = self.trails.get_mut(at) else { return };
        self.bytes = self.bytes.saturating_sub(trail.bytes());
        change(trail, self.now);
        self.bytes += trail.bytes();
        self.make_room();
    }

    fn make_room(&mut self) {
        while self.bytes > MAX_BYTES && self.trails.len() > 1 {
            self.forget_oldest();
        }
    }

    /// Forgets all but the last `max`.
    pub(crate) fn keep(&mut self, max: usize) {
        while self.trails.len() > max {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.trails.pop_front() {
            self.bytes = self.bytes.saturating_sub(oldest.bytes());
        }
    }
}

#[cfg(test)]
mod tests;
