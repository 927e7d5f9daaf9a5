//! `longwire lab scenario` from the outside.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

const BAD_USE: i32 = 2;
const DIFFERENT: i32 = 1;

/// A folder of this test, with kept scenarios of its own; removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let name = format!("longwire-scenario-{}-{test}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn scenario(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.env("LONGWIRE_HOME", &self.0).current_dir(&self.0);
        command.args(["lab", "scenario"]).args(arguments).output().unwrap()
    }

    fn good(&self, arguments: &[&str]) -> String {
        let output = self.scenario(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.good(&[arguments, &["--json"]].concat())).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One of the project's own scenarios.
fn own(name: &str) -> String {
    format!("{}/../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_platoons_are_those_of_the_paper() {
    let folder = Folder::new("platoons");
    let platoons = own("ist150-platoons");
    let checked = folder.good(&["check", &platoons]);
    assert!(checked.contains("10 nodes, 3 channels, 97 messages, 9 cases"), "{checked}");
    let shown = folder.json(&["show", &platoons, "--at", "60 s"]);
    assert_eq!(shown["groups"]["a"].as_array().unwrap().len(), 5);
    let time = &shown["times"][0];
    assert_eq!((time["at_s"].as_f64(), time["places"].as_array().unwrap().len()), (Some(60.0), 10));
    assert!(time["links"].as_array().unwrap().len() >= 40);
}

#[test]
fn all_problems_are_said_with_line_and_field() {
    let folder = Folder::new("problems");
    let text = fs::read_to_string(own("ist150-platoons")).unwrap();
    let text = text
        .replace("duration = \"150 s\"", "duration = \"150\"")
        .replace("frequency = \"61 MHz\"", "frequency = \"61\"")
        .replace("transport = \"coap-tcp\"", "transport = \"coap-tpc\"");
    fs::write(folder.0.join("bad.toml"), text).unwrap();
    let output = folder.scenario(&["check", "bad.toml"]);
    assert_eq!(output.status.code(), Some(BAD_USE));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 3, "{said}");
    for part in
        [": duration: ", ": medium[3].frequency: \"61\" is no such", "did you mean 'coap-tcp'?"]
    {
        assert!(
            said.contains(part) && said.lines().all(|line| line.starts_with("bad.toml:")),
            "{said}"
        );
    }
    let output = folder.scenario(&["check", "bad.toml", "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let problem = &json["problems"][0];
    assert_eq!(
        (problem["field"].as_str(), problem["file"].as_str()),
        (Some("duration"), Some("bad.toml"))
    );
    assert!(problem["line"].as_u64().unwrap() > 5 && json["fingerprint"].is_null());
    let output = folder.scenario(&["show", "bad.toml"]);
    assert_eq!(output.status.code(), Some(BAD_USE));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.lines().count() == 1 && said.contains("and 2 more"), "{said}");
}

#[test]
fn scenarios_are_kept_listed_compared_and_forgotten() {
    let folder = Folder::new("kept");
    assert_eq!(folder.json(&["list"]), Value::Array(Vec::new()));
    folder.good(&["copy", &own("ist150-platoons"), "mine"]);
    assert_eq!(
        folder.scenario(&["copy", &own("ist150-platoons"), "mine"]).status.code(),
        Some(BAD_USE)
    );
    folder.good(&["copy", "mine", "other"]);
    assert_eq!(folder.good(&["diff", "mine", "other"]), "");
    let path = folder.0.join("scenarios/other/scenario.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("seed = 20\n", "seed = 21\n", 1)).unwrap();
    let output = folder.scenario(&["diff", "mine", "other"]);
    assert_eq!(output.status.code(), Some(DIFFERENT));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("channel narrow path losses\n  - ") && said.contains("\n  + "), "{said}");
    let list = folder.json(&["list"]);
    assert_eq!((list[0]["name"].as_str(), list[0]["nodes"].as_u64()), (Some("mine"), Some(10)));
    folder.good(&["forget", "other"]);
    let output = folder.scenario(&["show", "other"]);
    assert_eq!(output.status.code(), Some(BAD_USE));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("unknown scenario 'other'") && said.contains("kept are mine"), "{said}");
}

#[test]
fn pictures_and_pages_are_written() {
    let folder = Folder::new("pictures");
    let platoons = own("ist150-platoons");
    folder.good(&["show", &platoons, "--at", "60 s", "--routes", "a1", "--out", "map.svg"]);
    let svg = fs::read_to_string(folder.0.join("map.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("routes to a1") && svg.contains("at 60 s"));
    folder.good(&["show", &platoons, "--out", "map.html"]);
    let page = fs::read_to_string(folder.0.join("map.html")).unwrap();
    assert_eq!(page.matches("<figure>").count(), 5);
    for (arguments, expected) in [
        (&["--out", "map.png"][..], "must end in .svg or .html"),
        (&["--at", "1 s", "--at", "2 s", "--out", "map.svg"], "one time"),
        (&["--at", "151 s"], "the scenario ends at 150 s"),
        (&["--routes", "a11"], "there is no node 'a11', did you mean 'a1'?"),
    ] {
        let output = folder.scenario(&[&["show", platoons.as_str()], arguments].concat());
        assert_eq!(output.status.code(), Some(BAD_USE), "{arguments:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(expected), "{said}");
    }
}
