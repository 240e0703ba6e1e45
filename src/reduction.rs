//! The reduction itself, which a loop holds and calls.

mod builder;
mod checks;
mod moments;
mod original;
mod probe;
mod whole;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::backend::{Backend, BackendError, Location};
use crate::clear;
use crate::config::{BuildError, Settings};
use crate::content::{ToolCall, ToolError, ToolOutput};
use crate::error::OffloadError;
use crate::format::{Conversation, Format, Messages};
use crate::guard::guard_future;
use crate::middleware::{Middleware, Next, Turn};
use crate::read_back::{ReadFileTool, names_a_store};
use crate::report::Report;
use crate::session::{Session, Shared};
use crate::slots::Memory;
use crate::tool::Tool;
use crate::truncate::{Truncated, truncate};
use checks::policies;

pub use builder::Builder;

/// Keeps long tool results out of a model's context, and every byte of them readable.
///
/// Make one with [`builder`](Self::builder) or [`recommended`](Self::recommended), and a
/// [`session`](Self::session) for each conversation. Clones are cheap and share everything.
///
/// ```
/// use offcut::backend::Memory;
/// use offcut::{ToolCall, ToolReduction};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let reduction = ToolReduction::recommended(Memory::named("demo")?).build()?;
/// let call = ToolCall::new("call_1", "grep", r#"{"pattern":"fn"}"#);
/// let shown = reduction.truncate(&call, "a line that matches\n".repeat(1_000)).await?;
/// assert!(shown.text().starts_with("[offcut/1 truncated 20000B/1000L"));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct ToolReduction {
    session: Session,
    /// The memory of clear passes.
    memory: Arc<Memory>,
    /// The memory of whole histories, with records in a store.
    history: Arc<Memory>,
}

impl ToolReduction {
    pub(super) fn over(session: Session) -> Self {
        Self {
            session,
            memory: Arc::default(),
            history: Arc::default(),
        }
    }

    /// Makes a reduction for one conversation. It stores under its own prefix, `<root>/<id>/`, its
    /// reader reads nothing else, and its decisions are its own. An id that is not a safe name, is
    /// reserved (`trunc`, `clear`, `meta`) or looks like a digest is replaced by its digest.
    ///
    /// ```
    /// # use offcut::{backend::Memory, ToolCall, ToolReduction};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let reduction = ToolReduction::recommended(Memory::named("demo")?).build()?.session("chat-42");
    /// let shown = reduction.truncate(&ToolCall::new("call_1", "grep", "{}"), "x".repeat(10_000)).await?;
    /// assert_eq!(shown.report.decisions[0].locations[0].as_str(), "memory://demo/chat-42/trunc/call_1");
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn session(&self, id: &str) -> Self {
        Self::over(self.session.at(self.session.roots.session(id)))
    }

    /// Returns the same reduction with previews of new results of at most `bytes` bytes, for results that
    /// would take little room without it.
    #[must_use]
    pub fn with_previews_of_at_most(&self, bytes: usize) -> Self {
        let mut session = self.session.clone();
        session.longest_preview = bytes;
        Self::over(session)
    }

    /// Returns the same reduction with hints that name the reader `name`, or none. Its decisions are its own.
    ///
    /// ```
    /// # use offcut::{backend::Memory, ToolReduction};
    /// let reduction = ToolReduction::recommended(Memory::new()).build()?.with_reader(Some("Read"))?;
    /// assert_eq!(reduction.settings().read_file_tool_name.as_deref(), Some("Read"));
    /// # Ok::<(), offcut::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The name is empty, or too long for the limits.
    pub fn with_reader(&self, name: Option<&str>) -> Result<Self, BuildError> {
        let mut shared = Shared::clone(&self.session);
        shared.settings.read_file_tool_name = name.map(str::to_owned);
        let (settings, hooks) = (&shared.settings, shared.default.hooks.clone());
        let has_given_ids = shared.gen_ids.iter().any(Option::is_some);
        (shared.default, shared.policies) =
            policies(settings, &hooks, &shared.prose, has_given_ids)?;
        Ok(Self::over(self.session.with(shared)))
    }

