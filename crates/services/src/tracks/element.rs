//! One tree for a message, and its two renderings: so XML and JSON say the same by construction.

use crate::xml::escape;

/// Elements that may repeat: arrays in JSON even when there is one.
const REPEATING: [&str; 2] = ["track", "remarks"];

/// A named element: its attributes, then a value or children.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Element {
    name: &'static str,
    /// Declares the default namespace here, in XML; JSON has none.
    namespace: Option<&'static str>,
    attributes: Vec<(&'static str, Value)>,
    content: Content,
}

#[derive(Clone, Debug, PartialEq)]
enum Content {
    Value(Value),
    Children(Vec<Element>),
}

/// A simple value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Free text.
    Text(String),
    /// A number, in the decimal form common to XML Schema and JSON.
    Number(String),
    /// `true` or `false`.
    Boolean(bool),
}

impl Value {
    /// A number with a fixed count of decimals.
    pub(crate) fn decimal(number: f64, decimals: usize) -> Self {
        Self::Number(format!("{number:.decimals$}"))
    }

    /// A whole number.
    pub(crate) fn whole(number: u32) -> Self {
        Self::Number(number.to_string())
    }

    fn as_text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Number(text) => text,
            Self::Boolean(true) => "true",
            Self::Boolean(false) => "false",
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl Element {
    /// An element with children.
    pub(crate) fn parent(name: &'static str, children: Vec<Self>) -> Self {
        let content = Content::Children(children);
        Self { name, namespace: None, attributes: Vec::new(), content }
    }

    /// An element with a value.
    pub(crate) fn leaf(name: &'static str, value: impl Into<Value>) -> Self {
        let content = Content::Value(value.into());
        Self { name, namespace: None, attributes: Vec::new(), content }
    }

    /// The same with one attribute more.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.attributes.push((name, value.into()));
        self
    }

    /// The same in a namespace, declared here as the default one.
    pub(crate) fn within(mut self, namespace: &'static str) -> Self {
        self.namespace = Some(namespace);
        self
    }

    /// Appends this element as XML, without declaration or white space.
    pub(crate) fn write_xml(&self, out: &mut String) {
        out.push('<');
        out.push_str(self.name);
        let namespace = self.namespace.map(|uri| ("xmlns", uri));
        let attributes = self.attributes.iter().map(|(name, value)| (*name, value.as_text()));
        for (name, value) in namespace.into_iter().chain(attributes) {
            out.push(' ');
            out.push_str(name);
            out.push_str("=\"");
            escape(value, out);
            out.push('"');
        }
        out.push('>');
        match &self.content {
            Content::Value(value) => escape(value.as_text(), out),
            Content::Children(children) => children.iter().for_each(|child| child.write_xml(out)),
        }
        out.push_str("</");
        out.push_str(self.name);
        out.push('>');
    }

    /// This element as a JSON document: `{"name": ...}`.
    ///
    /// An element with a value alone is that value; any other is an object of its attributes and
    /// children, where the value of an element with attributes is called `value`.
    pub(crate) fn to_json(&self) -> String {
        let mut out = String::from("{");
        write_json_text(self.name, &mut out);
        out.push(':');
        self.write_json(&mut out);
        out.push('}');
        out
    }

    fn write_json(&self, out: &mut String) {
        if let (true, Content::Value(value)) = (self.attributes.is_empty(), &self.content) {
            return write_json_value(value, out);
        }
        out.push('{');
        for (name, value) in &self.attributes {
            write_json_key(name, out);
            write_json_value(value, out);
        }
        match &self.content {
            Content::Value(value) => {
                write_json_key("value", out);
                write_json_value(value, out);
            }
            Content::Children(children) => write_json_children(children, out),
        }
        out.push('}');
    }
}

fn write_json_children(children: &[Element], out: &mut String) {
    for siblings in children.chunk_by(|left, right| left.name == right.name) {
        let Some(first) = siblings.first() else { continue };
        write_json_key(first.name, out);
        if !REPEATING.contains(&first.name) {
            first.write_json(out);
            continue;
        }
        out.push('[');
        for (index, sibling) in siblings.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            sibling.write_json(out);
        }
        out.push(']');
    }
}

/// A member's name and colon, after a comma unless it is the first of its object.
fn write_json_key(name: &str, out: &mut String) {
    if !out.ends_with('{') {
        out.push(',');
    }
    write_json_text(name, out);
    out.push(':');
}

fn write_json_value(value: &Value, out: &mut String) {
    match value {
        Value::Text(text) => write_json_text(text, out),
        Value::Number(_) | Value::Boolean(_) => out.push_str(value.as_text()),
    }
}

fn write_json_text(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}
