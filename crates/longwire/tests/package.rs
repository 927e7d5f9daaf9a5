//! The Debian package: built, looked into, installed in a scratch root, and what it installs
//! started with the configuration that it installs.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.
#![allow(clippy::print_stdout)] // Tests say why they are skipped.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// What has to be in it, with its mode as `dpkg-deb -c` shows it.
const FILES: [(&str, &str); 16] = [
    ("-rwxr-xr-x", "./usr/bin/longwire"),
    ("-rw-r--r--", "./etc/longwire/longwire.toml"),
    ("-rw-r--r--", "./usr/lib/systemd/system/longwire-edge.service"),
    ("-rw-r--r--", "./usr/lib/systemd/system/longwire-gateway.service"),
    ("-rw-r--r--", "./usr/lib/systemd/system/longwire-broker.service"),
    ("-rw-r--r--", "./usr/lib/sysusers.d/longwire.conf"),
    ("-rw-r--r--", "./usr/lib/tmpfiles.d/longwire.conf"),
    ("-rw-r--r--", "./usr/share/man/man1/longwire-edge.1.gz"),
    ("-rw-r--r--", "./usr/share/bash-completion/completions/longwire"),
    ("-rw-r--r--", "./usr/share/zsh/vendor-completions/_longwire"),
    ("-rw-r--r--", "./usr/share/fish/vendor_completions.d/longwire.fish"),
    ("-rw-r--r--", "./usr/share/doc/longwire/copyright"),
    ("-rw-r--r--", "./usr/share/doc/longwire/changelog.Debian.gz"),
    ("-rw-r--r--", "./usr/share/doc/longwire/sbom.cdx.json.gz"),
    ("-rw-r--r--", "./usr/share/doc/longwire/examples/grafana/longwire.json"),
    ("-rw-r--r--", "./usr/share/doc/longwire/examples/prometheus/longwire.rules.yml"),
];
const SIDES: [&str; 3] = ["edge", "gateway", "broker"];

struct Dir(PathBuf);

