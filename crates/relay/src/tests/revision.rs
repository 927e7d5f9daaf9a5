//! Revision: behind a message's first block, blocks flow while more are made, and are encoded
//! otherwise than those before where that has become better.

mod contexts;
mod pair;

use decide::estimate::Transport;
use record::event::Fact;

use self::pair::*;
use super::*;

const EDGE: usize = 0;
const GATEWAY: usize = 1;
/// Services whose infoset is enough, and of which the fewest bytes are wanted.
const OF_INFOSET: usize = 1;
const OF_BYTES: usize = 2;
/// One whose bodies go in brotli, at levels that want most memory for small windows, or not.
const OF_BROTLI: usize = 3;
/// One whose bodies go in a single encoding, or not.
const OF_ONE: usize = 4;
/// Most revisions of a message, as the map has it.
const MAX_REVISIONS: usize = 6;

fn is_revised(fact: &Fact) -> bool {
    matches!(fact, Fact::Outcome { outcome, .. } if !outcome.revisions.is_empty())
}

#[test]
fn what_no_longer_compresses_is_no_longer_coded() {
    for from in [EDGE, GATEWAY] {
        let (first, rest) = (1 << 20, 3 << 20);
        let body = [xml(first), noise(rest, 1)].concat();
        let mut pair = Pair::new(from, Encoding::auto());
        pair.sends(&body, 40_000, Some(body.len()));
        pair.check(&body);
        let [revision] = pair.revisions() else { panic!("{:?}", pair.revisions()) };
        assert_eq!(revision.encoding, "identity");
        let at = usize::try_from(revision.at_bytes).unwrap();
        assert!((first..first + (3 << 16)).contains(&at), "{revision:?}");
        assert!(pair.encoded < first + (5 << 16), "{} bytes were encoded", pair.encoded);
        assert!(pair.carried < rest + first / 2);
    }
}

#[test]
fn what_begins_to_compress_is_coded_from_there_on() {
    for length in [true, false] {
        let body = [noise(256 << 10, 2), xml(3 << 20)].concat();
        let mut pair = Pair::new(GATEWAY, Encoding::auto());
        pair.sends(&body, 40_000, length.then_some(body.len()));
        pair.check(&body);
        let revisions = pair.revisions();
        assert!(revisions.len() == 1 && revisions[0].encoding != "identity", "{revisions:?}");
        assert!((256 << 10..448 << 10).contains(&revisions[0].at_bytes), "{revisions:?}");
        assert!(pair.carried < body.len() / 3, "{} of {}", pair.carried, body.len());
        assert_eq!(pair.began, 1);
    }
}

#[test]
fn where_nothing_changes_nothing_is_revised() {
    let body = xml(2 << 20);
    let mut pair = Pair::new(GATEWAY, Encoding::auto());
    pair.sends(&body, 40_000, None);
    pair.check(&body);
    assert!(pair.revisions().is_empty(), "{:?}", pair.revisions());
    assert!(pair.encoded >= body.len() && pair.carried < body.len() / 3);

    let body = noise(2 << 20, 3);
    pair.sends(&body, 40_000, None);
    let before = pair.encoded;
    pair.sends(&body, 40_000, None);
    pair.check(&body);
    assert!(pair.revisions().is_empty() && pair.encoded == before, "{:?}", pair.revisions());
}

#[test]
fn what_changes_to_and_fro_is_revised_only_so_often() {
    for unit in [8_000, 64 << 10, 100_000, 300_000, 1 << 20] {
        let units = (6 << 20) / unit;
        let of = |at: usize| if at.is_multiple_of(2) { xml(unit) } else { noise(unit, at as u64) };
        let body: Vec<u8> = (0..units).flat_map(of).collect();
        let mut pair = Pair::new(GATEWAY, Encoding::auto());
        pair.sends(&body, 30_000, None);
        pair.check(&body);
        assert!(pair.revisions().len() <= MAX_REVISIONS, "{unit}: {:?}", pair.revisions());
        // Half of it compresses, and of that much is found.
        assert!(pair.carried < body.len() * 9 / 10, "{unit}: {}", pair.carried);
        assert!(pair.began <= 4, "what is tried at first, and one context");
    }
}

#[test]
fn the_split_of_a_message_that_was_revised_adds_up() {
    let body = [xml(300_000), noise(900_000, 4)].concat();
    let mut pair = Pair::new(GATEWAY, Encoding::auto());
    pair.sends(&body, 40_000, None);
    let outcome = pair.outcome();
    assert_eq!(outcome.body_bytes, body.len() as u64);
    assert!(!outcome.revisions.is_empty() && outcome.encoding != "identity");
    let (error, split) = (outcome.actual.total_s() - outcome.expected.total_s(), &outcome.split);
    let sum = split.encode_s + split.decode_s + split.network_s + split.size_s;
    // Parts are rounded, the split is not.
    let scale = outcome.expected.total_s() + outcome.actual.total_s();
    assert!((error - sum).abs() < 1e-4 * scale, "{error} {sum}");
}

