//! What regressions have in common.

use super::add;
use super::covariance::Covariance;
use super::recursive::{Lesson, MAX_FIGURE, Prediction, Recursive};
use crate::state::{Error, Persist, Reader, Writer};

/// Shares of the variance that regressions begin with; the rest each has for its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Common {
    /// What all have in common.
    pub all: f64,
    /// What a family has in common besides.
    pub family: f64,
}

/// Regressions that begin equally unsure, in families: how far one is off what was expected of it
/// is taken for a sum of what all have in common, what its family has, and its own. So what one is
/// taught moves the others, as far as their own observations have not told, and leaves less to be
/// unsure of.
///
/// The regressions hold what they are expected to be themselves; here is what they moved by.
#[derive(Clone, Debug, PartialEq)]
pub struct Kin<const N: usize> {
    all: Part<N>,
    families: Vec<Part<N>>,
    own: Covariance<N>,
    forgetting: f64,
}

/// One of the sum's parts.
#[derive(Clone, Debug, PartialEq)]
struct Part<const N: usize> {
    moved: [f64; N],
    covariance: Covariance<N>,
}

/// By how much the coefficients move that nobody has told otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moves<const N: usize> {
    all: [f64; N],
    family: (usize, [f64; N]),
}

impl<const N: usize> Part<N> {
    fn observe(&mut self, lesson: &Lesson<N>, scale: f64, forgetting: f64) -> [f64; N] {
        let direction = self.covariance.times(&lesson.free);
        // Of how much coefficients moved, not of how far they were off: that comes back where no
        // regression fits, and this would add up without end.
        let share = scale * (1.0 + lesson.began);
        let moves = self.covariance.times(&lesson.moved_over_start).map(|moved| share * moved);
        self.covariance.shrink(&direction, scale);
        self.covariance.forget(forgetting);
        add(&mut self.moved, &moves);
        moves
    }
}

impl<const N: usize> Kin<N> {
    /// Of regressions that begin as `one` did.
    #[must_use]
    pub fn new(one: &Recursive<N>, common: Common, families: usize) -> Self {
        let share = |share: f64| Covariance::new(one.start().map(|start| share * start));
        let part = |of: f64| Part { moved: [0.0; N], covariance: share(of) };
        Self {
            all: part(common.all),
            families: vec![part(common.family); families],
            own: share(1.0 - common.all - common.family),
            forgetting: one.forgetting(),
        }
    }

    /// What `one` of a family says, less unsure for what others showed.
    #[must_use]
    pub fn predict(&self, family: usize, one: &Recursive<N>, features: &[f64; N]) -> Prediction {
        one.predict_with(features, self.unsure(family, features))
    }

    /// Variance of what nobody has observed itself, in units of the observations'.
    fn unsure(&self, family: usize, features: &[f64; N]) -> f64 {
        let along = |part: &Part<N>| part.covariance.along(features);
        let family = self.families.get(family).map_or(0.0, along);
        along(&self.all) + family + self.own.along(features)
    }

    /// Learns from what one of a family was taught, and says by how much others move.
    pub fn observe(&mut self, family: usize, lesson: &Lesson<N>) -> Moves<N> {
        let scale = 1.0 / (1.0 + self.unsure(family, &lesson.free));
        let observe = |part: &mut Part<N>| part.observe(lesson, scale, self.forgetting);
        let all = observe(&mut self.all);
        Moves { all, family: (family, self.families.get_mut(family).map_or([0.0; N], observe)) }
    }

    /// By how much those of a family have moved.
    #[must_use]
    pub fn moved(&self, family: usize) -> Moves<N> {
        let moved = self.families.get(family).map_or([0.0; N], |part| part.moved);
        Moves { all: self.all.moved, family: (family, moved) }
    }
}

impl<const N: usize> Moves<N> {
    /// By how much those of a family move.
    #[must_use]
    pub fn of(&self, family: usize) -> [f64; N] {
        let mut moves = self.all;
        if family == self.family.0 {
            add(&mut moves, &self.family.1);
        }
        moves
    }
}

impl<const N: usize> Persist for Part<N> {
    fn write(&self, to: &mut Writer<'_>) {
        self.moved.iter().for_each(|&figure| to.f64(figure));
        self.covariance.write(to);
    }

    fn read(&mut self, from: &mut Reader<'_>) -> Result<(), Error> {
        for figure in &mut self.moved {
            *figure = from.f64("a coefficient", -MAX_FIGURE..=MAX_FIGURE)?;
        }
        self.covariance.read(from)
    }
}

impl<const N: usize> Kin<N> {
    /// Most bytes of memory that a family takes.
    pub(crate) const FAMILY_BYTES: usize = size_of::<Part<N>>();

    pub(crate) fn write(&self, to: &mut Writer<'_>) {
        self.all.write(to);
        self.families.iter().for_each(|family| family.write(to));
    }

    /// Reads what was written, where each of its families is this one by now, or none.
    pub(crate) fn read(
        &mut self,
        from: &mut Reader<'_>,
        families: &[Option<usize>],
    ) -> Result<(), Error> {
        self.all.read(from)?;
        let Some(mut skipped) = self.families.first().cloned() else { return Ok(()) };
        for family in families {
            let own = family.and_then(|family| self.families.get_mut(family));
            own.unwrap_or(&mut skipped).read(from)?;
        }
        Ok(())
    }
}
