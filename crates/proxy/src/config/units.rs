//! Durations and sizes as people write them.

use std::time::Duration;

const DURATIONS: &[(&str, f64)] =
    &[("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0), ("d", 86_400.0)];
const SIZES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];
const RATES: &[(&str, f64)] = &[("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)];
/// What other programs call these units.
const OTHER_SPELLINGS: &[(&str, &str)] = &[
    ("msec", "ms"),
    ("sec", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("m", "min"),
    ("minute", "min"),
    ("minutes", "min"),
    ("hour", "h"),
    ("hours", "h"),
    ("day", "d"),
    ("days", "d"),
    ("k", "KiB"),
    ("m", "MiB"),
    ("g", "GiB"),
    ("bps", "bit/s"),
    ("kbps", "kbit/s"),
    ("mbps", "Mbit/s"),
    ("gbps", "Gbit/s"),
    ("kb/s", "kbit/s"),
    ("mb/s", "Mbit/s"),
    ("kbit", "kbit/s"),
    ("mbit", "Mbit/s"),
    ("gbit", "Gbit/s"),
];
/// Longest duration accepted: a year says that no bound is meant.
const MAX_SECONDS: f64 = 366.0 * 86_400.0;
/// Largest size accepted: beyond it a bound bounds nothing.
const MAX_BYTES: f64 = 1e15;

/// A duration in a configuration, like `"550 ms"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period(pub Duration);

/// A size in a configuration, like `"64 KiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

/// A rate in a configuration, like `"250 kbit/s"`; in bit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate(pub f64);

impl Rate {
    /// Reads a number and one of bit/s, kbit/s, Mbit/s, Gbit/s.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bps = scaled(text, RATES, "250 kbit/s")?;
        if (1.0..=MAX_BYTES).contains(&bps) {
            Ok(Self(bps))
        } else {
            Err(format!("'{text}' is not from 1 bit/s to {MAX_BYTES} bit/s"))
        }
    }
}

impl Period {
    /// Reads a number and one of ms, s, min, h, d.
    pub fn parse(text: &str) -> Result<Self, String> {
        let seconds = scaled(text, DURATIONS, "550 ms")?;
        if seconds > MAX_SECONDS {
            return Err(format!("'{text}' is over the limit of {MAX_SECONDS} s"));
        }
        Ok(Self(Duration::from_secs_f64(seconds)))
    }
}

impl Size {
    /// Reads a number and one of B, KB, MB, GB, KiB, MiB, GiB.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bytes = scaled(text, SIZES, "64 KiB")?;
        if bytes > MAX_BYTES {
            return Err(format!("'{text}' is over the limit of {MAX_BYTES} B"));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to MAX_BYTES
        Ok(Self(bytes.round() as u64))
    }
}

fn scaled(text: &str, units: &[(&str, f64)], example: &str) -> Result<f64, String> {
    let text = text.trim();
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = (text[..at].trim(), text[at..].trim());
    let plain = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let value: Option<f64> = number.parse().ok().filter(|_| plain);
    let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
    match (value, factor, meant(unit, &names)) {
        (Some(value), Some(factor), _) => Ok(value * factor),
        (Some(_), None, Some(meant)) => {
            Err(format!("'{text}' has the unit '{unit}': write '{number} {meant}'"))
        }
        (Some(_), None, None) if unit.is_empty() => {
            let names = names.join(", ");
            Err(format!("'{text}' has no unit: add one of {names}, like '{example}'"))
        }
        _ => {
            let names = names.join(", ");
            Err(format!("'{text}' is not a number and one of {names}, like '{example}'"))
        }
    }
}

/// The unit that another spelling of it means: capitals, or as other programs have it.
fn meant<'a>(unit: &str, names: &[&'a str]) -> Option<&'a str> {
    let other = |name: &str| {
        let mut all = OTHER_SPELLINGS.iter().filter(|(other, _)| other.eq_ignore_ascii_case(unit));
        all.any(|(_, meant)| *meant == name)
    };
    let same = names.iter().find(|name| name.eq_ignore_ascii_case(unit));
    same.or_else(|| names.iter().find(|name| other(name))).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_carry_their_unit() {
        assert_eq!(Period::parse("550 ms"), Ok(Period(Duration::from_millis(550))));
        assert_eq!(Period::parse("1.5min"), Ok(Period(Duration::from_secs(90))));
        assert_eq!(Size::parse("64 KiB"), Ok(Size(65_536)));
        assert_eq!(Size::parse("2 MB"), Ok(Size(2_000_000)));
        assert_eq!(Rate::parse("9.6 kbit/s"), Ok(Rate(9600.0)));
        assert!(Rate::parse("0 bit/s").is_err() && Rate::parse("5 kbit").is_err());
        for text in ["", "5", "ms", "-1 s", "1e9 s", "5 parsecs", "1..2 s", "NaN s", "1 kb"] {
            assert!(Period::parse(text).is_err(), "{text}");
            assert!(Size::parse(text).is_err(), "{text}");
        }
        for (said, expected) in [
            (Period::parse("30m").map(drop), "write '30 min'"),
            (Period::parse("30").map(drop), "has no unit"),
            (Size::parse("4 mib").map(drop), "write '4 MiB'"),
            (Size::parse("64k").map(drop), "write '64 KiB'"),
            (Rate::parse("250 Kbit/s").map(drop), "write '250 kbit/s'"),
            (Rate::parse("5 mbps").map(drop), "write '5 Mbit/s'"),
        ] {
            let error = said.unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert!(Period::parse("99999 h").unwrap_err().contains("limit"));
    }
}
