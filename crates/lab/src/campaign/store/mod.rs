//! The results of a campaign on disk: SQLite, one transaction a run, so that whatever ends the
//! campaign, finished runs are kept.

mod figures;
mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use record::campaign::{Advice, Figure, Measured, Network, Reference, Run, Setting};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::plan::Plan;
use crate::error::{Error, Result};

/// Changes whenever a reader of the old schema would be wrong about the new one.
const SCHEMA_VERSION: i64 = 1;
/// "lwlb": tells our files from other SQLite databases.
const APPLICATION_ID: i64 = 0x6c77_6c62;
const SCHEMA: &str = include_str!("schema.sql");
/// The name of the file in a campaign's directory.
pub(crate) const FILE_NAME: &str = "results.sqlite";

/// An open database.
pub(crate) struct Store {
    connection: Connection,
    path: PathBuf,
    /// Version of longwire, written with each run.
    version: String,
    /// The directory, locked while we write; none when we only read.
    _lock: Option<File>,
}

/// What surrounds the cells, as stored.
pub(crate) struct Frame {
    pub(crate) setting: Setting,
    pub(crate) networks: Vec<Network>,
    pub(crate) references: Vec<Reference>,
    pub(crate) advice: Vec<Advice>,
    pub(crate) figures: Vec<Figure>,
}

/// A run of the plan: index of its cell and number from 1.
pub(crate) type RunKey = (usize, u32);

impl Store {
    /// Opens the results of a plan in a directory, or begins them.
    ///
    /// # Errors
    /// [`Error::Caller`] for results of another plan, from another version or of a campaign under
    /// way; [`Error::System`] for a disk that is full or a file that cannot be used.
    pub(crate) fn open(directory: &Path, plan: &Plan, version: &str) -> Result<Self> {
        std::fs::create_dir_all(directory).map_err(|source| Error::System {
            doing: format!("make {}", directory.display()),
            source,
        })?;
        let lock = Some(lock(directory)?);
        let path = directory.join(FILE_NAME);
        let is_new = !path.exists();
        let connection = Connection::open(&path).map_err(|error| system(&path, &error))?;
        let mut store = Self { connection, path, version: version.to_string(), _lock: lock };
        if is_new {
            store.try_with(|store| store.begin(plan))?;
        } else {
            check_version(&store.connection, &store.path)?;
            store.check_plan(plan)?;
        }
        store.try_with(|store| {
            // Nothing of a finished run is lost when the program dies; with the power the last.
            store.connection.pragma_update(None, "journal_mode", "WAL")?;
            store.connection.pragma_update(None, "synchronous", "NORMAL")?;
            store.connection.pragma_update(None, "foreign_keys", true)
        })?;
        Ok(store)
    }

    /// Opens finished or unfinished results to read them.
    ///
    /// # Errors
    /// [`Error::Caller`] when there are none, or of another version.
    pub(crate) fn open_existing(directory: &Path) -> Result<Self> {
        let path = directory.join(FILE_NAME);
        if !path.exists() {
            let shown = directory.display();
            return Err(Error::Caller(format!(
                "no {FILE_NAME} in {shown}: give the directory of a campaign (lab run --out)"
            )));
        }
        let connection = Connection::open(&path).map_err(|error| system(&path, &error))?;
        check_version(&connection, &path)?;
        Ok(Self { connection, path, version: String::new(), _lock: None })
    }

    fn begin(&mut self, plan: &Plan) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        transaction.execute_batch(SCHEMA)?;
        put_meta(&transaction, "plan", &plan.text)?;
        put_meta(&transaction, "selection", &selection(plan))?;
        let mut insert = transaction.prepare(
            "INSERT INTO cells (id, name, network, server, service, way, settings, groups, \
             repetitions) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?;
        for (id, cell) in plan.cells.iter().enumerate() {
            let network = &plan.networks[cell.network].network.name;
            let server = &plan.servers[cell.server].name;
            let (settings, groups) = (json(&cell.settings), json(&cell.groups));
            let (way, repetitions) = (cell.way.name(), cell.repetitions);
            insert.execute(params![
                id,
                cell.name,
                network,
                server,
                cell.service,
                way,
                settings,
                groups,
                repetitions
            ])?;
        }
        drop(insert);
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
        transaction.commit()
    }

