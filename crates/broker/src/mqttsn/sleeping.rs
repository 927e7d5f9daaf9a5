//! Clients leave, sleep, and wake up (MQTT-SN 1.2 §6.11, §6.12, §6.14).

use std::time::Duration;

use proto::mqttsn::Packet;

use super::client::Phase;
use super::clients::Due;
use super::{MAX_GONE, MqttSn};
use crate::ids::ConnectionId;
use crate::outputs::Context;

/// Publications that a client gets in one go where it is not known how many wait.
const MAX_AWAKE: usize = 10_000;

impl MqttSn {
    /// A DISCONNECT came: the client goes, or sleeps for so long.
    pub(super) fn disconnect(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        duration_s: Option<u16>,
    ) {
        match duration_s {
            None | Some(0) => self.leave(context, id),
            Some(duration_s) => {
                self.sleep(context, id, Duration::from_secs(duration_s.into()));
            }
        }
    }

    /// MQTT-SN 1.2 §6.12: its will is of no use, but is kept (MQTT-SN 1.2 §6.3).
    fn leave(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        let Some(client) = self.clients.forget(id) else { return };
        client.source.send(context.outputs, &Packet::Disconnect { duration_s: None });
        context.core.close(context.now, client.session, id, true, None);
        if self.gone.len() >= MAX_GONE {
            self.gone.pop_front();
        }
        self.gone.push_back(client.source);
    }

    fn sleep(&mut self, context: &mut Context<'_>, id: ConnectionId, duration: Duration) {
        let max = self.clients.settings.max_sleep;
        let Some(client) = self.clients.get_mut(id) else { return };
        (client.phase, client.sleep) = (Phase::Asleep, duration.min(max));
        let due = client.heard.saturating_add(client.patience(Duration::ZERO));
        context.core.set_asleep(client.session, true);
        client.source.send(context.outputs, &Packet::Disconnect { duration_s: None });
        // What it has not answered is sent again when it wakes up.
        self.clients.timers.set(Due::Flight(id), None);
        self.clients.timers.set(Due::Pause(id), None);
        self.clients.timers.set(Due::Patience(id), Some(due));
    }

    /// A PINGREQ came: a sign of life, or a sleeping client asks for what waits.
    pub(super) fn ping(&mut self, context: &mut Context<'_>, id: ConnectionId, client_id: &str) {
        let Some(client) = self.clients.get_mut(id) else { return };
        match client.phase {
            Phase::Asleep if *client.connect.name == *client_id => {
                let (waiting, _) = context.core.waiting(client.session);
                let has_more = context.core.has_more(client.session);
                let under_way = usize::from(context.core.waits(client.session));
                let left = if has_more { MAX_AWAKE } else { waiting + under_way };
                client.phase = Phase::Awake { left };
                context.core.set_asleep(client.session, false);
                self.clients.resume(context, id);
                self.clients.pump(context, id);
            }
            // The answer comes when all that waited has been sent.
            Phase::Awake { .. } if *client.connect.name == *client_id => {}
            _ => client.source.send(context.outputs, &Packet::PingResp),
        }
    }
}
