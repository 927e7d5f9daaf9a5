//! What is due.

use std::time::Duration;

use super::closing::will_is_due;
use super::publishing::leaves;
use super::sys::publish_sys;
use super::{Core, Deadline};
use crate::change::Change;
use crate::event::Drop;
use crate::ids::SessionId;

/// How often what has expired is looked for, so that it does not take room for long. Whoever would
/// get it is spared it in any case.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);

impl Core {
    /// Does what is due by now.
    pub fn wake(&mut self, now: Duration) {
        if self.started.is_none() {
            self.started = Some(now);
            self.timers.set(Deadline::Sweep, Some(now.saturating_add(SWEEP_INTERVAL)));
            if !self.settings.sys_interval.is_zero() {
                self.timers.set(Deadline::Sys, Some(now));
            }
        }
        while let Some(deadline) = self.timers.pop(now) {
            match deadline {
                Deadline::Will(id) => will_is_due(self, now, id),
                Deadline::End(id) => self.end(now, id),
                Deadline::Drain(id) => self.poke(id),
                Deadline::Sweep => {
                    sweep(self, now);
                    self.timers.set(Deadline::Sweep, Some(now.saturating_add(SWEEP_INTERVAL)));
                }
                Deadline::Sys => {
                    publish_sys(self, now);
                    let next = now.saturating_add(self.settings.sys_interval);
                    self.timers.set(Deadline::Sys, Some(next));
                }
            }
        }
    }
}

fn sweep(core: &mut Core, now: Duration) {
    for publication in core.retained.take_expired(now) {
        core.journal.add(Change::Cleared { topic: publication.topic.clone() });
        core.tell_dropped(&publication, None, Drop::Expired);
    }
    let waiting: Vec<SessionId> = core
        .sessions
        .iter()
        .filter(|(_, session)| session.queue.len() > 0)
        .map(|(id, _)| id)
        .collect();
    for id in waiting {
        let Some(session) = core.sessions.get_mut(id) else { continue };
        for entry in session.queue.take_expired(now) {
            leaves(core, id, &entry, Drop::Expired);
        }
    }
}
