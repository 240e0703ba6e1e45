//! A pass with a rewriter: old rounds are handed to it, and the rest is cleared.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use offcut_store::layout::Phase;

use super::choice::frees_too_little;
use super::part::{part_bytes, transcribed};
use super::pass::{NotDone, Pass};
use super::plan::Plan;
use super::print::Place;
use super::scan::Scan;
use crate::backend::Location;
use crate::content::ToolCall;
use crate::error::OffloadError;
use crate::format::{Conversation, Message, Piece, Rewrite, Role};
use crate::middleware::Turn;
use crate::report::{Change, Decision, ErrorSource, Outcome, Reason, Report, Subject, saved};
use crate::rounds::{Outline, Turns};
use crate::session::Session;
use crate::tokens::Text;
use offcut_store::content::Target;

/// Hands the rounds that `plan` clears to the rewriter, and plans again over what it leaves. Both
/// are applied if together they free enough. Without a rewriter, or rounds for it, `plan` is
/// carried out.
pub(super) async fn rewrite(plan: Plan, turn: &mut Turn<'_>) -> Result<Report, OffloadError> {
    let rounds = rounds(&plan, &*turn.conversation);
    let rewriter = turn.conversation.rewrite();
    let Some(mut rewriter) = rewriter.filter(|_| !rounds.is_empty()) else {
        return Ok(plan.commit().await?.put(turn.conversation));
    };
    let (pass, counted) = (plan.pass.clone(), plan.head.tokens);
    let mut decisions = Vec::new();
    for round in rounds {
        decisions.extend(round.rewrite(&pass, &mut *rewriter).await?);
    }
    let is_change = |decision: &Decision| decision.outcome.is_change();
    // If the rewriter changes nothing, the first plan holds, and nothing is copied.
    if !decisions.iter().any(is_change) {
        drop(rewriter);
        let report = plan.commit().await?.put(turn.conversation);
        return Ok(preceded(decisions, report));
    }
    let rewritten = saved(decisions.iter().filter_map(|decision| decision.tokens));
    let copied = Turn {
        conversation: rewriter.copy(),
        tools: turn.tools,
        // The provider's count includes what the rewriter has removed.
        last_usage: turn.last_usage.map(|usage| usage.saturating_sub(rewritten)),
    };
    let scan = Scan::counted_elsewhere(&pass, &copied).await;
    let again = Plan::new(pass.clone(), &copied, scan, rewritten);
    let committed = again.commit().await?;
    let new = decisions.iter().chain(committed.new_decisions());
    let freed = saved(new.filter_map(|decision| decision.tokens));
    let at_least = pass.session.settings().clear_at_least_tokens;
    let report = if frees_too_little(freed.into(), at_least) {
        // Both together turned out to free too little. Drop the rewriter's copy.
        drop(rewriter);
        for decision in decisions.iter_mut().filter(|decision| is_change(decision)) {
            decision.keep(Reason::TooLittle);
        }
        plan.repeat_only(Reason::TooLittle).put(turn.conversation)
    } else {
        let report = committed.put(copied.conversation);
        rewriter.finish();
        report
    };
    let report = preceded(decisions, report);
    Ok(Report {
        tokens: counted,
        ..report
    })
}

fn preceded(mut decisions: Vec<Decision>, mut report: Report) -> Report {
    decisions.append(&mut report.decisions);
    Report {
        decisions,
        ..report
    }
}

/// A round that the rewriter may replace.
struct Round {
    messages: Vec<usize>,
    /// Its first call.
    call: ToolCall,
    /// The whole round, as JSON.
    transcript: Bytes,
    bytes: u64,
    tokens: u64,
}

/// The rounds that hold what the plan clears.
fn rounds(plan: &Plan, conversation: &dyn Conversation) -> Vec<Round> {
    let cleared = plan
        .edits
        .iter()
        .filter(|edit| edit.expected_reason.is_none() && edit.decision.outcome.is_change())
        .map(|edit| edit.place)
        .collect();
    let rounds = rounds_of(conversation, &cleared);
    rounds
        .into_iter()
        .map(|messages| Round::of(&plan.pass.session, conversation, messages))
        .collect()
}

/// The messages of each round that holds one of the results at `places`: those of its turn and
/// those of the results of its calls. Leaves out rounds that share a message with a user or another
/// round.
fn rounds_of(conversation: &dyn Conversation, places: &BTreeSet<Place>) -> Vec<Vec<usize>> {
    let outline = Outline::of(conversation);
    let rounds: HashMap<usize, usize> = outline
        .calls
        .iter()
        .map(|call| (call.turn, call.round))
        .collect();
    // The rounds that each message belongs to; `None` stands for anything outside of rounds.
    let mut owners: Vec<BTreeSet<Option<usize>>> = vec![BTreeSet::new(); conversation.len()];
    let mut wanted = BTreeMap::new();
    for slot in &outline.slots {
        owners[slot.message].insert(slot.call.map(|_| slot.round));
        if slot.call.is_some() && places.contains(&Place::of(slot)) {
            wanted.insert(slot.round, Vec::new());
        }
    }
    let mut turns = Turns::default();
    for (message, owners) in owners.iter_mut().enumerate() {
        let (mut role, mut is_result) = (Role::User, false);
        conversation.visit(message, &mut |piece| {
            turns.see(message, piece);
            match piece {
                Piece::Role(new) => {
                    (role, is_result) = (new, false);
                    // Items of the turn that show nothing, such as encrypted reasoning, go with it
                    // too.
                    if new == Role::Assistant {
                        owners.insert(rounds.get(&turns.begun).copied());
                    }
                }
                Piece::Result(_) => is_result = true,
                Piece::Call(_) | Piece::Content(_) if is_result => {}
                Piece::Call(_) | Piece::Content(_) => {
                    let is_turn = role == Role::Assistant || matches!(piece, Piece::Call(_));
                    owners.insert(rounds.get(&turns.begun).copied().filter(|_| is_turn));
                }
            }
        });
    }
    let mut shared = BTreeSet::new();
    for (message, owners) in owners.iter().enumerate() {
        for round in owners.iter().flatten() {
            if let Some(messages) = wanted.get_mut(round) {
                messages.push(message);
            }
            if owners.len() > 1 {
                shared.insert(*round);
            }
        }
    }
    wanted.retain(|round, _| !shared.contains(round));
    wanted.into_values().collect()
}

