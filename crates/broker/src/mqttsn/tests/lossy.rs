//! Clients and a broker over a link that loses, doubles and reorders, in virtual time.

use std::collections::BTreeMap;

use proto::mqttsn::client::{self, Action, Client, Name};

use super::*;

/// Enough that each kind of trouble meets each message.
const SEEDS: u64 = 500;
/// Of each level.
const PUBLICATIONS: u64 = 6;
/// Long after the last of everybody's tries.
const MAX_TIME: Duration = s(40_000);
const NAMES: [&str; 2] = ["publisher", "subscriber"];
const TOPICS: [&str; 4] = ["t/one", "t/two", "tt", "t/three"];

/// Numbers that a seed repeats (splitmix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn is_one_in_16(&mut self, share: u64) -> bool {
        self.next() % 16 < share
    }

    fn between_ms(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.next() % (most - least))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Broker(usize),
    Client(usize),
}

struct Link {
    seed: u64,
    chance: Chance,
    loss_of_16: u64,
    sleeps: bool,
    world: World,
    clients: [Client; 2],
    wake_at: [Option<Duration>; 2],
    /// When one that is not connected connects again.
    connect_at: [Option<Duration>; 2],
    /// When one that sleeps asks.
    fetch_at: Option<Duration>,
    on_the_way: BTreeMap<(Duration, u64), (End, Bytes)>,
    count: u64,
    /// What the subscriber has got, how often.
    seen: BTreeMap<Bytes, u32>,
    done: Vec<u64>,
}

fn port(client: usize) -> u16 {
    u16::try_from(client).unwrap() + 1
}

impl Link {
    fn new(seed: u64) -> Self {
        let client = |number: usize| {
            Client::new(client::Settings {
                clean_session: false,
                keep_alive: s(30),
                first_msg_id: u16::try_from(seed % 60_000).unwrap(),
                ..client::Settings::new(NAMES[number])
            })
        };
        let mut chance = Chance(seed);
        let loss_of_16 = chance.next() % 4;
        Self {
            seed,
            chance,
            loss_of_16,
            sleeps: seed % 3 == 1,
            world: World::with(settings(), seed % 2 == 1),
            clients: [client(0), client(1)],
            wake_at: [None; 2],
            connect_at: [None; 2],
            fetch_at: None,
            on_the_way: BTreeMap::new(),
            count: 0,
            seen: BTreeMap::new(),
            done: Vec::new(),
        }
    }

    /// A datagram leaves; a copy of it may come with it.
    fn leaves(&mut self, to: End, bytes: Bytes) {
        self.count += 2;
        if self.chance.is_one_in_16(self.loss_of_16) {
            return;
        }
        let at = self.world.now + self.chance.between_ms(20, 400);
        self.on_the_way.insert((at, self.count), (to, bytes.clone()));
        if self.chance.is_one_in_16(3) {
            let at = at + self.chance.between_ms(0, 10);
            self.on_the_way.insert((at, self.count + 1), (to, bytes));
        }
    }

    fn input(&mut self, client: usize, input: client::Input) {
        self.clients[client].handle_input(self.world.now, input);
        while let Some(output) = self.clients[client].poll_output() {
            match output {
                client::Output::Transmit(bytes) => self.leaves(End::Broker(client), bytes),
                client::Output::Message { topic, data, .. } => {
                    let Name::Text(topic) = topic else { panic!("{topic:?}") };
                    assert!(TOPICS.contains(&topic.as_str()));
                    *self.seen.entry(data).or_default() += 1;
                }
                client::Output::Done { request, .. } => self.done.push(request),
                client::Output::Lost
                | client::Output::Disconnected
                | client::Output::Refused(_) => {
                    let pause = self.chance.between_ms(100, 20_000);
                    self.connect_at[client] = Some(self.world.now + pause);
                }
                client::Output::Asleep => {
                    let pause = self.chance.between_ms(1000, 60_000);
                    self.fetch_at = Some(self.world.now + pause);
                }
                client::Output::WakeAt(at) => self.wake_at[client] = Some(at),
                client::Output::Connected => {}
                client::Output::Failed { .. } => panic!("seed {}: {output:?}", self.seed),
            }
        }
    }

    /// What the broker has sent is on its way.
    fn collect(&mut self) {
        while let Some((_, to, bytes)) = self.world.sent.pop_front() {
            self.leaves(End::Client(usize::from(to.port()) - 1), bytes);
        }
    }

