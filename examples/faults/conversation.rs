//! A conversation as an agent loop has it, and the proof that nothing in it is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use offcut::agent::Tool;
use offcut::backend::{Backend, ErrorKind, Location};
use offcut::format::OpenAiChat;
use offcut::hint::Hint;
use offcut::report::{Outcome, Reason, Report, Subject};
use offcut::{
    Body, Chunk, OnStoreFailure, Part, TokenCounter, ToolCall, ToolOutput, ToolReduction,
};
use offcut_testkit::replaced_arguments;
use serde_json::{Value, json};

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
pub(crate) fn reduction(store: impl Backend, on_error: OnStoreFailure) -> Result<ToolReduction> {
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
                    self.messages.push(OpenAiChat::tool_message(&call, parts));
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
            tokio::time::timeout(patience, reduction.clear(&OpenAiChat, &mut messages)).await;
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
        if Originals::comes(number) == Comes::Whole {
            let truncated = reduction
                .truncate(call, String::from_utf8(result.into())?)
                .await?;
            return Ok((truncated.parts, truncated.report));
        }
        let chunks: Vec<_> = (0..result.len())
            .step_by(CHUNK)
            .map(|at| result.slice(at..result.len().min(at + CHUNK)))
            .collect();
        let chunks = stream::iter(chunks.into_iter().map(|chunk| Ok(Chunk::Bytes(chunk))));
        let mut shown = reduction.truncate_stream(call, ToolOutput::stream(chunks));
        let mut chunks = Vec::new();
        while let Some(chunk) = shown.next().await {
            chunks.push(Ok(chunk?));
        }
        let report = shown.report().ok_or("a stream without a report")?.clone();
        Ok((
            ToolOutput::stream(stream::iter(chunks))
                .into_parts()
                .await
                .0,
            report,
        ))
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

    /// Reads back everything that the messages or a report name, and compares it. `reduction` may
    /// belong to another process.
    pub(crate) async fn verify(&mut self, reduction: &ToolReduction) {
        for (location, original) in std::mem::take(&mut self.named) {
            let text = original.text(self.script.originals);
            match read(reduction, &location).await {
                Read::Bytes(bytes) if bytes == text.as_bytes() => {}
                Read::Bytes(_) => {
                    self.tally.overwritten += 1;
                    self.tally
                        .problem(format!("{location} is not {original:?} any more"));
                }
                Read::Nothing(why) => {
                    self.tally.dangling += 1;
                    self.tally
                        .problem(format!("{location}, {original:?}: {why}"));
                }
            }
        }
        for step in 0..self.step() {
            let (asks, answers) = (
                &self.messages[2 * step as usize],
                &self.messages[2 * step as usize + 1],
            );
            let number = self.script.number(step);
            let call = OpenAiChat::tool_calls(asks).pop().unwrap_or_default();
            let result = (
                text_of(&answers["content"]),
                self.script.originals.result(number),
            );
            let arguments = self.script.originals.arguments(number);
            let Some(mut texts) = replaced_arguments(&call.arguments, &arguments) else {
                self.tally.lost += 1;
                let shown = call.arguments;
                self.tally
                    .problem(format!("more than texts changed: {shown:.60}"));
                continue;
            };
            texts.push(result);
            for (shown, original) in texts {
                verify_shown(reduction, &shown, &original, &mut self.tally).await;
            }
        }
    }
}

/// Checks that `shown` is the original, or one hint that leads to it.
async fn verify_shown(reduction: &ToolReduction, shown: &str, original: &str, tally: &mut Tally) {
    if shown == original {
        return;
    }
    let Some(location) = Hint::parse(shown).and_then(|hint| hint.location) else {
        tally.lost += 1;
        return tally.problem(format!("neither shown nor stored: {original:.60}"));
    };
    match read(reduction, &location).await {
        Read::Bytes(bytes) if bytes == original.as_bytes() => {}
        Read::Bytes(_) => {
            tally.lost += 1;
            return tally.problem(format!("{location} is not {original:.60}"));
        }
        Read::Nothing(why) => {
            tally.dangling += 1;
            return tally.problem(format!("{location}: {why}"));
        }
    }
    // As the model would read it.
    let call = ToolCall::new("read", "read_file", json!({"path": location}).to_string());
    let page = match reduction.read_file_tool().call(&call).await {
        Ok(ToolOutput {
            body: Body::Parts(parts),
            ..
        }) => parts.into_iter().find_map(|part| match part {
            Part::Text(text) => Hint::parse(&text),
            _ => None,
        }),
        _ => None,
    };
    if !page.is_some_and(|page| !page.preview.is_empty() && original.starts_with(&page.preview)) {
        tally.dangling += 1;
        tally.problem(format!("the reader does not read {location}"));
    }
}

enum Read {
    Bytes(Bytes),
    Nothing(String),
}

