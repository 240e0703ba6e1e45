//! Requests on their way to a server over HTTP, and its answers on their way back.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, ORIGIN};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyDataStream, BodyExt, StreamBody};
use hyper::body::Incoming;
use offcut::json::{Node, View as _};
use tokio::time::timeout;

use super::clients::{Clients, Current};
use super::login::Login;
use super::reply::{self, Body, BoxError};
use crate::gateway::message::{INTERNAL_ERROR, Party, parse};
use crate::gateway::{Conversation, FromClient, FromServer, McpGateway, ReaderCall};
use crate::http::events::{Events, StreamChunk, message, with_message};
use crate::http::flushed;
use crate::http::room::{MessageRoom, NotRead};
use crate::remote::address;
use crate::remote::body::{self, AnswerMessages, Kind, kind};
use crate::remote::connection::Connection;
use crate::remote::failure::RequestFailure;
use crate::remote::meaning::{METHOD, Meaning, NAME};
use crate::remote::parameters::Parameters;

/// Time for the list of tools before the call that needs it passes without.
const LIST: Duration = Duration::from_secs(10);
/// The answer to a call of the reader before the server has given its client a result.
const UNKNOWN: &str =
    "the server has not answered this client yet: call another of its tools first, then read again";

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
        let (text, room) = if parts.method == Method::POST {
            match self.room.read(body, Party::Client).await {
                Ok(read) => read,
                Err(problem) => return reply::not_read(&self.gateway, &problem),
            }
        } else {
            (Bytes::new(), self.room.begin())
        };
        let (headers, query) = (passed(parts.headers), parts.uri.query());
        let meaning = Meaning::read(&text, &Parameters::default());
        let current = self.clients.of(&headers, query, meaning.is("initialize"));
        let decided = current.conversation.from_client(&text);
        drop(room);
        let asked = ClientRequest {
            proxy: self,
            headers,
            query,
            host,
            current,
            meaning,
        };
        let first = match decided {
            FromClient::Answer(call) => return asked.read_back(&call).await,
            FromClient::Pass { first } => first,
        };
        if let Some(first) = first {
            _ = timeout(LIST, asked.learn(first)).await;
        }
        let headers = asked.headers.clone();
        let sent = self.connection.forward(&parts.method, headers, query, text);
        match sent.await {
            Ok(response) => {
                let is_end = parts.method == Method::DELETE && response.status().is_success();
                let answer = asked.passed(response).await;
                if is_end {
                    self.clients.forget(&asked.current);
                }
                answer
            }
            Err(failure) => asked.failed(&failure),
        }
    }
}

/// A client's request on its way.
struct ClientRequest<'p> {
    proxy: &'p Proxy,
    /// Its headers and its query, as the server gets them.
    headers: HeaderMap,
    query: Option<&'p str>,
    /// The host that the client names.
    host: &'p str,
    current: Current,
    meaning: Meaning,
}

impl ClientRequest<'_> {
    /// Answers a call of the reader, if the server knows the client.
    async fn read_back(&self, asked: &ReaderCall) -> Response<Body> {
        if self.current.is_known {
            return reply::json(StatusCode::OK, asked.answer().await);
        }
        let id = self.meaning.request_id();
        reply::error(StatusCode::OK, INTERNAL_ERROR, UNKNOWN, id)
    }

    /// Passes the server's answer.
    async fn passed(&self, response: Response<Incoming>) -> Response<Body> {
        let status = response.status();
        if matches!(
            status,
            StatusCode::NOT_FOUND | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
        ) {
            self.proxy.clients.forget(&self.current);
        }
        // Only a result shows that the server has accepted the credentials: others answer anybody.
        let (clients, is_opening) = (self.proxy.clients.clone(), self.meaning.is("initialize"));
        let (of, headers) = (self.current.clone(), response.headers().clone());
        let is_success = status.is_success();
        let see = move |message: &[u8]| {
            if is_success && is_result(message) {
                clients.accept(&of, is_opening, &headers);
            }
        };
        let gateway = &self.proxy.gateway;
        let mut answer = match kind(response.headers()) {
            _ if is_compressed(response.headers()) => {
                (gateway.log)("the server's answer is compressed, and passes unread");
                answered(response, reply::passed)
            }
            Kind::Events => answered(response, |body| {
                let too_long = RequestFailure::TooLong(gateway.too_long());
                let error = too_long.answer(&self.meaning, &self.server());
                let key = self.meaning.request_key().map(str::to_owned);
                rewritten(Rewritten {
                    events: body::events(body, gateway.max_message).within(self.proxy.room.begin()),
                    conversation: self.current.conversation.clone(),
                    see,
                    unanswered: key.zip(error),
                })
            }),
            Kind::Json => self.whole(response, see).await,
            Kind::Other => answered(response, reply::passed),
        };
        if !status.is_success() {
            self.forget();
            self.proxy.login.lead(answer.headers_mut(), self.host);
        }
        answer
    }

    /// Passes an answer of one message.
    async fn whole(&self, response: Response<Incoming>, see: impl FnOnce(&[u8])) -> Response<Body> {
        let (parts, body) = response.into_parts();
        let (text, room) = match self.proxy.room.read(body, Party::Server).await {
            Ok(read) => read,
            Err(NotRead::TooLong) => {
                let too_long = self.proxy.gateway.too_long();
                return self.failed(&RequestFailure::TooLong(too_long));
            }
            Err(NotRead::BrokeOff) => return self.failed(&RequestFailure::BrokeOff),
        };
        see(&text);
        let body = match self.current.conversation.from_server(&text).await {
            FromServer::Replace(new) => reply::full(new),
            _ => reply::held(text, room),
        };
        let mut answer = Response::from_parts(parts, body);
        reply::strip(answer.headers_mut());
        answer
    }

    /// Asks the server for its tools.
    async fn learn(&self, first: String) {
        let mut next = Some(first);
        while let Some(asked) = next.take() {
            let (post, headers) = (Method::POST, own_headers(&self.headers));
            let connection = &self.proxy.connection;
            let sent = connection.forward(&post, headers, self.query, asked.into());
            let Ok(response) = sent.await else {
                return;
            };
            let mut messages = AnswerMessages::new(response, self.proxy.gateway.max_message);
            while let Some(message) = messages.next().await {
                let decided = self.current.conversation.from_server(&message).await;
                if let FromServer::Own(following) = decided {
                    next = following;
                    break;
                }
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
            self.current.conversation.forget(key);
        }
    }

    /// The server, as it is told.
    fn server(&self) -> String {
        address::shown(self.proxy.connection.url())
    }
}

