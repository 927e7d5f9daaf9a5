//! Which files make which library or program.

use std::collections::BTreeMap;

use crate::finding::Report;
use crate::items::{self, Items};
use crate::member::Crate;
use crate::source::Source;
use crate::unit::Unit;

/// Every library and program of the members, tests left out. What does not parse is reported.
pub(crate) fn units(members: &[Crate], sources: &[Source], report: &mut Report) -> Vec<Unit> {
    let mut units = Vec::new();
    for member in members {
        let folder = format!("{}/src/", member.folder);
        let inside: Vec<(&str, &Source)> = sources
            .iter()
            .filter(|source| !source.is_test_file)
            .filter_map(|source| Some((source.path.strip_prefix(&folder)?, source)))
            .collect();
        let has = |path: &str| inside.iter().any(|(other, _)| *other == path);
        let mut roots: BTreeMap<String, Vec<(String, Items)>> = BTreeMap::new();
        for (path, source) in &inside {
            let (root, scope) = belongs(path, has);
            match items::read(source, scope) {
                Ok(items) => roots.entry(root).or_default().push((source.path.clone(), items)),
                Err((line, error)) => {
                    report.add(&source.path, line, format!("does not parse: {error}; mend it"));
                }
            }
        }
        let unit = |(root, files): (String, _)| Unit::new(&member.name, stem(&root), files);
        units.extend(roots.into_iter().map(unit));
    }
    units
}

/// The root that a file in `src/` belongs to, and its module from there.
fn belongs(path: &str, has: impl Fn(&str) -> bool) -> (String, Vec<String>) {
    let (root, inside) = match path.strip_prefix("bin/").map(|rest| rest.split_once('/')) {
        Some(Some((name, rest))) => (format!("bin/{name}/main.rs"), rest),
        Some(None) => return (path.to_owned(), Vec::new()),
        None if has("lib.rs") && path == "main.rs" => (path.to_owned(), path),
        None if has("main.rs") && !has("lib.rs") => ("main.rs".to_owned(), path),
        None => ("lib.rs".to_owned(), path),
    };
    if root.rsplit('/').next() == Some(inside) {
        return (root, Vec::new());
    }
    let module = inside.trim_end_matches(".rs").trim_end_matches("/mod");
    (root, module.split('/').map(str::to_owned).collect())
}

/// What the root is called: its file, as its folder may have any name.
fn stem(root: &str) -> &str {
    root.rsplit('/').next().unwrap_or(root).trim_end_matches(".rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_its_root() {
        let of = |path: &str, roots: &[&str]| {
            let (root, module) = belongs(path, |other| roots.contains(&other));
            format!("{root} {}", module.join("::"))
        };
        assert_eq!(of("lib.rs", &["lib.rs"]), "lib.rs ");
        assert_eq!(of("b.rs", &["lib.rs"]), "lib.rs b");
        assert_eq!(of("a/mod.rs", &["lib.rs"]), "lib.rs a");
        assert_eq!(of("a/b.rs", &["lib.rs", "main.rs"]), "lib.rs a::b");
        assert_eq!(of("main.rs", &["lib.rs", "main.rs"]), "main.rs ");
        assert_eq!(of("a.rs", &["main.rs"]), "main.rs a");
        assert_eq!(of("bin/one.rs", &["lib.rs"]), "bin/one.rs ");
        assert_eq!(of("bin/two/main.rs", &["lib.rs"]), "bin/two/main.rs ");
        assert_eq!(of("bin/two/a/b.rs", &["lib.rs"]), "bin/two/main.rs a::b");
    }
}
