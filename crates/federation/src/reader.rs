//! Values of a TOML file with their lines: each is asked for by its kind; what is wrong is noted,
//! and the reading goes on.

use std::cell::RefCell;
use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toml::value::Datetime;

use crate::fault::Faults;

/// Longest text of a file that is repeated in a message, in bytes.
const MAX_SHOWN_BYTES: usize = 60;

/// A text of others for a message: without control characters, and cut where it is long.
pub(crate) fn shown(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_SHOWN_BYTES);
    let (head, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let head: String = head.chars().map(clean).collect();
    if rest.is_empty() { head } else { format!("{head}…") }
}

/// A file, and what was found wrong with it.
pub(crate) struct Reader {
    /// Where lines end, in bytes.
    ends: Vec<usize>,
    faults: RefCell<Faults>,
}

impl Reader {
    pub(crate) fn new(file: &str, text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at);
        let faults = Faults { file: file.to_owned(), ..Faults::default() };
        Self { ends: ends.collect(), faults: RefCell::new(faults) }
    }

    /// The line of a place.
    pub(crate) fn line(&self, at: usize) -> usize {
        1 + self.ends.partition_point(|end| *end < at)
    }

    pub(crate) fn note(
        &self,
        line: usize,
        field: &str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.faults.borrow_mut().push(line, field, what.into(), remedy.into());
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.faults.borrow().faults.is_empty()
    }

    pub(crate) fn into_faults(self) -> Faults {
        let mut faults = self.faults.into_inner();
        faults.faults.sort();
        faults
    }

    pub(crate) fn root<'t>(&'t self, map: &'t DeTable<'t>, keys: &[&str]) -> Table<'t> {
        let table = Table { reader: self, map, line: 1, field: String::new() };
        table.check_keys(keys);
        table
    }
}

/// A table whose keys are known.
pub(crate) struct Table<'t> {
    reader: &'t Reader,
    map: &'t DeTable<'t>,
    pub(crate) line: usize,
    field: String,
}

/// A value and where it stands.
pub(crate) struct Item<'t> {
    reader: &'t Reader,
    value: &'t DeValue<'t>,
    pub(crate) line: usize,
    field: String,
}

impl<'t> Table<'t> {
    fn check_keys(&self, keys: &[&str]) {
        for (key, _) in self.map.iter() {
            let name: &str = key.get_ref();
            if !keys.contains(&name) {
                let line = self.reader.line(key.span().start);
                let what = format!("the key '{}' is unknown", shown(name));
                let known = format!("known are {}", keys.join(", "));
                self.reader.note(line, &self.field, what, known);
            }
        }
    }

    pub(crate) fn refuse(&self, what: impl Into<String>, remedy: impl Into<String>) {
        self.reader.note(self.line, &self.field, what, remedy);
    }

    /// Notes what is wrong at a line of the same file.
    pub(crate) fn note(
        &self,
        line: usize,
        field: &str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.reader.note(line, field, what, remedy);
    }

    /// A value, if it is there.
    pub(crate) fn get(&self, key: &str) -> Option<Item<'t>> {
        let value = self.map.get(key)?;
        let field = match self.field.as_str() {
            "" => key.to_owned(),
            own => format!("{own}.{key}"),
        };
        Some(self.item(value, field))
    }

    /// A value that has to be there.
    pub(crate) fn need(&self, key: &str) -> Option<Item<'t>> {
        let item = self.get(key);
        if item.is_none() {
            self.refuse(format!("'{key}' is missing"), format!("write {key} = …"));
        }
        item
    }

    /// The tables of `[[key]]`, at most so many.
    pub(crate) fn tables(&self, key: &str, max: usize, keys: &[&str]) -> Vec<Table<'t>> {
        let Some(item) = self.get(key) else { return Vec::new() };
        let all = item.list(max, &format!("[[{key}]]"));
        all.iter().filter_map(|item| item.table(keys)).collect()
    }

    /// How many tables of a list there are, read or not.
    pub(crate) fn count(&self, key: &str) -> usize {
        match self.get(key).map(|item| item.value) {
            Some(DeValue::Array(all)) => all.len(),
            _ => 0,
        }
    }

    fn item(&self, value: &'t Spanned<DeValue<'t>>, field: String) -> Item<'t> {
        let line = self.reader.line(value.span().start);
        Item { reader: self.reader, value: value.get_ref(), line, field }
    }
}

