//! Proposes what to clear, result by result: everything old that gains anything, oldest first. What is old is known
//! before the store is asked about hints, and drafted after that.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::lines::{Content, Drafts, Line, Origin, SlotEdit};
use crate::backend::Key;
use crate::backend::content::Id;
use crate::backend::layout::Phase;
use crate::config::{Policy, PreviewLength, Settings};
use crate::guard::{HandlerError, guard};
use crate::handler::{Action, ClearHandler, ToolOutcome};
use crate::json::{Leaving, leaving};
use crate::middleware::Turn;
use crate::ours::SEVERAL;
use crate::preview::text::lines::opening;
use crate::report::{Decision, ErrorSource, Outcome, Reason, Subject};
use crate::session::Session;
use crate::slots::{Item, Known, Place, Slots};

/// Maximum length in bytes of what is shown of a string in arguments: its first line.
const MAX_FIRST_LINE: usize = 80;

/// The bounds of a pass.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    /// True if all that is old must go, since the provider has refused the conversation as too long.
    is_emergency: bool,
    /// The number of tokens above which it clears.
    pub(super) threshold: u64,
    /// The number of newest rounds that stay.
    recent_rounds: usize,
    /// The fewest tokens that it must free, or else it changes nothing.
    pub(super) at_least: u64,
}

impl Bounds {
    pub(super) fn of(settings: &Settings, turn: &Turn<'_>) -> Self {
        let rounds = settings.clear_retention_suffix_limit;
        if turn.is_too_long {
            return Self {
                is_emergency: true,
                threshold: 0,
                recent_rounds: rounds.min(1),
                at_least: 0,
            };
        }
        // A pass costs nothing if the provider's cache holds nothing of the conversation.
        let part = if turn.is_cold { 2 } else { 1 };
        Self {
            is_emergency: false,
            threshold: settings.max_tokens_for_clear / part,
            recent_rounds: rounds,
            at_least: settings.clear_at_least_tokens,
        }
    }
}

/// A plan that is being made: the decisions so far about the items of a conversation.
pub(super) struct Planner<'a> {
    session: &'a Session,
    bounds: Bounds,
    slots: &'a Slots<'a>,
    /// Edits so far.
    edits: Vec<SlotEdit>,
    /// Old results and texts of users, to be compared with the store and then drafted.
    pub(super) old: Vec<Old<'a>>,
    /// Places that are repeated, or replaced along with their result, and so not decided again.
    taken: HashSet<Place>,
    /// The names used so far, and the digest of what is stored under each.
    names: HashMap<Key, String>,
}

/// An old result or text of a user, which no handler has decided about.
pub(super) struct Old<'a> {
    pub(super) item: &'a Item<'a>,
    pub(super) edit: SlotEdit,
    /// True for a short error, which goes only if the rest is not enough: it tells the model what not to try again.
    is_short_error: bool,
    /// The lines for its texts that are hints of ours, by the numbers of its parts.
    pub(super) hints: HashMap<usize, Line>,
    /// Number of bytes left for hints that do not lead into a store.
    pub(super) room: usize,
}

impl<'a> Planner<'a> {
    /// Decides what goes of a conversation of `counted` tokens, but for places that are `taken`.
    pub(super) fn new(
        session: &'a Session,
        bounds: Bounds,
        known: &Known,
        slots: &'a Slots<'a>,
        taken: HashSet<Place>,
        counted: u64,
    ) -> Self {
        let mut planner = Planner {
            session,
            bounds,
            slots,
            edits: Vec::new(),
            old: Vec::new(),
            taken,
            names: HashMap::new(),
        };
        for item in slots.results() {
            planner.choose_item(known, item);
            if session.settings.clear_tool_inputs {
                planner.choose_arguments(known, item);
            }
        }
        let policy = session.policy("");
        if policy.backend().is_some() && policy.clears() {
            for item in &slots.items {
                if planner.takes_text(item, counted) {
                    planner.choose_item(known, item);
                }
            }
        }
        planner
    }

