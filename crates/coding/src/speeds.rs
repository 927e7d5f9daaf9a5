//! How fast this processor is, as peers are told.

use codec::Options;
use codec::dictionary::Id;
use decide::arm::Speed;
use proto::profile::{Decoding, MAX_ENCODINGS, MAX_PER_BYTE_S, MAX_SECONDS, Model, Profile};

/// How fast an encoding is on this processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speeds {
    /// The encoding.
    pub options: Options,
    /// Encoding.
    pub encode: Speed,
    /// Decoding.
    pub decode: Speed,
}

/// What is told of them: of each codec that needs nothing but itself its first level, for one
/// decodes as fast as another.
pub(crate) fn profile(all: &[Speeds]) -> Option<Profile> {
    let mut encodings: Vec<Decoding> = Vec::new();
    for Speeds { options, decode, .. } in all {
        let alone = !options.is_identity() && options.stands_alone();
        if alone && encodings.iter().all(|known| known.codec != options.codec.number()) {
            encodings.push(Decoding {
                codec: options.codec.number(),
                fixed_s: single(decode.fixed_s).min(MAX_SECONDS),
                per_byte_s: single(decode.per_byte_s).min(MAX_PER_BYTE_S),
            });
        }
    }
    encodings.sort_unstable_by_key(|decoding| decoding.codec);
    encodings.truncate(MAX_ENCODINGS);
    let model = Model { encodings };
    let some = !model.encodings.is_empty();
    some.then(|| Profile { hash: name_of_model(&model), model: Some(model), link: None })
}

#[expect(clippy::cast_possible_truncation, reason = "three digits of it cross")]
fn single(seconds: f64) -> f32 {
    seconds as f32
}

/// The name of a model: see [`proto::profile`].
#[must_use]
pub fn name_of_model(model: &Model) -> [u8; 8] {
    let mut bytes = Vec::new();
    model.encode(&mut bytes);
    Id::of(&bytes).short()
}
