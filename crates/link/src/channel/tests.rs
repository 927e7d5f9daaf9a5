use super::*;
use crate::{BurstLoss, Distribution, MAX_IN_FLIGHT_PACKETS, Outages, Trace};

type Delivered = (Duration, Vec<u8>);

fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

/// 8 kbit/s: a byte takes a millisecond.
fn slow() -> ChannelConfig {
    ChannelConfig { rate_bps: Some(8_000), ..ChannelConfig::default() }
}

fn channel(config: ChannelConfig) -> Channel<Vec<u8>> {
    Channel::new(config, 1, Direction::Ab)
}

/// `name` in the first byte, `len_bytes` in all.
fn packet(name: u8, len_bytes: usize) -> Input<Vec<u8>> {
    let mut bytes = vec![0; len_bytes];
    bytes[0] = name;
    Input::Packet(bytes)
}

/// Drains the outputs of the last input.
fn drain(channel: &mut Channel<Vec<u8>>) -> (Vec<Delivered>, Vec<DropReason>, Option<Duration>) {
    let (mut delivered, mut dropped) = (Vec::new(), Vec::new());
    loop {
        match channel.poll_output() {
            Output::Deliver { due, packet } => delivered.push((due, packet)),
            Output::Drop { reason, .. } => dropped.push(reason),
            Output::WakeAt(at) => return (delivered, dropped, Some(at)),
            Output::Idle => return (delivered, dropped, None),
        }
    }
}

/// Wakes the channel whenever it asks until nothing is left: names and due times.
fn run_dry(channel: &mut Channel<Vec<u8>>) -> Vec<(u8, Duration)> {
    let mut names = Vec::new();
    loop {
        let (delivered, _, wake) = drain(channel);
        names.extend(delivered.into_iter().map(|(due, packet)| (packet[0], due)));
        match wake {
            Some(at) => channel.handle_input(at, Input::Wake),
            None => return names,
        }
    }
}

#[test]
fn the_packet_being_sent_counts_against_neither_limit() {
    let in_packets = ChannelConfig { queue_packets: 2, ..slow() };
    let in_bytes = ChannelConfig { queue_bytes: 200, ..slow() };
    for config in [in_packets, in_bytes] {
        let mut channel = channel(config);
        for name in 1..=4 {
            channel.handle_input(ms(0), packet(name, 100));
        }
        let (_, dropped, wake) = drain(&mut channel);
        assert_eq!((dropped, wake), (vec![DropReason::Queue], Some(ms(100))));
        assert_eq!(channel.stats().queued, Count { packets: 2, bytes: 200 });
        assert_eq!(channel.stats().in_service, Count { packets: 1, bytes: 100 });
        assert_eq!(run_dry(&mut channel), [(1, ms(100)), (2, ms(200)), (3, ms(300))]);
        assert_eq!(channel.stats().queue_peak, Count { packets: 2, bytes: 200 });
    }
}

#[test]
fn without_a_queue_only_a_free_transmitter_takes_a_packet() {
    let mut channel = channel(ChannelConfig { queue_packets: 0, ..slow() });
    channel.handle_input(ms(0), packet(1, 100));
    channel.handle_input(ms(99), packet(2, 100));
    channel.handle_input(ms(100), packet(3, 100));
    assert_eq!(run_dry(&mut channel), [(1, ms(100)), (3, ms(200))]);
    assert_eq!(channel.stats().dropped(DropReason::Queue).packets, 1);
}

#[test]
fn a_lost_packet_has_used_its_airtime_unless_loss_comes_first() {
    // With p = r = 1 every second packet is lost.
    let alternate = Some(BurstLoss { p: 1.0, r: 1.0, bad: 1.0, good: 0.0 });
    for (loss_first, due_of_third) in [(false, 300), (true, 200)] {
        let mut channel = channel(ChannelConfig { burst_loss: alternate, loss_first, ..slow() });
        for name in 1..=4 {
            channel.handle_input(ms(0), packet(name, 100));
        }
        assert_eq!(run_dry(&mut channel), [(1, ms(100)), (3, ms(due_of_third))]);
        assert_eq!(channel.stats().dropped(DropReason::Loss).packets, 2);
    }
}

