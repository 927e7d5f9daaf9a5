//! What an adapter of a protocol over connections does when something happens.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;

use crate::ids::{ConnectionId, SessionId};
use crate::outputs::Context;

/// An adapter; each call has a connection of its own protocol.
pub(crate) trait Adapter {
    /// A connection was accepted; its certificate says who the client is, if it has one.
    fn connected(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        certified: Option<Arc<str>>,
    );

    /// Bytes came over a connection.
    fn received(&mut self, context: &mut Context<'_>, id: ConnectionId, bytes: BytesMut);

    /// The answer to [`crate::Output::Login`].
    fn known(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        user: Result<Option<Arc<str>>, ()>,
    );

    /// A session has something to take.
    fn deliver(&mut self, context: &mut Context<'_>, session: SessionId, id: ConnectionId);

    /// A connection has room again.
    fn writable(&mut self, context: &mut Context<'_>, id: ConnectionId);

    /// A connection has ended.
    fn lost(&mut self, context: &mut Context<'_>, id: ConnectionId);

    /// Something was written to the store.
    fn committed(&mut self, context: &mut Context<'_>);

    /// Something is due.
    fn wake(&mut self, context: &mut Context<'_>);

    /// When something is due.
    fn wake_at(&self) -> Option<Duration>;

    /// The broker ends.
    fn close(&mut self, context: &mut Context<'_>);
}
