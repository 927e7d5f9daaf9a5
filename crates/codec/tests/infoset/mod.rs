//! Whether two XML documents say the same, read by a library that is not ours.
//!
//! A document becomes a flat list of items; what the rules let differ is taken out of both lists
//! first, so that a comparison is one of lists.

#![allow(dead_code, reason = "each test uses what it needs")]

mod values;

use roxmltree::{Document, Node, NodeType, ParsingOptions};

pub(crate) use values::{Values, same_value};

/// Namespace of `xsi:type`, `xsi:nil` and the hints where a schema is.
pub(crate) const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";
const XML: &str = "http://www.w3.org/XML/1998/namespace";
const ANY_TYPE: &str = "{http://www.w3.org/2001/XMLSchema}anyType";
/// Most nodes of one document here.
const MAX_NODES: u32 = 20_000_000;

/// What has to be the same. Elements, attributes and text always are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Prefixes, and which are bound where.
    pub(crate) prefixes: bool,
    /// Comments.
    pub(crate) comments: bool,
    /// Processing instructions.
    pub(crate) pis: bool,
    /// White space that stands alone beside an element.
    pub(crate) white_space: bool,
    /// `xsi:schemaLocation` and `xsi:noNamespaceSchemaLocation`.
    pub(crate) schema_location: bool,
    /// `xsi:type="xsd:anyType"`, which the EXI Profile puts where a grammar would be learned.
    pub(crate) any_type: bool,
    /// What the prefix of an `xsi:type` stands for; else the value is compared as it is written.
    pub(crate) resolved_types: bool,
    /// How values are compared.
    pub(crate) values: Values,
}

impl Rules {
    /// Nothing may differ but the order of attributes and how things are written.
    pub(crate) const EXACT: Self = Self {
        prefixes: true,
        comments: true,
        pis: true,
        white_space: true,
        schema_location: true,
        any_type: true,
        resolved_types: true,
        values: Values::Exact,
    };
    /// What EXI keeps by default and without a schema.
    pub(crate) const ELEMENTS: Self = Self {
        prefixes: false,
        comments: false,
        pis: false,
        white_space: false,
        schema_location: true,
        any_type: true,
        resolved_types: true,
        values: Values::Exact,
    };
    /// What EXI keeps by default and with a schema.
    pub(crate) const TYPED: Self = Self { values: Values::Canonical, ..Self::ELEMENTS };
}

/// `{namespace}local`, and the prefix where prefixes count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    namespace: String,
    local: String,
    prefix: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    Start { name: Name, scope: Vec<(String, String)>, attributes: Vec<(Name, String)>, keep: bool },
    End,
    Text(String),
    Comment(String),
    Pi(String, String),
}

/// The first difference between what `expected` and `actual` say, or why one cannot be read.
pub(crate) fn difference(expected: &str, actual: &str, rules: &Rules) -> Option<String> {
    let items = |text: &str, whose: &str| read(text, rules).map_err(|e| format!("{whose}: {e}"));
    let (expected, actual) = match (items(expected, "expected"), items(actual, "actual")) {
        (Ok(expected), Ok(actual)) => (expected, actual),
        (Err(error), _) | (_, Err(error)) => return Some(error),
    };
    let end = expected.len().max(actual.len());
    let at = (0..end).find(|at| !same(expected.get(*at), actual.get(*at), rules.values))?;
    let short = |item: Option<&Item>| format!("{item:?}").chars().take(600).collect::<String>();
    let path = path(&expected[..at.min(expected.len())]);
    Some(format!("at {path}: {} became {}", short(expected.get(at)), short(actual.get(at))))
}

/// A document that holds all of a fragment's items, so that an XML reader takes it.
pub(crate) fn wrapped(fragment: &str) -> String {
    let body = match fragment.strip_prefix("<?xml") {
        Some(rest) => rest.split_once("?>").map_or("", |(_, body)| body),
        None => fragment,
    };
    format!("<fragment>{body}</fragment>")
}

fn same(expected: Option<&Item>, actual: Option<&Item>, values: Values) -> bool {
    match (expected, actual) {
        (Some(Item::Text(a)), Some(Item::Text(b))) => same_value(a, b, values),
        (
            Some(Item::Start { name, scope, attributes, .. }),
            Some(Item::Start { name: name_2, scope: scope_2, attributes: attributes_2, .. }),
        ) => {
            let alike = |((name, a), (name_2, b)): (&(Name, String), &(Name, String))| {
                // xsi:nil is a Boolean wherever it stands (XML Schema Part 1 §2.6.2).
                let is_nil = name.namespace == XSI && name.local == "nil";
                let values = if is_nil { Values::Canonical } else { values };
                name == name_2 && same_value(a, b, values)
            };
            name == name_2
                && scope == scope_2
                && attributes.len() == attributes_2.len()
                && attributes.iter().zip(attributes_2).all(alike)
        }
        (expected, actual) => expected == actual,
    }
}

