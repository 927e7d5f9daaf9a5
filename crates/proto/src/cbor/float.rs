//! Floats of 16, 32 and 64 bits (RFC 8949 §3.3, appendix D).

/// The value of a half-precision float (IEEE 754 binary16); the payload of a NaN stays.
#[must_use]
pub fn double_of_half(half: u16) -> f64 {
    let sign = u64::from(half >> 15) << 63;
    let exponent = u64::from(half >> 10 & 0x1f);
    let fraction = u64::from(half & 0x3ff);
    match exponent {
        // Subnormal: units of 2^-24, which a double holds exactly.
        0 => {
            #[expect(clippy::cast_precision_loss, reason = "ten bits")]
            let size = fraction as f64 / f64::from(1 << 24);
            f64::from_bits(size.to_bits() | sign)
        }
        31 => f64::from_bits(sign | 0x7ff << 52 | fraction << 42),
        _ => f64::from_bits(sign | (exponent + 1023 - 15) << 52 | fraction << 42),
    }
}

/// The half that has exactly this value, NaN payload included.
fn half_of_double(value: f64) -> Option<u16> {
    let bits = value.to_bits();
    let sign = u16::from(value.is_sign_negative()) << 15;
    let exponent = bits >> 52 & 0x7ff;
    let fraction = bits & ((1 << 52) - 1);
    let low = |shift: u32| fraction & ((1 << shift) - 1);
    let top = |bits: u64| u16::try_from(bits).ok();
    match exponent {
        0 if fraction == 0 => Some(sign),
        0x7ff if low(42) == 0 => Some(sign | 0x7c00 | top(fraction >> 42)?),
        // Normal halves: 2^-14 to 2^15.
        1009..=1038 if low(42) == 0 => {
            Some(sign | top(exponent - 1008)? << 10 | top(fraction >> 42)?)
        }
        // Subnormal halves: the hidden bit comes into the fraction.
        999..=1008 => {
            let shift = u32::try_from(1051 - exponent).ok()?;
            let whole = fraction | 1 << 52;
            (whole & ((1 << shift) - 1) == 0).then_some(sign | top(whole >> shift)?)
        }
        _ => None,
    }
}

/// The single that has exactly this value, NaN payload included.
fn single_of_double(value: f64) -> Option<u32> {
    let bits = value.to_bits();
    if value.is_nan() {
        let high = u32::try_from(bits >> 32).ok()?;
        let fraction = u32::try_from(bits >> 29 & 0x7f_ffff).ok()?;
        return (bits & 0x1fff_ffff == 0).then_some(high & 0x8000_0000 | 0x7f80_0000 | fraction);
    }
    #[expect(clippy::cast_possible_truncation, reason = "compared with the value below")]
    let single = value as f32;
    (f64::from(single).to_bits() == bits).then_some(single.to_bits())
}

/// A float in the shortest form that keeps its value (RFC 8949 §4.2.2), as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortest {
    /// Binary16.
    Half(u16),
    /// Binary32.
    Single(u32),
    /// Binary64.
    Double(u64),
}

/// The shortest form of `value`.
#[must_use]
pub fn shortest(value: f64) -> Shortest {
    if let Some(half) = half_of_double(value) {
        Shortest::Half(half)
    } else if let Some(single) = single_of_double(value) {
        Shortest::Single(single)
    } else {
        Shortest::Double(value.to_bits())
    }
}

/// The value of a single, NaN payload included (a cast may quieten it).
pub(super) fn double_of_single(bits: u32) -> f64 {
    let single = f32::from_bits(bits);
    if single.is_nan() {
        let sign = u64::from(bits >> 31) << 63;
        return f64::from_bits(sign | 0x7ff << 52 | u64::from(bits & 0x7f_ffff) << 29);
    }
    f64::from(single)
}
