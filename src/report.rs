//! What was done, why, and what it saved.

mod change;

use serde::Serialize;

use crate::backend::Location;

pub use change::Change;
pub(crate) use change::{Sum, saved};

/// Every decision of one truncation or one clear pass. Sums over the decisions are exact.
///
/// Content is never in it, names that a model wrote are.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Which moment it is about.
    pub phase: Phase,
    /// One for each result looked at, in the order of the conversation. A clear pass that was not
    /// triggered looks at none.
    pub decisions: Vec<Decision>,
    /// What the clear pass counted; `None` in a truncation.
    pub tokens: Option<TokenCount>,
    /// What the cost-aware pass reckoned with; `None` where no rewrite would save as much as it
    /// asks for.
    pub cost_estimate: Option<CostEstimate>,
    /// Why `clear_post_process` failed, if it did. What the pass has done stays done.
    pub post_process_error: Option<String>,
}

/// The moment that a report is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// A tool returned.
    Truncate,
    /// The model is about to be called.
    #[default]
    Clear,
}

/// What a clear pass counted, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TokenCount {
    /// All messages and tool schemas before the pass, after what the ledger repeated: the number,
    /// or more than it can be, see [`count_kind`](Self::count_kind).
    pub counted: u64,
    /// What `counted` is.
    pub count_kind: CountKind,
    /// The threshold, `max_tokens_for_clear`. The pass acts above it.
    pub threshold: u64,
    /// What the provider counted for the last request, if the loop said so and a message of the
    /// assistant follows it. `counted` is then this, what came since, and less what passes have
    /// saved since.
    pub usage: Option<u64>,
    /// How many more tokens the provider counted for the last request than the pass before it did;
    /// negative if fewer. `None` if either of them did not count that request.
    pub drift: Option<i64>,
}

/// What the cost-aware pass expects of the rewrite that pays most, or costs least. It makes it if
/// that is above 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CostEstimate {
    /// The number of model calls expected after the coming one.
    pub expected_calls: f64,
    /// A lower bound on the tokens saved in the coming call and in each of those after it.
    pub tokens_saved: u64,
    /// The added cost of the coming call, in prices of an uncached input token; negative if that
    /// call gets cheaper at once.
    pub extra_cost: f64,
    /// The expected gain in all: `expected_calls · cached · tokens_saved - extra_cost`.
    pub net_gain: f64,
}

/// What a number of tokens is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CountKind {
    /// The number.
    Counted,
    /// An upper bound. It is within the threshold, so nothing had to be counted: a text has no more
    /// tokens than bytes. [`ToolReduction::count_tokens`](crate::ToolReduction::count_tokens) gives
    /// the number.
    UpperBound,
}

/// What became of one result, or of one call's arguments.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Decision {
    /// The tool's name, as the conversation has it.
    pub tool: String,
    /// The id of the call.
    pub call_id: String,
    /// The index of the message, in a clear pass.
    pub message: Option<usize>,
    /// Whether it is about the result or about the arguments.
    pub subject: Subject,
    /// What was done.
    pub outcome: Outcome,
    /// Bytes of content.
    pub bytes: Change,
    /// Tokens of content. A truncation counts none unless the limit is in tokens.
    pub tokens: Option<Change>,
    /// Where the original is, one location for each stored part.
    pub locations: Vec<Location>,
    /// What the store said, or a handler or callback, if it failed.
    pub error: Option<String>,
    /// What it was that said so; `None` where `error` is.
    pub error_source: Option<ErrorSource>,
}

/// What a decision's error comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorSource {
    /// A store: it failed, or was not asked after it had failed several times in a row.
    Store,
    /// A [`TruncHandler`](crate::handler::TruncHandler), a
    /// [`ClearHandler`](crate::handler::ClearHandler), or the
    /// [`Replacement`](crate::handler::Replacement) that it gave.
    Handler,
    /// A callback: one that names ids, previews texts or rewrites rounds.
    Callback,
}

impl ErrorSource {
    pub(crate) fn said(self, error: &(impl ToString + ?Sized)) -> Failure {
        Failure {
            source: self,
            error: error.to_string(),
        }
    }
}

/// An error that becomes part of a decision.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    source: ErrorSource,
    error: String,
}

/// What a decision is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Subject {
    /// The result of a call.
    Result,
    /// The arguments of a call.
    Arguments,
    /// All messages of a round; tool and id are those of its first call.
    Round,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// It was too long: stored, and replaced by a hint with a preview.
    Truncated,
    /// It was too long and read from what is stored already: replaced by a page of that.
    Paged,
    /// It was old: stored, and replaced by a hint.
    Cleared,
    /// It was old and stored already: replaced by a hint at where it is.
    Shortened,
    /// It was whole, and a preview is expected to pay: stored, and replaced by a hint with a
    /// preview.
    Previewed,
    /// It was replaced before, and the loop handed in the original again: replaced by the same
    /// bytes.
    Repeated,
    /// The rewriter replaced it, and it is stored as a whole.
    Rewritten,
    /// A handler replaced it, and what it gave to be stored is stored.
    Replaced,
    /// It was replaced, and could not be stored or a handler stored nothing: what is not shown is
    /// lost.
    Lost,
    /// Nothing.
    Kept(Reason),
}