fn path(before: &[Item]) -> String {
    let mut open = Vec::new();
    for item in before {
        match item {
            Item::Start { name, .. } => open.push(name.local.as_str()),
            Item::End => drop(open.pop()),
            _ => {}
        }
    }
    format!("/{}", open.join("/"))
}

fn read(text: &str, rules: &Rules) -> Result<Vec<Item>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let options =
        ParsingOptions { allow_dtd: true, nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|e| e.to_string())?;
    let mut items = Vec::new();
    for child in document.root().children() {
        push(child, text, rules, false, &mut items);
    }
    let mut items = joined(items);
    if !rules.white_space {
        drop_white_space(&mut items);
    }
    if rules.values == Values::Canonical {
        // An empty value and none are one.
        items.retain(|item| !matches!(item, Item::Text(text) if text.trim_ascii().is_empty()));
    }
    Ok(items)
}

fn push(node: Node, text: &str, rules: &Rules, keep: bool, items: &mut Vec<Item>) {
    match node.node_type() {
        NodeType::Element => {
            let keep = match node.attribute((XML, "space")) {
                Some(space) => space == "preserve",
                None => keep,
            };
            items.push(start(node, text, rules, keep));
            for child in node.children() {
                push(child, text, rules, keep, items);
            }
            items.push(Item::End);
        }
        NodeType::Text => items.push(Item::Text(node.text().unwrap_or_default().to_string())),
        NodeType::Comment if rules.comments => {
            items.push(Item::Comment(lines(node.text().unwrap_or_default())));
        }
        NodeType::PI if rules.pis => {
            let Some(pi) = node.pi() else { return };
            items.push(Item::Pi(pi.target.to_string(), lines(pi.value.unwrap_or_default())));
        }
        NodeType::Comment | NodeType::PI | NodeType::Root => {}
    }
}

/// Ends of lines as XML has them (XML 1.0 §2.11); the reader does so for text only.
fn lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

fn start(node: Node, text: &str, rules: &Rules, keep: bool) -> Item {
    let prefix = |written: &str| {
        let name = written.trim_start_matches('<');
        let end = name.find([' ', '\t', '\r', '\n', '/', '>', '=']).unwrap_or(name.len());
        name[..end].split_once(':').map_or("", |(prefix, _)| prefix).to_string()
    };
    let name = |namespace: Option<&str>, local: &str, at: usize| Name {
        namespace: namespace.unwrap_or_default().to_string(),
        local: local.to_string(),
        prefix: rules.prefixes.then(|| prefix(&text[at..])),
    };
    let mut attributes: Vec<_> = node
        .attributes()
        .filter(|attribute| {
            let is_hint = attribute.namespace() == Some(XSI)
                && ["schemaLocation", "noNamespaceSchemaLocation"].contains(&attribute.name());
            rules.schema_location || !is_hint
        })
        .map(|attribute| {
            let value = match (attribute.namespace(), attribute.name()) {
                (Some(XSI), "type") if rules.resolved_types => resolved(node, attribute.value()),
                _ => attribute.value().to_string(),
            };
            (name(attribute.namespace(), attribute.name(), attribute.range().start), value)
        })
        .filter(|(name, value)| {
            let is_type = name.namespace == XSI && name.local == "type";
            rules.any_type || !(is_type && value == ANY_TYPE)
        })
        .collect();
    attributes.sort();
    let mut scope = Vec::new();
    if rules.prefixes {
        let binding = |ns: &roxmltree::Namespace| {
            (ns.name().unwrap_or_default().to_string(), ns.uri().to_string())
        };
        scope.extend(node.namespaces().map(binding));
        // `xmlns=""` where nothing was bound binds nothing; xml is bound always.
        scope.retain(|(prefix, uri)| !(prefix.is_empty() && uri.is_empty()) && prefix != "xml");
        scope.sort();
    }
    let tag = node.tag_name();
    let name = name(tag.namespace(), tag.name(), node.range().start);
    Item::Start { name, scope, attributes, keep }
}

/// A qualified name as `{namespace}local`, as far as its prefix is bound.
fn resolved(node: Node, value: &str) -> String {
    let value = value.trim_ascii();
    let (prefix, local) = match value.split_once(':') {
        Some((prefix, local)) => (Some(prefix), local),
        None => (None, value),
    };
    match (node.lookup_namespace_uri(prefix), prefix) {
        (None, Some(_)) => value.to_string(),
        (uri, _) => format!("{{{}}}{local}", uri.unwrap_or_default()),
    }
}

/// Text that only things left out had parted is one.
fn joined(items: Vec<Item>) -> Vec<Item> {
    let mut out: Vec<Item> = Vec::with_capacity(items.len());
    for item in items {
        match (out.last_mut(), item) {
            (Some(Item::Text(before)), Item::Text(text)) => before.push_str(&text),
            (_, Item::Text(text)) if text.is_empty() => {}
            (_, item) => out.push(item),
        }
    }
    out
}

