//! Requests on their way to a server over HTTP, and its answers on their way back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, ORIGIN};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyDataStream, BodyExt, StreamBody};
use hyper::body::Incoming;
use tokio::time::timeout;

use super::login::Login;
use super::names::unguessable;
use super::reply::{self, Body, BoxError};
use crate::gateway::message::INTERNAL_ERROR;
use crate::gateway::{Conversation, FromClient, FromServer, McpGateway};
use crate::http::events::{Events, StreamChunk, message, with_message};
use crate::http::flushed;
use crate::http::room::{MessageRoom, NotRead};
use crate::locked::locked;
use crate::remote::Remote;
use crate::remote::address;
use crate::remote::body::{self, AnswerMessages, Kind, kind};
use crate::remote::failure::RequestFailure;
use crate::remote::meaning::{METHOD, Meaning, NAME, SESSION};

/// Time for the list of tools before the call that needs it passes without.
const LIST: Duration = Duration::from_secs(10);
/// Maximum number of sessions that are known. Above that, all are forgotten: answers that they still wait for pass whole.
const MAX_SESSIONS: usize = 1024;

/// The id of a session, and the login with which a client names it: one that guesses another's id has no part in it.
type ClientSession = (HeaderValue, Option<HeaderValue>);

/// A server over HTTP with an endpoint in front.
pub(super) struct Proxy {
    gateway: Arc<McpGateway>,
    connection: Arc<Remote>,
    pub(super) login: Login,
    /// Room for messages that are held.
    room: MessageRoom,
    /// The conversations of sessions in which the server has answered.
    sessions: Mutex<HashMap<ClientSession, Arc<Conversation>>>,
    /// Knows the server's tools, and has no requests.
    conversation: Conversation,
}

impl Proxy {
    pub(super) fn new(gateway: Arc<McpGateway>, connection: Remote) -> Self {
        let connection = Arc::new(connection);
        Self {
            login: Login::new(connection.clone()),
            room: MessageRoom::new(gateway.max_message),
            sessions: Mutex::default(),
            conversation: unguessable(&gateway),
            connection,
            gateway,
        }
    }

    /// Answers a request to the endpoint's own path. `host` is the one that the client names.
    pub(super) async fn answer(&self, request: Request<Incoming>, host: &str) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let (text, room) = match self.room.read_soon(body).await {
            Ok(read) => read,
            Err(problem) => return reply::not_read(&self.gateway, &problem),
        };
        let (headers, query) = (passed(parts.headers), parts.uri.query());
        let meaning = Meaning::read(&text);
        let session = headers.get(SESSION);
        let session = session.filter(|_| !meaning.is("initialize")).cloned();
        let login = headers.get(AUTHORIZATION).cloned();
        let session = session.map(|id| (id, login.clone()));
        let known = session
            .as_ref()
            .and_then(|session| locked(&self.sessions).get(session).cloned());
        let asked = ClientRequest {
            proxy: self,
            query,
            host,
            // Without a session, ids mean something in one exchange only.
            conversation: known.unwrap_or_else(|| Arc::new(self.conversation.beside())),
            session,
            login,
            meaning,
        };
        let decided = asked.conversation.from_client(&text);
        drop(room);
        let first = match decided {
            FromClient::Answer(answer) => return reply::json(StatusCode::OK, answer.await),
            FromClient::Pass { first } => first,
        };
        if let Some(first) = first {
            // A server that does not answer in time is not asked again: each call would wait for it.
            if let Ok(None) = timeout(LIST, asked.learn(first, &headers)).await {
                asked.conversation.own_list_failed();
            }
        }
        let sent = self.connection.forward(&parts.method, headers, query, text);
        match sent.await {
            Ok(response) => {
                let is_end = parts.method == Method::DELETE && response.status().is_success();
                asked.note(&response, is_end);
                asked.passed(response).await
            }
            Err(failure) => asked.failed(&failure),
        }
    }
}

/// A client's request on its way.
struct ClientRequest<'p> {
    proxy: &'p Proxy,
    query: Option<&'p str>,
    /// The host that the client names.
    host: &'p str,
    conversation: Arc<Conversation>,
    session: Option<ClientSession>,
    login: Option<HeaderValue>,
    meaning: Meaning,
}

