//! Requests on their way to a server over HTTP, and its answers on their way back.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Collected, Limited, StreamBody};
use hyper::body::Incoming;
use offcut::json::{Node, View as _};
use tokio::time::timeout;

use super::clients::{Clients, Current};
use super::login::Login;
use super::reply::{self, Body, BodySender, BoxError, MessageRoom, NotRead};
use crate::gateway::message::{INTERNAL_ERROR, kept, own_id, parse};
use crate::gateway::{Conversation, FromClient, FromServer, McpGateway};
use crate::http::events::{Events, StreamChunk, message, with_message};
use crate::remote::address;
use crate::remote::body::{BodyReader, Kind, kind};
use crate::remote::connection::Connection;
use crate::remote::failure::RequestFailure;
use crate::remote::meaning::{METHOD, Meaning, NAME};
use crate::remote::parameters::Parameters;

/// Time for the list of tools before the call that needs it passes without.
const LIST: Duration = Duration::from_secs(10);
/// Time for the server to say whether it knows the credentials of a call of the reader.
const PING: Duration = Duration::from_secs(30);
/// Maximum number of bytes of its answer that are passed on.
const MAX_REFUSAL: usize = 64 * 1024;

/// A server over HTTP with an endpoint in front.
pub(super) struct Proxy {
    gateway: Arc<McpGateway>,
    connection: Arc<Connection>,
    clients: Arc<Clients>,
    pub(super) login: Login,
    /// Room for messages that are held.
    room: MessageRoom,
}

impl Proxy {
    pub(super) fn new(gateway: Arc<McpGateway>, connection: Connection, is_shared: bool) -> Self {
        let connection = Arc::new(connection);
        Self {
            clients: Arc::new(Clients::new(gateway.clone(), is_shared)),
            login: Login::new(connection.clone()),
            room: MessageRoom::new(gateway.max_message),
            connection,
            gateway,
        }
    }

    /// Answers a request to the endpoint's own path. `host` is the one that the client names.
    pub(super) async fn answer(&self, request: Request<Incoming>, host: &str) -> Response<Body> {
        let (parts, body) = request.into_parts();
        if parts.method == Method::POST {
            return self.post(parts, body, host).await;
        }
        let (headers, query) = (passed(&parts), parts.uri.query());
        let current = self.clients.of(&headers, query, false);
        let sent = self
            .connection
            .forward(&parts.method, headers, query, Bytes::new());
        match sent.await {
            Ok(response) => {
                let is_end = parts.method == Method::DELETE && response.status().is_success();
                let meaning = Meaning::default();
                let answer = self.passed(response, &current, &meaning, host).await;
                if is_end {
                    self.clients.forget(&current);
                }
                answer
            }
            Err(failure) => self.failed(&failure, &Meaning::default()),
        }
    }

    async fn post(&self, parts: Parts, body: Incoming, host: &str) -> Response<Body> {
        let (headers, query) = (passed(&parts), parts.uri.query());
        let (text, room) = match self.room.read(body, BodySender::Client).await {
            Ok(read) => read,
            Err(NotRead::TooLong) => return reply::too_long(&self.gateway),
            Err(NotRead::BrokeOff) => return reply::empty(StatusCode::BAD_REQUEST),
        };
        let meaning = Meaning::read(&text, &Parameters::default());
        let current = self.clients.of(&headers, query, meaning.is("initialize"));
        let decided = current.conversation.from_client(&text);
        drop(room);
        match decided {
            FromClient::Answer(asked) => {
                if self.clients.is_unknown(&current)
                    && let Some(refusal) =
                        self.refusal(&headers, query, &text, &current, host).await
                {
                    return refusal;
                }
                return match current.conversation.answer(asked).await {
                    Some(answer) => reply::json(StatusCode::OK, answer),
                    None => reply::empty(StatusCode::ACCEPTED),
                };
            }
            FromClient::Drop => return reply::empty(StatusCode::ACCEPTED),
            FromClient::Pass { first } => {
                if let Some(first) = first {
                    _ = timeout(
                        LIST,
                        self.learn(&headers, query, &current.conversation, first),
                    )
                    .await;
                }
            }
        }
        let sent = self.connection.forward(&Method::POST, headers, query, text);
        match sent.await {
            Ok(response) => self.passed(response, &current, &meaning, host).await,
            Err(failure) => {
                forget(&current, &meaning);
                self.failed(&failure, &meaning)
            }
        }
    }