impl Dir {
    fn new() -> Self {
        let dir = std::env::temp_dir().join(format!("longwire-package-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// What a command prints; it has to end well.
fn ran(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (text, more) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {text}{more}");
    text.into_owned()
}

fn has(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let has = std::env::split_paths(&paths).any(|path| path.join(program).is_file());
    if !has {
        println!("left out: there is no {program}");
    }
    has
}

/// The package of the program that is tested; fast rather than small.
fn build(dir: &Path) -> PathBuf {
    let said = ran(Command::new(source().join("scripts/package"))
        .arg(env!("CARGO_BIN_EXE_longwire"))
        .arg(dir)
        .env("PACKAGE_LEVEL", "0"));
    said.trim_end().into()
}

#[test]
fn the_package_installs_and_what_it_installs_runs() {
    if !["dpkg-deb", "dpkg-shlibdeps", "strip", "git"].into_iter().all(has) {
        return;
    }
    let dir = Dir::new();
    let package = build(&dir.0);

    let about = ran(Command::new("dpkg-deb").arg("-I").arg(&package));
    for line in [" Package: longwire\n", "libc6 (>= ", "systemd-sysusers", "conffiles"] {
        assert!(about.contains(line), "no '{line}' in {about}");
    }
    let list = ran(Command::new("dpkg-deb").arg("-c").arg(&package));
    for (mode, file) in FILES {
        let line = list.lines().find(|line| line.ends_with(&format!(" {file}"))).expect(file);
        assert!(line.starts_with(&format!("{mode} root/root ")), "{line}");
    }
    assert!(list.matches("/man1/longwire").count() > 60, "{list}");
    // Nothing is enabled by it.
    assert!(!list.contains(".wants/"), "{list}");

    let root = dir.0.join("root");
    ran(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&root));
    runs(&root);
    lints(&package);
    installs(&package, &dir.0.join("installed"));

    // Byte by byte the same again.
    let again = dir.0.join("again");
    assert!(fs::read(build(&again)).unwrap() == fs::read(&package).unwrap());
}

/// Debian's own checks.
fn lints(package: &Path) {
    if has("lintian") {
        let mut lintian = Command::new("lintian");
        lintian.args(["--fail-on", "error,warning", "--allow-root"]).arg(package);
        let said = ran(&mut lintian);
        assert!(!said.contains("E: ") && !said.contains("W: "), "{said}");
    }
}

/// A side of what was unpacked; killed when dropped.
struct Running(Child);

impl Running {
    fn start(root: &Path, config: &Path, side: &str) -> Self {
        let mut child = Command::new(root.join("usr/bin/longwire"))
            .arg(side)
            .env("LONGWIRE_CONFIG", config)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("listening on 127.0.0.1:"), "{side}: {line}");
        Self(child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is unpacked takes the configuration beside it, and serves by that; only its ports and its
/// directories are others here, for those may be somebody's.
fn runs(root: &Path) {
    let file = root.join("etc/longwire/longwire.toml");
    let program = root.join("usr/bin/longwire");
    for side in SIDES {
        let check = ran(Command::new(&program).args([side, "--check", "--config"]).arg(&file));
        assert!(check.contains(&format!("configuration of this {side} is good")), "{check}");
    }
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", service.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in service.incoming() {
            let (mut stream, mut head) = (stream.unwrap(), [0; 4096]);
            let _ = stream.read(&mut head);
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n";
            let _ = stream.write_all(answer);
        }
    });
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let (edge, gateway) = (free(), free());
    let state = root.join("var/lib/longwire").display().to_string();
    let text = fs::read_to_string(&file)
        .unwrap()
        .replace("127.0.0.1:3128", &edge)
        .replace("127.0.0.1:7700", &gateway)
        .replace("http://127.0.0.1:8080", &url)
        .replace("/var/lib/longwire", &state);
    let ports = ["127.0.0.1:9721", "127.0.0.1:9722", "127.0.0.1:9723", "127.0.0.1:1883"];
    let text = ports.iter().fold(text, |text, port| text.replace(port, "127.0.0.1:0"));
    let config = root.join("changed.toml");
    fs::write(&config, text).unwrap();
    for side in SIDES {
        let store = format!("{state}/{side}");
        fs::create_dir_all(&store).unwrap();
        fs::set_permissions(&store, fs::Permissions::from_mode(0o700)).unwrap();
    }
    let _sides = ["gateway", "edge", "broker"].map(|side| Running::start(root, &config, side));
    let mut stream = TcpStream::connect(&edge).unwrap();
    write!(stream, "GET {url}/ HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200") && answer.ends_with("ok\n"), "{answer}");
}

/// dpkg installs it into a root of its own, again, removes it, and purges it.
fn installs(package: &Path, root: &Path) {
    let is_root = ran(Command::new("id").arg("-u")).trim() == "0";
    if !is_root || !["dpkg", "deb-systemd-helper", "systemd-sysusers"].into_iter().all(has) {
        return println!("left out: an installation, which needs root");
    }
    for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "etc"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for file in ["var/lib/dpkg/status", "var/lib/dpkg/available"] {
        fs::write(root.join(file), "").unwrap();
    }
    let dpkg = |args: &[&str]| {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", root.display()));
        dpkg.args(["--force-script-chrootless", "--force-depends"]).args(args);
        ran(&mut dpkg)
    };
    let file = package.to_str().unwrap();
    dpkg(&["--install", file]);
    let users = fs::read_to_string(root.join("etc/passwd")).unwrap();
    assert!(users.contains("longwire:"), "{users}");
    let keys = root.join("etc/longwire/keys");
    assert_eq!(fs::metadata(&keys).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(!root.join("etc/systemd/system/multi-user.target.wants").exists());
    // What an operator has changed and made outlives an installation of the same or a newer one.
    let conffile = root.join("etc/longwire/longwire.toml");
    let changed = fs::read_to_string(&conffile).unwrap() + "\n# changed\n";
    fs::write(&conffile, &changed).unwrap();
    fs::create_dir_all(root.join("var/lib/longwire/edge")).unwrap();
    fs::write(keys.join("longwire.key"), "x").unwrap();
    dpkg(&["--install", "--force-confold", file]);
    dpkg(&["--remove", "longwire"]);
    assert!(!root.join("usr/bin/longwire").exists());
    assert_eq!(fs::read_to_string(&conffile).unwrap(), changed);
    assert!(keys.join("longwire.key").exists() && root.join("var/lib/longwire/edge").exists());
    dpkg(&["--purge", "longwire"]);
    for gone in ["etc/longwire", "var/lib/longwire"] {
        assert!(!root.join(gone).exists(), "a purge leaves {gone}");
    }
}

#[test]
fn systemd_takes_the_units() {
    if !has("systemd-analyze") {
        return;
    }
    for side in SIDES {
        let unit = source().join(format!("packaging/systemd/longwire-{side}.service"));
        let text = fs::read_to_string(&unit).unwrap();
        assert!(text.contains(&format!("ExecStart=/usr/bin/longwire {side}\n")), "{text}");
        // The program and the pages are not installed here.
        let Output { stderr, .. } =
            Command::new("systemd-analyze").arg("verify").arg(&unit).output().unwrap();
        let said = String::from_utf8_lossy(&stderr).into_owned();
        let expected = ["is not executable", "failed with code 16"];
        let strange = said.lines().find(|line| {
            line.contains("longwire") && !expected.iter().any(|part| line.contains(part))
        });
        assert!(strange.is_none(), "{said}");
    }
}
