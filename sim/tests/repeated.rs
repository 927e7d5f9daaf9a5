//! Small messages that repeat, over satcom, once the pair is warm: their time against the least
//! that it could be, and their bytes against gzip.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Helpers of tests fail and tell as tests do.

use std::fmt::Write;

use decide::policy::Objective;
use link::LinkConfig;
use longwire_sim::Random;
use longwire_sim::repeated::{Messages, Pair, bound_s, smallest};

/// Exchanges that are not judged.
const WARM_UP: usize = 8;
/// Those that are.
const JUDGED: usize = 12;
/// What the issue asks for.
const MOST_RATIO: f64 = 1.25;

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
        assert!(sums.ratio <= MOST_RATIO, "{units}: {sums:?}");
    }
}

#[test]
fn small_messages_that_repeat_take_half_of_the_bytes_of_gzip() {
    // Of many units columns of values leave less than a difference.
    for units in [1, 2, 12] {
        let sums = run(units, Objective::Bytes);
        assert!(sums.ratio <= MOST_RATIO, "{units}: {sums:?}");
        assert!(sums.bytes * 2 < sums.gzip, "{units}: {sums:?}");
        assert!(sums.deltas > JUDGED / 2, "{units}: {sums:?}");
    }
}
