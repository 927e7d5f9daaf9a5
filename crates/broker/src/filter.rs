//! Filters of topics (MQTT 5 §4.7): whether they fit a topic, and whether one has all that another
//! has.

/// Longest topic or filter in bytes (MQTT 5 §1.5.4).
pub const MAX_TOPIC_BYTES: usize = 65_535;
/// Most levels of a topic or filter: each is a step of the index, and nobody's topics have so many.
pub const MAX_LEVELS: usize = 128;

/// Whether a filter fits a topic; wildcards at its first level fit no topic that begins with `$`
/// (MQTT 5 §4.7.2).
#[must_use]
pub fn matches(filter: &str, topic: &str) -> bool {
    if topic.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let mut levels = topic.split('/');
    let mut filters = filter.split('/');
    loop {
        match (filters.next(), levels.next()) {
            (Some("#"), _) | (None, None) => return true,
            (Some("+"), Some(_)) => {}
            (Some(filter), Some(level)) if filter == level => {}
            _ => return false,
        }
    }
}

/// Whether every topic that `inner` fits is one that `outer` fits.
#[must_use]
pub fn covers(outer: &str, inner: &str) -> bool {
    if inner.starts_with('$') && outer.starts_with(['+', '#']) {
        return false;
    }
    let mut inners = inner.split('/');
    let mut outers = outer.split('/');
    loop {
        match (outers.next(), inners.next()) {
            (Some("#"), _) | (None, None) => return true,
            (_, Some("#")) => return false,
            (Some("+"), Some(_)) => {}
            (Some(outer), Some(inner)) if outer == inner && inner != "+" => {}
            _ => return false,
        }
    }
}

/// Whether some topic fits both filters.
#[must_use]
pub fn overlap(one: &str, other: &str) -> bool {
    let special = |filter: &str| filter.starts_with('$');
    let wild = |filter: &str| filter.starts_with(['+', '#']);
    if special(one) && wild(other) || special(other) && wild(one) {
        return false;
    }
    let mut ones = one.split('/');
    let mut others = other.split('/');
    loop {
        match (ones.next(), others.next()) {
            (Some("#"), _) | (_, Some("#")) | (None, None) => return true,
            (Some("+"), Some(_)) | (Some(_), Some("+")) => {}
            (Some(one), Some(other)) if one == other => {}
            _ => return false,
        }
    }
}

/// What is wrong with a topic that is to be published to, if anything.
///
/// # Errors
/// What is wrong, as a sentence.
pub fn check_name(topic: &str) -> Result<(), &'static str> {
    if topic.contains(['+', '#']) {
        return Err("a topic that is published to has no wildcards");
    }
    check_text(topic)
}

/// What is wrong with a filter, without its `$share/…/`, if anything.
///
/// # Errors
/// What is wrong, as a sentence.
pub fn check_filter(filter: &str) -> Result<(), &'static str> {
    let mut levels = filter.split('/').peekable();
    while let Some(level) = levels.next() {
        match level {
            "#" if levels.peek().is_some() => return Err("# is the last level of a filter"),
            "#" | "+" => {}
            _ if level.contains(['+', '#']) => {
                return Err("a wildcard is a level of a filter of its own");
            }
            _ => {}
        }
    }
    check_text(filter)
}

fn check_text(topic: &str) -> Result<(), &'static str> {
    if topic.is_empty() {
        return Err("a topic has at least one character");
    }
    if topic.len() > MAX_TOPIC_BYTES {
        return Err("a topic has at most 65,535 bytes");
    }
    if topic.contains('\0') {
        return Err("a topic has no U+0000");
    }
    if topic.split('/').count() > MAX_LEVELS {
        return Err("a topic has at most 128 levels");
    }
    Ok(())
}

/// The name of the group and the filter of a shared subscription (MQTT 5 §4.8.2); `None`: it is not
/// shared.
///
/// # Errors
/// What is wrong, as a sentence.
pub fn shared(filter: &str) -> Result<Option<(&str, &str)>, &'static str> {
    let Some(rest) = filter.strip_prefix("$share/") else { return Ok(None) };
    match rest.split_once('/') {
        Some((group, filter)) if !group.is_empty() && !group.contains(['+', '#']) => {
            Ok(Some((group, filter)))
        }
        _ => Err("a shared subscription is $share, a name without wildcards, and a filter"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_of_the_standard() {
        for (filter, topic, fits) in [
            ("sport/tennis/player1/#", "sport/tennis/player1", true),
            ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", true),
            ("sport/#", "sport", true),
            ("#", "a/b", true),
            ("sport/tennis/+", "sport/tennis/player1", true),
            ("sport/tennis/+", "sport/tennis/player1/ranking", false),
            ("sport/+", "sport", false),
            ("sport/+", "sport/", true),
            ("+/+", "/finance", true),
            ("/+", "/finance", true),
            ("+", "/finance", false),
            ("#", "$SYS/x", false),
            ("+/monitor/Clients", "$SYS/monitor/Clients", false),
            ("$SYS/#", "$SYS/x", true),
            ("$SYS/monitor/+", "$SYS/monitor/Clients", true),
            ("a//b", "a//b", true),
            ("ACCOUNTS", "Accounts", false),
        ] {
            assert_eq!(matches(filter, topic), fits, "{filter} {topic}");
        }
    }

    #[test]
    fn what_covers_what() {
        for (outer, inner, covered) in [
            ("#", "a/#", true),
            ("a/#", "a", true),
            ("a/#", "#", false),
            ("a/+", "a/b", true),
            ("a/+", "a/#", false),
            ("a/b", "a/+", false),
            ("+/+", "a/+", true),
            ("#", "$SYS/#", false),
            ("a/+/#", "a/b/c/+", true),
            ("+/#", "a", true),
        ] {
            assert_eq!(covers(outer, inner), covered, "{outer} {inner}");
        }
    }

    #[test]
    fn what_overlaps_what() {
        for (one, other, both) in [
            ("#", "a", true),
            ("a/+", "+/b", true),
            ("a/b", "a/c", false),
            ("a/#", "a", true),
            ("a/+", "a", false),
            ("$SYS/#", "#", false),
            ("$SYS/#", "$SYS/+", true),
            ("a/+/c", "a/#", true),
        ] {
            assert_eq!(overlap(one, other), both, "{one} {other}");
            assert_eq!(overlap(other, one), both, "{other} {one}");
        }
    }

    #[test]
    fn filters_and_names_are_checked() {
        assert!(check_filter("sport/tennis#").is_err());
        assert!(check_filter("sport/#/ranking").is_err());
        assert!(check_filter("sport+").is_err());
        assert!(check_filter("").is_err() && check_filter("a\0").is_err());
        assert!(check_filter("+/tennis/#").is_ok() && check_filter("/").is_ok());
        assert!(check_name("a/+").is_err() && check_name("a/b").is_ok());
        assert!(check_name(&"a/".repeat(MAX_LEVELS)).is_err());
        assert_eq!(shared("$share/g/a/+"), Ok(Some(("g", "a/+"))));
        assert_eq!(shared("a"), Ok(None));
        assert!(shared("$share/g").is_err() && shared("$share//a").is_err());
    }
}
