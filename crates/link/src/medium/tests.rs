use super::*;
use proptest::prelude::*;

const NO_LOSS_DB: f64 = 80.0;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn csma() -> MediumConfig {
    MediumConfig::wideband(Access::Csma(Csma::bianchi()))
}

/// Slots of 10 ms, one for each port, of which 1 ms is left free.
fn tdma(ports: PortId) -> MediumConfig {
    MediumConfig::wideband(Access::Tdma(Tdma {
        slot: ms(10),
        guard: ms(1),
        owners: (0..ports).map(|port| vec![port]).collect(),
        fragments: true,
        aggregates: true,
    }))
}

/// A channel on which all hear each other.
fn medium(config: MediumConfig, ports: PortId) -> Medium<Vec<u8>> {
    let mut medium = Medium::new(config, ports, 1).unwrap();
    for (from, to) in pairs(ports) {
        lose(&mut medium, from, to, Some(NO_LOSS_DB));
    }
    medium
}

fn pairs(ports: PortId) -> impl Iterator<Item = (PortId, PortId)> {
    (0..ports).flat_map(move |from| (0..ports).map(move |to| (from, to)))
}

fn lose(medium: &mut Medium<Vec<u8>>, from: PortId, to: PortId, loss_db: Option<f64>) {
    medium.handle_input(Duration::ZERO, Input::Loss { from, to, loss_db });
}

fn send(medium: &mut Medium<Vec<u8>>, at: Duration, from: PortId, to: Destination, bytes: usize) {
    let packet = vec![u8::try_from(from).unwrap(); bytes];
    medium.handle_input(at, Input::Packet { from, to, packet });
}

/// What came out.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    /// When, from whom and at whom.
    delivered: Vec<(Duration, PortId, PortId)>,
    dropped: Vec<(PortId, Reason)>,
    sent: Vec<Record>,
}

impl Seen {
    fn run(&mut self, medium: &mut Medium<Vec<u8>>, until: Duration) {
        loop {
            match medium.poll_output() {
                Output::Deliver { due, from, to, packet } => {
                    assert_eq!(packet.first().copied(), u8::try_from(from).ok());
                    self.delivered.push((due, from, to));
                }
                Output::Drop { from, reason, .. } => self.dropped.push((from, reason)),
                Output::Sent(record) => self.sent.push(*record),
                Output::WakeAt(at) if at <= until => medium.handle_input(at, Input::Wake),
                Output::WakeAt(_) | Output::Idle => return,
            }
        }
    }

    fn packets(&self) -> usize {
        self.sent.iter().filter(|one| one.content != Content::Acknowledgement).count()
    }
}

fn seen(medium: &mut Medium<Vec<u8>>) -> Seen {
    let mut seen = Seen::default();
    seen.run(medium, Duration::MAX);
    seen
}

#[test]
fn a_broadcast_is_in_the_air_once() {
    for config in [csma(), tdma(5)] {
        let mut medium = medium(config, 5);
        lose(&mut medium, 0, 4, None);
        send(&mut medium, ms(1), 0, Destination::All, 200);
        let seen = seen(&mut medium);
        assert_eq!(seen.sent.len(), 1);
        let record = &seen.sent[0];
        assert_eq!((record.received.as_slice(), record.missed.len()), (&[1, 2, 3][..], 0));
        // The lowest rate: 234 bytes at 380 kbit/s after 128 µs.
        assert_eq!((record.rate_bps, record.bytes), (380_000, 234));
        assert_eq!(record.airtime.as_micros(), 128 + 234 * 8 * 1_000 / 380);
        let due = record.start + record.airtime;
        assert_eq!(seen.delivered, [(due, 0, 1), (due, 0, 2), (due, 0, 3)]);
        assert_eq!(medium.stats(0).airtime, record.airtime);
        assert_eq!((medium.stats(1).delivered.packets, medium.stats(1).airtime), (1, ms(0)));
    }
}

