//! A radio channel that many share: one frequency, half duplex, heard by whoever is near enough.
//!
//! Each port has a queue and a radio. When a port may send, its packet is in the air once, for as
//! long as its bytes take at the rate, whoever it is for: one port, a group or all. Each of those
//! receives it or not by its signal over noise, interference and jamming, which a curve of the
//! rate turns into a probability; a port that sends hears nothing. The power that arrives is the
//! sender's less the path loss of the pair; a pair without a path loss does not hear each other.
//! For one receiver the fastest rate is chosen that its signal is good for, for several the lowest.
//!
//! Who may send is decided by a schedule ([`Tdma`]) or by listening ([`Csma`]), in which ports that
//! do not hear each other, but are both heard by a third, disturb each other there: hidden nodes.
//!
//! Time and chance are arguments, and the drain rule is that of [`crate::Channel`]: after each
//! input [`Medium::poll_output`] is called until it says [`Output::WakeAt`] or [`Output::Idle`].

mod air;
mod config;
mod csma;
mod reception;
mod record;
mod station;
mod tdma;

pub use config::{
    Access, Csma, Jamming, MAX_HEADER_BYTES, MAX_JAMMING_WINDOWS, MAX_PART, MAX_RATES, MAX_SLOTS,
    MAX_WINDOW_SLOTS, MediumConfig, Radio, Rate, Tdma,
};
pub use reception::{Curve, MAX_CURVE_POINTS};
pub use record::{Content, PortStats, Reason, Record};

use crate::queue::Numbered;
use crate::random::Dice;
use crate::{Error, Packet};
use air::{Air, Transmission, jamming_mw, milliwatts, next_jamming_edge, sense_mw};
use station::{Job, Outbound, Station};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tdma::Schedule;

/// A port's number: from 0.
pub type PortId = u16;

/// Most ports of a channel.
pub const MAX_PORTS: PortId = 1_024;

/// Most reports ([`Output::Sent`], [`Output::Drop`]) kept until the caller takes them. A caller
/// that obeys the drain rule never gets near; beyond it new ones are forgotten, though counted.
pub const MAX_REPORTS: usize = 131_072;

/// Whom a packet is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// One port.
    One(PortId),
    /// Some ports; the sender and those that there are not are left out.
    Group(Arc<[PortId]>),
    /// All that hear it.
    All,
}

/// What a channel is told.
#[derive(Clone, Debug)]
pub enum Input<P> {
    /// A packet to be sent.
    Packet {
        /// The sender.
        from: PortId,
        /// Whom it is for.
        to: Destination,
        /// The packet.
        packet: P,
    },
    /// The time that [`Output::WakeAt`] asked for has come.
    Wake,
    /// What is sent from now on from one port to another loses so much.
    Loss {
        /// The sender.
        from: PortId,
        /// The receiver.
        to: PortId,
        /// In dB; none where they do not hear each other, as at the start.
        loss_db: Option<f64>,
    },
    /// A radio's output power from now on.
    Power {
        /// Whose.
        port: PortId,
        /// In dBm.
        power_dbm: f64,
    },
}

/// What a channel says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<P> {
    /// A packet has arrived whole at one of those that it is for.
    Deliver {
        /// The exact instant, not after the time of the last input.
        due: Duration,
        /// Who sent it.
        from: PortId,
        /// Who received it.
        to: PortId,
        /// The packet.
        packet: P,
    },
    /// A packet will arrive at nobody.
    Drop {
        /// Who sent it.
        from: PortId,
        /// The packet, for its buffer.
        packet: P,
        /// Why; of several receivers the first one's.
        reason: Reason,
    },
    /// A transmission has ended.
    Sent(Box<Record>),
    /// Nothing more now: hand in [`Input::Wake`] at this time or after.
    WakeAt(Duration),
    /// Nothing more until the next input.
    Idle,
}

/// A shared channel. The module's page says what happens in it.
pub struct Medium<P> {
    config: MediumConfig,
    schedule: Option<Schedule>,
    dice: Dice,
    now: Duration,
    /// The time of the last event.
    clock: Duration,
    stations: Vec<Station<P>>,
    /// Path loss of each pair in dB, by sender; infinite where they do not hear each other.
    losses_db: Vec<f64>,
    air: Air,
    transmissions: u64,
    acks: Vec<Ack>,
    outputs: VecDeque<Output<P>>,
    reports: usize,
}