/// A mixture teaches of no encoding how it does on either part.
#[test]
fn a_message_that_was_revised_teaches_nothing_of_its_encoding() {
    let mut pair = Pair::new(GATEWAY, Encoding::auto());
    // The carrier takes no time, and that would be learned.
    pair.service = OF_BYTES;
    let plain = xml(800_000);
    let mixed = [xml(400_000), noise(400_000, 5)].concat();
    (0..12).for_each(|_| pair.sends(&plain, 40_000, Some(plain.len())));
    for _ in 0..4 {
        pair.sends(&mixed, 40_000, Some(mixed.len()));
        assert!(!pair.revisions().is_empty(), "{:?}", pair.outcome());
    }
    pair.sends(&plain, 40_000, Some(plain.len()));
    let outcome = pair.outcome();
    let ratio = outcome.expected.bytes as f64 / outcome.actual.bytes as f64;
    assert!((0.5..2.0).contains(&ratio), "{outcome:?}");
}

/// One that went in an encoding but for its end tells what that is like, of its decoder too.
#[test]
fn a_message_that_was_hardly_revised_teaches_what_it_mostly_went_in() {
    let mut pair = Pair::new(GATEWAY, Encoding::auto());
    pair.service = OF_BYTES;
    let body = [xml(3 << 20), noise(200_000, 6)].concat();
    let mut sends = || {
        pair.sends(&body, 40_000, Some(body.len()));
        assert!(!pair.revisions().is_empty(), "{:?}", pair.outcome());
        pair.outcome().clone()
    };
    let first = sends();
    let last = (0..4).map(|_| sends()).last().unwrap();
    assert_eq!(last.encoding, first.encoding);
    let (before, after) = (first.expected.decode_s, last.expected.decode_s);
    assert!(after < 0.3 * before, "{before} {after} of {}", last.actual.decode_s);
}

/// An encoder is far slower than expected: the first block shows it, and with the next message it
/// is not found out again.
#[test]
fn what_was_too_slow_and_revised_is_not_begun_again() {
    let mut pair = Pair::new(GATEWAY, Encoding::auto());
    let (carrier, rtt) = (pair.carrier.unwrap(), ms(20));
    let transport = Transport {
        rtt,
        min_rtt: rtt,
        delivered_bytes_per_s: 2 << 20,
        window_segments: 1000,
        segment_bytes: 1448,
        ..Transport::default()
    };
    pair.tell(GATEWAY, Input::Transport { carrier, transport });
    (pair.service, pair.slower) = (OF_ONE, 400.0);
    let body = xml(600_000);
    let mut revised = 0;
    for _ in 0..12 {
        pair.sends(&body, body.len(), Some(body.len()));
        revised += usize::from(!pair.revisions().is_empty());
    }
    assert!((1..=2).contains(&revised), "{revised}");
}

/// A body begins on a path of so many bytes a second, with so many bytes, and the path fades, which
/// only the counters tell: nothing else is under way.
fn faded(pair: &mut Pair, body: &[u8], bytes_per_s: u64, first: usize) {
    let carrier = pair.carrier.unwrap();
    let fast = Transport {
        rtt: Duration::from_micros(20),
        min_rtt: Duration::from_micros(20),
        delivered_bytes_per_s: bytes_per_s,
        window_segments: 4000,
        segment_bytes: 1448,
        ..Transport::default()
    };
    pair.tell(pair.from, Input::Transport { carrier, transport: fast });
    let exchange = pair.begins(None);
    let (fair, faded) = body.split_at(1 << 20);
    let (first, fair) = fair.split_at(first);
    pair.hands_over(exchange, first);
    pair.pass(coding::BLOCK_PAUSE);
    pair.hands_over(exchange, fair);
    pair.before = pair.encoded;
    let (delivered_bytes_per_s, window_segments) = (30_000, 100);
    let (rtt, min_rtt) = (ms(400), ms(20));
    pair.counters =
        Some(Transport { rtt, min_rtt, delivered_bytes_per_s, window_segments, ..fast });
    for piece in faded.chunks(100_000) {
        pair.hands_over(exchange, piece);
        pair.pass(coding::BLOCK_PAUSE);
    }
    pair.ends(exchange);
    pair.check(body);
}

#[test]
fn a_fade_amid_a_body_makes_it_worth_coding() {
    let mut pair = Pair::new(GATEWAY, Encoding::auto());
    faded(&mut pair, &xml(4 << 20), 20 << 30, 0);
    assert_eq!(pair.before, 0, "nothing gains on such a path");
    assert!(!pair.revisions().is_empty() && pair.encoded > 2 << 20, "{:?}", pair.revisions());
}

