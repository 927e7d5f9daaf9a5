//! Bytes bit by bit, for the highest levels: many contexts guess, and a small network that learns
//! whom to believe where mixes them (M. Mahoney, "Adaptive weighing of context models for lossless
//! data compression", Florida Tech CS-2005-16).

#![expect(clippy::cast_possible_truncation, reason = "hashes and shares are cut on purpose")]

use prefetch_index::prefetch_index;

use super::nibbles::log;
use super::pieces::join;
use super::range::Coder;

/// Contexts of a byte.
pub(super) const CONTEXTS: usize = 5;
/// Sets of weights: four kinds of place, each with up to sixteen lengths of match, or with up to
/// sixteen numbers of known contexts and eight bits.
const MATCH_SETS: usize = 4 * 16;
const KNOWN_SETS: usize = 4 * 16 * 8;
/// With the byte that followed the last match.
const INPUTS: usize = 8;
/// Bytes that must agree before a match is followed.
const MATCH_BYTES: u32 = 5;
/// A place's bits of the position, which is below two windows and a block; those above are a check.
const PLACE_MASK: u32 = (1 << 24) - 1;
/// Times seen are counted up to this; then chances move by so much of what is missing.
const MAX_SEEN: u32 = 60;
/// The same where one context speaks alone, which is where nothing changes.
const MAX_PLAIN_SEEN: u32 = 1000;
/// Bits of a chance in a slot, above the times seen.
const CHANCE_SHIFT: u32 = 10;
/// Rows of final chances, as a power of two.
const REFINED_LOG: u32 = 12;
const ONE: i32 = 65_536;
/// A weight in 1/16384 before anything was learned: three tenths.
const START: i16 = 4915;

/// A context's node for each prefix of half a byte; in the place of the first a check.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Slot([u32; 16]);

const EVEN: u32 = 1 << 31;

/// What is known where a byte is coded.
pub(super) struct Situation<'a> {
    /// The document, and up to where it is known.
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    /// What ends the value.
    pub(super) mark: u8,
    pub(super) contexts: [u32; CONTEXTS],
    /// Hash of the last bytes.
    pub(super) recent: u64,
    /// Whether what is gained against the first context alone is to be counted.
    pub(super) trial: bool,
    /// Kind of place, below 4.
    pub(super) kind: usize,
}

/// The state of one stream.
pub(super) struct Strong {
    slots: Vec<Slot>,
    shift: u32,
    /// Weights by kind and length of match, and by the number of contexts known.
    by_match: Box<[[i16; INPUTS]; MATCH_SETS]>,
    by_known: Box<[[i16; INPUTS]; KNOWN_SETS]>,
    /// Positions by hash of the last bytes, of which each has the upper bits too.
    places: Vec<u32>,
    follows: usize,
    length: u32,
    /// Chances that the bit of the match is right, by length.
    right: [u16; 32],
    /// Final chances by the bits so far and the byte before, in steps of the mix.
    refined: Box<[[u16; 33]; 1 << REFINED_LOG]>,
    stretch: Box<[i16; 4096]>,
    gain: i32,
    /// Of what came last, in 1/65536.
    chance: i32,
    /// By times seen, in 1/1024.
    rates: Box<Rates>,
}

/// As many as times can be counted: an index of ten bits needs no check.
type Rates = [i32; 1 << CHANCE_SHIFT];

/// 4096 / (1 + e^-x) at steps of a half from -8 to 8.
const LOGISTIC: [i32; 33] = [
    1, 2, 3, 6, 10, 17, 27, 45, 74, 120, 194, 311, 488, 747, 1102, 1546, 2048, 2550, 2994, 3349,
    3608, 3785, 3902, 3976, 4022, 4051, 4069, 4079, 4086, 4090, 4093, 4094, 4095,
];

/// Shares of 65536 for numbers from -2048 on, of which 256 are one.
static SQUASHED: [u16; 4096] = {
    let mut squashed = [0; 4096];
    let mut x = 0;
    while x < 4096 {
        let at = if x == 0 { 1 } else { x };
        let (step, part) = (at >> 7, (at & 127) as i32);
        squashed[x] = ((LOGISTIC[step] * (128 - part) + LOGISTIC[step + 1] * part) >> 3) as u16;
        x += 1;
    }
    squashed
};

/// Of 65536, for a number of which 256 are one, from -2048 up to 2047.
#[inline(always)]
fn squash(x: i32) -> i32 {
    i32::from(SQUASHED[x.wrapping_add(2048) as usize & 4095])
}

