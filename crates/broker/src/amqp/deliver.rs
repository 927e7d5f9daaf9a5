//! What a subscriber gets, and what it says of it.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::amqp::machine::{Input, LinkId};
use proto::amqp::performative::{Attach, DeliveryState, SenderSettleMode};

use super::connection::{Connection, Link};
use super::linking::Chosen;
use super::{Shared, address, translate};
use crate::core::{Delivery, Next, tell_dropped_for, tell_sent, tell_unchosen};
use crate::event::Drop;
use crate::explain::Sent;
use crate::ids::SessionId;
use crate::outputs::Context;

/// Messages of a link of which is known how often they failed; the oldest of them are forgotten.
const MAX_FAILED: usize = 1024;

/// A link from a node.
#[derive(Debug)]
pub(super) struct Subscriber {
    pub(super) session: SessionId,
    /// Deliveries that the link takes.
    pub(super) credit: u32,
    /// The peer wants to know when there is nothing more.
    pub(super) drain: bool,
    /// How long the session is kept without it.
    pub(super) expiry: Duration,
    mode: SenderSettleMode,
    is_wildcard: bool,
    chosen: Chosen,
    /// Longest message that the peer takes, in bytes.
    max_bytes: usize,
    /// What is settled without a word.
    default_outcome: Option<DeliveryState>,
    /// Numbers of publications under way, by the core's numbers.
    flying: BTreeMap<u16, u64>,
    /// Attempts that failed, by the numbers of publications.
    failed: BTreeMap<u64, u32>,
}

impl Subscriber {
    pub(super) fn new(
        session: SessionId,
        attach: &Attach,
        filter: &str,
        expiry: Duration,
        chosen: Chosen,
    ) -> Self {
        let max = attach.max_message_size.and_then(|max| usize::try_from(max).ok());
        Self {
            session,
            credit: 0,
            drain: false,
            expiry,
            mode: attach.snd_settle_mode,
            is_wildcard: address::is_wildcard(filter),
            chosen,
            max_bytes: max.unwrap_or(usize::MAX),
            default_outcome: attach.source.as_ref().and_then(|it| it.default_outcome.clone()),
            flying: BTreeMap::new(),
            failed: BTreeMap::new(),
        }
    }

    fn fail(&mut self, handle: u16, counts: bool) {
        let Some(id) = self.flying.remove(&handle) else { return };
        if counts {
            *self.failed.entry(id).or_default() += 1;
            if self.failed.len() > MAX_FAILED {
                self.failed.pop_first();
            }
        }
    }

    fn done(&mut self, handle: u16) {
        if let Some(id) = self.flying.remove(&handle) {
            self.failed.remove(&id);
        }
    }
}

impl Connection {
    /// Gives the subscriber of a session what waits.
    pub(super) fn deliver_to(
        &mut self,
        context: &mut Context<'_>,
        shared: &mut Shared,
        session: SessionId,
    ) {
        self.wanting.extend(self.sessions.get(&session).copied());
        self.run(context, shared);
    }

    /// Gives every subscriber what waits.
    pub(super) fn deliver_all(&mut self, context: &mut Context<'_>, shared: &mut Shared) {
        self.wanting.extend(self.sessions.values().copied());
        self.run(context, shared);
    }

    /// Puts the next of what waits for a link among what the machine gets; whether there was one.
    /// When the machine has sent it, it shows whether there is room for more.
    pub(super) fn deliver(&mut self, context: &mut Context<'_>, link: LinkId) -> bool {
        loop {
            let Some(Link::Subscriber(subscriber)) = self.links.get_mut(&link) else {
                return false;
            };
            let is_backed_up = self.machine.is_backed_up(link);
            if subscriber.credit == 0 || is_backed_up || !context.outputs.room(self.id) {
                return false;
            }
            let session = subscriber.session;
            match context.core.take(context.now, session) {
                Some(Next::Publish(delivery)) => {
                    if self.send(context, link, &delivery) {
                        return true;
                    }
                }
                Some(Next::Release(handle)) => {
                    // It was taken over a link before, and the peer knows no more of it.
                    context.core.finish(session, handle.get(), false);
                }
                None if context.core.has_more(session) => {
                    context.core.poke(session);
                    return false;
                }
                None => {
                    if std::mem::take(&mut subscriber.drain) {
                        self.inputs.push_back(Input::Drained { link });
                    }
                    return false;
                }
            }
        }
    }

