//! Proposes what to clear, result by result: everything old that gains anything, oldest first.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::Arc;

use super::edit::{Content, SlotEdit};
use super::pass::Pass;
use super::stub::{Line, Source, Stubs, expected};
use crate::backend::content::Id;
use crate::backend::key::digest;
use crate::backend::layout::Phase;
use crate::config::Policy;
use crate::decisions::Substitute;
use crate::format::PartRef;
use crate::guard::{HandlerError, guard};
use crate::handler::{Action, ClearHandler, ToolOutcome};
use crate::json::{Leaving, leaving};
use crate::report::{DecisionFailure, ErrorSource, Outcome, Reason, Subject};
use crate::slots::{Item, ItemContent, Known, Place, Slots};

/// The treatment of short errors, which tell the model what not to try again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShortErrors {
    Stay,
    Go,
}

/// A plan that is being made: the decisions so far about the items of a conversation.
pub(super) struct Planner<'a> {
    pass: &'a Pass<'a>,
    known: &'a Known,
    slots: &'a Slots<'a>,
    /// Edits so far, in the order of the conversation.
    edits: Vec<SlotEdit>,
    /// The edits that keep short errors, and the results that these are, with their numbers.
    short_errors: Vec<(usize, usize, &'a Item<'a>)>,
    /// Places that are repeated, or replaced along with their result, and so not decided again.
    taken: HashSet<Place>,
    stubs: Stubs<'a>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(
        pass: &'a Pass<'a>,
        known: &'a Known,
        slots: &'a Slots<'a>,
        taken: HashSet<Place>,
    ) -> Self {
        Self {
            pass,
            known,
            slots,
            edits: Vec::new(),
            short_errors: Vec::new(),
            taken,
            stubs: Stubs::new(pass.session),
        }
    }

    /// Decides about every result, oldest first, of a conversation of `counted` tokens.
    pub(super) fn choose(mut self, counted: u64) -> Vec<SlotEdit> {
        let slots = self.slots;
        for (at, item) in slots.results().enumerate() {
            self.stubs.begin(at, item.call_id);
            self.choose_result(at, item, ShortErrors::Stay);
            if self.pass.session.settings.clear_tool_inputs {
                self.choose_arguments(item);
            }
        }
        self.choose_texts(counted);
        self.choose_errors(counted);
        self.edits
    }

    /// If the rest does not bring the conversation below the threshold, takes the oldest short errors
    /// too, until it does.
    fn choose_errors(&mut self, counted: u64) {
        let planned = self.edits.iter().filter(|edit| edit.is_pending());
        let mut left = i128::from(counted) - planned.map(SlotEdit::freed).sum::<i128>();
        for (kept, at, item) in std::mem::take(&mut self.short_errors) {
            if left <= i128::from(self.pass.threshold()) {
                return;
            }
            self.stubs.begin(at, item.call_id);
            self.choose_result(at, item, ShortErrors::Go);
            if let Some(edit) = self.edits.pop().filter(SlotEdit::is_pending) {
                left -= edit.freed();
                self.edits[kept] = edit;
            }
        }
    }

    fn choose_result(&mut self, at: usize, item: &'a Item<'a>, errors: ShortErrors) {
        if self.taken.contains(&item.place) {
            return;
        }
        let policy = self.pass.session.policy(item.tool);
        let is_short_error = item.grounds.is_error
            && policy.keep_errors
            && item.bytes <= policy.preview_length.at_most() as u64;
        let stays = item
            .reason_of_age(self.pass.recent_rounds())
            .or((!policy.clears()).then_some(Reason::Excluded))
            .or(item.is_fixed.then_some(Reason::Ambiguous))
            .or_else(|| self.final_reason(item.parts(), item, policy))
            .or((is_short_error && errors == ShortErrors::Stay).then_some(Reason::ShortError));
        if let Some(stays) = stays {
            if stays == Reason::ShortError {
                self.short_errors.push((self.edits.len(), at, item));
            }
            return self.edits.push(SlotEdit::kept(item, stays));
        }
        let mut failure = None;
        if let Some(handler) = policy.hooks.clear_handler.clone() {
            match self.ask(&*handler, item) {
                Ok(edit) => return self.edits.push(edit),
                Err(error) => failure = error.map(|error| ErrorSource::Handler.said(&error)),
            }
        }
        let (of, wrong_id) = self.source(item, item.tool, Subject::Result);
        let parts = item.parts().iter().zip(1..);
        let lines: Vec<Line> = parts
            .map(|(part, number)| self.stubs.part(&of, *part, number))
            .collect();
        let stores = lines.iter().any(|line| matches!(line, Line::Store { .. }));
        let outcome = match policy.backend() {
            None => Outcome::Lost,
            Some(_) if stores => Outcome::Cleared,
            Some(_) => Outcome::Shortened,
        };
        let edit = SlotEdit::new(item, outcome);
        self.propose(edit, lines, failure.or(wrong_id).or_else(|| of.failure()));
    }

    /// Decides about the long texts of users. Each gets a preview of the length that a truncated result has.
    fn choose_texts(&mut self, counted: u64) {
        let slots = self.slots;
        let policy = self.pass.session.policy("");
        if policy.backend().is_none() || !policy.clears() {
            return;
        }
        for item in &slots.items {
            let ItemContent::Text(text) = item.content else {
                continue;
            };
            if self.taken.contains(&item.place) || !self.pass.takes_text(item, counted) {
                continue;
            }
            let part = PartRef::Text(text);
            let stays = item
                .reason_of_age(self.pass.recent_rounds())
                .or(item.is_fixed.then_some(Reason::Ambiguous))
                .or_else(|| self.final_reason(&[part], item, policy));
            if let Some(stays) = stays {
                self.edits.push(SlotEdit::kept(item, stays));
                continue;
            }
            self.stubs.begin(usize::MAX, "");
            let of = Source {
                id: Id::of_call(""),
                tool: "",
                policy,
                previewer: policy.previewer("", String::new),
                length: policy.preview_length,
                subject: Subject::UserText,
                problem: OnceCell::new(),
            };
            let line = self.stubs.part(&of, part, 1);
            let edit = SlotEdit::new(item, Outcome::Cleared);
            self.propose(edit, vec![line], of.failure());
        }
    }

    /// Proposes a call's arguments if its result is old, even if the result itself is too short to
    /// go.
    fn choose_arguments(&mut self, result: &Item<'a>) {
        let Some((item, call)) = self.slots.call(result) else {
            return;
        };
        let policy = self.pass.session.policy(result.tool);
        if result.reason_of_age(self.pass.recent_rounds()).is_some()
            || !policy.clears()
            || self.taken.contains(&item.place)
        {
            return;
        }
        let above = self.pass.session.settings.clear_tool_inputs_above;
        let known = self.known.settled.get(&item.grounds).copied();
        let stays = known
            .or((item.bytes <= above as u64).then_some(Reason::WithinLimit))
            .or(call.is_signed.then_some(Reason::Signed))
            .or(item.is_fixed.then_some(Reason::Ambiguous));
        if let Some(stays) = stays {
            return self.edits.push(SlotEdit::kept(item, stays));
        }
        let text = call.arguments.text();
        let is_hint = |text: &str| self.pass.session.is_short_hint(policy, text);
        let Some(Leaving { contents, frame }) = leaving(&text, above, is_hint) else {
            return self.edits.push(SlotEdit::kept(item, Reason::AlreadyHint));
        };
        let (of, wrong_id) = self.source(result, item.tool, Subject::Arguments);
        let contents = contents.into_iter().zip(1..);
        let lines = contents
            .map(|(content, n)| self.stubs.argument(&of, content, n, frame.is_some()))
            .collect();
        let outcome = match policy.backend() {
            None => Outcome::Lost,
            Some(_) => Outcome::Cleared,
        };
        let mut edit = SlotEdit::new(item, outcome);
        edit.frame = frame;
        self.propose(edit, lines, wrong_id);
    }

    /// Reason why a result is never replaced.
    fn final_reason(
        &self,
        parts: &[PartRef<'_>],
        item: &Item<'_>,
        policy: &Policy,
    ) -> Option<Reason> {
        let known = self.known.settled.get(&item.grounds).copied();
        known.or_else(|| {
            let is_final = self.pass.session.is_final(policy, parts);
            is_final.then_some(Reason::AlreadyHint)
        })
    }

    /// The names and the previewer for a result or its call, and the failure of a callback asked for the id.
    fn source(
        &self,
        result: &Item<'_>,
        tool: &'a str,
        subject: Subject,
    ) -> (Source<'a>, Option<DecisionFailure>) {
        let session = self.pass.session;
        let call = || self.slots.call_of(result);
        let (id, failure) = session.id_of(Phase::Clear, result.call_id, call);
        let policy = session.policy(result.tool);
        let source = Source {
            id,
            tool,
            policy,
            previewer: policy.previewer(tool, || call().arguments),
            length: policy.stub_length,
            subject,
            problem: OnceCell::new(),
        };
        (source, failure)
    }

    /// Proposes to replace an item by lines, if that is expected to be a gain.
    fn propose(&mut self, mut edit: SlotEdit, lines: Vec<Line>, failure: Option<DecisionFailure>) {
        edit.decision.fail_first(failure);
        let put = edit.substitute(&expected(&lines));
        let is_gain = edit.try_resize(&self.pass.session.meter, &put);
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
            return Ok(SlotEdit::kept(item, Reason::AlreadyHint));
        }
        let call = self.slots.call_of(item);
        let outcome = ToolOutcome {
            call: call.clone(),
            parts: item.parts().iter().map(|part| (*part).into()).collect(),
            is_error: item.grounds.is_error,
        };
        let handled = guard("the clear handler", || handler.handle(outcome)).map_err(Some)?;
        let replacement = match handled {
            Action::Default => return Err(None),
            Action::Keep => return Ok(SlotEdit::kept(item, Reason::Handler)),
            Action::Replace(replacement) => replacement,
        };
        let arguments = match &replacement.arguments {
            Some(text) => self.arguments(item, text).map_err(Some)?,
            None => None,
        };
        let session = self.pass.session;
        let (mut failure, mut store) = (None, None);
        if let (Some(content), Some(backend)) =
            (&replacement.content, session.policy(item.tool).backend())
        {
            let (id, wrong) = session.id_for(Phase::Clear, &replacement, &call);
            failure = wrong;
            let digest = digest(content);
            let target = self.stubs.target(&id, &id.name_of(&digest), &digest);
            store = Some((Arc::clone(backend), target));
        }
        let location = store
            .as_ref()
            .map(|(backend, target)| target.expected(backend));
        let shown = replacement.show(location.as_ref()).map_err(Some)?;
        let outcome = match store {
            Some(_) => Outcome::Replaced,
            None => Outcome::Lost,
        };
        let mut edit = SlotEdit::new(item, outcome);
        edit.content = Content::Given(Box::new(replacement), store);
        edit.resize(&session.meter, &Substitute::Parts(shown));
        edit.decision.fail_first(failure);
        if let Some(mut arguments) = arguments {
            arguments.decision.outcome = outcome;
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
        let put = Substitute::Arguments(text.to_owned());
        let mut edit = SlotEdit::new(item, Outcome::Replaced);
        edit.resize(&self.pass.session.meter, &put);
        edit.content = Content::Ready(put);
        Ok(Some(edit))
    }
}
