//! What may change while a side runs: replaced as a whole, read as a whole.

use std::sync::{Arc, PoisonError, RwLock};

use crate::config::Service;
use crate::pattern::Target;

/// A value that all clones share.
#[derive(Debug)]
pub(crate) struct Live<T>(Arc<RwLock<Arc<T>>>);

impl<T> Clone for Live<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Live<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(value))))
    }

    /// The value as it is now.
    pub(crate) fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another in its place.
    pub(crate) fn set(&self, value: T) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(value);
    }
}

/// What is set for services. They are known by number, and a number means the same as long as the
/// process lives: those that are set anew come behind all that were before, in the relay too
/// ([`relay::Relay::add_services`]), since requests that are open go on by theirs.
#[derive(Clone, Debug)]
pub(crate) struct Services(Live<List>);

#[derive(Debug)]
struct List {
    all: Vec<Arc<Service>>,
    /// The first of those that requests are matched with now.
    first: usize,
}

impl Services {
    pub(crate) fn new(services: Vec<Service>) -> Self {
        let all = services.into_iter().map(Arc::new).collect();
        Self(Live::new(List { all, first: 0 }))
    }

    /// The number of the service that a target belongs to; the first that matches.
    pub(crate) fn find(&self, target: &Target<'_>) -> Option<usize> {
        let list = self.0.get();
        let mut now = list.all.iter().enumerate().skip(list.first);
        now.find(|(_, service)| service.pattern.matches(target)).map(|(number, _)| number)
    }

    /// What is set for the service of this number.
    pub(crate) fn get(&self, number: usize) -> Option<Arc<Service>> {
        self.0.get().all.get(number).map(Arc::clone)
    }

    /// Whether the fields of some keep their case and order, and answers their reasons.
    pub(crate) fn are_some_exact(&self) -> bool {
        let list = self.0.get();
        list.all.iter().skip(list.first).any(|service| service.exact_fields)
    }

    /// Takes these instead, for requests from now on.
    pub(crate) fn renew(&self, services: Vec<Service>) {
        let old = self.0.get();
        let (mut all, first) = (old.all.clone(), old.all.len());
        all.extend(services.into_iter().map(Arc::new));
        self.0.set(List { all, first });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;

    fn service(pattern: &str, max_body: u64) -> Service {
        Service {
            pattern: Pattern::parse(pattern).unwrap(),
            pass_accept_encoding: false,
            fallback: None,
            max_body: Some(max_body),
            infoset: false,
            principal: Vec::new(),
            not_principal: Vec::new(),
            exact_fields: false,
            upgrades: None,
        }
    }

    #[test]
    fn a_number_means_the_same_after_services_were_set_anew() {
        let services = Services::new(vec![service("http://a", 1), service("http://b", 2)]);
        let find =
            |host| services.find(&Target { scheme: Some("http"), host, port: 80, path: Some("/") });
        assert_eq!((find("a"), find("b"), find("c")), (Some(0), Some(1), None));
        services.renew(vec![service("http://b", 3)]);
        assert_eq!((find("a"), find("b")), (None, Some(2)));
        let most = |number| services.get(number).and_then(|service| service.max_body);
        assert_eq!((most(1), most(2), most(3)), (Some(2), Some(3), None));
    }
}
