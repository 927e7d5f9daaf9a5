use std::time::Duration;

use crate::estimate::{Estimate, Receipt, Transport};
use crate::head::{HEAD_BYTES, share_left};

fn fresh() -> Estimate {
    Estimate::new(1e6, Duration::from_millis(200), None)
}

fn train(rate_bps: f64, packets: u64) -> Receipt {
    let bytes = packets * 1448;
    let spread = Duration::from_secs_f64(8.0 * (packets * 1500) as f64 / rate_bps);
    Receipt { bytes, spread, unbroken: true, windows: 0.5 }
}

fn counters(rtt_ms: u64, segments_out: u32, retransmitted: u32) -> Transport {
    Transport {
        rtt: Duration::from_millis(rtt_ms),
        min_rtt: Duration::from_millis(rtt_ms),
        segments_out,
        retransmitted,
        window_segments: 10,
        segment_bytes: 1448,
        app_limited: true,
        ..Transport::default()
    }
}

#[test]
fn a_train_tells_the_rate_and_a_short_or_broken_one_does_not() {
    let mut estimate = fresh();
    assert!(estimate.rate_bps().weight == 0.0 && !estimate.path().measured);
    estimate.receipt(&train(9600.0, 2));
    estimate.receipt(&Receipt { unbroken: false, ..train(9600.0, 40) });
    assert_eq!(estimate.rate_bps().weight, 0.0);
    estimate.receipt(&train(250_000.0, 20));
    let found = estimate.rate_bps();
    assert!((found.value / 250_000.0 - 1.0).abs() < 0.01 && found.weight == 1.0, "{found:?}");
    assert!(estimate.path().measured);
}

#[test]
fn a_last_packet_that_is_short_is_not_taken_for_a_full_one() {
    let mut estimate = fresh();
    let bytes = 4 * 1448 + 100;
    let spread = Duration::from_secs_f64(8.0 * (bytes + 5 * 52) as f64 / 250e3);
    estimate.receipt(&Receipt { bytes, spread, unbroken: true, windows: 0.5 });
    let found = estimate.rate_bps().value;
    assert!((found / 250e3 - 1.0).abs() < 0.01, "{found}");
}

/// 176 kB over a path of 178 ms with a window of 100 packets: what came after the window waited for
/// a round trip, whatever the link can.
#[test]
fn a_train_that_waited_for_its_window_is_no_rate() {
    let mut estimate = Estimate::new(1e6, Duration::from_millis(178), None);
    for _ in 0..3 {
        estimate.receipt(&train(50e6, 90));
    }
    let spread = Duration::from_millis(180);
    let waited = Receipt { bytes: 176_000, spread, unbroken: true, windows: 1.22 };
    for _ in 0..3 {
        estimate.receipt(&waited);
    }
    let found = estimate.rate_bps().value;
    assert!((found / 50e6 - 1.0).abs() < 0.1, "{found}");
    assert_eq!(estimate.jumps(), 0);
    // Where nobody has measured, less than was expected of any link is believed all the same.
    let mut fresh = Estimate::new(100e6, Duration::from_millis(178), None);
    fresh.receipt(&waited);
    let found = fresh.rate_bps();
    assert!(found.weight > 0.0 && (found.value / 8e6 - 1.0).abs() < 0.1, "{found:?}");
    // Ten packets of body where ten leave at once: its head took one of them.
    let windows = crate::tests::path(50e6, 0.178).windows(14_480.0);
    let spread = Duration::from_millis(178);
    let mut new = Estimate::new(1e6, Duration::from_millis(178), None);
    new.took(900.0, 0.089 + 8.0 * 952.0 / 50e6, true);
    new.receipt(&Receipt { bytes: 13_032, spread, unbroken: true, windows });
    assert!(new.rate_bps().value > 5e6, "{new:?}");
    // What took much longer than its windows waited for, the link held back.
    let slow = Receipt { spread: Duration::from_secs(1), ..waited };
    for _ in 0..3 {
        estimate.receipt(&slow);
    }
    let found = estimate.rate_bps().value;
    assert!((found / 1.45e6 - 1.0).abs() < 0.1, "{found}");
}

