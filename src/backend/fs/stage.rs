//! Storing under a name: whole, once, and never over something else.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::time::SystemTime;

use cap_std::fs::{DirEntry, File, OpenOptions};

use super::Fs;
use super::error::link_refused;
use super::root::{Found, Made, random};
use crate::backend::range::within;
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
    // First, so that it is closed before a temporary root is removed.
    file: File,
    path: String,
    store: Fs,
}

impl Stage {
    /// Creates the store's directory for the first content. Until it has succeeded once, tries
    /// everything that storing needs: a long stream should not find out at its end that it can't be
    /// stored.
    pub(super) fn create(store: &Fs) -> io::Result<Self> {
        store.root.make()?;
        if !store.root.has_been_tried() {
            try_out(store)?;
            store.root.mark_tried();
        }
        Self::untried(store)
    }

    fn untried(store: &Fs) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for _ in 0..ATTEMPTS {
            let path = unused_path();
            match store.root.dir()?.open_with(&path, &options) {
                Ok(file) => {
                    return Ok(Self {
                        file,
                        path,
                        store: store.clone(),
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    store.root.make_directory(STAGING)?;
                    last = error;
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// Appends `bytes`. After an error, the number of bytes written is unknown.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Reads the bytes in `range` of the content so far.
    pub(super) fn read(&mut self, range: &Range<u64>) -> io::Result<Vec<u8>> {
        let Range { start, end } = within(range, self.file.metadata()?.len());
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(start))?;
        Read::by_ref(&mut self.file)
            .take(end - start)
            .read_to_end(&mut bytes)?;
        self.file.seek(SeekFrom::End(0))?;
        Ok(bytes)
    }

    /// Stores the content under `key`. Unless it is stored, another key can be tried.
    pub(super) fn name(&mut self, key: &Key) -> io::Result<PutOutcome> {
        let mut put = self.link(key);
        if put
            .as_ref()
            .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        {
            // A sweep took the idle staging file for a leftover and removed it, but it is still
            // open.
            let mut again = Self::create(&self.store)?;
            self.file.rewind()?;
            io::copy(&mut self.file, &mut again.file)?;
            std::mem::swap(self, &mut again);
            put = self.link(key);
        }
        let back = self.file.seek(SeekFrom::End(0));
        // Only a retry with another key needs the file at its end; other outcomes stand.
        if matches!(put, Ok(PutOutcome::AlreadyThere { .. } | PutOutcome::Taken)) {
            back?;
        }
        put
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
        link(&self.store, &self.path, &mut self.file, key)
    }

    /// The store that this file is for.
    pub(super) fn store(&self) -> &Fs {
        &self.store
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Err(error) = self
            .store
            .root
            .dir()
            .and_then(|dir| dir.remove_file(&self.path))
        {
            // Stored content is safe: it has a name of its own.
            tracing::debug!(error = %error, path = self.path, "could not remove a staging file");
        }
    }
}

/// Links `file`, which is at `path`, to the name of `key`, unless that is taken.
fn link(store: &Fs, path: &str, file: &mut File, key: &Key) -> io::Result<PutOutcome> {
    let (root, dir) = (&store.root, store.root.dir()?);
    root.expect_in_place()?;
    for _ in 0..ATTEMPTS {
        let Err(error) = dir.hard_link(path, dir, key.as_str()) else {
            if store.durable {
                root.sync_directories(key)?;
            }
            return Ok(PutOutcome::Stored);
        };
        match error.kind() {
            io::ErrorKind::AlreadyExists => {
                file.rewind()?;
                let length = file.metadata()?.len();
                if let Some(put) = compare(store, key, &*file, length)? {
                    return Ok(put);
                }
            }
            io::ErrorKind::NotFound => match root.make_parents(key) {
                // A sweep removed an empty parent directory before the next one was made in it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                made => made?,
            },
            _ => return Err(link_refused(error)),
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// Removes staging files last written before `before`, and returns their number.
pub(super) fn tidy(store: &Fs, before: SystemTime) -> io::Result<u64> {
    let entries = match store.root.dir().and_then(|dir| dir.read_dir(STAGING)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut removed = 0;
    for entry in entries {
        match remove_if_older(&entry?, before) {
            Ok(is_removed) => removed += u64::from(is_removed),
            // Its writer removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(removed)
}

fn remove_if_older(entry: &DirEntry, before: SystemTime) -> io::Result<bool> {
    let metadata = entry.metadata()?;
    let is_older = metadata.is_file() && metadata.modified()?.into_std() < before;
    if is_older {
        entry.remove_file()?;
    }
    Ok(is_older)
}

/// Compares `content`, of `length` bytes, with what is stored under `key`; `None` if nothing is.
pub(super) fn compare(
    store: &Fs,
    key: &Key,
    content: impl Read,
    length: u64,
) -> io::Result<Option<PutOutcome>> {
    let mut stored = match store.root.find(key)? {
        Found::Nothing => return Ok(None),
        Found::File(file, other) if other == length => file,
        Found::File(..) | Found::Foreign => return Ok(Some(PutOutcome::Taken)),
    };
    let stored_at = stored.metadata()?.modified()?.into_std();
    if !same_bytes(&mut stored, content)? {
        return Ok(Some(PutOutcome::Taken));
    }
    store.root.expect_in_place()?;
    if store.durable {
        // Whoever stored it may not have synced it. Windows can't sync a file open for reading.
        if cfg!(unix) {
            stored.sync_all()?;
        }
        match store.root.sync_directories(key) {
            // Removed by a sweep during the call, together with its directory.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            synced => synced?,
        }
    }
    Ok(Some(PutOutcome::AlreadyThere { stored_at }))
}

fn same_bytes(mut a: impl Read, mut b: impl Read) -> io::Result<bool> {
    let (mut ours, mut theirs) = (Vec::with_capacity(BUFFER), Vec::with_capacity(BUFFER));
    loop {
        ours.clear();
        theirs.clear();
        // `take` with `read_to_end` fills the buffer; a plain `read` may return fewer bytes.
        a.by_ref().take(BUFFER as u64).read_to_end(&mut ours)?;
        b.by_ref().take(BUFFER as u64).read_to_end(&mut theirs)?;
        if ours != theirs {
            return Ok(false);
        }
        if ours.is_empty() {
            return Ok(true);
        }
    }
}

/// Tries everything that storing needs, leaving nothing behind.
pub(super) fn try_out(store: &Fs) -> io::Result<()> {
    let dir = store.root.dir()?;
    let made = store.root.make_directory(STAGING)?;
    let tried = Stage::untried(store).and_then(|mut stage| {
        stage.write(b"offcut")?;
        let name = unused_path();
        dir.hard_link(&stage.path, dir, &name)
            .map_err(link_refused)?;
        dir.remove_file(&name)
    });
    if made == Made::New {
        // Fails, as it should, if another process now uses it.
        _ = dir.remove_dir(STAGING);
    }
    tried
}

/// A path in the staging directory. It is random, because processes in containers share process ids
/// and may share a directory. Its dot keeps it from being a key even if the staging directory is a
/// link to another one.
fn unused_path() -> String {
    format!("{STAGING}/.{:016x}", random())
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
