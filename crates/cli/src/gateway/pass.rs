//! A request with a conversation on its way to its provider.

use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use hyper::body::{Body as _, Incoming};
use offcut::format::{BodyError, Format, JsonText, Piece, RequestBody, Spelled, WireFormat};
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use crate::gateway::body::{self, Body, Read};
use crate::gateway::encoding::ContentEncoding;
use crate::gateway::exchange::{Exchange, Purpose};
use crate::gateway::holdout::Group;
use crate::gateway::jobs::memory_for;
use crate::gateway::metrics::Metric;
use crate::gateway::outcome::{self, Outcome, PassReason};
use crate::gateway::own::Refusal;
use crate::gateway::readers::Credential;
use crate::gateway::reducer::Pressure;
use crate::gateway::refused::{Refused, examined, is_thread};
use crate::gateway::send::Payload;
use crate::gateway::service::Service;
use crate::gateway::settings::OnFailure;
use crate::gateway::tenant::Tenant;
use crate::gateway::upstream::Upstream;
use crate::gateway::usage::OnEnd;
use crate::gateway::watch::{AwaitedBill, Look, Prompt};
use crate::gateway::whose::Whose;
use crate::gateway::{own, place};

/// Bytes that may be moved in one message.
const LONGEST_MOVE: usize = 8 << 30;

/// A request whose body has been read.
struct ReceivedRequest {
    parts: Parts,
    body: Bytes,
    exchange: Exchange,
    client: Client,
}

/// The client of a request, as far as it is known.
pub(crate) struct Client {
    pub(crate) tenant: Option<Tenant>,
    /// Its credentials, where they tell who may read a conversation back.
    pub(crate) credential: Option<Credential>,
    /// The sender, for a model that is not known yet.
    pub(crate) whose: Whose,
}

/// A request on its way. It is counted once, in the form that was answered, or once its client has left.
struct CountedOnce<'p> {
    service: &'p Arc<Service>,
    upstream: &'p Upstream,
    purpose: Purpose,
    begun: Instant,
    /// The form in which it goes on.
    look: Look,
    /// True from when it goes on until its figures are taken.
    is_on_its_way: bool,
}

impl CountedOnce<'_> {
    /// Takes the figures of the request. Returns what its bill will be compared with.
    fn called(&mut self) -> Option<AwaitedBill> {
        self.is_on_its_way = false;
        let sizes = self.look.sizes();
        if self.look.sent.is_some() {
            self.service.count_bytes(sizes);
        }
        if self.purpose != Purpose::Turn {
            return None;
        }
        let watch = &self.service.watch;
        let upstream = self.upstream.name().to_owned();
        let begun = self.begun.into_std();
        let (record, bill) = watch.state().call(upstream, &self.look, begun);
        watch.tell(&record);
        for (when, bytes) in sizes {
            if let Some(bill) = &bill {
                let labels = bill.whose.labels("when", when);
                self.service
                    .metrics
                    .add(Metric::SenderBytes, &labels, bytes);
            }
        }
        bill
    }

    /// Counts the request in the form that got this reply. Says on the reply what was done to the request, and why the
    /// provider's cache held less of it than of the one before.
    fn answered(mut self, mut reply: Response<Body>, refusal: Option<Refused>) -> Response<Body> {
        self.look.is_taken = refusal.is_none() && reply.status().is_success();
        let bill = self.called();
        let miss = bill.as_ref().and_then(AwaitedBill::miss).and_then(|miss| {
            let (kind, part, bytes) = (miss.why.row()[0], miss.part.name(), miss.bytes);
            let text = format!("missed; reason={kind}; part=\"{part}\"; bytes={bytes}");
            HeaderValue::from_str(&text).ok()
        });
        let name = HeaderName::from_static("x-offcut-cache");
        reply.headers_mut().extend(miss.map(|miss| (name, miss)));
        if let Some((slot, bill)) = reply.extensions_mut().remove::<BillSlot>().zip(bill) {
            _ = slot.set(bill);
        }
        outcome::marked(reply, self.look.outcome)
    }

    /// Counts and logs what was not replaced. Fails if that is a failure and `on_failure` is `refuse`.
    fn note(&mut self, outcome: Outcome) -> Result<(), Refusal> {
        let Some(reason) = outcome.reason() else {
            return Ok(());
        };
        let labels = [("reason", reason.name())];
        self.service.metrics.add(Metric::Unreduced, &labels, 1);
        if !reason.is_failure() {
            tracing::info!(reason = reason.name(), "a request passed unchanged");
            return Ok(());
        }
        let is_refused = self.service.settings.on_failure == OnFailure::Refuse;
        let outcome = match is_refused {
            true => Outcome::Refused(reason),
            false => outcome,
        };
        // The store's error has been logged.
        if reason != PassReason::Store || is_refused {
            tracing::warn!(
                reason = reason.name(),
                outcome = outcome.name(),
                "a request could not be reduced, or only in part: {}",
                reason.meaning()
            );
        }
        if !is_refused {
            return Ok(());
        }
        self.look.outcome = outcome;
        let message = format!(
            "the request could not be reduced, since {}, and `serve.on_failure` is `refuse`: see the server's log",
            reason.meaning()
        );
        let answer = own::error(StatusCode::SERVICE_UNAVAILABLE, &message);
        Err(Box::new(outcome::marked(answer, outcome)))
    }

    /// Sends a request whose body has been read: with the text of `look` in place of its body, or as it came. Who gets
    /// a good answer may read the conversation back.
    async fn send(
        &self,
        request: &ReceivedRequest,
        look: &Look,
    ) -> Result<Response<Body>, Refusal> {
        let mut parts = request.parts.clone();
        if look.text.is_some() {
            // A body that was decoded is not compressed again.
            parts.headers.remove(header::CONTENT_ENCODING);
        }
        let payload = Payload::Whole(look.text.as_ref().unwrap_or(&request.body).clone());
        let reply = self.deliver(parts, payload, look.group).await?;
        if let (Some(credential), Some(conversation)) =
            (&request.client.credential, &look.conversation)
            && reply.status().is_success()
        {
            let readers = &self.service.readers;
            readers.add(credential.clone(), conversation);
        }
        Ok(reply)
    }

    /// Sends a request. Its reply has the place of its bill with it.
    async fn deliver(
        &self,
        parts: Parts,
        payload: Payload,
        group: Option<Group>,
    ) -> Result<Response<Body>, Refusal> {
        let bill = BillSlot::default();
        let on_usage = self.service.counting(self.upstream, group, bill.clone());
        let sender = &self.service.sender;
        let mut reply = sender.send(parts, payload, self.upstream, on_usage).await?;
        reply.extensions_mut().insert(bill);
        Ok(reply)
    }
}

