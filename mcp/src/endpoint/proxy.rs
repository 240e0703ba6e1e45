//! Requests on their way to a server over HTTP, and its answers on their way back.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::body::Incoming;
use tokio::time::timeout;

use super::clients::{Clients, Current};
use super::events::{Chunk, RawEvents, message, with_message};
use super::login::Login;
use super::reply::{self, Body, BoxError, Read};
use crate::gateway::{Conversation, FromClient, FromServer, McpGateway};
use crate::remote::body::{BodyReader, Kind, kind};
use crate::remote::connection::{Connection, is_compressed};
use crate::remote::failure::{Failure, INTERNAL_ERROR};
use crate::remote::meaning::{METHOD, Meaning, NAME};
use crate::remote::parameters::Parameters;
use crate::remote::{address, session};

/// Time for the list of tools before the call that needs it passes without.
const LIST: Duration = Duration::from_secs(10);

/// A server over HTTP with an endpoint in front.
pub(super) struct Proxy {
    gateway: Arc<McpGateway>,
    connection: Arc<Connection>,
    clients: Clients,
    login: Login,
}

impl Proxy {
    pub(super) fn new(gateway: Arc<McpGateway>, connection: Connection, is_shared: bool) -> Self {
        let connection = Arc::new(connection);
        Self {
            clients: Clients::new(gateway.clone(), is_shared),
            login: Login::new(connection.clone()),
            connection,
            gateway,
        }
    }

    /// Answers a request to one of the paths by which clients log in; `None` for any other.
    pub(super) async fn log_in(
        &self,
        request: &mut Option<Request<Incoming>>,
        host: &str,
    ) -> Option<Response<Body>> {
        self.login.answer(request, host).await
    }

    /// Answers a request to the endpoint's own path. `host` is the one that the client names.
    pub(super) async fn answer(&self, request: Request<Incoming>, host: &str) -> Response<Body> {
        let (parts, body) = request.into_parts();
        if parts.method == Method::POST {
            return self.post(parts, body, host).await;
        }
        let (current, headers) = (self.clients.of(&parts.headers, false), passed(&parts));
        let sent = self
            .connection
            .forward(&parts.method, headers, Bytes::new());
        match sent.await {
            Ok(response) => {
                if parts.method == Method::DELETE && response.status().is_success() {
                    self.clients.ended(&current);
                }
                self.passed(response, &current, &Meaning::default(), host)
                    .await
            }
            Err(failure) => self.failed(&failure, &Meaning::default()),
        }
    }

    async fn post(&self, parts: Parts, body: Incoming, host: &str) -> Response<Body> {
        let headers = passed(&parts);
        let text = match reply::read(body, self.gateway.max_message).await {
            Ok(Read::Whole(text)) => text,
            Ok(Read::Long(body)) => {
                self.gateway.note_long("a client");
                let sent = self.connection.forward_stream(&Method::POST, headers, body);
                return match sent.await {
                    Ok(response) => answered(response, reply::passed),
                    Err(failure) => self.failed(&failure, &Meaning::default()),
                };
            }
            Err(_) => return reply::empty(StatusCode::BAD_REQUEST),
        };
        let meaning = Meaning::read(&text, &Parameters::default());
        let current = self.clients.of(&headers, meaning.is("initialize"));
        match current.conversation.from_client(&text) {
            FromClient::Answer(asked) => {
                if current.is_unknown()
                    && let Some(refusal) = self.refusal(&headers, &current, host).await
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
                    _ = timeout(LIST, self.learn(&headers, &current.conversation, first)).await;
                }
            }
        }
        match self.connection.forward(&Method::POST, headers, text).await {
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
        if status.is_success() {
            let is_opening = meaning.is("initialize");
            self.clients
                .accepted(current, is_opening, response.headers());
        } else if status == StatusCode::NOT_FOUND {
            self.clients.ended(current);
        }
        let conversation = current.conversation.clone();
        let mut answer = match kind(response.headers()) {
            _ if is_compressed(response.headers()) => {
                (self.gateway.log)("the server's answer is compressed, and passes unread");
                answered(response, reply::passed)
            }
            Kind::Events => {
                let gateway = self.gateway.clone();
                answered(response, |body| rewritten(body, conversation, gateway))
            }
            Kind::Json => self.whole(response, &conversation).await,
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
        conversation: &Conversation,
    ) -> Response<Body> {
        let (parts, body) = response.into_parts();
        let body = match reply::read(body, self.gateway.max_message).await {
            Ok(Read::Whole(text)) => match conversation.from_server(&text).await {
                FromServer::Replace(new) => reply::full(new),
                _ => reply::full(text),
            },
            Ok(Read::Long(body)) => {
                self.gateway.note_long("the server");
                body
            }
            Err(_) => return self.failed(&Failure::BrokeOff, &Meaning::default()),
        };
        let mut answer = Response::from_parts(parts, body);
        reply::strip(answer.headers_mut());
        answer
    }

    /// Asks the server for its tools, with the headers of a client's call.
    async fn learn(&self, headers: &HeaderMap, conversation: &Conversation, first: String) {
        let mut next = Some(first);
        while let Some(asked) = next.take() {
            let headers = own_headers(headers, "tools/list");
            let sent = self
                .connection
                .forward(&Method::POST, headers, asked.into());
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
                let mut events = RawEvents::new(BodyReader::new(response.into_body()), max);
                while let Ok(Some(chunk)) = events.next().await {
                    let Chunk::Event(event) = chunk else { continue };
                    let Some(message) = message(&event) else {
                        continue;
                    };
                    if let FromServer::Own(next) = conversation.from_server(&message).await {
                        return next;
                    }
                }
                None
            }
            Kind::Other => None,
        }
    }

