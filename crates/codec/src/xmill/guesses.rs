//! Tables of what came before: chances, symbols and places by context, values by their forerunners.

#![expect(clippy::cast_possible_truncation, reason = "hashes are cut on purpose")]

use super::range::Coder;

/// A chance of a bit in 1/65536.
#[derive(Clone, Copy)]
pub(super) struct Chance(pub(super) u16);

impl Chance {
    #[inline(always)]
    pub(super) fn code<C: Coder>(&mut self, c: &mut C, bit: bool) -> bool {
        let bit = c.bit(bit, u32::from(self.0));
        let step = if bit { (65_500 - self.0) >> 4 } else { 0 };
        self.0 = if bit { self.0 + step } else { self.0 - ((self.0 - 36) >> 4) };
        bit
    }
}

/// Where a value stands, its length, and its hash.
#[derive(Clone, Copy, Default)]
pub(super) struct Span {
    pub(super) at: u32,
    pub(super) len: u32,
    pub(super) hash: u32,
}

impl Span {
    /// Whether the other has the same bytes, as far as the hash tells.
    pub(super) fn is(self, other: Self) -> bool {
        self.len == other.len && self.hash == other.hash
    }
}

/// What followed a context.
#[derive(Clone, Copy, Default)]
pub(super) struct Guess {
    pub(super) value: u32,
    pub(super) check: u16,
    pub(super) sure: u16,
}

/// A table of guesses by hash.
pub(super) struct Guesses {
    all: Vec<Guess>,
    shift: u32,
}

impl Guesses {
    pub(super) fn new(log: u32) -> Self {
        Self { all: vec![Guess::default(); 1 << log], shift: 32 - log }
    }

    /// The guess for a context: `sure` is 0 if there is none.
    #[inline(always)]
    pub(super) fn of(&self, hash: u32) -> Guess {
        let guess = self.all[(hash >> self.shift) as usize];
        if guess.check == hash as u16 { guess } else { Guess::default() }
    }

    /// Notes what came; a guess that was right becomes surer.
    #[inline(always)]
    pub(super) fn note(&mut self, hash: u32, value: u32) {
        let guess = &mut self.all[(hash >> self.shift) as usize];
        let check = hash as u16;
        if guess.check == check && guess.value == value {
            guess.sure = (guess.sure + 1).min(15);
        } else if guess.check == check && guess.sure > 3 {
            guess.sure /= 4;
        } else {
            *guess = Guess { value, check, sure: 1 };
        }
    }
}

/// Values by what came before them.
pub(super) struct Followers {
    all: Vec<(u32, Span)>,
    shift: u32,
}

impl Followers {
    pub(super) fn new(log: u32) -> Self {
        Self { all: vec![(0, Span::default()); 1 << log], shift: 32 - log }
    }

    /// The value that came in a context; of length 0 if there is none.
    pub(super) fn of(&self, hash: u32) -> Span {
        let (check, span) = self.all[(hash >> self.shift) as usize];
        if check == hash { span } else { Span::default() }
    }

    pub(super) fn note(&mut self, hash: u32, span: Span) {
        self.all[(hash >> self.shift) as usize] = (hash, span);
    }
}
