//! Deliveries of a session: those of the peer from their first transfer on, and what became of
//! those in both directions (AMQP 1.0 Part 2 §2.6.12, §2.6.14).

use bytes::Bytes;

use super::io::{Fault, Io};
use super::link::{Link, LinkEnd, Partial, Receiving, difference};
use super::session::{Session, unattached};
use super::settings::{Delivery, LinkId, Output};
use crate::amqp::performative::{
    DeliveryState, Disposition, ErrorInfo, Performative, Role, Transfer, condition,
};

/// Bounds of what may be put together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Of a message.
    pub(super) max_message_bytes: usize,
    /// What other messages of the connection leave.
    pub(super) max_partial_bytes: usize,
}

impl Session {
    /// A part of a message came.
    pub(super) fn transfer(
        &mut self,
        transfer: &Transfer,
        payload: Bytes,
        limits: Limits,
        io: &mut Io,
    ) -> Result<(), Fault> {
        self.count_transfer(io)?;
        let handle = transfer.handle;
        let Some(link) = self.links.get_mut(&handle) else { return Err(unattached()) };
        if link.is_detaching {
            return Ok(());
        }
        let mode = link.attach.rcv_settle_mode;
        let LinkEnd::Receiving(receiving) = &mut link.end else {
            return Err(Fault::session(condition::NOT_ALLOWED, "transfer by a receiver"));
        };
        if receiving.partial.is_none() {
            let begun = Partial::begin(transfer, mode);
            let what = "first transfer without delivery-id or delivery-tag";
            let begun = begun.ok_or(Fault::session(condition::INVALID_FIELD, what))?;
            if self.incoming.contains_key(&begun.delivery) {
                let what = "delivery-id that is in use";
                return Err(Fault::session(condition::INVALID_FIELD, what));
            }
            let what = "transfer without credit";
            let error = || ErrorInfo::new(condition::TRANSFER_LIMIT_EXCEEDED, what);
            let left = receiving.credit.checked_sub(1);
            receiving.credit = left.ok_or_else(|| Fault::Link(handle, error()))?;
            receiving.delivery_count = receiving.delivery_count.wrapping_add(1);
            receiving.partial = Some(begun);
        }
        if !collect(receiving, transfer, payload, limits)? {
            return Ok(());
        }
        let id = link.id;
        self.complete(handle, id, transfer.aborted, io);
        Ok(())
    }

    /// The last transfer of a delivery is here.
    fn complete(&mut self, handle: u32, link: LinkId, is_aborted: bool, io: &mut Io) {
        let Some(Link { end: LinkEnd::Receiving(receiving), .. }) = self.links.get_mut(&handle)
        else {
            return;
        };
        let Some(mut partial) = receiving.partial.take() else { return };
        let Partial { delivery, format, settled, is_second, is_ignored, .. } = partial;
        // AMQP 1.0 Part 2 §2.7.5: what is aborted is settled.
        io.counts.aborted += u64::from(is_aborted);
        io.counts.resumed += u64::from(is_ignored && !is_aborted);
        if !is_aborted && !is_ignored {
            if !settled {
                receiving.held = receiving.held.saturating_add(1);
                self.incoming.insert(delivery, (handle, is_second));
            }
            let message = partial.message();
            let tag = partial.tag;
            io.say(Output::Delivery(Delivery {
                link,
                delivery,
                tag,
                format,
                settled,
                is_second,
                message,
            }));
        }
        self.top_up(handle, io);
    }

    pub(super) fn top_up(&mut self, handle: u32, io: &mut Io) {
        if let Some(link) = self.links.get_mut(&handle)
            && link.is_attached()
            && let LinkEnd::Receiving(receiving) = &mut link.end
            && receiving.top_up()
        {
            self.send_flow(Some(handle), io);
        }
    }

    /// The application has said what became of a delivery of the peer.
    pub(super) fn outcome(
        &mut self,
        link: LinkId,
        delivery: u32,
        state: DeliveryState,
        io: &mut Io,
    ) {
        let known = self.incoming.get(&delivery).copied();
        let Some((handle, is_second)) = known.filter(|known| self.is_of(known.0, link)) else {
            return io.misused();
        };
        let disposition = Disposition {
            role: Role::Receiver,
            first: delivery,
            last: None,
            // AMQP 1.0 Part 2 §2.8.3: second waits for the peer.
            settled: !is_second,
            state: Some(state),
            batchable: false,
        };
        io.send(self.channel, &Performative::Disposition(disposition));
        if !is_second {
            self.incoming.remove(&delivery);
            self.release(handle, io);
        }
    }

