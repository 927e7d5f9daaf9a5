//! Bridges that are to be connected.

use std::cell::RefCell;
use std::collections::VecDeque;

use tokio::sync::Notify;

/// Their numbers, in order; each is there once until it is taken.
#[derive(Debug, Default)]
pub(crate) struct Dials {
    waiting: RefCell<VecDeque<u16>>,
    changed: Notify,
}

impl Dials {
    /// One is to be connected.
    pub(crate) fn add(&self, bridge: u16) {
        self.waiting.borrow_mut().push_back(bridge);
        self.changed.notify_one();
    }

    /// The next.
    pub(crate) async fn next(&self) -> u16 {
        loop {
            let next = self.waiting.borrow_mut().pop_front();
            match next {
                Some(bridge) => return bridge,
                None => self.changed.notified().await,
            }
        }
    }
}