#[test]
fn a_disturbed_train_moves_little_and_a_new_link_is_noticed_with_the_second() {
    let mut estimate = fresh();
    for _ in 0..20 {
        estimate.receipt(&train(2e6, 20));
    }
    estimate.receipt(&train(300_000.0, 20));
    assert!((estimate.rate_bps().value / 2e6 - 1.0).abs() < 0.05);
    estimate.receipt(&train(2.2e6, 20));
    assert_eq!(estimate.jumps(), 0);
    let before = estimate.path();
    estimate.receipt(&train(2.1e6, 20));
    assert!(estimate.is_still(&before));
    for _ in 0..2 {
        estimate.receipt(&train(250_000.0, 20));
    }
    assert!((estimate.rate_bps().value / 250_000.0 - 1.0).abs() < 0.05);
    assert_eq!(estimate.jumps(), 1);
    assert!(!estimate.is_still(&before) && estimate.is_still(&estimate.path()));
}

#[test]
fn a_rate_that_the_sender_held_back_is_not_the_links() {
    let mut estimate = fresh();
    estimate.transport(Transport { delivered_bytes_per_s: 100, ..counters(200, 10, 0) });
    assert_eq!(estimate.rate_bps().weight, 0.0);
    let free = Transport {
        delivered_bytes_per_s: 100_000,
        app_limited: false,
        rtt: Duration::from_millis(300),
        ..counters(200, 10, 0)
    };
    estimate.transport(free);
    let wire = 8e5 * 1500.0 / 1448.0;
    assert!((estimate.rate_bps().value - wire).abs() < 1.0, "the link is full: {estimate:?}");
}

#[test]
fn a_full_queue_of_which_nothing_was_delivered_yet_tells_no_rate() {
    let free =
        Transport { app_limited: false, rtt: Duration::from_millis(300), ..counters(200, 10, 0) };
    let found = |nothing: bool| {
        let mut estimate = fresh();
        estimate.transport(counters(200, 5, 0));
        if nothing {
            estimate.transport(free);
        }
        // A bound, by which to hope while the rate has not shown itself.
        let bound = Transport { delivered_bytes_per_s: 1_000_000, ..counters(201, 20, 0) };
        estimate.transport(bound);
        estimate.rate_bps()
    };
    assert_eq!(found(true), found(false));
}

#[test]
fn the_operators_cap_holds_whatever_is_measured() {
    let mut estimate = Estimate::new(1e6, Duration::from_millis(200), Some(64_000.0));
    assert!(estimate.path().rate_bps <= 64_000.0);
    for _ in 0..9 {
        estimate.receipt(&train(5e6, 40));
    }
    assert!(estimate.path().rate_bps <= 64_000.0);
}

#[test]
fn loss_is_found_and_duplicates_are_none() {
    let mut estimate = fresh();
    for at in 0..200 {
        let mut now = counters(200, at * 50, at * 5);
        now.duplicates = at * 3;
        estimate.transport(now);
    }
    let loss = estimate.loss();
    assert!((loss.value - 0.04).abs() < 0.005, "{loss:?}");
    // Another connection begins at nought: nothing is made of the difference.
    estimate.reconnected();
    estimate.transport(counters(200, 3, 0));
    assert!((estimate.loss().value - 0.04).abs() < 0.005);
}

/// Processes that others keep waiting are woken 5 ms late, twice, and soon among them: 4.5 ms for
/// two packets are 3 Mbit/s. A link that became so slow delays every message.
#[test]
fn messages_that_were_woken_late_are_no_slower_link() {
    let rtt = Duration::from_millis(90);
    let mut estimate = Estimate::new(1e6, rtt, None);
    for _ in 0..3 {
        estimate.receipt(&train(93e6, 90));
    }
    let late = |estimate: &mut Estimate| estimate.took(1594.0, 0.045 + 4.9e-3, true);
    for _ in 0..5 {
        (0..3).for_each(|_| late(&mut estimate));
        estimate.took(1594.0, 0.045 + 0.5e-3, true);
    }
    assert!((estimate.rate_bps().value / 93e6 - 1.0).abs() < 0.1, "{estimate:?}");
    assert_eq!(estimate.jumps(), 0);
    // Four in a row say so, and what is far off has to be said twice.
    (0..4).for_each(|_| late(&mut estimate));
    assert_eq!(estimate.jumps(), 0, "{estimate:?}");
    late(&mut estimate);
    assert!(estimate.rate_bps().value < 5e6, "{estimate:?}");
    assert_eq!(estimate.jumps(), 1);
}

