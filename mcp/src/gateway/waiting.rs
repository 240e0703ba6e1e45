//! Requests that wait for their answers.

use std::collections::{HashMap, VecDeque};

use offcut::ToolCall;

/// A request whose answer matters.
#[derive(Clone, Debug)]
pub(super) enum Waiting {
    /// A call of a tool, or the request for the result of a task.
    Call(ToolCall),
    /// A page of the tool list for the client.
    List,
    /// A page of the tool list for the gateway itself.
    OwnList {
        /// The `_meta` that the request had.
        meta: Option<String>,
    },
    /// A request of which the client learns what the server can do.
    Opening,
    /// A request that the gateway answers, and that the server does not see.
    Answered,
}

/// Requests by their ids. A client may use an id again; its answers come in the order of requests.
#[derive(Debug, Default)]
pub(super) struct WaitingRequests(HashMap<String, VecDeque<Waiting>>);

impl WaitingRequests {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    pub(super) fn push(&mut self, key: String, request: Waiting) {
        self.0.entry(key).or_default().push_back(request);
    }

    /// Takes the oldest request with this id that the server has seen.
    pub(super) fn answered(&mut self, key: &str) -> Option<Waiting> {
        self.take(key, |request| !matches!(request, Waiting::Answered))
    }

    /// Takes the request with this id that the gateway has answered. `None` if it has been cancelled.
    pub(super) fn own(&mut self, key: &str) -> Option<Waiting> {
        self.take(key, |request| matches!(request, Waiting::Answered))
    }

    /// Takes a request that its client has cancelled.
    pub(super) fn cancelled(&mut self, key: &str) -> Option<Waiting> {
        self.take(key, |request| !matches!(request, Waiting::OwnList { .. }))
    }

    fn take(&mut self, key: &str, is_meant: impl Fn(&Waiting) -> bool) -> Option<Waiting> {
        let all = self.0.get_mut(key)?;
        let taken = all
            .iter()
            .position(is_meant)
            .and_then(|nth| all.remove(nth));
        if all.is_empty() {
            self.0.remove(key);
        }
        taken
    }
}
