//! How fast each encoding is on this processor: measured once at the start, on a thread of its own,
//! so that the first choices rest on more than what some other machine took.

use std::time::{Duration, Instant};

use codec::Options;
use coding::Speeds;
use decide::arm::{Prior, Speed};
use relay::Input;

use crate::actor::{Handle, Message};
use crate::workers::{Processor, thread_time};

/// Wall time of all encodings together, as long as none is interrupted at its first run.
const BUDGET: Duration = Duration::from_millis(200);
/// Bytes of the short message: what there is to begin and to end with.
const SHORT_BYTES: usize = 2 << 10;
/// Bytes of the long one: a block.
const LONG_BYTES: usize = 64 << 10;
/// Most runs over one message: the least of so many is the codec's own time.
const MAX_RUNS: u32 = 5;
/// Seconds a byte below which nothing that touches each byte can be.
const MIN_PER_BYTE_S: f64 = 1e-11;

/// Measures on a thread of its own, and tells the relay.
pub(crate) fn start(encodings: Vec<Options>, relay: Handle) {
    let processor = Processor::of_environment();
    let measured = move || {
        let usual: Vec<Speeds> = encodings.iter().map(usual).collect();
        let mut all = filled(&usual, &measure(&encodings));
        for Speeds { options, encode, decode } in &mut all {
            (*encode, *decode) = (processor.speed(*encode), processor.speed(*decode));
            tracing::debug!(encoding = options.label(), ?encode, ?decode, "speed");
        }
        relay.send_blocking(Message::Input(Input::Speeds(all)));
    };
    let thread = std::thread::Builder::new().name("speed".to_owned());
    if let Err(error) = thread.spawn(measured) {
        tracing::warn!(%error, "cannot measure the codecs: believing what is usual");
    }
}

/// Measures every encoding, within the budget; `None` for one that was not reached, or that failed.
pub(crate) fn measure(encodings: &[Options]) -> Vec<Option<Speeds>> {
    let began = Instant::now();
    let text = message(LONG_BYTES);
    let mut all = Vec::with_capacity(encodings.len());
    for (at, encoding) in encodings.iter().enumerate() {
        // What an encoding leaves of its share is for the others.
        let left = BUDGET.saturating_sub(began.elapsed());
        let share = left / u32::try_from(encodings.len() - at).unwrap_or(u32::MAX);
        all.push((!left.is_zero()).then(|| speeds(encoding, &text, share)).flatten());
    }
    all
}

/// What is usual, on another processor.
fn usual(encoding: &Options) -> Speeds {
    let Prior { encode, decode, .. } =
        decide::prior::of(&encoding.label()).unwrap_or(Prior::IDENTITY);
    Speeds { options: *encoding, encode, decode }
}

