//! The thread that writes: takes what has come, commits it at once.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use bytes::Bytes;
use record::decision::{Asked, Decision, Direction, Outcome};
use record::event::Fact;
use rusqlite::params;

use super::file::{File, is_damage, reason};
use super::{REPORT_PAUSE, dictionaries, unix_s};

/// Jobs in one transaction, at most: what has come by then is committed.
const MAX_BATCH: usize = 128;
/// Largest facts of one decision, in bytes: a few times what all codecs at all levels make.
const MAX_ROW_BYTES: usize = 64 << 10;
/// Requests that wait for a decision: it is on its way when a short exchange ends.
const MAX_EARLY: usize = 64;
/// A bound that is reached is undercut by this share, so that it is not reached at each row.
const SPARE_SHARE: u64 = 16;

/// What is too old is looked for once in so long.
const AGE_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// What the thread is asked for.
pub(super) enum Job {
    Fact {
        unix_s: f64,
        fact: Box<Fact>,
    },
    /// What the bodies of an exchange were for.
    Request {
        exchange: String,
        asked: Asked,
    },
    /// Names and bytes, all of them or none.
    States {
        unix_s: f64,
        states: Vec<(&'static str, Vec<u8>)>,
    },
    Dictionary {
        unix_s: f64,
        name: [u8; 32],
        bytes: Bytes,
    },
    Used {
        unix_s: f64,
        name: [u8; 32],
    },
    Forgotten {
        name: [u8; 32],
    },
    Aside {
        name: [u8; 32],
        why: &'static str,
    },
    /// Answer once all before it is written: whether all of it is committed.
    Flush(SyncSender<bool>),
}

/// See the module.
pub(super) struct Writer {
    file: File,
    /// Decisions and bytes in the history; `None`: to be counted.
    held: Option<Held>,
    /// When a failure was last told.
    reported: Option<Instant>,
    /// Something was lost since the last flush.
    lost: bool,
    /// Requests whose decisions are still on their way, or have none: exchange and text.
    early: VecDeque<(String, String)>,
}

#[derive(Clone, Copy, Default)]
struct Held {
    rows: u64,
    bytes: u64,
}

/// Bytes of a row that are counted.
const ROW_BYTES: &str = "length(exchange) + length(service) + length(reason) \
                         + ifnull(length(decision), 0) + ifnull(length(outcome), 0) \
                         + ifnull(length(request), 0) + 100";

impl Writer {
    pub(super) fn new(file: File) -> Self {
        Self { file, held: None, reported: None, lost: false, early: VecDeque::new() }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Runs until nobody can ask for anything any more.
    pub(super) fn run(&mut self, jobs: &Receiver<Job>) {
        let mut batch = Vec::new();
        let mut next = Instant::now() + AGE_PAUSE;
        loop {
            let first = match jobs.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(first) => first,
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    self.drop_old(unix_s());
                    next = Instant::now() + AGE_PAUSE;
                    continue;
                }
            };
            batch.push(first);
            batch.extend(jobs.try_iter().take(MAX_BATCH - 1));
            if let Err(error) = self.commit(&batch) {
                self.failed(&error, &batch);
            }
            for job in batch.drain(..) {
                if let Job::Flush(done) = job {
                    // Who asked may have given up.
                    let _ = done.try_send(!std::mem::take(&mut self.lost));
                }
            }
        }
    }

    /// Drops what is too old.
    pub(super) fn drop_old(&mut self, unix_s: f64) {
        // They are fewer now.
        self.held = None;
        if let Err(error) = self.file.drop_old(unix_s) {
            self.failed(&error, &[]);
        }
    }

    /// A damaged file is replaced and the batch goes into the new one. Any other failure (a full
    /// disk) costs the batch: the next may fare better.
    fn failed(&mut self, error: &rusqlite::Error, batch: &[Job]) {
        self.held = None;
        if is_damage(error) {
            let replaced = self.file.replace(&reason(error));
            if replaced.is_ok() && self.commit(batch).is_ok() {
                return;
            }
        }
        self.lost = true;
        if self.reported.is_none_or(|reported| reported.elapsed() > REPORT_PAUSE) {
            self.reported = Some(Instant::now());
            let why = reason(error);
            tracing::warn!(why, "the store cannot be written: its history has gaps");
        }
    }