#[test]
fn operators_who_fix_an_encoding_get_it_for_every_block() {
    let body = [xml(300_000), noise(300_000, 6)].concat();
    for name in ["zstd:3", "nam"] {
        let mut pair = Pair::new(GATEWAY, Encoding::of(name).unwrap());
        (0..3).for_each(|_| pair.sends(&body, 40_000, None));
        pair.check(&body);
        if name != "nam" {
            assert_eq!(pair.encoded, 3 * body.len());
        }
        assert!(!pair.facts.iter().any(is_revised));
    }
}

/// Whatever the body is made of and wherever the carrier breaks: all of it, or its beginning and a
/// failure.
#[test]
fn bodies_of_all_sorts_come_whole_or_are_reported_to_be_lost() {
    let mut revised = 0;
    for seed in 0..60_u64 {
        let mut numbers = noise(64, seed + 100).into_iter().map(usize::from);
        let mut number = || numbers.next().unwrap();
        let parts = 1 + number() % 6;
        let part =
            |at: usize, len| if at.is_multiple_of(2) { xml(len) } else { noise(len, at as u64) };
        let begins = number() % 2;
        let body: Vec<u8> =
            (0..parts).flat_map(|at| part(at + begins, 1000 + number() * 700)).collect();
        let length = (number() % 2 == 0).then_some(body.len());
        let piece_bytes = 500 + number() * 300;
        let mut pair = Pair::new(number() % 2, Encoding::auto());
        let cut = number() % 3 == 0;
        if cut {
            pair.left = 50 + number() * number() * 3;
        }
        pair.sends(&body, piece_bytes, length);
        pair.pass(Duration::from_secs(300));
        if cut && !pair.ended {
            assert!(pair.failed, "seed {seed}: neither whole nor told");
            assert!(body.starts_with(&pair.got), "seed {seed}");
            assert!(pair.relays.iter().all(|relay| relay.load().codec_bytes == 0), "seed {seed}");
            continue;
        }
        pair.check(&body);
        revised += usize::from(pair.facts.iter().any(is_revised));
    }
    assert!(revised > 5, "{revised} turned");
}

/// The service makes a little, and waits: what it has made is there before it makes more, whatever
/// the codec would like to keep back.
#[test]
fn what_is_made_so_far_arrives_before_more_is_made() {
    let all = ["identity", "deflate:9", "zstd:19", "brotli:9", "xmill:5", "nam", "auto", "infoset"];
    for name in all {
        for from in [EDGE, GATEWAY] {
            let service = if name == "infoset" { OF_INFOSET } else { 0 };
            let mut encoding = Encoding::of(if service > 0 { "auto" } else { name }).unwrap();
            encoding.allow_infoset();
            let mut pair = Pair::new(from, encoding);
            let body = xml(40_000);
            pair.service = service;
            let exchange = pair.begins(None);
            for made in (4_000..=body.len()).step_by(4_000) {
                pair.hands_over(exchange, &body[made - 4_000..made]);
                // The pause after which a block closes, and no longer.
                pair.pass(coding::BLOCK_PAUSE);
                assert_eq!(pair.got.len(), made, "{name}");
                assert!(!pair.ended);
                pair.pass(ms(3000));
            }
            pair.ends(exchange);
            pair.check(&body);
        }
    }
}

#[test]
fn a_fade_amid_a_coded_body_makes_it_worth_coding_more() {
    for (from, anew) in [(EDGE, true), (EDGE, false), (GATEWAY, true), (GATEWAY, false)] {
        let mut pair = Pair::with(from, Encoding::auto(), anew);
        faded(&mut pair, &xml(3 << 20), 40 << 20, 0);
        assert!(pair.before > 0, "it is coded from the beginning");
        let [first, ..] = pair.revisions() else {
            assert!(!anew, "{:?}", pair.outcome());
            continue;
        };
        assert!(anew && first.encoding != "identity", "{:?}", pair.outcome());
        let codec = |label: &str| label.split(':').next().map(str::to_owned);
        assert_eq!(codec(&first.encoding), codec(&pair.outcome().encoding));
    }
}

/// The head of a body of unknown length names a small window, and what goes on behind it has that
/// one: levels whose memory does not suffice for it are not gone on in.
#[test]
fn what_goes_on_otherwise_has_the_memory_that_it_takes() {
    let mut pair = Pair::new(GATEWAY, Encoding::auto());
    pair.service = OF_BROTLI;
    faded(&mut pair, &xml(3 << 20), 20 << 30, 4000);
    assert!(pair.encoded > 0, "{:?}", pair.revisions());
}
