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

/// What the last message of an end was encoded with, as its decision says.
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
    let held: Vec<_> = pair.gateway.relay.transfer.coding.dictionaries().map(Kept::id).collect();
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
        let all: Vec<_> = end.relay.transfer.coding.dictionaries().collect();
        assert_eq!(all.len(), 2, "its own and the other's");
        for kept in all {
            let text = String::from_utf8_lossy(kept.content());
            assert!(text.contains("callsign"), "{text}");
            assert!(!text.contains("HUSH") && !text.contains("alice"), "{text}");
        }
    }
}

#[test]
fn a_dictionary_that_no_longer_pays_is_replaced() {
    let mut pair = with_dictionaries();
    (0..20).for_each(|seed| assert_ne!(ask(&mut pair, "a", seed), [0, 0]));
    pair.rests(30);
    let names = |pair: &Pair| {
        let all = pair.edge.relay.transfer.coding.dictionaries().map(|kept| kept.id().short());
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
    Frame::from(keeping.part()).encode(&mut bytes);
    let carrier = pair.carrier;
    pair.tell(to, Input::Received { carrier, bytes: bytes.into() });
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
    assert_eq!(pair.edge.relay.transfer.coding.dictionaries().count(), 0);
    (1..40).for_each(|seed| assert_ne!(ask(&mut pair, "a", seed), [0, 0]));
}
