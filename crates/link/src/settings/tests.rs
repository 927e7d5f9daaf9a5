use super::*;
use crate::{MAX_OUTAGE_WINDOWS, presets};
use proptest::prelude::*;

fn refusal(key: &str, value: &str) -> String {
    let mut link = LinkConfig::preset("satcom").unwrap();
    let before = link.clone();
    let message = link.set(key, value).unwrap_err().to_string();
    assert_eq!(link, before, "{key} = {value} was refused and yet changed something");
    assert!(!message.contains('\n') && message.len() < 400, "{message}");
    message
}

#[test]
fn a_key_sets_both_directions_or_one() {
    let mut link = LinkConfig::default();
    link.set("delay", "250 ms").unwrap();
    link.set("ab.rate", "9.6 kbit/s").unwrap();
    link.set("ba.loss", " 1 % ").unwrap();
    assert_eq!((link.ab.delay, link.ba.delay), (Duration::from_millis(250), link.ab.delay));
    assert_eq!((link.ab.rate_bps, link.ba.rate_bps), (Some(9_600), None));
    assert_eq!((link.ab.loss, link.ba.loss), (0.0, 0.01));
}

#[test]
fn every_key_sets_its_own_field() {
    let mut link = LinkConfig::default();
    let settings = [
        ("rate", "2 Mbit/s"),
        ("delay", "100 ms"),
        ("jitter", "20 ms"),
        ("distribution", "pareto"),
        ("jitter_correlation", "25 %"),
        ("loss", "0.5 %"),
        ("loss_correlation", "35 %"),
        ("burst_loss", "r=30 %, p=1 %, good=2 %"),
        ("loss_first", "true"),
        ("duplicate", "3 %"),
        ("corrupt", "4 %"),
        ("reorder", "5 %"),
        ("queue_packets", "12"),
        ("queue_bytes", "15 KB"),
        ("mtu", "1.4 KB"),
        ("outages", "1 s..2 s"),
    ];
    for (key, value) in settings {
        link.set(key, value).unwrap();
    }
    let expected = ChannelConfig {
        rate_bps: Some(2_000_000),
        trace: None,
        delay: Duration::from_millis(100),
        jitter: Duration::from_millis(20),
        distribution: Distribution::Pareto,
        jitter_correlation: 0.25,
        loss: 0.005,
        loss_correlation: 0.35,
        burst_loss: Some(BurstLoss { p: 0.01, r: 0.3, bad: 1.0, good: 0.02 }),
        loss_first: true,
        duplicate: 0.03,
        corrupt: 0.04,
        reorder: 0.05,
        queue_packets: 12,
        queue_bytes: 15_000,
        mtu: Some(1_400),
        outages: Outages::parse("1 s..2 s").unwrap(),
    };
    assert_eq!(link, LinkConfig { ab: expected.clone(), ba: expected });
    assert_eq!(settings.len() + 1, keys().len(), "a key is not tested here");
}

#[test]
fn values_out_of_range_are_refused_with_the_range_and_the_unit() {
    let cases = [
        ("rate", "9 bit/s", "10 bit/s to 100 Gbit/s"),
        ("rate", "101 Gbit/s", "10 bit/s to 100 Gbit/s"),
        ("rate", "250", "like 250 kbit/s"),
        ("ab.delay", "61 min", "0 ns to 1 h"),
        ("delay", "none", "0 ns to 1 h"),
        ("jitter", "-1 ms", "0 ns to 1 h"),
        ("distribution", "cauchy", "uniform, normal, pareto or paretonormal"),
        ("jitter_correlation", "100.1 %", "0 % to 100 %"),
        ("loss_correlation", "-1 %", "0 % to 100 %"),
        ("loss", "101 %", "0 % to 100 %"),
        ("loss", "0.2", "0 % to 100 %"),
        ("burst_loss", "p=1 %", "p and r"),
        ("burst_loss", "p=1 %, r=2 %, q=3 %", "p and r"),
        ("burst_loss", "p=1 %, r=2 %, p=3 %", "p and r"),
        ("burst_loss", "p=0 %, r=0 %", "not both 0 %"),
        ("loss_first", "yes", "true or false"),
        ("duplicate", "", "0 % to 100 %"),
        ("corrupt", "1e9 %", "0 % to 100 %"),
        ("reorder", "x", "0 % to 100 %"),
        ("queue_packets", "100001", "0 to 100000"),
        ("queue_packets", "-1", "0 to 100000"),
        ("queue_bytes", "257 MiB", "256 MiB"),
        ("mtu", "67 B", "68 B to 65535 B"),
        ("mtu", "65536 B", "68 B to 65535 B"),
        ("outages", "1 s..2 s, 5 s..4 s", "'5 s..4 s' is refused"),
        ("outages", "1 s..2 s, 5 s..4 s", "must end after it begins"),
    ];
    for (key, value, expected) in cases {
        let message = refusal(key, value);
        assert!(message.contains(expected), "{key} = {value}: {message}");
        assert!(message.starts_with(key), "{message}");
    }
}

