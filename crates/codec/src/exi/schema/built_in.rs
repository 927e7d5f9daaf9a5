// flat table: the built-in types of XML Schema Part 2 §3
//! The built-in types.

use super::XSD;
use super::model::{
    Body, Complex, Compositor, Content, Model, Particle, Patterns, Primitive, Simple, Term, Type,
    TypeIndex, Variety, Wildcard,
};
use super::names::Texts;
use crate::exi::grammar::{DateTime, WhiteSpace};

/// The ur-type (XML Schema Part 1 §3.4.7).
pub(super) const ANY_TYPE: TypeIndex = 0;
/// The simple ur-type.
pub(super) const ANY_SIMPLE_TYPE: TypeIndex = 1;
/// What untyped values are.
pub(super) const STRING: TypeIndex = 2;

/// A built-in simple type.
struct Row {
    name: &'static str,
    base: &'static str,
    kind: Built,
}

enum Built {
    /// Primitive, with its white space.
    Is(Primitive, WhiteSpace),
    /// Derived by white space and, perhaps, a pattern.
    Text(WhiteSpace, bool),
    /// Derived by bounds.
    Range(Option<i128>, Option<i128>),
    List(&'static str),
}

const fn primitive(name: &'static str, primitive: Primitive) -> Row {
    let kind = Built::Is(primitive, WhiteSpace::Collapse);
    Row { name, base: "anySimpleType", kind }
}

const fn text(name: &'static str, base: &'static str, pattern: bool) -> Row {
    Row { name, base, kind: Built::Text(WhiteSpace::Collapse, pattern) }
}

const fn range(
    name: &'static str,
    base: &'static str,
    lower: Option<i128>,
    upper: Option<i128>,
) -> Row {
    Row { name, base, kind: Built::Range(lower, upper) }
}

const fn list(name: &'static str, item: &'static str) -> Row {
    Row { name, base: "anySimpleType", kind: Built::List(item) }
}

/// Each behind its base; they begin at [`STRING`].
static TYPES: [Row; 44] = [
    Row {
        name: "string",
        base: "anySimpleType",
        kind: Built::Is(Primitive::String, WhiteSpace::Preserve),
    },
    primitive("boolean", Primitive::Boolean),
    primitive("decimal", Primitive::Decimal),
    primitive("float", Primitive::Float),
    primitive("double", Primitive::Float),
    primitive("duration", Primitive::Other),
    primitive("dateTime", Primitive::DateTime(DateTime::DateTime)),
    primitive("time", Primitive::DateTime(DateTime::Time)),
    primitive("date", Primitive::DateTime(DateTime::Date)),
    primitive("gYearMonth", Primitive::DateTime(DateTime::YearMonth)),
    primitive("gYear", Primitive::DateTime(DateTime::Year)),
    primitive("gMonthDay", Primitive::DateTime(DateTime::MonthDay)),
    primitive("gDay", Primitive::DateTime(DateTime::Day)),
    primitive("gMonth", Primitive::DateTime(DateTime::Month)),
    primitive("hexBinary", Primitive::Hex),
    primitive("base64Binary", Primitive::Base64),
    primitive("anyURI", Primitive::Other),
    primitive("QName", Primitive::Qualified),
    primitive("NOTATION", Primitive::Qualified),
    Row { name: "normalizedString", base: "string", kind: Built::Text(WhiteSpace::Replace, false) },
    text("token", "normalizedString", false),
    text("language", "token", true),
    text("NMTOKEN", "token", true),
    text("Name", "token", true),
    text("NCName", "Name", true),
    text("ID", "NCName", false),
    text("IDREF", "NCName", false),
    text("ENTITY", "NCName", false),
    list("NMTOKENS", "NMTOKEN"),
    list("IDREFS", "IDREF"),
    list("ENTITIES", "ENTITY"),
    range("integer", "decimal", None, None),
    range("nonPositiveInteger", "integer", None, Some(0)),
    range("negativeInteger", "nonPositiveInteger", None, Some(-1)),
    range("long", "integer", Some(i64::MIN as i128), Some(i64::MAX as i128)),
    range("int", "long", Some(i32::MIN as i128), Some(i32::MAX as i128)),
    range("short", "int", Some(i16::MIN as i128), Some(i16::MAX as i128)),
    range("byte", "short", Some(i8::MIN as i128), Some(i8::MAX as i128)),
    range("nonNegativeInteger", "integer", Some(0), None),
    range("unsignedLong", "nonNegativeInteger", Some(0), Some(u64::MAX as i128)),
    range("unsignedInt", "unsignedLong", Some(0), Some(u32::MAX as i128)),
    range("unsignedShort", "unsignedInt", Some(0), Some(u16::MAX as i128)),
    range("unsignedByte", "unsignedShort", Some(0), Some(u8::MAX as i128)),
    range("positiveInteger", "nonNegativeInteger", Some(1), None),
];

/// Names of all built-in types.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ["anyType", "anySimpleType"].into_iter().chain(TYPES.iter().map(|row| row.name))
}