/// Moves the chance of an entry towards what came, the less the more often it was seen, which is
/// at most `most`, a number below 2^10.
#[inline(always)]
fn learn(entry: &mut u32, bit: bool, rates: &Rates, most: u32) {
    let seen = *entry & 0x3FF;
    let chance = (*entry >> CHANCE_SHIFT).cast_signed();
    let target = i32::from(bit).wrapping_neg() & ((1 << 22) - 1);
    let away = target.wrapping_sub(chance) >> 3;
    let step = away.wrapping_mul(rates[seen as usize]) >> 7;
    // The chance stays between 0 and the target, so that nothing is carried out of its bits.
    let step = step.cast_unsigned() << CHANCE_SHIFT;
    *entry = entry.wrapping_add(step).wrapping_add((seen + 1).min(most)).wrapping_sub(seen);
}

impl Strong {
    pub(super) fn new(log: u32) -> Self {
        let slots_log = log.saturating_sub(1).clamp(11, 17);
        let mut stretch = Box::new([0; 4096]);
        let mut from = 0;
        for x in -2047..2048_i16 {
            let to = (squash(i32::from(x)) >> 4) as usize;
            for entry in stretch.iter_mut().take(to + 1).skip(from) {
                *entry = x;
            }
            from = from.max(to + 1);
        }
        for entry in stretch.iter_mut().skip(from) {
            *entry = 2047;
        }
        let mut row = [0; 33];
        for (i, entry) in row.iter_mut().enumerate() {
            *entry = squash(((i as i32 - 16) * 128).clamp(-2047, 2047)) as u16;
        }
        let rates = std::array::from_fn(|seen| 2048 / (2 * seen as i32 + 3));
        Self {
            slots: vec![Slot([EVEN; 16]); 1 << slots_log],
            shift: 32 - slots_log,
            by_match: Box::new([[START; INPUTS]; MATCH_SETS]),
            by_known: Box::new([[START; INPUTS]; KNOWN_SETS]),
            places: vec![0; 1 << log.clamp(10, 18)],
            follows: 0,
            length: 0,
            right: [50_000; 32],
            refined: Box::new([row; 1 << REFINED_LOG]),
            stretch,
            gain: 0,
            chance: ONE / 2,
            rates: Box::new(rates),
        }
    }

    /// Bytes of the tables for 2^`log` bytes.
    pub(super) fn table_bytes(log: u32) -> usize {
        const FIXED: usize = 1 << 19;
        FIXED + (64 << log.saturating_sub(1).clamp(11, 17)) + (4 << log.clamp(10, 18))
    }

    /// Follows what stands at an index of the text, as if `length` bytes had agreed.
    pub(super) fn follow(&mut self, at: usize, length: u32) {
        (self.follows, self.length) = (at, length);
    }

    /// After the text was moved.
    pub(super) fn forget_places(&mut self) {
        self.places.fill(0);
        self.length = 0;
    }

    /// The slot of a context: its own, or the less used of two, made new.
    #[inline(always)]
    fn slot(&mut self, h: u32) -> (usize, bool) {
        let first = (h >> self.shift) as usize;
        let check = h | 1;
        for slot in [first, first ^ 1] {
            if self.slots[slot].0[0] == check {
                return (slot, true);
            }
        }
        let seen = |slot: usize| self.slots[slot].0[1] & 0x3FF;
        let slot = if seen(first) <= seen(first ^ 1) { first } else { first ^ 1 };
        let other = &mut self.slots[slot ^ 1].0[1];
        // The other ages, so that it gives way one day.
        *other -= u32::from(*other & 0x3FF > 0);
        self.slots[slot].0 = [EVEN; 16];
        self.slots[slot].0[0] = check;
        (slot, false)
    }

    /// Sixteenths of bits saved against the first context alone since the last call.
    pub(super) fn take_gain(&mut self) -> i32 {
        std::mem::take(&mut self.gain)
    }

    /// Codes a byte in the light of one context alone.
    pub(super) fn plain_byte<C: Coder>(&mut self, c: &mut C, byte: u8, h: u32) -> u8 {
        let mut bits = 1_u32;
        for half in [4, 0] {
            let low = if half == 4 { 0 } else { lower_half(bits) };
            let (slot, _) = self.slot(h ^ low);
            let mut node = 1;
            for i in (half..half + 4).rev() {
                let entry = &mut self.slots[slot].0[node];
                let chance = (*entry >> 16).clamp(24, 65_536 - 24);
                let bit = c.bit(byte >> i & 1 == 1, chance);
                learn(entry, bit, &self.rates, MAX_PLAIN_SEEN);
                node = (node << 1 | usize::from(bit)) & 15;
                bits = bits << 1 | u32::from(bit);
            }
        }
        bits as u8
    }

