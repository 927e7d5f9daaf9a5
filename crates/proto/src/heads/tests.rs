use std::collections::VecDeque;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::date;

fn sharing(owner: Option<u8>) -> Sharing<u8> {
    let is_secret = |name: &[u8]| name == b"cookie";
    Sharing { owner, whole: false, fleeting: false, is_secret }
}

fn fields(all: &[(&str, &str)]) -> bhttp::Fields {
    let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    all.iter().map(|(name, value)| (bytes(name), bytes(value))).collect()
}

fn request(path: &str, all: &[(&str, &str)]) -> Bytes {
    let mut head = Vec::new();
    let request = bhttp::Request {
        method: "GET".into(),
        scheme: "http".into(),
        authority: "service.example:8080".into(),
        path: Bytes::copy_from_slice(path.as_bytes()),
        fields: fields(all),
    };
    request.encode(&mut head);
    head.into()
}

fn answer(status: u16, all: &[(&str, &str)]) -> Bytes {
    let mut head = Vec::new();
    bhttp::Response { status, fields: fields(all) }.encode(&mut head);
    head.into()
}

const CURL: [(&str, &str); 2] = [("user-agent", "curl/8.14.1"), ("accept", "*/*")];

fn nginx(date: &str) -> Bytes {
    answer(
        200,
        &[
            ("server", "nginx/1.26.3"),
            ("date", date),
            ("content-type", "text/html"),
            ("content-length", "615"),
            ("last-modified", "Tue, 11 Feb 2025 04:15:55 GMT"),
            ("connection", "keep-alive"),
            ("etag", "\"67aace2b-267\""),
            ("accept-ranges", "bytes"),
        ],
    )
}

/// An exchange whose request and answer arrive: bytes of their heads.
fn exchange(
    (edge, gateway): (&mut Edge<u8>, &mut Gateway),
    number: u64,
    (asked, answered): (&Bytes, &Bytes),
    sharing: &Sharing<u8>,
) -> (usize, usize) {
    let there = edge.pack(number, asked, sharing);
    assert_eq!(gateway.unpack(number, &there).unwrap(), asked);
    let back = gateway.pack(number, answered, sharing);
    assert_eq!(edge.unpack(number, &back).unwrap(), answered);
    (there.len(), back.len())
}

#[test]
fn from_the_second_on_a_head_is_what_is_new() {
    let (mut edge, mut gateway) = (Edge::default(), Gateway::default());
    let sides = (&mut edge, &mut gateway);
    let (one, another) = ("Fri, 27 Nov 2026 11:20:00 GMT", "Fri, 27 Nov 2026 11:21:03 GMT");
    let shared = sharing(Some(1));
    let first = (request("/a", &CURL), nginx(one));
    let (there, back) = exchange((sides.0, sides.1), 1, (&first.0, &first.1), &shared);
    assert!(there < first.0.len() / 3 * 2 && back < first.1.len() / 4 * 3, "{there} {back}");
    let second = (request("/b.xml?day=5", &CURL), nginx(another));
    let (there, back) = exchange((sides.0, sides.1), 2, (&second.0, &second.1), &shared);
    assert!(there + back <= 24 + "b.xml?day=5".len(), "{there} {back}");
    // Nothing of one owner shows in the length of what is another's.
    let fresh = exchange(
        (&mut Edge::default(), &mut Gateway::default()),
        1,
        (&second.0, &second.1),
        &sharing(Some(2)),
    );
    let other = exchange((sides.0, sides.1), 3, (&second.0, &second.1), &sharing(Some(2)));
    assert!(other.0.abs_diff(fresh.0) <= 1 && other.1.abs_diff(fresh.1) <= 1, "{other:?}");
    let nobodys = exchange((sides.0, sides.1), 4, (&second.0, &second.1), &sharing(None));
    assert!(nobodys.0 >= fresh.0 - 2 && nobodys.1 >= fresh.1 - 2);
    sides.0.forget(9);
    sides.1.forget(9);
}

/// The gateway may not have been able to read it, and the request have gone again unpacked.
#[test]
fn the_head_of_an_exchange_that_ended_without_answer_is_no_base() {
    let (mut edge, mut gateway) = (Edge::default(), Gateway::default());
    let (shared, head) = (sharing(Some(1)), request("/a/long/path/of/a/service", &CURL));
    edge.pack(1, &head, &shared);
    edge.forget(1);
    // It is answered after all, as another carrier's business or unpacked.
    let plain = answer(200, &[]);
    assert_eq!(edge.unpack(1, &plain).unwrap(), plain);
    let there = edge.pack(2, &head, &shared);
    assert_eq!(gateway.unpack(2, &there).unwrap(), head);
}

#[test]
fn secrets_are_shared_whole_or_not() {
    let cookie = |value: &'static str| request("/", &[("cookie", value)]);
    let len = |value: &'static str| {
        let (mut edge, mut gateway) = (Edge::default(), Gateway::default());
        let head = answer(200, &[]);
        let shared = sharing(Some(1));
        let known = cookie("session=5f0cc1a9e4d27b68");
        exchange((&mut edge, &mut gateway), 1, (&known, &head), &shared);
        exchange((&mut edge, &mut gateway), 2, (&cookie(value), &head), &shared).0
    };
    assert_eq!(len("session=5f0cc1a9e4d27b69"), len("zzzzzzz=zzzzzzzzzzzzzzzz"));
    assert!(len("session=5f0cc1a9e4d27b68") < 16);
}

