//! A Rust file as the rules see it: code without comments and literals, and which parts are tests.

use std::ops::Range;

use crate::mask::{Comment, mask};
use crate::paths::{Path, paths};

/// One Rust file.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    /// `text` with comments and the insides of literals blanked; every byte keeps its place.
    pub(crate) code: String,
    pub(crate) comments: Vec<Comment>,
    /// The whole file is test code.
    pub(crate) is_test_file: bool,
    line_starts: Vec<usize>,
    tests: Vec<Range<usize>>,
}

/// A function with a body.
pub(crate) struct Function<'a> {
    pub(crate) name: &'a str,
    /// From after the name to the body: parameters and the return type, as masked code.
    pub(crate) signature: &'a str,
    pub(crate) offset: usize,
    /// First and last line, from 1.
    pub(crate) lines: (usize, usize),
    /// Written with `pub` alone.
    pub(crate) is_public: bool,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let (code, comments) = mask(text);
        let line_starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(offset, _)| offset + 1))
            .collect();
        let tests = test_ranges(&code);
        let is_test_file = path.ends_with("/tests.rs")
            || path.split('/').any(|folder| matches!(folder, "tests" | "benches"))
            || code.contains("#![cfg(test)]");
        let (path, text) = (path.to_owned(), text.to_owned());
        Self { path, text, code, comments, is_test_file, line_starts, tests }
    }

    /// Line of a byte offset, from 1.
    pub(crate) fn line(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= offset)
    }

    pub(crate) fn is_test(&self, offset: usize) -> bool {
        self.is_test_file || self.tests.iter().any(|range| range.contains(&offset))
    }

    /// How many of its lines are test code.
    pub(crate) fn test_lines(&self) -> usize {
        let ends =
            self.tests.iter().map(|range| (self.line(range.start), self.line(range.end - 1)));
        let ends: Vec<(usize, usize)> = ends.collect();
        let is_test =
            |line: &usize| ends.iter().any(|(first, last)| (first..=last).contains(&line));
        let lines = 1..=self.text.lines().count();
        if self.is_test_file { lines.count() } else { lines.filter(is_test).count() }
    }

    /// Whether a comment on the line, or in the run of comments right above it, begins with
    /// `mark` and says something after it.
    pub(crate) fn has_note(&self, line: usize, mark: &str) -> bool {
        let says = |comment: &Comment| {
            let words = comment.text.trim_start_matches(['/', '!', '*', ' ']);
            words.strip_prefix(mark).is_some_and(|reason| !reason.trim().is_empty())
        };
        let on = |line: usize| self.comments.iter().filter(move |c| c.line == line);
        if on(line).any(says) {
            return true;
        }
        let above = (1..line).rev();
        above.take_while(|&line| on(line).next().is_some()).any(|line| on(line).any(says))
    }

    /// Paths outside test code.
    pub(crate) fn paths(&self) -> impl Iterator<Item = Path> {
        paths(&self.code).into_iter().filter(|path| !self.is_test(path.offset))
    }

    /// Offsets of `word` in the code, not as part of a longer word.
    pub(crate) fn words<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        self.code.match_indices(word).map(|(offset, _)| offset).filter(move |&offset| {
            let before = self.code[..offset].chars().next_back();
            let after = self.code[offset + word.len()..].chars().next();
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
    }

    /// Functions with a body.
    pub(crate) fn functions(&self) -> Vec<Function<'_>> {
        self.words("fn").filter_map(|offset| self.function(offset)).collect()
    }

    fn function(&self, offset: usize) -> Option<Function<'_>> {
        let rest = &self.code[offset + 2..];
        let name_start = offset + 2 + (rest.len() - rest.trim_start().len());
        let after = &self.code[name_start..];
        let name = &after[..after.find(|c| !is_word(c)).unwrap_or(after.len())];
        if name.is_empty() {
            return None; // a function type
        }
        let body = body_range(&self.code, name_start)?;
        let signature = &self.code[name_start + name.len()..body.start];
        let line_start = self.line_starts[self.line(offset) - 1];
        let is_public = self.code[line_start..offset].trim_start().starts_with("pub ");
        let lines = (self.line(offset), self.line(body.end - 1));
        Some(Function { name, signature, offset, lines, is_public })
    }

    /// Modules declared as `#[cfg(test)] mod name;`.
    pub(crate) fn test_modules(&self) -> Vec<&str> {
        let attribute = "#[cfg(test)]";
        let found = self.code.match_indices(attribute).filter_map(|(offset, _)| {
            let item = self.code[offset + attribute.len()..].trim_start();
            let item = item.strip_prefix("pub(crate) ").unwrap_or(item).strip_prefix("mod ")?;
            let end = item.find(|c| !is_word(c))?;
            item[end..].trim_start().starts_with(';').then_some(&item[..end])
        });
        found.collect()
    }
}

