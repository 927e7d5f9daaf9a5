//! What messages of a length took where a queue overflows: time is no smooth function of bytes
//! there.
//!
//! A packet more at once finds the queue full, and what is lost with it waits for a timeout. Where
//! packets are lost and yet the same length takes as long each time, not chance decides but the
//! length and how much of it leaves at once; what one length takes says little of others then.

use super::Path;
use super::corrected::MAX_RATIO;
use crate::state::{Error, Persist, Reader, Writer};

/// Messages remembered: the regression of so many takes some microseconds.
const REMEMBERED: usize = 32;
/// Lengths are alike that differ by half a packet, or by this share.
const ALIKE: f64 = 0.02;
/// What a message's time counts after each later one.
const FADING: f64 = 0.9;
/// Where a length scatters no more than by this share of its time, the length decides: what was
/// lost before, which no place tells, may cost one message of several a timeout.
const CERTAIN: f64 = 0.3;
/// Less scatter than this is not expected: the model knows no single packet.
const MIN_SCATTER: f64 = 0.03;
/// Messages that have one like them before, before their scatter is known.
const FEW: usize = 2;
/// How far a place may be from what is made of the others: by a timeout as much again is lost.
const OWN: f64 = 0.4;
/// No message is so long that its place is beyond this, and no window lets so many packets out.
const MAX_LENGTH: f64 = 10_000.0;
const MAX_BURST: f64 = 1e6;

/// A message that went.
#[derive(Clone, Copy, Debug, Default)]
struct Went {
    place: MessageShape,
    /// Share of waiting in the time that the model expected.
    waiting: f64,
    /// What it took over that time.
    ratio: f64,
}

impl Went {
    fn features(&self) -> [f64; 2] {
        [self.waiting, 1.0 - self.waiting]
    }

    fn likeness(&self, place: &MessageShape) -> f64 {
        let apart = self.place.apart(place);
        (-0.5 * apart.iter().map(|apart| apart * apart).sum::<f64>()).exp()
    }

    fn is_like(&self, other: &Self) -> bool {
        self.place.apart(&other.place).iter().all(|apart| apart.abs() < 1.0)
    }
}

/// A message among others: those are alike that are less than 1 apart.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MessageShape {
    length: f64,
    /// Packets that leave at once.
    burst: f64,
    /// Packets of it that leave before the window grows slowly.
    steep: f64,
}

impl MessageShape {
    pub(super) fn new(path: &Path, bytes: f64) -> Self {
        let length = (2.0 * ALIKE * bytes / path.segment_bytes).ln_1p() / ALIKE;
        let packets = path.packets(bytes);
        let steep = path.threshold.min(packets);
        Self { length, burst: path.start_window.min(packets), steep }
    }

    fn apart(&self, other: &Self) -> [f64; 3] {
        [self.length - other.length, self.burst - other.burst, self.steep - other.steep]
    }
}

/// The last messages of a path, and where lengths decide, a regression of what they took (a
/// Gaussian process): of a factor each for waiting and sending, and of what is a place's own.
#[derive(Clone, Debug)]
pub(super) struct Lengths {
    /// How far the factors may be off.
    spread: [f64; 2],
    /// The first `count`, the latest last.
    went: [Went; REMEMBERED],
    count: usize,
    found: Option<Found>,
}

/// What was found.
#[derive(Clone, Copy, Debug)]
struct Found {
    factors: [f64; 2],
    /// Of each message, how much of its likeness is added.
    own: [f64; REMEMBERED],
}

impl Lengths {
    /// Nothing went yet.
    pub(super) fn new(spread: [f64; 2]) -> Self {
        Self { spread, went: [Went::default(); REMEMBERED], count: 0, found: None }
    }

    /// Learns what a message took over what was expected, of which `waiting` was a share.
    pub(super) fn observe(&mut self, place: MessageShape, waiting: f64, ratio: f64) {
        if self.count == REMEMBERED {
            self.went.copy_within(1.., 0);
            self.count -= 1;
        }
        self.went[self.count] = Went { place, waiting, ratio };
        self.count += 1;
        self.learn();
    }

    /// What is to be expected over what the model says, where lengths decide.
    pub(super) fn ratio(&self, place: &MessageShape, waiting: f64) -> Option<f64> {
        let Found { factors, own } = self.found.as_ref()?;
        let own = own.iter().zip(self.went()).map(|(own, went)| own * went.likeness(place));
        Some(factors[0] * waiting + factors[1] * (1.0 - waiting) + own.sum::<f64>())
    }

