//! Reports: each decision, the reason for it, and what it saved.

use serde::Serialize;

use crate::backend::Location;
pub use crate::backend::layout::Phase;

/// Every decision of one truncation or one clear pass. Sums over the decisions are exact.
///
/// A report never holds content, but it does hold names that a model wrote.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The moment that it is about.
    pub phase: Phase,
    /// One for each result examined, in the order of the conversation. A clear pass that was not
    /// triggered only repeats earlier ones.
    pub decisions: Vec<Decision>,
    /// The clear pass's token count; `None` for a truncation.
    pub tokens: Option<TokenCount>,
    /// The error of `clear_post_process`, if it failed. The changes of the pass remain.
    pub post_process_error: Option<String>,
    /// The problem with the records that [`reduce`](crate::ToolReduction::reduce) keeps, if there was
    /// one: they could not be read or written. In JSON only if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records_error: Option<String>,
    /// Says, once for a conversation, that clear passes can't bring it below the threshold: what they
    /// can't clear, now or later, is over it. In JSON only if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// The token count of a clear pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TokenCount {
    /// Tokens of all messages and tool schemas before anything is cleared anew: the exact number or an upper bound, see [`count_kind`](Self::count_kind).
    pub counted: u64,
    /// The precision of `counted`.
    pub count_kind: CountKind,
    /// The threshold: `max_tokens_for_clear`, or half of it if the provider's cache holds nothing.
    pub threshold: u64,
    /// The provider's count of the last request, if the loop passed it on and a message of the
    /// assistant follows that request. `counted` is then this number plus what was added since,
    /// minus what passes have saved since.
    pub usage: Option<u64>,
}

/// The precision of a token count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CountKind {
    /// The exact number.
    Counted,
    /// An upper bound, because a text has no more tokens than bytes. It is within the threshold, so
    /// nothing had to be counted.
    /// [`ToolReduction::count_tokens`](crate::ToolReduction::count_tokens) gives the exact number.
    UpperBound,
}

/// The decision about one result, one call's arguments, or one text of a user.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Decision {
    /// The tool's name, as the conversation has it.
    pub tool: String,
    /// The id of the call.
    pub call_id: String,
    /// Index of the message; `None` for a truncation by itself.
    pub message: Option<usize>,
    /// The part of the conversation that it is about.
    pub subject: Subject,
    /// The outcome; in JSON `outcome`, and `reason` beside it where that is `kept`.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Bytes of content.
    pub bytes: Change,
    /// Tokens of content; `None` for a truncation, which counts none.
    pub tokens: Option<Change>,
    /// Locations of the original, one for each stored part.
    pub locations: Vec<Location>,
    /// Error message of the store, a handler or a callback, if one failed.
    pub error: Option<String>,
    /// Origin of `error`; `None` if there is no error.
    pub error_source: Option<ErrorSource>,
}

/// A size before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Size before.
    pub before: u64,
    /// Size after.
    pub after: u64,
}

impl Change {
    pub(crate) fn none(size: u64) -> Self {
        Self {
            before: size,
            after: size,
        }
    }

    /// The rule of gain (L3) when a result arrives: the most bytes that may stand for `before`. No tokens are counted:
    /// so many fewer bytes are fewer tokens too.
    pub(crate) fn most_after(before: u64) -> u64 {
        before - before / 4
    }

    /// The rule of gain (L3) in a pass. These are bytes.
    pub(crate) fn gains(self, tokens: Self) -> bool {
        self.after < self.before && tokens.after <= tokens.before
    }

    /// Amount by which the size has shrunk; 0 if it has grown.
    #[must_use]
    pub fn saved(self) -> u64 {
        self.before.saturating_sub(self.after)
    }

    /// Amount by which the size has shrunk, negative if it has grown. Sums of it are exact whatever a counter returns.
    pub(crate) fn net(self) -> i128 {
        i128::from(self.before) - i128::from(self.after)
    }
}

