//! Whether the parts of a profile fit together: what no single value can say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use broker::{FEDERATION_PUBLISHER, FederationFlow, check_filter, check_name, matches, overlap};

use crate::key::Key;
use crate::places::Places;
use crate::profile::{MAX_STREAMS, Partner};
use crate::reader::{Table, shown};

/// Notes all that does not fit.
pub(crate) fn check(root: &Table<'_>, places: &Places) {
    partners(root, places);
    revoked(root, places);
    let are_whole = flows(root, &places.flows);
    if are_whole && !places.flows.is_empty() {
        overlaps(root, &places.flows);
        topic_ids(root, places);
        addresses(root, places);
    }
    signatures(root, places);
}

fn partners(root: &Table<'_>, places: &Places) {
    let (mut names, mut keys) = (BTreeMap::new(), BTreeMap::new());
    for (line, Partner { name, key, .. }) in &places.partners {
        if let Some(first) = names.insert(name.to_ascii_lowercase(), *line) {
            let what = format!("a second partner is named {name}");
            root.note(*line, "partner.name", what, format!("the first is in line {first}"));
        }
        if let Some(first) = keys.insert(*key, *line) {
            let what = format!("{name} has the key of another partner");
            let remedy = format!("that of line {first}: each makes its own");
            root.note(*line, "partner.key", what, remedy);
        }
    }
    match places.partners.as_slice() {
        [] => root.refuse("there are no partners", "write at least two [[partner]]"),
        [(line, only)] => {
            root.note(*line, "partner", format!("{} is alone", only.name), "at least two partners");
        }
        _ => {}
    }
}

fn revoked(root: &Table<'_>, places: &Places) {
    let mut seen: BTreeMap<Key, usize> = BTreeMap::new();
    for (line, revoked) in &places.revoked {
        if let Some(first) = seen.insert(revoked.key, *line) {
            let what = format!("{} is revoked twice", revoked.key);
            root.note(*line, "revoked.key", what, format!("the first is in line {first}"));
        }
    }
    for (line, partner) in &places.partners {
        if let Some(at) = seen.get(&partner.key) {
            let what = format!("the key of {} is revoked in line {at}", partner.name);
            root.note(*line, "partner.key", what, "give the partner a new key");
        }
    }
}

/// Each flow for itself. Whether those that follow can be compared.
fn flows(root: &Table<'_>, flows: &[(usize, FederationFlow)]) -> bool {
    let mut names = BTreeMap::new();
    let mut are_whole = true;
    for (line, flow) in flows {
        if let Some(first) = names.insert(flow.name.clone(), *line) {
            let what = format!("a second flow is named {}", flow.name);
            root.note(*line, "flow.name", what, format!("the first is in line {first}"));
            are_whole = false;
        }
        for (field, what, remedy) in faults_of(flow) {
            root.note(*line, field, what, remedy);
            are_whole = false;
        }
    }
    let streams: usize = flows.iter().map(|(_, flow)| flow.from.len()).sum();
    if streams > MAX_STREAMS {
        let what = format!("{streams} pairs of a flow and a publisher");
        root.note(1, "flow", what, format!("at most {MAX_STREAMS}: make filters wider"));
        are_whole = false;
    }
    are_whole
}

fn faults_of(flow: &FederationFlow) -> Vec<(&'static str, String, String)> {
    let FederationFlow { name, topic, from, to, via, .. } = flow;
    let mut faults = Vec::new();
    let mut fault = |field, what: String, remedy: &str| {
        faults.push((field, what, remedy.to_owned()));
    };
    let shown = shown(topic);
    let is_apart = |level: &str| level == FEDERATION_PUBLISHER || !level.contains('%');
    if !topic.split('/').all(is_apart) {
        let remedy = "% stands in topics only as %p, a level of its own: who publishes";
        fault("flow.topic", format!("'{shown}' of flow {name} has another %"), remedy);
    }
    if let Err(what) = check_filter(topic) {
        fault("flow.topic", format!("'{shown}' of flow {name}"), what);
    }
    if topic.starts_with(['$', '+', '#']) {
        let remedy = "begin with a level that tells it from a nation's own topics";
        fault("flow.topic", format!("'{shown}' of flow {name} has no beginning"), remedy);
    }
    for (field, names) in [("flow.from", from), ("flow.to", to)] {
        if names.is_empty() {
            let remedy = "name partners, or [\"*\"]; leave the flow out to forbid it";
            fault(field, format!("flow {name} names no partner"), remedy);
        }
    }
    if let Some(only) = from.iter().find(|from| to.iter().all(|to| to == *from) && !to.is_empty()) {
        let remedy = "name another receiver, or leave it out of 'from'";
        fault("flow.to", format!("flow {name} goes in a circle, from {only} to itself"), remedy);
    }
    if let Some(via) = via
        && from.contains(via)
    {
        let remedy = "who passes on is no publisher: make two flows";
        let what = format!("flow {name} goes in a circle, from {via} via itself");
        fault("flow.via", what, remedy);
    }
    // Whose a publication is, is known by its topic alone, by all who give and take it.
    let is_named = topic.split('/').any(|level| level == FEDERATION_PUBLISHER);
    if from.len() > 1 && !is_named {
        let remedy = "name who publishes by %p in the topic, or make a flow of each";
        let what = format!("nobody can tell whose a publication of flow {name} is");
        fault("flow.topic", what, remedy);
    }
    faults
}