#[test]
fn loss_is_decided_once_when_its_place_changes() {
    let every_packet = ChannelConfig { loss: 1.0, ..slow() };
    let mut channel = channel(ChannelConfig { loss: 0.0, loss_first: true, ..slow() });
    channel.handle_input(ms(0), packet(1, 100));
    channel.handle_input(ms(0), packet(2, 100));
    channel.handle_input(ms(10), Input::Configure(Box::new(every_packet)));
    channel.handle_input(ms(20), packet(3, 100));
    assert_eq!(run_dry(&mut channel), [(1, ms(100)), (2, ms(200))]);
}

#[test]
fn what_is_sent_during_an_outage_is_lost_and_uses_airtime() {
    let outages = Outages::parse("150 ms..250 ms").unwrap();
    let mut channel = channel(ChannelConfig { outages, delay: ms(100), ..slow() });
    for name in 1..=4 {
        channel.handle_input(ms(0), packet(name, 100));
    }
    // 1 travels while the link is out; 2 and 3 are being sent; 4 follows them.
    assert_eq!(run_dry(&mut channel), [(1, ms(200)), (4, ms(500))]);
    assert_eq!(channel.stats().dropped(DropReason::Outage).packets, 2);
}

#[test]
fn packets_beyond_the_mtu_are_dropped() {
    let mut channel = channel(ChannelConfig { mtu: Some(100), ..slow() });
    channel.handle_input(ms(0), packet(1, 101));
    channel.handle_input(ms(0), packet(2, 100));
    assert_eq!(run_dry(&mut channel), [(2, ms(100))]);
    assert_eq!(channel.stats().dropped(DropReason::Mtu), Count { packets: 1, bytes: 101 });
    assert_eq!(channel.stats().offered.packets, 2);
}

#[test]
fn a_copy_uses_no_airtime_and_follows_its_original() {
    let mut channel = channel(ChannelConfig { duplicate: 1.0, delay: ms(5), ..slow() });
    channel.handle_input(ms(0), packet(1, 100));
    channel.handle_input(ms(0), packet(2, 100));
    let expected = [(1, ms(105)), (1, ms(105)), (2, ms(205)), (2, ms(205))];
    assert_eq!(run_dry(&mut channel), expected);
    assert_eq!(channel.stats().duplicated, Count { packets: 2, bytes: 200 });
    assert_eq!(channel.stats().delivered, Count { packets: 4, bytes: 400 });
}

#[test]
fn corruption_flips_one_bit() {
    let mut channel = channel(ChannelConfig { corrupt: 1.0, ..ChannelConfig::default() });
    for _ in 0..100 {
        channel.handle_input(ms(0), Input::Packet(vec![0; 50]));
    }
    channel.handle_input(ms(0), Input::Packet(Vec::new()));
    let (delivered, _, _) = drain(&mut channel);
    let ones = |packet: &[u8]| packet.iter().map(|byte| byte.count_ones()).sum::<u32>();
    assert_eq!(delivered.len(), 101);
    assert!(delivered[..100].iter().all(|(_, packet)| ones(packet) == 1));
    assert_eq!(channel.stats().corrupted, 100, "nothing to flip in an empty packet");
}

#[test]
fn reordered_packets_skip_the_delay() {
    let mut channel = channel(ChannelConfig { reorder: 1.0, delay: ms(900), ..slow() });
    channel.handle_input(ms(0), packet(1, 100));
    assert_eq!(run_dry(&mut channel), [(1, ms(100))]);
    assert_eq!(channel.stats().reordered, 1);
}

#[test]
fn jitter_changes_the_order_only_where_that_is_asked_for() {
    for (reorder, in_order) in [(0.0, true), (1e-9, false)] {
        for distribution in Distribution::ALL {
            let config = ChannelConfig {
                delay: ms(100),
                jitter: ms(50),
                distribution,
                reorder,
                ..ChannelConfig::default()
            };
            let mut channel = channel(config);
            for name in 0..100 {
                channel.handle_input(ms(u64::from(name)), packet(name, 100));
            }
            let names: Vec<u8> = run_dry(&mut channel).iter().map(|(name, _)| *name).collect();
            assert_eq!(names.is_sorted(), in_order);
            assert_eq!(names.len(), 100);
        }
    }
}

