//! What outlives the process: entities, in SQLite. One commit for all that came while the one
//! before was written; whoever waits for it is told when the disk has it.

#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::types::Type;
use rusqlite::{Connection, Row, Transaction, params};
use tokio::sync::oneshot;

use super::core::Change;
use super::model::Entity;
use super::uddi;
use crate::Error;

/// Name of the file in its directory.
const FILE: &str = "registry.sqlite";
/// Version of the schema.
const VERSION: i64 = 1;
/// Pause before changes are tried again that could not be written, as on a full disk.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// How long another process that has the file is waited for.
const BUSY_PATIENCE: Duration = Duration::from_secs(2);
/// Most requests whose changes are in one commit.
const MAX_BATCH: usize = 1024;
/// Most requests whose changes wait for the disk: then no more are taken.
pub(crate) const MAX_WAITING: usize = 4096;

/// What the writer is told.
enum Task {
    Write(Vec<Change>, oneshot::Sender<()>),
    End,
}

/// See the module.
pub(crate) struct Store {
    tasks: Sender<Task>,
    waiting: Arc<AtomicUsize>,
    /// What cannot be written is not tried again.
    is_ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Store {
    /// Opens the store in a directory, which is made where it is not there, and reads it.
    ///
    /// # Errors
    /// [`Error::Caller`] where it cannot be opened, or has what is not known.
    pub(crate) fn open(directory: &Path) -> Result<(Self, Vec<Entity>), Error> {
        let path = directory.join(FILE);
        let shown = path.display();
        let broken = |error: &dyn std::fmt::Display| {
            Error::Caller(format!("cannot open the store {shown}: {error}"))
        };
        fs::create_dir_all(directory).map_err(|error| broken(&error))?;
        let mut connection = Connection::open(&path).map_err(|error| broken(&error))?;
        prepare(&mut connection).map_err(|error| broken(&error))?;
        let entities = read(&connection).map_err(|error| broken(&error))?;
        // bound: MAX_WAITING, which who publishes keeps to.
        let (tasks, inbox) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let is_ending = Arc::new(AtomicBool::new(false));
        let (count, end) = (waiting.clone(), is_ending.clone());
        let thread = std::thread::Builder::new()
            .name("registry-store".to_owned())
            .spawn(move || run(connection, &inbox, &count, &end))
            .map_err(|error| broken(&error))?;
        Ok((Self { tasks, waiting, is_ending, thread: Some(thread) }, entities))
    }

    /// Whether no more is taken, since the disk does not keep up.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) >= MAX_WAITING
    }

    /// Writes changes, all or none, in the order in which they are given. The answer comes when the
    /// disk has them; it does not where the store ends before.
    pub(crate) fn write(&self, changes: Vec<Change>) -> oneshot::Receiver<()> {
        let (tell, done) = oneshot::channel();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // The writer ends after this side only.
        let _ = self.tasks.send(Task::Write(changes, tell));
        done
    }

    /// Waits until what was given is written, or cannot be: what was not answered is lost then.
    pub(crate) fn finish(&mut self) {
        self.is_ending.store(true, Ordering::Relaxed);
        let _ = self.tasks.send(Task::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.finish();
    }
}

fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_PATIENCE)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // Each commit waits for the disk: what is published is not lost with the power either.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    let transaction = connection.transaction()?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match version {
        0 => {
            transaction.execute_batch(include_str!("schema.sql"))?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        VERSION => {}
        _ => {
            let what = format!("it has version {version}, and this longwire knows {VERSION}");
            return Err(rusqlite::Error::ToSqlConversionFailure(what.into()));
        }
    }
    transaction.commit()
}

fn run(
    mut connection: Connection,
    inbox: &Receiver<Task>,
    waiting: &AtomicUsize,
    is_ending: &AtomicBool,
) {
    let mut is_over = false;
    while !is_over {
        let Ok(Task::Write(changes, tell)) = inbox.recv() else { return };
        let mut batch = vec![(changes, tell)];
        while batch.len() < MAX_BATCH {
            match inbox.try_recv() {
                Ok(Task::Write(changes, tell)) => batch.push((changes, tell)),
                Ok(Task::End) => is_over = true,
                Err(_) => break,
            }
        }
        while let Err(error) = write(&mut connection, &batch) {
            tracing::error!(%error, "the store cannot be written: answers wait for it");
            if is_ending.load(Ordering::Relaxed) {
                return;
            }
            // sleep: nobody is told when a disk has room again.
            std::thread::sleep(RETRY_PAUSE);
        }
        waiting.fetch_sub(batch.len(), Ordering::Relaxed);
        for (_, tell) in batch {
            // Who asked may have gone.
            let _ = tell.send(());
        }
    }
}

fn write(
    connection: &mut Connection,
    batch: &[(Vec<Change>, oneshot::Sender<()>)],
) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for change in batch.iter().flat_map(|(changes, _)| changes) {
        apply(&transaction, change)?;
    }
    transaction.commit()
}

fn apply(db: &Transaction<'_>, change: &Change) -> rusqlite::Result<()> {
    match change {
        Change::Put(entity) => db
            .prepare_cached("INSERT OR REPLACE INTO entity VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")?
            .execute(params![
                &*entity.key,
                uddi::kind_number(entity.kind()),
                &*entity.owner,
                ms(entity.created),
                ms(entity.modified),
                ms(entity.modified_below),
                entity.lease.map(ms),
                entity.until.map(ms),
                uddi::document(entity).into_bytes(),
            ])
            .map(drop),
        Change::Removed(key) => {
            db.prepare_cached("DELETE FROM entity WHERE key = ?")?.execute([&**key]).map(drop)
        }
    }
}

fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn read(db: &Connection) -> rusqlite::Result<Vec<Entity>> {
    let mut statement = db.prepare("SELECT * FROM entity ORDER BY kind, key")?;
    let mut rows = statement.query([])?;
    let mut entities = Vec::new();
    while let Some(row) = rows.next()? {
        entities.push(entity(row)?);
    }
    Ok(entities)
}

fn entity(row: &Row<'_>) -> rusqlite::Result<Entity> {
    let time = |column: &str| row.get(column).map(Duration::from_millis);
    let maybe = |column: &str| row.get::<_, Option<u64>>(column);
    let (key, owner): (String, String) = (row.get("key")?, row.get("owner")?);
    let document: Vec<u8> = row.get("document")?;
    let damaged = |what: String| {
        let line = format!("entity {key}: {what}");
        rusqlite::Error::FromSqlConversionFailure(0, Type::Blob, line.into())
    };
    let text = String::from_utf8(document).map_err(|error| damaged(error.to_string()))?;
    let body = uddi::of_document(row.get("kind")?, &text).map_err(|what| damaged(what.line))?;
    Ok(Entity {
        key: key.as_str().into(),
        owner: owner.into(),
        created: time("created_ms")?,
        modified: time("modified_ms")?,
        modified_below: time("modified_below_ms")?,
        lease: maybe("lease_ms")?.map(Duration::from_millis),
        until: maybe("until_ms")?.map(Duration::from_millis),
        body,
    })
}