    fn check_plan(&self, plan: &Plan) -> Result<()> {
        let is_same = |key: &str, now: &str| -> rusqlite::Result<bool> {
            Ok(meta(&self.connection, key)?.is_some_and(|then| then == now))
        };
        let same = is_same("plan", &plan.text)
            .and_then(|plan_same| Ok(plan_same && is_same("selection", &selection(plan))?));
        match same.map_err(|error| system(&self.path, &error))? {
            true => Ok(()),
            false => Err(Error::Caller(format!(
                "{} holds results of another plan, seed or choice of cells: give another --out, \
                 or remove it",
                self.path.display()
            ))),
        }
    }

    /// Runs that need not be done again: all that did not fail; of those that are flagged none when
    /// they are to be done `again`.
    pub(crate) fn finished(&self, again: bool) -> Result<BTreeSet<RunKey>> {
        self.read_with(|connection| {
            let sql = "SELECT cell, repetition FROM runs \
                       WHERE failure IS NULL AND (flagged IS NULL OR NOT ?)";
            let mut select = connection.prepare(sql)?;
            let rows = select.query_map([again], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })
    }

    /// The frame as it was last written; none in new results.
    pub(crate) fn setting(&self) -> Result<Option<Setting>> {
        let text = self.read_with(|connection| meta(connection, "setting"))?;
        text.map(|text| parse(&self.path, &text)).transpose()
    }

    /// Writes what surrounds the cells, in place of what was there.
    pub(crate) fn put_frame(&mut self, frame: &Frame) -> Result<()> {
        self.try_with(|store| {
            let transaction = store.connection.transaction()?;
            put_meta(&transaction, "setting", &json(&frame.setting))?;
            put_meta(&transaction, "networks", &json(&frame.networks))?;
            put_meta(&transaction, "references", &json(&frame.references))?;
            put_meta(&transaction, "advice", &json(&frame.advice))?;
            put_meta(&transaction, "figures", &json(&frame.figures))?;
            transaction.commit()
        })
    }

    /// Writes a run, in place of an earlier attempt.
    pub(crate) fn put_run(&mut self, cell: usize, run: &Run) -> Result<()> {
        self.try_with(|store| {
            let version = store.version.clone();
            let transaction = store.connection.transaction()?;
            let delete = "DELETE FROM runs WHERE cell = ? AND repetition = ?";
            transaction.execute(delete, params![cell, run.repetition])?;
            let id = insert_run(&transaction, cell, run, &version)?;
            for (is_warm_up, pass) in [(true, &run.warm_up), (false, &run.measured)] {
                for (number, measured) in pass.iter().enumerate() {
                    insert_exchange(&transaction, id, is_warm_up, number, measured)?;
                }
            }
            if let Some(flight) = &run.flight {
                let insert = "INSERT INTO packets (run, flight) VALUES (?, ?)";
                transaction.execute(insert, params![id, json(flight)])?;
            }
            if !run.decisions.is_empty() {
                transaction.execute(CREATE_DECISIONS, [])?;
                let insert = "INSERT INTO decisions (run, list) VALUES (?, ?)";
                transaction.execute(insert, params![id, json(&run.decisions)])?;
            }
            transaction.commit()
        })
    }

    fn try_with(&mut self, work: impl FnOnce(&mut Self) -> rusqlite::Result<()>) -> Result<()> {
        work(self).map_err(|error| system(&self.path, &error))
    }

    fn read_with<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        work(&self.connection).map_err(|error| system(&self.path, &error))
    }
}

/// Made when first needed: results of plans without decisions have no such table.
const CREATE_DECISIONS: &str = "CREATE TABLE IF NOT EXISTS decisions (
    run INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    list TEXT NOT NULL
) STRICT";

