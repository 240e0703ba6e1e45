//! Figures of the conversations that pass: what each would have sent and did send, and what was
//! replaced. It holds sizes, tools' names and reasons, and no content.

mod look;
mod miss;
mod prompt;
mod record;
mod size;
mod state;
mod totals;

use std::sync::{Mutex, MutexGuard, OnceLock};

pub(crate) use look::{BodySizes, Look};
pub(crate) use miss::{MissSums, RecentPrompts};
pub(crate) use prompt::Prompt;

use crate::lock::locked;
pub use record::RequestRecord;
pub use size::Size;
pub(crate) use state::{AwaitedBill, State};

/// Is told the figures of each request.
type Listener = Box<dyn Fn(&RequestRecord) + Send + Sync>;

/// The figures since the server has started.
#[derive(Default)]
pub(crate) struct Watch {
    state: Mutex<State>,
    pub(crate) listener: OnceLock<Listener>,
}

impl Watch {
    /// The figures, to be changed in one step.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Tells the listener of a request, once its outcome is known.
    pub(crate) fn tell(&self, record: &RequestRecord) {
        if let Some(listener) = self.listener.get() {
            listener(record);
        }
    }
}
