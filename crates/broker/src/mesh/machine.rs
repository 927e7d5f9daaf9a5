//! A member of a mesh.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::channel::Mac;
use super::clock::Clock;
use super::interest::{Own, Remote};
use super::keeping;
use super::linking::{self, Link};
use super::peer::{Peer, Waiting};
use super::restoring;
use super::sending;
use super::states::{Held, States};
use super::wire::{Dot, Writer};
use crate::event::Drop;
use crate::ids::ConnectionId;
use crate::publication::{Grade, Publication};

/// How often members tell each other what has changed.
const TICK: Duration = Duration::from_secs(1);
/// Places of the log that are set aside at once, so that what is not kept need not be counted on
/// disk.
const RESERVED: u64 = 1000;

/// Another member.
#[derive(Clone, PartialEq, Eq)]
pub struct Member {
    /// By what it is known: 1 to 64 bytes without comma and colon.
    pub name: Arc<str>,
    /// What only it and this one know.
    pub key: Bytes,
    /// Whether this one connects to it.
    pub dials: bool,
    /// It is let in no more, and nothing waits for it.
    pub revoked: bool,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, key: _, dials, revoked } = self;
        f.debug_struct("Member")
            .field("name", name)
            .field("dials", dials)
            .field("revoked", revoked)
            .finish_non_exhaustive()
    }
}

/// What an operator sets for a mesh, and what chance has given.
#[derive(Clone, Debug)]
pub struct Settings {
    /// By what the others know this one.
    pub name: Arc<str>,
    /// The others, at most 64.
    pub members: Vec<Member>,
    /// HMAC with SHA-256.
    pub mac: Mac,
    /// What nobody foresees, another at each start.
    pub seed: [u8; 32],
    /// The number of its life if it has none: what no other has had.
    pub life: u64,
    /// Longest frame, in bytes.
    pub max_frame_bytes: usize,
    /// Publications that may wait for one member; beyond them the oldest goes.
    pub max_queued: usize,
    /// The same in bytes.
    pub max_queued_bytes: usize,
}

/// What comes in.
#[derive(Clone, Debug)]
pub enum Input {
    /// A connection was accepted.
    Connected(ConnectionId),
    /// The answer to [`Output::Dial`]: the connection, or why there is none.
    Dialled {
        /// Which of the members.
        member: usize,
        /// The connection or the reason.
        result: Result<ConnectionId, String>,
    },
    /// Bytes came over a connection.
    Received(ConnectionId, Bytes),
    /// A connection has room again.
    Writable(ConnectionId),
    /// A connection has ended.
    Lost(ConnectionId),
    /// A client of this broker has published.
    Published(Arc<Publication>),
    /// The first client has subscribed to a filter.
    Wanted(Arc<str>),
    /// The last one has not any more.
    Unwanted(Arc<str>),
    /// So many [`Output::Keep`] since the start are written.
    Persisted(u64),
    /// The time of [`Mesh::wake_at`] has come.
    Wake,
    /// The broker ends.
    Close,
}

/// How far a publication has come on its way to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It waits.
    Waits,
    /// It was sent.
    Sent,
    /// The member has it for good.
    Acknowledged,
    /// It ends here.
    Dropped(Drop),
}

/// What ought to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// A member is to be connected.
    Dial(usize),
    /// Bytes for a connection.
    Send(ConnectionId, Vec<u8>),
    /// A connection is to be closed behind what it was given.
    Close(ConnectionId),
    /// A publication for the clients of this broker; where it is retained, it is the topic's state.
    Deliver(Box<Publication>),
    /// A record is to be kept, or, without a value, to be kept no more.
    Keep(String, Option<Bytes>),
    /// Something was refused.
    Refused(Option<ConnectionId>, String),
    /// What became of a publication on its way to a member.
    Progressed(Arc<Publication>, Arc<str>, Progress),
}

/// How it is with a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it is here.
    pub is_linked: bool,
    /// It is let in no more.
    pub is_revoked: bool,
    /// Publications that wait for it or are under way to it.
    pub waiting: usize,
    /// What these take.
    pub waiting_bytes: usize,
    /// Bytes to it since the start.
    pub sent_bytes: u64,
    /// Bytes from it since the start.
    pub received_bytes: u64,
    /// Publications that it will not get, for want of room or time.
    pub dropped: u64,
    /// How often its states were sent again as a whole.
    pub repairs: u64,
    /// Filters that it wants.
    pub filters: usize,
}

