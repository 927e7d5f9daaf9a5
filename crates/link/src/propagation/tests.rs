use super::*;

/// Transmitter of ns-3's tests of propagation models, in W, and its frequency.
const SENT_W: f64 = 50.35702e-3;
const FREQUENCY_HZ: f64 = SPEED_OF_LIGHT_MPS / 0.125;

fn path(distance_m: f64, heights_m: [f64; 2]) -> Path<'static> {
    Path { distance_m, frequency_hz: FREQUENCY_HZ, heights_m, profile: None }
}

/// Checks that at each distance the power in W arrives that ns-3's test suite expects.
fn arrives(model: Model, heights_m: [f64; 2], expected: &[(f64, f64)]) {
    for &(distance_m, expected_w) in expected {
        let loss_db = model.loss_db(&path(distance_m, heights_m)).unwrap();
        let off_db = 10.0 * (SENT_W / expected_w).log10() - loss_db;
        assert!(off_db.abs() < 0.0001, "{} at {distance_m} m: {off_db} dB", model.name());
    }
}

#[test]
fn free_space_agrees_with_ns3_and_emane() {
    let expected = [
        (100.0, 4.98265e-10),
        (500.0, 1.99306e-11),
        (1_000.0, 4.98265e-12),
        (2_000.0, 1.24566e-12),
    ];
    arrives(Model::FreeSpace, [1.5, 1.5], &expected);
    assert!((free_space_db(1_000.0, 300e6) - 81.990).abs() < 0.0005);
    assert_eq!(free_space_db(0.0, 300e6), 0.0);
}

#[test]
fn two_ray_agrees_with_ns3() {
    let low = [1.5, 1.5];
    arrives(Model::TwoRay, low, &[(100.0, 4.98265e-10)]);
    let far = [(500.0, 4.07892e-12), (1_000.0, 2.549324e-13), (2_000.0, 1.593328e-14)];
    arrives(Model::TwoRay, low, &far);
    arrives(Model::TwoRay, [1.5, 5.5], &[(1_000.0, 3.427425e-12)]);
    // The crossover is at 226.19 m: nearer it is free space, to which the other joins there.
    let loss_db = |m: f64| Model::TwoRay.loss_db(&path(m, low)).unwrap();
    assert_eq!(loss_db(226.1), free_space_db(226.1, FREQUENCY_HZ));
    assert!((loss_db(226.3) - plane_earth_db(226.3, low)).abs() < 1e-12);
    assert!((loss_db(226.1) - loss_db(226.3)).abs() < 0.05);
}

#[test]
fn plane_earth_has_no_crossover() {
    let loss_db = |m: f64, heights| Model::PlaneEarth.loss_db(&path(m, heights)).unwrap();
    assert!((loss_db(100.0, [3.0, 2.0]) - (80.0 - 20.0 * 6_f64.log10())).abs() < 1e-12);
    assert_eq!(loss_db(100.0, [0.5, 0.1]), 80.0);
    assert_eq!(loss_db(1.0, [10.0, 10.0]), 0.0);
}

#[test]
fn log_distance_agrees_with_ns3() {
    let settings = LogDistance { reference_db: Some(40.045_997), ..LogDistance::default() };
    let expected =
        [(10.0, 4.98265e-9), (20.0, 6.22831e-10), (40.0, 7.78539e-11), (80.0, 9.73173e-12)];
    arrives(Model::LogDistance(settings), [1.5, 1.5], &expected);
    // Without a reference of its own it begins at free space, which at 1 m is that reference.
    arrives(Model::LogDistance(LogDistance::default()), [1.5, 1.5], &expected[..1]);
}

#[test]
fn a_knife_edge_agrees_with_the_curve() {
    let expected = [
        (-0.78, 0.0),
        (-0.5, 1.959),
        (0.0, 6.033),
        (0.5, 10.288),
        (1.0, 13.926),
        (2.0, 19.043),
        (3.0, 22.416),
    ];
    for (nu, expected_db) in expected {
        assert!((knife_edge_db(nu) - expected_db).abs() < 0.0005, "{nu}");
    }
    // The exact integral of Fresnel, of which the curve is an approximation.
    let exact = [(-0.5, 1.859), (0.0, 6.021), (0.5, 10.234), (1.0, 13.864), (2.0, 19.091)];
    assert!(exact.iter().all(|(nu, exact_db)| (knife_edge_db(*nu) - exact_db).abs() < 0.11));
}

#[test]
fn flat_ground_near_by_is_free_space() {
    let profile = Profile::new(&[(0.0, 100.0), (500.0, 100.0), (1_000.0, 100.0)]).unwrap();
    let over = |heights_m| {
        let path =
            Path { distance_m: 1_000.0, heights_m, profile: Some(&profile), ..path(0.0, [1.0; 2]) };
        Model::DeltaBullington(Ground::default()).loss_db(&path).unwrap()
    };
    let free_db = free_space_db(1_000.0, FREQUENCY_HZ);
    assert_eq!(over([60.0, 60.0]), free_db);
    assert!(over([1.0, 1.0]) > free_db + 10.0, "low antennas lose to the ground");
}

#[test]
fn a_hill_costs_what_its_knife_edge_does() {
    // A hill of 100 m half way on 10 km at 300 MHz: ν = 100 · √(0.002 · 10 / (1 · 5 · 5)) = 2.83.
    let points: Vec<_> =
        (0..=100).map(|i| (f64::from(i) * 100.0, if i == 50 { 110.0 } else { 0.0 })).collect();
    let profile = Profile::new(&points).unwrap();
    let ground = Ground { effective_radius_km: 1e6, ..Ground::default() };
    let frequency_hz = SPEED_OF_LIGHT_MPS;
    let parts = delta_bullington(&profile, [10.0, 10.0], frequency_hz, &ground).unwrap();
    let edge_db = knife_edge_db(2.829);
    let expected_db = edge_db + (1.0 - (-edge_db / 6.0).exp()) * 10.2;
    assert!((parts.bullington_db - expected_db).abs() < 0.01, "{parts:?}");
    assert!(parts.total_db >= parts.bullington_db);
}

#[test]
fn a_path_out_of_range_is_refused_by_name() {
    let good = path(1_000.0, [2.0, 2.0]);
    let cases = [
        (Path { distance_m: f64::NAN, ..good }, "distance NaN"),
        (Path { distance_m: -1.0, ..good }, "distance -1"),
        (Path { frequency_hz: 50.0, ..good }, "frequency 50"),
        (Path { heights_m: [2.0, 0.0], ..good }, "antenna height 0"),
    ];
    for (path, expected) in cases {
        let error = Model::FreeSpace.loss_db(&path).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("give"), "{error}");
    }
    let error = Model::DeltaBullington(Ground::default()).loss_db(&good).unwrap_err();
    assert!(error.to_string().contains("height grid"));
    let settings = LogDistance { exponent: f64::INFINITY, ..LogDistance::default() };
    assert!(Model::LogDistance(settings).loss_db(&good).is_err());
}

#[test]
fn models_have_names() {
    for name in Model::NAMES {
        assert_eq!(Model::named(name).unwrap().name(), name);
    }
    let error = Model::named("tworay").unwrap_err().to_string();
    assert!(error.contains("did you mean 'two-ray'?"), "{error}");
}
