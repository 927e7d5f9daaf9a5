use std::path::PathBuf;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;

#[test]
fn what_a_connection_died_of_is_said_in_plain_words() {
    let kinds = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset];
    for kind in kinds {
        let why = explain(&io::Error::new(kind, "see https://docs.rs/rustls"), None);
        assert!(why.contains("died") && !why.contains("rustls"), "{why}");
    }
    assert!(is_record(&[0x15, 0x03, 0x03, 0]) && is_record(&[0x16, 0x03, 0x01]));
    assert!(!is_record(&[0x00, 0x10]) && !is_record(&[0x15]));
}

use crate::keys::{self, Generated, Role};

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("longwire-tls-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        Self(dir)
    }

    fn key(&self, name: &str) -> Generated {
        keys::generate(&self.0.join(name), name, None).unwrap()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn identity(ours: &Generated, theirs: &Generated, other: Role) -> Arc<Identity> {
    Arc::new(Identity::load(&ours.private, &theirs.public, other).unwrap())
}

/// An edge's, which is to meet a gateway.
fn of_edge(ours: &Generated, theirs: &Generated) -> Arc<Identity> {
    identity(ours, theirs, Role::Gateway)
}

fn of_gateway(ours: &Generated, theirs: &Generated) -> Arc<Identity> {
    identity(ours, theirs, Role::Edge)
}

/// What an edge and a gateway say about each other: the peer's name, or what went wrong.
async fn meet(edge: &Arc<Identity>, gateway: &Arc<Identity>) -> [Result<String, String>; 2] {
    let (near, far) = tokio::io::duplex(16 * 1024);
    let connector = TlsConnector::from(Arc::new(client_config(edge).unwrap()));
    let acceptor = TlsAcceptor::from(Arc::new(server_config(gateway).unwrap()));
    let client = async {
        let explain = |error: &io::Error| explain(error, Some(edge));
        let name = ServerName::try_from("longwire.invalid").unwrap();
        let mut stream = connector.connect(name, near).await.map_err(|error| explain(&error))?;
        // TLS 1.3 tells a client of its refusal only when it reads.
        stream.write_all(b"x").await.map_err(|error| explain(&error))?;
        stream.read_u8().await.map_err(|error| explain(&error))?;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(ALPN));
        Ok(peer_name(edge, stream.get_ref().1.peer_certificates()))
    };
    let server = async {
        let explain = |error: &io::Error| explain(error, Some(gateway));
        let mut stream = acceptor.accept(far).await.map_err(|error| explain(&error))?;
        stream.write_all(b"y").await.map_err(|error| explain(&error))?;
        stream.read_u8().await.map_err(|error| explain(&error))?;
        Ok(peer_name(gateway, stream.get_ref().1.peer_certificates()))
    };
    let (client, server) = tokio::join!(client, server);
    [client, server]
}

#[tokio::test]
async fn known_keys_meet_by_name() {
    let dir = Dir::new("known");
    let (edge, gateway) = (dir.key("edge-1"), dir.key("gateway-1"));
    let [client, server] = meet(&of_edge(&edge, &gateway), &of_gateway(&gateway, &edge)).await;
    assert_eq!(client.as_deref(), Ok("gateway-1"));
    assert_eq!(server.as_deref(), Ok("edge-1"));
}

#[tokio::test]
async fn an_unknown_edge_hears_of_its_fingerprint_and_so_does_the_gateway() {
    let dir = Dir::new("edge");
    let (edge, gateway, other) = (dir.key("edge"), dir.key("gateway"), dir.key("other"));
    let [client, server] = meet(&of_edge(&edge, &gateway), &of_gateway(&gateway, &other)).await;
    let (client, server) = (client.unwrap_err(), server.unwrap_err());
    let fingerprint = edge.key.fingerprint();
    assert!(client.contains("refused our key") && client.contains(&fingerprint), "{client}");
    assert!(server.contains(&fingerprint) && server.contains("--peer"), "{server}");
    assert!(server.contains("not among the 1 in our --peer file"), "{server}");
    assert!(!server.contains(&other.key.fingerprint()), "{server}");
}

