//! What becomes of messages that a queue does not keep.

use std::sync::Arc;

use super::{Host, forget, tell_dropped};
use crate::amqp091::deaths::{Reason, is_loop, letter};
use crate::event::Drop;
use crate::outputs::Context;

impl Host {
    /// Sends dead letters where their queues say, and those that these make in turn. It ends, as
    /// none comes a second time to a queue where it has died by itself.
    pub(in crate::amqp091) fn bury(&mut self, context: &mut Context<'_>) {
        while let Some((id, entry, reason)) = self.dead.pop_front() {
            forget(context, &id.name, &entry);
            let slot = self.queues.get(&id.name);
            let letters = slot.and_then(|slot| slot.queue.arguments.dead_letters.clone());
            let why = match reason {
                Reason::Rejected => Drop::Refused,
                Reason::Expired => Drop::Expired,
                Reason::MaxLength => Drop::QueueFull,
            };
            let Some(letters) = letters else {
                tell_dropped(context, &id.name, &entry, why);
                continue;
            };
            let letter = letter(context.now, &id.name, &entry.message, &letters, reason);
            let letter = Arc::new(letter);
            let mut queues = self.find_queues(&letter).queues;
            if reason != Reason::Rejected {
                queues.retain(|queue| !is_loop(&letter, queue));
            }
            if queues.is_empty() {
                tell_dropped(context, &id.name, &entry, why);
            }
            for queue in queues {
                self.push(context, &queue, &letter);
            }
        }
    }
}
