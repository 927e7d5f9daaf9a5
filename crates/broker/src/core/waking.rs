//! What is due.

use std::time::Duration;

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
                Deadline::Will(id) => self.will_is_due(now, id),
                Deadline::End(id) => self.end(now, id),
                Deadline::Sweep => {
                    self.sweep(now);
                    self.timers.set(Deadline::Sweep, Some(now.saturating_add(SWEEP_INTERVAL)));
                }
                Deadline::Sys => {
                    self.publish_sys(now);
                    let next = now.saturating_add(self.settings.sys_interval);
                    self.timers.set(Deadline::Sys, Some(next));
                }
            }
        }
    }

    fn sweep(&mut self, now: Duration) {
        for publication in self.retained.take_expired(now) {
            self.journal.add(Change::Cleared { topic: publication.topic.clone() });
            self.tell_dropped(&publication, None, Drop::Expired);
        }
        let waiting: Vec<SessionId> = self
            .sessions
            .iter()
            .filter(|(_, session)| session.queue.len() > 0)
            .map(|(id, _)| id)
            .collect();
        for id in waiting {
            let Some(session) = self.sessions.get_mut(id) else { continue };
            for entry in session.queue.take_expired(now) {
                self.leaves(id, &entry, Drop::Expired);
            }
        }
    }
}