#[test]
fn a_live_change_keeps_the_queue_and_rates_what_has_not_begun() {
    let mut channel = channel(ChannelConfig { delay: ms(1_000), ..slow() });
    for name in 1..=4 {
        channel.handle_input(ms(0), packet(name, 100));
    }
    // 1 travels, 2 is half sent. The queue now holds more than the new limit.
    let faster = ChannelConfig {
        rate_bps: Some(80_000),
        delay: ms(10),
        queue_packets: 1,
        ..ChannelConfig::default()
    };
    channel.handle_input(ms(150), Input::Configure(Box::new(faster.clone())));
    channel.handle_input(ms(160), packet(5, 100));
    assert_eq!(channel.config(), &faster);
    // 2 ends as it began; 3 and 4 take a tenth; none overtakes 1.
    let kept = ms(1_100);
    assert_eq!(run_dry(&mut channel), [(1, kept), (2, kept), (3, kept), (4, kept)]);
    assert_eq!(channel.stats().dropped(DropReason::Queue).packets, 1, "5 found it full");
    channel.handle_input(ms(2_000), packet(6, 100));
    assert_eq!(run_dry(&mut channel), [(6, ms(2_020))]);
}

#[test]
fn a_live_change_of_the_trace_starts_at_its_place_in_time() {
    let trace = |text| Some(Trace::parse("t", text).unwrap());
    let every_1 = ChannelConfig { trace: trace("1"), ..ChannelConfig::default() };
    let every_7 = ChannelConfig { trace: trace("7"), ..ChannelConfig::default() };
    let mut channel = channel(every_1);
    for name in 1..=4 {
        channel.handle_input(ms(1), packet(name, 1_500));
    }
    // 1 and 2 have left, 3 is being sent.
    channel.handle_input(ms(2), Input::Configure(Box::new(every_7)));
    assert_eq!(run_dry(&mut channel), [(1, ms(1)), (2, ms(2)), (3, ms(3)), (4, ms(7))]);
}

#[test]
fn due_times_are_exact_however_late_the_caller_wakes() {
    let mut channel = channel(ChannelConfig { delay: ms(7), ..slow() });
    channel.handle_input(ms(0), packet(1, 100));
    channel.handle_input(ms(30), packet(2, 100));
    channel.handle_input(ms(50_000), Input::Wake);
    assert_eq!(run_dry(&mut channel), [(1, ms(107)), (2, ms(207))]);
}

#[test]
fn time_never_runs_backwards() {
    // What skips the delay is due as it is sent, whatever was due before.
    let mut channel = channel(ChannelConfig { reorder: 1.0, ..ChannelConfig::default() });
    channel.handle_input(ms(500), packet(1, 100));
    channel.handle_input(ms(100), packet(2, 100));
    channel.handle_input(ms(0), Input::Wake);
    assert_eq!(run_dry(&mut channel), [(1, ms(500)), (2, ms(500))]);
}

#[test]
fn the_far_end_of_time_is_survived() {
    let mut channel = channel(ChannelConfig { delay: Duration::MAX, ..slow() });
    channel.handle_input(Duration::MAX, packet(1, 100));
    channel.handle_input(Duration::MAX, packet(2, 100));
    assert_eq!(run_dry(&mut channel).len(), 2);
}

#[test]
fn packets_beyond_what_can_travel_overflow() {
    let mut channel = channel(ChannelConfig { delay: ms(1), ..ChannelConfig::default() });
    for _ in 0..=MAX_IN_FLIGHT_PACKETS {
        channel.handle_input(ms(0), Input::Packet(Vec::new()));
    }
    let (_, dropped, wake) = drain(&mut channel);
    assert_eq!((dropped, wake), (vec![DropReason::Overflow], Some(ms(1))));
    assert_eq!(channel.stats().in_flight.packets, MAX_IN_FLIGHT_PACKETS);
}

#[test]
fn reports_of_drops_are_bounded_and_their_count_is_not() {
    let mut channel = channel(ChannelConfig { loss: 1.0, ..ChannelConfig::default() });
    let packets = MAX_DROP_REPORTS + 10;
    for _ in 0..packets {
        channel.handle_input(ms(0), Input::Packet(Vec::new()));
    }
    let (_, dropped, _) = drain(&mut channel);
    assert_eq!(dropped.len(), MAX_DROP_REPORTS);
    assert_eq!(channel.stats().dropped(DropReason::Loss).packets, packets as u64);
}