/// What is true once something is written.
#[derive(Debug)]
pub(super) enum Claim {
    Own(u64),
    Log(Writer, u64),
    /// Of which of the members, which of its lives, and up to where.
    Peer(usize, u64, u64),
}

/// See the module.
#[derive(Debug)]
pub struct Mesh {
    pub(super) settings: Settings,
    pub(super) me: Writer,
    pub(super) clock: Clock,
    pub(super) states: States,
    /// By the numbers of the settings' members.
    pub(super) peers: Vec<Peer>,
    pub(super) links: BTreeMap<ConnectionId, Link>,
    pub(super) own: Own,
    pub(super) remote: Remote,
    /// The last place in the own log, and the last that is written.
    pub(super) seq: u64,
    pub(super) safe: u64,
    /// Places up to this one are not given again, whatever is lost.
    reserved: u64,
    /// Up to where logs are known and that is written.
    pub(super) claimed: BTreeMap<Writer, u64>,
    /// Whom the states of a log are asked of.
    pub(super) asked: BTreeMap<Writer, usize>,
    /// For how many members a place of the own log is kept.
    pub(super) kept: BTreeMap<u64, usize>,
    pub(super) pending: VecDeque<(u64, Claim)>,
    pub(super) keeps: u64,
    /// How many of these are written.
    persisted: u64,
    pub(super) greetings: u64,
    pub(super) tick_at: Option<Duration>,
    pub(super) outputs: VecDeque<Output>,
}

