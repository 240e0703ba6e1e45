//! Custom handlers, which decide about new tool results and about old ones.
//!
//! A handler takes a [`ToolOutcome`] and answers with an [`Action`]. If it fails or panics, the
//! default treatment applies and the report has the error.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;

use crate::backend::Location;
use crate::content::{Part, ToolCall, texts_of};
use crate::format::Conversation;
use crate::guard::{Hook, guard};
use crate::report::Report;

pub use crate::guard::HandlerError;

/// A tool call with its result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolOutcome {
    /// The call. Its arguments are empty if the conversation holds a result without its call.
    pub call: ToolCall,
    /// The result. In a truncation, replacement characters stand for bytes that are not UTF-8.
    pub parts: Vec<Part>,
    /// True if the result is marked as an error.
    pub is_error: bool,
}

impl ToolOutcome {
    /// All texts, concatenated.
    #[must_use]
    pub fn text(&self) -> String {
        texts_of(&self.parts)
    }
}

/// A handler's answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Action {
    /// Do whatever would happen without the handler.
    Default,
    /// Leave the result unchanged, whatever its length or age.
    Keep,
    /// Put this in its place.
    Replace(Replacement),
}

/// The content that replaces a result, and the content to store for it.
///
/// ```
/// use offcut::handler::Replacement;
///
/// // A summary, with the whole stored beside it.
/// let whole = "a long result\n".repeat(10_000);
/// let replacement = Replacement::storing(whole, |location| match location {
///     Some(location) => format!("10000 lines; all of them: {location}"),
///     None => "10000 lines; they could not be stored".to_owned(),
/// });
/// # let _ = replacement;
/// ```
#[derive(Clone)]
pub struct Replacement {
    show: Show,
    pub(crate) content: Option<Bytes>,
    pub(crate) id: Option<String>,
    pub(crate) arguments: Option<String>,
}

impl Replacement {
    /// Shows `parts` instead: a `String`, a `&str` or a `Vec<Part>`. Nothing is stored, so the rest
    /// is lost, and the report says so.
    #[must_use]
    pub fn discarding(parts: impl IntoParts) -> Self {
        let parts = parts.parts();
        Self::new(None, Arc::new(move |_| parts.clone()))
    }

    /// Stores `content` at `<root>/trunc/<id>` or `<root>/clear/<id>` and shows the value of
    /// `show`: a `String`, a `&str` or a `Vec<Part>`.
    ///
    /// `show` gets the content's location, or `None` if the store failed and the settings allow
    /// that (`preview_only`). It must be pure: it is called more than once, to compute the cost of
    /// the replacement.
    #[must_use]
    pub fn storing<S: IntoParts>(
        content: impl Into<Bytes>,
        show: impl Fn(Option<&Location>) -> S + Send + Sync + 'static,
    ) -> Self {
        let show = Arc::new(move |location: Option<&Location>| show(location).parts());
        Self::new(Some(content.into()), show)
    }

    fn new(content: Option<Bytes>, show: Show) -> Self {
        Self {
            show,
            content,
            id: None,
            arguments: None,
        }
    }

    /// Stores the content under this id instead of the call's: one segment of up to 200 ASCII
    /// letters, digits, `.`, `_` and `-`. If other content has that id, a digest is appended. If
    /// the id is not safe, the call's id is used and the report says so.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Replaces the call's arguments, with JSON, when its old result is replaced. Truncation does
    /// not change arguments, and arguments that a provider signed never change.
    #[must_use]
    pub fn arguments(mut self, arguments: impl Into<String>) -> Self {
        self.arguments = Some(arguments.into());
        self
    }

    /// Returns the replacement of content stored at `location`.
    pub(crate) fn show(&self, location: Option<&Location>) -> Result<Vec<Part>, HandlerError> {
        guard("the replacement's `show`", || Ok((self.show)(location)))
    }
}

type Show = Arc<dyn Fn(Option<&Location>) -> Vec<Part> + Send + Sync>;

