//! SOAP requests, read without allocation: SOAP 1.1 §4 and SOAP 1.2 part 1 §5.

#![allow(clippy::result_large_err, reason = "a refusal's line is in place: nothing here allocates")]

use std::fmt::Write as _;
use std::str::FromStr;

use crate::tracks::soap::Version;
use crate::xml::{Malformed, Piece, Scanner, Tag};

use super::entity::{Entity, MAX_ENTITIES, MAX_ID, MAX_NAME_BYTES, Message, Short};
use super::line::{Line, quote};

/// Namespace of the service's own elements.
pub const NAMESPACE: &str = "urn:longwire:realtime:1";
/// `SOAPAction` in SOAP 1.1, `action` in SOAP 1.2.
pub const ACTION: &str = "urn:longwire:realtime:1#Process";
/// Longest value of an element, in bytes.
const MAX_VALUE_BYTES: usize = 64;
/// Most bytes of the line that says why a request is refused.
const MAX_REASON_BYTES: usize = 200;

/// Why a message was not processed (SOAP 1.1 §4.4.1, SOAP 1.2 part 1 §5.4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The envelope is of neither version.
    VersionMismatch,
    /// A mandatory header block is meant for this node, which does not know it.
    MustUnderstand,
    /// The message is wrong.
    Sender,
    /// The message is right and cannot be taken now.
    Receiver,
}

/// Why a request is answered with a fault.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// What kind.
    pub code: Code,
    /// One line: the value, the limit, the remedy.
    pub reason: Line<MAX_REASON_BYTES>,
}

impl Refusal {
    /// Of a wrong message.
    #[must_use]
    pub fn sender(reason: std::fmt::Arguments<'_>) -> Self {
        Self { code: Code::Sender, reason: Line::of(reason) }
    }

    /// Of a message that cannot be taken now.
    #[must_use]
    pub fn receiver(reason: std::fmt::Arguments<'_>) -> Self {
        Self { code: Code::Receiver, reason: Line::of(reason) }
    }
}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Self {
        Self::sender(format_args!("{malformed}"))
    }
}

type Result<T> = std::result::Result<T, Refusal>;

/// Reads a request into `message`; returns the class that its header asks for, if it does.
///
/// # Errors
/// [`Refusal`] for what is not a request in `version`; `message` holds anything then.
pub fn read(body: &[u8], version: Version, message: &mut Message) -> Result<Option<usize>> {
    message.clear();
    let text = std::str::from_utf8(body).map_err(|error| {
        let at = error.valid_up_to();
        Refusal::sender(format_args!("the content is not UTF-8 at byte {at}; send UTF-8"))
    })?;
    let mut scanner = Scanner::new(text);
    let envelope = match scanner.next_piece()? {
        Piece::Start(tag) if tag.name == "Envelope" => tag,
        _ => return Err(Refusal::sender(format_args!("the root element is no SOAP envelope"))),
    };
    let found = Version::of_namespace(envelope.namespace);
    let Some(found) = found else {
        let reason = format_args!("the envelope is of neither SOAP 1.1 nor SOAP 1.2");
        return Err(Refusal { code: Code::VersionMismatch, reason: Line::of(reason) });
    };
    if found != version {
        let media = found.media_type();
        return Err(Refusal::sender(format_args!("the envelope belongs with {media}; send that")));
    }
    let mut class = None;
    let mut part = child(&mut scanner)?;
    if let Some(header) = part
        && is_soap(&header, version, "Header")
    {
        class = read_header(&mut scanner, version)?;
        part = child(&mut scanner)?;
    }
    match part {
        Some(body) if is_soap(&body, version, "Body") => {}
        _ => return Err(Refusal::sender(format_args!("the envelope has no Body"))),
    }
    read_body(&mut scanner, message)?;
    if let Some(more) = child(&mut scanner)? {
        let name = quote(more.name);
        let name = name.as_str();
        return Err(Refusal::sender(format_args!("element '{name}' behind Body; leave it out")));
    }
    match scanner.next_piece()? {
        Piece::Over => Ok(class),
        _ => Err(Refusal::sender(format_args!("something behind the envelope"))),
    }
}

