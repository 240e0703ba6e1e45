//! The clear pass: before a model call, over the token threshold, old results are stored and
//! replaced by hints.
//!
//! 1. **Count** (`scan.rs`): one visit of the conversation gives its tokens. Where its bytes alone
//!    prove that it is under the threshold, nothing is counted, unless costs are looked at; where
//!    the loop knows what the provider counted last, only what came since is.
//! 2. **Repeat** (`planner.rs`), whatever the count: where the loop handed in originals again, what
//!    earlier passes put in their place (`ledger.rs`) is put there again. What that saves is taken
//!    off the count.
//! 3. **Compare with the threshold** (`plan.rs`). With `cost_aware`, whole results become previews
//!    where that pays (`previews.rs`, `cost.rs`), if what they save keeps the count at or below the
//!    threshold. If it does not, none does, and each old result is proposed instead (`propose.rs`),
//!    and its call's arguments where they are cleared too: not what the model has not answered, nor
//!    the newest rounds, nor what a policy excludes, nor what gains nothing. A user's handler may
//!    decide otherwise (`handler.rs`).
//!
//! So far a [`Plan`] is decided without I/O. It says what is expected.
//!
//! 4. **Commit** (`commit.rs`): [`Plan::commit`] takes all that is proposed, or the oldest of it
//!    until a target is reached. What looks like a hint of ours is compared with what is stored
//!    (`shorten.rs`); all else is stored, eight at a time. Where a store fails, `on_offload_error`
//!    says what that means (`pass.rs`): by default the result stays, and towards a target the next
//!    one goes. A pass that would free less than `clear_at_least_tokens` clears nothing
//!    (`choice.rs`). No message is touched.
//! 5. **Apply** (`apply.rs`): [`Committed::apply`] changes the messages, and cannot fail. What was
//!    changed since the plan was made is left alone.
//!
//! From the plan to its message a result, or a call's arguments, is one `Edit`, which alone holds
//! the decision about it; the line that takes its place is a `Line` (`stub.rs`). The report is
//! collected from the edits at the end.
//!
//! Where a plan holds something to clear in an old round, a user's rewriter may replace that round
//! as a whole (`rewrite.rs`). It works on a copy, for which a second plan is made; if both together
//! free too little, only what is repeated is put.

mod apply;
mod choice;
mod commit;
mod cost;
mod edit;
mod handler;
mod items;
mod ledger;
mod outages;
mod part;
mod pass;
mod plan;
mod planner;
mod previews;
mod print;
mod propose;
mod rewrite;
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
pub(crate) use ledger::Ledger;
pub use plan::Plan;

/// Makes a whole pass: no one else has the conversation meanwhile, so nothing in it changes between
/// plan and apply. Nobody is shown the report yet.
pub(crate) async fn clear(
    session: &Session,
    ledger: &Arc<Mutex<Ledger>>,
    turn: &mut Turn<'_>,
) -> Result<Report, OffloadError> {
    let pass = Pass::new(session, ledger);
    let scan = Scan::counted_elsewhere(&pass, turn).await;
    let plan = Plan::new(pass, turn, scan, 0);
    if turn.conversation.rewrite().is_some() {
        return rewrite::rewrite(plan, turn).await;
    }
    let committed = plan.commit().await?;
    Ok(committed.put(turn.conversation))
}

/// Plans a pass, and counts on this thread what is new.
pub(crate) fn plan(session: &Session, ledger: &Arc<Mutex<Ledger>>, turn: &Turn<'_>) -> Plan {
    let pass = Pass::new(session, ledger);
    let scan = Scan::counted(&pass, turn);
    Plan::new(pass, turn, scan, 0)
}
