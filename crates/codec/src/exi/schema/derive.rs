//! Type definitions: restriction, extension, list and union (XML Schema Part 1 §3.4.2, §3.14.2).

use super::built_in::{ANY_SIMPLE_TYPE, ANY_TYPE};
use super::load::NodeRef;
use super::model::{
    Body, Complex, Compositor, Content, ParticleIndex, Patterns, Primitive, Simple, Term,
    TypeIndex, Use, Variety, Wildcard,
};
use super::resolve::{Attributes, Resolver, union};
use crate::Error;
use crate::exi::grammar::WhiteSpace;

impl Resolver<'_> {
    /// The base and the body of a simple type definition.
    pub(super) fn simple_type(&mut self, place: NodeRef) -> Result<(TypeIndex, Simple), Error> {
        let Some(child) = self.child(place, &["restriction", "list", "union"]) else {
            let what = "simpleType has neither restriction nor list nor union".to_owned();
            return Err(self.fault(place, what));
        };
        match self.tag(child) {
            "restriction" => {
                let base = self.base_simple(child, "base")?;
                let Some(simple) = self.facets(child, base)? else {
                    return Err(self.not_simple(child));
                };
                Ok((base, simple))
            }
            "list" => {
                let item = self.base_simple(child, "itemType")?;
                Ok((ANY_SIMPLE_TYPE, constructed(Variety::List(item))))
            }
            _ => {
                let members = self.attribute(child, "memberTypes").unwrap_or_default();
                for member in members.split_ascii_whitespace() {
                    self.type_by_name(child, member)?;
                }
                for member in self.sources.children(child) {
                    if self.tag(member) == "simpleType" {
                        let member = self.anonymous(member)?;
                        self.complete(member)?;
                    }
                }
                Ok((ANY_SIMPLE_TYPE, constructed(Variety::Union)))
            }
        }
    }

    fn not_simple(&self, place: NodeRef) -> Error {
        self.fault(place, "the base is not a simple type".to_owned())
    }

    /// The simple type that an attribute names or a child defines.
    fn base_simple(&mut self, place: NodeRef, attribute: &str) -> Result<TypeIndex, Error> {
        let base = match self.attribute(place, attribute) {
            Some(value) => self.type_by_name(place, &value)?,
            None => match self.child(place, &["simpleType"]) {
                Some(child) => self.anonymous(child)?,
                None => return Err(self.fault(place, format!("{attribute} is missing"))),
            },
        };
        self.complete(base)?;
        match self.model.simple(base) {
            Some(_) => Ok(base),
            None => Err(self.not_simple(place)),
        }
    }

    /// A simple type restricted by the facets at a place; `None` if the base is not simple.
    fn facets(&mut self, place: NodeRef, base: TypeIndex) -> Result<Option<Simple>, Error> {
        let Some(simple) = self.model.simple(base) else { return Ok(None) };
        self.budget.take(simple.bytes())?;
        let mut simple = simple.clone();
        let (mut patterns, mut values): (Vec<Box<str>>, Vec<Box<str>>) = (Vec::new(), Vec::new());
        let base_space = simple.white_space;
        for child in self.sources.children(place) {
            let node = self.sources.node(child);
            let Some(value) = node.raw("value") else { continue };
            match node.tag {
                "enumeration" => values.push(normalize(value, base_space).into()),
                "pattern" => patterns.push(value.into()),
                "whiteSpace" => simple.white_space = white_space(value.trim(), base_space),
                tag => bound(&mut simple, tag, value),
            }
        }
        if !patterns.is_empty() {
            simple.patterns = Patterns::Of(patterns);
        }
        if !values.is_empty() {
            let item = simple.enumeration.as_ref().map_or(base, |(_, item)| *item);
            simple.enumeration = Some((values, item));
        }
        Ok(Some(simple))
    }

    /// The base and the body of a complex type definition.
    pub(super) fn complex_type(&mut self, place: NodeRef) -> Result<(TypeIndex, Complex), Error> {
        let mixed = self.truth(place, "mixed");
        let Some(content) = self.child(place, &["simpleContent", "complexContent"]) else {
            let own = self.explicit_content(place)?;
            let attributes = self.attributes(place)?;
            let content = self.effective_content(place, own, mixed)?;
            let wildcard = attributes.wildcard.clone();
            let uses = self.merged_uses(&[], attributes)?;
            return Ok((ANY_TYPE, Complex { content, uses, wildcard }));
        };
        let Some(derivation) = self.child(content, &["extension", "restriction"]) else {
            let what = "neither extension nor restriction".to_owned();
            return Err(self.fault(content, what));
        };
        let Some(value) = self.attribute(derivation, "base") else {
            return Err(self.fault(derivation, "base is missing".to_owned()));
        };
        let base = self.type_by_name(derivation, &value)?;
        self.complete(base)?;
        let extends = self.tag(derivation) == "extension";
        let made = if self.tag(content) == "simpleContent" {
            self.simple_content(derivation, base, extends)?
        } else {
            let mixed = match self.sources.node(content).attribute("mixed") {
                Some(_) => self.truth(content, "mixed"),
                None => mixed,
            };
            self.complex_content(derivation, base, extends, mixed)?
        };
        let attributes = self.attributes(derivation)?;
        let own_wildcard = attributes.wildcard.clone();
        let (uses, wildcard) = match &self.model.type_of(base).body {
            Body::Complex(complex) => (complex.uses.clone(), complex.wildcard.clone()),
            Body::Simple(_) => (Vec::new(), None),
        };
        self.compare(own_wildcard.as_ref(), wildcard.as_ref())?;
        self.budget.take(wildcard.as_ref().map_or(0, Wildcard::bytes))?;
        // XML Schema Part 1 §3.4.2: a restriction has the wildcard that it says itself.
        let wildcard = if extends { union(own_wildcard, wildcard) } else { own_wildcard };
        let uses = self.merged_uses(&uses, attributes)?;
        Ok((base, Complex { content: made, uses, wildcard }))
    }

    /// Attribute uses of the base, overridden and prohibited by those of the type, in EXI's order.
    fn merged_uses(&mut self, base: &[Use], own: Attributes) -> Result<Vec<Use>, Error> {
        self.budget.take((base.len() + own.uses.len()) * size_of::<Use>())?;
        let name = |usage: &Use| self.model.attributes[usage.attribute as usize].name;
        let kept = base.iter().filter(|&usage| !own.uses.contains_key(&name(usage)));
        let mut uses: Vec<Use> =
            kept.copied().chain(own.uses.values().flatten().copied()).collect();
        uses.sort_by_key(|usage| self.sources.texts.order(name(usage)));
        Ok(uses)
    }

    fn simple_content(
        &mut self,
        place: NodeRef,
        base: TypeIndex,
        extends: bool,
    ) -> Result<Content, Error> {
        let inherited = match &self.model.type_of(base).body {
            Body::Simple(_) if extends => Some(base),
            Body::Complex(Complex { content: Content::Simple(inner), .. }) => Some(*inner),
            _ => None,
        };
        if extends {
            return match inherited {
                Some(inner) => Ok(Content::Simple(inner)),
                None => Err(self.not_simple(place)),
            };
        }
        let start = match self.child(place, &["simpleType"]) {
            Some(child) => self.anonymous(child)?,
            None => inherited.ok_or_else(|| self.not_simple(place))?,
        };
        self.complete(start)?;
        let Some(simple) = self.facets(place, start)? else { return Err(self.not_simple(place)) };
        let restricted = self.push_type(None, start, Body::Simple(simple))?;
        Ok(Content::Simple(restricted))
    }

    fn complex_content(
        &mut self,
        place: NodeRef,
        base: TypeIndex,
        extends: bool,
        mixed: bool,
    ) -> Result<Content, Error> {
        let own = self.explicit_content(place)?;
        if !extends {
            return self.effective_content(place, own, mixed);
        }
        let inherited = match &self.model.type_of(base).body {
            Body::Complex(complex) => complex.content,
            Body::Simple(_) => {
                let what = "complexContent extends a simple type".to_owned();
                return Err(self.fault(place, what));
            }
        };
        match (inherited, own) {
            (Content::Empty, own) => self.effective_content(place, own, mixed),
            (inherited, None) => Ok(inherited),
            (Content::Particle { particle, mixed: inherited }, Some(own)) => {
                let both = Term::Group(Compositor::Sequence, vec![particle, own]);
                let particle = self.push_particle(place, 1, Some(1), both)?;
                Ok(Content::Particle { particle, mixed: mixed || inherited })
            }
            (Content::Simple(_), Some(_)) => {
                let what = "elements extend a type of simple content".to_owned();
                Err(self.fault(place, what))
            }
        }
    }

    /// The particle of a type's own content; `None` if nothing is allowed.
    fn explicit_content(&mut self, place: NodeRef) -> Result<Option<ParticleIndex>, Error> {
        let Some(child) = self.child(place, &["group", "all", "choice", "sequence"]) else {
            return Ok(None);
        };
        let made = self.particle(child)?;
        Ok(made.filter(|&made| {
            let particle = self.model.particle(made);
            match &particle.term {
                Term::Group(Compositor::Choice, children) => {
                    !children.is_empty() || particle.min > 0
                }
                Term::Group(_, children) => !children.is_empty(),
                _ => true,
            }
        }))
    }

    /// Mixed content without elements is a particle all the same.
    fn effective_content(
        &mut self,
        place: NodeRef,
        own: Option<ParticleIndex>,
        mixed: bool,
    ) -> Result<Content, Error> {
        match own {
            Some(particle) => Ok(Content::Particle { particle, mixed }),
            None if mixed => {
                let empty = Term::Group(Compositor::Sequence, Vec::new());
                let particle = self.push_particle(place, 1, Some(1), empty)?;
                Ok(Content::Particle { particle, mixed })
            }
            None => Ok(Content::Empty),
        }
    }
}

