//! Members, connections between them, disks, and clocks that are wrong.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::ids::{ConnectionId, Protocol};
use crate::mesh::{Input, Member, Mesh, Output, Progress, Settings};
use crate::publication::{Grade, Publication};

/// Time goes on in such steps.
pub(super) const STEP: Duration = Duration::from_millis(100);
/// No test takes longer by the clock of the net.
const MAX_STEPS: usize = 20_000;

/// A code that shows who has a key, for tests: fast, and of no worth otherwise.
pub(super) fn toy_mac(key: &[u8], pieces: &[&[u8]]) -> [u8; 32] {
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    for byte in [key].iter().chain(pieces).flat_map(|piece| piece.iter()) {
        sum = (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    let mut out = [0; 32];
    for (at, chunk) in out.chunks_mut(8).enumerate() {
        let spread = (sum ^ at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        chunk.copy_from_slice(&(spread ^ spread >> 29).to_be_bytes());
    }
    out
}

/// Chance from a seed.
#[derive(Clone, Debug)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).unwrap_or(0)
    }

    pub(super) fn is(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
}

/// What a client here has got.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Got {
    pub(super) topic: Arc<str>,
    pub(super) payload: Bytes,
    pub(super) grade: Grade,
    pub(super) retain: bool,
}

type Records = BTreeMap<Arc<str>, Bytes>;
/// What is on its way, and when it arrives.
type Way = VecDeque<(Duration, Bytes)>;
type States = BTreeMap<Arc<str>, Arc<Publication>>;

pub(super) struct Node {
    pub(super) mesh: Option<Mesh>,
    /// What the broker has retained.
    pub(super) retained: States,
    disk: (Records, States),
    /// What is not on the disk yet.
    records: Vec<(String, Option<Bytes>)>,
    unseen: Vec<Got>,
    /// What clients got, once that was on the disk.
    pub(super) got: Vec<Got>,
    pub(super) wants: BTreeSet<Arc<str>>,
    keeps: u64,
    /// How far its clock is ahead, in ms.
    pub(super) ahead_ms: i64,
    pub(super) lives: u64,
    /// Whether it has lost its disk.
    pub(super) has_lost: bool,
    /// What was published and is on the disk.
    pub(super) accepted: Vec<Arc<Publication>>,
    offered: Vec<Arc<Publication>>,
    pub(super) keys: Vec<u64>,
    pub(super) revoked: BTreeSet<usize>,
    pub(super) refused: Vec<String>,
    pub(super) dropped: usize,
}

pub(super) struct Net {
    pub(super) now: Duration,
    pub(super) nodes: Vec<Node>,
    pub(super) chance: Chance,
    /// Ends of connections: to whom, by which number there, and what is on its way.
    ends: BTreeMap<(usize, u64), (usize, u64, Way)>,
    pub(super) cut: BTreeSet<(usize, usize)>,
    last: u64,
    pub(super) max_queued: usize,
    pub(super) max_frame_bytes: usize,
    pub(super) bytes: BTreeMap<(usize, usize), usize>,
}

impl Net {
    pub(super) fn new(count: usize, seed: u64) -> Self {
        let node = |_| Node {
            mesh: None,
            retained: States::new(),
            disk: Default::default(),
            records: Vec::new(),
            unseen: Vec::new(),
            got: Vec::new(),
            wants: BTreeSet::new(),
            keeps: 0,
            ahead_ms: 0,
            lives: 0,
            has_lost: false,
            accepted: Vec::new(),
            offered: Vec::new(),
            keys: vec![0; count],
            revoked: BTreeSet::new(),
            refused: Vec::new(),
            dropped: 0,
        };
        let mut net = Self {
            now: Duration::from_secs(1_700_000_000),
            nodes: (0..count).map(node).collect(),
            chance: Chance::new(seed),
            ends: BTreeMap::new(),
            cut: BTreeSet::new(),
            last: 0,
            max_queued: 1000,
            max_frame_bytes: 1 << 20,
            bytes: BTreeMap::new(),
        };
        (0..count).for_each(|at| net.start(at));
        net
    }

    pub(super) fn name(at: usize) -> Arc<str> {
        format!("n{at:02}").into()
    }

    fn settings(&self, at: usize) -> Settings {
        let others = (0..self.nodes.len()).filter(|other| *other != at);
        let member = |other: usize| {
            let key = self.nodes[at].keys[other];
            let (low, high) = (at.min(other), at.max(other));
            Member {
                name: Self::name(other),
                key: format!("{low}-{high}-{key}").into(),
                // Both of some pairs dial.
                dials: at < other || (at + other).is_multiple_of(3),
                revoked: self.nodes[at].revoked.contains(&other),
            }
        };
        Settings {
            name: Self::name(at),
            members: others.map(member).collect(),
            mac: toy_mac,
            seed: [u8::try_from(at).unwrap() ^ self.nodes[at].lives.to_be_bytes()[7] << 4; 32],
            life: self.nodes[at].lives * 1000 + at as u64 + 1,
            max_frame_bytes: self.max_frame_bytes,
            max_queued: self.max_queued,
            max_queued_bytes: 16 << 20,
        }
    }

    fn clock(&self, at: usize) -> Duration {
        let ahead = self.nodes[at].ahead_ms;
        let by = Duration::from_millis(ahead.unsigned_abs());
        if ahead < 0 { self.now.saturating_sub(by) } else { self.now + by }
    }

    /// Starts a member from what is on its disk.
    pub(super) fn start(&mut self, at: usize) {
        self.nodes[at].lives += 1;
        let now = self.clock(at);
        let mut mesh = Mesh::new(self.settings(at));
        let node = &mut self.nodes[at];
        node.keeps = 0;
        let (records, retained) = node.disk.clone();
        node.retained = retained;
        let unknown = mesh.restore(now, records, node.retained.values().cloned());
        assert_eq!(unknown, 0, "the disk of {at}");
        node.mesh = Some(mesh);
        self.drain(at);
        let wants: Vec<Arc<str>> = self.nodes[at].wants.iter().cloned().collect();
        for filter in wants {
            self.input(at, Input::Wanted(filter));
        }
        self.input(at, Input::Wake);
    }

    /// Stops it; what is not on its disk is lost, with `lose` the disk too.
    pub(super) fn stop(&mut self, at: usize, lose: bool) {
        let node = &mut self.nodes[at];
        node.mesh = None;
        node.records.clear();
        node.unseen.clear();
        node.offered.clear();
        if lose {
            node.disk = Default::default();
            node.has_lost = true;
        }
        let own: Vec<u64> =
            self.ends.keys().filter(|(of, _)| *of == at).map(|(_, number)| *number).collect();
        for number in own {
            self.close(at, number);
        }
    }

    pub(super) fn want(&mut self, at: usize, filter: &str) {
        if self.nodes[at].wants.insert(filter.into()) {
            self.input(at, Input::Wanted(filter.into()));
        }
    }

    pub(super) fn unwant(&mut self, at: usize, filter: &str) {
        if self.nodes[at].wants.remove(filter) {
            self.input(at, Input::Unwanted(filter.into()));
        }
    }

    pub(super) fn publish(&mut self, at: usize, topic: &str, payload: &str, how: (u8, bool)) {
        let text = payload.as_bytes().to_vec();
        let mut publication = Publication::new(Protocol::Mqtt, topic, text);
        publication.grade = Grade::new(how.0).unwrap();
        publication.retain = how.1;
        self.offer(at, publication);
    }

    pub(super) fn offer(&mut self, at: usize, publication: Publication) {
        if self.nodes[at].mesh.is_none() {
            return;
        }
        let publication = Arc::new(publication);
        let node = &mut self.nodes[at];
        node.offered.push(publication.clone());
        retain(&mut node.retained, &publication);
        self.input(at, Input::Published(publication));
    }

    /// What is there so far reaches the disk.
    pub(super) fn commit(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if node.mesh.is_none() || node.records.is_empty() && node.unseen.is_empty() {
            return;
        }
        for (key, value) in node.records.drain(..) {
            match value {
                Some(value) => node.disk.0.insert(key.into(), value),
                None => node.disk.0.remove(&*key),
            };
        }
        node.disk.1 = node.retained.clone();
        node.got.append(&mut node.unseen);
        node.accepted.append(&mut node.offered);
        let keeps = node.keeps;
        self.input(at, Input::Persisted(keeps));
    }

    pub(super) fn input(&mut self, at: usize, input: Input) {
        let now = self.clock(at);
        if let Some(mesh) = &mut self.nodes[at].mesh {
            mesh.handle_input(now, input);
        }
        self.drain(at);
    }

    fn drain(&mut self, at: usize) {
        loop {
            let output = self.nodes[at].mesh.as_mut().and_then(Mesh::poll_output);
            let Some(output) = output else { return };
            self.act(at, output);
        }
    }

    fn act(&mut self, at: usize, output: Output) {
        let node = &mut self.nodes[at];
        match output {
            Output::Dial(member) => {
                let other = if member < at { member } else { member + 1 };
                self.connect(at, member, other);
            }
            Output::Send(id, bytes) => {
                let late = Duration::from_millis(self.chance.below(300) as u64);
                let Some((to, _, way)) = self.ends.get_mut(&(at, id.0)) else { return };
                *self.bytes.entry((at, *to)).or_default() += bytes.len();
                let due = way.back().map_or(self.now, |(due, _)| *due).max(self.now + late);
                way.push_back((due, bytes.into()));
            }
            Output::Close(id) => {
                // What was given before arrives.
                self.flush(at, id.0);
                self.close(at, id.0);
            }
            Output::Deliver(publication) => {
                retain(&mut node.retained, &Arc::new((*publication).clone()));
                let Publication { topic, payload, grade, retain, .. } = *publication;
                node.unseen.push(Got { topic, payload, grade, retain });
            }
            Output::Keep(key, value) => {
                node.keeps += 1;
                node.records.push((key, value));
            }
            Output::Refused(_, why) => node.refused.push(why),
            Output::Progressed(_, _, Progress::Dropped(_)) => node.dropped += 1,
            Output::Progressed(..) => {}
        }
    }

    fn connect(&mut self, at: usize, member: usize, other: usize) {
        let is_cut = self.cut.contains(&(at.min(other), at.max(other)));
        if is_cut || self.nodes[other].mesh.is_none() {
            let result = Err("no way".to_owned());
            return self.input(at, Input::Dialled { member, result });
        }
        let (near, far) = self.ends(at, other);
        self.input(other, Input::Connected(ConnectionId(far)));
        self.input(at, Input::Dialled { member, result: Ok(ConnectionId(near)) });
    }

    /// A connection that nobody of the members has asked for.
    pub(super) fn ends(&mut self, at: usize, other: usize) -> (u64, u64) {
        self.last += 2;
        let (near, far) = (self.last - 1, self.last);
        self.ends.insert((at, near), (other, far, VecDeque::new()));
        self.ends.insert((other, far), (at, near, VecDeque::new()));
        (near, far)
    }

    fn flush(&mut self, at: usize, number: u64) {
        let Some((to, far, way)) = self.ends.get_mut(&(at, number)) else { return };
        let (to, far, way) = (*to, *far, std::mem::take(way));
        for (_, bytes) in way {
            self.input(to, Input::Received(ConnectionId(far), bytes));
        }
    }

    fn close(&mut self, at: usize, number: u64) {
        let Some((to, far, _)) = self.ends.remove(&(at, number)) else { return };
        self.ends.remove(&(to, far));
        self.input(to, Input::Lost(ConnectionId(far)));
        self.input(at, Input::Lost(ConnectionId(number)));
    }

    /// Cuts two members off from each other, or heals that.
    pub(super) fn set_cut(&mut self, one: usize, other: usize, is_cut: bool) {
        let pair = (one.min(other), one.max(other));
        if !is_cut {
            self.cut.remove(&pair);
            return;
        }
        self.cut.insert(pair);
        let between = |((of, _), (to, _, _)): (&(usize, u64), &(usize, u64, Way))| {
            (*of.min(to), *of.max(to)) == pair
        };
        let gone: Vec<(usize, u64)> =
            self.ends.iter().filter(|end| between(*end)).map(|(end, _)| *end).collect();
        for (of, number) in gone {
            self.close(of, number);
        }
    }

    /// Time goes on.
    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        let mut steps = 0;
        while self.now < end {
            steps += 1;
            assert!(steps < MAX_STEPS, "it runs for too long");
            self.now += STEP;
            self.step();
        }
    }

    fn step(&mut self) {
        let all: Vec<(usize, u64)> = self.ends.keys().copied().collect();
        for end in all {
            while let Some((to, far, way)) = self.ends.get_mut(&end) {
                if way.front().is_none_or(|(due, _)| *due > self.now) {
                    break;
                }
                let Some((_, bytes)) = way.pop_front() else { break };
                let (to, far, is_empty) = (*to, *far, way.is_empty());
                self.input(to, Input::Received(ConnectionId(far), bytes));
                if is_empty {
                    self.input(end.0, Input::Writable(ConnectionId(end.1)));
                }
            }
        }
        for at in 0..self.nodes.len() {
            let wake = self.nodes[at].mesh.as_ref().and_then(Mesh::wake_at);
            if wake.is_some_and(|wake| wake <= self.clock(at)) {
                self.input(at, Input::Wake);
            }
            if !self.chance.is(3) {
                self.commit(at);
            }
        }
    }

    /// A store from before there was a mesh.
    pub(super) fn retain_on_disk(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        node.disk.1 = node.retained.clone();
    }

    pub(super) fn states(&self, at: usize) -> BTreeMap<Arc<str>, Bytes> {
        let mesh = self.nodes[at].mesh.as_ref().unwrap();
        mesh.retained().map(|(topic, payload, _)| (topic.clone(), payload.clone())).collect()
    }

    /// Payloads of a topic that clients of a member got, as text.
    pub(super) fn payloads(&self, at: usize, topic: &str) -> Vec<String> {
        let got = self.nodes[at].got.iter().filter(|got| &*got.topic == topic);
        got.map(|got| String::from_utf8(got.payload.to_vec()).unwrap()).collect()
    }
}

fn retain(retained: &mut States, publication: &Arc<Publication>) {
    if !publication.retain {
        return;
    }
    if publication.payload.is_empty() {
        retained.remove(&publication.topic);
    } else {
        retained.insert(publication.topic.clone(), publication.clone());
    }
}
