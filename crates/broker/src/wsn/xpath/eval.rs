//! Evaluation within a budget (XPath 1.0 §2, §3).

use super::super::tree::{Kind, NodeId, Tree};
use super::functions;
use super::parser::{Axis, Expr, From, Operator, Step, Test};
use super::value::{Item, Value, to_number, to_text};
use super::{Error, MAX_STEPS};

/// Bytes of a string that count as a step.
const STEP_BYTES: usize = 16;

/// Where an expression is evaluated (XPath 1.0 §1).
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) item: Item,
    pub(super) position: usize,
    pub(super) size: usize,
}

pub(super) struct Evaluator<'t, 'a> {
    pub(super) tree: &'t Tree<'a>,
    left: u64,
}

/// An expression as a boolean, at the root element.
pub(super) fn evaluate(root: &Expr, tree: &Tree<'_>) -> Result<bool, Error> {
    let mut evaluator = Evaluator { tree, left: MAX_STEPS };
    let context = Context { item: Item::of(tree.root()), position: 1, size: 1 };
    Ok(evaluator.value(root, context)?.to_boolean())
}

impl Evaluator<'_, '_> {
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Error> {
        self.left = self.left.checked_sub(steps as u64).ok_or(Error::Budget)?;
        Ok(())
    }

    /// Spends what a string costs.
    pub(super) fn made(&mut self, text: String) -> Result<String, Error> {
        self.spend(1 + text.len() / STEP_BYTES)?;
        Ok(text)
    }

    pub(super) fn value(&mut self, expr: &Expr, context: Context) -> Result<Value, Error> {
        self.spend(1)?;
        match expr {
            Expr::Number(number) => Ok(Value::Number(*number)),
            Expr::Literal(text) => Ok(Value::Text(self.made(text.clone())?)),
            Expr::Negate(expr) => Ok(Value::Number(-self.number(expr, context)?)),
            Expr::Call(function, arguments) => functions::call(self, *function, arguments, context),
            Expr::Path(from, steps) => Ok(Value::Nodes(self.path(from, steps, context)?)),
            Expr::Binary(operator, left, right) => self.binary(*operator, left, right, context),
        }
    }

    pub(super) fn number(&mut self, expr: &Expr, context: Context) -> Result<f64, Error> {
        let value = self.value(expr, context)?;
        self.number_of(&value)
    }

    pub(super) fn number_of(&mut self, value: &Value) -> Result<f64, Error> {
        Ok(match value {
            Value::Number(number) => *number,
            Value::Boolean(value) => f64::from(u8::from(*value)),
            Value::Text(text) => to_number(text),
            Value::Nodes(_) => to_number(&self.text_of(value)?),
        })
    }

    pub(super) fn text(&mut self, expr: &Expr, context: Context) -> Result<String, Error> {
        match self.value(expr, context)? {
            Value::Text(text) => Ok(text),
            value => self.text_of(&value),
        }
    }

    /// XPath 1.0 §4.2, `string`.
    fn text_of(&mut self, value: &Value) -> Result<String, Error> {
        let text = match value {
            Value::Nodes(nodes) => match nodes.first() {
                Some(item) => return self.item_text(*item),
                None => String::new(),
            },
            Value::Boolean(value) => value.to_string(),
            Value::Number(number) => to_text(*number),
            Value::Text(text) => text.clone(),
        };
        self.made(text)
    }

    pub(super) fn item_text(&mut self, item: Item) -> Result<String, Error> {
        // What is looked at to find the text.
        if !item.is_attribute() {
            self.spend(self.tree.end(item.node()).saturating_sub(item.node) as usize)?;
        }
        self.made(item.text(self.tree))
    }

    pub(super) fn nodes(&mut self, expr: &Expr, context: Context) -> Result<Vec<Item>, Error> {
        match self.value(expr, context)? {
            Value::Nodes(nodes) => Ok(nodes),
            // The parser lets only sets of nodes through.
            _ => Ok(Vec::new()),
        }
    }

