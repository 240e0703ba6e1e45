//! The journal of the requests that pass through a server, for `offcut gain`.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;

use crate::agents::journal::{self, Row};
use crate::agents::layout::Home;
use crate::gateway::{Gateway, RequestRecord};

/// Number of rows that may wait for a slow disk. More are left out, for no request waits.
const WAITING: usize = 10_000;

/// Writes the user's journal on a thread of its own. Once dropped, everything is written.
pub(crate) struct Journal(Option<(Rows, JoinHandle<()>)>);

/// The way to the thread, which ends at `None`.
type Rows = SyncSender<Option<Row>>;

impl Journal {
    /// The journal in the user's own folder; without a home directory, nothing is written.
    pub(crate) fn start() -> Self {
        let Some(home) = Home::from_env() else {
            return Self(None);
        };
        let (rows, received) = mpsc::sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("journal".to_owned());
        let thread = thread.spawn(move || write(&home.journal(), &received));
        Self(thread.ok().map(|thread| (rows, thread)))
    }

    /// Has the requests of `gateway` written.
    pub(crate) fn keep(&self, gateway: Gateway) -> Gateway {
        let Some((rows, _)) = &self.0 else {
            return gateway;
        };
        let rows = rows.clone();
        gateway.on_request(move |record| _ = rows.try_send(Some(row(record))))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if let Some((rows, thread)) = self.0.take() {
            _ = rows.send(None);
            _ = thread.join();
        }
    }
}

/// Writes rows until there will be none, as many at once as have come.
fn write(path: &Path, received: &Receiver<Option<Row>>) {
    let mut is_over = false;
    let mut has_failed = false;
    // Whoever still holds a sender may send nothing more.
    while !is_over && let Ok(first) = received.recv() {
        let come: Vec<_> = std::iter::once(first).chain(received.try_iter()).collect();
        is_over = come.iter().any(Option::is_none);
        let rows: Vec<_> = come.into_iter().flatten().collect();
        if !rows.is_empty()
            && let Err(error) = journal::append(path, &rows)
            && !has_failed
        {
            has_failed = true;
            tracing::warn!(error = %error, path = %path.display(), "the journal for `offcut gain` can't be written");
        }
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
