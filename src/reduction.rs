//! The reduction itself: what a loop holds and calls.

mod builder;
mod checks;
mod opener;
mod original;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::Value;

use crate::backend::{Backend, BackendError, Location};
use crate::clear::{self, Ledger, Plan};
use crate::config::Settings;
use crate::content::{Body, ToolCall, ToolError, ToolOutput};
use crate::error::OffloadError;
use crate::format::{Conversation, Format, Messages};
use crate::guard::guard_future;
use crate::middleware::{Middleware, Next, Turn};
use crate::read_back::ReadFileTool;
use crate::report::Report;
use crate::session::Session;
use crate::tool::Tool;
use crate::truncate::{Truncated, TruncatedStream, truncate, truncate_stream};
use original::store_original;

pub use builder::Builder;

/// Keeps what tools return from filling a model's context, and loses none of it.
///
/// Make one with [`builder`](Self::builder) or [`recommended`](Self::recommended), and
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
    ledger: Arc<Mutex<Ledger>>,
}

impl ToolReduction {
    pub(super) fn over(session: Session) -> Self {
        Self {
            session,
            ledger: Arc::default(),
        }
    }

    /// The same reduction for one conversation: what it stores has a prefix of its own,
    /// `<root>/<id>/`, its reader reads nothing else, and what it decided stays its own. An id that
    /// is no safe name, is reserved (`trunc`, `clear`, `swept`), or looks like a digest, is
    /// replaced by its digest.
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
        Self::over(self.session.below(id))
    }

    /// What the model is to be shown of `output`: all of it if it is within the limit; else it is
    /// stored whole and replaced by a preview and a hint that says where it is.
    ///
    /// An `Err` of the tool is shown as a result marked as an error. A stream is read to its end,
    /// in bounded memory; [`truncate_stream`](Self::truncate_stream) shows it as it comes.
    ///
    /// # Errors
    ///
    /// [`OffloadError`] if the store failed and `on_offload_error` is `Fail`; by default the
    /// result is returned whole.
    pub async fn truncate(
        &self,
        call: &ToolCall,
        output: impl Into<ToolOutput>,
    ) -> Result<Truncated, OffloadError> {
        let truncated = truncate(&self.session, call, output.into()).await?;
        self.session.observe(&truncated.report);
        Ok(truncated)
    }

    /// The same for a result that comes piece by piece, and is to be shown so: its beginning at
    /// once, and at its end either the rest, or the end of the text and a hint. The same is stored,
    /// and the same pieces are shown; the hint comes last. Only head and tail of a fixed length
    /// begin at once: other previews are known at the end.
    ///
    /// ```
    /// # use offcut::{backend::Memory, Chunk, ToolCall, ToolOutput, ToolReduction};
    /// use futures_util::{StreamExt, stream};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use offcut::preview::Preview;
    ///
    /// let reduction = ToolReduction::recommended(Memory::named("demo")?);
    /// let reduction = reduction.preview(Preview::HeadTail).preview_length(2_000).build()?;
    /// let log = stream::iter((1..=100_000).map(|n| Ok(Chunk::Bytes(format!("line {n}\n").into()))));
    /// let call = ToolCall::new("call_1", "build", "{}");
    /// let mut shown = reduction.truncate_stream(&call, ToolOutput::stream(log));
    /// assert_eq!(shown.next().await.transpose()?, Some(Chunk::Bytes("line 1\n".into())));
    /// while let Some(chunk) = shown.next().await {
    ///     let _ = chunk?; // to whoever watches
    /// }
    /// let report = shown.report().expect("the stream has ended");
    /// assert_eq!(report.decisions[0].locations[0].as_str(), "memory://demo/trunc/call_1");
    /// # Ok(()) }
    /// ```
    pub fn truncate_stream(
        &self,
        call: &ToolCall,
        output: impl Into<ToolOutput>,
    ) -> TruncatedStream {
        truncate_stream(&self.session, call, output.into())
    }

    /// The clear pass, before a model call: over the token threshold, old results are stored and
    /// replaced by hints.
    ///
    /// # Errors
    ///
    /// [`OffloadError`] if the store failed and `on_offload_error` is `Fail`. The messages are as
    /// they were then.
    pub async fn clear<F: Format>(
        &self,
        format: &F,
        messages: &mut [F::Message],
    ) -> Result<Report, OffloadError> {
        let mut conversation = Messages::new(format, messages);
        self.clear_turn(&mut Turn::new(&mut conversation)).await
    }

    /// The clear pass with all that a loop knows: the tools' schemas, and what the provider counted
    /// last.
    ///
    /// # Errors
    ///
    /// As [`clear`](Self::clear).
    pub async fn clear_turn(&self, turn: &mut Turn<'_>) -> Result<Report, OffloadError> {
        let mut report = clear::clear(&self.session, &self.ledger, turn).await?;
        if let (Some(callback), true) = (self.session.post_process(), report.is_change()) {
            let call = async { callback(turn.conversation, &report).await };
            let problem = guard_future("clear_post_process", call).await.err();
            report.post_process_error = problem.map(|error| error.to_string());
        }
        self.session.observe(&report);
        Ok(report)
    }

    /// Decides what a clear pass would do. Nothing is stored and nothing is changed.
    ///
    /// What is new is counted on this thread: a millisecond for each 20 kB or so.
    /// [`clear`](Self::clear) and [`clear_turn`](Self::clear_turn) count large texts where blocking
    /// is fine.
    ///
    /// ```
    /// # use offcut::{Turn, ToolReduction, backend::Memory};
    /// # use offcut::format::{Message, Messages, Plain};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let reduction = ToolReduction::recommended(Memory::new()).build()?;
    /// let mut messages = vec![Message::user("hello")];
    /// let mut conversation = Messages::new(&Plain, &mut messages);
    /// let plan = reduction.plan(&Turn::new(&mut conversation));
    /// assert!(!plan.report().is_change());
    /// let report = plan.commit().await?.apply(&mut conversation);
    /// assert!(!report.is_change());
    /// # Ok(()) }
    /// ```
    pub fn plan(&self, turn: &Turn<'_>) -> Plan {
        clear::plan(&self.session, &self.ledger, turn)
    }

    /// The tokens of all messages and of the tools' schemas, as the clear pass counts them.
    #[must_use]
    pub fn count_tokens(&self, conversation: &dyn Conversation, tools: &[Value]) -> u64 {
        self.session.meter().conversation(conversation, tools)
    }

    /// The tool that reads stored content back. It has the name that hints give, or `read_file`
    /// where hints name none.
    #[must_use]
    pub fn read_file_tool(&self) -> ReadFileTool {
        ReadFileTool::new(self.session.clone())
    }

    /// Answers a call of the reader; `None` if `call` is of another tool, which is then yours to
    /// run.
    ///
    /// What the model did wrong is in the answer, marked as an error. Where hints name no reader,
    /// no call is its.
    ///
    /// ```
    /// # use offcut::{backend::Memory, ToolCall, ToolReduction};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # async fn run(_: &ToolCall) -> Result<String, Box<dyn std::error::Error>> { Ok("a line\n".repeat(2_000)) }
    /// # let reduction = ToolReduction::recommended(Memory::named("demo")?).build()?;
    /// # let call = ToolCall::new("call_1", "grep", "{}");
    /// let shown = match reduction.answer(&call).await? {
    ///     Some(page) => page,
    ///     None => reduction.truncate(&call, run(&call).await?).await?,
    /// };
    /// # assert!(shown.text().starts_with("[offcut/1 truncated"));
    /// # let call = ToolCall::new("call_2", "read_file", r#"{"path":"memory://demo/trunc/call_1"}"#);
    /// # assert!(reduction.answer(&call).await?.expect("it is the reader's").text().contains("a line"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`truncate`](Self::truncate); a page of the reader is always within the limit.
    pub async fn answer(&self, call: &ToolCall) -> Result<Option<Truncated>, OffloadError> {
        if self.session.reader() != Some(&*call.name) {
            return Ok(None);
        }
        let page = self.read_file_tool().call(call).await;
        self.truncate(call, page).await.map(Some)
    }

    /// Whether a result of `tool` that is over the limit is truncated. What has promised its
    /// results in a fixed shape has to take the promise back then.
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
        self.session.settings()
    }

    /// Reads everything that is stored at `location`, byte for byte; `None` if this session did not
    /// store it.
    ///
    /// This is for programs. Models read page by page, with
    /// [`read_file_tool`](Self::read_file_tool).
    ///
    /// # Errors
    ///
    /// The store failed, or nothing is there.
    pub async fn read_original(
        &self,
        location: &Location,
    ) -> Option<Result<bytes::Bytes, BackendError>> {
        let stored = self.session.resolve(location.as_str())?;
        Some(stored.read(0..u64::MAX).await.map(|page| page.bytes))
    }

    /// Stores `text`, which your own code is about to drop or condense, and returns where it is, for
    /// the model to be told: at `<root>/clear/<name>-<digest>` in the backend of all tools. A name
    /// that is not safe as part of a path is left out. Storing the same text again stores nothing.
    ///
    /// A text that is itself hints or pages of this session is not stored again: the locations are
    /// those of its originals, one or more. `None` if it looks like such hints and shows something
    /// else than what is stored there. Anybody can write such a text, so keep it.
    ///
    /// ```
    /// # use offcut::{backend::Memory, ToolReduction};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let reduction = ToolReduction::recommended(Memory::named("demo")?).build()?;
    /// let at = reduction.store_original("notes", "what I found").await?.expect("not a hint");
    /// assert_eq!(at[0].as_str(), "memory://demo/clear/notes-7235ae76648904ff");
    /// let read = reduction.read_original(&at[0]).await.transpose()?;
    /// assert_eq!(read.as_deref(), Some(&b"what I found"[..]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The store failed, or the reduction has no backend.
    pub async fn store_original(
        &self,
        name: &str,
        text: &str,
    ) -> Result<Option<Vec<Location>>, BackendError> {
        store_original(&self.session, name, text).await
    }

    /// The stores of this configuration, those of single tools and the spools of all included, each
    /// once: for programs that look into them or take care of them.
    #[must_use]
    pub fn stores(&self) -> Vec<Arc<dyn Backend>> {
        self.session.stores()
    }

    /// What the keys begin with under which this reduction and the sessions made from it store:
    /// empty, or segments with a slash after each.
    ///
    /// ```
    /// # use offcut::{backend::Memory, ToolReduction};
    /// let reduction = ToolReduction::recommended(Memory::new()).root_dir("agent").build()?;
    /// assert_eq!(reduction.session("chat-42").prefix(), "agent/chat-42/");
    /// # Ok::<(), offcut::BuildError>(())
    /// ```
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.session.roots().prefix()
    }
}

#[async_trait]
impl Middleware for ToolReduction {
    /// Truncates what the tool returns; what comes as a stream goes on as one. A call that fails is
    /// passed on untouched, and nothing is stored.
    async fn wrap_tool_call(
        &self,
        call: &ToolCall,
        next: Next<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let output = next.run(call).await?;
        match output.body {
            _ if !self.session.policy(&call.name).truncates() => Ok(output),
            Body::Stream(_) => Ok(self.truncate_stream(call, output).into()),
            Body::Parts(_) => self.wrap_failed_call(call, output).await,
        }
    }

    /// Truncates what the loop is going to show.
    async fn wrap_failed_call(
        &self,
        call: &ToolCall,
        shown: ToolOutput,
    ) -> Result<ToolOutput, ToolError> {
        match self.truncate(call, shown).await {
            Ok(truncated) => Ok(truncated.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// The clear pass.
    async fn before_model(&self, turn: &mut Turn<'_>) -> Result<(), OffloadError> {
        self.clear_turn(turn).await.map(drop)
    }

    fn required_tools(&self) -> Vec<String> {
        self.session
            .reader()
            .map(str::to_owned)
            .into_iter()
            .collect()
    }
}
