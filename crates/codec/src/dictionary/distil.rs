//! A dictionary out of messages that went by, if it pays, and its way to the other side.

use proto::varint;

use super::store::{pack, unpack};
use super::{Coder, Dictionary, Kept, Method, NAME, corrupt, excerpt};
use crate::{Error, Limits, Settings};

/// Longest dictionary: more helps small messages little.
pub const DISTILLED_BYTES: usize = 16 << 10;
/// Fewest samples that tell whether it pays.
const MIN_SAMPLES: usize = 8;
/// What it may leave of what there is without it, in per cent: it has to cross the link first.
const PAYS_PERCENT: usize = 80;

/// A dictionary that was made of samples.
#[derive(Debug)]
pub struct Distilled {
    /// The dictionary.
    pub kept: Kept,
    /// What the other side gets of it, for [`unpack_parcel`].
    pub parcel: Vec<u8>,
}

/// A dictionary of samples; none where it would not pay. One half of the samples is coded with what
/// the other gives: that must leave a fifth less than `before`, the dictionary that there is, and
/// than a codec without any.
///
/// # Errors
/// Those of the codecs that are compared.
pub fn distil(samples: &[&[u8]], before: Option<&Kept>) -> Result<Option<Distilled>, Error> {
    if samples.len() < MIN_SAMPLES {
        return Ok(None);
    }
    let limits = Limits::default();
    let half = |odd: usize| samples.iter().skip(odd).step_by(2).copied();
    let learned = excerpt(&half(0).collect::<Vec<_>>(), DISTILLED_BYTES, &limits)?;
    let (mut with, mut without) = (0, 0);
    for sample in half(1) {
        with += coded_len(&learned, sample, &limits)?;
        let settings = Settings { level: Some(19), ..Settings::default() };
        let mut least = settings.encode("zstd", sample)?.len();
        if let Some(before) = before {
            let dictionary = Dictionary::raw(before.content(), &limits)?;
            least = least.min(coded_len(&dictionary, sample, &limits)?);
        }
        without += least;
    }
    if with * 100 > without * PAYS_PERCENT {
        return Ok(None);
    }
    let whole = excerpt(samples, DISTILLED_BYTES, &limits)?;
    let packed = pack(whole.content())?;
    let mut parcel = Vec::new();
    varint::encode(whole.content().len() as u64, &mut parcel);
    parcel.extend_from_slice(&packed);
    Ok(Some(Distilled { kept: Kept::new(whole.content()), parcel }))
}

fn coded_len(dictionary: &Dictionary, sample: &[u8], limits: &Limits) -> Result<usize, Error> {
    Ok(Coder::new(dictionary, Method::Zstd, None, limits)?.encode(sample)?.len())
}

/// The dictionary of a parcel.
///
/// # Errors
/// What is none, or longer than [`DISTILLED_BYTES`].
pub fn unpack_parcel(parcel: &[u8]) -> Result<Kept, Error> {
    let mut rest = parcel;
    let len = varint::decode(&mut rest, "a length").map_err(|error| corrupt(error.to_string()))?;
    let len = usize::try_from(len).ok().filter(|len| *len <= DISTILLED_BYTES).ok_or_else(|| {
        let what = format!("a dictionary of {len} bytes, limit {DISTILLED_BYTES}");
        Error::Limit { codec: NAME, what }
    })?;
    unpack(rest, len).map(Kept::new)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Id;
    use super::*;

    fn sample(at: u32) -> Vec<u8> {
        let noise = at.wrapping_mul(2_654_435_761);
        format!(
            "<Envelope xmlns='http://www.w3.org/2003/05/soap-envelope'><Header><Action>GetStatus\
             </Action><MessageID>{noise:08x}</MessageID></Header><Body><PanTilt x='0.{}' y='0.{}'/>\
             <MoveStatus>IDLE</MoveStatus><UtcTime>2026-11-22T05:00:{:02}Z</UtcTime></Body>\
             </Envelope>",
            noise % 1000,
            noise % 777,
            at % 60,
        )
        .into_bytes()
    }

    #[test]
    fn what_repeats_gives_a_dictionary_that_both_sides_call_alike() {
        let samples: Vec<_> = (0..16).map(sample).collect();
        let samples: Vec<_> = samples.iter().map(Vec::as_slice).collect();
        let Distilled { kept, parcel } = distil(&samples, None).unwrap().unwrap();
        assert!(kept.content().len() <= DISTILLED_BYTES);
        let there = unpack_parcel(&parcel).unwrap();
        assert_eq!((there.id(), there.content()), (kept.id(), kept.content()));
        assert_eq!(kept.id(), Id::of(kept.content()));
        // Another one that knows no more does not pay.
        assert!(distil(&samples, Some(&kept)).unwrap().is_none());
    }

    #[test]
    fn what_does_not_repeat_gives_none() {
        let mut state = 1_u32;
        let mut noise = || {
            let bytes = (0..700).map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.to_le_bytes()[3]
            });
            bytes.collect::<Vec<_>>()
        };
        let samples: Vec<_> = (0..16).map(|_| noise()).collect();
        let samples: Vec<_> = samples.iter().map(Vec::as_slice).collect();
        assert!(distil(&samples, None).unwrap().is_none());
        let few: Vec<_> = (0..4).map(sample).collect();
        let few: Vec<_> = few.iter().map(Vec::as_slice).collect();
        assert!(distil(&few, None).unwrap().is_none());
    }

    #[test]
    fn a_parcel_says_no_more_than_it_may() {
        let mut long = Vec::new();
        varint::encode(DISTILLED_BYTES as u64 + 1, &mut long);
        long.extend_from_slice(&pack(&[7; DISTILLED_BYTES + 1]).unwrap());
        assert!(matches!(unpack_parcel(&long), Err(Error::Limit { .. })));
        let mut short = Vec::new();
        varint::encode(9, &mut short);
        short.extend_from_slice(&pack(&[7; 10]).unwrap());
        assert!(unpack_parcel(&short).is_err());
    }

    proptest! {
        #[test]
        fn junk_is_refused(junk: Vec<u8>) {
            let _ = unpack_parcel(&junk);
            let samples: Vec<_> = junk.chunks(9).collect();
            let _ = distil(&samples, None);
        }
    }
}
