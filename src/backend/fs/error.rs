//! Translation of I/O errors into the store's errors, with advice.

use std::io;

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
        Io::OutOfMemory => (
            ErrorKind::Other,
            "the bytes do not fit into memory; read a smaller range",
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

/// `None` instead of the error that a name does not exist. A path below a file doesn't either.
pub(super) fn none_if_absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match result {
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