    fn went(&self) -> &[Went] {
        &self.went[..self.count]
    }

    fn learn(&mut self) {
        let scatter = self.scatter().filter(|&scatter| scatter <= CERTAIN);
        self.found = scatter.map(|scatter| self.fit(scatter.max(MIN_SCATTER)));
    }

    /// How much messages of the same length scattered of late, as a share of their time: each is
    /// held against the last one like it.
    fn scatter(&self) -> Option<f64> {
        let (mut squares, mut weight, mut pairs) = (0.0, 0.0, 0);
        for (at, now) in self.went().iter().enumerate() {
            weight *= FADING;
            squares *= FADING;
            let like = |before: &&Went| before.is_like(now);
            let Some(before) = self.went[..at].iter().rev().find(like) else { continue };
            let off = (now.ratio - before.ratio) / (now.ratio + before.ratio) * 2.0;
            (squares, weight, pairs) = (squares + off * off / 2.0, weight + 1.0, pairs + 1);
        }
        (pairs >= FEW).then(|| (squares / weight).sqrt())
    }

    fn fit(&self, scatter: f64) -> Found {
        let (mut matrix, mut own) = ([[0.0; REMEMBERED]; REMEMBERED], [0.0; REMEMBERED]);
        let variances = self.spread.map(|spread| spread * spread);
        let mut noise = scatter * scatter;
        for (row, went) in self.went().iter().enumerate().rev() {
            own[row] = went.ratio - 1.0;
            for (column, other) in self.went[..=row].iter().enumerate() {
                let (a, b) = (went.features(), other.features());
                let shared = variances[0] * a[0] * b[0] + variances[1] * a[1] * b[1];
                matrix[row][column] = shared + OWN * OWN * went.likeness(&other.place);
            }
            matrix[row][row] += noise;
            noise /= FADING;
        }
        solve(&mut matrix, &mut own[..self.count]);
        let mut factors = [1.0; 2];
        for (own, went) in own.iter_mut().zip(self.went()) {
            for ((factor, variance), of) in factors.iter_mut().zip(variances).zip(went.features()) {
                *factor += variance * of * *own;
            }
            *own *= OWN * OWN;
        }
        Found { factors, own }
    }
}

/// Turns `x` into the solution of `matrix · solution = x`, by Cholesky's factors: the matrix is
/// symmetric and positive definite, and its lower triangle alone is looked at.
fn solve(matrix: &mut [[f64; REMEMBERED]; REMEMBERED], x: &mut [f64]) {
    let n = x.len();
    for row in 0..n {
        for column in 0..=row {
            let known = (0..column).map(|at| matrix[row][at] * matrix[column][at]);
            let rest = matrix[row][column] - known.sum::<f64>();
            matrix[row][column] = if row == column {
                rest.max(f64::EPSILON).sqrt()
            } else {
                rest / matrix[column][column]
            };
        }
    }
    for (at, row) in matrix[..n].iter().enumerate() {
        let known: f64 = row.iter().zip(&x[..at]).map(|(of, x)| of * x).sum();
        x[at] = (x[at] - known) / row[at];
    }
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|at| matrix[at][row] * x[at]).sum();
        x[row] = (x[row] - known) / matrix[row][row];
    }
}

/// The messages; what they tell is found again.
impl Persist for Lengths {
    fn write(&self, to: &mut Writer<'_>) {
        to.count(self.count);
        for Went { place, waiting, ratio } in self.went() {
            let figures = [place.length, place.burst, place.steep, *waiting, *ratio];
            figures.into_iter().for_each(|figure| to.f64(figure));
        }
    }

    fn read(&mut self, from: &mut Reader<'_>) -> Result<(), Error> {
        self.count = from.count("number of messages", REMEMBERED)?;
        for went in &mut self.went[..self.count] {
            let length = from.f64("a place among lengths", 0.0..=MAX_LENGTH)?;
            let burst = from.f64("packets at once", 0.0..=MAX_BURST)?;
            let steep = from.f64("packets before the threshold", 0.0..=MAX_BURST)?;
            *went = Went {
                place: MessageShape { length, burst, steep },
                waiting: from.f64("a share of waiting", 0.0..=1.0)?,
                ratio: from.f64("a ratio of times", 1.0 / MAX_RATIO..=MAX_RATIO)?,
            };
        }
        self.learn();
        Ok(())
    }
}
