//! `longwire federation`, and a broker that applies a profile as one of four nations.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const EXAMPLE: &str = include_str!("../../../docs/examples/federation.toml");
const NATIONS: [&str; 4] = ["DEU", "NOR", "PRT", "USA"];

fn longwire(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(args);
    command
}

/// What a command did: its status, stdout, stderr.
fn done(args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = longwire(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// A command that is to end well, and what it printed.
fn said(args: &[&str]) -> String {
    let (status, out, error) = done(args);
    assert_eq!(status, Some(0), "{args:?}: {out} {error}");
    out
}

/// A command, its end fed with a text.
fn fed(args: &[&str], text: &str) -> Output {
    let mut command = longwire(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// A directory of a test, with a profile whose keys are there; gone when dropped.
struct Nations {
    dir: PathBuf,
}

impl Nations {
    fn new(name: &str) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("federation-{name}"));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        let nations = Self { dir };
        let mut text = EXAMPLE.replace("prt.example:1883", "127.0.0.1:9");
        for name in NATIONS {
            let made = said(&["keygen", &nations.path(name), "--name", name, "--json"]);
            let made: serde_json::Value = serde_json::from_str(&made).unwrap();
            let (_, rest) = text.split_once(&format!("name = \"{name}\"")).unwrap();
            let (_, rest) = rest.split_once("key = \"").unwrap();
            let old = rest.split('"').next().unwrap().to_owned();
            text = text.replace(&old, made["key"].as_str().unwrap());
        }
        fs::write(nations.path("profile.toml"), text).unwrap();
        nations
    }

    fn path(&self, name: &str) -> String {
        self.dir.join(name).to_str().unwrap().to_owned()
    }

    fn sign(&self, name: &str) -> String {
        let key = self.path(&format!("{name}/longwire.key"));
        said(&["federation", "sign", &self.path("profile.toml"), "--key", &key])
    }

    fn signed(name: &str) -> Self {
        let nations = Self::new(name);
        for name in NATIONS {
            nations.sign(name);
        }
        nations
    }
}

impl Drop for Nations {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn a_profile_is_checked_signed_and_compared() {
    let nations = Nations::new("commands");
    let file = nations.path("profile.toml");
    let text = said(&["federation", "check", &file]);
    assert!(
        text.starts_with("four-nations version 1: 5 flows, 32 topic ids of DEU, NOR, PRT, USA")
    );
    let (status, out, _) = done(&["federation", "verify", &file]);
    assert_eq!(status, Some(1));
    assert!(out.contains("NOR        not signed"), "{out}");
    let own = nations.path("PRT/longwire.pub");
    let apply = ["federation", "apply", &file, "--as", "PRT", "--key", &own];
    // The key is known from elsewhere: the profile names whatever it likes.
    let others = nations.path("DEU/longwire.pub");
    let (status, _, error) = done(&["federation", "apply", &file, "--as", "PRT", "--key", &others]);
    assert_eq!(status, Some(2));
    assert!(error.contains("has another key for PRT"), "{error}");
    let (status, out, error) = done(&apply);
    assert_eq!((status, out.as_str()), (Some(2), ""));
    assert!(error.contains("is not signed by DEU (not signed), NOR"), "{error}");
    assert!(nations.sign("DEU").contains("still to sign: NOR, PRT, USA"));
    for name in ["NOR", "PRT"] {
        nations.sign(name);
    }
    assert!(nations.sign("USA").contains("all have signed"));
    assert!(said(&["federation", "verify", &file]).contains("USA        signed"));
    // A word is changed: nobody has signed that.
    let signed = fs::read_to_string(&file).unwrap();
    let other = nations.path("other.toml");
    fs::write(&other, signed.replace("messages_per_s = 4\n", "messages_per_s = 8\n")).unwrap();
    let (status, out, _) = done(&["federation", "verify", &other, "--json"]);
    assert_eq!(status, Some(1));
    let facts: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(facts["partners"][0]["standing"], "signed another text");
    let (status, out, _) = done(&["federation", "diff", &file, &other]);
    let line = "flow positions changes: messages_per_s 4.000 becomes 8.000\n";
    assert_eq!((status, out.as_str()), (Some(1), line));
    assert_eq!(said(&["federation", "diff", &file, &file, "--json"]), "[]\n");
    // A key is lost.
    let lost = nations.path("PRT/longwire.pub");
    let (status, out, _) = done(&["federation", "verify", &file, "--revoked", &lost]);
    assert_eq!(status, Some(1));
    assert!(out.contains("PRT        key revoked"), "{out}");
    // What is wrong is a line each.
    fs::write(&other, signed.replace("messages_per_s = 4\n", "messages_per_s = 0\n")).unwrap();
    let (status, out, _) = done(&["federation", "check", &other]);
    assert_eq!((status, out.lines().count()), (Some(2), 1));
    assert!(out.contains("messages_per_s: 0 is no rate: 0.001 to 1000000"), "{out}");
    let (status, out, _) = done(&["federation", "check", &other, "--json"]);
    assert_eq!(status, Some(2));
    let facts: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(facts["faults"][0]["field"], "flow[1].messages_per_s");
}

/// A broker that applies the profile as NOR; killed when dropped.
struct Broker {
    child: Child,
    url: String,
    admin: String,
}

impl Broker {
    fn start(nations: &Nations) -> Self {
        let users = nations.path("users.txt");
        for name in ["DEU", "USA", "ops"] {
            let made = fed(&["broker", "passwd", &users, name], "secret\n");
            assert!(made.status.success(), "{made:?}");
        }
        fs::write(nations.path("secret"), "secret\n").unwrap();
        fs::write(nations.path("PRT.password"), "secret\n").unwrap();
        let config = nations.path("broker.toml");
        let (file, dir) = (nations.path("profile.toml"), nations.path(""));
        let own = nations.path("NOR/longwire.pub");
        let apply = ["federation", "apply", &file, "--as", "NOR", "--out", &config, "--key", &own];
        let more = ["--mqtt", "127.0.0.1:0", "--users", &users, "--passwords", &dir];
        said(&[&apply[..], &more].concat());
        let log = fs::File::create(nations.path("log")).unwrap();
        let args = ["broker", "--config", &config, "--admin", "127.0.0.1:0", "--log", "info"];
        let mut child = longwire(&args).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next = || {
            let line = lines.next().expect("a line").unwrap();
            let rest = line.strip_prefix("listening on ").expect(&line).to_owned();
            rest.split(' ').next().unwrap().to_owned()
        };
        let (mqtt, admin) = (next(), next());
        Self { child, url: format!("mqtt://{mqtt}"), admin }
    }

    fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(&self.admin).unwrap();
        let host = &self.admin;
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page
    }

    fn refused(&self, partner: &str, flow: &str, reason: &str) -> u64 {
        let labels = format!("{{partner=\"{partner}\",flow=\"{flow}\",reason=\"{reason}\"}} ");
        let page = self.metrics();
        let value = page.lines().find_map(|line| line.split_once(&labels));
        value.map_or(0, |(_, value)| value.parse().unwrap())
    }
}

/// The log, once it has some words.
fn logged(nations: &Nations, words: &str) -> String {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let log = fs::read_to_string(nations.path("log")).unwrap();
        if log.contains(words) {
            return log;
        }
        assert!(Instant::now() < until, "{words}\n{log}");
        // sleep: nobody says when a line is in a file.
        thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_broker_applies_the_profile() {
    let nations = Nations::signed("broker");
    let broker = Broker::start(&nations);
    let (url, secret) = (broker.url.as_str(), nations.path("secret"));
    let publish = |user: &str, topic: &str, text: &str, more: &[&str]| {
        let args = ["pub", url, "-t", topic, "-m", text, "-u", user, "--password-file", &secret];
        done(&[&args[..], &["-q", "1"], more].concat())
    };
    let passes = |user: &str, topic: &str, text: &str| {
        let (status, _, error) = publish(user, topic, text, &[]);
        assert_eq!(status, Some(0), "{user} {topic}: {error}");
    };
    let refuses = |user: &str, topic: &str, text: &str, more: &[&str], why: &str| {
        let (status, _, error) = publish(user, topic, text, more);
        assert_ne!(status, Some(0), "{user} {topic}");
        assert!(error.contains(why), "{user} {topic}: {error}");
    };
    passes("DEU", "nato/DEU/1/position", "{}");
    passes("ops", "nato/NOR/1/position", "{}");
    passes("ops", "national/x", "a");
    passes("DEU", "bilateral/DEU/logistics/fuel", "10");
    let denied = "Not authorized";
    refuses("DEU", "nato/NOR/1/position", "{}", &[], denied);
    refuses("ops", "nato/DEU/1/position", "{}", &[], denied);
    refuses("DEU", "national/x", "a", &[], denied);
    refuses("USA", "bilateral/DEU/logistics/fuel", "10", &[], denied);
    refuses("DEU", "nato/DEU/1/position", &"x".repeat(257), &[], denied);
    let xml = ["--content-type", "text/xml"];
    refuses("DEU", "nato/DEU/1/position", "<a/>", &xml, "Payload format invalid");
    for words in [
        "profile four-nations version 1, flow positions: DEU may not publish to \
         'nato/NOR/1/position' here: it goes from NOR to DEU, NOR, PRT, USA",
        "DEU may publish to 'national/x' by no flow",
        "flow logistics: USA may not publish to 'bilateral/DEU/logistics/fuel' here",
        "DEU sent 257 bytes to 'nato/DEU/1/position', over 256",
        "DEU sent text/xml to 'nato/DEU/1/position', not application/json",
    ] {
        logged(&nations, words);
    }
    assert_eq!(broker.refused("DEU", "positions", "size"), 1);
    assert_eq!(broker.refused("USA", "logistics", "direction"), 1);
    // Positions are retained whatever their publisher says: who sees what shows at once.
    let sees = |user: &str, filter: &str| {
        let args = ["sub", url, "-t", filter, "-u", user, "--password-file", &secret];
        done(&[&args[..], &["-v", "-C", "1", "-W", "2 s"]].concat())
    };
    assert_eq!(sees("ops", "nato/DEU/+/position").1, "nato/DEU/1/position {}\n");
    assert_eq!(sees("DEU", "nato/+/+/position").1, "nato/NOR/1/position {}\n");
    let (status, out, error) = sees("DEU", "national/#");
    assert!(status != Some(0) && out.is_empty(), "{out}");
    assert!(error.contains(denied), "{error}");
    // NOR passes it on, and does not see it.
    assert!(sees("ops", "sensors/PRT/1").2.contains(denied));
    assert!(!sees("USA", "sensors/PRT/1").2.contains(denied), "it is for them");
}

#[test]
fn a_flood_is_held_to_the_rate_and_harms_nobody() {
    let nations = Nations::signed("flood");
    let broker = Broker::start(&nations);
    let (url, secret) = (broker.url.as_str(), nations.path("secret"));
    let user = |user: &str| -> Vec<String> {
        ["-u", user, "--password-file", &secret].map(str::to_owned).to_vec()
    };
    let run = |args: &[&str], of: &str| {
        let user = user(of);
        let user: Vec<&str> = user.iter().map(String::as_str).collect();
        let mut command = longwire(&[args, &user].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    // The session is there before anything is published, and keeps what comes.
    let session = ["sub", url, "-i", "watch", "-c", "-t", "nato/+/chat", "-q", "1"];
    let subscribed = run(&[&session[..], &["-E"]].concat(), "ops").wait_with_output().unwrap();
    assert!(subscribed.status.success());
    // Before MQTT 5 nobody is told that it was refused: the publisher goes on.
    let flood = ["pub", url, "-t", "nato/DEU/chat", "-m", "flood", "--repeat", "1000"];
    let flood = [&flood[..], &["-q", "1", "-V", "3.1.1"]].concat();
    let mut flood = run(&flood, "DEU");
    for number in 0..3 {
        let text = format!("calm {number}");
        let calm = ["pub", url, "-t", "nato/NOR/chat", "-m", &text, "-q", "1"];
        let calm = run(&calm, "ops").wait_with_output().unwrap();
        assert!(calm.status.success(), "{calm:?}");
    }
    flood.wait().unwrap();
    let got = run(&[&session[..], &["-W", "2 s"]].concat(), "ops").wait_with_output().unwrap();
    let got = String::from_utf8(got.stdout).unwrap();
    let count = |text: &str| got.lines().filter(|line| line.starts_with(text)).count();
    assert_eq!(count("calm"), 3, "{got}");
    // A burst of five, and one in two seconds; the flood may have taken long on a busy machine.
    let (passed, refused) = (count("flood"), broker.refused("DEU", "chat", "rate"));
    assert!(passed >= 5 && refused > 0, "{passed} {refused}");
    assert!(passed as u64 + refused <= 1000, "{passed} {refused}");
    let line = "flow chat: DEU sends more than 0.5 messages a second";
    let log = logged(&nations, line);
    let lines = log.lines().filter(|log| log.contains(line)).count();
    assert!(lines > 0 && (lines as u64) < refused.max(2), "{lines} lines for {refused}");
}
