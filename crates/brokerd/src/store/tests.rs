//! What is written is what is read.

use std::time::Duration;

use broker::{Details, Grade, Publication, Subscription};
use bytes::Bytes;

use super::*;

fn client(name: &str) -> ClientKey {
    ClientKey { protocol: Protocol::Mqtt, name: name.into() }
}

fn open() -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    prepare(&mut connection).unwrap();
    connection
}

fn publication(id: u64) -> Change {
    let mut publication = Publication::new(Protocol::Mqtt, "a/b", vec![0, 1, 255]);
    publication.id = id;
    publication.grade = Grade::ExactlyOnce;
    publication.retain = true;
    publication.deadline = Some(Duration::from_secs(90));
    publication.details = Some(Box::new(Details {
        content_type: Some("text/plain".into()),
        properties: vec![("k".into(), "1".into()), ("k".into(), "2".into())],
        correlation: Some(Bytes::from_static(&[9, 0])),
        original: Some(Bytes::from_static(&[3])),
        ..Details::default()
    }));
    Change::Message(std::sync::Arc::new(publication))
}

fn queued(number: u64, message: u64) -> Change {
    Change::Queued {
        client: client("a"),
        number,
        message,
        grade: Grade::ExactlyOnce,
        retain: false,
        identifiers: Some([7, 9].into()),
        shared: Some("$share/g/a/+".into()),
    }
}

fn kept(key: &str, value: Option<&'static [u8]>) -> Change {
    let (protocol, value) = (Protocol::Amqp091, value.map(Bytes::from_static));
    Change::Kept { protocol, key: key.into(), value }
}

#[test]
fn all_of_it_comes_back() {
    let mut db = open();
    let changes = vec![
        publication(5),
        Change::Session {
            client: client("a"),
            user: Some("ann".into()),
            expiry: Duration::from_secs(60),
        },
        Change::Subscribed {
            client: client("a"),
            subscription: Subscription {
                no_local: true,
                as_published: true,
                identifier: 7,
                ..Subscription::new("$share/g/a/+", Grade::ExactlyOnce)
            },
        },
        queued(1, 5),
        Change::Flying { client: client("a"), number: 1, handle: 77, received: true },
        Change::Inbound { client: client("a"), handle: 3, open: true },
        Change::Retained { topic: "a/b".into(), message: 5 },
        kept("q/x", Some(b"\x00\x01")),
    ];
    write::write(&mut db, &changes).unwrap();
    assert_eq!(read::read(&db).unwrap(), changes);
}

#[test]
fn a_message_goes_with_the_last_who_waits_for_it() {
    let count = |db: &Connection| -> u64 {
        db.query_row("SELECT count(*) FROM message", [], |row| row.get(0)).unwrap()
    };
    let mut db = open();
    let retained = Change::Retained { topic: "a/b".into(), message: 5 };
    write::write(&mut db, &[publication(5), queued(1, 5), queued(2, 5), retained]).unwrap();
    write::write(&mut db, &[Change::Done { client: client("a"), number: 1 }]).unwrap();
    assert_eq!(count(&db), 1);
    write::write(&mut db, &[Change::SessionEnded { client: client("a") }]).unwrap();
    assert_eq!(count(&db), 1, "it is retained");
    let newer = Change::Retained { topic: "a/b".into(), message: 6 };
    write::write(&mut db, &[publication(6), newer]).unwrap();
    assert_eq!(count(&db), 1, "a newer one is");
    write::write(&mut db, &[Change::Cleared { topic: "a/b".into() }]).unwrap();
    assert_eq!(count(&db), 0);
    assert!(read::read(&db).unwrap().is_empty());
}

#[test]
fn a_record_of_an_adapter_is_replaced_and_forgotten() {
    let mut db = open();
    let (one, other) = (kept("k", Some(b"1")), kept("k", Some(b"2")));
    write::write(&mut db, &[one, other.clone()]).unwrap();
    assert_eq!(read::read(&db).unwrap(), [other]);
    write::write(&mut db, &[kept("k", None)]).unwrap();
    assert!(read::read(&db).unwrap().is_empty());
}
