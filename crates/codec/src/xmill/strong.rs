//! Bytes bit by bit, for the highest levels: many contexts guess, and a small network that learns
//! whom to believe where mixes them (M. Mahoney, "Adaptive weighing of context models for lossless
//! data compression", Florida Tech CS-2005-16).

#![expect(clippy::cast_possible_truncation, reason = "hashes and shares are cut on purpose")]

use super::nibbles::log;
use super::pieces::join;
use super::range::Coder;

/// Contexts of a byte.
pub(super) const CONTEXTS: usize = 5;
/// With the byte that followed the last match.
const INPUTS: usize = 8;
/// Bytes that must agree before a match is followed.
const MATCH_BYTES: u32 = 5;
/// Times seen are counted up to this; then chances move by so much of what is missing.
const SEEN_MAX: u32 = 60;
/// The same where one context speaks alone, which is where nothing changes.
const PLAIN_SEEN_MAX: u32 = 1000;
/// Bits of a chance in a slot, above the times seen.
const CHANCE_SHIFT: u32 = 10;
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
    weights: [Vec<[i16; INPUTS]>; 2],
    /// Positions by hash of the last bytes.
    places: Vec<u32>,
    follows: usize,
    length: u32,
    /// Chances that the bit of the match is right, by length.
    right: [u16; 64],
    /// Final chances by the bits so far and the byte before, in steps of the mix.
    refined: Vec<[u16; 33]>,
    stretch: Vec<i16>,
    gain: i32,
    /// Of what came last, in 1/65536.
    chance: i32,
    /// By times seen, in 1/1024.
    rates: Vec<i32>,
}

/// 4096 / (1 + e^-x) at steps of a half from -8 to 8.
const LOGISTIC: [i32; 33] = [
    1, 2, 3, 6, 10, 17, 27, 45, 74, 120, 194, 311, 488, 747, 1102, 1546, 2048, 2550, 2994, 3349,
    3608, 3785, 3902, 3976, 4022, 4051, 4069, 4079, 4086, 4090, 4093, 4094, 4095,
];

/// Of 65536, for a number of which 256 are one.
fn squash(x: i32) -> i32 {
    let x = x.clamp(-2047, 2047) + 2048;
    let (step, part) = ((x >> 7) as usize, x & 127);
    (LOGISTIC[step] * (128 - part) + LOGISTIC[(step + 1).min(32)] * part) >> 3
}

/// Moves the chance of an entry towards what came, the less the more often it was seen.
#[inline(always)]
fn learn(entry: &mut u32, bit: bool, rates: &[i32], most: u32) {
    let seen = *entry & 0x3FF;
    let chance = *entry >> CHANCE_SHIFT;
    let target = if bit { (1 << 22) - 1 } else { 0 };
    let away = (target - chance.cast_signed()) >> 3;
    let step = (away * rates[seen as usize]) >> 7;
    *entry = chance.wrapping_add_signed(step) << CHANCE_SHIFT | (seen + 1).min(most);
}

