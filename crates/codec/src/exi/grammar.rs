//! Grammars as the encoder and the decoder walk them (EXI §8.5): immutable, shared, made from a
//! schema for one choice of strict, preserve, fragment and self-contained.
//!
//! What a stream learns itself, built-in element grammars, is not here.

// order: these maps are looked up, and written sorted.
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::codes::Codes;

/// Index of a rule in [`Grammars::rules`].
pub type RuleId = u32;
/// Index of a type in [`Grammars::types`].
pub type TypeId = u32;
/// Index of an element declaration in [`Grammars::elements`].
pub type ElementId = u32;
/// Index of a datatype in [`Grammars::datatypes`].
pub type DatatypeId = u32;

/// A qualified name of the initial string tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QName {
    /// Index in [`Grammars::uris`].
    pub uri: u32,
    /// Index in [`Uri::locals`].
    pub local: u32,
}

/// One namespace of the initial string tables, in their order (EXI Appendix D).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uri {
    /// The name itself; empty for no namespace.
    pub uri: String,
    /// Initial prefixes (EXI D.2).
    pub prefixes: Vec<String>,
    /// Initial local names, sorted (EXI D.3).
    pub locals: Vec<String>,
}

/// What a production matches (EXI §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// SD
    StartDocument,
    /// ED
    EndDocument,
    /// SE(qname) of a declared element.
    StartElement(ElementId),
    /// SE(uri:*)
    StartElementIn(u32),
    /// SE(*)
    StartElementAny,
    /// EE
    EndElement,
    /// AT(qname) with a typed value.
    Attribute(QName, DatatypeId),
    /// AT(qname) with an untyped value, second level.
    AttributeUntyped(QName),
    /// AT(uri:*)
    AttributeIn(u32),
    /// AT(*)
    AttributeAny,
    /// AT(*) with an untyped value, second level.
    AttributeAnyUntyped,
    /// AT(xsi:type)
    AttributeType,
    /// AT(xsi:nil)
    AttributeNil,
    /// CH with a typed value.
    Characters(DatatypeId),
    /// CH with an untyped value.
    CharactersUntyped,
    /// NS
    Namespace,
    /// CM
    Comment,
    /// PI
    ProcessingInstruction,
    /// DT
    Doctype,
    /// ER
    EntityReference,
    /// SC
    SelfContained,
}

/// `event next`: what is matched and the rule that follows it. After SE the child's own grammar
/// comes first; after EE and ED `next` means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Production {
    /// Matched.
    pub event: Event,
    /// The rule behind it.
    pub next: RuleId,
}

/// Second part of an event code: a production, or a third part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Branch {
    /// Code of two parts.
    Leaf(Production),
    /// Codes of three parts.
    Group(Box<[Production]>),
}

/// A non-terminal with its productions by event code (EXI §6.2). The first part takes
/// ⌈log2(first.len() + 1 if there is a second)⌉ bits, and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Codes of one part.
    pub first: Box<[Production]>,
    /// Behind the last of them.
    pub second: Box<[Branch]>,
}

/// A declared element: global, local, or the relaxed one of several with the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its name.
    pub name: QName,
    /// FirstStartTagContent of its grammar.
    pub first: RuleId,
    /// Its type.
    pub type_id: TypeId,
}

/// A type that `xsi:type` may name, or an anonymous one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// Its name, if it has one.
    pub name: Option<QName>,
    /// What follows `xsi:type` (EXI §8.5.4.4).
    pub first: RuleId,
    /// What follows `xsi:nil="true"`: attributes, no content.
    pub empty: RuleId,
}

/// Parts of a date or time that are coded (EXI §7.1.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DateTime {
    /// gYear
    Year,
    /// gYearMonth
    YearMonth,
    /// date
    Date,
    /// dateTime
    DateTime,
    /// gMonth
    Month,
    /// gMonthDay
    MonthDay,
    /// gDay
    Day,
    /// time
    Time,
}

/// How values of a simple type are coded (EXI §7.1, §7.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coding {
    /// base64Binary
    Base64,
    /// hexBinary
    Hex,
    /// boolean
    Boolean,
    /// boolean with a pattern facet: four values in two bits.
    BooleanPattern,
    /// decimal
    Decimal,
    /// float, double
    Float,
    /// integer
    Integer,
    /// Unsigned integer
    Unsigned,
    /// Bounded integer: the distance from `lower` in `bits` (at most 12).
    Bounded {
        /// Least value.
        lower: i128,
        /// Width.
        bits: u8,
    },
    /// Dates and times.
    DateTime(DateTime),
    /// string and all else
    String,
    /// String of few characters (EXI §7.1.10.1), sorted by code point.
    Restricted(Box<[char]>),
    /// Index into the lexical forms of the schema, in its order; each belongs to `item`.
    Enumeration {
        /// As the schema wrote them, white space collapsed.
        values: Box<[String]>,
        /// Of the values.
        item: DatatypeId,
    },
    /// Length and items.
    List(DatatypeId),
}

/// White space of a simple type (XML Schema Part 2 §4.3.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhiteSpace {
    /// As it is.
    #[default]
    Preserve,
    /// Each white space becomes a blank.
    Replace,
    /// Runs become one blank, none at the ends.
    Collapse,
}

/// A simple type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datatype {
    /// Coding of its values.
    pub coding: Coding,
    /// Its characters when lexical values are kept: `None` is any character (EXI §7.1.10.1).
    pub lexical: Option<Box<[char]>>,
    /// Its name and those of its ancestors, nearest first: where a datatype map is looked up.
    pub lineage: Box<[QName]>,
    /// How values are normalised before coding.
    pub white_space: WhiteSpace,
}

/// Everything that comes of a schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grammars {
    /// Initial string tables; the first four are "", xml, xsi, xsd (EXI D.1).
    pub uris: Vec<Uri>,
    /// All rules.
    pub rules: Vec<Rule>,
    /// All elements.
    pub elements: Vec<Element>,
    /// All types.
    pub types: Vec<Type>,
    /// All simple types that values refer to.
    pub datatypes: Vec<Datatype>,
    /// Global elements, which SE(*) and SE(uri:*) look up.
    pub global_elements: HashMap<QName, ElementId>,
    /// Global attributes, which AT(*) and AT(uri:*) look up.
    pub global_attributes: HashMap<QName, DatatypeId>,
    /// Types by name, which `xsi:type` looks up.
    pub named_types: HashMap<QName, TypeId>,
    /// Document (EXI §8.4.1 or 8.5.1), or Fragment (§8.4.2 or 8.5.2).
    pub start: RuleId,
    /// Hash of the schema, so that two sides know that they mean the same.
    pub hash: [u8; 32],
    /// For decoders.
    pub(crate) codes: Made,
}

/// What the first decoder makes of the grammars, which change no more then.
#[derive(Debug, Default)]
pub(crate) struct Made(OnceLock<Arc<Codes>>);

impl Made {
    pub(crate) fn get(&self, grammars: &Grammars) -> Arc<Codes> {
        self.0.get_or_init(|| Arc::new(Codes::new(grammars))).clone()
    }
}

// A copy may be changed before it is used.
impl Clone for Made {
    fn clone(&self) -> Self {
        Self::default()
    }
}

// It says nothing that the grammars do not say.
impl PartialEq for Made {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Made {}
