use proptest::prelude::*;
use proto::amqp091::{Properties, Value};

use super::*;

fn queue(name: &str) -> Target {
    Target::Queue(name.into())
}

fn bind(exchange: &mut Exchange, name: &str, key: &str) {
    assert!(exchange.bind(Binding::new(queue(name), key, Table::default())));
}

fn routed(exchanges: &Exchanges, exchange: &str, key: &str) -> Vec<String> {
    exchanges.route(exchange, key, None).queues.iter().map(|name| name.to_string()).collect()
}

#[test]
fn patterns_of_the_standard() {
    let mut exchanges = Exchanges::default();
    let topic = exchanges.get_mut(BRIDGE).unwrap();
    bind(topic, "stocks", "*.stock.#");
    bind(topic, "all", "#");
    bind(topic, "one", "*");
    bind(topic, "ends", "#.db");
    bind(topic, "middle", "a.#.b");
    for (key, expected) in [
        ("usd.stock", vec!["all", "stocks"]),
        ("eur.stock.db", vec!["all", "ends", "stocks"]),
        ("stock.nasdaq", vec!["all"]),
        ("x", vec!["all", "one"]),
        ("", vec!["all", "one"]),
        ("a.b", vec!["all", "middle"]),
        ("a.x.y.b", vec!["all", "middle"]),
        ("db", vec!["all", "ends", "one"]),
    ] {
        assert_eq!(routed(&exchanges, BRIDGE, key), expected, "{key}");
    }
    let topic = exchanges.get_mut(BRIDGE).unwrap();
    for (name, key) in
        [("stocks", "*.stock.#"), ("all", "#"), ("one", "*"), ("ends", "#.db"), ("middle", "a.#.b")]
    {
        assert!(topic.unbind(&Binding::new(queue(name), key, Table::default())));
    }
    assert_eq!(topic.words.len(), 1, "no word is left");
}

#[test]
fn direct_fanout_and_rings_of_exchanges() {
    let mut exchanges = Exchanges::default();
    bind(exchanges.get_mut("amq.direct").unwrap(), "a", "k");
    bind(exchanges.get_mut("amq.fanout").unwrap(), "b", "other");
    let there = Binding::new(Target::Exchange("amq.fanout".into()), "k", Table::default());
    let back = Binding::new(Target::Exchange("amq.direct".into()), "", Table::default());
    exchanges.get_mut("amq.direct").unwrap().bind(there);
    exchanges.get_mut("amq.fanout").unwrap().bind(back);
    assert_eq!(routed(&exchanges, "amq.direct", "k"), ["a", "b"]);
    assert_eq!(routed(&exchanges, "amq.fanout", "k"), ["a", "b"]);
    assert_eq!(routed(&exchanges, "amq.direct", "x"), [""; 0]);
    assert_eq!(routed(&exchanges, "none", "k"), [""; 0]);
    exchanges.get_mut("amq.direct").unwrap().alternate = Some("amq.fanout".into());
    assert_eq!(routed(&exchanges, "amq.direct", "x"), ["b"]);
}

#[test]
fn headers_all_and_any() {
    let mut arguments = TableBuf::default();
    arguments.put("a", &Value::I32(1)).unwrap();
    arguments.put("b", &Value::Void).unwrap();
    let all = arguments.clone();
    arguments.put("x-match", &Value::Text(b"any")).unwrap();
    let mut exchanges = Exchanges::default();
    let exchange = exchanges.get_mut("amq.headers").unwrap();
    exchange.bind(Binding::new(queue("all"), "", all.as_table()));
    exchange.bind(Binding::new(queue("any"), "", arguments.as_table()));
    let mut headers = TableBuf::default();
    let routed = |headers: &TableBuf| {
        let properties = Properties { headers: Some(headers.as_table()), ..Properties::default() };
        let routed = exchanges.route("amq.headers", "", properties.headers);
        routed.queues.iter().map(|name| name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(routed(&headers), [""; 0]);
    headers.put("a", &Value::I64(1)).unwrap();
    assert_eq!(routed(&headers), ["any"]);
    headers.put("b", &Value::Text(b"x")).unwrap();
    assert_eq!(routed(&headers), ["all", "any"]);
}

#[test]
fn the_same_arguments_in_another_order_are_the_same_binding() {
    let (mut one, mut other) = (TableBuf::default(), TableBuf::default());
    one.put("a", &Value::I32(1)).unwrap();
    one.put("b", &Value::Bool(true)).unwrap();
    other.put("b", &Value::Bool(true)).unwrap();
    other.put("a", &Value::I32(1)).unwrap();
    let mut exchange = Exchange::new(Kind::Headers, false, false, false);
    assert!(exchange.bind(Binding::new(queue("q"), "", one.as_table())));
    assert!(!exchange.bind(Binding::new(queue("q"), "", other.as_table())));
    assert!(exchange.unbind(&Binding::new(queue("q"), "", other.as_table())));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn the_tree_finds_what_fits(
        patterns in proptest::collection::vec("[ab*#](\\.[ab*#]){0,4}", 1..12),
        key in "[abc](\\.[abc]){0,5}",
        removed in 0_usize..12,
    ) {
        let mut exchange = Exchange::new(Kind::Topic, false, false, false);
        for (at, pattern) in patterns.iter().enumerate() {
            bind(&mut exchange, &at.to_string(), pattern);
        }
        let is_left = |at: usize| at != removed;
        if let Some(pattern) = patterns.get(removed) {
            exchange.unbind(&Binding::new(queue(&removed.to_string()), pattern, Table::default()));
        }
        let mut found = BTreeSet::new();
        exchange.find(&key, None, |target| {
            found.insert(target.clone());
        });
        let expected = patterns.iter().enumerate();
        let expected = expected.filter(|(at, pattern)| is_left(*at) && is_match(pattern, &key));
        let expected: BTreeSet<Target> =
            expected.map(|(at, _)| queue(&at.to_string())).collect();
        prop_assert_eq!(found, expected);
    }
}