#[test]
fn a_group_gets_what_is_for_it_and_nobody_else_does() {
    let mut medium = medium(csma(), 5);
    send(&mut medium, ms(1), 2, Destination::Group([4, 2, 1, 4, 9].into()), 100);
    let seen = seen(&mut medium);
    let to: Vec<PortId> = seen.delivered.iter().map(|(_, _, to)| *to).collect();
    assert_eq!((to.as_slice(), seen.sent.len()), (&[1, 4][..], 1));
}

#[test]
fn one_receiver_acknowledges_and_the_rate_follows_from_its_signal() {
    // 37 dBm less 134, 137, 141 dB over -110 dBm: 13, 10, 6 dB.
    for (loss_db, rate_bps) in [(134.0, 1_000_000), (137.0, 500_000), (141.0, 380_000)] {
        let mut medium = medium(csma(), 2);
        lose(&mut medium, 0, 1, Some(loss_db));
        lose(&mut medium, 1, 0, Some(loss_db));
        send(&mut medium, ms(1), 0, Destination::One(1), 100);
        let seen = seen(&mut medium);
        assert_eq!(seen.delivered.len(), 1);
        assert_eq!(seen.sent[0].rate_bps, rate_bps);
        let ack = &seen.sent[1];
        assert_eq!((ack.from, ack.content), (1, Content::Acknowledgement));
        let gap = ack.start - seen.sent[0].start - seen.sent[0].airtime;
        assert_eq!(gap, Duration::from_micros(28));
        assert!(seen.dropped.is_empty());
    }
}

#[test]
fn who_hears_nothing_is_tried_for_so_often_and_no_more() {
    let mut medium = medium(csma(), 2);
    lose(&mut medium, 0, 1, None);
    send(&mut medium, ms(0), 0, Destination::One(1), 100);
    let seen = seen(&mut medium);
    assert_eq!((seen.packets(), seen.dropped.as_slice()), (7, &[(0, Reason::Attempts)][..]));
    assert_eq!(seen.sent[6].missed, [(1, Reason::Weak)]);
    let Content::Packet { attempt, .. } = seen.sent[6].content else { panic!("{seen:?}") };
    assert_eq!(attempt, 7);
}

#[test]
fn a_packet_is_delivered_once_though_its_acknowledgement_is_lost() {
    let mut medium = medium(csma(), 2);
    lose(&mut medium, 1, 0, None);
    send(&mut medium, ms(0), 0, Destination::One(1), 100);
    let seen = seen(&mut medium);
    assert_eq!((seen.packets(), seen.delivered.len(), seen.dropped.len()), (7, 1, 0));
}

#[test]
fn who_sends_hears_nothing() {
    // Two who own the same slot, and a third who hears one of them much better.
    let mut config = tdma(3);
    let Access::Tdma(slots) = &mut config.access else { return };
    slots.owners = vec![vec![0, 1], vec![2]];
    let mut medium = medium(config, 3);
    lose(&mut medium, 0, 2, Some(60.0));
    send(&mut medium, ms(0), 0, Destination::All, 100);
    send(&mut medium, ms(0), 1, Destination::All, 100);
    let seen = seen(&mut medium);
    assert_eq!(seen.sent[0].received, [2], "20 dB above the other one");
    assert_eq!(seen.sent[0].missed, [(1, Reason::Sending)]);
    assert_eq!(seen.sent[1].missed, [(0, Reason::Sending), (2, Reason::Interference)]);
    assert_eq!(seen.dropped, [(1, Reason::Sending)]);
}

