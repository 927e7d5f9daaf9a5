//! One run: a policy sends the messages of a class over a connection, and learns.

use std::time::Duration;

use decide::Arm;
use decide::arm::Prior;
use decide::estimate::{Estimate, Receipt};
use decide::fixed::Fixed;
use decide::learned::Learned;
use decide::models::{Models, Seen, Subject};
use decide::nam::Nam;
use decide::network::Path;
use decide::policy::{Decision, Objective, Observation, Policy, Request};
use link::LinkConfig;

use super::{Coded, Connection, Message, Workload};
use crate::Random;

/// Scatter of codec times, as a share, as measured on a quiet machine.
const TIME_SCATTER: f64 = 0.05;
/// Seconds between messages, and how much more or less: what a transport remembers makes runs hang
/// on where they began.
const PAUSE_S: f64 = 1.0;
const PAUSE_SCATTER_S: f64 = 0.5;
/// Most encodings of one message before it leaves.
const MAX_TRIED: usize = 3;

/// Who chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Chooser {
    /// Always the same arm.
    Fixed(usize),
    /// NAM as published.
    Nam,
    /// Ours.
    Ours,
    /// Ours with the arms of NAM alone.
    OursOfNam,
}

/// What a run needs beside its chooser and its chance.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// How many times longer codecs take than where the tables were measured.
    pub slower: f64,
    /// Messages of the class, in the order of a run, and again.
    pub class: &'a Workload,
    /// What NAM's profiles were made of.
    pub profile: &'a Workload,
    /// The arms that NAM has.
    pub nam_arms: &'a [usize],
    /// What is expected of the arms before anything was seen.
    pub priors: &'a [Prior],
}

/// A message's way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Which message of the class.
    pub message: usize,
    /// The arm it went in.
    pub arm: usize,
    /// Seconds of codecs.
    pub codec_s: f64,
    /// Seconds on the network.
    pub network_s: f64,
    /// Seconds that were expected.
    pub expected_s: f64,
}

impl Outcome {
    /// Seconds in all.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.codec_s + self.network_s
    }
}

/// See the module.
pub struct Run<'a> {
    setting: Setting<'a>,
    chooser: Chooser,
    policy: Box<dyn Policy>,
    connection: Connection,
    estimate: Estimate,
    jumps: u32,
    random: Random,
    pause_s: f64,
    pause_scatter_s: f64,
}

impl<'a> Run<'a> {
    /// A run that has learned nothing yet. Its weather depends on the seed and the place of packets
    /// alone, so that choosers meet the same as far as they can.
    #[must_use]
    pub fn new(setting: Setting<'a>, chooser: Chooser, link: &LinkConfig, seed: u64) -> Self {
        let mut run = Self {
            setting,
            chooser,
            policy: match chooser {
                Chooser::Fixed(arm) => Box::new(Fixed(Arm(arm))),
                Chooser::Nam => Box::new(Nam::new(setting.class.arms.len())),
                Chooser::Ours | Chooser::OursOfNam => {
                    Box::new(Learned::new(Models::new(setting.priors.to_vec())))
                }
            },
            connection: Connection::new(link, seed),
            estimate: Estimate::new(1e6, Duration::from_millis(100), None),
            jumps: 0,
            random: Random::new(seed),
            pause_s: PAUSE_S,
            pause_scatter_s: PAUSE_SCATTER_S,
        };
        if chooser == Chooser::Nam {
            setting.profile.messages.iter().for_each(|message| run.profile(message));
        }
        run
    }

    /// The same with so many seconds between messages, always.
    #[must_use]
    pub fn pausing(mut self, seconds: f64) -> Self {
        (self.pause_s, self.pause_scatter_s) = (seconds, 0.0);
        self
    }

    /// The link is another from now on.
    pub fn change(&mut self, link: &LinkConfig) {
        self.connection.change(link);
    }

    /// What the path looks like to the policy.
    #[must_use]
    pub fn path(&self) -> Path {
        self.estimate.path()
    }

