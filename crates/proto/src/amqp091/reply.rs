//! Why something was refused (AMQP 0.9.1 §1.2, §4.8.2).

/// A reply code. Soft ones end a channel, hard ones the connection (AMQP 0.9.1 §4.8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReplyCode {
    /// 200: as it was asked
    Success,
    /// 311: more content than is taken
    ContentTooLarge,
    /// 312: a mandatory message has no queue to go to
    NoRoute,
    /// 313: an immediate message has no consumer to go to
    NoConsumers,
    /// 320: an operator ends the connection
    ConnectionForced,
    /// 402: no such virtual host
    InvalidPath,
    /// 403: not permitted
    AccessRefused,
    /// 404: no such exchange or queue
    NotFound,
    /// 405: somebody else has it for himself
    ResourceLocked,
    /// 406: it is otherwise than the request supposes
    PreconditionFailed,
    /// 501: a frame is malformed
    FrameError,
    /// 502: an argument is malformed
    SyntaxError,
    /// 503: a method that has no place here
    CommandInvalid,
    /// 504: a channel that is not open, or already
    ChannelError,
    /// 505: a frame that has no place here
    UnexpectedFrame,
    /// 506: a bound of the server is reached
    ResourceError,
    /// 530: not allowed by what was agreed
    NotAllowed,
    /// 540: a method or an argument that this server does not have
    NotImplemented,
    /// 541: a fault of the server
    InternalError,
}

impl ReplyCode {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::Success,
        Self::ContentTooLarge,
        Self::NoRoute,
        Self::NoConsumers,
        Self::ConnectionForced,
        Self::InvalidPath,
        Self::AccessRefused,
        Self::NotFound,
        Self::ResourceLocked,
        Self::PreconditionFailed,
        Self::FrameError,
        Self::SyntaxError,
        Self::CommandInvalid,
        Self::ChannelError,
        Self::UnexpectedFrame,
        Self::ResourceError,
        Self::NotAllowed,
        Self::NotImplemented,
        Self::InternalError,
    ];

    /// The number on the wire, and the name that a reply text begins with.
    #[must_use]
    pub fn parts(self) -> (u16, &'static str) {
        match self {
            Self::Success => (200, "OK"),
            Self::ContentTooLarge => (311, "CONTENT_TOO_LARGE"),
            Self::NoRoute => (312, "NO_ROUTE"),
            Self::NoConsumers => (313, "NO_CONSUMERS"),
            Self::ConnectionForced => (320, "CONNECTION_FORCED"),
            Self::InvalidPath => (402, "INVALID_PATH"),
            Self::AccessRefused => (403, "ACCESS_REFUSED"),
            Self::NotFound => (404, "NOT_FOUND"),
            Self::ResourceLocked => (405, "RESOURCE_LOCKED"),
            Self::PreconditionFailed => (406, "PRECONDITION_FAILED"),
            Self::FrameError => (501, "FRAME_ERROR"),
            Self::SyntaxError => (502, "SYNTAX_ERROR"),
            Self::CommandInvalid => (503, "COMMAND_INVALID"),
            Self::ChannelError => (504, "CHANNEL_ERROR"),
            Self::UnexpectedFrame => (505, "UNEXPECTED_FRAME"),
            Self::ResourceError => (506, "RESOURCE_ERROR"),
            Self::NotAllowed => (530, "NOT_ALLOWED"),
            Self::NotImplemented => (540, "NOT_IMPLEMENTED"),
            Self::InternalError => (541, "INTERNAL_ERROR"),
        }
    }

    /// The number on the wire.
    #[must_use]
    pub fn number(self) -> u16 {
        self.parts().0
    }

    /// The code with that number.
    #[must_use]
    pub fn of(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.number() == number)
    }

    /// Whether it ends the connection, not only a channel (AMQP 0.9.1 §4.8.1).
    #[must_use]
    pub fn is_hard(self) -> bool {
        matches!(self.number(), 320 | 402 | 501..)
    }
}
