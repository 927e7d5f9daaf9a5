//! One session: its windows, its links, and the deliveries that are not settled
//! (AMQP 1.0 Part 2 §2.5, §2.6).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::io::{Fault, Io, shortened};
use super::link::{Link, LinkEnd, Outgoing, Sending, difference};
use super::settings::{LinkId, MAX_HANDLE, MAX_NAME_BYTES, MAX_SESSION_WINDOW, Output};
use crate::amqp::performative::{
    Attach, Begin, DeliveryState, Detach, ErrorInfo, ExpiryPolicy, Flow, LinkFlow, Performative,
    Role, Transfer, condition,
};

/// Bytes of a transfer in front of its payload, at most: all fields that this side writes.
const MAX_TRANSFER_BYTES: usize = 64;

/// See the module.
#[derive(Debug)]
pub(super) struct Session {
    /// The channel of this side.
    pub(super) channel: u16,
    /// Whether this side has sent its end and awaits the peer's.
    pub(super) is_ending: bool,
    /// AMQP 1.0 Part 2 §2.5.6.
    next_incoming_id: u32,
    incoming_window: u32,
    next_outgoing_id: u32,
    remote_incoming_window: u32,
    next_delivery_id: u32,
    handle_max: u32,
    /// By the peer's handle.
    pub(super) links: BTreeMap<u32, Link>,
    /// The peer's handles by the links' ids.
    handles: BTreeMap<LinkId, u32>,
    /// Handles of this side.
    used: BTreeSet<u32>,
    /// The peer's handles of links that may have something to send, in the order of who is next.
    ready: VecDeque<u32>,
    /// Deliveries of the peer: its handle of their link, and whether it settles second.
    pub(super) incoming: BTreeMap<u32, (u32, bool)>,
    /// Deliveries to the peer: its handle of their link, and what the application calls them.
    pub(super) outgoing: BTreeMap<u32, (u32, u64)>,
}

impl Session {
    /// Answers a begin.
    pub(super) fn begin(begin: &Begin, remote: u16, channel: u16, io: &mut Io) -> Self {
        io.send(channel, &Performative::Begin(Box::new(Self::begin_of(Some(remote)))));
        Self::new(begin, channel)
    }

    /// The begin of this side, which answers that of the peer on the channel `remote`, or asks.
    pub(super) fn begin_of(remote: Option<u16>) -> Begin {
        Begin {
            remote_channel: remote,
            next_outgoing_id: 0,
            incoming_window: MAX_SESSION_WINDOW,
            outgoing_window: MAX_SESSION_WINDOW,
            handle_max: MAX_HANDLE,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: Vec::new(),
        }
    }

    /// With the peer's begin, and the channel of this side.
    pub(super) fn new(begin: &Begin, channel: u16) -> Self {
        Self {
            channel,
            is_ending: false,
            next_incoming_id: begin.next_outgoing_id,
            incoming_window: MAX_SESSION_WINDOW,
            next_outgoing_id: 0,
            remote_incoming_window: begin.incoming_window,
            next_delivery_id: 0,
            handle_max: begin.handle_max,
            links: BTreeMap::new(),
            handles: BTreeMap::new(),
            used: BTreeSet::new(),
            ready: VecDeque::new(),
            incoming: BTreeMap::new(),
            outgoing: BTreeMap::new(),
        }
    }

    /// The link of this id.
    pub(super) fn link(&mut self, link: LinkId) -> Option<&mut Link> {
        self.links.get_mut(self.handles.get(&link)?)
    }

    /// Whether the peer takes a handle of this side.
    pub(super) fn takes(&self, handle: u32) -> bool {
        handle <= self.handle_max.min(MAX_HANDLE)
    }

    /// Whether a link is there, and neither side has detached it.
    pub(super) fn holds(&mut self, link: LinkId) -> bool {
        self.link(link).is_some_and(|link| !link.is_detaching)
    }

