//! Logistic fixed point: probabilities of 16 bits and their logits with 8 fractional bits.
//!
//! Integers, so that every machine comes to the same probabilities.

/// Greatest logit, 12 − 1/256.
pub(super) const MAX_LOGIT: i32 = 12 * 256 - 1;

/// 65536 / (1 + e^−x) for x = 0, 1/4 … 12.
const KNOTS: [i32; 49] = [
    32_768, 36_843, 40_793, 44_511, 47_911, 50_941, 53_581, 55_834, 57_724, 59_287, 60_565, 61_598,
    62_428, 63_090, 63_615, 64_030, 64_357, 64_614, 64_816, 64_974, 65_097, 65_194, 65_269, 65_328,
    65_374, 65_410, 65_438, 65_459, 65_476, 65_489, 65_500, 65_508, 65_514, 65_519, 65_523, 65_526,
    65_528, 65_530, 65_531, 65_532, 65_533, 65_534, 65_534, 65_535, 65_535, 65_535, 65_535, 65_535,
    65_535,
];

const fn squash_of(logit: i32) -> i32 {
    let size = if logit < 0 { -logit } else { logit };
    let size = if size > MAX_LOGIT { MAX_LOGIT } else { size };
    let (at, part) = ((size >> 6) as usize, size & 63);
    let p = KNOTS[at] + (((KNOTS[at + 1] - KNOTS[at]) * part + 32) >> 6);
    let p = if p > 65_535 { 65_535 } else { p };
    if logit < 0 { 65_536 - p } else { p }
}

/// Logits of the probabilities i/65536 below 4096 and of 16·i/65536.
struct Logits {
    fine: [i16; 4096],
    coarse: [i16; 4096],
}

static LOGITS: Logits = logits();

#[expect(clippy::cast_possible_truncation, reason = "logits are within ±3071")]
const fn logits() -> Logits {
    let mut table = Logits { fine: [0; 4096], coarse: [0; 4096] };
    let mut logit = -MAX_LOGIT;
    let mut i = 0;
    while i < 4096 {
        while logit < MAX_LOGIT && squash_of(logit) < i {
            logit += 1;
        }
        table.fine[i as usize] = logit as i16;
        i += 1;
    }
    logit = -MAX_LOGIT;
    i = 0;
    while i < 4096 {
        while logit < MAX_LOGIT && squash_of(logit) < i * 16 {
            logit += 1;
        }
        table.coarse[i as usize] = logit as i16;
        i += 1;
    }
    table
}

/// The probability of a logit, from 1 to 65535.
pub(super) fn squash(logit: i32) -> i32 {
    squash_of(logit)
}

/// The logit of a probability of 16 bits.
pub(super) fn stretch(p: i32) -> i32 {
    let p = p.clamp(1, 65_535);
    let at = |table: &[i16; 4096], i: i32| i32::from(table[(i & 4095) as usize]);
    match p {
        ..4096 => at(&LOGITS.fine, p),
        61_441.. => -at(&LOGITS.fine, 65_536 - p),
        _ => at(&LOGITS.coarse, p >> 4),
    }
}
