//! flat table: the elements of UDDI v3 that are served, what is in them, and their bounds. Requests
//! are checked by it, and the schema in our WSDL is made of it (UDDI v3.0.2, `uddi_v3.xsd`).

use super::super::element::{Element, XML_NAMESPACE};
use super::super::refusal::{Reason, Refusal};
use crate::messaging::shown;

/// The namespace of UDDI v3.
pub(crate) const NAMESPACE: &str = "urn:uddi-org:api_v3";
/// Longest text that has no bound in the schema (authInfo, userID, cred), in characters.
const MAX_FREE_CHARS: usize = 4096;

/// What an element has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) content: Content,
    pub(super) attributes: &'static [Attr],
}

/// What is in an element.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    /// Nothing.
    Empty,
    /// Characters: fewest and most, and whether white space is collapsed.
    Text(usize, usize, bool),
    /// A whole number.
    Int,
    /// A time.
    Time,
    /// Elements in this order.
    Parts(&'static [Part]),
    /// The same, of which one at least must be there.
    Some(&'static [Part]),
}

/// Elements of one name, or one of two, at a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) names: &'static [&'static str],
    pub(super) min: usize,
    /// Whether there may be more than one.
    pub(super) is_many: bool,
}

/// An attribute: its name, its kind, and whether it must be there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attr(pub(super) &'static str, pub(super) Kind, pub(super) bool);

/// What an attribute holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A key of UDDI.
    Key,
    /// Up to so many characters, collapsed.
    Short(usize),
    /// Any text.
    Free,
    /// A whole number.
    Int,
    /// true, false, 1 or 0.
    Bool,
    /// A tag of a language, as `xml:lang`.
    Lang,
}

const fn one(names: &'static [&'static str]) -> Part {
    Part { names, min: 1, is_many: false }
}
const fn maybe(names: &'static [&'static str]) -> Part {
    Part { names, min: 0, is_many: false }
}
const fn some(names: &'static [&'static str]) -> Part {
    Part { names, min: 1, is_many: true }
}
const fn any(names: &'static [&'static str]) -> Part {
    Part { names, min: 0, is_many: true }
}

const LANG: Attr = Attr("lang", Kind::Lang, false);
const USE: Attr = Attr("useType", Kind::Short(255), false);
const TRUNCATED: Attr = Attr("truncated", Kind::Bool, false);
const ROWS: Attr = Attr("maxRows", Kind::Int, false);
const HEAD: Attr = Attr("listHead", Kind::Int, false);
const LINE: Content = Content::Text(1, 255, true);
const URL: Content = Content::Text(1, 4096, true);
const FREE: Content = Content::Text(0, MAX_FREE_CHARS, false);
const KEY: Content = Content::Text(1, 255, true);
const AUTH: Part = maybe(&["authInfo"]);
const QUALIFIERS: Part = maybe(&["findQualifiers"]);

const fn rule(name: &'static str, content: Content, attributes: &'static [Attr]) -> Rule {
    Rule { name, content, attributes }
}