    /// Whether messages for a link wait.
    pub(super) fn is_backed_up(&self, link: LinkId) -> bool {
        let link = self.handles.get(&link).and_then(|handle| self.links.get(handle));
        link.is_some_and(|link| match &link.end {
            LinkEnd::Sending(sending) => !sending.queue.is_empty(),
            LinkEnd::Receiving(_) => false,
        })
    }

    /// Messages for a link that are not wholly sent; `None` where there is no such link, or it is
    /// being detached.
    pub(super) fn queued(&self, link: LinkId) -> Option<usize> {
        self.sending(link).map(|sending| sending.queue.len())
    }

    /// Messages that a link takes now.
    pub(super) fn available(&self, link: LinkId) -> u32 {
        self.sending(link).map_or(0, Sending::available)
    }

    fn sending(&self, link: LinkId) -> Option<&Sending> {
        match self.links.get(self.handles.get(&link)?)? {
            Link { end: LinkEnd::Sending(sending), is_detaching: false, .. } => Some(sending),
            _ => None,
        }
    }

    /// Bytes of messages of the peer that are not whole, but for the link of a handle of it.
    pub(super) fn partial_beside(&self, handle: u32) -> usize {
        let others = self.links.iter().filter(|(other, _)| **other != handle);
        others.map(|(_, link)| link.partial_bytes()).sum()
    }

    /// The peer's handle of a link.
    pub(super) fn remote_handle(&self, link: LinkId) -> Option<u32> {
        self.handles.get(&link).copied()
    }

    /// The peer attaches a link.
    pub(super) fn attach(&mut self, attach: Attach, id: LinkId) -> Result<(), Fault> {
        let handle = attach.handle;
        if handle > MAX_HANDLE {
            // AMQP 1.0 Part 2 §2.7.2.
            return Err(Fault::connection(condition::FRAMING_ERROR, "handle over handle-max"));
        }
        if attach.name.len() > MAX_NAME_BYTES {
            return Err(Fault::session(condition::RESOURCE_LIMIT_EXCEEDED, "name of a link"));
        }
        if self.links.contains_key(&handle) {
            return Err(Fault::session(condition::HANDLE_IN_USE, "handle of attach"));
        }
        self.links.insert(handle, Link::new(id, attach));
        self.handles.insert(id, handle);
        Ok(())
    }

    /// The link of this name in this direction, the peer being `role` (AMQP 1.0 Part 2 §2.6.1: two
    /// of one name and of different directions are two links).
    pub(super) fn find(&self, name: &str, role: Role) -> Option<LinkId> {
        let is_it = |link: &&Link| {
            link.attach.role == role && link.attach.name == name && !link.is_detaching
        };
        self.links.values().find(is_it).map(|link| link.id)
    }

    /// Gives a link its handle of this side; `None` where the peer takes no more.
    pub(super) fn take_handle(&mut self, link: LinkId) -> Option<u32> {
        let free = (0..=self.handle_max.min(MAX_HANDLE)).find(|it| !self.used.contains(it))?;
        self.link(link)?.handle = Some(free);
        self.used.insert(free);
        Some(free)
    }

    /// The peer detaches a link, or answers a detach.
    pub(super) fn detached(&mut self, detach: Detach, io: &mut Io) -> Result<(), Fault> {
        let handle = detach.handle;
        let Some(link) = self.links.get(&handle) else { return Err(unattached()) };
        let (id, is_detaching, is_attached) = (link.id, link.is_detaching, link.is_attached());
        let is_announced = link.is_announced;
        if !is_detaching {
            if !is_attached {
                // AMQP 1.0 Part 2 §2.6.3: there is no detach without an attach.
                self.refuse_attach(id, io);
            }
            if let Some(ours) = self.link(id).and_then(|link| link.handle) {
                let answer = Detach { handle: ours, closed: detach.closed, error: None };
                io.send(self.channel, &Performative::Detach(answer));
            }
            if is_announced {
                let by = (!detach.closed).then_some(ExpiryPolicy::LinkDetach);
                io.say(Output::Detached { link: id, by, error: detach.error });
            }
        }
        self.forget(handle);
        Ok(())
    }

