//! Dictionaries that make themselves: when they cross, whom they serve, and when others come.

use record::decision::Base;

use super::*;

pub(super) const DICTIONARY: &str = "zstd-dictionary:19";

/// A pair that has dictionaries only, so that nothing else is better.
pub(super) fn with_dictionaries() -> Pair {
    with_config(Config::new(Role::Edge, 0))
}

pub(super) fn with_config(mut config: Config) -> Pair {
    let encodings = config.encoding.meant_by(&[DICTIONARY.to_owned()]).unwrap();
    config.services = vec![Service { encodings: Some(encodings), ..Service::default() }];
    Pair::with(&config, Some(0))
}

pub(super) const HUSHED: &str = "<w:Security xmlns:w='w'><w:UsernameToken><w:Username>alice\
     </w:Username><w:Password>HUSH</w:Password></w:UsernameToken></w:Security>";

pub(super) fn ask(pair: &mut Pair, client: &str, seed: u32) -> [usize; 2] {
    let (body, answer) = (track(seed, HUSHED), track(seed + 500, HUSHED));
    pair.asks(client, &[("authorization", "HUSH")], &body, &answer)
}

/// What the last half of an end was told by, as its decision says.
pub(super) fn base(end: &End) -> Option<Base> {
    let chosen = end.facts.iter().rev().find_map(|fact| match fact {
        Fact::Chosen { decision, .. } => Some(decision.as_ref()?.base.clone()),
        _ => None,
    });
    chosen.flatten()
}

#[test]
fn a_dictionary_is_made_of_what_went_by_and_crosses_while_nobody_needs_the_link() {
    let mut pair = with_dictionaries();
    let first = ask(&mut pair, "a", 0);
    for seed in 1..20 {
        ask(&mut pair, "a", seed);
    }
    assert!(!pair.edge.chosen().contains(&DICTIONARY));
    // No faster than a piece of a kilobyte a second, and not for ever.
    let each: Vec<_> = (0..20).map(|_| pair.rests(1)).collect();
    assert!(each.iter().flatten().all(|&bytes| bytes < 1100), "{each:?}");
    assert!(each.iter().any(|bytes| bytes[0] > 0) && each.iter().any(|bytes| bytes[1] > 0));
    assert_eq!(pair.rests(100), [0, 0]);
    let then = ask(&mut pair, "a", 30);
    assert_eq!(pair.edge.chosen().last(), Some(&DICTIONARY));
    assert_eq!(pair.gateway.chosen().last(), Some(&DICTIONARY));
    let held: Vec<_> =
        pair.gateway.relay.coding.core.dictionaries.all().map(|kept| kept.id()).collect();
    let Some(Base::Dictionary { sha256, version: 1 }) = base(&pair.gateway) else { panic!() };
    assert!(held.iter().any(|id| id.to_string() == sha256), "{sha256} {held:?}");
    assert!(then[0] * 2 < first[0] && then[1] * 2 < first[1], "{then:?} {first:?}");
    // Nobody else's messages are told by it.
    let chosen = (pair.edge.chosen().len(), pair.gateway.chosen().len());
    ask(&mut pair, "b", 31);
    assert_ne!(pair.edge.chosen()[chosen.0], DICTIONARY);
    assert_ne!(pair.gateway.chosen()[chosen.1], DICTIONARY);
    // Nothing secret is in it.
    for end in [&pair.edge, &pair.gateway] {
        let all: Vec<_> = end.relay.coding.core.dictionaries.all().collect();
        assert_eq!(all.len(), 2, "its own and the other's");
        for kept in all {
            let text = String::from_utf8_lossy(kept.content());
            assert!(text.contains("callsign"), "{text}");
            assert!(!text.contains("HUSH") && !text.contains("alice"), "{text}");
        }
    }
}

#[test]
fn a_dictionary_outlives_its_carrier_and_is_sent_again_where_it_is_gone() {
    let mut pair = with_dictionaries();
    (0..20).for_each(|seed| assert_ne!(ask(&mut pair, "a", seed), [0, 0]));
    let crossed = pair.rests(30);
    for role in [Role::Gateway, Role::Edge] {
        let carrier = pair.carrier;
        pair.tell(role, Input::CarrierDown { carrier, reason: "cut".into() });
    }
    let offered = pair.rests(10);
    assert!(offered[0] * 2 < crossed[0] && offered[1] * 2 < crossed[1], "{offered:?} {crossed:?}");
    ask(&mut pair, "a", 40);
    assert_eq!(pair.edge.chosen().last(), Some(&DICTIONARY));
    // The receivers have lost it: the message gets through, and the dictionary comes again.
    for end in [&mut pair.edge, &mut pair.gateway] {
        end.relay.coding.core.dictionaries.lose_held();
    }
    ask(&mut pair, "a", 41);
    assert_eq!((pair.edge.ignored(), pair.gateway.ignored()), (1, 1));
    ask(&mut pair, "a", 42);
    assert_ne!(pair.edge.chosen().last(), Some(&DICTIONARY));
    pair.rests(30);
    ask(&mut pair, "a", 43);
    assert_eq!(pair.edge.chosen().last(), Some(&DICTIONARY));
    assert_eq!(pair.gateway.chosen().last(), Some(&DICTIONARY));
}

#[test]
fn a_message_too_long_for_a_sample_gets_through_without_its_dictionary() {
    let mut pair = with_dictionaries();
    (0..20).for_each(|seed| assert_ne!(ask(&mut pair, "a", seed), [0, 0]));
    pair.rests(30);
    pair.gateway.relay.coding.core.dictionaries.lose_held();
    let words: String = (0..600).map(|at| format!("<n>{at} of many</n>")).collect();
    let long = track(50, &[HUSHED, &words].concat());
    assert!(long.len() > coding::kept::dictionaries::MAX_SAMPLE_BYTES);
    pair.asks("a", &[("authorization", "HUSH")], &long, &track(51, HUSHED));
    assert_eq!(pair.edge.chosen().last(), Some(&DICTIONARY));
    assert_eq!((pair.edge.ignored(), pair.gateway.ignored()), (0, 1));
}