impl Mesh {
    /// A member that holds nothing.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let peers = settings.members.iter().map(|_| Peer::default()).collect();
        let chance = (settings.mac)(&settings.seed, &[b"longwire mesh 1 interest"]);
        let first = chance.first_chunk().map_or(1, |bytes| u64::from_be_bytes(*bytes));
        Self {
            me: Writer { member: settings.name.clone(), life: settings.life.max(1) },
            settings,
            clock: Clock::default(),
            states: States::default(),
            peers,
            links: BTreeMap::new(),
            own: Own::new(first),
            remote: Remote::default(),
            seq: 0,
            safe: 0,
            reserved: 0,
            claimed: BTreeMap::new(),
            asked: BTreeMap::new(),
            kept: BTreeMap::new(),
            pending: VecDeque::new(),
            keeps: 0,
            persisted: 0,
            greetings: 0,
            tick_at: None,
            outputs: VecDeque::new(),
        }
    }

    /// Takes what was kept, and the retained messages that the broker has, before any input.
    /// Returns how many records were none that are known.
    pub fn restore(
        &mut self,
        now: Duration,
        records: impl IntoIterator<Item = (Arc<str>, Bytes)>,
        retained: impl IntoIterator<Item = Arc<Publication>>,
    ) -> usize {
        let unknown = restoring::restore(self, now, records, retained);
        // What was not written before is a matter of the start, and sent when it is written.
        self.settle_members(now);
        unknown
    }

    fn settle_members(&mut self, now: Duration) {
        for (peer, member) in self.peers.iter_mut().zip(&self.settings.members) {
            peer.dial_at = (member.dials && !member.revoked).then_some(now);
        }
    }

    /// Takes an input at a time that does not go back while the process runs.
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        match input {
            Input::Connected(id) => linking::connected(self, now, id),
            Input::Dialled { member, result } => linking::dialled(self, now, member, result),
            Input::Received(id, bytes) => linking::received(self, now, id, &bytes),
            Input::Writable(id) => {
                if let Some(link) = self.links.get_mut(&id) {
                    link.unsent_bytes = 0;
                }
                sending::has_room(self, now, id);
            }
            Input::Lost(id) => linking::lost(self, now, id),
            Input::Published(publication) => publish(self, now, &publication),
            Input::Wanted(filter) => super::interest::changes(self, now, filter, true),
            Input::Unwanted(filter) => super::interest::changes(self, now, filter, false),
            Input::Persisted(keeps) => self.persisted = self.persisted.max(keeps),
            Input::Wake => self.wake(now),
            Input::Close => linking::close(self, now),
        }
        persisted(self, now);
    }

    /// Places of the log up to this one were given in an earlier run.
    pub(super) fn resume(&mut self, reserved: u64) {
        (self.seq, self.safe, self.reserved) = (reserved, reserved, reserved);
    }

    /// The next place of the log.
    fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        if self.seq > self.reserved {
            self.reserved = self.seq.saturating_add(RESERVED);
            self.keep(keeping::own(self.me.life, self.reserved, self.clock.last()));
        }
        self.seq
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When something is due.
    #[must_use]
    pub fn wake_at(&self) -> Option<Duration> {
        let dials = self.peers.iter().filter(|peer| peer.link.is_none());
        let links = self.links.values().filter_map(Link::greeting_ends);
        let tick = self.tick_at.filter(|_| self.peers.iter().any(|peer| peer.link.is_some()));
        dials.filter_map(|peer| peer.dial_at).chain(links).chain(tick).min()
    }

    /// Whether some member wants anything.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.peers.iter().any(|peer| !peer.filters.is_empty())
    }

    /// How it is with the members, in the order of the settings.
    #[must_use]
    pub fn members(&self) -> Vec<MemberStatus> {
        let status = |(peer, member): (&Peer, &Member)| {
            let (waiting, waiting_bytes) = peer.queue.sizes();
            MemberStatus {
                name: member.name.clone(),
                is_linked: peer.link.is_some(),
                is_revoked: member.revoked,
                waiting,
                waiting_bytes,
                sent_bytes: peer.counted.sent_bytes,
                received_bytes: peer.counted.received_bytes,
                dropped: peer.counted.dropped,
                repairs: peer.counted.repairs,
                filters: peer.filters.len(),
            }
        };
        self.peers.iter().zip(&self.settings.members).map(status).collect()
    }

    /// Topics that have a state, and topics that had one and are remembered for that.
    #[must_use]
    pub fn states(&self) -> (usize, usize) {
        self.states.sizes()
    }

    /// The states: topic, payload, and the member that wrote it.
    pub fn retained(&self) -> impl Iterator<Item = (&Arc<str>, &Bytes, &Arc<str>)> {
        self.states.topics().filter_map(|(topic, held)| {
            Some((topic, &held.value.as_ref()?.payload, &held.dot.writer.member))
        })
    }

    fn wake(&mut self, now: Duration) {
        linking::dial(self, now);
        linking::end_greetings(self, now);
        if self.tick_at.is_none_or(|at| at <= now) {
            self.tick_at = Some(now.saturating_add(TICK));
            sending::tick(self, now);
        }
    }

    /// A record is kept.
    pub(super) fn keep(&mut self, (key, value): (String, Bytes)) {
        self.keeps += 1;
        self.outputs.push_back(Output::Keep(key, Some(value)));
    }

    /// A record is kept no more.
    pub(super) fn drop_record(&mut self, key: String) {
        self.keeps += 1;
        self.outputs.push_back(Output::Keep(key, None));
    }

    /// Something is true once what was kept so far is written.
    pub(super) fn claim(&mut self, claim: Claim) {
        self.pending.push_back((self.keeps, claim));
    }

    /// The number and the name of a member.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.settings.members.iter().position(|member| *member.name == *name)
    }

    pub(super) fn name(&self, peer: usize) -> Arc<str> {
        self.settings.members.get(peer).map_or_else(|| "".into(), |member| member.name.clone())
    }

    /// What becomes of a publication is told.
    pub(super) fn tell(&mut self, of: &Arc<Publication>, peer: usize, progress: Progress) {
        if let Progress::Dropped(_) = progress
            && let Some(peer) = self.peers.get_mut(peer)
        {
            peer.counted.dropped += 1;
        }
        let is_reported = of.is_followed || matches!(progress, Progress::Dropped(_));
        if is_reported {
            let name = self.name(peer);
            self.outputs.push_back(Output::Progressed(of.clone(), name, progress));
        }
    }
}

/// A client here has published: it gets a place in the log, if anybody is to know of it.
pub(super) fn publish(mesh: &mut Mesh, now: Duration, publication: &Arc<Publication>) {
    publish_as(mesh, now, publication, None);
}

