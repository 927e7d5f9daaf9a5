//! Searches as UDDI has them: qualifiers, names with wildcards, bags, order, pages
//! (UDDI v3.0.2 §5.1.4 and §5.1.10 to §5.1.13).

mod pattern;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::core::{Core, KEYWORDS};
use super::model::{Bag, Binding, Entity, Key, Kind, Reference, Service, Text};
use super::refusal::{Reason, Refusal};
use crate::messaging::shown;
use pattern::Pattern;

/// Most entities in one answer; where there are more, it says so.
pub(crate) const MAX_ROWS: usize = 1000;
/// Most qualifiers, names and values of one search.
const MAX_TERMS: usize = 64;
/// What names of qualifiers may begin with, in lower case.
const PREFIX: &str = "uddi:uddi.org:findqualifier:";

/// How values of a bag are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Join {
    All,
    Any,
    /// Any within a value set, all of the sets.
    AnyOfLike,
}

/// In which order entities come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Name { is_descending: bool },
    Date { is_descending: bool },
}

/// Which bags of a business or service count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bags {
    Own,
    Combined,
    OfServices,
    OfBindings,
}

/// The qualifiers of a search.
#[derive(Clone, Debug)]
pub(crate) struct Qualifiers {
    join: Option<Join>,
    is_approximate: bool,
    ignores_case: bool,
    ignores_marks: bool,
    sorts_without_case: bool,
    order: Order,
    /// Behind the names.
    then: Option<Order>,
    bags: Bags,
}

/// What excludes what (UDDI v3.0.2 §5.1.4.3.1).
const EXCLUSIVE: &[&[&str]] = &[
    &["andallkeys", "orallkeys", "orlikekeys"],
    &["exactmatch", "approximatematch"],
    &["exactmatch", "caseinsensitivematch"],
    &["exactmatch", "diacriticinsensitivematch"],
    &["casesensitivematch", "caseinsensitivematch"],
    &["diacriticsensitivematch", "diacriticinsensitivematch"],
    &["casesensitivesort", "caseinsensitivesort"],
    &["binarysort", "caseinsensitivesort"],
    &["sortbynameasc", "sortbynamedesc"],
    &["sortbydateasc", "sortbydatedesc"],
    &["combinecategorybags", "servicesubset", "bindingsubset"],
];

impl Qualifiers {
    /// Reads names of qualifiers, short or as keys of tModels.
    ///
    /// # Errors
    /// [`Reason::Unsupported`] for one that is not known, [`Reason::InvalidCombination`] for two
    /// that exclude each other.
    pub(crate) fn parse<'a>(names: impl Iterator<Item = &'a str>) -> Result<Self, Refusal> {
        let mut given = BTreeSet::new();
        for name in names {
            let lower = name.to_lowercase();
            given.insert(lower.strip_prefix(PREFIX).unwrap_or(&lower).to_owned());
        }
        check_count("qualifiers", given.len())?;
        let mut all = Self {
            join: None,
            is_approximate: false,
            ignores_case: false,
            ignores_marks: false,
            sorts_without_case: false,
            order: Order::Name { is_descending: false },
            then: None,
            bags: Bags::Own,
        };
        let (mut by_name, mut by_date) = (None, None);
        for name in &given {
            match name.as_str() {
                "andallkeys" => all.join = Some(Join::All),
                "orallkeys" => all.join = Some(Join::Any),
                "orlikekeys" => all.join = Some(Join::AnyOfLike),
                "approximatematch" => all.is_approximate = true,
                "caseinsensitivematch" => all.ignores_case = true,
                "diacriticinsensitivematch" => all.ignores_marks = true,
                "caseinsensitivesort" => all.sorts_without_case = true,
                "exactmatch" | "casesensitivematch" | "diacriticsensitivematch" => {}
                "binarysort" | "casesensitivesort" => {}
                "sortbynameasc" => by_name = Some(false),
                "sortbynamedesc" => by_name = Some(true),
                "sortbydateasc" => by_date = Some(false),
                "sortbydatedesc" => by_date = Some(true),
                "combinecategorybags" => all.bags = Bags::Combined,
                "servicesubset" => all.bags = Bags::OfServices,
                "bindingsubset" => all.bags = Bags::OfBindings,
                // There is no service here that is shown in another business.
                "suppressprojectedservices" => {}
                other => {
                    let line = format!("the find qualifier '{}' is not there", shown(other));
                    return Err(Refusal::new(Reason::Unsupported, line));
                }
            }
        }
        for set in EXCLUSIVE {
            let both: Vec<&str> = set.iter().filter(|one| given.contains(**one)).copied().collect();
            if let [one, other, ..] = both[..] {
                let line = format!("the find qualifiers {one} and {other} exclude each other");
                return Err(Refusal::new(Reason::InvalidCombination, line));
            }
        }
        let by_date = by_date.map(|is_descending| Order::Date { is_descending });
        match (by_name, by_date) {
            (Some(is_descending), then) => {
                (all.order, all.then) = (Order::Name { is_descending }, then);
            }
            (None, Some(by_date)) => all.order = by_date,
            (None, None) => {}
        }
        Ok(all)
    }

    fn pattern(&self, text: &str) -> Pattern {
        Pattern::new(text, self.is_approximate, self.ignores_case, self.ignores_marks)
    }
}

