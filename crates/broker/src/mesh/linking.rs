//! How connections between members begin and end.

use std::time::Duration;

use bytes::Bytes;

use super::channel::{Channel, Greetings};
use super::interest::{self, Unsaid};
use super::keeping;
use super::machine::{Mesh, Output, Progress, release};
use super::peer::Waiting;
use super::receiving;
use super::sending;
use super::wire::{Frame, NONCE_BYTES};
use crate::event::Drop;
use crate::ids::ConnectionId;
use crate::publication::Grade;

/// How long a connection may take until it is known who it is.
const MAX_GREETING: Duration = Duration::from_secs(10);
/// Connections of which that is not known: of more one goes that has not greeted, or any. None of
/// them may send a long frame.
const MAX_STRANGERS: usize = 256;
/// Pauses between two attempts to connect, which double.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    /// With whom; before the greeting that is what the dialled one is to be.
    pub(super) peer: Option<usize>,
    is_dialled: bool,
    began: Duration,
    pub(super) heard: Duration,
    pub(super) said: Duration,
    pub(super) channel: Channel,
    nonce: [u8; NONCE_BYTES],
    /// Both have greeted.
    is_secure: bool,
    /// The other has shown to be who it says.
    pub(super) is_known: bool,
    /// It has said what it holds.
    pub(super) has_status: bool,
    pub(super) unsent_bytes: usize,
    /// What it was not told for want of room: of interest, and that something is on disk.
    pub(super) unsaid: Unsaid,
    pub(super) owes_ack: bool,
    /// The status that was said last.
    pub(super) status: Option<Frame>,
}

impl Link {
    /// When it has to be known who it is.
    pub(super) fn greeting_ends(&self) -> Option<Duration> {
        (!self.is_known).then(|| self.began.saturating_add(MAX_GREETING))
    }
}

/// A connection was accepted.
pub(super) fn connected(mesh: &mut Mesh, now: Duration, id: ConnectionId) {
    let strangers = mesh.links.iter().filter(|(_, link)| !link.is_known && !link.is_dialled);
    let (greeted, silent): (Vec<_>, Vec<_>) = strangers.partition(|(_, link)| link.is_secure);
    if greeted.len() + silent.len() >= MAX_STRANGERS {
        // By chance, so that who comes often does not push out a member that is greeting.
        let of = if silent.is_empty() { greeted } else { silent };
        let chance = (mesh.settings.mac)(&mesh.settings.seed, &[b"stranger", &id.0.to_be_bytes()]);
        let number = chance.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        let at = usize::try_from(number).unwrap_or(0) % of.len().max(1);
        if let Some(gone) = of.get(at).map(|(id, _)| **id) {
            refuse(mesh, now, gone, "too many connections of unknown members: 256 at once");
        }
    }
    open(mesh, now, id, None);
}

/// A member was dialled.
pub(super) fn dialled(
    mesh: &mut Mesh,
    now: Duration,
    peer: usize,
    result: Result<ConnectionId, String>,
) {
    let id = match result {
        Ok(id) => id,
        Err(why) => {
            let why = format!("the member {} is not connected: {why}", mesh.name(peer));
            mesh.outputs.push_back(Output::Refused(None, why));
            return failed(mesh, now, peer);
        }
    };
    let Some(it) = mesh.peers.get(peer) else { return mesh.outputs.push_back(Output::Close(id)) };
    if it.link.is_some() {
        return mesh.outputs.push_back(Output::Close(id));
    }
    let nonce = open(mesh, now, id, Some(peer));
    let (from, to) = (mesh.settings.name.clone(), mesh.name(peer));
    sending::send(mesh, now, id, &Frame::Hello { from, to, nonce });
}

