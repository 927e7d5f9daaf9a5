//! One situation each.

use std::time::Duration;

use bytes::Bytes;

use super::super::super::id::Id;
use super::super::super::level::{Qos, Version};
use super::super::super::packet::{
    Ack, ConnAck, Disconnect, Filter, Options, Packet, Publish, SubAck, UnsubAck,
};
use super::super::super::property::{Properties, Value};
use super::super::super::reason::Reason;
use super::super::{Closed, Failure, Input, Output};
use super::{Bench, connect, message, settings, text};

/// A CONNACK with these numbers.
fn connack(numbers: &[(Id, u32)]) -> ConnAck {
    let mut properties = Properties::NONE;
    for (id, number) in numbers {
        properties.push(*id, Value::Number(*number)).unwrap();
    }
    ConnAck { properties, ..ConnAck::default() }
}

fn open(numbers: &[(Id, u32)]) -> Bench {
    Bench::open(settings(connect(Version::V5)), connack(numbers))
}

fn publish(bench: &mut Bench, key: u64, publish: Publish) -> (Vec<Packet>, Vec<Output>) {
    bench.input(Input::Publish { key, publish })
}

/// The packet identifiers of what was sent.
fn ids(packets: &[Packet]) -> Vec<u16> {
    let id = |packet: &Packet| match packet {
        Packet::Publish(publish) => publish.packet_id.unwrap_or(0),
        packet => panic!("{packet:?}"),
    };
    packets.iter().map(id).collect()
}

fn closed(reports: &[Output]) -> &Closed {
    let Some(Output::Closed(why)) = reports.last() else { panic!("{reports:?}") };
    why
}

#[test]
fn messages_of_each_quality_have_their_end() {
    for version in [Version::V31, Version::V311, Version::V5] {
        let mut bench = Bench::open(settings(connect(version)), ConnAck::default());
        let (packets, reports) = publish(&mut bench, 1, message("a", Qos::AtMostOnce));
        assert_eq!(packets, [Packet::Publish(message("a", Qos::AtMostOnce))]);
        assert_eq!(reports, [Output::Published { key: 1, reason: Reason::SUCCESS }]);

        let (packets, reports) = publish(&mut bench, 2, message("a", Qos::AtLeastOnce));
        assert_eq!((ids(&packets), reports.len()), (vec![1], 0));
        let (packets, reports) = bench.packet(&Packet::PubAck(Ack::new(1, Reason::SUCCESS)));
        assert_eq!(reports, [Output::Published { key: 2, reason: Reason::SUCCESS }]);
        assert!(packets.is_empty());

        let (packets, _) = publish(&mut bench, 3, message("a", Qos::ExactlyOnce));
        assert_eq!(ids(&packets), [2]);
        let (packets, reports) = bench.packet(&Packet::PubRec(Ack::new(2, Reason::SUCCESS)));
        assert_eq!(packets, [Packet::PubRel(Ack::new(2, Reason::SUCCESS))]);
        assert!(reports.is_empty());
        let (_, reports) = bench.packet(&Packet::PubComp(Ack::new(2, Reason::SUCCESS)));
        assert_eq!(reports, [Output::Published { key: 3, reason: Reason::SUCCESS }]);
        assert_eq!(bench.client.open_messages(), 0);
    }
}

#[test]
fn a_server_refuses_messages() {
    let mut bench = open(&[]);
    publish(&mut bench, 1, message("a", Qos::AtLeastOnce));
    publish(&mut bench, 2, message("a", Qos::ExactlyOnce));
    let (_, reports) = bench.packet(&Packet::PubAck(Ack::new(1, Reason::NOT_AUTHORIZED)));
    assert_eq!(reports, [Output::Published { key: 1, reason: Reason::NOT_AUTHORIZED }]);
    // MQTT 5 §4.3.3: no PUBREL follows.
    let (packets, reports) = bench.packet(&Packet::PubRec(Ack::new(2, Reason::QUOTA_EXCEEDED)));
    assert_eq!(reports, [Output::Published { key: 2, reason: Reason::QUOTA_EXCEEDED }]);
    assert!(packets.is_empty());
    // MQTT 5 §3.6.2.1: what nobody knows.
    let (packets, _) = bench.packet(&Packet::PubRec(Ack::new(9, Reason::SUCCESS)));
    let not_found = Ack::new(9, Reason::PACKET_IDENTIFIER_NOT_FOUND);
    assert_eq!(packets, [Packet::PubRel(not_found)]);
}

