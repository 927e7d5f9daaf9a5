//! Tokens to a tree (XPath 1.0 §2, §3).

use super::functions::Function;
use super::lexer::{Token, tokens};
use super::{Error, MAX_DEPTH, MAX_OPERATORS};

/// An operator with two operands, or a union.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Plus,
    Minus,
    Times,
    Divide,
    Modulo,
    Union,
}

/// Where a step goes (XPath 1.0 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Child,
    Descendant,
    DescendantOrItself,
    Itself,
    Parent,
    Ancestor,
    AncestorOrItself,
    Attribute,
    FollowingSibling,
    PrecedingSibling,
    Following,
    Preceding,
}

impl Axis {
    /// Whether nearer nodes come later in the document (XPath 1.0 §2.4).
    pub(super) fn is_reverse(self) -> bool {
        matches!(
            self,
            Self::Parent
                | Self::Ancestor
                | Self::AncestorOrItself
                | Self::PrecedingSibling
                | Self::Preceding
        )
    }
}

/// Which nodes a step takes (XPath 1.0 §2.3).
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    /// `node()`
    Node,
    /// `text()`
    Text,
    /// `comment()`
    Comment,
    /// `processing-instruction()`, with a target or any
    Pi(Option<String>),
    /// A name: `None` for the namespace or the local part is any.
    Name { uri: Option<String>, local: Option<String> },
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) axis: Axis,
    pub(super) test: Test,
    pub(super) predicates: Vec<Expr>,
}

/// From where a path goes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum From {
    Document,
    Context,
    /// What an expression gives, of which those stay that pass the predicates.
    Filtered(Box<Expr>, Vec<Expr>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Number(f64),
    Literal(String),
    Negate(Box<Expr>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    Call(Function, Vec<Expr>),
    Path(From, Vec<Step>),
}

/// Operators by how tightly they bind, loosest first (XPath 1.0 §3.5).
const LEVELS: [&[(&str, Operator)]; 6] = [
    &[("or", Operator::Or)],
    &[("and", Operator::And)],
    &[("=", Operator::Equal), ("!=", Operator::NotEqual)],
    &[
        ("<", Operator::Less),
        ("<=", Operator::LessOrEqual),
        (">", Operator::Greater),
        (">=", Operator::GreaterOrEqual),
    ],
    &[("+", Operator::Plus), ("-", Operator::Minus)],
    &[("*", Operator::Times), ("div", Operator::Divide), ("mod", Operator::Modulo)],
];

const AXES: [(&str, Axis); 12] = [
    ("child", Axis::Child),
    ("descendant", Axis::Descendant),
    ("descendant-or-self", Axis::DescendantOrItself),
    ("self", Axis::Itself),
    ("parent", Axis::Parent),
    ("ancestor", Axis::Ancestor),
    ("ancestor-or-self", Axis::AncestorOrItself),
    ("attribute", Axis::Attribute),
    ("following-sibling", Axis::FollowingSibling),
    ("preceding-sibling", Axis::PrecedingSibling),
    ("following", Axis::Following),
    ("preceding", Axis::Preceding),
];

struct Parser<'a> {
    tokens: Vec<(Token, usize)>,
    at: usize,
    depth: usize,
    operators: usize,
    resolve: &'a dyn Fn(&str) -> Option<String>,
}