#[test]
fn dates_are_read_as_they_are_written() {
    for (text, seconds) in [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199),
        ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
    ] {
        assert_eq!(date::read(text.as_bytes()), Some(seconds), "{text}");
        assert_eq!(date::written(seconds).as_deref(), Some(text));
    }
    for wrong in
        ["Mon, 06 Nov 1994 08:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT", "", "Sun, 30 Feb"]
    {
        assert_eq!(date::read(wrong.as_bytes()), None, "{wrong}");
    }
    assert_eq!(date::written(i64::MAX), None);
    assert_eq!(date::written(i64::MIN), None);
}

#[test]
fn what_no_side_sends_is_refused() {
    let (mut edge, mut gateway) = (Edge::<u8>::default(), Gateway::default());
    let refused = |error: Result<Bytes, Error>| assert!(error.is_err(), "{error:?}");
    // A base that nobody has, an unknown flag, an answer for a request, a fixed line of no number.
    for head in [&[0x31, 5, 4][..], &[0x38], &[0x3f], &[0x30, 0x40, 0xff], &[0x31]] {
        refused(gateway.unpack(1, &Bytes::copy_from_slice(head)));
    }
    for head in [&[0x39, 4][..], &[0x3c], &[0x30], &[0x38, 0], &[0x38, 1, 1, 1], &[0x3a]] {
        refused(edge.unpack(1, &Bytes::copy_from_slice(head)));
    }
    // A head that only repeats fixed lines, and so is longer than any.
    let many = [&[0x30][..], &[2; 70_000]].concat();
    refused(gateway.unpack(1, &many.into()));
}

#[derive(Clone, Debug)]
enum Step {
    Ask {
        owner: Option<u8>,
        path: u8,
        fields: Vec<(u8, u8)>,
        fleeting: bool,
    },
    /// One of the requests on the way arrives, and is answered or not.
    Arrives {
        at: usize,
        answers: bool,
    },
    /// One of the answers on the way arrives.
    Comes {
        at: usize,
    },
    /// The edge gives one up.
    GivenUp {
        at: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let fields = proptest::collection::vec((0_u8..6, 0_u8..4), 0..5);
    prop_oneof![
        (proptest::option::of(0_u8..3), any::<u8>(), fields, any::<bool>()).prop_map(
            |(owner, path, fields, fleeting)| Step::Ask { owner, path, fields, fleeting }
        ),
        (any::<usize>(), any::<bool>()).prop_map(|(at, answers)| Step::Arrives { at, answers }),
        any::<usize>().prop_map(|at| Step::Comes { at }),
        any::<usize>().prop_map(|at| Step::GivenUp { at }),
    ]
}

const NAMES: [&str; 6] = ["accept", "cookie", "date", "x-a", "x-b", "content-type"];
const VALUES: [&str; 4] =
    ["Sun, 06 Nov 1994 08:49:37 GMT", "Fri, 27 Nov 2026 11:21:03 GMT", "*/*", "something longer"];

proptest! {
    #[test]
    fn whatever_is_lost_or_overtakes_heads_arrive_as_they_were(
        steps in proptest::collection::vec(step(), 0..400),
    ) {
        let (mut edge, mut gateway) = (Edge::default(), Gateway::default());
        let (mut there, mut back) = (VecDeque::new(), VecDeque::new());
        let mut number = 0;
        for step in steps {
            match step {
                Step::Ask { owner, path, fields, fleeting } => {
                    number += 1;
                    let all: Vec<_> = fields
                        .iter()
                        .map(|&(name, value)| (usize::from(name), usize::from(value)))
                        .map(|(name, value)| (NAMES[name], VALUES[value]))
                        .collect();
                    let head = request(&format!("/service/{path}"), &all);
                    let shared = Sharing { fleeting, ..sharing(owner) };
                    there.push_back((number, edge.pack(number, &head, &shared), head, shared));
                }
                Step::Arrives { at, answers } if !there.is_empty() => {
                    let (number, packed, head, shared) = there.remove(at % there.len()).unwrap();
                    prop_assert_eq!(gateway.unpack(number, &packed).unwrap(), &head);
                    if answers {
                        let head = answer(200, &[("date", VALUES[at % 2]), ("server", VALUES[3])]);
                        back.push_back((number, gateway.pack(number, &head, &shared), head));
                    } else {
                        gateway.forget(number);
                    }
                }
                Step::Comes { at } if !back.is_empty() => {
                    let (number, packed, head) = back.remove(at % back.len()).unwrap();
                    prop_assert_eq!(edge.unpack(number, &packed).unwrap(), &head);
                }
                Step::GivenUp { at } if !back.is_empty() => {
                    let (number, ..) = back.remove(at % back.len()).unwrap();
                    edge.forget(number);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn any_bytes_are_a_head_or_an_error(first in 0x30..0x40_u8, junk: Vec<u8>) {
        let (mut edge, mut gateway) = (Edge::default(), Gateway::default());
        let shared = sharing(Some(1));
        let known = (request("/", &CURL), nginx(VALUES[0]));
        exchange((&mut edge, &mut gateway), 1, (&known.0, &known.1), &shared);
        edge.pack(2, &known.0, &shared);
        let head = Bytes::from([&[first][..], &junk].concat());
        let read = [gateway.unpack(2, &head), edge.unpack(2, &head)];
        let most = 2 * bhttp::MAX_HEAD_BYTES;
        prop_assert!(read.into_iter().flatten().all(|head| head.len() <= most));
    }
}
