//! What another version of a profile changes, in words: who gains and loses what.

use std::collections::BTreeSet;
use std::sync::Arc;

use broker::{FederationFlow, FederationTerms};

use crate::calendar;
use crate::profile::{Partner, Profile, retain};

/// One thing that is different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// `gains`, `loses` or `changes`.
    pub kind: &'static str,
    /// The partner that it is about, if it is one.
    pub partner: Option<String>,
    /// The flow that it is about, if it is one.
    pub flow: Option<String>,
    /// What, in words.
    pub what: String,
}

impl Difference {
    /// As a line.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { kind, partner, flow, what } = self;
        match (partner, flow) {
            (Some(partner), Some(flow)) => format!("{partner} {kind}: {what} (flow {flow})"),
            (Some(partner), None) => format!("{partner} {kind}: {what}"),
            (None, Some(flow)) => format!("flow {flow} {kind}: {what}"),
            (None, None) => format!("profile {kind}: {what}"),
        }
    }
}

/// A right of a partner, and the flow that gives it.
type Right<'p> = (String, String, &'p str);

/// All that is different in `new`: rights of partners first, then terms.
#[must_use]
pub fn differences(old: &Profile, new: &Profile) -> Vec<Difference> {
    let (before, after) = (rights(old), rights(new));
    let names = |rights: &BTreeSet<Right<'_>>| -> BTreeSet<(String, String)> {
        rights.iter().map(|(partner, what, _)| (partner.clone(), what.clone())).collect()
    };
    let (had, has) = (names(&before), names(&after));
    let mut all = Vec::new();
    for (kind, rights, others) in [("gains", &after, &had), ("loses", &before, &has)] {
        for (partner, what, flow) in rights {
            if !others.contains(&(partner.clone(), what.clone())) {
                all.push(Difference {
                    kind,
                    partner: Some(partner.clone()),
                    flow: Some((*flow).to_owned()),
                    what: what.clone(),
                });
            }
        }
    }
    all.extend(of_partners(old, new));
    for flow in &new.flows {
        match old.flows.iter().find(|it| it.name == flow.name) {
            Some(before) => of_flow(before, flow, &mut all),
            None => all.push(changed(Some(flow), "is new".to_owned())),
        }
    }
    let gone = |flow: &&FederationFlow| !new.flows.iter().any(|it| it.name == flow.name);
    all.extend(old.flows.iter().filter(gone).map(|it| changed(Some(it), "is gone".to_owned())));
    of_profile(old, new, &mut all);
    all
}

/// What partners may publish, pass on and see.
fn rights(profile: &Profile) -> BTreeSet<Right<'_>> {
    let mut rights = BTreeSet::new();
    for (flow, publisher, filter) in profile.streams() {
        let mut add = |partner: &Arc<str>, what: String| {
            rights.insert((partner.to_string(), what, &*flow.name));
        };
        add(publisher, format!("publishes {filter}"));
        for to in flow.to.iter().filter(|to| *to != publisher) {
            add(to, format!("sees {filter} of {publisher}"));
        }
        if let Some(via) = &flow.via {
            add(via, format!("passes on {filter} of {publisher}"));
        }
    }
    rights
}

fn changed(flow: Option<&FederationFlow>, what: String) -> Difference {
    let flow = flow.map(|flow| flow.name.to_string());
    Difference { kind: "changes", partner: None, flow, what }
}

fn of_partners(old: &Profile, new: &Profile) -> Vec<Difference> {
    let of = |partner: &Partner, kind, what: String| Difference {
        kind,
        partner: Some(partner.name.to_string()),
        flow: None,
        what,
    };
    let mut all = Vec::new();
    for partner in &new.partners {
        let Some(before) = old.partner(&partner.name) else {
            all.push(of(partner, "gains", format!("is a partner, with {}", partner.key)));
            continue;
        };
        if before.key != partner.key {
            let what = format!("key {} becomes {}", before.key, partner.key);
            all.push(of(partner, "changes", what));
        }
        if before.broker != partner.broker {
            let (from, to) = (or_none(before.broker.as_ref()), or_none(partner.broker.as_ref()));
            all.push(of(partner, "changes", format!("broker {from} becomes {to}")));
        }
    }
    for partner in old.partners.iter().filter(|it| new.partner(&it.name).is_none()) {
        all.push(of(partner, "loses", "is no partner any more".to_owned()));
    }
    all
}

fn or_none<T: ToString>(value: Option<&T>) -> String {
    value.map_or_else(|| "none".to_owned(), ToString::to_string)
}

/// The terms as a file says them.
fn terms(terms: &FederationTerms) -> [(&'static str, String); 10] {
    let rate = terms.messages_per_1000_s;
    [
        ("urgency", terms.urgency.to_string()),
        ("qos", terms.max_grade.get().to_string()),
        ("retain", retain(terms.retain).to_owned()),
        ("expiry_s", or_none(terms.expiry.map(|expiry| expiry.as_secs()).as_ref())),
        ("media_type", or_none(terms.media_type.as_ref())),
        ("max_bytes", terms.max_bytes.to_string()),
        ("messages_per_s", format!("{}.{:03}", rate / 1000, rate % 1000)),
        ("burst", terms.burst.to_string()),
        ("bytes_per_s", or_none(terms.bytes_per_s.as_ref())),
        ("conflate", terms.conflate.to_string()),
    ]
}

fn of_flow(old: &FederationFlow, new: &FederationFlow, all: &mut Vec<Difference>) {
    for ((name, before), (_, after)) in terms(&old.terms).into_iter().zip(terms(&new.terms)) {
        if before != after {
            all.push(changed(Some(new), format!("{name} {before} becomes {after}")));
        }
    }
    if old.via != new.via {
        let (before, after) = (or_none(old.via.as_ref()), or_none(new.via.as_ref()));
        all.push(changed(Some(new), format!("via {before} becomes {after}")));
    }
}

fn of_profile(old: &Profile, new: &Profile, all: &mut Vec<Difference>) {
    let lines = |profile: &Profile| {
        [
            ("name", profile.name.clone()),
            ("version", profile.version.to_string()),
            ("valid_from", calendar::text(profile.valid_from_s)),
            ("valid_until", calendar::text(profile.valid_until_s)),
        ]
    };
    for ((name, before), (_, after)) in lines(old).into_iter().zip(lines(new)) {
        if before != after {
            all.push(changed(None, format!("{name} {before} becomes {after}")));
        }
    }
    let ids: BTreeSet<u16> = old.topic_ids.keys().chain(new.topic_ids.keys()).copied().collect();
    for id in ids {
        let (before, after) = (old.topic_ids.get(&id), new.topic_ids.get(&id));
        if before != after {
            let (before, after) = (or_none(before), or_none(after));
            all.push(changed(None, format!("topic id {id} {before} becomes {after}")));
        }
    }
    let keys = |profile: &Profile| -> BTreeSet<String> {
        profile.revoked.iter().map(|revoked| revoked.key.to_string()).collect()
    };
    let (before, after) = (keys(old), keys(new));
    let revoked = after.difference(&before).map(|key| format!("{key} is revoked"));
    let again = before.difference(&after).map(|key| format!("{key} is revoked no more"));
    all.extend(revoked.chain(again).map(|what| changed(None, what)));
    let texts = |profile: &Profile| {
        let partners: Vec<String> = profile.partners.iter().map(|it| it.about.clone()).collect();
        (profile.about.clone(), profile.flows_about.clone(), partners)
    };
    if all.is_empty() && (texts(old) != texts(new) || old.canonical() != new.canonical()) {
        all.push(changed(None, "a text for people is another".to_owned()));
    }
}
