//! How a connection begins (AMQP 0.9.1 §2.2.4, §4.2.2): header, Start, Tune, Open.

use std::fmt;

use bytes::Buf;

use super::{Closed, Fault, Output, Phase, Server, unexpected};
use crate::amqp091::{MIN_FRAME_BYTES, Method, PROTOCOL_HEADER, ReplyCode, Table, TableBuf, Value};

/// What this server can do besides the standard, as clients look it up.
const CAPABILITIES: [&str; 7] = [
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "per_consumer_qos",
    "authentication_failure_close",
];

/// Who a client says that it is.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// PLAIN or AMQPLAIN.
    Password {
        /// The user.
        user: String,
        /// The password.
        password: Vec<u8>,
    },
    /// EXTERNAL: whoever the certificate says.
    External,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Password { user, .. } => write!(f, "Password {{ user: {user:?} }}"),
            Self::External => f.write_str("External"),
        }
    }
}

/// What is known of the client and agreed with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// Its product and version, as it says.
    pub product: String,
    /// Whether it understands that the server cancels a consumer.
    pub has_cancel_notify: bool,
    /// Whether it expects a Close when it is refused, not only the end of the stream.
    pub has_failure_close: bool,
    /// Greatest number of a channel.
    pub channel_max: u16,
    /// Longest frame in bytes.
    pub frame_max_bytes: u32,
    /// Seconds between signs of life; 0: none.
    pub heartbeat_s: u16,
}

impl Server {
    /// Reads the protocol header; whether something happened.
    pub(super) fn read_header(&mut self) -> bool {
        let len = self.input.len().min(PROTOCOL_HEADER.len());
        let (begin, expected) = (self.input.get(..len), PROTOCOL_HEADER.get(..len));
        if begin != expected {
            // AMQP 0.9.1 §4.2.2: the header of what would be spoken, then the end.
            self.out.extend(PROTOCOL_HEADER);
            self.end(Closed::Protocol);
            return true;
        }
        if len < PROTOCOL_HEADER.len() {
            return false;
        }
        self.input.advance(len);
        self.phase = Phase::Start;
        let table = self.server_properties();
        let mechanisms: &[u8] = match self.settings.has_external {
            true => b"PLAIN AMQPLAIN EXTERNAL",
            false => b"PLAIN AMQPLAIN",
        };
        self.put(
            0,
            &Method::ConnectionStart {
                version_major: 0,
                version_minor: 9,
                server_properties: table.as_table(),
                mechanisms,
                locales: b"en_US",
            },
        );
        true
    }

    fn server_properties(&self) -> TableBuf {
        let (mut table, mut capabilities) = (TableBuf::default(), TableBuf::default());
        for name in CAPABILITIES {
            // None of these names is too long.
            let _ = capabilities.put(name, &Value::Bool(true));
        }
        for (name, value) in [
            ("product", Value::Text(self.settings.product.as_bytes())),
            ("version", Value::Text(self.settings.version.as_bytes())),
            ("capabilities", Value::Table(capabilities.as_table())),
        ] {
            let _ = table.put(name, &value);
        }
        table
    }

    pub(super) fn take_handshake(&mut self, method: &Method<'_>) -> Result<(), Fault> {
        match (self.phase, method) {
            (_, Method::ConnectionClose { .. }) => {
                self.put(0, &Method::ConnectionCloseOk {});
                self.end(Closed::Client);
                Ok(())
            }
            (Phase::Start, Method::ConnectionStartOk { .. }) => self.take_start_ok(method),
            (Phase::Tune, &Method::ConnectionTuneOk { channel_max, frame_max, heartbeat }) => {
                self.take_tune_ok(channel_max, frame_max, heartbeat)
            }
            (Phase::Open, Method::ConnectionOpen { virtual_host }) => {
                self.phase = Phase::Opening;
                let virtual_host = (*virtual_host).to_owned();
                self.outputs.push_back(Output::Open { virtual_host });
                Ok(())
            }
            _ => Err(Fault::new(ReplyCode::CommandInvalid, "this method has no place here")),
        }
    }