    /// Asks the server about credentials that it may not know, since it does not see calls of the reader.
    /// Returns its refusal.
    async fn refusal(
        &self,
        headers: &HeaderMap,
        current: &Current,
        host: &str,
    ) -> Option<Response<Body>> {
        let ping = r#"{"jsonrpc":"2.0","id":"offcut-ping","method":"ping"}"#;
        let headers = own_headers(headers, "ping");
        let sent = self.connection.forward(&Method::POST, headers, ping.into());
        let response = match sent.await {
            // Revisions without sessions have no such method; only a refusal counts.
            Ok(response) if !is_refusal(response.status(), current.has_session()) => {
                self.clients.accepted(current, false, response.headers());
                return None;
            }
            Ok(response) => response,
            Err(failure) => return Some(self.failed(&failure, &Meaning::default())),
        };
        let mut answer = answered(response, reply::passed);
        self.login.lead(answer.headers_mut(), host);
        Some(answer)
    }

    fn failed(&self, failure: &Failure, meaning: &Meaning) -> Response<Body> {
        let server = address::shown(self.connection.url());
        (self.gateway.log)(&format!("{server}: {failure}"));
        let text = format!("{server}: {failure}");
        let status = StatusCode::BAD_GATEWAY;
        reply::error(status, INTERNAL_ERROR, &text, meaning.request_id())
    }
}

/// Returns true if the server does not let in the one who asks.
fn is_refusal(status: StatusCode, has_session: bool) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
        || status == StatusCode::NOT_FOUND && has_session
}

/// Expects no answer any more.
fn forget(current: &Current, meaning: &Meaning) {
    if let Some(key) = meaning.request_key() {
        current.conversation.forget(key);
    }
}

/// The headers of a client's request that go to the server.
fn passed(parts: &Parts) -> HeaderMap {
    let mut headers = parts.headers.clone();
    reply::strip(&mut headers);
    // Answers are read, and the server would check a page's origin against its own name.
    headers.remove(ACCEPT_ENCODING);
    headers.remove(ORIGIN);
    for (name, value) in &mut headers {
        if name == AUTHORIZATION {
            value.set_sensitive(true);
        }
    }
    headers
}

/// The headers of a request of the gateway's own in place of a client's.
fn own_headers(of_client: &HeaderMap, method: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for name in [
        AUTHORIZATION,
        session::SESSION,
        session::REVISION_HEADER,
        http::header::COOKIE,
    ] {
        for value in of_client.get_all(&name) {
            headers.append(name.clone(), value.clone());
        }
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let both = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(ACCEPT, both);
    if of_client.contains_key(METHOD) {
        headers.insert(METHOD, HeaderValue::from_static(method));
        headers.remove(NAME);
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

/// A stream of events in which long results are replaced.
fn rewritten(body: Incoming, conversation: Arc<Conversation>, gateway: Arc<McpGateway>) -> Body {
    let events = RawEvents::new(BodyReader::new(body), gateway.max_message);
    let frames = stream::unfold(Some((events, conversation, gateway)), |state| async {
        let (mut events, conversation, gateway) = state?;
        let bytes = match events.next().await {
            Ok(Some(Chunk::Event(event))) => replaced(event, &conversation).await,
            Ok(Some(Chunk::Part { bytes, is_first })) => {
                if is_first {
                    gateway.note_long("the server");
                }
                bytes
            }
            Ok(None) => return None,
            Err(error) => return Some((Err(BoxError::from(error)), None)),
        };
        let frame = Frame::data(Bytes::from(bytes));
        Some((Ok(frame), Some((events, conversation, gateway))))
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
