//! An agent loop that replays a transcript: each result is truncated as it arrives, and each turn
//! of the assistant is a model call with a pass before it.

use std::collections::{BTreeSet, HashMap};

use offcut::backend::Location;
use offcut::format::{Message, Messages, Plain};
use offcut::{OffloadError, Report, ToolCall, ToolOutput, ToolReduction, Turn};

use super::player::Player;
use super::replayed::{Change, Replay};
use super::script::Script;
use super::view::ReplacedText;

/// Replays `script`; without a reduction, nothing is changed.
pub(crate) async fn replay(
    script: &Script<'_>,
    reduction: Option<&ToolReduction>,
) -> Result<Replay, OffloadError> {
    let mut player = Player::new(script, reduction);
    let (mut messages, mut stored) = (Vec::<Message>::new(), HashMap::new());
    // Calls that have no result yet.
    let mut open: Vec<ToolCall> = Vec::new();
    for (at, message) in script.messages.iter().enumerate() {
        if let Message::Assistant { calls, .. } = message {
            if let Some(reduction) = reduction {
                let mut conversation = Messages::new(Plain, &mut messages);
                let mut turn = Turn::new(&mut conversation);
                let report = reduction.clear_turn(&mut turn).await?;
                take_in(&report, None, &mut player, &mut messages, &mut stored).await;
            }
            player.send().await;
            open.clone_from(calls);
        }
        messages.push(message.clone());
        player.tokens.push(script.tokens[at]);
        let Message::Tool {
            call_id,
            name,
            content,
            is_error,
        } = message
        else {
            continue;
        };
        let Some(reduction) = reduction else {
            continue;
        };
        let answered = open.iter().position(|call| call.id == *call_id);
        let call = answered.map_or_else(
            || ToolCall::new(call_id, name, ""),
            |answered| open.remove(answered),
        );
        let mut output = ToolOutput::parts(content.clone());
        output.is_error = *is_error;
        let truncated = reduction.truncate(&call, output).await?;
        let report = truncated.report;
        if report.is_change() {
            messages[at] = Message::tool(&call, truncated.parts, *is_error);
            take_in(&report, Some(at), &mut player, &mut messages, &mut stored).await;
        }
    }
    let mut replay = player.replay;
    replay.figures.stored_objects = stored.len() as u64;
    replay.figures.stored_bytes = stored.values().sum();
    Ok(replay)
}

/// Records the changes in a report. Truncation does not say which message it changed: it is the
/// one that has just arrived.
async fn take_in(
    report: &Report,
    arrived: Option<usize>,
    player: &mut Player<'_, '_>,
    messages: &mut [Message],
    stored: &mut HashMap<Location, u64>,
) {
    let Some(reduction) = player.reduction else {
        return;
    };
    let mut changed = BTreeSet::new();
    let decisions = report.decisions.iter();
    for decision in decisions.filter(|decision| decision.outcome.is_change()) {
        let Some(at) = decision.message.or(arrived) else {
            continue;
        };
        player.untouched = player.untouched.min(at);
        let before = player.tokens[at];
        let after = player.script.ruler.tokens(&mut messages[at]);
        player.tokens[at] = after;
        player.replay.changes.push(Change {
            call: player.replay.contexts.len(),
            message: at,
            outcome: decision.outcome,
            before,
            after,
        });
        for location in &decision.locations {
            if let Some(Ok(original)) = reduction.read_original(location).await {
                stored.insert(location.clone(), original.len() as u64);
            }
        }
        changed.insert(at);
    }
    for at in changed {
        let view = ReplacedText::of(&messages[at], reduction).await;
        player.views.insert(at, view);
    }
}