/// Hides the content.
impl fmt::Debug for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replacement")
            .field("stored_bytes", &self.content.as_ref().map(Bytes::len))
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Decides about each result when its tool returns, overriding the limit. Closures that return a
/// future are handlers.
///
/// It gets whole results: a stream is first read to its end, in memory. It does not get the pages
/// of the reader that hints name, nor results of tools whose truncation is skipped. There is no
/// timeout: a slow handler delays its own call and no other.
///
/// ```
/// use offcut::handler::{ToolOutcome, Action, Replacement};
/// use offcut::{backend::Memory, ToolCall, ToolPolicy, ToolReduction};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let first_line = async |outcome: ToolOutcome| {
///     let text = outcome.text();
///     let first = text.lines().next().unwrap_or_default().to_owned();
///     Ok(Action::Replace(Replacement::storing(text, move |location| match location {
///         Some(location) => format!("{first} … (all of it: {location})"),
///         None => first.clone(),
///     })))
/// };
/// let reduction = ToolReduction::recommended(Memory::named("demo")?)
///     .tool("query", ToolPolicy::new().trunc_handler(first_line))
///     .build()?;
/// let shown = reduction.truncate(&ToolCall::new("call_1", "query", "{}"), "3 rows\na\nb\nc\n").await?;
/// assert_eq!(shown.text(), "3 rows … (all of it: memory://demo/trunc/call_1)");
/// # Ok(()) }
/// ```
#[async_trait]
pub trait TruncHandler: Send + Sync + 'static {
    /// Decides about a result.
    ///
    /// # Errors
    ///
    /// The result is treated as if there were no handler, and the report has the error.
    async fn handle(&self, outcome: ToolOutcome) -> Result<Action, HandlerError>;
}

#[async_trait]
impl<F, Fut> TruncHandler for F
where
    F: Fn(ToolOutcome) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, HandlerError>> + Send,
{
    async fn handle(&self, outcome: ToolOutcome) -> Result<Action, HandlerError> {
        self(outcome).await
    }
}

/// Decides about each old result in a triggered pass, instead of hints. Closures are handlers.
///
/// It is called while the pass is planned. It must be quick, and pure, since a pass may be planned
/// more than once. It must not ask the same session to plan or clear: that would deadlock, waiting
/// for the plan being made. Its replacement is not checked to be shorter. In a loop that passes in
/// its own messages again, the same session then leaves that replacement alone.
pub trait ClearHandler: Send + Sync + 'static {
    /// Decides about an old result.
    ///
    /// # Errors
    ///
    /// The result is treated as if there were no handler, and the report has the error.
    fn handle(&self, outcome: ToolOutcome) -> Result<Action, HandlerError>;
}

impl<F: Fn(ToolOutcome) -> Result<Action, HandlerError> + Send + Sync + 'static> ClearHandler
    for F
{
    fn handle(&self, outcome: ToolOutcome) -> Result<Action, HandlerError> {
        self(outcome)
    }
}

/// Runs after a pass that changed something: see
/// [`Builder::clear_post_process`](crate::Builder::clear_post_process).
pub(crate) type PostProcess = Hook<
    dyn for<'a> Fn(&'a mut dyn Conversation, &'a Report) -> BoxFuture<'a, Result<(), HandlerError>>
        + Send
        + Sync,
>;

/// Chooses the id under which a call's content is stored.
pub(crate) type GenId = Hook<dyn Fn(&ToolCall) -> Result<String, HandlerError> + Send + Sync>;

/// A value that can replace a result. Public because [`Replacement`] takes it,
/// but not exported from the crate.
pub trait IntoParts {
    /// Converts the value into parts.
    fn parts(self) -> Vec<Part>;
}

impl IntoParts for String {
    fn parts(self) -> Vec<Part> {
        vec![Part::Text(self)]
    }
}

impl IntoParts for &str {
    fn parts(self) -> Vec<Part> {
        self.to_owned().parts()
    }
}

impl IntoParts for Vec<Part> {
    fn parts(self) -> Vec<Part> {
        self
    }
}
