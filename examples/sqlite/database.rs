//! The tables, and every step on them. Each step is one transaction.
//!
//! An object is content in pieces of one size. It is stored once it has a key; until then it
//! belongs to a writer and is invisible to others. Ids are never reused.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, SystemTime};

use offcut::backend::range::within;
use offcut::backend::{Key, PutOutcome};
use rusqlite::{Connection, OptionalExtension, Result, Transaction, TransactionBehavior, params};

/// Size of each piece except the last, in bytes. Equal content has equal pieces.
pub(crate) const PIECE: usize = 256 << 10;

/// Maximum wait for another process to finish its transaction.
const PATIENCE: Duration = Duration::from_secs(10);

const TABLES: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA foreign_keys = ON;
    CREATE TABLE IF NOT EXISTS objects (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        key TEXT UNIQUE,            -- NULL: a writer's, not stored yet
        bytes INTEGER NOT NULL DEFAULT 0,
        since INTEGER NOT NULL      -- milliseconds since 1970
    );
    CREATE TABLE IF NOT EXISTS pieces (
        object INTEGER NOT NULL REFERENCES objects ON DELETE CASCADE,
        at INTEGER NOT NULL,        -- the offset of its first byte
        content BLOB NOT NULL,
        PRIMARY KEY (object, at)
    );
";

/// An object that has a key.
pub(crate) struct Stored {
    pub(crate) key: String,
    pub(crate) bytes: u64,
    pub(crate) since: SystemTime,
}

pub(crate) fn open(path: &Path) -> Result<Connection> {
    let database = Connection::open(path)?;
    database.busy_timeout(PATIENCE)?;
    database.execute_batch(TABLES)?;
    Ok(database)
}

/// Starts a transaction that waits for other writers before it reads, so that its decisions still
/// hold when it writes.
fn writing(database: &mut Connection) -> Result<Transaction<'_>> {
    database.transaction_with_behavior(TransactionBehavior::Immediate)
}

pub(crate) fn put(database: &mut Connection, key: &Key, content: &[u8]) -> Result<PutOutcome> {
    let all = writing(database)?;
    let object = begin(&all)?;
    for (nth, piece) in content.chunks(PIECE).enumerate() {
        append(&all, object, (nth * PIECE) as u64, piece)?;
    }
    let put = name_in(&all, object, content.len() as u64, key)?;
    if put == PutOutcome::Stored {
        all.commit()?;
    }
    Ok(put)
}

/// Creates an object without content and without a key.
pub(crate) fn begin(database: &Connection) -> Result<i64> {
    let now = milliseconds(SystemTime::now());
    database.execute("INSERT INTO objects (since) VALUES (?1)", [now])?;
    Ok(database.last_insert_rowid())
}

/// Appends a piece. Fails if the object is gone, since a piece refers to it.
pub(crate) fn append(database: &Connection, object: i64, at: u64, piece: &[u8]) -> Result<()> {
    const SQL: &str = "INSERT INTO pieces (object, at, content) VALUES (?1, ?2, ?3)";
    database.execute(SQL, params![object, signed(at), piece])?;
    Ok(())
}

/// Gives the object of `bytes` bytes its key, unless something is stored there.
pub(crate) fn name(
    database: &mut Connection,
    object: i64,
    bytes: u64,
    key: &Key,
) -> Result<PutOutcome> {
    let all = writing(database)?;
    let put = name_in(&all, object, bytes, key)?;
    all.commit()?;
    Ok(put)
}

fn name_in(all: &Transaction<'_>, object: i64, bytes: u64, key: &Key) -> Result<PutOutcome> {
    const NAME: &str =
        "UPDATE objects SET key = ?1, bytes = ?2, since = ?3 WHERE id = ?4 AND key IS NULL";
    const IS_EQUAL: &str = "SELECT NOT EXISTS (
        SELECT 1 FROM pieces a LEFT JOIN pieces b ON b.object = ?2 AND b.at = a.at
        WHERE a.object = ?1 AND a.content IS NOT b.content)";
    let Some((other, stored)) = find(all, key)? else {
        let now = milliseconds(SystemTime::now());
        let named = all.execute(NAME, params![key.as_str(), signed(bytes), now, object])?;
        // None updated: the object was tidied away, or has a key already.
        return if named == 1 {
            Ok(PutOutcome::Stored)
        } else {
            Err(rusqlite::Error::QueryReturnedNoRows)
        };
    };
    let is_equal =
        stored.bytes == bytes && all.query_row(IS_EQUAL, [object, other], |row| row.get(0))?;
    Ok(if is_equal {
        PutOutcome::AlreadyThere {
            stored_at: stored.since,
        }
    } else {
        PutOutcome::Taken
    })
}

