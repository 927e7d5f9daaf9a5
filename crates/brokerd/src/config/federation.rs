//! `[federation]`: the profile that nations have agreed on, as one of them.

use std::path::PathBuf;
use std::sync::Arc;

use broker::Federation;
use federation::dialled_by;
use serde::Deserialize;

use super::{BrokerConfig, Config};
use crate::applied::Applied;
use crate::error::Error;
use crate::federation::{check_key, read_keys, read_profile};

/// `[federation]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FederationConfig {
    profile: PathBuf,
    #[serde(rename = "as")]
    own: String,
    key: Option<PathBuf>,
    #[serde(default)]
    former: Vec<String>,
    revoked: Option<PathBuf>,
    #[serde(default)]
    unsigned: bool,
}

impl FederationConfig {
    /// What the broker applies.
    pub(super) fn read(&self, broker: &BrokerConfig) -> Result<Arc<Federation>, Error> {
        let profile = read_profile(&self.profile)?;
        let own = &self.own;
        let Some(federation) = profile.federation(own) else {
            let names: Vec<&str> = profile.partners.iter().map(|partner| &*partner.name).collect();
            let names = names.join(", ");
            let text = format!("[federation] as = \"{own}\" is no partner: they are {names}");
            return Err(Error::Caller(text));
        };
        check_key(&profile, own, self.key.as_deref(), self.unsigned, "[federation] key")?;
        let signed = profile.is_signed_by_all(&read_keys(self.revoked.as_deref())?);
        if let (Err(what), false) = (signed, self.unsigned) {
            let remedy = "unsigned = true applies it all the same";
            return Err(Error::Caller(format!("[federation] {what}: {remedy}")));
        }
        let clients: Vec<&str> =
            dialled_by(&profile, own).iter().map(|partner| &*partner.name).collect();
        if !clients.is_empty() && broker.users.is_none() && broker.client_ca.is_none() {
            let text = format!(
                "[federation] {} connect to this broker, which knows nobody: users = \"FILE\" \
                 with their names, or client_ca = \"FILE\"",
                clients.join(", ")
            );
            return Err(Error::Caller(text));
        }
        if self.former.iter().any(|former| former == own) {
            let text = format!("[federation] former: {own} is this broker's own nation");
            return Err(Error::Caller(text));
        }
        let former = self.former.iter().map(|name| Arc::from(name.as_str()));
        Ok(Arc::new(federation.with_former(former)))
    }
}

impl Config {
    /// The profile that is to be applied, if there is one.
    pub(crate) fn profile(&self) -> Result<Option<Arc<Federation>>, Error> {
        self.federation.as_ref().map(|it| it.read(&self.broker)).transpose()
    }

    /// Keeps in the store, if there is one, that the profile is applied.
    ///
    /// # Errors
    /// Another was applied that it does not follow; it cannot be kept.
    pub(crate) fn keep_profile(&self) -> Result<(), Error> {
        let (Some(federation), Some(store)) = (&self.federation, &self.broker.store) else {
            return Ok(());
        };
        Applied::of(&read_profile(&federation.profile)?).keep(store)
    }

    /// Whether there is a profile that can be read, and each partner in it is one of those of
    /// another: a user that the other does not know would be a client of the own nation by it.
    pub(crate) fn has_no_partner_but(&self, other: &Federation) -> bool {
        let profile = self.federation.as_ref().map(|it| read_profile(&it.profile));
        let is_known = |name: &str| name == &*other.own || other.is_partner(name);
        profile
            .and_then(Result::ok)
            .is_some_and(|it| it.partners.iter().all(|partner| is_known(&partner.name)))
    }

    /// All but `[federation]`.
    pub(crate) fn without_profile(&self) -> Self {
        Self { federation: None, ..self.clone() }
    }
}

