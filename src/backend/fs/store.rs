//! The store type: its directory, which is resolved without writing and created for the first content, and its options.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::error::failed;
use crate::backend::{BackendError, ErrorKind, Location};

/// Threads that one directory may block. A file system that hangs blocks them until it answers, whoever still waits, and
/// the others of the runtime's threads are for other work.
const MOST_THREADS: usize = 32;

/// A store with one file per content in a directory, which people and programs can read too.
///
/// ```
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// use offcut::backend::{Backend, Fs, Key, PutOutcome};
///
/// # let home = tempfile::tempdir()?;
/// # let path = home.path().join(".offcut");
/// let store = Fs::open(&path)?.shown_as(".offcut"); // path: where .offcut is
/// let key = Key::new("trunc/call_1")?;
/// assert_eq!(store.put(&key, "the whole result".into()).await?, PutOutcome::Stored);
/// assert_eq!(store.locate(&key).as_str(), ".offcut/trunc/call_1");
/// assert_eq!(std::fs::read(path.join("trunc/call_1"))?, b"the whole result");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Default
///
/// - locations are absolute paths: [`shown_as`](Self::shown_as) shortens them.
/// - not durable: content outlives the process, but survives a power loss only with
///   [`durable`](Self::durable).
///
/// # Guarantees
///
/// - **Create-only and atomic.** Content is written to its own file under `.staging`, then
///   hard-linked to its name, which fails if the name is in use. So the file system must support
///   hard links. Any number of processes may share a directory.
/// - **Confined to its directory.** Nothing outside is read or written, but by a
///   check of one that does not exist yet. Symbolic links are not
///   followed out of the directory. A link in place of content is neither followed nor replaced:
///   the name counts as taken.
/// - **Private.** Files are created with mode 0600 and directories with 0700 (Unix). Existing ones
///   keep their mode.
/// - **Bounded.** Reading needs memory for the requested range, streaming to a file for
///   one chunk, listing for all entries.
/// - **Swept in place.** Directories that a sweep leaves empty are removed.
/// - **Non-blocking.** I/O runs on tokio's blocking threads, so a tokio runtime is required.
///   Exceptions are [`open`](Self::open), and removing the file of a dropped writer.
///
/// A killed process may leave a file in `.staging`. It is never listed or read. A sweep removes it.
/// You can also delete `.staging` while no process uses the store.
#[derive(Clone, Debug)]
pub struct Fs {
    /// The directory, absolute and free of links when the store was opened; ends in `/`.
    pub(super) path: Arc<str>,
    /// Prefix of locations; ends in `/`.
    pub(super) shown_as: Arc<str>,
    pub(super) durable: bool,
    threads: Arc<Semaphore>,
}

