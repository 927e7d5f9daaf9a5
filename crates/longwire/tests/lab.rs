//! `longwire lab` from the outside: what a person or a script sees. Needs the right to make
//! namespaces; without it the tests say so and pass.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long anything may take that must happen.
const PATIENCE: Duration = Duration::from_secs(10);
const SUCCESS: i32 = 0;
const BAD_USE: i32 = 2;
/// Of signals, for kill(1).
const INT: &str = "-INT";
const KILL: &str = "-KILL";

fn longwire() -> Command {
    Command::new(env!("CARGO_BIN_EXE_longwire"))
}

fn lab(arguments: &[&str]) -> Output {
    longwire().arg("lab").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A name that no other test or person uses.
fn name(test: &str) -> String {
    format!("t{}-{test}", std::process::id())
}

/// A running `lab up`; ended when dropped, so that a failed test leaves nothing behind.
struct Up {
    child: Child,
    line: String,
}

impl Up {
    /// `None`, with the reason printed, where this machine does not permit a lab.
    fn start(mut command: Command, arguments: &[&str]) -> Option<Self> {
        let piped = command.args(["lab", "up"]).args(arguments).stdout(Stdio::piped());
        let mut child = piped.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        if line.is_empty() {
            let mut why = String::new();
            child.stderr.as_mut().unwrap().read_to_string(&mut why).unwrap();
            assert!(why.contains("permitted"), "{why}");
            println!("skipped: {why}");
            child.wait().unwrap();
            return None;
        }
        Some(Self { child, line })
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "lab up does not end");
            std::thread::yield_now();
        }
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if self.child.try_wait().unwrap().is_none() {
            self.signal("-TERM");
            self.ended();
        }
    }
}

/// As root unless this process is something else.
fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    ids.split_whitespace().nth(1) == Some("0")
}

fn listed(name: &str) -> Option<Value> {
    let output = lab(&["list", "--json"]);
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    all.as_array().unwrap().iter().find(|one| one["name"] == name).cloned()
}

