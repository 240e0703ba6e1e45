//! A clear pass over a borrowed conversation, whose messages stay as they are: it decides, once what is stored where
//! hints of ours lead has been read, it stores, and it shows the replacements. Changing the messages is left to
//! `apply`, which does no I/O and can't fail (L2).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::count::count;
use super::lines::{Content, Line, Origin, SlotEdit};
use super::plan::{Bounds, Old, Planner, length_of};
use crate::backend::content::Target;
use crate::backend::{Backend, BackendError, ErrorKind, Location};
use crate::config::Policy;
use crate::content::Part;
use crate::decisions::{Decided, Moment, WrittenPart};
use crate::error::OffloadError;
use crate::format::PartRef;
use crate::handler::Replacement;
use crate::hint::{Draft, Kind};
use crate::middleware::Turn;
use crate::ours::{ApparentHint, SEVERAL};
use crate::preview::Previewer;
use crate::preview::text::decoding::text_of;
use crate::read_back::{shows_only, texts_in};
use crate::report::{
    CountKind, Decision, ErrorSource, Outcome, Reason, Report, Subject, TokenCount,
};
use crate::rounds::last_turn;
use crate::session::Session;
use crate::slots::{Anchor, Memory, Overlay, Place, Slots};

/// Number of edits that ask stores at once.
const AT_ONCE: usize = 8;

/// Makes a pass before this `turn` over the conversation that `overlay` shows. Many new texts are counted on another
/// thread. Content that was stored before an error stays stored. Returns the report, which is not passed to observers yet,
/// and what was decided about which places.
pub(crate) async fn pass(
    session: &Session,
    memory: &Memory,
    turn: &Turn<'_>,
    overlay: &mut Overlay<'_>,
) -> Result<(Report, Vec<(Place, Decided)>), OffloadError> {
    let bounds = Bounds::of(&session.settings, turn);
    let stores = Stores {
        session,
        down: Mutex::default(),
    };
    let (mut tokens, mut anchor, mut edits) = (None, None, Vec::new());
    if session.clears() && !turn.repeats_only {
        // The last request ended where the last assistant turn begins.
        anchor = turn.last_usage.and_then(|usage| {
            let last_turn = last_turn(overlay)?;
            Some(Anchor { usage, last_turn })
        });
        let saved = anchor.map_or(0, |anchor| memory.known().saved_since(anchor));
        let (from, tools, usage) = match anchor {
            Some(anchor) => (anchor.last_turn, &[][..], anchor.usage),
            None => (0, turn.tools, 0),
        };
        let mut slots = Slots::of(overlay, from, &memory.known().originals);
        // Tokens that may have been added since.
        let limit = bounds.threshold.saturating_add(saved).checked_sub(usage);
        let (new, count_kind) = count(&session.meter, overlay, &slots, tools, limit).await;
        let counted = usage.saturating_add(new).saturating_sub(saved);
        tokens = Some(TokenCount {
            counted,
            count_kind,
            threshold: match bounds.threshold {
                0 => session.settings.max_tokens_for_clear,
                threshold => threshold,
            },
            usage: anchor.map(|anchor| anchor.usage),
        });
        if counted > bounds.threshold && count_kind == CountKind::Counted {
            if from > 0 {
                slots = Slots::of(overlay, 0, &memory.known().originals);
            }
            let slots = slots.counted(&session.meter);
            let taken = overlay.passed.clone();
            let mut planner =
                Planner::new(session, bounds, &memory.known(), &slots, taken, counted);
            let mut compared = Vec::new();
            for old in &mut planner.old {
                compared.push(compare(&stores, &slots, old));
            }
            let compared = stream::iter(compared).buffered(AT_ONCE);
            compared.collect::<()>().await;
            edits = planner.draft(counted);
        }
    }
    commit(&stores, bounds.at_least, &mut edits).await?;
    let mut known = memory.known();
    let (mut report, mut new) = (Report::default(), Vec::new());
    for edit in edits {
        // No later pass will replace it either.
        if let (Outcome::Kept(reason), None) = (edit.decision.outcome, &edit.decision.error)
            && let Reason::AlreadyHint | Reason::Unverified | Reason::NoGain = reason
        {
            known.settled.insert(edit.grounds, reason);
        }
        let mut next = Some(edit);
        while let Some(mut edit) = next {
            next = edit.arguments.take().map(|arguments| *arguments);
            if let Content::Ready(put) = edit.content {
                let decided = Decided {
                    slot: edit.id,
                    moment: Moment::Pass,
                    put: put.iter().cloned().map(WrittenPart::New).collect(),
                    locations: edit.decision.locations.clone(),
                };
                if overlay.show(edit.place, put) {
                    new.push((edit.place, decided));
                }
            }
            report.decisions.push(edit.decision);
        }
    }
    report.tokens = tokens;
    if let Some(anchor) = anchor {
        known.record_saved(anchor, report.cleared_input_tokens());
    }
    if !known.has_told {
        report.notice = report.beyond_help(session.settings.max_tokens_for_clear);
        known.has_told = report.notice.is_some();
    }
    Ok((report, new))
}

