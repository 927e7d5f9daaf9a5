//! What is held for peers, within bounds.

use std::collections::VecDeque;

/// At most `MOST` things, `OF_ONE` of each owner: none drives out all that others have. What was
/// used last stands last, and what was not used for longest goes first.
#[derive(Debug)]
pub(crate) struct Held<T, const MOST: usize, const OF_ONE: usize>(VecDeque<(u64, T)>);

impl<T, const MOST: usize, const OF_ONE: usize> Default for Held<T, MOST, OF_ONE> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T, const MOST: usize, const OF_ONE: usize> Held<T, MOST, OF_ONE> {
    /// Takes one more; what went for it, and whose it was.
    pub(crate) fn hold(&mut self, owner: u64, one: T) -> Option<(u64, T)> {
        let of_owner = self.0.iter().filter(|(of, _)| *of == owner).count();
        let gone = match self.0.iter().position(|(of, _)| *of == owner) {
            Some(at) if of_owner >= OF_ONE => self.0.remove(at),
            _ if self.0.len() >= MOST => self.0.pop_front(),
            _ => None,
        };
        self.0.push_back((owner, one));
        gone
    }

    /// All of them, with their owners.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.0.iter().map(|(owner, one)| (*owner, one))
    }

    /// Notes that the one was used.
    pub(crate) fn used(&mut self, is_it: impl Fn(u64, &T) -> bool) -> Option<&mut T> {
        let at = self.0.iter().position(|(owner, one)| is_it(*owner, one))?;
        let found = self.0.remove(at)?;
        self.0.push_back(found);
        self.0.back_mut().map(|(_, one)| one)
    }

    /// Gives up those that are such; whose they were.
    pub(crate) fn remove(&mut self, is_it: impl Fn(&T) -> bool) -> Vec<u64> {
        let owners = self.0.iter().filter(|(_, one)| is_it(one)).map(|(owner, _)| *owner).collect();
        self.0.retain(|(_, one)| !is_it(one));
        owners
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_owner_drives_out_all_that_another_has() {
        let mut all: Held<u64, 12, 4> = Held::default();
        assert!((0..3).all(|one| all.hold(1, one).is_none()));
        assert!((0..4).all(|one| all.hold(2, 10 + one).is_none()));
        let gone: Vec<_> = (0..300).filter_map(|one| all.hold(2, 20 + one)).collect();
        assert_eq!((gone.len(), gone[0]), (300, (2, 10)));
        let of = |all: &Held<_, 12, 4>, owner| all.iter().filter(|(of, _)| *of == owner).count();
        assert_eq!((of(&all, 1), of(&all, 2)), (3, 4));
        // Of many the latest, and what was used since.
        assert_eq!(all.used(|owner, one| owner == 1 && *one == 0), Some(&mut 0));
        let gone: Vec<_> = (3..30).filter_map(|owner| all.hold(owner, owner)).collect();
        assert_eq!((gone.len(), gone[0], gone[6]), (22, (1, 1), (1, 0)));
        assert_eq!(all.iter().count(), 12);
        assert_eq!((all.remove(|one| *one == 29), all.remove(|_| false)), (vec![29], vec![]));
    }
}
