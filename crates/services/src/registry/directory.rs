//! The resource directory of CoRE (RFC 9176): endpoints register links, others look them up.
//!
//! A registration is a service of the one store: its links are bindings, their `rt` its kinds. So
//! what is published by other faces can be looked up here, and what is registered here is found
//! there.

#[cfg(test)]
mod tests;

use std::time::Duration;

use ring::digest::{SHA256, digest};

use super::core::{Core, KEYWORDS, KIND, Publication};
use super::links::Link;
use super::model::{Bag, Binding, Entity, Instance, Key, Kind, Reference, Service, Target, Text};
use super::quality::{Determinism, Facts, Ladder, Rung, TMODEL_LATENCY};
use super::refusal::{Reason, Refusal};
use super::uddi::collapsed;
use crate::messaging::shown;

/// How long a registration is kept that says nothing else (RFC 9176 §5).
pub(crate) const USUAL_LIFE: Duration = Duration::from_secs(90_000);
/// Longest name of an endpoint and of a sector, in bytes (RFC 9176 §5).
const MAX_NAME_BYTES: usize = 63;
/// Longest attribute, in characters: what a value of UDDI takes.
const MAX_VALUE_CHARS: usize = 255;
/// Most pairs of a query.
const MAX_PAIRS: usize = 32;
/// Most links of an answer.
const MAX_FOUND: usize = 1000;
/// What the key of a registration begins with.
const KEY: &str = "uddi:longwire.example:rd-";
/// What names of keywords begin with that are attributes.
const ATTRIBUTE: &str = "rd:";
/// Where a link led to as it was registered.
const HREF: &str = "rd:href";
/// The name of an endpoint, its sector, its base.
const NAMES: [&str; 3] = ["ep", "d", "base"];

/// Pairs of a query, in order.
pub(crate) type Pairs = [(String, String)];

/// The number of a registration in its path, by its key.
pub(crate) fn id(key: &str) -> &str {
    key.strip_prefix(KEY).or_else(|| key.strip_prefix("uddi:")).unwrap_or(key)
}

/// The key of a number in a path.
pub(crate) fn key(id: &str) -> Key {
    let is_own = id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let prefix = if is_own { KEY } else { "uddi:" };
    format!("{prefix}{}", id.to_lowercase()).into()
}

fn bad(line: impl Into<String>) -> Refusal {
    Refusal::new(Reason::ValueNotAllowed, line)
}

/// What a registration says.
#[derive(Debug, Default)]
struct Said {
    ep: Option<String>,
    d: Option<String>,
    base: Option<String>,
    life: Option<Duration>,
    facts: Vec<(&'static str, String)>,
    others: Vec<(String, String)>,
}

impl Said {
    fn of(pairs: &Pairs) -> Result<Self, Refusal> {
        if pairs.len() > MAX_PAIRS {
            let line = format!("{} parameters, the limit is {MAX_PAIRS}", pairs.len());
            return Err(Refusal::new(Reason::TooManyOptions, line));
        }
        let mut said = Self::default();
        for (name, value) in pairs {
            let value = &collapsed(value);
            if value.chars().count() > MAX_VALUE_CHARS {
                let line = format!("{} has over {MAX_VALUE_CHARS} characters", shown(name));
                return Err(bad(line));
            }
            let is_short = value.len() <= MAX_NAME_BYTES && !value.is_empty();
            let place = match name.as_str() {
                "ep" | "d" if !is_short => {
                    let line = format!("{name} has {} bytes; it has 1 to 63", value.len());
                    return Err(bad(line));
                }
                "ep" => &mut said.ep,
                "d" => &mut said.d,
                "base" => {
                    if !is_base(value) {
                        let line = format!("base '{}' is no URI with a host", shown(value));
                        return Err(bad(line));
                    }
                    &mut said.base
                }
                "lt" => {
                    let seconds = value.parse::<u32>().ok().filter(|seconds| *seconds > 0);
                    let line = || format!("lt is '{}'; it is 1 to {}", shown(value), u32::MAX);
                    let seconds = seconds.ok_or_else(|| bad(line()))?;
                    if said.life.replace(Duration::from_secs(seconds.into())).is_some() {
                        return Err(bad("lt is there twice; give it once"));
                    }
                    continue;
                }
                other => {
                    match fact_name(other) {
                        Some(fact) => said.facts.push((fact, value.clone())),
                        None => said.others.push((other.to_owned(), value.clone())),
                    }
                    continue;
                }
            };
            if place.replace(value.clone()).is_some() {
                return Err(bad(format!("{name} is there twice; give it once")));
            }
        }
        Ok(said)
    }

