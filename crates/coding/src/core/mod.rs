//! What all messages and paths share: the policy and what is learned, the memory of codecs, what is
//! kept for later messages, deadlines, and what is to be done.

pub(crate) mod accounts;
pub(crate) mod clients;
pub(crate) mod habits;
mod learned;
pub(crate) mod probes;
pub(crate) mod waits;

use std::collections::VecDeque;

use bytes::Bytes;
use decide::policy::{Observation, Policy};
use proto::exchange::Part;
use proto::profile::Profile;
use proto::timers::Timers;
use record::event::Fact;

use super::api::{Fault, Output};
use super::config::Config;
use super::exchange::Exchange;
use super::ids::{ExchangeId, PathId};
use super::job::Job;
use super::kept::dictionaries::Dictionaries;
use super::kept::pending::Keeps;
use super::kept::requester::Principals;
use super::kept::schemas::Schemas;
use clients::Clients;
use habits::Habits;
use probes::Probes;
use waits::Waits;

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// An open block or a waiting head.
    Block(ExchangeId),
    /// An exchange that waits for a decoder's memory, or for a body as it is.
    Decoder(ExchangeId),
    /// Control messages that wait to be piggybacked.
    Piggyback(PathId),
    /// A path that a dictionary may go over.
    Offers(PathId),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) config: Config,
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) habits: Habits,
    pub(crate) clients: Clients,
    pub(crate) probes: Probes,
    pub(crate) waits: Waits,
    /// Memory reserved for what bodies go through, in bytes; probes are counted by themselves.
    pub(crate) encoder_bytes: usize,
    pub(crate) decoder_bytes: usize,
    /// Exchanges that wait for a decoder's memory.
    pub(crate) undecoded: VecDeque<ExchangeId>,
    /// Bytes of messages that are held as bases, on all paths.
    pub(crate) base_bytes: usize,
    pub(crate) keeps: Keeps,
    pub(crate) principals: Principals,
    pub(crate) dictionaries: Dictionaries,
    pub(crate) schemas: Schemas,
    /// What peers are told of this processor; none before it was measured.
    pub(crate) own_profile: Option<Profile>,
    pub(crate) timers: Timers<Key>,
    pub(crate) outputs: VecDeque<Output>,
}

impl Core {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            policy: config.encoding.policy(),
            clients: Clients::new(&config.encoding),
            config,
            habits: Habits::default(),
            probes: Probes::default(),
            waits: Waits::default(),
            encoder_bytes: 0,
            decoder_bytes: 0,
            undecoded: VecDeque::new(),
            base_bytes: 0,
            keeps: Keeps::default(),
            principals: Principals::default(),
            dictionaries: Dictionaries::default(),
            schemas: Schemas::default(),
            own_profile: None,
            timers: Timers::default(),
            outputs: VecDeque::new(),
        }
    }

    pub(crate) fn observe(&mut self, observation: &Observation<'_>) {
        self.policy.observe(observation);
    }

    /// Who chooses for an exchange's message, and learns of it.
    pub(crate) fn policy_of(&mut self, one: &Exchange) -> &mut dyn Policy {
        self.policy_for(one.has_recipient())
    }

    /// The same, for recipients that are no peers or for those that are.
    pub(crate) fn policy_for(&mut self, clients: bool) -> &mut dyn Policy {
        if clients { &mut *self.clients.policy } else { &mut *self.policy }
    }

    /// What is usual of messages such as an exchange's.
    pub(crate) fn habits_of(&mut self, one: &Exchange) -> &mut Habits {
        if one.has_recipient() { &mut self.clients.habits } else { &mut self.habits }
    }

    /// An exchange's encoder takes so many bytes more.
    pub(crate) fn take_encoder(&mut self, one: &Exchange, bytes: usize) {
        self.encoder_bytes += bytes;
        if one.has_recipient() {
            self.clients.encoder_bytes += bytes;
        }
    }

    /// It takes so many bytes less.
    pub(crate) fn give_encoder_back(&mut self, one: &Exchange, bytes: usize) {
        self.encoder_bytes -= bytes;
        if one.has_recipient() {
            self.clients.encoder_bytes -= bytes;
        }
    }

    pub(crate) fn event(&mut self, fact: Fact) {
        self.outputs.push_back(Output::Event(fact));
    }

    pub(crate) fn limit_reached(&mut self, limit: &str, consequence: &str) {
        let (limit, consequence) = (limit.to_owned(), consequence.to_owned());
        self.event(Fact::LimitReached { limit, consequence });
    }

    pub(crate) fn ignored(&mut self, path: PathId, what: &'static str, reason: &str) {
        self.outputs.push_back(Output::Ignored { path, what, reason: reason.to_owned() });
    }

    /// Sends a control message.
    pub(crate) fn control(&mut self, path: PathId, part: Part) {
        if let Part::Control(kind, content) = part {
            self.outputs.push_back(Output::Control { path, kind, content });
        }
    }

    pub(crate) fn job(&mut self, job: Job) {
        self.outputs.push_back(Output::Job(job));
    }

    pub(crate) fn fault(&mut self, exchange: ExchangeId, fault: Fault) {
        self.outputs.push_back(Output::Fault { exchange, fault });
    }

    pub(crate) fn measure(&mut self, path: PathId, anyway: bool) {
        self.outputs.push_back(Output::Measure { path, anyway });
    }

    pub(crate) fn store(&mut self, name: [u8; 32], bytes: Bytes) {
        self.outputs.push_back(Output::Store { name, bytes });
    }

    /// Gives back the memory of contexts that have nothing left to do. They go together.
    pub(crate) fn release_contexts(&mut self, one: &mut Exchange) {
        if one.has_contexts && one.sending.is_encoded() && one.receiving.is_decoded() {
            one.has_contexts = false;
            let bytes = std::mem::take(&mut one.encoder_bytes);
            self.give_encoder_back(one, bytes);
            self.decoder_bytes -= one.decoder_bytes.as_mut().map_or(0, std::mem::take);
            self.outputs.push_back(Output::Release { exchange: one.id });
        }
    }

    /// What is not held any more need not be kept either: so no peer drives out what others sent.
    pub(crate) fn drop_gone(&mut self) {
        let gone = self.dictionaries.gone.drain(..).map(|name| Output::Dropped { name });
        self.outputs.extend(gone);
    }
}
