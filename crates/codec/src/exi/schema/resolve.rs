//! From documents to components: which declaration a name means, elements, attributes, particles.

use std::collections::{BTreeMap, VecDeque};

use super::built_in::{self, ANY_SIMPLE_TYPE, ANY_TYPE};
use super::load::{Kind, NodeRef, Sources};
use super::model::{
    Attribute, AttributeIndex, Body, Complex, Compositor, Content, Element, ElementIndex, Model,
    Particle, ParticleIndex, Term, Type, TypeIndex, Use, Wildcard,
};
use super::names::Name;
use super::{Budget, CODEC, XSD, fault, located};
use crate::{Error, Limits};

/// How far a type is.
#[derive(Clone, Copy)]
enum TypeState {
    Open(NodeRef),
    Busy(NodeRef),
    Done,
}

/// Attribute uses and wildcard of a type or group; a use of `None` is prohibited.
#[derive(Clone, Debug, Default)]
pub(super) struct Attributes {
    pub(super) uses: BTreeMap<Name, Option<Use>>,
    pub(super) wildcard: Option<Wildcard>,
}

impl Attributes {
    /// Bytes that a copy takes, about.
    fn bytes(&self) -> usize {
        2 * self.uses.len() * size_of::<(Name, Option<Use>)>()
            + self.wildcard.as_ref().map_or(0, Wildcard::bytes)
    }
}

/// A component that is found by its definition; `None` while it is being made.
type Made<T> = BTreeMap<u32, Option<T>>;

pub(super) struct Resolver<'a> {
    pub(super) sources: &'a mut Sources,
    pub(super) model: Model,
    /// For what is copied from one definition into others, and compared there: a short document may
    /// want that of a great deal.
    pub(super) budget: Budget,
    limits: &'a Limits,
    depth: usize,
    states: Vec<TypeState>,
    queue: VecDeque<TypeIndex>,
    types: BTreeMap<u32, TypeIndex>,
    elements: Made<ElementIndex>,
    attributes: Made<AttributeIndex>,
    groups: Made<ParticleIndex>,
    attribute_groups: Made<Attributes>,
}

/// Makes the components of all documents.
pub(super) fn resolve(sources: &mut Sources, limits: &Limits) -> Result<Model, Error> {
    let model = built_in::model(&mut sources.texts);
    let mut resolver = Resolver {
        states: vec![TypeState::Done; model.types.len()],
        sources,
        model,
        budget: Budget::new(limits),
        limits,
        depth: limits.depth,
        queue: VecDeque::new(),
        types: BTreeMap::new(),
        elements: BTreeMap::new(),
        attributes: BTreeMap::new(),
        groups: BTreeMap::new(),
        attribute_groups: BTreeMap::new(),
    };
    resolver.all()?;
    Ok(resolver.model)
}

