//! The reduction itself, which a loop holds and calls.

mod builder;
mod checks;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::Value;

use crate::backend::content::{Id, Roots, Target, place_of, probe_key};
use crate::backend::key::digest;
use crate::backend::layout::Phase;
use crate::backend::{Backend, BackendError, ErrorKind, Key, Location, PutOutcome};
use crate::config::{BuildError, Settings};
use crate::content::{ToolCall, ToolError, ToolOutput};
use crate::error::OffloadError;
use crate::format::{Conversation, Format, LoopFormat, Messages, RequestBody, Spelled};
use crate::guard::guard_future;
use crate::middleware::{Middleware, Next, Turn};
use crate::ours::{Classified, classify};
use crate::read_back::{ReadFileTool, names_a_store};
use crate::report::Report;
use crate::session::{Session, Shared};
use crate::slots::Memory;
use crate::tool::Tool;
use crate::truncate::{Truncated, truncate};
use crate::{clear, history};
use checks::policies;

pub use builder::Builder;

/// The content that is stored for a trial: always the same, so that a store takes it once.
const PROBE: &[u8] = b"Offcut found out with this that content can be stored here and read back\n";

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

    /// The same configuration with a prefix and memories of its own.
    fn at(&self, roots: Roots) -> Self {
        Self::over(Session {
            roots,
            ..self.session.clone()
        })
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
        self.at(self.session.roots.session(id))
    }

    /// Returns the same reduction with previews of new results of at most `bytes` bytes, for results that
    /// would take little room without it.
    #[must_use]
    pub fn with_previews_of_at_most(&self, bytes: usize) -> Self {
        let mut shared = Shared::clone(&self.session);
        for policy in shared.policies.values_mut().chain([&mut shared.default]) {
            policy.preview_length = policy.preview_length.capped(bytes);
        }
        self.with(shared)
    }

    /// Returns the same reduction with new hints that name the reader `name`, or none.
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
        (shared.default, shared.policies) =
            policies(settings, &hooks, &shared.prose, &shared.gen_ids)?;
        Ok(self.with(shared))
    }

    /// The same store and session with a configuration of its own.
    fn with(&self, shared: Shared) -> Self {
        Self::over(Session {
            shared: Arc::new(shared),
            ..self.session.clone()
        })
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
    pub async fn read_original(&self, location: &Location) -> Option<Result<Bytes, BackendError>> {
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
    pub fn in_dir(path: impl AsRef<std::path::Path>) -> Result<Self, BuildError> {
        use crate::backend::{Fs, StoreUrl};

        let path = path.as_ref();
        let store = Fs::open(path).map_err(|error| BuildError::Open {
            tool: None,
            url: StoreUrl::from(path.to_string_lossy().as_ref()),
            cause: Arc::new(error),
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
    /// the newest results where the provider wants those of parallel calls in one message. Schemas of tools are not at
    /// hand, so they don't count: [`clear_turn`](Self::clear_turn) counts them, and joins nothing.
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
    /// [take](LoopFormat::takes) are bytes, each after a text that names it, since the message could only spell them,
    /// and so are an error's: Anthropic refuses an error with anything but text. Media in chunks or in a stream stay.
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
            true => {
                let is_error = output.is_error;
                output.without_media(|part| !is_error && format.takes(part))
            }
            false => output,
        };
        self.truncate(call, output).await
    }

    /// Reduces a whole history before a model call, in one step: every result is truncated as it
    /// would have been when it arrived, and then the clear pass runs. For programs that get the
    /// history at each call, with the originals or with what was sent before: a proxy, a hook, a
    /// framework that calls you before the model.
    ///
    /// Decisions are repeated byte for byte, also by another process with the same settings, store
    /// and session. Each call that decides something writes a small record to the
    /// store, after the content and before any message changes. If that fails, the call decides
    /// nothing new. Messages may be inserted, removed and rewritten between calls: decisions belong
    /// to results, and are found by their ids, tools and contents.
    ///
    /// A [session](Self::session) is one conversation here too. The report gives
    /// tokens only for what the pass decided.
    ///
    /// ```
    /// # use offcut::{ToolCall, ToolReduction, backend::Memory, format::{Message, Plain}};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let call = ToolCall::new("call_1", "grep", "{}");
    /// let history = [
    ///     Message::calls(vec![call.clone()]),
    ///     Message::tool(&call, vec!["a line that matches\n".repeat(1_000).into()], false),
    /// ];
    /// let store = Memory::new();
    /// let mut sent = Vec::new();
    /// for _ in 0..2 {
    ///     // Another process, as far as it can be seen.
    ///     let reduction = ToolReduction::recommended(store.clone()).build()?.session("chat-42");
    ///     let mut messages = history.clone();
    ///     reduction.reduce(Plain, &mut messages).await?;
    ///     sent.push(messages);
    /// }
    /// assert_ne!(sent[0], history);
    /// assert_eq!(sent[0], sent[1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`OffloadError`] if the store failed and `on_offload_error` is `Fail`. The messages are then
    /// unchanged.
    pub async fn reduce<F: Format>(
        &self,
        format: F,
        messages: &mut [F::Message],
    ) -> Result<Report, OffloadError> {
        let mut conversation = Messages::new(format, messages);
        self.reduce_turn(&mut Turn::new(&mut conversation)).await
    }

    /// Makes a session for a conversation that has no name, from its beginning: `<root>/<tenant>/<name>/`.
    /// Every process gives a history the same name, whatever was changed before its first call: system
    /// messages, reminders, cache marks. A fork goes on with what was decided before it. A
    /// compacted history has another beginning, and so another name, but its reader still reads
    /// everything that its tenant stored. Before the first call there is nothing to decide, and the name is `none`.
    ///
    /// You choose `tenant`: a name for everyone who may read all of these conversations, such as a
    /// digest of a credential. `secret` is the same in every process, and known to nobody who may not read the store: others
    /// could compute the name of a conversation whose first call they know. Keep the session, by its [`prefix`](Self::prefix), as long as the conversation goes
    /// on: a new one reads all records again.
    ///
    /// ```
    /// # use offcut::{ToolCall, ToolReduction, backend::Memory, format::{Message, Messages, Plain}};
    /// # let reduction = ToolReduction::recommended(Memory::new()).build()?;
    /// let call = ToolCall::new("call_8Zk1v0QbWm3d", "grep", "{}");
    /// let mut history = [Message::user("go"), Message::calls(vec![call])];
    /// let session = reduction.conversation("team-7", b"a secret", &Messages::new(Plain, &mut history));
    /// assert!(session.prefix().starts_with("team-7/c-"));
    /// # Ok::<(), offcut::BuildError>(())
    /// ```
    #[must_use]
    pub fn conversation(
        &self,
        tenant: &str,
        secret: &[u8],
        conversation: &dyn Conversation,
    ) -> Self {
        let name = history::beginning(secret, conversation);
        let name = name.as_deref().unwrap_or("none");
        self.at(self.session.roots.conversation(tenant, name))
    }

    /// Like [`reduce`](Self::reduce), with everything that is known about the request.
    /// [`last_usage`](Turn::last_usage) is not looked at, since no request carries it.
    ///
    /// # Errors
    ///
    /// The same as for [`reduce`](Self::reduce).
    pub async fn reduce_turn(&self, turn: &mut Turn<'_>) -> Result<Report, OffloadError> {
        let report = history::reduce(&self.session, &self.history, turn).await?;
        Ok(self.after_pass(turn, report).await)
    }

    /// Like [`reduce`](Self::reduce), over a request's body as text, in the format that its messages
    /// look like. Every byte that is not replaced stays. A body in which no format is recognized, or
    /// that has no messages, stays whole.
    ///
    /// ```
    /// # use offcut::{ToolReduction, backend::Memory, format::RequestBody};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let reduction = ToolReduction::recommended(Memory::named("demo")?).build()?;
    /// let long = "a line\\n".repeat(2_000);
    /// let text = format!(r#"{{"model": "m", "messages": [{{"role": "tool", "tool_call_id": "call_1", "content": "{long}"}} ]}}"#);
    /// let mut body = RequestBody::parse(text)?;
    /// let report = reduction.reduce_body(&mut body).await?;
    /// assert!(body.to_string().starts_with(r#"{"model": "m", "messages": [{"role": "tool", "tool_call_id": "call_1", "content": "[offcut/1 "#));
    /// assert_eq!(report.decisions[0].locations[0].as_str(), "memory://demo/trunc/call_1");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`reduce`](Self::reduce). The body is then unchanged.
    pub async fn reduce_body(&self, body: &mut RequestBody) -> Result<Report, OffloadError> {
        let Some(format) = body.format() else {
            return Ok(Report::default());
        };
        let (tools, format) = (body.tools(), Spelled(format));
        let mut conversation = Messages::new(&format, body.messages_mut());
        let mut turn = Turn {
            tools: &tools,
            ..Turn::new(&mut conversation)
        };
        self.reduce_turn(&mut turn).await
    }

    /// Stores `text`, which your own code is about to drop or condense, and returns its location,
    /// so that you can tell the model: `<root>/clear/<name>-<digest>` in the backend of all tools.
    /// A name that is not safe as part of a path is left out. An equal text is stored at most once
    /// in 24 hours.
    ///
    /// If the text consists of hints or pages of this session, it is not stored again, nor are their sentences, and
    /// the locations of its originals are returned, one or more. `None` means that it looks like such
    /// hints but shows something else than what is stored. Any text may look like that, so keep it.
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
        match classify(&self.session, text).await? {
            Classified::Content => {}
            Classified::Hints(locations) => return Ok(Some(locations)),
            Classified::Imitation => return Ok(None),
        }
        let session = &self.session;
        // Use the backend that a result of an unnamed tool would use.
        let Some(backend) = session.policy("").backend() else {
            let message = "this reduction has no backend: set one with `Builder::backend`";
            return Err(BackendError::new(ErrorKind::Other, message));
        };
        let content = Bytes::copy_from_slice(text.as_bytes());
        // A name may be anything; only a safe one becomes part of a path (L6).
        let id = Id::of_call(name);
        let digest = digest(&content);
        let mut target = Target::new(&session.roots, Phase::Clear, &id, "", None, &digest);
        if id.text.is_some() {
            target = target.second_only();
        }
        target
            .save(&**backend, content)
            .await
            .map(|at| Some(vec![at]))
    }

    /// Tries out every store of this configuration: stores a few bytes under the root and the
    /// session's prefix, and reads them back. Includes the stores of single tools.
    ///
    /// Call it when a program starts. Later, results stay in the context if a store fails, and only
    /// the report and a `tracing` event say so.
    ///
    /// The bytes are always the same and stay there, as `<prefix>meta/check-<digest>`. No hint
    /// names them, and sweeps leave them. Without a backend, it does nothing.
    ///
    /// ```
    /// # use offcut::{backend::Memory, ToolReduction};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let reduction = ToolReduction::recommended(Memory::new()).build()?;
    /// reduction.check_stores().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The error of the first store that failed, with its place and what to do about it, and without
    /// secrets of its URL.
    pub async fn check_stores(&self) -> Result<(), BackendError> {
        let key = probe_key(&self.session.roots, &digest(PROBE));
        for store in self.session.stores() {
            check(&*store, &key).await.map_err(|error| {
                let place = place_of(&*store, &key);
                error.while_doing(format_args!(
                    "the store {place} failed when it was tried out"
                ))
            })?;
        }
        Ok(())
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

/// Both ways to store, since short results go one and streams the other. A store that has the
/// content already may find that out without writing anything; a writer has to write.
async fn check(store: &dyn Backend, key: &Key) -> Result<(), BackendError> {
    let content = Bytes::from_static(PROBE);
    let put = store.put(key, content.clone()).await?;
    let mut writer = store.writer().await?;
    writer.write(content.clone()).await?;
    let written = writer.finish(key).await?;
    let stored = store.read(key, 0..u64::MAX).await?;
    if [put, written].contains(&PutOutcome::Taken) || stored.bytes != content {
        let why = format!(
            "`{key}` holds other content than a trial of the store has stored there: remove it, or use another store"
        );
        return Err(BackendError::new(ErrorKind::Other, why));
    }
    Ok(())
}