/// An acknowledgement that will be sent.
struct Ack {
    at: Duration,
    from: usize,
    to: usize,
}

/// Who of those that a transmission is meant for received it.
struct Fates {
    received: Vec<PortId>,
    missed: Vec<(PortId, Reason)>,
}

impl<P: Packet> Medium<P> {
    /// A channel of so many ports at the caller's epoch, none of which hears another yet.
    /// Different seeds decide differently.
    ///
    /// # Errors
    /// Those of [`MediumConfig::check`].
    pub fn new(config: MediumConfig, ports: PortId, seed: u64) -> Result<Self, Error> {
        config.check(ports)?;
        let ports = usize::from(ports);
        let mut medium = Self {
            schedule: schedule(&config, ports),
            dice: Dice::for_seed(seed),
            now: Duration::ZERO,
            clock: Duration::ZERO,
            stations: (0..ports).map(|_| Station::new(config.radio.power_dbm)).collect(),
            losses_db: vec![f64::INFINITY; ports * ports],
            air: Air::default(),
            transmissions: 0,
            acks: Vec::new(),
            outputs: VecDeque::new(),
            reports: 0,
            config,
        };
        medium.sense();
        Ok(medium)
    }

    /// From `now` on the channel is like this. What is in the air stays as it is, what is queued is
    /// kept, and so is each radio's power. Then [`Medium::poll_output`] is to be drained.
    ///
    /// # Errors
    /// Those of [`MediumConfig::check`], and [`Error::Medium`] for another kind of access: that
    /// takes another channel. Then nothing changes.
    pub fn configure(&mut self, now: Duration, config: MediumConfig) -> Result<(), Error> {
        let ports = self.stations.len();
        config.check(PortId::try_from(ports).unwrap_or(PortId::MAX))?;
        if matches!(config.access, Access::Tdma(_)) != self.schedule.is_some() {
            let what = "cannot change while the channel is in use: make another one".to_owned();
            return Err(Error::Medium { field: "access".to_owned(), what });
        }
        self.now = self.now.max(now);
        self.advance();
        self.schedule = schedule(&config, ports);
        self.config = config;
        self.clock = self.now;
        for port in 0..ports {
            if self.stations[port].slot_at.is_some() {
                self.wait_for_slot(port, self.now);
            }
        }
        self.sense();
        self.advance();
        Ok(())
    }

    /// Tells the channel what happened at `now`, which never runs backwards (an earlier time
    /// counts as the latest so far). Then [`Medium::poll_output`] is to be drained. What concerns
    /// a port that there is not is dropped with [`Reason::Weak`] or ignored.
    pub fn handle_input(&mut self, now: Duration, input: Input<P>) {
        self.now = self.now.max(now);
        self.advance();
        match input {
            Input::Packet { from, to, packet } => {
                self.admit(from, to, packet);
                self.advance();
            }
            Input::Wake => {}
            Input::Loss { from, to, loss_db } => {
                let ports = self.stations.len();
                let (from, to) = (usize::from(from), usize::from(to));
                if from < ports && to < ports {
                    let loss_db = loss_db.filter(|loss_db| !loss_db.is_nan());
                    self.losses_db[from * ports + to] = loss_db.unwrap_or(f64::INFINITY);
                }
            }
            Input::Power { port, power_dbm } => {
                if let Some(station) = self.stations.get_mut(usize::from(port)) {
                    station.power_dbm = power_dbm.clamp(-100.0, 100.0);
                }
            }
        }
    }

    /// What there is to do, to be called until it says [`Output::WakeAt`] or [`Output::Idle`].
    pub fn poll_output(&mut self) -> Output<P> {
        if let Some(output) = self.outputs.pop_front() {
            if !matches!(output, Output::Deliver { .. }) {
                self.reports -= 1;
            }
            return output;
        }
        match self.next_at() {
            Some(at) => Output::WakeAt(at),
            None => Output::Idle,
        }
    }

    /// What the channel is like now.
    #[must_use]
    pub fn config(&self) -> &MediumConfig {
        &self.config
    }

