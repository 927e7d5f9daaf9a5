//! First parts of event codes (EXI §6.2) as one dense table: which event a code means, with all
//! that is needed to go on, takes two steps.

use std::sync::Arc;

use super::{
    bits::width,
    grammar::{Event, Grammars, Production, QName, Rule},
};

/// What a decoder has to do, for the events that are frequent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// SE of the element `name`, whose grammar is `what`.
    Start,
    /// EE
    End,
    /// AT of `name`, whose value has the datatype `what`.
    Attribute,
    /// CH, whose value has the datatype `what`.
    Characters,
    /// The rule itself has to be asked.
    Other,
}

/// A production.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) kind: Kind,
    /// Number of the name in the tables of a decoder.
    pub(crate) name: u32,
    pub(crate) what: u32,
    /// Of an element.
    pub(crate) type_id: u32,
    pub(crate) next: u32,
}

/// The rows of a rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    begin: u32,
    /// How many there are.
    pub(crate) count: u32,
    /// Width of the first part of its codes.
    pub(crate) bits: u32,
}

/// All rules of some grammars, and their names.
#[derive(Debug)]
pub(crate) struct Codes {
    /// Namespace and local name, by the number of the name in the tables of a decoder.
    words: Vec<(Arc<str>, Arc<str>)>,
    heads: Vec<Head>,
    rows: Vec<Row>,
}

impl Codes {
    pub(crate) fn new(grammars: &Grammars) -> Self {
        let mut bases = Vec::with_capacity(grammars.uris.len());
        let mut words = Vec::new();
        for uri in &grammars.uris {
            bases.push(words.len());
            let namespace: Arc<str> = uri.uri.as_str().into();
            words.extend(uri.locals.iter().map(|local| (namespace.clone(), local.as_str().into())));
        }
        let number = |name: QName| {
            let base = bases.get(name.uri as usize)?;
            u32::try_from(base + name.local as usize).ok()
        };
        let rows = grammars.rules.iter().map(|rule| rule.first.len()).sum();
        let mut codes = Self {
            words,
            heads: Vec::with_capacity(grammars.rules.len()),
            rows: Vec::with_capacity(rows),
        };
        for rule in &grammars.rules {
            codes.push(rule, |production| {
                row(grammars, production, number).unwrap_or(Row::of(Kind::Other, production))
            });
        }
        codes
    }

    fn push(&mut self, rule: &Rule, row: impl Fn(&Production) -> Row) {
        let size = |count| u32::try_from(count).unwrap_or(u32::MAX);
        let (begin, count) = (size(self.rows.len()), size(rule.first.len()));
        let more = usize::from(!rule.second.is_empty());
        self.heads.push(Head { begin, count, bits: width(rule.first.len() + more) });
        self.rows.extend(rule.first.iter().map(row));
    }

    /// Namespace and local name, of a name of the schema.
    #[inline]
    pub(crate) fn words(&self, name: u32) -> Option<(&str, &str)> {
        self.words.get(name as usize).map(|(uri, local)| (&**uri, &**local))
    }

    #[inline]
    pub(crate) fn head(&self, rule: u32) -> Option<&Head> {
        self.heads.get(rule as usize)
    }

    /// The production with `code`, which is below the head's count.
    #[inline]
    pub(crate) fn row(&self, head: Head, code: u32) -> Option<&Row> {
        self.rows.get(head.begin as usize + code as usize)
    }
}

impl Row {
    fn of(kind: Kind, production: &Production) -> Self {
        Self { kind, name: 0, what: 0, type_id: 0, next: production.next }
    }
}

/// `None` if it is not one of the frequent ones.
fn row(
    grammars: &Grammars,
    production: &Production,
    number: impl Fn(QName) -> Option<u32>,
) -> Option<Row> {
    let of = |kind| Row::of(kind, production);
    Some(match production.event {
        Event::StartElement(id) => {
            let element = grammars.elements.get(id as usize)?;
            let (name, what) = (number(element.name)?, element.first);
            Row { name, what, type_id: element.type_id, ..of(Kind::Start) }
        }
        Event::EndElement => of(Kind::End),
        Event::Characters(what) => Row { what, ..of(Kind::Characters) },
        Event::Attribute(name, what) => Row { name: number(name)?, what, ..of(Kind::Attribute) },
        _ => return None,
    })
}
