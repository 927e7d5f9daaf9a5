//! The history, read while another process may be writing it.

use std::path::{Path, PathBuf};
use std::{fs, io};

use record::decision::{Direction, Entry};
use rusqlite::{Connection, OpenFlags, Row, params};

use super::file::{APPLICATION_ID, FILE_NAME, READER_PATIENCE, SCHEMA_VERSION, system};
use crate::Error;

/// Decisions that one question can give.
const MAX_ENTRIES: u32 = 1_000_000;

/// The history of one side.
#[derive(Debug)]
pub struct History {
    connection: Connection,
    path: PathBuf,
}

impl History {
    /// Opens the history in a directory that `--store` named.
    ///
    /// # Errors
    /// [`Error::Caller`] where there is none, or one of another version.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(FILE_NAME);
        let shown = path.display();
        fs::File::open(&path).map_err(|error| {
            Error::Caller(match error.kind() {
                io::ErrorKind::NotFound => format!(
                    "there is no {shown}: give the directory that an edge or gateway has as --store"
                ),
                _ => format!(
                    "cannot read {shown}: {error}: run as the user of the edge or gateway that has \
                     this directory as --store"
                ),
            })
        })?;
        // To read beside a writer, its index of the log must be mapped; nothing is written.
        let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .or_else(|_| Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY))
            .map_err(|error| system(&path, &error))?;
        let number =
            |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let found = connection
            .busy_timeout(READER_PATIENCE)
            .and_then(|()| connection.pragma_update(None, "query_only", true))
            .and_then(|()| Ok((number("application_id")?, number("user_version")?)));
        match found {
            Ok((APPLICATION_ID, SCHEMA_VERSION)) => Ok(Self { connection, path }),
            Ok((APPLICATION_ID, version)) => Err(Error::Caller(format!(
                "{shown} has schema {version}, this longwire knows {SCHEMA_VERSION}: use the \
                 longwire that wrote it"
            ))),
            Ok(_) => Err(Error::Caller(format!("{shown} is no store of longwire"))),
            Err(error) => Err(Error::Caller(format!("{shown} is no store of longwire: {error}"))),
        }
    }

    /// The last decisions, oldest first, of services whose name contains `service`.
    ///
    /// # Errors
    /// [`Error::System`] for a file that cannot be read.
    pub fn last(&self, service: &str, limit: u32) -> Result<Vec<Entry>, Error> {
        let select = format!(
            "SELECT {COLUMNS} FROM history WHERE instr(service, ?) > 0 OR ? = '' \
             ORDER BY id DESC LIMIT ?"
        );
        let found = self.connection.prepare(&select).and_then(|mut select| {
            let limit = limit.min(MAX_ENTRIES);
            select.query_map(params![service, service, limit], entry)?.collect()
        });
        let mut entries: Vec<Entry> = found.map_err(|error| system(&self.path, &error))?;
        entries.reverse();
        Ok(entries)
    }

    /// The decisions of exchanges whose id begins so, oldest first, at most `limit`.
    ///
    /// # Errors
    /// [`Error::System`] for a file that cannot be read.
    pub fn of_exchange(&self, id: &str, limit: u32) -> Result<Vec<Entry>, Error> {
        let select = format!(
            "SELECT {COLUMNS} FROM history WHERE substr(exchange, 1, length(?)) = ? \
             ORDER BY id LIMIT ?"
        );
        let found = self.connection.prepare(&select).and_then(|mut select| {
            select.query_map(params![id, id, limit.min(MAX_ENTRIES)], entry)?.collect()
        });
        found.map_err(|error| system(&self.path, &error))
    }
}

pub(super) const COLUMNS: &str = "unix_s, exchange, direction, encoding, reason, decision, outcome";

/// Facts that cannot be read, of a row that a disk has damaged, are shown as not known.
pub(super) fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let direction: String = row.get(2)?;
    let (decision, outcome): (Option<String>, Option<String>) = (row.get(5)?, row.get(6)?);
    Ok(Entry {
        unix_s: row.get(0)?,
        exchange: row.get(1)?,
        direction: if direction == Direction::Request.name() {
            Direction::Request
        } else {
            Direction::Response
        },
        encoding: row.get(3)?,
        reason: row.get(4)?,
        decision: decision.and_then(|text| serde_json::from_str(&text).ok()),
        outcome: outcome.and_then(|text| serde_json::from_str(&text).ok()),
    })
}
