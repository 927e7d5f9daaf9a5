//! The calls of UDDI v3 that are served: nine of inquiry, eight of publication, two of security.

use std::time::Duration;

use super::super::core::{Core, Lease, Publication};
use super::super::element::Element;
use super::super::find::{MAX_ROWS, Page, Qualifiers, Query};
use super::super::model::{Entity, Key, Kind};
use super::super::refusal::{Reason, Refusal};
use super::read;
use super::write::Writer;
use crate::messaging::{shown, time};

/// Most entities of one request.
const MAX_ENTITIES: usize = 256;
/// The key of this node, as operational information has it.
const NODE: &str = "uddi:longwire.example:node";

/// What a call is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Inquiry,
    Publication,
    GetAuthToken,
    DiscardAuthToken,
}

/// An answer: a message of UDDI, without its envelope.
pub(crate) type Answer = String;

impl Call {
    /// What a message asks for.
    ///
    /// # Errors
    /// [`Reason::Unsupported`] for what is known and not served, [`Reason::Malformed`] for what is
    /// no request.
    pub(crate) fn of(name: &str) -> Result<Self, Refusal> {
        match name {
            "find_relatedBusinesses" => {
                let line = format!("{name} is not served: there are no assertions here");
                Err(Refusal::new(Reason::Unsupported, line))
            }
            "get_authToken" => Ok(Self::GetAuthToken),
            "discard_authToken" => Ok(Self::DiscardAuthToken),
            _ if name.starts_with("find_") || name.starts_with("get_") => Ok(Self::Inquiry),
            _ if name.starts_with("save_") || name.starts_with("delete_") => Ok(Self::Publication),
            _ => Err(Refusal::malformed(format!("'{}' is no request", shown(name)))),
        }
    }
}

/// Answers a request of inquiry.
///
/// # Errors
/// Keys that are not there, qualifiers that are not known or exclude each other.
pub(crate) fn inquire(core: &Core, now: Duration, request: &Element) -> Result<Answer, Refusal> {
    let mut writer = Writer::default();
    match request.name.as_str() {
        "find_business" => find_business(core, now, request, &mut writer)?,
        "find_service" => find_service(core, now, request, &mut writer)?,
        "find_binding" => find_binding(core, now, request, &mut writer)?,
        "find_tModel" => find_tmodel(core, now, request, &mut writer)?,
        "get_businessDetail" => {
            let of = entities(core, now, Kind::Business, &keys(request, "businessKey")?)?;
            businesses(core, now, &of, &mut writer);
        }
        "get_serviceDetail" => {
            services(
                &entities(core, now, Kind::Service, &keys(request, "serviceKey")?)?,
                &mut writer,
            );
        }
        "get_bindingDetail" => {
            bindings(core, now, &keys(request, "bindingKey")?, &mut writer)?;
        }
        "get_tModelDetail" => {
            tmodels(&entities(core, now, Kind::TModel, &keys(request, "tModelKey")?)?, &mut writer);
        }
        "get_operationalInfo" => {
            operational(core, now, &keys(request, "entityKey")?, &mut writer)?;
        }
        other => return Err(Refusal::malformed(format!("'{}' is no inquiry", shown(other)))),
    }
    Ok(writer.out)
}

/// The keys that a request names, at least one.
fn keys(request: &Element, name: &str) -> Result<Vec<Key>, Refusal> {
    let keys = read::keys(request, name);
    check_count(keys.len())?;
    Ok(keys)
}

fn check_count(count: usize) -> Result<(), Refusal> {
    if count <= MAX_ENTITIES {
        return Ok(());
    }
    let line = format!("{count} entities in a request, the limit is {MAX_ENTITIES}");
    Err(Refusal::new(Reason::TooManyOptions, line))
}

type Found<'a> = Vec<&'a std::sync::Arc<Entity>>;

fn entities<'a>(
    core: &'a Core,
    now: Duration,
    kind: Kind,
    keys: &[Key],
) -> Result<Found<'a>, Refusal> {
    keys.iter().map(|key| core.want(now, kind, key)).collect()
}

fn businesses(core: &Core, now: Duration, found: &[&std::sync::Arc<Entity>], writer: &mut Writer) {
    writer.root("businessDetail", &[]);
    for entity in found {
        if let Some(business) = entity.business() {
            writer.business(&entity.key, business, core.services_of(now, &entity.key));
        }
    }
    writer.end("businessDetail");
}

fn services(found: &[&std::sync::Arc<Entity>], writer: &mut Writer) {
    writer.root("serviceDetail", &[]);
    for entity in found {
        if let Some(service) = entity.service() {
            writer.service(&entity.key, service);
        }
    }
    writer.end("serviceDetail");
}

fn tmodels(found: &[&std::sync::Arc<Entity>], writer: &mut Writer) {
    writer.root("tModelDetail", &[]);
    for entity in found {
        if let Some(tmodel) = entity.tmodel() {
            writer.tmodel(&entity.key, tmodel);
        }
    }
    writer.end("tModelDetail");
}

