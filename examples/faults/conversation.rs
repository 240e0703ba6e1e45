//! A conversation as an agent loop has it.

mod check;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use offcut::backend::{Backend, Location};
use offcut::format::{LoopFormat, OpenAiChat};
use offcut::report::{Outcome, Reason, Report, Subject};
use offcut::{Chunk, OnOffloadError, Part, TokenCounter, ToolCall, ToolOutput, ToolReduction};
use serde_json::{Value, json};

pub(crate) use check::verify_all;

use crate::originals::{Comes, Originals};
use crate::result::Result;
use crate::tally::Tally;

/// Length in bytes of the longest result that is never truncated.
const LIMIT: usize = 8_000;
/// Bytes per chunk of a streamed result.
const CHUNK: usize = 16 << 10;
/// Time that a loop waits for a call that meets no fault.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);
/// Number of attempts while the store fails.
const ATTEMPTS: u32 = 200;

/// A reduction that acts early and on everything, so that a short conversation sees it all: results
/// are truncated, streamed and cleared, and so are arguments.
pub(crate) fn reduction(store: impl Backend, on_error: OnOffloadError) -> Result<ToolReduction> {
    let reduction = ToolReduction::recommended(store)
        .token_counter(TokenCounter::Estimate)
        .max_length_for_trunc(LIMIT);
    Ok(reduction
        .max_tokens_for_clear(3_000)
        .clear_tool_inputs(true)
        .on_offload_error(on_error)
        .build()?)
}

/// The calls of a conversation, step by step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Script {
    pub(crate) originals: Originals,
    /// Number of the first step's result.
    pub(crate) first: u64,
    /// The counterpart of `first` for every second step. Other conversations may share the rest.
    pub(crate) first_of_its_own: u64,
    pub(crate) steps: u64,
    /// Number of steps after which call ids repeat, as they do with several providers.
    pub(crate) ids: u64,
}

impl Script {
    pub(crate) fn new(originals: Originals, first: u64, steps: u64) -> Self {
        Self {
            originals,
            first,
            first_of_its_own: first,
            steps,
            ids: 40,
        }
    }

    pub(crate) fn number(&self, step: u64) -> u64 {
        step + if step.is_multiple_of(2) {
            self.first
        } else {
            self.first_of_its_own
        }
    }

    fn call(&self, step: u64) -> ToolCall {
        ToolCall::new(
            format!("call_{}", step % self.ids),
            "build",
            self.originals.arguments(self.number(step)),
        )
    }
}

/// The original content of a location that a report names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Original {
    Result(u64),
    Patch(u64),
}

impl Original {
    fn text(self, originals: Originals) -> String {
        match self {
            Self::Result(number) => originals.result(number),
            Self::Patch(number) => originals.patch(number),
        }
    }
}

/// A loop's state: two messages for each step.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) script: Script,
    pub(crate) messages: Vec<Value>,
    named: BTreeMap<Location, Original>,
    /// Number of decisions that report a failure.
    pub(crate) failures: u64,
    /// Number of times the loop gave up waiting.
    pub(crate) given_up: u64,
    pub(crate) tally: Tally,
}

/// The outcome of one call of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// The call returned, and this many of its decisions report a failure.
    Returned { failures: u64 },
    /// The call returned an error.
    Failed,
    /// The loop gave up waiting.
    GivenUp,
}

impl Conversation {
    /// A conversation that continues after `messages`.
    pub(crate) fn new(script: Script, messages: Vec<Value>) -> Self {
        let (named, tally) = (BTreeMap::new(), Tally::default());
        Self {
            script,
            messages,
            named,
            failures: 0,
            given_up: 0,
            tally,
        }
    }

    pub(crate) fn step(&self) -> u64 {
        self.messages.len() as u64 / 2
    }

    pub(crate) fn is_over(&self) -> bool {
        self.step() >= self.script.steps
    }

