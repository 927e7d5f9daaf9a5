//! What a caller can do wrong.

use std::fmt;

/// Why a configuration was refused. Every case is the caller's fault; every message is one line
/// that names the value, what is allowed and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A text that is not of the kind asked for.
    Value {
        /// As given.
        value: String,
        /// What is understood, with units and an example.
        expected: String,
    },
    /// A setting's value that does not parse or is out of its range.
    Setting {
        /// The key, with its prefix as given.
        key: String,
        /// As given.
        value: String,
        /// The range, the units and an example.
        expected: String,
    },
    /// No such key, preset or model.
    Unknown {
        /// `setting`, `preset` or `model`.
        kind: &'static str,
        /// As given.
        name: String,
        /// The known name it may have meant.
        nearest: Option<&'static str>,
        /// All known names.
        known: Vec<&'static str>,
    },
    /// Settings that contradict each other.
    Conflict {
        /// What contradicts and what to do.
        what: String,
    },
    /// A delivery trace that cannot be used.
    Trace {
        /// Its name as given.
        name: String,
        /// The line, counted from 1, when one is to blame.
        line: Option<usize>,
        /// What is wrong and what to do.
        what: String,
    },
    /// A file of heights, places or path losses that cannot be used.
    File {
        /// Of what: `height grid`, `profile`, `eel`, `GPX`, `GeoJSON`.
        kind: &'static str,
        /// Its name as given.
        name: String,
        /// The line, counted from 1, when one is to blame.
        line: Option<usize>,
        /// The field to blame: a key, an element, an event with its entry; empty for none.
        field: String,
        /// What is wrong and what to do.
        what: String,
    },
    /// A path that no propagation model can tell of: a place off the map, a height out of range.
    Path {
        /// What is wrong and what to do.
        what: String,
    },
    /// A radio channel that cannot be: a node without a slot, a rate of nothing.
    Medium {
        /// The setting, as `tdma.owners`.
        field: String,
        /// What is wrong and what to do.
        what: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value { value, expected } => {
                write!(f, "{} is not {expected}", quoted(value))
            }
            Self::Setting { key, value, expected } => {
                write!(f, "{key} = {} is refused: give {expected}", quoted(value))
            }
            Self::Unknown { kind, name, nearest, known } => {
                write!(f, "unknown {kind} {}: ", quoted(name))?;
                if let Some(nearest) = nearest {
                    write!(f, "did you mean '{nearest}'? ")?;
                }
                write!(f, "known are {}", known.join(", "))
            }
            Self::Conflict { what } => f.write_str(what),
            Self::Trace { name, line: Some(line), what } => {
                write!(f, "trace {} line {line}: {what}", shown(name))
            }
            Self::Trace { name, line: None, what } => {
                write!(f, "trace {}: {what}", shown(name))
            }
            Self::File { kind, name, line, field, what } => {
                write!(f, "{kind} {}", shown(name))?;
                if let Some(line) = line {
                    write!(f, " line {line}")?;
                }
                if !field.is_empty() {
                    write!(f, " field {}", quoted(field))?;
                }
                write!(f, ": {what}")
            }
            Self::Path { what } => f.write_str(what),
            Self::Medium { field, what } => write!(f, "{}: {what}", shown(field)),
        }
    }
}

impl std::error::Error for Error {}

/// Most characters of a value that a message repeats.
const MAX_QUOTED_CHARS: usize = 60;

/// A value for a message, in quotes.
pub(crate) fn quoted(value: &str) -> String {
    format!("'{}'", shown(value))
}

/// A value on one line, cut when long.
fn shown(value: &str) -> String {
    let mut shown: String =
        value.chars().take(MAX_QUOTED_CHARS).flat_map(char::escape_debug).collect();
    if value.chars().nth(MAX_QUOTED_CHARS).is_some() {
        shown.push('…');
    }
    shown
}