impl Strong {
    pub(super) fn new(log: u32) -> Self {
        let slots_log = log.saturating_sub(1).clamp(11, 17);
        let mut stretch = vec![0; 4096];
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
            *entry = squash((i as i32 - 16) * 128).min(65_535) as u16;
        }
        let rates = (0..=PLAIN_SEEN_MAX).map(|seen| 2048 / (2 * seen.cast_signed() + 3)).collect();
        Self {
            slots: vec![Slot([EVEN; 16]); 1 << slots_log],
            shift: 32 - slots_log,
            weights: [vec![[START; INPUTS]; 4 * 16], vec![[START; INPUTS]; 4 * 16 * 8]],
            places: vec![0; 1 << log.clamp(10, 18)],
            follows: 0,
            length: 0,
            right: [50_000; 64],
            refined: vec![row; 1 << 12],
            stretch,
            gain: 0,
            chance: ONE / 2,
            rates,
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
            let low = if half == 4 { 0 } else { bits.wrapping_mul(0x9E37_79B1) };
            let (slot, _) = self.slot(h ^ low);
            let mut node = 1;
            for i in (half..half + 4).rev() {
                let entry = &mut self.slots[slot].0[node];
                let chance = (*entry >> 16).clamp(24, 65_536 - 24);
                let bit = c.bit(byte >> i & 1 == 1, chance);
                learn(entry, bit, &self.rates, PLAIN_SEEN_MAX);
                node = (node << 1 | usize::from(bit)) & 15;
                bits = bits << 1 | u32::from(bit);
            }
        }
        bits as u8
    }

    fn predicted(&mut self, s: &Situation) -> Option<u8> {
        let hash = join(s.recent as u32, (s.recent >> 32) as u32 & 0xFF) as usize;
        let mask = self.places.len() - 1;
        if self.length == 0 {
            let place = self.places[hash & mask] as usize;
            if place > 0 && place < s.at {
                let agree = s.text[..place].iter().rev().zip(s.text[..s.at].iter().rev());
                let agree = agree.take(32).take_while(|(a, b)| a == b).count() as u32;
                if agree >= MATCH_BYTES {
                    self.follow(place, agree);
                }
            }
        }
        self.places[hash & mask] = s.at as u32;
        if self.length == 0 || self.follows >= s.at {
            self.length = 0;
            return None;
        }
        let byte = s.text[self.follows];
        Some(if byte == s.mark { 0 } else { byte })
    }

    /// Codes a byte; 0 stands for the end of a value too.
    pub(super) fn byte<C: Coder>(&mut self, c: &mut C, byte: u8, s: &Situation) -> u8 {
        let predicted = self.predicted(s);
        let mut expected = predicted.map(u32::from);
        let length = if expected.is_some() { self.length.min(31) } else { 0 };
        let mut slots = [0; CONTEXTS];
        let mut known = 0;
        let mut bits = 1_u32;
        for i in 0..8 {
            if i & 3 == 0 {
                known = 0;
                let low = if i == 0 { 0 } else { bits.wrapping_mul(0x9E37_79B1) };
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
                let entry = self.slots[slot].0[node];
                let stretched = self.stretch[(entry >> 20) as usize];
                *input = if entry & 0x3FF == 0 { 0 } else { stretched };
            }
            let want = expected.map(|byte| byte >> (7 - i) & 1);
            if let Some(want) = want {
                let right = self.stretch[usize::from(self.right[length as usize] >> 4)];
                inputs[CONTEXTS] = if want == 1 { right } else { -right };
            }
            let matched = if want.is_some() { 1 + length as usize / 4 } else { 0 };
            let sets = [s.kind * 16 + matched, (s.kind * 16 + known) * 8 + i];
            let bit = self.mixed(
                c,
                byte >> (7 - i) & 1 == 1,
                &inputs,
                sets,
                bits,
                s.recent as u32 & 0xFF,
            );
            if s.trial {
                let alone = (self.slots[slots[0]].0[node] >> 16).max(1).cast_signed();
                let alone = if bit { alone } else { ONE - alone };
                self.gain += log(self.chance) - log(alone.max(1));
            }
            for &slot in &slots {
                learn(&mut self.slots[slot].0[node], bit, &self.rates, SEEN_MAX);
            }
            if let Some(want) = want {
                let right = &mut self.right[length as usize];
                if (want == 1) == bit {
                    *right += (65_400 - *right) >> 6;
                } else {
                    *right -= (*right - 100) >> 5;
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

    #[inline(always)]
    fn mixed<C: Coder>(
        &mut self,
        c: &mut C,
        bit: bool,
        inputs: &[i16; INPUTS],
        sets: [usize; 2],
        bits: u32,
        before: u32,
    ) -> bool {
        let mut outs = [0; 2];
        for k in 0..2 {
            let weights = &self.weights[k][sets[k]];
            let mut sum = 0_i32;
            for i in 0..INPUTS {
                let part = i32::from(inputs[i]).wrapping_mul(i32::from(weights[i]));
                sum = sum.wrapping_add(part);
            }
            outs[k] = (sum >> 14).clamp(-2047, 2047);
        }
        let mix = (outs[0] + outs[1]) >> 1;
        let row = ((before << 8 | bits).wrapping_mul(0x9E37_79B1) >> 20) as usize;
        let place = mix + 2048;
        let (step, part) = ((place >> 7) as usize, place & 127);
        let row = &mut self.refined[row];
        let (left, right) = (i32::from(row[step]), i32::from(row[(step + 1).min(32)]));
        let refined = (left * (128 - part) + right * part) >> 7;
        let chance = ((squash(mix) + refined) >> 1).clamp(24, 65_536 - 24);
        let bit = c.bit(bit, chance as u32);
        self.chance = if bit { chance } else { ONE - chance };
        let target = if bit { 65_535 } else { 0 };
        let entry = &mut row[step + usize::from(part >= 64)];
        *entry = (i32::from(*entry) + ((target - i32::from(*entry)) >> 6)).clamp(16, 65_519) as u16;
        for k in 0..2 {
            // In 1/4096, as the step of the gradient.
            let error = ((target - squash(outs[k])) >> 4).wrapping_mul(6) as i16;
            let weights = &mut self.weights[k][sets[k]];
            for i in 0..INPUTS {
                let twice = i32::from(inputs[i] << 1).wrapping_mul(i32::from(error)) >> 16;
                let step = (twice as i16).wrapping_add(1) >> 1;
                weights[i] = weights[i].saturating_add(step);
            }
        }
        bit
    }
}
