//! What is wrong with a scenario's file, and where.

use std::fmt;

/// Most problems of a file that are reported; of others their number.
pub const MAX_PROBLEMS: usize = 100;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file: the scenario's own, or one that it names.
    pub file: String,
    /// The line, counted from 1, where one is to blame.
    pub line: Option<usize>,
    /// The field, as `node[3].at`; empty for none.
    pub field: String,
    /// What is wrong, with the value.
    pub what: String,
    /// What is allowed; empty where that says itself.
    pub limit: String,
    /// What to do; empty where the limit says it.
    pub remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one_line = |text: &str| text.replace(char::is_control, " ");
        f.write_str(&one_line(&self.file))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.field.is_empty() {
            write!(f, ": {}", one_line(&self.field))?;
        }
        write!(f, ": {}", one_line(&self.what))?;
        for part in [&self.limit, &self.remedy] {
            if !part.is_empty() {
                write!(f, "; {}", one_line(part))?;
            }
        }
        Ok(())
    }
}

/// All that is wrong with a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    list: Vec<Problem>,
    more: usize,
}

impl Problems {
    /// One more, if it is not there yet; beyond [`MAX_PROBLEMS`] it is only counted.
    pub fn push(&mut self, problem: Problem) {
        if self.list.contains(&problem) {
            return;
        }
        if self.list.len() < MAX_PROBLEMS {
            self.list.push(problem);
        } else {
            self.more += 1;
        }
    }

    /// Those that are reported, in order.
    #[must_use]
    pub fn list(&self) -> &[Problem] {
        &self.list
    }

    /// How many there are besides.
    #[must_use]
    pub fn more(&self) -> usize {
        self.more
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// In order of lines, those of no line first; those of one line as they were found.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.list.sort_by_key(|problem| problem.line);
        self
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.list.iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            write!(f, "{end}{problem}")?;
        }
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}
