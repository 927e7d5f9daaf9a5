//! Names and filters of topics (MQTT 5 §4.7, §4.8.2).

use std::iter;
use std::str;

use super::reason::Reason;
use super::refused::Refused;
use super::text::MAX_TEXT_BYTES;

/// Longest name or filter (MQTT 5 §4.7.3).
pub const MAX_TOPIC_BYTES: usize = MAX_TEXT_BYTES;
/// Most levels of a name or filter: so deep no tree of topics needs to be, and an index of filters
/// may take a step for each.
pub const MAX_LEVELS: usize = 128;

/// Checks the name of a topic: UTF-8 of at least one character (MQTT 5 §4.7.3, MQTT-4.7.3-1),
/// without U+0000 (MQTT-4.7.3-2) and wildcards (§3.3.2.1, MQTT-3.3.2-2), of at most
/// [`MAX_LEVELS`].
///
/// # Errors
///
/// Malformed Packet where it is no string, Topic Name invalid where it is no name.
pub fn check_name(name: &[u8]) -> Result<(), Refused> {
    let (mut nulls, mut wildcards, mut bits) = (false, false, 0);
    for byte in name {
        nulls |= *byte == 0;
        wildcards |= *byte == b'+';
        wildcards |= *byte == b'#';
        bits |= *byte;
    }
    // What is ASCII is UTF-8 too.
    let is_text = bits < 0x80 || str::from_utf8(name).is_ok();
    if nulls || name.len() > MAX_TOPIC_BYTES || !is_text {
        return Err(Refused::malformed("a topic name that is no UTF-8, or has U+0000"));
    }
    let what = if name.is_empty() {
        "an empty topic name"
    } else if wildcards {
        "a wildcard in a topic name"
    } else if name.len() >= MAX_LEVELS && levels(name).count() > MAX_LEVELS {
        "a topic name of more than 128 levels"
    } else {
        return Ok(());
    };
    Err(Refused::with(Reason::TOPIC_NAME_INVALID, what))
}

/// Checks a filter of topics, which is none of a shared subscription: as a name, but `+` may be
/// a level (MQTT 5 §4.7.1.3) and `#` the last one (§4.7.1.2).
///
/// # Errors
///
/// Malformed Packet where it is no string, Topic Filter invalid where it is no filter.
pub fn check_filter(filter: &[u8]) -> Result<(), Refused> {
    super::text::check(filter)?;
    let refused = |what| Err(Refused::with(Reason::TOPIC_FILTER_INVALID, what));
    if filter.is_empty() {
        return refused("an empty topic filter");
    }
    let mut is_over = false;
    for (at, level) in levels(filter).enumerate() {
        if at >= MAX_LEVELS {
            return refused("a topic filter of more than 128 levels");
        }
        if is_over {
            return refused("# before the last level of a topic filter");
        }
        if level.len() > 1 && level.iter().any(|byte| matches!(byte, b'+' | b'#')) {
            return refused("a wildcard that is not a whole level of a topic filter");
        }
        is_over = level == b"#";
    }
    Ok(())
}

/// A filter, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The share name of a shared subscription.
    pub group: Option<&'a [u8]>,
    /// The filter that names of topics are compared with.
    pub filter: &'a [u8],
}

/// Checks a filter and takes `$share/group/` off it (MQTT 5 §4.8.2).
///
/// # Errors
///
/// As [`check_filter`]; and where it begins with `$share/` but has no share name of at least one
/// character without wildcards, or no filter after it (MQTT-4.8.2-1, MQTT-4.8.2-2).
pub fn parts(filter: &[u8]) -> Result<Parts<'_>, Refused> {
    let Some(shared) = filter.strip_prefix(b"$share/") else {
        check_filter(filter)?;
        return Ok(Parts { group: None, filter });
    };
    super::text::check(filter)?;
    let invalid =
        Refused::with(Reason::TOPIC_FILTER_INVALID, "a shared subscription without name or filter");
    let slash = shared.iter().position(|byte| *byte == b'/').ok_or(invalid)?;
    let (group, rest) = shared.split_at_checked(slash).ok_or(invalid)?;
    if group.is_empty() || group.iter().any(|byte| matches!(byte, b'+' | b'#')) {
        return Err(invalid);
    }
    let filter = rest.strip_prefix(b"/").unwrap_or(rest);
    check_filter(filter)?;
    Ok(Parts { group: Some(group), filter })
}

/// The levels of a name or filter; empty ones are levels too (MQTT 5 §4.7.1.1).
pub fn levels(topic: &[u8]) -> impl Iterator<Item = &[u8]> {
    topic.split(|byte| *byte == b'/')
}

/// Whether a filter selects a name (MQTT 5 §4.7). Both must have been checked; the filter without
/// `$share/group/`.
///
/// An index of many filters must agree with it.
#[must_use]
pub fn matches(filter: &[u8], name: &[u8]) -> bool {
    // MQTT 5 §4.7.2, MQTT-4.7.2-1: no wildcard selects a first level that begins with $.
    if name.first() == Some(&b'$') && matches!(filter.first(), Some(b'+' | b'#')) {
        return false;
    }
    let mut names = levels(name).map(Some).chain(iter::repeat(None));
    for level in levels(filter) {
        match (level, names.next().flatten()) {
            // MQTT 5 §4.7.1.2: the parent level and everything below it.
            (b"#", _) => return true,
            // MQTT 5 §4.7.1.3.
            (b"+", Some(_)) => {}
            (level, Some(name)) if level == name => {}
            _ => return false,
        }
    }
    names.next().flatten().is_none()
}
