//! Core deterministic order (RFC 8949 §4.2.1).

use proto::cbor::{Head, Major};

use crate::Error;

use super::{item_error, malformed};

/// Most levels of what is sorted, which takes a call for each.
pub(super) const SORT_DEPTH: usize = 512;

/// `input`, which this crate wrote with definite lengths, with the keys of its maps in bytewise
/// order. Time grows with the length times the depth. Errors: a doubled key.
pub(super) fn sorted(input: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(input.len());
    let mut at = 0;
    item(input, &mut at, &mut out)?;
    Ok(out)
}

fn item(input: &[u8], at: &mut usize, out: &mut Vec<u8>) -> Result<(), Error> {
    let rest = input.get(*at..).unwrap_or_default();
    let head = Head::take(rest).map_err(|error| item_error(error, *at as u64))?;
    let head = head.ok_or_else(|| malformed(*at as u64, "an item is cut off"))?;
    let body = match head.major {
        Major::Bytes | Major::Text => usize::try_from(head.argument).unwrap_or(usize::MAX),
        _ => 0,
    };
    let end = usize::from(head.len).saturating_add(body);
    let whole = rest.get(..end).ok_or_else(|| malformed(*at as u64, "an item is cut off"))?;
    out.extend_from_slice(whole);
    *at += end;
    match head.major {
        Major::Array => (0..head.argument).try_for_each(|_| item(input, at, out)),
        Major::Tag => item(input, at, out),
        Major::Map => map(input, at, head.argument, out),
        _ => Ok(()),
    }
}

fn map(input: &[u8], at: &mut usize, len: u64, out: &mut Vec<u8>) -> Result<(), Error> {
    let mut pairs = Vec::new();
    for _ in 0..len {
        let (offset, mut key, mut value) = (*at, Vec::new(), Vec::new());
        item(input, at, &mut key)?;
        item(input, at, &mut value)?;
        pairs.push((key, value, offset));
    }
    pairs.sort_unstable();
    for pair in pairs.windows(2) {
        if let [(a, ..), (b, _, offset)] = pair
            && a == b
        {
            return Err(malformed(*offset as u64, "a doubled key has no deterministic form"));
        }
    }
    pairs.iter().for_each(|(key, value, _)| {
        out.extend_from_slice(key);
        out.extend_from_slice(value);
    });
    Ok(())
}
