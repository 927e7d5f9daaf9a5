//! Why a method is refused.

use std::fmt::Display;

use proto::amqp091::ReplyCode;

use crate::refusal::Refusal;

/// A code and a text; the code says whether it ends the channel or the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) code: ReplyCode,
    pub(super) text: String,
}

impl Fault {
    pub(super) fn new(code: ReplyCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    pub(super) fn no_queue(name: impl Display) -> Self {
        Self::new(ReplyCode::NotFound, format!("no queue '{name}'"))
    }

    pub(super) fn no_exchange(name: impl Display) -> Self {
        Self::new(ReplyCode::NotFound, format!("no exchange '{name}'"))
    }

    pub(super) fn access(what: impl Display) -> Self {
        Self::new(ReplyCode::AccessRefused, format!("access to {what} refused"))
    }

    pub(super) fn precondition(text: impl Into<String>) -> Self {
        Self::new(ReplyCode::PreconditionFailed, text)
    }

    pub(super) fn bound(what: &str, limit: usize) -> Self {
        Self::new(ReplyCode::ResourceError, format!("{what} are at their limit of {limit}"))
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal {
            Refusal::NotAuthorized | Refusal::Federation(_) => ReplyCode::AccessRefused,
            Refusal::TopicName { .. } | Refusal::TopicFilter { .. } => {
                ReplyCode::PreconditionFailed
            }
            Refusal::TooLarge { .. } => ReplyCode::ContentTooLarge,
            Refusal::Quota { .. } => ReplyCode::ResourceError,
            Refusal::Closing => ReplyCode::ConnectionForced,
        };
        Self::new(code, refusal.to_string())
    }
}
