//! Terrain and radio scenarios of other people, where they are at hand.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests may fail them")]

use longwire_link::eel::Eel;
use longwire_link::geo::Position;
use longwire_link::losses::Losses;
use longwire_link::medium::{Access, Destination, Input, Medium, MediumConfig, Output, Tdma};
use longwire_link::prediction::Prediction;
use longwire_link::propagation::{Ground, Model, free_space_db};
use longwire_link::terrain::HeightGrid;
use std::path::PathBuf;
use std::time::Duration;

fn file(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("LONGWIRE_DATA").map(PathBuf::from);
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    let file = root.unwrap_or_else(default).join(path);
    if !file.exists() {
        println!("skipped 1 case: no {}", file.display());
    }
    file.exists().then_some(file)
}

fn tutorial(path: &str) -> Option<(String, Eel)> {
    let text = std::fs::read_to_string(file(&format!("radio_traces/emane_tutorial/{path}"))?);
    let text = text.unwrap();
    let eel = Eel::parse(path, &text).unwrap();
    Some((text, eel))
}

#[test]
fn emane_s_tutorial_reproduces_its_path_losses() {
    let Some((text, eel)) = tutorial("scenario/scenario.eel") else { return };
    assert_eq!(eel.nodes().into_iter().collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>());
    assert_eq!(eel.check_steps(Duration::from_secs(1)), Ok(()));
    assert_eq!(eel.check_nodes(1..=10), Ok(()));
    assert_eq!(eel.losses.end(), Duration::from_secs(899));
    assert_eq!(eel.tracks.values().map(|track| track.points().len()).sum::<usize>(), 9_000);
    // Each loss of the file, read by other means, is the one that holds at its time.
    let stored = Eel::parse("stored", &eel.losses.to_eel()).unwrap().losses;
    let mut count = 0;
    for line in text.lines().filter(|line| line.contains("pathloss")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = Duration::from_secs_f64(words[0].parse().unwrap());
        let from = words[1].trim_start_matches("nem:").parse().unwrap();
        for entry in &words[3..] {
            let (to, loss_db) = entry.trim_start_matches("nem:").split_once(',').unwrap();
            let (to, loss_db) = (to.parse().unwrap(), Some(loss_db.parse().unwrap()));
            assert_eq!(eel.losses.loss_db(at, from, to), loss_db, "{line}");
            assert_eq!(stored.loss_db(at, from, to), loss_db, "{line}");
            count += 1;
        }
    }
    assert_eq!(count, 81_000);
    println!("{count} path losses, fingerprint {:016x}", eel.losses.fingerprint());
}

/// The scenario's own places say what its near losses are made of: free space at 2.4 GHz, but for
/// a few with an obstacle between. Farther ones have a terrain in them that is not told.
#[test]
fn emane_s_near_losses_are_free_space_between_its_places() {
    let Some((_, eel)) = tutorial("scenario/scenario.eel") else { return };
    let (mut near, mut free) = (0, 0);
    for change in eel.losses.changes() {
        let place = |node| eel.tracks[&node].at(change.at);
        let distance_m = place(change.from).distance_m(&place(change.to));
        if (25.0..400.0).contains(&distance_m) {
            // Rounding: losses are written to 0.1 dB, places to 0.1 m.
            let beyond_db = change.loss_db - free_space_db(distance_m, 2.4e9);
            assert!(beyond_db > -0.1, "{change:?}: {beyond_db} dB");
            (near, free) = (near + 1, free + i32::from(beyond_db < 0.1));
        }
    }
    println!("{free} of {near} path losses from 25 to 400 m are free space within 0.1 dB");
    assert!(near > 40_000 && f64::from(free) / f64::from(near) > 0.99);
}

