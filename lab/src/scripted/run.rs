//! A task from its prompt to its answer.

use offcut::backend::{self, Fs};
use offcut::format::OpenAiChat;
use offcut::{Settings, ToolCall, ToolReduction};
use serde_json::{Value, json};

use crate::scripted::bill::{Bill, BillMeter};
use crate::scripted::peer::Peer;
use crate::scripted::served::ScriptedServer;
use crate::scripted::step::Step;
use crate::scripted::task::Task;
use crate::scripted::tools;
use crate::scripted::view::{READER, RequestView};

/// Tokens of a context window. A request that is longer is refused, which ends the run.
pub const CONTEXT: u64 = 128_000;
/// Maximum number of calls. An agent that makes more goes in circles.
const MAX_CALLS: u64 = 300;

/// The treatment of results.
#[derive(Clone, Debug)]
pub enum Policy {
    /// Every result stays whole.
    Nothing,
    /// Offcut with these settings, over a store in a directory.
    Offcut(Box<Settings>),
    /// `offcut serve`, in front of a provider. The agent sends all it has seen, each time, and never shortens it.
    Served(ScriptedServer),
    /// Another context editor.
    Peer(Peer),
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// True if the answer and the files are right.
    pub solved: bool,
    /// The reason for a failure.
    pub why: Option<String>,
    /// The bill.
    pub bill: Bill,
    /// Calls of the policy's reader.
    pub reads: u64,
}

/// Runs a task of a size under a policy.
///
/// # Errors
///
/// The files, the store or the settings are not usable.
pub fn run(
    task: &Task,
    size: usize,
    policy: &Policy,
) -> Result<Outcome, Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let project = folder.path().join("project");
    std::fs::create_dir(&project)?;
    let set = task.lay_out(&project, size)?;
    let reduction = match policy {
        Policy::Nothing | Policy::Served(_) | Policy::Peer(_) => None,
        Policy::Offcut(settings) => {
            let store = Fs::open(folder.path().join("store"))?;
            let builder =
                ToolReduction::builder().settings(Settings::clone(settings), backend::open);
            Some(builder.backend(store).build()?)
        }
    };
    let mut tools = tools::definitions();
    if let Some(reduction) = &reduction {
        tools.push(reduction.reader(OpenAiChat));
    }
    let peer = match policy {
        Policy::Peer(peer) => Some(peer),
        _ => None,
    };
    let served = match policy {
        Policy::Served(served) => Some(served),
        _ => None,
    };
    if let Some(served) = served {
        tools.push(served.reader()?);
    }
    if let Some(peer) = peer {
        tools.extend(peer.begin()?);
    }
    // The messages as the editor makes them, and the number of those that it has.
    let (mut edited, mut given) = (Vec::new(), 0);
    let mut messages = vec![json!({"role": "user", "content": set.prompt})];
    let mut meter = BillMeter::new()?;
    let mut reads = 0;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let (solved, why) = loop {
        if let Some(reduction) = &reduction {
            runtime.block_on(reduction.clear(OpenAiChat, &mut messages))?;
        }
        if let Some(peer) = peer {
            peer.edit(&messages[given..], &mut edited)?;
            given = messages.len();
        }
        if let Some(served) = served {
            let Some(seen) = served.send(&tools, &messages)? else {
                break (false, Some("the provider refused it".to_owned()));
            };
            edited = seen;
        }
        let is_edited = peer.is_some() || served.is_some();
        let request = if is_edited { &edited } else { &messages };
        if !meter.request(&tools, request, CONTEXT) {
            break (false, Some(format!("over {CONTEXT} tokens")));
        }
        if meter.bill.calls > MAX_CALLS {
            break (false, Some("in circles".to_owned()));
        }
        let (says, tool, arguments) = match task.step(&RequestView::new(request)) {
            Step::Answer(answer) => break task.checked(&project, &set, &answer),
            Step::Call {
                says,
                tool,
                arguments,
            } => (says, tool, arguments),
        };
        let call = ToolCall::new(
            format!("call_{}", meter.bill.calls),
            tool,
            arguments.to_string(),
        );
        let function = json!({"name": call.name, "arguments": call.arguments});
        let content = if says.is_empty() {
            Value::Null
        } else {
            says.into()
        };
        messages.push(json!({"role": "assistant", "content": content, "tool_calls": [{"id": call.id, "type": "function", "function": function}]}));
        let (retrieved, arguments) = match peer {
            Some(peer) => peer.answer(tool, arguments)?,
            None => (None, arguments),
        };
        let shown = match &reduction {
            _ if retrieved.is_some() => {
                reads += 1;
                retrieved.unwrap_or_default()
            }
            None => match served.filter(|_| tool == READER) {
                Some(served) => {
                    reads += 1;
                    served.read(&arguments)?
                }
                None => tools::call(&project, tool, &arguments),
            },
            Some(reduction) => match runtime.block_on(reduction.answer(&call))? {
                Some(page) => {
                    reads += 1;
                    page.text()
                }
                None => {
                    let result = tools::call(&project, tool, &arguments);
                    runtime.block_on(reduction.truncate(&call, result))?.text()
                }
            },
        };
        messages.push(json!({"role": "tool", "tool_call_id": call.id, "content": shown}));
    };
    Ok(Outcome {
        solved,
        why,
        bill: meter.bill,
        reads,
    })
}
