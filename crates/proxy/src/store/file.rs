//! The file: opened, checked, set aside when it is no good.

use std::fs::{self, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use record::decision::Entry;
use ring::digest::{SHA256, digest};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

use super::StoreSettings;
use super::dictionaries::{self, Dictionary};
use super::read::{self, COLUMNS};
use super::secret;
use crate::{Error, strict};

/// Changes whenever a reader of the old schema would be wrong about the new one.
pub(super) const SCHEMA_VERSION: i64 = 1;
/// "lwst": tells our files from other SQLite databases.
pub(super) const APPLICATION_ID: i64 = 0x6c77_7374;
/// The file's name in its directory.
pub(super) const FILE_NAME: &str = "longwire.sqlite";
const SCHEMA: &str = include_str!("schema.sql");
/// As SQLite opens files by itself, but through no link, and by no URI.
const OPEN: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE
    .union(OpenFlags::SQLITE_OPEN_CREATE)
    .union(OpenFlags::SQLITE_OPEN_NO_MUTEX)
    .union(OpenFlags::SQLITE_OPEN_NOFOLLOW);
/// The file itself and what SQLite has beside it.
const BESIDE: [&str; 4] = ["", "-wal", "-shm", "-journal"];
/// Files set aside that are kept; a further one takes the place of the first.
const MAX_ASIDE: usize = 3;
/// How long a statement waits for one who reads at the same time.
pub(super) const READER_PATIENCE: Duration = Duration::from_secs(1);
/// What the write-ahead log is cut to once its pages are in the file.
const LOG_BYTES: i64 = 4 << 20;
/// Most states that are kept, by name; the oldest go.
const MAX_STATES: i64 = 64;

/// Most outcomes that are learned from again at a start.
const MAX_UNSAVED: usize = 10_000;

/// A store's file, open to write.
#[derive(Debug)]
pub(super) struct File {
    pub(super) connection: Connection,
    place: StoreSettings,
    /// The directory, locked: a second writer would undo what the first learned.
    lock: fs::File,
}

/// Why a file cannot be gone on with.
enum Unfit {
    /// It is no good; the words say why.
    Bad(String),
    /// The system refused.
    System(rusqlite::Error),
}

impl Drop for File {
    fn drop(&mut self) {
        // A process that is just being started has the descriptor too, until it is another program.
        let _ = self.lock.unlock();
    }
}

impl From<rusqlite::Error> for Unfit {
    fn from(error: rusqlite::Error) -> Self {
        if is_damage(&error) { Self::Bad(reason(&error)) } else { Self::System(error) }
    }
}

/// Whether an error says that the file itself is no good. All statements are ours: one that is not
/// understood is at odds with a schema whose text was damaged.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(error, rusqlite::Error::SqlInputError { .. })
        || matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
}

/// What SQLite says, in a line: of a damaged schema it quotes the rest, and of a statement all.
pub(super) fn reason(error: &rusqlite::Error) -> String {
    let text = match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    };
    let first = text.lines().next().unwrap_or_default().trim_end();
    first.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

