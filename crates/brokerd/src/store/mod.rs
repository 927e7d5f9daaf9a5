//! What outlives the process: changes of the broker, in SQLite. One commit for all that came while
//! the one before was written; whoever waits for it is told when the disk has it.

mod read;
mod write;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use broker::{Change, ClientKey, Protocol, Ticket};
use ring::rand::{SecureRandom as _, SystemRandom};
use rusqlite::Connection;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::error::Error;

/// Name of the file in its directory.
const FILE: &str = "broker.sqlite";
/// Name of the file with what makes addresses hard to guess.
const SEED_FILE: &str = "broker.seed";
/// Version of the schema.
const VERSION: i64 = 1;
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
pub(crate) struct Store {
    tasks: Sender<Task>,
    done: std::cell::RefCell<Option<UnboundedReceiver<Ticket>>>,
    thread: std::cell::RefCell<Option<JoinHandle<()>>>,
}

/// Tickets of what has been written.
pub(crate) struct Done {
    tickets: std::cell::RefCell<UnboundedReceiver<Ticket>>,
}

impl Store {
    /// Opens the store in a directory, which is made where it is not there, and reads it.
    pub(crate) fn open(directory: &Path) -> Result<(Self, Vec<Change>), Error> {
        let path = directory.join(FILE);
        let shown = path.display();
        let broken = |error: &dyn std::fmt::Display| {
            Error::System(format!("cannot open the store {shown}: {error}"))
        };
        fs::create_dir_all(directory).map_err(|error| broken(&error))?;
        let mut connection = Connection::open(&path).map_err(|error| broken(&error))?;
        prepare(&mut connection).map_err(|error| broken(&error))?;
        let changes = read::read(&connection).map_err(|error| broken(&error))?;
        // bound: one batch, since the broker gives the next when it has heard of the last.
        let (tasks, inbox) = channel();
        // bound: as many as batches, of which there is one at a time.
        let (tell, done) = unbounded_channel();
        let thread = std::thread::Builder::new()
            .name("broker-store".to_owned())
            .spawn(move || run(connection, &inbox, &tell))
            .map_err(|error| broken(&error))?;
        let done = Some(done).into();
        Ok((Self { tasks, done, thread: Some(thread).into() }, changes))
    }

    /// Writes changes, all or none, again and again until the disk has them.
    pub(crate) fn write(&self, ticket: Ticket, changes: Vec<Change>) {
        // The writer ends after this side only.
        let _ = self.tasks.send(Task::Write(ticket, changes));
    }

    /// Where it is told what has been written; can be taken once.
    pub(crate) fn done(&self) -> Done {
        // bound: nothing is ever sent.
        let (_, empty) = unbounded_channel();
        Done { tickets: self.done.borrow_mut().take().unwrap_or(empty).into() }
    }

    /// Waits until what was given is written.
    pub(crate) async fn finish(&self) {
        let _ = self.tasks.send(Task::End);
        let thread = self.thread.borrow_mut().take();
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

impl Done {
    /// The next.
    pub(crate) async fn next(&self) -> Option<Ticket> {
        std::future::poll_fn(|context| self.tickets.borrow_mut().poll_recv(context)).await
    }
}

fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_PATIENCE)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // Each commit waits for the disk: what is acknowledged is not lost with the power either.
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

fn run(mut connection: Connection, inbox: &Receiver<Task>, tell: &UnboundedSender<Ticket>) {
    while let Ok(Task::Write(ticket, changes)) = inbox.recv() {
        while let Err(error) = write::write(&mut connection, &changes) {
            tracing::error!(%error, "the store cannot be written: acknowledgements wait for it");
            // sleep: nobody is told when a disk has room again.
            std::thread::sleep(RETRY_PAUSE);
        }
        if tell.send(ticket).is_err() {
            return;
        }
    }
}

/// A client as a row has it.
fn name_of(client: &ClientKey) -> String {
    format!("{}:{}", client.protocol, client.name)
}

/// The client of a row; `None` for one of a protocol that is not known.
fn client_of(name: &str) -> Option<ClientKey> {
    let (protocol, name) = name.split_once(':')?;
    Some(ClientKey { protocol: Protocol::of_name(protocol)?, name: name.into() })
}

/// A number that nobody foresees.
pub(crate) fn random() -> Result<u64, Error> {
    let mut bytes = [0; 8];
    let broken = |_| Error::System("the system has no random numbers".to_owned());
    SystemRandom::new().fill(&mut bytes).map_err(broken)?;
    Ok(u64::from_be_bytes(bytes))
}

/// The number of a store by which addresses of subscriptions are made, the same at each start.
pub(crate) fn seed(directory: &Path) -> Result<u64, Error> {
    let path = directory.join(SEED_FILE);
    let shown = path.display();
    let broken = |error| Error::System(format!("cannot keep {shown}: {error}"));
    match fs::read(&path) {
        Ok(bytes) => {
            let bytes = bytes.first_chunk().ok_or_else(|| {
                Error::System(format!("{shown} has less than 8 bytes: remove it"))
            })?;
            Ok(u64::from_be_bytes(*bytes))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let seed = random()?;
            let mut file = fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)
                .map_err(broken)?;
            file.write_all(&seed.to_be_bytes()).map_err(broken)?;
            file.sync_all().map_err(broken)?;
            Ok(seed)
        }
        Err(error) => Err(broken(error)),
    }
}

#[cfg(test)]
mod tests;
