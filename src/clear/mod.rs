//! The clear pass: before a model call, over the token threshold, old results are stored and
//! replaced by hints.
//!
//! 1. **Count**: one visit of the conversation gives its tokens (`scan.rs`). Below the threshold
//!    the pass is over.
//! 2. **Repeat** what earlier passes decided, where the loop handed in the originals again.
//! 3. **Choose** the oldest results that have to go (`plan.rs`), or those whose previews pay
//!    (`previews.rs`, `cost.rs`). A [`Plan`] is decided without I/O.
//! 4. **Commit**: [`Plan::commit`] stores their contents. No message is touched.
//! 5. **Apply**: [`Committed::apply`] changes the messages, and cannot fail.
//!
//! From the plan to its message a result is one `Edit`, which alone holds the decision about it.
//! The report is collected from the edits at the end.

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
mod rewrite;
mod scan;
mod shorten;
mod stub;

use std::sync::{Arc, Mutex};

use crate::error::Error;
use crate::middleware::BeforeModel;
use crate::report::Report;
use crate::session::Session;
use pass::Pass;
use scan::Scan;

pub use apply::Committed;
pub(crate) use ledger::Ledger;
pub use plan::Plan;

/// Makes a whole pass. Nobody is shown the report yet.
pub(crate) async fn clear(
    session: &Session,
    ledger: &Arc<Mutex<Ledger>>,
    turn: &mut BeforeModel<'_>,
) -> Result<Report, Error> {
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
pub(crate) fn plan(session: &Session, ledger: &Arc<Mutex<Ledger>>, turn: &BeforeModel<'_>) -> Plan {
    let pass = Pass::new(session, ledger);
    let scan = Scan::counted(&pass, turn);
    Plan::new(pass, turn, scan, 0)
}
