//! Translation of I/O errors into the store's errors, with advice.

use std::io;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::backend::{BackendError, ErrorKind, Location};

/// The operation whose errors mean something else than those of others.
pub(super) const READING: &str = "reading";

/// The error for `source` while `doing` something at `location`.
pub(super) fn failed(source: io::Error, doing: &str, location: &Location) -> BackendError {
    let (kind, advice) = advice(&source, doing);
    BackendError::new(kind, format!("{doing} {location} failed: {advice}")).with_source(source)
}

fn advice(source: &io::Error, doing: &str) -> (ErrorKind, &'static str) {
    use io::ErrorKind as Io;
    match source.kind() {
        Io::NotFound if doing == READING => (ErrorKind::NotFound, "another process removed it"),
        // `ErrorKind::NotFound` is only for missing content.
        Io::NotFound => (
            ErrorKind::Other,
            "its directory can't be made there, or another process removed something in it; choose another path, or clean \
             up only while no process uses the store",
        ),
        // Without an OS error code, it comes from cap-std or `link_found`.
        Io::PermissionDenied if source.raw_os_error().is_none() => (
            ErrorKind::Denied,
            "a symbolic link leads out of the store; remove the link",
        ),
        Io::PermissionDenied => (
            ErrorKind::Denied,
            "the system refuses; let this user read and write the store's directory, or choose another one",
        ),
        // From `link_refused`; the system's own error would have a code.
        Io::Unsupported if source.raw_os_error().is_none() => (
            ErrorKind::Other,
            "the file system has no hard links, or refuses them here, and the store needs them to write \
             atomically; choose a directory on another file system",
        ),
        Io::ReadOnlyFilesystem => (
            ErrorKind::Denied,
            "the file system is read-only; choose a directory that can be written to",
        ),
        Io::StorageFull | Io::QuotaExceeded | Io::FileTooLarge => (
            ErrorKind::Full,
            "no space is left, or the file is over a quota or limit; free some, raise the limit, or choose another file system",
        ),
        Io::NotADirectory | Io::AlreadyExists => (
            ErrorKind::Other,
            "its directory can't be made there: part of the path is not a directory that takes one; move that away, or choose another path",
        ),
        _ => (ErrorKind::Other, "the system reports an error"),
    }
}

/// The error for a path of a store that has become a link since it was opened.
pub(super) fn link_found() -> io::Error {
    io::ErrorKind::PermissionDenied.into()
}

/// Returns true if `error` means that the name does not exist. A path below a file doesn't either.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// `None` instead of the error that nothing is found.
pub(super) fn none_if_not_found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Marks an error of a refused hard link as unsupported if the file system may have no hard links.
pub(super) fn link_refused(source: io::Error) -> io::Error {
    const EPERM: i32 = 1; // from Linux on FAT and exFAT; same on every Unix
    if source.kind() == io::ErrorKind::Unsupported
        || (cfg!(unix) && source.raw_os_error() == Some(EPERM))
    {
        return io::Error::new(io::ErrorKind::Unsupported, source);
    }
    source
}

/// Threads that one directory may block. A file system that hangs blocks them until it answers, whoever still waits, and
/// the others of the runtime's threads are for other work.
const MOST_THREADS: usize = 32;

/// Those of tokio's blocking threads that a directory may block.
#[derive(Clone, Debug)]
pub(super) struct BlockingThreads(Arc<Semaphore>);

impl BlockingThreads {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MOST_THREADS)))
    }

    /// Runs `work` on one of them.
    ///
    /// If the future is dropped, `work` still runs to its end or never starts. So it must own its data
    /// and clean up when dropped.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, BackendError> + Send + 'static,
    ) -> Result<T, BackendError> {
        let runtime = Handle::try_current().map_err(|source| {
            let why = "a store in a directory needs a tokio runtime; call it within one";
            BackendError::new(ErrorKind::Other, why).with_source(source)
        })?;
        let thread = Arc::clone(&self.0).acquire_owned().await;
        let work = move || {
            let _thread = thread;
            work()
        };
        let done = runtime.spawn_blocking(work).await;
        done.unwrap_or_else(|source| {
            let why = "the runtime shut down before the store answered";
            Err(BackendError::new(ErrorKind::Other, why).with_source(source))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn few_threads_are_blocked_at_a_time() {
        let threads = BlockingThreads::new();
        let (hangs, begun) = (
            Arc::new(AtomicBool::new(true)),
            Arc::new(AtomicUsize::new(0)),
        );
        let tasks = (0..3 * MOST_THREADS).map(|_| {
            let (hangs, begun) = (Arc::clone(&hangs), Arc::clone(&begun));
            let threads = threads.clone();
            let work = move || {
                begun.fetch_add(1, Ordering::SeqCst);
                while hangs.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Ok(())
            };
            tokio::spawn(async move { threads.run(work).await })
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
    fn errors_say_what_failed_where_and_what_to_do() {
        let location = Location::new(".offcut/trunc/call_1");
        let error = failed(io::ErrorKind::StorageFull.into(), "storing", &location);
        assert_eq!(error.kind(), ErrorKind::Full);
        assert_eq!(
            error.to_string(),
            "storing .offcut/trunc/call_1 failed: no space is left, or the file is over a quota or limit; free some, raise the limit, or choose another file system"
        );
    }

    #[test]
    fn only_reading_can_find_nothing() {
        let kind =
            |kind: io::ErrorKind, doing| failed(kind.into(), doing, &Location::new("x")).kind();
        assert_eq!(kind(io::ErrorKind::NotFound, READING), ErrorKind::NotFound);
        assert_eq!(kind(io::ErrorKind::NotFound, "storing"), ErrorKind::Other);
        assert_eq!(
            kind(io::ErrorKind::PermissionDenied, READING),
            ErrorKind::Denied
        );
        assert_eq!(
            kind(io::ErrorKind::ReadOnlyFilesystem, "storing"),
            ErrorKind::Denied
        );
        assert_eq!(
            kind(io::ErrorKind::QuotaExceeded, "storing"),
            ErrorKind::Full
        );
        assert_eq!(
            kind(io::ErrorKind::FileTooLarge, "storing"),
            ErrorKind::Full
        );
        assert_eq!(kind(io::ErrorKind::BrokenPipe, "storing"), ErrorKind::Other);
    }

    #[test]
    fn a_refused_hard_link_says_what_to_do() {
        for code in [1, 95] {
            let error = link_refused(io::Error::from_raw_os_error(code));
            let said = failed(error, "opening", &Location::new("/mnt/stick")).to_string();
            assert_eq!(
                said.contains("no hard links"),
                cfg!(unix) && (code == 1 || cfg!(target_os = "linux")),
                "{said}"
            );
        }
        let other = link_refused(io::ErrorKind::AlreadyExists.into());
        assert_eq!(other.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn l7_without_a_runtime_it_is_an_error() {
        let threads = BlockingThreads::new();
        let mut work = Box::pin(threads.run(|| Ok(())));
        let polled = work
            .as_mut()
            .poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        assert!(
            matches!(polled, std::task::Poll::Ready(Err(_))),
            "{polled:?}"
        );
    }
}
