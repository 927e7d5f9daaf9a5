use std::path::Path;

use super::*;

fn parse(text: &str) -> Settings {
    Settings::parse(text).unwrap()
}

fn edge(text: &str) -> Result<EdgeConfig, Error> {
    let settings = parse(text);
    EdgeConfig::resolve(settings.edge, &settings.services)
}

fn gateway(text: &str) -> Result<GatewayConfig, Error> {
    let settings = parse(text);
    GatewayConfig::resolve(settings.gateway, &settings.services)
}

/// The annotated file of the documentation.
fn documented() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let text = std::fs::read_to_string(path).unwrap();
    let block = text.split("```toml\n").nth(1).unwrap();
    block.split("```").next().unwrap().to_owned()
}

#[test]
fn the_documented_file_holds_every_key_and_resolves() {
    let text = documented();
    let mut settings = parse(&text);
    // The older name of the other.
    settings.gateway.connect_timeout = settings.gateway.hello_timeout;
    // A key that is missing is shown as None by Debug, by its name.
    let shown = format!("{settings:?}");
    assert!(!shown.contains("None"), "not documented: {shown}");

    // Files and the congestion control depend on the machine.
    let apart = ["key = ", "peer = ", "congestion = ", "schemas = "];
    let portable: Vec<&str> =
        text.lines().filter(|line| !apart.iter().any(|key| line.starts_with(key))).collect();
    let portable = portable.join("\n");
    let config = edge(&portable).unwrap();
    assert_eq!(config.relay.connect_timeout, Duration::from_secs(30));
    assert_eq!(config.services.len(), 1);
    let config = gateway(&portable).unwrap();
    assert_eq!((config.allow.len(), config.relay.retained_bytes), (2, 4 << 20));
    assert_eq!(config.relay.rate_cap_bps, Some(250e3));
    let service = &config.relay.services[0];
    assert_eq!(service.objective, Objective::Deadline(2.0));
    assert_eq!(service.encodings.as_ref().map(Vec::len), Some(5), "four levels of zstd and one");
}

#[test]
fn clients_without_an_edge_are_on_loopback_unless_told_otherwise() {
    let with = |keys: &str| {
        let needed = "[gateway]\nlisten = '127.0.0.1:0'\nallow = ['http://a']\n";
        gateway(&format!("{needed}{keys}")).map(|config| config.plain)
    };
    assert!(with("").unwrap().is_none());
    assert!(with("plain = '[::1]:80'").unwrap().unwrap().upstream.is_none());
    let anywhere = with("plain = '0.0.0.0:80'\nplain_anywhere = true").unwrap().unwrap();
    assert_eq!(anywhere.listen.port(), 80);
    for keys in [
        "plain = '0.0.0.0:80'",
        "plain = '0.0.0.0:80'\nplain_anywhere = false",
        "plain = 'here'",
        "plain_upstream = 'http://a'",
        "plain_anywhere = true",
        "plain = '127.0.0.1:0'\nplain_upstream = 'a'",
    ] {
        assert!(matches!(with(keys), Err(Error::Caller(_))), "{keys}");
    }
}

#[test]
fn what_is_wanted_of_a_service_is_said_once() {
    let with = |keys: &str| {
        let listen = "[edge]\nlisten = '127.0.0.1:0'\n[[service]]\nmatch = 'http://a'\n";
        edge(&format!("{listen}{keys}"))
    };
    let objective = |keys: &str| with(keys).map(|config| config.relay.services[0].objective);
    assert_eq!(objective("").unwrap(), Objective::Time);
    assert_eq!(objective("objective = 'bytes'").unwrap(), Objective::Bytes);
    assert_eq!(objective("deadline = '500 ms'").unwrap(), Objective::Deadline(0.5));
    for (keys, named) in [
        ("objective = 'deadline'", "needs a deadline"),
        ("objective = 'time'\ndeadline = '1 s'", "give one of them"),
        ("objective = 'money'", "one of time, bytes, deadline"),
        ("encodings = ['zstd:99']", "service 'http://a': encodings"),
        ("encodings = ['exi']", "encoding 'exi' needs fidelity 'infoset'"),
    ] {
        let error = with(keys).unwrap_err().to_string();
        assert!(error.contains(named), "{keys}: {error}");
    }
}

