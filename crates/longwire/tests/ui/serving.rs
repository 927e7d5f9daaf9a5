//! A running interface, labs and browsers for tests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use browser::{Browser, Tab};
use serde_json::Value;

/// Where pictures of the pages go when they are wanted, for a person to look at.
const PICTURES: &str = "LONGWIRE_PICTURES";
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn longwire() -> Command {
    Command::new(env!("CARGO_BIN_EXE_longwire"))
}

/// A name that no other test or person uses.
pub(crate) fn name(test: &str) -> String {
    format!("u{}-{test}", std::process::id())
}

/// A directory of its own, removed with it.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("lw-ui-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// `longwire ui` on a port of its own.
pub(crate) struct Ui {
    child: Child,
    pub(crate) folder: Folder,
    /// With the token.
    pub(crate) url: String,
    /// 127.0.0.1 and the port.
    pub(crate) host: String,
    pub(crate) token: String,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Ui {
    pub(crate) fn start() -> Self {
        Self::start_in(Folder::new())
    }

    pub(crate) fn start_in(folder: Folder) -> Self {
        let mut command = longwire();
        command.args(["ui", "--listen", "127.0.0.1:0", "--json"]);
        command.env("LONGWIRE_HOME", &folder.0).current_dir(&folder.0);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let facts: Value = serde_json::from_str(&line).unwrap();
        let url = facts["url"].as_str().unwrap().to_string();
        let (rest, token) = url.split_once("/?token=").unwrap();
        let host = rest.strip_prefix("http://").unwrap().to_string();
        Self { child, folder, token: token.to_string(), host, url }
    }

    /// Sends a request with these fields and no others.
    pub(crate) fn ask(&self, line: &str, fields: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut request = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in fields {
            request += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            request += &format!("Content-Length: {}\r\n", body.len());
        }
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_string(), body: body.to_string() }
    }

    /// As a program does that has the token.
    pub(crate) fn api(&self, method: &str, path: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        let fields = [
            ("Host", self.host.as_str()),
            ("Authorization", &bearer),
            ("Content-Type", "application/json"),
        ];
        self.ask(&format!("{method} /api/v1{path}"), &fields, body)
    }

    /// Ends it; what it leaves behind is for the next one.
    pub(crate) fn stop(mut self) -> Folder {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::mem::replace(&mut self.folder, Folder(PathBuf::from("/nonexistent")))
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A lab, ended when dropped.
pub(crate) struct Lab(pub(crate) String);

impl Lab {
    /// `None`, with the reason printed, where this machine does not permit one.
    pub(crate) fn up(test: &str, link: &str) -> Option<Self> {
        let lab = Self(name(test));
        let output =
            longwire().args(["lab", "up", &lab.0, "--link", link, "--detach"]).output().unwrap();
        if output.status.success() {
            return Some(lab);
        }
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(why.contains("permitted"), "{why}");
        println!("skipped: {why}");
        None
    }

    /// The median round trip in seconds, as the command line measures it.
    pub(crate) fn round_trip_s(&self) -> f64 {
        let ping = ["lab", "ping", &self.0, "--json", "--count", "3", "--interval", "100 ms"];
        let output = longwire().args(ping).output().unwrap();
        let facts: Value = serde_json::from_slice(&output.stdout).unwrap();
        facts["median_s"].as_f64().unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = longwire().args(["lab", "down", &self.0]).output();
    }
}

/// A browser; `None`, with a line that says so, where there is none.
pub(crate) fn browser() -> Option<Browser> {
    if browser::program().is_some() {
        return Some(Browser::start().unwrap());
    }
    println!("skipped: no chromium is found; install the package chromium for this test");
    None
}

/// Keeps a picture of the page where pictures are wanted.
pub(crate) fn keep(tab: &Tab<'_>, name: &str) {
    if let Some(folder) = std::env::var_os(PICTURES) {
        let path = Path::new(&folder).join(format!("{name}.jpeg"));
        std::fs::write(path, tab.screenshot().unwrap()).unwrap();
    }
}
