//! Addresses of nodes, which are topics and filters of topics here, and what else they are called
//! elsewhere.

/// Where topics of AMQP nodes that the broker makes begin; who knows the whole of one may use it.
pub(super) const REPLY: &str = "$reply/";

/// The topic, or with `is_filter` the filter, that an address means: itself, but for the forms that
/// other brokers have for topics: `topic://a/b`, `/topic/a.b` and `/exchanges/amq.topic/a.b`, in
/// the last two of which levels end at dots and `*` stands for one level.
pub(super) fn topic(address: &str, is_filter: bool) -> String {
    if let Some(rest) = address.strip_prefix("topic://") {
        return rest.to_owned();
    }
    let dotted = ["/topic/", "/exchanges/amq.topic/", "/exchange/amq.topic/"];
    match dotted.iter().find_map(|prefix| address.strip_prefix(prefix)) {
        Some(key) => levels(key, is_filter),
        None => address.to_owned(),
    }
}

/// A routing key (AMQP 0.9.1 §3.1.3.3) as levels, with what is escaped in it.
fn levels(key: &str, is_filter: bool) -> String {
    let levels = key.split('.').map(|level| match level {
        "*" if is_filter => "+".to_owned(),
        level => level.replace("%2E", ".").replace("%2A", "*").replace("%25", "%"),
    });
    levels.collect::<Vec<_>>().join("/")
}

/// A name as a level of a topic: what means something there is replaced.
pub(super) fn level(name: &str) -> String {
    if name.is_empty() {
        return "_".to_owned();
    }
    name.chars().map(|it| if matches!(it, '/' | '+' | '#' | '\0') { '_' } else { it }).collect()
}

/// Whether more than one topic can fit.
pub(super) fn is_wildcard(filter: &str) -> bool {
    filter.split('/').any(|level| matches!(level, "+" | "#"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_other_brokers_are_understood() {
        for (address, as_topic, as_filter) in [
            ("a/b", "a/b", "a/b"),
            ("a/+/#", "a/+/#", "a/+/#"),
            ("topic://a/b", "a/b", "a/b"),
            ("/topic/a.b", "a/b", "a/b"),
            ("/topic/a.*.#", "a/*/#", "a/+/#"),
            ("/exchanges/amq.topic/a%2Eb.c%25", "a.b/c%", "a.b/c%"),
            ("/a", "/a", "/a"),
        ] {
            assert_eq!(topic(address, false), as_topic);
            assert_eq!(topic(address, true), as_filter);
        }
        assert_eq!((level("a/b+#"), level("")), ("a_b__".to_owned(), "_".to_owned()));
        assert!(is_wildcard("a/+") && !is_wildcard("a+/b"));
    }
}
