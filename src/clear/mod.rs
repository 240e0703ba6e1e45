//! The clear pass: before a model call, over the token threshold, old results are stored and
//! replaced by hints.
//!
//! 1. **Repeat**: if the loop passed originals in again, the replacements of earlier passes are put over them
//!    (`slots/overlay.rs`). The pass then goes over what is shown.
//! 2. **Count** (`count.rs`): a reading of the conversation (`slots.rs`) gives its tokens. Nothing is counted if its
//!    bytes alone prove that it is under the threshold. If the loop knows the provider's last count, only the messages
//!    after it are read.
//! 3. **Decide** (`plan.rs`): if the count is above the threshold, each old result is proposed for clearing, along with
//!    its call's arguments if those are cleared too. A result is left alone if the model has not answered it, if it is
//!    in the newest rounds, if a policy excludes it, or if a hint gains nothing. A user's handler may decide otherwise.
//!    What looks like hints of ours is first compared with the store (`pass.rs`).
//! 4. **Commit** (`pass.rs`): what is to go is stored, eight contents at a time. If a store fails, `on_offload_error`
//!    decides: by default the result stays. A store that was unavailable is not asked again. A pass that would free
//!    less than `clear_at_least_tokens` clears nothing. No message is touched.
//! 5. **Apply**: makes the edits over the conversation, whose messages are then changed. That cannot fail.
//!    The conversation is borrowed from plan to end, so nothing can have changed meanwhile. The memory learns the new
//!    replacements.
//!
//! Throughout, each result and each call's arguments is one `SlotEdit`, which alone holds the decision
//! about it. The line that replaces it is a `Line` (`lines.rs`). The report is collected from the
//! edits at the end.

mod count;
mod lines;
mod pass;
mod plan;

use crate::error::OffloadError;
use crate::middleware::Turn;
use crate::report::{Report, Subject};
use crate::session::Session;
use crate::slots::{Memory, Overlay, Slots, apply, repeat};

pub(crate) use count::count_tokens;
pub(crate) use pass::pass;

/// Makes a whole pass. It borrows the conversation throughout, so nothing changes between plan and
/// apply. The report is not passed to observers yet.
pub(crate) async fn clear(
    session: &Session,
    memory: &Memory,
    turn: &mut Turn<'_>,
) -> Result<Report, OffloadError> {
    let conversation = &*turn.conversation;
    let mut overlay = Overlay::new(conversation);
    let mut repeated = Vec::new();
    if session.clears() && !memory.known().decisions.is_empty() {
        let known = memory.known();
        let mut slots = Slots::of(conversation, 0, &known.originals);
        if (slots.items.iter()).any(|item| known.decided_about(item).is_some()) {
            slots = slots.counted(&session.meter);
            repeated = repeat(session, &known, &slots, &mut overlay);
        }
    }
    let (mut report, new) = pass(session, memory, turn, &mut overlay).await?;
    let puts = overlay.puts;
    apply(puts, turn.conversation);
    memory.replace(new, turn.conversation);
    report.decisions.extend(repeated);
    let decisions = &mut report.decisions;
    decisions.sort_by_key(|decision| (decision.message, decision.subject == Subject::Result));
    Ok(report)
}
