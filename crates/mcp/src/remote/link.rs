//! The link between a client and a server over HTTP: what all exchanges share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use offcut::json::View;
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::sync::{Notify, watch};

use super::address::shown;
use super::connection::Connection;
use super::failure::RequestFailure;
use super::meaning::{Meaning, REVISION_HEADER, SESSION};
use super::parameters::Parameters;
use crate::gateway::McpGateway;
use crate::gateway::message::{Message, key, may_be_dense, parse_or_outline};
use crate::locked::locked;

/// The state that all exchanges of one client with one server share.
pub(super) struct Link {
    pub(super) connection: Connection,
    /// The client's end. Errors while writing mean that the client has gone, which is noticed elsewhere.
    to_client: tokio::sync::Mutex<DuplexStream>,
    /// Held while a new session is started in place of one that has ended.
    pub(super) renewing: tokio::sync::Mutex<()>,
    pub(super) gateway: Arc<McpGateway>,
    session: Mutex<Session>,
    tools: Mutex<Parameters>,
    /// Requests that have not been answered, by the keys of their ids.
    running: Mutex<HashMap<String, Arc<Cancel>>>,
    /// Number of the session that is open; 0 before the first.
    pub(super) open: watch::Sender<u64>,
    /// True once the client has sent its last message.
    pub(super) last_said: watch::Sender<bool>,
}

/// The agreement of client and server.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// The id that the server has given. `None` without sessions.
    id: Option<HeaderValue>,
    /// The revision that the answer to `initialize` named, or the last request.
    revision: Option<String>,
    /// Number of sessions that have been started.
    pub(super) nth: u64,
    /// True once the server has accepted a message in this session.
    pub(super) has_worked: bool,
    /// The client's `initialize`, and its word that it is done, for a new session.
    pub(super) opening: Option<Bytes>,
    pub(super) opened: Option<Bytes>,
}

impl Session {
    /// The headers of a request with this message.
    fn headers(&self, meaning: &Meaning) -> HeaderMap {
        let revision = meaning.revision.as_ref().or(self.revision.as_ref());
        let mut headers = meaning.headers(revision.map(String::as_str));
        let is_opening = meaning.is("initialize");
        if let Some(revision) = revision.filter(|_| !is_opening)
            && let Ok(revision) = HeaderValue::from_str(revision)
        {
            headers.insert(REVISION_HEADER, revision);
        }
        // A revision that each request names has no sessions.
        if let Some(id) = self
            .id
            .as_ref()
            .filter(|_| !is_opening && meaning.revision.is_none())
        {
            headers.insert(SESSION, id.clone());
        }
        headers
    }

    /// Takes the head of the answer to `opening`, the client's `initialize`.
    pub(super) fn started(&mut self, headers: &HeaderMap, opening: &Bytes) {
        self.id = headers.get(SESSION).cloned();
        if let Some(id) = &mut self.id {
            id.set_sensitive(true);
        }
        self.revision = None;
        self.opening = Some(opening.clone());
        self.nth += 1;
        self.has_worked = false;
    }
}

/// The end of a request whose client no longer waits.
#[derive(Debug, Default)]
pub(super) struct Cancel {
    /// Ends the exchange at once, between two messages of the server's.
    pub(super) now: Notify,
    /// True if a stream that breaks need not be resumed.
    pub(super) is_over: AtomicBool,
}

impl Cancel {
    /// The outcome of `work`; `None` if the exchange ends before.
    pub(super) async fn unless_ended<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.now.notified() => None,
            done = work => Some(done),
        }
    }
}

/// The relation of a server's message to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Result,
    Error,
    /// A request or notification of the server's, or an answer to another request.
    Other,
    /// An answer to no request, or no message that is known.
    Stray,
}

impl Link {
    pub(super) fn new(
        connection: Connection,
        to_client: DuplexStream,
        gateway: Arc<McpGateway>,
    ) -> Self {
        Self {
            connection,
            to_client: tokio::sync::Mutex::new(to_client),
            renewing: tokio::sync::Mutex::default(),
            gateway,
            session: Mutex::default(),
            tools: Mutex::default(),
            running: Mutex::default(),
            open: watch::Sender::new(0),
            last_said: watch::Sender::new(false),
        }
    }

