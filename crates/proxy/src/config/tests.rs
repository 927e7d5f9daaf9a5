use std::path::Path;

use super::*;
use decide::policy::Objective;
use proto::urgency::Urgency;

fn parse(text: &str) -> Settings {
    Settings::parse(text).unwrap()
}

fn edge(text: &str) -> Result<EdgeConfig, Error> {
    let settings = parse(text);
    EdgeConfig::resolve(settings.edge, &settings.link, &settings.services).map_err(Error::from)
}

fn gateway(text: &str) -> Result<GatewayConfig, Error> {
    let settings = parse(text);
    GatewayConfig::resolve(settings.gateway, &settings.link, &settings.services)
        .map_err(Error::from)
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
    let apart = [
        "key = ",
        "peer = ",
        "congestion = ",
        "schemas = ",
        "coap_oscore = ",
        "coaps",
        "wsp_tokens",
    ];
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
fn of_a_link_of_ones_own_it_is_said_what_it_carries() {
    let of = |link: &str, keys: &str| edge(&format!("{link}[edge]\nlisten = ':0'\n{keys}"));
    let rate_cap = "rate_cap = '250 kbit/s'";
    assert_eq!(of("", rate_cap).unwrap().relay.own_bytes_per_s, None);
    assert_eq!(of("[link]\nown = false\n", "").unwrap().relay.own_bytes_per_s, None);
    assert_eq!(of("[link]\nown = true\n", rate_cap).unwrap().relay.own_bytes_per_s, Some(31_250));
    let error = of("[link]\nown = true\n", "").unwrap_err().to_string();
    assert!(error.contains("give rate_cap, like '9600 bit/s'"), "{error}");
}

#[test]
fn edgeless_clients_are_on_loopback_unless_configured_otherwise() {
    let with = |keys: &str| {
        let needed = "[gateway]\nlisten = '127.0.0.1:0'\nallow = ['http://a']\n";
        gateway(&format!("{needed}{keys}")).map(|config| config.http)
    };
    assert!(with("").unwrap().is_none());
    assert!(with("http_listen = '[::1]:80'").unwrap().unwrap().upstream.is_none());
    let anywhere = with("http_listen = '0.0.0.0:80'\nhttp_anywhere = true").unwrap().unwrap();
    assert_eq!(anywhere.listen.port(), 80);
    for keys in [
        "http_listen = '0.0.0.0:80'",
        "http_listen = '0.0.0.0:80'\nhttp_anywhere = false",
        "http_listen = 'here'",
        "http_upstream = 'http://a'",
        "http_anywhere = true",
        "http_listen = '127.0.0.1:0'\nhttp_upstream = 'a'",
    ] {
        assert!(matches!(with(keys), Err(Error::Caller(_))), "{keys}");
    }
}

#[test]
fn clients_of_coap_are_on_loopback_unless_configured_otherwise() {
    let with = |keys: &str| {
        let needed = "[gateway]\nlisten = '127.0.0.1:4300'\nallow = ['http://a']\n";
        gateway(&format!("{needed}{keys}")).map(|config| config.coap)
    };
    assert!(with("").unwrap().is_none());
    assert!(with("coap = '[::1]:5683'").unwrap().unwrap().upstream.is_none());
    let anywhere = with("coap = ':5683'\ncoap_anywhere = true\ncoap_upstream = 'http://a'");
    assert!(anywhere.unwrap().unwrap().upstream.is_some());
    for keys in [
        "coap = '0.0.0.0:5683'",
        "coap = '0.0.0.0:5683'\ncoap_anywhere = false",
        "coap = 'here'",
        "coap = '127.0.0.1:4300'",
        "coap_upstream = 'http://a'",
        "coap_anywhere = true",
        "coap_multicast = ['224.0.1.187']",
        "coap = '127.0.0.1:0'\ncoap_multicast = ['192.0.2.1']",
        "coap = '127.0.0.1:0'\ncoap_multicast = ['ff02::fd%']",
        "coap = '127.0.0.1:0'\ncoap_multicast = ['ff02::fd%a/b']",
        "coap = '127.0.0.1:0'\ncoap_multicast = ['ff02::fd%sixteen-letters-']",
        "coap = '127.0.0.1:0'\ncoap_upstream = 'a'",
        "coap_oscore = ['/nowhere/context']",
        "coap = '127.0.0.1:0'\ncoap_upstream = 'http://a'\ncoap_oscore = ['/nowhere/context']",
        "coaps = '127.0.0.1:0'",
        "coaps_psk = '/nowhere/keys'",
        "coaps = '127.0.0.1:0'\ncoaps_psk = '/nowhere/keys'",
        "coap = '127.0.0.1:0'\ncoap_upstream = 'coap://a'",
        "coap_cache = '2 GiB'",
    ] {
        assert!(matches!(with(keys), Err(Error::Caller(_))), "{keys}");
    }
}

#[test]
fn wap_clients_are_on_loopback_unless_configured_otherwise() {
    let with = |keys: &str| {
        let needed = "[gateway]\nlisten = '127.0.0.1:4300'\nallow = ['http://a']\n";
        gateway(&format!("{needed}{keys}")).map(|config| config.wsp)
    };
    assert_eq!(with("").unwrap(), None);
    assert_eq!(with("wsp = '[::1]:9200'").unwrap().unwrap().port(), 9200);
    assert!(with("wsp = ':9200'\nwsp_anywhere = true").unwrap().is_some());
    for (keys, what) in [
        ("wsp = ':9200'", "give a loopback address, or 'wsp_anywhere = true'"),
        ("wsp = '10.0.0.1:9200'\nwsp_anywhere = false", "in anybody's name"),
        ("wsp = 'here'", "wsp 'here' is no address of this machine"),
        ("wsp_anywhere = true", "give 'wsp'"),
        ("wsp = '127.0.0.1:4300'", "is the port of 'listen'"),
    ] {
        let error = with(keys).unwrap_err().to_string();
        assert!(error.contains(what), "{keys}: {error}");
    }
}

#[test]
fn a_key_by_an_older_name_is_refused_with_its_name() {
    for (old, new) in [
        ("plain = '127.0.0.1:0'", "unknown key 'plain': its name is 'http_listen'"),
        (
            "plain_upstream = 'http://a'",
            "unknown key 'plain_upstream': its name is 'http_upstream'",
        ),
        ("plain_anywhere = true", "unknown key 'plain_anywhere': its name is 'http_anywhere'"),
    ] {
        let error = Settings::parse(&format!("[gateway]\n{old}")).unwrap_err().to_string();
        assert!(error.contains(&format!("2: {new}")) && error.lines().count() == 1, "{error}");
    }
    let error = Settings::parse("[edge]\nplain = '127.0.0.1:0'").unwrap_err().to_string();
    assert!(!error.contains("http_listen"), "an edge has no such listener: {error}");
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
    let urgency = |keys: &str| with(keys).map(|config| config.relay.handling[0].urgency);
    assert_eq!(urgency("").unwrap(), None);
    assert_eq!(urgency("urgency = 'flash'").unwrap(), Urgency::new(0));
    assert_eq!(urgency("urgency = '6'").unwrap(), Urgency::new(6));
    for (keys, named) in [
        ("urgency = '8'", "service 'http://a': urgency '8': one of flash"),
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
    let ages = [settings.edge.store_age, settings.gateway.store_age];
    assert_eq!(ages, [Some(Period(place.age)); 2]);
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
        (
            "[edge]\nconnect_timeout = '5 parsecs'",
            "2: connect_timeout is wrong: '5 parsecs' is not a number and one of ms",
        ),
        ("[edge]\nconnect_timeout = 5", "2: connect_timeout is 5: a time in quotes, like \"30 s\""),
        ("[edge]\nlisten = 80", "2: listen is 80: a text in quotes"),
        ("[edge]\nmax_tunnels = '9'", "2: max_tunnels is \"9\": a whole number without quotes"),
        ("[edge]\nmax_tunnels = -9", "2: max_tunnels is -9: a whole number"),
        ("[edge]\nbody_memory = 1.5", "2: body_memory is 1.5: a size in quotes, like \"64 KiB\""),
        ("[edge]\nrate_cap = true", "2: rate_cap is true: a rate in quotes"),
        ("[edge]\nkey = ['a']", "2: key is a list: a path in quotes"),
        ("[edge]\ninsecure_plain = 'no'", "2: insecure_plain is \"no\": true or false, without"),
        ("[gateway]\nallow = 'http://x'", "2: allow is \"http://x\": a list, like [\"http://x\"]"),
        ("[gateway]\nallow = ['a', 1]", "2: allow has an item that is 1: a text in quotes"),
        ("edge = 5", "1: 'edge' is a section: write [edge]"),
        ("[service]\nmatch = 'http://a'", "1: 'service' is a list of sections: write [[service]]"),
        ("[edge\n", "1: this is no TOML: "),
        ("[edge]\nlisten = 127.0.0.1:80\n", "2: this is no TOML: it cannot be read: a line is KEY"),
        ("[edge]\nlisten = 'a\n", "2: this is no TOML: a quote is missing"),
        ("[edge]\nlisten = 'a'\nlisten = 'b'", "3: this key or section is there already"),
        ("[[service]]\nfallback = 'none'", "1: a service without 'match'"),
    ] {
        let error = Settings::parse(text).unwrap_err();
        assert!(error.contains(expected) && !error.contains('\n'), "{text:?}: {error}");
    }
}

/// All that is wrong with a file, and what of its own section, each behind its line.
fn mistakes(text: &str) -> Vec<String> {
    let (settings, mut all) = Settings::read(Path::new("c.toml"), text);
    if let Err(more) = EdgeConfig::resolve(settings.edge, &settings.link, &settings.services) {
        all.and(more);
    }
    all.locate(&settings.lines, &[("edge", "admin")]);
    all.iter().map(ToString::to_string).collect()
}

#[test]
fn all_that_is_wrong_is_reported_each_with_its_line() {
    let text = "[edge]\nlisten = 'here'\nfallbak = 'none'\nmax_tunnels = 'x'\ngateway = 5\n\
                fallback = 'direct'\nencoding = 'gzip'\nadmin = '0.0.0.0:1'\ndeny = [\n\
                'http://a',\n'b',\n'c']\nkey = 'none.key'\npeer = 'none.pub'\nkeepalive = '0 s'\n\
                [gateway]\nhttp_listen = 1\n[[service]]\nmatch = 'http://a'\n[[service]]\n\
                match = 'z'\nobjective = 'money'\nencodings = ['zstd',\n'lzma']\n\
                schemas = ['a.xsd',\n'b.xsd']\nfidelity = 'infoset'\n[other]\n";
    let expected = [
        "admin '0.0.0.0:1'",
        "c.toml:2: listen 'here' is no address",
        "c.toml:3: unknown key 'fallbak': did you mean 'fallback'?",
        "c.toml:4: max_tunnels is \"x\"",
        "c.toml:5: gateway is 5",
        "c.toml:7: encoding: unknown codec 'gzip'",
        "c.toml:11: 'b' has no scheme",
        "c.toml:12: 'c' has no scheme",
        "c.toml:13: cannot read none.key",
        "c.toml:14: cannot read none.pub",
        "c.toml:15: keepalive is less than 1 ms",
        "c.toml:17: http_listen is 1",
        "c.toml:21: 'z' has no scheme",
        "c.toml:22: service 'z': objective 'money'",
        "c.toml:24: service 'z': encodings: ",
        "c.toml:25: service 'z': schemas: cannot read a.xsd",
        "c.toml:26: service 'z': schemas: cannot read b.xsd",
        "c.toml:28: unknown key 'other'",
    ];
    let all = mistakes(text);
    assert_eq!(all.len(), expected.len(), "{all:#?}");
    for (mistake, expected) in all.iter().zip(expected) {
        assert!(mistake.starts_with(expected) && !mistake.contains('\n'), "{mistake}: {expected}");
    }
    let error = edge("").unwrap_err();
    assert!(!error.to_string().contains("more"), "{error}");
    assert_eq!(mistakes("[edge]\nlisten = 'localhost:0'\n"), Vec::<String>::new());
}

#[test]
fn what_only_follows_from_a_mistake_is_none() {
    for text in [
        "[edge]\nlisten = 5",
        "[edge]\nlistn = 'localhost:0'",
        "[edge]\nlisten = localhost:0",
        "[edge]\nlisten = 'localhost:0",
        "[edge]\nlisten = 'localhost:0'\ngatway = 'a:1'\nfallback = 'direct'",
        "[edge]\nlisten = 'localhost:0'\nkey = 'a'\npeer = []",
        "[edge]\nlisten = 'localhost:0'\nstor = 'a'\nhistory_rows = 5",
        "[edge]\nlisten = 'localhost:0'\nupstream = 8\nforwarded = 'forwarded'",
        "[edge]\nlisten = 'localhost:0'\n[[service]]\nmatc = 'http://a'",
        "[edge]\nlisten = 'localhost:0'\n[[service]]\nmatch = 'http://a'\nobjective = 'deadline'\n\
         deadline = 5",
    ] {
        assert_eq!(mistakes(text).len(), 1, "{text:?}: {:#?}", mistakes(text));
    }
}

/// Sections, keys, and anything.
const LINE: &str =
    r"(\[{1,2}(edge|service|log)\]{1,2}|[a-z_.]{1,9} ?= ?.{0,9}|match = '.{0,9}'|.{0,9})";

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_its_mistakes_are_listed_by_line(
        lines in proptest::collection::vec(LINE, 0..9),
    ) {
        for mistake in mistakes(&lines.join("\n")) {
            proptest::prop_assert!(!mistake.contains('\n'), "{mistake:?}");
        }
    }
}