/// Stores what is to leave the conversation, in the edits, which must free `at_least` tokens. Fails if the store
/// failed and `on_offload_error` is `Fail`.
async fn commit(
    stores: &Stores<'_>,
    at_least: u64,
    edits: &mut [SlotEdit],
) -> Result<(), OffloadError> {
    give_up_if_too_little(at_least, edits);
    let mut stored = Vec::new();
    for edit in &mut *edits {
        stored.push(store(stores, edit));
    }
    let stored = stream::iter(stored).buffered(AT_ONCE);
    let stored: Vec<_> = stored.collect().await;
    stored.into_iter().collect::<Result<(), _>>()?;
    // Stored content stays stored, and is found again once a pass is worth it.
    give_up_if_too_little(at_least, edits);
    Ok(())
}

/// Keeps everything if the whole pass frees too little.
fn give_up_if_too_little(at_least: u64, edits: &mut [SlotEdit]) {
    let going = edits.iter().filter(|edit| edit.goes());
    if going.map(SlotEdit::freed).sum::<i128>().max(0) < i128::from(at_least) {
        for edit in edits.iter_mut().filter(|edit| edit.goes()) {
            edit.keep(Reason::TooLittle);
        }
    }
}

/// Compares with the store what looks like hints of ours in an old result or text. Hints that show only what is stored
/// there get their lines; anything else is an ordinary text.
async fn compare(stores: &Stores<'_>, slots: &Slots<'_>, old: &mut Old<'_>) {
    for (part, number) in old.item.content.parts().iter().zip(1..) {
        let PartRef::Text(text) = part else {
            continue;
        };
        match compare_text(stores, slots, old, text).await {
            Ok(line) => old.hints.extend(line.map(|line| (number, line))),
            Err(reason) => return old.edit.keep(reason),
        }
    }
}

/// The line for a text of hints; `None` for an ordinary text. `Err` if the store can't tell.
async fn compare_text(
    stores: &Stores<'_>,
    slots: &Slots<'_>,
    old: &mut Old<'_>,
    text: &str,
) -> Result<Option<Line>, Reason> {
    let policy = stores.session.policy(old.item.tool);
    let Some(own) = stores.session.apparent_hints(policy, text) else {
        return Ok(None);
    };
    let stored = own.iter().filter_map(|own| own.stored.as_ref());
    let keys: Vec<_> = stored.map(|stored| &stored.key).collect();
    let is_listed_twice = keys.iter().collect::<HashSet<_>>().len() < keys.len();
    let nowhere = own.iter().filter(|own| own.stored.is_none());
    let nowhere: usize = nowhere.map(|own| own.hint.render().len() + 1).sum();
    // Ours name each content once, and few that are gone.
    if text.len() > SEVERAL && is_listed_twice || nowhere > old.room {
        return Ok(None);
    }
    old.room -= nowhere;
    let previewer = policy.previewer(old.item.tool, || slots.call_of(old.item).arguments);
    let (mut texts, mut locations) = (Vec::with_capacity(own.len()), Vec::new());
    for own in own {
        let decision = &mut old.edit.decision;
        let Some(shorter) = shorten(stores, policy, &previewer, &own, decision).await? else {
            return Ok(None);
        };
        texts.push(shorter);
        locations.extend(own.stored.map(|stored| stored.location));
    }
    let (text, origin) = (texts.join("\n"), Origin::There(locations));
    Ok(Some(Line { text, origin }))
}

