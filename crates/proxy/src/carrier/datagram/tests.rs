//! The handshake, without sockets: an edge's line and a gateway's session.

use std::net::SocketAddr;

use bytes::Bytes;
use proto::sealed::{Granted, Inside, Packet, RESET_BYTES};

use super::dial::{Came, Line};
use super::noise::{Dialled, Resets};
use super::seal::Refused;
use super::session::{self, Session};
use crate::carrier::udp::PeerPlace;
use crate::keys::testing::Pair;

impl Pair {
    fn line(&self) -> Line {
        Line::new(&self.edge, self.gateway.key).unwrap()
    }

    /// The session that a first datagram begins, and what is in that.
    fn session(&self, datagram: &[u8], is_there: bool) -> Option<(Session, Bytes)> {
        let (packet, head) = Packet::decode(datagram).ok()?;
        let Packet::First { token, message, number, .. } = packet else { return None };
        let dialled = Dialled::new(&self.gateway, message, token)?;
        assert_eq!(self.gateway.admit_x25519(&dialled.point).unwrap().0, "edge");
        let granted = Granted { connection: [1, 2, 3, 4], reset: [5; RESET_BYTES] };
        let mut session = Session::new(dialled, *message, granted, place(1), is_there)?;
        let came = session.open_early(place(1), datagram, head, number).ok()?;
        let Some(Inside::Datagram(bytes)) = came.inside else { return None };
        Some((session, bytes))
    }
}

fn place(port: u16) -> PeerPlace {
    PeerPlace { address: SocketAddr::from(([192, 0, 2, 1], port)), to: None }
}

/// What a datagram from somewhere comes to.
fn opened(
    session: &mut Session,
    from: PeerPlace,
    datagram: &[u8],
) -> Result<session::Came, Refused> {
    let (packet, head) = Packet::decode(datagram).map_err(|_| Refused::Unreadable)?;
    match packet {
        Packet::First { number, .. } => session.open_early(from, datagram, head, number),
        Packet::Data { number, .. } => session.open(from, datagram, (head, number), [8; 8]),
        _ => Err(Refused::Unreadable),
    }
}

fn came(session: &mut Session, from: PeerPlace, datagram: &[u8]) -> Option<session::Came> {
    opened(session, from, datagram).ok()
}

/// What is in it for the carrier.
fn read(session: &mut Session, from: PeerPlace, datagram: &[u8]) -> Option<Bytes> {
    match came(session, from, datagram)?.inside {
        Some(Inside::Datagram(bytes)) => Some(bytes),
        _ => None,
    }
}

#[test]
fn whichever_datagrams_are_lost_those_that_come_are_read_once() {
    let keys = Pair::new("lost");
    let mut line = keys.line();
    let first: Vec<_> = (0..3_u8).map(|at| line.seal(&[at; 10]).unwrap()).collect();
    // The first is lost, and the last is there before the second.
    let (mut session, bytes) = keys.session(&first[2], true).unwrap();
    assert_eq!(bytes[..], [2; 10]);
    assert_eq!(read(&mut session, place(1), &first[1]).unwrap()[..], [1; 10]);
    assert!(read(&mut session, place(1), &first[1]).is_none());
    let answers: Vec<_> = (0..3_u8).map(|at| session.seal(&[at]).unwrap().1).collect();
    assert_eq!(line.came(&keys.edge, &answers[1]), Came::Datagram(Bytes::from_static(&[1])));
    let data = line.seal(b"data").unwrap();
    assert!(matches!(Packet::decode(&data), Ok((Packet::Data { .. }, 8))));
    assert_eq!(line.came(&keys.edge, &answers[2]), Came::Datagram(Bytes::from_static(&[2])));
    assert_eq!(line.came(&keys.edge, &answers[2]), Came::Nothing);
    assert_eq!(&read(&mut session, place(1), &data).unwrap()[..], b"data");
    // From here on no handshake goes with it, and none that is late is read.
    assert!(read(&mut session, place(1), &first[0]).is_none());
    let reply = session.seal(b"reply").unwrap().1;
    assert!(matches!(Packet::decode(&reply), Ok((Packet::Reply { .. }, 4))));
    assert_eq!(line.came(&keys.edge, &reply), Came::Datagram(Bytes::from_static(b"reply")));
    assert_eq!(line.came(&keys.edge, &session.seal(&[]).unwrap().1), Came::Closed);
}