/// A bound is worth as much against what was woken 8 ms late: two packets of 1.9 kB made nam-us one
/// of 2 Mbit/s for good.
#[test]
fn a_first_message_that_was_woken_late_is_no_slow_link() {
    let mut estimate = Estimate::new(1e6, Duration::from_millis(90), None);
    let quick = Transport { delivered_bytes_per_s: 1_000_000, ..counters(90, 40, 0) };
    estimate.transport(quick);
    let known = estimate.rate_bps().value;
    estimate.took(1900.0, 0.045 + 8.3e-3, true);
    assert_eq!((estimate.rate_bps().value, estimate.jumps()), (known, 0));
}

/// One that was woken 0.95 ms late said little, and nothing of the link that became slow behind it.
#[test]
fn what_a_message_said_before_the_link_became_slow_does_not_hold_it_up() {
    let mut estimate = Estimate::new(1e6, Duration::from_millis(90), None);
    for _ in 0..3 {
        estimate.receipt(&train(93e6, 90));
    }
    estimate.took(3136.0, 0.045 + 0.95e-3, true);
    (0..9).for_each(|_| estimate.took(1594.0, 0.045 + 4.9e-3, true));
    assert!(estimate.rate_bps().value < 5e6, "{estimate:?}");
}

#[test]
fn a_train_between_messages_that_were_woken_late_says_that_the_link_is_what_it_was() {
    let mut estimate = Estimate::new(1e6, Duration::from_millis(90), None);
    for _ in 0..3 {
        estimate.receipt(&train(93e6, 90));
    }
    for _ in 0..9 {
        (0..3).for_each(|_| estimate.took(1594.0, 0.045 + 4.9e-3, true));
        estimate.receipt(&train(93e6, 90));
    }
    assert!((estimate.rate_bps().value / 93e6 - 1.0).abs() < 0.02, "{estimate:?}");
    assert_eq!(estimate.jumps(), 0);
}

/// A queue that overflowed once took 330 packets of 20,000, and the message was as fast as before.
#[test]
fn losses_that_held_nothing_back_are_none_by_chance() {
    let lost = |seconds: f64| {
        let mut estimate = fresh();
        estimate.transport(counters(90, 0, 0));
        estimate.transport(counters(90, 20_000, 330));
        assert!((estimate.loss().value - 0.0165).abs() < 0.002, "{:?}", estimate.loss());
        estimate.took(28.5e6, seconds, false);
        estimate.loss().value
    };
    assert!(lost(2.7) < 1e-4, "{}", lost(2.7));
    assert!((lost(300.0) - 0.0165).abs() < 0.002, "{}", lost(300.0));
    // One that lost less than is usual had luck.
    let mut estimate = fresh();
    estimate.transport(counters(90, 2_000, 200));
    estimate.transport(counters(90, 4_000, 400));
    estimate.took(2.9e6, 300.0, false);
    estimate.transport(counters(90, 4_050, 401));
    estimate.took(60e3, 0.1, false);
    assert!(estimate.loss().value > 0.08, "{:?}", estimate.loss());
}

/// The same amid a body whose counters are read while it leaves: of all that is remembered, what
/// was lost last weighs most, and the message itself is no measure of what is usual.
#[test]
fn losses_at_the_end_of_a_long_message_held_nothing_back_either() {
    let mut estimate = fresh();
    estimate.transport(counters(178, 0, 0));
    for at in 1..=20 {
        estimate.transport(counters(178, at * 90, at.saturating_sub(17) * 10));
    }
    estimate.took(2_571_824.0, 0.5, false);
    assert!(estimate.loss().value < 1e-4, "{:?}", estimate.loss());
}

