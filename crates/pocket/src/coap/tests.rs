//! Messages against those of `proto`, and calls to its endpoint over a net that loses.

use core::time::Duration;
use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use proto::coap::machine::{Input, Output, Settings};
use proto::coap::transfer::Transfers;
use proto::coap::{Code, Content as Message_, Datagram, option as numbers};

use super::*;
use crate::Received;
use crate::tests::{Net, PEER, STRANGER};

const PATIENCE: Patience = DEFAULT_PATIENCE;

proptest! {
    #[test]
    fn a_message_is_read_as_proto_reads_it(
        mut bytes in prop::collection::vec(any::<u8>(), 0..64),
        is_likely in any::<bool>(),
    ) {
        if is_likely && !bytes.is_empty() {
            bytes[0] = 0x40 | bytes[0] & 0x37;
        }
        match (Message::decode(&bytes), Datagram::decode(&bytes)) {
            (Ok(ours), Ok(theirs)) => {
                prop_assert_eq!(ours.kind as u8, theirs.kind as u8);
                prop_assert_eq!(ours.mid, theirs.mid);
                prop_assert_eq!(ours.code, theirs.message.code.0);
                prop_assert_eq!(ours.token, theirs.message.token.as_slice());
                prop_assert_eq!(ours.payload, theirs.message.payload);
                prop_assert!(ours.options.eq(theirs.message.options));
            }
            (Err(_), Err(_)) => {}
            (ours, theirs) => prop_assert!(false, "{ours:?} and {theirs:?}"),
        }
    }
}

/// `proto`'s endpoint behind a net with 100 ms there and back, which loses by chance and doubles.
struct Serving {
    server: Transfers<u8>,
    now: Duration,
    coming: VecDeque<(Duration, Vec<u8>)>,
    chance: Chance,
    /// Of 256 datagrams so many are lost, and as many come twice.
    lost: u32,
    /// How long the service takes, and what it answers.
    takes: Duration,
    answer: Vec<u8>,
    open: VecDeque<(Duration, u64)>,
    /// Bodies of the requests that were carried out.
    seen: Vec<Vec<u8>>,
    sent: usize,
    wake_at: Option<Duration>,
}

const WAY: Duration = Duration::from_millis(50);

impl Serving {
    fn new(seed: u32, lost: u32, takes: Duration, answer_len: usize, is_challenging: bool) -> Self {
        let settings = Settings { seed: [seed.into(), 7], is_challenging, rate_bps: None };
        Self {
            server: Transfers::new(&settings),
            now: Duration::ZERO,
            coming: VecDeque::new(),
            chance: Chance::new(seed),
            lost,
            takes,
            answer: (0..answer_len).map(|at| (at % 251).to_le_bytes()[0]).collect(),
            open: VecDeque::new(),
            seen: Vec::new(),
            sent: 0,
            wake_at: None,
        }
    }

    /// How often a datagram arrives.
    fn copies(&mut self) -> usize {
        match self.chance.next() & 0xff {
            lost if lost < self.lost => 0,
            doubled if doubled >= 256 - self.lost => 2,
            _ => 1,
        }
    }

    fn input(&mut self, at: Duration, input: Input<u8>) {
        self.server.handle_input(at, input);
        while let Some(output) = self.server.poll_output() {
            match output {
                Output::Datagram { bytes, .. } => {
                    for _ in 0..self.copies() {
                        self.coming.push_back((at + WAY, bytes.to_vec()));
                    }
                }
                Output::Request { exchange, content, .. } => {
                    self.seen.push(content.payload.to_vec());
                    self.open.push_back((at + self.takes, exchange));
                }
                Output::WakeAt(at) => self.wake_at = Some(at),
                _ => {}
            }
        }
    }

    /// The next thing that happens at the server, up to `until`.
    fn step(&mut self, until: Duration) -> bool {
        let answer_at = self.open.front().map(|(at, _)| *at);
        let at = [answer_at, self.wake_at].into_iter().flatten().min();
        let Some(at) = at.filter(|at| *at <= until) else { return false };
        if answer_at == Some(at) {
            let Some((_, exchange)) = self.open.pop_front() else { return false };
            let mut content = Message_::new(Code::CHANGED).with_payload(self.answer.clone());
            content.push_uint(numbers::CONTENT_FORMAT, 60);
            self.input(at, Input::Respond { exchange, content });
        } else {
            self.wake_at = None;
            self.input(at, Input::Wake);
        }
        true
    }
}

