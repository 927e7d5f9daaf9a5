//! Subscriptions: server-sent events (HTML Living Standard §9.2) of what comes and how far messages
//! are. The owner hands out what there is; each subscriber's own task writes it.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::documents::{self, Part};
use super::owner::Handle;
use crate::messaging::machine::{Arrived, Event, Machine};

/// Most subscribers at once.
pub(super) const MAX_SUBSCRIBERS: usize = 64;
/// Most events that wait for one subscriber. One that falls behind is ended; it comes back with the
/// number of the last event that it has, and misses nothing of the inbox.
const MAX_BEHIND: usize = 1024;
/// Most messages of the inbox that the owner hands out at once.
const MAX_REPLAYED: usize = 256;
/// Most pieces that wait for a connection.
const MAX_PIECES: usize = 4;
/// What means nothing, so that connections that broke are found.
const LIFE: Bytes = Bytes::from_static(b": \n\n");

/// What a connection gets: each piece is a whole event.
pub(super) type Pieces = Receiver<Bytes>;

/// Something that subscribers are told, written by the first of them.
#[derive(Debug)]
pub(super) struct News {
    event: Option<Event>,
    text: OnceLock<Bytes>,
}

impl News {
    fn text(&self) -> Bytes {
        let text = || self.event.as_ref().map_or(LIFE, |event| text(event).into());
        self.text.get_or_init(text).clone()
    }
}

/// What a subscriber is given.
#[derive(Debug)]
pub(super) struct Subscription {
    /// Messages of the inbox.
    messages: Vec<Arrived>,
    /// The greatest number there.
    last: u64,
    /// What comes from now on; none where there are more messages, which are to be asked for.
    news: Option<Receiver<Arc<News>>>,
}

/// All subscribers.
#[derive(Debug, Default)]
pub(super) struct Events {
    // bound: MAX_SUBSCRIBERS, by the seats that handles give.
    subscribers: Vec<Sender<Arc<News>>>,
}

impl Events {
    /// A subscriber, who gets the messages of the inbox with numbers above `after` first.
    pub(super) fn subscribe(&mut self, after: u64, machine: &Machine) -> Subscription {
        let part = Part { after, limit: MAX_REPLAYED, unread: false };
        let listed = documents::inbox(machine, &part);
        let news = (!listed.more).then(|| {
            let (sender, receiver) = channel(MAX_BEHIND);
            self.subscribers.retain(|subscriber| !subscriber.is_closed());
            self.subscribers.push(sender);
            receiver
        });
        Subscription { messages: listed.entries, last: machine.inbox_extent().last, news }
    }

    /// Tells all subscribers of an event.
    pub(super) fn publish(&mut self, event: Event) {
        if !self.subscribers.is_empty() {
            self.send(Some(event));
        }
    }

    /// Something that means nothing.
    pub(super) fn life(&mut self) {
        self.send(None);
    }

    /// Ends all subscriptions.
    pub(super) fn end(&mut self) {
        self.subscribers.clear();
    }

    fn send(&mut self, event: Option<Event>) {
        let news = Arc::new(News { event, text: OnceLock::new() });
        // One that is gone, or that falls behind, is told no more.
        self.subscribers.retain(|subscriber| subscriber.try_send(news.clone()).is_ok());
    }
}

/// Writes for a connection what a subscriber is given, until one of them is gone.
pub(super) fn feed(
    handle: Handle,
    seat: OwnedSemaphorePermit,
    subscription: Subscription,
) -> Pieces {
    let (out, pieces) = channel(MAX_PIECES);
    tokio::spawn(async move {
        // Who gets nothing at first knows where to go on all the same.
        if subscription.messages.is_empty() {
            let first = format!(": subscribed\nid: {}\n\n", subscription.last);
            let _ = out.send(first.into()).await;
        }
        if let Some(news) = replay(&handle, subscription, &out).await {
            forward(news, &out).await;
        }
        drop(seat);
    });
    pieces
}

/// Messages of the inbox, until there are no more; what comes behind them.
async fn replay(
    handle: &Handle,
    mut subscription: Subscription,
    out: &Sender<Bytes>,
) -> Option<Receiver<Arc<News>>> {
    loop {
        let Subscription { messages, news, .. } = subscription;
        let last = messages.last().map(|message| message.number);
        for message in messages {
            out.send(text(&Event::Arrived(message)).into()).await.ok()?;
        }
        if news.is_some() {
            return news;
        }
        subscription = handle.subscribe(last?).await.ok()?;
    }
}

async fn forward(mut news: Receiver<Arc<News>>, out: &Sender<Bytes>) {
    loop {
        tokio::select! {
            () = out.closed() => return,
            next = news.recv() => match next {
                Some(next) if out.send(next.text()).await.is_ok() => {}
                _ => return,
            },
        }
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
