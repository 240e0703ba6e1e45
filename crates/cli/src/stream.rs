//! The output of a command as a model should see it, for `run`.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::stream;
use offcut::report::Outcome;
use offcut::{ToolCall, ToolOutput, ToolReduction, Truncated};
use tokio::sync::Mutex;

use crate::child::Output;
use crate::failure::{Failure, OrFail as _, chain};
use crate::input::Input;
use crate::{args, output, settings};

const UNREADABLE: &str = "the command's output can't be read";

/// A stream to truncate: its reduction, the bytes that have arrived, and the call that they answer.
pub(crate) struct Stream {
    reduction: ToolReduction,
    input: Input,
    call: ToolCall,
    /// The stream of this program on which it is shown, and its name.
    to: (Arc<File>, &'static str),
}

impl Stream {
    /// Builds what both streams of a command need, stdout first.
    pub(crate) fn both(args: &args::Run, arguments: &str) -> Result<[Self; 2], Failure> {
        // An id that no other run of this machine has.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or_default().as_micros();
        let new_id = || format!("run-{}-{now}", std::process::id());
        let call_id = args.call_id.clone().unwrap_or_else(new_id);
        let reduction = settings::of_run(args)?;
        let stream = |suffix: &str, file: io::Result<File>, name| -> Result<Self, Failure> {
            let file = file.map_err(|error| output::unwritable(name, &error))?;
            Ok(Self {
                reduction: reduction.clone(),
                input: Input::default(),
                call: ToolCall::new(format!("{call_id}{suffix}"), &args.tool, arguments),
                to: (Arc::new(file), name),
            })
        };
        Ok([
            stream("", output::file(io::stdout()), "stdout")?,
            stream("-stderr", output::file(io::stderr()), "stderr")?,
        ])
    }

    /// Shows `output` as the model should see it: a little of the beginning as it comes, for whoever waits for
    /// a prompt or a server, and at the end the rest, or a hint for all of it. If it can't be stored, all
    /// of it is shown unchanged.
    pub(crate) async fn show(self, output: &Arc<Mutex<Output>>) -> Result<(), Failure> {
        let live = Arc::new(Mutex::new(LiveOutput::new(&self)));
        let arriving = self.arriving(output.clone(), live.clone());
        let reduction = self.reduction.with_previews_of_at_most(longest(&self));
        let truncated = reduction.truncate(&self.call, arriving).await;
        let mut live = live.lock().await;
        match truncated {
            Ok(truncated) if !self.input.is_to_pass(&truncated, self.reduction.settings()) => {
                output::note_failures(&truncated.report);
                live.finish(&self.input, &truncated).await?;
                match truncated.interrupted {
                    Some(error) => Err(Failure::new(error.to_string())),
                    None => Ok(()),
                }
            }
            failed => {
                match failed {
                    Ok(truncated) => output::note_failures(&truncated.report),
                    Err(error) => output::warn(&chain(&error)),
                }
                let mut shown = live.head.len();
                let recovered = self.input.recover(async |bytes: Bytes| {
                    let known = shown.min(bytes.len());
                    shown -= known;
                    live.write(bytes.slice(known..)).await;
                    Ok(())
                });
                recovered.await?;
                let mut output = output.lock().await;
                loop {
                    match output.read().await {
                        Ok(bytes) if bytes.is_empty() => break,
                        Ok(bytes) => live.write(bytes).await,
                        Err(error) => return Err(error).or_fail(UNREADABLE),
                    }
                    if live.is_closed {
                        output.close();
                    }
                }
                live.outcome()
            }
        }
    }

