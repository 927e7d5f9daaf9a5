//! The core library (XPath 1.0 §4).

use super::Error;
use super::eval::{Context, Evaluator};
use super::parser::Expr;
use super::value::{Item, Value};

/// A function of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Last,
    Position,
    Count,
    LocalName,
    NamespaceUri,
    Name,
    String,
    Concat,
    StartsWith,
    Contains,
    SubstringBefore,
    SubstringAfter,
    Substring,
    StringLength,
    NormalizeSpace,
    Translate,
    Boolean,
    Not,
    True,
    False,
    Number,
    Sum,
    Floor,
    Ceiling,
    Round,
}

/// Most arguments of `concat`.
const MAX_ARGUMENTS: usize = 64;

/// Names, and how many arguments each has.
const FUNCTIONS: [(&str, Function, (usize, usize)); 25] = [
    ("last", Function::Last, (0, 0)),
    ("position", Function::Position, (0, 0)),
    ("count", Function::Count, (1, 1)),
    ("local-name", Function::LocalName, (0, 1)),
    ("namespace-uri", Function::NamespaceUri, (0, 1)),
    ("name", Function::Name, (0, 1)),
    ("string", Function::String, (0, 1)),
    ("concat", Function::Concat, (2, MAX_ARGUMENTS)),
    ("starts-with", Function::StartsWith, (2, 2)),
    ("contains", Function::Contains, (2, 2)),
    ("substring-before", Function::SubstringBefore, (2, 2)),
    ("substring-after", Function::SubstringAfter, (2, 2)),
    ("substring", Function::Substring, (2, 3)),
    ("string-length", Function::StringLength, (0, 1)),
    ("normalize-space", Function::NormalizeSpace, (0, 1)),
    ("translate", Function::Translate, (3, 3)),
    ("boolean", Function::Boolean, (1, 1)),
    ("not", Function::Not, (1, 1)),
    ("true", Function::True, (0, 0)),
    ("false", Function::False, (0, 0)),
    ("number", Function::Number, (0, 1)),
    ("sum", Function::Sum, (1, 1)),
    ("floor", Function::Floor, (1, 1)),
    ("ceiling", Function::Ceiling, (1, 1)),
    ("round", Function::Round, (1, 1)),
];

impl Function {
    pub(super) fn of_name(name: &str) -> Option<Self> {
        FUNCTIONS.iter().find(|(known, ..)| *known == name).map(|(_, function, _)| *function)
    }

    /// The least and the most arguments.
    pub(super) fn arity(self) -> (usize, usize) {
        let found = FUNCTIONS.iter().find(|(_, function, _)| *function == self);
        found.map_or((0, 0), |(.., arity)| *arity)
    }

    /// Whether the argument must be a set of nodes.
    pub(super) fn takes_nodes(self) -> bool {
        matches!(self, Self::Count | Self::Sum | Self::LocalName | Self::NamespaceUri | Self::Name)
    }
}

/// The value of a call; the parser has counted the arguments.
pub(super) fn call(
    evaluator: &mut Evaluator<'_, '_>,
    function: Function,
    arguments: &[Expr],
    context: Context,
) -> Result<Value, Error> {
    Ok(match function {
        Function::Last => Value::Number(context.size as f64),
        Function::Position => Value::Number(context.position as f64),
        Function::True => Value::Boolean(true),
        Function::False => Value::Boolean(false),
        Function::Boolean | Function::Not => {
            let value = match arguments.first() {
                Some(argument) => evaluator.value(argument, context)?.to_boolean(),
                None => false,
            };
            Value::Boolean(value != (function == Function::Not))
        }
        Function::Count
        | Function::Sum
        | Function::LocalName
        | Function::NamespaceUri
        | Function::Name => of_nodes(evaluator, function, arguments, context)?,
        Function::Number | Function::Floor | Function::Ceiling | Function::Round => {
            let number = match arguments.first() {
                Some(argument) => evaluator.number(argument, context)?,
                None => {
                    let text = evaluator.item_text(context.item)?;
                    evaluator.number_of(&Value::Text(text))?
                }
            };
            Value::Number(match function {
                Function::Floor => number.floor(),
                Function::Ceiling => number.ceil(),
                Function::Round => round(number),
                _ => number,
            })
        }
        _ => of_texts(evaluator, function, arguments, context)?,
    })
}

