//! `longwire coap`, and `longwire gateway --coap`, as processes.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

fn longwire(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(args);
    command
}

/// What `longwire coap` did: its status, stdout, stderr.
fn coap(args: &[&str]) -> (Option<i32>, String, String) {
    let output = longwire(&[&["coap"][..], args].concat()).output().unwrap();
    let Output { status, stdout, stderr } = output;
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// A process that is ready; killed when dropped.
struct Running(Child);

impl Running {
    fn start(args: &[&str]) -> (Self, String) {
        let mut command = longwire(args);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut running = Self(child);
        let mut line = String::new();
        BufReader::new(running.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on ").expect(&line).trim_end().to_owned();
        (running, address)
    }

    /// A gateway in front of a service, and the URL of its listener for CoAP.
    fn gateway(service: &str, more: &[&str]) -> (Self, String) {
        let allow = format!("http://{service}");
        let args = ["gateway", "--listen", "127.0.0.1:0", "--coap", "127.0.0.1:0"];
        let log = ["--log-format", "json", "--allow", &allow];
        let (mut running, _) = Self::start(&[&args[..], &log, more].concat());
        // The lines before the ready line are few.
        let log = BufReader::new(running.0.stderr.take().unwrap());
        let mut lines = log.lines().map(|line| line.unwrap());
        let line = lines.find(|line| line.contains("listener for clients of CoAP")).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        let place = line["coap"].as_str().or_else(|| line["fields"]["coap"].as_str());
        let url = format!("coap://{}", place.unwrap());
        // Nobody waits for the log.
        std::thread::spawn(move || lines.count());
        (running, url)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a gateway without an upstream says to who asks it itself.
fn tells_of_itself(gateway: &str) {
    let (status, links, _) = coap(&["discover", gateway, "--timeout", "20 s"]);
    assert_eq!((status, &*links), (Some(0), "</.well-known/core>;ct=40\n"));
    let (status, alive, _) = coap(&["ping", gateway, "--timeout", "20 s"]);
    assert!(status == Some(0) && alive.contains("is there"), "{alive}");
    let (status, _, said) = coap(&["get", &format!("{gateway}/x"), "--timeout", "20 s"]);
    assert!(status == Some(1) && said.contains("4.04"), "{said}");
}

#[test]
fn a_client_reaches_a_service_by_a_gateway() {
    let (_service, service) = Running::start(&["serve", "tracks", "--listen", "127.0.0.1:0"]);
    let (_gateway, gateway) = Running::gateway(&service, &[]);
    let at = |path: &str| format!("http://{service}{path}");
    let by = ["--proxy", gateway.as_str(), "--timeout", "20 s"];
    let ask = |verb: &str, url: &str, more: &[&str]| coap(&[&[verb, url][..], &by, more].concat());

    let (status, body, said) = ask("get", &at("/rest/json/1"), &["--verbose"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(serde_json::from_str::<Value>(&body).is_ok() && body.len() > 500, "{body}");
    assert!(said.starts_with("2.05 Content\n"), "{said}");
    assert!(said.contains("Content-Format: application/json\n"), "{said}");

    let (status, object, _) = ask("get", &at("/rest/json/1"), &["--json", "--block-size", "64"]);
    let object: Value = serde_json::from_str(&object).unwrap();
    assert_eq!((status, &object["code"]), (Some(0), &Value::from("2.05")));
    assert_eq!(object["payload"].as_str(), Some(&*body));

    let (status, body, said) = ask("get", &at("/nothing"), &[]);
    assert_eq!((status, &*body), (Some(1), ""));
    assert!(said.starts_with("longwire: 4.04 Not Found"), "{said}");
    // RFC 7252 §5.10.2: for what it is unwilling to ask for, too.
    let (status, _, said) = ask("get", "http://127.0.0.1:9/", &[]);
    assert!(status == Some(1) && said.contains("5.05 Proxying Not Supported"), "{said}");
    assert!(said.contains("outside the gateway's allow list"), "{said}");
    let (status, _, said) = ask("get", "ftp://127.0.0.1/", &[]);
    assert!(status == Some(1) && said.contains("5.05"), "{said}");
    let (status, _, said) = ask("fetch", &at("/rest/json/1"), &[]);
    assert!(status == Some(1) && said.contains("5.01 Not Implemented"), "{said}");

    tells_of_itself(&gateway);
}

#[test]
fn a_reverse_proxy_takes_bodies_in_blocks() {
    let (_service, service) = Running::start(&["serve", "tracks", "--listen", "127.0.0.1:0"]);
    let upstream = format!("http://{service}");
    let more = ["--coap-upstream", upstream.as_str()];
    let (_gateway, gateway) = Running::gateway(&service, &more);
    let soap = format!("{gateway}/soap");
    let envelope = "<soap:Envelope xmlns:soap=\"http://schemas.xmlsoap.org/soap/envelope/\">\
                    <soap:Body><GetTrack xmlns=\"urn:longwire:tracks:1\"><number>1</number>\
                    </GetTrack></soap:Body></soap:Envelope>";
    let padded = format!("{envelope}{}", " ".repeat(5000));
    let mut command = longwire(&["coap", "post", &soap, "--file", "-", "--timeout", "20 s"]);
    let mut child = command
        .args(["--content-format", "xml"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(padded.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let (answer, said) = (output.stdout, String::from_utf8(output.stderr).unwrap());
    // The service wants text/xml, which has no number of its own; that it was asked is enough here.
    assert!(!answer.is_empty() || said.contains("4."), "{said}");
}

#[test]
fn bad_use_is_a_line_and_status_2() {
    for (args, why) in [
        (&["get", "coaps://a/"][..], "give both (-u and -k)"),
        (&["get", "coap://a/", "-u", "x", "-k", "y"], "for coaps, and this is coap"),
        (&["get", "http://a/"], "is no URL of CoAP"),
        (&["get", "coap://a/", "--block-size", "100"], "a power of two from 16 to 1024"),
        (&["get", "coap://a/", "--accept", "nothing"], "no format that is known"),
        (&["get", "coap://a/", "--etag", "0"], "no bytes in hex"),
        (&["put", "coap://a/", "--payload", "x", "--file", "y"], "cannot be used with"),
        (&["observe", "coap://a/", "--count", "0"], "0"),
    ] {
        let (status, out, said) = coap(args);
        assert_eq!((status, &*out, said.lines().count()), (Some(2), "", 1), "{args:?}: {said}");
        assert!(said.starts_with("longwire: ") && said.contains(why), "{args:?}: {said}");
    }
    // Nobody is there.
    let (status, _, said) = coap(&["get", "coap://127.0.0.1:9/", "--timeout", "5 s"]);
    assert!(status == Some(1) && said.lines().count() == 1, "{said}");
}

/// RFC 8323: at the port of UDP, with the same requests.
#[test]
fn a_client_reaches_a_service_over_tcp() {
    let (_service, service) = Running::start(&["serve", "tracks", "--listen", "127.0.0.1:0"]);
    let (_gateway, over_udp) = Running::gateway(&service, &[]);
    let gateway = over_udp.replace("coap://", "coap+tcp://");
    let at = |path: &str| format!("http://{service}{path}");
    let ask = |gateway: &str, more: &[&str]| {
        let (proxy, url) = (["--proxy", gateway, "--timeout", "20 s"], at("/rest/json/1"));
        coap(&[&["get", &url][..], &proxy, more].concat())
    };
    let (status, body, said) = ask(&gateway, &["--verbose"]);
    assert!(status == Some(0) && said.starts_with("2.05 Content\n"), "{said}");
    assert_eq!(ask(&over_udp, &[]), (Some(0), body.clone(), String::new()));
    assert_eq!(ask(&gateway, &["--block-size", "64"]), (Some(0), body, String::new()));
    let (status, _, said) = ask(&gateway, &["--non"]);
    assert!(status == Some(2) && said.contains("is one over UDP"), "{said}");
    tells_of_itself(&gateway);
    // It is no server of WebSocket or TLS.
    for scheme in ["coaps+tcp", "coap+ws"] {
        let url = over_udp.replace("coap://", &format!("{scheme}://"));
        let (status, _, said) = coap(&["get", &url, "--timeout", "20 s"]);
        assert!(status == Some(1) && said.lines().count() == 1, "{said}");
    }
}

/// What is no CoAP gets an Abort that says why, and others are served on.
#[test]
fn a_client_that_breaks_the_protocol_is_aborted() {
    use std::io::Read as _;
    use std::net::{Shutdown, TcpStream};
    let (_service, service) = Running::start(&["serve", "tracks", "--listen", "127.0.0.1:0"]);
    let (_gateway, gateway) = Running::gateway(&service, &[]);
    let address = gateway.strip_prefix("coap://").unwrap();
    for sent in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x00, 0x01], &[0xf0, 0xff, 0xff, 0xff, 0xff]] {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(sent).unwrap();
        let mut came = Vec::new();
        stream.read_to_end(&mut came).unwrap();
        // Its CSM, an Abort (7.05) with text, and the end.
        assert!(came.windows(2).any(|two| two == [0xe5, 0xff]), "{came:x?}");
    }
    // Who ends its direction behind a request is answered.
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&[0x00, 0xe1, 0x21, 0x01, 0x42, 0xb1, b'x']).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut came = Vec::new();
    stream.read_to_end(&mut came).unwrap();
    assert!(came.windows(2).any(|two| two == [0x84, 0x42]), "4.04 with its token: {came:x?}");
    let gateway = gateway.replace("coap://", "coap+tcp://");
    assert_eq!(coap(&["ping", &gateway, "--timeout", "20 s"]).0, Some(0));
}

/// A directory of its own, removed in the end.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("longwire-coap-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// A file that only its owner reads.
    fn put(&self, name: &str, text: &str) -> String {
        use std::os::unix::fs::OpenOptionsExt as _;
        let path = self.0.join(name);
        let mut options = std::fs::OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&path);
        file.unwrap().write_all(text.as_bytes()).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// RFC 8613, with numbers that go on from one process to the next.
#[test]
fn a_protected_client_is_served_and_others_are_not() {
    let scratch = Scratch::new("oscore");
    let context = |name: &str, sender: &str, recipient: &str| {
        let secret = "master_secret = '000102030405060708090a0b0c0d0e0f'";
        let names = format!("sender_id = '{sender}'\nrecipient_id = '{recipient}'");
        scratch.put(name, &format!("{secret}\n{names}\n"))
    };
    let (of_client, of_gateway) = (context("client", "01", "02"), context("gateway", "02", "01"));
    let stranger = context("stranger", "03", "02");
    let (_service, service) = Running::start(&["serve", "tracks", "--listen", "127.0.0.1:0"]);
    let upstream = format!("http://{service}");
    let more = ["--coap-upstream", upstream.as_str(), "--coap-oscore", of_gateway.as_str()];
    let (running, gateway) = Running::gateway(&service, &more);
    let url = format!("{gateway}/rest/json/1");
    let ask =
        |url: &str, more: &[&str]| coap(&[&["get", url, "--timeout", "20 s"][..], more].concat());
    for _ in 0..2 {
        let (status, body, said) = ask(&url, &["--oscore", &of_client]);
        assert!(status == Some(0) && body.len() > 500, "{said}");
    }
    let state = std::fs::read_to_string(format!("{of_client}.state")).unwrap();
    assert_eq!(state, "next_sequence_number = 128\n");
    let (status, _, said) = ask(&url, &[]);
    assert!(status == Some(1) && said.contains("OSCORE is required here"), "{said}");
    let (status, _, said) = ask(&url, &["--oscore", &stranger]);
    assert!(status == Some(1) && said.contains("4.01"), "{said}");
    // The gateway has the context: another process would use the same numbers.
    let (status, _, said) = ask(&url, &["--oscore", &of_gateway]);
    assert!(status == Some(2) && said.contains("in use by another process"), "{said}");
    drop(running);
    let (_running, gateway) = Running::gateway(&service, &more);
    let (status, _, said) = ask(&format!("{gateway}/rest/json/1"), &["--oscore", &of_client]);
    assert_eq!(status, Some(0), "{said}");
}

/// RFC 7252 §9.1.3.1.
#[test]
fn a_client_with_a_key_is_served_over_dtls() {
    let scratch = Scratch::new("dtls");
    let keys = scratch.put("keys", "\"device\" = \"0x000102030405060708090a0b0c0d0e0f\"\n");
    let (_service, service) = Running::start(&["serve", "tracks", "--listen", "127.0.0.1:0"]);
    let upstream = format!("http://{service}");
    let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = format!("127.0.0.1:{port}");
    let more = ["--coap-upstream", &upstream, "--coaps", &listen, "--coaps-psk", &keys];
    let (_running, _) = Running::gateway(&service, &more);
    let url = format!("coaps://{listen}/rest/json/1");
    let key = ["-u", "device", "-k", "0x000102030405060708090a0b0c0d0e0f"];
    let (status, body, said) = coap(&[&["get", &url, "--timeout", "20 s"][..], &key].concat());
    assert!(status == Some(0) && body.len() > 500, "{said}");
    let other = ["-u", "device", "-k", "0xff0102030405060708090a0b0c0d0e0f"];
    let (status, body, said) = coap(&[&["get", &url, "--timeout", "2 s"][..], &other].concat());
    assert!(status == Some(1) && body.is_empty(), "{said}");
    let (status, _, said) = coap(&["get", &url]);
    assert!(status == Some(2) && said.contains("give both (-u and -k)"), "{said}");
}