    /// Truncates `output` for the model. A result over the limit, or with a text over
    /// `preview_above`, is stored and replaced by a preview and a hint that says where it is. Any
    /// other result is returned whole.
    ///
    /// An `Err` of the tool is shown as a result marked as an error. A stream is read to its end, in
    /// memory that does not grow with its length unless a handler or a skipped tool needs it whole: the tool is asked for more only after everything
    /// before is stored. If the call is dropped, content that has no name yet leaves nothing behind.
    ///
    /// # Errors
    ///
    /// [`OffloadError`] if the store failed and `on_offload_error` is `Fail`; by default the result
    /// is returned whole.
    pub async fn truncate(
        &self,
        call: &ToolCall,
        output: impl Into<ToolOutput>,
    ) -> Result<Truncated, OffloadError> {
        let truncated = truncate(&self.session, call, output.into()).await?;
        self.session.observe(&truncated.report);
        Ok(truncated)
    }

    /// Runs the clear pass, before a model call: over the token threshold, old results are stored
    /// and replaced by hints.
    ///
    /// # Errors
    ///
    /// [`OffloadError`] if the store failed and `on_offload_error` is `Fail`. The messages are then
    /// unchanged.
    pub async fn clear<F: Format>(
        &self,
        format: F,
        messages: &mut [F::Message],
    ) -> Result<Report, OffloadError> {
        let mut conversation = Messages::new(format, messages);
        self.clear_turn(&mut Turn::new(&mut conversation)).await
    }

    /// Runs the clear pass with everything that a loop knows, such as the tools' schemas and the
    /// provider's last count.
    ///
    /// # Errors
    ///
    /// The same as for [`clear`](Self::clear).
    pub async fn clear_turn(&self, turn: &mut Turn<'_>) -> Result<Report, OffloadError> {
        let report = clear::clear(&self.session, &self.memory, turn).await?;
        Ok(self.after_pass(turn, report).await)
    }

    /// Runs the callback after a pass that changed something, and passes the report to observers.
    async fn after_pass(&self, turn: &mut Turn<'_>, mut report: Report) -> Report {
        if let (Some(callback), true) = (&self.session.post_process, report.is_change()) {
            let call = async { callback(turn.conversation, &report).await };
            let problem = guard_future("clear_post_process", call).await.err();
            report.post_process_error = problem.map(|error| error.to_string());
        }
        self.session.observe(&report);
        report
    }

    /// The error with its text truncated.
    async fn truncated_error(&self, call: &ToolCall, error: ToolError) -> ToolError {
        let shown = self
            .truncate(call, ToolOutput::error(error.to_string()))
            .await;
        match shown {
            Ok(shown) => error.with_message(|_| shown.text()),
            Err(failed) => failed.into(),
        }
    }

    /// Counts the tokens of all messages and of the tools' schemas as the clear pass does.
    #[must_use]
    pub fn count_tokens(&self, conversation: &dyn Conversation, tools: &[Value]) -> u64 {
        clear::count_tokens(&self.session.meter, conversation, tools)
    }

    /// The tool that reads stored content back. It has the name that hints give, or `read_file` if
    /// hints name none.
    #[must_use]
    pub fn read_file_tool(&self) -> ReadFileTool {
        ReadFileTool::new(self.session.clone())
    }

