use std::sync::Arc;

use super::super::core::{Limits, Publication};
use super::super::links;
use super::*;

const NOW: Duration = Duration::from_secs(1_000_000);

fn pairs(text: &str) -> Vec<(String, String)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(a, b)| (a.into(), b.into()))
        .collect()
}

struct World {
    core: Core,
    last: u8,
}

impl World {
    fn new() -> Self {
        Self { core: Core::new(Limits::default(), []), last: 0 }
    }

    fn by<T>(
        &mut self,
        owner: &str,
        change: impl FnOnce(&mut Publication<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let last = &mut self.last;
        let mut chance = || {
            *last += 1;
            [*last; 16]
        };
        let mut all = Publication::new(&mut self.core, NOW, &Arc::from(owner), &mut chance);
        let answer = change(&mut all)?;
        all.finish();
        Ok(answer)
    }

    fn register(&mut self, query: &str, document: &str) -> Result<(Key, bool), Refusal> {
        let (query, links) = (pairs(query), links::parse(document).unwrap());
        self.by("alice", |all| register(all, NOW, &query, &links, Some("coap://192.0.2.1")))
    }

    fn look(&self, lookup: Lookup, query: &str) -> String {
        links::write(&look_up(&self.core, NOW, lookup, &pairs(query)).unwrap())
    }
}

const FACTS: &str = "q-mean-us=14&q-p99-us=23&q-p999-us=70&q-p9999-us=150&q-max-us=175&\
                     q-samples=107000&q-window-s=1200&q-measured-at=2026-03-14T06:00:00Z";

#[test]
fn what_is_registered_is_found_by_all_that_it_says() {
    let mut world = World::new();
    let (key, is_new) = world
        .register(
            "ep=node1&d=ship&et=sensor",
            "</light>;rt=\"light lux\";if=sensor;obs,<coap://[2001:db8::1]/x>;rt=temp",
        )
        .unwrap();
    assert!(is_new);
    let all = "<coap://192.0.2.1/light>;rt=\"light lux\";if=\"sensor\";obs,\
               <coap://[2001:db8::1]/x>;rt=\"temp\"";
    let light = "<coap://192.0.2.1/light>;rt=\"light lux\";if=\"sensor\";obs";
    for (query, expected) in [
        ("", all),
        ("rt=lux", light),
        ("rt=li*", light),
        ("rt=light&if=sensor", light),
        ("rt=light&if=other", ""),
        ("ep=node1", all),
        ("ep=node2", ""),
        ("d=ship&rt=lux", light),
        ("et=sensor&rt=lux", light),
        ("href=coap://192.0.2.1/light", light),
        ("obs=", light),
        ("count=1", light),
        ("page=1&count=2", ""),
    ] {
        assert_eq!(world.look(Lookup::Resources, query), expected, "{query}");
    }
    let endpoint = format!(
        "</rd/{}>;ep=\"node1\";d=\"ship\";base=\"coap://192.0.2.1\";rt=\"core.rd-ep\";lt=90000;\
         et=\"sensor\"",
        id(&key)
    );
    for query in ["", "ep=node1", "et=sensor", "rt=lux", "rt=core.rd-ep", "href=/rd/*"] {
        assert_eq!(world.look(Lookup::Endpoints, query), endpoint, "{query}");
    }
    assert_eq!(world.look(Lookup::Endpoints, "rt=nothing"), "");
}

#[test]
fn a_name_is_registered_once() {
    let mut world = World::new();
    let first = world.register("ep=a", "</1>").unwrap();
    let again = world.register("ep=a&lt=60", "</2>").unwrap();
    assert_eq!((again.0.clone(), again.1), (first.0, false));
    assert_eq!(world.look(Lookup::Resources, "ep=a"), "<coap://192.0.2.1/2>");
    let other = world.register("ep=a&d=x", "</3>").unwrap();
    assert!(other.1 && other.0 != again.0);
    let links = links::parse("</4>").unwrap();
    let query = pairs("ep=a");
    let taken = world.by("bob", |all| register(all, NOW, &query, &links, Some("coap://x")));
    assert_eq!(taken.unwrap_err().reason, Reason::UserMismatch);
}

#[test]
fn an_update_renews_and_moves() {
    let mut world = World::new();
    let key = world.register("ep=a&lt=60", "</1>;rt=x,<http://other/2>").unwrap().0;
    let update = |world: &mut World, query: &str| {
        let query = pairs(query);
        world.by("alice", |all| update(all, NOW, &key, &query))
    };
    update(&mut world, "lt=120").unwrap();
    assert_eq!(world.core.get(NOW, &key).unwrap().until, Some(NOW + Duration::from_secs(120)));
    update(&mut world, "base=coap://192.0.2.9&et=y").unwrap();
    assert_eq!(
        world.look(Lookup::Resources, "et=y"),
        "<coap://192.0.2.9/1>;rt=\"x\",<http://other/2>"
    );
    assert_eq!(world.core.get(NOW, &key).unwrap().lease, Some(Duration::from_secs(120)));
    assert!(update(&mut world, "ep=b").is_err());
    update(&mut world, FACTS).unwrap();
    let expected = "<coap://192.0.2.9/1>;rt=\"x\";qos=\"le-100 firm-le-100 hard-le-300\"";
    assert!(world.look(Lookup::Resources, "qos=hard-le-3000").starts_with(expected));
    assert_eq!(world.look(Lookup::Resources, "qos=hard-le-100"), "");
}

#[test]
fn what_was_measured_is_on_the_ladder() {
    let mut world = World::new();
    world.register(&format!("ep=a&{FACTS}"), "</1>;rt=consumer").unwrap();
    let found = world.look(Lookup::Resources, "rt=consumer&qos=firm-le-3000");
    assert_eq!(
        found,
        "<coap://192.0.2.1/1>;rt=\"consumer\";qos=\"le-100 firm-le-100 hard-le-300\""
    );
    let endpoint = world.look(Lookup::Endpoints, "ep=a");
    assert!(
        endpoint.contains(";q-p99-us=23;") && endpoint.contains(";q-samples=107000;"),
        "{endpoint}"
    );
}

#[test]
fn bad_registrations_are_refused() {
    let long = format!("ep={}", "x".repeat(64));
    for (query, document) in [
        ("", "</1>"),
        ("ep=", "</1>"),
        (&long, "</1>"),
        ("ep=a&ep=b", "</1>"),
        ("ep=a&lt=0", "</1>"),
        ("ep=a&lt=x", "</1>"),
        ("ep=a&lt=4294967296", "</1>"),
        ("ep=a&lt=4294967295", "</1>"),
        ("ep=a&lt=1&lt=2", "</1>"),
        ("ep=a&base=nowhere", "</1>"),
        ("ep=a&base=coap://", "</1>"),
        ("ep=a&q-p99-us=23", "</1>"),
        (&format!("ep=a&{FACTS}"), ""),
    ] {
        let mut world = World::new();
        assert!(world.register(query, document).is_err(), "{query}");
        assert_eq!(world.look(Lookup::Endpoints, ""), "", "{query}");
    }
    let mut world = World::new();
    let wide = format!("</1>;a=\"{}\"", "x".repeat(256));
    assert!(world.register("ep=a", &wide).is_err());
    let many: String = (0..33).map(|at| format!("&a{at}=1")).collect();
    assert_eq!(
        world.register(&format!("ep=a{many}"), "").unwrap_err().reason,
        Reason::TooManyOptions
    );
    assert!(look_up(&world.core, NOW, Lookup::Resources, &pairs("page=1")).is_err());
    assert!(look_up(&world.core, NOW, Lookup::Resources, &pairs("count=x")).is_err());
}

#[test]
fn references_are_resolved() {
    for (base, target, expected) in [
        ("coap://h", "/a", "coap://h/a"),
        ("coap://h:1/x/y", "/a", "coap://h:1/a"),
        ("coap://h/x/y", "a", "coap://h/x/a"),
        ("coap://h", "a", "coap://h/a"),
        ("coap://h", "", "coap://h"),
        ("coap://h", "//g/a", "coap://g/a"),
        ("coap://h", "http://g/a", "http://g/a"),
        ("coap://[2001:db8::1]", "/a", "coap://[2001:db8::1]/a"),
    ] {
        assert_eq!(resolved(base, target), expected, "{base} {target}");
    }
}
