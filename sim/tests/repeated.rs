//! Small messages that repeat, over satcom, once the pair is warm: their time against the least
//! that it could be, and their bytes against gzip.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Helpers of tests fail and tell as tests do.

use std::fmt::Write;

use decide::policy::Objective;
use link::LinkConfig;
use longwire_sim::Random;
use longwire_sim::repeated::{Messages, Pair, Took, bound_s, smallest};
use relay::Role;

/// Exchanges that are not judged.
const WARM_UP: usize = 8;
/// Those that are.
const JUDGED: usize = 12;
/// What the issue asks for.
const MAX_RATIO: f64 = 1.25;

/// Positions of so many units that move, as a service of tracks sends them.
fn tracks(random: &mut Random, units: u64) -> Vec<u8> {
    let mut body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<soap:Envelope \
         xmlns:soap=\"http://schemas.xmlsoap.org/soap/envelope/\"><soap:Header><id>{:016x}</id>\
         </soap:Header><soap:Body><positions xmlns=\"urn:example:positions\">",
        random.bits()
    );
    for unit in 0..units {
        let _ = write!(
            body,
            "<position><unit>1-{unit:03}</unit><type>infantry</type><affiliation>friend\
             </affiliation><latitude>52.{:06}</latitude><longitude>13.{:06}</longitude><speed>{}\
             </speed><bearing>{}</bearing><reported>2026-11-22T05:{:02}:{:02}Z</reported>\
             </position>",
            random.below(10_000) + 410_000,
            random.below(10_000) + 220_000,
            random.below(20),
            random.below(360),
            random.below(60),
            random.below(60),
        );
    }
    body.push_str("</positions></soap:Body></soap:Envelope>\n");
    body.into_bytes()
}

fn query(random: &mut Random) -> Vec<u8> {
    let id = random.bits();
    format!(
        "<soap:Envelope xmlns:soap=\"http://schemas.xmlsoap.org/soap/envelope/\"><soap:Header><id>\
         {id:016x}</id></soap:Header><soap:Body><getPositions xmlns=\"urn:example:positions\"/>\
         </soap:Body></soap:Envelope>"
    )
    .into_bytes()
}

/// What the exchanges behind the warm-up took in all.
#[derive(Debug, Default)]
struct Sums {
    ratio: f64,
    bytes: u64,
    gzip: u64,
    deltas: usize,
}

fn run(units: u64, objective: Objective) -> Sums {
    let link = LinkConfig::preset("satcom").unwrap();
    let mut random = Random::new(7);
    let mut pair = Pair::new(&link, "text/xml", objective);
    let (mut sums, mut seconds, mut bound) = (Sums::default(), 0.0, 0.0);
    let mut before = Messages::default();
    for at in 0..WARM_UP + JUDGED {
        let (request, answer) = (query(&mut random), tracks(&mut random, units));
        let messages = Messages { path: "/tracks".to_owned(), request, answer };
        let took = pair.exchange(&messages);
        if at >= WARM_UP {
            let q = smallest(&messages.request, Some(&before.request));
            let b = smallest(&messages.answer, Some(&before.answer));
            bound += bound_s(&link, q, b);
            seconds += took.seconds;
            sums.bytes += took.answer_bytes;
            let settings = codec::Settings { level: Some(9), ..codec::Settings::default() };
            sums.gzip += settings.encode("deflate", &messages.answer).unwrap().len() as u64;
            sums.deltas += usize::from(took.encodings[1] == "delta");
        }
        before = messages;
    }
    sums.ratio = seconds / bound;
    println!("{units} tracks, {objective:?}: {sums:?}");
    sums
}

#[test]
fn small_messages_that_repeat_take_little_longer_than_they_must() {
    for units in [1, 2, 12, 64] {
        let sums = run(units, Objective::Time);
        assert!(sums.ratio <= MAX_RATIO, "{units}: {sums:?}");
    }
}

#[test]
fn small_messages_that_repeat_take_half_of_the_bytes_of_gzip() {
    // Of many units columns of values leave less than a difference.
    for units in [1, 2, 12] {
        let sums = run(units, Objective::Bytes);
        assert!(sums.ratio <= MAX_RATIO, "{units}: {sums:?}");
        assert!(sums.bytes * 2 < sums.gzip, "{units}: {sums:?}");
        assert!(sums.deltas > JUDGED / 2, "{units}: {sums:?}");
    }
}

/// A message of one of many operations, none of which has been seen twice of late.
fn sundry(random: &mut Random, at: u8) -> Messages {
    let letter = |at: u8| char::from(b'a' + at % 26);
    let path = format!("/{}{}{}", letter(at), letter(at / 5), letter(at.wrapping_mul(7)));
    Messages { path, request: query(random), answer: tracks(random, 2) }
}

/// What a message takes on a warm pair of which one side is killed and starts again before it.
fn after_restart(role: Role, disk: bool) -> Took {
    let link = LinkConfig::preset("satcom").unwrap();
    let mut random = Random::new(9);
    let mut pair = Pair::new(&link, "text/xml", Objective::Bytes);
    (0..60).for_each(|at| drop(pair.exchange(&sundry(&mut random, at))));
    pair.restart(role, disk);
    pair.exchange(&sundry(&mut random, 99))
}

#[test]
fn a_side_that_is_killed_has_its_dictionaries_again_at_once() {
    for role in [Role::Edge, Role::Gateway] {
        let [with, without] = [true, false].map(|disk| after_restart(role, disk));
        println!("{role:?}: {with:?}, and had it lost them: {without:?}");
        assert_eq!(with.encodings, ["zstd-dictionary:19"; 2], "{role:?}");
        // What the killed side had made is gone with its disk.
        let (own, bytes) = match role {
            Role::Edge => (&without.encodings[0], [with.request_bytes, without.request_bytes]),
            Role::Gateway => (&without.encodings[1], [with.answer_bytes, without.answer_bytes]),
        };
        assert!(own != "zstd-dictionary:19" && bytes[0] * 5 < bytes[1] * 4, "{role:?}");
    }
}
