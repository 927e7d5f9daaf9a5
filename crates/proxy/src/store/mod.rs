//! What a side keeps on disk, if it is told where: what it has learned, its dictionaries, and the
//! history of its decisions.
//!
//! SQLite with a write-ahead log and one thread that writes: whoever hands something in never waits
//! for a disk. What was committed is there after the process was killed at any moment; with the
//! power the last moments may go, never the file. One that is damaged, foreign or from the future
//! is set aside and a new one begun. Only its owner can read it: what dictionaries are made of is
//! somebody's, though nothing secret is in them. Who that is stands in it as a hash with a key
//! ([`coding::Secret`]), since an address or a password could be guessed from any other.

mod dictionaries;
mod file;
mod read;
mod secret;
#[cfg(test)]
mod tests;
mod write;

use std::path::PathBuf;
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use record::decision::{Asked, Entry};
use record::event::Fact;

pub use dictionaries::Dictionary;
pub use read::{Found, History};

use crate::{Error, fault};
use file::File;
use write::{Job, Writer};

/// Facts that wait for the disk. Beyond it they are left out of the history: a disk that stalls
/// must hold nobody up.
const MAX_WAITING: usize = 512;
/// A disk that stays slow or full is told of once in so long.
const REPORT_PAUSE: Duration = Duration::from_secs(60);
/// How long the end of the process waits for the disk.
const LAST_PATIENCE: Duration = Duration::from_secs(2);
/// How long a side waits for the process before it, which lets go of the store when it is told to
/// end and has written what it learned.
const HOLDER_PATIENCE: Duration = Duration::from_secs(5);
/// Pause between two looks whether it has.
const HOLDER_PAUSE: Duration = Duration::from_millis(20);

/// Where and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// Directory of the file; made if it is not there.
    pub directory: PathBuf,
    /// Most decisions kept in the history.
    pub history_rows: u64,
    /// Most bytes of their facts.
    pub history_bytes: u64,
    /// How long what is made of messages is kept: the history, dictionaries, files set aside.
    pub age: Duration,
}

impl StoreSettings {
    /// Decisions kept, unless told otherwise: at one a second, a day.
    pub const HISTORY_ROWS: u64 = 100_000;
    /// Bytes kept, unless told otherwise.
    pub const HISTORY_BYTES: u64 = 64 << 20;
    /// Age of what is kept of messages, unless told otherwise: a quarter of a year.
    pub const AGE: Duration = Duration::from_secs(90 * 24 * 60 * 60);
}

/// What had been learned when a store was opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learned {
    /// As it was last saved.
    pub state: Option<Vec<u8>>,
    /// The same of clients without an edge.
    pub clients: Option<Vec<u8>>,
    /// Decisions whose outcome came later, oldest first.
    pub since: Vec<Entry>,
    /// The one used last comes last.
    pub dictionaries: Vec<Dictionary>,
    /// Dictionaries that were damaged, and are set aside.
    pub damaged: usize,
}

/// An open store, to write to.
#[derive(Debug)]
pub struct Store {
    jobs: Option<Arc<SyncSender<Job>>>,
    thread: Option<JoinHandle<()>>,
    policy: &'static str,
    learned: Learned,
    directory: PathBuf,
    /// When it was last told that facts find no room.
    reported: Option<Instant>,
}

impl Store {
    /// Opens a store, or begins one; what was learned is that of `policy`.
    ///
    /// # Errors
    /// [`Error::Caller`] when another process writes to it, [`Error::System`] for a directory that
    /// cannot be used. A file that is no good is none: it is set aside.
    pub fn open(place: &StoreSettings, policy: &'static str) -> Result<Self, Error> {
        let file = File::open(place)?;
        Self::with(file.ok_or_else(|| held(place))?, place, policy)
    }

