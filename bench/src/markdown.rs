//! Results as Markdown: aligned tables, and sections of documents that a program keeps.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// A table whose columns are as wide as their longest cell, legible on a terminal too.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these heads. The first column is text, the others are numbers.
    #[must_use]
    pub fn new(heads: &[&str]) -> Self {
        Self { rows: vec![heads.iter().map(|head| (*head).to_string()).collect()] }
    }

    /// Adds a row of as many cells as there are heads.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table, ending in a line feed.
    #[must_use]
    pub fn render(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(3)
        };
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        let mut text = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                // Writing to a string cannot fail.
                let _ = match column {
                    0 => write!(text, "| {cell:<width$} "),
                    _ => write!(text, "| {cell:>width$} "),
                };
            }
            text.push_str("|\n");
            if index == 0 {
                for (column, width) in widths.iter().enumerate() {
                    let dashes = "-".repeat(width - usize::from(column > 0));
                    let _ = write!(text, "| {dashes}{} ", if column > 0 { ":" } else { "" });
                }
                text.push_str("|\n");
            }
        }
        text
    }
}

/// A document on disk with a section that a program keeps.
pub struct Document {
    path: PathBuf,
    text: String,
    name: &'static str,
}

impl Document {
    /// Reads the document and finds the section, so that a result has a place before minutes are
    /// spent on it.
    ///
    /// # Errors
    /// When the document cannot be read or has no such section.
    pub fn open(path: PathBuf, name: &'static str) -> Result<Self> {
        let context = || path.display().to_string();
        let text = fs::read_to_string(&path).with_context(context)?;
        replace_section(&text, name, "").map_err(anyhow::Error::msg).with_context(context)?;
        Ok(Self { path, text, name })
    }

    /// Replaces the section.
    ///
    /// # Errors
    /// When the document cannot be written.
    pub fn update(&self, section: &str) -> Result<()> {
        let new = replace_section(&self.text, self.name, section).map_err(anyhow::Error::msg)?;
        fs::write(&self.path, new).with_context(|| self.path.display().to_string())
    }
}

/// Puts `section` between the marks `<!-- NAME: begin -->` and `<!-- NAME: end -->` of a document.
fn replace_section(
    document: &str,
    name: &str,
    section: &str,
) -> std::result::Result<String, String> {
    let (begin, end) = (format!("<!-- {name}: begin -->"), format!("<!-- {name}: end -->"));
    let missing = || format!("no '{begin}' with '{end}' after it; put both where results belong");
    let start = document.find(&begin).ok_or_else(missing)? + begin.len();
    let length = document[start..].find(&end).ok_or_else(missing)?;
    let (before, after) = (&document[..start], &document[start + length..]);
    Ok(format!("{before}\n\n{}\n\n{after}", section.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align() {
        let mut table = Table::new(&["what", "µs"]);
        table.row(["a long name".to_string(), "5".to_string()]);
        table.row(["b".to_string(), "1234".to_string()]);
        let expected = "\
| what        |   µs |
| ----------- | ---: |
| a long name |    5 |
| b           | 1234 |
";
        assert_eq!(table.render(), expected);
    }

    #[test]
    fn a_section_is_replaced_and_the_rest_stays() {
        let document = "a\n<!-- x: begin -->\nold\n<!-- x: end -->\nb\n";
        let new = replace_section(document, "x", "new\n").unwrap();
        assert_eq!(new, "a\n<!-- x: begin -->\n\nnew\n\n<!-- x: end -->\nb\n");
        assert_eq!(replace_section(&new, "x", "new").unwrap(), new);
        for bad in ["", "<!-- x: begin -->", "<!-- x: end --><!-- x: begin -->"] {
            assert!(replace_section(bad, "x", "new").unwrap_err().contains("x: begin"));
        }
    }
}