#[test]
fn the_documented_defaults_are_the_defaults() {
    let text = documented();
    let settings = parse(&text);
    let least = edge("[edge]\nlisten = '127.0.0.1:0'").unwrap();
    let kept = "[edge]\nlisten = '127.0.0.1:0'\ngateway = '127.0.0.1:1'\nstore = 'kept'";
    let place = edge(kept).unwrap().store.unwrap();
    let bounds = (Some(place.history_rows), Some(Size(place.history_bytes)));
    assert_eq!((settings.edge.history_rows, settings.edge.history_size), bounds);
    assert_eq!((settings.gateway.history_rows, settings.gateway.history_size), bounds);
    let said = settings.edge;
    assert_eq!(said.connect_timeout, Some(Period(least.relay.connect_timeout)));
    assert_eq!(said.dial_timeout, Some(Period(least.dial_timeout)));
    assert_eq!(said.hello_timeout, Some(Period(least.relay.hello_timeout)));
    assert_eq!(said.outcome_timeout, Some(Period(least.relay.outcome_timeout)));
    assert_eq!(said.keepalive, Some(Period(least.relay.keepalive)));
    assert_eq!(said.peer_timeout, Some(Period(least.relay.peer_timeout)));
    assert_eq!(said.body_timeout, Some(Period(least.relay.body_timeout)));
    assert_eq!(said.drain_timeout, Some(Period(least.drain_timeout)));
    assert_eq!(said.response_timeout, Some(Period(least.response_timeout)));
    assert_eq!(said.max_connections, Some(least.max_connections));
    assert_eq!(said.max_exchanges, Some(least.relay.max_exchanges));
    assert_eq!(said.max_tunnels, Some(least.relay.max_tunnels));
    assert_eq!(said.tunnel_timeout, Some(Period(least.relay.tunnel_timeout)));
    assert_eq!(said.idle_timeout, Some(Period(least.idle_timeout)));
    assert_eq!(said.codec_memory, Some(Size(least.relay.codec_bytes as u64)));
    assert_eq!(said.body_memory, Some(Size(least.relay.receive_bytes)));
    let least = gateway("[gateway]\nlisten = '127.0.0.1:0'\nallow = ['http://a']").unwrap();
    let said = settings.gateway;
    assert_eq!(said.hello_timeout, Some(Period(least.relay.hello_timeout)));
    assert_eq!(said.keepalive, Some(Period(least.relay.keepalive)));
    assert_eq!(said.peer_timeout, Some(Period(least.relay.peer_timeout)));
    assert_eq!(said.body_timeout, Some(Period(least.relay.body_timeout)));
    assert_eq!(said.drain_timeout, Some(Period(least.drain_timeout)));
    assert_eq!(said.response_timeout, Some(Period(least.response_timeout)));
    assert_eq!(said.max_carriers, Some(least.relay.max_carriers));
    assert_eq!(said.max_exchanges, Some(least.relay.max_exchanges));
    assert_eq!(said.max_tunnels, Some(least.relay.max_tunnels));
    assert_eq!(said.tunnel_timeout, Some(Period(least.relay.tunnel_timeout)));
    assert_eq!(said.idle_timeout, Some(Period(least.idle_timeout)));
    assert_eq!(said.retain, Some(Period(least.relay.retain)));
    assert_eq!(said.retain_memory, Some(Size(least.relay.retained_bytes as u64)));
    assert_eq!(said.codec_memory, Some(Size(least.relay.codec_bytes as u64)));
    assert_eq!(said.body_memory, Some(Size(least.relay.receive_bytes)));
}

#[test]
fn unknown_keys_are_refused_with_line_and_nearest() {
    for (text, expected) in [
        ("[edge]\nlisten = 'x'\ngatway = 'y'", "3: unknown key 'gatway': did you mean 'gateway'?"),
        ("[edge]\nzzzzzz = 1", "2: unknown key 'zzzzzz': one of listen, gateway"),
        ("\n[[service]]\nmatch = 'http://a'\nfall_back = 'none'", "did you mean 'fallback'?"),
        ("[edges]\n", "1: unknown key 'edges': did you mean 'edge'?"),
        ("[edge]\nconnect_timeout = '5 parsecs'", "2: '5 parsecs' is not a number and one of ms"),
        ("[edge]\nconnect_timeout = 5", "2: invalid type"),
        ("[edge\n", "1: "),
        ("[[service]]\nfallback = 'none'", "missing field `match`"),
    ] {
        let error = Settings::parse(text).unwrap_err();
        assert!(error.contains(expected) && !error.contains('\n'), "{text:?}: {error}");
    }
}

#[test]
fn flags_override_the_file() {
    let file = parse("[edge]\nlisten = '127.0.0.1:1'\nencoding = 'zstd'").edge;
    let flags = EdgeSettings { listen: Some("127.0.0.1:2".to_owned()), ..EdgeSettings::default() };
    let both = flags.over(file);
    assert_eq!(both.listen.as_deref(), Some("127.0.0.1:2"));
    assert_eq!(both.encoding.as_deref(), Some("zstd"));
}

