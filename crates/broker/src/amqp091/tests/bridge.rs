use proto::amqp::message::{Body, Properties as ModernProperties, encode_bare};
use proto::amqp::types::Value as Modern;
use record::publication::{Progress, Receiver};

use super::super::translate::properties;
use super::*;
use crate::access::{Access, Rule};
use crate::explain::Query;
use crate::publication::{MEDIA_TYPE, PayloadForm, Publication};

/// A client of MQTT 3.1.1.
pub(super) fn mqtt(world: &mut World, number: u64) {
    let (connection, protocol) = (ConnectionId(number), Protocol::Mqtt);
    world.input(Input::Connected { connection, protocol, certified: None });
    // CONNECT with user u, password p, clean.
    let connect = b"\x10\x13\x00\x04MQTT\x04\xc2\x00\x00\x00\x01m\x00\x01u\x00\x01p";
    world.bytes(number, connect);
    assert_eq!(&world.sent.remove(&number).unwrap()[..], b"\x20\x02\x00\x00");
}

pub(super) fn mqtt_publish(world: &mut World, number: u64, topic: &str, body: &[u8], flags: u8) {
    let id: &[u8] = if flags & 2 != 0 { &[0, 7] } else { &[] };
    let len = u8::try_from(2 + topic.len() + id.len() + body.len()).unwrap();
    let topic_len = u8::try_from(topic.len()).unwrap();
    let head = [0x30 | flags, len, 0, topic_len];
    world.bytes(number, &[&head[..], topic.as_bytes(), id, body].concat());
}

fn mqtt_subscribe(world: &mut World, number: u64, filter: &str) {
    let len = u8::try_from(filter.len()).unwrap();
    let head = [0x82, 5 + len, 0, 1, 0, len];
    world.bytes(number, &[&head[..], filter.as_bytes(), &[1]].concat());
    world.sent.remove(&number);
}

fn both() -> World {
    let mut world = World::new();
    world.connect(1);
    mqtt(&mut world, 9);
    world
}

#[test]
fn topics_arrive_as_keys_and_keys_as_topics() {
    let mut world = both();
    world.ask(1, &declare("q", Table::default()));
    world.ask(1, &bind("q", "amq.topic", "a.*.c"));
    mqtt_publish(&mut world, 9, "a/b/x", b"no", 0);
    mqtt_publish(&mut world, 9, "a/b.1/c", b"yes", 0);
    let got = world.get(1, "q").unwrap();
    assert_eq!(got.body, b"yes");
    assert!(got.text.contains("routing_key: \"a.b%2E1.c\""), "{}", got.text);
    let properties = Properties::decode(&got.properties).unwrap();
    assert_eq!(properties.delivery_mode, Some(1));
    assert!(world.get(1, "q").is_none());

    mqtt_subscribe(&mut world, 9, "a/+/c");
    world.publish(1, ("amq.topic", "a.%25.c"), "back");
    assert_eq!(&world.sent.remove(&9).unwrap()[..], b"\x30\x0b\x00\x05a/%/cback");
    assert_eq!(world.get(1, "q").unwrap().body, b"back", "once to our own");
    assert!(world.get(1, "q").is_none());
}

#[test]
fn a_consumer_of_this_protocol_gets_what_was_sent() {
    let mut world = both();
    world.ask(1, &declare("q", Table::default()));
    world.ask(1, &bind("q", "amq.topic", "#"));
    let inner = table(&[("n", Value::F64(0.5))]);
    let headers = table(&[("t", Value::Table(inner.as_table())), ("x-any", Value::Void)]);
    let properties = Properties {
        headers: Some(headers.as_table()),
        kind: Some("k"),
        correlation_id: Some("c"),
        cluster_id: Some("old"),
        ..persistent()
    };
    world.publish_with(1, ("amq.topic", "k"), false, &properties, b"x");
    assert_eq!(world.get(1, "q").unwrap().properties, bytes_of(&properties));
}

#[test]
fn keys_without_a_topic_stay_here_and_are_counted() {
    let mut world = both();
    world.ask(1, &declare("q", Table::default()));
    world.ask(1, &bind("q", "amq.topic", "#"));
    mqtt_subscribe(&mut world, 9, "#");
    for key in ["a/b", "50%", "", "a+"] {
        world.publish(1, ("amq.topic", key), "x");
        assert_eq!(world.get(1, "q").unwrap().body, b"x");
    }
    assert_eq!(world.sent.get(&9), None);
    assert_eq!(world.broker.core().counts().dropped.iter().sum::<u64>(), 4);
    // And topics without a key.
    mqtt_publish(&mut world, 9, &"%".repeat(100), b"x", 0);
    assert!(world.get(1, "q").is_none());
    assert_eq!(world.broker.core().counts().dropped.iter().sum::<u64>(), 5);
}

#[test]
fn mandatory_asks_for_anybody() {
    let mut world = both();
    world.publish_with(1, ("amq.topic", "a"), true, &Properties::default(), b"x");
    assert_eq!(world.got(1)[0].name(), "BasicReturn");
    mqtt_subscribe(&mut world, 9, "a");
    world.publish_with(1, ("amq.topic", "a"), true, &Properties::default(), b"x");
    assert_eq!(world.got(1), []);
}

