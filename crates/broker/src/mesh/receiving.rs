//! What other members say, once they are known.

use std::sync::Arc;
use std::time::Duration;

use super::interest;
use super::keeping;
use super::machine::{Claim, Mesh, Output, Progress, put_state, release};
use super::peer::Wanted;
use super::sending;
use super::states::Held;
use super::wire::{Dot, Frame, MAX_WRITERS, Writer, Wrong};
use crate::ids::{ConnectionId, Protocol};
use crate::publication::{Grade, Publication};

/// A state is not compared as a whole with the same member more often than this.
const COMPARE_INTERVAL: Duration = Duration::from_secs(60);

const LIES: Wrong = "it says that it has more of this member's log than there is";

/// Takes a frame.
pub(super) fn take(
    mesh: &mut Mesh,
    now: Duration,
    id: ConnectionId,
    frame: Frame,
) -> Result<(), Wrong> {
    let known = mesh.links.get(&id).filter(|link| link.is_known).and_then(|link| link.peer);
    let Some(at) = known else { return Err("a frame before it is known who sends it") };
    match frame {
        Frame::Interest { .. } => interest::take(mesh, at, frame),
        Frame::Entry { seq, stamp, publication } => entry(mesh, at, seq, stamp, publication),
        Frame::State { from, dot, stamp, topic, value } => {
            state(mesh, at, (from, dot), (stamp, topic, value))
        }
        Frame::UpTo { from, dot } => up_to(mesh, at, from, &dot),
        Frame::Ack { received } => acknowledged(mesh, at, received),
        Frame::Status { held, wants, digest } => {
            status(mesh, at, held, wants)?;
            if let Some(link) = mesh.links.get_mut(&id) {
                link.has_status = true;
            }
            compare(mesh, now, at, digest);
            sending::ask(mesh, now);
            Ok(())
        }
        _ => Err("a frame at the wrong time"),
    }
}

/// The next publication of a member's log that this one wants.
fn entry(
    mesh: &mut Mesh,
    at: usize,
    seq: u64,
    stamp: u64,
    mut publication: Publication,
) -> Result<(), Wrong> {
    let writer = writer_of(mesh, at);
    let dot = Dot { writer, seq };
    let Some(peer) = mesh.peers.get(at) else { return Ok(()) };
    if seq <= peer.received {
        return Err("it repeats a publication that was taken");
    }
    let was_known = mesh.states.seq(&dot.writer) >= seq;
    publication.retain = false;
    if stamp == 0 && publication.grade == Grade::AtMostOnce {
        // The disk learns of it with the next tick.
        passed(mesh, at, seq);
    } else {
        reached(mesh, at, seq);
    }
    if stamp == 0 {
        mesh.outputs.push_back(Output::Deliver(Box::new(publication)));
        return Ok(());
    }
    // It came as a state by another member, or a newer one of its writer did.
    if was_known {
        return Ok(());
    }
    hear(mesh, stamp)?;
    let topic = publication.topic.clone();
    let is_end = publication.payload.is_empty();
    publication.retain = true;
    let value = (!is_end).then(|| Arc::new(publication.clone()));
    let held = Held { dot, stamp, value };
    if mesh.states.is_newer(&topic, &held) {
        put_state(mesh, topic, held);
    } else {
        // Somebody else has written the topic's state since; this arrives as what it is.
        publication.retain = false;
    }
    mesh.outputs.push_back(Output::Deliver(Box::new(publication)));
    Ok(())
}

type Said = (u64, Arc<str>, Option<Publication>);

/// The state of a topic, from its writer or another.
fn state(
    mesh: &mut Mesh,
    at: usize,
    (from, dot): (u64, Dot),
    (stamp, topic, value): Said,
) -> Result<(), Wrong> {
    if dot.writer == mesh.me && dot.seq > mesh.seq {
        return Err("a state that this member is said to have written, and has not");
    }
    hear(mesh, stamp)?;
    if is_beyond(mesh, at, from, &dot)? {
        return Ok(());
    }
    let mut publication =
        value.unwrap_or_else(|| Publication::new(Protocol::Mesh, topic.clone(), Vec::new()));
    publication.retain = true;
    let is_ended = publication.payload.is_empty();
    let value = (!is_ended).then(|| Arc::new(publication.clone()));
    let held = Held { dot: dot.clone(), stamp, value };
    let is_news = mesh.states.is_newer(&topic, &held);
    if is_news {
        check_room(mesh, &dot.writer)?;
        let was_there = mesh.states.get(&topic).is_some_and(|held| held.value.is_some());
        put_state(mesh, topic, held);
        // Nobody here learns of the end of what was never there.
        if !is_ended || was_there {
            mesh.outputs.push_back(Output::Deliver(Box::new(publication)));
        }
    }
    known(mesh, at, &dot)
}

/// There is nothing more of a log up to a place.
fn up_to(mesh: &mut Mesh, at: usize, from: u64, dot: &Dot) -> Result<(), Wrong> {
    if dot.writer == mesh.me && dot.seq > mesh.seq {
        return Err(LIES);
    }
    if is_beyond(mesh, at, from, dot)? {
        return Ok(());
    }
    known(mesh, at, dot)
}

/// Whether something before it is not known here, which another member has on its way or is asked
/// for again. A log's own writer leaves out nothing.
fn is_beyond(mesh: &Mesh, at: usize, from: u64, dot: &Dot) -> Result<bool, Wrong> {
    let is_beyond = from > mesh.states.seq(&dot.writer);
    if is_beyond && dot.writer == writer_of(mesh, at) {
        return Err("it leaves out a part of its log");
    }
    Ok(is_beyond)
}

