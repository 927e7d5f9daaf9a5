//! What goes to other members, and when.

use std::time::Duration;

use super::keeping;
use super::linking;
use super::machine::{Mesh, Output, Progress, release};
use super::receiving;
use super::wire::{Dot, Frame, MAX_WRITERS, Writer};
use crate::event::Drop;
use crate::ids::ConnectionId;
use crate::publication::Publication;

/// Bytes that were given to a connection before it has room again.
pub(super) const MAX_UNSENT_BYTES: usize = 64 << 10;
/// A member that has nothing to say says so after this, and one that says nothing for so long is
/// gone.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
const MAX_SILENCE: Duration = Duration::from_secs(30);
/// Writers that are remembered though none of their states counts.
const MAX_OVER: usize = MAX_WRITERS / 2;

/// Sends a frame.
pub(super) fn send(mesh: &mut Mesh, now: Duration, id: ConnectionId, frame: &Frame) {
    let mac = mesh.settings.mac;
    let Some(link) = mesh.links.get_mut(&id) else { return };
    let bytes = link.channel.wrap(mac, &frame.encode(now));
    link.said = now;
    link.unsent_bytes += bytes.len();
    if let Some(peer) = link.peer.and_then(|peer| mesh.peers.get_mut(peer)) {
        peer.counted.sent_bytes += bytes.len() as u64;
    }
    mesh.outputs.push_back(Output::Send(id, bytes));
}

/// Sends everybody what it lacks, as far as there is room.
pub(super) fn pump_all(mesh: &mut Mesh, now: Duration) {
    let linked: Vec<ConnectionId> = mesh.peers.iter().filter_map(|peer| peer.link).collect();
    linked.into_iter().for_each(|id| pump(mesh, now, id));
}

/// The same for one connection.
pub(super) fn pump(mesh: &mut Mesh, now: Duration, id: ConnectionId) {
    loop {
        let Some(link) = mesh.links.get(&id) else { return };
        let Some(at) = link.peer.filter(|_| link.is_known && link.has_status) else { return };
        if link.unsent_bytes >= MAX_UNSENT_BYTES {
            return;
        }
        let is_more = own(mesh, now, id, at) || others(mesh, now, id, at);
        if !is_more {
            return;
        }
    }
}

/// Sends the next of the own log; whether there was one.
fn own(mesh: &mut Mesh, now: Duration, id: ConnectionId, at: usize) -> bool {
    let (me, safe) = (mesh.me.clone(), mesh.safe);
    let Some(peer) = mesh.peers.get_mut(at) else { return false };
    let state = mesh.states.after(&me, peer.sent_states).map(|(seq, _, _)| seq);
    let waiting = peer.queue.after(peer.sent);
    let first = waiting.as_ref().map(|(seq, _)| *seq);
    let Some(next) = first.into_iter().chain(state).min().filter(|next| *next <= safe) else {
        return false;
    };
    let Some((seq, waiting)) = waiting.filter(|(seq, _)| *seq == next) else {
        let from = peer.sent_states;
        peer.sent = peer.sent.max(next);
        peer.sent_states = next;
        return state_of(mesh, now, id, &me, from).is_some();
    };
    waiting.was_sent = true;
    let (stamp, publication) = (waiting.stamp, waiting.publication.clone());
    let is_fleeting = waiting.is_fleeting();
    peer.sent = seq;
    if publication.is_expired(now) {
        peer.queue.remove(seq);
        mesh.tell(&publication, at, Progress::Dropped(Drop::Expired));
        release(mesh, seq);
        return true;
    }
    peer.sent_states = peer.sent_states.max(seq);
    if is_fleeting {
        peer.queue.remove(seq);
    }
    mesh.tell(&publication, at, Progress::Sent);
    let publication = Publication::clone(&publication);
    send(mesh, now, id, &Frame::Entry { seq, stamp, publication });
    true
}

/// Sends the next state of another's log that is wanted, or of any if all are sent again; whether
/// there was one.
fn others(mesh: &mut Mesh, now: Duration, id: ConnectionId, at: usize) -> bool {
    let Some(peer) = mesh.peers.get(at) else { return false };
    let wanted = peer.wants.iter().map(|(writer, wanted)| (writer, wanted.sent, false));
    let again = peer.repairs.iter().map(|(writer, seq)| (writer, *seq, true));
    let next = wanted.chain(again).find(|(writer, seq, _)| {
        **writer != mesh.me && mesh.states.after(writer, *seq).is_some()
            || **writer == mesh.me
                && mesh.states.after(writer, *seq).is_some_and(|(seq, _, _)| seq <= mesh.safe)
    });
    let Some((writer, seq, is_again)) =
        next.map(|(writer, seq, again)| (writer.clone(), seq, again))
    else {
        return false;
    };
    let Some(sent) = state_of(mesh, now, id, &writer, seq) else { return false };
    let Some(peer) = mesh.peers.get_mut(at) else { return false };
    if is_again {
        peer.repairs.insert(writer, sent);
    } else if let Some(wanted) = peer.wants.get_mut(&writer) {
        wanted.sent = sent;
    }
    true
}

