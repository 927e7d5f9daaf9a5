//! Diagnostic notation (RFC 8949 §8), for people.

use core::fmt;

use super::{Decoder, FALSE, Item, NULL, TRUE, UNDEFINED};

/// Levels that are shown.
const DEPTH: usize = 64;

/// Shows the item that a slice begins with; where it is not well-formed or nested deeper than 64,
/// `!` and the reason take its place.
#[derive(Clone, Copy, Debug)]
pub struct Diagnostic<'a>(
    /// One encoded item.
    pub &'a [u8],
);

impl fmt::Display for Diagnostic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut decoder = Decoder::<DEPTH>::new(self.0);
        item(&mut decoder, f).map(|_| ())
    }
}

/// One item with what is nested in it; false at a break or an error.
fn item(decoder: &mut Decoder<'_, DEPTH>, f: &mut fmt::Formatter<'_>) -> Result<bool, fmt::Error> {
    match decoder.next() {
        None => return Ok(false),
        Some(Err(error)) => {
            write!(f, "!{error}")?;
            return Ok(false);
        }
        Some(Ok(Item::Break)) => return Ok(false),
        Some(Ok(first)) => show(first, decoder, f)?,
    }
    Ok(true)
}

fn show(
    first: Item<'_>,
    decoder: &mut Decoder<'_, DEPTH>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    match first {
        Item::Unsigned(value) => write!(f, "{value}"),
        Item::Negative(argument) => write!(f, "{}", -1 - i128::from(argument)),
        Item::Bytes(bytes) => {
            f.write_str("h'")?;
            bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
            f.write_str("'")
        }
        Item::Text(value) => text(value, f),
        // RFC 8949 §8.1: an indefinite length shows as an underscore.
        Item::StartBytes | Item::StartText => several(["(_ ", ", ", ", ", ")"], None, decoder, f),
        Item::Array(Some(len)) => several(["[", ", ", ", ", "]"], Some(len), decoder, f),
        Item::Array(None) => several(["[_ ", ", ", ", ", "]"], None, decoder, f),
        Item::Map(Some(len)) => {
            several(["{", ": ", ", ", "}"], Some(len.saturating_mul(2)), decoder, f)
        }
        Item::Map(None) => several(["{_ ", ": ", ", ", "}"], None, decoder, f),
        Item::Tag(tag) => {
            write!(f, "{tag}(")?;
            item(decoder, f)?;
            f.write_str(")")
        }
        Item::Simple(FALSE) => f.write_str("false"),
        Item::Simple(TRUE) => f.write_str("true"),
        Item::Simple(NULL) => f.write_str("null"),
        Item::Simple(UNDEFINED) => f.write_str("undefined"),
        Item::Simple(value) => write!(f, "simple({value})"),
        Item::Half(_) | Item::Single(_) | Item::Double(_) => float(first.float(), f),
        Item::Break => Ok(()),
    }
}

/// What opens, what stands behind items of even and odd place, what closes.
fn several(
    [open, even, odd, close]: [&str; 4],
    len: Option<u64>,
    decoder: &mut Decoder<'_, DEPTH>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    f.write_str(open)?;
    let mut count = 0_u64;
    while len.is_none_or(|len| count < len) {
        // What comes next is known only behind the separator, so a copy looks ahead.
        let mut ahead = decoder.clone();
        let more = !matches!(ahead.next(), None | Some(Ok(Item::Break)));
        if more && count > 0 {
            f.write_str(if count % 2 == 1 { even } else { odd })?;
        }
        if !item(decoder, f)? {
            break;
        }
        count += 1;
    }
    f.write_str(close)
}

/// As JSON writes it (RFC 8949 §8).
fn text(value: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for char in value.chars() {
        match char {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            control if control < ' ' => write!(f, "\\u{:04x}", u32::from(control))?,
            other => write!(f, "{other}")?,
        }
    }
    f.write_str("\"")
}

fn float(value: Option<f64>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let value = value.unwrap_or(f64::NAN);
    match value {
        _ if value.is_nan() => f.write_str("NaN"),
        f64::INFINITY => f.write_str("Infinity"),
        f64::NEG_INFINITY => f.write_str("-Infinity"),
        // Always with a point or an exponent, as appendix A has it.
        _ => write!(f, "{value:?}"),
    }
}
