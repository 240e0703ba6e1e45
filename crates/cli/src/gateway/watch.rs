//! Figures of the conversations that pass: what each would have sent and did send, and what was
//! replaced. It holds sizes, tools' names and reasons, and no content.

mod look;
mod miss;
mod prompt;
mod state;
mod totals;

use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use serde_json::{Value, json};

pub(crate) use look::Look;
pub(crate) use miss::{MissSums, PromptMiss, RecentPrompts, Why};
pub(crate) use prompt::Prompt;

use crate::lock::locked;
pub use state::RequestRecord;
use state::plug;
pub(crate) use state::{AwaitedBill, CalledRequest, State};
pub use totals::Size;

/// Is told the figures of each request.
type Listener = Box<dyn Fn(&RequestRecord) + Send + Sync>;

/// The figures since the server has started.
pub(crate) struct Watch {
    state: Mutex<State>,
    begun: Instant,
    /// The prices that the figures come with.
    pub(crate) card: OnceLock<Value>,
    pub(crate) listener: OnceLock<Listener>,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            begun: Instant::now(),
            card: OnceLock::new(),
            listener: OnceLock::new(),
        }
    }
}

impl Watch {
    /// The figures, to be changed in one step.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    fn at(&self) -> u64 {
        self.begun.elapsed().as_secs()
    }

    /// Returns true if the provider's cache holds little of a request of a conversation, so that a pass costs nothing
    /// there.
    pub(crate) fn is_cold(&self, conversation: &str, would: &Prompt) -> bool {
        self.state().is_cold(conversation, would, self.at())
    }

    /// Records a request, which a provider may have `refused` in another form. Its listener is told later, by
    /// [`tell`](Self::tell).
    pub(crate) fn call(
        &self,
        upstream: &str,
        look: Look,
        refused: Option<RequestRecord>,
    ) -> CalledRequest {
        self.state()
            .call(self.at(), upstream.to_owned(), look, refused)
    }

    /// Records a call of the plug for a tenant.
    pub(crate) fn plug(&self, tenant: &str, look: Look) {
        let called = self.state().call(self.at(), plug(tenant), look, None);
        self.tell(&called.record);
    }

    /// Tells the listener of a request, once its outcome is known.
    pub(crate) fn tell(&self, record: &RequestRecord) {
        if let Some(listener) = self.listener.get() {
            listener(record);
        }
    }

    /// The figures that have changed since `since`, as JSON.
    pub(crate) fn figures(&self, since: u64) -> Value {
        let mut figures = self.state().figures(since);
        figures["seconds"] = self.at().into();
        let card = || json!({"cached": 0.1, "fresh": 1.0});
        figures["card"] = self.card.get_or_init(card).clone();
        figures
    }
}