/// All elements, by name.
pub(super) const RULES: &[Rule] = &[
    rule("accessPoint", URL, &[USE]),
    rule("actualCount", Content::Int, &[]),
    rule(
        "address",
        Content::Parts(&[some(&["addressLine"])]),
        &[LANG, USE, Attr("sortCode", Kind::Short(10), false), Attr("tModelKey", Kind::Key, false)],
    ),
    rule(
        "addressLine",
        Content::Text(1, 80, true),
        &[Attr("keyName", Kind::Short(255), false), Attr("keyValue", Kind::Short(255), false)],
    ),
    rule("authInfo", FREE, &[]),
    rule("authToken", Content::Parts(&[one(&["authInfo"])]), &[]),
    rule("authorizedName", Content::Text(0, 255, false), &[]),
    rule(
        "bindingDetail",
        Content::Parts(&[maybe(&["listDescription"]), any(&["bindingTemplate"])]),
        &[TRUNCATED],
    ),
    rule("bindingKey", KEY, &[]),
    rule(
        "bindingTemplate",
        Content::Parts(&[
            any(&["description"]),
            one(&["accessPoint", "hostingRedirector"]),
            maybe(&["tModelInstanceDetails"]),
            maybe(&["categoryBag"]),
        ]),
        &[Attr("bindingKey", Kind::Key, false), Attr("serviceKey", Kind::Key, false)],
    ),
    rule("bindingTemplates", Content::Parts(&[some(&["bindingTemplate"])]), &[]),
    rule("businessDetail", Content::Parts(&[any(&["businessEntity"])]), &[TRUNCATED]),
    rule(
        "businessEntity",
        Content::Parts(&[
            maybe(&["discoveryURLs"]),
            some(&["name"]),
            any(&["description"]),
            maybe(&["contacts"]),
            maybe(&["businessServices"]),
            maybe(&["identifierBag"]),
            maybe(&["categoryBag"]),
        ]),
        &[Attr("businessKey", Kind::Key, false)],
    ),
    rule(
        "businessInfo",
        Content::Parts(&[some(&["name"]), any(&["description"]), maybe(&["serviceInfos"])]),
        &[Attr("businessKey", Kind::Key, true)],
    ),
    rule("businessInfos", Content::Parts(&[some(&["businessInfo"])]), &[]),
    rule("businessKey", KEY, &[]),
    rule(
        "businessList",
        Content::Parts(&[maybe(&["listDescription"]), maybe(&["businessInfos"])]),
        &[TRUNCATED],
    ),
    rule(
        "businessService",
        Content::Parts(&[
            any(&["name"]),
            any(&["description"]),
            maybe(&["bindingTemplates"]),
            maybe(&["categoryBag"]),
        ]),
        &[Attr("serviceKey", Kind::Key, false), Attr("businessKey", Kind::Key, false)],
    ),
    rule("businessServices", Content::Parts(&[some(&["businessService"])]), &[]),
    rule(
        "categoryBag",
        Content::Some(&[any(&["keyedReference"]), any(&["keyedReferenceGroup"])]),
        &[],
    ),
    rule(
        "contact",
        Content::Parts(&[
            any(&["description"]),
            some(&["personName"]),
            any(&["phone"]),
            any(&["email"]),
            any(&["address"]),
        ]),
        &[USE],
    ),
    rule("contacts", Content::Parts(&[some(&["contact"])]), &[]),
    rule("created", Content::Time, &[]),
    rule("delete_binding", Content::Parts(&[AUTH, some(&["bindingKey"])]), &[]),
    rule("delete_business", Content::Parts(&[AUTH, some(&["businessKey"])]), &[]),
    rule("delete_service", Content::Parts(&[AUTH, some(&["serviceKey"])]), &[]),
    rule("delete_tModel", Content::Parts(&[AUTH, some(&["tModelKey"])]), &[]),
    rule("description", LINE, &[LANG]),
    rule("discard_authToken", Content::Parts(&[one(&["authInfo"])]), &[]),
    rule("discoveryURL", URL, &[USE]),
    rule("discoveryURLs", Content::Parts(&[some(&["discoveryURL"])]), &[]),
    rule("dispositionReport", Content::Parts(&[some(&["result"])]), &[TRUNCATED]),
    rule("email", LINE, &[USE]),
    rule("entityKey", KEY, &[]),
    rule("errInfo", FREE, &[Attr("errCode", Kind::Free, true)]),
    rule("findQualifier", LINE, &[]),
    rule("findQualifiers", Content::Parts(&[some(&["findQualifier"])]), &[]),
    rule(
        "find_binding",
        Content::Parts(&[
            AUTH,
            QUALIFIERS,
            maybe(&["tModelBag"]),
            maybe(&["find_tModel"]),
            maybe(&["categoryBag"]),
        ]),
        &[ROWS, Attr("serviceKey", Kind::Key, false), HEAD],
    ),
    rule(
        "find_business",
        Content::Parts(&[
            AUTH,
            QUALIFIERS,
            any(&["name"]),
            maybe(&["identifierBag"]),
            maybe(&["categoryBag"]),
            maybe(&["tModelBag"]),
            maybe(&["find_tModel"]),
            maybe(&["discoveryURLs"]),
            maybe(&["find_relatedBusinesses"]),
        ]),
        &[ROWS, HEAD],
    ),
    rule(
        "find_relatedBusinesses",
        Content::Parts(&[
            AUTH,
            QUALIFIERS,
            one(&["businessKey", "fromKey", "toKey"]),
            maybe(&["keyedReference"]),
        ]),
        &[ROWS, HEAD],
    ),
    rule(
        "find_service",
        Content::Parts(&[
            AUTH,
            QUALIFIERS,
            any(&["name"]),
            maybe(&["categoryBag"]),
            maybe(&["tModelBag"]),
            maybe(&["find_tModel"]),
        ]),
        &[ROWS, Attr("businessKey", Kind::Key, false), HEAD],
    ),
    rule(
        "find_tModel",
        Content::Parts(&[
            AUTH,
            QUALIFIERS,
            maybe(&["name"]),
            maybe(&["identifierBag"]),
            maybe(&["categoryBag"]),
        ]),
        &[ROWS, HEAD],
    ),
    rule("fromKey", KEY, &[]),
    rule(
        "get_authToken",
        Content::Empty,
        &[Attr("userID", Kind::Free, true), Attr("cred", Kind::Free, true)],
    ),
    rule("get_bindingDetail", Content::Parts(&[AUTH, some(&["bindingKey"])]), &[]),
    rule("get_businessDetail", Content::Parts(&[AUTH, some(&["businessKey"])]), &[]),
    rule("get_operationalInfo", Content::Parts(&[AUTH, some(&["entityKey"])]), &[]),
    rule("get_serviceDetail", Content::Parts(&[AUTH, some(&["serviceKey"])]), &[]),
    rule("get_tModelDetail", Content::Parts(&[AUTH, some(&["tModelKey"])]), &[]),
    rule("hostingRedirector", Content::Empty, &[Attr("bindingKey", Kind::Key, true)]),
    rule("identifierBag", Content::Parts(&[some(&["keyedReference"])]), &[]),
    rule("includeCount", Content::Int, &[]),
    rule(
        "instanceDetails",
        Content::Some(&[any(&["description"]), any(&["overviewDoc"]), maybe(&["instanceParms"])]),
        &[],
    ),
    rule("instanceParms", Content::Text(1, 8192, false), &[]),
    rule(
        "keyedReference",
        Content::Empty,
        &[
            Attr("tModelKey", Kind::Key, true),
            Attr("keyName", Kind::Short(255), false),
            Attr("keyValue", Kind::Short(255), true),
        ],
    ),
    rule(
        "keyedReferenceGroup",
        Content::Parts(&[any(&["keyedReference"])]),
        &[Attr("tModelKey", Kind::Key, true)],
    ),
    rule(
        "listDescription",
        Content::Parts(&[one(&["includeCount"]), one(&["actualCount"]), one(&["listHead"])]),
        &[],
    ),
    rule("listHead", Content::Int, &[]),
    rule("modified", Content::Time, &[]),
    rule("modifiedIncludingChildren", Content::Time, &[]),
    rule("name", LINE, &[LANG]),
    rule("nodeID", KEY, &[]),
    rule(
        "operationalInfo",
        Content::Parts(&[
            maybe(&["created"]),
            maybe(&["modified"]),
            maybe(&["modifiedIncludingChildren"]),
            maybe(&["nodeID"]),
            maybe(&["authorizedName"]),
        ]),
        &[Attr("entityKey", Kind::Key, true)],
    ),
    rule("operationalInfos", Content::Parts(&[any(&["operationalInfo"])]), &[TRUNCATED]),
    rule("overviewDoc", Content::Some(&[any(&["description"]), maybe(&["overviewURL"])]), &[]),
    rule("overviewURL", URL, &[USE]),
    rule("personName", LINE, &[LANG]),
    rule("phone", Content::Text(1, 50, true), &[USE]),
    rule(
        "result",
        Content::Parts(&[maybe(&["errInfo"])]),
        &[Attr("keyType", Kind::Short(255), false), Attr("errno", Kind::Int, true)],
    ),
    rule("save_binding", Content::Parts(&[AUTH, some(&["bindingTemplate"])]), &[]),
    rule("save_business", Content::Parts(&[AUTH, some(&["businessEntity"])]), &[]),
    rule("save_service", Content::Parts(&[AUTH, some(&["businessService"])]), &[]),
    rule("save_tModel", Content::Parts(&[AUTH, some(&["tModel"])]), &[]),
    rule("serviceDetail", Content::Parts(&[any(&["businessService"])]), &[TRUNCATED]),
    rule(
        "serviceInfo",
        Content::Parts(&[any(&["name"])]),
        &[Attr("serviceKey", Kind::Key, true), Attr("businessKey", Kind::Key, true)],
    ),
    rule("serviceInfos", Content::Parts(&[some(&["serviceInfo"])]), &[]),
    rule("serviceKey", KEY, &[]),
    rule(
        "serviceList",
        Content::Parts(&[maybe(&["listDescription"]), maybe(&["serviceInfos"])]),
        &[TRUNCATED],
    ),
    rule(
        "tModel",
        Content::Parts(&[
            one(&["name"]),
            any(&["description"]),
            any(&["overviewDoc"]),
            maybe(&["identifierBag"]),
            maybe(&["categoryBag"]),
        ]),
        &[Attr("tModelKey", Kind::Key, false), Attr("deleted", Kind::Bool, false)],
    ),
    rule("tModelBag", Content::Parts(&[some(&["tModelKey"])]), &[]),
    rule("tModelDetail", Content::Parts(&[any(&["tModel"])]), &[TRUNCATED]),
    rule(
        "tModelInfo",
        Content::Parts(&[one(&["name"]), any(&["description"])]),
        &[Attr("tModelKey", Kind::Key, true)],
    ),
    rule("tModelInfos", Content::Parts(&[some(&["tModelInfo"])]), &[]),
    rule("tModelInstanceDetails", Content::Parts(&[some(&["tModelInstanceInfo"])]), &[]),
    rule(
        "tModelInstanceInfo",
        Content::Parts(&[any(&["description"]), maybe(&["instanceDetails"])]),
        &[Attr("tModelKey", Kind::Key, true)],
    ),
    rule("tModelKey", KEY, &[]),
    rule(
        "tModelList",
        Content::Parts(&[maybe(&["listDescription"]), maybe(&["tModelInfos"])]),
        &[TRUNCATED],
    ),
    rule("toKey", KEY, &[]),
];