/// The nearest integer, of two the greater (XPath 1.0 §4.4).
fn round(number: f64) -> f64 {
    if number.is_finite() { (number + 0.5).floor() } else { number }
}

fn of_nodes(
    evaluator: &mut Evaluator<'_, '_>,
    function: Function,
    arguments: &[Expr],
    context: Context,
) -> Result<Value, Error> {
    let nodes: Vec<Item> = match arguments.first() {
        Some(argument) => evaluator.nodes(argument, context)?,
        None => vec![context.item],
    };
    match function {
        Function::Count => return Ok(Value::Number(nodes.len() as f64)),
        Function::Sum => {
            let mut sum = 0.0;
            for item in nodes {
                let text = evaluator.item_text(item)?;
                sum += evaluator.number_of(&Value::Text(text))?;
            }
            return Ok(Value::Number(sum));
        }
        _ => {}
    }
    let name = nodes.first().and_then(|item| item.name(evaluator.tree));
    let (uri, local, prefix) = name.unwrap_or(("", "", ""));
    let text = match function {
        Function::NamespaceUri => uri.to_owned(),
        Function::Name if !prefix.is_empty() => format!("{prefix}:{local}"),
        _ => local.to_owned(),
    };
    Ok(Value::Text(evaluator.made(text)?))
}

fn of_texts(
    evaluator: &mut Evaluator<'_, '_>,
    function: Function,
    arguments: &[Expr],
    context: Context,
) -> Result<Value, Error> {
    let first = match arguments.first() {
        Some(argument) => evaluator.text(argument, context)?,
        None => evaluator.item_text(context.item)?,
    };
    let second = match arguments.get(1) {
        Some(argument) if function != Function::Substring => evaluator.text(argument, context)?,
        _ => String::new(),
    };
    // A search looks at the whole.
    evaluator.spend(1 + first.len() / 16)?;
    let text = match function {
        Function::StartsWith => return Ok(Value::Boolean(first.starts_with(&second))),
        Function::Contains => return Ok(Value::Boolean(first.contains(&second))),
        Function::StringLength => return Ok(Value::Number(first.chars().count() as f64)),
        Function::Concat => {
            let mut text = first;
            text.push_str(&second);
            for argument in arguments.iter().skip(2) {
                let more = evaluator.text(argument, context)?;
                text.push_str(&more);
            }
            text
        }
        Function::SubstringBefore => {
            first.split_once(&*second).map_or(String::new(), |(before, _)| before.to_owned())
        }
        Function::SubstringAfter => {
            first.split_once(&*second).map_or(String::new(), |(_, after)| after.to_owned())
        }
        Function::Substring => {
            let from = match arguments.get(1) {
                Some(argument) => round(evaluator.number(argument, context)?),
                None => f64::NAN,
            };
            let end = match arguments.get(2) {
                Some(argument) => from + round(evaluator.number(argument, context)?),
                None => f64::INFINITY,
            };
            let taken = first.chars().enumerate().filter(|(at, _)| {
                let position = (at + 1) as f64;
                position >= from && position < end
            });
            taken.map(|(_, char)| char).collect()
        }
        Function::NormalizeSpace => {
            let words = first.split([' ', '\t', '\r', '\n']).filter(|word| !word.is_empty());
            words.collect::<Vec<_>>().join(" ")
        }
        Function::Translate => {
            let to = match arguments.get(2) {
                Some(argument) => evaluator.text(argument, context)?,
                None => String::new(),
            };
            evaluator.spend(first.len().saturating_mul(1 + second.len() / 16))?;
            let to: Vec<char> = to.chars().collect();
            let of = |char: char| match second.chars().position(|from| from == char) {
                Some(at) => to.get(at).copied(),
                None => Some(char),
            };
            first.chars().filter_map(of).collect()
        }
        _ => first,
    };
    Ok(Value::Text(evaluator.made(text)?))
}