impl Socket for Serving {
    fn send(&mut self, datagram: &[u8]) -> Result<(), Error> {
        self.sent += 1;
        for _ in 0..self.copies() {
            let bytes = datagram.to_vec().into();
            let at = self.now + WAY;
            while self.step(at) {}
            self.input(at, Input::Datagram { peer: 1, bytes, is_group: false });
        }
        Ok(())
    }

    fn receive(&mut self, room: &mut [u8], limit: Duration) -> Result<Received, Error> {
        let end = self.now + limit;
        loop {
            let next = self.coming.iter().map(|(at, _)| *at).min().filter(|at| *at <= end);
            if self.step(next.unwrap_or(end)) {
                continue;
            }
            let Some(at) = next else {
                self.now = end;
                return Ok(Received { now: end, datagram: None });
            };
            self.now = self.now.max(at);
            let place = self.coming.iter().position(|(other, _)| *other == at).unwrap();
            let (_, bytes) = self.coming.remove(place).unwrap();
            let len = bytes.len().min(room.len());
            room[..len].copy_from_slice(&bytes[..len]);
            return Ok(Received { now: self.now, datagram: Some((PEER, bytes.len())) });
        }
    }
}

fn call(net: &mut Serving, body: &[u8], room: &mut [u8]) -> Result<(u16, Content, Vec<u8>), Error> {
    let mut client = Client::new(PEER, 5);
    let request =
        Request { uri: "http://a.example/soap", action: "", content: Content::Cbor, body };
    let now = net.now;
    let answer = client.call(net, now, &request, &PATIENCE, room)?;
    Ok((answer.status, answer.content, answer.body.to_vec()))
}

#[test]
fn short_and_long_bodies_go_there_and_back() {
    let takes = Duration::from_millis(20);
    for (body_len, answer_len) in [(0, 0), (10, 10), (1024, 1024), (1025, 1025), (5000, 9000)] {
        for is_challenging in [false, true] {
            let mut net = Serving::new(1, 0, takes, answer_len, is_challenging);
            let body = vec![7; body_len];
            let mut room = vec![0; answer_len + 1100];
            let (status, content, answer) = call(&mut net, &body, &mut room).unwrap();
            assert_eq!((status, content), (204, Content::Cbor));
            assert_eq!((answer == net.answer, &net.seen), (true, &vec![body]));
        }
    }
}

#[test]
fn a_small_room_gets_small_blocks() {
    for room_len in [140, 200, 300, 600] {
        let mut net = Serving::new(1, 0, Duration::ZERO, 50, false);
        net.answer = vec![3; room_len - 130];
        let mut room = vec![0; room_len];
        let (_, _, answer) = call(&mut net, b"x", &mut room).unwrap();
        assert_eq!((answer.len(), net.seen.len()), (room_len - 130, 1));
    }
    let mut net = Serving::new(1, 0, Duration::ZERO, 50, false);
    assert_eq!(call(&mut net, b"x", &mut [0; 70]), Err(Error::NoRoom));
    let mut net = Serving::new(1, 0, Duration::ZERO, 5000, false);
    assert_eq!(call(&mut net, b"x", &mut vec![0; 5000]), Err(Error::NoRoom));
}

#[test]
fn an_answer_on_its_own_is_acknowledged() {
    let mut net = Serving::new(1, 0, Duration::from_secs(20), 100, false);
    let (status, _, answer) = call(&mut net, b"x", &mut [0; 1300]).unwrap();
    assert_eq!((status, answer.len(), net.seen.len()), (204, 100, 1));
    // The request, of which the acknowledgement stopped the copies, and that of the answer.
    assert_eq!(net.sent, 2);
}

#[test]
fn what_gets_lost_and_doubled_changes_nothing() {
    let mut given_up = 0;
    for seed in 1..200 {
        let takes = Duration::from_millis(if seed % 2 == 0 { 10 } else { 9000 });
        let mut net = Serving::new(seed, 38, takes, 3000, seed % 3 == 0);
        let mut room = [0; 4200];
        match call(&mut net, &[9; 2500], &mut room) {
            Ok((204, Content::Cbor, answer)) => {
                assert_eq!((answer == net.answer, net.seen.len()), (true, 1), "{seed}");
            }
            Err(Error::Unanswered | Error::OtherTransaction) => given_up += 1,
            other => panic!("{seed}: {other:?}"),
        }
    }
    assert!(given_up <= 10, "{given_up}");
}