/// What takes the place of the profile that runs: no older version of it does. Who was a partner
/// and is none any more is known on.
///
/// # Errors
/// It is older, or there is none any more.
pub(crate) fn succeed(
    running: Option<&Federation>,
    new: Option<Arc<Federation>>,
) -> Result<Option<Arc<Federation>>, Error> {
    let Some(running) = running else { return Ok(new) };
    let Some(new) = new else {
        // Its partners would be clients of the own nation.
        let text = "[federation] is gone, while partners may be connected: start again";
        return Err(Error::Caller(text.to_owned()));
    };
    if running.profile == new.profile && running.version > new.version {
        let Federation { profile, version, .. } = &*new;
        let text = format!(
            "[federation] profile {profile} version {version} is older than version {}, which \
             runs: take the newer file",
            running.version
        );
        return Err(Error::Caller(text));
    }
    if running.profile != new.profile {
        let text = format!(
            "[federation] profile {} would take the place of profile {}, which runs: a version of \
             another agreement is no newer one",
            new.profile, running.profile
        );
        return Err(Error::Caller(text));
    }
    let mut same = Federation::clone(&new);
    same.former.clone_from(&running.former);
    if running.version == new.version && same != *running {
        let Federation { profile, version, .. } = &*new;
        let text = format!(
            "[federation] profile {profile} version {version} is another text than the one of this \
             version that runs: give it the next version"
        );
        return Err(Error::Caller(text));
    }
    let before = running.partners.iter().chain(&running.former);
    let before: Vec<Arc<str>> = before.filter(|name| **name != new.own).cloned().collect();
    Ok(Some(Arc::new(Federation::clone(&new).with_former(before))))
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    /// What is said of the example, with these keys below `[federation]`.
    fn said(keys: &str, broker: &str) -> Result<broker::Settings, String> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/federation.toml");
        let text = format!("[broker]\n{broker}\n[federation]\nprofile = \"{path}\"\n{keys}");
        let config: Config = toml::from_str(&text).unwrap();
        config.settings().map_err(|error| error.to_string())
    }

    #[test]
    fn a_profile_is_applied_that_all_have_signed() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/federation.toml");
        let profile = crate::federation::read_profile(path.as_ref()).unwrap();
        let own = std::env::temp_dir().join(format!("longwire-own-{}", std::process::id()));
        std::fs::write(&own, profile.partner("USA").unwrap().key.to_string()).unwrap();
        let keys = format!("as = \"USA\"\nkey = \"{}\"", own.display());
        let unsigned = said(&keys, "").unwrap_err();
        std::fs::remove_file(&own).unwrap();
        assert!(unsigned.contains("is not signed by DEU (not signed), NOR"), "{unsigned}");
        let stranger = said("as = \"FRA\"\nunsigned = true", "").unwrap_err();
        assert!(stranger.contains("they are DEU, NOR, PRT, USA"), "{stranger}");
        let settings = said("as = \"USA\"\nunsigned = true", "").unwrap();
        let federation = settings.federation.unwrap();
        assert_eq!((&*federation.own, federation.flows().len()), ("USA", 5));
    }

    /// A profile is checked against the operator's own key, not against the keys that it names.
    #[test]
    fn the_profile_has_the_operators_own_key() {
        let missing = said("as = \"USA\"", "").unwrap_err();
        assert!(missing.contains("key = \"FILE\""), "{missing}");
        let path = std::env::temp_dir().join(format!("longwire-pub-{}", std::process::id()));
        let of = |digit: &str| {
            std::fs::write(&path, format!("ed25519:{} USA\n", digit.repeat(64))).unwrap();
            let keys = format!("as = \"USA\"\nunsigned = true\nkey = \"{}\"", path.display());
            said(&keys, "").map(|_| ())
        };
        let wrong = of("0").unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert!(wrong.contains("has another key for USA"), "{wrong}");
    }

    #[test]
    fn partners_that_come_have_to_be_known() {
        let nobody = said("as = \"NOR\"\nunsigned = true", "").unwrap_err();
        assert!(nobody.contains("DEU, USA connect to this broker, which knows nobody"), "{nobody}");
        assert!(said("as = \"NOR\"\nunsigned = true", "users = \"u\"").is_ok());
    }

    #[test]
    fn an_older_version_does_not_take_the_place_of_a_newer() {
        let settings = said("as = \"USA\"\nunsigned = true", "").unwrap();
        let one = settings.federation.unwrap();
        let mut older = broker::Federation::clone(&one);
        let said = |running, new: &broker::Federation| {
            super::succeed(running, Some(std::sync::Arc::new(new.clone())))
        };
        assert!(said(Some(&one), &older).is_ok());
        older.valid_until += std::time::Duration::from_secs(1);
        let what = said(Some(&one), &older).unwrap_err().to_string();
        assert!(what.contains("another text"), "{what}");
        older.version = 2;
        assert!(said(Some(&one), &older).is_ok());
        older.profile = "another".into();
        let what = said(Some(&one), &older).unwrap_err().to_string();
        assert!(what.contains("no newer one"), "{what}");
        older.profile = one.profile.clone();
        older.version = 0;
        let what = said(Some(&one), &older).unwrap_err().to_string();
        assert!(what.contains("version 0 is older than version 1"), "{what}");
        assert!(said(None, &older).is_ok());
    }

    /// A profile that may not be applied keeps the rest of a configuration back only if it names
    /// somebody whom the one that runs does not know.
    #[test]
    fn the_rest_is_taken_where_all_partners_are_known() {
        let running = said("as = \"USA\"\nunsigned = true", "").unwrap().federation.unwrap();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/federation.toml");
        let text = format!("[broker]\n[federation]\nprofile = \"{path}\"\nas = \"USA\"");
        let config: Config = toml::from_str(&text).unwrap();
        assert!(config.profile().is_err() && config.has_no_partner_but(&running));
        assert!(config.without_profile().settings().is_ok());
        let mut less = broker::Federation::clone(&running);
        less.partners.remove("PRT");
        assert!(!config.has_no_partner_but(&less));
        assert!(!config.without_profile().has_no_partner_but(&running));
    }

    #[test]
    fn who_was_a_partner_is_known_on() {
        let keys = "as = \"USA\"\nunsigned = true\nformer = [\"FRA\"]";
        let mut new = broker::Federation::clone(&said(keys, "").unwrap().federation.unwrap());
        let running = new.clone();
        new.version += 1;
        new.partners.remove("DEU");
        new.former.clear();
        let new = std::sync::Arc::new(new);
        let after = super::succeed(Some(&running), Some(new)).unwrap().unwrap();
        assert!(after.is_partner("DEU") && after.is_partner("FRA") && after.is_partner("NOR"));
        assert!(super::succeed(Some(&running), None).is_err(), "needs a restart");
    }
}
