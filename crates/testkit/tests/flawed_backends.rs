//! Stores that are broken on purpose, and the clauses of the suite that notice.
// Helpers may unwrap, as tests may.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use offcut::backend::{
    Backend, BackendError, Entry, ErrorKind, Key, Location, PutOutcome, ReadRange, Writer,
};
use offcut_testkit::backend::conformance;

fn key(path: &str) -> Key {
    Key::new(path).unwrap()
}

/// The flaw of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    None,
    /// The later put wins.
    Overwrites,
    /// Checks first and stores later, with a pause in between.
    ChecksTooEarly,
    /// Stores the first half, then the second.
    ShowsHalf,
    /// Reports stored, but stores nothing that ends in a 9.
    Forgets,
    /// Treats any content as already there.
    NeverCompares,
    /// Removes the stored content while it compares.
    Blinks,
    /// Accepts any location that begins like one of its own.
    ResolvesLoosely,
    /// Returns more than was asked for.
    IgnoresTheRange,
    /// Fails if a range begins past the end.
    RefusesTheEnd,
    /// Treats content that differs only in case as the same.
    FoldsCase,
    /// Does not know when anything was stored.
    TellsNoTime,
    /// Says that all was stored just now.
    TellsThePresent,
    /// Says so where it lists what is stored.
    ListsThePresent,
    /// Says so where it finds that something is stored already.
    FindsThePresent,
    /// Does not know when a writer stored anything.
    WritesWithoutTime,
    /// Gives its locations for content of other stores too.
    SharesLocations,
    /// Lists content that is still being written.
    ListsWriters,
    /// A writer loses its content if the name is taken.
    LosesOnTaken,
    /// A writer loses the content that it has read back.
    LosesOnRead,
    /// A writer stores its content when dropped.
    StoresOnDrop,
    /// A writer that has finished still takes chunks, and drops them.
    TakesWritesWhenDone,
    /// A writer that has finished can store its content again.
    FinishesTwice,
    /// A writer goes on after a write that was dropped half-way.
    WritesOn,
    /// Lists at most one page.
    ListsOnePage,
    /// Reports removed, but removes nothing.
    KeepsWhatIsRemoved,
    /// Removes every key that begins with the given one.
    RemovesTooMuch,
    /// Fails if there is nothing to remove.
    MissesWhatIsGone,
    /// Removes also what is newer than it was told.
    RemovesTheNew,
    /// A writer loses its content if it is there already.
    EndsOnAlreadyThere,
    /// Treats stored content as a leftover.
    TidiesContent,
    /// Has no way to remove.
    RemovesNever,
}

/// A store in memory that keeps the contract except for one flaw.
#[derive(Clone, Debug)]
struct Flawed {
    flaw: Flaw,
    content: Arc<Mutex<BTreeMap<Key, Bytes>>>,
    times: Arc<Mutex<BTreeMap<Key, SystemTime>>>,
}

impl Flawed {
    fn new(flaw: Flaw) -> Self {
        Self {
            flaw,
            content: Arc::default(),
            times: Arc::default(),
        }
    }

    /// The time at which it was first stored.
    fn time_of(&self, key: &Key) -> SystemTime {
        match self.flaw {
            Flaw::TellsNoTime => return SystemTime::UNIX_EPOCH,
            Flaw::TellsThePresent => return SystemTime::now(),
            _ => {}
        }
        let mut times = self.times.lock().unwrap();
        *times.entry(key.clone()).or_insert_with(SystemTime::now)
    }

    fn there(&self, key: &Key) -> PutOutcome {
        PutOutcome::AlreadyThere {
            stored_at: match self.flaw {
                Flaw::FindsThePresent => SystemTime::now(),
                _ => self.time_of(key),
            },
        }
    }

    async fn store(&self, key: &Key, content: Bytes) -> PutOutcome {
        let key = match self.flaw {
            Flaw::FoldsCase => Key::new(key.as_str().to_lowercase()).unwrap(),
            _ => key.clone(),
        };
        self.time_of(&key);
        let stored = self.content.lock().unwrap().get(&key).cloned();
        if let Some(stored) = stored
            && self.flaw != Flaw::Overwrites
        {
            if self.flaw == Flaw::Blinks {
                self.content.lock().unwrap().remove(&key);
                tokio::task::yield_now().await;
                self.content
                    .lock()
                    .unwrap()
                    .insert(key.clone(), stored.clone());
            }
            let same = stored == content || self.flaw == Flaw::NeverCompares;
            return if same {
                self.there(&key)
            } else {
                PutOutcome::Taken
            };
        }
        match self.flaw {
            Flaw::ShowsHalf => {
                self.content
                    .lock()
                    .unwrap()
                    .insert(key.clone(), content.slice(..content.len() / 2));
                tokio::task::yield_now().await;
            }
            Flaw::ChecksTooEarly => tokio::task::yield_now().await,
            Flaw::Forgets if key.as_str().ends_with('9') => return PutOutcome::Stored,
            _ => {}
        }
        let mut all = self.content.lock().unwrap();
        match all.get(&key) {
            // Another call has stored since the check.
            Some(stored)
                if !matches!(
                    self.flaw,
                    Flaw::Overwrites | Flaw::ChecksTooEarly | Flaw::ShowsHalf
                ) =>
            {
                if *stored == content {
                    self.there(&key)
                } else {
                    PutOutcome::Taken
                }
            }
            _ => {
                all.insert(key, content);
                PutOutcome::Stored
            }
        }
    }
}

