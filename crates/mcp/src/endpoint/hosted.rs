//! Servers over pipes, one for each session.

use std::collections::HashMap;
use std::ops::DerefMut;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{self, BoxFuture};
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use serde_json::json;
use tokio::io::DuplexStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::names::{random_name, unguessable};
use super::reply::{self, Body, BoxError, REFUSED, Refusal, refusal};
use super::session::{Events, INVALID_REQUEST, Session};
use crate::gateway::message::{error_answer, parse};
use crate::gateway::{Conversation, LAST_ANSWERS, McpGateway};
use crate::http::room::MessageRoom;
use crate::locked::locked;
use crate::remote::meaning::{Meaning, REVISION_HEADER, SESSION};

/// Maximum number of sessions that are open at once.
const MAX_SESSIONS: usize = 64;
/// Time between two signs of life in a stream without events.
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);
/// Time for the servers to end.
const FAREWELL: Duration = Duration::from_secs(5);
/// The first revision without sessions. A server over pipes can't tell clients apart without them.
const WITHOUT_SESSIONS: &str = "2026-07-28";
/// The revisions to which clients fall back.
const WITH_SESSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

/// JSON-RPC's codes, and those of the protocol.
const PARSE_ERROR: i32 = -32700;
const NO_SESSION: i32 = -32001;
const UNSUPPORTED_REVISION: i32 = -32022;

/// Runs a server for a conversation whose client is at the other end of these pipes, until both have
/// ended.
pub(super) type Start =
    dyn Fn(Conversation, (DuplexStream, DuplexStream)) -> BoxFuture<'static, ()> + Send + Sync;

/// All servers of an endpoint.
pub(super) struct Hosted {
    gateway: Arc<McpGateway>,
    start: Box<Start>,
    sessions: Arc<Mutex<HashMap<HeaderValue, Arc<Session>>>>,
    running: tokio::sync::Mutex<JoinSet<()>>,
    /// Room for bodies of requests.
    room: MessageRoom,
}

impl Hosted {
    pub(super) fn new(gateway: Arc<McpGateway>, start: Box<Start>) -> Self {
        Self {
            room: MessageRoom::new(gateway.max_message),
            gateway,
            start,
            sessions: Arc::default(),
            running: tokio::sync::Mutex::default(),
        }
    }

