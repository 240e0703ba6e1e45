//! The clear pass: before a model call, over the token threshold, old results are stored and
//! replaced by hints.
//!
//! 1. **Repeat**: if the loop passed originals in again, the replacements of earlier passes are put over them
//!    (`slots/repeat.rs`). The pass then goes over what is shown.
//! 2. **Count** (`scan.rs`): one visit of the conversation gives its tokens. Nothing is counted if
//!    its bytes alone prove that it is under the threshold. If the
//!    loop knows the provider's last count, only the messages after it are counted.
//! 3. **Compare with the threshold** (`plan.rs`). If the count is at or below
//!    the threshold, nothing is cleared. If it is above, each old result is
//!    proposed for clearing (`propose.rs`), along with its call's arguments if those are
//!    cleared too. A result is left alone if the model has not answered it, if it is in the newest
//!    rounds, if a policy excludes it, or if a hint gains nothing. A user's handler may decide
//!    otherwise.
//!
//! The result is a [`Plan`], made without I/O.
//!
//! 4. **Commit** (`commit.rs`): apparent hints of ours are compared with the store (`shorten.rs`);
//!    everything else is stored, eight at a time. If a store fails, `on_offload_error` decides: by
//!    default the result stays. After several failures in a row, a store is not asked again
//!    (`outages.rs`). A pass that would free less than `clear_at_least_tokens` clears nothing. No
//!    message is touched.
//! 5. **Apply** (`apply.rs`): makes the edits over the conversation, whose messages are then changed. That cannot fail.
//!    The conversation is borrowed from plan to end, so nothing can have changed meanwhile. The memory learns the new
//!    replacements.
//!
//! Throughout, each result and each call's arguments is one `SlotEdit`, which alone holds the decision
//! about it. The line that replaces it is a `Line` (`stub.rs`). The report is collected from the
//! edits at the end.

mod apply;
mod commit;
mod edit;
mod outages;
mod pass;
mod plan;
mod propose;
mod scan;
mod shorten;
mod stub;

use std::collections::HashSet;

use crate::error::OffloadError;
use crate::format::Conversation;
use crate::middleware::Turn;
use crate::report::{Report, Subject};
use crate::session::Session;
use crate::slots::{Memory, Overlay, Place, Repeated, Slots, repeat};
use pass::Pass;
use scan::count;

use apply::Committed;
use plan::Plan;
pub(crate) use scan::count_tokens;

/// Makes a whole pass. It borrows the conversation throughout, so nothing changes between plan and
/// apply. The report is not passed to observers yet.
pub(crate) async fn clear(
    session: &Session,
    memory: &Memory,
    turn: &mut Turn<'_>,
) -> Result<Report, OffloadError> {
    let (mut repeated, mut overlay) = repeated(session, memory, &*turn.conversation);
    let over = Turn {
        conversation: &mut overlay,
        ..*turn
    };
    let taken = std::mem::take(&mut repeated.passed);
    let committed = commit_over(session, memory, &over, taken).await?;
    let (mut report, new) = committed.apply(&mut overlay);
    let puts = overlay.puts;
    puts.apply(turn.conversation);
    memory.replace(new, turn.conversation);
    report.decisions.extend(repeated.decisions);
    let decisions = &mut report.decisions;
    decisions.sort_by_key(|decision| (decision.message, decision.subject == Subject::Result));
    Ok(report)
}

/// Plans and commits a pass over what is shown now, in which places that are `taken` have been decided about.
/// Repeats nothing.
pub(crate) async fn commit_over<'a>(
    session: &'a Session,
    memory: &'a Memory,
    turn: &Turn<'_>,
    taken: HashSet<Place>,
) -> Result<Committed<'a>, OffloadError> {
    let pass = Pass::new(session, memory, turn);
    // Many new texts are counted on another thread.
    let count = if turn.repeats_only {
        None
    } else {
        count(&pass, turn).await
    };
    Plan::new(pass, &*turn.conversation, taken, count)
        .commit()
        .await
}

/// Puts what earlier passes decided over a conversation. Counts tokens only if there is anything to repeat.
fn repeated<'c>(
    session: &Session,
    memory: &Memory,
    conversation: &'c dyn Conversation,
) -> (Repeated, Overlay<'c>) {
    let known = memory.known();
    let mut overlay = Overlay::new(conversation);
    if !session.clears() || known.decisions.is_empty() {
        return (Repeated::default(), overlay);
    }
    let slots = Slots::of(conversation, &known.originals);
    let mut items = slots.items.iter();
    if !items.any(|item| known.decided_about(item).is_some()) {
        return (Repeated::default(), overlay);
    }
    let slots = slots.counted(&session.meter);
    let repeated = repeat(session, &known, &slots, &mut overlay);
    (repeated, overlay)
}
