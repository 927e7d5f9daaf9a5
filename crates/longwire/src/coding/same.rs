//! Whether two texts say the same, checked by other means than the codec's.

use codec::xml::{Event, Reader};
use codec::{Limits, xml};

/// The namespace whose `type` has a qualified name as its value.
const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

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
    let (mut items, mut run, mut scopes) = (Vec::new(), String::new(), Scopes::default());
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
                let declared = reader
                    .declarations()
                    .iter()
                    .map(|one| (one.prefix(&start).to_owned(), names.uri(one.uri).to_owned()));
                scopes.open(declared);
                let mut attributes: Vec<_> = reader
                    .attributes()
                    .iter()
                    .map(|attribute| {
                        let name = name_of(attribute.name);
                        let value = attribute.value(&start).into_owned();
                        let is_type = name[0] == XSI && name[1] == "type";
                        let value = if is_type { scopes.expanded(&value) } else { value };
                        (name, value)
                    })
                    .collect();
                attributes.sort_unstable();
                items.push(Item::Start(name_of(start.name), attributes));
            }
            Event::End { .. } => {
                scopes.close();
                items.push(Item::End);
            }
            Event::Text(text) => run += &text,
            Event::Eof => return Ok(items),
            _ => {}
        }
    }
}

/// Prefixes in scope with their namespaces: what is open, and of each element how many it declares.
#[derive(Default)]
struct Scopes {
    declared: Vec<(String, String)>,
    counts: Vec<usize>,
}

impl Scopes {
    fn open(&mut self, declared: impl Iterator<Item = (String, String)>) {
        self.counts.push(self.declared.len());
        self.declared.extend(declared);
    }

    fn close(&mut self) {
        self.declared.truncate(self.counts.pop().unwrap_or(0));
    }

    /// A qualified name with its namespace in place of the prefix.
    fn expanded(&self, name: &str) -> String {
        let name = name.trim();
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        let found = self.declared.iter().rev().find(|(of, _)| of == prefix);
        found.map_or(name.to_owned(), |(_, uri)| format!("{{{uri}}}{local}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{XSI, same};

    #[test]
    fn what_is_written_otherwise_is_the_same_and_what_says_otherwise_is_not() {
        let xml = |one: &str, other: &str| same(one.as_bytes(), other.as_bytes(), "text/xml");
        assert!(xml("<a x='1' y='2'/>", "<a y=\"2\" x=\"1\"></a>"));
        assert!(xml("<p:a xmlns:p='u'> t </p:a>", "<a xmlns='u'><!-- c -->t</a>"));
        let typed = |prefix: &str, declared: &str| {
            format!("<a xmlns:i='{XSI}' {declared}='u' xmlns:q='v' i:type='{prefix}T'/>")
        };
        assert!(xml(&typed("p:", "xmlns:p"), &typed("r:", "xmlns:r")));
        assert!(!xml(&typed("p:", "xmlns:p"), &typed("q:", "xmlns:p")));
        assert!(!xml("<a/>", "<b/>") && !xml("<a x='1'/>", "<a x='2'/>") && !xml("<a>", "<a>"));
        assert!(!xml("<a>t</a>", "<a>u</a>") && !xml("<a xmlns='u'/>", "<a/>"));
        let json =
            |one: &str, other: &str| same(one.as_bytes(), other.as_bytes(), "application/json");
        assert!(json("{\"a\": [1]}", "{\"a\":[1]}") && !json("[1]", "[2]") && !json("", ""));
    }
}