    /// Runs one round, and the pass before the next model call. The truncation is tried until it
    /// returns; the pass runs once. Each attempt is passed to `see`. The first attempt may take
    /// `patience`, and each later one `patience` more.
    pub(crate) async fn go_on(
        &mut self,
        reduction: &ToolReduction,
        patience: Duration,
        mut see: impl FnMut(&mut Tally, Call),
    ) -> Result<()> {
        let step = self.step();
        let call = self.script.call(step);
        for attempt in 0.. {
            if attempt == ATTEMPTS {
                return Err("the store fails for ever".into());
            }
            // A slow machine must not look like a store that hangs.
            let shown =
                tokio::time::timeout(patience * (1 + attempt), self.truncate(reduction, &call))
                    .await;
            let came = match shown {
                Ok(Ok((parts, report))) => {
                    let failures = self.note(&report, Some(step));
                    self.messages.push(asks(&call));
                    self.messages
                        .push(OpenAiChat.tool_message(&call, parts, false));
                    Call::Returned { failures }
                }
                Ok(Err(_)) => Call::Failed,
                Err(_) => Call::GivenUp,
            };
            self.saw(came, &mut see);
            if matches!(came, Call::Returned { .. }) {
                break;
            }
        }
        self.tally.results += 1;
        self.clear(reduction, patience, see).await;
        Ok(())
    }

    /// Runs the pass once; if it fails, the next step runs another.
    async fn clear(
        &mut self,
        reduction: &ToolReduction,
        patience: Duration,
        mut see: impl FnMut(&mut Tally, Call),
    ) {
        let mut messages = self.messages.clone();
        let cleared =
            tokio::time::timeout(patience, reduction.clear(OpenAiChat, &mut messages)).await;
        let came = match cleared {
            Ok(Ok(report)) => {
                self.messages.clone_from(&messages);
                Call::Returned {
                    failures: self.note(&report, None),
                }
            }
            Ok(Err(_)) => Call::Failed,
            Err(_) => Call::GivenUp,
        };
        if messages != self.messages {
            self.tally.hidden += 1;
            self.tally
                .problem("a pass that failed has changed the messages");
        }
        self.saw(came, &mut see);
    }

    fn saw(&mut self, call: Call, see: &mut impl FnMut(&mut Tally, Call)) {
        self.given_up += u64::from(call == Call::GivenUp);
        see(&mut self.tally, call);
    }

    async fn truncate(
        &self,
        reduction: &ToolReduction,
        call: &ToolCall,
    ) -> Result<(Vec<Part>, Report)> {
        let number = self.script.number(self.step());
        let result = Bytes::from(self.script.originals.result(number));
        let output = if Originals::comes(number) == Comes::Whole {
            ToolOutput::from(String::from_utf8(result.into())?)
        } else {
            let chunks = (0..result.len()).step_by(CHUNK);
            let chunks = chunks.map(|at| result.slice(at..result.len().min(at + CHUNK)));
            let chunks: Vec<_> = chunks.map(|chunk| Ok(Chunk::Bytes(chunk))).collect();
            ToolOutput::stream(stream::iter(chunks))
        };
        let truncated = reduction.truncate(call, output).await?;
        Ok((truncated.parts, truncated.report))
    }

    /// Records a report. Returns the number of its decisions that report a failure. `step` is the
    /// step of a truncation.
    fn note(&mut self, report: &Report, step: Option<u64>) -> u64 {
        let mut failures = 0;
        for decision in &report.decisions {
            let Some(step) = step.or(decision.message.map(|message| message as u64 / 2)) else {
                continue;
            };
            let number = self.script.number(step);
            let original = match decision.subject {
                Subject::Arguments => Original::Patch(number),
                _ => Original::Result(number),
            };
            if decision.outcome.is_change() {
                self.named.extend(
                    decision
                        .locations
                        .iter()
                        .map(|location| (location.clone(), original)),
                );
            }
            failures += u64::from(decision.error.is_some());
            let has_failed = matches!(
                decision.outcome,
                Outcome::Lost | Outcome::Kept(Reason::StoreFailed | Reason::Unverified)
            );
            let is_over = report.phase == offcut::report::Phase::Truncate
                && decision.bytes.before > LIMIT as u64
                && decision.outcome != Outcome::Truncated;
            if (has_failed || is_over) && decision.error.is_none() {
                self.tally.hidden += 1;
                self.tally.problem(format!(
                    "{:?} without a reason, result {number}",
                    decision.outcome
                ));
            }
        }
        self.failures += failures;
        failures
    }
}

fn asks(call: &ToolCall) -> Value {
    let ToolCall {
        id,
        name,
        arguments,
        ..
    } = call;
    let call =
        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    json!({"role": "assistant", "content": null, "tool_calls": [call]})
}
