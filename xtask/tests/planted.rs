//! Every rule, shown to fail: a clean house in a temporary folder passes, and each violation
//! planted in it is found by its rule, at its line, with exit status 1.

#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Removed when the test ends, however it ends.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A tree that breaks no rule.
const CLEAN: &[(&str, &str)] = &[
    ("Cargo.toml", "[workspace]\n[workspace.dependencies]\nbytes = \"1\"\n"),
    (
        "ARCHITECTURE.md",
        "# Map\n\n| crate | holds | in-tree dependencies | outside world |\n\
         | --- | --- | --- | --- |\n\
         | `proto` | `stream/` | none | pure: `bytes` |\n\
         | `proxy` | the shell | `proto` | shell |\n",
    ),
    ("README.md", "# Read\n\n[fidelity](docs/fidelity.md) [words](docs/glossary.md)\n"),
    ("docs/fidelity.md", "# Fidelity\n"),
    (
        "docs/glossary.md",
        "# Words\n\n| in names | in doc comments | say | in | but not in |\n\
         | --- | --- | --- | --- | --- |\n\
         | farewell | farewell | drain | all | |\n",
    ),
    ("crates/proto/Cargo.toml", "[dependencies]\nbytes.workspace = true\n"),
    ("crates/proxy/Cargo.toml", "[dependencies]\nproto.workspace = true\n"),
    (
        "crates/proto/src/stream/machine.rs",
        "//! RFC 9000 §4.\npub fn handle_input(&mut self, now: Duration, input: Input) {}\n\
         pub fn poll_output(&mut self) -> Output {}\n",
    ),
    ("crates/proto/src/stream/packet.rs", "pub struct Packet;\npub fn decode(bytes: &[u8]) {}\n"),
    ("crates/proxy/src/main.rs", "use std::net::TcpListener;\n"),
    ("fuzz/Cargo.toml", "[[bin]]\nname = \"proto_stream\"\npath = \"stream.rs\"\n"),
    ("fuzz/stream.rs", "fn main() {}\n"),
];

