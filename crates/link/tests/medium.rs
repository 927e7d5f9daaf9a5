//! Shared channels against theory.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests may fail them")]

use longwire_link::Packet;
use longwire_link::medium::{
    Access, Content, Csma, Destination, Input, Medium, MediumConfig, Output, PortId, Record, Tdma,
};
use std::time::Duration;

/// A packet without content.
#[derive(Clone, Debug)]
struct Blank(usize);

impl Packet for Blank {
    fn len_bytes(&self) -> usize {
        self.0
    }

    fn flip_bit(&mut self, _: usize) {}

    fn duplicate(&self) -> Self {
        self.clone()
    }
}

/// A channel on which all hear each other well, at the highest rate alone.
fn medium(access: Access, ports: PortId, seed: u64) -> Medium<Blank> {
    let mut config = MediumConfig::wideband(access);
    config.radio.rates.truncate(1);
    let mut medium = Medium::new(config, ports, seed).unwrap();
    for from in 0..ports {
        for to in (0..ports).filter(|to| *to != from) {
            medium.handle_input(Duration::ZERO, Input::Loss { from, to, loss_db: Some(80.0) });
        }
    }
    medium
}

fn send(medium: &mut Medium<Blank>, at: Duration, from: PortId, to: PortId, bytes: usize) {
    let to = Destination::One(to);
    medium.handle_input(at, Input::Packet { from, to, packet: Blank(bytes) });
}

/// Takes records until the channel wants to be woken after `until`; answers at what time.
fn records(medium: &mut Medium<Blank>, until: Duration, records: &mut Vec<Record>) {
    loop {
        match medium.poll_output() {
            Output::Sent(record) => records.push(*record),
            Output::WakeAt(at) if at <= until => medium.handle_input(at, Input::Wake),
            Output::WakeAt(_) | Output::Idle => return,
            _ => {}
        }
    }
}

/// Share of the time in which ports that always have something to send carry its bits.
fn saturation(csma: &Csma, ports: PortId, payload_bytes: usize, seconds: u64, seed: u64) -> f64 {
    let mut medium = medium(Access::Csma(csma.clone()), ports, seed);
    for port in 0..ports {
        for _ in 0..3 {
            send(&mut medium, Duration::ZERO, port, (port + 1) % ports, payload_bytes);
        }
    }
    let (mut delivered, mut now) = (0_u64, Duration::ZERO);
    let end = Duration::from_secs(seconds);
    while now < end {
        match medium.poll_output() {
            Output::Deliver { due, from, to, .. } => {
                delivered += 1;
                send(&mut medium, due, from, to, payload_bytes);
            }
            Output::Drop { from, reason, .. } => panic!("port {from} gives up: {reason:?}"),
            Output::Sent(_) => {}
            Output::WakeAt(at) => {
                now = at;
                medium.handle_input(at, Input::Wake);
            }
            Output::Idle => panic!("a saturated channel is idle"),
        }
    }
    let bits = delivered * payload_bytes as u64 * 8;
    bits as f64 / 1e6 / end.as_secs_f64()
}

/// Bianchi, Performance analysis of the IEEE 802.11 distributed coordination function (2000):
/// equations 7, 9 and 13 with basic access, propagation delay left out.
fn bianchi(csma: &Csma, ports: PortId, payload_bytes: usize) -> f64 {
    let stages = f64::from((csma.window_max / csma.window_min).ilog2());
    let (window, others) = (f64::from(csma.window_min), i32::from(ports) - 1);
    let tau_at = |p: f64| {
        2.0 * (1.0 - 2.0 * p)
            / ((1.0 - 2.0 * p) * (window + 1.0) + p * window * (1.0 - (2.0 * p).powf(stages)))
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let p = f64::midpoint(low, high);
        let p = if (p - 0.5_f64).abs() < 1e-12 { p + 1e-9 } else { p };
        if 1.0 - (1.0 - tau_at(p)).powi(others) > p { low = p } else { high = p }
    }
    let tau = tau_at(low);
    let is_busy = 1.0 - (1.0 - tau).powi(others + 1);
    let succeeds = f64::from(ports) * tau * (1.0 - tau).powi(others) / is_busy;
    let us = |part: Duration| part.as_secs_f64() * 1e6;
    let payload_us = payload_bytes as f64 * 8.0;
    let sent_us = 128.0 + 34.0 * 8.0 + payload_us;
    let ack_us = 128.0 + f64::from(csma.ack_bytes) * 8.0;
    let success_us = sent_us + us(csma.sifs) + ack_us + us(csma.difs);
    let collision_us = sent_us + us(csma.difs);
    is_busy * succeeds * payload_us
        / ((1.0 - is_busy) * us(csma.slot)
            + is_busy * succeeds * success_us
            + is_busy * (1.0 - succeeds) * collision_us)
}

#[test]
fn csma_saturates_as_bianchi_says() {
    // Windows of 32 to 256 and 8184 bits. As many attempts as it takes, as the model has it.
    let csma = Csma { attempts: 1_000_000, ..Csma::bianchi() };
    let expected = [(2, 0.8473), (5, 0.8097), (10, 0.7532), (20, 0.6788), (50, 0.5529)];
    for (ports, reference) in expected {
        let theory = bianchi(&csma, ports, 1_023);
        assert!((theory / reference - 1.0).abs() < 0.001, "{ports}: {theory}, {reference}");
        let found = saturation(&csma, ports, 1_023, 200, 7);
        let off = found / reference - 1.0;
        println!("{ports} ports: {found:.4}, Bianchi {reference:.4}, {:+.2} %", off * 100.0);
        assert!(off.abs() < 0.02, "{ports}: {found}");
    }
}

