use super::*;

fn path(rate_bps: f64, rtt_s: f64, loss: f64) -> Path {
    Path { loss, most_window: 44.0, ..crate::tests::path(rate_bps, rtt_s) }
}

#[test]
fn without_loss_a_round_trip_doubles_the_window() {
    let seconds = |bytes| NoLoss.seconds(&path(1e8, 0.1, 0.0), bytes);
    assert!((seconds(1.0) - 0.1).abs() < 1e-9, "one packet is one round trip, not none");
    assert!((seconds(1448.0 * 3.0) - 0.2).abs() < 1e-9);
    assert!((seconds(1448.0 * 4.0) - 0.3).abs() < 1e-9);
    // 2^6 + 44 − 1 = 107 packets in slow start, then 44 a round trip.
    assert!((seconds(1448.0 * 107.0) - 0.7).abs() < 1e-9);
    assert!((seconds(1448.0 * 108.0) - 0.8).abs() < 1e-9, "no jump but the next round");
    assert!((seconds(1448.0 * (107.0 + 88.0)) - 0.9).abs() < 1e-9);
}

#[test]
fn equation_4_in_packets_a_second_with_its_reciprocal() {
    // By hand: RTT·sqrt(2·2·0.01/3) = 0.0115470; 3·sqrt(3·2·0.01/8) = 0.2598; times p·(1+32p²)
    // = 0.0100320; T0 0.2: 0.000521... → 1/(0.0115470+0.00052127) = 82.87
    let found = Pftk::packets_per_second(&path(1e8, 0.1, 0.01));
    assert!((found - 82.87).abs() < 0.05, "{found}");
    let found = Pftk::packets_per_second(&path(1e8, 0.1, 0.0));
    assert!((found - 440.0).abs() < 1e-6, "by the window alone: {found}");
    let seconds = Pftk.seconds(&path(1e8, 0.1, 0.01), 1_448_000.0);
    assert!((seconds - 1000.0 / 82.87).abs() < 0.05, "{seconds}");
}

#[test]
fn the_rate_bounds_what_the_published_models_promise() {
    let t1 = path(1.5e6, 0.09, 0.0);
    let megabyte = 1e6;
    assert!(NoLoss.seconds(&t1, megabyte) < 2.0, "over 4 Mbit/s out of a line of 1.5");
    let ours = RateAware.seconds(&t1, megabyte);
    assert!((5.4..6.2).contains(&ours), "{ours}");
}

#[test]
fn one_packet_over_satcom_takes_the_delay_and_its_serialization() {
    let satcom = path(250_000.0, 1.1, 0.0);
    let seconds = RateAware.seconds(&satcom, 600.0);
    assert!((seconds - (0.55 + 8.0 * 652.0 / 250_000.0)).abs() < 1e-9, "{seconds}");
    let queued = Path { backlog_bytes: 25_000.0, ..satcom };
    assert!((RateAware.seconds(&queued, 600.0) - seconds - 0.8).abs() < 1e-9);
}

#[test]
fn slow_start_counts_where_the_pipe_is_long() {
    let wifi = path(2e6, 0.2, 0.0);
    let twenty = RateAware.seconds(&wifi, 20_000.0);
    // 14 packets: 10, then a wait for the first acknowledgements, then 4.
    let wait = 0.2 - 10.0 * 8.0 * 1500.0 / 2e6;
    let sent = 8.0 * (20_000.0 + 14.0 * 52.0) / 2e6;
    assert!((twenty - (wait + sent + 0.1)).abs() < 1e-9, "{twenty}");
    let warm = Path { start_window: 40.0, ..wifi };
    assert!((RateAware.seconds(&warm, 20_000.0) - (sent + 0.1)).abs() < 1e-9);
}

#[test]
fn more_bytes_never_take_less_time_and_absurd_paths_stay_finite() {
    let bad = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300];
    let mut paths = vec![path(2e6, 0.2, 0.05), path(9600.0, 0.2, 0.01), path(1e9, 0.0003, 0.0)];
    for value in bad {
        paths.push(path(value, 0.2, 0.0).bounded());
        paths.push(path(2e6, value, 0.0).bounded());
        paths.push(path(2e6, 0.2, value).bounded());
        paths.push(Path { segment_bytes: value, ..path(2e6, 0.2, 0.1) }.bounded());
        paths.push(Path { start_window: value, most_window: value, ..paths[0] }.bounded());
        paths.push(Path { backlog_bytes: value, timeout_s: value, ..paths[0] }.bounded());
    }
    for path in paths {
        let models: [&dyn NetworkModel; 3] = [&NoLoss, &Pftk, &RateAware];
        for model in models {
            let mut before = 0.0;
            for bytes in [0.0, 1.0, 1448.0, 1e4, 1e5, 1e6, 1e8] {
                let seconds = model.seconds(&path, bytes);
                assert!(seconds.is_finite() && seconds >= before * 0.999, "{path:?} {bytes}");
                before = seconds;
            }
        }
    }
}

