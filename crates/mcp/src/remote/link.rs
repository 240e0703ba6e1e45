//! The link between a client and a server over HTTP: what all exchanges share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response};
use hyper::body::Incoming;
use offcut::json::View;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use super::address::shown;
use super::connection::Remote;
use super::failure::RequestFailure;
use super::meaning::{Meaning, REVISION_HEADER, SESSION};
use crate::gateway::McpGateway;
use crate::gateway::message::{Message, key, on_one_line, parse_or_outline};
use crate::locked::locked;

/// The state that all exchanges of one client with one server share.
pub(super) struct Link {
    connection: Remote,
    /// Lines for the client; `None` once it gets no more.
    to_client: Mutex<Option<mpsc::Sender<Vec<u8>>>>,
    /// Held while a new session is started in place of one that has ended.
    pub(super) renewing: tokio::sync::Mutex<()>,
    pub(super) gateway: Arc<McpGateway>,
    session: Mutex<Session>,
    /// The exchanges of requests, by the keys of their ids.
    running: Mutex<HashMap<String, AbortHandle>>,
    /// Number of the session that is open; 0 before the first.
    pub(super) open: watch::Sender<u64>,
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
    /// The client's `initialize`, and its word that it is done, for a new session.
    pub(super) opening: Bytes,
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
        self.opening = opening.clone();
        self.nth += 1;
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
        connection: Remote,
        to_client: mpsc::Sender<Vec<u8>>,
        gateway: Arc<McpGateway>,
    ) -> Self {
        Self {
            connection,
            to_client: Mutex::new(Some(to_client)),
            renewing: tokio::sync::Mutex::default(),
            gateway,
            session: Mutex::default(),
            running: Mutex::default(),
            open: watch::Sender::new(0),
        }
    }

    /// Sends a request to the server. Anything but a success is a failure.
    pub(super) async fn request(
        &self,
        method: &Method,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Response<Incoming>, RequestFailure> {
        let sent = self.connection.send(method, headers, body);
        RequestFailure::unless_success(sent.await?).await
    }

    /// Sends a message of the client.
    pub(super) async fn post(
        &self,
        headers: &HeaderMap,
        message: &Bytes,
    ) -> Result<Response<Incoming>, RequestFailure> {
        self.request(&Method::POST, headers, message).await
    }

    pub(super) fn session(&self) -> MutexGuard<'_, Session> {
        locked(&self.session)
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

    /// Notes the exchange of a request.
    pub(super) fn begun(&self, key: String, exchange: AbortHandle) {
        let mut running = locked(&self.running);
        running.retain(|_, one| !one.is_finished());
        running.insert(key, exchange);
    }

    /// Ends the exchange of a request for whose answer its client no longer waits. Returns false if there is none.
    fn end(&self, key: &str) -> bool {
        let exchange = locked(&self.running).remove(key);
        exchange.is_some_and(|exchange| {
            let runs = !exchange.is_finished();
            exchange.abort();
            runs
        })
    }

    /// Ends a request that its client has cancelled. Returns true if the server need not be told: in
    /// revisions without sessions, the end of the connection says it.
    pub(super) fn cancel(&self, key: &str, meaning: &Meaning) -> bool {
        self.end(key) && (meaning.revision.is_some() || self.session().nth == 0)
    }

    /// Learns from a message of the server, and returns its relation to the request with this `meaning`.
    pub(super) fn learn(&self, message: &[u8], meaning: &Meaning) -> Relation {
        let Some(json) = parse_or_outline(message) else {
            return Relation::Stray;
        };
        match Message::read(&json) {
            Message::Response { id, .. } if meaning.request_key() != Some(&key(id)) => {
                // A server may answer in a stream other than the request's own.
                if self.end(&key(id)) {
                    Relation::Other
                } else {
                    Relation::Stray
                }
            }
            Message::Response { result, .. } => {
                let Some(result) = result else {
                    return Relation::Error;
                };
                if meaning.is("initialize") {
                    let revision = result.text("protocolVersion");
                    self.session().revision = Some(revision.to_owned());
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

    /// Sends a message to the client, on one line.
    async fn tell(&self, message: Vec<u8>) {
        let mut line: Vec<u8> = on_one_line(&message).collect();
        line.push(b'\n');
        let to_client = locked(&self.to_client).clone();
        if let Some(to_client) = to_client {
            // That a client has gone is noticed elsewhere.
            _ = to_client.send(line).await;
        }
    }

    /// Closes the client's end.
    pub(super) fn close_client(&self) {
        locked(&self.to_client).take();
    }

    /// The failure of an answer over the maximum.
    pub(super) fn too_long(&self) -> RequestFailure {
        RequestFailure::TooLong(self.gateway.too_long())
    }

    /// Ends the session.
    pub(super) async fn close(&self) {
        let (headers, _) = self.head(&Meaning::default());
        if headers.contains_key(SESSION) {
            // A server may keep its sessions.
            _ = self.request(&Method::DELETE, &headers, &Bytes::new()).await;
        }
    }

    pub(super) fn note(&self, line: &str) {
        (self.gateway.log)(&format!("{}: {line}", self.shown()));
    }

    fn shown(&self) -> String {
        shown(&self.connection.url)
    }
}
