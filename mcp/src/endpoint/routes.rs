//! The stream to which each message of a server over pipes goes.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use offcut_json::{JsonText, Node, View};

use super::streams::OWN;
use crate::gateway::message::{Message, is_message, key, parse};

/// The key by which notifications of revisions without sessions name their subscription.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The beginning of the keys of requests that were not read. No id has such a key.
pub(super) const UNREAD: &str = "unread ";

/// The requests that clients wait for.
#[derive(Debug, Default)]
pub(super) struct Routes(Mutex<HashMap<String, Waiting>>);

/// A request on its way to the server.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    /// The stream of its answer.
    pub(super) stream: u64,
    /// Its id as the client wrote it.
    pub(super) id: String,
    /// Its progress token, as a key and as the client wrote it.
    pub(super) token: Option<(String, String)>,
    /// True if the server sees ids and tokens of the endpoint's own in place of the client's.
    pub(super) is_renamed: bool,
}

/// The way of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// `None` if nobody wants the message.
    pub(super) stream: Option<u64>,
    /// True if the message is the last of its stream.
    pub(super) is_answer: bool,
    /// The message with the client's own ids, if it has to change.
    pub(super) message: Option<String>,
}

impl Routes {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        // Each change is made in one step, so the state is whole even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Expects an answer to the request with this key. Fails if one with the same id still waits.
    pub(super) fn add(&self, key: String, waiting: Waiting) -> Result<(), ()> {
        let mut all = self.all();
        if all.contains_key(&key) {
            return Err(());
        }
        all.insert(key, waiting);
        Ok(())
    }

    /// Expects no answer any more.
    pub(super) fn remove(&self, key: &str) -> Option<Waiting> {
        self.all().remove(key)
    }

