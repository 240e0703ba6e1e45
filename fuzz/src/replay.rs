//! Transcripts for `offcut replay`: whatever is in the file, a replay's books balance, and its
//! report can't be broken out of.

use std::sync::LazyLock;

use tempfile::NamedTempFile;

pub(crate) fn replay(data: &[u8]) {
    static FILE: LazyLock<NamedTempFile> =
        LazyLock::new(|| NamedTempFile::with_suffix(".json").unwrap());
    std::fs::write(FILE.path(), data).unwrap();
    offcut_cli::fuzz::replay(FILE.path());
}
