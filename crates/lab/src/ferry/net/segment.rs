//! What carries the frames of a net: a medium that many ports share, or a plain link of two.

use std::collections::BTreeMap;
use std::time::Duration;

use link::medium::{Content, Destination, Input, MediumConfig, Output, PortId, Reason, Record};
use link::{Channel, ChannelConfig, Direction, LinkConfig, Medium, Packet};

use super::meta::{Cast, PacketMeta};
use super::record::AirEntry;
use super::{Charge, SegmentPlan};
use crate::error::{Error, Result};
use crate::ferry::frame::Frame;

/// Why a packet gets nowhere that is for nobody here.
const UNKNOWN: &str = "unknown";
/// Packets of a port that are known beside those in its queue: those that are being sent.
const MAX_SENDING: usize = 64;

/// What a segment says.
pub(super) enum Event {
    /// A frame has arrived at a socket.
    Deliver { due: Duration, socket: usize, frame: Frame },
    /// A packet gets nowhere.
    Dropped(&'static str),
    /// A transmission has ended.
    Air(AirEntry),
}

/// One segment.
pub(super) enum Segment {
    Shared(Box<Shared>),
    Plain(Box<Plain>),
}

impl Segment {
    /// The `place`th of a net, at the net's beginning.
    pub(super) fn new(plan: &SegmentPlan, place: usize, seed: u64) -> Result<Self> {
        match plan {
            SegmentPlan::Medium { config, sockets, .. } => {
                Shared::new(config, sockets, place, seed).map(|one| Self::Shared(Box::new(one)))
            }
            SegmentPlan::Link { config, sockets } => {
                Ok(Self::Plain(Box::new(Plain::new(config, *sockets, place, seed))))
            }
        }
    }

    /// A frame comes from a port.
    pub(super) fn offer(
        &mut self,
        now: Duration,
        port: PortId,
        (frame, meta): (Frame, PacketMeta),
        events: &mut Vec<Event>,
    ) -> Option<Duration> {
        match self {
            Self::Shared(shared) => shared.offer(now, port, (frame, meta), events),
            Self::Plain(plain) => plain.offer(now, port, (frame, meta), events),
        }
    }

    /// The time that was asked for has come.
    pub(super) fn wake(&mut self, now: Duration, events: &mut Vec<Event>) -> Option<Duration> {
        match self {
            Self::Shared(shared) => {
                shared.medium.handle_input(now, Input::Wake);
                shared.drain(events)
            }
            Self::Plain(plain) => plain.wake(now, events),
        }
    }

    /// Changes a path loss; a plain link has none.
    pub(super) fn lose(
        &mut self,
        now: Duration,
        (from, to, loss_db): (PortId, PortId, Option<f64>),
        events: &mut Vec<Event>,
    ) -> Option<Duration> {
        match self {
            Self::Shared(shared) => {
                shared.medium.handle_input(now, Input::Loss { from, to, loss_db });
                shared.drain(events)
            }
            Self::Plain(plain) => plain.wake(now, events),
        }
    }

    /// Changes a radio's power; a plain link has none.
    pub(super) fn power(
        &mut self,
        now: Duration,
        (port, power_dbm): (PortId, f64),
        events: &mut Vec<Event>,
    ) -> Option<Duration> {
        match self {
            Self::Shared(shared) => {
                shared.medium.handle_input(now, Input::Power { port, power_dbm });
                shared.drain(events)
            }
            Self::Plain(plain) => plain.wake(now, events),
        }
    }
}

/// Airtime that is charged on a segment, and the number of its ports.
pub(super) fn charge(plan: &SegmentPlan) -> Option<(Charge, PortId)> {
    match plan {
        SegmentPlan::Medium { sockets, charge: Some(charge), .. } => {
            Some((*charge, PortId::try_from(sockets.len()).unwrap_or(PortId::MAX)))
        }
        _ => None,
    }
}

/// A medium, and what is known of the packets that its ports send.
pub(super) struct Shared {
    place: usize,
    medium: Medium<Frame>,
    sockets: Vec<usize>,
    sent: Vec<Sent>,
}

/// The latest packets of a port that were queued, by number.
#[derive(Default)]
struct Sent {
    metas: BTreeMap<u64, PacketMeta>,
}

impl Sent {
    fn meta(&self, number: u64) -> Option<PacketMeta> {
        self.metas.get(&number).copied()
    }

    fn push(&mut self, number: u64, meta: PacketMeta, most: usize) {
        self.metas.insert(number, meta);
        while self.metas.len() > most {
            self.metas.pop_first();
        }
    }
}

impl Shared {
    fn new(config: &MediumConfig, sockets: &[usize], place: usize, seed: u64) -> Result<Self> {
        let ports = PortId::try_from(sockets.len()).unwrap_or(PortId::MAX);
        let medium = Medium::new(config.clone(), ports, seed)
            .map_err(|error| Error::Caller(error.to_string()))?;
        let sent = sockets.iter().map(|_| Sent::default()).collect();
        Ok(Self { place, medium, sockets: sockets.to_vec(), sent })
    }

