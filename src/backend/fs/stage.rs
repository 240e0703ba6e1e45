//! Storing under a name: whole, once, and never over something else.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::time::SystemTime;

use cap_std::fs::{File, OpenOptions};

use super::directory::{self, Directory, Found};
use super::error::{link_refused, none_if_absent};
use super::store::Fs;
use crate::backend::{Key, PutOutcome};

/// Directory for files without their final name. Segments of keys don't begin with a dot, so
/// nothing in it can be listed or read.
pub(super) const STAGING: &str = ".staging";
/// Number of attempts at a step that another process may undo, for example by removing a directory
/// while it is empty.
const ATTEMPTS: usize = 16;
/// Number of bytes of a file held in memory at once.
const BUFFER: usize = 64 * 1024;

/// A file without its final name. Dropping it removes the staging file, but not the content under
/// its final name.
///
/// All storing uses it, so that no step can be forgotten. It creates a staging file, syncs it if it
/// must be durable, links it to its name, which fails if the name is in use, and unlinks the
/// staging name on `drop`.
#[derive(Debug)]
pub(super) struct Stage {
    file: File,
    /// The directory with the staging file. The store's path may lead elsewhere once the file gets its
    /// name.
    directory: Directory,
    path: String,
    store: Fs,
}

impl Stage {
    /// Creates the store's directory for the first content.
    pub(super) fn create(store: &Fs) -> io::Result<Self> {
        Self::create_in(Directory::make(store)?, store)
    }

