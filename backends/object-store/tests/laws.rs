//! The laws of the library, over a store behind the S3 protocol that fails.

#![allow(clippy::unwrap_used, reason = "what helps tests is part of them")]

#[path = "server/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod server;

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use hyper::Method;
use offcut::agent::Tool;
use offcut::backend::{Backend, Location};
use offcut::format::{Message, Plain};
use offcut::hint::Hint;
use offcut::{Chunk, OnOffloadError, Part, TokenCounter, ToolCall, ToolOutput, ToolPolicy, ToolReduction};
use offcut_object_store::Objects;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use server::{Fault, Server};

/// What happens in a conversation.
#[derive(Clone, Debug)]
enum Step {
    /// A tool returns so many lines.
    Result { id: &'static str, tool: &'static str, lines: usize, is_stream: bool },
    /// Old results are cleared.
    Clear,
    /// Another process goes on.
    Restart,
    /// A request after this one meets a fault.
    Fault { nth: usize, fault: Fault },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Ids repeat, are empty, and are hostile.
    let ids = select(vec!["call_0", "call_1", "call_2", "", "../../etc/passwd", "a b"]);
    let result = (ids, select(vec!["grep", "read"]), 60_usize..400, any::<bool>())
        .prop_map(|(id, tool, lines, is_stream)| Step::Result { id, tool, lines, is_stream });
    let fault = (1_usize..4, select(Fault::ALL.to_vec())).prop_map(|(nth, fault)| Step::Fault { nth, fault });
    let step = prop_oneof![6 => result, 3 => Just(Step::Clear), 1 => Just(Step::Restart), 6 => fault];
    vec(step, 3..14)
}

/// What the laws were about.
#[derive(Default)]
struct Seen {
    hints: AtomicU32,
    faults: AtomicU32,
}

/// A conversation, and what its results really were.
struct Run {
    server: Server,
    mode: OnOffloadError,
    messages: Vec<Message>,
    originals: BTreeMap<usize, String>,
}

/// An error that nothing explains, with what caused it.
fn failed(error: &offcut::Error) -> TestCaseError {
    let cause = error.source().map(|cause| format!("{cause}: {:?}", cause.source()));
    TestCaseError::fail(format!("{error}: {cause:?}"))
}

macro_rules! require {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err(TestCaseError::fail(format!($($why)+)));
        }
    };
}

impl Run {
    /// A process: it knows nothing but the store.
    fn reduction(&self) -> ToolReduction {
        let other: Arc<dyn Backend> = Arc::new(Objects::open(&self.server.url("greps", "&timeout=4s")).unwrap());
        ToolReduction::builder()
            .backend(self.server.open_impatient("agents"))
            .tool("grep", ToolPolicy::new().backend(other))
            .token_counter(TokenCounter::Estimate)
            .max_length_for_trunc(4_000)
            .preview_length(1_000)
            .max_tokens_for_clear(300)
            .on_offload_error(self.mode)
            .build()
            .unwrap()
    }

    async fn result(
        &mut self,
        reduction: &ToolReduction,
        call: ToolCall,
        text: String,
        is_stream: bool,
    ) -> Result<(), TestCaseError> {
        let output = || match is_stream {
            false => ToolOutput::from(text.clone()),
            true => {
                let chunks = text.as_bytes().chunks(1_001).map(|chunk| Ok(Chunk::Bytes(Bytes::copy_from_slice(chunk))));
                ToolOutput::stream(futures_util::stream::iter(chunks.collect::<Vec<_>>()))
            }
        };
        let shown = match reduction.truncate(&call, output()).await {
            Ok(shown) => shown,
            Err(error) => {
                require!(self.mode == OnOffloadError::Fail, "it failed unasked: {error}");
                self.server.heal();
                reduction.truncate(&call, output()).await.map_err(|error| failed(&error))?
            }
        };
        self.messages.push(Message::calls(vec![call.clone()]));
        self.originals.insert(self.messages.len(), text);
        self.messages.push(Message::tool(&call, shown.parts, false));
        Ok(())
    }

