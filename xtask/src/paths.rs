//! Paths as code writes them: `a::b`, and each leaf of `a::{b, c::d}`.

/// A path and where its first segment begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) offset: usize,
    pub(crate) segments: Vec<String>,
}

impl Path {
    /// Whether it is `prefix` (written with `::`) or inside it. A glob stands for whatever is
    /// below, so `std::*` may be `std::fs`.
    pub(crate) fn is_within(&self, prefix: &str) -> bool {
        let mut own = self.segments.iter();
        for wanted in prefix.split("::") {
            match own.next().map(String::as_str) {
                Some("*") => return true,
                Some(segment) if segment == wanted => {}
                _ => return false,
            }
        }
        true
    }
}

/// Every path in masked code; groups are expanded, one path a leaf. `core` is read as `std`.
pub(crate) fn paths(code: &str) -> Vec<Path> {
    let mut reader = Reader { code, at: 0, found: Vec::new() };
    while let Some(start) = reader.next_head() {
        reader.path(start, &[], 0);
    }
    let mut found = reader.found;
    for path in &mut found {
        if path.segments[0] == "core" {
            path.segments[0] = "std".to_owned();
        }
    }
    found
}

/// Bound on groups inside groups.
const MAX_DEPTH: usize = 32;

struct Reader<'a> {
    code: &'a str,
    at: usize,
    found: Vec<Path>,
}

impl Reader<'_> {
    /// Moves to the next identifier.
    fn next_head(&mut self) -> Option<usize> {
        let offset = self.code[self.at..].find(|c: char| c.is_alphabetic() || c == '_')?;
        self.at += offset;
        Some(self.at)
    }

    fn skip_space(&mut self) {
        let rest = &self.code[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn ident(&mut self) -> Option<String> {
        let rest = &self.code[self.at..];
        let len = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.at += len;
        (len > 0).then(|| rest[..len].to_owned())
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.code[self.at..].starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Reads on from `prefix` to the leaves.
    fn path(&mut self, offset: usize, prefix: &[String], depth: usize) {
        let mut segments = prefix.to_vec();
        loop {
            self.skip_space();
            if self.eat("*") {
                segments.push("*".to_owned());
                break;
            }
            if self.code[self.at..].starts_with('{') && depth < MAX_DEPTH {
                self.at += 1;
                return self.group(&segments, depth + 1);
            }
            let Some(segment) = self.ident() else { break };
            segments.push(segment);
            let before = self.at;
            if !self.eat("::") {
                self.at = before;
                break;
            }
        }
        if !segments.is_empty() {
            self.found.push(Path { offset, segments });
        }
    }

    fn group(&mut self, prefix: &[String], depth: usize) {
        while self.at < self.code.len() && !self.eat("}") {
            self.path(self.at, prefix, depth);
            // What follows a leaf: `as name`, a comma; anything else is not a group of a `use`.
            if self.eat("as ") {
                self.skip_space();
                self.ident();
            }
            if !self.eat(",") && !self.code[self.at..].trim_start().starts_with('}') {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(code: &str) -> Vec<String> {
        paths(code).into_iter().map(|path| path.segments.join("::")).collect()
    }

    #[test]
    fn groups_are_expanded() {
        assert_eq!(
            all("use std::{fs, net::{self, IpAddr as Ip}, time::*};"),
            ["use", "std::fs", "std::net::self", "std::net::IpAddr", "std::time::*"]
        );
    }

    #[test]
    fn expressions_give_their_paths() {
        assert_eq!(all("let x = core::time::Instant::now();")[2], "std::time::Instant::now");
        assert!(all("Vec::<u8>::new()").contains(&"Vec".to_owned()));
    }

    #[test]
    fn a_glob_stands_for_what_is_below() {
        let path = |code| paths(code).remove(0);
        assert!(path("std::*").is_within("std::fs"));
        assert!(path("std::fs::File").is_within("std::fs"));
        assert!(!path("std::time::Duration").is_within("std::time::Instant"));
        assert!(!path("std").is_within("std::fs"));
    }

    #[test]
    fn odd_text_ends() {
        for odd in ["a::{", "a::{{{", "a::", "a::*", "}", "a::{b c}", "a::{é"] {
            assert!(paths(odd).len() < 4, "{odd}");
        }
        assert!(paths(&"a::{".repeat(10_000)).len() < 10_000);
    }
}
