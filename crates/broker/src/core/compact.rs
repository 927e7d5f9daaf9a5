//! What a batch of changes comes to: what begins and ends within it need not be written.

// order: only looked up.
use std::collections::HashMap;

use crate::change::Change;
use crate::ids::ClientKey;

/// Where something of a batch stands.
#[derive(Default)]
struct Uses {
    /// By number of a message: where it is, and how many changes name it.
    // order: only looked up.
    messages: HashMap<u64, (usize, usize)>,
    /// Changes that are left out.
    out: Vec<bool>,
}

/// Leaves out entries that were queued and are done with, and messages that nothing names then.
/// Applied in order, what is left leads to the same.
pub(super) fn compact(changes: &mut Vec<Change>) {
    if !changes.iter().any(|change| matches!(change, Change::Done { .. })) {
        return;
    }
    let mut uses = Uses { out: vec![false; changes.len()], ..Uses::default() };
    pair(changes, &mut uses);
    let mut at = 0;
    changes.retain(|_| {
        at += 1;
        !uses.out.get(at - 1).copied().unwrap_or(false)
    });
}

fn pair(changes: &[Change], uses: &mut Uses) {
    // Where an entry was queued, for which message, and where its number under way was said.
    // order: only looked up.
    let mut queued: HashMap<(&ClientKey, u64), (u64, Vec<usize>)> = HashMap::new();
    for (at, change) in changes.iter().enumerate() {
        match change {
            Change::Message(publication) => uses.begin(publication.id, at),
            Change::Retained { message, .. } => uses.add(*message),
            Change::Queued { client, number, message, .. } => {
                uses.add(*message);
                queued.insert((client, *number), (*message, vec![at]));
            }
            Change::Flying { client, number, .. } => {
                if let Some((_, places)) = queued.get_mut(&(client, *number)) {
                    places.push(at);
                }
            }
            Change::Done { client, number } => {
                if let Some((message, places)) = queued.remove(&(client, *number)) {
                    places.into_iter().chain([at]).for_each(|at| uses.leave_out(at));
                    uses.end(message);
                }
            }
            _ => {}
        }
    }
}

impl Uses {
    /// A message is there; once is enough, as long as something names it.
    fn begin(&mut self, message: u64, at: usize) {
        match self.messages.get(&message) {
            Some((_, 1..)) => self.leave_out(at),
            _ => {
                self.messages.insert(message, (at, 0));
            }
        }
    }

    fn add(&mut self, message: u64) {
        if let Some((_, count)) = self.messages.get_mut(&message) {
            *count += 1;
        }
    }

    fn end(&mut self, message: u64) {
        let Some((at, count)) = self.messages.get_mut(&message) else { return };
        *count = count.saturating_sub(1);
        if *count == 0 {
            let at = *at;
            self.leave_out(at);
        }
    }

    fn leave_out(&mut self, at: usize) {
        if let Some(out) = self.out.get_mut(at) {
            *out = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ids::Protocol;
    use crate::publication::{Grade, Publication};

    fn client(name: &str) -> ClientKey {
        ClientKey { protocol: Protocol::Mqtt, name: name.into() }
    }

    fn message(id: u64) -> Change {
        let mut publication = Publication::new(Protocol::Mqtt, "a", "x");
        publication.id = id;
        Change::Message(Arc::new(publication))
    }

    fn queued(name: &str, number: u64, message: u64) -> Change {
        Change::Queued {
            client: client(name),
            number,
            message,
            grade: Grade::AtLeastOnce,
            retain: false,
            identifiers: None,
            shared: None,
        }
    }

    fn flying(name: &str, number: u64) -> Change {
        Change::Flying { client: client(name), number, handle: 1, received: false }
    }

    fn done(name: &str, number: u64) -> Change {
        Change::Done { client: client(name), number }
    }

    fn left(changes: &[Change]) -> Vec<Change> {
        let mut changes = changes.to_vec();
        compact(&mut changes);
        changes
    }

    #[test]
    fn what_begins_and_ends_leaves_nothing() {
        let all = [message(7), queued("a", 1, 7), flying("a", 1), done("a", 1)];
        assert_eq!(left(&all), []);
        let other = [message(8), queued("a", 2, 8), flying("a", 2)];
        assert_eq!(left(&[&all[..3], &other[..], &all[3..]].concat()), other);
    }

    #[test]
    fn what_others_wait_for_stays() {
        let all = [message(7), queued("a", 1, 7), queued("b", 1, 7), done("a", 1)];
        assert_eq!(left(&all), [message(7), queued("b", 1, 7)]);
        let retained = Change::Retained { topic: "a".into(), message: 7 };
        let all = [message(7), retained.clone(), queued("a", 1, 7), done("a", 1)];
        assert_eq!(left(&all), [message(7), retained]);
    }

    #[test]
    fn what_is_in_the_store_is_taken_out_of_it() {
        let all = [done("a", 1), message(8), queued("a", 2, 8), done("a", 2)];
        assert_eq!(left(&all), [done("a", 1)]);
    }

    #[test]
    fn a_message_that_is_there_twice_is_written_once_or_never() {
        let twice = [message(7), queued("a", 1, 7), message(7), queued("b", 1, 7)];
        let one = [message(7), queued("b", 1, 7)];
        assert_eq!(left(&[&twice[..], &[done("a", 1)]].concat()), one);
        assert_eq!(left(&[&twice[..], &[done("b", 1), done("a", 1)]].concat()), []);
        let again = [message(7), queued("a", 1, 7), done("a", 1), message(7), queued("b", 1, 7)];
        assert_eq!(left(&again), one);
    }

    #[test]
    fn a_number_that_a_new_session_gives_again_is_another() {
        let end = Change::SessionEnded { client: client("a") };
        let all = [
            message(7),
            queued("a", 1, 7),
            end.clone(),
            message(8),
            queued("a", 1, 8),
            done("a", 1),
        ];
        assert_eq!(left(&all), [message(7), queued("a", 1, 7), end]);
    }
}