#[test]
fn nobody_but_the_two_keys_makes_anything_that_is_read() {
    let (keys, others) = (Pair::new("ours"), Pair::new("others"));
    let mut line = keys.line();
    let first = line.seal(b"first").unwrap();
    for at in 0..first.len() {
        let mut forged = first.clone();
        forged[at] ^= 1;
        assert!(keys.session(&forged, true).is_none(), "{at}");
    }
    assert!(others.session(&first, true).is_none(), "to another gateway");
    let mut stranger = Line::new(&others.edge, keys.gateway.key).unwrap();
    let theirs = stranger.seal(b"first").unwrap();
    let (Packet::First { message, .. }, _) = Packet::decode(&theirs).unwrap() else { panic!() };
    let dialled = Dialled::new(&keys.gateway, message, None).unwrap();
    let why = keys.gateway.admit_x25519(&dialled.point).unwrap_err();
    assert!(why.contains("not among the 1 in our --peer file"), "{why}");
    let (mut session, _) = keys.session(&first, true).unwrap();
    let answer = session.seal(b"answer").unwrap().1;
    for at in 0..answer.len() {
        let mut forged = answer.clone();
        forged[at] ^= 1;
        assert_eq!(line.came(&keys.edge, &forged), Came::Nothing, "{at}");
    }
    assert_eq!(line.came(&keys.edge, &answer), Came::Datagram(Bytes::from_static(b"answer")));
}

#[test]
fn a_token_becomes_part_of_a_handshake_that_is_new() {
    let keys = Pair::new("token");
    let mut line = keys.line();
    let first = line.seal(b"first").unwrap();
    let beginning: &[u8; 8] = first[1..].first_chunk().unwrap();
    let retry = Packet::Retry { beginning: &[0; 8], token: &[3; 17] }.head();
    assert_eq!(line.came(&keys.edge, &retry), Came::Nothing, "it is about another");
    let retry = Packet::Retry { beginning, token: &[3; 17] }.head();
    assert_eq!(line.came(&keys.edge, &retry), Came::Again);
    let again = line.seal(b"first").unwrap();
    assert_ne!(again[18..], first[1..first.len()]);
    assert_eq!(&keys.session(&again, true).unwrap().1[..], b"first");
    // With another token, and with none, it is no handshake of hers.
    let mut other = again.clone();
    other[5] ^= 1;
    assert!(keys.session(&other, true).is_none());
    assert!(keys.session(&[&[0x04], &again[18..]].concat(), true).is_none());
    let said = |datagram: &[u8]| {
        let (packet, _) = Packet::decode(datagram).unwrap();
        let Packet::First { token, message, .. } = packet else { panic!("{packet:?}") };
        Dialled::new(&keys.gateway, message, token).unwrap().said.at_us
    };
    assert!(said(&again) > said(&first));
}

#[test]
fn little_is_sent_to_where_nobody_has_been_seen_to_receive() {
    let keys = Pair::new("budget");
    let mut line = keys.line();
    let first = line.seal(&[1; 200]).unwrap();
    let (mut session, _) = keys.session(&first, false).unwrap();
    let mut sent = 0;
    while let Some((_, sealed)) = session.seal(&[2; 100]) {
        sent += sealed.len();
    }
    let most = 3 * (first.len() + 1200);
    assert!(sent <= most && sent + 200 > most, "{sent}");
    // More comes, and then something that only who has the answer can have made.
    let more = line.seal(&[1; 200]).unwrap();
    assert!(read(&mut session, place(1), &more).is_some());
    let answer = session.seal(&[2; 100]).unwrap().1;
    assert_ne!(line.came(&keys.edge, &answer), Came::Nothing);
    let data = line.seal(b"data").unwrap();
    assert!(read(&mut session, place(1), &data).is_some());
    (0..100).for_each(|_| drop(session.seal(&[2; 1000]).unwrap()));
}

#[test]
fn an_edge_is_elsewhere_once_it_has_answered_from_there() {
    let keys = Pair::new("moved");
    let mut line = keys.line();
    let first = line.seal(b"first").unwrap();
    let (mut session, _) = keys.session(&first, true).unwrap();
    let answer = session.seal(b"answer").unwrap().1;
    assert_ne!(line.came(&keys.edge, &answer), Came::Nothing);
    let (late, data) = (line.seal(b"late").unwrap(), line.seal(b"data").unwrap());
    let there = came(&mut session, place(2), &data).unwrap();
    assert_eq!(there.inside, Some(Inside::Datagram(Bytes::from_static(b"data"))));
    let challenge = there.answer.unwrap();
    assert!(challenge.len() <= 3 * data.len());
    // However much comes from there: who receives there has to answer.
    for _ in 0..100 {
        let data = line.seal(b"data").unwrap();
        assert!(came(&mut session, place(2), &data).unwrap().answer.is_some());
        assert_eq!(session.seal(&[2; 1000]).unwrap().0, place(1));
    }
    // What is late moves nothing.
    assert!(came(&mut session, place(3), &late).unwrap().answer.is_none());
    let Came::Challenge(word) = line.came(&keys.edge, &challenge) else { panic!() };
    let wrong = line.seal(&Inside::Response([9; 8]).encode()).unwrap();
    assert!(came(&mut session, place(2), &wrong).is_some());
    assert_eq!(session.place(), place(1));
    let response = line.seal(&Inside::Response(word).encode()).unwrap();
    assert!(came(&mut session, place(2), &response).unwrap().inside.is_none());
    assert_eq!(session.seal(&[2; 1000]).unwrap().0, place(2));
}

