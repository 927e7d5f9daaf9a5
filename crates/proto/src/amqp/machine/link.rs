//! One end of a link, at this side (AMQP 1.0 Part 2 §2.6).

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::settings::{LinkId, MAX_UNSETTLED};
use crate::amqp::performative::{Attach, LinkFlow, ReceiverSettleMode, Role, Transfer};

/// See the module.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) id: LinkId,
    /// What the peer says of it; its role is the peer's.
    pub(super) attach: Attach,
    /// What this side calls it, from its attach on.
    pub(super) handle: Option<u32>,
    /// Whether this side has sent its detach and awaits the peer's.
    pub(super) is_detaching: bool,
    /// Whether the application knows of it.
    pub(super) is_announced: bool,
    pub(super) end: LinkEnd,
}

/// What this side is.
#[derive(Debug)]
pub(super) enum LinkEnd {
    Sending(Sending),
    Receiving(Receiving),
}

/// What is under way to the peer.
#[derive(Debug, Default)]
pub(super) struct Sending {
    /// AMQP 1.0 Part 2 §2.6.7; it begins at zero.
    pub(super) delivery_count: u32,
    pub(super) credit: u32,
    pub(super) drain: bool,
    /// The application has nothing more for a link that is drained.
    pub(super) is_drained: bool,
    /// Bounded by the credit that there was.
    pub(super) queue: VecDeque<Outgoing>,
    /// Ids of deliveries that are not settled, by what the application calls them.
    pub(super) unsettled: BTreeMap<u64, u32>,
    pub(super) next_tag: u64,
    /// Whether it stands in its session's queue.
    pub(super) is_ready: bool,
}

/// A message that is not wholly sent.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) delivery: u64,
    pub(super) settled: bool,
    pub(super) message: Bytes,
    /// Bytes that were sent, once anything was.
    pub(super) sent: Option<usize>,
}

impl Sending {
    /// Deliveries that it takes from the application.
    pub(super) fn available(&self) -> u32 {
        if self.unsettled.len() >= MAX_UNSETTLED {
            return 0;
        }
        let begun = self.queue.front().is_some_and(|first| first.sent.is_some());
        let queued = self.queue.len() - usize::from(begun);
        self.credit.saturating_sub(u32::try_from(queued).unwrap_or(u32::MAX))
    }

    pub(super) fn has_room(&self, delivery: u64) -> bool {
        self.available() > 0 && !self.unsettled.contains_key(&delivery)
    }

    /// Whether a frame may go, as far as the link has a say.
    pub(super) fn can_send(&self) -> bool {
        self.queue.front().is_some_and(|first| first.sent.is_some() || self.credit > 0)
    }

    /// What the receiving end says (AMQP 1.0 Part 2 §2.6.7).
    pub(super) fn granted(&mut self, flow: &LinkFlow) {
        let count = flow.delivery_count.unwrap_or(0);
        if let Some(credit) = flow.link_credit {
            // A credit may be as great as all numbers; what is under way is of it.
            self.credit = credit.saturating_sub(difference(self.delivery_count, count));
        }
        self.drain = flow.drain;
        self.is_drained &= flow.drain;
    }

    /// AMQP 1.0 Part 2 §2.6.7: what is left of the credit is used up. Whether it was time for that.
    pub(super) fn drained(&mut self) -> bool {
        let is_due = self.drain && self.is_drained && self.queue.is_empty();
        if is_due {
            self.delivery_count = self.delivery_count.wrapping_add(self.credit);
            self.credit = 0;
            self.is_drained = false;
            self.drain = false;
        }
        is_due
    }
}

/// What is under way from the peer.
#[derive(Debug, Default)]
pub(super) struct Receiving {
    pub(super) delivery_count: u32,
    pub(super) credit: u32,
    /// Of [`super::Accepted::window`].
    pub(super) window: u32,
    /// Deliveries that the application has, or the peer has not settled.
    pub(super) held: u32,
    /// One whose end is not there yet.
    pub(super) partial: Option<Partial>,
}

/// A message of which the end is not there yet.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) delivery: u32,
    pub(super) tag: Bytes,
    pub(super) format: u32,
    pub(super) settled: bool,
    pub(super) is_second: bool,
    /// One that nobody here knows of: AMQP 1.0 Part 2 §2.6.13.
    pub(super) is_ignored: bool,
    pub(super) pieces: Vec<Bytes>,
    pub(super) bytes: usize,
}

