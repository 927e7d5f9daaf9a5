//! Changes into rows.

use std::time::Duration;

use rusqlite::{Connection, Transaction, params};

use crate::messaging::fields::{Layout, Record};
use crate::messaging::forms::Form;
use crate::messaging::machine::{Arrived, Change};
use crate::messaging::message::MESSAGE;
use crate::messaging::receipt::RECEIPT;

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
        Change::Inbox(Arrived { number, message, at, read }) => db
            .prepare_cached("INSERT OR REPLACE INTO inbox VALUES (?, ?, ?, ?)")?
            .execute(params![
                number,
                bytes(&MESSAGE, &message.record(&[], &[]))?,
                ms(*at),
                read.map(ms)
            ])
            .map(drop),
        Change::InboxRemoved { number } => {
            db.prepare_cached("DELETE FROM inbox WHERE number = ?")?.execute([number]).map(drop)
        }
        Change::Outgoing { number, accepted, message, hops } => db
            .prepare_cached("INSERT OR REPLACE INTO outgoing VALUES (?, ?, ?)")?
            .execute(params![number, ms(*accepted), bytes(&MESSAGE, &message.record(hops, &[]))?])
            .map(drop),
        Change::Recipient { number, node, progress } => db
            .prepare_cached("INSERT OR REPLACE INTO recipient VALUES (?, ?, ?, ?, ?)")?
            .execute(params![
                number,
                &**node,
                progress.stage.name(),
                ms(progress.at),
                progress.reason
            ])
            .map(drop),
        Change::OutgoingRemoved { number } => {
            db.prepare_cached("DELETE FROM recipient WHERE number = ?")?.execute([number])?;
            db.prepare_cached("DELETE FROM outgoing WHERE number = ?")?.execute([number]).map(drop)
        }
        Change::Receipt { number, returning } => db
            .prepare_cached("INSERT OR REPLACE INTO receipt VALUES (?, ?)")?
            .execute(params![number, bytes(&RECEIPT, &returning.record())?])
            .map(drop),
        Change::ReceiptRemoved { number } => {
            db.prepare_cached("DELETE FROM receipt WHERE number = ?")?.execute([number]).map(drop)
        }
        Change::Seen { key, digest, until } => db
            .prepare_cached("INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?)")?
            .execute(params![&*key.originator, &*key.id, &digest[..], ms(*until)])
            .map(drop),
        Change::SeenRemoved { key } => db
            .prepare_cached("DELETE FROM seen WHERE originator = ? AND id = ?")?
            .execute([&*key.originator, &*key.id])
            .map(drop),
        Change::Given { number, name } => db
            .prepare_cached("UPDATE node SET last_number = ?, last_name = ?")?
            .execute(params![number, name])
            .map(drop),
    }
}

fn bytes(layout: &Layout, record: &Record) -> rusqlite::Result<Vec<u8>> {
    let made = Form::Cbor.encode(layout, record);
    made.map_err(|refusal| rusqlite::Error::ToSqlConversionFailure(refusal.line.into()))
}

fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