    fn predicted(&mut self, s: &Situation) -> Option<u8> {
        let hash = place_hash(s.recent);
        let at = hash as usize & (self.places.len() - 1);
        // With a check, so that the text is seldom looked at in vain.
        let check = hash & !PLACE_MASK;
        if self.length == 0 {
            // Nobody waits for the memory here while a match goes on.
            let place = self.places[at];
            let before = (place & PLACE_MASK) as usize;
            if place & !PLACE_MASK == check && before > 0 && before < s.at {
                let agree = agreeing(&s.text[..before], &s.text[..s.at]);
                if agree >= MATCH_BYTES {
                    self.follow(before, agree);
                }
            }
        }
        self.places[at] = check | s.at as u32 & PLACE_MASK;
        if self.length == 0 || self.follows >= s.at {
            self.length = 0;
            return None;
        }
        let byte = s.text[self.follows];
        Some(if byte == s.mark { 0 } else { byte })
    }

    /// Codes a byte; 0 stands for the end of a value too.
    pub(super) fn byte<C: Coder>(&mut self, c: &mut C, byte: u8, s: &Situation) -> u8 {
        self.bring(&s.contexts, 0);
        let predicted = self.predicted(s);
        let mut expected = predicted.map(u32::from);
        let length = if expected.is_some() { self.length.min(31) as usize } else { 0 };
        let mut slots = [0; CONTEXTS];
        let mut known = 0;
        let mut bits = 1_u32;
        for i in 0..8 {
            if i & 3 == 0 {
                known = 0;
                let low = if i == 0 { 0 } else { lower_half(bits) };
                for (slot, h) in slots.iter_mut().zip(s.contexts) {
                    let (at, found) = self.slot(h ^ low);
                    *slot = at;
                    known += usize::from(found);
                }
            }
            let top = 1_u32 << (i & 3);
            let node = (top | bits & (top - 1)) as usize;
            let mut inputs = [0_i16; INPUTS];
            for (input, &slot) in inputs.iter_mut().zip(&slots) {
                let entry = self.slots[slot].0[node & 15];
                let known = i16::from(entry & 0x3FF != 0).wrapping_neg();
                *input = self.stretch[(entry >> 20) as usize] & known;
            }
            if C::DECODES {
                self.look_ahead(&s.contexts, i, bits, expected);
            }
            let row = refined_row(s.recent as u32 & 0xFF, bits);
            let want = expected.map(|byte| byte >> (7 - i) & 1);
            if let Some(want) = want {
                let right = self.stretch[usize::from(self.right[length] >> 4)];
                // By arithmetic: which bit it is cannot be foreseen.
                let sign = want as i16 - 1;
                inputs[CONTEXTS] = (right ^ sign).wrapping_sub(sign);
            }
            let matched = if want.is_some() { 1 + length / 4 } else { 0 };
            let sets = [s.kind * 16 + matched, (s.kind * 16 + known) * 8 + i];
            let bit = self.mixed(c, byte >> (7 - i) & 1 == 1, &inputs, sets, row);
            if s.trial {
                let alone = (self.slots[slots[0]].0[node] >> 16).max(1).cast_signed();
                let alone = if bit { alone } else { ONE - alone };
                self.gain += log(self.chance) - log(alone.max(1));
            }
            for &slot in &slots {
                learn(&mut self.slots[slot].0[node], bit, &self.rates, MAX_SEEN);
            }
            if let Some(want) = want {
                let right = &mut self.right[length];
                if (want == 1) == bit {
                    *right = right.wrapping_add(65_400_u16.wrapping_sub(*right) >> 6);
                } else {
                    *right = right.wrapping_sub(right.wrapping_sub(100) >> 5);
                    expected = None;
                }
            }
            bits = bits << 1 | u32::from(bit);
        }
        let byte = bits as u8;
        if predicted.is_some() {
            if predicted == Some(byte) {
                self.follows += 1;
                self.length = (self.length + 1).min(400);
            } else {
                self.length = 0;
            }
        }
        byte
    }

