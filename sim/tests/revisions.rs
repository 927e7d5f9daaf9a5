//! Bodies that are not the same throughout: what it is worth to decide again at each block.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Helpers of tests fail and tell as tests do.

use std::fmt::Write;

use coding::Encoding;
use decide::policy::Objective;
use link::LinkConfig;
use longwire_sim::Random;
use longwire_sim::repeated::{Messages, Pair, Took};

/// Bytes of a body, a quarter of which is of one sort.
const BODY_BYTES: usize = 4 << 20;
/// Exchanges of each kind, of which the last is judged.
const EXCHANGES: usize = 4;

/// Markup as a catalogue has it.
fn markup(random: &mut Random, bytes: usize) -> Vec<u8> {
    let mut text = String::new();
    while text.len() < bytes {
        let (at, price) = (random.below(1_000_000), random.below(100_000));
        let _ = writeln!(
            text,
            "<item><id>{at:06}</id><name>Part number {at}</name><price unit=\"EUR\">{}.{:02}\
             </price><stock>{}</stock></item>",
            price / 100,
            price % 100,
            random.below(500)
        );
    }
    text.truncate(bytes);
    text.into_bytes()
}

/// What was compressed already.
fn pictures(random: &mut Random, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|_| random.bits().to_le_bytes()[5]).collect()
}

/// The last of some exchanges whose answer is this.
fn run(link: &str, encoding: &str, answer: &[u8]) -> Took {
    let link = LinkConfig::preset(link).unwrap();
    let encoding = Encoding::of(encoding).unwrap();
    let mut pair = Pair::with(&link, "text/xml", Objective::Time, &encoding);
    let messages = Messages { path: "/parts".into(), request: Vec::new(), answer: answer.to_vec() };
    (1..EXCHANGES).for_each(|_| drop(pair.exchange(&messages)));
    pair.exchange(&messages)
}

fn print(body: &str, link: &str, encoding: &str, took: &Took) {
    println!(
        "{body}, {link}, {encoding}: {:.1} s, {} bytes, {:.2} s of encoding, {} turns",
        took.seconds, took.carried[1], took.encode_s, took.revisions
    );
}

#[test]
fn bodies_that_change_go_at_each_block_as_suits_it() {
    let mut random = Random::new(11);
    let (little, much) = (BODY_BYTES / 4, 3 * BODY_BYTES / 4);
    let before = [markup(&mut random, little), pictures(&mut random, much)].concat();
    let behind = [pictures(&mut random, little), markup(&mut random, much)].concat();
    for link in ["los", "satcom"] {
        let [plain, coded, ours] = ["identity", "zstd:3", "auto"].map(|encoding| {
            let took = run(link, encoding, &before);
            print("markup, then pictures", link, encoding, &took);
            took
        });
        assert!(ours.seconds < 1.02 * plain.seconds.min(coded.seconds), "{ours:?}");
        assert!(ours.encode_s < 0.5 * coded.encode_s, "{ours:?}");

        let [plain, coded, ours] = ["identity", "zstd:3", "auto"].map(|encoding| {
            let took = run(link, encoding, &behind);
            print("pictures, then markup", link, encoding, &took);
            took
        });
        assert!(ours.seconds < 0.6 * plain.seconds, "{ours:?}");
        assert!(ours.seconds < 1.1 * coded.seconds, "{ours:?}");
    }
}
