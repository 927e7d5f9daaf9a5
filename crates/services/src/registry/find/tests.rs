use std::sync::Arc;
use std::time::Duration;

use super::super::core::{Core, Lease, Limits, Publication};
use super::super::model::{Binding, Instance, Service, Target};
use super::*;

const NOW: Duration = Duration::from_secs(1);
const COLOUR: &str = "uddi:a.example:colour";
const SIZE: &str = "uddi:a.example:size";

/// Services by name, with their categories.
fn core(services: &[(&str, &[(&str, &str)])]) -> Core {
    let mut core = Core::new(Limits::default(), []);
    let mut last = 0;
    let mut chance = || {
        last += 1;
        [last; 16]
    };
    let mut all = Publication::new(&mut core, NOW, &Arc::from("alice"), &mut chance);
    let home = all.home().unwrap();
    for (name, categories) in services {
        let references =
            categories.iter().map(|(tmodel, value)| Reference::new(tmodel, "n", *value)).collect();
        let instance = Instance {
            tmodel: format!("uddi:t:{name}").into(),
            descriptions: Vec::new(),
            details: None,
        };
        let binding = Binding {
            key: "".into(),
            descriptions: Vec::new(),
            target: Target::Access { use_type: None, address: "x".to_owned() },
            instances: vec![instance],
            categories: Bag {
                references: vec![Reference::new("uddi:of-binding", "", *name)],
                groups: Vec::new(),
            },
        };
        let service = Service {
            business: home.clone(),
            names: vec![Text { lang: Some("en-GB".to_owned()), text: (*name).to_owned() }],
            bindings: vec![binding],
            categories: Bag { references, groups: Vec::new() },
            ..Service::default()
        };
        all.save_service(None, service, Lease::AsSaid).unwrap();
    }
    all.finish();
    core
}

fn query(qualifiers: &[&str], names: &[&str], categories: &[(&str, &str)]) -> Query {
    let references =
        categories.iter().map(|(tmodel, value)| Reference::new(tmodel, "", *value)).collect();
    Query {
        qualifiers: Qualifiers::parse(qualifiers.iter().copied()).unwrap(),
        names: names.iter().map(|name| Text::plain(*name)).collect(),
        categories: Bag { references, groups: Vec::new() },
        ..Query::all().unwrap()
    }
}

fn names(core: &Core, query: &Query) -> Vec<String> {
    let page = query.entities(core, NOW, Kind::Service);
    page.rows.iter().map(|one| one.names()[0].text.clone()).collect()
}

const RED: (&str, &str) = (COLOUR, "red");
const BLUE: (&str, &str) = (COLOUR, "blue");
const BIG: (&str, &str) = (SIZE, "big");
const SMALL: (&str, &str) = (SIZE, "small");

#[test]
fn categories_are_joined_as_qualifiers_say() {
    let core = core(&[
        ("rb", &[RED, BIG]),
        ("rs", &[RED, SMALL]),
        ("bb", &[BLUE, BIG]),
        ("r", &[RED]),
        ("none", &[]),
    ]);
    for (qualifiers, wanted, expected) in [
        (&[][..], &[RED][..], &["r", "rb", "rs"][..]),
        (&[], &[RED, BIG], &["rb"]),
        (&["andAllKeys"], &[RED, BLUE], &[]),
        (&["orAllKeys"], &[BLUE, SMALL], &["bb", "rs"]),
        (&["orLikeKeys"], &[RED, BLUE, BIG], &["bb", "rb"]),
        (&["orLikeKeys"], &[RED, BLUE, BIG, SMALL], &["bb", "rb", "rs"]),
        (&["uddi:uddi.org:findqualifier:orlikekeys"], &[RED, BIG], &["rb"]),
        (&[], &[(COLOUR, "re%")], &[]),
        (&["approximateMatch"], &[(COLOUR, "re%")], &["r", "rb", "rs"]),
        (&["approximateMatch", "orAllKeys"], &[(COLOUR, "b_ue"), SMALL], &["bb", "rs"]),
        (&[], &[("uddi:unknown", "red")], &[]),
        (&["caseInsensitiveMatch"], &[(COLOUR, "RED")], &["r", "rb", "rs"]),
        (&[], &[("uddi:of-binding", "r")], &[]),
        (&["combineCategoryBags"], &[("uddi:of-binding", "r"), RED], &["r"]),
        (&["bindingSubset"], &[("uddi:of-binding", "r")], &["r"]),
        (&["bindingSubset"], &[RED], &[]),
    ] {
        let found = names(&core, &query(qualifiers, &[], wanted));
        assert_eq!(found, expected, "{qualifiers:?} {wanted:?}");
    }
}

