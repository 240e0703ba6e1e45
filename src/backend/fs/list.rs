//! Walk over all stored content.

use std::io;

use cap_std::fs::{DirEntry, ReadDir};
use futures_util::FutureExt;
use futures_util::stream::{self, BoxStream, StreamExt};

use super::directory::Directory;
use super::error::failed;
use super::stage::STAGING;
use super::store::Fs;
use crate::backend::{BackendError, Entry, ErrorKind, Key, Location};

/// Every regular file whose path is a key. Links are not followed. An unreadable directory yields
/// an error, and the stream continues with the next one. So does a link to another directory of the
/// store, since its content has two names.
pub(super) fn list(store: Fs) -> BoxStream<'static, Result<Entry, BackendError>> {
    let walk = async move {
        let walked = store.blocking(|store| {
            let (store, found) = (store.clone(), Vec::new());
            let mut walk = Walk { store, found };
            match Directory::open(&walk.store).and_then(|directory| directory.0.entries()) {
                Ok(entries) => walk.directory(entries, ""),
                Err(error) => walk.fail(error, ""),
            }
            Ok(walk.found)
        });
        stream::iter(walked.await.unwrap_or_else(|error| vec![Err(error)]))
    };
    walk.flatten_stream().boxed()
}

/// A walk, on a blocking thread.
struct Walk {
    store: Fs,
    found: Vec<Result<Entry, BackendError>>,
}

impl Walk {
    /// Walks over a directory. `prefix` is the beginning of all keys in it: empty, or a path that
    /// ends in `/`.
    fn directory(&mut self, entries: ReadDir, prefix: &str) {
        for entry in entries {
            if let Err(error) = entry.and_then(|entry| self.entry(&entry, prefix)) {
                self.fail(error, prefix);
            }
        }
    }

    fn entry(&mut self, entry: &DirEntry, prefix: &str) -> io::Result<()> {
        let name = entry.file_name();
        if !prefix.is_empty() && name == STAGING {
            // Agents that opened this nested store use other names for its content.
            let why = "this directory is a store itself; open it directly, or move it away";
            self.refuse(why, prefix);
            return Ok(());
        }
        // A directory's path must be a key too, or no key could be below it.
        let Some(key) = name
            .to_str()
            .and_then(|name| Key::new(format!("{prefix}{name}")).ok())
        else {
            return Ok(());
        };
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            self.directory(entry.open_dir()?.entries()?, &format!("{key}/"));
            return Ok(());
        }
        // Content stored through a link is read through it, and listed at the link's target.
        if metadata.is_symlink() {
            let target = Directory::open(&self.store)?.0.metadata(key.as_str());
            let why = format!(
                "`{key}` is a symbolic link to another directory of the store; replace it with that directory"
            );
            if target.is_ok_and(|target| target.is_dir()) {
                self.refuse(&why, prefix);
            }
            return Ok(());
        }
        if !metadata.is_file() {
            return Ok(());
        }
        let entry = Entry {
            key,
            bytes: metadata.len(),
            stored_at: metadata.modified()?.into_std(),
        };
        self.found.push(Ok(entry));
        Ok(())
    }

    fn fail(&mut self, source: io::Error, prefix: &str) {
        // Removed during the walk, so it is no longer stored.
        if source.kind() != io::ErrorKind::NotFound {
            let error = failed(source, "listing", &self.place(prefix));
            self.found.push(Err(error));
        }
    }

    fn refuse(&mut self, why: &str, prefix: &str) {
        let why = format!("listing {} failed: {why}", self.place(prefix));
        self.found
            .push(Err(BackendError::new(ErrorKind::Other, why)));
    }

    fn place(&self, prefix: &str) -> Location {
        Location::new(format!("{}{prefix}", self.store.shown_as))
    }
}
