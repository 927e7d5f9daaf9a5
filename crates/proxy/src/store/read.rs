//! The history, read while another process may be writing it.

use std::path::{Path, PathBuf};
use std::{fs, io};

use record::decision::{Direction, Entry};
use rusqlite::types::Type;
use rusqlite::{Connection, OpenFlags, Params, Row, params};
use serde::de::DeserializeOwned;

use super::file::{
    APPLICATION_ID, FILE_NAME, READER_PATIENCE, SCHEMA_VERSION, is_damage, reason, system,
};
use crate::Error;

/// Decisions that one question can give.
const MAX_ENTRIES: u32 = 1_000_000;

/// What a question to the history gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Oldest first.
    pub entries: Vec<Entry>,
    /// Rows beside them that cannot be read: damaged, or in another version's form.
    pub unreadable: usize,
}

/// The history of one side.
#[derive(Debug)]
pub struct History {
    connection: Connection,
    path: PathBuf,
    columns: &'static str,
}

impl History {
    /// Opens the history in a directory that `--store` named.
    ///
    /// # Errors
    /// [`Error::Caller`] where there is none, or one of another version.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        let real = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let (path, shown) = (real.join(FILE_NAME), directory.join(FILE_NAME));
        let shown = shown.display();
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
        let open =
            |flags| Connection::open_with_flags(&path, flags | OpenFlags::SQLITE_OPEN_NOFOLLOW);
        let connection = open(OpenFlags::SQLITE_OPEN_READ_WRITE)
            .or_else(|_| open(OpenFlags::SQLITE_OPEN_READ_ONLY))
            .map_err(|error| refused(&path, &error))?;
        let number =
            |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let found = connection
            .busy_timeout(READER_PATIENCE)
            .and_then(|()| connection.pragma_update(None, "query_only", true))
            .and_then(|()| Ok((number("application_id")?, number("user_version")?)));
        match found {
            Ok((APPLICATION_ID, SCHEMA_VERSION)) => {
                // What is damaged is told of when it is asked.
                let has_requests = has_requests(&connection).unwrap_or(true);
                let columns = if has_requests { COLUMNS } else { COLUMNS_WITHOUT_REQUEST };
                Ok(Self { connection, path, columns })
            }
            Ok((APPLICATION_ID, version)) => Err(Error::Caller(format!(
                "{shown} has schema {version}, this longwire knows {SCHEMA_VERSION}: use the \
                 longwire that wrote it"
            ))),
            Ok(_) => Err(Error::Caller(format!("{shown} is no store of longwire"))),
            Err(error) => {
                let why = reason(&error);
                Err(Error::Caller(format!("{shown} is no store of longwire: {why}")))
            }
        }
    }

    /// The last decisions, oldest first, of services whose name contains `service`.
    ///
    /// # Errors
    /// [`Error::System`] for a file that cannot be read.
    pub fn last(&self, service: &str, limit: u32) -> Result<Found, Error> {
        self.since(service, 0.0, limit)
    }

    /// The same from a time on, in seconds since 1970.
    ///
    /// # Errors
    /// [`Error::System`] for a file that cannot be read.
    pub fn since(&self, service: &str, since: f64, limit: u32) -> Result<Found, Error> {
        let select = format!(
            "SELECT {} FROM history WHERE (instr(service, ?) > 0 OR ? = '') AND unix_s >= ? \
             ORDER BY id DESC",
            self.columns
        );
        let mut found = self.find(&select, params![service, service, since], limit)?;
        found.entries.reverse();
        Ok(found)
    }

    /// The decisions of exchanges whose id begins so, oldest first, at most `limit`.
    ///
    /// # Errors
    /// [`Error::System`] for a file that cannot be read.
    pub fn of_exchange(&self, id: &str, limit: u32) -> Result<Found, Error> {
        let select = format!(
            "SELECT {} FROM history WHERE substr(exchange, 1, length(?)) = ? ORDER BY id",
            self.columns
        );
        self.find(&select, params![id, id], limit)
    }

    /// The first so many rows that can be read, in the order of the question.
    fn find(&self, select: &str, asked: impl Params, limit: u32) -> Result<Found, Error> {
        let limit = limit.min(MAX_ENTRIES) as usize;
        let found = self.connection.prepare(select).and_then(|mut select| {
            let mut found = Found::default();
            let mut rows = select.query_map(asked, entry)?;
            while found.entries.len() < limit
                && let Some(row) = rows.next()
            {
                match row? {
                    Some(entry) => found.entries.push(entry),
                    None => found.unreadable += 1,
                }
            }
            Ok(found)
        });
        found.map_err(|error| refused(&self.path, &error))
    }
}

/// Why the file cannot be read; of one that is damaged, what to do.
fn refused(path: &Path, error: &rusqlite::Error) -> Error {
    if !is_damage(error) {
        return system(path, error);
    }
    let shown = path.display();
    let source = io::Error::other(format!(
        "{}: it is damaged: the edge or gateway that keeps it sets it aside when it starts again",
        reason(error)
    ));
    Error::System { doing: format!("read the history in {shown}"), source }
}

pub(super) const COLUMNS: &str =
    "unix_s, exchange, direction, encoding, reason, decision, outcome, request";
/// The same of a file that an older longwire has begun and no newer one has written.
const COLUMNS_WITHOUT_REQUEST: &str =
    "unix_s, exchange, direction, encoding, reason, decision, outcome, NULL";

/// Whether requests have a column.
pub(super) fn has_requests(connection: &Connection) -> rusqlite::Result<bool> {
    let select = "SELECT count(*) FROM pragma_table_info('history') WHERE name = 'request'";
    connection.query_row(select, [], |row| row.get::<_, i64>(0)).map(|count| count > 0)
}

/// A decision; none for a row that a disk has damaged, which stays until its room is wanted.
pub(super) fn entry(row: &Row<'_>) -> rusqlite::Result<Option<Entry>> {
    match read(row) {
        Ok(entry) => Ok(Some(entry)),
        // Of the file as a whole.
        Err(error) if error.sqlite_error_code().is_some() => Err(error),
        Err(_) => Ok(None),
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let direction: String = row.get(2)?;
    let all = [Direction::Request, Direction::Response];
    let direction = all.into_iter().find(|one| one.name() == direction);
    Ok(Entry {
        unix_s: row.get(0)?,
        exchange: row.get(1)?,
        direction: direction.ok_or(rusqlite::Error::InvalidQuery)?,
        encoding: row.get(3)?,
        reason: row.get(4)?,
        decision: facts(row, 5)?,
        outcome: facts(row, 6)?,
        request: facts(row, 7)?,
    })
}

/// What stands in a column as JSON, if anything does.
fn facts<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    let facts = text.map(|text| serde_json::from_str(&text)).transpose();
    facts.map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
    })
}
