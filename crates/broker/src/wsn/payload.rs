//! Payloads of every protocol as the one element that `wsnt:Message` holds, and back
//! (WS-BaseNotification 1.3, `NotificationMessageHolderType`).

use bytes::Bytes;
use codec::xml::{Writer, escape, is_text, to_utf8};

use super::base64;
use super::names::LW;
use super::tree::{NodeId, Tree};
use crate::publication::Form;

/// Longest content type that is taken from a wrapper.
const MAX_CONTENT_TYPE_BYTES: usize = 1024;
const TEXT: &str = "Text";
const BINARY: &str = "Binary";
const CONTENT_TYPE: &str = "contentType";

/// A payload and what is said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Payload {
    /// Its bytes.
    pub(crate) bytes: Bytes,
    /// What they are.
    pub(crate) form: Form,
    /// The media type.
    pub(crate) content_type: Option<String>,
}

/// Whether a media type is one of XML (RFC 7303 §9).
fn is_xml(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    essence == "application/xml" || essence == "text/xml" || essence.ends_with("+xml")
}

/// Whether a media type is one of text that people read.
fn is_textual(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    essence.starts_with("text/") || essence == "application/json" || essence.ends_with("+json")
}

/// The element of a payload: XML as it is without its prolog; text in `lw:Text`; anything else in
/// base64 in `lw:Binary`.
#[must_use]
pub(crate) fn to_element(payload: &[u8], form: Form, content_type: Option<&str>) -> String {
    if (form == Form::Xml || content_type.is_some_and(is_xml))
        && let Some(element) = root_element(payload)
    {
        return element;
    }
    let textual = form == Form::Text || content_type.is_some_and(is_textual);
    if textual
        && let Ok(text) = std::str::from_utf8(payload)
        && is_text(text)
    {
        return wrap(TEXT, text, content_type);
    }
    wrap(BINARY, &base64::encode(payload), content_type)
}

/// The root element of a document that is well-formed and has no document type.
fn root_element(payload: &[u8]) -> Option<String> {
    let text = to_utf8(payload, &codec::Limits::default()).ok()?;
    let tree = Tree::parse(&text).ok()?;
    Some(tree.source(tree.root()).to_owned())
}

fn wrap(local: &str, text: &str, content_type: Option<&str>) -> String {
    let mut out = Vec::with_capacity(text.len() + 80);
    out.extend_from_slice(b"<lw:");
    out.extend_from_slice(local.as_bytes());
    out.extend_from_slice(b" xmlns:lw=\"");
    out.extend_from_slice(LW.as_bytes());
    if let Some(content_type) = content_type.filter(|of| is_text(of)) {
        out.extend_from_slice(b"\" contentType=\"");
        escape(content_type, true, &mut out);
    }
    out.extend_from_slice(b"\">");
    escape(text, false, &mut out);
    out.extend_from_slice(b"</lw:");
    out.extend_from_slice(local.as_bytes());
    out.push(b'>');
    String::from_utf8(out).unwrap_or_default()
}

/// The payload that an element is: what `lw:Text`, `lw:Binary` or a bare `Content` of other
/// mediators wraps, else the element itself with the namespaces in scope.
///
/// # Errors
/// What is wrong with a wrapper.
pub(crate) fn of_element(tree: &Tree<'_>, element: NodeId) -> Result<Payload, &'static str> {
    let name = tree.name(element);
    let content_type = tree.attribute(element, "", CONTENT_TYPE).map(str::to_owned);
    if content_type.as_ref().is_some_and(|of| of.len() > MAX_CONTENT_TYPE_BYTES) {
        return Err("a content type has at most 1,024 bytes");
    }
    let is_leaf = tree.elements(element).next().is_none();
    match (name.uri, name.local) {
        (LW, TEXT) if is_leaf => {
            let bytes = Bytes::from(tree.text(element).into_owned());
            Ok(Payload { bytes, form: Form::Text, content_type })
        }
        (LW, BINARY) if is_leaf => {
            let bytes = base64::decode(&tree.text(element));
            let bytes = bytes.ok_or("lw:Binary is not in base64")?;
            Ok(Payload { bytes: bytes.into(), form: Form::Bytes, content_type })
        }
        (LW, TEXT | BINARY) => Err("lw:Text and lw:Binary hold text only"),
        // What the mediator of IST-150 puts around text.
        ("", "Content") if is_leaf && tree.attributes(element).is_empty() => {
            let bytes = Bytes::from(tree.text(element).into_owned());
            Ok(Payload { bytes, form: Form::Text, content_type: None })
        }
        _ => Ok(Payload {
            bytes: tree.standalone(element).into(),
            form: Form::Xml,
            content_type: Some("application/xml".to_owned()),
        }),
    }
}

/// Appends properties as the header `lw:Properties`.
pub(crate) fn write_properties(writer: &mut Writer, properties: &[(String, String)]) {
    writer.start("lw:Properties");
    writer.namespace("lw", LW);
    for (name, value) in properties.iter().filter(|(name, value)| is_text(name) && is_text(value)) {
        writer.start("lw:Property");
        writer.attribute("name", name);
        writer.text(value);
        writer.end("lw:Property");
    }
    writer.end("lw:Properties");
}
