//! One compiled crate: its modules, who defines what, and who names whom.
//!
//! A module is a top one: a file or a folder in `src/`, with all that is inside. The root is a
//! module too, under the name of its file (`lib`, `main`): what it defines is of `lib`, and who
//! names that names `lib`. Its `mod` and `pub use` are a table of contents and name nothing; a
//! name found through it belongs to the module that it leads to.

use std::collections::{BTreeMap, BTreeSet};

use crate::items::{Definition, Impl, Items};

/// Bound on re-exports and globs that are followed for one name.
const MAX_STEPS: usize = 8;

/// A library or a program.
pub(crate) struct Unit {
    /// The member that it belongs to.
    pub(crate) owner: String,
    /// What the root is called among its modules.
    pub(crate) root: String,
    files: Vec<(String, Items)>,
    scopes: BTreeMap<Vec<String>, Scope>,
}

/// The names of a module.
#[derive(Default)]
struct Scope {
    definitions: BTreeSet<String>,
    imports: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
}

/// Where something stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) path: String,
    pub(crate) line: usize,
}

/// A struct, enum or union.
#[derive(Debug)]
pub(crate) struct Kind {
    /// With its module, as `carrier::Carrier`.
    pub(crate) name: String,
    pub(crate) place: Position,
    pub(crate) fields: usize,
    pub(crate) is_table: bool,
    /// Functions of all its inherent `impl`s.
    pub(crate) methods: usize,
}

/// `impl`s of a type in a module that defines neither it nor their trait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stray {
    /// The type, with its module.
    pub(crate) name: String,
    /// The module that the type is of.
    pub(crate) home: String,
    /// The module that they are in.
    pub(crate) module: String,
    /// The first of them, and how many there are.
    pub(crate) place: Position,
    pub(crate) count: usize,
}

/// An item: the module that defines it, and its name there.
type Found = (Vec<String>, String);

impl Unit {
    /// Of files with their paths, of which the first module of each says where it belongs.
    pub(crate) fn new(owner: &str, root: &str, files: Vec<(String, Items)>) -> Self {
        let mut scopes: BTreeMap<Vec<String>, Scope> = BTreeMap::new();
        for (_, items) in &files {
            for scope in &items.scopes {
                scopes.entry(scope.clone()).or_default();
            }
            for item in &items.definitions {
                let scope = scopes.entry(item.scope.clone()).or_default();
                scope.definitions.insert(item.name.clone());
            }
            for item in &items.imports {
                let scope = scopes.entry(item.scope.clone()).or_default();
                match &item.name {
                    Some(name) => drop(scope.imports.insert(name.clone(), item.path.clone())),
                    None => scope.globs.push(item.path.clone()),
                }
            }
        }
        Self { owner: owner.to_owned(), root: root.to_owned(), files, scopes }
    }

    /// The modules beside the root.
    pub(crate) fn modules(&self) -> BTreeSet<&str> {
        self.scopes.keys().filter_map(|scope| scope.first()).map(String::as_str).collect()
    }

    /// Which module names which, and where it does so first.
    pub(crate) fn arrows(&self) -> BTreeMap<(String, String), Position> {
        let mut arrows = BTreeMap::new();
        for (path, items) in &self.files {
            let mentions = items.mentions.iter().map(|m| (&m.scope, &m.path, m.line));
            let imports = items.imports.iter().filter(|i| !(i.is_reexport && i.scope.is_empty()));
            for (scope, named, line) in mentions.chain(imports.map(|i| (&i.scope, &i.path, i.line)))
            {
                let from = self.top(scope);
                let to = self.absolute(scope, named, MAX_STEPS).and_then(|p| self.target(&p));
                if let Some(to) = to.filter(|to| *to != from) {
                    let place = Position { path: path.clone(), line };
                    let first =
                        arrows.entry((from.to_owned(), to)).or_insert_with(|| place.clone());
                    *first = place.min(first.clone());
                }
            }
        }
        arrows
    }

