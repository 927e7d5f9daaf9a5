//! What outlives the process, as records of a key and bytes.
//!
//! | key | record |
//! | --- | --- |
//! | `m` | life, place in the own log, last stamp |
//! | `p/NAME` | a member's life, up to where its log was taken, and this one's by it |
//! | `v/NAME/LIFE` | up to where the states of a log are known |
//! | `r/TOPIC` | writer, place and stamp of a state, and whether it was ended |
//! | `e/PLACE` | a publication that waits, and for whom |
//! | `i/NAME` | the number of a member's interest |
//! | `f/NAME/FILTER` | a filter of it |

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::states::Held;
use super::wire::{Dot, Reader, Writer, put_publication};
use crate::publication::Publication;

/// A record, read.
#[derive(Debug)]
pub(super) enum Record {
    Own { life: u64, seq: u64, stamp: u64 },
    Peer { name: Arc<str>, life: u64, received: u64, acked: u64 },
    Log { dot: Dot },
    State { topic: Arc<str>, dot: Dot, stamp: u64, is_ended: bool },
    Waiting { seq: u64, stamp: u64, members: Vec<Arc<str>>, publication: Publication },
    Interest { name: Arc<str>, version: u64 },
    Filter { name: Arc<str>, filter: Arc<str> },
}

fn numbers<const N: usize>(numbers: [u64; N]) -> Bytes {
    Bytes::copy_from_slice(numbers.map(u64::to_be_bytes).as_flattened())
}

pub(super) fn own(life: u64, seq: u64, stamp: u64) -> (String, Bytes) {
    ("m".to_owned(), numbers([life, seq, stamp]))
}

pub(super) fn peer(name: &str, life: u64, received: u64, acked: u64) -> (String, Bytes) {
    (format!("p/{name}"), numbers([life, received, acked]))
}

pub(super) fn log_key(writer: &Writer) -> String {
    format!("v/{}/{:x}", writer.member, writer.life)
}

pub(super) fn log(writer: &Writer, seq: u64) -> (String, Bytes) {
    (log_key(writer), numbers([seq]))
}

pub(super) fn state_key(topic: &str) -> String {
    format!("r/{topic}")
}

pub(super) fn state(topic: &str, held: &Held) -> (String, Bytes) {
    let Dot { writer, seq } = &held.dot;
    let mut value = vec![u8::try_from(writer.member.len()).unwrap_or(u8::MAX)];
    value.extend_from_slice(writer.member.as_bytes());
    let is_ended = u64::from(held.value.is_none());
    value.extend_from_slice(&numbers([writer.life, *seq, held.stamp, is_ended]));
    (state_key(topic), value.into())
}

pub(super) fn waiting_key(seq: u64) -> String {
    format!("e/{seq:016x}")
}

/// The deadline is kept as it is: the store's clock is this machine's.
pub(super) fn waiting(
    seq: u64,
    stamp: u64,
    members: &[Arc<str>],
    publication: &Publication,
) -> (String, Bytes) {
    let mut value = stamp.to_be_bytes().to_vec();
    value.push(u8::try_from(members.len()).unwrap_or(u8::MAX));
    for name in members {
        value.push(0);
        value.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
        value.extend_from_slice(name.as_bytes());
    }
    put_publication(&mut value, Duration::ZERO, publication);
    (waiting_key(seq), value.into())
}

pub(super) fn interest(name: &str, version: u64) -> (String, Bytes) {
    (format!("i/{name}"), numbers([version]))
}

pub(super) fn filter_key(name: &str, filter: &str) -> String {
    format!("f/{name}/{filter}")
}

/// Reads a record; `None`: it is none of this version.
pub(super) fn read(key: &str, value: &Bytes) -> Option<Record> {
    let mut from = Reader::new(value);
    let (kind, rest) = key.split_once('/').unwrap_or((key, ""));
    let record = match kind {
        "m" => {
            Record::Own { life: from.u64().ok()?, seq: from.u64().ok()?, stamp: from.u64().ok()? }
        }
        "p" => {
            let (life, received) = (from.u64().ok()?, from.u64().ok()?);
            Record::Peer { name: rest.into(), life, received, acked: from.u64().ok()? }
        }
        "v" => {
            let (member, life) = rest.rsplit_once('/')?;
            let life = u64::from_str_radix(life, 16).ok()?;
            let writer = Writer { member: member.into(), life };
            Record::Log { dot: Dot { writer, seq: from.u64().ok()? } }
        }
        "r" => {
            let member = short_name(&mut from)?;
            let writer = Writer { member, life: from.u64().ok()? };
            let dot = Dot { writer, seq: from.u64().ok()? };
            let (stamp, ended) = (from.u64().ok()?, from.u64().ok()?);
            Record::State { topic: rest.into(), dot, stamp, is_ended: ended != 0 }
        }
        "e" => {
            let seq = u64::from_str_radix(rest, 16).ok()?;
            let (stamp, count) = (from.u64().ok()?, from.u8().ok()?);
            let names = (0..count).map(|_| from.name().ok());
            let members = names.collect::<Option<Vec<_>>>()?;
            let publication = from.publication(Duration::ZERO).ok()?;
            Record::Waiting { seq, stamp, members, publication }
        }
        "i" => Record::Interest { name: rest.into(), version: from.u64().ok()? },
        "f" => {
            // A name of a member may have a slash; a filter of it is behind the length.
            let at = usize::try_from(from.u64().ok()?).ok()?;
            let (name, filter) = rest.split_at_checked(at)?;
            Record::Filter { name: name.into(), filter: filter.strip_prefix('/')?.into() }
        }
        _ => return None,
    };
    from.end().ok()?;
    Some(record)
}

pub(super) fn filter(name: &str, filter: &str) -> (String, Bytes) {
    (filter_key(name, filter), numbers([name.len() as u64]))
}

fn short_name(from: &mut Reader) -> Option<Arc<str>> {
    let len = from.u8().ok()?;
    from.short_text(len).ok()
}
