//! Arguments of queues, as RabbitMQ has them.

use std::sync::Arc;
use std::time::Duration;

use proto::amqp091::{Table, Value};

/// What happens at a queue's bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Overflow {
    /// The oldest makes room.
    #[default]
    DropHead,
    /// What comes is refused.
    Reject,
    /// What comes is refused and goes where dead letters go.
    RejectDeadLetter,
}

/// Where goes what a queue does not keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeadLetters {
    pub(super) exchange: Arc<str>,
    /// `None`: under the key that it came with.
    pub(super) key: Option<Arc<str>>,
}

/// What a queue was declared with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Arguments {
    /// How long a message is kept (`x-message-ttl`).
    pub(super) message_ttl: Option<Duration>,
    /// How long the queue is kept without use (`x-expires`).
    pub(super) expires: Option<Duration>,
    /// Messages that wait (`x-max-length`).
    pub(super) max_length: Option<usize>,
    /// Bytes of bodies that wait (`x-max-length-bytes`).
    pub(super) max_bytes: Option<usize>,
    /// `x-overflow`
    pub(super) overflow: Option<Overflow>,
    /// `x-dead-letter-exchange`, `x-dead-letter-routing-key`
    pub(super) dead_letters: Option<DeadLetters>,
    /// Highest priority that is told apart (`x-max-priority`).
    pub(super) max_priority: Option<u8>,
    /// One consumer at a time gets messages (`x-single-active-consumer`).
    pub(super) is_single: bool,
}

impl Arguments {
    /// Reads them; what is not known is not for this server. The error says which is wrong.
    pub(super) fn decode(table: Table<'_>) -> Result<Self, String> {
        let mut arguments = Self::default();
        let mut dead_key = None;
        for (name, value) in table {
            let bad = || format!("argument {name} of the queue has no use for this value");
            let number = || {
                let number = value.as_integer().and_then(|number| usize::try_from(number).ok());
                number.ok_or_else(bad)
            };
            let time = || number().map(|ms| Duration::from_millis(ms as u64));
            let text = || value.as_text().ok_or_else(bad);
            match name {
                "x-message-ttl" => arguments.message_ttl = Some(time()?),
                "x-expires" => {
                    let expires = time()?;
                    arguments.expires = Some(expires).filter(|time| !time.is_zero());
                    arguments.expires.ok_or_else(bad)?;
                }
                "x-max-length" => arguments.max_length = Some(number()?),
                "x-max-length-bytes" => arguments.max_bytes = Some(number()?),
                "x-max-priority" => {
                    let priority = u8::try_from(number()?).map_err(|_| bad())?;
                    arguments.max_priority = Some(priority).filter(|priority| *priority > 0);
                }
                "x-overflow" => arguments.overflow = Some(overflow(text()?).ok_or_else(bad)?),
                "x-dead-letter-exchange" => {
                    let exchange = text()?.into();
                    arguments.dead_letters = Some(DeadLetters { exchange, key: None });
                }
                "x-dead-letter-routing-key" => dead_key = Some(Arc::from(text()?)),
                "x-single-active-consumer" => match value {
                    Value::Bool(is_single) => arguments.is_single = is_single,
                    _ => return Err(bad()),
                },
                "x-queue-type" if text()? != "classic" => return Err(bad()),
                _ => {}
            }
        }
        match (&mut arguments.dead_letters, dead_key) {
            (Some(letters), key) => letters.key = key,
            (None, None) => {}
            (None, Some(_)) => {
                return Err("x-dead-letter-routing-key without x-dead-letter-exchange".to_owned());
            }
        }
        Ok(arguments)
    }
}

fn overflow(name: &str) -> Option<Overflow> {
    match name {
        "drop-head" => Some(Overflow::DropHead),
        "reject-publish" => Some(Overflow::Reject),
        "reject-publish-dlx" => Some(Overflow::RejectDeadLetter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proto::amqp091::TableBuf;

    use super::*;

    #[test]
    fn known_ones_are_read_and_bad_ones_named() {
        let mut table = TableBuf::default();
        for (name, value) in [
            ("x-message-ttl", Value::I32(1500)),
            ("x-max-length", Value::I64(3)),
            ("x-overflow", Value::Text(b"reject-publish")),
            ("x-dead-letter-routing-key", Value::Text(b"k")),
            ("x-dead-letter-exchange", Value::Text(b"x")),
            ("x-max-priority", Value::U8(5)),
            ("x-queue-type", Value::Text(b"classic")),
            ("x-of-somebody", Value::Void),
        ] {
            table.put(name, &value).unwrap();
        }
        let arguments = Arguments::decode(table.as_table()).unwrap();
        assert_eq!(arguments.message_ttl, Some(Duration::from_millis(1500)));
        assert_eq!(arguments.overflow, Some(Overflow::Reject));
        assert_eq!(arguments.max_priority, Some(5));
        let letters = arguments.dead_letters.unwrap();
        assert_eq!((&*letters.exchange, letters.key.as_deref()), ("x", Some("k")));
        for (name, value) in [
            ("x-message-ttl", Value::I32(-1)),
            ("x-message-ttl", Value::Text(b"1")),
            ("x-expires", Value::I32(0)),
            ("x-queue-type", Value::Text(b"stream")),
            ("x-overflow", Value::Text(b"x")),
            ("x-max-priority", Value::I32(256)),
            ("x-dead-letter-routing-key", Value::Text(b"k")),
        ] {
            let mut table = TableBuf::default();
            table.put(name, &value).unwrap();
            let error = Arguments::decode(table.as_table()).unwrap_err();
            assert!(error.contains(name), "{error}");
        }
    }
}
