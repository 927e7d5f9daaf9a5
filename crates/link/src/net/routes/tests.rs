use super::*;
use crate::geo::Position;
use crate::medium::{Access, Csma, MediumConfig};
use crate::net::{NetMedium, Node, NodeRadio, PathLoss};
use crate::propagation::Model;
use crate::tracks::Track;
use proptest::prelude::*;
use std::time::Duration;

/// A scenario of two channels, the second narrow, with so many nodes.
fn scenario(nodes: u16) -> Scenario {
    let csma = || Access::Csma(Csma::bianchi());
    let medium = |name: &str, config: MediumConfig| NetMedium {
        name: name.to_owned(),
        kind: "wideband",
        frequency_hz: 300e6,
        config,
        path_loss: PathLoss::Predicted(Model::FreeSpace),
        routing: None,
    };
    let place = Position::new(50.0, 7.0, 0.0).unwrap();
    let radio = |medium| NodeRadio { medium, antenna_m: 3.0, power_dbm: 37.0 };
    Scenario {
        title: String::new(),
        about: String::new(),
        duration: Duration::from_secs(1),
        step: Duration::from_secs(1),
        seed: 1,
        ground: None,
        media: vec![
            medium("wide", MediumConfig::wideband(csma())),
            medium("narrow", MediumConfig::narrowband(csma())),
        ],
        nodes: (1..=nodes)
            .map(|id| Node {
                id,
                name: format!("n{id}"),
                track: Some(Track::fixed(place)),
                radios: vec![radio(0), radio(1)],
            })
            .collect(),
        groups: Vec::new(),
        messages: Vec::new(),
        cases: Vec::new(),
        service: Vec::new(),
    }
}

fn one_way(medium: usize, from: NodeId, to: NodeId, rate_bps: u64) -> Link {
    Link { medium, from, to, snr_db: 20.0, rate_place: 0, rate_bps }
}

fn both_ways(medium: usize, a: NodeId, b: NodeId, rate_bps: u64) -> [Link; 2] {
    [one_way(medium, a, b, rate_bps), one_way(medium, b, a, rate_bps)]
}

#[test]
fn the_way_of_least_airtime_is_taken_whatever_its_hops() {
    let wide = |a, b, rate_bps| both_ways(0, a, b, rate_bps);
    let links = [
        wide(1, 2, 1_000_000),
        wide(2, 3, 1_000_000),
        wide(1, 3, 380_000),
        both_ways(1, 3, 4, 15_000),
    ]
    .concat();
    let routes = Routes::over(&scenario(4), &links);
    // Two hops of 2.8 ms each are less than one of 7.2 ms.
    assert_eq!(routes.next(1, 3), Some(Hop { next: 2, medium: 0 }));
    assert_eq!(routes.hops(1, 3), Some(2));
    let path = routes.path(1, 4).unwrap();
    assert_eq!(
        path.iter().map(|hop| (hop.next, hop.medium)).collect::<Vec<_>>(),
        [(2, 0), (3, 0), (4, 1)]
    );
    assert_eq!((routes.next(1, 1), routes.path(1, 1)), (None, None));
    assert_eq!((routes.next(1, 5), routes.next(0, 1)), (None, None));
    let counts = routes.hop_counts();
    assert_eq!((counts.pairs, counts.by_hops.as_slice()), (12, &[6, 4, 2][..]));
    assert!((counts.mean() - 20.0 / 12.0).abs() < 1e-12);
    assert_eq!((counts.connected(), counts.max()), (12, 3));
}

#[test]
fn ties_go_to_the_lower_neighbour_and_the_earlier_channel() {
    // Over 2 or over 3, and to each of them over either of two equal channels.
    let mut two = scenario(4);
    two.media[1] = two.media[0].clone();
    let links: Vec<Link> = [(3, 4), (1, 3), (2, 4), (1, 2)]
        .into_iter()
        .flat_map(|(a, b)| [both_ways(1, a, b, 500_000), both_ways(0, a, b, 500_000)].concat())
        .collect();
    let routes = Routes::over(&two, &links);
    assert_eq!(routes.next(1, 4), Some(Hop { next: 2, medium: 0 }));
    assert_eq!(routes.next(4, 1), Some(Hop { next: 2, medium: 0 }));
}

#[test]
fn a_link_of_one_way_is_no_link() {
    let links = [both_ways(0, 1, 2, 500_000).to_vec(), vec![one_way(0, 2, 3, 500_000)]].concat();
    let routes = Routes::over(&scenario(3), &links);
    assert_eq!((routes.hops(1, 2), routes.hops(2, 3), routes.hops(3, 2)), (Some(1), None, None));
    assert_eq!(routes.hop_counts().connected(), 2);
}

#[test]
fn changes_are_what_makes_one_of_the_other() {
    let scenario = scenario(3);
    let a = Routes::over(&scenario, &both_ways(0, 1, 2, 500_000));
    let b = Routes::over(&scenario, &both_ways(0, 2, 3, 500_000));
    assert_eq!(a.changes_since(&a), []);
    assert_eq!(a.changes_since(&Routes::default()).len(), 2);
    let hop = |next| Some(Hop { next, medium: 0 });
    let changes = b.changes_since(&a);
    assert_eq!(changes, [(1, 2, None), (2, 1, None), (2, 3, hop(3)), (3, 2, hop(2))]);
}

proptest! {
    /// Every route arrives, in as many hops as it says, and no way over one neighbour is better.
    #[test]
    fn routes_arrive_and_none_is_better(
        pairs in proptest::collection::vec((1_u16..=9, 1_u16..=9, 0_usize..2, 0_u8..3), 0..40)
    ) {
        let scenario = scenario(9);
        let rates = [[1_000_000, 500_000, 380_000], [15_000; 3]];
        let links: Vec<Link> = pairs
            .into_iter()
            .filter(|(a, b, ..)| a != b)
            .flat_map(|(a, b, medium, rate)| {
                both_ways(medium, a, b, rates[medium][usize::from(rate)])
            })
            .collect();
        let routes = Routes::over(&scenario, &links);
        let airtime = |from, to| {
            if from == to { Some(0) } else { routes.route(from, to).map(|route| route.airtime_ns) }
        };
        for (from, to) in (1..=9).flat_map(|from| (1..=9).map(move |to| (from, to))) {
            let path = routes.path(from, to);
            let hops = routes.hops(from, to).map(|hops| hops as usize);
            prop_assert_eq!(path.as_ref().map(Vec::len), hops);
        }
        let reverse: std::collections::BTreeSet<_> =
            links.iter().map(|link| (link.medium, link.to, link.from)).collect();
        // Of a pair named twice the later rate holds.
        let known: BTreeMap<_, _> =
            links.iter().map(|link| ((link.medium, link.from, link.to), link.rate_bps)).collect();
        for ((medium, from, over), rate_bps) in known {
            prop_assert!(reverse.contains(&(medium, from, over)));
            let radio = &scenario.media[medium].config.radio;
            let bytes = u64::from(TYPICAL_PACKET_BYTES + radio.header_bytes);
            let hop = u64::try_from(radio.airtime(rate_bps, bytes).as_nanos()).unwrap();
            for to in (1..=9).filter(|to| *to != from) {
                if let Some(rest) = airtime(over, to) {
                    prop_assert!(airtime(from, to).is_some_and(|all| all <= hop + rest));
                }
            }
        }
    }
}