    fn facts(&self) -> Result<Option<Facts>, Refusal> {
        if self.facts.is_empty() {
            return Ok(None);
        }
        let pairs = self.facts.iter().map(|(name, value)| (*name, value.as_str()));
        Facts::of(pairs).map(Some).map_err(|what| bad(format!("what was measured: {what}")))
    }
}

/// The name of a fact of an attribute: `q-p99-us` is p99_us.
fn fact_name(attribute: &str) -> Option<&'static str> {
    let name = attribute.strip_prefix("q-")?.replace('-', "_");
    Facts::NAMES.into_iter().find(|known| *known == name)
}

/// A scheme and a host.
fn is_base(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty()
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
            && !rest.is_empty()
            && !rest.starts_with('/')
            && !rest.contains(|one: char| one.is_whitespace() || matches!(one, '<' | '>' | '"'))
    })
}

/// A reference against a base that has a scheme and a host (RFC 3986 §5.2, without dot segments).
fn resolved(base: &str, target: &str) -> String {
    let has_scheme = target.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme.bytes().all(|one| one.is_ascii_alphanumeric() || b"+-.".contains(&one))
    });
    if has_scheme {
        return target.to_owned();
    }
    let (scheme, rest) = base.split_once("://").unwrap_or(("coap", base));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    if target.starts_with("//") {
        return format!("{scheme}:{target}");
    }
    if target.starts_with('/') || target.is_empty() {
        return format!("{scheme}://{authority}{target}");
    }
    let path = rest.strip_prefix(authority).unwrap_or_default();
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    format!("{scheme}://{authority}{folder}/{target}")
}

fn attribute(name: &str, value: &str) -> Reference {
    Reference::new(KEYWORDS, &format!("{ATTRIBUTE}{name}"), value)
}

/// The attributes in a bag.
fn attributes(bag: &Bag) -> impl Iterator<Item = (&str, &str)> {
    let of = bag.references.iter().filter(|one| &*one.tmodel == KEYWORDS);
    of.filter_map(|one| {
        let name = one.name.as_deref()?;
        let name = name.strip_prefix(ATTRIBUTE).filter(|_| name != HREF)?;
        Some((name, one.value.as_str()))
    })
}

/// An instance that says what was measured.
pub(crate) fn measured(facts: &Facts) -> Instance {
    let namespace = Some(super::uddi::NAMESPACE.to_owned());
    let element = |name: &str| super::element::Element {
        namespace: namespace.clone(),
        name: name.to_owned(),
        ..super::element::Element::default()
    };
    let (mut details, mut parms) = (element("instanceDetails"), element("instanceParms"));
    parms.text = facts.text();
    details.children.push(parms);
    Instance { tmodel: TMODEL_LATENCY.into(), descriptions: Vec::new(), details: Some(details) }
}

/// The rungs of a service by what was measured, where these were held before.
pub(crate) fn rungs(facts: &Facts, before: Option<&Service>) -> Vec<Reference> {
    let held = before.map(|before| before.categories.values(TMODEL_LATENCY));
    let held = held.into_iter().flatten().filter_map(Rung::parse);
    let mut ladder = Ladder::holding(held);
    ladder.observe(facts);
    ladder.held().map(|rung| Reference::new(TMODEL_LATENCY, "", rung.value())).collect()
}

fn binding(link: &Link, base: &str) -> Result<Binding, Refusal> {
    let address = collapsed(&resolved(base, &link.target));
    if address.chars().count() > 4096 {
        return Err(bad("a link has over 4096 characters"));
    }
    let mut references = Vec::new();
    if address != link.target {
        references.push(Reference::new(KEYWORDS, HREF, link.target.as_str()));
    }
    for (name, value) in &link.attributes {
        let value = &collapsed(value.as_deref().unwrap_or_default());
        if value.chars().count() > MAX_VALUE_CHARS || name.len() > MAX_NAME_BYTES {
            let line = format!("attribute {} has over {MAX_VALUE_CHARS} characters", shown(name));
            return Err(bad(line));
        }
        references.push(attribute(name, value));
    }
    Ok(Binding {
        key: "".into(),
        descriptions: Vec::new(),
        target: Target::Access { use_type: Some("endPoint".to_owned()), address },
        instances: Vec::new(),
        categories: Bag { references, groups: Vec::new() },
    })
}

