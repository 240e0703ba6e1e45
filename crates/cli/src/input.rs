//! Stdin of a command in a pipeline. It may be the only copy of a text, so it is never swallowed.

use std::io::{self, IsTerminal, Read, Seek, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use offcut::report::{Outcome, Reason};
use offcut::{Chunk, OnOffloadError, Settings, ToolError, ToolOutput, Truncated};
use tempfile::SpooledTempFile;

use crate::failure::{Failure, OrFail as _};
use crate::lock::locked;
use crate::output;

/// Number of bytes that are read at once, from stdin or a file.
const CHUNK: usize = 64 * 1024;
/// The most bytes that are held in memory where no temporary file takes them.
const MOST_HELD: usize = 64 << 20;
const UNRECOVERABLE: &str = "the input can't be read back from its temporary file";
const FREE: &str = "set TMPDIR to a folder with room, and run the command again";
const UNREADABLE: &str = "stdin can't be read";
const READABLE: &str = "redirect a readable file or pipe to stdin, and try again";

/// Reports `failure`, then copies the input to stdout unchanged, `read` first. Returns the
/// failure's exit code.
pub(crate) fn pass_on(failure: &Failure, read: &[u8]) -> Result<ExitCode, Failure> {
    // First, because the rest of the input may take a while.
    output::report(failure);
    output::write_bytes(read)?;
    pass_on_rest()?;
    Ok(ExitCode::from(failure.code()))
}

/// Copies unread input to stdout, unless stdin is a terminal: a person would have to type it first.
pub(crate) fn pass_on_rest() -> Result<(), Failure> {
    let mut stdin = io::stdin().lock();
    if stdin.is_terminal() {
        return Ok(());
    }
    let mut chunk = vec![0; CHUNK];
    loop {
        match stdin.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(length) => output::write_bytes(&chunk[..length])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).or_refuse(UNREADABLE, READABLE),
        }
    }
}

/// Reads all of stdin.
pub(crate) fn read_all() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut bytes);
    read.or_refuse(UNREADABLE, READABLE).map(|_| bytes)
}

/// Input that is read as a stream, and kept until it is known what stands for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Input(Arc<Mutex<Spool>>);

/// Everything read so far: in a temporary file, from a mebibyte on.
#[derive(Debug)]
struct Spool {
    file: SpooledTempFile,
    /// Number of bytes that the file has taken.
    length: u64,
    /// The bytes after them, which it has not.
    rest: Vec<u8>,
}

impl Default for Spool {
    fn default() -> Self {
        Self {
            file: tempfile::spooled_tempfile(1 << 20),
            length: 0,
            rest: Vec::new(),
        }
    }
}

impl Spool {
    fn keep(&mut self, chunk: &[u8]) {
        if self.rest.is_empty() && self.file.write_all(chunk).is_ok() {
            self.length += chunk.len() as u64;
        } else {
            self.rest.extend_from_slice(chunk);
            if self.is_full() {
                output::warn(
                    "TMPDIR has no room for a copy of the input: it is passed on unchanged",
                );
            }
        }
    }

    fn is_full(&self) -> bool {
        self.rest.len() >= MOST_HELD
    }

    fn read(&mut self) -> io::Result<impl Read> {
        self.file.rewind()?;
        Ok((&mut self.file).take(self.length).chain(&*self.rest))
    }
}

impl Input {
    /// Streams stdin, so that its length does not matter.
    pub(crate) fn stream(&self) -> ToolOutput {
        let read = || {
            let mut chunk = vec![0; CHUNK];
            let length = io::stdin().lock().read(&mut chunk)?;
            chunk.truncate(length);
            Ok(Bytes::from(chunk))
        };
        let chunks = stream::unfold(read, async |read| {
            let chunk = tokio::task::spawn_blocking(read).await;
            Some((chunk.map_err(io::Error::other).flatten(), read))
        });
        self.holding(UNREADABLE, chunks)
    }

    /// Keeps `chunks` as they are read, up to an empty one or an error, and as long as there is room.
    pub(crate) fn holding(
        &self,
        unreadable: &'static str,
        chunks: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    ) -> ToolOutput {
        let start = Some((Box::pin(chunks), self.clone()));
        let chunks = stream::unfold(start, move |state| async move {
            let (mut chunks, input) = state?;
            // Before the next one is read, for which it may have to wait.
            if locked(&input.0).is_full() {
                return None;
            }
            match chunks.next().await? {
                Ok(chunk) if chunk.is_empty() => None,
                Ok(chunk) => {
                    locked(&input.0).keep(&chunk);
                    Some((Ok(Chunk::Bytes(chunk)), Some((chunks, input))))
                }
                Err(error) => Some((Err(ToolError::new(format!("{unreadable}: {error}"))), None)),
            }
        });
        ToolOutput::stream(chunks)
    }

    /// Returns all input so far, if it is not longer than `longest`.
    #[cfg(unix)]
    pub(crate) fn whole(&self, longest: usize) -> Option<Vec<u8>> {
        let mut spool = locked(&self.0);
        let mut bytes = Vec::new();
        let most = longest as u64 + 1;
        spool.read().ok()?.take(most).read_to_end(&mut bytes).ok()?;
        (bytes.len() <= longest).then_some(bytes)
    }

    /// Returns true if the input is to be passed on in place of what stands for it: a store has failed and the
    /// settings allow no loss, or there was no room for all of it.
    pub(crate) fn is_to_pass(&self, truncated: &Truncated, settings: &Settings) -> bool {
        let mut decisions = truncated.report.decisions.iter();
        // Kept results are shown as text, which not all bytes are.
        let unstored = [Outcome::Lost, Outcome::Kept(Reason::StoreFailed)];
        let is_unstored = decisions.any(|one| unstored.contains(&one.outcome));
        is_unstored && settings.on_offload_error != OnOffloadError::PreviewOnly
            || locked(&self.0).is_full()
    }

    /// Writes everything read so far, and the rest of stdin, to stdout.
    pub(crate) async fn pass_on(&self) -> Result<(), Failure> {
        self.recover(async |bytes: Bytes| output::write_bytes(&bytes))
            .await?;
        pass_on_rest()
    }

    /// Calls `see` with everything read so far, piece by piece.
    pub(crate) async fn recover(
        &self,
        mut see: impl AsyncFnMut(Bytes) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut spool = std::mem::take(&mut *locked(&self.0));
        let mut read = spool.read().or_advise(UNRECOVERABLE, FREE)?;
        loop {
            let mut block = Vec::new();
            let next = read.by_ref().take(CHUNK as u64).read_to_end(&mut block);
            if next.or_advise(UNRECOVERABLE, FREE)? == 0 {
                return Ok(());
            }
            see(block.into()).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn input_is_recovered_also_if_a_file_takes_no_more() {
        let (input, mut all) = (Input::default(), Vec::new());
        for number in 0..100_000 {
            let line = format!("line {number}\n");
            let mut spool = locked(&input.0);
            spool.keep(line.as_bytes());
            if number == 90_000 {
                // As a disk that is full.
                spool.rest.extend_from_slice(b"a");
                spool.keep(b"b");
                all.extend_from_slice(line.as_bytes());
                all.extend_from_slice(b"ab");
                continue;
            }
            all.extend_from_slice(line.as_bytes());
        }
        assert_eq!(input.whole(all.len()).as_ref(), Some(&all));
        assert_eq!(input.whole(all.len() - 1), None);
        let mut recovered = Vec::new();
        let read = input.recover(async |bytes: Bytes| {
            recovered.extend_from_slice(&bytes);
            Ok(())
        });
        read.await.unwrap();
        assert!(recovered == all);
    }
}
