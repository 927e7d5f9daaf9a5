//! Documents as objects of JSON.

use serde_json::{Map, Value as Json};

use super::unknown_field;
use crate::messaging::fields::{Field, Kind, Layout, Record, Value};
use crate::messaging::refusal::{Refusal, shown};

pub(super) fn encode(layout: &Layout, record: &Record) -> Vec<u8> {
    object(layout, record).to_string().into_bytes()
}

/// A document as an object, for answers that have more beside it.
pub(in crate::messaging) fn object(layout: &Layout, record: &Record) -> Json {
    let members = record.fields(layout).map(|(field, value)| {
        let text = |text: &String| Json::String(text.clone());
        let json = match value {
            Value::Number(number) => Json::from(*number),
            Value::List(list) => Json::Array(list.iter().map(text).collect()),
            Value::Pairs(pairs) => {
                let pairs = pairs.iter().map(|(name, value)| (name.clone(), text(value)));
                Json::Object(pairs.collect())
            }
            other => Json::String(field.text_of(other).unwrap_or_default()),
        };
        (field.name.to_owned(), json)
    });
    Json::Object(members.collect::<Map<_, _>>())
}

pub(super) fn decode(layout: &Layout, bytes: &[u8]) -> Result<Record, Refusal> {
    let json: Json = serde_json::from_slice(bytes)
        .map_err(|error| Refusal::malformed(format!("no JSON: {error}")))?;
    let Json::Object(members) = json else {
        return Err(Refusal::malformed(format!("a {} is an object of JSON", layout.name)));
    };
    let mut record = Record::new(layout);
    for (name, json) in members {
        let at = layout.find(&name).ok_or_else(|| unknown_field(layout, &name))?;
        let Some(field) = layout.fields.get(at) else { continue };
        record.put(layout, at, value(field, json)?)?;
    }
    Ok(record)
}

fn value(field: &Field, json: Json) -> Result<Value, Refusal> {
    match (json, field.kind) {
        (Json::Number(number), Kind::Number(_)) => {
            let what = || field.refuse(&format!("{number} is no whole number"));
            number.as_u64().map(Value::Number).ok_or_else(what)
        }
        (Json::Array(list), Kind::Tokens(_)) => {
            let names = list.into_iter().map(|json| text(field, json));
            Ok(Value::List(names.collect::<Result<_, _>>()?))
        }
        (Json::Object(pairs), Kind::Pairs) => {
            let pairs = pairs.into_iter().map(|(name, json)| Ok((name, text(field, json)?)));
            Ok(Value::Pairs(pairs.collect::<Result<_, Refusal>>()?))
        }
        (json, Kind::Number(_)) => Err(wrong(field, &json, "a number")),
        (json, Kind::Tokens(_)) => Err(wrong(field, &json, "a list of names")),
        (json, Kind::Pairs) => Err(wrong(field, &json, "an object of texts")),
        (json, _) => field.of_text(&text(field, json)?),
    }
}

fn text(field: &Field, json: Json) -> Result<String, Refusal> {
    match json {
        Json::String(text) => Ok(text),
        other => Err(wrong(field, &other, "a text")),
    }
}

fn wrong(field: &Field, json: &Json, expected: &str) -> Refusal {
    field.refuse(&format!("{} is not {expected}", shown(&json.to_string())))
}
