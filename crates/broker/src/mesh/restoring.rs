//! What was kept is what the member holds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::clock::Clock;
use super::keeping::{self, Record};
use super::machine::{Mesh, publish_as};
use super::peer::Waiting;
use super::states::Held;
use super::wire::{Dot, Writer};
use crate::publication::Publication;

/// The lowest stamp of a state.
const OLDEST: u64 = 1;

/// See [`Mesh::restore`].
pub(super) fn restore(
    mesh: &mut Mesh,
    now: Duration,
    records: impl IntoIterator<Item = (Arc<str>, Bytes)>,
    retained: impl IntoIterator<Item = Arc<Publication>>,
) -> usize {
    let mut unknown = 0;
    let mut values: BTreeMap<Arc<str>, Arc<Publication>> = retained
        .into_iter()
        .filter(|value| !value.topic.starts_with('$'))
        .map(|value| (value.topic.clone(), value))
        .collect();
    let (mut waiting, mut is_new) = (Vec::new(), true);
    for (key, value) in records {
        match keeping::read(&key, &value) {
            Some(Record::Own { life, seq, stamp }) => {
                mesh.me.life = life;
                is_new = false;
                mesh.resume(seq);
                mesh.clock = Clock::new(stamp);
            }
            Some(Record::State { topic, dot, stamp, is_ended }) => {
                let value = values.remove(&topic).filter(|_| !is_ended);
                mesh.clock.hear(stamp);
                let is_lost = !is_ended && value.is_none();
                let held = Held { dot, stamp, value };
                let forgotten = match is_lost {
                    true => mesh.states.lose(topic, held),
                    false => mesh.states.put(topic, held),
                };
                for forgotten in forgotten {
                    mesh.drop_record(keeping::state_key(&forgotten));
                }
            }
            Some(Record::Log { dot }) => reach(mesh, &dot),
            Some(Record::Waiting { seq, stamp, members, publication }) => {
                waiting.push((seq, stamp, members, Arc::new(publication)));
            }
            Some(record) => {
                if !of_member(mesh, record) {
                    mesh.drop_record(key.to_string());
                }
            }
            None => unknown += 1,
        }
    }
    let me = Dot { writer: mesh.me.clone(), seq: mesh.seq };
    reach(mesh, &me);
    for (seq, stamp, members, publication) in waiting {
        wait_again(mesh, seq, stamp, &members, &publication);
    }
    if is_new {
        let record = keeping::own(mesh.me.life, mesh.seq, mesh.clock.last());
        mesh.keep(record);
    }
    // What is retained here and was not yet when this one became a member: when it was written is
    // not known, so what another member has of its topic counts.
    for publication in values.values() {
        publish_as(mesh, now, publication, Some(OLDEST));
    }
    unknown
}

fn reach(mesh: &mut Mesh, dot: &Dot) {
    mesh.states.reach(dot);
    let known = mesh.claimed.entry(dot.writer.clone()).or_default();
    *known = dot.seq.max(*known);
}

/// A record of a member; whether it is one still.
fn of_member(mesh: &mut Mesh, record: Record) -> bool {
    let name = match &record {
        Record::Peer { name, .. } | Record::Interest { name, .. } | Record::Filter { name, .. } => {
            name.clone()
        }
        _ => return false,
    };
    let Some(at) = mesh.find(&name) else { return false };
    if mesh.settings.members.get(at).is_some_and(|member| member.revoked) {
        return false;
    }
    let Some(peer) = mesh.peers.get_mut(at) else { return false };
    match record {
        Record::Peer { life, received, acked, .. } => {
            (peer.life, peer.received, peer.claimed, peer.acked) =
                (life, received, received, acked);
            let writer = Writer { member: name, life };
            reach(mesh, &Dot { writer, seq: received });
        }
        Record::Interest { version, .. } => peer.interest = version,
        Record::Filter { filter, .. } => {
            peer.filters.insert(filter.clone());
            mesh.remote.add(at, &filter);
        }
        _ => return false,
    }
    true
}

/// A publication waits for those who have not acknowledged it.
fn wait_again(
    mesh: &mut Mesh,
    seq: u64,
    stamp: u64,
    members: &[Arc<str>],
    publication: &Arc<Publication>,
) {
    let mut count = 0;
    for name in members {
        let Some(at) = mesh.find(name) else { continue };
        let is_revoked = mesh.settings.members.get(at).is_some_and(|member| member.revoked);
        let Some(peer) = mesh.peers.get_mut(at) else { continue };
        if seq > peer.acked && !is_revoked {
            // Whether it was sent is not known.
            let publication = publication.clone();
            peer.queue.push(seq, Waiting { stamp, publication, was_sent: true });
            count += 1;
        }
    }
    match count {
        0 => mesh.drop_record(keeping::waiting_key(seq)),
        _ => {
            mesh.kept.insert(seq, count);
        }
    }
}