/// A queue that overflows: from 16 kB on, a packet waits for a timeout.
#[test]
fn what_a_length_takes_each_time_is_not_held_against_others() {
    let (mut corrected, path) = (Paths::default(), path(56e3, 0.15, 0.01));
    let ratio = |corrected: &Paths, bytes: f64| {
        corrected.seconds(&path, bytes) / RateAware.seconds(&path, bytes)
    };
    let take = |corrected: &mut Paths, bytes: f64, ratio: f64| {
        corrected.observe(&path, bytes, ratio * RateAware.seconds(&path, bytes));
    };
    for _ in 0..4 {
        [24e3, 20e3, 16e3].into_iter().for_each(|bytes| take(&mut corrected, bytes, 1.6));
    }
    assert!((ratio(&corrected, 20e3) - 1.6).abs() < 0.05, "{}", ratio(&corrected, 20e3));
    assert!(ratio(&corrected, 10e3) < 1.4, "{}", ratio(&corrected, 10e3));
    (0..2).for_each(|_| take(&mut corrected, 10e3, 1.0));
    assert!((ratio(&corrected, 10e3) - 1.0).abs() < 0.05, "{}", ratio(&corrected, 10e3));
    assert!((ratio(&corrected, 20e3) - 1.6).abs() < 0.05, "{}", ratio(&corrected, 20e3));
    // Fewer at once may find room.
    let few = Path { start_window: 4.0, ..path };
    assert!(corrected.seconds(&few, 20e3) < 1.4 * RateAware.seconds(&few, 20e3));
    // So may a window that grows slowly before it overflows.
    let slow = Path { threshold: 6.0, ..path };
    assert!(corrected.seconds(&slow, 20e3) < 1.4 * RateAware.seconds(&slow, 20e3));
    // Another path has another queue.
    corrected.forget(path.peer);
    (0..6).for_each(|_| take(&mut corrected, 20e3, 1.0));
    assert!((ratio(&corrected, 20e3) - 1.0).abs() < 0.1, "{}", ratio(&corrected, 20e3));
}

/// Now and then a message waits for what those before it lost: that is no reason to hold what the
/// others take against each other.
#[test]
fn one_message_that_waited_does_not_undo_what_lengths_take() {
    let (mut corrected, path) = (Corrected::default(), path(56e3, 0.15, 0.05));
    let ratio = |corrected: &Corrected, bytes: f64| {
        corrected.seconds(&path, bytes) / RateAware.seconds(&path, bytes)
    };
    let mut take = |bytes: f64, ratio: f64| {
        corrected.observe(&path, bytes, ratio * RateAware.seconds(&path, bytes));
    };
    for _ in 0..4 {
        [(24e3, 1.0), (16e3, 2.2), (10e3, 1.0)].into_iter().for_each(|(b, r)| take(b, r));
    }
    take(24e3, 2.0);
    take(16e3, 2.2);
    let found = ratio(&corrected, 16e3);
    assert!((found / 2.2 - 1.0).abs() < 0.15, "{found}");
    let found = ratio(&corrected, 24e3);
    assert!((1.0..1.5).contains(&found), "{found}");
}

#[test]
fn where_chance_decides_no_length_has_its_own() {
    let (mut corrected, path) = (Corrected::default(), path(56e3, 1e-3, 0.2));
    for at in 0..20 {
        let taken = [(20e3, 1.0), (10e3, 0.8), (20e3, 4.0), (10e3, 0.8)];
        let (bytes, ratio) = taken[at % 4];
        corrected.observe(&path, bytes, ratio * RateAware.seconds(&path, bytes));
    }
    let ratio = |bytes: f64| corrected.seconds(&path, bytes) / RateAware.seconds(&path, bytes);
    assert!((ratio(20e3) / ratio(10e3) - 1.0).abs() < 0.1, "{} {}", ratio(20e3), ratio(10e3));
}

/// At a loss of a fifth TCP waits for timeouts; repair costs its bytes, and seldom a round trip.
#[test]
fn repair_costs_little_where_loss_stops_a_window() {
    for bytes in [2_000.0, 20_000.0, 200_000.0] {
        let clean = Path { repairs: true, start_window: 1e6, ..path(2e6, 0.2, 0.0) };
        let repaired = Path { loss: 0.2, rate_bps: 0.8 * 2e6, ..clean };
        let (without, with) =
            (RateAware.seconds(&clean, bytes), RateAware.seconds(&repaired, bytes));
        assert!((1.0..1.4).contains(&(with / without)), "{bytes}: {with} for {without}");
        let tcp = Path { loss: 0.2, most_window: 1e6, ..path(2e6, 0.2, 0.0) };
        assert!(RateAware.seconds(&tcp, bytes) > 1.5 * with, "{bytes}");
    }
    // Where nothing is lost it is no better than TCP, but for the window.
    let (tcp, burst) = (path(2e6, 0.2, 0.0), Path { repairs: true, ..path(2e6, 0.2, 0.0) });
    assert!(RateAware.seconds(&burst, 600.0) >= RateAware.seconds(&tcp, 600.0));
}

#[test]
fn without_a_window_each_packet_takes_a_round_trip_and_each_loss_a_timeout() {
    let of = |loss| Path {
        most_window: 1.0,
        start_window: 1.0,
        segment_bytes: 1024.0,
        timeout_s: 0.3,
        ..path(2e6, 0.2, loss)
    };
    let stream = |loss| Path { start_window: 10.0, ..path(2e6, 0.2, loss) };
    let seconds = |path: &Path, bytes| RateAware.seconds(path, bytes);
    // What fits into one packet takes no longer than over any other transport.
    let one = seconds(&of(0.0), 600.0);
    assert!((one - (0.1 + 8.0 * 652.0 / 2e6)).abs() < 1e-9, "{one}");
    assert!((one - seconds(&stream(0.0), 600.0)).abs() < 1e-9);
    // Twenty take nineteen round trips more, and a window none.
    let twenty = seconds(&of(0.0), 20.0 * 1024.0);
    assert!((3.9..4.1).contains(&twenty), "{twenty}");
    assert!(seconds(&stream(0.0), 20.0 * 1024.0) < 0.5);
    // Of a tenth lost either way, 0.19 / 0.81 timeouts of at least half a second.
    let lossy = seconds(&of(0.1), 600.0) - one;
    assert!((lossy - 0.234_567_9 * 1.25 * 0.5).abs() < 1e-6, "{lossy}");
}
