//! Which cells have come how far.

use std::time::Duration;

use record::demo::Cell;

use super::progress::Standing;

/// What a cell has told.
pub(super) enum Event {
    /// Its servers are ready, or will never be.
    Prepared(usize),
    /// This is its result.
    Done(usize, Box<Cell>),
}

/// All cells by number.
pub(super) struct Tally {
    cells: Vec<Progress>,
    /// What the two phases are called.
    phases: [&'static str; 2],
}

struct Progress {
    network: String,
    is_prepared: bool,
    result: Option<Cell>,
}

impl Tally {
    /// Cells of these networks, for the first time or `again`.
    pub(super) fn new(networks: impl IntoIterator<Item = String>, again: bool) -> Self {
        let cell = |network| Progress { network, is_prepared: false, result: None };
        let phases = match again {
            false => ["starting services and pairs", "measuring"],
            true => ["starting again what the machine spoilt", "measuring once more"],
        };
        Self { cells: networks.into_iter().map(cell).collect(), phases }
    }

    pub(super) fn take_in(&mut self, event: Event) {
        match event {
            Event::Prepared(number) => self.cells[number].is_prepared = true,
            Event::Done(number, result) => self.cells[number].result = Some(*result),
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.cells.iter().all(|cell| cell.result.is_some())
    }

    /// All results in order; none unless complete.
    pub(super) fn into_results(self) -> Option<Vec<Cell>> {
        self.cells.into_iter().map(|cell| cell.result).collect()
    }

    /// How far they are: with the preparations as long as no `left` is given, else with the
    /// measuring.
    pub(super) fn standing(&self, left: Option<Duration>) -> Standing {
        let is_through = |cell: &&Progress| match left {
            None => cell.is_prepared,
            Some(_) => cell.result.is_some(),
        };
        let mut waiting: Vec<(String, usize)> = Vec::new();
        for cell in self.cells.iter().filter(|cell| !is_through(cell)) {
            match waiting.iter_mut().find(|(network, _)| *network == cell.network) {
                Some((_, count)) => *count += 1,
                None => waiting.push((cell.network.clone(), 1)),
            }
        }
        Standing {
            phase: self.phases[usize::from(left.is_some())],
            done: self.cells.iter().filter(is_through).count(),
            cells: self.cells.len(),
            left,
            waiting,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preparations_count_first_and_results_then() {
        let mut tally = Tally::new(["los", "los", "cnr"].map(str::to_string), false);
        tally.take_in(Event::Prepared(0));
        let standing = tally.standing(None);
        assert_eq!(standing.done, 1);
        assert_eq!(standing.waiting, [("los".to_string(), 1), ("cnr".to_string(), 1)]);
        assert_eq!(tally.standing(Some(Duration::ZERO)).done, 0);
        assert!(!tally.is_complete());
        assert!(tally.into_results().is_none());
    }
}