#[test]
fn a_dictionary_that_no_longer_pays_is_replaced() {
    let mut pair = with_dictionaries();
    (0..20).for_each(|seed| assert_ne!(ask(&mut pair, "a", seed), [0, 0]));
    pair.rests(30);
    let names = |pair: &Pair| {
        let all = pair.edge.relay.coding.core.dictionaries.all().map(|kept| kept.id().short());
        all.collect::<Vec<_>>()
    };
    let before = names(&pair);
    // Messages of other sorts, which have nothing of their kind to be told by.
    let other = |seed: u32| {
        let noise = seed.wrapping_mul(2_654_435_761);
        format!(
            "<order id='{noise}'>{HUSHED}<customer><address>Some long street {}</address>\
             <town>Elsewhere on the river</town></customer><article number='{}'><description>A \
             thing that is ordered time and again</description><price currency='EUR'>{}</price>\
             </article>\
             <delivery method='by hand'><date>2026-11-{}</date></delivery></order>",
            noise % 91,
            noise % 77_777,
            noise % 997,
            noise % 28
        )
        .into_bytes()
    };
    for seed in 0..60_u32 {
        let kind: String =
            (0..3).map(|at| char::from(b'a' + (seed >> (2 * at)).to_le_bytes()[0] % 4)).collect();
        let fields = [("authorization", "HUSH"), ("soapaction", kind.as_str())];
        pair.asks("a", &fields, &other(seed), &other(seed + 900));
    }
    pair.rests(30);
    let after = names(&pair);
    assert!(after.iter().any(|name| !before.contains(name)), "{before:?} {after:?}");
    let fields = [("authorization", "HUSH"), ("soapaction", "zzz")];
    pair.asks("a", &fields, &other(1001), &other(1002));
    assert_eq!(pair.edge.chosen().last(), Some(&DICTIONARY));
    assert!(matches!(base(&pair.edge), Some(Base::Dictionary { version: 2.., .. })));
    assert_eq!((pair.edge.ignored(), pair.gateway.ignored()), (0, 0));
}

/// A peer's word of a dictionary, as its frame comes.
pub(super) fn says(pair: &mut Pair, to: Role, keeping: &Keeping) {
    let mut bytes = Vec::new();
    keeping.frame().encode(&mut bytes);
    let carrier = pair.carrier;
    pair.tell(to, Input::Received { carrier, bytes: bytes.into() });
}

#[test]
fn a_peer_that_does_not_answer_an_offer_holds_up_no_other_for_ever() {
    let mut pair = with_dictionaries();
    let get = |pair: &mut Pair, client, seed| pair.asks(client, &[], &[], &track(seed, HUSHED));
    for (client, first) in [("a", 0), ("b", 100)] {
        (first..first + 20).for_each(|seed| assert_ne!(get(&mut pair, client, seed), [0, 0]));
    }
    pair.rests(60);
    // It is all to be agreed on anew, but of what the gateway transmits the edge hears nothing.
    pair.held = Some(Vec::new());
    let (now, carrier) = (pair.now, pair.carrier);
    let gateway = &mut pair.gateway.relay;
    gateway.coding.with_peer(now, path_of(carrier), |peer| {
        peer.path.offers = coding::path::offers::Offers::default();
        peer.greet_offers();
    });
    let offers = |pair: &mut Pair, seconds| {
        let before = pair.held.as_ref().unwrap().len();
        pair.rests(seconds);
        pair.held.as_ref().unwrap().len() - before
    };
    assert_eq!(offers(&mut pair, 100), 1, "one at a time");
    assert_eq!(offers(&mut pair, 100), 1, "then the other");
    assert_eq!(offers(&mut pair, 1000), 0, "and none twice");
    // A late word counts all the same.
    for (role, input) in pair.held.take().unwrap() {
        pair.tell(role, input);
    }
    for client in ["a", "b"] {
        assert_ne!(get(&mut pair, client, 30), [0, 0]);
        assert_eq!(pair.gateway.chosen().last(), Some(&DICTIONARY), "{client}");
    }
}

#[test]
fn what_a_hostile_peer_says_of_dictionaries_harms_nobody() {
    let mut pair = with_dictionaries();
    ask(&mut pair, "a", 0);
    let part = |bytes: &[u8]| Bytes::copy_from_slice(bytes);
    let frames = [
        Keeping::Part { id: [1; 8], bytes: part(b"unasked") },
        Keeping::Want { id: [1; 8] },
        Keeping::Held { id: [1; 8] },
        Keeping::Offer { id: [1; 32], bytes: 10 },
        Keeping::Part { id: [1; 8], bytes: part(b"longer than was said") },
        Keeping::Part { id: [1; 8], bytes: part(b"0123456789") },
        Keeping::Part { id: [1; 8], bytes: part(b"0123456789") },
        Keeping::Offer { id: [2; 32], bytes: Keeping::PARCEL_BYTES },
        Keeping::Offer { id: [3; 32], bytes: 0 },
        Keeping::Part { id: [3; 8], bytes: part(b"") },
    ];
    for keeping in frames {
        for role in [Role::Edge, Role::Gateway] {
            says(&mut pair, role, &keeping);
        }
    }
    assert!(pair.edge.ignored() > 0);
    assert_eq!(pair.edge.relay.coding.core.dictionaries.all().count(), 0);
    (1..40).for_each(|seed| assert_ne!(ask(&mut pair, "a", seed), [0, 0]));
}
