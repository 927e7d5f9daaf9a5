//! Filters of content by XPath 1.0: everything of the language but variables, the namespace axis,
//! `id` and `lang`, within a budget of steps, so that a filter ends.

mod eval;
mod functions;
mod lexer;
mod parser;
#[cfg(test)]
mod tests;
mod value;

use std::fmt;

use super::tree::Tree;
use parser::Expr;

/// Longest expression in bytes.
pub(super) const MAX_EXPRESSION_BYTES: usize = 4096;
/// Deepest nesting of an expression: it is the depth of our own calls.
pub(super) const MAX_DEPTH: usize = 32;
/// Most operators of an expression.
pub(super) const MAX_OPERATORS: usize = 128;
/// Steps of one evaluation: nodes that are visited and, by sixteens, bytes of strings that are
/// made.
pub(super) const MAX_STEPS: u64 = 1 << 20;

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The text is none of the language, or of what is left out of it.
    Syntax {
        /// Where, in bytes.
        offset: usize,
        /// What was found or is missing.
        what: String,
    },
    /// The evaluation was ended after 1,048,576 steps.
    Budget,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { offset, what } => write!(f, "XPath at byte {offset}: {what}"),
            Self::Budget => write!(f, "an XPath filter took over {MAX_STEPS} steps"),
        }
    }
}

impl std::error::Error for Error {}

/// A compiled expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    root: Expr,
}

impl Filter {
    /// Compiles an expression; `resolve` has the namespaces of prefixes where it stood.
    ///
    /// # Errors
    /// [`Error::Syntax`].
    pub fn compile(text: &str, resolve: &dyn Fn(&str) -> Option<String>) -> Result<Self, Error> {
        if text.len() > MAX_EXPRESSION_BYTES {
            let what = format!("an expression has at most {MAX_EXPRESSION_BYTES} bytes");
            return Err(Error::Syntax { offset: MAX_EXPRESSION_BYTES, what });
        }
        parser::parse(text, resolve).map(|root| Self { root })
    }

    /// Whether a message passes: the expression as a boolean (XPath 1.0 §4.3), with the root
    /// element as context node, position and size 1.
    ///
    /// # Errors
    /// [`Error::Budget`].
    pub fn is_match(&self, tree: &Tree<'_>) -> Result<bool, Error> {
        eval::evaluate(&self.root, tree)
    }
}