#[test]
fn addresses_may_be_short() {
    let listen = |text: &str| edge(&format!("[edge]\nlisten = '{text}'")).unwrap().listen;
    assert_eq!(listen(":8080").to_string(), "[::]:8080");
    assert_eq!(listen("localhost:8080").to_string(), "127.0.0.1:8080");
    assert_eq!(listen("[::1]:8080").to_string(), "[::1]:8080");
    // Two may have a port together where their addresses differ, or where any is wanted.
    for admin in ["127.0.0.2:80", "[::1]:80", "127.0.0.1:0"] {
        assert!(edge(&format!("[edge]\nlisten = '127.0.0.1:80'\nadmin = '{admin}'")).is_ok());
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
        ("listen = 'localhost'", "is no address of this machine: ADDRESS:PORT"),
        ("listen = 'tracks.example:80'", "is no address of this machine"),
        ("listen = 'localhost:99999'", "is no address of this machine"),
        ("listen = ':80'\nadmin = 'localhost:80'", "is the port of 'listen': give each its own"),
        ("gateway = 'a'", "is no address: HOST:PORT"),
        ("gateway = '192.0.2.1:4300'", "without keys only loopback"),
        ("fallback = 'direct'", "needs a gateway"),
        ("gateway = '127.0.0.1:1'\nfallback = 'x'", "one of none, direct"),
        ("encoding = 'lzma'", "unknown codec 'lzma'"),
        ("encoding = 'gzip:6'", "gzip is 'deflate' here"),
        ("encoding = 'br'", "auto, nam, identity, deflate"),
        ("encoding = 'zstd:99'", "from -7 to 19"),
        ("carrier = 'tcp'", "one of auto, stream, burst, quic, coap, coap+tcp"),
        ("carrier = 'burst'", "'burst' needs keys: give --key"),
        ("admin = '0.0.0.0:9100'", "give a loopback address"),
        ("congestion = 'fast'", "tcp_allowed_congestion_control"),
        ("key = 'a'", "go together"),
        ("max_exchanges = 0", "from 1 to"),
        ("codec_threads = 1000", "from 1 to"),
        ("upstream = 'tracks'", "a URL like"),
        ("history_rows = 10", "needs a store"),
        ("history_size = '1 MB'", "needs a store"),
        ("store_age = '1 d'", "needs a store"),
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
    let insecure = format!("[gateway]\n{allow}listen = '0.0.0.0:0'\ninsecure_plain = true");
    assert!(gateway(&insecure).is_ok());
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
    let schema_context = relay.services[0].infoset.as_ref().unwrap();
    assert!(schema_context.name().is_some());
    let more = relay.encoding.arms().len() - with("").encoding.arms().len();
    assert_eq!(more, 4, "exi without and with a schema, wbxml, cbor");
    let relay = with("fidelity = 'infoset'\nencodings = ['exi', 'zstd:3']");
    assert_eq!(relay.services[0].infoset.as_ref().unwrap().name(), None);
    assert_eq!(relay.services[0].encodings.as_ref().map(Vec::len), Some(2));
    assert!(with("").services[0].infoset.is_none());
}
