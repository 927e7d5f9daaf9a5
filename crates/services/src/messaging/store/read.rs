//! Rows into the changes that lead to them.

use std::time::Duration;

use rusqlite::types::Type;
use rusqlite::{Connection, Row};

use crate::messaging::forms::Form;
use crate::messaging::machine::{Arrived, Change, Key, Progress, Stage};
use crate::messaging::message::Transfer;
use crate::messaging::receipt::Returning;
use crate::messaging::refusal::Refusal;

/// All that is there, in an order in which it can be applied.
pub(super) fn read(db: &Connection) -> rusqlite::Result<Vec<Change>> {
    let mut changes = Vec::new();
    let sql = [
        ("SELECT * FROM node", given as Of),
        ("SELECT * FROM inbox ORDER BY number", arrived),
        ("SELECT * FROM outgoing ORDER BY number", outgoing),
        ("SELECT * FROM recipient ORDER BY number, node", recipient),
        ("SELECT * FROM receipt ORDER BY number", receipt),
        ("SELECT * FROM seen ORDER BY until_ms", seen),
    ];
    for (sql, of) in sql {
        let mut statement = db.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            changes.push(of(row)?);
        }
    }
    Ok(changes)
}

type Of = fn(&Row<'_>) -> rusqlite::Result<Change>;

fn given(row: &Row<'_>) -> rusqlite::Result<Change> {
    Ok(Change::Given { number: row.get("last_number")?, name: row.get("last_name")? })
}

fn arrived(row: &Row<'_>) -> rusqlite::Result<Change> {
    let Transfer { message, .. } = transfer(row)?;
    let read: Option<u64> = row.get("read_ms")?;
    let (number, at) = (row.get("number")?, ms(row, "at_ms")?);
    let read = read.map(Duration::from_millis);
    Ok(Change::Inbox(Arrived { number, message, at, read }))
}

fn outgoing(row: &Row<'_>) -> rusqlite::Result<Change> {
    let Transfer { message, hops, .. } = transfer(row)?;
    let (number, accepted) = (row.get("number")?, ms(row, "accepted_ms")?);
    Ok(Change::Outgoing { number, accepted, message, hops })
}

fn transfer(row: &Row<'_>) -> rusqlite::Result<Transfer> {
    let bytes: Vec<u8> = row.get("message")?;
    Transfer::decode(Form::Cbor, &bytes).map_err(damaged)
}

fn recipient(row: &Row<'_>) -> rusqlite::Result<Change> {
    let (node, stage): (String, String) = (row.get("node")?, row.get("stage")?);
    let stage = Stage::parse(&stage)
        .ok_or_else(|| damaged(Refusal::malformed(format!("stage '{stage}' is not known"))))?;
    let progress = Progress { stage, at: ms(row, "at_ms")?, reason: row.get("reason")? };
    Ok(Change::Recipient { number: row.get("number")?, node: node.into(), progress })
}

fn receipt(row: &Row<'_>) -> rusqlite::Result<Change> {
    let bytes: Vec<u8> = row.get("receipt")?;
    let returning = Returning::decode(Form::Cbor, &bytes).map_err(damaged)?;
    Ok(Change::Receipt { number: row.get("number")?, returning })
}

fn seen(row: &Row<'_>) -> rusqlite::Result<Change> {
    let (originator, id): (String, String) = (row.get("originator")?, row.get("id")?);
    let key = Key { id: id.into(), originator: originator.into() };
    Ok(Change::Seen { key, digest: row.get("digest")?, until: ms(row, "until_ms")? })
}

fn ms(row: &Row<'_>, column: &str) -> rusqlite::Result<Duration> {
    row.get(column).map(Duration::from_millis)
}

fn damaged(refusal: Refusal) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Blob, refusal.line.into())
}
