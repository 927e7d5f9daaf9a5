//! Values of a file, told in plain words where they are of another kind than is meant.

use std::path::PathBuf;

use toml::de::DeValue;

use super::units::{Period, Rate, Size};

/// Most bytes of a value that a message repeats.
const MAX_SHOWN_BYTES: usize = 64;

/// What a key may be set to.
pub(super) trait Value: Sized {
    /// Reads it. The error goes behind the key: what it is, what is meant, an example.
    fn read(value: &DeValue<'_>) -> Result<Self, String>;
}

impl Value for String {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        text(value, "a text in quotes, like \"127.0.0.1:8080\"").map(str::to_owned)
    }
}

impl Value for PathBuf {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        text(value, "a path in quotes, like \"edge/longwire.key\"").map(Self::from)
    }
}

impl Value for bool {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| wrong(value, "true or false, without quotes"))
    }
}

impl Value for u64 {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let number = value.as_integer();
        let number = number.and_then(|n| Self::from_str_radix(n.as_str(), n.radix()).ok());
        number.ok_or_else(|| wrong(value, "a whole number without quotes, like 256"))
    }
}

impl Value for usize {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let number = u64::read(value)?;
        Self::try_from(number).map_err(|_| wrong(value, "a number that this machine can count to"))
    }
}

impl Value for Period {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        measured(value, "a time in quotes", "30 s", Self::parse)
    }
}

impl Value for Size {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        measured(value, "a size in quotes", "64 KiB", Self::parse)
    }
}

impl Value for Rate {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        measured(value, "a rate in quotes", "250 kbit/s", Self::parse)
    }
}

impl<T: Value> Value for Vec<T> {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let Some(items) = value.as_array() else {
            let example = value.as_str().map_or("a", |text| text);
            return Err(wrong(value, &format!("a list, like [\"{}\"]", short(example))));
        };
        let item = |item: &toml::Spanned<DeValue<'_>>| {
            T::read(item.get_ref()).map_err(|what| format!("has an item that {what}"))
        };
        items.iter().map(item).collect()
    }
}

fn measured<T>(
    value: &DeValue<'_>,
    what: &str,
    example: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<T, String> {
    let text = text(value, &format!("{what}, like \"{example}\""))?;
    parse(text).map_err(|what| format!("is wrong: {what}"))
}

fn text<'a>(value: &'a DeValue<'_>, meant: &str) -> Result<&'a str, String> {
    value.as_str().ok_or_else(|| wrong(value, meant))
}

fn wrong(value: &DeValue<'_>, meant: &str) -> String {
    let is = match value {
        DeValue::String(text) => format!("\"{}\"", short(text)),
        DeValue::Integer(number) => short(&number.to_string()),
        DeValue::Float(number) => short(number.as_str()),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a section".to_owned(),
    };
    format!("is {is}: {meant}")
}

/// As much of a text as a line may hold, and nothing that steers a terminal.
fn short(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars().flat_map(char::escape_debug) {
        if shown.len() >= MAX_SHOWN_BYTES {
            shown.push_str("...");
            break;
        }
        shown.push(c);
    }
    shown
}
