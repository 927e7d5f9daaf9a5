//! The configuration of a partner's broker.

use std::fmt::Write as _;
use std::sync::Arc;

use broker::Grade;

use crate::profile::{Partner, Profile};

/// What a configuration needs to know besides the profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The profile's file, as the broker is to open it.
    pub file: String,
    /// The file of the partner's own public key, which the profile is to have.
    pub key: Option<String>,
    /// The file of keys that count no more, if there is one.
    pub revoked: Option<String>,
    /// The profile is applied although not all partners have signed it.
    pub unsigned: bool,
    /// The directory with `NAME.password` for each broker that this one connects to.
    pub passwords: Option<String>,
    /// The address for MQTT, where there is no `base`; this machine alone without it.
    pub mqtt: Option<String>,
    /// The file of users, where there is no `base`.
    pub users: Option<String>,
    /// The broker's own configuration, which what follows of the profile stands behind; without it
    /// one for this machine alone.
    pub base: Option<String>,
}

/// The partners whose brokers the one of `own` connects to, as their client: of two that exchange
/// something, the one whose name is first connects, if the other has an address.
#[must_use]
pub fn dials<'p>(profile: &'p Profile, own: &str) -> Vec<&'p Partner> {
    let all = profile.partners.iter().filter(|other| connects(profile, own, &other.name));
    all.collect()
}

/// The partners whose brokers connect to the one of `own`.
#[must_use]
pub fn dialled_by<'p>(profile: &'p Profile, own: &str) -> Vec<&'p Partner> {
    let all = profile.partners.iter().filter(|other| connects(profile, &other.name, own));
    all.collect()
}

fn connects(profile: &Profile, one: &str, other: &str) -> bool {
    let exchange = profile.flows.iter().any(|flow| {
        let mut publishers = flow.from.iter();
        publishers.any(|from| flow.crosses(from, one, other) || flow.crosses(from, other, one))
    });
    let has_address =
        |name: &str| profile.partner(name).is_some_and(|partner| partner.broker.is_some());
    let is_first = one < other || !has_address(one);
    one != other && exchange && has_address(other) && is_first
}

/// The configuration of the broker of `own`, in the words of `docs/broker.md`: the same profile and
/// options give the same text. `None`: it is no partner.
#[must_use]
pub fn configuration(profile: &Profile, own: &str, options: &Options) -> Option<String> {
    let own = profile.partner(own)?;
    let mut text = String::new();
    let Profile { name, version, .. } = profile;
    let _ = writeln!(text, "# Profile {name} version {version} as {}; SHA-256 of its", own.name);
    let _ = writeln!(text, "# canonical form {}.", profile.digest());
    if !dialled_by(profile, &own.name).is_empty() {
        let names: Vec<&str> =
            dialled_by(profile, &own.name).iter().map(|partner| &*partner.name).collect();
        let _ = writeln!(
            text,
            "# These connect to this broker, each as the user of its name: {}.",
            names.join(", ")
        );
    }
    match &options.base {
        Some(base) => {
            let _ = writeln!(text, "\n{}", base.trim_end());
        }
        None => {
            let mqtt = options.mqtt.as_deref().unwrap_or("127.0.0.1:1883");
            let _ = writeln!(text, "\n[broker]\nmqtt = {}", quoted(mqtt));
            if let Some(users) = &options.users {
                let _ = writeln!(text, "users = {}", quoted(users));
            }
            let _ = writeln!(text, "node = {}", quoted(&format!("{name}-{}", own.name)));
        }
    }
    let _ = writeln!(text, "\n[federation]\nprofile = {}", quoted(&options.file));
    let _ = writeln!(text, "as = {}", quoted(&own.name));
    if let Some(key) = &options.key {
        let _ = writeln!(text, "key = {}", quoted(key));
    }
    if let Some(revoked) = &options.revoked {
        let _ = writeln!(text, "revoked = {}", quoted(revoked));
    }
    if options.unsigned {
        text.push_str("unsigned = true\n");
    }
    for partner in dials(profile, &own.name) {
        bridge(profile, own, partner, options, &mut text);
    }
    for (id, topic) in &profile.topic_ids {
        let _ = writeln!(text, "\n[[topic_id]]\nid = {id}\ntopic = {}", quoted(topic));
    }
    Some(text)
}

fn bridge(profile: &Profile, own: &Partner, other: &Partner, options: &Options, text: &mut String) {
    let Some(url) = &other.broker else { return };
    let _ = writeln!(text, "\n[[bridge]]\nname = {}", quoted(&other.name));
    let _ = writeln!(text, "url = {}", quoted(url));
    let _ = writeln!(text, "client_id = {}", quoted(&format!("{}-{}", profile.name, own.name)));
    let _ = writeln!(text, "user = {}", quoted(&own.name));
    if let Some(directory) = &options.passwords {
        let file = format!("{}/{}.password", directory.trim_end_matches('/'), other.name);
        let _ = writeln!(text, "password_file = {}", quoted(&file));
    }
    for (flow, publisher, filter) in profile.streams() {
        let crosses = |from: &Arc<str>, to: &Arc<str>| flow.crosses(publisher, from, to);
        let (goes, comes) = (crosses(&own.name, &other.name), crosses(&other.name, &own.name));
        if goes || comes {
            route(&filter, (comes, goes), flow.terms.max_grade, text);
        }
    }
}

fn route(filter: &str, (comes, goes): (bool, bool), max_grade: Grade, text: &mut String) {
    let _ = writeln!(text, "\n[[bridge.route]]\nfilter = {}", quoted(filter));
    let _ = writeln!(text, "comes = {comes}\ngoes = {goes}\nmax_qos = {}", max_grade.get());
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