fn is_soap(tag: &Tag<'_>, version: Version, name: &str) -> bool {
    tag.name == name && tag.namespace == version.namespace()
}

/// The next element within the one that is open; `None` where that one ends.
fn child<'a>(scanner: &mut Scanner<'a>) -> Result<Option<Tag<'a>>> {
    loop {
        match scanner.next_piece()? {
            Piece::Start(tag) => return Ok(Some(tag)),
            Piece::End | Piece::Over => return Ok(None),
            Piece::Text(text) if text.trim_ascii().is_empty() => {}
            Piece::Text(text) => {
                let text = quote(text);
                let text = text.as_str();
                return Err(Refusal::sender(format_args!("text '{text}' between elements")));
            }
            Piece::Character(_) => {
                return Err(Refusal::sender(format_args!("text between elements")));
            }
        }
    }
}

/// Reads the blocks of a header; what is not known and must be understood ends it.
fn read_header(scanner: &mut Scanner<'_>, version: Version) -> Result<Option<usize>> {
    let mut class = None;
    while let Some(block) = child(scanner)? {
        if block.namespace == NAMESPACE && block.name == "Class" {
            let mut room = Value::default();
            let value: usize = room.number(scanner, "Class")?;
            if class.replace(value).is_some() {
                return Err(Refusal::sender(format_args!("two of header Class; send one")));
            }
            continue;
        }
        if must_understand(&block, version) {
            let name = quote(block.name);
            let name = name.as_str();
            let reason = format_args!("header '{name}' must be understood and is not known");
            return Err(Refusal { code: Code::MustUnderstand, reason: Line::of(reason) });
        }
        scanner.skip()?;
    }
    Ok(class)
}

/// SOAP 1.1 §4.2.2, §4.2.3; SOAP 1.2 part 1 §5.2.2, §5.2.3: of blocks for the next or last node.
fn must_understand(block: &Tag<'_>, version: Version) -> bool {
    let namespace = version.namespace();
    let demanded = block.attribute(namespace, "mustUnderstand");
    let (role, known): (_, &[&str]) = match version {
        Version::Soap11 => ("actor", &["", "http://schemas.xmlsoap.org/soap/actor/next"]),
        Version::Soap12 => (
            "role",
            &[
                "",
                "http://www.w3.org/2003/05/soap-envelope/role/next",
                "http://www.w3.org/2003/05/soap-envelope/role/ultimateReceiver",
            ],
        ),
    };
    let is_for_us = block.attribute(namespace, role).is_none_or(|role| known.contains(&role));
    is_for_us && matches!(demanded.map(str::trim_ascii), Some("1" | "true"))
}

fn read_body(scanner: &mut Scanner<'_>, message: &mut Message) -> Result<()> {
    match child(scanner)? {
        Some(tag) if tag.namespace == NAMESPACE && tag.name == "Process" => {}
        Some(tag) => {
            let name = quote(tag.name);
            let name = name.as_str();
            return Err(Refusal::sender(format_args!(
                "no operation '{name}'; the one there is: Process of {NAMESPACE}"
            )));
        }
        None => return Err(Refusal::sender(format_args!("the Body is empty; send Process"))),
    }
    let mut seen = [false; 2];
    let mut room = Value::default();
    while let Some(tag) = child(scanner)? {
        let is_ours = tag.namespace == NAMESPACE;
        match tag.name {
            "sequence" if is_ours && !seen[0] && message.entities().is_empty() => {
                seen[0] = true;
                message.sequence = room.number(scanner, "sequence")?;
            }
            "sentNs" if is_ours && !seen[1] && message.entities().is_empty() => {
                seen[1] = true;
                message.sent_ns = room.number(scanner, "sentNs")?;
            }
            "entity" if is_ours => {
                let entity = read_entity(scanner)?;
                if !message.push(entity) {
                    return Err(Refusal::sender(format_args!(
                        "more than {MAX_ENTITIES} entities in a message; send fewer"
                    )));
                }
            }
            other => {
                let name = quote(other);
                let name = name.as_str();
                return Err(Refusal::sender(format_args!(
                    "element '{name}' of Process is unknown, twice or behind an entity"
                )));
            }
        }
    }
    if message.entities().is_empty() {
        return Err(Refusal::sender(format_args!("a message without an entity; send 1 at least")));
    }
    match child(scanner)? {
        None => Ok(()),
        Some(_) => Err(Refusal::sender(format_args!("more than one element in Body; send one"))),
    }
}

