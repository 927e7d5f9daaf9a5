//! A subscription: what it gets, and the one POST that is under way for it.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use super::addressing::{Endpoint, WsaVersion};
use super::requests::Policy;
use super::soap::SoapVersion;
use super::topics::Spelling;
use super::xpath;
use crate::ids::SessionId;
use crate::publication::Publication;

/// Where a subscription's messages go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Consumer {
    /// They are posted there.
    Push(Endpoint),
    /// They wait until they are asked for at a pull point of ours.
    Pull(u64),
}

/// How a consumer is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    /// As it has spoken itself.
    pub(super) soap: SoapVersion,
    /// The version of WS-Addressing that it has used, if any.
    pub(super) addressing: Option<WsaVersion>,
    /// Its dialect of topics.
    pub(super) spelling: Spelling,
    /// What it wants besides.
    pub(super) policy: Policy,
}

/// A message that is under way.
#[derive(Debug)]
pub(super) struct Flying {
    /// The number of the core; `None` for grade 0.
    pub(super) handle: Option<NonZeroU16>,
    pub(super) publication: Arc<Publication>,
}

/// What is under way in one POST.
#[derive(Debug)]
pub(super) struct Posting {
    pub(super) id: u64,
    pub(super) flying: Vec<Flying>,
}

/// A subscription.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) session: SessionId,
    pub(super) consumer: Consumer,
    pub(super) style: Style,
    pub(super) contents: Vec<xpath::Filter>,
    /// The element Subscribe, as it came.
    pub(super) source: Arc<str>,
    pub(super) created_ms: i64,
    pub(super) terminates_ms: i64,
    pub(super) paused: bool,
    pub(super) posting: Option<Posting>,
    /// POSTs that failed, one after the other.
    pub(super) failures: u32,
    /// Of these, those that the consumer answered with a refusal.
    pub(super) refusals: u32,
    /// It waits until it may try again.
    pub(super) backs_off: bool,
}

impl Subscription {
    /// Whether the core is to give it nothing.
    pub(super) fn is_asleep(&self) -> bool {
        let is_pull = matches!(self.consumer, Consumer::Pull(_));
        self.paused || self.backs_off || is_pull
    }

    /// Messages of the next POST: after a refusal one, so that it is known which is refused; and
    /// one where headers are about it.
    pub(super) fn batch(&self, max: usize) -> usize {
        let Policy { use_raw, properties, .. } = self.style.policy;
        if use_raw || properties || self.refusals > 0 { 1 } else { max.max(1) }
    }

    /// A POST failed: how long to wait.
    pub(super) fn fail(&mut self, refused: bool, first: Duration, last: Duration) -> Duration {
        self.failures = self.failures.saturating_add(1);
        if refused {
            self.refusals = self.refusals.saturating_add(1);
        }
        self.backs_off = true;
        let doublings = self.failures.saturating_sub(1).min(16);
        first.saturating_mul(1 << doublings).min(last)
    }

    /// A POST was taken.
    pub(super) fn succeed(&mut self) {
        self.failures = 0;
        self.refusals = 0;
    }
}