    /// Passes the server's answer to the request that `meaning` is of.
    async fn passed(
        &self,
        response: Response<Incoming>,
        current: &Current,
        meaning: &Meaning,
        host: &str,
    ) -> Response<Body> {
        let status = response.status();
        if matches!(
            status,
            StatusCode::NOT_FOUND | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
        ) {
            self.clients.forget(current);
        }
        // Only a result shows that the server has accepted the credentials: others answer anybody.
        let (clients, is_opening) = (self.clients.clone(), meaning.is("initialize"));
        let (of, headers) = (current.clone(), response.headers().clone());
        let is_success = status.is_success();
        let see = move |message: &[u8]| {
            if is_success && is_result(message) {
                clients.accept(&of, is_opening, &headers);
            }
        };
        let conversation = current.conversation.clone();
        let mut answer = match kind(response.headers()) {
            _ if is_compressed(response.headers()) => {
                (self.gateway.log)("the server's answer is compressed, and passes unread");
                answered(response, reply::passed)
            }
            Kind::Events => {
                let max = self.gateway.max_message;
                let missed = self.missed(&conversation, meaning);
                let gateway = self.gateway.clone();
                let room = self.room.begin();
                answered(response, |body| {
                    let events = Events::new(BodyReader::new(body), max).within(room);
                    rewritten(events, conversation, (gateway, missed), see)
                })
            }
            Kind::Json => self.whole(response, current, meaning, see).await,
            Kind::Other => answered(response, reply::passed),
        };
        if !status.is_success() {
            forget(current, meaning);
            self.login.lead(answer.headers_mut(), host);
        }
        answer
    }

    /// Passes an answer of one message.
    async fn whole(
        &self,
        response: Response<Incoming>,
        current: &Current,
        meaning: &Meaning,
        see: impl FnOnce(&[u8]),
    ) -> Response<Body> {
        let (parts, body) = response.into_parts();
        let (text, room) = match self.room.read(body, BodySender::Server).await {
            Ok(read) => read,
            Err(problem) => {
                forget(current, meaning);
                return self.failed(
                    &match problem {
                        NotRead::TooLong => RequestFailure::TooLong(self.gateway.too_long()),
                        NotRead::BrokeOff => RequestFailure::BrokeOff,
                    },
                    meaning,
                );
            }
        };
        see(&text);
        let body = match current.conversation.from_server(&text).await {
            FromServer::Replace(new) => reply::full(new),
            _ => reply::held(text, room),
        };
        let mut answer = Response::from_parts(parts, body);
        reply::strip(answer.headers_mut());
        answer
    }

    /// Asks the server for its tools, with the headers of a client's call.
    async fn learn(
        &self,
        headers: &HeaderMap,
        query: Option<&str>,
        conversation: &Conversation,
        first: String,
    ) {
        let mut next = Some(first);
        while let Some(asked) = next.take() {
            let headers = own_headers(headers, "tools/list");
            let sent = self
                .connection
                .forward(&Method::POST, headers, query, asked.into());
            let Ok(response) = sent.await else { return };
            next = self.learned(response, conversation).await;
        }
    }

    /// Reads the answer to a request of the gateway's own. Returns the next one.
    async fn learned(
        &self,
        response: Response<Incoming>,
        conversation: &Conversation,
    ) -> Option<String> {
        let max = self.gateway.max_message;
        match kind(response.headers()) {
            Kind::Json => {
                let body = Limited::new(response.into_body(), max)
                    .collect()
                    .await
                    .ok()?;
                match conversation.from_server(&body.to_bytes()).await {
                    FromServer::Own(next) => next,
                    _ => None,
                }
            }
            Kind::Events => {
                let mut events = Events::new(BodyReader::new(response.into_body()), max);
                while let Some(message) = events.next_message().await {
                    if let FromServer::Own(next) = conversation.from_server(&message).await {
                        return next;
                    }
                }
                None
            }
            Kind::Other => None,
        }
    }