/// Removes an object that never got a key.
pub(crate) fn abandon(database: &mut Connection, object: i64) -> Result<()> {
    database.execute(
        "DELETE FROM objects WHERE id = ?1 AND key IS NULL",
        [object],
    )?;
    Ok(())
}

/// Reads the bytes of `range` under `key`, the total length, and the time of storing.
pub(crate) fn read(
    database: &mut Connection,
    key: &Key,
    range: &Range<u64>,
) -> Result<Option<(Vec<u8>, Stored)>> {
    // This transaction keeps seeing content that another process removes in the meantime.
    let all = database.transaction()?;
    let Some((object, stored)) = find(&all, key)? else {
        return Ok(None);
    };
    let content = content(&all, object, within(range, stored.bytes))?;
    Ok(Some((content, stored)))
}

fn find(database: &Connection, key: &Key) -> Result<Option<(i64, Stored)>> {
    const SQL: &str = "SELECT id, key, bytes, since FROM objects WHERE key = ?1";
    let row = database.query_row(SQL, [key.as_str()], |row| {
        Ok((row.get(0)?, stored(row, 1)?))
    });
    row.optional()
}

/// The object in the columns of a row from `first` on.
fn stored(row: &rusqlite::Row<'_>, first: usize) -> Result<Stored> {
    Ok(Stored {
        key: row.get(first)?,
        bytes: unsigned(row.get(first + 1)?),
        since: SystemTime::UNIX_EPOCH + Duration::from_millis(unsigned(row.get(first + 2)?)),
    })
}

/// Reads the bytes of `range`, which must lie within the object.
pub(crate) fn content(database: &Connection, object: i64, range: Range<u64>) -> Result<Vec<u8>> {
    const SQL: &str =
        "SELECT content FROM pieces WHERE object = ?1 AND at >= ?2 AND at < ?3 ORDER BY at";
    let first = range.start / PIECE as u64 * PIECE as u64;
    let mut bytes = Vec::new();
    let mut statement = database.prepare(SQL)?;
    let mut rows = statement.query(params![object, signed(first), signed(range.end)])?;
    while let Some(row) = rows.next()? {
        bytes.extend_from_slice(row.get_ref(0)?.as_blob()?);
    }
    let start = usize::try_from(range.start - first).unwrap_or(usize::MAX);
    bytes.drain(..start.min(bytes.len()));
    bytes.truncate(usize::try_from(range.end - range.start).unwrap_or(usize::MAX));
    Ok(bytes)
}

pub(crate) fn list(database: &mut Connection) -> Result<Vec<Stored>> {
    let mut statement =
        database.prepare("SELECT key, bytes, since FROM objects WHERE key IS NOT NULL")?;
    let rows = statement.query_map([], |row| stored(row, 0))?;
    rows.collect()
}

/// Removes what is stored under `key`, if it was stored before `before`.
pub(crate) fn remove(database: &mut Connection, key: &Key, before: SystemTime) -> Result<()> {
    const SQL: &str = "DELETE FROM objects WHERE key = ?1 AND since < ?2";
    database.execute(SQL, params![key.as_str(), milliseconds(before)])?;
    Ok(())
}

/// Removes unfinished objects begun before `before`, and returns their number.
pub(crate) fn tidy(database: &mut Connection, before: SystemTime) -> Result<u64> {
    const SQL: &str = "DELETE FROM objects WHERE key IS NULL AND since < ?1";
    let removed = database.execute(SQL, [milliseconds(before)])?;
    Ok(removed as u64)
}

fn milliseconds(time: SystemTime) -> i64 {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Converts to SQLite's signed integers, which are large enough for any content.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