    /// Drafts what goes, oldest first. Short errors go only until the conversation of `counted` tokens is below the
    /// threshold.
    pub(super) fn draft(mut self, counted: u64) -> Vec<SlotEdit> {
        let (errors, others): (Vec<_>, Vec<_>) =
            (std::mem::take(&mut self.old).into_iter()).partition(|old| old.is_short_error);
        for old in others {
            let edit = self.draft_one(old);
            self.edits.push(edit);
        }
        let planned = self.edits.iter().filter(|edit| edit.goes());
        let mut left = i128::from(counted) - planned.map(SlotEdit::freed).sum::<i128>();
        for mut error in errors {
            let mut edit = SlotEdit::new(error.item, Outcome::Kept(Reason::ShortError));
            if left > i128::from(self.bounds.threshold) {
                let handled = self.handled(&mut error);
                let going = handled.unwrap_or_else(|| self.draft_one(error));
                if going.goes() {
                    left -= going.freed();
                    edit = going;
                }
            }
            self.edits.push(edit);
        }
        self.edits.sort_by_key(|edit| edit.place);
        self.edits
    }

    /// Decides about a result or a user's text, unless it is old and no handler decides.
    fn choose_item(&mut self, known: &Known, item: &'a Item<'a>) {
        if self.taken.contains(&item.place) {
            return;
        }
        let policy = self.session.policy(item.tool);
        let is_final = || self.session.is_final(policy, item.content.parts());
        let is_replacement = item.id.digest != item.grounds.print;
        let is_of_handler = is_replacement && policy.hooks.clear_handler.is_some();
        let stays = item
            .reason_of_age(self.bounds.recent_rounds)
            .or((!policy.clears()).then_some(Reason::Excluded))
            .or(item.is_fixed.then_some(Reason::Ambiguous))
            .or_else(|| known.settled.get(&item.grounds).copied())
            .or_else(|| (is_of_handler || is_final()).then_some(Reason::AlreadyHint));
        if let Some(stays) = stays {
            return self.edits.push(SlotEdit::new(item, Outcome::Kept(stays)));
        }
        let mut old = Old {
            item,
            edit: SlotEdit::new(item, Outcome::Cleared),
            is_short_error: item.grounds.is_error
                && policy.keep_errors
                && item.bytes <= policy.preview_length.at_most() as u64,
            hints: HashMap::new(),
            room: SEVERAL,
        };
        if !old.is_short_error
            && let Some(edit) = self.handled(&mut old)
        {
            return self.edits.push(edit);
        }
        self.old.push(old);
    }

    /// The edit of a user's handler; `None` for the default treatment.
    fn handled(&mut self, old: &mut Old<'a>) -> Option<SlotEdit> {
        let policy = self.session.policy(old.item.tool);
        let handler = policy.hooks.clear_handler.as_ref();
        let handler = handler.filter(|_| old.item.place.subject == Subject::Result)?;
        self.ask(&**handler, old.item).unwrap_or_else(|error| {
            let decision = &mut old.edit.decision;
            decision.fail(ErrorSource::Handler, error.to_string());
            None
        })
    }

    /// Drafts the lines of an old result or text.
    fn draft_one(&mut self, old: Old<'a>) -> SlotEdit {
        let Old {
            item,
            mut edit,
            mut hints,
            room,
            ..
        } = old;
        // The store could not tell whether it is hints of ours.
        if !edit.decision.outcome.is_change() {
            return edit;
        }
        let mut drafts = self.drafts(item, None, &mut edit.decision);
        drafts.room = room;
        let mut lines = Vec::new();
        for (part, number) in item.content.parts().iter().zip(1..) {
            let line = hints.remove(&number);
            lines.push(line.unwrap_or_else(|| drafts.part(*part, number)));
        }
        self.propose(edit, lines, self.session.policy(item.tool))
    }