impl Round {
    fn of(session: &Session, conversation: &dyn Conversation, messages: Vec<usize>) -> Self {
        let mut transcript = Vec::new();
        messages
            .iter()
            .for_each(|message| transcribe(conversation, *message, &mut transcript));
        let call = transcript.iter().find_map(|message| match message {
            Message::Assistant { calls, .. } => calls.first().cloned(),
            _ => None,
        });
        let tokens = messages
            .iter()
            .map(|message| session.meter().message(conversation, *message));
        let tokens = tokens.fold(0, u64::saturating_add);
        Self {
            call: call.unwrap_or_default(),
            transcript: serde_json::to_vec(&transcript).unwrap_or_default().into(),
            bytes: messages
                .iter()
                .map(|message| content_bytes(conversation, *message))
                .sum(),
            messages,
            tokens,
        }
    }

    /// Hands the round to the rewriter and stores it; `None` if the rewriter leaves it as it is.
    async fn rewrite(
        self,
        pass: &Pass,
        rewriter: &mut dyn Rewrite,
    ) -> Result<Option<Decision>, OffloadError> {
        let ToolCall { id, name, .. } = &self.call;
        let mut decision = Decision::new(Subject::Round, name, id, self.bytes);
        decision.message = self.messages.first().copied();
        decision.tokens = Some(Change::none(self.tokens));
        match rewriter.round(&self.messages) {
            Ok(None) => return Ok(None),
            Ok(Some(copy)) => {
                decision.outcome = Outcome::Rewritten;
                decision.resize(
                    (0..copy.len())
                        .map(|message| content_bytes(copy, message))
                        .sum(),
                    pass.session.meter().conversation(copy, &[]),
                );
            }
            Err(error) => {
                decision.keep(Reason::Handler);
                decision.fail(ErrorSource::Callback.said(&error));
                return Ok(Some(decision));
            }
        }
        match self.store(pass, &mut decision).await {
            Ok(location) => decision.locations.extend(location),
            Err(NotDone::Kept(reason)) => {
                decision.keep(reason);
                if let Some(first) = self.messages.first() {
                    rewriter.leave(*first);
                }
            }
            Err(NotDone::Failed(error)) => return Err(error),
        }
        Ok(Some(decision))
    }

    async fn store(
        &self,
        pass: &Pass,
        decision: &mut Decision,
    ) -> Result<Option<Location>, NotDone> {
        let session = &pass.session;
        let Some(backend) = session.policy(&self.call.name).backend() else {
            // Clearing without a backend loses the content, and the report says so.
            decision.outcome = Outcome::Lost;
            return Ok(None);
        };
        // A callback's failure is reported in the decision about the result.
        let (id, _) = session.id_of(Phase::Clear, &self.call.id, || self.call.clone());
        let name = id.name_of(&self.transcript).round();
        let target = Target::new(session.roots(), Phase::Clear, &name, &self.transcript);
        pass.store(backend, &target, self.transcript.clone(), decision)
            .await
    }
}

/// Appends `message` in this crate's own format.
fn transcribe(conversation: &dyn Conversation, message: usize, into: &mut Vec<Message>) {
    conversation.visit(message, &mut |piece| match piece {
        Piece::Role(Role::System) => into.push(Message::System {
            content: Vec::new(),
        }),
        Piece::Role(Role::User) => into.push(Message::User {
            content: Vec::new(),
        }),
        Piece::Role(Role::Assistant) => into.push(Message::calls(Vec::new())),
        Piece::Role(Role::Tool) => {}
        Piece::Result(head) => {
            let call = ToolCall::new(head.id, head.name.unwrap_or_default(), "");
            into.push(Message::tool(&call, Vec::new(), head.is_error));
        }
        Piece::Call(call) => {
            let arguments = Text::of_arguments(call.arguments).read();
            if let Some(Message::Assistant { calls, .. }) = into.last_mut() {
                calls.push(ToolCall::new(call.id, call.name, arguments));
            }
        }
        Piece::Content(part) => match into.last_mut() {
            Some(
                Message::System { content }
                | Message::User { content }
                | Message::Assistant { content, .. }
                | Message::Tool { content, .. },
            ) => content.push(transcribed(part)),
            None => {}
        },
    });
}

fn content_bytes(conversation: &dyn Conversation, message: usize) -> u64 {
    let mut bytes = 0;
    conversation.visit(message, &mut |piece| {
        bytes += match piece {
            Piece::Content(part) => part_bytes(part),
            Piece::Call(call) => Text::of_arguments(call.arguments).bytes(),
            Piece::Role(_) | Piece::Result(_) => 0,
        }
    });
    bytes
}
