//! Messages with a rewriter: a callback that replaces whole rounds once they are old.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use super::conversation::{Conversation, Rewrite, through_format};
use super::{Format, Piece};
use crate::content::Part;
use crate::guard::{HandlerError, guard};

/// A list of messages whose old rounds go through a rewriter before the rest of them is cleared.
///
/// The rewriter gets the messages of one round: an assistant turn with calls, and the results of
/// those calls. It returns their replacement, or `None` to leave the round as it is. It is called
/// for rounds with a result that the pass is going to clear. It never gets a user's message. It is
/// not called for a round that shares a message with a user or with another round, or that has a
/// message which must stay as it is ([`Format::is_rewritable`]). The round is stored at
/// `<root>/clear/<id>-round` before anything is changed. A rewriter that fails or panics leaves its
/// round as it is, and the report says so. It must be pure, since a pass may fail later and be
/// repeated.
///
/// This is for loops that keep the changed messages. In a loop that passes the originals every
/// turn, a round is only rewritten while a pass is triggered.
///
/// ```
/// use offcut::backend::Memory;
/// use offcut::format::{Message, Plain, Rewriting};
/// use offcut::{Turn, TokenCounter, ToolCall, ToolReduction};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut messages = Vec::new();
/// # for id in ["a", "b"] {
/// #     let call = ToolCall::new(id, "grep", "{}");
/// #     messages.push(Message::calls(vec![call.clone()]));
/// #     messages.push(Message::tool(&call, vec!["a match\n".repeat(1_000).into()], false));
/// # }
/// # messages.push(Message::assistant("done"));
/// let reduction = ToolReduction::recommended(Memory::named("demo")?).max_tokens_for_clear(2_000).build()?;
/// let note = |round: &[Message]| Ok(Some(vec![Message::assistant(format!("[{} messages of searching]", round.len()))]));
/// let mut conversation = Rewriting::new(&Plain, &mut messages, note);
/// let report = reduction.clear_turn(&mut Turn::new(&mut conversation)).await?;
/// assert_eq!(report.decisions[0].locations[0].as_str(), "memory://demo/clear/a-round");
/// assert_eq!(messages[0], Message::assistant("[2 messages of searching]"));
/// # Ok(()) }
/// ```
pub struct Rewriting<'a, F: Format, R> {
    format: &'a F,
    messages: &'a mut Vec<F::Message>,
    rewriter: R,
}

impl<'a, F, R> Rewriting<'a, F, R>
where
    F: Format,
    R: Fn(&[F::Message]) -> Result<Option<Vec<F::Message>>, HandlerError> + Send + Sync,
{
    /// Presents `messages` through `format`, with a rewriter.
    pub fn new(format: &'a F, messages: &'a mut Vec<F::Message>, rewriter: R) -> Self {
        Self {
            format,
            messages,
            rewriter,
        }
    }
}

impl<F: Format, R> fmt::Debug for Rewriting<'_, F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rewriting")
            .field("messages", &self.messages.len())
            .finish_non_exhaustive()
    }
}

struct Copy<'c, F: Format, R> {
    format: &'c F,
    rewriter: &'c R,
    original: &'c mut Vec<F::Message>,
    /// Replacements of rounds by the index of the round's first message, with the indices of all
    /// its messages.
    rounds: BTreeMap<usize, (Vec<usize>, Owned<'c, F>)>,
    copy: Option<Owned<'c, F>>,
}

struct Owned<'c, F: Format> {
    format: &'c F,
    messages: Vec<F::Message>,
}

impl<F, R> Rewrite for Copy<'_, F, R>
where
    F: Format,
    R: Fn(&[F::Message]) -> Result<Option<Vec<F::Message>>, HandlerError> + Send + Sync,
{
    fn round(&mut self, messages: &[usize]) -> Result<Option<&dyn Conversation>, HandlerError> {
        let Some(first) = messages.first() else {
            return Ok(None);
        };
        let round = || messages.iter().filter_map(|at| self.original.get(*at));
        if !round().all(|message| self.format.is_rewritable(message)) {
            return Ok(None);
        }
        let round: Vec<_> = round().cloned().collect();
        let rewritten = guard("the message rewriter", || (self.rewriter)(&round))?;
        let format = self.format;
        let rewritten = rewritten.map(|rewritten| {
            (
                messages.to_vec(),
                Owned {
                    format,
                    messages: rewritten,
                },
            )
        });
        self.rounds
            .extend(rewritten.map(|rewritten| (*first, rewritten)));
        Ok(self
            .rounds
            .get(first)
            .map(|(_, rewritten)| rewritten as &dyn Conversation))
    }

    fn leave(&mut self, first: usize) {
        self.rounds.remove(&first);
    }

    fn copy(&mut self) -> &mut dyn Conversation {
        let Self {
            format,
            original,
            rounds,
            copy,
            ..
        } = self;
        copy.get_or_insert_with(|| {
            let gone: HashSet<usize> = rounds
                .values()
                .flat_map(|(gone, _)| gone)
                .copied()
                .collect();
            let mut messages = Vec::with_capacity(original.len());
            for (at, message) in original.iter().enumerate() {
                if let Some((_, rewritten)) = rounds.remove(&at) {
                    messages.extend(rewritten.messages);
                }
                if !gone.contains(&at) {
                    messages.push(message.clone());
                }
            }
            Owned { format, messages }
        })
    }

    fn finish(self: Box<Self>) {
        if let Some(copy) = self.copy {
            *self.original = copy.messages;
        }
    }
}

impl<F, R> Conversation for Rewriting<'_, F, R>
where
    F: Format,
    R: Fn(&[F::Message]) -> Result<Option<Vec<F::Message>>, HandlerError> + Send + Sync,
{
    through_format!();

    fn rewrite(&mut self) -> Option<Box<dyn Rewrite + '_>> {
        let Self {
            format,
            messages,
            rewriter,
        } = self;
        let (rounds, copy) = (BTreeMap::new(), None);
        Some(Box::new(Copy {
            format: *format,
            rewriter,
            original: messages,
            rounds,
            copy,
        }))
    }
}

impl<F: Format> Conversation for Owned<'_, F> {
    through_format!();
}
