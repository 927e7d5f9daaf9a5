//! ITU's validation examples of the delta-Bullington method, where the profiles are at hand.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests may fail them")]

use longwire_link::propagation::{Ground, Polarization, delta_bullington};
use longwire_link::terrain::Profile;
use std::path::PathBuf;

/// MHz and antenna heights in m of the five cases of each profile.
const CASES: [(f64, [f64; 2]); 5] = [
    (1_000.0, [30.0, 30.0]),
    (2_500.0, [50.0, 10.0]),
    (600.0, [20.0, 20.0]),
    (200.0, [40.0, 50.0]),
    (150.0, [70.0, 5.0]),
];

/// Bullington's loss over the profile and over smooth ground, that over the spherical Earth, and
/// the total, in dB: sheet `outputs` of "Validation examples for the delta Bullington diffraction
/// prediction method" of ITU-R study group 3.
const EXPECTED: [[f64; 4]; 20] = [
    [32.84284766, 13.74840484, 15.3485837, 34.44302652],
    [37.229036, 18.5970601, 23.6973069, 42.32928281],
    [31.22595813, 15.79373777, 20.91384864, 36.34606901],
    [24.87792613, 11.50981857, 14.32933641, 27.69744396],
    [24.78223928, 14.93033347, 33.13883693, 42.99074274],
    [36.20419305, 35.82816509, 69.45434151, 69.83036947],
    [44.81240928, 39.66871934, 85.53863749, 90.68232743],
    [34.43917939, 34.29503068, 66.31647651, 66.46062522],
    [28.37368149, 27.74009568, 45.7547348, 46.38832061],
    [34.61746032, 26.58559997, 43.35361839, 51.38547874],
    [17.62040631, 0.0, 0.0, 17.62040631],
    [25.1016907, 0.0, 0.0, 25.1016907],
    [20.25488733, 0.0, 0.0, 20.25488733],
    [10.1899085, 0.0, 0.0, 10.1899085],
    [16.27593106, 6.17409081, 10.63765222, 20.73949248],
    [7.870985135, 0.0, 0.0, 7.870985135],
    [0.0, 0.0, 0.0, 0.0],
    [15.30876397, 0.0, 0.0, 15.30876397],
    [6.526730443, 0.0, 0.0, 6.526730443],
    [0.0, 0.0, 0.0, 0.0],
];

/// ITU's own tolerance, in dB.
const MAX_ERROR_DB: f64 = 0.1;

fn profiles() -> Option<Vec<Profile>> {
    let root = std::env::var_os("LONGWIRE_DATA").map(PathBuf::from);
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    let folder = root.unwrap_or_else(default).join("propagation");
    if !folder.is_dir() {
        println!("skipped {} cases: no folder {}", EXPECTED.len(), folder.display());
        return None;
    }
    let read = |number: usize| {
        let name = format!("path{number}.csv");
        Profile::parse(&name, &std::fs::read_to_string(folder.join(&name)).unwrap()).unwrap()
    };
    Some((1..=4).map(read).collect())
}

#[test]
fn the_twenty_cases_of_itu_are_met() {
    let Some(profiles) = profiles() else { return };
    let ground = Ground { polarization: Polarization::Horizontal, ..Ground::default() };
    let mut worst_db = 0.0_f64;
    let cases = profiles.iter().flat_map(|profile| CASES.map(|case| (profile, case)));
    for ((profile, (mhz, heights_m)), expected) in cases.zip(EXPECTED) {
        let found = delta_bullington(profile, heights_m, mhz * 1e6, &ground).unwrap();
        let parts = [found.bullington_db, found.smooth_db, found.spherical_db, found.total_db];
        for (part_db, expected_db) in parts.into_iter().zip(expected) {
            let error_db = (part_db - expected_db).abs();
            assert!(error_db <= MAX_ERROR_DB, "{mhz} MHz {heights_m:?}: {found:?}");
            worst_db = worst_db.max(error_db);
        }
    }
    println!("{} cases, worst error of any part {worst_db:.4} dB", EXPECTED.len());
}
