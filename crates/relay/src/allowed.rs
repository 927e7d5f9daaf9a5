//! What the gateway lets edges reach: it announces that at the beginning of each carrier, and again
//! when that changes, so that nothing crosses the link only to be refused. At the edge the shell
//! knows of it as long as requests go to the gateway that announced it.

use std::sync::Arc;
use std::time::Duration;

use proto::control::Allowed;
use proto::exchange::Role;

use crate::Relay;
use crate::api::Output;
use crate::ids::CarrierId;

/// In events.
const WHAT: &str = "allow list";

impl Relay {
    /// Gateway: another list holds from now on.
    pub(crate) fn allow(&mut self, now: Duration, allowed: Allowed) {
        if allowed == self.config.allowed {
            return;
        }
        self.config.allowed = allowed;
        for id in self.carriers.keys().copied().collect::<Vec<_>>() {
            self.send(now, id, self.config.allowed.part());
        }
    }

    /// Gateway: an edge has said HELLO.
    pub(crate) fn tell_allowed(&mut self, now: Duration, id: CarrierId) {
        if !self.config.allowed.patterns.is_empty() {
            self.send(now, id, self.config.allowed.part());
        }
    }

    /// Edge: the gateway announced its list. One that cannot be read takes back the one before.
    pub(crate) fn heed_allowed(&mut self, now: Duration, id: CarrierId, content: &[u8]) {
        if self.config.role == Role::Gateway {
            return self.ignore(now, id, WHAT, "an edge has none");
        }
        let reported = Allowed::decode(content);
        if let Some(carrier) = self.carriers.get_mut(&id) {
            let reported = reported.as_ref().ok().filter(|reported| !reported.patterns.is_empty());
            carrier.allowed = reported.cloned().map(Arc::new);
        }
        if let Err(error) = reported {
            self.ignore(now, id, WHAT, &error.to_string());
        }
    }

    /// Edge: reports to the shell the list of the gateway that new requests go to; nothing as long
    /// as they go to none, for the next may let through what this one does not.
    pub(crate) fn publish_allowed(&mut self) {
        let reported = self.usable().find_map(|id| self.carriers.get(&id)?.allowed.clone());
        let is_known = match (&reported, &self.published) {
            (Some(reported), Some(known)) => Arc::ptr_eq(reported, known),
            (reported, known) => reported.is_none() && known.is_none(),
        };
        if !is_known {
            self.published.clone_from(&reported);
            self.outputs.push_back(Output::Allowed(reported));
        }
    }
}
