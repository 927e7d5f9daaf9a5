use std::sync::Arc;

use proto::amqp::message::encode_message;
use proto::amqp::message::{Body, Header as MessageHeader, Message, Properties, encode_bare};
use proto::amqp091::{Properties as ClassicProperties, TableBuf, Value as ClassicValue};

use super::super::translate;
use super::*;
use crate::core::Delivery;
use crate::publication::{Form, Grade, MEDIA_TYPE, PayloadForm, Publication};

fn delivery(publication: Publication) -> Delivery {
    Delivery {
        grade: publication.grade,
        publication: Arc::new(publication),
        retain: false,
        repeated: false,
        handle: None,
        identifiers: None,
    }
}

fn came(delivery: &Delivery) -> Message {
    Message::decode(&translate::message(NOW, delivery, 0, false)).unwrap()
}

#[test]
fn consumers_of_amqp_get_the_same_bare_message() {
    let properties = Properties {
        message_id: Some(Value::Uuid([1; 16])),
        subject: Some("s".to_owned()),
        content_type: Some(Symbol::new("application/json")),
        ..Properties::default()
    };
    let application = vec![(Value::string("k"), Value::List(vec![Value::Null]))];
    let body = Body::Data(vec![Bytes::from_static(b"{}"), Bytes::from_static(b"more")]);
    let bare = encode_bare(&properties, &application, &body);
    let footer = [&bare[..], b"\x00\x53\x78\xc1\x01\x00"].concat();
    let annotations = vec![
        (Value::symbol("x-opt-retain"), Value::Bool(true)),
        (Value::symbol("x-own"), Value::Int(5)),
    ];
    let header = MessageHeader { ttl_ms: Some(5000), priority: 7, ..MessageHeader::default() };
    let wire = encode_message(&header, &annotations, &footer);
    let (mut publication, lifetime) = translate::publication(&wire, Some("a".into())).unwrap();
    assert_eq!((&publication.payload[..], publication.retain), (&b"{}more"[..], true));
    assert_eq!(lifetime, Some(Duration::from_secs(5)));
    publication.deadline = Some(NOW + Duration::from_secs(3));
    publication.grade = Grade::AtLeastOnce;
    let mut delivery = delivery(publication);
    let message = came(&delivery);
    assert_eq!(message.bare, footer);
    let MessageHeader { durable, priority, ttl_ms, .. } = message.header;
    assert_eq!((durable, priority, ttl_ms), (true, 7, Some(3000)));
    assert_eq!(message.message_annotations, [(Value::symbol("x-own"), Value::Int(5))]);
    // As a retained message, to who could not know the topic.
    delivery.retain = true;
    let message = Message::decode(&translate::message(NOW, &delivery, 2, true)).unwrap();
    assert_eq!((message.header.delivery_count, &message.bare), (2, &footer.into()));
    assert_eq!(message.annotation("x-opt-retain"), Some(&Value::Bool(true)));
    assert_eq!(message.annotation("x-opt-lw-topic"), Some(&Value::string("a")));
}