#[test]
fn unknown_keys_are_refused_with_the_nearest() {
    assert!(refusal("dealy", "1 ms").contains("did you mean 'delay'?"));
    assert!(refusal("ab.los", "1 %").contains("did you mean 'loss'?"));
    assert!(refusal("bandwidth", "1 Mbit/s").contains("known are rate, trace, delay"));
    assert!(refusal("ac.delay", "1 ms").contains("unknown setting 'ac.delay'"));
    assert!(refusal(&"x\n".repeat(9_999), "1 ms").contains("unknown setting"));
}

#[test]
fn unknown_presets_are_refused_with_the_nearest() {
    let message = LinkConfig::preset("satcon").unwrap_err().to_string();
    assert!(message.contains("did you mean 'satcom'?"), "{message}");
    assert!(message.contains("known are satcom, los, wifi1"), "{message}");
}

#[test]
fn a_trace_is_read_through_the_caller_and_replaces_the_rate() {
    let mut link = LinkConfig::preset("wifi1").unwrap();
    let read = |path: &str| {
        assert_eq!(path, "lte.down");
        Ok("5\n10\n".to_owned())
    };
    link.set_reading("ba.trace", "lte.down", read).unwrap();
    assert_eq!((link.ba.rate_bps, link.ab.rate_bps), (None, Some(2_000_000)));
    assert_eq!(link.ba.trace.as_ref().map(Trace::mean_rate_bps), Some(2_400_000));
    assert!(link.settings().contains(&("ba.trace".to_owned(), "lte.down".to_owned())));
    link.set("rate", "none").unwrap();
    assert!(link.ba.trace.is_some(), "no rate contradicts no trace");
    link.set("rate", "1 Mbit/s").unwrap();
    assert_eq!((link.ba.rate_bps, link.ba.trace.as_ref()), (Some(1_000_000), None));
}

#[test]
fn traces_that_cannot_be_read_are_refused() {
    assert!(refusal("trace", "x.up").contains("trace x.up: no files are read here"));
    let mut link = LinkConfig::default();
    let message = link.set_reading("trace", "x", |_| Err("no such file".to_owned())).unwrap_err();
    assert_eq!(message.to_string(), "trace x: no such file");
    let message = link.set_reading("trace", "x", |_| Ok("1\nz\n".to_owned())).unwrap_err();
    assert!(message.to_string().starts_with("trace x line 2: 'z'"), "{message}");
    assert_eq!(link, LinkConfig::default());
}

#[test]
fn assignments_apply_together_or_not_at_all() {
    let none = |_: &str| Err(String::new());
    let mut link = LinkConfig::preset("los").unwrap();
    // Alone the jitter would exceed the delay of 5 ms.
    link.apply(&["jitter = 50 ms", "delay=100 ms", "ab.burst_loss=p=1 %, r=50 %"], none).unwrap();
    assert_eq!(link.ab.jitter, Duration::from_millis(50));
    assert!(link.ab.burst_loss.is_some() && link.ba.burst_loss.is_none());
    let before = link.clone();
    for (assignments, expected) in [
        (vec!["delay=200 ms", "loss=2"], "loss = '2' is refused"),
        (vec!["delay=10 ms"], "direction ab: jitter = 50 ms exceeds delay = 10 ms"),
        (vec!["ba.delay=0", "ba.jitter=0", "ba.reorder=1 %"], "direction ba: reorder = 1 % needs"),
        (vec!["delay 200 ms"], "'delay 200 ms' is not a setting of the form key=value"),
    ] {
        let message = link.apply(&assignments, none).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
        assert_eq!(link, before);
    }
}

#[test]
fn a_normal_jitter_may_exceed_the_delay() {
    let mut link = LinkConfig::preset("los").unwrap();
    let read = |_: &str| Err(String::new());
    assert!(link.apply(&["jitter=6 ms", "distribution=normal"], read).is_ok());
}

