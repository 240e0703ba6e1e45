//! What a user's handler wants to be done with an old result: decided in a plan, stored when it is
//! committed.

use std::sync::Arc;

use serde_json::Value;

use super::choice::tokens;
use super::decisions::{call_decision, call_of};
use super::known::{All, part_bytes};
use super::ledger::Put;
use super::lines::{decode, raw};
use super::outages::{NotDone, Outages};
use super::planner::{Candidate, Planner};
use super::{Action, Edit, Given, GivenArguments, Place, Ready};
use crate::content::Part;
use crate::format::{JsonRef, PartRef};
use crate::guard::guard;
use crate::handler::{ClearHandler, Detail, Handled, HandlerError};
use crate::report::{Change, Decision, Outcome, Reason, Sum};
use crate::session::Session;
use crate::store::Phase;
use crate::tokens::Meter;

impl Planner<'_> {
    /// Does with the result at `at` what the handler wants. `Err` is the default treatment, with
    /// what the handler did wrong.
    pub(super) fn decide_given(
        &mut self,
        handler: &dyn ClearHandler,
        all: &All<'_>,
        at: usize,
        decision: &mut Decision,
    ) -> Result<(), Option<HandlerError>> {
        let (slot, known) = (&all.outline.slots[at], &all.results[at]);
        if self.ledger.has_put(known.original.print) {
            self.keep_given(decision, Reason::AlreadyHint);
            return Ok(());
        }
        let call = call_of(&all.outline, slot);
        let parts = slot.parts.iter().map(|part| owned(*part)).collect();
        let detail = Detail {
            call: call.clone(),
            parts,
            is_error: slot.head.is_error,
        };
        let replacement =
            match guard("the clear handler", || handler.handle(detail)).map_err(Some)? {
                Handled::Default => return Err(None),
                Handled::Keep => {
                    self.keep_given(decision, Reason::Handler);
                    return Ok(());
                }
                Handled::Replace(replacement) => replacement,
            };
        let arguments = self
            .given_arguments(all, at, replacement.arguments.clone())
            .map_err(Some)?;
        let backend = self.session.policy(&decision.tool).backend().cloned();
        let store = match (&replacement.content, backend) {
            (Some(content), Some(backend)) => {
                let (id, problem) = match &replacement.id {
                    None => self.session.id_of(Phase::Clear, &call.id, || call.clone()),
                    Some(id) => self.session.given_id(id, &call.id),
                };
                decision.error = decision.error.take().or(problem);
                let target = self.liner.target(&id, &id.name_of(content), content);
                Some((backend, target))
            }
            _ => None,
        };
        let location = store
            .as_ref()
            .map(|(backend, target)| target.locations(backend)[0].clone());
        let shown = replacement.show(location.as_ref()).map_err(Some)?;
        decision.outcome = if store.is_some() {
            Outcome::Replaced
        } else {
            Outcome::Lost
        };
        decision.resize(self.session.meter(), &shown);
        let index = self.report.decisions.len();
        self.report.decisions.push(decision.clone());
        let arguments = arguments.map(|mut arguments| {
            arguments.decision.outcome = decision.outcome;
            arguments.index = self.report.decisions.len();
            self.report.decisions.push(arguments.decision.clone());
            self.repeated.insert(arguments.place);
            Box::new(arguments)
        });
        let place = Place::Result {
            message: slot.message,
            slot: slot.slot,
        };
        let given = Given {
            replacement,
            store,
            arguments,
        };
        let tokens = given.tokens(decision);
        let action = Action::Given(decision.clone(), Box::new(given));
        let edit = Edit {
            decision: index,
            place,
            original: known.original.clone(),
            action,
        };
        self.candidates.push(Candidate { edit, tokens });
        Ok(())
    }

    fn keep_given(&mut self, decision: &mut Decision, reason: Reason) {
        decision.keep(reason);
        self.report.decisions.push(decision.clone());
    }

    fn given_arguments(
        &self,
        all: &All<'_>,
        at: usize,
        text: Option<String>,
    ) -> Result<Option<GivenArguments>, HandlerError> {
        let (Some(text), Some(call)) = (text, all.outline.slots[at].call) else {
            return Ok(None);
        };
        if serde_json::from_str::<serde::de::IgnoredAny>(&text).is_err() {
            return Err("the clear handler's arguments are no JSON: providers refuse them".into());
        }
        let (call, known) = (&all.outline.calls[call], &all.calls[call]);
        let place = Place::Arguments {
            message: call.message,
            call: call.call,
        };
        // Of several results for one call, the first says what its arguments become.
        if call.is.is_signed || call.is.is_fixed || self.repeated.contains(&place) {
            return Ok(None);
        }
        let mut decision = call_decision(call, known);
        decision.bytes.after = text.len() as u64;
        let tokens = self.session.meter().text(&text);
        decision.tokens = decision.tokens.map(|change| Change {
            after: tokens,
            ..change
        });
        Ok(Some(GivenArguments {
            index: 0,
            decision,
            place,
            original: known.original.clone(),
            text,
        }))
    }
}