/// The peer tells of a duplicate a round trip after it was sent, when the counters may have been
/// read in between and nothing else is under way.
#[test]
fn a_needless_retransmission_that_shows_later_is_no_loss() {
    let mut estimate = fresh();
    for at in 1..100 {
        let now = counters(200, at * 3, at);
        estimate.transport(Transport { duplicates: at - 1, ..now });
        estimate.transport(Transport { duplicates: at, ..now });
    }
    let loss = estimate.loss();
    assert!(loss.value < 0.002 && loss.weight > 100.0, "{loss:?}");
}

/// A network that doubles packets tells of duplicates too: they excuse no loss that is still to
/// come, nor more than there was.
#[test]
fn duplicates_that_nobody_sent_excuse_nothing() {
    let mut estimate = fresh();
    for at in 0..100 {
        estimate.transport(Transport { duplicates: at * 40, ..counters(200, at * 50, 0) });
    }
    assert!((0.0..0.001).contains(&estimate.loss().value), "{:?}", estimate.loss());
    for at in 100..300 {
        let now = counters(200, at * 50, (at - 99) * 5);
        estimate.transport(Transport { duplicates: 4000, ..now });
    }
    assert!((estimate.loss().value - 0.1).abs() < 0.01, "{:?}", estimate.loss());
}

#[test]
fn a_longer_path_is_believed_after_three() {
    let mut estimate = fresh();
    (0..10).for_each(|at| estimate.transport(counters(20, at, 0)));
    assert!((estimate.rtt_s().value - 0.02).abs() < 1e-6, "{:?}", estimate.rtt_s());
    (0..3).for_each(|at| {
        estimate.transport(counters(1100 + u64::from(at), 12 + at, 0));
    });
    assert!(estimate.rtt_s().value > 0.6, "{:?}", estimate.rtt_s());
    assert_eq!(estimate.jumps(), 1);
}

#[test]
fn a_queue_is_not_a_longer_path() {
    let mut estimate = fresh();
    (0..10).for_each(|at| estimate.transport(counters(20, at, 0)));
    estimate.transport(Transport { rtt: Duration::from_millis(90), ..counters(20, 11, 0) });
    assert!(estimate.queueing_s() > 0.05, "{}", estimate.queueing_s());
    assert!(estimate.rtt_s().value < 0.03);
}

/// Counters read every 10 ms of a body that fills a queue of a second, and until that is empty: few
/// packets leave between two readings, and those that come back waited for all that were under way.
#[test]
fn a_queue_of_ones_own_is_no_longer_path() {
    let (rate_bps, least_s) = (2e6, 0.02);
    let mut estimate = Estimate::new(1e6, Duration::from_millis(20), None);
    (0..3).for_each(|_| assert!(estimate.receipt(&train(rate_bps, 20))));
    let seconds = 8.0 * 1500.0 / rate_bps;
    let (mut now, mut mean_s, mut window, mut left) = (0.0_f64, least_s, 10.0_f64, 800_u32);
    // When each packet under way was sent, and comes back.
    let mut under_way = std::collections::VecDeque::<(f64, f64)>::new();
    let mut free_at = 0.0_f64;
    let mut reported = counters(20, 0, 0);
    while left > 0 || !under_way.is_empty() {
        now += 0.01;
        while under_way.front().is_some_and(|&(_, back)| back <= now) {
            let (sent, back) = under_way.pop_front().unwrap();
            mean_s += (back - sent - mean_s) / 8.0;
            window += 1.0;
        }
        while left > 0 && (under_way.len() as f64) < window.min(170.0) {
            free_at = free_at.max(now) + seconds;
            under_way.push_back((now, free_at + least_s));
            (left, reported.segments_out) = (left - 1, reported.segments_out + 1);
        }
        reported.rtt = Duration::from_secs_f64(mean_s);
        reported.bytes_out = 1448 * u64::from(reported.segments_out);
        reported.backlog_bytes = 1448 * (under_way.len() as u64 + u64::from(left));
        (reported.window_segments, reported.app_limited) = (170, left == 0);
        reported.delivered_bytes_per_s = 1448 * 2_000_000 / 8 / 1500;
        estimate.transport(reported);
    }
    assert!(mean_s > 0.5, "{mean_s}");
    assert_eq!(estimate.jumps(), 0);
    assert!((estimate.rtt_s().value - least_s).abs() < 0.005, "{:?}", estimate.rtt_s());
    assert!((estimate.rate_bps().value / rate_bps - 1.0).abs() < 0.1, "{:?}", estimate.rate_bps());
}

