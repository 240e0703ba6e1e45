//! A task from its prompt to its answer.

use std::rc::Rc;

use offcut::backend::{self, Fs};
use offcut::format::OpenAiChat;
use offcut::{Settings, ToolCall, ToolReduction};
use serde_json::{Value, json};

use crate::Result;
use crate::scripted::bill::{Bill, BillMeter};
use crate::scripted::peer::Editor;
use crate::scripted::step::Step;
use crate::scripted::task::Task;
use crate::scripted::tools;
use crate::scripted::view::RequestView;

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
    /// Another context editor. The agent gives it all that it has seen, and never shortens it.
    Edited(Rc<dyn Editor>),
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
pub fn run(task: &Task, size: usize, policy: &Policy) -> Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let project = folder.path().join("project");
    std::fs::create_dir(&project)?;
    let set = task.lay_out(&project, size)?;
    let reduction = match policy {
        Policy::Nothing | Policy::Edited(_) => None,
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
    let editor = match policy {
        Policy::Edited(editor) => Some(editor),
        Policy::Nothing | Policy::Offcut(_) => None,
    };
    if let Some(editor) = editor {
        tools.extend(editor.begin()?);
    }
    let mut messages = vec![json!({"role": "user", "content": set.prompt})];
    let mut meter = BillMeter::new()?;
    let mut reads = 0;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let ended = loop {
        if let Some(reduction) = &reduction {
            runtime.block_on(reduction.clear(OpenAiChat, &mut messages))?;
        }
        let edited = editor.map(|editor| editor.request(&tools, &messages));
        let edited = edited.transpose()?;
        let request = match &edited {
            None => &messages,
            Some(Some(edited)) => edited,
            Some(None) => break Err("the provider refused it".to_owned()),
        };
        if !meter.request(&tools, request, CONTEXT) {
            break Err(format!("over {CONTEXT} tokens"));
        }
        if meter.bill.calls > MAX_CALLS {
            break Err("in circles".to_owned());
        }
        let (says, tool, arguments) = match task.step(&RequestView::new(request)) {
            Step::Answer(answer) => break set.checked(&project, &answer),
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
        let (read, arguments) = match (editor, &reduction) {
            (Some(editor), _) => editor.answer(tool, arguments)?,
            (None, Some(reduction)) => {
                let page = runtime.block_on(reduction.answer(&call))?;
                (page.map(|page| page.text()), arguments)
            }
            (None, None) => (None, arguments),
        };
        reads += u64::from(read.is_some());
        let run = || tools::call(&project, tool, &arguments);
        let shown = match (read, &reduction) {
            (Some(read), _) => read,
            (None, None) => run(),
            (None, Some(reduction)) => runtime.block_on(reduction.truncate(&call, run()))?.text(),
        };
        messages.push(json!({"role": "tool", "tool_call_id": call.id, "content": shown}));
    };
    Ok(Outcome {
        solved: ended.is_ok(),
        why: ended.err(),
        bill: meter.bill,
        reads,
    })
}
