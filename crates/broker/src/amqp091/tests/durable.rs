use super::*;

fn durable() -> World {
    let sys_interval = Duration::ZERO;
    World::with(Settings { durable: true, sys_interval, ..Settings::default() })
}

fn queue(name: &str) -> Method<'_> {
    Method::QueueDeclare {
        queue: name,
        passive: false,
        durable: true,
        exclusive: false,
        auto_delete: false,
        no_wait: false,
        arguments: Table::default(),
    }
}

/// A broker that has read what another has written.
fn again(before: &World) -> World {
    let mut after = durable();
    after.now = before.now;
    assert_eq!(after.broker.restore(after.now, before.changes.iter().cloned()), 0);
    after.connect(1);
    after
}

#[test]
fn confirms_wait_for_the_store() {
    let mut world = durable();
    world.connect(1);
    world.ask(1, &queue("q"));
    world.call(1, &Method::ConfirmSelect { no_wait: false });
    world.is_store_held = true;
    for _ in 0..3 {
        world.publish_with(1, ("", "q"), false, &persistent(), b"x");
    }
    assert_eq!(world.got(1), []);
    // One that nobody keeps waits behind those before it, as its confirm is for all of them.
    world.publish(1, ("", "q"), "brief");
    assert_eq!(world.got(1), []);
    world.commit();
    let acks: Vec<String> = world.got(1).into_iter().map(|got| got.text).collect();
    assert_eq!(acks.last().unwrap(), "BasicAck { delivery_tag: 4, multiple: true }");
}

#[test]
fn what_is_durable_is_there_after_a_restart() {
    let mut world = durable();
    world.connect(1);
    world.ask(1, &queue("q"));
    world.ask(1, &declare("brief", Table::default()));
    let exchange = Method::ExchangeDeclare {
        exchange: "x",
        kind: "headers",
        passive: false,
        durable: true,
        auto_delete: false,
        internal: false,
        no_wait: false,
        arguments: Table::default(),
    };
    world.ask(1, &exchange);
    let arguments = table(&[("b", Value::I32(1)), ("a", Value::Text(b"y"))]);
    let bound = Method::QueueBind {
        queue: "q",
        exchange: "x",
        routing_key: "k",
        no_wait: false,
        arguments: arguments.as_table(),
    };
    world.ask(1, &bound);
    world.ask(1, &bind("brief", "x", ""));
    let headers = table(&[("a", Value::Text(b"y")), ("b", Value::I64(1))]);
    let properties = Properties { headers: Some(headers.as_table()), ..persistent() };
    for body in ["kept", "got", "held"] {
        world.publish_with(1, ("x", "k"), false, &properties, body.as_bytes());
    }
    world.publish(1, ("", "q"), "lost");
    let first = world.call(1, &Method::BasicGet { queue: "q", no_ack: false });
    world.call(1, &Method::BasicGet { queue: "q", no_ack: false });
    assert_eq!(first[0].body, b"kept");
    world.method(1, 1, &Method::BasicAck { delivery_tag: 2, multiple: false });

    let mut after = again(&world);
    let kept = after.get(1, "q").unwrap();
    assert_eq!((&kept.body[..], kept.properties), (&b"kept"[..], bytes_of(&properties).to_vec()));
    assert_eq!(after.get(1, "q").unwrap().body, b"held");
    assert!(after.get(1, "q").is_none(), "the others were not to be kept");
    after.publish_with(1, ("x", "k"), false, &properties, b"bound");
    assert_eq!(after.get(1, "q").unwrap().body, b"bound");
    let gone = after.ask(1, &Method::BasicGet { queue: "brief", no_ack: true });
    assert!(gone.contains("404"), "{gone}");
}

#[test]
fn what_was_deleted_does_not_come_back() {
    let mut world = durable();
    world.connect(1);
    world.ask(1, &queue("q"));
    world.ask(1, &queue("bound"));
    world.ask(1, &bind("bound", "amq.fanout", "k"));
    for _ in 0..2 {
        world.publish_with(1, ("", "q"), false, &persistent(), b"x");
    }
    world.call(1, &Method::BasicGet { queue: "q", no_ack: false });
    let delete =
        Method::QueueDelete { queue: "q", if_unused: false, if_empty: false, no_wait: false };
    assert!(world.ask(1, &delete).contains("message_count: 1"));
    world.ask(1, &queue("q"));
    world.method(1, 1, &Method::BasicAck { delivery_tag: 1, multiple: false });
    assert_eq!(world.got(1), [], "what it has of the queue before is still its own");
    let unbind = Method::QueueUnbind {
        queue: "bound",
        exchange: "amq.fanout",
        routing_key: "k",
        arguments: Table::default(),
    };
    world.ask(1, &unbind);
    let mut after = again(&world);
    after.publish(1, ("amq.fanout", "k"), "x");
    assert!(after.get(1, "bound").is_none());
    let again = after.ask(1, &queue("q"));
    assert!(again.contains("message_count: 0"), "{again}");
}

#[test]
fn messages_of_others_are_kept_too() {
    let mut world = durable();
    world.connect(1);
    world.ask(1, &queue("q"));
    world.ask(1, &bind("q", "amq.topic", "a.#"));
    bridge::mqtt(&mut world, 9);
    bridge::mqtt_publish(&mut world, 9, "a/b", b"one", 2);
    let mut after = again(&world);
    assert_eq!(after.get(1, "q").unwrap().body, b"one");
    bridge::mqtt(&mut after, 9);
    bridge::mqtt_publish(&mut after, 9, "a/c", b"two", 2);
    assert_eq!(after.get(1, "q").unwrap().body, b"two", "the filters are there again");
    assert!(after.get(1, "q").is_none());
}