    /// What a side is told to keep its store in, if it is told. Where another process has it, that
    /// one may be ending: it has a little time.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub async fn of_side(
        place: Option<&StoreSettings>,
        policy: &'static str,
    ) -> Result<Option<Self>, Error> {
        let Some(place) = place else { return Ok(None) };
        let began = Instant::now();
        let mut reported = false;
        loop {
            if let Some(file) = File::open(place)? {
                return Self::with(file, place, policy).map(Some);
            }
            if began.elapsed() > HOLDER_PATIENCE {
                return Err(held(place));
            }
            if !std::mem::replace(&mut reported, true) {
                let (store, most_s) = (place.directory.display(), HOLDER_PATIENCE.as_secs());
                let what = "another longwire has the store: waiting for it to end";
                tracing::info!(%store, most_s, "{what}");
            }
            // sleep: a lock of a file can be waited for, but not for so long at most.
            tokio::time::sleep(HOLDER_PAUSE).await;
        }
    }

    fn with(file: File, place: &StoreSettings, policy: &'static str) -> Result<Self, Error> {
        let mut writer = Writer::new(file);
        // Before anything of it is taken up.
        writer.drop_old(unix_s());
        let file = writer.file();
        let (dictionaries, damaged) = file.dictionaries();
        let (state, clients) = (file.state(policy), file.state(of_clients(policy)));
        let since = file.unsaved();
        let learned = Learned { state, clients, since, dictionaries, damaged };
        let (jobs, waiting) = mpsc::sync_channel(MAX_WAITING);
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || {
                fault::mark_core_thread("store");
                writer.run(&waiting);
            })
            .map_err(Error::system("start the thread of the store"))?;
        let (jobs, thread) = (Some(Arc::new(jobs)), Some(thread));
        let directory = place.directory.clone();
        Ok(Self { jobs, thread, policy, learned, directory, reported: None })
    }

    /// What an edge's names are made with; drawn where there is none yet.
    ///
    /// # Errors
    /// [`Error::System`] where it can be neither read nor written.
    pub fn secret(&self) -> Result<coding::Secret, Error> {
        secret::load(&self.directory)
    }

    /// What had been learned when the store was opened.
    pub fn take_learned(&mut self) -> Learned {
        std::mem::take(&mut self.learned)
    }

    /// Saves what was learned from all that was observed so far, in place of what was saved before.
    pub fn save_learned(&mut self, bytes: Vec<u8>) {
        self.save_both(bytes, Vec::new());
    }

    /// The same, with what was learned of clients without an edge, if there is any.
    pub fn save_both(&mut self, pair: Vec<u8>, clients: Vec<u8>) {
        let all = [(self.policy, pair), (of_clients(self.policy), clients)];
        let states = all.into_iter().filter(|(_, bytes)| !bytes.is_empty()).collect();
        self.hand_in(Job::States { unix_s: unix_s(), states });
    }

    /// Keeps a dictionary in place of what has its name.
    pub fn keep_dictionary(&mut self, name: [u8; 32], bytes: Bytes) {
        self.hand_in(Job::Dictionary { unix_s: unix_s(), name, bytes });
    }

    /// A dictionary was used: others go before it.
    pub fn touch_dictionary(&mut self, name: [u8; 32]) {
        self.hand_in(Job::Used { unix_s: unix_s(), name });
    }

    /// A dictionary went for another.
    pub fn forget_dictionary(&mut self, name: [u8; 32]) {
        self.hand_in(Job::Forgotten { name });
    }

    /// Sets a dictionary aside that is none of this side's.
    pub fn set_dictionary_aside(&mut self, name: [u8; 32], why: &'static str) {
        self.hand_in(Job::Aside { name, why });
    }

    /// Takes a fact that belongs into the history; others are dropped.
    pub fn observe(&mut self, fact: Fact) {
        if matches!(fact, Fact::Chosen { .. } | Fact::Outcome { .. }) {
            self.hand_in(Job::Fact { unix_s: unix_s(), fact: Box::new(fact) });
        }
    }

    /// Where requests are noted, by whoever sees them end.
    #[must_use]
    pub fn requests(&self) -> Requests {
        Requests(self.jobs.as_ref().map_or_else(Weak::new, Arc::downgrade))
    }

    fn hand_in(&mut self, job: Job) {
        let Some(jobs) = &self.jobs else { return };
        let full = match jobs.try_send(job) {
            Ok(()) => false,
            Err(TrySendError::Full(_)) => true,
            Err(TrySendError::Disconnected(_)) => return,
        };
        if full && self.reported.is_none_or(|reported| reported.elapsed() > REPORT_PAUSE) {
            self.reported = Some(Instant::now());
            tracing::warn!("the store's disk is slow: the history has gaps");
        }
    }

    /// Waits until all that was handed in is committed; false if something was not, or if that
    /// takes too long.
    #[must_use]
    pub fn flush(&self) -> bool {
        let (done, committed) = mpsc::sync_channel(1);
        let Some(jobs) = &self.jobs else { return false };
        let mut job = Job::Flush(done);
        let began = Instant::now();
        while let Err(error) = jobs.try_send(job) {
            let TrySendError::Full(again) = error else { return false };
            if began.elapsed() > LAST_PATIENCE {
                return false;
            }
            job = again;
            // sleep: a bounded queue of std tells nobody when there is room, unless it blocks.
            std::thread::sleep(Duration::from_millis(1));
        }
        committed.recv_timeout(LAST_PATIENCE).unwrap_or(false)
    }
}

/// Takes requests for the history, as long as its store is open.
#[derive(Clone, Debug, Default)]
pub struct Requests(Weak<SyncSender<Job>>);

impl Requests {
    /// What the decisions of an exchange were for. While the disk is slow it is left out.
    pub fn note(&self, exchange: &str, asked: impl FnOnce() -> Asked) {
        if let Some(jobs) = self.0.upgrade() {
            let _ = jobs.try_send(Job::Request { exchange: exchange.to_owned(), asked: asked() });
        }
    }
}

/// What was handed in is committed before the process ends, unless the disk hangs.
impl Drop for Store {
    fn drop(&mut self) {
        let committed = self.flush();
        self.jobs = None;
        if let Some(thread) = self.thread.take().filter(|_| committed) {
            let _ = thread.join();
        }
    }
}

fn held(place: &StoreSettings) -> Error {
    let shown = place.directory.display();
    Error::Caller(format!(
        "another longwire keeps its store in {shown}: give each side a --store of its own"
    ))
}

/// Under what is kept what this policy has learned of clients without an edge.
fn of_clients(policy: &str) -> &'static str {
    match policy {
        "learned" => "learned of clients",
        "nam" => "nam of clients",
        _ => "of clients",
    }
}

/// Seconds since 1970.
fn unix_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