    /// Returns true if an item is a user's text that goes, in a conversation of `counted` tokens. In an emergency, so does
    /// one over the limit of results that is more than a tenth of the conversation: shorter ones would free little.
    fn takes_text(&self, item: &Item<'_>, counted: u64) -> bool {
        let settings = &self.session.settings;
        let (above, is_enough) = match settings.clear_user_texts_above {
            Some(above) => (above, true),
            None => {
                let tokens = u128::from(item.tokens.unwrap_or_default());
                let is_enough = self.bounds.is_emergency && tokens * 10 > u128::from(counted);
                (settings.max_length_for_trunc, is_enough)
            }
        };
        item.place.subject == Subject::UserText && is_enough && item.bytes > above as u64
    }

    /// Proposes a call's arguments if its result is old, even if the result itself is too short to
    /// go.
    fn choose_arguments(&mut self, known: &Known, result: &Item<'a>) {
        let Some((item, call)) = self.slots.call(result) else {
            return;
        };
        let policy = self.session.policy(result.tool);
        if result.reason_of_age(self.bounds.recent_rounds).is_some()
            || !policy.clears()
            || self.taken.contains(&item.place)
        {
            return;
        }
        let above = self.session.settings.clear_tool_inputs_above;
        let known = known.settled.get(&item.grounds).copied();
        let mut edit = SlotEdit::new(item, Outcome::Cleared);
        let stays = known
            .or((item.bytes <= above as u64).then_some(Reason::WithinLimit))
            .or(call.is_signed.then_some(Reason::Signed))
            .or(item.is_fixed.then_some(Reason::Ambiguous));
        if let Some(stays) = stays {
            edit.keep(stays);
            return self.edits.push(edit);
        }
        let text = call.arguments.text();
        let is_hint = |text: &str| self.session.is_short_hint(policy, text);
        let Some(Leaving { contents, frame }) = leaving(&text, above, is_hint) else {
            edit.keep(Reason::AlreadyHint);
            return self.edits.push(edit);
        };
        let mut drafts = self.drafts(result, None, &mut edit.decision);
        let mut lines = Vec::new();
        for (content, number) in contents.into_iter().zip(1..) {
            let shown = match frame {
                Some(_) => drafts.length.bytes_for(content.len() as u64),
                None => 0,
            };
            let preview = opening(&content, shown.min(MAX_FIRST_LINE)).to_owned();
            lines.push(drafts.line_for(content.into(), None, preview, number));
        }
        edit.frame = frame;
        let edit = self.propose(edit, lines, policy);
        self.edits.push(edit);
    }

    /// The names and the previewer for a result, its call's arguments or a user's text, as the `decision` says. `own`
    /// is a handler's id.
    fn drafts<'d>(
        &'d mut self,
        item: &Item<'d>,
        own: Option<&str>,
        decision: &'d mut Decision,
    ) -> Drafts<'d> {
        let session = self.session;
        let policy = session.policy(item.tool);
        let call = || self.slots.call_of(item);
        let id = match decision.subject {
            Subject::UserText => Id::of_call(""),
            Subject::Result | Subject::Arguments => session.id(Phase::Clear, own, call, decision),
        };
        let tool = match decision.subject {
            Subject::Arguments => self
                .slots
                .call(item)
                .map_or(item.tool, |(_, call)| call.name),
            Subject::Result | Subject::UserText => item.tool,
        };
        Drafts {
            session,
            names: &mut self.names,
            id,
            repeats_id: item.repeats_id,
            tool,
            policy,
            previewer: policy.previewer(tool, || call().arguments),
            length: length_of(policy, decision.subject),
            room: SEVERAL,
            decision,
        }
    }

    /// Proposes to replace an item by lines, if that is expected to be a gain.
    fn propose(&self, mut edit: SlotEdit, lines: Vec<Line>, policy: &Policy) -> SlotEdit {
        let is_new = |line: &Line| matches!(line.origin, Origin::New { .. });
        edit.decision.outcome = match policy.backend() {
            None => Outcome::Lost,
            Some(_) if lines.iter().any(is_new) => Outcome::Cleared,
            Some(_) => Outcome::Shortened,
        };
        let put = edit.replacement(&lines);
        if edit.resize(&self.session.meter, &put) {
            edit.content = Content::Lines(lines);
        } else {
            let leads = |line: &Line| matches!(&line.origin, Origin::There(at) if !at.is_empty());
            edit.keep(match lines.iter().any(is_new) || !lines.iter().any(leads) {
                true => Reason::NoGain,
                false => Reason::AlreadyHint,
            });
        }
        edit
    }
}