impl Fs {
    /// Opens the store in the directory `path`, which need not exist: the first content creates it
    /// and its parents, all with mode 0700 (Unix). A relative path begins in the working directory
    /// that the process has now.
    ///
    /// Opening writes nothing, so content on a full or read-only disk stays readable. A store
    /// without write access fails when storing, and works once access is granted; use
    /// [`check`](Self::check) to find out early. A symbolic link in `path` is followed once, now;
    /// changing it later does not move the store. Does blocking I/O.
    ///
    /// # Errors
    ///
    /// `path` can never be a directory, for example because it is below a file or is a dangling
    /// link; or it can't be shown in a hint, because it is not UTF-8 or has control characters; or
    /// it begins with `~`, which only shells expand.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, BackendError> {
        let path = path.as_ref();
        if path.as_os_str().as_encoded_bytes().starts_with(b"~") {
            let why = "only shells expand a `~`, and none has: write the whole path, or `./~` for a directory of that name";
            return Err(BackendError::new(ErrorKind::Other, why));
        }
        let place = Location::new(format!("{path:?}"));
        // Made absolute now, as the process may change its working directory later.
        let path = std::path::absolute(path).and_then(|path| resolve(&path));
        let path = path.map_err(|source| failed(source, "opening the store in", &place))?;
        let path = shown(&path).ok_or_else(|| {
            let why =
                "its absolute path is not UTF-8 or has control characters, so no hint can show it; choose another path";
            BackendError::new(ErrorKind::Other, format!("opening the store in {place} failed: {why}"))
        })?;
        let path: Arc<str> = path.into();
        Ok(Self {
            shown_as: path.clone(),
            path,
            durable: false,
            threads: Arc::new(Semaphore::new(MOST_THREADS)),
        })
    }

    /// The absolute path of the directory, free of symbolic links when it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        Path::new(&*self.path)
    }

    /// Sets the prefix that hints show instead of the directory's absolute path: with `.offcut`,
    /// locations read `.offcut/trunc/call_1`.
    ///
    /// `prefix` should be one line that tells the reader where to look. A missing `/` at its end is
    /// added. Locations in both forms resolve; an ambiguous one is read with this prefix.
    #[must_use]
    pub fn shown_as(mut self, prefix: impl Into<String>) -> Self {
        self.shown_as = ending_in_slash(prefix.into()).into();
        self
    }

    /// Makes stored content survive a power loss or a crash of the machine.
    ///
    /// Without it, content stored in the seconds before a power loss may be missing, empty or cut
    /// short. With it, a call returns only after the file and all its parent directories are synced
    /// (`fsync`). That takes a few milliseconds per put on an SSD and some ten on a hard disk.
    /// Directories are synced on Unix only; Windows journals their entries.
    #[must_use]
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }

    /// The store itself, as errors name it.
    pub(super) fn place(&self) -> Location {
        Location::new(&*self.shown_as)
    }

    /// Runs `work` on a thread that may block.
    ///
    /// If the future is dropped, `work` still runs to its end or never starts. So it must own its data
    /// and clean up when dropped.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, BackendError> + Send + 'static,
    ) -> Result<T, BackendError> {
        let runtime = Handle::try_current().map_err(|source| {
            let why = "a store in a directory needs a tokio runtime; call it within one";
            BackendError::new(ErrorKind::Other, why).with_source(source)
        })?;
        let (store, thread) = (
            self.clone(),
            Arc::clone(&self.threads).acquire_owned().await,
        );
        let work = move || {
            let _thread = thread;
            work(&store)
        };
        let done = runtime.spawn_blocking(work).await;
        done.unwrap_or_else(|source| {
            let why = "the runtime shut down before the store answered";
            Err(BackendError::new(ErrorKind::Other, why).with_source(source))
        })
    }
}

/// Resolves the links in the existing part of the absolute `path`. None of the path needs to exist.
///
/// Fails for a path that can never be a directory. Other problems, such as a permission, may be
/// fixed later.
pub(super) fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut at = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            // Links are already resolved, so `..` just removes the last component.
            Component::ParentDir => drop(at.pop()),
            Component::Prefix(_) | Component::RootDir => at.push(component),
            Component::Normal(name) => {
                at.push(name);
                match at.canonicalize() {
                    Ok(real) => at = real,
                    Err(error) if is_hopeless(&error) || at.is_symlink() => return Err(error),
                    Err(_) => {}
                }
            }
        }
    }
    match at.metadata() {
        Ok(metadata) if !metadata.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
        _ => Ok(at),
    }
}

fn is_hopeless(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, InvalidInput, NotADirectory};
    matches!(error.kind(), InvalidFilename | InvalidInput | NotADirectory)
}

/// Creates the directory `path` with mode 0700, and its parents.
pub(super) fn make(path: &Path) -> io::Result<()> {
    // Parents of the new directories: they must be synced, or a power loss could remove the new
    // store.
    let parents: Vec<&Path> = path
        .ancestors()
        .take_while(|directory| !directory.exists())
        .filter_map(Path::parent)
        .collect();
    private().recursive(true).create(path)?;
    // Sync here, since other handles can't tell that the directories are new.
    if cfg!(unix) {
        for parent in parents {
            sync(&std::fs::File::open(parent)?)?;
        }
    }
    Ok(())
}

