//! What is written to the store, and read from it at the start.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::ids::{ClientKey, Protocol};
use crate::publication::{Grade, Publication};
use crate::session::Subscription;

/// A change of what outlives the process. Applied in order to an empty broker they give what the
/// broker held, but for connections and wills.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A publication, before the first change that names its number. The store may forget it when
    /// nothing that is queued or retained names it any more.
    Message(Arc<Publication>),
    /// A session that is to be kept.
    Session {
        /// Whose.
        client: ClientKey,
        /// The user that it was opened as.
        user: Option<Arc<str>>,
        /// How long it is kept without a connection.
        expiry: Duration,
    },
    /// It is gone, with its subscriptions and what was queued for it.
    SessionEnded {
        /// Whose.
        client: ClientKey,
    },
    /// It has subscribed; an earlier subscription to the same filter is replaced.
    Subscribed {
        /// Whose.
        client: ClientKey,
        /// To what.
        subscription: Subscription,
    },
    /// It has not any more.
    Unsubscribed {
        /// Whose.
        client: ClientKey,
        /// From what.
        filter: Arc<str>,
    },
    /// A publication waits for it.
    Queued {
        /// Whose.
        client: ClientKey,
        /// The number of this entry of its.
        number: u64,
        /// The publication's number.
        message: u64,
        /// How often it may arrive.
        grade: Grade,
        /// Whether it is given as a retained message.
        retain: bool,
        /// What the client calls the subscriptions.
        identifiers: Option<Box<[u32]>>,
        /// The shared subscription by which it comes.
        shared: Option<Arc<str>>,
    },
    /// It was sent under a number of the client's protocol, or the client has it.
    Flying {
        /// Whose.
        client: ClientKey,
        /// The number of the entry.
        number: u64,
        /// The number under way.
        handle: u16,
        /// The client has it, and its number is to be freed.
        received: bool,
    },
    /// It is done with.
    Done {
        /// Whose.
        client: ClientKey,
        /// The number of the entry.
        number: u64,
    },
    /// A message of grade 2 came under this number, or the client has freed the number.
    Inbound {
        /// Whose.
        client: ClientKey,
        /// The number.
        handle: u16,
        /// Whether it is in use.
        open: bool,
    },
    /// A topic has a present value.
    Retained {
        /// The topic.
        topic: Arc<str>,
        /// The publication's number.
        message: u64,
    },
    /// It has none any more.
    Cleared {
        /// The topic.
        topic: Arc<str>,
    },
    /// A record of an adapter, in its own form: what its protocol has besides sessions.
    Kept {
        /// Whose.
        protocol: Protocol,
        /// What the adapter calls it.
        key: Arc<str>,
        /// The record that takes the place of the one before; `None`: there is none any more.
        value: Option<Bytes>,
    },
}