impl<'t> Item<'t> {
    pub(crate) fn refuse(&self, what: impl Into<String>, remedy: impl Into<String>) {
        self.reader.note(self.line, &self.field, what, remedy);
    }

    fn is_no(&self, wanted: &str) {
        let what = match self.value {
            DeValue::String(text) => format!("\"{}\"", shown(text)),
            DeValue::Integer(number) => shown(number.as_str()),
            DeValue::Float(number) => shown(number.as_str()),
            DeValue::Boolean(truth) => truth.to_string(),
            DeValue::Datetime(time) => time.to_string(),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        };
        self.refuse(format!("{what} is not {wanted}"), "");
    }

    /// A text of at most so many bytes.
    pub(crate) fn text(&self, max_bytes: usize) -> Option<&'t str> {
        let DeValue::String(text) = self.value else {
            self.is_no("a text in quotes");
            return None;
        };
        if text.len() > max_bytes {
            self.refuse(format!("has {} bytes", text.len()), format!("at most {max_bytes}"));
            return None;
        }
        Some(text)
    }

    pub(crate) fn truth(&self) -> Option<bool> {
        let DeValue::Boolean(truth) = self.value else {
            self.is_no("true or false");
            return None;
        };
        Some(*truth)
    }

    /// A whole number within bounds.
    pub(crate) fn whole(&self, range: RangeInclusive<u64>, remedy: &str) -> Option<u64> {
        let DeValue::Integer(number) = self.value else {
            self.is_no("a whole number");
            return None;
        };
        let text = number.as_str();
        let value = u64::from_str_radix(text, number.radix()).ok();
        let found = value.filter(|value| range.contains(value));
        if found.is_none() {
            let limit = format!("{} to {}{remedy}", range.start(), range.end());
            self.refuse(format!("{} is out of bounds", shown(text)), limit);
        }
        found
    }

    /// A number in thousandths, at least one of them.
    pub(crate) fn thousandths(&self, max: u32, remedy: &str) -> Option<u64> {
        let text = match self.value {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => {
                self.is_no("a number");
                return None;
            }
        };
        let value: f64 = text.parse().unwrap_or(f64::NAN);
        let scaled = (value * 1000.0).round();
        let is_exact = (value * 1000.0 - scaled).abs() < 1e-6;
        if !(value.is_finite() && is_exact && value > 0.0 && value <= f64::from(max)) {
            let limit = format!("0.001 to {max} in steps of 0.001{remedy}");
            self.refuse(format!("{} is no rate", shown(text)), limit);
            return None;
        }
        // From 1 to a thousand times the maximum, which has ten digits at most.
        format!("{scaled:.0}").parse().ok()
    }

    pub(crate) fn time(&self) -> Option<&'t Datetime> {
        let DeValue::Datetime(time) = self.value else {
            self.is_no("a time, as 2026-01-31T12:00:00Z without quotes");
            return None;
        };
        Some(time)
    }

    /// The members of a list of at most so many.
    pub(crate) fn list(&self, max: usize, name: &str) -> Vec<Item<'t>> {
        let DeValue::Array(array) = self.value else {
            self.is_no("a list");
            return Vec::new();
        };
        if array.len() > max {
            let remedy = "make filters wider, or several profiles";
            self.refuse(format!("{} of {name}", array.len()), format!("at most {max}: {remedy}"));
            return Vec::new();
        }
        let item = |(at, value): (usize, &'t Spanned<DeValue<'t>>)| Item {
            reader: self.reader,
            value: value.get_ref(),
            line: self.reader.line(value.span().start),
            field: format!("{}[{}]", self.field, at + 1),
        };
        array.iter().enumerate().map(item).collect()
    }

    /// A table that has no other keys than these.
    pub(crate) fn table(&self, keys: &[&str]) -> Option<Table<'t>> {
        let table = self.known_table()?;
        table.check_keys(keys);
        Some(table)
    }

    /// A table whose keys were looked at before.
    pub(crate) fn known_table(&self) -> Option<Table<'t>> {
        let DeValue::Table(map) = self.value else {
            self.is_no("a table");
            return None;
        };
        Some(Table { reader: self.reader, map, line: self.line, field: self.field.clone() })
    }
}
