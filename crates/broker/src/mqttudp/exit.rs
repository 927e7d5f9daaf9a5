//! What leaves.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use proto::mqttudp::{Packet, Records};

use super::{Due, MqttUdp, refuse};
use crate::core::{Next, Opening, tell_dropped_for, tell_sent};
use crate::event::Drop;
use crate::explain::Sent;
use crate::filter::matches;
use crate::ids::{ClientKey, ConnectionId, Protocol, SessionId};
use crate::outputs::Context;
use crate::publication::{Grade, Publication};
use crate::session::{RetainHandling, Subscription};

/// Numbers of connections from here on are given here, lower ones by the shell and by MQTT-SN.
const FIRST_CONNECTION: u64 = (1 << 63) + (1 << 62);
/// Datagrams that leave at once, and how long listeners then have to take them.
const MAX_BURST: usize = 64;
const BURST_PAUSE: Duration = Duration::from_millis(10);
/// Datagrams that are to leave again; more leave once.
const MAX_REPEATS: usize = 1024;
/// The last of our numbers, by which what comes back is known.
const MAX_OWN: u32 = 4096;

/// What one listener sends.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) session: SessionId,
    pub(super) connection: ConnectionId,
    /// The filters that the broker's rules let leave.
    filters: Vec<String>,
    next_number: u32,
    /// Numbers used so far, up to [`MAX_OWN`].
    used: u32,
}

impl Sending {
    /// Whether a number was used by this side.
    pub(super) fn has_sent(&self, number: u32) -> bool {
        (1..=self.used).contains(&self.next_number.wrapping_sub(number))
    }

    /// Whether a topic's values leave.
    pub(super) fn sends(&self, topic: &str) -> bool {
        self.filters.iter().any(|filter| matches(filter, topic))
    }

    fn take_number(&mut self) -> u32 {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        self.used = (self.used + 1).min(MAX_OWN);
        number
    }
}

/// A datagram that leaves again.
#[derive(Debug)]
struct Repeat {
    listener: u16,
    datagram: Bytes,
    left: u32,
    after: Duration,
}

/// Datagrams that leave again, by when.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    by_time: BTreeMap<(Duration, u64), Repeat>,
    last: u64,
}

impl Repeats {
    fn add(&mut self, now: Duration, repeat: Repeat) {
        if repeat.left > 0 && self.by_time.len() < MAX_REPEATS {
            self.last += 1;
            self.by_time.insert((now.saturating_add(repeat.after), self.last), repeat);
        }
    }

    fn next(&self) -> Option<Duration> {
        self.by_time.first_key_value().map(|((at, _), _)| *at)
    }

    fn pop(&mut self, now: Duration) -> Option<Repeat> {
        self.next().filter(|at| *at <= now)?;
        self.by_time.pop_first().map(|(_, repeat)| repeat)
    }
}

impl MqttUdp {
    /// Each listener that sends gets its session.
    pub(super) fn start(&mut self, context: &mut Context<'_>) {
        let listeners = self.settings.listeners.clone();
        for (listener, of) in listeners {
            if of.one_way || of.targets.is_empty() {
                continue;
            }
            let client = ClientKey {
                protocol: Protocol::MqttUdp,
                name: format!("listener-{listener}").into(),
            };
            let connection = ConnectionId(FIRST_CONNECTION + u64::from(listener));
            let opening = Opening {
                client,
                connection,
                user: None,
                clean: true,
                expiry: Duration::ZERO,
                window: 1,
                will: None,
            };
            let session = match context.core.open(context.now, opening) {
                Ok(opened) => opened.session,
                Err(refusal) => {
                    refuse(context, format!("listener {listener} sends nothing: {refusal}"));
                    continue;
                }
            };
            let mut filters = Vec::new();
            for exit in &of.exit {
                let subscription = Subscription {
                    no_local: true,
                    handling: RetainHandling::Never,
                    ..Subscription::new(exit.filter.clone(), Grade::AtMostOnce)
                };
                match context.core.subscribe(context.now, session, subscription) {
                    Ok(_) => filters.push(exit.filter.clone()),
                    Err(refusal) => {
                        refuse(context, format!("{} does not leave: {refusal}", exit.filter));
                    }
                }
            }
            let next_number = of.first_number;
            let sending = Sending { session, connection, filters, next_number, used: 0 };
            self.sending.insert(listener, sending);
        }
    }

