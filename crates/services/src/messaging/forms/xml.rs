//! Documents as XML: an element for each field, in the order of the table, as the schema has it.

use super::unknown_field;
use crate::messaging::fields::{Field, Kind, Layout, Record, Value};
use crate::messaging::refusal::{Refusal, shown};
use crate::xml::{Attribute, Node, Reader};

/// The namespace of all elements.
pub(crate) const NAMESPACE: &str = "urn:longwire:messaging:1";
/// The attribute of an extension that has its name.
const NAME: &str = "name";

pub(super) fn encode(layout: &Layout, record: &Record) -> String {
    let mut out = format!("<{} xmlns=\"{NAMESPACE}\">", layout.name);
    for (field, value) in record.fields(layout) {
        match value {
            Value::List(list) => list.iter().for_each(|text| element(field, None, text, &mut out)),
            Value::Pairs(pairs) => {
                pairs.iter().for_each(|(name, text)| element(field, Some(name), text, &mut out));
            }
            other => element(field, None, &field.text_of(other).unwrap_or_default(), &mut out),
        }
    }
    out.push_str(&format!("</{}>", layout.name));
    out
}

fn element(field: &Field, name: Option<&str>, text: &str, out: &mut String) {
    out.push('<');
    out.push_str(field.element);
    if let Some(name) = name {
        // A name has no character that XML marks up.
        out.push_str(&format!(" {NAME}=\"{name}\""));
    }
    out.push('>');
    for (at, piece) in text.split('\r').enumerate() {
        if at > 0 {
            // A bare carriage return would come back as a line feed (XML 1.0 §2.11).
            out.push_str("&#13;");
        }
        crate::xml::escape(piece, out);
    }
    out.push_str(&format!("</{}>", field.element));
}

pub(super) fn decode(layout: &Layout, bytes: &[u8]) -> Result<Record, Refusal> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Refusal::malformed(format!("no XML in UTF-8: {error}")))?;
    let mut reader = Reader::new(text);
    let mut next = || reader.next_node().map_err(|error| Refusal::malformed(error.to_string()));
    let root = next()?;
    let Some(Node::Start { namespace, name, .. }) = root else {
        return Err(Refusal::malformed(format!("the document is no element '{}'", layout.name)));
    };
    if name != layout.name || namespace.as_deref() != Some(NAMESPACE) {
        let (found, wanted) = (shown(&name), layout.name);
        let line = format!("the root is '{found}', not '{wanted}' of namespace {NAMESPACE}");
        return Err(Refusal::malformed(line));
    }
    let mut found = Found { values: vec![None; layout.fields.len()], last: 0 };
    loop {
        match next()? {
            Some(Node::Start { namespace, name, attributes }) => {
                if namespace.as_deref() != Some(NAMESPACE) {
                    return Err(unknown_field(layout, &name));
                }
                let at = layout.fields.iter().position(|field| field.element == name);
                let at = at.ok_or_else(|| unknown_field(layout, &name))?;
                let mut text = String::new();
                loop {
                    match next()? {
                        Some(Node::Text(piece)) => text.push_str(&piece),
                        Some(Node::End) => break,
                        Some(Node::Instruction) => {}
                        Some(Node::Start { .. }) | None => {
                            let line = format!("element '{name}' has elements in it");
                            return Err(Refusal::malformed(line));
                        }
                    }
                }
                found.put(layout, at, &attributes, text)?;
            }
            Some(Node::Text(text)) if !text.trim().is_empty() => {
                let line = format!("text '{}' outside of the fields", shown(text.trim()));
                return Err(Refusal::malformed(line));
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut record = Record::new(layout);
    for (at, value) in found.values.into_iter().enumerate() {
        if let Some(value) = value {
            record.put(layout, at, value)?;
        }
    }
    Ok(record)
}

/// What was read so far.
struct Found {
    values: Vec<Option<Value>>,
    /// The field before.
    last: usize,
}

impl Found {
    fn put(
        &mut self,
        layout: &Layout,
        at: usize,
        attributes: &[Attribute],
        text: String,
    ) -> Result<(), Refusal> {
        let (Some(field), Some(place)) = (layout.fields.get(at), self.values.get_mut(at)) else {
            return Ok(());
        };
        if at < self.last {
            let line = format!("element '{}' is out of its place in the sequence", field.element);
            return Err(Refusal::malformed(line));
        }
        self.last = at;
        let name = attributes.iter().find(|one| one.namespace.is_none() && one.name == NAME);
        let is_pair = field.kind == Kind::Pairs;
        if let Some(other) = attributes.iter().find(|one| !is_pair || one.name != NAME) {
            let what = format!("attribute '{}' is not known", shown(&other.name));
            return Err(field.refuse(&what));
        }
        match (field.kind, place) {
            (Kind::Tokens(_), Some(Value::List(list))) => list.push(text),
            (Kind::Tokens(_), place) => *place = Some(Value::List(vec![text])),
            (Kind::Pairs, place) => {
                let name = name.ok_or_else(|| field.refuse("attribute 'name' is missing"))?;
                let pair = (name.value.clone(), text);
                match place {
                    Some(Value::Pairs(pairs)) => pairs.push(pair),
                    place => *place = Some(Value::Pairs(vec![pair])),
                }
            }
            (_, Some(_)) => return Err(field.refuse("stands twice; give it once")),
            (_, place) => {
                // White space around what is no free text has no meaning (XML Schema §4.3.6).
                let text = if field.kind == Kind::Text { &*text } else { text.trim() };
                *place = Some(field.of_text(text)?);
            }
        }
        Ok(())
    }
}
