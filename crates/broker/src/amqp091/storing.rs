//! Records of exchanges, queues, bindings and messages, for the store.
//!
//! The key of a record says of what it is; the record is a field table, as the codec is at hand.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::amqp091::{Table, TableBuf, Value};

use super::queue::{Entry, Message};
use super::routing::{Binding, Exchange, Kind, Target};

/// What a record holds.
#[derive(Debug)]
pub(super) enum Record {
    Exchange { name: Arc<str>, exchange: Exchange },
    Queue { name: Arc<str>, auto_delete: bool, arguments: Box<[u8]> },
    Binding { source: Arc<str>, binding: Binding },
    Message { queue: Arc<str>, number: u64, message: Arc<Message>, deadline: Option<Duration> },
}

pub(super) fn key_of_exchange(name: &str) -> Arc<str> {
    format!("x/{name}").into()
}

pub(super) fn key_of_queue(name: &str) -> Arc<str> {
    format!("q/{name}").into()
}

pub(super) fn key_of_message(queue: &str, number: u64) -> Arc<str> {
    format!("m/{number}/{queue}").into()
}

/// Lengths keep apart what names have in them.
pub(super) fn key_of_binding(source: &str, binding: &Binding) -> Arc<str> {
    use std::fmt::Write;
    let (kind, name) = match &binding.target {
        Target::Queue(name) => ('q', name),
        Target::Exchange(name) => ('x', name),
    };
    let (source_len, name_len, key) = (source.len(), name.len(), &binding.key);
    let mut text = format!("b/{kind}{source_len}:{source}{name_len}:{name}{}:{key}", key.len());
    for byte in &binding.arguments {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.into()
}

fn record(entries: &[(&str, Value<'_>)]) -> Bytes {
    let mut table = TableBuf::default();
    for (name, value) in entries {
        // The names are short; a value is no longer than what was read.
        let _ = table.put(name, value);
    }
    Bytes::copy_from_slice(table.as_table().as_bytes())
}

fn text(text: &str) -> Value<'_> {
    Value::Text(text.as_bytes())
}

pub(super) fn of_exchange(exchange: &Exchange) -> Bytes {
    let kind = Kind::NAMES.iter().find(|(kind, _)| *kind == exchange.kind);
    let alternate = exchange.alternate.as_deref().map_or(Value::Void, text);
    record(&[
        ("kind", text(kind.map_or("", |(_, name)| name))),
        ("auto-delete", Value::Bool(exchange.auto_delete)),
        ("internal", Value::Bool(exchange.internal)),
        ("alternate", alternate),
    ])
}

pub(super) fn of_queue(auto_delete: bool, arguments: &[u8]) -> Bytes {
    let arguments = Table::decode(arguments).unwrap_or_default();
    record(&[("auto-delete", Value::Bool(auto_delete)), ("arguments", Value::Table(arguments))])
}

pub(super) fn of_binding(source: &str, binding: &Binding) -> Bytes {
    let (is_queue, name) = match &binding.target {
        Target::Queue(name) => (true, name),
        Target::Exchange(name) => (false, name),
    };
    let arguments = Table::decode(&binding.arguments).unwrap_or_default();
    record(&[
        ("source", text(source)),
        ("is-queue", Value::Bool(is_queue)),
        ("target", text(name)),
        ("key", text(&binding.key)),
        ("arguments", Value::Table(arguments)),
    ])
}

pub(super) fn of_message(entry: &Entry) -> Bytes {
    let message = &entry.message;
    let ms = |time: Option<Duration>| match time {
        Some(time) => Value::Timestamp(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        None => Value::Void,
    };
    record(&[
        ("exchange", text(&message.exchange)),
        ("key", text(&message.key)),
        ("properties", Value::Bytes(&message.properties)),
        ("body", Value::Bytes(&message.body)),
        ("priority", Value::U8(message.priority)),
        ("ttl", ms(message.ttl)),
        ("deadline", ms(entry.deadline)),
    ])
}

/// What a record says; `None` if it is none of these.
pub(super) fn decode(key: &str, value: &Bytes) -> Option<Record> {
    let table = Table::decode(value).ok()?;
    let get = |name| table.get(name);
    let text = |name| match get(name) {
        Some(Value::Text(text)) => std::str::from_utf8(text).ok().map(Arc::<str>::from),
        _ => None,
    };
    let flag = |name| get(name) == Some(Value::Bool(true));
    let arguments = || match get("arguments") {
        Some(Value::Table(table)) => Some(table),
        _ => None,
    };
    let (kind, name) = key.split_once('/')?;
    Some(match kind {
        "x" => {
            let kind = Kind::of_name(&text("kind")?)?;
            let mut exchange = Exchange::new(kind, true, flag("auto-delete"), flag("internal"));
            exchange.alternate = text("alternate");
            Record::Exchange { name: name.into(), exchange }
        }
        "q" => Record::Queue {
            name: name.into(),
            auto_delete: flag("auto-delete"),
            arguments: arguments()?.as_bytes().into(),
        },
        "b" => {
            let name = text("target")?;
            let target = match flag("is-queue") {
                true => Target::Queue(name),
                false => Target::Exchange(name),
            };
            let binding = Binding::new(target, &text("key")?, arguments()?);
            Record::Binding { source: text("source")?, binding }
        }
        "m" => {
            let (number, queue) = name.split_once('/')?;
            let bytes = |name| match get(name) {
                Some(Value::Bytes(bytes)) => Some(value.slice_ref(bytes)),
                _ => None,
            };
            let time = |name| match get(name) {
                Some(Value::Timestamp(ms)) => Some(Duration::from_millis(ms)),
                _ => None,
            };
            let Some(Value::U8(priority)) = get("priority") else { return None };
            let message = Message {
                exchange: text("exchange")?,
                key: text("key")?,
                properties: bytes("properties")?,
                body: bytes("body")?,
                persistent: true,
                priority,
                ttl: time("ttl"),
            };
            let (queue, number) = (queue.into(), number.parse().ok()?);
            let deadline = time("deadline");
            Record::Message { queue, number, message: Arc::new(message), deadline }
        }
        _ => return None,
    })
}