    fn binary(
        &mut self,
        operator: Operator,
        left: &Expr,
        right: &Expr,
        context: Context,
    ) -> Result<Value, Error> {
        Ok(match operator {
            Operator::Or | Operator::And => {
                let first = self.value(left, context)?.to_boolean();
                let decided = first == (operator == Operator::Or);
                Value::Boolean(if decided {
                    first
                } else {
                    self.value(right, context)?.to_boolean()
                })
            }
            Operator::Union => {
                let mut nodes = self.nodes(left, context)?;
                nodes.extend(self.nodes(right, context)?);
                self.in_order(&mut nodes)?;
                Value::Nodes(nodes)
            }
            Operator::Plus
            | Operator::Minus
            | Operator::Times
            | Operator::Divide
            | Operator::Modulo => {
                let (left, right) = (self.number(left, context)?, self.number(right, context)?);
                Value::Number(match operator {
                    Operator::Plus => left + right,
                    Operator::Minus => left - right,
                    Operator::Times => left * right,
                    Operator::Divide => left / right,
                    _ => left % right,
                })
            }
            _ => {
                let (left, right) = (self.value(left, context)?, self.value(right, context)?);
                Value::Boolean(self.compare(operator, &left, &right)?)
            }
        })
    }

    /// XPath 1.0 §3.4.
    fn compare(&mut self, operator: Operator, left: &Value, right: &Value) -> Result<bool, Error> {
        match (left, right) {
            (Value::Nodes(nodes), Value::Boolean(_)) => {
                self.compare(operator, &Value::Boolean(!nodes.is_empty()), right)
            }
            (Value::Boolean(_), Value::Nodes(nodes)) => {
                self.compare(operator, left, &Value::Boolean(!nodes.is_empty()))
            }
            (Value::Nodes(nodes), other) => {
                for item in nodes {
                    let text = Value::Text(self.item_text(*item)?);
                    if self.compare(operator, &text, other)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            (_, Value::Nodes(nodes)) => {
                for item in nodes {
                    let text = Value::Text(self.item_text(*item)?);
                    if self.compare(operator, left, &text)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            _ => self.compare_single(operator, left, right),
        }
    }

    fn compare_single(
        &mut self,
        operator: Operator,
        left: &Value,
        right: &Value,
    ) -> Result<bool, Error> {
        self.spend(1)?;
        let equality = matches!(operator, Operator::Equal | Operator::NotEqual);
        if equality {
            let equal = match (left, right) {
                (Value::Boolean(_), _) | (_, Value::Boolean(_)) => {
                    left.to_boolean() == right.to_boolean()
                }
                (Value::Text(left), Value::Text(right)) => {
                    self.spend(left.len().min(right.len()) / STEP_BYTES)?;
                    left == right
                }
                _ => self.number_of(left)? == self.number_of(right)?,
            };
            return Ok(equal == (operator == Operator::Equal));
        }
        let (left, right) = (self.number_of(left)?, self.number_of(right)?);
        Ok(match operator {
            Operator::Less => left < right,
            Operator::LessOrEqual => left <= right,
            Operator::Greater => left > right,
            _ => left >= right,
        })
    }

    fn in_order(&mut self, nodes: &mut Vec<Item>) -> Result<(), Error> {
        self.spend(nodes.len())?;
        nodes.sort_unstable();
        nodes.dedup();
        Ok(())
    }

    fn path(&mut self, from: &From, steps: &[Step], at: Context) -> Result<Vec<Item>, Error> {
        let mut nodes = match from {
            From::Document => vec![Item::of(NodeId::DOCUMENT)],
            From::Context => vec![at.item],
            From::Filtered(expr, predicates) => {
                let mut nodes = self.nodes(expr, at)?;
                for predicate in predicates {
                    nodes = self.filtered(nodes, predicate)?;
                }
                nodes
            }
        };
        for step in steps {
            let is_single = nodes.len() < 2;
            let mut found = Vec::new();
            for item in nodes {
                let mut taken = self.axis(item, step)?;
                for predicate in &step.predicates {
                    taken = self.filtered(taken, predicate)?;
                }
                found.extend(taken);
            }
            if !is_single || step.axis.is_reverse() {
                self.in_order(&mut found)?;
            }
            nodes = found;
        }
        Ok(nodes)
    }

    /// Those that a predicate lets through; positions are by the given order (XPath 1.0 §2.4).
    fn filtered(&mut self, nodes: Vec<Item>, predicate: &Expr) -> Result<Vec<Item>, Error> {
        let size = nodes.len();
        let mut kept = Vec::new();
        for (at, item) in nodes.into_iter().enumerate() {
            let position = at + 1;
            let passes = match self.value(predicate, Context { item, position, size })? {
                Value::Number(number) => number == position as f64,
                value => value.to_boolean(),
            };
            if passes {
                kept.push(item);
            }
        }
        Ok(kept)
    }

    /// What a step takes from one node, nearest first.
    fn axis(&mut self, item: Item, step: &Step) -> Result<Vec<Item>, Error> {
        let mut found = Vec::new();
        if step.axis == Axis::Attribute {
            if item.is_attribute() {
                return Ok(found);
            }
            let count = u32::try_from(self.tree.attributes(item.node()).len()).unwrap_or(0);
            for attribute in 1..=count {
                self.take(Item { node: item.node, attribute }, step, &mut found)?;
            }
            return Ok(found);
        }
        let end = self.tree.end(item.node());
        match step.axis {
            Axis::Itself => self.take(item, step, &mut found)?,
            Axis::Child if !item.is_attribute() => {
                self.siblings(item.node + 1, end, step, &mut found)?
            }
            Axis::Descendant | Axis::DescendantOrItself => {
                if step.axis == Axis::DescendantOrItself {
                    self.take(item, step, &mut found)?;
                }
                let end = if item.is_attribute() { 0 } else { end };
                for node in item.node + 1..end {
                    self.take(Item { node, attribute: 0 }, step, &mut found)?;
                }
            }
            Axis::Parent | Axis::Ancestor | Axis::AncestorOrItself => {
                self.upwards(item, step, &mut found)?;
            }
            Axis::FollowingSibling if !item.is_attribute() => {
                let parent_end = self.tree.parent(item.node()).map_or(0, |it| self.tree.end(it));
                self.siblings(end, parent_end, step, &mut found)?;
            }
            Axis::PrecedingSibling if !item.is_attribute() => {
                let first = self.tree.parent(item.node()).map_or(item.node, |it| it.0 + 1);
                self.siblings(first, item.node, step, &mut found)?;
                found.reverse();
            }
            Axis::Following => {
                let first = if item.is_attribute() { item.node + 1 } else { end };
                let all = u32::try_from(self.tree.len()).unwrap_or(u32::MAX);
                for node in first..all {
                    self.take(Item { node, attribute: 0 }, step, &mut found)?;
                }
            }
            Axis::Preceding => {
                for node in (1..item.node).rev() {
                    // Ancestors are not before it.
                    if self.tree.end(NodeId(node)) <= item.node {
                        self.take(Item { node, attribute: 0 }, step, &mut found)?;
                    }
                }
            }
            _ => {}
        }
        Ok(found)
    }

    /// Nodes from one on, past what each contains.
    fn siblings(
        &mut self,
        first: u32,
        end: u32,
        step: &Step,
        found: &mut Vec<Item>,
    ) -> Result<(), Error> {
        let mut node = first;
        while node < end {
            self.take(Item { node, attribute: 0 }, step, found)?;
            node = self.tree.end(NodeId(node)).max(node + 1);
        }
        Ok(())
    }

    fn upwards(&mut self, item: Item, step: &Step, found: &mut Vec<Item>) -> Result<(), Error> {
        if step.axis == Axis::AncestorOrItself {
            self.take(item, step, found)?;
        }
        // The parent of an attribute is its element (XPath 1.0 §5.3).
        let mut next =
            if item.is_attribute() { Some(item.node()) } else { self.tree.parent(item.node()) };
        while let Some(node) = next {
            self.take(Item::of(node), step, found)?;
            next = self.tree.parent(node).filter(|_| step.axis != Axis::Parent);
        }
        Ok(())
    }

    fn take(&mut self, item: Item, step: &Step, found: &mut Vec<Item>) -> Result<(), Error> {
        self.spend(1)?;
        let is_element = matches!(self.tree.kind(item.node()), Kind::Element { .. });
        let kind = (!item.is_attribute()).then(|| self.tree.kind(item.node()));
        let passes = match (&step.test, kind) {
            (Test::Node, _) => true,
            (Test::Text, Some(Kind::Text(_))) | (Test::Comment, Some(Kind::Comment(_))) => true,
            (Test::Pi(wanted), Some(Kind::Pi { target, .. })) => {
                wanted.as_ref().is_none_or(|wanted| wanted == target)
            }
            (Test::Name { uri, local }, _) => {
                // The principal type of nodes (XPath 1.0 §2.3).
                let principal = item.is_attribute() == (step.axis == Axis::Attribute);
                let named = item.is_attribute() || is_element;
                principal
                    && named
                    && item.name(self.tree).is_some_and(|(of, name, _)| {
                        uri.as_ref().is_none_or(|uri| uri == of)
                            && local.as_ref().is_none_or(|local| local == name)
                    })
            }
            _ => false,
        };
        if passes {
            found.push(item);
        }
        Ok(())
    }
}
