//! What holds for every link and every traffic.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests may fail them")]

mod common;

use common::{Outcome, Probe};
use longwire_link::{
    BurstLoss, Channel, ChannelConfig, Count, Direction, Distribution, Input, Outages, Trace,
};
use proptest::prelude::*;
use std::time::Duration;

/// What the caller does, with the time since the step before.
#[derive(Clone, Debug)]
enum Step {
    Packet(usize),
    Wake,
    Configure(Box<ChannelConfig>),
}

type Script = Vec<(Duration, Step)>;

fn shares() -> impl Strategy<Value = f64> {
    prop_oneof![3 => Just(0.0), 3 => 0.0..=1.0, 1 => Just(1.0)]
}

fn burst_losses() -> impl Strategy<Value = Option<BurstLoss>> {
    proptest::option::of(
        (shares(), shares(), shares(), shares()).prop_map(|(p, r, bad, good)| BurstLoss {
            p,
            r,
            bad,
            good,
        }),
    )
}

fn transmitters() -> impl Strategy<Value = (Option<u64>, Option<Trace>)> {
    let trace = proptest::collection::vec(0_u32..200, 1..20).prop_map(|mut times| {
        times.sort_unstable();
        times.push(201);
        let text: Vec<String> = times.iter().map(ToString::to_string).collect();
        (None, Some(Trace::parse("generated", &text.join("\n")).unwrap()))
    });
    prop_oneof![
        1 => Just((None, None)),
        4 => (10_u64..10_000_000).prop_map(|rate_bps| (Some(rate_bps), None)),
        1 => trace,
    ]
}

prop_compose! {
    fn configs()(
        (rate_bps, trace) in transmitters(),
        (delay_us, jitter_us) in (0_u64..300_000, 0_u64..100_000),
        shape in proptest::sample::select(&Distribution::ALL[..]),
        (jitter_correlation, loss_correlation) in (shares(), shares()),
        loss in shares(),
        burst_loss in burst_losses(),
        loss_first: bool,
        (duplicate, corrupt, reorder) in (shares(), shares(), shares()),
        (queue_packets, queue_bytes) in (0_u32..20, 0_u64..20_000),
        mtu in proptest::option::of(68_u32..1_600),
        outage in proptest::option::of((1_u64..2_000, 1_u64..500)),
    ) -> ChannelConfig {
        ChannelConfig {
            rate_bps,
            trace,
            delay: Duration::from_micros(delay_us),
            jitter: Duration::from_micros(jitter_us),
            distribution: shape,
            jitter_correlation,
            loss,
            loss_correlation,
            burst_loss,
            loss_first,
            duplicate,
            corrupt,
            reorder,
            queue_packets,
            queue_bytes,
            mtu,
            outages: outage.map_or(Outages::NONE, |(from, length)| {
                Outages::parse(&format!("{from} ms..{} ms", from + length)).unwrap()
            }),
        }
    }
}

fn scripts() -> impl Strategy<Value = Script> {
    let step = prop_oneof![
        12 => (0_usize..1_600).prop_map(Step::Packet),
        2 => Just(Step::Wake),
        1 => configs().prop_map(|config| Step::Configure(Box::new(config))),
    ];
    let gap = prop_oneof![Just(0_u64), 0_u64..2_000, 0_u64..200_000];
    proptest::collection::vec((gap.prop_map(Duration::from_micros), step), 1..80)
}

/// The same traffic over links of which nothing is asked but what `config` says.
fn packets_only(script: &Script) -> Script {
    script.iter().filter(|(_, step)| matches!(step, Step::Packet(_))).cloned().collect()
}

/// Plays a script to its end. `punctual` wakes the channel whenever it asks; else only the script's
/// own inputs do. `look` sees the channel after each input is drained.
fn play(
    config: &ChannelConfig,
    seed: u64,
    script: &Script,
    punctual: bool,
    mut look: impl FnMut(Duration, Option<Duration>, &Channel<Probe>),
) -> Outcome {
    let mut channel = Channel::new(config.clone(), seed, Direction::Ab);
    let (mut outcome, mut now) = (Outcome::default(), Duration::ZERO);
    for (id, (gap, step)) in script.iter().enumerate() {
        now += *gap;
        if punctual {
            outcome.run_until(&mut channel, now);
        }
        channel.handle_input(
            now,
            match step {
                Step::Packet(len_bytes) => Input::Packet(Probe::new(id, *len_bytes)),
                Step::Wake => Input::Wake,
                Step::Configure(config) => Input::Configure(config.clone()),
            },
        );
        let wake = outcome.drain(&mut channel);
        look(now, wake, &channel);
    }
    outcome.run_until(&mut channel, Duration::MAX);
    let rest = channel.stats();
    assert_eq!([rest.queued, rest.in_service, rest.in_flight], [Count::default(); 3]);
    outcome
}

