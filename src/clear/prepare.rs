//! Makes the short texts that the next pass needs, while nobody waits for them.
//!
//! A pass spends most of its time on previews. They depend on the content alone, so they can be
//! made as soon as it has arrived. A pass that finds no text here makes its own.

use std::sync::{Arc, Mutex};

use offcut_decisions::fingerprint::Fingerprint;

use super::edit::{Content, Edit};
use super::items::Items;
use super::ledger::Ledger;
use super::pass::Pass;
use super::planner::Planner;
use super::shorten::compare;
use super::stub::{Line, Shown, Source};
use crate::backend::Location;
use crate::format::{Conversation, PartRef};
use crate::report::Outcome;
use crate::rounds::Outline;
use crate::session::{Session, ShortText};
use crate::store::Id;
use crate::tokens::Seen;

/// Prepares the texts for all results that a pass may clear, now or once they are old, and that
/// were not prepared before.
pub(crate) async fn prepare(
    session: &Session,
    ledger: &Arc<Mutex<Ledger>>,
    conversation: &dyn Conversation,
) {
    if !session.clears() {
        return;
    }
    let messages = conversation.len();
    let first = session.prepared().go_on(messages);
    if first == messages {
        return;
    }
    let pass = Pass::new(session, ledger);
    let hints = {
        let ledger = pass.ledger();
        let outline = Outline::since(conversation, first);
        let items = Items::of(outline, session.meter(), &ledger, &Seen::default());
        Planner::new(session, &ledger, items).prepare()
    };
    let is_gain = |edit: &Edit, text: &str| edit.size_if_gain(session.meter(), text).is_some();
    for (key, shown, mut edit) in hints {
        // A pass looks at the stored content only where it expects a gain.
        if !is_gain(&edit, &shown.expected) {
            continue;
        }
        // If this fails, so does the pass, which reports it.
        let line = compare(&pass, vec![shown], &mut edit.decision).await;
        if let Ok(Some(Line::Ready(text, locations))) = line
            && is_gain(&edit, &text)
            && let Ok([location]) = <[Location; 1]>::try_from(locations)
        {
            session.prepared().add(key, ShortText::Hint(text, location));
        }
    }
}

impl Planner<'_> {
    /// Prepares the previews of texts. Returns the hints, which have to be compared with the store.
    fn prepare(&self) -> Vec<(Fingerprint, Shown, Edit)> {
        let mut hints = Vec::new();
        for (slot, item) in self.items.outline.slots.iter().zip(&self.items.results) {
            let [PartRef::Text(text)] = slot.parts[..] else {
                continue;
            };
            let policy = self.session.policy(item.tool);
            let key = item.settles_as(self.session.meter());
            let hooks = &policy.hooks;
            if !policy.clears()
                || hooks.backend.is_none()
                || hooks.clear_handler.is_some()
                || hooks.preview.is_some()
                || slot.head.is_fixed
                || item.replacement().is_some()
                || self.session.prepared().has(key)
                || Self::is_short_error(slot, policy, item)
            {
                continue;
            }
            let of = Source {
                id: Id::of_call(item.call_id),
                tool: item.tool,
                policy,
                previewer: policy.previewer(item.tool, String::new),
                prepared: None,
            };
            match self.session.apparent_hints(policy, text) {
                None => {
                    let preview = ShortText::Preview(of.preview(text));
                    self.session.prepared().add(key, preview);
                }
                Some(own) => {
                    let own = <[_; 1]>::try_from(own).ok();
                    let own = own
                        .map(|[own]| own)
                        .filter(|own| own.stored.is_some() && !own.is_short(policy));
                    let edit = Edit::new(item, Outcome::Shortened, Content::Kept);
                    hints.extend(own.map(|own| (key, self.stubs.shown(&of, own), edit)));
                }
            }
        }
        hints
    }
}