#[tokio::test]
async fn an_unknown_gateway_hears_of_its_fingerprint_and_so_does_the_edge() {
    let dir = Dir::new("gateway");
    let (edge, gateway, other) = (dir.key("edge"), dir.key("gateway"), dir.key("other"));
    let [client, server] = meet(&of_edge(&edge, &other), &of_gateway(&gateway, &edge)).await;
    let (client, server) = (client.unwrap_err(), server.unwrap_err());
    let fingerprint = gateway.key.fingerprint();
    assert!(client.contains(&fingerprint) && client.contains("--peer"), "{client}");
    assert!(server.contains("refused our key") && server.contains(&fingerprint), "{server}");
}

#[tokio::test]
async fn a_key_is_used_as_what_its_line_says() {
    let dir = Dir::new("role");
    let key = |name: &str, role| keys::generate(&dir.0.join(name), name, role).unwrap();
    let (edge, gateway) = (key("edge", Some(Role::Edge)), key("gateway", Some(Role::Gateway)));
    let other = key("other", Some(Role::Edge));
    let [client, server] = meet(&of_edge(&edge, &gateway), &of_gateway(&gateway, &edge)).await;
    assert_eq!((client.as_deref(), server.as_deref()), (Ok("gateway"), Ok("edge")));
    // The common file of a fleet: an edge's key is not the gateway's, though it is known.
    let all = dir.0.join("all");
    let lines = [&edge, &gateway, &other].map(|key| std::fs::read_to_string(&key.public).unwrap());
    std::fs::write(&all, lines.concat()).unwrap();
    let [edge, impostor] = [(&edge, Role::Gateway), (&other, Role::Edge)]
        .map(|(ours, other)| Arc::new(Identity::load(&ours.private, &all, other).unwrap()));
    let [client, server] = meet(&edge, &impostor).await;
    let client = client.unwrap_err();
    assert!(client.contains("'other', in our --peer file as edge and not as gateway"), "{client}");
    assert!(server.is_err());
}

/// A ClientHello as one of TLS 1.0 to 1.2 has it (RFC 5246 §7.4.1.2): no extension names a later
/// version.
fn old_hello(minor: u8) -> Vec<u8> {
    let suites = [0xc0, 0x2b, 0xc0, 0x2f, 0x00, 0x9c, 0x00, 0x2f];
    // Ed25519 and X25519, as RFC 8422 has them there.
    let extensions = [0, 16, 0, 13, 0, 4, 0, 2, 8, 7, 0, 10, 0, 4, 0, 2, 0, 29];
    let body = [&[3, minor][..], &[7; 32], &[0, 0, 8], &suites, &[1, 0], &extensions].concat();
    let len = u8::try_from(body.len()).unwrap();
    let record = [0x16, 3, 1, 0, len + 4, 1, 0, 0, len];
    [&record[..], &body].concat()
}

#[tokio::test]
async fn no_version_before_1_3_is_spoken() {
    let dir = Dir::new("versions");
    let (edge, gateway) = (dir.key("edge"), dir.key("gateway"));
    let config = Arc::new(server_config(&of_gateway(&gateway, &edge)).unwrap());
    for minor in 0..=3 {
        let (mut near, far) = tokio::io::duplex(16 * 1024);
        near.write_all(&old_hello(minor)).await.unwrap();
        let refused = TlsAcceptor::from(Arc::clone(&config)).accept(far).await;
        assert!(refused.is_err_and(|error| is_refusal(&error)), "3.{minor}");
        let mut alert = Vec::new();
        near.read_to_end(&mut alert).await.unwrap();
        // RFC 8446 §6: a fatal alert and nothing else, handshake_failure or protocol_version.
        assert!(matches!(alert[..], [0x15, 3, _, 0, 2, 2, 40 | 70]), "3.{minor}: {alert:?}");
    }
}

/// Raw keys have no dates: a clock that is wrong by a century keeps nobody out.
#[test]
fn no_clock_makes_a_key_good_or_bad() {
    let dir = Dir::new("clock");
    let (edge, gateway, other) = (dir.key("edge"), dir.key("gateway"), dir.key("other"));
    let known = Pinned::new(&of_gateway(&gateway, &edge), &provider());
    for years in [0, 56, 156, 500] {
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(years * 31_557_600));
        let admits = |key: &Generated| {
            known.verify_client_cert(&CertificateDer::from(key.key.to_spki()), &[], now).is_ok()
        };
        assert!(admits(&edge) && !admits(&other), "{years} years after 1970");
    }
}
