use super::*;
use crate::propagation::{Ground, free_space_db};
use crate::terrain::{Landscape, Made};

const FREQUENCY_HZ: f64 = 300e6;

fn place(lat: f64, lon: f64) -> Position {
    Position::new(lat, lon, 0.0).unwrap()
}

fn second(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn prediction(model: Model) -> Prediction<'static> {
    Prediction { model, frequency_hz: FREQUENCY_HZ, grid: None, seed: 1 }
}

/// A node that stands and one that goes north from it, 0.001 degrees a second.
fn two() -> Vec<Antenna> {
    let fixed = Track::fixed(place(50.0, 7.0));
    let points = vec![(second(0), place(50.001, 7.0)), (second(100), place(50.101, 7.0))];
    let moving = Track::moving(points).unwrap();
    vec![
        Antenna { node: 1, track: fixed, height_m: 2.0 },
        Antenna { node: 2, track: moving, height_m: 2.0 },
    ]
}

fn ridge() -> HeightGrid {
    let corner = place(50.15, 6.9);
    let step_deg = 1.0 / 1_200.0;
    Made { landscape: Landscape::Ridge, corner, size: [241, 241], step_deg, seed: 1 }
        .grid()
        .unwrap()
}

#[test]
fn losses_follow_the_way_second_by_second() {
    let losses = prediction(Model::FreeSpace).losses(&two(), second(10), second(1)).unwrap();
    assert_eq!(losses.changes().len(), 2 * 11);
    for at in 0..=10_u32 {
        let there = place(50.001 + 0.001 * f64::from(at), 7.0);
        let expected_db = free_space_db(place(50.0, 7.0).distance_m(&there), FREQUENCY_HZ);
        let found_db = losses.loss_db(second(u64::from(at)), 1, 2).unwrap();
        assert!((found_db - expected_db).abs() <= 0.006, "{at} s: {found_db}");
        assert_eq!(losses.loss_db(second(u64::from(at)), 2, 1), Some(found_db));
    }
}

#[test]
fn the_order_of_nodes_changes_nothing_and_the_seed_does() {
    let model = Model::LogDistance(LogDistance::default());
    let losses = |seed, antennas: &[Antenna]| {
        Prediction { seed, ..prediction(model) }
            .losses(antennas, second(60), second(1))
            .unwrap()
            .fingerprint()
    };
    let mut nodes = two();
    let base = losses(1, &nodes);
    nodes.reverse();
    assert_eq!(losses(1, &nodes), base);
    assert_ne!(losses(2, &nodes), base);
}

#[test]
fn shadowing_has_its_deviation_and_its_correlation() {
    // 2000 steps of 10 m: correlation from step to step is exp(-10/50).
    let settings =
        LogDistance { shadowing_db: 6.0, decorrelation_m: 50.0, ..LogDistance::default() };
    let model = Model::LogDistance(settings);
    let step_deg = 10.0 / (crate::geo::EARTH_RADIUS_M.to_radians());
    let end = place(50.0 + 2_001.0 * step_deg, 7.0);
    let track = Track::moving(vec![(second(0), place(50.0 + step_deg, 7.0)), (second(2_000), end)]);
    let mut nodes = two();
    nodes[1].track = track.unwrap();
    let losses = prediction(model).losses(&nodes, second(1_999), second(1)).unwrap();
    let mean = Model::LogDistance(LogDistance { shadowing_db: 0.0, ..settings });
    let drawn_db: Vec<f64> = (0..2_000)
        .map(|at| {
            let places = [0, 1].map(|one| (nodes[one].track.at(second(at)), 2.0));
            let mean_db = prediction(mean).pair(places[0], places[1]).unwrap().loss_db;
            losses.loss_db(second(at), 1, 2).unwrap() - mean_db
        })
        .collect();
    let square = drawn_db.iter().map(|db| db * db).sum::<f64>() / 2_000.0;
    let product = drawn_db.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / 1_999.0;
    // About 200 independent values: four standard errors are 20 % of the deviation.
    assert!((square.sqrt() - 6.0).abs() < 1.2, "{}", square.sqrt());
    assert!((product / square - (-0.2_f64).exp()).abs() < 0.06, "{}", product / square);
}

#[test]
fn a_ridge_between_costs_diffraction() {
    let grid = ridge();
    let model = Model::DeltaBullington(Ground::default());
    let over = Prediction { grid: Some(&grid), ..prediction(model) };
    let pair = |north| over.pair((place(50.0, 7.0), 2.0), (place(north, 7.0), 2.0)).unwrap();
    let (near, far) = (pair(50.005), pair(50.1));
    assert!(near.profile.is_some() && near.distance_m > 555.0);
    let far_free_db = free_space_db(far.distance_m, FREQUENCY_HZ);
    assert!(far.loss_db > far_free_db + 15.0, "{} and {far_free_db}", far.loss_db);
    let same = over.pair((place(50.0, 7.0), 2.0), (place(50.0, 7.0), 2.5)).unwrap();
    assert_eq!((same.distance_m, same.profile), (0.5, None));
}

#[test]
fn a_way_off_the_map_names_nodes_and_time() {
    let grid = ridge();
    let model = Model::DeltaBullington(Ground::default());
    let over = Prediction { grid: Some(&grid), ..prediction(model) };
    let mut nodes = two();
    let points = vec![(second(0), place(50.1, 7.0)), (second(100), place(50.2, 7.0))];
    nodes[1].track = Track::moving(points).unwrap();
    let error = over.losses(&nodes, second(100), second(10)).unwrap_err().to_string();
    assert!(error.contains("nodes 1 and 2 at 60 s") && error.contains("off the map"), "{error}");
    nodes[1].node = 1;
    let error = over.losses(&nodes, second(1), second(1)).unwrap_err().to_string();
    assert!(error.contains("node 1 is named twice"), "{error}");
    assert!(over.losses(&two(), second(1), Duration::ZERO).is_err());
}
