//! Damaged streams and damaged messages, for every codec of the table: a result or an error, never
//! a panic, and never more than the limits.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Tests.

mod common;

use common::{Chance, samples, settings};
use longwire_codec::{CODECS, Codec, Settings};

/// Longest sample that is damaged: faults in longer ones find no other code.
const MAX_SAMPLE_BYTES: usize = 4000;

/// Faulty variants of each sample: few of a codec that takes microseconds a byte.
fn variants(codec: &dyn Codec) -> usize {
    if codec.name() == "mix-dictionary" { 15 } else { 150 }
}

/// The samples to damage, and settings at the codec's fastest level.
fn prepared(codec: &dyn Codec) -> (Vec<Vec<u8>>, Settings) {
    let mut samples = samples(codec);
    samples.retain(|sample| sample.len() <= MAX_SAMPLE_BYTES);
    let level = codec.levels().map(|(least, ..)| least);
    (samples, Settings { level, ..settings(codec) })
}

/// The sample as streams of the least, the usual and the greatest level: their forms may differ.
fn streams(codec: &dyn Codec, settings: &Settings, sample: &[u8]) -> Vec<Vec<u8>> {
    let levels = codec
        .levels()
        .map_or(vec![None], |(least, usual, most)| vec![Some(least), Some(usual), Some(most)]);
    let at = |level| Settings { level, ..settings.clone() }.encode(codec.name(), sample).unwrap();
    levels.into_iter().map(at).collect()
}

#[test]
fn damaged_streams_give_a_result_or_an_error() {
    for &codec in CODECS {
        let ((samples, settings), mut chance) = (prepared(codec), Chance(0x6c77));
        let (mut taken, mut refused) = (0, 0);
        for coded in samples.iter().flat_map(|sample| streams(codec, &settings, sample)) {
            for _ in 0..variants(codec) {
                let damaged = chance.mutate(&coded);
                match settings.decode(codec.name(), &damaged) {
                    Ok(out) => {
                        assert!(out.len() as u64 <= settings.limits.output_bytes);
                        taken += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
        }
        println!("{}: {taken} damaged streams decode, {refused} are refused", codec.name());
    }
}

#[test]
fn damaged_messages_are_refused_or_come_back() {
    for &codec in CODECS {
        let ((samples, settings), mut chance) = (prepared(codec), Chance(0x6c78));
        let (mut taken, mut refused) = (0, 0);
        for sample in samples {
            for _ in 0..variants(codec) {
                let damaged = chance.mutate(&sample);
                let Ok(coded) = settings.encode(codec.name(), &damaged) else {
                    refused += 1;
                    continue;
                };
                let decoded = settings.decode(codec.name(), &coded);
                let decoded = decoded.unwrap_or_else(|error| {
                    let text = String::from_utf8_lossy(&damaged);
                    panic!("{} does not take its own coding: {error}\n{text}", codec.name())
                });
                common::assert_same(codec, &settings, &damaged, &coded, &decoded);
                taken += 1;
            }
        }
        println!("{}: {taken} damaged messages come back, {refused} are refused", codec.name());
    }
}
