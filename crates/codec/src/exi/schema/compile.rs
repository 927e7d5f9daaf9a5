//! From components to grammars with their event codes (EXI §8.5.1, §8.5.4.1.3, §8.5.4.3, §8.5.4.4).

use std::collections::BTreeMap;

use super::built_in::ANY_TYPE;
use super::content::{NonTerminal, Terminal, automaton};
use super::model::{Body, Complex, Content, TypeIndex, Use, Variety, Wildcard};
use super::strings::Strings;
use super::substitutions::Substitutions;
use super::{Budget, Schema};
use crate::exi::built_in::FRAGMENT_START;
use crate::exi::grammar::{
    Branch, DatatypeId, Element, Event, Grammars, Production, QName, Rule, RuleId, Type, TypeId,
};
use crate::exi::{Options, Preserve};
use crate::{Error, Limits};

/// The options that grammars depend on.
#[derive(Clone, Copy)]
pub(super) struct Flags {
    pub(super) strict: bool,
    pub(super) preserve: Preserve,
    pub(super) self_contained: bool,
}

impl Flags {
    /// EXI §5.4: strict leaves no place for what is not in the schema.
    fn new(options: &Options) -> Self {
        if options.strict {
            let preserve = Preserve::default();
            return Self { strict: true, preserve, self_contained: false };
        }
        let (preserve, self_contained) = (options.preserve, options.self_contained);
        Self { strict: false, preserve, self_contained }
    }
}

/// Which undeclared productions a rule gets (EXI §8.5.4.4.1).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// *Element* i, 0
    First,
    /// *Element* i, j where 0 < j ≤ *content*
    Attributes,
    /// Behind them.
    Content,
}

pub(super) struct Compiler<'a> {
    pub(super) schema: &'a Schema,
    pub(super) flags: Flags,
    pub(super) strings: Strings,
    pub(super) budget: Budget,
    pub(super) out: Grammars,
    pub(super) datatypes: BTreeMap<TypeIndex, DatatypeId>,
    substitutions: Substitutions,
    /// Types for which strict grammars have `xsi:type` (EXI §8.5.4.4.2).
    castable: Vec<bool>,
    /// Rule of EE alone.
    pub(super) end: RuleId,
    /// First rule of an empty type without attributes.
    empty: RuleId,
    /// Rule of *Fragment*, if something needs it.
    fragment: RuleId,
    /// First rules of elements in strict grammars, by type and {nillable}.
    firsts: BTreeMap<(TypeIndex, bool), RuleId>,
}

/// Makes the grammars of a schema.
pub(super) fn compile(
    schema: &Schema,
    options: &Options,
    limits: &Limits,
) -> Result<Grammars, Error> {
    let mut budget = Budget::new(limits);
    let strings = Strings::new(schema, &mut budget)?;
    let substitutions = Substitutions::new(&schema.model, &schema.texts, &mut budget)?;
    let mut compiler = Compiler {
        schema,
        flags: Flags::new(options),
        strings,
        budget,
        out: Grammars::default(),
        datatypes: BTreeMap::new(),
        substitutions,
        castable: castable(schema),
        end: 0,
        empty: 0,
        fragment: 0,
        firsts: BTreeMap::new(),
    };
    compiler.all(options.fragment)?;
    let mut grammars = compiler.out;
    grammars.uris = compiler.strings.uris;
    grammars.hash = grammars.digest();
    Ok(grammars)
}

/// Types that have a named type derived from them, or are unions.
fn castable(schema: &Schema) -> Vec<bool> {
    let model = &schema.model;
    let mut castable: Vec<bool> = Vec::with_capacity(model.types.len());
    castable.extend(model.types.iter().map(|made| match &made.body {
        Body::Simple(simple) => simple.variety == Variety::Union,
        Body::Complex(_) => false,
    }));
    for derived in model.types.iter().skip(1).filter(|made| made.name.is_some()) {
        let mut base = derived.base;
        loop {
            castable[base as usize] = true;
            let found = model.type_of(base);
            if found.name.is_some() || base == ANY_TYPE {
                break;
            }
            base = found.base;
        }
    }
    castable
}

/// `event next`
pub(super) fn production(event: Event, next: RuleId) -> Production {
    Production { event, next }
}

