use proptest::prelude::*;

use super::*;

fn resolve(prefix: &str) -> Option<String> {
    match prefix {
        "l" => Some(LW_TOPICS.to_owned()),
        "t" => Some("urn:t".to_owned()),
        "onvif" => Some("urn:onvif".to_owned()),
        _ => None,
    }
}

fn mounts() -> Vec<Mount> {
    let mount = |uri: &str, levels: &str| Mount { uri: uri.to_owned(), levels: levels.to_owned() };
    vec![mount("urn:onvif", "onvif"), mount("urn:deep", "onvif/deep")]
}

fn filters(dialect: Dialect, text: &str) -> Result<Vec<String>, Refused> {
    Topics::new(&mounts()).read_filters(dialect, text, &resolve).map(|(filters, _)| filters)
}

fn full(text: &str) -> Result<String, Refused> {
    filters(Dialect::Full, text).map(|filters| filters.join(" or "))
}

#[test]
fn full_expressions_as_filters() {
    for (text, filter) in [
        ("l:a/*/c", "a/+/c"),
        ("l:a//.", "a/#"),
        ("a//.", "a/#"),
        ("l://*", "#"),
        ("*//.", "+/#"),
        ("//*/*", "+/+/#"),
        ("a//*", "a/+/#"),
        ("a//./*", "a/+/#"),
        ("a/./b/.", "a/b"),
        ("a|l:b/*", "a or b/+"),
        ("t:a/*", "{urn:t}/a/+"),
        ("t:*", "{urn:t}/+"),
        ("t://*", "{urn:t}/+/#"),
        ("t:a/l:b", "{urn:t}/a/{urn:longwire:topics}b"),
        ("a/t:b/l:c", "a/{urn:t}b/c"),
        ("onvif:Device/*", "onvif/Device/+"),
        ("onvif://*", "onvif/+/#"),
        (" _x0000_/a_x002D__x0020_b ", "?"),
        ("_x0000_/a-_x0020_b", "/a- b"),
        ("_x0024_SYS//.", "$SYS/#"),
        ("my_xtopic/_x", "my_xtopic/_x"),
        ("_x005F_x0041_", "_x0041_"),
    ] {
        match full(text) {
            Ok(found) => assert_eq!(found, filter, "{text}"),
            Err(_) => assert_eq!(filter, "?", "{text}"),
        }
    }
}

#[test]
fn what_cannot_be_said_is_refused() {
    for text in [
        "",
        "/a",
        "a/",
        "a///b",
        ".",
        "a//b",
        "//b",
        "a//./b",
        "*//b",
        "l:*:b",
        "x:a",
        "a b",
        "a|",
        "|a",
        "1a",
        "a/+",
        "a/#",
        "l:",
        "//",
        "a/x:b",
        "a/t:*",
        "_x0041_",
        "_x0000_a",
        "_x002B_",
        "_x0023_",
        "a_x002F_b",
        "_xD800_",
        "_x110000_",
        "_x0024_share/g/a",
        "//t:a",
        "a/_x0000_b",
    ] {
        assert!(full(text).is_err(), "{text}: {:?}", full(text));
    }
    assert!(filters(Dialect::Concrete, "a/*").is_err());
    assert!(filters(Dialect::Concrete, "a//.").is_err());
    assert!(filters(Dialect::Concrete, "a|b").is_err());
    assert!(filters(Dialect::Simple, "a/b").is_err());
    assert_eq!(filters(Dialect::Simple, "l:a_x002F_b").unwrap(), ["a/b"]);
    assert!(filters(Dialect::Simple, "a_x002F__x002B_").is_err());
    assert!(full(&"a|".repeat(MAX_PATHS)).is_err());
    assert!(full(&vec!["a"; MAX_PATHS + 1].join("|")).is_err());
    assert_eq!(full(&vec!["a"; MAX_PATHS].join("|")).unwrap().len(), MAX_PATHS * 5 - 4);
    assert!(full(&vec!["a"; 200].join("/")).is_err());
    assert!(full(&"a".repeat(MAX_EXPRESSION_BYTES + 1)).is_err());
}

#[test]
fn a_message_has_one_topic() {
    let mounts = mounts();
    let topics = Topics::new(&mounts);
    assert_eq!(topics.read_topic(Dialect::Full, "a/b", &resolve).unwrap(), "a/b");
    for text in ["a|b", "a/*", "a//."] {
        assert!(topics.read_topic(Dialect::Full, text, &resolve).is_err(), "{text}");
    }
}