/// Of what was not measured it is believed that this processor takes as many times what is usual as
/// of the rest: beside measured ones the usual speed of another would be no choice but a mistake.
fn filled(usual: &[Speeds], measured: &[Option<Speeds>]) -> Vec<Speeds> {
    let times = |of: fn(&Speeds) -> Speed| {
        let seconds = |speeds: &Speeds| of(speeds).seconds(LONG_BYTES as f64);
        let both = usual.iter().zip(measured).filter_map(|(usual, own)| Some((usual, (*own)?)));
        let logs: Vec<f64> = both
            .filter(|(usual, _)| seconds(usual) > 0.0)
            .map(|(usual, own)| (seconds(&own) / seconds(usual)).ln())
            .filter(|log| log.is_finite())
            .collect();
        (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
    };
    let (encode, decode) = (times(|speeds| speeds.encode), times(|speeds| speeds.decode));
    let here = |usual: &Speeds| Speeds {
        options: usual.options,
        encode: usual.encode.times(encode),
        decode: usual.decode.times(decode),
    };
    usual.iter().zip(measured).map(|(usual, own)| own.unwrap_or_else(|| here(usual))).collect()
}

fn speeds(encoding: &Options, text: &[u8], budget: Duration) -> Option<Speeds> {
    let (mut short, mut long) = (Times::default(), Times::default());
    let began = Instant::now();
    for _ in 0..MAX_RUNS {
        short.add(encoding, text.get(..SHORT_BYTES)?)?;
        long.add(encoding, text)?;
        if began.elapsed() * 2 > budget {
            break;
        }
    }
    Some(Speeds {
        options: *encoding,
        encode: line(short.encode_s, long.encode_s),
        decode: line(short.decode_s, long.decode_s),
    })
}

/// The line through the times of both messages.
fn line(short_s: f64, long_s: f64) -> Speed {
    let per_byte_s = (long_s - short_s) / (LONG_BYTES - SHORT_BYTES) as f64;
    let per_byte_s = per_byte_s.max(MIN_PER_BYTE_S);
    Speed { fixed_s: (short_s - per_byte_s * SHORT_BYTES as f64).max(0.0), per_byte_s }
}

/// The least that each direction took, with the making of its context.
struct Times {
    encode_s: f64,
    decode_s: f64,
}

impl Default for Times {
    fn default() -> Self {
        Self { encode_s: f64::INFINITY, decode_s: f64::INFINITY }
    }
}

impl Times {
    fn add(&mut self, encoding: &Options, text: &[u8]) -> Option<()> {
        let (mut coded, mut plain) = (Vec::new(), Vec::with_capacity(text.len()));
        let before = thread_time();
        encoding.encoder().ok()?.encode(text, true, &mut coded).ok()?;
        let between = thread_time();
        encoding.decoder().ok()?.decode(&coded, text.len(), true, &mut plain).ok()?;
        let after = thread_time();
        self.encode_s = self.encode_s.min(between.saturating_sub(before).as_secs_f64());
        self.decode_s = self.decode_s.min(after.saturating_sub(between).as_secs_f64());
        (plain == text).then_some(())
    }
}

/// An answer as services give them: records of few fields, some of whose values come again.
fn message(bytes: usize) -> Vec<u8> {
    const WORDS: [&str; 8] =
        ["north", "friendly", "pending", "vessel", "convoy", "final", "request", "supply"];
    let mut chance = 1_u64;
    let mut draw = |most: usize| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        usize::try_from(chance >> 33).unwrap_or(0) % most
    };
    let mut text = String::from("<?xml version=\"1.0\"?>\n<answer>\n");
    let mut number = 0;
    while text.len() < bytes {
        number += 1 + draw(3);
        let mut word = || WORDS.get(draw(WORDS.len())).copied().unwrap_or_default();
        let (one, two, three) = (word(), word(), word());
        let (price, day) = (draw(1_000_000), 1 + draw(28));
        text += &format!(
            "  <record id=\"{number}\">\n    <name>{one} {two}</name>\n    <price>{price}</price>\n\
             \x20   <date>2026-11-{day:02}</date>\n    <comment>{three} {two}</comment>\n\
             \x20 </record>\n"
        );
    }
    text.truncate(bytes);
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Options {
        Options::of(text).unwrap()
    }

    #[test]
    fn every_encoding_gets_its_speeds() {
        let names = ["identity", "deflate:9", "zstd:1", "zstd:19", "brotli:9"];
        let encodings: Vec<Options> = names.into_iter().map(of).collect();
        let began = thread_time();
        let all = measure(&encodings);
        let took = thread_time() - began;
        println!("{names:?} in {took:?}: {all:#?}");
        // Twice the budget: the first run of an encoding is not interrupted.
        assert!(took < 2 * BUDGET, "{took:?}");
        let all: Vec<Speeds> = all.into_iter().flatten().collect();
        // On a machine that stalls, the last may not be reached.
        assert!(!all.is_empty());
        for speeds in &all {
            for speed in [speeds.encode, speeds.decode] {
                assert!(speed.fixed_s.is_finite() && speed.fixed_s < 1.0, "{speed:?}");
                assert!((MIN_PER_BYTE_S..1e-4).contains(&speed.per_byte_s), "{speed:?}");
            }
        }
        if let [_, _, fast, strong, ..] = all[..] {
            assert!(fast.encode.seconds(5e4) < strong.encode.seconds(5e4));
        }
    }

    #[test]
    fn what_was_not_reached_is_as_much_slower_as_the_rest() {
        let usual = ["identity", "zstd:1", "deflate:6", "xmill:9"].map(|name| usual(&of(name)));
        let slow = |speeds: &Speeds, encode, decode| {
            let Speeds { options, encode: one, decode: other } = *speeds;
            Some(Speeds { options, encode: one.times(encode), decode: other.times(decode) })
        };
        let [identity, zstd, deflate, xmill] = &usual;
        let measured =
            [slow(identity, 1.0, 1.0), slow(zstd, 4.0, 1.0), slow(deflate, 16.0, 4.0), None];
        let all = filled(&usual, &measured);
        for (one, measured) in all.iter().zip(&measured).take(3) {
            assert_eq!(Some(*one), *measured);
        }
        let seconds = |speed: &Speed| speed.seconds(250e3);
        assert!((seconds(&all[3].encode) / seconds(&xmill.encode) - 8.0).abs() < 1e-9);
        assert!((seconds(&all[3].decode) / seconds(&xmill.decode) - 2.0).abs() < 1e-9);
        // Nothing is known: what is usual.
        assert_eq!(filled(&usual, &[None; 4]), usual);
    }

    #[test]
    fn the_message_compresses_like_one() {
        let text = message(LONG_BYTES);
        assert_eq!(text.len(), LONG_BYTES);
        assert_eq!(&text[..SHORT_BYTES], message(SHORT_BYTES));
        let mut coded = Vec::new();
        of("zstd:3").encoder().unwrap().encode(&text, true, &mut coded).unwrap();
        let share = coded.len() as f64 / LONG_BYTES as f64;
        assert!((0.05..0.35).contains(&share), "{share}");
    }

    #[test]
    fn a_line_through_two_times() {
        let speed = line(30e-6, 650e-6);
        assert!((speed.seconds(SHORT_BYTES as f64) - 30e-6).abs() < 1e-12);
        assert!((speed.seconds(LONG_BYTES as f64) - 650e-6).abs() < 1e-12);
        // Noise may turn it.
        let odd = line(30e-6, 10e-6);
        assert!(odd.fixed_s > 0.0 && odd.per_byte_s > 0.0);
    }
}
