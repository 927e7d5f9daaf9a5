//! What a message leaves open for those that follow it.
//!
//! A sender that pauses closes its congestion window by and by (RFC 2861), but from where it was:
//! whoever always sends much finds more of it open each time, and may be faster than whoever takes
//! what is the fastest for the next message alone. So the last messages to a peer are gone through
//! as if they were the next: each in what is the fastest then, and those of a class all in one arm.

use std::collections::VecDeque;

use crate::arm::Arm;
use crate::estimate::{UNSEEN_LOSS, after_pause};
use crate::network::{NetworkModel, Path, Paths};
use crate::policy::{Candidate, Request};

/// Messages that are gone through: that they all are gone through for one decision bounds its time.
const MESSAGES: usize = 8;
/// Of a class there are at least so many among them: fewer do not tell what follows.
const FEWEST: usize = 4;
/// A gain below this share of the time is none: predictions are not that good.
const WORTHWHILE: f64 = 0.02;
/// Packets that hold nothing back.
const OPEN: f64 = 1e6;

/// A message that went.
#[derive(Clone, Debug)]
struct Went {
    peer: u64,
    class: u64,
    /// [`Path::kept`]
    kept: f64,
    /// The quickest codec first, without those that leave no less than a quicker one.
    candidates: Vec<Candidate>,
    arm: Arm,
    /// Whether that was not what was the fastest for it alone.
    held: bool,
}

impl Went {
    /// Seconds and bytes in what would be the fastest, or in an arm.
    fn fastest(&self, network: &Paths, path: &Path, arm: Option<Arm>) -> Option<(f64, f64)> {
        let mut best: Option<(f64, f64)> = None;
        for one in self.candidates.iter().filter(|one| arm.is_none_or(|arm| one.arm == arm)) {
            if best.is_some_and(|best| one.codec_s() >= best.0) {
                break;
            }
            let seconds = one.codec_s() + network.seconds(path, one.expected.bytes);
            best = best.filter(|best| best.0 <= seconds).or(Some((seconds, one.expected.bytes)));
        }
        best
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ahead {
    went: VecDeque<Went>,
}

impl Ahead {
    /// Most bytes of memory that it takes beside its own, with so many arms.
    pub(crate) fn most_bytes(arms: usize) -> usize {
        MESSAGES * (size_of::<Went>() + arms * size_of::<Candidate>())
    }

    /// What the messages of a class are better sent in throughout than each in what is the fastest
    /// for it, as `fastest` is for the next.
    pub(crate) fn better(
        &self,
        network: &Paths,
        next: &Request<'_>,
        candidates: &[Candidate],
        fastest: &Candidate,
    ) -> Option<Candidate> {
        let (path, class) = (next.path, next.subject.class);
        let went = || self.went.iter().filter(|one| one.peer == path.peer);
        // Where packets are lost it is they that close the window, and what a length takes there
        // cannot be asked so often.
        if path.loss > UNSEEN_LOSS || went().filter(|one| one.class == class).count() < FEWEST {
            return None;
        }
        let open = Path { start_window: OPEN, ..*path };
        let may_be_better = |one: &&Candidate| {
            let seconds = one.codec_s() + network.seconds(&open, one.expected.bytes);
            one.arm != fastest.arm && seconds < (1.0 - WORTHWHILE) * fastest.total_s()
        };
        let mut others = candidates.iter().filter(may_be_better).peekable();
        others.peek()?;
        let cost = |arm| seconds(went(), network, path, class, arm);
        let most = (1.0 - WORTHWHILE) * cost(None)?;
        let costs = others.filter_map(|one| Some((*one, cost(Some(one.arm))?)));
        let best = costs.min_by(|a, b| a.1.total_cmp(&b.1));
        best.filter(|(_, cost)| *cost < most).map(|(one, _)| one)
    }

    /// Takes what a message goes in.
    pub(crate) fn remember(
        &mut self,
        request: &Request<'_>,
        candidates: &[Candidate],
        arm: Arm,
        held: bool,
    ) {
        if self.went.len() >= MESSAGES {
            self.went.pop_front();
        }
        let (peer, kept) = (request.path.peer, request.path.kept);
        let mut candidates = candidates.to_vec();
        candidates.sort_by(|a, b| a.codec_s().total_cmp(&b.codec_s()));
        let mut least = f64::INFINITY;
        candidates.retain(|one| {
            let is_less = one.expected.bytes < least;
            least = least.min(one.expected.bytes);
            is_less || one.arm == arm
        });
        let class = request.subject.class;
        self.went.push_back(Went { peer, class, kept, candidates, arm, held });
    }

    /// Whether a class goes in an arm for the sake of what follows.
    pub(crate) fn holds(&self, class: u64, arm: Arm) -> bool {
        let last = self.went.iter().rfind(|one| one.class == class);
        last.is_some_and(|one| one.held && one.arm == arm)
    }
}

/// Seconds of all that went, those of a class in one arm or each in the fastest.
fn seconds<'a>(
    went: impl Iterator<Item = &'a Went> + Clone,
    network: &Paths,
    path: &Path,
    class: u64,
    throughout: Option<Arm>,
) -> Option<f64> {
    let mut path = Path { backlog_bytes: 0.0, ..*path };
    let (mut total_s, mut window) = (0.0, None);
    // The first time through finds the window that they leave in the long run.
    for counted in [0.0, 1.0] {
        for one in went.clone() {
            path.start_window =
                window.map_or(path.start_window, |left| after_pause(left, one.kept));
            let arm = if one.class == class { throughout } else { Some(one.arm) };
            let (seconds, bytes) = one.fastest(network, &path, arm)?;
            total_s += counted * seconds;
            window = Some(window_after(&path, bytes));
        }
    }
    Some(total_s)
}

/// The window when so many bytes have gone: it doubles with each round trip that fills it, up to
/// the threshold or to what fills the link.
fn window_after(path: &Path, bytes: f64) -> f64 {
    let full = path.rate_bps * path.rtt_s / 8.0 / (path.segment_bytes + path.header_bytes);
    let most = if path.threshold < OPEN { path.threshold } else { full };
    let (mut window, mut left) = (path.start_window, path.packets(bytes));
    while left > window && window < most {
        left -= window;
        window *= 2.0;
    }
    // Who does not fill half of a window does not widen it (Linux, tcp_is_cwnd_limited).
    let last = (window + left).min(window.max(2.0 * left));
    last.min(most).max(path.start_window)
}