/// Why nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// It is within the limit.
    WithinLimit,
    /// It belongs to one of the newest rounds.
    Recent,
    /// The model has not answered it yet.
    Unanswered,
    /// Its tool is excluded or skipped.
    Excluded,
    /// It is an error, and short enough to stay.
    ShortError,
    /// It is a hint already, or what a handler put there.
    AlreadyHint,
    /// A handler keeps it.
    Handler,
    /// A hint would not be shorter.
    NoGain,
    /// A preview of it is not expected to pay, yet.
    DoesNotPay,
    /// The pass reached its target before its turn came.
    TargetReached,
    /// The whole pass would have freed less than `clear_at_least_tokens`.
    TooLittle,
    /// It is as short as a hint of ours, and was not found to be one: it is in other words, or
    /// leads to too much to be compared.
    Unverified,
    /// The store failed.
    StoreFailed,
    /// The message was changed between plan and apply.
    ChangedMeanwhile,
    /// The provider signed it.
    Signed,
    /// A key of its message stands twice, or it is not valid Unicode: see
    /// [`Spelled`](crate::format::Spelled).
    Ambiguous,
}

impl Outcome {
    /// Whether the conversation was changed.
    #[must_use]
    pub fn is_change(self) -> bool {
        !matches!(self, Self::Kept(_))
    }
}

impl Report {
    /// How many results were replaced.
    #[must_use]
    pub fn cleared_tool_uses(&self) -> usize {
        self.decisions
            .iter()
            .filter(|d| d.subject == Subject::Result && d.outcome.is_change())
            .count()
    }

    /// How many tokens the conversation is shorter now; 0 if handlers made it longer.
    #[must_use]
    pub fn cleared_input_tokens(&self) -> u64 {
        saved(self.decisions.iter().filter_map(|decision| decision.tokens))
    }

    /// How many bytes of content the conversation is shorter now; 0 if handlers made it longer.
    #[must_use]
    pub fn saved_bytes(&self) -> u64 {
        saved(self.decisions.iter().map(|decision| decision.bytes))
    }

    /// Whether anything was changed.
    #[must_use]
    pub fn is_change(&self) -> bool {
        self.decisions
            .iter()
            .any(|decision| decision.outcome.is_change())
    }

    /// One event for each decision: what was changed and what failed at `info` and `warn`, the rest
    /// at `debug`.
    pub(crate) fn trace(&self) {
        for decision in &self.decisions {
            decision.trace();
        }
        if let Some(error) = &self.post_process_error {
            tracing::warn!(error, "clear_post_process failed");
        }
    }
}

impl Decision {
    /// A decision about `bytes` of content that changes nothing yet.
    pub(crate) fn new(subject: Subject, tool: &str, call_id: &str, bytes: u64) -> Self {
        Self {
            tool: tool.to_owned(),
            call_id: call_id.to_owned(),
            message: None,
            subject,
            outcome: Outcome::Kept(Reason::NoGain),
            bytes: Change::none(bytes),
            tokens: None,
            locations: Vec::new(),
            error: None,
            error_source: None,
        }
    }

    /// Notes a failure, in the place of an earlier one.
    pub(crate) fn fail(&mut self, Failure { source, error }: Failure) {
        self.error = Some(error);
        self.error_source = Some(source);
    }

    /// Notes a failure, if there was none.
    pub(crate) fn fail_first(&mut self, failure: Option<Failure>) {
        if let (Some(failure), None) = (failure, &self.error) {
            self.fail(failure);
        }
    }

    /// Leaves the content as it is.
    pub(crate) fn keep(&mut self, reason: Reason) {
        self.outcome = Outcome::Kept(reason);
        self.bytes.after = self.bytes.before;
        self.tokens = self.tokens.map(|change| Change::none(change.before));
    }

    /// Replaces the content by something of this size.
    pub(crate) fn resize(&mut self, bytes: u64, tokens: u64) {
        self.bytes.after = bytes;
        self.tokens = self.tokens.map(|change| Change {
            after: tokens,
            ..change
        });
    }

    fn trace(&self) {
        // The level is part of an event's static data, so each level needs an invocation of its
        // own.
        macro_rules! event {
            ($level:ident, $message:literal) => {
                tracing::$level!(
                    tool = self.tool,
                    call_id = self.call_id,
                    subject = ?self.subject,
                    outcome = ?self.outcome,
                    bytes_before = self.bytes.before,
                    bytes_after = self.bytes.after,
                    tokens_before = self.tokens.map(|tokens| tokens.before),
                    tokens_after = self.tokens.map(|tokens| tokens.after),
                    locations = ?self.locations.iter().map(Location::as_str).collect::<Vec<_>>(),
                    error = self.error,
                    error_source = self.error_source.map(tracing::field::debug),
                    $message
                )
            };
        }
        match self.outcome {
            Outcome::Lost => event!(warn, "tool result lost"),
            _ if self.error.is_some() => event!(warn, "tool result not treated as configured"),
            Outcome::Kept(_) => event!(debug, "tool result kept"),
            _ => event!(info, "tool result reduced"),
        }
    }
}