    /// Answers a request to the endpoint's own path.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let answered = match parts.method {
            Method::POST => self.post(&parts.headers, body).await,
            Method::GET => self.listen(&parts.headers).await,
            Method::DELETE => self.delete(&parts.headers).await,
            _ => Ok(reply::empty(StatusCode::METHOD_NOT_ALLOWED)),
        };
        answered.unwrap_or_else(|refusal| *refusal)
    }

    async fn post(&self, headers: &HeaderMap, body: Incoming) -> Result<Response<Body>, Refusal> {
        let (text, room) = match self.room.read_soon(body).await {
            Ok(read) => read,
            Err(problem) => return Err(Box::new(reply::not_read(&self.gateway, &problem))),
        };
        let json = parse(&text).ok_or_else(|| {
            let problem = "the message is not JSON, or has over a million values";
            refusal(StatusCode::BAD_REQUEST, PARSE_ERROR, problem)
        })?;
        let meaning = Meaning::of(&json);
        drop(json);
        if meaning.id.is_none() && meaning.method.is_none() {
            let text = "the body must be one message";
            return Err(refusal(StatusCode::BAD_REQUEST, INVALID_REQUEST, text));
        }
        let revision = headers.get(REVISION_HEADER).map(HeaderValue::as_bytes);
        let named = meaning.revision.as_deref().map(str::as_bytes);
        // An older client may begin a session whatever its headers say.
        let is_opening = meaning.is("initialize") && named.is_none_or(has_sessions);
        let mut opened = None;
        let session = if is_opening {
            let (id, session) = self.open().await?;
            opened = Some(id);
            session
        } else if !headers.contains_key(SESSION)
            && named.or(revision).is_some_and(|one| !has_sessions(one))
        {
            return Err(without_session(&meaning));
        } else {
            self.session(headers)?
        };
        session.touch();
        if meaning.request_id().is_none() {
            return if session.tell(&text, room).await {
                Ok(reply::empty(StatusCode::ACCEPTED))
            } else {
                Err(lost())
            };
        }
        let asked = session.ask(&text, &meaning, room).await?;
        let mut answer = stream_of(Box::new(asked), session);
        if let Some(id) = opened {
            answer.headers_mut().insert(SESSION, id);
        }
        Ok(answer)
    }

    async fn listen(&self, headers: &HeaderMap) -> Result<Response<Body>, Refusal> {
        let session = self.session(headers)?;
        session.touch();
        let own = session.listen().ok_or_else(|| {
            let text = "another request reads the messages of this session";
            refusal(StatusCode::CONFLICT, REFUSED, text)
        })?;
        Ok(stream_of(own, session))
    }

    async fn delete(&self, headers: &HeaderMap) -> Result<Response<Body>, Refusal> {
        self.session(headers)?.close().await;
        Ok(reply::empty(StatusCode::OK))
    }

    /// The session that a request names.
    fn session(&self, headers: &HeaderMap) -> Result<Arc<Session>, Refusal> {
        let Some(id) = headers.get(SESSION) else {
            let text = "the header Mcp-Session-Id is missing: a session begins with initialize";
            return Err(refusal(StatusCode::BAD_REQUEST, REFUSED, text));
        };
        let session = locked(&self.sessions).get(id).cloned();
        session.filter(|one| !one.is_over()).ok_or_else(lost)
    }

    /// Opens a session with a server of its own.
    async fn open(&self) -> Result<(HeaderValue, Arc<Session>), Refusal> {
        let id = random_name().filter(|_| locked(&self.sessions).len() < MAX_SESSIONS);
        let id = id.and_then(|id| HeaderValue::try_from(id).ok());
        let id = id.ok_or_else(|| {
            let text = "too many sessions are open: end one, or try again later";
            refusal(StatusCode::SERVICE_UNAVAILABLE, REFUSED, text)
        })?;
        let (session, client, from_server) = Session::new(self.gateway.clone());
        let server = (self.start)(unguessable(&self.gateway), client);
        locked(&self.sessions).insert(id.clone(), session.clone());
        let (all, own, passed) = (self.sessions.clone(), id.clone(), session.clone());
        let mut running = self.running.lock().await;
        while running.try_join_next().is_some() {}
        running.spawn(async move {
            // A server that does not even read that its client has gone is dropped.
            let dropped = async {
                tokio::select! {
                    () = passed.closed() => {}
                    () = passed.idle() => passed.close().await,
                }
                sleep(LAST_ANSWERS + FAREWELL).await;
            };
            tokio::select! {
                _ = future::join(server, passed.pass(from_server)) => {}
                () = dropped => {}
            }
            locked(&all).remove(&own);
            passed.ended().await;
        });
        Ok((id, session))
    }

    /// Ends all sessions, and waits for their servers.
    pub(super) async fn close(&self) {
        let all: Vec<Arc<Session>> = locked(&self.sessions).values().cloned().collect();
        for session in all {
            session.close().await;
        }
        let mut running = self.running.lock().await;
        let ended = async { while running.join_next().await.is_some() {} };
        // Those that are left are dropped, and their servers with them.
        _ = timeout(FAREWELL, ended).await;
    }
}

/// Tells a client that its session has ended: it has to begin another.
fn lost() -> Refusal {
    let text = "there is no such session any more";
    refusal(StatusCode::NOT_FOUND, NO_SESSION, text)
}

/// Returns true for a revision with sessions.
fn has_sessions(revision: &[u8]) -> bool {
    revision < WITHOUT_SESSIONS.as_bytes()
}

/// Tells a client of a revision without sessions which it may fall back to.
fn without_session(meaning: &Meaning) -> Refusal {
    let error = json!({
        "code": UNSUPPORTED_REVISION,
        "message": "offcut: in front of a command, clients have sessions: begin one with initialize",
        "data": {"supported": WITH_SESSIONS, "requested": meaning.revision},
    });
    let text = error_answer(meaning.request_id(), error);
    Box::new(reply::json(StatusCode::BAD_REQUEST, text))
}

/// An answer of events as they come, until there are no more or the session has ended. While there are none, a comment
/// now and then shows whether the client is still there.
fn stream_of<E>(events: E, session: Arc<Session>) -> Response<Body>
where
    E: DerefMut<Target = Events> + Send + 'static,
{
    let frames = stream::unfold((events, session), |(mut events, session)| async move {
        let bytes = tokio::select! {
            biased;
            event = events.recv() => event?.0,
            () = session.closed() => return None,
            () = sleep(SIGN_OF_LIFE) => Bytes::from_static(b": \n\n"),
        };
        Some((Ok::<_, BoxError>(Frame::data(bytes)), (events, session)))
    });
    let mut answer = Response::new(BodyExt::boxed_unsync(StreamBody::new(frames)));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}