/// The same of what is older than all that members have, where it has such a stamp.
pub(super) fn publish_as(
    mesh: &mut Mesh,
    now: Duration,
    publication: &Arc<Publication>,
    of: Option<u64>,
) {
    if publication.topic.starts_with('$') {
        return;
    }
    // The end of what is not there is none, and so leaves nothing to remember.
    let is_there = || mesh.states.get(&publication.topic).is_some_and(|held| held.value.is_some());
    let is_state = publication.retain && (!publication.payload.is_empty() || is_there());
    let mut wanting = mesh.remote.find(&publication.topic);
    wanting.retain(|peer| {
        let is_here = mesh.peers.get(*peer).is_some_and(|peer| peer.link.is_some());
        let is_lasting = publication.grade > Grade::AtMostOnce;
        // A state of grade 0 comes as a state.
        is_lasting || is_here && !is_state
    });
    if wanting.is_empty() && !is_state {
        return;
    }
    let (seq, mut stamp) = (mesh.next_seq(), 0);
    let dot = Dot { writer: mesh.me.clone(), seq };
    if is_state {
        stamp = of.unwrap_or_else(|| mesh.clock.next(now));
        let value = (!publication.payload.is_empty()).then(|| publication.clone());
        let held = Held { dot: dot.clone(), stamp, value };
        put_state(mesh, publication.topic.clone(), held);
    }
    mesh.states.reach(&dot);
    let is_lasting = publication.grade > Grade::AtMostOnce;
    if is_lasting && !wanting.is_empty() {
        let names: Vec<Arc<str>> = wanting.iter().map(|peer| mesh.name(*peer)).collect();
        mesh.kept.insert(seq, wanting.len());
        mesh.keep(keeping::waiting(seq, stamp, &names, publication));
    }
    mesh.claim(Claim::Own(seq));
    for peer in wanting {
        let waiting = Waiting { stamp, publication: publication.clone(), was_sent: false };
        queue(mesh, peer, seq, waiting);
    }
}

/// A publication waits for a member; where there is no room the oldest goes.
fn queue(mesh: &mut Mesh, peer: usize, seq: u64, waiting: Waiting) {
    let publication = waiting.publication.clone();
    let (max, max_bytes) = (mesh.settings.max_queued.max(1), mesh.settings.max_queued_bytes);
    let Some(it) = mesh.peers.get_mut(peer) else { return };
    it.queue.push(seq, waiting);
    let mut gone = Vec::new();
    loop {
        let (count, bytes) = it.queue.sizes();
        if count <= 1 || count <= max && bytes <= max_bytes {
            break;
        }
        gone.extend(it.queue.pop());
    }
    mesh.tell(&publication, peer, Progress::Waits);
    for (seq, old) in gone {
        mesh.tell(&old.publication, peer, Progress::Dropped(Drop::QueueFull));
        release(mesh, seq);
    }
}

/// A member needs a place of the log no more.
pub(super) fn release(mesh: &mut Mesh, seq: u64) {
    let Some(count) = mesh.kept.get_mut(&seq) else { return };
    *count = count.saturating_sub(1);
    if *count == 0 {
        mesh.kept.remove(&seq);
        mesh.drop_record(keeping::waiting_key(seq));
    }
}

/// A topic has a state, which counts.
pub(super) fn put_state(mesh: &mut Mesh, topic: Arc<str>, held: Held) {
    let record = keeping::state(&topic, &held);
    mesh.keep(record);
    let forgotten = mesh.states.put(topic, held);
    if !forgotten.is_empty() {
        let why = "too many ended topics are remembered: the oldest is no more".to_owned();
        mesh.outputs.push_back(Output::Refused(None, why));
    }
    for topic in forgotten {
        mesh.drop_record(keeping::state_key(&topic));
    }
}

/// Records are written: what depends on them may be said and sent.
fn persisted(mesh: &mut Mesh, now: Duration) {
    let (keeps, mut acks, safe) = (mesh.persisted, Vec::new(), mesh.safe);
    while let Some((needs, _)) = mesh.pending.front() {
        if *needs > keeps {
            break;
        }
        match mesh.pending.pop_front() {
            Some((_, Claim::Own(seq))) => {
                mesh.safe = mesh.safe.max(seq);
                let me = mesh.me.clone();
                mesh.claimed.insert(me, mesh.safe);
            }
            Some((_, Claim::Log(writer, seq))) => {
                let known = mesh.claimed.entry(writer).or_default();
                *known = seq.max(*known);
            }
            Some((_, Claim::Peer(at, life, received))) => {
                // Of a life that is over nothing is claimed in the next one.
                let peer = mesh.peers.get_mut(at);
                if let Some(peer) = peer.filter(|peer| peer.life == life) {
                    peer.claimed = peer.claimed.max(received);
                    acks.push(at);
                }
            }
            None => break,
        }
    }
    acks.dedup();
    for peer in acks {
        sending::acknowledge(mesh, now, peer);
    }
    if mesh.safe > safe {
        sending::pump_all(mesh, now);
    }
}
