//! What is known of a body of a request of this side, or of its answer, that is never here as a
//! whole: how much of it there is room for, and how much of it lacks.

/// What a caller says of a request whose bodies are not whole.
#[derive(Clone, Copy, Debug)]
pub(in crate::coap) struct Opening {
    /// Whether the request's body goes on.
    pub(in crate::coap) has_more: bool,
    /// Bytes of the answer's body that there is room for.
    pub(in crate::coap) room_bytes: usize,
}

/// Messages' worth of a request's body that are here at most: the one on its way, the next, and
/// what is being read behind that.
const MAX_MESSAGES: usize = 3;

/// Bytes of an answer that are kept before anything of it is given out, where there is room for so
/// much.
pub const MAX_FIRST_BYTES: usize = 64 << 10;

/// See the module.
#[derive(Debug)]
pub(super) struct Flowing {
    /// Whether all of the request's body is here that is not with the peer.
    pub(super) has_all: bool,
    /// Whether what the peer has of it is kept no longer.
    pub(super) is_moving: bool,
    /// Whether something of the answer was given out.
    pub(super) has_given: bool,
    /// A body of so many bytes goes in one message.
    pub(super) whole_bytes: usize,
    /// Bytes that were asked for and have not come.
    wanted: usize,
    /// Bytes of the answer's body that may be given out.
    room: usize,
    /// Whether the next block is asked for as soon as there is room.
    waits: bool,
}

impl Flowing {
    pub(super) fn new(opening: Opening, whole_bytes: usize) -> Self {
        Self {
            has_all: !opening.has_more,
            is_moving: opening.has_more,
            has_given: false,
            whole_bytes,
            wanted: 0,
            room: opening.room_bytes,
            waits: false,
        }
    }

    /// How many bytes more are to be asked for, of a body of which `here` are here and messages
    /// take `message_bytes`.
    pub(super) fn wants(&mut self, here: usize, message_bytes: usize) -> Option<usize> {
        let coming = here + self.wanted;
        if self.has_all || coming > (MAX_MESSAGES - 1) * message_bytes {
            return None;
        }
        let bytes = MAX_MESSAGES * message_bytes - coming;
        self.wanted += bytes;
        Some(bytes)
    }

    /// So many bytes came; whether they were asked for.
    pub(super) fn came(&mut self, bytes: usize, is_last: bool) -> bool {
        let was_wanted = !self.has_all && bytes <= self.wanted;
        self.wanted = self.wanted.saturating_sub(bytes);
        self.has_all |= is_last;
        was_wanted
    }

    /// Whether there is room for more of an answer of which so much is here and nothing was given
    /// out.
    pub(super) fn gathers(&self, here: usize) -> bool {
        here < self.room.min(MAX_FIRST_BYTES)
    }

    /// So many bytes of the answer are given out; whether the next block is asked for now.
    pub(super) fn gave(&mut self, bytes: usize) -> bool {
        self.room = self.room.saturating_sub(bytes);
        self.waits = self.room == 0;
        !self.waits
    }

    /// There is room for so many bytes more; whether the next block is asked for now.
    pub(super) fn grew(&mut self, bytes: usize) -> bool {
        self.room = self.room.saturating_add(bytes);
        self.room > 0 && std::mem::take(&mut self.waits)
    }
}
