//! Many at once: retained messages, a queue for one who is away, connections.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::client::{Came, Client};
use crate::servers::Server;

/// Publications of QoS 1 that wait for an acknowledgement at once.
const WINDOW: usize = 100;
/// Bytes of a payload.
const PAYLOAD_BYTES: usize = 100;
/// How long nothing may come before the rest is given up.
const PATIENCE: Duration = Duration::from_secs(5);

/// What arrived of what was kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    /// How long it took to publish them.
    pub(crate) publish_s: f64,
    /// How long until the last had arrived.
    pub(crate) arrive_s: f64,
    /// Bytes of memory for each.
    pub(crate) bytes_each: f64,
}

/// So many retained messages, which all arrive for a new subscription.
pub(crate) fn retained(server: &Server, count: usize) -> Result<Kept> {
    let before = server.resident_bytes()?;
    let began = Instant::now();
    publish(server, count, true)?;
    let publish_s = began.elapsed().as_secs_f64();
    let bytes = server.resident_bytes()?.saturating_sub(before);
    let mut client = Client::connect(server.address, "bench-kept", true)?;
    let began = Instant::now();
    client.ask("kept/#", 1);
    let mut seen = vec![false; count];
    collect(&mut client, count, server, |number| match seen.get_mut(number) {
        Some(seen) if !*seen => {
            *seen = true;
            Ok(())
        }
        _ => bail!("retained message {number} arrives twice"),
    })?;
    let arrive_s = began.elapsed().as_secs_f64();
    client.leave()?;
    Ok(Kept { publish_s, arrive_s, bytes_each: bytes as f64 / count as f64 })
}

/// So many messages for a client that is away, which all arrive in order when it is back.
pub(crate) fn queued(server: &Server, count: usize) -> Result<Kept> {
    let mut client = Client::connect(server.address, "bench-away", false)?;
    client.subscribe("kept/#", 1)?;
    client.leave()?;
    let before = server.resident_bytes()?;
    let began = Instant::now();
    publish(server, count, false)?;
    let publish_s = began.elapsed().as_secs_f64();
    let bytes = server.resident_bytes()?.saturating_sub(before);
    let began = Instant::now();
    let mut expected = 0;
    let mut client = Client::open(server.address, "bench-away", false)?;
    collect(&mut client, count, server, |number| {
        if number != expected {
            bail!("message {number} arrives where {expected} is next");
        }
        expected += 1;
        Ok(())
    })?;
    let arrive_s = began.elapsed().as_secs_f64();
    client.leave()?;
    Ok(Kept { publish_s, arrive_s, bytes_each: bytes as f64 / count as f64 })
}

/// Bytes of memory for each of so many connections with a subscription.
pub(crate) fn connections(server: &Server, count: usize) -> Result<f64> {
    let before = server.resident_bytes()?;
    let mut clients = Vec::with_capacity(count);
    for number in 0..count {
        let mut client = Client::connect(server.address, &format!("unit-{number}"), true)?;
        client.subscribe(&format!("unit/{number}/orders"), 1)?;
        clients.push(client.shrink());
    }
    let after = server.resident_bytes()?;
    Ok(after.saturating_sub(before) as f64 / count as f64)
}

/// Publishes with QoS 1, and waits until all are acknowledged.
fn publish(server: &Server, count: usize, retain: bool) -> Result<()> {
    let mut client = Client::connect(server.address, "bench-source", true)?;
    let (mut sent, mut acknowledged) = (0, 0);
    let mut payload = [b'x'; PAYLOAD_BYTES];
    while acknowledged < count {
        while sent < count && sent - acknowledged < WINDOW {
            payload[..8].copy_from_slice(&(sent as u64).to_be_bytes());
            let topic = if retain { format!("kept/unit/{sent}") } else { "kept/unit".to_owned() };
            client.publish(&topic, &payload, 1, retain);
            sent += 1;
        }
        client.wait(|came| {
            acknowledged += usize::from(matches!(came, Came::Acknowledged));
            true
        })?;
    }
    client.leave()
}

/// Takes publications until there are so many.
fn collect(
    client: &mut Client,
    count: usize,
    server: &Server,
    mut take: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    let name = server.kind.name();
    let mut arrived = 0;
    while arrived < count {
        client.flush_all()?;
        let until = Instant::now() + PATIENCE;
        client
            .wait_readable(until)
            .with_context(|| format!("{name}: {} of {count} messages are lost", count - arrived))?;
        client.read(|came| {
            if let Came::Publish(payload) = came {
                let number = payload.first_chunk().map_or(u64::MAX, |it| u64::from_be_bytes(*it));
                take(usize::try_from(number).unwrap_or(usize::MAX)).context(name)?;
                arrived += 1;
            }
            Ok(())
        })?;
    }
    client.flush_all()
}
