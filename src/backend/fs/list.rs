//! The walk over all that is stored.

use std::io;

use cap_std::fs::{DirEntry, ReadDir};
use futures_util::stream::{self, BoxStream, StreamExt};

use super::Fs;
use super::error::{Doing, blocking, failed};
use super::stage::STAGING;
use crate::backend::{BackendError, Entry, ErrorKind, Key, Location};

/// How many entries one blocking call looks for.
const BATCH: usize = 256;

/// Every regular file whose path is a key. Links are not followed. A directory that can't be read
/// is an error in the stream, which goes on with the next; so is a link to another directory of the
/// store, for its content has two names.
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
    /// The directories from the root to where the walk is: no more than a key has segments. `None`
    /// before the begin.
    open: Option<Vec<Level>>,
}

struct Level {
    entries: ReadDir,
    /// What the keys in it begin with: nothing, or a path that ends in `/`.
    prefix: String,
}

impl Walk {
    /// The next entries; none at the end.
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
                // Removed meanwhile, and so not stored.
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
            // Begun even if this fails, or the walk would never end.
            let open = self.open.insert(Vec::new());
            let entries = self.store.root.dir()?.entries()?;
            open.push(Level {
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
            Some(Ok(entry)) => match look(&self.store, &entry, &level.prefix)? {
                Look::File(entry) => return Ok(Step::Entry(entry)),
                Look::Directory(level) => open.push(*level),
                Look::Refused(why) => return Ok(Step::Refused(why)),
                Look::Other => {}
            },
            Some(Err(error)) => {
                // Asked again, a broken directory might answer so for ever.
                open.pop();
                return Err(error);
            }
        }
        Ok(Step::On)
    }
}

enum Step {
    Entry(Entry),
    /// What is there has other names than those that are listed.
    Refused(String),
    On,
    End,
}

enum Look {
    File(Entry),
    // Windows reads directories into the struct itself.
    Directory(Box<Level>),
    Refused(String),
    Other,
}

fn look(store: &Fs, entry: &DirEntry, prefix: &str) -> io::Result<Look> {
    let name = entry.file_name();
    if !prefix.is_empty() && name == STAGING {
        // What is in it has other names where its agents opened it.
        return Ok(Look::Refused(
            "it is a store of its own; open that, or move it away".to_owned(),
        ));
    }
    // The path of a directory is a key as well, if there can be keys in it.
    let Some(key) = name
        .to_str()
        .and_then(|name| Key::new(format!("{prefix}{name}")).ok())
    else {
        return Ok(Look::Other);
    };
    let metadata = entry.metadata()?;
    if metadata.is_dir() {
        return Ok(Look::Directory(Box::new(Level {
            entries: entry.open_dir()?.entries()?,
            prefix: format!("{key}/"),
        })));
    }
    // What was stored through a link is read through it, and is listed where it leads.
    if metadata.is_symlink()
        && store
            .root
            .dir()?
            .metadata(key.as_str())
            .is_ok_and(|target| target.is_dir())
    {
        let why = format!(
            "`{key}` is a symbolic link to another directory of the store; put that directory in its place"
        );
        return Ok(Look::Refused(why));
    }
    if !metadata.is_file() {
        return Ok(Look::Other);
    }
    Ok(Look::File(Entry {
        key,
        bytes: metadata.len(),
        stored_at: metadata.modified()?.into_std(),
    }))
}