    /// The next thing happens.
    fn step(&mut self) {
        let arrival = self.on_the_way.first_key_value().map(|((at, _), _)| *at);
        let [one, two] = self.wake_at;
        let [three, four] = self.connect_at;
        let times = [arrival, self.world.wake_at, self.fetch_at, one, two, three, four];
        let at = times.into_iter().flatten().min().expect("keep-alives go on");
        assert!(at < MAX_TIME, "seed {}: not all has come: {:?}", self.seed, self.seen);
        self.world.now = self.world.now.max(at);
        let is_due = |time: &mut Option<Duration>| {
            let is_due = time.is_some_and(|time| time <= at);
            *time = time.filter(|_| !is_due);
            is_due
        };
        if arrival == Some(at) {
            match self.on_the_way.pop_first() {
                Some((_, (End::Broker(from), bytes))) => {
                    self.world.hears_at(LISTENER, port(from), bytes);
                }
                Some((_, (End::Client(to), bytes))) => {
                    self.input(to, client::Input::Datagram(bytes));
                }
                None => {}
            }
        } else if is_due(&mut self.fetch_at) {
            let is_last = self.chance.is_one_in_16(3);
            self.input(1, if is_last { client::Input::Connect } else { client::Input::Fetch });
        } else if is_due(&mut self.world.wake_at) {
            self.world.input(Input::Wake);
        } else {
            for client in [0, 1] {
                if is_due(&mut self.connect_at[client]) {
                    self.input(client, client::Input::Connect);
                } else if is_due(&mut self.wake_at[client]) {
                    self.input(client, client::Input::Wake);
                }
            }
        }
        self.collect();
        if self.sleeps && self.clients[1].is_active() && self.chance.is_one_in_16(1) {
            self.input(1, client::Input::Sleep(s(120)));
            self.collect();
        }
    }

    fn until(&mut self, is_done: impl Fn(&Self) -> bool) {
        while !is_done(self) {
            self.step();
        }
    }

    fn requests(&mut self, client: usize, request: u64, action: Action) {
        self.input(client, client::Input::Request { request, action });
        self.collect();
    }
}

fn payload(request: u64) -> Bytes {
    Bytes::from(format!("payload {request}"))
}

/// What was requested of a level, by its number.
fn level(request: u64) -> Qos {
    if request.is_multiple_of(2) { Qos::One } else { Qos::Two }
}

#[test]
fn level_1_arrives_at_least_once_and_level_2_exactly_once() {
    let (mut copies, mut reconnects) = (0, 0);
    for seed in 0..SEEDS {
        let mut link = Link::new(seed);
        for client in [0, 1] {
            link.input(client, client::Input::Connect);
            link.collect();
        }
        let filters = if seed % 5 == 0 { vec!["t/#", "tt"] } else { TOPICS.to_vec() };
        let wanted = filters.len();
        for (request, filter) in (1000..).zip(filters) {
            let action = Action::Subscribe { filter: filter.into(), qos: Qos::Two };
            link.requests(1, request, action);
        }
        link.until(|link| link.done.len() == wanted);
        let all = 2 * PUBLICATIONS;
        for request in 0..all {
            let topic = TOPICS[usize::try_from(request / 2 % 4).unwrap()];
            let action = Action::Publish {
                topic: topic.into(),
                data: payload(request),
                qos: level(request),
                retain: false,
            };
            link.requests(0, request, action);
            let pause = link.chance.next() % 64;
            let before = link.count;
            link.until(|link| link.count > before + pause);
        }
        let everything = usize::try_from(all).unwrap();
        link.until(|link| link.done.len() == wanted + everything && link.seen.len() == everything);
        // What else is on its way may come.
        let end = link.world.now + s(700);
        link.until(|link| link.world.now > end);
        for request in 0..all {
            let seen = link.seen.get(&payload(request)).copied().unwrap_or(0);
            match level(request) {
                Qos::Two => assert_eq!(seen, 1, "seed {seed}: {request} came {seen} times"),
                _ => copies += u64::from(seen - 1),
            }
        }
        assert!(link.world.drops().is_empty(), "seed {seed}: {:?}", link.world.events);
        reconnects += link.world.broker.core().counts().opened - 2;
    }
    // Else nothing of what this is about has happened.
    assert!(copies > 0 && reconnects > 0, "{copies} copies, {reconnects} reconnects");
}