/// Sends the first state of a log behind a place; its place.
fn state_of(
    mesh: &mut Mesh,
    now: Duration,
    id: ConnectionId,
    writer: &Writer,
    seq: u64,
) -> Option<u64> {
    let (at, topic, held) = mesh.states.after(writer, seq)?;
    let value = held.value.as_ref().filter(|value| !value.is_expired(now));
    let value = value.map(|value| Publication::clone(value));
    let (dot, stamp, topic) = (held.dot.clone(), held.stamp, topic.clone());
    send(mesh, now, id, &Frame::State { from: seq, dot, stamp, topic, value });
    Some(at)
}

/// Says what of a member's log is on disk.
pub(super) fn acknowledge(mesh: &mut Mesh, now: Duration, at: usize) {
    let Some(peer) = mesh.peers.get(at) else { return };
    let (received, link) = (peer.claimed, peer.link);
    let Some(id) = link else { return };
    let Some(link) = mesh.links.get_mut(&id) else { return };
    // One later says this too.
    link.owes_ack = link.unsent_bytes >= MAX_UNSENT_BYTES;
    if !link.owes_ack {
        send(mesh, now, id, &Frame::Ack { received });
    }
}

/// A connection has room: what was not said for want of it is.
pub(super) fn has_room(mesh: &mut Mesh, now: Duration, id: ConnectionId) {
    let Some(link) = mesh.links.get(&id) else { return };
    if let Some(at) = link.peer.filter(|_| link.owes_ack) {
        acknowledge(mesh, now, at);
    }
    super::interest::say(mesh, now, id);
    pump(mesh, now, id);
}

/// Says what states are here and which are wanted.
pub(super) fn status(mesh: &mut Mesh, now: Duration, id: ConnectionId) {
    let Some(link) = mesh.links.get_mut(&id) else { return };
    let Some(at) = link.peer else { return };
    if link.unsent_bytes >= MAX_UNSENT_BYTES {
        // The next tick says it.
        link.status = None;
        return;
    }
    let dots = |(writer, seq): (&Writer, u64)| Dot { writer: writer.clone(), seq };
    let held = mesh.claimed.iter().map(|(writer, seq)| dots((writer, *seq)));
    let held: Vec<Dot> = held.take(MAX_WRITERS).collect();
    let asked = mesh.asked.iter().filter(|(_, of)| **of == at);
    let wants = asked.map(|(writer, _)| dots((writer, mesh.states.seq(writer))));
    let wants: Vec<Dot> = wants.take(MAX_WRITERS).collect();
    let is_settled = mesh.pending.is_empty();
    let digest = if is_settled { mesh.states.digest() } else { 0 };
    let frame = Frame::Status { held, wants, digest };
    send(mesh, now, id, &frame);
    if let Some(link) = mesh.links.get_mut(&id) {
        link.status = Some(frame);
    }
}

/// Decides whom the states of each log are asked of whose writer is not here.
pub(super) fn ask(mesh: &mut Mesh, now: Duration) {
    let linked = |peer: usize| mesh.peers.get(peer).is_some_and(|peer| peer.link.is_some());
    let is_direct = |writer: &Writer| {
        *writer == mesh.me
            || mesh.find(&writer.member).is_some_and(|at| {
                linked(at) && mesh.peers.get(at).is_some_and(|peer| peer.life == writer.life)
            })
    };
    let mut asked = mesh.asked.clone();
    asked.retain(|writer, of| linked(*of) && !is_direct(writer));
    for (at, peer) in mesh.peers.iter().enumerate().filter(|(_, peer)| peer.link.is_some()) {
        for (writer, seq) in &peer.held {
            if is_direct(writer) || *seq <= mesh.states.seq(writer) {
                continue;
            }
            let best = asked.get(writer).and_then(|of| mesh.peers.get(*of));
            let best = best.and_then(|peer| peer.held.get(writer)).copied().unwrap_or(0);
            // Who was asked goes on being asked as long as it has something.
            if best <= mesh.states.seq(writer) || best == 0 {
                asked.insert(writer.clone(), at);
            }
        }
    }
    let changed: Vec<usize> = (0..mesh.peers.len())
        .filter(|at| {
            let of = |asked: &std::collections::BTreeMap<Writer, usize>| -> Vec<Writer> {
                let own = asked.iter().filter(|(_, of)| **of == *at);
                own.map(|(writer, _)| writer.clone()).collect()
            };
            of(&asked) != of(&mesh.asked)
        })
        .collect();
    mesh.asked = asked;
    let links = changed.into_iter().filter_map(|at| mesh.peers.get(at)?.link);
    for id in links.collect::<Vec<_>>() {
        status(mesh, now, id);
    }
}