#[test]
fn jamming_loses_what_it_meets_where_it_is_heard() {
    let mut config = tdma(3);
    config.jamming =
        vec![Jamming { from: ms(0), until: ms(25), level_dbm: -40.0, ports: Some(vec![1]) }];
    let mut medium = medium(config, 3);
    send(&mut medium, ms(0), 0, Destination::All, 100);
    let mut seen = Seen::default();
    seen.run(&mut medium, ms(20));
    assert_eq!(seen.sent[0].received, [2]);
    assert_eq!(seen.sent[0].missed, [(1, Reason::Jamming)]);
    send(&mut medium, ms(26), 0, Destination::All, 100);
    seen.run(&mut medium, ms(60));
    assert_eq!(seen.sent[1].received, [1, 2]);
    // A carrier sense radio waits until the jammer is gone.
    let jamming = medium.config().jamming.clone();
    let mut listening = self::medium(MediumConfig { jamming, ..csma() }, 3);
    send(&mut listening, ms(5), 1, Destination::One(0), 100);
    let seen = self::seen(&mut listening);
    assert!(seen.sent[0].start > ms(25) && seen.delivered.len() == 1, "{seen:?}");
}

#[test]
fn power_carries_farther() {
    let mut medium = medium(tdma(2), 2);
    lose(&mut medium, 0, 1, Some(150.0));
    send(&mut medium, ms(0), 0, Destination::One(1), 100);
    let mut seen = Seen::default();
    seen.run(&mut medium, ms(15));
    assert_eq!(seen.dropped, [(0, Reason::Weak)]);
    medium.handle_input(ms(15), Input::Power { port: 0, power_dbm: 57.0 });
    assert!((medium.snr_db(0, 1) - 17.0).abs() < 1e-9);
    send(&mut medium, ms(15), 0, Destination::One(1), 100);
    seen.run(&mut medium, ms(60));
    assert_eq!((seen.delivered.len(), seen.sent[1].rate_bps), (1, 1_000_000));
}

#[test]
fn a_large_packet_is_cut_into_slots_and_small_ones_share_one() {
    let mut medium = medium(tdma(2), 2);
    // A slot has 9 ms: 1109 bytes at 1 Mbit/s after 128 µs, of which 34 are the header.
    send(&mut medium, ms(1), 0, Destination::One(1), 2_500);
    let seen = seen(&mut medium);
    let starts: Vec<Duration> = seen.sent.iter().map(|record| record.start).collect();
    assert_eq!(starts, [ms(20), ms(40), ms(60)]);
    let bytes: Vec<u32> = seen.sent.iter().map(|record| record.bytes - 34).collect();
    assert_eq!(bytes, [1_075, 1_075, 350]);
    assert_eq!(seen.delivered.len(), 1);
    assert!(seen.sent.iter().all(|record| record.airtime <= ms(9)));
    let mut small = self::medium(tdma(2), 2);
    for _ in 0..5 {
        send(&mut small, ms(1), 0, Destination::One(1), 300);
    }
    let seen = self::seen(&mut small);
    assert_eq!(seen.sent[2].start, seen.sent[1].start + seen.sent[1].airtime);
    assert!(seen.sent.iter().all(|record| record.start + record.airtime <= ms(49)));
    // Three whole ones and a piece of the fourth fit into the first slot.
    assert_eq!(seen.sent.iter().filter(|record| record.start < ms(30)).count(), 4);
    assert_eq!(seen.delivered.len(), 5);
}

#[test]
fn a_packet_that_fits_into_no_slot_is_dropped_where_none_is_cut() {
    let mut config = tdma(2);
    let Access::Tdma(slots) = &mut config.access else { return };
    slots.fragments = false;
    let mut medium = medium(config, 2);
    send(&mut medium, ms(1), 0, Destination::One(1), 2_500);
    send(&mut medium, ms(1), 0, Destination::One(1), 1_000);
    let seen = seen(&mut medium);
    assert_eq!((seen.dropped.as_slice(), seen.delivered.len()), (&[(0, Reason::Mtu)][..], 1));
}

