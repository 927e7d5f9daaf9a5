//! A side as a service: what a service manager is told and hands over, and the file that is read
//! where the command line says nothing.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long anything here may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory of a test, with the socket of its service manager.
struct Manager {
    dir: PathBuf,
    socket: UnixDatagram,
}

impl Manager {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("lw-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        let socket = UnixDatagram::bind(dir.join("notify")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { dir, socket }
    }

    fn file(&self, text: &str) -> PathBuf {
        let path = self.dir.join("longwire.toml");
        fs::write(&path, text).unwrap();
        path
    }

    /// A bare command, which reads the file of this directory.
    fn command(&self, side: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command
            .arg(side)
            .env("NOTIFY_SOCKET", self.dir.join("notify"))
            .env("LONGWIRE_CONFIG", self.dir.join("longwire.toml"))
            .env_remove("WATCHDOG_PID");
        command
    }

    /// What the manager is told next.
    fn next(&self) -> String {
        let mut message = [0; 4096];
        let len = self.socket.recv(&mut message).expect("the manager is told nothing");
        String::from_utf8(message[..len].to_vec()).unwrap()
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A process; killed when dropped.
struct Running {
    child: Child,
    line: String,
}

impl Running {
    /// Starts one, and waits for its ready line.
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Self { child, line: line.trim_end().to_owned() }
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// The address in its ready line.
    fn address(&self) -> &str {
        self.line.strip_prefix("listening on ").unwrap().split(' ').next().unwrap()
    }

    fn end(mut self) -> Option<i32> {
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::yield_now();
        }
        None
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One file for all three, as a package has it.
const WHOLE: &str = "[edge]\nlisten = \"127.0.0.1:0\"\n\n[gateway]\nlisten = \"127.0.0.1:0\"\n\
                     allow = [\"http://127.0.0.1:9\"]\n\n[broker]\nmqtt = \"127.0.0.1:0\"\n\n\
                     [[rule]]\nfilter = \"a/#\"\nconflate = true\n";

#[test]
fn a_manager_hears_of_start_reload_and_end() {
    for (side, again) in [
        ("edge", "settings were read again; nothing new"),
        ("gateway", "settings were read again; nothing new"),
        ("broker", "the file was read again"),
    ] {
        let manager = Manager::new(&format!("hears-{side}"));
        manager.file(WHOLE);
        let running = Running::start(&mut manager.command(side));
        let ready = manager.next();
        assert_eq!(ready, format!("READY=1\nSTATUS={}\n", running.line), "{side}");

        running.signal("HUP");
        let reloading = manager.next();
        let since = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect(&reloading);
        assert!(since.trim_end().parse::<u64>().unwrap() > 0, "{reloading}");
        let ready = manager.next();
        assert!(ready.starts_with(&format!("READY=1\nSTATUS={again}")), "{side}: {ready}");

        // What is not taken ends nothing, and is ready again.
        manager.file(&WHOLE.replace("listen = ", "listn = ").replace("mqtt = ", "mqt = "));
        running.signal("HUP");
        assert!(manager.next().starts_with("RELOADING=1\n"));
        let ready = manager.next();
        assert!(ready.starts_with("READY=1\nSTATUS="), "{ready}");
        assert!(side == "broker" || ready.contains("did you mean 'listen'?"), "{ready}");

        running.signal("TERM");
        let stopping = manager.next();
        assert!(stopping.starts_with("STOPPING=1\n"), "{stopping}");
        assert_eq!(running.end(), Some(0), "{side}");
    }
}

#[test]
fn signs_of_life_come_as_long_as_it_lives() {
    for side in ["edge", "gateway", "broker"] {
        let manager = Manager::new(&format!("watch-{side}"));
        // An edge with a gateway has a relay, which must answer.
        manager.file(&WHOLE.replace("[edge]\n", "[edge]\ngateway = \"127.0.0.1:9\"\n"));
        let mut command = manager.command(side);
        let running = Running::start(command.env("WATCHDOG_USEC", "400000"));
        assert!(manager.next().starts_with("READY=1\n"));
        for _ in 0..3 {
            assert_eq!(manager.next(), "WATCHDOG=1\n", "{side}");
        }
        running.signal("STOP");
        // What was under way as it stopped.
        manager.socket.set_read_timeout(Some(Duration::from_millis(400))).unwrap();
        let mut message = [0; 4096];
        while manager.socket.recv(&mut message).is_ok() {}
        manager.socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        assert!(manager.socket.recv(&mut message).is_err(), "{side} lives though it is stopped");
        manager.socket.set_read_timeout(Some(PATIENCE)).unwrap();
        running.signal("CONT");
        assert_eq!(manager.next(), "WATCHDOG=1\n", "{side}");
    }
}

/// A command that is handed a socket as a service manager would, over a shell: its number is 3, and
/// the variables name the process that the shell becomes.
fn handing(command: &Command, socket: OwnedFd, name: &str) -> Command {
    let script = "exec 3<&0 0</dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$0\" \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(command.get_program()).args(command.get_args());
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(key, value),
            None => shell.env_remove(key),
        };
    }
    shell.env("LISTEN_FDNAMES", name).stdin(Stdio::from(socket));
    shell
}

fn get(address: &str, url: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {url} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_socket_with_the_configured_address_is_taken() {
    // `{}` is where the address that is handed over is configured.
    for (side, file) in [
        ("edge", "[edge]\nlisten = \"127.0.0.1:0\"\nadmin = \"{}\"\n"),
        ("gateway", "[gateway]\nlisten = \"{}\"\nallow = [\"http://127.0.0.1:9\"]\n"),
        ("broker", "[broker]\nmqtt = \"{}\"\n"),
    ] {
        let manager = Manager::new(&format!("taken-{side}"));
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap().to_string();
        manager.file(&file.replace("{}", &address));
        // A client that was there before the process is served by it.
        let early = TcpStream::connect(&address).unwrap();
        let mut command = handing(&manager.command(side), socket.into(), "longwire.socket");
        let running = Running::start(&mut command);
        if side == "edge" {
            assert!(get(&address, "/health/live").ends_with("live\n"));
        } else {
            assert_eq!(running.address(), address);
            TcpStream::connect(&address).unwrap();
        }
        drop(early);
        // Without a socket of the manager's the port is another process's.
        let output = manager.command(side).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(&format!("cannot listen on {address}")), "{text}");
    }
}

fn refused(command: &Command, socket: OwnedFd, name: &str) -> String {
    let Output { status, stderr, .. } = handing(command, socket, name).output().unwrap();
    let text = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2), "{text}");
    let said = |line: &&str| line.starts_with("longwire: ");
    text.lines().find(said).expect(&text).to_owned()
}

