//! What the broker says of itself, below `$SYS`.

use std::time::Duration;

use super::{Core, Sizes};
use crate::ids::Protocol;
use crate::publication::Publication;

/// Publishes the topics that brokers have come to share, retained.
pub(super) fn publish_sys(core: &mut Core, now: Duration) {
    let counts = core.telling.counts;
    let uptime = now.saturating_sub(core.started.unwrap_or(now)).as_secs();
    let Sizes { retained: topics, retained_bytes: bytes, .. } = core.sizes();
    let sessions = core.sessions.len() as u64;
    let dropped: u64 = counts.dropped.iter().sum();
    let version = concat!("longwire ", env!("CARGO_PKG_VERSION")).to_owned();
    let of = |number: u64| number.to_string();
    let values = [
        ("version", version),
        ("uptime", format!("{uptime} seconds")),
        ("clients/total", of(sessions)),
        ("clients/connected", of(counts.connected)),
        ("clients/disconnected", of(sessions.saturating_sub(counts.connected))),
        ("messages/received", of(counts.published)),
        ("messages/sent", of(counts.delivered)),
        ("publish/bytes/received", of(counts.published_bytes)),
        ("publish/bytes/sent", of(counts.delivered_bytes)),
        ("publish/messages/dropped", of(dropped)),
        ("retained messages/count", of(topics as u64)),
        ("store/messages/bytes", of((bytes + core.total_bytes) as u64)),
        ("subscriptions/count", of(core.index.len() as u64)),
    ];
    for (name, value) in values {
        let topic = format!("$SYS/broker/{name}");
        let is_same =
            core.retained.get(&topic).is_some_and(|known| known.payload == value.as_bytes());
        if is_same {
            continue;
        }
        let mut publication = Publication::new(Protocol::Broker, topic, value.into_bytes());
        publication.retain = true;
        // A bound of retained messages may refuse it, which is told when clients meet it.
        let _ = core.publish(now, publication);
    }
}
