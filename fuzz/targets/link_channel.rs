//! Any settings that are accepted, with any traffic: packets are conserved, leave in the order of
//! their due times, never before they came, and the channel comes to rest.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use link::{Channel, Direction, Input, LinkConfig, Output, keys, presets};

fuzz_target!(|data: &[u8]| {
    let Some((&preset, data)) = data.split_first() else { return };
    let presets = presets();
    let preset = &presets[usize::from(preset) % presets.len()];
    let Ok(mut config) = LinkConfig::preset(preset.name) else { panic!("{}", preset.name) };
    let mut parts = data.splitn(2, |&byte| byte == 0);
    let settings = String::from_utf8_lossy(parts.next().unwrap_or_default());
    for line in settings.lines() {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let key = match key.parse::<usize>() {
            Ok(number) => keys()[number % keys().len()].name,
            Err(_) => key,
        };
        let _ = config.set(key, value);
    }
    if config.check().is_ok() {
        traffic(config, parts.next().unwrap_or_default());
    }
});

/// Far above what a few hundred packets can cause.
const MAX_OUTPUTS: usize = 100_000;

fn traffic(config: LinkConfig, data: &[u8]) {
    let mut channel = Channel::new(config.ab, 7, Direction::Ab);
    let (mut now, mut wake_at) = (Duration::ZERO, None);
    for pair in data.chunks_exact(2).take(200) {
        let arrival = now + Duration::from_micros(u64::from(pair[0]).pow(2));
        // Waking may be late: every second packet comes before the channel was looked after.
        while let Some(at) = wake_at.filter(|&at| pair[0].is_multiple_of(2) && at <= arrival) {
            channel.handle_input(at, Input::Wake);
            wake_at = drain(&mut channel, at);
        }
        now = arrival;
        channel.handle_input(now, Input::Packet(vec![0_u8; usize::from(pair[1]) * 6]));
        wake_at = drain(&mut channel, now);
    }
    let stats = channel.stats();
    let gone = stats.delivered.packets + stats.dropped_total().packets;
    let held = stats.queued.packets + stats.in_service.packets + stats.in_flight.packets;
    assert_eq!(stats.offered.packets + stats.duplicated.packets, gone + held);
}

/// Polls until nothing is left; the answer is when to wake it.
fn drain(channel: &mut Channel<Vec<u8>>, now: Duration) -> Option<Duration> {
    let mut last_due = Duration::ZERO;
    for _ in 0..MAX_OUTPUTS {
        match channel.poll_output() {
            Output::Deliver { due, .. } => {
                assert!(due <= now, "delivered before its time");
                assert!(due >= last_due, "delivered out of the order of the due times");
                last_due = due;
            }
            Output::Drop { .. } => {}
            Output::WakeAt(at) => {
                assert!(at > now, "asks to be woken in the past");
                return Some(at);
            }
            Output::Idle => return None,
        }
    }
    panic!("the channel does not come to rest");
}