/// Rule, file, its text (null: the file is taken away), and the place of the finding.
const PLANTED: &[(&str, &str, Option<&str>, &str)] = &[
    ("map", "crates/lost/Cargo.toml", Some("[package]\n"), "crates/lost/Cargo.toml:1"),
    ("map", "crates/proto/Cargo.toml", Some("[oops\n"), "crates/proto/Cargo.toml:1"),
    ("purity", "crates/proto/src/a.rs", Some("\nuse std::fs::File;\n"), "crates/proto/src/a.rs:2"),
    (
        "purity",
        "crates/proto/src/a.rs",
        Some("fn f() { std::time::Instant::now(); }\n"),
        "crates/proto/src/a.rs:1",
    ),
    (
        "dependencies",
        "crates/proto/Cargo.toml",
        Some("[dependencies]\nbytes.workspace = true\ntokio.workspace = true\n"),
        "crates/proto/Cargo.toml:3",
    ),
    ("dependencies", "crates/proxy/Cargo.toml", Some("[package]\n"), "ARCHITECTURE.md:6"),
    (
        "serialization",
        "crates/proxy/src/a.rs",
        Some("#[derive(Serialize)]\nstruct A;\n"),
        "crates/proxy/src/a.rs:1",
    ),
    ("verbs", "crates/proto/src/b/machine.rs", Some("\n"), "crates/proto/src/b/machine.rs:1"),
    ("words", "docs/glossary.md", None, "docs/glossary.md:1"),
    ("words", "crates/proxy/src/a.rs", Some("\nfn say_farewell() {}\n"), "crates/proxy/src/a.rs:2"),
    (
        "words",
        "crates/proxy/src/a.rs",
        Some("\n\n/// Says farewell.\nfn f() {}\n"),
        "crates/proxy/src/a.rs:3",
    ),
    ("words", "crates/proxy/src/a.rs", Some("enum State {}\n"), "crates/proxy/src/a.rs:1"),
    (
        "bounds",
        "crates/proxy/src/a.rs",
        Some("\n\nfn f() { mpsc::unbounded_channel(); }\n"),
        "crates/proxy/src/a.rs:3",
    ),
    (
        "bounds",
        "crates/proxy/src/a.rs",
        Some("\nconst PEERS_MAX: usize = 5;\n"),
        "crates/proxy/src/a.rs:2",
    ),
    (
        "cycles",
        "crates/proxy/src/main.rs",
        Some("\nmod a { use crate::f; }\nfn f() { a::g(); }\n"),
        "crates/proxy/src/main.rs:2",
    ),
    (
        "impls",
        "crates/proto/src/b.rs",
        Some("\nuse crate::stream::packet::Packet;\nimpl Packet {}\n"),
        "crates/proto/src/b.rs:3",
    ),
    // What is listed as an exception and is none.
    (
        "cycles",
        "xtask/exceptions.toml",
        Some("[[cycles]]\ncrate = \"proto\"\nmodules = [\"a\", \"b\"]\n"),
        "xtask/exceptions.toml:1",
    ),
    (
        "impls",
        "xtask/exceptions.toml",
        Some(
            "[[impls]]\ncrate = \"proto\"\ntype = \"stream::packet::Packet\"\nmodules = [\"b\"]\n",
        ),
        "xtask/exceptions.toml:1",
    ),
    (
        "size",
        "xtask/exceptions.toml",
        Some("\n[[methods]]\ncrate = \"proto\"\ntype = \"stream::packet::Packet\"\n"),
        "xtask/exceptions.toml:2",
    ),
    (
        "size",
        "xtask/exceptions.toml",
        Some("\n[[fields]]\ncrate = \"proto\"\ntype = \"stream::packet::Packet\"\n"),
        "xtask/exceptions.toml:2",
    ),
    (
        "documents",
        "xtask/exceptions.toml",
        Some("\n[[documents]]\nfile = \"docs/fidelity.md\"\n"),
        "xtask/exceptions.toml:2",
    ),
    (
        "map",
        "xtask/exceptions.toml",
        Some("[[documents]]\ncrate = \"proto\"\n"),
        "xtask/exceptions.toml:1",
    ),
    (
        "map",
        "xtask/exceptions.toml",
        Some("[[cycles]]\ncrate = \"proto\"\n"),
        "xtask/exceptions.toml:1",
    ),
    ("map", "crates/proxy/src/a.rs", Some("\nfn f( {}\n"), "crates/proxy/src/a.rs:2"),
    ("fuzzed", "crates/proto/src/b.rs", Some("pub fn decode() {}\n"), "crates/proto/src/b.rs:1"),
    ("fuzzed", "fuzz/stream.rs", None, "fuzz/Cargo.toml:1"),
    (
        "errors",
        "crates/proxy/Cargo.toml",
        Some("[dependencies]\nproto.workspace = true\nanyhow.workspace = true\n"),
        "crates/proxy/Cargo.toml:3",
    ),
    (
        "features",
        "crates/proxy/Cargo.toml",
        Some("[features]\nfast = []\n[dependencies]\nproto.workspace = true\n"),
        "crates/proxy/Cargo.toml:2",
    ),
    ("citations", "crates/proxy/src/a.rs", Some("// RFC9110\n"), "crates/proxy/src/a.rs:1"),
    (
        "units",
        "crates/proxy/src/a.rs",
        Some("const TIMEOUT: u64 = 5;\n"),
        "crates/proxy/src/a.rs:1",
    ),
    ("leftovers", "crates/proxy/src/a.rs", Some("#[ignore]\n"), "crates/proxy/src/a.rs:1"),
    ("text", "crates/proxy/src/a.rs", Some("mod b; \n"), "crates/proxy/src/a.rs:1"),
    ("links", "docs/fidelity.md", Some("\n[x](gone.md)\n"), "docs/fidelity.md:2"),
    ("links", "docs/lost.md", Some("# Lost\n"), "docs/lost.md:1"),
    ("links", "docs/fidelity/lost.md", Some("# Lost\n"), "docs/fidelity/lost.md:1"),
];

fn house(name: &str) -> Folder {
    let folder = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let folder = Folder(folder);
    for (path, text) in CLEAN {
        write(&folder.0, path, text);
    }
    folder
}

fn write(root: &Path, path: &str, text: &str) {
    let file = root.join(path);
    fs::create_dir_all(file.parent().expect("has a folder")).expect("folder");
    fs::write(file, text).expect("file");
}

fn xtask(args: &[&str], root: Option<&Path>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(args);
    if let Some(root) = root {
        command.arg("--root").arg(root);
    }
    command.output().expect("xtask runs")
}

