//! One broker.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use bytes::BytesMut;
use longwire_broker::{
    Broker, Change, ConnectionId, Input, MqttSettings, Output, Protocol, Settings, Ticket,
};
use proto::mqtt::Version;

use super::client::{Chance, Client};
use super::{MAX_STEPS, MESSAGES, check};

struct World {
    chance: Chance,
    now: Duration,
    broker: Broker,
    /// What the disk has.
    disk: Vec<Change>,
    writing: Option<(Ticket, Vec<Change>)>,
    clients: [Client; 2],
    last: u64,
}

fn broker() -> Broker {
    let settings = Settings { durable: true, sys_interval: Duration::ZERO, ..Settings::default() };
    Broker::new(settings, MqttSettings::default())
}

impl World {
    fn new(seed: u64) -> Self {
        let version = |odd| if odd { Version::V5 } else { Version::V311 };
        Self {
            chance: Chance(seed),
            now: Duration::from_secs(1_000_000),
            broker: broker(),
            disk: Vec::new(),
            writing: None,
            clients: [
                Client::new("publisher", version(seed.is_multiple_of(2))),
                Client::new("subscriber", version(seed.is_multiple_of(3))),
            ],
            last: 0,
        }
    }

    fn input(&mut self, input: Input) {
        self.broker.handle_input(self.now, input);
        let mut more = VecDeque::new();
        loop {
            while let Some(output) = self.broker.poll_output() {
                match output {
                    Output::Transmit { connection, bytes } => {
                        let len = bytes.len();
                        if let Some(client) = self.client(connection) {
                            client.pipe.down.push_back(bytes);
                        }
                        more.push_back(Input::Sent { connection, bytes: len });
                    }
                    Output::Close { connection } => {
                        if let Some(client) = self.client(connection) {
                            client.connection = None;
                        }
                    }
                    Output::Login(login) => {
                        let connection = login.connection;
                        more.push_back(Input::Known { connection, user: Ok(None) });
                    }
                    Output::Persist { ticket, changes } => {
                        assert!(self.writing.is_none(), "one batch at a time");
                        self.writing = Some((ticket, changes));
                    }
                    _ => {}
                }
            }
            let Some(next) = more.pop_front() else { return };
            self.broker.handle_input(self.now, next);
        }
    }

    fn client(&mut self, connection: ConnectionId) -> Option<&mut Client> {
        self.clients.iter_mut().find(|client| client.connection == Some(connection))
    }

    fn dial(&mut self, which: usize) {
        self.last += 1;
        let connection = ConnectionId(self.last);
        self.clients[which].connect(connection);
        let protocol = Protocol::Mqtt;
        self.input(Input::Connected { connection, protocol, certified: None });
    }

    fn drop_connection(&mut self, which: usize, is_known: bool) {
        let Some(connection) = self.clients[which].connection.take() else { return };
        self.clients[which].is_up = false;
        // Otherwise the broker learns of it when the client comes back.
        if is_known {
            self.input(Input::Lost { connection });
        }
    }

    fn crash(&mut self) {
        // What was being written is there as a whole, or not at all.
        if let Some((_, changes)) = self.writing.take()
            && self.chance.one_in(2)
        {
            self.disk.extend(changes);
        }
        self.broker = broker();
        let unknown = self.broker.restore(self.now, self.disk.iter().cloned());
        assert_eq!(unknown, 0);
        for client in &mut self.clients {
            client.connection = None;
            client.is_up = false;
        }
    }

    /// One thing happens. With `calm` nothing fails.
    fn step(&mut self, calm: bool) {
        self.now += Duration::from_millis(self.chance.below(50));
        if !calm && self.chance.one_in(60) {
            return self.crash();
        }
        if self.chance.one_in(6)
            && let Some((ticket, changes)) = self.writing.take()
        {
            self.disk.extend(changes);
            return self.input(Input::Persisted { ticket });
        }
        let which = usize::from(self.chance.one_in(2));
        if self.clients[which].connection.is_none() {
            return self.dial(which);
        }
        if !calm && self.chance.one_in(25) {
            let is_known = self.chance.one_in(2);
            return self.drop_connection(which, is_known);
        }
        let client = &mut self.clients[which];
        match self.chance.below(4) {
            0 if which == 0 && client.is_up && client.next < MESSAGES => client.publish(),
            1 if which == 1 && client.is_up && !client.subscribed => client.subscribe("t/+"),
            2 => client.read(),
            _ => {
                if let (Some(bytes), Some(connection)) =
                    (client.pipe.up.pop_front(), client.connection)
                {
                    let bytes = BytesMut::from(&bytes[..]);
                    self.input(Input::Received { connection, bytes });
                }
            }
        }
    }

    fn is_done(&self) -> bool {
        let [publisher, subscriber] = &self.clients;
        let numbers: BTreeSet<u64> = subscriber.came.iter().map(|(_, number)| *number).collect();
        publisher.next == MESSAGES
            && publisher.unacked.is_empty()
            && numbers.len() as u64 == MESSAGES
    }
}

pub(crate) fn run(seed: u64) {
    let mut world = World::new(seed);
    // The subscriber is there before anything is published.
    for _ in 0..MAX_STEPS {
        if world.clients[1].subscribed {
            break;
        }
        world.clients[0].next = MESSAGES;
        world.step(false);
    }
    world.clients[0].next = 0;
    for _ in 0..400 {
        world.step(false);
    }
    for step in 0.. {
        if world.is_done() {
            break;
        }
        assert!(step < MAX_STEPS, "seed {seed}: {:?} of {MESSAGES}", world.clients[1].came);
        world.step(true);
    }
    check(seed, &world.clients[1].came);
}