#[test]
fn every_preset_is_consistent_and_its_listing_sets_the_same_again() {
    for preset in presets() {
        assert_eq!(preset.config.check(), Ok(()), "{}", preset.name);
        let mut again = LinkConfig::default();
        for (key, value) in preset.config.settings() {
            again.set(&key, &value).unwrap();
        }
        assert_eq!(again, preset.config, "{}", preset.name);
    }
}

#[test]
fn listings_name_directions_only_where_they_differ() {
    let mut link = LinkConfig::preset("cnr").unwrap();
    assert_eq!(link.settings().len(), keys().len());
    link.set("ba.loss", "3 %").unwrap();
    let listed = link.settings();
    let has = |key: &str, value: &str| listed.contains(&(key.to_owned(), value.to_owned()));
    assert!(has("rate", "9.6 kbit/s") && has("queue_packets", "1000"));
    assert!(has("ab.loss", "1 %") && has("ba.loss", "3 %"));
    assert_eq!(link.ba.settings()[6], ("loss", "3 %".to_owned()));
}

prop_compose! {
    fn share_of_ten_thousand()(parts in 0_u32..=10_000) -> f64 { f64::from(parts) / 1e4 }
}

prop_compose! {
    fn channels()(
        rate_bps in proptest::option::of(RATE_BPS),
        (delay_ns, jitter_ns) in (0_u64..=3_600_000_000_000, 0_u64..=3_600_000_000_000),
        shape in proptest::sample::select(&Distribution::ALL[..]),
        burst in proptest::option::of(proptest::array::uniform4(share_of_ten_thousand())),
        shares in proptest::array::uniform4(share_of_ten_thousand()),
        correlations in proptest::array::uniform2(share_of_ten_thousand()),
        loss_first: bool,
        queue_packets in 0..=MAX_QUEUE_PACKETS,
        queue_bytes in 0..=MAX_QUEUE_BYTES,
        mtu in proptest::option::of(68_u32..=65_535),
        windows in proptest::collection::vec((0_u64..1 << 50, 1_u64..1 << 40), 0..5),
    ) -> ChannelConfig {
        let text: Vec<String> = windows
            .iter()
            .map(|(from, length)| format!("{from} ns..{} ns", from + length))
            .collect();
        let outages = if text.is_empty() { "none".to_owned() } else { text.join(",") };
        ChannelConfig {
            rate_bps,
            trace: None,
            delay: Duration::from_nanos(delay_ns),
            jitter: Duration::from_nanos(jitter_ns),
            distribution: shape,
            jitter_correlation: correlations[0],
            loss: shares[0],
            loss_correlation: correlations[1],
            burst_loss: burst
                .filter(|b| b[0] + b[1] > 0.0)
                .map(|b| BurstLoss { p: b[0], r: b[1], bad: b[2], good: b[3] }),
            loss_first,
            duplicate: shares[1],
            corrupt: shares[2],
            reorder: shares[3],
            queue_packets,
            queue_bytes,
            mtu,
            outages: Outages::parse(&outages).unwrap(),
        }
    }
}

proptest! {
    #[test]
    fn a_listing_sets_the_same_again(ab in channels(), ba in channels()) {
        let link = LinkConfig { ab, ba };
        let mut again = LinkConfig::default();
        for (key, value) in link.settings() {
            again.set(&key, &value).unwrap();
        }
        prop_assert_eq!(again, link);
    }

    #[test]
    fn no_text_panics(key in "\\PC{0,12}", value in "\\PC{0,40}", known in 0..KEYS.len()) {
        let mut link = LinkConfig::default();
        let _ = link.set(&key, &value);
        let _ = link.set(keys()[known].name, &value);
        let _ = link.apply(&[format!("{key}={value}")], |_| Ok(value.clone()));
    }
}

#[test]
fn the_ranges_in_texts_are_those_in_force() {
    let expected = |name: &str| keys().iter().find(|key| key.name == name).unwrap().expected;
    assert!(expected("queue_packets").contains(&MAX_QUEUE_PACKETS.to_string()));
    assert_eq!(MAX_QUEUE_BYTES, 256 << 20);
    assert_eq!(MAX_OUTAGE_WINDOWS, 1_000);
    assert!(expected("mtu").contains(&format!("{} B to {} B", MTU_BYTES.start(), MTU_BYTES.end())));
    let rates = format!("{} to {}", format_rate(*RATE_BPS.start()), format_rate(*RATE_BPS.end()));
    assert!(expected("rate").contains(&rates), "{rates}");
    assert_eq!(MAX_DELAY, Duration::from_secs(3600));
}
