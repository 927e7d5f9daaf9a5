//! Whether a selector fits a message.

use std::cmp::Ordering;

use super::{Arithmetic, Comparison, Operand, Piece, Selector};

/// What a selector asks of a message.
pub(in crate::amqp) trait Fields {
    /// The value of a name.
    fn field(&self, name: &str) -> Operand;
}

impl Selector {
    /// Whether it is true of a message; what is unknown is not.
    pub(in crate::amqp) fn fits(&self, message: &impl Fields) -> bool {
        self.truth(message) == Some(true)
    }

    /// As a condition, unknown where it depends on what is unknown (SQL-92 §8.12).
    fn truth(&self, message: &impl Fields) -> Option<bool> {
        match self.value(message) {
            Operand::Bool(value) => Some(value),
            _ => None,
        }
    }

    fn value(&self, message: &impl Fields) -> Operand {
        let truth = match self {
            Self::Literal(operand) => return operand.clone(),
            Self::Field(name) => return message.field(name),
            Self::Compute(kind, both) => {
                return compute(*kind, &both.0.value(message), &both.1.value(message));
            }
            Self::Negate(inner) => {
                return compute(Arithmetic::Minus, &Operand::Integer(0), &inner.value(message));
            }
            Self::Not(inner) => inner.truth(message).map(|truth| !truth),
            Self::And(both) => match both.0.truth(message) {
                Some(false) => Some(false),
                left => match (left, both.1.truth(message)) {
                    (_, Some(false)) => Some(false),
                    (Some(true), right) => right,
                    _ => None,
                },
            },
            Self::Or(both) => match both.0.truth(message) {
                Some(true) => Some(true),
                left => match (left, both.1.truth(message)) {
                    (_, Some(true)) => Some(true),
                    (Some(false), right) => right,
                    _ => None,
                },
            },
            Self::Compare(comparison, both) => {
                compare(*comparison, &both.0.value(message), &both.1.value(message))
            }
            Self::Between(three) => {
                let (value, low, high) = &**three;
                let value = value.value(message);
                let above = compare(Comparison::GreaterOrEqual, &value, &low.value(message));
                let below = compare(Comparison::LessOrEqual, &value, &high.value(message));
                above.zip(below).map(|(above, below)| above && below)
            }
            Self::In(value, texts) => match value.value(message) {
                Operand::Text(text) => Some(texts.contains(&text)),
                _ => None,
            },
            Self::Like(value, pattern) => match value.value(message) {
                Operand::Text(text) => Some(like(&text, pattern)),
                _ => None,
            },
            Self::IsNull(value) => Some(value.value(message) == Operand::Null),
        };
        truth.map_or(Operand::Null, Operand::Bool)
    }
}

fn real(operand: &Operand) -> Option<f64> {
    match operand {
        Operand::Integer(value) => Some(*value as f64),
        Operand::Real(value) => Some(*value),
        _ => None,
    }
}

/// Values of different kinds have no order, and are not equal either: unknown.
fn compare(comparison: Comparison, left: &Operand, right: &Operand) -> Option<bool> {
    let is_equality = matches!(comparison, Comparison::Equal | Comparison::Different);
    let order = match (left, right) {
        (Operand::Integer(left), Operand::Integer(right)) => left.cmp(right),
        (Operand::Text(left), Operand::Text(right)) if is_equality => left.cmp(right),
        (Operand::Bool(left), Operand::Bool(right)) if is_equality => left.cmp(right),
        (left, right) => real(left)?.partial_cmp(&real(right)?)?,
    };
    Some(match comparison {
        Comparison::Equal => order == Ordering::Equal,
        Comparison::Different => order != Ordering::Equal,
        Comparison::Less => order == Ordering::Less,
        Comparison::LessOrEqual => order != Ordering::Greater,
        Comparison::Greater => order == Ordering::Greater,
        Comparison::GreaterOrEqual => order != Ordering::Less,
    })
}

fn compute(kind: Arithmetic, left: &Operand, right: &Operand) -> Operand {
    if let (Operand::Integer(left), Operand::Integer(right)) = (left, right) {
        let value = match kind {
            Arithmetic::Plus => left.checked_add(*right),
            Arithmetic::Minus => left.checked_sub(*right),
            Arithmetic::Times => left.checked_mul(*right),
            Arithmetic::Over => left.checked_div(*right),
        };
        return value.map_or(Operand::Null, Operand::Integer);
    }
    let (Some(left), Some(right)) = (real(left), real(right)) else { return Operand::Null };
    Operand::Real(match kind {
        Arithmetic::Plus => left + right,
        Arithmetic::Minus => left - right,
        Arithmetic::Times => left * right,
        Arithmetic::Over => left / right,
    })
}

/// Whether a text has a pattern. Where it does not fit behind an [`Piece::Any`], that one takes a
/// character more: no earlier one has to, so this takes at most the product of both lengths.
fn like(text: &str, pattern: &[Piece]) -> bool {
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut piece) = (0, 0);
    let mut last_any: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(piece) {
            Some(Piece::Any) => {
                last_any = Some((at, piece));
                piece += 1;
                continue;
            }
            Some(Piece::One) => {}
            Some(Piece::Char(it)) if text.get(at) == Some(it) => {}
            _ => {
                let Some((taken, any)) = last_any else { return false };
                last_any = Some((taken + 1, any));
                (at, piece) = (taken + 1, any + 1);
                continue;
            }
        }
        at += 1;
        piece += 1;
    }
    pattern.iter().skip(piece).all(|piece| *piece == Piece::Any)
}
