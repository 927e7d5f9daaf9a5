//! Names of what went wrong (AMQP 1.0 Part 2 §2.8.15 to §2.8.18).

use crate::amqp::types::Symbol;

macro_rules! conditions {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$doc])* pub const $name: Symbol = Symbol::new($text);)*
    };
}

conditions! {
    /// Something went wrong inside.
    INTERNAL_ERROR = "amqp:internal-error";
    /// There is no such address or link.
    NOT_FOUND = "amqp:not-found";
    /// The peer may not do this.
    UNAUTHORIZED_ACCESS = "amqp:unauthorized-access";
    /// What came could not be decoded.
    DECODE_ERROR = "amqp:decode-error";
    /// A bound was passed.
    RESOURCE_LIMIT_EXCEEDED = "amqp:resource-limit-exceeded";
    /// The peer did what is not allowed here.
    NOT_ALLOWED = "amqp:not-allowed";
    /// A field has a value that it must not have.
    INVALID_FIELD = "amqp:invalid-field";
    /// This is not implemented.
    NOT_IMPLEMENTED = "amqp:not-implemented";
    /// Somebody else has it.
    RESOURCE_LOCKED = "amqp:resource-locked";
    /// It is in another state than this asks for.
    PRECONDITION_FAILED = "amqp:precondition-failed";
    /// It was deleted.
    RESOURCE_DELETED = "amqp:resource-deleted";
    /// It is in a state in which this is not possible.
    ILLEGAL_STATE = "amqp:illegal-state";
    /// A frame is longer than its reader takes.
    FRAME_SIZE_TOO_SMALL = "amqp:frame-size-too-small";
    /// An operator, or a newer connection, ended this one.
    CONNECTION_FORCED = "amqp:connection:forced";
    /// Frames could not be told apart.
    FRAMING_ERROR = "amqp:connection:framing-error";
    /// The peer had said that it takes no more transfers.
    WINDOW_VIOLATION = "amqp:session:window-violation";
    /// Input for a link that was detached with an error.
    ERRANT_LINK = "amqp:session:errant-link";
    /// A handle that is in use.
    HANDLE_IN_USE = "amqp:session:handle-in-use";
    /// A handle that no link has.
    UNATTACHED_HANDLE = "amqp:session:unattached-handle";
    /// An operator detached the link.
    DETACH_FORCED = "amqp:link:detach-forced";
    /// More was transferred than there was credit for.
    TRANSFER_LIMIT_EXCEEDED = "amqp:link:transfer-limit-exceeded";
    /// The message is longer than the link takes.
    MESSAGE_SIZE_EXCEEDED = "amqp:link:message-size-exceeded";
    /// The link was attached elsewhere.
    STOLEN = "amqp:link:stolen";
}
