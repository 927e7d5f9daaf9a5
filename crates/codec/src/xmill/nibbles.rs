//! Bytes by halves: three adaptive distributions over sixteen symbols, mixed.
//!
//! Each context has a slot: the shares of its sixteen symbols, moved towards what came. A new
//! context begins with the shares of the next lower one. Which of the three to believe is learned
//! apart for each kind of place and by how often each slot was seen.

#![expect(clippy::cast_possible_truncation, reason = "hashes are cut on purpose")]

use super::range::{Coder, SHARE_BITS, Shares};

/// The least share of a symbol; three of them must outlast the rounding of a mix of three.
const LEAST: u16 = 4;
/// Times seen above which a slot is not given to another context at once.
const KEEP: u16 = 2;
/// Times seen are counted up to this.
const MAX_SEEN: u16 = 31;
/// Kinds of places whose weights are learned apart.
const PLACES: usize = 64;
const WHOLE: u32 = 65535;

/// Shares in 1..16; in the place of the first, which is always 0, a check of the context (11 bits)
/// and how often it was seen (5 bits, 0: free).
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Slot([u16; 16]);

/// Where the shares go when a symbol came.
static TARGETS: [[u16; 16]; 16] = {
    let mut targets = [[0; 16]; 16];
    let mut symbol = 0;
    while symbol < 16 {
        let mut i = 1;
        while i < 16 {
            let floor = LEAST * i as u16;
            targets[symbol][i] = if i > symbol { 32768 - LEAST * 16 + floor } else { floor };
            i += 1;
        }
        symbol += 1;
    }
    targets
};

/// How far shares move, as a shift, by times seen: of the lowest model and of the others.
const PACE: [[u8; 32]; 3] = [
    paces([0, 1, 3, 6, 11, 20, 31, 99]),
    paces([0, 2, 4, 8, 16, 31, 99, 99]),
    paces([0, 3, 8, 14, 99, 99, 99, 99]),
];

/// Shifts by times seen: the next from each of `steps` on.
const fn paces(steps: [u8; 8]) -> [u8; 32] {
    let mut paces = [0; 32];
    let mut seen = 0;
    while seen < 32 {
        let mut i = 0;
        while i < 8 {
            if seen as u8 >= steps[i] {
                paces[seen] += 1;
            }
            i += 1;
        }
        seen += 1;
    }
    paces
}

const EVEN: Shares = {
    let mut shares = [0; 16];
    let mut i = 0;
    while i < 16 {
        shares[i] = 2048 * i as u16;
        i += 1;
    }
    shares
};

/// The slots and weights of one stream.
pub(super) struct Nibbles {
    slots: Vec<Slot>,
    shift: u32,
    /// Of a hash, what differs between the halves of one byte.
    mask: u32,
    /// By place, half and times seen of the two higher models: the weight of the highest, and of
    /// the middle one in what is left, of 65536.
    weights: Vec<[u16; 2]>,
}

impl Nibbles {
    /// 2^`slots_log` slots of 32 bytes.
    pub(super) fn new(slots_log: u32) -> Self {
        let mut weights = vec![[0; 2]; PLACES * 2 * 16];
        for (i, weight) in weights.iter_mut().enumerate() {
            const START: [u16; 4] = [14000, 34000, 44000, 50000];
            *weight = [START[i & 3], START[i >> 2 & 3]];
        }
        Self {
            slots: vec![Slot([0; 16]); 1 << slots_log],
            shift: 32 - slots_log,
            mask: u32::MAX >> slots_log.saturating_sub(8),
            weights,
        }
    }

    /// A byte: contexts from the lowest to the highest, and the kind of place.
    #[inline(always)]
    pub(super) fn byte<C: Coder>(&mut self, c: &mut C, byte: u8, h: [u32; 3], place: usize) -> u8 {
        let place = place % PLACES * 32;
        let high = self.nibble(c, usize::from(byte >> 4), h, place);
        let h = h.map(|h| salted(h, high, self.mask));
        let low = self.nibble(c, usize::from(byte & 15), h, place + 16);
        (high << 4 | low) as u8
    }

