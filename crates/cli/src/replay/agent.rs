//! An agent loop that replays a transcript: each result is truncated as it arrives, and each turn
//! of the assistant is a model call with a pass before it.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use offcut::backend::Location;
use offcut::format::{Message, Messages, Plain};
use offcut::{Report, ToolCall, ToolReduction, Turn};

use super::call::{Reader, Request};
use super::pages::Pages;
use super::replayed::{Change, Replay};
use super::script::Script;
use super::view::ReplacedText;

/// Replays `script`; without a reduction, nothing is changed.
pub(crate) async fn replay(
    script: &Script<'_>,
    reduction: Option<&ToolReduction>,
) -> Result<Replay, offcut::OffloadError> {
    let mut agent = Agent {
        script,
        reduction,
        messages: Vec::new(),
        tokens: Vec::new(),
        sent: 0,
        untouched: 0,
        views: HashMap::new(),
        pages: Pages::default(),
        open: Vec::new(),
        stored: HashMap::new(),
        replay: Replay::default(),
    };
    for message in script.messages {
        if matches!(message, Message::Assistant { .. }) {
            agent.call_model().await?;
        }
        agent.receive(message).await?;
    }
    let mut replay = agent.replay;
    replay.figures.stored_objects = agent.stored.len() as u64;
    replay.figures.stored_bytes = agent.stored.values().sum();
    Ok(replay)
}

struct Agent<'s, 't> {
    script: &'s Script<'t>,
    reduction: Option<&'s ToolReduction>,
    messages: Vec<Message>,
    /// Tokens of each message as it is now.
    tokens: Vec<u64>,
    /// Number of messages in the last request, and the number of its leading messages that are
    /// unchanged.
    sent: usize,
    untouched: usize,
    /// By message: results and calls that are not shown whole.
    views: HashMap<usize, ReplacedText>,
    pages: Pages,
    /// Calls that have no result yet.
    open: Vec<ToolCall>,
    stored: HashMap<Location, u64>,
    replay: Replay,
}

impl Agent<'_, '_> {
    /// Takes the next message of the transcript.
    async fn receive(&mut self, message: &Message) -> Result<(), offcut::OffloadError> {
        let at = self.messages.len();
        self.messages.push(message.clone());
        self.tokens.push(self.script.tokens[at]);
        match message {
            Message::Assistant { calls, .. } => self.open.clone_from(calls),
            Message::Tool {
                call_id,
                name,
                content,
                is_error,
            } => {
                let Some(reduction) = self.reduction else {
                    return Ok(());
                };
                let open = self.open.iter().position(|call| call.id == *call_id);
                let call = open.map_or_else(
                    || ToolCall::new(call_id, name, ""),
                    |open| self.open.remove(open),
                );
                let mut output = offcut::ToolOutput::parts(content.clone());
                output.is_error = *is_error;
                let truncated = reduction.truncate(&call, output).await?;
                let report = truncated.report;
                if report.is_change() {
                    self.messages[at] = Message::tool(&call, truncated.parts, *is_error);
                    self.take_in(&report, reduction, Some(at)).await;
                }
            }
            Message::System { .. } | Message::User { .. } => {}
        }
        Ok(())
    }

    /// Runs a pass, then the request that follows it.
    async fn call_model(&mut self) -> Result<(), offcut::OffloadError> {
        self.untouched = self.sent;
        if let Some(reduction) = self.reduction {
            let mut conversation = Messages::new(Plain, &mut self.messages);
            let begin = Instant::now();
            let report = reduction
                .clear_turn(&mut Turn::new(&mut conversation))
                .await?;
            self.replay.figures.pass += begin.elapsed();
            self.take_in(&report, reduction, None).await;
        }
        let request = Request {
            script: self.script,
            call: self.replay.contexts.len(),
            tokens: &self.tokens,
            previous: self.sent,
            untouched: self.untouched,
            views: &self.views,
            added: &[],
            reader: self.reduction.map_or(Reader::None, Reader::Offcut),
        };
        request.send(&mut self.replay, &mut self.pages).await;
        self.sent = self.messages.len();
        Ok(())
    }

    /// Records the changes in a report. Truncation does not say which message it changed: it is the
    /// one that has just arrived.
    async fn take_in(
        &mut self,
        report: &Report,
        reduction: &ToolReduction,
        arrived: Option<usize>,
    ) {
        let mut changed = BTreeSet::new();
        let decisions = report.decisions.iter();
        for decision in decisions.filter(|decision| decision.outcome.is_change()) {
            let Some(at) = decision.message.or(arrived) else {
                continue;
            };
            self.untouched = self.untouched.min(at);
            let before = self.tokens[at];
            self.tokens[at] = self.script.ruler.tokens(&mut self.messages[at]);
            let (call, after) = (self.replay.contexts.len(), self.tokens[at]);
            self.replay.changes.push(Change {
                call,
                message: at,
                outcome: decision.outcome,
                before,
                after,
            });
            for location in &decision.locations {
                if let Some(Ok(original)) = reduction.read_original(location).await {
                    self.stored.insert(location.clone(), original.len() as u64);
                }
            }
            changed.insert(at);
        }
        for at in changed {
            let view = ReplacedText::of(&self.messages[at], reduction).await;
            self.views.insert(at, view);
        }
    }
}