impl Given {
    /// The tokens that it changes, with the arguments.
    pub(super) fn tokens(&self, decision: &Decision) -> Sum {
        let arguments = self
            .arguments
            .as_ref()
            .and_then(|arguments| arguments.decision.tokens);
        tokens(decision.tokens).plus(tokens(arguments))
    }

    /// Stores what is to be stored, and says what is put where. `Err` is why the result stays as it
    /// is.
    pub(super) async fn save(
        self,
        session: &Session,
        outages: &Outages,
        index: usize,
        decision: &mut Decision,
        place: Place,
        original: super::Origin,
    ) -> Result<Vec<Ready>, NotDone> {
        let mut location = None;
        if let (Some((backend, target)), Some(content)) =
            (&self.store, self.replacement.content.clone())
        {
            match outages.ask(backend, target.save(backend, content)).await {
                Ok(saved) => location = Some(saved),
                Err(none) => none.settle(session.settings().on_offload_error, decision)?,
            }
        }
        let parts = match self.replacement.show(location.as_ref()) {
            Ok(parts) => parts,
            Err(error) => {
                decision.error = Some(error.to_string());
                return Err(NotDone::Kept(Reason::Handler));
            }
        };
        decision.resize(session.meter(), &parts);
        decision.locations.extend(location);
        let result = Arc::new(Put::Parts(parts));
        let with = self.arguments.as_ref().map(|arguments| arguments.index);
        let mut ready = vec![Ready {
            decision: index,
            place,
            original,
            replacement: result,
            is_repeat: false,
            with,
        }];
        ready.extend(self.arguments.map(|arguments| {
            let GivenArguments {
                index: decision,
                place,
                original,
                text,
                ..
            } = *arguments;
            let replacement = Arc::new(Put::Arguments(text));
            Ready {
                decision,
                place,
                original,
                replacement,
                is_repeat: false,
                with: Some(index),
            }
        }));
        Ok(ready)
    }
}

impl Decision {
    /// `parts` are put there.
    fn resize(&mut self, meter: &Meter, parts: &[Part]) {
        self.bytes.after = parts.iter().map(|part| part_bytes(part.into())).sum();
        let tokens = parts
            .iter()
            .map(|part| meter.part(part.into()))
            .fold(0, u64::saturating_add);
        self.tokens = self.tokens.map(|change| Change {
            after: tokens,
            ..change
        });
    }
}

/// A part as a handler gets it. JSON that can't be read as a value is given as its text.
pub(super) fn owned(part: PartRef<'_>) -> Part {
    let read = |json: JsonRef<'_>, part: fn(Value) -> Part| {
        json.to_value().map_or_else(|| text_of(json), part)
    };
    match part {
        PartRef::Text(text) => Part::Text(text.to_owned()),
        PartRef::Json(json) => read(json, Part::Json),
        PartRef::Media { mime, data } => {
            // Base64 that is none is given as the text that it is.
            let bytes = decode(data).unwrap_or_else(|| raw(data));
            Part::Media {
                mime: mime.to_owned(),
                data: bytes,
            }
        }
        PartRef::Link { mime, url } => Part::Link {
            mime: mime.map(str::to_owned),
            url: url.to_owned(),
        },
        PartRef::Opaque(json) => read(json, Part::Opaque),
    }
}

/// A part as a transcript holds it, which says all that the message says: JSON that a value would
/// spell in another way is its text.
pub(super) fn transcribed(part: PartRef<'_>) -> Part {
    let spelled = match part {
        PartRef::Json(json) | PartRef::Opaque(json) => Some(text_of(json)),
        PartRef::Text(_) | PartRef::Media { .. } | PartRef::Link { .. } => None,
    };
    match (spelled, owned(part)) {
        (Some(spelled), Part::Json(value) | Part::Opaque(value))
            if Part::Text(value.to_string()) != spelled =>
        {
            spelled
        }
        (_, part) => part,
    }
}

fn text_of(json: JsonRef<'_>) -> Part {
    Part::Text(json.to_string())
}
