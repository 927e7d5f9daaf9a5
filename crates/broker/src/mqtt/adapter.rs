//! MQTT as one of the adapters.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;

use super::Mqtt;
use crate::adapter::Adapter;
use crate::ids::{ConnectionId, SessionId};
use crate::outputs::Context;

impl Adapter for Mqtt {
    fn connected(&mut self, now: Duration, id: ConnectionId, certified: Option<Arc<str>>) {
        self.connected(now, id, certified);
    }

    fn received(&mut self, context: &mut Context<'_>, id: ConnectionId, bytes: BytesMut) {
        self.received(context, id, bytes);
    }

    fn known(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        user: Result<Option<Arc<str>>, ()>,
    ) {
        self.known(context, id, user);
    }

    fn deliver(&mut self, context: &mut Context<'_>, session: SessionId, id: ConnectionId) {
        self.deliver(context, session, id);
    }

    fn writable(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        self.writable(context, id);
    }

    fn lost(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        self.lost(context, id);
    }

    fn committed(&mut self, context: &mut Context<'_>) {
        self.committed(context);
    }

    fn wake(&mut self, context: &mut Context<'_>) {
        self.wake(context);
    }

    fn wake_at(&self) -> Option<Duration> {
        self.wake_at()
    }

    fn close(&mut self, context: &mut Context<'_>) {
        self.close(context);
    }
}