    /// Has the slots of the lower half brought near: a decoder cannot ask for them before it has
    /// the upper half. Of the one that is expected, or, once there are only two, of both.
    #[inline(always)]
    fn look_ahead(&self, contexts: &[u32; CONTEXTS], i: usize, bits: u32, byte: Option<u32>) {
        match (i, byte) {
            (0, Some(byte)) => self.bring(contexts, lower_half(16 | byte >> 4)),
            (3, None) => {
                self.bring(contexts, lower_half(bits << 1));
                self.bring(contexts, lower_half(bits << 1 | 1));
            }
            _ => {}
        }
    }

    /// Has the slots of contexts brought near, while there is something else to do.
    #[inline(always)]
    fn bring(&self, contexts: &[u32; CONTEXTS], low: u32) {
        for h in contexts {
            prefetch_index(&self.slots, ((h ^ low) >> self.shift) as usize);
        }
    }

    #[inline(always)]
    fn mixed<C: Coder>(
        &mut self,
        c: &mut C,
        bit: bool,
        inputs: &[i16; INPUTS],
        sets: [usize; 2],
        row: usize,
    ) -> bool {
        let by_match = &mut self.by_match[sets[0] % MATCH_SETS];
        let by_known = &mut self.by_known[sets[1] % KNOWN_SETS];
        let outs = [weighed(inputs, by_match), weighed(inputs, by_known)];
        let mix = outs[0].wrapping_add(outs[1]) >> 1;
        let place = mix.wrapping_add(2048);
        let (step, part) = ((place >> 7) as usize & 31, place & 127);
        let row = &mut self.refined[row % (1 << REFINED_LOG)];
        let (left, right) = (i32::from(row[step]), i32::from(row[step + 1]));
        let refined = left.wrapping_mul(128 - part).wrapping_add(right.wrapping_mul(part)) >> 7;
        let chance = (squash(mix).wrapping_add(refined) >> 1).clamp(24, 65_536 - 24);
        let bit = c.bit(bit, chance as u32);
        self.chance = if bit { chance } else { ONE - chance };
        let target = i32::from(bit).wrapping_neg() & 65_535;
        let entry = &mut row[step + usize::from(part >= 64)];
        let refined = i32::from(*entry);
        let refined = refined.wrapping_add(target.wrapping_sub(refined) >> 6);
        *entry = refined.clamp(16, 65_519) as u16;
        for (weights, out) in [by_match, by_known].into_iter().zip(outs) {
            // In 1/4096, as the step of the gradient.
            let error = (target.wrapping_sub(squash(out)) >> 4).wrapping_mul(6) as i16;
            for (weight, input) in weights.iter_mut().zip(inputs) {
                let twice = i32::from(input << 1).wrapping_mul(i32::from(error)) >> 16;
                let step = (twice as i16).wrapping_add(1) >> 1;
                *weight = weight.saturating_add(step);
            }
        }
        bit
    }
}

/// Of the last [`MATCH_BYTES`] bytes.
#[inline(always)]
fn place_hash(recent: u64) -> u32 {
    join(recent as u32, (recent >> 32) as u32 & 0xFF)
}

/// How many of the last 32 bytes of two texts are the same.
#[inline(always)]
fn agreeing(a: &[u8], b: &[u8]) -> u32 {
    let mut agree = 0;
    while agree < 32 {
        let last = |text: &[u8]| {
            let text = &text[..text.len().saturating_sub(agree as usize)];
            text.last_chunk::<8>().map(|last| u64::from_le_bytes(*last))
        };
        let (Some(x), Some(y)) = (last(a), last(b)) else {
            let rest = a.iter().rev().zip(b.iter().rev()).skip(agree as usize);
            return agree + rest.take_while(|(x, y)| x == y).count() as u32;
        };
        let same = (x ^ y).leading_zeros() / 8;
        agree += same;
        if same < 8 {
            break;
        }
    }
    agree
}

/// What the contexts of the lower half of a byte differ in, by its bits so far.
#[inline(always)]
fn lower_half(bits: u32) -> u32 {
    bits.wrapping_mul(0x9E37_79B1)
}

/// The row of final chances by the byte before and the bits so far.
#[inline(always)]
fn refined_row(before: u32, bits: u32) -> usize {
    ((before << 8 | bits).wrapping_mul(0x9E37_79B1) >> (32 - REFINED_LOG)) as usize
}

/// What the inputs say together, in the range of [`squash`].
#[inline(always)]
fn weighed(inputs: &[i16; INPUTS], weights: &[i16; INPUTS]) -> i32 {
    let mut sum = 0_i32;
    for (input, weight) in inputs.iter().zip(weights) {
        sum = sum.wrapping_add(i32::from(*input).wrapping_mul(i32::from(*weight)));
    }
    (sum >> 14).clamp(-2047, 2047)
}
