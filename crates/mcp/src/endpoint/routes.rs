//! The stream to which each message of a server over pipes goes.

use std::sync::Mutex;

use offcut::json::View;

use super::streams::OWN;
use crate::gateway::message::{Message, is_message, key, parse_or_outline};
use crate::locked::locked;

/// Maximum number of requests that wait. Servers do not answer those that were cancelled.
const MAX_WAITING: usize = 1024;

/// The requests that clients wait for, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Routes(Mutex<Vec<WaitingRequest>>);

/// A request on its way to the server.
#[derive(Clone, Debug)]
pub(super) struct WaitingRequest {
    /// The stream of its answer.
    pub(super) stream: u64,
    /// Its id as the client wrote it, and as a key.
    pub(super) id: (String, String),
    /// Its progress token as a key.
    pub(super) token: Option<String>,
}

/// The way of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// `None` if nobody wants the message.
    pub(super) stream: Option<u64>,
    /// True if the message is the last of its stream.
    pub(super) is_answer: bool,
}

impl Routes {
    /// Expects an answer to a request. Returns the stream of the oldest request if that is forgotten, since too
    /// many wait. Fails if one with the same id still waits.
    pub(super) fn add(&self, waiting: WaitingRequest) -> Result<Option<u64>, ()> {
        let mut all = locked(&self.0);
        if all.iter().any(|one| one.id.1 == waiting.id.1) {
            return Err(());
        }
        all.push(waiting);
        let is_full = all.len() > MAX_WAITING;
        Ok(is_full.then(|| all.remove(0).stream))
    }

    /// Takes all requests that wait.
    pub(super) fn take_all(&self) -> Vec<WaitingRequest> {
        std::mem::take(&mut locked(&self.0))
    }

    /// The way of a line of the server; `None` if it is not a message. `is_read` tells whether a client reads
    /// a stream.
    pub(super) fn of(&self, line: &[u8], is_read: impl Fn(u64) -> bool) -> Option<Route> {
        let json = parse_or_outline(line).filter(is_message)?;
        let (stream, is_answer) = match Message::read(&json) {
            Message::Response { id, .. } => (self.answered(&key(id)), true),
            Message::Notification {
                method: "notifications/progress",
                params: Some(params),
            } => {
                let token = params.get("progressToken");
                let stream = token.and_then(|token| self.find(&key(token)));
                (Some(stream.unwrap_or_else(|| self.any(is_read))), false)
            }
            _ => (Some(self.any(is_read)), false),
        };
        Some(Route { stream, is_answer })
    }

    /// Takes the request with this key.
    fn answered(&self, key: &str) -> Option<u64> {
        let mut all = locked(&self.0);
        let nth = all.iter().position(|one| one.id.1 == key)?;
        Some(all.remove(nth).stream)
    }

    fn find(&self, token: &str) -> Option<u64> {
        let all = locked(&self.0);
        let mut all = all.iter().filter(|one| one.token.as_deref() == Some(token));
        all.next().map(|one| one.stream)
    }

    /// The stream for a message that names no request: that of the only request there is, else the server's
    /// own, else that of the newest request.
    fn any(&self, is_read: impl Fn(u64) -> bool) -> u64 {
        let all = locked(&self.0);
        let open = all.iter().map(|waiting| waiting.stream);
        let open: Vec<u64> = open.filter(|stream| is_read(*stream)).collect();
        match open[..] {
            [only] => only,
            _ if is_read(OWN) => OWN,
            _ => open.into_iter().max().unwrap_or(OWN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(key: &str, stream: u64) -> WaitingRequest {
        WaitingRequest {
            stream,
            id: ("\"mine\"".to_owned(), key.to_owned()),
            token: Some(format!("\"t{stream}")),
        }
    }

    fn way(routes: &Routes, message: &str, read: &[u64]) -> (Option<u64>, bool) {
        let route = routes.of(message.as_bytes(), |stream| read.contains(&stream));
        let route = route.expect("a message");
        (route.stream, route.is_answer)
    }

    #[test]
    fn messages_find_their_streams() {
        let routes = Routes::default();
        let log = r#"{"jsonrpc":"2.0","method":"notifications/message"}"#;
        assert_eq!(way(&routes, log, &[]), (Some(OWN), false));
        routes.add(waiting("1", 1)).unwrap();
        routes.add(waiting("1", 9)).unwrap_err();
        assert_eq!(way(&routes, log, &[OWN, 1]), (Some(1), false));
        assert_eq!(way(&routes, log, &[OWN]), (Some(OWN), false));
        routes.add(waiting("2", 2)).unwrap();
        assert_eq!(way(&routes, log, &[OWN, 1, 2]), (Some(OWN), false));
        let odd = r#"{"jsonrpc":"2.0","method":"x","method":"y"}"#;
        assert_eq!(way(&routes, odd, &[1, 2]), (Some(2), false));
        assert_eq!(routes.of(b"[INFO] nonsense", |_| true), None);
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t1"}}"#;
        assert_eq!(way(&routes, progress, &[OWN, 1, 2]), (Some(1), false));
        let answer = r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#;
        assert_eq!(way(&routes, answer, &[OWN]), (Some(1), true));
        assert_eq!(way(&routes, answer, &[OWN]), (None, true));
    }

    #[test]
    fn requests_that_are_never_answered_are_forgotten() {
        let routes = Routes::default();
        let add = |stream: u64| routes.add(waiting(&stream.to_string(), stream));
        for stream in 1..=1024 {
            assert_eq!(add(stream), Ok(None));
        }
        assert_eq!((add(1025), add(1026)), (Ok(Some(1)), Ok(Some(2))));
        assert_eq!(routes.take_all().len(), 1024);
    }

    #[test]
    fn a_message_of_too_many_values_finds_its_stream_too() {
        let routes = Routes::default();
        for (key, stream) in [("1", 1), ("2", 2)] {
            routes.add(waiting(key, stream)).unwrap();
        }
        let values = "1,".repeat(1 << 20);
        let dense = |before: &str, after: &str| {
            let message = format!(r#"{{"jsonrpc":"2.0",{before}{{"a":[{values}1]}}{after}}}"#);
            way(&routes, &message, &[OWN])
        };
        assert_eq!(dense(r#""id":2,"result":"#, ""), (Some(2), true));
        assert_eq!(dense(r#""result":"#, r#","id":1"#), (Some(1), true));
        assert_eq!(dense(r#""method":"x","params":"#, ""), (Some(OWN), false));
    }
}