/// A list or union; both collapse white space.
fn constructed(variety: Variety) -> Simple {
    Simple {
        variety,
        white_space: WhiteSpace::Collapse,
        patterns: Patterns::None,
        bounds: (None, None),
        enumeration: None,
    }
}

fn white_space(value: &str, otherwise: WhiteSpace) -> WhiteSpace {
    match value {
        "preserve" => WhiteSpace::Preserve,
        "replace" => WhiteSpace::Replace,
        "collapse" => WhiteSpace::Collapse,
        _ => otherwise,
    }
}

/// A value as its white space facet leaves it (XML Schema Part 2 §4.3.6).
fn normalize(value: &str, white_space: WhiteSpace) -> String {
    let blank = [' ', '\t', '\n', '\r'];
    match white_space {
        WhiteSpace::Preserve => value.to_owned(),
        WhiteSpace::Replace => value.replace(blank, " "),
        WhiteSpace::Collapse => {
            let words: Vec<&str> = value.split(blank).filter(|word| !word.is_empty()).collect();
            words.join(" ")
        }
    }
}

/// Narrows the range of an integer; those of other types do not change how EXI codes them.
fn bound(simple: &mut Simple, tag: &str, value: &str) {
    if simple.variety != Variety::Atomic(Primitive::Integer) {
        return;
    }
    let value = value.trim();
    let Ok(number) = value.parse::<i128>().or_else(|_| {
        // Beyond 128 bits: far away on the side that the sign says.
        let digits = value.strip_prefix(['+', '-']).unwrap_or(value);
        let far = if value.starts_with('-') { i128::MIN + 1 } else { i128::MAX - 1 };
        if digits.bytes().all(|byte| byte.is_ascii_digit()) { Ok(far) } else { Err(()) }
    }) else {
        return;
    };
    let (lower, upper) = &mut simple.bounds;
    let least = |new: i128, old: &Option<i128>| Some(old.map_or(new, |old| old.max(new)));
    let most = |new: i128, old: &Option<i128>| Some(old.map_or(new, |old| old.min(new)));
    match tag {
        "minInclusive" => *lower = least(number, lower),
        "minExclusive" => *lower = least(number.saturating_add(1), lower),
        "maxInclusive" => *upper = most(number, upper),
        "maxExclusive" => *upper = most(number.saturating_sub(1), upper),
        _ => {}
    }
}
