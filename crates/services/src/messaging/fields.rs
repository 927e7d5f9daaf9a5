//! What a document consists of: a table of fields that every form reads and writes by.

use std::time::Duration;

use super::refusal::{Reason, Refusal, shown};
use super::time;

/// Longest name of a node, a group or a message, in bytes.
pub(crate) const MAX_TOKEN_BYTES: usize = 64;
/// Longest free text, in bytes of UTF-8.
pub(crate) const MAX_TEXT_BYTES: usize = 32 * 1024;
/// Most extensions of a message.
pub(crate) const MAX_EXTENSIONS: usize = 32;
/// Longest names and values of all extensions together, in bytes.
pub(crate) const MAX_EXTENSIONS_BYTES: usize = 32 * 1024;

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name: letters, digits and `._~-`, the first a letter or a digit.
    Token,
    /// Free text.
    Text,
    /// One of some words; in binary its number, from 0.
    Word(&'static [&'static str]),
    /// A number from 1 up to a bound.
    Number(u64),
    /// A moment, to the millisecond.
    Time,
    /// At most so many names.
    Tokens(usize),
    /// Names with values.
    Pairs,
    /// So many bytes; as text in hexadecimal digits.
    Bytes(usize),
}

/// One field.
#[derive(Debug)]
pub(crate) struct Field {
    /// Its name in JSON.
    pub(crate) name: &'static str,
    /// Its element in XML; one for each member of a list.
    pub(crate) element: &'static str,
    /// Its key in CBOR.
    pub(crate) key: u64,
    /// What it holds.
    pub(crate) kind: Kind,
    /// Whether it stands in each document between nodes.
    pub(crate) required: bool,
}

/// A kind of document.
#[derive(Debug)]
pub(crate) struct Layout {
    /// What it is called, in XML its root element.
    pub(crate) name: &'static str,
    /// Its fields in their order.
    pub(crate) fields: &'static [Field],
}

/// What a field says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Of [`Kind::Token`] and [`Kind::Text`].
    Text(String),
    /// Of [`Kind::Word`]: which one.
    Word(usize),
    /// Of [`Kind::Number`].
    Number(u64),
    /// Of [`Kind::Time`], since 1970.
    Time(Duration),
    /// Of [`Kind::Tokens`].
    List(Vec<String>),
    /// Of [`Kind::Pairs`].
    Pairs(Vec<(String, String)>),
    /// Of [`Kind::Bytes`].
    Bytes(Vec<u8>),
}

/// A document in no form yet: its fields, each checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    values: Vec<Option<Value>>,
}

impl Layout {
    /// A field by its name.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// The names of all fields, for who has given another.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.fields.iter().map(|field| field.name).collect();
        names.join(", ")
    }
}

impl Record {
    /// A document without any field.
    pub(crate) fn new(layout: &Layout) -> Self {
        Self { values: vec![None; layout.fields.len()] }
    }

    /// Gives a field its value; refuses one that is out of its bounds or was given.
    pub(crate) fn put(&mut self, layout: &Layout, at: usize, value: Value) -> Result<(), Refusal> {
        let (Some(field), Some(place)) = (layout.fields.get(at), self.values.get_mut(at)) else {
            return Err(Refusal::malformed("a field that the document does not have"));
        };
        if place.is_some() {
            let line = format!("field '{}' stands twice; give it once", field.name);
            return Err(Refusal::malformed(line));
        }
        field.check(&value)?;
        *place = Some(value);
        Ok(())
    }

    /// Takes a field's value out.
    pub(crate) fn take(&mut self, at: usize) -> Option<Value> {
        self.values.get_mut(at).and_then(Option::take)
    }

    /// The fields that are there, in order.
    pub(crate) fn fields<'a>(
        &'a self,
        layout: &'a Layout,
    ) -> impl Iterator<Item = (&'a Field, &'a Value)> {
        let values = self.values.iter().zip(layout.fields);
        values.filter_map(|(value, field)| Some((field, value.as_ref()?)))
    }

    /// Refuses a document without a field that it must have.
    pub(crate) fn check_required(&self, layout: &Layout) -> Result<(), Refusal> {
        let mut values = self.values.iter().zip(layout.fields);
        match values.find(|(value, field)| field.required && value.is_none()) {
            None => Ok(()),
            Some((_, field)) => {
                let line = format!("field '{}' of a {} is missing", field.name, layout.name);
                Err(Refusal::malformed(line))
            }
        }
    }
}

impl Field {
    /// A refusal that names the field.
    pub(crate) fn refuse(&self, what: &str) -> Refusal {
        Refusal::malformed(format!("field '{}': {what}", self.name))
    }

    /// The value that a text stands for; members of lists and pairs are not read here.
    pub(crate) fn of_text(&self, text: &str) -> Result<Value, Refusal> {
        Ok(match self.kind {
            Kind::Token | Kind::Text => Value::Text(text.to_owned()),
            Kind::Word(words) => {
                let found = words.iter().position(|word| *word == text);
                Value::Word(found.ok_or_else(|| {
                    let what = format!("'{}' is not one of {}", shown(text), words.join(", "));
                    self.refuse(&what)
                })?)
            }
            Kind::Number(_) => Value::Number(
                text.parse()
                    .map_err(|_| self.refuse(&format!("'{}' is no whole number", shown(text))))?,
            ),
            Kind::Time => Value::Time(time::parse(text).ok_or_else(|| {
                let remedy = "give one like 2026-03-14T06:00:00Z";
                self.refuse(&format!("'{}' is no time; {remedy}", shown(text)))
            })?),
            Kind::Bytes(_) => Value::Bytes(of_hex(text).ok_or_else(|| {
                self.refuse(&format!("'{}' is not in hexadecimal digits", shown(text)))
            })?),
            Kind::Tokens(_) | Kind::Pairs => return Err(self.refuse("is no text")),
        })
    }

