//! Services as JSON: what people and programs publish and read over HTTP.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::core::{Core, KEYWORDS, KIND, Publication};
use super::directory::{measured, rungs};
use super::model::{Bag, Binding, Entity, Key, Kind, Reference, Service, Target, Text};
use super::publishing::{Publishing, Quality};
use super::quality::{Determinism, TMODEL_LATENCY, Wanted, rank};
use super::refusal::{Reason, Refusal};
use super::uddi::collapsed;
use crate::messaging::{shown, time};

/// Most attributes of a service.
const MAX_ATTRIBUTES: usize = 32;
/// Most addresses of a service.
const MAX_URLS: usize = 16;
/// How long a service is kept that says nothing else.
const USUAL_LEASE: Duration = Duration::from_secs(3600);
/// Most services of a list.
pub(crate) const MAX_LISTED: usize = 1000;
/// What names of keywords begin with that are attributes of JSON.
const ATTRIBUTE: &str = "attribute:";

/// Reads a document.
///
/// # Errors
/// What is no JSON, a field that is not known, or is missing.
pub(crate) fn parse(bytes: &[u8]) -> Result<Publishing, Refusal> {
    serde_json::from_slice(bytes).map_err(|error| Refusal::malformed(error.to_string()))
}

/// A text within its bounds, with white space as UDDI has it.
fn bounded(name: &str, text: &str, max: usize) -> Result<String, Refusal> {
    let clean = collapsed(text);
    let count = clean.chars().count();
    if (1..=max).contains(&count) && !clean.chars().any(char::is_control) {
        return Ok(clean);
    }
    let line = format!(
        "{name}: '{}' has {count} characters; it has 1 to {max}, none of them \
                        for control",
        shown(text)
    );
    Err(Refusal::value(line))
}

/// Saves a service; its key. `key` is of the one that it takes the place of.
///
/// # Errors
/// Fields out of their bounds, and what the publisher may not do.
pub(crate) fn save(
    publication: &mut Publication<'_>,
    now: Duration,
    key: Option<Key>,
    said: &Publishing,
) -> Result<Key, Refusal> {
    if said.more_urls.len() >= MAX_URLS || said.attributes.len() > MAX_ATTRIBUTES {
        let line = format!("over {MAX_URLS} addresses or {MAX_ATTRIBUTES} attributes of a service");
        return Err(Refusal::new(Reason::TooManyOptions, line));
    }
    let name = bounded("name", &said.name, 255)?;
    let urls = std::iter::once(&said.url).chain(&said.more_urls);
    let urls: Vec<String> = urls.map(|url| bounded("url", url, 4096)).collect::<Result<_, _>>()?;
    let description = said.description.as_deref();
    let description = description.map(|text| bounded("description", text, 255)).transpose()?;
    let mut references = vec![Reference::new(KIND, "", bounded("kind", &said.kind, 255)?)];
    for (name, value) in &said.attributes {
        let name = bounded("the name of an attribute", name, 200)?;
        let value = bounded("an attribute", value, 255)?;
        references.push(Reference::new(KEYWORDS, &format!("{ATTRIBUTE}{name}"), value));
    }
    let facts = said.quality.as_ref().map(Quality::facts).transpose();
    let facts = facts.map_err(|what| Refusal::value(format!("quality: {what}")))?;
    let before = match &key {
        Some(key) => Some(publication.core().want(now, Kind::Service, key)?.clone()),
        None => None,
    };
    let mut bindings: Vec<Binding> = urls.iter().map(|url| binding(url)).collect();
    if let Some(facts) = &facts {
        references.extend(rungs(facts, before.as_ref().and_then(|before| before.service())));
        if let Some(first) = bindings.first_mut() {
            first.instances.push(measured(facts));
        }
    }
    let service = Service {
        business: match before.as_ref().and_then(|before| before.service()) {
            Some(before) => before.business.clone(),
            None => publication.home()?,
        },
        names: vec![Text::plain(name)],
        descriptions: description.into_iter().map(Text::plain).collect(),
        bindings,
        categories: Bag { references, groups: Vec::new() },
        facts,
    };
    let lease = said.lease_s.map_or(USUAL_LEASE, Duration::from_secs);
    publication.save_service(key, service, super::core::Lease::For(lease))
}

fn binding(url: &str) -> Binding {
    Binding {
        key: "".into(),
        descriptions: Vec::new(),
        target: Target::Access { use_type: Some("endPoint".to_owned()), address: url.to_owned() },
        instances: Vec::new(),
        categories: Bag::default(),
    }
}

