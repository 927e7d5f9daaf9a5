//! Which broker, and how it is reached.

use std::path::PathBuf;

use proxy::dial::{Layers, Proxy, Tls, WebSocket};

use crate::address::{authority, proxy_authority};
use crate::error::Error;

/// Where brokers have their WebSocket, unless the URL says it.
const WEBSOCKET_PATH: &str = "/mqtt";

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// MQTT, over TCP, TLS or WebSocket.
    Mqtt,
    /// MQTT-SN, over UDP.
    MqttSn,
    /// MQTT/UDP: no broker, but an address of a host, a network or a group.
    MqttUdp,
    /// AMQP 1.0, over TCP or TLS.
    Amqp,
    /// AMQP 0.9.1, over TCP or TLS.
    Amqp091,
    /// WS-Notification, over HTTP.
    Wsn,
}

impl Scheme {
    /// Whether it goes over a stream, which a proxy may make.
    fn is_stream(self) -> bool {
        !matches!(self, Self::MqttSn | Self::MqttUdp)
    }
}

/// The schemes of URLs: what is spoken, the usual port (IANA's where there is one), whether over
/// TLS, and whether over a WebSocket.
const SCHEMES: [(&str, Scheme, u16, bool, bool); 12] = [
    ("mqtt", Scheme::Mqtt, 1883, false, false),
    ("mqtts", Scheme::Mqtt, 8883, true, false),
    ("ws", Scheme::Mqtt, 80, false, true),
    ("wss", Scheme::Mqtt, 443, true, true),
    ("mqtt-sn", Scheme::MqttSn, 1885, false, false),
    ("mqtt-udp", Scheme::MqttUdp, 1883, false, false),
    ("amqp", Scheme::Amqp, 5672, false, false),
    ("amqps", Scheme::Amqp, 5671, true, false),
    ("amqp091", Scheme::Amqp091, 5672, false, false),
    ("amqps091", Scheme::Amqp091, 5671, true, false),
    ("wsn", Scheme::Wsn, 80, false, false),
    ("wsns", Scheme::Wsn, 443, true, false),
];

/// Who a client is, and whom it believes.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// The user; the URL may name one too.
    pub user: Option<String>,
    /// The password.
    pub password: Option<Vec<u8>>,
    /// Authorities that the broker's certificate has to be from, in PEM; without it those of the
    /// system.
    pub authorities: Option<PathBuf>,
    /// Certificate and private key of this client, in PEM.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// A proxy of HTTP that is asked for the connection: `http://HOST:PORT`.
    pub proxy: Option<String>,
}

/// A broker.
#[derive(Clone, Debug)]
pub struct Target {
    scheme: Scheme,
    pub(super) host: String,
    /// Host and port.
    pub(super) address: String,
    /// What stands behind the port: a path, or with AMQP 0.9.1 a virtual host.
    pub(super) path: String,
    pub(super) user: Option<String>,
    pub(super) password: Option<Vec<u8>>,
    pub(super) layers: Layers,
}

