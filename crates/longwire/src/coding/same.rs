//! Whether two texts say the same, told by other means than the codec's.

use codec::xml::{Event, Reader};
use codec::{Limits, xml};

/// What of a document counts here: names with their namespaces, attributes, and text but for white
/// space at its ends. Comments and the like are not carried by every codec.
#[derive(PartialEq)]
enum Item {
    Start([String; 2], Vec<([String; 2], String)>),
    Text(String),
    End,
}

/// Whether both are XML with the same elements, attributes and text, or JSON with the same values.
pub(super) fn same(one: &[u8], other: &[u8], media: &str) -> bool {
    if media == "application/json" {
        let value = |text| serde_json::from_slice::<serde_json::Value>(text).ok();
        return value(one).is_some() && value(one) == value(other);
    }
    let items = |text| items(text).ok();
    items(one).is_some_and(|one| items(other) == Some(one))
}

fn items(document: &[u8]) -> Result<Vec<Item>, codec::Error> {
    let limits = Limits::default();
    let text = xml::to_utf8(document, &limits)?;
    let mut reader = Reader::of(&text, &limits);
    let (mut items, mut run) = (Vec::new(), String::new());
    loop {
        let event = reader.next()?;
        if !matches!(event, Event::Text(_) | Event::Comment(_) | Event::Pi { .. }) {
            let text = std::mem::take(&mut run);
            if !text.trim().is_empty() {
                items.push(Item::Text(text.trim().to_owned()));
            }
        }
        let names = reader.names();
        let name_of = |id| {
            let name = names.name(id);
            [name.uri.to_owned(), name.local.to_owned()]
        };
        match event {
            Event::Start(start) => {
                let mut attributes: Vec<_> = reader
                    .attributes()
                    .iter()
                    .map(|attribute| {
                        (name_of(attribute.name), attribute.value(&start).into_owned())
                    })
                    .collect();
                attributes.sort_unstable();
                items.push(Item::Start(name_of(start.name), attributes));
            }
            Event::End { .. } => items.push(Item::End),
            Event::Text(text) => run += &text,
            Event::Eof => return Ok(items),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::same;

    #[test]
    fn what_is_written_otherwise_is_the_same_and_what_says_otherwise_is_not() {
        let xml = |one: &str, other: &str| same(one.as_bytes(), other.as_bytes(), "text/xml");
        assert!(xml("<a x='1' y='2'/>", "<a y=\"2\" x=\"1\"></a>"));
        assert!(xml("<p:a xmlns:p='u'> t </p:a>", "<a xmlns='u'><!-- c -->t</a>"));
        assert!(!xml("<a/>", "<b/>") && !xml("<a x='1'/>", "<a x='2'/>") && !xml("<a>", "<a>"));
        assert!(!xml("<a>t</a>", "<a>u</a>") && !xml("<a xmlns='u'/>", "<a/>"));
        let json =
            |one: &str, other: &str| same(one.as_bytes(), other.as_bytes(), "application/json");
        assert!(json("{\"a\": [1]}", "{\"a\":[1]}") && !json("[1]", "[2]") && !json("", ""));
    }
}