#[test]
fn values_of_an_edge_are_refused_with_what_is_allowed() {
    for (text, expected) in [
        ("", "no listen address"),
        ("listen = 'localhost'", "is no address"),
        ("gateway = 'a'", "is no address: HOST:PORT"),
        ("gateway = '192.0.2.1:4300'", "without keys only loopback"),
        ("fallback = 'direct'", "needs a gateway"),
        ("gateway = '127.0.0.1:1'\nfallback = 'x'", "one of none, direct"),
        ("encoding = 'lzma'", "unknown codec 'lzma'"),
        ("encoding = 'zstd:99'", "from -7 to 19"),
        ("carrier = 'quic'", "one of auto, stream"),
        ("admin = '0.0.0.0:9100'", "give a loopback address"),
        ("congestion = 'fast'", "tcp_allowed_congestion_control"),
        ("key = 'a'", "go together"),
        ("max_exchanges = 0", "from 1 to"),
        ("codec_threads = 1000", "from 1 to"),
        ("upstream = 'tracks'", "a URL like"),
        ("history_rows = 10", "needs a store"),
        ("history_size = '1 MB'", "needs a store"),
        ("store = 'kept'", "a store needs a gateway"),
        ("gateway = '127.0.0.1:1'\nstore = ''", "give a directory"),
    ] {
        let listen = if text.is_empty() || text.starts_with("listen") {
            ""
        } else {
            "listen = '127.0.0.1:0'\n"
        };
        let error = edge(&format!("[edge]\n{listen}{text}")).unwrap_err();
        assert!(matches!(error, Error::Caller(_)));
        let error = error.to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{text:?}: {error}");
    }
}

#[test]
fn values_of_a_gateway_are_refused_with_what_is_allowed() {
    let allow = "allow = ['http://a']\n";
    for (text, expected) in [
        ("listen = '127.0.0.1:0'".to_owned(), "nothing is allowed"),
        (format!("{allow}listen = '0.0.0.0:0'"), "--insecure-plain"),
        (format!("{allow}listen = '[2001:db8::1]:0'"), "--insecure-plain"),
        ("listen = '127.0.0.1:0'\nallow = ['a']".to_owned(), "SCHEME://HOST"),
        (format!("{allow}listen = '127.0.0.1:0'\nkey = 'none'\npeer = 'x'"), "cannot read none"),
    ] {
        let error = gateway(&format!("[gateway]\n{text}")).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{text:?}: {error}");
    }
    let plain = format!("[gateway]\n{allow}listen = '0.0.0.0:0'\ninsecure_plain = true");
    assert!(gateway(&plain).is_ok());
    let mapped = format!("[gateway]\n{allow}listen = '[::ffff:127.0.0.1]:0'");
    assert!(gateway(&mapped).is_ok());
}

#[test]
fn values_of_a_service_are_refused_with_what_is_allowed() {
    for (text, expected) in [
        ("fidelity = 'most'", "one of bytes, infoset"),
        ("schemas = ['a.xsd']", "need fidelity 'infoset'"),
        ("fidelity = 'infoset'\nschemas = []", "0 schemas: name 1 to 64"),
        ("fidelity = 'infoset'\nschemas = ['none.xsd']", "cannot read none.xsd"),
        ("fidelity = 'infoset'\nschemas = ['Cargo.toml']", "schemas: "),
        ("accept_encoding = 'gzip'", "one of identity, pass"),
        ("fallback = 'maybe'", "one of none, direct"),
    ] {
        let text =
            format!("[edge]\nlisten = '127.0.0.1:0'\n[[service]]\nmatch = 'http://a'\n{text}");
        let error = edge(&text).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    }
}

#[test]
fn a_service_whose_infoset_is_enough_has_its_schemas() {
    let directory = std::env::temp_dir().join(format!("longwire-schemas-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let xsd = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'>\
               <xs:include schemaLocation='b.xsd'/><xs:element name='a' type='b'/></xs:schema>";
    let included = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'>\
                    <xs:simpleType name='b'><xs:restriction base='xs:int'/></xs:simpleType>\
                    </xs:schema>";
    std::fs::write(directory.join("a.xsd"), xsd).unwrap();
    std::fs::write(directory.join("b.xsd"), included).unwrap();
    let (listen, service) =
        ("[edge]\nlisten = '127.0.0.1:0'\n", "[[service]]\nmatch = 'http://a'\n");
    let schemas = format!("schemas = ['{}']", directory.join("a.xsd").display());
    let with = |keys: &str| edge(&format!("{listen}{service}{keys}")).unwrap().relay;
    let relay = with(&format!("fidelity = 'infoset'\n{schemas}"));
    std::fs::remove_dir_all(&directory).unwrap();
    let vocabulary = relay.services[0].infoset.as_ref().unwrap();
    assert!(vocabulary.name().is_some());
    let more = relay.encoding.arms().len() - with("").encoding.arms().len();
    assert_eq!(more, 4, "exi without and with a schema, wbxml, cbor");
    let relay = with("fidelity = 'infoset'\nencodings = ['exi', 'zstd:3']");
    assert_eq!(relay.services[0].infoset.as_ref().unwrap().name(), None);
    assert_eq!(relay.services[0].encodings.as_ref().map(Vec::len), Some(2));
    assert!(with("").services[0].infoset.is_none());
}
