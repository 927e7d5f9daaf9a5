//! `longwire pub` and `longwire sub`: clients of brokers.

pub(crate) mod publish;
pub(crate) mod subscribe;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use brokerd::client::{Ability, Dialect, Direction, Identity, Message, Settings, Target, Version};
use brokerd::{Error, read_password};
use proxy::config::Period;

use crate::terminal::{BAD_USE, tell};

/// Which broker, and who one is there.
// table: one field an option of the command line
#[derive(clap::Args)]
pub(crate) struct Peer {
    /// The broker: `SCHEME://[USER@]HOST[:PORT][/PATH]` with mqtt, mqtts, ws, wss, mqtt-sn,
    /// mqtt-udp, amqp, amqps, amqp091, amqps091, wsn or wsns.
    url: String,
    /// The client's identifier; without it the broker or chance gives one. With AMQP 1.0 it is the
    /// container's, with AMQP 0.9.1 what operators read.
    #[arg(short, long, value_name = "ID")]
    id: Option<String>,
    /// The user.
    #[arg(short, long, value_name = "USER")]
    user: Option<String>,
    /// A file with the password; other users of this machine see what stands on a command line.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Authorities in PEM that the broker's certificate has to be from; without it those of this
    /// system.
    #[arg(long, value_name = "FILE")]
    cafile: Option<PathBuf>,
    /// Certificates of this client, in PEM.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Their private key, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// A proxy of HTTP that is asked for the connection, such as an edge: http://HOST:PORT.
    #[arg(long, value_name = "URL")]
    proxy: Option<String>,
    /// Version of MQTT: 5, 3.1.1 or 3.1; without it 5.
    #[arg(short = 'V', long, value_name = "VERSION", value_parser = version)]
    mqtt_version: Option<Version>,
    /// Longest time between two signs of life, or two renewals; without it 60 s.
    #[arg(short, long, value_name = "TIME", value_parser = Period::parse)]
    keep_alive: Option<Period>,
    /// Keep what the broker has of an earlier session of this identifier.
    #[arg(short = 'c', long, requires = "id")]
    keep_session: bool,
    /// How long the broker keeps the session when the connection is gone (MQTT 5), or the
    /// subscription (AMQP 1.0); with --keep-session a day, or as long as the broker likes,
    /// otherwise not at all.
    #[arg(short = 'x', long, value_name = "TIME", value_parser = Period::parse)]
    session_expiry: Option<Period>,
    /// For how long a connection that was lost is made again.
    #[arg(long, value_name = "TIME", value_parser = Period::parse)]
    retry: Option<Period>,
    /// Topic of the will: what the broker publishes when this client is lost.
    #[arg(long, value_name = "TOPIC")]
    will_topic: Option<String>,
    /// What the will says.
    #[arg(long, value_name = "TEXT", requires = "will_topic", default_value = "")]
    will_payload: String,
    /// Its QoS.
    #[arg(long, value_name = "QOS", requires = "will_topic", default_value = "0",
          value_parser = clap::value_parser!(i8).range(0..=2))]
    will_qos: i8,
    /// It is retained.
    #[arg(long, requires = "will_topic")]
    will_retain: bool,
}

fn version(text: &str) -> Result<Version, String> {
    match text {
        "5" => Ok(Version::V5),
        "3.1.1" => Ok(Version::V311),
        "3.1" => Ok(Version::V31),
        _ => Err("5, 3.1.1 or 3.1".to_owned()),
    }
}

/// How often there is a sign of life, unless it is told.
const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// What a command adds to a peer.
pub(crate) struct Use<'a> {
    pub(crate) direction: Direction,
    /// What was given besides the options of the peer.
    pub(crate) given: Vec<Ability>,
    /// The quality of service, if it was given.
    pub(crate) qos: Option<i8>,
    pub(crate) exchange: Option<&'a String>,
    /// For how long a connection is made again unless that is told.
    pub(crate) retry: Duration,
}

/// A broker, what is done with it, and the quality of service.
pub(crate) type Asked = (Target, Settings, i8);

impl Peer {
    /// The broker, and what is done with it. What its protocol cannot say is refused.
    pub(crate) fn read(&self, asked: Use<'_>) -> Result<Asked, Error> {
        let Use { direction, given, qos, exchange, retry } = asked;
        let identity = Identity {
            user: self.user.clone(),
            password: self.password_file.as_deref().map(read_password).transpose()?,
            authorities: self.cafile.clone(),
            certificate: self.cert.clone().zip(self.key.clone()),
            proxy: self.proxy.clone(),
        };
        let target = Target::parse(&self.url, identity)?;
        let version = self.mqtt_version.unwrap_or(Version::V5);
        let dialect = Dialect::of(target.scheme(), version);
        dialect.check(direction, &[self.given(), given].concat())?;
        if self.password_file.is_some() {
            dialect.check_password(&target)?;
        }
        let qos = qos.unwrap_or_else(|| dialect.usual_quality(direction));
        dialect.check_quality(direction, qos)?;
        let will = self.will_topic.clone().map(|topic| Message {
            topic,
            payload: self.will_payload.clone().into(),
            qos: self.will_qos,
            retain: self.will_retain,
            ..Message::default()
        });
        let kept = match dialect {
            // AMQP 1.0 has a word for it.
            Dialect::Amqp => Duration::MAX,
            _ => Duration::from_secs(24 * 3600),
        };
        let usual = if self.keep_session { kept } else { Duration::ZERO };
        let settings = Settings {
            client_id: self.id.clone().unwrap_or_default(),
            version,
            clean: !self.keep_session,
            keep_alive: self.keep_alive.map_or(KEEP_ALIVE, |time| time.0),
            expiry: self.session_expiry.map_or(usual, |expiry| expiry.0),
            will,
            retry: self.retry.map_or(retry, |retry| retry.0),
            exchange: exchange.cloned(),
        };
        Ok((target, settings, qos))
    }

    /// Which of its options were given that not every protocol has.
    fn given(&self) -> Vec<Ability> {
        given(&[
            (self.mqtt_version.is_some(), Ability::MqttVersion),
            (self.id.is_some(), Ability::ClientId),
            (self.user.is_some(), Ability::User),
            (self.password_file.is_some(), Ability::Password),
            (self.proxy.is_some(), Ability::Proxy),
            (self.keep_alive.is_some(), Ability::KeepAlive),
            (self.keep_session, Ability::KeepSession),
            (self.session_expiry.is_some(), Ability::SessionExpiry),
            (self.retry.is_some(), Ability::Retry),
            (self.will_topic.is_some(), Ability::Will),
        ])
    }
}

/// The abilities of those options that were given.
pub(crate) fn given(options: &[(bool, Ability)]) -> Vec<Ability> {
    options.iter().filter(|(is_given, _)| *is_given).map(|(_, ability)| *ability).collect()
}

/// Runs a client to its end.
pub(crate) fn run<T>(
    client: impl Future<Output = Result<T, Error>>,
) -> anyhow::Result<Result<T, u8>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    let result = runtime.block_on(client);
    // A thread that reads stdin ends when the process does.
    runtime.shutdown_background();
    Ok(match result {
        Ok(done) => Ok(done),
        Err(error) => {
            tell(&error.to_string());
            Err(if matches!(error, Error::Caller(_)) { BAD_USE } else { 1 })
        }
    })
}
