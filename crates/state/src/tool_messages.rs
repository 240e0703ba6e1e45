//! Reducers that pair results with their calls: one removes finished tool sequences, one bounds a
//! list without splitting pairs.

use std::num::NonZeroUsize;

use offcut::format::{Format, Piece, Role, WireFormat};
use offcut::rounds::pair_results;
use serde_json::Value;

use crate::json_messages::without_removals;
use crate::list::{ItemList as _, ListEdit, drop_at};
use crate::reducer::{Cause, Change, Reducer, Side};

/// Removes the finished tool sequences of `messages`: Agentflow's `remove_tool_messages`. Removed
/// messages are gone.
///
/// A sequence is one or more consecutive rounds, then an assistant message without calls, which
/// stays. A round is a run of assistant messages with calls, followed directly by at least one
/// result, all of them answering these calls, by id. Anything in between makes the sequence
/// unfinished, and all of it stays. Each sequence is considered separately.
///
/// ```
/// use offcut::format::OpenAiChat;
/// use offcut_state::remove_tool_messages;
/// use serde_json::json;
///
/// let call = json!({"id": "a", "type": "function", "function": {"name": "grep", "arguments": "{}"}});
/// let user = json!({"role": "user", "content": "Where?"});
/// let answer = json!({"role": "assistant", "content": "There."});
/// let mut messages = vec![
///     user.clone(),
///     json!({"role": "assistant", "content": null, "tool_calls": [call]}),
///     json!({"role": "tool", "tool_call_id": "a", "content": "src/pool.rs:7"}),
///     answer.clone(),
/// ];
/// assert_eq!(remove_tool_messages(&OpenAiChat, &mut messages), 2);
/// assert_eq!(messages, [user, answer]);
/// ```
///
/// Returns the number of messages removed.
pub fn remove_tool_messages<F: Format>(format: &F, messages: &mut Vec<F::Message>) -> usize {
    let gone = finished(format, messages, &[]);
    let count = gone.len();
    drop_at(messages, gone);
    count
}

/// The function [`remove_tool_messages`] as a reducer: appends the update, then removes the
/// finished tool sequences of the whole list. An empty update changes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoveToolMessages<F = WireFormat> {
    format: F,
}

/// A bound on a list of messages, after which a provider still accepts them. It is ours: none of the
/// systems has it.
///
/// Appends, then keeps the leading instructions, the newest messages, and at most `max_len` in all.
/// The newest messages begin with a user's message, or with a round of the request that a user's
/// message before them makes, which then stays in front of them. No result is left without its
/// call. So fewer than `max_len` may be left, and more only if the instructions and the newest
/// round alone are longer. An empty update changes nothing.
///
/// Dropped messages are gone.
#[derive(Clone, Copy, Debug)]
pub struct BoundedMessages<F = WireFormat> {
    format: F,
    max_len: NonZeroUsize,
}

impl<F: Format> RemoveToolMessages<F> {
    /// Creates the reducer for messages of `format`.
    pub fn new(format: F) -> Self {
        Self { format }
    }

    fn edit(&self, existing: &[F::Message], update: Vec<F::Message>) -> ListEdit<F::Message> {
        if update.is_empty() {
            return ListEdit::append(update);
        }
        let gone = finished(&self.format, existing, &update);
        ListEdit::append_without(gone, existing.len(), update)
    }
}

impl<F: Format> BoundedMessages<F> {
    /// Keeps at most `max_len` messages of `format`.
    pub fn new(format: F, max_len: NonZeroUsize) -> Self {
        Self { format, max_len }
    }

    fn edit(&self, existing: &[F::Message], update: Vec<F::Message>) -> ListEdit<F::Message> {
        if update.is_empty() || existing.len() + update.len() <= self.max_len.get() {
            return ListEdit::append(update);
        }
        let window = self.window(existing, &update);
        let all = 0..existing.len() + update.len();
        let gone = all.filter(|&at| !window.has(at)).collect();
        ListEdit::append_without(gone, existing.len(), update)
    }

    /// The longest window within the bound or, if there is none, the shortest.
    fn window(&self, existing: &[F::Message], update: &[F::Message]) -> Window {
        let messages = || existing.iter().chain(update);
        let authors: Vec<_> = messages()
            .map(|message| author(&self.format, message))
            .collect();
        // Number of pairs that a beginning at each message would split.
        let mut parted = vec![0_i64; authors.len() + 1];
        for result in pair_results(&self.format, messages()) {
            if let Some((message, _)) = result.call {
                parted[message + 1] += 1;
                parted[result.message + 1] -= 1;
            }
        }
        let instructions = authors
            .iter()
            .take_while(|author| **author == Some(Role::System))
            .count();
        let has_user = authors.contains(&Some(Role::User));
        let mut window = Window {
            instructions,
            request: None,
            from: instructions,
        };
        let (mut sum, mut request, mut before) = (0, None, None);
        for (at, author) in authors.iter().enumerate() {
            sum += parted[at];
            let begins = match author {
                _ if at < instructions || sum > 0 => false,
                Some(Role::User) => true,
                Some(Role::Tool) => false,
                // A turn of the assistant begins after a user's message or a result.
                _ if request.is_some() => matches!(before, Some(Role::User | Role::Tool)),
                _ => !has_user,
            };
            if *author == Some(Role::User) {
                request = Some(at);
            }
            if begins {
                window.from = at;
                window.request = request.filter(|request| *request != at);
                let len = authors.len() - at + instructions;
                if len + usize::from(window.request.is_some()) <= self.max_len.get() {
                    break;
                }
            }
            before = *author;
        }
        window
    }
}