    /// Half a byte.
    #[inline(always)]
    pub(super) fn nibble<C: Coder>(
        &mut self,
        c: &mut C,
        symbol: usize,
        h: [u32; 3],
        weights: usize,
    ) -> usize {
        let [a, b, d] = h.map(|h| (h >> self.shift) as usize);
        let (low, _) = self.seen(a, h[0], &EVEN);
        let (middle, middle_seen) = self.seen(b, h[1], &low);
        let (high, high_seen) = self.seen(d, h[2], &middle);
        let weights = weights + 4 * class(middle_seen) + class(high_seen);
        let [top, mid] = self.weights[weights].map(u32::from);
        let rest = WHOLE - top;
        let mid_part = (rest * mid) >> 16;
        let parts = [rest - mid_part, mid_part, top].map(|part| part as u16);
        let mut mixed = [0; 16];
        for i in 0..16 {
            mixed[i] = scaled(low[i], parts[0])
                .wrapping_add(scaled(middle[i], parts[1]))
                .wrapping_add(scaled(high[i], parts[2]));
        }
        let symbol = c.nibble(symbol, &mixed) & 15;
        let [p, q, r, m] = [&low, &middle, &high, &mixed].map(|shares| share(shares, symbol));
        // The gradient of the code length: how much better the higher model alone would have been.
        let weight = &mut self.weights[weights];
        weight[0] = learned(weight[0], (r - m) * 4096 / m);
        weight[1] = learned(weight[1], (q - p) * 4096 / m);
        self.learn(a, h[0], low, symbol, &PACE[0]);
        self.learn(b, h[1], middle, symbol, &PACE[1]);
        self.learn(d, h[2], high, symbol, &PACE[2]);
        symbol
    }

    /// The shares of a context and how often it was seen; of a new one, those of the lower.
    #[inline(always)]
    fn seen(&self, slot: usize, h: u32, lower: &Shares) -> (Shares, u16) {
        let slot = &self.slots[slot].0;
        let seen = slot[0] & 31;
        if seen == 0 || slot[0] >> 5 != h as u16 & 0x7FF {
            return (*lower, 0);
        }
        let mut shares = *slot;
        shares[0] = 0;
        (shares, seen)
    }

    #[inline(always)]
    fn learn(&mut self, slot: usize, h: u32, mut shares: Shares, symbol: usize, pace: &[u8; 32]) {
        let slot = &mut self.slots[slot].0;
        let check = (h as u16 & 0x7FF) << 5;
        let mut seen = slot[0] & 31;
        if slot[0] & !31 != check {
            // A context that came often holds its place for a while.
            if seen > KEEP {
                slot[0] -= 1;
                return;
            }
            seen = 0;
        }
        let pace = u32::from(pace[usize::from(seen)] & 15);
        let targets = &TARGETS[symbol & 15];
        for i in 0..16 {
            let away = targets[i].wrapping_sub(shares[i]).cast_signed();
            shares[i] = shares[i].wrapping_add((away >> pace).cast_unsigned());
        }
        *slot = shares;
        slot[0] = check | (seen + 1).min(MAX_SEEN);
    }
}

/// The context of the lower half: on the same page of memory as the higher.
#[inline(always)]
fn salted(h: u32, high: usize, mask: u32) -> u32 {
    let salt = (high as u32 + 1).wrapping_mul(0x9E37_79B1) ^ h.wrapping_mul(0x2C1B_3C6D);
    h ^ salt & mask
}

/// Sixteen times the logarithm to base 2, roughly.
#[inline(always)]
pub(super) fn log(share: i32) -> i32 {
    let whole = share.max(1).ilog2();
    (whole as i32) << 4 | (share << 4 >> whole) & 15
}

#[inline(always)]
fn scaled(share: u16, part: u16) -> u16 {
    ((u32::from(share) * u32::from(part)) >> 16) as u16
}

#[inline(always)]
fn share(shares: &Shares, symbol: usize) -> i32 {
    let end = if symbol == 15 { 1 << SHARE_BITS } else { i32::from(shares[(symbol & 15) + 1]) };
    end - i32::from(shares[symbol & 15])
}

#[inline(always)]
fn learned(weight: u16, gain: i32) -> u16 {
    const STEP: i32 = 3;
    let weight = i32::from(weight) + gain.clamp(-8192, 8192) / STEP;
    weight.clamp(256, 65000) as u16
}

#[inline(always)]
fn class(seen: u16) -> usize {
    match seen {
        0 => 0,
        1..=2 => 1,
        3..=8 => 2,
        _ => 3,
    }
}
