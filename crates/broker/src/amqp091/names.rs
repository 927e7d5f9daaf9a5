//! Topics as routing keys of the exchange that is the bridge to other protocols, and back.
//!
//! The words of a routing key are the levels of a topic, so `.` stands for `/`. A level's own `.`,
//! `%` and `*` are `%2E`, `%25` and `%2A`, as `.` parts words and `*` is a wildcard in bindings.

use proto::amqp091::MAX_SHORT_BYTES;

/// What is written for a character of a level.
const ESCAPES: [(char, &str); 3] = [('.', "%2E"), ('%', "%25"), ('*', "%2A")];

/// The routing key of a topic; `None` if it would be longer than a short string.
#[must_use]
pub fn key_of(topic: &str) -> Option<String> {
    if topic.len() > MAX_SHORT_BYTES {
        return None;
    }
    let mut key = String::with_capacity(topic.len());
    for character in topic.chars() {
        match ESCAPES.iter().find(|(other, _)| *other == character) {
            Some((_, escape)) => key.push_str(escape),
            None if character == '/' => key.push('.'),
            None => key.push(character),
        }
    }
    (key.len() <= MAX_SHORT_BYTES).then_some(key)
}

/// The topic that [`key_of`] makes this key of; `None` if there is none.
#[must_use]
pub fn topic_of(key: &str) -> Option<String> {
    if key.is_empty() || key.contains(['/', '*', '+', '#', '\0']) {
        return None;
    }
    unescaped(key)
}

/// The pattern of a binding that fits the keys of the topics that a filter fits; `None` if it would
/// be longer than a short string.
#[must_use]
pub fn pattern_of(filter: &str) -> Option<String> {
    let words = filter.split('/').map(|level| match level {
        "+" => Some("*".to_owned()),
        level => key_of(level),
    });
    let pattern = words.collect::<Option<Vec<_>>>()?.join(".");
    (pattern.len() <= MAX_SHORT_BYTES).then_some(pattern)
}

/// A filter that fits every topic whose key a binding's pattern fits; it fits more where a filter
/// cannot say it, as `#` stands at its end only. `None` if no topic's key fits.
pub(super) fn filter_of(pattern: &str) -> Option<String> {
    let mut filter = String::with_capacity(pattern.len());
    for word in pattern.split('.') {
        if !filter.is_empty() || word.as_ptr() != pattern.as_ptr() {
            filter.push('/');
        }
        match word {
            "#" => {
                filter.push('#');
                return Some(filter);
            }
            "*" => filter.push('+'),
            "" => {}
            word => filter.push_str(&topic_of(word)?),
        }
    }
    (!filter.is_empty()).then_some(filter)
}

fn unescaped(key: &str) -> Option<String> {
    let mut topic = String::with_capacity(key.len());
    let mut rest = key;
    while let Some(character) = rest.chars().next() {
        match character {
            '%' => {
                let (character, escape) =
                    ESCAPES.iter().find(|(_, escape)| rest.starts_with(escape))?;
                topic.push(*character);
                rest = rest.get(escape.len()..)?;
                continue;
            }
            '.' => topic.push('/'),
            other => topic.push(other),
        }
        rest = rest.get(character.len_utf8()..)?;
    }
    Some(topic)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn examples() {
        for (topic, key) in [
            ("a/b/c", "a.b.c"),
            ("a.b/50%/*", "a%2Eb.50%25.%2A"),
            ("/a//", ".a.."),
            ("$SYS/x y", "$SYS.x y"),
        ] {
            assert_eq!(key_of(topic).as_deref(), Some(key));
            assert_eq!(topic_of(key).as_deref(), Some(topic));
        }
        for key in ["", "a/b", "50%", "a%2", "a.*", "a+", "#"] {
            assert_eq!(topic_of(key), None, "{key}");
        }
        assert_eq!(key_of(&"%".repeat(86)), None);
        assert_eq!(key_of(&"%".repeat(85)).map(|key| key.len()), Some(255));
    }

    #[test]
    fn patterns_as_filters() {
        for (pattern, filter) in [
            ("a.*.c", "a/+/c"),
            ("a.#", "a/#"),
            ("#", "#"),
            ("a.#.b", "a/#"),
            ("*", "+"),
            (".a", "/a"),
            ("..", "//"),
            ("a%2Eb.*", "a.b/+"),
            ("$SYS.#", "$SYS/#"),
        ] {
            assert_eq!(filter_of(pattern).as_deref(), Some(filter), "{pattern}");
        }
        for (filter, pattern) in [
            ("a/+/#", "a.*.#"),
            ("#", "#"),
            ("a.b/+", "a%2Eb.*"),
            ("/a", ".a"),
            ("a*/50%", "a%2A.50%25"),
        ] {
            assert_eq!(pattern_of(filter).as_deref(), Some(pattern), "{filter}");
            assert_eq!(filter_of(pattern).as_deref(), Some(filter), "{pattern}");
        }
        assert_eq!(pattern_of(&"a/".repeat(128)), None);
        for pattern in ["", "a*b", "a/b", "a+.b", "50%"] {
            assert_eq!(filter_of(pattern), None, "{pattern}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn every_topic_survives(topic in "[^\\x00+#]{1,40}|[a./%*E25]{1,60}") {
            if let Some(key) = key_of(&topic) {
                prop_assert_eq!(topic_of(&key), Some(topic));
            }
        }

        #[test]
        fn every_key_survives_or_is_refused(key in "[a./%*E25A+]{0,20}") {
            if let Some(topic) = topic_of(&key) {
                prop_assert_eq!(key_of(&topic), Some(key));
            }
        }

        #[test]
        fn a_pattern_fits_what_its_filter_fits(
            filter in "(\\+|[ab.*]{0,3})(/(\\+|[ab.*]{0,3})){0,3}(/#)?", topic in "[ab./*]{1,10}",
        ) {
            if let (Some(pattern), Some(key)) = (pattern_of(&filter), key_of(&topic)) {
                let fits = super::super::routing::is_match(&pattern, &key);
                let wanted = crate::filter::matches(&filter, &topic);
                prop_assert_eq!(fits, wanted, "{} {}", pattern, key);
            }
        }

        #[test]
        fn a_filter_fits_what_its_pattern_fits(
            pattern in "[ab*#.]{1,6}(\\.[ab*#])*", key in "[ab.]{1,8}",
        ) {
            let fits = super::super::routing::is_match(&pattern, &key);
            if let (true, Some(topic)) = (fits, topic_of(&key)) {
                let filter = filter_of(&pattern);
                let filter = filter.expect("a topic's key fits it");
                prop_assert!(crate::filter::matches(&filter, &topic), "{} {}", filter, topic);
            }
        }
    }
}
