//! What bodies may go in, and what is different for each service.

use super::*;

use decide::policy::Objective;
use proto::urgency::Urgency;
use relay::{Handling, Overflow};

/// Most protocols that a service may change to.
const MAX_UPGRADES: usize = 16;
/// Names of fields that a list of a service may have: no proxy sets more.
const MAX_FIELDS: usize = 64;

/// The encoding of the section, and the bound on the link's rate.
pub(super) fn set_encoding(
    check: &mut Check,
    relay: &mut relay::Config,
    encoding: Option<&str>,
    rate_cap: Option<Rate>,
) {
    let text = encoding.unwrap_or("auto");
    let encoding = coding::Encoding::of(text);
    let encoding = encoding.map_err(|error| {
        let error = named(text, &error).replacen("one of ", "one of auto, nam, ", 1);
        format!("encoding: {error}")
    });
    set(&mut relay.encoding, check.take("encoding", encoding.map(Some)));
    relay.rate_cap_bps = rate_cap.map(|rate| rate.0);
}

/// What is wrong with an encoding, for those who know it by another name.
fn named(text: &str, error: &codec::Error) -> String {
    let name = text.split(':').next().unwrap_or_default().to_ascii_lowercase();
    match name.as_str() {
        "gzip" | "x-gzip" | "zlib" | "zip" => format!("{error}; {name} is 'deflate' here"),
        "br" => format!("{error}; br is 'brotli' here"),
        "zst" => format!("{error}; zst is 'zstd' here"),
        "none" | "off" => format!("{error}; {name} is 'identity' here"),
        _ => error.to_string(),
    }
}

/// All services: for the relay, and what else is set of them.
pub(super) fn all(
    check: &mut Check,
    relay: &mut relay::Config,
    services: &[ServiceSettings],
) -> Vec<Service> {
    if services.iter().any(infoset::is_allowed) {
        relay.encoding.allow_infoset();
    }
    let mut all = Vec::new();
    for (at, settings) in services.iter().enumerate() {
        check.service(at);
        let decision = decision(check, relay, settings);
        relay.services.push(decision);
        let urgency = settings.urgency.as_deref().map(Urgency::parse).transpose();
        let urgency = check.take("urgency", urgency.map_err(wrong(settings)));
        let overflow = match settings.overflow.as_deref() {
            None | Some("refuse") => Ok(Overflow::Refuse),
            Some("oldest") => Ok(Overflow::Oldest),
            Some("superseded") => Ok(Overflow::Superseded),
            Some(other) => Err(wrong(settings)(format!(
                "overflow '{other}': one of refuse, oldest, superseded"
            ))),
        };
        let overflow = check.take("overflow", overflow);
        let lifetime = settings.lifetime.map(|period| period.0);
        relay.handling.push(Handling { urgency, lifetime, overflow });
        all.extend(service(check, settings));
    }
    all
}

/// What is wrong with a service, by its name.
fn wrong(settings: &ServiceSettings) -> impl Fn(String) -> Error {
    let pattern = settings.pattern.clone();
    move |what| caller(format!("service '{pattern}': {what}"))
}

/// What its bodies may go in, and what is wanted of it.
fn decision(
    check: &mut Check,
    relay: &mut relay::Config,
    settings: &ServiceSettings,
) -> coding::Service {
    let wrong = wrong(settings);
    let encodings = settings.encodings.as_deref().map(|names| {
        let meant = check.items("encodings", names, |name| {
            let meant = relay.encoding.meant_by(std::slice::from_ref(name));
            meant.map_err(|error| wrong(format!("encodings: {}", named(name, &error))).to_string())
        });
        meant.concat()
    });
    let objective =
        check.about("objective", &["deadline"], objective(settings).map(Some).map_err(&wrong));
    let schemas = settings.schemas.as_deref().filter(|_| infoset::is_allowed(settings));
    let schemas = schemas.unwrap_or_default();
    let readable = check.items("schemas", schemas, |path| {
        infoset::check_schema(path).map_err(|what| wrong(format!("schemas: {what}")).to_string())
    });
    let mut schema_context = None;
    if readable.len() == schemas.len() {
        let key = if settings.schemas.is_some() { "schemas" } else { "fidelity" };
        let other = infoset::schema_context(settings).map_err(&wrong);
        schema_context = check.about(key, &["fidelity", "schemas"], other);
    }
    let fits = infoset::check(encodings.as_deref(), schema_context.as_deref()).map_err(&wrong);
    check.about("encodings", &["fidelity"], fits);
    let infoset = schema_context.map(|infoset| infoset::shared(&relay.services, infoset));
    let (name, objective) = (settings.pattern.clone(), objective.unwrap_or(Objective::Time));
    coding::Service { name, objective, encodings, infoset }
}

