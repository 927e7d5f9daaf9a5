//! The components of a schema that grammars are made of (XML Schema Part 1 §2.2).

use std::collections::BTreeMap;

use super::names::{Name, Text};
use crate::exi::grammar::{DateTime, WhiteSpace};

/// Index of a type in [`Model::types`].
pub(super) type TypeIndex = u32;
/// Index of an element declaration in [`Model::elements`].
pub(super) type ElementIndex = u32;
/// Index of an attribute declaration in [`Model::attributes`].
pub(super) type AttributeIndex = u32;
/// Index of a particle in [`Model::particles`].
pub(super) type ParticleIndex = u32;

/// The ancestor of a simple type that says how EXI codes it (EXI Table 7-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Primitive {
    /// anySimpleType, anyURI, duration.
    Other,
    /// QName, NOTATION: like a string, but never by enumeration (EXI §7.2).
    Qualified,
    String,
    Boolean,
    Decimal,
    Integer,
    Float,
    Base64,
    Hex,
    DateTime(DateTime),
}

/// {variety}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variety {
    Atomic(Primitive),
    List(TypeIndex),
    Union,
}

/// Pattern facets of the nearest type that has some (EXI §7.1.10.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Patterns {
    None,
    /// Those of a built-in type: they restrict no characters.
    BuiltIn,
    Of(Vec<Box<str>>),
}

/// A simple type definition.
#[derive(Clone, Debug)]
pub(super) struct Simple {
    pub(super) variety: Variety,
    pub(super) white_space: WhiteSpace,
    pub(super) patterns: Patterns,
    /// Least and greatest value, of integers.
    pub(super) bounds: (Option<i128>, Option<i128>),
    /// Values of the nearest type that enumerates them, and the nearest ancestor that does not.
    pub(super) enumeration: Option<(Vec<Box<str>>, TypeIndex)>,
}

impl Simple {
    /// Bytes that a copy takes beside its own.
    pub(super) fn bytes(&self) -> usize {
        let texts = |texts: &[Box<str>]| -> usize {
            texts.iter().map(|text| size_of::<Box<str>>() + text.len()).sum()
        };
        let patterns = match &self.patterns {
            Patterns::Of(patterns) => texts(patterns),
            Patterns::None | Patterns::BuiltIn => 0,
        };
        patterns + self.enumeration.as_ref().map_or(0, |(values, _)| texts(values))
    }
}

/// {namespace constraint}
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wildcard {
    Any,
    /// All but this one and none.
    Not(Text),
    Set(Vec<Text>),
}

impl Wildcard {
    /// Namespaces that it lists.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Set(uris) => uris.len(),
            Self::Any | Self::Not(_) => 0,
        }
    }

    /// Bytes that a copy takes beside its own.
    pub(super) fn bytes(&self) -> usize {
        self.count() * size_of::<Text>()
    }
}

/// {content type}
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    Empty,
    Simple(TypeIndex),
    Particle { particle: ParticleIndex, mixed: bool },
}

/// {attribute uses}, one of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) attribute: AttributeIndex,
    pub(super) required: bool,
}

/// A complex type definition.
#[derive(Clone, Debug)]
pub(super) struct Complex {
    pub(super) content: Content,
    /// By local name, then by namespace.
    pub(super) uses: Vec<Use>,
    pub(super) wildcard: Option<Wildcard>,
}

/// What a type is.
#[derive(Clone, Debug)]
pub(super) enum Body {
    Simple(Simple),
    Complex(Complex),
}

/// A type definition.
#[derive(Clone, Debug)]
pub(super) struct Type {
    pub(super) name: Option<Name>,
    /// {base type definition}; anyType is its own.
    pub(super) base: TypeIndex,
    pub(super) body: Body,
}

/// An element declaration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    pub(super) name: Name,
    pub(super) type_index: TypeIndex,
    pub(super) nillable: bool,
    /// {substitution group affiliation}
    pub(super) head: Option<ElementIndex>,
}

/// An attribute declaration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attribute {
    pub(super) name: Name,
    pub(super) type_index: TypeIndex,
}

/// {compositor}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compositor {
    Sequence,
    Choice,
    All,
}

/// {term}
#[derive(Clone, Debug)]
pub(super) enum Term {
    Element(ElementIndex),
    Wildcard(Wildcard),
    Group(Compositor, Vec<ParticleIndex>),
}

impl Term {
    /// Bytes that a copy takes beside its own.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Element(_) => 0,
            Self::Wildcard(wildcard) => wildcard.bytes(),
            Self::Group(_, particles) => size_of_val(&particles[..]),
        }
    }
}

/// A particle.
#[derive(Clone, Debug)]
pub(super) struct Particle {
    pub(super) min: u32,
    /// `None`: unbounded.
    pub(super) max: Option<u32>,
    pub(super) term: Term,
    /// Leaves below it.
    pub(super) leaves: u32,
    /// Groups within groups.
    pub(super) depth: usize,
}

/// A whole schema.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    /// The built-in ones first, in the order of `built_in::TYPES`.
    pub(super) types: Vec<Type>,
    pub(super) elements: Vec<Element>,
    pub(super) attributes: Vec<Attribute>,
    pub(super) particles: Vec<Particle>,
    pub(super) named_types: BTreeMap<Name, TypeIndex>,
    pub(super) global_elements: BTreeMap<Name, ElementIndex>,
    pub(super) global_attributes: BTreeMap<Name, AttributeIndex>,
}

impl Model {
    pub(super) fn type_of(&self, index: TypeIndex) -> &Type {
        &self.types[index as usize]
    }

    pub(super) fn particle(&self, index: ParticleIndex) -> &Particle {
        &self.particles[index as usize]
    }

    pub(super) fn simple(&self, index: TypeIndex) -> Option<&Simple> {
        match &self.type_of(index).body {
            Body::Simple(simple) => Some(simple),
            Body::Complex(_) => None,
        }
    }
}