#[test]
fn limits_drop_what_passes_them() {
    let config = MediumConfig { queue_packets: 1, mtu: Some(500), ..csma() };
    let mut medium = medium(config, 2);
    send(&mut medium, ms(0), 0, Destination::One(1), 501);
    for _ in 0..4 {
        send(&mut medium, ms(1), 0, Destination::One(1), 500);
    }
    send(&mut medium, ms(1), 0, Destination::One(0), 10);
    send(&mut medium, ms(1), 7, Destination::One(0), 10);
    let seen = seen(&mut medium);
    let reasons: Vec<Reason> = seen.dropped.iter().map(|(_, reason)| *reason).collect();
    let expected = [Reason::Mtu, Reason::Queue, Reason::Queue, Reason::Weak, Reason::Weak];
    assert_eq!((reasons.as_slice(), seen.delivered.len()), (&expected[..], 2));
}

#[test]
fn hidden_nodes_disturb_each_other_where_both_are_heard() {
    let lost = |hears: bool| {
        let mut medium = medium(csma(), 3);
        if !hears {
            lose(&mut medium, 0, 2, None);
            lose(&mut medium, 2, 0, None);
        }
        let mut seen = Seen::default();
        for turn in 0..400 {
            let at = ms(25 * turn);
            seen.run(&mut medium, at);
            send(&mut medium, at, 0, Destination::One(1), 1_000);
            send(&mut medium, at, 2, Destination::One(1), 1_000);
        }
        seen.run(&mut medium, Duration::MAX);
        let is_lost =
            |one: &&Record| one.missed.iter().any(|(_, why)| *why == Reason::Interference);
        let lost = seen.sent.iter().filter(is_lost).count();
        lost as f64 / seen.sent.len() as f64
    };
    let (hidden, heard) = (lost(false), lost(true));
    assert!(heard < 0.05, "{heard}");
    assert!(hidden > 0.3, "{hidden}");
}

#[test]
fn another_configuration_takes_over() {
    let mut medium = medium(tdma(2), 2);
    send(&mut medium, ms(1), 0, Destination::One(1), 100);
    assert_eq!(medium.poll_output(), Output::WakeAt(ms(20)));
    let mut config = tdma(2);
    let Access::Tdma(slots) = &mut config.access else { return };
    slots.owners = vec![vec![1], vec![0]];
    config.radio.rates.truncate(1);
    medium.configure(ms(2), config).unwrap();
    assert_eq!(medium.poll_output(), Output::WakeAt(ms(10)));
    let error = medium.configure(ms(3), csma()).unwrap_err().to_string();
    assert!(error.starts_with("access: cannot change"), "{error}");
    assert_eq!(seen(&mut medium).delivered.len(), 1);
}

/// Packets of any sizes at any times on any channel.
fn traffic() -> impl Strategy<Value = Vec<(u16, u16, u16, u16)>> {
    proptest::collection::vec((0..40_u16, 0..5_u16, 0..6_u16, 0..3_000_u16), 1..60)
}

fn play(config: MediumConfig, seed: u64, losses: &[u8], packets: &[(u16, u16, u16, u16)]) -> Seen {
    let mut medium = Medium::new(config, 4, seed).unwrap();
    for ((from, to), loss) in pairs(4).zip(losses) {
        let loss_db = (*loss > 0).then_some(f64::from(*loss));
        medium.handle_input(Duration::ZERO, Input::Loss { from, to, loss_db });
    }
    let (mut seen, mut now) = (Seen::default(), Duration::ZERO);
    for (gap, from, to, bytes) in packets {
        now += Duration::from_micros(u64::from(*gap).pow(3));
        // Waking may be late.
        if gap % 3 > 0 {
            seen.run(&mut medium, now);
        }
        let to = match to {
            0..4 => Destination::One(*to),
            4 => Destination::All,
            _ => Destination::Group([0, 2, 3].into()),
        };
        let byte = u8::try_from(*from).unwrap_or(0);
        let packet = vec![byte; usize::from(*bytes) + 1];
        medium.handle_input(now, Input::Packet { from: *from, to, packet });
    }
    seen.run(&mut medium, Duration::MAX);
    assert_eq!(medium.poll_output(), Output::Idle);
    for port in 0..4 {
        let own = seen.sent.iter().filter(|record| record.from == port);
        let airtime: Duration = own.map(|record| record.airtime).sum();
        assert_eq!(medium.stats(port).airtime, airtime);
        assert_eq!(medium.stats(port).queued.packets, 0);
    }
    seen
}