#[test]
fn absurd_counters_leave_a_usable_path() {
    let mut estimate = Estimate::new(f64::NAN, Duration::MAX, Some(0.0));
    let absurd = Transport {
        lockstep: false,
        receiver_window_bytes: u32::MAX,
        rtt: Duration::MAX,
        min_rtt: Duration::ZERO,
        delivered_bytes_per_s: u64::MAX,
        app_limited: false,
        segments_out: u32::MAX,
        bytes_out: u64::MAX,
        retransmitted: u32::MAX,
        timeouts: u32::MAX,
        duplicates: 1,
        window_segments: u32::MAX,
        threshold_segments: u32::MAX,
        segment_bytes: u32::MAX,
        backlog_bytes: u64::MAX,
        idle: Duration::MAX,
        repairs: true,
        incoming_loss_ppm: Some(u32::MAX),
    };
    for counters in [absurd, Transport::default(), absurd] {
        estimate.transport(counters);
        estimate.receipt(&Receipt {
            bytes: u64::MAX,
            spread: Duration::from_nanos(1),
            windows: f64::NAN,
            unbroken: true,
        });
        let (spread, windows) = (Duration::MAX, f64::INFINITY);
        estimate.receipt(&Receipt { bytes: 0, spread, unbroken: true, windows });
        let path = estimate.path();
        assert!(path.rate_bps.is_finite() && path.rate_bps > 0.0, "{path:?}");
        assert!(path.rtt_s > 0.0 && path.rtt_s <= 600.0 && path.loss < 1.0, "{path:?}");
        assert!(estimate.incoming_loss().is_none_or(|loss| loss <= 1.0));
    }
}

#[test]
fn the_head_tells_text_from_noise() {
    let soap = b"<ns:item><ns:name>alpha</ns:name><ns:value>1</ns:value></ns:item>".repeat(80);
    let mut state = 1_u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
    .take(HEAD_BYTES)
    .collect();
    assert!(share_left(&soap) < 0.1, "{}", share_left(&soap));
    assert!(share_left(&noise) > 0.95, "{}", share_left(&noise));
    let words = b"The quick brown fox jumps over a lazy dog while it rains in the north".to_vec();
    assert!((0.4..0.8).contains(&share_left(&words)), "{}", share_left(&words));
    assert_eq!(share_left(b""), 1.0);
    for short in [&b"a"[..], b"ab", b"abc", b"abcd", &[0; 5000]] {
        assert!((0.0..=1.0).contains(&share_left(short)));
    }
}

#[test]
fn a_message_of_one_packet_tells_a_slow_link_by_its_time() {
    let mut estimate = Estimate::new(1e6, Duration::from_millis(200), None);
    let seconds = |rate: f64| 0.1 + 8.0 * 952.0 / rate;
    (0..3).for_each(|_| estimate.took(900.0, seconds(9_600.0), true));
    assert!((estimate.rate_bps().value / 9_600.0 - 1.0).abs() < 0.01, "{estimate:?}");
    estimate.took(900.0, seconds(100.0), false);
    estimate.took(900.0, f64::NAN, true);
    estimate.took(900.0, -1.0, true);
    assert!((estimate.rate_bps().value / 9_600.0 - 1.0).abs() < 0.01, "{estimate:?}");
}

#[test]
fn a_message_that_takes_hardly_more_than_the_delay_tells_a_bound_alone() {
    let mut estimate = Estimate::new(1e6, Duration::from_millis(1), None);
    (0..3).for_each(|_| estimate.took(60_000.0, 0.000_5 + 8.0 * 62_184.0 / 1e11, true));
    assert!(estimate.rate_bps().value > 1e9, "{estimate:?}");
    (0..3).for_each(|_| estimate.took(900.0, 0.000_5, true));
    assert!(estimate.rate_bps().value > 1e9, "a short one tells nothing against it");
}