/// Total amount saved. Subtracts what longer replacements add, such as those of handlers.
fn saved(changes: impl Iterator<Item = Change>) -> u64 {
    let sum: i128 = changes.map(Change::net).sum();
    sum.max(0).try_into().unwrap_or(u64::MAX)
}

/// The origin of a decision's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorSource {
    /// A store: it failed, or was not asked after it had been unavailable in the same pass.
    Store,
    /// A [`TruncHandler`](crate::handler::TruncHandler), a
    /// [`ClearHandler`](crate::handler::ClearHandler), or the
    /// [`Replacement`](crate::handler::Replacement) that it returned.
    Handler,
    /// A callback that names ids or previews texts.
    Callback,
}

/// The part of the conversation that a decision is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Subject {
    /// The result of a call.
    Result,
    /// The arguments of a call.
    Arguments,
    /// A text of a user. It has neither a tool nor a call.
    UserText,
}

/// The outcome of a decision. In JSON, `{"outcome": "truncated"}`, or with a reason
/// `{"outcome": "kept", "reason": "recent"}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "outcome", content = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// Too long: stored, and replaced by a hint with a preview.
    Truncated,
    /// Too long, and read from stored content: replaced by a page of that content.
    Paged,
    /// Old: stored, and replaced by a hint.
    Cleared,
    /// Old, and already stored: replaced by a hint that names where it is.
    Shortened,
    /// Replaced by an earlier pass, and passed in again by the loop: replaced by the same bytes.
    Repeated,
    /// Replaced by a handler; any content that it wanted stored is stored.
    Replaced,
    /// Replaced, but not stored, for lack of a store that works or because a handler chose so:
    /// anything not shown is lost.
    Lost,
    /// Left as it was.
    Kept(Reason),
}

/// Reason for leaving something as it was.
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
    /// It is already a hint, or a handler's replacement.
    AlreadyHint,
    /// A handler keeps it, or failed.
    Handler,
    /// A hint would not be shorter.
    NoGain,
    /// The whole pass would have freed less than `clear_at_least_tokens`.
    TooLittle,
    /// It is as short as a hint of ours but could not be verified as one, since it leads to content that is too
    /// long to compare.
    Unverified,
    /// The store failed.
    StoreFailed,
    /// The provider signed it.
    Signed,
    /// It must stay as its provider or the conversation has it: see
    /// [`is_fixed`](crate::format::Call::is_fixed).
    Ambiguous,
}

impl Outcome {
    /// Returns true if the conversation was changed.
    #[must_use]
    pub fn is_change(self) -> bool {
        !matches!(self, Self::Kept(_))
    }
}

impl Report {
    /// Number of results replaced.
    #[must_use]
    pub fn cleared_tool_uses(&self) -> usize {
        self.decisions
            .iter()
            .filter(|d| d.subject == Subject::Result && d.outcome.is_change())
            .count()
    }

    /// Number of tokens by which the conversation is shorter; 0 if handlers made it longer.
    #[must_use]
    pub fn cleared_input_tokens(&self) -> u64 {
        saved(self.decisions.iter().filter_map(|decision| decision.tokens))
    }

    /// Number of input tokens after the pass: those counted before it, less those that it saved, or
    /// plus those that handlers added. Decisions that were repeated are in the count already. `None`
    /// for a truncation; an upper bound where the count is one.
    #[must_use]
    pub fn tokens_after(&self) -> Option<u64> {
        let new = self
            .decisions
            .iter()
            .filter(|d| d.outcome != Outcome::Repeated);
        let changes = new.filter_map(|decision| decision.tokens);
        let left = i128::from(self.tokens?.counted) - changes.map(Change::net).sum::<i128>();
        Some(left.max(0).try_into().unwrap_or(u64::MAX))
    }

