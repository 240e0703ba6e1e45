//! The reduction itself: what a loop holds and calls.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::backend::{Backend, BackendError, Location};
use crate::clear::{Ledger, Plan, Request};
use crate::config::{Builder, Policy, Settings};
use crate::content::{ToolCall, ToolOutput};
use crate::format::{Conversation, Format, Messages};
use crate::hint::Language;
use crate::middleware::BeforeModel;
use crate::read_back::{MAX_PAGE, ReadFileTool, Stored};
use crate::report::Report;
use crate::store::{Roots, session_segment};
use crate::tokens::Meter;
use crate::truncate::Truncated;

pub(crate) type OnReport = Arc<dyn Fn(&Report) + Send + Sync>;

/// Keeps what tools return from filling a model's context, and loses none of it.
///
/// Make one with [`builder`](Self::builder) or [`recommended`](Self::recommended), and [`session`](Self::session) for each
/// conversation. Clones are cheap and share everything.
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
#[derive(Clone)]
pub struct ToolReduction {
    shared: Arc<Shared>,
    session: Arc<Session>,
}

/// What all sessions share.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) default: Policy,
    pub(crate) policies: HashMap<String, Policy>,
    pub(crate) meter: Meter,
    pub(crate) on_report: Option<OnReport>,
}

struct Session {
    roots: Roots,
    ledger: Mutex<Ledger>,
}

impl fmt::Debug for ToolReduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolReduction")
            .field("settings", &self.shared.settings)
            .field("backend", &self.shared.default.backend)
            .field("roots", &self.session.roots)
            .finish_non_exhaustive()
    }
}

/// What a store or a handler could not do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store failed, and `on_offload_error` says that this is to fail. Nothing was changed; trying again is safe.
    #[error(
        "could not store what the call `{call_id}` of `{tool}` returned: try again, or set `on_offload_error` to keep it"
    )]
    Offload {
        /// The tool.
        tool: String,
        /// The call's id.
        call_id: String,
        /// What the store said.
        #[source]
        source: BackendError,
    },
}

impl ToolReduction {
    pub(crate) fn new(shared: Shared, roots: Roots) -> Self {
        Self { shared: Arc::new(shared), session: Arc::new(Session { roots, ledger: Mutex::default() }) }
    }

    /// A builder with the documented defaults, see [`Settings`].
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A builder with what the measurements say, see [`Settings::recommended`].
    pub fn recommended(backend: impl Backend) -> Builder {
        Builder::default().settings(Settings::recommended()).backend(backend)
    }