/// The hint that takes the place of one of ours; `None` if that shows something else than what is stored. One that
/// leads nowhere stays.
async fn shorten(
    stores: &Stores<'_>,
    policy: &Policy,
    previewer: &Previewer,
    own: &ApparentHint,
    decision: &mut Decision,
) -> Result<Option<String>, Reason> {
    let (session, hint) = (stores.session, &own.hint);
    let Some(stored) = &own.stored else {
        return Ok(Some(hint.render()));
    };
    let was_previewed_in = policy.preview_length.bytes_for(hint.bytes);
    let is_short = hint.preview.len() <= was_previewed_in;
    let content = match stores.ask(&stored.backend, stored.whole(), decision).await {
        Ok(Some(content)) => content,
        // Too large to compare. A hint no longer than one of ours may be left alone.
        Ok(None) if is_short && matches!(hint.kind, Kind::Truncated | Kind::Cleared) => {
            return Err(Reason::Unverified);
        }
        Ok(None) => return Ok(None),
        Err(Some(error)) if error.kind() == ErrorKind::NotFound => return Ok(None),
        // The store can't tell. Nothing has to be stored here, so this is not a failed offload.
        Err(error) => {
            if let Some(error) = error {
                decision.fail(ErrorSource::Store, error.to_string());
            }
            return Err(Reason::StoreFailed);
        }
    };
    let of_user = |text: &str| previewer.own(text, was_previewed_in)?.ok();
    if !shows_only(hint, &content, of_user) {
        return Ok(None);
    }
    // At most what is shown now: text that was not worth showing then is not worth it now. The words of a page say
    // which lines it showed, so no others stand below them.
    let budget = match hint.kind {
        Kind::Page { .. } | Kind::Matches => 0,
        _ => {
            let length = length_of(policy, decision.subject);
            length.bytes_for(hint.bytes).min(hint.preview.len())
        }
    };
    let mut draft = Draft {
        hint: hint.clone(),
        subject: decision.subject,
        ..Draft::new(hint.kind, hint.bytes, &decision.tool, String::new())
    };
    // Words of our own are said anew. Others stay, since they may say something that is said nowhere else.
    if session.prose.is_usual(&draft, session.reader()) {
        draft.hint.prose.clear();
    }
    draft.hint.kind = Kind::Cleared;
    if hint.kind != Kind::Cleared || hint.preview.len() > budget {
        let text = texts_in(hint, &content).unwrap_or(&content);
        let (preview, problem) = previewer.show(&text_of(text), text.len(), budget);
        decision.fail_first(ErrorSource::Callback, problem);
        draft.hint.preview = preview;
    }
    Ok(Some(session.hint(draft, Some(stored.location.clone()))))
}

/// Stores the content of an edit, which is then ready, or stays as it is.
async fn store(stores: &Stores<'_>, edit: &mut SlotEdit) -> Result<(), OffloadError> {
    let put = match std::mem::replace(&mut edit.content, Content::Kept) {
        Content::Lines(lines) => store_lines(stores, edit, lines).await,
        Content::Given(replacement, store) => store_given(stores, edit, &replacement, store).await,
        content @ (Content::Kept | Content::Ready(_)) => {
            edit.content = content;
            return Ok(());
        }
    };
    match put {
        Ok(put) => {
            edit.content = Content::Ready(put);
            if let Some(arguments) = &mut edit.arguments {
                arguments.decision.outcome = edit.decision.outcome;
            }
        }
        Err(NotDone::Kept(reason)) => edit.keep(reason),
        Err(NotDone::Failed(error)) => return Err(error),
    }
    Ok(())
}