fn insert_run(
    transaction: &Transaction<'_>,
    cell: usize,
    run: &Run,
    version: &str,
) -> rusqlite::Result<i64> {
    let [client, server] = &run.congestion_control;
    // SQLite has no unsigned numbers: the seed's bits are kept.
    let seed = run.seed.cast_signed();
    transaction.prepare_cached(
        "INSERT INTO runs (cell, repetition, attempt, seed, started_unix_s, elapsed_s, parallel, \
         up, down, lateness, lateness_p99_us, processor_wait_s, congestion_client, \
         congestion_server, version, flagged, failure) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        cell, run.repetition, run.attempt, seed, run.started_unix_s, run.elapsed_s, run.parallel,
        json(&run.up), json(&run.down), json(&run.lateness), run.lateness.p99_us,
        run.processor_wait_s, client, server, version, run.flagged, run.failure,
    ])?;
    Ok(transaction.last_insert_rowid())
}

fn insert_exchange(
    transaction: &Transaction<'_>,
    run: i64,
    is_warm_up: bool,
    number: usize,
    measured: &Measured,
) -> rusqlite::Result<()> {
    let Measured { exchange, up, down, flights } = measured;
    transaction
        .prepare_cached(
            "INSERT INTO exchanges VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            run,
            is_warm_up,
            number,
            exchange.name,
            exchange.start_s,
            exchange.elapsed_s,
            exchange.body_bytes,
            exchange.status,
            exchange.error,
            exchange.censored,
            exchange.connections,
            up.packets,
            up.bytes,
            up.retransmitted,
            down.packets,
            down.bytes,
            down.retransmitted,
            flights,
        ])?;
    Ok(())
}

/// What of the plan was chosen on the command line.
fn selection(plan: &Plan) -> String {
    let cells: Vec<(&str, u32)> =
        plan.cells.iter().map(|cell| (cell.name.as_str(), cell.repetitions)).collect();
    json(&(plan.seed, plan.quick, cells))
}

fn meta(connection: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT value FROM meta WHERE key = ?";
    connection.query_row(sql, [key], |row| row.get(0)).optional()
}

/// A second campaign that writes to the same place would measure everything twice. The lock is on
/// the directory: closing another descriptor of the database would drop the locks that SQLite has.
fn lock(directory: &Path) -> Result<File> {
    let shown = directory.display();
    let failed = |source| Error::System { doing: format!("lock {shown}"), source };
    let file = File::open(directory).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Caller(format!(
            "a campaign under way writes to {shown}: wait for its end, or give another --out"
        ))),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

fn put_meta(connection: &Connection, key: &str, value: &str) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)";
    connection.execute(sql, [key, value]).map(drop)
}

fn check_version(connection: &Connection, path: &Path) -> Result<()> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let found = number("application_id").and_then(|id| Ok((id, number("user_version")?)));
    let shown = path.display();
    match found {
        Ok((APPLICATION_ID, SCHEMA_VERSION)) => Ok(()),
        Ok((APPLICATION_ID, version)) => Err(Error::Caller(format!(
            "{shown} has schema version {version}, this longwire knows {SCHEMA_VERSION}: use the \
             longwire that wrote it, or give another --out"
        ))),
        Ok(_) | Err(_) => Err(Error::Caller(format!(
            "{shown} is no results file of longwire: give another --out"
        ))),
    }
}

fn json(value: &impl serde::Serialize) -> String {
    // Maps have texts as keys and numbers are finite: nothing of ours fails to be written.
    serde_json::to_string(value).unwrap_or_default()
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| damaged(path, &error))
}

fn damaged(path: &Path, error: &dyn Display) -> Error {
    Error::Caller(format!("{} is damaged: {error}; give another --out", path.display()))
}

fn system(path: &Path, error: &rusqlite::Error) -> Error {
    let remedy = match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => "; make room and run the same command again",
        Some(rusqlite::ErrorCode::DatabaseBusy) => "; is another campaign writing there?",
        _ => "",
    };
    Error::System {
        doing: format!("keep results in {}", path.display()),
        source: std::io::Error::other(format!("{error}{remedy}")),
    }
}
