//! What is wrong with a profile.

use std::fmt;

/// Faults that are said of one file; of the rest only how many they are.
const MAX_FAULTS: usize = 50;

/// Something that is wrong, in one line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The line, from 1.
    pub line: usize,
    /// Where it stands, as `flow[2].topic`; empty: the file.
    pub field: String,
    /// What is there.
    pub what: String,
    /// What may be there, or what to do.
    pub remedy: String,
}

/// All that is wrong with a file, in the order of its lines; never empty as an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// The file's name in messages.
    pub file: String,
    /// The faults, at most fifty.
    pub faults: Vec<Fault>,
    /// How many there are besides.
    pub unlisted: usize,
}

impl Faults {
    pub(crate) fn push(&mut self, line: usize, field: &str, what: String, remedy: String) {
        if self.faults.len() >= MAX_FAULTS {
            self.unlisted += 1;
            return;
        }
        self.faults.push(Fault { line, field: field.to_owned(), what, remedy });
    }

    /// The faults as lines `FILE:LINE: FIELD: WHAT: REMEDY`.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let rest = format!("{}: {} more faults", self.file, self.unlisted);
        let rest = (self.unlisted > 0).then_some(rest);
        self.faults.iter().map(|fault| self.line(fault)).chain(rest)
    }

    fn line(&self, fault: &Fault) -> String {
        let Fault { line, field, what, remedy } = fault;
        let mut text = format!("{}:{line}: ", self.file);
        for part in [field, what, remedy].into_iter().filter(|part| !part.is_empty()) {
            text.push_str(part);
            text.push_str(": ");
        }
        text.truncate(text.len() - 2);
        text
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.lines().collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Faults {}
