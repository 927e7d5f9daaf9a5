//! What each protocol can say, and in which direction: the one table that is asked before anything
//! is done, so that no option is taken that does nothing.

use std::ops::RangeInclusive;

use proto::mqtt::Version;

use super::{Scheme, Target};
use crate::error::Error;

/// A protocol, and its version where versions can say different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// MQTT 3.1.
    Mqtt31,
    /// MQTT 3.1.1.
    Mqtt311,
    /// MQTT 5.
    Mqtt5,
    /// MQTT-SN 1.2.
    MqttSn,
    /// MQTT/UDP.
    MqttUdp,
    /// AMQP 1.0.
    Amqp,
    /// AMQP 0.9.1.
    Amqp091,
    /// WS-Notification 1.3.
    Wsn,
}

impl Dialect {
    /// Every one, in the order of the table's columns.
    pub const ALL: [Self; 8] = [
        Self::Mqtt31,
        Self::Mqtt311,
        Self::Mqtt5,
        Self::MqttSn,
        Self::MqttUdp,
        Self::Amqp,
        Self::Amqp091,
        Self::Wsn,
    ];

    /// That of a scheme, with the version of MQTT where it is that.
    #[must_use]
    pub fn of(scheme: Scheme, version: Version) -> Self {
        match (scheme, version) {
            (Scheme::Mqtt, Version::V31) => Self::Mqtt31,
            (Scheme::Mqtt, Version::V311) => Self::Mqtt311,
            (Scheme::Mqtt, Version::V5) => Self::Mqtt5,
            (Scheme::MqttSn, _) => Self::MqttSn,
            (Scheme::MqttUdp, _) => Self::MqttUdp,
            (Scheme::Amqp, _) => Self::Amqp,
            (Scheme::Amqp091, _) => Self::Amqp091,
            (Scheme::Wsn, _) => Self::Wsn,
        }
    }

    /// What people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mqtt31 => "MQTT 3.1",
            Self::Mqtt311 => "MQTT 3.1.1",
            Self::Mqtt5 => "MQTT 5",
            Self::MqttSn => "MQTT-SN",
            Self::MqttUdp => "MQTT/UDP",
            Self::Amqp => "AMQP 1.0",
            Self::Amqp091 => "AMQP 0.9.1",
            Self::Wsn => "WS-Notification",
        }
    }

    /// The qualities of service that it has in a direction; what is not said is 0, or the least.
    #[must_use]
    pub fn qualities(self, direction: Direction) -> RangeInclusive<i8> {
        match (self, direction) {
            // MQTT-SN 1.2 §6.8: without a connection.
            (Self::MqttSn, Direction::Publish) => -1..=2,
            (Self::MqttUdp, _) => 0..=0,
            (Self::Amqp091, _) => 0..=1,
            // A Notify is answered, always.
            (Self::Wsn, _) => 1..=1,
            _ => 0..=2,
        }
    }

    /// The quality that is meant where none is said.
    #[must_use]
    pub fn usual_quality(self, direction: Direction) -> i8 {
        (*self.qualities(direction).start()).max(0)
    }

    /// Whether an ability means something in a direction.
    #[must_use]
    pub fn has(self, ability: Ability, direction: Direction) -> bool {
        let row = TABLE.iter().find(|row| row.0 == ability);
        let column = Self::ALL.iter().position(|dialect| *dialect == self);
        let cell = row.zip(column).and_then(|(row, column)| row.2.get(column));
        match (cell.copied().unwrap_or(NO), direction) {
            (NO, _) => false,
            (PUB, direction) => direction == Direction::Publish,
            (SUB, direction) => direction == Direction::Subscribe,
            _ => true,
        }
    }

    /// Refuses the first of what was given that means nothing here.
    ///
    /// # Errors
    /// [`Error::Caller`] with the option, the protocol, and the protocols that have it.
    pub fn check(self, direction: Direction, given: &[Ability]) -> Result<(), Error> {
        let Some(wrong) = given.iter().find(|ability| !self.has(**ability, direction)) else {
            return Ok(());
        };
        let others: Vec<_> =
            Self::ALL.iter().filter(|other| other.has(*wrong, direction)).collect();
        let names: Vec<_> = others.iter().map(|other| other.name()).collect();
        let (option, name) = (wrong.option(), self.name());
        let here = match direction {
            Direction::Publish => "to publish",
            Direction::Subscribe => "to subscribe",
        };
        let instead = match names.as_slice() {
            [] => "no protocol has".to_owned(),
            [one] => format!("{one} has"),
            [most @ .., last] => format!("{} and {last} have", most.join(", ")),
        };
        Err(Error::Caller(format!("{option}: {name} has no such thing {here}; {instead}")))
    }

    /// Refuses a password that is nobody's: MQTT 5 alone has such (MQTT 5 §3.1.2.9).
    ///
    /// # Errors
    /// [`Error::Caller`] with what names a user.
    pub fn check_password(self, target: &Target) -> Result<(), Error> {
        if self == Self::Mqtt5 || target.user.is_some() {
            return Ok(());
        }
        let name = self.name();
        let text = format!("--password-file: {name} has passwords of users alone: give --user");
        Err(Error::Caller(text))
    }

    /// Refuses a quality of service that is not had here.
    ///
    /// # Errors
    /// [`Error::Caller`] with the qualities that are.
    pub fn check_quality(self, direction: Direction, quality: i8) -> Result<(), Error> {
        let all = self.qualities(direction);
        if all.contains(&quality) {
            return Ok(());
        }
        let (name, first, last) = (self.name(), all.start(), all.end());
        let are =
            if first == last { format!("{first} alone") } else { format!("{first} to {last}") };
        Err(Error::Caller(format!("--qos {quality}: {name} has {are}")))
    }
}

