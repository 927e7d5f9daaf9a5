//! `--check` reads a whole configuration, starts nothing, and lists every mistake with its line.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir =
            std::env::temp_dir().join(format!("longwire-check-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn longwire(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_longwire")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn every_mistake_has_its_line_and_a_start_tells_the_first() {
    let dir = Dir::new("bad");
    let file = dir.write(
        "bad.toml",
        "[gateway]\nlisten = \"here\"\nallow = [\n  \"http://a\",\n  \"b\",\n]\n\
         encodng = \"zstd\"\nmax_exchanges = 0\nconnect_timeout = 30\n\n\
         [log]\nlevel = \"loud\"\nformat = \"xml\"\n\n\
         [[service]]\nmatch = \"http://a\"\nencodings = [\"gzip\"]\n",
    );
    let checked = longwire(&["gateway", "--check", "--config", &file, "--admin", "0.0.0.0:1"]);
    let lines: Vec<String> = text(&checked.stdout).lines().map(str::to_owned).collect();
    let expected = [
        (0, "admin '0.0.0.0:1': the admin interface"),
        (2, "listen 'here' is no address"),
        (5, "'b' has no scheme"),
        (7, "unknown key 'encodng': did you mean 'encoding'?"),
        (8, "max_exchanges is 0: a number from 1 to"),
        (9, "connect_timeout is 30: a time in quotes, like \"30 s\""),
        (12, "log level 'loud': one of error, warn"),
        (13, "log format 'xml': one of text, json"),
        (17, "service 'http://a': encodings: unknown codec 'gzip'"),
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, (at, what)) in lines.iter().zip(expected) {
        let place = if at == 0 { String::new() } else { format!("{file}:{at}: ") };
        assert!(line.starts_with(&format!("{place}{what}")), "{line}");
    }
    assert_eq!((checked.status.code(), text(&checked.stderr)), (Some(2), String::new()));

    let json = longwire(&["gateway", "--check", "--json", "--config", &file, "--log", "warn"]);
    let all: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&all["good"], &all["side"]), (&Value::from(false), &Value::from("gateway")));
    // The flag is in place of what is wrong with the level.
    assert_eq!(all["mistakes"].as_array().unwrap().len(), 7);
    assert_eq!(all["mistakes"][0]["line"], 2);
    assert_eq!(all["mistakes"][0]["key"], "gateway.listen");
    assert_eq!(json.status.code(), Some(2));

    let started = longwire(&["gateway", "--config", &file]);
    let reported = text(&started.stderr);
    assert!(
        reported.starts_with(&format!("longwire: {file}:2: listen 'here' is no")),
        "{reported}"
    );
    assert!(reported.ends_with("(and 7 more mistakes: --check lists them)\n"), "{reported}");
    assert_eq!((started.status.code(), reported.lines().count()), (Some(2), 1));
}

#[test]
fn a_good_configuration_is_one_line_and_nothing_is_begun() {
    let dir = Dir::new("good");
    for (name, role) in [("edge", "edge"), ("gateway", "gateway")] {
        let keys = dir.0.join(name);
        let made = longwire(&["keygen", keys.to_str().unwrap(), "--name", name, "--role", role]);
        assert!(made.status.success());
    }
    let path = |name: &str| dir.0.join(name).display().to_string();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, store) = (taken.local_addr().unwrap(), path("store"));
    let (key, peer) = (path("edge/longwire.key"), path("gateway/longwire.pub"));
    let file = dir.write(
        "good.toml",
        &format!(
            "[edge]\nlisten = \"{address}\"\ngateway = \"198.51.100.1:4300\"\nstore = \"{store}\"\n\
             key = \"{key}\"\npeer = \"{peer}\"\n[[service]]\nmatch = \"http://a\"\n"
        ),
    );
    let checked = longwire(&["edge", "--check", "--config", &file]);
    let reported = text(&checked.stdout);
    assert!(reported.starts_with("the configuration of this edge is good: "), "{reported}");
    assert!(reported.contains(&format!("{file} with 1 service")), "{reported}");
    assert_eq!((reported.lines().count(), checked.status.code()), (1, Some(0)));
    assert!(!PathBuf::from(&store).exists());
    let json = longwire(&["edge", "--check", "--json", "--config", &file]);
    let all: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&all["good"], json.status.code()), (&Value::from(true), Some(0)));

    // What files that it names are like belongs to it, each with its own line.
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::remove_file(&peer).unwrap();
    let checked = longwire(&["edge", "--check", "--config", &file]);
    let reported = text(&checked.stdout);
    let lines: Vec<&str> = reported.lines().collect();
    assert_eq!(lines.len(), 2, "{reported}");
    assert!(lines[0].starts_with(&format!("{file}:5: ")) && lines[0].contains("mode 0644"));
    assert!(lines[1].starts_with(&format!("{file}:6: cannot read {peer}")), "{reported}");
    assert_eq!(checked.status.code(), Some(2));

    let missing = longwire(&["edge", "--check", "--config", &path("none.toml")]);
    let reported = text(&missing.stdout);
    assert!(reported.starts_with("cannot read ") && reported.lines().count() == 1, "{reported}");
    assert_eq!(missing.status.code(), Some(2));
    // The command line alone is a configuration too.
    let flags = longwire(&["edge", "--check", "--listen", "127.0.0.1:0"]);
    assert!(text(&flags.stdout).contains("read were no file"));
    assert_eq!(flags.status.code(), Some(0));
}