    /// What a port has done and holds, as of the last input; nothing for a port that there is not.
    #[must_use]
    pub fn stats(&self, port: PortId) -> PortStats {
        self.stations.get(usize::from(port)).map_or(PortStats::default(), |station| PortStats {
            queued: station.queue.now(),
            queue_peak: station.queue.peak(),
            ..station.stats
        })
    }

    /// The signal of one port over the noise floor at another, in dB; negative infinity where
    /// there is none.
    #[must_use]
    pub fn snr_db(&self, from: PortId, to: PortId) -> f64 {
        let (from, to, ports) = (usize::from(from), usize::from(to), self.stations.len());
        if from >= ports || to >= ports {
            return f64::NEG_INFINITY;
        }
        let power_dbm = self.stations[from].power_dbm;
        power_dbm - self.losses_db[from * ports + to] - self.config.radio.noise_dbm()
    }

    fn admit(&mut self, from: PortId, to: Destination, packet: P) {
        let port = usize::from(from);
        let is_known = |other: &PortId| usize::from(*other) < self.stations.len() && *other != from;
        let is_for_somebody = match &to {
            Destination::One(other) => is_known(other),
            Destination::Group(others) => others.iter().any(is_known),
            Destination::All => true,
        };
        let (packets, bytes) = (self.config.queue_packets, self.config.queue_bytes);
        let is_too_long =
            self.config.mtu.is_some_and(|mtu| packet.len_bytes() as u64 > u64::from(mtu));
        let Some(station) = self.stations.get_mut(port).filter(|_| is_for_somebody) else {
            return self.report(Output::Drop { from, packet, reason: Reason::Weak });
        };
        let number = station.stats.offered.packets;
        station.stats.offered.add(&packet);
        if is_too_long {
            return self.drop(port, packet, Reason::Mtu);
        }
        let entry = Numbered { number, spared: false, packet: Outbound { to, packet } };
        if let Err(entry) = station.queue.push(entry, packets, bytes) {
            return self.drop(port, entry.packet.packet, Reason::Queue);
        }
        match &self.config.access {
            Access::Tdma(_) => {
                if station.slot_at.is_none() && !self.air.is_sending(port) {
                    self.wait_for_slot(port, self.now);
                }
            }
            Access::Csma(csma) => {
                let contention = &mut station.contention;
                let is_at_rest = station.job.is_none() && !contention.is_waiting();
                if is_at_rest && contention.is_free() {
                    contention.at_once(self.now);
                } else if is_at_rest {
                    contention.draw(csma, &self.dice, port, self.now);
                }
            }
        }
    }

    /// Everything that happens up to now.
    fn advance(&mut self) {
        loop {
            let edge = next_jamming_edge(&self.config, self.clock);
            let next = self.next_at().into_iter().chain(edge).min();
            let Some(at) = next.filter(|at| *at <= self.now) else { break };
            self.clock = self.clock.max(at);
            self.end_transmissions();
            self.send_acks();
            self.send_packets();
            self.sense();
        }
    }

    /// The time of the next event that matters to anybody.
    fn next_at(&self) -> Option<Duration> {
        let acks = self.acks.iter().map(|ack| ack.at);
        let starts = self.stations.iter().filter_map(|station| self.starts_at(station));
        let is_waiting = self.stations.iter().any(|station| station.contention.is_waiting());
        let edge = next_jamming_edge(&self.config, self.clock).filter(|_| is_waiting);
        acks.chain(starts).chain(self.air.next_end()).chain(edge).min()
    }

    /// When a port sends next, as it looks now.
    fn starts_at(&self, station: &Station<P>) -> Option<Duration> {
        match &self.config.access {
            Access::Tdma(_) => station.slot_at,
            Access::Csma(_) if station.is_awaiting => None,
            Access::Csma(csma) => station.contention.fires_at(csma),
        }
    }

    fn end_transmissions(&mut self) {
        let ended = self.air.take_ended(self.clock);
        let fates: Vec<Fates> = (0..ended.len()).map(|index| self.fates(&ended, index)).collect();
        for (transmission, fates) in ended.iter().zip(fates) {
            self.settle(transmission, fates);
        }
        self.air.keep(ended);
    }