impl Compiler<'_> {
    fn all(&mut self, fragment: bool) -> Result<(), Error> {
        let reserved = self.reserve(4)?;
        (self.end, self.empty, self.fragment) = (reserved, reserved + 1, FRAGMENT_START);
        let document = reserved + 3;
        let ee = [production(Event::EndElement, self.end)];
        self.set(self.end, ee.to_vec(), Kind::Content, self.end)?;
        self.set(self.empty, ee.to_vec(), Kind::First, self.end)?;
        let schema = self.schema;
        for index in 0..schema.model.types.len() {
            let made = self.type_rules(self.budget.index(index)?)?;
            self.out.types.push(made);
        }
        for element in &schema.model.elements {
            let first = self.element_first(element.type_index, element.nillable)?;
            let name = self.strings.name(element.name);
            self.out.elements.push(Element { name, first, type_id: element.type_index });
        }
        self.globals()?;
        self.document(document)?;
        if fragment || self.flags.self_contained {
            self.fragments(self.fragment)?;
        }
        self.out.start = if fragment { self.fragment } else { document };
        Ok(())
    }

    fn globals(&mut self) -> Result<(), Error> {
        let model = &self.schema.model;
        for (&name, &element) in &model.global_elements {
            self.out.global_elements.insert(self.strings.name(name), element);
        }
        for (&name, &attribute) in &model.global_attributes {
            let datatype = self.datatype(model.attributes[attribute as usize].type_index)?;
            self.out.global_attributes.insert(self.strings.name(name), datatype);
        }
        for (&name, &index) in &model.named_types {
            self.out.named_types.insert(self.strings.name(name), index);
        }
        Ok(())
    }

    /// Rules that are filled in later.
    pub(super) fn reserve(&mut self, count: usize) -> Result<RuleId, Error> {
        let first = self.budget.index(self.out.rules.len())?;
        self.budget.take(count.saturating_mul(size_of::<Rule>()))?;
        self.out.rules.resize_with(self.out.rules.len() + count, Rule::default);
        Ok(first)
    }

    /// Fills in a rule: its productions by event code, and those that are not declared.
    pub(super) fn set(
        &mut self,
        rule: RuleId,
        first: Vec<Production>,
        kind: Kind,
        content: RuleId,
    ) -> Result<(), Error> {
        let second = self.undeclared(rule, &first, kind, content);
        let leaf = |branch: &Branch| match branch {
            Branch::Leaf(_) => 0,
            Branch::Group(group) => size_of_val(&**group),
        };
        let groups: usize = second.iter().map(leaf).sum();
        self.budget.take(size_of_val(&*first) + size_of_val(&*second) + groups)?;
        self.out.rules[rule as usize] = Rule { first: first.into(), second: second.into() };
        Ok(())
    }

    /// EXI §8.5.4.4.1, pruned as in §8.3.
    fn undeclared(
        &self,
        rule: RuleId,
        first: &[Production],
        kind: Kind,
        content: RuleId,
    ) -> Vec<Branch> {
        let mut second = Vec::new();
        if self.flags.strict {
            return second;
        }
        let mut leaf = |event, next| second.push(Branch::Leaf(production(event, next)));
        if first.iter().all(|production| production.event != Event::EndElement) {
            leaf(Event::EndElement, self.end);
        }
        if kind == Kind::First {
            leaf(Event::AttributeType, rule);
            leaf(Event::AttributeNil, rule);
        }
        let after = if kind == Kind::Content { rule } else { content };
        if kind != Kind::Content {
            leaf(Event::AttributeAny, rule);
            second.push(Branch::Group(untyped(rule, first)));
        }
        let mut leaf = |event, next| second.push(Branch::Leaf(production(event, next)));
        let preserve = self.flags.preserve;
        if kind == Kind::First && preserve.prefixes {
            leaf(Event::Namespace, rule);
        }
        if kind == Kind::First && self.flags.self_contained {
            leaf(Event::SelfContained, self.fragment);
        }
        leaf(Event::StartElementAny, after);
        leaf(Event::CharactersUntyped, after);
        if preserve.dtd {
            leaf(Event::EntityReference, after);
        }
        let last = self.last(after);
        if !last.is_empty() {
            second.push(Branch::Group(last.into()));
        }
        second
    }

    /// CM and PI, as far as they are kept.
    pub(super) fn last(&self, next: RuleId) -> Vec<Production> {
        let preserve = self.flags.preserve;
        let comment = preserve.comments.then_some(Event::Comment);
        let instruction = preserve.pis.then_some(Event::ProcessingInstruction);
        let kept = comment.into_iter().chain(instruction);
        kept.map(|event| production(event, next)).collect()
    }

    /// EXI §8.5.4.1.3
    fn type_rules(&mut self, index: TypeIndex) -> Result<Type, Error> {
        let schema = self.schema;
        let found = schema.model.type_of(index);
        let name = found.name.map(|name| self.strings.name(name));
        let (first, empty) = match &found.body {
            Body::Simple(_) => {
                let content = self.simple_content(index)?;
                (self.attribute_rules(&[], None, content)?, self.empty)
            }
            Body::Complex(Complex { content, uses, wildcard }) => {
                let content = self.content(*content)?;
                let first = self.attribute_rules(uses, wildcard.as_ref(), content)?;
                let empty = if uses.is_empty() && wildcard.is_none() {
                    self.empty
                } else if content == self.end {
                    first
                } else {
                    self.attribute_rules(uses, wildcard.as_ref(), self.end)?
                };
                (first, empty)
            }
        };
        Ok(Type { name, first, empty })
    }

    /// EXI §8.5.4.1.3.1
    fn simple_content(&mut self, index: TypeIndex) -> Result<RuleId, Error> {
        let datatype = self.datatype(index)?;
        let rule = self.reserve(1)?;
        let first = vec![production(Event::Characters(datatype), self.end)];
        self.set(rule, first, Kind::Content, rule)?;
        Ok(rule)
    }

    /// *Content* i; its first rule does for *content2* too, as both allow the same.
    fn content(&mut self, content: Content) -> Result<RuleId, Error> {
        let (particle, mixed) = match content {
            Content::Empty => return Ok(self.end),
            Content::Simple(index) => return self.simple_content(index),
            Content::Particle { particle, mixed } => (particle, mixed),
        };
        let model = &self.schema.model;
        let states = automaton(model, &self.substitutions, particle, &mut self.budget)?;
        let base = self.reserve(states.len())?;
        for (state, rule) in states.iter().zip(base..) {
            let first = self.content_productions(state, base, mixed.then_some(rule));
            self.set(rule, first, Kind::Content, rule)?;
        }
        Ok(base)
    }

    fn content_productions(
        &self,
        state: &NonTerminal,
        base: RuleId,
        mixed: Option<RuleId>,
    ) -> Vec<Production> {
        let mut first = Vec::with_capacity(state.moves.len() + 2);
        for &(terminal, next) in &state.moves {
            let event = match terminal {
                Terminal::Element(element) => Event::StartElement(element),
                Terminal::In(uri) => Event::StartElementIn(self.strings.uri[&uri]),
                Terminal::Any => Event::StartElementAny,
            };
            first.push(production(event, base + next));
        }
        if state.accepts {
            first.push(production(Event::EndElement, self.end));
        }
        // EXI §8.5.4.1.3.2: mixed content.
        first.extend(mixed.map(|rule| production(Event::CharactersUntyped, rule)));
        first
    }

    /// EXI §8.5.4.1.3.2 and §8.5.4.1.4: H₀ ⊕ … ⊕ Hₙ₋₁ ⊕ *Content*. Returns the first rule.
    fn attribute_rules(
        &mut self,
        uses: &[Use],
        wildcard: Option<&Wildcard>,
        content: RuleId,
    ) -> Result<RuleId, Error> {
        let base = self.reserve(uses.len() + 1)?;
        let mut attributes: Vec<Production> = Vec::new();
        let mut rest = self.out.rules[content as usize].first.to_vec();
        for at in (0..=uses.len()).rev() {
            let rule = base + self.budget.index(at)?;
            if let Some(usage) = uses.get(at) {
                let found = self.schema.model.attributes[usage.attribute as usize];
                let datatype = self.datatype(found.type_index)?;
                let event = Event::Attribute(self.strings.name(found.name), datatype);
                if usage.required {
                    attributes.clear();
                    rest.clear();
                }
                attributes.insert(0, production(event, rule + 1));
            }
            let mut first = attributes.clone();
            first.extend(self.wild_attributes(wildcard).map(|event| production(event, rule)));
            first.extend_from_slice(&rest);
            let kind = if at == 0 { Kind::First } else { Kind::Attributes };
            self.set(rule, first, kind, content)?;
        }
        Ok(base)
    }

    /// AT(uri:*) by uri, or AT(*).
    fn wild_attributes(&self, wildcard: Option<&Wildcard>) -> impl Iterator<Item = Event> + use<> {
        let mut events = Vec::new();
        match wildcard {
            None => {}
            Some(Wildcard::Set(uris)) => {
                let texts = &self.schema.texts;
                let mut uris = uris.clone();
                uris.sort_by_key(|&uri| texts.get(uri));
                events.extend(uris.iter().map(|uri| Event::AttributeIn(self.strings.uri[uri])));
            }
            Some(_) => events.push(Event::AttributeAny),
        }
        events.into_iter()
    }

    /// The first rule of an element: that of its type, in strict grammars with `xsi:type` and
    /// `xsi:nil` where they are allowed (EXI §8.5.4.4.2).
    fn element_first(&mut self, index: TypeIndex, nillable: bool) -> Result<RuleId, Error> {
        let first = self.out.types[index as usize].first;
        let castable = self.castable[index as usize];
        if !self.flags.strict || !castable && !nillable {
            return Ok(first);
        }
        if let Some(&known) = self.firsts.get(&(index, nillable)) {
            return Ok(known);
        }
        let made = self.with_type_and_nil(first, castable, nillable)?;
        self.firsts.insert((index, nillable), made);
        Ok(made)
    }

    /// A copy of a rule, its loops its own, with `xsi:type` and `xsi:nil` behind.
    pub(super) fn with_type_and_nil(
        &mut self,
        rule: RuleId,
        castable: bool,
        nillable: bool,
    ) -> Result<RuleId, Error> {
        let made = self.reserve(1)?;
        let looped = |old: &Production| {
            production(old.event, if old.next == rule { made } else { old.next })
        };
        let first: Vec<Production> =
            self.out.rules[rule as usize].first.iter().map(looped).collect();
        let type_event = castable.then_some(Event::AttributeType);
        let second: Vec<Branch> = type_event
            .into_iter()
            .chain(nillable.then_some(Event::AttributeNil))
            .map(|event| Branch::Leaf(production(event, made)))
            .collect();
        self.budget.take(size_of_val(&*first) + size_of_val(&*second))?;
        self.out.rules[made as usize] = Rule { first: first.into(), second: second.into() };
        Ok(made)
    }

    /// EXI §8.5.1
    fn document(&mut self, document: RuleId) -> Result<(), Error> {
        let content = self.reserve(2)?;
        let end = content + 1;
        let texts = &self.schema.texts;
        let mut elements: Vec<_> = self.schema.model.global_elements.iter().collect();
        elements.sort_by_key(|&(&name, _)| texts.order(name));
        let mut first: Vec<Production> = elements
            .into_iter()
            .map(|(_, &element)| production(Event::StartElement(element), end))
            .collect();
        first.push(production(Event::StartElementAny, end));
        let mut second = Vec::new();
        if self.flags.preserve.dtd {
            second.push(Branch::Leaf(production(Event::Doctype, content)));
        }
        let last = self.last(content);
        if !last.is_empty() {
            second.push(Branch::Group(last.into()));
        }
        let leaves = self.last(end).into_iter().map(Branch::Leaf).collect();
        let rules = &mut self.out.rules;
        let start = production(Event::StartDocument, content);
        rules[document as usize] = Rule { first: [start].into(), second: [].into() };
        rules[content as usize] = Rule { first: first.into(), second: second.into() };
        let ed = production(Event::EndDocument, end);
        rules[end as usize] = Rule { first: [ed].into(), second: leaves };
        Ok(())
    }

    /// The type that has some rules and no name.
    pub(super) fn push_type(&mut self, first: RuleId, empty: RuleId) -> Result<TypeId, Error> {
        let id = self.budget.index(self.out.types.len())?;
        self.out.types.push(Type { name: None, first, empty });
        Ok(id)
    }
}

/// AT(qname) with an untyped value for each that is declared, and AT(*) (EXI §8.5.4.4.1).
fn untyped(rule: RuleId, first: &[Production]) -> Box<[Production]> {
    let declared = first.iter().filter_map(|found| match found.event {
        Event::Attribute(name, _) => Some(production(Event::AttributeUntyped(name), found.next)),
        _ => None,
    });
    declared.chain([production(Event::AttributeAnyUntyped, rule)]).collect()
}

/// An attribute that some declarations share.
pub(super) fn attribute(name: QName, datatype: DatatypeId, next: RuleId) -> Production {
    production(Event::Attribute(name, datatype), next)
}
