//! Damaged streams and damaged messages, for every codec of the table: a result or an error, never
//! a panic, and never more than the limits.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Tests.

mod common;

use common::{Chance, samples, settings};
use longwire_codec::CODECS;

/// Faulty variants of each sample.
const VARIANTS: usize = 150;

#[test]
fn damaged_streams_give_a_result_or_an_error() {
    for &codec in CODECS {
        let (settings, mut chance) = (settings(codec), Chance(0x6c77));
        let (mut taken, mut refused) = (0, 0);
        for sample in samples(codec) {
            let coded = settings.encode(codec.name(), &sample).unwrap();
            for _ in 0..VARIANTS {
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
        let (settings, mut chance) = (settings(codec), Chance(0x6c78));
        let (mut taken, mut refused) = (0, 0);
        for sample in samples(codec) {
            for _ in 0..VARIANTS {
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