/// The messages that a bound leaves.
struct Window {
    /// Number of leading instructions.
    instructions: usize,
    /// The user's message before the newest messages, unless they begin with one.
    request: Option<usize>,
    /// The first of the newest messages.
    from: usize,
}

impl Window {
    fn has(&self, at: usize) -> bool {
        at < self.instructions || self.request == Some(at) || at >= self.from
    }
}

/// The author of a message; the tool if it has results, beside whatever else.
fn author<F: Format>(format: &F, message: &F::Message) -> Option<Role> {
    let mut author = None;
    format.visit(message, &mut |piece| match piece {
        Piece::Result(_) => author = Some(Role::Tool),
        Piece::Role(role) => author = author.or(Some(role)),
        _ => {}
    });
    author
}

/// The role of a message in a tool sequence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Calls,
    Results,
    Answer,
    Other,
}

fn part_of<F: Format>(format: &F, message: &F::Message) -> Part {
    let (mut calls, mut results, mut assistant, mut other) = (false, false, false, false);
    let mut in_result = false;
    format.visit(message, &mut |piece| match piece {
        Piece::Role(role) => {
            in_result = false;
            assistant |= role == Role::Assistant;
            other |= role == Role::System;
        }
        Piece::Call(_) => calls = true,
        Piece::Result(_) => (results, in_result) = (true, true),
        // Content from the user next to results must not be removed with them.
        Piece::Content(_) => other |= !assistant && !in_result,
        _ => other = true,
    });
    match (calls, results, assistant, other) {
        (true, false, _, false) => Part::Calls,
        (false, true, false, false) => Part::Results,
        (false, false, true, false) => Part::Answer,
        _ => Part::Other,
    }
}

/// Returns the indexes of all messages of finished tool sequences, ascending.
fn finished<F: Format>(format: &F, existing: &[F::Message], update: &[F::Message]) -> Vec<usize> {
    let messages = || existing.iter().chain(update);
    let mut results = pair_results(format, messages()).into_iter().peekable();
    let mut gone = Vec::new();
    let mut sequence: Vec<usize> = Vec::new();
    // The start of the current round's calls, and the part that came last.
    let (mut round, mut last) = (0, Part::Other);
    for (at, message) in messages().enumerate() {
        let mut answers_round = true;
        while let Some(result) = results.next_if(|result| result.message == at) {
            answers_round &= result.call.is_some_and(|(message, _)| message >= round);
        }
        let part = part_of(format, message);
        let goes_on = match part {
            Part::Calls => {
                if last != Part::Calls {
                    round = at;
                }
                true
            }
            Part::Results => answers_round && matches!(last, Part::Calls | Part::Results),
            Part::Answer => {
                if last == Part::Results {
                    gone.append(&mut sequence);
                }
                false
            }
            Part::Other => false,
        };
        if goes_on {
            sequence.push(at);
            last = part;
        } else {
            sequence.clear();
            last = Part::Other;
        }
    }
    gone
}

/// Fails for a message with calls or results that only another format reads: pairs would be torn.
fn check<F: Format<Message = Value>>(
    format: &F,
    messages: &[Value],
    side: Side,
) -> Result<(), Cause> {
    for (index, message) in messages.iter().enumerate() {
        if has_tools(format, message) {
            continue;
        }
        let mut others = WireFormat::ALL.into_iter();
        let found = match others.find(|other| has_tools(other, message)) {
            Some(WireFormat::OpenAiChat) => "a message of chat completions",
            Some(WireFormat::Responses) => "an item of OpenAI Responses",
            Some(WireFormat::Anthropic) => "a message of Anthropic",
            Some(WireFormat::Gemini) => "a content of Gemini",
            Some(_) => "a message of another format",
            None if is_of_langchain(message) => "a message of LangChain",
            None => continue,
        };
        return Err(Cause::WrongItem {
            side,
            index,
            found,
            wanted: "messages of the reducer's format, in files that of chat completions",
        });
    }
    Ok(())
}

/// Returns true for a call or a result of LangChain's, which have a type in place of a role.
fn is_of_langchain(message: &Value) -> bool {
    let has = |name| message.get(name).is_some();
    !has("role") && has("type") && (has("tool_calls") || has("tool_call_id"))
}

fn has_tools<F: Format>(format: &F, message: &F::Message) -> bool {
    let mut has = false;
    format.visit(message, &mut |piece| {
        has |= matches!(piece, Piece::Call(_) | Piece::Result(_));
    });
    has
}

/// Implements both reducers, over typed messages and over JSON.
macro_rules! reduce_messages {
    ($reducer:ident, $name:literal) => {
        impl<F: Format> Reducer<Vec<F::Message>> for $reducer<F>
        where
            F::Message: 'static,
        {
            type Update = Vec<F::Message>;

            fn name(&self) -> &str {
                $name
            }

            fn plan(
                &self,
                existing: &Vec<F::Message>,
                update: Self::Update,
            ) -> Result<Change<Vec<F::Message>>, Cause> {
                Ok(self.edit(existing, update).into_change())
            }
        }

        impl<F: Format<Message = Value>> Reducer<Value> for $reducer<F> {
            type Update = Value;

            fn name(&self) -> &str {
                $name
            }

            fn plan(&self, existing: &Value, update: Value) -> Result<Change<Value>, Cause> {
                let (existing, update) = (existing.items()?, without_removals(update)?);
                check(&self.format, existing, Side::Existing)?;
                check(&self.format, &update, Side::Update)?;
                let edit = self.edit(existing, update);
                Ok(edit.into_change())
            }
        }
    };
}

reduce_messages!(RemoveToolMessages, "remove_tool_messages");
reduce_messages!(BoundedMessages, "bounded_messages");
