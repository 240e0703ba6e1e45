//! Many live conversations in one process: the memory that an idle one takes, and whether memory
//! grows while they run.
//!
//! ```text
//! cargo bench -p offcut-lab --bench load                                  # 10 000 conversations, 100 000 results, ten minutes more of them
//! cargo bench -p offcut-lab --bench load -- --seconds 60 --conversations 1000
//! ```
//!
//! Each conversation is a session of one reduction over `Fs`. In the soak, conversations end after
//! their last result, their directories are removed, and new ones take their places. The number of
//! live conversations stays the same, so growth means a leak. The last line is JSON; the bench
//! fails if memory grows by more than 5 %.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use lexopt::{Arg, ValueExt};
use offcut::backend::Fs;
use offcut::format::{LoopFormat, OpenAiChat};
use offcut::{ToolCall, ToolReduction};
use offcut_lab::memory_kib;
use peak_alloc::PeakAlloc;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// Number of conversations that run at the same time.
const AT_ONCE: usize = 32;
/// Upper bound on memory in the last quarter of the soak, relative to the first.
const GROWTH: f64 = 1.05;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The size of the measurement.
struct Options {
    conversations: usize,
    /// Number of results for each conversation.
    results: usize,
    soak: Duration,
}

fn main() -> Result<()> {
    let (mut conversations, mut results, mut seconds, mut is_bench) = (None, None, None, false);
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Long("bench") => is_bench = true,
            Arg::Long("conversations") => conversations = Some(arguments.value()?.parse()?),
            Arg::Long("results") => results = Some(arguments.value()?.parse()?),
            Arg::Long("seconds") => seconds = Some(arguments.value()?.parse()?),
            other => return Err(other.unexpected().into()),
        }
    }
    // `cargo test` runs it without arguments, to see that it works.
    let (most, each, soak) = if is_bench {
        (10_000, 10, 600)
    } else {
        (40, 10, 1)
    };
    let options = Options {
        conversations: conversations.unwrap_or(most),
        results: results.unwrap_or(each),
        soak: Duration::from_secs(seconds.unwrap_or(soak)),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(measure(&options))
}

/// A conversation as a loop holds it.
struct Conversation {
    number: usize,
    reduction: ToolReduction,
    messages: Vec<Value>,
}

impl Conversation {
    fn begin(whole: &ToolReduction, number: usize) -> Self {
        Self {
            number,
            reduction: whole.session(&name(number)),
            messages: Vec::new(),
        }
    }

    fn results(&self) -> usize {
        self.messages.len() / 2
    }