    /// The output as it arrives, of which the beginning is shown at once.
    fn arriving(&self, output: Arc<Mutex<Output>>, live: Arc<Mutex<LiveOutput>>) -> ToolOutput {
        let chunks = stream::unfold((output, live), async |(output, live)| {
            let read = output.lock().await.read().await;
            if let Ok(chunk) = &read {
                let mut shown = live.lock().await;
                shown.see(chunk.clone()).await;
                if shown.is_closed {
                    output.lock().await.close();
                }
            }
            Some((read, (output, live)))
        });
        self.input.holding(UNREADABLE, chunks)
    }
}

/// One part in so many of the limit is shown as it comes.
const LIVE: usize = 8;

/// The limit of a stream.
fn limit(stream: &Stream) -> usize {
    let settings = stream.reduction.settings();
    let own = settings.tool_config.get(&stream.call.name);
    let own = own.and_then(|own| own.max_length_for_trunc);
    own.unwrap_or(settings.max_length_for_trunc)
}

/// Maximum length of a preview: besides, there is room for the shown beginning, and as much for a hint and the end
/// of its line.
fn longest(stream: &Stream) -> usize {
    let limit = limit(stream);
    limit - limit / LIVE * 2
}

/// The shown part of an output.
struct LiveOutput {
    to: (Arc<File>, &'static str),
    /// Number of bytes that are shown as they come.
    room: usize,
    /// The bytes that were shown as they came.
    head: Vec<u8>,
    /// True if nobody reads what is written.
    is_closed: bool,
    /// The reason why nothing more can be written.
    failure: Option<Failure>,
}

impl LiveOutput {
    fn new(stream: &Stream) -> Self {
        let is_truncated = stream.reduction.truncates(&stream.call.name);
        Self {
            to: stream.to.clone(),
            room: if is_truncated {
                limit(stream) / LIVE
            } else {
                usize::MAX
            },
            head: Vec::new(),
            is_closed: false,
            failure: None,
        }
    }

    /// Shows the next bytes, if they are still of the beginning.
    async fn see(&mut self, mut chunk: Bytes) {
        let left = self.room.saturating_sub(self.head.len());
        let begins_line = self.head.ends_with(b"\n");
        let now = chunk.split_to(shown_at_once(&chunk, left, begins_line));
        if !chunk.is_empty() {
            self.room = 0;
        }
        self.head.extend_from_slice(&now);
        self.write(now).await;
    }

    /// Shows what is left of the output: all of it if that is not longer, or else the text that stands for it, which
    /// ends a line.
    async fn finish(&mut self, output: &Input, truncated: &Truncated) -> Result<(), Failure> {
        let mut text = truncated.text();
        let mut decisions = truncated.report.decisions.iter();
        let is_ours = decisions.any(|one| !matches!(one.outcome, Outcome::Kept(_)));
        if is_ours && !text.ends_with('\n') {
            text.push('\n');
        }
        let longest = self.head.len() + text.len();
        let mut left = output.whole(longest).unwrap_or(text.into_bytes());
        if left.starts_with(&self.head) {
            left.drain(..self.head.len());
        } else if !self.head.ends_with(b"\n") {
            left.insert(0, b'\n');
        }
        self.write(left.into()).await;
        self.outcome()
    }

    /// Writes `bytes` unchanged, on another thread: whoever reads them may take any time.
    async fn write(&mut self, bytes: Bytes) {
        if bytes.is_empty() || self.is_closed || self.failure.is_some() {
            return;
        }
        let (mut file, name) = self.to.clone();
        let written = tokio::task::spawn_blocking(move || file.write_all(&bytes)).await;
        match written.map_err(io::Error::other).flatten() {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.is_closed = true,
            Err(error) => self.failure = Some(output::unwritable(name, &error)),
        }
    }

    /// Fails if something could not be written. That nobody reads it is not an error: the command is told.
    fn outcome(&mut self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }
}

/// Number of bytes of `chunk` to show if there is room for `left`: up to the end of a line, or up to that of
/// a character if no line ends there.
fn shown_at_once(chunk: &[u8], left: usize, is_after_line: bool) -> usize {
    if chunk.len() <= left {
        return chunk.len();
    }
    let fits = &chunk[..left];
    match fits.iter().rposition(|byte| *byte == b'\n') {
        Some(feed) => feed + 1,
        None if is_after_line => 0,
        None => {
            let last = fits.utf8_chunks().last();
            left - last.map_or(0, |last| last.invalid().len())
        }
    }
}
