//! Tokens (XPath 1.0 §3.7).

use codec::xml::is_nc_name;

use super::Error;

/// A token; names are told from operators by what stands before them.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Number(f64),
    Literal(String),
    /// A name test, `prefix:*` and `*` too.
    Name {
        prefix: Option<String>,
        local: String,
    },
    /// A function or node type: `(` follows.
    Call(String),
    /// An axis: `::` follows, which is part of the token.
    Axis(String),
    /// One of the operators and marks.
    Symbol(&'static str),
    End,
}

/// Longer ones first.
const SYMBOLS: [&str; 20] = [
    "//", "..", "!=", "<=", ">=", "::", "/", ".", "=", "<", ">", "(", ")", "[", "]", "@", ",", "|",
    "+", "-",
];
const OPERATOR_NAMES: [&str; 4] = ["and", "or", "mod", "div"];

fn syntax(offset: usize, what: impl Into<String>) -> Error {
    Error::Syntax { offset, what: what.into() }
}

/// All tokens with their offsets; the last is [`Token::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, usize)>, Error> {
    let mut tokens: Vec<(Token, usize)> = Vec::new();
    let mut at = 0;
    loop {
        let rest = text.get(at..).unwrap_or("");
        let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        at += rest.len() - trimmed.len();
        let Some(first) = trimmed.chars().next() else {
            tokens.push((Token::End, at));
            return Ok(tokens);
        };
        let is_operand = tokens.last().is_some_and(|(token, _)| ends_operand(token));
        let (token, used) = match first {
            '\'' | '"' => literal(trimmed, first, at)?,
            '0'..='9' => number(trimmed),
            '.' if trimmed.as_bytes().get(1).is_some_and(u8::is_ascii_digit) => number(trimmed),
            '$' => return Err(syntax(at, "variables are not bound")),
            '*' if is_operand => (Token::Symbol("*"), 1),
            '*' => (Token::Name { prefix: None, local: "*".to_owned() }, 1),
            _ => match SYMBOLS.iter().find(|symbol| trimmed.starts_with(**symbol)) {
                Some(symbol) => (Token::Symbol(symbol), symbol.len()),
                None => name(trimmed, at, is_operand)?,
            },
        };
        tokens.push((token, at));
        at += used;
    }
}

/// Whether an operator follows such a token (XPath 1.0 §3.7).
fn ends_operand(token: &Token) -> bool {
    match token {
        Token::Number(_) | Token::Literal(_) | Token::Name { .. } => true,
        Token::Symbol(symbol) => matches!(*symbol, ")" | "]" | "." | ".."),
        Token::Call(_) | Token::Axis(_) | Token::End => false,
    }
}

fn literal(text: &str, quote: char, at: usize) -> Result<(Token, usize), Error> {
    let inner = text.get(1..).unwrap_or("");
    let end = inner.find(quote).ok_or_else(|| syntax(at, "a literal without its end"))?;
    Ok((Token::Literal(inner.get(..end).unwrap_or("").to_owned()), end + 2))
}

fn number(text: &str) -> (Token, usize) {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut end = digits(text);
    if text.as_bytes().get(end) == Some(&b'.') {
        end += 1 + digits(text.get(end + 1..).unwrap_or(""));
    }
    (Token::Number(text.get(..end).and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)), end)
}

/// How long the name is that a text begins with; 0 if with none.
fn name_end(text: &str) -> usize {
    let end = text.find(|char: char| {
        char.is_ascii() && !char.is_ascii_alphanumeric() && !matches!(char, '_' | '-' | '.')
    });
    let end = end.unwrap_or(text.len());
    if text.get(..end).is_some_and(is_nc_name) { end } else { 0 }
}

fn name(text: &str, at: usize, is_operand: bool) -> Result<(Token, usize), Error> {
    let end = name_end(text);
    let first = text.get(..end).unwrap_or("");
    if end == 0 {
        let found = text.chars().next().unwrap_or(' ');
        return Err(syntax(at, format!("'{found}' begins nothing")));
    }
    if is_operand {
        return match OPERATOR_NAMES.iter().find(|operator| **operator == first) {
            Some(operator) => Ok((Token::Symbol(operator), end)),
            None => Err(syntax(at, "an operator is missing")),
        };
    }
    let rest = text.get(end..).unwrap_or("");
    let spaced = rest.trim_start_matches([' ', '\t', '\r', '\n']);
    if spaced.starts_with("::") {
        return Ok((Token::Axis(first.to_owned()), text.len() - spaced.len() + 2));
    }
    let (prefix, local, end) = match rest.strip_prefix(':') {
        Some(local) if local.starts_with('*') => (Some(first.to_owned()), "*", end + 2),
        Some(local) => {
            let len = name_end(local);
            if len == 0 {
                return Err(syntax(at, "a prefix without a name"));
            }
            (Some(first.to_owned()), local.get(..len).unwrap_or(""), end + 1 + len)
        }
        None => (None, first, end),
    };
    let behind = text.get(end..).unwrap_or("");
    let calls = behind.trim_start_matches([' ', '\t', '\r', '\n']).starts_with('(');
    match prefix {
        None if calls => Ok((Token::Call(local.to_owned()), end)),
        Some(_) if calls => Err(syntax(at, "functions have no prefix")),
        prefix => Ok((Token::Name { prefix, local: local.to_owned() }, end)),
    }
}
