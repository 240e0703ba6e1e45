//! The journal of the requests that pass through a server, for `offcut gain`.

use std::io::{self, Write};
use std::path::PathBuf;

use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};

use crate::agents::journal::{self, Row};
use crate::agents::layout::Home;
use crate::agents::log;
use crate::gateway::{Gateway, RequestRecord};

/// Number of rows that may wait for a slow disk. More are left out, for no request waits.
const WAITING: usize = 10_000;

/// Writes the user's journal on a thread of its own. Once dropped, everything is written.
pub(crate) struct Journal(Option<(NonBlocking, WorkerGuard)>);

impl Journal {
    /// The journal in the user's own folder; without a home directory, nothing is written.
    pub(crate) fn start() -> Self {
        let file = Home::from_env().map(|home| JournalFile {
            path: home.journal(),
            lines: String::new(),
            has_failed: false,
        });
        let thread = NonBlockingBuilder::default().buffered_lines_limit(WAITING);
        Self(file.map(|file| thread.thread_name("journal").finish(file)))
    }

    /// Has the requests of `gateway` written.
    pub(crate) fn keep(&self, gateway: Gateway) -> Gateway {
        let Some((rows, _)) = &self.0 else {
            return gateway;
        };
        let rows = rows.clone();
        gateway.on_request(move |record| {
            let line = serde_json::to_string(&row(record));
            _ = line.map(|line| rows.clone().write_all(format!("{line}\n").as_bytes()));
        })
    }
}

/// The journal's file, to which lines go that have come at once.
struct JournalFile {
    path: PathBuf,
    lines: String,
    has_failed: bool,
}

impl Write for JournalFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.lines += &String::from_utf8_lossy(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let lines = std::mem::take(&mut self.lines);
        if !lines.is_empty()
            && let Err(error) = log::append_lines(&self.path, &lines, journal::MAX_LENGTH)
            && !self.has_failed
        {
            self.has_failed = true;
            tracing::warn!(error = %error, path = %self.path.display(), "the journal for `offcut gain` can't be written");
        }
        Ok(())
    }
}

fn row(record: &RequestRecord) -> Row {
    // A conversation is named by the prefix of what it has stored, which ends in that of its session.
    let prefix = record.conversation.as_deref().unwrap_or_default();
    let session = prefix.trim_end_matches('/').rsplit('/').next();
    Row {
        client: journal::bounded(&record.client),
        after: record.after.bytes(),
        replaced: record.cut + record.cleared,
        reads: record.reads,
        ..Row::new(
            &record.upstream,
            session.unwrap_or_default(),
            &record.model,
            record.before.bytes(),
        )
    }
}
