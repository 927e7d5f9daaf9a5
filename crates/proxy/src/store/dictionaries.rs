//! Dictionaries, and schemas of peers, as the relay gives them to keep: a row each by its name, and
//! of too many the one longest unused goes first. One that is damaged, or that the relay does not
//! take, is set aside: it stays to be looked at until its room is wanted.

use ring::digest::{Context, Digest, SHA256};
use rusqlite::{Connection, params};

/// A store of a version before may be without it, and one of that version lets it be. Which was
/// used last, rows say by their numbers: a clock may be set back.
pub(super) const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS dictionary (
    name BLOB PRIMARY KEY,
    used_unix_s REAL NOT NULL,
    -- SHA-256 of `name` and `bytes`.
    digest BLOB NOT NULL,
    bytes BLOB NOT NULL,
    -- Why it is not used.
    aside TEXT,
    -- When it was made, for its age; none of before: it is as old as its last use.
    made_unix_s REAL
) STRICT";
/// For a table of a version before; one of that version lets the column be.
const MADE: &str = "ALTER TABLE dictionary ADD COLUMN made_unix_s REAL";
/// Most that are kept, those set aside included: what a relay holds, its own and its peers'.
pub(super) const MAX_DICTIONARIES: i64 = 168;
/// Longest that is kept, in bytes: with its parcel and its owner none is longer, nor a schema.
const MAX_BYTES: usize = 132 << 10;

/// A dictionary with whom it serves, in the relay's form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dictionary {
    /// What it is kept by.
    pub name: [u8; 32],
    /// What is kept.
    pub bytes: Vec<u8>,
}

/// Makes the table, where there is none or one of before.
pub(super) fn begin(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(SCHEMA)?;
    let columns = "SELECT count(*) FROM pragma_table_info('dictionary') WHERE name = 'made_unix_s'";
    let columns: i64 = connection.query_row(columns, [], |row| row.get(0))?;
    if columns == 0 { connection.execute_batch(MADE) } else { Ok(()) }
}

/// Drops those that were made before an instant, those set aside included; how many.
pub(super) fn drop_older(connection: &Connection, unix_s: f64) -> rusqlite::Result<usize> {
    let delete = "DELETE FROM dictionary WHERE ifnull(made_unix_s, used_unix_s) < ?";
    connection.prepare_cached(delete)?.execute([unix_s])
}

/// Those that are sound, the one used last comes last, and how many were set aside.
pub(super) fn load(connection: &Connection) -> rusqlite::Result<(Vec<Dictionary>, usize)> {
    let select = "SELECT name, digest, bytes FROM dictionary WHERE aside IS NULL \
                  ORDER BY rowid";
    let mut select = connection.prepare(select)?;
    let rows = select.query_map([], |row| {
        Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, Vec<u8>>(1)?, row.get::<_, Vec<u8>>(2)?))
    })?;
    let (mut sound, mut damaged) = (Vec::new(), Vec::new());
    for row in rows {
        let (name, reported, bytes) = row?;
        match <[u8; 32]>::try_from(&name[..]) {
            Ok(name) if digest(&name, &bytes).as_ref() == reported => {
                sound.push(Dictionary { name, bytes });
            }
            _ => damaged.push(name),
        }
    }
    for name in &damaged {
        set_aside(connection, name, "its digest is another")?;
    }
    Ok((sound, damaged.len()))
}

/// Puts one in place of what has its name.
pub(super) fn put(
    connection: &Connection,
    unix_s: f64,
    name: &[u8; 32],
    bytes: &[u8],
) -> rusqlite::Result<()> {
    if bytes.len() > MAX_BYTES {
        return Ok(());
    }
    // What takes another's place has a new number, behind all others. Of one name, what it is made
    // of is as old as ever.
    let put = "INSERT OR REPLACE INTO dictionary (name, used_unix_s, digest, bytes, made_unix_s) \
               VALUES (?1, ?2, ?3, ?4, \
               ifnull((SELECT made_unix_s FROM dictionary WHERE name = ?1), ?2))";
    let digest = digest(name, bytes);
    connection.prepare_cached(put)?.execute(params![name, unix_s, digest.as_ref(), bytes])?;
    let count = "SELECT count(*) FROM dictionary";
    let count: i64 = connection.prepare_cached(count)?.query_row([], |row| row.get(0))?;
    if count <= MAX_DICTIONARIES {
        return Ok(());
    }
    let bound = "DELETE FROM dictionary WHERE name NOT IN (SELECT name FROM dictionary \
                 ORDER BY aside IS NOT NULL, rowid DESC LIMIT ?)";
    connection.prepare_cached(bound)?.execute([MAX_DICTIONARIES]).map(drop)
}

/// One was used.
pub(super) fn touch(connection: &Connection, unix_s: f64, name: &[u8; 32]) -> rusqlite::Result<()> {
    let touch = "UPDATE dictionary SET used_unix_s = ?, \
                 rowid = (SELECT max(rowid) + 1 FROM dictionary) WHERE name = ?";
    connection.prepare_cached(touch)?.execute(params![unix_s, name]).map(drop)
}

/// One is not wanted any more.
pub(super) fn forget(connection: &Connection, name: &[u8; 32]) -> rusqlite::Result<()> {
    let delete = "DELETE FROM dictionary WHERE name = ?";
    connection.prepare_cached(delete)?.execute([name]).map(drop)
}

/// One is not to be used.
pub(super) fn set_aside(connection: &Connection, name: &[u8], why: &str) -> rusqlite::Result<()> {
    let aside = "UPDATE dictionary SET aside = ? WHERE name = ?";
    connection.prepare_cached(aside)?.execute(params![why, name]).map(drop)
}

fn digest(name: &[u8], bytes: &[u8]) -> Digest {
    let mut context = Context::new(&SHA256);
    context.update(name);
    context.update(bytes);
    context.finish()
}