/// Registers an endpoint with its links; the key, and whether it is new. One that is there with the
/// same name and sector is replaced (RFC 9176 §5).
///
/// # Errors
/// Parameters and links out of their bounds, a name that is another publisher's.
pub(crate) fn register(
    publication: &mut Publication<'_>,
    now: Duration,
    pairs: &Pairs,
    links: &[Link],
    source: Option<&str>,
) -> Result<(Key, bool), Refusal> {
    let said = Said::of(pairs)?;
    let ep = said.ep.as_deref().ok_or_else(|| bad("ep is missing; name the endpoint in it"))?;
    let d = said.d.as_deref().unwrap_or_default();
    let base = said.base.as_deref().or(source);
    let base = base.ok_or_else(|| bad("base is missing; say where the endpoint is"))?;
    let facts = said.facts()?;
    let key = place(publication.core(), now, ep, d);
    let before = publication.core().get(now, &key).cloned();
    let mut bindings: Vec<Binding> =
        links.iter().map(|link| binding(link, base)).collect::<Result<_, _>>()?;
    let mut references = vec![attribute("ep", ep), attribute("base", base)];
    if !d.is_empty() {
        references.push(attribute("d", d));
    }
    references.extend(said.others.iter().map(|(name, value)| attribute(name, value)));
    references.extend(kinds(links));
    if let Some(facts) = &facts {
        references.extend(rungs(facts, before.as_ref().and_then(|before| before.service())));
        let first = bindings.first_mut();
        let first = first.ok_or_else(|| bad("what was measured needs a link that it is of"))?;
        first.instances.push(measured(facts));
    }
    let service = Service {
        business: publication.home()?,
        names: vec![Text::plain(ep)],
        descriptions: Vec::new(),
        bindings,
        categories: Bag { references, groups: Vec::new() },
        facts,
    };
    let life = said.life.unwrap_or(USUAL_LIFE);
    publication.save_at(key.clone(), service, life)?;
    Ok((key, before.is_none()))
}

/// The kinds that links say.
fn kinds(links: &[Link]) -> Vec<Reference> {
    let mut kinds: Vec<&str> = Vec::new();
    for kind in links.iter().filter_map(|link| link.value("rt")).flat_map(str::split_whitespace) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds.into_iter().map(|kind| Reference::new(KIND, "", kind)).collect()
}

/// The key of an endpoint: always the same one, so that who registers again has the same path.
fn place(core: &Core, now: Duration, ep: &str, d: &str) -> Key {
    let mut at: Key = KEY.into();
    // Two names share a key once in four billion: then the second has the next.
    for count in 0..16u8 {
        let hash =
            digest(&SHA256, [&[count], ep.as_bytes(), &[0], d.as_bytes()].concat().as_slice());
        let hash = hash.as_ref().iter().take(4).map(|byte| format!("{byte:02x}"));
        at = format!("{KEY}{}", hash.collect::<String>()).into();
        let other = core.get(now, &at).and_then(|entity| entity.service());
        let is_same = other.is_none_or(|service| {
            let has = |name: &str| attributes(&service.categories).find(|(of, _)| *of == name);
            has("ep").is_some_and(|(_, value)| value == ep)
                && has("d").map_or("", |(_, value)| value) == d
        });
        if is_same {
            break;
        }
    }
    at
}

/// Updates a registration: its lease begins again (RFC 9176 §5.3.1).
///
/// # Errors
/// As [`register`], and a registration that is not there.
pub(crate) fn update(
    publication: &mut Publication<'_>,
    now: Duration,
    key: &Key,
    pairs: &Pairs,
) -> Result<(), Refusal> {
    let said = Said::of(pairs)?;
    if said.ep.is_some() || said.d.is_some() {
        return Err(bad("ep and d cannot be changed; register anew"));
    }
    let facts = said.facts()?;
    let entity = publication.core().want(now, Kind::Service, key)?.clone();
    let is_renewal = said.base.is_none() && said.others.is_empty() && facts.is_none();
    if is_renewal || entity.lease.is_none() {
        return publication.renew(key, said.life);
    }
    let Some(mut service) = entity.service().cloned() else { return Ok(()) };
    if let Some(base) = &said.base {
        rebase(&mut service, base);
    }
    for (name, value) in &said.others {
        let is_it = |one: &Reference| {
            one.name.as_deref().and_then(|one| one.strip_prefix(ATTRIBUTE)) == Some(name)
        };
        service.categories.references.retain(|one| !is_it(one));
        service.categories.references.push(attribute(name, value));
    }
    if let Some(facts) = facts {
        let rungs = rungs(&facts, entity.service());
        service.categories.references.retain(|one| &*one.tmodel != TMODEL_LATENCY);
        service.categories.references.extend(rungs);
        for binding in &mut service.bindings {
            binding.instances.retain(|one| &*one.tmodel != TMODEL_LATENCY);
        }
        if let Some(first) = service.bindings.first_mut() {
            first.instances.push(measured(&facts));
        }
        service.facts = Some(facts);
    }
    let life = said.life.or(entity.lease).unwrap_or(USUAL_LIFE);
    publication.save_at(key.clone(), service, life).map(drop)
}