fn open(
    mesh: &mut Mesh,
    now: Duration,
    id: ConnectionId,
    peer: Option<usize>,
) -> [u8; NONCE_BYTES] {
    mesh.greetings += 1;
    let digest = (mesh.settings.mac)(&mesh.settings.seed, &[&mesh.greetings.to_be_bytes()]);
    let mut nonce = [0; NONCE_BYTES];
    nonce.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
    let link = Link {
        peer,
        is_dialled: peer.is_some(),
        began: now,
        heard: now,
        said: now,
        channel: Channel::default(),
        nonce,
        is_secure: false,
        is_known: false,
        has_status: false,
        unsent_bytes: 0,
        unsaid: Unsaid::default(),
        owes_ack: false,
        status: None,
    };
    mesh.links.insert(id, link);
    nonce
}

/// It is tried again later.
fn failed(mesh: &mut Mesh, now: Duration, peer: usize) {
    let is_wanted =
        mesh.settings.members.get(peer).is_some_and(|member| member.dials && !member.revoked);
    let Some(it) = mesh.peers.get_mut(peer).filter(|it| it.link.is_none() && is_wanted) else {
        return;
    };
    let pause = MIN_PAUSE.saturating_mul(1 << it.failures.min(10)).min(MAX_PAUSE);
    it.failures += 1;
    it.dial_at = Some(now.saturating_add(pause));
}

/// Connects those that are due.
pub(super) fn dial(mesh: &mut Mesh, now: Duration) {
    for (number, peer) in mesh.peers.iter_mut().enumerate() {
        if peer.link.is_none() && peer.dial_at.is_some_and(|at| at <= now) {
            peer.dial_at = None;
            mesh.outputs.push_back(Output::Dial(number));
        }
    }
}

/// Ends connections that have not said who they are for too long.
pub(super) fn end_greetings(mesh: &mut Mesh, now: Duration) {
    let is_over = |link: &Link| link.greeting_ends().is_some_and(|end| end <= now);
    let over = mesh.links.iter().filter(|(_, link)| is_over(link)).map(|(id, _)| *id);
    for id in over.collect::<Vec<_>>() {
        refuse(mesh, now, id, "it has not shown who it is within 10 seconds");
    }
}

/// Bytes came over a connection.
pub(super) fn received(mesh: &mut Mesh, now: Duration, id: ConnectionId, bytes: &Bytes) {
    let (mac, max) = (mesh.settings.mac, mesh.settings.max_frame_bytes);
    let Some(link) = mesh.links.get_mut(&id) else { return };
    link.heard = now;
    link.channel.feed(bytes);
    if let Some(peer) = link.peer.filter(|_| link.is_known)
        && let Some(peer) = mesh.peers.get_mut(peer)
    {
        peer.counted.received_bytes += bytes.len() as u64;
    }
    loop {
        let Some(link) = mesh.links.get_mut(&id) else { return };
        let frame = match link.channel.next(mac, max) {
            Ok(Some(frame)) => frame,
            Ok(None) => break,
            Err(what) => return refuse(mesh, now, id, what),
        };
        let result = Frame::decode(now, &frame).and_then(|frame| match frame {
            Frame::Refused { why } => {
                refused_there(mesh, now, id, &why);
                Ok(())
            }
            Frame::Hello { from, to, nonce } => hello(mesh, now, id, (&from, &to), &nonce),
            Frame::Welcome { max_frame, .. } if !fits(mesh, id, max_frame) => {
                let why = format!(
                    "its longest frame is of {max_frame} bytes and here of {max}: set the same \
                     max_message_bytes at both"
                );
                refuse(mesh, now, id, &why);
                Ok(())
            }
            Frame::Welcome { life, your_life, received, interest, .. } => {
                welcome(mesh, now, id, (life, your_life), (received, interest))
            }
            frame => receiving::take(mesh, now, id, frame),
        });
        if let Err(what) = result {
            return refuse(mesh, now, id, what);
        }
    }
    sending::pump_all(mesh, now);
}