/// The names of both hosts for `ip netns`, and whether they exist.
fn namespaces(name: &str) -> [bool; 2] {
    ["a", "b"].map(|host| Path::new(&format!("/run/netns/lw-{name}-{host}")).exists())
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

/// Starts a program on a host and waits until it runs there.
fn start_on_host(name: &str, host: &str) -> Child {
    let script = "echo ready; exec sleep 1000";
    let arguments = ["lab", "exec", name, host, "--", "sh", "-c", script];
    let mut child = longwire().args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

#[test]
fn a_lab_is_used_changed_listed_and_ended() {
    let name = name("life");
    let arguments = [&name, "--link", "satcom", "--set", "loss=2 %", "--seed", "9"];
    let Some(mut up) = Up::start(longwire(), &arguments) else { return };
    assert!(up.line.starts_with(&format!("lab {name} is up: a 10.")), "{}", up.line);

    let hosts = lab(&["exec", &name, "b", "--", "cat", "/etc/hosts"]);
    let hosts = text(&hosts.stdout);
    assert!(hosts.contains(" a\n") && hosts.contains(" b\n"), "{hosts}");
    let status = lab(&["exec", &name, "a", "--", "sh", "-c", "exit 7"]).status;
    assert_eq!(status.code(), Some(7), "passed on");
    let missing = lab(&["exec", &name, "a", "--", "no-such-program"]);
    assert_eq!(missing.status.code(), Some(127));

    let entry = listed(&name).unwrap();
    assert_eq!((&entry["link"], &entry["seed"]), (&"satcom".into(), &9.into()));
    assert_eq!(entry["pid"], up.child.id());
    let names = entry["hosts"].as_array().unwrap().iter().map(|host| &host["name"]);
    assert!(names.eq(["a", "b"]));
    for direction in ["ab", "ba"] {
        let one = &entry[direction];
        assert_eq!(one["loss"], "2 %");
        assert_eq!(one["delay"], "550 ms");
        assert_eq!(one["queue_packets"], "1000");
        assert_eq!(one["traffic"]["packets_in"], 0);
        assert_eq!(one["lateness"]["count"], 0);
    }

    let changed = lab(&["set", &name, "ba.loss=10 %", "delay=5 ms", "--json"]);
    let changed: Value = serde_json::from_slice(&changed.stdout).unwrap();
    assert_eq!(changed["ba.loss"], "10 %");
    assert_eq!(changed["ab.loss"], "2 %");
    assert_eq!(changed["delay"], "5 ms");
    let refused = lab(&["set", &name, "delay=7 ms", "loss=110 %"]);
    assert_eq!(refused.status.code(), Some(BAD_USE));
    assert!(text(&refused.stderr).contains("'110 %'"), "{}", text(&refused.stderr));
    assert_eq!(listed(&name).unwrap()["ab"]["delay"], "5 ms", "all settings or none");

    let mut left = start_on_host(&name, "a");
    let down = lab(&["down", &name]);
    assert_eq!(down.status.code(), Some(SUCCESS));
    assert!(text(&down.stdout).contains("processes ended in it: 1"), "{}", text(&down.stdout));
    assert!(!left.wait().unwrap().success());
    assert_eq!(up.ended().code(), Some(SUCCESS));
    assert!(listed(&name).is_none());
    assert_eq!(namespaces(&name), [false, false]);
}

#[test]
fn packets_cross_the_link_between_programs() {
    let name = name("cross");
    let arguments = [&name, "--link", "los", "--set", "delay=20 ms", "--json"];
    let Some(up) = Up::start(longwire(), &arguments) else { return };
    let entry: Value = serde_json::from_str(&up.line).unwrap();
    assert_eq!(entry["hosts"][1]["name"], "b");
    let serve = ["serve", "tracks", "--listen", "0.0.0.0:8080"];
    let program = env!("CARGO_BIN_EXE_longwire");
    let mut server = longwire()
        .args(["lab", "exec", &name, "b", "--", program])
        .args(serve)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("listening on"), "{line}");
    let url = "http://b:8080";
    let fetch = ["fetch", "tracks", "--url", url, "--api", "rest-json", "--tracks", "1", "--json"];
    let fetched =
        longwire().args(["lab", "exec", &name, "a", "--", program]).args(fetch).output().unwrap();
    assert!(fetched.status.success(), "{}", text(&fetched.stderr));
    let fetched: Value = serde_json::from_slice(&fetched.stdout).unwrap();
    assert_eq!(fetched["congestion_control"], "cubic", "though the program asked for none");
    assert!(fetched["measured"][0]["elapsed_s"].as_f64().unwrap() >= 0.04, "a round trip");
    let entry = listed(&name).unwrap();
    for direction in ["ab", "ba"] {
        assert!(entry[direction]["traffic"]["packets_out"].as_u64().unwrap() > 3);
        assert!(entry[direction]["lateness"]["count"].as_u64().unwrap() > 3);
    }
    drop(up);
    assert!(server.wait().unwrap().success(), "ended with the lab, by its own SIGTERM handler");
}

/// Also without a program for it on the machine, and without root.
#[test]
fn the_round_trip_is_measured_both_ways() {
    for rootless in [&["--rootless"][..], &[]] {
        let name = name("ping");
        let set = ["--set", "delay=40 ms", "--set", "ba.delay=20 ms"];
        let arguments = [&[name.as_str(), "--link", "los"][..], &set, rootless].concat();
        let Some(_up) = Up::start(longwire(), &arguments) else { return };
        for from in ["a", "b"] {
            let ping = ["ping", &name, "--from", from, "--count", "3", "--interval", "50 ms"];
            let output = lab(&[&ping[..], &["--json"]].concat());
            let facts: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!((facts["sent"].as_u64(), facts["received"].as_u64()), (Some(3), Some(3)));
            let least_s = facts["min_s"].as_f64().unwrap();
            assert!((0.060..0.090).contains(&least_s), "{least_s}");
        }
        lab(&["set", &name, "loss=100 %"]);
        let ping = ["ping", &name, "--count", "2", "--interval", "1 ms", "--patience", "200 ms"];
        let output = lab(&ping);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stdout).ends_with("a → b: 2 sent, 2 lost\n"));
    }
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    let name = name("ctrl-c");
    let Some(mut up) = Up::start(longwire(), &[&name, "--link", "los"]) else { return };
    assert_eq!(namespaces(&name), [is_root(); 2]);
    let mut left = start_on_host(&name, "b");
    up.signal(INT);
    assert_eq!(up.ended().code(), Some(SUCCESS));
    assert!(!left.wait().unwrap().success());
    assert_eq!(namespaces(&name), [false, false]);
    assert!(listed(&name).is_none());
}

