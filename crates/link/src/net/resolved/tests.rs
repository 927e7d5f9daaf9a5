use super::*;
use crate::geo::Position;
use crate::medium::{Access, Csma, MediumConfig};
use crate::net::{Group, NetMedium, Node, NodeRadio, ScriptedMessage, differences};
use crate::propagation::Model;
use crate::tracks::Track;

/// Two nodes of which one goes away from the other, 1 km a second along a meridian.
fn leaving() -> Scenario {
    let at = |lat| Position::new(lat, 7.0, 0.0).unwrap();
    let radio = || vec![NodeRadio { medium: 0, antenna_m: 3.0, power_dbm: 37.0 }];
    let second = Duration::from_secs;
    let away = vec![(second(0), at(50.01)), (second(100), at(50.91))];
    let node = |id, name: &str, track| Node {
        id,
        name: name.to_owned(),
        track: Some(track),
        radios: radio(),
    };
    Scenario {
        title: "leaving".to_owned(),
        about: String::new(),
        duration: second(100),
        step: second(10),
        seed: 1,
        ground: None,
        media: vec![NetMedium {
            name: "wide".to_owned(),
            kind: "wideband",
            frequency_hz: 300e6,
            config: MediumConfig::wideband(Access::Csma(Csma::bianchi())),
            path_loss: PathLoss::Predicted(Model::TwoRay),
            routing: None,
        }],
        nodes: vec![
            node(1, "a", Track::fixed(at(50.0))),
            node(2, "b", Track::moving(away).unwrap()),
        ],
        groups: vec![Group { name: "all".to_owned(), nodes: vec![1, 2] }],
        messages: vec![ScriptedMessage {
            at: second(1),
            from: 1,
            to: vec!["all".to_owned()],
            precedence: "flash".to_owned(),
            kind: "free-text".to_owned(),
            delivery: "reliable".to_owned(),
            receipt: "delivered".to_owned(),
            validity: None,
            text: "go".to_owned(),
        }],
        cases: Vec::new(),
        service: Vec::new(),
    }
}

#[test]
fn links_fade_with_distance_and_end() {
    let resolved = leaving().resolve().unwrap();
    let rates = |second| -> Vec<u64> {
        let links = resolved.links(Duration::from_secs(second));
        links.iter().map(|link| link.rate_bps).collect()
    };
    assert_eq!(rates(0), [1_000_000; 2]);
    assert_eq!(rates(100), []);
    let speeds: Vec<u64> =
        resolved.steps().map(|at| rates(at.as_secs()).first().copied().unwrap_or(0)).collect();
    assert_eq!(speeds.len(), 11);
    assert!(speeds.windows(2).all(|pair| pair[0] >= pair[1]), "{speeds:?}");
    let hops: Vec<u64> = resolved.hops().map(|(_, counts)| counts.connected()).collect();
    assert_eq!((hops[0], hops[10]), (2, 0));
    // The signal is what the model says: 37 dBm over 1112 m against a noise of -110 dBm.
    let link = resolved.links(Duration::ZERO)[0];
    let loss_db = 20.0 * (4.0 * std::f64::consts::PI * 1_111.95 * 300e6 / 299_792_458.0).log10();
    let two_ray_db = 40.0 * 1_111.95_f64.log10() - 20.0 * 9_f64.log10();
    assert!((link.snr_db - (37.0 - loss_db.max(two_ray_db) + 110.0)).abs() < 0.1, "{link:?}");
}

#[test]
fn names_are_found() {
    let scenario = leaving();
    assert_eq!(scenario.receivers(&scenario.messages[0]), [2]);
    assert_eq!((scenario.node_named("b"), scenario.node_named("all")), (Some(2), None));
    assert_eq!(scenario.nodes_of("all"), Some(vec![1, 2]));
    assert_eq!(
        (scenario.port(0, 2), scenario.port(0, 3), scenario.port(1, 1)),
        (Some(1), None, None)
    );
    assert_eq!(scenario.group_of(2).map(|group| group.name.as_str()), Some("all"));
}

#[test]
fn a_fingerprint_is_of_all_that_a_run_depends_on() {
    let base = leaving().resolve().unwrap();
    assert_eq!(base.fingerprint(), leaving().resolve().unwrap().fingerprint());
    type Edit<'a> = (&'a str, &'a dyn Fn(&mut Scenario));
    let edits: [Edit<'_>; 10] = [
        ("title", &|one| one.title.push('x')),
        ("seed", &|one| one.seed = 2),
        ("step", &|one| one.step = Duration::from_secs(20)),
        ("channel wide frequency", &|one| one.media[0].frequency_hz = 310e6),
        ("channel wide path loss", &|one| {
            one.media[0].path_loss = PathLoss::Predicted(Model::FreeSpace);
        }),
        ("channel wide noise figure", &|one| one.media[0].config.radio.noise_figure_db = 5.0),
        ("node a on wide", &|one| one.nodes[0].radios[0].power_dbm = 30.0),
        ("node a place", &|one| {
            let place = Position::new(50.0, 7.001, 0.0).unwrap();
            one.nodes[0].track = Some(Track::fixed(place));
        }),
        ("group all", &|one| one.groups[0].nodes = vec![2]),
        ("message 00001", &|one| one.messages[0].text.push('!')),
    ];
    for (what, edit) in edits {
        let mut other = leaving();
        edit(&mut other);
        let other = other.resolve().unwrap();
        assert_ne!(base.fingerprint(), other.fingerprint(), "{what}");
        let differing = differences(&base.facts(), &other.facts());
        assert!(differing.iter().any(|(name, ..)| name == what), "{what}: {differing:?}");
    }
    assert_eq!(differences(&base.facts(), &base.facts()), []);
}

#[test]
fn a_node_without_a_place_is_refused_by_name() {
    let mut scenario = leaving();
    scenario.nodes[1].track = None;
    let error = scenario.resolve().unwrap_err().to_string();
    assert!(error.contains("node b has no place, which channel wide asks for"), "{error}");
    let mut scenario = leaving();
    scenario.media[0].path_loss =
        PathLoss::Predicted(Model::DeltaBullington(crate::propagation::Ground::default()));
    let error = scenario.resolve().unwrap_err().to_string();
    assert!(
        error.contains("channel wide: nodes a and b at 0 s: delta-bullington needs"),
        "{error}"
    );
}
