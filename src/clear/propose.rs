//! Proposes what to clear, result by result: everything old that gains anything, oldest first.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::lines::{Content, Drafts, Line, Origin, SlotEdit};
use crate::backend::Key;
use crate::backend::content::Id;
use crate::backend::layout::Phase;
use crate::config::{Policy, Settings};
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
    known: &'a Known,
    slots: &'a Slots<'a>,
    /// Edits so far, in the order of the conversation.
    edits: Vec<SlotEdit>,
    /// The edits that keep short errors, and the results that these are.
    short_errors: Vec<(usize, &'a Item<'a>)>,
    /// True once short errors go too. They tell the model what not to try again.
    takes_short_errors: bool,
    /// Places that are repeated, or replaced along with their result, and so not decided again.
    taken: HashSet<Place>,
    /// The names used so far, and the digest of what is stored under each.
    names: HashMap<Key, String>,
}

/// Decides about every result, oldest first, of a conversation of `counted` tokens, but for places that are `taken`.
pub(super) fn choose<'a>(
    session: &'a Session,
    bounds: Bounds,
    known: &'a Known,
    slots: &'a Slots<'a>,
    taken: HashSet<Place>,
    counted: u64,
) -> Vec<SlotEdit> {
    let mut planner = Planner {
        session,
        bounds,
        known,
        slots,
        edits: Vec::new(),
        short_errors: Vec::new(),
        takes_short_errors: false,
        taken,
        names: HashMap::new(),
    };
    for item in slots.results() {
        planner.choose_item(item);
        if session.settings.clear_tool_inputs {
            planner.choose_arguments(item);
        }
    }
    let policy = session.policy("");
    if policy.backend().is_some() && policy.clears() {
        for item in &slots.items {
            if planner.takes_text(item, counted) {
                planner.choose_item(item);
            }
        }
    }
    planner.choose_errors(counted);
    planner.edits
}

impl<'a> Planner<'a> {
    /// If the rest does not bring the conversation below the threshold, takes the oldest short errors
    /// too, until it does.
    fn choose_errors(&mut self, counted: u64) {
        self.takes_short_errors = true;
        let planned = self.edits.iter().filter(|edit| edit.goes());
        let mut left = i128::from(counted) - planned.map(SlotEdit::freed).sum::<i128>();
        for (kept, item) in std::mem::take(&mut self.short_errors) {
            if left <= i128::from(self.bounds.threshold) {
                return;
            }
            self.choose_item(item);
            if let Some(edit) = self.edits.pop().filter(SlotEdit::goes) {
                left -= edit.freed();
                self.edits[kept] = edit;
            }
        }
    }

    /// Decides about a result or a user's text.
    fn choose_item(&mut self, item: &'a Item<'a>) {
        if self.taken.contains(&item.place) {
            return;
        }
        let policy = self.session.policy(item.tool);
        let is_final = || self.session.is_final(policy, item.content.parts());
        let is_short_error = item.grounds.is_error
            && policy.keep_errors
            && item.bytes <= policy.preview_length.at_most() as u64;
        let stays = item
            .reason_of_age(self.bounds.recent_rounds)
            .or((!policy.clears()).then_some(Reason::Excluded))
            .or(item.is_fixed.then_some(Reason::Ambiguous))
            .or_else(|| self.known.settled.get(&item.grounds).copied())
            .or_else(|| is_final().then_some(Reason::AlreadyHint))
            .or((is_short_error && !self.takes_short_errors).then_some(Reason::ShortError));
        if let Some(stays) = stays {
            if stays == Reason::ShortError {
                self.short_errors.push((self.edits.len(), item));
            }
            return self.edits.push(SlotEdit::new(item, Outcome::Kept(stays)));
        }
        let mut edit = SlotEdit::new(item, Outcome::Cleared);
        if item.place.subject == Subject::Result
            && let Some(handler) = &policy.hooks.clear_handler
        {
            match self.ask(&**handler, item) {
                Ok(edit) => return self.edits.push(edit),
                Err(error) => {
                    let error = error.map(|error| error.to_string());
                    edit.decision.fail_first(ErrorSource::Handler, error);
                }
            }
        }
        let mut drafts = self.drafts(item, None, &mut edit.decision);
        let mut lines = Vec::new();
        for (part, number) in item.content.parts().iter().zip(1..) {
            lines.push(drafts.part(*part, number));
        }
        self.propose(edit, lines, policy);
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
    fn choose_arguments(&mut self, result: &Item<'a>) {
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
        let known = self.known.settled.get(&item.grounds).copied();
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
            lines.push(drafts.store(content.into(), None, preview, number));
        }
        edit.frame = frame;
        self.propose(edit, lines, policy);
    }