#[test]
fn a_business_is_found_by_what_its_services_have() {
    let core = core(&[("rb", &[RED, BIG])]);
    let count = |qualifiers: &[&str], wanted: &[(&str, &str)]| {
        query(qualifiers, &[], wanted).entities(&core, NOW, Kind::Business).count
    };
    assert_eq!(count(&[], &[RED]), 0);
    assert_eq!(count(&["combineCategoryBags"], &[RED, BIG]), 1);
    assert_eq!(count(&["serviceSubset"], &[RED, BIG]), 1);
    assert_eq!(count(&["bindingSubset"], &[RED]), 0);
    assert_eq!(count(&["bindingSubset"], &[("uddi:of-binding", "rb")]), 1);
}

#[test]
fn names_are_found_with_wildcards_where_asked() {
    let core = core(&[("Alpha", &[]), ("alpine", &[]), ("Beta", &[])]);
    for (qualifiers, wanted, expected) in [
        (&[][..], &["Alpha"][..], &["Alpha"][..]),
        (&[], &["Al%"], &[]),
        (&["approximateMatch"], &["Al%"], &["Alpha"]),
        (&["approximateMatch", "caseInsensitiveMatch"], &["AL%"], &["Alpha", "alpine"]),
        (&["approximateMatch"], &["%eta", "%ine"], &["Beta", "alpine"]),
        (&[], &["Alpha", "Beta"], &["Alpha", "Beta"]),
        (&["approximateMatch", "sortByNameDesc"], &["%"], &["alpine", "Beta", "Alpha"]),
        (
            &["approximateMatch", "caseInsensitiveMatch", "caseInsensitiveSort"],
            &["%"],
            &["Alpha", "alpine", "Beta"],
        ),
    ] {
        assert_eq!(
            names(&core, &query(qualifiers, wanted, &[])),
            expected,
            "{qualifiers:?} {wanted:?}"
        );
    }
    let mut spoken = query(&[], &["Alpha"], &[]);
    for (lang, count) in [("en", 1), ("EN-gb", 1), ("de", 0)] {
        spoken.names[0].lang = Some(lang.to_owned());
        assert_eq!(names(&core, &spoken).len(), count, "{lang}");
    }
}

#[test]
fn pages_say_how_many_there_are() {
    let core = core(&[("a", &[RED]), ("b", &[RED]), ("c", &[RED])]);
    let page = |head, rows| {
        let query = Query { head, rows, ..query(&[], &[], &[RED]) };
        let page = query.entities(&core, NOW, Kind::Service);
        (page.rows.len(), page.count, page.is_truncated())
    };
    assert_eq!(page(1, 2), (2, 3, true));
    assert_eq!(page(3, 2), (1, 3, false));
    assert_eq!(page(4, 2), (0, 3, false));
    assert_eq!(page(1, usize::MAX), (3, 3, false));
}

#[test]
fn tmodels_of_bindings_are_found() {
    let core = core(&[("a", &[]), ("b", &[])]);
    let mut query = query(&[], &[], &[]);
    query.tmodels = vec!["uddi:t:a".into()];
    assert_eq!(names(&core, &query), ["a"]);
    query.tmodels.push("uddi:t:b".into());
    assert_eq!(names(&core, &query), [""; 0]);
    query.qualifiers = Qualifiers::parse(["orAllKeys"].into_iter()).unwrap();
    assert_eq!(names(&core, &query), ["a", "b"]);
    assert_eq!(query.bindings(&core, NOW).count, 2);
}

#[test]
fn qualifiers_that_are_unknown_or_exclude_each_other_are_refused() {
    let reason = |names: &[&str]| Qualifiers::parse(names.iter().copied()).unwrap_err().reason;
    for names in [&["bogus"][..], &["uddi:uddi.org:findqualifier:bogus"], &["signaturePresent"]] {
        assert_eq!(reason(names), Reason::Unsupported, "{names:?}");
    }
    for names in [
        ["exactMatch", "approximateMatch"],
        ["andAllKeys", "orAllKeys"],
        ["orLikeKeys", "uddi:uddi.org:findqualifier:orallkeys"],
        ["sortByNameAsc", "sortByNameDesc"],
        ["sortByDateAsc", "SORTBYDATEDESC"],
        ["exactMatch", "caseInsensitiveMatch"],
        ["combineCategoryBags", "serviceSubset"],
    ] {
        assert_eq!(reason(&names), Reason::InvalidCombination, "{names:?}");
    }
    let many: Vec<String> = (0..65).map(|at| format!("q{at}")).collect();
    assert_eq!(
        reason(&many.iter().map(String::as_str).collect::<Vec<_>>()),
        Reason::TooManyOptions
    );
}