/// Messages of 3 and 1.5 kB over 93 Mbit/s, whose receivers were woken half a millisecond late.
#[test]
fn what_processes_waited_for_is_no_slow_link() {
    let mut estimate = Estimate::new(1e6, Duration::from_millis(7), None);
    for _ in 0..3 {
        estimate.receipt(&train(93e6, 80));
    }
    for _ in 0..9 {
        estimate.took(3136.0, 0.003_5 + 0.000_77, true);
        estimate.took(1442.0, 0.003_5 + 0.000_63, true);
    }
    let found = estimate.rate_bps().value;
    assert!((found / 93e6 - 1.0).abs() < 0.02, "{found}");
    // Much longer is the link.
    (0..9).for_each(|_| estimate.took(3136.0, 0.003_5 + 0.009, true));
    let found = estimate.rate_bps().value;
    assert!((2.9e6..3.3e6).contains(&found), "{found}");
}

/// What may have been held back says of the link that it can at least so much.
#[test]
fn a_rate_that_shows_itself_needs_no_second_to_be_believed_for_a_bound() {
    let mut estimate = Estimate::new(1e6, Duration::from_millis(10), None);
    estimate.transport(Transport { delivered_bytes_per_s: 124_000, ..counters(10, 5, 0) });
    assert!(estimate.rate_bps().value > 10e6, "{estimate:?}");
    // A bound that is far off, until it comes again.
    estimate.transport(Transport { delivered_bytes_per_s: 1_240_000, ..counters(11, 10, 0) });
    estimate.took(406.0, 0.005 + 8.0 * 458.0 / 0.25e6 + 0.002, true);
    let found = estimate.rate_bps().value;
    assert!((0.2e6..0.25e6).contains(&found), "{found}");
    // From there on one that is far off has to come again.
    estimate.receipt(&train(40e6, 40));
    assert_eq!(estimate.rate_bps().value, found);
}

/// The kernel keeps the rate of the last that the link held back: what one short packet then
/// brings back, while the mean round trip still shows the queue, is no rate of short packets.
#[test]
fn a_rate_that_was_reported_is_not_reported_again_with_other_segments() {
    let mut estimate = fresh();
    for _ in 0..3 {
        estimate.receipt(&train(1.1e6, 20));
    }
    let min_rtt = Duration::from_millis(200);
    let mut sent = Transport { bytes_out: 1000, ..counters(200, 1, 0) };
    estimate.transport(sent);
    let queued = Transport {
        rtt: Duration::from_millis(400),
        min_rtt,
        delivered_bytes_per_s: 132_700,
        app_limited: false,
        segments_out: 21,
        bytes_out: sent.bytes_out + 20 * 1448,
        ..sent
    };
    estimate.transport(queued);
    sent = queued;
    for at in 1..5 {
        sent.rtt = Duration::from_millis(400 - 20 * at);
        sent.segments_out += 1;
        sent.bytes_out += 500;
        estimate.transport(sent);
    }
    let found = estimate.rate_bps().value;
    assert!((found / 1.1e6 - 1.0).abs() < 0.1, "{found}");
    assert_eq!(estimate.jumps(), 0);
}

#[test]
fn a_window_that_holds_back_is_not_the_links_rate() {
    let mut estimate = fresh();
    for _ in 0..5 {
        estimate.receipt(&train(2e6, 20));
    }
    for at in 0..9 {
        // The window's rate over a path of 200 ms without a queue.
        let slow = Transport { delivered_bytes_per_s: 70_000, ..counters(200, 10 * at, 0) };
        estimate.transport(slow);
    }
    assert!((estimate.rate_bps().value / 2e6 - 1.0).abs() < 0.05, "{estimate:?}");
}

#[test]
fn a_window_falls_back_while_the_sender_is_idle() {
    let mut estimate = fresh();
    let window = |estimate: &Estimate| estimate.path().start_window;
    let wide = Transport { window_segments: 80, ..counters(200, 10, 0) };
    estimate.transport(wide);
    assert!((window(&estimate) - 80.0).abs() < 1e-9);
    estimate.transport(Transport { idle: Duration::from_millis(900), ..wide });
    assert!((window(&estimate) - 20.0).abs() < 1e-9, "two timeouts of 400 ms");
    estimate.transport(Transport { idle: Duration::MAX, ..wide });
    assert!((window(&estimate) - 10.0).abs() < 1e-9);
    estimate.transport(Transport { idle: Duration::MAX, window_segments: 2, ..wide });
    assert!((window(&estimate) - 2.0).abs() < 1e-9, "what loss made of it stays");
}

