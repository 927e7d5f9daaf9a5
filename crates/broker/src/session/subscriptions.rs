//! What a session has subscribed to, by filter: most have subscribed to few.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Granted;

/// Subscriptions that are kept in a list.
const MAX_FEW: usize = 8;

/// See the module; its owner bounds it by [`Subscriptions::len`].
#[derive(Debug)]
pub(crate) enum Subscriptions {
    /// At most [`MAX_FEW`], in the order of their filters.
    Few(Vec<(Arc<str>, Granted)>),
    /// More, at some time.
    Many(BTreeMap<Arc<str>, Granted>),
}

impl Default for Subscriptions {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Subscriptions {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Few(few) => few.len(),
            Self::Many(many) => many.len(),
        }
    }

    /// Whether there is one.
    pub(crate) fn contains(&self, filter: &str) -> bool {
        match self {
            Self::Few(few) => place(few, filter).is_ok(),
            Self::Many(many) => many.contains_key(filter),
        }
    }

    /// Adds one, or replaces it.
    pub(crate) fn insert(&mut self, filter: Arc<str>, granted: Granted) {
        let few = match self {
            Self::Few(few) => few,
            Self::Many(many) => {
                many.insert(filter, granted);
                return;
            }
        };
        match place(few, &filter) {
            Ok(at) => few.get_mut(at).into_iter().for_each(|(_, known)| *known = granted),
            Err(at) if few.len() < MAX_FEW => {
                few.reserve_exact(1);
                few.insert(at, (filter, granted));
            }
            Err(_) => {
                let all = std::mem::take(few).into_iter().chain([(filter, granted)]);
                *self = Self::Many(all.collect());
            }
        }
    }

    /// Takes one out; its filter.
    pub(crate) fn remove(&mut self, filter: &str) -> Option<Arc<str>> {
        match self {
            Self::Few(few) => place(few, filter).ok().map(|at| few.remove(at).0),
            Self::Many(many) => many.remove_entry(filter).map(|(filter, _)| filter),
        }
    }

    /// The filters, in order.
    pub(crate) fn filters(&self) -> impl Iterator<Item = &Arc<str>> {
        let (few, many) = match self {
            Self::Few(few) => (Some(few), None),
            Self::Many(many) => (None, Some(many)),
        };
        let few = few.into_iter().flatten().map(|(filter, _)| filter);
        few.chain(many.into_iter().flat_map(BTreeMap::keys))
    }
}

fn place(few: &[(Arc<str>, Granted)], filter: &str) -> Result<usize, usize> {
    few.binary_search_by(|(known, _)| (**known).cmp(filter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publication::Grade;

    #[test]
    fn few_and_many_are_one_table() {
        let granted = |identifier| Granted {
            grade: Grade::AtMostOnce,
            no_local: false,
            as_published: false,
            identifier,
        };
        let mut all = Subscriptions::default();
        for round in 0..2 {
            for number in (0..20_u32).rev() {
                all.insert(format!("f/{number:02}").into(), granted(number + round));
            }
            assert_eq!(all.len(), 20);
        }
        assert!(all.contains("f/07") && !all.contains("f/20"));
        assert!(all.filters().map(|filter| &**filter).is_sorted());
        for number in 0..15 {
            assert!(all.remove(&format!("f/{number:02}")).is_some());
        }
        assert!(all.remove("f/00").is_none());
        all.insert("f/00".into(), granted(0));
        let left: Vec<&str> = all.filters().map(|filter| &**filter).collect();
        assert_eq!(left, ["f/00", "f/15", "f/16", "f/17", "f/18", "f/19"]);
        let mut few = Subscriptions::default();
        few.insert("b".into(), granted(1));
        few.insert("a".into(), granted(2));
        few.insert("b".into(), granted(3));
        let Subscriptions::Few(few) = few else { panic!("two are few") };
        assert_eq!(few.iter().map(|(_, one)| one.identifier).collect::<Vec<_>>(), [2, 3]);
    }
}
