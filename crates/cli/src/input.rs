//! Stdin of a command in a pipeline. It may be the only copy of a text, so it is never swallowed.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use offcut::backend::Writer;
use offcut::{Chunk, ToolError, ToolOutput};

use crate::failure::{Failure, OrFail as _};
use crate::lock::locked;
use crate::output;

/// Number of bytes that are read at once, from stdin or a writer.
const CHUNK: usize = 64 * 1024;
/// Advice for input that can't be recovered.
const MISSING: &str =
    "the missing part is in the store's staging file: fix the store, and run the command again";
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

/// Input that was read as a stream and can be recovered: the bytes that no writer has, and the
/// writer that failed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Input(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Bytes that were read and that no writer has.
    held: VecDeque<Bytes>,
    /// True once a writer has some of the bytes.
    has_written: bool,
    /// An abandoned writer that failed, and the number of bytes it took.
    broken: Option<(Box<dyn Writer>, u64)>,
}

impl Input {
    /// Streams stdin, so that its length does not matter. Without `may_lose`, the stream ends once
    /// a writer was given up, because all input is then passed on unchanged.
    pub(crate) fn stream(&self, may_lose: bool) -> ToolOutput {
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
        self.holding(may_lose, UNREADABLE, chunks)
    }

    /// Holds `chunks` as they are read, up to an empty one or an error. Without `may_lose`, they end once a writer
    /// was given up.
    pub(crate) fn holding(
        &self,
        may_lose: bool,
        unreadable: &'static str,
        chunks: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    ) -> ToolOutput {
        let start = Some((Box::pin(chunks), self.clone()));
        let chunks = stream::unfold(start, move |state| async move {
            let (mut chunks, input) = state?;
            // Before the next one is read, for which it may have to wait.
            if !may_lose && input.is_broken() {
                return None;
            }
            match chunks.next().await? {
                Ok(chunk) if chunk.is_empty() => None,
                Ok(chunk) => {
                    locked(&input.0).held.push_back(chunk.clone());
                    Some((Ok(Chunk::Bytes(chunk)), Some((chunks, input))))
                }
                Err(error) => Some((Err(ToolError::new(format!("{unreadable}: {error}"))), None)),
            }
        });
        ToolOutput::stream(chunks)
    }

    /// Returns all input so far, or `None` if a writer has part of it.
    #[cfg(unix)]
    pub(crate) fn whole(&self) -> Option<Vec<u8>> {
        let state = locked(&self.0);
        (!state.has_written).then(|| state.held.iter().flatten().copied().collect())
    }

    /// Records that a writer has the next `length` bytes.
    pub(crate) fn is_written(&self, mut length: usize) {
        let mut state = locked(&self.0);
        state.has_written = true;
        let held = &mut state.held;
        while let Some(first) = held.front_mut() {
            if length < first.len() {
                drop(first.split_to(length));
                return;
            }
            length -= first.len();
            held.pop_front();
        }
    }

    /// Keeps an abandoned writer that could not store the `length` bytes it took.
    pub(crate) fn give_up(&self, writer: Box<dyn Writer>, length: u64) {
        locked(&self.0).broken.get_or_insert((writer, length));
    }

    /// Returns true if a writer was given up.
    pub(crate) fn is_broken(&self) -> bool {
        locked(&self.0).broken.is_some()
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
        let State { held, broken, .. } = std::mem::take(&mut *locked(&self.0));
        if let Some((mut writer, length)) = broken {
            let mut at = 0;
            while at < length {
                let block = writer.read(at..length.min(at + CHUNK as u64)).await;
                let block = block.or_advise("the input can't be recovered", MISSING)?;
                if block.is_empty() {
                    let problem = "the store returned less of the input than was written to it";
                    return Err(Failure::new(problem).hint(MISSING));
                }
                at += block.len() as u64;
                see(block).await?;
            }
        }
        for bytes in held {
            see(bytes).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_a_writer_has_are_not_held() {
        let input = Input::default();
        locked(&input.0)
            .held
            .extend(["abc", "def", "g"].map(Bytes::from));
        input.is_written(4);
        assert_eq!(locked(&input.0).held, ["ef", "g"].map(Bytes::from));
        input.is_written(2);
        assert_eq!(locked(&input.0).held, ["g"].map(Bytes::from));
        input.is_written(9);
        assert!(locked(&input.0).held.is_empty());
    }
}
