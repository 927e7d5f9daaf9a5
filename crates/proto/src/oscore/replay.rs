//! Which Partial IVs of the other end were received (RFC 8613 §7.4), and how that is found out
//! again after it was lost (RFC 8613 appendix B.1.2, RFC 9175).

use crate::Error;

use super::option::MAX_PARTIAL_IV;

/// Numbers in the window unless it is said otherwise (RFC 8613 §3.2.2).
pub const DEFAULT_WINDOW: u32 = 32;
/// The widest window, in numbers: so many as one machine word of the largest size has bits.
pub const MAX_WINDOW: u32 = u128::BITS;
/// An Echo value, in bytes: RFC 9175 §5 asks for 64 bits of chance at least.
pub const ECHO_BYTES: usize = 8;

/// The last numbers that were received, of which none is accepted again. What is older than the
/// window is refused, as nobody can tell whether it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayWindow {
    width: u32,
    /// One more than the greatest number that was received; 0 while there is none.
    next: u64,
    /// Bit n is for the number `next` − 1 − n.
    received: u128,
}

impl Default for ReplayWindow {
    fn default() -> Self {
        Self { width: DEFAULT_WINDOW, next: 0, received: 0 }
    }
}

impl ReplayWindow {
    /// A window of so many numbers, of which none was received.
    ///
    /// # Errors
    /// `Caller` where `width` is 0, `Limit` where it is over [`MAX_WINDOW`].
    pub fn new(width: u32) -> Result<Self, Error> {
        if width == 0 {
            return Err(Error::Caller { what: "a replay window of no numbers" });
        }
        if width > MAX_WINDOW {
            let (value, limit) = (u64::from(width), u64::from(MAX_WINDOW));
            return Err(Error::Limit { what: "the width of a replay window", value, limit });
        }
        Ok(Self { width, next: 0, received: 0 })
    }

    /// Takes `number` and all below for received. A window that was stored in time may be had
    /// again so, if `number` is the greatest that was received.
    pub fn forbid_up_to(&mut self, number: u64) {
        self.next = number.saturating_add(1).max(self.next);
        self.received = u128::MAX;
    }

    /// One more than the greatest number that was received.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether a message of this number may be accepted: it was not received, and is not so old
    /// that this cannot be told.
    #[must_use]
    pub fn is_new(&self, number: u64) -> bool {
        let Some(age) = self.next.checked_sub(1).and_then(|last| last.checked_sub(number)) else {
            return number <= MAX_PARTIAL_IV;
        };
        match u32::try_from(age) {
            Ok(age) if age < self.width => self.received >> age & 1 == 0,
            _ => false,
        }
    }

    /// Notes that a message of this number was received and is authentic. Whether it was new.
    pub fn note(&mut self, number: u64) -> bool {
        if !self.is_new(number) {
            return false;
        }
        if let Some(ahead) = (number + 1).checked_sub(self.next).filter(|ahead| *ahead > 0) {
            let shift = u32::try_from(ahead).unwrap_or(u32::MAX);
            self.received = self.received.checked_shl(shift).unwrap_or(0);
            self.next = number + 1;
        }
        // `is_new` has seen that it is in the window, which has no more numbers than the word bits.
        let age = u32::try_from(self.next - 1 - number).unwrap_or(0);
        self.received |= 1_u128.checked_shl(age).unwrap_or(0);
        true
    }
}

/// What is known of the requests that were received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replay {
    /// The window is right.
    Known(ReplayWindow),
    /// This end has started anew and its window is lost (RFC 8613 appendix B.1.2). Nothing is
    /// accepted but a request that carries the Echo value, which nobody could know before the
    /// start. All challenges until then have the same value: old requests that somebody plays back
    /// do not invalidate the one that an honest client has just got.
    Lost {
        /// The value of the challenges.
        echo: [u8; ECHO_BYTES],
        /// How wide the window will be.
        width: u32,
    },
}

/// What a request is, by its number and its Echo option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is new, and is noted.
    New,
    /// It was received before, or is too old.
    Old,
    /// Nobody knows; this value may tell.
    Unknown([u8; ECHO_BYTES]),
}

impl Replay {
    /// No request was received, as nobody can have made one: the keys are new.
    ///
    /// # Errors
    /// See [`ReplayWindow::new`].
    pub fn fresh(width: u32) -> Result<Self, Error> {
        Ok(Self::Known(ReplayWindow::new(width)?))
    }

    /// Requests were received, and nobody knows which. `echo` is chance, new at each start.
    ///
    /// # Errors
    /// See [`ReplayWindow::new`].
    pub fn lost(width: u32, echo: [u8; ECHO_BYTES]) -> Result<Self, Error> {
        ReplayWindow::new(width)?;
        Ok(Self::Lost { echo, width })
    }

    /// Replaces the value of the challenges, where the window is lost.
    pub(super) fn expect_echo(&mut self, value: [u8; ECHO_BYTES]) {
        if let Self::Lost { echo, .. } = self {
            *echo = value;
        }
    }

    /// Whether it is worth while to decrypt a request of this number.
    pub(super) fn may_be_new(&self, number: u64) -> bool {
        match self {
            Self::Known(window) => window.is_new(number),
            Self::Lost { .. } => true,
        }
    }

    /// Judges a request that is authentic, with the value of its Echo option.
    pub(super) fn judge(&mut self, number: u64, echo: Option<&[u8]>) -> Verdict {
        match self {
            Self::Known(window) => match window.note(number) {
                true => Verdict::New,
                false => Verdict::Old,
            },
            Self::Lost { echo: asked, width } if echo == Some(&asked[..]) => {
                let mut window = ReplayWindow { width: *width, next: 0, received: 0 };
                // RFC 8613 appendix B.1.2: its Partial IV is the lower limit of the window.
                window.forbid_up_to(number);
                *self = Self::Known(window);
                Verdict::New
            }
            Self::Lost { echo, .. } => Verdict::Unknown(*echo),
        }
    }
}