/// MQTT 5 §4.9.
#[test]
fn a_window_is_never_passed() {
    let mut bench = open(&[(Id::RECEIVE_MAXIMUM, 2)]);
    for key in 0..4 {
        publish(&mut bench, key, message("a", Qos::AtLeastOnce));
    }
    publish(&mut bench, 4, message("a", Qos::ExactlyOnce));
    let (packets, _) = bench.packet(&Packet::PubAck(Ack::new(1, Reason::SUCCESS)));
    assert_eq!(ids(&packets), [3]);
    // A copy of the answer gives no place.
    let (packets, _) = bench.packet(&Packet::PubAck(Ack::new(1, Reason::SUCCESS)));
    assert!(packets.is_empty());
    let (packets, _) = bench.packet(&Packet::PubAck(Ack::new(3, Reason::SUCCESS)));
    assert_eq!(ids(&packets), [4]);
    let (packets, _) = bench.packet(&Packet::PubAck(Ack::new(2, Reason::SUCCESS)));
    assert_eq!(ids(&packets), [5]);
    assert_eq!(bench.client.open_messages(), 2);
}

/// MQTT 5 §4.4.
#[test]
fn a_session_goes_on() {
    let mut settings = settings(connect(Version::V5));
    settings.connect.properties.push(Id::SESSION_EXPIRY_INTERVAL, Value::Number(60)).unwrap();
    let mut bench = Bench::open(settings, connack(&[(Id::RECEIVE_MAXIMUM, 3)]));
    for (key, qos) in [(1, Qos::ExactlyOnce), (2, Qos::AtLeastOnce), (3, Qos::ExactlyOnce)] {
        publish(&mut bench, key, message("a", qos));
    }
    bench.packet(&Packet::PubRec(Ack::new(1, Reason::SUCCESS)));
    publish(&mut bench, 4, message("a", Qos::AtLeastOnce));
    bench.input(Input::Disconnected);
    publish(&mut bench, 5, message("a", Qos::AtMostOnce));
    let (packets, _) = bench.input(Input::Connected);
    let [Packet::Connect(connect)] = &packets[..] else { panic!() };
    assert!(!connect.clean_start);
    let mut again = connack(&[(Id::RECEIVE_MAXIMUM, 2)]);
    again.session_present = true;
    let (packets, reports) = bench.packet(&Packet::ConnAck(again.clone()));
    let mut expected = [message("a", Qos::AtLeastOnce), message("a", Qos::ExactlyOnce)];
    for (at, publish) in expected.iter_mut().enumerate() {
        (publish.dup, publish.packet_id) = (true, Some(u16::try_from(at).unwrap() + 2));
    }
    let release = Packet::PubRel(Ack::new(1, Reason::SUCCESS));
    let expected = expected.map(Packet::Publish);
    // A message that the server has holds its place until the PUBCOMP.
    // One of QoS 0 needs no place.
    let last = Packet::Publish(message("a", Qos::AtMostOnce));
    assert_eq!(packets, [release, expected[0].clone(), last]);
    let published = Output::Published { key: 5, reason: Reason::SUCCESS };
    assert_eq!(reports, [Output::Open(again), published]);
    let (packets, _) = bench.packet(&Packet::PubComp(Ack::new(1, Reason::SUCCESS)));
    assert_eq!(packets, expected[1..]);
    let (packets, _) = bench.packet(&Packet::PubAck(Ack::new(2, Reason::SUCCESS)));
    assert_eq!(ids(&packets), [4]);
}