/// States of a log are known up to here.
fn known(mesh: &mut Mesh, at: usize, dot: &Dot) -> Result<(), Wrong> {
    if dot.writer == writer_of(mesh, at) {
        if mesh.peers.get(at).is_some_and(|peer| peer.received < dot.seq) {
            reached(mesh, at, dot.seq);
        }
        return Ok(());
    }
    check_room(mesh, &dot.writer)?;
    if mesh.states.reach(dot) {
        mesh.keep(keeping::log(&dot.writer, dot.seq));
        mesh.claim(Claim::Log(dot.writer.clone(), dot.seq));
    }
    Ok(())
}

/// A member's own log was taken up to here.
fn passed(mesh: &mut Mesh, at: usize, seq: u64) {
    let writer = writer_of(mesh, at);
    if let Some(peer) = mesh.peers.get_mut(at) {
        peer.received = seq;
    }
    mesh.states.reach(&Dot { writer, seq });
}

/// The same, and that is kept.
pub(super) fn reached(mesh: &mut Mesh, at: usize, seq: u64) {
    passed(mesh, at, seq);
    let (writer, name) = (writer_of(mesh, at), mesh.name(at));
    let Some(peer) = mesh.peers.get(at) else { return };
    let life = peer.life;
    let record = keeping::peer(&name, life, seq, peer.acked);
    mesh.keep(record);
    mesh.claim(Claim::Log(writer, seq));
    mesh.claim(Claim::Peer(at, life, seq));
}

fn check_room(mesh: &Mesh, writer: &Writer) -> Result<(), Wrong> {
    let is_known = mesh.states.logs().any(|(known, _)| known == writer);
    if !is_known && mesh.states.logs().count() >= MAX_WRITERS {
        return Err("states of more than 1,024 writers");
    }
    Ok(())
}

fn hear(mesh: &mut Mesh, stamp: u64) -> Result<(), Wrong> {
    if mesh.clock.hear(stamp) { Ok(()) } else { Err("a state of after the year 9999") }
}

fn writer_of(mesh: &Mesh, at: usize) -> Writer {
    let life = mesh.peers.get(at).map_or(0, |peer| peer.life);
    Writer { member: mesh.name(at), life }
}

/// A member has this one's log for good up to here.
fn acknowledged(mesh: &mut Mesh, at: usize, received: u64) -> Result<(), Wrong> {
    if received > mesh.seq {
        return Err(LIES);
    }
    let name = mesh.name(at);
    let Some(peer) = mesh.peers.get_mut(at) else { return Ok(()) };
    if received > peer.sent {
        return Err("it acknowledges what was not sent to it");
    }
    peer.acked = peer.acked.max(received);
    let gone = peer.queue.take_up_to(received);
    if gone.is_empty() {
        return Ok(());
    }
    let record = keeping::peer(&name, peer.life, peer.received, peer.acked);
    mesh.keep(record);
    for (seq, old) in gone {
        mesh.tell(&old.publication, at, Progress::Acknowledged);
        release(mesh, seq);
    }
    Ok(())
}

/// What a member has, and wants from this one.
fn status(mesh: &mut Mesh, at: usize, held: Vec<Dot>, wants: Vec<Dot>) -> Result<(), Wrong> {
    let me = mesh.me.clone();
    if held.iter().any(|dot| dot.writer == me && dot.seq > mesh.seq) {
        return Err(LIES);
    }
    let Some(peer) = mesh.peers.get_mut(at) else { return Ok(()) };
    let had = peer.held.get(&me).copied().unwrap_or(0);
    peer.held = held.into_iter().map(|Dot { writer, seq }| (writer, seq)).collect();
    if peer.held.get(&me).copied().unwrap_or(0) < had {
        return Err("it says that it has less of this member's log than it had");
    }
    peer.sent_states = peer.sent_states.max(peer.held.get(&me).copied().unwrap_or(0));
    // What is under way already is not sent again.
    let before = std::mem::take(&mut peer.wants);
    for Dot { writer, seq } in wants {
        let known = before.get(&writer).filter(|wanted| wanted.named <= seq);
        let sent = known.map_or(seq, |wanted| wanted.sent.max(seq));
        peer.wants.insert(writer, Wanted { named: seq, sent });
    }
    Ok(())
}

/// Members that have come equally far hold the same; otherwise one of them has lost something, and
/// all is sent again.
fn compare(mesh: &mut Mesh, now: Duration, at: usize, digest: u64) {
    if digest == 0 || digest == mesh.states.digest() {
        return;
    }
    let Some(peer) = mesh.peers.get(at) else { return };
    let mine_differs = mesh.states.logs().any(|(writer, seq)| {
        let theirs = peer.held.get(writer);
        theirs.map_or(mesh.states.counts(writer), |theirs| *theirs != seq)
    });
    let theirs_differs = peer.held.iter().any(|(writer, seq)| *seq > mesh.states.seq(writer));
    let is_early = peer.compared_at.is_some_and(|at| now.saturating_sub(at) < COMPARE_INTERVAL);
    if mine_differs || theirs_differs || is_early {
        return;
    }
    let logs: Vec<Writer> = mesh.states.logs().map(|(writer, _)| writer.clone()).collect();
    let why = format!(
        "the member {} has come as far and holds other states: all of them are sent to it again",
        mesh.name(at)
    );
    let Some(peer) = mesh.peers.get_mut(at) else { return };
    peer.compared_at = Some(now);
    peer.counted.repairs += 1;
    peer.repairs = logs.into_iter().map(|writer| (writer, 0)).collect();
    mesh.outputs.push_back(Output::Refused(None, why));
}
