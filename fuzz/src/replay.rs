//! Transcripts for `offcut replay`: whatever a file holds, the figures of a replay add up, and no
//! transcript can break out of its report.

use std::sync::LazyLock;

use tempfile::NamedTempFile;

pub(crate) fn replay(data: &[u8]) {
    static FILE: LazyLock<NamedTempFile> =
        LazyLock::new(|| NamedTempFile::with_suffix(".json").unwrap());
    std::fs::write(FILE.path(), data).unwrap();
    offcut_cli::fuzz_tests::replay(FILE.path());
}