/// Elements of an entity, in their order.
pub const FIELDS: [&str; 9] = [
    "id",
    "name",
    "kind",
    "latitudeDeg",
    "longitudeDeg",
    "altitudeM",
    "courseDeg",
    "speedMps",
    "timeMs",
];

fn read_entity(scanner: &mut Scanner<'_>) -> Result<Entity> {
    let mut entity = Entity::default();
    let mut room = Value::default();
    for (at, wanted) in FIELDS.into_iter().enumerate() {
        match child(scanner)? {
            Some(tag) if tag.namespace == NAMESPACE && tag.name == wanted => {}
            Some(tag) => {
                let name = quote(tag.name);
                let name = name.as_str();
                return Err(Refusal::sender(format_args!(
                    "element '{name}' in an entity where '{wanted}' is due"
                )));
            }
            None => {
                return Err(Refusal::sender(format_args!("an entity without '{wanted}'")));
            }
        }
        match at {
            0 => {
                entity.id = room.number(scanner, wanted)?;
                if entity.id >= MAX_ID {
                    let id = entity.id;
                    let most = MAX_ID - 1;
                    return Err(Refusal::sender(format_args!("id is {id}; choose 0 to {most}")));
                }
            }
            1 => entity.name = room.short(scanner, wanted)?,
            2 => entity.kind = room.short(scanner, wanted)?,
            3 => entity.latitude_deg = room.within(scanner, wanted, (-90.0, 90.0))?,
            4 => entity.longitude_deg = room.within(scanner, wanted, (-180.0, 180.0))?,
            5 => entity.altitude_m = room.within(scanner, wanted, (-1000.0, 100_000.0))?,
            6 => entity.course_deg = room.within(scanner, wanted, (0.0, 360.0))?,
            7 => entity.speed_mps = room.within(scanner, wanted, (0.0, 20_000.0))?,
            _ => entity.time_ms = room.number(scanner, wanted)?,
        }
    }
    match child(scanner)? {
        None => Ok(entity),
        Some(tag) => {
            let name = quote(tag.name);
            let name = name.as_str();
            Err(Refusal::sender(format_args!("element '{name}' behind timeMs of an entity")))
        }
    }
}

/// Room for the value of an element, which may come in pieces.
#[derive(Default)]
struct Value(Line<MAX_VALUE_BYTES>);

impl Value {
    /// The text of the element that is open, and goes behind its end.
    fn text(&mut self, scanner: &mut Scanner<'_>, name: &str) -> Result<&str> {
        self.0.clear();
        let mut length = 0_usize;
        loop {
            let mut one = [0; 4];
            let piece = match scanner.next_piece()? {
                Piece::Text(text) => text,
                Piece::Character(character) => &*character.encode_utf8(&mut one),
                Piece::End | Piece::Over => break,
                Piece::Start(_) => {
                    return Err(Refusal::sender(format_args!("an element within '{name}'")));
                }
            };
            length += piece.len();
            if length > MAX_VALUE_BYTES {
                return Err(Refusal::sender(format_args!(
                    "'{name}' is longer than {MAX_VALUE_BYTES} bytes; shorten it"
                )));
            }
            // It has room: the length was looked at.
            let _ = self.0.write_str(piece);
        }
        Ok(self.0.as_str().trim_matches([' ', '\t', '\r', '\n']))
    }

