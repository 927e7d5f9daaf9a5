//! What has to outlive the process, as changes that lead to it one after the other.

use std::sync::Arc;
use std::time::Duration;

use super::inbox::{Arrived, Key};
use super::outbox::Progress;
use crate::messaging::message::Message;
use crate::messaging::receipt::Returning;
use crate::messaging::signing::Digest;

/// The number of a batch of changes.
pub type Ticket = u64;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A message has come to this node, or was read.
    Inbox(Arrived),
    /// It was taken out.
    InboxRemoved {
        /// Which.
        number: u64,
    },
    /// A message is to go to other nodes.
    Outgoing {
        /// Its number at this node.
        number: u64,
        /// When this node accepted it, since 1970.
        accepted: Duration,
        /// The message.
        message: Arc<Message>,
        /// The nodes that it has passed.
        hops: Vec<String>,
    },
    /// How far it is with one of its recipients.
    Recipient {
        /// Of which message.
        number: u64,
        /// Which recipient.
        node: Arc<str>,
        /// How far.
        progress: Progress,
    },
    /// It need not be known any more.
    OutgoingRemoved {
        /// Which.
        number: u64,
    },
    /// A receipt is to go to another node.
    Receipt {
        /// Its number at this node.
        number: u64,
        /// The receipt.
        returning: Returning,
    },
    /// It is over.
    ReceiptRemoved {
        /// Which.
        number: u64,
    },
    /// Numbers and names up to these were given away, also to what is not there any more.
    Given {
        /// The greatest number.
        number: u64,
        /// What the last id was made of.
        name: u64,
    },
    /// A message was here that is not in the inbox any more.
    Seen {
        /// Which.
        key: Key,
        /// What it was.
        digest: Digest,
        /// Until when it could come again, since 1970.
        until: Duration,
    },
    /// It cannot come again.
    SeenRemoved {
        /// Which.
        key: Key,
    },
}