/// The rule of an element.
pub(super) fn find(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.name == name)
}

/// Checks an element with all that is in it, and collapses white space where the schema does.
///
/// # Errors
/// The first that is not as the table has it: malformed, or a value out of its bounds.
pub(super) fn check(element: &mut Element) -> Result<(), Refusal> {
    let name = shown(&element.name);
    if element.namespace.as_deref() != Some(NAMESPACE) {
        if element.name == "Signature" {
            let line = "signatures are not kept; send the entity without";
            return Err(Refusal::new(Reason::Unsupported, line));
        }
        let line = format!("'{name}' is not of namespace {NAMESPACE}");
        return Err(Refusal::malformed(line));
    }
    let rule = find(&element.name)
        .ok_or_else(|| Refusal::malformed(format!("'{name}' is no element of UDDI here")))?;
    check_attributes(element, rule)?;
    match rule.content {
        Content::Text(min, max, is_collapsed) => {
            no_children(element)?;
            if is_collapsed {
                element.text = collapsed(&element.text);
            }
            check_length(rule.name, &element.text, min, max)
        }
        Content::Int => no_children(element).and_then(|()| number(rule.name, &element.text)),
        Content::Time => no_children(element),
        Content::Empty => no_children(element).and_then(|()| no_text(element)),
        Content::Parts(parts) => check_parts(element, parts),
        Content::Some(parts) => {
            if element.children.is_empty() {
                return Err(Refusal::malformed(format!("'{name}' is empty")));
            }
            check_parts(element, parts)
        }
    }
}