#[test]
fn a_socket_with_another_address_is_refused_and_both_are_named() {
    for side in ["edge", "gateway", "broker"] {
        let manager = Manager::new(&format!("other-{side}"));
        let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        manager.file(&WHOLE.replace("127.0.0.1:0", &free.to_string()));
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let handed = socket.local_addr().unwrap();
        let text = refused(&manager.command(side), socket.into(), "odd.socket");
        for part in [format!("tcp {handed} ('odd.socket')"), format!("tcp {free}")] {
            assert!(text.contains(&part), "{text}");
        }
    }
    let manager = Manager::new("no-socket");
    manager.file(WHOLE);
    let file = fs::File::open("/dev/null").unwrap();
    let text = refused(&manager.command("edge"), file.into(), "null");
    assert!(text.contains("hands over 'null', which is no socket"), "{text}");
}

#[test]
fn the_file_is_read_by_a_bare_command_only_and_said() {
    let manager = Manager::new("bare");
    let path = manager.file(WHOLE);
    for side in ["edge", "gateway", "broker"] {
        let mut child =
            manager.command(side).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let starts = format!("{side} starts");
        let line = lines.find(|line| line.contains(&starts)).unwrap();
        assert!(line.contains(&path.display().to_string()), "{line}");
        child.kill().unwrap();
        child.wait().unwrap();

        let output = manager.command(side).args(["--log", "info"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{side}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("listen"), "{text}");
    }
    // One that is named has to be there; no name is no file.
    let missing = manager.dir.join("missing.toml");
    let output = manager.command("edge").env("LONGWIRE_CONFIG", &missing).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && text.contains("missing.toml"), "{text}");
    let output = manager.command("edge").env("LONGWIRE_CONFIG", "").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && text.contains("no listen address"), "{text}");
}
