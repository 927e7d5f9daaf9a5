//! How fast a side decodes, for whom it has not decoded anything yet: CONTROL of kind 4.
//!
//! The content is a profile ([`crate::profile`]) with a model and without a link, which each side
//! measures itself; without content it asks for one. Nobody need answer.

use bytes::Bytes;

use crate::Error;
use crate::exchange::Part;
use crate::profile::{Packet, Profile};

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub enum Processor {
    /// The peer's is asked for.
    Wanted,
    /// This side's, or what a later version says of it.
    Reported(Packet),
}

impl Processor {
    /// Kind of the control part.
    pub const KIND: u64 = 4;

    /// As it is asked for.
    #[must_use]
    pub fn wanted() -> Part {
        Part::Control(Self::KIND, Bytes::new())
    }

    /// This side's profile, as it is sent.
    #[must_use]
    pub fn reported(profile: &Profile) -> Part {
        let mut content = Vec::new();
        profile.encode(&mut content);
        Part::Control(Self::KIND, content.into())
    }

    /// Reads the content of a control part of this kind. Errors: those of [`Packet::decode`].
    pub fn decode(content: &[u8]) -> Result<Self, Error> {
        match content {
            [] => Ok(Self::Wanted),
            packet => Packet::decode(packet).map(Self::Reported),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Decoding, Model};

    #[test]
    fn a_question_and_its_answer_come_back() {
        let content = |part| match part {
            Part::Control(Processor::KIND, content) => content,
            other => panic!("{other:?}"),
        };
        let asked = content(Processor::wanted());
        assert_eq!(Processor::decode(&asked).unwrap(), Processor::Wanted);
        let decoding = Decoding { codec: 1, fixed_s: 0.0, per_byte_s: 0.0 };
        let model = Some(Model { encodings: vec![decoding] });
        let profile = Profile { hash: [7; 8], model, link: None };
        let reported = content(Processor::reported(&profile));
        let found = Processor::decode(&reported).unwrap();
        assert_eq!(found, Processor::Reported(Packet::Profile(profile)));
        assert_eq!(
            Processor::decode(&[9]).unwrap(),
            Processor::Reported(Packet::Later { version: 9 })
        );
        for len in 1..reported.len() {
            assert!(Processor::decode(&reported[..len]).is_err(), "{len}");
        }
    }
}