    /// Takes all requests that wait.
    pub(super) fn take_all(&self) -> Vec<Waiting> {
        self.all().drain().map(|(_, waiting)| waiting).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// The way of a line of the server; `None` if it is not a message. `is_read` tells whether a client reads
    /// a stream.
    pub(super) fn of(&self, line: &[u8], is_read: impl Fn(u64) -> bool) -> Option<Route> {
        let json = parse(line).filter(is_message)?;
        Some(self.of_message(&json, is_read))
    }

    fn of_message(&self, json: &JsonText, is_read: impl Fn(u64) -> bool) -> Route {
        let other = |stream| Route {
            stream,
            is_answer: false,
            message: None,
        };
        match Message::read(json) {
            Message::Response { id, .. } => match self.answered(&key(id)) {
                Some(waiting) => Route {
                    stream: Some(waiting.stream),
                    is_answer: true,
                    message: waiting
                        .is_renamed
                        .then(|| with(json, id.range(), &waiting.id)),
                },
                None => other(None),
            },
            Message::Notification {
                method: "notifications/progress",
                params: Some(params),
            } => {
                let token = params.get("progressToken");
                let found = token.and_then(|token| self.find(&key(token)).zip(Some(token)));
                let Some((waiting, token)) = found else {
                    return other(self.any(is_read));
                };
                let own = waiting.token.filter(|_| waiting.is_renamed);
                Route {
                    message: own.map(|(_, own)| with(json, token.range(), &own)),
                    ..other(Some(waiting.stream))
                }
            }
            Message::Notification { params, .. } => {
                let meta = params.and_then(|params| params.get("_meta"));
                let id = meta.and_then(|meta| meta.get(SUBSCRIPTION));
                let found = id.and_then(|id| self.all().get(&key(id)).cloned().zip(Some(id)));
                let Some((waiting, id)) = found else {
                    return other(self.any(is_read));
                };
                Route {
                    message: waiting
                        .is_renamed
                        .then(|| with(json, id.range(), &waiting.id)),
                    ..other(Some(waiting.stream))
                }
            }
            _ => other(self.any(is_read)),
        }
    }

    /// The way of a message that is too long to be read, of which this is the beginning. Returns true if
    /// it is the answer of its stream.
    pub(super) fn of_long(
        &self,
        beginning: &[u8],
        is_read: impl Fn(u64) -> bool,
    ) -> (Option<u64>, bool) {
        let waiting = id_in(beginning).and_then(|id| {
            let json = JsonText::parse(id).ok()?;
            self.remove(&key(Node::root(&json)))
        });
        if let Some(waiting) = waiting {
            return (Some(waiting.stream), true);
        }
        let mut all = self.all();
        // Only answers are that long.
        if let (1, Some(only)) = (all.len(), all.keys().next().cloned()) {
            return (all.remove(&only).map(|only| only.stream), true);
        }
        drop(all);
        (self.any(is_read), false)
    }

    /// Takes the request with this key. An answer to an id that nobody knows is that of a request that
    /// was not read.
    fn answered(&self, key: &str) -> Option<Waiting> {
        let mut all = self.all();
        all.remove(key).or_else(|| {
            let unread = all.iter().filter(|(key, _)| key.starts_with(UNREAD));
            let oldest = unread.min_by_key(|(_, waiting)| waiting.stream)?.0.clone();
            all.remove(&oldest)
        })
    }

    fn find(&self, token: &str) -> Option<Waiting> {
        let all = self.all();
        let is_its =
            |waiting: &&Waiting| waiting.token.as_ref().is_some_and(|(key, _)| key == token);
        all.values().find(is_its).cloned()
    }

    /// The stream for a message that names no request: that of the only request there is, else the server's
    /// own, else that of the newest request.
    fn any(&self, is_read: impl Fn(u64) -> bool) -> Option<u64> {
        let all = self.all();
        if all.values().any(|waiting| waiting.is_renamed) {
            // Other clients' requests are none of this message's business.
            let mut streams = all.values().map(|waiting| waiting.stream);
            return streams.next().filter(|_| streams.next().is_none());
        }
        let open = all.values().map(|waiting| waiting.stream);
        let open: Vec<u64> = open.filter(|stream| is_read(*stream)).collect();
        match open[..] {
            [only] => Some(only),
            _ if is_read(OWN) => Some(OWN),
            _ => Some(open.into_iter().max().unwrap_or(OWN)),
        }
    }
}

fn with(json: &JsonText, range: std::ops::Range<usize>, new: &str) -> String {
    let mut text = json.as_str().to_owned();
    text.replace_range(range, new);
    text
}

/// The id at the beginning of a message, where most servers write it.
fn id_in(beginning: &[u8]) -> Option<String> {
    const LOOKED_AT: usize = 256;
    let text = &beginning[..beginning.len().min(LOOKED_AT)];
    let before = memchr::memmem::find(text, b"\"result\"").unwrap_or(text.len());
    let at = memchr::memmem::find(&text[..before], b"\"id\"")? + 4;
    let rest = str::from_utf8(&text[at..before]).ok()?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    let end = match rest.strip_prefix('"') {
        Some(text) => text.find('"')? + 2,
        None => rest.find([',', ' ', '}'])?,
    };
    Some(rest[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(stream: u64, is_renamed: bool) -> Waiting {
        Waiting {
            stream,
            id: "\"mine\"".to_owned(),
            token: Some((format!("\"t{stream}"), "7".to_owned())),
            is_renamed,
        }
    }

    fn way(routes: &Routes, message: &str, read: &[u64]) -> (Option<u64>, bool, Option<String>) {
        let route = routes.of(message.as_bytes(), |stream| read.contains(&stream));
        let route = route.expect("a message");
        (route.stream, route.is_answer, route.message)
    }

    #[test]
    fn messages_find_their_streams() {
        let routes = Routes::default();
        let log = r#"{"jsonrpc":"2.0","method":"notifications/message"}"#;
        assert_eq!(way(&routes, log, &[]), (Some(OWN), false, None));
        routes.add("1".to_owned(), waiting(1, false)).unwrap();
        routes.add("1".to_owned(), waiting(9, false)).unwrap_err();
        assert_eq!(way(&routes, log, &[OWN, 1]), (Some(1), false, None));
        assert_eq!(way(&routes, log, &[OWN]), (Some(OWN), false, None));
        routes.add("2".to_owned(), waiting(2, false)).unwrap();
        assert_eq!(way(&routes, log, &[OWN, 1, 2]), (Some(OWN), false, None));
        let odd = r#"{"jsonrpc":"2.0","method":"x","method":"y"}"#;
        assert_eq!(way(&routes, odd, &[1, 2]), (Some(2), false, None));
        assert_eq!(routes.of(b"[INFO] nonsense", |_| true), None);
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t1"}}"#;
        assert_eq!(way(&routes, progress, &[OWN, 1, 2]), (Some(1), false, None));
        let answer = r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#;
        assert_eq!(way(&routes, answer, &[OWN]), (Some(1), true, None));
        assert_eq!(way(&routes, answer, &[OWN]), (None, false, None));
    }

    #[test]
    fn clients_without_a_session_get_their_own_ids_back() {
        let routes = Routes::default();
        routes.add("\"o1".to_owned(), waiting(1, true)).unwrap();
        routes.add("\"o2".to_owned(), waiting(2, true)).unwrap();
        let log = r#"{"jsonrpc":"2.0","method":"notifications/message"}"#;
        assert_eq!(way(&routes, log, &[OWN, 1, 2]), (None, false, None));
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t2"}}"#;
        let own = progress.replace("\"t2\"", "7");
        assert_eq!(way(&routes, progress, &[]), (Some(2), false, Some(own)));
        let told = r#"{"jsonrpc":"2.0","method":"x","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"o1"}}}"#;
        let own = told.replace("\"o1\"", "\"mine\"");
        assert_eq!(way(&routes, told, &[]), (Some(1), false, Some(own)));
        let answer = r#"{"jsonrpc":"2.0", "id" : "o1","result":{"id":"o1"}}"#;
        let own = r#"{"jsonrpc":"2.0", "id" : "mine","result":{"id":"o1"}}"#;
        assert_eq!(
            way(&routes, answer, &[]),
            (Some(1), true, Some(own.to_owned()))
        );
    }

    #[test]
    fn the_answer_of_a_long_message_is_told_by_its_beginning() {
        for (beginning, id) in [
            (r#"{"jsonrpc":"2.0","id":12,"result":{"id":3"#, Some("12")),
            (r#"{"id" : "a" ,"result":"#, Some("\"a\"")),
            (r#"{"result":{"id":3,"#, None),
            ("x", None),
        ] {
            assert_eq!(id_in(beginning.as_bytes()).as_deref(), id, "{beginning}");
        }
        let routes = Routes::default();
        for (key, stream) in [("1", 1), ("2", 2), ("3", 3)] {
            routes.add(key.to_owned(), waiting(stream, false)).unwrap();
        }
        let long = |beginning: &str| routes.of_long(beginning.as_bytes(), |_| true);
        assert_eq!(long(r#"{"id":2,"result":"#), (Some(2), true));
        assert_eq!(long(r#"{"result":"#), (Some(OWN), false));
        routes.remove("1");
        assert_eq!(long(r#"{"result":"#), (Some(3), true));
    }
}