#[test]
fn topics_are_spelled_as_the_consumer_spells_them() {
    let mounts = mounts();
    let topics = Topics::new(&mounts);
    let read = |dialect, text| topics.read_filters(dialect, text, &resolve).unwrap().1;
    let plain = read(Dialect::Simple, "a");
    assert_eq!(topics.write_topic("a/b", plain).text, "a_x002F_b");
    let qualified = read(Dialect::Simple, "l:a");
    assert_eq!(topics.write_topic("a/b", qualified).text, "l:a_x002F_b");
    let path = read(Dialect::Full, "l:a/*|b");
    let written = topics.write_topic("a/b", path);
    assert_eq!(written.text, "l:a/b");
    assert_eq!(written.namespaces, [("l".to_owned(), LW_TOPICS.to_owned())]);
    let of_another = topics.write_topic("{urn:t}/a/{urn:u}b", path);
    assert_eq!(of_another.text, "t0:a/t1:b");
    assert_eq!(topics.write_topic("onvif/deep/a", path).namespaces[0].1, "urn:deep");
    assert_eq!(topics.write_topic("onvif/deep", path).namespaces[0].1, "urn:onvif");
    assert_eq!(topics.write_topic("onvif", path).text, "l:onvif");
}

fn back(written: &Written) -> impl Fn(&str) -> Option<String> + '_ {
    |prefix| written.namespaces.iter().find(|(name, _)| name == prefix).map(|(_, uri)| uri.clone())
}

/// Levels that are likely to be mistaken for something.
fn level() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(vec![
        "",
        "_",
        "_x",
        "x0041_",
        "_x0041_",
        "_x0041",
        "_x005F_",
        "_x0000_",
        "{urn:t}",
        "{urn:t}a",
        "{urn:longwire:topics}",
        "{urn:onvif}",
        "{a%2Fb}",
        "{a%2fb}c",
        "{}",
        "onvif",
        "deep",
        "l:a",
        "$SYS",
        "é",
        "1",
        "-",
        "a.b",
        "\u{10fffd}",
        " ",
        "*",
        ".",
        "|",
        "_x00",
        "}",
    ]);
    let joined = prop::collection::vec(odd.clone(), 1..4).prop_map(|parts| parts.concat());
    prop_oneof![odd.prop_map(str::to_owned), joined, "[^/+#\u{0}]{0,6}", "[_x0-9A-F ]{0,12}",]
}

fn topic() -> impl Strategy<Value = String> {
    let topic = prop::collection::vec(level(), 1..6).prop_map(|levels| levels.join("/"));
    topic.prop_filter("a topic", |topic| !topic.is_empty() && !topic.starts_with("$share/"))
}

proptest! {
    #[test]
    fn every_topic_survives_in_every_dialect(topic in topic(), qualified: bool) {
        let mounts = mounts();
        let topics = Topics::new(&mounts);
        for dialect in Dialect::ALL {
            let written = topics.write_topic(&topic, Spelling { dialect, qualified });
            let read = topics.read_topic(dialect, &written.text, &back(&written));
            prop_assert_eq!(read.as_deref(), Ok(&*topic), "{:?}", written);
        }
    }

    #[test]
    fn every_filter_survives_in_full(
        levels in prop::collection::vec(prop_oneof![3 => level(), 1 => Just("+".to_owned())], 0..5),
        all: bool,
        qualified: bool,
    ) {
        let mut levels = levels;
        if all || levels.is_empty() {
            levels.push("#".to_owned());
        }
        let filter = levels.join("/");
        prop_assume!(!filter.is_empty() && !filter.starts_with("$share/"));
        let mounts = mounts();
        let topics = Topics::new(&mounts);
        let spelling = |dialect| Spelling { dialect, qualified };
        let written = topics.write_filter(spelling(Dialect::Full), &filter).unwrap();
        let (read, _) = topics.read_filters(Dialect::Full, &written.text, &back(&written)).unwrap();
        prop_assert_eq!(read, [filter.clone()], "{:?}", written);
        for dialect in [Dialect::Simple, Dialect::Concrete] {
            let written = topics.write_filter(spelling(dialect), &filter);
            prop_assert_eq!(written.is_err(), filter.contains(['+', '#']));
        }
    }

    #[test]
    fn what_is_read_is_written_and_read_as_the_same(
        text in "[ab_x0-9*./|:{}lt]{1,24}",
        qualified: bool,
    ) {
        let mounts = mounts();
        let topics = Topics::new(&mounts);
        if let Ok((filters, _)) = topics.read_filters(Dialect::Full, &text, &resolve) {
            for filter in filters {
                let spelling = Spelling { dialect: Dialect::Full, qualified };
                let written = topics.write_filter(spelling, &filter).unwrap();
                let again = topics.read_filters(Dialect::Full, &written.text, &back(&written));
                prop_assert_eq!(again.map(|(again, _)| again), Ok(vec![filter]));
            }
        }
    }
}