    fn fates(&self, ended: &[Transmission], index: usize) -> Fates {
        let mut fates = Fates { received: Vec::new(), missed: Vec::new() };
        for &to in &ended[index].to {
            let port = PortId::try_from(to).unwrap_or(PortId::MAX);
            match self.air.receives(&self.config, &self.dice, ended, index, to) {
                Ok(()) => fates.received.push(port),
                Err(reason) => fates.missed.push((port, reason)),
            }
        }
        fates
    }

    /// What follows from a transmission's end.
    fn settle(&mut self, transmission: &Transmission, fates: Fates) {
        let Transmission { number, from, content, start, end, rate_bps, bytes, .. } = *transmission;
        let airtime = end - start;
        let stats = &mut self.stations[from].stats;
        stats.transmissions += 1;
        stats.airtime = stats.airtime.saturating_add(airtime);
        let Fates { received, missed } = fates;
        match content {
            Content::Acknowledgement => self.acknowledged(transmission.to[0], !received.is_empty()),
            Content::Packet { is_last, .. } if self.schedule.is_some() => {
                self.fragment_sent(from, is_last, &received, &missed);
            }
            Content::Packet { .. } => self.packet_sent(from, &received, &missed),
        }
        let from = PortId::try_from(from).unwrap_or(PortId::MAX);
        let record =
            Record { number, from, content, start, airtime, bytes, rate_bps, received, missed };
        self.report(Output::Sent(Box::new(record)));
    }

    /// A fragment has been sent in a slot.
    fn fragment_sent(
        &mut self,
        port: usize,
        is_last: bool,
        received: &[PortId],
        missed: &[(PortId, Reason)],
    ) {
        let station = &mut self.stations[port];
        if let Some(job) = &mut station.job {
            job.missed.extend(missed.iter().copied());
        }
        if is_last && let Some(job) = station.job.take() {
            let whole: Vec<PortId> =
                received.iter().copied().filter(|to| !job.missed.contains_key(to)).collect();
            self.deliver(port, &job, &whole);
            if whole.is_empty() {
                let reason = job.missed.values().next().copied().unwrap_or(Reason::Weak);
                self.drop(port, job.packet, reason);
            }
        }
        if self.stations[port].has_work() {
            let aggregates = matches!(&self.config.access, Access::Tdma(tdma) if tdma.aggregates);
            let is_own = |schedule: &Schedule| schedule.owns(port, self.clock);
            if aggregates && self.schedule.as_ref().is_some_and(is_own) {
                self.stations[port].slot_at = Some(self.clock);
            } else {
                self.wait_for_slot(port, self.clock);
            }
        }
    }

    /// A packet has been sent by carrier sense.
    fn packet_sent(&mut self, port: usize, received: &[PortId], missed: &[(PortId, Reason)]) {
        let Some(mut job) = self.stations[port].job.take() else { return };
        if !job.is_delivered {
            self.deliver(port, &job, received);
            job.is_delivered = !received.is_empty();
        }
        let sifs = match &self.config.access {
            Access::Csma(csma) => csma.sifs,
            Access::Tdma(_) => Duration::ZERO,
        };
        match (&job.to, received) {
            (Destination::One(_), [to]) => {
                let at = self.clock.saturating_add(sifs);
                self.acks.push(Ack { at, from: usize::from(*to), to: port });
                self.stations[port].is_awaiting = true;
                self.stations[port].job = Some(job);
            }
            (Destination::One(_), _) => {
                self.stations[port].job = Some(job);
                self.retry(port);
            }
            _ => {
                if !job.is_delivered {
                    let reason = missed.first().map_or(Reason::Weak, |(_, reason)| *reason);
                    self.drop(port, job.packet, reason);
                }
                self.succeed(port);
            }
        }
    }

    /// An acknowledgement for a port has come, or was lost.
    fn acknowledged(&mut self, port: usize, has_come: bool) {
        self.stations[port].is_awaiting = false;
        if has_come {
            self.stations[port].job = None;
            self.succeed(port);
        } else {
            self.retry(port);
        }
    }

    fn retry(&mut self, port: usize) {
        let Access::Csma(csma) = &self.config.access else { return };
        let station = &mut self.stations[port];
        if station.job.as_ref().is_none_or(|job| job.attempts < csma.attempts) {
            station.contention.retry();
            station.contention.draw(csma, &self.dice, port, self.clock);
            return;
        }
        let job = station.job.take();
        if let Some(job) = job.filter(|job| !job.is_delivered) {
            self.drop(port, job.packet, Reason::Attempts);
        }
        self.succeed(port);
    }

