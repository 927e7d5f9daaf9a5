//! What happened, in the log.

use broker::Event;

/// Writes an event to the log.
pub(crate) fn event(event: &Event) {
    match event {
        Event::Opened { client, connection, resumed } => {
            tracing::info!(%client, connection = connection.0, resumed, "a client is here");
        }
        Event::Closed { client, orderly } => {
            tracing::info!(%client, orderly, "a client has gone");
        }
        Event::Ended { client } => tracing::debug!(%client, "a session has ended"),
        Event::Refused { protocol, connection, why } => {
            let connection = connection.map(|connection| connection.0);
            tracing::info!(%protocol, connection, "refused: {why}");
        }
        Event::Published { id, topic, protocol, bytes, receivers } => {
            tracing::trace!(id, %topic, %protocol, bytes, receivers, "a publication");
        }
        Event::Dropped { id, topic, client, why } => {
            let client = client.as_ref().map(ToString::to_string);
            tracing::debug!(id, %topic, client, why = why.name(), "a publication was dropped");
        }
    }
}