/// MQTT 5 §4.9: a server may take fewer messages than before.
#[test]
fn a_window_shrinks() {
    let mut settings = settings(connect(Version::V5));
    settings.connect.properties.push(Id::SESSION_EXPIRY_INTERVAL, Value::Number(60)).unwrap();
    let mut bench = Bench::open(settings, ConnAck::default());
    publish(&mut bench, 1, message("a", Qos::AtLeastOnce));
    publish(&mut bench, 2, message("a", Qos::ExactlyOnce));
    bench.packet(&Packet::PubRec(Ack::new(2, Reason::SUCCESS)));
    bench.input(Input::Disconnected);
    let mut again = connack(&[(Id::RECEIVE_MAXIMUM, 1)]);
    again.session_present = true;
    let (packets, _) = bench.reopen(again);
    assert_eq!(packets, [Packet::PubRel(Ack::new(2, Reason::SUCCESS))]);
    let (packets, _) = bench.packet(&Packet::PubComp(Ack::new(2, Reason::SUCCESS)));
    assert_eq!(ids(&packets), [1]);
}

/// MQTT 5 §3.2.2.1.1.
#[test]
fn a_session_is_lost() {
    let mut bench = open(&[]);
    publish(&mut bench, 1, message("a", Qos::AtLeastOnce));
    publish(&mut bench, 2, message("a", Qos::ExactlyOnce));
    publish(&mut bench, 3, message("b", Qos::AtLeastOnce));
    publish(&mut bench, 4, message("a", Qos::ExactlyOnce));
    bench.packet(&Packet::PubRec(Ack::new(4, Reason::SUCCESS)));
    bench.input(Input::Disconnected);
    let (packets, reports) = bench.reopen(ConnAck::default());
    let mut expected = [message("a", Qos::AtLeastOnce), message("b", Qos::AtLeastOnce)];
    (expected[0].packet_id, expected[1].packet_id) = (Some(5), Some(6));
    assert_eq!(packets, expected.map(Packet::Publish));
    assert_eq!(
        reports[1..],
        [
            Output::Published { key: 4, reason: Reason::SUCCESS },
            Output::Failed { key: 2, failure: Failure::SessionLost },
        ]
    );
    // MQTT-3.2.2-4: no session was wanted.
    bench.input(Input::Disconnected);
    let (packets, reports) = bench.reopen(ConnAck { session_present: true, ..ConnAck::default() });
    assert!(matches!(closed(&reports), Closed::Refused(_)));
    assert_eq!(packets, [Packet::Disconnect(Disconnect::new(Reason::PROTOCOL_ERROR))]);
}

fn from_server(id: u16, qos: Qos, dup: bool) -> Packet {
    Packet::Publish(Publish { packet_id: Some(id), dup, ..message("t", qos) })
}

fn receipt(reports: &[Output]) -> u64 {
    let [Output::Message { receipt: Some(receipt), .. }] = reports else { panic!("{reports:?}") };
    *receipt
}

fn accept(bench: &mut Bench, receipt: u64) -> Vec<Packet> {
    bench.input(Input::Accept { receipt, reason: Reason::SUCCESS }).0
}

/// MQTT 5 §4.6.
#[test]
fn answers_are_in_the_order_of_messages() {
    let mut bench = open(&[]);
    let (_, reports) = bench.packet(&Packet::Publish(message("t", Qos::AtMostOnce)));
    assert_eq!(
        reports,
        [Output::Message { receipt: None, publish: message("t", Qos::AtMostOnce) }]
    );
    let first = receipt(&bench.packet(&from_server(7, Qos::AtLeastOnce, false)).1);
    let second = receipt(&bench.packet(&from_server(8, Qos::ExactlyOnce, false)).1);
    let third = receipt(&bench.packet(&from_server(9, Qos::AtLeastOnce, false)).1);
    assert!(accept(&mut bench, third).is_empty());
    assert_eq!(accept(&mut bench, first), [Packet::PubAck(Ack::new(7, Reason::SUCCESS))]);
    let refused = Ack::new(8, Reason::QUOTA_EXCEEDED);
    let input = Input::Accept { receipt: second, reason: Reason::QUOTA_EXCEEDED };
    let (packets, _) = bench.input(input);
    let last = Packet::PubAck(Ack::new(9, Reason::SUCCESS));
    assert_eq!(packets, [Packet::PubRec(refused), last]);
    // The identifier is free again (MQTT 5 §4.3.3).
    receipt(&bench.packet(&from_server(8, Qos::AtLeastOnce, false)).1);
}