fn check_count(what: &str, count: usize) -> Result<(), Refusal> {
    if count <= MAX_TERMS {
        return Ok(());
    }
    let line = format!("{count} {what} in a search, the limit is {MAX_TERMS}");
    Err(Refusal::new(Reason::TooManyOptions, line))
}

/// What is searched for. What is empty restricts nothing.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) qualifiers: Qualifiers,
    pub(crate) names: Vec<Text>,
    pub(crate) identifiers: Vec<Reference>,
    pub(crate) categories: Bag,
    /// tModels that bindings refer to.
    pub(crate) tmodels: Vec<Key>,
    pub(crate) urls: Vec<String>,
    /// The business of services, or the service of bindings.
    pub(crate) within: Option<Key>,
    /// The first that is wanted, from 1, and how many.
    pub(crate) head: usize,
    pub(crate) rows: usize,
}

/// What was found: a page of it.
#[derive(Clone, Debug)]
pub(crate) struct Page<T> {
    pub(crate) rows: Vec<T>,
    /// How many there are in all.
    pub(crate) count: usize,
    /// The first of the page, from 1.
    pub(crate) head: usize,
}

impl<T> Page<T> {
    /// Whether there are more behind it.
    pub(crate) fn is_truncated(&self) -> bool {
        self.head.saturating_sub(1) + self.rows.len() < self.count
    }

    fn of(rows: impl ExactSizeIterator<Item = T>, query: &Query) -> Self {
        let (count, head) = (rows.len(), query.head.max(1));
        let rows = rows.skip(head - 1).take(query.rows.min(MAX_ROWS)).collect();
        Self { rows, count, head }
    }
}

impl Query {
    /// A search without any term.
    #[cfg(test)]
    pub(crate) fn all() -> Result<Self, Refusal> {
        Ok(Self {
            qualifiers: Qualifiers::parse(std::iter::empty())?,
            names: Vec::new(),
            identifiers: Vec::new(),
            categories: Bag::default(),
            tmodels: Vec::new(),
            urls: Vec::new(),
            within: None,
            head: 1,
            rows: MAX_ROWS,
        })
    }

    /// Checks how much is asked for.
    ///
    /// # Errors
    /// [`Reason::TooManyOptions`] beyond the bound.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        check_count("names", self.names.len())?;
        check_count("identifiers", self.identifiers.len())?;
        let grouped: usize = self.categories.groups.iter().map(|(_, of)| of.len() + 1).sum();
        check_count("categories", self.categories.references.len() + grouped)?;
        check_count("tModels", self.tmodels.len())?;
        check_count("URLs", self.urls.len())
    }

    /// Entities of a kind that fit, in order.
    pub(crate) fn entities(&self, core: &Core, now: Duration, kind: Kind) -> Page<Arc<Entity>> {
        let finder = Finder::new(self, core, now);
        let mut found: Vec<&Arc<Entity>> = match self.fewest(core) {
            Some(keys) => {
                let all = keys.iter().filter_map(|key| core.get(now, key));
                all.filter(|one| one.kind() == kind).filter(|one| finder.fits(one)).collect()
            }
            None => core.all(now, kind).filter(|one| finder.fits(one)).collect(),
        };
        found.sort_by(|one, other| self.compare(one, other));
        Page::of(found.into_iter().cloned(), self)
    }

    /// Bindings that fit, with their services.
    pub(crate) fn bindings(&self, core: &Core, now: Duration) -> Page<(Arc<Entity>, usize)> {
        let finder = Finder::new(self, core, now);
        let services: Vec<&Arc<Entity>> = match &self.within {
            Some(key) => core.get(now, key).into_iter().collect(),
            None => core.all(now, Kind::Service).collect(),
        };
        let mut found = Vec::new();
        for entity in services {
            let bindings = entity.service().map(|service| &service.bindings[..]);
            for (at, binding) in bindings.unwrap_or_default().iter().enumerate() {
                if finder.binding_fits(binding) {
                    found.push((entity, at));
                }
            }
        }
        found.sort_by(|(one, _), (other, _)| self.compare(one, other));
        Page::of(found.into_iter().map(|(entity, at)| (entity.clone(), at)), self)
    }

    /// The shortest list of keys that have one of the categories that must be there.
    fn fewest<'a>(&self, core: &'a Core) -> Option<&'a BTreeSet<Key>> {
        static NONE: BTreeSet<Key> = BTreeSet::new();
        let of = &self.qualifiers;
        let is_plain = !of.is_approximate && !of.ignores_case && !of.ignores_marks;
        let is_all = matches!(of.join, None | Some(Join::All));
        if !is_plain || !is_all || of.bags != Bags::Own {
            return None;
        }
        let sets = self.categories.references.iter();
        let sets = sets.map(|one| core.with_category(&one.tmodel, &one.value).unwrap_or(&NONE));
        sets.min_by_key(|set| set.len())
    }

    fn compare(&self, one: &Entity, other: &Entity) -> Ordering {
        let of = &self.qualifiers;
        let by = |order: Order| match order {
            Order::Name { is_descending } => {
                let (one, other) = (first_name(one), first_name(other));
                let order = match of.sorts_without_case {
                    true => one.to_lowercase().cmp(&other.to_lowercase()),
                    false => one.cmp(other),
                };
                if is_descending { order.reverse() } else { order }
            }
            Order::Date { is_descending } => {
                let order = one.modified.cmp(&other.modified);
                if is_descending { order.reverse() } else { order }
            }
        };
        let then = of.then.map_or(Ordering::Equal, by);
        by(of.order).then(then).then_with(|| one.key.cmp(&other.key))
    }
}

