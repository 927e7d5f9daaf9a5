//! What a peer or a transport says that cannot be: it is ignored with an event, and messages get
//! through ([`Pair::asks`] compares what came with what was sent).

use decide::estimate::Transport;
use proto::control::{Drained, Processor, Receipt};
use proto::stream::Hello;

use super::*;

const BOTH: [Role; 2] = [Role::Edge, Role::Gateway];
const DAY: Duration = Duration::from_secs(86_400);

fn hears(pair: &mut Pair, role: Role, frame: &Part) {
    let mut bytes = Vec::new();
    Frame::from(frame.clone()).encode(&mut bytes);
    let carrier = pair.carrier;
    pair.tell(role, Input::Received { carrier, bytes: bytes.into() });
}

/// How often a side has ignored something of a kind.
fn ignored(pair: &mut Pair, role: Role, kind: &str) -> usize {
    let facts = pair.end(role).facts.iter();
    facts.filter(|fact| matches!(fact, Fact::Ignored { what, .. } if what == kind)).count()
}

/// Messages that none before could tell.
fn ask(pair: &mut Pair, seed: u32) {
    pair.asks("", &[], &track(seed, "<a/>"), &track(seed + 500, "<a/>"));
}

#[test]
fn what_later_versions_say_is_ignored_with_an_event() {
    let frames = [
        ("receipt", Receipt::KIND, &[5, 1, 0, 0, 0, 0][..]),
        ("base", Keeping::KIND, &[200, 1, 2, 3]),
        ("drained", Drained::KIND, &[1, 2, 3]),
        ("profile", Processor::KIND, &[2, 1, 2, 3]),
        ("control", 77, &[1, 2, 3]),
    ];
    for (at, (what, kind, content)) in (0_u32..).zip(frames) {
        let mut pair = Pair::new();
        ask(&mut pair, at);
        for role in BOTH {
            hears(&mut pair, role, &Part::Control(kind, Bytes::copy_from_slice(content)));
            assert_eq!(ignored(&mut pair, role, what), 1, "{what}");
        }
        ask(&mut pair, at + 1);
    }
}

#[test]
fn a_peer_that_speaks_later_versions_too_is_understood_and_one_that_speaks_no_other_refused() {
    for least in [1, 2] {
        let mut relay = Relay::new(Config::new(Role::Edge, 1));
        let (exchange, outputs) = asks(&mut relay, ms(0), "GET", true);
        let [Output::Dial { carrier, .. }] = outputs[..] else { panic!("{outputs:?}") };
        relay.handle_input(
            ms(0),
            Input::CarrierUp { carrier, kind: CarrierKind::FIRST, peer: "peer".into() },
        );
        let hello = Hello {
            version_min: least,
            version_max: 9,
            instance: 9,
            initial_credit: 1 << 20,
            max_exchanges: 8,
            codecs: vec![0],
            max_window_log: 20,
            anew: false,
            parallel: false,
            counts: false,
            packs: false,
        };
        let mut bytes = Vec::new();
        Frame::Hello(hello).encode(&mut bytes);
        relay.handle_input(ms(1), Input::Received { carrier, bytes: bytes.into() });
        let mut outputs: Vec<_> = std::iter::from_fn(|| relay.poll_output()).collect();
        let mut bytes = Vec::new();
        Frame::from(response_frame(exchange.number, true)).encode(&mut bytes);
        relay.handle_input(ms(2), Input::Received { carrier, bytes: bytes.into() });
        outputs.extend(std::iter::from_fn(|| relay.poll_output()));
        let answered = outputs.iter().any(|output| matches!(output, Output::Head { .. }));
        let reported = outputs.iter().any(|output| match output {
            Output::Event(event) => match &event.fact {
                Fact::CarrierDown { reason, .. } => reason.contains("version"),
                _ => false,
            },
            _ => false,
        });
        assert_eq!((answered, reported), (least == 1, least == 2), "{outputs:?}");
        // Who was refused has not got the request, and no other try would end otherwise.
        let another_way = |output: &Output| matches!(output, Output::Abort { untouched: true, .. });
        assert_eq!(outputs.iter().any(another_way), least == 2);
        assert_eq!(relay.load().exchanges, 0);
    }
}