#[test]
fn a_figure_that_is_read_twice_counts_once() {
    let mut estimate = fresh();
    for _ in 0..3 {
        estimate.receipt(&train(250_000.0, 20));
    }
    let reported = Transport { delivered_bytes_per_s: 100_000, ..counters(200, 10, 0) };
    (0..2).for_each(|_| estimate.transport(reported));
    assert_eq!(estimate.jumps(), 0);
    assert!((estimate.rate_bps().value / 250_000.0 - 1.0).abs() < 0.05, "{estimate:?}");
}

/// The kernel reckons segments as full ones.
#[test]
fn a_rate_of_short_segments_is_less_than_the_kernel_says() {
    let mut estimate = fresh();
    for _ in 0..5 {
        estimate.receipt(&train(250_000.0, 20));
    }
    estimate.transport(counters(200, 0, 0));
    for at in 1..30 {
        // Two full segments and a short one.
        estimate.transport(Transport {
            bytes_out: u64::from(at) * 3000,
            delivered_bytes_per_s: 3 * 1448 * 10,
            ..counters(200 + u64::from(at % 2), 3 * at, 0)
        });
    }
    let found = estimate.rate_bps().value;
    assert!((found / 250_000.0 - 1.0).abs() < 0.1, "{found}");
}

#[test]
fn packets_that_wait_for_their_own_kind_have_no_longer_path() {
    let mut estimate = Estimate::new(9600.0, Duration::from_millis(300), None);
    for _ in 0..3 {
        estimate.receipt(&train(9600.0, 8));
    }
    for at in 0..20 {
        let least = Duration::from_millis(300);
        let mean = 300 + 400 * u64::from(at.min(9)) + u64::from(at);
        estimate.transport(Transport { min_rtt: least, ..counters(mean, 7 * at, 0) });
    }
    assert!((estimate.rtt_s().value - 0.3).abs() < 0.05, "{:?}", estimate.rtt_s());
    assert_eq!(estimate.jumps(), 0);
}

#[test]
fn a_shorter_path_shows_at_once_and_has_losses_of_its_own() {
    let mut estimate = fresh();
    for at in 1..20 {
        estimate.transport(counters(200 + u64::from(at % 2), 10 * at, 2 * at));
    }
    assert!(estimate.loss().value > 0.1, "{:?}", estimate.loss());
    // The mean comes down by an eighth of the way with each round trip.
    let min_rtt = Duration::from_millis(10);
    estimate.transport(Transport { min_rtt, ..counters(177, 191, 38) });
    assert!(estimate.rtt_s().value < 0.03, "{:?}", estimate.rtt_s());
    assert!(estimate.loss().value < 0.01, "{:?}", estimate.loss());
    assert_eq!(estimate.jumps(), 1);
}

#[test]
fn what_a_message_takes_beyond_the_delay_bounds_what_is_hoped_of_the_rate() {
    let mut estimate = Estimate::new(1e6, Duration::from_millis(1100), None);
    estimate.took(1308.0, 0.55 + 8.0 * 1360.0 / 250e3, true);
    let found = estimate.rate_bps().value;
    assert!((found / 250e3 - 1.0).abs() < 0.1, "{found}");
}

#[test]
fn what_processes_may_have_waited_for_is_halved_between_the_link_and_them() {
    let mut estimate = Estimate::new(1e6, Duration::from_millis(2), None);
    estimate.took(1396.0, 1e-3 + 1.8e-3, true);
    let least = 8.0 * 1448.0 / 1.8e-3;
    let found = estimate.rate_bps().value / least;
    assert!((found - 1.5_f64.sqrt()).abs() < 0.02, "{found}");
}

#[test]
fn what_a_message_takes_says_what_the_link_can_at_most() {
    let mut estimate = Estimate::new(1e6, Duration::from_millis(2), None);
    estimate.transport(Transport { delivered_bytes_per_s: 600_000, ..counters(2, 5, 0) });
    assert!(estimate.rate_bps().value > 70e6, "{estimate:?}");
    (0..5).for_each(|_| estimate.took(1396.0, 1e-3 + 1e-3, true));
    let most = 8.0 * 1448.0 / 0.4e-3;
    let found = estimate.rate_bps().value;
    assert!((found / most - 1.0).abs() < 0.02, "{found}");
}

