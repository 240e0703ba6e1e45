//! Figures of the conversations that pass: what each would have sent and did send, and what was
//! replaced. It holds sizes, tools' names and reasons, and no content.

mod state;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

pub(crate) use state::Look;

use crate::outcome::Outcome;
use state::{Call, State};

/// The figures since the server has started.
#[derive(Debug)]
pub(crate) struct Watch {
    state: Mutex<State>,
    begun: Instant,
}

impl Default for Watch {
    fn default() -> Self {
        let state = Mutex::default();
        let begun = Instant::now();
        Self { state, begun }
    }
}

impl Watch {
    /// Records a request: the bytes that came, and those that go on.
    pub(crate) fn call(
        &self,
        upstream: &str,
        look: Look,
        [would, sent]: [u64; 2],
        outcome: Outcome,
    ) {
        let at = self.begun.elapsed().as_secs();
        let call = Call { at, would, sent };
        self.state().call(upstream, look, call, outcome);
    }

    /// Records that a provider has refused a changed request, whose original went out after it.
    pub(crate) fn refused(&self, conversation: &str, original: u64) {
        self.state().refused(conversation, original);
    }

    /// Records a call of the reader.
    pub(crate) fn read(&self) {
        self.state().reads += 1;
    }

    /// The figures that have changed since `since`, as JSON.
    pub(crate) fn figures(&self, since: u64) -> Value {
        let mut figures = self.state().figures(since);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        figures["now"] = now.map_or(0, |now| now.as_secs()).into();
        figures["seconds"] = self.begun.elapsed().as_secs().into();
        figures
    }

    /// One conversation, call by call, as JSON.
    pub(crate) fn conversation(&self, number: u64) -> Option<Value> {
        self.state().conversation(number)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
