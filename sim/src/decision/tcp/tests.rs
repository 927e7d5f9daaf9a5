use super::*;

fn link(rate_bps: u64, delay_ms: u64, loss: f64) -> LinkConfig {
    let mut config = LinkConfig::preset("los").unwrap();
    for channel in [&mut config.ab, &mut config.ba] {
        channel.rate_bps = Some(rate_bps);
        channel.delay = Duration::from_millis(delay_ms);
        channel.loss = loss;
    }
    config
}

fn once(link: &LinkConfig, bytes: u64) -> f64 {
    Connection::new(link, 1).send(bytes).seconds
}

/// Mean and 95th percentile over seeds, of messages that follow each other at a distance.
fn mean(link: &LinkConfig, bytes: u64, seeds: u64, messages: u32) -> (f64, f64) {
    let mut times = Vec::new();
    for seed in 0..seeds {
        let mut connection = Connection::new(link, seed);
        for _ in 0..messages {
            times.push(connection.send(bytes).seconds);
            connection.idle(1.0);
        }
    }
    times.sort_by(f64::total_cmp);
    (times.iter().sum::<f64>() / times.len() as f64, times[times.len() * 95 / 100])
}

#[test]
fn without_loss_times_are_those_of_the_closed_forms() {
    // One packet: its serialization and the delay.
    let satcom = link(250_000, 550, 0.0);
    assert!((once(&satcom, 600) - (0.55 + 8.0 * 652.0 / 250e3)).abs() < 1e-6);
    // 14 packets where the pipe is long: ten, a wait for the first acknowledgement, four.
    let wifi = link(2_000_000, 100, 0.0);
    let sent = 8.0 * (20_000.0 + 14.0 * 52.0) / 2e6;
    let reply = 0.2 + 8.0 * (1500.0 + 52.0) / 2e6;
    let wait = reply - 10.0 * 8.0 * 1500.0 / 2e6;
    let expected = wait + sent + 0.1;
    assert!((once(&wifi, 20_000) - expected).abs() < 1e-3, "{}", once(&wifi, 20_000));
    // Bulk: the link is full but for slow start.
    let bulk = once(&wifi, 10_000_000);
    let floor = 8.0 * 10e6 * 1500.0 / 1448.0 / 2e6 + 0.1;
    assert!((floor..floor + 1.0).contains(&bulk), "{bulk} {floor}");
    // A slow link: the first timeouts are needless and cost a window's airtime at most.
    let cnr = link(9_600, 100, 0.0);
    let (three, _) = mean(&cnr, 3_000, 1, 5);
    let floor = 8.0 * (3_000.0 + 3.0 * 52.0) / 9_600.0 + 0.1;
    assert!((floor - 1e-6..2.2 * floor).contains(&three), "{three} {floor}");
}

#[test]
fn with_loss_times_are_near_those_of_an_independent_model() {
    // models.md: 2 Mbit/s, 100 ms each way, 20 % each way, TCP CUBIC kept alive: mean 0.54, 1.09
    // and 25.4 s, 95th percentiles 1.43, 2.35 and 36.6 s.
    let wifi2 = link(2_000_000, 100, 0.2);
    let seen = [2_000, 20_000, 200_000].map(|bytes| mean(&wifi2, bytes, 400, 1));
    for ((mean, p95), (known, known_p95)) in
        seen.iter().zip([(0.54, 1.43), (1.09, 2.35), (25.4, 36.6)])
    {
        let near = |a: &f64, b: f64| (0.5..2.0).contains(&(a / b));
        assert!(near(mean, known) && near(p95, known_p95), "{seen:?}");
    }
}

#[test]
fn the_kernel_s_figures_tell_the_link() {
    let mut connection = Connection::new(&link(2_000_000, 100, 0.0), 1);
    connection.send(2_000_000);
    let reported = connection.transport();
    let rate = 8.0 * reported.delivered_bytes_per_s as f64;
    assert!((1.8e6..2.05e6).contains(&rate), "{reported:?}");
    assert!((reported.min_rtt.as_secs_f64() - 0.2).abs() < 0.01, "{reported:?}");
    assert_eq!(reported.retransmitted, 0);
    let mut lossy = Connection::new(&link(2_000_000, 100, 0.05), 1);
    for _ in 0..50 {
        lossy.send(50_000);
    }
    let reported = lossy.transport();
    let needed = reported.retransmitted - reported.duplicates;
    let share = f64::from(needed) / f64::from(reported.segments_out);
    assert!((0.03..0.08).contains(&share), "{reported:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let wifi3 = link(2_000_000, 100, 0.05);
    assert_eq!(mean(&wifi3, 30_000, 5, 5), mean(&wifi3, 30_000, 5, 5));
    assert_ne!(mean(&wifi3, 30_000, 5, 5), mean(&wifi3, 30_000, 6, 5));
}
