//! Subscriptions by session: none, one or many, and these shared by whoever has found them.

use std::slice;
use std::sync::Arc;

use super::Subscriber;
use crate::ids::SessionId;

/// See the module. A copy shares its memory.
#[derive(Clone, Debug, Default)]
pub(crate) enum List {
    /// Nothing.
    #[default]
    None,
    /// Most filters are of one session.
    One(Subscriber),
    /// In the order of sessions.
    Many(Arc<Vec<Subscriber>>),
}

impl List {
    /// All of them, in the order of sessions.
    pub(crate) fn as_slice(&self) -> &[Subscriber] {
        match self {
            Self::None => &[],
            Self::One(one) => slice::from_ref(one),
            Self::Many(many) => many,
        }
    }

    /// Adds one, or replaces the one of the same session; whether it is a further one.
    pub(super) fn insert(&mut self, subscriber: Subscriber) -> bool {
        match self {
            Self::None => {
                *self = Self::One(subscriber);
                true
            }
            Self::One(one) if one.session == subscriber.session => {
                *one = subscriber;
                false
            }
            Self::One(one) => {
                let mut both = vec![*one, subscriber];
                both.sort_by_key(|one| one.session);
                *self = Self::Many(Arc::new(both));
                true
            }
            Self::Many(many) => {
                let many = Arc::make_mut(many);
                match many.binary_search_by_key(&subscriber.session, |known| known.session) {
                    Ok(at) => {
                        many.get_mut(at).into_iter().for_each(|known| *known = subscriber);
                        false
                    }
                    Err(at) => {
                        many.insert(at, subscriber);
                        true
                    }
                }
            }
        }
    }

    /// Takes the one of a session out; whether there was one.
    pub(super) fn remove(&mut self, session: SessionId) -> bool {
        match self {
            Self::None => false,
            Self::One(one) => {
                let was = one.session == session;
                if was {
                    *self = Self::None;
                }
                was
            }
            Self::Many(many) => {
                let at = many.binary_search_by_key(&session, |known| known.session);
                let Ok(at) = at else { return false };
                let many = Arc::make_mut(many);
                many.remove(at);
                if let [one] = many.as_slice() {
                    *self = Self::One(*one);
                }
                true
            }
        }
    }

    /// Adds those of another filter, each for itself; with [`Self::sort`] it is in order again.
    pub(super) fn extend(&mut self, other: &Self) {
        if let Self::None = self {
            *self = other.clone();
            return;
        }
        if other.as_slice().is_empty() {
            return;
        }
        if let Self::Many(many) = self
            && let Some(many) = Arc::get_mut(many)
        {
            many.extend_from_slice(other.as_slice());
            return;
        }
        let mut all = Vec::with_capacity(self.as_slice().len() + other.as_slice().len());
        all.extend_from_slice(self.as_slice());
        all.extend_from_slice(other.as_slice());
        *self = Self::Many(Arc::new(all));
    }

    /// Puts those of several filters into order; stable, so that the same subscriptions give the
    /// same order.
    pub(super) fn sort(&mut self) {
        if let Self::Many(many) = self
            && !many.is_sorted_by_key(|one| one.session)
        {
            Arc::make_mut(many).sort_by_key(|one| one.session);
        }
    }
}
