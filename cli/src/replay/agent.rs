//! An agent loop that replays a transcript: each result is truncated as it arrives, and each turn
//! of the assistant is a model call with a pass before it.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use bytes::Bytes;
use offcut::backend::Location;
use offcut::format::{Message, Messages, Plain};
use offcut::hint::Hint;
use offcut::report::{Outcome, Subject};
use offcut::{Report, ToolCall, ToolReduction, Turn};

use super::figures::Figures;
use crate::evidence::{Evidence, Read, Use, names, quotable, text_of};

/// A transcript, with everything that is the same under every policy.
pub(crate) struct Script<'t> {
    pub(crate) messages: &'t [Message],
    pub(crate) evidence: Evidence<'t>,
    /// Tokens of each message.
    pub(crate) tokens: Vec<u64>,
    pub(crate) ruler: &'t Ruler,
}

/// Measures messages in tokens of `o200k_base`, whatever a policy counts with.
pub(crate) struct Ruler(ToolReduction);

impl Ruler {
    pub(crate) fn new() -> Result<Self, offcut::BuildError> {
        ToolReduction::builder()
            .skip_truncation(true)
            .token_counter(offcut::TokenCounter::O200kBase)
            .build()
            .map(Self)
    }

    /// Returns a ruler for another transcript, with its own counts, which are dropped with it.
    pub(crate) fn for_another(&self) -> Self {
        Self(self.0.session("transcript"))
    }

    pub(crate) fn tokens(&self, message: &mut Message) -> u64 {
        self.0
            .count_tokens(&Messages::new(&Plain, std::slice::from_mut(message)), &[])
    }
}

impl<'t> Script<'t> {
    pub(crate) fn new(messages: &'t [Message], read: &'t Read, ruler: &'t Ruler) -> Self {
        let tokens = messages
            .iter()
            .map(|message| ruler.tokens(&mut message.clone()))
            .collect();
        Self {
            messages,
            evidence: Evidence::of(read),
            tokens,
            ruler,
        }
    }
}

/// Result of replaying one transcript under one policy.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    pub(crate) figures: Figures,
    /// Tokens of each model call.
    pub(crate) contexts: Vec<u64>,
    pub(crate) changes: Vec<Change>,
    pub(crate) misses: Vec<Miss>,
}

/// A message that became shorter.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// Index of the model call that follows, from 0.
    pub(crate) call: usize,
    pub(crate) message: usize,
    pub(crate) outcome: Outcome,
    pub(crate) before: u64,
    pub(crate) after: u64,
}

/// Something that a turn used and that was no longer shown.
#[derive(Clone, Debug)]
pub(crate) struct Miss {
    pub(crate) call: usize,
    pub(crate) text: String,
    pub(crate) is_quote: bool,
    /// The newest result that held it.
    pub(crate) result: usize,
    /// True if a hint leads to it.
    pub(crate) is_reachable: bool,
}

/// Text that is shown instead of a result.
struct Shown {
    text: String,
    names: HashSet<String>,
    lines: HashSet<String>,
    /// Originals behind its hints.
    originals: Vec<String>,
}

impl Shown {
    fn leads_to(&self, text: &str) -> bool {
        self.originals
            .iter()
            .any(|original| original.contains(text))
    }
}

/// Replays `script`; without a reduction, nothing is changed.
pub(crate) async fn replay(
    script: &Script<'_>,
    reduction: Option<&ToolReduction>,
) -> Result<Replay, offcut::OffloadError> {
    let mut agent = Agent::new(script, reduction);
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
    /// By message: results that are not shown whole.
    reduced: HashMap<usize, Shown>,
    /// Calls that have no result yet.
    open: Vec<ToolCall>,
    stored: HashMap<Location, u64>,
    replay: Replay,
}

