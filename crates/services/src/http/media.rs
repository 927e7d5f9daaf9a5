//! Media types (RFC 9110 §8.3.1).

/// Most parameters of one media type.
const MAX_PARAMETERS: usize = 16;

/// A parsed `Content-Type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaType {
    /// `type/subtype` in lower case.
    pub essence: String,
    /// Parameters: name in lower case, value as given.
    parameters: Vec<(String, String)>,
}

impl MediaType {
    /// Parses a field's value; `None` when it is malformed or has more than 16 parameters.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (essence, mut rest) = text.split_once(';').unwrap_or((text, ""));
        let essence = essence.trim().to_ascii_lowercase();
        let (kind, subtype) = essence.split_once('/')?;
        if !is_token(kind) || !is_token(subtype) {
            return None;
        }
        let mut parameters = Vec::new();
        loop {
            rest = rest.trim_start_matches([' ', '\t', ';']);
            if rest.is_empty() {
                return Some(Self { essence, parameters });
            }
            let (name, value) = rest.split_once('=')?;
            let (value, after) = parameter_value(value)?;
            if !is_token(name) || parameters.len() == MAX_PARAMETERS {
                return None;
            }
            parameters.push((name.to_ascii_lowercase(), value));
            rest = after.trim_start_matches([' ', '\t']);
            if !rest.is_empty() && !rest.starts_with(';') {
                return None;
            }
        }
    }

    /// A parameter by its lower-case name.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A token or a quoted string (RFC 9110 §5.6.4), and what follows it.
fn parameter_value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([';', ' ', '\t']).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return is_token(value).then(|| (value.to_owned(), rest));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return Some((value, quoted.get(index + 1..)?)),
            '\\' => value.push(characters.next()?.1),
            other => value.push(other),
        }
    }
    None
}

/// RFC 9110 §5.6.2.
fn is_token(text: &str) -> bool {
    let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_tchar)
}