#[test]
fn a_message_of_qos_2_is_handed_out_once() {
    let mut connect = connect(Version::V311);
    connect.clean_start = false;
    let mut bench = Bench::open(settings(connect), ConnAck::default());
    let present = ConnAck { session_present: true, ..ConnAck::default() };
    let first = receipt(&bench.packet(&from_server(1, Qos::ExactlyOnce, false)).1);
    let second = receipt(&bench.packet(&from_server(2, Qos::ExactlyOnce, false)).1);
    bench.input(Input::Disconnected);
    // Accepted in between, and after it came again.
    assert!(accept(&mut bench, second).is_empty());
    bench.reopen(present.clone());
    assert_eq!(bench.packet(&from_server(1, Qos::ExactlyOnce, true)), (vec![], vec![]));
    assert_eq!(bench.packet(&from_server(2, Qos::ExactlyOnce, true)), (vec![], vec![]));
    let rec = |id| Packet::PubRec(Ack::new(id, Reason::SUCCESS));
    assert_eq!(accept(&mut bench, first), [rec(1), rec(2)]);
    assert!(accept(&mut bench, first).is_empty());
    // Once more on this connection, and on the next.
    assert_eq!(bench.packet(&from_server(1, Qos::ExactlyOnce, true)).0, [rec(1)]);
    bench.input(Input::Disconnected);
    bench.reopen(present);
    assert_eq!(bench.packet(&from_server(1, Qos::ExactlyOnce, true)).0, [rec(1)]);
    let comp = |id| Packet::PubComp(Ack::new(id, Reason::SUCCESS));
    for id in [1, 2, 2] {
        let (packets, _) = bench.packet(&Packet::PubRel(Ack::new(id, Reason::SUCCESS)));
        assert_eq!(packets, [comp(id)]);
    }
    receipt(&bench.packet(&from_server(1, Qos::ExactlyOnce, false)).1);
}

#[test]
fn a_server_that_sends_too_much_is_left() {
    let mut connect = connect(Version::V5);
    connect.properties.push(Id::RECEIVE_MAXIMUM, Value::Number(1)).unwrap();
    let mut bench = Bench::open(settings(connect), ConnAck::default());
    bench.packet(&from_server(1, Qos::AtLeastOnce, false));
    let (packets, reports) = bench.packet(&from_server(2, Qos::AtLeastOnce, false));
    let reason = Reason::RECEIVE_MAXIMUM_EXCEEDED;
    assert_eq!(packets, [Packet::Disconnect(Disconnect::new(reason))]);
    assert!(matches!(closed(&reports), Closed::Refused(refused) if refused.reason == reason));
    // Nothing more is read.
    assert_eq!(bench.packet(&from_server(3, Qos::AtLeastOnce, false)), (vec![], vec![]));
}