proptest! {
    /// Every packet is delivered to somebody or dropped, once; nobody sends twice at a time; and
    /// the same seed gives the same again.
    #[test]
    fn packets_are_conserved(
        losses in proptest::collection::vec(0..160_u8, 16),
        packets in traffic(),
        seed in any::<u64>(),
        is_tdma in any::<bool>(),
    ) {
        let config = || if is_tdma { tdma(4) } else { csma() };
        let seen = play(config(), seed, &losses, &packets);
        prop_assert_eq!(&seen, &play(config(), seed, &losses, &packets));
        let mut numbers: Vec<(PortId, u64)> = seen.sent.iter().filter_map(|record| {
            match record.content {
                Content::Packet { number, .. } => Some((record.from, number)),
                Content::Acknowledgement => None,
            }
        }).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let never_sent = seen.dropped.iter().filter(|(_, why)| {
            matches!(why, Reason::Queue | Reason::Mtu)
        }).count();
        let refused = packets.iter().filter(|(_, from, to, _)| *from > 3 || from == to).count();
        prop_assert_eq!(numbers.len() + never_sent + refused, packets.len());
        let mut ends = [Duration::ZERO; 4];
        let mut records = seen.sent.clone();
        records.sort_by_key(|record| record.number);
        for record in records {
            prop_assert!(record.start >= ends[usize::from(record.from)], "{:?}", record);
            ends[usize::from(record.from)] = record.start + record.airtime;
        }
    }
}

/// IEEE 802.11-2020 §10.3.4.2: who finds the channel busy before it was free for long enough backs
/// off, also where it seemed free between a packet and its acknowledgement.
#[test]
fn packets_of_a_gap_do_not_meet_for_certain() {
    let starts = |seed: u64| {
        let mut medium = Medium::new(csma(), 4, seed).unwrap();
        for (from, to) in pairs(4) {
            lose(&mut medium, from, to, Some(NO_LOSS_DB));
        }
        send(&mut medium, ms(1), 0, Destination::One(1), 100);
        let mut seen = Seen::default();
        // In the gap before the acknowledgement: 134 bytes at 1 Mbit/s after 128 µs.
        let gap = ms(1) + Duration::from_micros(128 + 134 * 8 + 10);
        seen.run(&mut medium, gap);
        assert_eq!(seen.sent.len(), 1, "{seen:?}");
        send(&mut medium, gap, 2, Destination::One(1), 100);
        send(&mut medium, gap, 3, Destination::One(1), 100);
        seen.run(&mut medium, Duration::MAX);
        let of = |port| seen.sent.iter().find(|one| one.from == port).map(|one| one.start);
        (of(2).unwrap(), of(3).unwrap())
    };
    let apart = (0..20).map(starts).filter(|(one, other)| one != other).count();
    assert!(apart >= 17, "{apart} of 20");
}

#[test]
fn nobody_sends_in_the_slots_of_others_without_a_guard() {
    let mut config = tdma(2);
    let Access::Tdma(tdma) = &mut config.access else { panic!() };
    tdma.guard = Duration::ZERO;
    let mut medium = medium(config, 2);
    // The first part ends with its slot.
    send(&mut medium, ms(0), 0, Destination::One(1), 1500);
    send(&mut medium, ms(0), 1, Destination::One(0), 100);
    let seen = seen(&mut medium);
    assert_eq!(seen.delivered.len(), 2);
    for record in &seen.sent {
        let slot = record.start.as_millis() / 10;
        assert_eq!(slot % 2, u128::from(record.from), "{record:?}");
    }
}
