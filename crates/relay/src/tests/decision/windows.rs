//! Messages that fill a window, the transport's or their credit: the rest waits for what comes
//! back, which is no rate.

use super::*;

/// A window that is full but for what the head and the frames take: the last packet waits for what
/// comes back, though the bytes behind the first piece are far fewer than the window.
#[test]
fn a_message_that_fills_its_window_tells_no_rate() {
    let mut side = Side::new(auto());
    let transport = Transport {
        rtt: ms(100),
        min_rtt: ms(100),
        delivered_bytes_per_s: 11_600_000,
        segments_out: 200,
        window_segments: 1000,
        segment_bytes: 1448,
        ..Transport::default()
    };
    side.tell(Input::Transport { carrier: CARRIER, transport });
    let rate = |side: &Side| side.relay.links()[0].figures.rate_bps.value;
    let known = rate(&side);
    let sent = body_bytes(&side.posts(&xml(6000), None).1) as u64;
    let window_segments = u32::try_from(sent / 1448 + 1).unwrap();
    let transport = Transport { window_segments, ..transport };
    side.tell(Input::Transport { carrier: CARRIER, transport });
    let (exchange, frames) = side.posts(&xml(6000), None);
    assert!(body_bytes(&frames) as u64 <= u64::from(window_segments) * 1448);
    side.now += ms(160);
    let (bytes, spread) = (sent / 2, ms(100));
    side.hears(Receipt { exchange, bytes, spread, ..Receipt::default() }.part());
    side.tell(Input::Transport { carrier: CARRIER, transport });
    assert_eq!(side.ignored(), 0);
    assert!(rate(&side) > known / 2.0, "{} of {known}", rate(&side));
}

/// What is written apart leaves in more packets than its bytes fill: the kernel says how many. It
/// is the last of them that waited for what comes back.
#[test]
fn packets_that_left_short_fill_the_window_too() {
    for short in [0, 20] {
        let mut side = Side::new(auto());
        let sent = body_bytes(&side.posts(&xml(6000), None).1);
        let packets = u32::try_from(sent / 1448).unwrap();
        let transport = Transport {
            rtt: ms(100),
            min_rtt: ms(100),
            delivered_bytes_per_s: 11_600_000,
            segments_out: 200,
            bytes_out: 1448 * 200,
            window_segments: packets + 8,
            segment_bytes: 1448,
            ..Transport::default()
        };
        side.tell(Input::Transport { carrier: CARRIER, transport });
        let rate = |side: &Side| side.relay.links()[0].figures.rate_bps.value;
        let (exchange, frames) = side.posts(&xml(6000), None);
        assert!(body_bytes(&frames).abs_diff(sent) < 100);
        side.now += ms(160);
        let bytes = sent as u64;
        side.hears(
            Receipt { exchange, bytes: bytes * 9 / 10, spread: ms(100), ..Receipt::default() }
                .part(),
        );
        let segments_out = 200 + packets + 1 + short;
        let transport = Transport { segments_out, bytes_out: 1448 * 200 + bytes, ..transport };
        side.tell(Input::Transport { carrier: CARRIER, transport });
        assert_eq!(side.ignored(), 0);
        let taught = 72.0 * bytes as f64;
        assert_eq!(
            (rate(&side) / taught - 1.0).abs() < 0.1,
            short == 0,
            "{} of {taught}",
            rate(&side)
        );
    }
}

/// The peer decodes slowly and gives credit when it is done: what waited for that is its time.
#[test]
fn what_waited_for_credit_is_no_rate_of_the_link() {
    let mut side = Side::new(auto());
    let body = xml(90_000);
    let (exchange, frames) = side.posts(&body, None);
    let before = body_bytes(&frames) as u64;
    side.now += ms(500);
    let rest = side.peer_sends(&[Part::Credit(exchange, 1 << 20)]);
    let behind = body_bytes(&rest) as u64;
    assert!(before > 90_000 && behind > 10_000, "{before} {behind}");
    side.now += ms(80);
    let (bytes, spread) = (before / 2 + behind, ms(520));
    side.hears(Receipt { exchange, bytes, spread, ..Receipt::default() }.part());
    assert_eq!((side.ignored(), side.outcomes().len()), (0, 1));
    let rate = side.relay.links()[0].figures.rate_bps;
    assert!(rate.weight == 0.0, "{rate:?}");
}
