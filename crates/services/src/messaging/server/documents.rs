//! What clients read of the inbox and the outbox, as JSON.

use serde_json::{Map, Value, json};

use crate::messaging::forms::json::object;
use crate::messaging::machine::{Arrived, Machine, Outgoing, Progress};
use crate::messaging::message::MESSAGE;
use crate::messaging::time;

/// Most members of a list that is not asked for in parts.
pub(super) const MAX_LISTED: usize = 1000;

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

/// A part of the inbox: messages with numbers above `after`.
pub(super) fn inbox(machine: &Machine, part: &Part) -> Value {
    let entries = machine.inbox(part.after);
    let mut entries = entries.filter(|entry| !part.unread || entry.read.is_none());
    let messages: Vec<Value> = entries.by_ref().take(part.limit).map(arrived).collect();
    json!({ "messages": messages, "more": entries.next().is_some() })
}

/// A part of the outbox.
pub(super) fn outbox(machine: &Machine, part: &Part) -> Value {
    let mut entries = machine.outbox(part.after);
    let messages = entries.by_ref().take(part.limit).map(|entry| outgoing(entry, false));
    let messages: Vec<Value> = messages.collect();
    json!({ "messages": messages, "more": entries.next().is_some() })
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
