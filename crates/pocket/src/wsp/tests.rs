//! The PDUs against those of `proto`, and what a call does where datagrams get lost.

use std::vec::Vec;

use proptest::prelude::*;
use proto::wsp::headers::{Rules, decode_with_content_type};
use proto::wsp::packet::{self, Method, Pdu};

use super::packet::encode;
use super::*;
use crate::tests::{Net, PEER, STRANGER};

const BODY: &[u8] = b"<a/>";

fn request(content: Content) -> Request<'static> {
    Request { uri: "http://a.example/soap", action: "urn:a#nop", content, body: BODY }
}

#[test]
fn a_request_is_one_of_proto() {
    for (content, media) in [
        (Content::Xml, "text/xml; charset=utf-8"),
        (Content::Wbxml, "application/vnd.wap.wbxml"),
        (Content::Cbor, "application/cbor"),
        (Content::Exi, "application/exi"),
    ] {
        for round in [0, 1, 63] {
            let mut room = [0; 256];
            let len = encode((7, round), &request(content), &mut room).unwrap();
            let (tid, pdu) = packet::decode(&room[..len]).unwrap();
            let Pdu::Request { method, uri, headers, body } = pdu else { panic!("{pdu:?}") };
            assert_eq!(
                (tid, method, uri, body),
                (7, Method::Post, &b"http://a.example/soap"[..], BODY)
            );
            let fields = decode_with_content_type(Rules::DEFAULT, headers).unwrap().fields;
            let mut fields: Vec<_> =
                fields.iter().map(|f| (&f.name[..], str::from_utf8(&f.value).unwrap())).collect();
            assert_eq!(fields.remove(0).1, media);
            assert_eq!(fields.remove(0), ("Accept", "*/*"));
            if round != 0 {
                let (name, value) = fields.remove(0);
                assert_eq!(name, "Max-Forwards");
                assert_eq!(value.parse::<u32>(), Ok(127 - round));
            }
            assert_eq!(fields, [("SOAPAction", "\"urn:a#nop\"")]);
            assert_eq!(
                encode((7, round), &request(content), &mut room[..len - 1]),
                Err(Error::NoRoom)
            );
        }
    }
}

/// A reply of `proto`'s.
fn reply(tid: u8, status: u8, headers: &[u8], body: &[u8]) -> Vec<u8> {
    let mut room = [0; 512];
    let len = packet::encode(tid, &Pdu::Reply { status, headers, body }, &mut room).unwrap();
    room[..len].to_vec()
}

proptest! {
    #[test]
    fn a_reply_is_read_as_proto_reads_it(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let ours = Reply::decode(&bytes);
        match packet::decode(&bytes) {
            Ok((tid, Pdu::Reply { status, body, .. })) => {
                let http = proto::wsp::status::to_http(status);
                if let (Ok(ours), Some(http)) = (ours, http) {
                    prop_assert_eq!((ours.tid, ours.status, ours.body), (tid, http, body));
                }
            }
            _ => prop_assert!(ours.is_err()),
        }
    }
}

#[test]
fn a_media_type_is_read_in_each_of_its_forms() {
    for (headers, content) in [
        (&b"\xa8"[..], Content::Xml),
        (b"\xa9", Content::Wbxml),
        (b"\x03\xa8\x81\xea", Content::Xml),
        (b"application/cbor\0", Content::Cbor),
        (b"\x1f\x12Application/CBOR\0\x81", Content::Cbor),
        (b"\x02\x01\x27", Content::Other),
        (b"", Content::Other),
    ] {
        let datagram = reply(1, 0x20, headers, BODY);
        let read = Reply::decode(&datagram).unwrap();
        assert_eq!((read.content, read.status, read.body), (content, 200, BODY), "{headers:x?}");
    }
    assert_eq!(Reply::decode(&reply(1, 0x20, b"\x1f", BODY)), Err(Error::Truncated));
    assert_eq!(Reply::decode(&reply(1, 0x00, b"\xa8", BODY)), Err(Error::Malformed));
    assert_eq!(Reply::decode(b"\x01\x05\x20\x00"), Err(Error::Malformed));
}

