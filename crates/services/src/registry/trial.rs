//! What comes from outside, given to a registry that has nothing: for tests with any bytes.

use std::sync::Arc;
use std::time::Duration;

use super::core::{Change, Core, Limits, Publication};
use super::refusal::Refusal;
use super::uddi::{self, Call};
use super::{directory, document, links};

/// By which face bytes come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    /// An envelope of SOAP with a message of UDDI.
    Uddi,
    /// The answer of a registry of UDDI, as a client reads it.
    UddiAnswer,
    /// A service in JSON.
    Json,
    /// Links of the resource directory.
    Links,
    /// A query of it, its pairs on lines.
    Query,
}

impl Face {
    /// All faces.
    pub const ALL: [Self; 5] = [Self::Uddi, Self::UddiAnswer, Self::Json, Self::Links, Self::Query];
}

/// Gives bytes to an empty registry. What is published is read back from what the store would have.
///
/// # Errors
/// Where the registry refuses them.
///
/// # Panics
/// Where what is published is not what is stored: a fault of ours.
pub fn take(face: Face, bytes: &[u8]) -> Result<(), Refusal> {
    let text = String::from_utf8_lossy(bytes);
    let (mut core, now) = (Core::new(Limits::default(), []), Duration::from_secs(1_773_468_000));
    let owner: Arc<str> = "alice".into();
    let mut last: u32 = 0;
    let mut chance = || {
        last += 1;
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&last.to_be_bytes());
        bytes
    };
    let inquiry = match face {
        Face::Uddi => match uddi::request(&text) {
            Ok(request) if Call::of(&request.name)? == Call::Publication => Err(request),
            Ok(request) if Call::of(&request.name)? == Call::Inquiry => {
                return uddi::inquire(&core, now, &request).map(drop);
            }
            Ok(_) => return Ok(()),
            Err(fault) => {
                let answer = uddi::fault(&fault);
                return Err(Refusal::malformed(answer));
            }
        },
        Face::UddiAnswer => {
            let message = uddi::answer(&text).map_err(Refusal::malformed)?;
            let _ = (uddi::service_keys(&message), uddi::services_of(&message));
            return Ok(());
        }
        _ => Ok(()),
    };
    let mut all = Publication::new(&mut core, now, &owner, &mut chance);
    match (face, inquiry) {
        (_, Err(request)) => uddi::publish(&mut all, now, &request).map(drop)?,
        (Face::Json, _) => {
            document::save(&mut all, now, None, &document::parse(bytes)?).map(drop)?
        }
        (Face::Links, _) => {
            let links = links::parse(&text).map_err(Refusal::malformed)?;
            let query = [("ep".to_owned(), "a".to_owned())];
            directory::register(&mut all, now, &query, &links, Some("coap://192.0.2.1"))?;
        }
        (_, _) => {
            let pair = |line: &str| {
                let (name, value) = line.split_once('=').unwrap_or((line, ""));
                (name.to_owned(), value.to_owned())
            };
            let query: Vec<_> = text.lines().map(pair).collect();
            let links = [links::Link::to("/a").with("rt", "b")];
            directory::register(&mut all, now, &query, &links, Some("coap://192.0.2.1"))?;
        }
    }
    for change in all.finish() {
        let Change::Put(entity) = change else { continue };
        let kept = uddi::of_document(uddi::kind_number(entity.kind()), &uddi::document(&entity));
        assert!(kept.is_ok(), "{kept:?} of {entity:?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_taken_or_refused(text in "[<>/a-z=\"' {}:,;0-9é\u{1}]{0,200}") {
            for face in Face::ALL {
                let _ = take(face, text.as_bytes());
            }
        }

        /// Values that are taken by any face can be stored and read again.
        #[test]
        fn what_is_published_can_be_stored(
            text in "\\PC{0,40}", other in "[ \t\r\n\u{0}-\u{1f}a\"<]{0,20}",
        ) {
            for text in [&text, &other] {
                let json = serde_json::json!({
                    "name": text, "kind": text, "url": text, "description": text,
                    "attributes": { text.as_str(): text },
                });
                let _ = take(Face::Json, json.to_string().as_bytes());
                let quoted = text.replace(['"', '\\'], "");
                let links = format!("<{quoted}>;rt=\"{quoted}\";x=\"{quoted}\"");
                let _ = take(Face::Links, links.as_bytes());
                let query = format!("ep={text}\nd={text}\nx={text}\nbase=coap://{text}");
                let _ = take(Face::Query, query.as_bytes());
            }
        }
    }
}
