//! Keys of UDDI and who may give which (UDDI v3.0.2 §4.4).

use super::model::Key;
use super::refusal::{Reason, Refusal};
use crate::messaging::shown;

/// Longest key, in characters.
const MAX_KEY_CHARS: usize = 255;
/// What a key of a key generator ends in.
const GENERATOR: &str = ":keygenerator";
/// Partitions whose keys nobody may give: those of the standard, and of this registry.
const RESERVED: [&str; 2] = ["uddi:uddi.org", "uddi:longwire.example"];

/// What kind of a key it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A number that nobody has to hand out.
    Uuid,
    /// One of a partition, whose generator must be the publisher's.
    Derived { generator: Key },
    /// A generator: of a domain, or of a part of another partition.
    Generator { parent: Option<Key> },
}

/// The form of a key that is in lower case.
///
/// # Errors
/// What is no key of UDDI, or of a reserved partition.
pub(crate) fn form(key: &str) -> Result<Form, Refusal> {
    let refuse = |why: &str| {
        let line = format!("'{}' {why}; leave the key out to be given one", shown(key));
        Refusal::new(Reason::InvalidKeyPassed, line)
    };
    if key.chars().count() > MAX_KEY_CHARS {
        return Err(refuse("is longer than 255 characters"));
    }
    let rest = key.strip_prefix("uddi:").ok_or_else(|| refuse("does not begin with 'uddi:'"))?;
    let is_key = |byte: u8| byte.is_ascii_alphanumeric() || b";/?@&=+$,-_.!~*'()%#".contains(&byte);
    if !rest.split(':').all(|part| !part.is_empty() && part.bytes().all(is_key)) {
        return Err(refuse("has an empty part, or a character that keys have not"));
    }
    if is_uuid(rest) {
        return Ok(Form::Uuid);
    }
    let in_reserved = |of: &&&str| {
        key.strip_prefix(**of).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    };
    if let Some(of) = RESERVED.iter().find(in_reserved) {
        let line = format!("keys of {of} are this registry's own; choose another domain");
        return Err(Refusal::new(Reason::KeyUnavailable, line));
    }
    if let Some(partition) = key.strip_suffix(GENERATOR) {
        let parent = partition.rsplit_once(':').filter(|(before, _)| *before != "uddi");
        let parent = parent.map(|(before, _)| format!("{before}{GENERATOR}").into());
        return Ok(Form::Generator { parent });
    }
    let partition = key.rsplit_once(':').filter(|(before, _)| *before != "uddi");
    let partition = partition.map_or(key, |(before, _)| before);
    Ok(Form::Derived { generator: format!("{partition}{GENERATOR}").into() })
}

fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let fits = |(part, length): (&&str, usize)| {
        part.len() == length && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    parts.len() == 5 && parts.iter().zip([8, 4, 4, 4, 12]).all(fits)
}

/// A key of chance: a UUID of version 4 (RFC 9562 §5.4).
pub(crate) fn from_chance(mut bytes: [u8; 16]) -> Key {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut out = String::from("uddi:");
    for (at, byte) in bytes.into_iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        out.push_str(&format!("{byte:02x}"));
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_recognized() {
        let derived = |of: &str| Form::Derived { generator: of.into() };
        let generator = |of: Option<&str>| Form::Generator { parent: of.map(Into::into) };
        for (key, expected) in [
            ("uddi:4cd7e4bc-648b-426d-9936-443eaac8ae23", Form::Uuid),
            ("uddi:a.example:keygenerator", generator(None)),
            ("uddi:a.example:b:keygenerator", generator(Some("uddi:a.example:keygenerator"))),
            ("uddi:a.example:b", derived("uddi:a.example:keygenerator")),
            ("uddi:a.example:b:c", derived("uddi:a.example:b:keygenerator")),
            ("uddi:a.example", derived("uddi:a.example:keygenerator")),
        ] {
            assert_eq!(form(key), Ok(expected), "{key}");
        }
    }

    #[test]
    fn what_is_no_key_or_reserved_is_refused() {
        let long = format!("uddi:a.example:{}", "x".repeat(241));
        for (key, reason) in [
            ("", Reason::InvalidKeyPassed),
            ("uuid:4cd7e4bc-648b-426d-9936-443eaac8ae23", Reason::InvalidKeyPassed),
            ("uddi:", Reason::InvalidKeyPassed),
            ("uddi:a::b", Reason::InvalidKeyPassed),
            ("uddi:a b", Reason::InvalidKeyPassed),
            ("uddi:ä", Reason::InvalidKeyPassed),
            (&long, Reason::InvalidKeyPassed),
            ("uddi:uddi.org:x", Reason::KeyUnavailable),
            ("uddi:longwire.example:keygenerator", Reason::KeyUnavailable),
        ] {
            assert_eq!(form(key).unwrap_err().reason, reason, "{key}");
        }
        assert!(form(long.strip_suffix('x').unwrap()).is_ok());
        assert!(form("uddi:uddi.organic:x").is_ok());
    }

    #[test]
    fn chance_becomes_a_key() {
        let key = from_chance([0xff; 16]);
        assert_eq!(&*key, "uddi:ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(form(&key), Ok(Form::Uuid));
    }
}