fn no_children(element: &Element) -> Result<(), Refusal> {
    match element.children.first() {
        None => Ok(()),
        Some(child) => {
            let line = format!("'{}' is not for '{}'", shown(&child.name), element.name);
            Err(Refusal::malformed(line))
        }
    }
}

fn no_text(element: &mut Element) -> Result<(), Refusal> {
    if !element.text.trim().is_empty() {
        return Err(Refusal::malformed(format!("text in '{}', which has none", element.name)));
    }
    element.text.clear();
    Ok(())
}

fn check_parts(element: &mut Element, parts: &[Part]) -> Result<(), Refusal> {
    no_text(element)?;
    let (mut at, mut count) = (0, 0);
    for child in &mut element.children {
        loop {
            let Some(part) = parts.get(at) else {
                let line = format!("'{}' does not belong here", shown(&child.name));
                return Err(Refusal::malformed(format!("{line} in '{}'", element.name)));
            };
            let fits = part.names.contains(&child.name.as_str());
            if fits && (part.is_many || count == 0) {
                count += 1;
                break;
            }
            missing(&element.name, part, count)?;
            (at, count) = (at + 1, 0);
        }
        check(child)?;
    }
    for part in parts.get(at..).unwrap_or_default() {
        missing(&element.name, part, count)?;
        count = 0;
    }
    Ok(())
}