    /// Sends one; `false` where it is not for this subscriber after all.
    fn send(&mut self, context: &mut Context<'_>, link: LinkId, delivery: &Delivery) -> bool {
        let publication = &delivery.publication;
        let own = self.publisher;
        let Some(Link::Subscriber(subscriber)) = self.links.get_mut(&link) else { return false };
        let session = subscriber.session;
        let attempts = subscriber.failed.get(&publication.id).copied().unwrap_or(0);
        let is_wildcard = subscriber.is_wildcard;
        let is_own = subscriber.chosen.no_local && publication.publisher == own;
        let selector = subscriber.chosen.selector.as_ref();
        let is_chosen = !is_own && selector.is_none_or(|it| translate::fits(it, publication));
        let message = translate::message(context.now, delivery, attempts, is_wildcard);
        // One that went over a link before and was not settled may have expired since.
        let is_expired = publication.is_expired(context.now);
        if !is_chosen || is_expired || message.len() > subscriber.max_bytes {
            if is_chosen {
                let (len, max) = (message.len(), subscriber.max_bytes);
                if is_expired {
                    context.core.tell_dropped(publication, Some(session), Drop::Expired);
                } else {
                    let (core, why) = (&mut *context.core, Drop::TooLarge);
                    let detail = format_args!("{len} bytes, the link takes {max}");
                    tell_dropped_for(core, publication, Some(session), why, detail);
                }
            } else {
                let why = if is_own { "own" } else { "not-selected" };
                tell_unchosen(context.core, publication, session, why);
            }
            if let Some(handle) = delivery.handle {
                context.core.finish(session, handle.get(), false);
            }
            return false;
        }
        subscriber.credit = subscriber.credit.saturating_sub(1);
        let message_bytes = Some(message.len());
        let sent = Sent { protocol: "AMQP 1.0", message_bytes, ..Sent::default() };
        let settled = match subscriber.mode {
            SenderSettleMode::Settled => true,
            SenderSettleMode::Unsettled => false,
            SenderSettleMode::Mixed => delivery.handle.is_none(),
        };
        let delivery = match delivery.handle {
            Some(handle) if settled => {
                context.core.finish(session, handle.get(), false);
                self.unnumbered()
            }
            Some(handle) => {
                subscriber.flying.insert(handle.get(), publication.id);
                handle.get().into()
            }
            None => self.unnumbered(),
        };
        tell_sent(context.core, publication, session, sent);
        self.inputs.push_back(Input::Deliver { link, delivery, settled, message });
        true
    }

    /// A number for a delivery that the core has none for, greater than those that it gives.
    fn unnumbered(&mut self) -> u64 {
        self.last_key += 1;
        self.last_key
    }

    /// A subscriber says what became of a delivery.
    pub(super) fn disposition(
        &mut self,
        context: &mut Context<'_>,
        shared: &mut Shared,
        (link, delivery): (LinkId, u64),
        state: Option<DeliveryState>,
        settled: bool,
    ) {
        let Some(Link::Subscriber(subscriber)) = self.links.get_mut(&link) else { return };
        let is_outcome = state.as_ref().is_some_and(DeliveryState::is_outcome);
        if !settled && !is_outcome {
            return;
        }
        let session = subscriber.session;
        let outcome = state.filter(|_| is_outcome).or_else(|| subscriber.default_outcome.clone());
        if let Ok(handle) = u16::try_from(delivery) {
            let is_left = match outcome {
                None | Some(DeliveryState::Accepted) => Some(false),
                Some(DeliveryState::Rejected(_)) => Some(true),
                Some(DeliveryState::Modified { undeliverable_here: true, .. }) => Some(true),
                Some(DeliveryState::Modified { delivery_failed, .. }) => {
                    subscriber.fail(handle, delivery_failed);
                    None
                }
                Some(_) => {
                    subscriber.fail(handle, false);
                    None
                }
            };
            match is_left {
                Some(refused) => {
                    subscriber.done(handle);
                    context.core.finish(session, handle, refused);
                }
                None => {
                    context.core.give_back(session, handle);
                }
            }
        }
        if !settled {
            let ticket = context.core.journal.ticket();
            self.hold(context, shared, ticket, Input::Settle { link, delivery });
        }
    }
}
