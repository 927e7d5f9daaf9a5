//! Selectors from text.

use super::{Arithmetic, Comparison, MAX_NESTED, MAX_SELECTOR_BYTES, Operand, Piece, Selector};

/// A word of a selector.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A name or a keyword.
    Word(String),
    Text(String),
    Number(Operand),
    Sign(&'static str),
}

/// Longer ones first.
const SIGNS: [&str; 13] = ["<>", "<=", ">=", "=", "<", ">", "(", ")", ",", "+", "-", "*", "/"];
/// Words that are no names.
const KEYWORDS: [&str; 11] =
    ["AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "ESCAPE", "IS", "NULL", "TRUE", "FALSE"];

struct Parser {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    nested: usize,
}

type Parsed = Result<Selector, &'static str>;

/// Reads a selector.
///
/// # Errors
/// What is wrong, as a sentence.
pub(in crate::amqp) fn parse(text: &str) -> Parsed {
    if text.len() > MAX_SELECTOR_BYTES {
        return Err("a selector has at most 2,048 bytes");
    }
    let tokens = tokens(text)?.into_iter().peekable();
    let mut parser = Parser { tokens, nested: 0 };
    let selector = parser.any_of()?;
    match parser.tokens.next() {
        None => Ok(selector),
        Some(_) => Err("a selector goes on where it should end"),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, &'static str> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, after) = if first == '\'' {
            quoted(rest.get(1..).unwrap_or_default())?
        } else if first.is_ascii_digit() || is_fraction(rest) {
            number(rest)?
        } else if is_name(first) {
            let len = rest.find(|it: char| !is_name(it) && !it.is_ascii_digit() && it != '.');
            let (word, after) = rest.split_at(len.unwrap_or(rest.len()));
            (Token::Word(word.to_owned()), after)
        } else {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
            let sign = sign.ok_or("a selector has a character that means nothing in it")?;
            (Token::Sign(sign), rest.get(sign.len()..).unwrap_or_default())
        };
        tokens.push(token);
        rest = after.trim_start();
    }
    Ok(tokens)
}

fn is_name(first: char) -> bool {
    first.is_alphabetic() || matches!(first, '_' | '$')
}

fn is_fraction(rest: &str) -> bool {
    let mut chars = rest.chars();
    chars.next() == Some('.') && chars.next().is_some_and(|it| it.is_ascii_digit())
}

/// A text up to its quote; two quotes are one of it.
fn quoted(rest: &str) -> Result<(Token, &str), &'static str> {
    let mut text = String::new();
    let mut rest = rest;
    loop {
        let (piece, after) = rest.split_once('\'').ok_or("a text of a selector has no end")?;
        text.push_str(piece);
        match after.strip_prefix('\'') {
            Some(after) => {
                text.push('\'');
                rest = after;
            }
            None => return Ok((Token::Text(text), after)),
        }
    }
}

fn number(rest: &str) -> Result<(Token, &str), &'static str> {
    let what = "a number of a selector is none";
    let mut len = 0;
    let mut last = ' ';
    for it in rest.chars() {
        let is_sign = matches!(it, '+' | '-') && matches!(last, 'e' | 'E');
        if !it.is_ascii_alphanumeric() && it != '.' && !is_sign {
            break;
        }
        len += it.len_utf8();
        last = it;
    }
    let (text, after) = rest.split_at_checked(len).ok_or(what)?;
    let lower = text.to_ascii_lowercase();
    let operand = if let Some(hex) = lower.strip_prefix("0x") {
        Operand::Integer(i64::from_str_radix(hex.trim_end_matches('l'), 16).map_err(|_| what)?)
    } else if lower.contains(['.', 'e']) || lower.ends_with(['f', 'd']) {
        let digits = lower.trim_end_matches(['f', 'd']);
        Operand::Real(digits.parse().map_err(|_| what)?)
    } else {
        Operand::Integer(lower.trim_end_matches('l').parse().map_err(|_| what)?)
    };
    Ok((Token::Number(operand), after))
}

impl Parser {
    fn keyword(&mut self, keyword: &str) -> bool {
        let is_it = |token: &Token| match token {
            Token::Word(word) => word.eq_ignore_ascii_case(keyword),
            _ => false,
        };
        self.tokens.next_if(is_it).is_some()
    }

    fn sign(&mut self, sign: &str) -> bool {
        self.tokens.next_if(|token| matches!(token, Token::Sign(it) if *it == sign)).is_some()
    }

    /// One level deeper, as long as there are not too many.
    fn deeper(&mut self, parse: impl FnOnce(&mut Self) -> Parsed) -> Parsed {
        if self.nested >= MAX_NESTED {
            return Err("a selector is nested too deeply");
        }
        self.nested += 1;
        let parsed = parse(self);
        self.nested -= 1;
        parsed
    }

    fn any_of(&mut self) -> Parsed {
        let mut left = self.all_of()?;
        while self.keyword("OR") {
            left = Selector::Or(Box::new((left, self.all_of()?)));
        }
        Ok(left)
    }

    fn all_of(&mut self) -> Parsed {
        let mut left = self.not()?;
        while self.keyword("AND") {
            left = Selector::And(Box::new((left, self.not()?)));
        }
        Ok(left)
    }