impl File {
    /// Opens the file of a place, or begins one; a bad one is set aside. None where another process
    /// has it.
    pub(super) fn open(place: &StoreSettings) -> Result<Option<Self>, Error> {
        let directory = &place.directory;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|error| unusable(directory, &error))?;
        let Some(lock) = lock(directory)? else { return Ok(None) };
        strict::check_directory(&lock, directory)?;
        // SQLite is to follow no link, and counts those above the directory too.
        let real = directory.canonicalize().map_err(|error| unusable(directory, &error))?;
        let place = &StoreSettings { directory: real, ..place.clone() };
        let path = place.directory.join(FILE_NAME);
        let connection = if is_emptied(&path) {
            begin_anew(&path, "nothing is left in it")?
        } else {
            begin(&path)?;
            match connect(&path) {
                Ok(connection) => connection,
                Err(Unfit::System(error)) => return Err(system(&path, &error)),
                Err(Unfit::Bad(why)) => begin_anew(&path, &why)?,
            }
        };
        Ok(Some(Self { connection, place: place.clone(), lock }))
    }

    /// Where it is, and its bounds.
    pub(super) fn place(&self) -> &StoreSettings {
        &self.place
    }

    /// Drops what is made of messages and older than the place's bound: rows of the history,
    /// dictionaries, and files that were set aside. What was learned stays: it is numbers.
    pub(super) fn drop_old(&self, unix_s: f64) -> rusqlite::Result<()> {
        let before = unix_s - self.place.age.as_secs_f64();
        let history = "DELETE FROM history WHERE unix_s < ?";
        let rows = self.connection.prepare_cached(history)?.execute([before])?;
        let dictionaries = dictionaries::drop_older(&self.connection, before)?;
        let files = self.drop_aside(before);
        if rows + dictionaries + files > 0 {
            tracing::info!(rows, dictionaries, files, "dropped from the store: over store_age");
            // It is in the log yet. One who reads at the same time may hold that up until the next.
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        }
        Ok(())
    }

    /// Drops files set aside that were last written before an instant; how many.
    fn drop_aside(&self, before_unix_s: f64) -> usize {
        let is_old = |path: &Path| {
            let written = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
            let since = written.ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            since.is_some_and(|since| since.as_secs_f64() < before_unix_s)
        };
        let path = self.place.directory.join(FILE_NAME);
        let all = (1..=MAX_ASIDE).flat_map(|number| BESIDE.map(|end| (number, end)));
        let all = all.map(|(number, end)| aside(&path, number, end));
        all.filter(|path| is_old(path) && fs::remove_file(path).is_ok()).count()
    }

    /// Goes on with a new file, for this one turned out to be damaged.
    pub(super) fn replace(&mut self, why: &str) -> Result<(), Error> {
        let path = self.place.directory.join(FILE_NAME);
        // A connection to nothing, so that the old file is closed before it is renamed.
        self.connection = Connection::open_in_memory().map_err(|error| system(&path, &error))?;
        self.connection = begin_anew(&path, why)?;
        Ok(())
    }

    /// What was last saved under a name; none if it was damaged since.
    pub(super) fn state(&self, name: &str) -> Option<Vec<u8>> {
        let select = "SELECT bytes, digest FROM state WHERE name = ?";
        let found = self.connection.query_row(select, [name], |row| {
            Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, Vec<u8>>(1)?))
        });
        let why = match found.optional() {
            Ok(None) => return None,
            Ok(Some((bytes, reported))) if digest(&SHA256, &bytes).as_ref() == reported => {
                return Some(bytes);
            }
            Ok(Some(_)) => "its digest is another".to_owned(),
            Err(error) => reason(&error),
        };
        tracing::warn!(name, why, "what was learned is damaged: beginning without it");
        None
    }

    /// Dictionaries that are sound, and how many are not.
    pub(super) fn dictionaries(&self) -> (Vec<Dictionary>, usize) {
        dictionaries::load(&self.connection).unwrap_or_else(|error| {
            tracing::warn!(
                why = reason(&error),
                "dictionaries cannot be read: beginning without them"
            );
            (Vec::new(), 0)
        })
    }

    /// Decisions whose outcome came after what was learned was last saved, oldest first.
    pub(super) fn unsaved(&self) -> Vec<Entry> {
        let newest = "SELECT * FROM history WHERE unsaved ORDER BY id DESC LIMIT ?";
        let select = format!("SELECT {COLUMNS} FROM ({newest}) ORDER BY id");
        let found = self
            .connection
            .prepare(&select)
            .and_then(|mut select| select.query_map([MAX_UNSAVED], read::entry)?.collect());
        let all: Vec<Option<Entry>> = found.unwrap_or_else(|error| {
            tracing::warn!(why = reason(&error), "the last outcomes cannot be read");
            Vec::new()
        });
        let unreadable = all.iter().filter(|entry| entry.is_none()).count();
        if unreadable > 0 {
            tracing::warn!(unreadable, "of the last outcomes some cannot be read: left out");
        }
        all.into_iter().flatten().collect()
    }

    /// Puts a state in place of what has its name; it holds what all outcomes so far have taught.
    pub(super) fn put_state(&self, name: &str, unix_s: f64, bytes: &[u8]) -> rusqlite::Result<()> {
        let put = "INSERT OR REPLACE INTO state (name, saved_unix_s, digest, bytes) \
                   VALUES (?, ?, ?, ?)";
        let digest = digest(&SHA256, bytes);
        self.connection.prepare_cached(put)?.execute(params![
            name,
            unix_s,
            digest.as_ref(),
            bytes
        ])?;
        let saved = "UPDATE history SET unsaved = 0 WHERE unsaved";
        self.connection.prepare_cached(saved)?.execute([])?;
        // By number, which is new with each: a clock may be set back.
        let bound = "DELETE FROM state WHERE name NOT IN \
                     (SELECT name FROM state ORDER BY rowid DESC LIMIT ?)";
        self.connection.prepare_cached(bound)?.execute([MAX_STATES]).map(drop)
    }
}

