//! A request with a conversation on its way to its provider.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Response, header};
use hyper::body::{Body as _, Incoming};
use tokio::time::Instant;

use crate::gateway::body::{Body, Read};
use crate::gateway::encoding::ContentEncoding;
use crate::gateway::metrics::Metric;
use crate::gateway::naming::Group;
use crate::gateway::outcome::{self, Outcome, PassReason};
use crate::gateway::own::Refusal;
use crate::gateway::reducer::{Exchange, Pressure, Purpose};
use crate::gateway::reply::{OnEnd, Refused, examined};
use crate::gateway::send::Payload;
use crate::gateway::service::Service;
use crate::gateway::upstream::Upstream;
use crate::gateway::watch::{AwaitedBill, Look};
use crate::gateway::whose::Client;
use crate::gateway::work::is_signed;
use crate::usage::ProviderUsage;

/// The place of a call's bill, which is known once a provider has taken the call.
type BillSlot = Arc<OnceLock<AwaitedBill>>;

/// A request with a conversation. It is counted once, in the form that was answered, or once its client has left.
struct ConversationRequest<'p> {
    service: &'p Arc<Service>,
    upstream: &'p Upstream,
    exchange: Exchange,
    client: Client,
    begun: Instant,
    parts: Parts,
    /// The body as it came; empty if it is not read.
    body: Bytes,
    /// The form in which it goes on.
    look: Look,
    bill: BillSlot,
    /// True from when it goes on until its figures are taken.
    is_on_its_way: bool,
}

impl ConversationRequest<'_> {
    /// Notes the outcome of reducing, with which the request goes on unless it has to be refused.
    fn goes_on(&mut self) -> Result<(), Refusal> {
        let noted = self.service.note(&mut self.look.outcome);
        self.is_on_its_way = noted.is_ok();
        if noted.is_err() {
            self.count();
        }
        noted
    }

    fn count(&self) {
        self.service.count(&self.upstream.name, self.look.outcome);
    }

    /// Takes the figures of the request. Returns what its bill will be compared with.
    fn called(&mut self) -> Option<AwaitedBill> {
        self.is_on_its_way = false;
        self.count();
        let service = self.service;
        if self.exchange.purpose != Purpose::Turn {
            return None;
        }
        let begun = self.begun.into_std();
        let name = &self.upstream.name;
        Some(service.watch.call(name, &self.look, begun))
    }

    /// Counts the request in the form that got this reply. Says on the reply what was done to the request, and why the
    /// provider's cache held less of it than of the one before.
    fn answered(mut self, mut reply: Response<Body>, refusal: Option<Refused>) -> Response<Body> {
        self.look.is_taken = refusal.is_none() && reply.status().is_success();
        if let Some(bill) = self.called() {
            let value = bill.miss().and_then(|miss| {
                let (kind, part, bytes) = (miss.why.row()[0], miss.part.name(), miss.bytes);
                let text = format!("missed; reason={kind}; part=\"{part}\"; bytes={bytes}");
                HeaderValue::from_str(&text).ok()
            });
            let name = HeaderName::from_static("x-offcut-cache");
            reply.headers_mut().extend(value.map(|value| (name, value)));
            _ = self.bill.set(bill);
        }
        outcome::marked(reply, self.look.outcome)
    }

    /// Sends the request on, with the text of `look` in place of its body, or as it came. Who gets a good answer may
    /// read the conversation back.
    async fn send(&self, look: &Look) -> Result<Response<Body>, Refusal> {
        let mut parts = self.parts.clone();
        if look.text.is_some() {
            // A body that was decoded is not compressed again.
            parts.headers.remove(header::CONTENT_ENCODING);
        }
        let payload = Payload::Whole(look.text.as_ref().unwrap_or(&self.body).clone());
        let reply = self.deliver(parts, payload, look.group).await?;
        if let (Some(credential), Some(conversation)) =
            (&self.client.credential, &look.conversation)
            && reply.status().is_success()
        {
            let readers = &self.service.readers;
            readers.add(credential.clone(), conversation);
        }
        Ok(reply)
    }

    async fn deliver(
        &self,
        parts: Parts,
        payload: Payload,
        group: Option<Group>,
    ) -> Result<Response<Body>, Refusal> {
        let (service, bill) = (self.service, self.bill.clone());
        let on_usage = service.counting(self.upstream, group, bill);
        service
            .sender
            .send(parts, payload, self.upstream, on_usage)
            .await
    }

    /// Sends the request once more as it came, after its changes were refused; `None` if it has none, or if that gets
    /// no answer, since the refusal says more than the silence. If the provider takes it, its conversation is left
    /// alone from now on.
    async fn original(&mut self) -> Option<Response<Body>> {
        self.look.text.as_ref()?;
        let mut look = Look {
            after: None,
            text: None,
            outcome: Outcome::default(),
            changes: Vec::new(),
            ..self.look.clone()
        };
        let reply = self.send(&look).await.ok()?;
        // A refusal of both is not one of the changes.
        if reply.status().is_success() {
            look.outcome = Outcome::Passed(PassReason::Refused);
            let reducer = &self.service.reducer;
            look.conversation.iter().for_each(|one| reducer.leave(one));
            self.service.metrics.add(Metric::Untouched, &[], 1);
        }
        // Neither outcome is a failure of this server.
        _ = self.service.note(&mut look.outcome);
        self.look = look;
        Some(reply)
    }

    /// Sends the request once more with all results before its newest round cleared, after it was refused as too long;
    /// `None` if that changes nothing in what was sent, or is refused too. If the provider takes it, it is counted as
    /// recovered.
    async fn shortened(&mut self) -> Option<Response<Body>> {
        let service = self.service;
        if !service.settings.retry_too_long || self.exchange.purpose != Purpose::Turn {
            return None;
        }
        let mut look = self.reduced(Pressure::TooLong).await.ok()?;
        if look.text.is_none() || look.text == self.look.text {
            return None;
        }
        if look.outcome.reason() != self.look.outcome.reason() {
            service.note(&mut look.outcome).ok()?;
        }
        let reply = self.send(&look).await.ok()?;
        let (reply, None) = examined(reply, service.sender.patience).await else {
            return None;
        };
        // Another reply says when to try again.
        if reply.status().is_success() {
            look.outcome = Outcome::Recovered;
            look.changes.splice(..0, self.look.changes.drain(..));
            self.look = look;
            tracing::info!(
                "the provider took a request that it had refused as too long, with all old results cleared"
            );
        }
        Some(reply)
    }

    /// The form in which the request goes on, reduced if that can be done.
    async fn reduced(&self, pressure: Pressure) -> Result<Look, Refusal> {
        let (service, exchange) = (self.service, self.exchange);
        let mut look = Look::unread(self.client.whose.clone(), self.body.len() as u64);
        let last = self.parts.uri.path().rsplit('/').next();
        if let Some((model, _)) = last.and_then(|last| last.split_once(':')) {
            look.whose.name_model(model);
        }
        let Some(tenant) = self.client.tenant.clone() else {
            return Ok(look.passed(PassReason::NoTenant));
        };
        let Some(encoding) = ContentEncoding::of(&self.parts.headers) else {
            return Ok(look.passed(PassReason::Encoding));
        };
        if is_signed(&self.parts.headers) {
            return Ok(look.passed(PassReason::Signed));
        }
        let (worker, read) = (service.clone(), look.clone());
        let work = move |text, deadline| async move {
            let work = worker.reduced(&tenant, exchange, pressure, text, read, deadline);
            work.await
        };
        let worked = service.jobs.run(&self.body, encoding, work).await;
        worked.unwrap_or_else(|reason| Ok(look.passed(reason)))
    }
}