/// MQTT 5 §3.3.2.3.4.
#[test]
fn aliases_of_the_server_are_resolved() {
    let aliased = |topic: &str, alias| {
        let mut publish = Publish { payload: "x".into(), ..Publish::default() };
        publish.topic = text(topic);
        publish.properties.push(Id::TOPIC_ALIAS, Value::Number(alias)).unwrap();
        Packet::Publish(publish)
    };
    let mut settings = settings(connect(Version::V5));
    settings.connect.properties.push(Id::TOPIC_ALIAS_MAXIMUM, Value::Number(2)).unwrap();
    let mut bench = Bench::open(settings, ConnAck::default());
    let named =
        |topic| vec![Output::Message { receipt: None, publish: message(topic, Qos::AtMostOnce) }];
    assert_eq!(bench.packet(&aliased("long/topic", 1)).1, named("long/topic"));
    assert_eq!(bench.packet(&aliased("other", 2)).1, named("other"));
    assert_eq!(bench.packet(&aliased("", 1)).1, named("long/topic"));
    assert_eq!(bench.packet(&aliased("new", 1)).1, named("new"));
    assert_eq!(bench.packet(&aliased("", 1)).1, named("new"));
    // They end with the connection, and there are no more than were announced.
    bench.input(Input::Disconnected);
    bench.reopen(ConnAck::default());
    for wrong in [aliased("", 1), aliased("a", 3)] {
        let (_, reports) = bench.packet(&wrong);
        let Closed::Refused(refused) = closed(&reports) else { panic!() };
        assert_eq!(refused.reason, Reason::TOPIC_ALIAS_INVALID);
        bench.reopen(ConnAck::default());
    }
}

/// MQTT 5 §3.3.2.3.4: as many as the server takes, and none after the connection.
#[test]
fn topics_are_sent_by_alias() {
    let mut bench = open(&[(Id::TOPIC_ALIAS_MAXIMUM, 1)]);
    let sent = |bench: &mut Bench, topic| {
        let (packets, _) = publish(bench, 1, message(topic, Qos::AtMostOnce));
        let [Packet::Publish(publish)] = &packets[..] else { panic!() };
        (publish.topic.to_string(), publish.properties.number(Id::TOPIC_ALIAS))
    };
    assert_eq!(sent(&mut bench, "long/topic"), ("long/topic".into(), Some(1)));
    assert_eq!(sent(&mut bench, "long/topic"), (String::new(), Some(1)));
    assert_eq!(sent(&mut bench, "other/topic"), ("other/topic".into(), None));
    bench.input(Input::Disconnected);
    bench.reopen(connack(&[(Id::TOPIC_ALIAS_MAXIMUM, 1)]));
    assert_eq!(sent(&mut bench, "abc"), ("abc".into(), None));
    assert_eq!(sent(&mut bench, "long/topic"), ("long/topic".into(), Some(1)));
}

/// MQTT 5 §3.2.2.3.
#[test]
fn what_a_server_does_not_take_is_not_sent() {
    let mut bench = open(&[
        (Id::MAXIMUM_QOS, 1),
        (Id::RETAIN_AVAILABLE, 0),
        (Id::MAXIMUM_PACKET_SIZE, 30),
        (Id::WILDCARD_SUBSCRIPTION_AVAILABLE, 0),
        (Id::SHARED_SUBSCRIPTION_AVAILABLE, 0),
        (Id::SUBSCRIPTION_IDENTIFIERS_AVAILABLE, 0),
    ]);
    let mut retained = message("a", Qos::AtMostOnce);
    retained.retain = true;
    let mut large = message("a", Qos::AtLeastOnce);
    large.payload = vec![0; 24].into();
    let mut aliased = message("a", Qos::AtMostOnce);
    aliased.properties.push(Id::TOPIC_ALIAS, Value::Number(1)).unwrap();
    for publish in [message("a", Qos::ExactlyOnce), retained, large.clone(), aliased] {
        let (packets, reports) = bench.input(Input::Publish { key: 5, publish });
        assert!(packets.is_empty());
        assert!(matches!(reports[..], [Output::Failed { key: 5, .. }]), "{reports:?}");
    }
    large.payload = vec![0; 22].into();
    assert_eq!(ids(&publish(&mut bench, 6, large).0), [1]);
    let identifier = Properties::NONE.with(Id::SUBSCRIPTION_IDENTIFIER, Value::Number(1)).unwrap();
    for (filter, properties) in [
        ("a/+", Properties::NONE),
        ("$share/g/a", Properties::NONE),
        ("a", identifier),
        ("a+", Properties::NONE),
        ("a-filter-that-is-far-too-long-for-it", Properties::NONE),
    ] {
        let filters = vec![Filter { filter: text(filter), options: Options::default() }];
        let (packets, reports) = bench.input(Input::Subscribe { key: 7, filters, properties });
        assert!(packets.is_empty(), "{filter}");
        assert!(matches!(reports[..], [Output::Failed { key: 7, .. }]), "{reports:?}");
    }
}