    /// Every struct, enum and union, in order of place.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let mut methods: BTreeMap<Found, usize> = BTreeMap::new();
        for (_, item) in self.impls().filter(|(_, item)| item.of.is_none()) {
            if let Some(found) = self.found(&item.scope, &item.own) {
                *methods.entry(found).or_default() += item.functions;
            }
        }
        let kind = |(path, item): (&String, &Definition)| {
            let found = (item.scope.clone(), item.name.clone());
            Some(Kind {
                name: full_name(&found),
                place: Position { path: path.clone(), line: item.line },
                fields: item.fields?,
                is_table: item.is_table,
                methods: methods.get(&found).copied().unwrap_or_default(),
            })
        };
        self.definitions().filter_map(kind).collect()
    }

    /// `impl`s away from home, one entry a type and module.
    pub(crate) fn strays(&self) -> Vec<Stray> {
        let homes: BTreeMap<Found, &String> = self
            .definitions()
            .map(|(path, item)| ((item.scope.clone(), item.name.clone()), path))
            .collect();
        let mut strays: Vec<Stray> = Vec::new();
        for (path, item) in self.impls() {
            let Some(found) = self.found(&item.scope, &item.own) else { continue };
            let (home, module) = (self.top(&found.0), self.top(&item.scope));
            let of = item.of.as_ref().and_then(|of| self.found(&item.scope, of));
            let is_of_here = of.is_some_and(|(scope, _)| self.top(&scope) == module);
            if home == module || homes.get(&found) == Some(&path) || is_of_here {
                continue;
            }
            let name = full_name(&found);
            let known =
                strays.iter_mut().find(|stray| stray.name == name && stray.module == module);
            if let Some(stray) = known {
                stray.count += 1;
            } else {
                let place = Position { path: path.clone(), line: item.line };
                let (home, module) = (home.to_owned(), module.to_owned());
                strays.push(Stray { name, home, module, place, count: 1 });
            }
        }
        strays
    }

    fn definitions(&self) -> impl Iterator<Item = (&String, &Definition)> {
        self.files.iter().flat_map(|(path, items)| items.definitions.iter().map(move |d| (path, d)))
    }

    fn impls(&self) -> impl Iterator<Item = (&String, &Impl)> {
        self.files.iter().flat_map(|(path, items)| items.impls.iter().map(move |item| (path, item)))
    }

    fn top<'a>(&'a self, scope: &'a [String]) -> &'a str {
        scope.first().unwrap_or(&self.root)
    }

    /// The module that a path from the root leads to; none when that is outside.
    fn target(&self, path: &[String]) -> Option<String> {
        let Some(first) = path.first() else { return Some(self.root.clone()) };
        if self.scopes.contains_key(std::slice::from_ref(first)) {
            return Some(first.clone());
        }
        let root = self.scopes.get(&[][..])?;
        if root.definitions.contains(first) {
            return Some(self.root.clone());
        }
        if let Some(import) = root.imports.get(first) {
            let import = self.absolute(&[], import, MAX_STEPS)?;
            return Some(self.top(&import).to_owned());
        }
        let found = self.definition(path, MAX_STEPS);
        Some(found.map_or_else(|| self.root.clone(), |(scope, _)| self.top(&scope).to_owned()))
    }

    /// A path as it is from the root; none when it leads outside.
    fn absolute(&self, scope: &[String], path: &[String], steps: usize) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        let steps = steps.checked_sub(1)?;
        match first.as_str() {
            "crate" => return Some(rest.to_vec()),
            "self" if rest.first().is_some_and(|next| next == "super") => {
                return self.absolute(scope, rest, steps);
            }
            "self" => return Some(joined(scope, rest)),
            "super" => {
                let (_, parent) = scope.split_last()?;
                let rest = if rest.first().is_some_and(|next| next == "super") {
                    return self.absolute(parent, rest, steps);
                } else {
                    rest
                };
                return Some(joined(parent, rest));
            }
            _ => {}
        }
        let here = self.scopes.get(scope)?;
        let inside = joined(scope, std::slice::from_ref(first));
        if self.scopes.contains_key(&inside) || here.definitions.contains(first) {
            return Some(joined(scope, path));
        }
        if let Some(import) = here.imports.get(first) {
            return Some(joined(&self.absolute(scope, import, steps)?, rest));
        }
        here.globs.iter().find_map(|glob| {
            let module = self.absolute(scope, glob, steps)?;
            let (scope, name) =
                self.definition(&joined(&module, std::slice::from_ref(first)), steps)?;
            Some(joined(&joined(&scope, &[name]), rest))
        })
    }

    /// The item that a path as seen from a module leads to.
    fn found(&self, scope: &[String], path: &[String]) -> Option<Found> {
        self.definition(&self.absolute(scope, path, MAX_STEPS)?, MAX_STEPS)
    }

    /// Where the first item on a path from the root is defined, re-exports followed.
    fn definition(&self, path: &[String], steps: usize) -> Option<Found> {
        let steps = steps.checked_sub(1)?;
        let len = (0..path.len()).rev().find(|&len| self.scopes.contains_key(&path[..len]))?;
        let (module, name) = (&path[..len], &path[len]);
        let scope = self.scopes.get(module)?;
        if scope.definitions.contains(name) {
            return Some((module.to_vec(), name.clone()));
        }
        if let Some(import) = scope.imports.get(name) {
            return self.definition(&self.absolute(module, import, steps)?, steps);
        }
        scope.globs.iter().find_map(|glob| {
            let from = self.absolute(module, glob, steps)?;
            self.definition(&joined(&from, std::slice::from_ref(name)), steps)
        })
    }
}

fn joined(path: &[String], rest: &[String]) -> Vec<String> {
    [path, rest].concat()
}

fn full_name((scope, name): &Found) -> String {
    joined(scope, std::slice::from_ref(name)).join("::")
}