/// Whether a character belongs to an identifier.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The items under `#[cfg(test)]` and the functions under `#[test]`.
fn test_ranges(code: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    for attribute in ["#[cfg(test)]", "#[test]", "#[cfg(all(test"] {
        for (offset, _) in code.match_indices(attribute) {
            let item = offset + attribute.len();
            let end = body_range(code, item).map(|body| body.end);
            let end = end.or_else(|| code[item..].find(';').map(|semicolon| item + semicolon));
            ranges.push(offset..end.unwrap_or(code.len()));
        }
    }
    ranges
}

/// The braces of the item that `from` is in the head of; none when it ends with `;` first.
fn body_range(code: &str, from: usize) -> Option<Range<usize>> {
    let (mut nesting, mut braces, mut start) = (0_usize, 0_usize, None);
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' if braces == 0 => nesting += 1,
            b')' | b']' if braces == 0 => nesting = nesting.saturating_sub(1),
            b';' if braces == 0 && nesting == 0 => return None,
            b'{' if nesting == 0 => {
                start = start.or(Some(at));
                braces += 1;
            }
            b'}' if nesting == 0 => {
                braces = braces.checked_sub(1)?;
                if braces == 0 {
                    return Some(start?..at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
/// Doc with { brace.
pub fn one(x: [u8; 4]) -> u8 {
    if x[0] == b'}' { 1 } else { 2 }
}
trait T { fn none(&self); }
// bound: ten
// of them
let q = ();
#[cfg(test)]
mod tests {
    fn two() { \"}\"; }
}
#[cfg(test)]
mod pair;
fn three() {}
";

    #[test]
    fn functions_have_names_lines_and_signatures() {
        let source = Source::new("a.rs", TEXT);
        let functions = source.functions();
        let named: Vec<_> = functions.iter().map(|f| (f.name, f.lines)).collect();
        assert_eq!(named, [("one", (2, 4)), ("two", (11, 11)), ("three", (15, 15))]);
        assert!(functions[0].is_public && !functions[2].is_public);
        assert_eq!(functions[0].signature, "(x: [u8; 4]) -> u8 ");
    }

    #[test]
    fn test_code_is_known() {
        let source = Source::new("a.rs", TEXT);
        let tests: Vec<_> = source.functions().iter().map(|f| source.is_test(f.offset)).collect();
        assert_eq!(tests, [false, true, false]);
        assert_eq!(source.test_modules(), ["pair"]);
        assert_eq!(source.test_lines(), 6);
        assert_eq!(Source::new("crates/a/tests/b.rs", "\n\n").test_lines(), 2);
        assert!(Source::new("crates/a/src/tests.rs", "").is_test_file);
        assert!(Source::new("crates/a/tests/b.rs", "").is_test_file);
    }

    #[test]
    fn a_note_stands_on_the_line_or_above_and_says_something() {
        let source = Source::new("a.rs", TEXT);
        assert!(source.has_note(8, "bound:"));
        assert!(!source.has_note(5, "bound:"));
        assert!(!Source::new("a.rs", "// bound:\nx").has_note(2, "bound:"));
    }
}
