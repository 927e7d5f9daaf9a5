//! What outlives the process: changes of the machine, in SQLite. One commit for all that came while
//! the one before was written; whoever waits for it is told when the disk has it.

mod read;
#[cfg(test)]
mod tests;
mod write;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::machine::{Change, Ticket};
use crate::Error;

/// Name of the file in its directory.
const FILE: &str = "messages.sqlite";
/// Version of the schema.
const VERSION: i64 = 2;
/// Pause before changes are tried again that could not be written, as on a full disk.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// How long another process that has the file is waited for.
const BUSY_PATIENCE: Duration = Duration::from_secs(2);

/// What the writer is told.
enum Task {
    Write(Ticket, Vec<Change>),
    End,
}

/// See the module.
pub(super) struct Store {
    tasks: Sender<Task>,
    /// What cannot be written is not tried again.
    is_ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A store that was opened.
pub(super) struct Opened {
    pub(super) store: Store,
    /// What it has, as the changes that lead to it.
    pub(super) changes: Vec<Change>,
    /// Tickets of what has been written since.
    pub(super) done: UnboundedReceiver<Ticket>,
}

impl Store {
    /// Opens the store of a node in a directory, which is made where it is not there, and reads it.
    ///
    /// # Errors
    /// [`Error::Caller`] where it cannot be opened, is another node's, or has what is not known.
    pub(super) fn open(directory: &Path, node: &str) -> Result<Opened, Error> {
        let path = directory.join(FILE);
        let shown = path.display();
        let broken = |error: &dyn std::fmt::Display| {
            Error::Caller(format!("cannot open the store {shown}: {error}"))
        };
        fs::create_dir_all(directory).map_err(|error| broken(&error))?;
        let mut connection = Connection::open(&path).map_err(|error| broken(&error))?;
        let owner = prepare(&mut connection, node).map_err(|error| broken(&error))?;
        if owner != node {
            return Err(Error::Caller(format!(
                "the store {shown} is of node '{owner}', not '{node}'; name another directory"
            )));
        }
        let changes = read::read(&connection).map_err(|error| broken(&error))?;
        // bound: one batch, since the machine gives the next when it has heard of the last.
        let (tasks, inbox) = channel();
        let is_ending = Arc::new(AtomicBool::new(false));
        let end = is_ending.clone();
        // bound: as many as batches, of which there is one at a time.
        let (tell, done) = unbounded_channel();
        let thread = std::thread::Builder::new()
            .name("message-store".to_owned())
            .spawn(move || run(connection, &inbox, &tell, &end))
            .map_err(|error| broken(&error))?;
        Ok(Opened { store: Self { tasks, is_ending, thread: Some(thread) }, changes, done })
    }

    /// Writes changes, all or none, again and again until the disk has them.
    pub(super) fn write(&self, ticket: Ticket, changes: Vec<Change>) {
        // The writer ends after this side only.
        let _ = self.tasks.send(Task::Write(ticket, changes));
    }

    /// Waits until what was given is written, or cannot be: what was not answered is lost then.
    pub(super) async fn finish(mut self) {
        self.is_ending.store(true, Ordering::Relaxed);
        let _ = self.tasks.send(Task::End);
        if let Some(thread) = self.thread.take() {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

/// Makes the tables where they are not there; the node whose store it is.
fn prepare(connection: &mut Connection, node: &str) -> rusqlite::Result<String> {
    connection.busy_timeout(BUSY_PATIENCE)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // Each commit waits for the disk: what is accepted is not lost with the power either.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    let transaction = connection.transaction()?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match version {
        0 => {
            transaction.execute_batch(include_str!("schema.sql"))?;
            transaction.execute("INSERT INTO node VALUES (?, 0, 0)", [node])?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        VERSION => {}
        _ => {
            let what = format!("it has version {version}, and this longwire knows {VERSION}");
            return Err(rusqlite::Error::ToSqlConversionFailure(what.into()));
        }
    }
    let owner = transaction.query_row("SELECT name FROM node", [], |row| row.get(0)).optional()?;
    transaction.commit()?;
    Ok(owner.unwrap_or_default())
}

fn run(
    mut connection: Connection,
    inbox: &Receiver<Task>,
    tell: &UnboundedSender<Ticket>,
    is_ending: &AtomicBool,
) {
    while let Ok(Task::Write(ticket, changes)) = inbox.recv() {
        while let Err(error) = write::write(&mut connection, &changes) {
            tracing::error!(%error, "the store cannot be written: answers wait for it");
            if is_ending.load(Ordering::Relaxed) {
                return;
            }
            // sleep: nobody is told when a disk has room again.
            std::thread::sleep(RETRY_PAUSE);
        }
        if tell.send(ticket).is_err() {
            return;
        }
    }
}