#[test]
fn others_get_what_their_protocols_can_say() {
    let properties = Properties {
        reply_to: Some(Value::string("topic://answers")),
        correlation_id: Some(Value::Ulong(300)),
        creation_time_ms: Some(5),
        message_id: Some(Value::Uuid([0xab; 16])),
        to: Some(Value::string("/topic/a.b")),
        ..Properties::default()
    };
    let application = vec![
        (Value::string("n"), Value::Long(-5)),
        (Value::string("binary"), Value::Binary(Bytes::from_static(b"x"))),
        (Value::string("yes"), Value::Bool(true)),
    ];
    for (body, payload, form, content_type) in [
        (Body::Value(Value::string("t")), &b"t"[..], Form::Text, None),
        (Body::Value(Value::Binary(Bytes::from_static(b"b"))), b"b", Form::Bytes, None),
        (Body::Value(Value::Uint(7)), b"\x07", Form::Bytes, Some("application/cbor")),
        (Body::Sequence(vec![Value::Null]), b"\x81\xf6", Form::Bytes, Some("application/cbor")),
        (Body::Empty, b"", Form::Bytes, None),
    ] {
        let wire = encode_bare(&properties, &application, &body);
        let (publication, _) = translate::publication(&wire, None).unwrap();
        assert_eq!((&*publication.topic, &publication.payload[..]), ("a/b", payload));
        let details = publication.details.unwrap();
        assert_eq!((publication.form, details.content_type.as_deref()), (form, content_type));
        assert_eq!(details.reply_to.as_deref(), Some("answers"));
        assert_eq!(details.correlation.as_deref(), Some(&b"\x80\0\0\0\0\0\0\x01\x2c"[..]));
        let pairs = [("n", "-5"), ("yes", "true")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!((details.properties, details.created_ms), (pairs.to_vec(), Some(5)));
        let id = "urn:uuid:abababab-abab-abab-abab-abababababab";
        assert_eq!(details.message_id.as_deref(), Some(id));
    }
}

#[test]
fn what_comes_from_others_is_data_with_properties() {
    let mut publication = Publication::new(Protocol::Mqtt, "a/b", "payload");
    publication.form = Form::Text;
    let details = publication.details_mut();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    details.properties = vec![pair("k", "1"), pair("other", "x"), pair("k", "2")];
    details.correlation = Some(Bytes::from_static(b"\xa1\x01c"));
    details.reply_to = Some("r".to_owned());
    let message = came(&delivery(publication.clone()));
    assert_eq!(message.body, Body::Data(vec![Bytes::from_static(b"payload")]));
    let binary = Value::Binary(Bytes::from_static(b"\xa1\x01c"));
    assert_eq!(message.properties.correlation_id, Some(binary));
    assert_eq!(message.properties.to, Some(Value::string("a/b")));
    assert_eq!(message.application_properties.len(), 2);
    let all = ["k", "1", "other", "x", "k", "2"].map(Value::string).to_vec();
    assert_eq!(message.annotation("x-opt-lw-properties"), Some(&Value::List(all)));
    // They come back in order.
    let wire = translate::message(NOW, &delivery(publication.clone()), 0, false);
    let (back, _) = translate::publication(&wire, None).unwrap();
    let properties = back.details.unwrap().properties;
    assert_eq!(properties, publication.details.as_ref().unwrap().properties);
    // An answer has the correlation of its request.
    publication.topic = "$reply/c/1-1".into();
    let message = came(&delivery(publication));
    assert_eq!(message.properties.correlation_id, Some(Value::string("c")));
}

#[test]
fn a_payload_in_another_form_says_its_own_media_type_across_versions() {
    let mut headers = TableBuf::default();
    headers.put("n", &ClassicValue::I32(5)).unwrap();
    headers.put(MEDIA_TYPE, &ClassicValue::Text(b"application/old")).unwrap();
    let classic = ClassicProperties {
        content_type: Some("application/cbor"),
        headers: Some(headers.as_table()),
        ..ClassicProperties::default()
    };
    let mut original = Vec::new();
    classic.encode(&mut original).unwrap();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    for (kept, expected) in [
        (Some("application/geo+json"), vec![Value::string("application/geo+json")]),
        (None, Vec::new()),
    ] {
        let mut publication = Publication::new(Protocol::Amqp091, "a/b", "{}");
        publication.coded = Some(PayloadForm::Json);
        let details = publication.details_mut();
        details.original = Some(original.clone().into());
        details.properties = vec![pair("n", "5")];
        details.properties.extend(kept.map(|kept| pair(MEDIA_TYPE, kept)));
        let application = came(&delivery(publication)).application_properties;
        let of = |wanted: &str| -> Vec<Value> {
            let is = |(name, _): &&(Value, Value)| name.as_text() == Some(wanted);
            application.iter().filter(is).map(|(_, value)| value.clone()).collect()
        };
        assert_eq!((of("n"), of(MEDIA_TYPE)), (vec![Value::Int(5)], expected));
    }
}

#[test]
fn a_node_is_made_for_answers() {
    let mut rig = Rig::new();
    rig.connect(1, "my/container");
    let dynamic = Source { dynamic: true, ..Source::default() };
    let sent = rig.subscribe(1, 0, dynamic);
    let Some(Performative::Attach(attach)) = sent.first() else { panic!("{sent:?}") };
    let address = attach.source.as_ref().and_then(|it| it.address.as_ref()).unwrap();
    let address = address.as_text().unwrap();
    assert_eq!(address, "$reply/my_container/1-1");
    rig.connect(2, "other");
    assert_eq!(refused(&rig.publisher(2, 0, target(address))), None);
    rig.publish(2, 0, 0, true, &data("answer"));
    assert_eq!(rig.messages(1).len(), 1);
    // Nobody gets the answers of all.
    assert!(refused(&rig.subscribe(2, 1, source("$reply/#"))).is_some());
}

#[test]
fn a_selector_chooses() {
    let mut rig = Rig::new();
    rig.connect(1, "c");
    let selector = Value::described(
        Value::Ulong(0x0000_468c_0000_0004),
        Value::string("n > 1 AND JMSPriority = 4"),
    );
    let filter = vec![(Value::symbol("jms-selector"), selector)];
    let sent = rig.subscribe(1, 0, Source { filter: filter.clone(), ..source("a") });
    let Some(Performative::Attach(attach)) = sent.first() else { panic!("{sent:?}") };
    assert_eq!(attach.source.as_ref().unwrap().filter, filter);
    rig.publisher(1, 1, target("a"));
    for n in 0..4 {
        let application = vec![(Value::string("n"), Value::Int(n))];
        let message = encode_bare(&Properties::default(), &application, &Body::Empty);
        rig.publish(1, 1, n.cast_unsigned(), false, &message);
    }
    assert_eq!(rig.messages(1).len(), 2);
}
