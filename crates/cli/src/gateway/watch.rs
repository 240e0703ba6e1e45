//! Figures of the conversations that pass: what each would have sent and did send, and what was
//! replaced. It holds sizes, tools' names and reasons, and no content.

mod look;
mod miss;
mod prompt;
mod state;
mod totals;

use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use serde_json::Value;

pub(crate) use look::Look;
pub(crate) use miss::{MissSums, PromptMiss, RecentPrompts, Why};
pub(crate) use prompt::Prompt;

use crate::gateway::card::Card;
use crate::gateway::outcome::Outcome;
use crate::gateway::record::RequestRecord;
use crate::lock::locked;
use crate::usage::ProviderUsage;
pub(crate) use state::AwaitedBill;
use state::{State, Traffic, WatchedCall};

/// Is told the figures of each request.
type Listener = Box<dyn Fn(&RequestRecord) + Send + Sync>;

/// The figures of a request, and what to compare its bill with.
#[derive(Debug)]
pub(crate) struct CalledRequest {
    pub(crate) record: RequestRecord,
    pub(crate) bill: Option<AwaitedBill>,
}

/// The figures since the server has started.
pub(crate) struct Watch {
    state: Mutex<State>,
    begun: Instant,
    card: OnceLock<Card>,
    listener: OnceLock<Listener>,
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
    /// Sets the prices that the figures come with, once.
    pub(crate) fn set_card(&self, card: Card) {
        _ = self.card.set(card);
    }

    /// Sets who is told of each request, once.
    pub(crate) fn set_listener(&self, listener: Listener) {
        _ = self.listener.set(listener);
    }

    /// Records a request. Its listener is told later, by [`tell`](Self::tell).
    pub(crate) fn call(&self, upstream: &str, look: Look, outcome: Outcome) -> CalledRequest {
        self.add(upstream.to_owned(), Traffic::Agent, look, outcome, None)
    }

    /// Returns true if the provider's cache holds little of a request of a conversation, so that a pass costs nothing
    /// there.
    pub(crate) fn is_cold(&self, conversation: &str, would: &Prompt) -> bool {
        let at = self.begun.elapsed().as_secs();
        locked(&self.state).is_cold(conversation, would, at)
    }

    /// Records a call of the plug for a tenant: the bytes of its messages before and after.
    pub(crate) fn plug(&self, tenant: &str, look: Look, bytes: [u64; 2], outcome: Outcome) {
        let [would, sent] = bytes.map(Prompt::unread);
        let look = Look {
            would,
            sent: Some(sent),
            ..look
        };
        let called = self.add(plug(tenant), Traffic::Gateway, look, outcome, None);
        self.tell(&called.record);
    }

    fn add(
        &self,
        upstream: String,
        traffic: Traffic,
        look: Look,
        outcome: Outcome,
        refused: Option<RequestRecord>,
    ) -> CalledRequest {
        let call = WatchedCall {
            at: self.begun.elapsed().as_secs(),
            upstream,
            traffic,
            look,
            outcome,
            refused,
        };
        let (record, bill) = locked(&self.state).call(call);
        CalledRequest { record, bill }
    }

    /// Records that a request which a provider has `refused` went out once more, in another form.
    pub(crate) fn again(
        &self,
        upstream: &str,
        look: Look,
        outcome: Outcome,
        refused: RequestRecord,
    ) -> CalledRequest {
        let (upstream, traffic) = (upstream.to_owned(), Traffic::Agent);
        self.add(upstream, traffic, look, outcome, Some(refused))
    }

    /// Tells the listener of a request, once its outcome is known.
    pub(crate) fn tell(&self, record: &RequestRecord) {
        if let Some(listener) = self.listener.get() {
            listener(record);
        }
    }

    /// Forgets a request of a conversation, of `sent` bytes: the provider has not taken it, so its cache has nothing
    /// of it.
    pub(crate) fn forget(&self, conversation: &str, sent: u64) {
        locked(&self.state).forget(conversation, sent);
    }

    /// Adds a provider's count of a call. Returns the call's miss, if it has one by that.
    pub(crate) fn billed(&self, bill: &AwaitedBill, usage: ProviderUsage) -> Option<PromptMiss> {
        locked(&self.state).billed(bill, usage)
    }

    /// Records that a tenant of the plug has read something back.
    pub(crate) fn read(&self, tenant: &str) {
        locked(&self.state).read(&plug(tenant));
    }

    /// The figures that have changed since `since`, as JSON.
    pub(crate) fn figures(&self, since: u64) -> Value {
        let mut figures = locked(&self.state).figures(since);
        figures["seconds"] = self.begun.elapsed().as_secs().into();
        let card = self.card.get_or_init(Card::default);
        figures["card"] = serde_json::to_value(card).unwrap_or_default();
        figures
    }

    /// One conversation, call by call, as JSON.
    pub(crate) fn conversation(&self, number: u64) -> Option<Value> {
        locked(&self.state).conversation_row(number)
    }
}

/// The name of a tenant of the plug among upstreams. None of these has a space in its name.
fn plug(tenant: &str) -> String {
    format!("plug {tenant}")
}
