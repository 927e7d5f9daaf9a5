//! What an edge does with requests that wait for the link: how urgent they are, how long they are
//! of use, and which of them goes where too many wait.

use std::time::Duration;

use codec::dictionary::Id;
use proto::urgency::Urgency;

/// What happens to requests of a service of which too many wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The new one is refused.
    #[default]
    Refuse,
    /// The oldest goes: of the client that has most of them waiting.
    Oldest,
    /// One that asks the same for the same client goes as soon as the new one is there, whether or
    /// not too many wait.
    Superseded,
}

/// How requests of a service are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handling {
    /// How urgent they are, whatever they say themselves.
    pub urgency: Option<Urgency>,
    /// How long after they came an answer is of use.
    pub lifetime: Option<Duration>,
    /// Which goes where too many wait.
    pub overflow: Overflow,
}

/// What is kept of it with an exchange.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wait {
    /// When its answer is of no use any more, if that has not begun by then.
    pub(crate) deadline: Option<Duration>,
    /// Edge: when its client does not wait any longer for it to leave.
    pub(crate) leaves_by: Option<Duration>,
    /// Edge: which goes where too many wait.
    pub(crate) overflow: Overflow,
    /// Edge: what is asked, and for whom.
    pub(crate) subject: Option<Id>,
}

impl Wait {
    /// Of a request that came now, whose client says that it waits for so long.
    pub(crate) fn new(
        now: Duration,
        handling: Handling,
        patience: Option<Duration>,
        subject: Option<Id>,
    ) -> Self {
        let deadline = handling.lifetime.map(|lifetime| now + lifetime);
        let leaves_by = patience.map(|patience| now + patience);
        let leaves_by = leaves_by.into_iter().chain(deadline).min();
        Self { deadline, leaves_by, overflow: handling.overflow, subject }
    }
}
