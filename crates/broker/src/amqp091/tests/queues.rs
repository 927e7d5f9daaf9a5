use super::*;

fn code(text: &str) -> Option<&str> {
    text.split("reply_code: ").nth(1)?.get(..3)
}

#[test]
fn declarations_must_agree() {
    let mut world = World::new();
    world.connect(1);
    let arguments = table(&[("x-max-length", Value::I32(3))]);
    let first = world.ask(1, &declare("q", arguments.as_table()));
    assert_eq!(first, "QueueDeclareOk { queue: \"q\", message_count: 0, consumer_count: 0 }");
    assert_eq!(world.ask(1, &declare("q", arguments.as_table())), first);
    let passive = Method::QueueDeclare {
        queue: "q",
        passive: true,
        durable: true,
        exclusive: false,
        auto_delete: true,
        no_wait: false,
        arguments: Table::default(),
    };
    assert_eq!(world.ask(1, &passive), first, "only the name counts");
    assert_eq!(code(&world.ask(1, &declare("q", Table::default()))), Some("406"));
}

#[test]
fn names_and_what_they_may_be() {
    for (method, expected) in [
        (declare("amq.mine", Table::default()), "403"),
        (declare_exchange("amq.mine", "direct", Table::default()), "403"),
        (declare_exchange("", "direct", Table::default()), "403"),
        (declare_exchange("x", "x-none", Table::default()), "503"),
        (declare_exchange("amq.topic", "direct", Table::default()), "406"),
        (bind("none", "amq.topic", ""), "404"),
        (bind("", "amq.topic", ""), "404"),
        (consume("none", "", true), "404"),
        (Method::BasicGet { queue: "none", no_ack: true }, "404"),
        (Method::QueuePurge { queue: "none", no_wait: false }, "404"),
        (Method::ExchangeDelete { exchange: "amq.topic", if_unused: false, no_wait: false }, "403"),
    ] {
        let mut world = World::new();
        world.connect(1);
        let text = world.ask(1, &method);
        assert_eq!(code(&text), Some(expected), "{method:?} {text}");
    }
    let mut world = World::new();
    world.connect(1);
    let made = world.ask(1, &declare("", Table::default()));
    assert!(made.contains("queue: \"amq.gen-"), "{made}");
    // None named is the last one.
    assert_eq!(world.ask(1, &bind("", "amq.fanout", "")), "QueueBindOk");
    assert_eq!(code(&world.ask(1, &bind("", "", "k"))), Some("403"));
}

#[test]
fn a_queue_of_one_connection_goes_with_it() {
    let mut world = World::new();
    world.connect(1);
    world.connect(2);
    let own = Method::QueueDeclare {
        queue: "own",
        passive: false,
        durable: false,
        exclusive: true,
        auto_delete: false,
        no_wait: false,
        arguments: Table::default(),
    };
    world.ask(1, &own);
    world.ask(1, &bind("own", "amq.fanout", ""));
    assert_eq!(code(&world.ask(2, &consume("own", "", true))), Some("405"));
    world.input(Input::Lost { connection: ConnectionId(1) });
    world.method(2, 1, &Method::ChannelCloseOk {});
    world.call(2, &Method::ChannelOpen {});
    world.publish(2, ("amq.fanout", ""), "to nobody");
    assert_eq!(code(&world.ask(2, &consume("own", "", true))), Some("404"));
}

#[test]
fn queues_and_exchanges_go_with_their_last_use() {
    let mut world = World::new();
    world.connect(1);
    let queue = Method::QueueDeclare {
        queue: "q",
        passive: false,
        durable: false,
        exclusive: false,
        auto_delete: true,
        no_wait: false,
        arguments: Table::default(),
    };
    let exchange = Method::ExchangeDeclare {
        exchange: "x",
        kind: "fanout",
        passive: false,
        durable: false,
        auto_delete: true,
        internal: false,
        no_wait: false,
        arguments: Table::default(),
    };
    world.ask(1, &queue);
    world.ask(1, &exchange);
    world.ask(1, &bind("q", "x", ""));
    world.ask(1, &consume("q", "c", true));
    world.ask(1, &Method::BasicCancel { consumer_tag: "c", no_wait: false });
    assert_eq!(code(&world.ask(1, &bind("q", "x", ""))), Some("404"), "the queue is gone");
    world.method(1, 1, &Method::ChannelCloseOk {});
    world.call(1, &Method::ChannelOpen {});
    world.publish(1, ("x", ""), "and the exchange with it");
    assert_eq!(code(&world.got(1)[0].text), Some("404"));
}

#[test]
fn exchanges_are_bound_to_exchanges() {
    let mut world = World::new();
    world.connect(1);
    world.ask(1, &declare_exchange("from", "topic", Table::default()));
    let alternate = table(&[("alternate-exchange", Value::Text(b"amq.fanout"))]);
    world.ask(1, &declare_exchange("to", "direct", alternate.as_table()));
    world.ask(1, &declare("q", Table::default()));
    world.ask(1, &declare("rest", Table::default()));
    let between = Method::ExchangeBind {
        destination: "to",
        source: "from",
        routing_key: "a.#",
        no_wait: false,
        arguments: Table::default(),
    };
    assert_eq!(world.ask(1, &between), "ExchangeBindOk");
    world.ask(1, &bind("q", "to", "a.b"));
    world.ask(1, &bind("rest", "amq.fanout", ""));
    for key in ["a.b", "b", "a.c"] {
        world.publish(1, ("from", key), key);
    }
    assert_eq!(world.get(1, "q").unwrap().body, b"a.b");
    assert_eq!(world.get(1, "rest").unwrap().body, b"a.c");
    assert!(world.get(1, "q").is_none() && world.get(1, "rest").is_none());
    world.ask(1, &Method::ExchangeDelete { exchange: "to", if_unused: false, no_wait: false });
    world.publish(1, ("from", "a.b"), "gone");
    assert!(world.get(1, "q").is_none());
}