    /// Asks the server about credentials that it may not know, since it does not see `call`, one of the reader.
    /// Returns its refusal.
    async fn refusal(
        &self,
        headers: &HeaderMap,
        query: Option<&str>,
        call: &[u8],
        current: &Current,
        host: &str,
    ) -> Option<Response<Body>> {
        let headers = own_headers(headers, "ping");
        let sent = self
            .connection
            .forward(&Method::POST, headers, query, ping_like(call).into());
        let asked = timeout(PING, async {
            let (parts, body) = sent.await?.into_parts();
            let body = Limited::new(body, MAX_REFUSAL).collect().await;
            Ok((
                parts,
                body.map_or_else(|_| Bytes::new(), Collected::to_bytes),
            ))
        });
        let (parts, body) = match asked.await.unwrap_or(Err(RequestFailure::BrokeOff)) {
            Ok(answer) => answer,
            Err(failure) => return Some(self.failed(&failure, &Meaning::default())),
        };
        let is_refused = matches!(
            parts.status,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
        );
        let message = match kind(&parts.headers) {
            Kind::Events => Events::new(&body[..], MAX_REFUSAL).next_message().await,
            _ => Some(body.to_vec()),
        };
        let message = message.unwrap_or_default();
        let is_known = parts.status.is_success() && is_result(&message);
        if is_known || !is_refused && is_unknown_method(&message) {
            self.clients.accept(current, false, &parts.headers);
            return None;
        }
        if parts.status.is_success() {
            let message = "the server did not say that it knows these credentials";
            return Some(reply::error(
                StatusCode::FORBIDDEN,
                INTERNAL_ERROR,
                message,
                None,
            ));
        }
        let mut answer = Response::from_parts(parts, reply::full(body));
        reply::strip(answer.headers_mut());
        self.login.lead(answer.headers_mut(), host);
        Some(answer)
    }

    /// Makes an event in place of messages over the maximum: an error, if the request that `meaning` is of still has no
    /// answer.
    fn missed(
        &self,
        conversation: &Arc<Conversation>,
        meaning: &Meaning,
    ) -> impl FnOnce() -> Vec<u8> + Send + Sync + use<> {
        let server = address::shown(self.connection.url());
        let error = RequestFailure::TooLong(self.gateway.too_long()).answer(meaning, &server);
        let key = meaning.request_key().map(str::to_owned);
        let conversation = Arc::clone(conversation);
        move || {
            let waits = key.is_some_and(|key| conversation.forget(&key));
            let error = error.filter(|_| waits);
            error.map_or_else(Vec::new, |error| format!("data: {error}\n\n").into())
        }
    }

    fn failed(&self, failure: &RequestFailure, meaning: &Meaning) -> Response<Body> {
        let server = address::shown(self.connection.url());
        (self.gateway.log)(&format!("{server}: {failure}"));
        let text = format!("{server}: {failure}");
        let status = StatusCode::BAD_GATEWAY;
        reply::error(status, INTERNAL_ERROR, &text, meaning.request_id())
    }
}

/// A request that says nothing, with what the `call` says of its revision.
fn ping_like(call: &[u8]) -> String {
    let json = parse(call);
    let params = json
        .as_ref()
        .and_then(|json| Node::root(json).get("params"));
    let meta = kept(params.and_then(|params| params.get("_meta")));
    let params = meta.map_or_else(String::new, |meta| {
        format!(r#","params":{{"_meta":{meta}}}"#)
    });
    let id = own_id();
    format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"ping"{params}}}"#)
}

/// Returns true for an answer with a result.
fn is_result(message: &[u8]) -> bool {
    parse(message).is_some_and(|json| Node::root(&json).get("result").is_some())
}