/// Something on the way ends the connection: its first hop is a gigabyte a second, whatever
/// messages say that they came at.
#[test]
fn a_first_hop_is_not_taken_for_the_whole_path() {
    let first_hop = |segments_out| Transport {
        delivered_bytes_per_s: 1 << 30,
        app_limited: false,
        ..counters(1, segments_out, 0)
    };
    let mut estimate = fresh();
    let mut far_off = 0;
    for at in 1..=100 {
        // Read twice for each message, once while it leaves and once behind it.
        for part in 0..2 {
            let mut counters = first_hop(70 * at + 30 * part);
            counters.rtt = Duration::from_micros(u64::from(1500 + at % 7 + part));
            estimate.transport(counters);
        }
        estimate.receipt(&train(20e6, 60));
        far_off += u32::from(estimate.rate_bps().value > 2.0 * 20e6);
    }
    assert!(far_off <= 4 + 4, "{far_off} of 100 messages");
    // Where messages come faster behind it, the transport was right, and is heard at once.
    let mut estimate = fresh();
    for at in 1..=20 {
        let rate = if at < 10 { 20e6 } else { 400e6 };
        let bytes_per_s = if at < 10 { 2_500_000 } else { 50_000_000 };
        let mut counters = first_hop(70 * at);
        counters.delivered_bytes_per_s = bytes_per_s;
        counters.rtt = Duration::from_micros(u64::from(1500 + at % 7));
        estimate.transport(counters);
        estimate.receipt(&train(rate, 900));
    }
    let found = estimate.rate_bps().value;
    assert!((found / 400e6 - 1.0).abs() < 0.1, "{found}");
}

/// A tunnel on the same host: one packet of 64 kB to it, 63 kB in 35 ms behind it.
#[test]
fn what_comes_slowly_tells_a_rate_though_the_first_hop_takes_it_in_one_packet() {
    let spread = |ms| Receipt {
        bytes: 63_202,
        spread: Duration::from_millis(ms),
        unbroken: true,
        windows: 0.1,
    };
    let mut estimate = fresh();
    let counters = Transport { segment_bytes: 65_483, ..counters(1, 70, 0) };
    estimate.transport(counters);
    assert!(!estimate.receipt(&spread(2)), "so long processes wait");
    assert!(estimate.receipt(&spread(25)));
    let found = estimate.rate_bps().value;
    assert!((found / 20.96e6 - 1.0).abs() < 0.01, "{found}");
}

/// Nothing ends the connection: some messages are read late, hours apart, or the link fades.
#[test]
fn what_comes_late_now_and_then_says_nothing_against_the_transport() {
    let mut estimate = Estimate::new(1e6, Duration::from_millis(1), None);
    let reported = |estimate: &mut Estimate, segments_out: u32, bytes_per_s: u64| {
        let rtt = Duration::from_micros(u64::from(2500 + segments_out % 7));
        let delivered_bytes_per_s = bytes_per_s;
        let counters = counters(1, segments_out, 0);
        estimate.transport(Transport {
            delivered_bytes_per_s,
            app_limited: false,
            rtt,
            ..counters
        });
    };
    for at in 1..=60 {
        reported(&mut estimate, 50 * at, 110_000_000);
        estimate.receipt(&train(if at % 10 == 0 { 33e6 } else { 900e6 }, 45));
    }
    let found = estimate.rate_bps().value;
    assert!(found > 500e6, "{found}");
    // The kernel keeps the rate from before a fade; behind it the link is what it was.
    for at in 61..=70 {
        reported(&mut estimate, 50 * at, 110_000_000);
        estimate.receipt(&train(2e6, 45));
    }
    estimate.receipt(&train(900e6, 45));
    for at in 71..=73 {
        reported(&mut estimate, 50 * at, 110_000_000);
    }
    let found = estimate.rate_bps().value;
    assert!(found > 500e6, "{found}");
}
