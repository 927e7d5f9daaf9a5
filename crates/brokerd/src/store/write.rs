//! Changes into rows.

use std::time::Duration;

use broker::{Change, Form, Publication, Subscription};
use rusqlite::{Connection, Transaction, params};
use serde_json::json;

use super::name_of;

/// Writes changes, all or none.
pub(super) fn write(connection: &mut Connection, changes: &[Change]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for change in changes {
        apply(&transaction, change)?;
    }
    transaction.commit()
}

fn apply(db: &Transaction<'_>, change: &Change) -> rusqlite::Result<()> {
    match change {
        Change::Message(publication) => message(db, publication),
        Change::Session { client, user, expiry } => db
            .prepare_cached("INSERT OR REPLACE INTO session VALUES (?, ?, ?)")?
            .execute(params![name_of(client), user.as_deref(), ms(*expiry)])
            .map(drop),
        Change::SessionEnded { client } => ended(db, &name_of(client)),
        Change::Subscribed { client, subscription } => {
            subscribed(db, &name_of(client), subscription)
        }
        Change::Unsubscribed { client, filter } => db
            .prepare_cached("DELETE FROM subscription WHERE client = ? AND filter = ?")?
            .execute(params![name_of(client), &**filter])
            .map(drop),
        Change::Queued { .. } => queued(db, change),
        Change::Flying { client, number, handle, received } => db
            .prepare_cached(
                "UPDATE queued SET handle = ?, received = ? WHERE client = ? AND number = ?",
            )?
            .execute(params![handle, received, name_of(client), number])
            .map(drop),
        Change::Done { client, number } => done(db, &name_of(client), *number),
        Change::Inbound { client, handle, open } => {
            let sql = if *open {
                "INSERT OR IGNORE INTO inbound VALUES (?, ?)"
            } else {
                "DELETE FROM inbound WHERE client = ? AND handle = ?"
            };
            db.prepare_cached(sql)?.execute(params![name_of(client), handle]).map(drop)
        }
        Change::Retained { topic, message } => {
            let old = clear(db, topic)?;
            db.prepare_cached("INSERT INTO retained VALUES (?, ?)")?
                .execute(params![&**topic, message])?;
            old.map_or(Ok(()), |old| forget(db, old))
        }
        Change::Cleared { topic } => {
            let old = clear(db, topic)?;
            old.map_or(Ok(()), |old| forget(db, old))
        }
        Change::Kept { protocol, key, value: Some(value) } => db
            .prepare_cached("INSERT OR REPLACE INTO kept VALUES (?, ?, ?)")?
            .execute(params![protocol.name(), &**key, &value[..]])
            .map(drop),
        Change::Kept { protocol, key, value: None } => db
            .prepare_cached("DELETE FROM kept WHERE protocol = ? AND key = ?")?
            .execute(params![protocol.name(), &**key])
            .map(drop),
    }
}

fn message(db: &Transaction<'_>, publication: &Publication) -> rusqlite::Result<()> {
    let details = publication.details.as_deref();
    let extras = details.map(|details| {
        let extras = json!({
            "content_type": details.content_type,
            "reply_to": details.reply_to,
            "properties": details.properties,
            "priority": details.priority,
            "message_id": details.message_id,
            "created_ms": details.created_ms,
            "via": details.via,
        });
        extras.to_string()
    });
    let form = match publication.form {
        Form::Bytes => 0,
        Form::Text => 1,
        Form::Xml => 2,
    };
    db.prepare_cached("INSERT OR IGNORE INTO message VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?
        .execute(params![
            publication.id,
            &*publication.topic,
            &publication.payload[..],
            form,
            publication.grade.get(),
            publication.retain,
            publication.deadline.map(ms),
            publication.urgency.get(),
            publication.protocol.name(),
            extras,
            details.and_then(|details| details.correlation.as_deref()),
            details.and_then(|details| details.original.as_deref()),
        ])
        .map(drop)
}

fn subscribed(
    db: &Transaction<'_>,
    client: &str,
    subscription: &Subscription,
) -> rusqlite::Result<()> {
    let flags = u8::from(subscription.no_local) | u8::from(subscription.as_published) << 1;
    db.prepare_cached("INSERT OR REPLACE INTO subscription VALUES (?, ?, ?, ?, ?)")?
        .execute(params![
            client,
            subscription.filter,
            subscription.grade.get(),
            flags,
            subscription.identifier
        ])
        .map(drop)
}

fn queued(db: &Transaction<'_>, change: &Change) -> rusqlite::Result<()> {
    let Change::Queued { client, number, message, grade, retain, identifiers, shared } = change
    else {
        return Ok(());
    };
    let identifiers = identifiers
        .as_ref()
        .map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
    db.prepare_cached(
        "INSERT OR REPLACE INTO queued (client, number, message, grade, retain, identifiers, shared)
         VALUES (?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        name_of(client),
        number,
        message,
        grade.get(),
        retain,
        identifiers,
        shared.as_deref()
    ])
    .map(drop)
}

fn done(db: &Transaction<'_>, client: &str, number: u64) -> rusqlite::Result<()> {
    let mut delete =
        db.prepare_cached("DELETE FROM queued WHERE client = ? AND number = ? RETURNING message")?;
    let message: Option<u64> = {
        let mut rows = delete.query(params![client, number])?;
        rows.next()?.map(|row| row.get(0)).transpose()?
    };
    message.map_or(Ok(()), |message| forget(db, message))
}

fn ended(db: &Transaction<'_>, client: &str) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM session WHERE client = ?",
        "DELETE FROM subscription WHERE client = ?",
        "DELETE FROM inbound WHERE client = ?",
    ] {
        db.prepare_cached(sql)?.execute([client])?;
    }
    let messages: Vec<u64> = db
        .prepare_cached("DELETE FROM queued WHERE client = ? RETURNING message")?
        .query_map([client], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    messages.into_iter().try_for_each(|message| forget(db, message))
}

/// Takes the present value of a topic out; its message.
fn clear(db: &Transaction<'_>, topic: &str) -> rusqlite::Result<Option<u64>> {
    let mut delete = db.prepare_cached("DELETE FROM retained WHERE topic = ? RETURNING message")?;
    let mut rows = delete.query([topic])?;
    rows.next()?.map(|row| row.get(0)).transpose()
}

/// Takes a message out that nobody waits for any more.
fn forget(db: &Transaction<'_>, message: u64) -> rusqlite::Result<()> {
    db.prepare_cached(
        "DELETE FROM message WHERE id = ?1
         AND NOT EXISTS (SELECT 1 FROM queued WHERE message = ?1)
         AND NOT EXISTS (SELECT 1 FROM retained WHERE message = ?1)",
    )?
    .execute([message])
    .map(drop)
}

fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