#[test]
fn subscriptions_are_answered() {
    let mut bench = open(&[]);
    let filter = |filter| Filter { filter: text(filter), options: Options::new(Qos::AtLeastOnce) };
    let subscribe = |key| {
        let filters = vec![filter("a/#"), filter("b")];
        Input::Subscribe { key, filters, properties: Properties::NONE }
    };
    let (packets, _) = bench.input(subscribe(1));
    let [Packet::Subscribe(sent)] = &packets[..] else { panic!() };
    assert_eq!((sent.id, sent.filters.len()), (1, 2));
    let reasons = vec![Reason::GRANTED_QOS_1, Reason::NOT_AUTHORIZED];
    let ack = SubAck { id: 1, reasons, properties: Properties::NONE };
    let (_, reports) = bench.packet(&Packet::SubAck(ack.clone()));
    assert_eq!(reports, [Output::Subscribed { key: 1, ack: ack.clone() }]);
    assert_eq!(bench.packet(&Packet::SubAck(ack)), (vec![], vec![]));

    let filters = vec![text("b")];
    bench.input(Input::Unsubscribe { key: 2, filters, properties: Properties::NONE });
    let reasons = vec![Reason::NO_SUBSCRIPTION_EXISTED];
    let ack = UnsubAck { id: 2, reasons, properties: Properties::NONE };
    let (_, reports) = bench.packet(&Packet::UnsubAck(ack.clone()));
    assert_eq!(reports, [Output::Unsubscribed { key: 2, ack }]);

    // Without an answer, without a connection, and with one that does not fit.
    bench.input(subscribe(3));
    let (_, reports) = bench.input(Input::Disconnected);
    let failed = |key| Output::Failed { key, failure: Failure::Unconnected };
    assert_eq!(reports, [failed(3), Output::Closed(Closed::Broken)]);
    assert_eq!(bench.input(subscribe(4)).1, [failed(4)]);
    bench.reopen(ConnAck::default());
    bench.input(subscribe(5));
    let ack = SubAck { id: 4, reasons: vec![Reason::SUCCESS], properties: Properties::NONE };
    let (_, reports) = bench.packet(&Packet::SubAck(ack));
    assert!(matches!(closed(&reports), Closed::Refused(_)));
}

/// MQTT 5 §3.1.2.10.
#[test]
fn signs_of_life() {
    let s = Duration::from_secs;
    let mut bench = open(&[(Id::SERVER_KEEP_ALIVE, 20)]);
    assert_eq!(bench.wake_at, Some(s(15)));
    bench.now = s(14);
    assert_eq!(bench.input(Input::Wake), (vec![], vec![]));
    // What is sent alone does not tell that the server is there.
    publish(&mut bench, 1, message("a", Qos::AtMostOnce));
    bench.now = s(15);
    assert_eq!(bench.input(Input::Wake), (vec![Packet::PingReq], vec![]));
    assert_eq!(bench.wake_at, Some(s(25)));
    bench.now = s(20);
    assert_eq!(bench.packet(&Packet::PingResp), (vec![], vec![]));
    assert_eq!(bench.wake_at, Some(s(30)));
    bench.now = s(30);
    assert_eq!(bench.input(Input::Wake).0, [Packet::PingReq]);
    bench.now = s(40);
    assert_eq!(bench.input(Input::Wake), (vec![], vec![Output::Closed(Closed::Unanswered)]));
    // A CONNECT without answer; none is asked for where the interval is 0.
    bench.input(Input::Connected);
    bench.now = s(49);
    bench.input(Input::Bytes(Bytes::from_static(b"\x20")));
    bench.now = s(50);
    assert_eq!(bench.input(Input::Wake).1, [Output::Closed(Closed::Unanswered)]);
    bench.wake_at = None;
    bench.input(Input::Connected);
    bench.packet(&Packet::ConnAck(connack(&[(Id::SERVER_KEEP_ALIVE, 0)])));
    bench.now = s(1_000_000);
    assert_eq!(bench.input(Input::Wake), (vec![], vec![]));
}