#[test]
fn what_a_killed_lab_left_is_removed_by_the_next_one() {
    for rootless in [&[][..], &["--rootless"][..]] {
        let (name, other) = (name("killed"), name("next"));
        let arguments = [&[name.as_str(), "--link", "los"], rootless].concat();
        let Some(mut up) = Up::start(longwire(), &arguments) else { continue };
        let mut left = start_on_host(&name, "a");
        up.signal(KILL);
        up.ended();
        assert!(left.try_wait().unwrap().is_none(), "survives the lab's process");
        let Some(next) = Up::start(longwire(), &[&other, "--link", "los"]) else { return };
        assert!(!left.wait().unwrap().success(), "ended by the next lab");
        assert_eq!(namespaces(&name), [false, false]);
        wait_until("the next lab is not listed", || listed(&other).is_some());
        assert!(listed(&name).is_none());
        drop(next);
        // The name is free again.
        assert!(Up::start(longwire(), &arguments).is_some());
    }
}

#[test]
fn a_second_lab_of_the_same_name_is_refused() {
    let name = name("twice");
    let Some(_up) = Up::start(longwire(), &[&name, "--link", "los"]) else { return };
    let second = lab(&["up", &name, "--link", "cnr"]);
    assert_eq!(second.status.code(), Some(BAD_USE));
    let message = text(&second.stderr);
    assert!(message.contains(&format!("longwire lab down {name}")), "{message}");
    assert_eq!(listed(&name).unwrap()["link"], "los", "the first one goes on");
}

#[test]
fn a_lab_works_without_root() {
    let name = name("rootless");
    let arguments = [&name, "--link", "los", "--rootless", "--device", "veth"];
    let Some(up) = Up::start(longwire(), &arguments) else { return };
    let entry = listed(&name).unwrap();
    assert_eq!((&entry["rootless"], &entry["device"]), (&true.into(), &"veth".into()));
    assert!(entry["hosts"][0]["netns"].as_str().unwrap().starts_with("/proc/"));
    assert_eq!(namespaces(&name), [false, false], "no name on the machine");
    exchange(&longwire, Path::new(env!("CARGO_BIN_EXE_longwire")), &name);
    drop(up);
    assert!(listed(&name).is_none());
}

/// Receives what is sent to everybody, to groups and by IPv6, in a Python that knows no interface.
const LISTENER: &str = "
import select, socket as s, struct
u = s.socket(s.AF_INET, s.SOCK_DGRAM); u.bind(('', 9000))
u.setsockopt(s.IPPROTO_IP, s.IP_ADD_MEMBERSHIP, s.inet_aton('239.1.2.3') + s.inet_aton('0.0.0.0'))
v = s.socket(s.AF_INET6, s.SOCK_DGRAM); v.setsockopt(s.IPPROTO_IPV6, s.IPV6_V6ONLY, 1)
v.bind(('::', 9000))
v.setsockopt(s.IPPROTO_IPV6, s.IPV6_JOIN_GROUP, s.inet_pton(s.AF_INET6, 'ff05::fd') + bytes(4))
print('ready', flush=True)
heard = set()
while len(heard) < 6 and (r := select.select([u, v], [], [], 8)[0]):
    heard.update(one.recv(99).decode() for one in r)
print(*sorted(heard))
";
/// Sends to them.
const SENDER: &str = "
import socket as s
for f, to in [(s.AF_INET, '255.255.255.255'), (s.AF_INET, '10.66.0.3'), (s.AF_INET, '239.1.2.3'),
              (s.AF_INET6, 'ff05::fd'), (s.AF_INET6, 'b'), (s.AF_INET, 'b')]:
    u = s.socket(f, s.SOCK_DGRAM)
    if f == s.AF_INET: u.setsockopt(s.SOL_SOCKET, s.SO_BROADCAST, 1)
    u.sendto(f'{to}/{f.name}'.encode(), (to, 9000))
";

