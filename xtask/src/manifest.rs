//! A Cargo manifest with the lines of its entries.

use toml::{Table, Value};

/// One manifest.
pub(crate) struct Manifest {
    pub(crate) path: String,
    pub(crate) table: Table,
    text: String,
}

/// One entry of a table of dependencies.
pub(crate) struct Dependency<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: &'a Value,
    pub(crate) line: usize,
    /// Of tests only.
    pub(crate) is_dev: bool,
}

impl Manifest {
    /// Parses; the error is one line.
    pub(crate) fn parse(path: &str, text: &str) -> Result<Self, String> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            error.message().lines().next().unwrap_or("does not parse").to_owned()
        })?;
        Ok(Self { path: path.to_owned(), table, text: text.to_owned() })
    }

    /// The table at a dotted path, empty if there is none.
    pub(crate) fn entries<'a>(&'a self, path: &str) -> Vec<(&'a str, &'a Value)> {
        let mut table = &self.table;
        for key in path.split('.') {
            match table.get(key).and_then(Value::as_table) {
                Some(inner) => table = inner,
                None => return Vec::new(),
            }
        }
        table.iter().map(|(key, value)| (key.as_str(), value)).collect()
    }

    /// Every dependency: of the crate, its build script and its tests, also per target.
    pub(crate) fn dependencies(&self) -> Vec<Dependency<'_>> {
        let mut tables = vec![&self.table];
        for (_, target) in self.entries("target") {
            tables.extend(target.as_table());
        }
        let mut found = Vec::new();
        for table in tables {
            for section in ["dependencies", "build-dependencies", "dev-dependencies"] {
                let Some(entries) = table.get(section).and_then(Value::as_table) else { continue };
                found.extend(entries.iter().map(|(name, value)| Dependency {
                    name,
                    value,
                    line: self.line_of(section, name),
                    is_dev: section == "dev-dependencies",
                }));
            }
        }
        found
    }

    /// The line where `key` is set after the header of `section`; 1 if it is not found.
    pub(crate) fn line_of(&self, section: &str, key: &str) -> usize {
        let mut lines = self.text.lines().enumerate();
        let heads = |line: &str| line.starts_with('[') && line.trim_end().ends_with(']');
        lines
            .find(|(_, line)| heads(line) && line.contains(section))
            .and_then(|_| lines.find(|(_, line)| line.trim_start().starts_with(key)))
            .map_or(1, |(at, _)| at + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_have_lines() {
        let text = "[package]\nname = \"x\"\n[dependencies]\nproto.workspace = true\n\
            [target.'cfg(unix)'.dependencies]\nlibc.workspace = true\n\
            [dev-dependencies]\nproptest.workspace = true\n";
        let manifest = Manifest::parse("Cargo.toml", text).expect("parses");
        let mut found: Vec<_> = manifest
            .dependencies()
            .iter()
            .map(|dependency| (dependency.line, dependency.name.to_owned(), dependency.is_dev))
            .collect();
        found.sort();
        let expected = [(4, "proto", false), (6, "libc", false), (8, "proptest", true)];
        assert_eq!(found.len(), 3);
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!((found.1.as_str(), found.2), (expected.1, expected.2));
        }
        assert_eq!((found[0].0, found[2].0), (4, 8));
    }

    #[test]
    fn an_error_is_one_line() {
        let error = Manifest::parse("Cargo.toml", "[a\nb").err().expect("fails");
        assert!(!error.is_empty() && !error.contains('\n'));
    }
}
