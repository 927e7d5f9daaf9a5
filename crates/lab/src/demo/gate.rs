//! Where cells wait for each other: they begin together, one shortly after the other.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Opens when everybody has come, or never.
pub(super) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

enum GateState {
    Missing(usize),
    Open(Instant),
    Closed,
}

impl Gate {
    /// For `count` who wait.
    pub(super) fn new(count: usize) -> Self {
        Self { state: Mutex::new(GateState::Missing(count)), changed: Condvar::new() }
    }

    /// One comes and waits for the others. When the gate opened; none when it never will.
    pub(super) fn wait(&self) -> Option<Instant> {
        let mut state = self.state();
        if let GateState::Missing(missing) = &mut *state {
            *missing -= 1;
            if *missing == 0 {
                *state = GateState::Open(Instant::now());
                self.changed.notify_all();
            }
        }
        loop {
            match *state {
                GateState::Open(at) => return Some(at),
                GateState::Closed => return None,
                GateState::Missing(_) => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// When it opened, if it did.
    pub(super) fn opened(&self) -> Option<Instant> {
        match *self.state() {
            GateState::Open(at) => Some(at),
            GateState::Missing(_) | GateState::Closed => None,
        }
    }

    /// Sends everybody away.
    pub(super) fn close(&self) {
        *self.state() = GateState::Closed;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_for_all_when_the_last_has_come() {
        let gate = Gate::new(3);
        let opened = std::thread::scope(|scope| {
            let waiting = [(); 2].map(|()| scope.spawn(|| gate.wait()));
            let last = gate.wait();
            waiting.map(|one| one.join().unwrap()).into_iter().chain([last]).collect::<Vec<_>>()
        });
        assert!(opened[0].is_some());
        assert_eq!(opened, [gate.opened(); 3]);
    }

    #[test]
    fn a_closed_one_sends_everybody_away() {
        let gate = Gate::new(2);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.wait());
            gate.close();
            assert_eq!(waiting.join().unwrap(), None);
        });
        assert_eq!((gate.wait(), gate.opened()), (None, None));
    }
}