    fn commit(&mut self, batch: &[Job]) -> rusqlite::Result<()> {
        // One who writes owns the connection: no other transaction can be open.
        let transaction = self.file.connection.unchecked_transaction()?;
        let mut held = match self.held {
            Some(held) => held,
            None => count(&transaction)?,
        };
        for job in batch {
            match job {
                Job::Fact { unix_s, fact } => {
                    put_fact(&transaction, *unix_s, fact, &mut held)?;
                    let early = match &**fact {
                        Fact::Chosen { exchange, .. } => {
                            self.early.iter().find(|(known, _)| known == exchange)
                        }
                        _ => None,
                    };
                    if let Some((exchange, text)) = early {
                        put_request(&transaction, exchange, text, &mut held)?;
                    }
                }
                Job::Request { exchange, asked } => {
                    let text = json(asked);
                    if text.len() <= MAX_ROW_BYTES
                        && !put_request(&transaction, exchange, &text, &mut held)?
                    {
                        self.early.truncate(MAX_EARLY - 1);
                        self.early.push_front((exchange.clone(), text));
                    }
                }
                Job::States { unix_s, states } => {
                    for (name, bytes) in states {
                        self.file.put_state(name, *unix_s, bytes)?;
                    }
                }
                Job::Dictionary { unix_s, name, bytes } => {
                    dictionaries::put(&transaction, *unix_s, name, bytes)?;
                }
                Job::Used { unix_s, name } => dictionaries::touch(&transaction, *unix_s, name)?,
                Job::Forgotten { name } => dictionaries::forget(&transaction, name)?,
                Job::Aside { name, why } => dictionaries::set_aside(&transaction, name, why)?,
                Job::Flush(_) => {}
            }
        }
        let place = self.file.place();
        bound(&transaction, place.history_rows, place.history_bytes, &mut held)?;
        transaction.commit()?;
        self.held = Some(held);
        Ok(())
    }
}

fn count(connection: &rusqlite::Connection) -> rusqlite::Result<Held> {
    let select = format!("SELECT count(*), ifnull(sum({ROW_BYTES}), 0) FROM history");
    connection.query_row(&select, [], |row| Ok(Held { rows: row.get(0)?, bytes: row.get(1)? }))
}

fn put_fact(
    connection: &rusqlite::Connection,
    unix_s: f64,
    fact: &Fact,
    held: &mut Held,
) -> rusqlite::Result<()> {
    match fact {
        Fact::Chosen { exchange, direction, encoding, reason, decision } => {
            let row = Chosen { exchange, direction: *direction, encoding, reason };
            row.put(connection, unix_s, decision.as_deref(), held)
        }
        Fact::Outcome { exchange, direction, outcome } => {
            put_outcome(connection, exchange, *direction, outcome, held)
        }
        _ => Ok(()),
    }
}

struct Chosen<'a> {
    exchange: &'a str,
    direction: Direction,
    encoding: &'a str,
    reason: &'a str,
}

impl Chosen<'_> {
    /// A second choice for the same body takes the place of the first.
    fn put(
        &self,
        connection: &rusqlite::Connection,
        unix_s: f64,
        decision: Option<&Decision>,
        held: &mut Held,
    ) -> rusqlite::Result<()> {
        let text = decision.map(json);
        let bytes = text.as_ref().map_or(0, String::len) + self.reason.len() + self.encoding.len();
        let (service, class) =
            decision.map_or(("", ""), |decision| (&decision.service, &decision.class));
        if bytes + service.len() > MAX_ROW_BYTES {
            return Ok(());
        }
        let put = "INSERT OR REPLACE INTO history \
                   (unix_s, exchange, direction, service, class, encoding, reason, decision) \
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
        connection.prepare_cached(put)?.execute(params![
            unix_s,
            self.exchange,
            self.direction.name(),
            service,
            class,
            self.encoding,
            self.reason,
            text
        ])?;
        held.rows += 1;
        held.bytes += (self.exchange.len() + service.len() + bytes + 100) as u64;
        Ok(())
    }
}

fn put_outcome(
    connection: &rusqlite::Connection,
    exchange: &str,
    direction: Direction,
    outcome: &Outcome,
    held: &mut Held,
) -> rusqlite::Result<()> {
    let text = json(outcome);
    if text.len() > MAX_ROW_BYTES {
        return Ok(());
    }
    let bytes = text.len() as u64;
    let put = "UPDATE history SET outcome = ?, unsaved = 1 WHERE exchange = ? AND direction = ?";
    let rows =
        connection.prepare_cached(put)?.execute(params![text, exchange, direction.name()])?;
    held.bytes += bytes * rows as u64;
    Ok(())
}

/// Whether the exchange has a decision to put it beside.
fn put_request(
    connection: &rusqlite::Connection,
    exchange: &str,
    text: &str,
    held: &mut Held,
) -> rusqlite::Result<bool> {
    let bytes = text.len() as u64;
    let put = "UPDATE history SET request = ? WHERE exchange = ?";
    let rows = connection.prepare_cached(put)?.execute(params![text, exchange])?;
    held.bytes += bytes * rows as u64;
    Ok(rows > 0)
}

/// Drops the oldest decisions once there are too many, or too large ones. What is held is counted
/// anew then: while rows come it is only estimated.
fn bound(
    connection: &rusqlite::Connection,
    rows: u64,
    bytes: u64,
    held: &mut Held,
) -> rusqlite::Result<()> {
    while held.rows > rows || held.bytes > bytes {
        let over = held.rows.saturating_sub(rows) + rows.min(held.rows) / SPARE_SHARE + 1;
        let delete = "DELETE FROM history WHERE id IN (SELECT id FROM history ORDER BY id LIMIT ?)";
        let gone = connection.prepare_cached(delete)?.execute([over])?;
        *held = count(connection)?;
        if gone == 0 {
            break;
        }
    }
    Ok(())
}

fn json(value: &impl serde::Serialize) -> String {
    // Maps have texts as keys: nothing of ours fails to be written.
    serde_json::to_string(value).unwrap_or_default()
}
