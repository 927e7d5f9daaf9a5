//! Subscriptions: server-sent events (HTML Living Standard §9.2) of what comes and how far messages
//! are.

use bytes::Bytes;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::documents;
use crate::messaging::machine::{Event, Machine};

/// Most subscribers at once.
const MAX_SUBSCRIBERS: usize = 64;
/// Most events that wait for one subscriber. One that falls behind is ended; it comes back with the
/// number of the last event that it has, and misses nothing of the inbox.
const MAX_BEHIND: usize = 1024;
/// Most messages of the inbox that a subscriber gets at once in the beginning.
const MAX_REPLAYED: usize = 1000;

/// What a subscriber gets: each piece is one or more whole events.
pub(super) type Subscription = Receiver<Bytes>;

/// All subscribers.
#[derive(Debug, Default)]
pub(super) struct Events {
    subscribers: Vec<Sender<Bytes>>,
}

impl Events {
    /// A new subscriber, who gets the messages of the inbox with numbers above `after` first; none
    /// where there are too many.
    pub(super) fn subscribe(&mut self, after: u64, machine: &Machine) -> Option<Subscription> {
        self.subscribers.retain(|subscriber| !subscriber.is_closed());
        if self.subscribers.len() >= MAX_SUBSCRIBERS {
            return None;
        }
        let (sender, receiver) = channel(MAX_BEHIND);
        let mut inbox = machine.inbox(after);
        let replayed: String = inbox
            .by_ref()
            .take(MAX_REPLAYED)
            .map(|arrived| text(&Event::Arrived(arrived.clone())))
            .collect();
        // Who breaks off before anything comes knows where to go on all the same.
        let first = match replayed.is_empty() {
            true => format!(": subscribed\nid: {}\n\n", machine.last_announced()),
            false => replayed,
        };
        // There is room for the first.
        let _ = sender.try_send(first.into());
        if inbox.next().is_none() {
            self.subscribers.push(sender);
        }
        Some(receiver)
    }

    /// Tells all subscribers of an event.
    pub(super) fn publish(&mut self, event: &Event) {
        if !self.subscribers.is_empty() {
            self.send(&text(event).into());
        }
    }

    /// Something that means nothing, so that connections that broke are found.
    pub(super) fn life(&mut self) {
        self.send(&Bytes::from_static(b": \n\n"));
    }

    /// Ends all subscriptions.
    pub(super) fn end(&mut self) {
        self.subscribers.clear();
    }

    fn send(&mut self, piece: &Bytes) {
        self.subscribers.retain(|subscriber| match subscriber.try_send(piece.clone()) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Closed(_)) => false,
        });
    }
}

/// An event as text.
fn text(event: &Event) -> String {
    match event {
        Event::Arrived(arrived) => {
            let data = documents::arrived(arrived);
            format!("event: message\nid: {}\ndata: {data}\n\n", arrived.number)
        }
        Event::Progress { id, node, progress } => {
            let mut data = documents::progress(progress);
            if let Some(members) = data.as_object_mut() {
                members.insert("id".to_owned(), id.to_string().into());
                members.insert("node".to_owned(), node.to_string().into());
            }
            format!("event: status\ndata: {data}\n\n")
        }
    }
}