    /// A value as text; `None` for lists and pairs.
    pub(crate) fn text_of(&self, value: &Value) -> Option<String> {
        match (value, self.kind) {
            (Value::Text(text), _) => Some(text.clone()),
            (Value::Word(at), Kind::Word(words)) => words.get(*at).map(|word| (*word).to_owned()),
            (Value::Number(number), _) => Some(number.to_string()),
            (Value::Time(time), _) => Some(time::format(*time)),
            (Value::Bytes(bytes), _) => Some(hex(bytes)),
            _ => None,
        }
    }

    fn check(&self, value: &Value) -> Result<(), Refusal> {
        match (value, self.kind) {
            (Value::Text(text), Kind::Token) => self.check_token(text),
            (Value::Text(text), Kind::Text) => self.check_text(text, MAX_TEXT_BYTES),
            (Value::Word(at), Kind::Word(words)) if *at < words.len() => Ok(()),
            (Value::Word(at), Kind::Word(words)) => {
                Err(self.refuse(&format!("number {at} of {} words", words.len())))
            }
            (Value::Number(number), Kind::Number(max)) if (1..=max).contains(number) => Ok(()),
            (Value::Number(number), Kind::Number(max)) => {
                Err(self.refuse(&format!("{number} is not from 1 to {max}")))
            }
            (Value::Time(time), Kind::Time) if time.as_secs() < time::MAX_TIME_S => Ok(()),
            (Value::Time(_), Kind::Time) => Err(self.refuse("a time beyond the year 9999")),
            (Value::List(list), Kind::Tokens(max)) => {
                if list.len() > max {
                    let what = format!("{} members are over the limit of {max}", list.len());
                    return Err(Refusal::new(Reason::TooLarge, self.refuse(&what).line));
                }
                list.iter().try_for_each(|token| self.check_token(token))
            }
            (Value::Pairs(pairs), Kind::Pairs) => self.check_pairs(pairs),
            (Value::Bytes(bytes), Kind::Bytes(len)) if bytes.len() == len => Ok(()),
            (Value::Bytes(bytes), Kind::Bytes(len)) => {
                Err(self.refuse(&format!("{} bytes, not {len}", bytes.len())))
            }
            _ => Err(self.refuse("a value of another type")),
        }
    }

    fn check_token(&self, text: &str) -> Result<(), Refusal> {
        if is_token(text) {
            return Ok(());
        }
        let rule = "1 to 64 of the letters and digits of ASCII and ._~-, the first no mark";
        Err(self.refuse(&format!("'{}' is no name: {rule}", shown(text))))
    }

    fn check_text(&self, text: &str, max_bytes: usize) -> Result<(), Refusal> {
        if text.len() > max_bytes {
            let what = format!("{} bytes are over the limit of {max_bytes}", text.len());
            let line = format!("{}; send several messages", self.refuse(&what).line);
            return Err(Refusal::new(Reason::TooLarge, line));
        }
        match text.chars().find(|&one| !is_text(one)) {
            None => Ok(()),
            Some(one) => {
                let what = format!("character U+{:04X} is none of XML's", u32::from(one));
                Err(self.refuse(&what))
            }
        }
    }

    fn check_pairs(&self, pairs: &[(String, String)]) -> Result<(), Refusal> {
        if pairs.len() > MAX_EXTENSIONS {
            let what = format!("{} are over the limit of {MAX_EXTENSIONS}", pairs.len());
            return Err(Refusal::new(Reason::TooLarge, self.refuse(&what).line));
        }
        for (at, (name, value)) in pairs.iter().enumerate() {
            self.check_token(name)?;
            self.check_text(value, MAX_EXTENSIONS_BYTES)?;
            if pairs.iter().take(at).any(|(other, _)| other == name) {
                return Err(self.refuse(&format!("'{name}' stands twice; give it once")));
            }
        }
        let bytes: usize = pairs.iter().map(|(name, value)| name.len() + value.len()).sum();
        if bytes > MAX_EXTENSIONS_BYTES {
            let what = format!("{bytes} bytes are over the limit of {MAX_EXTENSIONS_BYTES}");
            return Err(Refusal::new(Reason::TooLarge, self.refuse(&what).line));
        }
        Ok(())
    }
}

/// Whether a text can be a name of a node, a group or a message.
pub(crate) fn is_token(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= MAX_TOKEN_BYTES
        && bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte))
}

/// Whether XML can hold a character (XML 1.0 §2.2), so that a message can take any form.
fn is_text(one: char) -> bool {
    match one {
        '\t' | '\n' | '\r' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        other => other >= ' ',
    }
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes that hexadecimal digits stand for.
pub(crate) fn of_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|one| u8::try_from(one).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        })
        .collect()
}