impl Resolver<'_> {
    fn all(&mut self) -> Result<(), Error> {
        for definition in self.sources.all(Kind::Type) {
            let name = self.sources.definitions[definition as usize].name;
            // The schema for schemas defines the built-in types, but not what they are.
            if self.model.named_types.contains_key(&name) {
                continue;
            }
            let index = self.type_by_definition(definition)?;
            self.model.named_types.insert(name, index);
        }
        for definition in self.sources.all(Kind::Element) {
            let element = self.global_element(definition)?;
            let name = self.model.elements[element as usize].name;
            self.model.global_elements.insert(name, element);
        }
        for definition in self.sources.all(Kind::Attribute) {
            let attribute = self.global_attribute(definition)?;
            let name = self.model.attributes[attribute as usize].name;
            self.model.global_attributes.insert(name, attribute);
        }
        while let Some(index) = self.queue.pop_front() {
            self.complete(index)?;
        }
        Ok(())
    }

    pub(super) fn fault(&self, place: NodeRef, what: String) -> Error {
        fault(self.sources, place, what)
    }

    pub(super) fn attribute(&self, place: NodeRef, name: &str) -> Option<String> {
        self.sources.node(place).attribute(name).map(str::to_owned)
    }

    pub(super) fn tag(&self, place: NodeRef) -> &'static str {
        self.sources.node(place).tag
    }

    /// The first child of one of some names.
    pub(super) fn child(&self, place: NodeRef, tags: &[&str]) -> Option<NodeRef> {
        self.sources.children(place).into_iter().find(|&child| tags.contains(&self.tag(child)))
    }

    /// Runs one step further down; what refers to itself without end is refused.
    fn deeper<T>(
        &mut self,
        place: NodeRef,
        step: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.depth == 0 {
            let what = format!("definitions refer to each other over {}, depth", self.limits.depth);
            let what = located(self.sources, place, &what);
            return Err(Error::Limit { codec: CODEC, what });
        }
        self.depth -= 1;
        let made = step(self)?;
        self.depth += 1;
        Ok(made)
    }

    fn circular(&self, place: NodeRef) -> Error {
        self.fault(place, "the definition refers to itself".to_owned())
    }

    /// The definition that a reference means.
    fn refer(&mut self, kind: Kind, place: NodeRef, value: &str) -> Result<u32, Error> {
        let name = self.sources.expand(place, value)?;
        self.sources.refer(kind, name, place).ok_or_else(|| {
            let shown = self.sources.texts.show(name);
            self.fault(place, format!("{} {shown} is not defined", kind.word()))
        })
    }

    // Types.

    /// The type that a name at a place means.
    pub(super) fn type_by_name(&mut self, place: NodeRef, value: &str) -> Result<TypeIndex, Error> {
        let name = self.sources.expand(place, value)?;
        if self.sources.texts.get(name.uri) == XSD
            && let Some(&found) = self.model.named_types.get(&name)
        {
            return Ok(found);
        }
        let definition = self.refer(Kind::Type, place, value)?;
        self.type_by_definition(definition)
    }

    fn type_by_definition(&mut self, definition: u32) -> Result<TypeIndex, Error> {
        if let Some(&known) = self.types.get(&definition) {
            return Ok(known);
        }
        let found = self.sources.definitions[definition as usize];
        // What is redefined has no name any more (XML Schema Part 1 §4.2.2).
        let latest =
            self.sources.refer(Kind::Type, found.name, NodeRef { within: None, ..found.place });
        let name = (latest == Some(definition)).then_some(found.name);
        let index = self.open_type(name, found.place)?;
        self.types.insert(definition, index);
        Ok(index)
    }

    fn open_type(&mut self, name: Option<Name>, place: NodeRef) -> Result<TypeIndex, Error> {
        let body = Complex { content: Content::Empty, uses: Vec::new(), wildcard: None };
        let index = self.push_type(name, ANY_TYPE, Body::Complex(body))?;
        self.states[index as usize] = TypeState::Open(place);
        self.queue.push_back(index);
        Ok(index)
    }

    pub(super) fn push_type(
        &mut self,
        name: Option<Name>,
        base: TypeIndex,
        body: Body,
    ) -> Result<TypeIndex, Error> {
        let index = index(self.model.types.len())?;
        self.model.types.push(Type { name, base, body });
        self.states.push(TypeState::Done);
        Ok(index)
    }

    /// A type without a name, defined at a place.
    pub(super) fn anonymous(&mut self, place: NodeRef) -> Result<TypeIndex, Error> {
        self.open_type(None, place)
    }

    /// Makes sure that a type is made, since what is derived from it needs to look into it.
    pub(super) fn complete(&mut self, index: TypeIndex) -> Result<(), Error> {
        let place = match self.states[index as usize] {
            TypeState::Done => return Ok(()),
            TypeState::Busy(place) => return Err(self.circular(place)),
            TypeState::Open(place) => place,
        };
        self.states[index as usize] = TypeState::Busy(place);
        let (base, body) = self.deeper(place, |resolver| {
            if resolver.tag(place) == "simpleType" {
                let (base, simple) = resolver.simple_type(place)?;
                Ok((base, Body::Simple(simple)))
            } else {
                let (base, complex) = resolver.complex_type(place)?;
                Ok((base, Body::Complex(complex)))
            }
        })?;
        let made = &mut self.model.types[index as usize];
        (made.base, made.body) = (base, body);
        self.states[index as usize] = TypeState::Done;
        Ok(())
    }

    /// {type definition} by attribute or by child, if one is there.
    fn own_type(&mut self, place: NodeRef) -> Result<Option<TypeIndex>, Error> {
        if let Some(value) = self.attribute(place, "type") {
            return self.type_by_name(place, &value).map(Some);
        }
        match self.child(place, &["simpleType", "complexType"]) {
            Some(child) => self.anonymous(child).map(Some),
            None => Ok(None),
        }
    }

    // Elements (XML Schema Part 1 §3.3.2).

    fn global_element(&mut self, definition: u32) -> Result<ElementIndex, Error> {
        let found = self.sources.definitions[definition as usize];
        match self.elements.get(&definition) {
            Some(Some(known)) => return Ok(*known),
            Some(None) => return Err(self.circular(found.place)),
            None => {}
        }
        self.elements.insert(definition, None);
        let head = match self.attribute(found.place, "substitutionGroup") {
            Some(value) => {
                let head = self.refer(Kind::Element, found.place, &value)?;
                Some(self.deeper(found.place, |resolver| resolver.global_element(head))?)
            }
            None => None,
        };
        let made = self.element(found.place, found.name, head)?;
        self.elements.insert(definition, Some(made));
        Ok(made)
    }

    fn element(
        &mut self,
        place: NodeRef,
        name: Name,
        head: Option<ElementIndex>,
    ) -> Result<ElementIndex, Error> {
        let inherited = head.map_or(ANY_TYPE, |head| self.model.elements[head as usize].type_index);
        let type_index = self.own_type(place)?.unwrap_or(inherited);
        let nillable = self.truth(place, "nillable");
        let made = index(self.model.elements.len())?;
        self.model.elements.push(Element { name, type_index, nillable, head });
        Ok(made)
    }

    pub(super) fn truth(&self, place: NodeRef, name: &str) -> bool {
        matches!(self.sources.node(place).attribute(name), Some("true" | "1"))
    }

    /// The name of a local element or attribute.
    fn local_name(&mut self, place: NodeRef, qualified: bool) -> Result<Name, Error> {
        let Some(local) = self.attribute(place, "name") else {
            let what = format!("{} has neither name nor ref", self.tag(place));
            return Err(self.fault(place, what));
        };
        let qualified = match self.sources.node(place).attribute("form") {
            Some(form) => form == "qualified",
            None => qualified,
        };
        let uri = if qualified { self.sources.source(place).target } else { 0 };
        Ok(Name { uri, local: self.sources.texts.intern(&local) })
    }

    // Attributes (XML Schema Part 1 §3.2.2).

    fn global_attribute(&mut self, definition: u32) -> Result<AttributeIndex, Error> {
        if let Some(Some(known)) = self.attributes.get(&definition) {
            return Ok(*known);
        }
        let found = self.sources.definitions[definition as usize];
        let made = self.attribute_declaration(found.place, found.name)?;
        self.attributes.insert(definition, Some(made));
        Ok(made)
    }

    fn attribute_declaration(
        &mut self,
        place: NodeRef,
        name: Name,
    ) -> Result<AttributeIndex, Error> {
        let type_index = self.own_type(place)?.unwrap_or(ANY_SIMPLE_TYPE);
        let made = index(self.model.attributes.len())?;
        self.model.attributes.push(Attribute { name, type_index });
        Ok(made)
    }

    fn attribute_use(&mut self, place: NodeRef, into: &mut Attributes) -> Result<(), Error> {
        let usage = self.attribute(place, "use");
        let (name, attribute) = match self.attribute(place, "ref") {
            Some(value) => {
                let definition = self.refer(Kind::Attribute, place, &value)?;
                let attribute = self.global_attribute(definition)?;
                (self.model.attributes[attribute as usize].name, Some(attribute))
            }
            None => {
                let qualified = self.sources.source(place).qualified_attributes;
                (self.local_name(place, qualified)?, None)
            }
        };
        if usage.as_deref() == Some("prohibited") {
            into.uses.insert(name, None);
            return Ok(());
        }
        let attribute = match attribute {
            Some(global) => global,
            None => self.attribute_declaration(place, name)?,
        };
        let required = usage.as_deref() == Some("required");
        into.uses.insert(name, Some(Use { attribute, required }));
        Ok(())
    }

    /// Attribute uses and wildcard below a place (XML Schema Part 1 §3.4.2).
    pub(super) fn attributes(&mut self, place: NodeRef) -> Result<Attributes, Error> {
        let mut made = Attributes::default();
        let mut own = None;
        for child in self.sources.children(place) {
            match self.tag(child) {
                "attribute" => self.attribute_use(child, &mut made)?,
                "attributeGroup" => {
                    let group = self.attribute_group(child)?;
                    // XML Schema Part 1 §3.4.2: only a type itself prohibits.
                    made.uses.extend(group.uses.into_iter().filter(|(_, usage)| usage.is_some()));
                    self.compare(made.wildcard.as_ref(), group.wildcard.as_ref())?;
                    made.wildcard = intersection(made.wildcard, group.wildcard);
                }
                "anyAttribute" => own = Some(self.wildcard(child)?),
                _ => {}
            }
        }
        self.compare(own.as_ref(), made.wildcard.as_ref())?;
        made.wildcard = intersection(own, made.wildcard);
        Ok(made)
    }

    fn attribute_group(&mut self, place: NodeRef) -> Result<Attributes, Error> {
        let Some(value) = self.attribute(place, "ref") else {
            return Err(self.fault(place, "attributeGroup has no ref".to_owned()));
        };
        let definition = self.refer(Kind::AttributeGroup, place, &value)?;
        match self.attribute_groups.get(&definition) {
            Some(Some(known)) => {
                self.budget.take(known.bytes())?;
                return Ok(known.clone());
            }
            Some(None) => return Err(self.circular(place)),
            None => {}
        }
        self.attribute_groups.insert(definition, None);
        let at = self.sources.definitions[definition as usize].place;
        let made = self.deeper(place, |resolver| resolver.attributes(at))?;
        self.attribute_groups.insert(definition, Some(made.clone()));
        Ok(made)
    }

    /// XML Schema Part 1 §3.10.2
    fn wildcard(&mut self, place: NodeRef) -> Result<Wildcard, Error> {
        let target = self.sources.source(place).target;
        let value = self.attribute(place, "namespace");
        Ok(match value.as_deref().unwrap_or("##any") {
            "##any" => Wildcard::Any,
            "##other" => Wildcard::Not(target),
            list => {
                let mut set = Vec::new();
                for word in list.split_ascii_whitespace() {
                    let uri = match word {
                        "##targetNamespace" => target,
                        "##local" => 0,
                        uri => self.sources.texts.intern(uri),
                    };
                    self.budget.work(set.len())?;
                    if !set.contains(&uri) {
                        set.push(uri);
                    }
                }
                Wildcard::Set(set)
            }
        })
    }

    /// Two wildcards are about to be compared, each namespace with each.
    pub(super) fn compare(
        &mut self,
        one: Option<&Wildcard>,
        other: Option<&Wildcard>,
    ) -> Result<(), Error> {
        let count = |wildcard: Option<&Wildcard>| wildcard.map_or(0, Wildcard::count);
        self.budget.work(count(one).saturating_mul(count(other)))
    }

    // Particles (XML Schema Part 1 §3.8.2, §3.9.2).

    /// The particle at a place; `None` if it may never occur.
    pub(super) fn particle(&mut self, place: NodeRef) -> Result<Option<ParticleIndex>, Error> {
        let min = self.occurs(place, "minOccurs")?.unwrap_or(1);
        let max = match self.sources.node(place).attribute("maxOccurs") {
            Some("unbounded") => None,
            _ => Some(self.occurs(place, "maxOccurs")?.unwrap_or(1)),
        };
        if max == Some(0) {
            return Ok(None);
        }
        let term = match self.tag(place) {
            "element" => Term::Element(self.element_term(place)?),
            "any" => Term::Wildcard(self.wildcard(place)?),
            "group" => {
                let group = self.group(place)?;
                if (min, max) == (1, Some(1)) {
                    return Ok(Some(group));
                }
                let term = &self.model.particle(group).term;
                self.budget.take(term.bytes())?;
                term.clone()
            }
            tag => {
                let compositor = match tag {
                    "sequence" => Compositor::Sequence,
                    "choice" => Compositor::Choice,
                    _ => Compositor::All,
                };
                let particles = self.deeper(place, |resolver| resolver.particles(place))?;
                Term::Group(compositor, particles)
            }
        };
        self.push_particle(place, min.min(max.unwrap_or(u32::MAX)), max, term).map(Some)
    }

    fn particles(&mut self, place: NodeRef) -> Result<Vec<ParticleIndex>, Error> {
        const PARTICLES: [&str; 6] = ["element", "any", "group", "sequence", "choice", "all"];
        let mut made = Vec::new();
        for child in self.sources.children(place) {
            if PARTICLES.contains(&self.tag(child)) {
                made.extend(self.particle(child)?);
            }
        }
        Ok(made)
    }

    pub(super) fn push_particle(
        &mut self,
        place: NodeRef,
        min: u32,
        max: Option<u32>,
        term: Term,
    ) -> Result<ParticleIndex, Error> {
        let (mut leaves, mut depth) = (1_u32, 1);
        if let Term::Group(_, children) = &term {
            leaves = 0;
            for &child in children {
                let child = self.model.particle(child);
                leaves = leaves.saturating_add(child.leaves);
                depth = depth.max(child.depth + 1);
            }
        }
        if depth > self.limits.depth {
            let what = format!("groups nest deeper than {}, depth", self.limits.depth);
            let what = located(self.sources, place, &what);
            return Err(Error::Limit { codec: CODEC, what });
        }
        let made = index(self.model.particles.len())?;
        self.model.particles.push(Particle { min, max, term, leaves, depth });
        Ok(made)
    }

    fn occurs(&self, place: NodeRef, name: &str) -> Result<Option<u32>, Error> {
        let Some(value) = self.sources.node(place).attribute(name) else { return Ok(None) };
        if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(self.fault(place, format!("{name} {value} is not a number")));
        }
        Ok(Some(value.parse().unwrap_or(u32::MAX)))
    }

    fn element_term(&mut self, place: NodeRef) -> Result<ElementIndex, Error> {
        if let Some(value) = self.attribute(place, "ref") {
            let definition = self.refer(Kind::Element, place, &value)?;
            return self.global_element(definition);
        }
        let qualified = self.sources.source(place).qualified_elements;
        let name = self.local_name(place, qualified)?;
        self.element(place, name, None)
    }

    /// The particle of a named group, occurring once.
    fn group(&mut self, place: NodeRef) -> Result<ParticleIndex, Error> {
        let Some(value) = self.attribute(place, "ref") else {
            return Err(self.fault(place, "group has no ref".to_owned()));
        };
        let definition = self.refer(Kind::Group, place, &value)?;
        match self.groups.get(&definition) {
            Some(Some(known)) => return Ok(*known),
            Some(None) => return Err(self.circular(place)),
            None => {}
        }
        self.groups.insert(definition, None);
        let at = self.sources.definitions[definition as usize].place;
        let model = self.child(at, &["sequence", "choice", "all"]);
        let made = match model {
            Some(model) => self.deeper(place, |resolver| resolver.particle(model))?,
            None => None,
        };
        let made = match made {
            Some(made) => made,
            None => {
                let empty = Term::Group(Compositor::Sequence, Vec::new());
                self.push_particle(at, 1, Some(1), empty)?
            }
        };
        self.groups.insert(definition, Some(made));
        Ok(made)
    }
}