#[test]
fn messages_expire_and_go_where_dead_letters_go() {
    let mut world = World::new();
    world.connect(1);
    let arguments = table(&[
        ("x-message-ttl", Value::I32(5000)),
        ("x-dead-letter-exchange", Value::Text(b"")),
        ("x-dead-letter-routing-key", Value::Text(b"dead")),
    ]);
    world.ask(1, &declare("q", arguments.as_table()));
    world.ask(1, &declare("dead", Table::default()));
    world.publish(1, ("", "q"), "long");
    let brief = Properties { expiration: Some("1000"), ..Properties::default() };
    world.publish_with(1, ("", "q"), false, &brief, b"brief");
    world.wait(Duration::from_secs(1));
    assert!(world.get(1, "dead").is_none(), "what stands behind another waits for it");
    world.wait(Duration::from_secs(4));
    let (long, brief) = (world.get(1, "dead").unwrap(), world.get(1, "dead").unwrap());
    assert_eq!((&long.body[..], &brief.body[..]), (&b"long"[..], &b"brief"[..]));
    let properties = Properties::decode(&brief.properties).unwrap();
    assert_eq!(properties.expiration, None);
    let Some(Value::Array(deaths)) = properties.headers.unwrap().get("x-death") else {
        panic!("no deaths")
    };
    let Some(Value::Table(death)) = deaths.iter().next() else { panic!("no death") };
    assert_eq!(death.get("reason"), Some(Value::Text(b"expired")));
    assert_eq!(death.get("queue"), Some(Value::Text(b"q")));
    assert_eq!(death.get("original-expiration"), Some(Value::Text(b"1000")));
    let bad = Properties { expiration: Some("soon"), ..Properties::default() };
    world.publish_with(1, ("", "q"), false, &bad, b"");
    assert_eq!(code(&world.got(1)[0].text), Some("406"));
}

#[test]
fn dead_letters_do_not_go_round_by_themselves() {
    let mut world = World::new();
    world.connect(1);
    for (queue, next) in [("a", &b"b"[..]), ("b", b"a")] {
        let arguments = table(&[
            ("x-message-ttl", Value::I32(10)),
            ("x-dead-letter-exchange", Value::Text(b"")),
            ("x-dead-letter-routing-key", Value::Text(next)),
        ]);
        world.ask(1, &declare(queue, arguments.as_table()));
    }
    world.publish(1, ("", "a"), "round");
    for _ in 0..5 {
        world.wait(Duration::from_millis(10));
    }
    assert!(world.get(1, "a").is_none() && world.get(1, "b").is_none());
    assert_eq!(world.broker.core().counts().dropped.iter().sum::<u64>(), 1);
}

#[test]
fn a_full_queue_drops_or_refuses() {
    let mut world = World::new();
    world.connect(1);
    let keep =
        table(&[("x-max-length", Value::I32(1)), ("x-overflow", Value::Text(b"reject-publish"))]);
    world.ask(1, &declare("keep", keep.as_table()));
    world.call(1, &Method::ConfirmSelect { no_wait: false });
    for body in ["1", "2"] {
        world.publish(1, ("", "keep"), body);
    }
    let got: Vec<String> = world.got(1).into_iter().map(|got| got.text).collect();
    assert!(got[0].starts_with("BasicAck { delivery_tag: 1"), "{got:?}");
    assert!(got[1].starts_with("BasicNack { delivery_tag: 2"), "{got:?}");
    let drop = table(&[("x-max-length", Value::I32(1))]);
    world.ask(1, &declare("drop", drop.as_table()));
    for body in ["1", "2"] {
        world.publish(1, ("", "drop"), body);
    }
    world.got(1);
    assert_eq!(world.get(1, "drop").unwrap().body, b"2");
}

#[test]
fn a_queue_without_use_goes() {
    let mut world = World::new();
    world.connect(1);
    let arguments = table(&[("x-expires", Value::I32(1000))]);
    world.ask(1, &declare("q", arguments.as_table()));
    world.wait(Duration::from_millis(900));
    world.ask(1, &consume("q", "c", true));
    world.wait(Duration::from_secs(5));
    world.ask(1, &Method::BasicCancel { consumer_tag: "c", no_wait: false });
    world.wait(Duration::from_millis(999));
    assert!(world.get(1, "q").is_none());
    world.wait(Duration::from_millis(999));
    assert!(world.ask(1, &declare("q", arguments.as_table())).starts_with("QueueDeclareOk"));
    world.wait(Duration::from_millis(1000));
    let gone = world.ask(1, &Method::BasicGet { queue: "q", no_ack: true });
    assert_eq!(code(&gone), Some("404"));
}

#[test]
fn purging_and_deleting_count() {
    let mut world = World::new();
    world.connect(1);
    world.ask(1, &declare("q", Table::default()));
    for _ in 0..3 {
        world.publish(1, ("", "q"), "x");
    }
    let purged = world.ask(1, &Method::QueuePurge { queue: "q", no_wait: false });
    assert_eq!(purged, "QueuePurgeOk { message_count: 3 }");
    world.publish(1, ("", "q"), "x");
    let delete =
        Method::QueueDelete { queue: "q", if_unused: false, if_empty: false, no_wait: false };
    assert_eq!(world.ask(1, &delete), "QueueDeleteOk { message_count: 1 }");
    assert_eq!(world.ask(1, &delete), "QueueDeleteOk { message_count: 0 }", "it is gone already");
}