impl ClientRequest<'_> {
    /// Remembers the conversation of a session in which the server answers, until it has ended.
    fn note(&self, response: &Response<Incoming>, is_end: bool) {
        let opened = response.headers().get(SESSION);
        let opened = opened.filter(|_| self.meaning.is("initialize")).cloned();
        let opened = opened.map(|id| (id, self.login.clone()));
        let Some(session) = self.session.clone().or(opened) else {
            return;
        };
        let mut sessions = locked(&self.proxy.sessions);
        if is_end || response.status() == StatusCode::NOT_FOUND {
            sessions.remove(&session);
        } else if response.status().is_success() {
            if sessions.len() >= MAX_SESSIONS {
                sessions.clear();
            }
            sessions.insert(session, self.conversation.clone());
        }
    }

    /// Passes the server's answer.
    async fn passed(&self, response: Response<Incoming>) -> Response<Body> {
        let is_success = response.status().is_success();
        let gateway = &self.proxy.gateway;
        let mut answer = match kind(response.headers()) {
            Kind::Events => response.map(|body| {
                let too_long = RequestFailure::TooLong(gateway.too_long());
                let error = too_long.answer(&self.meaning, &self.server());
                let key = self.meaning.request_key().map(str::to_owned);
                rewritten(Rewritten {
                    events: body::events(body, gateway.max_message).within(self.proxy.room.begin()),
                    conversation: self.conversation.clone(),
                    unanswered: key.zip(error),
                })
            }),
            Kind::Json => self.whole(response).await,
            Kind::Other => response.map(reply::passed),
        };
        reply::strip(answer.headers_mut());
        if !is_success {
            self.forget();
            self.proxy.login.lead(answer.headers_mut(), self.host);
        }
        answer
    }

    /// Passes an answer of one message.
    async fn whole(&self, response: Response<Incoming>) -> Response<Body> {
        let (parts, body) = response.into_parts();
        let (text, room) = match self.proxy.room.read(body).await {
            Ok(read) => read,
            Err(NotRead::TooLong) => {
                let too_long = self.proxy.gateway.too_long();
                return self.failed(&RequestFailure::TooLong(too_long));
            }
            Err(NotRead::BrokeOff) => return self.failed(&RequestFailure::BrokeOff),
        };
        let body = match self.conversation.from_server(&text).await {
            FromServer::Replace(new) => reply::full(new),
            _ => reply::held(text, room),
        };
        Response::from_parts(parts, body)
    }

    /// Asks the server for its tools, with the headers of the client's request. Returns `None` if nothing answers.
    async fn learn(&self, asked: String, headers: &HeaderMap) -> Option<()> {
        let (post, headers) = (Method::POST, own_headers(headers));
        let connection = &self.proxy.connection;
        let sent = connection.forward(&post, headers, self.query, asked.into());
        let mut messages = AnswerMessages::new(sent.await.ok()?, self.proxy.gateway.max_message);
        loop {
            let message = messages.next().await?;
            if let FromServer::Own = self.conversation.from_server(&message).await {
                return Some(());
            }
        }
    }

    fn failed(&self, failure: &RequestFailure) -> Response<Body> {
        self.forget();
        let text = format!("{}: {failure}", self.server());
        (self.proxy.gateway.log)(&text);
        let (status, id) = (StatusCode::BAD_GATEWAY, self.meaning.request_id());
        reply::error(status, INTERNAL_ERROR, &text, id)
    }

    /// Expects no answer any more.
    fn forget(&self) {
        if let Some(key) = self.meaning.request_key() {
            self.conversation.forget(key);
        }
    }

    /// The server, as it is told.
    fn server(&self) -> String {
        address::shown(&self.proxy.connection.url)
    }
}

/// The headers of a client's request that go to the server.
fn passed(mut headers: HeaderMap) -> HeaderMap {
    reply::strip(&mut headers);
    // Answers are read, and the server would check a page's origin against its own name.
    headers.remove(ACCEPT_ENCODING);
    headers.remove(ORIGIN);
    headers
}

/// The headers of a request for the list of tools in place of a client's: any of those may be a credential.
fn own_headers(of_client: &HeaderMap) -> HeaderMap {
    let mut headers = of_client.clone();
    headers.remove(NAME);
    let names = of_client.keys();
    for name in names.filter(|name| name.as_str().starts_with("mcp-param-")) {
        headers.remove(name);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let both = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(ACCEPT, both);
    if of_client.contains_key(METHOD) {
        headers.insert(METHOD, HeaderValue::from_static("tools/list"));
    }
    headers
}

/// A stream of events in which long results are replaced.
struct Rewritten {
    events: Events<BodyDataStream<Incoming>>,
    conversation: Arc<Conversation>,
    /// The key of a request that has no answer, and the error that takes the place of the first message over the
    /// maximum, which may be the answer.
    unanswered: Option<(String, String)>,
}

impl Rewritten {
    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, hyper::Error> {
        Ok(match self.events.next().await? {
            Some(StreamChunk::Event(event)) => Some(self.replaced(event).await),
            Some(StreamChunk::TooLong) => {
                self.conversation.gateway.note_long("the server");
                let missed = self.unanswered.take();
                // The request may not wait for it any more.
                let missed = missed.filter(|(key, _)| self.conversation.forget(key));
                let error = missed.map(|(_, error)| format!("data: {error}\n\n").into());
                Some(error.unwrap_or_default())
            }
            None => None,
        })
    }

    async fn replaced(&self, event: Vec<u8>) -> Vec<u8> {
        let Some(message) = message(&event) else {
            return event;
        };
        match self.conversation.from_server(&message).await {
            FromServer::Replace(new) => with_message(&event, &new),
            _ => event,
        }
    }
}

fn rewritten(events: Rewritten) -> Body {
    let frames = stream::try_unfold(events, async |mut events| {
        let bytes = events.next().await.map_err(BoxError::from)?;
        Ok(bytes.map(|bytes| (Frame::data(Bytes::from(bytes)), events)))
    });
    flushed(StreamBody::new(frames)).boxed_unsync()
}
