//! Walk over all stored content.

use std::io;

use cap_std::fs::{DirEntry, ReadDir};
use futures_util::stream::{self, BoxStream, StreamExt};

use super::Fs;
use super::error::{Doing, blocking, failed};
use super::stage::STAGING;
use crate::backend::{BackendError, Entry, ErrorKind, Key, Location};

/// Number of entries that one blocking call collects.
const BATCH: usize = 256;

/// Every regular file whose path is a key. Links are not followed. An unreadable directory yields
/// an error, and the stream continues with the next one. So does a link to another directory of the
/// store, since its content has two names.
pub(super) fn list(store: Fs) -> BoxStream<'static, Result<Entry, BackendError>> {
    let batches = stream::unfold(Some(Walk { store, open: None }), |walk| async {
        let mut walk = walk?;
        let step = blocking(move || {
            let found = walk.step();
            Ok((found, walk))
        });
        match step.await {
            Ok((found, walk)) => (!found.is_empty()).then_some((found, Some(walk))),
            Err(error) => Some((vec![Err(error)], None)),
        }
    });
    batches.flat_map(stream::iter).boxed()
}

struct Walk {
    store: Fs,
    /// Path of open directories from the root to the current one, at most as many as a key has
    /// segments. `None` before the walk starts.
    open: Option<Vec<FolderLevel>>,
}

struct FolderLevel {
    entries: ReadDir,
    /// Prefix of all keys in the directory: empty, or a path that ends in `/`.
    prefix: String,
}

impl Walk {
    /// Returns the next entries, or none at the end.
    fn step(&mut self) -> Vec<Result<Entry, BackendError>> {
        let mut found = Vec::new();
        while found.len() < BATCH {
            let place = self.place();
            match self.advance() {
                Ok(Step::Entry(entry)) => found.push(Ok(entry)),
                Ok(Step::Refused(why)) => {
                    let why = format!("listing {place} failed: {why}");
                    found.push(Err(BackendError::new(ErrorKind::Other, why)));
                }
                Ok(Step::On) => {}
                Ok(Step::End) => break,
                // Removed during the walk, so it is no longer stored.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => found.push(Err(failed(error, Doing::List, &place))),
            }
        }
        found
    }

    fn place(&self) -> Location {
        let prefix = self
            .open
            .as_ref()
            .and_then(|open| open.last())
            .map_or("", |level| &*level.prefix);
        Location::new(format!("{}{prefix}", self.store.shown))
    }

    fn advance(&mut self) -> io::Result<Step> {
        let Some(open) = &mut self.open else {
            // Mark the walk as started even on failure, or it would never end.
            let open = self.open.insert(Vec::new());
            let entries = self.store.root.dir()?.entries()?;
            open.push(FolderLevel {
                entries,
                prefix: String::new(),
            });
            return Ok(Step::On);
        };
        let Some(level) = open.last_mut() else {
            return Ok(Step::End);
        };
        match level.entries.next() {
            None => drop(open.pop()),
            Some(Ok(entry)) => match find(&self.store, &entry, &level.prefix)? {
                Found::File(entry) => return Ok(Step::Entry(entry)),
                Found::Directory(level) => open.push(*level),
                Found::Refused(why) => return Ok(Step::Refused(why)),
                Found::Other => {}
            },
            Some(Err(error)) => {
                // A broken directory might return the same error forever.
                open.pop();
                return Err(error);
            }
        }
        Ok(Step::On)
    }
}

enum Step {
    Entry(Entry),
    /// The entry's content can't be listed under its proper name.
    Refused(String),
    On,
    End,
}

enum Found {
    File(Entry),
    // Boxed because on Windows the struct contains the directory's read buffer.
    Directory(Box<FolderLevel>),
    Refused(String),
    Other,
}

fn find(store: &Fs, entry: &DirEntry, prefix: &str) -> io::Result<Found> {
    let name = entry.file_name();
    if !prefix.is_empty() && name == STAGING {
        // Agents that opened this nested store use other names for its content.
        return Ok(Found::Refused(
            "this directory is a store itself; open it directly, or move it away".to_owned(),
        ));
    }
    // A directory's path must be a key too, or no key could be below it.
    let Some(key) = name
        .to_str()
        .and_then(|name| Key::new(format!("{prefix}{name}")).ok())
    else {
        return Ok(Found::Other);
    };
    let metadata = entry.metadata()?;
    if metadata.is_dir() {
        return Ok(Found::Directory(Box::new(FolderLevel {
            entries: entry.open_dir()?.entries()?,
            prefix: format!("{key}/"),
        })));
    }
    // Content stored through a link is read through it, and listed at the link's target.
    if metadata.is_symlink()
        && store
            .root
            .dir()?
            .metadata(key.as_str())
            .is_ok_and(|target| target.is_dir())
    {
        let why = format!(
            "`{key}` is a symbolic link to another directory of the store; replace it with that directory"
        );
        return Ok(Found::Refused(why));
    }
    if !metadata.is_file() {
        return Ok(Found::Other);
    }
    Ok(Found::File(Entry {
        key,
        bytes: metadata.len(),
        stored_at: metadata.modified()?.into_std(),
    }))
}