    /// An attach that says that there is no link: without the terminus of this side
    /// (AMQP 1.0 Part 2 §2.6.3).
    pub(super) fn refuse_attach(&mut self, id: LinkId, io: &mut Io) {
        let Some(handle) = self.take_handle(id) else { return };
        let Some(link) = self.link(id) else { return };
        let theirs = &link.attach;
        let mut attach = Attach::new(&theirs.name, handle, theirs.role.other());
        match attach.role {
            Role::Sender => {
                attach.initial_delivery_count = Some(0);
                attach.target.clone_from(&theirs.target);
            }
            Role::Receiver => attach.source.clone_from(&theirs.source),
        }
        io.send(self.channel, &Performative::Attach(Box::new(attach)));
    }

    /// A link that the peer wants is not to be.
    pub(super) fn refuse(&mut self, id: LinkId, error: ErrorInfo, io: &mut Io) {
        if self.link(id).is_some_and(|link| link.handle.is_none()) {
            self.refuse_attach(id, io);
            self.detach(id, true, Some(error), io);
        } else {
            io.misused();
        }
    }

    /// This side detaches a link.
    pub(super) fn detach(
        &mut self,
        id: LinkId,
        closed: bool,
        error: Option<ErrorInfo>,
        io: &mut Io,
    ) {
        let Some(remote) = self.remote_handle(id) else { return };
        let Some(link) = self.links.get_mut(&remote) else { return };
        if link.is_detaching {
            return;
        }
        let handle = link.handle.unwrap_or(0);
        link.is_detaching = true;
        match &mut link.end {
            LinkEnd::Sending(sending) => sending.queue.clear(),
            LinkEnd::Receiving(receiving) => receiving.partial = None,
        }
        self.incoming.retain(|_, (of, _)| *of != remote);
        self.outgoing.retain(|_, (of, _)| *of != remote);
        let detach = Detach { handle, closed, error: shortened(error) };
        io.send(self.channel, &Performative::Detach(detach));
    }

    /// The peer has let go of a handle.
    fn forget(&mut self, handle: u32) {
        if let Some(link) = self.links.remove(&handle) {
            self.handles.remove(&link.id);
            if let Some(ours) = link.handle {
                self.used.remove(&ours);
            }
        }
        self.ready.retain(|of| *of != handle);
        self.incoming.retain(|_, (of, _)| *of != handle);
        self.outgoing.retain(|_, (of, _)| *of != handle);
    }

    /// The peer says what it takes.
    pub(super) fn flow(&mut self, flow: Flow, io: &mut Io) -> Result<(), Fault> {
        // AMQP 1.0 Part 2 §2.5.6; before it has seen this side's begin it awaits the first.
        let next = flow.next_incoming_id.unwrap_or(0);
        let end = next.wrapping_add(flow.incoming_window);
        // A window may be as wide as all numbers.
        let under_way = difference(self.next_outgoing_id, next);
        self.remote_incoming_window = if flow.incoming_window > u32::MAX / 2 {
            flow.incoming_window - under_way
        } else {
            difference(end, self.next_outgoing_id)
        };
        self.next_incoming_id = flow.next_outgoing_id;
        let waited: Vec<u32> = self.ready.iter().copied().collect();
        self.pump(io);
        for handle in waited {
            let id = self.links.get(&handle).map(|link| link.id);
            if let Some(id) = id.filter(|id| !self.is_backed_up(*id)) {
                self.say_credit(id, io);
            }
        }
        let Some(flow_of_link) = flow.link else {
            if flow.echo {
                self.send_flow(None, io);
            }
            return Ok(());
        };
        let handle = flow_of_link.handle;
        let Some(link) = self.links.get_mut(&handle) else { return Err(unattached()) };
        if link.is_detaching {
            return Ok(());
        }
        let (id, is_attached) = (link.id, link.is_attached());
        match &mut link.end {
            LinkEnd::Sending(sending) => {
                sending.granted(&flow_of_link);
                if !is_attached {
                    // The application hears of it when it has taken the link.
                    return Ok(());
                }
                self.mark_ready(handle);
                self.pump(io);
                self.say_credit(id, io);
            }
            LinkEnd::Receiving(receiving) => {
                receiving.observe(&flow_of_link);
                if receiving.top_up() {
                    self.send_flow(Some(handle), io);
                }
            }
        }
        if flow.echo && is_attached {
            self.send_flow(Some(handle), io);
        }
        Ok(())
    }

