//! The two moments of a loop: before the model, and around each tool call.

use serde_json::Value;

use super::{Report, ToolReduction};
use crate::content::{ToolCall, ToolOutput};
use crate::error::OffloadError;
use crate::format::LoopFormat;
use crate::truncate::Truncated;

impl ToolReduction {
    /// A reduction with the settings that measured best, over the store in the directory `path`. The
    /// first content creates it.
    ///
    /// ```
    /// use offcut::format::{LoopFormat, OpenAiChat};
    /// use offcut::{ToolCall, ToolError, ToolReduction};
    /// use serde_json::{Value, json};
    ///
    /// # async fn ask(_: &[Value], _: &[Value]) -> Value { json!({"role": "assistant", "content": "In src/order.rs."}) }
    /// # async fn run(_: &ToolCall) -> Result<String, ToolError> { Ok("a line\n".repeat(2_000)) }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let home = tempfile::tempdir()?;
    /// # std::env::set_current_dir(&home)?;
    /// let reduction = ToolReduction::in_dir(".offcut")?;
    /// let tools = [reduction.reader(OpenAiChat)]; // and yours
    /// let mut messages = vec![json!({"role": "user", "content": "Where are orders shipped?"})];
    /// loop {
    ///     reduction.before_model(OpenAiChat, &mut messages).await?;
    ///     let reply = ask(&messages, &tools).await;
    ///     let calls = OpenAiChat.tool_calls(&reply);
    ///     messages.push(reply);
    ///     if calls.is_empty() {
    ///         break;
    ///     }
    ///     for call in &calls {
    ///         messages.push(reduction.wrap_tool_call(OpenAiChat, call, || run(call)).await?);
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The directory can't be opened: see [`Fs::open`](crate::backend::Fs::open).
    #[cfg(feature = "fs")]
    pub fn in_dir(path: impl AsRef<std::path::Path>) -> Result<Self, crate::BuildError> {
        use crate::backend::{Fs, StoreUrl};

        let path = path.as_ref();
        let store = Fs::open(path).map_err(|error| crate::BuildError::Open {
            tool: None,
            url: StoreUrl::from(path.to_string_lossy().as_ref()),
            cause: std::sync::Arc::new(error),
        })?;
        Self::recommended(store).build()
    }

    /// The definition of the [reader](Self::read_file_tool), for a request's `tools`.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "formats are passed by value, as they have no size"
    )]
    pub fn reader<F: LoopFormat>(&self, format: F) -> Value {
        format.tool(&self.read_file_tool())
    }

    /// The moment before a model call: runs the clear pass, as [`clear`](Self::clear) does. Joins
    /// the newest results where the provider wants those of parallel calls in one message.
    ///
    /// # Errors
    ///
    /// The same as for [`clear`](Self::clear).
    pub async fn before_model<F: LoopFormat>(
        &self,
        format: F,
        messages: &mut Vec<F::Message>,
    ) -> Result<Report, OffloadError> {
        format.join_results(messages);
        self.clear(format, messages).await
    }

    /// The moment of a tool call: returns the message that answers `call`. [Answers](Self::answer)
    /// calls of the reader itself; runs the tool for all others, and [truncates](Self::truncate) its
    /// result [for the format](Self::truncate_for). An `Err` of the tool is shown as a result marked as
    /// an error.
    ///
    /// # Errors
    ///
    /// The same as for [`truncate`](Self::truncate).
    pub async fn wrap_tool_call<F: LoopFormat, R: Future<Output: Into<ToolOutput>>>(
        &self,
        format: F,
        call: &ToolCall,
        run: impl FnOnce() -> R,
    ) -> Result<F::Message, OffloadError> {
        let shown = match self.answer(call).await? {
            Some(page) => page,
            None => self.truncate_for(&format, call, run().await.into()).await?,
        };
        let is_error = shown.is_error || shown.interrupted.is_some();
        let parts = shown.for_message(|part| format.takes(part));
        Ok(format.tool_message(call, parts, is_error))
    }

    /// [Truncates](Self::truncate) a result for a message of this format: media that it does not
    /// [take](LoopFormat::takes) are bytes, each after a text that names it, since the message could only spell them.
    ///
    /// # Errors
    ///
    /// The same as for [`truncate`](Self::truncate).
    pub async fn truncate_for<F: LoopFormat>(
        &self,
        format: &F,
        call: &ToolCall,
        output: ToolOutput,
    ) -> Result<Truncated, OffloadError> {
        // Bytes that are never stored would be lost.
        let is_stored = self.truncates(&call.name) && !call.is_for_program;
        let output = match is_stored {
            true => output.without_media(|part| format.takes(part)),
            false => output,
        };
        self.truncate(call, output).await
    }
}