fn call(net: &mut Net, repeats: bool) -> Result<(u16, Vec<u8>, u16), Error> {
    let mut client = Client::new(PEER, 1);
    let settings = Settings { repeats, ..Settings::DEFAULT };
    let mut room = [0; 256];
    let now = net.now;
    let answer = client.call(net, now, &request(Content::Xml), &settings, &mut room)?;
    Ok((answer.status, answer.body.to_vec(), answer.sent))
}

fn tid_of(datagram: &[u8]) -> u8 {
    datagram[0]
}

#[test]
fn a_lost_request_leaves_again_only_where_it_may() {
    let answered_third = |sent: &[Vec<u8>]| match sent.len() {
        3.. => std::vec![(PEER, reply(tid_of(&sent[0]), 0x20, b"\xa8", b"<b/>"))],
        _ => Vec::new(),
    };
    let mut net = Net::new(answered_third);
    assert_eq!(call(&mut net, true), Ok((200, b"<b/>".to_vec(), 3)));
    assert!(net.sent.windows(2).all(|pair| pair[0] == pair[1]), "copies are equal");
    // 3 to 3.75 s, then twice that.
    assert!((9.0..=11.25).contains(&net.now.as_secs_f64()), "{:?}", net.now);
    let mut net = Net::new(answered_third);
    assert_eq!(call(&mut net, false), Err(Error::Unanswered));
    assert_eq!((net.sent.len(), net.now), (1, Settings::DEFAULT.patience.limit));
}

#[test]
fn what_is_no_answer_is_left_out_and_named_in_the_end() {
    for (from, bytes, error) in [
        (STRANGER, reply(0, 0x20, b"\xa8", b"x"), Error::OtherAddress),
        (PEER, reply(0, 0x20, b"\xa8", b"x"), Error::OtherTransaction),
        (PEER, b"\x00\x04\x20\x7f".to_vec(), Error::BadAnswer),
        (PEER, b"\x00".to_vec(), Error::BadAnswer),
    ] {
        let of_other = error == Error::OtherTransaction;
        let answer = bytes.clone();
        let mut net = Net::new(move |sent: &[Vec<u8>]| {
            let mut bytes = answer.clone();
            bytes[0] = tid_of(&sent[0]).wrapping_add(u8::from(of_other));
            std::vec![(from, bytes)]
        });
        assert_eq!(call(&mut net, true), Err(error));
        assert_eq!(net.sent.len(), 5);
    }
    // What is left out does not hold up the answer behind it.
    let mut net = Net::new(|sent: &[Vec<u8>]| {
        let good = reply(tid_of(&sent[0]), 0x44, b"\xa8", b"");
        std::vec![(STRANGER, good.clone()), (PEER, good[..2].to_vec()), (PEER, good)]
    });
    assert_eq!(call(&mut net, false), Ok((404, Vec::new(), 1)));
}

#[test]
fn an_answer_too_long_for_the_room_ends_the_call() {
    let mut net = Net::new(|sent: &[Vec<u8>]| {
        std::vec![(PEER, reply(tid_of(&sent[0]), 0x20, b"\xa8", &[b'x'; 252]))]
    });
    assert_eq!(call(&mut net, true), Err(Error::NoRoom));
    let mut net = Net::new(|sent: &[Vec<u8>]| {
        std::vec![(PEER, reply(tid_of(&sent[0]), 0x20, b"\xa8", &[b'x'; 251]))]
    });
    assert_eq!(call(&mut net, true).map(|answer| answer.1.len()), Ok(251));
    net.fails = true;
    assert_eq!(call(&mut net, true), Err(Error::Socket));
}

#[test]
fn equal_calls_have_other_ids_and_other_bytes_in_the_next_round() {
    let mut net = Net::new(|sent: &[Vec<u8>]| {
        std::vec![(PEER, reply(tid_of(sent.last().unwrap()), 0x20, b"\xa8", b""))]
    });
    let mut client = Client::new(PEER, 3);
    let mut room = [0; 256];
    for _ in 0..600 {
        let now = net.now;
        client.call(&mut net, now, &request(Content::Xml), &Settings::DEFAULT, &mut room).unwrap();
    }
    let mut sent = net.sent.clone();
    sent.sort();
    sent.dedup();
    assert_eq!(sent.len(), 600);
}