fn private() -> std::fs::DirBuilder {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes"))]
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// The absolute `path` of a directory as hints show it, ending in `/`. `None` if they can't.
pub(super) fn shown(path: &Path) -> Option<String> {
    let path = path
        .to_str()
        .filter(|path| !path.contains(char::is_control))?;
    Some(ending_in_slash(portable(path)))
}

/// Makes `prefix` end in a slash.
pub(super) fn ending_in_slash(mut prefix: String) -> String {
    if !prefix.ends_with('/') {
        prefix.push('/');
    }
    prefix
}

/// Replaces the separators of `path` by those of keys. Windows canonicalizes to `\\?\C:\store`, a
/// form that allows no `/`.
fn portable(path: &str) -> String {
    if !cfg!(windows) {
        return path.to_owned();
    }
    let path = match path.strip_prefix(r"\\?\UNC\") {
        Some(share) => format!(r"\\{share}"),
        None => path.strip_prefix(r"\\?\").unwrap_or(path).to_owned(),
    };
    path.replace('\\', "/")
}

pub(super) fn sync(directory: &std::fs::File) -> io::Result<()> {
    use io::ErrorKind::{InvalidInput, Unsupported};
    match directory.sync_all() {
        // This file system can't sync directories, so nothing more can be done.
        Err(error) if matches!(error.kind(), InvalidInput | Unsupported) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn few_threads_are_blocked_at_a_time() {
        let home = tempfile::tempdir().unwrap();
        let store = Fs::open(home.path()).unwrap();
        let (hangs, begun) = (
            Arc::new(AtomicBool::new(true)),
            Arc::new(AtomicUsize::new(0)),
        );
        let tasks = (0..3 * MOST_THREADS).map(|_| {
            let (hangs, begun) = (Arc::clone(&hangs), Arc::clone(&begun));
            let store = store.clone();
            let work = move |_: &Fs| {
                begun.fetch_add(1, Ordering::SeqCst);
                while hangs.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Ok(())
            };
            tokio::spawn(async move { store.blocking(work).await })
        });
        let tasks: Vec<_> = tasks.collect();
        while begun.load(Ordering::SeqCst) < MOST_THREADS {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        let most = begun.load(Ordering::SeqCst);
        hangs.store(false, Ordering::SeqCst);
        for task in tasks {
            assert!(task.await.unwrap().is_ok());
        }
        assert_eq!(most, MOST_THREADS);
        assert_eq!(begun.load(Ordering::SeqCst), 3 * MOST_THREADS);
    }

    #[test]
    fn prefixes_end_in_one_slash() {
        for (given, made) in [
            ("/", "/"),
            (".offcut", ".offcut/"),
            (".offcut/", ".offcut/"),
            ("offcut:", "offcut:/"),
            ("", "/"),
        ] {
            assert_eq!(ending_in_slash(given.to_owned()), made);
        }
    }

    #[test]
    fn a_path_that_is_not_there_is_resolved_as_it_will_be() {
        let home = tempfile::tempdir().unwrap();
        let real = home.path().canonicalize().unwrap();
        for (given, resolved) in [
            ("", ""),
            ("a/b", "a/b"),
            ("a/../b/./c", "b/c"),
            ("a/b/../..", ""),
        ] {
            let resolved = real
                .components()
                .chain(Path::new(resolved).components())
                .collect::<PathBuf>();
            assert_eq!(
                resolve(&home.path().join(given)).unwrap(),
                resolved,
                "{given}"
            );
        }
        assert_eq!(home.path().read_dir().unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn a_parent_of_a_link_is_that_of_what_it_leads_to() {
        let home = tempfile::tempdir().unwrap();
        let real = home.path().canonicalize().unwrap();
        std::fs::create_dir_all(real.join("deep/er")).unwrap();
        std::os::unix::fs::symlink("deep/er", real.join("link")).unwrap();
        assert_eq!(
            resolve(&real.join("link/../new")).unwrap(),
            real.join("deep/new")
        );
    }

    #[test]
    fn l7_without_a_runtime_it_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        let store = Fs::open(home.path()).unwrap();
        let mut work = Box::pin(store.blocking(|_| Ok(())));
        let polled = work
            .as_mut()
            .poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        assert!(
            matches!(polled, std::task::Poll::Ready(Err(_))),
            "{polled:?}"
        );
    }
}