    async fn clear(&mut self, reduction: &ToolReduction) -> Result<(), TestCaseError> {
        let before = self.messages.clone();
        if reduction.clear(&Plain, &mut self.messages).await.is_err() {
            require!(self.mode == OnOffloadError::Fail, "a pass failed unasked");
            require!(self.messages == before, "l2: a pass that failed changed a message");
        }
        // L4: once nothing fails, a pass is complete, and the next one does nothing.
        self.server.heal();
        reduction.clear(&Plain, &mut self.messages).await.map_err(|error| failed(&error))?;
        let (messages, puts) = (self.messages.clone(), self.server.requests(&Method::PUT));
        reduction.clear(&Plain, &mut self.messages).await.map_err(|error| failed(&error))?;
        require!(self.messages == messages, "l4: a second pass changed a message");
        require!(self.server.requests(&Method::PUT) == puts, "l4: a second pass stored something");
        Ok(())
    }

    /// L1: each result is shown whole, or stands where its hint says, for this process and for others.
    async fn check(&self, reduction: &ToolReduction) -> Result<u32, TestCaseError> {
        self.server.heal();
        let mut hints = 0;
        require!(self.server.buckets().overwrites().is_empty(), "l1: stored content was overwritten");
        for (at, original) in &self.originals {
            let Message::Tool { content, .. } = &self.messages[*at] else { continue };
            let [Part::Text(shown)] = &content[..] else { return Err(TestCaseError::fail("l5: not one text")) };
            if shown == original {
                continue;
            }
            let location = Hint::parse(shown).and_then(|hint| hint.location);
            let Some(location) = location else { return Err(TestCaseError::fail(format!("l1: lost: {shown:.100}"))) };
            let read = read(reduction, &location).await;
            require!(read.as_deref() == Some(original.as_bytes()), "l1: {location} is not what the tool returned");
            let page = ToolCall::new("r", "read_file", format!("{{\"path\":\"{location}\"}}"));
            require!(reduction.read_file_tool().call(&page).await.is_ok(), "r1: {location} can't be paged");
            hints += 1;
        }
        Ok(hints)
    }
}

async fn read(reduction: &ToolReduction, location: &Location) -> Option<Bytes> {
    reduction.read_original(location).await?.ok()
}

async fn drive(steps: Vec<Step>, fails: bool, seen: &Seen) -> Result<(), TestCaseError> {
    let mode = if fails { OnOffloadError::Fail } else { OnOffloadError::KeepOriginal };
    let server = Server::start().await;
    let mut run = Run { server, mode, messages: vec![Message::user("go")], originals: BTreeMap::new() };
    let mut reduction = run.reduction();
    let mut has_other = false;
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            Step::Result { id, tool, lines, is_stream } => {
                let text = (0..lines).map(|line| format!("{number}/{line}: a line of {tool}, 結果\n")).collect();
                run.result(&reduction, ToolCall::new(id, tool, "{}"), text, is_stream).await?;
            }
            Step::Clear => run.clear(&reduction).await?,
            Step::Restart => reduction = run.reduction(),
            // Somebody else who holds both names of a result holds them for ever, and asked to fail, it does.
            Step::Fault { fault: Fault::StoreOther, .. } if fails && std::mem::replace(&mut has_other, true) => {
                continue;
            }
            Step::Fault { nth, fault } => {
                run.server.fault_on_any(nth, fault);
                continue;
            }
        }
        seen.faults.fetch_add(run.server.take_met() as u32, Ordering::Relaxed);
        seen.hints.fetch_add(run.check(&reduction).await?, Ordering::Relaxed);
    }
    run.clear(&reduction).await?;
    run.check(&run.reduction()).await.map(drop)
}

/// `OFFCUT_CASES` sets how many conversations.
#[test]
fn l1_l2_l4_hold_over_a_store_that_fails() {
    let cases = std::env::var("OFFCUT_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(32);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let seen = Seen::default();
    let held = TestRunner::new(config)
        .run(&(steps(), any::<bool>()), |(steps, fails)| runtime.block_on(drive(steps, fails, &seen)));
    if let Err(error) = held {
        panic!("{error}");
    }
    // Laws about nothing hold always.
    let (hints, faults) = (seen.hints.into_inner(), seen.faults.into_inner());
    assert!(hints > cases && faults > cases / 2, "{hints} hints were followed and {faults} faults were met");
}

#[tokio::test]
async fn l1_where_others_hold_both_names_the_result_stays() {
    let result = |id| Step::Result { id, tool: "read", lines: 300, is_stream: false };
    let other = |nth| Step::Fault { nth, fault: Fault::StoreOther };
    // Put and taken, compared, put under the second name and taken.
    let steps = vec![result("call_1"), other(1), other(3), result("call_0")];
    drive(steps, false, &Seen::default()).await.unwrap();
}
