//! `longwire lab pathloss` from the outside.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

const BAD_USE: i32 = 2;

fn pathloss(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(["lab", "pathloss"]).args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = pathloss(&[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A folder of this test; removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let name = format!("longwire-pathloss-{}-{test}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        fs::write(&path, contents).unwrap();
        path.to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn two_places_lose_what_free_space_does() {
    let places = ["--from", "50.0,-7.0", "--to", "50.1,-7.0", "--frequency", "300"];
    let found = json(&places);
    let distance_m = found["model"]["distance_m"].as_f64().unwrap();
    assert!((distance_m - 11_119.5).abs() < 1.0, "{found}");
    let expected_db = 20.0 * (41.916_900_4 * 300.0 * distance_m / 1_000.0).log10();
    assert!((found["model"]["loss_db"].as_f64().unwrap() - expected_db).abs() < 0.001);
    assert_eq!(found["radios"]["wideband"]["rate_bps"], 1_000_000);
    let output = pathloss(&places);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("102.9 dB by free-space") && text.contains("11.120 km"), "{text}");
}

#[test]
fn a_hill_between_is_shown() {
    let folder = Folder::new("hill");
    let profile: String = (0..=20)
        .map(|i| format!("{},{}\n", f64::from(i) * 0.5, if i == 10 { 300 } else { 0 }))
        .collect();
    let file = folder.write("hill.csv", profile);
    let found = json(&["--profile", &file, "--heights", "10,10"]);
    assert_eq!(found["model"]["name"], "delta-bullington");
    assert_eq!(found["model"]["profile_m"][10], serde_json::json!([5_000.0, 300.0]));
    let loss_db = found["model"]["loss_db"].as_f64().unwrap();
    let parts = &found["model"]["diffraction"];
    let free_db = found["model"]["free_space_db"].as_f64().unwrap();
    assert!((loss_db - free_db - parts["total_db"].as_f64().unwrap()).abs() < 1e-9);
    assert!(parts["bullington_db"].as_f64().unwrap() > 25.0, "{found}");
    let text = String::from_utf8(pathloss(&["--profile", &file]).stdout).unwrap();
    assert!(text.contains("0 to 300 m, 21 points") && text.contains("#####"), "{text}");
}

#[test]
fn a_scenario_says_its_own_loss() {
    let folder = Folder::new("eel");
    let file = folder.write(
        "s.eel",
        "0 nem:1 location gps 50.0,7.0,0\n0 nem:2 location gps 50.1,7.0,0\n\
         0 nem:1 pathloss nem:2,120\n9 nem:1 pathloss nem:2,130 nem:3,140.5\n",
    );
    let eel = ["--eel", &file, "--from", "1", "--to"];
    let found = json(&[&eel[..], &["2", "--at", "10"]].concat());
    assert_eq!(found["scenario"]["loss_db"], 130.0);
    assert!(found["model"]["distance_m"].as_f64().unwrap() > 11_000.0);
    assert_eq!(found["radios"]["wideband"]["snr_db"].as_f64().unwrap().round(), 17.0);
    let found = json(&[&eel[..], &["3"]].concat());
    assert_eq!(found["scenario"]["loss_db"], Value::Null);
    let output = pathloss(&[&eel[..], &["7"]].concat());
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(BAD_USE));
    assert!(error.contains("7 is no node of the scenario: it has 1, 2, 3"), "{error}");
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let folder = Folder::new("wrong");
    let header = "rows 2\ncolumns 2\nxmin 7\nxmax 7.1\nymin 50\nymax 50.1\ndx 0.1\ndy 0.1\n";
    let grid = folder.write("g.txt", header);
    folder.write("g.i16le", [0, 0, 1, 0, 2, 0, 0, 128]);
    let short = folder.write("short.txt", header);
    folder.write("short.i16le", [0; 7]);
    let eel = folder.write("bad.eel", "0 nem:1 pathloss nem:2,1\n1 nem:1 pathloss nem:2,\n");
    let places = ["--from", "50.05,7.05", "--to"];
    for (arguments, expected) in [
        (vec!["--from", "50,7"], "give --from and --to"),
        (vec!["--from", "50", "--to", "51,7"], "50 is no place"),
        (vec!["--from", "95,7", "--to", "51,7"], "latitude 95"),
        (vec!["--from", "50,7", "--to", "51,7", "--model", "tworay"], "did you mean 'two-ray'?"),
        (vec!["--from", "50,7", "--to", "51,7", "--heights", "2"], "--heights 2"),
        (vec!["--from", "50,7", "--to", "51,7", "--frequency", "0"], "frequency 0"),
        (vec!["--grid", &grid, "--from", "50.1,7.05", "--to", "50.2,7.05"], "off the map"),
        (
            [&["--grid", &grid][..], &places, &["50.04,7.06"]].concat(),
            "has a hole in row 2, column 2",
        ),
        ([&["--grid", &short][..], &places, &["50,7"]].concat(), "has 7 bytes of heights"),
        (vec!["--grid", "/nowhere/g.txt", "--from", "50,7", "--to", "50,7"], "cannot read"),
        (vec!["--eel", &eel, "--from", "1", "--to", "2"], "bad.eel line 2 field 'pathloss nem:2,'"),
    ] {
        let output = pathloss(&arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(BAD_USE), "{arguments:?}: {error}");
        assert!(error.contains(expected) && error.lines().count() == 1, "{error}");
    }
}
