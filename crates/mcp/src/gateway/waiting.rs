//! Requests that wait for their answers.

use std::collections::VecDeque;

use offcut::ToolCall;

/// A request whose answer matters.
#[derive(Clone, Debug)]
pub(super) enum Waiting {
    /// A call of a tool.
    Call(ToolCall),
    /// A page of the tool list for the client.
    List { is_first: bool },
    /// The first page of the tool list for the gateway itself.
    OwnList,
    /// Any other request of the client.
    Passed,
}

impl Waiting {
    /// Returns true for a request of the client that the server is to answer.
    fn is_clients(&self) -> bool {
        !matches!(self, Self::OwnList)
    }
}

/// Maximum number of requests that wait in one conversation. Above that, the oldest is forgotten, so its answer
/// passes as it is.
const MAX_WAITING: usize = 1024;

/// Requests with the keys of their ids, the oldest first. A client may use an id again; its answers come in the order of
/// requests.
#[derive(Debug, Default)]
pub(super) struct WaitingRequests(VecDeque<(String, Waiting)>);

impl WaitingRequests {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the client waits for an answer of the server.
    pub(super) fn has_open(&self) -> bool {
        self.0.iter().any(|(_, request)| request.is_clients())
    }

    pub(super) fn push(&mut self, key: String, request: Waiting) {
        if self.0.len() >= MAX_WAITING {
            self.take_first(|_, request| request.is_clients());
        }
        self.0.push_back((key, request));
    }

    /// Takes the oldest request with this id.
    pub(super) fn take(&mut self, key: &str) -> Option<Waiting> {
        self.take_first(|own, _| own == key)
    }

    /// Forgets the gateway's own requests.
    #[cfg(feature = "http")]
    pub(super) fn forget_own(&mut self) {
        self.0.retain(|(_, request)| request.is_clients());
    }

    fn take_first(&mut self, is_meant: impl Fn(&str, &Waiting) -> bool) -> Option<Waiting> {
        let nth = self
            .0
            .iter()
            .position(|(key, request)| is_meant(key, request))?;
        Some(self.0.remove(nth)?.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_are_never_answered_are_forgotten() {
        let mut waiting = WaitingRequests::default();
        waiting.push("own".to_owned(), Waiting::OwnList);
        for nth in 0..MAX_WAITING + 10 {
            // Also of one id.
            waiting.push((nth % 700).to_string(), Waiting::List { is_first: true });
        }
        assert_eq!(waiting.0.len(), MAX_WAITING);
        assert!(waiting.take("own").is_some(), "it is the gateway's");
        let mut left = 0;
        for nth in 0..700 {
            while waiting.take(&nth.to_string()).is_some() {
                left += 1;
            }
        }
        assert_eq!(left, MAX_WAITING - 1);
        assert!(!waiting.has_open() && waiting.is_empty());
    }
}
