//! Sends requests to providers.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode, Uri, Version, header};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use offcut::ErrorChain;
use offcut_mcp::http::HttpClient;
use tokio::time::timeout;

use crate::gateway::body::{self, Body, ReadError};
use crate::gateway::metrics::{Metric, Metrics};
use crate::gateway::own::{self, Refusal};
use crate::gateway::reply::{OnEnd, watched};
use crate::gateway::settings::{GatewayError, ServeSettings};
use crate::gateway::upstream::Upstream;

/// Status of a reply that did not come, in the figures.
const UNANSWERED: u16 = 0;
/// Status of a reply whose client left or failed before it began, in the figures. Other servers count it so too.
const CLIENT_LEFT: u16 = 499;

/// Time for a connection to be made.
const CONNECT: Duration = Duration::from_secs(15);
/// Time for a connection to be idle.
const IDLE: Duration = Duration::from_secs(60);

/// The body of a request to a provider.
pub(crate) enum Payload {
    /// All of it. It can be sent again.
    Whole(Bytes),
    /// It passes as it comes.
    Stream(Body),
}

/// Sends requests to providers, and counts their replies.
pub(crate) struct Sender {
    client: HttpClient<Body>,
    pub(crate) patience: Duration,
    metrics: Arc<Metrics>,
}

impl Sender {
    pub(crate) fn new(
        settings: &ServeSettings,
        metrics: Arc<Metrics>,
    ) -> Result<Self, GatewayError> {
        Ok(Self {
            client: HttpClient::new(CONNECT, IDLE).map_err(GatewayError::Certificates)?,
            patience: Duration::from_secs(settings.answer_seconds),
            metrics,
        })
    }

    /// Sends a request, and returns the reply, which passes as it comes. `on_usage` is given the provider's usage once
    /// it has ended.
    pub(crate) async fn send(
        &self,
        parts: Parts,
        payload: Payload,
        upstream: &Upstream,
        on_usage: OnEnd,
    ) -> Result<Response<Body>, Refusal> {
        let name = &*upstream.name;
        // Dropped with this future if the client leaves, as it does before a provider that hangs.
        let mut counted = CountedReply {
            metrics: &self.metrics,
            upstream: name,
            status: CLIENT_LEFT,
        };
        let answered = timeout(self.patience, self.request(parts, payload)).await;
        let (status, problem) = match answered {
            Ok(Ok(response)) => {
                counted.status = response.status().as_u16();
                return self.replied(response, name, on_usage);
            }
            Ok(Err(error)) => {
                if let Some(error) = of_client(&error) {
                    return Err(Box::new(own::not_read(error)));
                }
                let error = ErrorChain(&error);
                let problem = format!("{error}: check the network and `serve.upstreams.{name}`");
                (StatusCode::BAD_GATEWAY, problem)
            }
            Err(_) => {
                let problem = "it took too long: raise `serve.answer_seconds`, or try again";
                (StatusCode::GATEWAY_TIMEOUT, problem.to_owned())
            }
        };
        counted.status = UNANSWERED;
        tracing::warn!(error = problem, "the provider did not answer");
        let message = format!("the provider {name} did not answer: {problem}");
        own::refused(status, &message)
    }

    /// A provider's reply, as it goes on.
    fn replied(
        &self,
        response: Response<Incoming>,
        name: &str,
        on_usage: OnEnd,
    ) -> Result<Response<Body>, Refusal> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS || !is_plain(response.headers()) {
            let message = format!(
                "the provider {name} answered in a protocol or a transfer encoding that was not asked for"
            );
            return own::refused(StatusCode::BAD_GATEWAY, &message);
        }
        let (mut parts, body) = response.into_parts();
        offcut_mcp::http::strip(&mut parts.headers);
        // The version belongs to the connection, and an agent's own is another one.
        parts.version = Version::HTTP_11;
        let (metrics, name) = (Arc::clone(&self.metrics), name.to_owned());
        let on_break = move |error: &hyper::Error| {
            metrics.add(Metric::BrokenReplies, &[("upstream", &name)], 1);
            let error = ErrorChain(error).to_string();
            tracing::warn!(upstream = name, error, "the provider's reply broke off");
        };
        let body = watched(body, &parts.headers, on_usage, on_break);
        Ok(Response::from_parts(parts, body))
    }

    async fn request(
        &self,
        mut parts: Parts,
        payload: Payload,
    ) -> Result<Response<Incoming>, legacy::Error> {
        let bytes = match payload {
            Payload::Whole(bytes) => bytes,
            Payload::Stream(body) => {
                return self.client.pass(Request::from_parts(parts, body)).await;
            }
        };
        if !bytes.is_empty() || parts.headers.contains_key(header::CONTENT_LENGTH) {
            let length = bytes.len().into();
            parts.headers.insert(header::CONTENT_LENGTH, length);
        }
        self.client.send(parts, || body::full(bytes.clone())).await
    }
}

/// The head of a request to a provider. `host` and `expect` are for one server each.
pub(crate) fn head(mut parts: Parts, uri: Uri) -> Parts {
    offcut_mcp::http::strip(&mut parts.headers);
    parts.headers.remove(header::HOST);
    parts.headers.remove(header::EXPECT);
    parts.uri = uri;
    parts.version = Version::HTTP_11;
    parts
}

/// The words that a header lists.
pub(crate) fn words<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h [u8]> {
    let values = headers.get_all(name).into_iter();
    let words = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    words.map(<[u8]>::trim_ascii)
}

/// Counts a reply when it is dropped.
struct CountedReply<'s> {
    metrics: &'s Metrics,
    upstream: &'s str,
    status: u16,
}

impl Drop for CountedReply<'_> {
    fn drop(&mut self) {
        let labels = [
            ("upstream", self.upstream),
            ("status", &self.status.to_string()),
        ];
        self.metrics.add(Metric::Replies, &labels, 1);
    }
}

/// Returns true if a reply is in no transfer encoding that would be lost with its header.
fn is_plain(headers: &HeaderMap) -> bool {
    let mut codings = words(headers, "transfer-encoding")
        .filter(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"));
    codings
        .next()
        .is_none_or(|first| first.eq_ignore_ascii_case(b"chunked"))
        && codings.next().is_none()
}

/// The error of the client's own body, which ended a request to a provider.
fn of_client<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e ReadError> {
    let mut chain = std::iter::successors(Some(error), |error| (*error).source());
    chain.find_map(|error| error.downcast_ref())
}
