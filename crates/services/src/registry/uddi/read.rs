//! Elements that were checked into entities.

use super::super::element::Element;
use super::super::model::{
    Bag, Binding, Business, Instance, Key, Reference, Service, TModel, Target, Text,
};
use super::super::quality::{Facts, TMODEL_LATENCY};

/// A key as it is compared: without case. None where it is empty, which is as if it were not there.
pub(crate) fn key(text: &str) -> Option<Key> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_lowercase().into())
}

/// The keys in children of this name.
pub(super) fn keys(element: &Element, name: &str) -> Vec<Key> {
    element.all(name).filter_map(|child| key(&child.text)).collect()
}

fn of_attribute(element: &Element, name: &str) -> Option<Key> {
    element.attribute(name).and_then(key)
}

/// Texts of children of this name.
pub(super) fn texts(element: &Element, name: &str) -> Vec<Text> {
    let text =
        |child: &Element| Text { lang: child.lang().map(str::to_owned), text: child.text.clone() };
    element.all(name).map(text).collect()
}

/// A keyedReference.
pub(super) fn reference(element: &Element) -> Reference {
    let named = element.attribute("keyName").filter(|name| !name.is_empty());
    Reference {
        tmodel: of_attribute(element, "tModelKey").unwrap_or_else(|| "".into()),
        name: named.map(str::to_owned),
        value: element.attribute("keyValue").unwrap_or_default().to_owned(),
    }
}

/// The identifierBag in an element.
pub(super) fn identifiers(element: &Element) -> Vec<Reference> {
    let bag = element.child("identifierBag");
    bag.map(|bag| bag.children.iter().map(reference).collect()).unwrap_or_default()
}

/// The categoryBag in an element.
pub(super) fn categories(element: &Element) -> Bag {
    let Some(bag) = element.child("categoryBag") else { return Bag::default() };
    let group = |group: &Element| {
        let tmodel = of_attribute(group, "tModelKey").unwrap_or_else(|| "".into());
        (tmodel, group.children.iter().map(reference).collect())
    };
    Bag {
        references: bag.all("keyedReference").map(reference).collect(),
        groups: bag.all("keyedReferenceGroup").map(group).collect(),
    }
}

/// A businessEntity: its key where it has one, and its services.
pub(super) fn business(element: &Element) -> (Option<Key>, Business, Vec<Element>) {
    let business = Business {
        urls: element.child("discoveryURLs").cloned(),
        names: texts(element, "name"),
        descriptions: texts(element, "description"),
        contacts: element.child("contacts").cloned(),
        identifiers: identifiers(element),
        categories: categories(element),
    };
    let services = element.child("businessServices").map(|all| all.children.clone());
    (of_attribute(element, "businessKey"), business, services.unwrap_or_default())
}

/// A businessService: its key where it has one. Its business and the keys of its bindings are empty
/// where they are not said.
pub(super) fn service(element: &Element) -> (Option<Key>, Service) {
    let bindings = element.child("bindingTemplates").map(|all| &all.children[..]);
    let bindings: Vec<Binding> =
        bindings.unwrap_or_default().iter().map(|one| binding(one).1).collect();
    let service = Service {
        business: of_attribute(element, "businessKey").unwrap_or_else(|| "".into()),
        names: texts(element, "name"),
        descriptions: texts(element, "description"),
        facts: facts(&bindings),
        bindings,
        categories: categories(element),
    };
    (of_attribute(element, "serviceKey"), service)
}

/// What bindings say of what was measured.
pub(crate) fn facts(bindings: &[Binding]) -> Option<Facts> {
    let mut instances = bindings.iter().flat_map(|binding| &binding.instances);
    instances.find(|one| &*one.tmodel == TMODEL_LATENCY).and_then(|one| {
        let parms = one.details.as_ref()?.child("instanceParms")?;
        Facts::parse(&parms.text).ok()
    })
}

/// A bindingTemplate, and the service that it says it is of.
pub(super) fn binding(element: &Element) -> (Option<Key>, Binding) {
    let access = element.child("accessPoint").map(|point| Target::Access {
        use_type: point.attribute("useType").map(str::to_owned),
        address: point.text.clone(),
    });
    let redirector = || {
        let to = element.child("hostingRedirector");
        let to = to.and_then(|to| of_attribute(to, "bindingKey"));
        Target::Redirector(to.unwrap_or_else(|| "".into()))
    };
    let instance = |info: &Element| Instance {
        tmodel: of_attribute(info, "tModelKey").unwrap_or_else(|| "".into()),
        descriptions: texts(info, "description"),
        details: info.child("instanceDetails").cloned(),
    };
    let instances = element.child("tModelInstanceDetails");
    let instances = instances.map(|all| all.children.iter().map(instance).collect());
    let binding = Binding {
        key: of_attribute(element, "bindingKey").unwrap_or_else(|| "".into()),
        descriptions: texts(element, "description"),
        target: access.unwrap_or_else(redirector),
        instances: instances.unwrap_or_default(),
        categories: categories(element),
    };
    (of_attribute(element, "serviceKey"), binding)
}

/// A tModel: its key where it has one.
pub(super) fn tmodel(element: &Element) -> (Option<Key>, TModel) {
    let name = texts(element, "name").into_iter().next();
    let tmodel = TModel {
        is_deleted: false,
        name: name.unwrap_or_else(|| Text::plain("")),
        descriptions: texts(element, "description"),
        overviews: element.all("overviewDoc").cloned().collect(),
        identifiers: identifiers(element),
        categories: categories(element),
    };
    (of_attribute(element, "tModelKey"), tmodel)
}
