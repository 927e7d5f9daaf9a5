//! Values of a TOML file with their lines: each is asked for by its kind; what is wrong is noted,
//! and the reading goes on.

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::time::Duration;

use link::net::{Problem, Problems};
use toml::de::{DeTable, DeValue};

use crate::messaging::shown;

/// A file that is read, and what was found wrong with it.
pub(super) struct Source<'s> {
    name: &'s str,
    /// Where lines begin, in bytes.
    starts: Vec<usize>,
    problems: RefCell<Problems>,
}

/// A value and where it stands.
#[derive(Clone)]
pub(super) struct Item<'t, 's> {
    source: &'s Source<'s>,
    value: &'t DeValue<'t>,
    pub(super) line: usize,
    pub(super) field: String,
}

/// A table whose keys were checked.
#[derive(Clone)]
pub(super) struct Table<'t, 's> {
    source: &'s Source<'s>,
    map: &'t DeTable<'t>,
    pub(super) line: usize,
    field: String,
}

impl<'s> Source<'s> {
    pub(super) fn new(name: &'s str, text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = [0].into_iter().chain(ends.map(|(at, _)| at + 1)).collect();
        Self { name, starts, problems: RefCell::default() }
    }

    /// The line of a place, counted from 1.
    pub(super) fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at).max(1)
    }

    pub(super) fn note(
        &self,
        line: usize,
        field: &str,
        what: impl Into<String>,
        limit: impl Into<String>,
    ) {
        self.push(self.name, Some(line), field, what.into(), limit.into());
    }

    /// Notes what is wrong with a file that the scenario names: the file's own line where it has
    /// one, else the line that names it.
    pub(super) fn note_file(&self, item: &Item<'_, '_>, error: &link::Error) {
        match error {
            link::Error::File { name, line: Some(line), field, what, .. } => {
                self.push(name, Some(*line), field, what.clone(), String::new());
            }
            other => item.refuse(other.to_string(), ""),
        }
    }

    fn push(&self, file: &str, line: Option<usize>, field: &str, what: String, limit: String) {
        let (limit, remedy) = match limit.split_once("; ") {
            Some((limit, remedy)) => (limit.to_owned(), remedy.to_owned()),
            None => (limit, String::new()),
        };
        let (file, field) = (file.to_owned(), field.to_owned());
        self.problems.borrow_mut().push(Problem { file, line, field, what, limit, remedy });
    }

    pub(super) fn is_sound(&self) -> bool {
        self.problems.borrow().is_empty()
    }

    pub(super) fn into_problems(self) -> Problems {
        self.problems.into_inner().sorted()
    }

    /// The whole file as a table.
    pub(super) fn root<'t>(&'s self, map: &'t DeTable<'t>, keys: &[&str]) -> Table<'t, 's> {
        let table = Table { source: self, map, line: 1, field: String::new() };
        table.check_keys(keys);
        table
    }
}

impl<'t, 's> Item<'t, 's> {
    /// Notes that the value is refused: what is wrong, and after `; ` in the limit the remedy.
    pub(super) fn refuse(&self, what: impl Into<String>, limit: impl Into<String>) {
        self.source.note(self.line, &self.field, what, limit);
    }

    pub(super) fn source(&self) -> &'s Source<'s> {
        self.source
    }

    fn is_no(&self, wanted: &str) {
        let kind = match self.value {
            DeValue::String(text) => format!("\"{}\"", shown(text)),
            DeValue::Integer(number) => shown(number.as_str()),
            DeValue::Float(number) => shown(number.as_str()),
            DeValue::Boolean(truth) => truth.to_string(),
            DeValue::Datetime(_) => "a date".to_owned(),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        };
        self.refuse(format!("{kind} is not {wanted}"), "");
    }

