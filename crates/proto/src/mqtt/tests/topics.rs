//! Names and filters: the examples of MQTT 5 §4.7 and §4.8.2.

use super::super::topic::{MAX_LEVELS, Parts, check_filter, check_name, matches, parts};
use super::super::*;

fn selects(filter: &str, name: &str) -> bool {
    check_filter(filter.as_bytes()).unwrap();
    check_name(name.as_bytes()).unwrap();
    matches(filter.as_bytes(), name.as_bytes())
}

/// MQTT 5 §4.7.1.2.
#[test]
fn multi_level_wildcard() {
    for name in ["sport/tennis/player1", "sport/tennis/player1/ranking"] {
        assert!(selects("sport/tennis/player1/#", name));
    }
    assert!(selects("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon"));
    assert!(selects("sport/#", "sport") && selects("sport/#", "sport/"));
    assert!(!selects("sport/#", "sports") && !selects("sport/tennis/#", "sport"));
    assert!(selects("#", "a") && selects("#", "/") && selects("#", "a/b/c"));
    for filter in ["sport/tennis#", "sport/tennis/#/ranking", "##", "#/", "a/#/#", "a#"] {
        let refused = check_filter(filter.as_bytes()).unwrap_err();
        assert_eq!(refused.reason, Reason::TOPIC_FILTER_INVALID, "{filter}");
    }
}

/// MQTT 5 §4.7.1.3.
#[test]
fn single_level_wildcard() {
    assert!(selects("sport/tennis/+", "sport/tennis/player1"));
    assert!(!selects("sport/tennis/+", "sport/tennis/player1/ranking"));
    assert!(!selects("sport/+", "sport") && selects("sport/+", "sport/"));
    assert!(selects("+", "sport") && selects("+/tennis/#", "sport/tennis"));
    assert!(selects("sport/+/player1", "sport/tennis/player1"));
    assert!(selects("+/+", "/finance") && selects("/+", "/finance") && !selects("+", "/finance"));
    assert!(selects("+/#", "a") && selects("a/+/#", "a/b"));
    assert!(!selects("a/+/#", "a"));
    for filter in ["sport+", "a/b+/c", "++", "+a", "+#"] {
        assert!(check_filter(filter.as_bytes()).is_err(), "{filter}");
    }
}

/// MQTT 5 §4.7.2, MQTT-4.7.2-1.
#[test]
fn topics_beginning_with_a_dollar() {
    assert!(!selects("#", "$SYS/a") && !selects("+/monitor/Clients", "$SYS/monitor/Clients"));
    assert!(!selects("+", "$SYS") && !selects("+/#", "$SYS"));
    assert!(selects("$SYS/#", "$SYS/a") && selects("$SYS/#", "$SYS"));
    assert!(selects("$SYS/monitor/+", "$SYS/monitor/Clients"));
    assert!(selects("a/+", "a/$b") && selects("a/#", "a/$b") && selects("+/$b", "a/$b"));
}

/// MQTT 5 §4.7.3.
#[test]
fn names_are_compared_as_they_are() {
    assert!(!selects("ACCOUNTS", "Accounts"));
    assert!(selects("Accounts payable", "Accounts payable"));
    assert!(!selects("/finance", "finance") && !selects("finance/", "finance"));
    assert!(selects("/", "/") && selects("+/", "a/") && !selects("/", "//"));
    // U+00E5 and its decomposition are not the same.
    assert!(!selects("\u{e5}", "a\u{30a}"));
}

#[test]
fn names_and_filters_that_are_none() {
    let deep = vec!["a"; MAX_LEVELS].join("/");
    assert_eq!(check_name(deep.as_bytes()), Ok(()));
    assert_eq!(check_filter(deep.as_bytes()), Ok(()));
    let deeper = format!("{deep}/");
    let long = "a".repeat(65_535);
    assert_eq!(check_name(long.as_bytes()), Ok(()));
    let longer = format!("{long}a");
    let (name, filter) = (Reason::TOPIC_NAME_INVALID, Reason::TOPIC_FILTER_INVALID);
    let malformed = Reason::MALFORMED_PACKET;
    for (bytes, of_name, of_filter) in [
        (&b""[..], Some(name), Some(filter)),
        (b"a\0", Some(malformed), Some(malformed)),
        (b"\xed\xa0\x80", Some(malformed), Some(malformed)),
        (b"a/+", Some(name), None),
        (b"#", Some(name), None),
        (b"a+b", Some(name), Some(filter)),
        (deeper.as_bytes(), Some(name), Some(filter)),
        (longer.as_bytes(), Some(malformed), Some(malformed)),
    ] {
        assert_eq!(check_name(bytes).err().map(|refused| refused.reason), of_name, "{bytes:?}");
        assert_eq!(check_filter(bytes).err().map(|refused| refused.reason), of_filter);
    }
}

/// MQTT 5 §4.8.2.
#[test]
fn shared_subscriptions() {
    let split = |filter: &'static str| {
        parts(filter.as_bytes()).map(|parts| {
            let group = parts.group.map(|group| str::from_utf8(group).unwrap());
            (group, str::from_utf8(parts.filter).unwrap())
        })
    };
    assert_eq!(split("$share/consumer1/sport/tennis/+"), Ok((Some("consumer1"), "sport/tennis/+")));
    assert_eq!(split("$share/consumer2/#"), Ok((Some("consumer2"), "#")));
    assert_eq!(split("$share/g//finance"), Ok((Some("g"), "/finance")));
    for plain in ["$share", "$shared/g/a", "$SHARE/g/a", "a/$share/g/b"] {
        assert_eq!(split(plain), Ok((None, plain)));
    }
    for filter in [
        "$share/",
        "$share/g",
        "$share/g/",
        "$share//a",
        "$share/+/a",
        "$share/g#/a",
        "$share/g/a#",
    ] {
        assert_eq!(
            split(filter).map_err(|refused| refused.reason),
            Err(Reason::TOPIC_FILTER_INVALID),
            "{filter}"
        );
    }
    let whole = Parts { group: None, filter: &b"a"[..] };
    assert_eq!(parts(b"a"), Ok(whole));
}