    pub(super) fn session(&self) -> MutexGuard<'_, Session> {
        locked(&self.session)
    }

    /// Reads a message of the client.
    pub(super) fn read(&self, message: &[u8]) -> Meaning {
        Meaning::read(message, &locked(&self.tools))
    }

    /// The headers of a request, and the number of the session that they name.
    pub(super) fn head(&self, meaning: &Meaning) -> (HeaderMap, u64) {
        let session = self.session();
        (session.headers(meaning), session.nth)
    }

    /// Notes that the client has said, in `message`, that the session is open.
    pub(super) fn opened(&self, message: &Bytes) {
        let mut session = self.session();
        session.opened = Some(message.clone());
        self.open.send_replace(session.nth);
    }

    /// Expects an answer to a request.
    pub(super) fn begun(&self, meaning: &Meaning, cancel: &Arc<Cancel>) {
        if let Some(key) = meaning.request_key() {
            locked(&self.running).insert(key.to_owned(), cancel.clone());
        }
    }

    /// Expects no answer any more.
    pub(super) fn ended(&self, meaning: &Meaning, cancel: &Arc<Cancel>) {
        let Some(key) = meaning.request_key() else {
            return;
        };
        let mut running = locked(&self.running);
        if running.get(key).is_some_and(|one| Arc::ptr_eq(one, cancel)) {
            running.remove(key);
        }
    }

    /// Ends a request that its client has cancelled. Returns true if the server need not be told: in
    /// revisions without sessions, the end of the connection says it.
    pub(super) fn cancel(&self, key: &str, meaning: &Meaning) -> bool {
        let Some(cancel) = locked(&self.running).get(key).cloned() else {
            return false;
        };
        cancel.is_over.store(true, Ordering::Relaxed);
        let is_told = meaning.revision.is_some() || self.session().nth == 0;
        if is_told {
            cancel.now.notify_one();
        }
        is_told
    }

    /// Learns from a message of the server, and returns its relation to the request with this `meaning`.
    pub(super) fn learn(&self, message: &[u8], meaning: &Meaning) -> Relation {
        let Some(json) = parse_or_outline(message) else {
            // One of too many values to be read, without an outline that names its request, passes as the answer.
            return match may_be_dense(message) {
                true => Relation::Result,
                false => Relation::Stray,
            };
        };
        match Message::read(&json) {
            Message::Response { id, .. } if meaning.request_key() != Some(&key(id)) => {
                // A server may answer in a stream other than the request's own.
                let running = locked(&self.running);
                let Some(cancel) = running.get(&key(id)) else {
                    return Relation::Stray;
                };
                cancel.is_over.store(true, Ordering::Relaxed);
                cancel.now.notify_one();
                Relation::Other
            }
            Message::Response { result, .. } => {
                let Some(result) = result else {
                    return Relation::Error;
                };
                if meaning.is("initialize") {
                    let revision = result.text("protocolVersion");
                    self.session().revision = Some(revision.to_owned());
                } else if meaning.is("tools/list") {
                    locked(&self.tools).learn(result);
                }
                Relation::Result
            }
            Message::Other => Relation::Stray,
            _ => Relation::Other,
        }
    }

    /// Passes a message of the server's to the client. Returns true if it answers the request that
    /// `meaning` is of.
    pub(super) async fn deliver(&self, message: Vec<u8>, meaning: &Meaning) -> bool {
        let relation = self.learn(&message, meaning);
        self.pass(message, relation, meaning).await;
        matches!(relation, Relation::Result | Relation::Error)
    }

    /// Passes a message of the server's, which has this relation to the request that `meaning` is of, to the client.
    pub(super) async fn pass(&self, message: Vec<u8>, relation: Relation, meaning: &Meaning) {
        // Nobody waits for an answer to a notification.
        if relation != Relation::Stray || !meaning.wants_no_answer() {
            self.tell(message).await;
        }
    }

    /// Tells the client, or the log, that a message got no answer.
    pub(super) async fn failed(&self, failure: &RequestFailure, meaning: &Meaning) {
        let answer = failure.answer(meaning, &self.shown());
        // Or the server has said itself, in JSON-RPC, what is wrong.
        let is_servers = matches!(failure, RequestFailure::Status { error: Some(_), .. });
        if answer.is_none() || !is_servers {
            self.note(&failure.to_string());
        }
        if let Some(answer) = answer {
            self.tell(answer.into_bytes()).await;
        }
    }

    /// Writes a message to the client, on one line. In JSON, a line break is never a part of a value.
    async fn tell(&self, mut message: Vec<u8>) {
        for byte in &mut message {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        message.push(b'\n');
        _ = self.to_client.lock().await.write_all(&message).await;
    }

    /// Closes the client's end.
    pub(super) async fn close_client(&self) {
        _ = self.to_client.lock().await.shutdown().await;
    }

    /// The failure of an answer over the maximum.
    pub(super) fn too_long(&self) -> RequestFailure {
        RequestFailure::TooLong(self.gateway.too_long())
    }

    /// Ends the session.
    pub(super) async fn close(&self) {
        let (headers, _) = self.head(&Meaning::default());
        if headers.contains_key(SESSION) {
            let nothing = Bytes::new();
            let sent = self.connection.send(&Method::DELETE, &headers, &nothing);
            // A server may keep its sessions.
            _ = sent.await;
        }
    }

    pub(super) fn note(&self, line: &str) {
        (self.gateway.log)(&format!("{}: {line}", self.shown()));
    }

    fn shown(&self) -> String {
        shown(self.connection.url())
    }
}