    pub(super) fn text(&self) -> Option<&'t str> {
        match self.value {
            DeValue::String(text) => Some(text),
            _ => {
                self.is_no("a text in quotes");
                None
            }
        }
    }

    /// A text of at most so many bytes.
    pub(super) fn short(&self, max_bytes: usize) -> Option<String> {
        let text = self.text()?;
        if text.len() > max_bytes {
            self.refuse(format!("has {} bytes", text.len()), format!("at most {max_bytes}"));
            return None;
        }
        Some(text.to_owned())
    }

    pub(super) fn truth(&self) -> Option<bool> {
        match self.value {
            DeValue::Boolean(truth) => Some(*truth),
            _ => {
                self.is_no("true or false");
                None
            }
        }
    }

    /// A number in a range; `unit` is for messages.
    pub(super) fn number(&self, range: RangeInclusive<f64>, unit: &str) -> Option<f64> {
        let number = match self.value {
            DeValue::Float(number) => number.as_str().replace('_', "").parse::<f64>().ok(),
            DeValue::Integer(_) => self.integer().map(|whole| whole as f64),
            _ => None,
        };
        let allowed = format!("{} to {} {unit}", range.start(), range.end());
        match number {
            Some(number) if range.contains(&number) => Some(number),
            Some(number) => {
                self.refuse(format!("{number} is out of range"), format!("give {allowed}"));
                None
            }
            None => {
                self.is_no(&format!("a number, {}", allowed.trim_end()));
                None
            }
        }
    }

    pub(super) fn whole(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let allowed = format!("{} to {}", range.start(), range.end());
        match self.integer().map(u64::try_from) {
            Some(Ok(whole)) if range.contains(&whole) => Some(whole),
            Some(_) => {
                let DeValue::Integer(digits) = self.value else { return None };
                let what = format!("{} is out of range", shown(digits.as_str()));
                self.refuse(what, format!("give {allowed}"));
                None
            }
            None => {
                self.is_no(&format!("a whole number, {allowed}"));
                None
            }
        }
    }

    fn integer(&self) -> Option<i128> {
        let DeValue::Integer(number) = self.value else { return None };
        i128::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()
    }

    /// A text with a unit, read by a function of `link::units` or one like them.
    pub(super) fn unit<T>(&self, read: fn(&str) -> Result<T, link::Error>) -> Option<T> {
        match read(self.text()?) {
            Ok(value) => Some(value),
            Err(error) => {
                self.refuse(error.to_string(), "");
                None
            }
        }
    }

    pub(super) fn duration(&self, range: RangeInclusive<Duration>) -> Option<Duration> {
        let duration = self.unit(link::units::parse_duration)?;
        if range.contains(&duration) {
            return Some(duration);
        }
        let text = |duration: Duration| match duration {
            Duration::ZERO => "0 s".to_owned(),
            other => link::units::format_duration(other),
        };
        let limit = format!("give {} to {}", text(*range.start()), text(*range.end()));
        self.refuse(format!("{} is out of range", text(duration)), limit);
        None
    }

    /// One of some words.
    pub(super) fn word(&self, words: &[&'static str]) -> Option<&'static str> {
        let text = self.text()?;
        let found = words.iter().find(|word| **word == text).copied();
        if found.is_none() {
            let meant = link::nearest(text, words);
            let meant = meant.map_or(String::new(), |word| format!("; did you mean '{word}'?"));
            let limit = format!("give one of {}{meant}", words.join(", "));
            self.refuse(format!("\"{}\" is unknown", shown(text)), limit);
        }
        found
    }

    /// The members of a list of at most so many.
    pub(super) fn list(&self, max: usize) -> Vec<Item<'t, 's>> {
        let DeValue::Array(array) = self.value else {
            self.is_no("a list in square brackets");
            return Vec::new();
        };
        if array.len() > max {
            self.refuse(format!("has {} members", array.len()), format!("at most {max}"));
        }
        let item = |(index, value): (usize, &'t toml::Spanned<DeValue<'t>>)| Item {
            source: self.source,
            value: value.get_ref(),
            line: self.source.line(value.span().start),
            field: format!("{}[{}]", self.field, index + 1),
        };
        array.iter().take(max).enumerate().map(item).collect()
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self.value, DeValue::Array(_))
    }

    /// A table that has no other keys than these.
    pub(super) fn table(&self, keys: &[&str]) -> Option<Table<'t, 's>> {
        let table = self.any_table()?;
        table.check_keys(keys);
        Some(table)
    }

    /// A table whose keys are names.
    pub(super) fn any_table(&self) -> Option<Table<'t, 's>> {
        let DeValue::Table(map) = self.value else {
            self.is_no("a table");
            return None;
        };
        let (source, line, field) = (self.source, self.line, self.field.clone());
        Some(Table { source, map, line, field })
    }
}

impl<'t, 's> Table<'t, 's> {
    fn check_keys(&self, keys: &[&str]) {
        let known = |key: &str| keys.contains(&key);
        for (key, _) in self.map.iter().filter(|(key, _)| !known(key.get_ref())) {
            let name: &str = key.get_ref();
            let meant = link::nearest(name, keys);
            let meant = meant.map_or(String::new(), |word| format!("; did you mean '{word}'?"));
            let what = format!("unknown key '{}'", shown(name));
            let line = self.source.line(key.span().start);
            self.source.note(
                line,
                &self.field,
                what,
                format!("known are {}{meant}", keys.join(", ")),
            );
        }
    }

    /// Notes something about the table as a whole.
    pub(super) fn refuse(&self, what: impl Into<String>, limit: impl Into<String>) {
        self.source.note(self.line, &self.field, what, limit);
    }

    pub(super) fn source(&self) -> &'s Source<'s> {
        self.source
    }

    /// Where it stands, as `node[3]`.
    pub(super) fn name(&self) -> &str {
        &self.field
    }

    pub(super) fn get(&self, key: &str) -> Option<Item<'t, 's>> {
        let value = self.map.get(key)?;
        let dot = if self.field.is_empty() { "" } else { "." };
        Some(Item {
            source: self.source,
            value: value.get_ref(),
            line: self.source.line(value.span().start),
            field: format!("{}{dot}{}", self.field, shown(key)),
        })
    }

    /// A key that must be there.
    pub(super) fn need(&self, key: &str) -> Option<Item<'t, 's>> {
        let item = self.get(key);
        if item.is_none() {
            let what = format!("'{key}' is missing");
            let place = if self.field.is_empty() { "the file" } else { "this table" };
            self.refuse(what, format!("each scenario has it; add it to {place}"));
        }
        item
    }

    /// All keys with their values.
    pub(super) fn entries(&self) -> Vec<(&'t str, Item<'t, 's>)> {
        let entry = |(key, _): (&'t toml::Spanned<_>, _)| {
            let key: &'t std::borrow::Cow<'t, str> = key.get_ref();
            let key: &'t str = key;
            Some((key, self.get(key)?))
        };
        self.map.iter().filter_map(entry).collect()
    }

    /// The tables of a list, as of `[[node]]`: each by its number, from 1.
    pub(super) fn tables(&self, key: &str, max: usize, keys: &[&str]) -> Vec<Table<'t, 's>> {
        let Some(list) = self.get(key) else { return Vec::new() };
        list.list(max).iter().filter_map(|item| item.table(keys)).collect()
    }
}
