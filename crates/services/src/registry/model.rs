//! What the registry keeps: the entities of UDDI v3 (§3), which every face reads and writes.

use std::sync::Arc;
use std::time::Duration;

use super::element::Element;
use super::quality::Facts;

/// A key of UDDI, in lower case (UDDI v3.0.2 §4.4: keys are compared without case).
pub(crate) type Key = Arc<str>;

/// Text with the language that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) lang: Option<String>,
    pub(crate) text: String,
}

impl Text {
    /// A text that says no language.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self { lang: None, text: text.into() }
    }
}

/// A keyedReference: a value in a value set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) tmodel: Key,
    pub(crate) name: Option<String>,
    pub(crate) value: String,
}

impl Reference {
    /// A value in a value set.
    pub(crate) fn new(tmodel: &str, name: &str, value: impl Into<String>) -> Self {
        let name = (!name.is_empty()).then(|| name.to_owned());
        Self { tmodel: tmodel.into(), name, value: value.into() }
    }
}

/// A categoryBag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bag {
    pub(crate) references: Vec<Reference>,
    pub(crate) groups: Vec<(Key, Vec<Reference>)>,
}

impl Bag {
    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.references.is_empty() && self.groups.is_empty()
    }

    /// The first value in a value set.
    pub(crate) fn value(&self, tmodel: &str) -> Option<&str> {
        let found = self.references.iter().find(|one| &*one.tmodel == tmodel);
        found.map(|one| one.value.as_str())
    }

    /// All values in a value set.
    pub(crate) fn values<'a>(&'a self, tmodel: &'a str) -> impl Iterator<Item = &'a str> {
        let of = self.references.iter().filter(move |one| &*one.tmodel == tmodel);
        of.map(|one| one.value.as_str())
    }
}

/// A businessEntity, without its services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Business {
    pub(crate) urls: Option<Element>,
    pub(crate) names: Vec<Text>,
    pub(crate) descriptions: Vec<Text>,
    pub(crate) contacts: Option<Element>,
    pub(crate) identifiers: Vec<Reference>,
    pub(crate) categories: Bag,
}

/// A businessService with its bindings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Service {
    /// The business that it is of.
    pub(crate) business: Key,
    pub(crate) names: Vec<Text>,
    pub(crate) descriptions: Vec<Text>,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) categories: Bag,
    /// What was measured, as an instanceParms of it says; see [`super::quality`].
    pub(crate) facts: Option<Facts>,
}

/// A bindingTemplate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    pub(crate) key: Key,
    pub(crate) descriptions: Vec<Text>,
    pub(crate) target: Target,
    pub(crate) instances: Vec<Instance>,
    pub(crate) categories: Bag,
}

/// Where a binding leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An address and what kind it is of.
    Access { use_type: Option<String>, address: String },
    /// Where another binding leads to.
    Redirector(Key),
}

impl Binding {
    /// Its address, if it has one of its own.
    pub(crate) fn address(&self) -> Option<&str> {
        match &self.target {
            Target::Access { address, .. } => Some(address),
            Target::Redirector(_) => None,
        }
    }
}

/// A tModelInstanceInfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    pub(crate) tmodel: Key,
    pub(crate) descriptions: Vec<Text>,
    pub(crate) details: Option<Element>,
}

/// A tModel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TModel {
    /// Whether it is hidden from searches (UDDI v3.0.2 §5.2.7).
    pub(crate) is_deleted: bool,
    pub(crate) name: Text,
    pub(crate) descriptions: Vec<Text>,
    pub(crate) overviews: Vec<Element>,
    pub(crate) identifiers: Vec<Reference>,
    pub(crate) categories: Bag,
}

/// Kinds of entities that have an owner of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Business,
    Service,
    TModel,
}

impl Kind {
    /// As it is called in answers.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Business => "business",
            Self::Service => "service",
            Self::TModel => "tModel",
        }
    }
}

/// One of the kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Business(Business),
    Service(Service),
    TModel(TModel),
}

/// An entity and what the registry knows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entity {
    pub(crate) key: Key,
    pub(crate) owner: Arc<str>,
    /// Times since 1970.
    pub(crate) created: Duration,
    pub(crate) modified: Duration,
    /// When it or anything in it was changed last.
    pub(crate) modified_below: Duration,
    /// How long it is kept after it was published or renewed; for ever when none.
    pub(crate) lease: Option<Duration>,
    /// When its lease ends.
    pub(crate) until: Option<Duration>,
    pub(crate) body: Body,
}

impl Entity {
    pub(crate) fn kind(&self) -> Kind {
        match self.body {
            Body::Business(_) => Kind::Business,
            Body::Service(_) => Kind::Service,
            Body::TModel(_) => Kind::TModel,
        }
    }

    pub(crate) fn service(&self) -> Option<&Service> {
        match &self.body {
            Body::Service(service) => Some(service),
            _ => None,
        }
    }

    pub(crate) fn business(&self) -> Option<&Business> {
        match &self.body {
            Body::Business(business) => Some(business),
            _ => None,
        }
    }

    pub(crate) fn tmodel(&self) -> Option<&TModel> {
        match &self.body {
            Body::TModel(tmodel) => Some(tmodel),
            _ => None,
        }
    }

    /// Its names; a tModel has one.
    pub(crate) fn names(&self) -> &[Text] {
        match &self.body {
            Body::Business(one) => &one.names,
            Body::Service(one) => &one.names,
            Body::TModel(one) => std::slice::from_ref(&one.name),
        }
    }

    /// Its own categories.
    pub(crate) fn categories(&self) -> &Bag {
        match &self.body {
            Body::Business(one) => &one.categories,
            Body::Service(one) => &one.categories,
            Body::TModel(one) => &one.categories,
        }
    }

    /// Its identifiers; a service has none.
    pub(crate) fn identifiers(&self) -> &[Reference] {
        match &self.body {
            Body::Business(one) => &one.identifiers,
            Body::Service(_) => &[],
            Body::TModel(one) => &one.identifiers,
        }
    }

    /// Whether its lease is over.
    pub(crate) fn is_over(&self, now: Duration) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}
