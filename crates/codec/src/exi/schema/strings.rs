//! Initial entries of the string tables (EXI §7.3.1, Appendix D).

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Body, Model, Term, Wildcard};
use super::names::{Name, Text};
use super::{Budget, Schema, XML, XSD, XSI, built_in};
use crate::Error;
use crate::exi::grammar::{QName, Uri};

/// The tables, and where a name is in them.
#[derive(Debug)]
pub(super) struct Strings {
    pub(super) uris: Vec<Uri>,
    pub(super) uri: BTreeMap<Text, u32>,
    names: BTreeMap<Name, QName>,
}

impl Strings {
    pub(super) fn new(schema: &Schema, budget: &mut Budget) -> Result<Self, Error> {
        let texts = &schema.texts;
        let names = declared(&schema.model);
        let mut known: BTreeSet<Text> = schema.targets.clone();
        known.extend(names.iter().map(|name| name.uri));
        known.extend(wildcards(&schema.model));
        let mut uris: Vec<Uri> = fixed().to_vec();
        let mut others: Vec<&str> = known.iter().map(|&uri| texts.get(uri)).collect();
        others.retain(|other| uris.iter().all(|uri| uri.uri != *other));
        others.sort_unstable();
        uris.extend(others.iter().map(|&uri| Uri { uri: uri.to_owned(), ..Uri::default() }));
        let mut uri = BTreeMap::new();
        for (at, entry) in uris.iter().enumerate() {
            if let Some(text) = texts.find(&entry.uri) {
                uri.insert(text, budget.index(at)?);
            }
        }
        for name in &names {
            let local = texts.get(name.local);
            budget.take(size_of::<String>() + local.len())?;
            uris[uri[&name.uri] as usize].locals.push(local.to_owned());
        }
        for entry in &mut uris {
            entry.locals.sort_unstable();
            entry.locals.dedup();
        }
        let mut made = Self { uris, uri, names: BTreeMap::new() };
        for name in names {
            let uri = made.uri[&name.uri];
            let locals = &made.uris[uri as usize].locals;
            let at = locals.binary_search_by(|entry| entry.as_str().cmp(texts.get(name.local)));
            let local = budget.index(at.unwrap_or_default())?;
            made.names.insert(name, QName { uri, local });
        }
        Ok(made)
    }

    /// Where a declared name is; all that grammars use are declared.
    pub(super) fn name(&self, name: Name) -> QName {
        self.names.get(&name).copied().unwrap_or(QName { uri: 0, local: 0 })
    }
}

/// EXI D.1 to D.3
fn fixed() -> [Uri; 4] {
    let entry = |uri: &str, prefix: Option<&str>, locals: &[&str]| Uri {
        uri: uri.to_owned(),
        prefixes: prefix.iter().map(|&prefix| prefix.to_owned()).collect(),
        locals: locals.iter().map(|&local| local.to_owned()).collect(),
    };
    [
        entry("", Some(""), &[]),
        entry(XML, Some("xml"), &["base", "id", "lang", "space"]),
        entry(XSI, Some("xsi"), &["nil", "type"]),
        entry(XSD, None, &built_in::names().collect::<Vec<_>>()),
    ]
}

/// Names of all types, elements and attributes.
fn declared(model: &Model) -> BTreeSet<Name> {
    let types = model.types.iter().filter_map(|made| made.name);
    let elements = model.elements.iter().map(|element| element.name);
    types.chain(elements).chain(model.attributes.iter().map(|made| made.name)).collect()
}

/// Namespaces that wildcards list (EXI §8.5.4.1.3.2 and §8.5.4.1.7).
fn wildcards(model: &Model) -> BTreeSet<Text> {
    let attributes = model.types.iter().filter_map(|made| match &made.body {
        Body::Complex(complex) => complex.wildcard.as_ref(),
        Body::Simple(_) => None,
    });
    let elements = model.particles.iter().filter_map(|particle| match &particle.term {
        Term::Wildcard(wildcard) => Some(wildcard),
        _ => None,
    });
    let lists = attributes.chain(elements).filter_map(|wildcard| match wildcard {
        Wildcard::Set(uris) => Some(uris),
        _ => None,
    });
    lists.flatten().copied().collect()
}