/// The tutorial's 900 seconds on a shared channel with its schedule of ten slots: who receives what
/// is as the replayed path losses say.
#[test]
fn emane_s_tutorial_runs_on_a_shared_channel() {
    let Some((_, eel)) = tutorial("scenario/scenario.eel") else { return };
    let ms = Duration::from_millis;
    let tdma = Tdma {
        slot: ms(20),
        guard: ms(1),
        owners: (0..10).map(|port| vec![port]).collect(),
        fragments: true,
        aggregates: true,
    };
    let config = MediumConfig::wideband(Access::Tdma(tdma));
    let (noise_dbm, power_dbm) = (config.radio.noise_dbm(), config.radio.power_dbm);
    let lowest = config.radio.rates[2].clone();
    let mut medium: Medium<Vec<u8>> = Medium::new(config, 10, 1).unwrap();
    let mut counts = [0_usize; 3];
    for second in 0..900 {
        let now = Duration::from_secs(second);
        for change in eel.losses.between(now, now + ms(1_000)) {
            let (from, to) = (change.from - 1, change.to - 1);
            medium.handle_input(now, Input::Loss { from, to, loss_db: Some(change.loss_db) });
        }
        let from = u16::try_from(second % 10).unwrap();
        medium
            .handle_input(now, Input::Packet { from, to: Destination::All, packet: vec![0; 200] });
        let mut sent = Vec::new();
        loop {
            match medium.poll_output() {
                Output::Sent(record) => sent.push(record),
                Output::WakeAt(at) => medium.handle_input(at, Input::Wake),
                Output::Idle => break,
                _ => {}
            }
        }
        assert_eq!((sent.len(), sent[0].from), (1, from), "{second} s");
        for to in (0..10).filter(|to| *to != from) {
            let loss_db = eel.losses.loss_db(now, from + 1, to + 1).unwrap();
            let share = lowest.curve.share(power_dbm - loss_db - noise_dbm, 234.0);
            let is_received = sent[0].received.contains(&to);
            let kind = if share >= 1.0 {
                assert!(is_received, "{second} s: {from} to {to} over {loss_db} dB");
                0
            } else if share <= 0.0 {
                assert!(!is_received, "{second} s: {from} to {to} over {loss_db} dB");
                1
            } else {
                2
            };
            counts[kind] += 1;
        }
    }
    let [certain, impossible, chance] = counts;
    println!("{certain} received, {impossible} out of range, {chance} by chance");
    assert!(certain > 1_000 && impossible > 500 && certain + impossible + chance == 8_100);
}

#[test]
fn the_tutorial_s_small_scenarios_are_read() {
    let connected = |losses: &Losses, from, to| losses.loss_db(Duration::ZERO, from, to);
    for (path, nodes, near_db, far) in [
        ("2/scenario.eel", 9, 90.0, Some((1, 4))),
        ("5/scenario.eel", 4, 50.0, None),
        ("6/scenario.eel", 4, 60.0, None),
        ("8/scenario.eel", 9, 90.0, Some((3, 9))),
    ] {
        let Some((_, eel)) = tutorial(path) else { continue };
        assert_eq!(eel.nodes().len(), nodes, "{path}");
        assert_eq!(connected(&eel.losses, 1, 2), Some(near_db), "{path}");
        assert_eq!(connected(&eel.losses, 2, 1), Some(near_db), "{path}");
        assert!(far.is_none_or(|(from, to)| connected(&eel.losses, from, to).is_none()), "{path}");
    }
}

#[test]
fn the_real_grid_is_read_and_crossed() {
    let Some(heights) = file("propagation/jacksboro.i16le") else { return };
    let Some(header) = file("propagation/jacksboro.txt") else { return };
    let (heights, header) =
        (std::fs::read(heights).unwrap(), std::fs::read_to_string(header).unwrap());
    let grid = HeightGrid::parse("jacksboro", &header, &heights).unwrap();
    assert_eq!(grid.size(), [344, 403]);
    assert_eq!(grid.range_m(), (236, 1_076, 0));
    let [south_west, north_east] = grid.corners();
    // Posts are at multiples of three seconds of arc.
    for degrees in [south_west.lat_deg, south_west.lon_deg, north_east.lat_deg] {
        assert!((degrees * 1_200.0 - (degrees * 1_200.0).round()).abs() < 1e-6, "{degrees}");
    }
    let first = i16::from_le_bytes([heights[0], heights[1]]);
    let north_west = Position::new(north_east.lat_deg, south_west.lon_deg, 0.0).unwrap();
    assert!((grid.height_m(&north_west).unwrap() - f64::from(first)).abs() < 1e-6);
    // Across the ridges: more is lost than in the open, and the same both ways.
    let model = Model::DeltaBullington(Ground::default());
    let over = Prediction { model, frequency_hz: 300e6, grid: Some(&grid), seed: 0 };
    let ends = [south_west.towards(&north_east, 0.3), south_west.towards(&north_east, 0.6)];
    let there = over.pair((ends[0], 3.0), (ends[1], 3.0)).unwrap();
    let back = over.pair((ends[1], 3.0), (ends[0], 3.0)).unwrap();
    let free_db = free_space_db(there.distance_m, 300e6);
    println!("{:.0} m: {:.1} dB, free space {free_db:.1} dB", there.distance_m, there.loss_db);
    assert!(there.loss_db > free_db + 10.0);
    assert!((there.loss_db - back.loss_db).abs() < 0.01);
    let error = grid.height_m(&Position::new(36.0, -84.2, 0.0).unwrap()).unwrap_err();
    assert!(error.to_string().contains("off the map"));
}
