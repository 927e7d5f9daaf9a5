//! How fast the other side decodes, before it has decoded anything: what each measured of its
//! codecs at its start, it tells a peer that asks. A relay asks those that its policy knows nothing
//! of; from the first receipt on, what messages took counts.

use std::time::Duration;

use codec::Options;
use codec::dictionary::Id;
use decide::Arm;
use decide::arm::Speed;
use decide::policy::Observation;
use proto::profile::{
    Decoding, MAX_ENCODINGS, MAX_PER_BYTE_S, MAX_SECONDS, Model, Packet, Profile,
};
use proto::stream::Processor;

use crate::Relay;
use crate::api::CarrierId;

/// In events.
const WHAT: &str = "profile";

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

impl Relay {
    /// This side has measured itself: its policy hears of it, and peers that wait for it.
    pub(crate) fn calibrated(&mut self, now: Duration, all: &[Speeds]) {
        for speeds in all {
            for arm in self.arms_of(|options| *options == speeds.options) {
                let (encode, decode) = (Some(speeds.encode), Some(speeds.decode));
                self.policy.observe(&Observation::Speed { arm, encode, decode });
            }
        }
        self.own_profile = profile(all);
        for id in self.carriers.keys().copied().collect::<Vec<_>>() {
            self.tell_processor(now, id);
            self.ask_processor(now, id);
        }
    }

    fn arms_of(&self, is_it: impl Fn(&Options) -> bool) -> Vec<Arm> {
        let arms = self.config.encoding.arms().iter().enumerate();
        arms.filter(|(_, options)| is_it(options)).map(|(at, _)| Arm(at)).collect()
    }

    /// Asks a peer of whom nothing is known, once there is something to compare it with.
    pub(crate) fn ask_processor(&mut self, now: Duration, id: CarrierId) {
        let Some(carrier) = self.carriers.get(&id) else { return };
        if self.own_profile.is_some() && !self.policy.knows(carrier.peer_id) {
            self.send(now, id, Processor::wanted());
        }
    }

    /// What a peer says of its processor, or asks of this side's.
    pub(crate) fn processor(&mut self, now: Duration, id: CarrierId, content: &[u8]) {
        let profile = match Processor::decode(content) {
            Ok(Processor::Wanted) => {
                if let Some(carrier) = self.carriers.get_mut(&id) {
                    carrier.wants_processor = true;
                }
                return self.tell_processor(now, id);
            }
            Ok(Processor::Told(Packet::Profile(profile))) => profile,
            Ok(Processor::Told(Packet::Later { version })) => {
                return self.ignore(now, id, WHAT, &format!("version {version} is not known"));
            }
            Err(error) => return self.ignore(now, id, WHAT, &error.to_string()),
        };
        match profile.model {
            Some(model) if name_of_model(&model) == profile.hash => self.heed_processor(id, &model),
            Some(_) => self.ignore(now, id, WHAT, "its hash is another model's"),
            None => self.ignore(now, id, WHAT, "it has no model"),
        }
    }

    /// Answers a peer, if it asked and there is something to tell.
    fn tell_processor(&mut self, now: Duration, id: CarrierId) {
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        let Some(profile) = self.own_profile.as_ref().filter(|_| carrier.wants_processor) else {
            return;
        };
        carrier.wants_processor = false;
        let frame = Processor::told(profile);
        self.send(now, id, frame);
    }

    /// The policy hears of a peer's, where there is one of this side's beside it.
    fn heed_processor(&mut self, id: CarrierId, model: &Model) {
        let Some(carrier) = self.carriers.get(&id) else { return };
        if self.own_profile.is_none() {
            return;
        }
        let peer = carrier.peer_id;
        let speed = |decoding: &Decoding| Speed {
            fixed_s: decoding.fixed_s.into(),
            per_byte_s: decoding.per_byte_s.into(),
        };
        let told = model.encodings.iter().flat_map(|decoding| {
            let arms = self.arms_of(|options| options.codec == decoding.codec);
            arms.into_iter().map(move |arm| (arm, speed(decoding)))
        });
        let decode = &told.collect::<Vec<_>>()[..];
        self.policy.observe(&Observation::Decoder { peer, decode });
    }
}

/// What is told of them: of each codec that needs nothing but itself its first level, for one
/// decodes as fast as another.
fn profile(all: &[Speeds]) -> Option<Profile> {
    let mut encodings: Vec<Decoding> = Vec::new();
    for Speeds { options, decode, .. } in all {
        let alone = options.codec != 0 && !options.wants_base() && !options.is_infoset();
        if alone && encodings.iter().all(|known| known.codec != options.codec) {
            encodings.push(Decoding {
                codec: options.codec,
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
