//! The file: its keys, and what each may be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use broker::{FederationFlow, FederationTerms, Grade};
use proto::urgency::Urgency;
use toml::de::DeTable;

use crate::fault::Faults;
use crate::key::{Key, from_hex};
use crate::places::Places;
use crate::profile::{MAX_FLOWS, MAX_PARTNERS, Partner, Profile, Revoked, Signature};
use crate::reader::{Item, Reader, Table, shown};
use crate::{calendar, check};

/// Largest file, in bytes.
pub const MAX_PROFILE_BYTES: usize = 1 << 20;
/// The version of the format that this reads.
const FORMAT: u64 = 1;
/// Longest names of partners, flows and profiles, in bytes.
const MAX_NAME_BYTES: usize = 32;
/// Longest text for people, in bytes.
const MAX_ABOUT_BYTES: usize = 1000;
/// Longest topic or filter, in bytes: one crosses a slow link with each message.
const MAX_TOPIC_BYTES: usize = 255;
/// Longest URL or media type, in bytes.
const MAX_TEXT_BYTES: usize = 255;
/// Most topic ids, revoked keys, and signatures.
const MAX_TOPIC_IDS: usize = 4096;
const MAX_REVOKED: usize = 1024;
const MAX_SIGNATURES: usize = 256;
/// Highest rates and sizes: more is no limit.
const MAX_MESSAGES_PER_S: u32 = 1_000_000;
const MAX_BURST: u64 = 1_000_000;
const MAX_BYTES: u64 = 256 << 20;
const MAX_BYTES_PER_S: u64 = 10_000_000_000;
/// Longest expiry, in seconds: thirty days.
const MAX_EXPIRY_S: u64 = 30 * 86_400;
/// Seconds of its rate that a publisher may send at once, where the flow says nothing of it.
const BURST_S: u64 = 10;
/// Bytes of a signature of Ed25519 (RFC 8032 §5.1.6).
const SIGNATURE_BYTES: usize = 64;

const KEYS: [&str; 6] = ["profile", "partner", "flow", "topic_id", "revoked", "signature"];
const PROFILE: [&str; 6] = ["format", "name", "about", "version", "valid_from", "valid_until"];
const PARTNER: [&str; 4] = ["name", "about", "key", "broker"];
const FLOW: [&str; 16] = [
    "name",
    "about",
    "topic",
    "from",
    "to",
    "via",
    "urgency",
    "qos",
    "retain",
    "expiry_s",
    "media_type",
    "max_bytes",
    "messages_per_s",
    "burst",
    "bytes_per_s",
    "conflate",
];

/// Reads a profile; `file` stands for it in messages.
///
/// # Errors
/// All that is wrong, by line.
pub fn parse(file: &str, text: &str) -> Result<Profile, Faults> {
    let reader = Reader::new(file, text);
    if text.len() > MAX_PROFILE_BYTES {
        let what = format!("has {} bytes", text.len());
        let remedy = "make filters wider, or several profiles";
        reader.note(1, "", what, format!("at most {MAX_PROFILE_BYTES}: {remedy}"));
        return Err(reader.into_faults());
    }
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let line = error.span().map_or(1, |span| reader.line(span.start));
        let what = error.message().lines().next().unwrap_or("is no TOML").to_owned();
        reader.note(line, "", shown(&what), "write it as TOML 1.0 has it");
    }
    let profile = if errors.is_empty() {
        let root = reader.root(root.get_ref(), &KEYS);
        is_known_format(&root).then(|| read(&root)).flatten()
    } else {
        None
    };
    match profile {
        Some(profile) if reader.is_sound() => Ok(profile),
        _ => {
            if reader.is_sound() {
                reader.note(1, "", "is no profile", "see docs/federation.md");
            }
            Err(reader.into_faults())
        }
    }
}

/// What another format says cannot be known: nothing else is looked at.
fn is_known_format(root: &Table<'_>) -> bool {
    let Some(table) = root.need("profile").and_then(|item| item.table(&PROFILE)) else {
        return false;
    };
    let remedy = ": only this format is known; a later one needs a later longwire";
    table.need("format").and_then(|item| item.whole(FORMAT..=FORMAT, remedy)).is_some()
}