fn bindings(core: &Core, now: Duration, keys: &[Key], writer: &mut Writer) -> Result<(), Refusal> {
    writer.root("bindingDetail", &[]);
    for key in keys {
        let (entity, binding) = core.want_binding(now, key)?;
        writer.binding(&entity.key, binding);
    }
    writer.end("bindingDetail");
    Ok(())
}

fn operational(
    core: &Core,
    now: Duration,
    keys: &[Key],
    writer: &mut Writer,
) -> Result<(), Refusal> {
    writer.root("operationalInfos", &[]);
    for key in keys {
        let entity = match core.get(now, key) {
            Some(entity) => entity,
            None => core.want_binding(now, key)?.0,
        };
        writer.start("operationalInfo", &[("entityKey", key)]);
        writer.text("created", &[], &time::format(entity.created));
        writer.text("modified", &[], &time::format(entity.modified));
        writer.text("modifiedIncludingChildren", &[], &time::format(entity.modified_below));
        writer.text("nodeID", &[], NODE);
        writer.text("authorizedName", &[], &entity.owner);
        writer.end("operationalInfo");
    }
    writer.end("operationalInfos");
    Ok(())
}

/// The terms of a search. Those of a find_tModel in it are more tModels of its bag.
fn query(core: &Core, now: Duration, request: &Element) -> Result<Query, Refusal> {
    let names = request.child("findQualifiers").map(|all| &all.children[..]);
    let names = names.unwrap_or_default().iter().map(|one| one.text.as_str());
    let number = |name: &str, usual: usize| match request.attribute(name) {
        None => Ok(usual),
        Some(text) => {
            let number = text.trim().parse::<usize>().ok().filter(|&number| number > 0);
            let line = || format!("{name} is '{}'; it is 1 or more", shown(text));
            number.ok_or_else(|| Refusal::new(Reason::InvalidValue, line()))
        }
    };
    let mut query = Query {
        qualifiers: Qualifiers::parse(names)?,
        names: read::texts(request, "name"),
        identifiers: read::identifiers(request),
        categories: read::categories(request),
        tmodels: request
            .child("tModelBag")
            .map(|bag| read::keys(bag, "tModelKey"))
            .unwrap_or_default(),
        urls: request
            .child("discoveryURLs")
            .map(|urls| urls.children.iter().map(|url| url.text.clone()).collect())
            .unwrap_or_default(),
        within: None,
        head: number("listHead", 1)?,
        rows: number("maxRows", MAX_ROWS)?,
    };
    if request.child("find_relatedBusinesses").is_some() {
        Call::of("find_relatedBusinesses")?;
    }
    if let Some(inner) = request.child("find_tModel") {
        let found = self::query(core, now, inner)?.entities(core, now, Kind::TModel);
        // What is wanted and is not there, nothing refers to.
        let none = || vec![Key::from("")];
        let keys: Vec<Key> = found.rows.iter().map(|entity| entity.key.clone()).collect();
        query.tmodels.extend(if keys.is_empty() { none() } else { keys });
    }
    query.check()?;
    Ok(query)
}

fn list_start<T>(name: &str, page: &Page<T>, writer: &mut Writer) {
    let truncated = if page.is_truncated() { "true" } else { "false" };
    writer.root(name, &[("truncated", truncated)]);
    writer.start("listDescription", &[]);
    writer.text("includeCount", &[], &page.rows.len().to_string());
    writer.text("actualCount", &[], &page.count.to_string());
    writer.text("listHead", &[], &page.head.to_string());
    writer.end("listDescription");
}

fn service_infos<'a>(
    all: impl Iterator<Item = (&'a str, &'a super::super::model::Service)>,
    writer: &mut Writer,
) {
    let mut all = all.peekable();
    if all.peek().is_none() {
        return;
    }
    writer.start("serviceInfos", &[]);
    for (key, service) in all {
        let attributes = [("serviceKey", key), ("businessKey", &*service.business)];
        writer.start("serviceInfo", &attributes);
        writer.texts("name", &service.names);
        writer.end("serviceInfo");
    }
    writer.end("serviceInfos");
}

fn find_business(
    core: &Core,
    now: Duration,
    request: &Element,
    writer: &mut Writer,
) -> Result<(), Refusal> {
    let page = query(core, now, request)?.entities(core, now, Kind::Business);
    list_start("businessList", &page, writer);
    if !page.rows.is_empty() {
        writer.start("businessInfos", &[]);
        for entity in &page.rows {
            let Some(business) = entity.business() else { continue };
            writer.start("businessInfo", &[("businessKey", &entity.key)]);
            writer.texts("name", &business.names);
            writer.texts("description", &business.descriptions);
            service_infos(core.services_of(now, &entity.key), writer);
            writer.end("businessInfo");
        }
        writer.end("businessInfos");
    }
    writer.end("businessList");
    Ok(())
}