#[test]
fn a_gateway_that_has_forgotten_says_so_and_nobody_else_can() {
    let keys = Pair::new("reset");
    let mut line = keys.line();
    let token = Resets::new(&keys.gateway).unwrap().token([1, 2, 3, 4]);
    let reset = |token| Packet::Reset { token: &token }.head();
    assert_eq!(line.came(&keys.edge, &reset([5; RESET_BYTES])), Came::Nothing);
    let first = line.seal(b"first").unwrap();
    let (mut session, _) = keys.session(&first, true).unwrap();
    let answer = session.seal(b"answer").unwrap().1;
    assert_ne!(line.came(&keys.edge, &answer), Came::Nothing);
    assert_eq!(line.came(&keys.edge, &reset([6; RESET_BYTES])), Came::Nothing);
    assert_eq!(line.came(&keys.edge, &reset([5; RESET_BYTES])), Came::Forgotten);
    // The same in the next process, for the key is the same; and no other for another.
    assert_eq!(token, Resets::new(&keys.gateway).unwrap().token([1, 2, 3, 4]));
    assert_ne!(token, Resets::new(&keys.gateway).unwrap().token([1, 2, 3, 5]));
}

/// What is of another session, of another edge or of none: it is told apart why it is not read, and
/// what is read next is what it would have been.
#[test]
fn what_is_of_another_cut_off_or_played_back_is_not_read_and_counts_as_what_it_is() {
    let keys = Pair::new("others-session");
    let (mut line, mut other) = (keys.line(), keys.line());
    let first = line.seal(b"first").unwrap();
    let (mut session, _) = keys.session(&first, true).unwrap();
    let answer = session.seal(b"answer").unwrap().1;
    assert_ne!(line.came(&keys.edge, &answer), Came::Nothing);
    // Another carrier of the same edge, whose connection the gateway names by the same number.
    let others_first = other.seal(b"other").unwrap();
    let (mut others, _) = keys.session(&others_first, true).unwrap();
    assert_ne!(other.came(&keys.edge, &others.seal(b"answer").unwrap().1), Came::Nothing);
    let theirs: Vec<_> = (1..=50_u8).map(|at| other.seal(&[at; 40]).unwrap()).collect();
    let ours: Vec<_> = (1..=50_u8).map(|at| line.seal(&[at; 40]).unwrap()).collect();
    let (spoofed, there) = (place(9), place(1));
    for (theirs, ours) in theirs.iter().zip(&ours) {
        assert_eq!(opened(&mut session, spoofed, theirs).err(), Some(Refused::Forged));
        for cut in 0..ours.len() {
            let came = opened(&mut session, spoofed, &ours[..cut]).err();
            assert!(matches!(came, Some(Refused::Forged | Refused::Unreadable)), "{cut}: {came:?}");
        }
        assert_eq!(read(&mut session, there, ours).unwrap().len(), 40);
        for from in [spoofed, there] {
            assert_eq!(opened(&mut session, from, ours).err(), Some(Refused::Repeated));
        }
    }
    assert_eq!(opened(&mut session, spoofed, &first).err(), Some(Refused::Repeated));
    // Nor is anything sent elsewhere for any of it.
    assert_eq!(session.place(), there);
    // The same the other way.
    let theirs = others.seal(b"reply").unwrap().1;
    let reply = session.seal(b"reply").unwrap().1;
    assert_eq!(line.came(&keys.edge, &theirs), Came::Nothing);
    for cut in 0..reply.len() {
        assert_eq!(line.came(&keys.edge, &reply[..cut]), Came::Nothing, "{cut}");
    }
    assert_eq!(line.came(&keys.edge, &reply), Came::Datagram(Bytes::from_static(b"reply")));
}