fn read(root: &Table<'_>) -> Option<Profile> {
    let head = root.get("profile")?.known_table()?;
    let name = head.need("name").and_then(|item| name(&item));
    let version = head.need("version").and_then(|item| item.whole(1..=u64::from(u32::MAX), ""));
    let from = head.need("valid_from").and_then(|item| time(&item));
    let until = head.need("valid_until").and_then(|item| time(&item));
    if let (Some(from), Some(until)) = (from, until)
        && from >= until
    {
        let what = format!("valid_until is {}", calendar::text(until));
        head.refuse(what, format!("after valid_from, {}", calendar::text(from)));
    }
    let mut places = Places { partners: partners(root), ..Places::default() };
    let names: Vec<Arc<str>> =
        places.partners.iter().map(|(_, partner)| partner.name.clone()).collect();
    let (flows, flows_about) = flows(root, &names);
    places.flows = flows;
    places.topic_ids = topic_ids(root);
    places.revoked = revoked(root);
    places.signatures = signatures(root);
    check::check(root, &places);
    let mut partners: Vec<Partner> = places.partners.into_iter().map(|(_, it)| it).collect();
    partners.sort_by(|one, other| one.name.cmp(&other.name));
    let mut flows: Vec<FederationFlow> = places.flows.into_iter().map(|(_, it)| it).collect();
    flows.sort_by(|one, other| one.name.cmp(&other.name));
    let mut revoked: Vec<Revoked> = places.revoked.into_iter().map(|(_, it)| it).collect();
    revoked.sort_by_key(|revoked| revoked.key);
    let id = |(_, id, topic): (usize, u64, String)| Some((u16::try_from(id).ok()?, topic));
    Some(Profile {
        name: name?,
        about: about(&head),
        version: version?,
        valid_from_s: from?,
        valid_until_s: until?,
        partners,
        flows,
        flows_about,
        topic_ids: places.topic_ids.into_iter().filter_map(id).collect(),
        revoked,
        signatures: places.signatures.into_iter().map(|(_, it)| it).collect(),
    })
}

fn name(item: &Item<'_>) -> Option<String> {
    let text = item.text(MAX_NAME_BYTES)?;
    let is_fine = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if text.is_empty() || !text.chars().all(is_fine) {
        let what = format!("\"{}\" is no name", shown(text));
        item.refuse(what, format!("1 to {MAX_NAME_BYTES} letters, digits, - and _"));
        return None;
    }
    Some(text.to_owned())
}

fn about(table: &Table<'_>) -> String {
    let item = table.get("about");
    item.and_then(|item| item.text(MAX_ABOUT_BYTES)).unwrap_or_default().to_owned()
}

fn time(item: &Item<'_>) -> Option<u64> {
    let time = item.time()?;
    let seconds = calendar::seconds(time);
    if seconds.is_none() {
        let remedy = "a date of 2000 to 2199, a time and an offset, as 2026-01-31T12:00:00Z";
        item.refuse(format!("{time} names no moment"), remedy);
    }
    seconds
}

fn key(item: &Item<'_>) -> Option<Key> {
    let parsed = Key::parse(item.text(MAX_TEXT_BYTES)?);
    let remedy = "ed25519: and 64 hexadecimal digits, as in longwire.pub of longwire keygen";
    parsed.map_err(|what| item.refuse(what, remedy)).ok()
}

fn partners(root: &Table<'_>) -> Vec<(usize, Partner)> {
    let partner = |table: Table<'_>| {
        let name = table.need("name").and_then(|item| name(&item));
        let key = table.need("key").and_then(|item| key(&item));
        let broker = table.get("broker").map(|item| url(&item));
        let broker = match broker {
            Some(None) => return None,
            Some(url) => url,
            None => None,
        };
        let about = about(&table);
        Some((table.line, Partner { name: name?.into(), about, key: key?, broker }))
    };
    let tables = root.tables("partner", MAX_PARTNERS, &PARTNER);
    tables.into_iter().filter_map(partner).collect()
}