/// A model of the built-in types alone.
pub(super) fn model(texts: &mut Texts) -> Model {
    let mut model = Model::default();
    model.particles.push(Particle {
        min: 0,
        max: None,
        term: Term::Wildcard(Wildcard::Any),
        leaves: 1,
        depth: 1,
    });
    model.particles.push(Particle {
        min: 1,
        max: Some(1),
        term: Term::Group(Compositor::Sequence, vec![0]),
        leaves: 1,
        depth: 2,
    });
    let any = Complex {
        content: Content::Particle { particle: 1, mixed: true },
        uses: Vec::new(),
        wildcard: Some(Wildcard::Any),
    };
    push(&mut model, texts, "anyType", ANY_TYPE, Body::Complex(any));
    let simple = atomic(Primitive::Other, WhiteSpace::Preserve);
    push(&mut model, texts, "anySimpleType", ANY_TYPE, Body::Simple(simple));
    for row in &TYPES {
        let base = find(&model, texts, row.base);
        let body = match row.kind {
            Built::Is(primitive, white_space) => atomic(primitive, white_space),
            Built::Text(white_space, pattern) => {
                let mut simple = inherit(&model, base);
                simple.white_space = white_space;
                if pattern {
                    simple.patterns = Patterns::BuiltIn;
                }
                simple
            }
            Built::Range(lower, upper) => {
                let bounds = (lower, upper);
                let variety = Variety::Atomic(Primitive::Integer);
                Simple { variety, bounds, ..inherit(&model, base) }
            }
            Built::List(item) => {
                let variety = Variety::List(find(&model, texts, item));
                Simple { variety, ..atomic(Primitive::Other, WhiteSpace::Collapse) }
            }
        };
        push(&mut model, texts, row.name, base, Body::Simple(body));
    }
    model
}

fn atomic(primitive: Primitive, white_space: WhiteSpace) -> Simple {
    Simple {
        variety: Variety::Atomic(primitive),
        white_space,
        patterns: Patterns::None,
        bounds: (None, None),
        enumeration: None,
    }
}

fn inherit(model: &Model, base: TypeIndex) -> Simple {
    let plain = || atomic(Primitive::Other, WhiteSpace::Collapse);
    model.simple(base).cloned().unwrap_or_else(plain)
}

fn find(model: &Model, texts: &mut Texts, local: &str) -> TypeIndex {
    let name = texts.name(XSD, local);
    model.named_types.get(&name).copied().unwrap_or(ANY_SIMPLE_TYPE)
}

fn push(model: &mut Model, texts: &mut Texts, local: &str, base: TypeIndex, body: Body) {
    let name = texts.name(XSD, local);
    let index = TypeIndex::try_from(model.types.len()).unwrap_or(TypeIndex::MAX);
    model.named_types.insert(name, index);
    model.types.push(Type { name: Some(name), base, body });
}