impl Drop for ConversationRequest<'_> {
    fn drop(&mut self) {
        if self.is_on_its_way {
            self.called();
        }
    }
}

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
        tracing::Span::current().record("tenant", &client.tenant);
        // A body in chunks does not say its length before.
        let announced = body.size_hint().exact().unwrap_or(0);
        let read = match client.tenant {
            Some(_) => {
                let max = self.settings.max_body_bytes();
                self.uploads.read(body, max).await?
            }
            // Nothing of it is kept.
            None => Read::TooLong(self.uploads.passed(body)?),
        };
        let mut request = ConversationRequest {
            service: self,
            upstream,
            exchange,
            begun,
            parts,
            body: Bytes::new(),
            look: Look::unread(client.whose.clone(), announced),
            client,
            bill: Arc::default(),
            is_on_its_way: false,
        };
        let _room = match read {
            Read::Whole(body, room) => {
                request.body = body;
                room
            }
            Read::TooLong(body) => {
                let is_known = request.client.tenant.is_some();
                request.look.outcome = Outcome::Passed(match is_known {
                    true => PassReason::TooLong,
                    false => PassReason::NoTenant,
                });
                request.goes_on()?;
                let parts = request.parts.clone();
                let reply = request.deliver(parts, Payload::Stream(body), None).await?;
                return Ok(request.answered(reply, None));
            }
        };
        request.look = request.reduced(Pressure::Thresholds).await?;
        request.goes_on()?;
        self.metrics.took(begun.elapsed());
        let (reply, refusal) = match request.send(&request.look).await {
            Ok(reply) => examined(reply, self.sender.patience).await,
            Err(own) => (*own, None),
        };
        let second = match refusal {
            Some(Refused::TooLong) => request.shortened().await,
            Some(Refused::Otherwise) => request.original().await,
            None => None,
        };
        let refusal = refusal.filter(|_| second.is_none());
        // The bill is that of the reply that goes on: the other one ends before it is known.
        Ok(request.answered(second.unwrap_or(reply), refusal))
    }

    /// Counts what a provider bills, for the `group` of a conversation, and what of it was billed before.
    pub(crate) fn counting(
        self: &Arc<Self>,
        upstream: &Upstream,
        group: Option<Group>,
        bill: BillSlot,
    ) -> OnEnd {
        let (service, upstream) = (self.clone(), upstream.name.clone());
        Box::new(move |usage| service.billed(&upstream, group, bill.get(), usage))
    }

    fn billed(
        &self,
        upstream: &str,
        group: Option<Group>,
        bill: Option<&AwaitedBill>,
        usage: ProviderUsage,
    ) {
        let metrics = &self.metrics;
        for (kind, tokens) in [
            ("fresh", usage.fresh),
            ("cached", usage.cached.unwrap_or(0)),
            ("written", usage.written),
        ] {
            if tokens == 0 {
                continue;
            }
            let mut labels = vec![("upstream", upstream), ("kind", kind)];
            labels.extend(group.map(|group| ("group", group.name())));
            metrics.add(Metric::ProviderTokens, &labels, tokens);
        }
        let Some(miss) = bill.and_then(|bill| self.watch.state().billed(bill, usage)) else {
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
        let labels = [("upstream", upstream), ("reason", kind)];
        metrics.add(Metric::CacheMisses, &labels, 1);
        metrics.add(Metric::CacheMissedBytes, &labels, bytes);
        if usage.cached.is_some() {
            metrics.add(Metric::CacheMissedTokens, &labels, miss.tokens);
        }
    }
}