impl Drop for CountedOnce<'_> {
    fn drop(&mut self) {
        let labels = [
            ("upstream", self.upstream.name()),
            ("outcome", self.look.outcome.name()),
        ];
        self.service.metrics.add(Metric::Requests, &labels, 1);
        if self.is_on_its_way {
            self.called();
        }
    }
}

/// The place of a call's bill, which is known once a provider has taken the call.
type BillSlot = Arc<OnceLock<AwaitedBill>>;

impl Service {
    /// Takes a request with a conversation to its provider, and its reply back.
    pub(super) async fn pass_conversation(
        self: &Arc<Self>,
        parts: Parts,
        body: Incoming,
        exchange: Exchange,
        upstream: &Upstream,
        client: Client,
        begun: Instant,
    ) -> Result<Response<Body>, Refusal> {
        let counted = |look| CountedOnce {
            service: self,
            upstream,
            purpose: exchange.purpose,
            begun,
            look,
            is_on_its_way: false,
        };
        let announced = body.size_hint().exact();
        let (read, unread) = match client.tenant {
            Some(_) => {
                let max = self.settings.max_body_bytes();
                (self.uploads.read(body, max).await, PassReason::TooLong)
            }
            // Nothing of it is kept.
            None => (
                self.uploads.passed(body).map(Read::TooLong),
                PassReason::NoTenant,
            ),
        };
        let (body, _room) = match read? {
            Read::Whole(body, room) => (body, room),
            Read::TooLong(body) => {
                let look = Look::unread(client.whose, 0).passed(unread);
                let mut counted = counted(look);
                counted.note(counted.look.outcome)?;
                let (body, passed) = body::counted(body);
                let reply = counted.deliver(parts, Payload::Stream(body), None).await;
                // A body in chunks does not say its length before.
                let bytes = announced.unwrap_or_else(|| passed.load(Ordering::Relaxed));
                counted.look.would = Prompt::unread(bytes);
                counted.is_on_its_way = true;
                return Ok(counted.answered(reply?, None));
            }
        };
        let request = ReceivedRequest {
            parts,
            body,
            exchange,
            client,
        };
        let look = self.work(&request, Pressure::Thresholds).await?;
        let mut counted = counted(look);
        counted.note(counted.look.outcome)?;
        counted.is_on_its_way = true;
        self.metrics.took(begun.elapsed());
        let (reply, refusal) = match counted.send(&request, &counted.look).await {
            Ok(reply) => examined(reply, self.sender.patience).await,
            Err(own) => (*own, None),
        };
        let second = match refusal {
            Some(Refused::TooLong) => self.shortened(&request, &mut counted).await?,
            Some(Refused::Otherwise) => self.original(&request, &mut counted).await?,
            None => None,
        };
        Ok(match second {
            Some(reply) => counted.answered(reply, None),
            None => counted.answered(reply, refusal),
        })
    }