/// Reads a whole expression.
pub(super) fn parse(text: &str, resolve: &dyn Fn(&str) -> Option<String>) -> Result<Expr, Error> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0, operators: 0, resolve };
    let expr = parser.expression()?;
    match parser.peek() {
        Token::End => Ok(expr),
        _ => Err(parser.error("an operator or the end is missing")),
    }
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).map_or(&Token::End, |(token, _)| token)
    }

    fn error(&self, what: impl Into<String>) -> Error {
        let offset = self.tokens.get(self.at).or(self.tokens.last()).map_or(0, |(_, at)| *at);
        Error::Syntax { offset, what: what.into() }
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.peek(), Token::Symbol(found) if *found == symbol)
    }

    fn eat(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        self.at += usize::from(found);
        found
    }

    fn need(&mut self, symbol: &str) -> Result<(), Error> {
        if self.eat(symbol) { Ok(()) } else { Err(self.error(format!("'{symbol}' is missing"))) }
    }

    /// Takes an operator. The tree leans to the left: their number is the depth of what walks it.
    fn operator(&mut self) -> Result<(), Error> {
        self.at += 1;
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            return Err(self.error(format!("an expression has {MAX_OPERATORS} operators at most")));
        }
        Ok(())
    }

    fn expression(&mut self) -> Result<Expr, Error> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(format!("an expression nests {MAX_DEPTH} deep at most")));
        }
        let expr = self.binary(0);
        self.depth -= 1;
        expr
    }

    /// Operators of a level and those that bind tighter, all of them from left to right.
    fn binary(&mut self, level: usize) -> Result<Expr, Error> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some((_, operator)) = operators.iter().find(|(symbol, _)| self.is(symbol)) {
            self.operator()?;
            let right = self.binary(level + 1)?;
            left = Expr::Binary(*operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, Error> {
        let mut signs = 0;
        while self.is("-") {
            self.operator()?;
            signs += 1;
        }
        let mut expr = self.union()?;
        for _ in 0..signs {
            expr = Expr::Negate(Box::new(expr));
        }
        Ok(expr)
    }

    fn union(&mut self) -> Result<Expr, Error> {
        let mut left = self.path()?;
        while self.is("|") {
            self.operator()?;
            let right = self.path()?;
            if !left.is_nodes() || !right.is_nodes() {
                return Err(self.error("only sets of nodes are united"));
            }
            left = Expr::Binary(Operator::Union, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn path(&mut self) -> Result<Expr, Error> {
        let mut steps = Vec::new();
        let from = match self.peek() {
            Token::Symbol("/") => {
                self.at += 1;
                if self.begins_step() {
                    steps.push(self.step()?);
                }
                From::Document
            }
            Token::Symbol("//") => {
                self.at += 1;
                steps.push(Step::any_depth());
                steps.push(self.step()?);
                From::Document
            }
            _ if self.begins_step() => {
                steps.push(self.step()?);
                From::Context
            }
            _ => {
                let primary = self.primary()?;
                let predicates = self.predicates()?;
                let goes_on = self.is("/") || self.is("//");
                if predicates.is_empty() && !goes_on {
                    return Ok(primary);
                }
                if !primary.is_nodes() {
                    return Err(self.error("only a set of nodes has predicates and steps"));
                }
                From::Filtered(Box::new(primary), predicates)
            }
        };
        if matches!(from, From::Document) && steps.is_empty() {
            return Ok(Expr::Path(from, steps));
        }
        loop {
            if self.eat("//") {
                steps.push(Step::any_depth());
            } else if !self.eat("/") {
                return Ok(Expr::Path(from, steps));
            }
            steps.push(self.step()?);
        }
    }

    /// Whether a step of a path begins here, and not a call or a literal.
    fn begins_step(&self) -> bool {
        match self.peek() {
            Token::Name { .. } | Token::Axis(_) => true,
            Token::Symbol(symbol) => matches!(*symbol, "." | ".." | "@"),
            Token::Call(name) => is_node_type(name),
            _ => false,
        }
    }

    fn step(&mut self) -> Result<Step, Error> {
        if self.eat(".") {
            return Ok(Step { axis: Axis::Itself, test: Test::Node, predicates: Vec::new() });
        }
        if self.eat("..") {
            return Ok(Step { axis: Axis::Parent, test: Test::Node, predicates: Vec::new() });
        }
        let axis = if self.eat("@") {
            Axis::Attribute
        } else if let Token::Axis(name) = self.peek() {
            let found = AXES.iter().find(|(known, _)| known == name).map(|(_, axis)| *axis);
            let Some(axis) = found else {
                return Err(self.error(format!("the axis '{name}' is not supported")));
            };
            self.at += 1;
            axis
        } else {
            Axis::Child
        };
        let test = self.test()?;
        Ok(Step { axis, test, predicates: self.predicates()? })
    }

    fn test(&mut self) -> Result<Test, Error> {
        let token = self.peek().clone();
        match token {
            Token::Name { prefix, local } => {
                let uri = match prefix {
                    None if local == "*" => None,
                    // The default namespace is not used (XPath 1.0 §2.3).
                    None => Some(String::new()),
                    Some(prefix) => match (self.resolve)(&prefix) {
                        Some(uri) => Some(uri),
                        None => {
                            return Err(
                                self.error(format!("the prefix '{prefix}' is not declared"))
                            );
                        }
                    },
                };
                self.at += 1;
                Ok(Test::Name { uri, local: Some(local).filter(|local| local != "*") })
            }
            Token::Call(name) if is_node_type(&name) => {
                self.at += 1;
                self.need("(")?;
                let mut target = None;
                if name == "processing-instruction"
                    && let Token::Literal(text) = self.peek()
                {
                    target = Some(text.clone());
                    self.at += 1;
                }
                self.need(")")?;
                Ok(match &*name {
                    "text" => Test::Text,
                    "comment" => Test::Comment,
                    "node" => Test::Node,
                    _ => Test::Pi(target),
                })
            }
            _ => Err(self.error("a step is missing")),
        }
    }

    fn predicates(&mut self) -> Result<Vec<Expr>, Error> {
        let mut predicates = Vec::new();
        while self.eat("[") {
            predicates.push(self.expression()?);
            self.need("]")?;
        }
        Ok(predicates)
    }

    fn primary(&mut self) -> Result<Expr, Error> {
        let token = self.peek().clone();
        match token {
            Token::Number(number) => {
                self.at += 1;
                Ok(Expr::Number(number))
            }
            Token::Literal(text) => {
                self.at += 1;
                Ok(Expr::Literal(text))
            }
            Token::Symbol("(") => {
                self.at += 1;
                let expr = self.expression()?;
                self.need(")")?;
                Ok(expr)
            }
            Token::Call(name) => {
                let Some(function) = Function::of_name(&name) else {
                    return Err(self.error(format!("the function '{name}' is not supported")));
                };
                self.at += 1;
                self.need("(")?;
                let mut arguments = Vec::new();
                if !self.is(")") {
                    arguments.push(self.expression()?);
                    while self.eat(",") {
                        arguments.push(self.expression()?);
                    }
                }
                self.need(")")?;
                let (least, most) = function.arity();
                if !(least..=most).contains(&arguments.len()) {
                    return Err(self.error(format!("'{name}' has {least} to {most} arguments")));
                }
                if function.takes_nodes() && arguments.first().is_some_and(|it| !it.is_nodes()) {
                    return Err(self.error(format!("'{name}' takes a set of nodes")));
                }
                Ok(Expr::Call(function, arguments))
            }
            _ => Err(self.error("an expression is missing")),
        }
    }
}

fn is_node_type(name: &str) -> bool {
    matches!(name, "text" | "comment" | "node" | "processing-instruction")
}

impl Step {
    /// What `//` stands for (XPath 1.0 §2.5).
    fn any_depth() -> Self {
        Self { axis: Axis::DescendantOrItself, test: Test::Node, predicates: Vec::new() }
    }
}

impl Expr {
    /// Whether it gives a set of nodes: no function here does.
    pub(super) fn is_nodes(&self) -> bool {
        matches!(self, Self::Path(..) | Self::Binary(Operator::Union, ..))
    }
}