#[test]
fn unmodified_programs_reach_everybody_groups_and_ipv6_also_without_root() {
    let python = Command::new("python3").arg("--version").output();
    if !python.is_ok_and(|output| output.status.success()) {
        println!("skipped: no python3");
        return;
    }
    for device in ["tap", "veth"] {
        let name = name("everybody");
        let arguments = [&name, "--link", "los", "--rootless", "--device", device, "--json"];
        let Some(up) = Up::start(longwire(), &arguments) else { continue };
        let entry: Value = serde_json::from_str(&up.line).unwrap();
        if entry["hosts"][0]["address_v6"].is_null() {
            println!("skipped: no IPv6");
            return;
        }
        let on_host = |host: &str, script: &str| {
            let mut command = longwire();
            command.args(["lab", "exec", &name, host, "--", "python3", "-c", script]);
            command.stdout(Stdio::piped());
            command
        };
        let mut listener = on_host("b", LISTENER).spawn().unwrap();
        let mut lines = BufReader::new(listener.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        assert!(on_host("a", SENDER).status().unwrap().success(), "{device}");
        let heard = lines.next().unwrap().unwrap();
        let all = "10.66.0.3/AF_INET 239.1.2.3/AF_INET 255.255.255.255/AF_INET b/AF_INET \
                   b/AF_INET6 ff05::fd/AF_INET6";
        assert_eq!(heard, all, "{device}");
        assert!(listener.wait().unwrap().success());
        let packets = &listed(&name).unwrap()["ab"]["traffic"]["packets_in"];
        assert!(packets.as_u64().unwrap() >= 6, "{packets} packets counted");
    }
}

#[test]
fn another_user_has_labs_of_their_own() {
    const NOBODY: &str = "65534";
    if !is_root() {
        println!("skipped: cannot become another user");
        return;
    }
    let name = name("nobody");
    // The tree may be where no other user gets to.
    let program = std::env::temp_dir().join(format!("longwire-{name}"));
    fs::copy(env!("CARGO_BIN_EXE_longwire"), &program).unwrap();
    let as_nobody = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]).arg(&program);
        command.env_remove("XDG_RUNTIME_DIR");
        command
    };
    let can = as_nobody().arg("--version").output().is_ok_and(|output| output.status.success());
    if can && let Some(up) = Up::start(as_nobody(), &[&name, "--link", "los"]) {
        exchange(&as_nobody, &program, &name);
        assert!(listed(&name).is_none(), "root has other labs");
        drop(up);
    } else {
        println!("skipped: cannot run {} as another user", program.display());
    }
    fs::remove_file(program).unwrap();
    // As empty as it was found.
    let _ = fs::remove_dir(format!("/tmp/longwire-{NOBODY}"));
}

/// One connection from a to b in which both ends say something.
fn exchange(longwire: &dyn Fn() -> Command, program: &Path, name: &str) {
    let on_host = |host: &str, arguments: &[&str]| {
        let mut command = longwire();
        command.args(["lab", "exec", name, host, "--"]).arg(program).args(arguments);
        command.stdout(Stdio::piped());
        command
    };
    let serve = ["serve", "tracks", "--listen", "0.0.0.0:8080"];
    let mut server = on_host("b", &serve).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("listening on"), "{line}");
    let url = "http://b:8080";
    let fetch = ["fetch", "tracks", "--url", url, "--api", "rest-xml", "--tracks", "1", "--json"];
    let fetched = on_host("a", &fetch).output().unwrap();
    assert!(fetched.status.success(), "{}", text(&fetched.stderr));
    let fetched: Value = serde_json::from_slice(&fetched.stdout).unwrap();
    assert_eq!(fetched["congestion_control"], "cubic");
    assert_eq!(fetched["errors"], 0);
    assert!(longwire().args(["lab", "down", name]).status().unwrap().success());
    assert!(server.wait().unwrap().success(), "ended with the lab, by its own SIGTERM handler");
}