/// What somebody wants of a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To publish.
    Publish,
    /// To subscribe.
    Subscribe,
}

/// Something that a client may say, and not by each protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ability {
    /// Which version of MQTT.
    MqttVersion,
    /// The client's identifier.
    ClientId,
    /// A user.
    User,
    /// A password.
    Password,
    /// A proxy.
    Proxy,
    /// How often there is a sign of life.
    KeepAlive,
    /// What an earlier session has kept.
    KeepSession,
    /// How long a session is kept.
    SessionExpiry,
    /// How long a connection is made again.
    Retry,
    /// A will.
    Will,
    /// That a message is kept for later subscribers.
    Retain,
    /// That what was kept does not come.
    NoRetained,
    /// The media type of a message.
    ContentType,
    /// Where an answer is expected.
    ResponseTopic,
    /// What an answer carries.
    CorrelationData,
    /// How long a message is of use.
    Expiry,
    /// Names and values beside a message.
    UserProperty,
    /// An exchange.
    Exchange,
    /// A queue by name.
    Queue,
    /// Where a consumer listens.
    Listen,
    /// That messages are asked for.
    Pull,
}

/// Whether, and in which direction.
const NO: u8 = 0;
const PUB: u8 = 1;
const SUB: u8 = 2;
const ALL: u8 = 3;