/// Reads stored content. Tries again while the store is unavailable, which is not under test.
async fn read(reduction: &ToolReduction, location: &Location) -> Read {
    let mut last = "the session does not know it".to_owned();
    for _ in 0..ATTEMPTS {
        match reduction.read_original(location).await {
            Some(Ok(bytes)) => return Read::Bytes(bytes),
            Some(Err(error)) if error.kind() == ErrorKind::NotFound => {
                return Read::Nothing(error.to_string());
            }
            Some(Err(error)) => last = error.to_string(),
            None => break,
        }
    }
    Read::Nothing(last)
}

/// Compares everything visible in `store` with the originals.
pub(crate) async fn verify_all(
    store: &dyn Backend,
    originals: Originals,
    tally: &mut Tally,
) -> Result<()> {
    let entries: Vec<_> = store.list().try_collect().await?;
    let keys: BTreeSet<_> = entries.into_iter().map(|entry| entry.key).collect();
    for key in keys {
        tally.writes += 1;
        let bytes = store.read(&key, 0..u64::MAX).await?.bytes;
        if !originals.has(&bytes) {
            tally.half_written += 1;
            tally.problem(format!(
                "{key}, {} bytes, is not a whole original",
                bytes.len()
            ));
        }
    }
    Ok(())
}

fn asks(call: &ToolCall) -> Value {
    let ToolCall {
        id,
        name,
        arguments,
    } = call;
    let call =
        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    json!({"role": "assistant", "content": null, "tool_calls": [call]})
}

/// All text of a message's content.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use offcut::backend::Fs;

    use super::*;

    /// Lets `harm` damage a conversation over a store in a directory. Returns the checker's tally.
    async fn harmed(harm: impl FnOnce(&mut Conversation, &str)) -> Tally {
        let (home, originals) = (tempfile::tempdir().unwrap(), Originals { seed: 5 });
        let store = Fs::open(home.path()).unwrap();
        let reduction = reduction(store.clone(), OnStoreFailure::Fail).unwrap();
        let mut conversation = Conversation::new(Script::new(originals, 0, 20), Vec::new());
        while !conversation.is_over() {
            conversation
                .go_on(&reduction, Duration::from_secs(60), |_, _| ())
                .await
                .unwrap();
        }
        let shown = Hint::parse(&text_of(&conversation.messages[9]["content"])).unwrap();
        harm(&mut conversation, shown.location.unwrap().as_str());
        conversation.verify(&reduction).await;
        verify_all(&store, originals, &mut conversation.tally)
            .await
            .unwrap();
        conversation.tally
    }

    #[tokio::test]
    async fn an_unharmed_conversation_holds() {
        let tally = harmed(|_, _| ()).await;
        assert!(tally.holds(), "{tally:?}");
        assert_eq!(tally.results, 20);
        assert!(tally.writes > 25, "results and arguments: {}", tally.writes);
        assert_eq!(Tally::from_json(&tally.to_json()), Some(tally));
    }

    #[tokio::test]
    async fn a_lost_result_is_found() {
        let tally = harmed(|conversation, _| {
            conversation.messages[9]["content"] = json!("result 4 of 5\n");
        })
        .await;
        assert_eq!((tally.lost, tally.holds()), (1, false));
    }

    #[tokio::test]
    async fn a_dangling_location_is_found() {
        let tally = harmed(|_, location| std::fs::remove_file(location).unwrap()).await;
        assert_eq!(
            (tally.dangling, tally.holds()),
            (2, false),
            "counted for the report's location and for the hint's"
        );
    }

    #[tokio::test]
    async fn overwritten_content_is_found() {
        let other = Originals { seed: 5 }.result(7);
        let tally = harmed(|_, location| std::fs::write(location, other).unwrap()).await;
        assert_eq!(
            (tally.overwritten, tally.lost, tally.half_written),
            (1, 1, 0)
        );
    }

    #[tokio::test]
    async fn half_written_content_is_found() {
        let half = |_: &mut Conversation, location: &str| {
            let file = std::fs::OpenOptions::new()
                .write(true)
                .open(location)
                .unwrap();
            file.set_len(file.metadata().unwrap().len() / 2).unwrap();
        };
        assert_eq!(harmed(half).await.half_written, 1);
    }

    #[tokio::test]
    async fn an_unreported_failure_is_found() {
        let (store, originals) = (
            offcut_testkit::Faulty::new(Fs::temporary().unwrap()),
            Originals { seed: 5 },
        );
        store.fault_on_every_write(offcut_testkit::Fault::Fail(ErrorKind::Full));
        let reduction = reduction(store, OnStoreFailure::KeepOriginal).unwrap();
        let mut conversation = Conversation::new(Script::new(originals, 9, 1), Vec::new());
        let call = conversation.script.call(0);
        let (_, mut report) = conversation.truncate(&reduction, &call).await.unwrap();
        assert_eq!(
            (
                conversation.note(&report, Some(0)),
                conversation.tally.hidden
            ),
            (1, 0)
        );
        report.decisions[0].error = None;
        assert_eq!(
            (
                conversation.note(&report, Some(0)),
                conversation.tally.hidden
            ),
            (0, 1)
        );
    }
}
