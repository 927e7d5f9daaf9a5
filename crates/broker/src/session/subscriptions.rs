//! What a session has subscribed to, by filter: most have subscribed to few.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Granted;

/// Subscriptions that are kept in a list.
const MAX_FEW: usize = 8;

/// See the module; its owner bounds it by [`Subscriptions::len`].
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    /// In the order of their filters; empty where there are more.
    few: Vec<(Arc<str>, Granted)>,
    many: Option<Box<BTreeMap<Arc<str>, Granted>>>,
}

impl Subscriptions {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.few.len() + self.many.as_ref().map_or(0, |many| many.len())
    }

    /// Whether there is one.
    pub(crate) fn contains(&self, filter: &str) -> bool {
        self.place(filter).is_ok()
            || self.many.as_ref().is_some_and(|many| many.contains_key(filter))
    }

    /// Adds one, or replaces it.
    pub(crate) fn insert(&mut self, filter: Arc<str>, granted: Granted) {
        let place = self.place(&filter);
        if let Ok(at) = place {
            self.few.get_mut(at).into_iter().for_each(|(_, known)| *known = granted);
        } else if self.many.is_some() || self.few.len() >= MAX_FEW {
            let many = self.many.get_or_insert_default();
            many.extend(std::mem::take(&mut self.few));
            many.insert(filter, granted);
        } else if let Err(at) = place {
            self.few.reserve_exact(1);
            self.few.insert(at, (filter, granted));
        }
    }

    /// Takes one out; its filter.
    pub(crate) fn remove(&mut self, filter: &str) -> Option<Arc<str>> {
        if let Ok(at) = self.place(filter) {
            return Some(self.few.remove(at).0);
        }
        let many = self.many.as_mut()?;
        let (filter, _) = many.remove_entry(filter)?;
        if many.is_empty() {
            self.many = None;
        }
        Some(filter)
    }

    /// The filters, in order.
    pub(crate) fn filters(&self) -> impl Iterator<Item = &Arc<str>> {
        self.few
            .iter()
            .map(|(filter, _)| filter)
            .chain(self.many.iter().flat_map(|many| many.keys()))
    }

    fn place(&self, filter: &str) -> Result<usize, usize> {
        self.few.binary_search_by(|(known, _)| (**known).cmp(filter))
    }
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
        assert_eq!(few.few.iter().map(|(_, one)| one.identifier).collect::<Vec<_>>(), [2, 3]);
    }
}
