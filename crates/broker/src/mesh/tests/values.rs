//! Frames and records: what is written is what is read, and anything else is refused.

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;

use crate::ids::Protocol;
use crate::mesh::keeping::{self, Record};
use crate::mesh::wire::{Dot, Frame, MAX_WRITERS, Writer};
use crate::publication::{Details, Form, Grade, Publication};

const NOW: Duration = Duration::from_secs(1_700_000_000);

fn dot(member: &str, seq: u64) -> Dot {
    Dot { writer: Writer { member: member.into(), life: 7 }, seq }
}

fn publication() -> Publication {
    let mut publication = Publication::new(Protocol::Mesh, "a/é", vec![0, 255]);
    publication.grade = Grade::ExactlyOnce;
    publication.retain = true;
    publication.form = Form::Text;
    publication.deadline = Some(NOW + Duration::from_millis(1500));
    publication.details = Some(Box::new(Details {
        content_type: Some("text/plain".into()),
        reply_to: Some("r".into()),
        correlation: Some(Bytes::from_static(&[1, 2])),
        properties: vec![("k".into(), "1".into()), ("k".into(), "2".into())],
        priority: Some(9),
        message_id: Some("m".into()),
        created_ms: Some(5),
        via: vec!["node".into()],
        original: None,
    }));
    publication
}

fn frames() -> Vec<Frame> {
    let plain = Publication::new(Protocol::Mesh, "b", "x");
    vec![
        Frame::Hello { from: "a".into(), to: "b".into(), nonce: [3; 16] },
        Frame::Refused { why: "no".into() },
        Frame::Welcome { life: 1, your_life: 2, received: 3, interest: 4, max_frame: 1 << 20 },
        Frame::Interest {
            version: 1,
            whole: true,
            more: false,
            add: vec!["a/+".into(), "#".into()],
            remove: vec!["b".into()],
        },
        Frame::Entry { seq: 1, stamp: 2, publication: publication() },
        Frame::State { from: 0, dot: dot("a", 1), stamp: 1, topic: "b".into(), value: Some(plain) },
        Frame::State { from: 0, dot: dot("a", 1), stamp: 1, topic: "b".into(), value: None },
        Frame::UpTo { from: 0, dot: dot("a", 1) },
        Frame::Ack { received: 9 },
        Frame::Status { held: vec![dot("a", 1)], wants: vec![dot("b", 2)], digest: 3 },
    ]
}

#[test]
fn frames_are_read_as_they_are_written_and_no_part_or_more_of_them_is() {
    for frame in frames() {
        let bytes = Bytes::from(frame.encode(NOW));
        assert_eq!(Frame::decode(NOW, &bytes), Ok(frame.clone()));
        for len in 0..bytes.len() {
            let part = bytes.slice(..len);
            let read = Frame::decode(NOW, &part);
            assert!(read.is_err(), "{frame:?} of {len} bytes: {read:?}");
        }
        let more = [&bytes[..], &[0]].concat();
        assert!(Frame::decode(NOW, &more.into()).is_err());
    }
}

#[test]
fn what_a_frame_may_not_say_is_refused() {
    let held = (0..=MAX_WRITERS).map(|seq| dot("a", seq as u64)).collect();
    let of_topic = |topic: &str| Frame::Entry {
        seq: 1,
        stamp: 0,
        publication: Publication::new(Protocol::Mesh, topic, "x"),
    };
    let filters = |filter: &str| Frame::Interest {
        version: 1,
        whole: true,
        more: false,
        add: vec![filter.into()],
        remove: Vec::new(),
    };
    for (frame, said) in [
        (Frame::Status { held, wants: Vec::new(), digest: 0 }, "1,024 writers"),
        (of_topic("a/+"), "wildcard"),
        (of_topic("$SYS/x"), "begins with $"),
        (filters("a/#/b"), "last level"),
        (Frame::UpTo { from: 0, dot: dot("", 1) }, "1 to 64 bytes"),
    ] {
        let error = Frame::decode(NOW, &frame.encode(NOW).into()).unwrap_err();
        assert!(error.contains(said), "{frame:?}: {error}");
    }
    let mut other = frames()[0].encode(NOW);
    other[1] = 1;
    assert!(Frame::decode(NOW, &other.into()).unwrap_err().contains("version"));
}

#[test]
fn records_are_read_as_they_are_written() {
    let (key, value) = keeping::waiting(255, 8, &["a".into(), "b".into()], &publication());
    let Some(Record::Waiting { seq, stamp, members, publication: read }) =
        keeping::read(&key, &value)
    else {
        panic!("{key}");
    };
    assert_eq!((seq, stamp, members.len()), (255, 8, 2));
    assert_eq!(read, publication());
    let (key, value) = keeping::filter("a/b", "c/#");
    let Some(Record::Filter { name, filter }) = keeping::read(&key, &value) else {
        panic!("{key}");
    };
    assert_eq!((&*name, &*filter), ("a/b", "c/#"));
    assert!(keeping::read("x/y", &value).is_none());
}

proptest! {
    #[test]
    fn any_bytes_are_a_frame_or_refused(bytes: Vec<u8>, kind in 1_u8..10) {
        let bytes = [&[kind], &bytes[..]].concat();
        if let Ok(frame) = Frame::decode(NOW, &bytes.clone().into()) {
            // What was read is what would be written, but for what is cut.
            let again = Frame::decode(NOW, &frame.encode(NOW).into());
            prop_assert_eq!(again, Ok(frame));
        }
        for key in ["m", "p/a", "v/a/1", "r/a", "e/1", "i/a", "f/a/b"] {
            let _ = keeping::read(key, &bytes.clone().into());
        }
    }
}