/// Returns true for an answer with a result.
fn is_result(message: &[u8]) -> bool {
    parse(message).is_some_and(|json| Node::root(&json).get("result").is_some())
}

/// Returns true for an answer that can't be read without decompression.
fn is_compressed(headers: &HeaderMap) -> bool {
    let encoding = headers.get(CONTENT_ENCODING);
    encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// The headers of a client's request that go to the server.
fn passed(mut headers: HeaderMap) -> HeaderMap {
    reply::strip(&mut headers);
    // Answers are read, and the server would check a page's origin against its own name.
    headers.remove(ACCEPT_ENCODING);
    headers.remove(ORIGIN);
    headers
}

/// The headers of a request for the list of tools in place of a client's.
fn own_headers(of_client: &HeaderMap) -> HeaderMap {
    // Any of them may be a credential.
    let is_about_message =
        |name: &HeaderName| *name == NAME || name.as_str().starts_with("mcp-param-");
    let kept = of_client.iter().filter(|(name, _)| !is_about_message(name));
    let kept = kept.map(|(name, value)| (name.clone(), value.clone()));
    let mut headers: HeaderMap = kept.collect();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let both = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(ACCEPT, both);
    if of_client.contains_key(METHOD) {
        headers.insert(METHOD, HeaderValue::from_static("tools/list"));
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
struct Rewritten<S> {
    events: Events<BodyDataStream<Incoming>>,
    conversation: Arc<Conversation>,
    /// Sees each message.
    see: S,
    /// The key of a request that has no answer, and the error that takes the place of the first message over the
    /// maximum, which may be the answer.
    unanswered: Option<(String, String)>,
}

impl<S: Fn(&[u8])> Rewritten<S> {
    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, hyper::Error> {
        Ok(match self.events.next().await? {
            Some(StreamChunk::Event(event)) => Some(self.replaced(event).await),
            Some(StreamChunk::Rest(bytes)) => Some(bytes),
            Some(StreamChunk::TooLong) => {
                self.conversation.gateway.note_long("the server");
                Some(self.missed().unwrap_or_default())
            }
            None => None,
        })
    }

    async fn replaced(&mut self, event: Vec<u8>) -> Vec<u8> {
        let Some(message) = message(&event) else {
            return event;
        };
        (self.see)(&message);
        match self.conversation.from_server(&message).await {
            FromServer::Replace(new) => with_message(&event, &new),
            _ => event,
        }
    }

    /// The error in place of an answer over the maximum, if the request still waits for it.
    fn missed(&mut self) -> Option<Vec<u8>> {
        let (key, error) = self.unanswered.take()?;
        let waits = self.conversation.forget(&key);
        waits.then(|| format!("data: {error}\n\n").into())
    }
}

fn rewritten(events: Rewritten<impl Fn(&[u8]) + Send + Sync + 'static>) -> Body {
    let frames = stream::try_unfold(events, async |mut events| {
        let bytes = events.next().await.map_err(BoxError::from)?;
        Ok(bytes.map(|bytes| (Frame::data(Bytes::from(bytes)), events)))
    });
    flushed(StreamBody::new(frames)).boxed_unsync()
}