    /// The notice for a conversation that no clear pass can bring below `threshold`, the settings' own.
    pub(crate) fn beyond_help(&self, threshold: u64) -> Option<String> {
        use Reason::{Recent, StoreFailed, TooLittle, Unanswered};
        let count_kind = self.tokens?.count_kind;
        let later = self.decisions.iter().filter_map(|d| match d.outcome {
            Outcome::Kept(Recent | Unanswered | TooLittle | StoreFailed) => Some(d.tokens?.after),
            _ => None,
        });
        let later = later.fold(0, u64::saturating_add);
        let stays = self.tokens_after()?.saturating_sub(later);
        (stays > threshold && count_kind == CountKind::Counted).then(|| {
            format!(
                "clear passes can't bring this conversation below `max_tokens_for_clear`, {threshold} tokens: {stays} tokens are \
                 no results that a hint could shorten (tools' schemas, messages, short or excluded results): raise the \
                 threshold, send fewer tools, or begin a new conversation"
            )
        })
    }

    /// Number of bytes of content by which the conversation is shorter; 0 if handlers made it
    /// longer.
    #[must_use]
    pub fn saved_bytes(&self) -> u64 {
        saved(self.decisions.iter().map(|decision| decision.bytes))
    }

    /// Returns true if anything was changed.
    #[must_use]
    pub fn is_change(&self) -> bool {
        self.decisions
            .iter()
            .any(|decision| decision.outcome.is_change())
    }

    /// Emits one event for each decision: failures and losses at `warn`, new changes at `info`, the
    /// rest at `debug`. A notice tells of no failure: `info`.
    pub(crate) fn trace(&self) {
        for decision in &self.decisions {
            decision.trace();
        }
        if let Some(error) = &self.post_process_error {
            tracing::warn!(error, "clear_post_process failed");
        }
        if let Some(error) = &self.records_error {
            tracing::warn!(error, "records of decisions not handled as configured");
        }
        if let Some(notice) = &self.notice {
            tracing::info!("{notice}");
        }
    }
}

impl Decision {
    /// A decision about `bytes` of content, without the size of what replaces it.
    pub(crate) fn new(
        subject: Subject,
        tool: &str,
        call_id: &str,
        bytes: u64,
        outcome: Outcome,
    ) -> Self {
        Self {
            tool: tool.to_owned(),
            call_id: call_id.to_owned(),
            message: None,
            subject,
            outcome,
            bytes: Change::none(bytes),
            tokens: None,
            locations: Vec::new(),
            error: None,
            error_source: None,
        }
    }

    /// Records a failure, replacing an earlier one.
    pub(crate) fn fail(&mut self, source: ErrorSource, error: impl Into<String>) {
        self.error = Some(error.into());
        self.error_source = Some(source);
    }

    /// Records a failure if there is one, unless there already is another.
    pub(crate) fn fail_first(&mut self, source: ErrorSource, error: Option<String>) {
        if let (None, Some(error)) = (&self.error, error) {
            self.fail(source, error);
        }
    }

    /// Leaves the content as it is.
    pub(crate) fn keep(&mut self, reason: Reason) {
        self.outcome = Outcome::Kept(reason);
        self.bytes.after = self.bytes.before;
        self.tokens = self.tokens.map(|change| Change::none(change.before));
    }

    /// Sets the size of what replaces the content.
    pub(crate) fn resize(&mut self, bytes: u64, tokens: u64) {
        self.bytes.after = bytes;
        self.tokens = self.tokens.map(|change| Change {
            after: tokens,
            ..change
        });
    }

    fn trace(&self) {
        // A log in JSON would have a list as one quoted string.
        let more = self.locations.iter().skip(1).map(Location::as_str);
        let more: Vec<_> = more.collect();
        let more = (!more.is_empty()).then(|| more.join(", "));
        // The level is part of an event's static data, so each level needs its own invocation.
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
                    location = self.locations.first().map(Location::as_str),
                    more_locations = more,
                    error = self.error,
                    error_source = self.error_source.map(tracing::field::debug),
                    $message
                )
            };
        }
        match self.outcome {
            Outcome::Lost => event!(warn, "tool result lost"),
            _ if self.error.is_some() => event!(warn, "tool result not handled as configured"),
            Outcome::Kept(_) => event!(debug, "tool result kept"),
            // At each call of a long conversation there are many.
            Outcome::Repeated => event!(debug, "tool result reduced as before"),
            _ => event!(info, "tool result reduced"),
        }
    }
}