/// The length of a preview of what is cleared. A text of a user gets as much as a truncated result has.
pub(super) fn length_of(policy: &Policy, subject: Subject) -> PreviewLength {
    match subject {
        Subject::UserText => policy.preview_length,
        Subject::Result | Subject::Arguments => policy.stub_length,
    }
}

/// Decisions of a user's handler: made in a plan, stored when it is committed.
impl Planner<'_> {
    /// Asks the handler about a result; `None` if it asks for the default treatment.
    fn ask(
        &mut self,
        handler: &dyn ClearHandler,
        item: &Item<'_>,
    ) -> Result<Option<SlotEdit>, HandlerError> {
        let parts = item.content.parts().iter();
        let outcome = ToolOutcome {
            call: self.slots.call_of(item),
            parts: parts.map(|part| (*part).into()).collect(),
            is_error: item.grounds.is_error,
        };
        let replacement = match guard("the clear handler", || handler.handle(outcome))? {
            Action::Default => return Ok(None),
            Action::Keep => {
                return Ok(Some(SlotEdit::new(item, Outcome::Kept(Reason::Handler))));
            }
            Action::Replace(replacement) => replacement,
        };
        let arguments = replacement.arguments.as_deref();
        let arguments = arguments.map(|text| self.arguments(item, text));
        let arguments = arguments.transpose()?.flatten();
        let (session, mut store, mut location) = (self.session, None, None);
        let mut edit = SlotEdit::new(item, Outcome::Lost);
        if let (Some(content), Some(backend)) =
            (&replacement.content, session.policy(item.tool).backend())
        {
            let mut drafts = self.drafts(item, replacement.id.as_deref(), &mut edit.decision);
            let target = drafts.target("", None, content);
            edit.decision.outcome = Outcome::Replaced;
            location = Some(target.expected(backend));
            store = Some((Arc::clone(backend), target));
        }
        let shown = replacement.show(location.as_ref())?;
        edit.content = Content::Given(Box::new(replacement), store);
        edit.resize(&session.meter, &shown);
        if let Some(mut arguments) = arguments {
            arguments.decision.outcome = edit.decision.outcome;
            self.taken.insert(arguments.place);
            edit.arguments = Some(Box::new(arguments));
        }
        Ok(Some(edit))
    }

    /// Edits the arguments of the call that a result answers; `None` if they stay.
    fn arguments(&self, result: &Item<'_>, text: &str) -> Result<Option<SlotEdit>, HandlerError> {
        let Some((item, _)) = self.slots.call(result) else {
            return Ok(None);
        };
        if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
            return Err(
                "the clear handler returned arguments that are not valid JSON: return a JSON text"
                    .into(),
            );
        }
        // If a call has several results, the first one decides about its arguments.
        if item.is_fixed || self.taken.contains(&item.place) {
            return Ok(None);
        }
        let put = vec![text.into()];
        let mut edit = SlotEdit::new(item, Outcome::Replaced);
        edit.resize(&self.session.meter, &put);
        edit.content = Content::Ready(put);
        Ok(Some(edit))
    }
}
