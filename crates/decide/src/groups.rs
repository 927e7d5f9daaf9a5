//! Groups of messages alike within a class: one operation answers many questions, and each answer
//! compresses in its own way, time and again.
//!
//! The regression of a class says what its messages have in common. What a group showed beyond it
//! is the group's own.

use crate::arm::Arm;
use crate::models::Subject;
use crate::state::{Error, Persist, Reader, Writer};

/// Groups of a class; beyond it the one longest unused goes.
const MAX_GROUPS: usize = 8;
/// Messages are of one group whose lengths differ by no more than this, as a logarithm.
const LENGTH: f64 = 0.1;
/// And the shares that a fast coder leaves of their heads.
const HEAD: f64 = 0.1;
/// Messages that a mean is over: later ones tell more.
const MEMORY: f64 = 8.0;
/// What a message scatters about its group's mean, over what groups are apart, as variances.
const SCATTER: f64 = 0.15;
/// Of how much otherwise a group turned out in other arms, so much is expected of an arm that has
/// not shown.
const SHARED: f64 = 0.7;
/// Logarithms of lengths and shares are within these bounds.
const MAX_LN: f64 = 64.0;

/// What groups add to a regression's prediction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Beyond {
    /// To be added to the mean.
    pub(crate) mean: f64,
    /// Share of the regression's variance that is explained by it.
    pub(crate) explained: f64,
}

/// Where a message is among others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct GroupPosition {
    ln_bytes: f64,
    ln_head: f64,
}

impl GroupPosition {
    fn new(subject: &Subject) -> Self {
        let ln = |value: f64| value.max(f64::MIN_POSITIVE).ln().clamp(-MAX_LN, MAX_LN);
        Self { ln_bytes: ln(subject.bytes), ln_head: ln(subject.head_share) }
    }

    /// Square of how far apart two are: up to 1 they are of one group.
    fn apart(&self, other: &Self) -> f64 {
        let bytes = (self.ln_bytes - other.ln_bytes) / LENGTH;
        let head = (self.ln_head - other.ln_head) / HEAD;
        bytes * bytes + head * head
    }
}

/// Mean of the logarithms of the shares that an arm left.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Share {
    mean: f64,
    weight: f64,
}

impl Share {
    fn observe(&mut self, value: f64) {
        self.weight = (self.weight + 1.0).min(MEMORY);
        self.mean += (value - self.mean) / self.weight;
    }
}

#[derive(Clone, Debug)]
struct Group {
    place: GroupPosition,
    /// By arm.
    shares: Vec<Share>,
    used: u64,
}

/// The groups of a class.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    arms: usize,
    all: Vec<Group>,
    clock: u64,
}

impl Groups {
    pub(crate) fn new(arms: usize) -> Self {
        Self { arms, all: Vec::new(), clock: 0 }
    }

    /// Most bytes of memory that they take besides their own, whatever comes.
    pub(crate) fn most_bytes(arms: usize) -> usize {
        MAX_GROUPS * (size_of::<Group>() + arms * size_of::<Share>())
    }

    /// What the group that a message is nearest to showed of an arm beyond what the regression says
    /// of that group; where this arm has not shown, what others did. `expected` is the regression's
    /// mean for an arm, at a length in bytes and a head's share.
    pub(crate) fn beyond(
        &self,
        subject: &Subject,
        arm: usize,
        expected: impl Fn(usize, f64, f64) -> Option<f64>,
    ) -> Beyond {
        let place = GroupPosition::new(subject);
        let Some(group) = self.nearest(&place).map(|at| &self.all[at]) else {
            return Beyond::default();
        };
        let likeness = (-0.5 * group.place.apart(&place)).exp();
        let (bytes, head) = (group.place.ln_bytes.exp(), group.place.ln_head.exp());
        let off = |(arm, share): (usize, &Share)| Some(share.mean - expected(arm, bytes, head)?);
        match group.shares.get(arm).filter(|share| share.weight > 0.0) {
            Some(share) => {
                let gain = share.weight / (share.weight + SCATTER);
                let Some(off) = off((arm, share)) else { return Beyond::default() };
                Beyond { mean: likeness * gain * off, explained: likeness * likeness * gain }
            }
            None => {
                let shown = group.shares.iter().enumerate().filter(|(_, share)| share.weight > 0.0);
                let (sum, count) = shown
                    .filter_map(off)
                    .fold((0.0, 0.0), |(sum, count), off| (sum + off, count + 1.0));
                let gain = SHARED * count / (count + SCATTER);
                let mean = if count > 0.0 { likeness * gain * sum / count } else { 0.0 };
                Beyond { mean, explained: 0.0 }
            }
        }
    }

    /// Learns the logarithm of the share that an arm left of a message.
    pub(crate) fn observe(&mut self, subject: &Subject, arm: usize, value: f64) {
        if arm >= self.arms || !value.is_finite() {
            return;
        }
        self.clock += 1;
        let place = GroupPosition::new(subject);
        let near = |at: &usize| self.all[*at].place.apart(&place) <= 1.0;
        let at = self.nearest(&place).filter(near).unwrap_or_else(|| self.begin(place));
        let group = &mut self.all[at];
        group.used = self.clock;
        if let Some(share) = group.shares.get_mut(arm) {
            share.observe(value.clamp(-MAX_LN, MAX_LN));
        }
    }

    /// A new group, and where it is.
    fn begin(&mut self, place: GroupPosition) -> usize {
        if self.all.len() >= MAX_GROUPS {
            let oldest = (0..self.all.len()).min_by_key(|&at| self.all[at].used);
            oldest.map(|at| self.all.swap_remove(at));
        }
        self.all.push(Group { place, shares: vec![Share::default(); self.arms], used: 0 });
        self.all.len() - 1
    }

    fn nearest(&self, place: &GroupPosition) -> Option<usize> {
        let apart = |at: usize| self.all[at].place.apart(place);
        (0..self.all.len()).min_by(|&a, &b| apart(a).total_cmp(&apart(b)))
    }
}

/// Of each group its place and what each arm showed.
impl Persist for Groups {
    fn write(&self, to: &mut Writer<'_>) {
        to.u64(self.clock);
        to.count(self.all.len());
        for Group { place, shares, used } in &self.all {
            to.u64(*used);
            to.f64(place.ln_bytes);
            to.f64(place.ln_head);
            for share in shares {
                to.f64(share.mean);
                to.f64(share.weight);
            }
        }
    }

    fn read(&mut self, from: &mut Reader<'_>) -> Result<(), Error> {
        self.clock = from.clock()?;
        self.all.clear();
        for _ in 0..from.count("number of groups", MAX_GROUPS)? {
            let used = from.u64()?;
            let ln_bytes = from.f64("a length's logarithm", -MAX_LN..=MAX_LN)?;
            let ln_head = from.f64("a head's logarithm", -MAX_LN..=MAX_LN)?;
            let at = self.begin(GroupPosition { ln_bytes, ln_head });
            self.all[at].used = used;
            for arm in from.arms() {
                let mean = from.f64("a share's logarithm", -MAX_LN..=MAX_LN)?;
                let weight = from.f64("a weight", 0.0..=MEMORY)?;
                let own = arm.and_then(|Arm(arm)| self.all[at].shares.get_mut(arm));
                own.into_iter().for_each(|own| *own = Share { mean, weight });
            }
        }
        Ok(())
    }
}