/// Somebody says who it is.
fn hello(
    mesh: &mut Mesh,
    now: Duration,
    id: ConnectionId,
    (from, to): (&str, &str),
    nonce: &[u8; NONCE_BYTES],
) -> Result<(), &'static str> {
    let found = mesh.find(from);
    let Some(link) = mesh.links.get(&id) else { return Ok(()) };
    if link.is_secure {
        return Err("a second greeting");
    }
    if *to != *mesh.settings.name {
        return Err("it takes this member for another: look at the names of both");
    }
    let Some(peer) = found else { return Err("it is no member of this mesh") };
    if link.is_dialled && link.peer != Some(peer) {
        return Err("another member answers than the one that was dialled");
    }
    let Some(member) = mesh.settings.members.get(peer) else { return Ok(()) };
    if member.revoked {
        return Err("its key is revoked");
    }
    let (is_dialled, own, key) = (link.is_dialled, link.nonce, member.key.clone());
    let name = mesh.settings.name.clone();
    if !is_dialled {
        let (from, to) = (name.clone(), member.name.clone());
        sending::send(mesh, now, id, &Frame::Hello { from, to, nonce: own });
    }
    let greetings = if is_dialled {
        Greetings { dialler: &name, listener: from, dialler_nonce: &own, listener_nonce: nonce }
    } else {
        Greetings { dialler: from, listener: &name, dialler_nonce: nonce, listener_nonce: &own }
    };
    let mac = mesh.settings.mac;
    let Some(link) = mesh.links.get_mut(&id) else { return Ok(()) };
    link.channel.secure(mac, &key, &greetings, is_dialled);
    link.is_secure = true;
    link.peer = Some(peer);
    let Some(it) = mesh.peers.get(peer) else { return Ok(()) };
    let (your_life, received, interest) = (it.life, it.received, it.interest);
    let life = mesh.me.life;
    let max_frame = mesh.settings.max_frame_bytes as u64;
    let welcome = Frame::Welcome { life, your_life, received, interest, max_frame };
    sending::send(mesh, now, id, &welcome);
    Ok(())
}

/// Whether frames of both sides may be equally long: otherwise one that the other side does not
/// take would end each connection, for ever. A stranger is refused for what it is.
fn fits(mesh: &Mesh, id: ConnectionId, max_frame: u64) -> bool {
    let is_stranger = mesh.links.get(&id).is_none_or(|link| !link.is_secure || link.is_known);
    is_stranger || max_frame == mesh.settings.max_frame_bytes as u64
}

/// Somebody is who it says, as the frame's MAC shows.
fn welcome(
    mesh: &mut Mesh,
    now: Duration,
    id: ConnectionId,
    (life, of_life): (u64, u64),
    (received, known): (u64, u64),
) -> Result<(), &'static str> {
    let Some(link) = mesh.links.get(&id) else { return Ok(()) };
    let (is_secure, is_known, is_dialled) = (link.is_secure, link.is_known, link.is_dialled);
    let Some(peer) = link.peer.filter(|_| is_secure && !is_known) else {
        return Err("a welcome at the wrong time");
    };
    if life == 0 {
        return Err("a member whose life has no number");
    }
    let received = if of_life == mesh.me.life { received } else { 0 };
    if received > mesh.seq {
        return Err(
            "it has more of this member's log than there is: it lies, or the store here is \
                    an old copy, which is to be removed",
        );
    }
    if !takes_over(mesh, now, peer, is_dialled) {
        return Err("there is a connection with it already");
    }
    if mesh.peers.get(peer).is_some_and(|peer| peer.life != life) {
        begins_anew(mesh, peer, life);
    }
    if let Some(link) = mesh.links.get_mut(&id) {
        link.is_known = true;
    }
    if let Some(it) = mesh.peers.get_mut(peer) {
        it.link = Some(id);
        it.dial_at = None;
        it.failures = 0;
        it.sent = received.max(it.acked);
        it.sent_states = received;
        it.held.clear();
        it.wants.clear();
        it.repairs.clear();
        it.staged = None;
    }
    interest::greet(mesh, now, id, if of_life == mesh.me.life { known } else { 0 });
    sending::status(mesh, now, id);
    mesh.tick_at.get_or_insert(now);
    Ok(())
}