/// A response to the last that was sent.
fn respond(
    sent: &[Vec<u8>],
    kind: Kind,
    code: u8,
    options: &[(u16, &[u8])],
    payload: &[u8],
) -> Vec<u8> {
    let request = Message::decode(sent.last().unwrap()).unwrap();
    let mut room = [0; 2000];
    let mut writer =
        packet::Writer::new(&mut room, kind, code, request.mid, request.token).unwrap();
    for (number, value) in options {
        writer.option(*number, value).unwrap();
    }
    let len = writer.payload(payload).unwrap();
    room[..len].to_vec()
}

fn ask(net: &mut Net) -> Result<u16, Error> {
    let request = Request { uri: "/a/b", action: "", content: Content::Xml, body: b"x" };
    let mut room = [0; 1500];
    Client::new(PEER, 9).call(net, Duration::ZERO, &request, &PATIENCE, &mut room).map(|a| a.status)
}

#[test]
fn what_is_wrong_has_a_name() {
    const ACK: Kind = Kind::Acknowledgement;
    type Case = (Address, Kind, u8, &'static [(u16, &'static [u8])], usize, Error);
    let cases: [Case; 10] = [
        (STRANGER, ACK, 68, &[], 0, Error::OtherAddress),
        (PEER, Kind::Reset, 0, &[], 0, Error::Reset),
        (PEER, ACK, 68, &[(9, b"x")], 0, Error::Unsupported),
        (PEER, ACK, 68, &[(23, b"\x0f")], 16, Error::Unsupported),
        (PEER, ACK, 68, &[(23, b"\0\0\0\x06")], 16, Error::Unsupported),
        (PEER, ACK, 68, &[(23, b"\x1e")], 16, Error::BadBlock),
        (PEER, ACK, 68, &[(23, b"\x08")], 15, Error::BadBlock),
        (PEER, ACK, 68, &[(4, b"123456789")], 0, Error::Unsupported),
        (PEER, ACK, 95, &[(27, b"\x0e")], 0, Error::BadBlock),
        (PEER, ACK, 129, &[(252, b"echo")], 0, Error::Challenged),
    ];
    for (from, kind, code, options, len, error) in cases {
        let mut net = Net::new(move |sent: &[Vec<u8>]| {
            let mut bytes = respond(sent, kind, code, options, &vec![1; len]);
            if code == 0 {
                // Nothing but the header.
                bytes.truncate(4);
                bytes[0] &= 0xf0;
            }
            vec![(from, bytes)]
        });
        assert_eq!(ask(&mut net), Err(error), "{options:?}");
    }
    // Cut off, of another transaction, and longer than the room.
    let mut net = Net::new(|sent: &[Vec<u8>]| {
        let mut cut = respond(sent, ACK, 69, &[(12, b"\x3c")], b"");
        cut.pop();
        vec![(PEER, cut)]
    });
    assert_eq!(ask(&mut net), Err(Error::BadAnswer));
    assert_eq!((net.sent.len(), net.sent[0] == net.sent[4]), (5, true));
    let mut net = Net::new(|sent: &[Vec<u8>]| {
        let mut other = respond(sent, ACK, 69, &[], b"x");
        other[5] ^= 1;
        vec![(PEER, other)]
    });
    assert_eq!(ask(&mut net), Err(Error::OtherTransaction));
    let mut net =
        Net::new(|sent: &[Vec<u8>]| vec![(PEER, respond(sent, ACK, 69, &[], &[1; 1600]))]);
    assert_eq!(ask(&mut net), Err(Error::NoRoom));
    // A ping is rejected (RFC 7252 §4.3), and an error is a status.
    let mut net = Net::new(|sent: &[Vec<u8>]| match sent.len() {
        1 => vec![
            (PEER, b"\x40\x00\x12\x34".to_vec()),
            (PEER, respond(sent, ACK, 132, &[], b"not found")),
        ],
        _ => Vec::new(),
    });
    assert_eq!(ask(&mut net), Ok(404));
    let path = Message::decode(&net.sent[0]).unwrap().options.filter(|(number, _)| *number == 11);
    assert_eq!(path.map(|(_, value)| value).collect::<Vec<_>>(), [b"a", b"b"]);
    net.send(b"").unwrap();
}

/// An acknowledgement of the last request, behind which the answer comes on its own.
fn empty_ack(sent: &[Vec<u8>]) -> Vec<u8> {
    let request = Message::decode(sent.last().unwrap()).unwrap();
    let [high, low] = request.mid.to_be_bytes();
    vec![0x60, 0, high, low]
}