/// Uniform in (0, 1], by SplitMix64.
struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}

const SLOT: Duration = Duration::from_millis(10);

fn tdma(ports: PortId) -> Access {
    Access::Tdma(Tdma {
        slot: SLOT,
        guard: Duration::from_millis(1),
        owners: (0..ports).map(|port| vec![port]).collect(),
        fragments: false,
        aggregates: false,
    })
}

/// Mean time in slots from a packet's arrival to the beginning of its slot.
fn mean_wait(ports: PortId, load: f64, packets: usize) -> f64 {
    let mut medium = medium(tdma(ports), ports, 1);
    let mut uniform = Uniform(1);
    // All ports together are one Poisson process, of which each arrival is of any of them.
    let mean_gap_s = SLOT.as_secs_f64() / load;
    let mut arrivals: Vec<Vec<Duration>> = vec![Vec::new(); usize::from(ports)];
    let (mut seen, mut now_s) = (Vec::new(), 0.0);
    for _ in 0..packets {
        now_s -= mean_gap_s * uniform.next().ln();
        let now = Duration::from_secs_f64(now_s);
        let port = (uniform.next() * f64::from(ports)).ceil();
        let port = (0..ports).find(|one| f64::from(*one) + 1.0 >= port).unwrap();
        records(&mut medium, now, &mut seen);
        send(&mut medium, now, port, (port + 1) % ports, 500);
        arrivals[usize::from(port)].push(now);
    }
    records(&mut medium, Duration::MAX, &mut seen);
    assert_eq!(seen.len(), packets);
    let waits = seen.iter().map(|record| {
        let Content::Packet { number, .. } = record.content else { panic!("{record:?}") };
        let arrived = arrivals[usize::from(record.from)][usize::try_from(number).unwrap()];
        (record.start - arrived).as_secs_f64() / SLOT.as_secs_f64()
    });
    waits.sum::<f64>() / packets as f64
}

#[test]
fn tdma_waits_as_theory_says() {
    // Bertsekas and Gallager, Data networks §3.5: m / (2 (1 - ρ)) slots.
    for (load, packets) in [(0.1, 100_000), (0.5, 200_000), (0.8, 600_000)] {
        let expected = 10.0 / (2.0 * (1.0 - load));
        let found = mean_wait(10, load, packets);
        let off = found / expected - 1.0;
        println!("load {load}: {found:.3} slots, theory {expected:.3}, {:+.2} %", off * 100.0);
        assert!(off.abs() < 0.02, "{load}: {found}");
    }
}

#[test]
fn access_to_an_idle_frame_takes_any_part_of_it() {
    let ports = 10;
    let mut medium = medium(tdma(ports), ports, 1);
    let mut uniform = Uniform(99);
    let (mut seen, mut waits) = (Vec::new(), Vec::new());
    for round in 0..100_000_u32 {
        let now = SLOT * 10 * (2 * round) + (SLOT * 10).mul_f64(uniform.next());
        send(&mut medium, now, 3, 4, 100);
        records(&mut medium, Duration::MAX, &mut seen);
        let wait = seen.pop().unwrap().start - now;
        waits.push(wait.as_secs_f64() / SLOT.as_secs_f64());
    }
    waits.sort_by(f64::total_cmp);
    let count = waits.len() as f64;
    let mean = waits.iter().sum::<f64>() / count;
    let off = |(index, wait): (usize, &f64)| {
        let (below, upto) = (index as f64 / count, (index as f64 + 1.0) / count);
        (wait / 10.0 - below).abs().max((wait / 10.0 - upto).abs())
    };
    let distance = waits.iter().enumerate().map(off).fold(0.0, f64::max);
    println!("mean {mean:.3} slots of 5, distance from uniform {distance:.4}");
    assert!((mean / 5.0 - 1.0).abs() < 0.02);
    // Kolmogorov and Smirnov at 0.1 %: 1.95 / √n.
    assert!(distance < 1.95 / count.sqrt(), "{distance}");
}

/// Not asked for by the model: what carrier sense is worth. Ports out of each other's range do
/// worse than ports that hear each other, at the same load and to the same receiver.
#[test]
fn carrier_sense_by_path_loss_makes_hidden_nodes() {
    let carried = |hidden: bool| {
        let mut medium = medium(Access::Csma(Csma::bianchi()), 3, 5);
        for (from, to) in [(0, 2), (2, 0)] {
            let loss_db = (!hidden).then_some(80.0);
            medium.handle_input(Duration::ZERO, Input::Loss { from, to, loss_db });
        }
        for port in [0, 2] {
            for _ in 0..900 {
                send(&mut medium, Duration::ZERO, port, 1, 1_000);
            }
        }
        let mut seen = Vec::new();
        records(&mut medium, Duration::from_secs(10), &mut seen);
        let received = |one: &&Record| one.from != 1 && one.received == [1];
        seen.iter().filter(received).count()
    };
    let (hidden, heard) = (carried(true), carried(false));
    println!("received in 10 s: {heard} where both hear each other, {hidden} where they do not");
    assert!(hidden * 2 < heard, "{hidden} and {heard}");
}