    /// Tells the application what a link takes.
    pub(super) fn say_credit(&mut self, id: LinkId, io: &mut Io) {
        if let Some(Link { end: LinkEnd::Sending(sending), .. }) = self.link(id) {
            let (credit, drain) = (sending.available(), sending.drain);
            io.say(Output::Flow { link: id, credit, drain });
        }
    }

    /// Says how the session stands, and a link.
    pub(super) fn send_flow(&mut self, remote_handle: Option<u32>, io: &mut Io) {
        let link = remote_handle.and_then(|handle| self.links.get(&handle)).map(Link::flow);
        self.send_flow_of(link, io);
    }

    fn send_flow_of(&mut self, link: Option<LinkFlow>, io: &mut Io) {
        self.incoming_window = MAX_SESSION_WINDOW;
        let flow = Flow {
            next_incoming_id: Some(self.next_incoming_id),
            incoming_window: self.incoming_window,
            next_outgoing_id: self.next_outgoing_id,
            outgoing_window: MAX_SESSION_WINDOW,
            link,
            echo: false,
            properties: Vec::new(),
        };
        io.send(self.channel, &Performative::Flow(Box::new(flow)));
    }

    /// A transfer came: whether the session still takes it.
    pub(super) fn count_transfer(&mut self, io: &mut Io) -> Result<(), Fault> {
        let left = self.incoming_window.checked_sub(1);
        let what = "transfer beyond the incoming window";
        self.incoming_window = left.ok_or(Fault::session(condition::WINDOW_VIOLATION, what))?;
        self.next_incoming_id = self.next_incoming_id.wrapping_add(1);
        if self.incoming_window < MAX_SESSION_WINDOW / 2 {
            self.send_flow(None, io);
        }
        Ok(())
    }

    /// A message for the peer.
    pub(super) fn deliver(&mut self, id: LinkId, outgoing: Outgoing, io: &mut Io) {
        let delivery = outgoing.delivery;
        if let Some(handle) = self.remote_handle(id)
            && let Some(link) = self.links.get_mut(&handle)
            && link.is_attached()
            && let LinkEnd::Sending(sending) = &mut link.end
            && sending.has_room(delivery)
        {
            sending.queue.push_back(outgoing);
            self.mark_ready(handle);
            return self.pump(io);
        }
        io.misused();
        let state = Some(DeliveryState::Released);
        io.say(Output::Disposition { link: id, delivery, state, settled: true });
    }

    /// How much may be under way to this side.
    pub(super) fn set_window(&mut self, id: LinkId, window: u32, io: &mut Io) {
        let Some(handle) = self.remote_handle(id) else { return };
        let Some(Link { end: LinkEnd::Receiving(receiving), .. }) = self.links.get_mut(&handle)
        else {
            return;
        };
        let is_less = window < receiving.window;
        receiving.window = window;
        let most = window.saturating_sub(receiving.held);
        if is_less && receiving.credit > most {
            receiving.credit = most;
            self.send_flow(Some(handle), io);
        }
        self.top_up(handle, io);
    }