#[test]
fn a_payload_in_another_form_says_its_own_media_type_across_versions() {
    let application = vec![
        (Modern::string("n"), Modern::Int(5)),
        (Modern::string(MEDIA_TYPE), Modern::string("application/old")),
    ];
    let body = Body::Data(vec![Bytes::from_static(b"old")]);
    let original = encode_bare(&ModernProperties::default(), &application, &body);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    for kept in [Some("application/geo+json"), None] {
        let mut publication = Publication::new(Protocol::Amqp, "a/b", "{}");
        publication.coded = Some(PayloadForm::Json);
        let details = publication.details_mut();
        details.original = Some(original.clone());
        details.properties = vec![pair("n", "5")];
        details.properties.extend(kept.map(|kept| pair(MEDIA_TYPE, kept)));
        let bytes = properties(Duration::ZERO, &publication, false);
        let headers = Properties::decode(&bytes).unwrap().headers.unwrap();
        assert_eq!(headers.get("n"), Some(Value::I32(5)));
        let said = headers.get(MEDIA_TYPE);
        assert_eq!(said.as_ref().and_then(|said| said.as_text()), kept);
    }
}

#[test]
fn what_no_queue_has_room_for_is_not_said_to_be_acknowledged() {
    let mut world = both();
    let arguments =
        table(&[("x-max-length", Value::I32(1)), ("x-overflow", Value::Text(b"reject-publish"))]);
    world.ask(1, &declare("q", arguments.as_table()));
    world.ask(1, &bind("q", "amq.topic", "#"));
    mqtt_publish(&mut world, 9, "a", b"first", 2);
    mqtt_publish(&mut world, 9, "b", b"second", 2);
    let progress = |topic: &str| {
        let topic = Some(topic.to_owned());
        let query = Query { id: None, origin: None, topic, last: 10 };
        let facts = world.broker.explain(&query);
        let all = facts.iter().flat_map(|one| &one.receivers);
        let of = |one: &Receiver| (one.progress, one.ended.as_ref().map(|it| it.why.clone()));
        all.map(of).collect::<Vec<_>>()
    };
    assert_eq!(progress("a"), [(Progress::Acknowledged, None)]);
    assert_eq!(progress("b"), [(Progress::Dropped, Some("queue-full".to_owned()))]);
}

#[test]
fn what_is_retained_comes_where_it_is_asked_for() {
    let mut world = both();
    mqtt_publish(&mut world, 9, "a/b", b"old", 1);
    let headers = table(&[("x-retain", Value::Bool(true))]);
    let properties = Properties { headers: Some(headers.as_table()), ..Properties::default() };
    world.publish_with(1, ("amq.topic", "a.c"), false, &properties, b"own");
    world.ask(1, &declare("q", Table::default()));
    world.ask(1, &bind("q", "amq.topic", "a.*"));
    assert!(world.get(1, "q").is_none());
    let asked = Method::QueueBind {
        queue: "q",
        exchange: "amq.topic",
        routing_key: "*.b",
        no_wait: false,
        arguments: headers.as_table(),
    };
    world.ask(1, &asked);
    let got = world.get(1, "q").unwrap();
    assert_eq!(got.body, b"old");
    let got = Properties::decode(&got.properties).unwrap();
    assert_eq!(got.headers.unwrap().get("x-retain"), Some(Value::Bool(true)));
    assert!(world.get(1, "q").is_none());
}

#[test]
fn answers_find_their_queue_and_their_topic() {
    let mut world = both();
    world.ask(1, &declare("answers", Table::default()));
    mqtt_subscribe(&mut world, 9, "ask");
    let ask = Properties { reply_to: Some("answers"), ..Properties::default() };
    world.publish_with(1, ("amq.topic", "ask"), false, &ask, b"?");
    world.sent.remove(&9);
    mqtt_publish(&mut world, 9, "$reply/queue/answers", b"!", 0);
    assert_eq!(world.get(1, "answers").unwrap().body, b"!");
    mqtt_subscribe(&mut world, 9, "me/b");
    world.publish(1, ("", "/topic/me.b"), "!");
    assert_eq!(&world.sent.remove(&9).unwrap()[..], b"\x30\x07\x00\x04me/b!");
}

#[test]
fn rules_hold_for_topics_and_for_queues() {
    let rule = |user: &str, filter: &str| Rule {
        user: Some(user.to_owned()),
        action: None,
        filter: filter.to_owned(),
        allow: true,
    };
    let access = Access { rules: vec![rule("u", "a/#"), rule("u", "amqp091/queue/mine/#")] };
    let sys_interval = Duration::ZERO;
    let settings = || Settings { access: access.clone(), sys_interval, ..Settings::default() };
    let mut world = World::with(settings());
    world.connect(1);
    assert!(world.ask(1, &declare("mine", Table::default())).starts_with("QueueDeclareOk"));
    assert_eq!(world.ask(1, &bind("mine", "amq.topic", "a.#")), "QueueBindOk");
    world.publish(1, ("amq.topic", "a.b"), "x");
    assert_eq!(world.get(1, "mine").unwrap().body, b"x");
    for method in [
        declare("other", Table::default()),
        bind("mine", "amq.topic", "#"),
        bind("mine", "amq.fanout", ""),
        declare_exchange("x", "fanout", Table::default()),
    ] {
        let mut world = World::with(settings());
        world.connect(1);
        world.ask(1, &declare("mine", Table::default()));
        let refused = world.ask(1, &method);
        assert!(refused.contains("reply_code: 403"), "{method:?}: {refused}");
    }
    world.publish(1, ("amq.topic", "b"), "x");
    assert!(world.got(1)[0].text.contains("reply_code: 403"));
}
