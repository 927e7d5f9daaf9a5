//! Entities as the store keeps them: the documents of UDDI.

use super::super::element::Element;
use super::super::model::{Body, Entity, Kind};
use super::super::refusal::Refusal;
use super::schema::NAMESPACE;
use super::write::Writer;
use super::{read, schema};

/// The number of a kind.
pub(crate) fn kind_number(kind: Kind) -> i64 {
    match kind {
        Kind::TModel => 0,
        Kind::Business => 1,
        Kind::Service => 2,
    }
}

/// An entity's document; a business has its services apart.
pub(crate) fn document(entity: &Entity) -> String {
    let mut writer = Writer::default();
    match &entity.body {
        Body::Business(one) => writer.business(&entity.key, one, std::iter::empty()),
        Body::Service(one) => writer.service(&entity.key, one),
        Body::TModel(one) => writer.tmodel(&entity.key, one),
    }
    // The namespace is declared once, on the root.
    let name = writer.out.find(' ').unwrap_or(0);
    let (start, rest) = writer.out.split_at(name);
    format!("{start} xmlns=\"{NAMESPACE}\"{rest}")
}

/// The entity of a document.
///
/// # Errors
/// What is no document of that kind.
pub(crate) fn of_document(kind: i64, text: &str) -> Result<Body, Refusal> {
    let mut element = Element::parse(text)?;
    schema::check(&mut element)?;
    Ok(match (kind, element.name.as_str()) {
        (0, "tModel") => {
            let mut tmodel = read::tmodel(&element).1;
            tmodel.is_deleted = element.attribute("deleted").is_some_and(|one| one == "true");
            Body::TModel(tmodel)
        }
        (1, "businessEntity") => Body::Business(read::business(&element).1),
        (2, "businessService") => Body::Service(read::service(&element).1),
        (_, name) => {
            return Err(Refusal::malformed(format!("kind {kind} with a document '{name}'")));
        }
    })
}
