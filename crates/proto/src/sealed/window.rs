//! Which datagrams of a peer were read: none is read twice (RFC 4303 §3.4.3, RFC 9147 §4.5.1).

/// Numbers below the greatest that are told apart; what is older is taken for read.
const WIDTH: u64 = 1024;
/// Bits of a number that are sent.
const SENT_BITS: u32 = 24;
const WORD: u64 = u64::BITS as u64;
const WORDS: usize = (WIDTH / WORD) as usize;

/// See the module.
#[derive(Clone, Debug)]
pub struct Window {
    /// One more than the greatest number that was read.
    next: u64,
    /// A bit for each of the last numbers, by its remainder.
    read: [u64; WORDS],
}

impl Default for Window {
    fn default() -> Self {
        Self { next: 0, read: [0; WORDS] }
    }
}

impl Window {
    /// The number whose last 24 bits these are: the one that is closest to the next (RFC 9000,
    /// appendix A.3).
    #[must_use]
    pub fn number(&self, bits: u32) -> u64 {
        let (cycle, half) = (1 << SENT_BITS, 1 << (SENT_BITS - 1));
        let near = (self.next & !(cycle - 1)) | u64::from(bits);
        if near + half <= self.next {
            near + cycle
        } else if near > self.next + half && near >= cycle {
            near - cycle
        } else {
            near
        }
    }

    /// Whether a number was read, or is too old to tell.
    #[must_use]
    pub fn is_read(&self, number: u64) -> bool {
        number + WIDTH < self.next
            || (number < self.next && self.read[word(number)] & bit(number) > 0)
    }

    /// Notes that a number is read, which was not. Whether it is the greatest so far.
    pub fn note(&mut self, number: u64) -> bool {
        let is_greatest = number >= self.next;
        if is_greatest {
            // Those in between were not read, whatever stood in their places.
            let skipped = (number - self.next).min(WIDTH);
            (number - skipped..number).for_each(|one| self.read[word(one)] &= !bit(one));
            self.next = number + 1;
        }
        self.read[word(number)] |= bit(number);
        is_greatest
    }
}

fn word(number: u64) -> usize {
    usize::try_from(number % WIDTH / WORD).unwrap_or(0)
}

fn bit(number: u64) -> u64 {
    1 << (number % WORD)
}
