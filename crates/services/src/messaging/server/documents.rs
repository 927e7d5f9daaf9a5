//! What clients read of the inbox and the outbox, as JSON.

use serde_json::{Map, Value, json};

use crate::messaging::forms::json::object;
use crate::messaging::machine::{Arrived, Machine, Outgoing, Progress, Which};
use crate::messaging::message::MESSAGE;
use crate::messaging::refusal::Refusal;
use crate::messaging::time;

/// Most members of a list that is not asked for in parts.
pub(super) const MAX_LISTED: usize = 1000;

/// Most bytes of contents in a list, unless it has one entry: it is written as a whole.
const MAX_LISTED_BYTES: usize = 4 << 20;
/// What a recipient takes in a list of the outbox, about.
const RECIPIENT_BYTES: usize = 128;

/// A message of the inbox.
pub(super) fn arrived(entry: &Arrived) -> Value {
    json!({
        "number": entry.number,
        "arrived": time::format(entry.at),
        "read": entry.read.map(time::format),
        "message": object(&MESSAGE, &entry.message.record(&[], &[])),
    })
}

/// A message of the outbox: what became of it with each recipient.
pub(super) fn outgoing(entry: &Outgoing, is_whole: bool) -> Value {
    let recipients = entry.recipients.iter();
    let recipients: Map<String, Value> =
        recipients.map(|(node, of)| (node.to_string(), progress(of))).collect();
    let mut document = json!({
        "number": entry.number,
        "id": &*entry.message.id,
        "precedence": entry.message.precedence.name(),
        "accepted": time::format(entry.accepted),
        "valid_until": time::format(entry.message.deadline()),
        "recipients": recipients,
    });
    if is_whole && let Some(members) = document.as_object_mut() {
        members.insert("message".to_owned(), object(&MESSAGE, &entry.message.record(&[], &[])));
    }
    document
}

/// How far a message is with one recipient.
pub(super) fn progress(progress: &Progress) -> Value {
    let mut document = json!({
        "stage": progress.stage.name(),
        "since": time::format(progress.at),
    });
    if let (Some(reason), Some(members)) = (&progress.reason, document.as_object_mut()) {
        members.insert("reason".to_owned(), reason.clone().into());
    }
    document
}

/// Part of a list as the owner of the machine hands it out: what it has is shared, and written
/// elsewhere.
#[derive(Debug)]
pub(super) struct Listed<T> {
    pub(super) entries: Vec<T>,
    /// Whether there are more behind them.
    pub(super) more: bool,
}

impl<T> Listed<T> {
    /// So many entries, and no more than [`MAX_LISTED_BYTES`] of them if there are several.
    fn of<'a>(
        mut entries: impl Iterator<Item = &'a T>,
        limit: usize,
        bytes: impl Fn(&T) -> usize,
    ) -> Self
    where
        T: Clone + 'a,
    {
        let (mut listed, mut total) = (Vec::new(), 0);
        for entry in entries.by_ref() {
            total += bytes(entry);
            if listed.len() >= limit || !listed.is_empty() && total > MAX_LISTED_BYTES {
                return Self { entries: listed, more: true };
            }
            listed.push(entry.clone());
        }
        Self { entries: listed, more: false }
    }

    /// As a document.
    pub(super) fn document(&self, one: impl Fn(&T) -> Value) -> Value {
        let messages: Vec<Value> = self.entries.iter().map(one).collect();
        json!({ "messages": messages, "more": self.more })
    }
}

/// A part of the inbox: messages with numbers above `after`.
pub(super) fn inbox(machine: &Machine, part: &Part) -> Listed<Arrived> {
    let bytes = |entry: &Arrived| entry.message.content_bytes();
    match part.unread {
        true => Listed::of(machine.unread(part.after), part.limit, bytes),
        false => Listed::of(machine.inbox(part.after), part.limit, bytes),
    }
}

/// A part of the outbox.
pub(super) fn outbox(machine: &Machine, part: &Part) -> Listed<Outgoing> {
    let bytes = |entry: &Outgoing| RECIPIENT_BYTES * entry.recipients.len();
    Listed::of(machine.outbox(part.after), part.limit, bytes)
}

/// Which part of a list is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) after: u64,
    pub(super) limit: usize,
    pub(super) unread: bool,
}

impl Part {
    /// Reads `after`, `limit` and `unread` of a query; the error is one line.
    pub(super) fn parse(query: &str, is_inbox: bool) -> Result<Self, String> {
        let mut part = Self { after: 0, limit: 100, unread: false };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let shown = crate::messaging::refusal::shown(value);
            let number = value.parse::<u64>().ok();
            match (name, number, value) {
                ("after", Some(after), _) => part.after = after,
                ("limit", Some(limit @ 1..=1000), _) => {
                    part.limit = usize::try_from(limit).unwrap_or(MAX_LISTED);
                }
                ("limit", ..) => {
                    return Err(format!("limit: '{shown}' is not from 1 to {MAX_LISTED}"));
                }
                ("after", ..) => return Err(format!("after: '{shown}' is no number")),
                ("unread", _, "true" | "false") if is_inbox => part.unread = value == "true",
                ("unread", ..) if is_inbox => {
                    return Err(format!("unread: '{shown}' is not true or false"));
                }
                _ => {
                    let name = crate::messaging::refusal::shown(name);
                    return Err(format!("parameter '{name}' is not known; after, limit are"));
                }
            }
        }
        Ok(part)
    }
}

/// Which message of the inbox is meant, by its id in the path and its originator in the query.
pub(super) fn which(id: String, query: &str) -> Result<Which, Refusal> {
    let mut which = Which { id, originator: None };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("originator", name)) => which.originator = Some(name.to_owned()),
            _ => {
                let line = format!(
                    "parameter '{}' is not known; originator is",
                    crate::messaging::refusal::shown(pair)
                );
                return Err(Refusal::malformed(line));
            }
        }
    }
    Ok(which)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_cut_by_count_and_by_bytes() {
        let sizes = [MAX_LISTED_BYTES + 1, 10, MAX_LISTED_BYTES - 10, 1];
        let listed = |from: usize, limit| {
            let of = Listed::of(sizes[from..].iter(), limit, |size| *size);
            (of.entries.len(), of.more)
        };
        assert_eq!(listed(0, 10), (1, true), "one there is always");
        assert_eq!(listed(1, 10), (2, true));
        assert_eq!(listed(1, 1), (1, true));
        assert_eq!(listed(2, 10), (2, false));
        assert_eq!(listed(3, 1), (1, false));
        assert_eq!(listed(4, 1), (0, false));
    }
}
