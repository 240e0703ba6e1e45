//! The measurements: the tools' results, the library's decisions, and the cost of each model call
//! with and without the library.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use offcut::agent::ModelRequest;
use offcut::backend::{Backend, Key};
use offcut::format::Message;
use offcut::report::{Decision, Outcome};
use offcut::{
    Body, Middleware, Next, Part, Report, ToolCall, ToolError, ToolOutput, ToolReduction,
};
use serde_json::Value;

use crate::messages::{READER, count_tokens};

/// Collects measurements. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Tally {
    log: Arc<Mutex<Log>>,
    /// Common prefix of all locations.
    store: Arc<str>,
}

#[derive(Default)]
struct Log {
    /// The unmodified results, by call id.
    originals: BTreeMap<String, Original>,
    /// All decisions; the first `shown` of them have been printed.
    decisions: Vec<Decision>,
    shown: usize,
    totals: Totals,
    /// Number of messages in the last shadow conversation.
    shadow: usize,
    /// Outcomes of which a sample has been printed.
    samples: Vec<Outcome>,
}

/// A call and its unmodified result.
#[derive(Clone, Debug)]
pub(crate) struct Original {
    pub(crate) call: ToolCall,
    pub(crate) parts: Vec<Part>,
    pub(crate) is_error: bool,
}

/// Sums over all model calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) model_calls: usize,
    pub(crate) tokens_without: u64,
    pub(crate) tokens_with: u64,
    pub(crate) truncated: usize,
    pub(crate) cleared: usize,
}

impl Tally {
    pub(crate) fn new(backend: &dyn Backend) -> Self {
        // All locations of a backend have a common prefix, which the tables leave out.
        let name = "trunc";
        let location = Key::new(name).map(|key| backend.locate(&key));
        let store = location.map(|location| location.as_str().trim_end_matches(name).into());
        Self {
            store: store.unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Records every report of the reduction.
    pub(crate) fn observer(&self) -> impl Fn(&Report) + Send + Sync + 'static {
        let tally = self.clone();
        move |report| {
            tally
                .log()
                .decisions
                .extend(report.decisions.iter().cloned());
        }
    }

    /// Records the unmodified results, if it is the innermost middleware.
    pub(crate) fn recorder(&self) -> impl Middleware + 'static {
        Recorder(self.clone())
    }

    /// Records an unmodified result.
    pub(crate) fn record(&self, call: &ToolCall, parts: &[Part], is_error: bool) {
        let original = Original {
            call: call.clone(),
            parts: parts.to_vec(),
            is_error,
        };
        self.log().originals.insert(call.id.clone(), original);
    }

    pub(crate) fn original(&self, call_id: &str) -> Option<Original> {
        self.log().originals.get(call_id).cloned()
    }

    pub(crate) fn originals(&self) -> Vec<Original> {
        self.log().originals.values().cloned().collect()
    }

    pub(crate) fn decisions(&self) -> Vec<Decision> {
        self.log().decisions.clone()
    }

    pub(crate) fn totals(&self) -> Totals {
        let log = self.log();
        let count = |is: fn(Outcome) -> bool| {
            log.decisions
                .iter()
                .filter(|decision| is(decision.outcome))
                .count()
        };
        let truncated = count(|outcome| outcome == Outcome::Truncated);
        let cleared = count(|outcome| matches!(outcome, Outcome::Cleared | Outcome::Shortened));
        Totals {
            truncated,
            cleared,
            ..log.totals
        }
    }

    /// Common prefix of the store's locations.
    pub(crate) fn store(&self) -> &str {
        &self.store
    }

    /// Returns true the first time it is called with this outcome.
    pub(crate) fn is_first(&self, outcome: Outcome) -> bool {
        let samples = &mut self.log().samples;
        let is_first = !samples.contains(&outcome);
        samples.extend(is_first.then_some(outcome));
        is_first
    }

    /// The decisions since the last call: first about new results, then of a clear pass.
    pub(crate) fn news(&self) -> (Vec<Decision>, Vec<Decision>) {
        let mut log = self.log();
        let news = log.decisions[log.shown..].to_vec();
        log.shown = log.decisions.len();
        // Only decisions of a clear pass have a message index.
        news.into_iter()
            .partition(|decision| decision.message.is_none())
    }

    /// The conversation without the library: every result whole, and no reading back.
    fn shadow(&self, messages: &[Message]) -> Vec<Message> {
        let log = self.log();
        let original = |message: &Message| match message {
            Message::Tool { name, .. } if name == READER => None,
            Message::Tool { call_id, .. } => {
                let whole = log.originals.get(call_id);
                Some(whole.map_or_else(
                    || message.clone(),
                    |it| Message::tool(&it.call, it.parts.clone(), it.is_error),
                ))
            }
            Message::Assistant { calls, .. }
                if !calls.is_empty() && calls.iter().all(|call| call.name == READER) =>
            {
                None
            }
            _ => Some(message.clone()),
        };
        messages.iter().filter_map(original).collect()
    }

    /// Tokens of the next call without and with the library. The first is `None` if the call would
    /// not have been needed, because the model only read back before it.
    pub(crate) fn count_call(
        &self,
        reduction: &ToolReduction,
        request: ModelRequest<'_>,
    ) -> (Option<u64>, u64) {
        let shadow = self.shadow(request.messages);
        let tools: Vec<Value> = request
            .tools
            .iter()
            .filter(|tool| tool["function"]["name"] != READER)
            .cloned()
            .collect();
        let with = count_tokens(reduction, request.messages, request.tools);
        let without = count_tokens(reduction, &shadow, &tools);
        let mut log = self.log();
        let without = (shadow.len() > log.shadow).then_some(without);
        log.shadow = shadow.len();
        log.totals.model_calls += 1;
        log.totals.tokens_with += with;
        log.totals.tokens_without += without.unwrap_or_default();
        (without, with)
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Recorder(Tally);

#[async_trait]
impl Middleware for Recorder {
    async fn wrap_tool_call(
        &self,
        call: &ToolCall,
        next: Next<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let output = ToolOutput::from(next.run(call).await);
        if let Body::Parts(parts) = &output.body {
            self.0.record(call, parts, output.is_error);
        }
        Ok(output)
    }
}