    /// What was under way is over: the next packet, if there is one, waits for its turn.
    fn succeed(&mut self, port: usize) {
        let Access::Csma(csma) = &self.config.access else { return };
        let contention = &mut self.stations[port].contention;
        contention.succeed();
        contention.draw(csma, &self.dice, port, self.clock);
    }

    fn send_acks(&mut self) {
        let Access::Csma(csma) = &self.config.access else { return };
        let ack_bytes = csma.ack_bytes;
        let clock = self.clock;
        for Ack { from, to, .. } in
            self.acks.extract_if(.., |ack| ack.at <= clock).collect::<Vec<_>>()
        {
            if self.air.is_sending(from) {
                self.acknowledged(to, false);
            } else {
                let rate = self.config.radio.rates.len() - 1;
                self.start(from, vec![to], Content::Acknowledgement, rate, ack_bytes);
            }
        }
    }

    fn send_packets(&mut self) {
        let is_due =
            |station: &Station<P>| self.starts_at(station).is_some_and(|at| at <= self.clock);
        let due: Vec<usize> =
            (0..self.stations.len()).filter(|port| is_due(&self.stations[*port])).collect();
        for port in due {
            if self.schedule.is_some() {
                self.send_in_slot(port);
            } else {
                self.send_packet(port);
            }
        }
    }

    /// A port's turn by carrier sense.
    fn send_packet(&mut self, port: usize) {
        let header_bytes = self.config.radio.header_bytes;
        let station = &mut self.stations[port];
        station.contention.stop();
        let Some(job) = station.job() else { return };
        job.attempts += 1;
        let content = Content::Packet {
            number: job.number,
            attempt: job.attempts,
            fragment: 0,
            is_last: true,
        };
        let bytes = length(&job.packet).saturating_add(header_bytes);
        let to = job.to.clone();
        let rate = self.rate(port, &to);
        let to = self.receivers(port, &to);
        self.start(port, to, content, rate, bytes);
    }

    /// A port's turn in its slot: sends what fits into it, or waits for the next one.
    fn send_in_slot(&mut self, port: usize) {
        let (Some(schedule), Access::Tdma(tdma)) = (&self.schedule, &self.config.access) else {
            return;
        };
        let fragments = tdma.fragments;
        let left = schedule.end(self.clock).saturating_sub(self.clock);
        let longest = schedule.longest();
        self.stations[port].slot_at = None;
        let Some(to) = self.stations[port].job().map(|job| job.to.clone()) else { return };
        let rate = self.rate(port, &to);
        let radio = &self.config.radio;
        let rate_bps = radio.rates[rate].rate_bps;
        let Some(job) = self.stations[port].job.as_mut() else { return };
        let rest = length(&job.packet).saturating_sub(job.sent_bytes);
        let whole = radio.airtime(rate_bps, u64::from(rest) + u64::from(radio.header_bytes));
        let is_last = whole <= left;
        let fitting = if is_last { rest } else { room(radio, rate_bps, left) };
        if is_last || fragments && fitting > 0 {
            let content = Content::Packet {
                number: job.number,
                attempt: 1,
                fragment: job.fragments,
                is_last,
            };
            job.fragments += 1;
            job.sent_bytes = job.sent_bytes.saturating_add(fitting);
            let bytes = fitting.saturating_add(radio.header_bytes);
            let to = self.receivers(port, &to);
            self.start(port, to, content, rate, bytes);
        } else if !fragments && whole > longest {
            if let Some(job) = self.stations[port].job.take() {
                self.drop(port, job.packet, Reason::Mtu);
            }
            self.stations[port].slot_at = self.stations[port].has_work().then_some(self.clock);
        } else {
            self.wait_for_slot(port, self.clock.saturating_add(Duration::from_nanos(1)));
        }
    }

    fn wait_for_slot(&mut self, port: usize, from: Duration) {
        let start = self.schedule.as_ref().map(|schedule| schedule.next_start(port, from));
        self.stations[port].slot_at = start;
    }