    fn not(&mut self) -> Parsed {
        if self.keyword("NOT") {
            let inner = self.deeper(Self::not)?;
            return Ok(Selector::Not(Box::new(inner)));
        }
        self.predicate()
    }

    fn predicate(&mut self) -> Parsed {
        let left = self.sum()?;
        if self.keyword("IS") {
            let is_not = self.keyword("NOT");
            if !self.keyword("NULL") {
                return Err("IS of a selector is followed by NULL or NOT NULL");
            }
            return Ok(unless(is_not, Selector::IsNull(Box::new(left))));
        }
        let is_not = self.keyword("NOT");
        if self.keyword("BETWEEN") {
            let low = self.sum()?;
            if !self.keyword("AND") {
                return Err("BETWEEN of a selector has no AND");
            }
            let between = Selector::Between(Box::new((left, low, self.sum()?)));
            return Ok(unless(is_not, between));
        }
        if self.keyword("IN") {
            let texts = self.texts()?;
            return Ok(unless(is_not, Selector::In(Box::new(left), texts)));
        }
        if self.keyword("LIKE") {
            let pattern = self.pattern()?;
            return Ok(unless(is_not, Selector::Like(Box::new(left), pattern)));
        }
        if is_not {
            return Err("NOT of a selector is followed by BETWEEN, IN or LIKE here");
        }
        let comparisons = [
            ("=", Comparison::Equal),
            ("<>", Comparison::Different),
            ("<", Comparison::Less),
            ("<=", Comparison::LessOrEqual),
            (">", Comparison::Greater),
            (">=", Comparison::GreaterOrEqual),
        ];
        match comparisons.into_iter().find(|(sign, _)| self.sign(sign)) {
            Some((_, comparison)) => {
                Ok(Selector::Compare(comparison, Box::new((left, self.sum()?))))
            }
            None => Ok(left),
        }
    }

    fn sum(&mut self) -> Parsed {
        let mut left = self.product()?;
        loop {
            let kind = if self.sign("+") {
                Arithmetic::Plus
            } else if self.sign("-") {
                Arithmetic::Minus
            } else {
                return Ok(left);
            };
            left = Selector::Compute(kind, Box::new((left, self.product()?)));
        }
    }

    fn product(&mut self) -> Parsed {
        let mut left = self.signed()?;
        loop {
            let kind = if self.sign("*") {
                Arithmetic::Times
            } else if self.sign("/") {
                Arithmetic::Over
            } else {
                return Ok(left);
            };
            left = Selector::Compute(kind, Box::new((left, self.signed()?)));
        }
    }

    fn signed(&mut self) -> Parsed {
        if self.sign("-") {
            return Ok(Selector::Negate(Box::new(self.deeper(Self::signed)?)));
        }
        if self.sign("+") {
            return self.deeper(Self::signed);
        }
        if self.sign("(") {
            let inner = self.deeper(Self::any_of)?;
            return if self.sign(")") { Ok(inner) } else { Err("a ( of a selector has no )") };
        }
        match self.tokens.next() {
            Some(Token::Text(text)) => Ok(Selector::Literal(Operand::Text(text))),
            Some(Token::Number(number)) => Ok(Selector::Literal(number)),
            Some(Token::Word(word)) => match word.to_ascii_uppercase().as_str() {
                "TRUE" => Ok(Selector::Literal(Operand::Bool(true))),
                "FALSE" => Ok(Selector::Literal(Operand::Bool(false))),
                "NULL" => Ok(Selector::Literal(Operand::Null)),
                upper if KEYWORDS.contains(&upper) => {
                    Err("a selector has a keyword where a value has to be")
                }
                _ => Ok(Selector::Field(word)),
            },
            Some(Token::Sign(_)) | None => Err("a selector lacks a value"),
        }
    }

    fn text(&mut self) -> Result<String, &'static str> {
        match self.tokens.next() {
            Some(Token::Text(text)) => Ok(text),
            _ => Err("a selector lacks a text"),
        }
    }

    fn texts(&mut self) -> Result<Vec<String>, &'static str> {
        if !self.sign("(") {
            return Err("IN of a selector is followed by (");
        }
        let mut texts = vec![self.text()?];
        while self.sign(",") {
            texts.push(self.text()?);
        }
        if self.sign(")") { Ok(texts) } else { Err("a ( of a selector has no )") }
    }

    fn pattern(&mut self) -> Result<Vec<Piece>, &'static str> {
        let text = self.text()?;
        let what = "ESCAPE of a selector is one character, in front of %, _ or itself";
        let escape = if self.keyword("ESCAPE") {
            let text = self.text()?;
            let mut chars = text.chars();
            match (chars.next(), chars.next()) {
                (Some(escape), None) => Some(escape),
                _ => return Err(what),
            }
        } else {
            None
        };
        let mut pieces = Vec::new();
        let mut chars = text.chars();
        while let Some(it) = chars.next() {
            pieces.push(match it {
                it if Some(it) == escape => Piece::Char(chars.next().ok_or(what)?),
                '%' => Piece::Any,
                '_' => Piece::One,
                it => Piece::Char(it),
            });
        }
        Ok(pieces)
    }
}

fn unless(is_not: bool, selector: Selector) -> Selector {
    if is_not { Selector::Not(Box::new(selector)) } else { selector }
}
