//! One turn of an agent.

use serde_json::{Value, json};

/// The answer of an agent to the messages that it is sent.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Words that stay in the conversation, and one call.
    Call {
        says: String,
        tool: &'static str,
        arguments: Value,
    },
    /// The end, with the answer.
    Answer(String),
}

/// The outcome of thinking about the next step: that step, or one that has to be made before the thought can go on.
pub(crate) type Thought = Result<Step, Step>;

/// Runs a shell command.
pub(crate) fn bash(command: impl Into<String>) -> Step {
    saying("", "bash", json!({"command": command.into()}))
}

/// Replaces a text that a file must have exactly once.
pub(crate) fn edit(path: &str, old: &str, new: &str) -> Step {
    saying("", "edit", json!({"path": path, "old": old, "new": new}))
}

/// Calls a tool, with words that stay.
pub(crate) fn saying(says: impl Into<String>, tool: &'static str, arguments: Value) -> Step {
    Step::Call {
        says: says.into(),
        tool,
        arguments,
    }
}

impl Step {
    /// The same call, with words that stay.
    pub(crate) fn with(self, words: String) -> Self {
        match self {
            Self::Call {
                tool, arguments, ..
            } => saying(words, tool, arguments),
            answer @ Self::Answer(_) => answer,
        }
    }
}

/// Ends with an answer.
pub(crate) fn answer(text: impl Into<String>) -> Step {
    Step::Answer(text.into())
}

/// Ends without one.
pub(crate) fn lost() -> Step {
    answer("I can't find it.")
}
