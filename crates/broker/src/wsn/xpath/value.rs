//! Values and what they are as others (XPath 1.0 §3, §4).

use super::super::tree::{Kind, NodeId, Tree};

/// A node or an attribute, in document order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    pub(super) node: u32,
    /// 0: the node itself; else its attribute of that number, from 1.
    pub(super) attribute: u32,
}

impl Item {
    pub(super) fn of(node: NodeId) -> Self {
        Self { node: node.0, attribute: 0 }
    }

    /// The node, also that of an attribute.
    pub(super) fn node(self) -> NodeId {
        NodeId(self.node)
    }

    pub(super) fn is_attribute(self) -> bool {
        self.attribute > 0
    }

    /// Its expanded name and prefix, where it has one (XPath 1.0 §5).
    pub(super) fn name<'t>(self, tree: &'t Tree<'_>) -> Option<(&'t str, &'t str, &'t str)> {
        let (name, prefix) = match (self.attribute.checked_sub(1), tree.kind(self.node())) {
            (Some(at), _) => {
                let attribute = tree.attributes(self.node()).get(at as usize)?;
                (attribute.name, attribute.prefix)
            }
            (None, Kind::Element { name, prefix }) => (*name, *prefix),
            (None, Kind::Pi { target, .. }) => return Some(("", target, "")),
            _ => return None,
        };
        let name = tree.expanded(name);
        Some((name.uri, name.local, prefix))
    }

    /// Its string-value (XPath 1.0 §5).
    pub(super) fn text(self, tree: &Tree<'_>) -> String {
        if let Some(at) = self.attribute.checked_sub(1) {
            let attribute = tree.attributes(self.node()).get(at as usize);
            return attribute.map(|attribute| attribute.value.to_string()).unwrap_or_default();
        }
        match tree.kind(self.node()) {
            Kind::Comment(text) => text.to_string(),
            Kind::Pi { data, .. } => data.to_string(),
            Kind::Document | Kind::Element { .. } | Kind::Text(_) => {
                tree.text(self.node()).into_owned()
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// In document order, each once.
    Nodes(Vec<Item>),
    Boolean(bool),
    Number(f64),
    Text(String),
}

impl Value {
    /// XPath 1.0 §4.3, `boolean`.
    pub(super) fn to_boolean(&self) -> bool {
        match self {
            Self::Nodes(nodes) => !nodes.is_empty(),
            Self::Boolean(value) => *value,
            Self::Number(number) => *number != 0.0 && !number.is_nan(),
            Self::Text(text) => !text.is_empty(),
        }
    }
}

/// XPath 1.0 §4.4, `number` of a string.
pub(super) fn to_number(text: &str) -> f64 {
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(whole) || !are_digits(part) || whole.len() + part.len() == 0 {
        return f64::NAN;
    }
    text.parse().unwrap_or(f64::NAN)
}

/// XPath 1.0 §4.2, `string` of a number.
pub(super) fn to_text(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
    } else if number == 0.0 {
        "0".to_owned()
    } else {
        number.to_string()
    }
}
