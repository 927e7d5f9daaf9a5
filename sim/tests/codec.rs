//! A codec that is written here and nowhere else: two relays agree on it when they connect, the
//! decision finds it where it is the best, workers encode in it, and the far side reads it.

#![allow(clippy::unwrap_used)] // Helpers of tests fail as tests do.

use codec::{
    Codec, Decoder, Encoder, Error, Fidelity, Flow, Needs, Options, Properties, Settings,
    StreamDecoder, Table,
};
use coding::Encoding;
use decide::arm::{Prior, Speed};
use decide::policy::Objective;
use link::LinkConfig;
use longwire_sim::Random;
use longwire_sim::repeated::{Messages, Pair, Took};
use relay::{Config, Role};

/// What the codec is for: samples of 32 bits, the least byte first.
const SAMPLES: &str = "application/vnd.example.samples";
const NAME: &str = "steps";
/// A sample with this in place of a step has all 32 bits of it behind.
const LONG: u8 = 15;
/// The same in nibbles.
const LONG_NIBBLES: u32 = 8;

static PROPERTIES: Properties = Properties {
    name: NAME,
    number: 1000,
    fidelity: Fidelity::Bytes,
    flow: Flow::Blocks,
    needs: Needs::Nothing,
    levels: None,
    media: &[SAMPLES],
    form: "none",
};

static STEPS: Steps = Steps;

/// Each sample goes as its step from the one before, in half a byte where it is a short one. What
/// is left of a block behind its samples goes as it is.
struct Steps;

impl Codec for Steps {
    fn properties(&self) -> &'static Properties {
        &PROPERTIES
    }

    fn stream_encoder(&self, _: &Settings) -> Result<Box<dyn Encoder>, Error> {
        Err(no_streams())
    }

    fn stream_decoder(&self, _: &Settings) -> Result<Box<dyn StreamDecoder>, Error> {
        Err(no_streams())
    }

    fn encoder_bytes(&self, _: Options) -> usize {
        size_of::<Context>()
    }

    fn decoder_bytes(&self, _: Options) -> usize {
        size_of::<Context>()
    }

    fn encoder(&self, _: Options) -> Result<Box<dyn Encoder>, Error> {
        Ok(Box::new(Context::default()))
    }

    fn decoder(&self, _: Options) -> Result<Box<dyn Decoder>, Error> {
        Ok(Box::new(Context::default()))
    }
}

fn no_streams() -> Error {
    Error::Option { what: format!("{NAME} has blocks and no streams") }
}

fn corrupt(what: &str) -> Error {
    Error::Corrupt { codec: NAME, what: what.to_owned() }
}

/// The sample before, at either side.
#[derive(Default)]
struct Context {
    before: u32,
}

impl Encoder for Context {
    fn encode(&mut self, block: &[u8], _: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        let (samples, rest) = block.as_chunks();
        let mut nibbles = Vec::new();
        for sample in samples {
            let sample = u32::from_le_bytes(*sample);
            let step = sample.wrapping_sub(std::mem::replace(&mut self.before, sample));
            // Short ones are small, upwards and downwards.
            let step = (step << 1) ^ (step >> 31).wrapping_neg();
            match u8::try_from(step) {
                Ok(short) if short < LONG => nibbles.push(short),
                _ => {
                    nibbles.push(LONG);
                    let shifts = (0..LONG_NIBBLES).rev().map(|at| 4 * at);
                    nibbles.extend(shifts.map(|shift| (step >> shift & 15) as u8));
                }
            }
        }
        out.extend(nibbles.chunks(2).map(|two| two[0] << 4 | two.get(1).unwrap_or(&0)));
        out.extend_from_slice(rest);
        Ok(())
    }
}

impl Decoder for Context {
    fn decode(
        &mut self,
        block: &[u8],
        decoded_len: usize,
        _: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let split = block.len().checked_sub(decoded_len % 4).ok_or_else(|| corrupt("too short"))?;
        let (coded, rest) = block.split_at(split);
        let mut nibbles = coded.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let mut next = || nibbles.next().map(u32::from).ok_or_else(|| corrupt("it ends early"));
        for _ in 0..decoded_len / 4 {
            let mut step = next()?;
            if step == u32::from(LONG) {
                step = (0..LONG_NIBBLES).try_fold(0, |bits, _| Ok(bits << 4 | next()?))?;
            }
            let step = (step >> 1) ^ (step & 1).wrapping_neg();
            self.before = self.before.wrapping_add(step);
            out.extend_from_slice(&self.before.to_le_bytes());
        }
        if nibbles.next().unwrap_or(0) != 0 || nibbles.next().is_some() {
            return Err(corrupt("something is behind its end"));
        }
        out.extend_from_slice(rest);
        Ok(())
    }
}