/// Says what has changed, and looks after what has its time.
pub(super) fn tick(mesh: &mut Mesh, now: Duration) {
    for topic in mesh.states.expire(now) {
        match mesh.states.get(&topic).map(|held| keeping::state(&topic, held)) {
            Some(record) => mesh.keep(record),
            None => mesh.drop_record(keeping::state_key(&topic)),
        }
    }
    for at in 0..mesh.peers.len() {
        let received = mesh.peers.get(at).map_or(0, |peer| peer.received);
        let claimed = mesh.peers.get(at).map_or(0, |peer| peer.claimed);
        if received > claimed && mesh.pending.is_empty() {
            receiving::reached(mesh, at, received);
        }
    }
    forget(mesh, now);
    ask(mesh, now);
    let linked: Vec<ConnectionId> = mesh.peers.iter().filter_map(|peer| peer.link).collect();
    for id in linked {
        let Some(link) = mesh.links.get(&id) else { continue };
        if now.saturating_sub(link.heard) >= MAX_SILENCE {
            linking::refuse(mesh, now, id, "nothing came from it for 30 seconds");
            continue;
        }
        if let Some(link) = mesh.links.get_mut(&id) {
            link.unsaid.tick();
        }
        has_room(mesh, now, id);
        catch_up(mesh, now, id);
        let Some(link) = mesh.links.get(&id) else { continue };
        let is_due = now.saturating_sub(link.said) >= KEEP_ALIVE;
        if is_due || has_changed(mesh, id) {
            status(mesh, now, id);
        }
    }
}

/// Whether the last status does not hold any more.
fn has_changed(mesh: &Mesh, id: ConnectionId) -> bool {
    let Some(link) = mesh.links.get(&id) else { return false };
    let Some(Frame::Status { held, digest, .. }) = &link.status else { return true };
    let is_settled = mesh.pending.is_empty();
    held.len() != mesh.claimed.len().min(MAX_WRITERS)
        || held.iter().any(|dot| mesh.claimed.get(&dot.writer) != Some(&dot.seq))
        || is_settled && *digest != mesh.states.digest()
}

/// There is nothing more of logs up to where they are known here, for who has got all of them.
fn catch_up(mesh: &mut Mesh, now: Duration, id: ConnectionId) {
    let Some(link) = mesh.links.get(&id).filter(|link| link.is_known && link.has_status) else {
        return;
    };
    let Some(at) = link.peer else { return };
    if link.unsent_bytes >= MAX_UNSENT_BYTES {
        return;
    }
    pump(mesh, now, id);
    let (me, safe) = (mesh.me.clone(), mesh.safe);
    let Some(peer) = mesh.peers.get_mut(at) else { return };
    let is_done = peer.queue.after(peer.sent).is_none_or(|(seq, _)| seq > safe)
        && mesh.states.after(&me, peer.sent_states).is_none_or(|(seq, _, _)| seq > safe);
    let mut frames = Vec::new();
    if is_done && peer.sent < safe {
        let from = peer.sent_states;
        (peer.sent, peer.sent_states) = (safe, from.max(safe));
        frames.push(Frame::UpTo { from, dot: Dot { writer: me, seq: safe } });
    }
    for (writer, wanted) in &mut peer.wants {
        let known = mesh.claimed.get(writer).copied().unwrap_or(0);
        if wanted.sent < known && mesh.states.after(writer, wanted.sent).is_none() {
            let dot = Dot { writer: writer.clone(), seq: known };
            frames.push(Frame::UpTo { from: wanted.sent, dot });
            wanted.sent = known;
        }
    }
    frames.iter().for_each(|frame| send(mesh, now, id, frame));
}

/// What all members know to have ended, and logs of which nothing counts any more, go.
fn forget(mesh: &mut Mesh, now: Duration) {
    let peers = mesh.peers.iter().zip(&mesh.settings.members);
    let others: Vec<_> =
        peers.filter(|(_, member)| !member.revoked).map(|(peer, _)| &peer.held).collect();
    let knows = |dot: &Dot| {
        others.iter().all(|held| held.get(&dot.writer).is_some_and(|seq| *seq >= dot.seq))
    };
    let ended = mesh.states.forget_ended(now, knows);
    let lives = |writer: &Writer| {
        *writer == mesh.me
            || mesh
                .find(&writer.member)
                .is_some_and(|at| mesh.peers.get(at).is_some_and(|peer| peer.life == writer.life))
    };
    // Nor one of which more is to come, or is about to be claimed. A life that was not met yet
    // looks like one that is over, and what came of it by others would come again: so this is done
    // only where room gets scarce.
    let is_settled = mesh.pending.is_empty() && mesh.states.logs().count() > MAX_OVER;
    let is_behind = |writer: &Writer, seq: u64| {
        others.iter().any(|held| held.get(writer).is_some_and(|theirs| *theirs > seq))
    };
    let is_over = |(writer, seq): &(&Writer, u64)| {
        is_settled && !mesh.states.counts(writer) && !lives(writer) && !is_behind(writer, *seq)
    };
    let gone: Vec<Writer> =
        mesh.states.logs().filter(is_over).map(|(writer, _)| writer.clone()).collect();
    for topic in ended {
        mesh.drop_record(keeping::state_key(&topic));
    }
    for writer in gone {
        mesh.states.forget_log(&writer);
        mesh.claimed.remove(&writer);
        mesh.asked.remove(&writer);
        mesh.drop_record(keeping::log_key(&writer));
    }
}
