//! Walk over all stored content.

use std::io;

use cap_std::fs::{DirEntry, ReadDir};
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::mpsc;

use super::directory::Directory;
use super::error::{Doing, blocking, failed};
use super::stage::STAGING;
use super::store::Fs;
use crate::backend::{BackendError, Entry, ErrorKind, Key, Location};

/// Number of entries that the walk may be ahead of its reader.
const AHEAD: usize = 256;

/// Every regular file whose path is a key. Links are not followed. An unreadable directory yields
/// an error, and the stream continues with the next one. So does a link to another directory of the
/// store, since its content has two names.
pub(super) fn list(store: Fs) -> BoxStream<'static, Result<Entry, BackendError>> {
    let (found, mut receiver) = mpsc::channel(AHEAD);
    let walk = blocking(move || {
        let entries = Directory::open(&store).and_then(|directory| directory.0.entries());
        let walk = Walk { store, found };
        _ = match entries {
            Ok(entries) => walk.directory(entries, ""),
            Err(error) => walk.fail(error, ""),
        };
        Ok(())
    });
    let walk = stream::once(walk).filter_map(async |walked| walked.err().map(Err));
    let found = stream::poll_fn(move |context| receiver.poll_recv(context));
    stream::select(found, walk).boxed()
}

/// A walk, on a blocking thread. Its methods return `None` once nobody listens any more.
struct Walk {
    store: Fs,
    found: mpsc::Sender<Result<Entry, BackendError>>,
}

impl Walk {
    /// Walks over a directory. `prefix` is the beginning of all keys in it: empty, or a path that
    /// ends in `/`.
    fn directory(&self, entries: ReadDir, prefix: &str) -> Option<()> {
        for entry in entries {
            match entry {
                Ok(entry) => match self.entry(&entry, prefix) {
                    Ok(go_on) => go_on?,
                    Err(error) => self.fail(error, prefix)?,
                },
                // A broken directory might return the same error forever.
                Err(error) => return self.fail(error, prefix),
            }
        }
        Some(())
    }

    fn entry(&self, entry: &DirEntry, prefix: &str) -> io::Result<Option<()>> {
        let name = entry.file_name();
        if !prefix.is_empty() && name == STAGING {
            // Agents that opened this nested store use other names for its content.
            let why = "this directory is a store itself; open it directly, or move it away";
            return Ok(self.refuse(why, prefix));
        }
        // A directory's path must be a key too, or no key could be below it.
        let Some(key) = name
            .to_str()
            .and_then(|name| Key::new(format!("{prefix}{name}")).ok())
        else {
            return Ok(Some(()));
        };
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            return Ok(self.directory(entry.open_dir()?.entries()?, &format!("{key}/")));
        }
        // Content stored through a link is read through it, and listed at the link's target.
        if metadata.is_symlink() {
            let target = Directory::open(&self.store)?.0.metadata(key.as_str());
            let why = format!(
                "`{key}` is a symbolic link to another directory of the store; replace it with that directory"
            );
            return Ok(match target {
                Ok(target) if target.is_dir() => self.refuse(&why, prefix),
                _ => Some(()),
            });
        }
        if !metadata.is_file() {
            return Ok(Some(()));
        }
        let entry = Entry {
            key,
            bytes: metadata.len(),
            stored_at: metadata.modified()?.into_std(),
        };
        Ok(self.send(Ok(entry)))
    }

    fn send(&self, found: Result<Entry, BackendError>) -> Option<()> {
        self.found.blocking_send(found).ok()
    }

    fn fail(&self, source: io::Error, prefix: &str) -> Option<()> {
        // Removed during the walk, so it is no longer stored.
        if source.kind() == io::ErrorKind::NotFound {
            return Some(());
        }
        self.send(Err(failed(source, Doing::List, &self.place(prefix))))
    }

    fn refuse(&self, why: &str, prefix: &str) -> Option<()> {
        let why = format!("listing {} failed: {why}", self.place(prefix));
        self.send(Err(BackendError::new(ErrorKind::Other, why)))
    }

    fn place(&self, prefix: &str) -> Location {
        Location::new(format!("{}{prefix}", self.store.shown_as))
    }
}