/// In it.
fn steps() -> Options {
    Options { codec: &STEPS, level: 0, window_log: codec::MIN_WINDOW_LOG }
}

/// A quarter is left, whatever the first bytes look like to others: twice of what really is.
fn expected() -> Prior {
    let speed = Speed { fixed_s: 1e-5, per_byte_s: 1e-8 };
    let size = [0.25_f64.ln(), 0.0, 0.0, 0.0];
    Prior { size, overhead_bytes: 0.0, encode: speed, decode: speed, family: NAME }
}

/// Settings of a side that has the codec, and chooses it where it is the best.
fn learns(role: Role) -> Config {
    let mut encoding = Encoding::auto();
    encoding.add(steps(), expected()).unwrap();
    Config { encoding, ..always(role) }
}

/// The same of one that would take it for everything.
fn always(role: Role) -> Config {
    let codecs = Table::default().with(&STEPS).unwrap();
    Config { codecs, encoding: Encoding::fixed(steps()), ..Config::new(role, 1) }
}

/// What a sensor says: each sample is at most three steps from the one before.
fn samples(random: &mut Random) -> Vec<u8> {
    let mut next = |below| u32::try_from(random.below(below)).unwrap();
    let mut sample = next(1 << 32);
    let mut body = Vec::new();
    for _ in 0..5000 {
        sample = sample.wrapping_add(next(7)).wrapping_sub(3);
        body.extend_from_slice(&sample.to_le_bytes());
    }
    // The last one is not whole.
    body.extend_from_slice(&[1, 2, 3]);
    body
}

/// What some exchanges took whose messages are samples, both ways, and say that they are of this
/// media type. The far side has every byte of each, or the pair panics.
fn exchanges(configs: [Config; 2], media: &'static str, count: usize) -> Vec<Took> {
    let link = LinkConfig::preset("hf-9600").unwrap();
    let mut pair = Pair::of(&link, media, Objective::Time, configs);
    let mut random = Random::new(3);
    let mut exchange = || {
        let (request, answer) = (samples(&mut random), samples(&mut random));
        pair.exchange(&Messages { path: "/sensor".into(), request, answer })
    };
    (0..count).map(|_| exchange()).collect()
}

#[test]
fn what_suits_the_codec_goes_in_it_both_ways() {
    let took = exchanges([learns(Role::Edge), learns(Role::Gateway)], SAMPLES, 12);
    let (first, last) = (&took[0], took.last().unwrap());
    assert_eq!(last.encodings, [NAME; 2]);
    // A sample is half a byte, and whatever else there is needs more.
    assert!(last.request_bytes < 2600 && last.answer_bytes < 2600, "{last:?}");
    assert!(first.request_bytes > 4000 && first.answer_bytes > 4000, "{first:?}");
}

#[test]
fn what_does_not_suit_it_goes_otherwise() {
    let took = exchanges([learns(Role::Edge), learns(Role::Gateway)], "text/plain", 12);
    for one in took {
        assert!(one.encodings.iter().all(|encoding| encoding != NAME), "{one:?}");
    }
}

/// Whoever has the codec would send nothing else, and sends none of it to a peer that lacks it.
#[test]
fn a_peer_without_it_never_gets_it() {
    let all = |edge, gateway| exchanges([edge, gateway], SAMPLES, 3);
    let [edge, gateway] = [always(Role::Edge), always(Role::Gateway)];
    let [old_edge, old_gateway] = [Role::Edge, Role::Gateway].map(|role| Config::new(role, 1));
    for one in all(edge.clone(), gateway.clone()) {
        assert_eq!(one.encodings, [NAME; 2]);
    }
    for one in all(edge, old_gateway) {
        assert_eq!(one.encodings[0], "identity");
        assert_ne!(one.encodings[1], NAME);
    }
    for one in all(old_edge, gateway) {
        assert_ne!(one.encodings[0], NAME);
        assert_eq!(one.encodings[1], "identity");
    }
}

/// Short steps and long ones, blocks of any length; and what is cut or longer is refused.
#[test]
fn blocks_come_back_and_nothing_else_is_taken_for_one() {
    let mut random = Random::new(7);
    let (mut encoder, mut decoder) = (Context::default(), Context::default());
    for len in 0..200_usize {
        let noise = (0..len).map(|_| random.bits().to_le_bytes()[5]);
        let block = if len % 2 == 0 { samples(&mut random) } else { noise.collect() };
        let (mut coded, mut back) = (Vec::new(), Vec::new());
        encoder.encode(&block, false, &mut coded).unwrap();
        decoder.decode(&coded, block.len(), false, &mut back).unwrap();
        assert_eq!(back, block);
        coded.push(0);
        assert!(Context::default().decode(&coded, block.len(), false, &mut back).is_err());
        coded.truncate(coded.len() - 2);
        assert!(Context::default().decode(&coded, block.len(), false, &mut back).is_err());
    }
}