    /// Sends a request whose changes were refused once more, as it came; `None` if it has none, or if that gets no
    /// answer, since the refusal says more than the silence. If the provider takes it, its conversation is left alone
    /// from now on.
    async fn original(
        &self,
        request: &ReceivedRequest,
        counted: &mut CountedOnce<'_>,
    ) -> Result<Option<Response<Body>>, Refusal> {
        let changed = &counted.look;
        let Some(conversation) = changed
            .conversation
            .clone()
            .filter(|_| changed.text.is_some())
        else {
            return Ok(None);
        };
        let mut look = Look {
            sent: None,
            text: None,
            outcome: Outcome::default(),
            changes: Vec::new(),
            ..changed.clone()
        };
        let Ok(reply) = counted.send(request, &look).await else {
            return Ok(None);
        };
        // A refusal of both is not one of the changes.
        if reply.status().is_success() {
            look.outcome = Outcome::Passed(PassReason::Refused);
            self.reducer.leave(conversation);
            self.metrics.add(Metric::Untouched, &[], 1);
        }
        counted.look = look;
        counted.note(counted.look.outcome)?;
        Ok(Some(reply))
    }

    /// Sends a request that was refused as too long once more, with all results before its newest round cleared;
    /// `None` if that changes nothing in what was sent, or is refused too. If the provider takes it, it is counted as
    /// recovered.
    async fn shortened(
        self: &Arc<Self>,
        request: &ReceivedRequest,
        counted: &mut CountedOnce<'_>,
    ) -> Result<Option<Response<Body>>, Refusal> {
        if !self.settings.retry_too_long || request.exchange.purpose != Purpose::Turn {
            return Ok(None);
        }
        let mut look = self.work(request, Pressure::TooLong).await?;
        if look.outcome.reason() != counted.look.outcome.reason() {
            counted.note(look.outcome)?;
        }
        if look.text.is_none() || look.text == counted.look.text {
            return Ok(None);
        }
        let Ok(reply) = counted.send(request, &look).await else {
            return Ok(None);
        };
        let (reply, None) = examined(reply, self.sender.patience).await else {
            return Ok(None);
        };
        // Another reply says when to try again.
        if reply.status().is_success() {
            look.outcome = Outcome::Recovered;
            look.changes.splice(..0, counted.look.changes.drain(..));
            counted.look = look;
            tracing::info!(
                "the provider took a request that it had refused as too long, with all old results cleared"
            );
        }
        Ok(Some(reply))
    }

    /// Counts what a provider bills, for the `group` of a conversation, and what of it was billed before.
    pub(crate) fn counting(
        self: &Arc<Self>,
        upstream: &Upstream,
        group: Option<Group>,
        bill: BillSlot,
    ) -> OnEnd {
        let (service, upstream) = (self.clone(), upstream.name().to_owned());
        Box::new(move |usage| {
            let (metrics, bill) = (&service.metrics, bill.get());
            for (kind, tokens) in [
                ("fresh", usage.fresh),
                ("cached", usage.cached.unwrap_or(0)),
                ("written", usage.written),
            ] {
                if tokens == 0 {
                    continue;
                }
                let mut labels = vec![("upstream", &*upstream), ("kind", kind)];
                labels.extend(group.map(|group| ("group", group.name())));
                metrics.add(Metric::ProviderTokens, &labels, tokens);
                if let Some(AwaitedBill { whose, .. }) = bill {
                    metrics.add(Metric::SenderTokens, &whose.labels("kind", kind), tokens);
                }
            }
            let miss = bill.and_then(|bill| service.watch.state().billed(bill, usage));
            let Some(miss) = miss else {
                return;
            };
            let (kind, part, bytes) = (miss.why.row()[0], miss.part.name(), miss.bytes);
            tracing::info!(
                upstream,
                kind,
                part,
                bytes,
                "the provider's cache held less of a request than of the one before"
            );
            let labels = [("upstream", &*upstream), ("reason", kind)];
            metrics.add(Metric::CacheMisses, &labels, 1);
            metrics.add(Metric::CacheMissedBytes, &labels, bytes);
            if usage.cached.is_some() {
                metrics.add(Metric::CacheMissedTokens, &labels, miss.tokens);
            }
        })
    }

