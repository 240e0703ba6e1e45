//! Handlers of your own: they decide what is done with a result that a tool has just returned, and
//! with one that has grown old.
//!
//! A handler is given a [`ToolOutcome`] and answers with an [`Action`]. If it fails or panics, the
//! default treatment takes its place, and the report has the error.

mod shown;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;

use crate::backend::Location;
use crate::content::{Part, ToolCall};
use crate::format::Conversation;
use crate::guard::guard;
use crate::report::Report;
use shown::IntoParts;

pub use crate::guard::HandlerError;

/// A call and what it returned.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolOutcome {
    /// The call. Where a conversation holds a result without its call, the arguments are empty.
    pub call: ToolCall,
    /// What it returned. In a truncation, bytes that are no UTF-8 are replacement characters here.
    pub parts: Vec<Part>,
    /// Whether the result is marked as an error.
    pub is_error: bool,
}

impl ToolOutcome {
    /// The texts, one after the other.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| {
            if let Part::Text(text) = part {
                Some(text.as_str())
            } else {
                None
            }
        });
        texts.collect()
    }
}

/// A handler's answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Action {
    /// What would be done without the handler.
    Default,
    /// The result stays as it is, whatever its length or age.
    Keep,
    /// This takes its place.
    Replace(Replacement),
}

/// What takes the place of a result, and what is stored for it.
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
    /// What is shown instead: a `String`, a `&str` or a `Vec<Part>`. Nothing is stored: what is not
    /// shown is lost, and the report says so.
    #[must_use]
    pub fn discarding(parts: impl IntoParts) -> Self {
        let parts = parts.parts();
        Self {
            show: Arc::new(move |_| parts.clone()),
            content: None,
            id: None,
            arguments: None,
        }
    }

    /// `content` is stored at `<root>/trunc/<id>` or `<root>/clear/<id>`, and `show` says what is
    /// shown instead, a `String`, a `&str` or a `Vec<Part>`, told where that is. It is told `None`
    /// where the store failed and the configuration says to go on without (`preview_only`). It is
    /// called more than once, to know what the replacement costs, and has to be pure.
    #[must_use]
    pub fn storing<S: IntoParts>(
        content: impl Into<Bytes>,
        show: impl Fn(Option<&Location>) -> S + Send + Sync + 'static,
    ) -> Self {
        let show = Arc::new(move |location: Option<&Location>| show(location).parts());
        Self {
            show,
            content: Some(content.into()),
            id: None,
            arguments: None,
        }
    }

    /// The id under which the content is stored, in place of the call's: one segment of up to 200
    /// ASCII letters, digits, `.`, `_` and `-`. Where it is taken by other content, a digest is put
    /// behind it; where it is no such name, the call's is used and the report says so.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// What takes the place of the call's arguments when its old result is replaced: JSON.
    /// Truncation does not change arguments, nor does anything those that a provider signed.
    #[must_use]
    pub fn arguments(mut self, arguments: impl Into<String>) -> Self {
        self.arguments = Some(arguments.into());
        self
    }

    /// What is shown of content that is stored at `location`.
    pub(crate) fn show(&self, location: Option<&Location>) -> Result<Vec<Part>, HandlerError> {
        guard("the replacement's `show`", || Ok((self.show)(location)))
    }
}

type Show = Arc<dyn Fn(Option<&Location>) -> Vec<Part> + Send + Sync>;

/// Content is not shown.
impl fmt::Debug for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replacement")
            .field("stored_bytes", &self.content.as_ref().map(Bytes::len))
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Decides about each result of a tool when it returns, in place of the limit. Closures that return
/// a future are handlers.
///
/// It gets whole results: a stream is read to its end first, in memory. It is not called for pages
/// of the reader that hints name, nor where truncation is skipped. There is no time-out: a slow
/// handler holds up its own call, and no other.
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
    /// What is to be done with a result.
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

/// Decides about each old result that a triggered pass would clear, in place of hints. Closures are
/// handlers.
///
/// It is called while the pass is planned: it has to be quick, and pure, since a pass may be
/// planned more than once. It must not ask the same session to plan or clear: that waits for the
/// plan that is being made, for ever. What it puts there is its own: nothing checks that it is
/// shorter, and in a loop that hands in its own messages again it is left alone from then on, as
/// far as the same session knows it.
pub trait ClearHandler: Send + Sync + 'static {
    /// What is to be done with an old result.
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
pub(crate) type PostProcess = Arc<
    dyn for<'a> Fn(&'a mut dyn Conversation, &'a Report) -> BoxFuture<'a, Result<(), HandlerError>>
        + Send
        + Sync,
>;

/// Names the id of what is stored for a call.
pub(crate) type GenId = Arc<dyn Fn(&ToolCall) -> Result<String, HandlerError> + Send + Sync>;
