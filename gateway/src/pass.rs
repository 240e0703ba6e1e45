//! A request with a conversation on its way to its provider.

use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use offcut::ErrorChain;
use offcut::format::{RequestBody, WireFormat};
use serde_json::json;
use tokio::task::spawn_blocking;

use crate::body::{self, Body, Read};
use crate::encoding::Encoding;
use crate::exchange::{Exchange, Purpose};
use crate::metrics::{Metric, Metrics};
use crate::outcome::{self, Outcome, Reason};
use crate::reducer::{ConversationId, Reduced, Reducer};
use crate::refused::{is_thread, says_too_long};
use crate::send::{Refusal, Sender};
use crate::settings::{OnFailure, ServeSettings};
use crate::tenant::Tenants;
use crate::upstream::Upstream;
use crate::watch::{Look, Prompt, Watch};
use crate::{forward, own};

/// The longest error of a provider that is read.
const LONGEST_ERROR: usize = 1024 * 1024;

/// Takes requests with a conversation to their provider.
pub(crate) struct Passage {
    pub(crate) sender: Sender,
    pub(crate) reducer: Option<Reducer>,
    pub(crate) tenants: Tenants,
    metrics: Arc<Metrics>,
    watch: Arc<Watch>,
    max_body: usize,
    pause: Duration,
    on_failure: OnFailure,
}

/// A body that has been worked on.
struct Worked {
    outcome: Outcome,
    /// The body, if it was understood.
    body: Option<RequestBody>,
    /// The body to send and its conversation, if it has been changed.
    changed: Option<(Bytes, ConversationId)>,
}

impl Worked {
    fn passed(reason: Reason) -> Self {
        Self::as_it_came(Outcome::Passed(reason))
    }

    fn as_it_came(outcome: Outcome) -> Self {
        Self {
            outcome,
            body: None,
            changed: None,
        }
    }
}

impl Passage {
    pub(crate) fn new(
        settings: &ServeSettings,
        sender: Sender,
        reducer: Option<Reducer>,
        tenants: Tenants,
        metrics: Arc<Metrics>,
        watch: Arc<Watch>,
    ) -> Self {
        Self {
            sender,
            reducer,
            tenants,
            metrics,
            watch,
            max_body: settings.max_body_bytes(),
            pause: settings.body_pause(),
            on_failure: settings.on_failure,
        }
    }

    /// Takes a request to its provider, and its reply back.
    pub(crate) async fn pass(
        &self,
        parts: Parts,
        body: Incoming,
        exchange: Exchange,
        upstream: &Upstream,
        begun: Instant,
    ) -> Result<Response<Body>, Refusal> {
        let read = body::read(body, self.max_body, self.pause)
            .await
            .map_err(|error| {
                tracing::debug!(error = %ErrorChain(&error), "a client's body was not read");
                let message = format!("{}: send it again", ErrorChain(&error));
                Box::new(own::error(StatusCode::REQUEST_TIMEOUT, &message))
            })?;
        let original = match read {
            Read::Whole(original) => original,
            Read::TooLong(body) => {
                let worked = Worked::passed(Reason::TooLong);
                self.note(upstream, worked.outcome)?;
                self.watch
                    .call(upstream.name(), Look::default(), worked.outcome);
                let reply = self
                    .sender
                    .send(Request::from_parts(parts, body), upstream, None)
                    .await?;
                return Ok(marked(reply, worked.outcome));
            }
        };
        let mut look = Look::default();
        look.would = Prompt::unread(original.len() as u64);
        let worked = self.work(&parts, &original, exchange, &mut look).await?;
        let Worked {
            outcome,
            body,
            changed,
        } = worked;
        self.note(upstream, outcome)?;
        let (group, before) = (look.group, look.would.bytes());
        let sent = changed.as_ref().map(|(text, _)| text.len() as u64);
        // Its messages are read for the page while the request is on its way.
        let watched = (exchange.purpose == Purpose::Turn).then(|| {
            let (watch, name) = (self.watch.clone(), upstream.name().to_owned());
            spawn_blocking(move || {
                if let Some(body) = &body {
                    look.read(body, sent);
                }
                watch.call(&name, look, outcome);
            })
        });
        let send = async |request| {
            let reply = self.sender.send(request, upstream, group).await;
            if let Some(watched) = watched {
                _ = watched.await;
            }
            reply
        };
        let Some((changed, conversation)) = changed else {
            self.metrics.took(begun.elapsed());
            let reply = send(as_it_came(parts, original)).await?;
            return Ok(marked(reply, outcome));
        };
        self.metrics
            .add(Metric::Bytes, &[("when", "before")], before);
        self.metrics
            .add(Metric::Bytes, &[("when", "after")], changed.len() as u64);
        let mut head = parts.clone();
        // A body that was decoded is not compressed again.
        head.headers.remove(header::CONTENT_ENCODING);
        let size = Some(changed.len());
        let request = forward::with_body(head, body::full(changed), size);
        self.metrics.took(begun.elapsed());
        let reply = send(request).await?;
        if reply.status() != StatusCode::BAD_REQUEST {
            return Ok(marked(reply, outcome));
        }
        let (reply, is_final) = examined(reply).await?;
        if is_final {
            return Ok(marked(reply, outcome));
        }
        self.watch
            .refused(upstream.name(), conversation.name(), before);
        let reply = self
            .sender
            .send(as_it_came(parts, original), upstream, group)
            .await?;
        if reply.status().is_success()
            && let Some(reducer) = &self.reducer
        {
            reducer.leave(&conversation).await;
            self.metrics.add(Metric::Untouched, &[], 1);
        }
        let outcome = Outcome::Passed(Reason::Refused);
        self.note(upstream, outcome)?;
        Ok(marked(reply, outcome))
    }

