//! What all parts of a relay share: its settings, its deadlines, and what it wants done.

use std::collections::VecDeque;
use std::time::Duration;

use proto::exchange::Role;
use proto::timers::Timers;
use record::event::{Event, Fact};

use crate::api::Output;
use crate::config::Config;
use crate::timers::Key;

/// See the module.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) config: Config,
    pub(crate) outputs: VecDeque<Output>,
    pub(crate) timers: Timers<Key>,
    /// Nothing new is taken any more.
    pub(crate) shutting_down: bool,
}

impl Core {
    pub(crate) fn new(config: Config) -> Self {
        let (outputs, timers) = (VecDeque::new(), Timers::default());
        Self { config, outputs, timers, shutting_down: false }
    }

    pub(crate) fn is_edge(&self) -> bool {
        self.config.role == Role::Edge
    }

    pub(crate) fn event(&mut self, now: Duration, fact: Fact) {
        self.outputs.push_back(Output::Event(Event { at_s: now.as_secs_f64(), fact }));
    }

    /// A bound was reached, which has this consequence.
    pub(crate) fn limit_reached(&mut self, now: Duration, limit: &str, consequence: &str) {
        let (limit, consequence) = (limit.to_owned(), consequence.to_owned());
        self.event(now, Fact::LimitReached { limit, consequence });
    }
}