fn rebase(service: &mut Service, base: &str) {
    let is_base = |one: &&mut Reference| one.name.as_deref() == Some("rd:base");
    if let Some(one) = service.categories.references.iter_mut().find(is_base) {
        base.clone_into(&mut one.value);
    }
    for binding in &mut service.bindings {
        let mut references = binding.categories.references.iter();
        let href = references.find(|one| one.name.as_deref() == Some(HREF));
        if let (Some(href), Target::Access { address, .. }) = (href, &mut binding.target) {
            *address = resolved(base, &href.value);
        }
    }
}

/// What is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// Endpoints (RFC 9176 §6.4).
    Endpoints,
    /// Links of endpoints (RFC 9176 §6.1).
    Resources,
}

/// What a lookup finds (RFC 9176 §6.2).
///
/// # Errors
/// `page` without `count`, or one of both that is no number.
pub(crate) fn look_up(
    core: &Core,
    now: Duration,
    lookup: Lookup,
    pairs: &Pairs,
) -> Result<Vec<Link>, Refusal> {
    if pairs.len() > MAX_PAIRS {
        let line = format!("{} parameters, the limit is {MAX_PAIRS}", pairs.len());
        return Err(Refusal::new(Reason::TooManyOptions, line));
    }
    let number = |name: &str| match pairs.iter().find(|(of, _)| of == name) {
        None => Ok(None),
        Some((_, text)) => match text.parse::<usize>() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(bad(format!("{name} is '{}', no number", shown(text)))),
        },
    };
    let (page, count) = (number("page")?, number("count")?);
    if page.is_some() && count.is_none() {
        return Err(bad("page needs count; say how many a page has"));
    }
    let terms: Vec<&(String, String)> =
        pairs.iter().filter(|(name, _)| name != "page" && name != "count").collect();
    let rows = count.unwrap_or(MAX_FOUND).min(MAX_FOUND);
    let skipped = page.unwrap_or(0).saturating_mul(rows);
    let found = candidates(core, now, &terms).into_iter().flat_map(|entity| {
        let links = match lookup {
            Lookup::Endpoints => endpoint(entity, &terms).into_iter().collect(),
            Lookup::Resources => resources(entity, &terms),
        };
        links.into_iter()
    });
    Ok(found.skip(skipped).take(rows).collect())
}

/// The services that can have what is looked for: by an index, where a term has one.
fn candidates<'a>(
    core: &'a Core,
    now: Duration,
    terms: &[&(String, String)],
) -> Vec<&'a std::sync::Arc<Entity>> {
    let indexed = |(name, value): &&&(String, String)| {
        match name.as_str() {
            // What endpoints are themselves of is in no index.
            "rt" => !value.ends_with('*') && !value.starts_with("core."),
            "qos" => !value.ends_with('*'),
            _ => false,
        }
    };
    let all = || core.all(now, Kind::Service).collect();
    let Some((name, value)) = terms.iter().find(indexed).copied() else { return all() };
    let of = if name == "rt" { KIND } else { TMODEL_LATENCY };
    let keys = core.with_category(of, value).into_iter().flatten();
    keys.filter_map(|key| core.get(now, key)).filter(|one| one.service().is_some()).collect()
}

/// The link of an endpoint as it is registered.
fn endpoint_link(entity: &Entity) -> Option<Link> {
    let service = entity.service()?;
    let mut link = Link::to(format!("/rd/{}", id(&entity.key)));
    let said: Vec<(&str, &str)> = attributes(&service.categories).collect();
    let find = |name: &str| said.iter().find(|(of, _)| *of == name).map(|(_, value)| *value);
    let name = find("ep").or_else(|| service.names.first().map(|name| name.text.as_str()));
    link = link.with("ep", name.unwrap_or_else(|| id(&entity.key)));
    for name in NAMES.into_iter().skip(1) {
        if let Some(value) = find(name) {
            link = link.with(name, value);
        }
    }
    link = link.with("rt", "core.rd-ep");
    if let Some(lease) = entity.lease {
        link = link.with("lt", lease.as_secs().to_string());
    }
    for (name, value) in said.iter().filter(|(name, _)| !NAMES.contains(name)) {
        link = link.with(name, *value);
    }
    if let Some(facts) = &service.facts {
        for (name, value) in Facts::NAMES.iter().zip(facts.values()) {
            link = link.with(&format!("q-{}", name.replace('_', "-")), value);
        }
    }
    Some(link)
}