fn connect(path: &Path) -> Result<Connection, Unfit> {
    let connection = Connection::open_with_flags(path, OPEN)?;
    connection.busy_timeout(READER_PATIENCE)?;
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = connection.query_row(tables, [], |row| row.get(0))?;
    match (number("application_id")?, number("user_version")?) {
        // New, or one whose first transaction did not come to its end.
        (0, 0) if tables == 0 => {}
        (APPLICATION_ID, SCHEMA_VERSION) => {
            let sound: String =
                connection.pragma_query_value(None, "quick_check", |row| row.get(0))?;
            if sound != "ok" {
                return Err(Unfit::Bad(sound));
            }
        }
        (APPLICATION_ID, version) => {
            let knows = format!("its schema is {version}, this longwire knows {SCHEMA_VERSION}");
            return Err(Unfit::Bad(knows));
        }
        _ => return Err(Unfit::Bad("it is another program's".to_owned())),
    }
    // A killed process loses nothing committed; with the power the last commits may go.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
    // What is dropped is gone from the file too.
    connection.pragma_update(None, "secure_delete", "ON")?;
    if tables == 0 {
        let transaction = connection.unchecked_transaction()?;
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
        transaction.commit()?;
    }
    dictionaries::begin(&connection)?;
    if !read::has_requests(&connection)? {
        connection.execute_batch("ALTER TABLE history ADD COLUMN request TEXT")?;
    }
    // A schema's text that has lost a bit may have another name in it, and be sound.
    for select in [
        &format!("SELECT id, service, class, unsaved, {COLUMNS} FROM history"),
        "SELECT name, saved_unix_s, digest, bytes FROM state",
        "SELECT name, used_unix_s, digest, bytes, aside, made_unix_s FROM dictionary",
    ] {
        connection.prepare(select)?;
    }
    Ok(connection)
}

/// What the caller named cannot hold a store.
fn unusable(path: &Path, error: &io::Error) -> Error {
    let shown = path.display();
    Error::Caller(format!(
        "cannot make {shown}: {error}: give --store a directory that this user may write to"
    ))
}

/// Whether a file had a store in it and has nothing now. SQLite would take it, also with one byte,
/// for one that is just begun, as it is when a process was killed in that moment: then there is
/// nothing beside it yet.
fn is_emptied(path: &Path) -> bool {
    let len = |path: &Path| fs::symlink_metadata(path).map_or(0, |metadata| metadata.len());
    let begun =
        || path.with_file_name(secret::FILE_NAME).exists() || len(&beside(path, "-wal")) > 0;
    path.exists() && (len(path) == 1 || len(path) == 0 && begun())
}

/// Makes a file that only its owner can read, before SQLite makes one as everybody's files are;
/// what it has beside it gets the same permissions. One that is there may be older than this.
fn begin(path: &Path) -> Result<(), Error> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let mut all = BESIDE.into_iter().map(|end| beside(path, end));
            all.try_for_each(|path| strict::keep_private_by_name(&path))
        }
        Err(error) => Err(unusable(path, &error)),
    }
}

/// The file that SQLite has beside another.
fn beside(path: &Path, end: &str) -> PathBuf {
    path.with_file_name(format!("{FILE_NAME}{end}"))
}

/// Renames a bad file, and what SQLite has beside it, and begins a new one.
fn begin_anew(path: &Path, why: &str) -> Result<Connection, Error> {
    let aside = set_aside(path)
        .map_err(Error::system(format!("set the unusable {} aside ({why})", path.display())))?;
    let (path_shown, aside) = (path.display(), aside.display());
    tracing::warn!(why, %aside, "the store {path_shown} is unusable: set aside, beginning anew");
    begin(path)?;
    connect(path).map_err(|error| match error {
        Unfit::System(error) => system(path, &error),
        Unfit::Bad(why) => {
            Error::system(format!("begin {}", path.display()))(io::Error::other(why))
        }
    })
}

/// The name of a file set aside, or of what SQLite had beside it.
fn aside(path: &Path, number: usize, end: &str) -> PathBuf {
    path.with_file_name(format!("{FILE_NAME}{end}.aside-{number}"))
}

fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let name = |number: usize, end: &str| aside(path, number, end);
    let free = (1..=MAX_ASIDE).find(|&number| !name(number, "").exists()).unwrap_or(1);
    for end in BESIDE {
        let (from, to) = (beside(path, end), name(free, end));
        match fs::rename(&from, &to) {
            // What stood there before belonged to another.
            Err(error) if error.kind() == io::ErrorKind::NotFound => drop(fs::remove_file(&to)),
            other => other?,
        }
    }
    Ok(name(free, ""))
}

/// The lock is on the directory: closing another descriptor of the file would drop SQLite's own.
fn lock(directory: &Path) -> Result<Option<fs::File>, Error> {
    let shown = directory.display();
    let file = fs::File::open(directory).map_err(Error::system(format!("open {shown}")))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(Error::system(format!("lock {shown}"))(source)),
    }
}

/// The system's refusal, with what may help.
pub(super) fn system(path: &Path, error: &rusqlite::Error) -> Error {
    let doing = format!("use the store {}", path.display());
    Error::System { doing, source: io::Error::other(reason(error)) }
}
