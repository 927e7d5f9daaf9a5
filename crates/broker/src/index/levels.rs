//! Texts of levels, each stored once and counted.

// order: only looked up.
use std::collections::HashMap;
use std::sync::Arc;

/// A level of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// One that has a text.
    Text(u32),
    /// `+`.
    Any,
    /// `#`.
    Rest,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Levels {
    // order: only looked up.
    numbers: HashMap<Arc<str>, u32>,
    entries: Vec<(Arc<str>, u32)>,
    free: Vec<u32>,
}

impl Levels {
    /// The levels of a filter, each counted once more.
    pub(super) fn intern(&mut self, filter: &str) -> Vec<Level> {
        filter
            .split('/')
            .map(|text| match text {
                "+" => Level::Any,
                "#" => Level::Rest,
                _ => Level::Text(self.number(text)),
            })
            .collect()
    }

    /// The levels of a filter, if all their texts are known.
    pub(super) fn find_filter(&self, filter: &str) -> Option<Vec<Level>> {
        filter
            .split('/')
            .map(|text| match text {
                "+" => Some(Level::Any),
                "#" => Some(Level::Rest),
                _ => self.numbers.get(text).map(|number| Level::Text(*number)),
            })
            .collect()
    }

    /// The levels of a topic; `None` where no filter has that text.
    pub(super) fn find_topic(&self, topic: &str) -> impl Iterator<Item = Option<u32>> {
        topic.split('/').map(|text| self.numbers.get(text).copied())
    }

    /// A filter with these levels is gone.
    pub(super) fn release(&mut self, path: &[Level]) {
        for level in path {
            let Level::Text(number) = level else { continue };
            let Some((text, count)) = self.entries.get_mut(*number as usize) else { continue };
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.numbers.remove(&**text);
                *text = Arc::from("");
                self.free.push(*number);
            }
        }
    }

    /// How many texts there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            if let Some((_, count)) = self.entries.get_mut(*number as usize) {
                *count = count.saturating_add(1);
            }
            return *number;
        }
        let text: Arc<str> = text.into();
        let number = match self.free.pop() {
            Some(number) => {
                if let Some(entry) = self.entries.get_mut(number as usize) {
                    *entry = (text.clone(), 1);
                }
                number
            }
            None => {
                self.entries.push((text.clone(), 1));
                u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
            }
        };
        self.numbers.insert(text, number);
        number
    }
}
