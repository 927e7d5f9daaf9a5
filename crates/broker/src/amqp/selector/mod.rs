//! Selectors, by which a subscriber gets only some messages of its topics: conditions of the kind
//! that SQL-92 has, as Jakarta Messaging 3.1 §3.8.1 restricts it. In AMQP they are the filter
//! `apache.org:selector-filter:string`.

mod evaluate;
mod parse;
#[cfg(test)]
mod tests;

pub(super) use evaluate::Fields;
pub(super) use parse::parse;

/// Longest selector in bytes: so long an expression may be nested.
pub(super) const MAX_SELECTOR_BYTES: usize = 2048;
/// Parentheses, NOTs and signs within each other.
const MAX_NESTED: usize = 64;

/// A value: of a field, or of a part of a selector. What is not known, or makes no sense, is null.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Null,
    Bool(bool),
    Integer(i64),
    Real(f64),
    Text(String),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::amqp) enum Comparison {
    Equal,
    Different,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// What is computed of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::amqp) enum Arithmetic {
    Plus,
    Minus,
    Times,
    Over,
}

/// A part of a pattern of LIKE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::amqp) enum Piece {
    /// This character.
    Char(char),
    /// One character.
    One,
    /// Any characters.
    Any,
}

/// A condition, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Selector {
    Literal(Operand),
    Field(String),
    Not(Box<Selector>),
    And(Box<(Selector, Selector)>),
    Or(Box<(Selector, Selector)>),
    Compare(Comparison, Box<(Selector, Selector)>),
    Compute(Arithmetic, Box<(Selector, Selector)>),
    Negate(Box<Selector>),
    /// Between both, these included.
    Between(Box<(Selector, Selector, Selector)>),
    In(Box<Selector>, Vec<String>),
    Like(Box<Selector>, Vec<Piece>),
    IsNull(Box<Selector>),
}
