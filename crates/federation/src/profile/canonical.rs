//! The canonical form of a profile, which is what partners sign: JSON as RFC 8785 has it, of the
//! whole profile without its signatures, with every default written out.
//!
//! Of RFC 8785 only what is needed is here: names of members are ASCII and numbers are whole, below
//! 2^53.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use broker::FederationFlow;
use ring::digest::{SHA256, digest};

use super::{Partner, Profile, Revoked};
use crate::calendar;
use crate::key::to_hex;

/// A value of JSON.
enum Json {
    Text(String),
    Number(u64),
    Truth(bool),
    List(Vec<Json>),
    /// By the names of members, which RFC 8785 §3.2.3 sorts.
    Object(BTreeMap<&'static str, Json>),
}

impl Profile {
    /// The canonical form.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut text = String::new();
        self.json().write(&mut text);
        text
    }

    /// The SHA-256 of the canonical form in hexadecimal digits: what partners compare.
    #[must_use]
    pub fn digest(&self) -> String {
        to_hex(digest(&SHA256, self.canonical().as_bytes()).as_ref())
    }

    fn json(&self) -> Json {
        let partner = |partner: &Partner| {
            object([
                ("about", Some(text(&partner.about))),
                ("broker", partner.broker.as_deref().map(text)),
                ("key", Some(text(&partner.key.to_string()))),
                ("name", Some(text(&partner.name))),
            ])
        };
        let revoked = |revoked: &Revoked| {
            let key = text(&revoked.key.to_string());
            object([("key", Some(key)), ("reason", Some(text(&revoked.reason)))])
        };
        let id = |(id, topic): (&u16, &String)| {
            object([("id", Some(Json::Number((*id).into()))), ("topic", Some(text(topic)))])
        };
        let flow = |flow: &FederationFlow| {
            let about = self.flows_about.get(&flow.name).map_or("", String::as_str);
            of_flow(flow, about)
        };
        object([
            ("about", Some(text(&self.about))),
            ("flows", Some(Json::List(self.flows.iter().map(flow).collect()))),
            ("format", Some(Json::Number(1))),
            ("name", Some(text(&self.name))),
            ("partners", Some(Json::List(self.partners.iter().map(partner).collect()))),
            ("revoked", Some(Json::List(self.revoked.iter().map(revoked).collect()))),
            ("topic_ids", Some(Json::List(self.topic_ids.iter().map(id).collect()))),
            ("valid_from", Some(text(&calendar::text(self.valid_from_s)))),
            ("valid_until", Some(text(&calendar::text(self.valid_until_s)))),
            ("version", Some(Json::Number(self.version))),
        ])
    }
}

fn of_flow(flow: &FederationFlow, about: &str) -> Json {
    let terms = &flow.terms;
    let names = |names: &std::collections::BTreeSet<std::sync::Arc<str>>| {
        Json::List(names.iter().map(|name| text(name)).collect())
    };
    object([
        ("about", Some(text(about))),
        ("burst", Some(Json::Number(terms.burst.into()))),
        ("bytes_per_s", terms.bytes_per_s.map(Json::Number)),
        ("conflate", Some(Json::Truth(terms.conflate))),
        ("expiry_s", terms.expiry.map(|expiry| Json::Number(expiry.as_secs()))),
        ("from", Some(names(&flow.from))),
        ("max_bytes", Some(Json::Number(terms.max_bytes))),
        ("media_type", terms.media_type.as_deref().map(text)),
        ("messages_per_1000_s", Some(Json::Number(terms.messages_per_1000_s))),
        ("name", Some(text(&flow.name))),
        ("qos", Some(Json::Number(terms.max_grade.get().into()))),
        ("retain", Some(text(retain(terms.retain)))),
        ("to", Some(names(&flow.to))),
        ("topic", Some(text(&flow.topic))),
        ("urgency", Some(Json::Number(terms.urgency.get().into()))),
        ("via", flow.via.as_deref().map(text)),
    ])
}

/// How a file says whether messages are retained.
pub(crate) fn retain(retain: Option<bool>) -> &'static str {
    match retain {
        None => "as-published",
        Some(true) => "always",
        Some(false) => "never",
    }
}

fn text(text: &str) -> Json {
    Json::Text(text.to_owned())
}

/// The members that there are.
fn object<const N: usize>(members: [(&'static str, Option<Json>); N]) -> Json {
    Json::Object(members.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
}

impl Json {
    fn write(&self, out: &mut String) {
        match self {
            Self::Text(text) => write_text(text, out),
            Self::Number(number) => {
                let _ = write!(out, "{number}");
            }
            Self::Truth(truth) => {
                let _ = write!(out, "{truth}");
            }
            Self::List(list) => {
                out.push('[');
                for (at, value) in list.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    value.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (at, (name, value)) in members.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    write_text(name, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// A string with the escapes that RFC 8785 §3.2.2.2 has, and no other.
fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
