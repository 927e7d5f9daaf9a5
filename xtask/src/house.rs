//! The tree, read once for all rules.

use crate::exceptions::{self, Exception, LIST};
use crate::finding::{Finding, Report};
use crate::manifest::Manifest;
use crate::member::Crate;
use crate::source::Source;
use crate::table::{self, MAP, Row};
use crate::tree::File;
use crate::unit::Unit;
use crate::units::units;

/// What the rules look at.
pub(crate) struct House {
    pub(crate) files: Vec<File>,
    pub(crate) sources: Vec<Source>,
    pub(crate) rows: Vec<Row>,
    pub(crate) crates: Vec<Crate>,
    pub(crate) root: Option<Manifest>,
    /// Libraries and programs of the members.
    pub(crate) units: Vec<Unit>,
    pub(crate) exceptions: Vec<Exception>,
    /// What was wrong while reading: reported by the rule `map`.
    pub(crate) problems: Vec<Finding>,
}

impl House {
    pub(crate) fn new(files: Vec<File>) -> Self {
        let mut report = Report::new("map");
        let mut house = Self {
            sources: sources(&files),
            rows: Vec::new(),
            crates: Vec::new(),
            root: None,
            units: Vec::new(),
            exceptions: Vec::new(),
            problems: Vec::new(),
            files,
        };
        match house.file(MAP) {
            Some(map) => house.rows = table::parse(&map.text, &mut report),
            None => report.add(MAP, 1, "is missing; it holds the table of crates"),
        }
        let manifests = house.files.iter().filter(|file| file.path.ends_with("Cargo.toml"));
        for file in manifests {
            match Manifest::parse(&file.path, &file.text) {
                Err(error) => report.add(&file.path, 1, format!("{error}; mend the manifest")),
                Ok(manifest) if file.path == "Cargo.toml" => house.root = Some(manifest),
                Ok(manifest) => house.crates.extend(Crate::new(manifest)),
            }
        }
        if let Some(list) = house.file(LIST) {
            house.exceptions = exceptions::parse(&list.text, &mut report);
        }
        house.units = units(&house.crates, &house.sources, &mut report);
        house.problems = report.into_findings();
        house
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        let at = self.files.binary_search_by(|file| file.path.as_str().cmp(path)).ok()?;
        self.files.get(at)
    }

    /// Whether a file, or a folder with a file in it, is in the tree.
    pub(crate) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let inside = format!("{path}/");
        path.is_empty() || self.files.iter().any(|f| f.path == path || f.path.starts_with(&inside))
    }

    pub(crate) fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// The Rust files of crates that the table calls pure.
    pub(crate) fn pure_sources(&self) -> impl Iterator<Item = &Source> {
        self.sources.iter().filter(|source| {
            let row = self.crate_of(&source.path).and_then(|owner| self.row(&owner.name));
            row.is_some_and(|row| row.is_pure)
        })
    }

    /// The member that a file belongs to.
    pub(crate) fn crate_of(&self, path: &str) -> Option<&Crate> {
        self.crates.iter().find(|member| {
            path.strip_prefix(member.folder.as_str()).is_some_and(|rest| rest.starts_with('/'))
        })
    }
}

fn sources(files: &[File]) -> Vec<Source> {
    let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
    let mut sources: Vec<Source> = rust.map(|f| Source::new(&f.path, &f.text)).collect();
    let test_files: Vec<String> = sources
        .iter()
        .flat_map(|source| {
            let folder = module_folder(&source.path);
            source.test_modules().into_iter().map(move |module| format!("{folder}/{module}"))
        })
        .collect();
    for source in &mut sources {
        source.is_test_file |= test_files.iter().any(|module| {
            let rest = source.path.strip_prefix(module.as_str());
            rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        });
    }
    sources
}

/// Where the modules that a file declares are looked for.
fn module_folder(path: &str) -> &str {
    let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
    match name {
        "lib.rs" | "main.rs" | "mod.rs" => folder,
        _ => path.strip_suffix(".rs").unwrap_or(path),
    }
}

/// A house of the given files: what the tests of the rules stand on.
#[cfg(test)]
pub(crate) fn house(files: &[(&str, &str)]) -> House {
    let file = |(path, text): &(&str, &str)| File { path: (*path).into(), text: (*text).into() };
    let mut files: Vec<File> = files.iter().map(file).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    House::new(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_module_in_a_file_of_its_own_is_test_code() {
        let house = house(&[
            ("crates/a/src/lib.rs", "#[cfg(test)]\nmod pair;\nmod run;"),
            ("crates/a/src/pair.rs", "fn f() {}"),
            ("crates/a/src/pair/deep.rs", ""),
            ("crates/a/src/run.rs", "#[cfg(test)]\nmod cases;"),
            ("crates/a/src/run/cases.rs", ""),
        ]);
        let tests: Vec<_> = house.sources.iter().map(|source| source.is_test_file).collect();
        assert_eq!(tests, [false, true, true, false, true]);
    }
}