/// A URL of MQTT.
fn url(item: &Item<'_>) -> Option<String> {
    let text = item.text(MAX_TEXT_BYTES)?;
    let rest = text.strip_prefix("mqtts://").or_else(|| text.strip_prefix("mqtt://"));
    let is_fine = rest.is_some_and(|rest| {
        let host = rest.strip_suffix('/').unwrap_or(rest);
        let fits = |c: char| c.is_ascii_alphanumeric() || ".-:[]_%".contains(c);
        !host.is_empty() && host.chars().all(fits)
    });
    if !is_fine {
        let what = format!("\"{}\" is no address of a broker", shown(text));
        item.refuse(what, "mqtt://HOST[:PORT] or mqtts://HOST[:PORT]");
        return None;
    }
    Some(text.to_owned())
}

type Flows = (Vec<(usize, FederationFlow)>, BTreeMap<Arc<str>, String>);

fn flows(root: &Table<'_>, names: &[Arc<str>]) -> Flows {
    let mut abouts = BTreeMap::new();
    let flow = |table: Table<'_>| {
        let name = table.need("name").and_then(|item| name(&item));
        let topic = table.need("topic").and_then(|item| item.text(MAX_TOPIC_BYTES));
        let from = table.need("from").map(|item| several(&item, names));
        let to = table.need("to").map(|item| several(&item, names));
        let via = table.get("via").and_then(|item| one(&item, names));
        let terms = terms(&table);
        let name: Arc<str> = name?.into();
        let said = about(&table);
        if !said.is_empty() {
            abouts.insert(name.clone(), said);
        }
        let (topic, from, to) = (topic?.to_owned(), from?, to?);
        Some((table.line, FederationFlow { name, topic, from, to, via, terms: terms? }))
    };
    let tables = root.tables("flow", MAX_FLOWS, &FLOW);
    let flows = tables.into_iter().filter_map(flow).collect();
    (flows, abouts)
}

/// One partner.
fn one(item: &Item<'_>, names: &[Arc<str>]) -> Option<Arc<str>> {
    let text = item.text(MAX_NAME_BYTES)?;
    let found = names.iter().find(|name| &***name == text).cloned();
    if found.is_none() {
        let known: Vec<&str> = names.iter().take(10).map(|name| &**name).collect();
        let remedy = format!("known are {}", known.join(", "));
        item.refuse(format!("\"{}\" is no partner", shown(text)), remedy);
    }
    found
}

/// Partners, or with `*` all of them.
fn several(item: &Item<'_>, names: &[Arc<str>]) -> BTreeSet<Arc<str>> {
    let items = item.list(MAX_PARTNERS, "partners");
    if let [only] = items.as_slice()
        && only.text(MAX_NAME_BYTES) == Some("*")
    {
        return names.iter().cloned().collect();
    }
    items.iter().filter_map(|item| one(item, names)).collect()
}

fn terms(table: &Table<'_>) -> Option<FederationTerms> {
    let get = |key: &str| table.get(key);
    let urgency = get("urgency").map(|item| urgency(&item));
    let qos = get("qos").map(|item| item.whole(0..=2, ""));
    let retain = get("retain").map(|item| retain(&item));
    let expiry_s = get("expiry_s").map(|item| item.whole(1..=MAX_EXPIRY_S, " seconds"));
    let media_type = get("media_type").map(|item| media_type(&item));
    let remedy = " bytes of payload";
    let max_bytes = table.need("max_bytes").and_then(|item| item.whole(1..=MAX_BYTES, remedy));
    let remedy = " messages a second; leave the flow out to forbid it";
    let rate =
        table.need("messages_per_s").and_then(|item| item.thousandths(MAX_MESSAGES_PER_S, remedy));
    let burst = get("burst").map(|item| item.whole(1..=MAX_BURST, " messages"));
    let remedy = " bytes a second; leave the flow out to forbid it";
    let bytes_per_s = get("bytes_per_s").map(|item| item.whole(1..=MAX_BYTES_PER_S, remedy));
    let conflate = get("conflate").map(|item| item.truth());
    let rate = rate?;
    let usual_burst = (rate * BURST_S).div_ceil(1000).clamp(1, MAX_BURST);
    Some(FederationTerms {
        urgency: urgency.unwrap_or(Some(Urgency::DEFAULT))?,
        max_grade: Grade::new(u8::try_from(qos.unwrap_or(Some(1))?).ok()?)?,
        retain: retain.unwrap_or(Some(Some(false)))?,
        expiry: given(expiry_s)?.map(Duration::from_secs),
        media_type: given(media_type)?,
        max_bytes: max_bytes?,
        messages_per_1000_s: rate,
        burst: u32::try_from(burst.unwrap_or(Some(usual_burst))?).ok()?,
        bytes_per_s: given(bytes_per_s)?,
        conflate: conflate.unwrap_or(Some(false))?,
    })
}

