//! JSON values with the lines they stand in: enough for files of tracks.

/// Most values within each other.
const MAX_DEPTH: usize = 32;

/// A value and the line that it begins in.
#[derive(Debug, PartialEq)]
pub(super) struct Json {
    pub(super) line: usize,
    pub(super) value: Value,
}

/// What a value is.
#[derive(Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads a document: one value and nothing after it. Line and complaint on failure.
    pub(super) fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut reader = Reader { rest: text, line: 1 };
        let value = reader.value(0).map_err(|what| (reader.line, what))?;
        reader.space();
        if reader.rest.is_empty() {
            Ok(value)
        } else {
            Err((reader.line, "goes on after its value".to_owned()))
        }
    }

    /// A member of an object.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Value::Object(members) = &self.value else { return None };
        members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn number(&self) -> Option<f64> {
        match self.value {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    pub(super) fn list(&self) -> Option<&[Self]> {
        match &self.value {
            Value::List(list) => Some(list),
            _ => None,
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<Json, String> {
        if depth == MAX_DEPTH {
            return Err(format!("has more than {MAX_DEPTH} values within each other"));
        }
        self.space();
        let line = self.line;
        let value = match self.rest.bytes().next() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(_) => self.word()?,
            None => return Err("ends where a value was expected: the file is cut".to_owned()),
        };
        Ok(Json { line, value })
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        let mut members: Vec<(String, Json)> = Vec::new();
        self.rest = &self.rest[1..];
        if self.eat('}') {
            return Ok(Value::Object(members));
        }
        loop {
            self.space();
            if !self.rest.starts_with('"') {
                return Err("has an object with a member that has no name".to_owned());
            }
            let key = self.string()?;
            if !self.eat(':') {
                return Err(format!("has no ':' after \"{}\"", key.escape_debug()));
            }
            members.push((key, self.value(depth + 1)?));
            if self.eat('}') {
                return Ok(Value::Object(members));
            }
            if !self.eat(',') {
                return Err("has an object without ',' or '}' after a member".to_owned());
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, String> {
        let mut items = Vec::new();
        self.rest = &self.rest[1..];
        if self.eat(']') {
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.eat(']') {
                return Ok(Value::List(items));
            }
            if !self.eat(',') {
                return Err("has a list without ',' or ']' after an item".to_owned());
            }
        }
    }

    /// A string, which begins with its first quote.
    fn string(&mut self) -> Result<String, String> {
        let mut text = String::new();
        let mut chars = self.rest[1..].char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 2..];
                    return Ok(text);
                }
                '\\' => {
                    let escaped = chars.next().map(|(_, c)| c);
                    text.push(match escaped {
                        Some(c @ ('"' | '\\' | '/')) => c,
                        Some('n') => '\n',
                        Some('t') => '\t',
                        Some('r') => '\r',
                        Some('b') => '\u{8}',
                        Some('f') => '\u{c}',
                        Some('u') => {
                            let digits: String = chars.by_ref().take(4).map(|(_, c)| c).collect();
                            let code = u32::from_str_radix(&digits, 16).ok();
                            let code = code.filter(|_| digits.len() == 4);
                            // One of a surrogate pair alone stands for no character.
                            char::from_u32(code.ok_or("has a \\u without four digits")?)
                                .unwrap_or(char::REPLACEMENT_CHARACTER)
                        }
                        _ => return Err("has an escape that is none".to_owned()),
                    });
                }
                c if c < ' ' => return Err("has a string that its line does not end".to_owned()),
                c => text.push(c),
            }
        }
        Err("has a string without an end: the file is cut".to_owned())
    }

    fn number(&mut self) -> Result<Value, String> {
        let is_part = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        let read = number.parse().ok().filter(|number: &f64| number.is_finite());
        read.map(Value::Number)
            .ok_or_else(|| format!("{} is no number", crate::error::quoted(number)))
    }

    fn word(&mut self) -> Result<Value, String> {
        for (word, value) in
            [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)]
        {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err("has something that is no value".to_owned())
    }

    fn eat(&mut self, mark: char) -> bool {
        self.space();
        let rest = self.rest.strip_prefix(mark);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn space(&mut self) {
        let rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let skipped = &self.rest[..self.rest.len() - rest.len()];
        self.line += skipped.bytes().filter(|byte| *byte == b'\n').count();
        self.rest = rest;
    }
}