impl<'s, 't> Agent<'s, 't> {
    fn new(script: &'s Script<'t>, reduction: Option<&'s ToolReduction>) -> Self {
        Self {
            script,
            reduction,
            messages: Vec::new(),
            tokens: Vec::new(),
            sent: 0,
            untouched: 0,
            reduced: HashMap::new(),
            open: Vec::new(),
            stored: HashMap::new(),
            replay: Replay::default(),
        }
    }

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
                    self.take_in(&report, Some(at)).await;
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
            let mut conversation = Messages::new(&Plain, &mut self.messages);
            let begin = Instant::now();
            let report = reduction
                .clear_turn(&mut Turn::new(&mut conversation))
                .await?;
            self.replay.figures.pass += begin.elapsed();
            self.take_in(&report, None).await;
        }
        let call = self.replay.contexts.len();
        let total: u64 = self.tokens.iter().sum();
        let cached: u64 = self.tokens[..self.untouched].iter().sum();
        let figures = &mut self.replay.figures;
        figures.model_calls += 1;
        figures.tokens += total;
        figures.fresh += total - cached;
        figures.peak = figures.peak.max(total);
        figures.breaks += u64::from(self.untouched < self.sent);
        self.sent = self.messages.len();
        self.replay.contexts.push(total);
        self.look_for_evidence(call, total);
        Ok(())
    }

    /// Records the changes in a report. Truncation does not say which message it changed: it is the
    /// one that has just arrived.
    async fn take_in(&mut self, report: &Report, arrived: Option<usize>) {
        for decision in report
            .decisions
            .iter()
            .filter(|decision| decision.outcome.is_change())
        {
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
                if let Some(original) = self.original(location).await {
                    self.stored.insert(location.clone(), original.len() as u64);
                }
            }
            if decision.subject == Subject::Result {
                let shown = self.shown(at).await;
                self.reduced.insert(at, shown);
            }
        }
    }

    /// Collects what is still shown of a reduced result: the previews of its hints, and text that
    /// is not a hint.
    async fn shown(&self, at: usize) -> Shown {
        let content = match &self.messages[at] {
            Message::Tool { content, .. } => &content[..],
            _ => &[],
        };
        let (mut texts, mut originals) = (Vec::new(), Vec::new());
        for part in content {
            let part = text_of(std::slice::from_ref(part));
            match Hint::parse_all(&part) {
                Some(hints) => {
                    for hint in hints {
                        if let Some(location) = &hint.location
                            && let Some(original) = self.original(location).await
                        {
                            originals.push(String::from_utf8_lossy(&original).into_owned());
                        }
                        texts.push(hint.preview);
                    }
                }
                None => texts.push(part),
            }
        }
        let text = texts.join("\n");
        let names = names(&text).into_keys().map(str::to_owned).collect();
        let lines = quotable(&text).into_iter().map(str::to_owned).collect();
        Shown {
            text,
            names,
            lines,
            originals,
        }
    }

    async fn original(&self, location: &Location) -> Option<Bytes> {
        self.reduction?.read_original(location).await?.ok()
    }

    /// Checks what the coming turn uses against what is still shown.
    fn look_for_evidence(&mut self, call: usize, total: u64) {
        let evidence = &self.script.evidence;
        let (turn, calls_left) = (
            &evidence.turns[call],
            (evidence.turns.len() - call - 1) as u64,
        );
        let (mut figures, mut misses) = (self.replay.figures, Vec::new());
        let miss = |used: &Use, is_quote, is_reachable| {
            let result = used.results.last().copied().unwrap_or_default();
            Miss {
                call,
                text: used.text.clone(),
                is_quote,
                result,
                is_reachable,
            }
        };
        for name in &turn.names {
            let is_named = |at: &usize| {
                self.reduced
                    .get(at)
                    .is_none_or(|shown| shown.names.contains(&name.text))
            };
            let is_shown = |at: &usize| {
                let is_window_in =
                    |shown: &Shown| evidence.is_window_in(&shown.text, *at, &name.text);
                self.reduced.get(at).is_none_or(is_window_in)
            };
            let is_stored = |at: &usize| {
                self.reduced
                    .get(at)
                    .is_some_and(|shown| shown.leads_to(&name.text))
            };
            let named = name.results.iter().any(is_named);
            let is_reachable = named || name.results.iter().any(is_stored);
            figures.uses += 1;
            figures.named += u64::from(named);
            figures.shown += u64::from(named && name.results.iter().any(is_shown));
            figures.reachable += u64::from(is_reachable);
            if !named {
                misses.push(miss(name, false, is_reachable));
            }
        }
        for quote in &turn.quotes {
            let is_quoted = |at: &usize| {
                self.reduced
                    .get(at)
                    .is_none_or(|shown| shown.lines.contains(&quote.text))
            };
            let quoted = quote.results.iter().any(is_quoted);
            figures.quotes += 1;
            figures.quoted += u64::from(quoted);
            if !quoted {
                let is_stored = |at: &usize| {
                    self.reduced
                        .get(at)
                        .is_some_and(|shown| shown.leads_to(&quote.text))
                };
                misses.push(miss(quote, true, quote.results.iter().any(is_stored)));
            }
        }
        let reads = misses
            .iter()
            .map(|miss| miss.result)
            .collect::<HashSet<_>>()
            .len() as u64;
        figures.reads += reads;
        figures.read_context += reads * total;
        figures.read_calls_left += reads * calls_left;
        self.replay.figures = figures;
        self.replay.misses.extend(misses);
    }
}