impl Partial {
    /// Of a delivery's first transfer; `None` where it lacks what that has to have.
    pub(super) fn begin(transfer: &Transfer, mode: ReceiverSettleMode) -> Option<Self> {
        let is_second = transfer.rcv_settle_mode != Some(ReceiverSettleMode::First);
        Some(Self {
            delivery: transfer.delivery_id?,
            tag: transfer.delivery_tag.clone()?,
            format: transfer.message_format.unwrap_or(0),
            settled: false,
            is_second: is_second && mode == ReceiverSettleMode::Second,
            is_ignored: transfer.resume,
            pieces: Vec::new(),
            bytes: 0,
        })
    }

    /// The whole message.
    pub(super) fn message(&mut self) -> Bytes {
        match self.pieces.as_mut_slice() {
            [] => Bytes::new(),
            [one] => std::mem::take(one),
            pieces => pieces.concat().into(),
        }
    }
}

impl Receiving {
    /// Gives the peer credit where it has used up half of what it may have. Whether it is to be
    /// told.
    pub(super) fn top_up(&mut self) -> bool {
        let used = self.credit.saturating_add(self.held);
        let is_due = self.window > 0 && used <= self.window / 2;
        if is_due {
            self.credit = self.window - self.held;
        }
        is_due
    }

    /// What the sending end says of itself: it may have used up credit without a delivery.
    pub(super) fn observe(&mut self, flow: &LinkFlow) {
        if let Some(count) = flow.delivery_count {
            let used = difference(count, self.delivery_count);
            // It cannot have used what it has not.
            if used <= self.credit {
                self.credit -= used;
                self.delivery_count = count;
            }
        }
    }
}

impl Link {
    pub(super) fn new(id: LinkId, attach: Attach) -> Self {
        let end = match attach.role {
            Role::Receiver => LinkEnd::Sending(Sending::default()),
            Role::Sender => LinkEnd::Receiving(Receiving {
                delivery_count: attach.initial_delivery_count.unwrap_or(0),
                ..Receiving::default()
            }),
        };
        Self { id, attach, handle: None, is_detaching: false, is_announced: false, end }
    }

    /// Whether it is attached at both ends.
    pub(super) fn is_attached(&self) -> bool {
        self.handle.is_some() && !self.is_detaching
    }

    /// How it stands, for the peer.
    pub(super) fn flow(&self) -> LinkFlow {
        let handle = self.handle.unwrap_or(0);
        match &self.end {
            LinkEnd::Sending(sending) => LinkFlow {
                handle,
                delivery_count: Some(sending.delivery_count),
                link_credit: Some(sending.credit),
                available: Some(u32::try_from(sending.queue.len()).unwrap_or(u32::MAX)),
                drain: sending.drain,
            },
            LinkEnd::Receiving(receiving) => LinkFlow {
                handle,
                delivery_count: Some(receiving.delivery_count),
                link_credit: Some(receiving.credit),
                available: None,
                drain: false,
            },
        }
    }

    /// Bytes of messages that are not whole, in either direction.
    pub(super) fn held_bytes(&self) -> usize {
        match &self.end {
            LinkEnd::Sending(sending) => {
                let left = |it: &Outgoing| it.message.len() - it.sent.unwrap_or(0);
                sending.queue.iter().map(left).sum()
            }
            LinkEnd::Receiving(receiving) => self.partial_bytes_of(receiving),
        }
    }

    /// Bytes of messages for the peer that were not sent.
    pub(super) fn unsent_bytes(&self) -> usize {
        match &self.end {
            LinkEnd::Sending(_) => self.held_bytes(),
            LinkEnd::Receiving(_) => 0,
        }
    }

    fn partial_bytes_of(&self, receiving: &Receiving) -> usize {
        receiving.partial.as_ref().map_or(0, |partial| partial.bytes)
    }

    /// Bytes of a message of the peer that is not whole.
    pub(super) fn partial_bytes(&self) -> usize {
        match &self.end {
            LinkEnd::Sending(_) => 0,
            LinkEnd::Receiving(receiving) => self.partial_bytes_of(receiving),
        }
    }
}

/// How far one number is ahead of another in serial arithmetic (RFC 1982); zero where it is behind.
pub(super) fn difference(ahead: u32, of: u32) -> u32 {
    let difference = ahead.wrapping_sub(of);
    if difference > u32::MAX / 2 { 0 } else { difference }
}