fn lines(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn a_clean_house_passes() {
    let folder = house("clean");
    let output = xtask(&["tidy"], Some(&folder.0));
    assert_eq!(lines(&output), [""; 0]);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn every_rule_finds_what_is_planted() {
    let folder = house("planted");
    let mut shown: BTreeSet<&str> = BTreeSet::new();
    let long = format!("//{}\n", "x".repeat(99));
    let wide = format!("\n{}.\n", "x ".repeat(60));
    let methods: String = (0..51).map(|at| format!("    fn f{at}() {{}}\n")).collect();
    let methods = format!("\nstruct A;\nimpl A {{\n{methods}}}\n");
    let fields: String = (0..21).map(|at| format!("    f{at}: u8,\n")).collect();
    let fields = format!("\nstruct A {{\n{fields}}}\n");
    let a = "crates/proxy/src/a.rs";
    let sizes = [
        ("size", a, Some(long.as_str()), "crates/proxy/src/a.rs:1"),
        ("size", a, Some(methods.as_str()), "crates/proxy/src/a.rs:2"),
        ("size", a, Some(fields.as_str()), "crates/proxy/src/a.rs:2"),
        ("documents", "docs/fidelity.md", Some(wide.as_str()), "docs/fidelity.md:2"),
    ];
    for &(rule, path, text, place) in PLANTED.iter().chain(&sizes) {
        match text {
            Some(text) => write(&folder.0, path, text),
            None => fs::remove_file(folder.0.join(path)).expect("was there"),
        }
        let output = xtask(&["tidy"], Some(&folder.0));
        let found = lines(&output);
        let expected = format!("{place}: {rule}: ");
        assert!(found.iter().any(|line| line.starts_with(&expected)), "{expected}{found:#?}");
        assert_eq!(output.status.code(), Some(1), "{rule}");
        match CLEAN.iter().find(|(clean, _)| *clean == path) {
            Some((path, text)) => write(&folder.0, path, text),
            None => fs::remove_file(folder.0.join(path)).expect("was planted"),
        }
        shown.insert(rule);
    }
    assert_eq!(lines(&xtask(&["tidy"], Some(&folder.0))), [""; 0], "not as clean as before");
    let rules = lines(&xtask(&["rules"], None));
    let rules: BTreeSet<&str> =
        rules.iter().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(rules, shown, "a rule without a planted violation");
}

#[test]
fn only_what_git_would_commit_is_read() {
    let folder = house("git");
    let git = |args: &[&str]| {
        let done = Command::new("git").args(args).current_dir(&folder.0).output().expect("git");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q"]);
    write(&folder.0, ".gitignore", "/out\n");
    write(&folder.0, "out/a.md", "white space \n");
    assert_eq!(lines(&xtask(&["tidy"], Some(&folder.0))), [""; 0]);
    write(&folder.0, "new.md", "white space \n");
    assert_eq!(lines(&xtask(&["tidy"], Some(&folder.0))).len(), 1);
}

#[test]
fn the_house_is_measured() {
    let folder = house("measured");
    write(&folder.0, "crates/proxy/src/a.rs", "use crate::f;\nstruct A { a: u8 }\n");
    write(&folder.0, "crates/proxy/src/main.rs", "mod a;\nfn f() { a::g(); }\n");
    let output = xtask(&["house"], Some(&folder.0));
    assert_eq!(output.status.code(), Some(0));
    let found = lines(&output);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&found[2]), ["proxy", "4", "0", "1", "2", "-", "1", "a::A"]);
    assert_eq!(words(&found[3])[..5], ["total", "9", "0", "2", "2"]);
    assert_eq!(found[4..], ["cycle of proxy: a main"]);
    let objects = lines(&xtask(&["house", "--json"], Some(&folder.0)));
    assert!(objects[2].starts_with("{\"crate\":\"proxy\",\"product_lines\":4,"), "{objects:#?}");
}

#[test]
fn bad_use_is_one_line_and_status_2() {
    for args in [
        &["tidies"][..],
        &["tidy", "--root", "no/such/folder"],
        &["tidy", "--root"],
        &["house", "--rot"],
        &["house", "--json", "--root"],
        &["house", "--root", "no/such/folder"],
    ] {
        let output = xtask(args, None);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{args:?}");
    }
    assert_eq!(xtask(&["help"], None).status.code(), Some(0));
}