    fn create_in(directory: Directory, store: &Fs) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let path = unused_path();
        for _ in 0..ATTEMPTS {
            if let Some(file) = none_if_absent(directory.0.open_with(&path, &options))? {
                return Ok(Self {
                    file,
                    directory,
                    path,
                    store: store.clone(),
                });
            }
            directory.make_directory(STAGING)?;
        }
        Err(io::ErrorKind::NotFound.into())
    }

    /// Tries whether the file system has hard links: a long stream should not find out at its end that
    /// it can't be stored.
    pub(super) fn try_linking(&self) -> io::Result<()> {
        let (Directory(dir), name) = (&self.directory, unused_path());
        dir.hard_link(&self.path, dir, &name)
            .map_err(link_refused)?;
        dir.remove_file(&name)
    }

    /// Appends `bytes`. After an error, the number of bytes written is unknown.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::End(0))?;
        self.file.write_all(bytes)
    }

    /// Reads the bytes in `range` of the content so far.
    pub(super) fn read(&mut self, range: &Range<u64>) -> io::Result<Vec<u8>> {
        directory::read(&mut self.file, range)
    }

    /// Stores the content under `key`, unless that is taken. If it is not stored, another key can be
    /// tried.
    pub(super) fn name(&mut self, key: &Key) -> io::Result<PutOutcome> {
        if let Some(put) = none_if_absent(self.link(key))? {
            return Ok(put);
        }
        // A sweep took the idle staging file for a leftover and removed it, but it is still open.
        let mut again = Self::create(&self.store)?;
        self.file.rewind()?;
        io::copy(&mut self.file, &mut again.file)?;
        std::mem::swap(self, &mut again);
        self.link(key)
    }

    fn link(&mut self, key: &Key) -> io::Result<PutOutcome> {
        // The last bytes of a stream may be old, but it is stored now.
        _ = self
            .file
            .try_clone()?
            .into_std()
            .set_modified(SystemTime::now());
        if self.store.durable {
            // Sync first: a name without its content would be taken forever.
            self.file.sync_all()?;
        }
        for _ in 0..ATTEMPTS {
            let directory = Directory::make(&self.store)?;
            let from = &self.directory.0;
            let Err(error) = from.hard_link(&self.path, &directory.0, key.as_str()) else {
                if self.store.durable {
                    directory.sync(key)?;
                }
                return Ok(PutOutcome::Stored);
            };
            match error.kind() {
                io::ErrorKind::AlreadyExists => {
                    self.file.rewind()?;
                    let length = self.file.metadata()?.len();
                    if let Some(put) = compare(&self.store, key, &self.file, length)? {
                        return Ok(put);
                    }
                }
                io::ErrorKind::NotFound => match directory.make_parents(key) {
                    // A sweep removed an empty parent directory before the next one was made in it.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    made => made?,
                },
                _ => return Err(link_refused(error)),
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Err(error) = self.directory.0.remove_file(&self.path) {
            // Stored content is safe: it has a name of its own.
            tracing::debug!(error = %error, path = self.path, "could not remove a staging file");
        }
    }
}

/// Removes staging files last written before `before`, and returns their number.
pub(super) fn tidy(store: &Fs, before: SystemTime) -> io::Result<u64> {
    let Some(directory) = none_if_absent(Directory::open(store))? else {
        return Ok(0);
    };
    let mut removed = 0;
    let entries = none_if_absent(directory.0.read_dir(STAGING))?;
    for entry in entries.into_iter().flatten() {
        let path = Path::new(STAGING).join(entry?.file_name());
        // Its writer may have removed it.
        let is_removed = none_if_absent(directory.remove_if_older(path, before))?;
        removed += u64::from(is_removed.unwrap_or_default());
    }
    Ok(removed)
}

/// Compares `content`, of `length` bytes, with what is stored under `key`; `None` if nothing is.
pub(super) fn compare(
    store: &Fs,
    key: &Key,
    content: impl Read,
    length: u64,
) -> io::Result<Option<PutOutcome>> {
    let (mut stored, metadata) = match directory::find(store, key)? {
        Found::Nothing => return Ok(None),
        Found::File(file, metadata) if metadata.len() == length => (file, metadata),
        Found::File(..) | Found::Foreign => return Ok(Some(PutOutcome::Taken)),
    };
    if !same_bytes(&mut stored, content)? {
        return Ok(Some(PutOutcome::Taken));
    }
    if store.durable {
        // Whoever stored it may not have synced it. Windows can't sync a file open for reading.
        if cfg!(unix) {
            stored.sync_all()?;
        }
        let synced = Directory::open(store).and_then(|directory| directory.sync(key));
        if none_if_absent(synced)?.is_none() {
            // Removed by a sweep during the call, together with its directory.
            return Ok(None);
        }
    }
    let stored_at = metadata.modified()?.into_std();
    Ok(Some(PutOutcome::AlreadyThere { stored_at }))
}

fn same_bytes(one: impl Read, other: impl Read) -> io::Result<bool> {
    let mut one = BufReader::with_capacity(BUFFER, one);
    let mut other = BufReader::with_capacity(BUFFER, other);
    loop {
        let (ours, theirs) = (one.fill_buf()?, other.fill_buf()?);
        let length = ours.len().min(theirs.len());
        if length == 0 || ours[..length] != theirs[..length] {
            return Ok(ours.is_empty() && theirs.is_empty());
        }
        one.consume(length);
        other.consume(length);
    }
}

/// Tries everything that storing needs in the store's existing directory, leaving nothing behind.
pub(super) fn try_out(store: &Fs) -> io::Result<()> {
    let directory = Directory::open(store)?;
    let is_new = directory.make_directory(STAGING)?;
    let tried = Stage::create_in(Directory::open(store)?, store).and_then(|mut stage| {
        stage.write(b"offcut")?;
        stage.try_linking()
    });
    if is_new {
        // Fails, as it should, if another process now uses it.
        _ = directory.0.remove_dir(STAGING);
    }
    tried
}

/// A path in the staging directory. It is random, because processes in containers share process ids
/// and may share a directory. Its dot keeps it from being a key even if the staging directory is a
/// link to another one.
fn unused_path() -> String {
    format!(
        "{STAGING}/.{:016x}",
        RandomState::new().build_hasher().finish()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads one byte at a time, as files may.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.by_ref().take(1).read(buffer)
        }
    }

    #[test]
    fn what_a_sweep_took_for_a_leftover_is_named_all_the_same() {
        let home = tempfile::tempdir().unwrap();
        let store = Fs::open(home.path()).unwrap();
        let mut stage = Stage::create(&store).unwrap();
        stage.write(b"slow").unwrap();
        assert_eq!(
            tidy(
                &store,
                SystemTime::now() + std::time::Duration::from_secs(60)
            )
            .unwrap(),
            1
        );
        stage.write(b"ly").unwrap();
        assert_eq!(
            stage.name(&Key::new("trunc/call_1").unwrap()).unwrap(),
            PutOutcome::Stored
        );
        stage.write(b"!").unwrap();
        drop(stage);
        assert!(
            std::fs::read(home.path().join("trunc/call_1"))
                .unwrap()
                .starts_with(b"slowly")
        );
        assert_eq!(home.path().join(STAGING).read_dir().unwrap().count(), 0);
    }

    #[test]
    fn bytes_are_compared_to_their_end() {
        let long = vec![7; BUFFER + 1];
        let other = [&long[..BUFFER], &[8]].concat();
        assert!(same_bytes(&*long, &*long).unwrap());
        assert!(!same_bytes(&*long, &*other).unwrap());
        assert!(!same_bytes(&*long, &long[..BUFFER]).unwrap());
        assert!(same_bytes(Slow(b"abc"), &b"abc"[..]).unwrap());
        assert!(!same_bytes(Slow(b"abc"), &b"ab"[..]).unwrap());
        assert!(same_bytes(io::empty(), io::empty()).unwrap());
    }

    #[test]
    fn staging_paths_are_no_keys() {
        assert!(Key::new(unused_path()).is_err());
        assert!(Key::new(unused_path().replace(STAGING, "trunc")).is_err());
        assert_ne!(unused_path(), unused_path());
    }

    #[test]
    fn trying_out_leaves_nothing_behind() {
        let home = tempfile::tempdir().unwrap();
        try_out(&Fs::open(home.path()).unwrap()).unwrap();
        assert_eq!(home.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn a_staging_file_is_gone_when_its_stage_is() {
        let home = tempfile::tempdir().unwrap();
        let store = Fs::open(home.path()).unwrap();
        let key = Key::new("trunc/call_1").unwrap();
        let mut stage = Stage::create(&store).unwrap();
        stage.write(b"one").unwrap();
        assert_eq!(stage.name(&key).unwrap(), PutOutcome::Stored);
        drop(stage);
        let mut other = Stage::create(&store).unwrap();
        other.write(b"two").unwrap();
        assert_eq!(other.name(&key).unwrap(), PutOutcome::Taken);
        drop(other);
        assert_eq!(home.path().join(STAGING).read_dir().unwrap().count(), 0);
        assert_eq!(
            std::fs::read(home.path().join("trunc/call_1")).unwrap(),
            b"one"
        );
    }
}