/// Whether a datagram is an acknowledgement or a reset, not a request.
fn is_control(datagram: &[u8]) -> bool {
    datagram.get(1) == Some(&0)
}

/// A confirmable response with a message id of the server's own.
fn separate(
    sent: &[Vec<u8>],
    mid: u16,
    code: u8,
    options: &[(u16, &[u8])],
    payload: &[u8],
) -> Vec<u8> {
    let mut bytes = respond(sent, Kind::Confirmable, code, options, payload);
    bytes[2..4].copy_from_slice(&mid.to_be_bytes());
    bytes
}

/// A server that answers everything on its own, each answer twice: the copy comes after the client
/// has gone on, as if the acknowledgement of the first had been lost.
fn doubling(is_challenging: bool) -> Net {
    let mut requests = 0_u16;
    let mut last: Option<Vec<u8>> = None;
    Net::new(move |sent: &[Vec<u8>]| {
        if is_control(sent.last().unwrap()) {
            return Vec::new();
        }
        requests += 1;
        let mid = 700 + requests;
        let answer = match requests.checked_sub(1 + u16::from(is_challenging)) {
            None => separate(sent, mid, 129, &[(252, b"echo")], b""),
            Some(0) => separate(sent, mid, 95, &[(27, b"\x0e")], b""),
            Some(1) => separate(sent, mid, 95, &[(27, b"\x1e")], b""),
            Some(2) => separate(sent, mid, 68, &[(12, b"\x3c"), (27, b"\x26")], b"good"),
            Some(_) => panic!("a block left twice"),
        };
        let mut coming = vec![(PEER, empty_ack(sent))];
        // What came before comes again first, then the new one, twice.
        coming.extend(last.replace(answer.clone()).map(|copy| (PEER, copy)));
        coming.extend([(PEER, answer.clone()), (PEER, answer)]);
        coming
    })
}

#[test]
fn a_separate_answer_that_comes_twice_counts_once() {
    for is_challenging in [false, true] {
        let mut net = doubling(is_challenging);
        let body = vec![5; 2500];
        let request = Request { uri: "/a", action: "", content: Content::Cbor, body: &body };
        let mut room = [0; 1500];
        let mut client = Client::new(PEER, 9);
        let answer = client.call(&mut net, Duration::ZERO, &request, &PATIENCE, &mut room);
        assert_eq!(answer.map(|answer| (answer.status, answer.body)), Ok((204, &b"good"[..])));
        let requests: Vec<&Vec<u8>> = net.sent.iter().filter(|one| !is_control(one)).collect();
        assert_eq!(requests.len(), 3 + usize::from(is_challenging));
        // RFC 7252 §4.5: each copy is acknowledged as the first was, and none is rejected.
        let controls: Vec<&Vec<u8>> = net.sent.iter().filter(|one| is_control(one)).collect();
        assert!(controls.iter().all(|one| one[0] == 0x60), "{controls:?}");
        assert!(controls.len() > requests.len(), "{controls:?}");
    }
}

#[test]
fn an_answer_of_continue_without_a_block_is_none() {
    let mut net = Net::new(|sent: &[Vec<u8>]| {
        vec![(PEER, respond(sent, Kind::Acknowledgement, 95, &[], b""))]
    });
    assert_eq!(ask(&mut net), Err(Error::BadBlock));
}

#[test]
fn the_last_copy_is_waited_for_whatever_the_patience() {
    for (first_ms, copies) in [(0, 1), (0, 5), (1, 2)] {
        let mut net = Net::new(|_: &[Vec<u8>]| Vec::new());
        let request = Request { uri: "/a", action: "", content: Content::Xml, body: b"x" };
        let patience = Patience { first: Duration::from_millis(first_ms), copies, ..PATIENCE };
        let mut client = Client::new(PEER, 9);
        let ended =
            client.call(&mut net, Duration::ZERO, &request, &patience, &mut [0; 1500]).unwrap_err();
        assert_eq!((ended, net.sent.len()), (Error::Unanswered, usize::from(copies)));
        assert!(net.now >= PATIENCE.first, "{:?}", net.now);
        // And never beyond the limit.
        let patience = Patience { limit: Duration::from_millis(300), ..patience };
        let mut net = Net::new(|_: &[Vec<u8>]| Vec::new());
        client.call(&mut net, Duration::ZERO, &request, &patience, &mut [0; 1500]).unwrap_err();
        assert_eq!(net.now, Duration::from_millis(300));
    }
}