    /// Sends what waits for a listener.
    pub(super) fn pump(&mut self, context: &mut Context<'_>, listener: u16) {
        if self.timers.is_set(Due::Pause(listener)) {
            return;
        }
        let Some(session) = self.sending.get(&listener).map(|sending| sending.session) else {
            return;
        };
        for _ in 0..MAX_BURST {
            match context.core.take(context.now, session) {
                Some(Next::Publish(delivery)) => {
                    self.send_value(context, listener, &delivery.publication);
                }
                // Nothing is sent at a grade that has numbers to be freed.
                Some(Next::Release(handle)) => {
                    context.core.finish(session, handle.get(), false);
                }
                None => return,
            }
        }
        let at = context.now.saturating_add(BURST_PAUSE);
        self.timers.set(Due::Pause(listener), Some(at));
    }

    /// Sends the value of a topic, and again as often as the operator says.
    pub(super) fn send_value(
        &mut self,
        context: &mut Context<'_>,
        listener: u16,
        publication: &Publication,
    ) {
        let packet = Packet::publish(&publication.topic, &publication.payload);
        let created_ms = publication.details.as_ref().and_then(|details| details.created_ms);
        let session = self.sending.get(&listener).map(|sending| sending.session);
        let Some(datagram) = self.send(context, listener, &packet, None, created_ms) else {
            let max = self.settings.listeners.get(&listener).map_or(0, |of| of.max_datagram_bytes);
            let detail = format_args!("a datagram takes {max} bytes");
            return tell_dropped_for(context.core, publication, session, Drop::TooLarge, detail);
        };
        if let Some(session) = session {
            let message_bytes = Some(datagram.len());
            let sent = Sent { protocol: "MQTT/UDP", message_bytes, ..Sent::default() };
            tell_sent(context.core, publication, session, sent);
        }
        let exits = self.settings.listeners.get(&listener).map(|of| &of.exit);
        let mut exits = exits.into_iter().flatten();
        if let Some(exit) = exits.find(|exit| matches(&exit.filter, &publication.topic)) {
            let (left, after) = (exit.repeats, exit.repeat_after);
            self.repeats.add(context.now, Repeat { listener, datagram, left, after });
            self.timers.set(Due::Repeat, self.repeats.next());
        }
    }

    /// Sends a packet to all targets under the next number; what was sent, `None` where that is
    /// longer than may leave, or nothing may.
    pub(super) fn send(
        &mut self,
        context: &mut Context<'_>,
        listener: u16,
        packet: &Packet<'_>,
        reply_to: Option<u32>,
        measured_at_ms: Option<u64>,
    ) -> Option<Bytes> {
        let of = self.settings.listeners.get(&listener)?;
        let sending = self.sending.get_mut(&listener)?;
        let number = Some(sending.take_number());
        let records = Records { number, reply_to, measured_at_ms, sent_at_ms: None };
        let mut datagram = Vec::new();
        packet.encode(&records, &of.signer(), &mut datagram).ok()?;
        if datagram.len() > of.max_datagram_bytes {
            return None;
        }
        let datagram = Bytes::from(datagram);
        for to in &of.targets {
            context.outputs.datagram(listener, *to, datagram.clone());
        }
        Some(datagram)
    }

    /// Sends again what is due.
    pub(super) fn repeat(&mut self, context: &mut Context<'_>) {
        while let Some(repeat) = self.repeats.pop(context.now) {
            let of = self.settings.listeners.get(&repeat.listener);
            for to in of.into_iter().flat_map(|of| &of.targets) {
                context.outputs.datagram(repeat.listener, *to, repeat.datagram.clone());
            }
            let left = repeat.left.saturating_sub(1);
            self.repeats.add(context.now, Repeat { left, ..repeat });
        }
        self.timers.set(Due::Repeat, self.repeats.next());
    }
}
