//! All clients that are connected, and what is due of each.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use proto::mqttsn::Packet;
use proto::timers::Timers;

use super::client::Client;
use super::refuse;
use super::settings::Settings;
use super::source::{Source, encode};
use crate::ids::{ConnectionId, Ticket};
use crate::outputs::Context;

/// Answers of one client that wait for the store; for more there is none, and it asks again.
const MAX_ANSWERS: usize = 256;

/// Something that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// Something should have come of a client.
    Patience(ConnectionId),
    /// A client has not answered.
    Flight(ConnectionId),
    /// More may leave for a client.
    Pause(ConnectionId),
    /// A listener says that it is there.
    Advertise(u16),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Clients {
    pub(super) settings: Settings,
    pub(super) timers: Timers<Due>,
    /// Clients with an answer that waits for the store.
    pub(super) holding: BTreeSet<ConnectionId>,
    /// By the numbers of their connections.
    pub(super) table: BTreeMap<ConnectionId, Client>,
    by_source: BTreeMap<Source, ConnectionId>,
    /// How many of them each address has.
    by_address: BTreeMap<IpAddr, usize>,
    /// Those that have said no more than CONNECT, and since when.
    unconfirmed: BTreeSet<(Duration, ConnectionId)>,
}

impl Clients {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            timers: Timers::default(),
            holding: BTreeSet::new(),
            table: BTreeMap::new(),
            by_source: BTreeMap::new(),
            by_address: BTreeMap::new(),
            unconfirmed: BTreeSet::new(),
        }
    }

    pub(super) fn get(&self, id: ConnectionId) -> Option<&Client> {
        self.table.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Client> {
        self.table.get_mut(&id)
    }

    /// The connection of who is there.
    pub(super) fn at(&self, source: &Source) -> Option<ConnectionId> {
        self.by_source.get(source).copied()
    }

    /// Who is there.
    pub(super) fn client_at(&self, source: &Source) -> Option<&Client> {
        self.at(source).and_then(|id| self.get(id))
    }

    pub(super) fn ids(&self) -> Vec<ConnectionId> {
        self.table.keys().copied().collect()
    }

    /// One more is connected; nobody else is where it is.
    pub(super) fn insert(&mut self, id: ConnectionId, client: Client, patience: Duration) {
        let Client { source, since, .. } = &client;
        self.timers.set(Due::Patience(id), Some(since.saturating_add(patience)));
        *self.by_address.entry(source.address.ip()).or_default() += 1;
        self.unconfirmed.insert((*since, id));
        self.by_source.insert(source.clone(), id);
        self.table.insert(id, client);
    }

    /// Whether there is room for one more, for which one that has said no more than CONNECT may
    /// have to go.
    pub(super) fn has_place(&mut self, context: &mut Context<'_>, source: &Source) -> bool {
        if self.by_source.contains_key(source) {
            return true;
        }
        let of_address = self.by_address.get(&source.address.ip()).copied().unwrap_or(0);
        if of_address >= self.settings.max_clients_per_address {
            return false;
        }
        if self.table.len() < self.settings.max_clients {
            return true;
        }
        let Some((_, oldest)) = self.unconfirmed.first().copied() else { return false };
        self.lose(context, oldest, "others want its place, and it has said no more than CONNECT");
        true
    }

    /// Something came of a client that is no CONNECT.
    pub(super) fn heard(&mut self, now: Duration, id: ConnectionId) {
        let Some(client) = self.table.get_mut(&id) else { return };
        client.heard = now;
        if !std::mem::replace(&mut client.is_confirmed, true) {
            self.unconfirmed.remove(&(client.since, id));
        }
    }

    /// Nothing has come of a client for longer than it said.
    pub(super) fn is_quiet(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        let longest = context.core.settings().max_keep_alive;
        let Some(client) = self.get(id) else { return };
        let due = client.heard.saturating_add(client.patience(longest));
        if due > context.now {
            self.timers.set(Due::Patience(id), Some(due));
        } else {
            self.lose(context, id, "nothing came for one and a half times what it had said");
        }
    }

    /// A client is lost, and its will stands (MQTT-SN 1.2 §6.14).
    pub(super) fn lose(&mut self, context: &mut Context<'_>, id: ConnectionId, why: &str) {
        let Some(client) = self.forget(id) else { return };
        refuse(context, Some(id), format!("{} is lost: {why}", client.connect.name));
        context.core.close(context.now, client.session, id, false, client.expiry());
    }

    /// A client is none any more; what the core knows of it stays.
    pub(super) fn forget(&mut self, id: ConnectionId) -> Option<Client> {
        let client = self.table.remove(&id)?;
        if self.by_source.get(&client.source) == Some(&id) {
            self.by_source.remove(&client.source);
        }
        let ip = client.source.address.ip();
        if let Some(count) = self.by_address.get_mut(&ip) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.by_address.remove(&ip);
            }
        }
        self.unconfirmed.remove(&(client.since, id));
        for due in [Due::Patience(id), Due::Flight(id), Due::Pause(id)] {
            self.timers.set(due, None);
        }
        self.holding.remove(&id);
        Some(client)
    }

    /// Keeps a topic id with the session.
    pub(super) fn keep_topic(&self, context: &mut Context<'_>, id: ConnectionId, topic_id: u16) {
        if let Some(client) = self.get(id) {
            let kept = client.topics.kept(topic_id);
            context.core.note(client.session, topic_id.into(), kept);
        }
    }

    /// Sends an answer.
    pub(super) fn answer(&self, context: &mut Context<'_>, id: ConnectionId, packet: &Packet<'_>) {
        if let Some(client) = self.get(id) {
            client.source.send(context.outputs, packet);
        }
    }

    /// Sends an answer once the store has what it is for, behind those before it.
    pub(super) fn hold(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        ticket: Ticket,
        packet: &Packet<'_>,
    ) {
        let Some(client) = self.table.get_mut(&id) else { return };
        if client.held.is_empty() && ticket <= context.core.journal.done() {
            return client.source.send(context.outputs, packet);
        }
        if client.held.len() < MAX_ANSWERS
            && let Some(message) = encode(packet)
        {
            client.held.push_back((ticket, message));
            self.holding.insert(id);
        }
    }
}
