//! A whole pass: old rounds are handed to the rewriter, if there is one, and what is left is
//! cleared.

use std::sync::{Arc, Mutex};

use bytes::Bytes;

use super::given::transcribed;
use super::known::part_bytes;
use super::outages::{NoAnswer, NotDone, Outages};
use super::{Ledger, Place, Plan, Request};
use crate::backend::Location;
use crate::content::ToolCall;
use crate::error::Error;
use crate::format::{Conversation, Message, Piece, Rewrite, Role};
use crate::report::{Change, Decision, Outcome, Reason, Report, Subject, saved};
use crate::rounds::rounds_of;
use crate::session::Session;
use crate::store::{Phase, Target};
use crate::tokens::Text;

/// Plans, commits and applies. Nobody has been shown the report yet.
pub(crate) async fn pass(
    session: &Session,
    ledger: &Arc<Mutex<Ledger>>,
    conversation: &mut dyn Conversation,
    request: Request<'_>,
) -> Result<Report, Error> {
    let outages = Outages::default();
    let plan = Plan::counted_elsewhere(session, ledger, conversation, request, 0).await;
    let rounds = if conversation.rewrite().is_some() {
        rounds(session, conversation, &plan)
    } else {
        Vec::new()
    };
    let Some(mut rewrite) = conversation.rewrite().filter(|_| !rounds.is_empty()) else {
        return Ok(plan.commit_knowing(&outages).await?.put(conversation));
    };
    let counted = plan.report.tokens;
    let mut decisions = Vec::new();
    for round in rounds {
        decisions.extend(round.rewrite(session, &outages, &mut *rewrite).await?);
    }
    // Where the rewriter leaves all as it is, the first plan holds, and nothing is copied.
    if !decisions
        .iter()
        .any(|decision| decision.outcome.is_change())
    {
        drop(rewrite);
        let mut report = plan.commit_knowing(&outages).await?.put(conversation);
        decisions.append(&mut report.decisions);
        return Ok(Report {
            decisions,
            ..report
        });
    }
    let rewritten = saved(decisions.iter().filter_map(|decision| decision.tokens));
    let copy = rewrite.copy();
    // The provider counted what is not there any more.
    let last_usage = request
        .last_usage
        .map(|usage| usage.saturating_sub(rewritten));
    let again = Plan::counted_elsewhere(
        session,
        ledger,
        copy,
        Request {
            last_usage,
            ..request
        },
        rewritten,
    )
    .await;
    let committed = again.commit_knowing(&outages).await?;
    let freed = saved(
        decisions
            .iter()
            .chain(committed.new_decisions())
            .filter_map(|decision| decision.tokens),
    );
    let is_enough = freed >= session.settings().clear_at_least_tokens;
    let mut report = if is_enough {
        let report = committed.put(copy);
        rewrite.finish();
        report
    } else {
        // Only now it is known what the rewriter leaves. Its copy goes.
        drop(rewrite);
        let changed = decisions
            .iter_mut()
            .filter(|decision| decision.outcome.is_change());
        changed.for_each(|decision| decision.keep(Reason::TooLittle));
        plan.repeat_only(Reason::TooLittle).put(conversation)
    };
    decisions.append(&mut report.decisions);
    Ok(Report {
        decisions,
        tokens: counted,
        ..report
    })
}

/// A round that the rewriter may replace.
struct Round {
    messages: Vec<usize>,
    /// Its first call.
    call: ToolCall,
    /// All of it, as JSON.
    transcript: Bytes,
    bytes: u64,
    tokens: u64,
}

/// The rounds that hold what the plan clears.
fn rounds(session: &Session, conversation: &dyn Conversation, plan: &Plan) -> Vec<Round> {
    // A preview leaves the round as it is.
    let is_done = |index: usize| {
        let outcome = plan.report.decisions[index].outcome;
        outcome.is_change() && outcome != Outcome::Previewed
    };
    let candidates = plan.edits.iter().filter_map(|edit| match edit.place {
        Place::Result { message, slot } if is_done(edit.decision) => Some((message, slot)),
        _ => None,
    });
    let rounds = rounds_of(conversation, &candidates.collect::<Vec<_>>());
    rounds
        .into_iter()
        .map(|messages| Round::of(session, conversation, messages))
        .collect()
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

    /// What became of it; `None` if the rewriter leaves it as it is.
    async fn rewrite(
        self,
        session: &Session,
        outages: &Outages,
        rewrite: &mut dyn Rewrite,
    ) -> Result<Option<Decision>, Error> {
        let first = self.messages.first().copied();
        let mut decision = Decision {
            tool: self.call.name.clone(),
            call_id: self.call.id.clone(),
            message: first,
            subject: Subject::Round,
            outcome: Outcome::Rewritten,
            bytes: Change::none(self.bytes),
            tokens: Some(Change::none(self.tokens)),
            locations: Vec::new(),
            error: None,
        };
        match rewrite.round(&self.messages) {
            Ok(None) => return Ok(None),
            Ok(Some(copy)) => {
                decision.bytes.after = (0..copy.len())
                    .map(|message| content_bytes(copy, message))
                    .sum();
                let after = session.meter().conversation(copy, &[]);
                decision.tokens = Some(Change {
                    before: self.tokens,
                    after,
                });
            }
            Err(error) => {
                decision.keep(Reason::Handler);
                decision.error = Some(error.to_string());
                return Ok(Some(decision));
            }
        }
        let settled = match self.save(session, outages).await {
            Some(Ok(location)) => {
                decision.locations.push(location);
                Ok(())
            }
            // Clearing without a backend loses, and says so.
            None => {
                decision.outcome = Outcome::Lost;
                Ok(())
            }
            Some(Err(none)) => none.settle(session.settings().on_offload_error, &mut decision),
        };
        match settled {
            Ok(()) => {}
            Err(NotDone::Kept(reason)) => {
                decision.keep(reason);
                first.into_iter().for_each(|first| rewrite.leave(first));
            }
            Err(NotDone::Failed(source)) => {
                return Err(Error::Offload {
                    tool: decision.tool,
                    call_id: decision.call_id,
                    source,
                });
            }
        }
        Ok(Some(decision))
    }

    async fn save(
        &self,
        session: &Session,
        outages: &Outages,
    ) -> Option<Result<Location, NoAnswer>> {
        let backend = session.policy(&self.call.name).backend()?;
        // What a callback did wrong is in the decision about the result.
        let (id, _) = session.id_of(Phase::Clear, &self.call.id, || self.call.clone());
        let name = id.name_of(&self.transcript).round();
        let target = Target::new(session.roots(), Phase::Clear, &name, &self.transcript);
        Some(
            outages
                .ask(backend, target.save(backend, self.transcript.clone()))
                .await,
        )
    }
}

/// The messages of this crate that say what `message` says.
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