/// A value that may be missing, but not wrong.
fn given<T>(value: Option<Option<T>>) -> Option<Option<T>> {
    value.map_or(Some(None), |value| value.map(Some))
}

fn urgency(item: &Item<'_>) -> Option<Urgency> {
    let parsed = Urgency::parse(item.text(MAX_NAME_BYTES)?);
    let remedy = "flash, immediate, priority, routine, or \"0\" to \"7\"";
    parsed.map_err(|_| item.refuse("is no urgency", remedy)).ok()
}

fn retain(item: &Item<'_>) -> Option<Option<bool>> {
    match item.text(MAX_NAME_BYTES)? {
        "never" => Some(Some(false)),
        "always" => Some(Some(true)),
        "as-published" => Some(None),
        other => {
            let what = format!("\"{}\" is unknown", shown(other));
            item.refuse(what, "never, always or as-published");
            None
        }
    }
}

fn media_type(item: &Item<'_>) -> Option<String> {
    let text = item.text(MAX_TEXT_BYTES)?;
    let is_token = |part: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || "!#$&-^_.+".contains(c);
        !part.is_empty() && part.chars().all(fits)
    };
    let is_fine = text.split_once('/').is_some_and(|(one, other)| is_token(one) && is_token(other));
    if !is_fine {
        let what = format!("\"{}\" is no media type", shown(text));
        item.refuse(what, "TYPE/SUBTYPE without parameters, as application/json");
        return None;
    }
    Some(text.to_ascii_lowercase())
}

fn topic_ids(root: &Table<'_>) -> Vec<(usize, u64, String)> {
    let read = |table: Table<'_>| {
        let remedy = " (MQTT-SN 1.2 §5.3.11)";
        let id = table.need("id").and_then(|item| item.whole(1..=65_534, remedy));
        let topic = table.need("topic").and_then(|item| item.text(MAX_TOPIC_BYTES));
        Some((table.line, id?, topic?.to_owned()))
    };
    let tables = root.tables("topic_id", MAX_TOPIC_IDS, &["id", "topic"]);
    tables.into_iter().filter_map(read).collect()
}

fn revoked(root: &Table<'_>) -> Vec<(usize, Revoked)> {
    let read = |table: Table<'_>| {
        let key = table.need("key").and_then(|item| key(&item));
        let reason = table.get("reason").and_then(|item| item.text(MAX_ABOUT_BYTES));
        Some((table.line, Revoked { key: key?, reason: reason.unwrap_or_default().to_owned() }))
    };
    let tables = root.tables("revoked", MAX_REVOKED, &["key", "reason"]);
    tables.into_iter().filter_map(read).collect()
}

fn signatures(root: &Table<'_>) -> Vec<(usize, Signature)> {
    let read = |table: Table<'_>| {
        let partner = table.need("partner").and_then(|item| name(&item));
        let key = table.need("key").and_then(|item| key(&item));
        let value = table.need("value").and_then(|item| {
            let bytes = from_hex(item.text(2 * SIGNATURE_BYTES)?);
            let bytes = bytes.filter(|bytes| bytes.len() == SIGNATURE_BYTES);
            if bytes.is_none() {
                item.refuse("is no signature", "128 hexadecimal digits in lower case");
            }
            bytes
        });
        Some((table.line, Signature { partner: partner?, key: key?, value: value? }))
    };
    let tables = root.tables("signature", MAX_SIGNATURES, &["partner", "key", "value"]);
    tables.into_iter().filter_map(read).collect()
}
