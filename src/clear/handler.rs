//! Decisions of a user's handler about old results: made in a plan, stored when it is committed.

use std::sync::Arc;

use crate::backend::layout::Phase;

use super::edit::{Content, Given, SlotEdit};
use super::pass::{NotDone, Pass};
use super::planner::Planner;
use crate::decisions::Substitute;
use crate::format::owned::owned;
use crate::guard::guard;
use crate::handler::{Action, ClearHandler, HandlerError, ToolOutcome};
use crate::report::{Decision, ErrorSource, Outcome, Reason};
use crate::slots::{bytes_of, tokens_of};

/// Asks the handler about the result at `at`. `Err` asks for the default treatment, with the
/// handler's error if it made one.
pub(super) fn decide_given(
    planner: &mut Planner<'_>,
    handler: &dyn ClearHandler,
    at: usize,
) -> Result<SlotEdit, Option<HandlerError>> {
    let slots = planner.slots;
    let (slot, item) = (&slots.outline.slots[at], &slots.results[at]);
    if item.id.digest != item.grounds.print.digest() {
        return Ok(SlotEdit::kept(item, Reason::AlreadyHint));
    }
    let call = slots.call_of(slot);
    let outcome = ToolOutcome {
        call: call.clone(),
        parts: slot.parts.iter().map(|part| owned(*part)).collect(),
        is_error: slot.head.is_error,
    };
    let handled = guard("the clear handler", || handler.handle(outcome)).map_err(Some)?;
    let replacement = match handled {
        Action::Default => return Err(None),
        Action::Keep => return Ok(SlotEdit::kept(item, Reason::Handler)),
        Action::Replace(replacement) => replacement,
    };
    let arguments = match &replacement.arguments {
        Some(text) => arguments(planner, at, text).map_err(Some)?,
        None => None,
    };
    let session = &planner.pass.session;
    let (mut failure, mut store) = (None, None);
    if let (Some(content), Some(backend)) =
        (&replacement.content, session.policy(item.tool).backend())
    {
        let (id, wrong) = match &replacement.id {
            None => session.id_of(Phase::Clear, &call.id, || call.clone()),
            Some(id) => session.given_id(id, &call.id, ErrorSource::Handler),
        };
        failure = wrong;
        let target = planner.stubs.target(&id, &id.name_of(content), content);
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
    let given = Box::new(Given { replacement, store });
    let mut edit = SlotEdit::new(item, outcome, Content::Given(given));
    edit.resize(&session.meter, &Substitute::Parts(shown));
    edit.decision.fail_first(failure);
    if let Some(mut arguments) = arguments {
        arguments.decision.outcome = outcome;
        planner.taken.insert(arguments.place);
        edit.arguments = Some(Box::new(arguments));
    }
    Ok(edit)
}

/// Edits the arguments of the call that the result at `at` answers; `None` if they stay.
fn arguments(
    planner: &Planner<'_>,
    at: usize,
    text: &str,
) -> Result<Option<SlotEdit>, HandlerError> {
    let slots = planner.slots;
    let Some(at) = slots.outline.slots[at].call else {
        return Ok(None);
    };
    if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
        return Err(
            "the clear handler returned arguments that are not valid JSON: return a JSON text"
                .into(),
        );
    }
    let (call, item) = (&slots.outline.calls[at], &slots.calls[at]);
    // If a call has several results, the first one decides about its arguments.
    if call.call.is_signed || call.call.is_fixed || planner.taken.contains(&item.place) {
        return Ok(None);
    }
    let put = Substitute::Arguments(text.to_owned());
    let mut edit = SlotEdit::new(item, Outcome::Replaced, Content::Kept);
    edit.resize(&planner.pass.session.meter, &put);
    edit.content = Content::Ready(put);
    Ok(Some(edit))
}

impl Given {
    /// Stores the content, if there is any, and returns the replacement of the result.
    pub(super) async fn store(
        self,
        pass: &Pass,
        decision: &mut Decision,
    ) -> Result<Substitute, NotDone> {
        let mut location = None;
        if let (Some((backend, target)), Some(content)) =
            (&self.store, self.replacement.content.clone())
        {
            location = pass.store(backend, target, content, decision).await?;
        }
        let parts = self.replacement.show(location.as_ref()).map_err(|error| {
            decision.fail(ErrorSource::Handler.said(&error));
            NotDone::Kept(Reason::Handler)
        })?;
        let (put, meter) = (Substitute::Parts(parts), &pass.session.meter);
        decision.resize(bytes_of(&put), tokens_of(&put, meter));
        decision.locations.extend(location);
        Ok(put)
    }
}
