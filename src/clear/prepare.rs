//! Makes previews for the next pass before it.
//!
//! A pass spends most of its time on previews. They depend on the content alone, so they can be
//! made while nobody waits. A pass that does not find them here makes its own.

use std::sync::Arc;
use std::time::Instant;

use offcut_decisions::fingerprint::Fingerprint;

use super::ledger::settles_as;
use super::pass::Pass;
use super::print::ResultPrint;
use super::shorten::preview_of_content;
use super::stub::{Shown, Source, Stubs};
use crate::format::{Conversation, PartRef};
use crate::report::{Decision, Subject};
use crate::rounds::Outline;
use crate::session::{PreparedHint, PreparedResult, Session};
use crate::tokens::Text;
use offcut_store::content::Id;

/// Prepares results that a pass may clear, now or once they are old, and that were not prepared
/// before. `is_known` tells by a result's fingerprint, and by that of a final decision about it,
/// whether a pass needs no previews for it.
pub(crate) async fn prepare(
    session: &Session,
    conversation: &dyn Conversation,
    is_known: impl Fn(Fingerprint, Fingerprint) -> bool + Send,
) {
    let messages = conversation.len();
    let first = session.prepared().begin(messages);
    if first == messages || !session.clears() {
        return;
    }
    let hints = prepare_texts(session, conversation, first, is_known);
    let pass = Pass::new(session, &Arc::default());
    for (key, mut result, shown) in hints {
        // If the store fails, the pass compares the hint again, and reports a failure.
        let mut decision = Decision::new(Subject::Result, "", "", 0);
        let found = preview_of_content(&pass, &shown, &mut decision).await;
        let compared_at = Instant::now();
        result.hint = found.ok().flatten().map(|of_content| PreparedHint {
            of_shown: shown.draft.hint.preview,
            of_content,
            compared_at,
        });
        session.prepared().add(key, result);
    }
    session.prepared().end(messages);
}

/// Prepares texts. Returns hints, which are still to be compared with the store.
fn prepare_texts(
    session: &Session,
    conversation: &dyn Conversation,
    first: usize,
    is_known: impl Fn(Fingerprint, Fingerprint) -> bool,
) -> Vec<(Fingerprint, PreparedResult, Shown)> {
    let (stubs, meter) = (Stubs::new(session), session.meter());
    let outline = Outline::since(conversation, first);
    let mut hints = Vec::new();
    for slot in &outline.slots {
        let [part @ PartRef::Text(text)] = slot.parts[..] else {
            continue;
        };
        let tool = outline.tool(slot);
        let policy = session.policy(tool);
        let hooks = &policy.hooks;
        if !policy.clears()
            || hooks.backend.is_none()
            || hooks.clear_handler.is_some()
            || hooks.preview.is_some()
            || slot.head.is_fixed
        {
            continue;
        }
        let mut print = ResultPrint::new(meter, slot.head);
        print.add(part, Some(meter.fingerprint(Text::Is(text))));
        let print = print.finish();
        let key = settles_as(meter, print, tool);
        if session.prepared().has(key) || is_known(print, key) {
            continue;
        }
        let of = Source {
            id: Id::of_call(slot.head.id),
            tool,
            policy,
            previewer: policy.previewer(tool, String::new),
            prepared: None,
        };
        let result = PreparedResult {
            of_text: of.preview(text),
            hint: None,
        };
        let own = session.apparent_hints(policy, text).unwrap_or_default();
        match <[_; 1]>::try_from(own) {
            Ok([own]) if own.stored.is_some() && !own.is_short(policy) => {
                hints.push((key, result, stubs.shown(&of, own)));
            }
            _ => session.prepared().add(key, result),
        }
    }
    hints
}