    /// Runs one round, and the pass before the next model call.
    async fn go_on(&mut self) -> Result<()> {
        let step = self.results();
        let call = ToolCall::new(
            format!("call_{step}"),
            "grep",
            format!(r#"{{"pattern":"check_{step}"}}"#),
        );
        let shown = self.reduction.truncate(&call, result(step)).await?;
        let ToolCall {
            id,
            name,
            arguments,
            ..
        } = &call;
        let asked = json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
        self.messages
            .push(json!({"role": "assistant", "content": null, "tool_calls": [asked]}));
        self.messages
            .push(OpenAiChat.tool_message(&call, shown.into(), false));
        self.reduction.clear(OpenAiChat, &mut self.messages).await?;
        Ok(())
    }
}

/// The session's id and directory. Its length is fixed because it is in every hint.
fn name(number: usize) -> String {
    format!("chat-{number:010}")
}

/// Of five results, two are over the limit and one is shown as a preview.
fn result(step: usize) -> String {
    let lines = [12, 130, 8, 25, 180][step % 5];
    (0..lines)
        .map(|n| {
            format!(
                "src/module_{}.rs:{n}: let check_{step} = seen({n});\n",
                n % 17
            )
        })
        .collect()
}

/// The memory of this process.
#[derive(Clone, Copy)]
struct Memory {
    allocated: f64,
    resident: f64,
}

impl Memory {
    fn now() -> Result<Self> {
        Ok(Self {
            allocated: ALLOCATED.current_usage() as f64,
            resident: memory_kib("VmRSS")? as f64 * 1024.0,
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            allocated: self.allocated - before.allocated,
            resident: self.resident - before.resident,
        }
    }

    fn most(of: &[Self]) -> Self {
        let most = |field: fn(&Self) -> f64| of.iter().map(field).fold(0.0, f64::max);
        Self {
            allocated: most(|memory| memory.allocated),
            resident: most(|memory| memory.resident),
        }
    }

    fn of_each(self, count: usize) -> Value {
        let of_each = |bytes: f64| (bytes / count as f64).round() as i64;
        json!({"allocated_bytes": of_each(self.allocated), "resident_bytes": of_each(self.resident)})
    }

    fn mib(self) -> Value {
        let mib = |bytes: f64| (bytes / 1024.0 / 102.4).round() / 10.0;
        json!({"allocated_mib": mib(self.allocated), "resident_mib": mib(self.resident)})
    }
}

async fn measure(options: &Options) -> Result<()> {
    let Options {
        conversations: count,
        results,
        soak,
    } = *options;
    let home = tempfile::tempdir()?;
    let whole = ToolReduction::recommended(Fs::open(home.path())?)
        .max_tokens_for_clear(1_000)
        .build()?;
    // Creates the shared parts first: tokenizer tables, threads, the directory's descriptors.
    let mut first = [Conversation::begin(&whole, 9_999_999_999)];
    for _ in 0..results {
        go_on(first.iter_mut()).await?;
    }

    let before = Memory::now()?;
    let mut all: Vec<_> = (0..count).map(|n| Conversation::begin(&whole, n)).collect();
    let begun = Memory::now()?.since(before).of_each(count);
    say(&format!("a session that has just begun: {begun}"))?;

    let start = Instant::now();
    for _ in 0..results {
        go_on(all.iter_mut()).await?;
    }
    let rate = (count * results) as f64 / start.elapsed().as_secs_f64();
    let idle = Memory::now()?.since(before).of_each(count);
    say(&format!(
        "an idle conversation after {results} results: {idle}, {rate:.0} results a second"
    ))?;
    let messages: Vec<Vec<Value>> = all
        .iter_mut()
        .map(|chat| std::mem::take(&mut chat.messages))
        .collect();
    let held = Memory::now()?;
    drop(messages);
    let messages = held.since(Memory::now()?).of_each(count);
    say(&format!(
        "of that, its messages, which are the loop's: {messages}"
    ))?;
    drop(all);

    let soaked = soaked(&whole, home.path(), options).await?;
    let all = json!({
        "conversations": count,
        "results": count * results,
        "results_per_second": rate.round(),
        "begun": begun,
        "idle": idle,
        "messages_of_idle": messages,
        "soak": soaked,
    });
    say(&all.to_string())?;
    let growth = all["soak"]["growth"].as_f64().unwrap_or_default();
    if soak.as_secs() > 30 && growth > GROWTH {
        return Err(format!("memory has grown to {growth} times its size").into());
    }
    Ok(())
}

/// Runs for the requested time. Conversations of all ages exist from the start, so that each round
/// leaves the same number alive.
async fn soaked(whole: &ToolReduction, store: &Path, options: &Options) -> Result<Value> {
    let Options {
        conversations: count,
        results,
        soak,
    } = *options;
    let mut all: Vec<_> = (count..2 * count)
        .map(|n| Conversation::begin(whole, n))
        .collect();
    for age in 1..results {
        go_on(
            all.iter_mut()
                .enumerate()
                .filter(|(n, _)| n % results >= age)
                .map(|(_, chat)| chat),
        )
        .await?;
    }
    let (start, mut seen) = (Instant::now(), Vec::new());
    // The first rounds create what is needed only once, such as thread pools and allocator memory.
    for round in 0.. {
        if round > 10 && start.elapsed() > soak {
            break;
        }
        for chat in all.iter_mut().filter(|chat| chat.results() >= results) {
            std::fs::remove_dir_all(store.join(name(chat.number)))?;
            *chat = Conversation::begin(whole, chat.number + count);
        }
        go_on(all.iter_mut()).await?;
        if round > 2 {
            seen.push(Memory::now()?);
        }
    }
    let quarter = seen.len().div_ceil(4);
    let first = Memory::most(&seen[..quarter]);
    let last = Memory::most(&seen[seen.len() - quarter..]);
    let soaked = json!({
        "seconds": start.elapsed().as_secs(),
        "results": seen.len() * count,
        "first_quarter": first.mib(),
        "last_quarter": last.mib(),
        "growth": (last.allocated / first.allocated * 1_000.0).round() / 1_000.0,
        "growth_resident": (last.resident / first.resident * 1_000.0).round() / 1_000.0,
    });
    say(&format!("the soak: {soaked}"))?;
    Ok(soaked)
}

/// Runs one round of each conversation.
async fn go_on(all: impl Iterator<Item = &mut Conversation>) -> Result<()> {
    stream::iter(all.map(Conversation::go_on))
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await
}

fn say(line: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