/// A service as it is read.
pub(crate) fn shown_service(entity: &Entity, service: &Service, now: Duration) -> Value {
    let urls: Vec<&str> = service.bindings.iter().filter_map(Binding::address).collect();
    let kinds: Vec<&str> = service.categories.values(KIND).collect();
    let rungs: Vec<&str> = service.categories.values(TMODEL_LATENCY).collect();
    let mut attributes = Map::new();
    for reference in service.categories.references.iter().filter(|one| &*one.tmodel == KEYWORDS) {
        let name = reference.name.as_deref().unwrap_or_default();
        let name = name.strip_prefix(ATTRIBUTE).unwrap_or(name);
        attributes.insert(name.to_owned(), reference.value.as_str().into());
    }
    let mut value = json!({
        "id": super::directory::id(&entity.key),
        "name": service.names.first().map(|name| name.text.as_str()),
        "kind": kinds.first(),
        "url": urls.first(),
        "publisher": &*entity.owner,
        "modified": time::format(entity.modified),
    });
    let Some(members) = value.as_object_mut() else { return value };
    let mut add = |name: &str, value: Value| members.insert(name.to_owned(), value);
    if kinds.len() > 1 {
        add("kinds", kinds.into());
    }
    if urls.len() > 1 {
        add("more_urls", urls.into_iter().skip(1).collect::<Vec<_>>().into());
    }
    if let Some(description) = service.descriptions.first() {
        add("description", description.text.as_str().into());
    }
    if !attributes.is_empty() {
        add("attributes", attributes.into());
    }
    if let (Some(lease), Some(until)) = (entity.lease, entity.until) {
        add("lease_s", lease.as_secs().into());
        add("expires_in_s", until.saturating_sub(now).as_secs().into());
    }
    if !rungs.is_empty() {
        add("rungs", rungs.into());
    }
    if let Some(facts) = &service.facts
        && let Ok(quality) = serde_json::to_value(Quality::of(facts))
    {
        add("quality", quality);
    }
    value
}

/// What services are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) kind: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) rung: Option<String>,
    pub(crate) wanted: Option<Wanted>,
    pub(crate) limit: Option<usize>,
}

impl Asked {
    /// Reads a query.
    ///
    /// # Errors
    /// A parameter that is not known, is there twice or is out of its bounds.
    pub(crate) fn of(pairs: &super::directory::Pairs) -> Result<Self, Refusal> {
        let (mut asked, mut max_us, mut grade) = (Self::default(), None, None);
        for (name, value) in pairs {
            let is_again = match name.as_str() {
                "kind" => asked.kind.replace(value.clone()).is_some(),
                "name" => asked.name.replace(value.clone()).is_some(),
                "rung" => asked.rung.replace(value.clone()).is_some(),
                "max_latency_us" => max_us.replace(number(name, value, u64::MAX)?).is_some(),
                "limit" => {
                    let limit = number(name, value, MAX_LISTED as u64)?;
                    asked.limit.replace(usize::try_from(limit).unwrap_or(MAX_LISTED)).is_some()
                }
                "determinism" => {
                    let found = Determinism::parse(value).ok_or_else(|| {
                        let line =
                            format!("determinism is '{}'; it is soft, firm or hard", shown(value));
                        Refusal::value(line)
                    })?;
                    grade.replace(found).is_some()
                }
                other => {
                    let line = format!(
                        "no parameter '{}' here; there are kind, name, rung, \
                                        max_latency_us, determinism and limit",
                        shown(other)
                    );
                    return Err(Refusal::malformed(line));
                }
            };
            if is_again {
                return Err(Refusal::malformed(format!("{name} is there twice; give it once")));
            }
        }
        asked.wanted = match (max_us, grade) {
            (None, None) => None,
            (max_us, grade) => Some(Wanted {
                max_us: max_us.unwrap_or(u64::MAX),
                grade: grade.unwrap_or(Determinism::Soft),
            }),
        };
        Ok(asked)
    }
}

fn number(name: &str, text: &str, max: u64) -> Result<u64, Refusal> {
    let number = text.parse::<u64>().ok().filter(|number| (1..=max).contains(number));
    number.ok_or_else(|| Refusal::value(format!("{name} is '{}'; it is 1 to {max}", shown(text))))
}

/// Services that are what is asked for, the best first; and how many there are.
pub(crate) fn list(core: &Core, now: Duration, asked: &Asked) -> Value {
    let fits = |service: &Service| {
        let has = |tmodel: &str, wanted: &Option<String>| {
            wanted
                .as_ref()
                .is_none_or(|wanted| service.categories.values(tmodel).any(|value| value == wanted))
        };
        let is_named = asked
            .name
            .as_ref()
            .is_none_or(|wanted| service.names.iter().any(|name| name.text == *wanted));
        is_named
            && has(KIND, &asked.kind)
            && has(TMODEL_LATENCY, &asked.rung)
            && asked.wanted.is_none_or(|wanted| {
                service.facts.as_ref().is_some_and(|facts| wanted.holds(facts))
            })
    };
    let grade = asked.wanted.map_or(Determinism::Soft, |wanted| wanted.grade);
    let of = |entity: &'_ std::sync::Arc<Entity>| {
        let service = entity.service().filter(|service| fits(service))?;
        Some((rank(service.facts.as_ref(), grade), entity.clone()))
    };
    let mut found: Vec<_> = match asked.kind.as_ref() {
        Some(kind) => {
            let keys = core.with_category(KIND, kind).into_iter().flatten();
            keys.filter_map(|key| core.get(now, key)).filter_map(of).collect()
        }
        None => core.all(now, Kind::Service).filter_map(of).collect(),
    };
    found.sort_by(|(one, one_entity), (other, other_entity)| {
        one.cmp(other).then_with(|| one_entity.key.cmp(&other_entity.key))
    });
    let count = found.len();
    let rows = found.iter().take(asked.limit.unwrap_or(100));
    let rows = rows.filter_map(|(_, entity)| Some(shown_service(entity, entity.service()?, now)));
    json!({ "services": rows.collect::<Vec<_>>(), "count": count })
}