/// Of two connections with a member the one counts that the first of the two names has made, and
/// of two of these the later one.
fn takes_over(mesh: &mut Mesh, now: Duration, peer: usize, is_dialled: bool) -> bool {
    let is_first = *mesh.settings.name < *mesh.name(peer);
    let Some(old) = mesh.peers.get(peer).and_then(|peer| peer.link) else { return true };
    let is_old_better = mesh.links.get(&old).is_some_and(|link| link.is_dialled == is_first);
    if is_old_better && is_dialled != is_first {
        return false;
    }
    end(mesh, now, old);
    mesh.outputs.push_back(Output::Close(old));
    true
}

/// A member has lost what it held. What was sent to it may have arrived: what is to arrive exactly
/// once is not sent again.
fn begins_anew(mesh: &mut Mesh, at: usize, life: u64) {
    interest_of_another_life(mesh, at);
    let Some(peer) = mesh.peers.get_mut(at) else { return };
    let in_doubt =
        |waiting: &Waiting| waiting.was_sent && waiting.publication.grade == Grade::ExactlyOnce;
    let gone = peer.queue.take_if(in_doubt);
    peer.life = life;
    (peer.received, peer.claimed) = (0, 0);
    let acked = peer.acked;
    for (seq, old) in gone {
        mesh.tell(&old.publication, at, Progress::Dropped(Drop::SessionEnded));
        release(mesh, seq);
    }
    let name = mesh.name(at);
    mesh.keep(keeping::peer(&name, life, 0, acked));
}

/// What it wants it will say; what waits for it waits on.
fn interest_of_another_life(mesh: &mut Mesh, at: usize) {
    if mesh.peers.get(at).is_some_and(|peer| peer.interest > 0 || !peer.filters.is_empty()) {
        interest::forget(mesh, at);
    }
}

/// The other side says why nothing follows.
fn refused_there(mesh: &mut Mesh, now: Duration, id: ConnectionId, why: &str) {
    let who = who(mesh, id);
    let why = format!("{who} refuses: {}", why.escape_debug());
    mesh.outputs.push_back(Output::Refused(Some(id), why));
    end(mesh, now, id);
    mesh.outputs.push_back(Output::Close(id));
}

fn who(mesh: &Mesh, id: ConnectionId) -> String {
    let peer = mesh.links.get(&id).and_then(|link| link.peer);
    peer.map_or_else(|| "a connection".to_owned(), |peer| format!("the member {}", mesh.name(peer)))
}

/// A connection ends for what came over it.
pub(super) fn refuse(mesh: &mut Mesh, now: Duration, id: ConnectionId, what: &str) {
    let who = who(mesh, id);
    mesh.outputs.push_back(Output::Refused(Some(id), format!("{who}: {what}")));
    sending::send(mesh, now, id, &Frame::Refused { why: what.to_owned() });
    end(mesh, now, id);
    mesh.outputs.push_back(Output::Close(id));
}

/// A connection has ended.
pub(super) fn lost(mesh: &mut Mesh, now: Duration, id: ConnectionId) {
    end(mesh, now, id);
}

fn end(mesh: &mut Mesh, now: Duration, id: ConnectionId) {
    let Some(link) = mesh.links.remove(&id) else { return };
    let Some(at) = link.peer else { return };
    let Some(peer) = mesh.peers.get_mut(at) else { return };
    if peer.link != Some(id) {
        if link.is_dialled {
            failed(mesh, now, at);
        }
        return;
    }
    peer.link = None;
    peer.wants.clear();
    peer.repairs.clear();
    let gone = peer.queue.take_if(Waiting::is_fleeting);
    for (_, old) in gone {
        mesh.tell(&old.publication, at, Progress::Dropped(Drop::SessionEnded));
    }
    mesh.asked.retain(|_, of| *of != at);
    failed(mesh, now, at);
}

/// The broker ends: the others learn of it by the end of the connections.
pub(super) fn close(mesh: &mut Mesh, now: Duration) {
    let all: Vec<ConnectionId> = mesh.links.keys().copied().collect();
    mesh.peers.iter_mut().for_each(|peer| peer.dial_at = None);
    for id in all {
        end(mesh, now, id);
        mesh.outputs.push_back(Output::Close(id));
    }
    mesh.peers.iter_mut().for_each(|peer| peer.dial_at = None);
}
