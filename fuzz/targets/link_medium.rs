//! Any traffic and any path losses on a shared channel: packets are conserved, nobody sends twice
//! at a time, nothing arrives before its time, and the channel comes to rest.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use link::Medium;
use link::medium::{
    Access, Csma, Destination, Input, Jamming, MediumConfig, Output, PortId, Reason, Tdma,
};

const PORTS: PortId = 4;

fuzz_target!(|data: &[u8]| {
    let Some((&[kind, rest, loss_db, power], data)) = data.split_first_chunk() else { return };
    let access = if kind & 1 == 0 {
        Access::Csma(Csma { window_min: 1 + u32::from(rest), ..Csma::bianchi() })
    } else {
        Access::Tdma(Tdma {
            slot: Duration::from_millis(2 + u64::from(rest)),
            guard: Duration::from_millis(1),
            owners: (0..PORTS).map(|port| vec![port, 0]).collect(),
            fragments: kind & 2 == 0,
            aggregates: kind & 4 == 0,
        })
    };
    let mut config = if kind & 8 == 0 {
        MediumConfig::wideband(access)
    } else {
        MediumConfig::narrowband(access)
    };
    config.jamming = vec![Jamming {
        from: Duration::from_millis(u64::from(rest)),
        until: Duration::from_millis(u64::from(rest) * 2 + 1),
        level_dbm: -f64::from(loss_db),
        ports: (kind & 16 == 0).then(|| vec![1]),
    }];
    let Ok(mut medium) = Medium::new(config, PORTS, u64::from(kind)) else { return };
    for from in 0..PORTS {
        for to in (0..PORTS).filter(|to| *to != from) {
            let loss_db = (power >> to & 1 == 0).then_some(f64::from(loss_db));
            medium.handle_input(Duration::ZERO, Input::Loss { from, to, loss_db });
        }
    }
    traffic(&mut medium, data);
});

/// Far above what a few hundred packets can cause.
const MAX_OUTPUTS: usize = 1_000_000;

fn traffic(medium: &mut Medium<Vec<u8>>, data: &[u8]) {
    let mut now = Duration::ZERO;
    let mut totals = Totals::default();
    for event in data.chunks_exact(3).take(100) {
        now += Duration::from_micros(u64::from(event[0]).pow(2));
        // Waking may be late: now and then a packet comes before the channel was looked after.
        if event[0] % 4 > 0 {
            totals.drain(medium, now);
        }
        let from = PortId::from(event[1] % 5);
        let to = match event[1] / 5 % 6 {
            0 => Destination::All,
            1 => Destination::Group([0, 2, 9].into()),
            to => Destination::One(PortId::from(to)),
        };
        let packet = vec![0_u8; usize::from(event[2]) * 8];
        medium.handle_input(now, Input::Packet { from, to, packet });
    }
    totals.drain(medium, Duration::MAX);
    let stats: Vec<_> = (0..PORTS).map(|port| medium.stats(port)).collect();
    assert!(stats.iter().all(|stats| stats.queued.packets == 0));
    let airtime: Duration = stats.iter().map(|stats| stats.airtime).sum();
    assert_eq!(airtime, totals.airtime);
}

#[derive(Default)]
struct Totals {
    airtime: Duration,
    ends: [Duration; PORTS as usize],
}

impl Totals {
    /// Polls until nothing is left before `until`.
    fn drain(&mut self, medium: &mut Medium<Vec<u8>>, until: Duration) {
        let mut at = Duration::ZERO;
        for _ in 0..MAX_OUTPUTS {
            match medium.poll_output() {
                Output::Deliver { from, to, .. } => assert!(from != to && to < PORTS),
                Output::Drop { reason, .. } => assert!(Reason::ALL.contains(&reason)),
                Output::Sent(record) => {
                    self.airtime += record.airtime;
                    let end = &mut self.ends[usize::from(record.from)];
                    assert!(record.start >= *end, "sends twice at a time");
                    *end = record.start + record.airtime;
                }
                Output::WakeAt(next) if next > until => return,
                Output::WakeAt(next) => {
                    assert!(next > at, "asks to be woken in the past");
                    at = next;
                    medium.handle_input(at, Input::Wake);
                }
                Output::Idle => return,
            }
        }
        panic!("the channel does not come to rest");
    }
}