/// The links of a service, absolute.
pub(crate) fn service_links(service: &Service) -> Vec<Link> {
    // Links that were registered say themselves what they are of.
    let is_registered = attributes(&service.categories).any(|(name, _)| name == "ep");
    let kinds = service.categories.values(KIND).filter(|_| !is_registered);
    let kinds: Vec<&str> = kinds.collect();
    let qos = tightest(service);
    let mut links = Vec::new();
    for binding in &service.bindings {
        let Some(address) = binding.address() else { continue };
        let mut link = Link::to(address);
        for (name, value) in attributes(&binding.categories) {
            let value = (!value.is_empty()).then(|| value.to_owned());
            link.attributes.push((name.to_owned(), value));
        }
        if link.value("rt").is_none() && !kinds.is_empty() {
            link = link.with("rt", kinds.join(" "));
        }
        if !qos.is_empty() {
            link = link.with("qos", qos.as_str());
        }
        links.push(link);
    }
    links
}

/// The lowest rung of each grade.
fn tightest(service: &Service) -> String {
    let rungs: Vec<Rung> =
        service.categories.values(TMODEL_LATENCY).filter_map(Rung::parse).collect();
    let lowest = |grade| rungs.iter().filter(|rung| rung.grade == grade).min();
    let lowest = Determinism::ALL.into_iter().filter_map(lowest);
    lowest.map(|rung| rung.value()).collect::<Vec<_>>().join(" ")
}

fn endpoint(entity: &Entity, terms: &[&(String, String)]) -> Option<Link> {
    let (link, service) = (endpoint_link(entity)?, entity.service()?);
    let links = service_links(service);
    let fits = |term: &&(String, String)| {
        has(&link, service, term) || links.iter().any(|link| has(link, service, term))
    };
    terms.iter().all(fits).then_some(link)
}

fn resources(entity: &Entity, terms: &[&(String, String)]) -> Vec<Link> {
    let (Some(of), Some(service)) = (endpoint_link(entity), entity.service()) else {
        return Vec::new();
    };
    let fits = |link: &Link| {
        terms.iter().all(|term| {
            has(link, service, term)
                || (term.0 != "href" && term.0 != "rt" && has(&of, service, term))
        })
    };
    let mut links = service_links(service);
    links.retain(fits);
    links
}

/// Whether a link has what a term says.
fn has(link: &Link, service: &Service, (name, wanted): &(String, String)) -> bool {
    let fits = |value: &str| match wanted.strip_suffix('*') {
        Some(beginning) => value.starts_with(beginning),
        None => value == wanted,
    };
    match name.as_str() {
        "href" => fits(&link.target),
        // Every rung that it has counts, though only the lowest are shown.
        "qos" => service.categories.values(TMODEL_LATENCY).any(fits),
        "rt" | "if" | "rel" | "et" => {
            let values = link.attributes.iter().filter(|(of, _)| of == name);
            let mut words =
                values.flat_map(|(_, value)| value.as_deref().unwrap_or("").split_whitespace());
            words.any(fits)
        }
        _ => link
            .attributes
            .iter()
            .any(|(of, value)| of == name && fits(value.as_deref().unwrap_or_default())),
    }
}

/// The links of the directory itself (RFC 9176 §4.3).
pub(crate) fn own_links() -> Vec<Link> {
    let link = |path: &str, rt: &str| Link::to(path).with("rt", rt).with("ct", "40");
    let observed = |mut link: Link| {
        link.attributes.push(("obs".to_owned(), None));
        link
    };
    vec![
        link("/rd", "core.rd"),
        observed(link("/rd-lookup/ep", "core.rd-lookup-ep")),
        observed(link("/rd-lookup/res", "core.rd-lookup-res")),
    ]
}

/// Whether a link of the directory has what a term says (RFC 6690 §4.1).
pub(crate) fn is_of(link: &Link, term: &(String, String)) -> bool {
    has(link, &Service::default(), term)
}