    /// The names and the previewer for a result, its call's arguments or a user's text, as the `decision` says. A text of a
    /// user gets a preview of the length that a truncated result has. `own` is a handler's id.
    fn drafts<'d>(
        &'d mut self,
        item: &Item<'d>,
        own: Option<&str>,
        decision: &'d mut Decision,
    ) -> Drafts<'d> {
        let session = self.session;
        let policy = session.policy(item.tool);
        let call = || self.slots.call_of(item);
        let (id, length) = match decision.subject {
            Subject::UserText => (Id::of_call(""), policy.preview_length),
            Subject::Result | Subject::Arguments => {
                let id = session.id(Phase::Clear, own, call, decision);
                (id, policy.stub_length)
            }
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
            length,
            room: SEVERAL,
            decision,
        }
    }

    /// Proposes to replace an item by lines, if that is expected to be a gain.
    fn propose(&mut self, mut edit: SlotEdit, lines: Vec<Line>, policy: &Policy) {
        let is_new = |line: &Line| matches!(line.origin, Origin::New { .. });
        edit.decision.outcome = match policy.backend() {
            None => Outcome::Lost,
            Some(_) if lines.iter().any(is_new) => Outcome::Cleared,
            Some(_) => Outcome::Shortened,
        };
        let put = edit.put(&lines);
        let is_gain = edit.resize(&self.session.meter, &put);
        edit.content = Content::Lines(lines);
        // Only the store can tell whether it really is a hint of ours.
        if !is_gain && !edit.has_to_be_compared() {
            edit.keep(Reason::NoGain);
        }
        self.edits.push(edit);
    }
}

/// Decisions of a user's handler: made in a plan, stored when it is committed.
impl Planner<'_> {
    /// Asks the handler about a result. `Err` asks for the default treatment, with the
    /// handler's error if it made one.
    fn ask(
        &mut self,
        handler: &dyn ClearHandler,
        item: &Item<'_>,
    ) -> Result<SlotEdit, Option<HandlerError>> {
        if item.id.digest != item.grounds.print {
            return Ok(SlotEdit::new(item, Outcome::Kept(Reason::AlreadyHint)));
        }
        let parts = item.content.parts().iter();
        let outcome = ToolOutcome {
            call: self.slots.call_of(item),
            parts: parts.map(|part| (*part).into()).collect(),
            is_error: item.grounds.is_error,
        };
        let handled = guard("the clear handler", || handler.handle(outcome)).map_err(Some)?;
        let replacement = match handled {
            Action::Default => return Err(None),
            Action::Keep => return Ok(SlotEdit::new(item, Outcome::Kept(Reason::Handler))),
            Action::Replace(replacement) => replacement,
        };
        let arguments = replacement.arguments.as_deref();
        let arguments = arguments.map(|text| self.arguments(item, text));
        let arguments = arguments.transpose().map_err(Some)?.flatten();
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
        let shown = replacement.show(location.as_ref()).map_err(Some)?;
        edit.content = Content::Given(Box::new(replacement), store);
        edit.resize(&session.meter, &shown);
        if let Some(mut arguments) = arguments {
            arguments.decision.outcome = edit.decision.outcome;
            self.taken.insert(arguments.place);
            edit.arguments = Some(Box::new(arguments));
        }
        Ok(edit)
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