#[test]
fn bad_use_is_refused_in_one_line_with_the_remedy() {
    let name = name("bad");
    for (arguments, expected) in [
        (&["up", "a b", "--link", "los"][..], "letters, digits"),
        (&["up", &name, "--link", "stacom"], "did you mean 'satcom'"),
        (&["up", &name, "--link", "los", "--set", "dealy=1 ms"], "did you mean 'delay'"),
        (&["up", &name, "--link", "los", "--set", "delay=2 h"], "from 0 ns to 1 h"),
        (&["up", &name, "--link", "los", "--set", "trace=/no/such/file"], "No such file"),
        (&["exec", &name, "a", "--", "true"], "longwire lab up"),
        (&["set", &name, "loss=1 %"], "longwire lab up"),
        (&["down", &name], "longwire lab up"),
    ] {
        let output = lab(arguments);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(BAD_USE), "{arguments:?}: {message}");
        assert!(message.contains(expected), "{arguments:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{arguments:?}: {message}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn netem_emulates_where_the_kernel_has_it_and_is_refused_where_not() {
    let name = name("netem");
    let mut up = longwire();
    up.args(["lab", "up", &name, "--link", "los", "--set", "delay=50 ms", "--emulator", "netem"]);
    let mut child = up.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if line.is_empty() {
        let mut why = String::new();
        child.stderr.take().unwrap().read_to_string(&mut why).unwrap();
        assert!(!child.wait().unwrap().success());
        assert!(why.contains("modprobe sch_netem") || why.contains("permitted"), "{why}");
        assert_eq!(why.lines().count(), 1, "{why}");
        assert!(listed(&name).is_none(), "a refusal leaves nothing behind");
        println!("skipped: {why}");
        return;
    }
    let status = listed(&name).unwrap();
    assert_eq!((&status["emulator"], &status["ab"]["delay"]), (&"netem".into(), &"50 ms".into()));
    let start = Instant::now();
    let ping = lab(&["exec", &name, "a", "--", "ping", "-c", "1", "b"]);
    // Where there is no ping, the kernel's test of its own has to do.
    let is_missing = ping.status.code() == Some(127);
    let took = start.elapsed();
    assert!(is_missing || ping.status.success() && took >= Duration::from_millis(100), "{took:?}");
    assert!(lab(&["set", &name, "ab.delay=70 ms"]).status.success());
    assert!(lab(&["down", &name]).status.success());
    assert!(child.wait().unwrap().success());
}

/// The guide's commands for a lab, with another name for it.
fn guide_block(name: &str) -> String {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide.md");
    let guide = fs::read_to_string(guide).unwrap();
    let block = guide.split("```sh\n").find(|block| block.starts_with("longwire lab up sat"));
    let block = block.unwrap().split("```").next().unwrap();
    // A machine without a lab's rights is no fault of the block.
    let block = block.replace("longwire doctor", "longwire doctor || true");
    block.replace(" sat ", &format!(" {name} "))
}

#[test]
fn the_block_of_the_guide_can_be_pasted_whole() {
    let name = name("guide");
    let Some(probe) = Up::start(longwire(), &[&name, "--link", "los"]) else { return };
    drop(probe);
    let programs = std::env::temp_dir().join(format!("longwire-{name}"));
    fs::create_dir_all(&programs).unwrap();
    let link = programs.join("longwire");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_longwire"), &link).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("bash");
    shell.args(["-ec", &guide_block(&name)]).env("PATH", path);
    let output = shell.output().unwrap();
    fs::remove_dir_all(&programs).unwrap();
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}\n{errors}");
    assert!(out.contains(&format!("lab {name} is up")), "{out}");
    // A table for each of the two fetches.
    assert_eq!(out.matches("track 3").count(), 2, "{out}\n{errors}");
    assert!(out.contains("link satcom changed (loss = 5 %)"), "{out}");
    assert!(out.contains(&format!("lab {name} is down; processes ended in it: 3")), "{out}");
    assert!(listed(&name).is_none());
}

