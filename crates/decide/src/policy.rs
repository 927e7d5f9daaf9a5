//! What every policy is asked and told: one interface, so that policies can be compared on the same
//! traffic.

use std::fmt::Debug;

use crate::arm::{Arm, Speed};
use crate::models::{Expected, Seen, Subject};
use crate::network::Path;
use crate::state::Error;

/// What an operator wants of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Objective {
    /// The soonest.
    #[default]
    Time,
    /// The fewest bytes.
    Bytes,
    /// The fewest bytes among what arrives within so many seconds; else the soonest.
    Deadline(f64),
}

impl Objective {
    /// Why the best was taken, for a person.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Time => "expected to arrive soonest",
            Self::Bytes => "expected to take the fewest bytes",
            Self::Deadline(_) => "expected to take the fewest bytes in time",
        }
    }

    /// What can be wanted of these: a time that none keeps is missed by the least.
    pub(crate) fn among<'a>(self, all: impl IntoIterator<Item = &'a Candidate>) -> Self {
        let late = |one: &Candidate| self.cost(one).is_infinite();
        if matches!(self, Self::Deadline(_)) && all.into_iter().all(late) {
            Self::Time
        } else {
            self
        }
    }

    /// What remains to be wanted when so many seconds are spent.
    #[must_use]
    pub fn after(self, seconds: f64) -> Self {
        match self {
            Self::Deadline(within) => Self::Deadline(within - seconds),
            other => other,
        }
    }

    /// What the best has the least of; without end for what is late.
    pub(crate) fn cost(self, one: &Candidate) -> f64 {
        match self {
            Self::Time => one.total_s(),
            Self::Deadline(seconds) if one.total_s() > seconds => f64::INFINITY,
            Self::Deadline(_) | Self::Bytes => one.expected.bytes,
        }
    }
}

/// What a message is to be chosen an arm for.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The message.
    pub subject: &'a Subject,
    /// The path that it will take.
    pub path: &'a Path,
    /// What is wanted.
    pub objective: Objective,
    /// Which arms may be taken: the peer decodes them, memory holds them, the operator does not
    /// forbid them. The arm that leaves bytes alone may always be.
    pub allowed: &'a dyn Fn(Arm) -> bool,
}

impl Request<'_> {
    /// Of so many arms, those that may be taken.
    pub fn open(&self, arms: usize) -> impl Iterator<Item = Arm> {
        (0..arms).map(Arm).filter(|&arm| arm == Arm::IDENTITY || (self.allowed)(arm))
    }
}

/// An arm with what it would give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The arm.
    pub arm: Arm,
    /// Bytes and seconds of the codec.
    pub expected: Expected,
    /// Seconds on the network for those bytes.
    pub network_s: f64,
    /// Seconds that it waits for its encoder before that begins.
    pub wait_s: f64,
}

impl Candidate {
    /// The message as it is.
    #[must_use]
    pub fn identity(bytes: f64, network_s: f64) -> Self {
        Self { arm: Arm::IDENTITY, expected: Expected::unchanged(bytes), network_s, wait_s: 0.0 }
    }

    /// Seconds of the codec, and what is waited for it.
    #[must_use]
    pub fn codec_s(&self) -> f64 {
        self.wait_s + self.expected.encode_s + self.expected.decode_s
    }

    /// Seconds in all.
    #[must_use]
    pub fn total_s(&self) -> f64 {
        self.codec_s() + self.network_s
    }
}

/// What a message goes in, and what else there was.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What was chosen.
    pub chosen: Candidate,
    /// What it was chosen by.
    pub objective: Objective,
    /// All that were weighed, by arm: what would have been.
    pub candidates: Vec<Candidate>,
    /// An arm to encode the message with only to learn from it: nobody sends that.
    pub probe: Option<Arm>,
    /// In a few words, for a person.
    pub reason: &'static str,
}

/// How a message that is on its way goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Going {
    /// The arm of its last blocks.
    pub arm: Arm,
    /// Share of their bytes that was left.
    pub share: f64,
    /// Seconds that encoding took for each of their bytes.
    pub encode_s: f64,
}

impl Going {
    /// As it is.
    pub const IDENTITY: Self = Self { arm: Arm::IDENTITY, share: 1.0, encode_s: 0.0 };
}

/// What there is to learn from.
#[derive(Clone, Copy, Debug)]
pub enum Observation<'a> {
    /// What an encoding of a message turned out to be, sent or not.
    Encoding {
        /// The message.
        subject: &'a Subject,
        /// What it was encoded in.
        arm: Arm,
        /// What came of it.
        seen: &'a Seen,
    },
    /// What the network took.
    Network {
        /// The path as it looked when the message was chosen for.
        path: &'a Path,
        /// Bytes that went.
        bytes: f64,
        /// Seconds from the first to leave to the last to arrive.
        seconds: f64,
    },
    /// The path to a peer turned out to be another.
    PathChanged {
        /// [`Path::peer`].
        peer: u64,
    },
    /// What is coded waits so long for its encoder now: threads or the processor are busy.
    Waits {
        /// Besides what the encoder takes.
        seconds: f64,
    },
    /// How fast an arm's codec was in a trial on this processor: where no message has told, it is
    /// believed in place of the prior.
    Speed {
        /// The arm.
        arm: Arm,
        /// Encoding.
        encode: Option<Speed>,
        /// Decoding.
        decode: Option<Speed>,
    },
    /// How fast a peer says that it decodes: until messages have told, that is believed.
    Decoder {
        /// [`Subject::peer`].
        peer: u64,
        /// By arm.
        decode: &'a [(Arm, Speed)],
    },
}

/// Who chooses.
pub trait Policy: Debug + Send {
    /// Chooses an arm for a message.
    fn choose(&mut self, request: &Request<'_>) -> Decision;

    /// Bytes that all of a message comes to of whose first `plain` bytes an arm left `coded`.
    fn in_all(&self, subject: &Subject, _arm: Arm, plain: f64, coded: f64) -> f64 {
        coded * (subject.bytes / plain.max(1.0)).max(1.0)
    }

    /// Another arm that is worth encoding the message with before it goes, now that all of `tried`
    /// were and the best of them gave `bytes`.
    fn again(&self, decision: &Decision, path: &Path, tried: &[Arm], bytes: f64) -> Option<Arm>;

    /// Another arm that the rest of a message is worth going on in, and why, now that its last
    /// blocks went so. The request is for the rest, the path as it is by now. Who chooses once for
    /// a message gives none.
    fn revise(&self, _rest: &Request<'_>, _going: &Going) -> Option<(Arm, &'static str)> {
        None
    }

    /// Whether it knows how fast a peer decodes, or does not care.
    fn knows(&self, _peer: u64) -> bool {
        true
    }

    /// Seconds that it expects so many bytes to take on the network.
    fn network_s(&self, path: &Path, bytes: f64) -> f64;

    /// Learns.
    fn observe(&mut self, observation: &Observation<'_>);

    /// Most bytes of memory that it takes, whatever comes.
    fn state_bytes(&self) -> usize;

    /// Appends what was learned; `arms` are the names of all its arms, each at its index.
    fn save(&self, arms: &[&str], out: &mut Vec<u8>);

    /// Takes what was saved, by this policy over these or other arms; after an error it is as it
    /// was.
    ///
    /// # Errors
    /// [`state::Error`](crate::state::Error) for what is no state of this policy.
    fn restore(&mut self, arms: &[&str], bytes: &[u8]) -> Result<(), Error>;
}