    /// Answers a call of the reader; `None` if `call` is for another tool, which is then yours to
    /// run. A tool of yours may have the reader's name: the calls that name nothing in a store are its own.
    ///
    /// A mistake of the model is reported in the answer, marked as an error. If hints name no
    /// reader, the answer is always `None`.
    ///
    /// ```
    /// # use offcut::{backend::Memory, ToolCall, ToolError, ToolReduction};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # async fn run(_: &ToolCall) -> Result<String, ToolError> { Ok("a line\n".repeat(2_000)) }
    /// # let reduction = ToolReduction::recommended(Memory::named("demo")?).build()?;
    /// # let call = ToolCall::new("call_1", "grep", "{}");
    /// let shown = match reduction.answer(&call).await? {
    ///     Some(page) => page,
    ///     None => reduction.truncate(&call, run(&call).await).await?,
    /// };
    /// # assert!(shown.text().starts_with("[offcut/1 truncated"));
    /// # let call = ToolCall::new("call_2", "read_file", r#"{"path":"memory://demo/trunc/call_1"}"#);
    /// # assert!(reduction.answer(&call).await?.expect("it is the reader's").text().contains("a line"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`truncate`](Self::truncate). The reader's pages are always within the
    /// limit.
    pub async fn answer(&self, call: &ToolCall) -> Result<Option<Truncated>, OffloadError> {
        let is_reader = self.session.reader() == Some(&*call.name);
        if !is_reader || !names_a_store(&self.session, call).await {
            return Ok(None);
        }
        let page = self.read_file_tool().call(call).await;
        self.truncate(call, page).await.map(Some)
    }

    /// Returns true if results of `tool` over the limit are truncated. A tool that has promised a
    /// fixed shape for its results must then withdraw the promise.
    ///
    /// ```
    /// # use offcut::{backend::Memory, ToolPolicy, ToolReduction};
    /// let reduction = ToolReduction::recommended(Memory::new()).tool("rows", ToolPolicy::new().skip_truncation(true)).build()?;
    /// assert!(reduction.truncates("grep") && !reduction.truncates("rows"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn truncates(&self, tool: &str) -> bool {
        self.session.policy(tool).truncates()
    }

    /// The configuration.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.session.settings
    }

    /// Reads everything stored at `location`, byte for byte; `None` if this session did not store
    /// it.
    ///
    /// This is for programs. Models read page by page, with
    /// [`read_file_tool`](Self::read_file_tool).
    ///
    /// # Errors
    ///
    /// The store failed, or nothing is stored there.
    pub async fn read_original(
        &self,
        location: &Location,
    ) -> Option<Result<bytes::Bytes, BackendError>> {
        let stored = self.session.resolve(location.as_str())?;
        Some(stored.read(0..u64::MAX).await.map(|page| page.bytes))
    }

    /// All stores of this configuration, including those of single tools, each once. For programs that
    /// inspect or maintain them.
    #[must_use]
    pub fn stores(&self) -> Vec<Arc<dyn Backend>> {
        self.session.stores()
    }

    /// The beginning of all keys of this reduction and of sessions made from it: empty, or segments
    /// with a slash after each.
    ///
    /// ```
    /// # use offcut::{backend::Memory, ToolReduction};
    /// let reduction = ToolReduction::recommended(Memory::new()).root_dir("agent").build()?;
    /// assert_eq!(reduction.session("chat-42").prefix(), "agent/chat-42/");
    /// # Ok::<(), offcut::BuildError>(())
    /// ```
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.session.roots.prefix()
    }
}

#[async_trait]
impl Middleware for ToolReduction {
    /// Truncates the tool's output; a stream is read to its end. So is the text of a failed call, and of
    /// an error that ends a stream, which stay errors.
    async fn wrap_tool_call(
        &self,
        call: &ToolCall,
        next: Next<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let output = next.run(call).await;
        if !self.truncates(&call.name) {
            return output;
        }
        let mut truncated = match output {
            Ok(output) => self.truncate(call, output).await?,
            Err(error) => return Err(self.truncated_error(call, error).await),
        };
        if let Some(error) = truncated.interrupted.take() {
            truncated.interrupted = Some(self.truncated_error(call, error).await);
        }
        Ok(truncated.into())
    }

    /// Runs the clear pass.
    async fn before_model(&self, turn: &mut Turn<'_>) -> Result<(), OffloadError> {
        self.clear_turn(turn).await.map(drop)
    }

    fn required_tools(&self) -> Vec<String> {
        Vec::from_iter(self.session.reader().map(str::to_owned))
    }
}