fn ids(outcome: &Outcome) -> Vec<usize> {
    outcome.delivered.iter().map(|(_, packet)| packet.id).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_is_created_or_lost(config in configs(), seed: u64, script in scripts()) {
        let mut last = None;
        let outcome = play(&config, seed, &script, false, |_, _, channel| {
            let stats = channel.stats();
            let held = [stats.queued, stats.in_service, stats.in_flight];
            let out = [stats.delivered, stats.dropped_total()];
            let sum = |part: fn(&Count) -> u64| -> u64 { held.iter().chain(&out).map(part).sum() };
            let offered = stats.offered.packets + stats.duplicated.packets;
            assert_eq!(offered, sum(|count| count.packets));
            let offered = stats.offered.bytes + stats.duplicated.bytes;
            assert_eq!(offered, sum(|count| count.bytes));
            last = Some(stats);
        });
        let (stats, mut seen) = (last.unwrap(), ids(&outcome));
        seen.extend(outcome.dropped.iter().map(|(packet, _)| packet.id));
        let copies = outcome.delivered.iter().filter(|(_, packet)| packet.is_copy).count();
        prop_assert_eq!(seen.len() - copies, packets_only(&script).len());
        prop_assert_eq!(stats.offered.packets, packets_only(&script).len() as u64);
        seen.sort_unstable();
        seen.dedup();
        prop_assert_eq!(seen.len(), packets_only(&script).len(), "each packet has one end");
    }

    #[test]
    fn waking_late_changes_no_due_time(config in configs(), seed: u64, script in scripts()) {
        let punctual = play(&config, seed, &script, true, |_, _, _| {});
        let late = play(&config, seed, &script, false, |_, _, _| {});
        prop_assert_eq!(punctual, late);
    }

    #[test]
    fn a_run_follows_from_seed_and_inputs(config in configs(), seed: u64, script in scripts()) {
        let first = play(&config, seed, &script, true, |_, _, _| {});
        let second = play(&config, seed, &script, true, |_, _, _| {});
        prop_assert_eq!(first, second);
    }

    #[test]
    fn outputs_come_in_time(config in configs(), seed: u64, script in scripts()) {
        let outcome = play(&config, seed, &script, true, |now, wake, _| {
            assert!(wake.is_none_or(|at| at > now), "{wake:?} is not after {now:?}");
        });
        let mut offered_at = Duration::ZERO;
        let offered: Vec<Duration> = script
            .iter()
            .map(|(gap, _)| {
                offered_at += *gap;
                offered_at
            })
            .collect();
        for pair in outcome.delivered.windows(2) {
            prop_assert!(pair[0].0 <= pair[1].0, "deliveries come by due time");
        }
        for (due, packet) in &outcome.delivered {
            prop_assert!(*due >= offered[packet.id]);
        }
    }

    #[test]
    fn nothing_arrives_before_it_can_have_been_sent(
        config in configs(), rate_bps in 10_u64..10_000_000, seed: u64, script in scripts(),
    ) {
        let config = ChannelConfig { rate_bps: Some(rate_bps), trace: None, ..config };
        let script = packets_only(&script);
        let outcome = play(&config, seed, &script, true, |_, _, _| {});
        let mut offered_at = Duration::ZERO;
        let offered: Vec<Duration> = script.iter().map(|(gap, _)| {
            offered_at += *gap;
            offered_at
        }).collect();
        for (due, packet) in &outcome.delivered {
            let airtime_ns = packet.len_bytes as u128 * 8_000_000_000 / u128::from(rate_bps);
            let travel = *due - offered[packet.id];
            prop_assert!(travel.as_nanos() >= airtime_ns);
            let at_least = config.delay.saturating_sub(config.jitter).as_nanos();
            if config.reorder == 0.0 && config.distribution == Distribution::Uniform {
                prop_assert!(travel.as_nanos() >= airtime_ns + at_least);
            }
        }
    }

    #[test]
    fn without_reordering_the_order_is_kept(
        config in configs(), seed: u64, script in scripts(),
    ) {
        let config = ChannelConfig { reorder: 0.0, ..config };
        let keep = |step: &Step| match step {
            Step::Configure(changed) => {
                Step::Configure(Box::new(ChannelConfig { reorder: 0.0, ..*changed.clone() }))
            }
            other => other.clone(),
        };
        let script: Script = script.iter().map(|(gap, step)| (*gap, keep(step))).collect();
        let outcome = play(&config, seed, &script, true, |_, _, _| {});
        prop_assert!(ids(&outcome).is_sorted(), "copies follow their originals");
    }

    #[test]
    fn a_live_change_drops_nothing_that_is_queued(seed: u64, script in scripts()) {
        let plain = |config: &ChannelConfig| ChannelConfig {
            rate_bps: config.rate_bps,
            trace: config.trace.clone(),
            delay: config.delay,
            queue_packets: config.queue_packets.min(1),
            queue_bytes: config.queue_bytes,
            ..ChannelConfig::default()
        };
        let mut before: Option<(u64, u64)> = None;
        let changes: Script = script.iter().map(|(gap, step)| match step {
            Step::Configure(config) => (*gap, Step::Configure(Box::new(plain(config)))),
            other => (*gap, other.clone()),
        }).collect();
        let mut steps = changes.iter();
        play(&ChannelConfig::default(), seed, &changes, false, |_, _, channel| {
            let stats = channel.stats();
            let dropped = stats.dropped_total().packets;
            if let (Some((_, Step::Configure(_))), Some((_, earlier))) = (steps.next(), before) {
                assert_eq!(dropped, earlier);
            }
            before = Some((stats.offered.packets, dropped));
        });
    }

    #[test]
    fn one_setting_leaves_the_other_decisions_alone(
        config in configs(), seed: u64, script in scripts(), delay_us in 0_u64..300_000,
    ) {
        // Without reordering by jitter or a full queue, a delay decides nothing but when.
        let script = packets_only(&script);
        let config = ChannelConfig { queue_packets: 100_000, queue_bytes: 1 << 20, ..config };
        let other = ChannelConfig {
            delay: Duration::from_micros(delay_us),
            jitter: Duration::ZERO,
            ..config.clone()
        };
        let fates = |config: &ChannelConfig| {
            let mut outcome = play(config, seed, &script, true, |_, _, _| {});
            outcome.delivered.sort_by_key(|(_, packet)| (packet.id, packet.is_copy));
            let packets: Vec<Probe> = outcome.delivered.into_iter().map(|(_, p)| p).collect();
            (packets, outcome.dropped)
        };
        prop_assert_eq!(fates(&config), fates(&other));
    }
}