#[async_trait]
impl Backend for Flawed {
    fn locate(&self, key: &Key) -> Location {
        Location::new(format!("flawed:/{key}"))
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        let path = location.strip_prefix("flawed:/")?;
        match self.flaw {
            Flaw::ResolvesLoosely => Key::new(path.trim_end_matches(['/', ' ', '\n'])).ok(),
            _ => Key::new(path).ok(),
        }
    }

    fn store_id(&self) -> Option<usize> {
        let own = Arc::as_ptr(&self.content).addr();
        (self.flaw != Flaw::SharesLocations).then_some(own)
    }

    async fn put(&self, key: &Key, content: Bytes) -> Result<PutOutcome, BackendError> {
        Ok(self.store(key, content).await)
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        if self.flaw == Flaw::ListsWriters {
            self.content
                .lock()
                .unwrap()
                .insert(key("unnamed"), Bytes::new());
        }
        Ok(Box::new(FlawedWriter {
            store: self.clone(),
            buffer: Some(Vec::new()),
        }))
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        let folded = key.as_str().to_lowercase();
        let looked_up = if self.flaw == Flaw::FoldsCase {
            Key::new(folded).unwrap()
        } else {
            key.clone()
        };
        let content = self.content.lock().unwrap().get(&looked_up).cloned();
        let content =
            content.ok_or_else(|| BackendError::new(ErrorKind::NotFound, "nothing is there"))?;
        let total = content.len() as u64;
        if self.flaw == Flaw::RefusesTheEnd && range.start > total {
            return Err(BackendError::new(
                ErrorKind::Other,
                "the range is behind the end",
            ));
        }
        let end = if self.flaw == Flaw::IgnoresTheRange {
            total
        } else {
            range.end.min(total)
        };
        let start = range.start.min(end);
        Ok(ReadRange {
            bytes: content.slice(start as usize..end as usize),
            total,
            stored_at: self.time_of(key),
        })
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        let limit = if self.flaw == Flaw::ListsOnePage {
            500
        } else {
            usize::MAX
        };
        let entry = |(key, content): (&Key, &Bytes)| {
            Ok(Entry {
                key: key.clone(),
                bytes: content.len() as u64,
                stored_at: match self.flaw {
                    Flaw::ListsThePresent => SystemTime::now(),
                    _ => self.time_of(key),
                },
            })
        };
        let entries: Vec<_> = self
            .content
            .lock()
            .unwrap()
            .iter()
            .map(entry)
            .take(limit)
            .collect();
        stream::iter(entries).boxed()
    }

    async fn remove(&self, key: &Key, before: SystemTime) -> Result<(), BackendError> {
        let is_new = self.flaw != Flaw::RemovesTheNew && before <= self.time_of(key);
        let mut content = self.content.lock().unwrap();
        match self.flaw {
            Flaw::RemovesNever => {
                return Err(BackendError::new(
                    ErrorKind::Unsupported,
                    "nothing is removed here",
                ));
            }
            Flaw::MissesWhatIsGone if !content.contains_key(key) => {
                return Err(BackendError::new(ErrorKind::NotFound, "nothing is there"));
            }
            Flaw::KeepsWhatIsRemoved => {}
            _ if is_new => {}
            Flaw::RemovesTooMuch => {
                let folder = key.as_str().rsplit_once('/').unwrap().0;
                content.retain(|other, _| !other.as_str().starts_with(folder));
            }
            _ => drop(content.remove(key)),
        }
        Ok(())
    }

    async fn tidy(&self, before: SystemTime) -> Result<u64, BackendError> {
        if self.flaw == Flaw::TidiesContent && before > SystemTime::UNIX_EPOCH {
            self.content.lock().unwrap().pop_first();
        }
        Ok(0)
    }
}

#[derive(Debug)]
struct FlawedWriter {
    store: Flawed,
    buffer: Option<Vec<u8>>,
}