    /// Reduces a body, if that can be done.
    async fn work(
        self: &Arc<Self>,
        request: &ReceivedRequest,
        pressure: Pressure,
    ) -> Result<Look, Refusal> {
        let mut look = Look::unread(request.client.whose.clone(), request.body.len() as u64);
        let path = request.parts.uri.path();
        let last = path.rsplit('/').next().unwrap_or_default();
        if let Some((model, _)) = last.split_once(':') {
            look.name_model(model);
        }
        let Some(tenant) = request.client.tenant.clone() else {
            return Ok(look.passed(PassReason::NoTenant));
        };
        let Some(encoding) = ContentEncoding::of(&request.parts.headers) else {
            return Ok(look.passed(PassReason::Encoding));
        };
        if is_signed(&request.parts.headers) {
            return Ok(look.passed(PassReason::Signed));
        }
        let (service, exchange, read) = (self.clone(), request.exchange, look.clone());
        let work = move |text, deadline| async move {
            let reducing = service.reduced(&tenant, exchange, pressure, text, read, deadline);
            reducing.await
        };
        match self.jobs.run(&request.body, encoding, work).await {
            Ok(worked) => worked,
            Err(reason) => Ok(look.passed(reason)),
        }
    }

    /// Reads and reduces a body, as far as there is time.
    async fn reduced(
        &self,
        tenant: &Tenant,
        exchange: Exchange,
        pressure: Pressure,
        text: Bytes,
        mut look: Look,
        deadline: Instant,
    ) -> Result<Look, Refusal> {
        let length = text.len();
        look.would = Prompt::unread(length as u64);
        let Ok(text) = str::from_utf8(&text) else {
            return Ok(look.passed(PassReason::NotUnderstood));
        };
        if exchange.format == WireFormat::Anthropic
            && exchange.purpose == Purpose::Turn
            && is_thread(text)
        {
            return Err(Box::new(no_thread()));
        }
        let place = place::of_request(exchange, text, memory_for(length));
        let request = &text[place.clone()];
        let mut body = match RequestBody::parse_within(request, memory_for(length)) {
            Ok(body) => body,
            Err(BodyError::NoMessages) if place::is_elsewhere(request) => return Ok(look),
            Err(BodyError::TooDense) => return Ok(look.passed(PassReason::TooLong)),
            Err(_) => return Ok(look.passed(PassReason::NotUnderstood)),
        };
        let model = body.fields().find(|(name, _)| *name == "model");
        if let Some(model) = model.and_then(|(_, text)| serde_json::from_str::<String>(text).ok()) {
            look.name_model(&model);
        }
        let mut messages = body.messages().iter();
        if messages.any(|one| is_crowded(exchange.format, one)) {
            return Ok(look.passed(PassReason::TooLong));
        }
        look.read(&body);
        let (reducer, watch) = (&self.reducer, &self.watch);
        let reducing = reducer.reduce(tenant, exchange, pressure, watch, &mut body, &mut look);
        let outcome = timeout_at(deadline, reducing).await;
        look.outcome = outcome.unwrap_or(Outcome::Passed(PassReason::TooSlow));
        if !matches!(look.outcome, Outcome::Reduced | Outcome::Partly(_)) {
            return Ok(look);
        }
        // A changed body is hardly ever longer.
        let mut changed = String::with_capacity(length);
        let (before, after) = (&text[..place.start], &text[place.end..]);
        _ = write!(changed, "{before}{body}{after}");
        look.sent = Some(look.would.changed(&body, changed.len() as u64));
        look.text = Some(changed.into());
        Ok(look)
    }
}

/// Returns true if headers fit one body alone.
fn is_signed(headers: &HeaderMap) -> bool {
    let digests = [
        "content-digest",
        "content-md5",
        "digest",
        "signature",
        "x-amz-content-sha256",
    ];
    let credential = headers.get(header::AUTHORIZATION);
    digests.iter().any(|name| headers.contains_key(*name))
        || credential.is_some_and(|value| value.as_bytes().starts_with(b"AWS4-"))
}

/// Returns true if replacing the results of a message would take too long: each moves
/// the rest of it.
fn is_crowded(format: WireFormat, message: &JsonText) -> bool {
    let length = message.as_str().len();
    // No result is shorter than this.
    if length * (length / 32) < LONGEST_MOVE {
        return false;
    }
    let mut results = 0;
    Spelled(format).visit(message, &mut |piece| {
        results += usize::from(matches!(piece, Piece::Result(_) | Piece::Call(_)));
    });
    length * results > LONGEST_MOVE
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