/// White space alone is a value between a start and its end only, or where `xml:space` says so.
fn drop_white_space(items: &mut Vec<Item>) {
    let mut keep = Vec::new();
    let mut stays = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        stays.push(match item {
            Item::Start { keep: kept, .. } => {
                keep.push(*kept);
                true
            }
            Item::End => {
                keep.pop();
                true
            }
            Item::Text(text) if text.trim_ascii().is_empty() => {
                let between = at.checked_sub(1).map(|before| (&items[before], items.get(at + 1)));
                let alone = matches!(between, Some((Item::Start { .. }, Some(Item::End))));
                alone || keep.last() == Some(&true)
            }
            _ => true,
        });
    }
    let mut stays = stays.into_iter();
    items.retain(|_| stays.next() == Some(true));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(a: &str, b: &str, rules: Rules) -> bool {
        difference(a, b, &rules).is_none()
    }

    #[test]
    fn each_rule_lets_differ_what_it_names_and_nothing_else() {
        let text = r#"<a:r xmlns:a="u" y="1" x="2"><!--c--><?p d?> <b>v</b></a:r>"#;
        let exact = Rules::EXACT;
        assert!(same(
            text,
            r#"<a:r xmlns:a="u" x="2" y="1"><!--c--><?p d?> <b>v</b></a:r>"#,
            exact
        ));
        let cases = [
            (r#"<z:r xmlns:z="u" y="1" x="2"><!--c--><?p d?> <b>v</b></z:r>"#, 0),
            (r#"<a:r xmlns:a="u" y="1" x="2"><?p d?> <b>v</b></a:r>"#, 1),
            (r#"<a:r xmlns:a="u" y="1" x="2"><!--c--> <b>v</b></a:r>"#, 2),
            (r#"<a:r xmlns:a="u" y="1" x="2"><!--c--><?p d?><b>v</b></a:r>"#, 3),
        ];
        for (other, rule) in cases {
            for lax in 0..4 {
                let mut rules = exact;
                match lax {
                    0 => rules.prefixes = false,
                    1 => rules.comments = false,
                    2 => rules.pis = false,
                    _ => rules.white_space = false,
                }
                assert_eq!(same(text, other, rules), lax == rule, "{rule} {lax}");
            }
        }
        for other in [
            r#"<a:r xmlns:a="v" y="1" x="2"><b>v</b></a:r>"#,
            r#"<a:r xmlns:a="u" y="1"><b>v</b></a:r>"#,
            r#"<a:r xmlns:a="u" y="1" x="3"><b>v</b></a:r>"#,
            r#"<a:r xmlns:a="u" y="1" x="2"><b>w</b></a:r>"#,
            r#"<a:r xmlns:a="u" y="1" x="2"><b/></a:r>"#,
            r#"<a:r xmlns:a="u" y="1" x="2"><b>v</b><b/></a:r>"#,
            r#"<a:r xmlns:a="u" y="1" x="2"><b>v</b>"#,
        ] {
            assert!(!same(text, other, Rules::ELEMENTS), "{other}");
            assert!(!same(other, text, Rules::TYPED), "{other}");
        }
    }

    #[test]
    fn white_space_is_a_value_in_a_leaf_and_where_the_document_says_so() {
        assert!(same("<a> <b/> </a>", "<a><b/></a>", Rules::ELEMENTS));
        assert!(!same("<a> </a>", "<a/>", Rules::ELEMENTS));
        assert!(!same("<a>x <b/></a>", "<a>x<b/></a>", Rules::ELEMENTS));
        let kept = r#"<a xml:space="preserve"> <b/></a>"#;
        assert!(!same(kept, r#"<a xml:space="preserve"><b/></a>"#, Rules::ELEMENTS));
        assert!(same("<a>x<!--c-->y</a>", "<a>xy</a>", Rules::ELEMENTS));
    }

    #[test]
    fn a_type_is_compared_by_its_namespace_and_nil_by_its_value() {
        let of = |prefix: &str, uri: &str, nil: &str| {
            format!(
                r#"<a xmlns:x="{XSI}" xmlns:{prefix}="{uri}" x:type="{prefix}:t" x:nil="{nil}"/>"#
            )
        };
        assert!(same(&of("p", "u", "1"), &of("q", "u", "true"), Rules::ELEMENTS));
        assert!(!same(&of("p", "u", "1"), &of("p", "v", "1"), Rules::ELEMENTS));
        assert!(!same(&of("p", "u", "1"), &of("p", "u", "0"), Rules::ELEMENTS));
        assert!(!same(&of("p", "u", "1"), &of("q", "u", "1"), Rules::EXACT));
    }

    #[test]
    fn a_fragment_is_read_within_an_element() {
        let declared = "<?xml version='1.0'?><a/><b/>";
        assert!(same(&wrapped(declared), &wrapped("<a/><b/>"), Rules::EXACT));
        assert!(!same(&wrapped(declared), &wrapped("<b/><a/>"), Rules::EXACT));
    }
}