/// The index of what is pushed next.
fn index(length: usize) -> Result<u32, Error> {
    u32::try_from(length)
        .map_err(|_| Error::Limit { codec: CODEC, what: "too many components".to_owned() })
}

/// What both allow (XML Schema Part 1 §3.10.6).
fn intersection(a: Option<Wildcard>, b: Option<Wildcard>) -> Option<Wildcard> {
    use Wildcard::{Any, Not, Set};
    let (a, b) = match (a, b) {
        (Some(a), Some(b)) => (a, b),
        (a, b) => return a.or(b),
    };
    Some(match (a, b) {
        (Any, other) | (other, Any) => other,
        (Set(a), Set(b)) => Set(a.into_iter().filter(|uri| b.contains(uri)).collect()),
        (Not(not), Set(set)) | (Set(set), Not(not)) => {
            Set(set.into_iter().filter(|&uri| uri != not && uri != 0).collect())
        }
        (Not(0), Not(b)) => Not(b),
        (Not(a), Not(_)) => Not(a),
    })
}

/// What one of them allows (XML Schema Part 1 §3.10.6). What that cannot express allows all.
pub(super) fn union(a: Option<Wildcard>, b: Option<Wildcard>) -> Option<Wildcard> {
    use Wildcard::{Any, Not, Set};
    let (a, b) = match (a, b) {
        (Some(a), Some(b)) => (a, b),
        (a, b) => return a.or(b),
    };
    Some(match (a, b) {
        (Any, _) | (_, Any) => Any,
        (Set(mut a), Set(b)) => {
            for uri in b {
                if !a.contains(&uri) {
                    a.push(uri);
                }
            }
            Set(a)
        }
        (Not(a), Not(b)) if a == b => Not(a),
        (Not(_), Not(_)) => Not(0),
        (Not(not), Set(set)) | (Set(set), Not(not)) => {
            match (set.contains(&not), set.contains(&0)) {
                (true, true) => Any,
                (true, false) => Not(0),
                (false, true) => Any,
                (false, false) => Not(not),
            }
        }
    })
}