    fn number<N: FromStr>(&mut self, scanner: &mut Scanner<'_>, name: &str) -> Result<N> {
        let text = self.text(scanner, name)?;
        // A sign is none of what numbers of ours have.
        let number = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok());
        number.flatten().ok_or_else(|| {
            let text = quote(text);
            let text = text.as_str();
            Refusal::sender(format_args!("'{name}' is '{text}'; send a whole number in range"))
        })
    }

    fn within(
        &mut self,
        scanner: &mut Scanner<'_>,
        name: &str,
        (low, high): (f64, f64),
    ) -> Result<f64> {
        let text = self.text(scanner, name)?;
        // Letters but those of an exponent are of values that no range has.
        let is_plain = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
        let number = text.bytes().all(is_plain).then(|| text.parse().ok()).flatten();
        number.filter(|number| (low..=high).contains(number)).ok_or_else(|| {
            let text = quote(text);
            let text = text.as_str();
            Refusal::sender(format_args!("'{name}' is '{text}'; send {low} to {high}"))
        })
    }

    fn short(&mut self, scanner: &mut Scanner<'_>, name: &str) -> Result<Short> {
        let text = self.text(scanner, name)?;
        Short::of(text).ok_or_else(|| {
            let length = text.len();
            Refusal::sender(format_args!(
                "'{name}' is {length} bytes, over the limit of {MAX_NAME_BYTES}; shorten it"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: &str = "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/' \
                        xmlns:t='urn:longwire:realtime:1'>";
    const ENTITY: &str = "<t:entity><t:id>7</t:id><t:name>A &amp; <![CDATA[<B>]]></t:name>\
        <t:kind/><t:latitudeDeg> -1.5e1 </t:latitudeDeg><t:longitudeDeg>180</t:longitudeDeg>\
        <t:altitudeM>0</t:altitudeM><t:courseDeg>359.9</t:courseDeg><t:speedMps>1</t:speedMps>\
        <t:timeMs>18446744073709551615</t:timeMs></t:entity>";

    fn envelope(header: &str, body: &str) -> String {
        format!("{OPEN}{header}<s:Body>{body}</s:Body></s:Envelope>")
    }

    fn with(header: &str) -> Result<Option<usize>> {
        let text = envelope(header, &format!("<t:Process>{ENTITY}</t:Process>"));
        read(text.as_bytes(), Version::Soap11, &mut Message::default())
    }

    #[test]
    fn a_request_is_read_with_references_and_sections() {
        let body = format!(
            "<t:Process>\n<t:sequence>9</t:sequence><t:sentNs>8</t:sentNs>{ENTITY}\
             <!-- -->{ENTITY}</t:Process>"
        );
        let mut message = Message::default();
        let text = envelope("", &body);
        assert_eq!(read(text.as_bytes(), Version::Soap11, &mut message).unwrap(), None);
        assert_eq!((message.sequence, message.sent_ns), (9, 8));
        let [one, other] = message.entities() else { panic!("two entities") };
        assert_eq!(one, other);
        assert_eq!((one.id, one.name.as_str(), one.kind.as_str()), (7, "A & <B>", ""));
        assert_eq!((one.latitude_deg, one.time_ms), (-15.0, u64::MAX));
    }

    #[test]
    fn a_header_names_the_class_and_others_are_let_be() {
        let class = |text: &str| with(&format!("<s:Header>{text}</s:Header>"));
        assert_eq!(
            class("<t:Class>2</t:Class><o:x xmlns:o='urn:o'><o:y/></o:x>").unwrap(),
            Some(2)
        );
        let must = "<o:x xmlns:o='urn:o' s:mustUnderstand='1'";
        assert_eq!(class(&format!("{must}/>")).unwrap_err().code, Code::MustUnderstand);
        let next = "s:actor='http://schemas.xmlsoap.org/soap/actor/next'";
        assert_eq!(class(&format!("{must} {next}/>")).unwrap_err().code, Code::MustUnderstand);
        assert_eq!(class(&format!("{must} s:actor='urn:another'/>")).unwrap(), None);
        assert_eq!(class("<o:x xmlns:o='urn:o' s:mustUnderstand='0'/>").unwrap(), None);
        assert!(class("<t:Class>1</t:Class><t:Class>1</t:Class>").is_err());
        assert!(class("<t:Class>-1</t:Class>").is_err());
    }

    #[test]
    fn each_way_to_be_wrong_has_a_line_of_its_own() {
        let entity =
            |from: &str, to: &str| format!("<t:Process>{}</t:Process>", ENTITY.replace(from, to));
        let long = "x".repeat(65);
        let many = format!("<t:Process>{}</t:Process>", ENTITY.repeat(MAX_ENTITIES + 1));
        for (body, word) in [
            (String::new(), "the Body is empty"),
            ("<t:Process/>".to_owned(), "without an entity"),
            (format!("<t:Process>{ENTITY}</t:Process><t:Process/>"), "more than one element"),
            (
                format!("<t:Process>{ENTITY}<t:sequence>1</t:sequence></t:Process>"),
                "behind an entity",
            ),
            ("<t:Process>text</t:Process>".to_owned(), "text 'text' between"),
            (many, "more than 16 entities"),
            (entity("<t:id>7</t:id>", ""), "where 'id' is due"),
            (entity("<t:id>7", "<t:id>+7"), "'id' is '+7'"),
            (entity("<t:id>7", "<t:id>99999999999"), "whole number"),
            (entity("<t:kind/>", &format!("<t:kind>{long}</t:kind>")), "longer than 64"),
            (entity("<t:kind/>", &format!("<t:kind>{}</t:kind>", &long[..33])), "limit of 32"),
            (entity("<t:kind/>", "<t:kind><t:x/></t:kind>"), "within 'kind'"),
            (entity("180<", "180.1<"), "send -180 to 180"),
            (entity("180<", "NaN<"), "'longitudeDeg' is 'NaN'"),
            (entity("180<", "<"), "'longitudeDeg' is ''"),
            (entity("</t:entity>", "<t:more/></t:entity>"), "behind timeMs"),
            (entity("A &amp;", "A &nbsp;"), "nothing known"),
        ] {
            let text = envelope("", &body);
            let refusal = read(text.as_bytes(), Version::Soap11, &mut Message::default());
            let refusal = refusal.unwrap_err();
            assert_eq!(refusal.code, Code::Sender);
            let line = refusal.reason.as_str();
            assert!(line.contains(word) && !line.contains('\n'), "{word}: {line}");
        }
    }

    #[test]
    fn the_version_is_that_of_the_media_type() {
        let text = envelope("", &format!("<t:Process>{ENTITY}</t:Process>"));
        let mut message = Message::default();
        let twelve = text.replace(Version::Soap11.namespace(), Version::Soap12.namespace());
        assert!(read(twelve.as_bytes(), Version::Soap12, &mut message).is_ok());
        let wrong = read(twelve.as_bytes(), Version::Soap11, &mut message).unwrap_err();
        assert!(wrong.reason.as_str().contains("application/soap+xml"));
        let other = text.replace(Version::Soap11.namespace(), "urn:other");
        let wrong = read(other.as_bytes(), Version::Soap11, &mut message).unwrap_err();
        assert_eq!(wrong.code, Code::VersionMismatch);
        let wrong = read(b"\xff", Version::Soap11, &mut message).unwrap_err();
        assert!(wrong.reason.as_str().contains("not UTF-8 at byte 0"));
    }

    #[test]
    fn nothing_stands_around_the_body_but_a_header_before() {
        let body = format!("<s:Body><t:Process>{ENTITY}</t:Process></s:Body>");
        for inside in [format!("{body}<t:x/>"), format!("{body}{body}"), "<s:Header/>".to_owned()] {
            let text = format!("{OPEN}{inside}</s:Envelope>");
            assert!(read(text.as_bytes(), Version::Soap11, &mut Message::default()).is_err());
        }
        let behind = format!("{OPEN}{body}</s:Envelope><a/>");
        assert!(read(behind.as_bytes(), Version::Soap11, &mut Message::default()).is_err());
    }
}