    /// A delivery of the peer is settled.
    fn release(&mut self, handle: u32, io: &mut Io) {
        if let Some(Link { end: LinkEnd::Receiving(receiving), .. }) = self.links.get_mut(&handle) {
            receiving.held = receiving.held.saturating_sub(1);
        }
        self.top_up(handle, io);
    }

    fn is_of(&self, handle: u32, link: LinkId) -> bool {
        self.remote_handle(link) == Some(handle)
    }

    /// The application forgets a delivery to the peer.
    pub(super) fn settle(&mut self, link: LinkId, delivery: u64, io: &mut Io) {
        let Some(Link { end: LinkEnd::Sending(sending), .. }) = self.link(link) else { return };
        let Some(id) = sending.unsettled.remove(&delivery) else { return io.misused() };
        self.outgoing.remove(&id);
        let disposition = Disposition {
            role: Role::Sender,
            first: id,
            last: None,
            settled: true,
            state: None,
            batchable: false,
        };
        io.send(self.channel, &Performative::Disposition(disposition));
    }

    /// The peer says what became of deliveries.
    pub(super) fn disposition(&mut self, said: Disposition, io: &mut Io) -> Result<(), Fault> {
        let last = said.last.unwrap_or(said.first);
        if last != said.first && difference(last, said.first) == 0 {
            let what = "disposition whose last is before its first";
            return Err(Fault::session(condition::INVALID_FIELD, what));
        }
        let span = difference(last, said.first);
        match said.role {
            Role::Receiver => {
                for (id, (handle, delivery)) in within(&self.outgoing, said.first, span) {
                    self.outgoing_settled(id, handle, delivery, &said, io);
                }
            }
            Role::Sender => {
                let ids = if said.settled {
                    within(&self.incoming, said.first, span)
                } else {
                    Vec::new()
                };
                for (id, (handle, _)) in ids {
                    self.incoming.remove(&id);
                    if let Some(link) = self.links.get(&handle).map(|link| link.id) {
                        io.say(Output::Settled { link, delivery: id });
                    }
                    self.release(handle, io);
                }
            }
        }
        Ok(())
    }

    fn outgoing_settled(
        &mut self,
        id: u32,
        handle: u32,
        delivery: u64,
        said: &Disposition,
        io: &mut Io,
    ) {
        let Some(link) = self.links.get_mut(&handle) else { return };
        let Disposition { state, settled, .. } = said.clone();
        if settled {
            self.outgoing.remove(&id);
            if let LinkEnd::Sending(sending) = &mut link.end {
                sending.unsettled.remove(&delivery);
            }
        }
        io.say(Output::Disposition { link: link.id, delivery, state, settled });
    }
}

/// Puts a transfer to what came of its delivery before. Whether the delivery is whole.
fn collect(
    receiving: &mut Receiving,
    transfer: &Transfer,
    payload: Bytes,
    limits: Limits,
) -> Result<bool, Fault> {
    let Some(partial) = receiving.partial.as_mut() else { return Ok(false) };
    if transfer.delivery_id.is_some_and(|id| id != partial.delivery) {
        let what = "delivery-id of another delivery amid one";
        return Err(Fault::session(condition::INVALID_FIELD, what));
    }
    if transfer.aborted {
        return Ok(true);
    }
    partial.settled |= transfer.settled.unwrap_or(false);
    partial.bytes += payload.len();
    let (condition, what) = if partial.bytes > limits.max_message_bytes {
        (condition::MESSAGE_SIZE_EXCEEDED, "message over max-message-size")
    } else if transfer.more && partial.bytes > limits.max_partial_bytes {
        (condition::RESOURCE_LIMIT_EXCEEDED, "messages of which the end is missing")
    } else {
        if !partial.is_ignored && !payload.is_empty() {
            partial.pieces.push(payload);
        }
        return Ok(!transfer.more);
    };
    Err(Fault::Link(transfer.handle, ErrorInfo::new(condition, what)))
}

/// Entries of ids from the first on in serial order, as many as there are.
fn within<T: Copy>(
    map: &std::collections::BTreeMap<u32, T>,
    first: u32,
    span: u32,
) -> Vec<(u32, T)> {
    let last = first.wrapping_add(span);
    if last >= first {
        map.range(first..=last).map(|(id, it)| (*id, *it)).collect()
    } else {
        let wrapped = map.range(first..).chain(map.range(..=last));
        wrapped.map(|(id, it)| (*id, *it)).collect()
    }
}