#[async_trait]
impl Writer for FlawedWriter {
    async fn write(&mut self, chunk: Bytes) -> Result<(), BackendError> {
        if self.store.flaw == Flaw::TakesWritesWhenDone && self.buffer.is_none() {
            return Ok(());
        }
        if self.store.flaw == Flaw::WritesOn {
            tokio::task::yield_now().await;
        }
        let buffer = self
            .buffer
            .as_mut()
            .ok_or_else(|| BackendError::new(ErrorKind::Other, "it is stored already"))?;
        buffer.extend_from_slice(&chunk);
        Ok(())
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Bytes, BackendError> {
        let buffer = self
            .buffer
            .as_mut()
            .ok_or_else(|| BackendError::new(ErrorKind::Other, "it is stored already"))?;
        let end = range.end.min(buffer.len() as u64) as usize;
        let bytes = Bytes::copy_from_slice(&buffer[(range.start as usize).min(end)..end]);
        if self.store.flaw == Flaw::LosesOnRead {
            buffer.clear();
        }
        Ok(bytes)
    }

    async fn finish(&mut self, key: &Key) -> Result<PutOutcome, BackendError> {
        let buffer = self
            .buffer
            .take()
            .ok_or_else(|| BackendError::new(ErrorKind::Other, "it is stored already"))?;
        let put = self.store.store(key, buffer.clone().into()).await;
        if self.store.flaw == Flaw::WritesWithoutTime {
            let mut times = self.store.times.lock().unwrap();
            times.insert(key.clone(), SystemTime::UNIX_EPOCH);
        }
        let is_done = match put {
            PutOutcome::Stored => self.store.flaw != Flaw::FinishesTwice,
            PutOutcome::AlreadyThere { .. } => self.store.flaw == Flaw::EndsOnAlreadyThere,
            PutOutcome::Taken => false,
        };
        if !is_done {
            self.buffer = Some(if self.store.flaw == Flaw::LosesOnTaken {
                Vec::new()
            } else {
                buffer
            });
        }
        Ok(put)
    }
}

impl Drop for FlawedWriter {
    fn drop(&mut self) {
        if let (Flaw::StoresOnDrop, Some(buffer)) = (self.store.flaw, self.buffer.take()) {
            self.store
                .content
                .lock()
                .unwrap()
                .insert(key("dropped"), buffer.into());
        }
    }
}

/// The verdict of the suite on a store with this flaw: `Err` holds the panic's message.
fn verdict(flaw: Flaw) -> Result<(), String> {
    // On one thread, so that the races in `Flawed` are lost each time.
    let suite = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(conformance(async || Flawed::new(flaw)));
    };
    std::thread::spawn(suite)
        .join()
        .map_err(|panic| match panic.downcast::<String>() {
            Ok(message) => *message,
            Err(_) => "a panic without a message".to_owned(),
        })
}

#[test]
fn the_suite_accepts_flawless_stores() {
    assert_eq!(verdict(Flaw::None), Ok(()));
}

#[test]
fn the_suite_finds_each_flaw_and_names_the_clause() {
    let flaws = [
        (Flaw::Overwrites, "`create-only`"),
        (Flaw::ChecksTooEarly, "concurrent calls"),
        (Flaw::ShowsHalf, "concurrent calls"),
        (Flaw::Forgets, "`list"),
        (Flaw::NeverCompares, "`create-only`"),
        (Flaw::Blinks, "concurrent calls"),
        (Flaw::ResolvesLoosely, "`inverse: foreign locations"),
        (Flaw::IgnoresTheRange, "`read: the range"),
        (Flaw::RefusesTheEnd, "`read: the range"),
        (Flaw::TellsThePresent, "`stored_at"),
        (Flaw::SharesLocations, "`unique"),
        (Flaw::TellsNoTime, "`stored_at: the time"),
        (Flaw::ListsThePresent, "the list tells another time"),
        (Flaw::FindsThePresent, "a second put tells another time"),
        (Flaw::WritesWithoutTime, "a read tells a time"),
        (Flaw::ListsWriters, "`writer: nothing is visible"),
        (Flaw::LosesOnTaken, "`writer: unless it has stored"),
        (Flaw::LosesOnRead, "`writer: reads what was written"),
        (Flaw::StoresOnDrop, "`writer: dropped"),
        (Flaw::TakesWritesWhenDone, "with a `write` after it`"),
        (Flaw::FinishesTwice, "with a second `finish``"),
        (Flaw::WritesOn, "`writer: after a dropped write"),
        (Flaw::ListsOnePage, "`list"),
        (Flaw::KeepsWhatIsRemoved, "`removed whole"),
        (Flaw::RemovesTooMuch, "`removed whole"),
        (Flaw::MissesWhatIsGone, "`remove: a missing key"),
        (Flaw::RemovesTheNew, "`removed only when old"),
        (Flaw::EndsOnAlreadyThere, "`writer: unless it has stored"),
        (Flaw::TidiesContent, "`tidy"),
    ];
    // Together, since each waits.
    let verdicts = flaws.map(|(flaw, _)| std::thread::spawn(move || verdict(flaw)));
    for ((flaw, clause), verdict) in flaws.into_iter().zip(verdicts) {
        match verdict.join().unwrap() {
            Ok(()) => panic!("{flaw:?} went unnoticed"),
            Err(message) => assert!(
                message.contains(clause),
                "{flaw:?} is not named by: {message}"
            ),
        }
    }
    // Ignoring case loses nothing, so it is not a flaw.
    assert_eq!(verdict(Flaw::FoldsCase), Ok(()));
    // Nor is being unable to remove.
    assert_eq!(verdict(Flaw::RemovesNever), Ok(()));
}