fn missing(name: &str, part: &Part, count: usize) -> Result<(), Refusal> {
    if count >= part.min {
        return Ok(());
    }
    Err(Refusal::malformed(format!("'{name}' has no {}", part.names.join(" or "))))
}

fn check_attributes(element: &mut Element, rule: &Rule) -> Result<(), Refusal> {
    for attribute in &mut element.attributes {
        let is_lang = attribute.namespace.as_deref() == Some(XML_NAMESPACE);
        let found = rule.attributes.iter().find(|Attr(name, kind, _)| {
            *name == attribute.name
                && (*kind == Kind::Lang) == is_lang
                && (is_lang || attribute.namespace.is_none())
        });
        let name = shown(&attribute.name);
        let Some(Attr(of, kind, _)) = found else {
            return Err(Refusal::malformed(format!("'{}' has no attribute '{name}'", rule.name)));
        };
        let value = &mut attribute.value;
        match kind {
            Kind::Key => {
                *value = collapsed(value);
                check_length(of, value, 0, 255)?;
            }
            Kind::Short(max) => {
                *value = collapsed(value);
                check_length(of, value, 0, *max)?;
            }
            Kind::Free => check_length(of, value, 0, MAX_FREE_CHARS)?,
            Kind::Int => number(of, value)?,
            Kind::Bool if ["true", "false", "1", "0"].contains(&value.trim()) => {}
            Kind::Bool => {
                let line = format!("{of} is '{}', not true or false", shown(value));
                return Err(Refusal::malformed(line));
            }
            Kind::Lang if is_language(value) => {}
            Kind::Lang => {
                let line = format!("xml:lang: '{}' is no language, as en-US is", shown(value));
                return Err(Refusal::value(line));
            }
        }
    }
    for Attr(name, _, is_required) in rule.attributes {
        if *is_required && element.attribute(name).is_none() {
            let line = format!("'{}' has no attribute '{name}'", rule.name);
            return Err(Refusal::malformed(line));
        }
    }
    Ok(())
}

/// RFC 3066 §2.1, within the 26 characters that UDDI v3.0.2 §3.2 has for it.
fn is_language(value: &str) -> bool {
    let mut parts = value.split('-');
    let is_part = |part: &str| (1..=8).contains(&part.len());
    value.len() <= 26
        && parts
            .next()
            .is_some_and(|one| is_part(one) && one.bytes().all(|byte| byte.is_ascii_alphabetic()))
        && parts.all(|one| is_part(one) && one.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

fn number(name: &str, text: &str) -> Result<(), Refusal> {
    match text.trim().parse::<i32>() {
        Ok(_) => Ok(()),
        Err(_) => Err(Refusal::malformed(format!("{name} is '{}', no whole number", shown(text)))),
    }
}

fn check_length(name: &str, text: &str, min: usize, max: usize) -> Result<(), Refusal> {
    let count = text.chars().count();
    if count < min {
        return Err(Refusal::value(format!("{name} is empty; it needs a character at least")));
    }
    if count > max {
        let reason = if name == "name" { Reason::NameTooLong } else { Reason::ValueNotAllowed };
        let line = format!("{name} has {count} characters, over the limit of {max}");
        return Err(Refusal::new(reason, line));
    }
    Ok(())
}

/// White space as `whiteSpace="collapse"` leaves it (XML Schema 1.0 part 2 §4.3.6).
pub(crate) fn collapsed(text: &str) -> String {
    let words = text.split([' ', '\t', '\r', '\n']).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}