/// Returns true for the answer of a server that would answer, but has no such method: revisions without
/// sessions have no ping.
fn is_unknown_method(body: &[u8]) -> bool {
    let json = parse(body);
    let code = json
        .as_ref()
        .and_then(|json| Node::root(json).get("error")?.get("code"));
    code.is_some_and(|code| code.json().to_string() == "-32601")
}

/// Expects no answer any more.
fn forget(current: &Current, meaning: &Meaning) {
    if let Some(key) = meaning.request_key() {
        current.conversation.forget(key);
    }
}

/// Returns true for an answer that can't be read without decompression.
fn is_compressed(headers: &HeaderMap) -> bool {
    let encoding = headers.get(CONTENT_ENCODING);
    encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// The headers of a client's request that go to the server.
fn passed(parts: &Parts) -> HeaderMap {
    let mut headers = parts.headers.clone();
    reply::strip(&mut headers);
    // Answers are read, and the server would check a page's origin against its own name.
    headers.remove(ACCEPT_ENCODING);
    headers.remove(ORIGIN);
    headers
}

/// The headers of a request of the gateway's own in place of a client's.
fn own_headers(of_client: &HeaderMap, method: &'static str) -> HeaderMap {
    // Any of them may be a credential.
    let is_about_message =
        |name: &HeaderName| *name == NAME || name.as_str().starts_with("mcp-param-");
    let mut headers = HeaderMap::new();
    for (name, value) in of_client {
        if !is_about_message(name) {
            headers.append(name.clone(), value.clone());
        }
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let both = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(ACCEPT, both);
    if of_client.contains_key(METHOD) {
        headers.insert(METHOD, HeaderValue::from_static(method));
    }
    headers
}

/// The server's answer with its body made by `body`.
fn answered(response: Response<Incoming>, body: impl FnOnce(Incoming) -> Body) -> Response<Body> {
    let is_events = matches!(kind(response.headers()), Kind::Events);
    let mut answer = response.map(body);
    if is_events {
        reply::strip(answer.headers_mut());
    } else {
        reply::strip_but_length(answer.headers_mut());
    }
    answer
}

/// A stream of events in which long results are replaced. What `missed` gives comes in place of the first message over the
/// maximum that may be the answer, or else after the last of them at the end.
fn rewritten(
    events: Events<BodyReader>,
    conversation: Arc<Conversation>,
    (gateway, missed): (
        Arc<McpGateway>,
        impl FnOnce() -> Vec<u8> + Send + Sync + 'static,
    ),
    see: impl Fn(&[u8]) + Send + Sync + 'static,
) -> Body {
    let state = Some((events, see, false, Some(missed)));
    let frames = stream::unfold(state, move |state| {
        let (gateway, conversation) = (gateway.clone(), conversation.clone());
        async move {
            let (mut events, see, mut misses_some, mut missed) = state?;
            let bytes = match events.next().await {
                Ok(Some(StreamChunk::Event(event))) => {
                    if let Some(message) = message(&event) {
                        see(&message);
                    }
                    replaced(event, &conversation).await
                }
                Ok(Some(StreamChunk::Rest(bytes))) => bytes,
                Ok(Some(StreamChunk::TooLong { may_answer })) => {
                    gateway.note_long("the server");
                    misses_some = true;
                    let missed = missed.take_if(|_| may_answer);
                    missed.map_or_else(Vec::new, |missed| missed())
                }
                Ok(None) => missed.take_if(|_| misses_some)?(),
                Err(error) => return Some((Err(BoxError::from(error)), None)),
            };
            let frame = Frame::data(Bytes::from(bytes));
            Some((Ok(frame), Some((events, see, misses_some, missed))))
        }
    });
    BodyExt::boxed_unsync(StreamBody::new(frames))
}

async fn replaced(event: Vec<u8>, conversation: &Conversation) -> Vec<u8> {
    let Some(message) = message(&event) else {
        return event;
    };
    match conversation.from_server(&message).await {
        FromServer::Replace(new) => with_message(&event, &new),
        _ => event,
    }
}
