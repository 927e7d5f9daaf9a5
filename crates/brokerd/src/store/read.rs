//! Rows into the changes that lead to them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use broker::{Change, Details, Form, Grade, Protocol, Publication, Subscription};
use bytes::Bytes;
use proto::urgency::Urgency;
use rusqlite::{Connection, Row};
use serde_json::Value;

use super::client_of;

/// All that is there, in an order in which it can be applied.
pub(super) fn read(db: &Connection) -> rusqlite::Result<Vec<Change>> {
    let mut changes = Vec::new();
    // What a crash between two versions may have left that nothing names is not read.
    let messages = "SELECT * FROM message WHERE id IN
        (SELECT message FROM queued UNION SELECT message FROM retained) ORDER BY id";
    add(db, messages, &mut changes, |row| message(row).map(Some))?;
    add(db, "SELECT * FROM session", &mut changes, session)?;
    add(db, "SELECT * FROM subscription", &mut changes, subscription)?;
    add(db, "SELECT * FROM queued ORDER BY client, number", &mut changes, queued)?;
    let flying = "SELECT client, number, handle, received FROM queued WHERE handle IS NOT NULL
        ORDER BY client, number";
    add(db, flying, &mut changes, flying_of)?;
    add(db, "SELECT * FROM inbound", &mut changes, inbound)?;
    add(db, "SELECT * FROM retained", &mut changes, |row| {
        let topic: String = row.get("topic")?;
        Ok(Some(Change::Retained { topic: topic.into(), message: row.get("message")? }))
    })?;
    add(db, "SELECT protocol AS client, key, value FROM kept", &mut changes, kept)?;
    Ok(changes)
}

fn add(
    db: &Connection,
    sql: &str,
    changes: &mut Vec<Change>,
    of: impl Fn(&Row<'_>) -> rusqlite::Result<Option<Change>>,
) -> rusqlite::Result<()> {
    let mut statement = db.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut unknown = BTreeSet::new();
    while let Some(row) = rows.next()? {
        match of(row)? {
            Some(change) => changes.push(change),
            None => {
                unknown.insert(row.get::<_, String>("client").unwrap_or_default());
            }
        }
    }
    for client in unknown {
        tracing::warn!(client, "the store has a client of a protocol that is not known");
    }
    Ok(())
}

fn message(row: &Row<'_>) -> rusqlite::Result<Change> {
    let topic: String = row.get("topic")?;
    let payload: Vec<u8> = row.get("payload")?;
    let protocol: String = row.get("protocol")?;
    let protocol = Protocol::of_name(&protocol).unwrap_or(Protocol::Broker);
    let mut publication = Publication::new(protocol, topic, payload);
    publication.id = row.get("id")?;
    publication.form = match row.get("form")? {
        1 => Form::Text,
        2 => Form::Xml,
        _ => Form::Bytes,
    };
    publication.grade = Grade::new(row.get("grade")?).unwrap_or_default();
    publication.retain = row.get("retain")?;
    publication.deadline = row.get::<_, Option<u64>>("deadline_ms")?.map(Duration::from_millis);
    publication.urgency = Urgency::new(row.get("urgency")?).unwrap_or(Urgency::DEFAULT);
    let details: Option<String> = row.get("details")?;
    if let Some(details) = details {
        let extras: Value = serde_json::from_str(&details).unwrap_or_default();
        let bytes = |bytes: Option<Vec<u8>>| bytes.map(Bytes::from);
        publication.details = Some(Box::new(Details {
            correlation: bytes(row.get("correlation")?),
            original: bytes(row.get("original")?),
            ..details_of(&extras)
        }));
    }
    Ok(Change::Message(Arc::new(publication)))
}

fn details_of(extras: &Value) -> Details {
    let text = |name: &str| extras[name].as_str().map(str::to_owned);
    let list = |name: &str| extras[name].as_array().into_iter().flatten();
    let pair = |pair: &Value| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.to_owned()));
    Details {
        content_type: text("content_type"),
        reply_to: text("reply_to"),
        properties: list("properties").filter_map(pair).collect(),
        priority: extras["priority"].as_u64().and_then(|number| u8::try_from(number).ok()),
        message_id: text("message_id"),
        created_ms: extras["created_ms"].as_u64(),
        via: list("via").filter_map(|node| node.as_str().map(str::to_owned)).collect(),
        ..Details::default()
    }
}

fn session(row: &Row<'_>) -> rusqlite::Result<Option<Change>> {
    let client: String = row.get("client")?;
    let user: Option<String> = row.get("user")?;
    let expiry = Duration::from_millis(row.get("expiry_ms")?);
    let user = user.map(Into::into);
    Ok(client_of(&client).map(|client| Change::Session { client, user, expiry }))
}

fn subscription(row: &Row<'_>) -> rusqlite::Result<Option<Change>> {
    let client: String = row.get("client")?;
    let filter: String = row.get("filter")?;
    let flags: u8 = row.get("flags")?;
    let grade = Grade::new(row.get("grade")?).unwrap_or_default();
    let mut subscription = Subscription::new(filter, grade);
    subscription.no_local = flags & 1 != 0;
    subscription.as_published = flags & 2 != 0;
    subscription.identifier = row.get("identifier")?;
    Ok(client_of(&client).map(|client| Change::Subscribed { client, subscription }))
}

fn queued(row: &Row<'_>) -> rusqlite::Result<Option<Change>> {
    let client: String = row.get("client")?;
    let identifiers: Option<String> = row.get("identifiers")?;
    let identifiers = identifiers.map(|list| {
        list.split(' ').filter_map(|number| number.parse().ok()).collect::<Box<[u32]>>()
    });
    let shared: Option<String> = row.get("shared")?;
    let (number, message) = (row.get("number")?, row.get("message")?);
    let grade = Grade::new(row.get("grade")?).unwrap_or_default();
    let retain = row.get("retain")?;
    let shared = shared.map(Into::into);
    Ok(client_of(&client).map(|client| Change::Queued {
        client,
        number,
        message,
        grade,
        retain,
        identifiers,
        shared,
    }))
}

fn flying_of(row: &Row<'_>) -> rusqlite::Result<Option<Change>> {
    let client: String = row.get("client")?;
    let (number, handle, received) = (row.get("number")?, row.get("handle")?, row.get("received")?);
    Ok(client_of(&client).map(|client| Change::Flying { client, number, handle, received }))
}

fn kept(row: &Row<'_>) -> rusqlite::Result<Option<Change>> {
    let protocol: String = row.get("client")?;
    let (key, value): (String, Vec<u8>) = (row.get("key")?, row.get("value")?);
    let (key, value) = (key.into(), Some(value.into()));
    Ok(Protocol::of_name(&protocol).map(|protocol| Change::Kept { protocol, key, value }))
}

fn inbound(row: &Row<'_>) -> rusqlite::Result<Option<Change>> {
    let client: String = row.get("client")?;
    let handle = row.get("handle")?;
    Ok(client_of(&client).map(|client| Change::Inbound { client, handle, open: true }))
}