    /// Reduces a body, if that can be done.
    async fn work(
        &self,
        parts: &Parts,
        original: &Bytes,
        exchange: Exchange,
        look: &mut Look,
    ) -> Result<Worked, Refusal> {
        let Some(reducer) = &self.reducer else {
            return Ok(Worked::as_it_came(Outcome::Unchanged));
        };
        let text = match decoded(&parts.headers, original, self.max_body) {
            Ok(text) => text,
            Err(reason) => return Ok(Worked::passed(reason)),
        };
        let Ok(text) = str::from_utf8(&text) else {
            return Ok(Worked::passed(Reason::NotUnderstood));
        };
        if exchange.format == WireFormat::Anthropic
            && exchange.purpose == Purpose::Turn
            && is_thread(text)
        {
            return Err(Box::new(no_thread()));
        }
        let length = text.len();
        let tenant = self.tenants.of(&parts.headers, parts.uri.query());
        let Ok(mut body) = RequestBody::parse(text) else {
            return Ok(Worked::passed(Reason::NotUnderstood));
        };
        look.would = Prompt::unread(length as u64);
        let Some(tenant) = tenant else {
            return Ok(Worked::passed(Reason::NoTenant));
        };
        let reduced = reducer.reduce(tenant, exchange, &mut body, look).await;
        let (outcome, conversation) = match reduced {
            Reduced::Unchanged => (Outcome::Unchanged, None),
            Reduced::Passed(reason) => (Outcome::Passed(reason), None),
            Reduced::Changed(conversation) => (Outcome::Reduced, Some(conversation)),
        };
        let changed = conversation.map(|conversation| {
            // A changed body is hardly ever longer.
            let mut text = String::with_capacity(length);
            _ = write!(text, "{body}");
            (text.into(), conversation)
        });
        Ok(Worked {
            outcome,
            body: Some(body),
            changed,
        })
    }

    /// Counts and logs an outcome. Fails if it is a failure and `on_failure` is `refuse`.
    fn note(&self, upstream: &Upstream, outcome: Outcome) -> Result<(), Refusal> {
        let labels = [("upstream", upstream.name()), ("outcome", outcome.name())];
        self.metrics.add(Metric::Requests, &labels, 1);
        let Outcome::Passed(reason) = outcome else {
            return Ok(());
        };
        self.metrics
            .add(Metric::Passed, &[("reason", reason.name())], 1);
        if !reason.is_failure() {
            tracing::info!(reason = reason.name(), "a request passed unchanged");
            return Ok(());
        }
        tracing::warn!(reason = reason.name(), "a request passed unchanged");
        match self.on_failure {
            OnFailure::Pass => Ok(()),
            OnFailure::Refuse => {
                let message = format!(
                    "the request could not be reduced ({}), and `serve.on_failure` is `refuse`: see the server's log",
                    reason.name()
                );
                Err(Box::new(own::error(
                    StatusCode::SERVICE_UNAVAILABLE,
                    &message,
                )))
            }
        }
    }
}

/// A request with the client's own body.
fn as_it_came(parts: Parts, original: Bytes) -> Request<Body> {
    let length = Some(original.len());
    forward::with_body(parts, body::full(original), length)
}

/// A body without its compression.
fn decoded(headers: &HeaderMap, body: &Bytes, max: usize) -> Result<Bytes, Reason> {
    let encoding = Encoding::of(headers).ok_or(Reason::Encoding)?;
    encoding.decode(body, max).map_err(|_| Reason::Encoding)
}

/// Reads a refusal. Returns the reply, whole again, and whether it is final: the prompt is too long,
/// which clients have to know, or it can't be read.
async fn examined(reply: Response<Body>) -> Result<(Response<Body>, bool), Refusal> {
    let (parts, mut body) = reply.into_parts();
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.ok().filter(|_| read.len() <= LONGEST_ERROR);
        let Some(frame) = frame else {
            let message = "the provider's refusal broke off, or is too long: try again";
            return Err(Box::new(own::error(StatusCode::BAD_GATEWAY, message)));
        };
        read.extend_from_slice(frame.data_ref().map_or(&[], Bytes::as_ref));
    }
    let read = Bytes::from(read);
    let encoding = Encoding::of(&parts.headers);
    let text = encoding.and_then(|encoding| encoding.decode(&read, LONGEST_ERROR).ok());
    let is_final = text.is_none_or(|text| says_too_long(&text));
    Ok((Response::from_parts(parts, body::full(read)), is_final))
}

/// The answer to a thread, whose history would not be on the wire: clients then send all of it.
fn no_thread() -> Response<Body> {
    let message =
        "offcut: a thread does not carry the conversation: send all messages without `thread`";
    let details = json!({"error_code": "thread_unsupported_request"});
    let error = json!({"type": "invalid_request_error", "message": message, "details": details});
    own::json(
        StatusCode::BAD_REQUEST,
        &json!({"type": "error", "error": error}),
    )
}

fn marked(mut reply: Response<Body>, outcome: Outcome) -> Response<Body> {
    reply.headers_mut().insert(outcome::HEADER, outcome.value());
    reply
}