impl Target {
    /// Reads a URL: `SCHEME://[USER@]HOST[:PORT][/PATH]`. A path is of WebSockets, of
    /// WS-Notification, and with AMQP 0.9.1 the virtual host. What of the identity means nothing to
    /// the protocol, is for [`super::Dialect::check`].
    ///
    /// # Errors
    /// [`Error::Caller`] for one that names no broker, or for what does not go with its scheme.
    pub fn parse(url: &str, identity: Identity) -> Result<Self, Error> {
        let wrong = |what: &str| Error::Caller(format!("{url}: {what}"));
        let names: Vec<_> = SCHEMES.iter().map(|scheme| scheme.0).collect();
        let unknown = || wrong(&format!("no URL of a broker: {} and ://HOST", names.join(", ")));
        let (scheme, rest) = url.split_once("://").ok_or_else(unknown)?;
        let (_, scheme, port, is_secure, is_web) =
            *SCHEMES.iter().find(|known| known.0 == scheme).ok_or_else(unknown)?;
        let (rest, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let has_path = is_web || matches!(scheme, Scheme::Amqp091 | Scheme::Wsn);
        if !has_path && !matches!(path, "" | "/") {
            let what =
                "a path is of ws://, wss://, amqp091:// and wsn:// alone; topics are options";
            return Err(wrong(what));
        }
        if !scheme.is_stream() && rest.contains('@') {
            return Err(wrong("this protocol has no users"));
        }
        let (user, rest) = match rest.rsplit_once('@') {
            Some((user, _)) if user.contains(':') => {
                return Err(wrong("others can see a password here: put it into a file"));
            }
            Some((user, rest)) => (Some(user.to_owned()), rest),
            None => (identity.user, rest),
        };
        let (host, address) =
            authority(rest, port).ok_or_else(|| wrong("there is no host and port"))?;
        let is_stream = scheme.is_stream();
        if !is_secure && (identity.authorities.is_some() || identity.certificate.is_some()) {
            let secure = SCHEMES.iter().filter(|known| known.3).map(|known| known.0);
            let secure = secure.collect::<Vec<_>>().join(", ");
            return Err(wrong(&format!("certificates are of use over TLS alone: {secure}")));
        }
        let proxy =
            identity.proxy.filter(|_| is_stream).map(|proxy| match proxy_authority(&proxy) {
                Some(authority) => Ok(Proxy { authority, fields: Vec::new() }),
                None => Err(wrong(&format!("the proxy {proxy}: http://HOST:PORT"))),
            });
        let web_path = if path.is_empty() { WEBSOCKET_PATH } else { path };
        let layers = Layers {
            tls: is_secure.then_some(Tls {
                protocol: None,
                authorities: identity.authorities,
                identity: identity.certificate,
            }),
            websocket: is_web.then(|| WebSocket { path: web_path.to_owned(), subprotocol: "mqtt" }),
            proxy: proxy.transpose()?,
        };
        let (path, password) = (path.to_owned(), identity.password);
        Ok(Self { scheme, host, address, path, user, password, layers })
    }

    /// What is spoken.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Host and port.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_brokers() {
        for (url, scheme, address) in [
            ("mqtt://a.example", Scheme::Mqtt, "a.example:1883"),
            ("mqtt://ann@a.example:99/", Scheme::Mqtt, "a.example:99"),
            ("mqtts://[::1]", Scheme::Mqtt, "[::1]:8883"),
            ("wss://a.example/x/y", Scheme::Mqtt, "a.example:443"),
            ("mqtt-sn://192.0.2.1", Scheme::MqttSn, "192.0.2.1:1885"),
            ("mqtt-udp://255.255.255.255", Scheme::MqttUdp, "255.255.255.255:1883"),
            ("amqp://a.example", Scheme::Amqp, "a.example:5672"),
            ("amqps://a.example", Scheme::Amqp, "a.example:5671"),
            ("amqp091://ann@a.example/ships", Scheme::Amqp091, "a.example:5672"),
            ("amqps091://a.example", Scheme::Amqp091, "a.example:5671"),
            ("wsn://a.example:8090/broker", Scheme::Wsn, "a.example:8090"),
            ("wsns://a.example", Scheme::Wsn, "a.example:443"),
        ] {
            let target = Target::parse(url, Identity::default()).unwrap();
            assert_eq!((target.scheme(), target.address()), (scheme, address), "{url}");
        }
        let target = Target::parse("ws://ann@a.example/x", Identity::default()).unwrap();
        assert_eq!(target.user.as_deref(), Some("ann"));
        assert_eq!(target.layers.websocket.unwrap().path, "/x");
        let target = Target::parse("wss://a.example", Identity::default()).unwrap();
        assert!(target.layers.tls.is_some());
        assert_eq!(target.layers.websocket.unwrap().path, "/mqtt");
    }

    #[test]
    fn what_names_none_is_refused() {
        let with_ca = Identity { authorities: Some("ca.pem".into()), ..Identity::default() };
        let with_proxy =
            |proxy: &str| Identity { proxy: Some(proxy.to_owned()), ..Identity::default() };
        for (url, identity, said) in [
            ("a.example", Identity::default(), "wsns and ://HOST"),
            ("http://a.example", Identity::default(), "no URL of a broker"),
            ("mqtt://", Identity::default(), "no host"),
            ("mqtt://a.example/t", Identity::default(), "a path is of"),
            ("mqtt://a:b@c.example", Identity::default(), "put it into a file"),
            ("amqp://a.example/t", Identity::default(), "a path is of"),
            ("mqtt-sn://ann@a.example", Identity::default(), "no users"),
            (
                "mqtt://a.example",
                with_ca.clone(),
                "over TLS alone: mqtts, wss, amqps, amqps091, wsns",
            ),
            ("mqtt-sn://a.example", with_ca, "over TLS alone"),
            ("mqtt://a.example", with_proxy("socks://x"), "http://HOST:PORT"),
        ] {
            let error = Target::parse(url, identity).unwrap_err().to_string();
            assert!(error.contains(said), "{url}: {error}");
        }
    }
}