#[test]
fn a_lab_goes_on_alone_and_one_that_is_coming_up_is_waited_for() {
    let name = name("alone");
    let Some(probe) = Up::start(longwire(), &[&name, "--link", "los"]) else { return };
    drop(probe);
    let up = lab(&["up", &name, "--link", "los", "--detach"]);
    assert_eq!(up.status.code(), Some(SUCCESS), "{}", text(&up.stderr));
    assert!(text(&up.stdout).contains("is up: a 10.66.0.1"), "{}", text(&up.stdout));
    assert!(listed(&name).is_some());
    let twice = lab(&["up", &name, "--link", "los", "--detach"]);
    assert_eq!(twice.status.code(), Some(BAD_USE));
    assert_eq!(text(&twice.stderr).lines().count(), 1, "{}", text(&twice.stderr));
    assert!(text(&twice.stderr).contains("is up already"));
    assert!(lab(&["down", &name]).status.success());
    // As a shell does that puts `lab up` in the background.
    let mut up = longwire().args(["lab", "up", &name, "--link", "los"]).spawn().unwrap();
    let ran = lab(&["exec", &name, "a", "--", "true"]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert!(lab(&["down", &name]).status.success());
    assert!(up.wait().unwrap().success());
}

#[test]
fn a_program_that_is_just_starting_is_waited_for() {
    let name = name("await");
    let Some(up) = Up::start(longwire(), &[&name, "--link", "los"]) else { return };
    let program = env!("CARGO_BIN_EXE_longwire");
    let serve = ["b", "--", program, "serve", "tracks", "--listen", "b:8080"];
    let mut server = longwire().args(["lab", "exec", &name]).args(serve).spawn().unwrap();
    let fetch = ["fetch", "tracks", "--url", "http://b:8080", "--api", "soap", "--tracks", "1"];
    let fetched = longwire()
        .args(["lab", "exec", &name, "a", "--await", "b:8080", "--", program])
        .args(fetch)
        .output()
        .unwrap();
    assert!(fetched.status.success(), "{}", text(&fetched.stderr));
    for (wrong, expected) in [("c:80", "no host 'c'"), ("b", "like b:8080"), ("b:0", "like b:80")] {
        let refused = lab(&["exec", &name, "a", "--await", wrong, "--", "true"]);
        assert_eq!(refused.status.code(), Some(BAD_USE), "{wrong}");
        assert!(text(&refused.stderr).contains(expected), "{}", text(&refused.stderr));
    }
    drop(up);
    assert!(server.wait().unwrap().success());
}

#[test]
fn who_has_read_enough_is_no_fault() {
    for arguments in [&["lab", "list", "--json"][..], &["lab", "presets"], &["doctor"], &["codecs"]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = longwire().args(arguments).stdout(writer).output().unwrap();
        assert_eq!(text(&output.stderr), "", "{arguments:?}");
        assert!(arguments == ["doctor"] || output.status.success(), "{arguments:?}");
    }
}

#[test]
fn a_listing_names_what_was_changed_of_the_link() {
    let name = name("changed");
    let Some(_up) = Up::start(longwire(), &[&name, "--link", "satcom"]) else { return };
    assert_eq!(listed(&name).unwrap()["changed"].as_array().unwrap().len(), 0);
    let set = lab(&["set", &name, "rate=9.6 kbit/s", "ba.loss=1 %"]);
    assert!(text(&set.stdout).contains("queue_packets = "), "{}", text(&set.stdout));
    let changed = &listed(&name).unwrap()["changed"];
    assert_eq!(changed.as_array().unwrap(), &["rate = 9.6 kbit/s", "ba.loss = 1 %"]);
    let shown = text(&lab(&["list"]).stdout);
    assert!(shown.contains("link satcom changed (rate = 9.6 kbit/s, ba.loss = 1 %)"), "{shown}");
    let unlimited = lab(&["set", &name, "queue_bytes=none", "--json"]);
    let unlimited: Value = serde_json::from_slice(&unlimited.stdout).unwrap();
    assert_eq!(unlimited["queue_bytes"], "none");
}

#[test]
fn a_host_that_is_not_there_is_named() {
    let name = name("host");
    let Some(_up) = Up::start(longwire(), &[&name, "--link", "los"]) else { return };
    let output = lab(&["exec", &name, "c", "--", "true"]);
    assert_eq!(output.status.code(), Some(BAD_USE));
    assert!(text(&output.stderr).contains("no host 'c': it has a and b"));
}

#[test]
fn presets_come_with_their_source_in_help_and_json() {
    // Help is wrapped to the terminal's width.
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let help = one_line(&text(&lab(&["up", "--help"]).stdout));
    let json: Value = serde_json::from_slice(&lab(&["presets", "--json"]).stdout).unwrap();
    let presets = json.as_array().unwrap();
    assert!(presets.len() >= 20);
    for preset in presets {
        for key in ["name", "source"] {
            assert!(help.contains(&one_line(preset[key].as_str().unwrap())), "{preset}");
        }
        let has_queue = |key: &str| {
            let keys = preset["settings"].as_object().unwrap().keys();
            keys.into_iter().any(|known| known.ends_with(key))
        };
        assert!(has_queue("queue_packets") && has_queue("queue_bytes"), "{preset}");
    }
    let plain = text(&lab(&["presets"]).stdout);
    assert!(plain.contains("satcom") && plain.contains("250 kbit/s, 550 ms, 0 %"), "{plain}");
}

/// `longwire lab` with saved links of its own.
fn lab_at(home: &Path, arguments: &[&str]) -> Output {
    longwire().env("LONGWIRE_HOME", home).arg("lab").args(arguments).output().unwrap()
}

#[test]
fn links_are_saved_listed_used_and_forgotten() {
    let name = name("saved");
    let home = std::env::temp_dir().join(format!("longwire-{name}"));
    let done = |arguments: &[&str]| {
        let output = lab_at(&home, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let saved = done(&["save", "ridge", "--link", "los", "--set", "loss=5 %"]);
    assert!(saved.contains("loss set to 5 %") && saved.contains("saved ridge"), "{saved}");
    assert!(done(&["sets"]).contains("2 Mbit/s, 5 ms, 5 %"));
    fs::write(home.join("links/torn.toml"), "loss = ").unwrap();
    let listed: Value = serde_json::from_str(&done(&["sets", "--json"])).unwrap();
    assert_eq!(listed[0]["settings"]["loss"], "5 %");
    assert!(listed[1]["error"].as_str().unwrap().contains("'torn' cannot be used"), "{listed}");
    for (arguments, expected) in [
        (&["save", "ridge", "--link", "los"][..], "--replace"),
        (&["save", "satcom", "--link", "los"], "is a preset"),
        (&["save", "index", "--link", "los"], "reserved"),
        (&["save", "../x", "--link", "los"], "1 to 32"),
        (&["save", "x", "--link", "los", "--set", "loss=105 %"], "from 0 % to 100 %"),
        (&["save", "x", "--from", &name], "no lab"),
        (&["forget", "rigde"], "did you mean 'ridge'"),
        (&["up", &name, "--link", "rigde"], "did you mean 'ridge'"),
        (&["up", &name, "--link", "torn"], "cannot be used"),
        (&["up", &name, "--link", "ridge", "--emulator", "netem"], "set loss_first to true"),
    ] {
        let output = lab_at(&home, arguments);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(BAD_USE), "{arguments:?}: {message}");
        assert!(message.contains(expected) && message.lines().count() == 1, "{message}");
    }
    let mut command = longwire();
    command.env("LONGWIRE_HOME", &home);
    if let Some(up) = Up::start(command, &[&name, "--link", "ridge", "--set", "ba.delay=7 ms"]) {
        done(&["save", "as-is", "--from", &name, "--set", "mtu=900 B"]);
        drop(up);
        let listed: Value = serde_json::from_str(&done(&["sets", "--json"])).unwrap();
        let settings = &listed[0]["settings"];
        let found = ["loss", "ab.delay", "ba.delay", "mtu"].map(|key| settings[key].as_str());
        assert_eq!(found, [Some("5 %"), Some("5 ms"), Some("7 ms"), Some("900 B")]);
    }
    done(&["forget", "ridge"]);
    assert_eq!(lab_at(&home, &["up", &name, "--link", "ridge"]).status.code(), Some(BAD_USE));
    fs::remove_dir_all(&home).unwrap();
}

#[test]
fn the_doctor_says_what_is_there_and_what_to_do() {
    let output = longwire().args(["doctor", "--json"]).output().unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = json.as_array().unwrap();
    let verdict = |name: &str| {
        let found = findings.iter().find(|finding| finding["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}"))["verdict"].clone()
    };
    for name in ["TAP", "netem", "congestion control", "clock", "cores", "steal", "timers"] {
        verdict(name);
    }
    let possible = ["root", "user namespaces"].into_iter().any(|name| verdict(name) == "good");
    assert_eq!(output.status.success(), possible);
    for finding in findings {
        assert_eq!(finding["verdict"] == "good", finding["remedy"].is_null(), "{finding}");
    }
}
