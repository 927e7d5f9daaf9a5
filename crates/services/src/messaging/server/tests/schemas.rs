//! The documents that describe the others agree with the tables.

use serde_json::Value;

use super::super::http::{CDDL, JSON_SCHEMA, OPENAPI};
use super::super::route::ROUTES;
use crate::messaging::fields::{Kind, Layout};
use crate::messaging::forms::{Form, SCHEMA};
use crate::messaging::message::MESSAGE;
use crate::messaging::receipt::RECEIPT;

/// The routes of the description are those of the service, with the same statuses' reasons.
#[test]
fn the_description_has_the_routes_of_the_service() {
    let openapi: Value = serde_json::from_str(OPENAPI).unwrap();
    let mut described = Vec::new();
    for (path, methods) in openapi["paths"].as_object().unwrap() {
        for (method, of) in methods.as_object().unwrap() {
            if method == "parameters" {
                continue;
            }
            described.push((method.to_uppercase(), path.clone()));
            let wants_content = of.get("requestBody").is_some();
            let types = of["requestBody"]["content"].as_object();
            if let (true, Some(types)) = (wants_content, types) {
                let types: Vec<&str> = types.keys().map(String::as_str).collect();
                assert_eq!(types, Form::ALL.map(Form::media_type), "{path}");
            }
        }
    }
    let mut served: Vec<(String, String)> =
        ROUTES.iter().map(|route| (route.method.to_owned(), route.path.to_owned())).collect();
    described.sort();
    served.sort();
    assert_eq!(described, served);
}

/// Names and keys that a `$defs` of the JSON Schema has.
fn defined(schema: &Value, name: &str) -> (Vec<String>, Vec<String>) {
    let of = &schema["$defs"][name];
    let properties = of["properties"].as_object().unwrap().keys().cloned().collect();
    let required = of["required"].as_array().unwrap();
    let required = required.iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    assert_eq!(of["additionalProperties"], false);
    (properties, required)
}

#[test]
fn the_json_schema_has_the_fields_of_the_documents() {
    let schema: Value = serde_json::from_str(JSON_SCHEMA).unwrap();
    for layout in [&MESSAGE, &RECEIPT] {
        let (properties, required) = defined(&schema, layout.name);
        let names: Vec<&str> = layout.fields.iter().map(|field| field.name).collect();
        assert_eq!(properties, names);
        let fields = layout.fields.iter().filter(|field| field.required);
        assert_eq!(required, fields.map(|field| field.name).collect::<Vec<_>>());
        for field in layout.fields {
            let of = &schema["$defs"][layout.name]["properties"][field.name];
            let of = match of["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
                Some(name) if field.kind != Kind::Text => &schema["$defs"][name],
                _ => of,
            };
            match field.kind {
                Kind::Word(words) => assert_eq!(of["enum"], serde_json::json!(words)),
                Kind::Number(max) => assert_eq!(of["maximum"], max),
                Kind::Tokens(max) => assert_eq!(of["maxItems"], max),
                Kind::Bytes(len) => {
                    assert!(of["pattern"].as_str().unwrap().contains(&(2 * len).to_string()));
                }
                Kind::Time => assert_eq!(of["format"], "date-time"),
                Kind::Token => assert!(of["pattern"].is_string()),
                Kind::Pairs => assert_eq!(of["type"], "object"),
                Kind::Text => assert_eq!(of["$ref"], "#/$defs/text"),
            }
        }
    }
    let (draft, required) = defined(&schema, "draft");
    let fields = MESSAGE.fields.iter().map(|field| field.name);
    let given = fields.filter(|name| !["code", "hops", "recipients"].contains(name));
    assert_eq!(draft, given.collect::<Vec<_>>());
    assert_eq!(required, ["addressees"]);
}

/// Lines of a rule of the CDDL: key, whether it may be left out, and the field's name behind `;`.
fn rules(layout: &Layout) -> Vec<(u64, bool, String, String)> {
    let begin = format!("{} = {{\n", layout.name);
    let body = CDDL.split_once(&begin).unwrap().1.split_once("\n}").unwrap().0;
    let rule = |line: &str| {
        let (rule, name) = line.split_once(';').unwrap();
        let rule = rule.trim().trim_end_matches(',');
        let is_optional = rule.starts_with('?') && !name.contains("between nodes");
        let (key, of) = rule.trim_start_matches("? ").split_once(": ").unwrap();
        let name = name.trim().trim_end_matches(", between nodes");
        (key.parse().unwrap(), is_optional, of.to_owned(), name.to_owned())
    };
    body.lines().map(rule).collect()
}

#[test]
fn the_cddl_has_the_fields_of_the_documents() {
    for layout in [&MESSAGE, &RECEIPT] {
        let rules = rules(layout);
        assert_eq!(rules.len(), layout.fields.len());
        for ((key, is_optional, of, name), field) in rules.iter().zip(layout.fields) {
            assert_eq!((*key, name.as_str()), (field.key, field.name));
            assert_eq!(*is_optional, !field.required, "{name}");
            match field.kind {
                Kind::Tokens(max) => assert!(of.contains(&format!("*{max} name")), "{name}"),
                Kind::Number(max) => assert_eq!(*of, format!("1..{max}")),
                Kind::Time => assert_eq!(of, "time-ms"),
                Kind::Token => assert_eq!(of, "name"),
                Kind::Text => assert_eq!(of, "text"),
                Kind::Pairs => assert!(of.contains("name => text"), "{of}"),
                Kind::Bytes(len) => {
                    assert!(CDDL.contains(&format!("{of} = bstr .size {len}\n")), "{of}");
                }
                Kind::Word(words) => {
                    let words: Vec<String> = (0..)
                        .zip(words)
                        .map(|(at, word): (i32, _)| format!("{word}: {at}"))
                        .collect();
                    assert!(CDDL.contains(&format!("{of} = &({})", words.join(", "))), "{of}");
                }
            }
        }
    }
}

/// The XML Schema is what EXI is made by, so each field that it lacks cannot be said in EXI; here
/// are its order and its bounds.
#[test]
fn the_xml_schema_has_the_fields_of_the_documents() {
    for layout in [&MESSAGE, &RECEIPT] {
        let begin = format!("<xs:element name=\"{}\">", layout.name);
        let part = SCHEMA.split_once(&begin).unwrap().1.split_once("</xs:sequence>").unwrap().0;
        let elements: Vec<&str> = part
            .lines()
            .filter_map(|line| line.split_once("<xs:element "))
            .map(|(_, of)| of)
            .collect();
        assert_eq!(elements.len(), layout.fields.len());
        for (element, field) in elements.iter().zip(layout.fields) {
            assert!(element.starts_with(&format!("name=\"{}\"", field.element)), "{element}");
            if let Kind::Tokens(max) = field.kind {
                assert!(element.contains(&format!("maxOccurs=\"{max}\"")), "{element}");
            }
            if let Kind::Word(words) = field.kind {
                for word in words {
                    assert!(SCHEMA.contains(&format!("<xs:enumeration value=\"{word}\"/>")));
                }
            }
        }
    }
}