#[test]
fn connections_end() {
    let mut bench = open(&[]);
    let (packets, reports) = bench.input(Input::Disconnect(Disconnect::default()));
    assert_eq!(packets, [Packet::Disconnect(Disconnect::default())]);
    assert_eq!(reports, [Output::Closed(Closed::Asked)]);
    assert_eq!(bench.input(Input::Disconnected), (vec![], vec![]));

    let taken = Disconnect::new(Reason::SESSION_TAKEN_OVER);
    bench.reopen(ConnAck::default());
    let (_, reports) = bench.packet(&Packet::Disconnect(taken.clone()));
    assert_eq!(reports, [Output::Closed(Closed::ByServer(taken))]);

    bench.input(Input::Connected);
    let unwelcome = ConnAck { reason: Reason::BANNED, ..ConnAck::default() };
    let (packets, reports) = bench.packet(&Packet::ConnAck(unwelcome.clone()));
    assert_eq!((packets, reports), (vec![], vec![Output::Closed(Closed::Unwelcome(unwelcome))]));

    // What a server may not send, now or at all; and bytes that are no packet.
    for wrong in [Packet::PingReq, Packet::ConnAck(ConnAck::default()), Packet::PingResp] {
        let (_, reports) = bench.input(Input::Connected);
        assert!(reports.is_empty());
        if wrong != Packet::PingResp {
            bench.packet(&Packet::ConnAck(ConnAck::default()));
        }
        let (packets, reports) = bench.packet(&wrong);
        assert!(matches!(closed(&reports), Closed::Refused(_)), "{wrong:?}");
        assert!(matches!(packets[..], [Packet::Disconnect(_)]));
    }
    bench.reopen(ConnAck::default());
    let (packets, _) = bench.input(Input::Bytes(Bytes::from_static(b"\x30\x80\x80\x80\x80")));
    assert_eq!(packets, [Packet::Disconnect(Disconnect::new(Reason::MALFORMED_PACKET))]);

    // MQTT 3.1.1 has the will published where no DISCONNECT came.
    let mut bench = Bench::open(settings(connect(Version::V311)), ConnAck::default());
    let with_will = Disconnect::new(Reason::DISCONNECT_WITH_WILL);
    let (packets, reports) = bench.input(Input::Disconnect(with_will));
    assert_eq!((packets, reports), (vec![], vec![Output::Closed(Closed::Asked)]));
}

/// MQTT 5 §3.2.2.3.7.
#[test]
fn an_assigned_identifier_is_kept() {
    let mut connect = connect(Version::V5);
    connect.client_id = text("");
    let id = Value::Text("assigned");
    let properties = Properties::NONE.with(Id::ASSIGNED_CLIENT_IDENTIFIER, id).unwrap();
    let connack = ConnAck { properties, ..ConnAck::default() };
    let mut bench = Bench::open(settings(connect), connack);
    bench.input(Input::Disconnected);
    let (packets, _) = bench.input(Input::Connected);
    let [Packet::Connect(connect)] = &packets[..] else { panic!() };
    assert_eq!(connect.client_id.as_str(), "assigned");
    // The largest packet that is taken is announced (MQTT 5 §3.1.2.11.4).
    assert_eq!(connect.properties.number(Id::MAXIMUM_PACKET_SIZE), Some(268_435_455));
}
