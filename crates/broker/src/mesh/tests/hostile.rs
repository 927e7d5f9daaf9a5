//! A member, or who says to be one, does what it may not: it is refused, that is said, and the
//! others go on.

use std::time::Duration;

use bytes::Bytes;

use super::net::{Net, toy_mac};
use crate::ids::{ConnectionId, Protocol};
use crate::mesh::channel::{Channel, Greetings};
use crate::mesh::wire::{Dot, Frame, Writer};
use crate::mesh::{Input, Mesh, Output};
use crate::publication::Publication;

const SOON: Duration = Duration::from_secs(5);

/// Member 1 of two, whose key it has, and who may say anything.
struct Liar {
    net: Net,
    id: ConnectionId,
    channel: Channel,
}

impl Liar {
    /// Known to member 0 of three, of which number 2 is honest.
    fn new() -> Self {
        Self::of("n01", "0-1-0")
    }

    fn of(name: &str, key: &str) -> Self {
        let mut net = Net::new(3, 7);
        net.stop(1, false);
        net.want(2, "#");
        net.run(SOON);
        Self::join(net, (name, key), 5)
    }

    /// It connects in one of its lives.
    fn join(mut net: Net, (name, key): (&str, &str), life: u64) -> Self {
        let (_, far) = net.ends(1, 0);
        let id = ConnectionId(far);
        net.input(0, Input::Connected(id));
        let mut liar = Self { net, id, channel: Channel::default() };
        let nonce = [9; 16];
        let answer =
            liar.say_and_hear(&Frame::Hello { from: name.into(), to: "n00".into(), nonce });
        let Some(Frame::Hello { nonce: theirs, .. }) = answer else { return liar };
        let greetings = Greetings {
            dialler: name,
            listener: "n00",
            dialler_nonce: &nonce,
            listener_nonce: &theirs,
        };
        liar.channel.secure(toy_mac, key.as_bytes(), &greetings, true);
        liar.say(&Frame::Welcome {
            life,
            your_life: 1,
            received: 0,
            interest: 0,
            max_frame: 1 << 20,
        });
        liar.say(&Frame::Status { held: Vec::new(), wants: Vec::new(), digest: 0 });
        liar
    }

    fn bytes(&mut self, frame: &Frame) -> Bytes {
        self.channel.wrap(toy_mac, &frame.encode(self.net.now)).into()
    }

    fn say(&mut self, frame: &Frame) {
        let bytes = self.bytes(frame);
        self.net.input(0, Input::Received(self.id, bytes));
    }

    /// The first frame of the answer, which has no MAC yet.
    fn say_and_hear(&mut self, frame: &Frame) -> Option<Frame> {
        let (now, bytes) = (self.net.now, self.bytes(frame));
        let node = &mut self.net.nodes[0];
        let mesh = node.mesh.as_mut().unwrap();
        mesh.handle_input(now, Input::Received(self.id, bytes));
        let mut found = None;
        while let Some(output) = mesh.poll_output() {
            if let Output::Refused(_, why) = &output {
                node.refused.push(why.clone());
            }
            let Output::Send(_, bytes) = output else { continue };
            let body = Bytes::from(bytes).slice(4..);
            found = found.or_else(|| Frame::decode(now, &body).ok());
        }
        found
    }

    fn is_linked(&self) -> bool {
        self.net.nodes[0].mesh.as_ref().unwrap().members()[0].is_linked
    }

    /// It was refused with these words, and everybody else goes on.
    fn expect_refused(mut self, said: &str) {
        let refused = self.net.nodes[0].refused.clone();
        assert!(refused.iter().any(|why| why.contains(said)), "{said}: {refused:?}");
        assert!(!self.is_linked(), "{said}");
        self.net.publish(0, "after", "x", (2, true));
        self.net.run(SOON);
        assert_eq!(self.net.payloads(2, "after"), ["x"]);
        assert_eq!(self.net.states(0), self.net.states(2));
    }
}

fn own(seq: u64) -> Dot {
    Dot { writer: Writer { member: "n00".into(), life: 1001 }, seq }
}

fn entry(seq: u64) -> Frame {
    let publication = Publication::new(Protocol::Mesh, "a", "x");
    Frame::Entry { seq, stamp: 0, publication }
}

#[test]
fn who_has_the_key_is_let_in() {
    let liar = Liar::new();
    assert!(liar.is_linked(), "{:?}", liar.net.nodes[0].refused);
}

#[test]
fn who_is_no_member_or_has_another_key_is_refused() {
    Liar::of("n09", "0-1-0").expect_refused("no member of this mesh");
    Liar::of("n01", "0-1-1").expect_refused("a wrong key");
    let mut liar = Liar::new();
    let (from, to) = ("n01".into(), "n02".into());
    liar.say(&Frame::Hello { from, to, nonce: [1; 16] });
    liar.expect_refused("a second greeting");
}

#[test]
fn a_revoked_key_is_refused() {
    let mut net = Net::new(3, 7);
    net.run(SOON);
    net.stop(0, false);
    net.nodes[0].revoked.insert(1);
    net.start(0);
    net.want(1, "#");
    net.want(2, "#");
    net.run(Duration::from_secs(60));
    net.publish(0, "a", "x", (2, false));
    net.run(SOON);
    assert_eq!((net.payloads(1, "a").len(), net.payloads(2, "a").len()), (0, 1));
    let said = |at: usize, text: &str| net.nodes[at].refused.iter().any(|why| why.contains(text));
    let mesh = net.nodes[0].mesh.as_ref().unwrap();
    assert!(mesh.members()[0].is_revoked && !mesh.members()[0].is_linked);
    assert!(!said(2, "revoked"));
}