    /// Sends the message of a place, waits for it and for a pause.
    pub fn send(&mut self, place: usize) -> Outcome {
        let setting = self.setting;
        let at = place % setting.class.messages.len();
        let message = &setting.class.messages[at];
        let subject =
            Subject { peer: 0, class: 1, bytes: message.bytes, head_share: message.head_share };
        let before = self.connection.transport().retransmitted;
        self.transport();
        let path = self.estimate.path();
        let limited = matches!(self.chooser, Chooser::Nam | Chooser::OursOfNam);
        let allowed = |arm: Arm| !limited || setting.nam_arms.contains(&arm.0);
        let request = Request {
            subject: &subject,
            path: &path,
            objective: Objective::Time,
            allowed: &allowed,
        };
        let decision = self.policy.choose(&request);
        let (arm, encode_s, mut seen) = self.encode(&decision, &path, &subject, message);
        let coded = message.coded[arm.0];
        let decode_s = coded.decode_s * setting.slower * self.scatter();
        seen.decode_s = Some(decode_s);
        let transfer = self.connection.send(super::whole(coded.bytes));
        let expected_s = decision.chosen.total_s();
        let (codec_s, network_s) = (encode_s + decode_s, transfer.seconds);
        self.transport();
        let after = self.connection.transport();
        let windows = path.windows(coded.bytes);
        let whole = after.retransmitted == before;
        let reported = self.estimate.receipt(&Receipt {
            bytes: super::whole((coded.bytes - path.segment_bytes).max(0.0)),
            spread: Duration::from_secs_f64(transfer.spread_s.max(0.0)),
            unbroken: whole,
            windows,
        });
        self.estimate.took(coded.bytes, network_s, whole && windows <= 1.0 && !reported);
        if self.estimate.is_still(&path) {
            let took = Observation::Network { path: &path, bytes: coded.bytes, seconds: network_s };
            self.policy.observe(&took);
        }
        self.policy.observe(&Observation::Encoding { subject: &subject, arm, seen: &seen });
        self.learn_from_probe(&decision, &subject, message);
        let off = self.random.below(2001) as f64 / 1000.0 - 1.0;
        self.connection.idle(self.pause_s + self.pause_scatter_s * off);
        Outcome { message: at, arm: arm.0, codec_s, network_s, expected_s }
    }

    fn transport(&mut self) {
        self.estimate.transport(self.connection.transport());
        if std::mem::replace(&mut self.jumps, self.estimate.jumps()) != self.estimate.jumps() {
            let peer = self.path().peer;
            self.policy.observe(&Observation::PathChanged { peer });
        }
    }

    fn scatter(&mut self) -> f64 {
        1.0 + TIME_SCATTER * (self.random.below(2001) as f64 / 1000.0 - 1.0)
    }

    fn seen(&mut self, coded: &Coded, decode: bool) -> Seen {
        let slower = self.setting.slower;
        let mut time = |seconds: f64| seconds * slower * self.scatter();
        Seen {
            bytes: coded.bytes,
            encode_s: Some(time(coded.encode_s)),
            decode_s: decode.then(|| time(coded.decode_s)),
        }
    }

    /// Encodes as chosen, and again while the policy thinks that this pays; gives the arm whose
    /// result goes, the seconds that all took, and what was seen of that arm.
    fn encode(
        &mut self,
        decision: &Decision,
        path: &Path,
        subject: &Subject,
        message: &Message,
    ) -> (Arm, f64, Seen) {
        let mut tried = vec![decision.chosen.arm];
        let mut best = (decision.chosen.arm, self.seen(&message.coded[tried[0].0], false));
        let mut seconds = best.1.encode_s.unwrap_or(0.0);
        // What is left as it is waits for no codec, and is not asked about again.
        while tried[0] != Arm::IDENTITY && tried.len() < MAX_TRIED {
            let Some(arm) = self.policy.again(decision, path, &tried, best.1.bytes) else { break };
            tried.push(arm);
            let seen = self.seen(&message.coded[arm.0], false);
            seconds += seen.encode_s.unwrap_or(0.0);
            let other = if seen.bytes < best.1.bytes {
                std::mem::replace(&mut best, (arm, seen))
            } else {
                (arm, seen)
            };
            self.policy.observe(&Observation::Encoding { subject, arm: other.0, seen: &other.1 });
        }
        (best.0, seconds, best.1)
    }

    /// Learns what encodings that nobody sends turn out to be.
    fn learn_from_probe(&mut self, decision: &Decision, subject: &Subject, message: &Message) {
        if self.chooser == Chooser::Nam {
            self.profile(message);
        } else if let Some(arm) = decision.probe {
            let seen = self.seen(&message.coded[arm.0], false);
            self.policy.observe(&Observation::Encoding { subject, arm, seen: &seen });
        }
    }

    /// NAM's profiles are made off line, with every compression of every message.
    fn profile(&mut self, message: &Message) {
        let subject =
            Subject { peer: 0, class: 1, bytes: message.bytes, head_share: message.head_share };
        for &arm in self.setting.nam_arms.iter().skip(1) {
            let seen = self.seen(&message.coded[arm], true);
            let arm = Arm(arm);
            self.policy.observe(&Observation::Encoding { subject: &subject, arm, seen: &seen });
        }
    }
}

/// Time by `clock` that our policy takes for so many choices, once it has seen the class.
pub fn choosing(setting: &Setting<'_>, times: u32, clock: impl Fn() -> Duration) -> f64 {
    let link = LinkConfig::default();
    let mut run = Run::new(*setting, Chooser::Ours, &link, 1);
    (0..2 * setting.class.messages.len()).for_each(|place| {
        run.send(place);
    });
    let message = &setting.class.messages[0];
    let subject =
        Subject { peer: 0, class: 1, bytes: message.bytes, head_share: message.head_share };
    let (path, objective) = (run.estimate.path(), Objective::Time);
    let request = Request { subject: &subject, path: &path, objective, allowed: &|_| true };
    let begin = clock();
    for _ in 0..times {
        run.policy.choose(&request);
    }
    (clock() - begin).as_secs_f64()
}