    /// The rate for a packet: for one receiver by its signal, for several the lowest.
    fn rate(&self, port: usize, to: &Destination) -> usize {
        let radio = &self.config.radio;
        let from = PortId::try_from(port).unwrap_or(PortId::MAX);
        match to {
            Destination::One(to) => radio.rate_for(self.snr_db(from, *to)),
            _ => radio.rates.len() - 1,
        }
    }

    fn receivers(&self, port: usize, to: &Destination) -> Vec<usize> {
        let ports = self.stations.len();
        match to {
            Destination::One(to) => vec![usize::from(*to)],
            Destination::Group(group) => {
                let mut group: Vec<usize> = group.iter().map(|to| usize::from(*to)).collect();
                group.sort_unstable();
                group.dedup();
                group.retain(|to| *to < ports && *to != port);
                group
            }
            Destination::All => {
                let hears = |to: &usize| self.losses_db[port * ports + to].is_finite();
                (0..ports).filter(|to| *to != port).filter(hears).collect()
            }
        }
    }

    fn start(
        &mut self,
        from: usize,
        to: Vec<usize>,
        content: Content,
        rate_index: usize,
        bytes: u32,
    ) {
        let ports = self.stations.len();
        let power_dbm = self.stations[from].power_dbm;
        let losses_db = &self.losses_db[from * ports..][..ports];
        // 10^(-infinity) is the 0 of those who do not hear it.
        let powers_mw = losses_db.iter().map(|loss_db| milliwatts(power_dbm - loss_db)).collect();
        let radio = &self.config.radio;
        let rate_bps = radio.rates[rate_index].rate_bps;
        let airtime = radio.airtime(rate_bps, u64::from(bytes));
        let start = self.clock;
        self.air.start(Transmission {
            number: self.transmissions,
            from,
            to,
            content,
            start,
            end: start.saturating_add(airtime),
            rate_index,
            rate_bps,
            bytes,
            powers_mw,
        });
        self.transmissions += 1;
    }

    /// Each port listens.
    fn sense(&mut self) {
        let Access::Csma(csma) = &self.config.access else { return };
        let threshold_mw = sense_mw(&self.config.radio);
        for (port, station) in self.stations.iter_mut().enumerate() {
            let heard_mw = self.air.power_mw(port) + jamming_mw(&self.config, port, self.clock);
            let is_busy = self.air.is_sending(port) || heard_mw >= threshold_mw;
            if station.contention.hear(is_busy, csma, self.clock) {
                station.contention.draw(csma, &self.dice, port, self.clock);
            }
        }
    }

    fn deliver(&mut self, port: usize, job: &Job<P>, received: &[PortId]) {
        let from = PortId::try_from(port).unwrap_or(PortId::MAX);
        for &to in received {
            if let Some(station) = self.stations.get_mut(usize::from(to)) {
                station.stats.delivered.add(&job.packet);
            }
            let packet = job.packet.duplicate();
            self.outputs.push_back(Output::Deliver { due: self.clock, from, to, packet });
        }
    }

    fn drop(&mut self, port: usize, packet: P, reason: Reason) {
        self.stations[port].stats.dropped.add(&packet);
        let from = PortId::try_from(port).unwrap_or(PortId::MAX);
        self.report(Output::Drop { from, packet, reason });
    }

    fn report(&mut self, output: Output<P>) {
        if self.reports < MAX_REPORTS {
            self.reports += 1;
            self.outputs.push_back(output);
        }
    }
}

fn schedule(config: &MediumConfig, ports: usize) -> Option<Schedule> {
    match &config.access {
        Access::Tdma(tdma) => Some(Schedule::new(tdma, ports)),
        Access::Csma(_) => None,
    }
}

fn length<P: Packet>(packet: &P) -> u32 {
    u32::try_from(packet.len_bytes()).unwrap_or(u32::MAX)
}

/// Bytes of a packet that can be sent in a time, besides preamble and header.
fn room(radio: &Radio, rate_bps: u64, time: Duration) -> u32 {
    let nanos = time.saturating_sub(radio.preamble).as_nanos();
    let bytes = nanos * u128::from(rate_bps) / 8_000_000_000;
    let bytes = bytes.saturating_sub(u128::from(radio.header_bytes));
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
