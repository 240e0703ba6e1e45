//! The clear pass: before a model call, over the token threshold, old results are stored and
//! replaced by hints.
//!
//! 1. **Count** (`scan.rs`): one visit of the conversation gives its tokens. Nothing is counted if
//!    its bytes alone prove that it is under the threshold. If the
//!    loop knows the provider's last count, only the messages after it are counted.
//! 2. **Repeat** (`planner.rs`), whatever the count: if the loop passed originals in again, the
//!    replacements of earlier passes (`ledger.rs`) are put back. Their savings are subtracted from
//!    the count.
//! 3. **Compare with the threshold** (`plan.rs`). If the count is at or below
//!    the threshold, nothing is cleared. If it is above, each old result is
//!    proposed for clearing (`propose.rs`), along with its call's arguments if those are
//!    cleared too. A result is left alone if the model has not answered it, if it is in the newest
//!    rounds, if a policy excludes it, or if a hint gains nothing. A user's handler may decide
//!    otherwise (`handler.rs`).
//!
//! The result is a [`Plan`], made without I/O. It says what is expected.
//!
//! 4. **Commit** (`commit.rs`): [`Plan::commit`] takes all proposals, or the oldest until a target
//!    is reached. Apparent hints of ours are compared with the store (`shorten.rs`); everything
//!    else is stored, eight at a time. If a store fails, `on_offload_error` decides (`pass.rs`): by
//!    default the result stays, and if there is a target the next result goes. After several
//!    failures in a row, a store is not asked again (`outages.rs`). A pass that would
//!    free less than `clear_at_least_tokens` clears nothing (`choice.rs`). No message is touched.
//! 5. **Apply** (`apply.rs`): [`Committed::apply`] changes the messages, and cannot fail. Slots
//!    that have changed since the plan was made are left alone. The function `clear` borrows the conversation
//!    from plan to end, so there nothing can have changed, and `put` does without that check. The
//!    ledger learns the new replacements.
//!
//! Throughout, each result and each call's arguments is one `Edit`, which alone holds the decision
//! about it. The line that replaces it is a `Line` (`stub.rs`). The report is collected from the
//! edits at the end.

mod apply;
mod choice;
mod commit;
mod edit;
mod handler;
mod items;
mod ledger;
mod outages;
mod part;
mod pass;
mod plan;
mod planner;
mod print;
mod propose;
mod scan;
mod shorten;
mod stub;

use std::sync::{Arc, Mutex};

use crate::error::OffloadError;
use crate::middleware::Turn;
use crate::report::Report;
use crate::session::Session;
use pass::Pass;
use scan::Scan;

pub use apply::Committed;
pub(crate) use ledger::{Ledger, Substitute, bytes_of};
pub(crate) use part::part_bytes;
pub use plan::Plan;
pub(crate) use print::{Place, ResultPrint, print_of_call, prints_at};

/// Makes a whole pass. It borrows the conversation throughout, so nothing changes between plan and
/// apply. The report is not passed to observers yet.
pub(crate) async fn clear(
    session: &Session,
    ledger: &Arc<Mutex<Ledger>>,
    turn: &mut Turn<'_>,
) -> Result<Report, OffloadError> {
    let pass = Pass::new(session, ledger);
    // Many new texts are counted on another thread.
    let scan = Scan::counted_elsewhere(&pass, turn).await;
    let committed = Plan::new(pass, turn, scan).commit().await?;
    Ok(committed.put(turn.conversation))
}

/// Plans a pass, counting new texts on this thread.
pub(crate) fn plan(session: &Session, ledger: &Arc<Mutex<Ledger>>, turn: &Turn<'_>) -> Plan {
    let pass = Pass::new(session, ledger);
    let scan = Scan::counted(&pass, turn);
    Plan::new(pass, turn, scan)
}