    fn take_start_ok(&mut self, method: &Method<'_>) -> Result<(), Fault> {
        let &Method::ConnectionStartOk { client_properties, mechanism, response, .. } = method
        else {
            return Err(unexpected("no start-ok"));
        };
        self.observe(client_properties);
        let credentials = match mechanism {
            "PLAIN" => plain(response),
            "AMQPLAIN" => amqplain(response),
            "EXTERNAL" if self.settings.has_external => Some(Credentials::External),
            _ => None,
        };
        self.phase = Phase::Authenticating;
        match credentials {
            Some(credentials) => self.outputs.push_back(Output::Authenticate(credentials)),
            None => self.authenticated(false),
        }
        Ok(())
    }

    fn observe(&mut self, properties: Table<'_>) {
        let text = |name| match properties.get(name) {
            Some(Value::Text(text)) => super::short(&String::from_utf8_lossy(text)).to_owned(),
            _ => String::new(),
        };
        self.peer.product = format!("{} {}", text("product"), text("version")).trim().to_owned();
        if let Some(Value::Table(capabilities)) = properties.get("capabilities") {
            let has = |name| capabilities.get(name) == Some(Value::Bool(true));
            self.peer.has_cancel_notify = has("consumer_cancel_notify");
            self.peer.has_failure_close = has("authentication_failure_close");
        }
    }

    /// The answer to [`Output::Authenticate`].
    pub fn authenticated(&mut self, is_known: bool) {
        if self.phase != Phase::Authenticating {
            return;
        }
        if is_known {
            self.phase = Phase::Tune;
            let Peer { channel_max, frame_max_bytes: frame_max, .. } = self.peer;
            let heartbeat = self.settings.heartbeat_s;
            self.put(0, &Method::ConnectionTune { channel_max, frame_max, heartbeat });
        } else if self.peer.has_failure_close {
            let text = "no such user, or another password or mechanism is needed";
            self.close(ReplyCode::AccessRefused, text, (0, 0));
        } else {
            // AMQP 0.9.1 §4.10: whoever is not known is told nothing.
            self.end(Closed::Server(ReplyCode::AccessRefused, "not known".to_owned()));
        }
    }

    fn take_tune_ok(
        &mut self,
        channel_max: u16,
        frame_max: u32,
        heartbeat: u16,
    ) -> Result<(), Fault> {
        let not_allowed = |what: &str| Fault::new(ReplyCode::NotAllowed, what);
        // AMQP 0.9.1 §1.4.2.6: no more than was offered; 0 is no limit of the client's.
        let ours = &mut self.peer;
        match channel_max {
            0 => {}
            more if more > ours.channel_max => return Err(not_allowed("more channels")),
            fewer => ours.channel_max = fewer,
        }
        match frame_max {
            0 => {}
            more if more > ours.frame_max_bytes => return Err(not_allowed("longer frames")),
            less if less < MIN_FRAME_BYTES => return Err(not_allowed("frames below 4096 bytes")),
            shorter => ours.frame_max_bytes = shorter,
        }
        ours.heartbeat_s = heartbeat;
        self.alive.agreed(heartbeat);
        self.phase = Phase::Open;
        Ok(())
    }

    /// The answer to [`Output::Open`]: the client is in.
    pub fn opened(&mut self) {
        if self.phase == Phase::Opening {
            self.phase = Phase::Running;
            self.alive.running();
            self.put(0, &Method::ConnectionOpenOk {});
        }
    }
}

/// RFC 4616 §2: on whose behalf, who, password, with zeros between.
fn plain(response: &[u8]) -> Option<Credentials> {
    let mut parts = response.splitn(3, |byte| *byte == 0);
    let (_, user, password) = (parts.next()?, parts.next()?, parts.next()?);
    let user = String::from_utf8(user.to_vec()).ok()?;
    Some(Credentials::Password { user, password: password.to_vec() })
}

/// The fields LOGIN and PASSWORD of a table without its length.
fn amqplain(response: &[u8]) -> Option<Credentials> {
    let table = Table::decode(response).ok()?;
    let (Value::Text(user), Value::Text(password)) = (table.get("LOGIN")?, table.get("PASSWORD")?)
    else {
        return None;
    };
    let user = String::from_utf8(user.to_vec()).ok()?;
    Some(Credentials::Password { user, password: password.to_vec() })
}