fn find_service(
    core: &Core,
    now: Duration,
    request: &Element,
    writer: &mut Writer,
) -> Result<(), Refusal> {
    let mut query = query(core, now, request)?;
    query.within = request.attribute("businessKey").and_then(read::key);
    if let Some(business) = &query.within {
        core.want(now, Kind::Business, business)?;
    }
    let page = query.entities(core, now, Kind::Service);
    list_start("serviceList", &page, writer);
    let all = page.rows.iter().filter_map(|entity| Some((&*entity.key, entity.service()?)));
    service_infos(all, writer);
    writer.end("serviceList");
    Ok(())
}

fn find_binding(
    core: &Core,
    now: Duration,
    request: &Element,
    writer: &mut Writer,
) -> Result<(), Refusal> {
    let mut query = query(core, now, request)?;
    query.within = request.attribute("serviceKey").and_then(read::key);
    if let Some(service) = &query.within {
        core.want(now, Kind::Service, service)?;
    }
    let page = query.bindings(core, now);
    list_start("bindingDetail", &page, writer);
    for (entity, at) in &page.rows {
        if let Some(binding) = entity.service().and_then(|service| service.bindings.get(*at)) {
            writer.binding(&entity.key, binding);
        }
    }
    writer.end("bindingDetail");
    Ok(())
}

fn find_tmodel(
    core: &Core,
    now: Duration,
    request: &Element,
    writer: &mut Writer,
) -> Result<(), Refusal> {
    let page = query(core, now, request)?.entities(core, now, Kind::TModel);
    list_start("tModelList", &page, writer);
    if !page.rows.is_empty() {
        writer.start("tModelInfos", &[]);
        for entity in &page.rows {
            let Some(tmodel) = entity.tmodel() else { continue };
            writer.start("tModelInfo", &[("tModelKey", &entity.key)]);
            writer.texts("name", std::slice::from_ref(&tmodel.name));
            writer.texts("description", &tmodel.descriptions);
            writer.end("tModelInfo");
        }
        writer.end("tModelInfos");
    }
    writer.end("tModelList");
    Ok(())
}

/// Does what a request of publication says; its answer. What it changed is kept only where the
/// caller finishes the publication.
///
/// # Errors
/// The first thing that may not be.
pub(crate) fn publish(
    publication: &mut Publication<'_>,
    now: Duration,
    request: &Element,
) -> Result<Answer, Refusal> {
    let count = request.children.iter().filter(|child| child.name != "authInfo").count();
    let inner = request.all("businessEntity").filter_map(|one| one.child("businessServices"));
    check_count(count + inner.map(|all| all.children.len()).sum::<usize>())?;
    let mut writer = Writer::default();
    match request.name.as_str() {
        "save_business" => {
            let saved = each(request, "businessEntity", |element| {
                let (key, business, services) = read::business(element);
                let services = services.iter().map(read::service).collect();
                publication.save_business(key, business, services)
            })?;
            let found = entities(publication.core(), now, Kind::Business, &saved)?;
            businesses(publication.core(), now, &found, &mut writer);
        }
        "save_service" => {
            let saved = each(request, "businessService", |element| {
                let (key, service) = read::service(element);
                publication.save_service(key, service, Lease::AsSaid)
            })?;
            services(&entities(publication.core(), now, Kind::Service, &saved)?, &mut writer);
        }
        "save_binding" => {
            let saved = each(request, "bindingTemplate", |element| {
                let (service, binding) = read::binding(element);
                publication.save_binding(service, binding)
            })?;
            bindings(publication.core(), now, &saved, &mut writer)?;
        }
        "save_tModel" => {
            let saved = each(request, "tModel", |element| {
                let (key, tmodel) = read::tmodel(element);
                publication.save_tmodel(key, tmodel)
            })?;
            tmodels(&entities(publication.core(), now, Kind::TModel, &saved)?, &mut writer);
        }
        "delete_business" => delete(publication, Kind::Business, request, "businessKey")?,
        "delete_service" => delete(publication, Kind::Service, request, "serviceKey")?,
        "delete_tModel" => delete(publication, Kind::TModel, request, "tModelKey")?,
        "delete_binding" => {
            for key in read::keys(request, "bindingKey") {
                publication.delete_binding(&key)?;
            }
        }
        other => return Err(Refusal::malformed(format!("'{}' is no publication", shown(other)))),
    }
    // What is deleted is answered with an empty message.
    Ok(writer.out)
}

fn each(
    request: &Element,
    name: &str,
    save: impl FnMut(&Element) -> Result<Key, Refusal>,
) -> Result<Vec<Key>, Refusal> {
    request.all(name).map(save).collect()
}

fn delete(
    publication: &mut Publication<'_>,
    kind: Kind,
    request: &Element,
    name: &str,
) -> Result<(), Refusal> {
    read::keys(request, name).iter().try_for_each(|key| publication.delete(kind, key))
}

/// A token that was given out.
pub(crate) fn token(token: &str) -> Answer {
    let mut writer = Writer::default();
    writer.root("authToken", &[]);
    writer.text("authInfo", &[], token);
    writer.end("authToken");
    writer.out
}