type Row = (Ability, &'static str, [u8; 8]);

/// Columns are those of [`Dialect::ALL`].
#[rustfmt::skip]
const TABLE: [Row; 21] = [
    //                                                     3.1  3.1.1 5    SN   UDP  1.0  0.9.1 WSN
    (Ability::MqttVersion,     "--mqtt-version",         [ALL, ALL, ALL, NO,  NO,  NO,  NO,  NO]),
    (Ability::ClientId,        "--id",                   [ALL, ALL, ALL, ALL, NO,  ALL, ALL, NO]),
    (Ability::User,            "--user",                 [ALL, ALL, ALL, NO,  NO,  ALL, ALL, ALL]),
    (Ability::Password,        "--password-file",        [ALL, ALL, ALL, NO,  NO,  ALL, ALL, ALL]),
    (Ability::Proxy,           "--proxy",                [ALL, ALL, ALL, NO,  NO,  ALL, ALL, ALL]),
    (Ability::KeepAlive,       "--keep-alive",           [ALL, ALL, ALL, ALL, NO,  ALL, ALL, SUB]),
    (Ability::KeepSession,     "--keep-session",         [ALL, ALL, ALL, ALL, NO,  SUB, NO,  NO]),
    (Ability::SessionExpiry,   "--session-expiry",       [NO,  NO,  ALL, NO,  NO,  SUB, NO,  NO]),
    (Ability::Retry,           "--retry",                [ALL, ALL, ALL, ALL, NO,  ALL, ALL, ALL]),
    (Ability::Will,            "--will-topic",           [ALL, ALL, ALL, ALL, NO,  NO,  NO,  NO]),
    (Ability::Retain,          "--retain",               [PUB, PUB, PUB, PUB, NO,  PUB, PUB, NO]),
    (Ability::NoRetained,      "--no-retained",          [SUB, SUB, SUB, SUB, SUB, SUB, SUB, SUB]),
    (Ability::ContentType,     "--content-type",         [NO,  NO,  PUB, NO,  NO,  PUB, PUB, PUB]),
    (Ability::ResponseTopic,   "--response-topic",       [NO,  NO,  PUB, NO,  NO,  PUB, PUB, NO]),
    (Ability::CorrelationData, "--correlation-data",     [NO,  NO,  PUB, NO,  NO,  PUB, PUB, NO]),
    (Ability::Expiry,          "--expiry",               [NO,  NO,  PUB, NO,  NO,  PUB, PUB, NO]),
    (Ability::UserProperty,    "--user-property",        [NO,  NO,  PUB, NO,  NO,  PUB, PUB, PUB]),
    (Ability::Exchange,        "--exchange",             [NO,  NO,  NO,  NO,  NO,  NO,  ALL, NO]),
    (Ability::Queue,           "--queue",                [NO,  NO,  NO,  NO,  NO,  NO,  SUB, NO]),
    (Ability::Listen,          "--listen",               [NO,  NO,  NO,  NO,  NO,  NO,  NO,  SUB]),
    (Ability::Pull,            "--pull",                 [NO,  NO,  NO,  NO,  NO,  NO,  NO,  SUB]),
];

impl Ability {
    /// The option of the command line that says it.
    #[must_use]
    pub fn option(self) -> &'static str {
        TABLE.iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }

    /// Every one.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each cell, as the standards have it: what is said in a column is taken, all else refused by
    /// its name.
    #[test]
    fn each_cell_is_taken_or_refused_by_name() {
        let (mut taken, mut refused) = (0, 0);
        for dialect in Dialect::ALL {
            for direction in [Direction::Publish, Direction::Subscribe] {
                for ability in Ability::all() {
                    let checked = dialect.check(direction, &[ability]);
                    if dialect.has(ability, direction) {
                        assert_eq!(checked, Ok(()), "{dialect:?} {ability:?}");
                        taken += 1;
                        continue;
                    }
                    refused += 1;
                    let Err(Error::Caller(text)) = checked else { panic!("{checked:?}") };
                    let begin = format!("{}: {} has no", ability.option(), dialect.name());
                    assert!(text.starts_with(&begin), "{text}");
                    assert!(!text.contains('\n'), "{text}");
                }
            }
        }
        assert_eq!(taken + refused, Dialect::ALL.len() * 2 * TABLE.len());
        assert_eq!((taken, refused), (137, 199));
    }

    #[test]
    fn a_refusal_names_who_has_it() {
        let of = |dialect: Dialect, direction, ability| {
            dialect.check(direction, &[Ability::NoRetained, ability]).unwrap_err().to_string()
        };
        let publish = Direction::Publish;
        let text = Dialect::Mqtt311.check(publish, &[Ability::Expiry]).unwrap_err().to_string();
        let wanted = "--expiry: MQTT 3.1.1 has no such thing to publish; \
                      MQTT 5, AMQP 1.0 and AMQP 0.9.1 have";
        assert_eq!(text, wanted);
        let text = of(Dialect::MqttUdp, Direction::Subscribe, Ability::Queue);
        let wanted = "--queue: MQTT/UDP has no such thing to subscribe; AMQP 0.9.1 has";
        assert_eq!(text, wanted);
        let text = of(Dialect::Amqp091, Direction::Subscribe, Ability::Retain);
        assert!(text.ends_with("no protocol has"), "{text}");
    }

    #[test]
    fn qualities_are_those_of_each_protocol() {
        let (publish, subscribe) = (Direction::Publish, Direction::Subscribe);
        for (dialect, direction, qualities, usual) in [
            (Dialect::Mqtt31, publish, 0..=2, 0),
            (Dialect::Mqtt5, subscribe, 0..=2, 0),
            (Dialect::MqttSn, publish, -1..=2, 0),
            (Dialect::MqttSn, subscribe, 0..=2, 0),
            (Dialect::MqttUdp, publish, 0..=0, 0),
            (Dialect::Amqp, publish, 0..=2, 0),
            (Dialect::Amqp091, subscribe, 0..=1, 0),
            (Dialect::Wsn, publish, 1..=1, 1),
        ] {
            assert_eq!(dialect.usual_quality(direction), usual, "{dialect:?}");
            for quality in -2..=3 {
                let is_fine = dialect.check_quality(direction, quality).is_ok();
                assert_eq!(is_fine, qualities.contains(&quality), "{dialect:?} {quality}");
            }
        }
        let text = Dialect::Wsn.check_quality(publish, 2).unwrap_err().to_string();
        assert_eq!(text, "--qos 2: WS-Notification has 1 alone");
    }

    #[test]
    fn each_row_is_there_once() {
        for ability in Ability::all() {
            assert_eq!(TABLE.iter().filter(|row| row.0 == ability).count(), 1, "{ability:?}");
            assert!(ability.option().starts_with("--"));
        }
    }
}
