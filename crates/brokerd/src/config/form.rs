//! `[[form]]`: in which form payloads leave.

use broker::{FormRule, PayloadForm, Protocol};
use serde::Deserialize;

use super::{check, check_count};
use crate::error::Error;

/// `[[form]]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FormConfig {
    filter: String,
    payload: String,
    protocol: Option<String>,
    user: Option<String>,
    client: Option<String>,
}

/// The rules that the sections say.
pub(super) fn read_all(said: &[FormConfig]) -> Result<Vec<FormRule>, Error> {
    check_count("form", said.len())?;
    said.iter().map(FormConfig::read).collect()
}

impl FormConfig {
    fn read(&self) -> Result<FormRule, Error> {
        check("form", &self.filter)?;
        let wrong = |key: &str, value: &str, names: Vec<&str>| {
            let names = names.join(", ");
            Error::Caller(format!("[[form]] {}: {key} = \"{value}\": {names}", self.filter))
        };
        let form = PayloadForm::of_name(&self.payload).ok_or_else(|| {
            let names = PayloadForm::NAMES.iter().map(|(_, name)| *name);
            wrong("payload", &self.payload, names.collect())
        })?;
        let is_receiver = |it: Protocol| !matches!(it, Protocol::Broker | Protocol::Mesh);
        let receivers = || Protocol::NAMES.iter().filter(move |(it, _)| is_receiver(*it));
        let protocol = self.protocol.as_deref().map(|said| {
            let known = receivers().find(|(_, name)| *name == said).map(|(protocol, _)| *protocol);
            known.ok_or_else(|| wrong("protocol", said, receivers().map(|(_, it)| *it).collect()))
        });
        Ok(FormRule {
            filter: self.filter.clone(),
            protocol: protocol.transpose()?,
            user: self.user.clone(),
            client: self.client.clone(),
            form,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    fn read(text: &str) -> Result<Vec<FormRule>, String> {
        let config: Config = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        config.settings().map(|settings| settings.forms).map_err(|error| error.to_string())
    }

    #[test]
    fn forms_are_read() {
        let text = "[[form]]\nfilter = \"unit/#\"\nprotocol = \"bridge\"\nclient = \"hq\"\n\
                    payload = \"exi\"\n[[form]]\nfilter = \"#\"\nuser = \"ann\"\n\
                    payload = \"identity\"";
        let rules = read(text).unwrap();
        assert_eq!(rules[0].protocol, Some(Protocol::Bridge));
        assert_eq!((rules[0].client.as_deref(), rules[0].form), (Some("hq"), PayloadForm::Exi));
        assert_eq!((rules[1].user.as_deref(), rules[1].form), (Some("ann"), PayloadForm::Identity));
    }

    #[test]
    fn what_is_wrong_with_a_form_is_said() {
        for (text, said) in [
            (
                "filter = \"#\"\npayload = \"yaml\"",
                "payload = \"yaml\": json, cbor, xml, exi, identity",
            ),
            (
                "filter = \"#\"\npayload = \"xml\"\nprotocol = \"broker\"",
                "protocol = \"broker\": mqtt, ",
            ),
            ("filter = \"a/#/b\"\npayload = \"xml\"", "last level"),
            ("filter = \"#\"", "payload"),
            ("filter = \"#\"\npayload = \"xml\"\nlistener = 1", "listener"),
        ] {
            let error = read(&format!("[[form]]\n{text}")).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