async fn store_lines(
    stores: &Stores<'_>,
    edit: &mut SlotEdit,
    mut lines: Vec<Line>,
) -> Result<Vec<Part>, NotDone> {
    for line in &mut lines {
        match &line.origin {
            Origin::New {
                backend,
                target,
                content,
                draft,
            } => {
                let decision = &mut edit.decision;
                let save = stores.save(backend, target, content.clone(), decision);
                let location = save.await?;
                line.text = stores.session.hint((**draft).clone(), location.clone());
                edit.decision.locations.extend(location);
            }
            Origin::There(at) => edit.decision.locations.extend(at.iter().cloned()),
            Origin::Itself => {}
        }
    }
    let put = edit.replacement(&lines);
    // The store has chosen the name, or has failed.
    if !edit.resize(&stores.session.meter, &put) {
        return Err(NotDone::Kept(Reason::NoGain));
    }
    Ok(put)
}

/// Stores the content of a handler's replacement, if there is any.
async fn store_given(
    stores: &Stores<'_>,
    edit: &mut SlotEdit,
    replacement: &Replacement,
    store: Option<(Arc<dyn Backend>, Target)>,
) -> Result<Vec<Part>, NotDone> {
    let mut location = None;
    if let (Some((backend, target)), Some(content)) = (store, replacement.content.clone()) {
        let decision = &mut edit.decision;
        location = stores.save(&backend, &target, content, decision).await?;
    }
    let put = replacement.show(location.as_ref()).map_err(|error| {
        edit.decision.fail(ErrorSource::Handler, error.to_string());
        NotDone::Kept(Reason::Handler)
    })?;
    edit.resize(&stores.session.meter, &put);
    edit.decision.locations.extend(location);
    Ok(put)
}

/// The stores of a session, during one pass. One that is down is not asked again: a pass runs before every model call and
/// should not wait for it again and again.
struct Stores<'a> {
    session: &'a Session,
    /// Those that were unavailable, by their addresses in memory.
    down: Mutex<HashSet<usize>>,
}

/// Reason for not making an edit.
enum NotDone {
    /// The slot stays as it is.
    Kept(Reason),
    /// The store failed, and so must the pass.
    Failed(OffloadError),
}

impl Stores<'_> {
    /// Awaits a store's answer. `Err(None)` if it was unavailable before and is not asked, as the decision then says.
    async fn ask<T>(
        &self,
        store: &Arc<dyn Backend>,
        answer: impl Future<Output = Result<T, BackendError>>,
        decision: &mut Decision,
    ) -> Result<T, Option<BackendError>> {
        let address = Arc::as_ptr(store).cast::<()>().addr();
        let down = || self.down.lock().unwrap_or_else(PoisonError::into_inner);
        if down().contains(&address) {
            let error = "not tried: the store was unavailable during this pass";
            decision.fail(ErrorSource::Store, error);
            return Err(None);
        }
        let answer = answer.await;
        if matches!(&answer, Err(error) if error.kind() == ErrorKind::Unavailable) {
            down().insert(address);
        }
        answer.map_err(Some)
    }

    /// Stores `content` and returns its location; `None` if the store failed and the settings allow
    /// the loss. Content that the store was not asked to save is never given up.
    async fn save(
        &self,
        store: &Arc<dyn Backend>,
        target: &Target,
        content: Bytes,
        decision: &mut Decision,
    ) -> Result<Option<Location>, NotDone> {
        let save = target.save(store, content);
        let rule = self.session.settings.on_offload_error;
        let is_kept = match self.ask(store, save, decision).await {
            Ok(location) => return Ok(Some(location)),
            Err(Some(error)) => rule.decide(decision, error).map_err(NotDone::Failed)?,
            Err(None) => true,
        };
        // Nobody can be asked again for what a user has said.
        if is_kept || decision.subject == Subject::UserText {
            return Err(NotDone::Kept(Reason::StoreFailed));
        }
        decision.outcome = Outcome::Lost;
        Ok(None)
    }
}