/// A topic belongs to one flow: else nobody could say by which rate or to whom it goes.
fn overlaps(root: &Table<'_>, flows: &[(usize, FederationFlow)]) {
    let filters: Vec<Vec<String>> = flows
        .iter()
        .map(|(_, flow)| {
            let all: BTreeSet<String> = flow.from.iter().map(|from| flow.filter_of(from)).collect();
            all.into_iter().collect()
        })
        .collect();
    for (at, ((line, flow), own)) in flows.iter().zip(&filters).enumerate() {
        let before = flows.iter().zip(&filters).take(at);
        for ((first, other), others) in before {
            let pair = own.iter().find_map(|filter| {
                others.iter().find(|other| overlap(filter, other)).map(|other| (filter, other))
            });
            if let Some((filter, same)) = pair {
                let what = format!(
                    "flow {} contradicts flow {} of line {first}: '{}' and '{}' have topics in \
                     common",
                    flow.name,
                    other.name,
                    shown(filter),
                    shown(same)
                );
                root.note(*line, "flow.topic", what, "each topic has one flow: narrow one");
            }
        }
    }
}

fn topic_ids(root: &Table<'_>, places: &Places) {
    let (mut ids, mut topics) = (BTreeMap::new(), BTreeMap::new());
    // What is wrong with a flow is said once, not again for each of its topics.
    let are_all = places.flows.len() == root.count("flow");
    let filters: Vec<String> = places
        .flows
        .iter()
        .flat_map(|(_, flow)| flow.from.iter().map(|from| flow.filter_of(from)))
        .collect();
    for (line, id, topic) in &places.topic_ids {
        let shown = shown(topic);
        if let Some(first) = ids.insert(*id, *line) {
            let what = format!("id {id} stands for two topics");
            root.note(*line, "topic_id.id", what, format!("the first is in line {first}"));
        }
        if let Some(first) = topics.insert(topic.as_str(), *line) {
            let what = format!("'{shown}' has two ids");
            root.note(*line, "topic_id.topic", what, format!("the first is in line {first}"));
        }
        if let Err(what) = check_name(topic) {
            root.note(*line, "topic_id.topic", format!("'{shown}'"), what);
        } else if are_all && !filters.iter().any(|filter| matches(filter, topic)) {
            let what = format!("'{shown}' is in no flow");
            root.note(*line, "topic_id.topic", what, "a flow has to have it");
        }
    }
}

/// Of two that exchange something, one has to be reached by the other.
fn addresses(root: &Table<'_>, places: &Places) {
    let without: BTreeSet<&Arc<str>> = places
        .partners
        .iter()
        .filter(|(_, partner)| partner.broker.is_none())
        .map(|(_, partner)| &partner.name)
        .collect();
    for (line, flow) in &places.flows {
        let pair =
            pairs(flow).find(|(one, other)| without.contains(one) && without.contains(other));
        if let Some((one, other)) = pair {
            let what =
                format!("flow {} goes from {one} to {other}, neither with a broker", flow.name);
            root.note(*line, "flow", what, "give one of them broker = \"mqtt://HOST\"");
        }
    }
}

/// Which broker gives a flow to which.
fn pairs(flow: &FederationFlow) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
    let first = flow.from.iter().flat_map(move |from| match &flow.via {
        Some(via) => vec![(from, via)],
        None => flow.to.iter().map(|to| (from, to)).collect(),
    });
    let second = flow.via.iter().flat_map(|via| flow.to.iter().map(move |to| (via, to)));
    first.chain(second).filter(|(one, other)| one != other)
}

fn signatures(root: &Table<'_>, places: &Places) {
    let mut seen = BTreeMap::new();
    for (line, signature) in &places.signatures {
        let name = &signature.partner;
        if !places.partners.iter().any(|(_, partner)| *partner.name == **name) {
            let what = format!("{name} has signed and is no partner");
            root.note(*line, "signature.partner", what, "take the signature away");
        }
        if let Some(first) = seen.insert(name.as_str(), *line) {
            let what = format!("{name} has signed twice");
            root.note(
                *line,
                "signature.partner",
                what,
                format!("keep one; the first: line {first}"),
            );
        }
    }
}