    fn offer(
        &mut self,
        now: Duration,
        port: PortId,
        (frame, meta): (Frame, PacketMeta),
        events: &mut Vec<Event>,
    ) -> Option<Duration> {
        let to = match meta.cast {
            Cast::One(to) if usize::from(to) < self.sockets.len() && to != port => {
                Destination::One(to)
            }
            Cast::Group | Cast::All => Destination::All,
            Cast::One(_) | Cast::Unknown => {
                events.push(Event::Dropped(UNKNOWN));
                return self.drain(events);
            }
        };
        let most = self.medium.config().queue_packets as usize + MAX_SENDING;
        // Up to now first: then what is dropped with it is this packet.
        self.medium.handle_input(now, Input::Wake);
        let before = self.medium.stats(port);
        self.medium.handle_input(now, Input::Packet { from: port, to, packet: frame });
        let after = self.medium.stats(port);
        let is_queued = after.offered.packets > before.offered.packets
            && after.dropped.packets == before.dropped.packets;
        if let Some(sent) = self.sent.get_mut(usize::from(port)).filter(|_| is_queued) {
            sent.push(before.offered.packets, meta, most);
        }
        self.drain(events)
    }

    fn drain(&mut self, events: &mut Vec<Event>) -> Option<Duration> {
        loop {
            match self.medium.poll_output() {
                Output::Deliver { due, to, packet, .. } => {
                    if let Some(socket) = self.sockets.get(usize::from(to))
                        && !packet.is_filler()
                    {
                        events.push(Event::Deliver { due, socket: *socket, frame: packet });
                    }
                }
                Output::Drop { reason, packet, .. } => {
                    if !packet.is_filler() {
                        events.push(Event::Dropped(reason.name()));
                    }
                }
                Output::Sent(record) => events.push(Event::Air(self.entry(*record))),
                Output::WakeAt(at) => return Some(at),
                Output::Idle => return None,
            }
        }
    }

    fn entry(&self, record: Record) -> AirEntry {
        let (meta, attempt, fragment) = match record.content {
            Content::Packet { number, attempt, fragment, .. } => {
                let sent = self.sent.get(usize::from(record.from));
                (sent.and_then(|sent| sent.meta(number)), attempt, fragment)
            }
            Content::Acknowledgement => (None, 0, 0),
        };
        let missed = record.missed.into_iter().map(|(port, reason)| (port, Reason::name(reason)));
        AirEntry {
            segment: self.place,
            from: record.from,
            meta,
            start: record.start,
            airtime: record.airtime,
            bytes: record.bytes,
            rate_bps: record.rate_bps,
            attempt,
            fragment,
            received: record.received,
            missed: missed.collect(),
        }
    }
}

/// A plain link: port 0 at one end, port 1 at the other.
pub(super) struct Plain {
    place: usize,
    channels: [Channel<Frame>; 2],
    configs: [ChannelConfig; 2],
    sockets: [usize; 2],
}

impl Plain {
    fn new(config: &LinkConfig, sockets: [usize; 2], place: usize, seed: u64) -> Self {
        let configs = [config.ab.clone(), config.ba.clone()];
        let [ab, ba] = configs.clone();
        let channels =
            [Channel::new(ab, seed, Direction::Ab), Channel::new(ba, seed, Direction::Ba)];
        Self { place, channels, configs, sockets }
    }

    fn offer(
        &mut self,
        now: Duration,
        port: PortId,
        (frame, meta): (Frame, PacketMeta),
        events: &mut Vec<Event>,
    ) -> Option<Duration> {
        let is_known = match meta.cast {
            Cast::One(to) => to == port ^ 1,
            Cast::Group | Cast::All => true,
            Cast::Unknown => false,
        };
        if is_known {
            self.channels[usize::from(port) & 1].handle_input(now, link::Input::Packet(frame));
        } else {
            events.push(Event::Dropped(UNKNOWN));
        }
        self.wake(now, events)
    }

    fn wake(&mut self, now: Duration, events: &mut Vec<Event>) -> Option<Duration> {
        let mut wake_at: Option<Duration> = None;
        for side in 0..2 {
            self.channels[side].handle_input(now, link::Input::Wake);
            let next = self.drain(now, side, events);
            wake_at = wake_at.into_iter().chain(next).min();
        }
        wake_at
    }

    fn drain(&mut self, now: Duration, side: usize, events: &mut Vec<Event>) -> Option<Duration> {
        loop {
            match self.channels[side].poll_output() {
                link::Output::Deliver { due, packet } => {
                    events.push(Event::Air(self.entry(side, due, &packet, None)));
                    events.push(Event::Deliver {
                        due,
                        socket: self.sockets[side ^ 1],
                        frame: packet,
                    });
                }
                link::Output::Drop { packet, reason } => {
                    events.push(Event::Air(self.entry(side, now, &packet, Some(reason.name()))));
                    events.push(Event::Dropped(reason.name()));
                }
                link::Output::WakeAt(at) => return Some(at),
                link::Output::Idle => return None,
            }
        }
    }

    /// A packet of a plain link as a transmission that ends when it arrives or is lost.
    fn entry(
        &self,
        side: usize,
        end: Duration,
        packet: &Frame,
        lost: Option<&'static str>,
    ) -> AirEntry {
        let bytes = u32::try_from(packet.len_bytes()).unwrap_or(u32::MAX);
        let rate_bps = self.configs[side].rate_bps.unwrap_or_default();
        let nanos = (u64::from(bytes) * 8_000_000_000).checked_div(rate_bps).unwrap_or_default();
        let airtime = Duration::from_nanos(nanos);
        let [from, to] = if side == 0 { [0, 1] } else { [1, 0] };
        let place = u16::try_from(self.place).unwrap_or(u16::MAX);
        AirEntry {
            segment: self.place,
            from,
            meta: PacketMeta::of(packet, place),
            start: end.saturating_sub(airtime),
            airtime,
            bytes,
            rate_bps,
            attempt: 1,
            fragment: 0,
            received: if lost.is_none() { vec![to] } else { Vec::new() },
            missed: lost.map(|reason| (to, reason)).into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests;
