//! Fragments, and elements in them that are declared more than once (EXI §8.5.2, §8.5.3).

use std::collections::BTreeMap;

use super::built_in::STRING;
use super::compile::{Compiler, Kind, attribute, production};
use super::model::ElementIndex;
use super::names::Name;
use crate::Error;
use crate::exi::grammar::{Branch, Element, ElementId, Event, Production, QName, Rule, RuleId};

impl Compiler<'_> {
    /// Fills in *Fragment*.
    pub(super) fn fragments(&mut self, fragment: RuleId) -> Result<(), Error> {
        let relaxed = self.reserve(3)?;
        let mut type_id = None;
        let mut elements: Vec<ElementId> = Vec::new();
        for (name, declared) in self.by_name() {
            if self.alike(&declared) {
                elements.push(declared[0]);
                continue;
            }
            let type_id = match type_id {
                Some(known) => known,
                None => *type_id.insert(self.push_type(relaxed, relaxed + 2)?),
            };
            let id = self.budget.index(self.out.elements.len())?;
            self.budget.take(size_of::<Element>())?;
            let name = self.strings.name(name);
            self.out.elements.push(Element { name, first: relaxed, type_id });
            elements.push(id);
        }
        if let Some(type_id) = type_id {
            let first = self.relaxed(relaxed, &elements)?;
            let own = |element: &&mut Element| element.type_id == type_id;
            for element in self.out.elements.iter_mut().filter(own) {
                element.first = first;
            }
        }
        self.fragment_content(fragment, &elements)
    }

    /// All element declarations, by local name and namespace.
    fn by_name(&self) -> Vec<(Name, Vec<ElementIndex>)> {
        let mut names: BTreeMap<Name, Vec<ElementIndex>> = BTreeMap::new();
        for (element, index) in self.schema.model.elements.iter().zip(0..) {
            names.entry(element.name).or_default().push(index);
        }
        let mut sorted: Vec<_> = names.into_iter().collect();
        sorted.sort_by_key(|&(name, _)| self.schema.texts.order(name));
        sorted
    }

    /// One declaration, or all with the same type name and {nillable}.
    fn alike(&self, declared: &[ElementIndex]) -> bool {
        let model = &self.schema.model;
        let Some((&first, others)) = declared.split_first() else { return true };
        let first = model.elements[first as usize];
        let named = model.type_of(first.type_index).name.is_some();
        others.iter().all(|&other| {
            let other = model.elements[other as usize];
            named && (other.type_index, other.nillable) == (first.type_index, first.nillable)
        })
    }

    fn fragment_content(&mut self, fragment: RuleId, elements: &[ElementId]) -> Result<(), Error> {
        let content = self.reserve(1)?;
        self.budget.take(size_of_val(elements) * 4)?;
        let mut first = start_elements(elements, content);
        first.push(production(Event::EndDocument, content));
        let second = self.last(content).into_iter().map(Branch::Leaf).collect();
        let start = [production(Event::StartDocument, content)];
        self.out.rules[fragment as usize] = Rule { first: start.into(), second: [].into() };
        self.out.rules[content as usize] = Rule { first: first.into(), second };
        Ok(())
    }

    /// *ElementFragment* 0, 2 and *ElementFragmentTypeEmpty* 0, from a rule on. Returns the first
    /// rule of such elements.
    fn relaxed(&mut self, base: RuleId, elements: &[ElementId]) -> Result<RuleId, Error> {
        let (start, content, empty) = (base, base + 1, base + 2);
        let attributes = self.attributes()?;
        let end = production(Event::EndElement, self.end);
        let looped = |rule: RuleId| {
            let mut made: Vec<Production> = Vec::with_capacity(attributes.len());
            made.extend(attributes.iter().map(|&(name, datatype)| attribute(name, datatype, rule)));
            made.push(production(Event::AttributeAny, rule));
            made
        };
        let mut inner = start_elements(elements, content);
        inner.push(end);
        inner.push(production(Event::CharactersUntyped, content));
        let mut outer = looped(start);
        outer.extend_from_slice(&inner);
        self.set(start, outer, Kind::First, content)?;
        self.set(content, inner, Kind::Content, content)?;
        let mut last = looped(empty);
        last.push(end);
        self.set(empty, last, Kind::First, self.end)?;
        // Treated as nillable and with named sub-types.
        if self.flags.strict { self.with_type_and_nil(start, true, true) } else { Ok(start) }
    }

    /// All attributes with their datatypes, String where declarations differ.
    fn attributes(&mut self) -> Result<Vec<(QName, u32)>, Error> {
        let model = &self.schema.model;
        let mut names: BTreeMap<Name, Option<u32>> = BTreeMap::new();
        for found in &model.attributes {
            let kept = names.entry(found.name).or_insert(Some(found.type_index));
            if *kept != Some(found.type_index) {
                *kept = None;
            }
        }
        let mut sorted: Vec<_> = names.into_iter().collect();
        sorted.sort_by_key(|&(name, _)| self.schema.texts.order(name));
        let mut made = Vec::with_capacity(sorted.len());
        for (name, type_index) in sorted {
            let datatype = self.datatype(type_index.unwrap_or(STRING))?;
            made.push((self.strings.name(name), datatype));
        }
        Ok(made)
    }
}

/// SE of each, and SE(*).
fn start_elements(elements: &[ElementId], next: RuleId) -> Vec<Production> {
    let declared = elements.iter().map(|&element| production(Event::StartElement(element), next));
    declared.chain([production(Event::StartElementAny, next)]).collect()
}
