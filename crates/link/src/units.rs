//! Human units: rates, durations, sizes and shares, read and written.
//!
//! Numbers are decimal ("9.6 kbit/s"); between number and unit a space may stand. Reading is exact
//! down to the smallest unit (1 bit/s, 1 ns, 1 B) and rounds below it. Writing is exact: what is
//! written reads back as the same value.

use crate::Error;
use std::time::Duration;

/// Units of rates, with their value in bit/s.
const RATES: [(&str, u128); 4] =
    [("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)];

/// Units of durations, with their value in nanoseconds.
const DURATIONS: [(&str, u128); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Units of sizes, with their value in bytes.
const SIZES: [(&str, u128); 7] = [
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// Most digits of a number, so that no product below overflows.
const MAX_DIGITS: usize = 18;

/// Reads a rate in bit/s: `250 kbit/s`, `9.6 kbit/s`, `2 Mbit/s`.
///
/// # Errors
/// [`Error::Value`] when it is no number with one of the units bit/s, kbit/s, Mbit/s, Gbit/s.
pub fn parse_rate(text: &str) -> Result<u64, Error> {
    parse(text, &RATES)
        .and_then(|bps| u64::try_from(bps).ok())
        .ok_or_else(|| refused(text, "a rate in bit/s, kbit/s, Mbit/s or Gbit/s (like 250 kbit/s)"))
}

/// Reads a duration: `550 ms`, `1.5 s`, `2 min`. A bare `0` needs no unit.
///
/// # Errors
/// [`Error::Value`] when it is no number with one of the units ns, us, ms, s, min, h.
pub fn parse_duration(text: &str) -> Result<Duration, Error> {
    parse(text, &DURATIONS)
        .and_then(|nanos| u64::try_from(nanos).ok())
        .map(Duration::from_nanos)
        .ok_or_else(|| refused(text, "a duration in ns, us, ms, s, min or h (like 550 ms)"))
}

/// Reads a size in bytes: `1500 B`, `15 KB` (of 1000), `64 KiB` (of 1024). A bare `0` needs no
/// unit.
///
/// # Errors
/// [`Error::Value`] when it is no number with one of the units B, KB, MB, GB, KiB, MiB, GiB.
pub fn parse_size(text: &str) -> Result<u64, Error> {
    parse(text, &SIZES)
        .and_then(|bytes| u64::try_from(bytes).ok())
        .ok_or_else(|| refused(text, "a size in B, KB, MB, GB, KiB, MiB or GiB (like 15 KB)"))
}

/// Reads a share, 0 to 1, from per cent: `1 %`, `0.5 %`. A bare `0` needs no sign.
///
/// # Errors
/// [`Error::Value`] when it is no number from 0 to 100 followed by %.
pub fn parse_share(text: &str) -> Result<f64, Error> {
    let share = split(text).and_then(|(number, unit)| {
        let number = Number::parse(number)?;
        let known = unit == "%" || (unit.is_empty() && number.digits == 0);
        // Read with the exponent moved, 7 % is the same value as the literal 0.07.
        known.then(|| format!("{}e-{}", number.digits, number.decimals + 2).parse::<f64>().ok())?
    });
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| refused(text, "a share from 0 % to 100 % (like 1 %)"))
}

/// Writes a rate in bit/s: `9.6 kbit/s`.
#[must_use]
pub fn format_rate(bps: u64) -> String {
    format_exact(bps, &RATES)
}

/// Writes a duration: `550 ms`. Beyond 584 years it says those.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let decimal = [DURATIONS[0], DURATIONS[1], DURATIONS[3], DURATIONS[4]];
    format_exact(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX), &decimal)
}

/// Writes a size in bytes: `15 KB` (of 1000).
#[must_use]
pub fn format_size(bytes: u64) -> String {
    format_exact(bytes, &SIZES[..4])
}

/// Writes a share, 0 to 1, in per cent: `0.5 %`.
#[must_use]
pub fn format_share(share: f64) -> String {
    // The shortest digits that stand for the share, with the point moved by two places.
    let scientific = format!("{share:e}");
    let moved = scientific.split_once('e').and_then(|(digits, exponent)| {
        let exponent: i32 = exponent.parse().ok()?;
        format!("{digits}e{}", exponent + 2).parse::<f64>().ok()
    });
    format!("{} %", moved.unwrap_or(share * 100.0))
}

fn refused(text: &str, expected: &str) -> Error {
    Error::Value { value: text.to_owned(), expected: expected.to_owned() }
}

/// An unsigned decimal number: `digits / 10^decimals`.
struct Number {
    digits: u128,
    decimals: u32,
}

impl Number {
    fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = match text.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (text, ""),
        };
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        if whole.len() + fraction.len() > MAX_DIGITS {
            return None;
        }
        let digits = format!("{whole}{fraction}").parse().ok()?;
        Some(Self { digits, decimals: u32::try_from(fraction.len()).ok()? })
    }
}

/// Number and unit, the latter possibly empty.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    Some((number, unit.trim_start()))
}

/// Reads number and unit; the nearest whole multiple of the smallest unit.
fn parse(text: &str, units: &[(&str, u128)]) -> Option<u128> {
    let (number, unit) = split(text)?;
    let number = Number::parse(number)?;
    if unit.is_empty() && number.digits == 0 {
        return Some(0);
    }
    let (_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    let divisor = 10_u128.pow(number.decimals);
    Some((number.digits * scale + divisor / 2) / divisor)
}

/// In the largest decimal unit that is not above the value.
fn format_exact(value: u64, units: &[(&str, u128)]) -> String {
    let value = u128::from(value);
    let fitting = units.iter().rev().find(|(_, scale)| *scale <= value);
    let Some((unit, scale)) = fitting.or(units.first()) else { return value.to_string() };
    let (whole, rest) = (value / scale, value % scale);
    if rest == 0 {
        return format!("{whole} {unit}");
    }
    let places = scale.ilog10() as usize;
    let fraction = format!("{rest:0places$}");
    format!("{whole}.{} {unit}", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests;