    /// The application has nothing more for a link that is drained.
    pub(super) fn drained(&mut self, id: LinkId, io: &mut Io) {
        if let Some(Link { end: LinkEnd::Sending(sending), .. }) = self.link(id) {
            sending.is_drained = sending.drain;
        }
        self.answer_drain(id, io);
    }

    fn answer_drain(&mut self, id: LinkId, io: &mut Io) {
        if let Some(link) = self.link(id)
            && let LinkEnd::Sending(sending) = &mut link.end
            && sending.drained()
        {
            // The peer sees by it that this is the end of draining.
            let mut flow = link.flow();
            flow.drain = true;
            self.send_flow_of(Some(flow), io);
        }
    }

    fn mark_ready(&mut self, handle: u32) {
        if let Some(Link { end: LinkEnd::Sending(sending), .. }) = self.links.get_mut(&handle)
            && sending.can_send()
            && !sending.is_ready
        {
            sending.is_ready = true;
            self.ready.push_back(handle);
        }
    }

    /// Sends what the windows let go, a frame of each link in order.
    pub(super) fn pump(&mut self, io: &mut Io) {
        while self.remote_incoming_window > 0 {
            let Some(handle) = self.ready.pop_front() else { return };
            let Some(link) = self.links.get_mut(&handle) else { continue };
            let id = link.id;
            if let LinkEnd::Sending(sending) = &mut link.end {
                sending.is_ready = false;
                if sending.can_send() {
                    self.send_one(handle, io);
                    self.mark_ready(handle);
                    self.answer_drain(id, io);
                }
            }
        }
    }

    /// Sends the next frame of a link that has something to send.
    fn send_one(&mut self, remote: u32, io: &mut Io) {
        let Some(link) = self.links.get_mut(&remote) else { return };
        let LinkEnd::Sending(sending) = &mut link.end else { return };
        let Some(mut first) = sending.queue.pop_front() else { return };
        let room = io.max_frame_bytes.saturating_sub(MAX_TRANSFER_BYTES);
        let mut transfer = Transfer { handle: link.handle.unwrap_or(0), ..Transfer::default() };
        let sent = first.sent.unwrap_or_else(|| {
            sending.credit = sending.credit.saturating_sub(1);
            sending.delivery_count = sending.delivery_count.wrapping_add(1);
            let delivery = self.next_delivery_id;
            self.next_delivery_id = delivery.wrapping_add(1);
            transfer.delivery_id = Some(delivery);
            transfer.delivery_tag = Some(sending.next_tag.to_be_bytes().to_vec().into());
            sending.next_tag = sending.next_tag.wrapping_add(1);
            transfer.message_format = Some(0);
            transfer.settled = Some(first.settled);
            if !first.settled {
                sending.unsettled.insert(first.delivery, delivery);
                self.outgoing.insert(delivery, (remote, first.delivery));
            }
            0
        });
        let left = first.message.get(sent..).unwrap_or_default();
        let payload = left.get(..room).unwrap_or(left);
        transfer.more = payload.len() < left.len();
        io.send_with(self.channel, &Performative::Transfer(Box::new(transfer)), payload);
        self.next_outgoing_id = self.next_outgoing_id.wrapping_add(1);
        self.remote_incoming_window -= 1;
        if payload.len() < left.len() {
            first.sent = Some(sent + payload.len());
            sending.queue.push_front(first);
        }
    }

    /// The session ends: what the application hears of its links.
    pub(super) fn say_detached(&mut self, error: Option<&ErrorInfo>, io: &mut Io) {
        for link in std::mem::take(&mut self.links).into_values() {
            if !link.is_detaching && link.is_announced {
                let (by, error) = (Some(ExpiryPolicy::SessionEnd), error.cloned());
                io.say(Output::Detached { link: link.id, by, error });
            }
        }
        self.handles.clear();
        self.incoming.clear();
        self.outgoing.clear();
    }
}

pub(super) fn unattached() -> Fault {
    Fault::session(condition::UNATTACHED_HANDLE, "handle that no link has")
}