    /// The same reduction for one conversation: what it stores has a prefix of its own, `<root>/<id>/`, its reader reads nothing
    /// else, and what it decided stays its own. An id that is no safe name is replaced by its digest.
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
        let roots = self.session.roots.below(&session_segment(id));
        Self { shared: self.shared.clone(), session: Arc::new(Session { roots, ledger: Mutex::default() }) }
    }

    /// What the model is to be shown of `output`: all of it if it is within the limit; else it is stored whole and replaced by a
    /// preview and a hint that says where it is.
    ///
    /// An `Err` of the tool is shown as a result marked as an error. A stream is read to its end first.
    ///
    /// # Errors
    ///
    /// [`Error::Offload`] if the store failed and `on_offload_error` is `Fail`; by default the result is returned whole.
    pub async fn truncate(&self, call: &ToolCall, output: impl Into<ToolOutput>) -> Result<Truncated, Error> {
        let truncated = crate::truncate::truncate(self, call, output.into()).await?;
        self.observe(&truncated.report);
        Ok(truncated)
    }

    /// The clear pass, before a model call: over the token threshold, old results are stored and replaced by hints.
    ///
    /// # Errors
    ///
    /// [`Error::Offload`] if the store failed and `on_offload_error` is `Fail`. The messages are as they were then.
    pub async fn clear<F: Format>(&self, format: &F, messages: &mut [F::Message]) -> Result<Report, Error> {
        let mut conversation = Messages::new(format, messages);
        self.clear_turn(&mut BeforeModel::new(&mut conversation)).await
    }

    /// The clear pass with all that a loop knows: the tools' schemas, and what the provider counted last.
    ///
    /// # Errors
    ///
    /// As [`clear`](Self::clear).
    pub async fn clear_turn(&self, turn: &mut BeforeModel<'_>) -> Result<Report, Error> {
        let request = Request { tools: turn.tools, last_usage: turn.last_usage };
        let plan = self.plan_for(turn.conversation, request);
        Ok(plan.commit().await?.apply(turn.conversation))
    }

    /// Decides what a clear pass would do. Nothing is stored and nothing is changed.
    pub fn plan(&self, conversation: &dyn Conversation) -> Plan {
        self.plan_for(conversation, Request::default())
    }

    /// [`plan`](Self::plan) with what the loop knows beside the messages.
    pub fn plan_for(&self, conversation: &dyn Conversation, request: Request<'_>) -> Plan {
        Plan::new(self, conversation, request)
    }

    /// The tokens of all messages and of the tools' schemas, as the clear pass counts them.
    #[must_use]
    pub fn count_tokens(&self, conversation: &dyn Conversation, tools: &[Value]) -> u64 {
        let meter = self.meter();
        (0..conversation.len()).map(|message| meter.message(conversation, message)).sum::<u64>() + meter.schemas(tools)
    }

    /// The tool that reads stored content back. It has the name that hints give, or `read_file` where hints name none.
    #[must_use]
    pub fn read_file_tool(&self) -> ReadFileTool {
        ReadFileTool::new(self.clone())
    }

    /// The configuration.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Where in which backend `location` is, if this session stored it.
    pub(crate) fn resolve(&self, location: &str) -> Option<Stored> {
        let policies = std::iter::once(&self.shared.default).chain(self.shared.policies.values());
        policies.filter_map(|policy| policy.backend.as_ref()).find_map(|backend| {
            let key = backend.resolve(location).filter(|key| self.session.roots.own(key))?;
            let location = backend.locate(&key);
            Some(Stored { backend: backend.clone(), key, location })
        })
    }

    /// Reads everything that is stored at `location`, byte for byte; `None` if this session did not store it.
    ///
    /// This is for programs. Models read page by page, with [`read_file_tool`](Self::read_file_tool).
    ///
    /// # Errors
    ///
    /// The store failed, or nothing is there.
    pub async fn read_original(&self, location: &Location) -> Option<Result<bytes::Bytes, BackendError>> {
        let stored = self.resolve(location.as_str())?;
        Some(stored.backend.read(&stored.key, 0..u64::MAX).await.map(|page| page.bytes))
    }

    pub(crate) fn policy(&self, tool: &str) -> &Policy {
        self.shared.policies.get(tool).unwrap_or(&self.shared.default)
    }

    /// Whether the clear pass has anything to do at all.
    pub(crate) fn clears(&self) -> bool {
        self.shared.default.clears || self.shared.policies.values().any(|policy| policy.clears)
    }

    pub(crate) fn meter(&self) -> &Meter {
        &self.shared.meter
    }

    pub(crate) fn roots(&self) -> &Roots {
        &self.session.roots
    }

    pub(crate) fn language(&self) -> Language {
        self.shared.settings.language
    }

    /// The reader that hints name.
    pub(crate) fn reader(&self) -> Option<&str> {
        self.shared.settings.read_file_tool_name.as_deref()
    }

    pub(crate) fn reader_name(&self) -> &str {
        self.reader().unwrap_or("read_file")
    }

    /// How many bytes a page may take that `tool` returns: always under its truncation limit.
    pub(crate) fn page_room(&self, tool: &str) -> usize {
        let policy = self.policy(tool);
        if policy.truncates { policy.limit.safe_bytes().min(MAX_PAGE) } else { MAX_PAGE }
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // Nothing that panics happens under the lock.
        self.session.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn observe(&self, report: &Report) {
        report.trace();
        if let Some(on_report) = &self.shared.on_report {
            on_report(report);
        }
    }
}