fn first_name(entity: &Entity) -> &str {
    entity.names().first().map_or("", |name| name.text.as_str())
}

/// A search with its patterns made.
struct Finder<'a> {
    query: &'a Query,
    core: &'a Core,
    now: Duration,
    names: Vec<(Option<&'a str>, Pattern)>,
    identifiers: Vec<Term<'a>>,
    categories: Vec<Term<'a>>,
    groups: Vec<(&'a Key, Vec<Term<'a>>)>,
}

/// A value in a value set, as it is looked for.
struct Term<'a> {
    tmodel: &'a Key,
    /// Where the name counts: in a value set of keywords.
    name: Option<Pattern>,
    value: Pattern,
}

impl Term<'_> {
    fn fits(&self, reference: &Reference) -> bool {
        *self.tmodel == reference.tmodel
            && self.value.fits(&reference.value)
            && self
                .name
                .as_ref()
                .is_none_or(|name| name.fits(reference.name.as_deref().unwrap_or_default()))
    }
}

impl<'a> Finder<'a> {
    fn new(query: &'a Query, core: &'a Core, now: Duration) -> Self {
        let of = &query.qualifiers;
        let term = |one: &'a Reference| Term {
            tmodel: &one.tmodel,
            name: (&*one.tmodel == KEYWORDS)
                .then(|| of.pattern(one.name.as_deref().unwrap_or_default())),
            value: of.pattern(&one.value),
        };
        let name = |name: &'a Text| (name.lang.as_deref(), of.pattern(&name.text));
        Self {
            query,
            core,
            now,
            names: query.names.iter().map(name).collect(),
            identifiers: query.identifiers.iter().map(term).collect(),
            categories: query.categories.references.iter().map(term).collect(),
            groups: query
                .categories
                .groups
                .iter()
                .map(|(tmodel, of)| (tmodel, of.iter().map(term).collect()))
                .collect(),
        }
    }

    fn fits(&self, entity: &Entity) -> bool {
        let is_hidden = entity.tmodel().is_some_and(|tmodel| tmodel.is_deleted);
        let is_within = match (&self.query.within, entity.service()) {
            (Some(business), Some(service)) => service.business == *business,
            _ => true,
        };
        !is_hidden
            && is_within
            && self.name_fits(entity)
            && self.identifiers_fit(entity)
            && self.categories_fit(entity)
            && self.tmodels_fit(entity)
            && self.urls_fit(entity)
    }

    fn name_fits(&self, entity: &Entity) -> bool {
        let fits = |text: &Text| {
            self.names.iter().any(|(lang, pattern)| {
                let is_spoken = lang.is_none_or(|lang| {
                    let of = text.lang.as_deref().unwrap_or_default().to_lowercase();
                    of.starts_with(&lang.to_lowercase())
                });
                is_spoken && pattern.fits(&text.text)
            })
        };
        self.names.is_empty() || entity.names().iter().any(fits)
    }

    fn identifiers_fit(&self, entity: &Entity) -> bool {
        // Any of them by default (UDDI v3.0.2 §5.1.4.3).
        let join = self.query.qualifiers.join.unwrap_or(Join::Any);
        joined(&self.identifiers, join, |term| {
            entity.identifiers().iter().any(|one| term.fits(one))
        })
    }

    fn categories_fit(&self, entity: &Entity) -> bool {
        let bags = self.bags(entity);
        self.bags_fit(&bags)
    }

    fn bags_fit(&self, bags: &[&Bag]) -> bool {
        let join = self.query.qualifiers.join.unwrap_or(Join::All);
        let has = |term: &Term<'_>| {
            bags.iter().any(|bag| bag.references.iter().any(|one| term.fits(one)))
        };
        // All of a group's values must be in one group of the entity.
        let has_group = |(tmodel, terms): &(&Key, Vec<Term<'_>>)| {
            bags.iter().flat_map(|bag| &bag.groups).any(|(of, references)| {
                of == *tmodel
                    && terms.iter().all(|term| references.iter().any(|one| term.fits(one)))
            })
        };
        match join {
            Join::Any if !self.categories.is_empty() && !self.groups.is_empty() => {
                self.categories.iter().any(has) || self.groups.iter().any(has_group)
            }
            Join::Any => {
                joined(&self.categories, join, has)
                    && (self.groups.is_empty() || self.groups.iter().any(has_group))
            }
            _ => joined(&self.categories, join, has) && self.groups.iter().all(has_group),
        }
    }

    fn bags<'b>(&'b self, entity: &'b Entity) -> Vec<&'b Bag> {
        let mode = self.query.qualifiers.bags;
        let mut bags = Vec::new();
        if matches!(mode, Bags::Own | Bags::Combined) {
            bags.push(entity.categories());
        }
        if mode == Bags::Own {
            return bags;
        }
        let of_service = |service: &'b Service, is_own: bool, bags: &mut Vec<&'b Bag>| {
            if mode != Bags::OfBindings && !is_own {
                bags.push(&service.categories);
            }
            if mode != Bags::OfServices {
                bags.extend(service.bindings.iter().map(|binding| &binding.categories));
            }
        };
        match entity.service() {
            Some(service) => of_service(service, mode == Bags::Combined, &mut bags),
            None => {
                for (_, service) in self.core.services_of(self.now, &entity.key) {
                    of_service(service, false, &mut bags);
                }
            }
        }
        bags
    }

    fn tmodels_fit(&self, entity: &Entity) -> bool {
        if self.query.tmodels.is_empty() {
            return true;
        }
        // The whole bag fits one binding (UDDI v3.0.2 §5.1.10.2).
        match (entity.kind(), entity.service()) {
            (Kind::Service, Some(service)) => {
                service.bindings.iter().any(|binding| self.instances_fit(binding))
            }
            (Kind::Business, _) => {
                let mut services = self.core.services_of(self.now, &entity.key);
                services.any(|(_, one)| one.bindings.iter().any(|one| self.instances_fit(one)))
            }
            _ => true,
        }
    }

    fn instances_fit(&self, binding: &Binding) -> bool {
        let join = self.query.qualifiers.join.unwrap_or(Join::All);
        let has = |key: &Key| binding.instances.iter().any(|one| one.tmodel == *key);
        let tmodels = &self.query.tmodels;
        match join {
            _ if tmodels.is_empty() => true,
            Join::All => tmodels.iter().all(has),
            Join::Any | Join::AnyOfLike => tmodels.iter().any(has),
        }
    }

    fn binding_fits(&self, binding: &Binding) -> bool {
        self.instances_fit(binding) && self.bags_fit(&[&binding.categories])
    }

    fn urls_fit(&self, entity: &Entity) -> bool {
        let Some(business) = entity.business().filter(|_| !self.query.urls.is_empty()) else {
            return true;
        };
        let urls = business.urls.as_ref().map(|urls| &urls.children[..]).unwrap_or_default();
        urls.iter().any(|url| self.query.urls.contains(&url.text))
    }
}

/// Whether terms are there, joined so. No terms restrict nothing.
fn joined(terms: &[Term<'_>], join: Join, has: impl Fn(&Term<'_>) -> bool) -> bool {
    match join {
        _ if terms.is_empty() => true,
        Join::All => terms.iter().all(has),
        Join::Any => terms.iter().any(has),
        Join::AnyOfLike => terms
            .iter()
            .all(|term| terms.iter().filter(|other| other.tmodel == term.tmodel).any(&has)),
    }
}