#[test]
fn who_lies_about_what_it_holds_is_refused() {
    for (frame, said) in [
        (Frame::Ack { received: 999 }, "more of this member's log than there is"),
        (
            Frame::Status { held: vec![own(999)], wants: Vec::new(), digest: 0 },
            "more of this member's log than there is",
        ),
        (
            Frame::State { from: 0, dot: own(999), stamp: 1, topic: "s".into(), value: None },
            "is said to have written",
        ),
        (
            Frame::State { from: 0, dot: own(0), stamp: u64::MAX, topic: "s".into(), value: None },
            "after the year 9999",
        ),
        (
            Frame::Welcome { life: 5, your_life: 0, received: 0, interest: 0, max_frame: 1 << 20 },
            "wrong time",
        ),
    ] {
        let mut liar = Liar::new();
        liar.say(&frame);
        liar.expect_refused(said);
    }
    let mut liar = Liar::new();
    liar.net.publish(0, "s", "x", (0, true));
    for seq in [1, 0] {
        let held = vec![own(seq)];
        liar.say(&Frame::Status { held, wants: Vec::new(), digest: 0 });
    }
    liar.expect_refused("than it had");
}

#[test]
fn what_is_repeated_changed_or_unknown_is_refused() {
    let mut liar = Liar::new();
    liar.say(&entry(5));
    liar.say(&entry(5));
    liar.expect_refused("repeats a publication");
    let mut liar = Liar::new();
    let bytes = liar.bytes(&entry(5));
    for _ in 0..2 {
        liar.net.input(0, Input::Received(liar.id, bytes.clone()));
    }
    liar.expect_refused("its MAC is wrong");
    let mut liar = Liar::new();
    let mut bytes = liar.bytes(&entry(5)).to_vec();
    bytes[20] ^= 1;
    liar.net.input(0, Input::Received(liar.id, bytes.into()));
    liar.expect_refused("its MAC is wrong");
    let mut liar = Liar::new();
    liar.net.input(0, Input::Received(liar.id, Bytes::from_static(&[255; 8])));
    liar.expect_refused("longer than max_message_bytes");
}

#[test]
fn a_long_frame_is_not_waited_for_before_a_mac_was_right() {
    let mut net = Net::new(3, 7);
    net.stop(1, false);
    net.run(SOON);
    let (_, far) = net.ends(1, 0);
    net.input(0, Input::Connected(ConnectionId(far)));
    let hello = Frame::Hello { from: "n01".into(), to: "n00".into(), nonce: [9; 16] };
    let bytes = Channel::default().wrap(toy_mac, &hello.encode(net.now));
    net.input(0, Input::Received(ConnectionId(far), bytes.into()));
    let head = Bytes::from_static(&[0, 0, 8, 0]);
    net.input(0, Input::Received(ConnectionId(far), head));
    let said = |why: &String| why.contains("longer than a greeting");
    assert!(net.nodes[0].refused.iter().any(said), "{:?}", net.nodes[0].refused);
}

#[test]
fn what_is_written_of_an_earlier_life_is_not_acknowledged_in_the_next() {
    let mut liar = Liar::new();
    liar.say(&entry(5000));
    let mut liar = Liar::join(liar.net, ("n01", "0-1-0"), 6);
    assert!(liar.is_linked());
    liar.net.commit(0);
    let peer = &liar.net.nodes[0].mesh.as_ref().unwrap().peers[0];
    assert_eq!((peer.life, peer.received, peer.claimed), (6, 0, 0));
}

#[test]
fn another_longest_frame_is_refused_with_both_numbers() {
    let mut net = Net::new(3, 7);
    net.stop(1, false);
    net.run(SOON);
    net.max_frame_bytes = 1 << 19;
    net.start(1);
    net.run(SOON);
    let said = |why: &String| why.contains("524288 bytes and here of 1048576");
    assert!(net.nodes[0].refused.iter().any(said), "{:?}", net.nodes[0].refused);
}

#[test]
fn a_wrong_digest_costs_what_is_held_once_a_minute() {
    let mut liar = Liar::new();
    liar.net.publish(0, "s", &"x".repeat(500), (0, true));
    liar.net.run(SOON);
    let seq = |net: &Net| net.states(0).len() as u64;
    let held = vec![own(seq(&liar.net))];
    for _ in 0..20 {
        let held = held.clone();
        liar.say(&Frame::Status { held, wants: Vec::new(), digest: 77 });
    }
    let mesh: &Mesh = liar.net.nodes[0].mesh.as_ref().unwrap();
    assert_eq!(mesh.members()[0].repairs, 1);
    let said = |why: &&String| why.contains("holds other states");
    assert_eq!(liar.net.nodes[0].refused.iter().filter(said).count(), 1);
}

#[test]
fn strangers_have_few_places_and_little_time() {
    let mut liar = Liar::new();
    for _ in 0..280 {
        let (_, far) = liar.net.ends(1, 0);
        liar.net.input(0, Input::Connected(ConnectionId(far)));
    }
    assert!(liar.is_linked(), "who is known keeps its place");
    let said = |net: &Net, text: &str| {
        net.nodes[0].refused.iter().filter(|why| why.contains(text)).count()
    };
    assert_eq!(said(&liar.net, "too many connections"), 24);
    liar.net.run(Duration::from_secs(15));
    assert_eq!(said(&liar.net, "within 10 seconds"), 256);
}