fn objective(settings: &ServiceSettings) -> Result<Objective, String> {
    let deadline = settings.deadline.map(|period| period.0);
    match (settings.objective.as_deref(), deadline) {
        (None | Some("time"), None) => Ok(Objective::Time),
        (Some("bytes"), None) => Ok(Objective::Bytes),
        (None | Some("deadline"), Some(deadline)) => {
            Ok(Objective::Deadline(deadline.as_secs_f64()))
        }
        (Some("deadline"), None) => {
            Err("objective 'deadline' needs a deadline, like '2 s': give one".to_owned())
        }
        (Some(objective @ ("time" | "bytes")), Some(_)) => {
            Err(format!("a deadline with objective '{objective}': give one of them"))
        }
        (Some(objective), _) => {
            Err(format!("objective '{objective}': one of time, bytes, deadline"))
        }
    }
}

/// None: its pattern is none.
fn service(check: &mut Check, settings: &ServiceSettings) -> Option<Service> {
    let wrong = wrong(settings);
    // Of a service without one that is told already.
    let pattern = (!settings.pattern.is_empty()).then(|| Pattern::parse(&settings.pattern));
    let pattern = check.take("match", pattern.transpose());
    let pass_accept_encoding = match settings.accept_encoding.as_deref() {
        None | Some("identity") => Ok(false),
        Some("pass") => Ok(true),
        Some(other) => Err(wrong(format!("accept_encoding '{other}': one of identity, pass"))),
    };
    let exact_fields = match settings.fields.as_deref() {
        None | Some("names") => Ok(false),
        Some("exact") => Ok(true),
        Some(other) => Err(wrong(format!("fields '{other}': one of names, exact"))),
    };
    let upgrades = settings.upgrades.as_ref().map(|names| upgrades(names)).transpose();
    let fallback = settings.fallback.as_deref().map(fallback).transpose();
    let (ours, not) = (settings.principal.as_deref(), settings.not_principal.as_deref());
    let exact_fields = check.take("fields", exact_fields);
    let upgrades = check.take("upgrades", upgrades.map_err(&wrong));
    let pass_accept_encoding = check.take("accept_encoding", pass_accept_encoding);
    let fallback = fallback.map_err(|error| wrong(error.to_string()));
    let fallback = check.take("fallback", fallback);
    let principal = check.take("principal", names("principal", ours).map_err(&wrong));
    let not_principal = check.take("not_principal", names("not_principal", not).map_err(&wrong));
    Some(Service {
        exact_fields,
        upgrades,
        pattern: pattern?,
        pass_accept_encoding,
        fallback,
        max_body: settings.max_body.map(|size| size.0),
        infoset: infoset::is_allowed(settings),
        principal,
        not_principal,
    })
}

/// Names of fields.
fn names(key: &str, list: Option<&[String]>) -> Result<Vec<HeaderName>, String> {
    let list = list.unwrap_or_default();
    if list.len() > MAX_FIELDS {
        return Err(format!("{key} names {} fields: at most {MAX_FIELDS}", list.len()));
    }
    let names = list.iter().map(|name| {
        let name = HeaderName::from_bytes(name.as_bytes());
        name.map_err(|_| format!("{key}: no name of a field: give one like 'X-My-User'"))
    });
    names.collect()
}

/// Names of protocols to change to, in lower case.
fn upgrades(names: &[String]) -> Result<Vec<String>, String> {
    if names.len() > MAX_UPGRADES {
        return Err(format!("upgrades: {} names: {MAX_UPGRADES} at most", names.len()));
    }
    let is_token = |name: &&String| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._/".contains(&b))
    };
    match names.iter().find(|name| !is_token(name)) {
        Some(wrong) => Err(format!("upgrades: '{wrong}' is no name of a protocol, like websocket")),
        None => Ok(names.iter().map(|name| name.to_ascii_lowercase()).collect()),
    }
}