#[test]
fn who_lies_about_decoding_or_whose_clock_leaps_is_ignored_with_an_event() {
    let lies = [
        Receipt { decode: DAY, ..Receipt::default() },
        Receipt { decode: Duration::MAX, ..Receipt::default() },
        Receipt { tail: 365 * DAY, ..Receipt::default() },
        Receipt { bytes: 10, spread: DAY, ..Receipt::default() },
        Receipt { bytes: 10, spread: Duration::ZERO, ..Receipt::default() },
    ];
    for lie in lies {
        let mut pair = Pair::new();
        for seed in 0..8 {
            ask(&mut pair, seed);
            // It comes before what is true.
            let exchange = pair.edge.relay.next_number - 1;
            hears(&mut pair, Role::Gateway, &Receipt { exchange, ..lie }.part());
        }
        assert_eq!(ignored(&mut pair, Role::Gateway, "receipt"), 8, "{lie:?}");
    }
    // What can just be true is believed, and costs no byte of any message.
    let mut pair = Pair::new();
    for seed in 0..20 {
        ask(&mut pair, seed);
        let exchange = pair.edge.relay.next_number - 1;
        pair.now += ms(900);
        hears(
            &mut pair,
            Role::Gateway,
            &Receipt { exchange, decode: ms(900), ..Receipt::default() }.part(),
        );
    }
    assert_eq!(ignored(&mut pair, Role::Gateway, "receipt"), 0);
}

/// It never goes back ([`Relay::handle_input`]); the time of day is asked by nobody here.
#[test]
fn the_own_clock_may_leap() {
    for leap in [DAY, 365 * DAY] {
        let mut pair = Pair::new();
        (0..3).for_each(|seed| ask(&mut pair, seed));
        pair.held = Some(Vec::new());
        pair.begins("", &[], &track(7, ""), &track(8, ""));
        pair.now += leap;
        for (role, input) in pair.held.take().unwrap() {
            pair.tell(role, input);
        }
        assert_eq!(pair.edge.body, track(8, ""), "{leap:?}");
        (10..15).for_each(|seed| ask(&mut pair, seed));
    }
}

#[test]
fn a_link_of_nothing_or_without_end_is_not_believed() {
    let real = Transport {
        rtt: ms(40),
        min_rtt: ms(40),
        delivered_bytes_per_s: 125_000,
        segments_out: 100,
        window_segments: 10,
        segment_bytes: 1448,
        ..Transport::default()
    };
    let endless = [
        Transport { delivered_bytes_per_s: u64::MAX, ..real },
        Transport { rtt: Duration::MAX, ..real },
        Transport { min_rtt: Duration::MAX, ..real },
    ];
    let nothing = [
        Transport { rtt: ms(0), min_rtt: ms(0), delivered_bytes_per_s: 0, ..real },
        Transport { segment_bytes: 0, window_segments: 0, ..real },
        Transport::default(),
    ];
    for (reported, absurd) in [(1, endless), (0, nothing)] {
        for transport in absurd {
            let mut pair = Pair::new();
            ask(&mut pair, 0);
            for role in BOTH {
                let carrier = pair.carrier;
                pair.tell(role, Input::Transport { carrier, transport: real });
                pair.tell(role, Input::Transport { carrier, transport });
                // What nobody has measured is no news; what cannot be is.
                assert_eq!(ignored(&mut pair, role, "link"), reported, "{transport:?}");
            }
            ask(&mut pair, 1);
            let figures = pair.edge.relay.links()[0].figures;
            assert!((1e3..=1e8).contains(&figures.rate_bps.value), "{figures:?}");
            assert!((1e-3..=1.0).contains(&figures.rtt_s.value), "{figures:?}");
        }
    }
}
