//! How fast the other side decodes, before it has decoded anything: what each measured of its
//! codecs at its start, it tells a peer that asks. A side asks those that its policy knows nothing
//! of; from the first receipt on, what messages took counts.

use codec::Options;
use decide::Arm;
use decide::arm::Speed;
use decide::policy::Observation;
use proto::control::Processor;
use proto::profile::{Decoding, Model, Packet};

use super::Peer;
use crate::core::Core;
use crate::speeds::name_of_model;

/// In events.
const WHAT: &str = "profile";

/// The arms whose encoding is such.
pub(crate) fn arms_of(core: &Core, is_it: impl Fn(&Options) -> bool) -> Vec<Arm> {
    let arms = core.config.encoding.arms().iter().enumerate();
    arms.filter(|(_, options)| is_it(options)).map(|(at, _)| Arm(at)).collect()
}

impl Peer<'_> {
    /// Asks a peer of whom nothing is known, once there is something to compare it with.
    pub(crate) fn ask_processor(&mut self) {
        if self.core.own_profile.is_some() && !self.core.policy.knows(self.path.known.peer) {
            self.send(Processor::wanted());
        }
    }

    /// What a peer says of its processor, or asks of this side's.
    pub(crate) fn processor(&mut self, content: &[u8]) {
        let profile = match Processor::decode(content) {
            Ok(Processor::Wanted) => {
                self.path.wants_processor = true;
                return self.tell_processor();
            }
            Ok(Processor::Reported(Packet::Profile(profile))) => profile,
            Ok(Processor::Reported(Packet::Later { version })) => {
                return self.ignore(WHAT, &format!("version {version} is not known"));
            }
            Err(error) => return self.ignore(WHAT, &error.to_string()),
        };
        match profile.model {
            Some(model) if name_of_model(&model) == profile.hash => self.heed_processor(&model),
            Some(_) => self.ignore(WHAT, "its hash is another model's"),
            None => self.ignore(WHAT, "it has no model"),
        }
    }

    /// Answers a peer, if it asked and there is something to tell.
    pub(crate) fn tell_processor(&mut self) {
        let wanted = self.path.wants_processor;
        let profile = self.core.own_profile.as_ref().filter(|_| wanted);
        let Some(part) = profile.map(Processor::reported) else { return };
        self.path.wants_processor = false;
        self.send(part);
    }

    /// The policy hears of a peer's, where there is one of this side's beside it.
    fn heed_processor(&mut self, model: &Model) {
        if self.core.own_profile.is_none() {
            return;
        }
        let speed = |decoding: &Decoding| Speed {
            fixed_s: decoding.fixed_s.into(),
            per_byte_s: decoding.per_byte_s.into(),
        };
        let reported = model.encodings.iter().flat_map(|decoding| {
            let arms = arms_of(self.core, |options| options.codec.number() == decoding.codec);
            arms.into_iter().map(move |arm| (arm, speed(decoding)))
        });
        let decode = &reported.collect::<Vec<_>>()[..];
        self.core.observe(&Observation::Decoder { peer: self.path.known.peer, decode });
    }
}
